"""How the tests compile: cheaply, and as XLA does by default where a test claims bits.

A test spends its time on compiling programs that run once, on a few samples. Without fusion emitters, in one module
and without optimizations, XLA compiles a program for a CPU in less than half of the time.
"""

import functools
import importlib.util
import mmap
import os
import platform
from pathlib import Path

HOST_DEVICES = "xla_force_host_platform_device_count"
# Each option as the tests set it, and its default.
OPTIONS = {
    "xla_cpu_opt_preset": ("CPU_OPT_PRESET_FAST_COMPILE", "CPU_OPT_PRESET_DEFAULT"),
    "xla_llvm_disable_expensive_passes": (True, False),
    "xla_cpu_use_fusion_emitters": (False, True),
    "xla_cpu_parallel_codegen_split_count": (1, 32),
}
if platform.machine().lower() in ("x86_64", "amd64"):
    # Without optimizations LLVM contracts a product and a sum in one place and not in another, so the tap and the
    # fraction of one position may disagree. AVX has no instruction for both.
    OPTIONS |= {"xla_backend_optimization_level": (0, 3), "xla_cpu_max_isa": ("AVX", "")}


def on_cpu():
    """Whether JAX will run on the CPU: it is told so, or has no plugin for anything else."""
    platforms = os.environ.get("JAX_PLATFORMS", "")
    return platforms.split(",")[0] == "cpu" or not (platforms or importlib.util.find_spec("jax_plugins"))


@functools.cache
def known_options():
    """The options that this jaxlib knows. XLA ends the process at a flag that it does not know."""
    found = importlib.util.find_spec("jaxlib")
    library = Path(found.origin).with_name("libjax_common.so") if found and found.origin else None
    if library is None or not library.exists():
        return ()
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as code:
        return tuple(name for name in OPTIONS if code.find(name.encode()) >= 0)


def flags():
    """For `XLA_FLAGS`: what it holds already, eight host devices, and the cheap options; what it holds wins."""
    held = os.environ.get("XLA_FLAGS", "")
    wanted = {HOST_DEVICES: 8} | {name: OPTIONS[name][0] for name in known_options()}
    return " ".join((held, *(f"--{k}={v}" for k, v in wanted.items() if k not in held))).strip()


def by_default():
    """Compiler options for `jax.jit`, with which a program is compiled as users compile it."""
    return {name: OPTIONS[name][1] for name in known_options()} if on_cpu() else {}
