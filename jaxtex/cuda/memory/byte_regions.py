"""Regions of plain memory, in bytes: what a copy with pitches and offsets reads and writes.

A region is slices of rows of bytes. Row r of slice s starts at ``offset + s * slice_pitch + r * pitch``. Memory is an
array of any dtype, and its bytes are in C order. Where every number of a region is a multiple of the size of an
element, whole elements are moved, and gradients pass.
"""

# pyright: strict, reportUnknownMemberType=false

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import INVALID_PITCH_VALUE, INVALID_VALUE, CudaError
from .bit_casts import bytes_as

BYTE = np.dtype(np.uint8)


class Region(NamedTuple):
    """A region in bytes: its first byte, the steps from row to row and from slice to slice, and its size.

    None of the numbers is negative.
    """

    offset: int
    pitch: int
    slice_pitch: int
    width: int
    height: int
    depth: int

    @property
    def is_empty(self) -> bool:
        """Whether it has no bytes."""
        return min(self.width, self.height, self.depth) == 0

    @property
    def end(self) -> int:
        """The byte behind its last byte."""
        return self.offset + (self.depth - 1) * self.slice_pitch + (self.height - 1) * self.pitch + self.width

    def in_units(self, size: int) -> "Region":
        """The region in units of `size` bytes."""
        offset, pitch, slice_pitch, width, height, depth = self
        return Region(offset // size, pitch // size, slice_pitch // size, width // size, height, depth)

    def fits_units(self, size: int) -> bool:
        """Whether it consists of whole units of `size` bytes."""
        return not any(n % size for n in (self.offset, self.pitch, self.slice_pitch, self.width))


def check_region(function: str, argument: str, region: Region, size: int) -> None:
    """Refuses rows that are longer than their pitch (12), and regions outside a memory of `size` bytes (1)."""
    if region.width > region.pitch and (region.height > 1 or region.depth > 1):
        raise CudaError(
            INVALID_PITCH_VALUE,
            f"{function}: {argument} has a pitch of {region.pitch} bytes, expected at least the width of a row, "
            f"{region.width} bytes.",
        )
    if region.end > size:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: {argument} has {size} bytes, and the call needs {region.end}; pass smaller sizes, or more "
            f"memory.",
        )


def flat_indices(region: Region) -> np.ndarray:
    """The flat index of each unit of a region, (depth, height, width)."""
    s, r, x = np.ogrid[: region.depth, : region.height, : region.width]
    return region.offset + s * region.slice_pitch + r * region.pitch + x


def as_units(function: str, argument: str, memory: jax.Array, region: Region) -> tuple[jax.Array, Region]:
    """The memory as one row of elements, or of bytes if the region cuts elements, and the region in these units."""
    check_region(function, argument, region, memory.size * memory.dtype.itemsize)
    flat = memory.reshape(-1)
    if not region.fits_units(flat.dtype.itemsize):
        flat = bytes_as(function, flat, BYTE)
    return flat, region.in_units(flat.dtype.itemsize)


def read_region(function: str, argument: str, memory: jax.Array, region: Region, dtype: np.dtype) -> jax.Array:
    """The numbers of `dtype` in a region, (depth, height, count)."""
    flat, region = as_units(function, argument, memory, region)
    if region.pitch * region.height == region.slice_pitch or region.depth == 1:  # evenly spaced rows are a slice
        rows, count = region.depth * region.height, max(region.pitch, region.width)
        flat = flat[region.offset : region.offset + rows * count]
        flat = jnp.pad(flat, (0, rows * count - flat.size)).reshape(rows, count)[:, : region.width]
        numbers = flat.reshape(region.depth, region.height, region.width)
    else:
        numbers = flat[flat_indices(region)]
    return bytes_as(function, numbers, dtype)


def write_region(function: str, argument: str, memory: jax.Array, region: Region, numbers: jax.Array) -> jax.Array:
    """The memory with `numbers`, (depth, height, count), in a region."""
    flat, region = as_units(function, argument, memory, region)
    numbers = bytes_as(function, numbers, np.dtype(flat.dtype))
    if region.height == region.depth == 1:
        flat = flat.at[region.offset : region.offset + region.width].set(numbers.reshape(-1))
    else:
        flat = flat.at[flat_indices(region)].set(numbers, unique_indices=True)
    return bytes_as(function, flat, np.dtype(memory.dtype)).reshape(memory.shape)
