"""Arrays that are a part of a larger one, in which kernels load and store them, and one that consists of several."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax


class Slice(NamedTuple):
    """Which elements of an array are taken: of each of its rows, some that lie side by side.

    Attributes:
        row: the elements of a row.
        start: the first one that is taken.
        count: how many are taken.
    """

    row: int
    start: int
    count: int

    def keeps_aligned(self, width: int) -> bool:
        """Whether rows of so many elements are aligned in the larger array, where they are in one of their own."""
        return self.row % width == 0 and self.start % width == 0


class Place(NamedTuple):
    """The shape of an array, and where it lies in a larger one."""

    shape: tuple[int, ...]
    slice: Slice


class Part(NamedTuple):
    """An array that lies in a larger one."""

    whole: Any
    place: Place

    @property
    def shape(self) -> tuple[int, ...]:
        return self.place.shape

    @property
    def dtype(self) -> Any:
        return self.whole.dtype


class Edged(NamedTuple):
    """An array in three, one after the other along the first axis.

    Attributes:
        own: the one in the middle.
        before, after: the others, of one shape.
    """

    own: Any
    before: Any
    after: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return self.own.shape[0] + 2 * self.before.shape[0], *self.own.shape[1:]

    @property
    def dtype(self) -> Any:
        return self.own.dtype

    @property
    def ends(self) -> tuple[int, int]:
        """The numbers of the first element of `own`, and of `after`."""
        row = math.prod(self.own.shape[1:])
        return self.before.shape[0] * row, (self.before.shape[0] + self.own.shape[0]) * row

    def arrays(self, name: str) -> dict[str, Any]:
        """The arrays, by names for a kernel that knows this one by `name`."""
        return {f"{name}_before": self.before, f"{name}_own": self.own, f"{name}_after": self.after}


def places_of(shapes: Sequence[tuple[int, ...]], row_axes: int) -> list[Place]:
    """Where arrays lie in one that holds them side by side. Their first `row_axes` axes number the rows."""
    counts = [math.prod(shape[row_axes:]) for shape in shapes]
    starts = itertools.accumulate(counts, initial=0)
    return [Place(shape, Slice(sum(counts), start, count)) for shape, start, count in zip(shapes, starts, counts)]


def copied(array: Any) -> jax.Array:
    """An array, or a `Part`, by itself."""
    if not isinstance(array, Part):
        return array
    row, start, count = array.place.slice
    return array.whole.reshape(-1, row)[:, start : start + count].reshape(array.shape)


def slice_of(array: Any) -> Slice:
    """What an array, or a `Part`, takes of the one in which it lies: of one of its own, whole rows of channels."""
    return array.place.slice if isinstance(array, Part) else Slice(array.shape[-1], 0, array.shape[-1])
