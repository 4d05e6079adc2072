"""Lens models: the bending of rays by a lens, and conversions between pixels of a real and an ideal camera.

A pinhole camera maps a ray ``(x, y)`` to the point ``(fx x + cx, fy y + cy)``. A lens distorts rays first. A lens model
is a row of `LENS_MODELS`: two functions of rays. All functions are elementwise.

Brown and Conrady's model is for all but the widest angles. With ``r2 = x^2 + y^2``, the radial factor
``L = (1 + k1 r2 + k2 r2^2 + k3 r2^3) / (1 + k4 r2 + k5 r2^2 + k6 r2^3)`` and the tangential coefficients p1, p2, the
lens maps a ray ``(x, y)`` to

    x' = x L + 2 p1 x y + p2 (r2 + 2 x^2)
    y' = y L + p1 (r2 + 2 y^2) + 2 p2 x y

Kannala and Brandt's model is for fisheye lenses. A ray at an angle t from the axis of the camera appears at the radius
``t (1 + k1 t^2 + k2 t^4 + k3 t^6 + k4 t^8)``, in units of the focal length, in its direction. In a pinhole camera the
radius is tan t.

Source: D. C. Brown, "Decentering Distortion of Lenses", 1966, with OpenCV's order of coefficients; J. Kannala and
S. S. Brandt, "A generic camera model and calibration method for conventional, wide-angle, and fish-eye lenses", 2006,
without its terms for asymmetry, as in `cv2.fisheye`.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp

from .._jax.indexing import as_sum_of
from .._jax.shapes import broadcast_shapes
from ..modes import OptionEnum
from .coordinate_functions import Arrays, GridFunction

# Maps a ray's x and y on one side of a lens, and the coefficients of the lens, to the ray on the other side.
RayFunction: TypeAlias = Callable[..., Arrays]
CAMERA_VALUES = 4
# Below this squared angle or radius, a series replaces the quotient of two small numbers.
SMALL = 2.0**-10
# atan(r) / r and tan(t) / t as series in r^2 and t^2. The first term left out is below 2^-60.
ARC_TANGENT_SERIES = (-1 / 3, 1 / 5, -1 / 7, 1 / 9, -1 / 11)
TANGENT_SERIES = (1 / 3, 2 / 15, 17 / 315, 62 / 2835, 1382 / 155925)
# Newton's method doubles the digits in each step. Ordinary lenses take five steps; the others are for points near the
# fold, where two solutions meet and a step halves the error.
NEWTON_STEPS = 10
# The largest residual of a solution, in units of the focal length.
LARGEST_RESIDUAL = 2.0**-16


# Cameras. The parameters of both functions are fx, cx, fy, cy of the camera with the lens, the same four of the ideal
# camera, and the coefficients of the lens.


def pixel_through(lens: RayFunction, x: jax.Array, y: jax.Array, *values: jax.Array) -> Arrays:
    """The pixel at which a lens shows a pixel of the ideal image."""
    camera, ideal, coefficients = split(values)
    return pixel(*lens(*ray(x, y, *ideal), *coefficients), *camera)


def pixel_back_through(inverse: RayFunction, x: jax.Array, y: jax.Array, *values: jax.Array) -> Arrays:
    """The pixel of the ideal image that a lens shows at a pixel.

    Args:
        inverse: of the lens; infinite where no ray leads to the pixel.
    """
    camera, ideal, coefficients = split(values)
    found = inverse(*ray(x, y, *camera), *coefficients)
    exists = jnp.isfinite(found[0])
    # The derivative with respect to a focal length would be infinity times zero at an infinite ray.
    point = pixel(*(jnp.where(exists, c, 0) for c in found), *ideal)
    return tuple(jnp.where(exists, p, c) for p, c in zip(point, found))


def split(values: Arrays) -> tuple[Arrays, Arrays, Arrays]:
    """The values of both cameras, and the coefficients."""
    return values[:CAMERA_VALUES], values[CAMERA_VALUES : 2 * CAMERA_VALUES], values[2 * CAMERA_VALUES :]


def ray(x: jax.Array, y: jax.Array, fx: jax.Array, cx: jax.Array, fy: jax.Array, cy: jax.Array) -> Arrays:
    return (x - cx) / fx, (y - cy) / fy


def pixel(x: jax.Array, y: jax.Array, fx: jax.Array, cx: jax.Array, fy: jax.Array, cy: jax.Array) -> Arrays:
    return x * fx + cx, y * fy + cy


# Brown and Conrady's model


def distorted(
    x: jax.Array, y: jax.Array, k1: jax.Array, k2: jax.Array, p1: jax.Array, p2: jax.Array, *others: jax.Array
) -> Arrays:
    """A ray behind the lens."""
    r2 = x * x + y * y
    radial = polynomial(r2, (k1, k2, *others[:1]))
    if others[1:]:
        radial = radial / polynomial(r2, others[1:])
    xy = 2 * x * y
    return x * radial + p1 * xy + p2 * (r2 + 2 * x * x), y * radial + p1 * (r2 + 2 * y * y) + p2 * xy


def polynomial(r2: jax.Array, coefficients: Sequence[jax.Array]) -> jax.Array:
    """``1 + c0 r2 + c1 r2^2 + ...``"""
    return 1 + functools.reduce(lambda total, c: (total + c) * r2, reversed(coefficients), jnp.zeros_like(r2))


def undistorted(x: jax.Array, y: jax.Array, *coefficients: jax.Array) -> Arrays:
    """The inverse of `distorted`, on the near side of the fold; infinite where no ray leads to ``(x, y)``."""
    return solved(distorted, x, y, *coefficients)


# Kannala and Brandt's model. A ray is represented by its angle, as a vector of two components, which the lens scales by
# a polynomial, and `solved` inverts.


def distorted_by_fisheye(x: jax.Array, y: jax.Array, *coefficients: jax.Array) -> Arrays:
    """A ray behind the lens."""
    return bent(*scaled(x, y, jnp.arctan, ARC_TANGENT_SERIES), *coefficients)


def undistorted_by_fisheye(x: jax.Array, y: jax.Array, *coefficients: jax.Array) -> Arrays:
    """The ray that the lens maps to ``(x, y)``; infinite where there is none in front of the camera."""
    a, b = solved(bent, x, y, *coefficients)
    in_front = a**2 + b**2 < (math.pi / 2) ** 2
    ray = scaled(jnp.where(in_front, a, 0), jnp.where(in_front, b, 0), jnp.tan, TANGENT_SERIES)
    return tuple(jnp.where(in_front, r, jnp.copysign(jnp.inf, c)) for r, c in zip(ray, (x, y)))


def bent(a: jax.Array, b: jax.Array, *coefficients: jax.Array) -> Arrays:
    """The two components of an angle, scaled by the polynomial of the lens."""
    factor = polynomial(a * a + b * b, coefficients)
    return a * factor, b * factor


def scaled(x: jax.Array, y: jax.Array, function: Callable[[jax.Array], jax.Array], series: Sequence[float]) -> Arrays:
    """A vector of length r as one of length ``function(r)``, in the same direction.

    Args:
        series: of ``function(r) / r`` in r^2, without its first term, 1.
    """
    r2 = x * x + y * y
    small = r2 < SMALL
    r = jnp.sqrt(jnp.where(small, 1, r2))  # so that derivatives at the center are exact, too
    near = polynomial(r2, [jnp.asarray(c, r2.dtype) for c in series])
    factor = jnp.where(small, near, function(r) / r)
    return x * factor, y * factor


# The inverse of a lens by Newton's method, and its derivatives. A lens that bends strongly inwards folds the plane:
# beyond a radius, the fold, the images of rays move back towards the center. The inverse is the ray on the near side of
# the fold. Points beyond the image of the fold have no ray.


def solved(model: RayFunction, x: jax.Array, y: jax.Array, *coefficients: jax.Array) -> Arrays:
    """The ray that a lens maps to ``(x, y)``, on the near side of the fold; infinite where there is none."""
    return cast(Arrays, newton_solution(model, x, y, *coefficients))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def newton_solution(model: RayFunction, x: jax.Array, y: jax.Array, *coefficients: jax.Array) -> Arrays:
    """`solved`, with a rule for its derivatives.

    Newton's method starts at the center, where a lens distorts nothing. A step across the fold, where the image is
    mirrored, is halved.
    """
    shape = broadcast_shapes(*(a.shape for a in (x, y, *coefficients)))
    target = tuple(as_sum_of(jnp.broadcast_to(c, shape), x, y, *coefficients) for c in (x, y))
    center = tuple(jnp.zeros_like(c) for c in target)

    def improved(_: jax.Array, state: tuple[Arrays, Arrays, Arrays]) -> tuple[Arrays, Arrays, Arrays]:
        ray, residual, step = state
        trial = ray[0] + step[0], ray[1] + step[1]
        point, slopes = slopes_at(model, *trial, coefficients)
        (a, b), (c, d) = slopes
        near = (a * d - b * c > 0) & (a + d > 0)

        def if_near(new: Arrays, old: Arrays) -> Arrays:
            return tuple(jnp.where(near, n, o) for n, o in zip(new, old))

        rest = x - point[0], y - point[1]
        step = if_near(solution(*slopes, *rest), (0.5 * step[0], 0.5 * step[1]))
        return if_near(trial, ray), if_near(rest, residual), step

    # XLA would repeat ten unrolled steps for every use of the result; it computes a loop once.
    start = (center, target, target)
    ray, residual, _ = cast(tuple[Arrays, Arrays, Arrays], jax.lax.fori_loop(0, NEWTON_STEPS, improved, start))
    found = residual[0] ** 2 + residual[1] ** 2 <= LARGEST_RESIDUAL**2 * (1 + x * x + y * y)
    return tuple(jnp.where(found, r, jnp.copysign(jnp.inf, p)) for r, p in zip(ray, target))


@cast(Any, newton_solution).defjvp
def newton_solution_jvp(model: RayFunction, primals: Arrays, tangents: Arrays) -> tuple[Arrays, Arrays]:
    """From ``model(u, k) = p`` follows ``J du + (d model / dk) dk = dp``, with J the derivative in u.

    Source: the implicit function theorem. The rule calls the function itself, so that it holds for every order.
    """
    (_, _, *coefficients), (dx, dy, *changes) = primals, tangents
    ray = solved(model, *primals)
    found = jnp.isfinite(ray[0])
    u, v = (jnp.where(found, c, 0) for c in ray)
    _, slopes = slopes_at(model, u, v, coefficients)
    _, by_coefficients = jax.jvp(functools.partial(model, u, v), coefficients, changes)
    du, dv = solution(*slopes, dx - by_coefficients[0], dy - by_coefficients[1])
    return ray, tuple(jnp.where(found, d, 0) for d in (du, dv))


def slopes_at(
    model: RayFunction, u: jax.Array, v: jax.Array, coefficients: Sequence[jax.Array]
) -> tuple[Arrays, tuple[Arrays, Arrays]]:
    """`model` and its derivatives along u and along v."""

    def of_ray(u: jax.Array, v: jax.Array) -> Arrays:
        return model(u, v, *coefficients)

    zero, one = jnp.zeros_like(u), jnp.ones_like(u)
    point, along_u = jax.jvp(of_ray, (u, v), (one, zero))
    _, along_v = jax.jvp(of_ray, (u, v), (zero, one))
    return point, (along_u, along_v)


def solution(first: Arrays, second: Arrays, x: jax.Array, y: jax.Array) -> Arrays:
    """The factors of two columns whose sum is (x, y); zero where the columns are linearly dependent."""
    (a, c), (b, d) = first, second
    determinant = a * d - b * c
    independent = determinant != 0
    scale = jnp.where(independent, 1 / jnp.where(independent, determinant, 1), 0)
    return (d * x - b * y) * scale, (a * y - c * x) * scale


# The models, by name


class LensModel(OptionEnum):
    """How a lens bends rays."""

    BROWN_CONRADY = "brown_conrady"
    FISHEYE = "fisheye"


LensModelLike = LensModel | Literal["brown_conrady", "fisheye"]


class LensFunctions(NamedTuple):
    """A lens model.

    Attributes:
        to_distorted, to_ideal: pixels of the ideal image to pixels of the camera with the lens, and back; coordinate
            functions.
        counts: how many coefficients a lens may have.
        names: of the coefficients, for errors.
    """

    to_distorted: GridFunction
    to_ideal: GridFunction
    counts: tuple[int, ...]
    names: str

    @classmethod
    def of(cls, lens: RayFunction, inverse: RayFunction, counts: tuple[int, ...], names: str) -> "LensFunctions":
        """The model of a lens and its inverse."""
        to_distorted = functools.partial(pixel_through, lens)
        return cls(to_distorted, functools.partial(pixel_back_through, inverse), counts, names)


LENS_MODELS = {
    LensModel.BROWN_CONRADY: LensFunctions.of(
        distorted, undistorted, (4, 5, 8), "k1, k2, p1, p2, then k3, then k4, k5, k6"
    ),
    LensModel.FISHEYE: LensFunctions.of(distorted_by_fisheye, undistorted_by_fisheye, (4,), "k1, k2, k3, k4"),
}
