"""Errors that the user of the command line can mend."""

# pyright: strict

import errno
import textwrap

LONGEST_MESSAGE = 160  # characters
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


class UserError(Exception):
    """A mistake that one sentence explains. `main` prints the sentence and returns 2, without a traceback."""


class OutputError(UserError):
    """What is wrong with an output, found while its input is read. The sentence names the output."""


class FullDiskError(UserError):
    """No space for an output, nor for those that would follow."""


def one_line(error: BaseException) -> str:
    """The class and the message of an exception on one line, cut to a readable length."""
    message = textwrap.shorten(str(error), LONGEST_MESSAGE, placeholder=" ...").rstrip(".")
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def describe(error: BaseException) -> str:
    """An exception in a sentence."""
    if isinstance(error, MemoryError):
        message = " ".join(str(error).split()).rstrip(".")
        return f"it needs more memory than there is{f' ({message})' if message else ''}"
    return one_line(error)
