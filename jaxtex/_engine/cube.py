"""The faces of a cube: their orientation, from a direction to a point of a face, and from a face across its edges."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from .._tables.address_rules import Size
from .._typed_jit import typed_jit
from .coordinates import Arrays, limited

# Of each face, in the order +x, -x, +y, -y, +z, -z: the vectors along s (to the right), along t (down), and outward.
# Source: CUDA C++ Programming Guide, "Cubemap Textures".
FACE_AXES = (
    ((0, 0, -1), (0, -1, 0), (1, 0, 0)),
    ((0, 0, 1), (0, -1, 0), (-1, 0, 0)),
    ((1, 0, 0), (0, 0, 1), (0, 1, 0)),
    ((1, 0, 0), (0, 0, -1), (0, -1, 0)),
    ((1, 0, 0), (0, -1, 0), (0, 0, 1)),
    ((-1, 0, 0), (0, -1, 0), (0, 0, -1)),
)
NUM_FACES = len(FACE_AXES)
# A direction as long as this has no inverse any more.
DIRECTION_LIMIT = 2.0**126


def along(unit: Sequence[int], vector: Sequence[jax.Array]) -> jax.Array:
    """The component of `vector` along a unit vector that is parallel to an axis."""
    ((sign, component),) = ((sign, c) for sign, c in zip(unit, vector) if sign)
    return component if sign > 0 else -component


def on_face(x: jax.Array, y: jax.Array, z: jax.Array) -> tuple[jax.Array, Callable[..., Arrays]]:
    """The face of a cube that a direction meets, and the map of vectors to that face's own axes.

    The map returns (s, t, m): to the right, down, and outward. The major axis is that of the largest component; among
    equal components z comes before y, and y before x. Integers and floats are allowed. Selects, not maxima, decide:
    then a derivative belongs to one axis alone.
    """
    is_z = (jnp.abs(z) >= jnp.abs(x)) & (jnp.abs(z) >= jnp.abs(y))
    is_y = ~is_z & (jnp.abs(y) >= jnp.abs(x))
    choose = lambda for_x, for_y, for_z: jnp.where(is_z, for_z, jnp.where(is_y, for_y, for_x))
    negative = choose(x, y, z) < 0
    face = jnp.where(is_z, jnp.int32(4), jnp.where(is_y, jnp.int32(2), jnp.int32(0))) + negative.astype(jnp.int32)

    def on_own_axes(x: jax.Array, y: jax.Array, z: jax.Array) -> Arrays:
        def component(k: int) -> jax.Array:
            pairs = ((FACE_AXES[face][k], FACE_AXES[face + 1][k]) for face in (0, 2, 4))
            return choose(*(by_sign(positive, other, (x, y, z)) for positive, other in pairs))

        def by_sign(positive: Sequence[int], other: Sequence[int], vector: Arrays) -> jax.Array:
            if positive == other:
                return along(positive, vector)
            return jnp.where(negative, along(other, vector), along(positive, vector))

        s, t, major = component(0), component(1), choose(x, y, z)
        return s, t, jnp.where(negative, -major, major)

    return face, on_own_axes


def to_face(
    direction: Arrays, *sides: Arrays, divide: Callable[[jax.Array, jax.Array], jax.Array] = jnp.divide
) -> tuple[Arrays, list[Arrays]]:
    """The face of a cube that a direction meets, and where, as normalized coordinates u and v.

    A direction that meets no face, such as zero, is the center of +z, with slope zero.

    Args:
        sides: of a footprint, steps of the direction.
        divide: the division of the components by the major one.

    Returns:
        ``(face, u, v)``, and for each side the step of (u, v).
    """
    direction = tuple(jnp.where(c == c, c, 0) for c in jnp.broadcast_arrays(*direction))
    face, on_own_axes = on_face(*direction)
    s, t, m = on_own_axes(*direction)
    meets = (m > 0) & (m < DIRECTION_LIMIT)
    # A power of two changes no quotient; without it the derivative of a short direction's overflows.
    scale = jnp.where(meets, jnp.ldexp(jnp.ones_like(m), -jnp.frexp(jax.lax.stop_gradient(m))[1]), 1)
    m = jnp.where(meets, m * scale, 1)
    right, down = (divide(jnp.where(meets, c * scale, 0), m) for c in (s, t))
    steps = []
    for side in sides:
        ds, dt, dm = (jnp.where(meets, limited(d * scale), 0) for d in on_own_axes(*side))
        steps.append(((ds - right * dm) / m * 0.5, (dt - down * dm) / m * 0.5))
    return (jnp.where(meets, face, 4), (right + 1) * 0.5, (down + 1) * 0.5), steps


def from_face(face: int, s: jax.Array, t: jax.Array, n: jax.Array) -> Arrays:
    """The direction (x, y, z) of the point (s, t) on a face of a cube that reaches from -n to n."""
    direction = []
    for k in range(3):
        ((sign, component),) = ((unit[k], c) for unit, c in zip(FACE_AXES[face], (s, t, n)) if unit[k])
        direction.append(component if sign > 0 else -component)
    return tuple(direction)


@typed_jit()
def across_seam(face: jax.Array, y: jax.Array, x: jax.Array, size: Size) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The texel (face, y, x) of a cube that a tap at most one texel off one edge of `face` lies on.

    The direction of the texel's center, in units of half a texel, meets the adjacent face, and its texel is computed
    there. A tap on the face is itself; one off a corner, off two edges, is some texel.
    """
    face, y, x = jnp.broadcast_arrays(face, y, x)
    size = jnp.asarray(size, jnp.int32)
    s, t, n = 2 * x + 1 - size, 2 * y + 1 - size, jnp.broadcast_to(size, face.shape)
    (x, y, z), *others = (from_face(k, s, t, n) for k in range(NUM_FACES))
    for k, other in enumerate(others, 1):  # selects of two, which kernels have too
        x, y, z = (jnp.where(face == k, new, old) for new, old in zip(other, (x, y, z)))
    face, on_own_axes = on_face(x, y, z)
    s, t, _ = on_own_axes(x, y, z)
    index = lambda c: jnp.clip((c + size - 1) >> 1, 0, size - 1)
    return face, index(t), index(s)
