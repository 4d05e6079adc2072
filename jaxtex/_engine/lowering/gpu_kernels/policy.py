"""Which reads run as kernels, and how they are lowered."""

import importlib.metadata
import importlib.util
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import mlir

from ....modes import ReadMode
from ...axis import Axis
from ...reproducible_sum import crowded, row_lanes
from ...texel_walk import flat_sizes
from .tiling import samples_shape

LEAST_COMPUTE_CAPABILITY = 8.0
# Elements are counted in int32, with room for what fills the last tile.
ELEMENT_LIMIT = 2**30
# Wider texels are rows that XLA moves well; but it has no private copies where samples crowd.
MAX_CHANNELS, MAX_CHANNELS_CROWD = 16, 64
# These compile a float32 scatter-add to a loop of compare and swap on CUDA: https://github.com/jax-ml/jax/issues/38806
SLOW_ATOMICS = ((0, 10, 2), (0, 11, 0))
SLOW_ATOMICS_ADVICE = (
    "jaxtex: this jaxlib adds float32 numbers on a GPU by a slow loop, in programs that run on several devices or that "
    "our kernels do not cover. Gradients in texels are then several times slower; install jaxlib 0.11.1 or newer, or "
    "put the read inside jax.shard_map."
)
# XLA computes several neighbouring elements in a thread: fine for the channels of a texel, bad for its neighbours.
MAX_CHANNELS_READ = 4


def lowering(
    kernel: Callable[..., Any],
    otherwise: Callable[..., Any],
    suits: Callable[..., bool],
    *,
    several: bool,
    scatters: bool,
):
    """A lowering rule for one platform: to `kernel` where it `suits` and the program runs on one device."""
    as_kernel, as_arrays = (mlir.lower_fun(f, multiple_results=several) for f in (kernel, otherwise))

    def rule(ctx, *args, **static):
        if on_one_device(ctx.module_context) and suits(*ctx.avals_in, **static):
            # Inside `jax.shard_map` all operands vary alike, which is of no interest any more.
            ctx = ctx.replace(avals_in=[type(a)(a.shape, a.dtype) for a in ctx.avals_in])
            with warnings.catch_warnings():  # of a backend that may go: it is asked for where it is used
                warnings.simplefilter("ignore", DeprecationWarning)
                return as_kernel(ctx, *args, **static)
        if scatters and tuple(ctx.module_context.platforms) == ("cuda",) and jaxlib_version() in SLOW_ATOMICS:
            warnings.warn(SLOW_ATOMICS_ADVICE, stacklevel=2)
        return as_arrays(ctx, *args, **static)

    return rule


def jaxlib_version() -> tuple[int, ...]:
    return tuple(int(n) for n in importlib.metadata.version("jaxlib").split(".")[:3] if n.isdigit())


def can_compile() -> bool:
    """Whether a kernel can be compiled: for a GPU that this process sees, and that Triton knows."""
    try:
        device, *_ = jax.local_devices(backend="gpu")
    except RuntimeError:
        return False
    known = float(getattr(device, "compute_capability", 0)) >= LEAST_COMPUTE_CAPABILITY
    return known and importlib.util.find_spec("jax.experimental.pallas.triton") is not None


def on_one_device(module: Any) -> bool:
    """Whether a program is neither partitioned by XLA nor exported: a kernel can be neither."""
    context = module.axis_context
    if module.lowering_parameters.for_export:
        return False
    if hasattr(context, "manual_axes"):
        return set(context.manual_axes) == set(context.mesh.axis_names)
    return getattr(context, "num_devices", 0) == 1


def fits(axes: tuple[Axis, ...], arrays: list[Any], *counts: int) -> bool:
    """Whether a kernel can be compiled, indices and elements are within int32, and numbers within 32 bits.

    Args:
        arrays: what the kernel reads.
        counts: the elements of other arrays, which it makes.
    """
    if not can_compile() or len(flat_sizes(axes)) > 1 or any(a.dtype.itemsize > 4 for a in arrays):
        return False
    counts = (*counts, *(math.prod(a.shape) for a in arrays))
    return min(counts) > 0 and max(counts) < ELEMENT_LIMIT


def suits_read(
    texels, *operands, axes: tuple[Axis, ...], read_mode: ReadMode, dtype: np.dtype, batch: int, **_
) -> bool:
    if dtype != jnp.float32 or read_mode is ReadMode.SRGB_FLOAT:
        return False
    if jnp.issubdtype(texels.dtype, jnp.floating) and texels.dtype != dtype:
        return False  # what is read is rounded to 16 bits again, which XLA does in the same pass
    return fits_read(texels, operands, axes, batch)


def suits_exact(texels, color, *operands, axes: tuple[Axis, ...], read_mode: ReadMode, batch: int, **_) -> bool:
    """Whether a read in hardware arithmetic runs as a kernel: with a color for all textures alike."""
    if read_mode is ReadMode.SRGB_FLOAT or any(n > 1 for n in color.shape[:batch]):
        return False
    return fits_read(texels, operands, axes, batch)


def fits_read(texels: Any, operands: Sequence[Any], axes: tuple[Axis, ...], batch: int) -> bool:
    """Whether a kernel can read such textures, of few channels."""
    count = texels.shape[-1]
    samples = math.prod(samples_shape(texels.shape[:batch], operands))
    return count <= MAX_CHANNELS_READ and fits(axes, [texels, *operands], samples * count)


def suits_splat(values, *operands, axes: tuple[Axis, ...], dtype: np.dtype, batch: int, **_) -> bool:
    count, places = values.shape[-1], math.prod(flat_sizes(axes))
    crowd = crowded(math.prod(values.shape[batch:-1]), places)
    if values.dtype != jnp.float32 or count > (MAX_CHANNELS_CROWD if crowd else MAX_CHANNELS):
        return False
    textures = np.broadcast_shapes(*(a.shape[:batch] for a in (values, *operands)))
    sums = math.prod(textures) * places * 2 * row_lanes(count)  # of two parts, if they are to be exact
    return fits(axes, [values, *operands], sums)


def suits_pullback(
    cotangent, texels, *operands, axes, read_mode: ReadMode, dtype: np.dtype, wanted, batch: int, **_
) -> bool:
    able = read_mode is not ReadMode.SRGB_FLOAT and fits(axes, [texels])
    return able and suits_splat(cotangent, *operands, axes=axes, dtype=dtype, batch=batch)
