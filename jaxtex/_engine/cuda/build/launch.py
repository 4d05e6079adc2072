"""The launch of a kernel in a JAX program: XLA or jaxlib launches its PTX; a running program needs no Python."""

import contextvars
import functools
import types
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from ...._jax.contexts import FOR_THIS_EXPORT
from ...._jax.versions import Late, has_ptx_call, triton_launcher
from .nvrtc import Capability, CompilerUnavailable, compile_to_ptx

# The custom calls that launch PTX: the one of XLA, and the one that jaxlib registers for CUDA.
TARGET = "__gpu$xla.gpu.ptx"
TRITON_TARGET = "triton_kernel_call_ffi"
# The threads of a warp.
LANES = 32
# Whether a trace of a kernel waits for its PTX; if not, its lowering does.
WAITS = contextvars.ContextVar("WAITS", default=True)
# A lower bound of the alignment of XLA's arrays, in bytes.
ALIGNMENT = 16


class Kernel(NamedTuple):
    """A kernel in CUDA C.

    Attributes:
        source: CUDA C++ with one `__global__` function. Its parameters are pointers to the arguments, then to the
            results; arrays are row-major.
        name: the name of that function.
        num_blocks: the number of blocks.
        num_threads: the number of threads of a block.
        headers: the texts of the generated headers, which `source` includes, by their names.
        shared_bytes: the shared memory of a block that the launch reserves, besides what `source` declares.
    """

    source: str
    name: str
    num_blocks: int
    num_threads: int
    headers: Mapping[str, str] = types.MappingProxyType({})
    shared_bytes: int = 0


class Compiled(NamedTuple):
    """A compiled kernel.

    Attributes:
        kernel: the kernel.
        ptx: its PTX; launched by XLA, it may be computed late.
        capability: the compute capability of the GPUs that are to run it.
    """

    kernel: Kernel
    ptx: str | Late
    capability: Capability


Results = Sequence[jax.ShapeDtypeStruct]
Launch = Callable[[Compiled, Sequence[jax.Array], Results, Mapping[int, int]], Sequence[jax.Array]]


def local_capability() -> Capability | None:
    """The lowest compute capability of this process's GPUs; `None` if there are none, or not all are NVIDIA's."""
    try:
        devices = jax.local_devices(backend="gpu")
    except RuntimeError:
        return None
    pairs = [str(getattr(device, "compute_capability", "")).partition(".")[::2] for device in devices]
    known = all(major.isdigit() and minor.isdigit() for major, minor in pairs)
    return min(((int(major), int(minor)) for major, minor in pairs), default=None) if known else None


def target_capability() -> Capability | None:
    """The compute capability of the GPUs of the program that is being lowered; `None` if there is no GPU."""
    return FOR_THIS_EXPORT.value or local_capability()


def launch_by_xla(
    compiled: Compiled, args: Sequence[jax.Array], results: Results, aliases: Mapping[int, int]
) -> Sequence[jax.Array]:
    """The results of a kernel, launched by XLA, which loads the PTX when it compiles the program."""
    kernel, ptx, _ = compiled
    sizes = {f"{kind}_{axis}": np.int32(1) for kind in ("grid", "block") for axis in "xyz"}
    sizes |= {"grid_x": np.int32(kernel.num_blocks), "block_x": np.int32(kernel.num_threads)}
    call = jax.ffi.ffi_call(TARGET, list(results), input_output_aliases=dict(aliases))
    named: dict[str, Any] = {"name": kernel.name, "kernel_type": "ptx", "kernel_data": ptx}
    return call(*args, **named, shared_mem_bytes=np.int32(kernel.shared_bytes), **sizes)


def launch_by_triton(
    compiled: Compiled, args: Sequence[jax.Array], results: Results, aliases: Mapping[int, int]
) -> Sequence[jax.Array]:
    """The results of a kernel, launched by jaxlib's launcher for jax_triton, which takes the PTX of any compiler.

    It loads the kernel when the program first runs, only on GPUs of exactly `compiled.capability`.
    """
    triton = triton_launcher()
    if triton is None:
        raise CompilerUnavailable("jaxlib has no launcher of PTX; install the plugin of jax[cuda12] or jax[cuda13]")
    kernel, ptx, (major, minor) = compiled
    warps, rest = divmod(kernel.num_threads, LANES)
    if rest:
        raise CompilerUnavailable(f"a block of {kernel.num_threads} threads is not a number of warps")
    image = triton.TritonKernel(kernel.name, warps, 1, kernel.shared_bytes, ptx, "", 10 * major + minor)
    array = triton.create_array_parameter(0, ALIGNMENT)
    launch = triton.TritonKernelCall(image, kernel.num_blocks, 1, 1, [array] * (len(args) + len(results)))
    call = jax.ffi.ffi_call(TRITON_TARGET, list(results), input_output_aliases=dict(aliases))
    return call(*args, opaque=zlib.compress(launch.to_proto(kernel.name, b"")))


def chosen_launch() -> Launch:
    """XLA's launcher, if this jaxlib is known to have it; otherwise jaxlib's.

    Exported programs need XLA's launcher, because jaxlib's loads a kernel on GPUs of one capability only.

    Raises:
        CompilerUnavailable: if there is no launcher.
    """
    if has_ptx_call():
        return launch_by_xla
    if FOR_THIS_EXPORT.value is None and triton_launcher() is not None:
        return launch_by_triton
    raise CompilerUnavailable("this jaxlib is not known to launch PTX; install a jaxlib that this jaxtex supports")


@functools.cache
def threads() -> ThreadPoolExecutor:
    """The threads that compile kernels. NVRTC 12.3 and newer optimizes in all of them at once."""
    return ThreadPoolExecutor(thread_name_prefix="jaxtex-nvrtc")


def without_waiting(form: Callable[..., Any]) -> Callable[..., Any]:
    """A form whose trace does not wait until its kernels are compiled: its lowering does."""

    def begin(*args: Any, **params: Any) -> Any:
        token = WAITS.set(False)
        try:
            return form(*args, **params)
        finally:
            WAITS.reset(token)

    return begin


def run(kernel: Kernel, args: Sequence[jax.Array], results: Results, aliases: Mapping[int, int]) -> Sequence[jax.Array]:
    """The results of a kernel, which NVRTC compiles for the GPUs of the program.

    Args:
        aliases: for the position of an argument that becomes a result, the number of that result.

    Raises:
        CompilerUnavailable: if there is no NVRTC, no launcher, or no GPU.
        CompilationFailed: if NVRTC refuses the source.
    """
    capability = target_capability()
    if capability is None:
        raise CompilerUnavailable("this process sees no NVIDIA GPU")
    launch, given = chosen_launch(), (kernel.source, capability)
    is_late = launch is launch_by_xla and not WAITS.get()
    ptx = Late(threads().submit(compile_to_ptx, *given).result) if is_late else compile_to_ptx(*given)
    return launch(Compiled(kernel, ptx, capability), args, results, aliases)
