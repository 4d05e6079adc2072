"""Reads and writes of texels wherever they lie: the one place that asks whether a texture is sharded over devices.

The modules for sharded textures are imported here, for an array that is sharded. Others do not need them.
"""

from collections.abc import Callable, Sequence

import jax
from jax.sharding import NamedSharding

from .._jax.indexing import is_sharded
from ..texture import Texture
from .compute import texel_write
from .describe.axis import Axis
from .describe.levels import CutChain
from .describe.spec import Coords, ReadSpec
from .rules import primitives

# A read: of texels, a border color, operands, and a spec.
Read = Callable[[jax.Array, jax.Array | None, Sequence[jax.Array], ReadSpec], jax.Array]


def read_where_placed(
    read: Read,
    texels: jax.Array,
    color: jax.Array | None,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    *,
    has_edged_form: bool = False,
    splits_over_taps: bool = True,
    chain: CutChain | None = None,
) -> jax.Array:
    """A read, of which each device computes a part if texels carry an explicit sharding.

    Args:
        has_edged_form: whether it is the read of `edged_reads` where there is no color.
        splits_over_taps: whether it is the sum of reads of some of its taps and of the others.
        chain: how the levels of a mip chain are cut.
    """
    if chain is None and not is_sharded(texels):
        return read(texels, color, operands, spec)
    from .sharded import edged_reads, placed_reads

    edged = edged_reads.read if has_edged_form else None
    how = {"edged": edged, "splits_over_taps": splits_over_taps, "chain": chain}
    return placed_reads.read_sharded(read, texels, color, operands, spec, **how)


def splat_where_placed(
    values: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, placed: NamedSharding | None
) -> jax.Array:
    """A splat whose texels carry the sharding `placed`, if there is one."""
    if placed is None:
        return primitives.splat(values, operands, spec)
    from .sharded import placed_reads

    return placed_reads.splat_sharded(values, operands, spec, placed)


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
        return texel_write.by_rule(texels, values, coords, axes, rule, unique=unique)
    from .sharded import placed_writes

    return placed_writes.TexelWrite(axes, rule, unique)(texels, values, coords)


def without_cut(texture: Texture) -> Texture:
    """The texture with the levels of its chain one after the other, not cut over devices."""
    if texture.cut is None:
        return texture
    from .sharded import cut_chain

    return cut_chain.without_cut(texture)


def with_cut(texture: Texture, like: Texture) -> Texture:
    """The texture with the levels of its chain cut over devices as those of another one are."""
    if like.cut is None:
        return texture
    from .sharded import cut_chain

    return cut_chain.with_cut(texture, like)
