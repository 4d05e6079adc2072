"""From the caller's coordinates to positions: texel units, the center of texel i at i + 0.5."""

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from .axis import Axis

Arrays = tuple[jax.Array, ...]

# Hardware treats normalized coordinates of 2^24 and more as 0 where the texture repeats.
COORDINATE_LIMIT = 2.0**24
# Positions must stay within int32, with room for the taps around them.
POSITION_LIMIT = 2.0**30
# A footprint of this length in texels covers every texture.
SIDE_LIMIT = 2.0**56


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


def limited(side: jax.Array) -> jax.Array:
    """A side of a footprint, cut to a length whose square is finite; no texture is as long."""
    return jnp.where(jnp.abs(side) < SIDE_LIMIT, side, jax.lax.stop_gradient(jnp.clip(side, -SIDE_LIMIT, SIDE_LIMIT)))
