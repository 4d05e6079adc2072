"""What callers pass, checked: every error is a sentence that says what came, what was expected and how to mend it."""

from typing import Any

import jax
import jax.numpy as jnp

from .formats import sum_dtype
from .modes import FilterMode, ReadMode, TextureKind
from .sampler import Sampler
from .texture import AXIS_NAMES, Texture


def check_no_lod(name: str, **given: Any) -> None:
    """Mip chains do not exist yet, so nothing may choose a level."""
    for argument, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name}: {argument} is given, but mip chains are not supported so far; leave {argument} out."
            )


def infer_kind(kind: str | None, ndim: int, layer: Any) -> TextureKind:
    """The kind of texture that is read with `ndim` coordinates, with or without a layer."""
    if kind is not None:
        try:
            return TextureKind(kind)
        except ValueError:
            listed = ", ".join(repr(k.value) for k in TextureKind)
            raise ValueError(f"splat: kind is {kind!r}, expected one of {listed}.") from None
    for option in TextureKind:
        if option.ndim == ndim and option.layered == (layer is not None):
            return option
    layered = " and a layer" if layer is not None else ""
    raise ValueError(f"splat: coords has {ndim} arrays{layered}, and no kind of texture is read so.")


def check_texture(name: str, texture: Any) -> None:
    if not isinstance(texture, Texture):
        raise TypeError(
            f"{name}: texture is a {type(texture).__name__}, expected a Texture; make one with "
            f"jaxtex.texture2d(array) or its siblings."
        )
    ndim = len(AXIS_NAMES[texture.kind]) + 1
    if texture.texels.ndim != ndim:
        raise ValueError(
            f"{name}: texture.texels has shape {texture.shape}, expected {ndim} axes for kind "
            f"{texture.kind.value!r}; read a stack of textures under jax.vmap."
        )


def check_filter(name: str, stored: Any, sampler: Sampler) -> None:
    """A filter needs numbers with fractions."""
    integer = jnp.issubdtype(stored, jnp.integer)
    if integer and sampler.read_mode is ReadMode.ELEMENT and sampler.filter_mode is not FilterMode.POINT:
        raise ValueError(
            f"{name}: filter_mode={str(sampler.filter_mode)!r} cannot blend {stored} texels read as elements; use "
            f"read_mode='normalized_float' (8 and 16 bits), filter_mode='point', or convert the texels to float32."
        )


def check_coords(
    name: str, kind: TextureKind, coords: Any, layer: Any, argument: str = "coords"
) -> tuple[jax.Array, ...]:
    """Coordinates and layer as the engine takes them: in stored order, of one rank and one floating dtype."""
    if not isinstance(coords, tuple | list):
        raise TypeError(stacked_coords(name, argument, coords))
    if len(coords) != kind.ndim:
        wanted = ", ".join("xyz"[: kind.ndim]) + ("," if kind.ndim == 1 else "")
        raise ValueError(
            f"{name}: {argument} has {len(coords)} arrays, expected ({wanted}) for a texture of kind {kind.value!r}."
        )
    if kind.layered and layer is None:
        raise ValueError(f"{name}: layer is missing, and a texture of kind {kind.value!r} needs one; pass layer=0.")
    if not kind.layered and layer is not None:
        raise ValueError(f"{name}: layer is given, but a texture of kind {kind.value!r} has none; leave layer out.")
    if argument == "indices":
        arrays = [as_index(name, argument, c) for c in coords]
    else:
        arrays = [as_coordinate(name, argument, c) for c in coords]
        common = sum_dtype(*(c.dtype for c in arrays))
        arrays = [c.astype(common) for c in arrays]
    arrays = ([as_index(name, "layer", layer)] if kind.layered else []) + arrays[::-1]
    try:
        rank = len(jnp.broadcast_shapes(*(a.shape for a in arrays)))
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays[::-1])
        raise ValueError(f"{name}: {argument} (and layer) have shapes {shapes}, which do not broadcast.") from None
    return tuple(jnp.expand_dims(a, tuple(range(rank - a.ndim))) for a in arrays)


def stacked_coords(name: str, argument: str, coords: Any) -> str:
    return (
        f"{name}: {argument} is a {type(coords).__name__}, expected a tuple of arrays such as (x, y); split a stacked "
        f"array with tuple(jnp.unstack({argument}, axis=-1))."
    )


def as_coordinate(name: str, argument: str, coord: Any) -> jax.Array:
    """Integers, weak types and 16-bit floats become float32; a strong float64 stays."""
    array = jnp.asarray(coord)
    if not (jnp.issubdtype(array.dtype, jnp.floating) or jnp.issubdtype(array.dtype, jnp.integer)):
        raise TypeError(f"{name}: {argument} holds {array.dtype}, expected floating or integer arrays.")
    weak = jax.typeof(array).weak_type
    return array if array.dtype == jnp.float64 and not weak else array.astype(jnp.float32)


def as_index(name: str, argument: str, index: Any) -> jax.Array:
    """Integers of any width as int32; what does not fit saturates, and stays out of range."""
    array = jnp.asarray(index)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(f"{name}: {argument} holds {array.dtype}, expected integers; round them and use .astype(int).")
    info = jnp.iinfo(array.dtype)
    if info.max > 2**31 - 1:
        array = jnp.minimum(array, 2**31 - 1)
    if info.min < -(2**31):
        array = jnp.maximum(array, -(2**31))
    return array.astype(jnp.int32)
