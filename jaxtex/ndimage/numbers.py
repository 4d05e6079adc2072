"""Conversions between numbers of any dtype that SciPy takes and the real texels that the engine reads."""

# pyright: strict, reportUnknownMemberType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._checks.arguments import described
from .._checks.integers import in_dtype_of_jax, in_native_order
from .._checks.words import shown
from .._tables.storage_formats import sum_dtype

# A number, of a distance below 1 from which a bool counts as 1: the rounding of float32 through a prefilter.
NEARLY = 1 - 2.0**-10


def as_numbers(name: str, argument: str, value: Any) -> Any:
    """An array of numbers or bool, in a dtype that JAX has.

    Raises:
        TypeError: if it holds anything else.
    """
    of_jax = any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(value))
    try:
        array: Any = jnp.asarray(value) if of_jax else np.asarray(value)
    except (TypeError, ValueError):
        array = None
    kinds = (jnp.number, jnp.bool_)
    if array is None or array.dtype == object or not any(jnp.issubdtype(array.dtype, kind) for kind in kinds):
        held = getattr(value, "dtype", None)
        what = described(value) if held is None else f"an array of dtype {held}"
        raise TypeError(f"{name}: {argument} is {what}, expected an array of numbers or bool.")
    if not of_jax:
        array = in_dtype_of_jax(name, argument, in_native_order(array))
    dtype = canonical(array.dtype)
    return array if array.dtype == dtype else array.astype(dtype)


def is_complex(dtype: Any) -> bool:
    return jnp.issubdtype(dtype, jnp.complexfloating)


def canonical(dtype: Any) -> np.dtype[Any]:
    """A dtype as JAX has it, of 32 bits where 64 are disabled."""
    return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


def result_dtype(name: str, output: Any, stored: Any) -> np.dtype[Any]:
    """The dtype of a result: `output`, or that of the input. Of complex numbers it is complex.

    Raises:
        TypeError: if `output` is an array, or no dtype of numbers.
    """
    if isinstance(output, np.ndarray | jax.Array):
        raise TypeError(
            f"{name}: output is {described(output)}, and arrays of JAX cannot be written to; pass a dtype such as "
            f"output.dtype, and use what {name} returns."
        )
    try:
        dtype = np.dtype(stored if output is None else output)
        dtype = canonical(dtype.newbyteorder("=") if dtype.kind in "iufcb" else dtype)
        if not (jnp.issubdtype(dtype, jnp.number) or dtype == np.bool_):
            raise TypeError
    except TypeError:
        raise TypeError(f"{name}: output is {shown(output)}, expected a dtype such as 'float32'.") from None
    return complex_dtype(dtype) if is_complex(stored) and not is_complex(dtype) else dtype


def real_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype in which numbers of `dtype` are weighted and summed; integers in the default one of JAX."""
    if is_complex(dtype):
        return np.dtype(np.float64 if np.dtype(dtype).itemsize == 16 else np.float32)
    return sum_dtype(dtype if jnp.issubdtype(dtype, jnp.floating) else canonical(float))


def complex_dtype(real: Any) -> np.dtype[Any]:
    """The dtype of complex numbers with parts of a dtype."""
    return np.dtype(np.complex128 if real == np.float64 else np.complex64)


def sums_of(stored: Any, result: Any, *parameters: Any) -> np.dtype[Any]:
    """The dtype of the sums of a read, from those of the input, the result and the floating arrays of the call."""
    results = [real_dtype(result)] if jnp.issubdtype(result, jnp.inexact) else []
    return sum_dtype(real_dtype(stored), *results, *parameters)


def as_channels(array: jax.Array) -> jax.Array:
    """Numbers with a last axis of channels: one, or the real and the imaginary part."""
    return jnp.stack([array.real, array.imag], -1) if is_complex(array.dtype) else array[..., None]


def as_result(values: jax.Array, dtype: np.dtype[Any]) -> jax.Array:
    """Channels as numbers of `dtype`.

    Integers are rounded, halves away from zero, and saturate; NaN becomes 0. Of bool, a number is true from a magnitude
    of 1 on, less the rounding of sums.
    """
    if values.shape[-1] == 2:
        return jax.lax.complex(values[..., 0], values[..., 1]).astype(dtype)
    value = values[..., 0]
    if value.dtype == dtype:
        return value
    if dtype == jnp.bool_:
        return abs(value) >= NEARLY
    if jnp.issubdtype(dtype, jnp.integer) and jnp.issubdtype(value.dtype, jnp.floating):
        limits = jnp.iinfo(dtype)
        value = jnp.clip(jax.lax.round(value), float(limits.min), float(limits.max))
    return value.astype(dtype)
