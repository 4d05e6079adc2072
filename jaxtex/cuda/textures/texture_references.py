"""Texture references, which CUDA 12 removed, and the functions that bind them to memory."""

import dataclasses
from typing import Any, cast

import jax
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from ... import texture as core
from ..._checks.dropped import mention_dropped
from ...modes import TextureKind
from ...sampler import Sampler
from ..descriptors import ModesField, ResourceDesc, TextureDesc, mode_components
from ..enums import AddressMode, ArrayFlags, Error, FilterMode, ReadMode, ResourceType, TextureType
from ..errors import CudaError, check_alive, check_type, choose, invalid
from ..functions import cuda_function, missing
from ..kinds import TEXTURE_KINDS
from ..memory.arrays import Array, MipmappedArray
from ..memory.channel_formats import ChannelFormatDesc, check_desc, createChannelDesc, parse_type
from ..structs import Struct, no_field, same, snapshot, struct
from .texture_objects import ArithmeticName, TextureObject, createTextureObject, is_readable_as, three_modes

# References


KINDS_BY_TYPE = {row.texture_type: kind for kind, row in TEXTURE_KINDS.items()}


@struct()
class TextureReference(Struct):
    """A texture reference, ``texture<T, texType, readMode>``, with the attributes of its declaration.

    Binding returns a `BoundTexture`, which texture functions read. Attributes may be assigned before and after. The
    defaults are those of the C++ class, not those of a zeroed `TextureDesc`: the address mode is **Clamp**. It is a
    pytree without children. ``cuda.texture`` is the same class.

    Args:
        T: the name of the type of the texels, such as ``"float"``.
        texType: a `TextureType`, by default 1D.
        readMode: a `ReadMode`, by default ElementType.
        normalized: as ``normalizedCoords`` in `TextureDesc`. `bindTexture` ignores this argument and those below.
        filterMode, addressMode: as in `TextureDesc`, except for the default of `addressMode`.
        channelDesc: a `ChannelFormatDesc`, by default that of `T`. `bindTexture` and `bindTexture2D` use it if they are
            given no format.
        sRGB, maxAnisotropy, disableTrilinearOptimization: as in `TextureDesc`.
        mipmapFilterMode, mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp: as in `TextureDesc`.

    Source:
        CUDA C++ Programming Guide 11, "Texture Reference API".

    Example:
        >>> from jaxtex import cuda
        >>> ref = cuda.TextureReference("float", cuda.TextureType.Type2D)
        >>> ref.addressMode[0].name
        'Clamp'
        >>> array = cuda.mallocArray(ref.channelDesc, 2, 1)
        >>> array = cuda.memcpyToArray(array, [0.0, 1.0])
        >>> ref = cuda.bindTextureToArray(ref, array)
        >>> ref.filterMode = cuda.FilterMode.Linear
        >>> cuda.tex2D(ref, 1.0, 0.5)
        Array(0.5, dtype=float32)
    """

    T: str
    texType: TextureType | int = TextureType.Type1D
    readMode: ReadMode | int = ReadMode.ElementType
    normalized: int = 0
    filterMode: FilterMode | int = FilterMode.Point
    addressMode: ModesField = cast(Any, (AddressMode.Clamp,) * 3)
    channelDesc: ChannelFormatDesc | None = None
    sRGB: int = 0
    maxAnisotropy: int = 0
    mipmapFilterMode: FilterMode | int = FilterMode.Point
    mipmapLevelBias: float = 0.0
    minMipmapLevelClamp: float = 0.0
    maxMipmapLevelClamp: float = 0.0
    disableTrilinearOptimization: int = 0

    def __post_init__(self):
        if self.channelDesc is None:
            self.channelDesc = createChannelDesc(self.T)

    def _converted(self, name: str, value: Any) -> Any:
        """The value that is stored for a field: address modes as `Components`, whose elements may be assigned."""
        return mode_components(value, AddressMode.Clamp) if name == "addressMode" else value


ATTRIBUTES = [field.name for field in dataclasses.fields(TextureReference)]
OWN_FIELDS = ("reference", "resource", "arithmetic")


@struct("resource")
class BoundTexture(Struct):
    """A texture reference that is bound to memory: `bindTextureToArray` and the other bind functions return one.

    Texture functions read it as they read a `TextureObject`. It has the attributes of its reference. An assignment to
    an attribute of either changes both, and takes effect in the next read; a compiled function is then compiled again.
    It is a pytree whose only child is `resource`; everything else is static. A copy that a transformation makes has its
    own attributes.

    Args:
        reference: the `TextureReference`.
        resource: the memory, a `ResourceDesc`; ``None`` after `unbindTexture`.
        arithmetic: as in `createTextureObject`.

    Source:
        CUDA C++ Programming Guide 11, "Texture Reference API".

    Example:
        >>> from jaxtex import cuda
        >>> ref = cuda.TextureReference("float")
        >>> array = cuda.memcpyToArray(cuda.mallocArray(ref.channelDesc, 2), [0.0, 1.0])
        >>> bound = cuda.bindTextureToArray(ref, array)
        >>> ref.filterMode = cuda.FilterMode.Linear
        >>> bound.filterMode.name
        'Linear'
        >>> cuda.tex1D(bound, 1.0)
        Array(0.5, dtype=float32)
    """

    reference: TextureReference
    resource: ResourceDesc | None
    arithmetic: ArithmeticName = "hardware"

    def __getattr__(self, name: str) -> Any:
        if name not in ATTRIBUTES:
            raise no_field(type(self).__name__, name, ATTRIBUTES)
        return getattr(self.reference, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ATTRIBUTES:
            setattr(self.reference, name, value)
        elif name in OWN_FIELDS:
            super().__setattr__(name, value)
        else:
            raise no_field(type(self).__name__, name, ATTRIBUTES)

    @property
    def object(self) -> TextureObject:
        """The texture object that functions read now."""
        return object_of("BoundTexture", self)

    @property
    def texture(self) -> core.Texture:
        """As in `TextureObject`."""
        return self.object.texture

    @property
    def sampler(self) -> Sampler:
        """As in `TextureObject`."""
        return self.object.sampler

    @property
    def desc(self) -> ChannelFormatDesc:
        """As in `TextureObject`."""
        return self.object.desc

    @property
    def kind(self) -> TextureKind:
        """As in `TextureObject`."""
        return self.object.kind

    @property
    def resType(self) -> ResourceType:
        """As in `TextureObject`."""
        return self.object.resType

    @property
    def flags(self) -> ArrayFlags:
        """As in `TextureObject`."""
        return self.object.flags


@cuda_function
def unbindTexture(texref: BoundTexture | TextureReference) -> None:
    """Unbinds a reference: `cudaUnbindTexture`. Later reads of it are errors.

    Args:
        texref: a `BoundTexture`. Its copies, such as in compiled functions, stay bound. An unbound reference is
            accepted.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> ref = cuda.bindTexture(0, cuda.TextureReference("int"), jnp.array([3, 4]))
        >>> cuda.unbindTexture(ref)
        >>> ref.resource is None
        True
    """
    check_reference("unbindTexture", texref)
    if isinstance(texref, BoundTexture):
        object.__setattr__(texref, "resource", None)


@cuda_function
def getTextureAlignmentOffset(texref: BoundTexture) -> int:
    """Returns the offset of the memory of a bound reference, which is 0: `cudaGetTextureAlignmentOffset`.

    Args:
        texref: a `BoundTexture`.

    Returns:
        0.

    Raises:
        CudaError: cudaErrorInvalidTextureBinding, if the reference is not bound.
    """
    check_bound("getTextureAlignmentOffset", texref)
    return 0


@cuda_function
def getTextureReference(symbol: BoundTexture | TextureReference) -> TextureReference:
    """Returns the `TextureReference` of a reference, which is its own symbol: `cudaGetTextureReference`."""
    return check_reference("getTextureReference", symbol)


def as_object(function: str, t: object) -> TextureObject:
    """The texture object of a texture function, which may be a bound reference."""
    if isinstance(t, BoundTexture | TextureReference):
        return object_of(function, t)
    checked = check_type(function, "texObject", t, TextureObject, "createTextureObject makes one")
    resource, *_ = getattr(checked, "_made_of", (None,))
    check_memory(function, getattr(resource, "memory", None))
    return checked


def check_memory(function: str, memory: object) -> None:
    """Refuses memory that was freed, and mentions a write to it whose result was dropped."""
    check_alive(function, "the memory of texObject", memory)
    mention_dropped(function, memory)


def check_bound(function: str, ref: object) -> tuple[TextureReference, ResourceDesc, ArithmeticName]:
    """A bound reference (19) in its parts."""
    check_reference(function, ref)
    if not isinstance(ref, BoundTexture) or ref.resource is None:
        raise CudaError(
            Error.InvalidTextureBinding,
            f"{function}: the texture reference is not bound, expected one that bindTextureToArray or another bind "
            f"function returned: binding does not change its argument.",
        )
    return ref.reference, ref.resource, ref.arithmetic


def object_of(function: str, bound: BoundTexture | TextureReference) -> TextureObject:
    """The texture object of a bound reference, made anew if an attribute has changed."""
    ref, resource, arithmetic = check_bound(function, bound)
    check_memory(function, resource.memory)
    state = (snapshot(ref), snapshot(resource), arithmetic)
    last, made = getattr(bound, "_made", (None, None))
    if made is None or not same(last, state):
        made = make_object(function, ref, resource, arithmetic)
        if not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(made)):
            object.__setattr__(bound, "_made", (state, made))
    return made


def make_object(
    function: str, ref: TextureReference, resource: ResourceDesc, arithmetic: ArithmeticName
) -> TextureObject:
    """A texture object of a resource with the attributes of a reference, if the types agree."""
    desc = TextureDesc(readMode=ref.readMode)
    if resource.resType != ResourceType.Linear:
        names = {field.name for field in dataclasses.fields(TextureDesc)}
        shared = {field.name for field in dataclasses.fields(TextureReference)} & names - {"addressMode"}
        desc = TextureDesc(
            addressMode=three_modes(function, "texref.addressMode", ref.addressMode, AddressMode.Clamp),
            normalizedCoords=ref.normalized,
            **{name: getattr(ref, name) for name in shared},
        )
    made = createTextureObject(resource, desc, arithmetic=arithmetic)
    base, length = parse_type(function, "texref.T", ref.T)
    # Halves are read as floats, and programs declare their references with either type.
    bases = (made.desc.stored_base, made.desc.result_base(ReadMode.ElementType))
    if base not in bases or (length or 1) != made.desc.channels:
        raise CudaError(
            Error.InvalidChannelDescriptor,
            f"{function}: texref.T is {ref.T!r}, expected the type of the texels, {made.desc}.",
        )
    texture_type = choose(function, "texref.texType", TextureType, ref.texType)
    if not is_readable_as(made, KINDS_BY_TYPE[texture_type]):
        raise invalid(
            f"{function}: texref.texType is {texture_type.name}, but the memory is of kind {made.kind.value!r}; "
            f"declare the reference with the type of this kind."
        )
    return made


def check_reference(function: str, ref: object) -> TextureReference:
    """The reference, which may be bound."""
    if isinstance(ref, BoundTexture):
        return ref.reference
    return check_type(function, "texref", ref, TextureReference, 'TextureReference("float") makes one')


# Functions that bind references, and return bound ones for texture functions


# The default size of cudaBindTexture.
UINT_MAX = 2**32 - 1


@cuda_function
def bindTextureToArray(
    texref: TextureReference | BoundTexture,
    array: Array,
    desc: ChannelFormatDesc | None = None,
    *,
    arithmetic: ArithmeticName = "hardware",
) -> BoundTexture:
    """Binds a reference to an array: `cudaBindTextureToArray`.

    Args:
        texref: a `TextureReference` of the type and the kind of the array. A 1D reference may be bound to a 2D array of
            one row too, and a reference of floats to halves. It is not changed.
        desc: the format of the array, which may be left out.

    Returns:
        A `BoundTexture`, for texture functions, with the present texels of the array.

    Gradients:
        Gradients of reads flow to floating texels of the array.

    Raises:
        CudaError: as in `createTextureObject`, and cudaErrorInvalidChannelDescriptor, if T or `desc` is not the type of
            the texels.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> array = cuda.memcpyToArray(cuda.mallocArray(cuda.createChannelDesc("float"), 3), jnp.array([1.0, 2.0, 4.0]))
        >>> cuda.tex1D(cuda.bindTextureToArray(cuda.TextureReference("float"), array), 99.0)
        Array(4., dtype=float32)
    """
    name = "bindTextureToArray"
    check_type(name, "array", array, Array, "mallocArray makes one")
    return bind(name, texref, ResourceDesc.Array(array), desc, arithmetic)


@cuda_function
def bindTextureToMipmappedArray(
    texref: TextureReference | BoundTexture,
    mipmappedArray: MipmappedArray,
    desc: ChannelFormatDesc | None = None,
    *,
    arithmetic: ArithmeticName = "hardware",
) -> BoundTexture:
    """Binds a reference to a mipmapped array: `cudaBindTextureToMipmappedArray`.

    Args:
        texref: a `TextureReference` of the type and the kind of the array, with ``normalized=1``. It is not changed.
        mipmappedArray: a `MipmappedArray`.
        desc: the format of the array, which may be left out.

    Gradients:
        Gradients of reads flow to floating texels of every level.

    Raises:
        CudaError: as in `bindTextureToArray`.
    """
    name = "bindTextureToMipmappedArray"
    check_type(name, "mipmappedArray", mipmappedArray, MipmappedArray, "mallocMipmappedArray makes one")
    return bind(name, texref, ResourceDesc.MipmappedArray(mipmappedArray), desc, arithmetic)


@cuda_function
def bindTexture(
    offset: int | TextureReference | BoundTexture | None,
    texref: TextureReference | BoundTexture | ArrayLike | None = None,
    devPtr: ArrayLike | ChannelFormatDesc | None = None,
    desc: ChannelFormatDesc | int | None = None,
    size: int | None = None,
    *,
    arithmetic: ArithmeticName = "hardware",
) -> BoundTexture:
    """Binds a reference to linear memory, which `tex1Dfetch` reads: `cudaBindTexture`.

    Args:
        offset: ``0`` or ``None``, in place of the pointer to which CUDA writes the offset of the memory. The offset is
            always 0. It may be left out: ``bindTexture(texref, devPtr, desc, size)``.
        texref: a `TextureReference` of type 1D. Only its `T`, `readMode` and `channelDesc` have an effect.
        devPtr: the memory, as in `ResourceDesc.Linear`.
        desc: its format, by default ``texref.channelDesc``. It may be left out before `size`.
        size: the size of the memory in bytes, as ``sizeInBytes`` in `ResourceDesc.Linear`. The default, and UINT_MAX,
            CUDA's default, mean all of it.

    Gradients:
        Gradients of reads flow to floating texels.

    Raises:
        CudaError: as in `bindTextureToArray`.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> ref = cuda.bindTexture(0, cuda.TextureReference("int"), jnp.array([3, 4]))
        >>> cuda.tex1Dfetch(ref, 1)
        Array(4, dtype=int32)
    """
    name = "bindTexture"
    given = without_offset(name, offset, (texref, devPtr, desc, size))
    reference, memory, format_, *sizes = with_format(given)
    bytes_ = next((n for n in sizes if n is not None), None)
    bytes_ = None if bytes_ == UINT_MAX else bytes_
    return bind(name, reference, ResourceDesc.Linear(memory, format_, bytes_), None, arithmetic)


@cuda_function
def bindTexture2D(
    offset: int | TextureReference | BoundTexture | None,
    texref: TextureReference | BoundTexture | ArrayLike | None = None,
    devPtr: ArrayLike | ChannelFormatDesc | None = None,
    desc: ChannelFormatDesc | int | None = None,
    width: int | None = None,
    height: int | None = None,
    pitch: int | None = None,
    *,
    arithmetic: ArithmeticName = "hardware",
) -> BoundTexture:
    """Binds a reference to rows in linear memory: `cudaBindTexture2D`.

    Args:
        offset: as in `bindTexture`. It may be left out: ``bindTexture2D(texref, devPtr, desc, width, height, pitch)``.
        texref: a `TextureReference` of type 2D. It is not changed.
        devPtr: the memory, as in `ResourceDesc.Pitch2D`.
        desc: its format, by default ``texref.channelDesc``. It may be left out before `width`.
        width, height: the size in elements.
        pitch: the number of bytes from row to row, as in `mallocPitch`. Without it the shape of `devPtr` gives the
            rows.

    Gradients:
        Gradients of reads flow to floating texels.

    Raises:
        CudaError: as in `bindTextureToArray`.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> rows = cuda.mallocPitch(2 * 4, 2)
        >>> memory = cuda.memcpy2D(rows.ptr, rows.pitch, jnp.array([[0.0, 1.0], [2.0, 3.0]]), 8, 8, 2)
        >>> ref = cuda.TextureReference("float", cuda.TextureType.Type2D)
        >>> ref = cuda.bindTexture2D(0, ref, memory, ref.channelDesc, 2, 2, rows.pitch)
        >>> cuda.tex2D(ref, 1.5, 0.5)
        Array(1., dtype=float32)
    """
    name = "bindTexture2D"
    given = without_offset(name, offset, (texref, devPtr, desc, width, height, pitch))
    reference, memory, format_, columns, rows, bytes_, *_ = (*with_format(given), None, None)
    resource = ResourceDesc.Pitch2D(memory, format_, columns, rows, bytes_)
    return bind(name, reference, resource, None, arithmetic)


def without_offset(function: str, offset: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments from the reference on. A call may leave the offset out."""
    if isinstance(offset, TextureReference | BoundTexture):
        arguments = (offset, *arguments)
    elif offset is not None and not isinstance(offset, int):
        raise TypeError(
            f"{function}: offset is a {type(offset).__name__}, expected 0 or None, in place of the pointer to which "
            f"CUDA writes 0, or a TextureReference."
        )
    if arguments[0] is None or arguments[1] is None:
        raise missing(function, "texref" if arguments[0] is None else "devPtr")
    return arguments


def with_format(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with a format in third place. A call may leave it out, also in front of sizes."""
    reference, memory, desc, *sizes = arguments
    if desc is not None and not isinstance(desc, ChannelFormatDesc):
        desc, sizes = None, [desc, *sizes]
    if desc is None and isinstance(reference, TextureReference | BoundTexture):
        desc = reference.channelDesc
    return (reference, memory, desc, *sizes)


def bind(
    function: str, ref: object, resource: ResourceDesc, desc: ChannelFormatDesc | None, arithmetic: ArithmeticName
) -> BoundTexture:
    """The reference bound to a resource, if CUDA allows that."""
    if isinstance(resource.memory, np.ndarray):  # a copy, since it may change later
        resource.memory = np.array(cast(Any, resource.memory))
    bound = BoundTexture(check_reference(function, ref), resource, arithmetic)
    stored = object_of(function, bound).desc
    if desc is not None and check_desc(function, desc) != stored:
        raise CudaError(
            Error.InvalidChannelDescriptor,
            f"{function}: desc is {desc}, expected the format of the array, {stored}; leave it out.",
        )
    return bound
