"""The checks that all public functions share, and what to pass in place of arguments that no call takes: words of other
libraries, strings, nested lists.
"""

# pyright: strict, reportUnknownMemberType=false

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, ParamSpec, TypeVar, cast

import jax
import numpy as np
from jax.core import Tracer

from ..modes import AddressMode, FilterMode, OptionEnum
from ..sampler import Sampler
from .integers import in_native_order
from .keywords import check_keywords as check_names

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# Keywords of other libraries: what they mean here, by the first word that a function has.
KEYWORDS = {
    **dict.fromkeys(("filter", "filter_mode", "interpolation", "method", "mode", "order", "resample"), "filter"),
    **dict.fromkeys(("address", "address_mode", "padding_mode", "border_mode", "borderMode", "wrap"), "address"),
    **dict.fromkeys(
        ("border_color", "border_value", "borderValue", "cval", "fill", "fill_value", "fillcolor", "color"),
        "border_color",
    ),
    **dict.fromkeys(("size", "shape", "dsize", "out_shape", "out_size"), "output_shape"),
    **dict.fromkeys(("angle", "theta"), "degrees"),
    **dict.fromkeys(("M", "H", "transform", "homography"), "matrix"),
    **dict.fromkeys(("K", "camera", "cameraMatrix"), "camera_matrix"),
    **dict.fromkeys(("D", "distCoeffs", "coefficients"), "distortion"),
    **dict.fromkeys(("img", "src", "images"), "image"),
    **dict.fromkeys(("anti_alias", "anti_aliasing"), "antialias"),
}
# Where a function that takes a sampler has no such argument itself.
BY_OTHERS = {
    "filter": "sampler=jaxtex.Sampler(filter_mode=...)",
    "address": "sampler=jaxtex.Sampler(address_mode=...)",
    "border_color": "the border color to the texture, jaxtex.texture2d(texels, border_color=...)",
}
# The types of arguments that are true or false; `None` is false.
FLAGS = (bool, bool | None)
SAMPLER_FIELDS = tuple(inspect.signature(Sampler).parameters)


def public(
    function: Callable[Parameters, Result], prepared: Callable[[str, Any], Any] | None = None
) -> Callable[Parameters, Result]:
    """A function whose arguments are checked as those of all public functions are.

    A keyword that it does not take, or a flag that is neither true nor false, raises a TypeError that says what to
    pass. Arrays of NumPy arrive in the byte order of the machine.

    Args:
        prepared: of the name and the value of an argument, what the function gets.
    """
    name, signature = function.__name__, inspect.signature(function)
    flags = {p.name for p in signature.parameters.values() if p.annotation in FLAGS}

    @functools.wraps(function)
    def call(*args: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        check_keywords(name, keywords, signature.parameters)
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as error:
            raise TypeError(f"{name}: {error}.") from None
        for argument, value in bound.arguments.items():
            if argument not in flags:
                value = in_native_order(value)
                bound.arguments[argument] = prepared(argument, value) if prepared else value
            elif value is not None or signature.parameters[argument].annotation is bool:
                bound.arguments[argument] = as_flag(name, argument, value)
        return function(*bound.args, **bound.kwargs)

    return call


def as_flag(name: str, argument: str, value: Any) -> bool:
    """A flag that is known while tracing: a bool of Python or NumPy, alone or as an array without axes."""
    check_is_known(name, argument, value)
    if isinstance(value, bool) or (getattr(value, "dtype", None) == np.bool_ and getattr(value, "shape", None) == ()):
        return bool(cast(Any, value))
    raise TypeError(f"{name}: {argument} is {shown(value)}, expected True or False.")


def check_is_known(name: str, argument: str, value: Any) -> None:
    """Raises a TypeError for a value that JAX traces."""
    if isinstance(value, Tracer):
        raise TypeError(
            f"{name}: {argument} is a traced array, expected a value that is known during tracing; pass a Python "
            f"value, or make the argument static with jax.jit(..., static_argnames=...)."
        )


def check_keywords(name: str, keywords: Collection[str], names: Collection[str]) -> None:
    """Raises a TypeError with a remedy for a keyword that is not among `names`."""
    check_names(name, keywords, names, functools.partial(keyword_remedy, names=names))


def keyword_remedy(keyword: str, names: Collection[str]) -> str | None:
    """What to pass in place of a keyword, if that is known."""
    meant = KEYWORDS.get(keyword, keyword)
    if meant in names:
        return f"pass {meant}=..."
    if "sampler" in names and keyword in SAMPLER_FIELDS:
        return f"pass sampler=jaxtex.Sampler({keyword}=...)"
    if meant in BY_OTHERS and ("sampler" in names if meant != "border_color" else {"texture", "textures"} & {*names}):
        return f"pass {BY_OTHERS[meant]}"
    return None


def check_operand(name: str, argument: str, value: Any, *, of_numbers: bool = True) -> None:
    """An argument that is to become an array: no string, no missing value, and no array of a library beside JAX.

    Args:
        of_numbers: whether a nested list of numbers may stand for an array.

    Raises:
        TypeError: says what to pass.
    """
    if value is None:
        raise TypeError(f"{name}: {argument} is None, expected a number or an array; pass one.")
    if not of_numbers:
        check_is_no_nest(name, argument, value)
    for leaf in jax.tree.leaves(value):
        check_leaf(name, argument, leaf)


def check_is_no_nest(name: str, argument: str, value: Any) -> None:
    """Raises a TypeError for a nested list of numbers."""
    leaves = jax.tree.leaves(value) if isinstance(value, list | tuple) else []
    if leaves and all(isinstance(leaf, bool | int | float) for leaf in leaves):
        kind = "list" if isinstance(value, list) else "tuple"
        raise TypeError(
            f"{name}: {argument} is a nested {kind} of numbers, expected an array; pass jnp.asarray({argument})."
        )


def check_is_one_array(name: str, argument: str, value: Any) -> None:
    """Raises a TypeError for a list or tuple of arrays."""
    if isinstance(value, list | tuple) and any(map(is_array, jax.tree.leaves(value))):
        kind = "list" if isinstance(value, list) else "tuple"
        raise TypeError(f"{name}: {argument} is a {kind} of arrays, expected an array; pass jnp.stack({argument}).")


def check_leaf(name: str, argument: str, leaf: Any) -> None:
    if isinstance(leaf, str | bytes):
        raise TypeError(f"{name}: {argument} is {leaf!r}, expected {string_remedy(argument, leaf)}.")
    known = isinstance(leaf, jax.Array | np.ndarray | np.generic | bool | int | float | complex)
    if not known and not hasattr(leaf, "__jax_array__") and has_pixels(leaf):
        kind = f"{type(leaf).__name__} of {type(leaf).__module__.partition('.')[0]}"
        raise TypeError(f"{name}: {argument} is a {kind}, expected an array; pass numpy.asarray({argument}).")


def is_array(value: Any) -> bool:
    return isinstance(value, jax.Array | np.ndarray)


def has_pixels(value: Any) -> bool:
    """Whether NumPy makes an array of an object, as of a Pillow image or a torch tensor."""
    return hasattr(value, "__array_interface__") or hasattr(value, "__array__")


def string_remedy(argument: str, text: Any) -> str:
    """What a string should have been, and how to mend it."""
    if argument == "border_color":
        return (
            "a number, or one for each channel, in units of the image; pass 1.0 for the white of fractions, 255 for "
            "that of bytes, (r, g, b) for a color"
        )
    if argument in ("image", "images", "texels", "texture"):
        return f"an array; read the file first, such as {argument} = numpy.asarray(PIL.Image.open(...))"
    try:
        return f"a number or an array; pass {float(text):g}"
    except ValueError:
        return "a number or an array; pass one"


def mode_of(word: Any) -> str | None:
    """The option of a sampler that a word names, its aliases included."""
    options: dict[str, type[OptionEnum]] = {"filter": FilterMode, "address": AddressMode}
    for option, enumeration in options.items():
        try:
            enumeration(word)
        except ValueError:
            continue
        return option
    return None


def check_color(name: str, color: jax.Array, channels: int, argument: str = "border_color") -> None:
    """A border color: one number for all channels, or one for each."""
    if color.shape not in ((), (channels,)):
        raise ValueError(
            f"{name}: {argument} has shape {color.shape}, expected a scalar or ({channels},), one value for each "
            f"channel."
        )


def described(value: Any) -> str:
    """What a value is, for a message."""
    if isinstance(value, jax.Array | np.ndarray):
        return f"an array of shape {value.shape}"
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def shown(value: Any) -> str:
    """A value as it is spelled, for a message; an array by its shape."""
    return described(value) if isinstance(value, jax.Array | np.ndarray) else repr(value)
