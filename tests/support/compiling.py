"""How the tests compile: cheaply, and as XLA does by default where a test claims bits.

A test spends its time on compiling programs that run once, on a few samples. Without fusion emitters, in one module
and without optimizations, XLA compiles a program for a CPU in less than half of the time. Lowered in one context, many
small programs take a seventh less again, and a third less memory.
"""

import importlib
import importlib.util
import os
import platform
import subprocess
import sys

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


def is_accepted(flags):
    """Whether XLA starts with these flags. It ends the process at a flag that it does not know."""
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    program = [sys.executable, "-c", "import jax; jax.devices()"]
    return subprocess.run(program, env=environment, capture_output=True, check=False).returncode == 0


def flags():
    """For `XLA_FLAGS`: what it holds already, eight host devices, and the cheap options that this XLA knows.

    What it holds wins, and where it holds one of the options all have been tried: workers inherit the environment.
    """
    held = os.environ.get("XLA_FLAGS", "")
    if HOST_DEVICES not in held:
        held = f"{held} --{HOST_DEVICES}=8".strip()
    if any(name in held for name in OPTIONS):
        return held
    cheap = [f"--{name}={value}" for name, (value, _) in OPTIONS.items()]
    if is_accepted(" ".join((held, *cheap))):
        return " ".join((held, *cheap))
    return " ".join((held, *(flag for flag in cheap if is_accepted(f"{held} {flag}"))))


def by_default():
    """Compiler options for `jax.jit`, with which a program is compiled as users compile it."""
    held = os.environ.get("XLA_FLAGS", "")
    return {name: default for name, (_, default) in OPTIONS.items() if name in held} if on_cpu() else {}


class SharedContext:
    """The MLIR context in which programs are lowered. JAX makes one for each, which loads all dialects again.

    A context keeps the constants of its programs, so it is to be forgotten now and then.
    """

    def __init__(self):
        self.context = None

    def install(self):
        """Where this version of JAX makes contexts. A context may be used by several threads at once."""
        mlir = importlib.import_module("jax._src.interpreters.mlir")
        make = getattr(mlir, "make_ir_context", None)
        if make:
            mlir.make_ir_context = lambda: self.shared(make)

    def shared(self, make):
        self.context = context = self.context or make()
        return context

    def forget(self):
        self.context = None
