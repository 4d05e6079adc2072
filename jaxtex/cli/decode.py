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
import logging
import math
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import tifffile
from PIL import Image, UnidentifiedImageError

from .errors import UserError, one_line
from .mappings import Array
from .writing import STREAM, read_stdin

MODES_8_BIT = {
    "1": "L",
    "L": "L",
    "La": "LA",
    "LA": "LA",
    "P": "RGB",
    "PA": "RGBA",
    "RGB": "RGB",
    "RGBX": "RGB",
    "RGBa": "RGBA",
    "RGBA": "RGBA",
    "CMYK": "RGB",
    "YCbCr": "RGB",
}
WITH_ALPHA = {"L": "LA", "RGB": "RGBA"}
ORIENTATION_TAG, ICC_TAG = 274, 34675
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_DEPTH_BYTE = 24
JPEG_SCAN, JPEG_END = b"\xff\xda", b"\xff\xd9"
ALIGNMENT = 64  # bytes
TIFF_SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
COLOR_CHANNELS = {"MINISWHITE": 1, "MINISBLACK": 1, "RGB": 3}
# EXIF orientations 5 to 8 also swap the axes, after the flip.
FLIPS = {
    2: np.s_[:, ::-1],
    3: np.s_[::-1, ::-1],
    4: np.s_[::-1],
    6: np.s_[::-1],
    7: np.s_[::-1, ::-1],
    8: np.s_[:, ::-1],
}
EXTRA_CHANNEL_NOTE = "has a channel of undeclared meaning, which is dropped"

logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # it logs an error that it also raises


@dataclasses.dataclass(frozen=True)
class Picture:
    """Decoded pixels, upright, with the metadata that the output keeps.

    Attributes:
        pixels: (height, width, channels), uint8 or uint16; alpha, if any, is last and not premultiplied.
        icc: the embedded color profile, or `None`.
        notes: what was dropped, each the end of a sentence that begins with the name of the file.
    """

    pixels: Array
    icc: bytes | None = None
    notes: tuple[str, ...] = ()


@contextlib.contextmanager
def silence_codecs() -> Generator[None, None, None]:
    """Ignores the codecs' warnings of large images and odd metadata, in all threads, since they share the filters."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(PIL|tifffile|imagecodecs)\b")
        yield


def read_picture(path: Path) -> Picture:
    """Decodes an image file, its first page if it has several.

    Raises:
        UserError: if the file cannot be read, is not an image, or has an unsupported depth.
    """
    try:
        data = read_stdin() if path == STREAM else path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        return decode(data)
    except UserError as error:
        raise UserError(f"cannot read {path}: {error}") from error
    except UnidentifiedImageError as error:
        raise UserError(f"cannot read {path}: it is not an image of a known format") from error
    except Exception as error:  # each codec has errors of its own, and a broken file can raise any of them
        raise UserError(f"cannot read {path}: it is broken or of an unsupported kind, {one_line(error)}") from error


def decode(data: bytes) -> Picture:
    """Decodes the bytes of an image file; raises whatever the codec raises."""
    if data[:4] in TIFF_SIGNATURES:
        with tifffile.TiffFile(io.BytesIO(data)) as tiff:
            page: Any = tiff.pages.first  # a TiffFrame has no tags, but the first page is never one
            if page.bitspersample == 16 or (page.bitspersample == 8 and photometric(page) in COLOR_CHANNELS):
                return decode_tiff(page, len(tiff.pages))
    with Image.open(io.BytesIO(data)) as image:
        pages = getattr(image, "n_frames", 1)
        drops_channel = image.mode == "RGBX"
        icc = image.info.get("icc_profile")
        if data.startswith(PNG_SIGNATURE) and data[PNG_DEPTH_BYTE] == 16:
            pixels = imagecodecs.png_decode(data)
            orientation = image.getexif().get(ORIENTATION_TAG, 1)
        elif image.format == "JPEG" and image.mode in ("L", "RGB") and is_complete_jpeg(data):
            channels = (3,) if image.mode == "RGB" else ()
            pixels = imagecodecs.jpeg8_decode(data, out=empty_aligned((image.height, image.width, *channels)))
            orientation = image.getexif().get(ORIENTATION_TAG, 1)
        else:
            # Loading turns a TIFF upright and resets its orientation, so the orientation is read afterwards.
            image.load()
            orientation = image.getexif().get(ORIENTATION_TAG, 1)
            pixels = np.asarray(to_8_bit(image))
    return assemble(pixels, orientation, icc, pages, drops_channel)


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


def to_8_bit(image: Image.Image) -> Image.Image:
    """Converts to 8 bits of gray or RGB, with alpha if the image has transparency of any kind.

    Raises:
        UserError: if the image has another depth.
    """
    mode = MODES_8_BIT.get(image.mode)
    if mode is None:
        raise UserError(f"pixels of mode {image.mode} are not supported, only 8 and 16 bits per channel")
    return image.convert(WITH_ALPHA.get(mode, mode) if image.has_transparency_data else mode)


def photometric(page: Any) -> str:
    """The name of a TIFF page's photometric interpretation."""
    return getattr(page.photometric, "name", "unknown")


def decode_tiff(page: Any, pages: int) -> Picture:
    """Decodes a TIFF page of 8 or 16 bits, gray or RGB, with or without alpha.

    Args:
        page: of tifffile.
        pages: how many the file has.

    Raises:
        UserError: if the page has other pixels.
    """
    colors = COLOR_CHANNELS.get(photometric(page), 0)
    if not colors or page.dtype not in (np.uint8, np.uint16):
        raise UserError(f"{photometric(page)} pixels of {page.dtype} are not supported, only gray and RGB integers")
    pixels = page.asarray()
    if page.axes == "SYX":
        pixels = np.moveaxis(pixels, 0, -1)
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    if page.photometric == tifffile.PHOTOMETRIC.MINISWHITE:
        pixels = np.concatenate([~pixels[..., :1], pixels[..., 1:]], axis=-1)
    extra = page.extrasamples[0] if page.extrasamples else tifffile.EXTRASAMPLE.UNSPECIFIED
    has_alpha = pixels.shape[-1] > colors and extra != tifffile.EXTRASAMPLE.UNSPECIFIED
    drops_channel = pixels.shape[-1] > colors + has_alpha
    pixels = pixels[..., : colors + has_alpha]
    if has_alpha and extra == tifffile.EXTRASAMPLE.ASSOCALPHA:
        pixels = unpremultiply(pixels)
    tags = {code: page.tags[code].value for code in (ORIENTATION_TAG, ICC_TAG) if code in page.tags}
    return assemble(pixels, tags.get(ORIENTATION_TAG, 1), tags.get(ICC_TAG), pages, drops_channel)


def unpremultiply(pixels: Array) -> Array:
    """Stored pixels with colors divided by alpha, as integers of the same dtype."""
    top, alpha = np.iinfo(pixels.dtype).max, pixels[..., -1:].astype(np.float64)
    colors = np.minimum(np.rint(pixels[..., :-1] * float(top) / np.maximum(alpha, 1)), top)
    return np.concatenate([colors.astype(pixels.dtype), pixels[..., -1:]], axis=-1)


def assemble(pixels: Array, orientation: int, icc: bytes | None, pages: int, drops_channel: bool) -> Picture:
    """Gives pixels their axis of channels, turns them upright, and collects the notes."""
    notes = (f"has {pages} pages, of which the first is used",) if pages > 1 else ()
    notes += (EXTRA_CHANNEL_NOTE,) if drops_channel else ()
    pixels = apply_orientation(pixels.reshape(*pixels.shape[:2], -1), orientation)
    return Picture(np.ascontiguousarray(pixels), icc, notes)


def apply_orientation(pixels: Array, orientation: int) -> Array:
    """Turns stored pixels upright (TIFF 6.0, tag 274)."""
    pixels = pixels[FLIPS.get(orientation, np.s_[:])]
    return pixels.swapaxes(0, 1) if orientation in (5, 6, 7, 8) else pixels
