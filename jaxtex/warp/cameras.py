"""Conversions between the pixels of two cameras, one with a lens and one without distortion, by way of rays.

A pinhole camera maps a ray ``(x, y)`` to the point ``(fx x + cx, fy y + cy)``. A lens distorts rays. All functions are
elementwise. Their parameters are fx, cx, fy, cy of the camera with the lens, the same four of the ideal camera, and the
coefficients of the lens.
"""

# pyright: strict, reportUnknownMemberType=false

from collections.abc import Callable

import jax
import jax.numpy as jnp

from .types import Arrays

CAMERA_VALUES = 4
# Takes x and y of a ray, or of what a lens makes of one, and the coefficients; returns the other.
RayFunction = Callable[..., Arrays]


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
