"""The Brown-Conrady model of a lens, and its inverse by Newton's method.

A point of an image, less the center and divided by the focal length, is a ray ``(x, y)`` of a pinhole camera. A lens
distorts rays. With ``r2 = x^2 + y^2``, the radial factor ``L = (1 + k1 r2 + k2 r2^2 + k3 r2^3) / (1 + k4 r2 + k5 r2^2 +
k6 r2^3)`` and the tangential coefficients p1, p2:

    x' = x L + 2 p1 x y + p2 (r2 + 2 x^2)
    y' = y L + p1 (r2 + 2 y^2) + 2 p2 x y

A lens with strong negative coefficients folds the plane: beyond a radius, the fold, the image of a ray moves back
towards the center. The inverse is the ray on the near side of the fold. No ray exists for a point beyond the image of
the fold.

All functions are elementwise. Their parameters are fx, cx, fy, cy of the camera with the lens, the same of the ideal
camera, and the coefficients in OpenCV's order: k1, k2, p1, p2, then k3, then k4, k5, k6.

Source: D. C. Brown, "Decentering Distortion of Lenses", 1966.
"""

# pyright: strict, reportUnknownMemberType=false

import functools
from collections.abc import Sequence
from typing import cast

import jax
import jax.numpy as jnp

from .types import Arrays

CAMERA_VALUES = 4
# Newton's method doubles the digits in each step. Ordinary lenses take five steps; the others are for points near the
# fold, where two solutions meet and a step halves the error.
NEWTON_STEPS = 10
# In units of the focal length. A solution with a larger residual is none.
LARGEST_RESIDUAL = 2.0**-16


def to_distorted(x: jax.Array, y: jax.Array, *values: jax.Array) -> Arrays:
    """The pixel at which the lens shows a pixel of the ideal image."""
    camera, ideal, coefficients = split(values)
    return pixel(*distorted(*ray(x, y, *ideal), *coefficients), *camera)


def to_ideal(x: jax.Array, y: jax.Array, *values: jax.Array) -> Arrays:
    """The pixel of the ideal image that the lens shows at a pixel."""
    camera, ideal, coefficients = split(values)
    found = undistorted(*ray(x, y, *camera), *coefficients)
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


def distorted(
    x: jax.Array, y: jax.Array, k1: jax.Array, k2: jax.Array, p1: jax.Array, p2: jax.Array, *others: jax.Array
) -> Arrays:
    """A ray after the lens."""
    r2 = x * x + y * y
    radial = polynomial(r2, (k1, k2, *others[:1]))
    if others[1:]:
        radial = radial / polynomial(r2, others[1:])
    xy = 2 * x * y
    return x * radial + p1 * xy + p2 * (r2 + 2 * x * x), y * radial + p1 * (r2 + 2 * y * y) + p2 * xy


def polynomial(r2: jax.Array, coefficients: Sequence[jax.Array]) -> jax.Array:
    """``1 + c0 r2 + c1 r2^2 + ...``"""
    return 1 + functools.reduce(lambda total, c: (total + c) * r2, reversed(coefficients), jnp.zeros_like(r2))


@jax.custom_jvp
def undistorted(x: jax.Array, y: jax.Array, *coefficients: jax.Array) -> Arrays:
    """The ray that `distorted` maps to ``(x, y)``, on the near side of the fold; infinite where there is none.

    Newton's method starts at the center, where a lens distorts nothing. A step across the fold, where the image is
    mirrored, is halved.
    """
    shape = jnp.broadcast_shapes(*(a.shape for a in (x, y, *coefficients)))
    target = tuple(jnp.broadcast_to(c, shape) for c in (x, y))
    center = tuple(jnp.zeros_like(c) for c in target)

    def improved(_: jax.Array, state: tuple[Arrays, Arrays, Arrays]) -> tuple[Arrays, Arrays, Arrays]:
        ray, residual, step = state
        trial = ray[0] + step[0], ray[1] + step[1]
        point, slopes = slopes_at(*trial, coefficients)
        (a, b), (c, d) = slopes
        near = (a * d - b * c > 0) & (a + d > 0)

        def if_near(new: Arrays, old: Arrays) -> Arrays:
            return tuple(jnp.where(near, n, o) for n, o in zip(new, old))

        rest = x - point[0], y - point[1]
        step = if_near(solution(*slopes, *rest), (0.5 * step[0], 0.5 * step[1]))
        return if_near(trial, ray), if_near(rest, residual), step

    # XLA would compute ten steps in a row again for every use of the result; it computes a loop once.
    start = (center, target, target)
    ray, residual, _ = cast(tuple[Arrays, Arrays, Arrays], jax.lax.fori_loop(0, NEWTON_STEPS, improved, start))
    found = residual[0] ** 2 + residual[1] ** 2 <= LARGEST_RESIDUAL**2 * (1 + x * x + y * y)
    return tuple(jnp.where(found, r, jnp.copysign(jnp.inf, p)) for r, p in zip(ray, target))


@undistorted.defjvp
def undistorted_jvp(primals: Arrays, tangents: Arrays) -> tuple[Arrays, Arrays]:
    """From ``distorted(u, k) = p`` follows ``J du + (d distorted / dk) dk = dp``, with J the derivative in u.

    Source: the implicit function theorem. The rule calls the function itself, so that it holds for every order.
    """
    (_, _, *coefficients), (dx, dy, *changes) = primals, tangents
    ray = undistorted(*primals)
    found = jnp.isfinite(ray[0])
    u, v = (jnp.where(found, c, 0) for c in ray)
    _, slopes = slopes_at(u, v, coefficients)
    _, by_coefficients = jax.jvp(functools.partial(distorted, u, v), coefficients, changes)
    du, dv = solution(*slopes, dx - by_coefficients[0], dy - by_coefficients[1])
    return ray, tuple(jnp.where(found, d, 0) for d in (du, dv))


def slopes_at(u: jax.Array, v: jax.Array, coefficients: Sequence[jax.Array]) -> tuple[Arrays, tuple[Arrays, Arrays]]:
    """`distorted` and its derivatives along u and along v."""

    def of_ray(u: jax.Array, v: jax.Array) -> Arrays:
        return distorted(u, v, *coefficients)

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
