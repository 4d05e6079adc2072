"""The texels of an image in a flat array of few capacities, so that programs serve images of many sizes."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._engine.compute.texel_value import WORD, bytes_in
from . import chain
from .mappings import Array
from .pixels import premultiply, to_fractions, to_light

# The least capacities of decoded texels, of texels copied to a device, and of those that a CPU reads in place. Each
# capacity of texels is four times the one before: unused memory is never touched.
LEAST, LEAST_COPIED, LEAST_SHARED, STORED_STEP = 2**22, 2**22, 2**24, 2
# How many texels of room follow an image, except for filters of very many entries.
USUAL_MARGIN = 2**11
# Devices read NumPy arrays in place if these begin at a multiple of this.
ALIGNMENT = 64
# The capacities of chains' weights and levels, by the longest side.
LONGEST_SIDES = (2**12, 2**16, 2**20, 2**24)


def capacity_of(count: int, least: int = LEAST, step: int = 1) -> int:
    """The first of `least`, ``least * 2**step``, ... that holds so many texels."""
    bits = (-(-count // least) - 1).bit_length()
    return least * 2 ** (-(-bits // step) * step)


def flat_texels(pixels: Array, least: int, margin: int = 0) -> Array:
    """The pixels of an image, (H, W, C), at the start of a flat array, (capacity, C).

    Those of `pixels_with_room` are not copied.

    Args:
        least: the least capacity.
        margin: how many texels follow at least.
    """
    height, width, channels = pixels.shape
    capacity = capacity_of(height * width + margin, least, STORED_STEP)
    if (flat := with_room(pixels, (capacity, channels))) is not None:
        return flat
    flat = aligned((capacity, channels), pixels.dtype)
    flat[: height * width].reshape(pixels.shape)[...] = pixels
    return flat


def flat_words(pixels: Array, least: int) -> Array:
    """The pixels of an image, (H, W, 3) of uint8, as words of four bytes at the start of a flat array, (capacity, 1).

    The lowest three bytes of a word are the channels; the highest is arbitrary.
    """
    height, width, channels = pixels.shape
    count, flat = height * width, np.ascontiguousarray(pixels).reshape(-1)
    words = aligned((capacity_of(count, least, STORED_STEP), 1), WORD)
    # Each word begins at a pixel, and ends in the next one.
    words[: count - 1, 0] = np.ndarray((count - 1,), WORD, flat, strides=(channels,))
    words[count - 1] = int.from_bytes(flat[-channels:].tobytes(), "little")
    return words


class Memory(np.ndarray):
    """The bytes of arrays that `aligned` makes."""


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any], room: int = 0) -> Array:
    """An uninitialized array that devices can read in place.

    Args:
        room: the least number of bytes. Those after the elements take no memory until they are touched.
    """
    memory = Memory((max(math.prod(shape) * dtype.itemsize, room) + ALIGNMENT,), np.uint8)
    return np.ndarray(shape, dtype, memory, -memory.ctypes.data % ALIGNMENT)


def pixels_with_room(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array for the pixels of an image, (H, W) or (H, W, C), with room behind them."""
    height, width, *channels = shape
    capacity = capacity_of(height * width + USUAL_MARGIN, LEAST_SHARED, STORED_STEP)
    return aligned(shape, dtype, capacity * math.prod(channels) * dtype.itemsize)


def with_room(pixels: Array, shape: tuple[int, int]) -> Array | None:
    """A larger array that begins with pixels, without a copy; `None` if there is no room behind them."""
    memory = pixels.base
    while isinstance(memory, np.ndarray) and not isinstance(memory, Memory):  # of a view
        memory = memory.base
    if not isinstance(memory, Memory) or not pixels.flags.c_contiguous or pixels.ctypes.data % ALIGNMENT:
        return None
    start = pixels.ctypes.data - memory.ctypes.data
    fits = start + math.prod(shape) * pixels.itemsize <= memory.size
    return np.ndarray(shape, pixels.dtype, memory, start) if fits else None


# Decoding, in a program of its own: a program for tiles would decode for every tile


def numbers_of(texels: jax.Array, *, alpha: bool, light: bool, channels_of_words: int | None) -> jax.Array:
    """Decoded texels, (N, C), from stored ones or their words; premultiplied if there is an alpha."""
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
    """The program that decodes texels, by their sizes."""
    return lambda texels, sizes: chain.converted(convert, texels, sizes[0] * sizes[1], capacity)


def chain_program(
    convert: Callable[[jax.Array], jax.Array],
) -> Callable[[jax.Array, jax.Array, tuple[jax.Array, jax.Array], jax.Array, jax.Array], jax.Array]:
    """The program that decodes texels, by their sizes, with a mip chain if wanted.

    It writes into a given array, since zeros would take longer than the chain of a much smaller image.
    """

    def run(
        texels: jax.Array,
        sizes: jax.Array,
        weights: tuple[jax.Array, jax.Array],
        wanted: jax.Array,
        into: jax.Array,
    ) -> jax.Array:
        return chain.with_levels(convert, texels, (sizes[0], sizes[1]), weights, into, wanted)

    return run


def chain_capacity(height: int, width: int) -> int:
    """The capacity of an array for a chain: one and a half times the first capacity whose chain fits."""
    length = chain.chain_length((height, width))
    capacity = capacity_of(-(-2 * length // 3))
    return 3 * capacity // 2 + chain.RUN


class Reused:
    """An array of decoded texels, whose memory is reused for another image once this object is deleted.

    Args:
        numbers: an array that a program has written to.
    """

    def __init__(self, numbers: jax.Array) -> None:
        self.numbers = numbers
        self.free = FREE.setdefault(known_by(numbers), [])

    def __del__(self) -> None:
        self.free.append(self.numbers)


FREE: dict[tuple[Any, ...], list[jax.Array]] = {}


def known_by(numbers: Any) -> tuple[Any, ...]:
    return numbers.shape, str(numbers.dtype), next(iter(numbers.devices()))


def memory_for(shape: tuple[int, int], device: Any) -> jax.Array:
    """An unused array of float32, uninitialized."""
    free = FREE.get((shape, "float32", device))
    try:
        if free:
            return free.pop()
    except IndexError:  # of another thread
        pass
    return jnp.zeros(shape, np.float32, device=device)


def longest_side(height: int, width: int) -> int:
    """The first of `LONGEST_SIDES` that exceeds both sides."""
    return next(n for n in LONGEST_SIDES if max(height, width) < n)


def chain_weights(height: int, width: int) -> tuple[Array, Array]:
    """The weights of a chain along both axes, in arrays of few lengths."""
    longest, found = longest_side(height, width), list[Array]()
    for size in (height, width):
        weights = chain.chain_weights(size, max(height, width).bit_length())
        array = aligned((chain.COVERED, 2 * longest), np.dtype(np.float32))
        array[:, : weights.shape[1]] = weights
        found.append(array)
    return found[0], found[1]
