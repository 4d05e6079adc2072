"""A TIFF that may be larger than memory: read in parts, warped and written tile by tile, continued after a stop."""

# pyright: strict

import contextlib
import dataclasses
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from ... import __version__
from ...warp.streaming import WindowTooLarge
from ..errors import FullDiskError, UserError
from ..grammar.option_groups import Options
from ..pictures.decode import find_source
from ..pictures.encode import encode_picture, find_format, status_of_source
from ..pictures.large_tiff import LargeTiff, open_large
from ..pictures.limits import Size
from ..pictures.picture import Array, Picture
from ..pictures.sources import Source
from ..pictures.targets import check_target
from ..pictures.tiled_output import Marks, TiledOutput, closing_output, is_begun
from ..pictures.writing import STREAM
from ..process.messages import print_report
from ..warping.streams import StreamedImage
from .files import check_size, errors_about
from .jobs import Job
from .runs import format_timing, print_notes

# Of the process, whatever the picture: Python, JAX, compilers, and what is computed of a few tiles.
OWN_BYTES = 3 * 2**28
DEFAULT_BYTES = 2**31
# Of the rest, for windows, and for what stays decoded or mapped.
WINDOW_SHARE, CACHE_SHARE = 0.6, 0.25
# Options that change no pixel.
WITHOUT_EFFECT = frozenset(
    (
        *("sources", "target", "shell", "jobs", "quiet", "verbose", "tile", "memory", "recursive", "format"),
        *("skip_existing", "force", "preserve_times", "max_pixels"),
    )
)


def warp_large(path: Path, target: Path, job: Job, options: Options) -> int:
    """Warps one TIFF, and reports it in one line; returns the exit code.

    Raises:
        UserError: if it cannot be read in parts, warped or written.
    """
    if STREAM in (path, target):
        raise UserError("--tile reads and writes files, and - is a stream")
    if find_format(target) != "TIFF":
        raise UserError(f"--tile writes TIFF, and {target} has the suffix {target.suffix!r}; name it {target.stem}.tif")
    resume = job.files.skip_existing
    if resume and os.path.isfile(target) and not is_begun(target):
        if job.verbosity >= 0:
            print_report(f"{target} exists, {path.name} is skipped")
        return 0
    source = only_page(path, job)
    check_size(source.pages[0].size, target, job)
    check_target(target, job.files.force)
    budget = (options.memory or DEFAULT_BYTES) - OWN_BYTES
    with open_large(source, source.pages[0], int(CACHE_SHARE * budget), job.threads) as large:
        report = warp_opened(source, large, target, job, marks_of(path, options), int(WINDOW_SHARE * budget))
    if job.verbosity >= 0:
        print_notes(path, (*source.notes, *large.notes, *report.notes))
        bound = format_bytes(options.memory or DEFAULT_BYTES)
        print_report(f"{path.name} {report.line}, peak memory {peak_memory()} of {bound}")
    return 0


@dataclasses.dataclass
class Report:
    """What is printed of a run: its line, and notes on what was lost."""

    line: str
    notes: tuple[str, ...]


def only_page(path: Path, job: Job) -> Source:
    """The page of a TIFF that is warped.

    Raises:
        UserError: if the file is none, or has several.
    """
    source = find_source(path, job.files.page)
    if not source.pages:
        raise UserError(f"cannot warp {path} with --tile: it is no TIFF, and others are decoded as a whole")
    if len(source.pages) > 1:
        count = len(source.pages)
        raise UserError(
            f"cannot warp {path} with --tile: it has {count} pages; choose one with --page 1 to --page {count}"
        )
    return source


def warp_opened(source: Source, large: LargeTiff, target: Path, job: Job, marks: Marks, window_bytes: int) -> Report:
    """Warps a TIFF that is open, and writes what is missing of the output."""
    image = WithAlpha(large) if job.alpha else large
    height, width, channels = image.shape
    start = time.perf_counter()
    with errors_about(source):
        job.check_width(width)
        size = job.output_size((width, height))
        mapping, border = job.transform.mapping((width, height), size), job.border_texel(channels, image.dtype)
        warped = StreamedImage(image, mapping, border, size, job.read, job.device, window_bytes)
    empty = Picture(np.zeros((1, 1, channels), image.dtype), large.icc, metadata=large.metadata)
    example, notes = encode_picture(empty, "TIFF", job.files.strip, size=size)
    status, texel_bytes = status_of_source(source.path), channels * image.dtype.itemsize
    begun = TiledOutput(
        target, size, texel_bytes, marks, resume=job.files.skip_existing, threads=job.threads, source=status
    )
    with closing_output(begun) as output, may_be_continued():
        boxes = warped.boxes()
        missing = [box for box in boxes if not output.has(*ranges(box.start, box.shape))]
        bar = tqdm(
            total=len(boxes),
            initial=len(boxes) - len(missing),
            unit="tile",
            leave=False,
            disable=True if job.verbosity < 0 else None,
            file=sys.stderr,
        )
        with bar as progress, errors_about(source), windows_fit():
            for box, pixels in warped.pixels(missing):
                output.write(*ranges(box.start, box.shape), pixels)
                progress.update()
        output.finish(example, job.files.preserve_times)
    seconds = time.perf_counter() - start
    kept = f", {len(boxes) - len(missing)} of them before" if len(missing) < len(boxes) else ""
    tiles = f"{len(boxes)} tiles of {'x'.join(map(str, warped.tile[::-1]))}{kept}"
    timing = format_timing(job, seconds, warped.whole.programs.compile_seconds)
    return Report(f"{width}x{height} -> {target} {format_sides(size)}: {job}, {timing}, {tiles}", notes)


class WithAlpha:
    """An image that gets an opaque alpha channel if it has none."""

    def __init__(self, image: LargeTiff) -> None:
        self.image, self.dtype = image, image.dtype
        height, width, channels = image.shape
        self.shape = height, width, channels if channels in (2, 4) else channels + 1

    def __getitem__(self, part: tuple[slice, ...]) -> Array:
        pixels = self.image[part]
        if pixels.shape[-1] == self.shape[-1]:
            return pixels
        opaque = np.full_like(pixels[..., :1], np.iinfo(pixels.dtype).max)
        return np.concatenate([pixels, opaque], axis=-1)


def ranges(start: tuple[int, ...], shape: tuple[int, ...]) -> tuple[range, range]:
    """The rows and the columns of a part of the output."""
    rows, columns = (range(first, first + n) for first, n in zip(start, shape))
    return rows, columns


@contextlib.contextmanager
def may_be_continued() -> Generator[None, None, None]:
    """Says of a run that is stopped how it can go on."""
    try:
        yield
    except (KeyboardInterrupt, FullDiskError) as error:
        error.add_note("run it again with --resume to write only the tiles that are missing")
        raise


@contextlib.contextmanager
def windows_fit() -> Generator[None, None, None]:
    """Turns the error of a pixel that reads too much into one that the user can mend.

    Raises:
        UserError: if there is one.
    """
    try:
        yield
    except WindowTooLarge as error:
        raise UserError(
            f"{error} at once, more than --memory leaves room for; give it more, or make the picture smaller in steps"
        ) from error


def marks_of(path: Path, options: Options) -> Marks:
    """What the tiles of an output are made from and by."""
    given: dict[str, Any] = {name: value for name, value in vars(options).items() if name not in WITHOUT_EFFECT}
    values = {
        f"--{name.replace('_', '-')}": str(value)
        for name, value in given.items()
        if value is not None and value is not False
    }
    files = {"the input": path} | ({"the calibration": options.calibration} if options.calibration else {})
    for name, file in files.items():
        status = os.stat(file)
        values |= {name: os.path.realpath(file), f"the size of {name}": str(status.st_size)}
        values |= {f"the time of {name}": str(status.st_mtime_ns)}
    return Marks({"the version of jaxtex": __version__, **values})


def format_sides(size: Size) -> str:
    """Width and height as WxH."""
    return f"{size[0]}x{size[1]}"


def format_bytes(count: float) -> str:
    """A number of bytes in words."""
    return f"{count / 2**30:.2f} GB"


def peak_memory() -> str:
    """The most memory that the process has taken, in words."""
    try:
        import resource
    except ImportError:  # Windows
        return "unknown"
    unit = 1 if sys.platform == "darwin" else 1024
    return format_bytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
