"""The kernels of the adjoint: the cotangents of texels and operands from one read of taps, texels and cotangent."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..compute.operators import counting_spec, units_of
from ..compute.reproducible_sum import TexelSums
from ..describe.axis import stored_part
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import WHOLE, Halo, Sliced, Storage, WithHalo, whole_array
from ..walk.texel_walk import texels_shape
from .build.launch import THIS_GPU, Kernel, Launcher
from .gather.gather_source import GatherSource, Rows, ViewSource, is_gathered
from .samples.operands import named_operands
from .samples.sample_source import AdjointPlan, expanded
from .samples.sample_tiles import samples_shape
from .scatter.crowds import has_own_tile, num_copies, window_tiles
from .scatter.operand_results import OperandResults
from .scatter.window_source import WindowSource


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
        more: Mapping[str, jax.Array] | None = None,
    ) -> list[Any]:
        """The sums at each texel, if there are `sums`, and the cotangents of operands.

        Args:
            more: "start", the sums to add to, in place of zero; and "views" of images, of which some are there already.
        """
        plan, results = self.plan, dict[str, Any]()
        arrays: dict[str, Any] = {"values": cotangent} | dict(more or {})
        samples = window_tiles(plan, cotangent.shape[-1], adds=sums is not None, remaining="views" in arrays)
        if sums is not None:
            copies = 1 if more or plan.reach is not None else num_copies(plan, sums.width)
            shape = (copies * plan.num_texels, sums.width)
            if plan.reach is not None:
                arrays["start"] = zeros_with_halo(plan, sums.width, cotangent.dtype)
            elif more or copies > 1 or not has_own_tile(plan, samples, sums.width):
                arrays.setdefault("start", jnp.zeros(shape, cotangent.dtype))
            results["totals"] = (
                arrays["start"] if plan.reach is not None else jax.ShapeDtypeStruct(shape, cotangent.dtype)
            )
            if sums.units is not None:
                arrays["units"] = jnp.stack(sums.units)
        if plan.wrt:
            arrays["texels"] = texels
        arrays |= named_operands(operands)
        cotangents = OperandResults.of(plan, samples, operands)
        source = WindowSource(cotangents, arrays, results | cotangents.results)
        found = self.launch(source, "texture_pullback" if plan.wrt else "texture_splat")
        if plan.reach is not None and sums is not None:
            of_name = (found[f"totals_{name}"] for name in WithHalo._fields)
            return [WithHalo(*of_name), *cotangents.collected(found, operands)]
        totals = [jnp.sum(found[name].reshape(-1, plan.num_texels, found[name].shape[-1]), 0) for name in results]
        return [*totals, *cotangents.collected(found, operands)]

    def views(self, operands: Sequence[jax.Array], channels: int) -> jax.Array:
        """How images lie on their textures."""
        return self.launch(ViewSource(self.plan, named_operands(operands), channels), "texture_views")["views"]

    def gather(self, cotangent: jax.Array, operands: Sequence[jax.Array]) -> jax.Array:
        """The sums at each texel, which look for their samples; windows add those of the images that are not taken."""
        plan, channels = self.plan, cotangent.shape[-1]
        views = self.views(operands, channels)
        arrays = {"values": cotangent, "views": views}
        results = {"totals": jax.ShapeDtypeStruct((plan.num_texels, channels), cotangent.dtype)}
        total = self.launch(GatherSource(plan, arrays, results, len(operands)), "texture_gather")["totals"]
        if plan.spec.deterministic:
            return total
        sums, more = TexelSums(channels, channels), {"start": total, "views": views}
        return self.of_texels().run(cotangent, None, operands, sums, more)[0]

    def gather_rows(
        self, cotangent: jax.Array, operands: Sequence[jax.Array], views: jax.Array, first: jax.Array, rows: Rows
    ) -> jax.Array:
        """The sums at rows of texels, the first of which is `first`, (1,)."""
        count, channels = rows.count * (self.plan.num_texels // self.plan.spec.axes[0].known_size), cotangent.shape[-1]
        arrays = {"values": cotangent, "views": views, "first_row_of_texels": first}
        results = {"totals": jax.ShapeDtypeStruct((count, channels), cotangent.dtype)}
        return self.launch(GatherSource(self.plan, arrays, results, len(operands), rows), "texture_gather")["totals"]

    def launch(self, source: WindowSource | GatherSource | ViewSource, name: str) -> dict[str, jax.Array]:
        kernel = Kernel(source.source(name), name, source.num_blocks, source.num_threads)
        arrays, results = expanded(source.arrays), dict(expanded(source.results))
        starts = [k for k, (name, _) in enumerate(arrays) if name.startswith("start")]
        args = [a.whole if isinstance(a, Sliced) else a for _, a in arrays]
        shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in results.values()]
        found = self.launcher.run(kernel, args, shapes, {k: n for n, k in enumerate(starts)})
        return dict(zip(results, found))


def zeros_with_halo(plan: AdjointPlan, width: int, dtype: np.dtype) -> WithHalo:
    """Zeros of the shapes of the texels, which lie in three arrays."""
    assert plan.reach is not None
    count, *rest = texels_shape(plan.spec.axes, width)
    zeros = lambda rows: jnp.zeros((rows, *rest), dtype)
    return WithHalo(zeros(count - 2 * plan.reach), zeros(plan.reach), zeros(plan.reach))
