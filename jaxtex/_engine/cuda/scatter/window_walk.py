"""A walk of a read as a window of the adjoint sees it: taps before any address rule."""

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...describe.axis import Axis
from ...walk.taps import Taps
from ...walk.texel_walk import Step, TexelAddress


class Walk(NamedTuple):
    """One walk of a read, as a window sees it.

    Attributes:
        first: the first tap on each axis, before any address rule.
        offsets: how far each tap lies beyond the first one, on each axis.
        weights: of each tap.
    """

    first: list[jax.Array]
    offsets: list[tuple[int, ...]]
    weights: list[Any]

    @classmethod
    def of(cls, starts: Sequence[jax.Array], weight: Any, address: TexelAddress, steps: list[Step]) -> "Walk":
        """All products of the taps of the steps of a walk.

        Args:
            starts: the sizes and starts before the coordinates, along which a window has one cell.
        """
        level = [*starts] if address.level is None else [*starts, address.level]
        first = [*level, *(index for step in steps for index in step.taps[0].unbounded)]
        offsets, weights = [], []
        for taps in itertools.product(*(list(zip(step.taps, step.weights())) for step in steps)):
            offsets.append((*[0] * len(level), *(k for tap, _ in taps for k in tap.offset)))
            weights.append(functools.reduce(jnp.multiply, (w for _, w in taps), weight))
        return cls(first, offsets, weights)


def as_it_is(index: jax.Array, axis: Axis) -> Taps:
    """The one tap at an index."""
    del axis
    return [(index, 1.0)]
