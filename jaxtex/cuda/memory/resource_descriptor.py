# pyright: strict

"""`ResourceDesc`: the memory that a texture or a surface is made of, as CUDA describes it."""

import dataclasses

from jax.typing import ArrayLike

from ..enums import ResourceType
from ..pytrees import pytree
from . import arrays
from .channel_formats import ChannelFormatDesc


@pytree("memory")
@dataclasses.dataclass(frozen=True, eq=False)
class ResourceDesc:
    """The memory behind a texture: `cudaResourceDesc`. Make one with the constructor of its kind.

    Attributes:
        memory: what is read: an `Array`, a `MipmappedArray`, or a plain JAX array.
        resType: the `ResourceType`, static.
        desc: the format of plain memory, static; an array has its own.
        sizeInBytes: of linear memory, static; ``None`` is all of it.
        width, height: in elements, of pitched memory, static; ``None`` is all of it.
        pitchInBytes: from row to row of pitched memory, static; ``None`` where its shape says it.

    Source: CUDA Runtime API, `cudaResourceDesc`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> cuda.ResourceDesc.Linear(jnp.arange(8), cuda.createChannelDesc("int")).resType.name
        'Linear'
    """

    memory: arrays.Array | arrays.MipmappedArray | ArrayLike
    resType: ResourceType | int
    desc: ChannelFormatDesc | None = None
    sizeInBytes: int | None = None
    width: int | None = None
    height: int | None = None
    pitchInBytes: int | None = None

    @classmethod
    def Array(cls, array: arrays.Array) -> "ResourceDesc":
        """An array of any shape: `cudaResourceTypeArray`.

        Args:
            array: an `Array`.
        """
        return cls(array, ResourceType.Array)

    @classmethod
    def MipmappedArray(cls, mipmap: arrays.MipmappedArray) -> "ResourceDesc":
        """An array with mip levels: `cudaResourceTypeMipmappedArray`.

        Args:
            mipmap: a `MipmappedArray`.
        """
        return cls(mipmap, ResourceType.MipmappedArray)

    @classmethod
    def Linear(
        cls, devPtr: ArrayLike, desc: ChannelFormatDesc | None = None, sizeInBytes: int | None = None
    ) -> "ResourceDesc":
        """Linear memory, read by `tex1Dfetch` alone: `cudaResourceTypeLinear`.

        Args:
            devPtr: a JAX array of the format's dtype, (N,) for one channel, (N, C) or (N C,) for C.
            desc: the format; by default one of the array's dtype, with one channel or the C of (N, C).
            sizeInBytes: how much of it is texture, by default all; N is that over the bytes of a texel.
        """
        return cls(devPtr, ResourceType.Linear, desc, sizeInBytes)

    @classmethod
    def Pitch2D(
        cls,
        devPtr: ArrayLike,
        desc: ChannelFormatDesc | None = None,
        width: int | None = None,
        height: int | None = None,
        pitchInBytes: int | None = None,
    ) -> "ResourceDesc":
        """Rows in linear memory, read as a 2D texture: `cudaResourceTypePitch2D`.

        Args:
            devPtr: a JAX array of the format's dtype, (H, W) for one channel, (H, W, C) or (H, W C) for C. Its row is
                the pitch.
            desc: the format; by default one of the array's dtype, with one channel or the C of (H, W, C).
            width, height: how many elements of a row and how many rows are texture, by default all.
            pitchInBytes: with it `devPtr` is memory of any dtype whose row r starts at byte ``r * pitchInBytes``, as of
                `mallocPitch`; a multiple of 32. Then `desc`, `width` and `height` are needed.
        """
        return cls(devPtr, ResourceType.Pitch2D, desc, width=width, height=height, pitchInBytes=pitchInBytes)
