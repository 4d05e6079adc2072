"""Functions that fill pitched memory with a byte, and return the new memory."""

# pyright: strict, reportUnknownMemberType=false

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ..errors import check_type
from ..functions import cuda_function
from .arrays import Extent
from .byte_regions import Region, write_region
from .numbers import as_destination
from .pitched_memory import PITCHED_REMEDY, PitchedPtr, counts, region_of, whole_numbers


@cuda_function
def memset(devPtr: ArrayLike, value: int, count: int) -> jax.Array:
    """Returns memory whose first bytes are set to one value: `cudaMemset`.

    Args:
        devPtr: an array of any dtype. Its bytes, in C order, are the memory. It is not changed.
        value: the byte; a larger integer gives its lowest 8 bits.
        count: the number of **bytes**.

    Returns:
        A new array of the shape and the dtype of `devPtr`.

    Gradients:
        None. To differentiate it is an error if `devPtr` is floating.

    Raises:
        CudaError: cudaErrorInvalidValue, if the bytes do not lie within the memory.

    Source:
        CUDA Runtime API, `cudaMemset`.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.memset(cuda.malloc(4), 7, 2)
        Array([7, 7, 0, 0], dtype=uint8)
    """
    (count,) = counts("memset", count=count)
    return fill("memset", "devPtr", devPtr, Region(0, count, count, count, 1, 1), value)


@cuda_function
def memset2D(devPtr: ArrayLike, pitch: int, value: int, width: int, height: int) -> jax.Array:
    """Returns memory with rows of bytes set to one value: `cudaMemset2D`.

    Args:
        devPtr: an array of any dtype. Its bytes, in C order, are the memory. It is not changed.
        pitch: the number of **bytes** from the start of a row to the start of the next.
        value: the byte; a larger integer gives its lowest 8 bits.
        width: the number of **bytes** in a row.
        height: the number of rows.

    Returns:
        A new array of the shape and the dtype of `devPtr`.

    Gradients:
        None. To differentiate it is an error if `devPtr` is floating.

    Raises:
        CudaError: cudaErrorInvalidPitchValue, if a row is longer than the pitch; cudaErrorInvalidValue, if the rows do
            not lie within the memory.

    Source:
        CUDA Runtime API, `cudaMemset2D`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> cuda.memset2D(jnp.zeros((2, 4), jnp.uint8), 4, 7, 2, 2)
        Array([[7, 7, 0, 0],
               [7, 7, 0, 0]], dtype=uint8)
    """
    pitch, width, height = counts("memset2D", pitch=pitch, width=width, height=height)
    return fill("memset2D", "devPtr", devPtr, Region(0, pitch, pitch * height, width, height, 1), value)


@cuda_function
def memset3D(pitchedDevPtr: PitchedPtr, value: int, extent: Extent | tuple[int, int, int]) -> PitchedPtr:
    """Returns pitched memory with a box of bytes set to one value: `cudaMemset3D`.

    Args:
        pitchedDevPtr: a `PitchedPtr`. It is not changed.
        value: the byte; a larger integer gives its lowest 8 bits.
        extent: (width, height, depth) of the box, which starts at the first byte: the number of **bytes** in a row, of
            rows and of slices.

    Returns:
        A new `PitchedPtr`.

    Gradients:
        None, as in `memset2D`.

    Raises:
        CudaError: as in `memset2D`.

    Source:
        CUDA Runtime API, `cudaMemset3D`.

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
    return dataclasses.replace(pointer, ptr=fill(name, "pitchedDevPtr", pointer.ptr, region, value))


def fill(function: str, argument: str, devPtr: Any, region: Region, value: int) -> jax.Array:
    """Memory with a region filled."""
    (value,) = whole_numbers(function, value=value)
    memory = as_destination(function, argument, devPtr)
    if region.is_empty:
        return memory
    numbers = jnp.full((region.depth, region.height, region.width), value & 0xFF, jnp.uint8)
    return write_region(function, argument, memory, region, numbers)
