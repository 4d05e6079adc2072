"""From the caller's coordinates to positions: texel units, the centre of texel i at i + 0.5."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from .axis import Axis

# Beyond these a coordinate has no meaning left. The hardware treats normalised coordinates of 2^24 and more as 0
# where the texture repeats; positions must stay within int32, with room for a footprint.
COORDINATE_LIMIT = 2.0**24
POSITION_LIMIT = 2.0**30
# A direction as long as this has no inverse any more.
DIRECTION_LIMIT = 2.0**126
# A footprint of this length in texels covers every texture.
SIDE_LIMIT = 2.0**56

Arrays = tuple[jax.Array, ...]


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


def on_face(x: jax.Array, y: jax.Array, z: jax.Array) -> tuple[jax.Array, Callable[..., tuple[jax.Array, ...]]]:
    """The face of a cube that a direction meets, and the map of vectors to that face's own axes.

    The map gives (s, t, m): to the right, down, and outward. The major axis is that of the largest component, z before
    y before x among equals. For integers as for floating numbers. Selects, not maxima, decide: a derivative belongs to
    one axis alone.
    """
    is_z = (jnp.abs(z) >= jnp.abs(x)) & (jnp.abs(z) >= jnp.abs(y))
    is_y = ~is_z & (jnp.abs(y) >= jnp.abs(x))
    choose = lambda for_x, for_y, for_z: jnp.where(is_z, for_z, jnp.where(is_y, for_y, for_x))
    negative = choose(x, y, z) < 0
    face = jnp.where(is_z, jnp.int32(4), jnp.where(is_y, jnp.int32(2), jnp.int32(0))) + negative.astype(jnp.int32)

    def axes(x, y, z):
        s = choose(jnp.where(negative, z, -z), x, jnp.where(negative, -x, x))
        t = choose(-y, jnp.where(negative, -z, z), -y)
        major = choose(x, y, z)
        return s, t, jnp.where(negative, -major, major)

    return face, axes


def to_face(direction: Arrays, *sides: Arrays, divide=jnp.divide) -> tuple[Arrays, list[Arrays]]:
    """The face of a cube that a direction meets, and where, as normalised coordinates u and v.

    A direction that meets none, such as zero, is the centre of +z, with slope zero.

    Returns:
        ``(face, u, v)``, and for each side of a footprint, a step of the direction, the step of (u, v).
    """
    direction = tuple(jnp.where(c == c, c, 0) for c in jnp.broadcast_arrays(*direction))
    face, axes = on_face(*direction)
    s, t, m = axes(*direction)
    meets = (m > 0) & (m < DIRECTION_LIMIT)
    # A power of two changes no quotient; without it the derivative of a short direction's overflows.
    scale = jnp.where(meets, jnp.ldexp(jnp.ones_like(m), -jnp.frexp(jax.lax.stop_gradient(m))[1]), 1)
    m = jnp.where(meets, m * scale, 1)
    right, down = (divide(jnp.where(meets, c * scale, 0), m) for c in (s, t))
    steps = []
    for side in sides:
        ds, dt, dm = (jnp.where(meets, limited(d * scale), 0) for d in axes(*side))
        steps.append(((ds - right * dm) / m * 0.5, (dt - down * dm) / m * 0.5))
    return (jnp.where(meets, face, 4), (right + 1) * 0.5, (down + 1) * 0.5), steps


def limited(side: jax.Array) -> jax.Array:
    """A side of a footprint that is far longer than any texture, infinite even, at a length that has a square."""
    return jnp.where(jnp.abs(side) < SIDE_LIMIT, side, jax.lax.stop_gradient(jnp.clip(side, -SIDE_LIMIT, SIDE_LIMIT)))
