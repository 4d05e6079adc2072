"""The kernels of a GPU, and the calls that each of them supports: what `choice` takes into programs for CUDA."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._tables.storage_formats import Decoding
from ..cuda.adjoint_kernel import part_pullback, part_splat, pullback, splat
from ..cuda.build.launch import target_capability
from ..cuda.build.nvrtc import CompilationFailed, CompilerUnavailable
from ..cuda.convolve.convolution_kernel import convolve
from ..cuda.edged_kernels import edged_pullback, edged_read, edged_splat
from ..cuda.read.read_kernel import WIDTHS, bordered_read, joined_read, read, result_shape
from ..cuda.samples.sample_tiles import Lanes, samples_shape
from ..cuda.trace.elementwise import C_TYPES
from ..cuda.trace.emitter import UnknownPrimitive
from ..describe.axis import sizes_are_known
from ..describe.spec import TEXELS, ReadSpec, StaticRead, Wrt, each_read
from ..describe.storage import Edged, Place, places_of
from ..walk.texel_walk import flat_sizes

# The kernels, and why one cannot be made.
__all__ = [
    "CompilationFailed",
    "CompilerUnavailable",
    "UnknownPrimitive",
    "bordered_read",
    "convolve",
    "edged_pullback",
    "edged_read",
    "edged_splat",
    "joined_read",
    "part_pullback",
    "part_splat",
    "pullback",
    "read",
    "splat",
]

LEAST_COMPUTE_CAPABILITY = (8, 0)
# Samples and texels are numbered in int32, with room for the padding of the last tile; elements are not.
COUNT_LIMIT = 2**31 - 2**16
# A thread takes a channel or more, and a block has at most 1,024 threads.
MAX_CHANNELS = 1024
# Memory is written in sectors of so many bytes. One that several reads fill is written by each of them.
SECTOR_BYTES = 32


def can_compile_kernels() -> bool:
    """Whether kernels are written for the GPUs of the program that is being lowered."""
    capability = target_capability()
    return capability is not None and capability >= LEAST_COMPUTE_CAPABILITY


def kernel_fits(arrays: Sequence[Any], *counts: int) -> bool:
    """Whether a kernel can be compiled, counts are within int32, and numbers within 32 bits.

    Args:
        arrays: what the kernel reads, none of them empty.
        counts: of samples and of texels, which have numbers.
    """
    if not can_compile_kernels() or any(a.dtype.itemsize > 4 or 0 in a.shape for a in arrays):
        return False
    return min(counts) > 0 and max(counts) < COUNT_LIMIT


def kernel_decodes(texels: Any, spec: ReadSpec) -> bool:
    """Whether a kernel can load and decode texels; a thread knows which channels are colors if it has all of them."""
    most = WIDTHS[0] if spec.decoding is Decoding.SRGB else MAX_CHANNELS
    return texels.shape[-1] <= most and is_known(texels.dtype)


def is_known(dtype: Any) -> bool:
    """Whether numbers of a dtype have a type in a kernel."""
    return np.dtype(dtype).name in C_TYPES


def supports_read(texels: Any, *operands: Any, spec: ReadSpec, batch: int) -> bool:
    dtypes = spec.dtype, *(a.dtype for a in operands)
    if spec.num_reads > 1 and spec.summed_axes:
        return False
    if not kernel_decodes(texels, spec) or spec.dtype.itemsize > 4 or not all(map(is_known, dtypes)):
        return False
    samples = math.prod(samples_shape(texels.shape[:batch], spec.sample_shapes(operands)))
    return kernel_fits([texels, *operands], samples)


def supports_bordered_read(texels: Any, color: Any, *operands: Any, spec: ReadSpec, batch: int) -> bool:
    """Whether a read with a border color, in either arithmetic, runs as a kernel."""
    del color
    return supports_read(texels, *operands, spec=spec, batch=batch)


def supports_joined_read(*avals: Any, reads: Sequence[StaticRead], row_axes: int) -> bool:
    """Whether each read runs as a kernel that computes its values, all have one dtype, and none cuts sectors."""
    shapes = (result_shape(texels, some, read.spec, read.batch) for read, (texels, *some) in each_read(reads, avals))
    least = min(place.slice.count for place in places_of(list(shapes), row_axes))
    if len({read.spec.dtype for read in reads}) > 1 or least * reads[0].spec.dtype.itemsize < SECTOR_BYTES:
        return False
    return all(
        supports_read(texels, *operands, spec=read.spec, batch=read.batch)
        and not read.spec.returns_texels(texels.dtype)
        for read, (texels, *operands) in each_read(reads, avals)
    )


def supports_splat(values: Any, *operands: Any, spec: ReadSpec, batch: int) -> bool:
    if not sizes_are_known(spec.axes):
        return False  # the windows of a kernel are cut along rows of known sizes
    sizes = flat_sizes(spec.axes)
    if values.dtype != jnp.float32 or values.shape[-1] > MAX_CHANNELS or len(sizes) > 1:
        return False
    textures = np.broadcast_shapes(*(a.shape[:batch] for a in (values, *operands)))
    samples = np.broadcast_shapes(values.shape[:-1], *spec.sample_shapes(operands))
    return kernel_fits([values, *operands], math.prod(textures) * sizes[0], math.prod(samples))


def supports_pullback(cotangent: Any, texels: Any, *operands: Any, spec: ReadSpec, wrt: Wrt, batch: int) -> bool:
    if wrt != (TEXELS,) and not kernel_decodes(texels, spec):
        return False
    return kernel_fits([texels], math.prod(texels.shape[:-1])) and supports_splat(
        cotangent, *operands, spec=spec, batch=batch
    )


def part_of(whole: Any, place: Place) -> Any:
    """The abstract values that lie there, if kernels load them as they load values of an array of their own."""
    lanes = Lanes.of(place.shape[-1])
    aligned = not lanes.aligned or place.slice.keeps_aligned(lanes.width)
    return jax.ShapeDtypeStruct(place.shape, whole.dtype) if aligned else None


def supports_part_splat(whole: Any, *operands: Any, place: Place, **params: Any) -> bool:
    values = part_of(whole, place)
    return values is not None and supports_splat(values, *operands, **params)


def supports_part_pullback(whole: Any, *operands: Any, place: Place, **params: Any) -> bool:
    values = part_of(whole, place)
    return values is not None and supports_pullback(values, *operands, **params)


def supports_edged_read(own: Any, before: Any, after: Any, *operands: Any, spec: ReadSpec, missing: float) -> bool:
    """Whether a thread knows from its coordinates which texels it needs, and stores what a read computes."""
    del missing
    alone = spec.num_reads == 1 and not spec.summed_axes and not spec.returns_texels(own.dtype)
    texels = Edged(own, before, after)
    return alone and supports_read(texels, *operands, spec=spec, batch=0)


def supports_edged_splat(values: Any, *operands: Any, spec: ReadSpec, reach: int) -> bool:
    return (
        reach > 0
        and not spec.deterministic
        and spec.num_reads == 1
        and not spec.summed_axes
        and supports_splat(values, *operands, spec=spec, batch=0)
    )


def supports_edged_pullback(
    cotangent: Any, own: Any, before: Any, after: Any, *operands: Any, spec: ReadSpec, wrt: Wrt
) -> bool:
    texels = Edged(own, before, after)
    if not supports_edged_splat(cotangent, *operands, spec=spec, reach=before.shape[0]):
        return False
    return supports_pullback(cotangent, texels, *operands, spec=spec, wrt=wrt, batch=0)


def supports_convolve(values: Any, *, weights: tuple[float, ...], axis: int, full: bool) -> bool:
    del full
    row = math.prod(values.shape[axis:]) + 4 * len(weights) * math.prod(values.shape[axis + 1 :])
    return values.dtype == jnp.float32 and row < COUNT_LIMIT and kernel_fits([values], 1)
