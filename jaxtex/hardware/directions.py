"""Directions into a cube: what a texture unit computes exactly and a compiler may not."""

import jax
import jax.numpy as jnp
import numpy as np

from .blend import EXPONENT, bits_of, float_of

TINY = 64 << 23  # the exponent bits of 2^-63
LIFT = 100


def lifted(direction: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
    """A short direction, 2^100 times as long: some processors take subnormal numbers for zero, so bits are read."""
    direction = tuple(jnp.broadcast_arrays(*direction))
    exponents = [bits_of(c) & EXPONENT for c in direction]
    is_short = jnp.maximum(jnp.maximum(*exponents[:2]), exponents[2]) < TINY

    def component(c: jax.Array, exponent: jax.Array) -> jax.Array:
        mantissa = (bits_of(c) & 0x7FFFFF).astype(jnp.float32) * np.float32(2.0 ** (LIFT - 149))
        subnormal = float_of(bits_of(mantissa) | (bits_of(c) & np.int32(-(2**31))))
        return jnp.where(is_short, jnp.where(exponent == 0, subnormal, c * np.float32(2.0**LIFT)), c)

    return tuple(component(c, exponent) for c, exponent in zip(direction, exponents))


def divide(a: jax.Array, b: jax.Array) -> jax.Array:
    """The correctly rounded quotient of numbers of moderate size: a GPU's own may be one unit off."""
    q = a / b
    upper = lambda x: float_of(bits_of(x) & ~0xFFF)
    q_high, b_high = upper(q), upper(b)
    q_low, b_low = q - q_high, b - b_high
    rest = (((a - q_high * b_high) - q_high * b_low) - q_low * b_high) - q_low * b_low
    return q + rest / b
