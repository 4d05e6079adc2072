"""The distortion of a lens, taken out of an image or put into it."""

import dataclasses
import functools

import jax
import numpy as np

from ..warp.brown_conrady import to_distorted
from ..warp.grids import pixel_centers, stored_points
from ..warp.lens import undistort_points
from .mappings import Mapping, Size, Transform, numbers

COEFFICIENTS = ("k1", "k2", "p1", "p2", "k3")
Camera = tuple[float, float, float, float]


@dataclasses.dataclass(frozen=True)
class Lens(Transform):
    """Brown-Conrady distortion.

    Attributes:
        coefficients: up to five, in the order of `COEFFICIENTS`; those that lack are 0.
        camera: focal lengths and centre, fx, fy, cx, cy in pixels about the top left corner. The default has the
            larger side of the image as focal length, and its centre.
        apply: whether to distort an ideal image, and not to make a distorted one ideal.
    """

    coefficients: tuple[float, ...]
    camera: Camera | None = None
    apply: bool = False

    def mapping(self, source: Size, target: Size) -> Mapping:
        focal, (width, height) = max(source), source
        fx, fy, cx, cy = self.camera or (focal, focal, width / 2, height / 2)
        padded = (*self.coefficients, *[0.0] * (len(COEFFICIENTS) - len(self.coefficients)))
        if self.apply:
            return Mapping(stored_points, ideal_points(target, (fx, fy, cx, cy), padded))
        return Mapping(to_distorted, numbers((fx, cx, fy, cy, fx, cx, fy, cy, *padded)))

    def check(self) -> None:
        """A lens fits every image."""

    def __str__(self) -> str:
        values = ",".join(f"{v:g}" for v in self.coefficients)
        return f"distorted by the lens {values}" if self.apply else f"freed from the lens {values}"


@functools.lru_cache(maxsize=4)
def ideal_points(size: Size, camera: Camera, coefficients: tuple[float, ...]) -> tuple[jax.Array, ...]:
    """What a lens shows at each pixel: x and y, each (height, width).

    It takes many steps for each pixel, so it is done once for all images of a size, and before they are read: within
    the read it would be done again for each channel.
    """
    fx, fy, cx, cy = camera
    matrix = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]], np.float32)
    x, y = pixel_centers(size[::-1])
    return undistort_points((x, y), matrix, np.array(coefficients, np.float32))
