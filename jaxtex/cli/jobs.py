"""From options to files: which images are read, warped as one `Job` says, and written where."""

import dataclasses
import sys
from collections.abc import Iterable
from pathlib import Path

import jax
import numpy as np
from tqdm import tqdm

from .affine import Size, about_centres, inverse
from .decode import Picture, read_picture
from .encode import FORMATS, format_of, write_picture
from .errors import UserError, one_line
from .info import devices
from .warp import Warped, warp


@dataclasses.dataclass(frozen=True)
class Job:
    """What is done to each image: the options of `jaxtex warp`, in their units.

    `matrix`, six numbers by rows, replaces the other four transforms. `border` is one to four numbers in
    8-bit units: grey, grey and alpha, RGB, RGBA; `None` is black, or clear if the image has alpha.
    """

    scale: float = 1.0
    shear: float = 0.0
    rotate: float = 0.0
    translate: tuple[float, float] = (0.0, 0.0)
    matrix: tuple[float, ...] | None = None
    size: Size | None = None
    filter_mode: str = "linear"
    address_mode: str = "border"
    border: tuple[float, ...] | None = None
    compare: bool = False

    def inverse(self, source: Size, target: Size) -> np.ndarray:
        """The (2, 3) matrix from output to input points, for an image of size `source`."""
        if self.matrix is not None:
            return inverse(np.array(self.matrix).reshape(2, 3))
        parts = {"scale": self.scale, "shear": self.shear, "rotate": self.rotate, "translate": self.translate}
        return inverse(about_centres(source, target, **parts))

    def border_texel(self, channels: int, dtype: np.dtype) -> np.ndarray:
        """The border colour as a stored texel of an image of so many channels.

        Raises:
            UserError: if the image has no channel for a part of the colour.
        """
        if self.border is None:
            return np.zeros(channels, dtype)
        colour, alpha = list(self.border), 255.0
        if len(colour) in (2, 4):
            alpha = colour.pop()
        if channels >= 3:
            colour = colour * 3 if len(colour) == 1 else colour
        elif len(set(colour)) > 1:
            raise UserError("the border colour is not grey, and the image is")
        else:
            colour = colour[:1]
        if channels in (2, 4):
            colour = [*colour, alpha]
        elif alpha != 255:
            raise UserError("the border colour has an alpha, and the image has none")
        return np.rint(np.array(colour) * (np.iinfo(dtype).max / 255)).astype(dtype)

    def __str__(self) -> str:
        degrees = "degree" if abs(self.rotate) == 1 else "degrees"
        parts = [
            f"scaled by {self.scale:g}" if self.scale != 1 else "",
            f"sheared by {self.shear:g}" if self.shear else "",
            f"rotated {self.rotate:g} {degrees}" if self.rotate else "",
            "moved by {:g} {:g}".format(*self.translate) if any(self.translate) else "",
            f"mapped by {' '.join(f'{v:g}' for v in self.matrix)}" if self.matrix else "",
        ]
        done = ", ".join(filter(None, parts)) or "not transformed"
        return f"{done}, {self.filter_mode} filter, {self.address_mode} address"


def warp_path(source: Path, target: Path, job: Job) -> int:
    """Warps an image file, or every image of a folder; returns the exit code.

    Raises:
        UserError: if nothing could be done, or the one image could not.
    """
    devices()
    job.inverse((1, 1), (1, 1))  # a hopeless transform is said once, not once an image
    if source.is_dir():
        return warp_folder(source, target, job)
    if target.is_dir():
        target = target / source.name
    format_of(target)  # before any work
    picture, warped = warp_file(source, target, job)
    before, after = sides(picture.pixels), sides(warped.pixels)
    print(f"{source.name} {before} -> {target} {after}: {job}, {times([warped])}")
    return 0


def warp_folder(source: Path, target: Path, job: Job) -> int:
    """Warps the images of a folder into another one, by name; a broken one stops none of the rest."""
    try:
        paths = sorted(p for p in source.iterdir() if p.suffix.lower() in FORMATS and p.is_file())
    except OSError as error:
        raise UserError(f"cannot read the folder {source}: {error.strerror or error}") from error
    if not paths:
        raise UserError(f"{source} holds no image file ({', '.join(FORMATS)})")
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {target}: {error.strerror or error}") from error
    if target.samefile(source):
        raise UserError(f"{target} is the input folder too; name another one for the output")
    done: list[Warped] = []
    for path in tqdm(paths, unit="image", leave=False, disable=None, file=sys.stderr):
        try:
            _, warped = warp_file(path, target / path.name, job)
            done.append(warped._replace(pixels=warped.pixels[:0]))  # the times are all that is kept
        except UserError as error:
            say(f"jaxtex: error: {error}")
    failed = len(paths) - len(done)
    print(f"{source} -> {target}: {len(done)} warped, {failed} failed: {job}, {times(done)}")
    return 2 if failed else 0


def warp_file(source: Path, target: Path, job: Job) -> tuple[Picture, Warped]:
    """Warps one image file into another; what could not be kept is said on standard error."""
    picture = read_picture(source)
    say_notes(source, picture.notes)
    height, width, channels = picture.pixels.shape
    size = job.size or (width, height)
    try:
        border = job.border_texel(channels, picture.pixels.dtype)
        back = job.inverse((width, height), size)
        modes = {"filter_mode": job.filter_mode, "address_mode": job.address_mode}
        warped = warp(picture.pixels, back, border, size=size, **modes)
        pixels = side_by_side(picture.pixels, warped.pixels) if job.compare else warped.pixels
    except UserError as error:
        raise UserError(f"cannot warp {source}: {error}") from error
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        raise UserError(f"cannot warp {source}: {one_line(error)}") from error
    say_notes(source, write_picture(target, dataclasses.replace(picture, pixels=pixels)))
    return picture, warped


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


def times(done: list[Warped]) -> str:
    """Where the work was done and how long it took, decoding and encoding not counted."""
    total, compiling = sum(w.seconds for w in done), sum(w.compile_seconds for w in done)
    return f"on {devices()[0].device_kind} in {total:.3f} s (compile {compiling:.3f} s)"


def say_notes(path: Path, notes: Iterable[str]) -> None:
    for note in notes:
        say(f"jaxtex: note: {path.name} {note}")


def say(line: str) -> None:
    """A line on standard error, above the progress bar if there is one."""
    tqdm.write(line, file=sys.stderr)
