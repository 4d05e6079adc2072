"""Copies into and out of CUDA arrays, as functions that return what they wrote."""

import dataclasses
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from .arrays import Array, MipmappedArray, check_level
from .channels import ChannelFormatDesc
from .errors import INVALID_VALUE, CudaError

AnyArray = TypeVar("AnyArray", Array, MipmappedArray)


def memcpyToArray(dst: AnyArray, src: Any, *, level: int | None = None) -> AnyArray:
    """Returns the array with the values of `src` in it: a whole-array `cudaMemcpyToArray`.

    Args:
        dst: an `Array` or a `MipmappedArray`. It is not changed.
        src: the elements, slowest axis first, in the shape of ``dst.texels``; the channel axis may be missing if there
            is one channel. The dtype is that of the format, because a copy moves bytes and converts nothing.
        level: which level of a mipmapped array; an array has none.

    Returns:
        A new value of the type of `dst`. Use it in place of `dst` from here on.

    Gradients: to `src`, the identity.

    Raises:
        CudaError: cudaErrorInvalidValue, if shape, dtype or level do not fit.

    Source: CUDA Runtime API, `cudaMemcpyToArray`, `cudaMemcpy2DToArray`, `cudaMemcpy3D`.

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
    _check_array("memcpyToArray", "dst", dst, level)
    return dataclasses.replace(dst, texels=_check_values("memcpyToArray", src, dst.texels, dst.desc))


def memcpyFromArray(src: Array | MipmappedArray, *, level: int | None = None) -> jax.Array:
    """Returns the elements of an array: a whole-array `cudaMemcpyFromArray`.

    Args:
        src: an `Array` or a `MipmappedArray`.
        level: which level of a mipmapped array; an array has none.

    Returns:
        The elements, slowest axis first and channels last, such as (H, W, C), also where C is 1.

    Gradients: to the texels, the identity.

    Raises:
        CudaError: cudaErrorInvalidValue, if there is no such level.

    Source: CUDA Runtime API, `cudaMemcpyFromArray`, `cudaMemcpy2DFromArray`, `cudaMemcpy3D`.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.memcpyFromArray(cuda.mallocArray(cuda.createChannelDesc("int2"), 3)).shape
        (3, 2)
    """
    if isinstance(src, MipmappedArray):
        return src.levels[_check_level("memcpyFromArray", src, level)]
    _check_array("memcpyFromArray", "src", src, level)
    return src.texels


def _check_level(function: str, mipmap: MipmappedArray, level: Any) -> int:
    if level is None:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: level is missing, and a mipmapped array has {len(mipmap.levels)}; pass level=0.",
        )
    return check_level(function, level, len(mipmap.levels))


def _check_array(function: str, argument: str, array: Any, level: Any) -> None:
    if not isinstance(array, Array):
        raise TypeError(
            f"{function}: {argument} is a {type(array).__name__}, expected an Array or a MipmappedArray; mallocArray "
            f"makes one."
        )
    if level is not None:
        raise CudaError(INVALID_VALUE, f"{function}: level is {level!r}, but {argument} has no levels; leave it out.")


def _check_values(function: str, src: Any, texels: jax.Array, desc: ChannelFormatDesc) -> jax.Array:
    """`src` in the shape of the texels."""
    values = jnp.asarray(src)
    if values.dtype != texels.dtype:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: src has dtype {values.dtype}, expected {texels.dtype} for the format {desc}; convert numbers "
            f"with src.astype, or bits with jax.lax.bitcast_convert_type.",
        )
    shapes = (texels.shape, texels.shape[:-1]) if texels.shape[-1] == 1 else (texels.shape,)
    if values.shape not in shapes:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: src has shape {values.shape}, expected {' or '.join(map(str, shapes))}: slowest axis first, "
            f"channels last; copies move whole arrays.",
        )
    return values.reshape(texels.shape)
