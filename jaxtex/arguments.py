"""What callers pass, checked: every error is a sentence that says what came, what was expected and how to mend it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .axis import Axis
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


def check_coords(name: str, kind: TextureKind, coords: Any, layer: Any, argument: str = "coords") -> tuple[Any, ...]:
    """Coordinates and layer in stored order, as they came: `as_operands` converts them, inside the compiled call."""
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
        arrays = [check_integer(name, argument, c) for c in coords]
    else:
        arrays = [check_number(name, argument, c) for c in coords]
    arrays = ([check_integer(name, "layer", layer)] if kind.layered else []) + arrays[::-1]
    try:
        jnp.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays[::-1])
        raise ValueError(f"{name}: {argument} (and layer) have shapes {shapes}, which do not broadcast.") from None
    return tuple(arrays)


def as_operands(coords: tuple[Any, ...], axes: tuple[Axis, ...]) -> tuple[jax.Array, ...]:
    """Checked coordinates as the engine takes them: int32 on integer axes, else one floating dtype; of one rank.

    Integers, weak types and 16-bit floats become float32, a strong float64 stays. Called under `jax.jit`.
    """
    arrays = [as_index(c) if axis.integer else as_float(c) for c, axis in zip(coords, axes)]
    widest = sum_dtype(*(a.dtype for a in arrays))
    arrays = [a if axis.integer else a.astype(widest) for a, axis in zip(arrays, axes)]
    rank = max(a.ndim for a in arrays)
    return tuple(jnp.expand_dims(a, tuple(range(rank - a.ndim))) for a in arrays)


def stacked_coords(name: str, argument: str, coords: Any) -> str:
    return (
        f"{name}: {argument} is a {type(coords).__name__}, expected a tuple of arrays such as (x, y); split a stacked "
        f"array with tuple(jnp.unstack({argument}, axis=-1))."
    )


def as_array(value: Any) -> Any:
    """`value` as it is if it is an array, else as one."""
    return value if isinstance(value, jax.Array | np.ndarray) else jnp.asarray(value)


def check_number(name: str, argument: str, coord: Any) -> Any:
    array = as_array(coord)
    if not (jnp.issubdtype(array.dtype, jnp.floating) or jnp.issubdtype(array.dtype, jnp.integer)):
        raise TypeError(f"{name}: {argument} holds {array.dtype}, expected floating or integer arrays.")
    return array


def check_integer(name: str, argument: str, index: Any) -> Any:
    array = as_array(index)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(f"{name}: {argument} holds {array.dtype}, expected integers; round them and use .astype(int).")
    return array


def as_float(coord: Any) -> jax.Array:
    array = jnp.asarray(coord)
    return array if array.dtype == jnp.float64 and not jax.typeof(array).weak_type else array.astype(jnp.float32)


def as_index(index: Any) -> jax.Array:
    """Integers of any width as int32; what does not fit saturates, and stays out of range."""
    array = jnp.asarray(index)
    low, high = jnp.iinfo(jnp.int32).min, jnp.iinfo(jnp.int32).max
    if jnp.iinfo(array.dtype).max > high:
        array = jnp.minimum(array, high)
    if jnp.iinfo(array.dtype).min < low:
        array = jnp.maximum(array, low)
    return array.astype(jnp.int32)
