"""Docstrings of the texture functions: the texts that two dozen functions share."""

# pyright: strict

from typing import NamedTuple, cast

from ..docstrings import Function, complete, coordinates_of
from ..signatures import cuda_function

BASE_TYPE = (
    "Its base type is float for float and half texels, and for all texels under ``ReadMode.NormalizedFloat``; else it "
    "is the type of the texels."
)
ABSENT_CHANNELS = "Channels that the texture lacks read 0, alpha too; channels that T lacks are dropped."


class Operation(NamedTuple):
    """What the functions of one kind of read do: their coordinates, their type T, their result, their gradients."""

    coordinates: str
    type_name: str
    returns: str
    gradients: str


SAMPLE = Operation(
    "numbers that broadcast with all other arrays here to a shape S. Texel i covers [i, i + 1), and its center is at "
    "i + 0.5; with ``normalizedCoords`` texel i of N covers [i / N, (i + 1) / N). Outside the texture the address mode "
    "applies.",
    'the name of the result type, such as ``"float4"``: a scalar, or a vector of 1, 2 or 4. '
    f"{BASE_TYPE} By default the result has the channels of the texture. {ABSENT_CHANNELS}",
    "An array of shape S if T is a scalar, S + (n,) if T is a vector of n, with the dtype of T's base type.",
    "To floating texels, to the border color and to floating arguments, of any order, as of `jaxtex.sample`. In "
    "hardware arithmetic they are the derivatives of the float32 read at the same position.",
)
SAMPLE_CUBEMAP = SAMPLE._replace(
    coordinates="numbers that broadcast with all other arrays here to a shape S: a direction of any length."
)
FETCH = SAMPLE._replace(
    coordinates="integers of any shape S: the indices of the texels. An index outside the memory reads 0, whatever the "
    "address mode.",
    gradients="To floating texels.",
)
GATHER = SAMPLE._replace(
    type_name=f'the name of the result type, a vector of 4 such as ``"float4"``. {BASE_TYPE}',
    returns="An array of shape S + (4,), with the dtype of T's base type.",
    gradients="To floating texels and to the border color. Those to the coordinates are zero.",
)
OPERATIONS = {"tex1Dfetch": FETCH, "tex2Dgather": GATHER}


def texture_function(function: Function) -> Function:
    """Adds the sections of a texture function to its docstring, as its name and its parameters require."""
    name, coordinates = function.__name__, ", ".join(coordinates_of(function))
    operation = OPERATIONS.get(name, SAMPLE_CUBEMAP if "Cubemap" in name else SAMPLE)
    count = len(coordinates_of(function))
    vector = f"float{2 if count == 2 else 4}"
    derivatives = f"the derivatives of ({coordinates}), a tuple or an array of shape S + ({vector[-1]},), as "
    derivatives = "the derivative of x" if count == 1 else f"{derivatives}`make_{vector}` returns it,"
    fourth = " The fourth component is ignored, and may be missing." if count == 3 else ""
    arguments = {
        "t": "the texture, a `TextureObject` or a `BoundTexture`. Jitted functions take it as an argument.",
        "x": operation.coordinates,
        "layer": "integers that broadcast with S: which layer to read. A negative or too large layer reads the last.",
        "level": "numbers that broadcast with S: the level of detail, 0 for the finest level. The descriptor's "
        "``mipmapLevelBias`` is added, then its level clamps apply. A texture without mip levels reads level 0.",
        "dPdx": f"{derivatives} with respect to the screen's x, in the units of the coordinates.{fourth}",
        "dPdy": "the same with respect to the screen's y.",
        "comp": "an int from 0 to 3: which channel to gather. A channel that the format lacks reads 0.",
        "T": operation.type_name,
    }
    raises = {
        "CudaError": "cudaErrorInvalidValue, if this function does not read textures of this kind, or if T does not "
        "fit the texture.",
        "TypeError": "if `t` is no texture.",
    }
    source = f'CUDA C++ Programming Guide, "Texture Functions", `{name}`.'
    completed = complete(function, arguments, operation.returns, operation.gradients, raises, source)
    return cast(Function, cuda_function(completed))
