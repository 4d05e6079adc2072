"""Texels of uint8 in words of four bytes, the first channel lowest: one load for each texel on a CPU.

XLA vectorizes the loop over samples, but not its loads, and those of single bytes are most of its instructions.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.indexing import gather
from ..describe.spec import ReadSpec
from ..walk.texel_walk import TexelAddress
from . import outside
from .operators import LoadTexel

WORD = np.dtype(np.uint32)


def for_channels(words: jax.Array, channels: int) -> jax.Array:
    """The words of texels, (..., 1), for each of their channels: (..., channels).

    The compiler loads one of them. To broadcast what is loaded would end XLA's loop.
    """
    return jnp.broadcast_to(words, (*words.shape[:-1], channels))


def bytes_in(words: jax.Array, channels: int) -> jax.Array:
    """The bytes of words, (..., 1) or (..., channels): the one of each channel, (..., channels)."""
    axis = words.ndim - 1
    shift = jax.lax.broadcasted_iota(WORD, [1] * axis + [channels], axis) * 8
    return (words >> shift).astype(np.uint8)


def loads_bytes(words: jax.Array) -> LoadTexel:
    """Loads texels of uint8 from `for_channels`."""

    def load(address: TexelAddress) -> jax.Array:
        return bytes_in(gather(words, address.flat_index), words.shape[-1])

    return load


def read(
    words: jax.Array, channels: int, color: jax.Array | None, operands: Sequence[jax.Array], spec: ReadSpec
) -> jax.Array:
    """The engine's read over a color, or zero, of texels in words, (..., 1), without derivatives."""
    args = operands if color is None else (color, *operands)
    return outside.read(for_channels(words, channels), *args, spec=spec.over(color), loads=loads_bytes)
