"""The walk of a read from coordinates to texels: over its axes, through levels, layers and seams, to flat indices.

On one axis, a coordinate becomes a position, and a position becomes taps and weights. Positions are in texels; the
center of texel i lies at i + 0.5.

A walk is a list of steps, and a step is a list of taps. A path through a walk takes one tap of each step. Most steps
are one axis. Axes that are addressed jointly are one step, because a tap off an edge of a cube's face changes face, row
and column.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from ..._jax.branches import where_needed
from ..._jax.instructions import instruction
from ..._jax.shapes import as_operand
from ..._tables.address_rules import CLAMP, Addressed, Size, clamp, is_inside
from ..._tables.filter_kernels import POINT, Weight
from ..describe.axis import Axis, Role, num_given
from ..describe.operands import Arrays, Coords
from ..describe.spec import AxisTaps
from .texel_order import groups, in_level, num_levels, shares_index, starts_of, stored_sizes

# One axis

# Normalized coordinates from here on act as 0 if the texture repeats, as on NVIDIA GPUs.
COORDINATE_LIMIT = 2.0**24
# Positions from here on act as 0, so that the taps around a position fit in int32.
POSITION_LIMIT = 2.0**30


def usable(coord: jax.Array, axis: Axis) -> jax.Array:
    """The mask of the coordinates in range. Others act as 0, with derivative zero."""
    if axis.address.saturates:
        return coord == coord  # false for NaN alone
    if axis.reduced:
        return jnp.abs(coord) < COORDINATE_LIMIT
    return jnp.abs(coord) < (POSITION_LIMIT / texels_per_unit(axis, coord.dtype))


def texels_per_unit(axis: Axis, dtype: DTypeLike) -> jax.Array | int:
    """The number of texels per unit of the coordinate."""
    if not axis.normalized:
        return 1
    size = axis.given_size
    return size if isinstance(size, int) else size.astype(dtype)


def to_position(coord: jax.Array, axis: Axis) -> jax.Array:
    """The position of `coord` on `axis`, in texels."""
    # A point read that clamps needs no mask: NaN is converted to the index 0, and no weight depends on it.
    if not (axis.kernel is POINT and axis.address is CLAMP):
        coord = jnp.where(usable(coord, axis), coord, 0)
    if axis.reduced:
        # This subtraction is exact. The remainder keeps its sign, because folding -1e-10 into [0, 1) would round to 1.
        coord = coord - 2 * jnp.trunc(coord * 0.5)
    return coord * texels_per_unit(axis, coord.dtype) if axis.normalized else coord


# The taps on one axis: pairs of an unbounded index and its weight.
Taps = list[tuple[jax.Array, Weight]]


def taps(coord: jax.Array, axis: Axis, *, bounded: bool = False) -> Taps:
    """The taps of `coord` on `axis`: unbounded int32, each with its weight.

    On an integer axis (a layer, a face, an axis of a fetch), the coordinate is the only tap.

    Args:
        bounded: whether coordinates are known to be finite and far from the limits of int32.
    """
    if axis.integer:
        return [(coord, 1.0)]
    if axis.role is Role.WEIGHT:
        (factor,) = axis.kernel.weights.at(coord, axis.order)
        return [(jnp.zeros(coord.shape, jnp.int32), factor)]
    bounded = bounded or axis.address.within
    origin, first, num_taps = axis.kernel.origin, axis.kernel.first, axis.kernel.num_taps
    shifted = (coord * texels_per_unit(axis, coord.dtype) if bounded else to_position(coord, axis)) - origin
    low = jnp.floor(shifted)
    tap = low.astype(jnp.int32)
    stops = axis.address.saturates and not bounded
    if stops:
        # An infinity is converted to the largest int32, and later taps would overflow. So the first tap stops just
        # outside the texture.
        if first + num_taps > 1:
            tap = jnp.minimum(tap, axis.given_size - first)
        if first < 0:
            tap = jnp.maximum(tap, -num_taps - first)
    # The fraction follows from the tap, not from `low`: XLA may compute a coordinate twice, in two loops, and round it
    # to either side of an integer.
    fraction = shifted - tap.astype(shifted.dtype)
    if stops:
        # If the first tap has stopped, all taps read one value, and any fraction from 0 to 1 is right, but not NaN.
        fraction = clipped_to_unit(fraction)
    weights = axis.kernel.weights.at(fraction, axis.order)
    if axis.order:
        scale = math.prod([texels_per_unit(axis, coord.dtype)] * axis.order)
        scale = jnp.asarray(scale, coord.dtype)
        scale = jnp.broadcast_to(scale, coord.shape) if bounded else jnp.where(usable(coord, axis), scale, 0)
        weights = [scale * w for w in weights]
    return [(tap + (first + k), weight) for k, weight in enumerate(weights)]


@jax.custom_jvp
@instruction("saturated({0})")
def clipped_to_unit(x: jax.Array) -> jax.Array:
    """`x`, clipped to 0 and 1; NaN becomes 0. The derivative is 1, also where `x` is clipped."""
    return jnp.clip(jnp.where(x == x, x, 0), 0, 1)


@clipped_to_unit.defjvp
def jvp_of_clipped(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    return clipped_to_unit(*primals), tangents[0]


# All axes


class Tap(NamedTuple):
    """One tap of a step.

    Attributes:
        index: the stored indices: one for each axis of the step, or one for all of them.
        inside: whether the tap reads a texel and not the border; `None` if all taps do.
        factors: the weight of the tap on each filtered axis of the step.
        unbounded: the index on each axis of the step, before its address rule.
        offset: `unbounded` minus the `unbounded` of the step's first tap.
        missing: whether the tap lies off a corner of a cube, where there is no texel; `None` if no tap can.
        available: whether the tap's texel is stored, or lies outside the texture; `None` if all texels are stored. A
            tap that is not available counts as outside.
        further: what to add to the last stored index. If all taps are known to be inside, `index` is that of the first
            one, so that a kernel loads them at constant distances from one place.
    """

    index: tuple[jax.Array, ...]
    inside: jax.Array | None
    factors: tuple[Weight, ...]
    unbounded: tuple[jax.Array, ...] = ()
    offset: tuple[int, ...] = ()
    missing: jax.Array | None = None
    available: jax.Array | None = None
    further: int = 0


class Step(NamedTuple):
    """The taps of one axis, or of several that are addressed jointly.

    Attributes:
        sizes: the extent of each stored index of a tap.
    """

    taps: list[Tap]
    sizes: tuple[Size, ...]

    def weights(self) -> list[Weight]:
        """The weight of each tap: the product of its factors. Other taps share the weight of a missing one equally."""
        products = [functools.reduce(lambda a, b: a * b, tap.factors) for tap in self.taps]
        missing = [tap.missing for tap in self.taps if tap.missing is not None]
        if not missing:
            return products
        lost = functools.reduce(jnp.add, (jnp.where(gone, w, 0) for gone, w in zip(missing, products)))
        share = 1 / (len(self.taps) - 1)
        return [jnp.where(gone, 0, w + lost * share) for gone, w in zip(missing, products)]

    def without_outside(self) -> "Step":
        """The step with weight zero for taps outside, which then need no mask."""
        weights = [w if t.inside is None else jnp.where(t.inside, w, 0) for t, w in zip(self.taps, self.weights())]
        taps = [t._replace(inside=None, factors=(w,), missing=None) for t, w in zip(self.taps, weights)]
        return self._replace(taps=taps)


class TexelAddress(NamedTuple):
    """The address of a texel, or of the part of a texture that a walk has reached.

    Adjacent axes share a flat index as long as an int32 can hold it. One index is the fastest; a texture of more than
    2^31 texels needs two. Texels whose sizes are operands, and the levels of a mip chain, have a single index.

    Attributes:
        indices: the flat indices so far.
        extent: the extent of the last one.
        inside: whether all taps so far are inside; `None` if all taps always are.
        start: the flat index at which the level of this walk starts in a mip chain; `None` without levels.
        level: that level, int32; `None` without levels.
        further: what to add to the last flat index, see `Tap.further`.
    """

    indices: tuple[jax.Array, ...] = ()
    extent: Size = 1
    inside: jax.Array | None = None
    start: jax.Array | None = None
    level: jax.Array | None = None
    further: int = 0

    def advance(self, tap: Tap, sizes: tuple[Size, ...]) -> "TexelAddress":
        """The address after one more step, at `tap`."""
        indices, extent, further = self.indices, self.extent, self.further
        for index, size in zip(tap.index, sizes):
            if indices and (self.start is not None or shares_index(extent, size)):
                indices, extent = (*indices[:-1], indices[-1] * size + index), extent * size
                further = further and further * int(size)
            else:
                assert not further, "taps that are known to be inside share one flat index"
                indices, extent = (*indices, index), size
        inside, further = both(self.inside, tap.inside), further + tap.further
        return self._replace(indices=indices, extent=extent, inside=inside, further=further)

    @property
    def flat_index(self) -> tuple[jax.Array, ...]:
        """The indices into the stored texels."""
        indices = self.indices if self.start is None else (self.start + self.indices[0],)
        return (*indices[:-1], indices[-1] + self.further) if self.further else indices


# The weight of a walk, the address where it starts, and its steps.
Walk = tuple[Weight, TexelAddress, list[Step]]
# The number of the walk, followed by the number of the tap taken at each step.
Path = tuple[int, ...]
# A function ``texel_value(address, path)``: the value at the end of a walk, S + (C,).
TexelValue = Callable[[TexelAddress, Path], jax.Array]


def weighted(weight: Weight, value: jax.Array) -> jax.Array:
    """`weight`, S, times a value, S + (C,). The Python number 1.0 changes no bit of the value."""
    if isinstance(weight, jax.Array):
        return value * weight[..., None].astype(value.dtype)
    return value if weight == 1.0 else value * weight


def both(a: jax.Array | None, b: jax.Array | None) -> jax.Array | None:
    """The conjunction of two masks; `None` is a mask that is true everywhere."""
    return b if a is None else a if b is None else a & b


def with_given(coords: Coords, axes: tuple[Axis, ...]) -> tuple[Coords, tuple[Axis, ...]]:
    """Coordinates without the leading sizes and starts, and axes with these in place."""
    num_sizes, count = sum(axis.needs_size for axis in axes), num_given(axes)
    sizes, starts = iter(coords[:num_sizes]), iter(coords[num_sizes:count])
    return coords[count:], tuple(axis.with_given(sizes, starts) for axis in axes)


def walks(coords: Coords, axes: tuple[Axis, ...], axis_taps: AxisTaps = taps, unit: float = 1.0) -> Iterator[Walk]:
    """The walks of a read, one for each mip level that it blends: the level's weight, the start address, and the steps.

    Args:
        axis_taps: ``axis_taps(coord, axis)`` returns the taps of one axis, with weights that sum to `unit`.
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


def only_address(coords: Coords, axes: tuple[Axis, ...], axis_taps: AxisTaps = taps) -> TexelAddress:
    """The address of a read with a single tap on every axis."""
    ((_, address, steps),) = walks(coords, axes, axis_taps)
    for step in steps:
        (tap,) = step.taps
        address = address.advance(tap, step.sizes)
    return address


def texels_of(coords: Coords, axes: tuple[Axis, ...]) -> Iterator[tuple[jax.Array, Arrays, jax.Array | None]]:
    """For each tap of a read of one level, the weight of the texel, its stored indices, and the mask of taps inside."""
    ((_, _, steps),) = walks(coords, axes)
    for pairs in itertools.product(*(zip(step.taps, step.weights()) for step in steps)):
        inside = functools.reduce(both, (tap.inside for tap, _ in pairs))
        weight = functools.reduce(jnp.multiply, (jnp.asarray(weight) for _, weight in pairs))
        yield weight, tuple(index for tap, _ in pairs for index in tap.index), inside


def steps(coords: Coords, axes: tuple[Axis, ...], axis_taps: AxisTaps) -> list[Step]:
    """The steps of a walk within one level."""
    places = iter(coords)
    return [step_of(tuple(itertools.islice(places, len(group))), group, axis_taps) for group in groups(axes)]


def step_of(coords: Coords, group: tuple[Axis, ...], axis_taps: AxisTaps) -> Step:
    """The step of one axis, or of several that are addressed jointly."""
    if group[0].address.apply_together is None:
        return axis_step(coords[0], group[0], axis_taps)
    return joint_step(coords, group, axis_taps)


def axis_step(coord: jax.Array, axis: Axis, axis_taps: AxisTaps) -> Step:
    """The step of one axis."""
    pairs = axis_taps(coord, axis)
    if axis.address.within:
        first = (pairs[0][0],)
        return Step(
            [Tap(first, None, (w,), (tap,), (k,), further=k) for k, (tap, w) in enumerate(pairs)], (axis.extent,)
        )
    stored = addressed([tap for tap, _ in pairs], axis)
    taps = zip(stored, pairs)
    every = [Tap((i,), inside, (w,), (tap,), (k,)) for k, ((i, inside), (tap, w)) in enumerate(taps)]
    return Step([in_store(tap, (axis,)) for tap in every], (axis.extent,))


def in_store(tap: Tap, group: tuple[Axis, ...]) -> Tap:
    """A tap whose indices count the stored texels alone."""
    if all(axis.stored is None for axis in group):
        return tap
    # Indices from the first stored texel on, and whether they are stored.
    places, available = list(tap.index), None
    for k, axis in enumerate(group):
        if axis.stored is not None:
            places[k], is_stored = axis.stored.place(tap.index[k], axis.given_size)
            available = both(available, is_stored)
    # A window has all texels that are needed, so nothing is masked.
    if all(axis.stored is None or axis.stored.is_window for axis in group):
        return tap._replace(index=tuple(places))
    assert available is not None
    needed = available if tap.inside is None else available | ~tap.inside
    return tap._replace(index=tuple(places), inside=both(tap.inside, available), available=needed)


def taps_are_available(coords: Coords, axes: tuple[Axis, ...], axis_taps: AxisTaps = taps) -> jax.Array:
    """Whether all texels that a sample needs are stored; at least one axis must have a stored part."""
    taps_of_walks = (tap for _, _, walk in walks(coords, axes, axis_taps) for step in walk for tap in step.taps)
    return functools.reduce(jnp.logical_and, (tap.available for tap in taps_of_walks if tap.available is not None))


def other_part(coords: Coords, axes: tuple[Axis, ...], first: int, count: int) -> tuple[Coords, tuple[Axis, ...]]:
    """Coordinates and axes for another part of the axis that has a stored part.

    Args:
        first: the first texel of the other part, counted from the start of the stored part.
        count: the number of texels of the other part.
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
    """The stored indices of adjacent taps on an axis, and the masks of the taps inside."""
    apply, size = axis.address.apply, as_operand(axis.given_size)
    assert apply is not None
    if not axis.address.folds:
        return [apply(tap, size) for tap in taps]
    known, given = (size, None) if isinstance(size, int) else (None, size)
    beyond = ~(is_inside(taps[0], size) & is_inside(taps[-1], size))
    indices = where_needed(beyond, Folded(apply, known), (taps, given), taps, branches_differ=False)
    return [(index, None) for index in indices]


class Folded(NamedTuple):
    """The indices of taps by a rule with `folds`: taps inside read the texels of their own numbers.

    Attributes:
        size: the size of the axis; `None` if it is an array, which comes with the taps.
    """

    apply: Callable[[jax.Array, Size], Addressed]
    size: int | None

    def __call__(self, operands: tuple[list[jax.Array], jax.Array | None]) -> list[jax.Array]:
        taps, given = operands
        size = given if self.size is None else self.size
        assert size is not None
        return [self.apply(tap, size)[0] for tap in taps]


def joint_step(coords: Coords, group: tuple[Axis, ...], axis_taps: AxisTaps) -> Step:
    """The step of axes that are addressed jointly: a tap for each combination of one tap on each axis."""
    apply, sizes = group[0].address.apply_together, [axis.given_size for axis in group]
    assert apply is not None
    # The taps of each axis, which the rule maps together.
    of_axes = [axis_taps(coord, axis) for coord, axis in zip(coords, group)]
    stored = apply([[tap for tap, _ in pairs] for pairs in of_axes], sizes)
    taps: list[Tap] = []
    # One tap for each combination, with the weights of the axes that have any.
    for place, chosen in zip(stored, itertools.product(*map(enumerate, of_axes)), strict=True):
        offset, pairs = zip(*chosen)
        factors = tuple(weight for (_, weight), axis in zip(pairs, group) if not axis.integer) or (1.0,)
        unbounded = tuple(tap for tap, _ in pairs)
        tap = Tap(place.texel, place.inside, factors, unbounded, offset, place.missing)
        taps.append(in_store(tap, group))
    return Step(taps, stored_sizes(group, [axis.extent for axis in group]))


def middle_texel(coord: jax.Array, axis: Axis) -> jax.Array:
    """The texel that the middle tap reads on an axis that is addressed by itself; under a border, the nearest texel."""
    pairs = taps(coord, axis)
    tap, _ = pairs[len(pairs) // 2]
    assert axis.address.apply is not None
    apply = clamp if axis.address.has_outside else axis.address.apply
    return apply(tap, axis.known_size)[0]
