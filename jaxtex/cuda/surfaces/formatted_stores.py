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
from ..functions import cuda_function
from ..memory.arrays import Array
from ..memory.channel_formats import FLOAT, SIGNED, ChannelFormatDesc
from ..memory.numbers import as_numbers
from .surface_access import Access, broadcasts_to, check_boundary_mode, store_units
from .surface_objects import Surface, check_surface


@cuda_function
def sust_p(
    data: ArrayLike,
    surfObject: Surface,
    x: ArrayLike,
    *coords: ArrayLike,
    boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap,
) -> Array:
    """Writes to a surface of any kind, and converts to its format: the PTX instruction `sust.p`.

    CUDA C++ has no function for it.

    Args:
        data: the components, of shape S + (n,) with n = 1, 2 or 4, or of one that broadcasts to it: float32 for float
            and normalized formats, uint32 for unsigned and int32 for signed ones. Integers saturate to the range of a
            channel. Halves are truncated toward zero. Fractions are clamped, and rounded to the codes of a normalized
            format as the hardware rounds them. Missing components are 0, and extra components are dropped.
        surfObject: as in `surf1Dwrite`.
        x: integers that broadcast with all other indices here to a shape S. **x counts texels** here, not bytes.
        coords: y, z, and the layer or face, as many as the surface has; 6 * layer + face for a layered cubemap.
        boundaryMode: as in `surf1Dwrite`.

    Returns:
        As in `surf1Dwrite`.

    Gradients:
        To `data` and to the texels of float and half formats; truncation counts as the identity. Integer and normalized
        formats have no gradient.

    Raises:
        CudaError: cudaErrorInvalidValue, if the number of coordinates does not fit the surface, or if `data` does not
            fit its format.
        TypeError: if `surfObject` is no surface, or an index is no integer.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("uchar2"), 3, 0, cuda.ArrayFlags.SurfaceLoadStore)
        >>> cuda.sust_p(jnp.array([300, 7, 0, 0], jnp.uint32), array, 1).texels[1]
        Array([255,   7], dtype=uint8)
    """
    function, places = "sust_p", (x, *coords)
    array = check_surface(function, surfObject)
    count = array.kind.texel_ndim + (array.kind.layered or array.kind.is_cube)
    if len(places) != count:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: there are {len(places)} coordinates, expected {count} for a surface of kind "
            f"{array.kind.value!r}.",
        )
    mode = check_boundary_mode(function, boundaryMode)
    indices = tuple(check_integer(function, name, c, wrap_unsigned=True) for name, c in zip("xyz", places))
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
    return _store(array, components, indices, function=function, mode=mode)


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
