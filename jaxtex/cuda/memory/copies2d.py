"""Copies of rows, with pitches in bytes, as functions that return the new destination."""

# pyright: strict, reportUnknownMemberType=false

import jax
from jax.typing import ArrayLike

from ..enums import MemcpyKind
from ..errors import INVALID_VALUE, CudaError
from ..functions import cuda_function
from .array_boxes import box_of_rows, copy_part
from .arrays import Array
from .byte_regions import Region
from .channel_formats import as_texels
from .numbers import as_destination, as_memory, is_literal
from .pitched_memory import check_memcpy_kind, counts


@cuda_function
def memcpy2D(
    dst: ArrayLike,
    dpitch: int,
    src: ArrayLike,
    spitch: int,
    width: int,
    height: int,
    kind: MemcpyKind | int = MemcpyKind.Default,
) -> jax.Array:
    """Returns memory with rows copied from other memory: `cudaMemcpy2D`.

    Args:
        dst, src: arrays of any dtype. Their bytes, in C order, are the memory. `dst` is not changed.
        dpitch, spitch: the number of **bytes** from the start of a row to the start of the next, in `dst` and in `src`.
        width: the number of **bytes** in a row.
        height: the number of rows.
        kind: a `MemcpyKind`; it has no effect.

    Returns:
        A new array of the shape and the dtype of `dst`.

    Gradients:
        To `dst` and `src`, if both have the same dtype, and the pitches and the width are multiples of its size. To
        differentiate other copies is an error, also copies of floats into `mallocPitch` memory, which holds bytes.

    Raises:
        CudaError: cudaErrorInvalidPitchValue, if a row is longer than a pitch and there are several rows;
            cudaErrorInvalidValue, if a single row is longer than a pitch, or rows do not lie within the memory;
            cudaErrorInvalidMemcpyDirection, if `kind` is not a `MemcpyKind`.

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
    width, height, spitch, dpitch = counts(name, width=width, height=height, spitch=spitch, dpitch=dpitch)
    if height == 1 and width > min(spitch, dpitch):  # the card has another code for a single row
        argument, pitch = ("spitch", spitch) if spitch < dpitch else ("dpitch", dpitch)
        raise CudaError(
            INVALID_VALUE, f"{name}: {argument} is {pitch} bytes, expected at least the width, {width} bytes."
        )
    source, target = (Region(0, pitch, pitch * height, width, height, 1) for pitch in (spitch, dpitch))
    return copy_part(as_memory(src), as_destination(name, "dst", dst), function=name, source=source, target=target)


@cuda_function
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
    """Returns an array with a part copied from rows of memory: `cudaMemcpy2DToArray`.

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
        To `src` and the texels of `dst`, if both have the same dtype, and the pitch is a multiple of its size. To
        differentiate other copies is an error.

    Raises:
        CudaError: cudaErrorInvalidValue, if the part does not lie within the array, or cuts an element;
            cudaErrorInvalidPitchValue, if a row is longer than the pitch; cudaErrorInvalidMemcpyDirection, if `kind` is
            not a `MemcpyKind`.

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
    width, height, spitch = counts(name, width=width, height=height, spitch=spitch)
    region = Region(0, spitch, spitch * height, width, height, 1)
    memory = as_texels(name, "src", src, dst.desc) if is_literal(src) else as_memory(src)
    return copy_part(memory, dst, function=name, source=region, target=box)


@cuda_function
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
    """Returns memory with rows copied from a part of an array: `cudaMemcpy2DFromArray`.

    Args:
        dst: an array of any dtype. Its bytes, in C order, are the memory. It is not changed.
        dpitch: the number of **bytes** from the start of a row of `dst` to the start of the next.
        src: a 1D or 2D `Array`.
        wOffset, hOffset, width, height: the part of `src`, as in `memcpy2DToArray`.
        kind: a `MemcpyKind`; it has no effect.

    Returns:
        A new array of the shape and the dtype of `dst`.

    Gradients:
        To `dst` and the texels of `src`, if both have the same dtype, and the pitch is a multiple of its size. To
        differentiate other copies is an error.

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
    width, height, dpitch = counts(name, width=width, height=height, dpitch=dpitch)
    region = Region(0, dpitch, dpitch * height, width, height, 1)
    return copy_part(src, as_destination(name, "dst", dst), function=name, source=box, target=region)


@cuda_function
def memcpy2DArrayToArray(
    dst: Array,
    wOffsetDst: int,
    hOffsetDst: int,
    src: Array,
    wOffsetSrc: int,
    hOffsetSrc: int,
    width: int,
    height: int,
    kind: MemcpyKind | int = MemcpyKind.DeviceToDevice,
) -> Array:
    """Returns an array with a part copied from another array: `cudaMemcpy2DArrayToArray`.

    Args:
        dst: a 1D or 2D `Array`. It is not changed.
        wOffsetDst, hOffsetDst: the first **byte** of the part in each row of `dst`, and its first row.
        src: a 1D or 2D `Array` with elements of the same size.
        wOffsetSrc, hOffsetSrc: the same in `src`.
        width: the number of **bytes** in a row.
        height: the number of rows, 1 for a 1D array.
        kind: a `MemcpyKind`; it has no effect.

    Returns:
        A new `Array`; use it in place of `dst`.

    Gradients:
        To the texels of both arrays, if they have the same dtype. To differentiate other copies is an error.

    Raises:
        CudaError: cudaErrorInvalidValue, if a part does not lie within its array, or cuts an element, or if the
            elements differ in size; cudaErrorInvalidMemcpyDirection, if `kind` is not a `MemcpyKind`.

    Source:
        CUDA Runtime API, `cudaMemcpy2DArrayToArray`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> empty = cuda.mallocArray(cuda.createChannelDesc("float"), 2, 2)
        >>> array = cuda.memcpyToArray(empty, jnp.array([[1.0, 2.0], [3.0, 4.0]]))
        >>> cuda.memcpy2DArrayToArray(empty, 0, 0, array, 4, 0, 4, 2).texels[..., 0]
        Array([[2., 0.],
               [4., 0.]], dtype=float32)
    """
    name = "memcpy2DArrayToArray"
    check_memcpy_kind(name, kind)
    target = box_of_rows(name, "dst", dst, wOffsetDst, hOffsetDst, width, height)
    source = box_of_rows(name, "src", src, wOffsetSrc, hOffsetSrc, width, height)
    if src.desc.texel_bytes != dst.desc.texel_bytes:
        raise CudaError(
            INVALID_VALUE,
            f"{name}: the arrays have elements of {src.desc.texel_bytes} and {dst.desc.texel_bytes} bytes, expected "
            f"elements of one size.",
        )
    return copy_part(src, dst, function=name, source=source, target=target)
