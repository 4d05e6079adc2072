"""The bits of float32 as integers."""

import jax
import jax.numpy as jnp
import numpy as np

SMALLEST_NORMAL = np.float32(2.0**-126)
EXPONENT = np.int32(0x7F800000)
SIGN = np.int32(-(2**31))
# Floats from 2^23 to 2^24 are integers. The lowest 16 bits of `WHOLE` are the number `OFFSET`.
OFFSET = np.int32(2**7)
WHOLE = np.float32(1.5 * 2**23 + OFFSET)


def bits_of(x: jax.Array) -> jax.Array:
    return jax.lax.bitcast_convert_type(x, jnp.int32)


def float_of(bits: jax.Array) -> jax.Array:
    return jax.lax.bitcast_convert_type(bits, jnp.float32)


def rounded_to(values: jax.Array, dtype: np.dtype) -> jax.Array:
    """Floats as integers of `dtype`, rounded half to even and clipped to its range; NaN is 0.

    Small integers of float32 are rounded by an addition to `WHOLE`: less `OFFSET`, they are the lowest bits of the sum.
    XLA's conversion takes three times as many instructions on a CPU, as it saturates once more. The offset may not be
    zero: ptxas 12.9 converts the number where a program for a GPU stores the lowest bits of a float32.
    """
    info = jnp.iinfo(dtype)
    low, high = map(values.dtype.type, (info.min, info.max))
    if values.dtype != jnp.float32 or info.bits > 16:
        return jnp.clip(jnp.round(values), low, high).astype(dtype)
    values = values if info.min == 0 else jnp.where(values == values, values, 0)
    # Selects, in which NaN becomes `low`: a maximum would keep it.
    values = jnp.where(values > low, values, low)
    return (bits_of(jnp.where(values < high, values, high) + WHOLE) - OFFSET).astype(dtype)
