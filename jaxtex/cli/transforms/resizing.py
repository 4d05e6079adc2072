"""Sizes: of a resized image, and of the output of a rotation."""

# pyright: strict

import dataclasses
import math

from ...warp.coordinate_functions import scaled
from ..pictures.limits import Size
from .mappings import Mapping, Transform, to_parameters

# Sizes are rounded up unless they are this close to a whole number, as after a rotation by 90 degrees.
NEARLY_WHOLE = 1e-6


@dataclasses.dataclass(frozen=True)
class Resize(Transform):
    """The corners of the input go to those of the output.

    Attributes:
        scale: factor of width and height.
        fit: the width and height that the output may have at most; in place of `scale`.
    """

    scale: float = 1.0
    fit: Size | None = None

    def output_size(self, source: Size) -> Size:
        scale = self.scale if self.fit is None else min(most / n for most, n in zip(self.fit, source))
        width, height = (max(1, round(scale * n)) for n in source)
        return width, height

    def mapping(self, source: Size, target: Size) -> Mapping:
        # `jaxtex.warp.resize` finds how many reads it needs.
        return Mapping(scaled, to_parameters([n / m for n, m in zip(source, target)]), max_anisotropy=1)

    def __str__(self) -> str:
        if self.fit is not None:
            return "resized to fit {}x{}".format(*self.fit)
        return "resized" if self.scale == 1 else f"resized by {self.scale:g}"


def covering(width: float, height: float) -> Size:
    """The smallest size of whole pixels that holds a rectangle."""
    return max(1, math.ceil(width - NEARLY_WHOLE)), max(1, math.ceil(height - NEARLY_WHOLE))


def covered(width: float, height: float) -> Size:
    """The largest size of whole pixels that a rectangle holds."""
    return max(1, math.floor(width + NEARLY_WHOLE)), max(1, math.floor(height + NEARLY_WHOLE))


def inscribed(width: float, height: float, degrees: float) -> tuple[float, float]:
    """The largest upright rectangle within a rectangle that is rotated about its center.

    It touches either all four sides, or, where the rectangle is long and narrow, its two long ones in their middle.
    """
    sine, cosine = abs(math.sin(math.radians(degrees))), abs(math.cos(math.radians(degrees)))
    long, short = max(width, height), min(width, height)
    if short <= 2 * sine * cosine * long or math.isclose(sine, cosine):
        half = short / 2
        first, second = half / max(sine, NEARLY_WHOLE), half / max(cosine, NEARLY_WHOLE)
        return (first, second) if width >= height else (second, first)
    determinant = cosine**2 - sine**2
    return (width * cosine - height * sine) / determinant, (height * cosine - width * sine) / determinant
