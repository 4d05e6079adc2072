"""Arrays in memory as a thread sees them: parts, of which it loads what it needs, and the results that it stores."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import JaxprEqn

from ..trace.indexing import load_row, terms_of
from ..trace.statements import Names, aval_of, c_type_of

Terms = tuple[tuple[Any, int], ...]
# The most bytes that one load fetches, from an address that they divide.
LOAD_BYTES = 16
# Arrays of more numbers are read where they are in memory; a thread loads all numbers of smaller ones.
MOST_LOADED = 16


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of an array in memory.

    Attributes:
        array: the array, an expression in C++.
        shape, strides: of the part, in elements.
        first: the place of its first element: terms, which depend on the sample, and `offset`.
        wide: whether places in the array need 64 bits.
        token: the number that stands for the array, if the program is to be transposed in it.
        returned: the dtype in which its numbers are used; `None` for `dtype`.
        repeats: whether a loop reads it; `None` in programs that are transposed.
    """

    array: str
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    first: Terms = ()
    offset: int = 0
    wide: bool = True
    token: jax.Array | None = None
    returned: np.dtype | None = None
    repeats: bool | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def replace(self, **changes: Any) -> "Part":
        return dataclasses.replace(self, **changes)

    def in_loop(self) -> "Part":
        """The part as a loop reads it."""
        return self if self.repeats is None else self.replace(repeats=True)

    def at(self, index: jax.Array | int, axis: int) -> "Part":
        """The part with one index on an axis, without the axis."""
        rest = {"shape": without(self.shape, axis), "strides": without(self.strides, axis)}
        return self.moved(index, axis).replace(**rest)

    def moved(self, index: jax.Array | int, axis: int) -> "Part":
        """The part, which begins at an index on an axis."""
        if isinstance(index, int | np.integer):
            return self.replace(offset=self.offset + int(index) * self.strides[axis])
        return self.replace(first=(*self.first, (index, self.strides[axis])))

    @property
    def is_contiguous(self) -> bool:
        expected = 1
        for n, stride in zip(reversed(self.shape), reversed(self.strides)):
            if n != 1 and stride != expected:
                return False
            expected *= n
        return True

    def load(self, inside: jax.Array | None = None) -> jax.Array:
        """All elements of the part; zeros where it is not `inside`."""
        return self.stored(inside).astype(self.returned or self.dtype)

    def stored(self, inside: jax.Array | None = None) -> jax.Array:
        if not self.size:
            return jnp.zeros(self.shape, self.dtype)
        if self.is_contiguous:
            return self.row(self.size, inside).reshape(self.shape)
        return jnp.stack([self.at(k, 0).stored(inside) for k in range(self.shape[0])])

    def row(self, count: int, inside: jax.Array | None) -> jax.Array:
        """The first `count` adjacent elements."""
        aligned = is_aligned(count, self.dtype, (self.offset, *(factor for _, factor in self.first)))
        terms = [(jnp.asarray(number, jnp.int32), factor) for number, factor in self.first]
        place = [*terms, (jnp.int32(1), self.offset)] if self.offset or not terms else terms
        how = {"aligned": aligned, "by_pair": True, "inside": inside, "token": self.token, "wide": self.wide}
        return load_row(self.array, place, count, self.dtype, **how)


def is_aligned(count: int, dtype: np.dtype, multiples: Sequence[int]) -> bool:
    """Whether rows of `count` adjacent numbers, at sums of multiples of these, can be loaded by whole words."""
    width = count * dtype.itemsize
    if width % LOAD_BYTES and LOAD_BYTES % width:
        return False
    return all(m * dtype.itemsize % min(width, LOAD_BYTES) == 0 for m in multiples)


def without(items: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*items[:axis], *items[axis + 1 :])


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous array."""
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


# Parts as trees of numbers


def with_parts(function: Callable[..., Any], args: Sequence[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """A function of numbers alone, and its arguments, in place of a function that takes parts.

    What a part has of the thread's numbers, its place and its token, is an argument.
    """
    leaves, tree = jax.tree.flatten([as_tree(a) for a in args])
    return lambda *leaves: function(*map(as_part, jax.tree.unflatten(tree, leaves))), leaves


def as_tree(a: Any) -> Any:
    if not isinstance(a, Part):
        return a
    numbers, factors = ([n for n, _ in a.first], tuple(f for _, f in a.first))
    return PartTree(numbers, a.token, a.replace(first=(), token=None), factors)


def as_part(a: Any) -> Any:
    if not isinstance(a, PartTree):
        return a
    return a.part.replace(first=tuple(zip(a.numbers, a.factors)), token=a.token)


@functools.partial(jax.tree_util.register_dataclass, data_fields=["numbers", "token"], meta_fields=["part", "factors"])
@dataclasses.dataclass(frozen=True)
class PartTree:
    """A part as a tree whose leaves are the numbers of the thread."""

    numbers: list[Any]
    token: Any
    part: Part
    factors: tuple[int, ...]


# Looks at an array


def sliced(eqn: JaxprEqn, args: list[Any]) -> Part:
    (part,), params = args, eqn.params
    steps = params["strides"] or (1,) * part.ndim
    for axis, start in enumerate(params["start_indices"]):
        part = part.moved(start, axis)
    return part.replace(shape=aval_of(eqn.outvars[0]).shape, strides=tuple(s * k for s, k in zip(part.strides, steps)))


def transposed(eqn: JaxprEqn, args: list[Any]) -> Part:
    (part,), order = args, eqn.params["permutation"]
    return part.replace(shape=tuple(part.shape[k] for k in order), strides=tuple(part.strides[k] for k in order))


def flipped(eqn: JaxprEqn, args: list[Any]) -> Part:
    (part,) = args
    for axis in eqn.params["dimensions"]:
        part = part.moved(part.shape[axis] - 1, axis)
        part = part.replace(strides=tuple(-s if k == axis else s for k, s in enumerate(part.strides)))
    return part


def broadcast(eqn: JaxprEqn, args: list[Any]) -> Part | None:
    part, shape = args[0], aval_of(eqn.outvars[0]).shape
    strides = [0] * len(shape)
    for axis, place in enumerate(eqn.params["broadcast_dimensions"]):
        strides[place] = 0 if part.shape[axis] == 1 != shape[place] else part.strides[axis]
    return part.replace(shape=shape, strides=tuple(strides))


def reshaped(eqn: JaxprEqn, args: list[Any]) -> Part | None:
    part, shape = args[0], aval_of(eqn.outvars[0]).shape
    kept = [(n, s) for n, s in zip(part.shape, part.strides) if n != 1]
    if [n for n in shape if n != 1] == [n for n, _ in kept]:  # axes of size 1 come and go
        strides = iter(kept)
        return part.replace(shape=shape, strides=tuple(next(strides)[1] if n != 1 else 0 for n in shape))
    if part.is_contiguous:
        return part.replace(shape=shape, strides=strides_of(shape))
    return None


def dynamic_slice(eqn: JaxprEqn, args: list[Any]) -> Part:
    part, *starts = args
    sizes = eqn.params["slice_sizes"]
    for axis, (start, size) in enumerate(zip(starts, sizes)):
        last = part.shape[axis] - size
        if last:
            part = part.moved(clipped(start, last), axis)
    return part.replace(shape=tuple(sizes))


def clipped(index: Any, last: int) -> Any:
    """An index from 0 to `last`, int32."""
    return min(max(int(index), 0), last) if is_known(index) else jnp.clip(index, 0, last).astype(jnp.int32)


def is_known(index: Any) -> bool:
    return isinstance(index, np.ndarray | np.generic) and not index.ndim


# Arrays of the grid


class Laid(NamedTuple):
    """How an array of the grid lies in memory.

    Attributes:
        steps: for each axis of the grid, the distance of two samples, 0 if they share the array.
        shape, strides: of the numbers of one sample.
        wide: whether places in the array need 64 bits.
    """

    steps: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    wide: bool

    @classmethod
    def of(cls, shape: tuple[int, ...], places: tuple[int, ...]) -> "Laid":
        strides = strides_of(shape)
        own = [k for k in range(len(shape)) if k not in places]
        steps = tuple(strides[p] if shape[p] > 1 else 0 for p in places)
        return cls(steps, tuple(shape[k] for k in own), tuple(strides[k] for k in own), math.prod(shape) >= 2**31)

    def part(self, array: str, dtype: np.dtype, index: Sequence[jax.Array], token: Any = None) -> Part:
        """The numbers of the sample at an index."""
        first = tuple((i, step) for i, step in zip(index, self.steps) if step)
        return Part(array, np.dtype(dtype), self.shape, self.strides, first, wide=self.wide, token=token)

    @property
    def is_loaded(self) -> bool:
        return math.prod(self.shape) <= MOST_LOADED

    @property
    def place(self) -> str:
        """The place of a sample's first number, in C++."""
        pairs = [(f"i{k}", step) for k, step in enumerate(self.steps) if step]
        return " + ".join(terms_of([i for i, _ in pairs], [step for _, step in pairs], self.wide)) or "0"


def stores(array: str, laid: Laid, names: Names, dtype: np.dtype) -> list[str]:
    """The statements that store a sample's numbers."""
    c_type, count = c_type_of(np.dtype(dtype)), names.size
    flat = [str(n) for n in names.ravel()]
    if laid.strides == strides_of(laid.shape) and count:
        store = "store_aligned_row" if is_aligned(count, np.dtype(dtype), laid.steps) else "store_row"
        return [f"{store}({array} + ({laid.place}), Row<{c_type}, {count}>{{{{{', '.join(flat)}}}}});"]
    places = (sum(i * s for i, s in zip(at, laid.strides)) for at in np.ndindex(laid.shape))
    return [f"{array}[{laid.place} + {place}] = {name};" for place, name in zip(places, flat)]
