"""The operands of a read: how they hold numbers, and the grids that make coordinates of these."""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

# A coordinate for each axis; before them the sizes and starts of axes that are operands.
Coords = Sequence[jax.Array]
# Coordinates as callers give them, x first.
Arrays = tuple[jax.Array, ...]
# From the operands of a read, arrays that broadcast, to a coordinate for each axis: element by element, and static.
Grid = Callable[..., Coords]


class Shaped(Protocol):
    """Anything with a shape and a dtype: an array, its abstract value, or a view of several arrays or a slice."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...


# Operands that hold several numbers of each sample, as an array of points does: they are read where they lie


class Stack(NamedTuple):
    """How an operand holds several numbers of each sample.

    Attributes:
        axis: along which they lie, counted from the end: an operand has this axis besides those of the samples.
        order: their places along it, in the order in which a grid takes them; each place once.
    """

    axis: int
    order: tuple[int, ...]

    def numbers(self, operand: jax.Array) -> list[jax.Array]:
        """The numbers by themselves."""
        along = operand.ndim + self.axis
        return [jax.lax.index_in_dim(operand, place, along, keepdims=False) for place in self.order]

    def without_axis(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of one of the numbers."""
        return (*shape[: self.axis], *shape[len(shape) + self.axis + 1 :])


# Of each operand, how it holds several numbers, or `None` if it holds one; empty if all hold one.
Stacks: TypeAlias = tuple[Stack | None, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Stacked:
    """An operand that holds several numbers."""

    array: jax.Array
    stack: Stack = dataclasses.field(metadata={"static": True})

    @classmethod
    def last(cls, array: jax.Array) -> "Stacked":
        """An array whose last axis holds the numbers in their order."""
        return cls(array, Stack(-1, tuple(range(array.shape[-1]))))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one of the numbers."""
        return self.stack.without_axis(self.array.shape)


Operand: TypeAlias = jax.Array | Stacked


def split(operands: Sequence[Operand]) -> tuple[tuple[jax.Array, ...], Stacks]:
    """The arrays of operands, and how they hold numbers."""
    stacks = tuple(a.stack if isinstance(a, Stacked) else None for a in operands)
    return tuple(a.array if isinstance(a, Stacked) else a for a in operands), stacks if any(stacks) else ()


def joined(arrays: Sequence[jax.Array], stacks: Stacks) -> tuple[Operand, ...]:
    """Operands from what `split` returns."""
    return tuple(arrays) if not stacks else tuple(a if s is None else Stacked(a, s) for a, s in zip(arrays, stacks))


def behind(count: int, stacks: Stacks) -> Stacks:
    """The stacks of `count` operands that hold one number, and of others behind them."""
    return (*[None] * count, *stacks) if stacks else ()


def num_numbers(operands: Sequence[Operand]) -> int:
    """How many numbers operands hold."""
    return sum(len(a.stack.order) if isinstance(a, Stacked) else 1 for a in operands)


def numbers(arrays: Sequence[jax.Array], stacks: Stacks) -> list[jax.Array]:
    """The arguments of a grid, which broadcast to the samples: the numbers that operands hold."""
    found = ([a] if s is None else s.numbers(a) for a, s in zip(arrays, stacks or [None] * len(arrays)))
    return [number for some in found for number in some]


# Grids: static functions from operands to coordinates, which are computed where they are used


class SeveralReads(abc.ABC):
    """The grid of a weighted mean of several reads of each sample.

    Attributes:
        most: the number of reads, at most.
    """

    most: int

    @abc.abstractmethod
    def read(self, number: jax.Array, *operands: jax.Array) -> tuple[Coords, jax.Array]:
        """The coordinates of one of the reads, counted from 1, and its weight, which may be zero."""

    @abc.abstractmethod
    def count(self, *operands: jax.Array) -> jax.Array:
        """The number of reads of each sample. They have the same weight, and the others none."""


def as_given(*operands: jax.Array) -> Coords:
    """The grid of a read whose operands are its coordinates."""
    return operands


class StoredOrder(NamedTuple):
    """A grid of coordinates in stored order, from a function that returns them in the caller's, x first.

    Attributes:
        affine_axes: if `function` is affine in its first operands, and these are the centers of pixels along x, y (and
            z), one apart: how many there are; else 0.
    """

    function: Callable[..., Arrays]
    affine_axes: int = 0

    def __call__(self, *operands: jax.Array) -> Coords:
        return covering(self.function(*operands)[::-1], operands)


def covering(coords: Coords, operands: Sequence[jax.Array]) -> Coords:
    """Coordinates, the first of them broadcast where no coordinate depends on some axis of the samples."""
    first, *rest = coords
    shape = jnp.broadcast_shapes(*(a.shape for a in operands))
    if jnp.broadcast_shapes(*(a.shape for a in coords)) != shape:
        first = jnp.broadcast_to(first, shape)
    return first, *rest


class OneMore(NamedTuple):
    """A grid with one more operand in front, which is the coordinate at `position`."""

    grid: Grid
    position: int

    def __call__(self, operand: jax.Array, *operands: jax.Array) -> Coords:
        coords = self.grid(*operands)
        return (*coords[: self.position], operand, *coords[self.position :])
