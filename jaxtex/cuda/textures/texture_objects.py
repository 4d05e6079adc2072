"""Texture objects: a resource and a descriptor, checked as CUDA checks them, as one immutable value."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ... import texture as core
from ...modes import TextureKind
from ...sampler import MAX_ANISOTROPY, Sampler
from ..enums import AddressMode, ArrayFlags, FilterMode, ReadMode, ResourceType
from ..errors import INVALID_VALUE, CudaError, check_type, choose
from ..limits import NEWEST_COMPUTE_CAPABILITY
from ..memory.channel_formats import FLOAT, ChannelFormatDesc, check_modelled
from ..memory.resource_descriptor import ResourceDesc
from ..pytrees import pytree
from ..texture_kinds import TEXTURE_KINDS
from .descriptors import ResourceViewDesc, TextureDesc
from .format_checks import check_levels, check_read
from .resources import format_of, memory_of

NAME = "createTextureObject"
ADDRESS_MODES = {
    AddressMode.Wrap: "wrap",
    AddressMode.Clamp: "clamp",
    AddressMode.Mirror: "mirror",
    AddressMode.Border: "border",
}
FILTER_MODES = {FilterMode.Point: "point", FilterMode.Linear: "linear"}
READ_MODES = {ReadMode.ElementType: "element", ReadMode.NormalizedFloat: "normalized_float"}


@pytree("texture")
@dataclasses.dataclass(frozen=True, eq=False)
class TextureObject:
    """A texture that can be read: what `createTextureObject` and the binds of a `TextureReference` return.

    A pytree, to be passed to jitted functions as an argument. It has no handle and nothing to destroy.

    Attributes:
        texture: the texels and the border colour, a `jaxtex.Texture`.
        sampler: how they are read, a `jaxtex.Sampler`, static.
        desc: the format as it is read, static.
        readMode: the `ReadMode`, static.
        kind: the shape of the resource, static. The texture's differs where CUDA reads one row as an image.
        resType: the `ResourceType`, static.
        flags: the `ArrayFlags` of the resource, static.

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


def createTextureObject(
    resource: ResourceDesc,
    texture: TextureDesc,
    view: ResourceViewDesc | None = None,
    *,
    arithmetic: str = "hardware",
    compute_capability: float = NEWEST_COMPUTE_CAPABILITY,
) -> TextureObject:
    """Makes a texture of a resource and a descriptor, or says why CUDA would not: `cudaCreateTextureObject`.

    Args:
        resource: a `ResourceDesc`.
        texture: a `TextureDesc`.
        view: a `ResourceViewDesc`, for arrays and mipmapped arrays; ``None`` is the whole resource.
        arithmetic: ``"hardware"`` gives the values of an NVIDIA texture unit to the last bit; ``"float"`` computes in
            float32, which is less work.
        compute_capability: of the card whose size limits apply to linear and pitched memory.

    Returns:
        A `TextureObject`, a snapshot: later values of the array are other textures.

    Gradients: of reads flow to floating texels in the resource, and to ``texture.borderColor``.

    Raises:
        CudaError: the code of CUDA: cudaErrorInvalidFilterSetting for a linear filter of integers,
            cudaErrorInvalidNormSetting for NormalizedFloat of floats or 32-bit integers, and for normalised kinds
            without it, cudaErrorInvalidChannelDescriptor, cudaErrorNotSupported for formats that are not modelled,
            else cudaErrorInvalidValue.

    Source: CUDA Runtime API, `cudaCreateTextureObject`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 4)
        >>> array = cuda.memcpyToArray(array, jnp.array([10.0, 20.0, 30.0, 40.0]))
        >>> linear = cuda.TextureDesc(filterMode=cuda.FilterMode.Linear)
        >>> cuda.tex1D(cuda.createTextureObject(cuda.ResourceDesc.Array(array), linear), 2.0)
        Array(25., dtype=float32)
    """
    resource = check_type(NAME, "resource", resource, ResourceDesc, "ResourceDesc.Array(array) makes one")
    texture = with_enums(check_type(NAME, "texture", texture, TextureDesc, "TextureDesc() makes one"))
    read, mode = ReadMode(texture.readMode), FilterMode(texture.filterMode)
    desc = format_of(NAME, resource, view)
    check_read(NAME, desc, read, mode, srgb=bool(texture.sRGB))
    check_modelled(NAME, desc)
    levels, kind, flags = memory_of(NAME, resource, desc, view, compute_capability)
    check_fields(texture, desc, kind, resource.resType)
    modes = address_modes(texture, kind)
    as_image = mode is FilterMode.Linear and modes[1:2] == ("border",) and resource.resType != ResourceType.Linear
    if kind is TextureKind.TEXTURE1D and as_image:
        # The unit reads a row as an image of height 1 at y = 0, half of it border: seen only if y has a border.
        levels, stored = tuple(level[None] for level in levels), TextureKind.TEXTURE2D
    else:
        stored = kind
    border = border_color(texture.borderColor, desc, read) if "border" in modes[: stored.texel_ndim] else None
    sampler = sampler_of(texture, desc, modes[: stored.texel_ndim], arithmetic, cube=kind.is_cube)
    built = TEXTURE_KINDS[stored].build(levels, border_color=border)
    return TextureObject(built, sampler, desc, read, kind, ResourceType(resource.resType), flags)


def is_readable_as(t: TextureObject, kind: TextureKind) -> bool:
    """Whether the functions of a kind read the texture. Those of 1D also read a 2D array of one row.

    ``cudaMallocArray(&array, &desc, width, 1)`` makes such an array.
    """
    has_one_row = t.kind is TextureKind.TEXTURE2D and t.texture.shape[0] == 1
    return t.kind is kind or (kind is TextureKind.TEXTURE1D and has_one_row)


def check_fields(texture: TextureDesc, desc: ChannelFormatDesc, kind: TextureKind, resource_type: int) -> None:
    """Refuses fields of the descriptor that do not go with the resource (1, 26)."""
    if texture.seamlessCubemap and not kind.is_cube:
        raise CudaError(
            INVALID_VALUE,
            f"{NAME}: texture.seamlessCubemap is set for a resource of kind {kind.value!r}, expected a cubemap; leave "
            f"it out.",
        )
    if resource_type == ResourceType.MipmappedArray:
        check_levels(NAME, desc, ReadMode(texture.readMode), FilterMode(texture.mipmapFilterMode))
        if not (texture.normalizedCoords or kind.is_cube):
            raise CudaError(
                INVALID_VALUE,
                f"{NAME}: texture.normalizedCoords is {texture.normalizedCoords!r} for a mipmapped array, whose levels "
                f"differ in size; set it to 1.",
            )


def with_enums(texture: TextureDesc) -> TextureDesc:
    """The descriptor with every number made a member of its enumeration, and a mode for each of three axes."""
    modes = texture.addressMode
    modes = modes if isinstance(modes, tuple) else (modes,) * 3
    if len(modes) > 3:
        raise CudaError(
            INVALID_VALUE, f"{NAME}: texture.addressMode has {len(modes)} modes, expected at most 3, in x, y, z order."
        )
    modes += (AddressMode.Wrap,) * (3 - len(modes))
    return dataclasses.replace(
        texture,
        addressMode=tuple(choose(NAME, "texture.addressMode", AddressMode, mode) for mode in modes),
        filterMode=choose(NAME, "texture.filterMode", FilterMode, texture.filterMode),
        readMode=choose(NAME, "texture.readMode", ReadMode, texture.readMode),
        mipmapFilterMode=choose(NAME, "texture.mipmapFilterMode", FilterMode, texture.mipmapFilterMode),
    )


def address_modes(texture: TextureDesc, kind: TextureKind) -> tuple[str, ...]:
    """The three modes as the core names them. CUDA silently clamps where pixel coordinates would repeat."""
    modes = tuple(ADDRESS_MODES[mode] for mode in texture.addressMode)
    if texture.normalizedCoords or kind.is_cube:
        return modes
    return tuple("clamp" if mode in ("wrap", "mirror") else mode for mode in modes)


def sampler_of(
    texture: TextureDesc, desc: ChannelFormatDesc, modes: tuple[str, ...], arithmetic: str, *, cube: bool
) -> Sampler:
    """The core's sampler. CUDA ignores sRGB, and clamps the anisotropy, where the core would refuse."""
    fractions = texture.readMode is ReadMode.NormalizedFloat
    return Sampler(
        address_mode=modes,
        filter_mode=FILTER_MODES[FilterMode(texture.filterMode)],
        read_mode=READ_MODES[ReadMode(texture.readMode)],
        normalized_coords=bool(texture.normalizedCoords) or cube,
        srgb=bool(texture.sRGB) and fractions and desc.dtype == np.uint8,
        mipmap_filter_mode=FILTER_MODES[FilterMode(texture.mipmapFilterMode)],
        mipmap_level_bias=texture.mipmapLevelBias,
        min_mipmap_level_clamp=texture.minMipmapLevelClamp,
        max_mipmap_level_clamp=texture.maxMipmapLevelClamp,
        max_anisotropy=min(max(int(texture.maxAnisotropy), 1), MAX_ANISOTROPY),
        seamless_cubemap=bool(texture.seamlessCubemap),
        arithmetic=arithmetic,
    )


def border_color(color: Any, desc: ChannelFormatDesc, read: ReadMode) -> jax.Array:
    """The border colour in units of the returned value: floats, or for integers as elements their bits."""
    if not isinstance(color, jax.Array):
        # NumPy keeps the bits of what is no number; only JAX can hold a value that is being traced.
        traced = any(isinstance(c, jax.Array) for c in color)
        color = jnp.stack([jnp.asarray(c, jnp.float32) for c in color]) if traced else np.asarray(color, np.float32)
    if color.shape != (4,):
        raise CudaError(
            INVALID_VALUE, f"{NAME}: texture.borderColor has shape {color.shape}, expected four floats, red to alpha."
        )
    words = jnp.asarray(color, jnp.float32)[: desc.channels]
    if read is ReadMode.NormalizedFloat or desc.storage[0] is FLOAT:
        return words
    return jax.lax.bitcast_convert_type(words, jnp.uint32).astype(desc.dtype)
