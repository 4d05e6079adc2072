"""The adjoint on GPUs in programs that a kernel cannot be part of: neighbours in pairs, into private copies.

A scatter of XLA adds a window of several rows for little more than one row. The two taps of a linear filter along x are
neighbours in memory, so they are one window; only at a seam they are not.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from ...modes import AddressMode
from .. import operators
from ..axis import Axis, Role
from ..indexing import explicit_sharding, scatter, scatter_windows
from ..operators import as_texels, crowd, distribute, only_inside, units, weighted
from ..reproducible_sum import Sums, private_copies
from ..texel_walk import Coords, Grid, Step, Tap, as_given, flat_sizes, walks


def splat(
    values,
    *operands,
    axes: tuple[Axis, ...],
    dtype: np.dtype,
    deterministic: bool = False,
    grid: Grid = as_given,
):
    """`resample.splat` in the way that is fastest on a GPU."""
    coords, sizes = grid(*operands), flat_sizes(axes)
    if len(sizes) > 1 or explicit_sharding(values) is not None:
        return operators.splat(values, *operands, axes=axes, dtype=dtype, deterministic=deterministic, grid=grid)
    cut = units(values, axes, functools.partial(crowd, coords=coords)) if deterministic else None
    count, shape = values.shape[-1], values.shape[:-1]
    sums = Sums(count, count, cut)
    together = count > 1 and in_pairs(axes)
    stored = padded(axes) if together else axes
    (places,) = flat_sizes(stored)
    copies = private_copies(math.prod(shape), places, count)
    total = jnp.zeros((copies * places, sums.width), values.dtype)
    base = own_copy(shape, copies) * places if copies > 1 else jnp.int32(0)
    if together:
        for place, value in paired(values, coords, axes):
            total = scatter_windows(total, place.stored[0] + base, sums.terms(value))
    else:
        for place, value in operators.spread(values, coords, axes):
            total = scatter(total, (place.stored[0] + base,), place.inside, sums.terms(value), "add")
    total = jnp.sum(total.reshape(copies, places, sums.width), 0)
    return as_texels(folded(total, stored, axes), axes, sums, dtype)


def pullback(*args, **static):
    """`resample.pullback` in the way that is fastest on a GPU."""
    return operators.pullback(*args, **static, into_texels=splat)


def own_copy(shape: tuple[int, ...], copies: int) -> jax.Array:
    """The copy that each sample adds to, so that neighbours add to different ones; a power of two of copies."""
    numbers = (jax.lax.broadcasted_iota(jnp.int32, shape, k) * math.prod(shape[k + 1 :]) for k in range(len(shape)))
    return functools.reduce(jnp.add, numbers, jnp.int32(0)) & (copies - 1)


def in_pairs(axes: tuple[Axis, ...]) -> bool:
    """Whether the taps of the last axis are two, which lie side by side in memory."""
    last = axes[-1]
    alone = axes[0].role is not Role.LEVEL and last.address is not AddressMode.SEAM
    return alone and not last.integer and len(last.footprint.weights) == 2 and last.known_size > 1


def padded(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The axes of the sums: where a texture repeats, a row ends in another place for its first texel."""
    *front, last = axes
    return (*front, last._replace(size=last.known_size + 1)) if last.address is AddressMode.WRAP else axes


def folded(total: jax.Array, stored: tuple[Axis, ...], axes: tuple[Axis, ...]) -> jax.Array:
    """The sums in rows as `axes` have them."""
    if stored == axes:
        return total
    size = axes[-1].known_size
    rows = total.reshape(-1, size + 1, total.shape[-1])
    return rows[:, :size].at[:, 0].add(rows[:, size]).reshape(-1, total.shape[-1])


def paired(value: jax.Array, coords: Coords, axes: tuple[Axis, ...]):
    """The part of `value` that falls on each pair of taps, S + (2, C), and the place of the first."""
    last = padded(axes)[-1]
    for weight, place, (*steps, step) in walks(coords, axes):
        for start, part in distribute(place, steps, weighted(weight, value)):
            first, pair = side_by_side(step, only_inside(start, part), last)
            yield start.step(Tap((first,), None, ()), (last.size,)), pair


def side_by_side(step: Step, value: jax.Array, axis: Axis) -> tuple[jax.Array, jax.Array]:
    """The lower of two neighbouring texels that a step's taps fall on, and what falls on each, S + (2, C).

    Taps follow each other up, or down where the texture is mirrored, or fall on one texel; where it repeats, the texel
    after the last one stands for the first.
    """
    parts = (weighted(weight, value) for weight in step.weights())
    masked = (
        part if t.inside is None else jnp.where(t.inside[..., None], part, 0) for t, part in zip(step.taps, parts)
    )
    (i, j), (first, second) = (tap.index[0] for tap in step.taps), masked
    wide = lambda condition: condition[..., None]
    down, same = j == i - 1, i == j
    low = jnp.where(wide(down), second, jnp.where(wide(same), first + second, first))
    high = jnp.where(wide(down), first, jnp.where(wide(same), 0, second))
    start, end = jnp.where(down, j, i), axis.known_size - 2
    over = start > end  # both on the last texel
    pair = jnp.stack([jnp.where(wide(over), 0, low), jnp.where(wide(over), low, high)], -2)
    return jnp.minimum(start, end), pair
