"""The pages of a TIFF: found, and decoded one by one."""

# pyright: strict, reportUnknownMemberType=false

import io
import logging
import os
from typing import Any, BinaryIO, cast

import numpy as np
import tifffile
from PIL import Image

from ..errors import UserError
from .kinds import raw_error
from .metadata.exif import ORIENTATION, PROFILE, XMP, layout_of, xmp_orientation
from .metadata.file_bytes import FileBytes
from .metadata.kept import Metadata
from .metadata.tiff_tags import read_tiff
from .picture import Array, Picture
from .pillow_modes import load_pixels
from .sources import Page
from .upright import assemble, upright_size

TIFF_SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
COLOR_CHANNELS = {"MINISWHITE": 1, "MINISBLACK": 1, "RGB": 3}
# Pixels behind a color filter, or linear ones of a sensor; the tag of the DNG version.
RAW_PHOTOMETRICS = (32803, 34892)
DNG_VERSION = 50706

logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # it logs an error that it also raises


class PageFile(io.RawIOBase):
    """A TIFF whose header names a chosen page as the first one, so that codecs find it at once.

    Args:
        file: of all pages. It stays open.
        directory: of the page.
    """

    def __init__(self, file: io.BufferedIOBase, directory: int) -> None:
        super().__init__()
        layout = layout_of(FileBytes(file))
        self.wrapped, self.first_at = file, layout.first_at
        self.offset = directory.to_bytes(layout.offset_bytes, layout.order)
        file.seek(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self.wrapped.seek(offset, whence)

    def tell(self) -> int:
        return self.wrapped.tell()

    def fileno(self) -> int:
        return self.wrapped.fileno()

    def readinto(self, buffer: Any, /) -> int:
        at, bytes_ = self.wrapped.tell(), memoryview(buffer).cast("B")
        count = self.wrapped.readinto(bytes_)
        start, stop = max(at, self.first_at), min(at + count, self.first_at + len(self.offset))
        if start < stop:
            bytes_[start - at : stop - at] = self.offset[start - self.first_at : stop - self.first_at]
        return count


def find_pages(file: io.BufferedIOBase) -> tuple[list[Page], tuple[str, ...]]:
    """The pages of a TIFF that are pictures of their own, and notes on what else it holds.

    Raises:
        UserError: if it is a camera raw file or holds volumes.
    """
    file.seek(0)
    with tifffile.TiffFile(cast(BinaryIO, file)) as tiff:  # which closes no file that it did not open
        directories: list[Any] = [tiff.pages.first] if len(tiff.pages) == 1 else list(tiff.pages)
        check_flat_pictures(tiff, directories)
        pages = [page for page in directories if not page.is_reduced and not page.is_mask] or directories[:1]
        return [describe_page(page) for page in pages], notes_on_others(directories, pages)


def check_flat_pictures(tiff: Any, directories: list[Any]) -> None:
    """Checks that a TIFF of tifffile holds finished pictures, and no volume.

    Raises:
        UserError: if it is a camera raw file or holds volumes.
    """
    for page in directories:
        if DNG_VERSION in page.tags:
            raise raw_error("DNG")
        if any(part.photometric in RAW_PHOTOMETRICS for part in (page, *(page.pages or ()))):
            raise raw_error("like NEF or ARW")
    depth: int = max(page.imagedepth for page in directories)
    if tiff.is_imagej or tiff.is_shaped:  # which may store many slices behind one directory
        stated: int = sum(series.size for series in tiff.series)
        depth = max(depth, stated // sum(page.size for page in directories))
    if depth > 1:
        raise UserError(f"it is a volume of {depth} slices, and only flat images are supported")


def describe_page(page: Any) -> Page:
    """Where a page of tifffile is, and how large."""
    channels = min(4, max(page.samplesperpixel, COLOR_CHANNELS.get(photometric(page), 3)))
    xmp = page.tags.valueof(XMP)
    orientation = page.tags.valueof(ORIENTATION) or xmp_orientation(xmp if isinstance(xmp, bytes) else b"")
    size = upright_size((page.imagewidth, page.imagelength), orientation)
    return Page(page.offset, size, channels * (1 if page.bitspersample <= 8 else 2))


def notes_on_others(directories: list[Any], pages: list[Any]) -> tuple[str, ...]:
    """Notes on the parts of a TIFF that are no pages: copies, masks and pictures inside its pages."""
    inner = [part for page in pages for part in (page.pages or ())]
    others = [*(page for page in directories if page not in pages), *inner]
    counts = {
        ("a smaller copy", "smaller copies"): sum(bool(part.is_reduced) for part in others),
        ("a mask", "masks"): sum(bool(part.is_mask) and not part.is_reduced for part in others),
        ("a picture inside a page", "pictures inside pages"): sum(
            not (part.is_reduced or part.is_mask) for part in others
        ),
    }
    return tuple(
        f"has {one}, which is dropped" if count == 1 else f"has {count} {many}, which are dropped"
        for (one, many), count in counts.items()
        if count
    )


def photometric(page: Any) -> str:
    """The name of a TIFF page's photometric interpretation."""
    return getattr(page.photometric, "name", "unknown")


def decode_page(file: PageFile) -> Picture:
    """Decodes the first page of a TIFF; raises whatever the codec raises."""
    with tifffile.TiffFile(cast(BinaryIO, file)) as tiff:
        page = tiff.pages.first
        metadata = read_tiff(FileBytes(file), page.offset)
        if page.bitspersample == 16 or (page.bitspersample == 8 and photometric(page) in COLOR_CHANNELS):
            return decode_by_tifffile(page, metadata)
    file.seek(0)
    with Image.open(cast(BinaryIO, file)) as image:
        pixels, icc, notes = load_pixels(image, image.info.get("icc_profile"))
        # Loading turns the picture upright.
        orientation = image.getexif().get(ORIENTATION, 1)
        return assemble(pixels, orientation, Picture(pixels, icc, notes, metadata), image.mode == "RGBX")


def decode_by_tifffile(page: Any, metadata: Metadata) -> Picture:
    """Decodes a TIFF page of 8 or 16 bits, gray or RGB, with or without alpha.

    Args:
        page: of tifffile.
        metadata: of the page.

    Raises:
        UserError: if the page has other pixels.
    """
    if photometric(page) not in COLOR_CHANNELS or page.dtype not in (np.uint8, np.uint16):
        raise UserError(f"{photometric(page)} pixels of {page.dtype} are not supported, only gray and RGB integers")
    pixels = page.asarray()
    if page.axes == "SYX":
        pixels = np.moveaxis(pixels, 0, -1)
    pixels, drops_channel = finished_pixels(page, pixels.reshape(*pixels.shape[:2], -1))
    icc = page.tags.valueof(PROFILE)
    return assemble(pixels, metadata.orientation, Picture(pixels, icc, metadata=metadata), drops_channel)


def finished_pixels(page: Any, pixels: Array) -> tuple[Array, bool]:
    """Gray or colors, and alpha that is not premultiplied, of stored samples; and whether another channel is dropped.

    Args:
        page: of tifffile, gray or RGB.
        pixels: of the page, or of a part of it, (height, width, samples).
    """
    colors = COLOR_CHANNELS[photometric(page)]
    if page.photometric == tifffile.PHOTOMETRIC.MINISWHITE:
        pixels = np.concatenate([~pixels[..., :1], pixels[..., 1:]], axis=-1)
    extra = page.extrasamples[0] if page.extrasamples else tifffile.EXTRASAMPLE.UNSPECIFIED
    has_alpha = pixels.shape[-1] > colors and extra != tifffile.EXTRASAMPLE.UNSPECIFIED
    drops_channel = pixels.shape[-1] > colors + has_alpha
    pixels = pixels[..., : colors + has_alpha]
    if has_alpha and extra == tifffile.EXTRASAMPLE.ASSOCALPHA:
        pixels = unpremultiply(pixels)
    return pixels, drops_channel


def unpremultiply(pixels: Array) -> Array:
    """Stored pixels with colors divided by alpha, as integers of the same dtype."""
    top, alpha = np.iinfo(pixels.dtype).max, pixels[..., -1:].astype(np.float64)
    colors = np.minimum(np.rint(pixels[..., :-1] * float(top) / np.maximum(alpha, 1)), top)
    return np.concatenate([colors.astype(pixels.dtype), pixels[..., -1:]], axis=-1)
