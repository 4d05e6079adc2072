"""What the tiles of a resize read, by filters that are as wide as its steps."""

import functools
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._engine.compute.scaled_filter import ENTRIES_AT_ONCE, ScaledFilter, entries_along
from ..._jax.barriers import materialized
from ..._tables.filter_kernels import POINT
from ..resizing import filters_of_axes, is_widened
from .mappings import Size
from .options import ReadOptions
from .tiling import Place, grid_of

# Entries are added up in one expression up to here, as in `scaled_filter`.
AT_ONCE = 2 * ENTRIES_AT_ONCE


class SizedRows(NamedTuple):
    """Rows of a filter as operands, of an axis of known length.

    Attributes:
        columns, weights: (entries, rows).
        length: how many entries count.
    """

    columns: jax.Array
    weights: jax.Array
    length: jax.Array


class Window(NamedTuple):
    """The part of an image that a tile of a resize reads.

    Attributes:
        origin: its first row and column.
        rows: of the filters of both axes.
        first_axis: the axis that is filtered first.
    """

    origin: jax.Array
    rows: tuple[SizedRows, SizedRows]
    first_axis: jax.Array


class ResizeShape(NamedTuple):
    """The shapes in a program for tiles of resizes: of a tile, of the window that it reads, and of the rows."""

    entries: int
    tile: tuple[int, int]
    window: tuple[int, int]


# A resize takes the first shape with room for its rows.
SHAPES = (
    ResizeShape(4, (256, 512), (520, 1032)),
    ResizeShape(8, (128, 256), (400, 800)),
    ResizeShape(16, (64, 128), (512, 1024)),
    ResizeShape(32, (64, 128), (512, 1024)),
    ResizeShape(1024, (32, 64), (1024, 2048)),
)


class ResizeFilters(NamedTuple):
    """The filters of a resize.

    Attributes:
        first_axis: along which the image is filtered first.
        filters: of the vertical and of the horizontal axis.
        shape: of its programs.
        counts: how many rows and columns of the output a tile has.
    """

    first_axis: int
    filters: tuple[ScaledFilter, ScaledFilter]
    shape: ResizeShape
    counts: tuple[int, int]

    @classmethod
    def of(cls, source: Size, size: Size, read: ReadOptions) -> "ResizeFilters | None":
        """The filters from one width and height to others; `None` for single reads."""
        sizes, shape = source[::-1], size[::-1]
        steps = [n / m for n, m in zip(sizes, shape)]
        kernel = POINT if read.area else read.sampler.kernel
        if not is_widened(steps, kernel, area=read.area, antialias=read.antialias):
            return None
        found = filters_of_axes(sizes, shape, steps, kernel, read.sampler.address_rules(2)[::-1])
        filters = dict(found)[0], dict(found)[1]
        return cls(found[0][0], filters, *fitting(filters))

    def places(self) -> list[Place]:
        """The tiles of the output."""
        height, width = (each.samples for each in self.filters)
        return list(grid_of(Place(0, 0, height, width), self.counts))

    def at(self, place: Place, *, padded: bool) -> Window:
        """What a tile reads; with rows of the shape of a program if they are padded."""
        spans, sides = ((place.row, place.height), (place.column, place.width)), self.shape.tile
        first, rows = zip(
            *(
                rows_of(each, *span, (self.shape.entries, side) if padded else None)
                for each, span, side in zip(self.filters, spans, sides)
            )
        )
        window = Window(np.array(first, np.int32), rows, np.array(self.first_axis, np.int32))  # pyright: ignore
        return window  # of NumPy's arrays, before they are on a device


def fitting(filters: tuple[ScaledFilter, ScaledFilter]) -> tuple[ResizeShape, tuple[int, int]]:
    """The shape of the programs of a resize, and how many rows and columns of the output a tile has."""
    entries = max(each.rows().column.shape[1] for each in filters)
    for shape in SHAPES:
        sides = zip(filters, shape.tile, shape.window)
        counts = [count_within(each, side, window) for each, side, window in sides]
        if entries <= shape.entries and min(counts) > 0:
            return shape, (counts[0], counts[1])
    # Around the ends of an axis, or at more than a hundred texels a step, windows are as large as they must be.
    tile = SHAPES[-1].tile
    height, width = (span_of(each, side) for each, side in zip(filters, tile))
    return ResizeShape(entries, tile, (height, width)), tile


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


def rows_of(each: ScaledFilter, first: int, count: int, shape: tuple[int, int] | None) -> tuple[int, SizedRows]:
    """The first texel that some rows of a filter read, and the rows, with columns counted from it.

    Args:
        shape: the entries and the rows of arrays that hold them. Further entries change no sum: they have the weight
            -0, and read a finite texel, or one behind a window that is 0. Further rows are any.
    """
    column, weight = each.rows()
    at = np.minimum(np.arange(first, first + count), each.samples - 1)
    start = int(column[at].min())
    columns, weights = (column[at].T - start).astype(np.int32), weight[at].T.astype(np.float32)
    entries = np.array(len(columns), np.int32)
    if shape is not None:
        more = [(0, n - m) for n, m in zip(shape, columns.shape)]
        columns = np.pad(columns, more, constant_values=-1)
        weights = np.pad(weights, more, constant_values=-0.0)
    return start, SizedRows(columns, weights, entries)  # pyright: ignore  NumPy's arrays, as above


# In programs


def window_of(
    texels: jax.Array, sizes: tuple[jax.Array, jax.Array], origin: tuple[jax.Array, jax.Array], shape: tuple[int, int]
) -> jax.Array:
    """A part of an image whose sizes are operands, (*shape, C). Texels beyond the image have any value.

    Args:
        texels: flat, (capacity, C), row after row; so many texels follow the image as the window has in a row.
        sizes: height and width of the image.
        origin: the first row and the first column, within the image.
    """
    rows = jnp.minimum(origin[0] + jnp.arange(shape[0], dtype=jnp.int32), sizes[0] - 1)
    row = jax.lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0,))
    starts, extent = (rows * sizes[1] + origin[1])[:, None], (shape[1], texels.shape[-1])
    return jax.lax.gather(texels, starts, row, extent, mode="promise_in_bounds")


def filtered_window(values: jax.Array, window: Window, *, finite: bool) -> jax.Array:
    """A window of numbers, which may be known to be finite, filtered along both axes."""

    def filtered(first: int) -> jax.Array:
        found = values
        for axis in (first, 1 - first):
            found = sum_along(found, axis, window.rows[axis], finite)
        return found

    return cast(jax.Array, jax.lax.cond(window.first_axis == 0, lambda: filtered(0), lambda: filtered(1)))


def sum_along(values: jax.Array, axis: int, rows: SizedRows, finite: bool) -> jax.Array:
    """The sums of rows along an axis, of which entries beyond their length add nothing."""
    columns, weights, length = rows
    columns = jnp.where(columns < 0, 0 if finite else values.shape[axis], columns)
    if not finite:
        values = jnp.pad(values, [(0, int(k == axis)) for k in range(values.ndim)])
    entry = entries_along(materialized(values), axis, values.dtype)

    def several(columns: jax.Array, weights: jax.Array) -> jax.Array:
        return functools.reduce(jnp.add, map(entry, columns, weights))

    if len(columns) <= AT_ONCE:
        return several(columns, weights)
    columns, weights = (a.reshape(-1, ENTRIES_AT_ONCE, *a.shape[1:]) for a in (columns, weights))
    turns = (length + (ENTRIES_AT_ONCE - 1)) // ENTRIES_AT_ONCE
    first = several(columns[0], weights[0])

    def step(k: jax.Array, total: jax.Array) -> jax.Array:
        return total + several(columns[k], weights[k])

    return jax.lax.fori_loop(1, turns, step, first)
