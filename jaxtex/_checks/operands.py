"""Arguments that are to become arrays: no strings, no missing values, no objects that hold no numbers."""

# pyright: strict, reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from .integers import is_integral
from .words import described

# Arguments of which each is one array.
SINGLE = ("image", "images", "faces", "labels", "border_label")
# Arguments whose integers are texels or indices, and not coordinates or parameters.
IMAGES = (*SINGLE, "features", "value", "x", "pyramid", "planes", "batch_indices")
# What a string in place of one of these names is a file.
FILES = ("image", "images", "texels", "texture")
NUMBERS = "a number or an array; pass one"
PLAIN = (bool, int, float, complex)
# What objects have of which JAX makes an array, and of which NumPy does.
OF_JAX, OF_NUMPY = "__jax_array__", ("__array__", "__array_interface__")


def check_operand(name: str, argument: str, value: object) -> None:
    """An array, a number, or lists and tuples of them.

    Raises:
        TypeError: says what to pass.
    """
    if isinstance(value, jax.Array):
        return
    if argument in IMAGES:
        check_is_no_nest(name, argument, value)
    for leaf in leaves_of(value):
        if not (isinstance(leaf, jax.Array) or type(leaf) in PLAIN):
            check_leaf(name, f"{argument} {'is' if leaf is value else 'holds'}", argument, leaf)
    if argument in SINGLE:
        check_is_one_array(name, argument, value)


def leaves_of(value: object) -> Sequence[object]:
    """What lists and tuples hold, or the value itself."""
    if not isinstance(value, list | tuple):
        return (value,)
    parts = cast("Sequence[object]", value)
    if not any(isinstance(part, list | tuple) for part in parts):
        return parts
    return [leaf for part in parts for leaf in leaves_of(part)]


def check_leaf(name: str, came: str, argument: str, leaf: object) -> None:
    """An array, a number, or an object of which NumPy or JAX makes an array; `came` begins the message on others."""
    if isinstance(leaf, str | bytes):
        raise TypeError(f"{name}: {came} {leaf!r}, expected {in_place_of_string(argument, leaf)}.")
    if isinstance(leaf, np.ndarray | np.generic):
        if not holds_numbers(cast(Any, leaf)):
            raise TypeError(
                f"{name}: {argument} holds {leaf.dtype}, expected numbers; convert it with {argument}.astype."
            )
    elif not isinstance(leaf, PLAIN) and not becomes_array(leaf):
        raise TypeError(f"{name}: {came} {described(leaf)}, expected {NUMBERS}.")


def holds_numbers(array: np.ndarray | np.generic) -> bool:
    """Whether an array of NumPy holds numbers or bool; Python's integers are numbers of any size."""
    if array.dtype == object:
        return is_integral(array)
    return jnp.issubdtype(array.dtype, jnp.number) or array.dtype == np.bool_


def is_array(value: object) -> bool:
    return isinstance(value, jax.Array | np.ndarray)


def becomes_array(value: object) -> bool:
    """Whether JAX or NumPy makes an array of an object, as of a Pillow image, a torch tensor or a fraction."""
    return not isinstance(value, type) and any(hasattr(value, name) for name in (OF_JAX, *OF_NUMPY, "__float__"))


def in_place_of_string(argument: str, text: str | bytes) -> str:
    """What a string should have been, and how to mend it."""
    if argument == "border_color":
        return (
            "a number, or one for each channel, in units of the image; pass 1.0 for the white of fractions, 255 for "
            "that of bytes, (r, g, b) for a color"
        )
    if argument in FILES:
        return f"an array; read the file first, such as {argument} = numpy.asarray(PIL.Image.open(...))"
    try:
        return f"a number or an array; pass {float(text):g}"
    except ValueError:
        return NUMBERS


def check_is_of_arrays(name: str, argument: str, value: object) -> None:
    """Raises a TypeError for numbers and arrays of libraries beside NumPy and JAX."""
    for leaf in leaves_of(value):
        if not (leaf is None or isinstance(leaf, (jax.Array, np.ndarray, np.generic, *PLAIN)) or hasattr(leaf, OF_JAX)):
            makes_array = any(hasattr(leaf, key) for key in OF_NUMPY)
            kind = f"{described(leaf)} of {type(leaf).__module__.partition('.')[0]}"
            remedy = f"an array; pass numpy.asarray({argument})" if makes_array else f"a number; pass float({argument})"
            raise TypeError(f"{name}: {argument} is {kind}, expected {remedy}.")


def check_is_no_nest(name: str, argument: str, value: object) -> None:
    """Raises a TypeError for a nested list of numbers."""
    leaves = leaves_of(cast(object, value)) if isinstance(value, list | tuple) else ()
    if leaves and all(isinstance(leaf, bool | int | float) for leaf in leaves):
        kind = "list" if isinstance(value, list) else "tuple"
        raise TypeError(
            f"{name}: {argument} is a nested {kind} of numbers, expected an array; pass jnp.asarray({argument})."
        )


def check_is_one_array(name: str, argument: str, value: object) -> None:
    """Raises a TypeError for a list or tuple of arrays."""
    if isinstance(value, list | tuple) and any(map(is_array, leaves_of(cast(object, value)))):
        kind = "list" if isinstance(value, list) else "tuple"
        raise TypeError(f"{name}: {argument} is a {kind} of arrays, expected an array; pass jnp.stack({argument}).")
