"""How a texture unit blends texels: exact sums of integers, each format in its own way.

A stencil is the texels of one slice of one level. The floating texels of a stencil share one exponent E, that of the
largest texel. Every texel is cut toward zero to a multiple of 2^(E - 28) (float32) or 2^(E - 15) (float16), and the sum
of weight times texel is exact. Stencils are added level by level: the sum so far and those of the level are each
rounded down to a multiple of a unit that follows from the largest E, in steps of four bits, and added exactly. The
total is divided by 256 and rounded once, halves away from zero.

The integers are held in float32, where these products and sums are exact: a texel, scaled by 2^(2 - E) into (-4, 4), is
a high part of 12 bits after the point and a low part of 14 more.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._engine import decoding
from .._engine.decoding import SRGB_TO_LINEAR, is_color
from .._engine.indexing import gather
from .._tables.storage_formats import Decoding
from .._typed_jit import typed_jit

# The taps of a stencil: texels and weights.
Taps = Sequence[tuple[jax.Array, jax.Array]]
# The stencils of each level.
Levels = Sequence[Sequence[Taps]]
SMALLEST_NORMAL = np.float32(2.0**-126)
EXPONENT = np.int32(0x7F800000)
SIGN = np.int32(-(2**31))


def bits_of(x: jax.Array) -> jax.Array:
    return jax.lax.bitcast_convert_type(x, jnp.int32)


def float_of(bits: jax.Array) -> jax.Array:
    return jax.lax.bitcast_convert_type(bits, jnp.float32)


def with_sign_of(sign: jax.Array, x: jax.Array) -> jax.Array:
    """`x`, not negative, with the sign of another float, by its bits.

    A select, without which XLA makes a program for a CPU that takes half as long again.
    """
    return jnp.where(jnp.signbit(sign), float_of(bits_of(x) | SIGN), x)


ratio = functools.partial(decoding.ratio, dtype=np.dtype(np.float32))


def small_float(count: jax.Array) -> jax.Array:
    """A whole number below 2^23 as a float, in two cheap operations."""
    return float_of(count | (150 << 23)) - np.float32(2.0**23)


def total(values: Sequence[jax.Array]) -> jax.Array:
    return functools.reduce(jnp.add, values)


class Format(NamedTuple):
    """How floating texels are cut and sums rounded."""

    steps: tuple[int, ...]  # bits after the point of each part of a texel that was scaled into (-4, 4)
    smallest: np.float32  # texels below count as zero


FLOAT32 = Format((12, 26), SMALLEST_NORMAL)
FLOAT16 = Format((13,), np.float32(2.0**-24))


@typed_jit("stored", "decoding")
def blend(levels: Levels, stored: np.dtype, decoding: Decoding) -> jax.Array:
    """The blend of texels, S + (C,) each and as they are stored, with integer weights, S + (1,).

    Args:
        levels: the stencils of each level.
    """
    return BLENDS[np.dtype(stored).name](levels, decoding)


def blend_float32(levels: Levels, decoding: Decoding) -> jax.Array:
    del decoding
    exact, top, finite, others = shared_exponent(levels, FLOAT32)
    return jnp.where(finite, to_float32(*exact, top), others)


def blend_float16(levels: Levels, decoding: Decoding) -> jax.Array:
    del decoding
    exact, top, finite, others = shared_exponent([[widened(f) for f in level] for level in levels], FLOAT16)
    return jnp.where(finite, to_float16(*exact, top), others)


def blend_int8(levels: Levels, decoding: Decoding) -> jax.Array:
    del decoding
    s = weighted_sum(levels, lambda v: v)
    code = jnp.maximum(s + ((257 * (s >> 4) + 1024) >> 11), -32767)
    return jnp.maximum(ratio(code, 15), -1)


def blend_int16(levels: Levels, decoding: Decoding) -> jax.Array:
    del decoding
    return jnp.maximum(ratio((weighted_sum(levels, lambda v: v) + 128) >> 8, 15), -1)


def blend_uint8(levels: Levels, decoding: Decoding) -> jax.Array:
    linear = ratio((weighted_sum(levels, lambda v: v * 257) + 128) >> 8, 16)
    return jnp.where(is_color(linear), blend_srgb(levels), linear) if decoding is Decoding.SRGB else linear


def blend_uint16(levels: Levels, decoding: Decoding) -> jax.Array:
    del decoding
    return ratio((weighted_sum(levels, lambda v: v) + 128) >> 8, 16)


# A row for each storage dtype that a texture unit blends.
BLENDS: dict[str, Callable[[Levels, Decoding], jax.Array]] = {
    "float32": blend_float32,
    "float16": blend_float16,
    "int8": blend_int8,
    "uint8": blend_uint8,
    "int16": blend_int16,
    "uint16": blend_uint16,
}


def weighted_sum(levels: Levels, change: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """The sum of weight times texel, after `change` of the texel as an integer."""
    taps = [(v.astype(jnp.int32), w) for level in levels for f in level for v, w in f]
    return total([change(v) * w for v, w in taps])


def widened(taps: Taps) -> Taps:
    return [(value.astype(jnp.float32), weight) for value, weight in taps]


def shared_exponent(
    levels: Levels, format: Format
) -> tuple[tuple[jax.Array, jax.Array], jax.Array, jax.Array, jax.Array]:
    """The exact sum of floating texels in units of 2^(E - 10), as two floats, and the bits of the float 2^(E - 1).

    The other results are whether all texels are finite, and the sum that infinities and NaN make if not.
    """
    # -0 is the neutral element of addition: a texel without weight does not count, and a sum of -0 is -0.
    zero = np.float32(-0.0)
    counted = [[[(jnp.where(w > 0, v, zero), w) for v, w in f] for f in level] for level in levels]
    sums, finite = [], []
    for level in counted:
        of_level, largest = zip(*(stencil_sum(taps, format) for taps in level))
        sums, finite = [*of_level, *sums], [*finite, *(n < jnp.inf for n in largest)]
        if len(sums) > 1:
            sums = [added(sums, format)]
    values = [v for level in counted for f in level for v, _ in f]
    return exact_sum(sums[0].parts), sums[0].exponent, functools.reduce(jnp.logical_and, finite), total(values)


class Sum(NamedTuple):
    """An exact sum: floats to be added, in units that follow from an exponent, the bits of a float."""

    parts: list[jax.Array]
    exponent: jax.Array


def added(sums: list[Sum], format: Format) -> Sum:
    """Sums as the unit adds them: each cut to the exponent of the largest, in steps of four bits."""
    top = functools.reduce(jnp.maximum, (s.exponent for s in sums))
    return Sum([part for s in sums for part in aligned(s, top, format)], top)


@typed_jit("format")
def aligned(sum: Sum, top: jax.Array, format: Format) -> list[jax.Array]:
    """A sum in the units of `top`, rounded down to a multiple of 2^(4 floor((E - 2) / 4) - n), n the bits of a texel
    that was scaled into (-4, 4), and E the exponent of `top`."""
    # Far below any unit only the sign counts, since -1e-30 is rounded down too.
    shift = float_of(jnp.maximum(sum.exponent - top, -64 << 23) + (127 << 23))
    rounded, error = exact_sum([part * shift for part in sum.parts])
    unit = float_of(((127 - format.steps[-1]) << 23) - (top & (3 << 23)))
    inverse = float_of(((127 + format.steps[-1]) << 23) + (top & (3 << 23)))
    down = jnp.floor(rounded * inverse) * unit
    # Where the rounded sum is a multiple, its error decides. -0 stays -0.
    return [down, jnp.where((down == rounded) & (error != 0), jnp.floor(error * inverse) * unit, rounded * 0)]


@typed_jit("format")
def stencil_sum(taps: Taps, format: Format) -> tuple[Sum, jax.Array]:
    """The sum of weight times texel, in parts that are exact, and the largest magnitude of a texel, or NaN."""
    largest = functools.reduce(jnp.maximum, (jnp.abs(v) for v, _ in taps))
    exponent = bits_of(jnp.maximum(largest, SMALLEST_NORMAL)) & EXPONENT
    scale = float_of((255 << 23) - exponent)
    two = scale * float_of(exponent)  # 2, unknown to the compiler, which would cancel the rounding below
    sums = [[] for _ in format.steps]
    for texel, weight in taps:
        scaled = texel * scale
        signed = with_sign_of(scaled, small_float(weight))
        rest = jnp.where(jnp.abs(texel) < format.smallest, 0, jnp.abs(scaled))
        for k, step in enumerate(format.steps):
            rounder = two * np.float32(0.75 * 2.0 ** (23 - step))
            part = (rest + rounder) - rounder  # to a multiple of 2^-step, either way
            if k == len(format.steps) - 1:
                part = part - jnp.where(part > rest, np.float32(2.0**-step), 0)
            rest = rest - part
            sums[k].append(signed * part)
    return Sum([total(s) for s in sums], exponent), largest


@typed_jit()
def exact_sum(parts: list[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """The sum of floats as (rounded, remainder).

    The remainder is exact, or is on the same side of half a unit in the last place as the exact one.
    """
    if len(parts) == 1:
        return parts[0], jnp.zeros_like(parts[0])
    if len(parts) == 2:  # of one stencil: the high part is a multiple of the last bit of the low one
        high, low = parts
        rounded = high + low
        return rounded, low - (rounded - high)
    parts, signed_zero = list(parts), total(parts)
    for _ in range(len(parts) - 1):
        for k in range(len(parts) - 1):
            parts[k + 1], parts[k] = two_sum(parts[k + 1], parts[k])
    *rest, error, rounded = parts
    rounded = jnp.where(rounded == 0, float_of(bits_of(signed_zero) & SIGN), rounded)
    return rounded, jnp.where(functools.reduce(jnp.logical_or, (r != 0 for r in rest)), error * 0.75, error)


@typed_jit()
def two_sum(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The rounded sum of two floats, and its error (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def to_float32(rounded: jax.Array, error: jax.Array, top: jax.Array) -> jax.Array:
    """A sum rounded to float32, halves away from zero; a subnormal one is zero."""
    further = rounded + (error + error)
    halfway = (further - rounded == error + error) & (error != 0) & ((error > 0) == (rounded > 0))
    mean = jnp.where(halfway, further, rounded) * np.float32(2.0**-9)
    # Compared before the product, which some processors flush to zero and others do not.
    normal = jnp.abs(mean) >= float_of((128 << 23) - jnp.minimum(top, 100 << 23))
    return jnp.where(normal, mean * float_of(top), float_of(bits_of(mean) & SIGN))


def to_float16(rounded: jax.Array, error: jax.Array, top: jax.Array) -> jax.Array:
    """A sum rounded to the 11 bits of float16, or to 2^-24 if it is subnormal, halves away from zero."""
    mean = rounded * np.float32(2.0**-9) * float_of(top)
    short = (error != 0) & ((error > 0) != (rounded > 0))
    bits = bits_of(mean) + jnp.where(short, 0xFFF, 0x1000)
    normal = float_of(bits & ~0x1FFF)
    steps = jnp.abs(mean) * 2.0**24
    whole = jnp.floor(steps)
    up = (steps - whole > 0.5) | ((steps - whole == 0.5) & ~short)
    subnormal = with_sign_of(mean, (whole + up.astype(jnp.float32)) * 2.0**-24)
    return jnp.where(jnp.abs(mean) < 2.0**-14, subnormal, normal)


def srgb_tables() -> tuple[np.ndarray, np.ndarray]:
    """The unit's table of linear values x 65536, with 8 bits each, in steps of 4 at least; and their exponents."""
    ideal = SRGB_TO_LINEAR * 65536
    exponent = np.floor(np.log2(np.round(ideal[np.arange(256) | 7]))).astype(np.int32)
    step = np.maximum(4, 2.0 ** (exponent - 7))
    return (np.floor(ideal / step + 0.5) * step).astype(np.int32), exponent


SRGB_TABLE, SRGB_EXPONENT = srgb_tables()


def srgb_entry(table: np.ndarray, code: jax.Array) -> jax.Array:
    return gather(jnp.asarray(table[:, None]), (code.astype(jnp.int32),))[..., 0]


def blend_srgb(levels: Levels) -> jax.Array:
    """sRGB codes: decoded by a table of integers, cut to the exponent of the largest, rounded to 11 bits."""
    sum, top = jnp.int32(0), jnp.int32(0)
    for level in levels:
        addends = [sum]
        for taps in level:
            exponents = (jnp.where(w > 0, srgb_entry(SRGB_EXPONENT, v), 0) for v, w in taps)
            exponent = functools.reduce(jnp.maximum, exponents)
            cut = jnp.left_shift(-1, jnp.maximum(exponent - 7, 0))
            addends.append(total([(srgb_entry(SRGB_TABLE, v) & cut) * w for v, w in taps]))
            top = jnp.maximum(top, exponent)
        unit = jnp.left_shift(-1, jnp.maximum(4 * ((top - 1) >> 2) - 6, 0))
        sum = total([addend & unit for addend in addends])
    bits = bits_of(sum.astype(jnp.float32)) + 0x1000
    return float_of(bits & ~0x1FFF) * np.float32(2.0**-24)
