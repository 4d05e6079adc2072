"""The kernel of a read, in either arithmetic."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...compute.operators import value as value_at
from ...compute.texel_sums import power_of_two_below
from ...compute.texel_value import LoadTexel, bits_dtype, in_bits
from ...describe.axis import Role
from ...describe.operands import Coords
from ...describe.spec import ReadSpec
from ...describe.storage import WHOLE, Halo, Part, Shaped, Sliced, Storage, WithHalo, each_part, slice_of, slices_of
from ...walk.texel_walk import other_part, taps_are_available
from ..build.arrays import ArrayRole, KernelArray, KernelArrays, operands_of
from ..samples.sample_tiles import Extent, SampleTiles, samples_shape
from .read_source import ReadSource, ReadThreads, ReadValue

# The threads of a block: in a volume of samples and in an image, deep, down and across; and in all.
BLOCKS: dict[int, Extent] = {3: (4, 1, 32), 2: (1, 8, 16)}
THREADS = 128
# Limits of a thread: its samples, the taps of all of them, and the bytes that one tap of each of them loads. A read is
# divided among so many threads at least before one takes several samples.
MOST_SAMPLES, MOST_TAPS, TAP_BYTES, LEAST_THREADS = 4, 64, 16, 2**19
# A wider texel is divided among threads, so that a warp reads and writes whole lines of memory.
WIDTHS = (4, 2, 1)
# Tiles are looked up so many at once.
NOTES_AT_ONCE = 4


def read(
    texels: jax.Array | WithHalo, *args: jax.Array, spec: ReadSpec, batch: int, storage: Storage = WHOLE
) -> jax.Array:
    """`operators.read` over `batch` leading axes, on which an operand has their size or 1."""
    if isinstance(texels, WithHalo):
        assert isinstance(storage, Halo)
        return read_with_halo(texels, args, spec, batch, storage)
    stored = texels.dtype
    if spec.returns_texels(stored) and jnp.issubdtype(stored, jnp.floating) and stored.itemsize == 2:
        # A thread computes with float32, which changes the bits of NaN.
        as_integers = spec.with_dtype(bits_dtype(stored))
        return in_bits(lambda bits: read(bits, *args, spec=as_integers, batch=batch), texels)
    color, operands = spec.color_and_operands(args)
    name = "texture_read" if color is None else "texture_bordered_read"
    return read_each_sample(value_of(spec), texels, color, operands, spec, batch, name)


def read_with_halo(
    texels: WithHalo, operands: Sequence[jax.Array], spec: ReadSpec, batch: int, storage: Halo
) -> jax.Array:
    """The read in two steps: of all samples in `own`, which needs nothing of neighbors; then of tiles at the edges."""
    axes, own, missing = spec.axes, texels.own, storage.missing(spec.dtype)

    def marked(load_texel: LoadTexel, coords: Coords, color: jax.Array | None) -> jax.Array:
        found = value_at(load_texel, coords, spec, color)
        return jnp.where(taps_are_available(coords, axes)[..., None], found, missing)

    # The first kernel needs no masks, as it may read any texel for the samples that the second one reads again.
    (start,), own_axes = other_part(operands[:1], axes, storage.reach, own.shape[0])
    windows = (axis._replace(stored=axis.stored and axis.stored._replace(is_window=True)) for axis in own_axes)
    inner = spec.replace(axes=tuple(windows))
    at_edges = lambda coords: ~taps_are_available(coords, own_axes)
    given = value_of(inner), own, None, [start, *operands[1:]], inner, batch, "texture_read"
    filled, notes = read_each_sample(*given, notes=at_edges)
    into = Sliced(filled, slice_of(filled))
    return read_each_sample(marked, texels, None, operands, spec, batch, "texture_read_edges", into=into, noted=notes)


def concatenated_read(*args: jax.Array, parts: Sequence[Part], row_axes: int) -> jax.Array:
    """Several reads, each of which fills its slice of one array."""
    each = [(part, texels, operands) for part, _, texels, operands in each_part(parts, args)]
    shapes = [result_shape(t, operands, part.spec, t.shape[: part.batch]) for part, t, operands in each]
    slices = slices_of(shapes, row_axes)
    whole: Any = jax.ShapeDtypeStruct((math.prod(shapes[0][:row_axes]), slices[0].row), parts[0].spec.dtype)
    for (part, texels, operands), place in zip(each, slices):
        given = value_of(part.spec), texels, None, operands, part.spec, part.batch, "texture_read"
        whole = read_each_sample(*given, into=Sliced(whole, place))
    return whole


def result_shape(
    texels: Shaped, operands: Sequence[Shaped], spec: ReadSpec, batches: tuple[int, ...]
) -> tuple[int, ...]:
    """The shape of the result of a read, whose textures and colors have the batch axes `batches`."""
    shape = samples_shape(batches, spec.sample_shapes(operands))
    along = [len(shape) + axis for axis in spec.summed_axes]
    return *(1 if k in along else n for k, n in enumerate(shape)), texels.shape[-1]


def value_of(spec: ReadSpec) -> ReadValue:
    """The result of a read in float arithmetic."""
    return lambda load_texel, coords, color: value_at(load_texel, coords, spec, color)


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
) -> Any:
    """`value` of each sample, of `spec.dtype`.

    Args:
        color: what `value` gets as the border color: C numbers after the batch axes.
        exact: whether each product and each sum of the computation of coordinates is rounded by itself. What `value`
            rounds, a compiler may then round once with the sum that it enters, so it must not matter to `value`.
        into: the slice of a larger array that the result fills; then the result is that array, filled so far.
        notes: which samples are of interest to another read of the same samples, which are no mean and no sum. Then the
            result is a pair: the values, and which tiles hold such samples.
        noted: such tiles; only their samples are read.
    """
    textures, channels = texels.shape[:batch], texels.shape[-1]
    width = width_of_part(channels)
    parts, aligned = -(-channels // width), width in WIDTHS and channels % width == 0
    batches = textures if color is None else np.broadcast_shapes(textures, color.shape[:batch])
    shape = samples_shape(batches, spec.sample_shapes(operands))
    along = tuple(sorted(len(shape) + axis for axis in spec.summed_axes))
    kept, summed = (tuple(n for k, n in enumerate(shape) if (k in along) == some) for some in (False, True))
    steps = steps_of(spec, width, texels.dtype, math.prod(shape) * parts, exact)
    volumes = sum(axis.role is Role.SPACE and not axis.integer for axis in spec.axes) >= 3
    tiles = tiles_of_block(kept, batch, volumes, parts, steps)
    own = jax.ShapeDtypeStruct(result_shape(texels, operands, spec, batches), np.dtype(spec.dtype))
    result = KernelArray(ArrayRole.RESULT, own) if into is None else KernelArray(ArrayRole.RESULT, into.whole)
    if into is not None and isinstance(into.whole, jax.Array):
        result = result._replace(start=into.whole)
    given, results = [KernelArray(ArrayRole.TEXELS, texels)], [result]
    given += [] if color is None else [KernelArray(ArrayRole.COLOR, color)]
    given += operands_of(operands)
    given += [] if noted is None else [KernelArray(ArrayRole.NOTED, noted)]
    if notes is not None:
        none = jnp.zeros(-(-tiles.total // NOTES_AT_ONCE) * NOTES_AT_ONCE, jnp.uint8)
        results.append(KernelArray(ArrayRole.NOTES, none, start=none))
    arrays = KernelArrays(given, results, {ArrayRole.NOTED: "const uint8", ArrayRole.NOTES: "uint8"})
    threads = ReadThreads(tiles, parts, width, aligned, summed, along)
    found = ReadSource(value, spec, batch, threads, arrays, slice_of(into or own), exact, notes).run(name)
    values = found[ArrayRole.RESULT, 0]
    return values if notes is None else (values, found[ArrayRole.NOTES, 0])


def width_of_part(channels: int) -> int:
    """How many channels of a texel a thread takes: a row that is one load; or, of an odd number, at most four."""
    return min(channels, WIDTHS[0]) if channels % 2 else next(width for width in WIDTHS if channels % width == 0)


def steps_of(spec: ReadSpec, width: int, dtype: np.dtype, threads: int, exact: bool) -> int:
    """How many samples a thread takes, where `threads` would take one each.

    They share what they have in common, as a row of them has, and their loads are under way together.
    """
    taps = math.prod(axis.kernel.num_taps for axis in spec.axes if not axis.integer)
    most = min(MOST_SAMPLES, MOST_TAPS // taps, threads // LEAST_THREADS)
    if spec.several or spec.summed_axes or most < 2:
        return 1
    # Exact arithmetic takes longer than its loads.
    return power_of_two_below(min(most, max(1 + exact, TAP_BYTES // (width * dtype.itemsize))))


def tiles_of_block(shape: tuple[int, ...], batch: int, volumes: bool, parts: int, steps: int) -> SampleTiles:
    """The samples of a block: a box of them, or a row where there are fewer than a box has along some axis.

    Args:
        parts: how many threads share a sample.
        steps: how many samples of a row a thread takes.
        volumes: whether three axes are filtered, so that samples in a block of them read the same texels.
    """
    for rank, (deep, down, across) in BLOCKS.items():
        across = max(1, across // parts)
        down = max(1, min(down, THREADS // (parts * deep * across)))
        fits = all(n >= m for n, m in zip(shape[-rank:], (deep, down, across * steps)[3 - rank :]))
        if fits and len(shape) - batch >= rank and (rank < 3 or volumes):
            return SampleTiles(shape, rank, (deep, down, across), (1, 1, steps), spread=True)
    return SampleTiles(shape, 0, (1, 1, max(1, THREADS // parts)), (1, 1, steps))
