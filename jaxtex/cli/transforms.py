"""Transforms of images: affine, projective, by a flow, and to another size, each as a map from output to input points.

A matrix maps points of the input to points of the output.
"""

import abc
import dataclasses
import functools
import itertools
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ..warp.coordinate_functions import affine, displaced, projective, row_times_point, scaled
from ..warp.sized.mappings import MAX_ANISOTROPY, Array, Mapping, PerPixelParameters, Size
from .files.inputs import open_regular, read_errors
from .options import Point
from .process import UserError

# Double precision carries 16 digits, so the determinant of a matrix with a larger condition number is rounding error.
MAX_CONDITION = 1e12
# Three points count as collinear if twice the area of their triangle is at most this share of the square of its longest
# side: far below what pixels can express, and far above rounding.
COLLINEAR = 1e-9
# Sizes are rounded up unless they are this close to a whole number, as after a rotation by 90 degrees.
NEARLY_WHOLE = 1e-6


class Transform(abc.ABC):
    """A transform, before the size of an image is known. Its `str` describes it in the report of a run."""

    @abc.abstractmethod
    def mapping(self, source: Size, target: Size) -> Mapping:
        """The mapping for one image.

        Args:
            source: width and height of the input.
            target: width and height of the output.
        """

    def output_size(self, source: Size) -> Size:
        """Width and height of the output for an input of this width and height, unless the options name them."""
        return source

    def upright(self, orientation: int) -> "Transform":
        """The transform for pictures that are turned upright, from how they are stored (TIFF 6.0, tag 274)."""
        return self

    def check(self) -> None:
        """Checks what does not depend on an image, so that a mistake is reported once for a whole folder."""
        self.mapping((1, 1), (1, 1))


def to_parameters(values: npt.ArrayLike) -> tuple[Array, ...]:
    """The elements of an array, by rows, as parameters of a mapping."""
    return tuple(np.asarray(values, np.float32).reshape(-1, 1, 1))


# Affine transforms


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
            width, height = inscribed(*source, self.rotate)
            return max(1, math.floor(width + NEARLY_WHOLE)), max(1, math.floor(height + NEARLY_WHOLE))
        if not self.expand:
            return source
        # A result that is moved is shown with the room that it leaves, on both sides, since centers stay centers.
        width, height = np.abs(self.linear()) @ np.array(source) + 2 * np.abs(self.translate)
        return max(1, math.ceil(width - NEARLY_WHOLE)), max(1, math.ceil(height - NEARLY_WHOLE))

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


def rotation(degrees: float) -> Array:
    """The (2, 2) rotation matrix, counter-clockwise as seen since y points down, exact at multiples of 90 degrees."""
    quarters, remainder = divmod(degrees, 90.0)
    cosine, sine = math.cos(math.radians(remainder)), math.sin(math.radians(remainder))
    for _ in range(int(quarters) % 4):
        cosine, sine = -sine, cosine
    return np.array([[cosine, sine], [-sine, cosine]])


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


def inverse_mapping(matrix: Array) -> Mapping:
    """The mapping from output to input points for a (2, 3) matrix from input to output points."""
    linear, translation = matrix[:, :2], matrix[:, 2]
    with np.errstate(all="ignore"):
        check_condition(linear)
        inverse = np.linalg.inv(linear)
        elements = np.column_stack([inverse, -inverse @ translation]).astype(np.float32)
    if not np.isfinite(elements).all():
        raise UserError("the transform is too extreme: its inverse does not fit float32")
    return Mapping(affine, to_parameters(elements), anisotropy(inverse))


def check_condition(matrix: Array) -> None:
    """Checks that a square matrix has an inverse."""
    if not np.linalg.cond(matrix) < MAX_CONDITION:
        raise UserError("the transform is singular: it maps the image onto a line or a point")


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


# Matrices and perspectives


@dataclasses.dataclass(frozen=True)
class Matrix(Transform):
    """The six elements of an affine matrix by rows, or the nine of a homography, about the top left corner."""

    elements: tuple[float, ...]

    def mapping(self, source: Size, target: Size) -> Mapping:
        matrix = np.array([*self.elements, 0, 0, 1][:9], np.float64).reshape(3, 3)
        if not matrix[2, :2].any() and matrix[2, 2]:
            return inverse_mapping(matrix[:2] / matrix[2, 2])
        with np.errstate(all="ignore"):
            check_condition(matrix)
            depth = matrix[2] @ [source[0] / 2, source[1] / 2, 1.0]  # of the center, which a camera would see
            inverse = np.linalg.inv(matrix)
            inverse *= np.copysign(1 / np.abs(inverse).max(), depth)
        if not np.isfinite(inverse).all():
            raise UserError("the transform is too extreme: its inverse does not fit float32")
        return Mapping(project_visible, to_parameters(inverse))

    def __str__(self) -> str:
        return f"mapped by the matrix {' '.join(f'{e:g}' for e in self.elements)}"


@dataclasses.dataclass(frozen=True)
class Perspective(Transform):
    """Four pairs of a point of the input and the point of the output to which it maps, about the top left corner."""

    pairs: tuple[tuple[Point, Point], ...]

    def mapping(self, source: Size, target: Size) -> Mapping:
        inputs, outputs = np.array(self.pairs, np.float64).swapaxes(0, 1)
        return Mapping(project_visible, to_parameters(homography(("output", outputs), ("input", inputs))))

    def __str__(self) -> str:
        pairs = (":".join(f"{x:g},{y:g}" for x, y in pair) for pair in self.pairs)
        return f"mapped by the perspective {' '.join(pairs)}"


def homography(sources: tuple[str, Array], targets: tuple[str, Array]) -> Array:
    """The (3, 3) matrix that maps four points to four others.

    A matrix is given by the images of the three unit vectors and of (1, 1, 1). The result is the matrix that maps these
    to the targets, times the inverse of the matrix that maps them to the sources.

    Args:
        sources: what errors call the points, and the points, (4, 2).
        targets: likewise.

    Returns:
        A matrix under which all four sources have a positive third coordinate.
    """
    for name, points in (sources, targets):
        check_general_position(name, points)
    matrix = matrix_from_basis(targets[1]) @ np.linalg.inv(matrix_from_basis(sources[1]))
    depths = homogeneous(sources[1]) @ matrix[2]
    if depths.min() * depths.max() <= 0:
        raise UserError(
            f"the four points are no perspective, since the horizon passes between the {sources[0]} points; list them "
            f"in the same order as the {targets[0]} points"
        )
    return matrix / depths[0]


def matrix_from_basis(points: Array) -> Array:
    """The matrix that maps the three unit vectors to the first three points, and (1, 1, 1) to the fourth."""
    columns = homogeneous(points).T
    return columns[:, :3] * np.linalg.solve(columns[:, :3], columns[:, 3])


def homogeneous(points: Array) -> Array:
    """Points with a third coordinate of 1."""
    return np.column_stack([points, np.ones(len(points))])


def check_general_position(name: str, points: Array) -> None:
    """Checks that no three of the points lie on one line."""
    for triangle in itertools.combinations(points, 3):
        a, b, c = triangle
        sides = np.array([b - a, c - a, c - b])
        if not abs(np.linalg.det(sides[:2])) > COLLINEAR * (sides**2).sum(axis=1).max():
            listed = ", ".join(f"{x:g},{y:g}" for x, y in triangle)
            raise UserError(f"the {name} points {listed} of --perspective lie on one line")


def project_visible(x: jax.Array, y: jax.Array, *matrix: jax.Array) -> tuple[jax.Array, ...]:
    """A point times a homography, or infinity if the point lies beyond the horizon, so behind the camera."""
    visible = row_times_point((x, y), matrix[6:]) > 0
    return tuple(jnp.where(visible, c, jnp.inf) for c in projective(x, y, *matrix))


# Sizes


@dataclasses.dataclass(frozen=True)
class Resize(Transform):
    """The corners of the input go to those of the output.

    Attributes:
        scale: factor of width and height.
        fit: the width and height that the output may have at most; in place of `scale`.
        enlarge: whether an image that is smaller than `fit` becomes larger.
    """

    scale: float = 1.0
    fit: Size | None = None
    enlarge: bool = False

    def output_size(self, source: Size) -> Size:
        scale = self.scale
        if self.fit is not None:
            scale = min(most / n for most, n in zip(self.fit, source))
            scale = scale if self.enlarge else min(scale, 1.0)
        width, height = (max(1, round(scale * n)) for n in source)
        return width, height

    def mapping(self, source: Size, target: Size) -> Mapping:
        # `jaxtex.warp.resize` finds how many reads it needs.
        return Mapping(scaled, to_parameters([n / m for n, m in zip(source, target)]), max_anisotropy=1)

    def __str__(self) -> str:
        if self.fit is not None:
            return "resized to fit {}x{}".format(*self.fit)
        return "resized" if self.scale == 1 else f"resized by {self.scale:g}"


# Flows


@dataclasses.dataclass(frozen=True)
class Flow(Transform):
    """The pixel of the output at (x, y) reads the input at (x + dx, y + dy).

    Attributes:
        name: of the file, for messages.
        displacements: dx and dy in pixels, float32, each (height, width) of the output.
    """

    name: str
    displacements: tuple[Array, ...]

    @functools.cached_property
    def parameters(self) -> PerPixelParameters:
        return PerPixelParameters.of_arrays(self.displacements)

    def mapping(self, source: Size, target: Size) -> Mapping:
        height, width = self.displacements[0].shape
        if target != (width, height):
            raise UserError(
                f"the flow has {width}x{height} pixels and the output {target[0]}x{target[1]}; "
                f"--size {width}x{height} gives the output the size of the flow"
            )
        return Mapping(displaced, self.parameters)

    def check(self) -> None:
        """Checks nothing: whether a flow fits depends on the size of the image."""

    def __str__(self) -> str:
        return f"displaced by {self.name}"


def read_flow(path: Path) -> Flow:
    """Reads a flow from a NumPy file.

    Args:
        path: a file of shape (height, width, 2) and a floating dtype. A pixel with NaN reads outside the input.
    """
    with read_errors(path, "it is not a complete NumPy file of numbers"), open_regular(path) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)  # an object array would run code of the file
    if array.dtype.kind != "f" or array.ndim != 3 or array.shape[2] != 2 or 0 in array.shape:
        raise UserError(
            f"cannot use {path}: it holds {array.dtype} of shape {array.shape}, expected a floating dtype and shape "
            f"(height, width, 2), dx and dy in pixels"
        )
    with np.errstate(over="ignore"):
        dx, dy = np.moveaxis(array.astype(np.float32), -1, 0)
    known = ~(np.isnan(dx) | np.isnan(dy))
    return Flow(path.name, tuple(np.where(known, d, np.float32(np.inf)) for d in (dx, dy)))
