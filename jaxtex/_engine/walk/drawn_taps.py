"""Stochastic filtering: a read of one tap, drawn with its weight as probability, in place of the sum over all taps.

The expectation of the drawn texel is the weighted sum. Negative weights are no probabilities: with them, one tap a is
drawn among the taps of positive weight, and one tap b among the taps of negative weight. If negative weights sum to -n,
positive ones sum to 1 + n, and the expectation of ``(1 + n) T[a] - n T[b]`` is the weighted sum. For constant texels,
it is the constant.

One uniform number from 0 to 1 suffices for all choices of a sample: its remainder after a choice is uniform again.

Source: M. Pharr, B. Wronski, M. Salvi and M. Fajardo, "Filtering After Shading With Stochastic Texture Filtering",
2024.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..._tables.address_rules import BORDER, CLAMP
from ..._tables.filter_kernels import POINT, Weight
from ..describe.axis import Axis, Role
from ..describe.operands import Coords, Grid, SeveralReads, covering
from .texel_order import in_level
from .texel_walk import Step, Tap, axis_step, steps, taps


class Choice(NamedTuple):
    """A random choice among candidates, by their weights.

    Attributes:
        passed: for each candidate but the first, whether it or a later one is drawn.
        rest: a uniform number from 0 to 1 for the next choice.
    """

    passed: list[jax.Array]
    rest: jax.Array

    @classmethod
    def by(cls, weights: Sequence[Weight], number: jax.Array) -> "Choice":
        """The choice by a uniform number from 0 to 1; weights are not negative, and need not sum to 1."""
        if len(weights) == 1:
            return cls([], number)
        sums = [jnp.asarray(weights[0], number.dtype)]
        for weight in weights[1:]:
            sums.append(sums[-1] + weight)
        at = number * sums[-1]
        choice = cls([at >= low for low in sums[:-1]], number)
        share = choice.of([jnp.asarray(weight, number.dtype) for weight in weights])
        rest = (at - choice.of([jnp.zeros_like(at), *sums[:-1]])) / jnp.where(share > 0, share, 1)
        return choice._replace(rest=jnp.clip(rest, 0, 1 - jnp.finfo(number.dtype).epsneg))

    def of(self, values: Sequence[jax.Array]) -> jax.Array:
        """The value of the candidate that is drawn."""
        value, *others = values
        for passed, other in zip(self.passed, others, strict=True):
            value = jnp.where(passed, other, value)
        return value


class Shares(NamedTuple):
    """The sum of the positive weights, and the sum of the magnitudes of the negative weights."""

    positive: Weight
    negative: Weight


class DrawnTaps(NamedTuple):
    """The grid of a read of single texels: from a uniform number and operands to the stored indices of a drawn tap.

    Attributes:
        axes: the axes of the expected read.
        grid: the grid of the expected read.
        below_zero: whether the tap is drawn among the taps of negative weight, not among those of positive weight.
    """

    axes: tuple[Axis, ...]
    grid: Grid | SeveralReads
    below_zero: bool = False

    @property
    def signed(self) -> bool:
        """Whether a weight can be negative."""
        return any(axis.kernel.signed for axis in self.axes if not axis.integer)

    @property
    def drawn_axes(self) -> tuple[Axis, ...]:
        """The axes of the read of single texels, in which a tap outside has index -1."""
        rule = BORDER if any(axis.address.has_outside for axis in self.axes) else CLAMP
        return tuple(axis._replace(kernel=POINT, address=rule, normalized=False, integer=True) for axis in self.axes)

    def __call__(self, number: jax.Array, *operands: jax.Array) -> Coords:
        given = (number, *operands)
        # The steps within the drawn level, and what its draw has left of the number.
        indices, walk, number = self.walk(*given)
        below: jax.Array | bool = self.below_zero
        rest = shares(walk) if self.signed else [Shares(1.0, 0.0)] * len(walk)
        # Each step draws one of its taps, by weights that leave a remainder for the next one.
        for step, (positive, negative) in zip(walk, rest):
            weights = step.weights()
            if self.signed and len(weights) > 1:
                # The product of this weight and the weights of later steps must have the sign `below`.
                same, other = (jnp.where(below, a, b) for a, b in ((negative, positive), (positive, negative)))
                weights = [jnp.maximum(w, 0) * same + jnp.maximum(-jnp.asarray(w), 0) * other for w in weights]
            choice = Choice.by(weights, number)
            if self.signed and len(weights) > 1:
                below = below ^ choice.of([jnp.asarray(w) < 0 for w in step.weights()])
            indices += [choice.of(of_taps) for of_taps in zip(*map(stored_indices, step.taps))]
            number = choice.rest
        return covering(indices, given)

    def negative_share(self, number: jax.Array, *operands: jax.Array) -> jax.Array:
        """The sum n of the magnitudes of the negative weights, for the drawn level and the drawn read."""
        return jnp.asarray(total(self.walk(number, *operands)[1]).negative)

    def walk(self, number: jax.Array, *operands: jax.Array) -> tuple[list[jax.Array], list[Step], jax.Array]:
        """The index of the drawn level, if there are levels; the steps within it; and the remainder of the number."""
        coords, number = self.coords(number, *operands)
        if self.axes[0].role is not Role.LEVEL:
            return [], steps(coords, self.axes, taps), number
        of_levels = axis_step(coords[0], self.axes[0], taps)
        choice = Choice.by(of_levels.weights(), number)
        level = choice.of([tap.index[0] for tap in of_levels.taps])
        return [level], steps(coords[1:], in_level(self.axes[1:], level), taps), choice.rest

    def coords(self, number: jax.Array, *operands: jax.Array) -> tuple[Coords, jax.Array]:
        """The coordinates of the read, or of one that is drawn among several; and the remainder of the number."""
        if not isinstance(self.grid, SeveralReads):
            return self.grid(*operands), number
        count = self.grid.count(*operands)
        at = number * count
        before = jnp.minimum(jnp.floor(at), count - 1)
        coords, _ = self.grid.read(before + 1, *operands)
        return coords, jnp.minimum(at - before, 1 - jnp.finfo(number.dtype).epsneg)


def stored_indices(tap: Tap) -> tuple[jax.Array, ...]:
    """The stored indices of a tap, -1 if it is outside."""
    if tap.inside is None:
        return tap.index
    return tuple(jnp.where(tap.inside, index, -1) for index in tap.index)


def shares(walk: Sequence[Step]) -> list[Shares]:
    """For each step, the shares of the products of weights over all later steps."""
    return [total(walk[k + 1 :]) for k in range(len(walk))]


def total(walk: Sequence[Step]) -> Shares:
    """The shares of the products of weights over all steps."""
    positive, negative = 1.0, 0.0
    for step in walk:
        weights = step.weights()
        if len(weights) > 1:
            above = sum(jnp.maximum(weight, 0) for weight in weights)
            below = sum(jnp.maximum(-jnp.asarray(weight), 0) for weight in weights)
            positive, negative = positive * above + negative * below, positive * below + negative * above
    return Shares(positive, negative)
