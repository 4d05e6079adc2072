"""Mip levels as array operations: each is the box-filtered half of the one before."""

import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ..._tables.storage_formats import sum_dtype


def chain_of(values: jax.Array, *, shape: tuple[int, ...], ndim: int, num_levels: int, adjoint: bool) -> jax.Array:
    """The levels of chains one after the other, B + (total, C), from the finest ones, B + `shape`.

    Args:
        ndim: how many axes before the channels are halved.
        adjoint: whether it is the transpose: the cotangent of the finest levels, from that of the chains.
    """
    batch = values.shape[: -2 if adjoint else values.ndim - len(shape)]

    def chain(texels: jax.Array) -> jax.Array:
        return side_by_side([texels, *levels_after(texels, ndim, num_levels - 1)], len(batch))

    if not adjoint:
        return chain(values)
    return jax.linear_transpose(chain, jax.ShapeDtypeStruct((*batch, *shape), values.dtype))(values)[0]


def side_by_side(levels: Sequence[jax.Array], batch: int) -> jax.Array:
    """Levels one after the other, B + (total, C), from arrays with `batch` axes in front."""
    counts = [math.prod(level.shape[batch:-1]) for level in levels]
    rows = [level.reshape(*level.shape[:batch], count, level.shape[-1]) for level, count in zip(levels, counts)]
    return jnp.concatenate(rows, batch)


def levels_after(texels: jax.Array, ndim: int, count: int) -> list[jax.Array]:
    """So many levels that follow a level."""
    return [*itertools.accumulate(range(count), lambda level, _: next_of(level, ndim), initial=texels)][1:]


def next_of(texels: jax.Array, ndim: int) -> jax.Array:
    """The level after the level `texels`."""
    # Without the barrier, XLA computes each level again from the finest for every texel of the packed chain.
    return jax.lax.optimization_barrier(halved(texels, ndim))


def halved(texels: jax.Array, ndim: int) -> jax.Array:
    """One level from the one before: the box filter along each of the last `ndim` axes before the channels."""
    result = texels.astype(sum_dtype(texels.dtype))
    for axis in range(-1 - ndim, -1):
        result = halved_along(result, result.ndim + axis)
    return result.astype(texels.dtype)


def halved_along(texels: jax.Array, axis: int) -> jax.Array:
    n = texels.shape[axis]
    m = n >> 1
    if m == 0:
        return texels

    def every(first: int) -> jax.Array:
        return jax.lax.slice_in_dim(texels, first, first + 2 * m - 1, 2, axis)

    if n == 2 * m:
        return (every(0) + every(1)) * 0.5
    # Texel i covers [i n / m, (i + 1) n / m): of 2i all but i / m, 2i + 1 whole, of 2i + 2 the first (i + 1) / m.
    along = np.arange(m).reshape(-1, *[1] * (texels.ndim - 1 - axis)) / m
    first, third = (jnp.asarray(w * (m / n), texels.dtype) for w in (1 - along, along + 1 / m))
    shape = [1] * axis + list(first.shape)
    return every(0) * first.reshape(shape) + every(1) * (m / n) + every(2) * third.reshape(shape)
