"""Grids whose vertices share the rows of a table, which a hash of their place chooses, or strides.

Source: T. Müller, A. Evans, C. Schied and A. Keller, "Instant Neural Graphics Primitives with a Multiresolution Hash
Encoding", 2022.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from ..._tables.address_rules import CLAMP, AddressRule, Size, StoredTap, TapsOfAxes, clamp
from ..._tables.filter_kernels import LINEAR, POINT
from .axis import Axis, Role, of_each

# The factor of the place along x, y, z and a fourth axis.
FACTORS = (1, 2654435761, 805459861, 3674653429)


@dataclasses.dataclass(frozen=True)
class HashedRow:
    """The row of a vertex among `rows`: the exclusive or of its places times `FACTORS`, modulo `rows`, in uint32.

    Taps outside are those at the edge.
    """

    rows: int

    def __call__(self, taps: TapsOfAxes, sizes: Sequence[Size]) -> list[StoredTap]:
        found: list[jax.Array] = []
        for factor, some, size in zip(FACTORS, taps[::-1], sizes[::-1]):
            scattered = [clamp(tap, size)[0].astype(jnp.uint32) * jnp.uint32(factor) for tap in some]
            found = [a ^ b for a in scattered for b in found] if found else scattered
        return [StoredTap((self.within(number).astype(jnp.int32),)) for number in found]

    def within(self, number: jax.Array) -> jax.Array:
        """A number modulo `rows`."""
        is_power_of_two = self.rows & (self.rows - 1) == 0
        return number & jnp.uint32(self.rows - 1) if is_power_of_two else number % jnp.uint32(self.rows)


@dataclasses.dataclass(frozen=True)
class StridedRow:
    """The row of a vertex among `rows`: the sum of its places times strides, less `rows` past the last one.

    Strides are the powers of one less than the size of an axis, so that the last vertices of an axis share their rows
    with the first ones of the next line. Taps outside are those at the edge.
    """

    rows: Size

    def __call__(self, taps: TapsOfAxes, sizes: Sequence[Size]) -> list[StoredTap]:
        found, stride = [jnp.zeros((), jnp.int32)], 1
        for some, size in zip(taps[::-1], sizes[::-1]):
            places = [clamp(tap, size)[0] * stride for tap in some]
            found = [a + b for a in places for b in found]
            stride = stride * (size - 1)
        return [StoredTap((jnp.where(number < self.rows, number, number - self.rows),)) for number in found]


@dataclasses.dataclass(frozen=True)
class RowOfLevel:
    """The row of a vertex in a pyramid of strided and hashed levels. All hashed levels have the same number of rows.

    Attributes:
        rows: of each level.
        hashed: whether each level is hashed.
        level: the level of each sample, where it is known.
        own_rows: the number of rows of that level.
    """

    rows: tuple[int, ...]
    hashed: tuple[bool, ...]
    level: jax.Array | None = None
    own_rows: jax.Array | None = None

    def __call__(self, taps: TapsOfAxes, sizes: Sequence[Size]) -> list[StoredTap]:
        assert self.level is not None
        assert self.own_rows is not None
        of_hashed = {rows for rows, hashed in zip(self.rows, self.hashed) if hashed}
        if not of_hashed:
            return StridedRow(self.own_rows)(taps, sizes)
        (rows,) = of_hashed
        by_hash = HashedRow(rows)(taps, sizes)
        if all(self.hashed):
            return by_hash
        by_strides = StridedRow(self.own_rows)(taps, sizes)
        is_hashed = of_each(self.level, tuple(map(int, self.hashed))) > 0
        chosen = (jnp.where(is_hashed, a.texel[0], b.texel[0]) for a, b in zip(by_hash, by_strides))
        return [StoredTap((row,)) for row in chosen]

    def rows_of(self, level: int) -> Size:
        return self.rows[level] if self.own_rows is None else self.own_rows

    def in_level(self, level: jax.Array) -> "RowOfLevel":
        return dataclasses.replace(self, level=level, own_rows=of_each(level, self.rows))


def pyramid_axes(sizes: Sequence[int], rows: Sequence[int], hashed: Sequence[bool], ndim: int) -> tuple[Axis, ...]:
    """The axes of a pyramid of grids, each of equal sizes, whose levels lie one after the other in a table.

    Args:
        sizes, rows, hashed: of each level the number of vertices along an axis, the rows, and whether a hash chooses
            them, and not strides.
    """
    levels = Axis(len(sizes), POINT, CLAMP, integer=True, role=Role.LEVEL)
    row = RowOfLevel(tuple(rows), tuple(hashed))
    rule = AddressRule("grid", None, False, row, ndim, saturates=True)
    return (levels, *[Axis(sizes[0], LINEAR, rule, level_sizes=tuple(sizes))] * ndim)
