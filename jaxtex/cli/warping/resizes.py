"""What the tiles of a resize read, by filters that are as wide as its steps."""

import functools
from typing import NamedTuple

import numpy as np

from ..._engine.compute.scaled_filter import ScaledFilter, SizedRows, rounded_up
from ..._tables.filter_kernels import POINT
from ...warp.resizing import filters_of_axes, is_widened
from .mappings import Array, Size
from .programs import ReadOptions, Window
from .tiling import Place, large_shape

# Windows have sizes of so many binary digits, which zeros follow.
WINDOW_DIGITS = 4


class ResizeFilters(NamedTuple):
    """The filters of a resize.

    Attributes:
        first_axis: along which the image is filtered first.
        filters: of the vertical and of the horizontal axis.
    """

    first_axis: int
    filters: tuple[ScaledFilter, ScaledFilter]

    @classmethod
    def of(cls, source: Size, size: Size, read: ReadOptions) -> "ResizeFilters | None":
        """The filters from one width and height to others; `None` for single reads."""
        sizes, shape = source[::-1], size[::-1]
        steps = [n / m for n, m in zip(sizes, shape)]
        kernel = POINT if read.area else read.sampler.kernel
        if not is_widened(steps, kernel, area=read.area, antialias=read.antialias):
            return None
        found = filters_of_axes(sizes, shape, steps, kernel, read.sampler.address_rules(2)[::-1])
        filters = dict(found)
        return cls(found[0][0], (filters[0], filters[1]))

    @property
    def longest_row(self) -> int:
        """The width of the widest window."""
        return self.window(large_shape(self.filters[1].samples))[1]

    def window(self, shape: tuple[int, int]) -> tuple[int, int]:
        """The height and the width of what tiles of a shape read."""
        height, width = (extent(each, n) for each, n in zip(self.filters, shape))
        return height, width

    def at(self, place: Place) -> Window:
        """What a tile reads."""
        spans = (place.row, place.height), (place.column, place.width)
        first, rows = zip(*(rows_of(each, *span) for each, span in zip(self.filters, spans)))
        return Window(np.array(first, np.int32), rows)  # pyright: ignore  NumPy's arrays, before they are on a device


def rows_of(each: ScaledFilter, first: int, count: int) -> tuple[int, SizedRows]:
    """The first texel that some rows of a filter read, and the rows, with columns counted from it."""
    column, weight = each.rows()
    at = np.minimum(np.arange(first, first + count), each.samples - 1)
    start = int(column[at].min())
    columns, weights = (column[at].T - start).astype(np.int32), weight[at].T.astype(np.float32)
    return start, SizedRows(columns, weights)  # pyright: ignore  as above


@functools.lru_cache(maxsize=2**10)
def extent(each: ScaledFilter, count: int) -> int:
    """How many texels so many rows of a filter read at most, rounded up, so that there are few windows."""
    column: Array = each.rows().column
    firsts = range(0, each.samples, 64)
    spans = (column[k : k + count] for k in firsts)
    return rounded_up(max(int(span.max() - span.min()) + 1 for span in spans), WINDOW_DIGITS)
