"""Plain memory, and pitched memory, whose rows start at multiples of a pitch: parts, allocation, fills and release."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ..enums import Error
from ..errors import CudaError, check_type, invalid, release
from ..functions import Text, cuda_function, made
from ..structs import TupleStruct, struct
from .arrays import Extent
from .numbers import as_destination, bytes_as, counts, filled, whole_numbers

# Parts of memory: regions of bytes
#
# A region is slices of rows of plain memory. Row r of slice s starts at byte ``offset + s * slice_pitch + r * pitch``.
# Memory is an array of any dtype, and its bytes are in C order. Where every number of a region is a multiple of the
# size of an element, whole elements are moved, and gradients pass.


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


# Memory


# In bytes, of the pitch of mallocPitch.
MALLOC_PITCH = 512
PITCHED_REMEDY = "make_cudaPitchedPtr(memory, pitch, xsize, ysize) makes one"


@struct("ptr")
class PitchedPtr(TupleStruct):
    """Memory whose rows start at multiples of a pitch: `cudaPitchedPtr`.

    It is a pytree whose only child is `ptr`; the other fields are static.

    Args:
        ptr: an array of any dtype. Its bytes, in C order, are the memory.
        pitch: the number of bytes from the start of a row to the start of the next.
        xsize: the width of a row. Copies ignore it.
        ysize: the number of rows in a slice. Row r of slice s starts at byte ``(s * ysize + r) * pitch``.
    """

    ptr: ArrayLike | None = None
    pitch: int = 0
    xsize: int = 0
    ysize: int = 0


@struct()
class Pos(TupleStruct):
    """A position in an array or in pitched memory: `cudaPos`.

    Args:
        x: elements of an array, or bytes of pitched memory.
        y: rows.
        z: slices, layers or faces.
    """

    x: int = 0
    y: int = 0
    z: int = 0


def maker(struct_: type[TupleStruct], parameters: str) -> Callable[..., Any]:
    """The function that makes a struct of its fields."""
    name = f"make_cuda{struct_.__name__}"
    text = Text(f"Makes a struct `{struct_.__name__}`: `{name}`.", "", "")
    texts = dict.fromkeys(parameters.split(), f"the fields of `{struct_.__name__}`, in their order.")
    return made(name, lambda given: struct_(*given.values()), text, TYPES, texts, result=struct_)


TYPES = {"size_t": int, "void*": ArrayLike}
PARAMETERS = {Extent: "w h d", Pos: "x y z", PitchedPtr: "d p xsz ysz"}
MAKERS = {f"make_cuda{struct_.__name__}": maker(struct_, names) for struct_, names in PARAMETERS.items()}


@cuda_function
def malloc(size: int) -> jax.Array:
    """Allocates linear memory of zeros: `cudaMalloc`. Any array of JAX or NumPy is linear memory too.

    Args:
        size: the number of **bytes**, at least 1.

    Returns:
        A uint8 array of shape (size,). Copies into it have no gradient. For gradients, use a floating JAX array, such
        as ``jnp.zeros(size // 4)``.

    Raises:
        CudaError: cudaErrorInvalidValue, if the size is below 1.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> memory = cuda.memcpy(cuda.malloc(2 * 4), jnp.array([1.0, 2.0]), 2 * 4)
        >>> ref = cuda.bindTexture(0, cuda.TextureReference("float"), memory, cuda.createChannelDesc("float"), 2 * 4)
        >>> cuda.tex1Dfetch(ref, 1)
        Array(2., dtype=float32)
    """
    (size,) = whole_numbers("malloc", size=size)
    if size < 1:
        raise invalid(f"malloc: size is {size}, expected at least 1 byte.")
    return filled((size,), jnp.uint8)


@cuda_function
def mallocPitch(width: int, height: int) -> PitchedPtr:
    """Allocates pitched memory of zeros: `cudaMallocPitch`.

    Args:
        width: the number of **bytes** in a row, at least 1.
        height: the number of rows, at least 1.

    Returns:
        A `PitchedPtr`. Its memory is a uint8 array of shape (height, pitch), and its pitch is a multiple of 512 bytes,
        the alignment of current GPUs. Element c of row r, of n bytes, starts at byte ``r * pitch + c * n``.

    Raises:
        CudaError: cudaErrorInvalidValue, if a size is below 1.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.mallocPitch(4 * 200, 3).ptr.shape
        (3, 1024)
    """
    width, height = whole_numbers("mallocPitch", width=width, height=height)
    return _malloc_rows("mallocPitch", width, height, 1)


@cuda_function
def malloc3D(extent: Extent | tuple[int, int, int]) -> PitchedPtr:
    """Allocates pitched memory of slices, of zeros: `cudaMalloc3D`.

    Args:
        extent: (width, height, depth): the number of **bytes** in a row, of rows in a slice, and of slices, each at
            least 1.

    Returns:
        A `PitchedPtr` as of `mallocPitch`, with `width` as ``xsize`` and `height` as ``ysize``. Its memory has the
        shape (depth * height, pitch). Row r of slice s starts at byte ``(s * height + r) * pitch``.

    Raises:
        CudaError: cudaErrorInvalidValue, if a size is below 1.

    Example:
        >>> from jaxtex import cuda
        >>> rows = cuda.malloc3D(cuda.make_cudaExtent(4 * 200, 3, 2))
        >>> rows.ptr.shape, rows.ysize
        ((6, 1024), 3)
    """
    width, height, depth = extent
    width, height, depth = whole_numbers("malloc3D", width=width, height=height, depth=depth)
    return _malloc_rows("malloc3D", width, height, depth)


def _malloc_rows(function: str, width: int, height: int, depth: int) -> PitchedPtr:
    if min(width, height, depth) < 1:
        raise invalid(
            f"{function}: the size is {(width, height, depth)} in bytes, rows and slices, expected at least 1 of each."
        )
    pitch = -(-width // MALLOC_PITCH) * MALLOC_PITCH
    return PitchedPtr(filled((depth * height, pitch), jnp.uint8), pitch, width, height)


@cuda_function
def free(devPtr: ArrayLike | PitchedPtr | None) -> None:
    """Marks pitched memory as freed: `cudaFree`. Memory that is a JAX or NumPy array has no mark, and stays usable.

    Args:
        devPtr: a `PitchedPtr`, memory, or ``None``.

    Raises:
        CudaError: cudaErrorInvalidResourceHandle, if it is a `PitchedPtr` that was freed before.
    """
    if isinstance(devPtr, PitchedPtr):
        release("free", devPtr)


@cuda_function
def memset(devPtr: ArrayLike, value: int, count: int) -> jax.Array:
    """Returns memory whose first bytes are set to one value: `cudaMemset`.

    Returns:
        A new array of the shape and the dtype of `devPtr`.

    Gradients:
        None. To differentiate it is an error if `devPtr` is floating.

    Raises:
        CudaError: cudaErrorInvalidValue, if the bytes do not lie within the memory.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.memset(cuda.malloc(4), 7, 2)
        Array([7, 7, 0, 0], dtype=uint8)
    """
    (count,) = counts("memset", count=count)
    return _fill("memset", "devPtr", devPtr, Region(0, count, count, count, 1, 1), value)


@cuda_function
def memset2D(devPtr: ArrayLike, pitch: int, value: int, width: int, height: int) -> jax.Array:
    """Returns memory with rows of bytes set to one value: `cudaMemset2D`.

    Returns:
        A new array of the shape and the dtype of `devPtr`.

    Gradients:
        None. To differentiate it is an error if `devPtr` is floating.

    Raises:
        CudaError: cudaErrorInvalidPitchValue, if a row is longer than the pitch; cudaErrorInvalidValue, if the rows do
            not lie within the memory.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> cuda.memset2D(jnp.zeros((2, 4), jnp.uint8), 4, 7, 2, 2)
        Array([[7, 7, 0, 0],
               [7, 7, 0, 0]], dtype=uint8)
    """
    pitch, width, height = counts("memset2D", pitch=pitch, width=width, height=height)
    return _fill("memset2D", "devPtr", devPtr, Region(0, pitch, pitch * height, width, height, 1), value)


@cuda_function
def memset3D(pitchedDevPtr: PitchedPtr, value: int, extent: Extent | tuple[int, int, int]) -> PitchedPtr:
    """Returns pitched memory with a box of bytes set to one value: `cudaMemset3D`.

    Args:
        pitchedDevPtr: a `PitchedPtr`. It is not changed.
        extent: (width, height, depth) of the box, which starts at the first byte: the number of **bytes** in a row, of
            rows and of slices.

    Returns:
        A new `PitchedPtr`.

    Gradients:
        None, as in `memset2D`.

    Raises:
        CudaError: as in `memset2D`.

    Example:
        >>> from jaxtex import cuda
        >>> rows = cuda.memset3D(cuda.malloc3D((3, 2, 2)), 7, (2, 1, 2))
        >>> rows.ptr[:, :3]
        Array([[7, 7, 0],
               [0, 0, 0],
               [7, 7, 0],
               [0, 0, 0]], dtype=uint8)
    """
    name = "memset3D"
    pointer = check_type(name, "pitchedDevPtr", pitchedDevPtr, PitchedPtr, PITCHED_REMEDY)
    width, height, depth = counts(name, **{f"extent[{k}]": n for k, n in enumerate(extent)})
    region = region_of(name, "pitchedDevPtr", pointer, (0, 0, 0), (width, height, depth))
    return dataclasses.replace(pointer, ptr=_fill(name, "pitchedDevPtr", pointer.ptr, region, value))


def _fill(function: str, argument: str, devPtr: Any, region: Region, value: int) -> jax.Array:
    """Memory with a region filled."""
    (value,) = whole_numbers(function, value=value)
    memory = as_destination(function, argument, devPtr)
    if region.is_empty:
        return memory
    numbers = filled((region.depth, region.height, region.width), jnp.uint8, value & 0xFF)
    return write_region(function, argument, memory, region, numbers)


def region_of(
    function: str, argument: str, pointer: PitchedPtr, start: tuple[int, int, int], extent: tuple[int, int, int]
) -> Region:
    """The region of pitched memory that starts at a place, x in bytes first, and has a size; none is negative."""
    sizes = {f"{argument}.pitch": pointer.pitch, f"{argument}.ysize": pointer.ysize}
    pitch, ysize = counts(function, **sizes)
    x, y, z = start
    return Region(x + y * pitch + z * pitch * ysize, pitch, pitch * ysize, *extent)
