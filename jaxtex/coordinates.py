"""From the caller's coordinates to positions: texel units, the centre of texel i at i + 0.5."""

import jax
import jax.numpy as jnp

from .axis import Axis

# Beyond these a coordinate has no meaning left. The hardware treats normalised coordinates of 2^24 and more as 0
# where the texture repeats; positions must stay within int32, with room for a footprint.
COORDINATE_LIMIT = 2.0**24
POSITION_LIMIT = 2.0**30


def usable(coord: jax.Array, axis: Axis) -> jax.Array:
    """Where `coord` acts as itself; elsewhere it acts as 0 and every slope is zero."""
    if axis.saturating:
        return coord == coord  # NaN is not
    if axis.reduced:
        return jnp.abs(coord) < COORDINATE_LIMIT
    return jnp.abs(coord) < (POSITION_LIMIT / axis.size if axis.normalized else POSITION_LIMIT)


def to_position(coord: jax.Array, axis: Axis) -> jax.Array:
    """The position of `coord` on `axis`."""
    coord = jnp.where(usable(coord, axis), coord, 0)
    if axis.reduced:
        # An exact subtraction. The remainder keeps its sign: folding -1e-10 into [0, 1) would round it to 1.
        coord = coord - 2 * jnp.trunc(coord * 0.5)
    return coord * axis.size if axis.normalized else coord
