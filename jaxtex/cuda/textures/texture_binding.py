"""Functions that bind texture references, and return bound ones for texture functions."""

from typing import Any, cast

import numpy as np
from jax.typing import ArrayLike

from ..enums import Error
from ..errors import CudaError, check_type
from ..functions import cuda_function, missing
from ..memory.arrays import Array, MipmappedArray
from ..memory.channel_formats import ChannelFormatDesc, check_desc
from ..memory.resource_descriptor import ResourceDesc
from .texture_objects import ArithmeticName
from .texture_references import BoundTexture, TextureReference, check_reference, object_of

# The default size of cudaBindTexture.
UINT_MAX = 2**32 - 1


@cuda_function
def bindTextureToArray(
    texref: TextureReference | BoundTexture,
    array: Array,
    desc: ChannelFormatDesc | None = None,
    *,
    arithmetic: ArithmeticName = "hardware",
) -> BoundTexture:
    """Binds a reference to an array: `cudaBindTextureToArray`.

    Args:
        texref: a `TextureReference` of the type and the kind of the array. A 1D reference may be bound to a 2D array of
            one row too, and a reference of floats to halves. It is not changed.
        desc: the format of the array, which may be left out.

    Returns:
        A `BoundTexture`, for texture functions, with the present texels of the array.

    Gradients:
        Gradients of reads flow to floating texels of the array.

    Raises:
        CudaError: as in `createTextureObject`, and cudaErrorInvalidChannelDescriptor, if T or `desc` is not the type of
            the texels.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> array = cuda.memcpyToArray(cuda.mallocArray(cuda.createChannelDesc("float"), 3), jnp.array([1.0, 2.0, 4.0]))
        >>> cuda.tex1D(cuda.bindTextureToArray(cuda.TextureReference("float"), array), 99.0)
        Array(4., dtype=float32)
    """
    name = "bindTextureToArray"
    check_type(name, "array", array, Array, "mallocArray makes one")
    return bind(name, texref, ResourceDesc.Array(array), desc, arithmetic)


@cuda_function
def bindTextureToMipmappedArray(
    texref: TextureReference | BoundTexture,
    mipmappedArray: MipmappedArray,
    desc: ChannelFormatDesc | None = None,
    *,
    arithmetic: ArithmeticName = "hardware",
) -> BoundTexture:
    """Binds a reference to a mipmapped array: `cudaBindTextureToMipmappedArray`.

    Args:
        texref: a `TextureReference` of the type and the kind of the array, with ``normalized=1``. It is not changed.
        mipmappedArray: a `MipmappedArray`.
        desc: the format of the array, which may be left out.

    Gradients:
        Gradients of reads flow to floating texels of every level.

    Raises:
        CudaError: as in `bindTextureToArray`.
    """
    name = "bindTextureToMipmappedArray"
    check_type(name, "mipmappedArray", mipmappedArray, MipmappedArray, "mallocMipmappedArray makes one")
    return bind(name, texref, ResourceDesc.MipmappedArray(mipmappedArray), desc, arithmetic)


@cuda_function
def bindTexture(
    offset: int | TextureReference | BoundTexture | None,
    texref: TextureReference | BoundTexture | ArrayLike | None = None,
    devPtr: ArrayLike | ChannelFormatDesc | None = None,
    desc: ChannelFormatDesc | int | None = None,
    size: int | None = None,
    *,
    arithmetic: ArithmeticName = "hardware",
) -> BoundTexture:
    """Binds a reference to linear memory, which `tex1Dfetch` reads: `cudaBindTexture`.

    Args:
        offset: ``0`` or ``None``, in place of the pointer to which CUDA writes the offset of the memory. The offset is
            always 0. It may be left out: ``bindTexture(texref, devPtr, desc, size)``.
        texref: a `TextureReference` of type 1D. Only its `T`, `readMode` and `channelDesc` have an effect.
        devPtr: the memory, as in `ResourceDesc.Linear`.
        desc: its format, by default ``texref.channelDesc``. It may be left out before `size`.
        size: the size of the memory in bytes, as ``sizeInBytes`` in `ResourceDesc.Linear`. The default, and UINT_MAX,
            CUDA's default, mean all of it.

    Gradients:
        Gradients of reads flow to floating texels.

    Raises:
        CudaError: as in `bindTextureToArray`.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> ref = cuda.bindTexture(0, cuda.TextureReference("int"), jnp.array([3, 4]))
        >>> cuda.tex1Dfetch(ref, 1)
        Array(4, dtype=int32)
    """
    name = "bindTexture"
    given = without_offset(name, offset, (texref, devPtr, desc, size))
    reference, memory, format_, *sizes = with_format(given)
    bytes_ = next((n for n in sizes if n is not None), None)
    bytes_ = None if bytes_ == UINT_MAX else bytes_
    return bind(name, reference, ResourceDesc.Linear(memory, format_, bytes_), None, arithmetic)


@cuda_function
def bindTexture2D(
    offset: int | TextureReference | BoundTexture | None,
    texref: TextureReference | BoundTexture | ArrayLike | None = None,
    devPtr: ArrayLike | ChannelFormatDesc | None = None,
    desc: ChannelFormatDesc | int | None = None,
    width: int | None = None,
    height: int | None = None,
    pitch: int | None = None,
    *,
    arithmetic: ArithmeticName = "hardware",
) -> BoundTexture:
    """Binds a reference to rows in linear memory: `cudaBindTexture2D`.

    Args:
        offset: as in `bindTexture`. It may be left out: ``bindTexture2D(texref, devPtr, desc, width, height, pitch)``.
        texref: a `TextureReference` of type 2D. It is not changed.
        devPtr: the memory, as in `ResourceDesc.Pitch2D`.
        desc: its format, by default ``texref.channelDesc``. It may be left out before `width`.
        width, height: the size in elements.
        pitch: the number of bytes from row to row, as in `mallocPitch`. Without it the shape of `devPtr` gives the
            rows.

    Gradients:
        Gradients of reads flow to floating texels.

    Raises:
        CudaError: as in `bindTextureToArray`.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> rows = cuda.mallocPitch(2 * 4, 2)
        >>> memory = cuda.memcpy2D(rows.ptr, rows.pitch, jnp.array([[0.0, 1.0], [2.0, 3.0]]), 8, 8, 2)
        >>> ref = cuda.TextureReference("float", cuda.TextureType.Type2D)
        >>> ref = cuda.bindTexture2D(0, ref, memory, ref.channelDesc, 2, 2, rows.pitch)
        >>> cuda.tex2D(ref, 1.5, 0.5)
        Array(1., dtype=float32)
    """
    name = "bindTexture2D"
    given = without_offset(name, offset, (texref, devPtr, desc, width, height, pitch))
    reference, memory, format_, columns, rows, bytes_, *_ = (*with_format(given), None, None)
    resource = ResourceDesc.Pitch2D(memory, format_, columns, rows, bytes_)
    return bind(name, reference, resource, None, arithmetic)


def without_offset(function: str, offset: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments from the reference on. A call may leave the offset out."""
    if isinstance(offset, TextureReference | BoundTexture):
        arguments = (offset, *arguments)
    elif offset is not None and not isinstance(offset, int):
        raise TypeError(
            f"{function}: offset is a {type(offset).__name__}, expected 0 or None, in place of the pointer to which "
            f"CUDA writes 0, or a TextureReference."
        )
    if arguments[0] is None or arguments[1] is None:
        raise missing(function, "texref" if arguments[0] is None else "devPtr")
    return arguments


def with_format(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with a format in third place. A call may leave it out, also in front of sizes."""
    reference, memory, desc, *sizes = arguments
    if desc is not None and not isinstance(desc, ChannelFormatDesc):
        desc, sizes = None, [desc, *sizes]
    if desc is None and isinstance(reference, TextureReference | BoundTexture):
        desc = reference.channelDesc
    return (reference, memory, desc, *sizes)


def bind(
    function: str, ref: object, resource: ResourceDesc, desc: ChannelFormatDesc | None, arithmetic: ArithmeticName
) -> BoundTexture:
    """The reference bound to a resource, if CUDA allows that."""
    if isinstance(resource.memory, np.ndarray):  # a copy, since it may change later
        resource.memory = np.array(cast(Any, resource.memory))
    bound = BoundTexture(check_reference(function, ref), resource, arithmetic)
    stored = object_of(function, bound).desc
    if desc is not None and check_desc(function, desc) != stored:
        raise CudaError(
            Error.InvalidChannelDescriptor,
            f"{function}: desc is {desc}, expected the format of the array, {stored}; leave it out.",
        )
    return bound
