"""Tiles of a resize with widened filters."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._engine.api import ENTRIES_AT_ONCE, ScaledFilter
from ..._jax.barriers import materialized
from ..._jax.indexing import gather
from ..options import ReadOptions
from ..resizing import filters_of_axes, is_widened
from ..streaming import Box
from .mappings import Size

# Up to so many entries are added up in one expression, as in `compute.filters`.
AT_ONCE = 2 * ENTRIES_AT_ONCE
# How many rows are filtered at once along their columns.
TURN = 32
# Of more entries, a loop adds so many in one turn.
MOST_IN_PLACE, SEVERAL = 8, 4
# Computes the terms of one entry of each row, from its columns and weights.
Entry = Callable[[jax.Array, jax.Array], jax.Array]


class SizedRows(NamedTuple):
    """Rows of a filter as operands.

    Attributes:
        first: the texel with column 0.
        columns, weights: (entries, rows). Columns below 0 have no texel.
        entries, rows: the numbers of valid ones.
    """

    first: jax.Array
    columns: jax.Array
    weights: jax.Array
    entries: jax.Array
    rows: jax.Array


class Filters(NamedTuple):
    """The filters of a tile of a resize.

    Attributes:
        first_axis: the axis that is filtered first.
    """

    rows: tuple[SizedRows, SizedRows]
    first_axis: jax.Array


class ResizeShape(NamedTuple):
    """The shapes in a program for tiles of resizes.

    Attributes:
        entries: the most entries of a row of a filter.
        tile: height and width.
        turn: how many rows of a tile are computed at once, so that intermediate values stay in a cache.
        window: the most rows of the image that a tile reads if columns are filtered first; the most columns.
    """

    entries: int
    tile: tuple[int, int]
    turn: int
    window: tuple[int, int]


# Entries of a row, height of a tile, and its rows in a turn. A resize takes the first row that fits.
TILES = ((4, 512, 128), (8, 256, 32), (16, 256, 16), (32, 256, 16), (1024, 64, 4))
# The widths of tiles; the largest whose window does not have too many columns is taken.
WIDTHS = (256, 128, 64)
# A window fits a tile at this share of the largest step with so many entries. At smaller steps, columns of the window
# are filtered in vain; at larger ones, columns of the tile.
SHARE = 0.6
# The most rows of a window if columns are filtered first, and the most columns, except for very many entries.
MOST_ROWS, MOST_COLUMNS, MOST_COLUMNS_OF_MANY = 512, 1280, 2048


def shapes_for(each: ScaledFilter) -> Iterator[ResizeShape]:
    """The shapes of resizes by a filter."""
    across = 2 * each.kernel.extent if each.kernel.blends else 1
    for entries, height, turn in TILES:
        step = SHARE * entries / across
        width = next((n for n in WIDTHS if step * n <= MOST_COLUMNS), WIDTHS[-1])
        columns = min(int(step * width) + entries, MOST_COLUMNS_OF_MANY)
        yield ResizeShape(entries, (height, width), turn, (max(MOST_ROWS, entries), columns))


class ResizeFilters(NamedTuple):
    """The filters of a resize.

    Attributes:
        filters: of the vertical and of the horizontal axis.
        counts: rows and columns of the output in a tile.
        kept: operands, by axis, first row and room for rows.
    """

    first_axis: int
    filters: tuple[ScaledFilter, ScaledFilter]
    shape: ResizeShape
    counts: tuple[int, int]
    kept: dict[tuple[int, int, int], SizedRows]

    @classmethod
    def of(cls, source: Size, size: Size, read: ReadOptions, stored: np.dtype[Any]) -> "ResizeFilters | None":
        """The filters of a resize; `None` for single reads.

        A read has taps of weight zero along an axis that keeps its size, which matter if texels, of dtype `stored`, may
        be infinite or NaN. Filters have none.
        """
        sizes, shape = source[::-1], size[::-1]
        steps = [n / m for n, m in zip(sizes, shape)]
        keeps = 1 in steps and read.kernel.blends and jnp.issubdtype(stored, jnp.floating)
        if not (keeps or is_widened(steps, read)):
            return None
        rules = read.sampler.address_rules(2)[::-1]
        halved = stored == np.float32
        found = filters_of_axes(sizes, shape, steps, read.kernel, rules, halved=halved, widened=read.antialias)
        filters, first = (dict(found)[0], dict(found)[1]), found[0][0]
        return cls(first, filters, *fitting(filters, first), {})

    def places(self) -> list[Box]:
        """The tiles of the output."""
        height, width = (each.samples for each in self.filters)
        return list(Box((0, 0), (height, width)).covered(self.counts))

    def spans(self, place: Box) -> np.ndarray:
        """The first and the last texel that a tile reads along each axis, (2, 2)."""
        columns = [each.rows().column[at] for each, at in zip(self.filters, self.samples(place))]
        return np.array([(column.min(), column.max()) for column in columns])

    def samples(self, place: Box) -> tuple[slice, ...]:
        """The rows of both filters in a tile."""
        return place.cut([each.samples for each in self.filters])

    def shape_within(self, place: Box, stored: tuple[int, int] | None) -> ResizeShape:
        """The shapes in a program for a tile, by the rows and columns that the tile reads."""
        if stored is None:
            return self.shape
        entries = max(each.rows().column.shape[1] for each in self.filters)
        height, width = place.shape
        return ResizeShape(entries, (height, width), height, stored)

    def at(self, place: Box, shape: ResizeShape) -> Filters:
        """The filters of a tile, as arrays of NumPy."""
        found: list[SizedRows] = []
        for axis, samples in enumerate(self.samples(place)):
            key = axis, samples.start, shape.tile[axis]
            if key not in self.kept:
                self.kept[key] = rows_of(self.filters[axis], samples, (shape.entries, shape.tile[axis]))
            found.append(self.kept[key])
        return Filters((found[0], found[1]), cast(jax.Array, np.array(self.first_axis, np.int32)))


def fitting(filters: tuple[ScaledFilter, ScaledFilter], first_axis: int) -> tuple[ResizeShape, tuple[int, int]]:
    """The shape of the programs of a resize, and the rows and columns of the output in a tile."""
    entries = max(each.rows().column.shape[1] for each in filters)
    vertical, horizontal = filters
    for shape in shapes_for(horizontal):
        columns = count_within(horizontal, shape.tile[1], shape.window[1])
        # Rows filtered first are read one by one.
        rows = shape.tile[0] if first_axis == 0 else count_within(vertical, shape.tile[0], shape.window[0])
        if entries <= shape.entries and min(rows, columns) > 0:
            # Tiles of about equal size, as a program computes all its columns.
            columns = -(-horizontal.samples // -(-horizontal.samples // columns))
            return shape, (rows, count_within(horizontal, columns, shape.window[1]))
    # Around the ends of an axis, or at steps of more than a hundred texels, windows grow as needed.
    *_, last = shapes_for(horizontal)
    height, width = (span_of(each, side) for each, side in zip(filters, last.tile))
    return last._replace(entries=entries, window=(height, width)), last.tile


@functools.lru_cache(maxsize=2**10)
def count_within(each: ScaledFilter, most: int, window: int) -> int:
    """How many rows of a filter fit into a window, wherever a tile begins; at most `most`."""
    count = min(most, each.samples)
    while count and (span := span_of(each, count)) > window:
        count = min(count - 1, count * window // span)
    return count


@functools.lru_cache(maxsize=2**10)
def span_of(each: ScaledFilter, count: int) -> int:
    """The most texels that so many rows of a filter read, over all tiles."""
    column = each.rows().column
    starts = np.arange(0, each.samples, count)
    low, high = np.minimum.reduceat(column[:, 0], starts), np.maximum.reduceat(column[:, -1], starts)
    return int((high - low).max()) + 1


def rows_of(each: ScaledFilter, samples: slice, shape: tuple[int, int]) -> SizedRows:
    """Some rows of a filter, as NumPy arrays, with columns counted from their first texel.

    Args:
        shape: of the arrays. Further entries have a weight of -0, which changes no sum. Further rows repeat the last
            one.
    """
    column, weight = (array[samples].T for array in each.rows())
    entries, rows = column.shape
    first = column.min()
    columns, weights = np.full(shape, -1, np.int32), np.full(shape, -0.0, np.float32)
    columns[:entries, :rows], weights[:entries, :rows] = column - first, weight
    columns[:entries, rows:] = columns[:entries, rows - 1 : rows]
    first, entries, rows = (np.array(n, np.int32) for n in (first, entries, rows))
    return SizedRows(first, columns, weights, entries, rows)  # pyright: ignore  NumPy's arrays, before they are sent


# In programs


class Stored(NamedTuple):
    """The texels that a resize reads.

    Attributes:
        texels: flat, (capacity, C), row after row; behind the image is room for a row of the window.
        finite: whether all are finite numbers.
    """

    texels: jax.Array
    height: int | jax.Array
    width: int | jax.Array
    finite: bool


def filtered(
    stored: Stored, filters: Filters, shape: ResizeShape, finish: Callable[[jax.Array], jax.Array]
) -> jax.Array:
    """A tile of a resize, (*shape.tile, C), computed a few rows at a time.

    Args:
        finish: converts sums, (..., C), to pixels.
    """
    channels = stored.texels.shape[1]
    like = jax.eval_shape(finish, jax.ShapeDtypeStruct((1, 1, channels), np.float32))
    rows, columns = filters.rows
    loops = shape.turn < shape.tile[0]
    several = SEVERAL if loops and shape.entries > MOST_IN_PLACE else 0

    def of_rows(sums: Callable[[SizedRows], jax.Array]) -> jax.Array:
        def pixels(k: jax.Array) -> jax.Array:
            some = (jax.lax.dynamic_slice_in_dim(a, k, shape.turn, 1) for a in (rows.columns, rows.weights))
            return finish(sums(rows._replace(**dict(zip(("columns", "weights"), some)))))

        return in_turns(pixels, shape.turn, rows.rows, jnp.zeros((*shape.tile, channels), like.dtype))

    def rows_first() -> jax.Array:
        def sums(some: SizedRows) -> jax.Array:
            between = materialized(vertical_sums(stored, some, columns.first, shape.window[1], several))
            return sum_of(entries_of(between, 1, stored.finite), columns, several)

        return of_rows(sums)

    def columns_first() -> jax.Array:
        # This is rare, so a small, slower program with loops suffices.
        turn = min(TURN, shape.window[0]) if loops else shape.window[0]
        total = functools.partial(sum_of, several=int(loops))

        def sums(row: jax.Array) -> jax.Array:
            return total(horizontal_entries(stored, rows.first + row, turn, columns.first), columns)

        between = jnp.zeros((shape.window[0], shape.tile[1], channels), np.float32)
        between = materialized(in_turns(sums, turn, jnp.max(rows.columns) + 1, between))
        return of_rows(lambda some: total(entries_of(between, 0, stored.finite), some))

    return jax.lax.cond(filters.first_axis == 0, rows_first, columns_first)


def in_turns(some: Callable[[jax.Array], jax.Array], turn: int, count: jax.Array, into: jax.Array) -> jax.Array:
    """An array whose first rows a function sets, so many rows at a time."""
    if turn == into.shape[0]:
        return some(jnp.zeros((), jnp.int32))

    def step(k: jax.Array, found: jax.Array) -> jax.Array:
        first = jnp.minimum(k * turn, into.shape[0] - turn)
        # Writes into an array are not divided among threads, so this only copies.
        return jax.lax.dynamic_update_slice_in_dim(found, materialized(some(first)), first, 0)

    return jax.lax.fori_loop(0, (count + (turn - 1)) // turn, step, into)


def vertical_sums(stored: Stored, rows: SizedRows, column: jax.Array, width: int, several: int) -> jax.Array:
    """The vertical sums of rows, for `width` columns from `column` on: (rows, width, C)."""
    channels = stored.texels.shape[1]

    def entry(columns: jax.Array, weights: jax.Array) -> jax.Array:
        starts = (rows.first + jnp.maximum(columns, 0)) * stored.width + column
        return weighted(slices_from(stored.texels, starts, width), columns, weights, 0, stored.finite)

    return sum_of(entry, rows, several).reshape(-1, width, channels)


def horizontal_entries(stored: Stored, row: jax.Array, height: int, column: jax.Array) -> Entry:
    """The terms of entries along the rows of an image, from one row and one column on."""
    rows = jnp.minimum(row + jnp.arange(height, dtype=jnp.int32), stored.height - 1)[:, None]

    def entry(columns: jax.Array, weights: jax.Array) -> jax.Array:
        places = rows * stored.width + (column + jnp.maximum(columns, 0))[None]
        return weighted(gather(stored.texels, (places,)), columns, weights, 1, stored.finite)

    return entry


def entries_of(values: jax.Array, axis: int, finite: bool) -> Entry:
    """The terms of entries along an axis."""

    def entry(columns: jax.Array, weights: jax.Array) -> jax.Array:
        place = (*[slice(None)] * axis, jnp.maximum(columns, 0))
        read = values.at[place].get(mode="promise_in_bounds", wrap_negative_indices=False)
        return weighted(read, columns, weights, axis, finite)

    return entry


def slices_from(texels: jax.Array, starts: jax.Array, count: int) -> jax.Array:
    """`count` texels from each start on: (starts, count * C), or (starts, count, C) for very many texels."""
    where = functools.partial(jax.lax.gather, mode="promise_in_bounds")
    if texels.size > jnp.iinfo(jnp.int32).max:
        row = jax.lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0,))
        return where(texels, starts[:, None], row, (count, texels.shape[1]))
    # XLA vectorizes loops over numbers, not over the channels of a texel.
    row = jax.lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(), start_index_map=(0,))
    channels = texels.shape[1]
    return where(texels.reshape(-1), starts[:, None] * channels, row, (count * channels,))


def weighted(read: jax.Array, columns: jax.Array, weights: jax.Array, axis: int, finite: bool) -> jax.Array:
    """The terms of one entry of each row; an entry without a column counts as 0."""
    shape = [-1 if k == axis else 1 for k in range(read.ndim)]
    values = read.astype(np.float32)
    values = values if finite else jnp.where((columns < 0).reshape(shape), 0, values)
    return values * weights.reshape(shape)


def sum_of(entry: Entry, rows: SizedRows, several: int) -> jax.Array:
    """The sum over the entries of rows, in the order of `compute.filters.sum_of_entries`.

    Args:
        several: how many entries a loop adds in one turn; with 0, or no more entries, there is no loop.
    """
    if len(rows.columns) <= AT_ONCE:
        return added_up(entry, rows.columns, rows.weights, rows.entries, several)
    columns, weights = (a.reshape(-1, ENTRIES_AT_ONCE, *a.shape[1:]) for a in (rows.columns, rows.weights))
    inner = 0 if several > 1 else several

    def group(columns: jax.Array, weights: jax.Array) -> jax.Array:
        return added_up(entry, columns, weights, ENTRIES_AT_ONCE, inner)

    return added_up(group, columns, weights, (rows.entries + (ENTRIES_AT_ONCE - 1)) // ENTRIES_AT_ONCE, 1)


def added_up(entry: Entry, columns: jax.Array, weights: jax.Array, count: int | jax.Array, several: int) -> jax.Array:
    """The sum of the terms, one after the other."""
    if several == 0 or len(columns) <= several:
        return functools.reduce(jnp.add, map(entry, columns, weights))
    columns, weights = (a.reshape(-1, several, *a.shape[1:]) for a in (columns, weights))

    def step(k: jax.Array, total: jax.Array) -> jax.Array:
        return functools.reduce(jnp.add, map(entry, columns[k], weights[k]), total)

    like = jax.eval_shape(entry, columns[0, 0], weights[0, 0])
    # Adding to -0 changes no number.
    return jax.lax.fori_loop(0, (count + (several - 1)) // several, step, jnp.full(like.shape, -0.0, like.dtype))
