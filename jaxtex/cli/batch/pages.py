"""Files of several pages: which of them are warped, and how the results become one file."""

# pyright: strict

import contextlib
import io
import math
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ..errors import UserError
from ..pictures.encode import find_format, status_of_source
from ..pictures.joined_pages import PageWriter
from ..pictures.sources import Source
from ..pictures.targets import replacing
from ..pictures.writing import STREAM, write_stdout
from .jobs import Job


class WrittenFile(NamedTuple):
    """What to report of a written file.

    Attributes:
        size: of the warped image, as WxH.
        compile_seconds: how long the program took to compile.
        notes: what was lost, each the end of a sentence that begins with the name of the file.
    """

    size: str
    compile_seconds: float
    notes: tuple[str, ...]


class EncodedPage(NamedTuple):
    """A page that is still to be written, as a TIFF of its own, and what to report of it."""

    data: bytes
    report: WrittenFile


def chosen_pages(source: Source, target: Path, job: Job) -> list[Source]:
    """The pictures of a file that are warped: one, or all pages of a TIFF.

    Raises:
        UserError: if the output can store only one of several pages.
    """
    total = len(source.pages)
    if total > 1 and job.preview:
        note = f"has {total} pages, of which the first is shown"
        return [source._replace(pages=source.pages[:1], notes=(note, *source.notes))]
    file_format = find_format(job.write.named(target))
    if total > 1 and file_format != "TIFF":
        raise UserError(
            f"cannot warp {source.path}: it has {total} pages, and {file_format} stores one; write a TIFF, or choose a "
            f"page with --page 1 to --page {total}"
        )
    return [source._replace(position=position) for position in range(max(total, 1))]


def join_pages(results: Iterable[tuple[Source, EncodedPage]], target: Path, job: Job) -> WrittenFile:
    """Writes pages to one file as they come.

    Raises:
        UserError: if the file cannot be written.
    """
    results = iter(results)
    source, page = next(results)
    reports = [page.report]
    with opened_target(target, source.path, job) as (stream, notes):
        writer = PageWriter(stream, len(source.pages), most_bytes(source, job))
        writer.append(page.data)
        for _, page in results:
            writer.append(page.data)
            reports.append(page.report)
    sizes = {report.size for report in reports}
    return WrittenFile(
        f"{len(reports)} pages" + (f" of {sizes.pop()}" if len(sizes) == 1 else ""),
        sum(report.compile_seconds for report in reports),
        (*source.notes, *merged_notes([report.notes for report in reports]), *notes),
    )


@contextlib.contextmanager
def opened_target(target: Path, source: Path, job: Job) -> Generator[tuple[BinaryIO, tuple[str, ...]], None, None]:
    """A stream to write an output to, which becomes the file at the end of the block, and notes on the file."""
    if target != STREAM:
        with replacing(target, status_of_source(source), job.files.preserve_times) as replacement:
            yield replacement
        return
    with io.BytesIO() as stream:
        yield stream, ()
        write_stdout(stream.getvalue())


def most_bytes(source: Source, job: Job) -> int:
    """How many bytes the pixels of all pages take at most in the output."""
    sizes = [(page, job.output_size(page.size)) for page in source.pages]
    if job.compare:
        sizes = [(page, (size[0] + page.size[0], max(size[1], page.size[1]))) for page, size in sizes]
    return sum(math.prod(size) * page.texel_bytes * (2 if job.alpha else 1) for page, size in sizes)


def merged_notes(notes: Sequence[tuple[str, ...]]) -> list[str]:
    """Notes on pages as notes on their file: each once, with the pages unless it is true of all."""
    pages: dict[str, list[int]] = {}
    for number, of_page in enumerate(notes, 1):
        for note in dict.fromkeys(of_page):
            pages.setdefault(note, []).append(number)
    return [note if len(numbers) == len(notes) else f"({page_list(numbers)}) {note}" for note, numbers in pages.items()]


def page_list(numbers: Sequence[int]) -> str:
    """Numbers of pages in words."""
    return f"page{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
