"""A read as a texture unit does it: the walk of every read, with integer weights and exact sums at its end."""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import batching

from .._engine.axis import Axis
from .._engine.formats import decode, is_color
from .._engine.indexing import gather as gather_texels
from .._engine.lowering import gpu_kernels
from .._engine.primitives import Way, batching_rule, bind, primitive
from .._engine.texel_walk import Coords, Grid, Place, as_given, flat_sizes, walks
from ..modes import ReadMode
from .blend import SRGB_TABLE, blend, srgb_entry
from .border import stored_color
from .positions import ONE, taps
from .weights import footprints

# Reads of more channels than these are blended all at once: one after the other, they take long to compile.
MOST_SINGLE_CHANNELS = 4


def read(
    texels: jax.Array,
    border_color: jax.Array | None,
    operands: Sequence[jax.Array],
    axes: tuple[Axis, ...],
    read_mode: ReadMode,
    grid: Grid = as_given,
) -> jax.Array:
    """Reads `texels`, as `jaxtex.resample.read`, border colour included.

    Args:
        texels: ``(*sizes, C)`` or a mip chain ``(total, C)``, of float32, float16 or integers.
        operands: what `grid` makes the coordinates of: float32 for each filtered axis, int32 for layers and faces; for
            an axis of levels int32, in 1/256.

    Returns:
        S + (C,): float32, or integers read as elements in their own dtype.
    """
    color = stored_color(border_color, texels.shape[-1], texels.dtype, read_mode)
    return bind(read_p, texels, color, *operands, axes=axes, read_mode=read_mode, grid=grid, batch=0)


def by_arrays(texels, color, *operands, axes: tuple[Axis, ...], read_mode: ReadMode, grid: Grid) -> jax.Array:
    """The read of one texture, with the border's colour as a texel, (C,)."""
    stored = texels.reshape(*flat_sizes(axes), texels.shape[-1])

    def look(place: Place) -> jax.Array:
        texel = gather_texels(stored, place.stored)
        if place.inside is None:
            return texel
        return jnp.where(place.inside[..., None], texel, color.reshape(*[1] * (texel.ndim - 1), -1))

    split = not jnp.issubdtype(texels.dtype, jnp.integer) and texels.shape[-1] <= MOST_SINGLE_CHANNELS
    return value(look, grid(*operands), axes, read_mode, texels.dtype, split)


def by_kernel(
    texels, color, *operands, axes: tuple[Axis, ...], read_mode: ReadMode, grid: Grid, batch: int, interpret=False
) -> jax.Array:
    """`by_arrays` over `batch` leading axes, on which an operand has their size or 1, and the colour 1."""
    what = functools.partial(value, axes=axes, read_mode=read_mode, stored=texels.dtype)
    dtype = result_dtype(texels.dtype, read_mode)
    return gpu_kernels.each_sample(
        what, texels, color, operands, axes, dtype, batch, grid, "texture_unit_read", interpret
    )


def result_dtype(stored: np.dtype, read_mode: ReadMode) -> np.dtype:
    whole = jnp.issubdtype(stored, jnp.integer) and read_mode is ReadMode.ELEMENT
    return np.dtype(stored if whole else np.float32)


def value(
    look: gpu_kernels.Look,
    coords: Coords,
    axes: tuple[Axis, ...],
    read_mode: ReadMode,
    stored: np.dtype,
    split: bool = False,
) -> jax.Array:
    """The value at each of `coords`, S + (C,), of texels as `look` finds them at a place, S + (C,), as stored.

    Args:
        split: whether XLA is to blend one channel at a time on a GPU.
    """
    taken = [list(footprints(*walk)) for walk in walks(coords, axes, taps, ONE)]
    if len(taken) == len(taken[0]) == len(taken[0][0]) == 1:
        return single(look(taken[0][0][0].place), read_mode)

    def looked_at(footprint):
        texels = [look(place) for place, _ in footprint]
        weights = (jnp.broadcast_to(jnp.asarray(w, jnp.int32), t.shape[:-1]) for t, (_, w) in zip(texels, footprint))
        return [(t, w[..., None]) for t, w in zip(texels, weights)]

    looked = [[looked_at(f) for f in level] for level in taken]
    whole = functools.partial(blend, stored=stored, read_mode=read_mode)
    if not split:
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


def single(texel: jax.Array, read_mode: ReadMode) -> jax.Array:
    """The value of one texel, unblended."""
    result = result_dtype(texel.dtype, read_mode)
    value = decode(texel, ReadMode.NORMALIZED_FLOAT if read_mode is ReadMode.SRGB_FLOAT else read_mode, result)
    if read_mode is not ReadMode.SRGB_FLOAT:
        return value
    return jnp.where(is_color(value), srgb_entry(SRGB_TABLE, texel).astype(jnp.float32) * 2.0**-16, value)


read_p = primitive(
    "texture_unit_read",
    by_arrays,
    "axes",
    "read_mode",
    "grid",
    ways=[Way("cuda", by_kernel, gpu_kernels.suits_exact)],
)
batching.primitive_batchers[read_p] = batching_rule(read_p, lambda _: (0, 1), lambda _: False)
