"""The reference read, in plain `jax.numpy`, with which every faster form of a read is compared.

On each axis, a coordinate becomes a position in texels. The filter gives the taps around the position and their
weights; the address rule gives the texel that a tap reads. The value is a sum over all combinations of one tap on each
axis: the product of the weights, times the texel, or times the border color if a tap lies outside the texture.

A layer is one more axis: its number is a position, its filter is `POINT` and its rule is `LAST`. A read of a mip chain
is a sum over its levels: the read of a level, times the weight of the level's tap on the axis of levels (filters
`LEVEL_BLEND`, `NEAREST_LEVEL`).
"""

import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from .._tables.address_rules import AddressRule
from .._tables.filter_kernels import FilterKernel
from .._tables.storage_formats import Decoding, storage_format

# Larger coordinates and positions act as 0: from 2^24 on, a float32 has no fraction, and a tap is an int32.
COORDINATE_LIMIT, POSITION_LIMIT = 2.0**24, 2.0**30


def decoded(texels: jax.Array, decoding: Decoding, dtype: DTypeLike) -> jax.Array:
    """Stored texels as numbers: as they are, or codes divided by the largest code, sRGB codes as linear light."""
    if decoding is Decoding.ELEMENT:
        return texels.astype(dtype)
    bits = storage_format(texels.dtype).fraction_bits
    assert bits is not None, "a dtype of codes"
    stored = np.iinfo(texels.dtype)
    share_of_code = np.maximum(np.arange(stored.min, stored.max + 1) / (2**bits - 1), -1)  # devices may round otherwise
    share = jnp.asarray(share_of_code, dtype)[texels.astype(jnp.int32) - stored.min]
    colors = 0 if decoding is Decoding.FRACTION else 3 if texels.shape[-1] >= 3 else 1  # the others are alpha
    code, alpha = share[..., :colors], share[..., colors:]
    light = jnp.where(code <= 0.04045, code / 12.92, ((code + 0.055) / 1.055) ** 2.4)  # IEC 61966-2-1
    return jnp.concatenate([light, alpha], -1)


def read(
    texels: jax.Array,
    coords: Sequence[jax.Array],
    kernels: Sequence[FilterKernel],
    rules: Sequence[AddressRule],
    normalized: Sequence[bool],
    color: ArrayLike = 0,
    decoding: Decoding = Decoding.ELEMENT,
    dtype: DTypeLike = jnp.float32,
) -> jax.Array:
    """The value of a texture at coordinates: S + (C,) of `dtype`. JAX differentiates it in texels, color and coords.

    Args:
        texels: sizes + (C,), one size for each axis, the slowest axis first.
        coords, kernels, rules: for each axis, its coordinates, of one shape S, its filter, and its address rule.
        normalized: for each axis, whether coordinates run from 0 to 1, or from 0 to the size of the axis.
        color: the border color, a number or (C,).
        decoding: how stored texels become numbers.
    """
    *sizes, channels = texels.shape
    numbers, terms = decoded(texels, decoding, dtype), []
    outside = jnp.broadcast_to(color, (*coords[0].shape, channels)).astype(dtype)
    axes = [taps_of_axis(*axis) for axis in zip(coords, sizes, kernels, rules, normalized, strict=True)]
    for taps in itertools.product(*axes):
        weight = functools.reduce(jnp.multiply, (tap.weight for tap in taps))
        inside = functools.reduce(jnp.logical_and, (tap.inside for tap in taps))
        texel = jnp.where(inside[..., None], numbers[tuple(tap.index for tap in taps)], outside)
        terms.append(weight[..., None].astype(dtype) * texel)
    return functools.reduce(jnp.add, terms)


class Tap(NamedTuple):
    """The taps of all samples with one number: weight, stored index, and whether they lie inside the texture."""

    weight: jax.Array
    index: jax.Array
    inside: jax.Array


def taps_of_axis(coord: jax.Array, size: int, kernel: FilterKernel, rule: AddressRule, normalized: bool) -> list[Tap]:
    """The taps around a coordinate on an axis of `size` texels."""
    assert rule.apply is not None, "a rule of one axis"
    shifted = position(coord, size, kernel, rule, normalized) - kernel.origin
    low, taps = jnp.floor(shifted), []
    for number, weight in enumerate(kernel.weights.at(shifted - low, 0), kernel.first):
        index, inside = rule.apply(low.astype(jnp.int32) + number, size)
        inside = jnp.ones(low.shape, bool) if inside is None else inside
        taps.append(Tap(jnp.broadcast_to(weight, low.shape), index, inside))
    return taps


def position(coord: jax.Array, size: int, kernel: FilterKernel, rule: AddressRule, normalized: bool) -> jax.Array:
    """A coordinate in texels. Texel i spans [i, i + 1), with its center at i + 0.5. NaN acts as 0."""
    if normalized and rule.repeats:
        coord = jnp.where(jnp.abs(coord) < COORDINATE_LIMIT, coord, 0)
        coord = coord - 2 * jnp.trunc(coord / 2)  # exact, and a whole number of periods
    place = coord * size if normalized else coord
    if rule.saturates:  # beyond the width of the filter, all positions outside give one value, infinite ones too
        return jnp.clip(jnp.where(jnp.isnan(place), 0, place), -kernel.num_taps, size + kernel.num_taps)
    return jnp.where(jnp.abs(place) < POSITION_LIMIT, place, 0)
