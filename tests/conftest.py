"""How every test runs: strict promotion, eight host devices, reproducible properties, few threads, little memory."""

import ctypes
import gc
import os

from tests import budget
from tests.support import compiling

# XLA and its thread pools read the environment when they start, so this must stand before the first import of jax.
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if compiling.on_cpu():
    os.environ["XLA_FLAGS"] = compiling.flags()
# The command line, which tests start, keeps no programs.
os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "0")
# glibc reads this when a process starts, so it holds for the workers and for what tests start: heaps of large pages.
os.environ.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
# NPROC is the number of cores that XLA's thread pools believe in.
os.environ.setdefault("NPROC", str(max(1, (os.cpu_count() or 1) // WORKERS)))

import jax
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
# Nobody reads the tests' programs, so they need not say which lines they come from.
jax.config.update("jax_traceback_in_locations_limit", 0)

from tests.support import drawn

contexts = compiling.SharedContext()
contexts.install()

# After how many compiled programs their memory is freed, a megabyte or two each.
MOST_PROGRAMS = 200
EVENT = "/jax/core/compile/backend_compile_duration"
LIBC = ctypes.CDLL(None)
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -2, -3, -8  # of malloc.h
MEGABYTE = 2**20


def pytest_addoption(parser):
    parser.addoption("--seeds", type=int, default=drawn.SEEDS, help="how many seeds draw values for a test")


def pytest_configure(config):
    drawn.SEEDS = config.getoption("seeds")
    config.addinivalue_line("markers", "gpu: needs a CUDA device, and is skipped where JAX finds none")
    config.addinivalue_line("markers", "slow: left out by default; costs much, and finds little that others do not")


def pytest_sessionstart():
    """One arena for all threads: what a compiler's thread frees in an arena of its own is of no use to others.

    The arena keeps what is freed, as the next program is compiled in as much again.
    """
    if hasattr(LIBC, "mallopt"):  # glibc
        LIBC.mallopt(M_ARENA_MAX, 1)
        LIBC.mallopt(M_MMAP_THRESHOLD, 32 * MEGABYTE)
        LIBC.mallopt(M_TRIM_THRESHOLD, 256 * MEGABYTE)
        LIBC.mallopt(M_TOP_PAD, 16 * MEGABYTE)


def pytest_collection_finish():
    """What is loaded by now stays, so the collector of cycles need not look at it again, and may look less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


class Programs:
    """Counts the programs that XLA compiles, since the last were freed and for a file of tests, and frees them."""

    def __init__(self):
        self.count = self.of_file = 0
        jax.monitoring.register_event_duration_secs_listener(self.listen)

    def listen(self, event, duration, **more):
        self.count += event == EVENT
        self.of_file += event == EVENT

    def end_file(self, name):
        """Compares the programs of a file of tests with its budget, or writes them down.

        Counts are those of one version of JAX on a CPU.
        """
        count, self.of_file = self.of_file, 0
        if os.environ.get(budget.VARIABLE):
            with open(os.environ[budget.VARIABLE], "a") as log:
                log.write(f"{name} {count}\n")
            return
        version, counts = budget.read()
        fault = budget.fault(name, count, counts)
        if fault and jax.__version__ == version and compiling.on_cpu():
            pytest.fail(fault, pytrace=False)

    def free(self):
        self.count = 0
        contexts.forget()
        jax.clear_caches()
        gc.collect()
        if hasattr(LIBC, "malloc_trim"):  # glibc, which gives nothing back by itself
            LIBC.malloc_trim(0)


programs = Programs()


def pytest_runtest_teardown(item, nextitem):
    """Frees programs when they are many, and at the end of a file."""
    last = nextitem is None or nextitem.path != item.path
    if programs.count > MOST_PROGRAMS or last:
        programs.free()
    if last:
        programs.end_file(str(item.path.relative_to(budget.FOLDER)))


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


@pytest.fixture
def on_a_cpu():
    """Runs a test on a CPU where there is a GPU, too."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.fixture
def default_promotion():
    """Runs a test as a caller would run it, without the strict flags of the tests."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
