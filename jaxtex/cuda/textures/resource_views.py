"""Resource views: some levels and layers of an array, perhaps in another format with texels of the same size."""

# pyright: strict

import jax

from ..enums import ResourceViewFormat
from ..errors import INVALID_VALUE, CudaError, choose
from ..memory.arrays import Array, MipmappedArray
from ..memory.bit_casts import bit_cast
from ..memory.channel_formats import CHANNEL_TYPES, ChannelFormatDesc, createChannelDesc, unmodeled
from .descriptors import ResourceViewDesc

# Names of view formats, and the names of the types that they stand for.
VIEW_TYPES = {
    f"{row.view_format}{channels}": f"{row.name}{channels}" for row in CHANNEL_TYPES for channels in (1, 2, 4)
}


def view_levels(
    function: str,
    memory: Array | MipmappedArray,
    levels: tuple[jax.Array, ...],
    view: ResourceViewDesc,
    desc: ChannelFormatDesc,
) -> tuple[jax.Array, ...]:
    """The levels and layers of a resource that belong to a view, as texels of the format `desc`."""
    sizes = (view.width, view.height, view.depth)
    if sizes != tuple(memory.extent):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: pResViewDesc has width, height, depth {sizes}, expected those of the resource, "
            f"{tuple(memory.extent)}.",
        )
    num_layers = levels[0].shape[0] if memory.kind.layered else 1
    chosen = _range(function, "MipmapLevel", view.firstMipmapLevel, view.lastMipmapLevel, len(levels))
    layers = _range(function, "Layer", view.firstLayer, view.lastLayer, num_layers)
    if memory.kind.layered:
        levels = tuple(level[layers] for level in levels)
    return tuple(bit_cast(level, desc.dtype) for level in levels[chosen])


def view_format(function: str, desc: ChannelFormatDesc, view: ResourceViewDesc) -> ChannelFormatDesc:
    """The format of a view, whose texels must be as large as those of the resource."""
    chosen = choose(function, "pResViewDesc.format", ResourceViewFormat, view.format)
    if chosen is ResourceViewFormat.None_:
        return desc
    if chosen.name not in VIEW_TYPES:
        raise unmodeled(function, "pResViewDesc.format", chosen.name)
    viewed = createChannelDesc(VIEW_TYPES[chosen.name])
    if viewed.texel_bytes != desc.texel_bytes:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: pResViewDesc.format is {chosen.name}, with texels of {viewed.texel_bytes} bytes, expected "
            f"texels of {desc.texel_bytes} bytes, as in the format {desc} of the resource.",
        )
    return viewed


def _range(function: str, name: str, first: int, last: int, count: int) -> slice:
    if not 0 <= first <= last < count:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: pResViewDesc.first{name} and pResViewDesc.last{name} are {first} and {last}, expected a "
            f"range within 0 to {count - 1}; without mip levels or layers both are 0.",
        )
    return slice(first, last + 1)
