"""The directories of TIFF, in which EXIF is stored too: read, edited in place, and written; and the orientation there.

EXIF is edited in place where it can be, since a maker's note holds offsets that only its maker knows.

Sources: TIFF 6.0, section 2; EXIF 2.32 (CIPA DC-008), section 4.6; the BigTIFF proposal of libtiff.
"""

import contextlib
import io
import os
import re
import struct
from typing import BinaryIO, Literal, NamedTuple, Union

import numpy as np

from ...warp.sized.mappings import Array, Size

Order = Literal["little", "big"]

ORIENTATION, DESCRIPTION, X_RESOLUTION, Y_RESOLUTION, RESOLUTION_UNIT = 274, 270, 282, 283, 296
XMP, IPTC, PROFILE = 700, 33723, 34675
# The directories inside others: EXIF, GPS and interoperability.
CHILDREN = (34665, 34853, 40965)
# Pairs of width and height: of the stored image, and of the image that EXIF describes.
SIZES = ((256, 257), (40962, 40963))
# What tells how pixels are stored, or is kept apart. All else describes the picture.
STRUCTURE = frozenset(
    (
        *(254, 255, *range(256, 269), 273, ORIENTATION, *range(277, 282), 284, *range(288, 294), 297, 301, 317),
        *(*range(320, 348), 400, *range(512, 522), 529, 530, 531, 532, 559, XMP, IPTC, PROFILE),
        *range(32995, 32999),
    )
)
DIRECTORY_TYPES = (13, 18)
TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
WORD_BYTES = TYPE_BYTES | {5: 4, 10: 4}  # a rational is two numbers
BYTE, SHORT, LONG, RATIONAL, UNDEFINED, LONG8 = 1, 3, 4, 5, 7, 16
THUMBNAIL_OFFSET, THUMBNAIL_BYTES = 513, 514
JPEG_START = b"\xff\xd8"
SIGNATURES: dict[bytes, tuple[Order, bool]] = {
    b"II*\0": ("little", False),
    b"MM\0*": ("big", False),
    b"II+\0": ("little", True),
    b"MM\0+": ("big", True),
}


class FileBytes:
    """An open file as far as it can stand for its bytes: its length, and slices with both ends.

    Args:
        file: stays open. Its position changes.
    """

    def __init__(self, file: io.BufferedIOBase | io.RawIOBase) -> None:
        self.file = file
        self.length = file.seek(0, os.SEEK_END)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self.length)
        self.file.seek(start)
        return self.file.read(max(0, stop - start)) or b""


# What directories are read from.
Bytes = bytes | bytearray | FileBytes


class Entry(NamedTuple):
    """A value with its TIFF type, little-endian."""

    type: int
    value: bytes


def entry(type_number: int, *values: int) -> Entry:
    """An entry of integers; of rationals, numerators and denominators."""
    return Entry(type_number, b"".join(value.to_bytes(WORD_BYTES[type_number], "little") for value in values))


# The entries of a directory by tag.
Directory = dict[int, Union[Entry, "Directory"]]


class TagLocation(NamedTuple):
    """Where a value is stored."""

    type: int
    start: int
    stop: int


class ByteLayout(NamedTuple):
    """The byte order of a file, and whether it is a BigTIFF, with offsets of eight bytes."""

    order: Order
    is_big: bool

    @property
    def offset_bytes(self) -> int:
        return 8 if self.is_big else 4

    @property
    def count_bytes(self) -> int:
        """Of the number of entries of a directory."""
        return 8 if self.is_big else 2

    @property
    def entry_bytes(self) -> int:
        return 4 + 2 * self.offset_bytes

    @property
    def first_at(self) -> int:
        """Where the offset of the first directory is stored."""
        return 8 if self.is_big else 4

    def read(self, data: Bytes, at: int, count: int) -> int:
        """The unsigned number of `count` bytes at `at`."""
        if not 0 <= at <= len(data) - count:
            raise ValueError("an offset points outside the data")
        return int.from_bytes(data[at : at + count], self.order)

    def offset(self, data: Bytes, at: int) -> int:
        """The offset that is stored at `at`."""
        return self.read(data, at, self.offset_bytes)

    def swap(self, type_number: int, value: bytes) -> bytes:
        """A value from the order of the file to little-endian, or back."""
        word = WORD_BYTES[type_number]
        if self.order == "little" or word == 1:
            return value
        return b"".join(value[k : k + word][::-1] for k in range(0, len(value), word))


def layout_of(data: Bytes) -> ByteLayout:
    """The layout of a TIFF stream."""
    if bytes(data[:4]) not in SIGNATURES:
        raise ValueError("no TIFF header")
    return ByteLayout(*SIGNATURES[bytes(data[:4])])


def find_fields(data: Bytes, layout: ByteLayout, at: int) -> tuple[dict[int, TagLocation], int]:
    """The fields of the directory at `at`, and where the offset of the next directory is stored.

    Of several fields with one tag, the first counts, as in libtiff.
    """
    fields, end = list_fields(data, layout, at)
    return dict(reversed(fields)), end


def list_fields(data: Bytes, layout: ByteLayout, at: int) -> tuple[list[tuple[int, TagLocation]], int]:
    """As `find_fields`, with all fields of a tag. A field whose value lies outside the data is left out."""
    count = layout.read(data, at, layout.count_bytes)
    at += layout.count_bytes
    end = at + count * layout.entry_bytes
    if end > len(data):
        raise ValueError("a directory is longer than the data")
    fields: list[tuple[int, TagLocation]] = []
    for place in range(at, end, layout.entry_bytes):
        tag, type_number = layout.read(data, place, 2), layout.read(data, place + 2, 2)
        length = layout.read(data, place + 4, layout.offset_bytes) * TYPE_BYTES.get(type_number, 0)
        start = place + 4 + layout.offset_bytes
        if length > layout.offset_bytes:
            start = layout.offset(data, start)
        if 0 < length <= len(data) - start:
            fields.append((tag, TagLocation(type_number, start, start + length)))
    return fields, end


def read_directory(data: Bytes, layout: ByteLayout, at: int, depth: int = 0) -> Directory:
    """The entries of a directory and of those inside it, but for broken ones."""
    found: Directory = {}
    for tag, (type_number, start, stop) in find_fields(data, layout, at)[0].items():
        if tag in CHILDREN and depth < len(CHILDREN):
            with contextlib.suppress(ValueError):
                found[tag] = read_directory(data, layout, layout.read(data, start, stop - start), depth + 1)
        elif type_number not in DIRECTORY_TYPES:
            found[tag] = Entry(type_number, layout.swap(type_number, bytes(data[start:stop])))
    return found


def read_first(data: bytes) -> Directory:
    """The first directory of a TIFF stream, or nothing if it is broken."""
    try:
        layout = layout_of(data)
        return read_directory(data, layout, layout.offset(data, layout.first_at))
    except ValueError:
        return {}


def numbers(directory: Directory, tag: int) -> list[int]:
    """The numbers of an integer entry; of rationals, numerators and denominators."""
    found = directory.get(tag)
    if not isinstance(found, Entry):
        return []
    word = WORD_BYTES[found.type]
    return [int.from_bytes(found.value[k : k + word], "little") for k in range(0, len(found.value), word)]


def number(directory: Directory, tag: int, default: int = 0) -> int:
    """The first number of an integer entry."""
    return next(iter(numbers(directory, tag)), default)


def write_directory(directory: Directory, layout: ByteLayout, at: int) -> bytes:
    """A directory, its values and the directories inside it, as they are stored at `at`, with no next directory."""
    offset_bytes, table, rest = layout.offset_bytes, b"", b""
    values_at = at + layout.count_bytes + len(directory) * layout.entry_bytes + offset_bytes

    def pack(value: int, count: int) -> bytes:
        return value.to_bytes(count, layout.order)

    for tag, stored in sorted(directory.items()):
        rest += bytes(len(rest) % 2)
        end = values_at + len(rest)
        if isinstance(stored, dict):
            type_number, count, value = LONG8 if layout.is_big else LONG, 1, pack(end, offset_bytes)
            rest += write_directory(stored, layout, end)
        else:
            type_number, value = stored.type, layout.swap(*stored)
            count = len(value) // TYPE_BYTES[type_number]
            if len(value) > offset_bytes:
                rest, value = rest + value, pack(end, offset_bytes)
        table += pack(tag, 2) + pack(type_number, 2) + pack(count, offset_bytes) + value.ljust(offset_bytes, b"\0")
    return pack(len(directory), layout.count_bytes) + table + bytes(offset_bytes) + rest


def append_directory(file: BinaryIO, directory: Directory, layout: ByteLayout, link_at: int) -> int:
    """Writes a directory at the end of a file, and its offset at `link_at`; returns where that of the next one goes."""
    at = file.seek(0, os.SEEK_END)
    at += file.write(bytes(at % 2))
    file.write(write_directory(directory, layout, at))
    file.seek(link_at)
    file.write(at.to_bytes(layout.offset_bytes, layout.order))
    file.seek(0, os.SEEK_END)
    return at + layout.count_bytes + len(directory) * layout.entry_bytes


def header(layout: ByteLayout) -> bytes:
    """The beginning of a file, whose first directory is still to be written."""
    signature = next(signature for signature, parts in SIGNATURES.items() if parts == layout)
    sizes = (8).to_bytes(2, layout.order) + bytes(2) if layout.is_big else b""
    return signature + sizes + bytes(layout.offset_bytes)


def write_stream(directory: Directory) -> bytes:
    """A TIFF stream with one directory and no pixels, as EXIF is stored."""
    return b"II*\0" + struct.pack("<I", 8) + write_directory(directory, ByteLayout("little", False), 8)


def update(exif: bytes, size: Size) -> bytes:
    """EXIF for an upright picture of another size: orientation 1, its width and height, and no thumbnail.

    Args:
        exif: a TIFF stream.
        size: width and height of the picture.
    """
    data, layout = bytearray(exif), layout_of(exif)
    fields, next_at = find_fields(data, layout, layout.offset(data, layout.first_at))

    def store(field: TagLocation | None, value: int) -> None:
        if field and field.type in (SHORT, LONG) and value < 256 ** (field.stop - field.start):
            data[field.start : field.stop] = value.to_bytes(field.stop - field.start, layout.order)

    turned = fields.get(ORIENTATION)
    if turned and layout.read(data, turned.start, min(2, turned.stop - turned.start)) in SWAPPING:
        swap_resolutions(data, fields)
    store(turned, 1)
    child = fields.get(CHILDREN[0])
    inner = find_fields(data, layout, layout.read(data, child.start, child.stop - child.start))[0] if child else {}
    for pair in SIZES:
        for tag, value in zip(pair, size):
            store((fields | inner).get(tag), value)
    return drop_thumbnail(data, layout, next_at)


def swap_resolutions(data: bytearray, fields: dict[int, TagLocation]) -> None:
    """Swaps the resolutions across and down, for a picture that is turned by a quarter."""
    x, y = fields.get(X_RESOLUTION), fields.get(Y_RESOLUTION)
    if x and y and x.type == y.type == RATIONAL:
        data[x.start : x.start + 8], data[y.start : y.start + 8] = (
            data[y.start : y.start + 8],
            data[x.start : x.start + 8],
        )


def drop_thumbnail(data: bytearray, layout: ByteLayout, next_at: int) -> bytes:
    """EXIF without its second directory and the JPEG there, whose bytes become zeros, or go if they are the last."""
    at = layout.offset(data, next_at)
    if not at:
        return bytes(data)
    data[next_at : next_at + layout.offset_bytes] = bytes(layout.offset_bytes)
    try:
        fields, _ = find_fields(data, layout, at)
    except ValueError:
        return bytes(data)
    if not {THUMBNAIL_OFFSET, THUMBNAIL_BYTES} <= fields.keys():
        return bytes(data)
    start, count = (
        layout.read(data, field.start, field.stop - field.start)
        for field in (fields[THUMBNAIL_OFFSET], fields[THUMBNAIL_BYTES])
    )
    end = min(start + count, len(data))
    if not data.startswith(JPEG_START, start):
        return bytes(data)
    if not any(data[end:]):
        return bytes(data[:start])
    data[start:end] = bytes(end - start)
    return bytes(data)


def update_xmp(xmp: bytes, size: Size) -> bytes:
    """XMP for an upright picture of another size: orientation 1, its width and height, and no thumbnails."""
    width, height = (str(side).encode() for side in size)
    values = {b"tiff:Orientation": b"1"}
    values |= dict.fromkeys((b"tiff:ImageWidth", b"exif:PixelXDimension"), width)
    values |= dict.fromkeys((b"tiff:ImageLength", b"exif:PixelYDimension"), height)
    for name, value in values.items():
        xmp = re.sub(rb"(%s(?:\s*=\s*[\"']|>))\d+" % name, rb"\g<1>" + value, xmp)
    return re.sub(rb"<(xmp|xap):Thumbnails\b.*?</\1:Thumbnails>", b"", xmp, flags=re.DOTALL)


def xmp_orientation(xmp: bytes) -> int:
    """The orientation that XMP states, or 1."""
    match = re.search(rb"tiff:Orientation(?:\s*=\s*[\"']|>)([1-8])", xmp)
    return int(match[1]) if match else 1


# The orientation (TIFF 6.0, tag 274)


# Those that swap the axes, after rows and columns are reversed.
SWAPPING = (5, 6, 7, 8)
REVERSED_ROWS, REVERSED_COLUMNS = (3, 4, 6, 7), (2, 3, 7, 8)


def upright_size(size: Size, orientation: int) -> Size:
    """Width and height of a picture as it is shown, from those that are stored."""
    return (size[1], size[0]) if orientation in SWAPPING else size


def stored_part(part: tuple[slice, slice], stored: Size, orientation: int) -> tuple[slice, slice]:
    """The rows and columns of the stored picture that are some rows and columns of the upright one.

    Args:
        stored: height and width.
    """
    rows, columns = part[::-1] if orientation in SWAPPING else part
    if orientation in REVERSED_ROWS:
        rows = slice(stored[0] - rows.stop, stored[0] - rows.start)
    if orientation in REVERSED_COLUMNS:
        columns = slice(stored[1] - columns.stop, stored[1] - columns.start)
    return rows, columns


def upright_matrix(stored: Size, orientation: int) -> Array:
    """The (3, 3) matrix that maps points of a stored picture to those of the upright one, in pixels.

    Args:
        stored: width and height of the stored picture.
    """
    matrix = np.eye(3)
    for axis, reversed_ in enumerate((REVERSED_COLUMNS, REVERSED_ROWS)):
        if orientation in reversed_:
            matrix[axis, axis], matrix[axis, 2] = -1, stored[axis]
    return matrix[[1, 0, 2]] if orientation in SWAPPING else matrix


def apply_orientation(pixels: Array, orientation: int) -> Array:
    """Turns stored pixels upright."""
    steps = (-1 if orientation in reversed_ else 1 for reversed_ in (REVERSED_ROWS, REVERSED_COLUMNS))
    pixels = pixels[tuple(slice(None, None, step) for step in steps)]
    return pixels.swapaxes(0, 1) if orientation in SWAPPING else pixels
