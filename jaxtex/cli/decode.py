"""From image files to pixel arrays.

Pixels are (height, width, channels) in uint8 or uint16; 1 to 4 channels are grey, grey and alpha, RGB, RGBA.
Pillow cuts 16-bit colour to 8 bits in silence, so 16-bit PNG goes through imagecodecs and 16-bit TIFF through
tifffile. So does plain 8-bit TIFF, since libtiff, which Pillow calls, writes to standard error. JPEG goes through
imagecodecs, the same codec, since Pillow holds Python's lock while it decodes. The rest is Pillow's.
"""

import contextlib
import dataclasses
import io
import logging
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import tifffile
from PIL import Image, UnidentifiedImageError

from .errors import UserError, one_line

PLAIN_MODES = {
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
ALIGNMENT = 64
TIFF_SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
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

logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # it logs what it then raises


@dataclasses.dataclass(frozen=True)
class Picture:
    """Decoded pixels, upright, with what has to travel along.

    Attributes:
        pixels: (height, width, channels), uint8 or uint16; alpha, if any, is last and straight.
        icc: the embedded colour profile, or `None`.
        notes: what was left out, each the end of a sentence that begins with the file's name.
    """

    pixels: np.ndarray
    icc: bytes | None = None
    notes: tuple[str, ...] = ()


@contextlib.contextmanager
def quiet_codecs() -> Iterator[None]:
    """Keeps codecs from warning of much memory and odd metadata; around all threads, which share what is ignored."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(PIL|tifffile|imagecodecs)\b")
        yield


def read_picture(path: Path) -> Picture:
    """Decodes the image file `path`, its first page if there are several.

    Raises:
        UserError: if the file cannot be read, or its contents are no image or one of an unsupported depth.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        return decode(data)
    except UserError as error:
        raise UserError(f"cannot read {path}: {error}") from error
    except UnidentifiedImageError as error:
        raise UserError(f"cannot read {path}: it is no image of a known format") from error
    except Exception as error:  # each codec has errors of its own; a broken file can raise any of them
        raise UserError(f"cannot read {path}: it is broken or of an unsupported kind, {one_line(error)}") from error


def decode(data: bytes) -> Picture:
    """Decodes the bytes of an image file; raises whatever the codec raises."""
    if data[:4] in TIFF_SIGNATURES:
        with tifffile.TiffFile(io.BytesIO(data)) as tiff:
            page = tiff.pages.first
            if page.bitspersample == 16 or (page.bitspersample == 8 and colours_of(page)):
                return decode_tiff(page, len(tiff.pages))
    with Image.open(io.BytesIO(data)) as image:
        pages = getattr(image, "n_frames", 1)
        dropped = image.mode == "RGBX"
        icc = image.info.get("icc_profile")
        if data.startswith(PNG_SIGNATURE) and data[PNG_DEPTH_BYTE] == 16:
            pixels = imagecodecs.png_decode(data)
            orientation = image.getexif().get(ORIENTATION_TAG, 1)
        elif image.format == "JPEG" and image.mode in ("L", "RGB") and is_whole_jpeg(data):
            channels = (3,) if image.mode == "RGB" else ()
            pixels = imagecodecs.jpeg8_decode(data, out=aligned((image.height, image.width, *channels)))
            orientation = image.getexif().get(ORIENTATION_TAG, 1)
        else:
            image.load()  # turns a TIFF upright and then forgets its orientation, so ask afterwards
            orientation = image.getexif().get(ORIENTATION_TAG, 1)
            pixels = np.asarray(plain(image))
    return assemble(pixels, orientation, icc, pages, dropped)


def is_whole_jpeg(data: bytes) -> bool:
    """Whether an end of image follows the last start of a scan: imagecodecs shows a cut file in grey, Pillow raises.

    A preview in the file's head has an end too, but before the scan.
    """
    end = data.rfind(JPEG_END)
    return end >= 0 and data.find(JPEG_SCAN, end) < 0


def aligned(shape: tuple[int, ...]) -> np.ndarray:
    """An empty array of bytes at an address that lets JAX read it in place on a CPU; elsewhere NumPy's are copied."""
    count = math.prod(shape)
    buffer = np.empty(count + ALIGNMENT, np.uint8)
    first = -buffer.ctypes.data % ALIGNMENT
    return buffer[first : first + count].reshape(shape)


def plain(image: Image.Image) -> Image.Image:
    """Converts to 8 bits of grey or RGB, with alpha if the image has any, be it one clear colour."""
    mode = PLAIN_MODES.get(image.mode)
    if mode is None:
        raise UserError(f"pixels of mode {image.mode} are not supported, only 8 and 16 bits per channel")
    return image.convert(WITH_ALPHA.get(mode, mode) if image.has_transparency_data else mode)


def colours_of(page: Any) -> int:
    """How many of a TIFF page's channels are colours: 1 for grey, 3 for RGB, 0 for any other kind."""
    return {"MINISWHITE": 1, "MINISBLACK": 1, "RGB": 3}.get(getattr(page.photometric, "name", ""), 0)


def decode_tiff(page: Any, pages: int) -> Picture:
    """Decodes a TIFF page of 8 or 16 bits, grey or RGB, with or without alpha."""
    colours = colours_of(page)
    if not colours or page.dtype not in (np.uint8, np.uint16):
        kind = getattr(page.photometric, "name", "unknown")
        raise UserError(f"{kind} pixels of {page.dtype} are not supported, only grey and RGB integers")
    pixels = page.asarray()
    if page.axes == "SYX":
        pixels = np.moveaxis(pixels, 0, -1)
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    if page.photometric == tifffile.PHOTOMETRIC.MINISWHITE:
        pixels = np.concatenate([~pixels[..., :1], pixels[..., 1:]], axis=-1)
    extra = page.extrasamples[0] if page.extrasamples else tifffile.EXTRASAMPLE.UNSPECIFIED
    has_alpha = pixels.shape[-1] > colours and extra != tifffile.EXTRASAMPLE.UNSPECIFIED
    dropped = pixels.shape[-1] > colours + has_alpha
    pixels = pixels[..., : colours + has_alpha]
    if has_alpha and extra == tifffile.EXTRASAMPLE.ASSOCALPHA:
        pixels = unassociated(pixels)
    tags = {code: page.tags[code].value for code in (ORIENTATION_TAG, ICC_TAG) if code in page.tags}
    return assemble(pixels, tags.get(ORIENTATION_TAG, 1), tags.get(ICC_TAG), pages, dropped)


def unassociated(pixels: np.ndarray) -> np.ndarray:
    """Divides colours that are stored multiplied by alpha by that alpha."""
    top, alpha = np.iinfo(pixels.dtype).max, pixels[..., -1:].astype(np.float64)
    colours = np.minimum(np.rint(pixels[..., :-1] * float(top) / np.maximum(alpha, 1)), top)
    return np.concatenate([colours.astype(pixels.dtype), pixels[..., -1:]], axis=-1)


def assemble(pixels: np.ndarray, orientation: int, icc: bytes | None, pages: int, dropped: bool) -> Picture:
    """Gives pixels their channel axis, turns them upright, and collects the notes."""
    notes = (f"has {pages} pages, of which the first is used",) if pages > 1 else ()
    notes += (EXTRA_CHANNEL_NOTE,) if dropped else ()
    pixels = upright(pixels.reshape(*pixels.shape[:2], -1), orientation)
    return Picture(np.ascontiguousarray(pixels), icc, notes)


def upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Turns stored pixels as an EXIF orientation asks (TIFF 6.0, tag 274)."""
    pixels = pixels[FLIPS.get(orientation, np.s_[:])]
    return pixels.swapaxes(0, 1) if orientation in (5, 6, 7, 8) else pixels
