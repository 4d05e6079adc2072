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

from ..errors import FullDiskError, UserError, describe
from ..pictures.encode import FORMATS
from ..pictures.kinds import OTHER_IMAGE_SUFFIXES
from ..pictures.targets import remove_stale_files
from ..process.messages import print_error, print_report
from ..process.signals import undisturbed
from .files import WrittenFile, finish_warp, format_timing, print_notes, read_for, start_warp
from .jobs import Job

# With N threads, at most N + 1 images are being read or wait to be warped, one is on its way to the device, and N + 1
# are being warped or written: 2 N + 3 in memory.
THREADS = min(os.cpu_count() or 1, 16)
MAX_PENDING = THREADS + 1
MAX_SHOWN = 5  # names in a message

# The path of an image, and the result of the last step or the error that stopped it.
Item = tuple[Path, Any]


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
    missing = {path: target for path, target in targets.items() if not (job.files.skip_existing and target.is_file())}
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


def warp_stream(targets: dict[Path, Path], job: Job) -> Generator[tuple[Path, WrittenFile | UserError], None, None]:
    """Reads, warps and writes images, and yields the results in order. Closed early, it finishes what was started."""
    pool, pending = ThreadPoolExecutor(job.threads or THREADS), job.threads + 1 if job.threads else MAX_PENDING
    try:
        read = pass_errors_on(lambda path, _: read_for(path, targets[path], job))
        warp = pass_errors_on(lambda path, picture: start_warp(path, picture, job))
        write = pass_errors_on(lambda path, started: finish_warp(path, targets[path], started, job))
        pictures = map_ahead(pool, read, zip(targets, itertools.repeat(None)), pending)
        yield from map_ahead(pool, write, itertools.starmap(warp, pictures), pending)
    finally:
        with undisturbed():
            pool.shutdown(cancel_futures=True)


def map_ahead(pool: ThreadPoolExecutor, step: Callable[..., Item], items: Iterable[Item], most: int) -> Iterator[Item]:
    """Applies `step` to items in the threads of `pool`, and yields in order; at most `most` are pending."""
    pending: deque[Future[Item]] = deque()
    for item in items:
        pending.append(pool.submit(step, *item))
        if len(pending) == most:
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


def image_paths(folder: Path, recursive: bool = False) -> list[Path]:
    """The image files of a folder, by name, without hidden ones. Links that lead nowhere and pipes are among them.

    Args:
        folder: to read.
        recursive: whether those of its subfolders belong to it too.

    Raises:
        UserError: if there are none.
    """
    visible = visible_paths(folder, recursive)
    paths = [path for path in visible if path.suffix.lower() in FORMATS and not path.is_dir()]
    if not paths:
        raise UserError(f"{folder} holds no image file ({', '.join(FORMATS)})")
    return paths


def visible_paths(folder: Path, recursive: bool = False) -> list[Path]:
    """What a folder holds, by name, but for hidden files, which a pattern of the shell would not find either.

    Raises:
        UserError: if the folder cannot be read.
    """
    try:
        paths = sorted(folder.rglob("*") if recursive else folder.iterdir())
    except OSError as error:
        raise UserError(f"cannot read the folder {folder}: {error.strerror or error}") from error
    return [path for path in paths if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def print_left_out(folder: Path, recursive: bool = False) -> None:
    """Prints which images of a folder are of a kind that is not read."""
    visible = visible_paths(folder, recursive)
    names = [path.name for path in visible if path.suffix.lower() in OTHER_IMAGE_SUFFIXES and not path.is_dir()]
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
