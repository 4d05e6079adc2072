"""The cotangents of operands that all reads of a sum or a fold share, such as the ends of a ray, by the read's kernel.

A thread has all reads of a sum, and adds up in its registers. The scatter kernel, whose lanes share the reads of a sum,
is for few sums.
"""

import dataclasses
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from ...compute.linearization import operand_cotangents, summed_to
from ...describe.axis import Role
from ...describe.folds import SUM, Fold
from ...describe.operands import Besides, SeveralReads, Stack
from ...describe.spec import ReadSpec, Wrt
from ..samples.sample_source import AdjointPlan
from .read_kernel import read_each_sample, value_of

# From so many sums on, threads that have a sum each fill a GPU.
LEAST_SUMS = 2**15
# The most channels of a thread, which needs those of every derivative.
MOST_CHANNELS = 4


@dataclasses.dataclass(frozen=True)
class OperandSums(Fold):
    """The cotangents of operands that all reads of a fold share: sums of the slopes of reads, times those of the grid.

    A sample has its value, then its derivatives along the axes of space. The numbers of its operands are given, those
    that the fold takes as the last ones; then the cotangent of the result, and the state of `Fold.pull` at the start.
    The state is that of `Fold.pull`, then the cotangents.

    Attributes:
        spec: the spec of the reads, with operands of one number.
        wrt: the numbers of the operands that have cotangents.
        fold: what the reads become.
        numbers: the numbers of all operands.
        pulled: the numbers of the state of `Fold.pull`.
    """

    spec: ReadSpec
    wrt: tuple[int, ...]
    fold: Fold
    numbers: int
    pulled: int
    num_given: int
    joint = True

    def width(self, channels: int) -> int:
        return len(self.wrt)

    def start(self, channels: int) -> list[float]:
        return [1.0] * self.pulled + [0.0] * len(self.wrt)

    def step(self, state: jax.Array, value: jax.Array, number: jax.Array, *given: jax.Array) -> jax.Array:
        pulled, sums = state[..., : self.pulled], state[..., self.pulled :]
        own, last = self.numbers - self.fold.num_given, len(given) - self.pulled
        # At the first read, the state is the one that came with the cotangent.
        if self.pulled:
            pulled = jnp.where(number[..., None] == 0, jnp.stack(given[last:], -1), pulled)
        # The value of a read, and its slopes.
        values, *slopes = jnp.split(value, len(self.spec.axes) + 1, -1)
        cotangent = jnp.stack(given[self.numbers : last], -1)
        # The fold says what a read's value adds to the result; the chain rule does the rest.
        pulled, of_value, of_given = self.fold.pull(pulled, values, cotangent, *given[own : self.numbers])
        of_coords = {k: jnp.sum(slope * of_value, -1) for k, slope in enumerate(slopes)}
        found = operand_cotangents(of_coords, given[: self.numbers], self.spec, tuple(k for k in self.wrt if k < own))
        found |= {own + k: a for k, a in enumerate(of_given)}
        return jnp.concatenate([pulled, sums + jnp.stack([found[k] for k in self.wrt], -1)], -1)

    def result(self, state: jax.Array) -> jax.Array:
        return state[..., self.pulled :]


def pull_sums(
    cotangent: jax.Array,
    texels: jax.Array,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    wrt: Wrt,
    batch: int,
    fold: Fold = SUM,
    start: jax.Array | None = None,
) -> list[jax.Array]:
    """The cotangents of operands that all reads of a sum share: a thread has all reads of a sum.

    Args:
        fold: what the reads become, if not their sum; `operands` end with those that it takes.
        start: the state of `Fold.pull` at the start, in the shape of the results.
    """
    # A read with its derivative along every axis, and what the fold takes besides, as more operands.
    axes = tuple(a.order for a in spec.axes)
    orders = axes, *(tuple(order + (k == n) for n, order in enumerate(axes)) for k in range(len(axes)))
    numbers = [spec.numbers_of(k) for k in wrt]
    # The cotangent goes with the state, if the fold pulls one back.
    count, pulled = spec.numbers_of(len(operands) - 1).stop, 0 if start is None else start.shape[-1]
    given = cotangent if start is None else jnp.concatenate([cotangent, start], -1)
    assert not isinstance(spec.grid, SeveralReads)
    wanted, last = tuple(n for some in numbers for n in some), given.shape[-1]
    # The sums are a fold: a thread carries them from read to read.
    sums = OperandSums(spec.replace(stacks=()), wanted, fold, count, pulled, count + last)
    stacks = spec.stacks or (None,) * len(operands)
    several = spec.replace(
        derivatives=orders, grid=Besides(spec.grid, last), stacks=(*stacks, Stack(-1, tuple(range(last))))
    )
    # One kernel finds the sums of all numbers; they are put together as the operands were stacked.
    args = value_of(several), texels, None, [*operands, given], several, batch, "texture_pullback"
    found, results, first = read_each_sample(*args, fold=sums), [], 0
    for k, some in zip(wrt, numbers):
        stack, parts = spec.stack_of(k), [found[..., first + n] for n in range(len(some))]
        first += len(some)
        result = (
            parts[0]
            if stack is None
            else jnp.stack([parts[stack.order.index(place)] for place in range(len(parts))], stack.axis)
        )
        shape = (*result.shape[:batch], *operands[k].shape[batch:])
        results.append(summed_to(result, shape).astype(operands[k].dtype))
    return results


def shared_alone(plan: AdjointPlan, channels: int) -> Wrt:
    """The operands of `AdjointPlan.shared`, where threads that have whole sums are enough."""
    axes = plan.spec.axes
    known = not plan.spec.given and plan.spec.several is None and plan.reach is None
    plain = known and all(a.role is Role.SPACE and not a.integer for a in axes)
    enough = math.prod(plan.shape_of_sums) >= LEAST_SUMS and channels <= MOST_CHANNELS
    return plan.shared if plain and enough else ()
