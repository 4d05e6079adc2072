"""From a coordinate of a grid, -1 to 1, to a position and a sampler: torch's `align_corners`, modes and paddings."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..modes import AddressMode, FilterMode
from ..sampler import Sampler


class Span(NamedTuple):
    """The part of an axis of `size` texels that a grid runs over: -1 is the position `low`, and 1 is `high`."""

    low: float
    high: float
    size: int

    @classmethod
    def of(cls, size: int, align_corners: bool | None) -> "Span":
        """From centre to centre of the outer texels, or from edge to edge."""
        return cls(0.5, size - 0.5, size) if align_corners else cls(0.0, float(size), size)

    @property
    def length(self) -> float:
        """How many texels lie between -1 and 1."""
        return self.high - self.low

    @property
    def centres(self) -> np.ndarray:
        """The coordinates of the texels' centres; of a texel that fills no span, 0."""
        if not self.length:
            return np.zeros(self.size)
        return (np.arange(self.size) + 0.5 - self.low) * (2 / self.length) - 1

    def position(self, g: jax.Array) -> jax.Array:
        """The position of a coordinate of a grid. NaN acts as -1, as torch's manual says."""
        return (jnp.where(g == g, g, -1) + 1) * (self.length / 2) + self.low


# What is done with a position before it is read.
Fold = Callable[[jax.Array, Span], jax.Array]


def stays(position: jax.Array, span: Span) -> jax.Array:
    """Outside remains outside."""
    return position


def held(position: jax.Array, span: Span) -> jax.Array:
    """Held between the outer centres. On them the slope is zero already; what is no number is at the first."""
    first, last = 0.5, span.size - 0.5
    return jnp.where(position > first, jnp.where(position < last, position, last), first)


def reflected(position: jax.Array, span: Span) -> jax.Array:
    """Mirrored at both ends of the span, and held where those are the edges."""
    if not span.length:
        return held(position, span)
    phase = jnp.mod(position - span.low, 2 * span.length)
    return held(jnp.where(phase < span.length, phase, 2 * span.length - phase) + span.low, span)


def rounded(position: jax.Array) -> jax.Array:
    """The nearest centre; of two equally near, that with the even index, not the one that a point filter reads."""
    return jnp.round(position - 0.5) + 0.5


class Padding(NamedTuple):
    """What is read outside.

    torch moves a coordinate inside and filters there, unless the filter is cubic: then it addresses the taps one by
    one. Between kinks an address mode does the same, but the slope at a kink and a tie under reflection are others.

    Attributes:
        fold: how a position comes inside, for filters that are not cubic.
        address: the address mode without and with `align_corners`.
    """

    fold: Fold
    address: tuple[AddressMode, AddressMode]


PADDINGS = {
    "zeros": Padding(stays, (AddressMode.BORDER, AddressMode.BORDER)),
    "border": Padding(held, (AddressMode.CLAMP, AddressMode.CLAMP)),
    "reflection": Padding(reflected, (AddressMode.MIRROR, AddressMode.REFLECT)),
}
FILTERS = {
    "nearest": FilterMode.POINT,
    "bilinear": FilterMode.LINEAR,
    "trilinear": FilterMode.LINEAR,
    "bicubic": FilterMode.CUBIC,
}
CUBIC_COEFFICIENT = -0.75


def reading(name: str, mode: str, padding_mode: str, align_corners: bool | None) -> tuple[Sampler, Fold]:
    """What torch's words mean: a sampler, and what is to be done with positions before."""
    filter_mode = option(name, "mode", mode, FILTERS)
    padding = option(name, "padding_mode", padding_mode, PADDINGS)
    sampler = Sampler(
        address_mode=padding.address[bool(align_corners)], filter_mode=filter_mode, cubic_coefficient=CUBIC_COEFFICIENT
    )
    if filter_mode is FilterMode.CUBIC:
        return sampler, stays
    if filter_mode is FilterMode.POINT:
        return sampler, lambda position, span: rounded(padding.fold(position, span))
    return sampler, padding.fold


def option(name: str, argument: str, value: Any, table: Mapping[str, Any]) -> Any:
    """The entry of `table` that `value` names."""
    if value not in table:
        raise ValueError(f"{name}: {argument} is {value!r}, expected one of {', '.join(map(repr, table))}.")
    return table[value]
