"""The options of reads of images of many sizes."""

from typing import Any, NamedTuple

import numpy as np

from ...sampler import Sampler


class ReadOptions(NamedTuple):
    """The options of a read.

    Attributes:
        sampler: with the filter mode and the address mode.
        antialias: whether each pixel is the mean over its footprint.
        frame: whether the border color is blended in outside the input under every address mode; see `edges`.
        linear_light: whether linear light is blended, not codes.
        area: whether a resize takes the mean over footprints, in place of the filter mode.
        alpha: whether the last of 2 or 4 channels is an alpha, which weights the colors.
        dtype: of the result; `None` is that of the image.
    """

    sampler: Sampler
    antialias: bool = False
    frame: bool = False
    linear_light: bool = False
    area: bool = False
    alpha: bool = True
    dtype: np.dtype[Any] | None = None

    @property
    def is_point(self) -> bool:
        """Whether texels are returned as stored."""
        return self.sampler.filter_mode == "point"

    def has_alpha(self, channels: int) -> bool:
        """Whether an image of so many channels has an alpha that weights its colors."""
        return self.alpha and channels in (2, 4) and not self.is_point

    def has_numbers(self, channels: int) -> bool:
        """Whether texels of so many channels are decoded before the read, not in it."""
        return self.has_alpha(channels) or (self.linear_light and not self.is_point)
