"""Checks of single arguments, and what to pass in place of arguments that no call takes."""

# pyright: strict, reportUnknownMemberType=false

import inspect
from collections.abc import Collection, Sequence
from typing import Any, TypeGuard, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..modes import AddressMode, FilterMode, OptionEnum
from ..sampler import Sampler
from .integers import is_integral
from .words import described, shown

# Keywords of other libraries: what they mean here, by the first word that a function has.
KEYWORDS = {
    **dict.fromkeys(("filter", "filter_mode", "interpolation", "method", "mode", "order", "resample"), "filter"),
    **dict.fromkeys(("address", "address_mode", "padding_mode", "border_mode", "borderMode", "wrap"), "address"),
    **dict.fromkeys(
        ("border_color", "border_value", "borderValue", "cval", "fill", "fill_value", "fillcolor", "color"),
        "border_color",
    ),
    **dict.fromkeys(("size", "shape", "dsize", "out_shape", "out_size"), "output_shape"),
    **dict.fromkeys(("scale", "scale_factor", "fx", "fy"), "output_shape"),
    **dict.fromkeys(("angle", "theta"), "degrees"),
    **dict.fromkeys(("M", "H", "transform", "homography"), "matrix"),
    **dict.fromkeys(("K", "camera", "cameraMatrix"), "camera_matrix"),
    **dict.fromkeys(("D", "distCoeffs", "coefficients"), "distortion"),
    **dict.fromkeys(("img", "src", "images", "input", "inputs"), "image"),
    **dict.fromkeys(("anti_alias", "anti_aliasing"), "antialias"),
}
# What to pass where a keyword means something else than the name here.
IN_PLACE_OF = {
    **dict.fromkeys(("size", "dsize"), "output_shape=(height, width), which is (width, height) in OpenCV and Pillow"),
    **dict.fromkeys(("scale", "scale_factor", "fx", "fy"), "output_shape=(height, width), the sizes times the factor"),
}
# Where a function that takes a sampler has no such argument itself.
BY_OTHERS = {
    "filter": "sampler=jaxtex.Sampler(filter_mode=...)",
    "address": "sampler=jaxtex.Sampler(address_mode=...)",
    "border_color": "the border color to the texture, jaxtex.texture2d(texels, border_color=...)",
}
SAMPLER_FIELDS = tuple(inspect.signature(Sampler).parameters)
# Arguments that are one array each.
SINGLE = ("image", "faces", "labels", "border_label")
# Arguments whose integers are texels or indices, and not coordinates or parameters.
IMAGES = (*SINGLE, "features", "value", "x", "pyramid", "planes", "batch_indices")
# In place of these arguments, a string is the name of a file.
FILES = ("image", "texels", "texture")
NUMBERS = "a number or an array; pass one"
PLAIN = (bool, int, float, complex)
# An object with the first attribute becomes an array of JAX, one with another attribute an array of NumPy.
OF_JAX, OF_NUMPY = "__jax_array__", ("__array__", "__array_interface__")


def check_is_sampler(name: str, sampler: object, parameters: Collection[str] = (), argument: str = "sampler") -> None:
    """Raises a TypeError for a value that is no `Sampler`.

    Args:
        parameters: of the function. The error names the one that takes the value.
        argument: the name of the sampler.
    """
    if isinstance(sampler, Sampler):
        return
    option, remedy = mode_of(sampler), "jaxtex.Sampler(...)"
    if option in parameters:
        remedy = f"{option}={sampler!r}"
    elif option is not None:
        remedy = f"jaxtex.Sampler({option}_mode={sampler!r})"
    elif isinstance(sampler, int) and "output_shape" in parameters:
        remedy = "sizes as one tuple, output_shape=(H, W)"
    elif is_array(sampler) and not {"coords", "flow"}.isdisjoint(parameters):
        remedy = f"coordinates as one tuple, {name}({next(iter(parameters))}, (x, y))"
    raise TypeError(f"{name}: {argument} is {shown(sampler)}, expected a Sampler; pass {remedy}.")


def check_is_known(name: str, argument: str, value: object) -> None:
    """Raises a TypeError for a value that JAX traces."""
    if isinstance(value, Tracer):
        raise TypeError(
            f"{name}: {argument} is a traced array, expected a value that is known during tracing; pass a Python "
            f"value, or make the argument static with jax.jit(..., static_argnames=...)."
        )


def keyword_remedy(keyword: str, names: Collection[str]) -> str | None:
    """What to pass in place of a keyword, if that is known."""
    meant = KEYWORDS.get(keyword, keyword)
    if meant in names:
        return f"pass {IN_PLACE_OF.get(keyword, f'{meant}=...')}"
    if "sampler" in names and keyword in SAMPLER_FIELDS:
        return f"pass sampler=jaxtex.Sampler({keyword}=...)"
    if meant in BY_OTHERS and ("sampler" in names if meant != "border_color" else {"texture", "textures"} & {*names}):
        return f"pass {BY_OTHERS[meant]}"
    return None


def mode_of(word: object) -> str | None:
    """The option of a sampler that a word names, its aliases included."""
    options: dict[str, type[OptionEnum]] = {"filter": FilterMode, "address": AddressMode}
    for option, enumeration in options.items():
        try:
            enumeration(word)
        except ValueError:
            continue
        return option
    return None


# Arrays


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
    """An array, a number, or an object that NumPy or JAX makes an array of; `came` begins the error message."""
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


def is_array(value: object) -> TypeGuard[jax.Array | np.ndarray[Any, np.dtype[Any]]]:
    return isinstance(value, jax.Array | np.ndarray)


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value is a tuple or a list."""
    return isinstance(value, tuple | list)


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
