"""Coordinate functions: from the centres of the output's pixels to points of the input, both in pixels.

The origin is the top left corner, x points right and y down; the centre of the first pixel is at (0.5, 0.5). Each
function takes the coordinates of the pixels, then its parameters, and acts element by element, so that a kernel can
compute for each sample where it looks. It is static in a compiled call, and so stands in a module, not in a closure.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .._tables.storage_formats import sum_dtype
from ..mipmaps import footprint
from .matrices import Rows, elements

Arrays = tuple[jax.Array, ...]
# How many arguments a function of matrices has: a coordinate an axis and a matrix by rows.
AFFINE_AXES = {8: 2, 15: 3}
PROJECTIVE_AXES = {11: 2, 19: 3}


def pixel_centres(output_shape: Sequence[int], dtype=jnp.float32) -> Arrays:
    """The centres of an output's pixels along x, y (and z): one array an axis, which broadcast to `output_shape`."""
    rank = len(output_shape)
    centres = []
    for axis, size in enumerate(output_shape):
        line = jnp.arange(size, dtype=jnp.int32).astype(dtype) + 0.5
        centres.append(line.reshape([size if k == axis else 1 for k in range(rank)]))
    return tuple(centres[::-1])


def alike(*arrays: jax.Array) -> Arrays:
    """Floating arrays in one dtype, float32 or float64, and with one rank: axes of size 1 in front of the others."""
    dtype, rank = sum_dtype(*(a.dtype for a in arrays)), max(a.ndim for a in arrays)
    return tuple(jnp.expand_dims(a.astype(dtype), range(rank - a.ndim)) for a in arrays)


def field(function: Callable[..., Arrays], output_shape: Sequence[int], sides: bool) -> tuple[Arrays, Any]:
    """The coordinates ``function(x, y)`` of the pixels of an image, and how they change from a pixel to the next.

    Args:
        sides: whether to find the changes, along x and along y; else they are `None`.
    """
    pixels = pixel_centres(output_shape)
    return function(*pixels), footprint(function, pixels) if sides else None


def rows(matrix: jax.Array, ndim: int) -> Arrays:
    """The elements of matrices, (..., M, N), by rows: each of shape ``(...)`` and `ndim` axes of size 1."""
    return per_image(elements(matrix), ndim)


def per_image(rows: Rows, ndim: int) -> Arrays:
    """Elements of matrices, arrays of leading axes, as parameters for all pixels of an image."""
    return tuple(jnp.expand_dims(e, range(e.ndim, e.ndim + ndim)) for row in rows for e in row)


def combined(point: Arrays, row: Arrays) -> jax.Array:
    """One row of a matrix times a point, with the row's last element added."""
    return functools.reduce(jnp.add, (a * c for a, c in zip(row, point)), row[-1])


def affine(*args: jax.Array) -> Arrays:
    """A point times an n by n + 1 matrix: ``(x, y, a, b, c, d, e, f) -> (a x + b y + c, d x + e y + f)``."""
    n = AFFINE_AXES[len(args)]
    point, elements = args[:n], args[n:]
    return tuple(combined(point, elements[k : k + n + 1]) for k in range(0, len(elements), n + 1))


def projective(*args: jax.Array) -> Arrays:
    """A point times a matrix of n + 1 rows and columns, divided by the last row's; 0 where that is 0."""
    n = PROJECTIVE_AXES[len(args)]
    point, elements = args[:n], args[n:]
    *scaled, scale = (combined(point, elements[k : k + n + 1]) for k in range(0, len(elements), n + 1))
    finite = scale != 0
    inverse = jnp.where(finite, 1 / jnp.where(finite, scale, 1), 0)
    return tuple(c * inverse for c in scaled)


def scaled(*args: jax.Array) -> Arrays:
    """A point with each coordinate times a factor of its own."""
    half = len(args) // 2
    return tuple(c * s for c, s in zip(args[:half], args[half:]))


def given(*args: jax.Array) -> Arrays:
    """Points that are given, whatever the pixel."""
    return args[len(args) // 2 :]


def moved(*args: jax.Array) -> Arrays:
    """A pixel moved by a given step."""
    half = len(args) // 2
    return tuple(c + d for c, d in zip(args[:half], args[half:]))
