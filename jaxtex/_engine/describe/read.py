"""`Read`, the one carrier of a read: what it is, and its arrays."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from ..._tables.address_rules import CLAMP, LAST
from ..._tables.filter_kernels import POINT, Weight
from .axis import WEIGHT, Axis, Role
from .grids import OneMore
from .spec import ReadSpec, SeveralReads, as_given
from .stacks import behind


class Read(NamedTuple):
    """A read of the engine, complete when it is planned. What changes it returns another one.

    Attributes:
        spec: its static half. The axes are those of the texels as they are stored: level, layer, face, z, y, x.
        operands: of which `spec.grid` makes a coordinate for each axis; as a rule they are the coordinates.
    """

    spec: ReadSpec
    operands: tuple[jax.Array, ...]

    def replace(self, **changes: Any) -> "Read":
        """The same read with changes of its static half."""
        return self._replace(spec=dataclasses.replace(self.spec, **changes))

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
        """This read in levels of any sizes, of which `level` says which one each sample reads.

        Args:
            shapes: of each level, whose texels are stored one after the other.
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
