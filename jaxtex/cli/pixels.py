"""Stored pixels and the numbers that are blended: fractions, whose colours are weighted by alpha."""

import jax
import jax.numpy as jnp


def as_fractions(texels: jax.Array) -> jax.Array:
    """Stored integers as numbers from 0 to 1."""
    return texels.astype(jnp.float32) / jnp.iinfo(texels.dtype).max


def premultiplied(texels: jax.Array) -> jax.Array:
    """Texels as fractions, colours times alpha: so a clear texel adds no colour to its neighbours."""
    values = as_fractions(texels)
    return jnp.concatenate([values[..., :-1] * values[..., -1:], values[..., -1:]], axis=-1)


def straight(filtered: jax.Array, nearest: jax.Array) -> jax.Array:
    """Stored pixels from premultiplied fractions.

    Where the result is clear, so that any colour would do, it takes that of the nearest texel: an identity stays one.
    """
    alpha = stored(filtered[..., -1:], nearest.dtype)
    seen = alpha > 0
    colour = stored(filtered[..., :-1] / jnp.where(seen, filtered[..., -1:], 1), nearest.dtype)
    return jnp.concatenate([jnp.where(seen, colour, nearest[..., :-1]), alpha], axis=-1)


def stored(values: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """Fractions as the nearest integers of `dtype`, half to even; a cubic overshoots, so they are clipped."""
    return jnp.round(jnp.clip(values, 0, 1) * jnp.iinfo(dtype).max).astype(dtype)
