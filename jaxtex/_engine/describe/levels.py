"""The levels of a mip chain: their sizes, and the texels of each part where they are cut for several devices."""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

# Levels of fewer texels than this share of a device's part of the finest one are stored whole on each device.
REPLICATED_SHARE = 1 / 8


def level_size(size: int, level: int) -> int:
    """The size of an axis in a level of a mip chain: half of that in the level before, rounded down, and at least 1."""
    return max(size >> level, 1)


def chosen_level_size(size: int | jax.Array, level: int | jax.Array) -> jax.Array:
    """`level_size` in a level that each sample chooses, or of a size that is an array."""
    return jnp.maximum(size >> level, 1)


class Cut(NamedTuple):
    """How the levels of a texture are cut into parts along one of their dimensions, for one device each.

    Parts of a level begin where those of the level before do, at half the number of texels. So the texels around one
    place lie in the same part of all levels, but for a few.

    Attributes:
        dimension: the dimension of the texels of a level.
        parts: the number of parts. Each stores its texels of the finest levels, and then all texels of the others.
        num_cut: the number of levels that are cut.
    """

    dimension: int
    parts: int
    num_cut: int = 1

    @classmethod
    def of(cls, level_shapes: Sequence[tuple[int, ...]], dimension: int, parts: int, shrinks: bool) -> "Cut | None":
        """The cut of a chain whose finest level is cut, or `None` if the parts of its second one would not be equal.

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
        return cls(dimension, parts, num_cut) if num_cut > 1 or len(level_shapes) == 1 else None

    def part_shape(self, level: int, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the texels of a level that a part stores."""
        if level >= self.num_cut:
            return shape
        own = shape[self.dimension] // self.parts
        return (*shape[: self.dimension], own, *shape[self.dimension + 1 :])

    def joined(self, level: int, stored: jax.Array) -> jax.Array:
        """A level, from (parts, *part_shape); all parts store the same texels of a level that is not cut."""
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
    """The levels of a chain, joined from the texels of all parts."""
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
    """The texels of all parts of the levels of a chain: the inverse of `joined_levels`."""

    def of_parts(level: int, texels: jax.Array) -> jax.Array:
        shape = cut.part_shape(level, texels.shape)
        if level >= cut.num_cut:
            return jnp.broadcast_to(texels, (cut.parts, *shape))
        ahead = texels.reshape(*shape[: cut.dimension], cut.parts, *shape[cut.dimension :])
        return jnp.moveaxis(ahead, cut.dimension, 0)

    channels = levels[0].shape[-1]
    stored = [of_parts(k, level).reshape(cut.parts, -1, channels) for k, level in enumerate(levels)]
    return jnp.concatenate(stored, 1).reshape(-1, channels)
