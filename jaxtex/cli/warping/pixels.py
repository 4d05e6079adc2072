"""Conversions between stored pixels and the fractions that are blended, with colors weighted by alpha."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def to_fractions(texels: jax.Array) -> jax.Array:
    """Stored integers as float32 from 0 to 1; what is floating already, as it is."""
    if jnp.issubdtype(texels.dtype, jnp.floating):
        return texels
    return texels.astype(jnp.float32) / jnp.iinfo(texels.dtype).max


def premultiply(texels: jax.Array) -> jax.Array:
    """Texels as fractions with colors times alpha, so that a transparent texel adds no color to its neighbors."""
    values = to_fractions(texels)
    return jnp.concatenate([values[..., :-1] * values[..., -1:], values[..., -1:]], axis=-1)


def unpremultiply(filtered: jax.Array, nearest: jax.Array) -> jax.Array:
    """Stored pixels from premultiplied fractions.

    Args:
        filtered: premultiplied fractions, (..., channels), alpha last.
        nearest: the nearest stored texels. A transparent pixel takes their color, so that an identity changes nothing.
    """
    alpha = quantize(filtered[..., -1:], nearest.dtype)
    visible = alpha > 0
    color = quantize(filtered[..., :-1] / jnp.where(visible, filtered[..., -1:], 1), nearest.dtype)
    return jnp.concatenate([jnp.where(visible, color, nearest[..., :-1]), alpha], axis=-1)


def quantize(values: jax.Array, dtype: np.dtype[Any]) -> jax.Array:
    """Fractions as the nearest integers of `dtype`, half to even, clipped since a cubic filter overshoots."""
    return jnp.round(jnp.clip(values, 0, 1) * jnp.iinfo(dtype).max).astype(dtype)
