"""Operands that hold several numbers of each sample, as an array of points does: read where they lie."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import jax


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
    """The stacks of operands behind `count` more, which hold one number each."""
    return (*[None] * count, *stacks) if stacks else ()


def num_numbers(operands: Sequence[Operand]) -> int:
    """How many numbers operands hold."""
    return sum(len(a.stack.order) if isinstance(a, Stacked) else 1 for a in operands)


def numbers(arrays: Sequence[jax.Array], stacks: Stacks) -> list[jax.Array]:
    """The arguments of a grid, which broadcast to the samples: the numbers that operands hold."""
    found = ([a] if s is None else s.numbers(a) for a, s in zip(arrays, stacks or [None] * len(arrays)))
    return [number for some in found for number in some]
