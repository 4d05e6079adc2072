"""The format of a resource or a view, and the texels of its levels as the core stores textures."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._blocks.formats import blocks_along, decoded
from ..._checks.integers import on_device
from ...modes import TextureKind
from ..enums import ArrayFlags, ChannelFormatKind, ResourceType, ResourceViewFormat
from ..errors import check_type, choose, invalid
from ..kinds import PITCH_ALIGNMENT, check_limits
from ..memory.arrays import Array, Extent, MipmappedArray, level_extent
from ..memory.channel_formats import (
    CHANNEL_TYPES,
    ChannelFormatDesc,
    as_texels,
    check_desc,
    createChannelDesc,
    infer_desc,
    unmodeled,
)
from ..memory.numbers import as_memory, bit_cast, counts
from ..memory.regions import Region, read_region
from ..memory.resource_descriptor import ResourceDesc
from .descriptors import ResourceViewDesc

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
