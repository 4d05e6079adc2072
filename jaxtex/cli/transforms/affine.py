"""Affine transforms: scale, shear, rotation and translation, or a matrix.

A matrix is (2, 3) and maps points of the input to points of the output: its left 2 by 2 is the linear part, its last
column the translation.
"""

# pyright: strict

import dataclasses
import math

import numpy as np

from ...warp.coordinate_functions import affine
from ..errors import UserError
from ..pictures.limits import Size
from ..pictures.picture import Array
from .mappings import MAX_ANISOTROPY, Mapping, Transform, to_parameters
from .resizing import covered, covering, inscribed

# Double precision carries 16 digits, so the determinant of a matrix with a larger condition number is rounding error.
MAX_CONDITION = 1e12


@dataclasses.dataclass(frozen=True)
class AffineParts(Transform):
    """Scales, shears and rotates about the center of the input, then moves it to the center of the output.

    Attributes:
        scale: factor of width and height.
        shear: pixels to the right per pixel down.
        rotate: degrees, counter-clockwise as seen.
        translate: pixels to the right and down, on top of the move from center to center.
        expand: whether the output is so large that it shows the whole result.
        crop: whether the output is the largest one without a part outside the input, for a rotation alone.
    """

    scale: float = 1.0
    shear: float = 0.0
    rotate: float = 0.0
    translate: tuple[float, float] = (0.0, 0.0)
    expand: bool = False
    crop: bool = False

    def linear(self) -> Array:
        """The linear part, (2, 2)."""
        return rotation(self.rotate) @ np.array([[1.0, self.shear], [0.0, 1.0]]) * self.scale

    def output_size(self, source: Size) -> Size:
        if self.crop:
            return covered(*inscribed(*source, self.rotate))
        if not self.expand:
            return source
        # A result that is moved is shown with the room that it leaves, on both sides, since centers stay centers.
        width, height = np.abs(self.linear()) @ np.array(source) + 2 * np.abs(self.translate)
        return covering(float(width), float(height))

    def mapping(self, source: Size, target: Size) -> Mapping:
        linear = self.linear()
        translation = np.array(target) / 2.0 + np.array(self.translate) - linear @ (np.array(source) / 2.0)
        return inverse_mapping(np.column_stack([linear, translation]))

    def __str__(self) -> str:
        degrees = "degree" if abs(self.rotate) == 1 else "degrees"
        parts = [
            f"scaled by {self.scale:g}" if self.scale != 1 else "",
            f"sheared by {self.shear:g}" if self.shear else "",
            f"rotated by {self.rotate:g} {degrees}" if self.rotate else "",
            "translated by {:g} {:g}".format(*self.translate) if any(self.translate) else "",
            "expanded" if self.expand else "",
            "cropped" if self.crop else "",
        ]
        return ", ".join(filter(None, parts)) or "not transformed"


@dataclasses.dataclass(frozen=True)
class AffineMatrix(Transform):
    """A (2, 3) matrix, as its six elements by rows, about the top left corner."""

    elements: tuple[float, ...]

    def mapping(self, source: Size, target: Size) -> Mapping:
        return inverse_mapping(np.array(self.elements).reshape(2, 3))

    def __str__(self) -> str:
        return f"mapped by the matrix {' '.join(f'{e:g}' for e in self.elements)}"


def rotation(degrees: float) -> Array:
    """The (2, 2) rotation matrix, counter-clockwise as seen since y points down, exact at multiples of 90 degrees."""
    quarters, remainder = divmod(degrees, 90.0)
    cosine, sine = math.cos(math.radians(remainder)), math.sin(math.radians(remainder))
    for _ in range(int(quarters) % 4):
        cosine, sine = -sine, cosine
    return np.array([[cosine, sine], [-sine, cosine]])


def inverse_mapping(matrix: Array) -> Mapping:
    """The mapping from output to input points for a (2, 3) matrix from input to output points.

    Raises:
        UserError: if the matrix is singular, or its inverse does not fit float32.
    """
    linear, translation = matrix[:, :2], matrix[:, 2]
    with np.errstate(all="ignore"):
        if not np.linalg.cond(linear) < MAX_CONDITION:
            raise UserError("the transform is singular: it maps the image onto a line or a point")
        inverse = np.linalg.inv(linear)
        elements = np.column_stack([inverse, -inverse @ translation]).astype(np.float32)
    if not np.isfinite(elements).all():
        raise UserError("the transform is too extreme: its inverse does not fit float32")
    return Mapping(affine, to_parameters(elements), anisotropy(inverse))


def anisotropy(linear: Array) -> int:
    """How many reads cover the longer side of a footprint, at most `MAX_ANISOTROPY`.

    Args:
        linear: the (2, 2) matrix whose columns are the sides of the footprint.

    Returns:
        A power of two, so that few programs are compiled.
    """
    sides = np.linalg.norm(linear, axis=0)
    ratio = min(float(sides.max() / sides.min()), MAX_ANISOTROPY)
    return 2 ** math.ceil(math.log2(ratio) - 1e-6)  # the sides of a rotated square differ by rounding
