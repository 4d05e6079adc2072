"""Queries of arrays: the format, the extent and the flags."""

# pyright: strict

from ..enums import ArrayFlags
from ..errors import INVALID_VALUE, CudaError
from ..functions import cuda_function
from ..kinds import NEWEST_COMPUTE_CAPABILITY, limit_of
from .array_boxes import check_array
from .arrays import Array, Extent
from .channel_formats import ChannelFormatDesc, check_desc


@cuda_function
def getChannelDesc(array: Array) -> ChannelFormatDesc:
    """Returns the format of an array: `cudaGetChannelDesc`.

    Args:
        array: an `Array`.

    Returns:
        A `ChannelFormatDesc`.

    Source:
        CUDA Runtime API, `cudaGetChannelDesc`.

    Example:
        >>> from jaxtex import cuda
        >>> str(cuda.getChannelDesc(cuda.mallocArray(cuda.createChannelDesc("uchar4"), 4, 4)))
        'uchar4'
    """
    return check_array("getChannelDesc", "array", array, None).desc


@cuda_function
def arrayGetInfo(array: Array) -> tuple[ChannelFormatDesc, Extent, ArrayFlags]:
    """Returns the format, the extent and the flags of an array: `cudaArrayGetInfo`.

    Args:
        array: an `Array`.

    Returns:
        A `ChannelFormatDesc`, an `Extent` and `ArrayFlags`.

    Source:
        CUDA Runtime API, `cudaArrayGetInfo`.

    Example:
        >>> from jaxtex import cuda
        >>> desc, extent, flags = cuda.arrayGetInfo(cuda.mallocArray(cuda.createChannelDesc("float"), 4, 3))
        >>> extent
        Extent(width=4, height=3, depth=0)
    """
    checked = check_array("arrayGetInfo", "array", array, None)
    return checked.desc, checked.extent, checked.flags


@cuda_function
def arrayGetPlane(hArray: Array, planeIdx: int) -> Array:
    """Always raises, as CUDA does for arrays without planes: `cudaArrayGetPlane`. No format here has planes.

    Args:
        hArray: an `Array`.
        planeIdx: which plane.

    Returns:
        Nothing.

    Raises:
        CudaError: cudaErrorInvalidValue.

    Source:
        CUDA Runtime API, `cudaArrayGetPlane`.

    Example:
        >>> from jaxtex import cuda
        >>> try:
        ...     cuda.arrayGetPlane(cuda.mallocArray(cuda.createChannelDesc("uchar"), 4, 4), 0)
        ... except cuda.CudaError as error:
        ...     print(error.name)
        cudaErrorInvalidValue
    """
    checked = check_array("arrayGetPlane", "hArray", hArray, None)
    raise CudaError(
        INVALID_VALUE,
        f"arrayGetPlane: hArray has the format {checked.desc}, which has no plane {planeIdx}, expected a planar "
        f"format; keep each plane in an array of its own.",
    )


@cuda_function
def deviceGetTexture1DLinearMaxWidth(
    fmtDesc: ChannelFormatDesc, device: int = 0, *, compute_capability: float = NEWEST_COMPUTE_CAPABILITY
) -> int:
    """Returns the largest number of elements of a texture over linear memory: `cudaDeviceGetTexture1DLinearMaxWidth`.

    Args:
        fmtDesc: a `ChannelFormatDesc`.
        device: without effect.
        compute_capability: the compute capability whose limit is returned, such as 9.0.

    Returns:
        The number of elements that `createTextureObject` accepts: for every format, the number in the guide's table.

    Raises:
        CudaError: cudaErrorInvalidChannelDescriptor, for a format that CUDA does not have.

    Source:
        CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".

    Example:
        >>> from jaxtex import cuda
        >>> cuda.deviceGetTexture1DLinearMaxWidth(cuda.createChannelDesc("float"), 0) == 2**28
        True
    """
    name = "deviceGetTexture1DLinearMaxWidth"
    check_desc(name, fmtDesc)
    return limit_of(name, "1D texture from linear memory", compute_capability)[0]
