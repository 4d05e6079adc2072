"""The static state of one axis of a read. A layer is an axis too; a dimension is one more axis in a tuple."""

import itertools
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._tables.address_rules import CLAMP, AddressRule
from ..._tables.filter_kernels import FilterKernel, Polynomials
from .levels import chosen_level_size, level_size


class Role(StrEnum):
    """What an axis runs over."""

    LEVEL = "level"
    LAYER = "layer"
    FACE = "face"
    WEIGHT = "weight"
    SPACE = "space"


class Given(NamedTuple):
    """A size that is an operand, of texels that all lie in one flat array.

    Attributes:
        capacity: the number of texels of that array, at least as many as the texture has.
    """

    capacity: int


class StoredLevel(NamedTuple):
    """The texels of an axis that each of several parts stores of one level of a mip chain.

    Attributes:
        count: how many.
        period: as in `Stored`.
        step: how far the first one of a part lies behind that of the part before.
        first: the first one of part 0, which may lie before the axis.
    """

    count: int
    period: int
    step: int
    first: int


class Stored(NamedTuple):
    """The texels of an axis that are stored, where they are a part of it: a row of neighbors, which may wrap around.

    Attributes:
        count: how many are stored.
        period: after how many texels the first one follows again. No tap reads those beyond the size of the axis. Of a
            window it is that size, whatever stands here, since that may be an operand.
        start: the number of the first stored texel, from 0 to ``period - 1``; `None` where it is an operand.
        is_window: whether they hold all that the samples of interest need; other samples may read any texel.
        levels: of a mip chain, the texels that are stored of each level; then `start` is the number of the part.
    """

    count: int | jax.Array
    period: int | jax.Array
    start: jax.Array | None = None
    is_window: bool = False
    levels: tuple[StoredLevel, ...] = ()

    def at(self, level: jax.Array) -> "Stored":
        """The texels that are stored of a level of the mip chain, as arrays."""
        if not self.levels:
            return self
        assert self.start is not None
        count, period, step, first = (of_level(level, numbers) for numbers in zip(*self.levels))
        return Stored(count, period, jnp.mod(self.start * step + first, period))

    def count_in(self, level: int) -> int:
        """How many texels are stored of a level that is known while tracing."""
        count = self.levels[level].count if self.levels else self.count
        assert isinstance(count, int)
        return count

    def place(self, index: jax.Array, size: int | jax.Array) -> tuple[jax.Array, jax.Array]:
        """Where a texel is among the stored ones, and whether it is stored; one that is not has place 0.

        Args:
            size: of the axis.
        """
        assert self.start is not None
        place = index - self.start
        place = jnp.where(place < 0, place + (size if self.is_window else self.period), place)
        return jnp.where(place < self.count, place, 0), place < self.count


class Axis(NamedTuple):
    """One axis of a read.

    Attributes:
        size: the number of texels; where samples choose their level in a mip chain, the size in level 0.
        kernel: the filter.
        address: the rule for taps outside.
        normalized: whether coordinates run from 0 to 1, or from 0 to `size`.
        integer: whether the axis takes indices in place of coordinates: a layer, a face, or an axis of a fetch.
        order: the derivative order of the weights.
        role: what the axis runs over. Where a read chooses its level, an axis of levels stands in front of the others;
            where sizes are operands, its `size` is the most levels that there may be.
            An axis of role WEIGHT has one texel, whose weight is the coordinate itself: it multiplies the read.
        level_sizes: the size in each level, where the levels are not those of a mip chain.
        stored: which of its texels are stored; `None` if all are.
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

    def at(self, level: jax.Array) -> "Axis":
        """This axis in a level of the mip chain, with an array for a size."""
        axis = self if self.stored is None else self._replace(stored=self.stored.at(level))
        if self.role is not Role.SPACE:
            return axis
        if not self.level_sizes:
            return axis._replace(size=chosen_level_size(self.given_size, level))
        return axis._replace(size=of_level(level, self.level_sizes))

    def level_size(self, level: int) -> int:
        """The size in a level that is known while tracing."""
        if self.level_sizes:
            return self.level_sizes[level]
        return level_size(self.known_size, level) if self.role is Role.SPACE else self.known_size

    @property
    def known_size(self) -> int:
        """The size of an axis whose samples do not choose their level, where it is known while tracing."""
        assert isinstance(self.size, int)
        return self.size

    @property
    def extent(self) -> int | jax.Array:
        """How many texels are stored along it."""
        return self.given_size if self.stored is None else self.stored.count

    @property
    def given_size(self) -> int | jax.Array:
        """The size, known while tracing or not."""
        assert not isinstance(self.size, Given)
        return self.size

    @property
    def needs_size(self) -> bool:
        """Whether its size is an operand."""
        return isinstance(self.size, Given)

    @property
    def needs_start(self) -> bool:
        """Whether the start of its stored texels is an operand."""
        return self.stored is not None and self.stored.start is None

    def with_given(self, sizes: Iterator[jax.Array], starts: Iterator[jax.Array]) -> "Axis":
        """This axis with the next size and the next start, if it needs them."""
        axis = self._replace(size=next(sizes)) if self.needs_size else self
        if axis.stored is None or axis.stored.start is not None:
            return axis
        return axis._replace(stored=axis.stored._replace(start=next(starts)))

    @property
    def vanishes(self) -> bool:
        """Whether the derivative is zero everywhere."""
        return self.kernel.weights.vanish(self.order)

    @property
    def reduced(self) -> bool:
        """Whether coordinates are taken modulo 2 before they are scaled to texels."""
        return self.normalized and self.address.repeats


def of_level(level: jax.Array, numbers: tuple[int, ...]) -> jax.Array:
    """The number of a level, among one for each level."""
    # Counted, not looked up: a vector unit has no table.
    steps = [(k, b - a) for k, (a, b) in enumerate(itertools.pairwise(numbers)) if a != b]
    return sum((jnp.where(level > k, np.int32(n), 0) for k, n in steps), jnp.full_like(level, numbers[0]))


# Multiplies a read by its coordinate.
WEIGHT = Axis(1, FilterKernel(0.0, 0, Polynomials(((0.0, 1.0),))), CLAMP, role=Role.WEIGHT)


def num_given(axes: Sequence[Axis]) -> int:
    """The number of operands that say sizes and starts of axes: first all sizes, and then all starts."""
    return sum(axis.needs_size + axis.needs_start for axis in axes)


def stored_part(axes: tuple[Axis, ...]) -> tuple[int, int]:
    """The `count` and the `period` of the one axis that is stored in part, known while tracing."""
    (stored,) = (axis.stored for axis in axes if axis.stored is not None)
    assert isinstance(stored.count, int)
    assert isinstance(stored.period, int)
    return stored.count, stored.period


def sizes_are_known(axes: tuple[Axis, ...]) -> bool:
    """Whether all sizes are known while tracing."""
    return all(isinstance(axis.size, int) for axis in axes)


def differentiated(axes: tuple[Axis, ...], k: int) -> tuple[Axis, ...]:
    """`axes` with one more derivative along axis `k`."""
    return (*axes[:k], axes[k]._replace(order=axes[k].order + 1), *axes[k + 1 :])
