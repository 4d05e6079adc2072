"""A folder of images to another: while the device warps one image, threads read the next ones and write the last ones.

Codecs release Python's lock, so as many threads as there are cores keep the cores busy. Only the main thread calls JAX.
Every step keeps the order of the names, so messages are in that order too.
"""

# pyright: strict

import contextlib
import dataclasses
import itertools
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tqdm import tqdm

from .encode import FORMATS
from .errors import FullDiskError, UserError, describe
from .files import WrittenFile, finish_warp, format_timing, print_notes, read_for, start_warp
from .jobs import Job
from .kinds import OTHER_IMAGE_SUFFIXES
from .messages import print_error, print_report
from .signals import undisturbed
from .targets import remove_stale_files

# With N threads, at most N + 1 images are being read or wait to be warped, one is on its way to the device, and N + 1
# are being warped or written: 2 N + 3 in memory.
THREADS = min(os.cpu_count() or 1, 16)
MAX_PENDING = THREADS + 1
MAX_SHOWN = 5  # names in a message

# The path of an image, and the result of the last step or the error that stopped it.
Item = tuple[Path, Any]


def warp_folder(source: Path, target: Path, job: Job) -> int:
    """Warps the images of a folder into another folder, under the same names. An error stops one image only.

    Returns:
        The exit code, 2 if an image failed.

    Raises:
        UserError: if the folder of the input has no images, or that of the output cannot be used.
        FullDiskError: if there is no space for an image, which ends the run.
    """
    every = image_paths(source)
    make_folder(target, source)
    remove_stale_files(target)
    print_left_out(source)
    paths = [path for path in every if not (job.files.skip_existing and (target / path.name).is_file())]
    start, tally = time.perf_counter(), Tally()
    bar = tqdm(total=len(paths), unit="image", leave=False, disable=None, file=sys.stderr)
    try:
        with bar as progress, contextlib.closing(warp_stream(paths, target, job)) as results:
            for path, result in results:
                progress.update()
                tally.count(path, result)
    except (KeyboardInterrupt, FullDiskError) as error:
        error.add_note("run it again with --skip-existing to warp only the images that are missing")
        raise
    seconds = time.perf_counter() - start
    timing = f"{format_timing(job, seconds, tally.compile_seconds)}, {tally.written / max(seconds, 1e-9):.1f} images/s"
    skipped = f", {len(every) - len(paths)} skipped" if job.files.skip_existing else ""
    print_report(f"{source} -> {target}: {tally.written} warped, {tally.failed} failed{skipped}: {job}, {timing}")
    return 2 if tally.failed else 0


@dataclasses.dataclass
class Tally:
    """What became of the images of a folder."""

    written: int = 0
    failed: int = 0
    compile_seconds: float = 0.0

    def count(self, path: Path, result: WrittenFile | UserError) -> None:
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
        print_notes(path, result.notes)


def warp_stream(
    paths: Iterable[Path], target: Path, job: Job
) -> Generator[tuple[Path, WrittenFile | UserError], None, None]:
    """Reads, warps and writes images, and yields the results in order. Closed early, it finishes what was started."""
    pool = ThreadPoolExecutor(THREADS)
    try:
        read = pass_errors_on(lambda path, _: read_for(path, target / path.name, job))
        warp = pass_errors_on(lambda path, picture: start_warp(path, picture, job))
        write = pass_errors_on(lambda path, started: finish_warp(path, target / path.name, started, job))
        pictures = map_ahead(pool, read, zip(paths, itertools.repeat(None)))
        yield from map_ahead(pool, write, itertools.starmap(warp, pictures))
    finally:
        with undisturbed():
            pool.shutdown(cancel_futures=True)


def map_ahead(pool: ThreadPoolExecutor, step: Callable[..., Item], items: Iterable[Item]) -> Iterator[Item]:
    """Applies `step` to items in the threads of `pool`, and yields in order; at most `MAX_PENDING` are pending."""
    pending: deque[Future[Item]] = deque()
    for item in items:
        pending.append(pool.submit(step, *item))
        if len(pending) == MAX_PENDING:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def pass_errors_on(step: Callable[[Path, Any], Any]) -> Callable[..., Item]:
    """A step whose result may be a `UserError`: its own, or that of the step before."""

    def wrapped(path: Path, value: Any) -> Item:
        if isinstance(value, UserError):
            return path, value
        try:
            return path, step(path, value)
        except UserError as error:
            return path, error
        except MemoryError as error:
            return path, UserError(f"cannot warp {path}: {describe(error)}")

    return wrapped


def image_paths(folder: Path) -> list[Path]:
    """The image files of a folder, by name, without hidden ones. Links that lead nowhere and pipes are among them.

    Raises:
        UserError: if there are none.
    """
    paths = [path for path in visible_paths(folder) if path.suffix.lower() in FORMATS and not path.is_dir()]
    if not paths:
        raise UserError(f"{folder} holds no image file ({', '.join(FORMATS)})")
    return paths


def visible_paths(folder: Path) -> list[Path]:
    """What a folder holds, by name, but for hidden files, which a pattern of the shell would not find either.

    Raises:
        UserError: if the folder cannot be read.
    """
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise UserError(f"cannot read the folder {folder}: {error.strerror or error}") from error


def print_left_out(folder: Path) -> None:
    """Prints which images of a folder are of a kind that is not read."""
    names = [path.name for path in visible_paths(folder) if path.suffix.lower() in OTHER_IMAGE_SUFFIXES]
    if names:
        shown = ", ".join(names[:MAX_SHOWN]) + (", ..." if len(names) > MAX_SHOWN else "")
        print_error(f"jaxtex: note: {folder} holds {len(names)} files of other kinds, which are left out: {shown}")


def make_folder(target: Path, source: Path) -> None:
    """Makes the folder of the output if it does not exist.

    Raises:
        UserError: if it cannot be made, or is the folder of the input.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {target}: {error.strerror or error}") from error
    if target.samefile(source):
        raise UserError(f"{target} is also the input folder; name another folder for the output")
