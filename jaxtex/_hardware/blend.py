"""Blends of texels as a texture unit computes them: exact sums of integers, by a rule for each format.

A stencil is the set of texels that a read blends in one slice of one mip level. The floating texels of a stencil share
the exponent E of the largest texel. Every texel is truncated toward zero to a multiple of 2^(E - 28) (float32) or
2^(E - 15) (float16), and the sum of weight times texel is exact. Stencils are added level by level: the sum so far and
the sums of the level are each rounded down to a multiple of a unit, and added exactly. The unit follows from the
largest E, in steps of four bits. The total is divided by 256 and rounded once, halves away from zero.

Such a sum S is a whole number of units and has up to 40 bits. int32 arithmetic, which wraps, gives its lower 32 bits
exactly. The sum in float32 is near S, whatever its rounding, and so gives the bits above; it also gives the result if
texels are infinite or NaN.

The texture unit loads a texel if its tap has a weight above zero on every axis, even if the product of these weights is
rounded to zero. A texel of weight zero changes neither E nor the sum; but if it is infinite or NaN, it changes the
result, and if it is not zero, a sum of zero is +0. A tap of weight zero on one axis reads the texel of the adjacent
tap, and a tap off a cube's corner reads a neighbor. So the unit loads every texel that is loaded here.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._engine.compute import texel_value
from .._engine.compute.texel_value import SRGB_TO_LINEAR, is_color
from .._jax.branches import where_needed
from .._jax.calls import typed_jit
from .._jax.float_bits import EXPONENT, SIGN, SMALLEST_NORMAL, bits_of, float_of
from .._jax.indexing import entry
from .._jax.instructions import flushed_product, normal_product, shifted_pair
from .._tables.storage_formats import Decoding

# The taps of a stencil: pairs of a texel and its weight in 1/256.
Taps = Sequence[tuple[jax.Array, jax.Array]]
# The stencils of each mip level.
Levels = Sequence[Sequence[Taps]]


def with_sign_of(sign: jax.Array, x: jax.Array) -> jax.Array:
    """`x`, which is not negative, with the sign of another float.

    Without a select, XLA's program for CPUs takes 1.5 times as long.
    """
    return jnp.where(jnp.signbit(sign), float_of(bits_of(x) | SIGN), x)


ratio = functools.partial(texel_value.ratio, dtype=np.dtype(np.float32))


def total(values: Sequence[jax.Array]) -> jax.Array:
    return functools.reduce(jnp.add, values)


class Format(NamedTuple):
    """How the floating texels of a stencil are truncated.

    Attributes:
        bits: the number of bits after the binary point of a texel that was scaled into (-4, 4).
        smallest: a lower bound of the value whose exponent a stencil has; smaller texels need no truncation.
        is_short: whether no texel is subnormal in float32, so that the scale is one float.
    """

    bits: int
    smallest: np.float32
    is_short: bool


FLOAT32 = Format(26, 2 * SMALLEST_NORMAL, is_short=False)
FLOAT16 = Format(13, np.float32(2.0**-24), is_short=True)


@typed_jit("stored", "decoding")
def blend(levels: Levels, stored: np.dtype, decoding: Decoding) -> jax.Array:
    """The blend of stored texels with integer weights, S + (C,) of float32.

    Args:
        levels: the stencils of each level; texels are S + (C,) of dtype `stored`, weights are int32, S + (1,).
    """
    values = BLENDS[np.dtype(stored).name](levels)
    return jnp.where(is_color(values), blend_srgb(levels), values) if decoding is Decoding.SRGB else values


def blend_int8(levels: Levels) -> jax.Array:
    s = weighted_sum(levels)
    code = jnp.maximum(s + ((257 * (s >> 4) + 1024) >> 11), -32767)
    return jnp.maximum(ratio(code, 15), -1)


def mean_of_codes(levels: Levels, bits: int, change: Callable[[jax.Array], jax.Array] = lambda v: v) -> jax.Array:
    return ratio((weighted_sum(levels, change) + 128) >> 8, bits)


# The blend of each storage dtype.
BLENDS: dict[str, Callable[[Levels], jax.Array]] = {
    "float32": lambda levels: to_float32(*blended(levels, FLOAT32)),
    "float16": lambda levels: to_float16(*blended([[widened(f) for f in level] for level in levels], FLOAT16)),
    "int8": blend_int8,
    "uint8": lambda levels: mean_of_codes(levels, 16, lambda v: v * 257),
    "int16": lambda levels: jnp.maximum(mean_of_codes(levels, 15), -1),
    "uint16": lambda levels: mean_of_codes(levels, 16),
}


def weighted_sum(levels: Levels, change: Callable[[jax.Array], jax.Array] = lambda v: v) -> jax.Array:
    """The sum of weight times ``change(texel)``, in int32."""
    taps = [(v.astype(jnp.int32), w) for level in levels for f in level for v, w in f]
    return total([change(v) * w for v, w in taps])


def widened(taps: Taps) -> Taps:
    return [(value.astype(jnp.float32), weight) for value, weight in taps]


class Sum(NamedTuple):
    """An exact sum S of weight times texel, below 2^40 units.

    Attributes:
        low: the lower 32 bits of S.
        near: a float less than 2^18 from S; infinity or NaN if the float sum of the texels is.
        exponent: the bits of a float that is a power of two. A unit is that power times ``2^-bits``.
        bits: see `exponent`.
    """

    low: jax.Array
    near: jax.Array
    exponent: jax.Array
    bits: int


def blended(levels: Levels, format: Format) -> tuple[Sum, jax.Array]:
    """The exact sum of floating texels, and an int32 whose sign the result takes if the sum is zero."""
    signs = signs_of([tap for level in levels for taps in level for tap in taps])
    # The unit adds the stencils of a level to what it has so far.
    sums = []
    for level in levels:
        sums = [*(Sum(*stencil_sum(taps, format), format.bits + 1) for taps in level), *sums]
        if len(sums) > 1:
            sums = [added(sums)]
    return sums[0], signs


def signs_of(taps: Taps) -> jax.Array:
    """An int32 that is negative if all texels are; a texel of weight zero counts as positive, unless it is -0."""
    signs = functools.reduce(jnp.bitwise_and, (bits_of(v) for v, _ in taps))
    lightest = functools.reduce(jnp.minimum, (w for _, w in taps))
    return where_needed((signs < 0) & (lightest == 0), signs_of_weighted, list(taps), [signs])[0]


def signs_of_weighted(taps: Taps) -> list[jax.Array]:
    """`signs_of` for taps among which a weight may be zero."""
    counts = lambda v, w: (w > 0) | (jnp.abs(v) < SMALLEST_NORMAL)
    return [functools.reduce(jnp.bitwise_and, (jnp.where(counts(v, w), bits_of(v), 0) for v, w in taps))]


@typed_jit("format")
def stencil_sum(taps: Taps, format: Format) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`low`, `near` and `exponent` of the sum of weight times texel."""
    weights = [w.astype(jnp.float32) for _, w in taps]
    # At weight zero, a finite texel becomes zero, and an infinity becomes NaN, for which `unweighted` is computed.
    counted = [v * jnp.minimum(w, 1) for (v, _), w in zip(taps, weights)]
    largest = functools.reduce(jnp.maximum, map(jnp.abs, counted))
    special = jnp.isnan(largest)
    (unweighted,) = where_needed(special, sum_unweighted, [v for v, _ in taps], [jnp.zeros_like(largest)])
    # All texels are scaled by the exponent of the largest one, and truncated to integers.
    exponent = bits_of(jnp.maximum(largest, format.smallest)) & EXPONENT
    # The bits of 2^129 / exponent, which is a normal number even for the exponent of infinity and NaN.
    scale, more = SIGN - exponent, format.bits - 1
    if format.is_short:
        scaled = [v * float_of(scale + (more << 23)) for v in counted]
    else:  # by two factors, because their product may overflow
        scaled = [flushed_product(v, float_of(scale)) * np.float32(2.0**more) for v in counted]
    # The exact sum twice: modulo 2^32, and as a float near it, which has its size.
    low = total([v.astype(jnp.int32) * w for v, (_, w) in zip(scaled, taps)])
    near = total([v * w for v, w in zip(scaled, weights)])
    return low, jnp.where(special, unweighted, near), exponent


def sum_unweighted(texels: Sequence[jax.Array]) -> list[jax.Array]:
    """The sum of texels times a tiny number, which is infinite or NaN only if a texel is."""
    return [total([v * SMALLEST_NORMAL for v in texels])]


def added(sums: list[Sum]) -> Sum:
    """The sum of sums as the unit adds them: each is first rounded down to a unit that the largest exponent gives."""
    top = functools.reduce(jnp.maximum, (s.exponent for s in sums))
    # In steps of four bits, plus one: without it the smallest exponent would be the float 0.
    exponent, bits = (top & ~(3 << 23)) | (1 << 23), sums[0].bits + 1
    lows, nears = zip(*(rounded_down(s.low, s.near, exponent - s.exponent, 3 + s.bits - bits) for s in sums))
    return Sum(total(lows), total(nears), exponent, bits)


@typed_jit("more")
def rounded_down(low: jax.Array, near: jax.Array, exponents: jax.Array, more: int) -> tuple[jax.Array, jax.Array]:
    """`low` and `near` of 8 S, shifted to the right by a difference of exponents and `more`, and rounded down."""
    low, near = low << 3, near * 8
    joined, rest = split(low, near)
    high = (bits_of(joined) - LARGE.view(np.int32) + (rest >> SPLIT)) >> (32 - SPLIT)
    # A shift beyond 40 bits leaves 0 or -1, as negative sums are rounded down too.
    count = jnp.minimum((exponents >> 23) + more, 63)
    return shifted_pair(high, low, count), near * float_of((127 - count) << 23)


# A float below 2^42 plus LARGE is a multiple of 2^SPLIT, and its lowest bits are that multiple.
SPLIT = 20
LARGE = np.float32(1.5 * 2.0 ** (23 + SPLIT))
QUARTER = np.float32(0.25).view(np.int32)


def split(low: jax.Array, near: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`LARGE` plus a multiple of 2^SPLIT near S, and the remainder of S, a small int32."""
    # The barrier keeps XLA from canceling this addition with the subtraction of LARGE.
    joined = jax.lax.optimization_barrier(near + LARGE)
    return joined, low - (bits_of(joined) << SPLIT)


def parts(sum: Sum) -> tuple[jax.Array, jax.Array]:
    """Two floats whose sum is S: a multiple of 2^SPLIT, never -0, and a remainder below 2^SPLIT."""
    joined, rest = split(sum.low, sum.near)
    return joined - LARGE, rest.astype(jnp.float32)


def rounded_parts(sum: Sum) -> tuple[jax.Array, jax.Array]:
    """Two floats whose sum is S: S rounded, never -0, and the remainder."""
    if sum.bits == FLOAT16.bits + 1:  # the sum of one stencil, below 2^24
        rounded = sum.low.astype(jnp.float32)
        return rounded, jnp.zeros_like(rounded)
    high, low = parts(sum)
    rounded = high + low
    return rounded, low - (rounded - high)


def to_float32(sum: Sum, signs: jax.Array) -> jax.Array:
    """S / 256 rounded to float32, halves away from zero; a subnormal result becomes zero."""
    high, low = parts(sum)
    # Adding a quarter of a unit, away from zero, breaks ties. If S is so small that the quarter survives the rounding,
    # S is a float, and the nearest integer to the sum.
    quarter = float_of((bits_of(high) & SIGN) | QUARTER)
    mean = jnp.round(high + (low + quarter)) * np.float32(2.0 ** (-8 - sum.bits))
    return float_of(bits_of(normal_product(mean, sum.exponent)) | (signs & SIGN))


def to_float16(sum: Sum, signs: jax.Array) -> jax.Array:
    """S / 256 rounded to the 11 bits of float16, or to multiples of 2^-24 if subnormal, halves away from zero."""
    # The mean as a float, and which way it was rounded.
    rounded, error = rounded_parts(sum)
    mean = rounded * np.float32(2.0 ** (-8 - sum.bits)) * float_of(sum.exponent)
    mean = float_of(bits_of(mean) | jnp.where(rounded == 0, signs & SIGN, 0))
    # Rounded to 11 bits; a tie that was no tie before goes the way of the exact sum.
    short = (error != 0) & ((error > 0) != (rounded > 0))
    bits = bits_of(mean) + jnp.where(short, 0xFFF, 0x1000)
    normal = float_of(bits & ~0x1FFF)
    # The same in multiples of 2^-24, for subnormal results.
    steps = jnp.abs(mean) * 2.0**24
    whole = jnp.floor(steps)
    up = (steps - whole > 0.5) | ((steps - whole == 0.5) & ~short)
    subnormal = with_sign_of(mean, (whole + up.astype(jnp.float32)) * 2.0**-24)
    # Infinity and NaN are those of the float sum.
    finite = jnp.where(jnp.abs(mean) < 2.0**-14, subnormal, normal)
    return jnp.where(jnp.abs(sum.near) < jnp.inf, finite, sum.near)


def srgb_tables() -> tuple[np.ndarray, np.ndarray]:
    """The unit's table of linear values of sRGB codes, times 65536, and their exponents, int32.

    Values have 8 significant bits and are multiples of 4.
    """
    ideal = SRGB_TO_LINEAR * 65536
    exponent = np.floor(np.log2(np.round(ideal[np.arange(256) | 7]))).astype(np.int32)
    step = np.maximum(4, 2.0 ** (exponent - 7))
    return (np.floor(ideal / step + 0.5) * step).astype(np.int32), exponent


SRGB_TABLE, SRGB_EXPONENT = srgb_tables()


def srgb_entry(table: np.ndarray, code: jax.Array) -> jax.Array:
    return entry(table, code.astype(jnp.int32))


def blend_srgb(levels: Levels) -> jax.Array:
    """The blend of sRGB codes: decoded by `SRGB_TABLE`, truncated by the largest exponent, rounded to 11 bits."""
    sum, top = jnp.int32(0), jnp.int32(0)
    for level in levels:
        addends = [sum]
        for taps in level:
            # A stencil keeps the bits that its largest texel has.
            exponents = (jnp.where(w > 0, srgb_entry(SRGB_EXPONENT, v), 0) for v, w in taps)
            exponent = functools.reduce(jnp.maximum, exponents)
            cut = jnp.left_shift(-1, jnp.maximum(exponent - 7, 0))
            addends.append(total([(srgb_entry(SRGB_TABLE, v) & cut) * w for v, w in taps]))
            top = jnp.maximum(top, exponent)
        # The sum keeps those that the largest one of all so far has, in steps of four.
        unit = jnp.left_shift(-1, jnp.maximum(4 * ((top - 1) >> 2) - 6, 0))
        sum = total([addend & unit for addend in addends])
    # The mean as a float of 11 bits, halves up.
    bits = bits_of(sum.astype(jnp.float32)) + 0x1000
    return float_of(bits & ~0x1FFF) * np.float32(2.0**-24)
