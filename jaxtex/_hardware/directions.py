"""Directions into a cube: steps that a texture unit computes exactly and a compiler may not."""

import jax
import jax.numpy as jnp
import numpy as np

from .._engine.coordinates import Arrays, limited
from .._engine.cube import on_face
from .._engine.float_bits import EXPONENT, SIGN, bits_of, float_of

TINY = 64 << 23  # the exponent bits of 2^-63
LIFT = 100


def lifted(direction: Arrays) -> Arrays:
    """A short direction, 2^100 times as long: some processors take subnormal numbers for zero, so bits are read."""
    direction = tuple(jnp.broadcast_arrays(*direction))
    exponents = [bits_of(c) & EXPONENT for c in direction]
    is_short = jnp.maximum(jnp.maximum(*exponents[:2]), exponents[2]) < TINY

    def component(c: jax.Array, exponent: jax.Array) -> jax.Array:
        mantissa = (bits_of(c) & 0x7FFFFF).astype(jnp.float32) * np.float32(2.0 ** (LIFT - 149))
        subnormal = float_of(bits_of(mantissa) | (bits_of(c) & SIGN))
        return jnp.where(is_short, jnp.where(exponent == 0, subnormal, c * np.float32(2.0**LIFT)), c)

    return tuple(component(c, exponent) for c, exponent in zip(direction, exponents))


def side_on_face(direction: Arrays, side: Arrays) -> tuple[Arrays, jax.Array]:
    """A side of a footprint as a step of (u, v) on the face that a direction meets, and whether it leaves that face.

    The step is a difference, not a derivative: from where the direction meets the cube to where direction plus side
    does, on faces that are unfolded into the plane of the first.
    """
    direction = tuple(jnp.where(c == c, c, 0) for c in jnp.broadcast_arrays(*direction))
    end = tuple(c + limited(d) for c, d in zip(direction, side))
    _, on_own_axes = on_face(*direction)
    (s, t, m), (s_end, t_end, m_end) = on_own_axes(*direction), on_own_axes(*end)
    right, down, out = jnp.abs(s_end), jnp.abs(t_end), jnp.abs(m_end)
    stays, behind = (out >= right) & (out >= down) & (m_end > 0), (out >= right) & (out >= down) & (m_end <= 0)
    beside = right > down
    length = jnp.where(stays | behind, out, jnp.where(beside, right, down))
    across = jnp.where(behind, 4 - jnp.where(beside, right, down) / length, 2 - m_end / length)
    unfold = lambda c, over: jnp.where(stays | ~over, c / length, jnp.copysign(across, c))
    step = (unfold(s_end, beside) - s / m, unfold(t_end, ~beside) - t / m)
    meets = (m > 0) & (length > 0)
    return tuple(jnp.where(meets, d * 0.5, 0) for d in step), meets & ~stays


def divide(a: jax.Array, b: jax.Array) -> jax.Array:
    """The correctly rounded quotient of numbers of moderate size: a GPU's own may be one unit off."""
    q = a / b
    upper = lambda x: float_of(bits_of(x) & ~0xFFF)
    q_high, b_high = upper(q), upper(b)
    q_low, b_low = q - q_high, b - b_high
    rest = (((a - q_high * b_high) - q_high * b_low) - q_low * b_high) - q_low * b_low
    return q + rest / b
