"""One axis: from a tap to the stored texel that it reads, by address mode."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from .modes import AddressMode

# An index within the axis, and whether the tap was inside; None where every tap reads a texel.
Addressed = tuple[jax.Array, jax.Array | None]


def is_inside(tap: jax.Array, size: int) -> jax.Array:
    """Whether `tap` is a texel of an axis of `size`."""
    return (tap >= 0) & (tap < size)


def clamp(tap: jax.Array, size: int) -> Addressed:
    return jnp.clip(tap, 0, size - 1), None


def border(tap: jax.Array, size: int) -> Addressed:
    inside = is_inside(tap, size)
    return jnp.where(inside, tap, 0), inside


def wrap(tap: jax.Array, size: int) -> Addressed:
    return jnp.mod(tap, size), None


def mirror(tap: jax.Array, size: int) -> Addressed:
    phase = jnp.mod(tap, 2 * size)
    return jnp.minimum(phase, 2 * size - 1 - phase), None


def reflect(tap: jax.Array, size: int) -> Addressed:
    period = max(2 * (size - 1), 1)
    phase = jnp.mod(tap, period)
    return jnp.minimum(phase, period - phase), None


def last(tap: jax.Array, size: int) -> Addressed:
    return jnp.where(is_inside(tap, size), tap, size - 1), None


ADDRESS_RULES: dict[AddressMode, Callable[[jax.Array, int], Addressed]] = {
    AddressMode.CLAMP: clamp,
    AddressMode.BORDER: border,
    AddressMode.WRAP: wrap,
    AddressMode.MIRROR: mirror,
    AddressMode.REFLECT: reflect,
    AddressMode.LAST: last,
}
