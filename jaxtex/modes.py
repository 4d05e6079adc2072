"""The options of a read: the enumerations behind the strings of the public interface."""

from collections.abc import Collection
from enum import StrEnum
from typing import Any, TypeVar

from ._checks.words import listing, shown

__all__ = ["AddressMode", "Arithmetic", "BlockFormat", "BoundaryMode", "FilterMode", "Limit", "ReadMode", "TextureKind"]
__dir__ = listing(__all__)

Option = TypeVar("Option", bound=StrEnum)

# Words of other libraries for our options: of PyTorch, NumPy, SciPy, OpenCV, kornia and OpenGL.
ALIASES: dict[str, dict[str, str]] = {
    "AddressMode": {
        "clamp_to_edge": "clamp",
        "edge": "clamp",
        "replicate": "clamp",
        "clamp_to_border": "border",
        "constant": "border",
        "zeros": "border",
        "repeat": "wrap",
        "mirrored_repeat": "mirror",
        "symmetric": "mirror",
    },
    "FilterMode": {
        "nearest": "point",
        "bilinear": "linear",
        "trilinear": "linear",
        "bicubic": "cubic",
        "tricubic": "cubic",
        "lanczos": "lanczos3",
        "triangle": "linear",
    },
}
ALIASES["BlockFormat"] = {"dxt1": "bc1", "dxt3": "bc2", "dxt5": "bc3", "rgtc1": "bc4", "rgtc2": "bc5", "bptc": "bc7"}
ALIASES["ResizeFilter"] = {**ALIASES["FilterMode"], "box": "area"}


def choose(name: str, argument: str, value: Any, options: type[Option] | Collection[Option]) -> Option:
    """The member of an enumeration that `value` names, or an error that lists the members.

    Args:
        name: the public function, for the message.
        argument: the argument, for the message.
        options: an enumeration, or those of its members that are allowed.
    """
    allowed = tuple(options)
    enumeration = type(allowed[0])
    try:
        member = enumeration(value)
    except ValueError:
        member = None
    if member in allowed:
        return member
    listed = ", ".join(repr(option.value) for option in allowed)
    error = ValueError if isinstance(value, str) else TypeError
    raise error(f"{name}: {argument} is {shown(value)}, expected one of {listed}.")


class OptionEnum(StrEnum):
    """An enumeration that also takes the words of `ALIASES`."""

    @classmethod
    def _missing_(cls, value: object) -> "OptionEnum | None":
        alias = ALIASES.get(cls.__name__, {}).get(value) if isinstance(value, str) else None
        return None if alias is None else cls(alias)


class TextureKind(OptionEnum):
    """The kind of a texture: which axes it has, and whether it has layers."""

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


class AddressMode(OptionEnum):
    """What a tap outside the texture reads.

    Words of other libraries are aliases: ``"edge"``, ``"replicate"`` and ``"clamp_to_edge"`` for clamp; ``"zeros"``,
    ``"constant"`` and ``"clamp_to_border"`` for border; ``"repeat"`` for wrap; ``"symmetric"`` and
    ``"mirrored_repeat"`` for mirror. ``"reflect"`` is NumPy's: the edge texel appears once. ``"sphere"`` is
    for longitude and latitude, x and y of a 2D or 3D texture.
    """

    CLAMP = "clamp"
    BORDER = "border"
    WRAP = "wrap"
    MIRROR = "mirror"
    REFLECT = "reflect"
    SPHERE = "sphere"


class FilterMode(OptionEnum):
    """How the texels around a position are combined.

    Words of other libraries are aliases: ``"nearest"`` for point; ``"bilinear"`` and ``"trilinear"`` for linear;
    ``"bicubic"`` and ``"tricubic"`` for cubic; ``"lanczos"`` for lanczos3; ``"triangle"`` for linear.
    """

    POINT = "point"
    LINEAR = "linear"
    CUBIC = "cubic"
    BSPLINE = "bspline"
    LAGRANGE = "lagrange"
    MITCHELL = "mitchell"
    LANCZOS2 = "lanczos2"
    LANCZOS3 = "lanczos3"
    GAUSSIAN = "gaussian"


# The filters of a resize: those of a read, and the mean over the footprint of an output pixel.
ResizeFilter = OptionEnum("ResizeFilter", {mode.name: mode.value for mode in FilterMode} | {"AREA": "area"})


class ReadMode(OptionEnum):
    """Whether an integer texel is returned as an integer, or as a fraction from 0 to 1 (signed: -1 to 1)."""

    ELEMENT = "element"
    NORMALIZED_FLOAT = "normalized_float"


class Arithmetic(OptionEnum):
    """The numbers in which weights and sums are computed: float32, or the fixed point of an NVIDIA texture unit."""

    FLOAT = "float"
    HARDWARE = "hardware"


class Limit(OptionEnum):
    """The bounds to which the result of a read is clamped: the two nearest taps of each axis."""

    TAPS = "taps"


class BlockFormat(OptionEnum):
    """How texels are packed in blocks of bytes, most often 4 by 4; `block_compressed` says what each format holds.

    Older names are aliases: ``"dxt1"``, ``"dxt3"`` and ``"dxt5"`` for bc1, bc2 and bc3; ``"rgtc1"`` and ``"rgtc2"`` for
    bc4 and bc5; ``"bptc"`` for bc7.
    """

    BC1 = "bc1"
    BC2 = "bc2"
    BC3 = "bc3"
    BC4 = "bc4"
    BC4_SIGNED = "bc4_signed"
    BC5 = "bc5"
    BC5_SIGNED = "bc5_signed"
    BC6H = "bc6h"
    BC6H_SIGNED = "bc6h_signed"
    BC7 = "bc7"
    RGB10A2 = "rgb10a2"


class BoundaryMode(OptionEnum):
    """What a surface access outside the surface does."""

    TRAP = "trap"
    CLAMP = "clamp"
    ZERO = "zero"
