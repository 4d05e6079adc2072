"""PyTorch's `align_corners`, modes and paddings, as a position and a sampler for each grid coordinate from -1 to 1."""

# pyright: strict, reportUnknownMemberType=false

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..._checks.words import check_word
from ...modes import AddressMode, FilterMode
from ...sampler import Sampler

Entry = TypeVar("Entry")


class Span(NamedTuple):
    """The part of an axis of `size` texels that a grid spans: -1 is the position `low`, and 1 is `high`."""

    low: float
    high: float
    size: int

    @classmethod
    def of(cls, size: int, align_corners: bool | None) -> "Span":
        """From center to center of the outer texels, or from edge to edge."""
        return cls(0.5, size - 0.5, size) if align_corners else cls(0.0, float(size), size)

    @property
    def length(self) -> float:
        """The number of texels between -1 and 1."""
        return self.high - self.low

    @property
    def centers(self) -> np.ndarray:
        """The coordinates of the texels' centers; 0 if the span has no length."""
        if not self.length:
            return np.zeros(self.size)
        return (np.arange(self.size) + 0.5 - self.low) * (2 / self.length) - 1

    def position(self, g: jax.Array) -> jax.Array:
        """The position of a coordinate of a grid. NaN acts as -1, as in PyTorch's manual."""
        return (jnp.where(g == g, g, -1) + 1) * (self.length / 2) + self.low


# What happens to a position before the read.
Fold = Callable[[jax.Array, Span], jax.Array]


def unchanged(position: jax.Array, span: Span) -> jax.Array:
    """The position itself."""
    return position


def clamped(position: jax.Array, span: Span) -> jax.Array:
    """The position, clamped to the centers of the outer texels. At these centers the slope is zero; NaN acts as the
    first center."""
    first, last = 0.5, span.size - 0.5
    return jnp.where(position > first, jnp.where(position < last, position, last), first)


def reflected(position: jax.Array, span: Span) -> jax.Array:
    """The position, mirrored at both ends of the span, and clamped where these are the edges of the outer texels."""
    if not span.length:
        return clamped(position, span)
    phase = jnp.mod(position - span.low, 2 * span.length)
    return clamped(jnp.where(phase < span.length, phase, 2 * span.length - phase) + span.low, span)


class Rounded(NamedTuple):
    """The center nearest to the folded position; of two equally near, the one with the even index, unlike the point
    filter."""

    fold: Fold

    def __call__(self, position: jax.Array, span: Span) -> jax.Array:
        return jnp.round(self.fold(position, span) - 0.5) + 0.5


class GridPositions(NamedTuple):
    """A coordinate function that takes the coordinates of a grid, from -1 to 1, behind those of the pixels.

    Attributes:
        spans: of the image, x first.
        fold: what happens to a position before the read.
    """

    spans: tuple[Span, ...]
    fold: Fold

    def __call__(self, *args: jax.Array) -> tuple[jax.Array, ...]:
        points = args[len(args) // 2 :]
        return tuple(self.fold(span.position(g), span) for g, span in zip(points, self.spans, strict=True))


class Padding(NamedTuple):
    """The result of a read outside the image.

    PyTorch moves a coordinate inside and filters there, but a cubic filter addresses its taps one by one. Between kinks
    an address mode returns the same, but the slope at a kink and a tie under reflection differ.

    Attributes:
        fold: how a position moves inside, for filters that are not cubic.
        address: the address mode without and with `align_corners`.
    """

    fold: Fold
    address: tuple[AddressMode, AddressMode]


PADDINGS = {
    "zeros": Padding(unchanged, (AddressMode.BORDER, AddressMode.BORDER)),
    "border": Padding(clamped, (AddressMode.CLAMP, AddressMode.CLAMP)),
    "reflection": Padding(reflected, (AddressMode.MIRROR, AddressMode.REFLECT)),
}
FILTERS = {
    "nearest": FilterMode.POINT,
    "bilinear": FilterMode.LINEAR,
    "trilinear": FilterMode.LINEAR,
    "bicubic": FilterMode.CUBIC,
}
CUBIC_COEFFICIENT = -0.75


class GridRead(NamedTuple):
    """What PyTorch's words mean here.

    Attributes:
        filter: the filter mode.
        address: the address mode.
        fold: what happens to a position before the read.
    """

    filter: FilterMode
    address: AddressMode
    fold: Fold

    @property
    def sampler(self) -> Sampler:
        return Sampler(address_mode=self.address, filter_mode=self.filter, cubic_coefficient=CUBIC_COEFFICIENT)


def grid_read(name: str, mode: str, padding_mode: str, align_corners: bool | None) -> GridRead:
    """The read of a `mode`, a `padding_mode` and `align_corners`."""
    filter_mode = entry(name, "mode", mode, FILTERS)
    padding = entry(name, "padding_mode", padding_mode, PADDINGS)
    address = padding.address[bool(align_corners)]
    if filter_mode is FilterMode.CUBIC:
        return GridRead(filter_mode, address, unchanged)
    if filter_mode is FilterMode.POINT:
        return GridRead(filter_mode, address, Rounded(padding.fold))
    return GridRead(filter_mode, address, padding.fold)


def entry(name: str, argument: str, value: Any, table: Mapping[str, Entry]) -> Entry:
    """The entry of `table` that `value` names."""
    check_word(name, argument, value, table)
    return table[value]
