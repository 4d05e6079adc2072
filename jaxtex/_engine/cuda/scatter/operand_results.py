"""How the cotangents of operands leave a kernel of the adjoint: one for each sample, or a sum for each tile."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...compute.linearization import summed_to
from ...describe.storage import Shaped
from ..build.arrays import ArrayRole, Filled, KernelArray
from ..samples.operands import stacked_shape
from ..samples.sample_source import AdjointPlan
from ..samples.sample_tiles import SampleTiles


class OperandResults(NamedTuple):
    """What a kernel writes of the cotangents of the operands in `AdjointPlan.wrt`.

    Attributes:
        stored: the operands that have one cotangent for each sample.
        summed: those that have one number for all samples of an image, as a matrix has.
    """

    plan: AdjointPlan
    samples: SampleTiles
    stored: tuple[int, ...]
    summed: tuple[int, ...]

    @classmethod
    def of(cls, plan: AdjointPlan, samples: SampleTiles, operands: Sequence[Shaped]) -> "OperandResults":
        axes, single = samples.image_axes, [k for k in plan.wrt if plan.spec.stack_of(k) is None]
        tiled = lambda a: a.shape[len(a.shape) - axes :] if axes else (*a.shape, *plan.textures)
        summed = tuple(k for k in single if math.prod(tiled(operands[k])) == 1)
        return cls(plan, samples, tuple(k for k in plan.wrt if k not in summed), summed)

    @property
    def numbers(self) -> list[range]:
        """Which arguments of the grid each operand in `AdjointPlan.wrt` holds."""
        return [self.plan.spec.numbers_of(k) for k in self.plan.wrt]

    @property
    def results(self) -> list[KernelArray]:
        """The arrays that a kernel writes."""
        dtype, samples = self.plan.spec.dtype, self.plan.shape
        stacks = {k: self.plan.spec.stack_of(k) for k in self.stored}
        shapes = {k: samples if s is None else stacked_shape(s, samples) for k, s in stacks.items()}
        found = {k: jax.ShapeDtypeStruct(shape, dtype) for k, shape in shapes.items()}
        results = [KernelArray(ArrayRole.COTANGENT, array, k) for k, array in found.items()]
        if self.summed:
            sums = jax.ShapeDtypeStruct((self.samples.total, len(self.summed)), dtype)
            results.append(KernelArray(ArrayRole.TILE_SUMS, sums))
        return results

    def collected(self, found: Filled, operands: Sequence[Shaped]) -> list[jax.Array]:
        """The cotangents of the operands in the order of `wrt`, in their shapes, over all batch axes."""
        rank, shape, batch = self.samples.image_axes, self.plan.shape, len(self.plan.textures)
        cotangents = {k: found[ArrayRole.COTANGENT, k] for k in self.stored}
        if self.summed:
            images = self.samples.images if rank else (1,) * len(shape)
            sums = jnp.sum(found[ArrayRole.TILE_SUMS, 0].reshape(math.prod(images), -1, len(self.summed)), 1)
            for n, k in enumerate(self.summed):
                cotangents[k] = sums[:, n].reshape(*images, *[1] * rank)

        def of_operand(x: jax.Array, a: Shaped) -> jax.Array:
            return summed_to(x, (*x.shape[:batch], *a.shape[batch:])).astype(a.dtype)

        return [of_operand(cotangents[k], operands[k]) for k in self.plan.wrt]
