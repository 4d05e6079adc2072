"""The operands of a read, and grids, the functions from operands to coordinates."""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.shapes import broadcast_shapes
from ..._tables.storage_formats import is_narrow

# One coordinate for each axis, preceded by the sizes and starts of axes that are operands.
Coords = Sequence[jax.Array]
# Coordinates in the caller's order, x first.
Arrays = tuple[jax.Array, ...]
# A function from the operands of a read to one coordinate for each axis; elementwise and hashable. Together, the
# coordinates have the shape to which the operands broadcast, that of the samples.
Grid = Callable[..., Coords]
Entry = TypeVar("Entry")


class Shaped(Protocol):
    """An object with a shape and a dtype: an array, its abstract value, or a view of a slice or of several arrays."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...


# Stacked operands, which hold several numbers of each sample, such as an array of points


class Stack(NamedTuple):
    """The layout of an operand that holds several numbers of each sample.

    Attributes:
        axis: the axis of the numbers, counted from the end; the operand has it in addition to the sample axes.
        order: the places along the axis, in the order of the grid's arguments; each place once.
    """

    axis: int
    order: tuple[int, ...]

    def numbers(self, operand: jax.Array) -> list[jax.Array]:
        """The numbers as arrays of their own."""
        along = operand.ndim + self.axis
        return [jax.lax.index_in_dim(operand, place, along, keepdims=False) for place in self.order]

    def without_axis(self, shape: Sequence[int]) -> tuple[int, ...]:
        """`shape` without the axis of the numbers."""
        before, _, after = self.around(shape)
        return (*before, *after)

    def with_axis(self, entries: Sequence[Entry], entry: Entry) -> tuple[Entry, ...]:
        """Entries for the axes of samples, with another one for the axis of the numbers."""
        along = len(entries) + 1 + self.axis
        return (*entries[:along], entry, *entries[along:])

    def dimension_of(self, d: int, rank: int) -> int:
        """The dimension of an operand of `rank` dimensions that is axis `d` of the samples, both from the front."""
        return d + (d >= rank + self.axis)

    def around(self, shape: Sequence[int]) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
        """The sizes before the axis of the numbers, the size of that axis, and the sizes after it."""
        along = len(shape) + self.axis
        return tuple(shape[:along]), shape[along], tuple(shape[along + 1 :])


# The stack of each operand, or `None` for an operand of one number; empty if all operands have one number.
Stacks: TypeAlias = tuple[Stack | None, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Stacked:
    """An operand that holds several numbers of each sample."""

    array: jax.Array
    stack: Stack = dataclasses.field(metadata={"static": True})

    @classmethod
    def last(cls, array: jax.Array) -> "Stacked":
        """The operand of an array whose last axis holds the numbers, in order."""
        return cls(array, Stack(-1, tuple(range(array.shape[-1]))))

    @classmethod
    def first(cls, array: jax.Array) -> "Stacked":
        """The operand of an array whose first axis holds the numbers, in order."""
        return cls(array, Stack(-array.ndim, tuple(range(array.shape[0]))))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape without the axis of the numbers."""
        return self.stack.without_axis(self.array.shape)


Operand: TypeAlias = jax.Array | Stacked


def split(operands: Sequence[Operand]) -> tuple[tuple[jax.Array, ...], Stacks]:
    """The arrays of operands, and their stacks."""
    stacks = tuple(a.stack if isinstance(a, Stacked) else None for a in operands)
    return tuple(a.array if isinstance(a, Stacked) else a for a in operands), stacks if any(stacks) else ()


def joined(arrays: Sequence[jax.Array], stacks: Stacks) -> tuple[Operand, ...]:
    """The operands with these arrays and stacks: the inverse of `split`."""
    return tuple(arrays) if not stacks else tuple(a if s is None else Stacked(a, s) for a, s in zip(arrays, stacks))


def behind(count: int, stacks: Stacks) -> Stacks:
    """The stacks of `count` operands of one number, followed by operands with `stacks`."""
    return (*[None] * count, *stacks) if stacks else ()


def numbers(operands: Sequence[Operand]) -> list[jax.Array]:
    """The arguments of a grid, which broadcast to the samples: the numbers that operands hold."""
    by_operand = (a.stack.numbers(a.array) if isinstance(a, Stacked) else [a] for a in operands)
    return [widened(number) for of_one in by_operand for number in of_one]


def widened(number: jax.Array) -> jax.Array:
    """A number of an operand as grids take it: floats of 16 bits as float32."""
    return number.astype(jnp.float32) if is_narrow(number.dtype) else number


# Grids: hashable functions from operands to coordinates, which reads call as part of their own computation


class SeveralReads(abc.ABC):
    """The grid of a weighted mean of several reads of each sample.

    Attributes:
        most: the largest number of reads.
    """

    most: int

    @abc.abstractmethod
    def read(self, number: jax.Array, *operands: jax.Array) -> tuple[Coords, jax.Array]:
        """The coordinates and the weight of read `number`, from 1; the weight may be zero."""

    @abc.abstractmethod
    def count(self, *operands: jax.Array) -> jax.Array:
        """The number of reads of each sample. These have equal weights; the weight of the others is zero."""


def as_given(*operands: jax.Array) -> Coords:
    """The grid of a read whose operands are its coordinates."""
    return operands


class StoredOrder(NamedTuple):
    """The grid of a function that returns coordinates in the caller's order, x first.

    Attributes:
        affine_axes: the number of leading operands that are centers of pixels along x, y (and z), one apart, if
            `function` is affine in them; otherwise 0.
    """

    function: Callable[..., Arrays]
    affine_axes: int = 0

    def __call__(self, *operands: jax.Array) -> Coords:
        return covering(self.function(*operands)[::-1], operands)


def covering(coords: Coords, operands: Sequence[jax.Array]) -> Arrays:
    """Coordinates that together broadcast to the shape of the samples: the first is broadcast if need be."""
    first, *rest = coords
    shape = broadcast_shapes(*(a.shape for a in operands))
    if broadcast_shapes(*(a.shape for a in coords)) != shape:
        first = jnp.broadcast_to(first, shape)
    return first, *rest


class OneMore(NamedTuple):
    """A grid with one more operand in front, which becomes the coordinate at `position`."""

    grid: Grid
    position: int

    def __call__(self, operand: jax.Array, *operands: jax.Array) -> Coords:
        coords = self.grid(*operands)
        return (*coords[: self.position], operand, *coords[self.position :])


class Besides(NamedTuple):
    """A grid with `count` more operands behind, which are not its own; coordinates cover their shape, too."""

    grid: Grid
    count: int

    def __call__(self, *operands: jax.Array) -> Coords:
        return covering(self.grid(*operands[: -self.count]), operands)


class WithTangent(NamedTuple):
    """A grid that takes tangents of its arguments too, and returns how a coordinate changes along them, as a weight.

    Attributes:
        count: the number of arguments of the grid, which precede the tangents.
        moving: the arguments that have tangents.
        axis: the coordinate that changes.
        position: where the weight stands among the coordinates.
    """

    grid: Grid
    count: int
    moving: tuple[int, ...]
    axis: int
    position: int

    def __call__(self, *operands: jax.Array) -> Coords:
        given, tangents = operands[: self.count], operands[self.count :]

        def coordinate(*moving: jax.Array) -> jax.Array:
            changed = dict(zip(self.moving, moving))
            return self.grid(*(changed.get(k, a) for k, a in enumerate(given)))[self.axis]

        weight = jax.jvp(coordinate, tuple(given[k] for k in self.moving), tangents)[1]
        coords = self.grid(*given)
        return (*coords[: self.position], weight, *coords[self.position :])
