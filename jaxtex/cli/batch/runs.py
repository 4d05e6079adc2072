"""A run over one image file or many, and what it reports."""

# pyright: strict

import contextlib
import dataclasses
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tqdm import tqdm

from ..errors import FullDiskError, UserError
from ..pictures.sources import Source
from ..pictures.targets import remove_stale_files
from ..pictures.writing import STREAM
from ..process.messages import print_error, print_report
from .files import errors_about, find_pictures, finish_warp, format_size, read_page, start_warp
from .jobs import Job
from .pages import WrittenFile
from .pipeline import crew_of, warp_pages, warp_stream


def warp_file(path: Path, target: Path, job: Job) -> int:
    """Warps one image file, and reports it in one line; returns the exit code.

    Raises:
        UserError: if the image cannot be read, warped or written.
    """
    if job.files.skip_existing and target != STREAM and os.path.isfile(target):
        if job.verbosity >= 0:
            print_report(f"{target} exists, {path.name} is skipped")
        return 0
    pages = find_pictures(path, target, job)
    size, seconds, written = warp_only_page(pages[0], target, job) if len(pages) == 1 else warp_all(pages, target, job)
    if job.verbosity < 0:
        return 0
    print_notes(path, written.notes)
    timing = format_timing(job, seconds, written.compile_seconds)
    line = f"{path.name} {size} -> {target} {written.size}: {job}, {timing}"
    (print_error if target == STREAM else print_report)(line)
    return 0


def warp_only_page(source: Source, target: Path, job: Job) -> tuple[str, float, WrittenFile]:
    """Warps a file of one picture; returns its size, how long the warp took, and what was written."""
    picture = read_page(source, target, job)
    start = time.perf_counter()
    started = start_warp(source, picture, job)
    with errors_about(source):
        started.result.wait()
    seconds = time.perf_counter() - start
    return format_size(picture.pixels), seconds, finish_warp(source, target, started, job)


def warp_all(pages: list[Source], target: Path, job: Job) -> tuple[str, float, WrittenFile]:
    """Warps a file of several pages; returns how many, how long all took, and what was written."""
    start = time.perf_counter()
    with crew_of(job) as crew:
        _, result = next(warp_pages(crew, ((page, None) for page in pages), {pages[0].path: target}, job))
    if isinstance(result, UserError):
        raise result
    return f"{len(pages)} pages", time.perf_counter() - start, result


def warp_folder(title: str, targets: dict[Path, Path], job: Job) -> int:
    """Warps images. An error stops one image only.

    Args:
        title: what the report calls them all.
        targets: the file to write for each image.

    Returns:
        The exit code, 2 if an image failed.

    Raises:
        FullDiskError: if there is no space for an image, which ends the run.
    """
    for folder in {target.parent for target in targets.values()}:
        remove_stale_files(folder)
    missing = {
        path: target for path, target in targets.items() if not (job.files.skip_existing and os.path.isfile(target))
    }
    start, tally, is_quiet = time.perf_counter(), Tally(job.verbosity), job.verbosity < 0
    bar = tqdm(total=len(missing), unit="image", leave=False, disable=True if is_quiet else None, file=sys.stderr)
    try:
        with bar as progress, contextlib.closing(warp_stream(missing, job)) as results:
            for path, result in results:
                progress.update()
                tally.count(path, missing[path], result)
    except (KeyboardInterrupt, FullDiskError) as error:
        error.add_note("run it again with --skip-existing to warp only the images that are missing")
        raise
    seconds = time.perf_counter() - start
    timing = f"{format_timing(job, seconds, tally.compile_seconds)}, {tally.written / max(seconds, 1e-9):.1f} images/s"
    skipped = f", {len(targets) - len(missing)} skipped" if job.files.skip_existing else ""
    if not is_quiet:
        print_report(f"{title}: {tally.written} warped, {tally.failed} failed{skipped}: {job}, {timing}")
    return 2 if tally.failed else 0


@dataclasses.dataclass
class Tally:
    """What became of the images of a folder."""

    verbosity: int = 0
    written: int = 0
    failed: int = 0
    compile_seconds: float = 0.0

    def count(self, path: Path, target: Path, result: WrittenFile | UserError) -> None:
        """Counts an image, and prints its error or its notes.

        Raises:
            FullDiskError: if there was no space for it.
        """
        if isinstance(result, FullDiskError):
            raise result
        if isinstance(result, UserError):
            self.failed += 1
            print_error(f"jaxtex: error: {result}")
            return
        self.written += 1
        self.compile_seconds += result.compile_seconds
        if self.verbosity >= 0:
            print_notes(path, result.notes)
        if self.verbosity > 0:
            print_report(f"{path} -> {target}: {result.size}")


def format_timing(job: Job, seconds: float, compile_seconds: float) -> str:
    """The device, and how long the work took."""
    return f"on {job.device.device_kind} in {seconds:.3f} s (compile {compile_seconds:.3f} s)"


def print_notes(path: Path, notes: Iterable[str]) -> None:
    """Prints notes on a file to standard error."""
    for note in notes:
        print_error(f"jaxtex: note: {path.name} {note}")
