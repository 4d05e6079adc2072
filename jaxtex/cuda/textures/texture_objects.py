"""Texture objects: immutable values made of a resource and a descriptor, with CUDA's checks."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import dataclasses
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ... import modes as core_modes
from ... import texture as core
from ..._blocks.formats import blocks_along, decoded
from ..._checks.dropped import mention_dropped
from ..._checks.numbers import on_device
from ..._jax.versions import stack
from ...modes import Arithmetic, TextureKind
from ...sampler import MAX_ANISOTROPY, Sampler
from ...unit import UnitTexture, bind
from ..descriptors import (
    AddressModes,
    BorderColor,
    ResourceDesc,
    ResourceViewDesc,
    TextureDesc,
    check_blends,
    check_read,
    read_of_view,
)
from ..enums import (
    AddressMode,
    ArrayFlags,
    ChannelFormatKind,
    Error,
    FilterMode,
    ReadMode,
    ResourceType,
    ResourceViewFormat,
)
from ..errors import CudaError, check_type, choose, invalid, release
from ..functions import cuda_function
from ..kinds import NEWEST_COMPUTE_CAPABILITY, PITCH_ALIGNMENT, TEXTURE_KINDS, check_limits
from ..memory.arrays import Array, Extent, MipmappedArray, level_extent, mention_unstored
from ..memory.channel_formats import (
    CHANNEL_TYPES,
    FLOAT,
    ChannelFormatDesc,
    as_texels,
    check_desc,
    createChannelDesc,
    infer_desc,
    unmodeled,
)
from ..memory.numbers import as_memory, bit_cast, counts
from ..memory.pitched_memory import Region, read_region
from ..structs import Components, OneLine, value

# The format of a resource or a view, and the texels of its levels as the core stores textures


# Names of view formats, and of their types.
VIEW_TYPES = {
    f"{row.view_format}{channels}": f"{row.name}{channels}" for row in CHANNEL_TYPES for channels in (1, 2, 4)
}
ARRAY_TYPES: dict[ResourceType, type[Array | MipmappedArray]] = {
    ResourceType.Array: Array,
    ResourceType.MipmappedArray: MipmappedArray,
}
# For plain memory: the number of axes without channels, the row of `LIMITS`, and the kind of texture.
PLAIN_TYPES = {
    ResourceType.Linear: (1, "maxTexture1DLinear", TextureKind.TEXTURE1D),
    ResourceType.Pitch2D: (2, "maxTexture2DLinear", TextureKind.TEXTURE2D),
}


def resource_format(function: str, resource: ResourceDesc) -> ChannelFormatDesc:
    """The format of a resource."""
    resource_type = choose(function, "pResDesc.resType", ResourceType, resource.resType)
    array_type = ARRAY_TYPES.get(resource_type)
    if resource.flags:
        raise invalid(f"{function}: pResDesc.flags is {resource.flags!r}, expected 0; leave it out.")
    if array_type:
        remedy = f"malloc{array_type.__name__} makes one"
        return check_type(function, "pResDesc.memory", resource.memory, array_type, remedy).desc
    if resource.desc is not None:
        return check_desc(function, resource.desc)
    ndim, *_ = PLAIN_TYPES[resource_type]
    shape, dtype = jnp.shape(plain_memory(function, resource)), stored_dtype(plain_memory(function, resource))
    return infer_desc(function, dtype, shape[-1] if len(shape) > ndim else 1)


def resource_levels(
    function: str,
    resource: ResourceDesc,
    desc: ChannelFormatDesc,
    view: ResourceViewDesc | None,
    compute_capability: float,
) -> tuple[tuple[jax.Array, ...], TextureKind, ArrayFlags]:
    """The levels of a resource in the format `desc`, its kind and its flags."""
    memory = resource.memory
    if not isinstance(memory, Array | MipmappedArray):
        if desc.block_side > 1:
            raise unmodeled(function, "pResDesc.desc", f"{ChannelFormatKind(desc.f).name} in memory that is no array")
        texels, kind = plain_texels(function, resource, desc, compute_capability)
        if desc.block_format is not None:
            texels = block_texels(function, texels, desc, texels.shape[:-1])
        return (texels,), kind, ArrayFlags.Default
    levels = (memory.texels,) if isinstance(memory, Array) else memory.levels
    if memory.kind is TextureKind.CUBEMAP_LAYERED:
        levels = tuple(level.reshape(-1, 6, *level.shape[1:]) for level in levels)
    if view is not None:
        levels = view_levels(function, memory, levels, view, desc)
    if desc.block_format is not None:
        first, extent = (0, memory.extent) if view is None else (view.firstMipmapLevel, viewed_extent(memory, desc))
        levels = tuple(
            block_texels(function, level, desc, tuple(n for n in level_extent(extent, memory.flags, k)[1::-1] if n))
            for k, level in enumerate(levels, first)
        )
    return levels, memory.kind, memory.flags


def viewed_extent(memory: Array | MipmappedArray, desc: ChannelFormatDesc) -> Extent:
    """The extent of an array in texels of the format of its view."""
    width, height, depth = memory.extent
    return Extent(desc.block_side * width, desc.block_side * height, depth)


def block_texels(function: str, words: jax.Array, desc: ChannelFormatDesc, sizes: tuple[int, ...]) -> jax.Array:
    """The texels of a level of blocks, (..., H, W, C), of their words. `sizes` are those of its last axes."""
    assert desc.block_format is not None
    *front, _ = words.shape
    front, stored = front[: -len(sizes)], tuple(front[-len(sizes) :])
    if stored != tuple(blocks_along(n, desc.block_side) for n in sizes):
        # A view of words: an odd number of blocks, halved, is no whole number of texels.
        raise unmodeled(function, "pResViewDesc", f"a level of {stored} blocks for {sizes} texels")
    return decoded(bit_cast(words, np.dtype(np.uint8)), block_format=desc.block_format, shape=(*front, *sizes))


def plain_memory(function: str, resource: ResourceDesc) -> Any:
    """The memory of a linear or pitched resource, unconverted."""
    if resource.memory is None or isinstance(resource.memory, Array | MipmappedArray):
        raise TypeError(
            f"{function}: pResDesc.memory is {type(resource.memory).__name__} for a resource of type "
            f"{ResourceType(resource.resType).name}, expected memory, a JAX or NumPy array."
        )
    return resource.memory


def stored_dtype(memory: Any) -> np.dtype:
    """The dtype in which numbers are stored: 32 bits in place of 64."""
    dtype = np.dtype(memory.dtype if isinstance(memory, jax.Array | np.ndarray) else jnp.asarray(memory).dtype)
    return np.dtype(f"{dtype.kind}4") if dtype.itemsize == 8 and dtype.kind in "iuf" else dtype


def plain_numbers(function: str, resource: ResourceDesc, desc: ChannelFormatDesc) -> jax.Array:
    """The numbers in plain memory, of the dtype of a format. Doubles are pairs of integers, and uint8 are bytes."""
    memory = plain_memory(function, resource)
    if getattr(memory, "dtype", None) == np.float64 and desc.dtype.kind in "iu" and desc.dtype.itemsize == 4:
        if isinstance(memory, np.ndarray):
            return on_device(np.ascontiguousarray(memory).view(desc.dtype))
        return bit_cast(on_device(memory), desc.dtype)
    if (
        getattr(memory, "dtype", None) == np.uint8
        and desc.dtype.itemsize > 1
        and not memory.shape[-1] % desc.texel_bytes
    ):
        return bit_cast(on_device(memory), desc.dtype)
    return as_texels(function, "pResDesc.memory", memory, desc)


def plain_texels(
    function: str, resource: ResourceDesc, desc: ChannelFormatDesc, compute_capability: float
) -> tuple[jax.Array, TextureKind]:
    """The texels of linear or pitched memory, (N, C) or (H, W, C), and their kind."""
    ndim, limit, kind = PLAIN_TYPES[ResourceType(resource.resType)]
    pitched = resource.pitchInBytes is not None
    memory = pitched_rows(function, resource, desc) if pitched else plain_numbers(function, resource, desc)
    texels = with_channels(function, memory, desc, ndim)
    stored = texels.shape[ndim - 1 :: -1]
    given = (resource.width, resource.height)
    if ndim == 1:
        given = (None if resource.sizeInBytes is None else resource.sizeInBytes // desc.texel_bytes,)
    sizes = tuple(n if size is None else size for n, size in zip(stored, given))
    if any(not 1 <= size <= n for size, n in zip(sizes, stored)):
        raise invalid(
            f"{function}: the resource has {sizes} elements (sizeInBytes, or width and height), expected at least one "
            f"and at most the {stored} elements of its memory."
        )
    check_limits(function, limit, sizes, compute_capability)
    return texels[tuple(slice(size) for size in reversed(sizes))], kind


def pitched_rows(function: str, resource: ResourceDesc, desc: ChannelFormatDesc) -> jax.Array:
    """The texels of memory with a pitch, (H, W, C)."""
    pitch, width, height = resource.pitchInBytes, resource.width, resource.height
    if resource.desc is None or not (isinstance(width, int) and isinstance(height, int) and isinstance(pitch, int)):
        raise invalid(
            f"{function}: pResDesc.pitchInBytes is {pitch!r} with desc, width and height {resource.desc}, {width!r} "
            f"and {height!r}, expected all four: memory with a pitch has no shape of its own."
        )
    width, height = counts(function, **{"pResDesc.width": width, "pResDesc.height": height})
    row_bytes = width * desc.texel_bytes
    if pitch % PITCH_ALIGNMENT or pitch < row_bytes:
        raise invalid(
            f"{function}: pResDesc.pitchInBytes is {pitch}, expected a multiple of {PITCH_ALIGNMENT} that is at least "
            f"the {row_bytes} bytes of a row."
        )
    region = Region(0, pitch, pitch, row_bytes, height, 1)
    memory = as_memory(plain_memory(function, resource))
    numbers = read_region(function, "pResDesc.memory", memory, region, np.dtype(desc.dtype))
    return numbers.reshape(height, width, desc.numbers)


def with_channels(function: str, memory: jax.Array, desc: ChannelFormatDesc, ndim: int) -> jax.Array:
    """Plain memory of `ndim` axes with an axis of channels behind them."""
    flat = memory.ndim == ndim and not memory.shape[-1] % desc.numbers
    split = memory.ndim == ndim + 1 and memory.shape[-1] == desc.numbers
    if not (flat or split) or memory.size == 0:
        names = "N" if ndim == 1 else "H, W"
        raise invalid(
            f"{function}: pResDesc.memory has shape {memory.shape}, expected ({names}, {desc.numbers}), or {ndim} axes "
            f"with whole texels of {desc.numbers} numbers in the last."
        )
    return memory.reshape(*memory.shape[: ndim - 1], -1, desc.numbers)


def view_levels(
    function: str,
    memory: Array | MipmappedArray,
    levels: tuple[jax.Array, ...],
    view: ResourceViewDesc,
    desc: ChannelFormatDesc,
) -> tuple[jax.Array, ...]:
    """The levels and layers of a resource that belong to a view, as texels of the format `desc`."""
    sizes = (view.width, view.height, view.depth)
    if sizes != tuple(viewed_extent(memory, desc)):
        raise invalid(
            f"{function}: pResViewDesc has width, height, depth {sizes}, expected those of the resource in texels of "
            f"the view, {tuple(viewed_extent(memory, desc))}."
        )
    num_layers = levels[0].shape[0] if memory.kind.layered else 1
    chosen = _range(function, "MipmapLevel", view.firstMipmapLevel, view.lastMipmapLevel, len(levels))
    layers = _range(function, "Layer", view.firstLayer, view.lastLayer, num_layers)
    if memory.kind.layered:
        levels = tuple(level[layers] for level in levels)
    return tuple(bit_cast(level, desc.dtype) for level in levels[chosen])


def view_format(function: str, resource: ResourceDesc, view: ResourceViewDesc) -> ChannelFormatDesc:
    """The format of a view, whose texels or blocks must be as large as the elements of the resource."""
    array = resource.memory
    if not isinstance(array, Array | MipmappedArray):
        raise invalid(
            f"{function}: pResViewDesc is given for a resource of type {ResourceType(resource.resType).name}, expected "
            f"an array; leave it out."
        )
    desc, chosen = array.desc, choose(function, "pResViewDesc.format", ResourceViewFormat, view.format)
    if desc.block_side > 1:
        raise invalid(f"{function}: pResViewDesc is given for an array of the format {desc}, which has no views.")
    if chosen is ResourceViewFormat.None_:
        return desc
    if chosen.name not in VIEW_TYPES:
        blocks = createChannelDesc(ChannelFormatKind[chosen.name])
        words = createChannelDesc(f"uint{blocks.numbers}")
        if desc != words:
            raise invalid(
                f"{function}: pResViewDesc.format is {chosen.name} for an array of the format {desc}, expected an "
                f"array of {words}, an element for each block."
            )
        if not array.extent.height:
            raise unmodeled(function, "pResViewDesc.format", f"{chosen.name} of an array without rows")
        return blocks
    viewed = createChannelDesc(VIEW_TYPES[chosen.name])
    if viewed.texel_bytes != desc.texel_bytes:
        raise invalid(
            f"{function}: pResViewDesc.format is {chosen.name}, with texels of {viewed.texel_bytes} bytes, expected "
            f"texels of {desc.texel_bytes} bytes, as in the format {desc} of the resource."
        )
    return viewed


def _range(function: str, name: str, first: int, last: int, count: int) -> slice:
    if not 0 <= first <= last < count:
        raise invalid(
            f"{function}: pResViewDesc.first{name} and pResViewDesc.last{name} are {first} and {last}, expected a "
            f"range within 0 to {count - 1}; without mip levels or layers both are 0."
        )
    return slice(first, last + 1)


# Texture objects


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
    unit: bool = False,
) -> TextureObject:
    """Makes a texture object of a resource and a descriptor: `cudaCreateTextureObject`.

    Args:
        pResDesc: the memory, a `ResourceDesc`.
        pTexDesc: how it is read, a `TextureDesc`.
        pResViewDesc: a part of an array or of a mipmapped array, a `ResourceViewDesc`; ``None`` is the whole resource.
        arithmetic: ``"hardware"`` returns the values of an NVIDIA H200's texture unit; ``"float"`` computes weights and
            sums in float32, which is faster. See `jaxtex.Sampler`.
        unit: whether the texture unit of a GPU reads, from a copy of the texels: see `jaxtex.unit.bind`. It needs
            ``arithmetic="hardware"``, and memory of known values. `destroyTextureObject` releases the copy.

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
    if unit:
        built = bind(built, sampler)
    alpha = int(held.block_format is not None and view is None)
    made = TextureObject(built, sampler, desc, modes.read, kind, resource_type, flags, alpha)
    given = (resource, texture, view)
    object.__setattr__(made, "_made_of", tuple(part and dataclasses.replace(part) for part in given))
    return made


@cuda_function
def destroyTextureObject(texObject: TextureObject) -> None:
    """Marks a texture object as destroyed: `cudaDestroyTextureObject`. It releases what a texture unit has read.

    Args:
        texObject: a `TextureObject`. Later use is an error, except of copies that a JAX transformation made.

    Raises:
        CudaError: cudaErrorInvalidResourceHandle, if it was destroyed before.
    """
    destroyed = _check_object("destroyTextureObject", texObject)
    release("destroyTextureObject", destroyed)
    if isinstance(destroyed.texture, UnitTexture):
        destroyed.texture.destroy()


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
