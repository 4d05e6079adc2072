"""Sums into texels: their layout as rows, private copies if samples crowd, and sums with equal bits in every run.

Additions that do not round can be done in any order. So every term is split into two parts, multiples of a coarse and
of a fine unit. Both units are powers of two, and so coarse that the sums of either part are exact. The parts are summed
separately. A term loses at most half a fine unit: with n terms, the sum loses at most n^2 / 2^47 of the largest term.
So a sum of few terms is more accurate than a floating-point sum. Kernels add integers of 64 bits instead.

Source: J. Demmel and H. D. Nguyen, "Fast Reproducible Floating-Point Summation", 2013; here with two bins.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.shapes import is_symbolic
from ..._tables.filter_kernels import Polynomials
from ..describe.axis import Axis, Given, Role


class Units(NamedTuple):
    """The coarse and the fine unit of a sum: powers of two, as arrays without axes."""

    coarse: jax.Array
    fine: jax.Array

    @classmethod
    def of(cls, values: jax.Array, weight: float, terms: jax.Array, factors: Sequence[jax.Array] = ()) -> "Units":
        """The units for sums of at most `terms` products of one of `values`, one of each of `factors`, and `weight`."""
        info, digits = jnp.finfo(values.dtype), jnp.finfo(values.dtype).nmant + 1
        largest = largest_product(values, factors)
        # Parts are rounded terms, so their sum may be larger: by an eighth, or twofold if the coarse unit is nearly as
        # large as a term.
        terms = jnp.maximum(terms, 4).astype(values.dtype)
        terms = terms * jnp.where(terms < 2.0 ** (digits - 4), 1.125, 2.25).astype(values.dtype)
        (m, e), (n, count) = jnp.frexp(largest * values.dtype.type(weight)), jnp.frexp(terms)
        bound = jnp.where(largest > 0, e + count - (m * n < 0.5).astype(e.dtype), info.minexp)
        coarse = jnp.clip(bound - digits, info.minexp, info.maxexp - 2)
        fine = jnp.clip(coarse - 1 + count - digits, info.minexp, info.maxexp - 2)
        return cls(power_of_two(coarse, values.dtype), power_of_two(fine, values.dtype))

    def split(self, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The coarse and the fine parts of terms. The coarse part of an infinity or NaN is itself."""
        finite = jnp.isfinite(value)
        known = jnp.where(finite, value, 0)
        coarse = rounded(known, self.coarse)
        return jnp.where(finite, coarse, value), rounded(known - coarse, self.fine)


def largest_product(values: jax.Array, factors: Sequence[jax.Array]) -> jax.Array:
    """A finite bound of the magnitudes of finite products: of one of `values` and one of each of `factors`."""
    largest = largest_finite(values)
    for factor in factors:
        largest = jnp.minimum(largest * largest_finite(factor).astype(values.dtype), jnp.finfo(values.dtype).max)
    return largest


def largest_finite(values: jax.Array) -> jax.Array:
    """The largest finite magnitude, or zero."""
    return jnp.max(jnp.where(jnp.isfinite(values), jnp.abs(values), 0), initial=0)


def power_of_two(e: jax.Array, dtype: np.dtype) -> jax.Array:
    return jnp.ldexp(jnp.ones((), dtype), e)


def rounded(value: jax.Array, unit: jax.Array) -> jax.Array:
    """The multiple of `unit` nearest to `value`; `value` must be below 2^22 units."""
    return jnp.floor(value * (1 / unit) + value.dtype.type(0.5)) * unit


class TexelSums(NamedTuple):
    """The layout of sums: a row of numbers for each texel.

    Attributes:
        lanes: the number of channels with padding.
        units: the units of reproducible sums; then a row has coarse parts, followed by fine parts. Otherwise `None`.
    """

    channels: int
    lanes: int
    units: Units | None = None

    @property
    def width(self) -> int:
        """The length of a row."""
        return self.lanes * (1 if self.units is None else 2)

    def terms(self, value: jax.Array) -> jax.Array:
        """The terms, S + (width,), that values, S + (channels,), add to the sums."""
        if self.lanes > self.channels:
            value = jnp.pad(value, [(0, 0)] * (value.ndim - 1) + [(0, self.lanes - self.channels)])
        return value if self.units is None else jnp.concatenate(self.units.split(value), -1)

    def joined(self, total: jax.Array) -> jax.Array:
        """The sums of values, (..., channels), from the sums of terms, (..., width)."""
        if self.units is not None:
            total = total[..., : self.lanes] + total[..., self.lanes :]
        return total[..., : self.channels]


# The units of a splat

# A function ``count_samples(axes)``: the number of samples that read each texel under `axes`.
CountSamples = Callable[[tuple[Axis, ...]], jax.Array]


def units_of(
    values: jax.Array, axes: tuple[Axis, ...], count_samples: CountSamples, factors: Sequence[jax.Array] = ()
) -> Units:
    """The units with which the sums of a splat of `values`, times `factors`, do not depend on their order."""
    counted, multiplicity = counting_axes(axes)
    return Units.of(values, weight_bound(axes), jnp.max(count_samples(counted)) * multiplicity, factors)


def counting_axes(axes: tuple[Axis, ...]) -> tuple[tuple[Axis, ...], int]:
    """Axes with which samples are counted, and a factor: no texel has more terms than its count times the factor.

    On most axes, the first tap of a kernel counts for all taps, since no other tap reads a texel more often. A mirrored
    axis may bring two taps of one sample to a texel. Mip levels, the faces of a cube and address rules of unknown
    multiplicity count all taps.
    """
    counted, multiplicity = list[Axis](), 1
    for axis in axes:
        taps, repeats = axis.kernel.num_taps, axis.address.multiplicity
        every = axis.role is Role.LEVEL or repeats is None
        kept = taps if every else 1
        kernel = axis.kernel._replace(weights=Polynomials(((1.0,),) * kept))
        counted.append(axis._replace(order=0, kernel=kernel))
        multiplicity *= taps // kept * (repeats or 1)
    return tuple(counted), multiplicity


def weight_bound(axes: tuple[Axis, ...]) -> float:
    """An upper bound of the magnitude of a tap's weight."""
    filtered = [axis for axis in axes if not axis.integer]
    # A size that is an operand is at most the number of texels of the flat array.
    longest = lambda axis: axis.size.capacity if isinstance(axis.size, Given) else axis.known_size
    scale = lambda axis: longest(axis) if axis.normalized and axis.role is Role.SPACE else 1
    return math.prod(axis.kernel.weights.bound(axis.order) * float(scale(axis)) ** axis.order for axis in filtered)


# Where additions into texels go: rows of a width that memory likes, and private copies where samples crowd

# From so many samples per texel on, samples often meet at a texel.
CROWDED_SAMPLES = 4
# Limits of private copies: their bytes, or their share of the bytes that a call reads and writes; and their number.
COPIES_BYTES, COPIES_SHARE, MAX_COPIES = 8 * 2**20, 0.05, 512


def power_of_two_above(n: int) -> int:
    """The smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


def power_of_two_below(n: int) -> int:
    """The largest power of two that is at most `n`."""
    return 1 << (n.bit_length() - 1)


def row_lanes(channels: int) -> int:
    """`channels`, rounded up to a power of two, which is faster, if that adds at most a third of the memory."""
    lanes = power_of_two_above(channels)
    return lanes if 3 * lanes <= 4 * channels else channels


def samples_meet(samples: int, texels: int) -> bool:
    """Whether samples often meet at a texel, as far as is known: of a symbolic number it is not."""
    return not is_symbolic([samples]) and samples >= CROWDED_SAMPLES * texels


def num_private_copies(samples: int, texels: int, channels: int) -> int:
    """The number of private copies of the texels for atomic additions, a power of two.

    Copies pay off if several samples meet at a texel. Their number is limited, and their memory to a share of the bytes
    that the call reads and writes, or to a few megabytes.
    """
    if not samples_meet(samples, texels):
        return 1
    bound = max(COPIES_BYTES, int(COPIES_SHARE * 4 * samples * channels)) // (4 * texels * channels)
    return power_of_two_below(min(MAX_COPIES, max(1, bound)))
