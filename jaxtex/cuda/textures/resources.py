"""What a resource holds: its format, and the texels of its levels, shaped as the core stores textures."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...modes import TextureKind
from ..enums import ArrayFlags, ResourceType
from ..errors import INVALID_VALUE, CudaError, check_type, choose
from ..limits import check_limits
from ..memory.arrays import Array, MipmappedArray
from ..memory.byte_regions import Region, take
from ..memory.channel_formats import ChannelFormatDesc, check_desc, check_dtype, desc_of
from ..memory.resource_descriptor import ResourceDesc
from .descriptors import ResourceViewDesc
from .resource_views import shown, view_format

# Of the pitch of a texture over pitched memory, in bytes.
PITCH_ALIGNMENT = 32
ARRAY_TYPES = {ResourceType.Array: Array, ResourceType.MipmappedArray: MipmappedArray}
# The axes of plain memory, without channels, and the row of limits that it falls under.
PLAIN_TYPES = {
    ResourceType.Linear: (1, "1D texture from linear memory", TextureKind.TEXTURE1D),
    ResourceType.Pitch2D: (2, "2D texture from pitched memory", TextureKind.TEXTURE2D),
}


def format_of(function: str, resource: ResourceDesc, view: ResourceViewDesc | None) -> ChannelFormatDesc:
    """The format in which a resource is read."""
    resource_type = choose(function, "resource.resType", ResourceType, resource.resType)
    memory, expected = resource.memory, ARRAY_TYPES.get(resource_type)
    if expected:
        name = expected.__name__
        memory = check_type(function, "resource.memory", memory, expected, f"malloc{name} makes one")
        return memory.desc if view is None else view_format(function, memory.desc, view)
    if view is not None:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: view is given for a resource of type {resource_type.name}, expected an array; leave it out.",
        )
    if resource.desc is not None:
        return check_desc(function, resource.desc)
    ndim, *_ = PLAIN_TYPES[resource_type]
    memory = jnp.asarray(memory)
    return desc_of(memory, memory.shape[-1] if memory.ndim > ndim else 1)


def memory_of(
    function: str,
    resource: ResourceDesc,
    desc: ChannelFormatDesc,
    view: ResourceViewDesc | None,
    compute_capability: float,
) -> tuple[tuple[jax.Array, ...], TextureKind, ArrayFlags]:
    """The levels of a resource in the format `desc`, its shape and its flags."""
    memory = resource.memory
    if isinstance(memory, Array | MipmappedArray):
        levels = (memory.texels,) if isinstance(memory, Array) else memory.levels
        if memory.kind is TextureKind.CUBEMAP_LAYERED:
            levels = tuple(level.reshape(-1, 6, *level.shape[1:]) for level in levels)
        if view is not None:
            levels = shown(function, memory, levels, view, desc)
        return levels, memory.kind, memory.flags
    ndim, limit, kind = PLAIN_TYPES[ResourceType(resource.resType)]
    if resource.pitchInBytes is not None:
        memory = pitched_texels(function, resource, desc)
    texels = plain_texels(function, memory, desc, ndim)
    if ndim == 1:
        given = (None if resource.sizeInBytes is None else resource.sizeInBytes // desc.texel_bytes,)
    else:
        given = (resource.width, resource.height)
    sizes = tuple(n if size is None else size for n, size in zip(texels.shape[ndim - 1 :: -1], given))
    if any(not 1 <= size <= n for size, n in zip(sizes, texels.shape[ndim - 1 :: -1])):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: the resource has {sizes} elements (sizeInBytes, or width and height), expected at least one "
            f"and at most the {texels.shape[ndim - 1 :: -1]} of its memory.",
        )
    check_limits(function, limit, sizes, compute_capability)
    return (texels[tuple(slice(size) for size in reversed(sizes))],), kind, ArrayFlags.Default


def pitched_texels(function: str, resource: ResourceDesc, desc: ChannelFormatDesc) -> jax.Array:
    """The rows of memory with a pitch, as texels."""
    pitch, width, height = resource.pitchInBytes, resource.width, resource.height
    if resource.desc is None or not (isinstance(width, int) and isinstance(height, int) and isinstance(pitch, int)):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: resource.pitchInBytes is {pitch!r} with desc, width and height {resource.desc}, {width!r} "
            f"and {height!r}, expected all of them: memory with a pitch has no shape of its own.",
        )
    if pitch % PITCH_ALIGNMENT or pitch < width * desc.texel_bytes:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: resource.pitchInBytes is {pitch}, expected a multiple of {PITCH_ALIGNMENT} that holds the "
            f"{width * desc.texel_bytes} bytes of a row.",
        )
    region = Region(0, pitch, pitch, width * desc.texel_bytes, height, 1)
    numbers = take(function, "resource.memory", jnp.asarray(resource.memory), region, np.dtype(desc.dtype))
    return numbers.reshape(height, width, desc.channels)


def plain_texels(function: str, memory: Any, desc: ChannelFormatDesc, ndim: int) -> jax.Array:
    """Plain memory with a channel axis."""
    memory = jnp.asarray(memory)
    check_dtype(function, "resource.memory", memory, desc)
    flat = memory.ndim == ndim and not memory.shape[-1] % desc.channels
    split = memory.ndim == ndim + 1 and memory.shape[-1] == desc.channels
    if not (flat or split) or memory.size == 0:
        names = ("N",) if ndim == 1 else ("H", "W")
        channels = f", or ({', '.join(names)}, {desc.channels})"
        raise CudaError(
            INVALID_VALUE,
            f"{function}: the memory has shape {memory.shape}, expected {ndim} axes with whole texels of "
            f"{desc.channels} channels{channels}.",
        )
    return memory.reshape(*memory.shape[: ndim - 1], -1, desc.channels)
