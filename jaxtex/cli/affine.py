"""The transform that the options describe, as a matrix from input to output points.

Points are in pixels: the origin is the top left corner, y points down, pixel centres are at +0.5. A matrix is
(2, 3): its left 2 by 2 is linear, its last column moves.
"""

import math

import numpy as np

from .errors import UserError

Size = tuple[int, int]


def rotation(degrees: float) -> np.ndarray:
    """The rotation, counter-clockwise as seen (y points down), exact at multiples of 90 degrees."""
    quarters, rest = divmod(degrees, 90.0)
    cosine, sine = math.cos(math.radians(rest)), math.sin(math.radians(rest))
    for _ in range(int(quarters) % 4):
        cosine, sine = -sine, cosine
    return np.array([[cosine, sine], [-sine, cosine]])


def about_centres(
    source: Size, target: Size, *, scale: float, shear: float, rotate: float, translate: tuple[float, float]
) -> np.ndarray:
    """Scales, shears (x += shear * y), rotates (degrees), then translates; centre goes to centre.

    Args:
        source, target: width and height of the input and of the output.

    Returns:
        The (2, 3) matrix from input to output points.
    """
    linear = rotation(rotate) @ np.array([[1.0, shear], [0.0, 1.0]]) * scale
    moved = np.array(target) / 2.0 + np.array(translate) - linear @ (np.array(source) / 2.0)
    return np.column_stack([linear, moved])


def inverse(matrix: np.ndarray) -> np.ndarray:
    """The (2, 3) float32 matrix from output to input points.

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
    return result
