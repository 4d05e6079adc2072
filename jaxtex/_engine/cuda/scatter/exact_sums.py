"""Sums at texels with the same bits in every run, whatever the order of additions to memory.

A window, or a sample by itself, adds a number to a texel. The number is rounded to a multiple of a unit, a power of
two. Integers of 64 bits hold such multiples, and their sum is exact, so it is the same in any order. A second kernel
turns the sums into numbers. The unit is as fine as the integers allow if all samples fall on one texel with the largest
value.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ...compute.texel_sums import largest_product, weight_bound
from ...describe.axis import Role
from ...describe.operands import widened
from ..build.arrays import ArrayRole, KernelArray, KernelArrays
from ..build.launch import LANES
from ..build.source import Constant
from ..samples.sample_source import AdjointPlan
from .stored import OnSquares, num_squares

# The magnitude of a sum is less than 2^61. It starts at 2^61, so it never is negative, and two bits above it stay free.
# Two float32 have the bits of that start.
SUM_BITS, START = 61, (0.0, 2.0**-63)
# Windows round their sums to float32. The sum of rounded numbers is at most so many times the sum of exact ones.
ROUNDINGS = 1.001
# In the second kernel: the numbers of a thread, and the threads of a block.
STEPS, THREADS = 8, 256
# The number of blocks, where most sums may not be of integers.
REST_BLOCKS = 8448
ABSENT = {ArrayRole.MARKS: "const int", ArrayRole.UNIT: "const int", ArrayRole.RESULT: "float"}


def largest_value(plan: AdjointPlan, values: jax.Array, operands: Sequence[jax.Array]) -> jax.Array:
    """The largest magnitude of a value, times its weights."""
    spec = plan.spec
    weighted = any(axis.role is Role.WEIGHT for axis in spec.axes)
    return largest_product(widened(values), spec.factors(spec.coords(operands)) if weighted else ())


def unit_of(plan: AdjointPlan, largest: jax.Array) -> jax.Array:
    """The unit of all sums, int32, (1,): the exponent of a power of two."""
    spec = plan.spec
    terms = math.prod(plan.shape) // math.prod(plan.textures) * spec.num_taps
    exponent = math.frexp(terms * weight_bound(spec.axes) * ROUNDINGS)[1]
    return (jnp.frexp(largest)[1] + np.int32(exponent - SUM_BITS)).reshape(1)


def start_of_sums(count: int, channels: int) -> jax.Array:
    """The sums of `count` texels before anything is added, (count, 2 channels): two float32 have an integer's bits."""
    return jnp.broadcast_to(jnp.asarray(START, jnp.float32), (count, channels, 2)).reshape(count, 2 * channels)


def joined(plan: AdjointPlan, sums: jax.Array, unit: jax.Array) -> jax.Array:
    """The sums of texels as numbers, from the copies of sums that blocks have added to."""
    result = jax.ShapeDtypeStruct((plan.num_texels, sums.shape[-1] // 2), jnp.float32)
    given = [KernelArray(ArrayRole.TOTALS, sums), KernelArray(ArrayRole.UNIT, unit)]
    arrays = KernelArrays(given, [KernelArray(ArrayRole.RESULT, result)], ABSENT)
    return SumsSource(plan, arrays).run("texture_sums")[ArrayRole.RESULT, 0]


def started(plan: AdjointPlan, channels: int, marks: jax.Array) -> jax.Array:
    """The sums of the squares of texels that `marks` names, before anything is added."""
    result = jax.ShapeDtypeStruct((plan.num_texels, 2 * channels), jnp.float32)
    arrays = KernelArrays([KernelArray(ArrayRole.MARKS, marks)], [KernelArray(ArrayRole.TOTALS, result)], ABSENT)
    return SumsSource(plan, arrays).run("texture_zeros")[ArrayRole.TOTALS, 0]


class SumsSource(OnSquares):
    """The source of the kernel that turns sums of integers into numbers, or starts them."""

    file, room, made_by = "scatter/join.cu", "join", "exact_sums.py"

    def __init__(self, plan: AdjointPlan, arrays: KernelArrays):
        super().__init__()
        self.plan, self.arrays = plan, arrays

    @property
    def channels(self) -> int:
        return self.arrays[ArrayRole.TOTALS].shape[-1] // 2

    @property
    def count(self) -> int:
        """The numbers."""
        return self.plan.num_texels * self.channels

    @property
    def num_blocks(self) -> int:
        needed = -(-self.count // (THREADS * STEPS))
        return min(-(-num_squares(self.plan) * LANES // THREADS), REST_BLOCKS) if self.starts else needed

    @property
    def starts(self) -> bool:
        """Whether it starts the sums of some squares of texels."""
        return ArrayRole.MARKS in self.arrays

    @property
    def num_threads(self) -> int:
        return THREADS

    def constants(self) -> list[Constant]:
        copies = self.arrays[ArrayRole.TOTALS].shape[0] // self.plan.num_texels
        return [
            Constant("steps", STEPS, "the numbers of a thread"),
            Constant("num_blocks", self.num_blocks, "of the launch"),
            Constant("count", self.count, "of numbers"),
            Constant("channels", self.channels, "of a texel"),
            Constant("copies", copies, "of all sums; blocks have added to them in turn"),
            Constant("lanes", LANES, "of a warp"),
            Constant("starts", self.starts, "whether the kernel starts the sums of some squares"),
        ]
