"""Public functions that run as one compiled call."""

# pyright: strict, reportUnknownMemberType=false

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ParamSpec, TypeVar, cast

import jax
import numpy as np

from .._checks.integers import as_rounded, known_integers, narrowed
from .._checks.remedies import IMAGES, check_is_known, check_is_of_arrays, public
from .._checks.words import shown
from .._jax.calls import typed_jit

# Those of the options that all warps share which are static.
STATIC_OPTIONS = ("sampler", "filter", "address", "antialias", "dtype")

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def compiled(*static_names: str) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """A decorator that compiles each call of a function outside `jax.jit` as one program.

    Args:
        static_names: the static arguments. They may also be lists, NumPy numbers and concrete arrays, which become
            hashable Python values.
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        name = function.__name__

        def prepared(argument: str, value: Any) -> Any:
            if argument in static_names:
                return as_static(name, argument, value)
            check_is_of_arrays(name, argument, value)
            return at_full_width(name, argument, value)

        return public(functools.wraps(function)(typed_jit(*static_names)(function)), prepared)

    return decorate


def at_full_width(function: str, argument: str, value: Any) -> Any:
    """A value, with known integers that JAX would cut to 32 bits as floats; those of images must fit.

    Raises:
        ValueError: if an image holds an integer that does not fit.
    """

    def convert(leaf: Any) -> Any:
        known = None if isinstance(leaf, int) and -(2**31) <= leaf < 2**31 else known_integers(leaf)
        if known is None or known.dtype.itemsize < 8:
            return leaf
        dtype = jax.dtypes.canonicalize_dtype(np.int64 if known.dtype == object else known.dtype)
        if known.dtype == dtype:
            return leaf
        return narrowed(function, argument, known, dtype) if argument in IMAGES else as_rounded(known, np.float32)

    return jax.tree.map(convert, value)


def as_static(function: str, argument: str, value: Any) -> Any:
    """A number, a flag, or a sequence of them, as hashable Python values; any other value unchanged.

    Raises:
        TypeError: if the value is traced, or has no hash.
    """
    check_is_known(function, argument, value)
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        value = cast(Any, value).tolist()
    if isinstance(value, list | tuple):
        return tuple(as_static(function, argument, element) for element in cast(Sequence[Any], value))
    if not isinstance(value, Hashable):
        raise TypeError(f"{function}: {argument} is {shown(value)}, expected a number or a word; pass one, or a tuple.")
    return value
