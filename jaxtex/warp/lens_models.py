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
from typing import Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from ..modes import OptionEnum
from .coordinate_functions import Arrays, GridFunction
from .lens_solution import solved

# Maps a ray's x and y on one side of a lens, and the coefficients of the lens, to the ray on the other side.
RayFunction: TypeAlias = Callable[..., Arrays]
CAMERA_VALUES = 4
# Below this squared angle or radius, a series replaces the quotient of two small numbers.
SMALL = 2.0**-10
# atan(r) / r and tan(t) / t as series in r^2 and t^2. The first term left out is below 2^-60.
ARC_TANGENT_SERIES = (-1 / 3, 1 / 5, -1 / 7, 1 / 9, -1 / 11)
TANGENT_SERIES = (1 / 3, 2 / 15, 17 / 315, 62 / 2835, 1382 / 155925)


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
