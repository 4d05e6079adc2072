"""Codes of sRGB and the light that they stand for, both as fractions.

Source: IEC 61966-2-1.
"""

import jax
import jax.numpy as jnp

# Below these the curve is a line.
LAST_LINEAR_CODE, LAST_LINEAR_LIGHT = 0.04045, 0.0031308
SLOPE, OFFSET, EXPONENT = 12.92, 0.055, 2.4


def to_light(codes: jax.Array) -> jax.Array:
    """Light of codes; alpha, the last of 2 or 4 channels, stays."""
    curve = ((jnp.maximum(codes, LAST_LINEAR_CODE) + OFFSET) / (1 + OFFSET)) ** EXPONENT
    return of_colors(codes, jnp.where(codes <= LAST_LINEAR_CODE, codes / SLOPE, curve))


def to_codes(light: jax.Array) -> jax.Array:
    """Codes of light, of which what is below 0 or above 1 is clipped; alpha stays."""
    clipped = jnp.clip(light, 0, 1)
    curve = (1 + OFFSET) * jnp.maximum(clipped, LAST_LINEAR_LIGHT) ** (1 / EXPONENT) - OFFSET
    return of_colors(light, jnp.where(clipped <= LAST_LINEAR_LIGHT, clipped * SLOPE, curve))


def of_colors(before: jax.Array, after: jax.Array) -> jax.Array:
    """The colors of one array with the alpha of another."""
    if before.shape[-1] not in (2, 4):
        return after
    return jnp.concatenate([after[..., :-1], before[..., -1:]], axis=-1)
