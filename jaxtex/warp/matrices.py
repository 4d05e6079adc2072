"""Matrices of points as rows of elements: each element an array of leading batch axes, on its own.

So all here is element by element. It has the precision of its dtype on every device, and a batch that is cut over
devices stays so. A point is in pixels from the top left corner, pixel centres at +0.5, x before y (before z).
"""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp

Rows = list[list[jax.Array]]


def elements(matrix: jax.Array) -> Rows:
    """The rows of matrices, (..., M, N)."""
    return [[matrix[..., i, j] for j in range(matrix.shape[-1])] for i in range(matrix.shape[-2])]


def stacked(rows: Rows) -> jax.Array:
    """Matrices, (..., M, N), of their rows."""
    return jnp.stack([jnp.stack(jnp.broadcast_arrays(*row), -1) for row in rows], -2)


def dot(row: Sequence[jax.Array], point: Sequence[jax.Array | float]) -> jax.Array:
    """The sum of the products of elements."""
    return functools.reduce(jnp.add, (a * c for a, c in zip(row, point)))


def inverted(rows: Rows) -> Rows:
    """The inverse of an affine matrix, n by n + 1, or of a projective one, n + 1 by n + 1."""
    if len(rows) == len(rows[0]):
        return inverse(rows)
    linear = inverse([row[:-1] for row in rows])
    shift = [row[-1] for row in rows]
    return [[*row, -dot(row, shift)] for row in linear]


def inverse(rows: Rows) -> Rows:
    """The inverse of a square matrix, by Cramer's rule: of two to four rows it is the faster way on every device."""
    whole, numbers = determinant(rows), range(len(rows))
    return [[(-1) ** (i + j) * determinant(without(rows, j, i)) / whole for j in numbers] for i in numbers]


def determinant(rows: Rows) -> jax.Array:
    first, *rest = rows
    if not rest:
        return first[0]
    return functools.reduce(jnp.add, ((-1) ** j * a * determinant(without(rows, 0, j)) for j, a in enumerate(first)))


def without(rows: Rows, i: int, j: int) -> Rows:
    """A matrix without one row and one column."""
    return [[*row[:j], *row[j + 1 :]] for k, row in enumerate(rows) if k != i]


def turned(degrees: jax.Array, scale: jax.Array) -> Rows:
    """A rotation of the plane with a scaling, 2 by 2: counter-clockwise as seen, y pointing down."""
    angle = jnp.deg2rad(degrees)
    cosine, sine = (part * scale for part in (jnp.cos(angle), jnp.sin(angle)))
    return [[cosine, sine], [-sine, cosine]]


def about(linear: Rows, source: Sequence[jax.Array], target: Sequence[jax.Array]) -> Rows:
    """The affine matrix of a linear map that brings the point `source` to `target`."""
    return [[*row, t - dot(row, source)] for row, t in zip(linear, target)]


def with_centres_moved(rows: Rows) -> Rows:
    """A matrix of points whose pixel centres are at whole numbers, for points whose pixel centres are at +0.5."""
    n = len(rows[0]) - 1
    last = rows[n] if len(rows) > n else [0.0] * n + [1.0]
    raised = [[a + 0.5 * b for a, b in zip(row, last)] for row in rows[:n]]
    return [[*row[:-1], row[-1] - 0.5 * functools.reduce(jnp.add, row[:-1])] for row in (*raised, *rows[n:])]


def from_theta(
    theta: Rows, input_shape: Sequence[int], output_shape: Sequence[int], align_corners: bool = False
) -> Rows:
    """In pixels, a matrix whose points run from -1 to 1 across images: from output to input.

    Args:
        input_shape, output_shape: the spatial shapes, slowest first.
        align_corners: whether -1 and 1 are the centres of the outer pixels, not their outer edges.
    """
    half = lambda n: max(n - 1 if align_corners else n, 1) / 2
    found = []
    for row, n in zip(theta, input_shape[::-1]):
        steps = [a / half(m) for a, m in zip(row, output_shape[::-1])]
        corner = row[-1] - dot(steps, [m / 2 for m in output_shape[::-1]])
        found.append([*(step * half(n) for step in steps), corner * half(n) + n / 2])
    return found
