"""Functions that a caller of the library wrote, as a program of the library knows them: they may hold any primitive."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from .typed_jit import typed_jit

# The name of the call in a jaxpr, by which a kernel knows it.
NAME = "jaxtex_function_of_caller"


def of_caller(function: Callable[..., Any], *args: jax.Array) -> Sequence[jax.Array]:
    """The results of a caller's function, which is static, and hashed."""
    return _of_caller(args, function=function)


def called(args: Sequence[jax.Array], *, function: Callable[..., Any]) -> Any:
    return function(*args)


called.__name__ = NAME
_of_caller = typed_jit("function", inline=False)(called)
