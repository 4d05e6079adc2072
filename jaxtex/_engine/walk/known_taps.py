"""Reads whose taps are known to be all inside the texture, or all outside, from one look at each coordinate."""

import functools
import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from ..._tables.address_rules import INSIDE
from ..describe.axis import Axis, Role
from ..describe.operands import Coords
from ..describe.spec import Combination, ReadSpec
from .texel_order import INDEX_LIMIT
from .texel_walk import texels_per_unit

# Below this size, float32 holds the number of every texel, and of half a texel.
SIZE_LIMIT = 2**22
# A read of more taps is too long to be written twice.
MOST_TAPS = 64


def read_inside(spec: ReadSpec) -> ReadSpec | None:
    """The spec of the same read where all of its taps are inside; `None` if no look at the coordinates tells that."""
    blends = spec.combination is Combination.BLEND and spec.several is None and spec.expected is None
    axes = with_taps_inside(spec.axes, spec.sums) if blends and spec.num_taps <= MOST_TAPS else None
    return None if axes is None else spec.replace(axes=axes)


def with_taps_inside(axes: tuple[Axis, ...], dtype: DTypeLike) -> tuple[Axis, ...] | None:
    """Axes for coordinates whose taps are all inside, see `taps_are_inside`; `None` if there are none such."""
    spaces = [axis for axis in axes if axis.role is Role.SPACE]
    plain = all(axis.role in (Role.SPACE, Role.WEIGHT) and axis.stored is None for axis in axes)
    known = all(isinstance(a.size, int) and a.kernel.num_taps <= a.size < SIZE_LIMIT and not a.integer for a in spaces)
    if not (plain and known and dtype == jnp.float32) or any(axis.address.apply is None for axis in spaces):
        return None
    if math.prod(axis.known_size for axis in spaces) >= INDEX_LIMIT:
        return None
    return tuple(axis._replace(address=INSIDE) if axis.role is Role.SPACE else axis for axis in axes)


def taps_are_inside(coords: Coords, axes: tuple[Axis, ...]) -> jax.Array:
    """Whether all taps are known to be inside, for axes of `with_taps_inside`; it may be false for some that are.

    One comparison on an axis is enough: as integers, the bits of negative numbers and of NaN are large.
    """
    bits = functools.partial(jax.lax.bitcast_convert_type, new_dtype=jnp.uint32)
    last = lambda axis: jnp.float32(axis.known_size - axis.kernel.num_taps + 1)
    return functools.reduce(jnp.logical_and, (bits(at) < bits(last(axis)) for at, axis in first_taps(coords, axes)))


def taps_are_outside(coords: Coords, axes: tuple[Axis, ...]) -> jax.Array:
    """Whether all taps are known to be outside, for axes of `with_taps_inside` whose rules drop such taps."""
    outside = ((at < 1 - axis.kernel.num_taps) | (at >= axis.known_size) for at, axis in first_taps(coords, axes))
    return functools.reduce(jnp.logical_or, outside)


def first_taps(coords: Coords, axes: tuple[Axis, ...]) -> Iterator[tuple[jax.Array, Axis]]:
    """Along each axis of space, the number of the first tap plus the fraction; NaN stays NaN."""
    for coord, axis in zip(coords, axes, strict=True):
        if axis.role is Role.SPACE:
            shifted = coord * texels_per_unit(axis, coord.dtype) - axis.kernel.origin
            yield (shifted + axis.kernel.first if axis.kernel.first else shifted), axis
