"""Checks of the arguments that the functions share."""

# pyright: strict, reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike
from numpy.typing import NDArray

from .._checks.arguments import as_integer, as_sizes, described
from .._tables.filter_kernels import MAX_SPLINE_ORDER
from .extensions import check_mode
from .numbers import as_numbers, canonical, complex_dtype, is_complex, result_dtype, sums_of
from .reads import Reading

# Sizes, slowest axis first.
ShapeLike: TypeAlias = Sequence[int] | NDArray[np.integer]
# One number for all axes, or one for each, slowest first.
PerAxis: TypeAlias = ArrayLike | Sequence[ArrayLike]
# Numbers of Python and NumPy, whose dtype does not decide about that of a result.
NUMBERS = (int, float, complex, np.number, np.bool_)


def check_order(name: str, order: Any, least: int = 0) -> int:
    return as_integer(name, "order", order, least, MAX_SPLINE_ORDER)


def check_input(name: str, value: Any, least: int = 1) -> Any:
    """An array of numbers of at least so many axes, none of them empty."""
    array = as_numbers(name, "input", value)
    if array.ndim < least or 0 in array.shape:
        axes = "axis" if least == 1 else "axes"
        raise ValueError(
            f"{name}: input has shape {array.shape}, expected at least {least} {axes}, with elements on each."
        )
    return array


def reading_of(
    name: str, array: Any, output: Any, order: Any, mode: Any, prefilter: Any, parameters: Any = ()
) -> Reading:
    """The static half of a call.

    Args:
        parameters: the numbers and arrays of the call that decide where the array is read.
    """
    dtype = result_dtype(name, output, array.dtype)
    order = check_order(name, order)
    sums = sums_of(array.dtype, dtype, *floating_dtypes(parameters))
    return Reading(order, check_mode(name, mode), prefilter, dtype, sums)


def floating_dtypes(values: Any) -> list[np.dtype[Any]]:
    """The dtypes of the floating arrays among some values, without those of plain numbers."""
    arrays: list[Any] = [a for a in jax.tree.leaves(values) if isinstance(a, jax.Array | np.ndarray)]
    strong = [a.dtype for a in arrays if not (isinstance(a, jax.Array) and jax.typeof(a).weak_type)]
    return [canonical(dtype) for dtype in strong if jnp.issubdtype(dtype, jnp.floating)]


def as_floats(name: str, argument: str, value: Any, dtype: np.dtype[Any]) -> jax.Array:
    """Real numbers, or nested sequences of them, as an array of `dtype`, to which each number is rounded once."""
    if is_sequence(value) and any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(value)):
        return jnp.stack([as_floats(name, argument, part, dtype) for part in value])
    try:
        array: Any = value if isinstance(value, jax.Array) else np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if not any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_)):
        raise TypeError(f"{name}: {argument} holds {array.dtype}, expected real numbers.")
    return jnp.asarray(array.astype(dtype))


def known_floats(name: str, argument: str, value: Any) -> NDArray[np.float64]:
    """Real numbers that are known while tracing."""
    try:
        array = None if value is None else np.asarray(value, np.float64)
    except (TypeError, ValueError):
        array = None
    if array is None:
        raise TypeError(f"{name}: {argument} is {described(value)}, expected real numbers.")
    return array


def is_sequence(value: Any) -> bool:
    return isinstance(value, list | tuple)


def per_axis(name: str, argument: str, value: Any, count: int, dtype: np.dtype[Any]) -> jax.Array:
    """One number for each of `count` axes, from as many or from one for all."""
    array = as_floats(name, argument, value, dtype)
    if array.shape not in ((), (count,)):
        raise ValueError(
            f"{name}: {argument} has shape {array.shape}, expected a number for all axes of input, or {count} numbers."
        )
    return jnp.broadcast_to(array, (count,))


def as_cval(name: str, cval: Any, array: Any, reading: Reading) -> jax.Array | None:
    """The value outside; `None` where it is known to be zero, or where nothing lies outside.

    Raises:
        TypeError: if it is complex, and the array is not.
    """
    value = as_numbers(name, "cval", cval)
    if value.shape:
        raise ValueError(f"{name}: cval has shape {value.shape}, expected a number.")
    if is_complex(value.dtype) and not is_complex(array.dtype):
        raise TypeError(f"{name}: cval is complex, and input is {array.dtype}; pass a real cval, or a complex input.")
    extension = reading.extension
    if not (extension.stops or extension.taps.has_outside):
        return None
    if isinstance(cval, NUMBERS) and cval == 0:
        return None
    return jnp.asarray(value.astype(complex_dtype(reading.sums) if is_complex(value.dtype) else reading.sums))


def check_shape(name: str, output_shape: Any, default: Sequence[int]) -> tuple[int, ...]:
    """The shape of a result, of one axis at least."""
    shape = tuple(default) if output_shape is None else as_sizes(name, "output_shape", output_shape)
    if not shape or min(shape) < 0:
        raise ValueError(f"{name}: output_shape is {shape}, expected sizes of one axis or more.")
    return shape


def check_known(name: str, argument: str, value: Any, reason: str) -> Any:
    """A value that is known while tracing."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value)):
        raise TypeError(f"{name}: {argument} is {described(value)} that JAX traces, {reason}.")
    return value
