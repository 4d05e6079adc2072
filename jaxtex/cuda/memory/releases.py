"""Functions that free memory. There is nothing to free, but freed objects are marked, and later use is an error."""

# pyright: strict

from jax.typing import ArrayLike

from ..errors import check_type, release
from ..functions import cuda_function
from .arrays import Array, MipmappedArray
from .pitched_memory import PitchedPtr


@cuda_function
def freeArray(array: Array | None) -> None:
    """Marks an array as freed: `cudaFreeArray`. Its memory is released when nothing refers to it anymore.

    Args:
        array: an `Array`, or ``None``, which has no effect. Later use of the array, or of a texture or surface object
            made of it, is an error, except of copies that a JAX transformation made.

    Raises:
        CudaError: cudaErrorInvalidResourceHandle, if it was freed before.

    Source:
        CUDA Runtime API, `cudaFreeArray`.

    Example:
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 4)
        >>> cuda.freeArray(array)
        >>> try:
        ...     cuda.memcpyFromArray(array)
        ... except cuda.CudaError as error:
        ...     print(error.name)
        cudaErrorInvalidResourceHandle
    """
    if array is not None:
        release("freeArray", check_type("freeArray", "array", array, Array, "mallocArray makes one"))


@cuda_function
def freeMipmappedArray(mipmappedArray: MipmappedArray | None) -> None:
    """Marks a mipmapped array as freed: `cudaFreeMipmappedArray`.

    Args:
        mipmappedArray: a `MipmappedArray`, or ``None``, as in `freeArray`.

    Raises:
        CudaError: as in `freeArray`.

    Source:
        CUDA Runtime API, `cudaFreeMipmappedArray`.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.freeMipmappedArray(cuda.mallocMipmappedArray(cuda.createChannelDesc("float"), (4, 4, 0), 2))
    """
    if mipmappedArray is not None:
        remedy = "mallocMipmappedArray makes one"
        checked = check_type("freeMipmappedArray", "mipmappedArray", mipmappedArray, MipmappedArray, remedy)
        release("freeMipmappedArray", checked)


@cuda_function
def free(devPtr: ArrayLike | PitchedPtr | None) -> None:
    """Marks pitched memory as freed: `cudaFree`. Memory that is a JAX or NumPy array has no mark, and stays usable.

    Args:
        devPtr: a `PitchedPtr`, memory, or ``None``.

    Raises:
        CudaError: cudaErrorInvalidResourceHandle, if it is a `PitchedPtr` that was freed before.

    Source:
        CUDA Runtime API, `cudaFree`.

    Example:
        >>> from jaxtex import cuda
        >>> rows = cuda.mallocPitch(100, 4)
        >>> cuda.free(rows.ptr)
    """
    if isinstance(devPtr, PitchedPtr):
        release("free", devPtr)
