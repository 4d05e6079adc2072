"""One image file to another, in steps: read, start the warp, finish it. The steps of several files can overlap."""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import contextlib
import dataclasses
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from ..errors import OutputError, UserError, describe
from ..pictures.decode import find_source, read_picture
from ..pictures.encode import encode_for, find_format, write_picture
from ..pictures.limits import Size, check_pixels
from ..pictures.picture import Array, Picture
from ..pictures.sources import Source, read_errors
from ..pictures.targets import check_target
from ..pictures.writing import STREAM
from ..warping.previews import shrunk, with_alpha
from ..warping.warp import WarpResult, warp
from .jobs import Job
from .pages import EncodedPage, WrittenFile, chosen_pages


class StartedWarp(NamedTuple):
    """An image, and the result that the device may still be computing."""

    picture: Picture
    result: WarpResult


def start_warp(source: Source, picture: Picture, job: Job) -> StartedWarp:
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


def finish_warp(source: Source, target: Path, started: StartedWarp, job: Job) -> WrittenFile:
    """Waits for the device, and writes the result.

    Raises:
        UserError: if the device fails, or the file cannot be written.
    """
    picture, size = finished(source, started, job)
    notes = write_picture(target, picture, job.write, job.files, source.path)
    return WrittenFile(size, started.result.compile_seconds, (*picture.notes, *notes))


def finish_page(source: Source, target: Path, started: StartedWarp, job: Job) -> EncodedPage:
    """Waits for the device, and encodes the result as a page.

    Raises:
        UserError: if the device fails, or the page cannot be encoded.
    """
    picture, size = finished(source, started, job)
    data, notes = encode_for(target, picture, job.write, job.files)
    return EncodedPage(data, WrittenFile(size, started.result.compile_seconds, (*picture.notes, *notes)))


def finished(source: Source, started: StartedWarp, job: Job) -> tuple[Picture, str]:
    """The picture that is written, and the size of the warped one."""
    picture, result = started
    with errors_about(source):
        pixels = result.pixels()
        size = format_size(pixels)
        if job.compare:
            pixels = side_by_side(picture.pixels, pixels)
        if job.preview:
            pixels = side_by_side(*(shrunk(shown, job.device) for shown in (picture.pixels, pixels)))
    return dataclasses.replace(picture, pixels=pixels), size


def find_pictures(path: Path, target: Path, job: Job) -> list[Source]:
    """The pictures of a file that are warped: one, or all pages of a TIFF.

    Raises:
        UserError: if the file cannot be read, or the output cannot store its pages.
    """
    found = chosen_pages(find_source(path, job.files.page), target, job)
    for source in found if len(found) > 1 else ():  # all, before the first one is warped
        with read_errors(source):
            check_size(source.pages[source.position].size, target, job)
    return found


def read_page(source: Source, target: Path, job: Job) -> Picture:
    """Reads an image, once it is known that its output can be written.

    Raises:
        UserError: if one of them cannot be, or one is too large.
    """
    if target != STREAM:
        check_target(target, job.files.force)
    return read_picture(source, lambda size: check_size(size, target, job))


def check_size(size: Size, target: Path, job: Job) -> None:
    """Checks that an image and its output are not too large.

    Raises:
        UserError: if one of them is.
    """
    check_pixels(size, job.files.max_pixels)
    try:
        job.check_output_size(size, find_format(job.write.named(target)))
    except UserError as error:
        raise OutputError(f"cannot write {target}: {error}") from error


@contextlib.contextmanager
def errors_about(source: Source) -> Generator[None, None, None]:
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
