"""Channel formats: the number of bits in each channel of a texel, and their meaning."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._blocks.formats import FORMATS
from ..._checks.numbers import on_device
from ...modes import BlockFormat
from ..enums import ChannelFormatKind, Error, ReadMode
from ..errors import CudaError, check_type, choose, invalid
from ..functions import Text, cuda_function, made
from ..structs import Struct, struct
from .numbers import as_numbers, bit_cast

SIGNED, UNSIGNED, FLOAT = ChannelFormatKind.Signed, ChannelFormatKind.Unsigned, ChannelFormatKind.Float


class ChannelType(NamedTuple):
    """A type of one channel, by its names in CUDA C++, a channel descriptor, JAX and a resource view."""

    name: str
    kind: ChannelFormatKind
    bits: int
    dtype: str
    view_format: str


CHANNEL_TYPES = (
    ChannelType("char", SIGNED, 8, "int8", "SignedChar"),
    ChannelType("uchar", UNSIGNED, 8, "uint8", "UnsignedChar"),
    ChannelType("short", SIGNED, 16, "int16", "SignedShort"),
    ChannelType("ushort", UNSIGNED, 16, "uint16", "UnsignedShort"),
    ChannelType("int", SIGNED, 32, "int32", "SignedInt"),
    ChannelType("uint", UNSIGNED, 32, "uint32", "UnsignedInt"),
    ChannelType("half", FLOAT, 16, "float16", "Half"),
    ChannelType("float", FLOAT, 32, "float32", "Float"),
)
BASE_TYPES = {row.name: row for row in CHANNEL_TYPES}
STORED_TYPES = {(row.kind, row.bits): row for row in CHANNEL_TYPES}
SPELLINGS = {
    "signed char": "char",
    "unsigned char": "uchar",
    "unsigned short": "ushort",
    "unsigned int": "uint",
    "unsigned": "uint",
    "__half": "half",
}
# Types of CUDA C++ without textures. `cudaCreateChannelDesc<double>()` compiles, and returns the kind None.
OTHER_TYPES = ("long", "ulong", "longlong", "ulonglong", "double")


def repeated(bits: int, channels: int) -> tuple[int, int, int, int]:
    """The bits of a descriptor with so many equal channels."""
    return tuple(bits if channel < channels else 0 for channel in range(4))  # pyright: ignore[reportReturnType]


class FixedKind(NamedTuple):
    """A kind that fixes the bits in its descriptor, with the type of a decoded channel, and the format of blocks."""

    bits: tuple[int, int, int, int]
    storage: tuple[ChannelFormatKind, int]
    block_format: BlockFormat | None = None


FIXED_KINDS = {
    ChannelFormatKind.NV12: FixedKind((8, 8, 8, 0), (UNSIGNED, 8)),
    **{
        ChannelFormatKind[f"{kind.name}Normalized{bits}X{channels}"]: FixedKind(repeated(bits, channels), (kind, bits))
        for kind in (UNSIGNED, SIGNED)
        for bits in (8, 16)
        for channels in (1, 2, 4)
    },
    ChannelFormatKind.UnsignedNormalized1010102: FixedKind((10, 10, 10, 2), (UNSIGNED, 16), BlockFormat.RGB10A2),
    ChannelFormatKind.UnsignedBlockCompressed4: FixedKind((8, 0, 0, 0), (UNSIGNED, 16), BlockFormat.BC4),
    ChannelFormatKind.SignedBlockCompressed4: FixedKind((8, 0, 0, 0), (SIGNED, 16), BlockFormat.BC4_SIGNED),
    ChannelFormatKind.UnsignedBlockCompressed5: FixedKind((8, 8, 0, 0), (UNSIGNED, 16), BlockFormat.BC5),
    ChannelFormatKind.SignedBlockCompressed5: FixedKind((8, 8, 0, 0), (SIGNED, 16), BlockFormat.BC5_SIGNED),
    ChannelFormatKind.UnsignedBlockCompressed6H: FixedKind((16, 16, 16, 0), (FLOAT, 16), BlockFormat.BC6H),
    ChannelFormatKind.SignedBlockCompressed6H: FixedKind((16, 16, 16, 0), (FLOAT, 16), BlockFormat.BC6H_SIGNED),
    **{
        ChannelFormatKind[f"UnsignedBlockCompressed{number}{suffix}"]: FixedKind(
            (8, 8, 8, 8), (UNSIGNED, 8), BlockFormat(f"bc{number}")
        )
        for number in (1, 2, 3, 7)
        for suffix in ("", "SRGB")
    },
}
# Blocks are stored as words.
WORD = np.dtype(np.uint32)


class CudaType(NamedTuple):
    """A parsed type name: the base type, and the length of the vector, or None for a scalar."""

    base: str
    length: int | None


@struct()
class ChannelFormatDesc(Struct):
    """The format of a texel: `cudaChannelFormatDesc`. ``ChannelFormatDesc()`` is a zeroed struct.

    Like CUDA's struct it may hold any numbers, and its fields may be assigned; the functions that take a format check
    it, and keep a copy. It is a pytree without children.

    Args:
        x, y, z, w: the number of bits in each channel, 0 for an absent channel. A valid format has 1, 2 or 4 channels
            of equal width, x first: 8, 16 or 32 bits.
        f: what the bits mean, a `ChannelFormatKind` or its number.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.ChannelFormatDesc(8, 8, 0, 0, cuda.ChannelFormatKind.Unsigned) == cuda.createChannelDesc("uchar2")
        True
    """

    x: int = 0
    y: int = 0
    z: int = 0
    w: int = 0
    f: ChannelFormatKind | int = ChannelFormatKind.Signed

    @property
    def bits(self) -> tuple[int, int, int, int]:
        """The number of bits in each of the four channels."""
        return (self.x, self.y, self.z, self.w)

    @property
    def channels(self) -> int:
        """The number of channels."""
        return sum(bits > 0 for bits in self.bits)

    @property
    def block_format(self) -> BlockFormat | None:
        """The format of a block, a `jaxtex.BlockFormat`, or ``None`` if channels are stored one by one."""
        row = FIXED_KINDS.get(ChannelFormatKind(self.f))
        return None if row is None else row.block_format

    @property
    def block_side(self) -> int:
        """The width and the height of an element in texels: 4 of a block-compressed format, else 1."""
        return 1 if self.block_format is None else FORMATS[self.block_format].side

    @property
    def has_planes(self) -> bool:
        """Whether the channels lie in planes of their own, which `arrayGetPlane` returns."""
        return self.f == ChannelFormatKind.NV12

    @property
    def texel_bytes(self) -> int:
        """The size of an element in bytes: of a texel, of a block of texels, or of a number in a plane."""
        if self.has_planes:
            return 1
        return sum(self.bits) // 8 if self.block_format is None else FORMATS[self.block_format].size

    @property
    def numbers(self) -> int:
        """The count of numbers in an element: its channels, or the 32-bit words of a block."""
        return self.texel_bytes // self.dtype.itemsize

    @property
    def is_normalized(self) -> bool:
        """Whether the format stores fractions as integers."""
        return self.f in FIXED_KINDS and not self.has_planes and self.storage[0] is not FLOAT

    @property
    def storage(self) -> tuple[ChannelFormatKind, int]:
        """The type of one channel, of blocks decoded: Signed, Unsigned or Float, and the number of bits."""
        row = FIXED_KINDS.get(ChannelFormatKind(self.f))
        return (ChannelFormatKind(self.f), self.x) if row is None else row.storage

    @property
    def dtype(self) -> np.dtype:
        """The dtype of an array of elements: of texels, or of the words of blocks."""
        return WORD if self.block_format else jnp.dtype(STORED_TYPES[self.storage].dtype)

    @property
    def stored_base(self) -> str:
        """The name of the type of one stored channel, such as ``"uchar"`` or ``"half"``."""
        return STORED_TYPES[self.storage].name

    def result_base(self, read_mode: ReadMode) -> str:
        """The name of the type of one channel of a read. Half texels are read as ``"float"``.

        Args:
            read_mode: the `ReadMode` of the read.
        """
        kind, _ = self.storage
        is_float = kind is FLOAT or self.is_normalized or read_mode is ReadMode.NormalizedFloat
        return "float" if is_float else self.stored_base

    def __str__(self) -> str:
        if self.f in FIXED_KINDS or self.storage not in STORED_TYPES:
            return f"{self.bits} {ChannelFormatKind(self.f).name}"
        return self.stored_base + (str(self.channels) if self.channels > 1 else "")


def parse_type(function: str, argument: str, name: object) -> CudaType:
    """The base type and the length of a CUDA type name such as "float4"."""
    if isinstance(name, str):
        spelled = " ".join(name.split())
        spelled = SPELLINGS.get(spelled, spelled)
        digit = spelled[-1:] if spelled[-1:] in "1234" else ""
        base = spelled.removesuffix(digit)
        base = "half" if base == "__half" else base
        if base in BASE_TYPES or base in OTHER_TYPES:
            return CudaType(base, int(digit) if digit else None)
    raise invalid(
        f"{function}: {argument} is {name!r}, expected the name of a CUDA type: one of {', '.join(BASE_TYPES)}, "
        f"alone or followed by 1, 2 or 4."
    )


@cuda_function
def createChannelDesc(
    x: int | str | ChannelFormatKind, y: int = 0, z: int = 0, w: int = 0, f: ChannelFormatKind | int | None = None
) -> ChannelFormatDesc:
    """Describes a texel by the bits of its channels, by the name of a type, or by a kind.

    Args:
        x: one of three forms: the number of bits in the first channel; a type name such as ``"float4"``, ``"uchar2"``
            or ``"half"``, for ``cudaCreateChannelDesc<float4>()`` and the like; or a `ChannelFormatKind` that fixes
            the bits, such as ``ChannelFormatKind.UnsignedNormalized8X4``.
        y, z, w: the number of bits in the other channels, in the first form.
        f: what the bits mean, a `ChannelFormatKind` or its number, in the first form.

    Returns:
        A `ChannelFormatDesc`. As in CUDA, a type that no texture has (``"float3"``, ``"double"``) gets 0 bits and the
        kind None, and the functions that take a format refuse it.

    Raises:
        CudaError: cudaErrorInvalidValue, if `x` is a string that names no CUDA type, if `f` is not a kind, or if `f` is
            missing in the first form.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.createChannelDesc("half2").bits
        (16, 16, 0, 0)
        >>> cuda.createChannelDesc(32, 0, 0, 0, cuda.ChannelFormatKind.Float) == cuda.createChannelDesc("float")
        True
    """
    if isinstance(x, str):
        base, length = parse_type("createChannelDesc", "x", x)
        if base in OTHER_TYPES or length == 3:
            return ChannelFormatDesc(0, 0, 0, 0, ChannelFormatKind.None_)
        row = BASE_TYPES[base]
        return ChannelFormatDesc(*repeated(row.bits, length or 1), row.kind)
    if isinstance(x, ChannelFormatKind) and f is None and x in FIXED_KINDS:
        return ChannelFormatDesc(*FIXED_KINDS[x].bits, x)
    if f is None:
        raise invalid(
            "createChannelDesc: f is missing; pass the name of a type alone, such as 'float4', or a kind for the bits, "
            "such as ChannelFormatKind.Float."
        )
    return ChannelFormatDesc(int(x), int(y), int(z), int(w), choose("createChannelDesc", "f", ChannelFormatKind, f))


def half_format(suffix: str) -> Callable[[], ChannelFormatDesc]:
    """The function ``createChannelDescHalf<suffix>``."""
    name, described = f"createChannelDescHalf{suffix}", f'createChannelDesc("half{suffix}")'
    channels = "one half" if suffix in ("", "1") else f"{suffix} halves"
    text = Text(f"Describes texels of {channels}, 16 bits each: ``{described}``.", "A `ChannelFormatDesc`.", "")

    def make(given: dict[str, Any]) -> ChannelFormatDesc:
        return createChannelDesc(f"half{suffix}")

    return made(name, make, text, {}, {}, result=ChannelFormatDesc)


HALF_FORMATS = {f"createChannelDescHalf{suffix}": half_format(suffix) for suffix in ("", "1", "2", "4")}


def infer_desc(function: str, dtype: np.dtype, channels: int) -> ChannelFormatDesc:
    """The format of an array of texels, for a caller who gives none."""
    name = {row.dtype: row.name for row in CHANNEL_TYPES}.get(dtype.name)
    if name is None or channels not in (1, 2, 4):
        raise CudaError(
            Error.InvalidChannelDescriptor,
            f"{function}: desc is missing, and no channel format has {channels} channels of {dtype}; textures "
            f"hold 1, 2 or 4 channels of {', '.join(row.dtype for row in CHANNEL_TYPES)}.",
        )
    return createChannelDesc(f"{name}{channels}")


def check_desc(function: str, desc: object) -> ChannelFormatDesc:
    """`desc`, which must be a format that CUDA has (20)."""
    checked = check_type(function, "desc", desc, ChannelFormatDesc, 'createChannelDesc("float4") makes one')
    kind = choose(function, "desc.f", ChannelFormatKind, checked.f)
    widths = [row.bits for row in CHANNEL_TYPES if row.kind is kind]
    valid = [repeated(bits, channels) for bits in widths for channels in (1, 2, 4)]
    valid = [FIXED_KINDS[kind].bits] if kind in FIXED_KINDS else valid
    if checked.bits not in valid:
        raise CudaError(
            Error.InvalidChannelDescriptor,
            f"{function}: desc has {checked.bits} bits of kind {kind.name}, expected 1, 2 or 4 channels of equal "
            f"width, x first: 8, 16 or 32 bits of Signed or Unsigned, 16 or 32 of Float, or the bits in the name of a "
            f"normalized kind; pad three channels to four.",
        )
    return dataclasses.replace(checked, f=kind).frozen()


def unmodeled(function: str, argument: str, name: str) -> CudaError:
    """The error for a format that CUDA has and this package does not (801)."""
    return CudaError(
        Error.NotSupported,
        f"{function}: {argument} is {name}, which this package does not model; decode the image and store it in 8-bit, "
        "16-bit or float channels.",
    )


def as_texels(function: str, argument: str, values: Any, desc: ChannelFormatDesc) -> jax.Array:
    """Numbers of the dtype of a format. Unsigned 16-bit integers are the bits of halves, and bytes those of blocks."""
    numbers = as_numbers(function, argument, values, desc.dtype)
    if desc.block_format is not None and numbers.dtype == np.uint8 and numbers.ndim:
        return bit_cast(on_device(numbers), desc.dtype)
    if desc.dtype == np.float16 and numbers.dtype == np.uint16:
        return jax.lax.bitcast_convert_type(on_device(numbers), jnp.float16)
    check_dtype(function, argument, numbers, desc)
    return on_device(numbers)


def check_dtype(function: str, argument: str, values: jax.Array, desc: ChannelFormatDesc) -> None:
    """Refuses values whose dtype is not that of the texels of a format (1)."""
    if values.dtype != desc.dtype:
        raise invalid(
            f"{function}: {argument} has dtype {values.dtype}, expected {desc.dtype} for the format {desc}; convert "
            f"numbers with astype, or reinterpret bits with jax.lax.bitcast_convert_type."
        )
