"""What the docstrings of the texture functions share: two dozen functions, one contract."""

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

UNITS = (
    "Texel i spans [i, i + 1), or with normalizedCoords [i / N, (i + 1) / N); its centre is in the middle. Outside is "
    "the address mode's business."
)
ARGUMENTS = {
    "t": "a `TextureObject`; it may be an argument of a jitted function.",
    "x": "arrays of numbers that broadcast, with all others here, to a shape S. {units}",
    "layer": "integers, which layer. A negative or too large one reads the last.",
    "level": "the level of detail; the descriptor's bias is added. Without mip levels level 0 is read.",
    "dPdx": "{derivatives} of the coordinates along the screen's x, in units of the coordinates.",
    "dPdy": "the same along the screen's y.",
    "comp": "an int from 0 to 3, which channel to gather; one that the format does not have reads 0.",
    "T": 'name of the type of the result, such as ``"float4"``; by default that of the format, and float where '
    "fractions or half texels are read. Channels that the texture lacks read 0, w too; those that T lacks are dropped.",
}


def texture_function(function: Function) -> Function:
    """Completes the docstring of a texture function by what its name and its parameters say."""
    name, parameters = function.__name__, inspect.signature(function).parameters
    coords = [parameter for parameter in parameters if parameter in ("x", "y", "z")]
    words = {
        "units": "They are a direction, of any length." if "Cubemap" in name else UNITS,
        "derivatives": f"a tuple of the {len(coords)} derivatives" if len(coords) > 1 else "the derivative",
    }
    if len(coords) == 3:
        words["derivatives"] += " (a fourth, as in CUDA's float4, is ignored)"
    if name == "tex1Dfetch":
        words["units"] = "They are integers, the indices of texels; outside reads 0, whatever the address mode."
    arguments = (
        _item(", ".join(coords) if parameter == "x" else parameter, ARGUMENTS[parameter].format(**words))
        for parameter in parameters
        if parameter in ARGUMENTS
    )
    shape = "S + (4,)" if name == "tex2Dgather" else "S for a scalar type, S + (n,) for a vector of n"
    sections = (
        "Args:\n" + "\n".join(arguments),
        f"Returns:\n    {shape}, of the base type of T.",
        "Gradients: to floating texels, to the border colour and to floating arguments, as of `jaxtex.sample`.",
        "Raises:\n    CudaError: cudaErrorInvalidValue, if the texture is of another shape, or T of another base type.",
        f'Source: CUDA C++ Programming Guide, "Texture Functions", `{name}`.',
    )
    text, example, code = (inspect.getdoc(function) or "").partition("Example:")
    function.__doc__ = "\n\n".join([text.rstrip(), *sections, *([example + code] if code else [])])
    return function


SURFACE_ARGUMENTS = {
    "data": "what is written, of the type T: S for a scalar type, S + (n,) for a vector of n, or what broadcasts to "
    "it. A store moves bytes and converts nothing.",
    "surface": "a `SurfaceObject`, or an `Array` made with ``ArrayFlags.SurfaceLoadStore``. It is not changed.",
    "x": "integers that broadcast, with all others here, to a shape S. **x counts bytes**, and is a multiple of the "
    "size of T: what is known before compilation is checked and raises, a traced one is an error under checkify, and "
    "reads 0 or is dropped without.",
    "layer": "integers, which layer.",
    "face": "integers, which face, in the order +X, -X, +Y, -Y, +Z, -Z.",
    "layerFace": "integers, 6 layer + face.",
    "boundaryMode": "a `SurfaceBoundaryMode`: Zero reads 0, or drops the write, if any byte of an access is outside; "
    "Clamp moves it to the nearest place where all of it fits, and of layers and faces to the last, also for negative "
    "ones; Trap acts as Zero, and is an error under checkify, see `jaxtex.surface_read`.",
    "T": 'name of the type that is moved, such as ``"uint2"``, of 1 to 16 bytes; by default the texel of the format. '
    "Its size may differ from the texel's: bytes are reinterpreted.",
}


def surface_function(function: Function) -> Function:
    """Completes the docstring of a surface function, likewise."""
    name, parameters = function.__name__, inspect.signature(function).parameters
    writes, words = "data" in parameters, dict(SURFACE_ARGUMENTS)
    coords = [parameter for parameter in parameters if parameter in ("x", "y", "z")]
    if name == "sust_p":
        words["data"] = (
            "S + (n,), of 1, 2 or 4 components: float32 for float and normalised formats, uint32 for unsigned, int32 "
            "for signed ones. Integers saturate, halves are cut toward zero, fractions are clamped and rounded to the "
            "codes of a normalised format as the hardware does; missing components are 0, extra ones are dropped."
        )
        words["x"] = "integers that broadcast to a shape S: **x counts texels** here, then y, z, and layer or face."
        coords.append("coords")
    arguments = (
        _item(", ".join(coords) if parameter == "x" else parameter, words[parameter])
        for parameter in parameters
        if parameter in words and parameter not in coords[1:]
    )
    array = "The new `Array`. Of several writes to one place the last in flattened order is kept."
    gradients = "to `data` and the texels" if writes else "to the texels"
    sections = (
        "Args:\n" + "\n".join(arguments),
        "Returns:\n"
        + _item("", array if writes else "S for a scalar type, S + (n,) for a vector of n, of type T.")[2:],
        f"Gradients: {gradients}, if T has the floating type of the format, as of `jaxtex.surface_"
        f"{'write' if writes else 'read'}`; reinterpreted bits have none.",
        "Raises:\n    CudaError: cudaErrorInvalidValue, if the surface is of another shape or T no such type;\n        "
        "cudaErrorMisalignedAddress, if x is known and misaligned.",
        "Source: PTX ISA, `sust.p`."
        if name == "sust_p"
        else f'Source: CUDA C++ Programming Guide, "Surface Functions", `{name}`.',
    )
    text, example, code = (inspect.getdoc(function) or "").partition("Example:")
    function.__doc__ = "\n\n".join([text.rstrip(), *sections, *([example + code] if code else [])])
    return function


def _item(label: str, text: str) -> str:
    return textwrap.fill(f"{label}: {text}", 112, initial_indent=" " * 4, subsequent_indent=" " * 8)
