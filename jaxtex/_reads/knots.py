"""Axes with knots, whose texels are not evenly spaced: positions, or taps with weights, from coordinates.

A point or linear read needs only a position: it is linear in the coordinate between two knots, so the weights of the
linear filter fit the uneven axis. The weights of the polynomial through four knots differ from cell to cell, and
multiply reads of one tap each.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._checks.numbers import as_float
from .._engine.arithmetic import FLOAT, READ, read_where_placed
from .._engine.describe.plan import (
    Layout,
    ReadArguments,
    ResolvedLevel,
    combination,
    plan_of_level,
    plan_of_texels,
)
from .._engine.describe.spec import Combination, Read
from .._engine.walk.combinations import clipped, highest, lowest, nearest_taps
from .._jax.barriers import materialized
from .._jax.indexing import entry
from .._jax.primitives import straight_through
from .._tables.address_rules import CLAMP, AddressRule, Continuation
from ..modes import TextureKind
from ..sampler import Sampler
from ..texture import Texture

# The taps of the polynomial of degree 3.
CUBIC_TAPS = 4


class Cells(NamedTuple):
    """The cells of an axis between adjacent knots, over the range of coordinates.

    Attributes:
        knots: the coordinates of the taps from `first` - 1 on: the ends of all cells, and one more tap on each side.
        first: the first tap of the first cell.
        size: the number of texels of the axis.
        start: the coordinate of the edge before the first texel, which replaces NaN.
        period: the length after which the axis repeats; `None` if it does not.
        ends: whether the axis ends at its first and its last knot, with no taps beyond.
        deterministic: whether gradients with respect to knots have the same bits in every run; see `Sampler`.
    """

    knots: jax.Array
    first: int
    size: int
    start: jax.Array
    period: jax.Array | None
    ends: bool
    deterministic: bool | None

    @property
    def count(self) -> int:
        """The number of cells."""
        return self.knots.size - 3

    def place(self, coord: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The coordinate, brought into the cells, and the number of its cell, int32."""
        if self.period is None:
            coord = jnp.where(coord == coord, coord, self.start)
        else:
            coord = jnp.where(jnp.abs(coord) < jnp.inf, coord, self.start)
            coord = coord - self.period * jnp.floor((coord - self.knots[1]) / self.period)
        low, high = self.knots[1], self.knots[-2]
        sign = jnp.where(high < low, -1, 1).astype(coord.dtype)
        coord = jnp.where(sign * coord < sign * low, low, jnp.where(sign * coord >= sign * high, high, coord))
        return coord, last_below(jax.lax.stop_gradient(sign * self.knots[1:-2]), jax.lax.stop_gradient(sign * coord))

    def adjacent(self, first: jax.Array, count: int) -> jax.Array:
        """Adjacent knots of each sample, (count,) + S, from `first` on, int32.

        Their gradient is that of a read, which sums many samples of few knots well.
        """

        def looked_up(knots: jax.Array, first: jax.Array) -> jax.Array:
            return jnp.stack([entry(knots, first + k) for k in range(count)])

        def read(knots: jax.Array, first: jax.Array) -> jax.Array:
            # Slices, whose transposes pad: that of a look-up adds to knots in any order on a GPU.
            windows = jnp.stack([knots[k : knots.size + 1 + k - count] for k in range(count)], -1)
            table = Texture(windows, None, TextureKind.TEXTURE1D)
            at = ReadArguments((first,))
            plan = plan_of_texels(Layout.of(table), at, 0, CLAMP, CLAMP, knots.dtype, self.deterministic)
            return jnp.moveaxis(read_where_placed(READ, table.texels, None, plan), -1, 0)

        return straight_through(looked_up, read, self.knots, first)

    def position(self, coord: jax.Array) -> jax.Array:
        """The position of a coordinate, in texels."""
        coord, cell = self.place(coord)
        low, high = self.adjacent(cell + 1, 2)
        return (cell + self.first).astype(coord.dtype) + (0.5 + (coord - low) / (high - low))

    def taps(self, coord: jax.Array) -> "Taps":
        """The taps of the polynomial through the knots around a coordinate; at an end of the axis, the nearest ones."""
        coord, cell = self.place(coord)
        count = min(CUBIC_TAPS, self.size) if self.ends else CUBIC_TAPS
        first = jnp.clip(cell - 1, 0, self.size - count) if self.ends else cell - 1
        knots = jnp.unstack(self.adjacent(first + 1, count))
        others = ([m for j, m in enumerate(knots) if j != k] for k in range(count))
        weights = [
            functools.reduce(jnp.multiply, ((coord - m) / (own - m) for m in rest), jnp.ones_like(coord))
            for own, rest in zip(knots, others)
        ]
        return Taps(cell + self.first, first + self.first, weights)


class Taps(NamedTuple):
    """The taps of one axis: the numbers of the tap before the coordinate and of the first tap, and the weights."""

    nearest: jax.Array
    first: jax.Array
    weights: list[jax.Array]


def last_below(knots: jax.Array, coord: jax.Array) -> jax.Array:
    """The number of the last of increasing knots that is at most a coordinate, or 0, by bisection."""
    cell = jnp.full_like(coord, 0, jnp.int32)
    for k in reversed(range((knots.size - 1).bit_length())):
        beyond = cell + (1 << k)
        within = jnp.minimum(beyond, knots.size - 1)
        cell = jnp.where((beyond == within) & (entry(knots, within) <= coord), beyond, cell)
    return materialized(cell)


def cells_of(
    knots: jax.Array, size: int, rule: AddressRule, continuation: Continuation, deterministic: bool | None
) -> Cells:
    """The cells of an axis of `size` texels. Beyond an edge, knots continue as texels do."""
    if knots.size == size:  # an edge lies half a cell beyond the last knot
        edges = 1.5 * knots[:1] - 0.5 * knots[1:2], 1.5 * knots[-1:] - 0.5 * knots[-2:-1]
    else:
        edges, knots = (knots[:1], knots[-1:]), knots[1:-1]
    # One period of knots, as the address mode continues them.
    start, stop = edges
    if continuation is Continuation.CYCLIC:
        period, length = knots, stop - start
    elif continuation is Continuation.REFLECTED and size > 1:
        period, length = jnp.concatenate([knots, 2 * knots[-1:] - knots[-2:0:-1]]), 2 * (knots[-1:] - knots[:1])
    else:
        period, length = jnp.concatenate([knots, 2 * stop - knots[::-1]]), 2 * (stop - start)
    # The knots that a coordinate may meet: one period, or all up to just outside the texture.
    first, last = 0, period.size
    if rule.saturates:
        first, last = (-2, size + 1) if rule.has_outside else (0, max(size - 1, 1))
    # Each of them is a knot of the period, some periods away.
    turns, among = np.divmod(np.arange(first - 1, last + 2), period.size)
    ends = rule.saturates and not rule.has_outside
    # Whole periods and a slice of them, and no look-up: see `adjacent`.
    repeated = jnp.concatenate([period] * (turns[-1] + 1 - turns[0]))[among[0] : among[0] + among.size]
    continued = repeated + turns.astype(knots.dtype) * length
    return Cells(continued, first, size, start[0], None if rule.saturates else length[0], ends, deterministic)


def cells_of_axes(texture: Texture, sampler: Sampler, dtype: np.dtype) -> list[Cells | None]:
    """The cells of each axis, x first; `None` for an axis without knots."""
    layout = Layout.of(texture)
    rules = sampler.address_rules(texture.kind.texel_ndim)
    cells: list[Cells | None] = []
    for k, (knots, size, rule) in enumerate(zip(texture.knots or (), layout.sizes[::-1], rules)):
        continuation = rule.continuations[::-1][min(k, rule.num_axes - 1)]
        if knots is None:
            cells.append(None)
        else:
            cells.append(cells_of(as_float(knots).astype(dtype), size, rule, continuation, sampler.deterministic))
    return cells


def at_positions(texture: Texture, arguments: ReadArguments, sampler: Sampler) -> ReadArguments:
    """The arguments of a read, with positions in place of the coordinates of axes with knots."""
    cells = cells_of_axes(texture, sampler, arguments.coords[0].dtype)
    coords = tuple(x if axis is None else axis.position(x) for x, axis in zip(arguments.coords, cells))
    return arguments._replace(coords=coords)


def cubic_read(texture: Texture, arguments: ReadArguments, *, sampler: Sampler, dtype: np.dtype) -> jax.Array:
    """The read by the polynomials of degree 3 through the knots.

    It is a weighted sum of reads, each of which takes one tap on every axis with knots, and filters the others.
    """
    # The taps of each axis with knots, and their weights.
    cells = cells_of_axes(texture, sampler, arguments.coords[0].dtype)
    of_axes = [None if axis is None else axis.taps(x) for x, axis in zip(arguments.coords, cells)]
    uneven = [taps for taps in of_axes if taps is not None]
    layout, limits = Layout.of(texture), combination(sampler) is Combination.LIMITED

    # A read of one tap on each of them, at the caller's coordinates on the others.
    def plan(taps: Sequence[jax.Array]) -> Read:
        rest = iter(taps)
        coords = tuple(x if of_axis is None else next(rest) for x, of_axis in zip(arguments.coords, of_axes))
        read = plan_of_level(layout, ResolvedLevel(coords, arguments.layer, None), sampler, dtype)
        return read.replace(dtype=read.spec.sums, combination=Combination.BLEND)

    # The sum over all combinations of taps.
    terms: list[jax.Array] = []
    for chosen in itertools.product(*(enumerate(taps.weights) for taps in uneven)):
        weight = functools.reduce(jnp.multiply, (weight for _, weight in chosen))
        read = plan([taps.first + k for taps, (k, _) in zip(uneven, chosen)])
        terms.append(FLOAT.read(texture, read) * weight[..., None].astype(read.spec.dtype))
    value = functools.reduce(jnp.add, terms)
    # Its limits are the nearest taps on every axis.
    if limits:
        near = [plan([taps.nearest + k for taps, k in zip(uneven, corner)]) for corner in corners(len(uneven))]
        texels = [
            FLOAT.read(texture, read.replace(axes=axes)) for read in near for axes in nearest_taps(read.spec.axes)
        ]
        value = clipped(value, lowest(texels), highest(texels))
    return value.astype(dtype)


def corners(ndim: int) -> Iterator[tuple[int, ...]]:
    """The numbers, 0 or 1 on each axis, of the nearest taps."""
    return itertools.product((0, 1), repeat=ndim)
