"""Public functions whose body is one compiled call."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import jax

# The static ones of the arguments that all warps share.
OPTIONS = ("sampler", "filter", "address", "antialias", "dtype")

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(*static_names: str) -> Callable[[Function], Function]:
    """Makes a call outside `jax.jit` one compiled call; those arguments are static, and may be lists."""

    def decorate(function: Function) -> Function:
        run = jax.jit(function, static_argnames=static_names, inline=True)
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args, **keywords):
            bound = signature.bind(*args, **keywords)
            for name in static_names:
                if isinstance(bound.arguments.get(name), list):
                    bound.arguments[name] = tuple(bound.arguments[name])
            return run(*bound.args, **bound.kwargs)

        return call  # pyright: ignore[reportReturnType]

    return decorate
