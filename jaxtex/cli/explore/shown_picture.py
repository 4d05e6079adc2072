"""The picture that the page warps: 8 bits, gray or RGB, of a limited size."""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from ... import warp
from ..errors import UserError, describe
from ..grammar.option_groups import Options
from ..pictures.decode import find_source, read_picture
from ..pictures.kinds import choose_frame
from ..pictures.limits import Size, check_pixels
from ..pictures.picture import Array, from_16_bits
from ..pictures.sources import Source, read_errors
from ..pictures.writing import STREAM
from ..transforms.resizing import Resize


class ShownPicture(NamedTuple):
    """A picture, made ready for the page.

    Attributes:
        path: of its file.
        page: which one of the file, from 1; `None` if it has one.
        size: width and height of the picture in the file.
        has_16_bits: whether the file has.
        pixels: (height, width, 1 or 3), uint8, at most as wide and as high as the options say.
    """

    path: Path
    page: int | None
    size: Size
    has_16_bits: bool
    pixels: Array

    @property
    def shown_size(self) -> Size:
        """Width and height of `pixels`."""
        return self.pixels.shape[1], self.pixels.shape[0]

    def __str__(self) -> str:
        page = f", page {self.page}" if self.page else ""
        width, height = self.size
        reduced = "" if self.shown_size == self.size else ", reduced to {}x{} for the preview".format(*self.shown_size)
        return f"{self.path.name}{page}: {width}x{height} pixels{reduced}"


def read_shown(options: Options, max_pixels: int) -> ShownPicture:
    """Reads the picture that the options name.

    Raises:
        UserError: if it cannot be read, or is too large.
    """
    path = options.source
    if path == STREAM:
        raise UserError("explore takes the name of a file, and not standard input")
    source = find_source(path, options.page)
    with read_errors(Source(path)):
        choose_frame(len(source.pages), None)  # find_source has left the page that was chosen
    picture = read_picture(source, lambda size: check_pixels(size, max_pixels))
    pixels = colors(picture.pixels)
    size = pixels.shape[1], pixels.shape[0]
    try:
        shown = reduced(pixels, options.side)
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        raise UserError(f"cannot show {path}: {describe(error)}") from error
    return ShownPicture(path, options.page, size, picture.pixels.dtype == np.uint16, shown)


def colors(pixels: Array) -> Array:
    """The colors of a picture in 8 bits, without its alpha."""
    if pixels.shape[-1] in (2, 4):
        pixels = pixels[..., :-1]
    return from_16_bits(pixels) if pixels.dtype == np.uint16 else pixels


def reduced(pixels: Array, side: int) -> Array:
    """A picture made so small that no side is longer; a small one stays as it is."""
    height, width = pixels.shape[:2]
    if max(height, width) <= side:
        return pixels
    width, height = Resize(fit=(side, side)).output_size((width, height))
    return np.asarray(warp.resize(pixels, (height, width)))
