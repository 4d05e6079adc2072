"""A kernel as part of a JAX program: XLA itself launches its PTX."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from .nvrtc import Capability, CompilerUnavailable, compile_to_ptx

# A custom call that XLA itself has: a running program needs no code of ours.
TARGET = "__gpu$xla.gpu.ptx"


class Kernel(NamedTuple):
    """A kernel in CUDA C.

    Attributes:
        source: with one function for the GPU, called `name`. Its parameters are pointers to the arguments, then to the
            results, row by row.
        num_blocks: how many blocks of threads run it.
        num_threads: the threads of a block.
    """

    source: str
    name: str
    num_blocks: int
    num_threads: int


def local_capability() -> Capability | None:
    """The compute capability of the GPUs that this process sees, or `None` if it sees none of NVIDIA's."""
    try:
        device, *_ = jax.local_devices(backend="gpu")
    except RuntimeError:
        return None
    major, _, minor = str(getattr(device, "compute_capability", "")).partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


class Launcher:
    """Compiles kernels with NVRTC for the GPUs that this process sees."""

    def run(
        self,
        kernel: Kernel,
        args: Sequence[jax.Array],
        results: Sequence[jax.ShapeDtypeStruct],
        aliases: Mapping[int, int] | None = None,
    ) -> Sequence[jax.Array]:
        """The arrays that a kernel fills.

        Args:
            aliases: for an argument that becomes a result, the number of that result.

        Raises:
            CompilerUnavailable: if there is no NVRTC, or no GPU.
            CompilationFailed: if NVRTC refuses the source.
        """
        sizes = {f"{kind}_{axis}": np.int32(1) for kind in ("grid", "block") for axis in "xyz"}
        sizes |= {"grid_x": np.int32(kernel.num_blocks), "block_x": np.int32(kernel.num_threads)}
        capability = local_capability()
        if capability is None:
            raise CompilerUnavailable("this process sees no NVIDIA GPU")
        ptx = compile_to_ptx(kernel.source, capability)
        call = jax.ffi.ffi_call(TARGET, list(results), input_output_aliases=dict(aliases or {}))
        named: dict[str, Any] = {"name": kernel.name, "kernel_type": "ptx", "kernel_data": ptx}
        return call(*args, **named, shared_mem_bytes=np.int32(0), **sizes)


THIS_GPU = Launcher()
