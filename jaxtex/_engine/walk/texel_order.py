"""The storage order of texels: sizes, flat indices, and the starts of the levels of a mip chain."""

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.shapes import is_symbolic
from ..._tables.address_rules import Size
from ..describe.axis import Axis, Given, Role, of_level, sizes_are_known

INDEX_LIMIT = 2**31


def shares_index(extent: Size, size: Size) -> bool:
    """Whether a flat index of `extent` and an index of `size` fit into one flat index."""
    return not (isinstance(extent, int) and isinstance(size, int)) or extent * size < INDEX_LIMIT


def groups(axes: tuple[Axis, ...]) -> Iterator[tuple[Axis, ...]]:
    """The axes of each step of a walk: one axis, or several that are addressed jointly."""
    while axes:
        count = axes[0].address.num_axes
        assert all(axis.address == axes[0].address for axis in axes[:count])
        yield axes[:count]
        axes = axes[count:]


def stored_sizes(group: tuple[Axis, ...], sizes: Sequence[Size], level: int = 0) -> tuple[Size, ...]:
    """The extent of each stored index of a step, from the sizes of its axes."""
    rows = group[0].address.rows_of(level)
    return tuple(sizes) if rows is None else (rows,)


def in_level(axes: tuple[Axis, ...], level: jax.Array) -> tuple[Axis, ...]:
    """The axes in the mip levels that samples choose, int32, one for each sample."""
    rules = [(group, group[0].address.in_level(level)) for group in groups(axes)]
    return tuple(axis.at(level)._replace(address=rule) for group, rule in rules for axis in group)


def known_sizes(axes: tuple[Axis, ...], level: int = 0) -> list[int]:
    """The extent of each stored index, in a level that is known while tracing."""
    extents = lambda group: [
        axis.level_size(level) if axis.stored is None else axis.stored.count_in(level) for axis in group
    ]
    by_step = (stored_sizes(group, extents(group), level) for group in groups(axes))
    return [cast(int, size if is_symbolic([cast(int, size)]) else int(size)) for sizes in by_step for size in sizes]


def flat_sizes(axes: tuple[Axis, ...]) -> list[int]:
    """The extent of each flat index of a `TexelAddress` after a walk over `axes`."""
    for axis in axes:
        if isinstance(axis.size, Given):
            return [axis.size.capacity]
    if axes[0].role is Role.LEVEL:
        return [int(level_starts(axes)[-1])]
    flat: list[int] = []
    for size in known_sizes(axes):
        if flat and shares_index(flat[-1], size):
            flat[-1] *= size
        else:
            flat.append(size)
    return flat


def level_starts(axes: tuple[Axis, ...]) -> np.ndarray:
    """The flat index at which each level of a mip chain starts, and the number of texels of the chain."""
    levels, *rest = axes
    counts = [np.prod(known_sizes(tuple(rest), level), dtype=np.int64) for level in range(levels.known_size)]
    return np.concatenate([[0], np.cumsum(counts)])


def texels_shape(axes: tuple[Axis, ...], channels: int) -> tuple[int, ...]:
    """The shape of the array of texels that a walk over `axes` reads."""
    if any(axis.needs_size for axis in axes) or axes[0].role is Role.LEVEL:
        return (*flat_sizes(axes), channels)
    return (*known_sizes(tuple(axis for axis in axes if axis.role is not Role.WEIGHT)), channels)


def flattened(texels: jax.Array, axes: tuple[Axis, ...]) -> jax.Array:
    """Texels, reshaped for indexing by `TexelAddress.flat_index`, channels last."""
    return texels.reshape(*flat_sizes(axes), texels.shape[-1])


def starts_of(levels: list[jax.Array], axes: tuple[Axis, ...]) -> list[jax.Array]:
    """The flat indices at which the blended levels start. Each level is equal to the one before it, or follows it."""
    starts = [level_start(levels[0], axes)]
    for level, following in itertools.pairwise(levels):
        inner = in_level(axes[1:], level)
        starts.append(starts[-1] + jnp.where(following > level, num_texels(inner), 0))
    return starts


def num_texels(axes: tuple[Axis, ...]) -> jax.Array:
    """The number of texels of axes within a level, which may be an array."""
    sizes = (stored_sizes(group, [axis.extent for axis in group]) for group in groups(axes))
    return cast(jax.Array, functools.reduce(jnp.multiply, itertools.chain.from_iterable(sizes)))


def num_levels(axes: tuple[Axis, ...]) -> Size:
    """The number of levels of a mip chain. A chain whose sizes are operands ends at a single texel."""
    levels, *rest = axes
    if sizes_are_known(tuple(rest)):
        return levels.known_size
    sizes = (axis.given_size for axis in rest if axis.role is Role.SPACE)
    longest = cast(jax.Array, functools.reduce(jnp.maximum, sizes))
    return functools.reduce(jnp.add, ((longest >> k > 0).astype(jnp.int32) for k in range(levels.known_size)))


def level_start(level: jax.Array, axes: tuple[Axis, ...]) -> jax.Array:
    """The flat index at which the level of each sample starts in a mip chain."""
    if not sizes_are_known(axes):
        levels = (in_level(axes[1:], jnp.int32(k)) for k in range(axes[0].known_size - 1))
        return sum((jnp.where(level > k, num_texels(a), 0) for k, a in enumerate(levels)), jnp.zeros_like(level))
    starts = level_starts(axes)[:-1]
    layers = math.prod(axis.known_size for axis in axes[1:] if axis.role is not Role.SPACE)
    finest = math.prod(axis.known_size for axis in axes[1:] if axis.role is Role.SPACE)
    bits = sum(axis.role is Role.SPACE for axis in axes)
    # If sizes are powers of two, a shift gives the number of texels from a level on.
    whole = sum(finest >> bits * k for k in range(len(starts)))
    if whole < INDEX_LIMIT and all(start == layers * (whole - (whole >> bits * k)) for k, start in enumerate(starts)):
        return layers * (whole - (np.int32(whole) >> (bits * level)))
    return of_level(level, tuple(map(int, starts)))
