"""From stored texels to the numbers that are filtered."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..modes import ReadMode
from .indexing import gather


def sum_dtype(*dtypes: Any) -> np.dtype:
    """In what to sum: float64 if any of these is, else float32."""
    return np.dtype(jnp.float64 if np.dtype(jnp.float64) in map(np.dtype, dtypes) else jnp.float32)


def read_dtype(stored: np.dtype, read_mode: ReadMode) -> np.dtype:
    """The dtype of a read of texels stored as `stored`, before the caller asks for another one.

    Raises:
        ValueError: if `read_mode` does not apply to texels of that dtype.
    """
    if read_mode is ReadMode.ELEMENT:
        return stored
    if read_mode is ReadMode.SRGB_FLOAT and stored != np.uint8:
        raise ValueError(
            f"Sampler: srgb=True decodes uint8 texels, and these are {stored.name}; leave srgb out, or store codes."
        )
    if not jnp.issubdtype(stored, jnp.integer) or stored.itemsize > 2:
        raise ValueError(
            f"Sampler: read_mode='normalized_float' applies to 8- and 16-bit integer texels, and these are "
            f"{stored.name}; use read_mode='element'."
        )
    return np.dtype(jnp.float32)


def decode(texel: jax.Array, read_mode: ReadMode, dtype: np.dtype) -> jax.Array:
    """Stored texels, S + (C,), as numbers of `dtype`, the one in which they are filtered."""
    if read_mode is ReadMode.ELEMENT:
        return texel.astype(dtype)
    bits = jnp.iinfo(texel.dtype).bits
    if not jnp.issubdtype(texel.dtype, jnp.unsignedinteger):
        return jnp.maximum(ratio(texel, bits - 1, dtype), -1)
    if read_mode is ReadMode.NORMALIZED_FLOAT:
        return ratio(texel, bits, dtype)
    linear = gather(jnp.asarray(SRGB_TO_LINEAR[:, None], dtype), (texel.astype(jnp.int32),))[..., 0]
    return jnp.where(is_color(texel), linear, ratio(texel, bits, dtype))


def is_color(texel: jax.Array) -> np.ndarray:
    """Which channels of S + (C,) sRGB encodes: the first three, of one or two the first; alpha never."""
    channel = np.arange(texel.shape[-1]).reshape(*[1] * (texel.ndim - 1), -1)
    return channel < (3 if channel.size >= 3 else 1)


def _srgb_to_linear(code: np.ndarray) -> np.ndarray:
    """The decoding of IEC 61966-2-1."""
    c = code / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


SRGB_TO_LINEAR = _srgb_to_linear(np.arange(256))


def ratio(code: jax.Array, bits: int, dtype: np.dtype) -> jax.Array:
    """``code / (2^bits - 1)``, correctly rounded.

    A division by a constant is compiled to a multiplication by its reciprocal, which is wrong in the last bit.
    With h = code / 2^bits, which is exact, the quotient is h + h / (2^bits - 1).
    """
    scaled = code.astype(dtype) * 2.0**-bits
    return scaled + scaled * (1.0 / (2**bits - 1))


def wide_dtype(stored: np.dtype, channels: int) -> np.dtype:
    """The unsigned integers, of 32 bits at most, in which whole texels of small integers stand; or `stored`."""
    if not jnp.issubdtype(stored, jnp.integer):
        return stored
    size = stored.itemsize * channels
    return next((np.dtype(f"uint{8 * n}") for n in (4, 2) if size % n == 0 and n > stored.itemsize), stored)


def in_wide_texels(function: Callable[..., jax.Array], texels: jax.Array, *values: jax.Array) -> jax.Array:
    """``function(texels, *values)``, which only moves texels, with small integers packed into wide ones meanwhile."""
    stored, wide = np.dtype(texels.dtype), wide_dtype(np.dtype(texels.dtype), texels.shape[-1])
    if wide == stored:
        return function(texels, *values)
    moved = function(*(packed(a, wide) for a in (texels, *values)))
    return jax.lax.bitcast_convert_type(moved, stored).reshape(*moved.shape[:-1], -1)


def packed(texels: jax.Array, wide: np.dtype) -> jax.Array:
    """Integer texels, S + (C,), in wider integers with the same bits."""
    groups = texels.reshape(*texels.shape[:-1], -1, wide.itemsize // texels.dtype.itemsize)
    return jax.lax.bitcast_convert_type(groups, wide)
