"""Sizes, which may be symbolic in some places, and knots, the coordinates of the texels of an axis."""

import operator
from collections.abc import Iterable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._jax.shapes import is_symbolic
from .numbers import Array, at_full_width, on_device
from .words import described, shown


def check_sizes(came: str, sizes: Iterable[int]) -> None:
    """Checks that sizes are not symbolic; `came` begins the error message, with the shape that has them."""
    for size in sizes:
        if is_symbolic([size]):
            raise ValueError(
                f"{came}, expected an integer in place of the symbolic size {size}; export a program for each such "
                "size, for only batch axes, as jax.vmap adds them, and the number of samples may be symbolic."
            )


def as_sizes(
    name: str, argument: str, sizes: Any, axes: Sequence[str], *, may_be_symbolic: bool = False
) -> tuple[int, ...]:
    """A shape known while tracing, from a sequence or an array of integers; `axes` are an example in errors."""
    try:
        if not may_be_symbolic:
            check_sizes(f"{name}: {argument} is {shown(sizes)}", sizes)
        return tuple(n if is_symbolic([n]) else operator.index(n) for n in sizes)
    except TypeError:
        expected = f"expected a tuple of integers such as ({', '.join(axes)})"
        raise TypeError(f"{name}: {argument} is {shown(sizes)}, {expected}.") from None


def check_knots(name: str, knots: Any, sizes: Sequence[int]) -> tuple[jax.Array | None, ...] | None:
    """The floating knots of each axis, x first; `None` if no axis has any. `sizes` are in the same order."""
    if not isinstance(knots, tuple | list) or len(knots) != len(sizes):  # pyright: ignore[reportUnknownArgumentType]
        expected = ", ".join("xyz"[: len(sizes)]) + ("," if len(sizes) == 1 else "")
        raise ValueError(f"{name}: knots is {described(knots)}, expected a tuple ({expected}) of arrays or None.")
    checked: list[jax.Array | None] = []
    for axis, size, given in zip("xyz", sizes, cast(Sequence[Any], knots)):
        array = None if given is None else on_device(at_full_width("", "", given, exact=False))
        if array is not None:
            array = array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(jnp.float32)
            lengths = (size, size + 2) if size > 1 else (size + 2,)
            if array.ndim != 1 or len(array) not in lengths:
                raise ValueError(
                    f"{name}: knots of {axis} have shape {array.shape}, expected "
                    f"{' or '.join(f'({n},)' for n in lengths)}: the coordinates of the {size} texels along {axis}, "
                    f"{'or these ' if size > 1 else ''}and those of both edges."
                )
            values = known_values(given, array)
            if values is not None and (reason := disorder(values)):
                raise ValueError(f"{name}: knots of {axis} {reason}")
        checked.append(array)
    return None if all(a is None for a in checked) else tuple(checked)


def known_values(given: Any, array: jax.Array) -> Array | None:
    """The values of an array that was made of `given`; `None` where they are traced, or on other processes.

    An array of JAX is copied from its device once, and keeps the copy.
    """
    in_numpy = all(isinstance(leaf, np.ndarray | np.generic | int | float) for leaf in jax.tree.leaves(given))
    source = np.asarray(given) if in_numpy else array  # a program traces arrays of NumPy too
    if isinstance(source, Tracer):
        return None
    if isinstance(source, jax.Array) and not (source.is_fully_addressable or source.is_fully_replicated):
        return None
    return np.asarray(jax.device_get(source)).astype(array.dtype)


def disorder(knots: Array) -> str | None:
    """Why knots, (..., N), are not those of an axis, as the end of a sentence; `None` if they are.

    They increase or decrease. Two equal ones are a jump.
    """
    for row in np.float64(knots).reshape(-1, knots.shape[-1]):
        if not np.isfinite(row).all():
            k = int(np.argmin(np.isfinite(row)))
            return f"hold {row[k]:g} at index {k}, expected finite coordinates; leave out what has no coordinate."
        if row[0] == row[-1] and not np.any(row != row[0]):
            return f"are all {row[0]:g}, expected coordinates that increase or decrease."
        steps = np.diff(row)
        sign = 1 if np.sum(steps > 0) >= np.sum(steps < 0) else -1
        if (wrong := sign * steps < 0).any():
            k = int(np.argmax(wrong))
            return (
                f"are {row[k]:g} and then {row[k + 1]:g}, at index {k} and {k + 1}, expected coordinates that increase "
                f"or decrease throughout; {remedy_of_disorder(row)}."
            )
    return None


def remedy_of_disorder(knots: Array) -> str:
    """What to do about knots that neither increase nor decrease."""
    for period, word in ((360.0, "360"), (2 * np.pi, "2 * np.pi")):
        steps = np.diff(np.unwrap(knots, period=period))
        if (steps > 0).all() or (steps < 0).all():
            return (
                f"they seem to wrap around after {word}: pass np.unwrap(knots, period={word}), and coordinates that "
                f"continue like it"
            )
    return "sort them, and the texels with them"
