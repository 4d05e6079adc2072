"""One image file into another: read, begin, finish. The steps are apart, so that those of several files overlap."""

import contextlib
import dataclasses
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from tqdm import tqdm

from .decode import Picture, read_picture
from .encode import format_of, write_picture
from .errors import UserError, one_line
from .jobs import Job
from .warp import Warped, warp


class Begun(NamedTuple):
    """An image that the device is warping."""

    picture: Picture
    warped: Warped


class Finished(NamedTuple):
    """A written file: the size of its warped image, the seconds that its program took to compile, and notes."""

    size: str
    compile_seconds: float
    notes: tuple[str, ...]


def begin(source: Path, picture: Picture, job: Job) -> Begun:
    """Hands an image to the device.

    Raises:
        UserError: if `job` cannot be done to it.
    """
    height, width, channels = picture.pixels.shape
    with explained(source):
        border = job.border_texel(channels, picture.pixels.dtype)
        size = job.size or (width, height)
        mapping = job.transform.mapping((width, height), size)
        return Begun(picture, warp(picture.pixels, mapping, border, size=size, reading=job.reading, device=job.device))


def finish(source: Path, target: Path, begun: Begun, job: Job) -> Finished:
    """Waits for the device, and writes the result.

    Raises:
        UserError: if the device fails, or the file cannot be written.
    """
    picture, warped = begun
    with explained(source):
        pixels = np.asarray(warped.pixels)
    size = sides(pixels)
    if job.compare:
        pixels = side_by_side(picture.pixels, pixels)
    notes = write_picture(target, dataclasses.replace(picture, pixels=pixels))
    return Finished(size, warped.compile_seconds, (*picture.notes, *notes))


def warp_file(source: Path, target: Path, job: Job) -> int:
    """Warps one image file into another; returns the exit code."""
    format_of(target)  # before any work
    picture = read_picture(source)
    start = time.perf_counter()
    begun = begin(source, picture, job)
    with explained(source):
        begun.warped.pixels.block_until_ready()
    seconds = time.perf_counter() - start
    done = finish(source, target, begun, job)
    say_notes(source, done.notes)
    took = times(job, seconds, done.compile_seconds)
    print(f"{source.name} {sides(picture.pixels)} -> {target} {done.size}: {job}, {took}")
    return 0


@contextlib.contextmanager
def explained(source: Path) -> Iterator[None]:
    """Says of what goes wrong while an image is warped which image it was."""
    try:
        yield
    except UserError as error:
        raise UserError(f"cannot warp {source}: {error}") from error
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        raise UserError(f"cannot warp {source}: {one_line(error)}") from error


def side_by_side(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Two images in one, the lower one centred between bands of black, or of nothing if there is alpha."""
    height = max(len(before), len(after))

    def padded(pixels: np.ndarray) -> np.ndarray:
        missing = height - len(pixels)
        return np.pad(pixels, ((missing // 2, missing - missing // 2), (0, 0), (0, 0)))

    return np.concatenate([padded(before), padded(after)], axis=1)


def sides(pixels: np.ndarray) -> str:
    """Width and height, as they are written."""
    return f"{pixels.shape[1]}x{pixels.shape[0]}"


def times(job: Job, seconds: float, compile_seconds: float) -> str:
    """Where the work was done and how long it took."""
    return f"on {job.device.device_kind} in {seconds:.3f} s (compile {compile_seconds:.3f} s)"


def say_notes(path: Path, notes: Iterable[str]) -> None:
    for note in notes:
        say(f"jaxtex: note: {path.name} {note}")


def say(line: str) -> None:
    """A line on standard error, above the progress bar if there is one."""
    tqdm.write(line, file=sys.stderr)
