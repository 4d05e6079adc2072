"""The combinations of a read's taps other than their sum: several derivatives of it, a sum that is clipped, and a vote.

All take the walk of every read, in which a kernel loads every texel once. `clipped` defines the limit, for the walk
here and for the derivatives, which `rules.primitives` takes from plain reads.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._tables.filter_kernels import LINEAR_TAPS, Weight
from ..describe.axis import Axis, Orders, Role, with_orders
from ..describe.operands import Coords
from .texel_order import groups, in_level
from .texel_walk import Path, Step, Tap, TexelAddress, TexelValue, Walk, taps, walks, weighted, with_given

# The weighted sum, clipped to the nearest taps


class Within(NamedTuple):
    """A sum over taps, and the bounds (low, high) of the nearest taps among them; `None` if none of them is near."""

    total: jax.Array
    bounds: tuple[jax.Array, jax.Array] | None

    def times(self, factor: Weight) -> "Within":
        """The sum and the bounds, times a number of either sign."""
        assert self.bounds is not None
        ends = [weighted(factor, bound) for bound in self.bounds]
        return Within(weighted(factor, self.total), (lowest(ends), highest(ends)))


def limited_blend(coords: Coords, axes: tuple[Axis, ...], texel_value: TexelValue) -> jax.Array:
    """`blend`, clipped channel by channel to the extremes of the nearest taps, separately in each mip level."""
    coords, axes = with_given(coords, axes)

    # A walk returns a sum and, where all taps so far may be nearest ones, the bounds of these.
    def interpolate(address: TexelAddress, places: list[Place], path: Path, near: bool) -> Within:
        # The end of the walk: one texel, which is its own bounds.
        if not places:
            texel = texel_value(address, path)
            return Within(texel, (texel, texel) if near else None)
        place, *rest = places
        # All taps of this step.
        parts = [
            interpolate(address.advance(tap, place.step.sizes), rest, (*path, k), near and place.may_be_near(tap))
            for k, tap in enumerate(place.step.taps)
        ]
        # A weight multiplies the sum and the bounds, and may turn them around.
        if place.axes[0].role is Role.WEIGHT:
            return parts[0].times(place.step.weights()[0])
        # The sum of the step, and the bounds of its nearest taps alone.
        total = functools.reduce(jnp.add, (weighted(w, part.total) for w, part in zip(place.step.weights(), parts)))
        if not near:
            return Within(total, None)
        candidates = [(tap, part.bounds) for tap, part in zip(place.step.taps, parts) if part.bounds is not None]
        taps_there, bounds = zip(*candidates)
        lows, highs = (place.nearest(taps_there, side) for side in zip(*bounds))
        return Within(total, (lowest(lows), highest(highs)))

    # A level is limited by its own texels, before levels are blended.
    def limited(start: TexelAddress, steps: list[Step], number: int) -> jax.Array:
        within = interpolate(start, places_of(start, steps, coords, axes), (number,), near=True)
        assert within.bounds is not None
        return clipped(within.total, *within.bounds)

    levels = enumerate(walks(coords, axes))
    return functools.reduce(jnp.add, (weighted(w, limited(start, steps, k)) for k, (w, start, steps) in levels))


class Place(NamedTuple):
    """A step of a walk, with the coordinates and the axes that it spans."""

    step: Step
    coords: tuple[jax.Array, ...]
    axes: tuple[Axis, ...]

    def may_be_near(self, tap: Tap) -> bool:
        """Whether a tap may be one of the nearest, judged by its number alone."""
        return all(number in candidates_of(axis) for number, axis in zip(tap.offset, self.axes))

    def nearest(self, candidates: Sequence[Tap], values: Sequence[jax.Array]) -> list[jax.Array]:
        """The values of the taps that a linear filter blends; the values of other taps are replaced by one of these."""
        # With two candidates on each axis, all of them are nearest ones.
        odd = [k for k, axis in enumerate(self.axes) if len(candidates_of(axis)) > 2]
        if not odd:
            return list(values)
        # The first of the two taps that a linear filter would take.
        lows = {k: taps(self.coords[k], self.axes[k]._replace(kernel=LINEAR_TAPS[0]))[0][0] for k in odd}
        # With three, the outer two are near on one side only. The middle one always is.
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
    """The steps of a walk, each with its coordinates and axes."""
    counts = [len(step.sizes) for step in steps]
    inner, along = axes[-sum(counts) :], tuple(coords[-sum(counts) :])
    inner = inner if start.level is None else in_level(inner, start.level)
    ends = np.cumsum([0, *counts])
    return [Place(step, along[a:b], inner[a:b]) for step, a, b in zip(steps, ends, ends[1:])]


def candidates_of(axis: Axis) -> range:
    """The numbers of the taps that may be nearest to a position: the middle two, or three of an odd number."""
    count, first = axis.kernel.num_taps, -axis.kernel.first
    if axis.integer or count <= 2:
        return range(count)
    between = axis.kernel.origin == LINEAR_TAPS[0].origin
    return range(first, first + 2) if between else range(first - 1, first + 2)


def lowest(values: Sequence[jax.Array]) -> jax.Array:
    """The minimum of values; of equal values, the first gets the derivative."""
    return functools.reduce(lambda low, x: jnp.where(x < low, x, low), values)


def highest(values: Sequence[jax.Array]) -> jax.Array:
    """The maximum of values; of equal values, the first gets the derivative."""
    return functools.reduce(lambda high, x: jnp.where(x > high, x, high), values)


def clipped(total: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    """`total`, clipped to `low` and `high`; NaN stays NaN."""
    return jnp.where(total < low, low, jnp.where(total > high, high, total))


def nearest_taps(axes: tuple[Axis, ...]) -> list[tuple[Axis, ...]]:
    """For each of the nearest taps, axes of a read that returns this tap's texel."""
    filtered = [axis.role is Role.SPACE and not axis.integer for axis in axes]
    choices = itertools.product(*(LINEAR_TAPS if blends else (axis.kernel,) for blends, axis in zip(filtered, axes)))
    return [tuple(a._replace(kernel=kernel) for a, kernel in zip(axes, kernels)) for kernels in choices]


def each_level(axes: tuple[Axis, ...]) -> list[tuple[Axis, ...]]:
    """For each level that a read blends, axes of a read of this level alone, times its weight."""
    first, *others = axes
    if first.role is not Role.LEVEL or first.integer:
        return [axes]
    levels = (first._replace(kernel=first.kernel.only(k)) for k in range(first.kernel.num_taps))
    return [(level, *others) for level in levels]


# The vote


def heaviest(coords: Coords, axes: tuple[Axis, ...], texel_value: TexelValue) -> jax.Array:
    """The value whose taps have the largest total weight, channel by channel; of ties, the smallest value.

    For each tap, the weights of all taps with an equal value are added in one order, so that equal values have sums
    with equal bits. The work grows with the square of the number of taps, not with the number of values.
    """
    # The weight and the value of each tap, over all levels.
    ballots = [
        (weight, value)
        for k, (w, start, steps) in enumerate(walks(coords, axes))
        for weight, value in votes(start, steps, (k,), w, texel_value)
    ]
    # The value whose taps have the most weight wins; of ties, the smallest.
    sums = [weight_of(value, ballots) for _, value in ballots]
    most, chosen = sums[0], ballots[0][1]
    for total, (_, value) in zip(sums[1:], ballots[1:]):
        better = (total > most) | ((total == most) & (value < chosen))
        most, chosen = jnp.where(better, total, most), jnp.where(better, value, chosen)
    return chosen


def votes(
    address: TexelAddress, steps: list[Step], path: Path, weight: Weight, texel_value: TexelValue
) -> Iterator[tuple[Weight, jax.Array]]:
    """The weight and the value of each tap, for the remaining steps of a walk."""
    if not steps:
        yield weight, texel_value(address, path)
        return
    step, *rest = steps
    for k, (tap, own) in enumerate(zip(step.taps, step.weights())):
        yield from votes(address.advance(tap, step.sizes), rest, (*path, k), weight * own, texel_value)


def weight_of(value: jax.Array, ballots: Sequence[tuple[Weight, jax.Array]]) -> jax.Array:
    """The total weight of the taps whose value is `value`."""
    shares = (jnp.where(value == other, jnp.asarray(weight)[..., None], 0) for weight, other in ballots)
    return functools.reduce(jnp.add, shares)


# Several derivatives of the weighted sum


def blends(
    coords: Coords, axes: tuple[Axis, ...], texel_value: TexelValue, derivatives: Sequence[Orders]
) -> list[jax.Array]:
    """The weighted sum of `texel_value` over all taps, S + (C,), for each of several derivatives of the weights.

    Derivatives share values, and the sums along inner axes.

    Args:
        derivatives: the derivative order of each along every axis.
    """
    # The derivative orders of each step, and the distinct ones among them.
    first = int(axes[0].role is Role.LEVEL)
    ends = np.cumsum([first, *(len(group) for group in groups(axes[first:]))])
    by_step = [tuple(orders[a:b] for a, b in itertools.pairwise(ends)) for orders in derivatives]
    distinct = [list(dict.fromkeys(orders)) for orders in zip(*by_step)]
    # As few walks as have the weights of every step for all of its orders.
    covering = [[orders[min(k, len(orders) - 1)] for orders in distinct] for k in range(max(map(len, distinct)))]
    every = [walks(coords, with_orders(axes, ((0,) * first + sum(orders, ())))) for orders in covering]

    # All derivatives of a level in one walk over its texels.
    def of_level(number: int, walks_there: Sequence[Walk]) -> list[jax.Array]:
        share, start, steps = walks_there[0]
        weights = [
            {orders[n]: walk[n].weights() for orders, (_, _, walk) in zip(covering, walks_there)}
            for n in range(len(steps))
        ]
        sums = sums_of_steps(start, steps, weights, list(dict.fromkeys(by_step)), (number,), texel_value)
        return [weighted(share, sums[orders]) for orders in by_step]

    totals = itertools.starmap(of_level, enumerate(zip(*every)))
    return [functools.reduce(jnp.add, levels) for levels in zip(*totals)]


def sums_of_steps(
    address: TexelAddress,
    steps: list[Step],
    weights: Sequence[dict[Orders, list[Weight]]],
    wanted: Sequence[tuple[Orders, ...]],
    path: Path,
    texel_value: TexelValue,
) -> dict[tuple[Orders, ...], jax.Array]:
    """The sums over the remaining steps of a walk, for each entry of `wanted`: the derivative orders of each step.

    Args:
        weights: for each step, the weights of its taps by their derivative orders.
    """
    if not steps:
        return {(): texel_value(address, path)}
    # Derivatives that agree in the inner steps share their sums.
    totals: dict[tuple[Orders, ...], jax.Array] = {}
    inner = list(dict.fromkeys(orders[1:] for orders in wanted))
    for k, tap in enumerate(steps[0].taps):
        advanced = address.advance(tap, steps[0].sizes)
        of_tap = sums_of_steps(advanced, steps[1:], weights[1:], inner, (*path, k), texel_value)
        for orders in wanted:
            term = weighted(weights[0][orders[0]][k], of_tap[orders[1:]])
            totals[orders] = totals[orders] + term if orders in totals else term
    return totals
