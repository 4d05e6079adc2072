"""A value with the derivatives of another function."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.interpreters import batching

from .primitives import Dims, bind, define

Function = Callable[..., jax.Array]


def straight_through(value: Function, meaning: Function, *args: Any, linear_in: tuple[int, ...] = ()) -> jax.Array:
    """``value(*args)``, with the derivatives of `meaning`, to any order.

    Args:
        linear_in: the positions of the arrays in which `meaning` is linear together, and is transposed, which takes a
            primitive. Then neither function may close over traced arrays.
    """
    if linear_in:
        leaves, tree = jax.tree.flatten(args)
        flat = lambda function: lambda *leaves: function(*jax.tree.unflatten(tree, leaves))
        return bind(straight_through_p, *leaves, meaning=flat(meaning), value=flat(value), linear_in=linear_in)
    function = jax.custom_jvp(value)

    @function.defjvp
    def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[jax.Array, jax.Array]:
        return function(*primals), jax.jvp(meaning, primals, tangents)[1]

    return function(*args)


def meaning_of(*args: Any, meaning: Function, value: Function, linear_in: tuple[int, ...]) -> jax.Array:
    del value, linear_in
    return meaning(*args)


def value_of(*args: Any, meaning: Function, value: Function, linear_in: tuple[int, ...]) -> jax.Array:
    del meaning, linear_in
    return value(*args)


def batched(
    args: Sequence[jax.Array], dims: Dims, *, linear_in: tuple[int, ...], **functions: Function
) -> tuple[jax.Array, int]:
    mapped = {name: jax.vmap(function, dims) for name, function in functions.items()}
    return straight_through_p.bind(*args, **mapped, linear_in=linear_in), 0


straight_through_p = define(
    "straight_through",
    meaning_of,
    static=("meaning", "value", "linear_in"),
    linear_in=lambda *, linear_in, **_: linear_in,
    form=value_of,
)
batching.primitive_batchers[straight_through_p] = batched
