"""What a resource view shows: some levels and layers, perhaps as another format of the same size."""

from typing import Any

import jax

from ..enums import ResourceViewFormat
from ..errors import INVALID_VALUE, CudaError, choose
from ..memory.arrays import Array, MipmappedArray
from ..memory.bit_casts import reinterpreted
from ..memory.channel_formats import CHANNEL_TYPES, ChannelFormatDesc, createChannelDesc, unmodelled
from .descriptors import ResourceViewDesc

VIEW_TYPES = {
    f"{row.view_format}{channels}": f"{row.name}{channels}" for row in CHANNEL_TYPES for channels in (1, 2, 4)
}


def shown(
    function: str,
    memory: Array | MipmappedArray,
    levels: tuple[jax.Array, ...],
    view: ResourceViewDesc,
    desc: ChannelFormatDesc,
) -> tuple[jax.Array, ...]:
    """The levels that a view shows of a resource, as texels of the format `desc`."""
    sizes = (view.width, view.height, view.depth)
    if sizes != tuple(memory.extent):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: view has width, height, depth {sizes}, expected those of the resource, "
            f"{tuple(memory.extent)}.",
        )
    layers = levels[0].shape[0] if memory.kind.layered else 1
    seen = _range(function, "MipmapLevel", view.firstMipmapLevel, view.lastMipmapLevel, len(levels))
    within = _range(function, "Layer", view.firstLayer, view.lastLayer, layers)
    levels = levels[seen]
    if memory.kind.layered:
        levels = tuple(level[within] for level in levels)
    return tuple(reinterpreted(level, desc.dtype) for level in levels)


def view_format(function: str, desc: ChannelFormatDesc, view: ResourceViewDesc) -> ChannelFormatDesc:
    """The format that a view names, if its texels are as large as those of the resource."""
    form = choose(function, "view.format", ResourceViewFormat, view.format)
    if form is ResourceViewFormat.None_:
        return desc
    if form.name not in VIEW_TYPES:
        raise unmodelled(function, "view.format", form.name)
    viewed = createChannelDesc(VIEW_TYPES[form.name])
    if viewed.texel_bytes != desc.texel_bytes:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: view.format {form.name} has {viewed.texel_bytes} bytes a texel, expected the "
            f"{desc.texel_bytes} of the resource's format {desc}.",
        )
    return viewed


def _range(function: str, what: str, first: Any, last: Any, count: int) -> slice:
    if not 0 <= first <= last < count:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: view.first{what} and view.last{what} are {first} and {last}, expected a range within 0 to "
            f"{count - 1}; without mip levels or layers both are 0.",
        )
    return slice(first, last + 1)
