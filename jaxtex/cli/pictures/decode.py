"""Image files to arrays of pixels.

Pixels are (height, width, channels) in uint8 or uint16; 1 to 4 channels are gray, gray and alpha, RGB, RGBA. Pillow
decodes what the other codecs do not:

- 16-bit PNG: imagecodecs, since Pillow reduces 16-bit color to 8 bits without a word;
- 16-bit TIFF: tifffile, for the same reason; 8-bit gray and RGB TIFF too, since libtiff under Pillow writes to standard
  error;
- JPEG: imagecodecs, which runs the same codec, since Pillow holds Python's lock while it decodes.
"""

# pyright: strict, reportUnknownMemberType=false

import contextlib
import dataclasses
import io
import math
import warnings
from collections.abc import Callable, Generator
from pathlib import Path
from typing import BinaryIO, cast

import imagecodecs
import numpy as np
from PIL import Image

from .kinds import HEAD_BYTES, check_kind, choose_frame
from .limits import Size
from .metadata.jpeg_segments import read_jpeg
from .metadata.kept import read_pillow
from .metadata.png_chunks import PNG_SIGNATURE, read_png
from .picture import Array, Picture
from .pillow_modes import load_pixels
from .sources import Source, open_source, read_errors
from .tiff_pages import TIFF_SIGNATURES, PageFile, decode_page, find_pages
from .upright import assemble, upright_size
from .writing import STREAM, read_stdin

PNG_DEPTH_BYTE = 24
JPEG_SCAN, JPEG_END = b"\xff\xda", b"\xff\xd9"
ALIGNMENT = 64  # bytes

# Raises a `UserError` for a width and a height that are refused.
Accept = Callable[[Size], None]


def accept_all(_: Size) -> None:
    """Refuses no size."""


@contextlib.contextmanager
def silence_codecs() -> Generator[None, None, None]:
    """Ignores the codecs' warnings of large images and odd metadata, in all threads, since they share the filters.

    Pillow's own limit of pixels does not hold: `limits` has one for all codecs.
    """
    limit = Image.MAX_IMAGE_PIXELS
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(PIL|tifffile|imagecodecs)\b")
        Image.MAX_IMAGE_PIXELS = None
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = limit


def find_source(path: Path, number: int | None = None) -> Source:
    """A file, with the pages that it has if it is a TIFF.

    Args:
        path: of a regular file, or - for standard input.
        number: of the only page or frame that is used, from 1; `None` for all pages of a TIFF.

    Raises:
        UserError: if the file cannot be read, is a TIFF without pictures, or has no such page.
    """
    source = Source(path, frame=number)
    with read_errors(source):
        if path == STREAM:
            source = source._replace(data=read_stdin())
        with open_source(source) as file:
            head = file.read(HEAD_BYTES)
            if head[:4] not in TIFF_SIGNATURES:
                return source
            check_kind(path.name, head)
            pages, notes = find_pages(file)
        if number is not None:
            pages = [pages[choose_frame(len(pages), number)]]
    return source._replace(pages=tuple(pages), notes=notes)


def read_picture(source: Source | Path, accept: Accept = accept_all) -> Picture:
    """Decodes an image file, or a page of one.

    Args:
        source: as `find_source` finds it; a path is that of a file with one picture.
        accept: is called with the width and the height of the upright picture before memory is allocated for it, and
            raises a `UserError` to refuse it.

    Raises:
        UserError: if the file cannot be read, is not an image, is refused, or has an unsupported depth.
    """
    if isinstance(source, Path):
        source = find_source(source)
        with read_errors(Source(source.path)):
            choose_frame(len(source.pages), None)
    with read_errors(source), open_source(source) as file:
        if source.pages:
            page = source.pages[source.position]
            accept(page.size)
            picture = decode_page(PageFile(file, page.directory))
            notes = source.notes if len(source.pages) == 1 else ()  # else they are not on this page
            return dataclasses.replace(picture, notes=(*notes, *picture.notes))
        check_kind(source.path.name, file.read(HEAD_BYTES))
        accept(size_of(file))
        file.seek(0)
        return decode(file.read(), source.frame)


def size_of(file: io.BufferedIOBase) -> Size:
    """The width and the height of a picture as it is shown, from the header of its file."""
    file.seek(0)
    image = Image.open(cast(BinaryIO, file))  # which reads the header, and closes no file that it did not open
    return upright_size(image.size, read_pillow(image.info).orientation)


def decode(data: bytes, frame: int | None = None) -> Picture:
    """Decodes the bytes of an image file that is no TIFF; raises whatever the codec raises."""
    with Image.open(io.BytesIO(data)) as image:
        is_mpo = image.format == "MPO"  # a JPEG followed by others, such as previews and gain maps
        count = getattr(image, "n_frames", 1)
        if not is_mpo or frame:
            image.seek(choose_frame(count, frame))
        picture = decode_by_pillow(data, image)
    if is_mpo and frame is None:
        return dataclasses.replace(picture, notes=(f"has {count} pictures, of which the first is used", *picture.notes))
    return picture


def decode_by_pillow(data: bytes, image: Image.Image) -> Picture:
    """Decodes an image that Pillow has opened, by a faster or more exact codec if there is one."""
    drops_channel = image.mode == "RGBX"
    icc, notes = image.info.get("icc_profile"), ()
    if data.startswith(PNG_SIGNATURE):
        metadata = read_png(data)
    elif image.format in ("JPEG", "MPO"):
        metadata = read_jpeg(data)
    else:
        metadata = read_pillow(image.info)
    if data.startswith(PNG_SIGNATURE) and data[PNG_DEPTH_BYTE] == 16:
        pixels = imagecodecs.png_decode(data)
    elif image.format == "JPEG" and image.mode in ("L", "RGB") and is_complete_jpeg(data):
        channels = (3,) if image.mode == "RGB" else ()
        pixels = imagecodecs.jpeg8_decode(data, out=empty_aligned((image.height, image.width, *channels)))
    else:
        pixels, icc, notes = load_pixels(image, icc)
    return assemble(pixels, metadata.orientation, Picture(pixels, icc, notes, metadata), drops_channel)


def is_complete_jpeg(data: bytes) -> bool:
    """Whether an end of image follows the last start of a scan.

    Pillow raises for a truncated file, while imagecodecs fills the missing part with gray. The end of a preview in the
    head of the file does not count, since it stands before the scan.
    """
    end = data.rfind(JPEG_END)
    return end >= 0 and data.find(JPEG_SCAN, end) < 0


def empty_aligned(shape: tuple[int, ...]) -> Array:
    """An empty uint8 array at an address that JAX reads in place on a CPU; an unaligned array would be copied."""
    count = math.prod(shape)
    buffer = np.empty(count + ALIGNMENT, np.uint8)
    first = -buffer.ctypes.data % ALIGNMENT
    return buffer[first : first + count].reshape(shape)
