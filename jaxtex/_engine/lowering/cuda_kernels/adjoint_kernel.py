"""The kernel of the adjoint: texel and coordinate gradients from one read of taps, texels and cotangent."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...operators import counting_spec, units_of
from ...reproducible_sum import TexelSums
from ...spec import TEXELS, ReadSpec, Wrt
from ...texel_walk import flat_sizes, texels_shape
from ..cuda_c import THIS_GPU, Kernel, Launcher
from .gather_source import GatherSource, is_gathered, views
from .sample_tiles import samples_shape
from .window_source import WindowSource


def splat(
    values: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int, launcher: Launcher = THIS_GPU
) -> jax.Array:
    """`operators.splat` over `batch` leading axes, on which an operand has their size or 1."""
    adjoint_spec = spec.adjoint(values.dtype)
    return adjoint(values, None, operands, adjoint_spec, (TEXELS,), spec.dtype, batch, launcher)[0]


def pullback(
    cotangent: jax.Array,
    texels: jax.Array,
    *operands: jax.Array,
    spec: ReadSpec,
    wrt: Wrt,
    batch: int,
    launcher: Launcher = THIS_GPU,
) -> tuple[jax.Array, ...]:
    """`operators.pullback` over `batch` leading axes, on which an operand has their size or 1."""
    return adjoint(cotangent, texels, operands, spec, wrt, texels.dtype, batch, launcher)


def adjoint(
    cotangent: jax.Array,
    texels: Any,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    wrt: Wrt,
    texel_dtype: np.dtype,
    batch: int,
    launcher: Launcher,
) -> tuple[jax.Array, ...]:
    """The cotangents of texels, of `texel_dtype`, and of coordinates, in the order of `wrt`."""
    channels, coordinate_axes = cotangent.shape[-1], tuple(k for k in wrt if k != TEXELS)
    read_from = texels.shape[:batch] if coordinate_axes else (1,) * batch
    textures = np.broadcast_shapes(read_from, *(a.shape[:batch] for a in (cotangent, *operands)))
    shape = samples_shape(read_from, [jax.eval_shape(lambda g: g[..., 0], cotangent), *operands])
    plan = AdjointPlan(spec, coordinate_axes, shape, read_from, textures, launcher)
    if TEXELS not in wrt:
        return tuple(plan.run(cotangent, texels, operands, None))
    if is_gathered(spec, shape, batch, operands):
        of_coords = plan.run(cotangent, texels, operands, None) if coordinate_axes else []
        total = plan.gather(cotangent, operands).reshape(*textures, *texels_shape(spec.axes, channels))
        return total.astype(texel_dtype), *of_coords
    units = None
    if spec.deterministic:
        ones = jnp.ones((*[1] * len(shape), 1), jnp.float32)
        counting = lambda axes: plan._replace(spec=counting_spec(axes, spec.grid), coordinate_axes=())
        units = units_of(
            cotangent, spec.axes, lambda axes: counting(axes).run(ones, None, operands, TexelSums(1, 1))[0]
        )
    sums = TexelSums(channels, channels, units)
    total, *of_coords = plan.run(cotangent, texels, operands, sums)
    total = sums.joined(total).reshape(*textures, *texels_shape(spec.axes, channels))
    return total.astype(texel_dtype), *of_coords


class AdjointPlan(NamedTuple):
    """The static side of a launch.

    Attributes:
        coordinate_axes: the axes whose coordinates have a cotangent.
        shape: of the samples, batch axes first.
        read_from, textures: the batch axes of the textures that are read, and of those that are added to.
    """

    spec: ReadSpec
    coordinate_axes: tuple[int, ...]
    shape: tuple[int, ...]
    read_from: tuple[int, ...]
    textures: tuple[int, ...]
    launcher: Launcher

    def run(
        self,
        cotangent: jax.Array,
        texels: Any,
        operands: Sequence[jax.Array],
        sums: TexelSums | None,
        more: Mapping[str, jax.Array] | None = None,
    ) -> list[jax.Array]:
        """The sums at each texel, if there are `sums`, and the cotangents of coordinates.

        Args:
            more: "start", the sums to add to, in place of zero; and "views" of images, of which some are there already.
        """
        arrays, results = {"values": cotangent} | dict(more or {}), {}
        if sums is not None:
            shape = (math.prod(self.textures) * flat_sizes(self.spec.axes)[0], sums.width)
            arrays.setdefault("start", jnp.zeros(shape, cotangent.dtype))
            results["totals"] = jax.ShapeDtypeStruct(shape, cotangent.dtype)
            if sums.units is not None:
                arrays["units"] = jnp.stack(sums.units)
        if self.coordinate_axes:
            arrays["texels"] = texels
        arrays |= named_operands(operands)
        results |= {f"slope_{k}": jax.ShapeDtypeStruct(self.shape, self.spec.dtype) for k in self.coordinate_axes}
        static = self.spec, self.coordinate_axes, self.shape, self.read_from, self.textures
        source = WindowSource(*static, arrays, results)
        return self.launch(source, "texture_pullback" if self.coordinate_axes else "texture_splat", arrays, results)

    def gather(self, cotangent: jax.Array, operands: Sequence[jax.Array]) -> jax.Array:
        """The sums at each texel, which look for their samples; windows add those of the images that are not taken."""
        channels = cotangent.shape[-1]
        arrays = {"values": cotangent, "views": views(self.spec, self.shape, operands)} | named_operands(operands)
        shape = (math.prod(self.textures) * flat_sizes(self.spec.axes)[0], channels)
        results = {"totals": jax.ShapeDtypeStruct(shape, cotangent.dtype)}
        source = GatherSource(self.spec, self.shape, self.read_from, self.textures, arrays, results)
        (total,) = self.launch(source, "texture_gather", arrays, results)
        if self.spec.deterministic:
            return total
        rest, more = self._replace(coordinate_axes=()), {"start": total, "views": arrays["views"]}
        return rest.run(cotangent, None, operands, TexelSums(channels, channels), more)[0]

    def launch(
        self, source: WindowSource | GatherSource, name: str, arrays: dict[str, Any], results: dict[str, Any]
    ) -> list[jax.Array]:
        kernel = Kernel(source.source(name), name, source.num_blocks, source.num_threads)
        aliases = {list(arrays).index("start"): 0} if "start" in arrays else {}
        return list(self.launcher.run(kernel, list(arrays.values()), list(results.values()), aliases))


def named_operands(operands: Sequence[jax.Array]) -> dict[str, jax.Array]:
    return {f"operand_{k}": a for k, a in enumerate(operands)}
