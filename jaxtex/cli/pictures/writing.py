"""How results are written: format, quality, subsampling, and standard streams."""

# pyright: strict

import sys
from pathlib import Path
from typing import NamedTuple

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
    """All of standard input."""
    return sys.stdin.buffer.read()


def write_stdout(_: Path, data: bytes) -> None:
    """Writes bytes to standard output.

    Raises:
        UserError: if it cannot be written to.
    """
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise UserError(f"cannot write to standard output: {error.strerror or error}") from error
