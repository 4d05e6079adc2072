"""The bits of float32 as integers."""

import jax
import jax.numpy as jnp
import numpy as np

SMALLEST_NORMAL = np.float32(2.0**-126)
EXPONENT = np.int32(0x7F800000)
SIGN = np.int32(-(2**31))


def bits_of(x: jax.Array) -> jax.Array:
    return jax.lax.bitcast_convert_type(x, jnp.int32)


def float_of(bits: jax.Array) -> jax.Array:
    return jax.lax.bitcast_convert_type(bits, jnp.float32)
