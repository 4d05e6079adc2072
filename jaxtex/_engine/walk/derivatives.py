"""Several derivatives of a weighted sum in one walk, which takes every tap once."""

import functools
import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ..._tables.filter_kernels import Weight
from ..describe.axis import Axis, Orders, Role, with_orders
from ..describe.operands import Coords
from .texel_order import groups
from .texel_walk import Path, Step, TexelAddress, TexelValue, Walk, walks, weighted


def blends(
    coords: Coords, axes: tuple[Axis, ...], texel_value: TexelValue, derivatives: Sequence[Orders]
) -> list[jax.Array]:
    """The weighted sum of `texel_value` over all taps, S + (C,), for each of several derivatives of the weights.

    Derivatives share values, and the sums along inner axes.

    Args:
        derivatives: the derivative order of each along every axis.
    """
    first = int(axes[0].role is Role.LEVEL)
    ends = np.cumsum([first, *(len(group) for group in groups(axes[first:]))])
    by_step = [tuple(orders[a:b] for a, b in itertools.pairwise(ends)) for orders in derivatives]
    distinct = [list(dict.fromkeys(orders)) for orders in zip(*by_step)]
    # As few walks as have the weights of every step for all of its orders.
    covering = [[some[min(k, len(some) - 1)] for some in distinct] for k in range(max(map(len, distinct)))]
    every = [walks(coords, with_orders(axes, ((0,) * first + sum(orders, ())))) for orders in covering]

    def of_level(number: int, walks_there: Sequence[Walk]) -> list[jax.Array]:
        share, start, steps = walks_there[0]
        weights = [
            {orders[n]: walk[n].weights() for orders, (_, _, walk) in zip(covering, walks_there)}
            for n in range(len(steps))
        ]
        found = sums_of_steps(start, steps, weights, list(dict.fromkeys(by_step)), (number,), texel_value)
        return [weighted(share, found[orders]) for orders in by_step]

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
    totals: dict[tuple[Orders, ...], jax.Array] = {}
    inner = list(dict.fromkeys(orders[1:] for orders in wanted))
    for k, tap in enumerate(steps[0].taps):
        advanced = address.advance(tap, steps[0].sizes)
        of_tap = sums_of_steps(advanced, steps[1:], weights[1:], inner, (*path, k), texel_value)
        for orders in wanted:
            term = weighted(weights[0][orders[0]][k], of_tap[orders[1:]])
            totals[orders] = totals[orders] + term if orders in totals else term
    return totals
