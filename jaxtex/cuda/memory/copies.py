"""Copies of whole arrays and of rows, as functions that return the new destination."""

# pyright: strict, reportUnknownMemberType=false

import dataclasses
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ..enums import MemcpyKind
from ..errors import INVALID_VALUE, CudaError, check_index
from .array_boxes import box_of_rows, check_array, copy_part
from .arrays import Array, MipmappedArray
from .byte_regions import Region
from .channel_formats import ChannelFormatDesc, check_dtype
from .pitched_memory import check_memcpy_kind

AnyArray = TypeVar("AnyArray", Array, MipmappedArray)


def memcpyToArray(dst: AnyArray, src: ArrayLike, *, level: int | None = None) -> AnyArray:
    """Returns an array with all its elements replaced by `src`: `cudaMemcpyToArray` of a whole array.

    Args:
        dst: an `Array` or a `MipmappedArray`. It is not changed.
        src: the elements, slowest axis first, in the shape of ``dst.texels``. The axis of channels may be missing if
            there is one channel. The dtype must be that of the format, because a copy converts nothing.
        level: which level of a `MipmappedArray`, an int from 0. An `Array` has no level.

    Returns:
        A new array of the class of `dst`; use it in place of `dst`.

    Gradients:
        To `src`, and to the other levels of `dst`: the identity.

    Raises:
        CudaError: cudaErrorInvalidValue, if the shape, the dtype or the level does not fit.

    Source:
        CUDA Runtime API, `cudaMemcpyToArray`, `cudaMemcpy2DToArray`, `cudaMemcpy3D`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 3, 2)
        >>> array = cuda.memcpyToArray(array, jnp.arange(6.0).reshape(2, 3))
        >>> cuda.memcpyFromArray(array)[..., 0]
        Array([[0., 1., 2.],
               [3., 4., 5.]], dtype=float32)
    """
    if isinstance(dst, MipmappedArray):
        chosen = _check_level("memcpyToArray", dst, level)
        values = _check_values("memcpyToArray", src, dst.levels[chosen], dst.desc)
        return dataclasses.replace(dst, levels=(*dst.levels[:chosen], values, *dst.levels[chosen + 1 :]))
    array = check_array("memcpyToArray", "dst", dst, level)
    return dataclasses.replace(array, texels=_check_values("memcpyToArray", src, array.texels, array.desc))


def memcpyFromArray(src: Array | MipmappedArray, *, level: int | None = None) -> jax.Array:
    """Returns the elements of an array: `cudaMemcpyFromArray` of a whole array.

    Args:
        src: an `Array` or a `MipmappedArray`.
        level: which level of a `MipmappedArray`, an int from 0. An `Array` has no level.

    Returns:
        The elements, slowest axis first and channels last, such as (H, W, C). One channel is an axis too.

    Gradients:
        To the texels: the identity.

    Raises:
        CudaError: cudaErrorInvalidValue, if there is no such level.

    Source:
        CUDA Runtime API, `cudaMemcpyFromArray`, `cudaMemcpy2DFromArray`, `cudaMemcpy3D`.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.memcpyFromArray(cuda.mallocArray(cuda.createChannelDesc("int2"), 3)).shape
        (3, 2)
    """
    if isinstance(src, MipmappedArray):
        return src.levels[_check_level("memcpyFromArray", src, level)]
    return check_array("memcpyFromArray", "src", src, level).texels


def _check_level(function: str, mipmap: MipmappedArray, level: object) -> int:
    if level is None:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: level is missing, and the mipmapped array has {len(mipmap.levels)} levels; pass level=0.",
        )
    return check_index(function, "level", level, len(mipmap.levels))


def _check_values(function: str, src: ArrayLike, texels: jax.Array, desc: ChannelFormatDesc) -> jax.Array:
    """`src` in the shape of the texels."""
    values = jnp.asarray(src)
    check_dtype(function, "src", values, desc)
    shapes = (texels.shape, texels.shape[:-1]) if texels.shape[-1] == 1 else (texels.shape,)
    if values.shape not in shapes:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: src has shape {values.shape}, expected {' or '.join(map(str, shapes))}, slowest axis first "
            f"and channels last; memcpy2DToArray and memcpy3D copy a part of an array.",
        )
    return values.reshape(texels.shape)


def memcpy2D(
    dst: ArrayLike,
    dpitch: int,
    src: ArrayLike,
    spitch: int,
    width: int,
    height: int,
    kind: MemcpyKind | int = MemcpyKind.Default,
) -> jax.Array:
    """Returns memory with rows of other memory in it: `cudaMemcpy2D`.

    Args:
        dst, src: arrays of any dtype. Their bytes, in C order, are the memory. `dst` is not changed.
        dpitch, spitch: the number of **bytes** from the start of a row to the start of the next, in `dst` and in `src`.
        width: the number of **bytes** in a row.
        height: the number of rows.
        kind: a `MemcpyKind`; it has no effect.

    Returns:
        A new array of the shape and the dtype of `dst`.

    Gradients:
        To `dst` and `src`, if both have the same dtype, and the pitches and the width are multiples of its size.

    Raises:
        CudaError: cudaErrorInvalidPitchValue, if a row is longer than a pitch; cudaErrorInvalidValue, if the rows do
            not lie within the memory; cudaErrorInvalidMemcpyDirection, if `kind` is no `MemcpyKind`.

    Source:
        CUDA Runtime API, `cudaMemcpy2D`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> rows = cuda.mallocPitch(8, 2)
        >>> memory = cuda.memcpy2D(rows.ptr, rows.pitch, jnp.arange(4.0), 8, 8, 2)
        >>> pitched = cuda.ResourceDesc.Pitch2D(memory, cuda.createChannelDesc("float"), 2, 2, rows.pitch)
        >>> cuda.tex2D(cuda.createTextureObject(pitched, cuda.TextureDesc()), 1.5, 1.5)
        Array(3., dtype=float32)
    """
    name = "memcpy2D"
    check_memcpy_kind(name, kind)
    source, target = (Region(0, pitch, pitch * height, width, height, 1) for pitch in (spitch, dpitch))
    return copy_part(jnp.asarray(src), jnp.asarray(dst), function=name, source=source, target=target)


def memcpy2DToArray(
    dst: Array,
    wOffset: int,
    hOffset: int,
    src: ArrayLike,
    spitch: int,
    width: int,
    height: int,
    kind: MemcpyKind | int = MemcpyKind.Default,
) -> Array:
    """Returns an array with rows of memory in a part of it: `cudaMemcpy2DToArray`.

    Args:
        dst: a 1D or 2D `Array`. It is not changed.
        wOffset: the first byte of the part in each row of `dst`, in **bytes**.
        hOffset: the first row of the part in `dst`.
        src: an array of any dtype. Its bytes, in C order, are the memory.
        spitch: the number of **bytes** from the start of a row of `src` to the start of the next.
        width: the number of **bytes** in a row.
        height: the number of rows, 1 for a 1D array.
        kind: a `MemcpyKind`; it has no effect.

    Returns:
        A new `Array`; use it in place of `dst`.

    Gradients:
        To `src` and the texels of `dst`, if both have the same dtype, and the pitch is a multiple of its size.

    Raises:
        CudaError: cudaErrorInvalidValue, if the part does not lie within the array, or cuts an element;
            cudaErrorInvalidPitchValue, if a row is longer than the pitch; cudaErrorInvalidMemcpyDirection, if `kind` is
            no `MemcpyKind`.

    Source:
        CUDA Runtime API, `cudaMemcpy2DToArray`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 3, 2)
        >>> cuda.memcpy2DToArray(array, 4, 1, jnp.array([1.0, 2.0]), 8, 8, 1).texels[..., 0]
        Array([[0., 0., 0.],
               [0., 1., 2.]], dtype=float32)
    """
    name = "memcpy2DToArray"
    check_memcpy_kind(name, kind)
    box = box_of_rows(name, "dst", dst, wOffset, hOffset, width, height)
    region = Region(0, spitch, spitch * height, width, height, 1)
    return copy_part(jnp.asarray(src), dst, function=name, source=region, target=box)


def memcpy2DFromArray(
    dst: ArrayLike,
    dpitch: int,
    src: Array,
    wOffset: int,
    hOffset: int,
    width: int,
    height: int,
    kind: MemcpyKind | int = MemcpyKind.Default,
) -> jax.Array:
    """Returns memory with a part of an array in its rows: `cudaMemcpy2DFromArray`.

    Args:
        dst: an array of any dtype. Its bytes, in C order, are the memory. It is not changed.
        dpitch: the number of **bytes** from the start of a row of `dst` to the start of the next.
        src: a 1D or 2D `Array`.
        wOffset, hOffset, width, height: the part of `src`, as in `memcpy2DToArray`.
        kind: a `MemcpyKind`; it has no effect.

    Returns:
        A new array of the shape and the dtype of `dst`.

    Gradients:
        To `dst` and the texels of `src`, if both have the same dtype, and the pitch is a multiple of its size.

    Raises:
        CudaError: as in `memcpy2DToArray`.

    Source:
        CUDA Runtime API, `cudaMemcpy2DFromArray`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 3, 2)
        >>> array = cuda.memcpyToArray(array, jnp.arange(6.0).reshape(2, 3))
        >>> cuda.memcpy2DFromArray(jnp.zeros((2, 2)), 8, array, 4, 0, 8, 2)
        Array([[1., 2.],
               [4., 5.]], dtype=float32)
    """
    name = "memcpy2DFromArray"
    check_memcpy_kind(name, kind)
    box = box_of_rows(name, "src", src, wOffset, hOffset, width, height)
    region = Region(0, dpitch, dpitch * height, width, height, 1)
    return copy_part(src, jnp.asarray(dst), function=name, source=box, target=region)
