"""How results are written: format, quality, subsampling, and standard streams."""

# pyright: strict

import sys
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ..errors import UserError
from ..grammar.option_groups import Options, Subsampling

# Stands for standard input and standard output.
STREAM = Path("-")
FORMAT_OF_STREAM = "png"


class WriteOptions(NamedTuple):
    """How a picture is encoded.

    Attributes:
        suffix: that of the format, where a file has no name: on standard output.
        quality: of JPEG and WebP, 1 to 100; `None` is 95 for JPEG, and WebP without loss.
        subsampling: of the colors of JPEG.
    """

    suffix: str = f".{FORMAT_OF_STREAM}"
    quality: int | None = None
    subsampling: Subsampling = "444"

    def named(self, path: Path) -> Path:
        """A path whose suffix stands for the format of the file."""
        return Path(f"stdout{self.suffix}") if path == STREAM else path


DEFAULT_WRITE = WriteOptions()


def write_options(options: Options) -> WriteOptions:
    """How the options have pictures written."""
    return WriteOptions(f".{options.format or FORMAT_OF_STREAM}", options.quality, options.subsampling or "444")


def read_stdin() -> bytes:
    """All of standard input.

    Raises:
        UserError: if it is closed.
    """
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise UserError("standard input is closed")
    return sys.stdin.buffer.read()


def write_stdout(data: bytes) -> None:
    """Writes bytes to standard output.

    Raises:
        UserError: if it cannot be written to.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise UserError("cannot write to standard output: it is closed")
    try:
        write_all(sys.stdout.buffer, data)
    except OSError as error:
        raise UserError(f"cannot write to standard output: {error.strerror or error}") from error


def write_all(stream: BinaryIO, data: bytes) -> None:
    """Writes all bytes: under PYTHONUNBUFFERED, standard output may take a part of them without an error.

    Raises:
        OSError: if they cannot be written.
    """
    left = memoryview(data)
    while left:
        left = left[stream.write(left) :]
    stream.flush()
