"""The Brown-Conrady lens model, for all but the widest angles.

With ``r2 = x^2 + y^2``, the radial factor ``L = (1 + k1 r2 + k2 r2^2 + k3 r2^3) / (1 + k4 r2 + k5 r2^2 + k6 r2^3)`` and
the tangential coefficients p1, p2, the lens maps a ray ``(x, y)`` to

    x' = x L + 2 p1 x y + p2 (r2 + 2 x^2)
    y' = y L + p1 (r2 + 2 y^2) + 2 p2 x y

The parameters are those that `cameras` lists. The coefficients are in OpenCV's order: k1, k2, p1, p2, then k3, then k4,
k5, k6.

Source: D. C. Brown, "Decentering Distortion of Lenses", 1966.
"""

# pyright: strict, reportUnknownMemberType=false

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from .cameras import pixel_back_through, pixel_through
from .lens_solution import solved
from .types import Arrays


def to_distorted(x: jax.Array, y: jax.Array, *values: jax.Array) -> Arrays:
    """The pixel at which the lens shows a pixel of the ideal image."""
    return pixel_through(distorted, x, y, *values)


def to_ideal(x: jax.Array, y: jax.Array, *values: jax.Array) -> Arrays:
    """The pixel of the ideal image that the lens shows at a pixel."""
    return pixel_back_through(undistorted, x, y, *values)


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


def undistorted(x: jax.Array, y: jax.Array, *coefficients: jax.Array) -> Arrays:
    """The ray that `distorted` maps to ``(x, y)``, on the near side of the fold; infinite where there is none."""
    return solved(distorted, x, y, *coefficients)
