"""Sums into texels: rows of numbers, private copies where samples crowd, and sums with the same bits in every run.

A floating-point addition that does not round can be done in any order. So every term is cut into two parts, multiples
of a coarse and of a fine unit. Both units are powers of two, and so coarse that no sum of such parts has more bits than
fit. The parts are summed separately. Half a fine unit is lost per term: with n terms at most n^2 / 2^47 of the largest,
so that the sum of few terms keeps more bits than a floating-point sum does.

Source: J. Demmel and H. D. Nguyen, "Fast Reproducible Floating-Point Summation", 2013; here with two bins.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._tables.filter_kernels import Polynomials
from ..describe.axis import Axis, Given, Role


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
    """How sums are laid out: a row of numbers for each texel.

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


# The units of a splat

# How many samples fall on each texel under given axes.
CountSamples = Callable[[tuple[Axis, ...]], jax.Array]


def units_of(values: jax.Array, axes: tuple[Axis, ...], count_samples: CountSamples) -> Units:
    """The units for sums of `values` that do not depend on their order."""
    counted, multiplicity = counting_axes(axes)
    return Units.of(values, weight_bound(axes), jnp.max(count_samples(counted)) * multiplicity)


def counting_axes(axes: tuple[Axis, ...]) -> tuple[tuple[Axis, ...], int]:
    """Axes under which each sample adds 1 to texels near it, and how often one sample may meet a texel otherwise.

    The first tap of a kernel is enough, as each of the others meets no more samples at a texel; a mirrored axis may
    bring two of a kind there. The levels of a chain, the faces of a cube, and address rules of unknown multiplicity
    need all of their taps.
    """
    found, multiplicity = [], 1
    for axis in axes:
        taps, repeats = axis.kernel.num_taps, axis.address.multiplicity
        every = axis.role is Role.LEVEL or repeats is None
        kept = taps if every else 1
        kernel = axis.kernel._replace(weights=Polynomials(((1.0,),) * kept))
        found.append(axis._replace(order=0, kernel=kernel))
        multiplicity *= taps // kept * (repeats or 1)
    return tuple(found), multiplicity


def weight_bound(axes: tuple[Axis, ...]) -> float:
    """An upper bound of the weight of a tap."""
    filtered = [axis for axis in axes if not axis.integer]
    # No size that is an operand exceeds the texels of the flat array.
    longest = lambda axis: axis.size.capacity if isinstance(axis.size, Given) else axis.known_size
    scale = lambda axis: longest(axis) if axis.normalized and axis.role is Role.SPACE else 1
    return math.prod(axis.kernel.weights.bound(axis.order) * float(scale(axis)) ** axis.order for axis in filtered)


# Memory

"""Where additions into texels go: rows of a width that memory likes, and private copies where samples crowd."""

# So many samples for each texel are a crowd.
CROWDED_SAMPLES = 4
# Bounds of the memory of private copies: bytes, or a share of what a call reads and writes; and of their number.
COPIES_BYTES, COPIES_SHARE, MAX_COPIES = 8 * 2**20, 0.05, 512


def power_of_two_above(n: int) -> int:
    """The least power of two that is not below `n`."""
    return 1 << (n - 1).bit_length()


def power_of_two_below(n: int) -> int:
    """The largest power of two that is not above `n`."""
    return 1 << (n.bit_length() - 1)


def row_lanes(channels: int) -> int:
    """The numbers of a row: a power of two is faster; a row is padded if that costs at most a third of the memory."""
    lanes = power_of_two_above(channels)
    return lanes if 3 * lanes <= 4 * channels else channels


def samples_meet(samples: int, texels: int) -> bool:
    """Whether so many samples often meet at a texel."""
    return samples >= CROWDED_SAMPLES * texels


def num_private_copies(samples: int, texels: int, channels: int) -> int:
    """How many copies of the texels to add to, where additions are atomic: a power of two.

    Copies pay off where several samples meet at a texel. They are bounded in number, and in memory by a share of what
    the call reads and writes, or by a few megabytes.
    """
    if not samples_meet(samples, texels):
        return 1
    bound = max(COPIES_BYTES, int(COPIES_SHARE * 4 * samples * channels)) // (4 * texels * channels)
    return power_of_two_below(min(MAX_COPIES, max(1, bound)))
