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
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, BinaryIO, cast

import imagecodecs
import numpy as np
import tifffile
from PIL import Image, UnidentifiedImageError

from ..errors import OutputError, UserError, describe, one_line
from .kinds import HEAD_BYTES, check_kind, choose_page, full_pages, open_regular
from .limits import Size
from .metadata.jpeg_segments import read_jpeg
from .metadata.kept import Metadata, read_pillow
from .metadata.png_chunks import PNG_SIGNATURE, read_png
from .metadata.tiff_tags import read_tiff
from .picture import Array, Picture
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
PNG_DEPTH_BYTE = 24
JPEG_SCAN, JPEG_END = b"\xff\xda", b"\xff\xd9"
ALIGNMENT = 64  # bytes
TIFF_SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
COLOR_CHANNELS = {"MINISWHITE": 1, "MINISBLACK": 1, "RGB": 3}
SWAPPING = (5, 6, 7, 8)
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

# Raises a `UserError` for a width and a height that are refused.
Accept = Callable[[Size], None]


def accept_all(_: Size) -> None:
    """Refuses no size."""


logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # it logs an error that it also raises


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


def read_picture(path: Path, accept: Accept = accept_all, page: int | None = None) -> Picture:
    """Decodes an image file.

    Args:
        path: of a regular file, or - for standard input.
        accept: is called with the width and the height of the upright picture before memory is allocated for it, and
            raises a `UserError` to refuse it.
        page: which one of several is used, from 1; `None` if the file must have one.

    Raises:
        UserError: if the file cannot be read, is not an image, is refused, or has an unsupported depth.
    """
    try:
        with io.BytesIO(read_stdin()) if path == STREAM else open_regular(path) as file:
            return read_open_file(file, path.name, accept, page)
    except OutputError:
        raise
    except UserError as error:
        raise UserError(f"cannot read {path}: {error}") from error
    except UnidentifiedImageError as error:
        raise UserError(f"cannot read {path}: it is not an image of a known format") from error
    except MemoryError as error:
        raise UserError(f"cannot read {path}: {describe(error)}") from error
    except Exception as error:  # each codec has errors of its own, and a broken file can raise any of them
        if isinstance(error, OSError) and error.strerror:
            raise UserError(f"cannot read {path}: {error.strerror}") from error
        raise UserError(f"cannot read {path}: it is broken or of an unsupported kind, {one_line(error)}") from error


def read_open_file(file: BinaryIO, name: str, accept: Accept, page: int | None) -> Picture:
    """Checks the header of an image file, then reads and decodes it; raises whatever the codec raises."""
    head = file.read(HEAD_BYTES)
    file.seek(0)
    check_kind(name, head)
    accept(upright_size(file, head, page))
    file.seek(0)
    return decode(file.read(), page)


def upright_size(file: BinaryIO, head: bytes, page: int | None) -> Size:
    """The width and the height of a picture as it is shown, from the header of its file."""
    if head[:4] in TIFF_SIGNATURES:
        with tifffile.TiffFile(file) as tiff:
            pages = full_pages(tiff)
            chosen = pages[choose_page(len(pages), page)]
            width, height = chosen.imagewidth, chosen.imagelength
            orientation = chosen.tags.valueof(ORIENTATION_TAG, 1)
    else:
        image = Image.open(file)  # which reads the header, and closes no file that it did not open
        width, height = image.size
        orientation = read_pillow(image.info).orientation
    return (height, width) if orientation in SWAPPING else (width, height)


def decode(data: bytes, page: int | None = None) -> Picture:
    """Decodes the bytes of an image file; raises whatever the codec raises."""
    if data[:4] in TIFF_SIGNATURES:
        return decode_tiff(data, page)
    with Image.open(io.BytesIO(data)) as image:
        picture = decode_by_pillow(data, image, page)
        if image.format == "MPO" and page is None:  # a JPEG followed by others, such as previews and gain maps
            note = f"has {getattr(image, 'n_frames', 1)} pictures, of which the first is used"
            return dataclasses.replace(picture, notes=(note, *picture.notes))
        return picture


def decode_by_pillow(data: bytes, image: Image.Image, page: int | None) -> Picture:
    """Decodes an image that Pillow has opened, by a faster or more exact codec if there is one."""
    if image.format != "MPO" or page:
        image.seek(choose_page(getattr(image, "n_frames", 1), page))
    drops_channel = image.mode == "RGBX"
    icc, notes = image.info.get("icc_profile"), ()
    if data.startswith(PNG_SIGNATURE):
        metadata = read_png(data)
    elif image.format in ("JPEG", "MPO"):
        metadata = read_jpeg(data)
    else:
        metadata = read_pillow(image.info)
    orientation = metadata.orientation
    if data.startswith(PNG_SIGNATURE) and data[PNG_DEPTH_BYTE] == 16:
        pixels = imagecodecs.png_decode(data)
    elif image.format == "JPEG" and image.mode in ("L", "RGB") and is_complete_jpeg(data):
        channels = (3,) if image.mode == "RGB" else ()
        pixels = imagecodecs.jpeg8_decode(data, out=empty_aligned((image.height, image.width, *channels)))
    else:
        image.load()
        if image.format == "TIFF":  # which loading turns upright
            orientation = image.getexif().get(ORIENTATION_TAG, 1)
        if image.mode == "CMYK":
            image, notes, icc = *cmyk_to_rgb(image, icc), None
        pixels = np.asarray(to_8_bit(image))
    return assemble(pixels, orientation, Picture(pixels, icc, notes, metadata), drops_channel)


def cmyk_to_rgb(image: Image.Image, icc: bytes | None) -> tuple[Image.Image, tuple[str]]:
    """Ink as light: by the color profile if there is one that can be used, else by plain arithmetic; and a note."""
    converted = convert_by_profile(image, icc) if icc else None
    if converted:
        return converted, ("is converted from CMYK to sRGB by its color profile",)
    dropped = ", and its color profile, which cannot be used, is dropped" if icc else ""
    return image.convert("RGB"), (f"is converted from CMYK to RGB without a color profile{dropped}",)


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


def decode_tiff(data: bytes, number: int | None) -> Picture:
    """Decodes a page of a TIFF."""
    with tifffile.TiffFile(io.BytesIO(data)) as tiff:
        pages = full_pages(tiff)
        page = pages[choose_page(len(pages), number)]
        metadata = read_tiff(data, page.offset)
        if page.bitspersample == 16 or (page.bitspersample == 8 and photometric(page) in COLOR_CHANNELS):
            return decode_tiff_page(page, metadata)
        index = page.index
    with Image.open(io.BytesIO(data)) as image:
        return dataclasses.replace(decode_by_pillow(data, image, index + 1), metadata=metadata)


def decode_tiff_page(page: Any, metadata: Metadata) -> Picture:
    """Decodes a TIFF page of 8 or 16 bits, gray or RGB, with or without alpha.

    Args:
        page: of tifffile.
        metadata: of the page.

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
    icc = page.tags.valueof(ICC_TAG)
    return assemble(pixels, metadata.orientation, Picture(pixels, icc, metadata=metadata), drops_channel)


def unpremultiply(pixels: Array) -> Array:
    """Stored pixels with colors divided by alpha, as integers of the same dtype."""
    top, alpha = np.iinfo(pixels.dtype).max, pixels[..., -1:].astype(np.float64)
    colors = np.minimum(np.rint(pixels[..., :-1] * float(top) / np.maximum(alpha, 1)), top)
    return np.concatenate([colors.astype(pixels.dtype), pixels[..., -1:]], axis=-1)


def assemble(pixels: Array, orientation: int, picture: Picture, drops_channel: bool) -> Picture:
    """A picture with pixels that have an axis of channels and are upright, and with all notes."""
    notes = (*picture.notes, EXTRA_CHANNEL_NOTE) if drops_channel else picture.notes
    pixels = apply_orientation(pixels.reshape(*pixels.shape[:2], -1), orientation)
    return dataclasses.replace(picture, pixels=np.ascontiguousarray(pixels), notes=notes)


def apply_orientation(pixels: Array, orientation: int) -> Array:
    """Turns stored pixels upright (TIFF 6.0, tag 274)."""
    pixels = pixels[FLIPS.get(orientation, np.s_[:])]
    return pixels.swapaxes(0, 1) if orientation in SWAPPING else pixels
