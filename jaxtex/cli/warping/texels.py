"""The texels of an image in a flat array of few capacities, so that programs serve images of many sizes."""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..._engine.compute import sized_chain
from ..._engine.compute.decoding import WORD, bytes_in
from .light import to_light
from .mappings import Array
from .pixels import premultiply, to_fractions

# The least capacity of numbers, which begin as zeros, and of stored texels. Of those, each capacity is four times the
# one before: what an image does not fill is never touched.
LEAST, LEAST_STORED, STORED_STEP = 2**16, 2**22, 2
# Devices read arrays of NumPy where they lie if they begin at a multiple of this.
ALIGNMENT = 64
# Capacity of the weights of a chain, and its most levels, by the longest side: the first that is long enough.
LONGEST_SIDES = (2**12, 2**16, 2**20, 2**24)


def capacity_of(count: int, least: int = LEAST, step: int = 1) -> int:
    """The first of `least`, ``least * 2**step``, and so on, that holds so many texels."""
    bits = (-(-count // least) - 1).bit_length()
    return least * 2 ** (-(-bits // step) * step)


def flat_texels(pixels: Array, margin: int = 0) -> Array:
    """The pixels of an image, (H, W, C), in a flat array of more, (capacity, C).

    Args:
        margin: how many texels follow at least.
    """
    height, width, channels = pixels.shape
    capacity = capacity_of(height * width + margin, LEAST_STORED, STORED_STEP)
    flat = aligned((capacity, channels), pixels.dtype)
    flat[: height * width].reshape(pixels.shape)[...] = pixels
    return flat


def flat_words(pixels: Array) -> Array:
    """The pixels of an image, (H, W, 3) of uint8, as words of four bytes in a flat array of more, (capacity, 1).

    The lowest three bytes of a word are the channels, and the highest is any.
    """
    height, width, channels = pixels.shape
    count, flat = height * width, np.ascontiguousarray(pixels).reshape(-1)
    words = aligned((capacity_of(count, LEAST_STORED, STORED_STEP), 1), WORD)
    # A word begins at each pixel, and ends in the next one.
    words[: count - 1, 0] = np.ndarray((count - 1,), WORD, flat, strides=(channels,))
    words[count - 1] = int.from_bytes(flat[-channels:].tobytes(), "little")
    return words


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array whose elements are not set, and lie where a device may read them."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


# Numbers for texels, in a program of their own: a program for tiles would compute them again for every tile


def numbers_of(texels: jax.Array, *, alpha: bool, light: bool, channels_of_words: int | None) -> jax.Array:
    """Stored texels, (N, C), or their words, as the numbers that are blended: premultiplied if there is an alpha."""
    if channels_of_words is not None:
        texels = bytes_in(texels, channels_of_words)
    if light:
        texels = to_light(to_fractions(texels))
    if alpha:
        return premultiply(texels)
    return texels.astype(np.float32)


def numbers_program(
    convert: Callable[[jax.Array], jax.Array], capacity: int
) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """The program that makes numbers of texels, by their sizes."""
    return lambda texels, sizes: sized_chain.converted(convert, texels, sizes[0] * sizes[1], capacity)


def chain_program(
    convert: Callable[[jax.Array], jax.Array], capacity: int
) -> Callable[[jax.Array, jax.Array, tuple[jax.Array, jax.Array]], jax.Array]:
    """The program that makes a mip chain of numbers of texels, by their sizes and the weights of the chain."""
    return lambda texels, sizes, weights: sized_chain.with_levels(
        convert, texels, (sizes[0], sizes[1]), weights, capacity
    )


def chain_capacity(height: int, width: int) -> int:
    """How many texels an array for a chain holds. One with long sides and few texels takes half more than another."""
    capacity, length = capacity_of(height * width), sized_chain.chain_length((height, width))
    return (3 * capacity // 2 if length <= 3 * capacity // 2 else 2 * capacity) + sized_chain.RUN


def longest_side(height: int, width: int) -> int:
    """The first of `LONGEST_SIDES` that both sides are below."""
    return next(n for n in LONGEST_SIDES if max(height, width) < n)


def chain_weights(height: int, width: int) -> tuple[Array, Array]:
    """The weights of a chain along both axes, in arrays of few lengths."""
    longest, found = longest_side(height, width), list[Array]()
    for size in (height, width):
        weights = sized_chain.chain_weights(size, max(height, width).bit_length())
        array = aligned((sized_chain.COVERED, 2 * longest), np.dtype(np.float32))
        array[:, : weights.shape[1]] = weights
        found.append(array)
    return found[0], found[1]
