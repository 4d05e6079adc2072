"""What is done to each image, whatever its size and number of channels."""

import dataclasses
from typing import Any

import numpy as np

from .errors import UserError
from .mappings import Size, Transform
from .warp import Reading


@dataclasses.dataclass(frozen=True)
class Job:
    """The options of `jaxtex warp`, in their units.

    `size` is width and height of the output, or `None` for those of the input. `border` is one to four numbers in
    8-bit units: grey, grey and alpha, RGB, RGBA; `None` is black, or clear if the image has alpha.
    """

    transform: Transform
    reading: Reading
    device: Any
    size: Size | None = None
    border: tuple[float, ...] | None = None
    compare: bool = False

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
        sampler, antialias = self.reading
        smooth = ", antialiased" if antialias else ""
        return f"{self.transform}, {sampler.filter_mode} filter, {sampler.address_mode} address{smooth}"
