"""A tiled TIFF that is written tile by tile, and goes on after a run that was stopped.

Tiles are appended, compressed, to a file beside the target, and a record of them to another one: what they are made
from and by, and then a line for each tile. At the end the directory follows, and the file replaces the target.

Source: TIFF 6.0, section 15, and the BigTIFF proposal of libtiff.
"""

import contextlib
import json
import os
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, NamedTuple

import imagecodecs
import numpy as np

from ...warp.sized.mappings import Array, Size
from ..process import UserError
from .exif import LONG, ByteLayout, Directory, append_directory, entry, header
from .replace import first_mode, hold, linked, put_in_place, status_of, write_error
from .tiff import LARGEST_CLASSIC, part_entries

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
        source: Path | None = None,
    ) -> None:
        self.path, self.target, self.size, self.source = target, linked(target), size, status_of(source)
        self.part, self.record = files_beside(self.target)
        # Pixels are compressed as they are in memory.
        order = "little" if sys.byteorder == "little" else "big"
        self.layout = ByteLayout(order, size[0] * size[1] * texel_bytes > LARGEST_CLASSIC)
        self.tiles: dict[int, Stored] = {}
        self.pool = ThreadPoolExecutor(threads)
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
            for (number, _, _), data in zip(places, self.pool.map(encoded, parts)):
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


def encoded(pixels: Array) -> bytes:
    """A tile of the file, compressed by deflate; beyond the picture its last pixels go on."""
    missing = [SIDE - n for n in pixels.shape[:2]]
    if any(missing):
        pixels = np.pad(pixels, ((0, missing[0]), (0, missing[1]), (0, 0)), mode="edge")
    return bytes(imagecodecs.deflate_encode(np.ascontiguousarray(pixels).tobytes()))


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
