"""CUDA arrays: immutable values that hold texels in a channel format; their levels, allocation, release and queries."""

import dataclasses
import math
import operator
import warnings
import weakref
from collections.abc import Iterable

import jax

from ..._blocks.formats import blocks_along
from ..._engine.describe.levels import level_size
from ...modes import TextureKind
from ..enums import ArrayFlags, Error
from ..errors import CudaError, check_index, check_type, choose, invalid, release
from ..functions import cuda_function
from ..kinds import NEWEST_COMPUTE_CAPABILITY, TEXTURE_KINDS, check_limits, limit_of
from ..structs import TupleStruct, struct, value
from .channel_formats import ChannelFormatDesc, check_desc, createChannelDesc
from .numbers import filled

# Arrays


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


# Allocation and release, and the rules that shapes and flags follow


FLAGS_OF_MALLOC_ARRAY = (
    ArrayFlags.SurfaceLoadStore
    | ArrayFlags.TextureGather
    | ArrayFlags.Sparse
    | ArrayFlags.DeferredMapping
    | ArrayFlags.VideoEncodeDecode
)
# Flags of only some kinds of arrays, and these kinds in words.
KINDS_OF_FLAGS = (
    (ArrayFlags.TextureGather, (TextureKind.TEXTURE2D,), "a 2D array"),
    (
        ArrayFlags.Sparse,
        (TextureKind.TEXTURE2D, TextureKind.TEXTURE3D, TextureKind.TEXTURE2D_LAYERED),
        "a 2D, 3D or 2D layered array",
    ),
)


@cuda_function
def mallocArray(
    desc: ChannelFormatDesc,
    width: int,
    height: int = 0,
    flags: ArrayFlags | int = 0,
    *,
    compute_capability: float = NEWEST_COMPUTE_CAPABILITY,
) -> Array:
    """Allocates a 1D or 2D array of zeros: `cudaMallocArray`.

    Args:
        width: the number of elements in a row, at least 1.
        height: the number of rows. 0 makes a 1D array, 1 makes a 2D array of one row.
        flags: `ArrayFlags`, joined by ``|``: SurfaceLoadStore, TextureGather (2D only), Sparse (2D only),
            DeferredMapping or VideoEncodeDecode. Every texel of a sparse array is resident.

    Raises:
        CudaError: cudaErrorInvalidChannelDescriptor, for a format that CUDA does not have; cudaErrorNotSupported, for a
            surface of a block-compressed format; cudaErrorInvalidValue, for sizes above the limits, or flags that do
            not fit the sizes or the format.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.mallocArray(cuda.createChannelDesc("float"), 10).texels.shape
        (10, 1)
    """
    flags = choose("mallocArray", "flags", ArrayFlags, flags)
    if flags & ~FLAGS_OF_MALLOC_ARRAY:
        raise invalid(
            f"mallocArray: flags is {flags!r}, expected flags of {FLAGS_OF_MALLOC_ARRAY!r}; malloc3DArray makes layers "
            f"and cubemaps."
        )
    return _malloc("mallocArray", desc, (width, height, 0), flags, compute_capability)


@cuda_function
def malloc3DArray(
    desc: ChannelFormatDesc,
    extent: Extent | tuple[int, int, int],
    flags: ArrayFlags | int = 0,
    *,
    compute_capability: float = NEWEST_COMPUTE_CAPABILITY,
) -> Array:
    """Allocates an array of zeros of any kind: `cudaMalloc3DArray`.

    Args:
        extent: (width, height, depth) in elements. With `flags` it determines the kind of the array:

            - without flags: 1D (w, 0, 0), 2D (w, h, 0) or 3D (w, h, d);
            - with ``Layered``: L layers of 1D (w, 0, L) or of 2D (w, h, L);
            - with ``Cubemap``: (w, w, 6);
            - with both: (w, w, 6 * L).
        flags: `ArrayFlags`, joined by ``|``. TextureGather is for 2D arrays only; Sparse is for 2D, 3D and 2D layered
            arrays only.

    Raises:
        CudaError: as in `mallocArray`.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.malloc3DArray(cuda.createChannelDesc("half4"), (8, 8, 6), cuda.ArrayFlags.Cubemap).kind.value
        'cubemap'
    """
    flags = choose("malloc3DArray", "flags", ArrayFlags, flags)
    return _malloc("malloc3DArray", desc, extent, flags, compute_capability)


@cuda_function
def mallocMipmappedArray(
    desc: ChannelFormatDesc,
    extent: Extent | tuple[int, int, int],
    numLevels: int,
    flags: ArrayFlags | int = 0,
    *,
    compute_capability: float = NEWEST_COMPUTE_CAPABILITY,
) -> MipmappedArray:
    """Allocates an array of zeros with mip levels: `cudaMallocMipmappedArray`.

    Args:
        desc, extent, flags, compute_capability: as in `malloc3DArray`, for level 0.
        numLevels: the number of levels, clamped to the range from 1 to ``1 + floor(log2(max(w, h, d)))``, where layers
            and faces do not count as depth. Level l has the size ``max(1, n >> l)`` along each axis; the number of
            layers and faces is the same in every level.

    Raises:
        CudaError: as in `mallocArray`.

    Example:
        >>> from jaxtex import cuda
        >>> len(cuda.mallocMipmappedArray(cuda.createChannelDesc("uchar4"), (256, 64, 0), 3).levels)
        3
    """
    name = "mallocMipmappedArray"
    flags = choose(name, "flags", ArrayFlags, flags)
    desc, size = _check(name, desc, extent, flags, compute_capability)
    kind = kind_of(size, flags)
    most = 1 + int(math.log2(max(size if kind is TextureKind.TEXTURE3D else size[:2])))
    count = min(max(int(numLevels), 1), most)
    if desc.has_planes and count > 1:
        raise invalid(f"{name}: numLevels is {numLevels} for the format {desc}, expected 1: planes have no levels.")
    levels = tuple(_zeros(desc, level_extent(size, flags, level)) for level in range(count))
    return MipmappedArray(levels, desc, size, flags)


@cuda_function
def freeArray(array: Array | None) -> None:
    """Marks an array as freed: `cudaFreeArray`. Its memory is released when nothing refers to it anymore.

    Args:
        array: an `Array`, or ``None``, which has no effect. Later use of the array, or of a texture or surface object
            made of it, is an error, except of copies that a JAX transformation made.

    Raises:
        CudaError: cudaErrorInvalidResourceHandle, if it was freed before.

    Example:
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 4)
        >>> cuda.freeArray(array)
        >>> try:
        ...     cuda.memcpyFromArray(array)
        ... except cuda.CudaError as error:
        ...     print(error.name)
        cudaErrorInvalidResourceHandle
    """
    if array is not None:
        release("freeArray", check_type("freeArray", "array", array, Array, "mallocArray makes one"))


@cuda_function
def freeMipmappedArray(mipmappedArray: MipmappedArray | None) -> None:
    """Marks a mipmapped array as freed: `cudaFreeMipmappedArray`.

    Args:
        mipmappedArray: a `MipmappedArray`, or ``None``, as in `freeArray`.

    Raises:
        CudaError: as in `freeArray`.
    """
    if mipmappedArray is not None:
        remedy = "mallocMipmappedArray makes one"
        checked = check_type("freeMipmappedArray", "mipmappedArray", mipmappedArray, MipmappedArray, remedy)
        release("freeMipmappedArray", checked)


@cuda_function
def deviceGetTexture1DLinearMaxWidth(
    fmtDesc: ChannelFormatDesc, device: int = 0, *, compute_capability: float = NEWEST_COMPUTE_CAPABILITY
) -> int:
    """Returns the largest number of elements of a texture over linear memory: `cudaDeviceGetTexture1DLinearMaxWidth`.

    Args:
        fmtDesc: a `ChannelFormatDesc`.
        device: without effect.
        compute_capability: the compute capability whose limit is returned, such as 9.0.

    Returns:
        The number of elements that `createTextureObject` accepts: for every format, the number in the guide's table.

    Raises:
        CudaError: cudaErrorInvalidChannelDescriptor, for a format that CUDA does not have.

    Source:
        CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".

    Example:
        >>> from jaxtex import cuda
        >>> cuda.deviceGetTexture1DLinearMaxWidth(cuda.createChannelDesc("float"), 0) == 2**28
        True
    """
    name = "deviceGetTexture1DLinearMaxWidth"
    check_desc(name, fmtDesc)
    return limit_of(name, "maxTexture1DLinear", compute_capability)[0]


def _malloc(function: str, desc: object, extent: Iterable[int], flags: ArrayFlags, compute_capability: float) -> Array:
    checked, size = _check(function, desc, extent, flags, compute_capability)
    return Array(_zeros(checked, size), checked, size, flags)


def _zeros(desc: ChannelFormatDesc, extent: Extent) -> jax.Array:
    shape = [n for n in reversed(extent) if n]
    shape[-2:] = [blocks_along(n, desc.block_side) for n in shape[-2:]]
    if desc.has_planes:
        shape[-2] += shape[-2] // 2
    return filled((*shape, desc.numbers), desc.dtype)


def _check(
    function: str, desc: object, extent: Iterable[int], flags: ArrayFlags, compute_capability: float
) -> tuple[ChannelFormatDesc, Extent]:
    """The format and the extent, if they follow the rules of `cudaMalloc3DArray`: format, shape, flags, then size."""
    checked = check_desc(function, desc)
    try:
        size = Extent(*(operator.index(n) for n in extent)).frozen()
    except TypeError:
        raise TypeError(f"{function}: extent is {extent!r}, expected three ints (width, height, depth).") from None
    fault = _shape_fault(size, flags)
    if fault:
        raise invalid(f"{function}: the extent is {tuple(size)} with flags {flags!r}: {fault}.")
    kind = kind_of(size, flags)
    check_block_array(function, checked, kind, flags)
    if checked.has_planes:
        check_planar_array(function, size, kind, flags)
    for flag, kinds, expected in KINDS_OF_FLAGS:
        if flags & flag and kind not in kinds:
            raise invalid(
                f"{function}: flags has {flag.name} for an array of kind {kind.value!r}, expected {expected}; leave "
                f"the flag out."
            )
    check_limits(function, TEXTURE_KINDS[kind].texture_limits, tuple(size), compute_capability)
    if flags & ArrayFlags.TextureGather:
        check_limits(function, "maxTexture2DGather", tuple(size), compute_capability)
    return checked, size


def check_block_array(function: str, desc: ChannelFormatDesc, kind: TextureKind, flags: ArrayFlags) -> None:
    """Refuses arrays of blocks that CUDA refuses: without rows (1), color attachments (1), and surfaces (801)."""
    is_compressed, attached = desc.block_side > 1, bool(flags & ArrayFlags.ColorAttachment)
    if (is_compressed and kind.texel_ndim == 1) or (attached and desc.block_format is not None):
        raise invalid(
            f"{function}: an array of kind {kind.value!r} has flags {flags!r} and the format {desc}, expected no color "
            "attachment, and rows for a block-compressed format."
        )
    if is_compressed and flags & ArrayFlags.SurfaceLoadStore:
        raise CudaError(
            Error.NotSupported,
            f"{function}: flags has SurfaceLoadStore for a block-compressed format, which no surface has; leave the "
            f"flag out.",
        )


def check_planar_array(function: str, size: Extent, kind: TextureKind, flags: ArrayFlags) -> None:
    """Refuses arrays of NV12 that CUDA refuses (1)."""
    fits = kind in (TextureKind.TEXTURE2D, TextureKind.TEXTURE2D_LAYERED) and size.width % 2 == size.height % 2 == 0
    if not fits or not flags & ArrayFlags.VideoEncodeDecode or flags & ArrayFlags.ColorAttachment:
        raise invalid(
            f"{function}: an array of the format NV12 has the extent {tuple(size)} and flags {flags!r}, expected an "
            f"even width and height, two dimensions or layers of two, VideoEncodeDecode and no ColorAttachment."
        )


def _shape_fault(extent: Extent, flags: ArrayFlags) -> str:
    """A description of what is wrong with an extent and its flags, or an empty string."""
    width, height, depth = extent
    if width < 1 or height < 0 or depth < 0:
        return "expected a width of at least 1, and no negative size"
    if flags & ArrayFlags.Cubemap:
        faces = "a multiple of 6" if flags & ArrayFlags.Layered else "6"
        if height != width or not depth or (depth % 6 if flags & ArrayFlags.Layered else depth != 6):
            return f"expected a square with a depth of {faces} for a cubemap"
    elif flags & ArrayFlags.Layered:
        if not depth:
            return "expected the number of layers as depth"
    elif depth and not height:
        return "expected a height with a depth, or the flag Layered for layers of rows"
    return ""
