"""The same bytes as numbers of another type: reinterpretation, which converts nothing."""

import jax
import jax.numpy as jnp
import numpy as np


def reinterpreted(numbers: jax.Array, dtype: np.dtype) -> jax.Array:
    """The bytes along the last axis as numbers of `dtype`; of that dtype already, it is the array itself.

    The bytes of the last axis must be a multiple of the size of a number.
    """
    if numbers.dtype == dtype:
        return numbers
    ratio = dtype.itemsize // numbers.dtype.itemsize
    if ratio > 1:
        numbers = numbers.reshape(*numbers.shape[:-1], -1, ratio)
    bits = jax.lax.bitcast_convert_type(numbers, dtype)
    return bits if ratio else bits.reshape(*numbers.shape[:-1], -1)


def words(dtype: np.dtype) -> np.dtype:
    """The unsigned type of the size of a number, of four bytes at most: JAX has wider ones in 64-bit mode alone."""
    return jnp.dtype(f"uint{8 * min(dtype.itemsize, 4)}")
