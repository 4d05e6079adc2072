"""`CudaError`, for calls that CUDA refuses, the functions that describe errors, and checks of arguments."""

import operator
from enum import Enum, IntFlag
from typing import TypeVar

from .._checks.numbers import is_integer
from .enums import Error
from .functions import cuda_function

Member = TypeVar("Member", bound=Enum)
Value = TypeVar("Value")

# The texts of cudaGetErrorString.
ERROR_STRINGS = {
    Error.Success: "no error",
    Error.InvalidValue: "invalid argument",
    Error.InvalidPitchValue: "invalid pitch argument",
    Error.InvalidTextureBinding: "texture is not bound to a pointer",
    Error.InvalidChannelDescriptor: "invalid channel descriptor",
    Error.InvalidMemcpyDirection: "invalid copy direction for memcpy",
    Error.InvalidFilterSetting: "linear filtering not supported for non-float type",
    Error.InvalidNormSetting: "read as normalized float not supported for 32-bit non float type",
    Error.InvalidSurface: "invalid surface reference",
    Error.InvalidResourceHandle: "invalid resource handle",
    Error.MisalignedAddress: "misaligned address",
    Error.NotSupported: "operation not supported",
}


class CudaError(Exception):
    """A call that the CUDA runtime refuses, or whose result CUDA leaves undefined.

    Args:
        code: the number of the `cudaError_t`.
        message: a sentence: which argument is wrong, what was passed, what was expected, and how to fix it.

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
        super().__init__(int(code), message)
        self.code = int(code)
        self.name = getErrorName(code)

    def __str__(self) -> str:
        return f"{self.args[1]} [{self.name}, {self.code}]"


@cuda_function
def getErrorName(error: Error | int) -> str:
    """Returns the name of an error: `cudaGetErrorName`.

    Returns:
        The name, such as ``"cudaErrorInvalidValue"``.

    Raises:
        CudaError: cudaErrorInvalidValue, if no call of this package raises such an error.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.getErrorName(26)
        'cudaErrorInvalidFilterSetting'
    """
    member = choose("getErrorName", "error", Error, error)
    return "cudaSuccess" if member is Error.Success else f"cudaError{member.name}"


@cuda_function
def getErrorString(error: Error | int) -> str:
    """Returns the description of an error: `cudaGetErrorString`.

    Args:
        error: an `Error` or its number, such as ``CudaError.code``. ``str`` of a `CudaError` says more.

    Returns:
        CUDA's description.

    Raises:
        CudaError: cudaErrorInvalidValue, if no call of this package raises such an error.
    """
    return ERROR_STRINGS[choose("getErrorString", "error", Error, error)]


@cuda_function
def getLastError() -> Error:
    """Returns ``Error.Success``: `cudaGetLastError`. Errors are raised as exceptions at once, so none is left.

    Returns:
        ``Error.Success``.
    """
    return Error.Success


@cuda_function
def peekAtLastError() -> Error:
    """Returns ``Error.Success``, as `getLastError` does: `cudaPeekAtLastError`.

    Returns:
        ``Error.Success``.
    """
    return Error.Success


def invalid(message: str) -> CudaError:
    """The error for a value that CUDA refuses (1)."""
    return CudaError(Error.InvalidValue, message)


def choose(function: str, argument: str, kind: type[Member], value: object, code: int = Error.InvalidValue) -> Member:
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
        raise TypeError(
            f"{function}: {argument} is {_with_article(type(value))}, expected {_with_article(expected)}; {remedy}."
        )
    check_alive(function, argument, value)
    return value


def release(function: str, value: object) -> None:
    """Marks an object as freed or destroyed. Copies by a transformation have no mark."""
    check_alive(function, "its argument", value)
    object.__setattr__(value, "_released_by", function)


def check_alive(function: str, argument: str, value: object) -> None:
    """Refuses an object that was freed or destroyed (400)."""
    by = getattr(value, "_released_by", None)
    if by:
        raise CudaError(
            Error.InvalidResourceHandle,
            f"{function}: {argument} is {_with_article(type(value))} that {by} has released, expected a live one; "
            f"release it after its last use, or make another.",
        )


def check_index(function: str, argument: str, value: object, count: int) -> int:
    """`value`, which must be an integer from 0 to ``count - 1``, of Python or of NumPy."""
    if not is_integer(value, 0, count - 1):
        raise invalid(f"{function}: {argument} is {value!r}, expected an int from 0 to {count - 1}.")
    return operator.index(value)


def _with_article(cls: type) -> str:
    return f"{'an' if cls.__name__[0] in 'AEIOUaeiou' else 'a'} {cls.__name__}"
