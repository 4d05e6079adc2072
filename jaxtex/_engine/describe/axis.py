"""One axis of a read: its size, filter and address rule. Mip levels, layers and faces are axes too."""

import itertools
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._tables.address_rules import CLAMP, LAST, AddressRule
from ..._tables.filter_kernels import POINT, FilterKernel, Polynomials
from .levels import chosen_level_size, level_size


class Role(StrEnum):
    """What an axis runs over."""

    LEVEL = "level"
    LAYER = "layer"
    FACE = "face"
    WEIGHT = "weight"
    SPACE = "space"


class Given(NamedTuple):
    """The size of an axis if it is an operand of the read. The texels of all axes lie in one flat array.

    Attributes:
        capacity: the number of texels of the flat array, at least as many as the texture has.
    """

    capacity: int


class StoredLevel(NamedTuple):
    """The texels of one mip level that each part of a partitioned axis stores.

    Attributes:
        count: the number of texels of a part.
        period: as in `Stored`.
        step: the distance between the first texels of successive parts.
        first: the first texel of part 0; it may be negative.
    """

    count: int
    period: int
    step: int
    first: int


class Stored(NamedTuple):
    """The stored part of an axis: adjacent texels, which may wrap around its end.

    Attributes:
        period: the number of texels after which the axis repeats, at least its size; no tap reads a texel between the
            two. Ignored for a window, whose period is the size of the axis, which may be an operand.
        start: the number of the first stored texel, from 0 to ``period - 1``; `None` if it is an operand.
        is_window: whether the part has all texels that the samples of interest need; other samples may read any texel.
        levels: for a mip chain, the stored texels of each level; then `start` is the number of the part.
    """

    count: int | jax.Array
    period: int | jax.Array
    start: jax.Array | None = None
    is_window: bool = False
    levels: tuple[StoredLevel, ...] = ()

    def at(self, level: jax.Array) -> "Stored":
        """The stored part in the mip level of each sample, int32; its fields become arrays."""
        if not self.levels:
            return self
        assert self.start is not None
        count, period, step, first = (of_level(level, numbers) for numbers in zip(*self.levels))
        return Stored(count, period, jnp.mod(self.start * step + first, period))

    def count_in(self, level: int) -> int:
        """The number of stored texels in a mip level that is known while tracing."""
        count = self.levels[level].count if self.levels else self.count
        assert isinstance(count, int)
        return count

    def place(self, index: jax.Array, size: int | jax.Array) -> tuple[jax.Array, jax.Array]:
        """The place of a texel among the stored ones (0 if it is not stored), and whether it is stored."""
        assert self.start is not None
        place = index - self.start
        place = jnp.where(place < 0, place + (size if self.is_window else self.period), place)
        return jnp.where(place < self.count, place, 0), place < self.count


class Axis(NamedTuple):
    """One axis of a read.

    Attributes:
        size: the number of texels; if samples choose their mip level, the size in level 0.
        normalized: whether coordinates run from 0 to 1, or from 0 to `size`.
        integer: whether the axis takes indices in place of coordinates: a layer, a face, or an axis of a fetch.
        order: the derivative order of the weights.
        role: what the axis runs over. If samples choose their mip level, the first axis has role LEVEL; its `size` is
            the number of levels, or the largest possible one if sizes are operands.
            An axis of role WEIGHT has one texel, whose weight is the coordinate: it multiplies the read.
        level_sizes: the size in each level, if levels do not halve; otherwise empty.
        stored: the stored part; `None` if all texels are stored.
    """

    size: int | jax.Array | Given
    kernel: FilterKernel
    address: AddressRule
    normalized: bool = False
    integer: bool = False
    order: int = 0
    role: Role = Role.SPACE
    level_sizes: tuple[int, ...] = ()
    stored: Stored | None = None

    @classmethod
    def of_layers(cls, count: int, address: AddressRule = LAST) -> "Axis":
        """An axis of layers, whose coordinate is the number of a layer, int32."""
        return cls(count, POINT, address, integer=True, role=Role.LAYER)

    def at(self, level: jax.Array) -> "Axis":
        """The axis in the mip level of each sample, int32; its size becomes an array."""
        axis = self if self.stored is None else self._replace(stored=self.stored.at(level))
        if self.role is not Role.SPACE:
            return axis
        if not self.level_sizes:
            return axis._replace(size=chosen_level_size(self.given_size, level))
        return axis._replace(size=of_level(level, self.level_sizes))

    def level_size(self, level: int) -> int:
        """The size in a mip level that is known while tracing."""
        if self.level_sizes:
            return self.level_sizes[level]
        return level_size(self.known_size, level) if self.role is Role.SPACE else self.known_size

    @property
    def known_size(self) -> int:
        """The size, which must be known while tracing; that of layers may be symbolic."""
        assert not isinstance(self.size, jax.Array | Given)
        return self.size

    @property
    def extent(self) -> int | jax.Array:
        """The number of stored texels."""
        return self.given_size if self.stored is None else self.stored.count

    @property
    def given_size(self) -> int | jax.Array:
        """The size, a number or an array; an operand must have been put in place by `with_given`."""
        assert not isinstance(self.size, Given)
        return self.size

    @property
    def needs_size(self) -> bool:
        """Whether the size is an operand."""
        return isinstance(self.size, Given)

    @property
    def needs_start(self) -> bool:
        """Whether the number of the first stored texel is an operand."""
        return self.stored is not None and self.stored.start is None

    def with_given(self, sizes: Iterator[jax.Array], starts: Iterator[jax.Array]) -> "Axis":
        """The axis with its operands in place: it takes the next size and the next start if it needs them."""
        axis = self._replace(size=next(sizes)) if self.needs_size else self
        if axis.stored is None or axis.stored.start is not None:
            return axis
        return axis._replace(stored=axis.stored._replace(start=next(starts)))

    @property
    def vanishes(self) -> bool:
        """Whether the weights' derivatives of this order are zero everywhere."""
        return self.kernel.weights.vanish(self.order)

    @property
    def reduced(self) -> bool:
        """Whether coordinates are taken modulo 2 before they are scaled to texels."""
        return self.normalized and self.address.repeats


def of_level(level: jax.Array, numbers: tuple[int, ...]) -> jax.Array:
    """The entry of `numbers`, which has one for each level, at the level of each sample."""
    # A sum of steps takes the place of a lookup, which does not vectorize.
    steps = [(k, b - a) for k, (a, b) in enumerate(itertools.pairwise(numbers)) if a != b]
    return sum((jnp.where(level > k, np.int32(n), 0) for k, n in steps), jnp.full_like(level, numbers[0]))


# The axis that multiplies a read by its coordinate.
WEIGHT = Axis(1, FilterKernel(0.0, 0, Polynomials(((0.0, 1.0),))), CLAMP, role=Role.WEIGHT)


def num_given(axes: Sequence[Axis]) -> int:
    """The number of operands that are sizes or starts of axes."""
    return sum(axis.needs_size + axis.needs_start for axis in axes)


def stored_part(axes: tuple[Axis, ...]) -> tuple[int, int]:
    """The `count` and the `period` of the only axis that has a stored part."""
    (stored,) = (axis.stored for axis in axes if axis.stored is not None)
    assert isinstance(stored.count, int)
    assert isinstance(stored.period, int)
    return stored.count, stored.period


def sizes_are_known(axes: tuple[Axis, ...]) -> bool:
    """Whether all sizes are known while tracing."""
    return all(isinstance(axis.size, int) for axis in axes)


# A derivative order for each axis.
Orders = tuple[int, ...]


def with_orders(axes: tuple[Axis, ...], orders: Orders) -> tuple[Axis, ...]:
    """`axes` with these derivative orders."""
    return tuple(axis._replace(order=order) for axis, order in zip(axes, orders, strict=True))


def differentiated(axes: tuple[Axis, ...], k: int) -> tuple[Axis, ...]:
    """`axes` with one more derivative along axis `k`."""
    return (*axes[:k], axes[k]._replace(order=axes[k].order + 1), *axes[k + 1 :])
