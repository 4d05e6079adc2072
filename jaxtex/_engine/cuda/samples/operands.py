"""The operands of a read in the memory of a kernel: how a thread loads their numbers and stores their cotangents."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from ...describe.operands import Stack
from ...describe.spec import ReadSpec
from ...describe.storage import Shaped
from ..trace.indexing import load_row
from .sample_tiles import offset


def load_numbers(spec: ReadSpec, operands: Sequence[Shaped], index: list[jax.Array]) -> list[jax.Array]:
    """The arguments of the grid at the index of a sample, from the operands of a kernel."""
    found: list[jax.Array] = []
    for k, a in enumerate(operands):
        name, stack = f"arrays.operand_{k}", spec.stack_of(k)
        if stack is None:
            found.append(load_row(name, offset(index, a.shape), 1, a.dtype)[:, 0])
        else:
            found.extend(load_stack(name, a, stack, index))
    return found


def load_stack(name: str, a: Shaped, stack: Stack, index: list[jax.Array]) -> list[jax.Array]:
    """The numbers that an operand holds for the sample at an index."""
    before, count, after = around(stack, a.shape)
    near, far = offset(index[: len(before)], before), offset(index[len(before) :], after)
    step = math.prod(after)
    if step == 1:
        row = load_row(name, [(near, count), (far, 1)], count, a.dtype, aligned=count in (2, 4))
        return [row[:, place] for place in stack.order]
    places = ([(near, count * step), (jnp.full((1,), place, jnp.int32), step), (far, 1)] for place in stack.order)
    return [load_row(name, place, 1, a.dtype)[:, 0] for place in places]


def around(stack: Stack, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    """The axes before that of a stack, how many numbers it holds, and the axes after it."""
    along = len(shape) + stack.axis
    return shape[:along], shape[along], shape[along + 1 :]


def stacked_shape(stack: Stack, samples: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an operand that holds the numbers of all samples."""
    along = len(samples) + 1 + stack.axis
    return (*samples[:along], len(stack.order), *samples[along:])


def stored_at(stack: Stack | None, samples: tuple[int, ...], number: int, sample: str) -> str:
    """An expression for where the cotangent of a number of a sample is stored, in an array for all samples."""
    if stack is None:
        return sample
    _, count, after = around(stack, stacked_shape(stack, samples))
    place, step = stack.order[number], math.prod(after)
    if step == 1:
        return f"(int64){sample} * {count} + {place}"
    return f"(int64)({sample} / {step}) * {count * step} + {sample} % {step} + (int64){place} * {step}"
