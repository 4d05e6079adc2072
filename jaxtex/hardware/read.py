"""A read as a texture unit does it: the walk of every read, with integer weights and exact sums at its end."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..axis import Axis
from ..formats import decode, is_color
from ..indexing import gather as gather_texels
from ..modes import ReadMode
from ..places import Coords, Place, flat_sizes, walks
from .blend import SRGB_TABLE, blend, srgb_entry
from .border import stored_color
from .positions import ONE, taps
from .weights import footprints

# Reads of more channels than these are blended all at once: one after the other, they take long to compile.
MOST_SINGLE_CHANNELS = 4


def read(
    texels: jax.Array, border_color: jax.Array | None, coords: Coords, axes: tuple[Axis, ...], read_mode: ReadMode
) -> jax.Array:
    """Reads `texels`, as `jaxtex.resample.read`, border colour included.

    Args:
        texels: ``(*sizes, C)`` or a mip chain ``(total, C)``, of float32, float16 or integers.
        coords: float32 for each filtered axis, int32 for layers and faces; for an axis of levels int32, in 1/256.

    Returns:
        S + (C,): float32, or integers read as elements in their own dtype.
    """
    taken = [list(footprints(*walk)) for walk in walks(coords, axes, taps, ONE)]
    look = lambda place: stored_texel(texels, border_color, place, axes, read_mode)
    if len(taken) == len(taken[0]) == len(taken[0][0]) == 1:
        return single(look(taken[0][0][0].place), read_mode)

    def looked_at(footprint):
        texels = [look(place) for place, _ in footprint]
        weights = (jnp.broadcast_to(jnp.asarray(w, jnp.int32), t.shape[:-1]) for t, (_, w) in zip(texels, footprint))
        return [(t, w[..., None]) for t, w in zip(texels, weights)]

    looked = [[looked_at(f) for f in level] for level in taken]
    whole = functools.partial(blend, stored=texels.dtype, read_mode=read_mode)
    if jnp.issubdtype(texels.dtype, jnp.integer) or texels.shape[-1] > MOST_SINGLE_CHANNELS:
        return whole(looked)
    return jax.lax.platform_dependent(looked, cuda=channel_by_channel(whole), default=whole)


def channel_by_channel(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """`function`, which treats all channels alike, one channel at a time.

    So XLA computes places and weights once a sample on a GPU. Otherwise it writes them to memory, twelve arrays of
    them, rather than repeat them for every channel; the read takes 1.4 times as long.
    """

    def run(levels):
        channels = range(levels[0][0][0][0].shape[-1])
        one = lambda c: function([[[(v[..., c], w[..., 0]) for v, w in f] for f in level] for level in levels])
        return jnp.stack([one(c) for c in channels], axis=-1)

    return run


def gather(
    texels: jax.Array, border_color: jax.Array | None, coords: Coords, axes: tuple[Axis, ...], read_mode: ReadMode
) -> jax.Array:
    """A read of one tap, as a gather returns it: signed bytes come from 16-bit codes."""
    if texels.dtype != np.int8 or read_mode is ReadMode.ELEMENT:
        return read(texels, border_color, coords, axes, read_mode)
    k = read(texels, border_color, coords, axes, ReadMode.ELEMENT).astype(jnp.int32)
    code = jnp.minimum(jnp.abs(k) * 258 + (jnp.abs(k) >= jnp.where(k < 0, 65, 64)).astype(jnp.int32), 32767)
    return decode(jnp.where(k < 0, -code, code).astype(jnp.int16), read_mode, np.dtype(np.float32))


def stored_texel(texels, border_color, place: Place, axes: tuple[Axis, ...], read_mode: ReadMode) -> jax.Array:
    """The texel at a place as it is stored, the border's outside."""
    stored = texels.reshape(*flat_sizes(axes), texels.shape[-1])
    texel = gather_texels(stored, place.stored)
    if place.inside is None:
        return texel
    color = stored_color(border_color, texels.shape[-1], texels.dtype, read_mode)
    return jnp.where(place.inside[..., None], texel, color.reshape(*[1] * (texel.ndim - 1), -1))


def single(texel: jax.Array, read_mode: ReadMode) -> jax.Array:
    """The value of one texel, unblended."""
    integer = jnp.issubdtype(texel.dtype, jnp.integer)
    result = texel.dtype if integer and read_mode is ReadMode.ELEMENT else np.dtype(np.float32)
    value = decode(texel, ReadMode.NORMALIZED_FLOAT if read_mode is ReadMode.SRGB_FLOAT else read_mode, result)
    if read_mode is not ReadMode.SRGB_FLOAT:
        return value
    return jnp.where(is_color(value), srgb_entry(SRGB_TABLE, texel).astype(jnp.float32) * 2.0**-16, value)
