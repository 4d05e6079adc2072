"""One image to another, and images as a stream: while the device warps one, threads read the next and write the last.

Codecs release Python's lock, so as many threads as there are cores keep the cores busy. Only the main thread calls JAX.
Every step keeps the order of the names, so messages are in that order too. The pages of a file are images of the
stream; their results are joined as they come.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import contextlib
import dataclasses
import functools
import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from ..sampler import Sampler
from ..warp.options import ReadOptions
from ..warp.sized.image import WarpResult, warp
from ..warp.sized.mappings import Array, Device, Size
from .files.animations import ANIMATED, GIF_UNIT
from .files.codecs import find_picture, fit_picture, read_frames, read_picture, size_of, write_fitted, write_picture
from .files.inputs import STREAM, Animation, PictureFile, format_of, read_errors
from .files.metadata import Picture, add_alpha, check_pixels, check_sides
from .files.replace import check_target, opened_target
from .files.tiff import PageWriter, compressed_strips
from .lenses import Lens, read_calibration
from .options import AFFINE_PARTS, MAX_PIXELS, Options
from .process import FullDiskError, OutputError, UserError, check_stopped, describe
from .transforms import AffineParts, Matrix, Perspective, Resize, Transform, read_flow

# What is done to each image, whatever its size and its channels


NO_LIMIT = 2**63
THREADS = min(os.cpu_count() or 1, 16)
# How the value of each whole transform's option, and the other options, become a transform.
BUILDERS: dict[str, Callable[[Any, Options], Transform]] = {
    "matrix": lambda elements, _: Matrix(tuple(elements)),
    "perspective": lambda pairs, _: Perspective(tuple(pairs)),
    "lens": lambda coefficients, options: Lens(coefficients, options.camera, model=options.model),
    "distort": lambda coefficients, options: Lens(coefficients, options.camera, distort=True, model=options.model),
    "calibration": lambda path, options: dataclasses.replace(
        read_calibration(path, options.model), turned=options.turned
    ),
    "flow": lambda path, _: read_flow(path),
}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What is done to each image, whatever its size and number of channels."""

    transform: Transform
    read: ReadOptions
    device: Device
    options: Options

    @property
    def threads(self) -> int:
        """How many threads read and write."""
        return self.options.jobs or THREADS

    @property
    def verbosity(self) -> int:
        """-1 prints nothing but errors, 1 a line for each image."""
        return self.options.verbose - self.options.quiet

    def output_size(self, size: Size) -> Size:
        """The width and the height of the warped image for an input of this width and height."""
        match self.options.size:
            case None:
                return self.transform.output_size(size)
            case int(side):
                return Resize(fit=(side, side), enlarge=True).output_size(size)
            case float(share):
                return Resize(share).output_size(size)
            case both:
                return both

    def written_size(self, size: Size) -> Size:
        """The width and the height of the file for an input of this width and height, but for a preview."""
        width, height = self.output_size(size)
        return (size[0] + width, max(size[1], height)) if self.options.compare else (width, height)

    def size_of_file(self, path: Path) -> Size:
        """The width and the height of the file that is written for an input; zeros for one that cannot be read."""
        try:
            return self.written_size(size_of(find_picture(path, self.options.page)))
        except UserError:  # which is reported when the file is read
            return 0, 0

    def check_size(self, size: Size, target: Path) -> None:
        """Checks, before any work, that an image and its output are not too large to be warped and written."""
        most = self.options.max_pixels or (NO_LIMIT if self.options.tile else MAX_PIXELS)
        check_pixels(size, most)
        file_format = format_of(target, self.options)
        try:
            check_pixels(self.output_size(size), most)
            if not self.options.preview:
                check_sides(self.written_size(size), file_format)
        except UserError as error:
            raise OutputError(f"cannot write {target}: {error}") from error

    def check_width(self, width: int) -> None:
        """Checks that an image so wide can be read."""
        if self.read.sampler.address_mode == "sphere" and width % 2:
            raise UserError(f"--address sphere needs an even width, and the image is {width} pixels wide")

    def border_texel(self, channels: int, dtype: np.dtype[np.unsignedinteger]) -> Array:
        """The border color as a stored texel.

        Args:
            channels: of the image, 1 to 4.
            dtype: of the image, uint8 or uint16.
        """
        if self.options.border is None:
            return np.zeros(channels, dtype)
        color, alpha = list(self.options.border), 255.0
        if len(color) in (2, 4):
            alpha = color.pop()
        if channels >= 3:
            color = color * 3 if len(color) == 1 else color
        elif len(set(color)) > 1:
            raise UserError("the border color is not gray, and the image is gray")
        else:
            color = color[:1]
        if channels in (2, 4):
            color = [*color, alpha]
        elif alpha != 255:
            raise UserError("the border color has an alpha, and the image has none; --alpha adds it")
        return np.rint(np.array(color) * (np.iinfo(dtype).max / 255)).astype(dtype)

    def __str__(self) -> str:
        outside, antialias, linear_light = self.options.address_mode, self.read.antialias, self.read.linear_light
        suffix = f"{', antialiased' if antialias else ''}{', linear light' if linear_light else ''}"
        address = "" if outside == "frame" else f", {outside} address"
        return f"{self.transform}, {self.options.filter_mode} filter{address}{suffix}"


def recipe_of(options: Options, device: Device) -> Recipe:
    """What is done to each image."""
    recipe = Recipe(build_transform(options), read_options(options), device, options)
    recipe.transform.check()
    return recipe


def build_transform(options: Options) -> Transform:
    """The whole transform that is given, or the affine one from its parts."""
    for name, build in BUILDERS.items():
        if (value := getattr(options, name)) is not None:
            return build(value, options)
    if options.command == "resize":
        return Resize(options.scale or 1.0, options.fit, options.enlarge)
    parts = {name: value for name in AFFINE_PARTS if (value := getattr(options, name)) is not None}
    return AffineParts(**parts, expand=options.expand, crop=options.crop)


def read_options(options: Options) -> ReadOptions:
    """The sampler of the options, and what it does not say."""
    is_frame, is_resize = options.address_mode == "frame", options.command == "resize"
    is_point, is_area = options.filter_mode == "point", options.filter_mode == "area"
    address_mode = options.address_mode
    if is_resize:
        address_mode, is_frame = "clamp", False
    elif address_mode == "frame":
        # A point read has no taps to mix: it shows a texel, or the border color.
        address_mode = "border" if is_point else "clamp"
    antialias = (is_resize and not is_point) if options.antialias is None else options.antialias
    filter_mode = "linear" if options.filter_mode == "area" else options.filter_mode
    sampler = Sampler(address_mode=address_mode, filter_mode=filter_mode)
    frame, light = is_frame and not is_point, options.linear_light
    return ReadOptions(sampler, antialias=antialias, area=is_area, frame=frame, linear_light=light, alpha=True)


# Images as a stream


PREVIEW: Size = (480, 480)  # width and height of each half of a preview, at most
AHEAD = 4  # how many more images than threads each step may hold, so that threads have work where sizes differ


class StartedWarp(NamedTuple):
    """An image, and the result that the device may still be computing."""

    picture: Picture
    result: WarpResult


class WrittenFile(NamedTuple):
    """What to report of a written file.

    Attributes:
        source: the size of the input, as WxH, or how many pages.
        size: that of the picture in the file.
        compile_seconds: how long the programs took to compile.
        notes: what was lost, each the end of a sentence that begins with the name of the file.
    """

    source: str
    size: str
    compile_seconds: float
    notes: tuple[str, ...]


class FinishedPage(NamedTuple):
    """A page that is still to be written, its pixels once more in compressed strips, and what to report of it."""

    picture: Picture
    strips: list[bytes]
    report: WrittenFile


# An image, and the result of the last step or the error that stopped it.
Item = tuple[PictureFile, Any]
# A file, and what came of it.
Result = tuple[Path, WrittenFile | UserError]


# The steps of an image. Each takes a picture file, the result of the step before, the file to write, and the recipe.


def find_pictures(source: PictureFile, _: None, target: Path, recipe: Recipe) -> list[PictureFile]:
    """The pictures of a file that are warped: one, all pages of a TIFF, or all frames of an animation."""
    source = find_picture(source.path, recipe.options.page)
    total = len(source.pages)
    if total > 1 and recipe.options.preview:
        note = f"has {total} {source.part}s, of which the first is shown"
        first = find_picture(source.path, 1) if source.animation else source._replace(pages=source.pages[:1])
        return [first._replace(notes=(note, *source.notes))]
    file_format = format_of(target, recipe.options)
    if source.animation and file_format not in ANIMATED:
        raise UserError(
            f"cannot warp {source.path}: it has {total} frames, and {file_format} stores no animation; write a GIF, "
            f"WebP or PNG, or choose a frame with --page 1 to --page {total}"
        )
    if source.animation:
        check_frames(source, target, recipe)
    elif total > 1 and file_format != "TIFF":
        raise UserError(
            f"cannot warp {source.path}: it has {total} pages, and {file_format} stores one; write a TIFF, or choose a "
            f"page with --page 1 to --page {total}"
        )
    found = [source._replace(position=position) for position in range(max(total, 1))]
    for page in found if total > 1 else ():  # all, before the first one is warped
        with read_errors(page):
            recipe.check_size(page.pages[page.position].size, target)
    return found


def check_frames(source: PictureFile, target: Path, recipe: Recipe) -> None:
    """Checks that the frames of an animation, which are in memory together when it is written, are not too large."""
    (width, height), count = recipe.written_size(source.pages[0].size), len(source.pages)
    most = recipe.options.max_pixels or MAX_PIXELS
    if width * height * count > most:
        raise OutputError(
            f"cannot write {target}: {count} frames of {width}x{height} are {width * height * count / 1e6:.6g} million "
            f"pixels, more than the limit of {most / 1e6:.6g} million; --max-pixels sets another limit"
        )


def read_page(source: PictureFile, frame: Picture | None, target: Path, recipe: Recipe) -> Picture:
    """Reads an image, once it is known that its output can be written; a frame of an animation is read already."""
    if target != STREAM:
        check_target(target, recipe.options.force)
    if frame is not None:
        return frame
    return read_picture(source, lambda size: recipe.check_size(size, target))


def start_warp(source: PictureFile, picture: Picture, _: Path, recipe: Recipe) -> StartedWarp:
    """Sends an image to the device, and does not wait for the result."""
    if recipe.options.alpha:
        picture = dataclasses.replace(picture, pixels=add_alpha(picture.pixels))
    height, width, channels = picture.pixels.shape
    with errors_about(source):
        recipe.check_width(width)
        border = recipe.border_texel(channels, picture.pixels.dtype)
        size = recipe.output_size((width, height))
        mapping = recipe.transform.upright(picture.metadata.orientation).mapping((width, height), size)
        result = warp(picture.pixels, mapping, border, size=size, read=recipe.read, device=recipe.device)
        return StartedWarp(picture, result)


def finish_warp(
    source: PictureFile, started: StartedWarp, target: Path, recipe: Recipe
) -> "WrittenFile | FinishedPage":
    """Waits for the device, and writes the result; one of several pages is left to `join_pages`."""
    picture, result = started
    before = format_size(picture.pixels.shape[1::-1])
    with errors_about(source):
        pixels = result.pixels()
        if recipe.options.compare:
            pixels = side_by_side(picture.pixels, pixels)
        if recipe.options.preview:
            pixels = side_by_side(*(shrunk(shown, recipe.device) for shown in (picture.pixels, pixels)))
    check_stopped()  # nothing is replaced any more
    picture = dataclasses.replace(picture, pixels=pixels)
    size = format_size(pixels.shape[1::-1])
    if len(source.pages) > 1:
        fitted = fit_picture(picture, format_of(target, recipe.options), recipe.options)
        is_page = source.animation is None
        strips = compressed_strips(fitted.bare_pixels, fitted.metadata.compression) if is_page else []
        return FinishedPage(fitted, strips, WrittenFile(before, size, result.compile_seconds, fitted.notes))
    notes = write_picture(target, picture, recipe.options, source.path)
    return WrittenFile(before, size, result.compile_seconds, notes)


@contextlib.contextmanager
def errors_about(source: PictureFile) -> Generator[None, None, None]:
    """Turns the errors of a warp into a `UserError` that names the image."""
    try:
        yield
    except (FullDiskError, OutputError):
        raise
    except UserError as error:
        if str(error).startswith(f"cannot read {source}"):
            raise
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


def shrunk(pixels: Array, device: Device) -> Array:
    """A picture made so small that it fits half of a preview; a small one stays as it is."""
    source, resize = (pixels.shape[1], pixels.shape[0]), Resize(fit=PREVIEW)
    size = resize.output_size(source)
    if size == source:
        return pixels
    read = ReadOptions(Sampler(address_mode="clamp"), antialias=True, alpha=True)
    border = np.zeros(pixels.shape[-1], pixels.dtype)
    return warp(pixels, resize.mapping(source, size), border, size=size, read=read, device=device).pixels()


def format_size(size: Sequence[int]) -> str:
    """Width and height as WxH."""
    return f"{size[0]}x{size[1]}"


# Files of several pages


def join_pages(_: PictureFile, items: Iterator[Item], target: Path, recipe: Recipe) -> WrittenFile:
    """What came of a file: its picture is written already, and several pages are written to it as they come."""
    source, first = next(items)
    if isinstance(first, WrittenFile):
        return first
    pages = map(page_of, itertools.chain([(source, first)], items))
    first = next(pages)  # before the file is opened
    reports: list[WrittenFile] = []
    if source.animation:
        finished = [first, *pages]
        notes = join_frames(source, [page.picture for page in finished], target, recipe)
        return report_of_pages(source, [page.report for page in finished], notes)
    with opened_target(target, source.path, recipe.options.preserve_times) as (stream, notes):
        writer = PageWriter(stream, len(source.pages), most_bytes(source, recipe))
        for page in itertools.chain([first], pages):
            check_stopped()
            writer.append(page.picture, page.strips)
            reports.append(page.report)
    return report_of_pages(source, reports, notes)


def join_frames(source: PictureFile, frames: list[Picture], target: Path, recipe: Recipe) -> tuple[str, ...]:
    """Writes the frames of an animation; returns what is lost."""
    check_stopped()
    animation, file_format = cast(Animation, source.animation), format_of(target, recipe.options)
    notes: tuple[str, ...] = ()
    if animation.has_poster and file_format != "PNG":
        frames, notes = frames[1:], ("has a still picture beside its frames, which is dropped",)
    if file_format == "GIF" and any(frame.duration % GIF_UNIT for frame in frames):
        notes += ("shows frames for times that GIF rounds to hundredths of a second",)
    return (*notes, *write_fitted(target, frames, animation, recipe.options, source.path))


def report_of_pages(source: PictureFile, reports: list[WrittenFile], notes: tuple[str, ...]) -> WrittenFile:
    """What to report of a file from the reports of its pages or frames, and notes on what became of it."""
    sizes = {report.size for report in reports}
    count = f"{len(reports)} {source.part}s"
    return WrittenFile(
        count,
        count + (f" of {sizes.pop()}" if len(sizes) == 1 else ""),
        sum(report.compile_seconds for report in reports),
        (*source.notes, *merged_notes([report.notes for report in reports], source.part), *notes),
    )


def page_of(item: Item) -> FinishedPage:
    """The page of an item, or the error that it holds."""
    if isinstance(item[1], UserError):
        raise item[1]
    return item[1]


def most_bytes(source: PictureFile, recipe: Recipe) -> int:
    """How many bytes the pixels of all pages take at most in the output."""
    of_alpha = 2 if recipe.options.alpha else 1
    return sum(math.prod(recipe.written_size(page.size)) * page.texel_bytes * of_alpha for page in source.pages)


def merged_notes(notes: Sequence[tuple[str, ...]], part: str) -> list[str]:
    """Notes on pages or frames as notes on their file: each once, with their numbers unless it is true of all."""
    pages: dict[str, list[int]] = {}
    for number, of_page in enumerate(notes, 1):
        for note in dict.fromkeys(of_page):
            pages.setdefault(note, []).append(number)
    words = {note: f"{part}{'s' if len(on) > 1 else ''} {', '.join(map(str, on))}" for note, on in pages.items()}
    return [note if len(on) == len(notes) else f"({words[note]}) {note}" for note, on in pages.items()]


# The stream


def warp_stream(targets: dict[Path, Path], recipe: Recipe) -> Generator[Result, None, None]:
    """Reads, warps and writes images, and yields the results of their files in order; no page follows an error.

    What is being written is written to its end.
    """
    # Of N threads and AHEAD = A, at most N + A images are being read or wait to be warped, one is on its way to the
    # device, and N + A are being warped or written: 2 (N + A) + 1 in memory.
    pool = ThreadPoolExecutor(recipe.threads)
    ahead = functools.partial(map_ahead, pool, recipe.threads + AHEAD)
    steps = (find_pictures, read_page, start_warp, finish_warp, join_pages)
    find, read, start, finish, join = (pass_errors_on(step, targets, recipe) for step in steps)
    failed: set[Path] = set()
    try:
        files = ahead(find, ((PictureFile(path), None) for path in targets))
        pages = (page for found in files for page in pages_of(*found) if page[0].path not in failed)
        done = ahead(finish, itertools.starmap(start, ahead(read, pages)))
        for path, items in itertools.groupby(done, key=lambda item: item[0].path):
            result = join(PictureFile(path), items)[1]
            if isinstance(result, UserError):
                failed.add(path)
            yield path, result
    finally:
        pool.shutdown(cancel_futures=True)


def pages_of(source: PictureFile, found: list[PictureFile] | UserError) -> Iterator[Item]:
    """The pages of a file as items of their own, or the error of the file; frames are read here, one by one."""
    if isinstance(found, UserError) or found[0].animation is None:
        yield from [(source, found)] if isinstance(found, UserError) else [(page, None) for page in found]
        return
    frames = iter(found)
    try:
        for picture in read_frames(found):
            yield next(frames), picture
    except UserError as error:
        yield next(frames), error


def map_ahead(pool: ThreadPoolExecutor, most: int, step: Callable[..., Item], items: Iterable[Item]) -> Iterator[Item]:
    """Applies `step` to items in the threads of a pool, and yields in order; at most so many are pending."""
    pending: deque[Future[Item]] = deque()
    for item in items:
        pending.append(pool.submit(step, *item))
        if len(pending) == most:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def pass_errors_on(step: Callable[..., Any], targets: dict[Path, Path], recipe: Recipe) -> Callable[..., Item]:
    """A step of items, whose result may be a `UserError`: its own, or that of the step before."""

    def wrapped(source: PictureFile, value: Any) -> Item:
        if isinstance(value, UserError):
            return source, value
        try:
            return source, step(source, value, targets[source.path], recipe)
        except UserError as error:
            return source, error
        except MemoryError as error:
            return source, UserError(f"cannot warp {source}: {describe(error)}")

    return wrapped
