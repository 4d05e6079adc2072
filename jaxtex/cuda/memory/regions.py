"""Parts of memory and of arrays: regions of bytes, boxes of elements, and copies between them.

A region is slices of rows of plain memory. Row r of slice s starts at byte ``offset + s * slice_pitch + r * pitch``.
Memory is an array of any dtype, and its bytes are in C order. Where every number of a region is a multiple of the size
of an element, whole elements are moved, and gradients pass.
"""

import dataclasses
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.calls import typed_jit
from ...modes import TextureKind
from ..enums import Error, MemcpyKind
from ..errors import CudaError, choose, invalid
from .arrays import Array, check_array, check_no_planes
from .numbers import bytes_as, whole_numbers

Destination = TypeVar("Destination", Array, jax.Array)
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
            Error.InvalidPitchValue,
            f"{function}: {argument} has a pitch of {region.pitch} bytes, expected at least the width of a row, "
            f"{region.width} bytes.",
        )
    if region.end > size:
        raise invalid(
            f"{function}: {argument} has {size} bytes, and the call needs {region.end}; pass smaller sizes, or more "
            f"memory."
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


def check_memcpy_kind(function: str, kind: object) -> None:
    """Refuses a `kind` that is no direction of a copy (21)."""
    choose(function, "kind", MemcpyKind, kind, Error.InvalidMemcpyDirection)


def texel_rows(array: Array) -> jax.Array:
    """The texels of an array as (slices, rows, numbers)."""
    texels = array.texels
    height = texels.shape[-3] if array.extent.height else 1
    return texels.reshape(-1, height, texels.shape[-2] * texels.shape[-1])


def box_at(
    function: str, argument: str, array: Array, start: tuple[int, int, int], width: int, height: int, depth: int
) -> Box:
    """The box of an array at a place in elements, with its `width` in bytes."""
    array = check_no_planes(function, argument, array)
    elements, numbers = width // array.desc.texel_bytes, array.desc.numbers
    sizes = tuple(max(n, 1) for n in array.elements)
    box = (elements, height, depth)
    if min(*start, *box) < 0 or any(first + count > n for first, count, n in zip(start, box, sizes)):
        raise invalid(
            f"{function}: the box in {argument} starts at {start} and has {box} elements, expected a box "
            f"within the {sizes} elements of the array."
        )
    x, y, z = start
    return Box(z, y, x * numbers, depth, height, elements * numbers)


def check_flat(function: str, argument: str, array: Array) -> Array:
    """`array`, which must be 1D or 2D (1)."""
    if array.kind not in (TextureKind.TEXTURE1D, TextureKind.TEXTURE2D):
        raise invalid(
            f"{function}: {argument} is of kind {array.kind.value!r}, expected a 1D or 2D array; use memcpy3D."
        )
    return array


def check_sizes(function: str, *ends: object) -> int:
    """The size of an element of the arrays among the ends of a copy, which must be of one size (1); 1 without any."""
    sizes = sorted({end.desc.texel_bytes for end in ends if isinstance(end, Array)})
    if len(sizes) > 1:
        raise invalid(
            f"{function}: the arrays have elements of {' and '.join(map(str, sizes))} bytes, expected elements of one "
            f"size."
        )
    return sizes[0] if sizes else 1


def box_of_rows(function: str, argument: str, array: Array, wOffset: int, hOffset: int, width: int, height: int) -> Box:
    """A box of a 1D or 2D array, with `wOffset` and `width` in bytes."""
    array = check_array(function, argument, array, None)
    wOffset, hOffset, width, height = whole_numbers(
        function, wOffset=wOffset, hOffset=hOffset, width=width, height=height
    )
    size = check_flat(function, argument, array).desc.texel_bytes
    if wOffset % size or width % size:
        raise invalid(
            f"{function}: wOffset and width are {wOffset} and {width} bytes, expected multiples of the {size} bytes of "
            f"an element."
        )
    return box_at(function, argument, array, (wOffset // size, hOffset, 0), width, height, 1)


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
    """`dst` with a part replaced by a part of `src`: a `Box` of an `Array`, or a `Region` of plain memory.

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
