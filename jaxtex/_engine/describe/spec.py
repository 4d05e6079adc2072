"""A read: `ReadSpec`, its static half, and `Read`, the spec and its arrays."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..._tables.address_rules import CLAMP, LAST
from ..._tables.filter_kernels import POINT, Weight
from ..._tables.storage_formats import Decoding, sum_dtype
from .axis import WEIGHT, Axis, Given, Role, differentiated, num_given
from .operands import Coords, Grid, OneMore, SeveralReads, Shaped, Stack, Stacks, as_given, behind, numbers

# A derivative is taken with respect to a tuple `wrt`: `TEXELS`, or k for operand k.
TEXELS = -1
Wrt = tuple[int, ...]

Arg = TypeVar("Arg", bound=Shaped)


class Combination(StrEnum):
    """How the taps of a read become one value; see `combinations`."""

    BLEND = "blend"
    LIMITED = "limited"
    VOTE = "vote"


@dataclasses.dataclass(frozen=True)
class ReadSpec:
    """A read, or its adjoint, without its arrays.

    Attributes:
        axes: the axes as they are stored: level, layer, face, z, y, x.
        decoding: how stored texels become numbers.
        dtype: of the result. A read sums in `sums`, a splat in the dtype of its values, and both round to it.
        deterministic: whether sums into texels have the same bits in every run.
        grid: makes the coordinates of the operands, where they are used; as a rule the operands are the coordinates.
            Operands that are sizes and starts stand in front of those of the grid.
        stacks: of each operand, how it holds several numbers, or `None` if it holds one; empty if all hold one. The
            grid takes each number as an argument of its own.
        summed_axes: the axes of the samples along which the result is summed, counted from the end, as -1 is; its size
            is 1 there. What an adjoint takes may have size 1 along any axis of the samples.
        expected: of a read of drawn taps, whose first operand is the number that draws, the read that is its
            expectation; the other operands are that one's, and the derivatives in them too.
        combination: how the taps of one read become its value.
        materialized: whether XLA computes the result by itself, and so once; if not, the caller sees to that.
        has_color: whether the array after the texels is the color outside them, (C,); if not, zero is outside.
    """

    axes: tuple[Axis, ...]
    decoding: Decoding
    dtype: np.dtype
    deterministic: bool = False
    grid: Grid | SeveralReads = as_given
    stacks: Stacks = ()
    summed_axes: tuple[int, ...] = ()
    expected: "ReadSpec | None" = None
    combination: Combination = Combination.BLEND
    materialized: bool = True
    has_color: bool = False

    def __post_init__(self) -> None:
        """Refuses features that do not meet; `tests/unit/reads/test_feature_pairs.py` tests all pairs of others."""
        roles, drawn = {axis.role for axis in self.axes}, self.expected is not None
        sized = any(isinstance(axis.size, Given) for axis in self.axes)
        windows = any(axis.stored is not None and axis.stored.is_window for axis in self.axes)
        for refused, sentence in (
            (drawn and self.combination is not Combination.BLEND, "one drawn tap has no neighbors that limit it"),
            (drawn and Role.WEIGHT in roles, "drawn taps have no weights"),
            (drawn and sized, "taps are not drawn from texels whose sizes are operands"),
            (Role.WEIGHT in roles and sized, "texels whose sizes are operands have no weights"),
            (windows and Role.LEVEL in roles, "a window holds texels of one level"),
        ):
            if refused:
                raise NotImplementedError(f"a read: {sentence}.")

    def replace(self, **changes: Any) -> "ReadSpec":
        """This spec with changes."""
        return dataclasses.replace(self, **changes)

    @property
    def several(self) -> SeveralReads | None:
        """The grid of a mean of several reads; `None` of one read."""
        return self.grid if isinstance(self.grid, SeveralReads) else None

    @property
    def num_reads(self) -> int:
        """The largest number of reads whose weighted mean is the result."""
        return 1 if self.several is None else self.several.most

    @property
    def sums(self) -> np.dtype:
        """The dtype in which a read decodes, weights and sums texels: that of its result, unless that has 16 bits."""
        return sum_dtype(self.dtype) if jnp.issubdtype(self.dtype, jnp.floating) else self.dtype

    def returns_texels(self, stored: np.dtype) -> bool:
        """Whether it returns texels of that dtype as they are stored."""
        single = all(axis.integer or (axis.kernel.num_taps == 1 and axis.order == 0) for axis in self.axes)
        weighted = self.several or self.summed_axes or any(axis.role is Role.WEIGHT for axis in self.axes)
        return (
            single
            and not weighted
            and not self.has_color
            and self.decoding is Decoding.ELEMENT
            and self.dtype == stored
        )

    @property
    def is_single(self) -> bool:
        """Whether it reads single texels by their indices."""
        return all(axis.integer for axis in self.axes)

    @property
    def num_taps(self) -> int:
        """How many texels one read looks at."""
        return math.prod(axis.kernel.num_taps for axis in self.axes if not axis.integer)

    @property
    def is_plain(self) -> bool:
        """Whether it is one weighted sum, which is not rounded, with zero outside: linear in the texels."""
        blends = self.combination is Combination.BLEND and not self.has_color
        return blends and self.several is None and self.dtype == self.sums

    def plain(self) -> "ReadSpec":
        """The spec of one read, with zero outside. Its operands are coordinates if the result is a mean of several."""
        one = self if self.several is None else self.of_coords().unsummed()
        return one.over(None).with_dtype(self.sums)

    def over(self, color: jax.Array | None) -> "ReadSpec":
        """This spec over a color outside, or over zero if that is `None`."""
        return self.replace(has_color=color is not None)

    def unsummed(self) -> "ReadSpec":
        """The spec of the reads that this one sums."""
        return self.replace(summed_axes=())

    def differentiated(self, k: int) -> "ReadSpec":
        """The spec with one more derivative along axis `k`."""
        return self.replace(axes=differentiated(self.axes, k))

    # Operands

    def color_and_operands(self, args: Sequence[Arg]) -> tuple[Arg | None, Sequence[Arg]]:
        """The color outside, or `None`, and the operands, from the arrays after the texels."""
        return (args[0], args[1:]) if self.has_color else (None, args)

    @property
    def given(self) -> int:
        """The number of operands that are sizes and starts of axes. They stand in front of the others."""
        return num_given(self.axes)

    @property
    def takes_coords(self) -> bool:
        """Whether each operand is the coordinate of the axis of its number."""
        return self.grid is as_given and not self.stacks

    def stack_of(self, k: int) -> Stack | None:
        """How operand `k` holds several numbers."""
        return self.stacks[k] if self.stacks else None

    def numbers_of(self, k: int) -> range:
        """Which arguments of the grid operand `k` holds."""
        counts = [1 if stack is None else len(stack.order) for stack in self.stacks[: k + 1]] or [1] * (k + 1)
        return range(sum(counts[:k]), sum(counts))

    def numbers(self, operands: Sequence[jax.Array]) -> list[jax.Array]:
        """The arguments of the grid."""
        return numbers(operands, self.stacks)

    def coords(self, operands: Sequence[jax.Array]) -> Coords:
        """The coordinates of operands, after the sizes and starts among them."""
        return operands if self.takes_coords else self.coords_at(*self.numbers(operands))

    def coords_at(self, *numbers: jax.Array) -> Coords:
        """The coordinates of the numbers that operands hold, after the sizes and starts among them."""
        assert not isinstance(self.grid, SeveralReads)
        return (*numbers[: self.given], *self.grid(*numbers[self.given :]))

    def read_at(self, number: jax.Array, *numbers: jax.Array) -> tuple[Coords, jax.Array]:
        """The coordinates of one of several reads, counted from 1, as of `coords_at`, and its weight."""
        assert isinstance(self.grid, SeveralReads)
        coords, weight = self.grid.read(number, *numbers[self.given :])
        return (*numbers[: self.given], *coords), weight

    def sample_shapes(self, operands: Sequence[Shaped]) -> list[tuple[int, ...]]:
        """The shapes of operands without the axes of stacks: they broadcast to that of the samples."""
        stacks = self.stacks or [None] * len(operands)
        return [tuple(a.shape) if s is None else s.without_axis(a.shape) for s, a in zip(stacks, operands)]

    # Axes

    def axes_of(self, wrt: Wrt) -> tuple[int, ...]:
        """The axes along which the read changes with its operands in `wrt`."""
        if self.grid is as_given:
            numbers = (n - self.given for k in wrt if k != TEXELS for n in self.numbers_of(k))
            candidates = tuple(n for n in numbers if n >= 0)
        else:
            candidates = tuple(range(len(self.axes))) if set(wrt) - {TEXELS} else ()
        return tuple(k for k in candidates if not differentiated(self.axes, k)[k].vanishes)

    def adjoint(self, dtype: np.dtype) -> "ReadSpec":
        """The spec of the transpose, whose result has `dtype`. Only numbers have one: texels that need no decoding."""
        return self.replace(decoding=Decoding.ELEMENT, dtype=np.dtype(dtype))

    def of_coords(self) -> "ReadSpec":
        """This spec for operands that are coordinates."""
        return self.replace(grid=as_given, stacks=())

    def with_dtype(self, dtype: np.dtype) -> "ReadSpec":
        """This spec with a result of another dtype."""
        return self.replace(dtype=np.dtype(dtype))


class Read(NamedTuple):
    """A read of the engine, complete when it is planned. What changes it returns another one.

    Attributes:
        spec: its static half. The axes are those of the texels as they are stored: level, layer, face, z, y, x.
        operands: the arrays from which `spec.grid` makes a coordinate for each axis; as a rule, the coordinates.
    """

    spec: ReadSpec
    operands: tuple[jax.Array, ...]

    def replace(self, **changes: Any) -> "Read":
        """This read with changes of its static half."""
        return self._replace(spec=self.spec.replace(**changes))

    def with_given(self, given: Sequence[jax.Array]) -> "Read":
        """This read with the sizes and starts that its axes need, which have one element each."""
        if not given:
            return self
        rank = max(map(len, self.spec.sample_shapes(self.operands)))
        operands = (*(a.reshape([1] * rank) for a in given), *self.operands)
        return self.replace(stacks=behind(len(given), self.spec.stacks))._replace(operands=operands)

    def with_axis(self, axis: Axis, coord: jax.Array, position: int) -> "Read":
        """This read along one more axis, at `position`."""
        spec, operands = self.spec, self.operands
        assert not isinstance(spec.grid, SeveralReads)
        axes = (*spec.axes[:position], axis, *spec.axes[position:])
        grid = as_given if spec.grid is as_given else OneMore(spec.grid, position)
        number = spec.given + (position if spec.grid is as_given else 0)
        stacks = (*spec.stacks[:number], None, *spec.stacks[number:]) if spec.stacks else ()
        read = self.replace(axes=axes, grid=grid, stacks=stacks)
        return read._replace(operands=(*operands[:number], coord, *operands[number:]))

    def weighted_sum(self, weights: jax.Array, summed_axes: tuple[int, ...]) -> "Read":
        """The sum of `weights` times reads, along axes of the samples, counted from the end."""
        position = int(self.spec.axes[0].role is Role.LEVEL)
        return self.with_axis(WEIGHT, weights, position).replace(summed_axes=summed_axes)

    def in_head(self, head: jax.Array, num_heads: int) -> "Read":
        """This read in the head of that number, of those that share the channels of a texel."""
        axis = Axis(num_heads, POINT, LAST, integer=True, role=Role.LAYER)
        return self.with_axis(axis, head, len(self.spec.axes))

    def in_pyramid(self, level: jax.Array, shapes: Sequence[tuple[int, ...]]) -> "Read":
        """This read in levels of any sizes. Each sample reads the level whose number is in `level`.

        Args:
            shapes: the shape of each level; their texels are stored one after the other.
        """
        axes = self.spec.axes
        sizes = iter(zip(*(shape[-1 - sum(a.role is Role.SPACE for a in axes) : -1] for shape in shapes)))
        axes = tuple(a._replace(level_sizes=next(sizes)) if a.role is Role.SPACE else a for a in axes)
        levels = Axis(len(shapes), POINT, CLAMP, integer=True, role=Role.LEVEL)
        return self.replace(axes=axes).with_axis(levels, level, 0)


# Finds the taps of a coordinate along an axis: unbounded integers, each with its weight.
AxisTaps = Callable[[jax.Array, Axis], list[tuple[jax.Array, Weight]]]


class TexelRead(NamedTuple):
    """A function that reads texels, and what reads of sharded texels need to know about it.

    Attributes:
        run: from texels, the color outside (`None` is zero), and the operands and the static half of a read, to values.
        takes_halo: whether it takes texels in three arrays, where there is no color.
        axis_taps: finds the taps of one axis as `run` does, if they are not the engine's. Its values are then no sums
            of reads of some taps and of the others.
    """

    run: Callable[[Any, jax.Array | None, Sequence[jax.Array], ReadSpec], jax.Array]
    takes_halo: bool = False
    axis_taps: AxisTaps | None = None

    def __call__(self, texels: Any, color: jax.Array | None, read: Read) -> jax.Array:
        return self.run(texels, color, read.operands, read.spec)
