"""CUDA's enumerations with CUDA's values: ``cudaAddressModeWrap`` is `AddressMode.Wrap`. Numbers are accepted too."""

from enum import IntEnum, IntFlag


class AddressMode(IntEnum):
    """How a read outside the texture is addressed: `cudaTextureAddressMode`.

    Attributes:
        Wrap: the texture repeats.
        Clamp: the nearest texel of the edge is read.
        Mirror: the texture repeats, and every other copy is mirrored.
        Border: the border color is read.
    """

    Wrap = 0
    Clamp = 1
    Mirror = 2
    Border = 3


class FilterMode(IntEnum):
    """How the texels around a position are combined: `cudaTextureFilterMode`.

    Attributes:
        Point: the texel that contains the position is returned.
        Linear: the two nearest texels along each axis are blended.
    """

    Point = 0
    Linear = 1


class ReadMode(IntEnum):
    """Whether an integer texel is returned as it is stored, or as a fraction: `cudaTextureReadMode`.

    Attributes:
        ElementType: texels are returned as they are stored.
        NormalizedFloat: 8- and 16-bit integers are returned as fractions in [0, 1], signed ones in [-1, 1].
    """

    ElementType = 0
    NormalizedFloat = 1


class ResourceType(IntEnum):
    """The kind of memory that a texture or a surface is made of: `cudaResourceType`.

    Attributes:
        Array: an `Array`.
        MipmappedArray: a `MipmappedArray`.
        Linear: linear memory, a JAX array.
        Pitch2D: rows in linear memory, a JAX array.
    """

    Array = 0
    MipmappedArray = 1
    Linear = 2
    Pitch2D = 3


class SurfaceBoundaryMode(IntEnum):
    """What a surface access outside the surface does: `cudaSurfaceBoundaryMode`.

    Attributes:
        Zero: a read returns 0, and a write is dropped.
        Clamp: the access moves to the nearest position inside the surface.
        Trap: the same as Zero, and an error under `jax.experimental.checkify`.
    """

    Zero = 0
    Clamp = 1
    Trap = 2


class MemcpyKind(IntEnum):
    """The direction of a copy: `cudaMemcpyKind`. It has no effect, because JAX owns all memory."""

    HostToHost = 0
    HostToDevice = 1
    DeviceToHost = 2
    DeviceToDevice = 3
    Default = 4


class TextureType(IntEnum):
    """The kind of a texture reference: `cudaTextureType1D` to `cudaTextureTypeCubemapLayered`."""

    Type1D = 0x01
    Type2D = 0x02
    Type3D = 0x03
    TypeCubemap = 0x0C
    Type1DLayered = 0xF1
    Type2DLayered = 0xF2
    TypeCubemapLayered = 0xFC


class ChannelFormatKind(IntEnum):
    """The meaning of the bits of a channel: `cudaChannelFormatKind`.

    The other kinds also fix the widths and the number of channels.

    Attributes:
        Signed, Unsigned, Float: integers or floats, with the widths in the `ChannelFormatDesc`.
        None_: no format. The name ends in an underscore because ``None`` is a Python keyword.
        NV12: a frame of video of two planes, which `arrayGetPlane` returns. Its array needs the flag
            ``ArrayFlags.VideoEncodeDecode``.
    """

    Signed = 0
    Unsigned = 1
    Float = 2
    None_ = 3
    NV12 = 4
    UnsignedNormalized8X1 = 5
    UnsignedNormalized8X2 = 6
    UnsignedNormalized8X4 = 7
    UnsignedNormalized16X1 = 8
    UnsignedNormalized16X2 = 9
    UnsignedNormalized16X4 = 10
    SignedNormalized8X1 = 11
    SignedNormalized8X2 = 12
    SignedNormalized8X4 = 13
    SignedNormalized16X1 = 14
    SignedNormalized16X2 = 15
    SignedNormalized16X4 = 16
    UnsignedBlockCompressed1 = 17
    UnsignedBlockCompressed1SRGB = 18
    UnsignedBlockCompressed2 = 19
    UnsignedBlockCompressed2SRGB = 20
    UnsignedBlockCompressed3 = 21
    UnsignedBlockCompressed3SRGB = 22
    UnsignedBlockCompressed4 = 23
    SignedBlockCompressed4 = 24
    UnsignedBlockCompressed5 = 25
    SignedBlockCompressed5 = 26
    UnsignedBlockCompressed6H = 27
    SignedBlockCompressed6H = 28
    UnsignedBlockCompressed7 = 29
    UnsignedBlockCompressed7SRGB = 30
    UnsignedNormalized1010102 = 31


class ResourceViewFormat(IntEnum):
    """The format in which a resource view is read: `cudaResourceViewFormat`.

    A name is a channel type and a number of channels. ``None_`` keeps the format of the resource.
    """

    None_ = 0x00
    UnsignedChar1 = 0x01
    UnsignedChar2 = 0x02
    UnsignedChar4 = 0x03
    SignedChar1 = 0x04
    SignedChar2 = 0x05
    SignedChar4 = 0x06
    UnsignedShort1 = 0x07
    UnsignedShort2 = 0x08
    UnsignedShort4 = 0x09
    SignedShort1 = 0x0A
    SignedShort2 = 0x0B
    SignedShort4 = 0x0C
    UnsignedInt1 = 0x0D
    UnsignedInt2 = 0x0E
    UnsignedInt4 = 0x0F
    SignedInt1 = 0x10
    SignedInt2 = 0x11
    SignedInt4 = 0x12
    Half1 = 0x13
    Half2 = 0x14
    Half4 = 0x15
    Float1 = 0x16
    Float2 = 0x17
    Float4 = 0x18
    UnsignedBlockCompressed1 = 0x19
    UnsignedBlockCompressed2 = 0x1A
    UnsignedBlockCompressed3 = 0x1B
    UnsignedBlockCompressed4 = 0x1C
    SignedBlockCompressed4 = 0x1D
    UnsignedBlockCompressed5 = 0x1E
    SignedBlockCompressed5 = 0x1F
    UnsignedBlockCompressed6H = 0x20
    SignedBlockCompressed6H = 0x21
    UnsignedBlockCompressed7 = 0x22


class SurfaceType(IntEnum):
    """The kind of a surface reference: `cudaSurfaceType1D` to `cudaSurfaceTypeCubemapLayered`."""

    Type1D = 0x01
    Type2D = 0x02
    Type3D = 0x03
    TypeCubemap = 0x0C
    Type1DLayered = 0xF1
    Type2DLayered = 0xF2
    TypeCubemapLayered = 0xFC


class SurfaceFormatMode(IntEnum):
    """The format mode of a surface: `cudaSurfaceFormatMode`. No CUDA function takes it."""

    Forced = 0
    Auto = 1


class GraphicsCubeFace(IntEnum):
    """The faces of a cubemap in their order: `cudaGraphicsCubeFace`."""

    PositiveX = 0
    NegativeX = 1
    PositiveY = 2
    NegativeY = 3
    PositiveZ = 4
    NegativeZ = 5


class Error(IntEnum):
    """The codes of errors, and ``Success``: `cudaError_t`. The exception that has such a code is `CudaError`.

    ``cudaErrorInvalidValue`` is ``Error.InvalidValue``. A call that fails raises the exception, with the number as its
    ``code``.
    """

    Success = 0
    InvalidValue = 1
    InvalidPitchValue = 12
    InvalidTextureBinding = 19
    InvalidChannelDescriptor = 20
    InvalidMemcpyDirection = 21
    InvalidFilterSetting = 26
    InvalidNormSetting = 27
    InvalidSurface = 37
    InvalidResourceHandle = 400
    MisalignedAddress = 716
    NotSupported = 801


class ArrayFlags(IntFlag):
    """The kind of an array, and its allowed accesses: `cudaArrayLayered` and the others, joined by ``|``.

    Attributes:
        Default: none of the other flags.
        Layered: the depth is a number of layers.
        SurfaceLoadStore: surfaces may be made of the array.
        Cubemap: the depth is 6 faces, or 6 faces for each layer.
        TextureGather: `tex2Dgather` may read the array.
        ColorAttachment, DeferredMapping: no effect.
        Sparse: affects only which kinds of arrays are allowed; every texel is resident.
        VideoEncodeDecode: required for the format NV12. In CUDA only the driver API names this flag.
    """

    Default = 0x00
    Layered = 0x01
    SurfaceLoadStore = 0x02
    Cubemap = 0x04
    TextureGather = 0x08
    ColorAttachment = 0x20
    Sparse = 0x40
    DeferredMapping = 0x80
    VideoEncodeDecode = 0x100
