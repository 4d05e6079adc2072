"""What is done to each image, as the options describe it, whatever the size and the channels of the image."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..sampler import Sampler
from ..warp.sized.mappings import Array, Device, ReadOptions, Size
from .calibration import read_calibration
from .files.inputs import format_of
from .files.metadata import check_pixels, check_sides
from .lenses import Lens
from .options import AFFINE_PARTS, MAX_PIXELS, Options
from .process import OutputError, UserError
from .transforms import AffineParts, Matrix, Perspective, Resize, Transform, read_flow

NO_LIMIT = 2**63
THREADS = min(os.cpu_count() or 1, 16)
# How the value of each whole transform's option, and the other options, become a transform.
BUILDERS: dict[str, Callable[[Any, Options], Transform]] = {
    "matrix": lambda elements, _: Matrix(tuple(elements)),
    "perspective": lambda pairs, _: Perspective(tuple(pairs)),
    "lens": lambda coefficients, options: Lens(coefficients, options.camera, model=options.model),
    "distort": lambda coefficients, options: Lens(coefficients, options.camera, distort=True, model=options.model),
    "calibration": lambda path, options: read_calibration(path, options.model),
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
        return self.options.size or self.transform.output_size(size)

    def written_size(self, size: Size) -> Size:
        """The width and the height of the file for an input of this width and height, but for a preview."""
        width, height = self.output_size(size)
        return (size[0] + width, max(size[1], height)) if self.options.compare else (width, height)

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
    return ReadOptions(sampler, antialias, is_frame and not is_point, options.linear_light, is_area)
