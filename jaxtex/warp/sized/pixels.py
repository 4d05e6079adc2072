"""Conversions between stored and blended pixels: fractions, linear light, premultiplied alpha."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._tables.storage_formats import codes_of, light_of


def to_fractions(texels: jax.Array) -> jax.Array:
    """Stored integers as float32 from 0 to 1; floats unchanged."""
    if jnp.issubdtype(texels.dtype, jnp.floating):
        return texels
    return texels.astype(jnp.float32) / jnp.iinfo(texels.dtype).max


def premultiply(texels: jax.Array) -> jax.Array:
    """Texels as fractions, colors times alpha, so that transparent texels add no color to their neighbors."""
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


def to_light(codes: jax.Array) -> jax.Array:
    """Linear light from codes; alpha, the last of 2 or 4 channels, stays."""
    return of_colors(codes, light_of(codes))


def to_codes(light: jax.Array) -> jax.Array:
    """Codes from linear light, clipped to [0, 1]; alpha stays."""
    return of_colors(light, codes_of(jnp.clip(light, 0, 1)))


def of_colors(before: jax.Array, after: jax.Array) -> jax.Array:
    """The colors of one array with the alpha of another."""
    if before.shape[-1] not in (2, 4):
        return after
    return jnp.concatenate([after[..., :-1], before[..., -1:]], axis=-1)
