"""The level of detail of a footprint, its bounds, and the reads along a long footprint."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._tables.address_rules import CLAMP
from ..._tables.filter_kernels import LEVEL_BLEND, NEAREST_LEVEL
from ...modes import FilterMode
from ...sampler import Sampler
from .axis import Axis, Role
from .operands import Arrays, Coords, Grid

# A footprint of this length, in texels, covers every texture.
SIDE_LIMIT = 2.0**56
# A ratio of sides that exceeds a whole number by no more than roundings, relative to it, counts as that number.
ROUNDING = 2.0**-20


def limited(side: jax.Array) -> jax.Array:
    """A component of a footprint's side, clipped so that its square is finite; clipped components have no gradient."""
    return jnp.where(jnp.abs(side) < SIDE_LIMIT, side, jax.lax.stop_gradient(jnp.clip(side, -SIDE_LIMIT, SIDE_LIMIT)))


def level_axis(num_levels: int, sampler: Sampler) -> Axis:
    """The axis of mip levels, which comes first in a read whose samples choose their level."""
    kernel = LEVEL_BLEND if sampler.mipmap_filter_mode is FilterMode.LINEAR else NEAREST_LEVEL
    return Axis(num_levels, kernel, CLAMP, role=Role.LEVEL)


class InChain(NamedTuple):
    """The grid of a mip chain: its operands are a level of detail, and the operands of the grid within a level."""

    sampler: Sampler
    num_levels: int
    within: Grid

    def __call__(self, lod: jax.Array, *operands: jax.Array) -> Coords:
        return clamped(biased(lod, self.sampler), self.sampler, self.num_levels), *self.within(*operands)


def biased(lod: jax.Array, sampler: Sampler) -> jax.Array:
    """A level of detail plus the sampler's bias; NaN acts as level 0."""
    return jnp.where(lod == lod, lod, 0) + sampler.mipmap_level_bias


def clamped(lod: jax.Array, sampler: Sampler, num_levels: int | jax.Array) -> jax.Array:
    """A level of detail, clipped to the sampler's bounds, the upper one first, and then to the chain's levels."""
    last = num_levels - 1
    for low, high in (
        (sampler.min_mipmap_level_clamp, sampler.max_mipmap_level_clamp),
        (0, last.astype(lod.dtype) if isinstance(last, jax.Array) else last),
    ):
        lod = jnp.where(lod < high, lod, jnp.asarray(high, lod.dtype))  # at the bound the derivative is 0
        lod = jnp.where(lod < low, lod.dtype.type(low), lod)
    return lod


class FootprintLevel(NamedTuple):
    """The level of detail of a footprint, and the reads along its longest side.

    Attributes:
        lod: the level of detail; minus infinity for a footprint that is a point.
        side: the longest side, in the units of the caller's coordinates.
    """

    lod: jax.Array
    num_reads: jax.Array
    side: Arrays


def footprint_level(sides: Sequence[Arrays], in_texels: Sequence[Arrays], max_anisotropy: int) -> FootprintLevel:
    """The level of detail of a footprint, and the reads along its longest side.

    With the lengths rho of the longest side and the next, ``eta = min(rho_longest / rho_next, max_anisotropy)``, there
    are ceil(eta) reads at level ``log2(rho_longest / eta)``; a ratio that only roundings put above a whole number
    counts as that number. Lengths stay squared, so that no root is taken at zero.

    Args:
        sides: two sides, or three for the footprint of a voxel, in the units of the caller's coordinates.
        in_texels: these sides in texels of the finest level, with finite squares.

    Source: Vulkan specification, "Scale Factor Operation, LOD Operation and Image Level(s) Selection".
    """
    squares = [functools.reduce(jnp.add, map(jnp.square, side)) for side in in_texels]
    # Of two equal sides, the second counts as the longest.
    is_longer = squares[0] > squares[1]
    longest, shorter = (jnp.where(is_longer, a, b) for a, b in (squares[:2], squares[1::-1]))
    side = tuple(jnp.where(is_longer, a, b) for a, b in zip(*sides[:2]))
    # A third side takes its place among the two.
    for square, other in zip(squares[2:], sides[2:]):
        is_longer = square > longest
        shorter = jnp.where(is_longer, longest, jnp.where(square > shorter, square, shorter))
        longest = jnp.where(is_longer, square, longest)
        side = tuple(jnp.where(is_longer, a, b) for a, b in zip(other, side))
    # The level of one read, at which the longest side is a texel long.
    has_area = longest > 0
    lod = jnp.log2(jnp.where(has_area, longest, 1)) * 0.5
    num_reads = jnp.ones_like(lod)
    # Several reads allow a finer level; where the footprint is too long for them, eta is the largest.
    if max_anisotropy > 1:
        bounded = longest < shorter * max_anisotropy**2
        ratio = jnp.where(has_area & bounded, longest, 1) / jnp.where(has_area & bounded, shorter, 1)
        eta = jnp.where(bounded, jnp.sqrt(ratio), max_anisotropy)
        lod, num_reads = lod - jnp.log2(eta), jnp.where(has_area, jnp.ceil(eta * (1 - ROUNDING)), 1)
    return FootprintLevel(jnp.where(has_area, lod, lod.dtype.type(-np.inf)), num_reads, side)


def along_side(coords: Arrays, side: Arrays, num_reads: jax.Array, number: jax.Array) -> tuple[Arrays, jax.Array]:
    """The coordinates and the weight of a read along a side of a footprint.

    Args:
        number: the number of the read, from 1; beyond `num_reads` its weight is 0.
    """
    # The middle read of an odd number lies at the center exactly, whatever a division rounds to.
    taken = number <= num_reads
    offset = jnp.where(taken, (number - 0.5 * (num_reads + 1)) / (num_reads + 1), 0)
    return tuple(c + offset * limited(d) for c, d in zip(coords, side)), jnp.where(taken, 1 / num_reads, 0)
