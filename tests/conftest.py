"""How every test runs: strict promotion, eight host devices, reproducible properties, few threads."""

import os

# XLA reads these when it starts, so they must stand before the first import of jax.
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
HOST_DEVICES = "--xla_force_host_platform_device_count"
if os.environ.get("JAX_PLATFORMS", "cpu").split(",")[0] in ("", "cpu") and HOST_DEVICES not in os.environ.get(
    "XLA_FLAGS", ""
):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {HOST_DEVICES}=8".strip()
# NPROC is the number of cores that XLA's thread pools believe in.
os.environ.setdefault("NPROC", str(max(1, (os.cpu_count() or 1) // WORKERS)))

import hypothesis
import jax
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

hypothesis.settings.register_profile(
    "jaxtex",
    derandomize=True,
    deadline=None,
    max_examples=30,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    # A smaller failing example is not worth the minutes that compiling for each attempt takes.
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)
hypothesis.settings.load_profile("jaxtex")


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a CUDA device, and is skipped where JAX finds none")


def pytest_collection_modifyitems(items):
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and not any(device.platform == "gpu" for device in jax.devices()):
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture
def x64():
    """Runs a test with 64-bit types."""
    with jax.enable_x64(True):
        yield
