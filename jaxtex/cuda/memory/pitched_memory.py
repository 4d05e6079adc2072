# pyright: strict, reportUnknownMemberType=false

"""Plain memory with rows at a pitch, and positions in it."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from ..enums import MemcpyKind
from ..errors import INVALID_MEMCPY_DIRECTION, INVALID_VALUE, CudaError, choose

# What the pitch of mallocPitch is a multiple of, in bytes.
MALLOC_PITCH = 512


class PitchedPtr(NamedTuple):
    """Memory with rows at a pitch: `cudaPitchedPtr`.

    Args:
        ptr: an array of any dtype, taken as its bytes in C order.
        pitch: bytes from row to row.
        xsize: elements of a row, which a copy does not look at.
        ysize: rows of a slice: row r of slice s starts at byte ``(s * ysize + r) * pitch``.

    Source: CUDA Runtime API, `make_cudaPitchedPtr`.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.mallocPitch(100, 4).pitch
        512
    """

    ptr: ArrayLike
    pitch: int
    xsize: int
    ysize: int


class Pos(NamedTuple):
    """A position in an object, in its elements, or in bytes along x of plain memory: `cudaPos`.

    Args:
        x, y, z: z counts slices, layers or faces.

    Source: CUDA Runtime API, `make_cudaPos`.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.Pos(4, 2)
        Pos(x=4, y=2, z=0)
    """

    x: int = 0
    y: int = 0
    z: int = 0


def mallocPitch(width: int, height: int) -> PitchedPtr:
    """Allocates rows of zeros at a pitch: `cudaMallocPitch`.

    Args:
        width: bytes of a row, at least 1.
        height: rows, at least 1.

    Returns:
        A `PitchedPtr` to uint8 memory of shape (height, pitch), with a pitch that is a multiple of 512 bytes. Element
        (r, c) of size n starts at byte ``r * pitch + c * n``.

    Raises:
        CudaError: cudaErrorInvalidValue, for sizes below 1.

    Source: CUDA Runtime API, `cudaMallocPitch`; the alignment is that of current cards.

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
    choose(function, "kind", MemcpyKind, kind, INVALID_MEMCPY_DIRECTION)
