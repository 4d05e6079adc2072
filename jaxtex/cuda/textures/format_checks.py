# pyright: strict

"""Which formats can be read how: the checks of `cudaCreateTextureObject`, in its order."""

from ..enums import ChannelFormatKind, FilterMode, ReadMode
from ..errors import INVALID_FILTER_SETTING, INVALID_NORM_SETTING, INVALID_VALUE, CudaError
from ..memory.channel_formats import FLOAT, NORMALIZED_KINDS, ChannelFormatDesc

OK = 0
READS = tuple((read, mode) for read in ReadMode for mode in FilterMode)

# The codes of (element, point), (element, linear), (normalised, point), (normalised, linear).
# Source: the runtime's own answers on a card; of a 32-bit integer the filter is checked before the read mode.
VALIDITY = {
    "an 8- or 16-bit integer": (OK, INVALID_FILTER_SETTING, OK, OK),
    "a 32-bit integer": (OK, INVALID_FILTER_SETTING, INVALID_NORM_SETTING, INVALID_FILTER_SETTING),
    "floating": (OK, OK, INVALID_NORM_SETTING, INVALID_NORM_SETTING),
    "normalised": (INVALID_NORM_SETTING, INVALID_NORM_SETTING, OK, OK),
    "NV12": (INVALID_VALUE,) * 4,
}
FLOATING_KINDS = (
    FLOAT,
    ChannelFormatKind.UnsignedBlockCompressed6H,
    ChannelFormatKind.SignedBlockCompressed6H,
    ChannelFormatKind.UnsignedNormalized1010102,
)
REMEDIES = {
    INVALID_FILTER_SETTING: "integers are not blended: use FilterMode.Point, or ReadMode.NormalizedFloat with 8 or 16 "
    "bits",
    INVALID_NORM_SETTING: "NormalizedFloat is for 8- and 16-bit integers, and normalised kinds are read only so",
    INVALID_VALUE: "no texture object reads this format so",
}


def format_class(desc: ChannelFormatDesc) -> str:
    """The row of `VALIDITY` of a format."""
    if desc.f == ChannelFormatKind.NV12:
        return "NV12"
    if desc.f in FLOATING_KINDS:
        return "floating"
    if desc.f in (ChannelFormatKind.Signed, ChannelFormatKind.Unsigned):
        return "a 32-bit integer" if desc.x == 32 else "an 8- or 16-bit integer"
    return "normalised"


def check_read(function: str, desc: ChannelFormatDesc, read: ReadMode, mode: FilterMode, *, srgb: bool) -> None:
    """Refuses a format, read mode and filter that do not go together (26, 27, 1)."""
    row = format_class(desc)
    code = VALIDITY[row][READS.index((read, mode))]
    if not code and ChannelFormatKind(desc.f).name.endswith("SRGB") and not srgb:
        code = INVALID_VALUE
    if code:
        raise CudaError(
            code,
            f"{function}: the format {desc.bits} {ChannelFormatKind(desc.f).name} is {row} one, with readMode "
            f"{read.name} and filterMode {mode.name}; {REMEDIES[code]}.",
        )


def check_levels(function: str, desc: ChannelFormatDesc, read: ReadMode, mode: FilterMode) -> None:
    """Refuses a blend of mip levels of integers (26)."""
    integer = desc.f not in NORMALIZED_KINDS and desc.storage[0] is not FLOAT
    if integer and read is ReadMode.ElementType and mode is FilterMode.Linear:
        raise CudaError(
            INVALID_FILTER_SETTING,
            f"{function}: mipmapFilterMode is Linear for the format {desc} with readMode ElementType; "
            f"{REMEDIES[INVALID_FILTER_SETTING]}.",
        )
