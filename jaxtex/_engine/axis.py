"""The static state of one axis of a read. A layer is an axis too; a dimension is one more axis in a tuple."""

from enum import StrEnum
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..modes import AddressMode


class Footprint(NamedTuple):
    """The taps of one axis: where they start, and how much each weighs.

    With ``low = floor(position - origin)`` the taps are ``low + first``, ``low + first + 1``, ..., one for each
    row of `weights`; a row holds the coefficients of a polynomial in the fraction ``position - origin - low``,
    constant term first.
    """

    origin: float
    first: int
    weights: tuple[tuple[float, ...], ...]

    @property
    def degree(self) -> int:
        """The degree of the weights: derivatives of a higher order vanish."""
        return max(map(len, self.weights)) - 1


class Role(StrEnum):
    """What an axis runs over."""

    LEVEL = "level"
    LAYER = "layer"
    FACE = "face"
    SPACE = "space"


class Axis(NamedTuple):
    """One axis: its size, how it is filtered and addressed, and which derivative of the weights is asked for.

    An `integer` axis takes indices in place of coordinates: a layer, a face, or an axis of a fetch. Where a read
    chooses its level in a mip chain, an axis of levels stands in front of all others, and `size` is that of level 0.
    """

    size: int | jax.Array
    footprint: Footprint
    address: AddressMode
    normalized: bool = False
    integer: bool = False
    order: int = 0
    role: Role = Role.SPACE

    def at(self, level: jax.Array) -> "Axis":
        """This axis in a level of the mip chain, with an array for a size."""
        return self._replace(size=jnp.maximum(self.size >> level, 1)) if self.role is Role.SPACE else self

    def level_size(self, level: int) -> int:
        """The size in a level that is known while tracing."""
        return max(self.known_size >> level, 1) if self.role is Role.SPACE else self.known_size

    @property
    def known_size(self) -> int:
        """The size of an axis that is not in a level chosen sample by sample."""
        assert isinstance(self.size, int)
        return self.size

    @property
    def vanishes(self) -> bool:
        """Whether the derivative is zero everywhere."""
        return self.order > self.footprint.degree

    @property
    def reduced(self) -> bool:
        """Whether coordinates are taken modulo 2 before they are scaled: a period of 1 or 2 in the coordinate."""
        return self.normalized and self.address in (AddressMode.WRAP, AddressMode.MIRROR)

    @property
    def saturating(self) -> bool:
        """Whether every position far outside reads the same, so that an infinity has a meaning."""
        return self.address in (AddressMode.CLAMP, AddressMode.BORDER)


def raised(axes: tuple[Axis, ...], k: int) -> tuple[Axis, ...]:
    """`axes` with one more derivative along axis `k`."""
    return (*axes[:k], axes[k]._replace(order=axes[k].order + 1), *axes[k + 1 :])
