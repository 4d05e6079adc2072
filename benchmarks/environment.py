"""What a figure depends on: device, versions, commit."""

import importlib.metadata
import importlib.util
import platform
import subprocess

import jax

import jaxtex

PEER_MODULES = (
    *("torch", "torchvision", "nvdiffrast", "cupy", "cucim", "warp", "drjit", "cv2"),
    *("tinycudann", "DCNv4", "alt_cuda_corr", "monai", "jitfields", "nanodrr"),
)


def commit() -> str:
    """The commit of the working tree, or 'unknown' outside a repository."""
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def peers() -> dict[str, str]:
    """The versions of the other libraries that are installed, without importing them."""
    distributions = importlib.metadata.packages_distributions()
    found = {}
    for module in PEER_MODULES:
        if module in distributions:
            found[module] = importlib.metadata.version(distributions[module][0])
        elif importlib.util.find_spec(module) is not None:
            found[module] = "of unknown version"
    return found


def environment() -> dict[str, str]:
    return {
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "jaxlib": importlib.metadata.version("jaxlib"),
        "jaxtex": jaxtex.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "commit": commit(),
        **peers(),
    }
