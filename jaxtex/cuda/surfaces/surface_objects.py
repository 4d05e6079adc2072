"""Surface objects: immutable values made of an array that surface functions read and write."""

# pyright: strict

import dataclasses

from ...modes import TextureKind
from ..enums import ArrayFlags, ResourceType
from ..errors import INVALID_VALUE, CudaError, check_type, choose
from ..limits import NEWEST_COMPUTE_CAPABILITY, check_limits
from ..memory.arrays import Array
from ..memory.resource_descriptor import ResourceDesc
from ..pytrees import pytree
from ..texture_kinds import TEXTURE_KINDS

NAME = "createSurfaceObject"


@pytree("array")
@dataclasses.dataclass(frozen=True, eq=False)
class SurfaceObject:
    """A surface that can be read and written: `createSurfaceObject` makes one.

    It is a pytree, so that jitted functions take it as an argument. There is no handle, and nothing to destroy.

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
        CudaError: cudaErrorInvalidValue, if the resource is no array, if the array lacks the flag, or if it is too
            large for a surface.
        TypeError: if `resource` is no `ResourceDesc`.

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
    check_storable(NAME, resource.memory)
    check_limits(NAME, TEXTURE_KINDS[resource.memory.kind].surface_limits, resource.memory.extent, compute_capability)
    return SurfaceObject(resource.memory)


def check_storable(function: str, array: Array) -> Array:
    """`array`, which must be allocated for surface accesses."""
    if not array.flags & ArrayFlags.SurfaceLoadStore:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: the array has flags {array.flags!r}, expected SurfaceLoadStore; allocate it with "
            f"ArrayFlags.SurfaceLoadStore.",
        )
    return array


def check_surface(function: str, surface: object) -> Array:
    """The array of a surface. An array that may back a surface is accepted in its place."""
    if isinstance(surface, Array):
        return check_storable(function, surface)
    remedy = "createSurfaceObject makes one, and an Array with ArrayFlags.SurfaceLoadStore is accepted too"
    return check_type(function, "surface", surface, SurfaceObject, remedy).array


def array_of_kind(function: str, surface: object, kind: TextureKind) -> Array:
    """The array of a surface, which must be of the given kind."""
    array = check_surface(function, surface)
    if array.kind is not kind:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: surface is of kind {array.kind.value!r}, expected {kind.value!r}; use the function of its "
            f"kind.",
        )
    return array
