"""Pitched memory, whose rows start at multiples of a pitch, and positions in memory and arrays."""

# pyright: strict, reportUnknownMemberType=false

import dataclasses
import operator

import jax.numpy as jnp
from jax.typing import ArrayLike

from ..enums import MemcpyKind
from ..errors import INVALID_MEMCPY_DIRECTION, INVALID_VALUE, CudaError, choose
from ..structs import TupleStruct, struct

# In bytes, of the pitch of mallocPitch.
MALLOC_PITCH = 512


@struct("ptr")
@dataclasses.dataclass(eq=False)
class PitchedPtr(TupleStruct):
    """Memory whose rows start at multiples of a pitch: `cudaPitchedPtr`.

    It is a pytree whose only child is `ptr`; the other fields are static.

    Args:
        ptr: an array of any dtype. Its bytes, in C order, are the memory.
        pitch: the number of bytes from the start of a row to the start of the next.
        xsize: the width of a row. Copies ignore it.
        ysize: the number of rows in a slice. Row r of slice s starts at byte ``(s * ysize + r) * pitch``.

    Source:
        CUDA Runtime API, `make_cudaPitchedPtr`.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.mallocPitch(100, 4).pitch
        512
    """

    ptr: ArrayLike | None = None
    pitch: int = 0
    xsize: int = 0
    ysize: int = 0


@struct()
@dataclasses.dataclass(eq=False)
class Pos(TupleStruct):
    """A position in an array or in pitched memory: `cudaPos`.

    Args:
        x: elements of an array, or bytes of pitched memory.
        y: rows.
        z: slices, layers or faces.

    Source:
        CUDA Runtime API, `make_cudaPos`.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.Pos(4, 2)
        Pos(x=4, y=2, z=0)
    """

    x: int = 0
    y: int = 0
    z: int = 0


def mallocPitch(width: int, height: int) -> PitchedPtr:
    """Allocates pitched memory of zeros: `cudaMallocPitch`.

    Args:
        width: the number of bytes in a row, at least 1.
        height: the number of rows, at least 1.

    Returns:
        A `PitchedPtr`. Its memory is a uint8 array of shape (height, pitch), and its pitch is a multiple of 512 bytes.
        Element c of row r, of n bytes, starts at byte ``r * pitch + c * n``.

    Raises:
        CudaError: cudaErrorInvalidValue, if a size is below 1.

    Source:
        CUDA Runtime API, `cudaMallocPitch`. The alignment is that of current GPUs.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.mallocPitch(4 * 200, 3).ptr.shape
        (3, 1024)
    """
    if min(width, height) < 1:
        raise CudaError(
            INVALID_VALUE, f"mallocPitch: width and height are {width} and {height}, expected at least 1 of each."
        )
    pitch = -(-width // MALLOC_PITCH) * MALLOC_PITCH
    return PitchedPtr(jnp.zeros((height, pitch), jnp.uint8), pitch, width, height)


def check_memcpy_kind(function: str, kind: object) -> None:
    """Refuses a `kind` that is no direction of a copy (21)."""
    choose(function, "kind", MemcpyKind, kind, INVALID_MEMCPY_DIRECTION)
