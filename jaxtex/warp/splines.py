"""Warps by points: the smoothest map of the plane that brings some points to others."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .._arguments import as_float
from ..sampler import Sampler
from .calls import OPTIONS, compiled
from .grids import Arrays, alike, field, given
from .images import warp_image
from .options import read_options
from .shapes import spatial_shape

# A constant, and one coefficient each for x and y.
AFFINE_TERMS = 3


@compiled("output_shape", *OPTIONS)
def thin_plate_spline(
    image: Any,
    source_points: Any,
    target_points: Any,
    output_shape: Sequence[int] | None = None,
    sampler: Sampler | None = None,
    *,
    regularization: Any = 0.0,
    filter: Any = None,
    address: Any = None,
    border_color: Any = None,
    antialias: bool = False,
    dtype: Any = None,
) -> jax.Array:
    """Warps images such that what is at some points comes to others, bending as little as possible between.

    A pixel of the output at q shows the input at ``f(q) = a + B q + sum_i w_i U(|q - target_i|)``, where ``U(r) = r^2
    log r`` and ``f(target_i) = source_i``. Among all such maps f has the least integral of squared second derivatives.

    Args:
        image: ``(..., H, W, C)``, as in `resample`.
        source_points: ``(..., P, 2)``, points of the image, x before y, in pixels from the top left corner, pixel
            centres at +0.5. Leading axes broadcast with those of the image.
        target_points: ``(..., P, 2)``, where they come to in the output, at least three that are not on one line, and
            no two the same.
        output_shape, sampler, filter, address, border_color, antialias, dtype: as in `resample`.
        regularization: a number of at least 0, or an array of leading axes, in squared pixels: how far f may miss the
            points to bend less. Far above the square of the points' distances, f is the affine map that fits best.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: to image, points, regularization and border colour, to any order in both modes; see `resample`. The
    second derivative of U at a target point, which is infinite, counts as zero. Reverse mode keeps no array for each
    point.

    Precision: in float32 within 2e-4 pixels for 25 points, and 1e-3 for 400, spread over 512 pixels, where neighbours
    move alike. Points that are close together and move apart cost digits; points in float64 have them.

    Raises:
        ValueError: if shapes do not fit, or there are fewer than three points.

    Source: F. L. Bookstein, "Principal Warps: Thin-Plate Splines and the Decomposition of Deformations", 1989.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.arange(4.0)[None, :, None]
        >>> points = jnp.array([[0.0, 0.0], [4.0, 0.0], [0.0, 1.0]])
        >>> jnp.round(jt.warp.thin_plate_spline(image, points, points + jnp.array([1.0, 0.0])), 3)[0, :, 0]
        Array([0., 0., 1., 2.], dtype=float32)
    """
    name = "thin_plate_spline"
    source, target = check_points(name, source_points, target_points)
    shape = spatial_shape(name, image, output_shape, 2)
    values = spline(source, target, as_float(regularization))
    coords, sides = field(lambda x, y: on_spline(x, y, *values), shape, antialias)
    options = read_options(name, sampler, filter, address, border_color, antialias, dtype)
    return warp_image(name, image, given, coords, shape, options, sides)


def check_points(name: str, source_points: Any, target_points: Any) -> tuple[jax.Array, jax.Array]:
    source, target = as_float(source_points), as_float(target_points)
    for argument, points in (("source_points", source), ("target_points", target)):
        if points.ndim < 2 or points.shape[-1] != 2 or points.shape[-2] < AFFINE_TERMS:
            raise ValueError(
                f"{name}: {argument} has shape {points.shape}, expected (..., P, 2), at least three points, x before y."
            )
    if source.shape[-2] != target.shape[-2]:
        raise ValueError(
            f"{name}: source_points has shape {source.shape} and target_points {target.shape}, expected as many points."
        )
    return source, target


def spline(source: jax.Array, target: jax.Array, regularization: jax.Array) -> Arrays:
    """What `on_spline` takes after a point: the frame of the knots, their places in it, and the coefficients.

    All is solved for the steps from target to source, in a frame in which the knots are about 1 from the middle. The
    spline is the same in every frame, so that no derivative goes to it: what ``log`` makes of a scale is a multiple of
    r^2, and such terms cancel but for affine ones.
    """
    source, target, regularization = alike(source, target, regularization[..., None, None])
    middle = jax.lax.stop_gradient(target.mean(-2, keepdims=True))
    scale = jax.lax.stop_gradient(jnp.sqrt(((target - middle) ** 2).sum(-1, keepdims=True).mean(-2, keepdims=True)))
    scale = jnp.where(scale > 0, scale, 1)
    knots = (target - middle) / scale
    apart = knots[..., :, None, :] - knots[..., None, :, :]
    weight, identity = alike(regularization / scale**2, jnp.eye(knots.shape[-2], dtype=knots.dtype))
    bending = radial((apart**2).sum(-1)) + weight * identity
    affine = jnp.concatenate([jnp.ones_like(knots[..., :1]), knots], -1)
    steps = source - target
    batch = jnp.broadcast_shapes(bending.shape[:-2], steps.shape[:-2])
    whole = lambda a: jnp.broadcast_to(a, (*batch, *a.shape[-2:]))
    bending, affine, steps = map(whole, (bending, affine, steps))
    upper = jnp.concatenate([bending, affine], -1)
    lower = jnp.concatenate([jnp.swapaxes(affine, -1, -2), jnp.zeros_like(affine[..., :AFFINE_TERMS, :])], -1)
    matrix = jnp.concatenate([upper, lower], -2)
    wanted = jnp.concatenate([steps, jnp.zeros_like(steps[..., :AFFINE_TERMS, :])], -2)
    return tuple(map(in_front, (middle, scale, knots, jnp.linalg.solve(matrix, wanted))))


def in_front(matrix: jax.Array) -> jax.Array:
    """Matrices, (..., M, N), as (M, N, ..., 1, 1): an element is an operand for all pixels of the images of a batch."""
    return jnp.expand_dims(jnp.moveaxis(matrix, (-2, -1), (0, 1)), (-2, -1))


def on_spline(
    x: jax.Array, y: jax.Array, middle: jax.Array, scale: jax.Array, knots: jax.Array, coefficients: jax.Array
) -> Arrays:
    """Where the spline brings points, arrays x and y of two axes."""
    x, y, _ = alike(x, y, coefficients[0, 0])
    right, down = (x - middle[0, 0]) / scale[0, 0], (y - middle[0, 1]) / scale[0, 0]
    weights, (constant, along_x, along_y) = coefficients[:-AFFINE_TERMS], coefficients[-AFFINE_TERMS:]

    # Computed again in reverse mode, so that no array of the image's size is kept for each point.
    @jax.checkpoint
    def bend(right: jax.Array, down: jax.Array, knot: jax.Array, weight: jax.Array) -> Arrays:
        height = radial((right - knot[0]) ** 2 + (down - knot[1]) ** 2)
        return weight[0] * height, weight[1] * height

    def added(total: Arrays, point: Arrays) -> tuple[Arrays, None]:
        return tuple(a + b for a, b in zip(total, bend(right, down, *point))), None

    flat = tuple(constant[k] + along_x[k] * right + along_y[k] * down for k in range(2))
    (dx, dy), _ = jax.lax.scan(added, flat, (knots, weights))
    return x + dx, y + dy


def radial(r2: jax.Array) -> jax.Array:
    """``r^2 log r`` of the square of r; at 0, where the derivatives of the logarithm are infinite, all are zero."""
    apart = r2 > 0
    return jnp.where(apart, 0.5 * r2 * jnp.log(jnp.where(apart, r2, 1)), 0)
