"""Remedies for wrong arguments."""

import inspect
from collections.abc import Collection

import jax
import numpy as np

from ..modes import AddressMode, FilterMode, OptionEnum
from ..sampler import Sampler
from .words import shown

# Keywords of other libraries, and ours; the first that a function has is meant.
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
# Remedies for keywords whose value differs from ours.
IN_PLACE_OF = {
    **dict.fromkeys(("size", "dsize"), "output_shape=(height, width), which is (width, height) in OpenCV and Pillow"),
    **dict.fromkeys(("scale", "scale_factor", "fx", "fy"), "output_shape=(height, width), the sizes times the factor"),
}
# Remedies for functions that take a sampler but not the keyword.
BY_OTHERS = {
    "filter": "sampler=jaxtex.Sampler(filter_mode=...)",
    "address": "sampler=jaxtex.Sampler(address_mode=...)",
    "border_color": "the border color to the texture, jaxtex.texture2d(texels, border_color=...)",
}
SAMPLER_FIELDS = tuple(inspect.signature(Sampler).parameters)
# Arguments for which a string is the name of a file.
FILES = ("image", "texels", "texture")
NUMBERS = "a number or an array; pass one"


def check_is_sampler(name: str, sampler: object, parameters: Collection[str] = (), argument: str = "sampler") -> None:
    """Raises a TypeError if the value is not a `Sampler`.

    Args:
        parameters: of the function; the error names the one that takes the value.
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
    elif isinstance(sampler, jax.Array | np.ndarray) and not {"coords", "flow"}.isdisjoint(parameters):
        remedy = f"coordinates as one tuple, {name}({next(iter(parameters))}, (x, y))"
    raise TypeError(f"{name}: {argument} is {shown(sampler)}, expected a Sampler; pass {remedy}.")


def keyword_remedy(keyword: str, names: Collection[str]) -> str | None:
    """The remedy for a wrong keyword, if one is known."""
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


def in_place_of_string(argument: str, text: str | bytes) -> str:
    """The expected value in place of a string, and a remedy."""
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
