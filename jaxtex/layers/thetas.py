"""Families of transforms: from a few numbers, all zero at the identity, to the matrix theta."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .._arguments import as_float
from ..warp.shapes import as_shape


class Family(NamedTuple):
    """How many parameters a family has, by the number of axes, and the theta that they make."""

    counts: dict[int, int]
    theta: Callable[[jax.Array, Sequence[int]], jax.Array]


def identity(parameters: jax.Array, input_shape: Sequence[int]) -> jax.Array:
    """The identity (..., N, N + 1), for each row of parameters."""
    n = len(input_shape)
    return jnp.broadcast_to(jnp.eye(n, n + 1, dtype=parameters.dtype), (*parameters.shape[:-1], n, n + 1))


def translation(parameters: jax.Array, input_shape: Sequence[int]) -> jax.Array:
    return identity(parameters, input_shape).at[..., -1].set(parameters)


def attention(parameters: jax.Array, input_shape: Sequence[int]) -> jax.Array:
    """A factor for all axes, and the shift."""
    linear = jnp.exp(parameters[..., :1, None]) * identity(parameters, input_shape)
    return linear.at[..., -1].set(parameters[..., 1:])


def similarity(parameters: jax.Array, input_shape: Sequence[int]) -> jax.Array:
    """A rotation and a scale in pixels of the input; an axis of theta is as long as half of that side of the input."""
    height, width = input_shape
    a, b, x, y = jnp.unstack(parameters, axis=-1)
    rows = [1 + a, -b * (height / width), x], [b * (width / height), 1 + a, y]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


def affine(parameters: jax.Array, input_shape: Sequence[int]) -> jax.Array:
    """What is added to the identity, by rows."""
    start = identity(parameters, input_shape)
    return start + parameters.reshape(start.shape)


AXES = {2: "images", 3: "volumes"}
FAMILIES = {
    "translation": Family({2: 2, 3: 3}, translation),
    "attention": Family({2: 3, 3: 4}, attention),
    "similarity": Family({2: 4}, similarity),
    "affine": Family({2: 6, 3: 12}, affine),
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
        raise ValueError(f"{name}: transform={transform!r} is for images, not for {AXES[ndim]}; use 'affine'.")
    return counts[ndim]


def theta_of(parameters: Any, input_shape: Sequence[int], transform: str = "affine") -> jax.Array:
    """The matrix of a spatial transformer from a few numbers, which are all zero at the identity.

    Args:
        parameters: ``(..., P)``, floating. A shift is in half sides of the input, x before y.
        input_shape: the spatial shape of the input, ``(H, W)`` or ``(D, H, W)``.
        transform: the family.

            - ``"translation"``: the shift. P = 2, volumes 3.
            - ``"attention"``: the logarithm of a factor, and the shift: a window that is as large as the input where
              the factor is 1. P = 3, volumes 4.
            - ``"similarity"``: a, b, and the shift. In pixels, also where the input is no square, the window is read
              through ``[[1 + a, -b], [b, 1 + a]]``. A positive b turns what is seen counter-clockwise, and a positive a
              makes it smaller: a turn by t that shows everything s times as large is ``a = cos(t) / s - 1``, ``b =
              sin(t) / s``. P = 4, images only.
            - ``"affine"``: what is added to the identity's matrix, by rows. P = 6, volumes 12.

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
    input_shape = as_shape("theta_of", "input_shape", input_shape)
    ndim = len(input_shape)
    count = num_parameters("theta_of", transform, ndim)
    parameters = as_float(parameters)
    if parameters.shape[-1:] != (count,):
        raise ValueError(
            f"theta_of: parameters has shape {parameters.shape}, expected (..., {count}) for transform={transform!r} "
            f"of {AXES[ndim]}."
        )
    return FAMILIES[transform].theta(parameters, input_shape)
