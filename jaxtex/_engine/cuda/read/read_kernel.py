"""The kernel of a read, in either arithmetic."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...._tables.address_rules import masked
from ...compute.operators import value as value_at
from ...compute.texel_sums import power_of_two_below
from ...compute.texel_value import LoadTexel, bits_dtype, in_bits
from ...describe.axis import Role
from ...describe.folds import Fold
from ...describe.operands import Coords
from ...describe.spec import ReadSpec
from ...describe.storage import (
    WHOLE,
    ConcatenatedRead,
    HaloStorage,
    Shaped,
    Sliced,
    Storage,
    WithHalo,
    each_part,
    slice_of,
    slices_of,
)
from ...walk.known_taps import read_inside
from ...walk.texel_walk import other_part, taps_are_available
from ..build.arrays import ArrayRole, KernelArray, KernelArrays, operands_of
from ..build.launch import LANES
from ..samples.sample_tiles import Extent, ReadThreads, SampleTiles, samples_shape
from .plane_source import PlaneThreads, read_planes
from .read_source import ReadSource, ReadValue

# The threads of a block, deep, down and across, for volumes of samples and for images; and their number otherwise.
BLOCKS: dict[int, Extent] = {3: (4, 1, 32), 2: (1, 8, 16)}
THREADS = 128
# Limits of a thread: its samples, their taps, and the bytes of one tap of all of its samples. A thread takes several
# samples only if at least LEAST_THREADS threads remain.
MOST_SAMPLES, MOST_TAPS, TAP_BYTES, LEAST_THREADS = 4, 64, 16, 2**19
# The channels of a thread; texels with more channels are divided among threads, so that a warp accesses whole lines of
# memory. A thread takes WIDE channels of 16 bits, as many as one load has, so that fewer threads compute coordinates.
WIDTHS = (4, 2, 1)
WIDE = 8
# Where the last axis chooses a head or a level, tiles read some after the other, so that a cache holds more of each. A
# tile takes as many as fill a line of a cache, of so many bytes, up to MOST_COLUMNS, which fill a sector of results.
MOST_COLUMNS, LINE = 4, 128
# The notes that a kernel loads at once; arrays of notes are padded to a multiple.
NOTES_AT_ONCE = 4
# From so many reads on, a sum tells apart reads whose taps are all inside. On an H100, sums of 16 reads along rays then
# take 0.8 of the time, and those of 32 to 100 reads 0.6.
ASKS_FROM = 16


def read(
    texels: jax.Array | WithHalo, *args: jax.Array, spec: ReadSpec, batch: int, storage: Storage = WHOLE
) -> jax.Array:
    """`operators.read` over `batch` leading axes, along which an operand has the batch size or 1."""
    if isinstance(texels, WithHalo):
        assert isinstance(storage, HaloStorage)
        return read_with_halo(texels, args, spec, batch, storage)
    stored = texels.dtype
    if spec.returns_texels(stored) and jnp.issubdtype(stored, jnp.floating) and stored.itemsize == 2:
        # A conversion to float32 would change the bits of NaN.
        as_integers = spec.with_dtype(bits_dtype(stored))
        return in_bits(lambda bits: read(bits, *args, spec=as_integers, batch=batch), texels)
    color, operands = spec.color_and_operands(args)
    if threads := PlaneThreads.of(texels, operands, spec, batch):
        return read_planes(value_of(spec), texels, operands, spec, batch, threads)
    name = "texture_read" if color is None else "texture_bordered_read"
    return read_each_sample(value_of(spec), texels, color, operands, spec, batch, name)


def read_derivatives(texels: jax.Array, *args: jax.Array, spec: ReadSpec, batch: int) -> list[jax.Array]:
    """`operators.derivatives` over `batch` leading axes: one kernel loads every tap once."""
    color, operands = spec.color_and_operands(args)
    return read_each_sample(value_of(spec), texels, color, operands, spec, batch, "texture_read_derivatives")


def fold(texels: jax.Array, *args: jax.Array, spec: ReadSpec, fold: Fold, batch: int) -> jax.Array:
    """`rules.folds.meaning`: each thread folds the reads of a sample, and ends early where the state is final."""
    color, operands = spec.color_and_operands(args)
    return read_each_sample(value_of(spec), texels, color, operands, spec, batch, "texture_fold", fold=fold)


def read_with_halo(
    texels: WithHalo, operands: Sequence[jax.Array], spec: ReadSpec, batch: int, storage: HaloStorage
) -> jax.Array:
    """The read in two steps: all samples in `own`, which need not wait for the halo; then the tiles that need it."""
    axes, own, missing = spec.axes, texels.own, storage.missing(spec.dtype)

    # The second kernel marks samples that need texels which no neighbor has sent.
    def marked(load_texel: LoadTexel, coords: Coords, color: jax.Array | None) -> jax.Array:
        values = value_at(load_texel, coords, spec, color, for_channels=None)
        return jnp.where(taps_are_available(coords, axes)[..., None], values, missing)

    # The first kernel needs no masks: it may read any texel for a sample that the second one reads again.
    (start,), own_axes = other_part(operands[:1], axes, storage.reach, own.shape[0])
    windows = (axis._replace(stored=axis.stored and axis.stored._replace(is_window=True)) for axis in own_axes)
    inner = spec.replace(axes=tuple(windows))
    # It notes the tiles that the second one reads.
    at_edges = lambda coords: ~taps_are_available(coords, own_axes)
    given = value_of(inner), own, None, [start, *operands[1:]], inner, batch, "texture_read"
    filled, notes = read_each_sample(*given, notes=at_edges)
    # The second kernel fills in the samples of these tiles.
    into = Sliced(filled, slice_of(filled))
    return read_each_sample(marked, texels, None, operands, spec, batch, "texture_read_edges", into=into, noted=notes)


def concatenated_read(*args: jax.Array, parts: Sequence[ConcatenatedRead], row_axes: int) -> jax.Array:
    """Several reads that fill slices of one array; see `rules.concatenated`."""
    # Each read has its slice of the rows of the result.
    reads = [(part, texels, operands) for part, _, texels, operands in each_part(parts, args)]
    shapes = [result_shape(t, operands, part.spec, t.shape[: part.batch]) for part, t, operands in reads]
    slices = slices_of(shapes, row_axes)
    whole: Any = jax.ShapeDtypeStruct((math.prod(shapes[0][:row_axes]), slices[0].row), parts[0].spec.dtype)
    # The kernels run one after the other, each into what the earlier ones have filled.
    for (part, texels, operands), place in zip(reads, slices):
        given = value_of(part.spec), texels, None, operands, part.spec, part.batch, "texture_read"
        whole = read_each_sample(*given, into=Sliced(whole, place))
    return whole


def result_shape(
    texels: Shaped, operands: Sequence[Shaped], spec: ReadSpec, batches: tuple[int, ...]
) -> tuple[int, ...]:
    """The shape of the result of a read whose textures and colors have the batch axes `batches`."""
    shape = samples_shape(batches, spec.sample_shapes(operands))
    along = [len(shape) + axis for axis in spec.summed_axes]
    return *(1 if k in along else n for k, n in enumerate(shape)), texels.shape[-1]


def value_of(spec: ReadSpec) -> ReadValue:
    """The `ReadValue` of float arithmetic. Instructions bound the speed of sums, so they do not move taps outside."""
    if spec.summed_axes and not spec.has_color:
        rules = (a.address._replace(apply=masked) if a.address.drops_outside else a.address for a in spec.axes)
        spec = spec.replace(axes=tuple(a._replace(address=rule) for a, rule in zip(spec.axes, rules)))
    return lambda load_texel, coords, color: value_at(load_texel, coords, spec, color, for_channels=None)


def value_inside(spec: ReadSpec, summed: Sequence[int]) -> ReadValue | None:
    """The `ReadValue` of samples whose taps are all inside; `None` where a sum does not tell them apart."""
    inside = read_inside(spec) if summed and summed[-1] >= ASKS_FROM else None
    return None if inside is None else value_of(inside)


def read_each_sample(
    value: ReadValue,
    texels: jax.Array | WithHalo,
    color: jax.Array | None,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    batch: int,
    name: str,
    *,
    exact: bool = False,
    into: Sliced | None = None,
    notes: Callable[[Coords], jax.Array] | None = None,
    noted: jax.Array | None = None,
    fold: Fold | None = None,
) -> Any:
    """`value` of each sample, of `spec.dtype`; a list for each of several derivatives.

    Args:
        color: the border color for `value`, batch + (C,).
        exact: whether products and sums in the computation of coordinates are rounded separately. The compiler may
            still fuse those of `value`, so its result must not depend on that.
        into: the slice of a larger array that the result fills; then the result is that array, as filled so far.
        notes: ``notes(coords)`` says whether a second kernel must read the sample again. Then the result is a pair: the
            values, and for each tile whether it holds such samples, uint8. Not for sums and means of reads.
        noted: the notes of an earlier kernel; only the samples of noted tiles are read.
        fold: what the reads along `spec.summed_axes` become, if not their sum.
    """
    # The channels of a thread: as many as one load takes, or all if a fold mixes them.
    textures, channels = texels.shape[:batch], texels.shape[-1]
    width = width_of_part(channels)
    if not exact and channels % WIDE == 0 and max(texels.dtype.itemsize, np.dtype(spec.dtype).itemsize) == 2:
        width = WIDE
    width = channels if fold is not None and fold.joint else width
    parts, aligned = -(-channels // width), channels % width == 0 and width in (*WIDTHS, WIDE)
    # The samples: those that are kept, each of a thread or several, and those that are summed.
    batches = textures if color is None else np.broadcast_shapes(textures, color.shape[:batch])
    shape = samples_shape(batches, spec.sample_shapes(operands))
    along = tuple(sorted(len(shape) + axis for axis in spec.summed_axes))
    kept, summed = (tuple(n for k, n in enumerate(shape) if (k in along) == sums) for sums in (False, True))
    steps = steps_of(spec, width, texels.dtype, math.prod(shape) * parts, exact)
    volumes = sum(axis.role is Role.SPACE and not axis.integer for axis in spec.axes) >= 3
    columns = 0
    if chooses_by_last(spec, operands, along):
        columns = power_of_two_below(max(1, min(MOST_COLUMNS, LINE // (channels * texels.dtype.itemsize))))
    # Samples of a thread that lie below each other share rows of texels. Small texels of images gain more in a row.
    below = volumes or (width >= 3 and texels.dtype.itemsize != 2)
    of_thread = (1, steps, 1) if below or columns else (1, 1, steps)
    tiles = tiles_of_block(kept, batch, volumes, parts, of_thread, columns)
    # The results: one array for each derivative, or a slice of a larger array.
    *samples, last = result_shape(texels, operands, spec, batches)
    own = jax.ShapeDtypeStruct((*samples, last if fold is None else fold.width(last)), np.dtype(spec.dtype))
    result = KernelArray(ArrayRole.RESULT, own) if into is None else KernelArray(ArrayRole.RESULT, into.whole)
    if into is not None and isinstance(into.whole, jax.Array):
        result = result._replace(start=into.whole)
    given, results = [KernelArray(ArrayRole.TEXELS, texels)], [result]
    several = len(spec.derivatives) if fold is None else 0
    results += [KernelArray(ArrayRole.DERIVATIVE, own, k) for k in range(1, several)]
    given += [] if color is None else [KernelArray(ArrayRole.COLOR, color)]
    given += operands_of(operands)
    given += [] if noted is None else [KernelArray(ArrayRole.NOTED, noted)]
    if notes is not None:
        none = jnp.zeros(-(-tiles.total // NOTES_AT_ONCE) * NOTES_AT_ONCE, jnp.uint8)
        results.append(KernelArray(ArrayRole.NOTES, none, start=none))
    arrays = KernelArrays(given, results, {ArrayRole.NOTED: "const uint8", ArrayRole.NOTES: "uint8"})
    in_lines = takes_lines(texels, operands, spec, tiles) and not exact and notes is None and noted is None
    threads = ReadThreads(tiles, parts, width, aligned, summed, along, in_lines)
    inside = None if exact else value_inside(spec, summed)
    source = ReadSource(value, spec, batch, threads, arrays, slice_of(into or own), exact, notes, fold, inside)
    filled = source.run(name)
    values = filled[ArrayRole.RESULT, 0]
    if several:
        return [values, *(filled[ArrayRole.DERIVATIVE, k] for k in range(1, several))]
    return values if notes is None else (values, filled[ArrayRole.NOTES, 0])


def width_of_part(channels: int) -> int:
    """The number of channels of a thread: the widest vector load that divides `channels`; if odd, at most four."""
    return min(channels, WIDTHS[0]) if channels % 2 else next(width for width in WIDTHS if channels % width == 0)


def steps_of(spec: ReadSpec, width: int, dtype: np.dtype, threads: int, exact: bool) -> int:
    """The number of samples of a thread, if `threads` threads would take one sample each.

    Several samples share common computations, as in a row of an image, and their loads overlap.
    """
    taps = math.prod(axis.kernel.num_taps for axis in spec.axes if not axis.integer)
    most = min(MOST_SAMPLES, MOST_TAPS // taps, threads // LEAST_THREADS)
    if spec.several or spec.summed_axes or most < 2:
        return 1
    # Exact arithmetic takes longer than the loads, so even wide texels gain from two samples; four texels, from four.
    least = 1 if not exact else 4 if taps == 4 and width == WIDTHS[0] else 2
    return power_of_two_below(min(most, max(least, -(-TAP_BYTES // (width * dtype.itemsize)))))


def takes_lines(texels: Shaped, operands: Sequence[Shaped], spec: ReadSpec, tiles: SampleTiles) -> bool:
    """Whether warps have two rows of samples of an image, with coordinates in arrays and results of 32 bits.

    On an H100, random reads of one channel then take 0.96 of the time, and cubic ones 0.95. Where 16 samples read a
    texel, they take 1.09, so an image must have as many texels as there are samples.
    """
    rows = tiles.rank == 2 and tiles.spread and tiles.lanes[-1] == LANES // 2 and tiles.num_steps % 2 == 0
    loads = any(spec.stack_of(k) is None and a.shape[-2:] == tiles.shape[-2:] for k, a in enumerate(operands))
    large = math.prod(texels.shape[:-1]) >= math.prod(tiles.shape)
    image = large and all(axis.role is Role.SPACE for axis in spec.axes)
    return rows and loads and image and np.dtype(spec.dtype).itemsize == 4


def chooses_by_last(spec: ReadSpec, operands: Sequence[Shaped], along: Sequence[int]) -> bool:
    """Whether an integer, such as the head of attention or the level of a grid, varies along the last axis alone."""
    if spec.is_single and spec.takes_coords:  # these integers are indices of texels, and choose no head
        return False
    shapes = [
        [n for k, n in enumerate(shape) if k not in along]
        for shape, a in zip(spec.sample_shapes(operands), operands)
        if jnp.issubdtype(a.dtype, jnp.integer)
    ]
    return any(shape[-1] > 1 and math.prod(shape[:-1]) == 1 for shape in shapes if shape)


def tiles_of_block(
    shape: tuple[int, ...], batch: int, volumes: bool, parts: int, steps: Extent, columns: int
) -> SampleTiles:
    """The tiles of samples for blocks: boxes, or rows if the samples are fewer than a box along an axis.

    Args:
        shape: the shape of the samples, batch axes first.
        volumes: whether three axes are filtered, so that the samples of a box share texels in three dimensions.
        parts: the number of threads of a sample.
        steps: the samples of a thread: below each other, or spread across.
        columns: the samples of a tile along the last axis, if tiles shall follow each other along the axis before it;
            otherwise 0.
    """
    free = max(1, THREADS // parts)
    columns = math.gcd(columns, shape[-1]) if columns else 0
    if columns and len(shape) - batch >= 2 and shape[-2] * columns >= free * steps[1]:
        return SampleTiles(shape, 2, (1, free // columns, columns), steps, spread=True, by_column=True)
    for rank, (deep, down, across) in BLOCKS.items():
        across = max(1, across // parts)
        down = max(1, min(down, THREADS // (parts * deep * across)))
        tiles = SampleTiles(shape, rank, (deep, down, across), steps, spread=steps[1] == 1)
        fits = all(n >= m for n, m in zip(shape[-rank:], tiles.tile[3 - rank :]))
        if fits and len(shape) - batch >= rank and (rank < 3 or volumes):
            return tiles
    return SampleTiles(shape, 0, (1, 1, free), (1, 1, math.prod(steps)))
