"""The texture functions of device code: each kind of texture with each way to give a level of detail.

They take arrays: one call reads for a whole launch. `texture_reads` does what they say.
"""

# pyright: strict

import functools
from collections.abc import Callable
from typing import Any

from jax.typing import ArrayLike

from ..declarations import DECLARATIONS, PLACES, SUFFIXES
from ..functions import Text, made
from ..kinds import KINDS_BY_NAME
from .texture_reads import Derivatives, Texture, fetch_texel, gather_texels, read_filtered

TYPES: dict[str, Any] = {
    "cudaTextureObject_t": Texture,
    **dict.fromkeys(("float", "int"), ArrayLike),
    **dict.fromkeys(("float2", "float4"), Derivatives),
}
# What the functions of each kind read.
READS = {
    "1D": "a 1D array at x",
    "2D": "a 2D array, or pitched memory, at (x, y)",
    "3D": "a 3D array at (x, y, z)",
    "1DLayered": "a layer of a 1D layered array at x",
    "2DLayered": "a layer of a 2D layered array at (x, y)",
    "Cubemap": "a cubemap in the direction (x, y, z)",
    "CubemapLayered": "a layer of a layered cubemap in the direction (x, y, z)",
}
LEVELS = {"": "", "Lod": ", with a given level of detail", "Grad": ", with a level of detail from derivatives"}
BASE_TYPE = (
    "Its base type is float for float and half texels, and for all texels under ``ReadMode.NormalizedFloat``; else it "
    "is the type of the texels."
)
ABSENT_CHANNELS = "Channels that the texture lacks read 0, alpha too; channels that T lacks are dropped."
BROADCAST = "numbers that broadcast with all other arrays here to a shape S"
POSITIONS = (
    f"{BROADCAST}. Texel i covers [i, i + 1), and its center is at i + 0.5; with ``normalizedCoords`` texel i of N "
    "covers [i / N, (i + 1) / N). Outside the texture the address mode applies."
)
TEXTS = {
    "texObject": "the texture, a `TextureObject` or a `BoundTexture`. Jitted functions take it as an argument.",
    **dict.fromkeys("xyz", POSITIONS),
    "layer": "integers that broadcast with S: which layer to read. A negative or too large layer reads the last.",
    "level": "numbers that broadcast with S: the level of detail, 0 for the finest level. The descriptor's "
    "``mipmapLevelBias`` is added, then its level clamps apply. A texture without mip levels reads level 0.",
    "float dPdx": "the derivative of x with respect to the screen's x, in the units of the coordinates.",
    "float2 dPdx": "the derivatives of (x, y) with respect to the screen's x, in the units of the coordinates: a "
    "tuple, or an array of shape S + (2,), as `make_float2` returns it.",
    "float4 dPdx": "the derivatives of (x, y, z) with respect to the screen's x, in the units of the coordinates: a "
    "tuple, or an array of shape S + (4,), as `make_float4` returns it. The fourth component is ignored, and may be "
    "missing.",
    "dPdy": "the same with respect to the screen's y.",
    "T": f'the name of the result type, such as ``"float4"``: a scalar, or a vector of 1, 2 or 4. {BASE_TYPE} By '
    f"default the result has the channels of the texture. {ABSENT_CHANNELS}",
}
DIRECTIONS = dict.fromkeys("xyz", f"{BROADCAST}: a direction of any length.")
INDICES = {
    "x": "integers of any shape S: the indices of the texels. An index outside the memory reads 0, whatever the "
    "address mode."
}
CHANNEL = {
    "comp": "an int from 0 to 3: which channel to gather. A channel that the format lacks reads 0.",
    "T": f'the name of the result type, a vector of 4 such as ``"float4"``. {BASE_TYPE}',
}
OF_READS = Text(
    summary="",
    returns="An array of shape S if T is a scalar, S + (n,) if T is a vector of n, with the dtype of T's base type.",
    gradients="To floating texels, to the border color and to floating arguments, of any order, as of "
    "`jaxtex.sample`. In hardware arithmetic they are the derivatives of the float32 read at the same position.",
    raises={
        "CudaError": "cudaErrorInvalidValue, if this function does not read textures of this kind, or if T does not "
        "fit the texture.",
        "TypeError": "if `texObject` is no texture.",
    },
)
GATHER = """Reads one channel of the four texels that a linear read at (x, y) would blend.

With (x0, y0) the texel of the smallest coordinates, the order is (x0, y1), (x1, y1), (x1, y0), (x0, y0): counter-
clockwise from the lower left in an image whose y points down. The array must have ``ArrayFlags.TextureGather``."""
OF_A_CHAIN = """
    >>> import jax.numpy as jnp
    >>> from jaxtex import cuda
    >>> mipmap = cuda.mallocMipmappedArray(cuda.createChannelDesc("float"), (4, 4, 0), 3)
    >>> for level, texels in enumerate(mipmap.levels):
    ...     mipmap = cuda.memcpyToArray(mipmap, jnp.full_like(texels, level), level=level)
    >>> desc = cuda.TextureDesc(normalizedCoords=1, maxMipmapLevelClamp=2.0)
    >>> levels = cuda.createTextureObject(cuda.ResourceDesc.MipmappedArray(mipmap), desc)
    """
EXAMPLES = {
    "tex1Dfetch": """
    >>> import jax.numpy as jnp
    >>> from jaxtex import cuda
    >>> words = cuda.createTextureObject(cuda.ResourceDesc.Linear(jnp.array([7, 8, 9])), cuda.TextureDesc())
    >>> cuda.tex1Dfetch(words, jnp.array([-1, 0, 2, 3]))
    Array([0, 7, 9, 0], dtype=int32)
    """,
    "tex2D": """
    >>> import jax.numpy as jnp
    >>> from jaxtex import cuda
    >>> rows = cuda.ResourceDesc.Pitch2D(jnp.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> image = cuda.createTextureObject(rows, cuda.TextureDesc(filterMode=cuda.FilterMode.Linear))
    >>> cuda.tex2D(image, jnp.array([0.5, 1.5]), 1.0)
    Array([1., 2.], dtype=float32)
    """,
    "tex2DLayered": """
    >>> import jax.numpy as jnp
    >>> from jaxtex import cuda
    >>> array = cuda.malloc3DArray(cuda.createChannelDesc("float"), (2, 2, 3), cuda.ArrayFlags.Layered)
    >>> array = cuda.memcpyToArray(array, jnp.arange(12.0).reshape(3, 2, 2, 1))
    >>> layers = cuda.createTextureObject(cuda.ResourceDesc.Array(array), cuda.TextureDesc())
    >>> cuda.tex2DLayered(layers, 1.5, 0.5, jnp.array([0, 2]))
    Array([1., 9.], dtype=float32)
    """,
    "texCubemap": """
    >>> import jax.numpy as jnp
    >>> from jaxtex import cuda
    >>> array = cuda.malloc3DArray(cuda.createChannelDesc("float"), (4, 4, 6), cuda.ArrayFlags.Cubemap)
    >>> faces = jnp.broadcast_to(jnp.arange(6.0)[:, None, None, None], (6, 4, 4, 1))
    >>> cube = cuda.createTextureObject(
    ...     cuda.ResourceDesc.Array(cuda.memcpyToArray(array, faces)), cuda.TextureDesc())
    >>> cuda.texCubemap(cube, jnp.array([1.0, 0.0]), 0.0, jnp.array([0.0, -3.0]))
    Array([0., 5.], dtype=float32)
    """,
    "tex2DLod": f"""{OF_A_CHAIN}>>> cuda.tex2DLod(levels, 0.5, 0.5, jnp.array([0.0, 1.0, 9.0]))
    Array([0., 1., 2.], dtype=float32)
    """,
    "tex2DGrad": f"""{OF_A_CHAIN}>>> across, down = cuda.make_float2(0.5, 0), cuda.make_float2(0, 0.25)  # 2 texels by 1
    >>> cuda.tex2DGrad(levels, 0.5, 0.5, across, down)
    Array(1., dtype=float32)
    """,
    "tex2Dgather": """
    >>> import jax.numpy as jnp
    >>> from jaxtex import cuda
    >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 3, 3, cuda.ArrayFlags.TextureGather)
    >>> array = cuda.memcpyToArray(array, jnp.array([[0.0, 1, 2], [10, 11, 12], [20, 21, 22]]))
    >>> cuda.tex2Dgather(cuda.createTextureObject(cuda.ResourceDesc.Array(array), cuda.TextureDesc()), 1.0, 1.0)
    Array([10., 11.,  1.,  0.], dtype=float32)
    """,
}
__test__ = EXAMPLES


def texture_function(
    name: str, body: Callable[[dict[str, Any]], Any], text: Text, texts: dict[str, str]
) -> Callable[..., Any]:
    text = text._replace(example=EXAMPLES.get(name, ""))
    return made(name, body, text, TYPES, TEXTS | texts, options={"T": (str | None, None)})


def texture_functions() -> dict[str, Callable[..., Any]]:
    """The functions by their names."""
    functions = {
        "tex1Dfetch": texture_function(
            "tex1Dfetch",
            fetch_texel,
            OF_READS._replace(
                summary="Reads single texels of linear memory by their integer index, without a filter.",
                gradients="To floating texels.",
            ),
            INDICES,
        ),
        "tex2Dgather": texture_function(
            "tex2Dgather",
            gather_texels,
            OF_READS._replace(
                summary=GATHER,
                returns="An array of shape S + (4,), with the dtype of T's base type.",
                gradients="To floating texels and to the border color. Those to the coordinates are zero.",
            ),
            CHANNEL,
        ),
    }
    for kind in PLACES:
        for suffix in SUFFIXES:
            name = f"tex{kind}{suffix}"
            body = functools.partial(read_filtered, name, KINDS_BY_NAME[kind])
            text = OF_READS._replace(summary=f"Reads {READS[kind]}{LEVELS[suffix]}.")
            functions[name] = texture_function(name, body, text, DIRECTIONS if "Cubemap" in kind else {})
    return functions


TEXTURE_FUNCTIONS = texture_functions()
assert TEXTURE_FUNCTIONS.keys() == {name for name in DECLARATIONS if name.startswith("tex")}
