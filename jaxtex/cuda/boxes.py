"""Boxes of elements in CUDA arrays: what a copy with offsets takes and puts."""

import dataclasses
from typing import Any

import jax
import numpy as np

from ..modes import TextureKind
from .arrays import Array
from .bits import reinterpreted
from .errors import INVALID_VALUE, CudaError
from .pitched import Pos


def check_array(function: str, argument: str, array: Any, level: Any) -> None:
    if not isinstance(array, Array):
        raise TypeError(
            f"{function}: {argument} is a {type(array).__name__}, expected an Array or a MipmappedArray; mallocArray "
            f"makes one."
        )
    if level is not None:
        raise CudaError(INVALID_VALUE, f"{function}: level is {level!r}, but {argument} has no levels; leave it out.")


def in_elements(function: str, array: Array, offset: int, width: int) -> tuple[int, int]:
    """Bytes along x of an array as elements."""
    check_array(function, "array", array, None)
    size = array.desc.texel_bytes
    if array.kind not in (TextureKind.TEXTURE1D, TextureKind.TEXTURE2D):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: the array is of kind {array.kind.value!r}, expected a 1D or 2D array; use memcpy3D.",
        )
    if offset % size or width % size:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: wOffset and width are {offset} and {width}, expected multiples of the {size} bytes of an "
            f"element.",
        )
    return offset // size, width // size


def rows_of(array: Array) -> jax.Array:
    """The texels as (slices, rows, numbers)."""
    texels = array.texels
    height = texels.shape[-3] if array.extent.height else 1
    return texels.reshape(-1, height, texels.shape[-2] * texels.shape[-1])


def array_box(
    function: str, argument: str, array: Array, pos: Pos, width: int, height: int, depth: int
) -> tuple[slice, ...]:
    """A box of an array, `width` in bytes, as slices of its rows."""
    elements, channels = width // array.desc.texel_bytes, array.desc.channels
    sizes = [max(n, 1) for n in array.extent]
    counts = (elements, height, depth)
    if min(*pos, *counts) < 0 or any(start + count > n for start, count, n in zip(pos, counts, sizes)):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: {argument} is copied from {tuple(pos)} on, {counts} elements, expected a region within its "
            f"{tuple(sizes)}.",
        )
    x = slice(pos.x * channels, (pos.x + elements) * channels)
    return slice(pos.z, pos.z + depth), slice(pos.y, pos.y + height), x


def with_box(array: Array, box: tuple[slice, ...], numbers: jax.Array) -> Array:
    """The array with numbers, of any dtype, in a box."""
    texels = rows_of(array).at[box].set(reinterpreted(numbers, np.dtype(array.texels.dtype)))
    return dataclasses.replace(array, texels=texels.reshape(array.texels.shape))
