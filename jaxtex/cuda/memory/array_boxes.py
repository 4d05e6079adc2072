"""Boxes of elements in CUDA arrays: what a copy with positions reads and writes."""

# pyright: strict

import dataclasses
from typing import NamedTuple, TypeVar

import jax
import numpy as np

from ..._jax.calls import typed_jit
from ...modes import TextureKind
from ..errors import INVALID_VALUE, CudaError, check_type
from .arrays import Array
from .bit_casts import bytes_as
from .byte_regions import BYTE, Region, read_region, write_region
from .pitched_memory import Pos, whole_numbers

Destination = TypeVar("Destination", Array, jax.Array)


class Box(NamedTuple):
    """A box in an array whose texels are (slices, rows, numbers): its first index and its size along each axis."""

    z: int
    y: int
    x: int
    depth: int
    height: int
    width: int

    @property
    def is_empty(self) -> bool:
        """Whether it has no elements."""
        return min(self.depth, self.height, self.width) == 0

    @property
    def slices(self) -> tuple[slice, slice, slice]:
        """The box as an index."""
        z, y, x = (slice(start, start + count) for start, count in zip(self[:3], self[3:]))
        return z, y, x


def check_array(function: str, argument: str, array: object, level: object) -> Array:
    """`array`, which must be an `Array`, and so has no level to choose."""
    checked = check_type(function, argument, array, Array, "mallocArray makes one")
    if level is not None:
        raise CudaError(INVALID_VALUE, f"{function}: level is {level!r}, but {argument} has no levels; leave it out.")
    return checked


def texel_rows(array: Array) -> jax.Array:
    """The texels of an array as (slices, rows, numbers)."""
    texels = array.texels
    height = texels.shape[-3] if array.extent.height else 1
    return texels.reshape(-1, height, texels.shape[-2] * texels.shape[-1])


def box_at(function: str, argument: str, array: Array, pos: Pos, width: int, height: int, depth: int) -> Box:
    """The box of an array at `pos`, with its `width` in bytes."""
    elements, channels = width // array.desc.texel_bytes, array.desc.channels
    sizes = tuple(max(n, 1) for n in array.extent)
    counts = (elements, height, depth)
    if min(*pos, *counts) < 0 or any(start + count > n for start, count, n in zip(pos, counts, sizes)):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: the box in {argument} starts at {tuple(pos)} and has {counts} elements, expected a box "
            f"within the {sizes} elements of the array.",
        )
    return Box(pos.z, pos.y, pos.x * channels, depth, height, elements * channels)


def box_of_rows(function: str, argument: str, array: Array, wOffset: int, hOffset: int, width: int, height: int) -> Box:
    """A box of a 1D or 2D array, with `wOffset` and `width` in bytes."""
    array = check_array(function, argument, array, None)
    wOffset, hOffset, width, height = whole_numbers(
        function, wOffset=wOffset, hOffset=hOffset, width=width, height=height
    )
    size = array.desc.texel_bytes
    if array.kind not in (TextureKind.TEXTURE1D, TextureKind.TEXTURE2D):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: {argument} is of kind {array.kind.value!r}, expected a 1D or 2D array; use memcpy3D.",
        )
    if wOffset % size or width % size:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: wOffset and width are {wOffset} and {width} bytes, expected multiples of the {size} bytes of "
            f"an element.",
        )
    return box_at(function, argument, array, Pos(wOffset // size, hOffset), width, height, 1)


@typed_jit("function", "source", "target", "names", inline=False)
def copy_part(
    src: Array | jax.Array,
    dst: Destination,
    *,
    function: str,
    source: Box | Region,
    target: Box | Region,
    names: tuple[str, str] = ("src", "dst"),
) -> Destination:
    """`dst` with a part of `src` in a part of it. A `Box` is a part of an `Array`, a `Region` one of plain memory.

    `names` are those of plain memory in errors.
    """
    if source.is_empty or target.is_empty:
        return dst
    stored = dst.texels if isinstance(dst, Array) else dst
    dtype = np.dtype(stored.dtype)
    if isinstance(src, Array):
        assert isinstance(source, Box)
        numbers = texel_rows(src)[source.slices]
    else:
        assert isinstance(source, Region)
        whole = isinstance(dst, Array) or (src.dtype == dtype and source.width % dtype.itemsize == 0)
        numbers = read_region(function, names[0], src, source, dtype if whole else BYTE)
    if isinstance(dst, Array):
        assert isinstance(target, Box)
        rows = texel_rows(dst).at[target.slices].set(bytes_as(function, numbers, dtype))
        return dataclasses.replace(dst, texels=rows.reshape(stored.shape))
    assert isinstance(target, Region)
    return write_region(function, names[1], stored, target, numbers)
