"""Surface references, which CUDA 12 removed. Binding one returns a bound copy, which surface functions access."""

# pyright: strict

import dataclasses

from ..enums import SurfaceType
from ..errors import INVALID_CHANNEL_DESCRIPTOR, INVALID_SURFACE, INVALID_VALUE, CudaError, check_type, choose
from ..memory.arrays import Array
from ..memory.channel_formats import ChannelFormatDesc, check_desc
from ..signatures import cuda_function
from ..structs import Struct, struct
from ..texture_kinds import TEXTURE_KINDS
from .surface_objects import check_backing


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

    Source:
        CUDA C++ Programming Guide 11, "Surface Reference API".

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
        raise CudaError(INVALID_VALUE, f"{name}: surfref.T is {surfref.T!r}, expected 'void', the only type of CUDA.")
    if TEXTURE_KINDS[array.kind].texture_type != surface_type:
        raise CudaError(
            INVALID_VALUE,
            f"{name}: surfref.Type is {surface_type.name}, but the array is of kind {array.kind.value!r}; declare the "
            f"reference with the type of this kind.",
        )
    if desc is not None and check_desc(name, desc) != array.desc:
        raise CudaError(
            INVALID_CHANNEL_DESCRIPTOR,
            f"{name}: desc is {desc}, expected the format of the array, {array.desc}; leave it out.",
        )
    return dataclasses.replace(surfref, array=check_backing(name, array))


@cuda_function
def getSurfaceReference(symbol: SurfaceReference) -> SurfaceReference:
    """Returns a reference, which is its own symbol: `cudaGetSurfaceReference`.

    Args:
        symbol: a `SurfaceReference`.

    Returns:
        The same object.

    Source:
        CUDA C++ Programming Guide 11, "Surface Reference API".

    Example:
        >>> from jaxtex import cuda
        >>> ref = cuda.SurfaceReference()
        >>> cuda.getSurfaceReference(ref) is ref
        True
    """
    return _check_reference("getSurfaceReference", symbol)


def bound_array(function: str, surfref: SurfaceReference) -> Array:
    """The array of a bound reference (37)."""
    if surfref.array is None:
        raise CudaError(
            INVALID_SURFACE,
            f"{function}: the surface reference is not bound, expected one that bindSurfaceToArray returned: binding "
            f"does not change its argument.",
        )
    return surfref.array


def _check_reference(function: str, surfref: object) -> SurfaceReference:
    return check_type(function, "surfref", surfref, SurfaceReference, 'SurfaceReference("void", 2) makes one')
