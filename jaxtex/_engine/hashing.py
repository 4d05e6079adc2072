"""Grids whose vertices share the rows of a table, which a hash of their place chooses.

Source: T. Müller, A. Evans, C. Schied and A. Keller, "Instant Neural Graphics Primitives with a Multiresolution Hash
Encoding", 2022.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._tables.address_rules import AddressRule, Size, StoredTap, TapsOfAxes, clamp
from .._tables.filter_kernels import LINEAR, FilterKernel
from .axis import Axis

# The factor of the place along x, y, z and a fourth axis.
FACTORS = (1, 2654435761, 805459861, 3674653429)


class HashedRow(NamedTuple):
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


@functools.cache
def hashed(num_axes: int, rows: int) -> AddressRule:
    """The rule of so many axes whose vertices share `rows` rows."""
    return AddressRule("hashed", None, False, HashedRow(rows), num_axes, rows, saturates=True)


def hashed_axes(sizes: Sequence[int], rows: int, kernel: FilterKernel = LINEAR) -> tuple[Axis, ...]:
    """The axes of a grid of `sizes` vertices, in stored order, whose coordinates are in texels."""
    rule = hashed(len(sizes), rows)
    return tuple(Axis(size, kernel, rule) for size in sizes)
