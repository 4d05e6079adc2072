"""A value with the derivatives of another function."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.interpreters import batching, mlir

from .primitives import Dims, bind, define


def straight_through(value: Callable[..., Any], smooth: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns `value`, with the derivatives of `smooth`, to any order."""
    function = jax.custom_jvp(value)

    @function.defjvp
    def rule(primals, tangents):
        return function(*primals), jax.jvp(smooth, primals, tangents)[1]

    return function


def in_place_of(meaning: Callable[..., Any], value: Callable[..., Any], *args: Any) -> Any:
    """``value(*args)``, with the derivatives of `meaning`, and its transpose in the two first arguments together.

    Neither function may close over traced arrays.
    """
    leaves, tree = jax.tree.flatten(args)
    flat = lambda function: lambda *leaves: function(*jax.tree.unflatten(tree, leaves))
    return bind(in_place_p, *leaves, meaning=flat(meaning), value=flat(value))


def meaning_of(*args: Any, meaning: Callable[..., Any], value: Callable[..., Any]) -> Any:
    del value
    return meaning(*args)


def value_of(*args: Any, meaning: Callable[..., Any], value: Callable[..., Any]) -> Any:
    del meaning
    return value(*args)


def in_place_batched(args: Sequence[jax.Array], dims: Dims, **functions: Callable[..., Any]) -> Any:
    mapped = {name: jax.vmap(function, dims) for name, function in functions.items()}
    return in_place_p.bind(*args, **mapped), 0


in_place_p = define("in_place_of", meaning_of, static=("meaning", "value"), linear_in=lambda **_: (0, 1))
mlir.register_lowering(in_place_p, mlir.lower_fun(value_of, multiple_results=False))
batching.primitive_batchers[in_place_p] = in_place_batched
