"""Descriptors: the memory that a texture or a surface is made of, the modes of a read, and views of resources."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from typing import TYPE_CHECKING, Any, cast

from jax.typing import ArrayLike

from .enums import AddressMode, ChannelFormatKind, Error, FilterMode, ReadMode, ResourceType, ResourceViewFormat
from .errors import CudaError
from .memory import arrays
from .memory.channel_formats import FLOAT, ChannelFormatDesc
from .structs import Components, Struct, no_field, struct

# Resources


UNION = "cudaResourceDesc.res"
# The members of the union in CUDA's struct, and the fields here that each consists of.
UNION_MEMBERS = {
    "array": {"array": "memory"},
    "mipmap": {"mipmap": "memory"},
    "linear": {"devPtr": "memory", "desc": "desc", "sizeInBytes": "sizeInBytes"},
    "pitch2D": {
        "devPtr": "memory",
        "desc": "desc",
        "width": "width",
        "height": "height",
        "pitchInBytes": "pitchInBytes",
    },
}


@struct("memory")
class ResourceDesc(Struct):
    """The memory that a texture or a surface is made of: `cudaResourceDesc`.

    The constructors `Array`, `MipmappedArray`, `Linear` and `Pitch2D` each describe one kind of memory.
    ``ResourceDesc()`` is a zeroed struct. Its fields may be assigned; those of CUDA's union are under `res`. It is a
    pytree whose only child is `memory`; the other fields are static.

    Attributes:
        memory: an `Array`, a `MipmappedArray`, or a plain JAX array.
        resType: the `ResourceType`.
        desc: the format of plain memory. Arrays have their own format.
        sizeInBytes: the size of linear memory; ``None`` is all of it.
        width, height: the size of pitched memory in elements; ``None`` is all of it.
        pitchInBytes: the bytes from row to row of pitched memory; ``None`` if its shape gives the rows.
        flags: 0, as CUDA requires.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> cuda.ResourceDesc.Linear(jnp.arange(8), cuda.createChannelDesc("int")).resType.name
        'Linear'
        >>> resource = cuda.ResourceDesc()
        >>> resource.resType = cuda.ResourceType.Linear
        >>> resource.res.linear.devPtr = jnp.arange(8)
        >>> resource.res.linear.desc = cuda.createChannelDesc("int")
        >>> resource.res.linear.sizeInBytes = 8 * 4
    """

    memory: arrays.Array | arrays.MipmappedArray | ArrayLike | None = None
    resType: ResourceType | int = ResourceType.Array
    desc: ChannelFormatDesc | None = None
    sizeInBytes: int | None = None
    width: int | None = None
    height: int | None = None
    pitchInBytes: int | None = None
    flags: int = 0

    @property
    def res(self) -> "ResourceUnion":
        """CUDA's names of the fields: ``res.array.array``, ``res.mipmap.mipmap``, ``res.linear.devPtr`` and so on."""
        return ResourceUnion(self)

    @classmethod
    def Array(cls, array: arrays.Array) -> "ResourceDesc":
        """Describes an array of any kind: `cudaResourceTypeArray`.

        Args:
            array: the `Array`.
        """
        return cls(array, ResourceType.Array)

    @classmethod
    def MipmappedArray(cls, mipmap: arrays.MipmappedArray) -> "ResourceDesc":
        """Describes an array with mip levels: `cudaResourceTypeMipmappedArray`.

        Args:
            mipmap: the `MipmappedArray`.
        """
        return cls(mipmap, ResourceType.MipmappedArray)

    @classmethod
    def Linear(
        cls, devPtr: ArrayLike, desc: ChannelFormatDesc | None = None, sizeInBytes: int | None = None
    ) -> "ResourceDesc":
        """Describes linear memory, which only `tex1Dfetch` reads: `cudaResourceTypeLinear`.

        Args:
            devPtr: an array of the format's dtype, of shape (N,) for one channel, (N, C) or (N * C,) for C channels.
                Bytes, an array of uint8, and doubles, for formats of 32-bit integers, are reinterpreted.
            desc: the format. The default has the dtype of the array, and one channel or the C of (N, C).
            sizeInBytes: the number of bytes from the start that belong to the texture, by default all. The width of the
                texture is this number divided by the size of a texel.
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
        """Describes rows in linear memory, which are read as a 2D texture: `cudaResourceTypePitch2D`.

        Args:
            devPtr: an array of the format's dtype, of shape (H, W) for one channel, (H, W, C) or (H, W * C) for C
                channels. Its rows take the place of a pitch.
            desc: the format. The default has the dtype of the array, and one channel or the C of (H, W, C).
            width, height: how many elements of a row, and how many rows, belong to the texture, by default all.
            pitchInBytes: if given, `devPtr` is memory of any dtype, and row r starts at byte ``r * pitchInBytes``, as
                in `mallocPitch`. It must be a multiple of 32, and `desc`, `width` and `height` must be given too.
        """
        return cls(devPtr, ResourceType.Pitch2D, desc, width=width, height=height, pitchInBytes=pitchInBytes)


class ResourceUnion:
    """The union ``res`` of `ResourceDesc`, with the members ``array``, ``mipmap``, ``linear`` and ``pitch2D``."""

    array: "UnionMember"
    mipmap: "UnionMember"
    linear: "UnionMember"
    pitch2D: "UnionMember"

    def __init__(self, resource: ResourceDesc):
        vars(self).update(_resource=resource)

    if not TYPE_CHECKING:  # checkers of types know the members

        def __getattr__(self, name):
            return UnionMember(self._resource, name, field_of(UNION_MEMBERS, UNION, name))

        def __setattr__(self, name, value):
            fields = field_of(UNION_MEMBERS, UNION, name)
            raise AttributeError(
                f"{UNION}: {name} is a struct; assign to its fields, {', '.join(f'res.{name}.{f}' for f in fields)}."
            )


class UnionMember:
    """A struct in the union, as names of fields of `ResourceDesc`."""

    def __init__(self, resource: ResourceDesc, member: str, fields: dict[str, str]):
        vars(self).update(_resource=resource, _member=member, _fields=fields)

    def __getattr__(self, name: str) -> Any:
        field = field_of(self._fields, f"{UNION}.{self._member}", name)
        if field == "desc" and self._resource.desc is None:  # zeroed, so that its fields may be assigned
            self._resource.desc = ChannelFormatDesc()
        return getattr(self._resource, field)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._resource, field_of(self._fields, f"{UNION}.{self._member}", name), value)


def field_of(fields: dict[str, Any], struct: str, name: str) -> Any:
    """The field of a CUDA name."""
    if name not in fields:
        raise no_field(struct, name, fields)
    return fields[name]


# Textures: the modes of a read, views of resources, and the formats that allow them


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
