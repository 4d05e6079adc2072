"""Pitched memory, whose rows start at multiples of a pitch, and positions in memory and arrays."""

# pyright: strict, reportUnknownMemberType=false

import operator

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ..enums import MemcpyKind
from ..errors import INVALID_MEMCPY_DIRECTION, INVALID_VALUE, CudaError, choose
from ..functions import cuda_function
from ..structs import TupleStruct, struct
from .arrays import Extent
from .byte_regions import Region

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


@cuda_function
def make_cudaPitchedPtr(d: ArrayLike, p: int, xsz: int, ysz: int) -> PitchedPtr:
    """Makes a `PitchedPtr`: `make_cudaPitchedPtr`.

    Args:
        d: the memory, an array of any dtype.
        p: the pitch in bytes.
        xsz: the width of a row.
        ysz: the number of rows in a slice.

    Returns:
        A `PitchedPtr`.

    Source:
        CUDA Runtime API, `make_cudaPitchedPtr`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> cuda.make_cudaPitchedPtr(jnp.zeros(8), 16, 4, 2).pitch
        16
    """
    return PitchedPtr(d, p, xsz, ysz)


@cuda_function
def make_cudaPos(x: int, y: int, z: int) -> Pos:
    """Makes a `Pos`: `make_cudaPos`.

    Args:
        x, y, z: the position, as in `Pos`.

    Returns:
        A `Pos`.

    Source:
        CUDA Runtime API, `make_cudaPos`.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.make_cudaPos(4, 0, 1)
        Pos(x=4, y=0, z=1)
    """
    return Pos(x, y, z)


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

    Source:
        CUDA Runtime API, `cudaMalloc`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> memory = cuda.memcpy(cuda.malloc(2 * 4), jnp.array([1.0, 2.0]), 2 * 4)
        >>> ref = cuda.bindTexture(0, cuda.TextureReference("float"), memory, cuda.createChannelDesc("float"), 2 * 4)
        >>> cuda.tex1Dfetch(ref, 1)
        Array(2., dtype=float32)
    """
    (size,) = whole_numbers("malloc", size=size)
    if size < 1:
        raise CudaError(INVALID_VALUE, f"malloc: size is {size}, expected at least 1 byte.")
    return jnp.zeros(size, jnp.uint8)


@cuda_function
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
    width, height = whole_numbers("mallocPitch", width=width, height=height)
    return _malloc_rows("mallocPitch", width, height, 1)


@cuda_function
def malloc3D(extent: Extent | tuple[int, int, int]) -> PitchedPtr:
    """Allocates pitched memory of slices, of zeros: `cudaMalloc3D`.

    Args:
        extent: (width, height, depth): the number of **bytes** in a row, of rows in a slice, and of slices, each at
            least 1.

    Returns:
        A `PitchedPtr`, with `width` as ``xsize`` and `height` as ``ysize``. Its memory is a uint8 array of shape
        (depth * height, pitch), and its pitch is a multiple of 512 bytes. Row r of slice s starts at byte
        ``(s * height + r) * pitch``.

    Raises:
        CudaError: cudaErrorInvalidValue, if a size is below 1.

    Source:
        CUDA Runtime API, `cudaMalloc3D`. The alignment is that of current GPUs.

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
        raise CudaError(
            INVALID_VALUE,
            f"{function}: the size is {(width, height, depth)} in bytes, rows and slices, expected at least 1 of each.",
        )
    pitch = -(-width // MALLOC_PITCH) * MALLOC_PITCH
    return PitchedPtr(jnp.zeros((depth * height, pitch), jnp.uint8), pitch, width, height)


def whole_numbers(function: str, **arguments: int) -> tuple[int, ...]:
    """Arguments that are integers of Python or of NumPy, as integers of Python."""
    numbers: list[int] = []
    for name, value in arguments.items():
        try:
            numbers.append(operator.index(value))
        except TypeError:
            raise TypeError(f"{function}: {name} is {value!r}, expected an int.") from None
    return tuple(numbers)


def counts(function: str, **arguments: int) -> tuple[int, ...]:
    """As `whole_numbers`, for numbers of bytes, rows or slices, which may not be negative (1)."""
    numbers = whole_numbers(function, **arguments)
    for name, number in zip(arguments, numbers):
        if number < 0:
            raise CudaError(INVALID_VALUE, f"{function}: {name} is {number}, expected at least 0.")
    return numbers


def region_of(
    function: str, argument: str, pointer: PitchedPtr, start: tuple[int, int, int], extent: tuple[int, int, int]
) -> Region:
    """The region of pitched memory that starts at a place, x in bytes first, and has a size; none is negative."""
    sizes = {f"{argument}.pitch": pointer.pitch, f"{argument}.ysize": pointer.ysize}
    pitch, ysize = counts(function, **sizes)
    x, y, z = start
    return Region(x + y * pitch + z * pitch * ysize, pitch, pitch * ysize, *extent)


def check_memcpy_kind(function: str, kind: object) -> None:
    """Refuses a `kind` that is no direction of a copy (21)."""
    choose(function, "kind", MemcpyKind, kind, INVALID_MEMCPY_DIRECTION)
