"""The forms for CPUs: reads of four-byte texels as words, and the adjoint and sums of reads in blocks of samples.

XLA writes the index and the weighted value of every tap of every sample to memory before it scatters them. Most of that
time goes to first touches of new pages. The blocks of the adjoint reuse a few pages.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.barriers import materialized, with_materialized
from ..._jax.indexing import gather
from ..compute import operators
from ..compute.linearization import ByNumber, coordinate_cotangents, operand_cotangents
from ..compute.operators import accumulated, as_texels, over_batch, samples_per_texel
from ..compute.texel_sums import TexelSums, power_of_two_above, row_lanes, units_of
from ..compute.texel_value import WORD, LoadTexel, gathers, loads_bytes, packed, words_of_channels
from ..describe.axis import Axis
from ..describe.operands import as_given
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import Shaped
from ..walk.texel_order import flat_sizes, texels_shape
from ..walk.texel_walk import Taps, taps

# Limits of reads as words: with more taps, arithmetic takes most of the time; with more texels, the words are new pages
# of memory in every call.
MOST_TAPS, MOST_TEXELS = 8, 2**22
# The numbers (samples times channels) of a block of the adjoint, and its fewest samples.
BLOCK = 2**16
FEWEST_SAMPLES = 2**10
# The numbers of a block of a sum of reads; a block has at least the reads of one place in the sum.
SUM_BLOCK = 2**18


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
        count = max(1, SUM_BLOCK // numbers)
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
    color, operands = spec.color_and_operands(args)
    colors = () if color is None else (color,)
    shape = spec.samples_shape(operands)
    blocks = SumBlocks.of(spec, shape, texels.shape[-1])
    if blocks is None:
        return operators.read(texels, *args, spec=spec, loads=loads)
    in_sums = spec.with_dtype(spec.sums)

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
    channels, units = cotangent.shape[-1], None
    if spec.deterministic and TEXELS in wrt:
        coords = spec.coords(operands)
        count = functools.partial(samples_per_texel, coords)
        units = units_of(cotangent, spec.axes, count, spec.factors(coords))
    sums = TexelSums(channels, row_lanes(channels), units)
    total = jnp.zeros((*flat_sizes(spec.axes), sums.width) if TEXELS in wrt else (), cotangent.dtype)
    shape = np.broadcast_shapes(cotangent.shape[:-1], spec.samples_shape(operands))
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
    coords, channels = spec.coords(operands), cotangent.shape[-1]
    shape = np.broadcast_shapes(cotangent.shape[:-1], *(c.shape for c in coords))
    samples, own = math.prod(shape), (*[1] * (len(shape) + 1 - cotangent.ndim), *cotangent.shape[:-1])
    block = min(samples, max(FEWEST_SAMPLES, BLOCK // power_of_two_above(channels)))
    values = cotangent.reshape(-1, channels)
    flat = [jnp.broadcast_to(c, shape).reshape(samples) for c in coords]

    def step(k: jax.Array, state: tuple[jax.Array, ByNumber]):
        total, of_axes = state
        # The last block ends at the last sample, so it may overlap the block before; those samples are added once.
        start = jnp.minimum(k * block, samples - block)
        coords = [jax.lax.dynamic_slice_in_dim(a, start, block) for a in flat]
        if own == shape:
            value = jax.lax.dynamic_slice_in_dim(values, start, block)
        else:
            value = gather(values, (row_of_value(start + jnp.arange(block, dtype=jnp.int32), shape, own),))
        if of_axes:
            assert texels is not None
            of_block = coordinate_cotangents(value, texels, coords, spec, wrt)
            put = lambda a, v: jax.lax.dynamic_update_slice_in_dim(a, v.astype(a.dtype), start, 0)
            of_axes = {k: put(a, of_block[k]) for k, a in of_axes.items()}
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
    shape = np.broadcast_shapes(cotangent.shape[batch:-1], spec.samples_shape(operands, batch))
    samples, lanes = math.prod(shape), row_lanes(cotangent.shape[-1])
    small = math.prod(texels_shape(spec.axes, lanes)) < 2**31
    return small and samples * lanes > BLOCK and samples < 2**31
