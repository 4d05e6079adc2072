"""Descriptors of textures: the modes of a read, views of resources, and the formats that allow them."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from typing import TYPE_CHECKING, Any, cast

from jax.typing import ArrayLike

from ..enums import AddressMode, ChannelFormatKind, Error, FilterMode, ReadMode, ResourceViewFormat
from ..errors import CudaError
from ..memory.channel_formats import FLOAT, ChannelFormatDesc
from ..structs import Components, Struct, struct

# One mode for every axis, or up to three in x, y, z order.
Mode = AddressMode | int
AddressModes = Mode | tuple[Mode, ...] | Components
# An array of shape (4,), or four numbers.
BorderColor = ArrayLike | tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike] | Components
if TYPE_CHECKING:
    # Fields whose elements may be assigned, whatever was assigned to the field.
    class ModesField:
        def __get__(self, struct: object, kind: object = None) -> Components: ...
        def __set__(self, struct: object, value: AddressModes) -> None: ...

    class ColorField:
        def __get__(self, struct: object, kind: object = None) -> Any: ...
        def __set__(self, struct: object, value: BorderColor) -> None: ...
else:
    ModesField, ColorField = AddressModes, BorderColor


@struct("borderColor")
class TextureDesc(Struct):
    """How a texture is read: `cudaTextureDesc`. The defaults are those of a zeroed struct in CUDA.

    Its fields, and elements of `addressMode` and `borderColor`, may be assigned until it is used as a static argument.
    It is a pytree whose only child is `borderColor`; the other fields are static.

    Args:
        addressMode: one `AddressMode` for every axis, or a tuple of one to three in x, y, z order; axes that the tuple
            leaves out have Wrap, as in a zeroed struct. The default is **Wrap**. Without `normalizedCoords` Wrap and
            Mirror act as Clamp.
        filterMode: a `FilterMode`, by default **Point**.
        readMode: a `ReadMode`. NormalizedFloat returns 8- and 16-bit integers as fractions.
        sRGB: whether the colors of 8-bit unsigned texels are decoded from sRGB before they are filtered. Only
            NormalizedFloat reads are decoded.
        borderColor: the color that Border reads, four floats from red to alpha. Where integers are read as
            elements, the bits of the floats are the color: ``numpy.int32(5).view(numpy.float32)`` stands for 5.
        normalizedCoords: whether coordinates run from 0 to 1 across the texture; by default **false**. Mipmapped arrays
            require it. A cubemap is read by a direction, which has no unit.
        maxAnisotropy: the largest anisotropy, clamped to the range from 1 to 16.
        mipmapFilterMode: a `FilterMode`, by default Point: Linear blends the two nearest levels.
        mipmapLevelBias: a number that is added to the level of detail of ``...Lod`` and ``...Grad`` reads.
        minMipmapLevelClamp, maxMipmapLevelClamp: bounds of the level of detail, relative to the first level of a view;
            if the minimum is above the maximum, the minimum applies. Both are **0** by default: every read is from
            level 0.
        disableTrilinearOptimization: no effect.
        seamlessCubemap: whether linear reads of a cubemap blend across the edges of a face; by default **false**.
            Textures of other kinds refuse it.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.TextureDesc().addressMode[0].name, cuda.TextureDesc().filterMode.name
        ('Wrap', 'Point')
    """

    addressMode: ModesField = cast(Any, (AddressMode.Wrap,) * 3)
    filterMode: FilterMode | int = FilterMode.Point
    readMode: ReadMode | int = ReadMode.ElementType
    sRGB: int = 0
    borderColor: ColorField = cast(Any, (0.0,) * 4)
    normalizedCoords: int = 0
    maxAnisotropy: int = 0
    mipmapFilterMode: FilterMode | int = FilterMode.Point
    mipmapLevelBias: float = 0.0
    minMipmapLevelClamp: float = 0.0
    maxMipmapLevelClamp: float = 0.0
    disableTrilinearOptimization: int = 0
    seamlessCubemap: int = 0

    def _converted(self, name: str, value: Any) -> Any:
        """The value that is stored for a field: arrays of C as `Components`, whose elements may be assigned."""
        if name == "addressMode":
            return mode_components(value, AddressMode.Wrap)
        is_tuple = name == "borderColor" and isinstance(value, tuple | list | Components)
        return Components(tuple(value)) if is_tuple else value


def mode_components(modes: Any, default: AddressMode) -> Any:
    """The given address mode of each of three axes; axes without one have the default."""
    if isinstance(modes, int):
        return Components((modes,) * 3)
    if isinstance(modes, tuple | list | Components):
        listed = tuple(modes)
        return Components((*listed, *(default,) * (3 - len(listed))))
    return modes


@struct()
class ResourceViewDesc(Struct):
    """Which part of an array belongs to a texture, and in which format: `cudaResourceViewDesc`.

    ``ResourceViewDesc()`` is a zeroed struct, whose fields may be assigned. It is a pytree without children.

    Args:
        format: a `ResourceViewFormat` with texels as large as those of the array, or ``None_`` for the array's format
            (documented by CUDA, refused by a card (1)). The array's format decides which modes are allowed. Integers of
            8 or 16 bits are read as fractions, unless the array holds such integers too and the mode is ElementType. A
            block-compressed format needs an array of uint2 (BC1 and BC4) or of uint4 (the others), one element for each
            block.
        width, height, depth: the extent of the array; of a block-compressed format four times its width and height.
        firstMipmapLevel, lastMipmapLevel: the first and the last level of the view, both 0 without mip levels. The
            first becomes level 0 of the texture.
        firstLayer, lastLayer: the first and the last layer of the view, both 0 without layers. The first becomes layer
            0 of the texture. In a layered cubemap a layer is a whole cubemap.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.ResourceViewDesc(cuda.ResourceViewFormat.Float1, 64, 64, firstMipmapLevel=2, lastMipmapLevel=6).depth
        0
    """

    format: ResourceViewFormat | int = ResourceViewFormat.None_
    width: int = 0
    height: int = 0
    depth: int = 0
    firstMipmapLevel: int = 0
    lastMipmapLevel: int = 0
    firstLayer: int = 0
    lastLayer: int = 0


OK = 0
READ_COLUMNS = tuple((read, mode) for read in ReadMode for mode in FilterMode)

# The error code of each format for the columns (element, point), (element, linear), (normalized, point), (normalized,
# linear). Source: results of the CUDA runtime on a GPU. For a 32-bit integer it checks the filter before the read mode.
SMALL, WIDE = "an 8- or 16-bit integer", "a 32-bit integer"
READ_ERRORS = {
    SMALL: (OK, Error.InvalidFilterSetting, OK, OK),
    WIDE: (OK, Error.InvalidFilterSetting, Error.InvalidNormSetting, Error.InvalidFilterSetting),
    "floating": (OK, OK, Error.InvalidNormSetting, Error.InvalidNormSetting),
    "normalized": (Error.InvalidNormSetting, Error.InvalidNormSetting, OK, OK),
    "NV12": (Error.InvalidValue,) * 4,
}
FLOATING_KINDS = (
    FLOAT,
    ChannelFormatKind.UnsignedBlockCompressed6H,
    ChannelFormatKind.SignedBlockCompressed6H,
    ChannelFormatKind.UnsignedNormalized1010102,
)
REMEDIES = {
    Error.InvalidFilterSetting: "integers are not blended; use FilterMode.Point, or ReadMode.NormalizedFloat with 8 or "
    "16 bits",
    Error.InvalidNormSetting: "use NormalizedFloat for normalized formats, and for other integers of 8 or 16 bits only",
    Error.InvalidValue: "CUDA makes texture objects of the planes of NV12 alone, and of an SRGB format only with "
    "sRGB=1",
}


def format_class(desc: ChannelFormatDesc) -> str:
    """The row of a format in `READ_ERRORS`."""
    if desc.f == ChannelFormatKind.NV12:
        return "NV12"
    if desc.f in FLOATING_KINDS:
        return "floating"
    if desc.f in (ChannelFormatKind.Signed, ChannelFormatKind.Unsigned):
        return WIDE if desc.x == 32 else SMALL
    return "normalized"


def check_read(function: str, desc: ChannelFormatDesc, read: ReadMode, mode: FilterMode, *, srgb: bool) -> None:
    """Refuses read and filter modes that a format does not allow (26, 27, 1)."""
    row = format_class(desc)
    code = READ_ERRORS[row][READ_COLUMNS.index((read, mode))]
    if not code and ChannelFormatKind(desc.f).name.endswith("SRGB") and not srgb:
        code = Error.InvalidValue
    if code:
        raise CudaError(
            code,
            f"{function}: the format {desc.bits} {ChannelFormatKind(desc.f).name} is {row}, with readMode {read.name} "
            f"and filterMode {mode.name}: {REMEDIES[Error(code)]}.",
        )


def read_of_view(held: ChannelFormatDesc, viewed: ChannelFormatDesc, read: ReadMode) -> ReadMode:
    """The read mode of a view, which the format of the array decides.

    Source: results of a GPU. Integers of 8 or 16 bits are fractions, unless the array holds such integers too and the
        mode is ElementType. Floats and 32-bit integers are read as they are.
    """
    if viewed == held or format_class(viewed) == format_class(held) == SMALL:
        return read
    return ReadMode.NormalizedFloat if format_class(viewed) == SMALL else ReadMode.ElementType


def check_blends(function: str, desc: ChannelFormatDesc, read: ReadMode, **filters: FilterMode) -> None:
    """Refuses blends of integers that CUDA allows: between levels, and of 32 bits in views of other texels (801)."""
    is_integer = format_class(desc) in (SMALL, WIDE) and read is ReadMode.ElementType
    linear = [name for name, mode in filters.items() if mode is FilterMode.Linear]
    if is_integer and linear:
        raise CudaError(
            Error.NotSupported,
            f"{function}: pTexDesc.{linear[0]} is Linear for the format {desc}, which is read as integers; CUDA blends "
            f"them here, and this package does not; use FilterMode.Point, or store floats.",
        )
