"""The kernels of the adjoint: the cotangents of texels and operands from one read of taps, texels and cotangent."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..compute.operators import counting_spec
from ..compute.texel_sums import TexelSums, units_of
from ..describe.axis import stored_part
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import WHOLE, Halo, Sliced, Storage, WithHalo, whole_array
from ..walk.texel_walk import texels_shape
from .build.arrays import ArrayRole, KernelArray, KernelArrays, operands_of
from .build.launch import THIS_GPU, Launcher
from .gather.gather_source import GatherSource, Rows, ViewSource, is_gathered
from .samples.sample_source import AdjointPlan, SampleSource
from .samples.sample_tiles import SampleTiles, samples_shape
from .scatter.crowds import has_own_tile, num_copies, window_tiles
from .scatter.operand_results import OperandResults
from .scatter.window_source import WindowSource

# The types of arrays that `adjoint.cu` names, and that it may do without.
ABSENT = {
    ArrayRole.TOTALS: "float",
    ArrayRole.VIEWS: "const float",
    ArrayRole.UNITS: "const float",
    ArrayRole.TILE_SUMS: "float",
}


def splat(
    values: jax.Array | Sliced,
    *operands: jax.Array,
    spec: ReadSpec,
    batch: int,
    storage: Storage = WHOLE,
    launcher: Launcher = THIS_GPU,
) -> tuple[jax.Array, ...]:
    """`operators.splat` over `batch` leading axes, on which an operand has their size or 1."""
    adjoint_spec = spec.adjoint(values.dtype)
    return adjoint(values, None, operands, adjoint_spec, (TEXELS,), spec.dtype, batch, storage, launcher)


def pullback(
    cotangent: jax.Array | Sliced,
    texels: jax.Array | WithHalo,
    *operands: jax.Array,
    spec: ReadSpec,
    wrt: Wrt,
    batch: int,
    storage: Storage = WHOLE,
    launcher: Launcher = THIS_GPU,
) -> tuple[jax.Array, ...]:
    """`linearization.pullback` over `batch` leading axes, on which an operand has their size or 1."""
    return adjoint(cotangent, texels, operands, spec, wrt, texels.dtype, batch, storage, launcher)


def adjoint(
    cotangent: jax.Array | Sliced,
    texels: Any,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    wrt: Wrt,
    texel_dtype: np.dtype,
    batch: int,
    storage: Storage,
    launcher: Launcher,
) -> tuple[jax.Array, ...]:
    """The cotangents of texels, of `texel_dtype`, and of operands, in the order of `wrt`.

    With a halo those of the texels are three arrays, as in `WithHalo`, and samples are added all of whose texels are
    stored.
    """
    channels, of_operands = cotangent.shape[-1], tuple(k for k in wrt if k != TEXELS)
    read_from = texels.shape[:batch] if of_operands else (1,) * batch
    textures = np.broadcast_shapes(read_from, *(a.shape[:batch] for a in (cotangent, *operands)))
    shape = samples_shape(read_from, [cotangent.shape[:-1], *spec.sample_shapes(operands)])
    reach = storage.reach if isinstance(storage, Halo) else None
    only_within = None if reach is None else (0, stored_part(spec.axes)[0])
    kernels = Kernels(AdjointPlan(spec, of_operands, shape, read_from, textures, reach, only_within), launcher)
    if TEXELS not in wrt:
        return tuple(kernels.run(cotangent, texels, operands, None))
    if is_gathered(spec, shape, batch, operands):
        cotangents = kernels.run(cotangent, texels, operands, None) if of_operands else []
        total = kernels.gather(whole_array(cotangent), operands).reshape(*textures, *texels_shape(spec.axes, channels))
        return total.astype(texel_dtype), *cotangents
    units = None
    if spec.deterministic:
        cotangent = whole_array(cotangent)
        ones = jnp.ones((*[1] * len(shape), 1), jnp.float32)
        counting = lambda axes: kernels.of_texels(spec=counting_spec(axes, spec))
        count = lambda axes: counting(axes).run(ones, None, operands, TexelSums(1, 1))[0]
        units = units_of(cotangent, spec.axes, count)
    sums = TexelSums(channels, channels, units)
    total, *cotangents = kernels.run(cotangent, texels, operands, sums)
    if isinstance(total, WithHalo):
        in_three: list[Any] = [*total]
        return *(a.astype(texel_dtype) for a in in_three), *cotangents
    total = sums.joined(total).reshape(*textures, *texels_shape(spec.axes, channels))
    return total.astype(texel_dtype), *cotangents


class Remaining(NamedTuple):
    """The images that texels have not looked for.

    Attributes:
        start: the sums at texels to which these images are added.
        views: of all images, which say whether texels have looked for them.
    """

    start: jax.Array
    views: jax.Array


class Kernels(NamedTuple):
    """The kernels of an adjoint."""

    plan: AdjointPlan
    launcher: Launcher

    def of_texels(self, **changes: Any) -> "Kernels":
        """The same of the texels alone, with changes of the plan."""
        return self._replace(plan=self.plan._replace(wrt=(), **changes))

    def run(
        self,
        cotangent: jax.Array | Sliced,
        texels: Any,
        operands: Sequence[jax.Array],
        sums: TexelSums | None,
        remaining: Remaining | None = None,
    ) -> list[Any]:
        """The sums at each texel, if there are `sums`, and the cotangents of operands.

        Args:
            remaining: the images that are still to be added, if not all of them.
        """
        plan, totals = self.plan, list[KernelArray]()
        given = [KernelArray(ArrayRole.VALUES, cotangent)]
        given += [] if remaining is None else [KernelArray(ArrayRole.VIEWS, remaining.views)]
        samples = window_tiles(plan, cotangent.shape[-1], adds=sums is not None, remaining=remaining is not None)
        if sums is not None:
            totals = [self.totals(cotangent.dtype, samples, sums, remaining)]
            given += [] if sums.units is None else [KernelArray(ArrayRole.UNITS, jnp.stack(sums.units))]
        given += [KernelArray(ArrayRole.TEXELS, texels)] if plan.wrt else []
        cotangents = OperandResults.of(plan, samples, operands)
        arrays = KernelArrays([*given, *operands_of(operands)], [*totals, *cotangents.results], ABSENT)
        found = self.launch(WindowSource(cotangents, arrays), "texture_pullback" if plan.wrt else "texture_splat")
        of_texels = [found[ArrayRole.TOTALS, 0]] if totals else []
        if plan.reach is None:
            of_texels = [jnp.sum(total.reshape(-1, plan.num_texels, total.shape[-1]), 0) for total in of_texels]
        return [*of_texels, *cotangents.collected(found, operands)]

    def totals(
        self, dtype: np.dtype, samples: SampleTiles, sums: TexelSums, remaining: Remaining | None
    ) -> KernelArray:
        """The sums at texels as a result of the kernel, and what they start as."""
        plan, width = self.plan, sums.width
        if plan.reach is not None:
            zeros = zeros_with_halo(plan, width, dtype)
            return KernelArray(ArrayRole.TOTALS, zeros, start=zeros)
        copies = 1 if remaining is not None else num_copies(plan, width)
        shape = jax.ShapeDtypeStruct((copies * plan.num_texels, width), dtype)
        if remaining is not None:
            return KernelArray(ArrayRole.TOTALS, shape, start=remaining.start)
        # A warp that has all samples of a texture sets it to zero.
        own = copies == 1 and has_own_tile(plan, samples, width)
        return KernelArray(ArrayRole.TOTALS, shape, start=None if own else jnp.zeros(shape.shape, dtype))

    def views(self, operands: Sequence[jax.Array], channels: int) -> jax.Array:
        """How images lie on their textures."""
        return self.launch(ViewSource(self.plan, operands, channels), "texture_views")[ArrayRole.VIEWS, 0]

    def gather(self, cotangent: jax.Array, operands: Sequence[jax.Array]) -> jax.Array:
        """The sums at each texel, which look for their samples; windows add those of the images that are not taken."""
        plan, channels = self.plan, cotangent.shape[-1]
        views = self.views(operands, channels)
        total = self.gathered(cotangent, operands, views, plan.num_texels)
        if plan.spec.deterministic:
            return total
        sums = TexelSums(channels, channels)
        return self.of_texels().run(cotangent, None, operands, sums, Remaining(total, views))[0]

    def gather_rows(
        self, cotangent: jax.Array, operands: Sequence[jax.Array], views: jax.Array, first: jax.Array, rows: Rows
    ) -> jax.Array:
        """The sums at rows of texels, the first of which is `first`, (1,)."""
        count = rows.count * (self.plan.num_texels // self.plan.spec.axes[0].known_size)
        first_row = KernelArray(ArrayRole.FIRST_ROW, first)
        return self.gathered(cotangent, operands, views, count, rows, first_row)

    def gathered(
        self,
        cotangent: jax.Array,
        operands: Sequence[jax.Array],
        views: jax.Array,
        count: int,
        rows: Rows | None = None,
        *more: KernelArray,
    ) -> jax.Array:
        """The sums at `count` texels, which look for their samples."""
        given = KernelArray(ArrayRole.VALUES, cotangent), KernelArray(ArrayRole.VIEWS, views), *more
        totals = jax.ShapeDtypeStruct((count, cotangent.shape[-1]), cotangent.dtype)
        absent = {ArrayRole.FIRST_ROW: "const int"}
        arrays = KernelArrays(given, [KernelArray(ArrayRole.TOTALS, totals)], absent)
        source = GatherSource(self.plan, arrays, len(operands), rows)
        return self.launch(source, "texture_gather")[ArrayRole.TOTALS, 0]

    def launch(self, source: SampleSource, name: str) -> dict[tuple[ArrayRole, int], Any]:
        arrays = source.arrays
        found = self.launcher.run(source.kernel(name), arrays.arguments, arrays.shapes, arrays.aliases)
        return arrays.collected(found)


def zeros_with_halo(plan: AdjointPlan, width: int, dtype: np.dtype) -> WithHalo:
    """Zeros of the shapes of the texels, which lie in three arrays."""
    assert plan.reach is not None
    count, *rest = texels_shape(plan.spec.axes, width)
    zeros = lambda rows: jnp.zeros((rows, *rest), dtype)
    return WithHalo(zeros(count - 2 * plan.reach), zeros(plan.reach), zeros(plan.reach))
