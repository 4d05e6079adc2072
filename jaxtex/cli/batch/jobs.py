"""What is done to each image, whatever its size and number of channels."""

# pyright: strict

import dataclasses

import numpy as np

from ..environment.devices import Device
from ..errors import UserError
from ..grammar.file_options import DEFAULTS, FileOptions
from ..pictures.limits import Size, check_pixels, check_sides
from ..pictures.picture import Array
from ..pictures.writing import DEFAULT_WRITE, WriteOptions
from ..transforms.mappings import Transform
from ..warping.programs import ReadOptions


@dataclasses.dataclass(frozen=True)
class Job:
    """The options of `jaxtex warp`.

    Attributes:
        transform: from input to output points.
        read: how the input is read.
        device: where the work is done.
        size: width and height of the output; `None` for those of the input.
        border: the border color as one to four values from 0 to 255: gray, gray and alpha, RGB, or RGBA. `None` is
            black, or transparent if the image has alpha.
        compare: whether to write the input beside the result.
        files: how files are read and written.
        alpha: whether an image without alpha gets an opaque one before it is warped.
        preview: whether to write a small picture of the input and the result.
        write: how the result is encoded.
        threads: how many read and write files; `None` is one for each core.
        verbosity: -1 prints nothing but errors, 1 a line for each image.
    """

    transform: Transform
    read: ReadOptions
    device: Device
    size: Size | None = None
    border: tuple[float, ...] | None = None
    compare: bool = False
    files: FileOptions = DEFAULTS
    alpha: bool = False
    preview: bool = False
    write: WriteOptions = DEFAULT_WRITE
    threads: int | None = None
    verbosity: int = 0

    def output_size(self, size: Size) -> Size:
        """The width and the height of the warped image.

        Args:
            size: of the input.
        """
        return self.size or self.transform.output_size(size)

    def check_output_size(self, size: Size, file_format: str) -> None:
        """Checks, before any work, that an output is not too large to be warped and written.

        Args:
            size: width and height of the input.
            file_format: of the output.

        Raises:
            UserError: if it is.
        """
        output = self.output_size(size)
        check_pixels(output, self.files.max_pixels)
        if not self.preview:
            check_sides((size[0] + output[0], max(size[1], output[1])) if self.compare else output, file_format)

    def check_width(self, width: int) -> None:
        """Checks that an image so wide can be read.

        Raises:
            UserError: if it cannot.
        """
        if self.read.sampler.address_mode == "sphere" and width % 2:
            raise UserError(f"--address sphere needs an even width, and the image is {width} pixels wide")

    def border_texel(self, channels: int, dtype: np.dtype[np.unsignedinteger]) -> Array:
        """The border color as a stored texel.

        Args:
            channels: of the image, 1 to 4.
            dtype: of the image, uint8 or uint16.

        Raises:
            UserError: if the border has a color or an alpha, and the image has no channel for it.
        """
        if self.border is None:
            return np.zeros(channels, dtype)
        color, alpha = list(self.border), 255.0
        if len(color) in (2, 4):
            alpha = color.pop()
        if channels >= 3:
            color = color * 3 if len(color) == 1 else color
        elif len(set(color)) > 1:
            raise UserError("the border color is not gray, and the image is")
        else:
            color = color[:1]
        if channels in (2, 4):
            color = [*color, alpha]
        elif alpha != 255:
            raise UserError("the border color has an alpha, and the image has none")
        return np.rint(np.array(color) * (np.iinfo(dtype).max / 255)).astype(dtype)

    def __str__(self) -> str:
        sampler, antialias, frame, linear_light, area = self.read
        suffix = f"{', antialiased' if antialias else ''}{', linear light' if linear_light else ''}"
        address = "frame" if frame else sampler.address_mode
        return f"{self.transform}, {'area' if area else sampler.filter_mode} filter, {address} address{suffix}"
