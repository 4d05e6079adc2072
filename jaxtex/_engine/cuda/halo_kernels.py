"""The kernels of a texture that lies in three arrays: a device's own texels, and the halo that neighbors sent."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from ..compute.decoding import LoadTexel
from ..compute.operators import value as value_at
from ..compute.texel_sums import TexelSums
from ..describe.axis import stored_part
from ..describe.operands import Coords
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import Halo, Sliced, WithHalo, slice_of
from ..walk.texel_walk import other_part, taps_are_available, texels_shape
from . import adjoint_kernel
from .adjoint_kernel import Kernels, Remaining
from .build.launch import THIS_GPU, Launcher
from .gather.gather_source import Rows, is_gathered
from .read.read_kernel import read_each_sample, value_of
from .samples.sample_source import AdjointPlan
from .samples.sample_tiles import samples_shape


def read(
    texels: WithHalo,
    *operands: jax.Array,
    spec: ReadSpec,
    batch: int,
    storage: Halo,
    launcher: Launcher = THIS_GPU,
) -> jax.Array:
    """The read in two steps: of all samples in `own`, which needs nothing of neighbors; then of tiles at the edges."""
    axes, own, missing = spec.axes, texels.own, storage.missing(spec.dtype)
    part = storage.reach, own.shape[0]

    def marked(load_texel: LoadTexel, coords: Coords, color: jax.Array | None) -> jax.Array:
        found = value_at(load_texel, coords, spec, color)
        return jnp.where(taps_are_available(coords, axes)[..., None], found, missing)

    # The first kernel needs no masks, as it may read any texel for the samples that the second one reads again.
    (start,), own_axes = other_part(operands[:1], axes, *part)
    as_window = lambda axis: axis._replace(stored=axis.stored and axis.stored._replace(is_window=True))
    inner = spec.replace(axes=tuple(map(as_window, own_axes)))
    at_edges = lambda *coords: ~taps_are_available(coords, own_axes)
    read = value_of(inner), own, None, [start, *operands[1:]], inner, batch, "texture_read", launcher
    filled, notes = read_each_sample(*read, notes=at_edges)
    into = Sliced(filled, slice_of(filled))
    read = marked, texels, None, operands, spec, batch, "texture_read_edges", launcher
    return read_each_sample(*read, into=into, noted=notes)


def splat(
    values: jax.Array,
    *operands: jax.Array,
    spec: ReadSpec,
    batch: int,
    storage: Halo,
    launcher: Launcher = THIS_GPU,
) -> tuple[jax.Array, ...]:
    """The sums at own texels, at those before, and at those after."""
    if looks_for_samples(spec, values, operands, storage.reach):
        return gathered(values, operands, spec, storage.reach, launcher)
    return adjoint_kernel.splat(values, *operands, spec=spec, batch=batch, storage=storage, launcher=launcher)


def pullback(
    cotangent: jax.Array,
    texels: WithHalo,
    *operands: jax.Array,
    spec: ReadSpec,
    wrt: Wrt,
    batch: int,
    storage: Halo,
    launcher: Launcher = THIS_GPU,
) -> tuple[jax.Array, ...]:
    """The cotangents of the three arrays, if texels are in `wrt`, and of operands."""

    def pull(wrt: Wrt) -> tuple[jax.Array, ...]:
        params = {"spec": spec, "wrt": wrt, "batch": batch, "storage": storage}
        return adjoint_kernel.pullback(cotangent, texels, *operands, **params, launcher=launcher)

    if TEXELS not in wrt or not looks_for_samples(spec, cotangent, operands, storage.reach):
        return pull(wrt)
    of_texels = gathered(cotangent, operands, spec.adjoint(texels.dtype), storage.reach, launcher)
    rest = tuple(k for k in wrt if k != TEXELS)
    return (*of_texels, *pull(rest)) if rest else of_texels


# Texels that look for their samples


def looks_for_samples(spec: ReadSpec, values: jax.Array, operands: Sequence[jax.Array], reach: int) -> bool:
    """Whether all texels of the three arrays find their samples, and none of the arrays goes around the axis."""
    if operands[0].size > 1 or spec.deterministic:
        return False
    own = stored_part(spec.axes)[0] - 2 * reach
    whole, shape = whole_spec(spec), samples_shape((), [values.shape[:-1], *spec.sample_shapes(operands)])
    return reach <= own and is_gathered(whole, shape, 0, operands[1:])


def whole_spec(spec: ReadSpec) -> ReadSpec:
    """The spec of the same read of the whole texture, whose operands are those after the first."""
    return spec.replace(axes=tuple(axis._replace(stored=None) for axis in spec.axes))


def gathered(
    values: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, reach: int, launcher: Launcher
) -> tuple[jax.Array, ...]:
    """The sums at own texels, at those before, and at those after. These two are ready before the first is begun."""
    (stored, period), (start, *rest) = stored_part(spec.axes), operands
    channels, own = values.shape[-1], stored - 2 * reach
    shape = samples_shape((), [values.shape[:-1], *spec.sample_shapes(operands)])
    views = Kernels(AdjointPlan(whole_spec(spec), (), shape, (), ()), launcher).views(rest, channels)

    def of_part(values: jax.Array, first: int, count: int) -> jax.Array:
        """The sums at `count` texels, the first of which is number `first` of those that are stored."""
        some = jnp.mod(start + first, period)
        # All texels of a sample that falls on one of these are stored, unless it may lie beyond an end.
        inside = min(first, stored - first - count) >= max(axis.kernel.num_taps for axis in spec.axes)
        only_within = None if inside else (-first, stored)
        axes = tuple(a if a.stored is None else a._replace(stored=a.stored._replace(count=count)) for a in spec.axes)
        plan = AdjointPlan(dataclasses.replace(spec, axes=axes), (), shape, (), (), only_within=only_within)
        total = Kernels(plan._replace(spec=whole_spec(spec)), launcher).gather_rows(
            values, rest, views, some.reshape(1), Rows(count, period, only_within)
        )
        # Windows add the samples, if texels cannot look for them.
        sums, remaining = TexelSums(channels, channels), Remaining(total, views)
        total = Kernels(plan, launcher).run(values, None, [some, *rest], sums, remaining)[0]
        return total.reshape(texels_shape(axes, channels)).astype(spec.dtype)

    before, after = of_part(values, 0, reach), of_part(values, reach + own, reach)
    values, before, after = jax.lax.optimization_barrier((values, before, after))
    return of_part(values, reach, own), before, after
