"""Copies of boxes of up to three dimensions between arrays and pitched memory."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import dataclasses
from typing import Any

import jax

from ..._blocks.formats import blocks_along
from ..._checks.dropped import mention_dropped, watch
from ..enums import Error, MemcpyKind
from ..errors import CudaError, check_type, invalid
from ..functions import cuda_function
from ..structs import Struct, struct
from .arrays import Array, Extent, check_array, will_be_written
from .numbers import as_destination, as_memory, counts
from .pitched_memory import PITCHED_REMEDY, PitchedPtr, Pos, region_of
from .regions import Box, Region, box_at, check_memcpy_kind, check_sizes, copy_part


@struct("srcArray", "srcPtr", "dstArray", "dstPtr")
class Memcpy3DParms(Struct):
    """The arguments of `memcpy3D`: `cudaMemcpy3DParms`. ``Memcpy3DParms()`` is a zeroed struct.

    Exactly one of `srcArray` and `srcPtr` is given, and exactly one of `dstArray` and `dstPtr`. It is a pytree whose
    children are these four; the other fields are static.

    Args:
        srcArray, dstArray: an `Array`.
        srcPtr, dstPtr: a `PitchedPtr`.
        srcPos, dstPos: the `Pos` at which the box starts.
        extent: the size of the box, an `Extent`, 1 along an axis that an array lacks. The width counts elements if the
            source or the destination is an array, else bytes. If the size is 0 along an axis, nothing is copied. For
            an array of a block-compressed format, `extent` and its `Pos` count texels, and whole blocks are copied.
        kind: a `MemcpyKind`; it has no effect.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
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
    srcPos: Pos = dataclasses.field(default_factory=Pos)
    srcPtr: PitchedPtr | None = dataclasses.field(default_factory=PitchedPtr)
    dstArray: Array | None = None
    dstPos: Pos = dataclasses.field(default_factory=Pos)
    dstPtr: PitchedPtr | None = dataclasses.field(default_factory=PitchedPtr)
    extent: Extent = dataclasses.field(default_factory=Extent)
    kind: MemcpyKind | int = MemcpyKind.Default

    def _converted(self, name: str, value: Any) -> Any:
        """The value that is stored for a field: tuples are accepted in place of structs."""
        kinds = {"srcPos": Pos, "dstPos": Pos, "extent": Extent, "srcPtr": PitchedPtr, "dstPtr": PitchedPtr}
        return kinds[name](*value) if name in kinds and isinstance(value, tuple | list) else value


@cuda_function
def memcpy3D(p: Memcpy3DParms) -> Array | jax.Array:
    """Returns the destination with a box copied from the source: `cudaMemcpy3D`.

    Args:
        p: the source, the destination and the box, a `Memcpy3DParms`.

    Returns:
        A new `Array` if the destination is one. If it is a `PitchedPtr`, a new array of the shape and the dtype of its
        memory.

    Gradients:
        To the source and the destination, if both have the same dtype, and pitches are multiples of its size. To
        differentiate other copies is an error.

    Raises:
        CudaError: cudaErrorInvalidValue, if there is not exactly one source and one destination, if a box does not lie
            within its array or memory, or if two arrays differ in the size of an element; cudaErrorInvalidPitchValue,
            if a row is longer than a pitch; cudaErrorInvalidMemcpyDirection, if ``p.kind`` is not a `MemcpyKind`.
        TypeError: if a gradient passes through a copy between memory of different dtypes.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 3, 2)
        >>> array = cuda.memcpyToArray(array, jnp.arange(6.0).reshape(2, 3))
        >>> memory = cuda.PitchedPtr(jnp.zeros((1, 2)), 8, 2, 1)
        >>> cuda.memcpy3D(cuda.Memcpy3DParms(array, cuda.Pos(1, 1), dstPtr=memory, extent=cuda.Extent(2, 1, 1)))
        Array([[4., 5.]], dtype=float32)
    """
    name = "memcpy3D"
    p = check_type(name, "p", p, Memcpy3DParms, "Memcpy3DParms() makes one")
    check_memcpy_kind(name, p.kind)
    src = exactly_one(name, "src", p.srcArray, p.srcPtr)
    dst = exactly_one(name, "dst", p.dstArray, p.dstPtr)
    width, height, depth = counts(name, **named("p.extent", p.extent))
    size = check_sizes(name, src, dst)
    sides = {end.desc.block_side for end in (src, dst) if isinstance(end, Array)}
    if len(sides) > 1:
        raise CudaError(
            Error.NotSupported,
            f"{name}: p.srcArray and p.dstArray have the formats {src} and {dst}, expected blocks in both or in none; "
            f"copy by way of memory.",
        )
    width, height = (blocks_along(n, max(sides, default=1)) for n in (width, height))
    extent = (width * size, height, depth)
    source, target = part_of(name, "src", src, p.srcPos, extent), part_of(name, "dst", dst, p.dstPos, extent)
    mention_dropped(name, src)
    values = src if isinstance(src, Array) else as_memory(src.ptr)
    names = ("p.srcPtr", "p.dstPtr")
    if isinstance(dst, Array):
        will_be_written(name, dst)
        return watch(name, dst, copy_part(values, dst, function=name, source=source, target=target, names=names))
    memory = as_destination(name, "p.dstPtr", dst.ptr)
    return copy_part(values, memory, function=name, source=source, target=target, names=names)


def part_of(
    function: str, end: str, holder: Array | PitchedPtr, pos: Pos, extent: tuple[int, int, int]
) -> Box | Region:
    """The part of the source or of the destination that is copied. The width of `extent` is in bytes."""
    x, y, z = counts(function, **named(f"p.{end}Pos", pos))
    if isinstance(holder, Array):
        x, y = x // holder.desc.block_side, y // holder.desc.block_side
        return box_at(function, f"p.{end}Array", holder, (x, y, z), *extent)
    return region_of(function, f"p.{end}Ptr", holder, (x, y, z), extent)


def named(argument: str, struct: Pos | Extent) -> dict[str, int]:
    """The fields of a struct by the names that a caller gives them."""
    return {f"{argument}.{field.name}": getattr(struct, field.name) for field in dataclasses.fields(struct)}


def exactly_one(function: str, end: str, array: Array | None, pointer: PitchedPtr | None) -> Array | PitchedPtr:
    """The source or the destination of a copy, which is an array or pitched memory."""
    pointer = None if pointer is None else check_type(function, f"p.{end}Ptr", pointer, PitchedPtr, PITCHED_REMEDY)
    pointer = None if pointer is None or pointer.ptr is None else pointer
    if array is not None and pointer is None:
        return check_array(function, f"p.{end}Array", array, None)
    if pointer is not None and array is None:
        return pointer
    given = "none" if array is None else "each"
    raise invalid(f"{function}: {given} of p.{end}Array and p.{end}Ptr is given, expected exactly one.")
