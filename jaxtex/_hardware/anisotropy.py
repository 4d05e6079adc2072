"""Anisotropic reads of a texture unit: how many along a long footprint, where, and with which weights.

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
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._jax.indexing import entry
from .lod import BITS, FAR, Side, extents, fixed_exp2, fixed_log2, half, last_bit
from .positions import ONE

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
