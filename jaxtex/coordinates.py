"""From the caller's coordinates to positions: texel units, the centre of texel i at i + 0.5."""

import jax
import jax.numpy as jnp

from .axis import Axis

# Beyond these a coordinate has no meaning left. The hardware treats normalised coordinates of 2^24 and more as 0
# where the texture repeats; positions must stay within int32, with room for a footprint.
COORDINATE_LIMIT = 2.0**24
POSITION_LIMIT = 2.0**30
# A direction as long as this has no inverse any more.
DIRECTION_LIMIT = 2.0**126


def usable(coord: jax.Array, axis: Axis) -> jax.Array:
    """Where `coord` acts as itself; elsewhere it acts as 0 and every slope is zero."""
    if axis.saturating:
        return coord == coord  # NaN is not
    if axis.reduced:
        return jnp.abs(coord) < COORDINATE_LIMIT
    return jnp.abs(coord) < (POSITION_LIMIT / texels_per_unit(axis, coord.dtype))


def texels_per_unit(axis: Axis, dtype) -> jax.Array | int:
    """How many texels one unit of the coordinate spans."""
    if not axis.normalized:
        return 1
    return axis.size.astype(dtype) if isinstance(axis.size, jax.Array) else axis.size


def to_position(coord: jax.Array, axis: Axis) -> jax.Array:
    """The position of `coord` on `axis`."""
    coord = jnp.where(usable(coord, axis), coord, 0)
    if axis.reduced:
        # An exact subtraction. The remainder keeps its sign: folding -1e-10 into [0, 1) would round it to 1.
        coord = coord - 2 * jnp.trunc(coord * 0.5)
    return coord * texels_per_unit(axis, coord.dtype) if axis.normalized else coord


def on_face(x: jax.Array, y: jax.Array, z: jax.Array) -> tuple[jax.Array, ...]:
    """The face of a cube that a direction meets, where on it as (s, t) to the right and down, and the distance m.

    The major axis is that of the largest component, z before y before x among equals; the face reaches from -m to m.
    For integers as for floating numbers. Selects, not maxima, decide: a derivative belongs to one axis alone.
    """
    is_z = (jnp.abs(z) >= jnp.abs(x)) & (jnp.abs(z) >= jnp.abs(y))
    is_y = ~is_z & (jnp.abs(y) >= jnp.abs(x))
    choose = lambda for_x, for_y, for_z: jnp.where(is_z, for_z, jnp.where(is_y, for_y, for_x))
    major = choose(x, y, z)
    negative = major < 0
    face = jnp.where(is_z, jnp.int32(4), jnp.where(is_y, jnp.int32(2), jnp.int32(0))) + negative.astype(jnp.int32)
    s = choose(jnp.where(negative, z, -z), x, jnp.where(negative, -x, x))
    t = choose(-y, jnp.where(negative, -z, z), -y)
    return face, s, t, jnp.where(negative, -major, major)


def to_face(x: jax.Array, y: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The face of a cube that a direction meets, and where, as normalised coordinates u and v.

    A direction that meets none, such as zero, is the centre of +z, with slope zero.
    """
    x, y, z = (jnp.where(c == c, c, 0) for c in jnp.broadcast_arrays(x, y, z))
    face, s, t, m = on_face(x, y, z)
    meets = (m > 0) & (m < DIRECTION_LIMIT)
    m = jnp.where(meets, m, 1)
    u, v = ((jnp.where(meets, c, 0) / m + 1) * 0.5 for c in (s, t))
    return jnp.where(meets, face, 4), u, v
