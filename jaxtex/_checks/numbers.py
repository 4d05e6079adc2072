"""Numbers of callers: those that are known while tracing, integers of any width in dtypes that JAX has, and arrays.

Where 64-bit types are disabled, integers saturate before JAX narrows them to 32 bits.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeGuard, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .words import shown

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
# A float64 that is infinite in every smaller type.
LARGEST = 2**1023


def is_integer(value: Any, low: int | None = None, high: int | None = None) -> TypeGuard[int | np.integer[Any]]:
    """Whether a value is an integer of Python or NumPy, from `low` to `high`, if given. A boolean is no integer."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        return False
    return bool((low is None or value >= low) and (high is None or value <= high))


def check_is_known(name: str, argument: str, value: object) -> None:
    """Raises a TypeError for a value that JAX traces."""
    if isinstance(value, Tracer):
        raise TypeError(
            f"{name}: {argument} is a traced array, expected a value that is known during tracing; pass a Python "
            f"value, or make the argument static with jax.jit(..., static_argnames=...)."
        )


def as_integer(name: str, argument: str, value: Any, low: int, high: int | None = None) -> int:
    """An integer known while tracing, from `low` to `high`."""
    check_is_known(name, argument, value)
    if not is_integer(value, low, high):
        expected = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name}: {argument} is {shown(value)}, expected an integer {expected}.")
    return int(value)


def as_number(name: str, argument: str, value: Any, fits: Callable[[float], bool], expected: str) -> float:
    """A number known while tracing that `fits`."""
    check_is_known(name, argument, value)
    if not (is_integer(value) or isinstance(value, float | np.floating)) or not fits(cast(float, value)):
        raise ValueError(f"{name}: {argument} is {shown(value)}, expected {expected}.")
    return float(cast(float, value))


def known_integers(value: Any) -> Array | None:
    """Integers of Python and NumPy, alone, in arrays or in lists, as an array; `None` for everything else.

    Integers that 64 bits do not hold make an array of dtype object.
    """
    if isinstance(value, np.ndarray):
        array = cast(Array, value)
    elif is_integer(value):
        array = np.asarray(value)
    elif isinstance(value, list | tuple) and not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(value)):
        array = np.asarray(value, object)
    else:
        return None
    return array if is_integral(array) else None


def is_integral(array: Any) -> bool:
    """Whether an array holds integers: of an integer dtype, or Python's of any size."""
    if array.dtype == object:
        return array.size > 0 and all(map(is_integer, array.flat))
    return jnp.issubdtype(array.dtype, jnp.integer)


def saturated(integers: Any, dtype: Any) -> Any:
    """Integers of any width as `dtype`, saturated.

    An array of NumPy stays one.
    """
    xp: Any = np if isinstance(integers, np.ndarray) else jnp
    array, limits = xp.asarray(integers), jnp.iinfo(dtype)
    any_size = array.dtype == object
    if any_size or jnp.iinfo(array.dtype).max > limits.max:
        array = xp.asarray(xp.minimum(array, limits.max))
    if any_size or jnp.iinfo(array.dtype).min < limits.min:
        array = xp.asarray(xp.maximum(array, limits.min))
    return array.astype(dtype)


def narrowed(name: str, argument: str, integers: Array, dtype: Any) -> Array:
    """Known integers as `dtype`; a ValueError if one of them does not fit."""
    narrow = saturated(integers, dtype)
    lost = integers[narrow != integers]
    if lost.size:
        limits = jnp.iinfo(dtype)
        raise ValueError(
            f"{name}: {argument} holds {lost[0]}, expected integers from {limits.min} to {limits.max}, the range of "
            f"{np.dtype(dtype)}; clip them, or convert them with .astype."
        )
    return narrow


def in_dtype_of_jax(name: str, argument: str, value: Any) -> Any:
    """An array of NumPy in the dtype that JAX has for it, of 32 bits where 64 are disabled; integers by `narrowed`.

    Any other value comes back unchanged.
    """
    array = cast(Array, value)
    if not isinstance(value, np.ndarray) or not np.issubdtype(array.dtype, np.number):
        return cast(Any, value)
    dtype = jax.dtypes.canonicalize_dtype(array.dtype)
    if dtype == array.dtype:
        return array
    if np.issubdtype(array.dtype, np.integer):
        return narrowed(name, argument, array, dtype)
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def as_rounded(integers: Array, dtype: Any) -> Array:
    """Known integers as floats. Those that `dtype` does not hold become infinite."""
    if integers.dtype == object:
        floats = [float(min(max(n, -LARGEST), LARGEST)) for n in integers.flat]
        integers = np.reshape(floats, integers.shape)
    with np.errstate(over="ignore"):
        return integers.astype(dtype)


def at_full_width(name: str, argument: str, value: Any, *, exact: bool) -> Any:
    """A value; known integers that JAX would cut to 32 bits become floats, or, with `exact`, `narrowed`."""

    def convert(leaf: Any) -> Any:
        known = None if isinstance(leaf, int) and -(2**31) <= leaf < 2**31 else known_integers(leaf)
        if known is None or known.dtype.itemsize < 8:
            return leaf
        dtype = jax.dtypes.canonicalize_dtype(np.int64 if known.dtype == object else known.dtype)
        if known.dtype == dtype:
            return leaf
        return narrowed(name, argument, known, dtype) if exact else as_rounded(known, np.float32)

    return jax.tree.map(convert, value)


def as_index(index: Any) -> jax.Array:
    """Integers of any width as int32. An integer that does not fit saturates, and stays out of range."""
    return jnp.asarray(saturated(index, np.int32))


def is_array(value: object) -> TypeGuard[jax.Array | np.ndarray[Any, np.dtype[Any]]]:
    return isinstance(value, jax.Array | np.ndarray)


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value is a tuple or a list."""
    return isinstance(value, tuple | list)


def as_array(value: Any) -> Any:
    """`value` as it is if it is an array, else as one."""
    return value if is_array(value) else jnp.asarray(value)


def as_floating(numbers: Any) -> jax.Array:
    """`as_float`, but floats of 16 bits stay."""
    array = jnp.asarray(at_full_width("", "", numbers, exact=False))
    is_narrow = jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize == 2
    return array if is_narrow else as_float(array)


def as_float(coord: Any) -> jax.Array:
    array = jnp.asarray(at_full_width("", "", coord, exact=False))
    return array if array.dtype == jnp.float64 and not jax.typeof(array).weak_type else array.astype(jnp.float32)


def on_device(value: Any) -> jax.Array:
    """`jax.numpy.asarray`, which compiles a program for each new shape of NumPy; this sends such an array.

    `jax.device_put` may alias its argument, hence the copy. Under a mesh, `asarray` says where the array lies.
    """
    plain = type(value) is np.ndarray and value.dtype.kind in "biufc" and value.dtype.isnative
    if not plain or value.dtype != jax.dtypes.canonicalize_dtype(value.dtype):
        return jnp.asarray(value)
    return jax.device_put(value.copy()) if jax.sharding.get_abstract_mesh().empty else jnp.asarray(value)
