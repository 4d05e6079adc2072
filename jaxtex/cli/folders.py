"""A folder of images into another: while the device warps one image, threads read the next and write the last.

Codecs release Python's lock, so as many threads as there are cores keep them busy; JAX is called by the main thread
alone. Each step hands on to the next in the order of names, and so messages come in that order too.
"""

import contextlib
import itertools
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tqdm import tqdm

from .decode import read_picture
from .encode import FORMATS
from .errors import UserError
from .files import Finished, begin, finish, say, say_notes, times
from .jobs import Job

# With N threads at most N + 1 images are being read or wait to be warped, one is handed to the device, and N + 1 are
# being warped or written: 2 N + 3 in memory.
THREADS = min(os.cpu_count() or 1, 16)
WAITING = THREADS + 1

# An image's path, and what the last step made of it, or why it failed.
Item = tuple[Path, Any]


def warp_folder(source: Path, target: Path, job: Job) -> int:
    """Warps the images of a folder into another one, by name; a broken one stops none of the rest.

    Returns:
        The exit code, 2 if an image failed.
    """
    paths = images(source)
    make_folder(target, source)
    start, done, compile_seconds = time.perf_counter(), 0, 0.0
    bar = tqdm(total=len(paths), unit="image", leave=False, disable=None, file=sys.stderr)
    with bar as progress, contextlib.closing(stream(paths, target, job)) as results:
        for path, result in results:
            progress.update()
            if isinstance(result, UserError):
                say(f"jaxtex: error: {result}")
                continue
            say_notes(path, result.notes)
            done, compile_seconds = done + 1, compile_seconds + result.compile_seconds
    seconds = time.perf_counter() - start
    took = f"{times(job, seconds, compile_seconds)}, {done / seconds:.1f} images/s"
    print(f"{source} -> {target}: {done} warped, {len(paths) - done} failed: {job}, {took}")
    return 2 if done < len(paths) else 0


def stream(paths: Iterable[Path], target: Path, job: Job) -> Generator[tuple[Path, Finished | UserError], None, None]:
    """Reads, warps and writes images, and yields them in order. Closed early it ends what was begun, and no more."""
    pool = ThreadPoolExecutor(THREADS)
    try:
        read = passing_errors(lambda path, _: read_picture(path))
        warp = passing_errors(lambda path, picture: begin(path, picture, job))
        write = passing_errors(lambda path, begun: finish(path, target / path.name, begun, job))
        pictures = ahead(pool, read, zip(paths, itertools.repeat(None)))
        yield from ahead(pool, write, itertools.starmap(warp, pictures))
    finally:
        pool.shutdown(cancel_futures=True)


def ahead(pool: ThreadPoolExecutor, step: Callable[..., Item], items: Iterable[Item]) -> Iterator[Item]:
    """`step` of each item, in order, by the threads of `pool`; at most `WAITING` begun and not yet taken."""
    waiting = deque()
    for item in items:
        waiting.append(pool.submit(step, *item))
        if len(waiting) == WAITING:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def passing_errors(step: Callable[[Path, Any], Any]) -> Callable[..., Item]:
    """A step that hands on an error, of the step before or its own, in place of a result."""

    def passing(path: Path, value: Any) -> Item:
        if isinstance(value, UserError):
            return path, value
        try:
            return path, step(path, value)
        except UserError as error:
            return path, error

    return passing


def images(folder: Path) -> list[Path]:
    """The image files of a folder, by name.

    Raises:
        UserError: if there are none.
    """
    try:
        paths = sorted(p for p in folder.iterdir() if p.suffix.lower() in FORMATS and p.is_file())
    except OSError as error:
        raise UserError(f"cannot read the folder {folder}: {error.strerror or error}") from error
    if not paths:
        raise UserError(f"{folder} holds no image file ({', '.join(FORMATS)})")
    return paths


def make_folder(target: Path, source: Path) -> None:
    """Makes the folder for the output, which may be there.

    Raises:
        UserError: if it cannot be made, or is that of the input.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {target}: {error.strerror or error}") from error
    if target.samefile(source):
        raise UserError(f"{target} is the input folder too; name another one for the output")
