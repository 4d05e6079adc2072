"""The perspective transform that maps four points to four others."""

# pyright: strict, reportUnknownMemberType=false

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from ...warp.coordinate_functions import projective, row_times_point
from ..errors import UserError
from ..grammar.values import Point
from ..pictures.limits import Size
from ..pictures.picture import Array
from .mappings import Mapping, Transform, to_parameters

# Three points count as collinear if twice the area of their triangle is at most this share of the square of its longest
# side: far below what pixels can express, and far above rounding.
COLLINEAR = 1e-9


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

    Raises:
        UserError: if there is no such matrix.
    """
    for name, points in (sources, targets):
        check_general_position(name, points)
    matrix = matrix_from_basis(targets[1]) @ np.linalg.inv(matrix_from_basis(sources[1]))
    depths = homogeneous(sources[1]) @ matrix[2]
    if depths.min() * depths.max() <= 0:
        raise UserError(
            f"no camera sees the four points like this, since the horizon passes between the {sources[0]} points; "
            f"list them in the same order as the {targets[0]} points"
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
    """Checks that no three of the points lie on one line.

    Raises:
        UserError: names three points that do.
    """
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
