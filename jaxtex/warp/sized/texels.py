"""The texels of an image in a flat array of few capacities, so that programs serve images of many sizes.

Decoded texels may be followed by a mip chain: texels lie row after row and level after level. A loop computes runs of
texels, as many as the sizes need. Elements after the last level are never read.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.indexing import gather
from ..._jax.primitives import doubled, mean_of_pair
from ..._tables.filter_kernels import halving_weights
from ..._tables.storage_formats import WORD, bytes_in
from ...modes import TextureKind
from ...texture import chain_shapes
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
# Texels of a run.
RUN = 2**12
# How many texels one texel of the next level covers along an axis, the outer ones in part.
COVERED = 3


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


@dataclasses.dataclass(frozen=True)
class Decode:
    """A function that decodes stored texels, or their words, to numbers, (N, C).

    Attributes:
        alpha: whether there is an alpha, by which colors are premultiplied.
        light: whether numbers are linear light.
        channels_of_words: the channels of texels that are stored as words.
    """

    alpha: bool
    light: bool
    channels_of_words: int | None

    def __call__(self, texels: jax.Array) -> jax.Array:
        if self.channels_of_words is not None:
            texels = bytes_in(texels, self.channels_of_words)
        if self.light:
            texels = to_light(to_fractions(texels))
        return premultiply(texels) if self.alpha else texels.astype(np.float32)


def decoded(convert: Callable[[jax.Array], jax.Array], capacity: int, texels: jax.Array, sizes: jax.Array) -> jax.Array:
    """The numbers of texels, by their sizes, in an array of so many; both are multiples of `RUN`."""
    like = jax.eval_shape(convert, texels)
    into = jnp.zeros((capacity, like.shape[-1]), like.dtype)
    return written(convert, texels, sizes[0] * sizes[1], into)


def chain_capacity(height: int, width: int) -> int:
    """The capacity of an array for a chain: one and a half times the first capacity whose chain fits."""
    length = chain_length((height, width))
    capacity = capacity_of(-(-2 * length // 3))
    return 3 * capacity // 2 + RUN


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
        weights = weights_of_levels(size, max(height, width).bit_length())
        array = aligned((COVERED, 2 * longest), np.dtype(np.float32))
        array[:, : weights.shape[1]] = weights
        found.append(array)
    return found[0], found[1]


# Mip chains, in programs


def weights_of_levels(size: int, num_levels: int) -> np.ndarray:
    """Halves of `halving_weights` of all levels but the last, of an axis of that size, in turn: (3, total)."""
    found = [0.5 * halving_weights(max(size >> level, 1)) for level in range(num_levels - 1)]
    return np.concatenate([np.zeros((COVERED, 0)), *found], axis=1).astype(np.float32)


def chain_length(sizes: tuple[int, int]) -> int:
    """The number of texels of a chain, down to a single texel."""
    return sum(map(math.prod, chain_shapes(TextureKind.TEXTURE2D, (*sizes, 1), None, "SizedWarp")))


def written(
    convert: Callable[[jax.Array], jax.Array], texels: jax.Array, count: jax.Array, into: jax.Array
) -> jax.Array:
    """An array with the numbers of the first `count` texels at its beginning."""

    def step(k: jax.Array, filled: jax.Array) -> jax.Array:
        run = jax.lax.dynamic_slice_in_dim(texels, k * RUN, RUN)
        return jax.lax.dynamic_update_slice_in_dim(filled, convert(run), k * RUN, 0)

    return jax.lax.fori_loop(0, (count + (RUN - 1)) // RUN, step, into)


class Level(NamedTuple):
    """A level of two axes: its height and width, its first texel, and the first of its weights along each axis."""

    height: jax.Array
    width: jax.Array
    start: jax.Array
    rows: jax.Array
    columns: jax.Array

    @property
    def next(self) -> "Level":
        height, width = (jnp.maximum(n >> 1, 1) for n in (self.height, self.width))
        return Level(height, width, self.start + self.height * self.width, self.rows + height, self.columns + width)


def with_levels(
    convert: Callable[[jax.Array], jax.Array],
    texels: jax.Array,
    sizes: jax.Array,
    weights: tuple[jax.Array, jax.Array],
    wanted: jax.Array,
    into: jax.Array,
) -> jax.Array:
    """Decoded texels, followed by all levels of a chain, down to a single texel.

    Args:
        convert: decodes texels, (N, C).
        sizes: height and width.
        weights: `weights_of_levels` of height and width; more columns may follow.
        wanted: whether to make the levels; bool.
        into: the array that numbers are written to: zeros would take longer than the chain of a much smaller image.
    """
    height, width = sizes[0], sizes[1]
    zero = jnp.zeros((), jnp.int32)

    def remains(state: tuple[jax.Array, Level, jax.Array]) -> jax.Array:
        _, level, _ = state
        return wanted & (jnp.maximum(level.height, level.width) > 1)

    def step(state: tuple[jax.Array, Level, jax.Array]) -> tuple[jax.Array, Level, jax.Array]:
        chain, level, first = state
        # A run may write beyond its level; the next level overwrites that.
        run = halved(chain, level, first, weights)
        chain = jax.lax.dynamic_update_slice_in_dim(chain, run, level.next.start + first, 0)
        first = first + RUN
        done = first >= level.next.height * level.next.width
        level = jax.tree.map(lambda a, b: jnp.where(done, a, b), level.next, level)
        return chain, level, jnp.where(done, 0, first)

    chain = written(convert, texels, height * width, into)
    return jax.lax.while_loop(remains, step, (chain, Level(height, width, zero, zero, zero), zero))[0]


def halved(chain: jax.Array, level: Level, first: jax.Array, weights: tuple[jax.Array, jax.Array]) -> jax.Array:
    """A run of the texels of the next level: means of those of a level, first along columns, then along rows."""
    number, following = first + jnp.arange(RUN, dtype=jnp.int32), level.next
    y = jnp.minimum(number // following.width, following.height - 1)
    x = number - number // following.width * following.width

    def texel(i: int, j: int) -> jax.Array:
        row, column = jnp.minimum(2 * y + i, level.height - 1), jnp.minimum(2 * x + j, level.width - 1)
        return gather(chain, (level.start + row * level.width + column,))

    def of_pairs() -> jax.Array:
        return mean_of_pair(*(mean_of_pair(texel(0, j), texel(1, j)) for j in range(2)))

    def of_parts() -> jax.Array:
        down, across = (
            [gather(table[k][:, None], (start + at,)) for k in range(COVERED)]
            for table, start, at in zip(weights, (level.rows, level.columns), (y, x))
        )
        below = [doubled(sum_of(texel(i, j) * w for i, w in enumerate(down))) for j in range(COVERED)]
        return doubled(sum_of(value * w for value, w in zip(below, across)))

    even = (level.height == 2 * following.height) & (level.width == 2 * following.width)
    return jax.lax.cond(even, of_pairs, of_parts)


def sum_of(terms: Iterable[jax.Array]) -> jax.Array:
    return functools.reduce(jnp.add, terms)
