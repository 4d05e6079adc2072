"""The distortion of a lens, removed from an image or applied to it."""

# pyright: strict, reportUnknownMemberType=false

import dataclasses
import functools

import jax
import numpy as np

from ..warp.brown_conrady import to_distorted
from ..warp.grids import pixel_centers, stored_points
from ..warp.lens import undistort_points
from .grammar import COEFFICIENTS
from .mappings import Mapping, Size, Transform, to_parameters

Camera = tuple[float, float, float, float]


@dataclasses.dataclass(frozen=True)
class Lens(Transform):
    """Brown-Conrady distortion.

    Attributes:
        coefficients: at most five, in the order of `COEFFICIENTS`; missing ones are 0.
        camera: focal lengths and principal point, (fx, fy, cx, cy), in pixels about the top left corner. By default
            both focal lengths are the longer side of the image, and the principal point is its center.
        distort: whether to apply the distortion instead of removing it.
    """

    coefficients: tuple[float, ...]
    camera: Camera | None = None
    distort: bool = False

    def mapping(self, source: Size, target: Size) -> Mapping:
        focal, (width, height) = max(source), source
        fx, fy, cx, cy = self.camera or (focal, focal, width / 2, height / 2)
        padded = (*self.coefficients, *[0.0] * (len(COEFFICIENTS) - len(self.coefficients)))
        if self.distort:
            return Mapping(stored_points, undistorted_points(target, (fx, fy, cx, cy), padded))
        return Mapping(to_distorted, to_parameters((fx, cx, fy, cy, fx, cx, fy, cy, *padded)))

    def check(self) -> None:
        """Checks nothing: a lens fits every image."""

    def __str__(self) -> str:
        values = ",".join(f"{c:g}" for c in self.coefficients)
        return f"lens distortion {values} {'applied' if self.distort else 'removed'}"


@functools.lru_cache(maxsize=4)
def undistorted_points(size: Size, camera: Camera, coefficients: tuple[float, ...]) -> tuple[jax.Array, ...]:
    """The undistorted point of each pixel of a distorted image: x and y, each (height, width).

    The solution takes many steps a pixel. Computed here, it is shared by all images of a size. Within the read, XLA
    would repeat it for each channel.
    """
    fx, fy, cx, cy = camera
    matrix = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]], np.float32)
    x, y = pixel_centers(size[::-1])
    return undistort_points((x, y), matrix, np.array(coefficients, np.float32))
