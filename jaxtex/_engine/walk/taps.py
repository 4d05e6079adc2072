"""One axis: from a coordinate to taps and their weights."""

import math

import jax
import jax.numpy as jnp

from ..._tables.filter_kernels import Weight
from ..describe.axis import Axis, Role
from ..describe.coordinates import texels_per_unit, to_position, usable

# The roundings of one position differ by less than this, in texels.
ROUNDING = 0.125
# Unbounded taps on one axis, each with its weight.
Taps = list[tuple[jax.Array, Weight]]


def taps(coord: jax.Array, axis: Axis, *, bounded: bool = False) -> Taps:
    """The taps of `coord` on `axis`, unbounded integers, each with its weight.

    On an integer axis the coordinate is its own tap: layers, faces and fetches take this path too.

    Args:
        bounded: whether coordinates are known to be finite and far from the limits of int32.
    """
    if axis.integer:
        return [(coord, 1.0)]
    if axis.role is Role.WEIGHT:
        (factor,) = axis.kernel.weights.at(coord, axis.order)
        return [(jnp.zeros(coord.shape, jnp.int32), factor)]
    bounded = bounded or axis.address.within
    origin, first, num_taps = axis.kernel.origin, axis.kernel.first, axis.kernel.num_taps
    shifted = (coord * texels_per_unit(axis, coord.dtype) if bounded else to_position(coord, axis)) - origin
    low = jnp.floor(shifted)
    tap = low.astype(jnp.int32)
    stops = axis.address.saturates and not bounded
    if stops:
        # Infinities: the conversion saturates, and the taps beside it must not overflow, so the first tap is stopped
        # just outside.
        if first + num_taps > 1:
            tap = jnp.minimum(tap, axis.given_size - first)
        if first < 0:
            tap = jnp.maximum(tap, -num_taps - first)
    # From the tap, not from the floor: XLA may compute a coordinate twice, in two loops, and round it to both sides of
    # a whole number.
    fraction = shifted - tap.astype(shifted.dtype)
    if stops:
        # Where the first tap is stopped all taps read the same. There any fraction will do; inf - inf is none.
        beyond = shifted - low
        near = jnp.abs(fraction - 0.5) < 0.5 + ROUNDING
        fraction = jnp.where(near, fraction, jnp.where(beyond >= 0, beyond, 0))
    weights = axis.kernel.weights.at(fraction, axis.order)
    if axis.order:
        scale = math.prod([texels_per_unit(axis, coord.dtype)] * axis.order)
        scale = jnp.asarray(scale, coord.dtype)
        scale = scale if bounded else jnp.where(usable(coord, axis), scale, 0)
        weights = [scale * w for w in weights]
    return [(tap + (first + k), weight) for k, weight in enumerate(weights)]
