"""How the taps of a read become one value, if not by their sum: that sum within its nearest taps, or a vote.

Both take the walk of every read, so that a kernel loads each texel once. `clipped` is the rule of the limit, for the
walk and for the derivatives, which `primitives` states in terms of plain reads.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._tables.filter_kernels import LINEAR_TAPS, Weight
from ..describe.axis import Axis, Role
from ..describe.operands import Coords
from .texel_order import in_level
from .texel_walk import Path, Step, Tap, TexelAddress, TexelValue, taps, walks, weighted, with_given

# The weighted sum within its nearest taps


class Within(NamedTuple):
    """A sum over some taps, and the bounds of the nearest among them; `None` where none of them is near."""

    total: jax.Array
    bounds: tuple[jax.Array, jax.Array] | None

    def times(self, factor: Weight) -> "Within":
        """Both times a number of either sign."""
        assert self.bounds is not None
        ends = [weighted(factor, bound) for bound in self.bounds]
        return Within(weighted(factor, self.total), (lowest(ends), highest(ends)))


def limited_blend(coords: Coords, axes: tuple[Axis, ...], texel_value: TexelValue) -> jax.Array:
    """`blend`, clipped to the extremes of the nearest taps, channel by channel: in each level that it blends."""
    coords, axes = with_given(coords, axes)

    def interpolate(address: TexelAddress, places: list[Place], path: Path, near: bool) -> Within:
        if not places:
            texel = texel_value(address, path)
            return Within(texel, (texel, texel) if near else None)
        place, *rest = places
        parts = [
            interpolate(address.advance(tap, place.step.sizes), rest, (*path, k), near and place.may_be_near(tap))
            for k, tap in enumerate(place.step.taps)
        ]
        if place.axes[0].role is Role.WEIGHT:
            return parts[0].times(place.step.weights()[0])
        total = functools.reduce(jnp.add, (weighted(w, part.total) for w, part in zip(place.step.weights(), parts)))
        if not near:
            return Within(total, None)
        candidates = [(tap, part.bounds) for tap, part in zip(place.step.taps, parts) if part.bounds is not None]
        taps_there, bounds = zip(*candidates)
        lows, highs = (place.nearest(taps_there, side) for side in zip(*bounds))
        return Within(total, (lowest(lows), highest(highs)))

    def limited(start: TexelAddress, steps: list[Step], number: int) -> jax.Array:
        found = interpolate(start, places_of(start, steps, coords, axes), (number,), near=True)
        assert found.bounds is not None
        return clipped(found.total, *found.bounds)

    found = enumerate(walks(coords, axes))
    return functools.reduce(jnp.add, (weighted(w, limited(start, steps, k)) for k, (w, start, steps) in found))


class Place(NamedTuple):
    """A step of a walk, with the coordinates and the axes that it spans."""

    step: Step
    coords: tuple[jax.Array, ...]
    axes: tuple[Axis, ...]

    def may_be_near(self, tap: Tap) -> bool:
        """Whether a tap may be among the nearest ones, as far as its number tells."""
        return all(number in candidates_of(axis) for number, axis in zip(tap.offset, self.axes))

    def nearest(self, candidates: Sequence[Tap], values: Sequence[jax.Array]) -> list[jax.Array]:
        """The values of those taps that a linear filter blends; in place of the others, one of these again."""
        odd = [k for k, axis in enumerate(self.axes) if len(candidates_of(axis)) > 2]
        if not odd:
            return list(values)
        lows = {k: first_nearest(self.coords[k], self.axes[k]) for k in odd}
        middle = next(
            value
            for tap, value in zip(candidates, values)
            if all(tap.offset[k] == -self.axes[k].kernel.first for k in odd)
        )

        def chosen(tap: Tap, value: jax.Array) -> jax.Array:
            near = [(tap.unbounded[k] == low) | (tap.unbounded[k] == low + 1) for k, low in lows.items()]
            return jnp.where(functools.reduce(jnp.logical_and, near)[..., None], value, middle)

        return [chosen(tap, value) for tap, value in zip(candidates, values)]


def places_of(start: TexelAddress, steps: list[Step], coords: Coords, axes: tuple[Axis, ...]) -> list[Place]:
    """The steps of a walk with the coordinates and axes that they span, as a rule one axis."""
    counts = [len(step.sizes) for step in steps]
    inner, along = axes[-sum(counts) :], tuple(coords[-sum(counts) :])
    inner = inner if start.level is None else in_level(inner, start.level)
    ends = np.cumsum([0, *counts])
    return [Place(step, along[a:b], inner[a:b]) for step, a, b in zip(steps, ends, ends[1:])]


def candidates_of(axis: Axis) -> range:
    """The numbers of the taps that may be the nearest of a position: two, or three around the texel that holds it."""
    count, first = axis.kernel.num_taps, -axis.kernel.first
    if axis.integer or count <= 2:
        return range(count)
    between = axis.kernel.origin == LINEAR_TAPS[0].origin
    return range(first, first + 2) if between else range(first - 1, first + 2)


def first_nearest(coord: jax.Array, axis: Axis) -> jax.Array:
    """The first tap of a linear filter."""
    ((tap, _),) = taps(coord, axis._replace(kernel=LINEAR_TAPS[0]))
    return tap


def lowest(values: Sequence[jax.Array]) -> jax.Array:
    """The least value; of equal ones the first, which gets the derivatives."""
    return functools.reduce(lambda low, x: jnp.where(x < low, x, low), values)


def highest(values: Sequence[jax.Array]) -> jax.Array:
    """The greatest value; of equal ones the first, which gets the derivatives."""
    return functools.reduce(lambda high, x: jnp.where(x > high, x, high), values)


def clipped(total: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    """`total`, or the bound that it passes; NaN stays."""
    return jnp.where(total < low, low, jnp.where(total > high, high, total))


def nearest_taps(axes: tuple[Axis, ...]) -> list[tuple[Axis, ...]]:
    """For each of the nearest taps, axes that read it alone, without a weight."""
    filtered = [axis.role is Role.SPACE and not axis.integer for axis in axes]
    choices = itertools.product(*(LINEAR_TAPS if some else (axis.kernel,) for some, axis in zip(filtered, axes)))
    return [tuple(a._replace(kernel=kernel) for a, kernel in zip(axes, kernels)) for kernels in choices]


def each_level(axes: tuple[Axis, ...]) -> list[tuple[Axis, ...]]:
    """For each level that a read blends, axes that read it alone, times its weight."""
    first, *others = axes
    if first.role is not Role.LEVEL or first.integer:
        return [axes]
    each = (first._replace(kernel=first.kernel.only(k)) for k in range(first.kernel.num_taps))
    return [(level, *others) for level in each]


# The vote


def heaviest(coords: Coords, axes: tuple[Axis, ...], texel_value: TexelValue) -> jax.Array:
    """The value whose taps have the greatest weight together, channel by channel; of equally heavy ones the least.

    The weights of a value are added up in the order of the taps for every tap that holds it, so that equal values have
    equal sums, to the bit. The work grows with the square of the taps, and nothing with the number of values.
    """
    found = [
        (weight, value)
        for k, (w, start, steps) in enumerate(walks(coords, axes))
        for weight, value in votes(start, steps, (k,), w, texel_value)
    ]
    sums = [weight_of(value, found) for _, value in found]
    most, chosen = sums[0], found[0][1]
    for total, (_, value) in zip(sums[1:], found[1:]):
        better = (total > most) | ((total == most) & (value < chosen))
        most, chosen = jnp.where(better, total, most), jnp.where(better, value, chosen)
    return chosen


def votes(
    address: TexelAddress, steps: list[Step], path: Path, weight: Weight, texel_value: TexelValue
) -> Iterator[tuple[Weight, jax.Array]]:
    """The weight and the value of each tap of the rest of a walk."""
    if not steps:
        yield weight, texel_value(address, path)
        return
    step, *rest = steps
    for k, (tap, own) in enumerate(zip(step.taps, step.weights())):
        yield from votes(address.advance(tap, step.sizes), rest, (*path, k), weight * own, texel_value)


def weight_of(value: jax.Array, found: Sequence[tuple[Weight, jax.Array]]) -> jax.Array:
    """The sum of the weights of all taps that hold `value`."""
    some = (jnp.where(value == other, jnp.asarray(weight)[..., None], 0) for weight, other in found)
    return functools.reduce(jnp.add, some)
