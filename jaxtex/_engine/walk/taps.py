"""One axis: from a coordinate to a position, and to taps and their weights.

Positions are in texels; the center of texel i lies at i + 0.5.
"""

import math

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from ..._tables.filter_kernels import Weight
from ..describe.axis import Axis, Role

# Hardware treats normalized coordinates of 2^24 and more as 0 where the texture repeats.
COORDINATE_LIMIT = 2.0**24
# Positions must stay within int32, with room for the taps around them.
POSITION_LIMIT = 2.0**30


def usable(coord: jax.Array, axis: Axis) -> jax.Array:
    """Where `coord` acts as itself; elsewhere it acts as 0 and every slope is zero."""
    if axis.address.saturates:
        return coord == coord  # false for NaN alone
    if axis.reduced:
        return jnp.abs(coord) < COORDINATE_LIMIT
    return jnp.abs(coord) < (POSITION_LIMIT / texels_per_unit(axis, coord.dtype))


def texels_per_unit(axis: Axis, dtype: DTypeLike) -> jax.Array | int:
    """How many texels one unit of the coordinate spans."""
    if not axis.normalized:
        return 1
    size = axis.given_size
    return size if isinstance(size, int) else size.astype(dtype)


def to_position(coord: jax.Array, axis: Axis) -> jax.Array:
    """The position of `coord` on `axis`."""
    coord = jnp.where(usable(coord, axis), coord, 0)
    if axis.reduced:
        # An exact subtraction. The remainder keeps its sign: folding -1e-10 into [0, 1) would round it to 1.
        coord = coord - 2 * jnp.trunc(coord * 0.5)
    return coord * texels_per_unit(axis, coord.dtype) if axis.normalized else coord


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
