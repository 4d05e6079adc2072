"""From a surface function of CUDA to an access of the core: bytes along x become units of the size of the access.

An access of n bytes sees each row as a row of whole units of n bytes; what is left at its end is out of reach. Where
the unit is a texel, or has the type of the channels, the array is seen as it is, and gradients pass; else its bytes
are reinterpreted.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import texture as core
from .._arguments import ReadArguments, as_array, as_operands, check_integer
from .._tables.address_rules import CLAMP, LAST, is_inside
from ..modes import TextureKind
from ..surface import OUTSIDE, report, surface_read, surface_write
from .arrays import Array
from .bits import reinterpreted, words
from .channels import BASE_TYPES, DTYPES, ChannelFormatDesc, parse_type
from .enums import SurfaceBoundaryMode
from .errors import INVALID_VALUE, MISALIGNED_ADDRESS, CudaError, choose
from .objects import BUILDERS
from .surfaces import array_of

# 64 bits, which channels do not have but accesses do.
WIDE_DTYPES = {"long": "int64", "longlong": "int64", "ulong": "uint64", "ulonglong": "uint64"}
MOST_BYTES = 16


class Access(NamedTuple):
    """What one access moves: numbers of `dtype`, one, or a vector of `length`."""

    dtype: np.dtype
    length: int | None

    @property
    def size(self) -> int:
        """In bytes."""
        return self.dtype.itemsize * (self.length or 1)


def read(function: str, surface: Any, kind: TextureKind, coords: tuple[Any, ...], mode: Any, T: str | None):
    """A read of a surface of `kind` at x in bytes, and y, z, layer or face."""
    array = array_of(function, surface, kind)
    access, mode = access_of(function, array.desc, T), boundary_mode(function, mode)
    coords = check_coords(function, coords, access)
    return _read(array, coords, function=function, access=access, mode=mode)


def write(function: str, data: Any, surface: Any, kind: TextureKind, coords: tuple[Any, ...], mode: Any, T: str | None):
    """A write, likewise: the array that it leaves."""
    array = array_of(function, surface, kind)
    access, mode = access_of(function, array.desc, T), boundary_mode(function, mode)
    coords = check_coords(function, coords, access)
    data = check_data(function, data, np.broadcast_shapes(*(c.shape for c in coords)), access)
    return _write(array, data, coords, function=function, access=access, mode=mode)


def access_of(function: str, desc: ChannelFormatDesc, T: str | None) -> Access:
    """What T names; by default the texel of the format."""
    if T is None:
        return Access(desc.dtype, desc.channels if desc.channels > 1 else None)
    base, length = parse_type(function, "T", T)
    name = DTYPES[BASE_TYPES[base]] if base in BASE_TYPES else WIDE_DTYPES.get(base)
    access = Access(jnp.dtype(name or "uint8"), length)
    if name is None or length == 3 or access.size > MOST_BYTES:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: T is {T!r}, expected a type of 8, 16, 32 or 64 bits, alone or as a vector of 1, 2 or 4, of "
            f"{MOST_BYTES} bytes at most.",
        )
    if access.dtype.itemsize == 8 and not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        raise CudaError(
            INVALID_VALUE,
            f"{function}: T is {T!r}, and 64-bit numbers are disabled; use 'int2' or 'uint2', the same bytes, or "
            f"enable them with jax_enable_x64.",
        )
    return access


def boundary_mode(function: str, mode: Any) -> SurfaceBoundaryMode:
    return choose(function, "boundaryMode", SurfaceBoundaryMode, mode)


def check_coords(function: str, coords: tuple[Any, ...], access: Access) -> tuple[Any, ...]:
    """Integers; an x that is known now must be a multiple of the size of the access."""
    known = not isinstance(coords[0], jax.Array)
    arrays = tuple(check_integer(function, name, c) for name, c in zip(("x", "y", "z"), coords))
    if known and (np.asarray(coords[0]) % access.size).any():
        raise CudaError(
            MISALIGNED_ADDRESS,
            f"{function}: x is {coords[0]!r}, expected multiples of {access.size}, the size of the access: x counts "
            f"bytes.",
        )
    return arrays


def check_data(function: str, data: Any, shape: tuple[int, ...], access: Access) -> Any:
    """The values of a write: of the type of the access, and of its vectors."""
    data, vector = as_array(data), () if access.length is None else (access.length,)
    if data.dtype != access.dtype and not (jax.typeof(data).weak_type and data.dtype.kind == access.dtype.kind):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: data has dtype {data.dtype}, expected {access.dtype}: a store converts nothing. Convert "
            f"numbers with data.astype, or name what data holds with T.",
        )
    try:
        fits = (
            np.broadcast_shapes(data.shape, shape + vector) == shape + vector
            and data.shape[-1:][: len(vector)] == vector
        )
    except ValueError:
        fits = False
    if not fits:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: data has shape {data.shape}, expected {shape + vector}: the shape of the coordinates"
            f"{', and the vector' if vector else ''}.",
        )
    return data


@functools.partial(jax.jit, static_argnames=("function", "access", "mode"), inline=True)
def _read(
    array: Array, coords: tuple[Any, ...], *, function: str, access: Access, mode: SurfaceBoundaryMode
) -> jax.Array:
    surface = units(array, access)
    place = unit_coords(function, surface, coords, access.size, mode)
    unit = surface_read(surface, place[: surface.kind.ndim], boundary_mode="zero", **layer_of(surface, place))
    numbers = reinterpreted(unit, access.dtype)
    return numbers if access.length else numbers[..., 0]


@functools.partial(jax.jit, static_argnames=("function", "access", "mode"), inline=True)
def _write(
    array: Array, data: Any, coords: tuple[Any, ...], *, function: str, access: Access, mode: SurfaceBoundaryMode
) -> Array:
    data = jnp.asarray(data, access.dtype)
    return store_units(array, data if access.length else data[..., None], coords, function, access, mode)


def store_units(
    array: Array,
    data: jax.Array,
    coords: tuple[Any, ...],
    function: str,
    access: Access,
    mode: SurfaceBoundaryMode,
    *,
    in_bytes: bool = True,
) -> Array:
    """The array after a write of units, S + (length,), at x in bytes or in units."""
    surface = units(array, access)
    place = unit_coords(function, surface, coords, access.size if in_bytes else 1, mode)
    options = {"boundary_mode": "zero", **layer_of(surface, place)}
    data = reinterpreted(data, np.dtype(surface.dtype))
    written = surface_write(surface, data, place[: surface.kind.ndim], **options)
    return dataclasses.replace(array, texels=as_texels(array, access, written))


def unit_count(array: Array, access: Access) -> int:
    """How many whole units a row has."""
    return array.extent.width * array.desc.texel_bytes // access.size


def units(array: Array, access: Access) -> core.Texture:
    """The array with a unit of the access in place of a texel; with one unit of zeros where a row has none."""
    texels = array.texels
    if access.size != array.desc.texel_bytes:
        row = texels.reshape(*texels.shape[:-2], -1)
        stored, count = np.dtype(row.dtype), unit_count(array, access)
        if count:
            row = row[..., : count * access.size // stored.itemsize]
            row = row if stored == access.dtype else reinterpreted(row, words(access.dtype))
        else:
            row = jnp.zeros((*row.shape[:-1], access.length or 1), access.dtype)
        texels = row.reshape(*row.shape[:-1], max(count, 1), -1)
    # A face is a layer: of cubemap layers 6 layer + face.
    return BUILDERS[TextureKind.TEXTURE2D_LAYERED if array.kind.is_cube else array.kind](texels)


def as_texels(array: Array, access: Access, written: core.Texture) -> jax.Array:
    """The texels of the array after a write to its units."""
    texels = array.texels
    if access.size == array.desc.texel_bytes:
        return written.texels
    if not unit_count(array, access):
        return texels
    row = reinterpreted(written.texels.reshape(*written.shape[:-2], -1), np.dtype(texels.dtype))
    rest = texels.reshape(*texels.shape[:-2], -1)[..., row.shape[-1] :]
    return jnp.concatenate([row, rest], axis=-1).reshape(texels.shape)


def layer_of(surface: core.Texture, place: tuple[jax.Array, ...]) -> dict[str, Any]:
    return {"layer": place[-1]} if surface.kind.layered else {}


def unit_coords(
    function: str, surface: core.Texture, coords: tuple[Any, ...], step: int, mode: SurfaceBoundaryMode
) -> tuple[jax.Array, ...]:
    """The place of each unit, `step` along x, clamped if the mode says so; -1 along x where it is misaligned."""
    coords = as_operands(ReadArguments(coords), integer=True).coords
    x, *others = coords
    named, aligned, place = dict(zip("xyz", coords)), x % step == 0, [x // step, *others]
    sizes = surface.shape[-2::-1]
    if mode is SurfaceBoundaryMode.Clamp:
        rules = [CLAMP] * surface.kind.ndim + [LAST]
        place = [rule.index(c, n)[0] for rule, c, n in zip(rules, place, sizes)]
    if step > 1:
        report(function, aligned, f"has an x that is no multiple of the {step} bytes of its access", named)
    if mode is SurfaceBoundaryMode.Trap:
        inside = functools.reduce(jnp.logical_and, map(is_inside, place, sizes))
        report(function, inside, OUTSIDE, named)
    return (jnp.where(aligned, place[0], -1), *place[1:])
