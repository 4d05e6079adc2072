"""What callers pass, checked: every error is a sentence that says what came, what was expected and how to mend it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ._engine.formats import sum_dtype
from .modes import Arithmetic, FilterMode, ReadMode, TextureKind
from .sampler import Sampler
from .texture import AXIS_NAMES, Texture


def infer_kind(kind: str | None, ndim: int, layer: Any) -> TextureKind:
    """The kind of texture that is read with `ndim` coordinates, with or without a layer."""
    if kind is not None:
        try:
            return TextureKind(kind)
        except ValueError:
            listed = ", ".join(repr(k.value) for k in TextureKind)
            raise ValueError(f"splat: kind is {kind!r}, expected one of {listed}.") from None
    for option in TextureKind:
        if option.ndim == ndim and option.layered == (layer is not None) and not option.is_cube:
            return option
    layered = " and a layer" if layer is not None else ""
    raise ValueError(f"splat: coords has {ndim} arrays{layered}, and no kind of texture is read so.")


def check_texture(name: str, texture: Any) -> None:
    if not isinstance(texture, Texture):
        raise TypeError(
            f"{name}: texture is a {type(texture).__name__}, expected a Texture; make one with "
            f"jaxtex.texture2d(array) or its siblings."
        )
    ndim = 2 if texture.level_shapes else len(AXIS_NAMES[texture.kind]) + 1
    if texture.texels.ndim != ndim:
        raise ValueError(
            f"{name}: texture.texels has shape {texture.texels.shape}, expected {ndim} axes for kind "
            f"{texture.kind.value!r}; read a stack of textures under jax.vmap."
        )


def check_sampler(name: str, kind: TextureKind, stored: Any, num_levels: int, sampler: Sampler) -> None:
    """A filter needs numbers with fractions, a mip chain coordinates that fit every level, a seam two taps an axis."""
    integer = jnp.issubdtype(stored, jnp.integer)
    if integer and sampler.read_mode is ReadMode.ELEMENT and sampler.filter_mode is not FilterMode.POINT:
        raise ValueError(
            f"{name}: filter_mode={str(sampler.filter_mode)!r} cannot blend {stored} texels read as elements; use "
            f"read_mode='normalized_float' (8 and 16 bits), filter_mode='point', or convert the texels to float32."
        )
    blended = num_levels > 1 and sampler.mipmap_filter_mode is not FilterMode.POINT
    if integer and sampler.read_mode is ReadMode.ELEMENT and blended:
        raise ValueError(
            f"{name}: mipmap_filter_mode='linear' cannot blend {stored} texels read as elements; use "
            f"mipmap_filter_mode='point'."
        )
    if num_levels > 1 and not sampler.normalized_coords and not kind.is_cube:
        raise ValueError(
            f"{name}: normalized_coords=False, but the texture has {num_levels} mip levels of different sizes; use "
            f"normalized coordinates."
        )
    if kind.is_cube and sampler.seamless_cubemap and sampler.filter_mode is FilterMode.CUBIC:
        raise ValueError(
            f"{name}: filter_mode='cubic' reaches more than one texel across the seams of a cubemap; use 'linear', or "
            f"seamless_cubemap=False."
        )
    if sampler.arithmetic is Arithmetic.HARDWARE and stored.name in ("float64", "bfloat16"):
        raise ValueError(
            f"{name}: arithmetic='hardware' reads no {stored.name}, which no texture unit has; use "
            f"arithmetic='float', or convert the texels to float32."
        )


class ReadArguments(NamedTuple):
    """Where a read looks, and how coarsely: the caller's arrays, in the caller's order."""

    coords: tuple[Any, ...]
    layer: Any = None
    face: Any = None
    lod: Any = None
    ddx: tuple[Any, ...] | None = None
    ddy: tuple[Any, ...] | None = None


def check_where(
    name: str,
    kind: TextureKind,
    coords: Any,
    layer: Any,
    lod: Any = None,
    ddx: Any = None,
    ddy: Any = None,
) -> ReadArguments:
    """The arrays as they came, of the right number and kind: `as_operands` converts them, inside the compiled call."""
    count = kind.ndim
    coords = check_arrays(name, "coords", kind, count, coords, check_number)
    layer = check_layer(name, kind, layer)
    if (ddx is None) != (ddy is None):
        given, other = ("ddx", "ddy") if ddy is None else ("ddy", "ddx")
        raise ValueError(f"{name}: {given} is given and {other} is not, and a footprint needs both; add {other}.")
    if lod is not None and ddx is not None:
        raise ValueError(f"{name}: lod and ddx, ddy are given, and each chooses the level; leave one out.")
    lod = None if lod is None else check_number(name, "lod", lod)
    sides = (("ddx", ddx), ("ddy", ddy))
    ddx, ddy = (None if d is None else check_arrays(name, side, kind, count, d, check_number) for side, d in sides)
    return check_shapes(name, "coords", ReadArguments(coords, layer, lod=lod, ddx=ddx, ddy=ddy))


def check_texels(
    name: str, kind: TextureKind, argument: str, indices: Any, layer: Any, face: Any = None
) -> ReadArguments:
    """The indices of single texels, as `check_where` takes coordinates."""
    indices = check_arrays(name, argument, kind, kind.texel_ndim, indices, check_integer)
    layer = check_layer(name, kind, layer)
    if kind.is_cube and face is None:
        raise ValueError(f"{name}: face is missing, and a texture of kind {kind.value!r} has six; pass face=0.")
    if not kind.is_cube and face is not None:
        raise ValueError(f"{name}: face is given, but a texture of kind {kind.value!r} has none; leave face out.")
    face = None if face is None else check_integer(name, "face", face)
    return check_shapes(name, argument, ReadArguments(indices, layer, face))


def check_level(name: str, texture: Texture, level: Any) -> None:
    if not isinstance(level, int) or not 0 <= level < texture.num_levels:
        raise ValueError(f"{name}: level is {level!r}, expected an int from 0 to {texture.num_levels - 1}.")


def check_arrays(
    name: str, argument: str, kind: TextureKind, count: int, arrays: Any, check: Callable[[str, str, Any], Any]
) -> tuple[Any, ...]:
    """A tuple of `count` arrays, each checked."""
    if not isinstance(arrays, tuple | list):
        raise TypeError(stacked_coords(name, argument, arrays))
    if len(arrays) != count:
        wanted = ", ".join("xyz"[:count]) + ("," if count == 1 else "")
        raise ValueError(
            f"{name}: {argument} has {len(arrays)} arrays, expected ({wanted}) for a texture of kind {kind.value!r}."
        )
    return tuple(check(name, argument, a) for a in arrays)


def check_layer(name: str, kind: TextureKind, layer: Any) -> Any:
    """A layer where the kind has layers, and only there."""
    if kind.layered and layer is None:
        raise ValueError(f"{name}: layer is missing, and a texture of kind {kind.value!r} needs one; pass layer=0.")
    if not kind.layered and layer is not None:
        raise ValueError(f"{name}: layer is given, but a texture of kind {kind.value!r} has none; leave layer out.")
    return None if layer is None else check_integer(name, "layer", layer)


def check_shapes(name: str, argument: str, where: ReadArguments) -> ReadArguments:
    """Arrays that broadcast."""
    try:
        common_shape(where)
    except ValueError:
        shapes = ", ".join(f"{field} {[a.shape for a in jax.tree.leaves(value)]}" for field, value in given_of(where))
        raise ValueError(
            f"{name}: the shapes of {argument} and what goes with it do not broadcast: {shapes}."
        ) from None
    return where


def given_of(where: ReadArguments) -> list[tuple[str, Any]]:
    return [(field, value) for field, value in zip(where._fields, where) if value is not None]


def common_shape(where: ReadArguments) -> tuple[int, ...]:
    """The shape S that everything broadcasts to."""
    return np.broadcast_shapes(*(a.shape for a in jax.tree.leaves(where)))


def as_operands(where: ReadArguments, *, integer: bool = False) -> ReadArguments:
    """Checked arrays as the engine takes them: layers and `integer` coordinates int32, all else of one floating dtype;
    of one rank.

    Integers, weak types and 16-bit floats become float32, a strong float64 stays. Called under `jax.jit`.
    """
    layer, rest = where.layer, where._replace(layer=None)
    if integer:
        rest = jax.tree.map(as_index, rest)
    else:
        rest = jax.tree.map(as_float, rest)
        widest = sum_dtype(*(a.dtype for a in jax.tree.leaves(rest)))
        rest = jax.tree.map(lambda a: a.astype(widest), rest)
    where = rest._replace(layer=None if layer is None else as_index(layer))
    rank = max(a.ndim for a in jax.tree.leaves(where))
    return jax.tree.map(lambda a: jnp.expand_dims(a, tuple(range(rank - a.ndim))), where)


def stacked_coords(name: str, argument: str, coords: Any) -> str:
    return (
        f"{name}: {argument} is a {type(coords).__name__}, expected a tuple of arrays such as (x, y); split a stacked "
        f"array with tuple(jnp.unstack({argument}, axis=-1))."
    )


def as_array(value: Any) -> Any:
    """`value` as it is if it is an array, else as one."""
    return value if isinstance(value, jax.Array | np.ndarray) else jnp.asarray(value)


def check_number(name: str, argument: str, coord: Any) -> Any:
    if isinstance(coord, tuple | list):
        raise TypeError(f"{name}: {argument} is a {type(coord).__name__}, expected an array; use jnp.asarray.")
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
