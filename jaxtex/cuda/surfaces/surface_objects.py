"""Surface objects: immutable values made of an array that surface functions read and write."""

# pyright: strict

from ..enums import ArrayFlags, ResourceType
from ..errors import INVALID_VALUE, CudaError, check_alive, check_type, choose, release
from ..limits import NEWEST_COMPUTE_CAPABILITY, check_limits
from ..memory.arrays import Array
from ..memory.resource_descriptor import ResourceDesc
from ..signatures import cuda_function
from ..structs import OneLine, value
from ..texture_kinds import TEXTURE_KINDS

NAME = "createSurfaceObject"


@value("array")
class SurfaceObject(OneLine):
    """A surface that can be read and written: `createSurfaceObject` makes one.

    It is a pytree, so that jitted functions take it as an argument. There is no handle, and nothing needs to be
    destroyed.

    Attributes:
        array: the `Array` of which it is made.

    Example:
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 4, 0, cuda.ArrayFlags.SurfaceLoadStore)
        >>> surface = cuda.createSurfaceObject(cuda.ResourceDesc.Array(array))
        >>> cuda.surf1Dwrite(7.0, surface, 3 * 4).texels[:, 0]
        Array([0., 0., 0., 7.], dtype=float32)
    """

    array: Array


@cuda_function
def createSurfaceObject(
    resource: ResourceDesc, *, compute_capability: float = NEWEST_COMPUTE_CAPABILITY
) -> SurfaceObject:
    """Makes a surface object of an array: `cudaCreateSurfaceObject`.

    Args:
        resource: ``ResourceDesc.Array(array)`` of an array made with ``ArrayFlags.SurfaceLoadStore``. For a level of a
            mipmapped array, `getMipmappedArrayLevel` returns the array.
        compute_capability: the compute capability whose size limits of surfaces apply, such as 9.0.

    Returns:
        A `SurfaceObject` with the texels that the array has now. A write returns another array, and does not change
        the object.

    Gradients:
        Gradients of reads and writes flow to floating texels of the array.

    Raises:
        CudaError: cudaErrorInvalidValue, if the resource is not an array, if the array lacks the flag, or if it is too
            large for a surface.
        TypeError: if `resource` is not a `ResourceDesc`.

    Source:
        CUDA Runtime API, `cudaCreateSurfaceObject`.

    Example:
        >>> from jaxtex import cuda
        >>> plain = cuda.mallocArray(cuda.createChannelDesc("float"), 4)
        >>> try:
        ...     cuda.createSurfaceObject(cuda.ResourceDesc.Array(plain))
        ... except cuda.CudaError as error:
        ...     print(error.name)
        cudaErrorInvalidValue
    """
    resource = check_type(NAME, "resource", resource, ResourceDesc, "ResourceDesc.Array(array) makes one")
    resource_type = choose(NAME, "resource.resType", ResourceType, resource.resType)
    if resource_type is not ResourceType.Array or not isinstance(resource.memory, Array):
        raise CudaError(
            INVALID_VALUE,
            f"{NAME}: resource is of type {resource_type.name}, expected an array; getMipmappedArrayLevel returns a "
            f"level of a mipmapped array as one.",
        )
    return SurfaceObject(check_backing(NAME, resource.memory, compute_capability))


@cuda_function
def destroySurfaceObject(surfObject: SurfaceObject) -> None:
    """Marks a surface object as destroyed: `cudaDestroySurfaceObject`. There is nothing to release.

    Args:
        surfObject: a `SurfaceObject`. Later use is an error, except of copies that a JAX transformation made.

    Raises:
        CudaError: cudaErrorInvalidResourceHandle, if it was destroyed before.

    Source:
        CUDA Runtime API, `cudaDestroySurfaceObject`.

    Example:
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 4, 0, cuda.ArrayFlags.SurfaceLoadStore)
        >>> cuda.destroySurfaceObject(cuda.createSurfaceObject(cuda.ResourceDesc.Array(array)))
    """
    release("destroySurfaceObject", _check_object("destroySurfaceObject", surfObject))


@cuda_function
def getSurfaceObjectResourceDesc(surfObject: SurfaceObject) -> ResourceDesc:
    """Returns the descriptor of the array of a surface object: `cudaGetSurfaceObjectResourceDesc`.

    Args:
        surfObject: a `SurfaceObject`.

    Returns:
        A `ResourceDesc`.

    Source:
        CUDA Runtime API, `cudaGetSurfaceObjectResourceDesc`.

    Example:
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 4, 0, cuda.ArrayFlags.SurfaceLoadStore)
        >>> surface = cuda.createSurfaceObject(cuda.ResourceDesc.Array(array))
        >>> cuda.getSurfaceObjectResourceDesc(surface).res.array.array is array
        True
    """
    return ResourceDesc.Array(_check_object("getSurfaceObjectResourceDesc", surfObject).array)


def _check_object(function: str, surface: object) -> SurfaceObject:
    return check_type(function, "surfObject", surface, SurfaceObject, "createSurfaceObject makes one")


def check_backing(function: str, array: Array, compute_capability: float = NEWEST_COMPUTE_CAPABILITY) -> Array:
    """`array`, which must be allocated for surface accesses, and not be too large for them."""
    check_alive(function, "the array", array)
    if not array.flags & ArrayFlags.SurfaceLoadStore:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: the array has flags {array.flags!r}, expected SurfaceLoadStore; allocate it with "
            f"ArrayFlags.SurfaceLoadStore.",
        )
    check_limits(function, TEXTURE_KINDS[array.kind].surface_limits, tuple(array.extent), compute_capability)
    return array
