"""A mip chain whose levels are cut over devices along one axis: large levels in parts, small ones whole on each device.

Each device stores its part of the large levels and then the small ones, one after the other. Parts of a level begin
where those of the level before do, at half the number of texels. So the texels around one place lie on one device in
every level, but for a few.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from ...texture import Texture, packed
from ..describe.axis import Axis, Role, Stored, StoredLevel, start_axis
from ..describe.levels import CutChain, divided_levels, joined_levels
from ..describe.spec import Coords
from ..walk.texel_walk import middle_texel
from .cut import Cut
from .exchange import Edges, with_halo

# Levels of fewer texels than this share of a device's part of the finest one are stored whole on each device.
REPLICATED_SHARE = 1 / 8


def chain_for(level_shapes: Sequence[tuple[int, ...]], dimension: int, parts: int, shrinks: bool) -> CutChain | None:
    """How a chain is cut whose finest level is, or `None` if the parts of its second one would not be equal.

    Args:
        shrinks: whether the dimension is smaller in the next level.
    """
    own, finest = level_shapes[0][dimension] // parts, math.prod(level_shapes[0][:-1])
    num_cut = 0
    for level, shape in enumerate(level_shapes):
        equal = own % (1 << level) == 0 if shrinks else True
        if not equal or (level > 1 and math.prod(shape[:-1]) < REPLICATED_SHARE * finest / parts):
            break
        num_cut += 1
    return CutChain(dimension, parts, num_cut) if num_cut > 1 or len(level_shapes) == 1 else None


class ChainCut(NamedTuple):
    """How the levels of a mip chain are cut along one axis; see `Cut`, whose methods these are.

    Attributes:
        axis: its number among the axes of the read.
        names: of the axes of the mesh along which it is cut, the slowest first.
        chain: how the levels are cut.
        shapes: of all levels, without channels.
        margin: how far the taps of a sample in the coarser levels lie from its place in the finest, at most, in texels.
    """

    axis: int
    names: tuple[str, ...]
    chain: CutChain
    shapes: tuple[tuple[int, ...], ...]
    margin: int

    @classmethod
    def of(cls, axes: tuple[Axis, ...], names: tuple[str, ...], chain: CutChain) -> "ChainCut":
        """Of a read along `axes`, of which the first is that of levels."""
        stored = [k for k, axis in enumerate(axes) if axis.role not in (Role.LEVEL, Role.WEIGHT)]
        shapes = tuple(tuple(axes[k].level_size(level) for k in stored) for level in range(axes[0].known_size))
        axis = axes[stored[chain.dimension]]
        margin = 0 if axis.integer else axis.kernel.num_taps // 2 + 1
        return cls(stored[chain.dimension], names, chain, shapes, margin)

    @property
    def parts(self) -> int:
        return self.chain.parts

    @property
    def dimension(self) -> int:
        """Of the texels of a level."""
        return self.chain.dimension

    @property
    def size(self) -> int:
        """Of the axis in the finest level."""
        return self.shapes[0][self.chain.dimension]

    @property
    def own(self) -> int:
        """The texels of the finest level that a device stores."""
        return self.size // self.parts

    def spec(self, ndim: int) -> PartitionSpec:
        return PartitionSpec(*(self.names if d == 0 else None for d in range(ndim)))

    @property
    def number(self) -> jax.Array:
        return jax.lax.axis_index(self.names)

    # Halos

    def reaches_all(self, reach: int) -> bool:
        return self.own + 2 * reach >= self.size

    def reach_in(self, level: int, reach: int) -> int:
        """The halo of a level, where that of the finest one is `reach`."""
        return reach if level == 0 else -(-reach >> level) + self.margin

    def window(self, texels: jax.Array, reach: int) -> jax.Array:
        """A device's texels with a halo in each level that is cut."""
        first, levels = 0, list[jax.Array]()
        for level, shape in enumerate(self.shapes):
            part = self.chain.part_shape(level, (*shape, texels.shape[-1]))
            last = first + math.prod(part[:-1])
            some = texels[first:last]
            if level < self.chain.num_cut:
                cut = Cut(self.axis, self.chain.dimension, self.names, self.parts, shape[self.chain.dimension])
                edges = Edges(cut, self.reach_in(level, reach), around=True)
                some = with_halo(some.reshape(part), edges).reshape(-1, part[-1])
            levels.append(some)
            first = last
        return jnp.concatenate(levels)

    def axes_in_part(self, axes: tuple[Axis, ...], reach: int) -> tuple[Axis, ...]:
        found = list[StoredLevel]()
        for level, shape in enumerate(self.shapes):
            size, beside = shape[self.chain.dimension], self.reach_in(level, reach)
            own = size // self.parts
            is_cut = level < self.chain.num_cut
            found.append(StoredLevel(own + 2 * beside, size, own, -beside) if is_cut else StoredLevel(size, size, 0, 0))
        stored = Stored(found[0].count, found[0].period, levels=tuple(found))
        inner = [axis._replace(stored=stored) if k == self.axis else axis for k, axis in enumerate(axes)]
        return start_axis(stored), *inner

    def start(self, reach: int, rank: int) -> jax.Array:
        """The number of the part, as an operand."""
        del reach
        return self.number.astype(jnp.int32).reshape([1] * rank)

    # Routes

    def step(self, axes: tuple[Axis, ...]) -> tuple[tuple[Axis, ...], int]:
        return (axes[self.axis],), self.axis

    def can_route(self, axes: tuple[Axis, ...]) -> bool:
        """Whether a place in the finest level tells that in the others: not of single texels of a level, nor where a
        reflection about the centers of texels does not.
        """
        axis = axes[self.axis]
        if axis.address.apply is None or (axis.integer and axis.role is Role.SPACE):
            return False
        return axis.integer or axis.address.repeats or axis.address.saturates

    def reach_of_filter(self, axes: tuple[Axis, ...]) -> int:
        axis = axes[self.axis]
        return 0 if axis.integer else axis.kernel.num_taps // 2

    def owners(self, coords: Coords, axes: tuple[Axis, ...]) -> list[jax.Array]:
        return [middle_texel(coords[self.axis], axes[self.axis]) // self.own]


# Accesses that take the whole chain


def without_cut(texture: Texture) -> Texture:
    """The texture with the levels of its chain one after the other, not cut over devices."""
    if texture.cut is None:
        return texture
    levels = joined_levels(texture.texels, texture.level_shapes or (), texture.cut)
    sharding = jax.typeof(texture.texels).sharding
    if any(sharding.spec):
        whole = jax.NamedSharding(sharding.mesh, jax.P())
        levels = [jax.reshard(level, whole) for level in levels]
    return packed(texture.kind, levels, texture.border_color)


def with_cut(texture: Texture, like: Texture) -> Texture:
    """The texture with the levels of its chain cut over devices as those of another one are."""
    if like.cut is None:
        return texture
    texels, sharding = divided_levels(texture.levels, like.cut), jax.typeof(like.texels).sharding
    if any(sharding.spec):
        texels = jax.reshard(texels, sharding)
    return dataclasses.replace(texture, texels=texels, cut=like.cut)
