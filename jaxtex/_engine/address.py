"""From a tap to the stored texel that it reads: one axis by address mode, and the seams of a cube."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from ..modes import AddressMode
from .coordinates import on_face

# A size is a number, or an array where every sample chooses its mip level.
Size = int | jax.Array
# An index within the axis, and whether the tap was inside; None where every tap reads a texel.
Addressed = tuple[jax.Array, jax.Array | None]


def is_inside(tap: jax.Array, size: Size) -> jax.Array:
    """Whether `tap` is a texel of an axis of `size`."""
    return (tap >= 0) & (tap < size)


def clamp(tap: jax.Array, size: Size) -> Addressed:
    return jnp.clip(tap, 0, size - 1), None


def border(tap: jax.Array, size: Size) -> Addressed:
    inside = is_inside(tap, size)
    return jnp.where(inside, tap, 0), inside


def wrap(tap: jax.Array, size: Size) -> Addressed:
    return jnp.mod(tap, size), None


def mirror(tap: jax.Array, size: Size) -> Addressed:
    phase = jnp.mod(tap, 2 * size)
    return jnp.minimum(phase, 2 * size - 1 - phase), None


def reflect(tap: jax.Array, size: Size) -> Addressed:
    period = jnp.maximum(2 * (size - 1), 1) if isinstance(size, jax.Array) else max(2 * (size - 1), 1)
    phase = jnp.mod(tap, period)
    return jnp.minimum(phase, period - phase), None


def last(tap: jax.Array, size: Size) -> Addressed:
    return jnp.where(is_inside(tap, size), tap, size - 1), None


ADDRESS_RULES: dict[AddressMode, Callable[[jax.Array, Size], Addressed]] = {
    AddressMode.CLAMP: clamp,
    AddressMode.BORDER: border,
    AddressMode.WRAP: wrap,
    AddressMode.MIRROR: mirror,
    AddressMode.REFLECT: reflect,
    AddressMode.LAST: last,
}


def directions(s: jax.Array, t: jax.Array, n: jax.Array) -> tuple[tuple[jax.Array, ...], ...]:
    """The direction (x, y, z) of the point (s, t) on each face of a cube that reaches from -n to n."""
    return (n, -t, -s), (-n, -t, s), (s, n, t), (s, -n, -t), (s, -t, n), (-s, -t, -n)


def across_seam(face: jax.Array, y: jax.Array, x: jax.Array, size: Size) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The texel (face, y, x) of a cube that a tap at most one texel off one edge of `face` lies on.

    The direction of the texel's centre, in units of half a texel, meets the adjacent face, and its texel is read off
    there. A tap on the face is itself; one off a corner, off two edges, is some texel.
    """
    face, y, x = jnp.broadcast_arrays(face, y, x)
    size = jnp.asarray(size, jnp.int32)
    s, t, n = 2 * x + 1 - size, 2 * y + 1 - size, jnp.broadcast_to(size, face.shape)
    (x, y, z), *others = directions(s, t, n)
    for k, other in enumerate(others, 1):  # selects of two, which kernels have too
        x, y, z = (jnp.where(face == k, new, old) for new, old in zip(other, (x, y, z)))
    face, axes = on_face(x, y, z)
    s, t, _ = axes(x, y, z)
    index = lambda c: jnp.clip((c + size - 1) >> 1, 0, size - 1)
    return face, index(t), index(s)
