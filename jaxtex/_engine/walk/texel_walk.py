"""The texels of a read: a walk over its axes, through levels, layers and seams, to flat indices.

A walk is a list of steps, and a step a list of taps. A path through it takes one tap of each step. Most steps are one
axis. Axes that are addressed together are one step: a tap off an edge of a cube's face changes the face, the row and
the column.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.calls import where_needed
from ..._tables.address_rules import Addressed, Size, clamp, is_inside
from ..._tables.filter_kernels import Weight
from ..describe.axis import Axis, Given, Role, num_given, of_level, sizes_are_known
from ..describe.operands import Coords
from ..describe.spec import AxisTaps
from .taps import taps

INDEX_LIMIT = 2**31


class Tap(NamedTuple):
    """One tap of a step.

    Attributes:
        index: the stored indices: one on each axis of the step, or one of all.
        inside: whether the tap is a texel; `None` where every tap is.
        factors: the weight of the tap on each filtered axis of the step.
        unbounded: the index on each axis of the step before its address rule.
        offset: how far `unbounded` lies beyond that of the first tap of the step.
        missing: whether the tap lies off a corner of a cube, where there is no texel; `None` where no tap can.
        available: whether the texel of the tap is stored, or lies outside the texture; `None` where all texels are
            stored. A tap that is not available counts as outside.
    """

    index: tuple[jax.Array, ...]
    inside: jax.Array | None
    factors: tuple[Weight, ...]
    unbounded: tuple[jax.Array, ...] = ()
    offset: tuple[int, ...] = ()
    missing: jax.Array | None = None
    available: jax.Array | None = None


class Step(NamedTuple):
    """The taps of one axis, or of several that are addressed together.

    Attributes:
        sizes: the extents of the stored indices.
    """

    taps: list[Tap]
    sizes: tuple[Size, ...]

    def weights(self) -> list[Weight]:
        """The weight of each tap: the product of its factors. The weight of a missing tap is shared equally."""
        products = [functools.reduce(lambda a, b: a * b, tap.factors) for tap in self.taps]
        missing = [tap.missing for tap in self.taps if tap.missing is not None]
        if not missing:
            return products
        lost = functools.reduce(jnp.add, (jnp.where(gone, w, 0) for gone, w in zip(missing, products)))
        share = 1 / (len(self.taps) - 1)
        return [jnp.where(gone, 0, w + lost * share) for gone, w in zip(missing, products)]

    def without_outside(self) -> "Step":
        """This step with no weight for taps outside, which then need no mask."""
        weights = [w if t.inside is None else jnp.where(t.inside, w, 0) for t, w in zip(self.taps, self.weights())]
        taps = [t._replace(inside=None, factors=(w,), missing=None) for t, w in zip(self.taps, weights)]
        return self._replace(taps=taps)


class TexelAddress(NamedTuple):
    """Where a walk has come to: flat indices so far, the extent of the last one, and whether it is inside.

    Neighboring axes share one flat index as long as an int32 can hold it. One index is the fastest; a texture of
    more than 2^31 texels needs two. Texels of sizes that are operands lie under one index. So do the levels of a mip
    chain, one after the other; the `level` of this walk begins at `start`.
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
            if indices and (self.start is not None or shares_index(extent, size)):
                indices, extent = (*indices[:-1], indices[-1] * size + index), extent * size
            else:
                indices, extent = (*indices, index), size
        return self._replace(indices=indices, extent=extent, inside=both(self.inside, tap.inside))

    @property
    def flat_index(self) -> tuple[jax.Array, ...]:
        """The indices into the stored texels."""
        return self.indices if self.start is None else (self.start + self.indices[0],)


def shares_index(extent: Size, size: Size) -> bool:
    """Whether one flat index can hold an index of that extent and one more."""
    return not (isinstance(extent, int) and isinstance(size, int)) or extent * size < INDEX_LIMIT


def both(a: jax.Array | None, b: jax.Array | None) -> jax.Array | None:
    """Whether both masks hold; `None` is a mask that holds everywhere."""
    return b if a is None else a if b is None else a & b


def groups(axes: tuple[Axis, ...]) -> Iterator[tuple[Axis, ...]]:
    """The axes of each step of a walk: one, or those that are addressed together."""
    while axes:
        count = axes[0].address.num_axes
        assert all(axis.address == axes[0].address for axis in axes[:count])
        yield axes[:count]
        axes = axes[count:]


def stored_sizes(group: tuple[Axis, ...], sizes: Sequence[Size], level: int = 0) -> tuple[Size, ...]:
    """The extents of the stored indices of a step, from the sizes of its axes."""
    rows = group[0].address.rows_of(level)
    return tuple(sizes) if rows is None else (rows,)


def in_level(axes: tuple[Axis, ...], level: jax.Array) -> tuple[Axis, ...]:
    """The axes in a level that each sample chooses."""
    rules = [(group, group[0].address.in_level(level)) for group in groups(axes)]
    return tuple(axis.at(level)._replace(address=rule) for group, rule in rules for axis in group)


def known_sizes(axes: tuple[Axis, ...], level: int = 0) -> list[int]:
    """The extents of all stored indices, of axes whose samples do not choose their level, or in a known level."""
    extents = lambda group: [
        axis.level_size(level) if axis.stored is None else axis.stored.count_in(level) for axis in group
    ]
    each = (stored_sizes(group, extents(group), level) for group in groups(axes))
    return [int(size) for sizes in each for size in sizes]


def flat_sizes(axes: tuple[Axis, ...]) -> list[int]:
    """The extents of the flat indices of a `TexelAddress` after a walk over `axes`."""
    for axis in axes:
        if isinstance(axis.size, Given):
            return [axis.size.capacity]
    if axes[0].role is Role.LEVEL:
        return [int(level_starts(axes)[-1])]
    flat: list[int] = []
    for size in known_sizes(axes):
        if flat and flat[-1] * size < INDEX_LIMIT:
            flat[-1] *= size
        else:
            flat.append(size)
    return flat


def level_starts(axes: tuple[Axis, ...]) -> np.ndarray:
    """Where each level of a mip chain starts among the texels of the chain, and where the last one ends."""
    levels, *rest = axes
    counts = [np.prod(known_sizes(tuple(rest), level), dtype=np.int64) for level in range(levels.known_size)]
    return np.concatenate([[0], np.cumsum(counts)])


def texels_shape(axes: tuple[Axis, ...], channels: int) -> tuple[int, ...]:
    """The shape of the texels that a walk over `axes` reads."""
    if any(axis.needs_size for axis in axes) or axes[0].role is Role.LEVEL:
        return (*flat_sizes(axes), channels)
    return (*known_sizes(tuple(axis for axis in axes if axis.role is not Role.WEIGHT)), channels)


def flattened(texels: jax.Array, axes: tuple[Axis, ...]) -> jax.Array:
    """Texels in the order of their flat indices, channels last."""
    return texels.reshape(*flat_sizes(axes), texels.shape[-1])


def with_given(coords: Coords, axes: tuple[Axis, ...]) -> tuple[Coords, tuple[Axis, ...]]:
    """Coordinates without the sizes and starts before them, and axes with these."""
    num_sizes, count = sum(axis.needs_size for axis in axes), num_given(axes)
    sizes, starts = iter(coords[:num_sizes]), iter(coords[num_sizes:count])
    return coords[count:], tuple(axis.with_given(sizes, starts) for axis in axes)


def walks(
    coords: Coords, axes: tuple[Axis, ...], axis_taps: AxisTaps = taps, unit: float = 1.0
) -> Iterator[tuple[Weight, TexelAddress, list[Step]]]:
    """The walks of a read, each with a weight and the address where it starts: one, or one for each level it blends.

    Args:
        axis_taps: finds the taps of one axis, with weights that sum to `unit`.
    """
    coords, axes = with_given(coords, axes)
    if axes[0].role is not Role.LEVEL:
        yield unit, TexelAddress(), steps(coords, axes, axis_taps)
        return
    taps_of_levels = axis_step(coords[0], axes[0]._replace(size=num_levels(axes)), axis_taps).taps
    levels = [tap.index[0] for tap in taps_of_levels]
    for tap, level, start in zip(taps_of_levels, levels, starts_of(levels, axes)):
        inner = in_level(axes[1:], level)
        yield tap.factors[0], TexelAddress(start=start, level=level), steps(coords[1:], inner, axis_taps)


def starts_of(levels: list[jax.Array], axes: tuple[Axis, ...]) -> list[jax.Array]:
    """Where the levels start that a read blends. Each of them is the one before it or the next of the chain."""
    starts = [level_start(levels[0], axes)]
    for level, following in itertools.pairwise(levels):
        inner = in_level(axes[1:], level)
        starts.append(starts[-1] + jnp.where(following > level, num_texels(inner), 0))
    return starts


def num_texels(axes: tuple[Axis, ...]) -> jax.Array:
    """How many texels there are on axes within a level."""
    sizes = (stored_sizes(group, [axis.extent for axis in group]) for group in groups(axes))
    return cast(jax.Array, functools.reduce(jnp.multiply, itertools.chain.from_iterable(sizes)))


def num_levels(axes: tuple[Axis, ...]) -> Size:
    """How many levels a chain has. One whose sizes are operands ends at a single texel."""
    levels, *rest = axes
    if sizes_are_known(tuple(rest)):
        return levels.known_size
    sizes = (axis.given_size for axis in rest if axis.role is Role.SPACE)
    longest = cast(jax.Array, functools.reduce(jnp.maximum, sizes))
    return functools.reduce(jnp.add, ((longest >> k > 0).astype(jnp.int32) for k in range(levels.known_size)))


def level_start(level: jax.Array, axes: tuple[Axis, ...]) -> jax.Array:
    """Where a level of a mip chain starts among the texels of the chain."""
    if not sizes_are_known(axes):
        each = (in_level(axes[1:], jnp.int32(k)) for k in range(axes[0].known_size - 1))
        return sum((jnp.where(level > k, num_texels(a), 0) for k, a in enumerate(each)), jnp.zeros_like(level))
    starts = level_starts(axes)[:-1]
    layers = math.prod(axis.known_size for axis in axes[1:] if axis.role is not Role.SPACE)
    finest = math.prod(axis.known_size for axis in axes[1:] if axis.role is Role.SPACE)
    bits = sum(axis.role is Role.SPACE for axis in axes)
    # Where sizes are powers of two, the levels from some level on take as many texels as a shift leaves of all.
    whole = sum(finest >> bits * k for k in range(len(starts)))
    if whole < INDEX_LIMIT and all(start == layers * (whole - (whole >> bits * k)) for k, start in enumerate(starts)):
        return layers * (whole - (np.int32(whole) >> (bits * level)))
    return of_level(level, tuple(map(int, starts)))


def only_address(coords: Coords, axes: tuple[Axis, ...], axis_taps: AxisTaps = taps) -> TexelAddress:
    """The address of a walk that has one tap on every axis."""
    ((_, address, steps),) = walks(coords, axes, axis_taps)
    for step in steps:
        (tap,) = step.taps
        address = address.advance(tap, step.sizes)
    return address


def steps(coords: Coords, axes: tuple[Axis, ...], axis_taps: AxisTaps) -> list[Step]:
    """The steps of a walk within one level."""
    places = iter(coords)
    return [step_of(tuple(itertools.islice(places, len(group))), group, axis_taps) for group in groups(axes)]


def step_of(coords: Coords, group: tuple[Axis, ...], axis_taps: AxisTaps) -> Step:
    """The taps of one axis, or of several that are addressed together."""
    if group[0].address.apply_together is None:
        return axis_step(coords[0], group[0], axis_taps)
    return joint_step(coords, group, axis_taps)


def axis_step(coord: jax.Array, axis: Axis, axis_taps: AxisTaps) -> Step:
    """The taps of `coord` on `axis`, addressed."""
    found = axis_taps(coord, axis)
    stored = addressed([tap for tap, _ in found], axis)
    taps = zip(stored, found)
    every = [Tap((i,), inside, (w,), (tap,), (k,)) for k, ((i, inside), (tap, w)) in enumerate(taps)]
    return Step([in_store(tap, (axis,)) for tap in every], (axis.extent,))


def in_store(tap: Tap, group: tuple[Axis, ...]) -> Tap:
    """A tap with its indices among the texels that are stored."""
    if all(axis.stored is None for axis in group):
        return tap
    places, available = list(tap.index), None
    for k, axis in enumerate(group):
        if axis.stored is not None:
            places[k], found = axis.stored.place(tap.index[k], axis.given_size)
            available = both(available, found)
    if all(axis.stored is None or axis.stored.is_window for axis in group):
        return tap._replace(index=tuple(places))
    assert available is not None
    needed = available if tap.inside is None else available | ~tap.inside
    return tap._replace(index=tuple(places), inside=both(tap.inside, available), available=needed)


def taps_are_available(coords: Coords, axes: tuple[Axis, ...], axis_taps: AxisTaps = taps) -> jax.Array:
    """Whether all texels that a sample needs are stored, where axes are stored in part."""
    taps_of_walks = (tap for _, _, some in walks(coords, axes, axis_taps) for step in some for tap in step.taps)
    return functools.reduce(jnp.logical_and, (tap.available for tap in taps_of_walks if tap.available is not None))


def other_part(coords: Coords, axes: tuple[Axis, ...], first: int, count: int) -> tuple[Coords, tuple[Axis, ...]]:
    """Coordinates and axes of another part of an axis that is stored in part.

    Args:
        first: how many texels it begins after the stored ones.
        count: its texels.
    """

    def moved(start: jax.Array, size: Size) -> jax.Array:
        after = start + first
        return jnp.where(after < 0, after + size, jnp.where(after < size, after, after - size))

    in_part = lambda axis: axis._replace(stored=axis.stored and axis.stored._replace(count=count))
    given, last = sum(axis.needs_size for axis in axes), num_given(axes)
    periods = [axis.stored.period for axis in axes if axis.stored is not None]
    starts = [moved(start, period) for start, period in zip(coords[given:last], periods)]
    return (*coords[:given], *starts, *coords[last:]), tuple(map(in_part, axes))


def addressed(taps: list[jax.Array], axis: Axis) -> list[Addressed]:
    """What taps side by side on an axis read."""
    apply, size = axis.address.apply, axis.given_size
    assert apply is not None
    if not axis.address.folds:
        return [apply(tap, size) for tap in taps]
    known, given = (size, None) if isinstance(size, int) else (None, size)
    beyond = ~(is_inside(taps[0], size) & is_inside(taps[-1], size))
    indices = where_needed(beyond, Folded(apply, known), (taps, given), taps, branches_differ=False)
    return [(index, None) for index in indices]


class Folded(NamedTuple):
    """What taps read by a rule, under which those within the axis read their own texel.

    Attributes:
        size: of the axis; `None` where it is given with the taps.
    """

    apply: Callable[[jax.Array, Size], Addressed]
    size: int | None

    def __call__(self, operands: tuple[list[jax.Array], jax.Array | None]) -> list[jax.Array]:
        taps, given = operands
        size = given if self.size is None else self.size
        assert size is not None
        return [self.apply(tap, size)[0] for tap in taps]


def joint_step(coords: Coords, group: tuple[Axis, ...], axis_taps: AxisTaps) -> Step:
    """The taps of `coords` on axes that are addressed together: each combination of a tap on each axis."""
    apply, sizes = group[0].address.apply_together, [axis.given_size for axis in group]
    assert apply is not None
    of_axes = [axis_taps(coord, axis) for coord, axis in zip(coords, group)]
    stored = apply([[tap for tap, _ in found] for found in of_axes], sizes)
    taps: list[Tap] = []
    for place, chosen in zip(stored, itertools.product(*map(enumerate, of_axes)), strict=True):
        offset, found = zip(*chosen)
        factors = tuple(weight for (_, weight), axis in zip(found, group) if not axis.integer)
        unbounded = tuple(tap for tap, _ in found)
        tap = Tap(place.texel, place.inside, factors, unbounded, offset, place.missing)
        taps.append(in_store(tap, group))
    return Step(taps, stored_sizes(group, [axis.extent for axis in group]))


def middle_texel(coord: jax.Array, axis: Axis) -> jax.Array:
    """The texel that the tap in the middle reads, of an axis that is addressed by itself; outside the nearest one."""
    found = taps(coord, axis)
    tap, _ = found[len(found) // 2]
    assert axis.address.apply is not None
    apply = clamp if axis.address.has_outside else axis.address.apply
    return apply(tap, axis.known_size)[0]
