"""Filters of whole arrays: a stretched filter along one axis, as a sparse matrix, and mip levels.

The stretched filter is for antialiased reads at evenly spaced samples. The filter of a plain read has a fixed number of
taps, however far apart samples are. If samples are more than a texel apart, the filter here is stretched by their step,
so that it covers all texels between them. The weights depend on sizes alone. They are computed in float64 while a
program is traced, and are constants of the program. All rows are padded to one length, so that the matrix and its
transpose are both gathers.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.barriers import materialized
from ..._jax.calls import rounded_up
from ..._jax.indexing import explicit_sharding
from ..._jax.primitives import doubled, mean_of_pair
from ..._tables.address_rules import AddressRule
from ..._tables.filter_kernels import FilterKernel, halving_weights
from ..._tables.storage_formats import sum_dtype

# The entries of a row that are added in one iteration of a scan, so that programs stay small.
ENTRIES_AT_ONCE = 16
# The lengths of rows are rounded up to so many significant binary digits, so that one program serves many sizes.
LENGTH_DIGITS = 3
# A smaller weight, relative to their sum, is a rounding error of zero.
NEGLIGIBLE = 2.0**-40


class Rows(NamedTuple):
    """A sparse matrix: the column and the weight of each entry, (rows, entries)."""

    column: np.ndarray
    weight: np.ndarray

    @property
    def is_identity(self) -> bool:
        """Whether the matrix is the identity."""
        alone = self.column.shape[1] == 1 and bool((self.weight == 1).all())
        return alone and np.array_equal(self.column[:, 0], np.arange(len(self.column)))

    @property
    def step(self) -> int | None:
        """The constant difference of columns between successive rows with equal weights; `None` if there is none."""
        steps = np.diff(self.column, axis=0)
        alike = steps.size > 0 and bool((steps == steps[0, 0]).all() and (self.weight == self.weight[0]).all())
        return int(steps[0, 0]) if alike and steps[0, 0] > 0 else None


class ScaledFilter(NamedTuple):
    """Reads along one axis at evenly spaced samples, by a filter that is stretched by steps above 1.

    Attributes:
        kernel: the filter. A filter of one tap becomes the mean over a step, in which partly covered texels have a part
            of the weight.
        address: the address rule, of one axis.
        size: the number of texels.
        step: the distance between samples, in texels; the first sample is half a step from the edge.
        widened: whether a step above 1 stretches the filter.
        renormalized: whether the weights of taps inside are divided by their sum.
        halved: whether weights sum to a half, so that sums stay finite; `scaled` doubles its result.
    """

    kernel: FilterKernel
    address: AddressRule
    size: int
    samples: int
    step: float
    widened: bool = True
    renormalized: bool = False
    halved: bool = False

    def taps(self) -> tuple[np.ndarray, np.ndarray]:
        """The taps of each sample, unbounded int64, and their weights, float64; (samples, taps)."""
        center = (np.arange(self.samples)[:, None] + 0.5) * self.step
        if self.kernel.blends:
            scale = max(self.step, 1.0) if self.widened else 1.0
            reach = self.kernel.extent * scale
            tap = np.ceil(center - reach - 0.5) + np.arange(int(2 * reach) + 1)
            weight = self.kernel.profile((center - tap - 0.5) / scale)
        else:
            low, high = center - 0.5 * self.step, center + 0.5 * self.step
            tap = np.floor(low) + np.arange(int(np.ceil(self.step)) + 1)
            weight = (np.minimum(tap + 1, high) - np.maximum(tap, low)).clip(0)
        return tap.astype(np.int64), weight / weight.sum(1, keepdims=True)

    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The entries of the matrix from texels to samples, in order: the sample, the texel and the weight of each."""
        # Every tap of every sample, and the texel that it reads; those outside are dropped.
        tap, weight = self.taps()
        texel, inside = tap, None
        if tap.min() < 0 or tap.max() >= self.size:
            assert self.address.apply is not None
            texel, inside = self.address.apply(tap.astype(np.int32), self.size)
        kept = np.abs(weight) > NEGLIGIBLE
        kept = kept if inside is None else kept & inside
        # Several taps of a sample may read one texel; their weights are added.
        places = (np.arange(self.samples)[:, None] * self.size + texel.astype(np.int64))[kept]
        if (np.diff(places) >= 0).all():  # as at most sizes, where sorting would take longer than the rest
            first = np.diff(places, prepend=-1) > 0
            distinct, which = places[first], np.cumsum(first) - 1
        else:
            distinct, which = np.unique(places, return_inverse=True)
        # Weights of a sample may have to sum to one again.
        row, column = np.divmod(distinct, self.size)
        sums = np.bincount(which, weight[kept], len(distinct))
        sums = sums / np.bincount(row, sums)[row] if self.renormalized else sums
        return row, column, sums * (0.5 if self.halved else 1.0)

    @functools.lru_cache  # noqa: B019  all arguments are static
    def rows(self, transposed: bool = False) -> Rows:
        """The matrix from texels to samples, or its transpose."""
        # The entries of each row. For the transpose they are sorted by texel.
        row, column, weight = self.entries()
        count = self.samples
        if transposed:
            order = np.argsort(column, kind="stable")
            row, column, weight, count = column[order], row[order], weight[order], self.size
        # All rows get one length, so that an entry of each row is an array.
        lengths = np.bincount(row, minlength=count)
        width = rounded_length(int(lengths.max()))
        # A shorter row is padded by splitting its last entry into entries that share its weight. Padding of weight zero
        # would turn an infinite texel into NaN. The shares differ: XLA would compute equal products once, and round
        # them differently from products that it does not know to be equal.
        last = np.maximum(lengths - 1, 0)[:, None]
        slot = np.minimum(np.arange(width), last)
        first = (np.cumsum(lengths) - lengths)[:, None]
        place = np.minimum(first + slot, len(row) - 1)
        number, count_of_parts = np.arange(width) - last + 1, width - last
        share = np.where(number > 0, 2 * number / (count_of_parts * (count_of_parts + 1)), 1)
        empty = (lengths == 0)[:, None]
        return Rows(np.where(empty, 0, column[place]), np.where(empty, 0, weight[place] * share))


def rounded_length(length: int) -> int:
    """`length`, rounded up to a length that rows may have."""
    rounded = rounded_up(length, LENGTH_DIGITS)
    return rounded if length <= 2 * ENTRIES_AT_ONCE else -(-rounded // ENTRIES_AT_ONCE) * ENTRIES_AT_ONCE


def multiplied(
    values: jax.Array, scaled_filter: ScaledFilter, axis: int, *, transposed: bool, dtype: np.dtype
) -> jax.Array:
    """The matrix of a filter, or its transpose, times `values` along an axis."""
    column, weight = scaled_filter.rows(transposed)
    sums, sharding = sum_dtype(values.dtype, dtype), explicit_sharding(values)
    # The axis becomes whole on each device.
    if sharding is not None:
        spec = (*sharding.spec, *[None] * (values.ndim - len(sharding.spec)))
        sharding = sharding.update(spec=[*spec[:axis], None, *spec[axis + 1 :]])
    entry, weights = entries_along(materialized(values), axis, sums, sharding), jnp.asarray(weight.T, sums)
    if jnp.issubdtype(values.dtype, jnp.floating):
        # Of terms whose weights are one power of two, XLA would add before it multiplies, which may overflow.
        weights = jax.lax.optimization_barrier(weights)
    return sum_of_entries(entry, jnp.asarray(column.T, jnp.int32), weights).astype(dtype)


def entries_along(
    values: jax.Array, axis: int, sums: np.dtype, sharding: jax.sharding.NamedSharding | None = None
) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """A function ``entry(column, weight)``: the terms that one entry of every row adds to the sums.

    `column` and `weight` have one element for each row.
    """
    shape = [-1 if k == axis else 1 for k in range(values.ndim)]

    def entry(column: jax.Array, weight: jax.Array) -> jax.Array:
        place = (*[slice(None)] * axis, column)
        read = values.at[place].get(mode="promise_in_bounds", wrap_negative_indices=False, out_sharding=sharding)
        return read.astype(sums) * weight.reshape(shape)

    return entry


def sum_of_entries(
    entry: Callable[[jax.Array, jax.Array], jax.Array], columns: jax.Array, weights: jax.Array
) -> jax.Array:
    """The sum of ``entry(column, weight)`` over the leading axis of `columns` and `weights`."""

    def several(columns: jax.Array, weights: jax.Array) -> jax.Array:
        return functools.reduce(jnp.add, map(entry, columns, weights))

    if len(columns) <= 2 * ENTRIES_AT_ONCE:
        return several(columns, weights)
    columns, weights = (a.reshape(-1, ENTRIES_AT_ONCE, *a.shape[1:]) for a in (columns, weights))
    first = several(columns[0], weights[0])
    return jax.lax.scan(lambda total, at: (total + several(*at), None), first, (columns[1:], weights[1:]))[0]


# Mip levels: each is the box-filtered half of the one before


def chain_of(values: jax.Array, *, shape: tuple[int, ...], ndim: int, num_levels: int, adjoint: bool) -> jax.Array:
    """The levels of chains one after the other, B + (total, C), from the finest ones, B + `shape`.

    Args:
        ndim: how many axes before the channels are halved.
        adjoint: whether it is the transpose: the cotangent of the finest levels, from that of the chains.
    """
    batch = values.shape[: -2 if adjoint else values.ndim - len(shape)]

    def chain(texels: jax.Array) -> jax.Array:
        return side_by_side([texels, *levels_after(texels, ndim, num_levels - 1)], len(batch))

    if not adjoint:
        return chain(values)

    def like_finest(chains: jax.Array) -> jax.Array:
        """An array like the finest levels; the sharding and the varying axes of the chains are also theirs."""
        first = jax.lax.slice_in_dim(chains, 0, 1, axis=len(batch))
        ones = range(len(batch), len(batch) + len(shape) - 2)
        return jnp.broadcast_to(jnp.expand_dims(first, tuple(ones)), (*batch, *shape))

    return jax.linear_transpose(chain, *jax.make_jaxpr(like_finest)(values).out_avals)(values)[0]


def side_by_side(levels: Sequence[jax.Array], batch: int) -> jax.Array:
    """Levels one after the other, B + (total, C), from arrays with `batch` axes in front."""
    counts = [math.prod(level.shape[batch:-1]) for level in levels]
    rows = [level.reshape(*level.shape[:batch], count, level.shape[-1]) for level, count in zip(levels, counts)]
    return jnp.concatenate(rows, batch)


def levels_after(texels: jax.Array, ndim: int, count: int) -> list[jax.Array]:
    """So many levels that follow a level."""
    return [*itertools.accumulate(range(count), lambda level, _: next_of(level, ndim), initial=texels)][1:]


def next_of(texels: jax.Array, ndim: int) -> jax.Array:
    """The level after the level `texels`."""
    # Without the barrier, XLA computes each level again from the finest for every texel of the packed chain.
    return jax.lax.optimization_barrier(halved(texels, ndim))


def halved(texels: jax.Array, ndim: int) -> jax.Array:
    """One level from the one before: the box filter along each of the last `ndim` axes before the channels."""
    result = texels.astype(sum_dtype(texels.dtype))
    for axis in range(-1 - ndim, -1):
        result = halved_along(result, result.ndim + axis)
    return result.astype(texels.dtype)


def halved_along(texels: jax.Array, axis: int) -> jax.Array:
    n = texels.shape[axis]
    m = n >> 1
    if m == 0:
        return texels

    def every(first: int) -> jax.Array:
        return jax.lax.slice_in_dim(texels, first, first + 2 * m - 1, 2, axis)

    # Even sizes: pairs of texels. Odd sizes: three texels each, of which neighbors share the outer ones.
    if n == 2 * m:
        return mean_of_pair(every(0), every(1))
    shape = [1] * axis + [m] + [1] * (texels.ndim - 1 - axis)
    first, _, third = (jnp.asarray(w.reshape(shape), texels.dtype) for w in 0.5 * halving_weights(n))
    return doubled(every(0) * first + every(1) * (0.5 * m / n) + every(2) * third)
