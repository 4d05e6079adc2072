"""Public functions that run as one compiled call."""

# pyright: strict, reportUnknownMemberType=false

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, cast

import jax
import numpy as np

from .._checks.integers import as_rounded, in_dtype_of_jax
from .._checks.remedies import check_is_known, check_is_one_array, check_operand, public
from .._jax.typed_jit import typed_jit
from .options import check_sampler_type

# Those of the options that all warps share which are static.
STATIC_OPTIONS = ("sampler", "filter", "address", "antialias", "dtype")
# Arguments of which each is one array.
SINGLE = ("image", "images", "faces", "labels", "border_label")
# Arguments whose integers are texels or indices, and not coordinates or parameters.
IMAGES = (
    *SINGLE,
    *("features", "value", "x", "pyramid", "planes", "batch_indices"),
)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def compiled(*static_names: str) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """A decorator that compiles each call of a function outside `jax.jit` as one program.

    Args:
        static_names: the static arguments. They may also be lists, NumPy numbers and concrete arrays, which become
            hashable Python values.
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        name, signature = function.__name__, inspect.signature(function)

        def prepared(argument: str, value: Any) -> Any:
            if argument in ("sampler", "flow_sampler"):
                named = signature.parameters if argument == "sampler" else ()
                check_sampler_type(name, value, named, argument)
            elif argument not in static_names and value is not signature.parameters[argument].default:
                check_operand(name, argument, value, of_numbers=argument not in IMAGES)
                if argument in SINGLE:
                    check_is_one_array(name, argument, value)
            return (as_static if argument in static_names else at_full_width)(name, argument, value)

        return public(functools.wraps(function)(typed_jit(*static_names)(function)), prepared)

    return decorate


def at_full_width(function: str, argument: str, value: Any) -> Any:
    """A value, with integers of NumPy that JAX would cut to 32 bits as floats; those of images must fit.

    Raises:
        ValueError: if an image holds an integer that does not fit.
    """

    def convert(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray | np.generic):
            return leaf
        array = np.asarray(cast(Any, leaf))
        if not np.issubdtype(array.dtype, np.integer) or jax.dtypes.canonicalize_dtype(array.dtype) == array.dtype:
            return cast(Any, leaf)
        return in_dtype_of_jax(function, argument, array) if argument in IMAGES else as_rounded(array, np.float32)

    return jax.tree.map(convert, value)


def as_static(function: str, argument: str, value: Any) -> Any:
    """A number, a flag, or a sequence of them, as hashable Python values; any other value unchanged.

    Raises:
        TypeError: if the value is traced.
    """
    check_is_known(function, argument, value)
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        value = cast(Any, value).tolist()
    if isinstance(value, list | tuple):
        return tuple(as_static(function, argument, element) for element in cast(Sequence[Any], value))
    return value
