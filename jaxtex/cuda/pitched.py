"""Plain memory with rows at a pitch, and positions in it."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .enums import MemcpyKind
from .errors import INVALID_MEMCPY_DIRECTION, INVALID_VALUE, CudaError, choose
from .regions import Region, put, take

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

    ptr: Any
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


def memcpy2D(dst: Any, dpitch: int, src: Any, spitch: int, width: int, height: int, kind: int = MemcpyKind.Default):
    """Returns memory with rows of other memory in it: `cudaMemcpy2D`.

    Args:
        dst, src: arrays of any dtype, taken as their bytes in C order. `dst` is not changed.
        dpitch, spitch: bytes from row to row in each.
        width: bytes of a row.
        height: rows.
        kind: a `MemcpyKind`; it makes no difference.

    Returns:
        A new array like `dst`.

    Gradients: to both, where all numbers are multiples of the size of the elements, and the dtypes are the same.

    Raises:
        CudaError: cudaErrorInvalidPitchValue, if rows are longer than a pitch; cudaErrorInvalidValue, if the region
            leaves an array; cudaErrorInvalidMemcpyDirection, for an unknown `kind`.

    Source: CUDA Runtime API, `cudaMemcpy2D`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> rows = cuda.mallocPitch(8, 2)
        >>> memory = cuda.memcpy2D(rows.ptr, rows.pitch, jnp.arange(4.0), 8, 8, 2)
        >>> pitched = cuda.ResourceDesc.Pitch2D(memory, cuda.createChannelDesc("float"), 2, 2, rows.pitch)
        >>> cuda.tex2D(cuda.createTextureObject(pitched, cuda.TextureDesc()), 1.5, 1.5)
        Array(3., dtype=float32)
    """
    name, dst = "memcpy2D", jnp.asarray(dst)
    check_kind(name, kind)
    src = jnp.asarray(src)
    rows = take(name, "src", src, Region(0, spitch, spitch * height, width, height, 1), common_unit(src, dst, width))
    return put(name, "dst", dst, Region(0, dpitch, dpitch * height, width, height, 1), rows)


def check_kind(function: str, kind: Any) -> None:
    choose(function, "kind", MemcpyKind, kind, INVALID_MEMCPY_DIRECTION)


def common_unit(src: jax.Array, dst: jax.Array, width: int) -> np.dtype:
    """As what the bytes of a row travel from one memory to another."""
    same = src.dtype == dst.dtype and width % src.dtype.itemsize == 0
    return np.dtype(src.dtype) if same else np.dtype(np.uint8)
