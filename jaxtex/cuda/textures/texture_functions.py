"""The texture functions of device code: each kind of texture with each way to give a level of detail.

They take arrays: one call makes the reads of a whole launch, in one read of the core.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ..._checks.numbers import as_array, known_integers
from ..._engine.compute.texel_value import decode, ratio
from ..._hardware.read import single
from ..._jax.calls import typed_jit
from ..._jax.primitives import straight_through
from ..._jax.shapes import broadcast_shapes
from ..._reads.arguments import check_integer, check_number
from ...modes import Arithmetic, BlockFormat, FilterMode, TextureKind
from ...sampling import fetch, gather, sample
from ..declarations import DECLARATIONS, PLACES, SUFFIXES
from ..enums import ArrayFlags, ResourceType
from ..errors import check_index, invalid
from ..functions import Text, made
from ..kinds import KINDS_BY_NAME
from ..memory.channel_formats import OTHER_TYPES, parse_type
from .texture_objects import TextureObject, is_readable_as
from .texture_references import BoundTexture, as_object

# The arguments of texture functions.
Texture = TextureObject | BoundTexture
# Derivatives of the coordinates: a float, a float2, a float3 or a float4.
Derivatives = ArrayLike | tuple[ArrayLike, ...]


def read_filtered(function: str, kind: TextureKind, given: dict[str, Any]) -> jax.Array:
    """A filtered read of a texture of the given kind, by the arguments of a texture function."""
    t = as_object(function, given["texObject"])
    is_linear = t.resType is ResourceType.Linear
    if is_linear or not is_readable_as(t, kind):
        memory = "linear memory, which tex1Dfetch reads" if is_linear else t.kind.value
        raise invalid(
            f"{function}: texObject is a texture of kind {memory}, expected {kind.value}; use the function of its kind."
        )
    length = result_length(function, t, given["T"])
    coords = tuple(as_number(function, name, given[name]) for name in "xyz" if name in given)
    arguments: dict[str, Any] = {**dict.fromkeys(("layer", "lod", "ddx", "ddy")), "coords": coords}
    if "layer" in given:
        arguments["layer"] = check_integer(function, "layer", given["layer"], wrap_unsigned=True)
    if "level" in given:
        arguments["lod"] = as_number(function, "level", given["level"])
    if "dPdx" in given:
        arguments["ddx"] = split_derivatives(function, "dPdx", given["dPdx"], len(coords))
        arguments["ddy"] = split_derivatives(function, "dPdy", given["dPdy"], len(coords))
    if t.texture.kind is not kind:  # a row, stored as an image of height 1
        tuples = {name: arguments[name] for name in ("coords", "ddx", "ddy") if arguments[name] is not None}
        arguments |= {name: (*arrays, 0.0) for name, arrays in tuples.items()}
    return _read_filtered(t, arguments, length=length)


def fetch_texel(given: dict[str, Any]) -> jax.Array:
    """A read of linear memory by index, by the arguments of `tex1Dfetch`."""
    function = "tex1Dfetch"
    t = as_object(function, given["texObject"])
    if t.resType is not ResourceType.Linear:
        raise invalid(
            f"{function}: texObject is a texture over a resource of type {t.resType.name}, expected linear memory; use "
            f"tex1D for an array."
        )
    index = check_integer(function, "x", given["x"], wrap_unsigned=True)
    return _fetch_texel(t, index, length=result_length(function, t, given["T"]))


def gather_texels(given: dict[str, Any]) -> jax.Array:
    """A read of one channel of four texels, by the arguments of `tex2Dgather`."""
    function, T = "tex2Dgather", given["T"]
    t = as_object(function, given["texObject"])
    if t.kind is not TextureKind.TEXTURE2D or not t.flags & ArrayFlags.TextureGather:
        raise invalid(
            f"{function}: texObject is a texture of kind {t.kind.value} with flags {t.flags!r}, expected a 2D array "
            f"made with ArrayFlags.TextureGather."
        )
    comp = check_index(function, "comp", given["comp"], 4)
    if T is not None and result_length(function, t, T) != 4:
        raise invalid(f"{function}: T is {T!r}, expected a vector of 4: one component of each texel.")
    x, y = (as_number(function, name, given[name]) for name in "xy")
    return _gather_texels(t, (x, y), comp=comp)


def result_length(function: str, t: TextureObject, T: str | None) -> int | None:
    """The vector length of the result, or None for a scalar. The base type of T must be that of the read."""
    if T is None:
        return t.desc.channels if t.desc.channels > 1 else None
    base, length = parse_type(function, "T", T)
    expected = t.desc.result_base(t.readMode)
    if base in OTHER_TYPES or length == 3 or base != expected:
        raise invalid(
            f"{function}: T is {T!r}, expected {expected} or a vector of 1, 2 or 4 of it: the texture has the format "
            f"{t.desc} and the readMode {t.readMode.name}."
        )
    return length


def as_number(function: str, argument: str, value: Any) -> Any:
    """A coordinate, a level or a derivative as an array; a list is accepted in its place."""
    if isinstance(value, list):
        known = known_integers(value)
        value = as_array(cast(Any, value)) if known is None else known
    return check_number(function, argument, value)


def split_derivatives(function: str, argument: str, derivatives: Derivatives, count: int) -> tuple[Any, ...]:
    """The derivatives of `count` coordinates, from a tuple or a vector. The fourth component of a float4 is dropped."""
    if isinstance(derivatives, tuple | list):  # a list is accepted in place of a tuple
        arrays = tuple(as_number(function, argument, array) for array in cast(Sequence[Any], derivatives))
        came = f"a tuple of {len(arrays)}"
    else:
        whole = as_number(function, argument, derivatives)
        arrays = (whole,) if count == 1 else jnp.unstack(whole, axis=-1) if whole.shape else ()
        came = f"an array of shape {whole.shape}"
    if len(arrays) != count and not (count == 3 and len(arrays) == 4):
        name = f"float{2 if count == 2 else 4}"
        vector = "" if count == 1 else f", or an array with a {name} along its last axis, as make_{name} returns it"
        raise invalid(
            f"{function}: {argument} is {came}, expected a tuple of {count}, one for each coordinate{vector}."
        )
    return tuple(arrays[:count])


@typed_jit("length")
def _read_filtered(t: TextureObject, arguments: dict[str, Any], *, length: int | None) -> jax.Array:
    texel = sample(t.texture, sampler=t.sampler, dtype=result_dtype(t), **arguments)
    between_levels = t.texture.num_levels > 1 and t.sampler.mipmap_filter_mode is FilterMode.LINEAR
    blends = t.sampler.filter is FilterMode.LINEAR or between_levels or t.sampler.max_anisotropy > 1
    return with_length(texel if blends else of_codes(t, texel), length, t.absentAlpha)


@typed_jit("length")
def _fetch_texel(t: TextureObject, x: jax.Array, *, length: int | None) -> jax.Array:
    texel, decoding = fetch(t.texture, (x,)), t.sampler.decoding
    hardware = t.sampler.arithmetic is Arithmetic.HARDWARE
    value = single(texel, decoding) if hardware else decode(texel, decoding, result_dtype(t))
    return with_length(of_codes(t, value), length)


@typed_jit("comp")
def _gather_texels(t: TextureObject, coords: tuple[jax.Array, jax.Array], *, comp: int) -> jax.Array:
    if comp >= t.desc.channels:
        shape = broadcast_shapes(*(c.shape for c in coords))
        return jnp.full((*shape, 4), t.absentAlpha if comp == 3 else 0, result_dtype(t))
    return gather(t.texture, coords, t.sampler, component=comp).astype(result_dtype(t))


def of_codes(t: TextureObject, texel: jax.Array) -> jax.Array:
    """An unblended texel: a texture unit divides codes of 10 bits themselves, but blends them as 16 bits."""
    if t.desc.block_format is not BlockFormat.RGB10A2:
        return texel
    colors = straight_through(nearest_code, same, texel[..., :3])
    return jnp.concatenate([colors, texel[..., 3:]], -1)


def nearest_code(color: jax.Array) -> jax.Array:
    return ratio(jnp.round(color * 1023), 10, np.dtype(np.float32))


def same(color: jax.Array) -> jax.Array:
    return color


def result_dtype(t: TextureObject) -> np.dtype:
    """The dtype of a read. Half texels are read as float32."""
    return jnp.dtype("float32") if t.desc.result_base(t.readMode) == "float" else t.desc.dtype


def with_length(texel: jax.Array, length: int | None, alpha: int = 0) -> jax.Array:
    """The channels of a texel as a scalar or as a vector, in which absent channels are 0, and alpha is `alpha`."""
    if length is None:
        return texel[..., 0]
    absent = length - texel.shape[-1]
    if absent <= 0:
        return texel[..., :length]
    vector = jnp.concatenate([texel, jnp.zeros((*texel.shape[:-1], absent), texel.dtype)], axis=-1)
    return vector.at[..., 3].set(alpha) if alpha and length == 4 else vector


TYPES: dict[str, Any] = {
    "cudaTextureObject_t": Texture,
    **dict.fromkeys(("float", "int"), ArrayLike),
    **dict.fromkeys(("float2", "float4"), Derivatives),
}
# The texels that the functions of each kind read.
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
    >>> import jax.numpy as jnp, jaxtex.cuda as cuda
    >>> mipmap = cuda.mallocMipmappedArray(cuda.createChannelDesc("float"), (4, 4, 0), 3)
    >>> for level, texels in enumerate(mipmap.levels):
    ...     mipmap = cuda.memcpyToArray(mipmap, jnp.full_like(texels, level), level=level)
    >>> desc = cuda.TextureDesc(normalizedCoords=1, maxMipmapLevelClamp=2.0)
    >>> levels = cuda.createTextureObject(cuda.ResourceDesc.MipmappedArray(mipmap), desc)
    """
EXAMPLES = {
    "tex1Dfetch": """
    >>> import jax.numpy as jnp, jaxtex.cuda as cuda
    >>> words = cuda.createTextureObject(cuda.ResourceDesc.Linear(jnp.array([7, 8, 9])), cuda.TextureDesc())
    >>> cuda.tex1Dfetch(words, jnp.array([-1, 0, 2, 3]))
    Array([0, 7, 9, 0], dtype=int32)
    """,
    "tex2D": """
    >>> import jax.numpy as jnp, jaxtex.cuda as cuda
    >>> rows = cuda.ResourceDesc.Pitch2D(jnp.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> image = cuda.createTextureObject(rows, cuda.TextureDesc(filterMode=cuda.FilterMode.Linear))
    >>> cuda.tex2D(image, jnp.array([0.5, 1.5]), 1.0)
    Array([1., 2.], dtype=float32)
    """,
    "tex2DLayered": """
    >>> import jax.numpy as jnp, jaxtex.cuda as cuda
    >>> array = cuda.malloc3DArray(cuda.createChannelDesc("float"), (2, 2, 3), cuda.ArrayFlags.Layered)
    >>> array = cuda.memcpyToArray(array, jnp.arange(12.0).reshape(3, 2, 2, 1))
    >>> layers = cuda.createTextureObject(cuda.ResourceDesc.Array(array), cuda.TextureDesc())
    >>> cuda.tex2DLayered(layers, 1.5, 0.5, jnp.array([0, 2]))
    Array([1., 9.], dtype=float32)
    """,
    "texCubemap": """
    >>> import jax.numpy as jnp, jaxtex.cuda as cuda
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
    >>> import jax.numpy as jnp, jaxtex.cuda as cuda
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
