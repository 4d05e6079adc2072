"""Sums at texels that have the same bits in every run, although additions to memory come in any order.

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
from ..build.arrays import ArrayRole, KernelArray, KernelArrays
from ..build.source import Constant, KernelSource
from ..samples.sample_source import AdjointPlan
from ..trace.emitter import DeviceFunctions

# The magnitude of a sum is less than 2^61. It starts at 2^61, so it never is negative, and two bits above it stay free.
# Two float32 have the bits of that start.
SUM_BITS, START = 61, (0.0, 2.0**-63)
# Windows round their sums to float32. The sum of rounded numbers is at most so many times the sum of exact ones.
ROUNDINGS = 1.001
# In the second kernel: the numbers of a thread, and the threads of a block.
STEPS, THREADS = 8, 256


def unit_of(plan: AdjointPlan, values: jax.Array, operands: Sequence[jax.Array]) -> jax.Array:
    """The unit of all sums, int32, (1,): the exponent of a power of two."""
    spec = plan.spec
    weighted = any(axis.role is Role.WEIGHT for axis in spec.axes)
    largest = largest_product(values, spec.factors(spec.coords(operands)) if weighted else ())
    terms = math.prod(plan.shape) // math.prod(plan.textures) * spec.num_taps
    exponent = math.frexp(terms * weight_bound(spec.axes) * ROUNDINGS)[1]
    return (jnp.frexp(largest)[1] + np.int32(exponent - SUM_BITS)).reshape(1)


def start_of_sums(count: int, channels: int) -> jax.Array:
    """The sums of `count` texels before anything is added, (count, 2 channels): two float32 have an integer's bits."""
    return jnp.broadcast_to(jnp.asarray(START, jnp.float32), (count, channels, 2)).reshape(count, 2 * channels)


def joined(sums: jax.Array, unit: jax.Array, count: int) -> jax.Array:
    """The sums of `count` texels as numbers, from the copies of sums that blocks have added to."""
    result = jax.ShapeDtypeStruct((count, sums.shape[-1] // 2), jnp.float32)
    given = [KernelArray(ArrayRole.TOTALS, sums), KernelArray(ArrayRole.UNIT, unit)]
    arrays = KernelArrays(given, [KernelArray(ArrayRole.RESULT, result)])
    return JoinSource(arrays).run("texture_sums")[ArrayRole.RESULT, 0]


class JoinSource(KernelSource):
    """The source of the kernel that turns sums of integers into numbers."""

    file, room, made_by = "scatter/join.cu", "join", "exact_sums.py"

    def __init__(self, arrays: KernelArrays):
        super().__init__()
        self.arrays = arrays

    @property
    def count(self) -> int:
        """The numbers."""
        return math.prod(self.arrays[ArrayRole.RESULT].shape)

    @property
    def num_blocks(self) -> int:
        return -(-self.count // (THREADS * STEPS))

    @property
    def num_threads(self) -> int:
        return THREADS

    def constants(self) -> list[Constant]:
        copies = self.arrays[ArrayRole.TOTALS].shape[0] // self.arrays[ArrayRole.RESULT].shape[0]
        return [
            Constant("steps", STEPS, "the numbers of a thread"),
            Constant("count", self.count, "of numbers"),
            Constant("copies", copies, "of all sums, to which blocks have added in turn"),
        ]

    def traced(self, functions: DeviceFunctions) -> list[str]:
        return []
