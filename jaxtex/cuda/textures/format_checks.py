"""Which formats allow which read and filter modes: the checks of `cudaCreateTextureObject`, in its order."""

# pyright: strict

from ..enums import ChannelFormatKind, Error, FilterMode, ReadMode
from ..errors import INVALID_FILTER_SETTING, INVALID_NORM_SETTING, INVALID_VALUE, CudaError
from ..memory.channel_formats import FLOAT, NORMALIZED_KINDS, ChannelFormatDesc

OK = 0
READ_COLUMNS = tuple((read, mode) for read in ReadMode for mode in FilterMode)

# The error code of each format for the columns (element, point), (element, linear), (normalized, point), (normalized,
# linear).
# Source: what the CUDA runtime returned on a GPU. For a 32-bit integer it checks the filter before the read mode.
READ_ERRORS = {
    "an 8- or 16-bit integer": (OK, INVALID_FILTER_SETTING, OK, OK),
    "a 32-bit integer": (OK, INVALID_FILTER_SETTING, INVALID_NORM_SETTING, INVALID_FILTER_SETTING),
    "floating": (OK, OK, INVALID_NORM_SETTING, INVALID_NORM_SETTING),
    "normalized": (INVALID_NORM_SETTING, INVALID_NORM_SETTING, OK, OK),
    "NV12": (INVALID_VALUE,) * 4,
}
FLOATING_KINDS = (
    FLOAT,
    ChannelFormatKind.UnsignedBlockCompressed6H,
    ChannelFormatKind.SignedBlockCompressed6H,
    ChannelFormatKind.UnsignedNormalized1010102,
)
REMEDIES = {
    INVALID_FILTER_SETTING: "integers are not blended; use FilterMode.Point, or ReadMode.NormalizedFloat with 8 or 16 "
    "bits",
    INVALID_NORM_SETTING: "use NormalizedFloat for normalized formats, and for other integers of 8 or 16 bits only",
    INVALID_VALUE: "CUDA makes no texture object of NV12, and of an SRGB format only with sRGB=1",
}


def format_class(desc: ChannelFormatDesc) -> str:
    """The row of a format in `READ_ERRORS`."""
    if desc.f == ChannelFormatKind.NV12:
        return "NV12"
    if desc.f in FLOATING_KINDS:
        return "floating"
    if desc.f in (ChannelFormatKind.Signed, ChannelFormatKind.Unsigned):
        return "a 32-bit integer" if desc.x == 32 else "an 8- or 16-bit integer"
    return "normalized"


def check_read(function: str, desc: ChannelFormatDesc, read: ReadMode, mode: FilterMode, *, srgb: bool) -> None:
    """Refuses read and filter modes that a format does not allow (26, 27, 1)."""
    row = format_class(desc)
    code = READ_ERRORS[row][READ_COLUMNS.index((read, mode))]
    if not code and ChannelFormatKind(desc.f).name.endswith("SRGB") and not srgb:
        code = INVALID_VALUE
    if code:
        raise CudaError(
            code,
            f"{function}: the format {desc.bits} {ChannelFormatKind(desc.f).name} is {row}, with readMode {read.name} "
            f"and filterMode {mode.name}: {REMEDIES[Error(code)]}.",
        )


def check_levels(function: str, desc: ChannelFormatDesc, read: ReadMode, mode: FilterMode) -> None:
    """Refuses a blend between mip levels of integers (26)."""
    integer = desc.f not in NORMALIZED_KINDS and desc.storage[0] is not FLOAT
    if integer and read is ReadMode.ElementType and mode is FilterMode.Linear:
        raise CudaError(
            INVALID_FILTER_SETTING,
            f"{function}: mipmapFilterMode is Linear for the format {desc} with readMode ElementType: "
            f"{REMEDIES[INVALID_FILTER_SETTING]}.",
        )
