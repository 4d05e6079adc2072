"""The level of detail in fixed point, 1/256 of a level."""

import math
from collections.abc import Sequence
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from .._engine.float_bits import bits_of, float_of
from .._engine.indexing import gather
from ..modes import FilterMode
from ..sampler import Sampler
from .positions import ONE

Side = Sequence[jax.Array]
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
LOG2_TABLE = tuple(
    k if k in (0, 255) else math.floor(256 * math.log2(1 + (k + 0.5) / 256) + 0.5) - (k in ONE_LESS) for k in range(256)
)

EXP2_TABLE = np.exp2(np.arange(256) / 256).astype(np.float32)


def footprint_lod(ddx: Side, ddy: Side, bent: jax.Array | None = None) -> jax.Array:
    """The level of detail of a footprint without anisotropy, in 1/256.

    Args:
        ddx, ddy: the sides of the footprint in texels of the finest level, float32.
        bent: whether a side reaches over the edge of a cube's face; its diagonals do not count.
    """
    _, (*sides, sum, difference) = extents(ddx, ddy)
    sides, diagonals = jnp.maximum(*sides), jnp.maximum(sum, difference)
    return fixed_log2(jnp.maximum(sides, diagonals if bent is None else jnp.where(bent, 0, diagonals)))


def extents(ddx: Side, ddy: Side) -> tuple[list[Side], list[jax.Array]]:
    """The sides of a footprint and its diagonals, and how far it reaches along each."""
    usable = lambda d: jnp.clip(jnp.where(d == d, d, 0), -(2.0**60), 2.0**60)
    x, y = ([usable(d) for d in side] for side in (ddx, ddy))
    sums, differences = ([cut(a) + cut(b) for a, b in zip(x, y)], [cut(a) - cut(b) for a, b in zip(x, y)])
    half = [jnp.float32(11 / 16) * length(side) for side in (sums, differences)]
    return [x, y, sums, differences], [length(x), length(y), *half]


def fixed_log2(x: jax.Array) -> jax.Array:
    """The binary logarithm of a number that is not negative, in 1/256; of zero, a level that no chain has."""
    bits = bits_of(x)
    mantissa, exponent = (bits >> 15) & 255, (bits >> 23) - 127
    log2 = gather(jnp.asarray(LOG2_TABLE, jnp.int32)[:, None], (mantissa,))[..., 0]
    return jnp.where(x > 0, jnp.clip(exponent * 256 + log2, -FAR * 256, FAR * 256), -FAR * 256)


def fixed_exp2(log2: jax.Array) -> jax.Array:
    """2 to a power in 1/256, the same float on every processor."""
    fraction = gather(jnp.asarray(EXP2_TABLE[:, None]), (log2 & 255,))[..., 0]
    return fraction * float_of(((log2 >> 8) + 127) << 23)


def length(side: Side) -> jax.Array:
    """The approximate length of a vector: the largest component, 11/32 of the next, a quarter of the third."""
    ordered = sorted_down([jnp.abs(cut(d)) for d in side])
    terms = (c * jnp.float32(w) for c, w in zip(ordered, (1, 11 / 32, 1 / 4)))
    total = next(terms)
    for term in terms:
        total = total + term
    return total


def sorted_down(values: Side) -> list[jax.Array]:
    """Up to three arrays, the largest first."""
    values = list(values)
    for i, j in ((0, 1), (1, 2), (0, 1)):
        if j < len(values):
            values[i], values[j] = jnp.maximum(values[i], values[j]), jnp.minimum(values[i], values[j])
    return values


def cut(value: jax.Array) -> jax.Array:
    """`value` cut to 10 significant bits."""
    return float_of(bits_of(value) & ~((1 << 14) - 1))
