"""`jax.jit` with the type of the function that it compiles."""

# pyright: strict, reportUnknownMemberType=false

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import jax

Function = TypeVar("Function", bound=Callable[..., Any])


def typed_jit(*static: str, inline: bool = True) -> Callable[[Function], Function]:
    """A decorator that compiles a function whose arguments named in `static` are static."""
    return cast(Callable[[Function], Function], functools.partial(jax.jit, static_argnames=static, inline=inline))
