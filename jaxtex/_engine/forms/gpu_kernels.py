"""The GPU kernels that `choice` uses, and the conditions under which each is supported."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..._jax.shapes import broadcast_shapes
from ..._tables.storage_formats import Decoding, is_narrow
from ..cuda.adjoint_kernel import adjoint
from ..cuda.build.launch import target_capability, without_waiting
from ..cuda.build.nvrtc import CompilationFailed, CompilerUnavailable
from ..cuda.filters.convolution_kernel import convolve
from ..cuda.filters.mip_kernel import computed_levels, mip_chain
from ..cuda.fold_adjoint import fold_pullback, shared_by_fold, supports_texels
from ..cuda.programs.program_kernel import Tiles, fused_adjoint, fused_samples, unit_read
from ..cuda.read.read_kernel import WIDTHS, concatenated_read, fold, read, read_derivatives, result_shape
from ..cuda.samples.sample_tiles import Lanes, samples_shape
from ..cuda.trace.elementwise import C_TYPES
from ..cuda.trace.statements import PrimitiveOfCaller, RefusedProgram, UnknownPrimitive
from ..describe.axis import sizes_are_known
from ..describe.folds import Fold
from ..describe.program import Program, equations
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import WHOLE, ConcatenatedRead, HaloStorage, Shaped, Slice, Storage, each_part, slices_of
from ..describe.unit import UnitRead
from ..walk.texel_order import flat_sizes

# The kernels, and the errors that say why a kernel cannot be made.
__all__ = [
    "CompilationFailed",
    "CompilerUnavailable",
    "PrimitiveOfCaller",
    "RefusedProgram",
    "UnknownPrimitive",
    "adjoint",
    "concatenated_read",
    "convolve",
    "fold",
    "fold_pullback",
    "fused_adjoint",
    "fused_samples",
    "mip_chain",
    "read",
    "read_derivatives",
    "unit_read",
    "without_waiting",
]

LEAST_COMPUTE_CAPABILITY = (8, 0)
# Samples and texels are numbered in int32, with room for the padding of the last tile; elements are not.
COUNT_LIMIT = 2**31 - 2**16
# A thread computes at least one channel, and a block has at most 1,024 threads.
MAX_CHANNELS = 1024
# The most channels of a fold whose channels depend on each other, which one thread takes.
MAX_JOINT_CHANNELS = 16
# GPUs write memory in sectors of so many bytes. If several kernels fill a sector, each of them writes it.
SECTOR_BYTES = 32


def can_compile_kernels() -> bool:
    """Whether the kernels run on the GPUs of the program that is being lowered."""
    capability = target_capability()
    return capability is not None and capability >= LEAST_COMPUTE_CAPABILITY


# Conditions of the kernels


def kernel_fits(arrays: Sequence[Shaped], *counts: int) -> bool:
    """Whether kernels can be compiled, no array is empty or has elements above 32 bits, and counts fit in int32.

    Args:
        arrays: the arrays that the kernel reads.
        counts: the counts of samples and texels.
    """
    if not can_compile_kernels() or any(a.dtype.itemsize > 4 or 0 in a.shape for a in arrays):
        return False
    return min(counts) > 0 and max(counts) < COUNT_LIMIT


def kernel_decodes(texels: Shaped, spec: ReadSpec) -> bool:
    """Whether a kernel can load and decode texels. sRGB needs all channels in one thread, which skips alpha."""
    most = WIDTHS[0] if spec.decoding is Decoding.SRGB else MAX_CHANNELS
    return texels.shape[-1] <= most and is_known(texels.dtype)


def is_known(dtype: np.dtype) -> bool:
    """Whether a dtype has a type in CUDA C."""
    return dtype.name in C_TYPES


def supports_read(texels: Shaped, *args: Shaped, spec: ReadSpec, batch: int, storage: Storage = WHOLE) -> bool:
    """Whether the read kernel supports a call.

    With a halo, the coordinates alone must tell a thread which texels it needs, and it must store computed values.
    """
    _, operands = spec.color_and_operands(args)
    dtypes = spec.dtype, *(a.dtype for a in operands)
    if spec.several and spec.summed_axes:
        return False
    # With a halo, only plain reads at coordinates have a second kernel for the edges.
    if isinstance(storage, HaloStorage) and (
        spec.several or spec.summed_axes or spec.has_color or spec.returns_texels(texels.dtype)
    ):
        return False
    # Kernels take no dtypes that C lacks, and no numbers of more than 32 bits.
    if not kernel_decodes(texels, spec) or spec.dtype.itemsize > 4 or not all(map(is_known, dtypes)):
        return False
    shapes = spec.sample_shapes(operands)
    samples = samples_shape(texels.shape[:batch], shapes)
    if spec.is_single and spec.takes_coords:
        # XLA fuses a gather with what is around it. On an H100, copies of 32-bit channels at x (1, W) and y (H, 1) take
        # 0.62 to 0.65 of the time; reads alone, of these or of one channel anywhere, take 0.9 to 1.05.
        on_grid = all(math.prod(shape[batch:]) < math.prod(samples[batch:]) for shape in shapes)
        if texels.shape[-1] == 1 or (on_grid and texels.dtype.itemsize == 4):
            return False
    return kernel_fits([texels, *operands], math.prod(samples))


supports_read_derivatives = supports_read


def supports_fold(texels: Shaped, *operands: Shaped, spec: ReadSpec, fold: Fold, batch: int) -> bool:
    """Whether the read kernel supports a fold; a thread may have to take all channels."""
    fits = texels.shape[-1] <= MAX_JOINT_CHANNELS or not fold.joint
    return fits and supports_read(texels, *operands, spec=spec, batch=batch)


def supports_fold_pullback(
    cotangent: Shaped, texels: Shaped, *operands: Shaped, spec: ReadSpec, fold: Fold, wrt: Wrt, batch: int
) -> bool:
    """Whether threads that have all samples of a fold pull its cotangents."""
    in_sums, own = {"spec": spec.with_dtype(spec.sums), "batch": batch}, tuple(k for k in wrt if k != TEXELS)
    alike = cotangent.dtype == spec.sums and supports_fold(texels, *operands, fold=fold, **in_sums)
    if TEXELS in wrt:
        adjoint = supports_adjoint(cotangent, None, *operands, wrt=(TEXELS,), **in_sums)
        alike = alike and adjoint and supports_texels(spec, operands, batch, fold)
    return alike and shared_by_fold(texels, operands, wrt=own, **in_sums)


def supports_concatenated_read(*avals: Shaped, parts: Sequence[ConcatenatedRead], row_axes: int) -> bool:
    """Whether every part is a read that the kernel supports and computes, of one dtype, and fills whole sectors."""
    reads = [(part, texels, operands) for part, _, texels, operands in each_part(parts, avals)]
    shapes = [result_shape(t, operands, part.spec, t.shape[: part.batch]) for part, t, operands in reads]
    least = min(place.count for place in slices_of(shapes, row_axes))
    if len({part.spec.dtype for part in parts}) > 1 or least * parts[0].spec.dtype.itemsize < SECTOR_BYTES:
        return False
    return all(
        part.wrt is None
        and supports_read(texels, *operands, spec=part.spec, batch=part.batch)
        and not part.spec.returns_texels(texels.dtype)
        for part, texels, operands in reads
    )


def supports_adjoint(
    cotangent: Shaped,
    texels: Shaped | None,
    *operands: Shaped,
    spec: ReadSpec,
    wrt: Wrt,
    batch: int,
    storage: Storage = WHOLE,
    **_: Any,
) -> bool:
    """Whether the adjoint kernels support a call; `texels` is `None` if they are not read."""
    if not loads_values(cotangent, storage):
        return False
    # With a halo, each sample is one read whose texels are all here.
    if isinstance(storage, HaloStorage) and (
        storage.reach == 0 or spec.several or spec.summed_axes or spec.deterministic
    ):
        return False
    # Texels are read for the cotangents of operands alone.
    if texels is not None and not (
        (wrt == (TEXELS,) or kernel_decodes(texels, spec)) and kernel_fits([texels], math.prod(texels.shape[:-1]))
    ):
        return False
    if not sizes_are_known(spec.axes):
        return False  # the windows of the scatter kernel need known sizes
    # Float32 is what atomic additions take; hashed levels have several flat indices.
    sizes = flat_sizes(spec.axes)
    if cotangent.dtype != jnp.float32 and not is_narrow(cotangent.dtype):
        return False
    if cotangent.shape[-1] > MAX_CHANNELS or len(sizes) > 1:
        return False
    # Places in memory are counted in 32 bits.
    textures = broadcast_shapes(*(a.shape[:batch] for a in (cotangent, *operands)))
    samples = broadcast_shapes(cotangent.shape[:-1], *spec.sample_shapes(operands))
    return kernel_fits([cotangent, *operands], math.prod(textures) * sizes[0], math.prod(samples))


def loads_values(values: Shaped, storage: Storage) -> bool:
    """Whether kernels can load `values`: vector loads of a slice must be aligned as in a whole array."""
    if not isinstance(storage, Slice):
        return True
    lanes = Lanes.of(values.shape[-1])
    return not lanes.aligned or storage.keeps_aligned(lanes.width)


def supports_convolve(values: Shaped, *, weights: tuple[float, ...], axis: int, full: bool) -> bool:
    del full
    row = math.prod(values.shape[axis:]) + 4 * len(weights) * math.prod(values.shape[axis + 1 :])
    return values.dtype == jnp.float32 and row < COUNT_LIMIT and kernel_fits([values], 1)


def supports_mip_chain(values: Shaped, *, shape: tuple[int, ...], ndim: int, num_levels: int, adjoint: bool) -> bool:
    """Whether a first level can be made by a kernel, which halves even sizes."""
    del adjoint
    fits = is_known(values.dtype) and kernel_fits([values], math.prod(values.shape[:-1]))
    return fits and computed_levels(shape, ndim, num_levels, 1).count > 0


def supports_fused_samples(*operands: Shaped, sizes: tuple[int, ...], **_: Any) -> bool:
    return can_compile_kernels() and math.prod(sizes) > 0 and Tiles.of(sizes).num_blocks < COUNT_LIMIT


def supports_fused_adjoint(*args: Shaped, program: Program, sizes: tuple[int, ...], **_: Any) -> bool:
    """Whether a kernel may add to texels in any order, and in float32."""
    specs = [eqn.params["spec"] for eqn in equations(program.closed.jaxpr) if "spec" in eqn.params]
    ordered = any(spec.deterministic or spec.deterministic_on_gpus for spec in specs)
    return not ordered and supports_fused_samples(*args, sizes=sizes)


def supports_unit_read(handle: Shaped, *operands: Shaped, read: UnitRead) -> bool:
    sizes = read.type_of(*operands[: read.num_numbers]).shape[:-1]
    return supports_fused_samples(handle, *operands, sizes=sizes)
