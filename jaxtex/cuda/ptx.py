"""PTX instructions without a function in CUDA C++: converting stores, reductions, and queries of sizes.

The rules were found by measurements on NVIDIA GPUs, an H200 for stores and an H100 for reductions and queries, and
reproduce every recorded value.
"""

import functools
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._checks.dropped import watch
from .._engine.describe.levels import level_size
from .._jax.calls import typed_jit
from .._jax.primitives import straight_through
from .._jax.shapes import broadcast_shapes
from .._reads.arguments import check_integer
from ..modes import TextureKind
from .enums import Error, ResourceType, SurfaceBoundaryMode
from .errors import CudaError, check_index, invalid
from .functions import cuda_function
from .memory.arrays import Array, will_be_written
from .memory.channel_formats import FLOAT, SIGNED, UNSIGNED, ChannelFormatDesc
from .surfaces import (
    Access,
    Surface,
    access_of,
    broadcasts_to,
    check_boundary_mode,
    check_indices,
    check_shape,
    check_surface,
    check_type_of,
    data_of,
    reduce_units,
    store_units,
)
from .textures.texture_functions import Texture, as_object

BoundaryMode = SurfaceBoundaryMode | int
TRAP = SurfaceBoundaryMode.Trap
Operation = Literal["add", "min", "max", "and", "or"]
Size = Literal["width", "height", "depth"]
OPERATIONS = ("add", "min", "max", "and", "or")
SIZES = ("width", "height", "depth")


@cuda_function
def sust_p(
    data: ArrayLike | tuple[ArrayLike, ...],
    surfObject: Surface,
    x: ArrayLike,
    *coords: ArrayLike,
    boundaryMode: BoundaryMode = TRAP,
) -> Array:
    """Writes to a surface of any kind, and converts to its format: the PTX instruction `sust.p`.

    CUDA C++ has no function for it.

    Args:
        data: the components, of shape S + (n,) with n = 1, 2 or 4, or of one that broadcasts to it: float32 for float
            and normalized formats, uint32 for unsigned and int32 for signed ones. Integers saturate to the range of a
            channel. Halves are truncated toward zero. Fractions are clamped, and rounded to the codes of a normalized
            format as the hardware rounds them: with n bits for [0, 1], p = floor(2^(n+4) abs(v)) and
            q = p - floor(p / 2^n), the code is floor((q + 7) / 16). Missing components are 0, and extra components are
            dropped.
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
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("uchar2"), 3, 0, cuda.ArrayFlags.SurfaceLoadStore)
        >>> cuda.sust_p(jnp.array([300, 7, 0, 0], jnp.uint32), array, 1).texels[1]
        Array([255,   7], dtype=uint8)
    """
    function = "sust_p"
    array, places = check_written(function, surfObject, (x, *coords))
    mode = check_boundary_mode(function, boundaryMode)
    indices = check_texels(function, places)
    dtype = source_dtype(array.desc)
    components = data_of(function, data, dtype)
    shape = broadcast_shapes(*(index.shape for index in indices))
    if components.dtype != dtype or components.ndim == 0 or components.shape[-1] not in (1, 2, 4):
        raise invalid(
            f"{function}: data has dtype {components.dtype} and shape {components.shape}, expected {dtype} with 1, 2 "
            f"or 4 components along the last axis for the format {array.desc}."
        )
    if not broadcasts_to(components.shape[:-1], shape):
        raise invalid(
            f"{function}: data has shape {components.shape}, expected one that broadcasts to "
            f"{(*shape, components.shape[-1])}, the shape of the coordinates and the number of components."
        )
    return watch(function, array, _store(array, components, indices, function=function, mode=mode))


@cuda_function
def sured_b(
    data: ArrayLike,
    surfObject: Surface,
    x: ArrayLike,
    *coords: ArrayLike,
    op: Operation,
    T: str = "uint",
    boundaryMode: BoundaryMode = TRAP,
) -> Array:
    """Reduces numbers into a surface of any kind, whatever its format: the PTX instruction `sured.b`.

    CUDA C++ has no function for it. Several numbers for one place are all reduced, in any order.

    Args:
        data: integers of the type T, of shape S or of one that broadcasts to it.
        surfObject: as in `surf1Dwrite`.
        x: integers that broadcast with all other indices here to a shape S. **x counts bytes** and must be a multiple
            of the size of T.
        coords: y, z, and the layer or face, as many as the surface has; 6 * layer + face for a layered cubemap.
        op: ``"add"``, which wraps around, ``"min"``, ``"max"``, ``"and"`` or ``"or"``.
        T: ``"uint"`` or ``"int"``. Reductions of 64 bits are not available.
        boundaryMode: as in `surf1Dwrite`.

    Returns:
        A new `Array`.

    Gradients:
        None.

    Raises:
        CudaError: cudaErrorInvalidValue, if the number of coordinates does not fit the surface, or if `op`, `T` and
            `data` do not fit each other; cudaErrorMisalignedAddress, if x is known and misaligned.
        TypeError: if `surfObject` is no surface, or an index is no integer.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> counts = cuda.mallocArray(cuda.createChannelDesc("uint"), 3, 0, cuda.ArrayFlags.SurfaceLoadStore)
        >>> cuda.sured_b(1, counts, 4 * jnp.array([0, 2, 2]), op="add").texels[:, 0]
        Array([1, 0, 2], dtype=uint32)
    """
    function = "sured_b"
    array, places = check_written(function, surfObject, (x, *coords))
    access, mode = access_of(function, array.desc, T), check_boundary_mode(function, boundaryMode)
    if op not in OPERATIONS or access.length or access.dtype.name not in ("int32", "uint32"):
        raise invalid(
            f"{function}: op is {op!r} with T {T!r}, expected one of {', '.join(OPERATIONS)}, and 'uint' or 'int'."
        )
    values = check_type_of(function, data, access, places, ("uint", "int"))
    indices = check_indices(function, places, access)
    check_shape(function, values, indices, access)
    reduced = functools.partial(reduce_units, function=function, access=access, mode=mode, op=op, in_bytes=True)
    return watch(function, array, reduced(array, values, indices))


@cuda_function
def sured_p(
    data: ArrayLike,
    surfObject: Surface,
    x: ArrayLike,
    *coords: ArrayLike,
    op: Operation,
    boundaryMode: BoundaryMode = TRAP,
) -> Array:
    """Reduces numbers into the texels of a surface of any kind: the PTX instruction `sured.p`.

    CUDA C++ has no function for it. Several numbers for one texel are all reduced, in any order.

    Args:
        data: uint32 for unsigned formats and int32 for signed ones, of shape S or of one that broadcasts to it.
        surfObject: as in `surf1Dwrite`, with texels of 4 bytes, of integers. A texel counts as one number, even with
            several channels.
        x: integers that broadcast with all other indices here to a shape S. **x counts texels** here, not bytes.
        coords, op, boundaryMode: as in `sured_b`.

    Returns:
        A new `Array`.

    Gradients:
        None.

    Raises:
        CudaError: cudaErrorInvalidValue, if the number of coordinates does not fit the surface, if its texels are no
            integers of 4 bytes, or if `data` or `op` does not fit.
        TypeError: if `surfObject` is no surface, or an index is no integer.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> depths = cuda.mallocArray(cuda.createChannelDesc("int"), 3, 0, cuda.ArrayFlags.SurfaceLoadStore)
        >>> cuda.sured_p(jnp.array([5, 9, -2]), depths, jnp.array([0, 0, 1]), op="max").texels[:, 0]
        Array([9, 0, 0], dtype=int32)
    """
    function = "sured_p"
    array, places = check_written(function, surfObject, (x, *coords))
    mode = check_boundary_mode(function, boundaryMode)
    if array.desc.texel_bytes != 4 or array.desc.f not in (SIGNED, UNSIGNED) or op not in OPERATIONS:
        raise invalid(
            f"{function}: op is {op!r} for the format {array.desc}, expected one of {', '.join(OPERATIONS)} and texels "
            f"of 4 bytes, of integers; sured_b takes every format."
        )
    access = Access(source_dtype(array.desc), None)
    indices = check_texels(function, places)
    values = check_type_of(function, data, access, places, ())
    check_shape(function, values, indices, access)
    reduced = functools.partial(reduce_units, function=function, access=access, mode=mode, op=op, in_bytes=False)
    return watch(function, array, reduced(array, values, indices))


@cuda_function
def txq(texObject: Texture, query: Size, lod: int | None = None) -> int:
    """Returns a size of a texture over an array: the PTX instruction `txq`.

    The other queries of the instruction fail on texture objects, also in CUDA: see `TextureObject.sampler` and
    `TextureObject.desc`.

    Args:
        texObject: a `TextureObject` or a `BoundTexture` over an array or a mipmapped array.
        query: ``"width"``, ``"height"`` or ``"depth"``. As on the card, the height of a 1D layered texture, and the
            depth of other layered ones, is the number of layers; else the height of a 1D texture is 1, and the depth of
            a texture that is not 3D is 0.
        lod: which level: ``txq.level``. The result is 0 if the texture has no such level, or is no mipmapped array.

    Returns:
        An int.

    Raises:
        CudaError: cudaErrorNotSupported, for another query, and for linear and pitched memory.

    Example:
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 7, 5)
        >>> cuda.txq(cuda.createTextureObject(cuda.ResourceDesc.Array(array), cuda.TextureDesc()), "width")
        7
    """
    index = check_query("txq", query)
    t = as_object("txq", texObject)
    if t.resType not in (ResourceType.Array, ResourceType.MipmappedArray):
        raise CudaError(
            Error.NotSupported,
            f"txq: texObject is a texture over a resource of type {t.resType.name}, expected an array; read the size "
            "from the call that made it.",
        )
    level = 0 if lod is None else check_index("txq", "lod", lod, 2**31)
    if lod is not None and (t.resType is ResourceType.Array or level >= t.texture.num_levels):
        return 0
    kind, shape = t.texture.kind, t.texture.shape
    sizes = [level_size(n, level) for n in shape[-2 : -2 - kind.texel_ndim : -1]] + [*shape[:1]] * kind.layered
    return (*sizes, *(1, 0)[len(sizes) - 1 :])[index]


@cuda_function
def suq(surfObject: Surface, query: Size) -> int:
    """Returns a size of a surface: the PTX instruction `suq`.

    Args:
        surfObject: as in `surf1Dwrite`.
        query: ``"width"``, ``"height"`` or ``"depth"``, the fields of the `Extent` of the array. But as on the card,
            the height of a 1D layered surface is its number of layers. The other queries fail, also in CUDA.

    Returns:
        An int.

    Raises:
        CudaError: cudaErrorNotSupported, for another query.

    Example:
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 7, 5, cuda.ArrayFlags.SurfaceLoadStore)
        >>> cuda.suq(array, "height")
        5
    """
    index = check_query("suq", query)
    array = check_surface("suq", surfObject)
    width, height, depth = array.extent
    return (width, depth, 0)[index] if array.kind is TextureKind.TEXTURE1D_LAYERED else (width, height, depth)[index]


def check_query(function: str, query: object) -> int:
    """The axis of a query (801)."""
    if query not in SIZES:
        raise CudaError(
            Error.NotSupported,
            f"{function}: query is {query!r}, expected one of {', '.join(SIZES)}: the other queries of PTX fail on "
            "objects; read the attributes of the object.",
        )
    return SIZES.index(query)


def check_written(function: str, surface: object, places: tuple[ArrayLike, ...]) -> tuple[Array, tuple[ArrayLike, ...]]:
    """The array of a surface that is written, and the coordinates, which must be as many as it has."""
    array = check_surface(function, surface)
    count = array.kind.texel_ndim + (array.kind.layered or array.kind.is_cube)
    if len(places) != count:
        raise invalid(
            f"{function}: there are {len(places)} coordinates, expected {count} for a surface of kind "
            f"{array.kind.value!r}."
        )
    will_be_written(function, array)
    return array, places


def check_texels(function: str, places: tuple[ArrayLike, ...]) -> tuple[jax.Array, ...]:
    """Arrays of integers, with x in texels."""
    return tuple(check_integer(function, name, c, wrap_unsigned=True) for name, c in zip("xyz", places))


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
    access = Access(array.desc.dtype, array.desc.numbers)
    absent = array.desc.channels - data.shape[-1]
    if absent > 0:
        data = jnp.concatenate([data, jnp.zeros((*data.shape[:-1], absent), data.dtype)], axis=-1)
    texels = to_channels(data[..., : array.desc.channels], array.desc)
    return store_units(array, texels, coords, function, access, mode, in_bytes=False)


def to_channels(components: jax.Array, desc: ChannelFormatDesc) -> jax.Array:
    """Components as channels of the format. Integers saturate, and halves are truncated toward zero."""
    if desc.block_format is not None:
        codes = to_codes(components, 10).astype(jnp.uint32)
        alpha = ((codes[..., 3:] >> 6) + 2) // 5  # from 4 bits to 2
        red, green, blue, _ = jnp.split(codes, 4, -1)
        return red | green << 10 | blue << 20 | alpha << 30
    if desc.is_normalized:
        limits = jnp.iinfo(desc.dtype)
        return to_codes(components, limits.bits - (limits.min < 0), signed=limits.min < 0).astype(desc.dtype)
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


def to_codes(x: jax.Array, bits: int, *, signed: bool = False) -> jax.Array:
    """Fractions as codes of a normalized format, of so many bits without their sign.

    The unit truncates n bits for [0, 1] to n + 4 bits, multiplies them by 1 - 2^-n, because the largest code is 2^n - 1
    and not 2^n, and rounds the four extra bits off, halves down.
    """
    x = jnp.clip(jnp.where(x == x, x, 0), -1 if signed else 0, 1)
    fixed = jnp.floor(jnp.abs(x) * 2.0 ** (bits + 4)).astype(jnp.int32)
    code = (fixed - (fixed >> bits) + 7) >> 4
    return jnp.where(x < 0, -code, code)
