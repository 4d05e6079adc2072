"""Sums that do not depend on the order of their terms, and so have the same bits in every run.

A floating addition that does not round can be done in any order. So every term is cut into two parts, multiples of a
coarse and of a fine unit, both powers of two, so coarse that no sum of such parts has more bits than fit. The parts
are summed apart. What is lost is half a fine unit a term: with n terms at most n^2 / 2^47 of the largest, so that the
sum of few terms keeps more bits than one in floating point does.

Source: J. Demmel and H. D. Nguyen, "Fast Reproducible Floating-Point Summation", 2013; here with two bins.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

CROWD = 4
COPIES_BYTES, COPIES_SHARE, MAX_COPIES = 8 * 2**20, 0.05, 512


class Units(NamedTuple):
    """The coarse and the fine unit of a sum: numbers, powers of two."""

    coarse: jax.Array
    fine: jax.Array

    @classmethod
    def of(cls, values: jax.Array, weight: float, terms: jax.Array) -> "Units":
        """For sums of at most `terms` terms, each one of `values` times at most `weight`."""
        info, digits = jnp.finfo(values.dtype), jnp.finfo(values.dtype).nmant + 1
        largest = jnp.max(jnp.where(jnp.isfinite(values), jnp.abs(values), 0), initial=0)
        # Parts are rounded: an eighth more than the terms, or as much again where the coarse unit is nearly a term.
        terms = jnp.maximum(terms, 4).astype(values.dtype)
        terms = terms * jnp.where(terms < 2.0 ** (digits - 4), 1.125, 2.25).astype(values.dtype)
        (m, e), (n, count) = jnp.frexp(largest * values.dtype.type(weight)), jnp.frexp(terms)
        bound = jnp.where(largest > 0, e + count - (m * n < 0.5).astype(e.dtype), info.minexp)
        coarse = jnp.clip(bound - digits, info.minexp, info.maxexp - 2)
        fine = jnp.clip(coarse - 1 + count - digits, info.minexp, info.maxexp - 2)
        return cls(power_of_two(coarse, values.dtype), power_of_two(fine, values.dtype))

    def split(self, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The two parts of terms. What is not finite is a part of its own."""
        finite = jnp.isfinite(value)
        known = jnp.where(finite, value, 0)
        coarse = rounded(known, self.coarse)
        return jnp.where(finite, coarse, value), rounded(known - coarse, self.fine)


def power_of_two(e: jax.Array, dtype: np.dtype) -> jax.Array:
    return jnp.ldexp(jnp.ones((), dtype), e)


def rounded(value: jax.Array, unit: jax.Array) -> jax.Array:
    """The multiple of `unit` next to `value`, which is less than 2^22 units."""
    return jnp.floor(value * (1 / unit) + value.dtype.type(0.5)) * unit


class Sums(NamedTuple):
    """Sums of values with `count` channels, in rows of `lanes`; by parts, side by side, if there are `units`."""

    count: int
    lanes: int
    units: Units | None = None

    @property
    def width(self) -> int:
        """The numbers that are summed for each texel."""
        return self.lanes * (1 if self.units is None else 2)

    def terms(self, value: jax.Array) -> jax.Array:
        """What is added for `value`, S + (count,): S + (width,)."""
        if self.lanes > self.count:
            value = jnp.pad(value, [(0, 0)] * (value.ndim - 1) + [(0, self.lanes - self.count)])
        return value if self.units is None else jnp.concatenate(self.units.split(value), -1)

    def joined(self, total: jax.Array) -> jax.Array:
        """The sums, without the parts and what only fills a row."""
        if self.units is not None:
            total = total[..., : self.lanes] + total[..., self.lanes :]
        return total[..., : self.count]


def power_above(n: int) -> int:
    """The least power of two that is not below `n`."""
    return 1 << (n - 1).bit_length()


def power_below(n: int) -> int:
    """The largest power of two that is not above `n`."""
    return 1 << (n.bit_length() - 1)


def row_lanes(count: int) -> int:
    """Rows of a power of two are added faster; where that costs no more than a third of the memory, a row is filled."""
    lanes = power_above(count)
    return lanes if 3 * lanes <= 4 * count else count


def crowded(samples: int, places: int) -> bool:
    """Whether so many samples in so many texels meet often."""
    return samples >= CROWD * places


def private_copies(samples: int, places: int, count: int) -> int:
    """How many copies of a texture of `places` texels to add to, where additions are atomic: a power of two.

    Copies pay where several samples meet at a texel. They are bounded in number, and in memory by a share of what the
    call reads and writes, or by a few megabytes.
    """
    if not crowded(samples, places):
        return 1
    bound = max(COPIES_BYTES, int(COPIES_SHARE * 4 * samples * count)) // (4 * places * count)
    return power_below(min(MAX_COPIES, max(1, bound)))
