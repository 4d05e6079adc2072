"""One image file to another, in steps: read, start the warp, finish it. The steps of several files can overlap."""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import contextlib
import dataclasses
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from ..errors import OutputError, UserError, describe
from ..pictures.decode import read_picture
from ..pictures.encode import find_format, write_picture
from ..pictures.limits import Size, check_pixels
from ..pictures.picture import Array, Picture
from ..pictures.targets import check_target
from ..pictures.writing import STREAM
from ..process.messages import print_error, print_report
from ..warping.previews import shrunk, with_alpha
from ..warping.warp import WarpResult, warp
from .jobs import Job


class StartedWarp(NamedTuple):
    """An image, and the result that the device may still be computing."""

    picture: Picture
    result: WarpResult


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


def start_warp(source: Path, picture: Picture, job: Job) -> StartedWarp:
    """Sends an image to the device, and does not wait for the result.

    Raises:
        UserError: if `job` does not fit the image.
    """
    if job.alpha:
        picture = with_alpha(picture)
    height, width, channels = picture.pixels.shape
    with errors_about(source):
        job.check_width(width)
        border = job.border_texel(channels, picture.pixels.dtype)
        size = job.output_size((width, height))
        mapping = job.transform.mapping((width, height), size)
        result = warp(picture.pixels, mapping, border, size=size, read=job.read, device=job.device)
        return StartedWarp(picture, result)


def finish_warp(source: Path, target: Path, started: StartedWarp, job: Job) -> WrittenFile:
    """Waits for the device, and writes the result.

    Raises:
        UserError: if the device fails, or the file cannot be written.
    """
    picture, result = started
    with errors_about(source):
        pixels = np.asarray(result.pixels)
        size = format_size(pixels)
        if job.compare:
            pixels = side_by_side(picture.pixels, pixels)
        if job.preview:
            pixels = side_by_side(*(shrunk(shown, job.device) for shown in (picture.pixels, pixels)))
    notes = write_picture(target, dataclasses.replace(picture, pixels=pixels), job.write, job.files, source)
    return WrittenFile(size, result.compile_seconds, (*picture.notes, *notes))


def warp_file(source: Path, target: Path, job: Job) -> int:
    """Warps one image file, and reports it in one line; returns the exit code.

    Raises:
        UserError: if the image cannot be read, warped or written.
    """
    find_format(job.write.named(target))  # an unknown format is an error before any work
    if job.files.skip_existing and target != STREAM and target.is_file():
        if job.verbosity >= 0:
            print_report(f"{target} exists, {source.name} is skipped")
        return 0
    picture = read_for(source, target, job)
    start = time.perf_counter()
    started = start_warp(source, picture, job)
    with errors_about(source):
        started.result.pixels.block_until_ready()
    seconds = time.perf_counter() - start
    written = finish_warp(source, target, started, job)
    if job.verbosity < 0:
        return 0
    print_notes(source, written.notes)
    timing = format_timing(job, seconds, written.compile_seconds)
    line = f"{source.name} {format_size(picture.pixels)} -> {target} {written.size}: {job}, {timing}"
    (print_error if target == STREAM else print_report)(line)
    return 0


def read_for(source: Path, target: Path, job: Job) -> Picture:
    """Reads an image, once it is known that its output can be written.

    Raises:
        UserError: if one of them cannot be, or one is too large.
    """
    if target != STREAM:
        check_target(target, job.files.force)
    file_format = find_format(job.write.named(target))

    def accept(size: Size) -> None:
        check_pixels(size, job.files.max_pixels)
        try:
            job.check_output_size(size, file_format)
        except UserError as error:
            raise OutputError(f"cannot write {target}: {error}") from error

    return read_picture(source, accept, job.files.page)


@contextlib.contextmanager
def errors_about(source: Path) -> Generator[None, None, None]:
    """Turns the errors of a warp into a `UserError` that names the image."""
    try:
        yield
    except UserError as error:
        raise UserError(f"cannot warp {source}: {error}") from error
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        raise UserError(f"cannot warp {source}: {describe(error)}") from error


def side_by_side(before: Array, after: Array) -> Array:
    """Two images in one. The lower one is centered between bands of black, or of transparency if there is alpha."""
    height = max(len(before), len(after))

    def pad(pixels: Array) -> Array:
        missing = height - len(pixels)
        return np.pad(pixels, ((missing // 2, missing - missing // 2), (0, 0), (0, 0)))

    return np.concatenate([pad(before), pad(after)], axis=1)


def format_size(pixels: Array) -> str:
    """Width and height as WxH."""
    return f"{pixels.shape[1]}x{pixels.shape[0]}"


def format_timing(job: Job, seconds: float, compile_seconds: float) -> str:
    """The device, and how long the work took."""
    return f"on {job.device.device_kind} in {seconds:.3f} s (compile {compile_seconds:.3f} s)"


def print_notes(path: Path, notes: Iterable[str]) -> None:
    """Prints notes on a file to standard error."""
    for note in notes:
        print_error(f"jaxtex: note: {path.name} {note}")
