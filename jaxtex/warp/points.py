"""Warps by pairs of points: the thin-plate spline, the smoothest map that moves some points to others."""

from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from .._checks.calls import public
from .._checks.texels import check_sizes
from .._jax.shapes import broadcast_shapes
from ..sampler import FilterModeLike, Sampler
from .coordinate_functions import Arrays, aligned, coordinates, stored_points
from .fields import as_points
from .images import warp_image
from .matrices import elements
from .options import AddressLike, Points2D, ShapeLike, as_floats, dtype_of, read_options, spatial_shape

# A constant, and one coefficient each for x and y.
AFFINE_TERMS = 3
# Knots that are closer, in roundings of the frame, count as equal: their equations differ by roundings alone.
ROUNDINGS = 16


@public(compiled=True)
def thin_plate_spline(
    image: ArrayLike,
    source_points: ArrayLike | Points2D,
    target_points: ArrayLike | Points2D,
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    regularization: ArrayLike = 0.0,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Warps images by a thin-plate spline: it moves given points to others, and bends as little as possible.

    The output pixel at q shows the image at ``f(q) = a + B q + sum_i w_i U(|q - target_i|)``, where
    ``U(r) = r^2 log r`` and ``f(target_i) = source_i``. Among all maps with this property, f has the smallest integral
    of squared second derivatives.

    Args:
        image: ``(..., H, W, C)``, as in `resample`.
        source_points: ``(..., P, 2)``, points of the image, x before y, or a tuple of arrays ``(x, y)``, in pixels from
            the top left corner, with pixel centers at +0.5. Leading axes broadcast with those of the image.
        target_points: the points of the output to which they move, in the same form, at least three. Targets that are
            equal, or closer than 2e-6 of their spread in float32, count as one, whose source is the mean of theirs. If
            all targets lie on one line, f moves all points across the line alike.
        regularization: a number of at least 0, or an array with the leading batch axes, in squared pixels. With a
            larger value, f bends less and misses the points by more. With a value far above the squared distances
            between the points, f is the best-fitting affine map.
        output_shape, sampler, filter_mode, address_mode, border_color, antialias, dtype: as in `resample`.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: of any order, as in `resample`, with respect to image, points, regularization and border color. The
        second derivative of U at a target point is infinite, and counts as zero. Equal targets share their gradient.
        Reverse mode does not store an array per point.

    Precision: in float32, within 2e-4 pixels for 25 points and 1e-3 pixels for 400, if the points are spread over 512
        pixels and neighbors move alike. Points that are close together and move apart cost digits; pass such points in
        float64.

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
    source, target = check_points(name, source_points, target_points, image)
    shape = spatial_shape(name, image, output_shape, 2)
    spline = solved_spline(*as_floats(source, target, regularization, like=image))

    def to_points(x: jax.Array, y: jax.Array) -> Arrays:
        return evaluated(x, y, *spline)

    coords, footprint = coordinates(to_points, shape, antialias, dtype_of(image))
    options = read_options(name, sampler, filter_mode, address_mode, border_color, antialias, dtype)
    return warp_image(name, image, stored_points, coords, shape, options, footprint)


def check_points(name: str, source_points: Any, target_points: Any, image: ArrayLike) -> tuple[jax.Array, jax.Array]:
    source = as_points(name, "source_points", source_points, image)
    target = as_points(name, "target_points", target_points, image)
    for argument, points in (("source_points", source), ("target_points", target)):
        check_sizes(f"{name}: {argument} has shape {points.shape}", points.shape[-2:])
        if points.ndim < 2 or points.shape[-2] < AFFINE_TERMS:
            raise ValueError(
                f"{name}: {argument} has shape {points.shape}, expected (..., P, 2): at least three points, x before y."
            )
    if source.shape[-2] != target.shape[-2]:
        raise ValueError(
            f"{name}: source_points has shape {source.shape} and target_points has shape {target.shape}; expected the "
            f"same number of points in both."
        )
    return source, target


def solved_spline(source: jax.Array, target: jax.Array, regularization: jax.Array) -> tuple[jax.Array, ...]:
    """The operands of `evaluated`: the frame of the knots, the knots in this frame, and the coefficients.

    The spline maps targets to the steps from target to source, in a frame in which the knots are at a distance of about
    1 from the origin. The frame has no derivative, because the spline is the same in every frame: another scale adds a
    multiple of r^2 to U, and these terms sum to an affine map.
    """
    source, target, regularization = aligned(source, target, regularization[..., None, None])
    origin = jax.lax.stop_gradient(target.mean(-2, keepdims=True))
    scale = jax.lax.stop_gradient(jnp.sqrt(((target - origin) ** 2).sum(-1, keepdims=True).mean(-2, keepdims=True)))
    scale = jnp.where(scale > 0, scale, 1)
    knots = (target - origin) / scale
    count = knots.shape[-2]
    apart = jnp.abs(knots[..., :, None, :] - knots[..., None, :, :]).max(-1, keepdims=True)
    equal = apart <= ROUNDINGS * float(cast(Any, jnp.finfo(knots.dtype)).eps)
    number = equal.sum(-2).astype(knots.dtype)  # of the knots that are equal to each
    first = jnp.argmax(equal[..., 0], -1, keepdims=True).astype(jnp.int32)
    first = first == jnp.arange(count, dtype=jnp.int32).reshape([1] * (knots.ndim - 2) + [-1, 1])
    knots, steps = (mean_of_equal(a, equal, number) for a in aligned(knots, source - target))
    differences = knots[..., :, None, :] - knots[..., None, :, :]
    weight, identity = aligned(regularization / (scale**2 * number), jnp.eye(count, dtype=knots.dtype))
    bending = radial((differences**2).sum(-1)) + weight * identity
    affine = jnp.concatenate([jnp.ones_like(knots[..., :1]), knots], -1)
    # The equation of another knot of equal ones is that its coefficient is 0.
    bending = jnp.where(first & jnp.swapaxes(first, -1, -2), bending, identity)
    affine, steps = (jnp.where(first, a, 0) for a in (affine, steps))
    batch = broadcast_shapes(bending.shape[:-2], steps.shape[:-2])
    bending, affine, steps = (jnp.broadcast_to(a, (*batch, *a.shape[-2:])) for a in (bending, affine, steps))
    upper = jnp.concatenate([bending, affine], -1)
    lower = jnp.concatenate([jnp.swapaxes(affine, -1, -2), across_line(affine)], -1)
    matrix = jnp.concatenate([upper, lower], -2)
    values = jnp.concatenate([steps, jnp.zeros_like(steps[..., :AFFINE_TERMS, :])], -2)
    coefficients = cast(jax.Array, jnp.linalg.solve(matrix, values))
    return tuple(map(in_front, (origin, scale, knots, coefficients)))


def mean_of_equal(values: jax.Array, equal: jax.Array, number: jax.Array) -> jax.Array:
    """Values of knots, (..., P, 2), averaged over equal knots."""
    return jnp.where(equal, values[..., None, :, :], 0).sum(-2) / number


def across_line(affine: jax.Array) -> jax.Array:
    """The last rows and columns of the equations, (..., 3, 3): zero, unless knots lie on a line through the origin.

    Then the equations do not say what the map does across the line, and the matrix makes its slope there 0. One knot,
    which by a rounding of the mean of equal ones may lie beside the origin, says nothing of any slope.
    """
    knots = jax.lax.stop_gradient(affine[..., 1:])
    products = (knots[..., :, None] * knots[..., None, :]).sum(-3)
    (xx, xy), (_, yy) = elements(products)
    trace = xx + yy
    flat = xx * yy - xy * xy <= 2 * float(cast(Any, jnp.finfo(knots.dtype)).eps) * trace * trace
    identity = jnp.broadcast_to(jnp.eye(2, dtype=knots.dtype), products.shape)
    along = products / jnp.where(trace > 0, trace, 1)[..., None, None]
    normal = identity - jnp.where(affine[..., :1].sum(-2, keepdims=True) > 1, along, 0)
    slope = jnp.where(flat[..., None, None], -normal, 0)
    return jnp.pad(slope, [*[(0, 0)] * (slope.ndim - 2), (1, 0), (1, 0)])


def in_front(matrix: jax.Array) -> jax.Array:
    """Matrices, (..., M, N), as (M, N, ..., 1, 1): each element is an operand for all pixels of a batch of images."""
    return jnp.expand_dims(jnp.moveaxis(matrix, (-2, -1), (0, 1)), (-2, -1))


def evaluated(
    x: jax.Array, y: jax.Array, origin: jax.Array, scale: jax.Array, knots: jax.Array, coefficients: jax.Array
) -> Arrays:
    """The points to which the spline maps points, arrays x and y of two axes."""
    x, y, _ = aligned(x, y, coefficients[0, 0])
    right, down = (x - origin[0, 0]) / scale[0, 0], (y - origin[0, 1]) / scale[0, 0]
    weights, (constant, along_x, along_y) = coefficients[:-AFFINE_TERMS], coefficients[-AFFINE_TERMS:]

    # Rematerialized, so that reverse mode stores no array of the size of the image for each point.
    @jax.checkpoint
    def bend(right: jax.Array, down: jax.Array, knot: jax.Array, weight: jax.Array) -> Arrays:
        height = radial((right - knot[0]) ** 2 + (down - knot[1]) ** 2)
        return weight[0] * height, weight[1] * height

    def add(total: Arrays, point: Arrays) -> tuple[Arrays, None]:
        bent = cast(Arrays, bend(right, down, *point))
        return tuple(a + b for a, b in zip(total, bent)), None

    flat = tuple(constant[k] + along_x[k] * right + along_y[k] * down for k in range(2))
    total: Any = jax.lax.scan(add, flat, (knots, weights))[0]
    return x + total[0], y + total[1]


def radial(r2: jax.Array) -> jax.Array:
    """``r^2 log r`` of the square of r. At 0, where the derivatives of the logarithm are infinite, all are zero."""
    positive = r2 > 0
    return jnp.where(positive, 0.5 * r2 * jnp.log(jnp.where(positive, r2, 1)), 0)
