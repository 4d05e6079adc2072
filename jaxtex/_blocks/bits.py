"""Bit fields of blocks, and the indices and weights by which texels blend colors.

A block is a few words of 32 bits, the lowest first; its bits have numbers from 0, the lowest bit of the first byte. The
arrays in this package have a first axis of N blocks.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

TEXELS = 16
# The number of each texel in its block, for every block.
TEXEL = np.arange(TEXELS, dtype=np.int32)[None]


def words_of(blocks: jax.Array) -> jax.Array:
    """The words of blocks of bytes, (N, B) to (N, B / 4), uint32."""
    return jax.lax.bitcast_convert_type(blocks.reshape(len(blocks), -1, 4), jnp.uint32)


def bits(words: jax.Array, start: ArrayLike, width: ArrayLike) -> jax.Array:
    """The fields of `width` bits, at most 31, from bit `start` on, as int32.

    Args:
        words: (N, W), the words of a block.
        start, width: broadcast to (N, K): the places of K fields in each block.
    """
    start = jnp.asarray(start, jnp.int32)
    padded = [words[..., k, None] for k in range(words.shape[-1])] + [jnp.zeros((), jnp.uint32)]

    def word(place: jax.Array) -> jax.Array:
        # A chain of selects fuses into one kernel; a gather does not.
        chosen = padded[-1]
        for k, candidate in enumerate(padded[:-1]):
            chosen = jnp.where(place == k, candidate, chosen)
        return chosen

    # Bits of the next word. A shift by 32 bits is undefined; shifts by 31 and 1 are not.
    shift = (start & 31).astype(jnp.uint32)
    low, high = word(start >> 5) >> shift, word((start >> 5) + 1) << (31 - shift) << 1
    mask = (jnp.uint32(1) << jnp.asarray(width, jnp.uint32)) - 1
    return ((low | high) & mask).astype(jnp.int32)


def indices(words: jax.Array, start: ArrayLike, width: ArrayLike, anchors: jax.Array) -> jax.Array:
    """The index of each texel, (N, 16). Indices of anchors lack their highest bit, which is 0.

    Args:
        words: (N, W).
        start, width: broadcast to (N, 1): of the first index, and the bits of an index.
        anchors: bool, broadcasts to (N, 16).
    """
    anchors = anchors.astype(jnp.int32)
    before = jnp.cumsum(anchors, -1) - anchors
    return bits(words, start + width * TEXEL - before, width - anchors)


def blend(first: jax.Array, last: jax.Array, index: jax.Array, width: ArrayLike) -> jax.Array:
    """Number `index` of 2^width evenly spaced integers from `first` to `last`, rounded."""
    most = (1 << jnp.asarray(width, jnp.int32)) - 1
    weight = (64 * index + most // 2) // jnp.maximum(most, 1)
    return ((64 - weight) * first + weight * last + 32) >> 6


def rgb10a2_texels(blocks: jax.Array) -> jax.Array:
    """The texels of packed words, (N, 4) to (N, 1, 4), uint16, as a texture unit blends them: codes are repeated."""
    codes = bits(words_of(blocks), np.array([[0, 10, 20, 30]]), np.array([[10, 10, 10, 2]]))
    wide = jnp.concatenate([codes[:, :3] << 6 | codes[:, :3] >> 4, 0x5555 * codes[:, 3:]], -1)
    return wide[:, None].astype(jnp.uint16)
