"""Surface objects and references: immutable values, made of an array, for surface functions.

CUDA 12 removed references. Binding one returns a bound copy, which surface functions access.
"""

import dataclasses

from ...modes import TextureKind
from ..enums import ArrayFlags, Error, ResourceType, SurfaceType
from ..errors import CudaError, check_alive, check_type, choose, invalid, release
from ..functions import cuda_function
from ..kinds import NEWEST_COMPUTE_CAPABILITY, TEXTURE_KINDS, check_limits
from ..memory.arrays import Array, check_no_planes, will_be_written
from ..memory.channel_formats import ChannelFormatDesc, check_desc
from ..memory.resource_descriptor import ResourceDesc
from ..structs import OneLine, Struct, struct, value

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
    pResDesc: ResourceDesc, *, compute_capability: float = NEWEST_COMPUTE_CAPABILITY
) -> SurfaceObject:
    """Makes a surface object of an array: `cudaCreateSurfaceObject`.

    Args:
        pResDesc: ``ResourceDesc.Array(array)`` of an array made with ``ArrayFlags.SurfaceLoadStore``. For a level of a
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
        TypeError: if `pResDesc` is not a `ResourceDesc`.

    Example:
        >>> from jaxtex import cuda
        >>> plain = cuda.mallocArray(cuda.createChannelDesc("float"), 4)
        >>> try:
        ...     cuda.createSurfaceObject(cuda.ResourceDesc.Array(plain))
        ... except cuda.CudaError as error:
        ...     print(error.name)
        cudaErrorInvalidValue
    """
    resource = check_type(NAME, "pResDesc", pResDesc, ResourceDesc, "ResourceDesc.Array(array) makes one")
    resource_type = choose(NAME, "pResDesc.resType", ResourceType, resource.resType)
    if resource_type is not ResourceType.Array or not isinstance(resource.memory, Array):
        raise invalid(
            f"{NAME}: pResDesc is of type {resource_type.name}, expected an array; getMipmappedArrayLevel returns a "
            f"level of a mipmapped array as one."
        )
    array = check_backing(NAME, resource.memory, compute_capability)
    will_be_written(NAME, array)
    return SurfaceObject(array)


@cuda_function
def destroySurfaceObject(surfObject: SurfaceObject) -> None:
    """Marks a surface object as destroyed: `cudaDestroySurfaceObject`. There is nothing to release.

    Args:
        surfObject: a `SurfaceObject`. Later use is an error, except of copies that a JAX transformation made.

    Raises:
        CudaError: cudaErrorInvalidResourceHandle, if it was destroyed before.
    """
    release("destroySurfaceObject", _check_object("destroySurfaceObject", surfObject))


@cuda_function
def getSurfaceObjectResourceDesc(surfObject: SurfaceObject) -> ResourceDesc:
    """Returns the descriptor of the array of a surface object: `cudaGetSurfaceObjectResourceDesc`."""
    return ResourceDesc.Array(_check_object("getSurfaceObjectResourceDesc", surfObject).array)


@struct("array")
class SurfaceReference(Struct):
    """A surface reference, ``surface<void, Type>``.

    `bindSurfaceToArray` returns a bound one, which surface functions read and write as they do a `SurfaceObject`. It is
    a pytree whose only child is `array`; the other fields are static. ``cuda.surface`` is the same class.

    Args:
        T: ``"void"``, the only type in CUDA.
        Type: a `SurfaceType`, by default 1D.
        channelDesc: a `ChannelFormatDesc`, without effect.
        array: the `Array` that the reference is bound to; ``None`` before it is bound.

    Source:
        CUDA C++ Programming Guide 11, "Surface Reference API".

    Example:
        >>> from jaxtex import cuda
        >>> ref = cuda.SurfaceReference("void", cuda.SurfaceType.Type2D)
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 2, 1, cuda.ArrayFlags.SurfaceLoadStore)
        >>> ref = cuda.bindSurfaceToArray(ref, array)
        >>> cuda.surf2Dwrite(7.0, ref, 4, 0).texels[..., 0]
        Array([[0., 7.]], dtype=float32)
    """

    T: str = "void"
    Type: SurfaceType | int = SurfaceType.Type1D
    channelDesc: ChannelFormatDesc = dataclasses.field(default_factory=ChannelFormatDesc)
    array: Array | None = None


@cuda_function
def bindSurfaceToArray(
    surfref: SurfaceReference, array: Array, desc: ChannelFormatDesc | None = None
) -> SurfaceReference:
    """Binds a surface reference to an array: `cudaBindSurfaceToArray`.

    Args:
        surfref: a `SurfaceReference` of the kind of the array. It is not changed.
        array: an `Array` made with ``ArrayFlags.SurfaceLoadStore``.
        desc: the format of the array, which may be left out.

    Returns:
        A bound `SurfaceReference`. A write returns another array; bind a reference to that array to read the result.

    Gradients:
        Gradients of reads and writes flow to floating texels of the array.

    Raises:
        CudaError: cudaErrorInvalidValue, if the array lacks the flag, is too large for a surface or is of another kind;
            cudaErrorInvalidChannelDescriptor, if `desc` is not its format.

    Example:
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("int"), 3, 0, cuda.ArrayFlags.SurfaceLoadStore)
        >>> cuda.surf1Dread(cuda.bindSurfaceToArray(cuda.SurfaceReference(), array), 8)
        Array(0, dtype=int32)
    """
    name = "bindSurfaceToArray"
    surfref = _check_reference(name, surfref)
    array = check_type(name, "array", array, Array, "mallocArray makes one")
    surface_type = choose(name, "surfref.Type", SurfaceType, surfref.Type)
    if surfref.T != "void":
        raise invalid(f"{name}: surfref.T is {surfref.T!r}, expected 'void', the only type of CUDA.")
    if TEXTURE_KINDS[array.kind].texture_type != surface_type:
        raise invalid(
            f"{name}: surfref.Type is {surface_type.name}, but the array is of kind {array.kind.value!r}; declare the "
            f"reference with the type of this kind."
        )
    if desc is not None and check_desc(name, desc) != array.desc:
        raise CudaError(
            Error.InvalidChannelDescriptor,
            f"{name}: desc is {desc}, expected the format of the array, {array.desc}; leave it out.",
        )
    will_be_written(name, array)
    return dataclasses.replace(surfref, array=check_backing(name, array))


@cuda_function
def getSurfaceReference(symbol: SurfaceReference) -> SurfaceReference:
    """Returns a reference, which is its own symbol: `cudaGetSurfaceReference`."""
    return _check_reference("getSurfaceReference", symbol)


def bound_array(function: str, surfref: SurfaceReference) -> Array:
    """The array of a bound reference (37)."""
    if surfref.array is None:
        raise CudaError(
            Error.InvalidSurface,
            f"{function}: the surface reference is not bound, expected one that bindSurfaceToArray returned: binding "
            f"does not change its argument.",
        )
    return surfref.array


def _check_reference(function: str, surfref: object) -> SurfaceReference:
    return check_type(function, "surfref", surfref, SurfaceReference, 'SurfaceReference("void", 2) makes one')


def _check_object(function: str, surface: object) -> SurfaceObject:
    return check_type(function, "surfObject", surface, SurfaceObject, "createSurfaceObject makes one")


def check_backing(function: str, array: Array, compute_capability: float = NEWEST_COMPUTE_CAPABILITY) -> Array:
    """`array`, which must be allocated for surface accesses, and not be too large for them."""
    check_alive(function, "the array", array)
    check_no_planes(function, "the array", array)
    if not array.flags & ArrayFlags.SurfaceLoadStore:
        raise invalid(
            f"{function}: the array has flags {array.flags!r}, expected SurfaceLoadStore; allocate it with "
            f"ArrayFlags.SurfaceLoadStore."
        )
    check_limits(function, TEXTURE_KINDS[array.kind].surface_limits, tuple(array.extent), compute_capability)
    return array


# The arguments of surface functions.
Surface = SurfaceObject | SurfaceReference | Array
REMEDY = "createSurfaceObject makes one, and an Array with ArrayFlags.SurfaceLoadStore is accepted too"


def check_surface(function: str, surface: object) -> Array:
    """The array of a surface. An array that may back a surface is accepted in its place."""
    if isinstance(surface, SurfaceReference):
        surface = bound_array(function, surface)
    if isinstance(surface, Array):
        return check_backing(function, surface)
    array = check_type(function, "surfObject", surface, SurfaceObject, REMEDY).array
    check_alive(function, "the array of surfObject", array)
    return array


def array_of_kind(function: str, surface: object, kind: TextureKind) -> Array:
    """The array of a surface, which must be of the given kind."""
    array = check_surface(function, surface)
    if array.kind is not kind:
        raise invalid(
            f"{function}: surfObject is of kind {array.kind.value!r}, expected {kind.value!r}; use the function of its "
            f"kind."
        )
    return array
