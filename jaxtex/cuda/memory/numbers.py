"""Numbers and bytes of callers: the numbers that a format takes, and bytes as numbers of another dtype.

Numbers of a dtype other than the format's are refused, because a copy converts nothing. There are two exceptions:

- Python numbers, alone or in lists, have no dtype. They are rounded to a floating format, and one that does not fit is
  an error. Traced ones, which JAX calls weakly typed, saturate.
- Arrays of 64-bit numbers, which NumPy makes by default, may stand for those of 32 bits, whatever their values: floats
  are rounded, integers saturate.

Memory that is read as bytes may have any dtype. It is never converted, even where JAX lacks 64-bit dtypes.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import functools
import math
import operator
from typing import Any, NoReturn, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._checks.numbers import as_array, as_rounded, known_integers, on_device, saturated
from ..._jax.versions import is_x64
from ..enums import Error
from ..errors import CudaError, invalid

# JAX holds these whether or not 64-bit dtypes are enabled.
PLAIN_SIZES = (1, 2, 4)
# The bytes of an array that is sent about as fast as a compiled program fills it.
SMALL = 2**16


def as_numbers(function: str, argument: str, value: Any, dtype: np.dtype) -> Any:
    """`value` as an array, of `dtype` where the rules of this module let its numbers stand for those of `dtype`."""
    dtype = np.dtype(dtype)
    if is_literal(value):
        return of_literal(function, argument, value, dtype)
    array = np.asarray(value) if isinstance(value, np.generic) else as_array(value)
    if isinstance(array, jax.Array) and jax.typeof(array).weak_type:
        return of_traced_literal(array, dtype)
    if array.dtype.itemsize != 8 or dtype.itemsize != 4 or array.dtype.kind != dtype.kind:
        return array
    if dtype.kind != "f":
        return saturated(array, dtype)
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def is_literal(value: Any) -> bool:
    """Whether a value is a number of Python, or a list of them."""
    leaves = jax.tree.leaves(value) if isinstance(value, list | tuple) else [value]
    return bool(leaves) and all(isinstance(n, int | float) and not isinstance(n, bool) for n in leaves)


def of_literal(function: str, argument: str, value: Any, dtype: np.dtype) -> Any:
    """Numbers of Python as an array of `dtype`. Floats do not become integers."""
    integers = known_integers(value)
    known = np.asarray(value, np.float64) if integers is None else integers
    if dtype.kind == "f" or jnp.issubdtype(dtype, jnp.floating):
        with np.errstate(over="ignore"):
            floats = known.astype(dtype) if integers is None else as_rounded(integers, dtype)
        lost = known[np.isinf(floats) & (abs(known) != np.inf)]
        result = floats
    elif integers is None:
        return as_array(value)
    else:
        result = saturated(integers, dtype)
        lost = integers[result != integers]
    if lost.size:
        raise misfit(function, argument, lost[0], dtype, "clip it")
    return result


def of_traced_literal(array: jax.Array, dtype: np.dtype) -> jax.Array:
    """A number of Python that is traced, as an array of `dtype`. Floats do not become integers."""
    if jnp.issubdtype(dtype, jnp.floating):
        return array.astype(dtype)
    is_integer = jnp.issubdtype(array.dtype, jnp.integer) and jnp.issubdtype(dtype, jnp.integer)
    return saturated(array, dtype) if is_integer else array


def misfit(function: str, argument: str, number: object, dtype: np.dtype, remedy: str) -> CudaError:
    """The error for a number that a dtype does not hold (1)."""
    return CudaError(
        Error.InvalidValue, f"{function}: {argument} holds {number}, expected numbers that {dtype} holds; {remedy}."
    )


def as_memory(value: Any) -> jax.Array:
    """Memory of any dtype as an array of JAX with the same bytes. NumPy's of 64 bits may become a flat one of words."""
    if not isinstance(value, np.ndarray) or holds(value.dtype):
        return on_device(value)
    bytes_ = np.ascontiguousarray(cast("np.ndarray[Any, Any]", value)).reshape(-1)
    return on_device(bytes_.view(np.uint8 if value.dtype.itemsize % 4 else np.uint32))


def filled(shape: tuple[int, ...], dtype: Any, number: int = 0) -> jax.Array:
    """`jax.numpy.full`. A small array is sent, as to compile a program for its shape takes longer."""
    small = math.prod(shape) * np.dtype(dtype).itemsize <= SMALL
    return on_device(np.full(shape, number, dtype)) if small else jnp.full(shape, number, dtype)


def as_destination(function: str, argument: str, value: Any) -> jax.Array:
    """Memory that a copy changes and returns, which JAX must hold unconverted."""
    if isinstance(value, np.ndarray) and not holds(value.dtype):
        raise invalid(
            f"{function}: {argument} is an array of {value.dtype}, and the result would be one too, which JAX does not "
            f"hold; pass {argument}.view(numpy.uint32), or enable 64-bit numbers with jax_enable_x64."
        )
    return on_device(value)


def holds(dtype: np.dtype) -> bool:
    """Whether a JAX array has the dtype, and the bytes of it."""
    return dtype.kind in "iufV" and dtype.names is None and (dtype.itemsize in PLAIN_SIZES or is_wide(dtype))


def is_wide(dtype: np.dtype) -> bool:
    return is_x64() and dtype.kind in "iuf" and dtype.itemsize == 8


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


def whole_numbers(function: str, **arguments: int) -> tuple[int, ...]:
    """Arguments that are integers of Python or of NumPy, as integers of Python."""
    numbers: list[int] = []
    for name, value in arguments.items():
        try:
            numbers.append(operator.index(value))
        except TypeError:
            raise TypeError(f"{function}: {name} is {value!r}, expected an int.") from None
    return tuple(numbers)


def counts(function: str, **arguments: int) -> tuple[int, ...]:
    """As `whole_numbers`, for numbers of bytes, rows or slices, which may not be negative (1)."""
    numbers = whole_numbers(function, **arguments)
    for name, number in zip(arguments, numbers):
        if number < 0:
            raise invalid(f"{function}: {name} is {number}, expected at least 0.")
    return numbers
