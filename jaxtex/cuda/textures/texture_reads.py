"""Turns calls of CUDA's texture functions into reads of the core: checks, coordinates, and the type of the result."""

# pyright: strict, reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ..._checks.arguments import as_array, check_integer, check_number
from ..._checks.integers import known_integers
from ..._engine.compute.decoding import decode
from ..._hardware.read import single
from ..._jax.calls import typed_jit
from ...modes import Arithmetic, TextureKind
from ...sampling import fetch, gather, sample
from ..enums import ArrayFlags, ResourceType
from ..errors import check_index, invalid
from ..memory.channel_formats import OTHER_TYPES, parse_type
from .texture_objects import TextureObject, is_readable_as
from .texture_references import BoundTexture, as_object

# What texture functions read.
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
    if t.texture.kind is not kind:  # a row that is stored as an image of height 1: y is 0
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
    """The derivatives of `count` coordinates, from a tuple or a vector. A fourth of three, as in float4, is dropped."""
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
    return with_length(sample(t.texture, sampler=t.sampler, dtype=result_dtype(t), **arguments), length)


@typed_jit("length")
def _fetch_texel(t: TextureObject, x: jax.Array, *, length: int | None) -> jax.Array:
    texel, decoding = fetch(t.texture, (x,)), t.sampler.decoding
    hardware = t.sampler.arithmetic is Arithmetic.HARDWARE
    return with_length(single(texel, decoding) if hardware else decode(texel, decoding, result_dtype(t)), length)


@typed_jit("comp")
def _gather_texels(t: TextureObject, coords: tuple[jax.Array, jax.Array], *, comp: int) -> jax.Array:
    if comp >= t.desc.channels:
        shape = np.broadcast_shapes(*(c.shape for c in coords))
        return jnp.zeros((*shape, 4), result_dtype(t))
    return gather(t.texture, coords, t.sampler, component=comp).astype(result_dtype(t))


def result_dtype(t: TextureObject) -> np.dtype:
    """The dtype of a read. Half texels are read as float32."""
    return jnp.dtype("float32") if t.desc.result_base(t.readMode) == "float" else t.desc.dtype


def with_length(texel: jax.Array, length: int | None) -> jax.Array:
    """The channels of a texel as a scalar or as a vector, in which absent channels are 0, alpha too."""
    if length is None:
        return texel[..., 0]
    absent = length - texel.shape[-1]
    if absent <= 0:
        return texel[..., :length]
    return jnp.concatenate([texel, jnp.zeros((*texel.shape[:-1], absent), texel.dtype)], axis=-1)
