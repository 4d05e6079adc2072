"""Where a picture is stored: a file, or one page of a TIFF."""

# pyright: strict

import contextlib
import io
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple, cast

from PIL import UnidentifiedImageError

from ..errors import OutputError, UserError, describe, one_line
from .kinds import open_regular
from .limits import Size


class Page(NamedTuple):
    """A page of a TIFF.

    Attributes:
        directory: where its tags are stored.
        size: width and height of the upright picture.
        texel_bytes: the most bytes that one of its pixels takes in the output.
    """

    directory: int
    size: Size
    texel_bytes: int


class Source(NamedTuple):
    """A picture in a file.

    Attributes:
        path: of the file, or - for standard input.
        data: what standard input held; `None` for a file.
        pages: of a TIFF, that are warped; none where they are still to be found, and for other files.
        position: of the page among `pages`, from 0.
        frame: which one of an animation, from 1; `None` if the file must have one.
        notes: what else the file has, as the ends of sentences.
    """

    path: Path
    data: bytes | None = None
    pages: tuple[Page, ...] = ()
    position: int = 0
    frame: int | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.path} (page {self.position + 1})" if len(self.pages) > 1 else str(self.path)


def open_source(source: Source) -> io.BufferedIOBase:
    """Opens the file of a picture, and waits for no pipe and no device.

    Raises:
        UserError: if it is no regular file.
        OSError: if it cannot be opened.
    """
    if source.data is not None:
        return io.BytesIO(source.data)
    return cast(io.BufferedReader, open_regular(source.path))


@contextlib.contextmanager
def read_errors(source: Source) -> Generator[None, None, None]:
    """Turns whatever a codec raises into a `UserError` that names the file."""
    try:
        yield
    except OutputError:
        raise
    except UserError as error:
        raise UserError(f"cannot read {source}: {error}") from error
    except UnidentifiedImageError as error:
        raise UserError(f"cannot read {source}: it is not an image of a known format") from error
    except MemoryError as error:
        raise UserError(f"cannot read {source}: {describe(error)}") from error
    except Exception as error:  # each codec has errors of its own, and a broken file can raise any of them
        if isinstance(error, OSError) and error.strerror:
            raise UserError(f"cannot read {source}: {error.strerror}") from error
        raise UserError(f"cannot read {source}: it is broken or of an unsupported kind, {one_line(error)}") from error
