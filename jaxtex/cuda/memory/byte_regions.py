"""Boxes of bytes in memory: what a copy with pitches and offsets takes and puts.

A box is slices of rows of bytes. Row r of slice s starts at ``offset + s * slice_pitch + r * pitch``. Memory is any
array, taken as its bytes in C order; where all numbers of a box are multiples of the size of its elements, elements
are moved, and gradients pass.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import INVALID_PITCH_VALUE, INVALID_VALUE, CudaError
from .bit_casts import reinterpreted


class Region(NamedTuple):
    """A box, in bytes: where it starts, how far rows and slices are apart, and how much there is of each."""

    offset: int
    pitch: int
    slice_pitch: int
    width: int
    height: int
    depth: int

    @property
    def end(self) -> int:
        """One past its last byte."""
        return self.offset + (self.depth - 1) * self.slice_pitch + (self.height - 1) * self.pitch + self.width

    def in_units(self, size: int) -> "Region":
        """The same in units of `size` bytes."""
        offset, pitch, slice_pitch, width, height, depth = self
        return Region(offset // size, pitch // size, slice_pitch // size, width // size, height, depth)

    def fits_units(self, size: int) -> bool:
        return not any(n % size for n in (self.offset, self.pitch, self.slice_pitch, self.width))


def check_region(function: str, argument: str, region: Region, size: int) -> None:
    """Refuses rows longer than their pitch (12), and boxes that leave the memory of `size` bytes (1)."""
    if region.width > region.pitch and (region.height > 1 or region.depth > 1):
        raise CudaError(
            INVALID_PITCH_VALUE,
            f"{function}: {argument} has a pitch of {region.pitch} bytes, expected at least the width, {region.width}.",
        )
    if min(region) < 0 or region.end > size:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: the region of {argument} is {region}, expected one within its {size} bytes.",
        )


def indices(region: Region) -> np.ndarray:
    """The flat index of each unit of a box, (depth, height, width), known while tracing."""
    s, r, x = np.ogrid[: region.depth, : region.height, : region.width]
    return region.offset + s * region.slice_pitch + r * region.pitch + x


def in_memory(function: str, argument: str, memory: jax.Array, region: Region) -> tuple[jax.Array, Region]:
    """The memory as one row of elements, or of bytes where elements do not do, and the region in them."""
    check_region(function, argument, region, memory.size * memory.dtype.itemsize)
    flat = memory.reshape(-1)
    if not region.fits_units(flat.dtype.itemsize):
        flat = reinterpreted(flat, np.dtype(np.uint8))
    return flat, region.in_units(flat.dtype.itemsize)


def take(function: str, argument: str, memory: jax.Array, region: Region, dtype: np.dtype) -> jax.Array:
    """The numbers of `dtype` in a box, (depth, height, count)."""
    flat, region = in_memory(function, argument, memory, region)
    if region.pitch * region.height == region.slice_pitch or region.depth == 1:  # evenly spaced rows are a slice
        rows, count = region.depth * region.height, max(region.pitch, region.width)
        flat = flat[region.offset : region.offset + rows * count]
        flat = jnp.pad(flat, (0, rows * count - flat.size)).reshape(rows, count)[:, : region.width]
        numbers = flat.reshape(region.depth, region.height, region.width)
    else:
        numbers = flat[indices(region)]
    return reinterpreted(numbers, dtype)


def put(function: str, argument: str, memory: jax.Array, region: Region, numbers: jax.Array) -> jax.Array:
    """The memory with numbers, (depth, height, count), in a box."""
    flat, region = in_memory(function, argument, memory, region)
    flat = flat.at[indices(region)].set(reinterpreted(numbers, np.dtype(flat.dtype)), unique_indices=True)
    return reinterpreted(flat, np.dtype(memory.dtype)).reshape(memory.shape)
