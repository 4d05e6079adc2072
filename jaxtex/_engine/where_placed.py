"""Reads and writes of texels wherever they lie: the one place that asks whether a texture is sharded over devices.

The modules for sharded textures are imported here, for an array that is sharded. Others do not need them.
"""

# pyright: strict, reportUnknownMemberType=false

import dataclasses
from collections.abc import Sequence

import jax
from jax.sharding import NamedSharding, PartitionSpec

from .._jax.indexing import is_sharded
from ..texture import Texture, packed
from .compute import texel_write
from .describe.axis import Axis
from .describe.levels import Cut, divided_levels, joined_levels
from .describe.operands import Coords
from .describe.spec import Read, TexelRead
from .rules import primitives


def read_where_placed(
    how: TexelRead, texels: jax.Array, color: jax.Array | None, read: Read, chain: Cut | None = None
) -> jax.Array:
    """A read that the devices compute in parts if texels carry an explicit sharding.

    Args:
        chain: how the levels of a mip chain are cut.
    """
    if chain is None and not is_sharded(texels):
        return how(texels, color, read)
    from .sharded.read import read_sharded

    return read_sharded(how, texels, color, read, chain)


def splat_where_placed(values: jax.Array, read: Read, placed: NamedSharding | None) -> jax.Array:
    """A splat, the adjoint of a read, onto texels that carry the sharding `placed`, if there is one."""
    if placed is None or not any(placed.spec):
        return primitives.splat(values, read.operands, read.spec)
    from .sharded.read import splat_sharded

    return splat_sharded(values, read, placed)


def write_where_placed(
    texels: jax.Array,
    values: jax.Array,
    coords: Coords,
    axes: tuple[Axis, ...],
    rule: str = "set",
    *,
    unique: bool = False,
) -> jax.Array:
    """A write of single texels, on all devices that store texels.

    Args:
        axes: all integer.
        rule: how a texel and a value become one: set, add, min or max.
        unique: of a rule that sets, whether no two samples write the same texel.
    """
    if not is_sharded(texels) or not values.size:
        return texel_write.write(texels, values, coords, axes, rule, unique=unique)
    from .sharded.write import TexelWrite

    return TexelWrite(axes, rule, unique)(texels, values, coords)


def without_cut(texture: Texture) -> Texture:
    """The texture with the levels of its chain one after the other, not cut over devices."""
    if texture.cut is None:
        return texture
    levels: Sequence[jax.Array] = joined_levels(texture.texels, texture.level_shapes or (), texture.cut)
    if is_sharded(texture.texels):
        whole = NamedSharding(jax.typeof(texture.texels).sharding.mesh, PartitionSpec())
        levels = [jax.reshard(level, whole) for level in levels]
    return packed(texture.kind, levels, texture.border_color)


def with_cut(texture: Texture, like: Texture) -> Texture:
    """The texture with the levels of its chain cut over devices as those of `like` are."""
    if like.cut is None:
        return texture
    texels = divided_levels(texture.levels, like.cut)
    if is_sharded(like.texels):
        texels = jax.reshard(texels, jax.typeof(like.texels).sharding)
    return dataclasses.replace(texture, texels=texels, cut=like.cut)
