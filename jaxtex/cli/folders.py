"""A folder of images to another: while the device warps one image, threads read the next ones and write the last ones.

Codecs release Python's lock, so as many threads as there are cores keep the cores busy. Only the main thread calls JAX.
Every step keeps the order of the names, so messages are in that order too.
"""

# pyright: strict

import contextlib
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

from .decode import read_picture
from .encode import FORMATS
from .errors import UserError
from .files import WrittenFile, finish_warp, format_timing, print_message, print_notes, start_warp
from .jobs import Job

# With N threads, at most N + 1 images are being read or wait to be warped, one is on its way to the device, and N + 1
# are being warped or written: 2 N + 3 in memory.
THREADS = min(os.cpu_count() or 1, 16)
MAX_PENDING = THREADS + 1

# The path of an image, and the result of the last step or the error that stopped it.
Item = tuple[Path, Any]


def warp_folder(title: str, targets: dict[Path, Path], job: Job) -> int:
    """Warps images. An error stops one image only.

    Args:
        title: what the report calls them all.
        targets: the file to write for each image.

    Returns:
        The exit code, 2 if an image failed.
    """
    paths = list(targets)
    start, written, compile_seconds = time.perf_counter(), 0, 0.0
    bar = tqdm(
        total=len(paths), unit="image", leave=False, disable=True if job.verbosity < 0 else None, file=sys.stderr
    )
    with bar as progress, contextlib.closing(warp_stream(targets, job)) as results:
        for path, result in results:
            progress.update()
            if isinstance(result, UserError):
                print_message(f"jaxtex: error: {result}")
                continue
            if job.verbosity >= 0:
                print_notes(path, result.notes)
            if job.verbosity > 0:
                tqdm.write(f"{path} -> {targets[path]}: {result.size}")
            written, compile_seconds = written + 1, compile_seconds + result.compile_seconds
    seconds = time.perf_counter() - start
    timing = f"{format_timing(job, seconds, compile_seconds)}, {written / seconds:.1f} images/s"
    if job.verbosity >= 0:
        print(f"{title}: {written} warped, {len(paths) - written} failed: {job}, {timing}")
    return 2 if written < len(paths) else 0


def warp_stream(targets: dict[Path, Path], job: Job) -> Generator[tuple[Path, WrittenFile | UserError], None, None]:
    """Reads, warps and writes images, and yields the results in order. Closed early, it finishes what was started."""
    pool, pending = ThreadPoolExecutor(job.threads or THREADS), job.threads + 1 if job.threads else MAX_PENDING
    try:
        read = pass_errors_on(lambda path, _: read_picture(path))
        warp = pass_errors_on(lambda path, picture: start_warp(path, picture, job))
        write = pass_errors_on(lambda path, started: finish_warp(path, targets[path], started, job))
        pictures = map_ahead(pool, read, zip(targets, itertools.repeat(None)), pending)
        yield from map_ahead(pool, write, itertools.starmap(warp, pictures), pending)
    finally:
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

    return wrapped


def image_paths(folder: Path, recursive: bool = False) -> list[Path]:
    """The image files of a folder, by name; if `recursive`, those of its subfolders too.

    Raises:
        UserError: if there are none.
    """
    try:
        paths = sorted(
            path
            for path in (folder.rglob("*") if recursive else folder.iterdir())
            if path.suffix.lower() in FORMATS and path.is_file()
        )
    except OSError as error:
        raise UserError(f"cannot read the folder {folder}: {error.strerror or error}") from error
    if not paths:
        raise UserError(f"{folder} holds no image file ({', '.join(FORMATS)})")
    return paths


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
