"""Image files to pictures.

Pixels are (height, width, channels) in uint8 or uint16; 1 to 4 channels are gray, gray and alpha, RGB, RGBA. Pillow
decodes what the other codecs do not:

- PNG: imagecodecs, which keeps 16 bits and refuses a file without all of its rows; it would write a warning of one
  that is interlaced to standard error;
- JPEG: imagecodecs, which runs the same codec, since Pillow holds Python's lock while it decodes;
- TIFF of 8 and 16 bits: tifffile, since libtiff under Pillow writes to standard error and keeps 8 bits.
"""

import contextlib
import dataclasses
import io
import re
import warnings
from collections.abc import Callable, Generator
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO, cast

import imagecodecs
import numpy as np
from PIL import Image

from ...warp.sized.mappings import Array, Size
from ...warp.sized.texels import pixels_with_room
from ..process import UserError
from .containers import PNG_SIGNATURE, has_all_rows, jpeg_segments, png_of_pixels, read_jpeg, read_png
from .exif import ORIENTATION, upright_size
from .inputs import HEAD_BYTES, STREAM, PictureFile, check_kind, choose_frame, read_errors, read_stdin
from .metadata import EXIF_HEADER, Metadata, Picture
from .tiff import SIGNATURES, PageFile, decode_page, find_pages

PNG_DEPTH, PNG_INTERLACE = 24, 28  # bytes
JPEG_END = b"\xff\xd9"
# Bits that a codec takes for pixels where some are missing: ones and zeros in every pattern.
MORE_BITS = bytes(range(1, 250)) * 8
FILLING = 128  # what a codec shows where the pixels of a JPEG are missing
CUT_OFF = "it is broken or cut off: pixels are missing"
MODES_8_BIT = {
    **{"1": "L", "L": "L", "La": "LA", "LA": "LA", "P": "RGB", "PA": "RGBA", "RGB": "RGB", "RGBX": "RGB"},
    **{"RGBa": "RGBA", "RGBA": "RGBA", "CMYK": "RGB", "YCbCr": "RGB"},
}
MODES_16_BIT = ("I;16", "I;16L", "I;16B")
WITH_ALPHA = {"L": "LA", "RGB": "RGBA"}
# Where formats that Pillow reduces to 8 bits state a depth, and the bits that this stands for.
STATED_DEPTHS: dict[str, tuple[bytes, Callable[[bytes], int]]] = {
    "PPM": (
        rb"^P6(?:\s+|#[^\n]*\n)+\d+(?:\s+|#[^\n]*\n)+\d+(?:\s+|#[^\n]*\n)+(\d+)",
        lambda most: int(most).bit_length(),
    ),
    "JPEG2000": (rb"ihdr.{10}(.)|^\xffO\xffQ.{38}(.)", lambda stored: (stored[0] & 0x7F) + 1),
    "AVIF": (rb"pixi.{5}(.)", lambda stored: stored[0]),
}
HEADER_BYTES = 2**16  # in which they stand

# Raises a `UserError` for a width and a height that are refused.
Accept = Callable[[Size], None]


@contextlib.contextmanager
def silence_codecs() -> Generator[None, None, None]:
    """Ignores the codecs' warnings of large images and odd metadata, in all threads, since they share the filters.

    Pillow's own limit of pixels does not hold: `metadata.check_pixels` is one for all codecs.
    """
    limit = Image.MAX_IMAGE_PIXELS
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(PIL|tifffile|imagecodecs)\b")
        Image.MAX_IMAGE_PIXELS = None
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = limit


def find_picture(path: Path, number: int | None = None) -> PictureFile:
    """A file, with the pages that it has if it is a TIFF.

    Args:
        path: of a regular file, or - for standard input.
        number: of the only page or frame that is used, from 1; `None` for all pages of a TIFF.
    """
    source = PictureFile(path, frame=number)
    with read_errors(source):
        if path == STREAM:
            source = source._replace(data=read_stdin())
        with source.open() as file:
            head = file.read(HEAD_BYTES)
            if head[:4] not in SIGNATURES:
                return source
            check_kind(path.name, head)
            pages, notes = find_pages(file)
        if number is not None:
            pages = [pages[choose_frame(len(pages), number)]]
    return source._replace(pages=tuple(pages), notes=notes)


def read_picture(source: PictureFile | Path, accept: Accept = lambda _: None) -> Picture:
    """Decodes an image file, or a page of one.

    Args:
        source: as `find_picture` finds it; a path is that of a file with one picture.
        accept: is called with the width and the height of the upright picture before memory is allocated for it, and
            raises a `UserError` to refuse it.
    """
    if isinstance(source, Path):
        source = find_picture(source)
        with read_errors(PictureFile(source.path)):
            choose_frame(len(source.pages), None)
    with read_errors(source), source.open() as file:
        if source.pages:
            page = source.pages[source.position]
            accept(page.size)
            picture = decode_tiff(PageFile(file, page.directory))
            notes = source.notes if len(source.pages) == 1 else ()  # else they are not on this page
            return dataclasses.replace(picture, notes=(*notes, *picture.notes))
        check_kind(source.path.name, file.read(HEAD_BYTES))
        file.seek(0)
        with Image.open(cast(BinaryIO, file)) as image:  # which reads the header
            accept(upright_size(image.size, read_pillow(image).orientation))
            place = file.tell()  # where Pillow goes on
            file.seek(0)
            data = file.read()
            file.seek(place)
            return decode(data, image, source.frame)


def decode_tiff(file: PageFile) -> Picture:
    """Decodes the first page of a TIFF; raises whatever the codec raises."""
    decoded = decode_page(file)
    if isinstance(decoded, Picture):
        return decoded
    file.seek(0)
    with Image.open(cast(BinaryIO, file)) as image:
        pixels, icc, notes = load_pixels(image)
        # Loading turns the picture upright.
        orientation = image.getexif().get(ORIENTATION, 1)
        return Picture.upright(pixels, orientation, icc, decoded, notes, drops_channel=image.mode == "RGBX")


def decode(data: bytes, image: Image.Image, frame: int | None = None) -> Picture:
    """Decodes an image file that is no TIFF; raises whatever the codec raises.

    Args:
        data: the bytes of the file.
        image: the file as Pillow opens it.
    """
    is_mpo = image.format == "MPO"  # a JPEG followed by others, such as previews and gain maps
    count = getattr(image, "n_frames", 1)
    if not is_mpo or frame:
        image.seek(choose_frame(count, frame))
    drops_channel, icc, notes = image.mode == "RGBX", image.info.get("icc_profile"), ()
    if data.startswith(PNG_SIGNATURE):
        metadata = read_png(data)
    elif image.format in ("JPEG", "MPO"):
        metadata = read_jpeg(data)
    else:
        metadata = read_pillow(image)
    if data.startswith(PNG_SIGNATURE) and count == 1 and (data[PNG_DEPTH] == 16 or not data[PNG_INTERLACE]):
        pixels = imagecodecs.png_decode(png_of_pixels(data))
    elif image.format == "JPEG" and image.mode in ("L", "RGB"):
        pixels = decode_jpeg(data, image)
    else:
        if data.startswith(PNG_SIGNATURE) and count == 1 and not has_all_rows(data):
            raise UserError(CUT_OFF)
        pixels, icc, notes = load_pixels(image)
        notes += depth_notes(data, image)
    if is_mpo and frame is None:
        notes = (f"has {count} pictures, of which the first is used", *notes)
    return Picture.upright(pixels, metadata.orientation, icc, metadata, notes, drops_channel=drops_channel)


# JPEG


def decode_jpeg(data: bytes, image: Image.Image) -> Array:
    """The pixels of a JPEG in gray or RGB; a file with missing pixels is refused."""
    if not data.endswith(JPEG_END) and end_of_jpeg(data) < 0:
        raise UserError(CUT_OFF)
    shape = (image.height, image.width, 3) if image.mode == "RGB" else (image.height, image.width)
    pixels = imagecodecs.jpeg8_decode(data, out=pixels_with_room(shape, np.dtype(np.uint8)))
    if not image.info.get("progressive") and (pixels[-1, -1] != FILLING).any():
        return pixels
    # The codec fills a scan that ends too soon, from bits behind its end if there are any.
    end = end_of_jpeg(data)
    if end < 0 or not np.array_equal(pixels, imagecodecs.jpeg8_decode(data[:end] + MORE_BITS + data[end:])):
        raise UserError(CUT_OFF)
    return pixels


def end_of_jpeg(data: bytes) -> int:
    """Where the first end of an image stands behind the head, which may hold a preview with an end; -1 if nowhere.

    A film may follow.
    """
    return data.find(JPEG_END, 2 + sum(4 + len(body) for _, body in jpeg_segments(data)))


# What Pillow decodes


def read_pillow(image: Image.Image) -> Metadata:
    """The metadata that Pillow found in a file of another format, such as WebP."""
    info: dict[Any, Any] = image.info
    exif, xmp = (value if isinstance(value, bytes) else None for value in (info.get("exif"), info.get("xmp")))
    exif = exif.removeprefix(EXIF_HEADER) if exif else None
    try:
        x, y = (Fraction(float(side)) for side in info["dpi"])
        resolution = (x, y) if min(x, y) > 0 and image.format != "WEBP" else None
    except (KeyError, TypeError, ValueError, OverflowError):
        resolution = None
    dropped = ("comment",) if isinstance(info.get("comment"), bytes) and info["comment"] else ()
    return Metadata("WebP" if image.format == "WEBP" else None, exif or None, xmp, resolution, dropped=dropped)


def load_pixels(image: Image.Image) -> tuple[Array, bytes | None, tuple[str, ...]]:
    """The pixels of an image, their color profile, and notes on what was lost."""
    icc: bytes | None = image.info.get("icc_profile")
    notes: tuple[str, ...] = ()
    image.load()
    if image.mode == "CMYK":
        image, note = cmyk_to_rgb(image, icc)
        icc, notes = None, (note,)
    if image.mode in MODES_16_BIT or (image.mode == "I" and image.format == "PPM"):
        return np.asarray(image).astype(np.uint16), icc, notes
    mode = MODES_8_BIT.get(image.mode)
    if mode is None:
        raise UserError(f"pixels of mode {image.mode} are not supported, only 8 and 16 bits per channel")
    return np.asarray(image.convert(WITH_ALPHA.get(mode, mode) if image.has_transparency_data else mode)), icc, notes


def depth_notes(data: bytes, image: Image.Image) -> tuple[str, ...]:
    """A note if Pillow reduces the colors of an image to 8 bits."""
    pattern, bits_of = STATED_DEPTHS.get(image.format or "", (b"", int))
    if not pattern or image.mode in (*MODES_16_BIT, "I"):
        return ()
    match = re.search(pattern, data[:HEADER_BYTES], re.DOTALL)
    bits = bits_of(next(filter(None, match.groups()))) if match else 8
    return (f"is reduced from {bits} to 8 bits",) if bits > 8 else ()


def cmyk_to_rgb(image: Image.Image, icc: bytes | None) -> tuple[Image.Image, str]:
    """Ink as light: by the color profile if there is one that can be used, else by plain arithmetic; and a note."""
    converted = convert_by_profile(image, icc) if icc else None
    if converted:
        return converted, "is converted from CMYK to sRGB by its color profile"
    dropped = ", and its color profile, which cannot be used, is dropped" if icc else ""
    return image.convert("RGB"), f"is converted from CMYK to RGB without a color profile{dropped}"


def convert_by_profile(image: Image.Image, icc: bytes) -> Image.Image | None:
    """An image in sRGB, or `None` if the profile is broken or for something else."""
    try:
        from PIL import ImageCms
    except ImportError:  # Pillow may be built without it
        return None
    try:
        return ImageCms.profileToProfile(
            image,
            ImageCms.ImageCmsProfile(io.BytesIO(icc)),
            cast(Any, ImageCms.createProfile("sRGB")),
            renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
            outputMode="RGB",
            flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
        )
    except (ImageCms.PyCMSError, OSError, ValueError):
        return None
