"""Public functions whose body is one compiled call."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np
from jax.core import Tracer

# The static ones of the arguments that all warps share.
OPTIONS = ("sampler", "filter", "address", "antialias", "dtype")

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def compiled(*static_names: str) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Makes a call outside `jax.jit` one compiled call; the named arguments are static, and become Python values."""

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        run = jax.jit(function, static_argnames=static_names, inline=True)
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Parameters.args, **keywords: Parameters.kwargs) -> Result:
            bound = signature.bind(*args, **keywords)
            for name in static_names:
                if name in bound.arguments:
                    bound.arguments[name] = as_static(function.__name__, name, bound.arguments[name])
            return run(*bound.args, **bound.kwargs)

        return call

    return decorate


def as_static(function: str, argument: str, value: Any) -> Any:
    """A size, a flag or a sequence of them, as hashable Python values; all else as it is.

    Raises:
        TypeError: if the value is known only when the program runs.
    """
    if isinstance(value, Tracer):
        raise TypeError(
            f"{function}: {argument} is a traced array, expected a value that is known when the call is traced; pass a "
            f"Python value, or make it static with jax.jit(..., static_argnames=...)."
        )
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(as_static(function, argument, element) for element in value)
    return value
