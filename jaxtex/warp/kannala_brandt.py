"""The Kannala-Brandt model of a fisheye lens.

A ray at an angle t from the axis of the camera is shown at the radius ``t (1 + k1 t^2 + k2 t^4 + k3 t^6 + k4 t^8)``, in
units of the focal length, in the direction that the ray has. A pinhole camera would show it at the radius tan t.

A ray is therefore represented by its angle, as a vector of two components, which the lens scales by a polynomial.
`lens_solution` inverts this model. The parameters are those that `cameras` lists, with the coefficients k1, k2, k3, k4.

Source: J. Kannala and S. S. Brandt, "A generic camera model and calibration method for conventional, wide-angle, and
fish-eye lenses", 2006; without its terms for asymmetry, as `cv2.fisheye` has it.
"""

# pyright: strict, reportUnknownMemberType=false

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from .brown_conrady import polynomial
from .cameras import pixel_back_through, pixel_through
from .lens_solution import solved
from .types import Arrays

# Below this square of an angle or a radius a series takes the place of a quotient of two small numbers.
SMALL = 2.0**-10
# atan(r) / r and tan(t) / t as series in r^2 and t^2. The first term left out is below 2^-60.
ARC_TANGENT_SERIES = (-1 / 3, 1 / 5, -1 / 7, 1 / 9, -1 / 11)
TANGENT_SERIES = (1 / 3, 2 / 15, 17 / 315, 62 / 2835, 1382 / 155925)


def to_distorted(x: jax.Array, y: jax.Array, *values: jax.Array) -> Arrays:
    """The pixel at which the lens shows a pixel of the ideal image."""
    return pixel_through(distorted, x, y, *values)


def to_ideal(x: jax.Array, y: jax.Array, *values: jax.Array) -> Arrays:
    """The pixel of the ideal image that the lens shows at a pixel."""
    return pixel_back_through(undistorted, x, y, *values)


def distorted(x: jax.Array, y: jax.Array, *coefficients: jax.Array) -> Arrays:
    """A ray after the lens."""
    return bent(*scaled(x, y, jnp.arctan, ARC_TANGENT_SERIES), *coefficients)


def undistorted(x: jax.Array, y: jax.Array, *coefficients: jax.Array) -> Arrays:
    """The ray that `distorted` maps to ``(x, y)``; infinite where there is none in front of the camera."""
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
    r = jnp.sqrt(jnp.where(small, 1, r2))  # with derivatives of every order at the center too
    near = polynomial(r2, [jnp.asarray(c, r2.dtype) for c in series])
    factor = jnp.where(small, near, function(r) / r)
    return x * factor, y * factor
