"""Boxes of elements in CUDA arrays: what a copy with offsets takes and puts."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from ...modes import TextureKind
from ..errors import INVALID_VALUE, CudaError, check_type
from .arrays import Array
from .bit_casts import reinterpreted
from .byte_regions import Region, put, take
from .pitched_memory import Pos


class Box(NamedTuple):
    """A box in the rows of an array, in numbers along x: where it starts, and how much there is of each."""

    z: int
    y: int
    x: int
    depth: int
    height: int
    width: int

    @property
    def slices(self) -> tuple[slice, slice, slice]:
        starts, counts = self[:3], self[3:]
        z, y, x = (slice(start, start + count) for start, count in zip(starts, counts))
        return z, y, x


def check_array(function: str, argument: str, array: Any, level: Any) -> None:
    check_type(function, argument, array, Array, "mallocArray makes one")
    if level is not None:
        raise CudaError(INVALID_VALUE, f"{function}: level is {level!r}, but {argument} has no levels; leave it out.")


def rows_of(array: Array) -> jax.Array:
    """The texels as (slices, rows, numbers)."""
    texels = array.texels
    height = texels.shape[-3] if array.extent.height else 1
    return texels.reshape(-1, height, texels.shape[-2] * texels.shape[-1])


def array_box(function: str, argument: str, array: Array, pos: Pos, width: int, height: int, depth: int) -> Box:
    """A box of an array, `width` in bytes."""
    elements, channels = width // array.desc.texel_bytes, array.desc.channels
    sizes = [max(n, 1) for n in array.extent]
    counts = (elements, height, depth)
    if min(*pos, *counts) < 0 or any(start + count > n for start, count, n in zip(pos, counts, sizes)):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: {argument} is copied from {tuple(pos)} on, {counts} elements, expected a region within its "
            f"{tuple(sizes)}.",
        )
    return Box(pos.z, pos.y, pos.x * channels, depth, height, elements * channels)


def rows_box(function: str, argument: str, array: Array, wOffset: int, hOffset: int, width: int, height: int) -> Box:
    """A box of a 1D or 2D array, `wOffset` and `width` in bytes."""
    check_array(function, argument, array, None)
    size = array.desc.texel_bytes
    if array.kind not in (TextureKind.TEXTURE1D, TextureKind.TEXTURE2D):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: {argument} is of kind {array.kind.value!r}, expected a 1D or 2D array; use memcpy3D.",
        )
    if wOffset % size or width % size:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: wOffset and width are {wOffset} and {width}, expected multiples of the {size} bytes of an "
            f"element.",
        )
    return array_box(function, argument, array, Pos(wOffset // size, hOffset), width, height, 1)


@functools.partial(jax.jit, static_argnames=("function", "source", "target"))
def copied(src: Any, dst: Any, *, function: str, source: Box | Region, target: Box | Region) -> Any:
    """`dst` with what stands in a part of `src` in a part of it: a `Box` of an `Array`, or a `Region` of memory."""
    stored = dst.texels if isinstance(dst, Array) else dst
    if isinstance(source, Box):
        numbers = rows_of(src)[source.slices]
    else:
        same = isinstance(dst, Array) or (src.dtype == stored.dtype and source.width % src.dtype.itemsize == 0)
        numbers = take(function, "src", src, source, np.dtype(stored.dtype) if same else np.dtype(np.uint8))
    if isinstance(target, Region):
        return put(function, "dst", stored, target, numbers)
    rows = rows_of(dst).at[target.slices].set(reinterpreted(numbers, np.dtype(stored.dtype)))
    return dataclasses.replace(dst, texels=rows.reshape(stored.shape))
