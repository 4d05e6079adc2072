"""The forms for a CPU: reads of texels of four bytes as words, and the adjoint, block of samples by block.

XLA writes the index and the weighted value of every tap of every sample to memory before it scatters them. The first
touch of memory is what costs most there. In blocks, the same few pages are used again and again.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.barriers import materialized, with_materialized
from ..._jax.indexing import gather
from ..compute import operators
from ..compute.linearization import ByNumber, coordinate_cotangents, operand_cotangents
from ..compute.operators import accumulated, as_texels, over_batch, samples_per_texel
from ..compute.texel_sums import TexelSums, power_of_two_above, row_lanes, units_of
from ..compute.texel_value import WORD, LoadTexel, loads_bytes, packed, words_of_channels
from ..describe.axis import Axis
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import Shaped
from ..walk.texel_order import flat_sizes, texels_shape
from ..walk.texel_walk import Taps, taps

# Reads of words: of more taps, arithmetic takes the most time. Words of more texels are new pages of memory in every
# call.
MOST_TAPS, MOST_TEXELS = 8, 2**22
# The numbers of one tap in a block of the adjoint, and the fewest samples of one.
BLOCK = 2**16
FEWEST_SAMPLES = 2**10


def read(*args: jax.Array, spec: ReadSpec, batch: int) -> jax.Array:
    """`operators.read` over `batch` leading axes, of texels that are loaded as words."""
    run = over_batch(functools.partial(operators.read, spec=spec, loads=loads_words), batch)
    return (with_materialized(run, (0,)) if spec.materialized else run)(*args)


def loads_words(stored: jax.Array) -> LoadTexel:
    """Loads texels as words, from rows of four bytes."""
    return loads_bytes(words_of_channels(materialized(packed(stored, WORD)), WORD.itemsize))


def supports_read(texels: Shaped, *args: Shaped, spec: ReadSpec, batch: int) -> bool:
    """Whether texels have four bytes, and are no more than the samples, whose few taps must make up for the words."""
    if texels.dtype != jnp.uint8 or texels.shape[-1] != WORD.itemsize or not 1 < spec.num_taps <= MOST_TAPS:
        return False
    _, operands = spec.color_and_operands(args)
    shapes = (shape[batch:] for shape in spec.sample_shapes(operands))
    samples = math.prod(np.broadcast_shapes(*shapes))
    return math.prod(texels.shape[batch:-1]) <= samples and math.prod(texels.shape[:-1]) <= MOST_TEXELS


def adjoint(
    cotangent: jax.Array,
    texels: jax.Array | None,
    *operands: jax.Array,
    spec: ReadSpec,
    wrt: Wrt,
    texel_dtype: np.dtype,
    batch: int,
) -> tuple[jax.Array, ...]:
    """`linearization.pullback` over `batch` leading axes, one after the other.

    Args:
        texels: which only the cotangents of operands need.

    Returns:
        The cotangents in the order of `wrt`; those of texels have `texel_dtype`.
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
    """The cotangents from the samples of one texture."""
    coords, channels = spec.coords(operands), cotangent.shape[-1]
    shape = np.broadcast_shapes(cotangent.shape[:-1], *(c.shape for c in coords))
    samples, own = math.prod(shape), (*[1] * (len(shape) + 1 - cotangent.ndim), *cotangent.shape[:-1])
    block = min(samples, max(FEWEST_SAMPLES, BLOCK // power_of_two_above(channels)))
    count = functools.partial(samples_per_texel, coords)
    units = units_of(cotangent, spec.axes, count) if spec.deterministic and TEXELS in wrt else None
    sums = TexelSums(channels, row_lanes(channels), units)
    values = cotangent.reshape(-1, channels)
    flat = [jnp.broadcast_to(c, shape).reshape(samples) for c in coords]

    def step(k: jax.Array, state: tuple[jax.Array, ByNumber]):
        total, of_axes = state
        # The last block ends with the last sample; samples that it shares with the block before are added once.
        start = jnp.minimum(k * block, samples - block)
        coords = [jax.lax.dynamic_slice_in_dim(a, start, block) for a in flat]
        if own == shape:
            value = jax.lax.dynamic_slice_in_dim(values, start, block)
        else:
            value = gather(values, (row_of_value(start + jnp.arange(block, dtype=jnp.int32), shape, own),))
        if of_axes:
            assert texels is not None
            found = coordinate_cotangents(value, texels, coords, spec, wrt)
            put = lambda a, v: jax.lax.dynamic_update_slice_in_dim(a, v.astype(a.dtype), start, 0)
            of_axes = {k: put(a, found[k]) for k, a in of_axes.items()}
        if TEXELS in wrt:
            if samples % block:
                repeated = start + jnp.arange(block, dtype=jnp.int32) < k * block
                value = jnp.where(repeated[:, None], 0, value)
            total = accumulated(total, value, coords, spec.axes, sums, taps_once)
        return total, of_axes

    total = jnp.zeros((*flat_sizes(spec.axes), sums.width) if TEXELS in wrt else (), cotangent.dtype)
    of_axes = {k: jnp.zeros(samples, cotangent.dtype) for k in spec.axes_of(wrt)}
    total, of_axes = jax.lax.fori_loop(0, -(-samples // block), step, (total, of_axes))
    found = operand_cotangents({k: a.reshape(shape) for k, a in of_axes.items()}, operands, spec, wrt)
    if TEXELS in wrt:
        found[TEXELS] = as_texels(total, spec.axes, sums, texel_dtype)
    return tuple(found[k] for k in wrt)


def taps_once(coord: jax.Array, axis: Axis) -> Taps:
    """`taps`, computed once: the index and the part of a value are loops of their own, for each tap of the read."""
    return jax.tree.map(lambda x: materialized(x) if jnp.size(x) > 1 else x, taps(coord, axis))


def row_of_value(sample: jax.Array, shape: tuple[int, ...], own: tuple[int, ...]) -> jax.Array:
    """The row of the value of a sample among values of shape `own`, which broadcasts to that of the samples."""
    row, stride = jnp.zeros_like(sample), 1
    for n, m in zip(shape[::-1], own[::-1]):
        if m > 1:
            row = row + jax.lax.rem(sample, np.int32(n)) * np.int32(stride)
        sample, stride = jax.lax.div(sample, np.int32(n)), stride * m
    return row


def supports_adjoint(
    cotangent: Shaped, texels: Shaped | None, *operands: Shaped, spec: ReadSpec, batch: int, **_: Any
) -> bool:
    """Whether the samples of one texture are more than a block, and are counted in int32."""
    shapes = (shape[batch:] for shape in spec.sample_shapes(operands))
    samples, lanes = math.prod(np.broadcast_shapes(cotangent.shape[batch:-1], *shapes)), row_lanes(cotangent.shape[-1])
    small = math.prod(texels_shape(spec.axes, lanes)) < 2**31
    return small and samples * lanes > BLOCK and samples < 2**31
