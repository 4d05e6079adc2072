"""A read: `ReadSpec` is its static half, and `Read` is the spec with its operands."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.contexts import is_deterministic
from ..._jax.shapes import broadcast_shapes
from ..._tables.address_rules import CLAMP
from ..._tables.filter_kernels import POINT, Weight
from ..._tables.storage_formats import Decoding, is_narrow, sum_dtype
from .axis import WEIGHT, Axis, Given, Orders, Role, differentiated, num_given, with_orders
from .operands import (
    Besides,
    Coords,
    Grid,
    OneMore,
    SeveralReads,
    Shaped,
    Stack,
    Stacks,
    WithTangent,
    as_given,
    behind,
    joined,
    numbers,
)

# The arguments of a derivative are a tuple `wrt` of numbers: `TEXELS`, or k for operand k.
TEXELS = -1
Wrt = tuple[int, ...]

Arg = TypeVar("Arg", bound=Shaped)


class Combination(StrEnum):
    """The combination of a read's taps into one value; see `walk.combinations`."""

    BLEND = "blend"
    LIMITED = "limited"
    VOTE = "vote"


@dataclasses.dataclass(frozen=True)
class ReadSpec:
    """A read, or its adjoint, without its arrays.

    Attributes:
        axes: the axes in stored order: level, layer, face, z, y, x.
        dtype: the dtype of the result. A read sums in `sums`, a splat in the dtype of its values; both round to it.
        deterministic: whether sums into texels have equal bits in every run.
        deterministic_on_gpus: whether they have equal bits in programs for GPUs. On CPUs, sums always have. See
            `made_deterministic`.
        grid: the function from operands to coordinates; by default the operands are the coordinates. Operands that are
            sizes and starts of axes precede the operands of the grid.
        stacks: the stack of each operand, or `None` for an operand of one number; empty if all operands have one
            number. The grid takes every number as an argument of its own.
        summed_axes: the sample axes along which the result is summed, counted from the end, such as -1; the result has
            size 1 along them. The values of an adjoint may have size 1 along any sample axis.
        expected: for a read of drawn taps, the expected read. The first operand is the number that draws; the others
            are the operands of the expected read, which defines the derivatives in them.
        combination: how the taps of one read become its value.
        materialized: whether the result is materialized, so that XLA does not recompute it; if not, the caller must
            see to that.
        has_color: whether the array after the texels is the border color, (C,); otherwise taps outside read zero.
        planar: whether the caller has moved the channels of texels from the front, and moves those of the result there.
            It changes no result. A kernel may then read planes, and XLA drops the moves.
        derivatives: for a read of several derivatives, the derivative order of each along every axis; otherwise empty.
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
    planar: bool = False
    derivatives: tuple[Orders, ...] = ()
    deterministic_on_gpus: bool = False

    def __post_init__(self) -> None:
        """Rejects unsupported pairs of features; `tests/unit/reads/test_feature_pairs.py` tests all other pairs."""
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
        """A copy of this spec with changes."""
        return dataclasses.replace(self, **changes)

    def made_deterministic(self, deterministic: bool | None) -> "ReadSpec":
        """This spec with deterministic sums or with others; `None` is as the caller's block or XLA's flags ask."""
        on_gpus = is_deterministic() if deterministic is None else deterministic
        return self.replace(deterministic=bool(deterministic), deterministic_on_gpus=on_gpus)

    def on_gpu(self) -> "ReadSpec":
        """This spec in a program for a GPU."""
        if not self.deterministic_on_gpus:
            return self
        return self.replace(deterministic=True, deterministic_on_gpus=False)

    @property
    def several(self) -> SeveralReads | None:
        """The grid of a mean of several reads; `None` for a single read."""
        return self.grid if isinstance(self.grid, SeveralReads) else None

    @property
    def num_reads(self) -> int:
        """The largest number of reads whose weighted mean is the result."""
        return 1 if self.several is None else self.several.most

    @property
    def sums(self) -> np.dtype:
        """The dtype in which a read decodes, weights and sums texels: `dtype`, or float32 if `dtype` has 16 bits."""
        return sum_dtype(self.dtype) if jnp.issubdtype(self.dtype, jnp.floating) else self.dtype

    def returns_texels(self, stored: np.dtype) -> bool:
        """Whether the read returns texels of dtype `stored` unchanged."""
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
        """Whether the read takes single texels by their indices."""
        return all(axis.integer for axis in self.axes)

    @property
    def num_taps(self) -> int:
        """The number of texels that one read combines."""
        return math.prod(axis.kernel.num_taps for axis in self.axes if not axis.integer)

    @property
    def is_one_sum(self) -> bool:
        """Whether the read is one weighted sum, zero outside; then it is linear in the texels, but for rounding."""
        return self.combination is Combination.BLEND and not self.has_color and self.several is None

    @property
    def is_plain(self) -> bool:
        """Whether the read is one weighted sum, zero outside, and not rounded."""
        return self.is_one_sum and self.dtype == self.sums

    def plain(self) -> "ReadSpec":
        """The spec of one plain read. If this read is a mean of several, its operands are coordinates."""
        one = self if self.several is None else self.of_coords().unsummed()
        return one.replace(has_color=False, dtype=self.sums)

    def unsummed(self) -> "ReadSpec":
        """The spec without a sum along sample axes."""
        return self.replace(summed_axes=())

    def differentiated(self, k: int) -> "ReadSpec":
        """The spec with one more derivative along axis `k`."""
        return self.replace(axes=differentiated(self.axes, k))

    def each_derivative(self) -> list["ReadSpec"]:
        """The specs of reads of one derivative each."""
        return [self.replace(axes=with_orders(self.axes, orders), derivatives=()) for orders in self.derivatives]

    @property
    def sums_along_grid(self) -> bool:
        """Whether the read is a plain sum at coordinates that it computes, such as a line integral."""
        computed = self.grid is not as_given and self.several is None and self.expected is None and not self.given
        return bool(self.summed_axes) and computed

    def along_tangents(self, k: int, wrt: Wrt, num_operands: int) -> "ReadSpec":
        """The sum of derivatives along axis `k`, times the tangents of its coordinate.

        Tangents of the operands in `wrt` follow the operands.
        """
        assert not isinstance(self.grid, SeveralReads)
        position = int(self.axes[0].role is Role.LEVEL)
        axes = differentiated(self.axes, k)
        moving = tuple(n for operand in wrt for n in self.numbers_of(operand))
        return self.replace(
            axes=(*axes[:position], WEIGHT, *axes[position:]),
            grid=WithTangent(self.grid, self.numbers_of(num_operands - 1).stop, moving, k, position),
            stacks=(*self.stacks, *(self.stacks[operand] for operand in wrt)) if self.stacks else (),
        )

    # Operands

    def color_and_operands(self, args: Sequence[Arg]) -> tuple[Arg | None, Sequence[Arg]]:
        """The border color or `None`, and the operands, from the arrays after the texels."""
        return (args[0], args[1:]) if self.has_color else (None, args)

    @property
    def given(self) -> int:
        """The number of operands that are sizes and starts of axes; these come first."""
        return num_given(self.axes)

    @property
    def takes_coords(self) -> bool:
        """Whether operand k, after sizes and starts, is the coordinate of axis k."""
        return self.grid is as_given and not self.stacks

    def stack_of(self, k: int) -> Stack | None:
        """The stack of operand `k`; `None` if it has one number."""
        return self.stacks[k] if self.stacks else None

    def numbers_of(self, k: int) -> range:
        """The numbers of the grid's arguments that operand `k` holds, counted with sizes and starts."""
        counts = [1 if stack is None else len(stack.order) for stack in self.stacks[: k + 1]] or [1] * (k + 1)
        return range(sum(counts[:k]), sum(counts))

    def numbers(self, operands: Sequence[jax.Array]) -> list[jax.Array]:
        """The sizes, the starts and the arguments of the grid, from operands."""
        return numbers(joined(operands, self.stacks))

    def coords(self, operands: Sequence[jax.Array]) -> Coords:
        """The sizes, the starts and the coordinates, from operands."""
        if self.takes_coords and not any(is_narrow(a.dtype) for a in operands):
            return operands
        numbers = self.numbers(operands)
        return numbers if self.takes_coords else self.coords_at(*numbers)

    def coords_at(self, *numbers: jax.Array) -> Coords:
        """The sizes, the starts and the coordinates, from the numbers that operands hold."""
        assert not isinstance(self.grid, SeveralReads)
        return (*numbers[: self.given], *self.grid(*numbers[self.given :]))

    def factors(self, coords: Sequence[Arg]) -> list[Arg]:
        """The coordinates that multiply the values of samples: weights."""
        axes = zip(coords[self.given :], self.axes)
        return [c for c, axis in axes if axis.role is Role.WEIGHT and axis.order == 0]

    def read_at(self, number: jax.Array, *numbers: jax.Array) -> tuple[Coords, jax.Array]:
        """The coordinates of read `number`, from 1, of a mean, as `coords_at` returns them, and its weight."""
        assert isinstance(self.grid, SeveralReads)
        coords, weight = self.grid.read(number, *numbers[self.given :])
        return (*numbers[: self.given], *coords), weight

    def sample_shapes(self, operands: Sequence[Shaped]) -> list[tuple[int, ...]]:
        """The shapes of operands without the axes of stacks; they broadcast to the shape of the samples."""
        stacks = self.stacks or [None] * len(operands)
        return [tuple(a.shape) if s is None else s.without_axis(a.shape) for s, a in zip(stacks, operands)]

    def samples_shape(self, operands: Sequence[Shaped], batch: int = 0) -> tuple[int, ...]:
        """The shape S of the samples of one texture; `batch` axes precede it in the shapes of operands."""
        return broadcast_shapes(*(shape[batch:] for shape in self.sample_shapes(operands)))

    # Axes

    def axes_of(self, wrt: Wrt) -> tuple[int, ...]:
        """The axes whose coordinates may depend on the operands in `wrt`, and along which the read has a derivative."""
        if self.grid is as_given:
            numbers = (n - self.given for k in wrt if k != TEXELS for n in self.numbers_of(k))
            candidates = tuple(n for n in numbers if n >= 0)
        else:
            candidates = tuple(range(len(self.axes))) if set(wrt) - {TEXELS} else ()
        return tuple(k for k in candidates if not differentiated(self.axes, k)[k].vanishes)

    def adjoint(self, dtype: np.dtype) -> "ReadSpec":
        """The spec of the transpose in texels, whose result has `dtype`. Texels need no decoding there."""
        return self.replace(decoding=Decoding.ELEMENT, dtype=np.dtype(dtype))

    def of_coords(self) -> "ReadSpec":
        """The spec of a read whose operands are coordinates."""
        return self.replace(grid=as_given, stacks=())

    def with_dtype(self, dtype: np.dtype) -> "ReadSpec":
        """The spec with another dtype of the result."""
        return self.replace(dtype=np.dtype(dtype))


class Read(NamedTuple):
    """A read, immutable and complete once it is planned.

    Attributes:
        operands: the arguments of `spec.grid`, by default the coordinates; preceded by sizes and starts of axes.
    """

    spec: ReadSpec
    operands: tuple[jax.Array, ...]

    def replace(self, **changes: Any) -> "Read":
        """The read with changes of its spec."""
        return self._replace(spec=self.spec.replace(**changes))

    def over(self, color: jax.Array | None) -> tuple[ReadSpec, tuple[jax.Array, ...]]:
        """The spec of this read over a border color, `None` for zero, and the arrays that follow the texels."""
        colors = () if color is None else (color,)
        return self.spec.replace(has_color=color is not None), (*colors, *self.operands)

    def with_given(self, given: Sequence[jax.Array]) -> "Read":
        """The read with the sizes and starts that its axes need, one element each."""
        if not given:
            return self
        rank = max(map(len, self.spec.sample_shapes(self.operands)))
        operands = (*(a.reshape([1] * rank) for a in given), *self.operands)
        return self.replace(stacks=behind(len(given), self.spec.stacks))._replace(operands=operands)

    def with_axis(self, axis: Axis, coord: jax.Array, position: int) -> "Read":
        """The read with one more axis, at `position`."""
        spec, operands = self.spec, self.operands
        assert not isinstance(spec.grid, SeveralReads)
        axes = (*spec.axes[:position], axis, *spec.axes[position:])
        grid = as_given if spec.grid is as_given else OneMore(spec.grid, position)
        number = spec.given + (position if spec.grid is as_given else 0)
        stacks = (*spec.stacks[:number], None, *spec.stacks[number:]) if spec.stacks else ()
        read = self.replace(axes=axes, grid=grid, stacks=stacks)
        return read._replace(operands=(*operands[:number], coord, *operands[number:]))

    def weighted_sum(self, weights: jax.Array, summed_axes: tuple[int, ...]) -> "Read":
        """The sum of `weights` times reads along sample axes, counted from the end."""
        position = int(self.spec.axes[0].role is Role.LEVEL)
        return self.with_axis(WEIGHT, weights, position).replace(summed_axes=summed_axes)

    def besides(self, given: Sequence[jax.Array]) -> "Read":
        """The read with more operands behind, which its grid does not take."""
        if not given:
            return self
        assert not isinstance(self.spec.grid, SeveralReads)
        stacks = (*self.spec.stacks, *[None] * len(given)) if self.spec.stacks else ()
        read = self.replace(grid=Besides(self.spec.grid, len(given)), stacks=stacks)
        return read._replace(operands=(*self.operands, *given))

    def in_head(self, head: jax.Array, num_heads: int) -> "Read":
        """The read of one of the heads that share the channels of a texel, chosen by `head`, int32."""
        return self.with_axis(Axis.of_layers(num_heads), head, len(self.spec.axes))

    def at_points(self, points: jax.Array) -> "Read":
        """The read at points with x, y (and z) along their last axis, in place of coordinates.

        Programs then do not split the points in memory.
        """
        stack = Stack(-1, tuple(reversed(range(points.shape[-1]))))
        return self.replace(stacks=(stack,))._replace(operands=(points,))

    def in_pyramid(self, level: jax.Array, shapes: Sequence[tuple[int, ...]]) -> "Read":
        """The read of levels of any sizes; each sample reads one level.

        Args:
            level: the level of each sample, int32.
            shapes: the shape of each level; levels are stored one after the other.
        """
        axes = self.spec.axes
        sizes = iter(zip(*(shape[-1 - sum(a.role is Role.SPACE for a in axes) : -1] for shape in shapes)))
        axes = tuple(a._replace(level_sizes=next(sizes)) if a.role is Role.SPACE else a for a in axes)
        levels = Axis(len(shapes), POINT, CLAMP, integer=True, role=Role.LEVEL)
        return self.replace(axes=axes).with_axis(levels, level, 0)


# A function ``axis_taps(coord, axis)``: the taps of a coordinate on an axis, unbounded int32, each with its weight.
AxisTaps = Callable[[jax.Array, Axis], list[tuple[jax.Array, Weight]]]


class TexelReader(NamedTuple):
    """A function that reads texels, with its properties for reads of sharded texels.

    Attributes:
        read: ``read(texels, color, read)`` returns values; the color `None` is zero.
        takes_halo: whether `read` takes a `WithHalo`, if there is no color.
        axis_taps: the taps of one axis in `read`, if they are not the engine's `taps`. Then a value is not the sum of
            partial sums over taps.
    """

    read: Callable[[Any, jax.Array | None, Read], jax.Array]
    takes_halo: bool = False
    axis_taps: AxisTaps | None = None
