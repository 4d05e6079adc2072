"""Filters of whole arrays, as primitives that are linear: convolutions, mip chains, and stretched filters."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.barriers import materialized, with_materialized
from ..._jax.float_bits import rounded_to
from ..._jax.indexing import is_sharded, uncut
from ..._jax.primitives import define_linear, doubled
from ..._tables.storage_formats import sum_dtype
from ..compute.filters import ScaledFilter, chain_of, multiplied
from ..forms.choice import LOWERINGS

# Pairs of an axis and the filter along it, in the order in which they are applied.
Filters = tuple[tuple[int, ScaledFilter], ...]


# Convolutions


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


# Mip chains


def mip_chain(texels: jax.Array, ndim: int, num_levels: int) -> jax.Array:
    """The levels of a chain one after the other, (total, C), from the finest one.

    Args:
        ndim: how many axes before the channels are halved.
    """
    return mip_chain_p.bind(texels, shape=texels.shape, ndim=ndim, num_levels=num_levels, adjoint=False)


mip_chain_p = define_linear(
    "mip_chain",
    chain_of,
    lambda _, *, adjoint, **params: {"adjoint": not adjoint, **params},
    lambda **params: params,
    static=("shape", "ndim", "num_levels", "adjoint"),
    lowerings=LOWERINGS["mip_chain"],
)


# Stretched filters


def scaled(values: jax.Array, filters: Sequence[tuple[int, ScaledFilter]], dtype: Any) -> jax.Array:
    """`values`, of any dtype, filtered along axes: an axis of `size` elements becomes one of `samples`.

    Args:
        dtype: the dtype of the result. Sums are taken in float32 or float64. If `dtype` is integer, they are rounded,
            and have no derivative.
    """
    needed = tuple((axis, stretched) for axis, stretched in filters if not stretched.rows().is_identity)
    values = values if jnp.issubdtype(dtype, jnp.floating) else jax.lax.stop_gradient(values)
    if not needed:
        return values.astype(dtype)
    if is_sharded(values):  # an axis is gathered just before its filter, when earlier filters have shrunk the array
        sums = sum_dtype(values.dtype)
        for axis, stretched in needed[:-1]:
            values = scale_p.bind(uncut(values, axis), filters=((axis, stretched),), transposed=False, dtype=sums)
        values, needed = uncut(values, needed[-1][0]), needed[-1:]
    values = scale_p.bind(values, filters=needed, transposed=False, dtype=np.dtype(dtype))
    return doubled(values) if any(stretched.halved for _, stretched in filters) else values


def in_order(values: jax.Array, *, filters: Filters, transposed: bool, dtype: np.dtype) -> jax.Array:
    """The filters, applied one after the other, or the transpose of that. Each filter has sums of its own."""
    sums, is_one = sum_dtype(values.dtype, dtype), len(filters) == 1
    for axis, stretched in filters[::-1] if transposed else filters:
        if is_one:
            values = multiplied(values, stretched, axis, transposed=transposed, dtype=sums)
        else:
            values = scale_p.bind(values, filters=((axis, stretched),), transposed=transposed, dtype=sums)
    return values.astype(dtype) if jnp.issubdtype(dtype, jnp.floating) else rounded_to(values, dtype)


scale_p = define_linear(
    "scaled_filter",
    in_order,
    lambda values, *, transposed, dtype, **params: {"transposed": not transposed, "dtype": values.dtype, **params},
    lambda *, filters, **params: {"filters": tuple((axis + 1, stretched) for axis, stretched in filters), **params},
    static=("filters", "transposed", "dtype"),
    lowerings=LOWERINGS["scaled_filter"],
)
