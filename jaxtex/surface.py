"""Surfaces: reads and writes of single texels by integer coordinates. A write returns a new texture."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jax.experimental import checkify
from jax.typing import ArrayLike

from ._checks.calls import public
from ._checks.dropped import watch
from ._checks.numbers import as_rounded, known_integers, narrowed, on_device, saturated
from ._checks.words import listing
from ._engine.arithmetic import READ, read_where_placed
from ._engine.compute import texel_write
from ._engine.compute.texel_value import in_wide_texels, wide_dtype
from ._engine.compute.texel_write import numbers
from ._engine.describe.axis import Axis
from ._engine.describe.plan import Layout, ReadArguments, plan_of_texels
from ._engine.describe.spec import Read
from ._engine.walk.texel_walk import only_address
from ._jax.calls import typed_jit
from ._jax.indexing import explicit_sharding, is_sharded
from ._jax.shapes import broadcast_shapes, is_symbolic
from ._reads.arguments import check_level, check_texels, check_texture, converted
from ._reads.complex_parts import by_parts
from ._tables.address_rules import BORDER, CLAMP, LAST
from ._tables.storage_formats import is_complex, real_dtype
from .modes import BoundaryMode, choose
from .sampling import Coords
from .texture import Texture, with_cut, without_cut

__all__ = ["surface_add", "surface_max", "surface_min", "surface_read", "surface_write"]
__dir__ = listing(__all__)

BoundaryModeLike = BoundaryMode | Literal["trap", "clamp", "zero"]


@public
def surface_read(
    texture: Texture,
    coords: Coords,
    *,
    layer: ArrayLike | None = None,
    face: ArrayLike | None = None,
    level: int = 0,
    boundary_mode: BoundaryModeLike = "trap",
) -> jax.Array:
    """Reads single texels by their integer coordinates.

    Args:
        texture: a `Texture` of any kind.
        coords: a tuple of integer arrays, ``(x,)``, ``(x, y)`` or ``(x, y, z)``, counted in texels, that broadcast to a
            common shape S; for a cubemap ``(x, y)`` on a face. Any value of any integer type is allowed.
        layer: integers that broadcast with S, the layer of a layered texture.
        face: integers that broadcast with S, the face of a cubemap, in the order +x, -x, +y, -y, +z, -z.
        level: the mip level, a Python integer.
        boundary_mode: what happens where a coordinate, layer or face is out of range:

            - ``"zero"``: zero is read.
            - ``"clamp"``: the nearest texel is read. A layer or face out of range, negative ones too, is the last one.
            - ``"trap"``: zero is read, and `jax.experimental.checkify.checkify` with ``user_checks`` reports an error
              that names the first coordinates out of range. Without checkify, or under a mesh with explicit axes, there
              is no error. A program with such a check runs like any other, but `jax.export` cannot serialize it.

    Returns:
        S + (C,), in the texture's dtype, the texels as they are stored.

    Gradients: of any order, in forward and reverse mode, with respect to floating or complex texels: each cotangent is
        added at its texel. Coordinates have no gradient.

    Raises:
        ValueError: if coordinates, layer, face or level do not fit the texture.
        TypeError: if coordinates, layer or face are not integers.

    Source: "Surface Memory" of the CUDA C++ Programming Guide, `suld` of the PTX ISA; x counts texels here, not bytes.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> row = jt.texture1d(jnp.array([[7], [8], [9]]))
        >>> jt.surface_read(row, (jnp.array([-1, 0, 2, 3]),), boundary_mode="clamp")[:, 0]
        Array([7, 7, 9, 9], dtype=int32)
    """
    mode, arguments = check_access("surface_read", texture, coords, layer, face, level, boundary_mode)
    return _read(texture, arguments, level=level, mode=mode)


@public
def surface_write(
    texture: Texture,
    values: ArrayLike,
    coords: Coords,
    *,
    layer: ArrayLike | None = None,
    face: ArrayLike | None = None,
    level: int = 0,
    boundary_mode: BoundaryModeLike = "trap",
    unique_indices: bool = False,
) -> Texture:
    """Returns the texture with `values` in place of the texels at integer coordinates.

    Args:
        texture: a `Texture` of any kind. It is not changed. To reuse its memory, donate it to a compiled function:
            ``jax.jit(f, donate_argnums=0)``.
        values: the new texels, of a shape that broadcasts to S + (C,). A floating texture takes any real numbers, a
            complex one complex numbers too, and rounds them to its dtype. An integer texture takes integers of its
            dtype, 64-bit integers, or Python integers. A Python or NumPy integer that does not fit is an error; an
            integer of a JAX array saturates. See `docs/surfaces.md`.
        coords, layer, face, level: as in `surface_read`.
        boundary_mode: what happens where a coordinate is out of range: ``"zero"`` drops the value, ``"clamp"`` writes
            it to the nearest texel, ``"trap"`` drops it and raises an error under checkify, as in `surface_read`.
        unique_indices: a promise that no two samples write the same texel, which makes the write faster. If the promise
            is broken, any of the samples may be kept, and gradients are wrong.

    Returns:
        A `Texture`. Where several samples write one texel, the last in the flattened (row-major) order of S is kept, on
        every backend. Under `jax.vmap` this holds for each example separately.

    Gradients: of any order, in forward and reverse mode. `values` receives the cotangent of the texel that it was
        written to, and zero where a value was overwritten or dropped. `texture` receives the cotangent of the texels
        that were not written.

    Raises:
        ValueError: if shapes, level or boundary mode do not fit the texture, or a Python or NumPy integer in `values`
            does not fit the texture's dtype.
        TypeError: if coordinates are not integers, or `values` have a dtype that the texture does not take.

    Source: as in `surface_read`; CUDA does not define the order of writes to one texel.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> row = jt.texture1d(jnp.zeros((4, 1)))
        >>> jt.surface_write(row, jnp.array([[1.0], [2.0], [3.0]]), (jnp.array([0, 2, 2]),)).texels[:, 0]
        Array([1., 0., 3., 0.], dtype=float32)
    """
    name = "surface_write"
    mode, arguments = check_access(name, texture, coords, layer, face, level, boundary_mode)
    values = check_values(name, texture, values, arguments)
    return watch(name, texture, _write(texture, values, arguments, level=level, mode=mode, unique=unique_indices))


@public
def surface_add(
    texture: Texture,
    values: ArrayLike,
    coords: Coords,
    *,
    layer: ArrayLike | None = None,
    face: ArrayLike | None = None,
    level: int = 0,
    boundary_mode: BoundaryModeLike = "trap",
) -> Texture:
    """Returns the texture with `values` added to the texels at integer coordinates: an atomic add.

    Args:
        texture, values, coords, layer, face, level, boundary_mode: as in `surface_write`.

    Returns:
        A `Texture`. All values that fall on a texel are added to it; integers wrap around at the ends of their range.

    Gradients: of any order, in forward and reverse mode. Each of `values` receives the cotangent of the texel that it
        was added to, or zero if it was dropped. `texture` receives the whole cotangent.

    Precision: float16 and bfloat16 are summed in float32 and rounded once. On a GPU the order of additions, and so
        the last bits of floating sums, may differ from run to run, also in a block of `deterministic`; with XLA's flag
        ``--xla_gpu_deterministic_ops=true`` they do not.

    Raises:
        ValueError, TypeError: as in `surface_write`; bool texels cannot be added or ordered.

    Source: the surface reduction `sured.add` of the PTX ISA.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> counts = jt.texture1d(np.zeros((3, 1), np.int32))
        >>> jt.surface_add(counts, 1, (np.array([0, 2, 2]),)).texels[:, 0]
        Array([1, 0, 2], dtype=int32)
    """
    return reduce("add", texture, values, coords, layer, face, level, boundary_mode)


@public
def surface_min(
    texture: Texture,
    values: ArrayLike,
    coords: Coords,
    *,
    layer: ArrayLike | None = None,
    face: ArrayLike | None = None,
    level: int = 0,
    boundary_mode: BoundaryModeLike = "trap",
) -> Texture:
    """Returns the texture with the minimum of texels and `values`, channel by channel: an atomic minimum.

    Args:
        texture, values, coords, layer, face, level, boundary_mode: as in `surface_write`.

    Returns:
        A `Texture`. Each texel is the least of the old texel and all values that fall on it. NaN is less than any
        number.

    Gradients: of any order, in forward and reverse mode: the least one receives the cotangent. In a tie, the texel
        itself comes first, then the values in flattened order.

    Raises:
        ValueError, TypeError: as in `surface_write`; bool texels cannot be added or ordered.

    Source: the surface reduction `sured.min` of the PTX ISA, which supports only integers.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> row = jt.texture1d(jnp.full((2, 1), 5.0))
        >>> jt.surface_min(row, jnp.array([[7.0], [4.0], [3.0]]), (jnp.array([0, 1, 1]),)).texels[:, 0]
        Array([5., 3.], dtype=float32)
    """
    return reduce("min", texture, values, coords, layer, face, level, boundary_mode)


@public
def surface_max(
    texture: Texture,
    values: ArrayLike,
    coords: Coords,
    *,
    layer: ArrayLike | None = None,
    face: ArrayLike | None = None,
    level: int = 0,
    boundary_mode: BoundaryModeLike = "trap",
) -> Texture:
    """Returns the texture with the maximum of texels and `values`, channel by channel: an atomic maximum.

    Args:
        texture, values, coords, layer, face, level, boundary_mode: as in `surface_write`.

    Returns:
        A `Texture`. Each texel is the largest of the old texel and all values that fall on it. NaN is larger than any
        number.

    Gradients: as in `surface_min`: the largest one receives the cotangent.

    Raises:
        ValueError, TypeError: as in `surface_write`; bool texels cannot be added or ordered.

    Source: the surface reduction `sured.max` of the PTX ISA, which supports only integers.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> row = jt.texture1d(np.full((2, 1), 5.0))
        >>> jt.surface_max(row, np.array([[7.0], [4.0], [3.0]]), (np.array([0, 1, 1]),)).texels[:, 0]
        Array([7., 5.], dtype=float32)
    """
    return reduce("max", texture, values, coords, layer, face, level, boundary_mode)


def check_access(
    name: str, texture: Any, coords: Any, layer: Any, face: Any, level: Any, boundary_mode: Any
) -> tuple[BoundaryMode, ReadArguments]:
    """The arguments that all accesses share."""
    check_texture(name, texture, coords)
    arguments = check_texels(name, texture.kind, "coords", coords, layer, face)
    check_level(name, texture, level)
    return choose(name, "boundary_mode", boundary_mode, BoundaryMode), arguments


def reduce(
    rule: str,
    texture: Texture,
    values: Any,
    coords: Any,
    layer: Any,
    face: Any,
    level: Any,
    boundary_mode: Any,
) -> Texture:
    name = f"surface_{rule}"
    check_texture(name, texture, coords)
    if texture.dtype == bool:
        raise TypeError(f"{name}: texture holds bool texels, expected numbers; convert them with astype.")
    if rule != "add" and is_complex(texture.dtype):
        raise TypeError(f"{name}: texture holds {texture.dtype}, and complex numbers have no order; use surface_add.")
    mode, arguments = check_access(name, texture, coords, layer, face, level, boundary_mode)
    values = check_values(name, texture, values, arguments)
    return watch(name, texture, _reduce(texture, values, arguments, rule=rule, level=level, mode=mode))


@typed_jit("level", "mode")
def _read(texture: Texture, arguments: ReadArguments, *, level: int, mode: BoundaryMode) -> jax.Array:
    if is_complex(texture.dtype):
        return by_parts(_read, texture, arguments, level=level, mode=mode)
    named = access("surface_read", texture, arguments, level, mode)

    def read(coords: tuple[jax.Array, ...], texels: jax.Array) -> jax.Array:
        read = Read(named.spec.with_dtype(texels.dtype), coords)
        out = read_where_placed(READ, texels, None, read, texture.cut)
        return jnp.broadcast_to(out, (*arguments.shape, texels.shape[-1]))

    return moved(read, named.operands, texture.texels)


@typed_jit("level", "mode", "unique")
def _write(
    texture: Texture, values: Any, arguments: ReadArguments, *, level: int, mode: BoundaryMode, unique: bool
) -> Texture:
    if is_complex(texture.dtype):
        values = spread(texture, values, arguments)
        return by_parts(_write, texture, values, arguments, level=level, mode=mode, unique=unique)
    named, given, texture = access("surface_write", texture, arguments, level, mode), texture, without_cut(texture)

    def write(coords: tuple[jax.Array, ...], texels: jax.Array, values: jax.Array) -> jax.Array:
        return written(texels, values, coords, named.spec.axes, unique=unique)

    texels = moved(write, named.operands, texture.texels, spread(texture, values, arguments))
    return with_cut(dataclasses.replace(texture, texels=texels.astype(texture.dtype)), given)


@typed_jit("rule", "level", "mode")
def _reduce(
    texture: Texture, values: jax.Array, arguments: ReadArguments, *, rule: str, level: int, mode: BoundaryMode
) -> Texture:
    if is_complex(texture.dtype):
        values = spread(texture, values, arguments)
        return by_parts(_reduce, texture, values, arguments, rule=rule, level=level, mode=mode)
    named, given, texture = access(f"surface_{rule}", texture, arguments, level, mode), texture, without_cut(texture)
    values = spread(texture, values, arguments)
    texels = written(texture.texels, values, named.operands, named.spec.axes, rule)
    return with_cut(dataclasses.replace(texture, texels=texels.astype(texture.dtype)), given)


def written(
    texels: jax.Array,
    values: jax.Array,
    coords: Sequence[jax.Array],
    axes: tuple[Axis, ...],
    rule: str = "set",
    *,
    unique: bool = False,
) -> jax.Array:
    """A write of single texels.

    Args:
        axes: the axes of the texture, all integer.
        rule: the rule by which a value changes a texel: set, add, min or max.
        unique: whether no two samples write one texel; for the rule "set".
    """
    if not is_sharded(texels) or not values.size:
        return texel_write.write(texels, values, coords, axes, rule, unique=unique)
    from ._engine.sharded.write import TexelWrite

    return TexelWrite(axes, rule, unique)(texels, values, coords)


def moved(function: Callable[..., jax.Array], coords: tuple[jax.Array, ...], *texels: jax.Array) -> jax.Array:
    """``function(coords, *texels)``, which only moves texels, on CUDA several channels at once.

    XLA fuses a copy of texels of four bytes then, which takes 0.3 of the time on a GPU; on a CPU it would take longer.
    """

    def wide(coords: tuple[jax.Array, ...], *texels: jax.Array) -> jax.Array:
        return in_wide_texels(functools.partial(function, coords), *texels)

    if wide_dtype(np.dtype(texels[0].dtype), texels[0].shape[-1]) == texels[0].dtype:
        return function(coords, *texels)
    return cast(jax.Array, jax.lax.platform_dependent(coords, *texels, cuda=wide, default=function))


def access(name: str, texture: Texture, arguments: ReadArguments, level: int, mode: BoundaryMode) -> Read:
    """The addressed texels, with the check of a trap."""
    space, layers = BORDER, BORDER
    if mode is BoundaryMode.CLAMP:
        space, layers = CLAMP, LAST
    operands = arguments.as_operands(integer=True)
    read = plan_of_texels(Layout.of(texture), operands, level, space, layers, texture.dtype)
    if mode is BoundaryMode.TRAP:
        inside = only_address(read.operands, read.spec.axes).inside
        assert inside is not None
        named = {**dict(zip("xyz", operands.coords)), "layer": operands.layer, "face": operands.face}
        report(name, inside, OUTSIDE, {key: index for key, index in named.items() if index is not None})
    return read


# Checks: the values of a write, and errors under checkify


SAMPLE_LIMIT = 2**31
OUTSIDE = "is outside the surface"


def check_values(name: str, texture: Texture, values: Any, arguments: ReadArguments) -> Any:
    """Checks the dtype of values, and that their shape broadcasts to S + (C,)."""
    values, shape = as_values(name, values, texture.dtype), (*arguments.shape, texture.num_channels)
    try:
        fits = broadcast_shapes(values.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name}: values has shape {values.shape}, expected {shape} or one that broadcasts to it: the shape of the "
            f"coordinates, and {texture.num_channels} channels."
        )
    if not is_symbolic(shape) and math.prod(shape[:-1]) >= SAMPLE_LIMIT:
        raise ValueError(f"{name}: coords has shape {shape[:-1]}, 2^31 samples or more; write in parts.")
    return values


def as_values(name: str, values: Any, stored: np.dtype[Any]) -> Any:
    """Values as an array; known integers in the dtype of the texels, which must hold them."""
    known = known_integers(values)
    if known is not None and jnp.issubdtype(stored, jnp.inexact):
        return as_rounded(known, real_dtype(stored))
    if known is not None and jnp.issubdtype(stored, jnp.integer) and is_default_integer(known, stored):
        return narrowed(name, "values", known, stored)
    array = on_device(converted(name, "values", values))
    integer = jnp.issubdtype(array.dtype, jnp.integer)
    fits = integer or jnp.issubdtype(array.dtype, jnp.inexact if is_complex(stored) else jnp.floating)
    if jnp.issubdtype(stored, jnp.integer):
        fits = integer and (is_default_integer(array, stored) or jax.typeof(array).weak_type)
    elif not jnp.issubdtype(stored, jnp.inexact):
        fits = array.dtype == stored
    if not fits:
        raise TypeError(
            f"{name}: values has dtype {array.dtype}, which {stored} texels do not hold; convert it with "
            f"values.astype(texture.dtype)."
        )
    return array


def is_default_integer(array: Any, stored: np.dtype[Any]) -> bool:
    """Whether integers have the dtype of the texels, 64 bits (NumPy's default), or are Python's."""
    return array.dtype == stored or array.dtype == object or array.dtype.itemsize == 8


def spread(texture: Texture, values: jax.Array, arguments: ReadArguments) -> jax.Array:
    """One value for each addressed texel, in the dtype of the texels. Integers saturate."""
    integers = jnp.issubdtype(texture.dtype, jnp.integer)
    values = saturated(values, texture.dtype) if integers else values.astype(texture.dtype)
    return jnp.broadcast_to(values, (*arguments.shape, texture.num_channels))


# Traps


def report(name: str, fine: jax.Array, fault: str, named: dict[str, jax.Array]) -> None:
    """Reports an error under checkify that names the first place that is not `fine`.

    Under `jax.vmap` that is the first such place of the first example that has one.
    """
    if explicit_sharding(fine) is not None:  # where checks cannot be batched
        return
    fine, *indices = jnp.broadcast_arrays(fine, *named.values())
    is_fine, number, *first = first_fault(fine, numbers(fine.shape), *indices)
    at_first = dict(zip(named, first))
    listed = ", ".join(f"{key}={{{key}}}" for key in at_first)
    checkify.debug_check(is_fine, f"{name}: sample {{number}} {fault}: {listed}.", number=number, **at_first)


@custom_vmap
def first_fault(fine: jax.Array, *arrays: jax.Array) -> tuple[jax.Array, ...]:
    """Whether all is `fine`, and the numbers of `arrays`, of the same shape, at the first place that is not."""
    place = numbers(fine.shape)
    first = jnp.min(jnp.where(fine, place.size, place), initial=place.size)
    return first == place.size, *(jnp.sum(jnp.where(place == first, a, 0), dtype=jnp.int32) for a in arrays)


@first_fault.def_vmap
def first_fault_of_batch(
    axis_size: int, in_batched: Sequence[bool], fine: jax.Array, *arrays: jax.Array
) -> tuple[Any, Any]:
    """The first fault of the first example, for the whole batch. JAX's own rule for checks names the last one."""
    whole = (
        a if batched else jnp.broadcast_to(a, (axis_size, *a.shape)) for a, batched in zip((fine, *arrays), in_batched)
    )
    fault = first_fault(*whole)
    return fault, tuple(False for _ in fault)
