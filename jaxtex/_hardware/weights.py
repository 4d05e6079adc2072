"""From the taps of a walk to stencils: the texels of one level and one slice, with integer weights.

The weights of a read sum to 256. They are split axis by axis, each half rounded, in the order level, z, x, y.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .._engine.walk.texel_walk import Step, TexelAddress
from .positions import ONE

Weight = Any  # a number or an array, whole in either case


class Weighted(NamedTuple):
    """The address of a texel and its weight in 1/256."""

    address: TexelAddress
    weight: Weight


def stencils(total: Weight, address: TexelAddress, steps: list[Step]) -> Iterator[list[Weighted]]:
    """The stencils of one walk of weight `total`: one, or one for each slice of a volume."""
    while steps and len(steps[0].taps) == 1:  # layers, faces, and every axis of a point read
        (step, *steps), (tap,) = steps, steps[0].taps
        address = address.advance(tap, step.sizes)
    if len(steps) < 3:
        yield plane(total, address, steps)
        return
    step, *steps = steps
    near, far = step.taps
    first = share(total, near.factors[0])
    yield plane(first, address.advance(near, step.sizes), steps)
    yield plane(total - first, address.advance(far, step.sizes), steps)


def plane(total: Weight, address: TexelAddress, steps: list[Step]) -> list[Weighted]:
    """The stencil of the last axes that blend: none, x, x and y, or those of a cube's face."""
    if not steps:
        return [Weighted(address, total)]
    *_, last = steps
    if len(steps) == 2:
        rows, columns = steps
        addresses = [address.advance(y, rows.sizes).advance(x, columns.sizes) for y in rows.taps for x in columns.taps]
        weights = quarters(total, rows.taps[1].factors[0], columns.taps[1].factors[0])
    elif len(last.taps) == 2:
        addresses = [address.advance(x, last.sizes) for x in last.taps]
        right = share(total, last.taps[1].factors[0])
        weights = [total - right, right]
    else:
        addresses = [address.advance(tap, last.sizes) for tap in last.taps]
        weights = shared_out(quarters(total, *last.taps[3].factors), [tap.missing for tap in last.taps])
    return [Weighted(*pair) for pair in zip(addresses, weights)]


def share(total: Weight, part: Weight) -> Weight:
    """A share of a weight, halves up."""
    return part if isinstance(total, int) and total == ONE else (total * part + 128) >> 8


def quarters(total: Weight, down: Weight, right: Weight) -> list[Weight]:
    """`total` split along x, then each half along y: (y0 x0), (y0 x1), (y1 x0), (y1 x1)."""
    x1 = share(total, right)
    x0 = total - x1
    y1_x1 = share(x1, down)
    y1_x0 = (x0 * down + 127) >> 8  # half down
    return [x0 - y1_x0, x1 - y1_x1, y1_x0, y1_x1]


def shared_out(weights: list[Weight], missing: list[jax.Array | None]) -> list[Weight]:
    """The weight of a tap off a cube's corner goes to the others: a third to each neighbor, the rest across."""
    result = list(weights)
    for k, gone in enumerate(missing):
        assert gone is not None
        lost = jnp.where(gone, weights[k], 0)
        third = (2 * lost + 3) // 6
        for other, more in ((k ^ 1, third), (k ^ 2, third), (k ^ 3, lost - 2 * third), (k, -lost)):
            result[other] = result[other] + more
    return result
