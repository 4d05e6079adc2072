"""Resizing on CPUs, by filters that are stretched to the step between samples: the result is computed in bands of rows.

Filters along two axes have an intermediate array. The pages of a large one are new in every call, and touching them
takes longer than filtering. In bands of the result, the intermediate arrays are small and reuse their memory. Halving
an image needs no intermediate array.
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
from ..compute.filters import ENTRIES_AT_ONCE, Rows, ScaledFilter, entries_along, sum_of_entries

# The bytes of the largest intermediate array of a band.
BAND = 2**22
# The bytes of an intermediate array from which on the result is divided into bands: glibc returns the memory of larger
# ones to the system after each call.
LEAST = 2**25
# If bands overlap in the rows that they read, a band reads at most so many times the average number of rows.
MOST_OVERLAP = 2
# The largest number of axes that are halved at once, and of bits of integers that are halved.
MOST_HALVED, SMALL_BITS = 2, 16

Filters = tuple[tuple[int, ScaledFilter], ...]


class Bands(NamedTuple):
    """The division of a resized array into bands.

    Attributes:
        shape: the shape of the array, with the axes before the first filtered one merged into axis 0.
        chain: the filtered axes in order, each with its `Rows`.
        images: the number of elements of axis 0 in a band.
        rows: the number of elements of the result's axis 1 in a band.
        lows: the first row that each band reads, int32.
        extent: the number of rows that a band reads.
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
        """The bands of an array; `None` if its intermediate arrays are small, or bands would overlap too much."""
        first = min(axis for axis, _ in filters)
        chain = tuple(
            (axis - first + 1, stretched.rows(transposed)) for axis, stretched in filters[:: -1 if transposed else 1]
        )
        shape = (math.prod(shape[:first]), *shape[first:])
        while shape[-1] == 1 and len(shape) - 1 not in dict(chain):  # with such an axis XLA copies the array each turn
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
    """`rules.filters.in_order`, with equal bits."""
    if halves(values.dtype, filters, transposed, dtype):
        return half(values, filters, dtype)
    sums = sum_dtype(values.dtype, dtype)
    bands = Bands.of(values.shape, filters, transposed, sums.itemsize)
    assert bands is not None
    shape = list(values.shape)
    for axis, stretched in filters:
        shape[axis] = len(stretched.rows(transposed).column)
    return in_bands(values, bands, sums, dtype).reshape(shape)


def supports_resized(values: Any, *, filters: Filters, transposed: bool, dtype: np.dtype) -> bool:
    if halves(values.dtype, filters, transposed, dtype):
        return True
    return Bands.of(values.shape, filters, transposed, sum_dtype(values.dtype, dtype).itemsize) is not None


# Bands


def in_bands(values: jax.Array, bands: Bands, sums: np.dtype, dtype: np.dtype) -> jax.Array:
    """The resized array of shape `bands.target`, computed band by band."""
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
        # XLA does not divide an update of an array among threads. So the band is materialized, and the update copies.
        return jax.lax.dynamic_update_slice(out, materialized(band), (image, row, *[0] * (len(target) - 2)))

    return jax.lax.fori_loop(0, math.prod(turns), step, jnp.zeros(target, dtype))


def filtered(values: jax.Array, axis: int, rows: Rows, sums: np.dtype) -> jax.Array:
    """`values` filtered along an axis; a sum of strided slices if rows have equal weights and a constant step."""
    if (step := rows.step) is not None and rows.column.shape[1] <= 2 * ENTRIES_AT_ONCE:
        parts, weights = (part.astype(sums) for part in slices(values, axis, rows.column, step)), rows.weight[0]
        if jnp.issubdtype(values.dtype, jnp.floating):
            weights = apart(weights, sums)
        return functools.reduce(jnp.add, map(jnp.multiply, parts, weights.astype(sums)))
    columns, weights = jnp.asarray(rows.column.T, jnp.int32), jnp.asarray(rows.weight.T, sums)
    return sum_of_entries(entries_along(values, axis, sums), columns, weights)


def apart(weights: Any, dtype: np.dtype) -> jax.Array:
    """Weights that XLA does not know: of terms with one power of two it would add before it multiplies."""
    return materialized(jnp.asarray(weights, dtype))


def slices(values: jax.Array, axis: int, column: np.ndarray, step: int) -> list[jax.Array]:
    """For each entry of the rows, its texels as a strided slice. Rows must have a constant `step`."""
    ends = zip(column[0].tolist(), column[-1].tolist())
    return [jax.lax.slice_in_dim(values, low, high + 1, step, axis) for low, high in ends]


# Halves of images


def halves(stored: np.dtype, filters: Filters, transposed: bool, dtype: np.dtype) -> bool:
    """Whether the filters halve one or two axes by means of two texels, of floats or of small integers.

    Then `half` needs no intermediate array, and its sums are exact, or rounded as with one.
    """
    floating = jnp.issubdtype(stored, jnp.floating) and jnp.issubdtype(dtype, jnp.floating)
    small = jnp.issubdtype(stored, jnp.integer) and jnp.iinfo(stored).bits <= SMALL_BITS and dtype == stored
    if transposed or len(filters) > MOST_HALVED or not (floating or small):
        return False
    return all(
        stretched.rows().step == 2
        and np.array_equal(stretched.rows().weight[0], [0.25 if stretched.halved else 0.5] * 2)
        for _, stretched in filters
    )


def half(values: jax.Array, filters: Filters, dtype: np.dtype) -> jax.Array:
    """`values` with the axes of `filters` halved."""
    if jnp.issubdtype(values.dtype, jnp.floating):
        for axis, stretched in filters:
            first, second = slices(values, axis, stretched.rows().column, 2)
            share = apart(stretched.rows().weight[0, 0], dtype)
            values = first.astype(dtype) * share + second.astype(dtype) * share
        return values
    stored, values = values.dtype, values.astype(jnp.int32)
    for axis, stretched in filters:
        values = functools.reduce(jnp.add, slices(values, axis, stretched.rows().column, 2))
    # The mean, rounded half to even.
    count = len(filters)
    return ((values + ((values >> count) & 1) + (2 ** (count - 1) - 1)) >> count).astype(stored)
