"""A TIFF that may be larger than memory: parts of its upright picture, mapped from the file or decoded as needed."""

import contextlib
import functools
import math
import mmap
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tifffile

from ...warp.sized.mappings import Array
from ..process import UserError
from .exif import PROFILE, FileBytes, apply_orientation, stored_part, upright_size
from .inputs import PictureFile, open_regular, read_errors
from .metadata import Metadata, add_alpha
from .tiff import finished_pixels, is_decoded, read_tiff, unsupported

SEPARATE = 2  # planes of samples


class LargeTiff:
    """The upright picture of a page, which returns the pixels of a part for a slice of rows and one of columns.

    Args:
        source: the file, for errors.
        file: of the page; it stays open.
        page: of tifffile.
        metadata: of the page.
        cache_bytes: how many bytes of decoded strips and tiles, or of the mapped file, stay in memory.
        alpha: whether a picture without alpha gets an opaque one.

    Attributes:
        shape: height, width and channels.
        dtype: uint8 or uint16.
        icc: the color profile, or `None`.
        metadata: what else the file says.
        notes: what is dropped, each the end of a sentence that begins with the name of the file.
    """

    def __init__(
        self,
        source: PictureFile,
        file: BinaryIO,
        page: Any,
        metadata: Metadata,
        cache_bytes: int,
        threads: int,
        alpha: bool = False,
    ) -> None:
        if not is_decoded(page):
            raise UserError(unsupported(page, "--tile"))
        self.source, self.page, self.metadata, self.alpha = source, page, metadata, alpha
        self.orientation = metadata.orientation
        self.stored_size: tuple[int, int] = page.imagelength, page.imagewidth
        self.icc: bytes | None = page.tags.valueof(PROFILE)
        example, drops_channel = self.finished(np.zeros((1, 1, page.samplesperpixel), page.dtype))
        self.notes = ("has a channel of undeclared meaning, which is dropped",) if drops_channel else ()
        width, height = upright_size((page.imagewidth, page.imagelength), self.orientation)
        self.shape, self.dtype = (height, width, example.shape[-1]), example.dtype
        if page.is_final and page.dataoffsets[0] % page.dtype.itemsize == 0:
            self.samples = MappedSamples(file, page, cache_bytes)
        else:
            self.samples = DecodedSamples(file, page, cache_bytes, threads)

    def __getitem__(self, part: tuple[slice, ...]) -> Array:
        rows, columns = stored_part((part[0], part[1]), self.stored_size, self.orientation)
        with read_errors(self.source):
            pixels, _ = self.finished(self.samples.part(rows, columns))
        return apply_orientation(pixels, self.orientation)

    def finished(self, samples: Array) -> tuple[Array, bool]:
        """Pixels of stored samples, and whether a channel is dropped."""
        pixels, drops_channel = finished_pixels(self.page, samples)
        return add_alpha(pixels) if self.alpha else pixels, drops_channel


class MappedSamples:
    """The samples of a page that are stored one after the other, mapped from the file."""

    def __init__(self, file: BinaryIO, page: Any, cache_bytes: int) -> None:
        self.mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        dtype = np.dtype(page.parent.byteorder + page.dtype.char)
        first: int = page.dataoffsets[0]
        height, width, count = page.imagelength, page.imagewidth, page.samplesperpixel
        flat = np.frombuffer(self.mapping, dtype, height * width * count, first)
        is_separate = page.planarconfig == SEPARATE and count > 1
        shape = (count, height, width) if is_separate else (height, width, count)
        self.samples = np.moveaxis(flat.reshape(shape), 0, -1) if is_separate else flat.reshape(shape)
        self.row_bytes = width * dtype.itemsize * (1 if is_separate else count)
        self.cache_bytes, self.touched = cache_bytes, 0

    def part(self, rows: slice, columns: slice) -> Array:
        """Samples of some rows and columns, (height, width, samples)."""
        found = np.array(self.samples[rows, columns], self.samples.dtype.newbyteorder("="))
        # The pages of the file that were read count as memory of the process until they are given back.
        self.touched += min(4 * found.nbytes + mmap.PAGESIZE * 16 * len(found), self.row_bytes * len(found))
        if self.touched > self.cache_bytes and hasattr(mmap, "MADV_DONTNEED"):
            self.mapping.madvise(mmap.MADV_DONTNEED)
            self.touched = 0
        return found


class DecodedSamples:
    """The samples of a page in tiles or strips, of which those that were used last stay decoded."""

    def __init__(self, file: BinaryIO, page: Any, cache_bytes: int, threads: int) -> None:
        self.file, self.page = file, page
        self.tables: Any = page.jpegtables
        if page.is_tiled:
            self.segment: tuple[int, int] = page.tilelength, page.tilewidth
        else:
            self.segment = min(page.rowsperstrip, page.imagelength), page.imagewidth
        self.grid = tuple(-(-n // m) for n, m in zip((page.imagelength, page.imagewidth), self.segment))
        self.planes: int = page.samplesperpixel if page.planarconfig == SEPARATE else 1
        self.of_segment: int = page.samplesperpixel // self.planes
        segment_bytes = math.prod(self.segment) * self.of_segment * page.dtype.itemsize
        if segment_bytes > cache_bytes:
            kind = "tiles" if page.is_tiled else "strips"
            raise UserError(
                f"its {kind} take {segment_bytes / 2**20:.0f} MB each, and --memory leaves "
                f"{cache_bytes / 2**20:.0f} MB for them; raise --memory"
            )
        self.pool, self.lock = ThreadPoolExecutor(threads), threading.Lock()
        self.decoded = functools.lru_cache(maxsize=cache_bytes // segment_bytes)(self.decode)

    def part(self, rows: slice, columns: slice) -> Array:
        """Samples of some rows and columns, (height, width, samples)."""
        shape = rows.stop - rows.start, columns.stop - columns.start, self.page.samplesperpixel
        out = np.empty(shape, self.page.dtype)
        down, across = (
            range(part.start // side, -(-part.stop // side)) for part, side in zip((rows, columns), self.segment)
        )
        # A row of segments at a time, since what is in use cannot be dropped.
        for plane in range(self.planes):
            for y in down:
                places = [(plane, y, x) for x in across]
                for place, segment in zip(places, self.pool.map(self.decoded, places)):
                    self.copy(out, (rows, columns), place, segment)
        return out

    def copy(self, out: Array, part: tuple[slice, slice], place: tuple[int, int, int], segment: Array) -> None:
        """Copies what a segment holds of a part."""
        plane, *numbers = place
        to: list[slice] = []
        at: list[slice] = []
        for wanted, number, side, n in zip(part, numbers, self.segment, segment.shape):
            first = number * side
            start, stop = max(wanted.start, first), min(wanted.stop, first + n)
            to.append(slice(start - wanted.start, stop - wanted.start))
            at.append(slice(start - first, stop - first))
        channels = slice(plane, plane + self.of_segment) if self.planes > 1 else slice(None)
        out[to[0], to[1], channels] = segment[at[0], at[1]]

    def decode(self, place: tuple[int, int, int]) -> Array:
        """A segment, (height, width, samples). One without bytes has the value that the file names for those."""
        plane, *number = place
        index = (plane * self.grid[0] + number[0]) * self.grid[1] + number[1]
        count: int = self.page.databytecounts[index]
        with self.lock:
            self.file.seek(self.page.dataoffsets[index])
            data: bytes | None = self.file.read(count) if count else None
        if data is not None and len(data) < count:
            raise ValueError("a part of its pixels is missing")
        found: Array | None = self.page.decode(data, index, jpegtables=self.tables)[0]
        if found is not None:
            return found.reshape(*found.shape[1:])
        height, width = (
            min(side, n - k * side)
            for side, n, k in zip(self.segment, (self.page.imagelength, self.page.imagewidth), number)
        )
        return np.full((height, width, self.of_segment), self.page.nodata, self.page.dtype)


@contextlib.contextmanager
def open_large(
    source: PictureFile, cache_bytes: int, threads: int, alpha: bool = False
) -> Generator[LargeTiff, None, None]:
    """Opens the only page of a TIFF."""
    with contextlib.ExitStack() as stack:
        with read_errors(source):
            at = source.pages[0].directory
            file = stack.enter_context(open_regular(Path(source.path)))
            metadata = read_tiff(FileBytes(file), at)  # pyright: ignore[reportArgumentType]
            file.seek(0)
            opened = stack.enter_context(tifffile.TiffFile(file))
            page: Any = next(page for page in opened.pages if page.offset == at)
            large = LargeTiff(source, file, page, metadata, cache_bytes, threads, alpha)
        yield large
