"""Stretched filters along the axes of an array, as one primitive, which is linear."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching

from ..._jax.float_bits import rounded_to
from ..._jax.indexing import is_sharded, uncut
from ..._jax.primitives import at_front, define
from ..._tables.storage_formats import sum_dtype
from ..compute.scaled_filter import ScaledFilter, multiplied
from ..forms.choice import LOWERINGS

# Pairs of an axis and the filter along it, in the order in which they are applied.
Filters = tuple[tuple[int, ScaledFilter], ...]


def scaled(values: jax.Array, filters: Sequence[tuple[int, ScaledFilter]], dtype: Any) -> jax.Array:
    """`values`, of any dtype, filtered along axes: an axis of `size` elements becomes one of `samples`.

    Args:
        dtype: the dtype of the result. Sums are taken in float32 or float64, and rounded if `dtype` is integer.
    """
    needed = tuple((axis, stretched) for axis, stretched in filters if not stretched.rows().is_identity)
    if not needed:
        return values.astype(dtype)
    if is_sharded(values):  # an axis is gathered just before its filter, when earlier filters have shrunk the array
        sums = sum_dtype(values.dtype)
        for axis, stretched in needed[:-1]:
            values = scale_p.bind(uncut(values, axis), filters=((axis, stretched),), transposed=False, dtype=sums)
        values, needed = uncut(values, needed[-1][0]), needed[-1:]
    return scale_p.bind(values, filters=needed, transposed=False, dtype=np.dtype(dtype))


def in_order(values: jax.Array, *, filters: Filters, transposed: bool, dtype: np.dtype) -> jax.Array:
    """The filters, applied one after the other, or the transpose of that. Each filter has sums of its own."""
    sums, is_one = sum_dtype(values.dtype, dtype), len(filters) == 1
    for axis, stretched in filters[::-1] if transposed else filters:
        if is_one:
            values = multiplied(values, stretched, axis, transposed=transposed, dtype=sums)
        else:
            values = scale_p.bind(values, filters=((axis, stretched),), transposed=transposed, dtype=sums)
    return values.astype(dtype) if jnp.issubdtype(dtype, jnp.floating) else rounded_to(values, dtype)


def transpose(cotangent: Any, values: Any, *, transposed: bool, dtype: np.dtype, **params: Any) -> list[Any]:
    return [scale_p.bind(cotangent, transposed=not transposed, dtype=values.aval.dtype, **params)]


def batch(args: Sequence[jax.Array], dims: Sequence[int], *, filters: Filters, **params: Any) -> tuple[jax.Array, int]:
    along = tuple((axis + 1, stretched) for axis, stretched in filters)
    return scale_p.bind(at_front(args[0], dims[0]), filters=along, **params), 0


def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, dtype: np.dtype, **params: Any) -> tuple[Any, Any]:
    out = scale_p.bind(*primals, dtype=dtype, **params)
    if not jnp.issubdtype(dtype, jnp.floating):
        return out, np.zeros(out.shape, jax.dtypes.float0)
    return out, scale_p.bind(*tangents, dtype=dtype, **params)


scale_p = define(
    "scaled_filter", in_order, static=("filters", "transposed", "dtype"), lowerings=LOWERINGS["scaled_filter"]
)
ad.primitive_jvps[scale_p] = jvp
ad.primitive_transposes[scale_p] = transpose
batching.primitive_batchers[scale_p] = batch
