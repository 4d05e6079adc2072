"""What the tiles of a resize read, by filters that are as wide as its steps."""

import functools
from collections.abc import Callable
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._engine.compute.scaled_filter import ENTRIES_AT_ONCE, ScaledFilter
from ..._jax.barriers import materialized
from ..._jax.indexing import gather
from ..._tables.filter_kernels import POINT
from ..resizing import filters_of_axes, is_widened
from .mappings import Size
from .options import ReadOptions
from .tiling import Place, grid_of

# Entries are added up in one expression up to here, as in `scaled_filter`.
AT_ONCE = 2 * ENTRIES_AT_ONCE


class SizedRows(NamedTuple):
    """Rows of a filter as operands.

    Attributes:
        first: the texel that columns count from.
        columns, weights: (entries, rows). Columns below 0 are of no texel.
        entries, rows: how many count, rounded up to what a loop takes at once.
    """

    first: jax.Array
    columns: jax.Array
    weights: jax.Array
    entries: jax.Array
    rows: jax.Array


class Filters(NamedTuple):
    """The filters of a tile of a resize.

    Attributes:
        rows: of both axes.
        first_axis: the axis that is filtered first.
    """

    rows: tuple[SizedRows, SizedRows]
    first_axis: jax.Array


class ResizeShape(NamedTuple):
    """The shapes in a program for tiles of resizes.

    Attributes:
        entries: of a row of a filter, at most.
        tile: height and width.
        turn: how many rows of a tile are computed at once, so that what lies between the filters stays in a cache.
        window: how many rows of the image a turn reads at most, and how many columns.
    """

    entries: int
    tile: tuple[int, int]
    turn: int
    window: tuple[int, int]


# A resize takes the first shape with room for its rows.
SHAPES = (
    ResizeShape(4, (512, 256), 128, (400, 800)),
    ResizeShape(8, (256, 256), 32, (240, 1856)),
    ResizeShape(16, (256, 128), 16, (256, 2048)),
    ResizeShape(32, (256, 64), 16, (512, 2048)),
    ResizeShape(1024, (64, 64), 4, (1024, 2048)),
)


class ResizeFilters(NamedTuple):
    """The filters of a resize.

    Attributes:
        first_axis: along which the image is filtered first.
        filters: of the vertical and of the horizontal axis.
        shape: of its programs.
        counts: how many rows and columns of the output a tile has.
        kept: operands of programs, by axis, first row and room for rows.
    """

    first_axis: int
    filters: tuple[ScaledFilter, ScaledFilter]
    shape: ResizeShape
    counts: tuple[int, int]
    kept: dict[tuple[int, int, int], SizedRows]

    @classmethod
    def of(cls, source: Size, size: Size, read: ReadOptions) -> "ResizeFilters | None":
        """The filters from one width and height to others; `None` for single reads."""
        sizes, shape = source[::-1], size[::-1]
        steps = [n / m for n, m in zip(sizes, shape)]
        kernel = POINT if read.area else read.sampler.kernel
        if not is_widened(steps, kernel, area=read.area, antialias=read.antialias):
            return None
        found = filters_of_axes(sizes, shape, steps, kernel, read.sampler.address_rules(2)[::-1])
        filters, first = (dict(found)[0], dict(found)[1]), found[0][0]
        return cls(first, filters, *fitting(filters, first), {})

    def places(self) -> list[Place]:
        """The tiles of the output."""
        height, width = (each.samples for each in self.filters)
        return list(grid_of(Place(0, 0, height, width), self.counts))

    def spans(self, place: Place) -> np.ndarray:
        """The first and the last texel that a tile reads along each axis, (2, 2)."""
        columns = [each.rows().column[at] for each, at in zip(self.filters, self.samples(place))]
        return np.array([(column.min(), column.max()) for column in columns])

    def samples(self, place: Place) -> list[slice]:
        """The rows of both filters that a tile has."""
        spans = (place.row, place.height), (place.column, place.width)
        return [slice(first, min(first + n, each.samples)) for (first, n), each in zip(spans, self.filters)]

    def shape_within(self, place: Place, stored: tuple[int, int] | None) -> ResizeShape:
        """The shapes in a program for a tile, of an image or of so many rows and columns that the tile reads."""
        if stored is None:
            return self.shape
        entries = max(each.rows().column.shape[1] for each in self.filters)
        return ResizeShape(entries, (place.height, place.width), place.height, stored)

    def at(self, place: Place, shape: ResizeShape) -> Filters:
        """The filters of a tile, as arrays of NumPy."""
        found: list[SizedRows] = []
        for axis, samples in enumerate(self.samples(place)):
            key = axis, samples.start, shape.tile[axis]
            if key not in self.kept:
                turn = shape.turn if axis == 0 else 1
                self.kept[key] = rows_of(self.filters[axis], samples, (shape.entries, shape.tile[axis]), turn)
            found.append(self.kept[key])
        return Filters((found[0], found[1]), cast(jax.Array, np.array(self.first_axis, np.int32)))


def fitting(filters: tuple[ScaledFilter, ScaledFilter], first_axis: int) -> tuple[ResizeShape, tuple[int, int]]:
    """The shape of the programs of a resize, and how many rows and columns of the output a tile has."""
    entries = max(each.rows().column.shape[1] for each in filters)
    vertical, horizontal = filters
    for shape in SHAPES:
        columns = count_within(horizontal, shape.tile[1], shape.window[1])
        # Rows that are filtered first are read one by one.
        reads_few = first_axis == 0 or span_of(vertical, shape.turn) <= shape.window[0]
        if entries <= shape.entries and columns > 0 and reads_few:
            # Tiles of about one size, as all columns of a program are computed.
            tiles = -(-horizontal.samples // columns)
            columns = count_within(horizontal, -(-horizontal.samples // tiles), shape.window[1])
            return shape, (shape.tile[0], columns)
    # Around the ends of an axis, or at more than a hundred texels a step, windows are as large as they must be.
    last = SHAPES[-1]
    window = span_of(vertical, last.turn), span_of(horizontal, last.tile[1])
    return ResizeShape(entries, last.tile, last.turn, window), last.tile


@functools.lru_cache(maxsize=2**10)
def count_within(each: ScaledFilter, most: int, window: int) -> int:
    """How many rows of a filter read no more texels than a window has, wherever a tile begins; at most `most`."""
    count = min(most, each.samples)
    while count and (span := span_of(each, count)) > window:
        count = min(count - 1, count * window // span)
    return count


@functools.lru_cache(maxsize=2**10)
def span_of(each: ScaledFilter, count: int) -> int:
    """How many texels so many rows of a filter read at most, of tiles side by side."""
    column = each.rows().column
    starts = np.arange(0, each.samples, count)
    low, high = np.minimum.reduceat(column.min(1), starts), np.maximum.reduceat(column.max(1), starts)
    return int((high - low).max()) + 1


def rows_of(each: ScaledFilter, samples: slice, shape: tuple[int, int], turn: int) -> SizedRows:
    """Some rows of a filter, as arrays of NumPy, with columns counted from the first texel that they read.

    Args:
        shape: of the arrays. Further entries change no sum: their weight is -0. Further rows read what the last one does.
        turn: how many rows a loop takes at once.
    """
    column, weight = (array[samples].T for array in each.rows())
    entries, rows = column.shape
    first = column.min()
    columns, weights = np.full(shape, -1, np.int32), np.full(shape, -0.0, np.float32)
    columns[:entries, :rows], weights[:entries, :rows] = column - first, weight
    columns[:entries, rows:] = columns[:entries, rows - 1 : rows]
    numbers = (np.array(n, np.int32) for n in (first, entries, -(-rows // turn) * turn))
    first, entries, rows = numbers
    return cast(SizedRows, SizedRows(first, columns, weights, entries, rows))


# In programs


class Stored(NamedTuple):
    """The texels that a resize reads.

    Attributes:
        texels: flat, (capacity, C), row after row; so many texels follow the image as the window has in a row.
        height, width: of the image.
        finite: whether all are finite numbers.
    """

    texels: jax.Array
    height: int | jax.Array
    width: int | jax.Array
    finite: bool


def filtered(
    stored: Stored, filters: Filters, shape: ResizeShape, finish: Callable[[jax.Array], jax.Array]
) -> jax.Array:
    """A tile of a resize, (*shape.tile, C), some rows after the other.

    Args:
        finish: makes pixels of sums, (..., C), one by one.
    """
    channels = stored.texels.shape[1]
    like = jax.eval_shape(finish, jax.ShapeDtypeStruct((1, 1, channels), np.float32))
    rows, columns = filters.rows

    def of_rows(sums: Callable[[SizedRows], jax.Array]) -> jax.Array:
        def step(k: jax.Array, tile: jax.Array) -> jax.Array:
            some = (jax.lax.dynamic_slice_in_dim(a, k * shape.turn, shape.turn, 1) for a in (rows.columns, rows.weights))
            pixels = finish(sums(rows._replace(**dict(zip(("columns", "weights"), some)))))
            # What writes into an array is not divided among threads, so it only copies.
            return jax.lax.dynamic_update_slice_in_dim(tile, materialized(pixels), k * shape.turn, 0)

        return jax.lax.fori_loop(0, rows.rows // shape.turn, step, jnp.zeros((*shape.tile, channels), like.dtype))

    def rows_first(rows: SizedRows) -> jax.Array:
        between = vertical_sums(stored, rows, columns.first, shape.window[1])
        return sums_along(between, 1, columns, stored.finite)

    def columns_first(rows: SizedRows) -> jax.Array:
        first = jnp.min(jnp.where(rows.columns < 0, stored.height, rows.columns))
        between = horizontal_sums(stored, rows.first + first, columns, shape.window[0])
        return sums_along(between, 0, rows._replace(columns=rows.columns - first), stored.finite)

    return jax.lax.cond(filters.first_axis == 0, lambda: of_rows(rows_first), lambda: of_rows(columns_first))


def vertical_sums(stored: Stored, rows: SizedRows, column: jax.Array, width: int) -> jax.Array:
    """The sums of rows of an image along its columns, of so many columns from one on: (rows, width, C)."""
    channels = stored.texels.shape[1]

    def entry(columns: jax.Array, weights: jax.Array) -> jax.Array:
        starts = (rows.first + jnp.maximum(columns, 0)) * stored.width + column
        return weighted(slices_from(stored.texels, starts, width), columns, weights, 0, stored.finite)

    return sum_of(entry, rows).reshape(-1, width, channels)


def horizontal_sums(stored: Stored, first: jax.Array, columns: SizedRows, height: int) -> jax.Array:
    """The sums of columns of an image along its rows, of so many rows from one on: (height, columns, C)."""
    rows = jnp.minimum(first + jnp.arange(height, dtype=jnp.int32), stored.height - 1)[:, None]

    def entry(numbers: jax.Array, weights: jax.Array) -> jax.Array:
        places = rows * stored.width + (columns.first + jnp.maximum(numbers, 0))[None]
        return weighted(gather(stored.texels, (places,)), numbers, weights, 1, stored.finite)

    return sum_of(entry, columns)


def sums_along(values: jax.Array, axis: int, rows: SizedRows, finite: bool) -> jax.Array:
    """The sums of rows along an axis of numbers that are not stored yet."""
    values = materialized(values)

    def entry(columns: jax.Array, weights: jax.Array) -> jax.Array:
        place = (*[slice(None)] * axis, jnp.maximum(columns, 0))
        read = values.at[place].get(mode="promise_in_bounds", wrap_negative_indices=False)
        return weighted(read, columns, weights, axis, finite)

    return sum_of(entry, rows)


def slices_from(texels: jax.Array, starts: jax.Array, count: int) -> jax.Array:
    """So many texels from each start on: (starts, count * C), or (starts, count, C) where an int32 counts no numbers."""
    where = functools.partial(jax.lax.gather, mode="promise_in_bounds")
    if texels.size > jnp.iinfo(jnp.int32).max:
        row = jax.lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0,))
        return where(texels, starts[:, None], row, (count, texels.shape[1]))
    # XLA vectorizes a loop over numbers, but not one over the channels of a texel.
    row = jax.lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(), start_index_map=(0,))
    channels = texels.shape[1]
    return where(texels.reshape(-1), starts[:, None] * channels, row, (count * channels,))


def weighted(read: jax.Array, columns: jax.Array, weights: jax.Array, axis: int, finite: bool) -> jax.Array:
    """What one entry of each row adds, of the numbers that it reads; those of no column count as 0."""
    shape = [-1 if k == axis else 1 for k in range(read.ndim)]
    values = read.astype(np.float32)
    values = values if finite else jnp.where((columns < 0).reshape(shape), 0, values)
    return values * weights.reshape(shape)


def sum_of(entry: Callable[[jax.Array, jax.Array], jax.Array], rows: SizedRows) -> jax.Array:
    """The sum over the entries of rows that count."""

    def several(columns: jax.Array, weights: jax.Array) -> jax.Array:
        return functools.reduce(jnp.add, map(entry, columns, weights))

    if len(rows.columns) <= AT_ONCE:
        return several(rows.columns, rows.weights)
    columns, weights = (a.reshape(-1, ENTRIES_AT_ONCE, *a.shape[1:]) for a in (rows.columns, rows.weights))
    turns = (rows.entries + (ENTRIES_AT_ONCE - 1)) // ENTRIES_AT_ONCE

    def step(k: jax.Array, total: jax.Array) -> jax.Array:
        return total + several(columns[k], weights[k])

    return jax.lax.fori_loop(1, turns, step, several(columns[0], weights[0]))
