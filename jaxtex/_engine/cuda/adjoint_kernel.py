"""The kernels of the adjoint: one pass over taps, texels and cotangent gives the cotangents of texels and operands."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..describe.axis import stored_part
from ..describe.operands import widened
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import WHOLE, HaloStorage, Sliced, Storage, WithHalo, whole_array
from ..walk.texel_order import texels_shape
from .build.arrays import ArrayRole, KernelArray, KernelArrays, operands_of
from .gather.gather_source import GatherSource, Rows, ViewSource, is_gathered
from .read.operand_sums import pull_sums, shared_alone
from .samples.sample_source import AdjointPlan, OperandResults
from .samples.sample_tiles import SampleTiles, samples_shape
from .scatter.crowds import crowd_of, has_many_taps, has_own_tile, num_copies, window_tiles
from .scatter.exact_sums import joined, largest_value, start_of_sums, started, unit_of
from .scatter.stored import collected, stored_arrays, stores_windows
from .scatter.window_source import WindowSource

# The types of the arrays that `adjoint.cu` names, but not every kernel has.
ABSENT = {
    ArrayRole.TOTALS: "float",
    ArrayRole.VIEWS: "const float",
    ArrayRole.UNIT: "const int",
    ArrayRole.WINDOWS: "float",
    ArrayRole.CROWDS: "float",
    ArrayRole.BOXES: "int",
    ArrayRole.LISTS: "int",
    ArrayRole.MARKS: "int",
    ArrayRole.TILE_SUMS: "float",
}


def adjoint(
    cotangent: jax.Array | Sliced,
    texels: jax.Array | WithHalo | None,
    *operands: jax.Array,
    spec: ReadSpec,
    wrt: Wrt,
    texel_dtype: np.dtype,
    batch: int,
    storage: Storage = WHOLE,
) -> tuple[jax.Array, ...]:
    """`linearization.pullback` over `batch` leading axes, along which an operand has the batch size or 1.

    With a halo, a sample is added only if all of its texels are stored.

    Args:
        texels: may be `None` if `wrt` names texels alone.

    Returns:
        The cotangents in the order of `wrt`. The cotangent of texels has `texel_dtype`; with a halo it is three arrays,
        as in `WithHalo`.
    """
    # The samples and the textures: both may have batch axes of size 1.
    channels, of_operands = cotangent.shape[-1], tuple(k for k in wrt if k != TEXELS)
    read_from = texels.shape[:batch] if texels is not None and of_operands else (1,) * batch
    textures = np.broadcast_shapes(read_from, *(a.shape[:batch] for a in (cotangent, *operands)))
    shape = samples_shape(read_from, [cotangent.shape[:-1], *spec.sample_shapes(operands)])
    # With a halo, a sample is added only if all of its texels are stored.
    reach = storage.reach if isinstance(storage, HaloStorage) else None
    only_within = None if reach is None else (0, stored_part(spec.axes)[0])
    plan = AdjointPlan(spec, of_operands, shape, read_from, textures, reach, only_within)
    plan = plan._replace(shared=plan.shared_of(operands))
    # Operands that all reads of a sum share: threads that have whole sums compute their cotangents.
    if alone := shared_alone(plan, channels):
        assert isinstance(texels, jax.Array)
        by_number = dict(zip(alone, pull_sums(widened(whole_array(cotangent)), texels, operands, spec, alone, batch)))
        rest = tuple(k for k in wrt if k not in by_number)
        params = {"spec": spec, "wrt": rest, "texel_dtype": texel_dtype, "batch": batch, "storage": storage}
        by_number |= dict(zip(rest, adjoint(cotangent, texels, *operands, **params) if rest else ()))
        return tuple(by_number[k] for k in wrt)
    # For operands alone, the kernel of windows adds nothing to texels.
    if TEXELS not in wrt:
        return tuple(in_windows(plan, cotangent, texels, operands, adds=False))
    # With a halo, texels may look for their samples; both halos come first.
    if reach is not None and looks_for_samples(plan, reach, operands):
        of_texels = gathered_with_halo(plan, reach, whole_array(cotangent), operands, texel_dtype)
        cotangents = in_windows(plan, cotangent, texels, operands, adds=False) if of_operands else []
        return *of_texels, *cotangents
    # On an affine grid, texels look for their samples.
    if is_gathered(spec, shape, batch, operands):
        cotangents = in_windows(plan, cotangent, texels, operands, adds=False) if of_operands else []
        total = gathered(plan, whole_array(cotangent), operands).reshape(*textures, *texels_shape(spec.axes, channels))
        return total.astype(texel_dtype), *cotangents
    # On all other grids, samples add to windows.
    cotangent = whole_array(cotangent) if spec.deterministic else cotangent
    # Of sums, texels gain from tiles that are boxes of samples, and operands from lanes that take reads of one sum.
    if plan.wrt and (has_many_taps(plan) or plan.shared):
        (total,) = in_windows(plan.of_texels(), cotangent, None, operands)
        cotangents = in_windows(plan, cotangent, texels, operands, adds=False)
    else:
        total, *cotangents = in_windows(plan, cotangent, texels, operands)
    # The sums as texels, in their dtype.
    if isinstance(total, WithHalo):
        return *(a.astype(texel_dtype) for a in total), *cotangents
    total = total.reshape(*textures, *texels_shape(spec.axes, channels))
    return total.astype(texel_dtype), *cotangents


# Windows


def in_windows(
    plan: AdjointPlan,
    cotangent: jax.Array | Sliced,
    texels: jax.Array | WithHalo | None,
    operands: Sequence[jax.Array],
    *,
    adds: bool = True,
    start: jax.Array | None = None,
    views: jax.Array | None = None,
) -> list[Any]:
    """The sums at each texel, and the cotangents of operands.

    Args:
        adds: whether there are sums at texels.
        start: the sums so far, to which samples are added in place; `None` for zeros.
        views: the views of all images, which say whether the gather kernel has added them; `None` if it has not run.
    """
    channels, unit, zero = cotangent.shape[-1], None, jnp.zeros((), jnp.float32)
    # Sums begin with a zero that depends on the cotangent, so that XLA fills them one by one.
    if adds:
        cotangent, zero = with_zero(cotangent, zero)
    given = [KernelArray(ArrayRole.VALUES, cotangent)]
    given += [] if views is None else [KernelArray(ArrayRole.VIEWS, views)]
    # How samples are divided into tiles; a reproducible adjoint may store windows instead of adding them.
    samples = window_tiles(plan, channels, adds=adds, remaining=views is not None)
    if adds and start is None and stores_windows(plan, samples):
        return in_stored_windows(plan, whole_array(cotangent), texels, operands, samples)
    # The sums: floats, or integers that are multiples of a unit.
    totals = [totals_of(plan, channels, zero, samples, start)] if adds else []
    if adds and plan.spec.deterministic:
        unit = unit_of(plan, largest_value(plan, whole_array(cotangent), operands))
        given += [KernelArray(ArrayRole.UNIT, unit)]
    # The derivatives along coordinates read texels.
    given += [] if texels is None or not plan.wrt else [KernelArray(ArrayRole.TEXELS, texels)]
    cotangents = OperandResults.of(plan, samples, operands)
    arrays = KernelArrays([*given, *operands_of(operands)], [*totals, *cotangents.results], ABSENT)
    # One kernel for all; then the copies of sums are added up, and integers become floats.
    filled = WindowSource(cotangents, arrays).run("texture_pullback" if plan.wrt else "texture_splat")
    of_texels = [filled[ArrayRole.TOTALS, 0]] if totals else []
    if unit is not None:
        of_texels = [joined(plan, of_texels[0], unit)]
    elif plan.reach is None:
        of_texels = [jnp.sum(total.reshape(-1, plan.num_texels, total.shape[-1]), 0) for total in of_texels]
    return [*of_texels, *cotangents.collected(filled, operands)]


def in_stored_windows(
    plan: AdjointPlan,
    values: jax.Array,
    texels: jax.Array | WithHalo | None,
    operands: Sequence[jax.Array],
    samples: SampleTiles,
) -> list[Any]:
    """The sums at each texel in a fixed order, and the cotangents of operands."""
    # The results are windows, and lists that say where each lies.
    channels, given = values.shape[-1], [KernelArray(ArrayRole.VALUES, values)]
    read = [] if texels is None or not plan.wrt else [KernelArray(ArrayRole.TEXELS, texels)]
    cotangents = OperandResults.of(plan, samples, operands)

    def source(cells: int, row: int) -> WindowSource:
        results = [*stored_arrays(plan, samples, cells, row), *cotangents.results]
        return WindowSource(cotangents, KernelArrays([*given, *read, *operands_of(operands)], results, ABSENT))

    # A source without room says how large a window is.
    size = source(0, 0)
    filled = source(size.window_cells, size.row).run("texture_pullback" if plan.wrt else "texture_splat")
    # The first kernel stores windows, and notes the largest value, from which the unit follows.
    windows, crowds, boxes, lists, marks = (
        KernelArray(role, filled[role, 0])
        for role in (ArrayRole.WINDOWS, ArrayRole.CROWDS, ArrayRole.BOXES, ArrayRole.LISTS, ArrayRole.MARKS)
    )
    noted: jax.Array = filled[ArrayRole.MARKS, 0]
    largest = jax.lax.bitcast_convert_type(noted[-3, 0], jnp.float32)
    unit, sums = unit_of(plan, largest), started(plan, channels, noted)
    # The second one adds what does not fit into windows, as integers.
    rest = [*given, KernelArray(ArrayRole.UNIT, unit), crowds, boxes, marks, *operands_of(operands)]
    no_cotangents = OperandResults.of(plan.of_texels(), samples, operands)
    arrays = KernelArrays(rest, [KernelArray(ArrayRole.TOTALS, sums, start=sums)], ABSENT)
    sums = WindowSource(no_cotangents, arrays).run("texture_rest")[ArrayRole.TOTALS, 0]
    of_rest = [KernelArray(ArrayRole.TOTALS, sums), KernelArray(ArrayRole.UNIT, unit)]
    # The third adds up the windows of each texel, in the order of their numbers.
    total = collected(plan, channels, size.window_cells, [windows, boxes, lists, marks, *of_rest])
    return [total, *cotangents.collected(filled, operands)]


def with_zero(cotangent: jax.Array | Sliced, zero: jax.Array) -> tuple[jax.Array | Sliced, jax.Array]:
    """A cotangent, and a zero that depends on it.

    So a program of several adjoints fills each sum with zeros when that sum begins. XLA would fill all of them first,
    or fill one and copy it.
    """
    if isinstance(cotangent, Sliced):
        whole, zero = jax.lax.optimization_barrier((cotangent.whole, zero))
        return cotangent._replace(whole=whole), zero
    return jax.lax.optimization_barrier((cotangent, zero))


def totals_of(
    plan: AdjointPlan, channels: int, zero: jax.Array, samples: SampleTiles, sums: jax.Array | None
) -> KernelArray:
    """The sums at texels as a result of the kernel, and their initial contents: `sums`, or mostly copies of `zero`."""
    if plan.reach is not None:
        count, *rest = texels_shape(plan.spec.axes, channels)
        zeros = lambda rows: jnp.broadcast_to(zero, (rows, *rest))
        start = WithHalo(zeros(count - 2 * plan.reach), zeros(plan.reach), zeros(plan.reach))
        return KernelArray(ArrayRole.TOTALS, start, start=start)
    if plan.spec.deterministic:
        start = start_of_sums(num_copies(crowd_of(plan), 2 * channels * plan.num_texels) * plan.num_texels, channels)
        return KernelArray(ArrayRole.TOTALS, start, start=start)
    copies = 1 if sums is not None else num_copies(crowd_of(plan), channels * plan.num_texels)
    shape = jax.ShapeDtypeStruct((copies * plan.num_texels, channels), jnp.float32)
    if sums is not None:
        return KernelArray(ArrayRole.TOTALS, shape, start=sums)
    # A warp that has all samples of a texture sets it to zero.
    own = copies == 1 and has_own_tile(plan, samples, channels)
    return KernelArray(ArrayRole.TOTALS, shape, start=None if own else jnp.broadcast_to(zero, shape.shape))


# The gather kernel


def gathered(plan: AdjointPlan, cotangent: jax.Array, operands: Sequence[jax.Array]) -> jax.Array:
    """The sums at each texel, by the gather kernel; windows add the images that it does not take."""
    views = views_of(plan, operands, cotangent.shape[-1])
    total = found_by_texels(plan, cotangent, operands, views)
    return total if plan.spec.deterministic else with_remaining(plan, cotangent, operands, total, views)


def views_of(plan: AdjointPlan, operands: Sequence[jax.Array], channels: int) -> jax.Array:
    """The view of each image of samples: its placement on its texture."""
    return ViewSource(plan, operands, channels).run("texture_views")[ArrayRole.VIEWS, 0]


def found_by_texels(
    plan: AdjointPlan,
    cotangent: jax.Array,
    operands: Sequence[jax.Array],
    views: jax.Array,
    rows: Rows | None = None,
    first: jax.Array | None = None,
) -> jax.Array:
    """The sums at texels, by the gather kernel.

    Args:
        rows: the rows of the texture to compute; `None` for all.
        first: the first of these rows, int32, (1,).
    """
    given = [KernelArray(ArrayRole.VALUES, cotangent), KernelArray(ArrayRole.VIEWS, views)]
    given += [] if first is None else [KernelArray(ArrayRole.FIRST_ROW, first)]
    count = plan.num_texels if rows is None else rows.num_rows * (plan.num_texels // plan.spec.axes[0].known_size)
    totals = jax.ShapeDtypeStruct((count, cotangent.shape[-1]), jnp.float32)
    arrays = KernelArrays(given, [KernelArray(ArrayRole.TOTALS, totals)], {ArrayRole.FIRST_ROW: "const int"})
    return GatherSource(plan, arrays, len(operands), rows).run("texture_gather")[ArrayRole.TOTALS, 0]


def with_remaining(
    plan: AdjointPlan, cotangent: jax.Array, operands: Sequence[jax.Array], total: jax.Array, views: jax.Array
) -> jax.Array:
    """Sums at texels, plus the samples of images that the gather kernel has not added, by windows."""
    return in_windows(plan.of_texels(), cotangent, None, operands, start=total, views=views)[0]


# With a halo


def looks_for_samples(plan: AdjointPlan, reach: int, operands: Sequence[jax.Array]) -> bool:
    """Whether the gather kernel can compute own texels and both halos."""
    if operands[0].size > 1 or plan.spec.deterministic:
        return False
    own = stored_part(plan.spec.axes)[0] - 2 * reach
    return reach <= own and is_gathered(whole_spec(plan.spec), plan.shape, 0, operands[1:])


def whole_spec(spec: ReadSpec) -> ReadSpec:
    """The spec of a read of the whole texture; it does not take the first operand, the start of the stored part."""
    return spec.replace(axes=tuple(axis._replace(stored=None) for axis in spec.axes))


def gathered_with_halo(
    plan: AdjointPlan, reach: int, values: jax.Array, operands: Sequence[jax.Array], dtype: np.dtype
) -> tuple[jax.Array, ...]:
    """The sums at own texels, at the halo before them, and at the halo after them. Both halos are computed first."""
    # The search is that of the whole texture: the images of samples lie on all of its rows.
    spec, (start, *rest), channels = plan.spec, operands, values.shape[-1]
    stored, period = stored_part(spec.axes)
    own, whole = stored - 2 * reach, AdjointPlan(whole_spec(spec), (), plan.shape, (), ())
    views = views_of(whole, rest, channels)

    def of_part(values: jax.Array, first: int, count: int) -> jax.Array:
        """The sums at `count` stored texels from number `first` on."""
        place = jnp.mod(start + first, period)
        # Far enough from both ends of the stored part, all texels of a sample are stored, and no check is needed.
        inside = min(first, stored - first - count) >= max(axis.kernel.num_taps for axis in spec.axes)
        only_within = None if inside else (-first, stored)
        rows = Rows(count, period, only_within)
        total = found_by_texels(whole, values, rest, views, rows, place.reshape(1))
        axes = tuple(a if a.stored is None else a._replace(stored=a.stored._replace(count=count)) for a in spec.axes)
        part = whole._replace(spec=dataclasses.replace(spec, axes=axes), only_within=only_within)
        total = with_remaining(part, values, [place, *rest], total, views)
        return total.reshape(texels_shape(axes, channels)).astype(dtype)

    # The halos are sent while the own texels are computed, so they must come first.
    before, after = of_part(values, 0, reach), of_part(values, reach + own, reach)
    values, before, after = jax.lax.optimization_barrier((values, before, after))
    return of_part(values, reach, own), before, after
