"""Allocation and release of CUDA arrays, and the rules that their shapes and flags follow."""

import math
import operator
from collections.abc import Iterable

import jax

from ..._blocks.formats import blocks_along
from ...modes import TextureKind
from ..enums import ArrayFlags, Error
from ..errors import CudaError, check_type, choose, invalid, release
from ..functions import cuda_function
from ..kinds import NEWEST_COMPUTE_CAPABILITY, TEXTURE_KINDS, check_limits, limit_of
from .arrays import Array, Extent, MipmappedArray, kind_of, level_extent
from .channel_formats import ChannelFormatDesc, check_desc
from .numbers import filled

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
