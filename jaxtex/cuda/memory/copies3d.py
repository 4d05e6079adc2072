"""Copies of boxes between arrays and memory of up to three dimensions."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..enums import MemcpyKind
from ..errors import INVALID_VALUE, CudaError
from .array_boxes import Box, array_box, check_array, copied
from .arrays import Array, Extent
from .byte_regions import Region
from .pitched_memory import PitchedPtr, Pos, check_kind


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
    kind: int = MemcpyKind.Default


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
    check_kind(name, parms.kind)
    src, src_pos = one_of(name, "src", parms.srcArray, parms.srcPtr), Pos(*parms.srcPos)
    dst, dst_pos = one_of(name, "dst", parms.dstArray, parms.dstPtr), Pos(*parms.dstPos)
    width, height, depth = parms.extent
    if min(parms.extent) < 1:
        raise CudaError(
            INVALID_VALUE,
            f"{name}: parms.extent is {tuple(parms.extent)}, expected at least 1 along every axis, also along those "
            f"that an array lacks.",
        )
    sizes = {end.desc.texel_bytes for end in (src, dst) if isinstance(end, Array)}
    if len(sizes) > 1:
        raise CudaError(
            INVALID_VALUE,
            f"{name}: the arrays have elements of {' and '.join(map(str, sorted(sizes)))} bytes, expected equal ones.",
        )
    width *= sizes.pop() if sizes else 1

    def part(argument: str, end: Array | PitchedPtr, pos: Pos) -> Box | Region:
        if isinstance(end, Array):
            return array_box(name, argument, end, pos, width, height, depth)
        slice_pitch = end.pitch * end.ysize
        offset = pos.x + pos.y * end.pitch + pos.z * slice_pitch
        return Region(offset, end.pitch, slice_pitch, width, height, depth)

    source, target = part("srcArray", src, src_pos), part("dstArray", dst, dst_pos)
    src, dst = (end if isinstance(end, Array) else jnp.asarray(end.ptr) for end in (src, dst))
    return copied(src, dst, function=name, source=source, target=target)


def one_of(function: str, end: str, array: Array | None, pointer: PitchedPtr | None) -> Array | PitchedPtr:
    """The source, or the destination, of a copy."""
    if array is not None and pointer is None:
        check_array(function, f"parms.{end}Array", array, None)
        return array
    if pointer is not None and array is None:
        return PitchedPtr(*pointer)
    given = "none" if array is None else "both"
    raise CudaError(
        INVALID_VALUE, f"{function}: of parms.{end}Array and parms.{end}Ptr {given} is given, expected exactly one."
    )
