"""Filters as wide as the steps between samples on a CPU: band of rows by band of rows, which stays in a cache.

Filters along two axes have an array between them. Where that is large, its memory is new in every call, and to touch
that takes longer than to filter. Bands of the result have small ones, which lie in the same memory. An image of half
the size needs none.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.barriers import materialized
from ..._jax.float_bits import rounded_to
from ..._tables.storage_formats import sum_dtype
from ..compute.scaled_filter import ENTRIES_AT_ONCE, Rows, ScaledFilter, entries_along, sum_of_entries

# Bytes of the largest array between the filters of a band.
BAND = 2**22
# Bytes of one of which bands are made: from here on, glibc gives memory back after each call.
LEAST = 2**25
# Where a band is not filtered first along its own axis, it may read so many times as many rows as on average.
MOST_OVERLAP = 2
# The most axes of half the size that are filtered at once, and the most bits of integers.
MOST_HALVED, SMALL_BITS = 2, 16

Filters = tuple[tuple[int, ScaledFilter], ...]


class Bands(NamedTuple):
    """How an array is resized.

    Attributes:
        shape: of the array: the axes before the first one that is filtered are one, then follow that and the others.
        chain: the axes that are filtered, in order, and the rows of each.
        images: how many elements of the first axis are computed at once.
        rows: how many of the second axis of the result.
        lows: of each band, the first row that it reads.
        extent: how many rows it reads.
    """

    shape: tuple[int, ...]
    chain: tuple[tuple[int, Rows], ...]
    images: int
    rows: int
    lows: np.ndarray
    extent: int

    @property
    def target(self) -> list[int]:
        """The shape of the result."""
        shape = list(self.shape)
        for axis, rows in self.chain:
            shape[axis] = len(rows.column)
        return shape

    @classmethod
    def of(cls, shape: tuple[int, ...], filters: Filters, transposed: bool, itemsize: int) -> "Bands | None":
        """The bands of an array; `None` if there is little between its filters, or a band would read most of it."""
        first = min(axis for axis, _ in filters)
        chain = tuple((axis - first + 1, each.rows(transposed)) for axis, each in filters[:: -1 if transposed else 1])
        shape = (math.prod(shape[:first]), *shape[first:])
        while shape[-1] == 1 and len(shape) - 1 not in dict(chain):  # of which XLA would copy the array in every turn
            shape = shape[:-1]
        sizes, most = list(shape), 0
        for axis, rows in chain[:-1]:
            sizes[axis] = len(rows.column)
            most = max(most, math.prod(sizes) * itemsize)
        if most <= LEAST:
            return None
        column = dict(chain)[1].column
        count = len(column)
        rows = min(max(BAND * count * shape[0] // most, 1), count)
        images = min(max(BAND * shape[0] // most, 1), shape[0]) if rows == count else 1
        if chain[0][0] == 1:
            return cls(shape, chain, images, rows, np.zeros(1, np.int32), shape[1])
        starts = np.minimum(np.arange(0, count, rows), count - rows)
        low, high = (np.array([of(column[at : at + rows]) for at in starts]) for of in (np.min, np.max))
        extent = int((high - low).max()) + 1
        if extent * count > MOST_OVERLAP * shape[1] * rows and rows < count:
            return None
        return cls(shape, chain, images, rows, np.minimum(low, shape[1] - extent).astype(np.int32), extent)


def resized(values: jax.Array, *, filters: Filters, transposed: bool, dtype: np.dtype) -> jax.Array:
    """`rules.scaled_filter.in_order`, with the same bits."""
    if halves(values.dtype, filters, transposed, dtype):
        return half(values, filters, dtype)
    sums = sum_dtype(values.dtype, dtype)
    bands = Bands.of(values.shape, filters, transposed, sums.itemsize)
    assert bands is not None
    shape = list(values.shape)
    for axis, each in filters:
        shape[axis] = len(each.rows(transposed).column)
    return in_bands(values, bands, sums, dtype).reshape(shape)


def supports_resized(values: Any, *, filters: Filters, transposed: bool, dtype: np.dtype) -> bool:
    if halves(values.dtype, filters, transposed, dtype):
        return True
    return Bands.of(values.shape, filters, transposed, sum_dtype(values.dtype, dtype).itemsize) is not None


# Bands


def in_bands(values: jax.Array, bands: Bands, sums: np.dtype, dtype: np.dtype) -> jax.Array:
    """The filters of bands, band by band."""
    target, stored = bands.target, materialized(values.reshape(bands.shape))
    turns = -(-bands.shape[0] // bands.images), -(-target[1] // bands.rows)

    def step(k: jax.Array, out: jax.Array) -> jax.Array:
        image = jnp.minimum(k // turns[1] * bands.images, bands.shape[0] - bands.images)
        row = jnp.minimum(k % turns[1] * bands.rows, target[1] - bands.rows)
        low = jnp.asarray(bands.lows)[k % turns[1]] if len(bands.lows) > 1 else 0
        band = jax.lax.dynamic_slice_in_dim(stored, image, bands.images)
        band = jax.lax.dynamic_slice_in_dim(band, low, bands.extent, 1)
        for number, (axis, rows) in enumerate(bands.chain):
            band = materialized(band) if number else band
            if axis == 1:
                columns, weights = (a.T for a in (rows.column.astype(np.int32), rows.weight.astype(sums)))
                columns, weights = (
                    jax.lax.dynamic_slice_in_dim(jnp.asarray(a), row, bands.rows, 1) for a in (columns, weights)
                )
                band = sum_of_entries(entries_along(band, 1, sums), columns - low, weights)
            else:
                band = filtered(band, axis, rows, sums)
        band = band.astype(dtype) if jnp.issubdtype(dtype, jnp.floating) else rounded_to(band, dtype)
        # What writes into an array is not divided among threads, so it only copies.
        return jax.lax.dynamic_update_slice(out, materialized(band), (image, row, *[0] * (len(target) - 2)))

    return jax.lax.fori_loop(0, math.prod(turns), step, jnp.zeros(target, dtype))


def filtered(values: jax.Array, axis: int, rows: Rows, sums: np.dtype) -> jax.Array:
    """The sums of all rows, from slices where rows are a step apart."""
    if (step := rows.step) is not None and rows.column.shape[1] <= 2 * ENTRIES_AT_ONCE:
        parts = (part.astype(sums) for part in slices(values, axis, rows.column, step))
        return functools.reduce(jnp.add, map(jnp.multiply, parts, rows.weight[0].astype(sums)))
    columns, weights = jnp.asarray(rows.column.T, jnp.int32), jnp.asarray(rows.weight.T, sums)
    return sum_of_entries(entries_along(values, axis, sums), columns, weights)


def slices(values: jax.Array, axis: int, column: np.ndarray, step: int) -> list[jax.Array]:
    """The texels of each entry of rows that are a step apart."""
    ends = zip(column[0].tolist(), column[-1].tolist())
    return [jax.lax.slice_in_dim(values, low, high + 1, step, axis) for low, high in ends]


# Halves of images


def halves(stored: np.dtype, filters: Filters, transposed: bool, dtype: np.dtype) -> bool:
    """Whether one or two axes have half the size, and each number is the mean of 2 or 4, of floats or small integers.

    Then no array lies between the filters: these sums are exact, or rounded as with one.
    """
    floating = jnp.issubdtype(stored, jnp.floating) and jnp.issubdtype(dtype, jnp.floating)
    small = jnp.issubdtype(stored, jnp.integer) and jnp.iinfo(stored).bits <= SMALL_BITS and dtype == stored
    if transposed or len(filters) > MOST_HALVED or not (floating or small):
        return False
    return all(each.rows().step == 2 and np.array_equal(each.rows().weight[0], [0.5, 0.5]) for _, each in filters)


def half(values: jax.Array, filters: Filters, dtype: np.dtype) -> jax.Array:
    """An array of half the size along axes."""
    if jnp.issubdtype(values.dtype, jnp.floating):
        share = materialized(jnp.asarray(0.5, dtype))  # XLA would add before it multiplies, which may overflow
        for axis, each in filters:
            first, second = slices(values, axis, each.rows().column, 2)
            values = first.astype(dtype) * share + second.astype(dtype) * share
        return values
    stored, values = values.dtype, values.astype(jnp.int32)
    for axis, each in filters:
        values = functools.reduce(jnp.add, slices(values, axis, each.rows().column, 2))
    # Rounded half to even.
    count = len(filters)
    return ((values + ((values >> count) & 1) + (2 ** (count - 1) - 1)) >> count).astype(stored)
