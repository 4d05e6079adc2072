"""Matrices that map points, as rows of elements: each element is an array with the leading batch axes.

All functions are elementwise. They have the precision of their dtype on every device, and a batch that is sharded over
devices stays sharded. A point is in pixels from the top left corner, with pixel centers at +0.5, in x, y (, z) order.
"""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from .._jax.versions import stack

Rows = list[list[jax.Array]]


def elements(matrix: jax.Array) -> Rows:
    """The rows of matrices, (..., M, N)."""
    return [[matrix[..., i, j] for j in range(matrix.shape[-1])] for i in range(matrix.shape[-2])]


def stacked(rows: Rows) -> jax.Array:
    """Matrices, (..., M, N), from their rows."""
    return stack([stack(jnp.broadcast_arrays(*row), -1) for row in rows], -2)


def dot(row: Sequence[jax.Array], point: Sequence[jax.Array | float]) -> jax.Array:
    """The scalar product of two vectors."""
    return functools.reduce(jnp.add, (a * c for a, c in zip(row, point)))


def inverted(rows: Rows) -> Rows:
    """The inverse of an affine matrix, n by n + 1, or of a projective matrix, n + 1 by n + 1."""
    if len(rows) == len(rows[0]):
        return inverse(rows)
    linear = inverse([row[:-1] for row in rows])
    shift = [row[-1] for row in rows]
    return [[*row, -dot(row, shift)] for row in linear]


def of_unit_size(rows: Rows) -> Rows:
    """Projective matrices, which are the same up to a factor, with a largest element from 0.5 to 1.

    The factor is a power of two, so that no bit of an element changes.
    """
    largest = functools.reduce(jnp.maximum, (abs(element) for row in rows for element in row))
    _, exponent = jnp.frexp(jax.lax.stop_gradient(largest))
    return [[jnp.ldexp(element, -exponent) for element in row] for row in rows]


def inverse(rows: Rows) -> Rows:
    """The inverse of a square matrix by Cramer's rule, which is the fastest on every device for two to four rows."""
    whole, numbers = determinant(rows), range(len(rows))
    return [[(-1) ** (i + j) * determinant(minor(rows, j, i)) / whole for j in numbers] for i in numbers]


def determinant(rows: Rows) -> jax.Array:
    """The determinant of a square matrix, by expansion along the first row."""
    first, *rest = rows
    if not rest:
        return first[0]
    return functools.reduce(jnp.add, ((-1) ** j * a * determinant(minor(rows, 0, j)) for j, a in enumerate(first)))


def minor(rows: Rows, i: int, j: int) -> Rows:
    """A matrix without row i and column j."""
    return [[*row[:j], *row[j + 1 :]] for k, row in enumerate(rows) if k != i]


def rotation(angle: jax.Array, scale: jax.Array) -> Rows:
    """A rotation by radians and a scaling of the plane, 2 by 2: counter-clockwise as seen, with y pointing down."""
    cosine, sine = (part * scale for part in (jnp.cos(angle), jnp.sin(angle)))
    return [[cosine, sine], [-sine, cosine]]


def about(linear: Rows, source: Sequence[jax.Array], target: Sequence[jax.Array]) -> Rows:
    """The affine matrix with this linear part that maps the point `source` to `target`."""
    return [[*row, t - dot(row, source)] for row, t in zip(linear, target)]


def with_centers_moved(rows: Rows) -> Rows:
    """Converts a matrix from pixel centers at whole numbers to pixel centers at +0.5."""
    n = len(rows[0]) - 1
    last = rows[n] if len(rows) > n else [0.0] * n + [1.0]
    shifted = [[a + 0.5 * b for a, b in zip(row, last)] for row in rows[:n]]
    return [[*row[:-1], row[-1] - 0.5 * functools.reduce(jnp.add, row[:-1])] for row in (*shifted, *rows[n:])]


def from_theta(
    theta: Rows, input_shape: Sequence[int], output_shape: Sequence[int], align_corners: bool | None = False
) -> Rows:
    """Converts a matrix of points that run from -1 to 1 across images to pixels: from output to input.

    Args:
        input_shape, output_shape: the spatial shapes, slowest axis first.
        align_corners: whether -1 and 1 are the centers of the outer pixels, not their outer edges.
    """

    def half(size: int) -> float:
        return max(size - 1 if align_corners else size, 1) / 2

    result: Rows = []
    for row, n in zip(theta, input_shape[::-1]):
        steps = [a / half(m) for a, m in zip(row, output_shape[::-1])]
        corner = row[-1] - dot(steps, [m / 2 for m in output_shape[::-1]])
        result.append([*(step * half(n) for step in steps), corner * half(n) + n / 2])
    return result
