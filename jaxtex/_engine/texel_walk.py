"""The texels of a read: a walk over its axes, through levels, layers and seams, to flat indices.

A walk is a list of steps, and a step a list of taps, of which a read takes one each. Most steps are one axis. The two
axes of a cube's face are one step together with the face, since a tap off an edge changes all three.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._tables.address_rules import Size, is_inside
from .._tables.filter_kernels import Weight
from .axis import Axis, Role
from .computed_once import computed_once
from .cube import NUM_FACES, across_seams
from .spec import Coords
from .taps import Taps, taps
from .where_needed import where_needed

# Finds the taps of one axis.
AxisTaps = Callable[[jax.Array, Axis], Taps]
INDEX_LIMIT = 2**31


class Tap(NamedTuple):
    """One tap of a step.

    Attributes:
        index: the stored index on each axis of the step.
        inside: whether the tap is a texel; `None` where every tap is.
        factors: the weight of the tap on each filtered axis of the step.
        unbounded: the index on each axis of the step before its address rule.
        offset: how far `unbounded` lies beyond that of the first tap of the step.
        missing: whether the tap lies off a corner of a cube, where there is no texel; `None` where no tap can.
    """

    index: tuple[jax.Array, ...]
    inside: jax.Array | None
    factors: tuple[Weight, ...]
    unbounded: tuple[jax.Array, ...] = ()
    offset: tuple[int, ...] = ()
    missing: jax.Array | None = None


class Step(NamedTuple):
    """The taps of one axis, or of three that are addressed together."""

    taps: list[Tap]
    sizes: tuple[Size, ...]

    def weights(self) -> list[Weight]:
        """The weight of each tap: the product of its factors. The weight of a missing tap is shared equally."""
        products = [functools.reduce(jnp.multiply, tap.factors) for tap in self.taps]
        missing = [tap.missing for tap in self.taps if tap.missing is not None]
        if not missing:
            return products
        lost = functools.reduce(jnp.add, (jnp.where(gone, w, 0) for gone, w in zip(missing, products)))
        share = 1 / (len(self.taps) - 1)
        return [jnp.where(gone, 0, w + lost * share) for gone, w in zip(missing, products)]


class TexelAddress(NamedTuple):
    """Where a walk has come to: flat indices so far, the extent of the last one, and whether it is inside.

    Neighboring axes share one flat index as long as an int32 can hold it. One index is the fastest; a texture of
    more than 2^31 texels needs two. The levels of a mip chain lie one after the other, under one index; the `level`
    of this walk begins at `start`.
    """

    indices: tuple[jax.Array, ...] = ()
    extent: Size = 1
    inside: jax.Array | None = None
    start: jax.Array | None = None
    level: jax.Array | None = None

    def advance(self, tap: Tap, sizes: tuple[Size, ...]) -> "TexelAddress":
        """The address after one more step, at `tap`."""
        indices, extent = self.indices, self.extent
        for index, size in zip(tap.index, sizes):
            if indices and (self.start is not None or extent * size < INDEX_LIMIT):
                indices, extent = (*indices[:-1], indices[-1] * size + index), extent * size
            else:
                indices, extent = (*indices, index), size
        return self._replace(indices=indices, extent=extent, inside=both(self.inside, tap.inside))

    @property
    def flat_index(self) -> tuple[jax.Array, ...]:
        """The indices into the stored texels."""
        return self.indices if self.start is None else (self.start + self.indices[0],)


def both(a: jax.Array | None, b: jax.Array | None) -> jax.Array | None:
    """Whether both masks hold; `None` is a mask that holds everywhere."""
    return b if a is None else a if b is None else a & b


def flat_sizes(axes: tuple[Axis, ...]) -> list[int]:
    """The extents of the flat indices of a `TexelAddress` after a walk over `axes`."""
    if axes[0].role is Role.LEVEL:
        return [int(level_starts(axes)[-1])]
    flat: list[int] = []
    for axis in axes:
        if flat and flat[-1] * axis.known_size < INDEX_LIMIT:
            flat[-1] *= axis.known_size
        else:
            flat.append(axis.known_size)
    return flat


def level_starts(axes: tuple[Axis, ...]) -> np.ndarray:
    """Where each level of a mip chain starts among the texels of the chain, and where the last one ends."""
    levels, *rest = axes
    counts = [np.prod([axis.level_size(level) for axis in rest], dtype=np.int64) for level in range(levels.known_size)]
    return np.concatenate([[0], np.cumsum(counts)])


def texels_shape(axes: tuple[Axis, ...], channels: int) -> tuple[int, ...]:
    """The shape of the texels that a walk over `axes` reads."""
    if axes[0].role is Role.LEVEL:
        return (*flat_sizes(axes), channels)
    return (*(axis.known_size for axis in axes if axis.role is not Role.FACTOR), channels)


def flattened(texels: jax.Array, axes: tuple[Axis, ...]) -> jax.Array:
    """Texels in the order of their flat indices, channels last, computed before they are read."""
    return computed_once(texels).reshape(*flat_sizes(axes), texels.shape[-1])


def walks(
    coords: Coords, axes: tuple[Axis, ...], axis_taps: AxisTaps = taps, unit: float = 1.0
) -> Iterator[tuple[Weight, TexelAddress, list[Step]]]:
    """The walks of a read, each with a weight and the address where it starts: one, or one for each level it blends.

    Args:
        axis_taps: finds the taps of one axis, with weights that sum to `unit`.
    """
    if axes[0].role is not Role.LEVEL:
        yield unit, TexelAddress(), steps(coords, axes, axis_taps)
        return
    taps_of_levels = axis_step(coords[0], axes[0], axis_taps).taps
    levels = [tap.index[0] for tap in taps_of_levels]
    for tap, level, start in zip(taps_of_levels, levels, starts_of(levels, axes)):
        inner = tuple(axis.at(level) for axis in axes[1:])
        yield tap.factors[0], TexelAddress(start=start, level=level), steps(coords[1:], inner, axis_taps)


def starts_of(levels: list[jax.Array], axes: tuple[Axis, ...]) -> list[jax.Array]:
    """Where the levels start that a read blends. Each of them is the one before it or the next of the chain."""
    starts = [level_start(levels[0], axes)]
    for level, following in itertools.pairwise(levels):
        count = functools.reduce(jnp.multiply, (axis.at(level).size for axis in axes[1:]))
        starts.append(starts[-1] + jnp.where(following > level, count, 0))
    return starts


def level_start(level: jax.Array, axes: tuple[Axis, ...]) -> jax.Array:
    """Where a level of a mip chain starts among the texels of the chain."""
    starts = level_starts(axes)[:-1]
    layers = math.prod(axis.known_size for axis in axes[1:] if axis.role is not Role.SPACE)
    finest = math.prod(axis.known_size for axis in axes[1:] if axis.role is Role.SPACE)
    bits = sum(axis.role is Role.SPACE for axis in axes)
    # Where sizes are powers of two, the levels from some level on take as many texels as a shift leaves of all.
    whole = sum(finest >> bits * k for k in range(len(starts)))
    if whole < INDEX_LIMIT and all(start == layers * (whole - (whole >> bits * k)) for k, start in enumerate(starts)):
        return layers * (whole - (np.int32(whole) >> (bits * level)))
    # Counted, not looked up: a vector unit has no table.
    counts = np.diff(starts)
    return sum((jnp.where(level > k, np.int32(n), 0) for k, n in enumerate(counts)), jnp.zeros_like(level))


def only_address(coords: Coords, axes: tuple[Axis, ...], axis_taps: AxisTaps = taps) -> TexelAddress:
    """The address of a walk that has one tap on every axis."""
    ((_, address, steps),) = walks(coords, axes, axis_taps)
    for step in steps:
        (tap,) = step.taps
        address = address.advance(tap, step.sizes)
    return address


def steps(coords: Coords, axes: tuple[Axis, ...], axis_taps: AxisTaps) -> list[Step]:
    """The steps of a walk within one level."""
    if not axes[-1].seamless:
        return [axis_step(coord, axis, axis_taps) for coord, axis in zip(coords, axes)]
    before = [axis_step(coord, axis, axis_taps) for coord, axis in zip(coords[:-3], axes[:-3])]
    return [*before, face_step(coords[-3], axis_taps(coords[-2], axes[-2]), axis_taps(coords[-1], axes[-1]), axes[-1])]


def axis_step(coord: jax.Array, axis: Axis, axis_taps: AxisTaps) -> Step:
    """The taps of `coord` on `axis`, addressed."""
    apply = axis.address.apply
    assert apply is not None

    def addressed(number: int, tap: jax.Array, weight: Weight) -> Tap:
        index, inside = apply(tap, axis.size)
        return Tap((index,), inside, (weight,), (tap,), (number,))

    return Step([addressed(k, *tap) for k, tap in enumerate(axis_taps(coord, axis))], (axis.size,))


def face_step(face: jax.Array, rows: Taps, columns: Taps, axis: Axis) -> Step:
    """The taps around a point of a cube's face, across its edges."""
    size, ys, xs = axis.size, [y for y, _ in rows], [x for x, _ in columns]
    place = (face, ys, xs, size)
    if len(ys) == len(xs) == 1:
        numbers = across_seams(place)
    else:  # few samples have taps off an edge
        inside = functools.reduce(jnp.logical_and, (is_inside(tap, size) for tap in (ys[0], ys[-1], xs[0], xs[-1])))
        own = [number for y in ys for x in xs for number in (*jnp.broadcast_arrays(face, y, x), jnp.zeros_like(inside))]
        numbers = where_needed(~inside, across_seams, place, own)
    found = []
    for (j, (y, y_weight)), (i, (x, x_weight)) in itertools.product(enumerate(rows), enumerate(columns)):
        *texel, missing = numbers[4 * len(found) :][:4]
        found.append(Tap(tuple(texel), None, (y_weight, x_weight), (face, y, x), (0, j, i), missing))
    return Step(found, (NUM_FACES, size, size))
