"""BC1 to BC5: a block has two colors, or two numbers, and each texel the index of a blend of them.

The documentation of these formats leaves the rounding open. Here it is that of an NVIDIA texture unit, whose weights
are thirds, fifths and sevenths, rounded to a few bits.
"""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from .bits import TEXEL, bits, words_of

# Interpolation weights: in units of 1/2048 for numbers of 8 bits, and of 1/257 for numbers of 16 bits.
THIRD, HALF = 642, 1026
SEVENTHS, FIFTHS = (289, 578, 1156), (385, 770)
SEVENTHS_OF_16_BITS, FIFTHS_OF_16_BITS = (36, 72, 144), (48, 96)

# An interpolation: a function of both ends and the weight of the second.
Way = Callable[[jax.Array, jax.Array, int], jax.Array]


def bc1_texels(blocks: jax.Array) -> jax.Array:
    """The texels of BC1 blocks, (N, 8) to (N, 16, 4), uint8. Of three colors, the fourth is (0, 0, 0, 0)."""
    words = words_of(blocks)
    return color_texels(words, bits(words, 0, 16) > bits(words, 16, 16))


def bc2_texels(blocks: jax.Array) -> jax.Array:
    """The texels of BC2 blocks, (N, 16) to (N, 16, 4), uint8: an alpha of four bits, and four colors."""
    words = words_of(blocks)
    alpha = 17 * bits(words, 4 * TEXEL, 4)
    return color_texels(words[..., 2:], np.True_).at[..., 3].set(alpha.astype(jnp.uint8))


def bc3_texels(blocks: jax.Array) -> jax.Array:
    """The texels of BC3 blocks, (N, 16) to (N, 16, 4), uint8: one of eight alphas, and four colors."""
    words = words_of(blocks)
    first, last = bits(words, 0, 8), bits(words, 8, 8)
    alpha = number_texels(words, first, last, way_of_8_bits, (*SEVENTHS, *FIFTHS), (0, 0xFF))
    return color_texels(words[..., 2:], np.True_).at[..., 3].set(alpha.astype(jnp.uint8))


def bc4_texels(blocks: jax.Array, *, signed: bool) -> jax.Array:
    """The texels of BC4 blocks, (N, 8) to (N, 16, 1), uint16 or int16: one of eight numbers."""
    words = words_of(blocks)
    first, last = bits(words, 0, 8), bits(words, 8, 8)
    if signed:
        first, last = (jnp.maximum(number << 24 >> 24, -0x7F) for number in (first, last))

    def way(start: jax.Array, stop: jax.Array, weight: int) -> jax.Array:
        size = jnp.abs(start)
        wide = jnp.sign(start) * (size << 8 | size << 1 | size >> 6) if signed else 257 * start
        return wide + weight * (stop - start)

    limits = (-0x7FFF, 0x7FFF) if signed else (0, 0xFFFF)
    texels = number_texels(words, first, last, way, (*SEVENTHS_OF_16_BITS, *FIFTHS_OF_16_BITS), limits)
    return texels[..., None].astype(jnp.int16 if signed else jnp.uint16)


def bc5_texels(blocks: jax.Array, *, signed: bool) -> jax.Array:
    """The texels of BC5 blocks, (N, 16) to (N, 16, 2), uint16 or int16: two blocks of BC4."""
    return jnp.concatenate([bc4_texels(blocks[:, half], signed=signed) for half in (np.s_[:8], np.s_[8:])], -1)


def way_of_8_bits(start: jax.Array, stop: jax.Array, weight: int) -> jax.Array:
    """The interpolation of numbers of 8 bits."""
    way = stop - start
    return start + jnp.sign(way) * (weight * jnp.abs(way) + 1024 >> 11)


def number_texels(
    words: jax.Array, first: jax.Array, last: jax.Array, way: Way, weights: Sequence[int], limits: tuple[int, int]
) -> jax.Array:
    """The numbers of texels, (N, 16), by indices of three bits.

    Args:
        words: (N, 2), two numbers of 8 bits, and the indices.
        first, last: (N, 1), the two numbers as they are compared.
        weights: of the first three blends of eight numbers, and of the first two of six.
        limits: the last two of eight numbers where there are six.
    """
    w1, w2, w3, v1, v2 = weights
    ends = [way(first, last, 0), way(last, first, 0)]
    there, back = functools.partial(way, first, last), functools.partial(way, last, first)
    eight = [there(w1), there(w2), back(w3), there(w3), back(w2), back(w1)]
    six = [there(v1), there(v2), back(v2), back(v1), *limits]
    index = bits(words, 16 + 3 * TEXEL, 3)
    return of_index(index, ends + [jnp.where(first > last, more, less) for more, less in zip(eight, six)])


def color_texels(words: jax.Array, has_four: jax.Array | np.bool_) -> jax.Array:
    """The colors of texels, (N, 16, 4), uint8, of two colors of 16 bits and indices of two bits in two words.

    Args:
        has_four: (N, 1) bool, whether there are four colors, not three.
    """
    index = bits(words, 32 + 2 * TEXEL, 2)
    channels: list[jax.Array] = []
    for place, width in ((11, 5), (5, 6), (0, 5)):
        first, last = bits(words, place, width), bits(words, place + 16, width)
        wide_first, wide_last = (end << 8 - width | end >> 2 * width - 8 for end in (first, last))
        if width == 6:
            third, two_thirds = (
                way_of_8_bits(*ends, THIRD) for ends in ((wide_first, wide_last), (wide_last, wide_first))
            )
            half = way_of_8_bits(wide_first, wide_last, HALF)
        else:
            third, two_thirds = (2 * first + last) * 22 >> 3, (first + 2 * last) * 22 >> 3
            half = (first + last) * 33 >> 3
        rest = [jnp.where(has_four, third, half), jnp.where(has_four, two_thirds, 0)]
        channels.append(of_index(index, [wide_first, wide_last, *rest]))
    alpha = jnp.where((index == 3) & ~has_four, 0, 0xFF)
    return jnp.stack([*channels, alpha], -1).astype(jnp.uint8)


def of_index(index: jax.Array, numbers: Sequence[jax.Array]) -> jax.Array:
    """The number at each index."""
    chosen = numbers[0]
    for k, number in enumerate(numbers[1:], 1):
        chosen = jnp.where(index == k, number, chosen)
    return chosen
