"""The distortion of a lens, taken out of an image or put into it."""

import dataclasses

from ..warp.lens import to_distorted, to_ideal
from .mappings import Mapping, Size, Transform, numbers

COEFFICIENTS = ("k1", "k2", "p1", "p2", "k3")


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
    camera: tuple[float, ...] | None = None
    apply: bool = False

    def mapping(self, source: Size, target: Size) -> Mapping:
        focal, (width, height) = max(source), source
        fx, fy, cx, cy = self.camera or (focal, focal, width / 2, height / 2)
        camera = (fx, cx, fy, cy)
        padded = (*self.coefficients, *[0.0] * (len(COEFFICIENTS) - len(self.coefficients)))
        return Mapping(to_ideal if self.apply else to_distorted, numbers((*camera, *camera, *padded)))

    def __str__(self) -> str:
        values = ",".join(f"{v:g}" for v in self.coefficients)
        return f"distorted by the lens {values}" if self.apply else f"freed from the lens {values}"
