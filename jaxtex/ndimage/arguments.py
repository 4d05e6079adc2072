"""The arguments that the functions share: numbers of any dtype that SciPy takes, and `Reading`, their static half."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike
from numpy.typing import NDArray

from .._checks.calls import in_native_order
from .._checks.numbers import as_integer, in_dtype_of_jax
from .._checks.texels import as_sizes, check_sizes
from .._checks.words import described, shown
from .._jax.versions import stack
from .._reads.complex_parts import from_parts, parts_of
from .._tables.filter_kernels import MAX_SPLINE_ORDER, FilterKernel, b_spline
from .._tables.storage_formats import complex_dtype, is_complex, sum_dtype
from .extensions import EXTENSIONS, Extension, check_mode

# Sizes, slowest axis first.
ShapeLike: TypeAlias = Sequence[int] | NDArray[np.integer]
# One number for all axes, or one for each, slowest first.
PerAxis: TypeAlias = ArrayLike | Sequence[ArrayLike]
# Numbers of Python and NumPy, whose dtype does not count for the dtype of a result.
NUMBERS = (int, float, complex, np.number, np.bool_)
# Magnitudes from here on are true in a bool: 1, less the rounding of float32 through a prefilter.
NEARLY = 1 - 2.0**-10


class Reading(NamedTuple):
    """The static half of a call.

    Attributes:
        order: of the spline.
        mode: a key of `EXTENSIONS`.
        prefilter: whether the array is filtered first, where the order needs it.
        dtype: of the result.
        sums: the dtype in which elements are weighted and summed.
    """

    order: int
    mode: str
    prefilter: bool
    dtype: np.dtype[Any]
    sums: np.dtype[Any]

    @property
    def extension(self) -> Extension:
        return EXTENSIONS[self.mode]

    @property
    def filters(self) -> bool:
        """Whether the array is filtered first."""
        return self.prefilter and self.order > 1

    @property
    def padding(self) -> int:
        return self.extension.padding if self.filters else 0

    @property
    def kernel(self) -> FilterKernel:
        """The filter, with element i at i, after the elements added in front."""
        kernel = b_spline(self.order)
        return kernel._replace(origin=kernel.origin - 0.5, first=kernel.first + self.padding)

    def moves_elements(self, stored: Any) -> bool:
        """Whether the result holds elements as they are stored, which are not floating."""
        return self.order == 0 and self.dtype == stored and not jnp.issubdtype(stored, jnp.inexact)


def check_order(name: str, order: Any, least: int = 0) -> int:
    return as_integer(name, "order", order, least, MAX_SPLINE_ORDER)


def check_input(name: str, value: Any, least: int = 1, *, may_be_symbolic: bool = False) -> Any:
    """An array of numbers of at least so many axes, none of them empty."""
    array = as_numbers(name, "input", value)
    if array.ndim < least or 0 in array.shape:
        axes = "axis" if least == 1 else "axes"
        raise ValueError(
            f"{name}: input has shape {array.shape}, expected at least {least} {axes}, with elements on each."
        )
    if not may_be_symbolic:
        check_sizes(f"{name}: input has shape {array.shape}", array.shape)
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
    """The dtypes of the floating arrays among values. Plain numbers count as none."""
    arrays: list[Any] = [a for a in jax.tree.leaves(values) if isinstance(a, jax.Array | np.ndarray)]
    strong = [a.dtype for a in arrays if not (isinstance(a, jax.Array) and jax.typeof(a).weak_type)]
    return [canonical(dtype) for dtype in strong if jnp.issubdtype(dtype, jnp.floating)]


def as_floats(name: str, argument: str, value: Any, dtype: np.dtype[Any]) -> jax.Array:
    """Real numbers, or nested sequences of them, as an array of `dtype`, to which each number is rounded once."""
    if is_sequence(value) and any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(value)):
        return stack([as_floats(name, argument, part, dtype) for part in value])
    try:
        array: Any = value if isinstance(value, jax.Array) else np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if not any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_)):
        raise TypeError(f"{name}: {argument} holds {array.dtype}, expected real numbers.")
    return placed(array.astype(dtype))


def placed(array: Any) -> jax.Array:
    """An array of JAX from a new one of NumPy, by an explicit transfer, which `jax.transfer_guard` allows."""
    return jax.device_put(array) if isinstance(array, np.ndarray) else array


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
    return placed(value.astype(complex_dtype(reading.sums) if is_complex(value.dtype) else reading.sums))


def check_shape(name: str, output_shape: Any, default: Sequence[int]) -> tuple[int, ...]:
    """The shape of a result, of one axis at least."""
    shape = tuple(default) if output_shape is None else as_sizes(name, "output_shape", output_shape, "HW")
    if not shape or min(shape) < 0:
        raise ValueError(f"{name}: output_shape is {shape}, expected sizes of one axis or more.")
    return shape


def check_known(name: str, argument: str, value: Any, reason: str) -> Any:
    """A value that is known while tracing."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value)):
        raise TypeError(f"{name}: {argument} is {described(value)} that JAX traces, {reason}.")
    return value


# Dtypes


def as_numbers(name: str, argument: str, value: Any) -> Any:
    """An array of numbers or bool, in a dtype that JAX has; a TypeError for anything else."""
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


def canonical(dtype: Any) -> np.dtype[Any]:
    """A dtype as JAX has it, of 32 bits where 64 are disabled."""
    return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


def result_dtype(name: str, output: Any, stored: Any) -> np.dtype[Any]:
    """The dtype of a result: `output`, or the dtype of the input. A complex input gives a complex dtype.

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


def parts_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype in which numbers of `dtype` are weighted and summed; integers in the default one of JAX."""
    return sum_dtype(dtype if jnp.issubdtype(dtype, jnp.inexact) else canonical(float))


def sums_of(stored: Any, result: Any, *parameters: Any) -> np.dtype[Any]:
    """The dtype of the sums of a read, from the dtypes of the input, the result and the floating arrays of the call."""
    results = [parts_dtype(result)] if jnp.issubdtype(result, jnp.inexact) else []
    return sum_dtype(parts_dtype(stored), *results, *parameters)


def as_channels(array: jax.Array) -> jax.Array:
    """Numbers with a last axis of channels: one, or the real and the imaginary part."""
    return parts_of(array[..., None]) if is_complex(array.dtype) else array[..., None]


def as_result(values: jax.Array, dtype: np.dtype[Any]) -> jax.Array:
    """Channels as numbers of `dtype`.

    Integers are rounded, halves away from zero, and saturate; NaN becomes 0. Of bool, a number is true from a magnitude
    of 1 on, less the rounding of sums.
    """
    if values.shape[-1] == 2:
        return from_parts(values)[..., 0].astype(dtype)
    value = values[..., 0]
    if value.dtype == dtype:
        return value
    if dtype == jnp.bool_:
        return abs(value) >= NEARLY
    if jnp.issubdtype(dtype, jnp.integer) and jnp.issubdtype(value.dtype, jnp.floating):
        limits = jnp.iinfo(dtype)
        value = jnp.clip(jax.lax.round(value), float(limits.min), float(limits.max))
    return value.astype(dtype)
