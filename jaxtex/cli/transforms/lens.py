"""The distortion of a lens, removed from an image or applied to it."""

# pyright: strict, reportUnknownMemberType=false

import dataclasses
import functools

import jax
import numpy as np

from ...warp.coordinate_functions import stored_points
from ...warp.lens import undistort_points
from ...warp.lens_models import LENS_MODELS, LensModel, LensModelLike
from ..errors import UserError
from ..pictures.limits import Size
from ..pictures.picture import Array
from .mappings import Field, Mapping, Transform, to_parameters

Camera = tuple[float, float, float, float]
# Few lengths, so that few programs are compiled.
PADDED_COUNTS: dict[str, tuple[int, ...]] = {"brown_conrady": (5, 8), "fisheye": (4,)}


@dataclasses.dataclass(frozen=True)
class Lens(Transform):
    """The distortion of a lens.

    Attributes:
        coefficients: of the model, in OpenCV's order; missing ones are 0.
        camera: focal lengths and principal point, (fx, fy, cx, cy), in pixels about the top left corner. By default
            both focal lengths are the longer side of the image, and the principal point is its center.
        distort: whether to apply the distortion instead of removing it.
        model: of the lens.
        size: width and height of the images that `camera` is of; it is scaled to images of other sizes.
        name: what the report calls the lens; by default its coefficients.
    """

    coefficients: tuple[float, ...]
    camera: Camera | None = None
    distort: bool = False
    model: LensModelLike = "brown_conrady"
    size: Size | None = None
    name: str | None = None

    def camera_of(self, source: Size) -> Camera:
        """The camera in pixels of an image of this width and height.

        Raises:
            UserError: if the image has other proportions than those that the camera is of.
        """
        focal, (width, height) = max(source), source
        fx, fy, cx, cy = self.camera or (focal, focal, width / 2, height / 2)
        if self.size is None or self.size == source:
            return fx, fy, cx, cy
        sx, sy = (n / m for n, m in zip(source, self.size))
        if abs(sx - sy) * max(self.size) > 1:  # a pixel is as much as rounding a size may change
            raise UserError(
                f"the calibration is of images of {self.size[0]}x{self.size[1]}, and this one has {width}x{height}, "
                "which are other proportions"
            )
        return fx * sx, fy * sy, cx * sx, cy * sy

    def mapping(self, source: Size, target: Size) -> Mapping:
        fx, fy, cx, cy = camera = self.camera_of(source)
        model = LENS_MODELS[LensModel(self.model)]
        length = next(n for n in PADDED_COUNTS[self.model] if n >= len(self.coefficients))
        padded = (*self.coefficients, *[0.0] * (length - len(self.coefficients)))
        if self.distort:
            return Mapping(stored_points, undistorted_points(camera, padded, self.model))
        return Mapping(model.to_distorted, to_parameters((fx, cx, fy, cy, fx, cx, fy, cy, *padded)))

    def check(self) -> None:
        """Checks nothing: a lens fits every image."""

    def __str__(self) -> str:
        values = self.name or ",".join(f"{c:g}" for c in self.coefficients)
        return f"lens distortion {values} {'applied' if self.distort else 'removed'}"


@functools.lru_cache(maxsize=4)
def undistorted_points(camera: Camera, coefficients: tuple[float, ...], model: LensModelLike) -> Field:
    """The undistorted points of the pixels of a distorted image, shared by all images of a size."""
    return UndistortedPoints(camera, coefficients, model)


class UndistortedPoints(Field):
    """The undistorted point of each pixel of a distorted image: x and y.

    The solution takes many steps a pixel. Within the read, XLA would repeat it for each channel.
    """

    def __init__(self, camera: Camera, coefficients: tuple[float, ...], model: LensModelLike):
        super().__init__()
        fx, fy, cx, cy = camera
        self.matrix = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]], np.float32)
        self.coefficients = np.array(coefficients, np.float32)
        self.model: LensModelLike = model

    def of(self, rows: Array, columns: Array) -> tuple[jax.Array, ...]:
        x, y = columns[None].astype(np.float32) + 0.5, rows[:, None].astype(np.float32) + 0.5
        x, y = undistort_points((x, y), self.matrix, self.coefficients, model=self.model)
        return x, y
