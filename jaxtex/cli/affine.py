"""Transforms that keep lines parallel: scale, shear, rotate and translate, or a matrix.

A matrix is (2, 3), from input to output points: its left 2 by 2 is linear, its last column moves.
"""

import dataclasses
import math

import numpy as np

from ..warp.grids import affine
from .errors import UserError
from .mappings import MOST_READS, Mapping, Size, Transform, numbers


@dataclasses.dataclass(frozen=True)
class Parts(Transform):
    """Scales, shears (x += shear * y), rotates (degrees), then translates; centre goes to centre."""

    scale: float = 1.0
    shear: float = 0.0
    rotate: float = 0.0
    translate: tuple[float, float] = (0.0, 0.0)

    def mapping(self, source: Size, target: Size) -> Mapping:
        linear = rotation(self.rotate) @ np.array([[1.0, self.shear], [0.0, 1.0]]) * self.scale
        moved = np.array(target) / 2.0 + np.array(self.translate) - linear @ (np.array(source) / 2.0)
        return from_output(np.column_stack([linear, moved]))

    def __str__(self) -> str:
        degrees = "degree" if abs(self.rotate) == 1 else "degrees"
        parts = [
            f"scaled by {self.scale:g}" if self.scale != 1 else "",
            f"sheared by {self.shear:g}" if self.shear else "",
            f"rotated {self.rotate:g} {degrees}" if self.rotate else "",
            "moved by {:g} {:g}".format(*self.translate) if any(self.translate) else "",
        ]
        return ", ".join(filter(None, parts)) or "not transformed"


@dataclasses.dataclass(frozen=True)
class Matrix(Transform):
    """A (2, 3) matrix, its six numbers by rows, about the top left corner."""

    values: tuple[float, ...]

    def mapping(self, source: Size, target: Size) -> Mapping:
        return from_output(np.array(self.values).reshape(2, 3))

    def __str__(self) -> str:
        return f"mapped by {' '.join(f'{v:g}' for v in self.values)}"


def rotation(degrees: float) -> np.ndarray:
    """The rotation, counter-clockwise as seen (y points down), exact at multiples of 90 degrees."""
    quarters, rest = divmod(degrees, 90.0)
    cosine, sine = math.cos(math.radians(rest)), math.sin(math.radians(rest))
    for _ in range(int(quarters) % 4):
        cosine, sine = -sine, cosine
    return np.array([[cosine, sine], [-sine, cosine]])


def from_output(matrix: np.ndarray) -> Mapping:
    """The map from output to input points, whose pixels all have one footprint.

    Raises:
        UserError: if the transform flattens the plane, so that an output point has no one origin.
    """
    linear, moved = matrix[:, :2], matrix[:, 2]
    with np.errstate(all="ignore"):
        # Beyond 1e12 the determinant is rounding error: double precision carries 16 digits.
        if not np.linalg.cond(linear) < 1e12:
            raise UserError("the transform is singular: it maps the image onto a line or a point")
        back = np.linalg.inv(linear)
        result = np.column_stack([back, -back @ moved]).astype(np.float32)
    if not np.isfinite(result).all():
        raise UserError("the transform is too extreme: its inverse does not fit float32")
    return Mapping(affine, numbers(result), reads_along(back))


def reads_along(linear: np.ndarray) -> int:
    """How many reads the longer side of a footprint takes: a power of two, so that there are few programs."""
    sides = np.linalg.norm(linear, axis=0)
    ratio = min(sides.max() / sides.min(), MOST_READS)
    return 2 ** math.ceil(math.log2(ratio) - 1e-6)  # the sides of a rotation differ by rounding
