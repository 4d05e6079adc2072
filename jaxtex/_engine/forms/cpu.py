"""The forms for CPUs: reads of four-byte texels as words, adjoints and sums of reads in blocks, resizing in bands."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.barriers import materialized, with_materialized
from ..._jax.float_bits import rounded_to
from ..._jax.indexing import gather, over_batch
from ..._jax.shapes import broadcast_shapes
from ..._tables.storage_formats import WORD, sum_dtype
from ..compute import operators
from ..compute.filters import ENTRIES_AT_ONCE, Rows, ScaledFilter, entries_along, sum_of_entries
from ..compute.linearization import ByNumber, coordinate_cotangents, operand_cotangents
from ..compute.operators import accumulated, as_texels, samples_per_texel
from ..compute.texel_sums import TexelSums, power_of_two_above, row_lanes, units_of
from ..compute.texel_value import LoadTexel, gathers, loads_bytes, packed, words_of_channels
from ..describe.axis import Axis
from ..describe.operands import as_given, widened
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import Shaped
from ..walk.texel_order import flat_sizes, texels_shape
from ..walk.texel_walk import Taps, taps

# Reads
#
# XLA writes the index and the weighted value of every tap of every sample to memory before it scatters them. Most of
# that time goes to first touches of new pages. The blocks of the adjoint reuse a few pages.


# Limits of reads as words: with more taps, arithmetic takes most of the time; with more texels, the words are new pages
# of memory in every call.
MOST_TAPS, MOST_TEXELS = 8, 2**22
# The numbers (samples times channels) of a block of the adjoint, and its fewest samples.
BLOCK = 2**16
FEWEST_SAMPLES = 2**10
# The numbers of a block of a sum of reads; a block has at least the reads of one place in the sum. If these are many,
# it has no others: XLA adds a block of one place to the total while it reads, in about a seventh of the time.
SUM_BLOCK, PLACE_ALONE = 2**18, 2**11


def read(*args: jax.Array, spec: ReadSpec, batch: int) -> jax.Array:
    """`operators.read` over `batch` leading axes; texels are loaded as words, or reads are summed block by block."""
    loads = loads_words if supports_words(*args, spec=spec, batch=batch) else gathers
    run = over_batch(functools.partial(summed_read, spec=spec, loads=loads), batch)
    return (with_materialized(run, (0,)) if spec.materialized else run)(*args)


def supports_read(texels: Shaped, *args: Shaped, spec: ReadSpec, batch: int) -> bool:
    """Whether texels are loaded as words, or reads are summed block by block."""
    _, operands = spec.color_and_operands(args)
    blocks = SumBlocks.of(spec, spec.samples_shape(operands, batch), texels.shape[-1])
    return blocks is not None or supports_words(texels, *args, spec=spec, batch=batch)


# Sums of reads


class SumBlocks(NamedTuple):
    """The division of sums of reads into blocks, so that no array holds numbers for all reads.

    Attributes:
        axis: the sample axis that is divided, counted from the end.
        count: the places along it of a block.
    """

    axis: int
    size: int
    count: int

    @classmethod
    def of(cls, spec: ReadSpec, shape: Sequence[int], channels: int) -> "SumBlocks | None":
        """The blocks for samples of a shape; `None` for few samples, or stored coordinates."""
        if not spec.summed_axes or spec.several is not None or spec.grid is as_given or spec.expected is not None:
            return None
        axis = max(spec.summed_axes, key=lambda axis: shape[axis])
        numbers = math.prod(shape) // shape[axis] * power_of_two_above(channels)
        count = 1 if numbers >= PLACE_ALONE else SUM_BLOCK // numbers
        return None if count >= shape[axis] else cls(axis, shape[axis], count)

    def operands(
        self, operands: Sequence[jax.Array], spec: ReadSpec, start: jax.Array | int, count: int
    ) -> list[jax.Array]:
        """Operands at `count` places from `start` on."""
        places = [self.place(a, spec, k) for k, a in enumerate(operands)]
        return [self.part(a, place, start, count) for a, place in zip(operands, places)]

    def place(self, operand: Shaped, spec: ReadSpec, k: int) -> int:
        """The axis of operand `k` that is divided."""
        stack, rank = spec.stack_of(k), len(operand.shape)
        return rank + self.axis if stack is None else stack.dimension_of(rank - 1 + self.axis, rank)

    def part(self, a: jax.Array, place: int, start: jax.Array | int, count: int) -> jax.Array:
        """The slice of an array of `count` places from `start` on; size 1 along the axis stays."""
        return a if a.shape[place] == 1 else jax.lax.dynamic_slice_in_dim(a, start, count, place)

    def fold(self, step: Callable[[jax.Array | int, int, Any], Any], state: Any) -> Any:
        """``step(start, count, state)`` for one block after the other; the first one may be smaller."""
        first = self.size % self.count or self.count
        state = step(0, first, state)
        rest = lambda k, state: step(first + k * self.count, self.count, state)
        return state if first == self.size else jax.lax.fori_loop(0, (self.size - first) // self.count, rest, state)


def summed_read(texels: jax.Array, *args: jax.Array, spec: ReadSpec, loads: Callable[..., LoadTexel]) -> jax.Array:
    """`operators.read` of one texture, in blocks of a sum."""
    # How the samples are divided; a short sum is one block.
    color, operands = spec.color_and_operands(args)
    colors = () if color is None else (color,)
    shape = spec.samples_shape(operands)
    blocks = SumBlocks.of(spec, shape, texels.shape[-1])
    if blocks is None:
        return operators.read(texels, *args, spec=spec, loads=loads)
    in_sums = spec.with_dtype(spec.sums)

    # A block is a read of its own, in the dtype of sums; the total is rounded once, at the end.
    def step(start: jax.Array | int, count: int, total: jax.Array) -> jax.Array:
        of_block = blocks.operands(operands, spec, start, count)
        return total + operators.read(texels, *colors, *of_block, spec=in_sums, loads=loads)

    sums = tuple(1 if k - len(shape) in spec.summed_axes else n for k, n in enumerate(shape))
    return blocks.fold(step, jnp.zeros((*sums, texels.shape[-1]), spec.sums)).astype(spec.dtype)


# Words


def loads_words(stored: jax.Array) -> LoadTexel:
    """Loads texels as words, from rows of four bytes."""
    return loads_bytes(words_of_channels(materialized(packed(stored, WORD)), WORD.itemsize))


def supports_words(texels: Shaped, *args: Shaped, spec: ReadSpec, batch: int) -> bool:
    """Whether texels are four bytes, taps are few, and samples are so many that packing texels into words pays off."""
    if texels.dtype != jnp.uint8 or texels.shape[-1] != WORD.itemsize or not 1 < spec.num_taps <= MOST_TAPS:
        return False
    _, operands = spec.color_and_operands(args)
    samples = math.prod(spec.samples_shape(operands, batch))
    return math.prod(texels.shape[batch:-1]) <= samples and math.prod(texels.shape[:-1]) <= MOST_TEXELS


# The adjoint


def adjoint(
    cotangent: jax.Array,
    texels: jax.Array | None,
    *operands: jax.Array,
    spec: ReadSpec,
    wrt: Wrt,
    texel_dtype: np.dtype,
    batch: int,
) -> tuple[jax.Array, ...]:
    """`linearization.pullback` over `batch` leading axes, one example after the other.

    Args:
        texels: may be `None` if `wrt` names texels alone.

    Returns:
        The cotangents in the order of `wrt`; the cotangent of texels has `texel_dtype`.
    """
    cotangent = widened(cotangent)
    run = functools.partial(cotangents_of_one, spec=spec, wrt=wrt, texel_dtype=texel_dtype)
    if texels is None:
        without_texels = lambda cotangent, *operands: run(cotangent, None, *operands)
        return over_batch(without_texels, batch, jax.lax.map)(cotangent, *operands)
    return over_batch(run, batch, jax.lax.map)(cotangent, texels, *operands)


def cotangents_of_one(
    cotangent: jax.Array,
    texels: jax.Array | None,
    *operands: jax.Array,
    spec: ReadSpec,
    wrt: Wrt,
    texel_dtype: np.dtype,
) -> tuple[jax.Array, ...]:
    """The cotangents of one texture and its operands, as `adjoint` returns them."""
    # Reproducible sums are multiples of a unit that fits the largest of them.
    channels, units = cotangent.shape[-1], None
    if spec.deterministic and TEXELS in wrt:
        coords = spec.coords(operands)
        count = functools.partial(samples_per_texel, coords)
        units = units_of(cotangent, spec.axes, count, spec.factors(coords))
    # The total has one row for each texel, whose length makes additions fast.
    sums = TexelSums(channels, row_lanes(channels), units)
    total = jnp.zeros((*flat_sizes(spec.axes), sums.width) if TEXELS in wrt else (), cotangent.dtype)
    shape = broadcast_shapes(cotangent.shape[:-1], spec.samples_shape(operands))
    # Samples of a long sum come in blocks, so that no array holds numbers of all reads.
    blocks = None if units is not None else SumBlocks.of(spec, shape, channels)
    run = functools.partial(cotangents_of_samples, texels=texels, spec=spec, wrt=wrt, sums=sums)
    run = run if blocks is None else functools.partial(in_blocks, run, blocks, spec, wrt)
    total, cotangents = run(total, cotangent, operands)
    if TEXELS in wrt:
        cotangents[TEXELS] = as_texels(total, spec.axes, sums, texel_dtype)
    return tuple(cotangents[k] for k in wrt)


def in_blocks(
    of_samples: Callable[..., tuple[jax.Array, ByNumber]],
    blocks: SumBlocks,
    spec: ReadSpec,
    wrt: Wrt,
    total: jax.Array,
    cotangent: jax.Array,
    operands: Sequence[jax.Array],
) -> tuple[jax.Array, ByNumber]:
    """``of_samples(total, cotangent, operands)``, which is `cotangents_of_samples`, block by block."""
    places = {k: blocks.place(operands[k], spec, k) for k in wrt if k != TEXELS}

    def step(start: jax.Array | int, count: int, state: tuple[jax.Array, ByNumber]) -> tuple[jax.Array, ByNumber]:
        of_block = blocks.operands(operands, spec, start, count)
        value = blocks.part(cotangent, cotangent.ndim - 1 + blocks.axis, start, count)
        total, cotangents = of_samples(state[0], value, of_block)

        # A block adds to an operand that all samples share, and fills its part of any other one.
        def joined(k: int, a: jax.Array) -> jax.Array:
            if a.shape[places[k]] == 1:
                return a + cotangents[k]
            return jax.lax.dynamic_update_slice_in_dim(a, cotangents[k], start, places[k])

        return total, {k: joined(k, a) for k, a in state[1].items()}

    return blocks.fold(step, (total, {k: jnp.zeros_like(operands[k]) for k in places}))


def cotangents_of_samples(
    total: jax.Array,
    cotangent: jax.Array,
    operands: Sequence[jax.Array],
    *,
    texels: jax.Array | None,
    spec: ReadSpec,
    wrt: Wrt,
    sums: TexelSums,
) -> tuple[jax.Array, ByNumber]:
    """`total`, to which the samples are added if `wrt` names texels, and the cotangents of operands."""
    # The samples as one line, in blocks that fit a cache.
    coords, channels = spec.coords(operands), cotangent.shape[-1]
    shape = broadcast_shapes(cotangent.shape[:-1], *(c.shape for c in coords))
    samples, own = math.prod(shape), (*[1] * (len(shape) + 1 - cotangent.ndim), *cotangent.shape[:-1])
    block = min(samples, max(FEWEST_SAMPLES, BLOCK // power_of_two_above(channels)))
    values = cotangent.reshape(-1, channels)
    flat = [jnp.broadcast_to(c, shape).reshape(samples) for c in coords]

    def step(k: jax.Array, state: tuple[jax.Array, ByNumber]):
        total, of_axes = state
        # The last block ends at the last sample, so it may overlap the block before; those samples are added once.
        start = jnp.minimum(k * block, samples - block)
        coords = [jax.lax.dynamic_slice_in_dim(a, start, block) for a in flat]
        # Values may broadcast along axes of samples; then each sample has a look for its row.
        if own == shape:
            value = jax.lax.dynamic_slice_in_dim(values, start, block)
        else:
            value = gather(values, (row_of_value(start + jnp.arange(block, dtype=jnp.int32), shape, own),))
        # The derivatives along coordinates are kept for each sample.
        if of_axes:
            assert texels is not None
            of_block = coordinate_cotangents(value, texels, coords, spec, wrt)
            put = lambda a, v: jax.lax.dynamic_update_slice_in_dim(a, v.astype(a.dtype), start, 0)
            of_axes = {k: put(a, of_block[k]) for k, a in of_axes.items()}
        # Those in texels are added up, one sample after the other.
        if TEXELS in wrt:
            if samples % block:
                repeated = start + jnp.arange(block, dtype=jnp.int32) < k * block
                value = jnp.where(repeated[:, None], 0, value)
            total = accumulated(total, value, coords, spec.axes, sums, taps_once)
        return total, of_axes

    of_axes = {k: jnp.zeros(samples, cotangent.dtype) for k in spec.axes_of(wrt)}
    total, of_axes = jax.lax.fori_loop(0, -(-samples // block), step, (total, of_axes))
    return total, operand_cotangents({k: a.reshape(shape) for k, a in of_axes.items()}, operands, spec, wrt)


def taps_once(coord: jax.Array, axis: Axis) -> Taps:
    """`taps`, materialized: otherwise XLA recomputes them in the loops over indices and over values of every tap."""
    return jax.tree.map(lambda x: materialized(x) if jnp.size(x) > 1 else x, taps(coord, axis))


def row_of_value(sample: jax.Array, shape: tuple[int, ...], own: tuple[int, ...]) -> jax.Array:
    """The flat index of a sample's value among values of shape `own`, which broadcasts to the samples' `shape`."""
    row, stride = jnp.zeros_like(sample), 1
    for n, m in zip(shape[::-1], own[::-1]):
        if m > 1:
            row = row + jax.lax.rem(sample, np.int32(n)) * np.int32(stride)
        sample, stride = jax.lax.div(sample, np.int32(n)), stride * m
    return row


def supports_adjoint(
    cotangent: Shaped, texels: Shaped | None, *operands: Shaped, spec: ReadSpec, batch: int, **_: Any
) -> bool:
    """Whether the samples of one texture are more than a block, and int32 numbers suffice for samples and texels."""
    shape = broadcast_shapes(cotangent.shape[batch:-1], spec.samples_shape(operands, batch))
    samples, lanes = math.prod(shape), row_lanes(cotangent.shape[-1])
    small = math.prod(texels_shape(spec.axes, lanes)) < 2**31
    return small and samples * lanes > BLOCK and samples < 2**31


# Resizing
#
# Filters along two axes have an intermediate array. The pages of a large one are new in every call, and touching them
# takes longer than filtering. In bands of the result, the intermediate arrays are small and reuse their memory. Halving
# an image needs no intermediate array.


# The bytes of the largest intermediate array of a band.
BAND = 2**22
# The bytes of an intermediate array from which on the result is divided into bands: glibc returns the memory of larger
# ones to the system after each call.
LEAST = 2**25
# If bands overlap in the rows that they read, a band reads at most so many times the average number of rows.
MOST_OVERLAP = 2
# The largest number of axes that are halved at once, and of bits of integers that are halved.
MOST_HALVED, SMALL_BITS = 2, 16

Filters = tuple[tuple[int, ScaledFilter], ...]


class Bands(NamedTuple):
    """The division of a resized array into bands.

    Attributes:
        shape: the shape of the array, with the axes before the first filtered one merged into axis 0.
        chain: the filtered axes in order, each with its `Rows`.
        images: the number of elements of axis 0 in a band.
        rows: the number of elements of the result's axis 1 in a band.
        lows: the first row that each band reads, int32.
        extent: the number of rows that a band reads.
    """

    shape: tuple[int, ...]
    chain: tuple[tuple[int, Rows], ...]
    images: int
    rows: int
    lows: np.ndarray
    extent: int

    @property
    def target(self) -> list[int]:
        """The shape of the result."""
        shape = list(self.shape)
        for axis, rows in self.chain:
            shape[axis] = len(rows.column)
        return shape

    @classmethod
    def of(cls, shape: tuple[int, ...], filters: Filters, transposed: bool, itemsize: int) -> "Bands | None":
        """The bands of an array; `None` if its intermediate arrays are small, or bands would overlap too much."""
        # The filters in their order, on an array whose axes in front of them are one.
        first = min(axis for axis, _ in filters)
        chain = tuple(
            (axis - first + 1, stretched.rows(transposed)) for axis, stretched in filters[:: -1 if transposed else 1]
        )
        shape = (math.prod(shape[:first]), *shape[first:])
        while shape[-1] == 1 and len(shape) - 1 not in dict(chain):  # with such an axis XLA copies the array each turn
            shape = shape[:-1]
        # The largest intermediate array; if it is small, bands gain nothing.
        sizes, most = list(shape), 0
        for axis, rows in chain[:-1]:
            sizes[axis] = len(rows.column)
            most = max(most, math.prod(sizes) * itemsize)
        if most <= LEAST:
            return None
        # A band has rows of the result; where all rows fit into one, it has several images.
        column = dict(chain)[1].column
        count = len(column)
        rows = min(max(BAND * count * shape[0] // most, 1), count)
        images = min(max(BAND * shape[0] // most, 1), shape[0]) if rows == count else 1
        # If the first filter runs along rows, it takes all rows of the source.
        if chain[0][0] == 1:
            return cls(shape, chain, images, rows, np.zeros(1, np.int32), shape[1])
        # The rows of the source that each band needs. Neighbors share some of them.
        starts = np.minimum(np.arange(0, count, rows), count - rows)
        low, high = (np.array([of(column[at : at + rows]) for at in starts]) for of in (np.min, np.max))
        extent = int((high - low).max()) + 1
        if extent * count > MOST_OVERLAP * shape[1] * rows and rows < count:
            return None
        return cls(shape, chain, images, rows, np.minimum(low, shape[1] - extent).astype(np.int32), extent)


def resized(values: jax.Array, *, filters: Filters, transposed: bool, dtype: np.dtype) -> jax.Array:
    """`rules.filters.in_order`, with equal bits."""
    if halves(values.dtype, filters, transposed, dtype):
        return half(values, filters, dtype)
    sums = sum_dtype(values.dtype, dtype)
    bands = Bands.of(values.shape, filters, transposed, sums.itemsize)
    assert bands is not None
    shape = list(values.shape)
    for axis, stretched in filters:
        shape[axis] = len(stretched.rows(transposed).column)
    return in_bands(values, bands, sums, dtype).reshape(shape)


def supports_resized(values: Any, *, filters: Filters, transposed: bool, dtype: np.dtype) -> bool:
    if halves(values.dtype, filters, transposed, dtype):
        return True
    return Bands.of(values.shape, filters, transposed, sum_dtype(values.dtype, dtype).itemsize) is not None


# Bands


def in_bands(values: jax.Array, bands: Bands, sums: np.dtype, dtype: np.dtype) -> jax.Array:
    """The resized array of shape `bands.target`, computed band by band."""
    target, stored = bands.target, materialized(values.reshape(bands.shape))
    turns = -(-bands.shape[0] // bands.images), -(-target[1] // bands.rows)

    def step(k: jax.Array, out: jax.Array) -> jax.Array:
        # Which band it is; the last one ends at the end of the array, and may overlap the one before.
        image = jnp.minimum(k // turns[1] * bands.images, bands.shape[0] - bands.images)
        row = jnp.minimum(k % turns[1] * bands.rows, target[1] - bands.rows)
        # The part of the source that it needs.
        low = jnp.asarray(bands.lows)[k % turns[1]] if len(bands.lows) > 1 else 0
        band = jax.lax.dynamic_slice_in_dim(stored, image, bands.images)
        band = jax.lax.dynamic_slice_in_dim(band, low, bands.extent, 1)
        # One filter after the other. Along rows, the weights of the band's rows alone are taken.
        for number, (axis, rows) in enumerate(bands.chain):
            band = materialized(band) if number else band
            if axis == 1:
                columns, weights = (a.T for a in (rows.column.astype(np.int32), rows.weight.astype(sums)))
                columns, weights = (
                    jax.lax.dynamic_slice_in_dim(jnp.asarray(a), row, bands.rows, 1) for a in (columns, weights)
                )
                band = sum_of_entries(entries_along(band, 1, sums), columns - low, weights)
            else:
                band = filtered(band, axis, rows, sums)
        band = band.astype(dtype) if jnp.issubdtype(dtype, jnp.floating) else rounded_to(band, dtype)
        # XLA does not divide an update of an array among threads. So the band is materialized, and the update copies.
        return jax.lax.dynamic_update_slice(out, materialized(band), (image, row, *[0] * (len(target) - 2)))

    return jax.lax.fori_loop(0, math.prod(turns), step, jnp.zeros(target, dtype))


def filtered(values: jax.Array, axis: int, rows: Rows, sums: np.dtype) -> jax.Array:
    """`values` filtered along an axis; a sum of strided slices if rows have equal weights and a constant step."""
    if (step := rows.step) is not None and rows.column.shape[1] <= 2 * ENTRIES_AT_ONCE:
        parts, weights = (part.astype(sums) for part in slices(values, axis, rows.column, step)), rows.weight[0]
        if jnp.issubdtype(values.dtype, jnp.floating):
            weights = apart(weights, sums)
        return functools.reduce(jnp.add, map(jnp.multiply, parts, weights.astype(sums)))
    columns, weights = jnp.asarray(rows.column.T, jnp.int32), jnp.asarray(rows.weight.T, sums)
    return sum_of_entries(entries_along(values, axis, sums), columns, weights)


def apart(weights: Any, dtype: np.dtype) -> jax.Array:
    """Weights that XLA does not know: of terms with one power of two it would add before it multiplies."""
    return materialized(jnp.asarray(weights, dtype))


def slices(values: jax.Array, axis: int, column: np.ndarray, step: int) -> list[jax.Array]:
    """For each entry of the rows, its texels as a strided slice. Rows must have a constant `step`."""
    ends = zip(column[0].tolist(), column[-1].tolist())
    return [jax.lax.slice_in_dim(values, low, high + 1, step, axis) for low, high in ends]


# Halves of images


def halves(stored: np.dtype, filters: Filters, transposed: bool, dtype: np.dtype) -> bool:
    """Whether the filters halve one or two axes by means of two texels, of floats or of small integers.

    Then `half` needs no intermediate array, and its sums are exact, or rounded as with one.
    """
    floating = jnp.issubdtype(stored, jnp.floating) and jnp.issubdtype(dtype, jnp.floating)
    small = jnp.issubdtype(stored, jnp.integer) and jnp.iinfo(stored).bits <= SMALL_BITS and dtype == stored
    if transposed or len(filters) > MOST_HALVED or not (floating or small):
        return False
    return all(
        stretched.rows().step == 2
        and np.array_equal(stretched.rows().weight[0], [0.25 if stretched.halved else 0.5] * 2)
        for _, stretched in filters
    )


def half(values: jax.Array, filters: Filters, dtype: np.dtype) -> jax.Array:
    """`values` with the axes of `filters` halved."""
    # Floats: the mean of two neighbors, axis by axis.
    if jnp.issubdtype(values.dtype, jnp.floating):
        for axis, stretched in filters:
            first, second = slices(values, axis, stretched.rows().column, 2)
            share = apart(stretched.rows().weight[0, 0], dtype)
            values = first.astype(dtype) * share + second.astype(dtype) * share
        return values
    # Integers: the sum of all two or four, which is exact.
    stored, values = values.dtype, values.astype(jnp.int32)
    for axis, stretched in filters:
        values = functools.reduce(jnp.add, slices(values, axis, stretched.rows().column, 2))
    # The mean, rounded half to even.
    count = len(filters)
    return ((values + ((values >> count) & 1) + (2 ** (count - 1) - 1)) >> count).astype(stored)
