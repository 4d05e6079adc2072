"""Decoded texels with a mip chain, in one flat array, of sizes that are operands.

Texels lie row after row and level after level. A loop computes runs of texels, as many as the sizes need. Elements
after the last level are never read.
"""

import functools
from collections.abc import Callable, Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._engine.describe.levels import chosen_level_size, level_size
from ..._jax.indexing import gather

# Texels of a run.
RUN = 2**12
# How many texels one texel of the next level covers along an axis, the outer ones in part.
COVERED = 3


def halving_weights(size: int) -> np.ndarray:
    """The weights of the texels that each texel of the next level covers, (3, max(size >> 1, 1)), float32.

    Texel i of m covers [i n / m, (i + 1) n / m) of n: of 2i all but i / m, 2i + 1 whole, of 2i + 2 the first
    (i + 1) / m.
    """
    m = size >> 1
    if m == 0 or size == 2 * m:
        weights = (1.0, 0.0, 0.0) if m == 0 else (0.5, 0.5, 0.0)
        return np.tile(np.array(weights, np.float32)[:, None], max(m, 1))
    along = np.arange(m) / m
    return np.stack([(1 - along) * (m / size), np.full(m, m / size), (along + 1 / m) * (m / size)]).astype(np.float32)


def chain_weights(size: int, num_levels: int) -> np.ndarray:
    """`halving_weights` of all levels but the last, of an axis of that size, one after the other: (3, total)."""
    found = [halving_weights(level_size(size, level)) for level in range(num_levels - 1)]
    return np.concatenate([np.zeros((COVERED, 0), np.float32), *found], axis=1)


def chain_length(sizes: tuple[int, ...]) -> int:
    """The number of texels of a chain, down to a single texel."""
    shapes = (tuple(level_size(n, level) for n in sizes) for level in range(max(sizes).bit_length()))
    return sum(int(np.prod(shape, dtype=np.int64)) for shape in shapes)


def converted(
    convert: Callable[[jax.Array], jax.Array], texels: jax.Array, count: jax.Array, capacity: int
) -> jax.Array:
    """The first `count` texels, decoded, in a flat array of another capacity; both are multiples of `RUN`.

    Args:
        convert: decodes texels, (N, C).
    """
    like = jax.eval_shape(convert, texels)
    return written(convert, texels, count, jnp.zeros((capacity, like.shape[-1]), like.dtype))


def written(
    convert: Callable[[jax.Array], jax.Array], texels: jax.Array, count: jax.Array, into: jax.Array
) -> jax.Array:
    """An array with the numbers of the first `count` texels at its beginning."""

    def step(k: jax.Array, filled: jax.Array) -> jax.Array:
        run = jax.lax.dynamic_slice_in_dim(texels, k * RUN, RUN)
        return jax.lax.dynamic_update_slice_in_dim(filled, convert(run), k * RUN, 0)

    return jax.lax.fori_loop(0, (count + (RUN - 1)) // RUN, step, into)


class Level(NamedTuple):
    """A level of two axes: its height and width, its first texel, and the first of its weights along each axis."""

    height: jax.Array
    width: jax.Array
    start: jax.Array
    rows: jax.Array
    columns: jax.Array

    @property
    def next(self) -> "Level":
        height, width = (chosen_level_size(n, 1) for n in (self.height, self.width))
        return Level(height, width, self.start + self.height * self.width, self.rows + height, self.columns + width)


def with_levels(
    convert: Callable[[jax.Array], jax.Array],
    texels: jax.Array,
    sizes: tuple[jax.Array, jax.Array],
    weights: tuple[jax.Array, jax.Array],
    into: jax.Array,
    wanted: jax.Array,
) -> jax.Array:
    """Decoded texels, followed by all levels of a chain, down to a single texel.

    Args:
        sizes: height and width.
        weights: `chain_weights` of height and width; more columns may follow.
        into: the array that numbers are written to.
        wanted: whether to make the levels; bool.
    """
    height, width = (size.reshape(()) for size in sizes)
    zero = jnp.zeros((), jnp.int32)

    def remains(state: tuple[jax.Array, Level, jax.Array]) -> jax.Array:
        _, level, _ = state
        return wanted & (jnp.maximum(level.height, level.width) > 1)

    def step(state: tuple[jax.Array, Level, jax.Array]) -> tuple[jax.Array, Level, jax.Array]:
        chain, level, first = state
        # A run may write beyond its level; the next level overwrites that.
        run = halved(chain, level, first, weights)
        chain = jax.lax.dynamic_update_slice_in_dim(chain, run, level.next.start + first, 0)
        first = first + RUN
        done = first >= level.next.height * level.next.width
        level = jax.tree.map(lambda a, b: jnp.where(done, a, b), level.next, level)
        return chain, level, jnp.where(done, 0, first)

    chain = written(convert, texels, height * width, into)
    return jax.lax.while_loop(remains, step, (chain, Level(height, width, zero, zero, zero), zero))[0]


def halved(chain: jax.Array, level: Level, first: jax.Array, weights: tuple[jax.Array, jax.Array]) -> jax.Array:
    """A run of the texels of the next level: means of those of a level, first along columns, then along rows."""
    number, following = first + jnp.arange(RUN, dtype=jnp.int32), level.next
    y = jnp.minimum(number // following.width, following.height - 1)
    x = number - number // following.width * following.width

    def texel(i: int, j: int) -> jax.Array:
        row, column = jnp.minimum(2 * y + i, level.height - 1), jnp.minimum(2 * x + j, level.width - 1)
        return gather(chain, (level.start + row * level.width + column,))

    def of_pairs() -> jax.Array:
        below = [(texel(0, j) + texel(1, j)) * 0.5 for j in range(2)]
        return (below[0] + below[1]) * 0.5

    def of_parts() -> jax.Array:
        down, across = (
            [gather(table[k][:, None], (start + at,)) for k in range(COVERED)]
            for table, start, at in zip(weights, (level.rows, level.columns), (y, x))
        )
        below = [sum_of(texel(i, j) * w for i, w in enumerate(down)) for j in range(COVERED)]
        return sum_of(value * w for value, w in zip(below, across))

    even = (level.height == 2 * following.height) & (level.width == 2 * following.width)
    return jax.lax.cond(even, of_pairs, of_parts)


def sum_of(terms: Iterable[jax.Array]) -> jax.Array:
    return functools.reduce(jnp.add, terms)
