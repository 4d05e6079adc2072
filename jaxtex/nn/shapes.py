"""Checks that the functions of this package share."""

from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp

from .._checks.numbers import is_integer
from .._checks.texels import check_sizes
from .._checks.words import shown


def as_features(name: str, argument: str, value: Any, axes: str) -> jax.Array:
    """Floating numbers of the axes that a text such as ``"(N, H, W, C)"`` names; the first size may be symbolic."""
    array = jnp.asarray(value)
    if array.ndim != axes.count(",") + 1:
        raise ValueError(f"{name}: {argument} has shape {array.shape}, expected {axes}.")
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise ValueError(
            f"{name}: {argument} has dtype {array.dtype}, expected floating numbers; use {argument}.astype."
        )
    check_sizes(f"{name}: {argument} has shape {array.shape}", array.shape[1:])
    return array


def check_shape(name: str, argument: str, array: jax.Array, shape: Sequence[int], axes: str) -> None:
    """The shape that other arguments ask for, whose axes a text names."""
    if array.shape != tuple(shape):
        raise ValueError(f"{name}: {argument} has shape {array.shape}, expected {tuple(shape)}: {axes}.")


def check_texels(name: str, argument: str, array: jax.Array, sizes: Sequence[int]) -> None:
    """The sizes along which an array is read, or that count its images: none is 0."""
    if 0 in sizes:
        raise ValueError(f"{name}: {argument} has shape {array.shape}, expected at least one texel to read.")


def as_pair(name: str, argument: str, value: Any, low: int) -> tuple[int, int]:
    """Two integers of at least `low`, along height and width, from one for both or from two."""
    given = cast(tuple[Any, ...], value if isinstance(value, tuple) else (value, value))
    if len(given) != 2 or not all(is_integer(n, low) for n in given):
        raise ValueError(
            f"{name}: {argument} is {shown(value)}, expected an integer of at least {low}, or two for height and width."
        )
    return int(given[0]), int(given[1])
