"""Checks of the arguments of reads."""

from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .._checks.calls import leaves_of
from .._checks.dropped import mention_dropped
from .._checks.numbers import (
    Array,
    as_array,
    as_integer,
    as_rounded,
    is_array,
    is_integral,
    is_sequence,
    known_integers,
    saturated,
)
from .._checks.texels import check_sizes
from .._checks.words import described, shown
from .._engine.describe.plan import ReadArguments, combination
from .._engine.describe.spec import Combination
from .._jax.shapes import broadcast_shapes
from .._tables.storage_formats import is_complex, known_format
from ..modes import Arithmetic, TextureKind
from ..sampler import Sampler
from ..texture import Texture, check_stored, stacked_axes

TEXTURE_CALLS = {1: "texture1d", 2: "texture2d", 3: "texture3d"}


# In place of the sampler of a read that no texture unit carries out.
NO_SAMPLER = Sampler()


def check_texture(
    name: str,
    texture: object,
    coords: object = None,
    argument: str = "texture",
    *,
    takes_knots: bool = False,
    sampler: Sampler | None = NO_SAMPLER,
) -> None:
    """Checks a `Texture`, which may not be stacked.

    Args:
        coords: the coordinates of the read, which tell the kind of texture that an array should be.
        takes_knots: whether the function takes a texture whose axes have knots.
        sampler: of a read that a texture unit can carry out, by this sampler or by that of a bound texture.
    """
    if not isinstance(texture, Texture):
        raise TypeError(
            f"{name}: {argument} is {described(texture)}, expected a Texture; {texture_call(texture, coords)}."
        )
    # Texels that only a texture unit has can be read in no other way.
    mention_dropped(name, texture)
    texels: Any = texture.texels
    is_given_up = texture.sampler is not None and texels is None
    if is_given_up and (sampler or texture.sampler) != texture.sampler:
        raise ValueError(
            f"{name}: {argument} was bound with keep_texels=False, and {name} reads its texels here, for only sample "
            "and gather with the sampler of the texture are reads of the texture unit; bind it with keep_texels=True."
        )
    # One texture, of a dtype that can be stored.
    came, in_chain = f"{name}: {argument}.texels", bool(texture.level_shapes)
    if not is_given_up and stacked_axes(came, texture.texels, texture.kind, in_chain=in_chain):
        raise ValueError(
            f"{name}: {argument}.texels has shape {texture.texels.shape}, a stack of textures of kind "
            f"{texture.kind.value!r}; read it under jax.vmap."
        )
    if texels is not None:
        check_sizes(f"{came} has shape {texels.shape}", texels.shape[int(texture.kind.layered and not in_chain) :])
    if known_format(texture.dtype) is None:
        check_stored(f"{name}: {argument}.texels", texture.dtype)
    if texture.knots is not None and not takes_knots:
        raise ValueError(
            f"{name}: {argument} has knots, which {name} does not use; pass dataclasses.replace({argument}, "
            f"knots=None), and coordinates in texels from jaxtex.positions."
        )


def texture_call(value: object, coords: object) -> str:
    """The call that makes a texture of an array."""
    of_numbers = is_sequence(value) and not any(map(is_array, leaves_of(value)))
    ndim = np.ndim(cast(Any, value)) if is_array(value) or of_numbers else None
    count = len(coords) if is_sequence(coords) else None
    if count not in TEXTURE_CALLS:
        count = None if ndim is None else ndim - 1
    if ndim is None or count not in TEXTURE_CALLS or ndim not in (count, count + 1):
        return "make one with jaxtex.texture2d(array) or another constructor"
    array = "array[..., None]" if ndim == count else "array"
    return f"make one with jaxtex.{TEXTURE_CALLS[count]}({array})"


def check_key(name: str, key: Any) -> Any:
    """One random key: typed, or of two or more uint32."""
    if is_array(key):
        if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.ndim == 0:
            return key
        if key.dtype == np.uint32 and key.ndim == 1:
            return key
        came = f"an array of shape {key.shape} and dtype {key.dtype}"
    else:
        came = described(key)
    raise TypeError(f"{name}: key is {came}, expected one random key; make it with jax.random.key(seed).")


def check_draws(name: str, key: Any, sampler: Sampler) -> Any:
    """One random key or `None`, and a sampler whose reads are means of texels, one of which can be drawn."""
    if key is None:
        return None
    if sampler.arithmetic is Arithmetic.HARDWARE:
        raise ValueError(
            f"{name}: key is given with arithmetic='hardware', and no texture unit draws texels; leave key out, or use "
            "arithmetic='float'."
        )
    if combination(sampler) is Combination.LIMITED:
        raise ValueError(
            f"{name}: key is given with limit={str(sampler.limit)!r}, and a limited read is no mean of texels that "
            "could be drawn; leave key or limit out."
        )
    return check_key(name, key)


def check_third_side(name: str, ddz: Any, sampler: Sampler) -> None:
    """A footprint of three sides is one of float arithmetic."""
    if ddz is not None and sampler.arithmetic is Arithmetic.HARDWARE:
        raise ValueError(
            f"{name}: ddz is given with arithmetic='hardware', and no texture unit takes a third side; leave ddz out, "
            "or use arithmetic='float'."
        )


def check_dtype(name: str, dtype: Any, own: np.dtype) -> np.dtype:
    """The caller's dtype for a result, which must hold the values of a read of dtype `own`."""
    if dtype is None:
        return np.dtype(own)
    dtype = check_known_dtype(name, dtype)
    kind = "complex" if is_complex(own) else "floating"
    holds = is_complex(dtype) if is_complex(own) else jnp.issubdtype(dtype, jnp.floating)
    if not jnp.issubdtype(own, jnp.inexact):
        holds = holds or (np.can_cast(own, dtype, "safe") and not is_complex(dtype))
    if not holds:
        raise ValueError(
            f"{name}: dtype is {dtype}, which does not hold the {np.dtype(own)} values of this read; pass a {kind} "
            f"dtype, or leave dtype out and convert the result."
        )
    return dtype


def check_known_dtype(name: str, dtype: Any) -> np.dtype:
    """The caller's dtype in JAX."""
    try:
        return np.dtype(jax.dtypes.canonicalize_dtype(dtype))
    except (TypeError, ValueError):
        raise TypeError(f"{name}: dtype is {shown(dtype)}, expected the name of a dtype such as 'float32'.") from None


def as_sharding(name: str, sharding: Any) -> NamedSharding:
    """A sharding over explicit axes of its own mesh, or of the mesh in use if it names none."""
    if not isinstance(sharding, P | NamedSharding):
        raise TypeError(
            f"{name}: out_sharding is a {type(sharding).__name__}, expected a jax.sharding.PartitionSpec or "
            f"NamedSharding."
        )
    alone = isinstance(sharding, P)
    mesh, spec = (jax.sharding.get_abstract_mesh(), sharding) if alone else (sharding.mesh, sharding.spec)
    types = dict(zip(mesh.axis_names, mesh.axis_types))
    entries = cast("list[tuple[Any, ...]]", [entry if isinstance(entry, tuple) else (entry,) for entry in spec])
    for names in entries:
        for axis in names:
            if axis is not None and types.get(axis) is not jax.sharding.AxisType.Explicit:
                raise ValueError(
                    f"{name}: out_sharding names {axis!r}, which is no explicit axis of the mesh in use, "
                    f"{mesh.axis_names}; make a mesh with axis_types=(jax.sharding.AxisType.Explicit,), and set it by "
                    f"jax.set_mesh."
                )
    return NamedSharding(mesh, spec)


def check_read_arguments(
    name: str,
    kind: TextureKind,
    coords: Any,
    layer: Any,
    lod: Any = None,
    ddx: Any = None,
    ddy: Any = None,
    ddz: Any = None,
) -> ReadArguments:
    """The unconverted arrays, of the right number and kind; `as_operands` converts them inside the compiled call."""
    # The arrays that the kind of texture takes.
    count = kind.ndim
    coords = check_arrays(name, "coords", kind, count, coords, check_number)
    layer = check_layer(name, kind, layer)
    # What chooses the level: nothing, a level, or two sides of a footprint, three in a volume.
    if (ddx is None) != (ddy is None):
        given, other = ("ddx", "ddy") if ddy is None else ("ddy", "ddx")
        raise ValueError(f"{name}: {given} is given and {other} is not, and a footprint needs both; add {other}.")
    if ddz is not None and (kind is not TextureKind.TEXTURE3D or ddx is None):
        raise ValueError(
            f"{name}: ddz is given, the third side of a voxel's footprint, which belongs to a texture3d with ddx and "
            f"ddy; leave ddz out, or add ddx and ddy."
        )
    if lod is not None and ddx is not None:
        raise ValueError(f"{name}: lod and ddx, ddy are given, and each chooses the level; leave one out.")
    # Numbers, whose shapes broadcast.
    lod = None if lod is None else check_number(name, "lod", lod)
    sides = (("ddx", ddx), ("ddy", ddy), ("ddz", ddz))
    ddx, ddy, ddz = (None if d is None else check_arrays(name, side, kind, count, d, check_number) for side, d in sides)
    return check_shapes(name, "coords", ReadArguments(coords, layer, lod=lod, ddx=ddx, ddy=ddy, ddz=ddz))


def check_texels(
    name: str, kind: TextureKind, argument: str, indices: Any, layer: Any, face: Any = None
) -> ReadArguments:
    """The indices of single texels, as `check_read_arguments` takes coordinates."""
    indices = check_arrays(name, argument, kind, kind.texel_ndim, indices, check_integer)
    layer = check_layer(name, kind, layer)
    if kind.is_cube and face is None:
        raise ValueError(f"{name}: face is missing, and a texture of kind {kind.value!r} has six; pass face=0.")
    if not kind.is_cube and face is not None:
        raise ValueError(f"{name}: face is given, but a texture of kind {kind.value!r} has none; leave face out.")
    face = None if face is None else check_integer(name, "face", face)
    return check_shapes(name, argument, ReadArguments(indices, layer, face))


def check_level(name: str, texture: Texture, level: Any) -> int:
    return as_integer(name, "level", level, 0, texture.num_levels - 1)


def check_arrays(
    name: str, argument: str, kind: TextureKind, count: int, arrays: Any, check: Callable[[str, str, Any], Any]
) -> tuple[Any, ...]:
    """A tuple of `count` arrays, each checked."""
    if not is_sequence(arrays):
        raise TypeError(stacked_coords(name, argument, arrays))
    if len(arrays) != count:
        expected = ", ".join("xyz"[:count]) + ("," if count == 1 else "")
        raise ValueError(
            f"{name}: {argument} has {len(arrays)} arrays, expected ({expected}) for a texture of kind {kind.value!r}."
        )
    return tuple(check(name, argument, a) for a in arrays)


def check_layer(name: str, kind: TextureKind, layer: Any) -> Any:
    """A layer where the kind has layers, and only there."""
    if kind.layered and layer is None:
        raise ValueError(f"{name}: layer is missing, and a texture of kind {kind.value!r} needs one; pass layer=0.")
    if not kind.layered and layer is not None:
        raise ValueError(f"{name}: layer is given, but a texture of kind {kind.value!r} has none; leave layer out.")
    return None if layer is None else check_integer(name, "layer", layer)


def check_shapes(name: str, argument: str, arguments: ReadArguments) -> ReadArguments:
    """Arrays that broadcast."""
    try:
        broadcast_shapes(*(a.shape for a in jax.tree.leaves(arguments)))
    except ValueError:
        given = ((field, value) for field, value in zip(arguments._fields, arguments) if value is not None)
        shapes = ", ".join(f"{field} {[a.shape for a in jax.tree.leaves(value)]}" for field, value in given)
        raise ValueError(
            f"{name}: the arrays of {argument} and the arrays given with them do not broadcast: {shapes}; pass equal "
            f"sizes, or 1."
        ) from None
    return arguments


def check_coords(name: str, coords: Any) -> None:
    if not is_sequence(coords):
        raise TypeError(stacked_coords(name, "coords", coords))


def stacked_coords(name: str, argument: str, coords: Any) -> str:
    return (
        f"{name}: {argument} is {described(coords)}, expected a tuple of arrays such as (x, y); split a stacked "
        f"array with tuple(jnp.unstack({argument}, axis=-1))."
    )


def check_number(name: str, argument: str, coord: Any) -> Any:
    """Numbers as an array. Integers outside of JAX arrays become float32 here, before JAX narrows them to 32 bits."""
    if is_sequence(coord):
        raise TypeError(f"{name}: {argument} holds a {type(coord).__name__}, expected an array; use jnp.asarray.")
    array = converted(name, argument, coord)
    if not (jnp.issubdtype(array.dtype, jnp.floating) or is_integral(array)):
        raise TypeError(f"{name}: {argument} holds {array.dtype}, expected floating or integer arrays.")
    if isinstance(array, np.ndarray) and is_integral(array):
        return as_rounded(cast(Array, array), np.float32)
    return cast(Any, array)


def check_integer(name: str, argument: str, index: Any, *, wrap_unsigned: bool = False) -> Any:
    """Integers of any width as an array; as int32 unless they are a JAX array.

    They saturate here, since JAX narrows other arrays to 32 bits when they enter a compiled function. `as_operands`
    saturates JAX arrays.

    Args:
        wrap_unsigned: whether unsigned integers, of JAX arrays too, become int32 modulo 2^32 instead, as C converts
            them.
    """
    array = converted(name, argument, index)
    if not is_integral(array):
        raise TypeError(f"{name}: {argument} holds {array.dtype}, expected integers; round them and use .astype(int).")
    if wrap_unsigned and not isinstance(index, int) and jnp.issubdtype(array.dtype, jnp.unsignedinteger):
        return array.astype(np.int32)
    return saturated(array, np.int32) if isinstance(array, np.ndarray) else array


def converted(name: str, argument: str, value: Any) -> Any:
    """A number or anything that JAX takes for an array, as an array. Known integers keep their width."""
    if isinstance(value, jax.Array):
        return value
    try:
        known = known_integers(value)
        return as_array(value) if known is None else known
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}: {argument} holds {described(value)}, expected a number or an array.") from None
