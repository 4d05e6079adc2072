"""TIFFs that may be larger than memory: parts of one that is read, and the tiles of one that is written."""

import contextlib
import functools
import json
import math
import mmap
import os
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import tifffile

from ...warp.sized.mappings import Array, Size
from ..process import UserError
from .compression import UNKNOWN, Compression, encoded_rows
from .exif import (
    LONG,
    PROFILE,
    ByteLayout,
    Directory,
    FileBytes,
    append_directory,
    apply_orientation,
    entry,
    header,
    stored_part,
    upright_size,
)
from .inputs import PictureFile, open_regular, read_errors
from .metadata import Metadata, add_alpha
from .replace import first_mode, hold, linked, put_in_place, status_of, write_error
from .tiff import LARGEST_CLASSIC, finished_pixels, is_decoded, part_entries, read_tiff, unsupported

# Parts of an upright picture, mapped from the file or decoded as needed


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


# A tiled TIFF that is written tile by tile, and goes on after a run that was stopped
#
# Tiles are appended, compressed, to a file beside the target, and a record of them to another one: what they are made
# from and by, and then a line for each tile. At the end the directory follows, and the file replaces the target.
#
# Source: TIFF 6.0, section 15, and the BigTIFF proposal of libtiff.


SIDE = 256  # of a tile of the file, in pixels
TILE_SIDES, TILES = (322, 323), (324, 325)  # width and height; offsets and lengths


class Stored(NamedTuple):
    """Where a tile lies in the file, and how many bytes it has."""

    offset: int
    length: int


class RunFingerprint(dict[str, str]):
    """What the tiles of a file are made from and by, by the words of a message: a file with others is not continued."""

    def differing(self, others: dict[str, str]) -> list[str]:
        """In words, what differs from that of a record."""
        names = [name for name in {**self, **others} if self.get(name) != others.get(name)]
        return [f"{name} was {others.get(name, 'not there')}, and is {self.get(name, 'not there')}" for name in names]


def is_begun(target: Path) -> bool:
    """Whether an earlier run has written a part of a file."""
    return all(path.exists() for path in files_beside(linked(target)))


def files_beside(target: Path) -> list[Path]:
    """The file of tiles, and their record, beside a file."""
    return [target.with_name(target.name + suffix) for suffix in (".part", ".part.tiles")]


class TiledOutput:
    """A tiled TIFF that is being written.

    Args:
        size: width and height.
        texel_bytes: of a pixel.
        fingerprint: what the tiles are made from and by.
        resume: whether to go on with tiles that an earlier run has written.
        threads: how many compress tiles.
        compression: of the tiles.
        source: the input, whose permissions the file takes if it is new.
    """

    def __init__(
        self,
        target: Path,
        size: Size,
        texel_bytes: int,
        fingerprint: RunFingerprint,
        *,
        resume: bool,
        threads: int,
        compression: Compression = UNKNOWN,
        source: Path | None = None,
    ) -> None:
        self.path, self.target, self.size, self.source = target, linked(target), size, status_of(source)
        self.part, self.record = files_beside(self.target)
        # Pixels are compressed as they are in memory.
        order = "little" if sys.byteorder == "little" else "big"
        self.layout = ByteLayout(order, size[0] * size[1] * texel_bytes > LARGEST_CLASSIC)
        self.tiles: dict[int, Stored] = {}
        self.pool, self.compression = ThreadPoolExecutor(threads), compression
        try:
            end = self.recorded(fingerprint) if resume else 0
            mode = first_mode(status_of(self.target), self.source)
            opened = os.open(self.part, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), mode)
            self.file: BinaryIO = open(opened, "r+b")  # noqa: SIM115  closed by `close`
            if not hold(self.file.fileno()) and sys.platform != "win32":
                self.file.close()
                raise UserError(f"cannot write {target}: another process is writing {self.part}")
            self.begin(fingerprint, end)
        except OSError as error:
            raise write_error(target, error) from error

    def begin(self, fingerprint: RunFingerprint, end: int) -> None:
        """Puts both files into the state that the record had, or at their beginning."""
        self.file.truncate(end)
        self.file.seek(end)
        if not end:
            self.tiles = {}
            self.file.write(header(self.layout))
        # What follows a broken last line would be one with it.
        with self.record.open("w", encoding="utf-8") as record:
            record.write(json.dumps(fingerprint) + "\n")
            record.writelines(line_of(number, stored) for number, stored in self.tiles.items())
        self.lines = self.record.open("a", encoding="utf-8")

    def recorded(self, fingerprint: RunFingerprint) -> int:
        """Takes over the tiles of an earlier run; returns where they end, or 0 if there are none."""
        if not is_begun(self.target):
            return 0
        first, *lines = self.record.read_text(encoding="utf-8").splitlines() or [""]
        try:
            others: dict[str, str] = json.loads(first)
        except ValueError:
            return 0
        if differing := fingerprint.differing(others):
            raise UserError(
                f"cannot resume {self.path}: {'; '.join(differing)}; give the same options as before, or leave "
                "--resume out to start again"
            )
        length, end = self.part.stat().st_size, 0
        for line in lines:
            # The last line of a process that was killed may be cut off, and so may its tile.
            with contextlib.suppress(ValueError):
                number, offset, count = (int(word) for word in line.split())
                if offset + count <= length:
                    self.tiles[number] = Stored(offset, count)
                    end = max(end, offset + count)
        return end

    def numbers(self, rows: range, columns: range) -> list[tuple[int, int, int]]:
        """The tiles of a part of the picture that begins at one: the number of each, and its row and column there."""
        width, height = self.size
        across = -(-width // SIDE)
        return [
            (y // SIDE * across + x // SIDE, y - rows.start, x - columns.start)
            for y in range(rows.start, min(rows.stop, height), SIDE)
            for x in range(columns.start, min(columns.stop, width), SIDE)
        ]

    def has(self, rows: range, columns: range) -> bool:
        """Whether all tiles of a part are written."""
        return all(number in self.tiles for number, _, _ in self.numbers(rows, columns))

    def write(self, rows: range, columns: range, pixels: Array) -> None:
        """Writes the tiles of a part of the picture that begins at one."""
        places = self.numbers(rows, columns)
        parts = (pixels[y : y + SIDE, x : x + SIDE] for _, y, x in places)
        try:
            for (number, _, _), data in zip(
                places, self.pool.map(functools.partial(encoded, compression=self.compression), parts)
            ):
                stored = Stored(self.file.tell(), len(data))
                self.file.write(data)
                self.file.flush()
                self.tiles[number] = stored
                self.lines.write(line_of(number, stored))
            self.lines.flush()
        except OSError as error:
            raise write_error(self.path, error) from error

    def finish(self, entries: Directory, preserve_times: bool) -> None:
        """Writes the directory, and puts the file in the place of the target.

        Args:
            entries: of the page, but for those of tiles.
        """
        stored = [self.tiles[number] for number in sorted(self.tiles)]
        sides = {tag: entry(LONG, SIDE) for tag in TILE_SIDES}
        try:
            entries |= sides | part_entries(TILES, stored, self.layout)
            append_directory(self.file, entries, self.layout, self.layout.first_at)
            self.file.flush()
            put_in_place(self.part, self.target, self.source, preserve_times)
            self.close()
            self.record.unlink()
        except OSError as error:
            raise write_error(self.path, error) from error

    def close(self) -> None:
        """Closes the files. What is written stays, for a run that goes on."""
        self.pool.shutdown()
        self.file.close()
        self.lines.close()


def line_of(number: int, stored: Stored) -> str:
    """The line of a tile in the record."""
    return f"{number} {stored.offset} {stored.length}\n"


def encoded(pixels: Array, compression: Compression) -> bytes:
    """A tile of the file, compressed; beyond the picture its last pixels go on."""
    missing = [SIDE - n for n in pixels.shape[:2]]
    if any(missing):
        pixels = np.pad(pixels, ((0, missing[0]), (0, missing[1]), (0, 0)), mode="edge")
    return encoded_rows(np.ascontiguousarray(pixels), compression)


@contextlib.contextmanager
def closing_output(output: TiledOutput) -> Generator[TiledOutput, None, None]:
    """Closes an output at the end of the block, whose errors are the first to be told."""
    try:
        yield output
    except BaseException:
        with contextlib.suppress(OSError):  # of a full disk once more
            output.close()
        raise
    output.close()
