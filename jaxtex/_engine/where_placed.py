"""Reads and writes of texels wherever they lie: the one place that asks whether a texture is sharded over devices.

The modules for sharded textures are imported here, for an array that is sharded. Others do not need them.
"""

from collections.abc import Sequence

import jax
from jax.sharding import NamedSharding

from .._jax.indexing import is_sharded
from ..texture import Texture
from .compute import texel_write
from .describe.axis import Axis
from .describe.levels import Cut
from .describe.operands import Coords
from .describe.spec import ArrayRead, ReadSpec
from .rules import primitives
from .walk.taps import taps
from .walk.texel_walk import AxisTaps


def read_where_placed(
    read: ArrayRead,
    texels: jax.Array,
    color: jax.Array | None,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    *,
    takes_halo: bool = False,
    splits_over_taps: bool = True,
    chain: Cut | None = None,
    axis_taps: AxisTaps = taps,
) -> jax.Array:
    """A read, of which each device computes a part if texels carry an explicit sharding.

    Args:
        takes_halo: whether `read`, without a color, takes texels in three arrays.
        splits_over_taps: whether it is the sum of reads of some of its taps and of the others.
        chain: how the levels of a mip chain are cut.
        axis_taps: finds the taps of one axis, as the read does.
    """
    if chain is None and not is_sharded(texels):
        return read(texels, color, operands, spec)
    from .sharded.read import read_sharded

    how = {"takes_halo": takes_halo, "splits_over_taps": splits_over_taps, "chain": chain, "axis_taps": axis_taps}
    return read_sharded(read, texels, color, operands, spec, **how)


def splat_where_placed(
    values: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, placed: NamedSharding | None
) -> jax.Array:
    """A splat whose texels carry the sharding `placed`, if there is one."""
    if placed is None:
        return primitives.splat(values, operands, spec)
    from .sharded.read import splat_sharded

    return splat_sharded(values, operands, spec, placed)


def write_where_placed(
    texels: jax.Array,
    values: jax.Array,
    coords: Coords,
    axes: tuple[Axis, ...],
    rule: str = "set",
    *,
    unique: bool = False,
) -> jax.Array:
    """A write of single texels, by all devices that store some of them.

    Args:
        axes: all integer.
        rule: set, add, min or max.
        unique: of a rule that sets, whether no two samples write the same texel.
    """
    if not is_sharded(texels):
        return texel_write.write(texels, values, coords, axes, rule, unique=unique)
    from .sharded.write import TexelWrite

    return TexelWrite(axes, rule, unique)(texels, values, coords)


def without_cut(texture: Texture) -> Texture:
    """The texture with the levels of its chain one after the other, not cut over devices."""
    if texture.cut is None:
        return texture
    from .sharded import access

    return access.without_cut(texture)


def with_cut(texture: Texture, like: Texture) -> Texture:
    """The texture with the levels of its chain cut over devices as those of another one are."""
    if like.cut is None:
        return texture
    from .sharded import access

    return access.with_cut(texture, like)
