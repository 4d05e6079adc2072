"""Sums at texels that have the same bits in every run, although additions to memory come in any order.

What a window, or a sample by itself, adds to a texel is rounded to a multiple of a unit. Such integers of 64 bits have
the same sum in any order. A second kernel turns the sums into numbers. The unit follows from the largest value and from
a bound of what all samples add to one texel.
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

# A sum is less than 2^61. It starts at 2^61, the bits of these two float32, so that the two bits above it stay free.
SUM_BITS, START = 61, (0.0, 2.0**-63)
# How much larger the sums of windows, which are rounded to float32, may be at most.
ROUNDINGS = 1.001
# In the second kernel: the numbers of a thread, and the threads of a block.
STEPS, THREADS = 8, 256


def unit_of(plan: AdjointPlan, values: jax.Array, operands: Sequence[jax.Array]) -> jax.Array:
    """The unit of the sums of values, (1,): the exponent of a power of two."""
    spec = plan.spec
    weighted = any(axis.role is Role.WEIGHT for axis in spec.axes)
    largest = largest_product(values, spec.factors(spec.coords(operands)) if weighted else ())
    terms = math.prod(plan.shape) // math.prod(plan.textures) * spec.num_taps
    exponent = math.frexp(terms * weight_bound(spec.axes) * ROUNDINGS)[1]
    return (jnp.frexp(largest)[1] + np.int32(exponent - SUM_BITS)).reshape(1)


def start_of_sums(count: int, channels: int) -> jax.Array:
    """The sums of as many texels, before anything is added: two float32 hold the bits of an integer."""
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
