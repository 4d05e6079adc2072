# pyright: strict, reportUnknownMemberType=false

"""Copies of boxes between arrays and memory of up to three dimensions."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..enums import MemcpyKind
from ..errors import INVALID_VALUE, CudaError
from .array_boxes import Box, box_at, check_array, copy_part
from .arrays import Array, Extent
from .byte_regions import Region
from .pitched_memory import PitchedPtr, Pos, check_memcpy_kind


class Memcpy3DParms(NamedTuple):
    """What `memcpy3D` copies: `cudaMemcpy3DParms`. Exactly one source and one destination.

    Args:
        srcArray, dstArray: an `Array`.
        srcPtr, dstPtr: a `PitchedPtr`.
        srcPos, dstPos: a `Pos` in each.
        extent: the `Extent` that is copied: its width in elements if an array takes part, else in bytes. Of an array
            without rows or slices the height or depth is 1.
        kind: a `MemcpyKind`; it makes no difference.

    Source: CUDA Runtime API, `cudaMemcpy3DParms`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.malloc3DArray(cuda.createChannelDesc("float"), cuda.Extent(2, 2, 2))
        >>> volume = cuda.PitchedPtr(jnp.arange(8.0), 8, 2, 2)
        >>> parms = cuda.Memcpy3DParms(srcPtr=volume, dstArray=array, extent=cuda.Extent(2, 2, 1))
        >>> cuda.memcpy3D(parms).texels[..., 0]
        Array([[[0., 1.],
                [2., 3.]],
        <BLANKLINE>
               [[0., 0.],
                [0., 0.]]], dtype=float32)
    """

    srcArray: Array | None = None
    srcPos: Pos = Pos()
    srcPtr: PitchedPtr | None = None
    dstArray: Array | None = None
    dstPos: Pos = Pos()
    dstPtr: PitchedPtr | None = None
    extent: Extent = Extent(0, 0, 0)
    kind: MemcpyKind | int = MemcpyKind.Default


def memcpy3D(parms: Memcpy3DParms) -> Array | jax.Array:
    """Returns the destination with a box of the source in it: `cudaMemcpy3D`.

    Args:
        parms: a `Memcpy3DParms`.

    Returns:
        A new `Array`, or for a `PitchedPtr` a new array like its memory.

    Gradients: to both texels and memory, where the dtypes are the same.

    Raises:
        CudaError: cudaErrorInvalidValue, if there is not exactly one source and one destination, if a box leaves its
            object, or if two arrays differ in the size of their elements; cudaErrorInvalidPitchValue, if rows are
            longer than a pitch; cudaErrorInvalidMemcpyDirection, for an unknown kind.

    Source: CUDA Runtime API, `cudaMemcpy3D`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 3, 2)
        >>> array = cuda.memcpyToArray(array, jnp.arange(6.0).reshape(2, 3))
        >>> memory = cuda.PitchedPtr(jnp.zeros((1, 2)), 8, 2, 1)
        >>> cuda.memcpy3D(cuda.Memcpy3DParms(array, cuda.Pos(1, 1), dstPtr=memory, extent=cuda.Extent(2, 1, 1)))
        Array([[4., 5.]], dtype=float32)
    """
    name = "memcpy3D"
    check_memcpy_kind(name, parms.kind)
    src = exactly_one(name, "src", parms.srcArray, parms.srcPtr)
    dst = exactly_one(name, "dst", parms.dstArray, parms.dstPtr)
    extent = Extent(*parms.extent)
    if min(extent) < 1:
        raise CudaError(
            INVALID_VALUE,
            f"{name}: parms.extent is {tuple(extent)}, expected at least 1 along every axis, also along those that an "
            f"array lacks.",
        )
    sizes = {end.desc.texel_bytes for end in (src, dst) if isinstance(end, Array)}
    if len(sizes) > 1:
        raise CudaError(
            INVALID_VALUE,
            f"{name}: the arrays have elements of {' and '.join(map(str, sorted(sizes)))} bytes, expected equal ones.",
        )
    extent = extent._replace(width=extent.width * (sizes.pop() if sizes else 1))
    source = part_of(name, "parms.srcArray", src, parms.srcPos, extent)
    target = part_of(name, "parms.dstArray", dst, parms.dstPos, extent)
    values = src if isinstance(src, Array) else jnp.asarray(src.ptr)
    if isinstance(dst, Array):
        return copy_part(values, dst, function=name, source=source, target=target)
    return copy_part(values, jnp.asarray(dst.ptr), function=name, source=source, target=target)


def part_of(
    function: str, argument: str, end: Array | PitchedPtr, pos: tuple[int, int, int], extent: Extent
) -> Box | Region:
    """The part of a source or a destination that is copied. The width of `extent` is in bytes."""
    x, y, z = pos
    if isinstance(end, Array):
        return box_at(function, argument, end, Pos(x, y, z), *extent)
    slice_pitch = end.pitch * end.ysize
    return Region(x + y * end.pitch + z * slice_pitch, end.pitch, slice_pitch, *extent)


def exactly_one(function: str, end: str, array: Array | None, pointer: PitchedPtr | None) -> Array | PitchedPtr:
    """The source or the destination of a copy, of which the caller gives one form."""
    if array is not None and pointer is None:
        return check_array(function, f"parms.{end}Array", array, None)
    if pointer is not None and array is None:
        return PitchedPtr(*pointer)
    given = "none" if array is None else "both"
    raise CudaError(
        INVALID_VALUE, f"{function}: of parms.{end}Array and parms.{end}Ptr {given} is given, expected exactly one."
    )
