"""The convolution with a symmetric filter along one axis, as a primitive whose transpose is as fast as itself."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from ..._jax.barriers import materialized, with_materialized
from ..._jax.primitives import define_linear
from ..forms.choice import LOWERINGS


def convolve(values: jax.Array, weights: tuple[float, ...], axis: int) -> jax.Array:
    """The valid part of the convolution of `values` with a filter: an axis of n + 2 r elements becomes one of n.

    Args:
        weights: the r + 1 weights of a symmetric filter, from the middle one outward.
    """
    return convolve_p.bind(values, weights=weights, axis=axis, full=False)


def convolved(values: jax.Array, *, weights: tuple[float, ...], axis: int, full: bool) -> jax.Array:
    """The valid convolution with a symmetric filter, or the full one.

    They are each other's transpose. JAX's transpose of a sum of slices would be a sum of padded arrays, which is slow.
    """
    reach, dtype = len(weights) - 1, values.dtype
    if full:
        wide = [(2 * reach, 2 * reach, 0) if k == axis else (0, 0, 0) for k in range(values.ndim)]
        values = materialized(jax.lax.pad(values, dtype.type(0), wide))
    size = values.shape[axis] - 2 * reach

    def part(start: int) -> jax.Array:
        return jax.lax.slice_in_dim(values, start, start + size, axis=axis)

    terms = (dtype.type(w) * (part(reach - k) + part(reach + k)) for k, w in enumerate(weights[1:], 1))
    return functools.reduce(jnp.add, terms, dtype.type(weights[0]) * part(reach))


def convolved_once(values: jax.Array, **params: Any) -> jax.Array:
    """`convolved`, with `values` materialized, so that XLA does not recompute them for every term."""
    return with_materialized(functools.partial(convolved, **params), (0,))(values)


convolve_p = define_linear(
    "spline_convolve",
    convolved_once,
    lambda _, *, full, **params: {"full": not full, **params},
    lambda *, axis, **params: {"axis": axis + 1, **params},
    static=("weights", "axis", "full"),
    lowerings=LOWERINGS["convolve"],
)
