"""Coordinate functions, which map the centers of output pixels to points of the input, both in pixels.

The origin is the top left corner, x points right and y down; the center of the first pixel is at (0.5, 0.5). Each
function takes the coordinates of pixels, then its parameters, and is elementwise, so that a kernel computes the
coordinates that it reads at. A compiled call hashes the function, so each is defined at the top level of a module: a
new closure would compile a new program.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike, DTypeLike

from .._checks.calls import in_native_order
from .._checks.words import described
from .._jax.calls import of_caller, typed_jit
from .._tables.storage_formats import sum_dtype
from ..mipmaps import footprint
from .matrices import Rows, elements

Arrays: TypeAlias = tuple[jax.Array, ...]
# Maps the coordinates of pixels, x first, to as many coordinates.
CoordinateFunction: TypeAlias = Callable[..., Sequence[ArrayLike]]
# The same for arrays, with parameters after the coordinates.
GridFunction: TypeAlias = Callable[..., Arrays]

# A coordinate far beyond every image.
LOWEST = -(2.0**127)
# The number of axes, by the number of arguments: a coordinate for each axis, and a matrix by rows.
AFFINE_AXES = {8: 2, 15: 3}
PROJECTIVE_AXES = {11: 2, 19: 3}


def pixel_centers(output_shape: Sequence[int], dtype: DTypeLike = jnp.float32) -> Arrays:
    """The centers of an output's pixels along x, y (and z): one array an axis, which broadcast to `output_shape`."""
    return centers_along_axes(tuple(output_shape), np.dtype(dtype))


@typed_jit("sizes", "dtype")
def centers_along_axes(sizes: tuple[int, ...], dtype: np.dtype[Any]) -> Arrays:
    """The same, as one program where it runs outside of others."""
    centers: list[jax.Array] = []
    for axis, size in enumerate(sizes):
        line = jnp.arange(size, dtype=jnp.int32).astype(dtype) + 0.5
        centers.append(line.reshape([size if k == axis else 1 for k in range(len(sizes))]))
    return tuple(centers[::-1])


def evaluated_at(name: str, function: Any, pixels: Sequence[jax.Array], parameters: Sequence[Any] = ()) -> Arrays:
    """The coordinates that a caller's function returns for pixels: as many as these have."""
    if not callable(function):
        raise TypeError(
            f"{name}: function is {described(function)}, expected a function that maps x and y (and z) to a tuple of "
            f"coordinates; for a matrix call jaxtex.warp.warp_affine, for arrays of coordinates jaxtex.warp.remap."
        )
    coords = tuple(jnp.asarray(in_native_order(c)) for c in cast(Any, function)(*pixels, *parameters))
    if len(coords) != len(pixels):
        raise ValueError(
            f"{name}: function returned {len(coords)} coordinates, expected {len(pixels)}, one for each axis of the "
            f"output."
        )
    return coords


class OfCaller(NamedTuple):
    """A coordinate function that a caller wrote, whose points have the dtype and the rank of the pixels."""

    function: CoordinateFunction

    def __call__(self, *args: jax.Array) -> Arrays:
        points = (jnp.asarray(c).astype(args[0].dtype) for c in of_caller(self.function, *args))
        return tuple(jnp.expand_dims(c, range(args[0].ndim - c.ndim)) for c in points)


def check_is_elementwise(
    name: str,
    function: Any,
    ndim: int,
    parameters: Sequence[jax.Array],
    remedy: str = "pass the array in parameters",
) -> None:
    """Checks that a caller's function maps one pixel to one point, from its arguments alone."""
    one = jnp.zeros((1,) * ndim, sum_dtype(*(p.dtype for p in parameters)))

    def points(*args: jax.Array) -> Arrays:
        return evaluated_at(name, function, args[:ndim], args[ndim:])

    closed, shapes = jax.make_jaxpr(points, return_shape=True)(*[one] * (ndim + len(parameters)))
    for point in shapes:
        if point.size != 1 or point.ndim > ndim:
            raise ValueError(
                f"{name}: function returned an array of shape {point.shape} for one pixel, expected one number: with "
                f"parameters, it must be elementwise."
            )
    if any(isinstance(const, Tracer) for const in closed.consts):
        raise TypeError(f"{name}: function closes over a traced array; {remedy}.")


def aligned(*arrays: jax.Array) -> Arrays:
    """Floating arrays in one dtype, float32 or float64, and of one rank: axes of size 1 are added in front."""
    dtype, rank = sum_dtype(*(a.dtype for a in arrays)), max(a.ndim for a in arrays)
    return tuple(jnp.expand_dims(a.astype(dtype), range(rank - a.ndim)) for a in arrays)


def coordinates(
    function: GridFunction, output_shape: Sequence[int], with_footprint: bool, stored: DTypeLike
) -> tuple[Arrays, tuple[Arrays, ...] | None]:
    """The coordinates ``function(x, y)`` of the pixels of an image, and the footprints of the pixels.

    Args:
        with_footprint: whether to compute the footprints; otherwise they are ``None``.
        stored: the dtype of the image, whose precision the coordinates have.
    """
    pixels = pixel_centers(output_shape, sum_dtype(stored))
    return function(*pixels), footprint(function, (pixels[0], pixels[1])) if with_footprint else None


def matrix_parameters(matrix: jax.Array, ndim: int) -> Arrays:
    """The elements of matrices, (..., M, N), by rows: each of shape ``(...)`` and `ndim` axes of size 1."""
    return as_parameters(elements(matrix), ndim)


def as_parameters(rows: Rows, ndim: int) -> Arrays:
    """Elements of matrices, arrays of leading axes, as parameters for all pixels of an image."""
    return tuple(jnp.expand_dims(e, range(e.ndim, e.ndim + ndim)) for row in rows for e in row)


def row_times_point(point: Arrays, row: Arrays) -> jax.Array:
    """One row of a matrix times a point, plus the row's last element."""
    return functools.reduce(jnp.add, (a * c for a, c in zip(row, point)), row[-1])


def affine(*args: jax.Array) -> Arrays:
    """A point times an n by n + 1 matrix: ``(x, y, a, b, c, d, e, f) -> (a x + b y + c, d x + e y + f)``."""
    n = AFFINE_AXES[len(args)]
    point, matrix = args[:n], args[n:]
    return tuple(row_times_point(point, matrix[k : k + n + 1]) for k in range(0, len(matrix), n + 1))


def projective(*args: jax.Array) -> Arrays:
    """A point times a matrix of n + 1 rows and columns, divided by the last component; 0 where that is 0."""
    n = PROJECTIVE_AXES[len(args)]
    point, matrix = args[:n], args[n:]
    *components, divisor = (row_times_point(point, matrix[k : k + n + 1]) for k in range(0, len(matrix), n + 1))
    finite = divisor != 0
    inverse = jnp.where(finite, 1 / jnp.where(finite, divisor, 1), 0)
    return tuple(c * inverse for c in components)


def scaled(*args: jax.Array) -> Arrays:
    """A point with each coordinate times a factor of its own."""
    half = len(args) // 2
    # The maximum keeps compilers from fusing the product with a sum, so that each is rounded, with constant factors,
    # too.
    return tuple(jnp.maximum(c * s, LOWEST) for c, s in zip(args[:half], args[half:]))


def stored_points(*args: jax.Array) -> Arrays:
    """The parameters themselves, as coordinates."""
    return args[len(args) // 2 :]


def displaced(*args: jax.Array) -> Arrays:
    """A point plus a vector."""
    half = len(args) // 2
    return tuple(c + d for c, d in zip(args[:half], args[half:]))


# Those that are affine in the pixel.
AFFINE_FUNCTIONS = (affine, scaled)


class Composed(NamedTuple):
    """Coordinate functions one after the other: each takes the points of the one before.

    Attributes:
        links: each function, and how many parameters it takes.
    """

    links: tuple[tuple[GridFunction, int], ...]

    def __call__(self, *args: jax.Array) -> Arrays:
        ndim = len(args) - sum(count for _, count in self.links)
        point, rest = args[:ndim], args[ndim:]
        for function, count in self.links:
            point, rest = function(*point, *rest[:count]), rest[count:]
        return point


def is_affine(function: GridFunction) -> bool:
    """Whether a coordinate function is affine in the pixel."""
    if isinstance(function, Composed):
        return all(is_affine(link) for link, _ in function.links)
    return function in AFFINE_FUNCTIONS
