"""Reinterpretation of bytes as numbers of another dtype."""

# pyright: strict

import functools
from typing import Any, NoReturn, cast

import jax
import jax.numpy as jnp
import numpy as np


def bit_cast(numbers: jax.Array, dtype: np.dtype) -> jax.Array:
    """The bytes along the last axis as numbers of `dtype`. Their count must be a multiple of the size of a number."""
    if numbers.dtype == dtype:
        return numbers
    size, wanted = numbers.dtype.itemsize, dtype.itemsize
    *shape, count = numbers.shape
    if wanted > size:
        numbers = numbers.reshape(*shape, count * size // wanted, wanted // size)
    bits = jax.lax.bitcast_convert_type(numbers, dtype)
    return bits.reshape(*shape, count * size // wanted)


def bytes_as(function: str, numbers: jax.Array, dtype: np.dtype) -> jax.Array:
    """`bit_cast` of memory that a function copies. To differentiate it is an error, as bytes have no gradient."""
    dtype = np.dtype(dtype)
    if numbers.dtype == dtype or not jnp.issubdtype(numbers.dtype, jnp.floating):
        return bit_cast(numbers, dtype)
    return cast(jax.Array, _bytes_as(function, numbers, dtype))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 2))
def _bytes_as(function: str, numbers: jax.Array, dtype: np.dtype) -> jax.Array:
    return bit_cast(numbers, dtype)


@_bytes_as.defjvp
def _refuse_gradient(function: str, dtype: np.dtype, primals: tuple[jax.Array], tangents: tuple[Any]) -> NoReturn:  # pyright: ignore[reportUnusedFunction]
    came = primals[0].dtype
    raise TypeError(
        f"{function}: a gradient passes through a copy of {came} numbers as bytes to memory of another dtype, or to a "
        f"part of a number, and bytes have none; copy whole numbers between memory of {came}, such as "
        f"jnp.zeros((height, pitch // {came.itemsize}), jnp.{came}) in place of mallocPitch, or wrap the numbers in "
        f"jax.lax.stop_gradient."
    )


def word_dtype(dtype: np.dtype) -> np.dtype:
    """The unsigned integer dtype of the same size, or of four bytes if it is larger: JAX may lack 64-bit dtypes."""
    return jnp.dtype(f"uint{8 * min(dtype.itemsize, 4)}")
