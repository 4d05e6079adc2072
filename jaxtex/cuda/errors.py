"""`CudaError`, the exception for what CUDA refuses, and the checks of arguments that raise it."""

# pyright: strict

from enum import Enum, IntFlag
from typing import TypeVar

Member = TypeVar("Member", bound=Enum)
Value = TypeVar("Value")

ERROR_NAMES = {
    1: "cudaErrorInvalidValue",
    12: "cudaErrorInvalidPitchValue",
    20: "cudaErrorInvalidChannelDescriptor",
    21: "cudaErrorInvalidMemcpyDirection",
    26: "cudaErrorInvalidFilterSetting",
    27: "cudaErrorInvalidNormSetting",
    716: "cudaErrorMisalignedAddress",
    801: "cudaErrorNotSupported",
}
(
    INVALID_VALUE,
    INVALID_PITCH_VALUE,
    INVALID_CHANNEL_DESCRIPTOR,
    INVALID_MEMCPY_DIRECTION,
    INVALID_FILTER_SETTING,
    INVALID_NORM_SETTING,
    MISALIGNED_ADDRESS,
    NOT_SUPPORTED,
) = ERROR_NAMES


class CudaError(Exception):
    """A call that the CUDA runtime refuses, or whose result CUDA leaves undefined.

    Args:
        code: the number of the `cudaError_t`.
        message: a sentence: which argument is wrong, what came, what was expected, and how to mend it.

    Attributes:
        code: the number of the error, such as 26.
        name: the name of the error, such as ``"cudaErrorInvalidFilterSetting"``.

    Source:
        CUDA Runtime API, "Data types used by CUDA Runtime", `cudaError`.

    Example:
        >>> from jaxtex import cuda
        >>> try:
        ...     cuda.mallocArray(cuda.createChannelDesc("float"), 0)
        ... except cuda.CudaError as error:
        ...     print(error.code, error.name)
        1 cudaErrorInvalidValue
    """

    code: int
    name: str

    def __init__(self, code: int, message: str):
        super().__init__(code, message)
        self.code = code
        self.name = ERROR_NAMES[code]

    def __str__(self) -> str:
        return f"{self.args[1]} [{self.name}, {self.code}]"


def choose(function: str, argument: str, kind: type[Member], value: object, code: int = INVALID_VALUE) -> Member:
    """The member of the enumeration `kind` that `value` is, or whose number it is."""
    try:
        member = kind(value)
    except (TypeError, ValueError):
        member = None
    # IntFlag accepts bits that no member has.
    if member is None or isinstance(value, bool) or (isinstance(member, IntFlag) and member & ~sum(type(member))):
        listed = ", ".join(f"{kind.__name__}.{option.name}" for option in kind)
        raise CudaError(code, f"{function}: {argument} is {value!r}, expected one of {listed}.")
    return member


def check_type(function: str, argument: str, value: object, expected: type[Value], remedy: str) -> Value:
    """`value`, which must be an instance of the class `expected`."""
    if not isinstance(value, expected):
        article = "an" if expected.__name__[0] in "AEIOU" else "a"
        raise TypeError(
            f"{function}: {argument} is a {type(value).__name__}, expected {article} {expected.__name__}; {remedy}."
        )
    return value


def check_index(function: str, argument: str, value: object, count: int) -> int:
    """`value`, which must be an int from 0 to ``count - 1``."""
    if not isinstance(value, int) or not 0 <= value < count:
        raise CudaError(INVALID_VALUE, f"{function}: {argument} is {value!r}, expected an int from 0 to {count - 1}.")
    return value
