"""Reinterpretation: the same bytes as numbers of another dtype."""

# pyright: strict

import jax
import jax.numpy as jnp
import numpy as np


def bit_cast(numbers: jax.Array, dtype: np.dtype) -> jax.Array:
    """The bytes along the last axis as numbers of `dtype`. Their count must be a multiple of the size of a number."""
    if numbers.dtype == dtype:
        return numbers
    ratio = dtype.itemsize // numbers.dtype.itemsize
    if ratio > 1:
        numbers = numbers.reshape(*numbers.shape[:-1], -1, ratio)
    bits = jax.lax.bitcast_convert_type(numbers, dtype)
    return bits if ratio else bits.reshape(*numbers.shape[:-1], -1)


def word_dtype(dtype: np.dtype) -> np.dtype:
    """The unsigned integer dtype of the same size, or of four bytes if it is larger: JAX may lack 64-bit dtypes."""
    return jnp.dtype(f"uint{8 * min(dtype.itemsize, 4)}")
