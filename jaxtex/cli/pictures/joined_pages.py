"""TIFF files of one page each, joined to a file of all pages, one after the other.

Source: TIFF 6.0, section 2, and the tags NewSubfileType and PageNumber there.
"""

# pyright: strict

from typing import BinaryIO

from .metadata.exif import (
    LONG,
    LONG8,
    SHORT,
    SIGNATURES,
    Entry,
    Layout,
    layout_of,
    numbers,
    read_directory,
    write_directory,
)

SUBFILE_TYPE, STRIP_OFFSETS, STRIP_BYTES, PAGE_NUMBER = 254, 273, 279, 297
PAGE_OF_SEVERAL = 2  # as a subfile type
# The largest file in which offsets have four bytes, with room for what is not pixels.
LARGEST_CLASSIC = 2**32 - 2**26


class PageWriter:
    """Writes pages to a file.

    Args:
        file: to write to, from its beginning.
        total: how many pages it is to have.
        most_bytes: how many bytes the pixels take at most, which decides how long offsets are.
    """

    def __init__(self, file: BinaryIO, total: int, most_bytes: int) -> None:
        self.file, self.total, self.number = file, total, 0
        self.is_big = most_bytes > LARGEST_CLASSIC
        self.offset_at = 0  # where the offset of the next directory is stored

    def append(self, data: bytes) -> None:
        """Appends a page.

        Args:
            data: a TIFF with one page, as `encode` makes it; all pages have the byte order of this machine.

        Raises:
            OSError: if the file cannot be written.
        """
        source = layout_of(data)
        layout = Layout(source.order, self.is_big)
        if not self.number:
            self.write_header(layout)
        directory = read_directory(data, source, source.offset(data, source.first_at))
        starts = self.write_strips(data, numbers(directory, STRIP_OFFSETS), numbers(directory, STRIP_BYTES))
        offset_type = LONG8 if self.is_big else LONG
        packed = b"".join(start.to_bytes(layout.offset_bytes, "little") for start in starts)
        page_number = b"".join(min(count, 2**16 - 1).to_bytes(2, "little") for count in (self.number, self.total))
        directory |= {
            SUBFILE_TYPE: Entry(LONG, PAGE_OF_SEVERAL.to_bytes(4, "little")),
            STRIP_OFFSETS: Entry(offset_type, packed),
            PAGE_NUMBER: Entry(SHORT, page_number),
        }
        self.file.write(bytes(self.file.tell() % 2))
        at = self.file.tell()
        self.file.write(write_directory(directory, layout, at))
        end = self.file.tell()
        self.file.seek(self.offset_at)
        self.file.write(at.to_bytes(layout.offset_bytes, layout.order))
        self.file.seek(end)
        self.offset_at = at + layout.count_bytes + len(directory) * layout.entry_bytes
        self.number += 1

    def write_header(self, layout: Layout) -> None:
        """Writes the header, whose first directory is not known yet."""
        signature = next(signature for signature, parts in SIGNATURES.items() if parts == layout)
        sizes = (8).to_bytes(2, layout.order) + bytes(2) if layout.is_big else b""
        self.file.write(signature + sizes + bytes(layout.offset_bytes))
        self.offset_at = layout.first_at

    def write_strips(self, data: bytes, starts: list[int], counts: list[int]) -> list[int]:
        """Copies strips of a page, and returns where they are now."""
        written: list[int] = []
        for start, count in zip(starts, counts, strict=True):
            written.append(self.file.tell())
            self.file.write(data[start : start + count])
        return written
