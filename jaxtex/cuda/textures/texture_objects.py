"""Texture objects: immutable values made of a resource and a descriptor, with CUDA's checks."""

import dataclasses
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ... import modes as core_modes
from ... import texture as core
from ..._checks.dropped import mention_dropped
from ..._jax.versions import stack
from ...modes import Arithmetic, TextureKind
from ...sampler import MAX_ANISOTROPY, Sampler
from ..enums import AddressMode, ArrayFlags, ChannelFormatKind, Error, FilterMode, ReadMode, ResourceType
from ..errors import CudaError, check_type, choose, invalid, release
from ..functions import cuda_function
from ..kinds import NEWEST_COMPUTE_CAPABILITY, TEXTURE_KINDS
from ..memory.arrays import MipmappedArray, mention_unstored
from ..memory.channel_formats import FLOAT, ChannelFormatDesc
from ..memory.resource_descriptor import ResourceDesc
from ..structs import Components, OneLine, value
from .descriptors import (
    AddressModes,
    BorderColor,
    ResourceViewDesc,
    TextureDesc,
    check_blends,
    check_read,
    read_of_view,
)
from .resources import resource_format, resource_levels, view_format

NAME = "createTextureObject"
ArithmeticName = Arithmetic | Literal["hardware", "float"]
CORE_ADDRESS_MODES = {mode: core_modes.AddressMode[mode.name.upper()] for mode in AddressMode}
# Without normalized coordinates CUDA clamps where a mode repeats the texture.
PIXEL_ADDRESS_MODES = CORE_ADDRESS_MODES | {
    AddressMode.Wrap: core_modes.AddressMode.CLAMP,
    AddressMode.Mirror: core_modes.AddressMode.CLAMP,
}
CORE_FILTER_MODES = {mode: core_modes.FilterMode[mode.name.upper()] for mode in FilterMode}
CORE_READ_MODES = {
    ReadMode.ElementType: core_modes.ReadMode.ELEMENT,
    ReadMode.NormalizedFloat: core_modes.ReadMode.NORMALIZED_FLOAT,
}


class Modes(NamedTuple):
    """The modes of a `TextureDesc`; `level_filter` is the filter between mip levels."""

    address: tuple[AddressMode, AddressMode, AddressMode]
    filter: FilterMode
    read: ReadMode
    level_filter: FilterMode


@value("texture")
class TextureObject(OneLine):
    """A texture that can be read: `createTextureObject` makes one, and so does binding a `TextureReference`.

    It is a pytree, so that jitted functions take it as an argument. Its only child is `texture`; the other fields are
    static. There is no handle, and nothing needs to be destroyed.

    Attributes:
        texture: the texels and the border color, a `jaxtex.Texture`.
        sampler: how the texels are read, a `jaxtex.Sampler`.
        desc: the `ChannelFormatDesc` in which the texels are read.
        readMode: the `ReadMode`.
        kind: the kind of the resource, a `jaxtex.TextureKind`. ``texture.kind`` is 2D instead of 1D where a texture
            unit reads a 1D array as an image of one row.
        resType: the `ResourceType`.
        flags: the `ArrayFlags` of the resource.
        absentAlpha: the alpha of a vector of four if the format has none: 1 for a block-compressed array, else 0.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> words = cuda.createTextureObject(cuda.ResourceDesc.Linear(jnp.arange(4)), cuda.TextureDesc())
        >>> jax.jit(cuda.tex1Dfetch)(words, jnp.array([3, 4]))
        Array([3, 0], dtype=int32)
    """

    texture: core.Texture
    sampler: Sampler
    desc: ChannelFormatDesc
    readMode: ReadMode
    kind: TextureKind
    resType: ResourceType
    flags: ArrayFlags = ArrayFlags.Default
    absentAlpha: int = 0


@cuda_function
def createTextureObject(
    pResDesc: ResourceDesc,
    pTexDesc: TextureDesc,
    pResViewDesc: ResourceViewDesc | None = None,
    *,
    arithmetic: ArithmeticName = "hardware",
    compute_capability: float = NEWEST_COMPUTE_CAPABILITY,
) -> TextureObject:
    """Makes a texture object of a resource and a descriptor: `cudaCreateTextureObject`.

    Args:
        pResDesc: the memory, a `ResourceDesc`.
        pTexDesc: how it is read, a `TextureDesc`.
        pResViewDesc: a part of an array or of a mipmapped array, a `ResourceViewDesc`; ``None`` is the whole resource.
        arithmetic: ``"hardware"`` returns the values of an NVIDIA H200's texture unit; ``"float"`` computes weights and
            sums in float32, which is faster. See `jaxtex.Sampler`.

    Returns:
        A `TextureObject` with the texels that the resource has now. A later copy or write returns another array; make
        another texture object from that.

    Gradients:
        Gradients of reads flow to floating texels of the resource, and to ``pTexDesc.borderColor``.

    Raises:
        CudaError: cudaErrorInvalidFilterSetting, for a linear filter of integers; cudaErrorInvalidNormSetting, for
            NormalizedFloat reads of floats or 32-bit integers, and for other reads of normalized formats;
            cudaErrorInvalidChannelDescriptor, for a format that CUDA does not have; cudaErrorNotSupported, for a format
            or a blend of integers that this package does not model; cudaErrorInvalidValue, for everything else that
            CUDA refuses. As in CUDA, the format of the array decides which modes are allowed, not that of a view.
        TypeError: if an argument is of another class.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 4)
        >>> array = cuda.memcpyToArray(array, jnp.array([10.0, 20.0, 30.0, 40.0]))
        >>> linear = cuda.TextureDesc(filterMode=cuda.FilterMode.Linear)
        >>> cuda.tex1D(cuda.createTextureObject(cuda.ResourceDesc.Array(array), linear), 2.0)
        Array(25., dtype=float32)
    """
    resource = check_type(NAME, "pResDesc", pResDesc, ResourceDesc, "ResourceDesc.Array(array) makes one")
    view, texture = pResViewDesc, pTexDesc
    if view is not None:
        view = check_type(
            NAME, "pResViewDesc", view, ResourceViewDesc, "ResourceViewDesc(format, width, height) makes one"
        )
    modes = modes_of(check_type(NAME, "pTexDesc", texture, TextureDesc, "TextureDesc() makes one"))
    held = resource_format(NAME, resource)
    mention_dropped(NAME, resource.memory)
    if isinstance(resource.memory, MipmappedArray):
        mention_unstored(NAME, resource.memory)
    check_read(NAME, held, modes.read, modes.filter, srgb=bool(texture.sRGB))
    desc = held if view is None else view_format(NAME, resource, view)
    modes = modes._replace(read=read_of_view(held, desc, modes.read))
    levels, kind, flags = resource_levels(NAME, resource, desc, view, compute_capability)
    resource_type, stored = ResourceType(resource.resType), kind
    check_fields(texture, modes, desc, kind, resource_type)
    address = core_address_modes(texture, modes, kind)
    bordered = modes.filter is FilterMode.Linear and address[1] == "border"
    if kind is TextureKind.TEXTURE1D and bordered and resource_type is not ResourceType.Linear:
        # A texture unit reads a 1D array as an image of height 1 at y = 0, so that half of the weight falls outside.
        # Results differ only if the address mode of y is border.
        levels, stored = tuple(level[None] for level in levels), TextureKind.TEXTURE2D
    address = address[: stored.texel_ndim]
    border = border_color(texture.borderColor, desc, modes.read) if "border" in address else None
    sampler = sampler_of(texture, modes, desc, address, arithmetic, is_cube=kind.is_cube)
    built = TEXTURE_KINDS[stored].build(levels, border_color=border)
    alpha = int(held.block_format is not None and view is None)
    made = TextureObject(built, sampler, desc, modes.read, kind, resource_type, flags, alpha)
    given = (resource, texture, view)
    object.__setattr__(made, "_made_of", tuple(part and dataclasses.replace(part) for part in given))
    return made


@cuda_function
def destroyTextureObject(texObject: TextureObject) -> None:
    """Marks a texture object as destroyed: `cudaDestroyTextureObject`. There is nothing to release.

    Args:
        texObject: a `TextureObject`. Later use is an error, except of copies that a JAX transformation made.

    Raises:
        CudaError: cudaErrorInvalidResourceHandle, if it was destroyed before.
    """
    release("destroyTextureObject", _check_object("destroyTextureObject", texObject))


@cuda_function
def getTextureObjectResourceDesc(texObject: TextureObject) -> ResourceDesc:
    """Returns the resource that a texture object was made of: `cudaGetTextureObjectResourceDesc`.

    Args:
        texObject: a `TextureObject` as `createTextureObject` returned it. An object that went through a transformation
            has no descriptors.

    Raises:
        CudaError: cudaErrorNotSupported, if the object has no descriptors.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> t = cuda.createTextureObject(cuda.ResourceDesc.Linear(jnp.arange(4)), cuda.TextureDesc())
        >>> cuda.getTextureObjectResourceDesc(t).resType.name
        'Linear'
    """
    return _made_of("getTextureObjectResourceDesc", texObject)[0]


@cuda_function
def getTextureObjectTextureDesc(texObject: TextureObject) -> TextureDesc:
    """Returns the descriptor that a texture object was made with: `cudaGetTextureObjectTextureDesc`."""
    return _made_of("getTextureObjectTextureDesc", texObject)[1]


@cuda_function
def getTextureObjectResourceViewDesc(texObject: TextureObject) -> ResourceViewDesc | None:
    """Returns the view that a texture object was made with: `cudaGetTextureObjectResourceViewDesc`.

    Returns:
        A `ResourceViewDesc`, or ``None`` if there was none.
    """
    return _made_of("getTextureObjectResourceViewDesc", texObject)[2]


def _check_object(function: str, t: object) -> TextureObject:
    return check_type(function, "texObject", t, TextureObject, "createTextureObject makes one")


def _made_of(function: str, t: object) -> tuple[ResourceDesc, TextureDesc, ResourceViewDesc | None]:
    """The descriptors of a texture object (801)."""
    made_of = getattr(_check_object(function, t), "_made_of", None)
    if made_of is None:
        raise CudaError(
            Error.NotSupported,
            f"{function}: texObject went through a transformation such as jax.jit, which keeps no descriptors, "
            f"expected what createTextureObject returned; keep the descriptors beside the object.",
        )
    return made_of


def is_readable_as(t: TextureObject, kind: TextureKind) -> bool:
    """Whether the functions of a kind read the texture. Those of 1D also read a 2D array of one row.

    ``cudaMallocArray(&array, &desc, width, 1)`` makes such an array.
    """
    has_one_row = t.kind is TextureKind.TEXTURE2D and t.texture.shape[0] == 1
    return t.kind is kind or (kind is TextureKind.TEXTURE1D and has_one_row)


def modes_of(texture: TextureDesc) -> Modes:
    """The modes of a descriptor as members of their enumerations."""
    return Modes(
        three_modes(NAME, "pTexDesc.addressMode", texture.addressMode, AddressMode.Wrap),
        choose(NAME, "pTexDesc.filterMode", FilterMode, texture.filterMode),
        choose(NAME, "pTexDesc.readMode", ReadMode, texture.readMode),
        choose(NAME, "pTexDesc.mipmapFilterMode", FilterMode, texture.mipmapFilterMode),
    )


def three_modes(
    function: str, argument: str, modes: AddressModes, default: AddressMode
) -> tuple[AddressMode, AddressMode, AddressMode]:
    """An address mode for each of three axes; axes without one have the default."""
    listed = tuple(modes) if isinstance(modes, tuple | list | Components) else (modes,) * 3
    if len(listed) > 3:
        raise invalid(f"{function}: {argument} has {len(listed)} modes, expected at most 3, in x, y, z order.")
    padded = (*listed, default, default, default)
    x, y, z = (choose(function, argument, AddressMode, mode) for mode in padded[:3])
    return x, y, z


def check_fields(
    texture: TextureDesc, modes: Modes, desc: ChannelFormatDesc, kind: TextureKind, resource_type: ResourceType
) -> None:
    """Refuses fields of the descriptor that are wrong, or that the resource does not allow (1, 801)."""
    color: BorderColor = texture.borderColor
    shape = (len(color),) if isinstance(color, tuple | Components) else jnp.shape(color)
    if shape != (4,):
        raise invalid(f"{NAME}: pTexDesc.borderColor has shape {shape}, expected four floats, red to alpha.")
    if texture.seamlessCubemap and not kind.is_cube:
        raise invalid(
            f"{NAME}: pTexDesc.seamlessCubemap is set for a resource of kind {kind.value!r}, expected a cubemap; leave "
            f"it out."
        )
    mipmapped = resource_type is ResourceType.MipmappedArray
    filters = {"filterMode": modes.filter} | ({"mipmapFilterMode": modes.level_filter} if mipmapped else {})
    check_blends(NAME, desc, modes.read, **filters)
    if mipmapped and not (texture.normalizedCoords or kind.is_cube):
        raise invalid(
            f"{NAME}: pTexDesc.normalizedCoords is {texture.normalizedCoords!r} for a mipmapped array, whose levels "
            f"differ in size; set it to 1."
        )


def core_address_modes(texture: TextureDesc, modes: Modes, kind: TextureKind) -> tuple[core_modes.AddressMode, ...]:
    """The address modes of x, y and z in the core."""
    names = CORE_ADDRESS_MODES if texture.normalizedCoords or kind.is_cube else PIXEL_ADDRESS_MODES
    return tuple(names[mode] for mode in modes.address)


def sampler_of(
    texture: TextureDesc,
    modes: Modes,
    desc: ChannelFormatDesc,
    address: tuple[core_modes.AddressMode, ...],
    arithmetic: ArithmeticName,
    *,
    is_cube: bool,
) -> Sampler:
    """The sampler of the core. CUDA ignores sRGB, and clamps the anisotropy, where the core would refuse them."""
    return Sampler(
        address_mode=address,
        filter_mode=CORE_FILTER_MODES[modes.filter],
        read_mode=CORE_READ_MODES[ReadMode.NormalizedFloat if desc.is_normalized else modes.read],
        normalized_coords=bool(texture.normalizedCoords) or is_cube,
        srgb=bool(texture.sRGB)
        and (desc.is_normalized or modes.read is ReadMode.NormalizedFloat)
        and desc.storage == (ChannelFormatKind.Unsigned, 8),
        mipmap_filter_mode=CORE_FILTER_MODES[modes.level_filter],
        mipmap_level_bias=texture.mipmapLevelBias,
        min_mipmap_level_clamp=texture.minMipmapLevelClamp,
        max_mipmap_level_clamp=texture.maxMipmapLevelClamp,
        max_anisotropy=min(max(int(texture.maxAnisotropy), 1), MAX_ANISOTROPY),
        seamless_cubemap=bool(texture.seamlessCubemap),
        arithmetic=arithmetic,
    )


def border_color(color: BorderColor, desc: ChannelFormatDesc, read_mode: ReadMode) -> jax.Array:
    """The border color in the units of a read: floats, or the bits of these floats where integers are read as such."""
    color = tuple(color) if isinstance(color, Components) else color
    if isinstance(color, tuple) and any(isinstance(c, jax.Array) for c in color):
        # Only JAX can hold traced components.
        color = stack([jnp.asarray(c, jnp.float32) for c in color])
    elif not isinstance(color, jax.Array):
        # NumPy keeps the bits of a NaN, which may be those of an integer.
        color = np.asarray(color, np.float32)
    floats = jnp.asarray(color, jnp.float32)[: desc.channels]
    if read_mode is ReadMode.NormalizedFloat or desc.is_normalized or desc.storage[0] is FLOAT:
        return floats
    return jax.lax.bitcast_convert_type(floats, jnp.uint32).astype(desc.dtype)
