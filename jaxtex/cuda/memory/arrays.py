# pyright: strict

"""CUDA arrays: immutable values that hold texels in a channel format, and their mip levels."""

import dataclasses
from typing import NamedTuple

import jax

from ...modes import TextureKind
from ..enums import ArrayFlags
from ..errors import check_index, check_type
from ..pytrees import pytree
from .channel_formats import ChannelFormatDesc

SHAPE_FLAGS = ArrayFlags.Layered | ArrayFlags.Cubemap


class Extent(NamedTuple):
    """The size of an array in elements, as `cudaExtent`: 0 for an axis that it does not have.

    Args:
        width: elements along x.
        height: rows, or 0 for a 1D or 1D layered array.
        depth: slices, layers, 6 faces, or 6 faces for each layer.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.malloc3DArray(cuda.createChannelDesc("float"), cuda.Extent(4, 3, 2)).texels.shape
        (2, 3, 4, 1)
    """

    width: int
    height: int = 0
    depth: int = 0


class AllocatedArray:
    """What `Array` and `MipmappedArray` have in common. Both are dataclasses of their own, with texels in front."""

    desc: ChannelFormatDesc
    extent: Extent
    flags: ArrayFlags

    @property
    def kind(self) -> TextureKind:
        """The shape of texture that the array backs."""
        return kind_of(self.extent, self.flags)


@pytree("texels")
@dataclasses.dataclass(frozen=True, eq=False)
class Array(AllocatedArray):
    """A CUDA array as an immutable value: `mallocArray` makes it, `memcpyToArray` returns a new one.

    Attributes:
        texels: the elements, slowest axis first, channels last: (W, C), (H, W, C), (D, H, W, C), with layers or faces
            (L, W, C), (L, H, W, C), (6, H, W, C); a layered cubemap is (6 L, H, W, C), face 0 of layer 1 after face 5
            of layer 0.
        desc: the `ChannelFormatDesc`, static.
        extent: the `Extent` in elements, static.
        flags: the `ArrayFlags`, static.

    Example:
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("uchar4"), 640, 480)
        >>> array.texels.shape, str(array.texels.dtype)
        ((480, 640, 4), 'uint8')
    """

    texels: jax.Array
    desc: ChannelFormatDesc
    extent: Extent
    flags: ArrayFlags


@pytree("levels")
@dataclasses.dataclass(frozen=True, eq=False)
class MipmappedArray(AllocatedArray):
    """A CUDA mipmapped array as an immutable value: `mallocMipmappedArray` makes it.

    Attributes:
        levels: the elements of each level, finest first, shaped as those of `Array`.
        desc, extent, flags: as in `Array`; the extent is that of level 0.

    Example:
        >>> from jaxtex import cuda
        >>> mipmap = cuda.mallocMipmappedArray(cuda.createChannelDesc("float"), (5, 3, 0), 99)
        >>> [level.shape for level in mipmap.levels]
        [(3, 5, 1), (1, 2, 1), (1, 1, 1)]
    """

    levels: tuple[jax.Array, ...]
    desc: ChannelFormatDesc
    extent: Extent
    flags: ArrayFlags


def kind_of(extent: Extent, flags: ArrayFlags) -> TextureKind:
    """The shape that a valid extent and its flags stand for."""
    if flags & ArrayFlags.Cubemap:
        return TextureKind.CUBEMAP_LAYERED if flags & ArrayFlags.Layered else TextureKind.CUBEMAP
    if flags & ArrayFlags.Layered:
        return TextureKind.TEXTURE2D_LAYERED if extent.height else TextureKind.TEXTURE1D_LAYERED
    if extent.depth:
        return TextureKind.TEXTURE3D
    return TextureKind.TEXTURE2D if extent.height else TextureKind.TEXTURE1D


def level_extent(extent: Extent, flags: ArrayFlags, level: int) -> Extent:
    """The extent of a mip level: layers and faces do not shrink, absent axes stay absent."""
    shrinks = (True, True, not flags & SHAPE_FLAGS)
    return Extent(*(max(1, n >> level) if n and halved else n for n, halved in zip(extent, shrinks)))


def getMipmappedArrayLevel(mipmap: MipmappedArray, level: int) -> Array:
    """One level of a mipmapped array as an array: `cudaGetMipmappedArrayLevel`.

    Args:
        mipmap: a `MipmappedArray`.
        level: which level, 0 is the finest.

    Returns:
        An `Array` with the level's texels. It is a value of its own: write to the chain with
        ``memcpyToArray(mipmap, values, level=level)``.

    Gradients: to the texels of the level.

    Raises:
        CudaError: cudaErrorInvalidValue, if there is no such level.

    Source: CUDA Runtime API, `cudaGetMipmappedArrayLevel`.

    Example:
        >>> from jaxtex import cuda
        >>> mipmap = cuda.mallocMipmappedArray(cuda.createChannelDesc("float"), (8, 8, 0), 4)
        >>> cuda.getMipmappedArrayLevel(mipmap, 1).extent
        Extent(width=4, height=4, depth=0)
    """
    mipmap = check_type("getMipmappedArrayLevel", "mipmap", mipmap, MipmappedArray, "mallocMipmappedArray makes one")
    level = check_index("getMipmappedArrayLevel", "level", level, len(mipmap.levels))
    return Array(mipmap.levels[level], mipmap.desc, level_extent(mipmap.extent, mipmap.flags, level), mipmap.flags)
