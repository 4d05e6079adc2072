"""Grids whose vertices share the rows of a table; a hash of the vertex, or strides, choose the row.

Source: T. Müller, A. Evans, C. Schied and A. Keller, "Instant Neural Graphics Primitives with a Multiresolution Hash
Encoding", 2022.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ..._tables.address_rules import CLAMP, AddressRule, Size, StoredTap, TapsOfAxes, clamp
from ..._tables.filter_kernels import LINEAR, POINT, FilterKernel
from ..._tables.storage_formats import rounded_dtype, sum_dtype
from .axis import Axis, Role, of_level
from .operands import Arrays, Stack, Stacked
from .plan import plan_of_axes
from .spec import Read

# The factors of a vertex's indices along x, y, z and a fourth axis.
FACTORS = (1, 2654435761, 805459861, 3674653429)


def hashed_rows(taps: TapsOfAxes, sizes: Sequence[Size], rows: int) -> list[jax.Array]:
    """The rows of vertices in a table of `rows`: the exclusive or of indices times `FACTORS`, modulo `rows`, in uint32.

    Taps outside are clamped to the edge.
    """
    hashes: list[jax.Array] = []
    for factor, of_axis, size in zip(FACTORS, taps[::-1], sizes[::-1]):
        scattered = [clamp(tap, size)[0].astype(jnp.uint32) * jnp.uint32(factor) for tap in of_axis]
        hashes = [a ^ b for a in scattered for b in hashes] if hashes else scattered
    is_power_of_two = rows & (rows - 1) == 0
    within = lambda number: number & jnp.uint32(rows - 1) if is_power_of_two else number % jnp.uint32(rows)
    return [within(number).astype(jnp.int32) for number in hashes]


def strided_rows(taps: TapsOfAxes, sizes: Sequence[Size], rows: Size) -> list[jax.Array]:
    """The rows of vertices in a table of `rows`: the sum of indices times strides, minus `rows` beyond the last row.

    Strides are the powers of (size - 1), so the last vertex of a line shares its row with the first of the next line.
    Taps outside are clamped to the edge.
    """
    numbers, stride = [jnp.zeros((), jnp.int32)], 1
    for of_axis, size in zip(taps[::-1], sizes[::-1]):
        places = [clamp(tap, size)[0] * stride for tap in of_axis]
        numbers = [a + b for a in places for b in numbers]
        stride = stride * (size - 1)
    return [jnp.where(number < rows, number, number - rows) for number in numbers]


@dataclasses.dataclass(frozen=True)
class RowOfLevel:
    """The joint rule of a pyramid of strided and hashed levels. All hashed levels have one number of rows.

    Attributes:
        rows: the number of rows of each level.
        hashed: whether each level is hashed.
        level: the level of each sample, int32; `None` before `in_level`.
        own_rows: the number of rows of that level.
    """

    rows: tuple[int, ...]
    hashed: tuple[bool, ...]
    level: jax.Array | None = None
    own_rows: jax.Array | None = None

    def __call__(self, taps: TapsOfAxes, sizes: Sequence[Size]) -> list[StoredTap]:
        return [StoredTap((row,)) for row in self.rows_at(taps, sizes)]

    def rows_at(self, taps: TapsOfAxes, sizes: Sequence[Size]) -> list[jax.Array]:
        """The rows of the vertices around each sample, int32, within its level."""
        assert self.level is not None
        assert self.own_rows is not None
        of_hashed = {rows for rows, hashed in zip(self.rows, self.hashed) if hashed}
        if not of_hashed:
            return strided_rows(taps, sizes, self.own_rows)
        (rows,) = of_hashed
        by_hash = hashed_rows(taps, sizes, rows)
        if all(self.hashed):
            return by_hash
        by_strides = strided_rows(taps, sizes, self.own_rows)
        is_hashed = of_level(self.level, tuple(map(int, self.hashed))) > 0
        return [jnp.where(is_hashed, a, b) for a, b in zip(by_hash, by_strides)]

    def rows_of(self, level: int) -> Size:
        return self.rows[level] if self.own_rows is None else self.own_rows

    def in_level(self, level: jax.Array) -> "RowOfLevel":
        return dataclasses.replace(self, level=level, own_rows=of_level(level, self.rows))


def plan_of_pyramid(
    stored: np.dtype,
    points: jax.Array,
    scales: Sequence[float],
    sizes: Sequence[int],
    rows: Sequence[int],
    hashed: Sequence[bool],
    kernel: FilterKernel = LINEAR,
) -> Read:
    """The read of all levels of a pyramid of square or cubic grids, whose levels lie one after the other in a table.

    Args:
        stored: the floating dtype of the table, ``(sum of rows, C)``.
        points: S + (ndim,), x first. In a level a point lies at its scale times the point, in vertices; the first
            vertex is at 0.5.
        sizes: the number of vertices along an axis, for each level.
        rows: the number of rows, for each level.
        hashed: whether a hash chooses the row, not strides, for each level.
        kernel: the filter between vertices, of two taps.
    """
    ndim, front = points.shape[-1], [1] * (points.ndim - 1)
    level = jnp.asarray(np.arange(len(sizes), dtype=np.int32).reshape(*front, -1))
    scale = jnp.asarray(scales, points.dtype).reshape(*front, -1)
    levels = Axis(len(sizes), POINT, CLAMP, integer=True, role=Role.LEVEL)
    row = RowOfLevel(tuple(rows), tuple(hashed))
    rule = AddressRule("grid", None, False, row, ndim, saturates=True)
    axes = (levels, *[Axis(sizes[0], kernel, rule, level_sizes=tuple(sizes))] * ndim)
    operands = level, scale, Stacked(points[..., None, :], Stack(-1, tuple(reversed(range(ndim)))))
    return plan_of_axes(axes, scaled_points, operands, rounded_dtype(stored, sum_dtype(stored, points.dtype)))


def scaled_points(level: jax.Array, scale: jax.Array, *points: jax.Array) -> Arrays:
    """The coordinates of points in a level of a pyramid: a grid."""
    return level, *(point * scale + 1 for point in points)
