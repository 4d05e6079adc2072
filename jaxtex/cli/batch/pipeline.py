"""Images as a stream: while the device warps one, threads read the next ones and write the last ones.

Codecs release Python's lock, so as many threads as there are cores keep the cores busy. Only the main thread calls JAX.
Every step keeps the order of the names, so messages are in that order too. The pages of a file are images of the
stream; their results are joined as they come.
"""

# pyright: strict

import contextlib
import itertools
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import UserError, describe
from ..pictures.sources import Source
from ..process.signals import undisturbed
from .files import StartedWarp, find_pictures, finish_page, finish_warp, read_page, start_warp
from .jobs import Job
from .pages import EncodedPage, WrittenFile, join_pages

# With N threads, at most N + 1 images are being read or wait to be warped, one is on its way to the device, and N + 1
# are being warped or written: 2 N + 3 in memory.
THREADS = min(os.cpu_count() or 1, 16)
MAX_PENDING = THREADS + 1

# An image, and the result of the last step or the error that stopped it.
Item = tuple[Source, Any]
# A file, and what came of it.
Result = tuple[Path, WrittenFile | UserError]


class Crew(NamedTuple):
    """Threads that read and write, and the most images that each step of theirs holds."""

    pool: ThreadPoolExecutor
    most: int


@contextlib.contextmanager
def crew_of(job: Job) -> Generator[Crew, None, None]:
    """The threads of a job. At the end of the block they finish what was started."""
    pool = ThreadPoolExecutor(job.threads or THREADS)
    try:
        yield Crew(pool, job.threads + 1 if job.threads else MAX_PENDING)
    finally:
        with undisturbed():
            pool.shutdown(cancel_futures=True)


def warp_stream(targets: dict[Path, Path], job: Job) -> Generator[Result, None, None]:
    """Reads, warps and writes images, and yields the results in order. Closed early, it finishes what was started."""
    with crew_of(job) as crew:
        find = pass_errors_on(lambda source, _: find_pictures(source.path, targets[source.path], job))
        files = map_ahead(crew, find, ((Source(path), None) for path in targets))
        yield from warp_pages(crew, (item for found in files for item in pages_of(*found)), targets, job)


def pages_of(source: Source, found: list[Source] | UserError) -> Iterator[Item]:
    """The pages of a file as items of their own, or the error of the file."""
    return iter([(source, found)] if isinstance(found, UserError) else [(page, None) for page in found])


def warp_pages(crew: Crew, pages: Iterable[Item], targets: dict[Path, Path], job: Job) -> Iterator[Result]:
    """Reads, warps and writes pages, and yields the results of their files in order; no page follows an error."""
    failed: set[Path] = set()
    read = pass_errors_on(lambda source, _: read_page(source, targets[source.path], job))
    warp = pass_errors_on(lambda source, picture: start_warp(source, picture, job))
    write = pass_errors_on(lambda source, started: finish(source, targets[source.path], started, job))
    join = pass_errors_on(lambda source, items: joined(items, targets[source.path], job))
    wanted = (item for item in pages if item[0].path not in failed)
    done = map_ahead(crew, write, itertools.starmap(warp, map_ahead(crew, read, wanted)))
    for path, items in itertools.groupby(done, key=lambda item: item[0].path):
        result = join(Source(path), items)[1]
        if isinstance(result, UserError):
            failed.add(path)
        yield path, result


def finish(source: Source, target: Path, started: StartedWarp, job: Job) -> WrittenFile | EncodedPage:
    """Writes a picture; one of several pages is only encoded."""
    return (finish_page if len(source.pages) > 1 else finish_warp)(source, target, started, job)


def joined(items: Iterator[Item], target: Path, job: Job) -> WrittenFile:
    """What came of a file, whose pages are joined.

    Raises:
        UserError: what stopped a page.
    """
    source, result = next(items)
    if isinstance(result, WrittenFile):
        return result
    return join_pages(without_errors(itertools.chain([(source, result)], items)), target, job)


def without_errors(items: Iterable[Item]) -> Iterator[tuple[Source, EncodedPage]]:
    """Items up to one that holds an error, which is raised."""
    for source, result in items:
        if isinstance(result, UserError):
            raise result
        yield source, result


def map_ahead(crew: Crew, step: Callable[..., Item], items: Iterable[Item]) -> Iterator[Item]:
    """Applies `step` to items in the threads of a crew, and yields in order; few are pending."""
    pending: deque[Future[Item]] = deque()
    for item in items:
        pending.append(crew.pool.submit(step, *item))
        if len(pending) == crew.most:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def pass_errors_on(step: Callable[[Source, Any], Any]) -> Callable[..., Item]:
    """A step whose result may be a `UserError`: its own, or that of the step before."""

    def wrapped(source: Source, value: Any) -> Item:
        if isinstance(value, UserError):
            return source, value
        try:
            return source, step(source, value)
        except UserError as error:
            return source, error
        except MemoryError as error:
            return source, UserError(f"cannot warp {source}: {describe(error)}")

    return wrapped
