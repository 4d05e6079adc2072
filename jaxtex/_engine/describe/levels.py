"""The levels of a mip chain: their sizes, and their parts if they are partitioned over several devices."""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

# A level with fewer texels than this share of a device's part of the finest level is stored whole on every device.
REPLICATED_SHARE = 1 / 8


def level_size(size: int, level: int) -> int:
    """The size of an axis in a mip level: half the size in the level before, rounded down, and at least 1."""
    return max(size >> level, 1)


def chosen_level_size(size: int | jax.Array, level: int | jax.Array) -> jax.Array:
    """`level_size` for a size or a level that is an array."""
    return jnp.maximum(size >> level, 1)


class Cut(NamedTuple):
    """How the levels of a texture are partitioned along one dimension, one part for each device.

    If the dimension halves from level to level, so do the parts. So nearly all texels around a point are in one part in
    all levels.

    Attributes:
        dimension: the partitioned dimension of the texels of a level.
        parts: the number of parts. A part stores its texels of the finest levels, and then all texels of the others.
        num_cut: the number of levels that are partitioned.
    """

    dimension: int
    parts: int
    num_cut: int = 1

    @classmethod
    def of(cls, level_shapes: Sequence[tuple[int, ...]], dimension: int, parts: int, shrinks: bool) -> "Cut | None":
        """The partition of a chain, or `None` if the parts of its second level would not have equal sizes.

        Args:
            shrinks: whether the dimension halves from level to level.
        """
        own, finest = level_shapes[0][dimension] // parts, math.prod(level_shapes[0][:-1])
        num_cut = 0
        for level, shape in enumerate(level_shapes):
            equal = own % (1 << level) == 0 if shrinks else True
            if not equal or (level > 1 and math.prod(shape[:-1]) < REPLICATED_SHARE * finest / parts):
                break
            num_cut += 1
        return cls(dimension, parts, num_cut) if num_cut > 1 or len(level_shapes) == 1 else None

    def part_shape(self, level: int, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the texels that one part stores of a level."""
        if level >= self.num_cut:
            return shape
        own = shape[self.dimension] // self.parts
        return (*shape[: self.dimension], own, *shape[self.dimension + 1 :])

    def joined(self, level: int, stored: jax.Array) -> jax.Array:
        """A level, from (parts, *part_shape): the parts joined, or the first one of a level that is not partitioned."""
        if level >= self.num_cut:
            sharding = jax.typeof(stored).sharding
            if any(sharding.spec):
                stored = jax.reshard(stored, jax.NamedSharding(sharding.mesh, jax.P()))
            return stored[0]
        along = jnp.moveaxis(stored, 0, self.dimension)
        shape = list(stored.shape[1:])
        shape[self.dimension] *= self.parts
        return along.reshape(shape)


def joined_levels(texels: jax.Array, level_shapes: Sequence[tuple[int, ...]], cut: Cut) -> tuple[jax.Array, ...]:
    """The levels of a chain, each of its shape, from the texels of all parts, batch + (count, C)."""
    *batch, count, channels = texels.shape
    if batch:
        of_one = functools.partial(joined_levels, level_shapes=level_shapes, cut=cut)
        return jax.vmap(of_one)(texels)
    shapes = [cut.part_shape(level, shape) for level, shape in enumerate(level_shapes)]
    stored, first, levels = texels.reshape(cut.parts, count // cut.parts, channels), 0, list[jax.Array]()
    for level, shape in enumerate(shapes):
        last = first + math.prod(shape[:-1])
        levels.append(cut.joined(level, stored[:, first:last].reshape(cut.parts, *shape)))
        first = last
    return tuple(levels)


def divided_levels(levels: Sequence[jax.Array], cut: Cut) -> jax.Array:
    """The texels of all parts of a chain, (count, C): the inverse of `joined_levels`."""

    def of_parts(level: int, texels: jax.Array) -> jax.Array:
        shape = cut.part_shape(level, texels.shape)
        if level >= cut.num_cut:
            return jnp.broadcast_to(texels, (cut.parts, *shape))
        ahead = texels.reshape(*shape[: cut.dimension], cut.parts, *shape[cut.dimension :])
        return jnp.moveaxis(ahead, cut.dimension, 0)

    channels = levels[0].shape[-1]
    stored = [of_parts(k, level).reshape(cut.parts, -1, channels) for k, level in enumerate(levels)]
    return jnp.concatenate(stored, 1).reshape(-1, channels)
