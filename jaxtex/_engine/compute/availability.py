"""Which samples find all of their texels in the part of a texture that is stored."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from ..describe.spec import ReadSpec
from ..walk.taps import taps
from ..walk.texel_walk import AxisTaps, taps_are_available


def are_available(spec: ReadSpec, operands: Sequence[jax.Array], axis_taps: AxisTaps = taps) -> jax.Array:
    """Whether all texels that a result needs are stored.

    Args:
        axis_taps: finds the taps of one axis, as the read does.
    """
    if spec.several is None:
        available = taps_are_available(spec.coords(operands), spec.axes, axis_taps)
    else:

        def one(number: jax.Array) -> jax.Array:
            coords, weight = spec.read_at(number, *spec.numbers(operands))
            return taps_are_available(coords, spec.axes, axis_taps) | ~(weight > 0)

        ranked = jnp.arange(1, spec.num_reads + 1, dtype=jnp.int32).reshape(-1, *[1] * operands[0].ndim)
        available = jnp.all(jax.lax.map(one, ranked), 0)
    return jnp.all(available, spec.summed_axes, keepdims=True) if spec.summed_axes else available


def where_available(
    values: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, missing: float = 0, axis_taps: AxisTaps = taps
) -> jax.Array:
    """Values of samples, S + (C,), and `missing` where a sample needs texels that are not stored."""
    return jnp.where(are_available(spec, operands, axis_taps)[..., None], values, jnp.asarray(missing, values.dtype))
