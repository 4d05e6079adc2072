"""The inverse of a lens by Newton's method, and its derivatives.

A lens that bends strongly inwards folds the plane: beyond a radius, the fold, the images of rays move back towards the
center. The inverse is the ray on the near side of the fold. Points beyond the image of the fold have no ray.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp

from .coordinate_functions import Arrays

# Maps a ray's x and y, and the coefficients of a lens, to x and y behind it; the identity near the center.
LensModel = Callable[..., Arrays]

# Newton's method doubles the digits in each step. Ordinary lenses take five steps; the others are for points near the
# fold, where two solutions meet and a step halves the error.
NEWTON_STEPS = 10
# The largest residual of a solution, in units of the focal length.
LARGEST_RESIDUAL = 2.0**-16


def solved(model: LensModel, x: jax.Array, y: jax.Array, *coefficients: jax.Array) -> Arrays:
    """The ray that a lens maps to ``(x, y)``, on the near side of the fold; infinite where there is none."""
    return cast(Arrays, newton_solution(model, x, y, *coefficients))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def newton_solution(model: LensModel, x: jax.Array, y: jax.Array, *coefficients: jax.Array) -> Arrays:
    """`solved`, with a rule for its derivatives.

    Newton's method starts at the center, where a lens distorts nothing. A step across the fold, where the image is
    mirrored, is halved.
    """
    shape = jnp.broadcast_shapes(*(a.shape for a in (x, y, *coefficients)))
    target = tuple(jnp.broadcast_to(c, shape) for c in (x, y))
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
def newton_solution_jvp(model: LensModel, primals: Arrays, tangents: Arrays) -> tuple[Arrays, Arrays]:
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
    model: LensModel, u: jax.Array, v: jax.Array, coefficients: Sequence[jax.Array]
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
