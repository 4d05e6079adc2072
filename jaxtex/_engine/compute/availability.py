"""Which samples find all of their texels in the part of a texture that is stored."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from ..describe.spec import ReadSpec
from ..walk.texel_walk import taps_are_available


def are_available(spec: ReadSpec, operands: Sequence[jax.Array]) -> jax.Array:
    """Whether all texels that a result needs are stored."""
    if spec.num_reads == 1:
        available = taps_are_available(spec.coords(operands), spec.axes)
    else:

        def one(number: jax.Array) -> jax.Array:
            *coords, weight = spec.grid(number, *spec.numbers(operands))
            return taps_are_available(coords, spec.axes) | ~(weight > 0)

        ranked = jnp.arange(1, spec.num_reads + 1, dtype=jnp.int32).reshape(-1, *[1] * operands[0].ndim)
        available = jnp.all(jax.lax.map(one, ranked), 0)
    return jnp.all(available, spec.summed_axes, keepdims=True) if spec.summed_axes else available


def where_available(values: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, missing: float = 0) -> jax.Array:
    """Values of samples, S + (C,), and `missing` where a sample needs texels that are not stored."""
    return jnp.where(are_available(spec, operands)[..., None], values, jnp.asarray(missing, values.dtype))
