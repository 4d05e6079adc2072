"""Families of transforms: from a few numbers, all zero at the identity, to the matrix theta."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..arguments import as_float


class Family(NamedTuple):
    """How many parameters a family has, by the number of axes, and their theta.

    `build` takes parameters (..., P) and the spatial shape of the input, and returns the linear part (..., N, N). The
    last N parameters are the shift.
    """

    counts: dict[int, int]
    build: Callable[[jax.Array, Sequence[int]], jax.Array]


def unchanged(parameters: jax.Array, input_shape: Sequence[int]) -> jax.Array:
    """The identity."""
    n = len(input_shape)
    return jnp.broadcast_to(jnp.eye(n, dtype=parameters.dtype), (*parameters.shape[:-1], n, n))


def stretched(parameters: jax.Array, input_shape: Sequence[int]) -> jax.Array:
    """One factor for all axes, given by its logarithm."""
    return jnp.exp(parameters[..., :1, None]) * unchanged(parameters, input_shape)


def turned(parameters: jax.Array, input_shape: Sequence[int]) -> jax.Array:
    """A rotation in the input's pixels, and a factor; an axis of theta is half as long as that side of the input."""
    height, width = input_shape
    angle, factor = parameters[..., 0], jnp.exp(parameters[..., 1])
    cosine, sine = factor * jnp.cos(angle), factor * jnp.sin(angle)
    rows = [cosine, -sine * (height / width)], [sine * (width / height), cosine]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


def free(parameters: jax.Array, input_shape: Sequence[int]) -> jax.Array:
    """The identity plus a matrix of parameters, by rows."""
    n = len(input_shape)
    return unchanged(parameters, input_shape) + parameters[..., : n * n].reshape(*parameters.shape[:-1], n, n)


FAMILIES = {
    "translation": Family({2: 2, 3: 3}, unchanged),
    "attention": Family({2: 3, 3: 4}, stretched),
    "similarity": Family({2: 4}, turned),
    "affine": Family({2: 6, 3: 12}, free),
}


def num_parameters(name: str, transform: str, ndim: int) -> int:
    """How many parameters a family has in the plane or in space.

    Args:
        name: of the public function, for errors.
    """
    if transform not in FAMILIES:
        listed = ", ".join(map(repr, FAMILIES))
        raise ValueError(f"{name}: transform is {transform!r}, expected one of {listed}.")
    counts = FAMILIES[transform].counts
    if ndim not in counts:
        raise ValueError(
            f"{name}: transform={transform!r} has no form with {ndim} axes, only with {', '.join(map(str, counts))}; "
            f"use 'affine' for volumes."
        )
    return counts[ndim]


def theta_of(parameters: Any, input_shape: Sequence[int], transform: str = "affine") -> jax.Array:
    """The matrix of a spatial transformer from a few numbers, which are all zero at the identity.

    Args:
        parameters: ``(..., P)``, floating; the last two (three for volumes) are the shift, in half sides of the input,
            x before y. What stands before them, and P, depend on `transform`.
        input_shape: the spatial shape of the input, ``(H, W)`` or ``(D, H, W)``.
        transform: the family.

            - ``"translation"``: the shift alone. P = 2, volumes 3.
            - ``"attention"``: the logarithm of a factor; a window of the input, larger than it where the factor is
              above 1. P = 3, volumes 4.
            - ``"similarity"``: the angle in radians by which the window is turned, from x to y, and the logarithm of
              the factor. It is a rotation in pixels, also where the input is no square. P = 4, images only.
            - ``"affine"``: what is added to the linear part of the identity, by rows. P = 6, volumes 12.

    Returns:
        ``theta``, ``(..., 2, 3)`` or ``(..., 3, 4)``, as `jaxtex.warp.spatial_transform` takes it: from points of the
        output to points of the input. float32, or float64 if `parameters` is.

    Gradients: to the parameters, to any order in both modes.

    Raises:
        ValueError: if the family is unknown, or has another number of parameters or axes.

    Source: "attention" is what M. Jaderberg, K. Simonyan, A. Zisserman and K. Kavukcuoglu, "Spatial Transformer
    Networks", 2015, call so, with a factor that stays positive.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex.layers import theta_of
        >>> theta_of(jnp.array([jnp.log(0.5), 0.25, 0.0]), (28, 28), "attention")
        Array([[0.5 , 0.  , 0.25],
               [0.  , 0.5 , 0.  ]], dtype=float32)
    """
    ndim = len(input_shape)
    count = num_parameters("theta_of", transform, ndim)
    parameters = as_float(parameters)
    if parameters.shape[-1:] != (count,):
        raise ValueError(
            f"theta_of: parameters has shape {parameters.shape}, expected (..., {count}) for transform={transform!r} "
            f"of {ndim} axes."
        )
    linear = FAMILIES[transform].build(parameters, input_shape)
    return jnp.concatenate([linear, parameters[..., -ndim:, None]], -1)
