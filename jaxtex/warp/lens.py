"""Lens distortion: points and images between a real camera and an ideal one, by the Brown-Conrady model.

A point of an image, less the centre and divided by the focal length, is a ray ``(x, y)`` of a pinhole camera. A lens
bends it. With ``r2 = x^2 + y^2``, the radial factor ``L = (1 + k1 r2 + k2 r2^2 + k3 r2^3) / (1 + k4 r2 + k5 r2^2 + k6
r2^3)`` and the tangential coefficients p1, p2:

    x' = x L + 2 p1 x y + p2 (r2 + 2 x^2)
    y' = y L + p1 (r2 + 2 y^2) + 2 p2 x y
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .._arguments import as_float, check_number, stacked_coords
from ..sampler import Sampler
from .calls import OPTIONS, compiled
from .grids import Arrays, alike, field, given, rows
from .images import warp_image
from .options import read_options
from .shapes import as_matrix, spatial_shape

# k1, k2, p1, p2; and k3; and k4, k5, k6.
COEFFICIENT_COUNTS = (4, 5, 8)
CAMERA_VALUES = 4
# Newton's method doubles the digits in each step. Ordinary lenses take five; the others are for points near a fold of
# the lens, where two solutions meet and a step halves the error.
NEWTON_STEPS = 10
# In units of the focal length. A place that is missed by more is one where the lens shows nothing.
SOLVED = 2.0**-16


@compiled("output_shape", *OPTIONS)
def undistort(
    image: Any,
    camera_matrix: Any,
    distortion: Any,
    output_shape: Sequence[int] | None = None,
    sampler: Sampler | None = None,
    *,
    new_camera_matrix: Any = None,
    filter: Any = None,
    address: Any = None,
    border_color: Any = None,
    antialias: bool = False,
    dtype: Any = None,
) -> jax.Array:
    """Takes the distortion of a lens out of images: straight lines become straight.

    Args:
        image: ``(..., H, W, C)``, as the lens shows it; see `resample`.
        camera_matrix: ``(..., 3, 3)``, ``[[fx, 0, cx], [0, fy, cy], [0, 0, 1]]`` in pixels, with the centre of the
            first pixel at (0.5, 0.5): for a matrix from OpenCV, whose first pixel is at (0, 0), add 0.5 to cx and cy.
            Only these four elements are read. Leading axes broadcast with those of `image`.
        distortion: ``(..., n)``, in OpenCV's order: k1, k2, p1, p2, then k3, then k4, k5, k6; n is 4, 5 or 8.
        output_shape, sampler, filter, address, border_color, antialias, dtype: as in `resample`.
        new_camera_matrix: ``(..., 3, 3)``, of the ideal camera whose image is the result; by default `camera_matrix`.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: to image, both matrices, coefficients and border colour, to any order in both modes; see `resample`.

    Raises:
        ValueError: if shapes do not fit.

    Source: D. C. Brown, "Decentering Distortion of Lenses", 1966; the model and its order are those of `cv2.undistort`.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> camera = jnp.array([[4.0, 0.0, 2.0], [0.0, 4.0, 0.5], [0.0, 0.0, 1.0]])
        >>> row = jnp.arange(4.0)[None, :, None]
        >>> jt.warp.undistort(row, camera, jnp.array([-0.5, 0.0, 0.0, 0.0]))[0, :, 0]
        Array([0.10546875, 1.0039062 , 1.9960938 , 2.8945312 ], dtype=float32)
    """
    lens = lens_values("undistort", camera_matrix, distortion, new_camera_matrix, 2)
    shape = spatial_shape("undistort", image, output_shape, 2)
    options = read_options(
        "undistort", sampler, filter, address, border_color=border_color, antialias=antialias, dtype=dtype
    )
    return warp_image("undistort", image, to_distorted, lens, shape, options)


@compiled("output_shape", *OPTIONS)
def distort(
    image: Any,
    camera_matrix: Any,
    distortion: Any,
    output_shape: Sequence[int] | None = None,
    sampler: Sampler | None = None,
    *,
    new_camera_matrix: Any = None,
    filter: Any = None,
    address: Any = None,
    border_color: Any = None,
    antialias: bool = False,
    dtype: Any = None,
) -> jax.Array:
    """Renders images as a lens would show them: the inverse of `undistort` with the same arguments.

    Args:
        image: ``(..., H, W, C)``, of an ideal camera, as `undistort` returns it.
        camera_matrix: ``(..., 3, 3)``, of the camera with the lens, whose image is the result; as in `undistort`.
        distortion: ``(..., n)``, as in `undistort`.
        output_shape, sampler, filter, address, border_color, antialias, dtype: as in `resample`.
        new_camera_matrix: ``(..., 3, 3)``, of the ideal camera that took `image`; by default `camera_matrix`.

    Returns:
        ``(..., *output_shape, C)``. A pixel at which the lens shows nothing, see `undistort_points`, reads far outside
        the image.

    Gradients: to image, both matrices, coefficients and border colour, to any order in both modes; see `resample`.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> camera = jnp.array([[4.0, 0.0, 2.0], [0.0, 4.0, 0.5], [0.0, 0.0, 1.0]])
        >>> row = jnp.arange(4.0)[None, :, None]
        >>> jt.warp.distort(row, camera, jnp.array([0.5, 0.0, 0.0, 0.0]))[0, :, 0]
        Array([0.08797801, 1.0038174 , 1.9961824 , 2.912022  ], dtype=float32)
    """
    lens = lens_values("distort", camera_matrix, distortion, new_camera_matrix, 2)
    shape = spatial_shape("distort", image, output_shape, 2)
    # Coordinates that take a while to find are found once, not wherever they are looked at.
    coords, sides = field(lambda x, y: to_ideal(*alike(x, y, *lens)), shape, antialias)
    options = read_options(
        "distort", sampler, filter, address, border_color=border_color, antialias=antialias, dtype=dtype
    )
    return warp_image("distort", image, given, coords, shape, options, sides)


@compiled()
def distort_points(
    coords: tuple[Any, ...], camera_matrix: Any, distortion: Any, *, new_camera_matrix: Any = None
) -> Arrays:
    """Where a lens shows the points of an ideal image.

    Args:
        coords: ``(x, y)``, in pixels of the ideal image, numbers that broadcast with each other and with the leading
            axes of the camera to a shape S.
        camera_matrix: ``(..., 3, 3)``, of the camera with the lens, as in `undistort`.
        distortion: ``(..., n)``, as in `undistort`.
        new_camera_matrix: ``(..., 3, 3)``, of the ideal camera; by default `camera_matrix`.

    Returns:
        ``(x, y)``, two arrays of shape S, in pixels of the camera with the lens; float32, or float64 if an argument is.

    Gradients: to any order in both modes, to all arguments.

    Raises:
        ValueError: if shapes do not fit.
        TypeError: if an argument holds no numbers, or `coords` is one stacked array.

    Source: `cv2.projectPoints`, of points at depth 1.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> camera = jnp.array([[100.0, 0.0, 50.0], [0.0, 100.0, 50.0], [0.0, 0.0, 1.0]])
        >>> jt.warp.distort_points((100.0, 50.0), camera, jnp.array([-0.2, 0.0, 0.0, 0.0]))
        (Array(97.5, dtype=float32), Array(50., dtype=float32))
    """
    return along_points("distort_points", to_distorted, coords, camera_matrix, distortion, new_camera_matrix)


@compiled()
def undistort_points(
    coords: tuple[Any, ...], camera_matrix: Any, distortion: Any, *, new_camera_matrix: Any = None
) -> Arrays:
    """Which points of an ideal image a lens shows at given places: the inverse of `distort_points`.

    Args:
        coords: ``(x, y)``, in pixels of the camera with the lens, numbers that broadcast with each other and with the
            leading axes of the camera to a shape S.
        camera_matrix: ``(..., 3, 3)``, of the camera with the lens, as in `undistort`.
        distortion: ``(..., n)``, as in `undistort`.
        new_camera_matrix: ``(..., 3, 3)``, of the ideal camera; by default `camera_matrix`.

    Returns:
        ``(x, y)``, two arrays of shape S, in pixels of the ideal camera; float32, or float64 if an argument is. Where
        the model folds, at strong negative coefficients, there are places where it shows nothing: infinite, with the
        signs of the way from the centre.

    Gradients: to any order in both modes, to all arguments; zero where the result is infinite. They are those of the
    solution, by the implicit function theorem, not of the steps to it.

    Precision: that of the dtype; near a fold, where the solution turns steep, less.

    Raises:
        ValueError: if shapes do not fit.
        TypeError: if an argument holds no numbers, or `coords` is one stacked array.

    Source: `cv2.undistortImagePoints`, which takes fixed-point steps.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> camera = jnp.array([[100.0, 0.0, 50.0], [0.0, 100.0, 50.0], [0.0, 0.0, 1.0]])
        >>> jt.warp.undistort_points((97.5, 50.0), camera, jnp.array([-0.2, 0.0, 0.0, 0.0]))
        (Array(100., dtype=float32), Array(50., dtype=float32))
    """
    return along_points("undistort_points", to_ideal, coords, camera_matrix, distortion, new_camera_matrix)


# Arguments


def lens_values(name: str, camera: Any, distortion: Any, ideal: Any, ndim: int) -> Arrays:
    """What the coordinate functions below take after a point: fx, cx, fy, cy of both cameras, and the coefficients."""
    camera = as_matrix(name, camera, ((3, 3),), "camera_matrix")
    ideal = camera if ideal is None else as_matrix(name, ideal, ((3, 3),), "new_camera_matrix")
    distortion = as_float(distortion)
    if distortion.ndim < 1 or distortion.shape[-1] not in COEFFICIENT_COUNTS:
        raise ValueError(
            f"{name}: distortion has shape {distortion.shape}, expected (..., n) with n = 4, 5 or 8: k1, k2, p1, p2, "
            f"then k3, then k4, k5, k6; pad it with zeros."
        )
    values = []
    for matrix in (camera, ideal):
        fx, _, cx, _, fy, cy, *_ = rows(matrix, ndim)
        values += fx, cx, fy, cy
    return *values, *rows(distortion[..., None, :], ndim)


def along_points(name: str, function: Callable[..., Arrays], coords: Any, *lens: Any) -> Arrays:
    """A coordinate function at the caller's points."""
    if not isinstance(coords, tuple | list):
        raise TypeError(stacked_coords(name, "coords", coords))
    if len(coords) != 2:
        raise ValueError(f"{name}: coords has {len(coords)} arrays, expected (x, y).")
    values = lens_values(name, *lens, ndim=0)
    operands = (*(as_float(check_number(name, "coords", c)) for c in coords), *values)
    try:
        shape = jnp.broadcast_shapes(*(a.shape for a in operands))
    except ValueError:
        raise ValueError(
            f"{name}: the arrays of coords have shapes {[c.shape for c in operands[:2]]}, which do not broadcast with "
            f"the cameras' leading axes {jnp.broadcast_shapes(*(a.shape for a in values))}; give many points of "
            f"each camera as camera_matrix[:, None]."
        ) from None
    return tuple(jnp.broadcast_to(c, shape) for c in function(*alike(*operands)))


# From points to points, element by element


def to_distorted(x: jax.Array, y: jax.Array, *values: jax.Array) -> Arrays:
    """The pixel at which the lens shows an ideal pixel."""
    camera, ideal, coefficients = split(values)
    return pixel(*bent(*ray(x, y, *ideal), *coefficients), *camera)


def to_ideal(x: jax.Array, y: jax.Array, *values: jax.Array) -> Arrays:
    """The ideal pixel that the lens shows at a pixel."""
    camera, ideal, coefficients = split(values)
    found = straightened(*ray(x, y, *camera), *coefficients)
    shown = jnp.isfinite(found[0])
    # No infinity meets a focal length, whose derivative would be infinite times zero.
    point = pixel(*(jnp.where(shown, c, 0) for c in found), *ideal)
    return tuple(jnp.where(shown, p, c) for p, c in zip(point, found))


def split(values: Arrays) -> tuple[Arrays, Arrays, Arrays]:
    return values[:CAMERA_VALUES], values[CAMERA_VALUES : 2 * CAMERA_VALUES], values[2 * CAMERA_VALUES :]


def ray(x: jax.Array, y: jax.Array, fx: jax.Array, cx: jax.Array, fy: jax.Array, cy: jax.Array) -> Arrays:
    return (x - cx) / fx, (y - cy) / fy


def pixel(x: jax.Array, y: jax.Array, fx: jax.Array, cx: jax.Array, fy: jax.Array, cy: jax.Array) -> Arrays:
    return x * fx + cx, y * fy + cy


def bent(
    x: jax.Array, y: jax.Array, k1: jax.Array, k2: jax.Array, p1: jax.Array, p2: jax.Array, *more: jax.Array
) -> Arrays:
    """A ray behind the lens."""
    r2 = x * x + y * y
    radial = series(r2, (k1, k2, *more[:1]))
    if more[1:]:
        radial = radial / series(r2, more[1:])
    xy = 2 * x * y
    return x * radial + p1 * xy + p2 * (r2 + 2 * x * x), y * radial + p1 * (r2 + 2 * y * y) + p2 * xy


def series(r2: jax.Array, coefficients: Sequence[jax.Array]) -> jax.Array:
    """``1 + c0 r2 + c1 r2^2 + ...``"""
    return 1 + functools.reduce(lambda total, c: (total + c) * r2, reversed(coefficients), jnp.zeros_like(r2))


@jax.custom_jvp
def straightened(x: jax.Array, y: jax.Array, *coefficients: jax.Array) -> Arrays:
    """The ray that `bent` takes to ``(x, y)``, on the near side of the lens' fold; infinite where there is none.

    Newton's method from the centre, where a lens bends nothing. A step that leads behind the fold, where the image is
    turned over, is halved.
    """
    shape = jnp.broadcast_shapes(*(a.shape for a in (x, y, *coefficients)))
    target = tuple(jnp.broadcast_to(c, shape) for c in (x, y))
    centre = tuple(map(jnp.zeros_like, target))

    def improved(_, state):
        ray, missed, step = state
        trial = ray[0] + step[0], ray[1] + step[1]
        point, slopes = slopes_of(*trial, coefficients)
        (a, b), (c, d) = slopes
        near = (a * d - b * c > 0) & (a + d > 0)
        if_near = lambda new, old: tuple(jnp.where(near, n, o) for n, o in zip(new, old))
        rest = x - point[0], y - point[1]
        step = if_near(solved(*slopes, *rest), (0.5 * step[0], 0.5 * step[1]))
        return if_near(trial, ray), if_near(rest, missed), step

    # A loop, not ten steps in a row, which XLA would compute again for everything that looks at the result.
    ray, missed, _ = jax.lax.fori_loop(0, NEWTON_STEPS, improved, (centre, target, target))
    found = missed[0] ** 2 + missed[1] ** 2 <= SOLVED**2 * (1 + x * x + y * y)
    return tuple(jnp.where(found, r, jnp.copysign(jnp.inf, p)) for r, p in zip(ray, target))


@straightened.defjvp
def straightened_jvp(primals: Arrays, tangents: Arrays) -> tuple[Arrays, Arrays]:
    """Of ``bent(u, k) = p`` follows ``J du + (d bent / dk) dk = dp``, where J is the derivative of `bent` in u.

    Source: the implicit function theorem. The rule calls the function itself, so that it holds for every order.
    """
    (_, _, *coefficients), (dx, dy, *changes) = primals, tangents
    ray = straightened(*primals)
    found = jnp.isfinite(ray[0])
    u, v = (jnp.where(found, c, 0) for c in ray)
    _, slopes = slopes_of(u, v, coefficients)
    _, by_lens = jax.jvp(lambda *k: bent(u, v, *k), coefficients, changes)
    du, dv = solved(*slopes, dx - by_lens[0], dy - by_lens[1])
    return ray, tuple(jnp.where(found, d, 0) for d in (du, dv))


def slopes_of(u: jax.Array, v: jax.Array, coefficients: Sequence[jax.Array]) -> tuple[Arrays, tuple[Arrays, Arrays]]:
    """`bent` and its derivatives along u and along v."""
    lens = lambda u, v: bent(u, v, *coefficients)
    zero, one = jnp.zeros_like(u), jnp.ones_like(u)
    point, along_u = jax.jvp(lens, (u, v), (one, zero))
    _, along_v = jax.jvp(lens, (u, v), (zero, one))
    return point, (along_u, along_v)


def solved(first: Arrays, second: Arrays, x: jax.Array, y: jax.Array) -> Arrays:
    """How much of two columns makes (x, y); nothing where they do not span the plane."""
    (a, c), (b, d) = first, second
    determinant = a * d - b * c
    spans = determinant != 0
    scale = jnp.where(spans, 1 / jnp.where(spans, determinant, 1), 0)
    return (d * x - b * y) * scale, (a * y - c * x) * scale
