"""The adjoint of a read on a CPU: block of samples by block.

XLA writes the index and the weighted value of every tap of every sample to memory before it scatters them, and memory
that is touched for the first time is what costs most there. In blocks it is the same few pages again and again.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from ...modes import ReadMode
from ..axis import Axis
from ..operators import TEXELS, accumulated, as_texels, coordinate_cotangents, crowd, over_batch, texels_shape, units
from ..reproducible_sum import Sums, power_above, row_lanes
from ..texel_walk import Grid, as_given, flat_sizes

# The numbers of one tap in a block.
BLOCK = 2**16
FEWEST_SAMPLES = 2**10


def splat(values, *operands, batch: int, **static):
    """`resample.splat` over `batch` leading axes, one after the other."""
    static |= {"wanted": (TEXELS,), "stored": static["dtype"], "read_mode": ReadMode.ELEMENT, "dtype": values.dtype}
    run = functools.partial(block_by_block, **static)
    return over_batch(lambda values, *some: run(values, None, *some), batch, jax.lax.map)(values, *operands)[0]


def pullback(cotangent, texels, *operands, batch: int, **static):
    """`resample.pullback` over `batch` leading axes, one after the other."""
    run = functools.partial(block_by_block, stored=texels.dtype, **static)
    return over_batch(run, batch, jax.lax.map)(cotangent, texels, *operands)


def block_by_block(
    cotangent,
    texels,
    *operands,
    axes: tuple[Axis, ...],
    wanted: tuple[int, ...],
    stored: np.dtype,
    deterministic: bool,
    read_mode: ReadMode,
    dtype: np.dtype,
    grid: Grid = as_given,
) -> tuple[jax.Array, ...]:
    """The cotangents in the order of `wanted`; those of the texels have dtype `stored`."""
    coords = grid(*operands)
    shape, count = cotangent.shape[:-1], cotangent.shape[-1]
    samples = math.prod(shape)
    block = min(samples, max(FEWEST_SAMPLES, BLOCK // power_above(count)))
    count_samples = functools.partial(crowd, coords=coords)
    cut = units(cotangent, axes, count_samples) if deterministic and TEXELS in wanted else None
    sums = Sums(count, row_lanes(count), cut)
    flat = [cotangent.reshape(samples, count), *(jnp.broadcast_to(c, shape).reshape(samples) for c in coords)]
    slopes_of = functools.partial(coordinate_cotangents, axes=axes, read_mode=read_mode, dtype=dtype, wanted=wanted)

    def step(k: jax.Array, state: tuple[jax.Array, tuple[jax.Array, ...]]):
        total, found = state
        # The last block ends with the last sample, and gives no texel again what those before it gave.
        start = jnp.minimum(k * block, samples - block)
        value, *where = (jax.lax.dynamic_slice_in_dim(a, start, block) for a in flat)
        if found:
            slopes = slopes_of(value, texels, where)
            put = lambda a, v: jax.lax.dynamic_update_slice_in_dim(a, v.astype(a.dtype), start, 0)
            found = tuple(map(put, found, slopes))
        if TEXELS in wanted:
            if samples % block:
                again = start + jnp.arange(block, dtype=jnp.int32) < k * block
                value = jnp.where(again[:, None], 0, value)
            total = accumulated(total, value, where, axes, sums)
        return total, found

    total = jnp.zeros((*flat_sizes(axes), sums.width) if TEXELS in wanted else (), cotangent.dtype)
    found = tuple(jnp.zeros(samples, cotangent.dtype) for k in wanted if k != TEXELS)
    total, found = jax.lax.fori_loop(0, -(-samples // block), step, (total, found))
    of_coords = tuple(a.reshape(shape) for a in found)
    return (as_texels(total, axes, sums, stored), *of_coords) if TEXELS in wanted else of_coords


def suits(first, *operands, axes: tuple[Axis, ...], batch: int, **_) -> bool:
    """Whether the samples of one texture are more than a block, and are counted in int32."""
    samples = math.prod(first.shape[batch:-1])
    lanes = row_lanes(first.shape[-1])
    small = math.prod(texels_shape(axes, lanes)) < 2**31
    return small and samples * lanes > BLOCK and samples < 2**31
