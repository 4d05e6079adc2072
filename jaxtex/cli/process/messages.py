"""What is printed: on one line each, without control characters, in any encoding, to a pipe that may be closed."""

# pyright: strict, reportUnknownMemberType=false

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Generator
from typing import TextIO

from ..errors import UserError


def printable(text: str) -> str:
    """Text in which characters that a terminal would obey, such as escape sequences in names, are written out."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def print_report(line: str) -> None:
    """Prints a line to standard output. A reader who closed it wants no more, which is no error.

    Raises:
        UserError: if it cannot be written for another reason, such as a full disk.
    """
    with reader_may_leave():
        write_line(line, sys.stdout)
        if sys.stdout:
            sys.stdout.flush()


def flush() -> None:
    """Writes what standard output still holds.

    Raises:
        UserError: as `print_report`.
    """
    with reader_may_leave():
        if sys.stdout:
            sys.stdout.flush()


def print_error(line: str) -> None:
    """Prints a line to standard error; a line that nobody can see is lost."""
    try:
        write_line(line, sys.stderr)
    except (OSError, ValueError):
        discard(sys.stderr)


@contextlib.contextmanager
def warnings_as_notes(is_quiet: bool) -> Generator[None, None, None]:
    """Prints warnings of libraries, such as JAX's of a cache that cannot be written, as notes, or not at all."""

    def show(message: Warning | str, *_: object) -> None:
        if not is_quiet:
            print_error(f"jaxtex: note: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def write_line(line: str, stream: TextIO | None) -> None:
    """Writes a line above the progress bar, if there is one, to a stream that may be closed."""
    if stream is None:
        return
    if sys.modules.get("tqdm"):  # which is of the extra `cli`, and slow to import
        from tqdm import tqdm

        tqdm.write(printable(line), file=stream)
    else:
        print(printable(line), file=stream)


@contextlib.contextmanager
def reader_may_leave() -> Generator[None, None, None]:
    """Ends the block without an error if standard output is a closed pipe.

    Raises:
        UserError: if standard output cannot be written for another reason, such as a full disk.
    """
    try:
        yield
    except BrokenPipeError:
        discard(sys.stdout)
    except OSError as error:
        discard(sys.stdout)
        raise UserError(f"cannot write to standard output: {error.strerror or error}") from error


def discard(stream: TextIO) -> None:
    """Lets what is left in the buffer of a stream vanish, so that Python does not fail to write it at its end."""
    with contextlib.suppress(OSError, io.UnsupportedOperation):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


@contextlib.contextmanager
def any_encoding() -> Generator[None, None, None]:
    """Writes characters that standard output cannot encode as escapes."""
    stream, errors = sys.stdout, getattr(sys.stdout, "errors", None)
    if not isinstance(stream, io.TextIOWrapper) or errors is None:
        yield
        return
    stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            stream.reconfigure(errors=errors)
