"""What can be asked for: the enumerations behind the strings of the public interface."""

from enum import StrEnum


class TextureKind(StrEnum):
    """The shape of a texture: which axes it has, and whether layers stand in front of them."""

    TEXTURE1D = "1d"
    TEXTURE2D = "2d"
    TEXTURE3D = "3d"
    TEXTURE1D_LAYERED = "1d_layered"
    TEXTURE2D_LAYERED = "2d_layered"
    CUBEMAP = "cubemap"
    CUBEMAP_LAYERED = "cubemap_layered"

    @property
    def is_cube(self) -> bool:
        """Whether the texture is read by a direction and has six faces."""
        return self.value.startswith("cubemap")

    @property
    def ndim(self) -> int:
        """The number of coordinates of a read."""
        return 3 if self.is_cube else int(self.value[0])

    @property
    def texel_ndim(self) -> int:
        """How many filtered axes the texels have."""
        return 2 if self.is_cube else self.ndim

    @property
    def layered(self) -> bool:
        """Whether a read names a layer."""
        return self.value.endswith("layered")


class AddressMode(StrEnum):
    """What a tap outside the texture reads."""

    CLAMP = "clamp"
    BORDER = "border"
    WRAP = "wrap"
    MIRROR = "mirror"
    REFLECT = "reflect"
    LAST = "last"
    """The rule of a layer: whatever is out of range is the last one. Not an option of `Sampler`."""
    SEAM = "seam"
    """A tap off a cube's face lies on the next face. Not an option of `Sampler`."""


class FilterMode(StrEnum):
    """How the texels around a position are combined."""

    POINT = "point"
    LINEAR = "linear"
    CUBIC = "cubic"


class ReadMode(StrEnum):
    """Whether an integer texel is returned as it is stored, or as the fraction that it stands for."""

    ELEMENT = "element"
    NORMALIZED_FLOAT = "normalized_float"
    SRGB_FLOAT = "srgb_float"
    """The same, where colours are sRGB codes. Not an option of `Sampler`: its `srgb` asks for it."""


class Arithmetic(StrEnum):
    """In which numbers weights and sums are computed."""

    FLOAT = "float"
    HARDWARE = "hardware"


class BoundaryMode(StrEnum):
    """What a surface access outside the surface does."""

    TRAP = "trap"
    CLAMP = "clamp"
    ZERO = "zero"
