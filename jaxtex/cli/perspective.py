"""The perspective that takes four points to four others."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from ..warp.grids import projective, row_times_point
from .errors import UserError
from .mappings import Mapping, Size, Transform, numbers

Point = tuple[float, float]
# Three points lie on a line if their triangle, beside the square of its longest side, is as small as this: far below
# what pixels tell, and far above rounding.
FLAT = 1e-9


@dataclasses.dataclass(frozen=True)
class Perspective(Transform):
    """Four pairs of a point of the input and the point of the output to which it goes, about the top left corner."""

    pairs: tuple[tuple[Point, Point], ...]

    def mapping(self, source: Size, target: Size) -> Mapping:
        starts, ends = np.array(self.pairs, np.float64).swapaxes(0, 1)
        back = homography(("output", ends), ("input", starts))
        return Mapping(in_front, numbers(back))

    def __str__(self) -> str:
        return f"seen from {' '.join(':'.join(f'{x:g},{y:g}' for x, y in pair) for pair in self.pairs)}"


def homography(starts: tuple[str, np.ndarray], ends: tuple[str, np.ndarray]) -> np.ndarray:
    """The (3, 3) matrix that takes four points to four, with a positive third coordinate at the former.

    Four points are what a matrix makes of the three axes and of (1, 1, 1). So it is the matrix of the ends times the
    inverse of that of the starts.

    Args:
        starts, ends: what the points are called in errors, and the points, (4, 2).

    Raises:
        UserError: if there is no such matrix.
    """
    for name, points in (starts, ends):
        check_general(name, points)
    matrix = from_axes(ends[1]) @ np.linalg.inv(from_axes(starts[1]))
    scales = with_one(starts[1]) @ matrix[2]
    if scales.min() * scales.max() <= 0:
        raise UserError(
            f"no camera sees the four points so: the horizon passes between those of the {starts[0]}; are they in the "
            f"order of those of the {ends[0]}?"
        )
    return matrix / scales[0]


def from_axes(points: np.ndarray) -> np.ndarray:
    """A matrix that takes the axes to the first three points, and (1, 1, 1) to the fourth."""
    columns = with_one(points).T
    return columns[:, :3] * np.linalg.solve(columns[:, :3], columns[:, 3])


def with_one(points: np.ndarray) -> np.ndarray:
    return np.column_stack([points, np.ones(len(points))])


def check_general(name: str, points: np.ndarray) -> None:
    """No three of the points lie on a line."""
    for triangle in itertools.combinations(points, 3):
        a, b, c = triangle
        sides = np.array([b - a, c - a, c - b])
        if not abs(np.linalg.det(sides[:2])) > FLAT * (sides**2).sum(axis=1).max():
            told = ", ".join(f"{x:g},{y:g}" for x, y in triangle)
            raise UserError(f"the {name} points {told} of --perspective lie on one line")


def in_front(x: jax.Array, y: jax.Array, *matrix: jax.Array) -> tuple[jax.Array, ...]:
    """A homography up to the horizon; what lies beyond would show behind the camera, and is far outside."""
    seen = row_times_point((x, y), matrix[6:]) > 0
    return tuple(jnp.where(seen, c, jnp.inf) for c in projective(x, y, *matrix))
