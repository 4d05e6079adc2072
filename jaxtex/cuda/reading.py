"""From a texture function of CUDA to a read of the core: which texture, which coordinates, which type comes back."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from .._arguments import as_array
from .._engine.decoding import decode
from .._hardware.read import single
from ..modes import Arithmetic, TextureKind
from ..sampling import fetch, gather, sample
from .channels import OTHER_TYPES, parse_type
from .enums import ArrayFlags, ResourceType
from .errors import INVALID_VALUE, CudaError
from .objects import TextureObject


def read(
    function: str,
    t: TextureObject,
    kind: TextureKind,
    coords: tuple[Any, ...],
    T: str | None,
    *,
    layer: Any = None,
    lod: Any = None,
    ddx: Any = None,
    ddy: Any = None,
) -> jax.Array:
    """A filtered read of a texture of the given kind."""
    check_object(function, t)
    # A 1D read takes an image of one row too: cudaMallocArray(desc, width, 1) makes one.
    row = kind is TextureKind.TEXTURE1D and t.kind is TextureKind.TEXTURE2D and t.texture.shape[0] == 1
    if not (t.kind is kind or row) or t.resType is ResourceType.Linear:
        memory = "linear memory, which tex1Dfetch reads" if t.resType is ResourceType.Linear else t.kind.value
        raise CudaError(
            INVALID_VALUE,
            f"{function}: t is a texture of kind {memory}, expected {kind.value}; use the function of its kind.",
        )
    length = result_length(function, t, T)
    if ddx is not None:
        ddx, ddy = derivatives(function, "dPdx", ddx, len(coords)), derivatives(function, "dPdy", ddy, len(coords))
    where: dict[str, Any] = {"coords": coords, "layer": layer, "lod": lod, "ddx": ddx, "ddy": ddy}
    if t.texture.kind is not kind:
        where |= {name: (*where[name], 0.0) for name in ("coords", "ddx", "ddy") if where[name] is not None}
    return _read(t, jax.tree.map(as_array, where, is_leaf=_is_list), length=length)


def read_texel(function: str, t: TextureObject, x: Any, T: str | None) -> jax.Array:
    """A read of linear memory by index."""
    check_object(function, t)
    if t.resType is not ResourceType.Linear:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: t is a texture over a resource of type {t.resType.name}, expected linear memory; use tex1D "
            f"for an array.",
        )
    return _read_texel(t, as_array(x), length=result_length(function, t, T))


def read_gather(function: str, t: TextureObject, coords: tuple[Any, Any], comp: int, T: str | None) -> jax.Array:
    """A read of one channel of four texels."""
    check_object(function, t)
    if t.kind is not TextureKind.TEXTURE2D or not t.flags & ArrayFlags.TextureGather:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: t is a texture of kind {t.kind.value} with flags {t.flags!r}, expected a 2D array made with "
            f"ArrayFlags.TextureGather.",
        )
    if not isinstance(comp, int) or not 0 <= comp < 4:
        raise CudaError(INVALID_VALUE, f"{function}: comp is {comp!r}, expected an int from 0 to 3.")
    length = 4 if T is None else result_length(function, t, T)
    if length != 4:
        raise CudaError(INVALID_VALUE, f"{function}: T is {T!r}, expected a vector of 4: one component of each texel.")
    return _read_gather(t, tuple(as_array(c) for c in coords), comp=comp)


def check_object(function: str, t: Any) -> None:
    if not isinstance(t, TextureObject):
        raise TypeError(
            f"{function}: t is a {type(t).__name__}, expected a TextureObject; createTextureObject makes one."
        )


def result_length(function: str, t: TextureObject, T: str | None) -> int | None:
    """The vector length of the result, or None for a scalar; T must be of the format's own type."""
    if T is None:
        return t.desc.channels if t.desc.channels > 1 else None
    base, length = parse_type(function, "T", T)
    expected = t.desc.result_base(t.readMode)
    if base in OTHER_TYPES or length == 3 or base != expected:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: T is {T!r}, expected {expected} or its vectors of 1, 2 or 4: the texture is {t.desc}, read "
            f"as {t.readMode.name}.",
        )
    return length


def derivatives(function: str, argument: str, given: Any, count: int) -> tuple[Any, ...]:
    """A float, float2 or float4 of derivatives, as the core takes them."""
    given = tuple(given) if isinstance(given, tuple | list) else (given,)
    if len(given) != count and not (count == 3 and len(given) == 4):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: {argument} has {len(given)} arrays, expected {'a tuple of ' if count > 1 else ''}{count}, "
            f"one a coordinate.",
        )
    return given[:count]


@functools.partial(jax.jit, static_argnames=("length",), inline=True)
def _read(t: TextureObject, where: dict[str, Any], *, length: int | None) -> jax.Array:
    return as_type(sample(t.texture, sampler=t.sampler, dtype=result_dtype(t), **where), length)


@functools.partial(jax.jit, static_argnames=("length",), inline=True)
def _read_texel(t: TextureObject, x: Any, *, length: int | None) -> jax.Array:
    texel, decoding = fetch(t.texture, (x,)), t.sampler.decoding
    hardware = t.sampler.arithmetic is Arithmetic.HARDWARE
    return as_type(single(texel, decoding) if hardware else decode(texel, decoding, result_dtype(t)), length)


@functools.partial(jax.jit, static_argnames=("comp",), inline=True)
def _read_gather(t: TextureObject, coords: tuple[Any, Any], *, comp: int) -> jax.Array:
    if comp >= t.desc.channels:
        shape = jnp.broadcast_shapes(*(c.shape for c in coords))
        return jnp.zeros((*shape, 4), result_dtype(t))
    return gather(t.texture, coords, t.sampler, component=comp).astype(result_dtype(t))


def result_dtype(t: TextureObject) -> Any:
    """The dtype of a read: half texels are widened."""
    return jnp.dtype("float32") if t.desc.result_base(t.readMode) == "float" else t.desc.dtype


def as_type(texel: jax.Array, length: int | None) -> jax.Array:
    """The channels of a texel as a scalar or a vector; absent ones are 0, alpha too."""
    if length is None:
        return texel[..., 0]
    absent = length - texel.shape[-1]
    if absent <= 0:
        return texel[..., :length]
    return jnp.concatenate([texel, jnp.zeros((*texel.shape[:-1], absent), texel.dtype)], axis=-1)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)
