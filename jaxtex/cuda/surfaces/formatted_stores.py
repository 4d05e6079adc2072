"""Formatted stores: the conversion from floats or 32-bit integers to a channel format, as `sust.p` performs it.

The rules were found by measurements on an NVIDIA H200, and reproduce every recorded value.
"""

# pyright: strict, reportUnknownMemberType=false

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ..._checks.arguments import check_integer
from ..._jax.calls import typed_jit
from ..._jax.straight_through import straight_through
from ..enums import SurfaceBoundaryMode
from ..errors import INVALID_VALUE, CudaError
from ..memory.arrays import Array
from ..memory.channel_formats import FLOAT, SIGNED, ChannelFormatDesc
from ..memory.numbers import as_numbers
from .surface_access import Access, broadcasts_to, check_boundary_mode, store_units
from .surface_checks import check_surface


def store_formatted(
    function: str, data: ArrayLike, surface: object, coords: tuple[ArrayLike, ...], mode: object
) -> Array:
    """The array after a write of texels at x in texels, and y, z, layer or face."""
    array = check_surface(function, surface)
    count = array.kind.texel_ndim + (array.kind.layered or array.kind.is_cube)
    if len(coords) != count:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: there are {len(coords)} coordinates, expected {count} for a surface of kind "
            f"{array.kind.value!r}.",
        )
    boundary_mode = check_boundary_mode(function, mode)
    indices = tuple(check_integer(function, name, c, wrap_unsigned=True) for name, c in zip("xyz", coords))
    dtype = source_dtype(array.desc)
    components = as_numbers(function, "data", data, dtype)
    shape = np.broadcast_shapes(*(index.shape for index in indices))
    if components.dtype != dtype or components.ndim == 0 or components.shape[-1] not in (1, 2, 4):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: data has dtype {components.dtype} and shape {components.shape}, expected {dtype} with 1, 2 "
            f"or 4 components along the last axis for the format {array.desc}.",
        )
    if not broadcasts_to(components.shape[:-1], shape):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: data has shape {components.shape}, expected one that broadcasts to "
            f"{(*shape, components.shape[-1])}, the shape of the coordinates and the number of components.",
        )
    return _store(array, components, indices, function=function, mode=boundary_mode)


def source_dtype(desc: ChannelFormatDesc) -> np.dtype:
    """The dtype from which a format is stored."""
    kind, _ = desc.storage
    if kind is FLOAT or desc.is_normalized:
        return jnp.dtype("float32")
    return jnp.dtype("int32" if kind is SIGNED else "uint32")


@typed_jit("function", "mode")
def _store(
    array: Array, data: jax.Array, coords: tuple[jax.Array, ...], *, function: str, mode: SurfaceBoundaryMode
) -> Array:
    access = Access(array.desc.dtype, array.desc.channels)
    absent = array.desc.channels - data.shape[-1]
    if absent > 0:
        data = jnp.concatenate([data, jnp.zeros((*data.shape[:-1], absent), data.dtype)], axis=-1)
    texels = to_channels(data[..., : array.desc.channels], array.desc)
    return store_units(array, texels, coords, function, access, mode, in_bytes=False)


def to_channels(components: jax.Array, desc: ChannelFormatDesc) -> jax.Array:
    """Components as channels of the format. Integers saturate, and halves are truncated toward zero."""
    if desc.is_normalized:
        return to_codes(components, desc.dtype)
    if desc.dtype == np.float16:
        return straight_through(half_toward_zero, nearest_half, components)
    if desc.dtype == components.dtype:
        return components
    limits = jnp.iinfo(desc.dtype)
    return jnp.clip(components, limits.min, limits.max).astype(desc.dtype)


def nearest_half(x: jax.Array) -> jax.Array:
    return x.astype(jnp.float16)


def half_toward_zero(x: jax.Array) -> jax.Array:
    """`x` truncated toward zero to float16. A NaN keeps the upper bits of its payload."""
    word = jax.lax.bitcast_convert_type(x, jnp.uint32)
    magnitude = jnp.abs(x)
    # A half has 11 significant bits, and below 2^-14 multiples of 2^-24.
    truncated = jax.lax.bitcast_convert_type(word & 0x7FFFE000, jnp.float32)
    truncated = jnp.where(magnitude < 2.0**-14, jnp.floor(magnitude * 2.0**24) * 2.0**-24, truncated)
    truncated = jnp.where(magnitude < jnp.inf, jnp.minimum(truncated, 65504), magnitude)
    bits = jax.lax.bitcast_convert_type(truncated.astype(jnp.float16), jnp.uint16)
    bits = jnp.where(x == x, bits, (0x7C00 | ((word >> 13) & 0x3FF)).astype(jnp.uint16))
    return jax.lax.bitcast_convert_type(bits | ((word >> 16) & 0x8000).astype(jnp.uint16), jnp.float16)


def to_codes(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """Fractions as codes of a normalized format.

    The unit truncates n bits for [0, 1] to n + 4 bits, multiplies them by 1 - 2^-n, because the largest code is 2^n - 1
    and not 2^n, and rounds the four extra bits off, halves down.
    """
    limits = jnp.iinfo(dtype)
    bits = limits.bits - (limits.min < 0)
    x = jnp.clip(jnp.where(x == x, x, 0), -1 if limits.min < 0 else 0, 1)
    fixed = jnp.floor(jnp.abs(x) * 2.0 ** (bits + 4)).astype(jnp.int32)
    code = (fixed - (fixed >> bits) + 7) >> 4
    return jnp.where(x < 0, -code, code).astype(dtype)
