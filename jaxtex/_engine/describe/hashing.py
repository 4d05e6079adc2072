"""Grids whose vertices share the rows of a table; a hash of the vertex, or strides, choose the row.

Source: T. Müller, A. Evans, C. Schied and A. Keller, "Instant Neural Graphics Primitives with a Multiresolution Hash
Encoding", 2022.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from ..._tables.address_rules import CLAMP, AddressRule, Size, StoredTap, TapsOfAxes, clamp
from ..._tables.filter_kernels import LINEAR, POINT, FilterKernel
from .axis import Axis, Role, of_level

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


def pyramid_axes(
    sizes: Sequence[int], rows: Sequence[int], hashed: Sequence[bool], ndim: int, kernel: FilterKernel = LINEAR
) -> tuple[Axis, ...]:
    """The axes of a pyramid of square or cubic grids, whose levels lie one after the other in a table.

    Args:
        sizes: the number of vertices along an axis, for each level.
        rows: the number of rows, for each level.
        hashed: whether a hash chooses the row, not strides, for each level.
        kernel: the filter between vertices, of two taps.
    """
    levels = Axis(len(sizes), POINT, CLAMP, integer=True, role=Role.LEVEL)
    row = RowOfLevel(tuple(rows), tuple(hashed))
    rule = AddressRule("grid", None, False, row, ndim, saturates=True)
    return (levels, *[Axis(sizes[0], kernel, rule, level_sizes=tuple(sizes))] * ndim)
