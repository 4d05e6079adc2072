"""Sums that do not depend on the order of their terms, and so have the same bits in every run.

A floating-point addition that does not round can be done in any order. So every term is cut into two parts, multiples
of a coarse and of a fine unit. Both units are powers of two, and so coarse that no sum of such parts has more bits than
fit. The parts are summed separately. Half a fine unit is lost per term: with n terms at most n^2 / 2^47 of the largest,
so that the sum of few terms keeps more bits than a floating-point sum does.

Source: J. Demmel and H. D. Nguyen, "Fast Reproducible Floating-Point Summation", 2013; here with two bins.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


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
        """The two parts of terms. An infinity or NaN is a part of its own."""
        finite = jnp.isfinite(value)
        known = jnp.where(finite, value, 0)
        coarse = rounded(known, self.coarse)
        return jnp.where(finite, coarse, value), rounded(known - coarse, self.fine)


def power_of_two(e: jax.Array, dtype: np.dtype) -> jax.Array:
    return jnp.ldexp(jnp.ones((), dtype), e)


def rounded(value: jax.Array, unit: jax.Array) -> jax.Array:
    """The multiple of `unit` nearest to `value`, which is less than 2^22 units."""
    return jnp.floor(value * (1 / unit) + value.dtype.type(0.5)) * unit


class TexelSums(NamedTuple):
    """How the sums at each texel are laid out: a row of numbers for each.

    Attributes:
        channels: of a value.
        lanes: the numbers of a row; those beyond `channels` are padding.
        units: of reproducible sums, whose coarse and fine parts lie side by side; else `None`.
    """

    channels: int
    lanes: int
    units: Units | None = None

    @property
    def width(self) -> int:
        """The numbers that are summed for each texel."""
        return self.lanes * (1 if self.units is None else 2)

    def terms(self, value: jax.Array) -> jax.Array:
        """The terms of a value, S + (channels,): S + (width,)."""
        if self.lanes > self.channels:
            value = jnp.pad(value, [(0, 0)] * (value.ndim - 1) + [(0, self.lanes - self.channels)])
        return value if self.units is None else jnp.concatenate(self.units.split(value), -1)

    def joined(self, total: jax.Array) -> jax.Array:
        """The sums of values, of the sums of terms."""
        if self.units is not None:
            total = total[..., : self.lanes] + total[..., self.lanes :]
        return total[..., : self.channels]
