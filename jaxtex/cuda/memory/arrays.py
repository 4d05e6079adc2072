"""CUDA arrays: immutable values that hold texels in a channel format, their mip levels, and queries of them."""

import dataclasses
import warnings
import weakref

import jax

from ..._blocks.formats import blocks_along
from ..._engine.describe.levels import level_size
from ...modes import TextureKind
from ..enums import ArrayFlags
from ..errors import check_index, check_type, invalid
from ..functions import cuda_function
from ..structs import TupleStruct, struct, value
from .channel_formats import ChannelFormatDesc, createChannelDesc

SHAPE_FLAGS = ArrayFlags.Layered | ArrayFlags.Cubemap
# For arrays that are parts (a level of a mipmapped array, a plane of an array): the whole and the number.
PARTS: weakref.WeakKeyDictionary["Array", tuple[weakref.ref["AllocatedArray"], int]] = weakref.WeakKeyDictionary()
# By whole arrays: parts that were written as arrays of their own, each with the writing function.
UNSTORED: weakref.WeakKeyDictionary["AllocatedArray", dict[int, str]] = weakref.WeakKeyDictionary()


@struct()
class Extent(TupleStruct):
    """The size of an array in elements: `cudaExtent`. An axis that the array does not have is 0.

    Args:
        width: the number of elements along x.
        height: the number of rows, 0 for a 1D or a 1D layered array.
        depth: the number of slices or layers; 6 for a cubemap, 6 for each layer of a layered cubemap.
    """

    width: int = 0
    height: int = 0
    depth: int = 0


class AllocatedArray:
    """The base of `Array` and `MipmappedArray`, dataclasses whose first field holds the texels."""

    desc: ChannelFormatDesc
    extent: Extent
    flags: ArrayFlags

    @property
    def kind(self) -> TextureKind:
        """The kind of texture that the array backs."""
        return kind_of(self.extent, self.flags)

    @property
    def elements(self) -> Extent:
        """The size in elements that copies move: of level 0, in texels or in blocks of 4 by 4."""
        (width, height, depth), side = self.extent, self.desc.block_side
        return Extent(blocks_along(width, side), blocks_along(height, side), depth).frozen()

    def __repr__(self) -> str:
        levels = f", levels={len(self.levels)}" if isinstance(self, MipmappedArray) else ""
        return f"{type(self).__name__}(extent={tuple(self.extent)}{levels}, desc={self.desc}, flags={self.flags.name})"


@value("texels")
class Array(AllocatedArray):
    """A CUDA array as an immutable value: `mallocArray` makes one, and copies and writes return new ones.

    It is a pytree whose only child is `texels`; the other fields are static.

    Attributes:
        texels: the elements, slowest axis first and channels last. The shape is (W, C), (H, W, C) or (D, H, W, C) for
            1D, 2D and 3D arrays, (L, W, C) or (L, H, W, C) for layered arrays, (6, H, W, C) for a cubemap, and (6 * L,
            H, W, C) for a layered cubemap, in which face f of layer l has the index 6 * l + f. In a block-compressed
            format they are blocks: H and W are a quarter, rounded up, and C is 2 or 4, the words of a block. In NV12
            they are bytes, (3 * H / 2, W, 1): the rows of the first plane, then those of the second, with pairs of
            numbers.
        desc: the `ChannelFormatDesc` of a texel.
        extent: the `Extent` in texels.
        flags: the `ArrayFlags` with which it was allocated.

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


@value("levels")
class MipmappedArray(AllocatedArray):
    """A CUDA mipmapped array as an immutable value: `mallocMipmappedArray` makes one.

    It is a pytree whose children are `levels`; the other fields are static.

    Attributes:
        levels: the elements of each level, finest first, each in the shape of ``Array.texels``.
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


def check_array(function: str, argument: str, array: object, level: object) -> Array:
    """`array`, which must be an `Array`, and so has no level to choose."""
    checked = check_type(function, argument, array, Array, "mallocArray makes one")
    if level is not None:
        raise invalid(f"{function}: level is {level!r}, but {argument} has no levels; leave it out.")
    return checked


def check_no_planes(function: str, argument: str, array: Array) -> Array:
    """`array`, whose format may not have planes: CUDA copies and accesses only single planes (1)."""
    if array.desc.has_planes:
        raise invalid(
            f"{function}: {argument} has the format {array.desc}, which has planes; pass one of them, from "
            "arrayGetPlane."
        )
    return array


def kind_of(extent: Extent, flags: ArrayFlags) -> TextureKind:
    """The kind of texture that a valid extent and its flags determine."""
    if flags & ArrayFlags.Cubemap:
        return TextureKind.CUBEMAP_LAYERED if flags & ArrayFlags.Layered else TextureKind.CUBEMAP
    if flags & ArrayFlags.Layered:
        return TextureKind.TEXTURE2D_LAYERED if extent.height else TextureKind.TEXTURE1D_LAYERED
    if extent.depth:
        return TextureKind.TEXTURE3D
    return TextureKind.TEXTURE2D if extent.height else TextureKind.TEXTURE1D


def level_extent(extent: Extent, flags: ArrayFlags, level: int) -> Extent:
    """The extent of a mip level. Layers and faces do not shrink, and an axis of size 0 stays 0."""
    shrinks = (True, True, not flags & SHAPE_FLAGS)
    return Extent(*(level_size(n, level) if n and halved else n for n, halved in zip(extent, shrinks))).frozen()


@cuda_function
def getMipmappedArrayLevel(mipmappedArray: MipmappedArray, level: int) -> Array:
    """Returns one level of a mipmapped array as an array: `cudaGetMipmappedArrayLevel`.

    Args:
        mipmappedArray: a `MipmappedArray`.
        level: which level, an int from 0 for the finest.

    Returns:
        An `Array` with the texels of the level. Writes to it do not change `mipmappedArray`:
        ``memcpyToArray(mipmappedArray, levelArray, level=level)`` returns one that holds them. If they are not stored,
        `createTextureObject` of `mipmappedArray` warns.

    Gradients:
        To the texels of the level: the identity.

    Raises:
        CudaError: cudaErrorInvalidValue, if there is no such level.

    Example:
        >>> from jaxtex import cuda
        >>> mipmap = cuda.mallocMipmappedArray(cuda.createChannelDesc("float"), (8, 8, 0), 4)
        >>> cuda.getMipmappedArrayLevel(mipmap, 1).extent
        Extent(width=4, height=4, depth=0)
    """
    name, remedy = "getMipmappedArrayLevel", "mallocMipmappedArray makes one"
    mipmap = check_type(name, "mipmappedArray", mipmappedArray, MipmappedArray, remedy)
    level = check_index(name, "level", level, len(mipmap.levels))
    mention_unstored(name, mipmap, only=level)
    extent = level_extent(mipmap.extent, mipmap.flags, level)
    return as_part(mipmap, level, Array(mipmap.levels[level], mipmap.desc, extent, mipmap.flags))


def as_part(whole: AllocatedArray, number: int, array: Array) -> Array:
    """`array`, which is noted as a part of another."""
    PARTS[array] = (weakref.ref(whole), number)
    return array


def will_be_written(function: str, array: Array) -> None:
    """Marks the whole of a level or a plane `array`, which will not hold the texels written to `array`."""
    if array in PARTS:
        made_of, number = PARTS[array]
        whole = made_of()
        if whole is not None:
            UNSTORED.setdefault(whole, {})[number] = function


def with_level(mipmap: MipmappedArray, level: int, texels: jax.Array) -> MipmappedArray:
    """A mipmapped array with another level."""
    stored = dataclasses.replace(mipmap, levels=(*mipmap.levels[:level], texels, *mipmap.levels[level + 1 :]))
    rest = {other: function for other, function in UNSTORED.get(mipmap, {}).items() if other != level}
    if rest:
        UNSTORED[stored] = rest
    return stored


def mention_unstored(function: str, whole: AllocatedArray, only: int | None = None) -> None:
    """Warns of levels and planes that were written as arrays of their own: in CUDA they alias the whole."""
    has_levels = isinstance(whole, MipmappedArray)
    part, name = ("level", "mipmappedArray") if has_levels else ("plane", "hArray")
    for number, writer in UNSTORED.get(whole, {}).items():
        remedy = (
            "store the result of the last write: mipmappedArray = memcpyToArray(mipmappedArray, levelArray, "
            f"level={number})"
            if has_levels
            else "use the result of the last write"
        )
        if only in (None, number):
            warnings.warn(
                f"{function}: {part} {number} of {name} was written by {writer} as an array of its own, and {name} "
                f"does not hold these texels; {remedy}.",
                stacklevel=4,
            )


@cuda_function
def getChannelDesc(array: Array) -> ChannelFormatDesc:
    """Returns the format of an array: `cudaGetChannelDesc`."""
    return check_array("getChannelDesc", "array", array, None).desc


@cuda_function
def arrayGetInfo(array: Array) -> tuple[ChannelFormatDesc, Extent, ArrayFlags]:
    """Returns the format, the extent and the flags of an array: `cudaArrayGetInfo`.

    Returns:
        A `ChannelFormatDesc`, an `Extent` and `ArrayFlags`.

    Example:
        >>> from jaxtex import cuda
        >>> desc, extent, flags = cuda.arrayGetInfo(cuda.mallocArray(cuda.createChannelDesc("float"), 4, 3))
        >>> extent
        Extent(width=4, height=3, depth=0)
    """
    checked = check_array("arrayGetInfo", "array", array, None)
    return checked.desc, checked.extent, checked.flags


@cuda_function
def arrayGetPlane(hArray: Array, planeIdx: int) -> Array:
    """Returns a plane of an array of the format NV12 as an array: `cudaArrayGetPlane`.

    Args:
        hArray: an `Array` of the kind ``ChannelFormatKind.NV12``. ``memcpyToArray(hArray, frame)`` returns one that
            holds a frame, (3 * H / 2, W) bytes.
        planeIdx: 0 for luma, of the size of the array and one channel, or 1 for chroma, of half that width and height
            and two channels.

    Returns:
        An `Array` of bytes with the texels and the flags of the array. Writes to it do not change `hArray`; after a
        write, asking for the plane again warns.

    Raises:
        CudaError: cudaErrorInvalidValue, if the format has no such plane.

    Example:
        >>> from jaxtex import cuda
        >>> nv12 = cuda.createChannelDesc(cuda.ChannelFormatKind.NV12)
        >>> frame = cuda.mallocArray(nv12, 640, 480, cuda.ArrayFlags.VideoEncodeDecode)
        >>> [cuda.arrayGetPlane(frame, plane).texels.shape for plane in (0, 1)]
        [(480, 640, 1), (240, 320, 2)]
    """
    name = "arrayGetPlane"
    array = check_array(name, "hArray", hArray, None)
    if not array.desc.has_planes:
        raise invalid(f"{name}: hArray has the format {array.desc}, which has no planes, expected NV12.")
    (width, height, depth), plane = array.extent, check_index(name, "planeIdx", planeIdx, 2)
    mention_unstored(name, array, only=plane)
    texels, extent = array.texels[..., :height, :, :], array.extent
    if plane == 1:
        texels, extent = array.texels[..., height:, :, :], Extent(width // 2, height // 2, depth).frozen()
        texels = texels.reshape(*texels.shape[:-3], height // 2, width // 2, 2)
    return as_part(array, plane, Array(texels, createChannelDesc(("uchar", "uchar2")[plane]), extent, array.flags))
