"""The border color as a texture unit stores it: converted to the texture's format."""

import jax
import jax.numpy as jnp
import numpy as np

from .._engine.compute.decoding import SRGB_TO_LINEAR, is_color
from .._jax.float_bits import bits_of, float_of
from .._tables.storage_formats import Decoding


def stored_color(color: jax.Array | None, channels: int, stored: np.dtype, decoding: Decoding) -> jax.Array:
    """The border color, C values of the dtype of texels; without one, zeros."""
    if color is None:
        return jnp.zeros(channels, stored)
    color = jnp.broadcast_to(color, (channels,))
    if decoding is Decoding.ELEMENT and stored != np.float16:
        return color.astype(stored)
    color = color.astype(jnp.float32)
    if stored == np.float16:
        return float16_toward_zero(color)
    code = normalized_code(color, stored)
    return jnp.where(is_color(color), srgb_code(color), code) if decoding is Decoding.SRGB else code


def float16_toward_zero(x: jax.Array) -> jax.Array:
    """The float16 next to `x` toward zero; a number that is too large becomes the largest finite one."""
    x = jnp.clip(x, -65504, 65504)
    normal = float_of(bits_of(x) & ~0x1FFF)
    subnormal = jnp.trunc(x * 2.0**24) * 2.0**-24
    return jnp.where(jnp.abs(x) < 2.0**-14, subnormal, normal).astype(jnp.float16)


def normalized_code(x: jax.Array, stored: np.dtype) -> jax.Array:
    """The code of a value of an m-bit format: m + 4 bits of it, scaled by 2^m - 1 and rounded, halves down."""
    info = jnp.iinfo(stored)
    m = info.bits - (info.min < 0)
    x = jnp.clip(jnp.where(x == x, x, 0), -1 if info.min < 0 else 0, 1)
    v = jnp.abs(x * 2.0 ** (m + 4)).astype(jnp.int32)
    # (v (2^m - 1) + 2^(m + 3) - 1) >> (m + 4), which would take 37 bits.
    high, low = v >> 4, v & 15
    code = high + (((low << m) - v + (1 << (m + 3)) - 1) >> (m + 4))
    return jnp.where(x < 0, -code, code).astype(stored)


def srgb_code(x: jax.Array) -> jax.Array:
    """The sRGB code nearest to a linear value."""
    between = jnp.asarray((SRGB_TO_LINEAR[1:] + SRGB_TO_LINEAR[:-1]) / 2, jnp.float32)
    return jnp.sum(x[..., None] > between.reshape(*[1] * x.ndim, -1), axis=-1).astype(jnp.uint8)
