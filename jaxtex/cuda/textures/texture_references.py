"""Texture references, which CUDA 12 removed, as immutable values: binding one returns a texture object."""

# pyright: strict

import dataclasses

from jax.typing import ArrayLike

from ..enums import AddressMode, FilterMode, ReadMode, TextureType
from ..errors import INVALID_CHANNEL_DESCRIPTOR, INVALID_VALUE, CudaError, check_type, choose
from ..memory.arrays import Array, MipmappedArray
from ..memory.channel_formats import ChannelFormatDesc, parse_type
from ..memory.resource_descriptor import ResourceDesc
from ..texture_kinds import TEXTURE_KINDS
from .descriptors import AddressModes, TextureDesc
from .texture_objects import ArithmeticName, TextureObject, createTextureObject, is_readable_as, three_modes

KINDS_BY_TYPE = {row.texture_type: kind for kind, row in TEXTURE_KINDS.items()}


@dataclasses.dataclass(frozen=True)
class TextureReference:
    """A texture reference, ``texture<T, texType, readMode>``, with the attributes of its declaration.

    Binding does not change a reference; it returns a `TextureObject`. The defaults are those of the C++ class, not
    those of a zeroed `TextureDesc`: the address mode is **Clamp**.

    Args:
        T: the name of the type of the texels, such as ``"float"``.
        texType: a `TextureType`, by default 1D.
        readMode: a `ReadMode`, by default ElementType.
        normalized: as ``normalizedCoords`` in `TextureDesc`. `bindTexture` ignores this argument and those below.
        filterMode, addressMode, sRGB, maxAnisotropy: as in `TextureDesc`, except for the default of `addressMode`.
        mipmapFilterMode, mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp: as in `TextureDesc`.
        disableTrilinearOptimization: as in `TextureDesc`.

    Source:
        CUDA C++ Programming Guide 11, "Texture Reference API".

    Example:
        >>> from jaxtex import cuda
        >>> cuda.TextureReference("float", cuda.TextureType.Type2D).addressMode[0].name
        'Clamp'
    """

    T: str
    texType: TextureType | int = TextureType.Type1D
    readMode: ReadMode | int = ReadMode.ElementType
    normalized: int = 0
    filterMode: FilterMode | int = FilterMode.Point
    addressMode: AddressModes = (AddressMode.Clamp, AddressMode.Clamp, AddressMode.Clamp)
    sRGB: int = 0
    maxAnisotropy: int = 0
    mipmapFilterMode: FilterMode | int = FilterMode.Point
    mipmapLevelBias: float = 0.0
    minMipmapLevelClamp: float = 0.0
    maxMipmapLevelClamp: float = 0.0
    disableTrilinearOptimization: int = 0


def bindTextureToArray(
    ref: TextureReference, array: Array, *, arithmetic: ArithmeticName = "hardware"
) -> TextureObject:
    """Binds a reference to an array: `cudaBindTextureToArray`.

    Args:
        ref: a `TextureReference` of the type and the kind of the array. A 1D reference may be bound to a 2D array of
            one row too.
        array: an `Array`.
        arithmetic: as in `createTextureObject`.

    Returns:
        A `TextureObject`. Binding the reference to another array makes another object; there is nothing to unbind.

    Gradients:
        Gradients of reads flow to floating texels of the array.

    Raises:
        CudaError: as in `createTextureObject`, and cudaErrorInvalidChannelDescriptor, if T is not the type of the
            texels.

    Source:
        CUDA C++ Programming Guide 11, "Texture Reference API".

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.memcpyToArray(cuda.mallocArray(cuda.createChannelDesc("float"), 3), jnp.array([1.0, 2.0, 4.0]))
        >>> cuda.tex1D(cuda.bindTextureToArray(cuda.TextureReference("float"), array), 99.0)
        Array(4., dtype=float32)
    """
    return _bind("bindTextureToArray", ref, ResourceDesc.Array(array), arithmetic)


def bindTextureToMipmappedArray(
    ref: TextureReference, mipmap: MipmappedArray, *, arithmetic: ArithmeticName = "hardware"
) -> TextureObject:
    """Binds a reference to a mipmapped array: `cudaBindTextureToMipmappedArray`.

    Args:
        ref: a `TextureReference` of the type and the kind of the array, with ``normalized=1``.
        mipmap: a `MipmappedArray`.
        arithmetic: as in `createTextureObject`.

    Returns:
        A `TextureObject`.

    Gradients:
        Gradients of reads flow to floating texels of every level.

    Raises:
        CudaError: as in `bindTextureToArray`.

    Source:
        CUDA C++ Programming Guide 11, "Texture Reference API".

    Example:
        >>> from jaxtex import cuda
        >>> mipmap = cuda.mallocMipmappedArray(cuda.createChannelDesc("float"), (4, 4, 0), 3)
        >>> ref = cuda.TextureReference("float", cuda.TextureType.Type2D, normalized=1, maxMipmapLevelClamp=2.0)
        >>> cuda.bindTextureToMipmappedArray(ref, mipmap).texture.num_levels
        3
    """
    return _bind("bindTextureToMipmappedArray", ref, ResourceDesc.MipmappedArray(mipmap), arithmetic)


def bindTexture(
    ref: TextureReference,
    devPtr: ArrayLike,
    desc: ChannelFormatDesc | None = None,
    size: int | None = None,
    *,
    arithmetic: ArithmeticName = "hardware",
) -> TextureObject:
    """Binds a reference to linear memory, which `tex1Dfetch` reads: `cudaBindTexture`, with an offset of 0.

    Args:
        ref: a `TextureReference` of type 1D. Only its `T` and `readMode` have an effect.
        devPtr, desc: the memory and its format, as in `ResourceDesc.Linear`.
        size: the size of the memory in bytes, as ``sizeInBytes`` in `ResourceDesc.Linear`.
        arithmetic: as in `createTextureObject`.

    Returns:
        A `TextureObject`.

    Gradients:
        Gradients of reads flow to floating texels.

    Raises:
        CudaError: as in `bindTextureToArray`.

    Source:
        CUDA C++ Programming Guide 11, "Texture Reference API".

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> cuda.tex1Dfetch(cuda.bindTexture(cuda.TextureReference("int"), jnp.array([3, 4])), 1)
        Array(4, dtype=int32)
    """
    ref = _check_reference("bindTexture", ref)
    plain = TextureReference(ref.T, ref.texType, ref.readMode)
    return _bind("bindTexture", plain, ResourceDesc.Linear(devPtr, desc, size), arithmetic)


def bindTexture2D(
    ref: TextureReference,
    devPtr: ArrayLike,
    desc: ChannelFormatDesc | None = None,
    width: int | None = None,
    height: int | None = None,
    *,
    arithmetic: ArithmeticName = "hardware",
) -> TextureObject:
    """Binds a reference to rows in linear memory: `cudaBindTexture2D`, with an offset of 0.

    Args:
        ref: a `TextureReference` of type 2D.
        devPtr, desc, width, height: the memory, its format and its size, as in `ResourceDesc.Pitch2D`.
        arithmetic: as in `createTextureObject`.

    Returns:
        A `TextureObject`.

    Gradients:
        Gradients of reads flow to floating texels.

    Raises:
        CudaError: as in `bindTextureToArray`.

    Source:
        CUDA C++ Programming Guide 11, "Texture Reference API".

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> ref = cuda.TextureReference("float", cuda.TextureType.Type2D)
        >>> cuda.tex2D(cuda.bindTexture2D(ref, jnp.array([[0.0, 1.0], [2.0, 3.0]])), 1.5, 0.5)
        Array(1., dtype=float32)
    """
    return _bind("bindTexture2D", ref, ResourceDesc.Pitch2D(devPtr, desc, width, height), arithmetic)


def _check_reference(function: str, ref: object) -> TextureReference:
    return check_type(function, "ref", ref, TextureReference, 'TextureReference("float") makes one')


def _bind(function: str, ref: object, resource: ResourceDesc, arithmetic: ArithmeticName) -> TextureObject:
    reference = _check_reference(function, ref)
    names = {field.name for field in dataclasses.fields(TextureDesc)}
    shared = {field.name for field in dataclasses.fields(TextureReference)} & names - {"addressMode"}
    desc = TextureDesc(
        addressMode=three_modes(function, "ref.addressMode", reference.addressMode, AddressMode.Clamp),
        normalizedCoords=reference.normalized,
        **{name: getattr(reference, name) for name in shared},
    )
    bound = createTextureObject(resource, desc, arithmetic=arithmetic)
    base, length = parse_type(function, "ref.T", reference.T)
    if (base, length or 1) != (bound.desc.stored_base, bound.desc.channels):
        raise CudaError(
            INVALID_CHANNEL_DESCRIPTOR,
            f"{function}: ref.T is {reference.T!r}, expected the type of the texels, {bound.desc}.",
        )
    texture_type = choose(function, "ref.texType", TextureType, reference.texType)
    if not is_readable_as(bound, KINDS_BY_TYPE[texture_type]):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: ref.texType is {texture_type.name}, but the memory is of kind {bound.kind.value!r}; declare "
            f"the reference with the type of this kind.",
        )
    return bound
