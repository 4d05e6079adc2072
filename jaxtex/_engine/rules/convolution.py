"""The convolution with a symmetric filter along one axis, whose transpose is as fast as itself."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..._jax.barriers import materialized, with_materialized
from ..forms.choice import LOWERINGS


def convolve(values: jax.Array, weights: tuple[float, ...], axis: int) -> jax.Array:
    """`values` convolved along an axis, where the filter lies within them: n + 2 r become n.

    Args:
        weights: from the middle one to one side, r + 1 of them.
    """
    return convolve_p.bind(values, weights=weights, axis=axis, full=False)


def convolved(values: jax.Array, *, weights: tuple[float, ...], axis: int, full: bool) -> jax.Array:
    """The convolution with a symmetric filter where it lies within the values, or, if `full`, where it meets them.

    The two are each other's transpose. JAX's own transpose of a sum of slices would be a sum of padded arrays.
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


def convolved_apart(values: jax.Array, **params: Any) -> jax.Array:
    """`convolved`, of values that are computed before they are added up."""
    return with_materialized(functools.partial(convolved, **params), (0,))(values)


def convolved_batch(args: Any, dims: Any, *, axis: int, **params: Any) -> tuple[jax.Array, int]:
    return convolve_p.bind(jnp.moveaxis(args[0], dims[0], 0), axis=axis + 1, **params), 0


convolve_p = Primitive("spline_convolve")
convolve_p.def_impl(convolved_apart)
convolve_p.def_abstract_eval(lambda x, **params: jax.make_jaxpr(functools.partial(convolved, **params))(x).out_avals[0])
mlir.register_lowering(convolve_p, mlir.lower_fun(convolved_apart, multiple_results=False))
for lowering in LOWERINGS["convolve"]:
    mlir.register_lowering(
        convolve_p, lowering.rule(convolved_apart, multiple_results=False), platform=lowering.platform
    )
ad.deflinear2(convolve_p, lambda ct, _, *, full, **params: [convolve_p.bind(ct, full=not full, **params)])
batching.primitive_batchers[convolve_p] = convolved_batch
