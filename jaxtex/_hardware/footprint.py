"""The level of detail of a footprint in fixed point, in 1/256, and the reads along a long footprint.

P is the length of a footprint along its longest side or diagonal, and p = |det| / P its width, in texels of the finest
level. A is the anisotropy. The level of detail is log2 max(p, P / A), sharpened like an explicit level. The ratio r is
P / max(p, 1), at most A.

    r <= 1       one read
    1 < r <= 2   two reads, 1 - 1/r from the center
    r > 2        2 ceil(r / 2) reads, one texel of the level apart, each of weight 1/r, except for the outer two,
                 which share the remaining weight

Logarithms are fixed point, in 1/256. The reads lie along a vector of length 1 whose components are multiples of 1/64.
Levels and weights equal those of the texture unit in nearly all recorded footprints, but not in all.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._jax.float_bits import EXPONENT, bits_of, float_of
from .._jax.indexing import entry
from ..modes import FilterMode
from ..sampler import Sampler
from .read import ONE, number

Side = Sequence[jax.Array]
BITS = 10  # significant bits of lengths
FARTHEST = 2.0**60  # a footprint longer than this reads the last level, and one shorter than its inverse the first
EXPONENTS = (40 << 23, 240 << 23)
FAR = 2**14  # more levels than any mip chain has
# Rows: the largest anisotropy, the fraction of a level, in 1/256, where the blend of two levels begins, and its slope.
SHARPENING = (
    (1, 0.0, Fraction(1)),
    (3, 128 / 3, Fraction(3, 2)),
    (7, 384 / 7, Fraction(7, 4)),
    (16, 64.0, Fraction(2)),
)


def fixed(lod: jax.Array | float) -> jax.Array:
    """A level of detail in 1/256, int32, truncated toward zero; NaN acts as 0."""
    lod = jnp.clip(jnp.asarray(lod, jnp.float32), -FAR, FAR)
    return jnp.where(lod == lod, lod * 256, 0).astype(jnp.int32)


def fixed_lod(
    lod: jax.Array | None, sampler: Sampler, num_levels: int, shape: tuple[int, ...], explicit: bool
) -> jax.Array:
    """The level of detail of a read, in 1/256, with the sampler's bias and bounds.

    The level and the bias are truncated to 1/256 separately. Without a level, it is 0, and the bias is not added. An
    `explicit` level is sharpened if the sampler is anisotropic and blends levels, as for a long footprint.
    """
    # The bias, in the same steps as the level.
    sharpened = explicit and sampler.max_anisotropy > 1 and sampler.mipmap_filter_mode is FilterMode.LINEAR
    start, slope = next((s, f) for most, s, f in SHARPENING if sampler.max_anisotropy <= most)
    bias = sampler.mipmap_level_bias * ONE
    bias = int(bias - start) + int(start) if sharpened else int(bias)
    lod = jnp.zeros(shape, jnp.int32) if lod is None else lod + max(min(bias, FAR * ONE), -FAR * ONE)
    # The bounds of the sampler, then those of the chain.
    bound = lambda clamp: math.floor(min(max(clamp, -FAR), FAR) * ONE)
    lod = jnp.minimum(lod, bound(sampler.max_mipmap_level_clamp))
    lod = jnp.maximum(lod, bound(sampler.min_mipmap_level_clamp))
    lod = jnp.clip(lod, 0, (num_levels - 1) * ONE)
    if not sharpened:
        return lod
    # A sharpened level is whole for longer, and changes faster in between.
    fraction = ((lod & 255) - math.floor(start)) * slope.numerator // slope.denominator
    return (lod & ~255) + jnp.clip(fraction, 0, ONE)


# 256 log2(1 + (k + 1/2) / 256), rounded; recorded values are one less at the entries of ONE_LESS, and k at both ends.
ONE_LESS = (61, 86, 108, 109, 110, 111, 115, 116, 117, 141, 162, 170)
LOG2_TABLE = np.array(
    [
        k if k in (0, 255) else math.floor(256 * math.log2(1 + (k + 0.5) / 256) + 0.5) - (k in ONE_LESS)
        for k in range(256)
    ],
    np.int32,
)

EXP2_TABLE = np.exp2(np.arange(256) / 256).astype(np.float32)


def footprint_lod(ddx: Side, ddy: Side, bent: jax.Array | None = None) -> jax.Array:
    """The level of detail of a footprint, in 1/256, for a read without anisotropy.

    Args:
        ddx, ddy: the sides of the footprint in texels of the finest level, as `in_texels` returns them.
        bent: whether a side crosses an edge of a cube; then the diagonals are ignored.
    """
    _, (*sides, sum, difference) = extents(ddx, ddy)
    sides, diagonals = jnp.maximum(*sides), jnp.maximum(sum, difference)
    return fixed_log2(jnp.maximum(sides, diagonals if bent is None else jnp.where(bent, 0, diagonals)))


def extents(ddx: Side, ddy: Side) -> tuple[list[Side], list[jax.Array]]:
    """The two sides and the two diagonals of a footprint, and its lengths along the four."""
    sums, differences = ([guarded_sum(a, sign * b) for a, b in zip(ddx, ddy)] for sign in (1, -1))
    lengths = [length(ddx), length(ddy), half_length(sums), half_length(differences)]
    return [ddx, ddy, sums, differences], lengths


def fixed_log2(x: jax.Array) -> jax.Array:
    """The binary logarithm of a number that is not negative, in 1/256, int32; ``-FAR * 256`` for zero."""
    bits = bits_of(x)
    mantissa, exponent = (bits >> 15) & 255, (bits >> 23) - 127
    log2 = entry(LOG2_TABLE, mantissa)
    return jnp.where(x > 0, jnp.clip(exponent * 256 + log2, -FAR * 256, FAR * 256), -FAR * 256)


def fixed_exp2(log2: jax.Array) -> jax.Array:
    """2 to a power in 1/256; a table gives equal bits on every processor."""
    fraction = entry(EXP2_TABLE, log2 & 255)
    return fraction * float_of(((log2 >> 8) + 127) << 23)


def length(side: Side) -> jax.Array:
    """The approximate length of a vector: the largest component, plus 11/32 of the second, plus 1/4 of the third."""
    first, *others = sorted_down([jnp.abs(d) for d in side])
    if not others:
        return first
    return first + lesser_part(share(others[0], 11 / 8) * 0.25, [d * 0.25 for d in others[1:]])


def half_length(side: Side) -> jax.Array:
    """11/16 of the approximate length of a vector; the factor is applied to each component separately."""
    first, *others = sorted_down([jnp.abs(d) for d in side])
    first = half(first)
    if not others:
        return first
    return first + lesser_part(share(others[0], 121 / 64) * 0.125, [share(d, 11 / 8) * 0.125 for d in others[1:]])


def half(component: jax.Array) -> jax.Array:
    """11/16 of a component of a vector."""
    return jnp.copysign(cut(share(jnp.abs(component), 11 / 8) * 0.5), component)


def lesser_part(second: jax.Array, third: Side) -> jax.Array:
    """The second part of a length plus the third, which is first truncated to the last bit of the second."""
    for part in third:
        unit, inverse = last_bit(second)
        second = second + jnp.floor(part * inverse) * unit
    return second


def share(value: jax.Array, factor: float) -> jax.Array:
    """`value`, not negative and of `BITS` bits, times `factor`, rounded to the last bit of `value`, halves up."""
    unit, inverse = last_bit(value)
    return jnp.floor(value * inverse * np.float32(factor) + 0.5) * unit


def guarded_sum(a: jax.Array, b: jax.Array) -> jax.Array:
    """The sum of two numbers of `BITS` bits, truncated to `BITS` bits.

    The smaller number is first truncated to half of the last bit of the larger.
    """
    swap = jnp.abs(a) < jnp.abs(b)
    larger, smaller = jnp.where(swap, b, a), jnp.where(swap, a, b)
    unit, inverse = last_bit(larger)
    return cut(larger + jnp.trunc(smaller * (2 * inverse)) * (unit * 0.5))


def sorted_down(values: Side) -> list[jax.Array]:
    """Up to three arrays, the largest first."""
    values = list(values)
    for i, j in ((0, 1), (1, 2), (0, 1)):
        if j < len(values):
            values[i], values[j] = jnp.maximum(values[i], values[j]), jnp.minimum(values[i], values[j])
    return values


def cut(value: jax.Array) -> jax.Array:
    """`value`, truncated to `BITS` significant bits."""
    return float_of(bits_of(value) & ~((1 << (24 - BITS)) - 1))


def last_bit(value: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The value of the last of `BITS` significant bits, and its inverse; tiny numbers count as 2^-87."""
    exponent = jnp.clip(bits_of(value) & EXPONENT, *EXPONENTS)
    unit = exponent - ((BITS - 1) << 23)
    return float_of(unit), float_of((254 << 23) - unit)


def in_texels(side: jax.Array, size: int) -> jax.Array:
    """A component of a footprint's side in texels, from one in units of `size` texels; truncated to `BITS` bits.

    The product is truncated to three more bits and then rounded up.
    """
    side = cut(jnp.clip(number(side), -FARTHEST, FARTHEST))
    if size & (size - 1) == 0:
        return side * size
    shift = size.bit_length() - 1
    significand = ((bits_of(side) >> (24 - BITS)) & ((1 << (BITS - 1)) - 1)) | (1 << (BITS - 1))
    product = (((significand * size << 3) >> shift) + 7) >> 3
    unit, _ = last_bit(side)
    scaled = jnp.copysign(product.astype(jnp.float32) * unit * np.float32(1 << shift), side)
    return cut(jnp.where(jnp.abs(side) < 1 / FARTHEST, 0, scaled))


# The reads along a footprint

DIRECTION_BITS = 4
_MIDDLES = np.arange(2**DIRECTION_BITS) + 0.5
_LENGTHS = np.hypot(*np.meshgrid(_MIDDLES, _MIDDLES))
# The first component of the unit vector along (x, y), for x and y of four bits, each taken as the middle of its range.
UNIT_VECTORS = (np.floor(64 * _MIDDLES[:, None] / _LENGTHS + 0.5) / 64).astype(np.float32)


class Ellipse(NamedTuple):
    """A long footprint.

    Attributes:
        lod: the level of detail, in 1/256.
        log_ratio: log2 of the ratio of length to width, in 1/256.
        direction: a vector of length 1 along the footprint, in texels.
    """

    lod: jax.Array
    log_ratio: jax.Array
    direction: list[jax.Array]


def ellipse(ddx: Side, ddy: Side, most: int, bent: jax.Array | None = None) -> Ellipse:
    """The footprint with sides `ddx` and `ddy`, in texels of the finest level, for an anisotropy of at most `most`.

    Args:
        bent: whether a side crosses an edge of a cube; then the diagonals are ignored.
    """
    axes = len(ddx)
    if axes == 1:  # a texture of one row
        ddx, ddy = ((*side, jnp.zeros_like(side[0])) for side in (ddx, ddy))
    # The longest of two sides and two diagonals is the length, and has the direction.
    (*sides, sum, difference), lengths = extents(ddx, ddy)
    if bent is not None:
        lengths[2:] = [jnp.where(bent, 0, extent) for extent in lengths[2:]]
    vectors = [*sides, *([half(d) for d in diagonal] for diagonal in (sum, difference))]
    longest, direction = lengths[0], vectors[0]
    for vector, extent in zip(vectors[1:], lengths[1:]):
        further = extent > longest
        longest = jnp.where(further, extent, longest)
        direction = [jnp.where(further, new, old) for new, old in zip(vector, direction)]
    # The width is the area divided by the length, both as logarithms.
    (ax, ay), (bx, by) = sides
    area = jnp.abs(ax * by - ay * bx)
    along = fixed_log2(longest)
    across = jnp.where(area > 0, fixed_log2(area) - along, -FAR * ONE)
    # A ratio beyond the bound takes a coarser level.
    bound = math.floor(ONE * math.log2(even(most)))
    log_ratio = jnp.clip(along - jnp.maximum(across, 0), 0, bound)
    return Ellipse(jnp.maximum(across, along - bound), log_ratio, unit_vector(direction)[:axes])


def unit_vector(vector: Sequence[jax.Array]) -> list[jax.Array]:
    """The approximate unit vector of `vector`, from four bits of each component, in multiples of 1/64."""
    # Four bits of each component, by the exponent of the larger one, are the place in a table.
    sizes = [jnp.abs(c) for c in vector]
    _, inverse = last_bit(jnp.maximum(*sizes))
    x, y = (jnp.floor(c * inverse * np.float32(2.0 ** (DIRECTION_BITS - BITS))).astype(jnp.int32) for c in sizes)
    along_x, along_y = (entry(UNIT_VECTORS, *v) for v in ((x, y), (y, x)))
    parts = (jnp.where(sizes[1] > 0, along_x, 1), jnp.where(sizes[0] > 0, along_y, 1))
    return [jnp.where(size > 0, jnp.copysign(p, c), 0) for p, c, size in zip(parts, vector, sizes)]


def even(anisotropy: int) -> int:
    """The largest number of reads for an anisotropy: reads come in pairs."""
    return max(anisotropy - anisotropy % 2, 1)


def read_along(log_ratio: jax.Array, number: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The offset of a read from the center, in texels of the level, and its weight; both are 0 beyond the last read.

    Args:
        number: the number of the read, from 1.
    """
    # Reads come in pairs around the center, a texel apart, or closer for a ratio below two.
    ratio = fixed_exp2(log_ratio)
    pairs = jnp.ceil(ratio / 2)
    reads = jnp.where(ratio > 1, 2 * pairs, 1)
    offset = (number - (reads + 1) / 2) * jnp.where(ratio < 2, 2 - 2 / ratio, 1)
    # The outer pair has what the equal weights of the others leave.
    whole = jnp.where(pairs > 2, 4 * ONE, ONE * pairs)  # weights are multiples of 1 / whole
    inner = jnp.minimum(jnp.floor(whole / ratio + 0.5), jnp.floor(whole / 2 / jnp.maximum(pairs - 1, 1)))
    outer = whole / 2 - inner * (pairs - 1)
    weight = jnp.where((number == 1) | (number == reads), outer, inner) / whole
    weight = jnp.where(reads == 1, 1, weight)
    taken = number <= reads
    return jnp.where(taken, offset, 0), jnp.where(taken, weight, 0)
