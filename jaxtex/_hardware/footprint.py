"""The level of detail of a footprint in fixed point, 1/256 of a level, and the reads along a long footprint.

P is the extent of a footprint along its longest side or diagonal, and p = |det| / P its extent across, in texels of the
finest level. The level is log2 max(p, P / A), sharpened like an explicit one. The ratio r is P / max(p, 1), at most A.

    r <= 1       one read
    1 < r <= 2   two reads, 1 - 1/r from the center
    r > 2        Nt = 2 ceil(r / 2) reads, one texel of the level apart, each of weight 1/r, except for the outer two,
                 which share the remaining weight

Logarithms are fixed point, in 1/256. The reads lie along a unit vector of whole 64ths. Levels and weights are those of
the unit in nearly all recorded footprints, not in all.
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
from .taps import ONE, number

Side = Sequence[jax.Array]
BITS = 10  # of a significand, of all lengths
FARTHEST = 2.0**60  # a longer footprint reads the last level of any chain, a shorter one than its inverse the first
EXPONENTS = (40 << 23, 240 << 23)
FAR = 2**14  # no chain has that many levels
# Up to which anisotropy, where the blend of two levels begins in 1/256, and how steep it is.
SHARPENING = (
    (1, 0.0, Fraction(1)),
    (3, 128 / 3, Fraction(3, 2)),
    (7, 384 / 7, Fraction(7, 4)),
    (16, 64.0, Fraction(2)),
)


def fixed(lod: jax.Array | float) -> jax.Array:
    """A level of detail cut toward zero to 1/256; NaN is 0."""
    lod = jnp.clip(jnp.asarray(lod, jnp.float32), -FAR, FAR)
    return jnp.where(lod == lod, lod * 256, 0).astype(jnp.int32)


def fixed_lod(
    lod: jax.Array | None, sampler: Sampler, num_levels: int, shape: tuple[int, ...], explicit: bool
) -> jax.Array:
    """The level of detail of a read, in 1/256.

    A given level and the bias are cut to 1/256 separately; a plain read has neither. An `explicit` level is sharpened
    if the sampler is anisotropic and blends levels, as if a footprint were long.
    """
    sharpened = explicit and sampler.max_anisotropy > 1 and sampler.mipmap_filter_mode is FilterMode.LINEAR
    start, slope = next((s, f) for most, s, f in SHARPENING if sampler.max_anisotropy <= most)
    bias = sampler.mipmap_level_bias * ONE
    bias = int(bias - start) + int(start) if sharpened else int(bias)
    lod = jnp.zeros(shape, jnp.int32) if lod is None else lod + max(min(bias, FAR * ONE), -FAR * ONE)
    bound = lambda clamp: math.floor(min(max(clamp, -FAR), FAR) * ONE)
    lod = jnp.minimum(lod, bound(sampler.max_mipmap_level_clamp))
    lod = jnp.maximum(lod, bound(sampler.min_mipmap_level_clamp))
    lod = jnp.clip(lod, 0, (num_levels - 1) * ONE)
    if not sharpened:
        return lod
    fraction = ((lod & 255) - math.floor(start)) * slope.numerator // slope.denominator
    return (lod & ~255) + jnp.clip(fraction, 0, ONE)


# 256 log2(1 + (k + 1/2) / 256), rounded, as recorded: one less at the entries listed, and exact at the ends.
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
    """The level of detail of a footprint without anisotropy, in 1/256.

    Args:
        ddx, ddy: the sides of the footprint in texels of the finest level, as `in_texels` returns them.
        bent: whether a side reaches over the edge of a cube's face; its diagonals do not count.
    """
    _, (*sides, sum, difference) = extents(ddx, ddy)
    sides, diagonals = jnp.maximum(*sides), jnp.maximum(sum, difference)
    return fixed_log2(jnp.maximum(sides, diagonals if bent is None else jnp.where(bent, 0, diagonals)))


def extents(ddx: Side, ddy: Side) -> tuple[list[Side], list[jax.Array]]:
    """The sides of a footprint and its diagonals, and its extents along them."""
    sums, differences = ([guarded_sum(a, sign * b) for a, b in zip(ddx, ddy)] for sign in (1, -1))
    lengths = [length(ddx), length(ddy), half_length(sums), half_length(differences)]
    return [ddx, ddy, sums, differences], lengths


def fixed_log2(x: jax.Array) -> jax.Array:
    """The binary logarithm of a number that is not negative, in 1/256; of zero, a level that no chain has."""
    bits = bits_of(x)
    mantissa, exponent = (bits >> 15) & 255, (bits >> 23) - 127
    log2 = entry(LOG2_TABLE, mantissa)
    return jnp.where(x > 0, jnp.clip(exponent * 256 + log2, -FAR * 256, FAR * 256), -FAR * 256)


def fixed_exp2(log2: jax.Array) -> jax.Array:
    """2 to a power in 1/256, the same float on every processor."""
    fraction = entry(EXP2_TABLE, log2 & 255)
    return fraction * float_of(((log2 >> 8) + 127) << 23)


def length(side: Side) -> jax.Array:
    """The approximate length of a vector: the largest component, 11/32 of the next, a quarter of the third."""
    first, *others = sorted_down([jnp.abs(d) for d in side])
    if not others:
        return first
    return first + lesser_part(share(others[0], 11 / 8) * 0.25, [d * 0.25 for d in others[1:]])


def half_length(side: Side) -> jax.Array:
    """11/16 of the approximate length of a vector, each component multiplied by itself."""
    first, *others = sorted_down([jnp.abs(d) for d in side])
    first = half(first)
    if not others:
        return first
    return first + lesser_part(share(others[0], 121 / 64) * 0.125, [share(d, 11 / 8) * 0.125 for d in others[1:]])


def half(component: jax.Array) -> jax.Array:
    """11/16 of a component of a vector."""
    return jnp.copysign(cut(share(jnp.abs(component), 11 / 8) * 0.5), component)


def lesser_part(second: jax.Array, third: Side) -> jax.Array:
    """The parts of a length beside that of the largest component; the third is cut to the bits of the second."""
    for part in third:
        unit, inverse = last_bit(second)
        second = second + jnp.floor(part * inverse) * unit
    return second


def share(value: jax.Array, factor: float) -> jax.Array:
    """A product of a number of `BITS` bits that is not negative, rounded to the last of these, halves up."""
    unit, inverse = last_bit(value)
    return jnp.floor(value * inverse * np.float32(factor) + 0.5) * unit


def guarded_sum(a: jax.Array, b: jax.Array) -> jax.Array:
    """The sum of numbers of `BITS` bits, cut to as many; the smaller is first cut to one bit more than the larger."""
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
    """`value` cut to `BITS` significant bits."""
    return float_of(bits_of(value) & ~((1 << (24 - BITS)) - 1))


def last_bit(value: jax.Array) -> tuple[jax.Array, jax.Array]:
    """What the last of `BITS` significant bits counts, and its inverse; that of a tiny number is larger."""
    exponent = jnp.clip(bits_of(value) & EXPONENT, *EXPONENTS)
    unit = exponent - ((BITS - 1) << 23)
    return float_of(unit), float_of((254 << 23) - unit)


def in_texels(side: jax.Array, size: int) -> jax.Array:
    """A component of a side of a footprint in texels, cut to `BITS` bits: of a side in parts of `size` texels.

    The product has three more bits, and the rest is rounded up.
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
# The first component of the unit vector along (x, y), numbers of four bits that stand for the middle of their range.
UNIT_VECTORS = (np.floor(64 * _MIDDLES[:, None] / _LENGTHS + 0.5) / 64).astype(np.float32)


class Ellipse(NamedTuple):
    """A long footprint.

    Attributes:
        lod: the level of detail, in 1/256.
        log_ratio: log2 of its ratio, in 1/256.
        direction: a vector of length 1 along it, in texels.
    """

    lod: jax.Array
    log_ratio: jax.Array
    direction: list[jax.Array]


def ellipse(ddx: Side, ddy: Side, most: int, bent: jax.Array | None = None) -> Ellipse:
    """The footprint with sides `ddx` and `ddy`, in texels of the finest level, for an anisotropy of `most`.

    Args:
        bent: whether a side reaches over the edge of a cube's face; its diagonals do not count.
    """
    axes = len(ddx)
    if axes == 1:  # a texture of one row
        ddx, ddy = ((*side, jnp.zeros_like(side[0])) for side in (ddx, ddy))
    (*sides, sum, difference), lengths = extents(ddx, ddy)
    if bent is not None:
        lengths[2:] = [jnp.where(bent, 0, extent) for extent in lengths[2:]]
    vectors = [*sides, *([half(d) for d in diagonal] for diagonal in (sum, difference))]
    longest, direction = lengths[0], vectors[0]
    for vector, extent in zip(vectors[1:], lengths[1:]):
        further = extent > longest
        longest = jnp.where(further, extent, longest)
        direction = [jnp.where(further, new, old) for new, old in zip(vector, direction)]
    (ax, ay), (bx, by) = sides
    area = jnp.abs(ax * by - ay * bx)
    along = fixed_log2(longest)
    across = jnp.where(area > 0, fixed_log2(area) - along, -FAR * ONE)
    bound = math.floor(ONE * math.log2(even(most)))
    log_ratio = jnp.clip(along - jnp.maximum(across, 0), 0, bound)
    return Ellipse(jnp.maximum(across, along - bound), log_ratio, unit_vector(direction)[:axes])


def unit_vector(vector: Sequence[jax.Array]) -> list[jax.Array]:
    """A vector of length 1 and about that direction: of four bits of each component, to whole 64ths."""
    sizes = [jnp.abs(c) for c in vector]
    _, inverse = last_bit(jnp.maximum(*sizes))
    x, y = (jnp.floor(c * inverse * np.float32(2.0 ** (DIRECTION_BITS - BITS))).astype(jnp.int32) for c in sizes)
    along_x, along_y = (entry(UNIT_VECTORS, *v) for v in ((x, y), (y, x)))
    parts = (jnp.where(sizes[1] > 0, along_x, 1), jnp.where(sizes[0] > 0, along_y, 1))
    return [jnp.where(size > 0, jnp.copysign(p, c), 0) for p, c, size in zip(parts, vector, sizes)]


def even(anisotropy: int) -> int:
    """The number of reads that an anisotropy allows: reads come in pairs."""
    return max(anisotropy - anisotropy % 2, 1)


def read_along(log_ratio: jax.Array, number: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The offset of one of the reads, counted from 1, in texels of its level from the center, and its weight."""
    ratio = fixed_exp2(log_ratio)
    pairs = jnp.ceil(ratio / 2)
    reads = jnp.where(ratio > 1, 2 * pairs, 1)
    offset = (number - (reads + 1) / 2) * jnp.where(ratio < 2, 2 - 2 / ratio, 1)
    whole = jnp.where(pairs > 2, 4 * ONE, ONE * pairs)  # weights are whole parts of this
    inner = jnp.minimum(jnp.floor(whole / ratio + 0.5), jnp.floor(whole / 2 / jnp.maximum(pairs - 1, 1)))
    outer = whole / 2 - inner * (pairs - 1)
    weight = jnp.where((number == 1) | (number == reads), outer, inner) / whole
    weight = jnp.where(reads == 1, 1, weight)
    taken = number <= reads
    return jnp.where(taken, offset, 0), jnp.where(taken, weight, 0)
