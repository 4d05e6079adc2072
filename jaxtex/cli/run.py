"""A run over one image file, over many, or over one that fits no memory, and what it reports."""

import contextlib
import dataclasses
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from tqdm import tqdm

from .. import __version__
from ..warp.sized.image import ImageWarp
from ..warp.sized.streams import NeedsWholeImage, StreamedImage
from ..warp.streaming import WindowTooLarge
from .files.codecs import find_picture, fit_picture
from .files.inputs import STREAM, PictureFile, format_of
from .files.large_tiff import LargeTiff, RunFingerprint, TiledOutput, closing_output, is_begun, open_large
from .files.metadata import Picture
from .files.replace import check_target, remove_stale_files
from .files.tiff import page_entries
from .options import Options
from .pipeline import Recipe, WrittenFile, errors_about, format_size, warp_stream
from .process import FullDiskError, UserError, check_stopped, print_error, print_notes, print_report

# Under --tile, what the process takes of any picture: Python, JAX, compilers, and what is computed of a few tiles.
OWN_BYTES = 3 * 2**28
DEFAULT_BYTES = 2**31
# Of the rest, for windows, and for what stays decoded or mapped.
WINDOW_SHARE, CACHE_SHARE = 0.6, 0.25
# Options that change no pixel.
WITHOUT_EFFECT = frozenset(
    (
        *("sources", "target", "shell", "jobs", "quiet", "verbose", "tile", "memory", "recursive", "format"),
        *("skip_existing", "force", "overwrite", "preserve_times", "max_pixels"),
    )
)


# One file


def warp_file(path: Path, target: Path, recipe: Recipe) -> int:
    """Warps one image file, and reports it in one line; returns the exit code."""
    if recipe.options.skip_existing and target != STREAM and os.path.isfile(target):
        return report_skipped(path, target, recipe)
    start = time.perf_counter()
    with contextlib.closing(warp_stream({path: target}, recipe)) as results:
        _, written = next(results)
    if isinstance(written, UserError):
        raise written
    if recipe.verbosity < 0:
        return 0
    print_notes(path.name, written.notes)
    timing = format_timing(recipe, time.perf_counter() - start, written.compile_seconds)
    line = f"{path.name} {written.source} -> {target} {written.size}: {recipe}, {timing}"
    (print_error if target == STREAM else print_report)(line)
    return 0


def report_skipped(path: Path, target: Path, recipe: Recipe) -> int:
    """Reports that an output exists already; returns the exit code."""
    if recipe.verbosity >= 0:
        print_report(f"{target} exists, {path.name} is skipped")
    return 0


def format_timing(recipe: Recipe, seconds: float, compile_seconds: float) -> str:
    """The device, and how long the work took."""
    return f"on {recipe.device.device_kind} in {seconds:.3f} s (compile {compile_seconds:.3f} s)"


def progress_bar(recipe: Recipe, unit: str, total: int, done: int = 0) -> "tqdm[NoReturn]":
    """A bar on standard error, if that is a terminal and the user wants to know."""
    disable = True if recipe.verbosity < 0 else None
    return tqdm(total=total, initial=done, unit=unit, leave=False, disable=disable, file=sys.stderr)


# Many files


def warp_folder(title: str, targets: dict[Path, Path], recipe: Recipe) -> int:
    """Warps images. An error stops one image only.

    Args:
        title: what the report calls them all.
        targets: the file to write for each image.

    Returns:
        The exit code, 2 if an image failed.
    """
    for folder in {target.parent for target in targets.values()}:
        remove_stale_files(folder)
    resume, is_quiet = recipe.options.skip_existing, recipe.verbosity < 0
    missing = {path: target for path, target in targets.items() if not (resume and os.path.isfile(target))}
    for path, target in targets.items() if recipe.verbosity > 0 else ():
        if path not in missing:
            report_skipped(path, target, recipe)
    start, tally = time.perf_counter(), Tally(recipe.verbosity)
    with (
        says_how_to_continue("run it again with --skip-existing to warp only the images that are missing"),
        progress_bar(recipe, "image", len(missing)) as progress,
        contextlib.closing(warp_stream(missing, recipe)) as results,
    ):
        for path, result in results:
            progress.update()
            tally.count(path, missing[path], result)
            check_stopped()
    seconds = time.perf_counter() - start
    speed = f"{tally.written / max(seconds, 1e-9):.1f} images/s"
    timing = f"{format_timing(recipe, seconds, tally.compile_seconds)}, {speed}"
    skipped = f", {len(targets) - len(missing)} skipped whose output exists" if resume else ""
    if not is_quiet:
        print_report(f"{title}: {tally.written} warped, {tally.failed} failed{skipped}: {recipe}, {timing}")
    return 2 if tally.failed else 0


@dataclasses.dataclass
class Tally:
    """What became of the images of a folder."""

    verbosity: int = 0
    written: int = 0
    failed: int = 0
    compile_seconds: float = 0.0

    def count(self, path: Path, target: Path, result: WrittenFile | UserError) -> None:
        """Counts an image, and prints its error or its notes."""
        if isinstance(result, FullDiskError):
            raise result
        if isinstance(result, UserError):
            self.failed += 1
            print_error(f"jaxtex: error: {result}")
            return
        self.written += 1
        self.compile_seconds += result.compile_seconds
        if self.verbosity >= 0:
            print_notes(path.name, result.notes)
        if self.verbosity > 0:
            print_report(f"{path} -> {target}: {result.size}")


@contextlib.contextmanager
def says_how_to_continue(words: str) -> Generator[None, None, None]:
    """Says of a run that is stopped, or that fills the disk, how it can go on."""
    try:
        yield
    except (KeyboardInterrupt, FullDiskError) as error:
        error.add_note(words)
        raise


# A file that fits no memory


def warp_large(path: Path, target: Path, recipe: Recipe) -> int:
    """Warps one TIFF tile by tile, and reports it in one line; returns the exit code."""
    options = recipe.options
    if STREAM in (path, target):
        raise UserError("--tile reads and writes files, not the stream -; name files")
    if format_of(target, options) != "TIFF":
        raise UserError(f"--tile writes TIFF, and {target} has the suffix {target.suffix!r}; name it {target.stem}.tif")
    if options.skip_existing and os.path.isfile(target) and not is_begun(target):
        return report_skipped(path, target, recipe)
    source = only_page(path, recipe)
    recipe.check_size(source.pages[0].size, target)
    check_target(target, options.force)
    most = options.memory or DEFAULT_BYTES
    with open_large(source, int(CACHE_SHARE * (most - OWN_BYTES)), recipe.threads, options.alpha) as large:
        line, notes = warp_opened(source, large, target, recipe, int(WINDOW_SHARE * (most - OWN_BYTES)))
    if recipe.verbosity >= 0:
        print_notes(path.name, (*source.notes, *large.notes, *notes))
        print_report(f"{path.name} {line}, peak memory {peak_memory()} of {format_bytes(most)}")
    return 0


def only_page(path: Path, recipe: Recipe) -> PictureFile:
    """The page of a TIFF that is warped."""
    source = find_picture(path, recipe.options.page)
    count = len(source.pages)
    if not count:
        raise UserError(f"cannot warp {path} with --tile: it is not a TIFF; leave --tile out")
    if count > 1:
        raise UserError(
            f"cannot warp {path} with --tile: it has {count} pages; choose one with --page 1 to --page {count}"
        )
    return source


def warp_opened(
    source: PictureFile, image: LargeTiff, target: Path, recipe: Recipe, window_bytes: int
) -> tuple[str, tuple[str, ...]]:
    """Warps a TIFF that is open, and writes what is missing of the output; returns what to report, and notes."""
    height, width, channels = image.shape
    options, start = recipe.options, time.perf_counter()
    with errors_about(source), tile_errors():
        recipe.check_width(width)
        size = recipe.output_size((width, height))
        mapping = recipe.transform.upright(image.metadata.orientation).mapping((width, height), size).uncached
        border = recipe.border_texel(channels, image.dtype)
        whole = ImageWarp.of(image.shape, image.dtype, mapping, border, size, recipe.read, recipe.device)
        warped = StreamedImage(image, whole, window_bytes)
    empty = Picture(np.zeros((1, 1, channels), image.dtype), image.icc, metadata=image.metadata)
    example = fit_picture(empty, "TIFF", options, size)
    begun = TiledOutput(
        target,
        size,
        channels * image.dtype.itemsize,
        fingerprint_of(source.path, options),
        resume=options.skip_existing,
        threads=recipe.threads,
        compression=example.metadata.compression,
        source=source.path,
    )
    boxes = warped.boxes()
    with (
        closing_output(begun) as output,
        says_how_to_continue("run it again with --resume to write only the tiles that are missing"),
    ):
        missing = [box for box in boxes if not output.has(*ranges(box.start, box.shape))]
        done = len(boxes) - len(missing)
        with progress_bar(recipe, "tile", len(boxes), done) as progress, errors_about(source), tile_errors():
            for box, tile in warped.pixels(missing):
                output.write(*ranges(box.start, box.shape), tile)
                progress.update()
                check_stopped()
        output.finish(page_entries(example, size), options.preserve_times)
    kept = f", {done} of them before" if done else ""
    tiles = f"{len(boxes)} tiles of {format_size(warped.tile[::-1])}{kept}"
    timing = format_timing(recipe, time.perf_counter() - start, whole.programs.compile_seconds)
    return f"{width}x{height} -> {target} {format_size(size)}: {recipe}, {timing}, {tiles}", example.notes


def ranges(start: tuple[int, ...], shape: tuple[int, ...]) -> tuple[range, range]:
    """The rows and the columns of a part of the output."""
    rows, columns = (range(first, first + n) for first, n in zip(start, shape))
    return rows, columns


@contextlib.contextmanager
def tile_errors() -> Generator[None, None, None]:
    """Turns the errors of tiles that read too much into errors that the user can mend."""
    try:
        yield
    except WindowTooLarge as error:
        raise UserError(
            f"{error} at once, more than --memory leaves room for; raise --memory, or make the picture smaller in steps"
        ) from error
    except NeedsWholeImage as error:
        raise UserError(
            "it becomes much smaller in places, for which --antialias needs the whole image in memory; make it "
            "smaller with jaxtex resize --tile first, or leave --tile out"
        ) from error


def fingerprint_of(path: Path, options: Options) -> RunFingerprint:
    """What the tiles of an output are made from and by."""
    given: dict[str, Any] = {name: value for name, value in vars(options).items() if name not in WITHOUT_EFFECT}
    values = {
        f"--{name.removesuffix('_mode').replace('_', '-')}": str(value)
        for name, value in given.items()
        if value is not None and value is not False
    }
    files = {"the input": path} | ({"the calibration": options.calibration} if options.calibration else {})
    for name, file in files.items():
        status = os.stat(file)
        values |= {name: os.path.realpath(file), f"the size of {name}": str(status.st_size)}
        values |= {f"the time of {name}": str(status.st_mtime_ns)}
    return RunFingerprint({"the version of jaxtex": __version__, **values})


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
