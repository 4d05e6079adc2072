"""TIFF files: their pages are found, decoded one by one, and written with the tags that describe them.

Sources: TIFF 6.0, sections 2 and 8, and the tags that Adobe, EXIF and GeoTIFF register.
"""

import dataclasses
import io
import json
import logging
import os
from collections.abc import Sequence
from typing import Any, BinaryIO, cast

import numpy as np
import tifffile

from ...warp.sized.mappings import Array, Size
from ..process import UserError
from . import exif as tiff
from .compression import DEFAULTS, TIFF_CODECS, UNKNOWN, Compression, encoded_rows, of_tiff
from .exif import LONG, LONG8, SHORT, ByteLayout, Directory, Entry, FileBytes, layout_of
from .inputs import Page, raw_error
from .metadata import BROKEN_EXIF, Block, Metadata, Picture, resolution_entries, resolution_of, without_thumbnails

SIGNATURES = tuple(tiff.SIGNATURES)
COLOR_CHANNELS = {"MINISWHITE": 1, "MINISBLACK": 1, "RGB": 3}
DEPTHS = ((np.uint8, 8), (np.uint16, 16))
# Pixels behind a color filter, or linear ones of a sensor; the tag of the DNG version.
RAW_PHOTOMETRICS = (32803, 34892)
DNG_VERSION = 50706
# What tells how a TIFF was made, not what it shows, by the beginning of its description.
MACHINE_DESCRIPTIONS = (b"ImageJ=", b"<?xml", b"<OME")
# That of tifffile, and the names in it that say nothing beyond the shape.
SHAPE_DESCRIPTION, SHAPE_NAMES = b'{"shape"', {"shape", "axes", "truncated"}
PHOTOSHOP = 34377
DROPPED_TAGS = {
    37724: "Photoshop layers",
    50255: "Photoshop annotations",
    **dict.fromkeys((33550, 33922, 34264, 34735, 34736, 34737), "georeference"),
    42112: "GDAL metadata",
    **dict.fromkeys((50838, 50839), "ImageJ metadata"),
}
NOT_EXIF = tiff.STRUCTURE | DROPPED_TAGS.keys() | {PHOTOSHOP}
RESOLUTION = {tiff.X_RESOLUTION, tiff.Y_RESOLUTION, tiff.RESOLUTION_UNIT}
NO_UNIT, INCH, CENTIMETER = 1, 2, 3  # of a resolution
PAGE_NUMBER, PAGE_OF_SEVERAL = 297, 2  # a tag, and a type of a page
SUBFILE_TYPE, BITS, COMPRESSION, PHOTOMETRIC, SAMPLES, ROWS_OF_STRIP = 254, 258, 259, 262, 277, 278
PLANES, EXTRA_SAMPLES = 284, 338
SIDES, STRIPS = (256, 257), (273, 279)  # width and height; offsets and lengths
BLACK_IS_ZERO, RGB, TOGETHER, UNASSOCIATED_ALPHA = 1, 2, 1, 2
STRIP_BYTES = 2**18
# The largest file in which offsets have four bytes, with room for what is not pixels.
LARGEST_CLASSIC = 2**32 - 2**26

logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # it logs an error that it also raises


# Pages


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
    """The pages of a TIFF that are pictures of their own, and notes on what else it holds."""
    file.seek(0)
    with tifffile.TiffFile(cast(BinaryIO, file)) as opened:  # which closes no file that it did not open
        directories: list[Any] = [opened.pages.first] if len(opened.pages) == 1 else list(opened.pages)
        check_flat_pictures(opened, directories)
        pages = [page for page in directories if not page.is_reduced and not page.is_mask] or directories[:1]
        return [describe_page(page) for page in pages], notes_on_others(directories, pages)


def check_flat_pictures(opened: Any, directories: list[Any]) -> None:
    """Checks that a TIFF of tifffile holds finished pictures, and no volume."""
    for page in directories:
        if DNG_VERSION in page.tags:
            raise raw_error("DNG")
        if any(part.photometric in RAW_PHOTOMETRICS for part in (page, *(page.pages or ()))):
            raise raw_error("like NEF or ARW")
    depth: int = max(page.imagedepth for page in directories)
    if opened.is_imagej or opened.is_shaped:  # which may store many slices behind one directory
        stated: int = sum(series.size for series in opened.series)
        depth = max(depth, stated // sum(page.size for page in directories))
    if depth > 1:
        raise UserError(f"it is a volume of {depth} slices, and only flat images are supported")


def describe_page(page: Any) -> Page:
    """Where a page of tifffile is, and how large."""
    channels = min(4, max(page.samplesperpixel, COLOR_CHANNELS.get(photometric(page), 3)))
    xmp = page.tags.valueof(tiff.XMP)
    orientation = page.tags.valueof(tiff.ORIENTATION) or tiff.xmp_orientation(xmp if isinstance(xmp, bytes) else b"")
    size = tiff.upright_size((page.imagewidth, page.imagelength), orientation)
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


# Pixels


def photometric(page: Any) -> str:
    """The name of a TIFF page's photometric interpretation."""
    return getattr(page.photometric, "name", "unknown")


def is_decoded(page: Any) -> bool:
    """Whether tifffile decodes a page to gray or RGB of 8 or 16 bits; YCbCr compressed as JPEG becomes RGB."""
    is_jpeg = photometric(page) == "YCBCR" and page.compression == tifffile.COMPRESSION.JPEG
    return (page.dtype, page.bitspersample) in DEPTHS and (photometric(page) in COLOR_CHANNELS or is_jpeg)


def decode_page(file: PageFile) -> Picture | Metadata:
    """The first page of a TIFF, or its metadata alone if Pillow has to decode it; raises whatever the codec raises."""
    with tifffile.TiffFile(cast(BinaryIO, file)) as opened:
        page: Any = opened.pages.first
        metadata = read_tiff(FileBytes(file), page.offset)
        if not is_decoded(page):
            if page.dtype is None or page.dtype.kind not in "bu" or page.bitspersample > 8:
                raise UserError(unsupported(page, "jaxtex"))
            return metadata
        pixels = page.asarray()
        if page.axes == "SYX":
            pixels = np.moveaxis(pixels, 0, -1)
        pixels, drops = finished_pixels(page, pixels.reshape(*pixels.shape[:2], -1))
        icc = page.tags.valueof(tiff.PROFILE)
    return Picture.upright(pixels, metadata.orientation, icc, metadata, drops_channel=drops)


def unsupported(page: Any, reader: str) -> str:
    """What the pixels of a page are, and which are read."""
    kind = f"{page.bitspersample} bits" if page.dtype is None else str(page.dtype)
    return f"its pixels are {photometric(page)} of {kind}, and {reader} reads gray and RGB of 8 and 16 bits"


def finished_pixels(page: Any, pixels: Array) -> tuple[Array, bool]:
    """Gray or colors, and alpha that is not premultiplied, of stored samples; and whether another channel is dropped.

    Args:
        page: of tifffile, gray or RGB.
        pixels: of the page, or of a part of it, (height, width, samples).
    """
    colors = COLOR_CHANNELS.get(photometric(page), 3)
    if page.photometric == tifffile.PHOTOMETRIC.MINISWHITE:
        pixels = np.concatenate([~pixels[..., :1], pixels[..., 1:]], axis=-1)
    extra = page.extrasamples[0] if page.extrasamples else tifffile.EXTRASAMPLE.UNSPECIFIED
    has_alpha = pixels.shape[-1] > colors and extra != tifffile.EXTRASAMPLE.UNSPECIFIED
    drops_channel = pixels.shape[-1] > colors + has_alpha
    pixels = pixels[..., : colors + has_alpha]
    if has_alpha and extra == tifffile.EXTRASAMPLE.ASSOCALPHA:
        top, alpha = np.iinfo(pixels.dtype).max, pixels[..., -1:].astype(np.float64)
        divided = np.minimum(np.rint(pixels[..., :-1] * float(top) / np.maximum(alpha, 1)), top)
        pixels = np.concatenate([divided.astype(pixels.dtype), pixels[..., -1:]], axis=-1)
    return pixels, drops_channel


# Metadata


def read_tiff(data: tiff.Bytes, at: int) -> Metadata:
    """The metadata of the page of a TIFF whose directory is at `at`, without its profile."""
    layout = layout_of(data)
    directory = tiff.read_directory(data, layout, at)
    broken = [tag for tag in tiff.find_fields(data, layout, at)[0] if tag in tiff.CHILDREN and tag not in directory]
    dropped = [DROPPED_TAGS[tag] for tag in directory if tag in DROPPED_TAGS]
    dropped += [BROKEN_EXIF] if broken else []
    # tifffile stores what it writes of the array itself as a second description.
    texts = [Entry(kind, bytes(data[start:stop])) for kind, start, stop in descriptions(data, layout, at)]
    written = [text for text in texts if not text.value.startswith((SHAPE_DESCRIPTION, *MACHINE_DESCRIPTIONS))]
    if any(text not in written and not says_only_shape(text.value) for text in texts):
        dropped.append("machine-written description")
    dropped += ["second description"] if len(written) > 1 else []
    directory.pop(tiff.DESCRIPTION, None)
    if written:
        directory[tiff.DESCRIPTION] = written[0]
    blocks: list[Block] = []
    if tiff.IPTC in directory:
        blocks.append(block(tiff.IPTC, {tiff.IPTC: directory[tiff.IPTC]}, "IPTC"))
    if resources := without_thumbnails(value_of(directory, PHOTOSHOP) or b""):
        blocks.append(block(PHOTOSHOP, {PHOTOSHOP: Entry(tiff.BYTE, resources)}, "Photoshop data"))
    kept: Directory = {tag: entry for tag, entry in directory.items() if tag not in NOT_EXIF}
    resolution: Directory = {tag: kept.pop(tag) for tag in RESOLUTION & kept.keys()}
    if tiff.ORIENTATION in directory:
        kept[tiff.ORIENTATION] = directory[tiff.ORIENTATION]
    if len(resolution) > 1 and kept.keys() - {tiff.ORIENTATION}:  # which every TIFF has, and which alone need no EXIF
        kept |= resolution
    exif = tiff.write_stream(kept) if kept else None
    metadata = Metadata("TIFF", exif, value_of(directory, tiff.XMP), dropped=tuple(dict.fromkeys(dropped)))
    x, y = (resolution.get(tag) for tag in (tiff.X_RESOLUTION, tiff.Y_RESOLUTION))
    if metadata.is_turned and x and y:
        resolution |= {tiff.X_RESOLUTION: y, tiff.Y_RESOLUTION: x}
    blocks += [block(tiff.X_RESOLUTION, resolution)] if x and y else []
    return dataclasses.replace(
        metadata,
        resolution=resolution_of(resolution),
        blocks=tuple(blocks),
        compression=of_tiff(tiff.number(directory, COMPRESSION)),
    )


def descriptions(data: tiff.Bytes, layout: ByteLayout, at: int) -> list[tiff.TagLocation]:
    """Where the descriptions of a page are, of which there may be several."""
    return [place for tag, place in tiff.list_fields(data, layout, at)[0] if tag == tiff.DESCRIPTION]


def says_only_shape(described: bytes) -> bool:
    """Whether a description by tifffile says nothing that the picture does not."""
    try:
        return json.loads(described.rstrip(b"\0")).keys() <= SHAPE_NAMES
    except (ValueError, AttributeError):
        return False


def block(kind: int, directory: Directory, name: str = "") -> Block:
    """Entries of a TIFF directory as a block of metadata."""
    return Block(kind.to_bytes(2), tiff.write_stream(directory), name)


def value_of(directory: Directory, tag: int) -> bytes | None:
    """The bytes of an entry."""
    entry = directory.get(tag)
    return entry.value if isinstance(entry, Entry) else None


def entries_of(metadata: Metadata) -> Directory:
    """Metadata as entries of a TIFF directory."""
    stored = tiff.read_first(metadata.exif or b"")
    entries: Directory = {tag: entry for tag, entry in stored.items() if tag not in tiff.STRUCTURE}
    if metadata.resolution:
        entries |= resolution_entries(metadata.resolution)
    for stored_block in metadata.blocks:
        entries |= tiff.read_first(stored_block.body)
    if metadata.xmp:
        entries[tiff.XMP] = Entry(tiff.BYTE, metadata.xmp)
    return entries


# Writing


def rows_of_strip(pixels: Array) -> int:
    """How many rows are stored together."""
    return min(len(pixels), max(1, STRIP_BYTES // pixels[0].nbytes))


def compressed_strips(pixels: Array, compression: Compression = UNKNOWN) -> list[bytes]:
    """Pixels in strips of rows, compressed: by any thread, since one alone writes them."""
    rows, stored = rows_of_strip(pixels), pixels.astype(pixels.dtype.newbyteorder("<"), copy=False)
    return [encoded_rows(stored[k : k + rows], compression) for k in range(0, len(stored), rows)]


def page_entries(picture: Picture, size: Size | None = None, kind: int = 0) -> Directory:
    """The entries of a page, but for those of its strips or tiles.

    Args:
        size: width and height of the page; by default those of the picture.
    """
    height, width, channels = picture.pixels.shape
    entries = entries_of(picture.metadata)
    sides = [tiff.numbers(entries, tag) for tag in (tiff.X_RESOLUTION, tiff.Y_RESOLUTION)]
    is_known = all(len(side) == 2 and all(side) for side in sides)
    if not is_known or tiff.number(entries, tiff.RESOLUTION_UNIT, INCH) not in (NO_UNIT, INCH, CENTIMETER):
        entries |= dict.fromkeys((tiff.X_RESOLUTION, tiff.Y_RESOLUTION), tiff.entry(tiff.RATIONAL, 1, 1))
        entries[tiff.RESOLUTION_UNIT] = tiff.entry(SHORT, NO_UNIT)
    if channels in (2, 4):
        entries[EXTRA_SAMPLES] = tiff.entry(SHORT, UNASSOCIATED_ALPHA)
    if picture.icc:
        entries[tiff.PROFILE] = Entry(tiff.UNDEFINED, picture.icc)
    return entries | {
        SUBFILE_TYPE: tiff.entry(LONG, kind),
        **{tag: tiff.entry(LONG, side) for tag, side in zip(SIDES, size or (width, height))},
        BITS: tiff.entry(SHORT, *[8 * picture.pixels.itemsize] * channels),
        COMPRESSION: tiff.entry(SHORT, TIFF_CODECS[picture.metadata.compression.kind or DEFAULTS["TIFF"]][0]),
        PHOTOMETRIC: tiff.entry(SHORT, RGB if channels >= 3 else BLACK_IS_ZERO),
        SAMPLES: tiff.entry(SHORT, channels),
        PLANES: tiff.entry(SHORT, TOGETHER),
    }


def part_entries(tags: tuple[int, int], parts: Sequence[tuple[int, int]], layout: ByteLayout) -> Directory:
    """The entries, by their tags, of the offsets and the lengths of strips or tiles."""
    offsets, lengths = zip(*parts)
    offset_type = LONG8 if layout.is_big else LONG
    return {tags[0]: tiff.entry(offset_type, *offsets), tags[1]: tiff.entry(LONG, *lengths)}


class PageWriter:
    """Writes pages to a TIFF.

    Args:
        stream: to write to, from its beginning.
        total: how many pages it is to have.
        most_bytes: how many bytes the pixels take at most, which decides how long offsets are.
    """

    def __init__(self, stream: BinaryIO, total: int = 1, most_bytes: int = 0) -> None:
        self.stream, self.total, self.number = stream, total, 0
        self.layout = ByteLayout("little", most_bytes > LARGEST_CLASSIC)
        self.link_at = self.layout.first_at
        stream.write(tiff.header(self.layout))

    def append(self, picture: Picture, strips: list[bytes]) -> None:
        """Appends a page, whose pixels are compressed by `compressed_strips`."""
        entries = page_entries(picture, kind=PAGE_OF_SEVERAL if self.total > 1 else 0)
        if self.total > 1:
            entries[PAGE_NUMBER] = tiff.entry(SHORT, *(min(count, 2**16 - 1) for count in (self.number, self.total)))
        entries[ROWS_OF_STRIP] = tiff.entry(LONG, rows_of_strip(picture.bare_pixels))
        parts: list[tuple[int, int]] = []
        for strip in strips:
            parts.append((self.stream.tell(), len(strip)))
            self.stream.write(strip)
        entries |= part_entries(STRIPS, parts, self.layout)
        self.link_at = tiff.append_directory(self.stream, entries, self.layout, self.link_at)
        self.number += 1


def encode_tiff(picture: Picture) -> bytes:
    """A TIFF of one page."""
    stream = io.BytesIO()
    PageWriter(stream).append(picture, compressed_strips(picture.bare_pixels, picture.metadata.compression))
    return stream.getvalue()
