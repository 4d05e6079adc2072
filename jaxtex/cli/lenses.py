"""The distortion of a lens, removed from images or applied to them, and the rectification that may go with it."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..warp.coordinate_functions import Arrays, GridFunction, affine, projective, row_times_point, stored_points
from ..warp.lens import undistort_points
from ..warp.lens_models import LENS_MODELS, LensModel, LensModelLike
from ..warp.sized import mappings
from ..warp.sized.mappings import Array, PerPixelParameters, Size
from .files.exif import upright_matrix, upright_size
from .process import UserError
from .transforms import Transform, to_parameters

Camera = tuple[float, float, float, float]
# Few lengths, so that few programs are compiled.
PADDED_COUNTS: dict[str, tuple[int, ...]] = {"brown_conrady": (5, 8), "fisheye": (4,)}
# Where a matrix has focal lengths and principal point, in the order of lens models.
CAMERA_PLACES = ((0, 0), (0, 2), (1, 1), (1, 2))


class ThroughLens(NamedTuple):
    """A coordinate function: from pixels of the result by a homography to rays, through a lens, to pixels of a camera.

    Attributes:
        to_distorted: of a lens model.
    """

    to_distorted: GridFunction

    def __call__(self, x: jax.Array, y: jax.Array, *values: jax.Array) -> Arrays:
        """The pixel of the input.

        Args:
            values: the homography, by rows, the first two rows of the camera's matrix, and the coefficients.
        """
        to_rays, camera, coefficients = values[:9], values[9:15], values[15:]
        one, zero = jnp.ones_like(x), jnp.zeros_like(x)
        unit = (one, zero, one, zero)  # the focal lengths and the principal point of a camera whose pixels are rays
        point = affine(*self.to_distorted(*projective(x, y, *to_rays), *unit, *unit, *coefficients), *camera)
        in_front = row_times_point((x, y), to_rays[6:]) > 0
        # Near the horizon the polynomials of a lens may overflow.
        return tuple(jnp.where(in_front & ~jnp.isnan(c), c, jnp.inf) for c in point)


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
        skew: pixels to the right for each unit of a ray down.
        ideal: the matrix that maps rays to pixels of the result, by rows; by default that of the camera.
        of_sensor: whether all of this is about the picture as the camera stores it, before it is turned upright.
        orientation: how the stored pictures are turned (TIFF 6.0, tag 274).
    """

    coefficients: tuple[float, ...]
    camera: Camera | None = None
    distort: bool = False
    model: LensModelLike = "brown_conrady"
    size: Size | None = None
    name: str | None = None
    skew: float = 0.0
    ideal: tuple[float, ...] | None = None
    of_sensor: bool = False
    orientation: int = 1

    def upright(self, orientation: int) -> "Lens":
        return dataclasses.replace(self, orientation=orientation) if self.of_sensor else self

    def camera_of(self, source: Size) -> Camera:
        """The camera in pixels of an image of this width and height."""
        focal, (width, height) = max(source), source
        fx, fy, cx, cy = self.camera or (focal, focal, width / 2, height / 2)
        sx, sy = self.scales(source)
        return fx * sx, fy * sy, cx * sx, cy * sy

    def scales(self, source: Size) -> tuple[float, float]:
        """How much wider and higher an image is than those of the calibration."""
        if not self.fits(source):
            (width, height), (most, least) = source, self.size or source
            raise UserError(
                f"the calibration is for images of {most}x{least}, and this one of {width}x{height} has other "
                "proportions; crop both alike, or calibrate with such images"
            )
        sx, sy = (n / m for n, m in zip(source, self.size or source))
        return sx, sy

    def fits(self, source: Size) -> bool:
        """Whether an image has the proportions of those of the calibration."""
        if self.size is None:
            return True
        sx, sy = (n / m for n, m in zip(source, self.size))
        return abs(sx - sy) * max(self.size) <= 1  # a pixel is as much as rounding a size may change

    def matrices_of(self, source: Size) -> tuple[Array, Array]:
        """The matrices, (3, 3), that map rays to pixels of an upright image of a size, and to those of the result."""
        stored, turn = upright_size(source, self.orientation), np.eye(3)
        # A program that turns pictures as it reads them, as OpenCV does, calibrates upright ones.
        if self.fits(stored) or not self.fits(source):
            turn = upright_matrix(stored, self.orientation)
        else:
            stored = source
        fx, fy, cx, cy = self.camera_of(stored)
        sx, sy = self.scales(stored)
        camera = np.array([[fx, self.skew * sx, cx], [0, fy, cy], [0, 0, 1]])
        ideal = camera if self.ideal is None else np.diag([sx, sy, 1]) @ np.reshape(self.ideal, (3, 3))
        return turn @ camera, turn @ ideal

    def mapping(self, source: Size, target: Size) -> mappings.Mapping:
        model = LENS_MODELS[LensModel(self.model)]
        length = next(n for n in PADDED_COUNTS[self.model] if n >= len(self.coefficients))
        padded = (*self.coefficients, *[0.0] * (length - len(self.coefficients)))
        if self.distort:
            return mappings.Mapping(stored_points, undistorted_points(self.camera_of(source), padded, self.model))
        camera, ideal = self.matrices_of(source)
        if is_plain(camera) and is_plain(ideal):
            values = (matrix[at] for matrix in (camera, ideal) for at in CAMERA_PLACES)
            return mappings.Mapping(model.to_distorted, to_parameters((*values, *padded)))
        values = (*np.linalg.inv(ideal).flat, *camera[:2].flat, *padded)
        return mappings.Mapping(ThroughLens(model.to_distorted), to_parameters(values))

    def check(self) -> None:
        """Checks nothing: a lens fits every image."""

    def __str__(self) -> str:
        values = self.name or ",".join(f"{c:g}" for c in self.coefficients)
        rectified = ", rectified" if self.ideal else ""
        return f"lens distortion {values} {'applied' if self.distort else 'removed'}{rectified}"


def is_plain(matrix: Array) -> bool:
    """Whether the matrix of a camera has only focal lengths and a principal point."""
    others = matrix - np.eye(3)
    for at in CAMERA_PLACES:
        others[at] = 0
    return not others.any()


@functools.lru_cache(maxsize=4)
def undistorted_points(camera: Camera, coefficients: tuple[float, ...], model: LensModelLike) -> PerPixelParameters:
    """The undistorted point of each pixel of a distorted image, x and y, shared by all images of a size.

    The solution takes many steps a pixel. Within the read, XLA would repeat it for each channel.
    """
    fx, fy, cx, cy = camera
    matrix, lens = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]], np.float32), np.array(coefficients, np.float32)

    def of(rows: Array, columns: Array) -> tuple[jax.Array, ...]:
        points = columns[None].astype(np.float32) + 0.5, rows[:, None].astype(np.float32) + 0.5
        return tuple(undistort_points(points, matrix, lens, model=model))

    return PerPixelParameters(of)
