"""Formatted stores: from floats or 32-bit integers to what a channel holds, as the hardware of surfaces converts.

The rules were measured on an H200; every recorded value is reproduced.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._arguments import as_array, check_integer
from ..._engine.primitives import straight_through
from ..enums import SurfaceBoundaryMode
from ..errors import INVALID_VALUE, CudaError
from ..memory.arrays import Array
from ..memory.channel_formats import FLOAT, SIGNED, ChannelFormatDesc
from .surface_access import Access, boundary_mode, broadcasts_to, store_units
from .surface_objects import backing


def store(function: str, data: Any, surface: Any, coords: tuple[Any, ...], mode: Any) -> Array:
    """A write of texels at x in texels, and y, z, layer or face."""
    array = backing(function, surface)
    count = array.kind.texel_ndim + (array.kind.layered or array.kind.is_cube)
    if len(coords) != count:
        raise CudaError(
            INVALID_VALUE, f"{function}: {len(coords)} coordinates, expected {count} for kind {array.kind.value!r}."
        )
    mode = boundary_mode(function, mode)
    coords = tuple(check_integer(function, name, c) for name, c in zip("xyz", coords))
    data, expected = as_array(data), source_dtype(array.desc)
    shape = np.broadcast_shapes(*(c.shape for c in coords))
    if data.dtype != expected or data.ndim == 0 or data.shape[-1] not in (1, 2, 4):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: data has dtype {data.dtype} and shape {data.shape}, expected {expected} with 1, 2 or 4 "
            f"components at the end for the format {array.desc}.",
        )
    if not broadcasts_to(data.shape[:-1], shape):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: data has shape {data.shape}, expected one that broadcasts to {(*shape, data.shape[-1])}, the "
            f"shape of the coordinates and the number of components.",
        )
    return _store(array, data, coords, function=function, mode=mode)


def source_dtype(desc: ChannelFormatDesc) -> np.dtype:
    """What a format is stored from."""
    kind, _ = desc.storage
    if kind is FLOAT or desc.is_normalized:
        return jnp.dtype("float32")
    return jnp.dtype("int32" if kind is SIGNED else "uint32")


@functools.partial(jax.jit, static_argnames=("function", "mode"), inline=True)
def _store(array: Array, data: jax.Array, coords: tuple[Any, ...], *, function: str, mode: SurfaceBoundaryMode):
    access = Access(array.desc.dtype, array.desc.channels)
    absent = array.desc.channels - data.shape[-1]
    if absent > 0:
        data = jnp.concatenate([data, jnp.zeros((*data.shape[:-1], absent), data.dtype)], axis=-1)
    texels = converted(data[..., : array.desc.channels], array.desc)
    return store_units(array, texels, coords, function, access, mode, in_bytes=False)


def converted(data: jax.Array, desc: ChannelFormatDesc) -> jax.Array:
    """Components as channels of the format: integers saturate, halves are cut toward zero."""
    if desc.is_normalized:
        return normalized(data, desc.dtype)
    if desc.dtype == np.float16:
        return straight_through(half_toward_zero, lambda x: x.astype(jnp.float16))(data)
    if desc.dtype == data.dtype:
        return data
    limits = jnp.iinfo(desc.dtype)
    return jnp.clip(data, limits.min, limits.max).astype(desc.dtype)


def half_toward_zero(x: jax.Array) -> jax.Array:
    """The half next to `x` on the side of zero; of a NaN its upper bits."""
    word = jax.lax.bitcast_convert_type(x, jnp.uint32)
    size = jnp.abs(x)
    cut = jax.lax.bitcast_convert_type(word & 0x7FFFE000, jnp.float32)  # to 11 bits, or to 2^-24 below
    cut = jnp.where(size < 2.0**-14, jnp.floor(size * 2.0**24) * 2.0**-24, cut)
    cut = jnp.where(size < jnp.inf, jnp.minimum(cut, 65504), size)
    bits = jax.lax.bitcast_convert_type(cut.astype(jnp.float16), jnp.uint16)
    bits = jnp.where(x == x, bits, (0x7C00 | ((word >> 13) & 0x3FF)).astype(jnp.uint16))
    return jax.lax.bitcast_convert_type(bits | ((word >> 16) & 0x8000).astype(jnp.uint16), jnp.float16)


def normalized(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """The code of a fraction. With n bits for [0, 1] the unit cuts it to n + 4 bits, subtracts 2^-n of that for the
    step from 2^n to 2^n - 1, and rounds the four bits off, halves down."""
    limits = jnp.iinfo(dtype)
    bits = limits.bits - (limits.min < 0)
    x = jnp.clip(jnp.where(x == x, x, 0), -1 if limits.min < 0 else 0, 1)
    fixed = jnp.floor(jnp.abs(x) * 2.0 ** (bits + 4)).astype(jnp.int32)
    code = (fixed - (fixed >> bits) + 7) >> 4
    return jnp.where(x < 0, -code, code).astype(dtype)
