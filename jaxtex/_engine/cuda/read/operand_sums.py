"""The cotangents of operands that all reads of a sum share, such as the ends of a ray, by the kernel of a read.

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
from ...describe.folds import Fold
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
    """The cotangents of the operands that all reads of a sum share: sums of the read's slopes, times those of its grid.

    The value of a sample has its derivatives along the axes of space. The numbers of its operands are given, and behind
    them the cotangent of the sum.

    Attributes:
        spec: the spec of the sum, with operands of one number.
        wrt: the numbers of the operands that have cotangents.
        channels: the number of channels of the read.
    """

    spec: ReadSpec
    wrt: tuple[int, ...]
    channels: int
    num_given: int
    joint = True

    def width(self, channels: int) -> int:
        return len(self.wrt)

    def start(self, channels: int) -> list[float]:
        return [0.0] * len(self.wrt)

    def step(self, state: jax.Array, value: jax.Array, number: jax.Array, *given: jax.Array) -> jax.Array:
        own = self.num_given - self.channels
        cotangent = jnp.stack(given[own:], -1)
        slopes = [jnp.sum(some * cotangent, -1) for some in jnp.split(value, len(self.spec.axes), -1)]
        found = operand_cotangents(dict(enumerate(slopes)), given[:own], self.spec, self.wrt)
        return state + jnp.stack([found[k] for k in self.wrt], -1)

    def result(self, state: jax.Array) -> jax.Array:
        return state


def pull_sums(
    cotangent: jax.Array, texels: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, wrt: Wrt, batch: int
) -> list[jax.Array]:
    """The cotangents of operands that all reads of a sum share: a thread has all reads of a sum."""
    channels, axes = texels.shape[-1], range(len(spec.axes))
    orders = tuple(tuple(a.order + (k == n) for n, a in enumerate(spec.axes)) for k in axes)
    numbers = [spec.numbers_of(k) for k in wrt]
    count = spec.numbers_of(len(operands) - 1).stop
    assert not isinstance(spec.grid, SeveralReads)
    of_numbers = spec.replace(stacks=())
    fold = OperandSums(of_numbers, tuple(n for some in numbers for n in some), channels, count + channels)
    stacks = spec.stacks or (None,) * len(operands)
    several = spec.replace(
        derivatives=orders, grid=Besides(spec.grid, channels), stacks=(*stacks, Stack(-1, tuple(range(channels))))
    )
    args = value_of(several), texels, None, [*operands, cotangent], several, batch, "texture_pullback"
    found, results, first = read_each_sample(*args, fold=fold), [], 0
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
