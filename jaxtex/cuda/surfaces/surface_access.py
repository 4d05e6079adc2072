"""Accesses of the core from calls of CUDA's surface functions: bytes along x become units of the access's size.

An access of n bytes divides each row into whole units of n bytes; bytes left at the end of a row are out of reach.
Where a unit has the size of a texel or the dtype of the channels, the texels are accessed as they are, and gradients
pass; elsewhere their bytes are reinterpreted.
"""

import dataclasses
import functools
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from ... import texture as core
from ..._checks.dropped import mention_dropped, watch
from ..._checks.numbers import known_integers
from ..._engine.describe.arguments import ReadArguments
from ..._jax.calls import typed_jit
from ..._jax.versions import is_x64, stack
from ..._reads.arguments import check_integer
from ..._tables.address_rules import clamp, is_inside, last
from ...modes import TextureKind
from ...surface import OUTSIDE, report, surface_add, surface_max, surface_min, surface_read, surface_write
from ..enums import Error, SurfaceBoundaryMode
from ..errors import CudaError, choose, invalid
from ..kinds import TEXTURE_KINDS
from ..memory.arrays import Array, will_be_written
from ..memory.channel_formats import BASE_TYPES, ChannelFormatDesc, parse_type
from ..memory.numbers import as_numbers, bit_cast, is_literal, word_dtype
from .surface_objects import array_of_kind

# Types of 64 bits, of accesses but not of channels.
WIDE_DTYPES = {"long": "int64", "longlong": "int64", "ulong": "uint64", "ulonglong": "uint64"}
MAX_BYTES = 16
# The names of types by their dtypes: what CUDA deduces as T from the data of a write.
TYPE_NAMES = {row.dtype: name for name, row in BASE_TYPES.items()} | {"int64": "longlong", "uint64": "ulonglong"}
# The least of bits is their conjunction, the largest their disjunction.
BITWISE = ("and", "or")
REDUCTIONS = {"add": surface_add, "min": surface_min, "max": surface_max, "and": surface_min, "or": surface_max}
COORDINATES = ("x", "y", "z", "layer", "face", "layerFace")


class Access(NamedTuple):
    """One access: of a number of `dtype`, or of a vector of `length` of them."""

    dtype: np.dtype
    length: int | None

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.dtype.itemsize * (self.length or 1)


def read_units(function: str, kind: TextureKind, given: dict[str, Any]) -> jax.Array:
    """A read of a surface of `kind`, by the arguments of a surface function."""
    array, access, mode, coords = check_access(function, kind, given)
    indices = check_indices(function, coords, access, is_named=given["T"] is not None)
    mention_dropped(function, array)
    return _read_units(array, indices, function=function, access=access, mode=mode)


def write_units(function: str, kind: TextureKind, given: dict[str, Any]) -> Array:
    """The array after a write to a surface of `kind`, by the arguments of a surface function."""
    array, access, mode, coords = check_access(function, kind, given)
    # First of all: where T is not the type of data, x counts other bytes.
    values = check_type_of(function, given["data"], access, coords)
    indices = check_indices(function, coords, access, is_named=given["T"] is not None)
    check_shape(function, values, indices, access)
    will_be_written(function, array)
    return watch(function, array, _write_units(array, values, indices, function=function, access=access, mode=mode))


def check_access(
    function: str, kind: TextureKind, given: dict[str, Any]
) -> tuple[Array, Access, SurfaceBoundaryMode, tuple[Any, ...]]:
    """The array of an access, its `Access`, its boundary mode, and its coordinates, which are not checked."""
    array = array_of_kind(function, given["surfObject"], kind)
    access, mode = access_of(function, array.desc, given["T"]), check_boundary_mode(function, given["boundaryMode"])
    return array, access, mode, tuple(given[name] for name in COORDINATES if name in given)


def access_of(function: str, desc: ChannelFormatDesc, T: str | None) -> Access:
    """The access that T names, by default that of a whole texel."""
    if T is None:
        return Access(desc.dtype, desc.numbers if desc.numbers > 1 else None)
    base, length = parse_type(function, "T", T)
    name = BASE_TYPES[base].dtype if base in BASE_TYPES else WIDE_DTYPES.get(base)
    access = Access(jnp.dtype(name or "uint8"), length)
    if name is None or length == 3 or access.size > MAX_BYTES:
        raise invalid(
            f"{function}: T is {T!r}, expected a type of 8, 16, 32 or 64 bits, alone or as a vector of 1, 2 or 4, of "
            f"{MAX_BYTES} bytes at most."
        )
    if access.dtype.itemsize == 8 and not is_x64():
        raise invalid(
            f"{function}: T is {T!r}, and 64-bit numbers are disabled; use 'int2' or 'uint2', which have the same "
            f"bytes, or enable 64-bit numbers with jax_enable_x64."
        )
    return access


def check_boundary_mode(function: str, mode: object) -> SurfaceBoundaryMode:
    """The boundary mode that a caller names."""
    return choose(function, "boundaryMode", SurfaceBoundaryMode, mode)


def check_indices(
    function: str, coords: tuple[ArrayLike, ...], access: Access, *, is_named: bool = True
) -> tuple[jax.Array, ...]:
    """Arrays of integers. An x that is known must be a multiple of the size of the access.

    Unsigned integers are converted to int as C converts them.

    Args:
        is_named: whether the type of the access is given, and not that of the texels.
    """
    x: Any
    x, *others = (check_integer(function, name, c, wrap_unsigned=True) for name, c in zip("xyz", coords))
    wrong = first_misaligned(known_integers(coords[0]), x, access.size)
    if wrong is not None:
        raise CudaError(
            Error.MisalignedAddress,
            f"{function}: x holds {wrong}, expected multiples of {access.size}, the size of the access; x counts "
            f"bytes: multiply the numbers of texels by {access.size}"
            f"{'' if is_named else ', or name the type of the access with T'}.",
        )
    if isinstance(x, np.ndarray):
        x = cast(Any, x - x % access.size)  # where x saturated
    return cast(tuple[jax.Array, ...], (x, *others))


def first_misaligned(known: np.ndarray | None, x: Any, size: int) -> int | None:
    """The first number of x that is known and no multiple of `size`; `known` holds the numbers in their own width."""
    if size == 1 or isinstance(x, Tracer):
        return None
    if known is None:
        with jax.ensure_compile_time_eval():  # an array that a jitted function closes over is known too
            known = np.asarray(x) if _any_misaligned(x, size=size) else np.zeros(0, int)
    wrong = np.ravel(known)[np.ravel(known % size != 0)]  # one integer of more than 64 bits gives a bool
    return int(wrong[0]) if wrong.size else None


@typed_jit("size", inline=False)
def _any_misaligned(x: jax.Array, *, size: int) -> jax.Array:
    return (x % size != 0).any()


def check_type_of(
    function: str, data: Any, access: Access, coords: Sequence[Any], types: Collection[str] = TYPE_NAMES.values()
) -> Any:
    """The values of a write, which must have the dtype of the access.

    Args:
        coords: the coordinates; data with more axes holds vectors.
        types: the base types that the function takes as T.
    """
    values = data_of(function, data, access.dtype)
    if values.dtype != access.dtype:
        name, remedy = TYPE_NAMES.get(values.dtype.name), f"convert the numbers with data.astype(jnp.{access.dtype})"
        if name in types and (values.dtype.itemsize < 8 or is_x64()):
            is_vector = values.ndim > max(map(np.ndim, coords)) or isinstance(data, tuple)
            length = values.shape[-1] if is_vector and values.shape[-1] in (2, 4) else ""
            remedy = (
                f"CUDA deduces the type from data: pass T={f'{name}{length}'!r} to store its bytes, where x is a "
                f"multiple of their number; or {remedy}"
            )
        raise invalid(
            f"{function}: data has dtype {values.dtype}, expected {access.dtype}: a store converts nothing; {remedy}."
        )
    return values


def check_shape(function: str, values: Any, indices: tuple[jax.Array, ...], access: Access) -> None:
    """Refuses values that do not broadcast to the shape of the coordinates, with vectors along the last axis."""
    shape = np.broadcast_shapes(*(index.shape for index in indices))
    vector = () if access.length is None else (access.length,)
    if not broadcasts_to(values.shape, shape + vector) or values.shape[-1:][: len(vector)] != vector:
        raise invalid(
            f"{function}: data has shape {values.shape}, expected one that broadcasts to {shape + vector}, the shape "
            f"of the coordinates{', and has the whole vector along its last axis' if vector else ''}."
        )


def data_of(function: str, data: Any, dtype: np.dtype) -> Any:
    """The values of a write, of `dtype` where its numbers may stand for those of `dtype`. A tuple holds components."""
    if not isinstance(data, tuple) or is_literal(data):
        return as_numbers(function, "data", data, dtype)
    components = [as_numbers(function, "data", component, dtype) for component in cast(tuple[Any, ...], data)]
    return stack(jnp.broadcast_arrays(*components), axis=-1)


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of `shape` broadcasts to the shape `target`."""
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


@typed_jit("function", "access", "mode")
def _read_units(
    array: Array, coords: tuple[jax.Array, ...], *, function: str, access: Access, mode: SurfaceBoundaryMode
) -> jax.Array:
    surface = as_surface(array, access)
    indices, layer = unit_indices(function, surface, coords, access.size, mode)
    numbers = bit_cast(surface_read(surface, indices, boundary_mode="zero", layer=layer), access.dtype)
    return numbers if access.length else numbers[..., 0]


@typed_jit("function", "access", "mode")
def _write_units(
    array: Array,
    data: jax.Array,
    coords: tuple[jax.Array, ...],
    *,
    function: str,
    access: Access,
    mode: SurfaceBoundaryMode,
) -> Array:
    data = jnp.asarray(data, access.dtype)
    return store_units(array, data if access.length else data[..., None], coords, function, access, mode)


def store_units(
    array: Array,
    data: jax.Array,
    coords: tuple[jax.Array, ...],
    function: str,
    access: Access,
    mode: SurfaceBoundaryMode,
    *,
    in_bytes: bool = True,
) -> Array:
    """The array after a write of units, S + (length,), at an x in bytes or in units."""
    surface = as_surface(array, access)
    indices, layer = unit_indices(function, surface, coords, access.size if in_bytes else 1, mode)
    values = bit_cast(data, np.dtype(surface.dtype))
    written = surface_write(surface, values, indices, boundary_mode="zero", layer=layer)
    return dataclasses.replace(array, texels=as_texels(array, access, written))


@typed_jit("function", "access", "mode", "op", "in_bytes")
def reduce_units(
    array: Array,
    data: jax.Array,
    coords: tuple[jax.Array, ...],
    *,
    function: str,
    access: Access,
    mode: SurfaceBoundaryMode,
    op: str,
    in_bytes: bool,
) -> Array:
    """The array after numbers are reduced into its units, at an x in bytes or in units."""
    surface = as_surface(array, access)
    indices, layer = unit_indices(function, surface, coords, access.size if in_bytes else 1, mode)
    units, values = bit_cast(surface.texels, access.dtype), jnp.asarray(data, access.dtype)[..., None]
    if op in BITWISE:  # a channel for each bit
        units, values = bits_of(units), bits_of(values)
    reduce = REDUCTIONS[op]
    reduced = reduce(dataclasses.replace(surface, texels=units), values, indices, boundary_mode="zero", layer=layer)
    texels = of_bits(reduced.texels, access.dtype) if op in BITWISE else reduced.texels
    return dataclasses.replace(array, texels=as_texels(array, access, dataclasses.replace(surface, texels=texels)))


def bits_of(numbers: jax.Array) -> jax.Array:
    """The bits of 32-bit numbers, along the last axis, which had one element."""
    words = jax.lax.bitcast_convert_type(numbers, jnp.uint32)
    return ((words >> jnp.arange(32, dtype=jnp.uint32).reshape(*(1,) * (words.ndim - 1), 32)) & 1).astype(jnp.uint8)


def of_bits(bits: jax.Array, dtype: np.dtype) -> jax.Array:
    """The numbers of these bits, along a last axis of one element."""
    shifts = jnp.arange(32, dtype=jnp.uint32).reshape(*(1,) * (bits.ndim - 1), 32)
    words = (bits.astype(jnp.uint32) << shifts).sum(-1, keepdims=True, dtype=jnp.uint32)
    return jax.lax.bitcast_convert_type(words, dtype)


def units_per_row(array: Array, access: Access) -> int:
    """The number of whole units in a row."""
    return array.extent.width * array.desc.texel_bytes // access.size


def as_surface(array: Array, access: Access) -> core.Texture:
    """The array as a texture whose texels are units of the access. A row without a unit gets one unit of zeros."""
    texels = array.texels
    if access.size != array.desc.texel_bytes:
        row = rows_of(texels)
        stored, count = np.dtype(row.dtype), units_per_row(array, access)
        if count:
            row = row[..., : count * access.size // stored.itemsize]
            row = row if stored == access.dtype else bit_cast(row, word_dtype(access.dtype))
        else:
            word = word_dtype(access.dtype)
            row = jnp.zeros((*row.shape[:-1], access.size // word.itemsize), word)
        texels = row.reshape(*row.shape[:-1], max(count, 1), row.shape[-1] // max(count, 1))
    # A face is a layer, and face f of layer l of a layered cubemap is layer 6 l + f.
    return TEXTURE_KINDS[TextureKind.TEXTURE2D_LAYERED if array.kind.is_cube else array.kind].build(texels)


def rows_of(texels: jax.Array) -> jax.Array:
    """The texels as rows of numbers."""
    return texels.reshape(*texels.shape[:-2], texels.shape[-2] * texels.shape[-1])


def as_texels(array: Array, access: Access, written: core.Texture) -> jax.Array:
    """The texels of the array after a write to its units."""
    texels = array.texels
    if access.size == array.desc.texel_bytes:
        return bit_cast(written.texels, np.dtype(texels.dtype))
    if not units_per_row(array, access):
        return texels
    row = bit_cast(rows_of(written.texels), np.dtype(texels.dtype))
    rest = rows_of(texels)[..., row.shape[-1] :]
    return jnp.concatenate([row, rest], axis=-1).reshape(texels.shape)


def unit_indices(
    function: str, surface: core.Texture, coords: tuple[jax.Array, ...], step: int, mode: SurfaceBoundaryMode
) -> tuple[tuple[jax.Array, ...], jax.Array | None]:
    """The indices of units, and their layer if the surface has layers.

    A unit is `step` along x. Indices are clamped if the mode is Clamp. The index of a misaligned access is -1 along x,
    which is outside the surface.
    """
    operands = ReadArguments(coords).as_operands(integer=True).coords
    x, *others = operands
    aligned = (coords[0] % step == 0).reshape(x.shape)  # of an x of any width, since saturation may misalign it
    named = dict(zip("xyz", operands))
    indices, sizes = [x // step, *others], surface.shape[-2::-1]
    if mode is SurfaceBoundaryMode.Clamp:
        rules = [clamp] * surface.kind.ndim + [last]
        indices = [rule(index, n)[0] for rule, index, n in zip(rules, indices, sizes)]
    if step > 1:
        report(function, aligned, f"has an x that is no multiple of the {step} bytes of its access", named)
    if mode is SurfaceBoundaryMode.Trap:
        report(function, functools.reduce(jnp.logical_and, map(is_inside, indices, sizes)), OUTSIDE, named)
    indices[0] = jnp.where(aligned, indices[0], -1)
    return tuple(indices[: surface.kind.ndim]), indices[-1] if surface.kind.layered else None
