"""Copies of whole arrays and of runs of bytes, as functions that return the new destination."""

# pyright: strict, reportUnknownMemberType=false

import dataclasses
from typing import Any, TypeVar, cast

import jax
from jax.typing import ArrayLike

from ...modes import TextureKind
from ..enums import MemcpyKind
from ..errors import INVALID_VALUE, CudaError, check_index, check_type
from ..functions import cuda_function, missing
from .array_boxes import check_array, copy_part
from .arrays import Array, MipmappedArray
from .byte_regions import Region
from .channel_formats import ChannelFormatDesc, as_texels
from .numbers import as_destination, as_memory, is_literal
from .pitched_memory import check_memcpy_kind, counts, whole_numbers

AnyArray = TypeVar("AnyArray", Array, MipmappedArray)


@cuda_function
def memcpyToArray(
    dst: AnyArray,
    wOffset: int | ArrayLike | Array | None = None,
    hOffset: int | None = None,
    src: ArrayLike | Array | None = None,
    count: int | None = None,
    kind: MemcpyKind | int = MemcpyKind.Default,
    *,
    level: int | None = None,
) -> AnyArray:
    """Returns an array with all elements, or a run of bytes, replaced: `cudaMemcpyToArray`.

    ``memcpyToArray(dst, src)`` replaces all elements of an array, or of a level. It takes numbers.
    ``memcpyToArray(dst, wOffset, hOffset, src, count, kind)`` is CUDA's form. It takes bytes, which fill the rest of a
    row, and then the rows below.

    Args:
        dst: an `Array` or a `MipmappedArray`. It is not changed.
        wOffset: the first byte in the first row, in **bytes**. In the short form: `src`.
        hOffset: the first row.
        src: in the short form, the elements, slowest axis first, in the shape of ``dst.texels``, or an `Array` that
            holds them. The axis of channels may be missing if there is one channel, and the axis of rows of a 2D array
            if there is one row. The dtype must be that of the format, because a copy converts nothing. But Python
            numbers are taken if they fit the format, and arrays of 64-bit numbers in place of those of 32 bits: floats
            are rounded, integers saturate. For halves, unsigned 16-bit integers are taken as their bits. In CUDA's
            form, an array of any dtype whose bytes, in C order, are the memory.
        count: the number of **bytes**, a multiple of the size of an element.
        kind: a `MemcpyKind`; it has no effect.
        level: which level of a `MipmappedArray`, an int from 0, in the short form. An `Array` has no level.

    Returns:
        A new array of the class of `dst`; use it in place of `dst`.

    Gradients:
        To `src`, and to the elements and levels of `dst` that stay: the identity. In CUDA's form both must have the
        same dtype; to differentiate other copies is an error.

    Raises:
        CudaError: cudaErrorInvalidValue, if the shape, the dtype, the level or a Python number does not fit, or if the
            bytes do not lie within the array or the memory; cudaErrorInvalidMemcpyDirection, if `kind` is not a
            `MemcpyKind`.

    Source:
        CUDA Runtime API, `cudaMemcpyToArray`, `cudaMemcpy2DToArray`, `cudaMemcpy3D`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 3, 2)
        >>> array = cuda.memcpyToArray(array, jnp.arange(6.0).reshape(2, 3))
        >>> cuda.memcpyToArray(array, 8, 0, jnp.array([7.0, 8.0]), 2 * 4, cuda.MemcpyKind.HostToDevice).texels[..., 0]
        Array([[0., 1., 7.],
               [8., 4., 5.]], dtype=float32)
    """
    name = "memcpyToArray"
    if hOffset is None and count is None and (wOffset is None) != (src is None):
        return _replace_all(dst, wOffset if src is None else src, level)
    if wOffset is None or hOffset is None or src is None or count is None:
        given = {"wOffset": wOffset, "hOffset": hOffset, "src": src, "count": count}
        raise missing(name, next(argument for argument, value in given.items() if value is None))
    check_memcpy_kind(name, kind)
    array = check_array(name, "dst", dst, level)
    target = run_of(name, "dst", array, wOffset, hOffset, count)
    memory = _memory(name, src, array)
    texels = copy_part(memory, array.texels, function=name, source=_run(0, count), target=target)
    return cast(AnyArray, dataclasses.replace(array, texels=texels))


@cuda_function
def memcpyFromArray(
    dst: ArrayLike | Array | MipmappedArray | None = None,
    src: Array | MipmappedArray | None = None,
    wOffset: int | None = None,
    hOffset: int | None = None,
    count: int | None = None,
    kind: MemcpyKind | int = MemcpyKind.Default,
    *,
    level: int | None = None,
) -> jax.Array:
    """Returns all elements of an array, or memory with a run of its bytes: `cudaMemcpyFromArray`.

    ``memcpyFromArray(src)`` returns all elements of an array, or of a level. ``memcpyFromArray(dst, src, wOffset,
    hOffset, count, kind)`` is CUDA's form, and returns memory with bytes of the array at its start.

    Args:
        dst: an array of any dtype, whose bytes, in C order, are the memory. It is not changed. In the short form: the
            `Array` or the `MipmappedArray` to read.
        src: an `Array`.
        wOffset, hOffset, count: the bytes of `src`, as in `memcpyToArray`.
        kind: a `MemcpyKind`; it has no effect.
        level: which level of a `MipmappedArray`, an int from 0, in the short form. An `Array` has no level.

    Returns:
        In the short form, the elements, slowest axis first and channels last, such as (H, W, C). A single channel has
        an axis too. In CUDA's form, a new array of the shape and the dtype of `dst`.

    Gradients:
        To the texels, and in CUDA's form to `dst`: the identity, if both have the same dtype. To differentiate other
        copies is an error.

    Raises:
        CudaError: cudaErrorInvalidValue, if there is no such level, or if the bytes do not lie within the array or the
            memory; cudaErrorInvalidMemcpyDirection, if `kind` is not a `MemcpyKind`.

    Source:
        CUDA Runtime API, `cudaMemcpyFromArray`, `cudaMemcpy2DFromArray`, `cudaMemcpy3D`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.memcpyToArray(cuda.mallocArray(cuda.createChannelDesc("int"), 3), jnp.array([5, 6, 7]))
        >>> cuda.memcpyFromArray(array).shape
        (3, 1)
        >>> cuda.memcpyFromArray(jnp.zeros(2, jnp.int32), array, 4, 0, 8)
        Array([6, 7], dtype=int32)
    """
    name = "memcpyFromArray"
    if count is None and (src is None) != (dst is None):
        array = dst if src is None else src
        if isinstance(array, MipmappedArray):
            return array.levels[_check_level(name, check_type(name, "src", array, MipmappedArray, ""), level)]
        return check_array(name, "src", array, level).texels
    if dst is None or src is None or wOffset is None or hOffset is None or count is None:
        given = {"dst": dst, "src": src, "wOffset": wOffset, "hOffset": hOffset, "count": count}
        raise missing(name, next(argument for argument, value in given.items() if value is None))
    check_memcpy_kind(name, kind)
    array = check_array(name, "src", src, level)
    source = run_of(name, "src", array, wOffset, hOffset, count)
    memory = as_destination(name, "dst", dst)
    return copy_part(array.texels, memory, function=name, source=source, target=_run(0, count))


@cuda_function
def memcpyArrayToArray(
    dst: Array,
    wOffsetDst: int,
    hOffsetDst: int,
    src: Array,
    wOffsetSrc: int,
    hOffsetSrc: int,
    count: int,
    kind: MemcpyKind | int = MemcpyKind.DeviceToDevice,
) -> Array:
    """Returns an array with a run of bytes copied from another array: `cudaMemcpyArrayToArray`.

    Args:
        dst: an `Array`. It is not changed.
        wOffsetDst, hOffsetDst: the first byte in its row, in **bytes**, and the row, in `dst`.
        src: an `Array`.
        wOffsetSrc, hOffsetSrc: the same in `src`.
        count: the number of **bytes**, a multiple of the size of an element.
        kind: a `MemcpyKind`; it has no effect.

    Returns:
        A new `Array`; use it in place of `dst`.

    Gradients:
        To the texels of both arrays, if they have the same dtype. To differentiate other copies is an error.

    Raises:
        CudaError: as in `memcpyToArray`.

    Source:
        CUDA Runtime API, `cudaMemcpyArrayToArray`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> empty = cuda.mallocArray(cuda.createChannelDesc("int"), 3)
        >>> array = cuda.memcpyToArray(empty, jnp.array([5, 6, 7]))
        >>> cuda.memcpyArrayToArray(empty, 0, 0, array, 4, 0, 2 * 4).texels[:, 0]
        Array([6, 7, 0], dtype=int32)
    """
    name = "memcpyArrayToArray"
    check_memcpy_kind(name, kind)
    target = run_of(name, "dst", dst, wOffsetDst, hOffsetDst, count)
    source = run_of(name, "src", src, wOffsetSrc, hOffsetSrc, count)
    texels = copy_part(src.texels, dst.texels, function=name, source=source, target=target)
    return dataclasses.replace(dst, texels=texels)


@cuda_function
def memcpy(dst: ArrayLike, src: ArrayLike, count: int, kind: MemcpyKind | int = MemcpyKind.Default) -> jax.Array:
    """Returns memory whose first bytes are copied from other memory: `cudaMemcpy`.

    Args:
        dst, src: arrays of any dtype. Their bytes, in C order, are the memory. `dst` is not changed.
        count: the number of **bytes**.
        kind: a `MemcpyKind`; it has no effect.

    Returns:
        A new array of the shape and the dtype of `dst`.

    Gradients:
        To `dst` and `src`, if both have the same dtype, and `count` is a multiple of its size. To differentiate other
        copies is an error.

    Raises:
        CudaError: cudaErrorInvalidValue, if the bytes do not lie within the memory; cudaErrorInvalidMemcpyDirection, if
            `kind` is not a `MemcpyKind`.

    Source:
        CUDA Runtime API, `cudaMemcpy`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> cuda.memcpy(jnp.zeros(3), jnp.array([1.0, 2.0]), 2 * 4, cuda.MemcpyKind.HostToDevice)
        Array([1., 2., 0.], dtype=float32)
    """
    name = "memcpy"
    check_memcpy_kind(name, kind)
    (count,) = counts(name, count=count)
    run = _run(0, count)
    return copy_part(as_memory(src), as_destination(name, "dst", dst), function=name, source=run, target=run)


def run_of(function: str, argument: str, array: Array, wOffset: Any, hOffset: int, count: int) -> Region:
    """A run of bytes in a 1D or 2D array, as a part of its texels as memory."""
    array = check_array(function, argument, array, None)
    offset, row, count = whole_numbers(function, wOffset=wOffset, hOffset=hOffset, count=count)
    if array.kind not in (TextureKind.TEXTURE1D, TextureKind.TEXTURE2D):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: {argument} is of kind {array.kind.value!r}, expected a 1D or 2D array; use memcpy3D.",
        )
    size = array.desc.texel_bytes
    width, height = array.extent.width * size, max(array.extent.height, 1)
    start = row * width + offset
    inside = 0 <= offset <= width and 0 <= row <= height and 0 <= count <= width * height - start
    if not inside or offset % size or count % size:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: the {count} bytes of {argument} start at byte {offset} of row {row}, expected multiples of "
            f"the {size} bytes of an element, within the {height} rows of {width} bytes.",
        )
    return _run(start, count)


def _run(start: int, count: int) -> Region:
    return Region(start, count, count, count, 1, 1)


def _memory(function: str, src: Any, array: Array) -> jax.Array:
    """The bytes of a source. Numbers of Python have the type of the array."""
    return as_texels(function, "src", src, array.desc) if is_literal(src) else as_memory(src)


def _replace_all(dst: AnyArray, src: Any, level: object) -> AnyArray:
    """An array with all its elements, or those of a level, replaced."""
    name = "memcpyToArray"
    if isinstance(dst, MipmappedArray):
        chosen = _check_level(name, check_type(name, "dst", dst, MipmappedArray, ""), level)
        values = _check_values(name, src, dst.levels[chosen], dst.desc)
        return dataclasses.replace(dst, levels=(*dst.levels[:chosen], values, *dst.levels[chosen + 1 :]))
    array = check_array(name, "dst", dst, level)
    return dataclasses.replace(array, texels=_check_values(name, src, array.texels, array.desc))


def _check_level(function: str, mipmap: MipmappedArray, level: object) -> int:
    if level is None:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: level is missing, and the mipmapped array has {len(mipmap.levels)} levels; pass level=0.",
        )
    return check_index(function, "level", level, len(mipmap.levels))


def _check_values(function: str, src: Any, texels: jax.Array, desc: ChannelFormatDesc) -> jax.Array:
    """`src` in the shape of the texels."""
    if isinstance(src, Array):
        src = check_array(function, "src", src, None).texels
    values = as_texels(function, "src", src, desc)
    shapes = [texels.shape]
    if texels.ndim == 3 and texels.shape[0] == 1:
        shapes.append(texels.shape[1:])
    if texels.shape[-1] == 1:
        shapes += [shape[:-1] for shape in shapes]
    if values.shape not in shapes:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: src has shape {values.shape}, expected {' or '.join(map(str, shapes))}, slowest axis first "
            f"and channels last; CUDA's form of this call, memcpy2DToArray and memcpy3D copy a part of an array.",
        )
    return values.reshape(texels.shape)
