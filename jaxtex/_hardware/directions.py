"""Directions into a cube: what CUDA code makes of them before the texture unit reads, and what the unit makes of that.

A program multiplies the components by the reciprocal of the largest. The unit takes the face of the largest product,
and cuts u = (s + 1) / 2 like any coordinate. A read with derivatives is a read of four neighboring threads: its sides
are differences of what two of them pass, each multiplied and rounded.
"""

import jax
import jax.numpy as jnp
import numpy as np

from .._engine.describe.coordinates import Arrays
from .._engine.describe.cube import on_face
from .._jax.float_bits import EXPONENT, SIGN, SMALLEST_NORMAL, bits_of, float_of
from .lod import cut, guarded_sum
from .positions import number
from .reciprocal import reciprocal

MAGNITUDE = np.int32(0x7FFFFFFF)
NORMAL = np.int32(1 << 23)
# The bits of 2^126: the reciprocal of a larger number is subnormal, and becomes zero.
LONGEST = np.int32(253 << 23)
LIFT = 100
# More bits of a coordinate than a unit keeps on any axis of a cube.
COORDINATE_BITS = 23


def to_face(direction: Arrays) -> Arrays:
    """The face that a direction meets, and u and v there, cut to bits that a unit may keep."""
    unit = projected(direction)
    face, on_own_axes = on_face(*map(order, unit))
    return face, *(coordinate(number(c)) for c in on_own_axes(*unit)[:2])


def coordinate(component: jax.Array) -> jax.Array:
    """(component + 1) / 2, cut; infinity is an edge."""
    half = np.float32(1 << (COORDINATE_BITS - 1))
    return (jnp.floor(jnp.clip(component, -1, 1) * half) + half) * np.float32(0.5**COORDINATE_BITS)


def projected(direction: Arrays) -> Arrays:
    """A direction times the reciprocal of its largest component, to the bit of CUDA code, NaN and infinities included.

    Subnormal numbers are read from their bits, because some processors take them for zero.
    """
    direction = tuple(jnp.broadcast_arrays(*direction))
    sizes = [jnp.where(c == c, bits_of(c) & MAGNITUDE, 0) for c in direction]
    largest = jnp.maximum(jnp.maximum(*sizes[:2]), sizes[2])
    is_short, is_long = largest < NORMAL, largest > LONGEST
    inverse = reciprocal(float_of(jnp.where(is_short | is_long, 127 << 23, largest)))
    lowered = inverse * np.float32(2.0**-LIFT)

    def component(c: jax.Array, size: jax.Array) -> jax.Array:
        lifted = (size & 0x7FFFFF).astype(jnp.float32) * np.float32(2.0 ** (LIFT - 149))
        lifted = float_of(bits_of(lifted) | (bits_of(c) & SIGN))
        product = jnp.where(size < NORMAL, lifted * lowered, c * inverse)
        product = jnp.where(jnp.abs(product) < SMALLEST_NORMAL, 0, product)
        # The reciprocal of a subnormal number is infinity, and infinity times zero is NaN.
        infinite = float_of(EXPONENT | (bits_of(c) & SIGN))
        product = jnp.where(is_short, jnp.where(size == 0, jnp.nan, infinite), product)
        product = jnp.where(is_long, jnp.where(size == EXPONENT, jnp.nan, 0), product)
        return jnp.where(c == c, product, jnp.nan)

    return tuple(component(c, size) for c, size in zip(direction, sizes))


def order(component: jax.Array) -> jax.Array:
    """An integer of the sign of `component`, the larger the further it is from zero; 0 for NaN, which is nearest."""
    size = (bits_of(component) & MAGNITUDE) + 1
    return jnp.where(component == component, jnp.where(component < 0, -size, size), 0)


def side_on_face(direction: Arrays, side: Arrays) -> tuple[Arrays, jax.Array]:
    """A side of a footprint as a step of (u, v) on the face that a direction meets, and whether it leaves that face.

    The step is a difference, not a derivative: from where the direction meets the cube to where direction plus side
    does, on faces that are unfolded into the plane of the first. Over an edge it is the way up to the edge, and beyond.
    """
    start, end = projected(direction), projected(tuple(c + d for c, d in zip(direction, side)))
    (face, on_own_axes), (end_face, _) = (on_face(*map(order, v)) for v in (start, end))
    (s, t, _), (s_end, t_end, m_end) = (map(number, on_own_axes(*v)) for v in (start, end))
    end_axis = on_own_axes(*((end_face >> 1 == axis).astype(jnp.float32) for axis in range(3)))
    over_s, over_t, same_axis = (component != 0 for component in end_axis)
    stays = face == end_face
    behind = same_axis & ~stays

    def step(end: jax.Array, start: jax.Array, over: jax.Array, further: jax.Array) -> jax.Array:
        sign = jnp.where(end < 0, np.float32(-1), np.float32(1))
        over_edge = guarded_sum(cut(1 - sign * start), cut(1 - m_end))
        straight = jnp.where(behind & further, sign * 4 - end, end) - start
        return jnp.where(over, sign * over_edge, straight) * 0.5

    further = jnp.abs(s_end) > jnp.abs(t_end)
    return (step(s_end, s, over_s, further), step(t_end, t, over_t, ~further)), ~stays
