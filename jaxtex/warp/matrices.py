"""Matrices of points, and what becomes of them in other conventions.

Here a point is in pixels from the top left corner, pixel centres at +0.5, x before y (before z).
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp


def homogeneous(matrix: jax.Array) -> jax.Array:
    """An affine matrix, (..., N, N + 1), with the last row that it lacks."""
    size = matrix.shape[-1]
    last = jnp.zeros(size, matrix.dtype).at[-1].set(1)
    return jnp.concatenate([matrix, jnp.broadcast_to(last, (*matrix.shape[:-2], 1, size))], -2)


def product(*matrices: jax.Array) -> jax.Array:
    """The product of matrices, in full precision on every device."""
    first, *rest = matrices
    for matrix in rest:
        first = jnp.matmul(first, matrix, precision="highest")
    return first


def inverted(matrix: jax.Array) -> jax.Array:
    """The inverse of an affine, (..., N, N + 1), or a projective matrix, (..., N + 1, N + 1)."""
    if matrix.shape[-1] == matrix.shape[-2]:
        return jnp.linalg.inv(matrix)
    linear = jnp.linalg.inv(matrix[..., :-1])
    return jnp.concatenate([linear, -product(linear, matrix[..., -1:])], -1)


def moving(offset: Sequence[jax.Array | float], dtype=jnp.float32) -> jax.Array:
    """The projective matrix of a translation."""
    return jnp.eye(len(offset) + 1, dtype=dtype).at[:-1, -1].set(jnp.stack([jnp.asarray(o, dtype) for o in offset]))


def stretching(factors: Sequence[jax.Array | float], dtype=jnp.float32) -> jax.Array:
    """The projective matrix of a scaling along the axes."""
    return jnp.diag(jnp.stack([jnp.asarray(f, dtype) for f in (*factors, 1.0)]))


def rotation(degrees: jax.Array, scale: jax.Array) -> jax.Array:
    """Rotations of the plane, (..., 2, 2), with a scaling: counter-clockwise as seen, y pointing down."""
    angle = jnp.deg2rad(degrees)
    cosine, sine = (part * scale for part in (jnp.cos(angle), jnp.sin(angle)))
    return jnp.stack([jnp.stack([cosine, sine], -1), jnp.stack([-sine, cosine], -1)], -2)


def about(linear: jax.Array, source: jax.Array, target: jax.Array) -> jax.Array:
    """The affine matrix, (..., N, N + 1), of a linear map that brings the point `source` to `target`, (..., N)."""
    batch = jnp.broadcast_shapes(linear.shape[:-2], source.shape[:-1], target.shape[:-1])
    n = linear.shape[-1]
    source, target = (jnp.broadcast_to(point, (*batch, n))[..., None] for point in (source, target))
    linear = jnp.broadcast_to(linear, (*batch, n, n))
    return jnp.concatenate([linear, target - product(linear, source)], -1)


def from_theta(
    theta: jax.Array, input_shape: Sequence[int], output_shape: Sequence[int], align_corners: bool = False
) -> jax.Array:
    """In pixels, a matrix (..., N, N + 1) whose points run from -1 to 1 across images: from output to input.

    Args:
        input_shape, output_shape: the spatial shapes, slowest first.
        align_corners: whether -1 and 1 are the centres of the outer pixels, not their outer edges.
    """
    inset = 1 if align_corners else 0
    spans = lambda shape: [max(n - inset, 1) for n in shape[::-1]]
    middles = lambda shape: [n / 2 for n in shape[::-1]]
    scale = lambda factors: stretching(factors, theta.dtype)
    move = lambda offset: moving(offset, theta.dtype)
    to_unit = product(scale([2 / n for n in spans(output_shape)]), move([-m for m in middles(output_shape)]))
    to_pixels = product(move(middles(input_shape)), scale([n / 2 for n in spans(input_shape)]))
    return product(to_pixels, homogeneous(theta), to_unit)[..., :-1, :]
