"""Public functions that run as one compiled call."""

# pyright: strict, reportUnknownMemberType=false

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, cast

import jax
import numpy as np
from jax.core import Tracer

from .._integers import as_rounded, in_dtype_of_jax
from .._remedies import check_is_one_array, check_keywords, check_operand
from .._typed_jit import typed_jit
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
        run = typed_jit(*static_names)(function)
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Parameters.args, **keywords: Parameters.kwargs) -> Result:
            check_keywords(function.__name__, keywords, signature.parameters)
            try:
                bound = signature.bind(*args, **keywords)
            except TypeError as error:
                raise TypeError(f"{function.__name__}: {error}.") from None
            for name, value in bound.arguments.items():
                if name == "sampler":
                    check_sampler_type(function.__name__, value, signature.parameters)
                elif name not in static_names and value is not signature.parameters[name].default:
                    check_operand(function.__name__, name, value, of_numbers=name not in IMAGES)
                    if name in SINGLE:
                        check_is_one_array(function.__name__, name, value)
                convert = as_static if name in static_names else at_full_width
                bound.arguments[name] = convert(function.__name__, name, value)
            return run(*bound.args, **bound.kwargs)

        return call

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
    if isinstance(value, Tracer):
        raise TypeError(
            f"{function}: {argument} is a traced array, expected a value that is known during tracing; pass a Python "
            f"value, or make the argument static with jax.jit(..., static_argnames=...)."
        )
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        value = cast(Any, value).tolist()
    if isinstance(value, list | tuple):
        return tuple(as_static(function, argument, element) for element in cast(Sequence[Any], value))
    return value
