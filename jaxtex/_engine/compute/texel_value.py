"""The value of a texel at the end of a walk: loaded, decoded, or what stands in its place outside the texture."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.barriers import materialized
from ..._jax.indexing import entry, gather
from ..._tables.storage_formats import Decoding, light_of, storage_format
from ..describe.spec import ReadSpec
from ..walk.texel_walk import Path, TexelAddress, TexelValue

# From stored texels to the numbers that are filtered


def read_dtype(stored: np.dtype, decoding: Decoding, blends: bool) -> np.dtype:
    """The dtype of a read of texels stored as `stored`, before the caller asks for another one.

    Args:
        decoding: one that texels of that dtype have, as `check_sampler` checks.
        blends: whether the read combines several texels.
    """
    row = storage_format(stored)
    if decoding is Decoding.ELEMENT:
        return np.dtype(row.blended_as) if blends and row.blended_as is not None else np.dtype(stored)
    return np.dtype(np.float32)


def decode(texel: jax.Array, decoding: Decoding, dtype: np.dtype) -> jax.Array:
    """Stored texels, S + (C,), as numbers of `dtype`, the one in which they are filtered."""
    if decoding is Decoding.ELEMENT:
        return texel.astype(dtype)
    bits = storage_format(texel.dtype).fraction_bits
    assert bits is not None
    if not jnp.issubdtype(texel.dtype, jnp.unsignedinteger):
        return jnp.maximum(ratio(texel, bits, dtype), -1)
    if decoding is Decoding.FRACTION:
        return ratio(texel, bits, dtype)
    linear = entry(SRGB_TO_LINEAR.astype(dtype), texel.astype(jnp.int32))
    return jnp.where(is_color(texel), linear, ratio(texel, bits, dtype))


def is_color(texel: jax.Array) -> np.ndarray:
    """Which channels of S + (C,) sRGB encodes: the first three of three or four, the first of one or two."""
    channel = np.arange(texel.shape[-1]).reshape(*[1] * (texel.ndim - 1), -1)
    return channel < (3 if channel.size >= 3 else 1)


SRGB_TO_LINEAR = light_of(np.arange(256) / 255)


def ratio(code: jax.Array, bits: int, dtype: np.dtype) -> jax.Array:
    """``code / (2^bits - 1)``, correctly rounded.

    A division by a constant is compiled to a multiplication by its reciprocal, which is wrong in the last bit.
    With h = code / 2^bits, which is exact, the quotient is h + h / (2^bits - 1).
    """
    scaled = code.astype(dtype) * 2.0**-bits
    return scaled + scaled * (1.0 / (2**bits - 1))


# Texels that are moved, in other dtypes of the same bits


def wide_dtype(stored: np.dtype, channels: int) -> np.dtype:
    """The unsigned integers, of at most 32 bits, that hold whole texels of small integers; or `stored`."""
    if not jnp.issubdtype(stored, jnp.integer):
        return stored
    size = stored.itemsize * channels
    return next((np.dtype(f"uint{8 * n}") for n in (4, 2) if size % n == 0 and n > stored.itemsize), stored)


def in_wide_texels(function: Callable[..., jax.Array], texels: jax.Array, *values: jax.Array) -> jax.Array:
    """``function(texels, *values)``, which only moves texels, with small integers packed into wide ones meanwhile."""
    stored, wide = np.dtype(texels.dtype), wide_dtype(np.dtype(texels.dtype), texels.shape[-1])
    if wide == stored:
        return function(texels, *values)
    moved = function(*(packed(a, wide) for a in (texels, *values)))
    return jax.lax.bitcast_convert_type(moved, stored).reshape(*moved.shape[:-1], texels.shape[-1])


def moves_as_bits(stored: np.dtype) -> bool:
    """Whether texels are moved as integers. XLA for CPUs moves bfloat16 as float32, which changes the bits of NaN."""
    return stored == jnp.bfloat16


def in_bits(function: Callable[..., jax.Array], texels: jax.Array, *values: jax.Array) -> jax.Array:
    """``function(texels, *values)``, which only moves texels, with integers of the same bits in place of floats."""
    return from_bits(function(*(as_bits(a) for a in (texels, *values))), texels.dtype)


def bits_dtype(dtype: np.dtype) -> np.dtype:
    """The unsigned integers of the size of a dtype."""
    return np.dtype(f"uint{8 * np.dtype(dtype).itemsize}")


def as_bits(x: jax.Array) -> jax.Array:
    """Numbers as unsigned integers with the same bits."""
    return jax.lax.bitcast_convert_type(x, bits_dtype(x.dtype))


def from_bits(bits: jax.Array, dtype: np.dtype) -> jax.Array:
    """Unsigned integers as numbers of `dtype` with the same bits.

    They are computed first: in one loop, LLVM would compute with floats after all.
    """
    return jax.lax.bitcast_convert_type(materialized(bits), dtype)


def with_nan_of(texels: jax.Array, result: jax.Array) -> jax.Array:
    """`result`, of the same dtype, with the bits of `texels` where these are NaN."""
    return from_bits(jnp.where(texels != texels, as_bits(texels), as_bits(result)), texels.dtype)


def packed(texels: jax.Array, wide: np.dtype) -> jax.Array:
    """Integer texels, S + (C,), in wider integers with the same bits."""
    ratio = wide.itemsize // texels.dtype.itemsize
    groups = texels.reshape(*texels.shape[:-1], texels.shape[-1] // ratio, ratio)
    return jax.lax.bitcast_convert_type(groups, wide)


# How texels are loaded

# The texel at an address as it is stored: S + (C,).
LoadTexel = Callable[[TexelAddress], jax.Array]
# How those of an array are loaded, whose rows are texels in the order of their flat indices.
Loads = Callable[[jax.Array], LoadTexel]


def gathers(stored: jax.Array) -> LoadTexel:
    """Loads texels one by one."""
    return lambda address: gather(stored, address.flat_index)


# Words of four bytes, the first channel lowest, that hold texels of uint8: one load for each texel on a CPU. XLA
# vectorizes the loop over samples, but not its loads, and those of single bytes are most of its instructions.

WORD = np.dtype(np.uint32)


def words_of_channels(words: jax.Array, channels: int) -> jax.Array:
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
    """Loads texels of uint8 from `words_of_channels`."""

    def load(address: TexelAddress) -> jax.Array:
        return bytes_in(gather(words, address.flat_index), words.shape[-1])

    return load


# Taps outside the texture

# Masks are conditions of samples, for each of their channels. A loop of XLA for CPUs over samples has one over their
# channels inside. LLVM moves a condition that all channels share out of the inner one, as a branch, and then vectorizes
# neither. A mask that each channel compares with a number of its own stays a mask. These numbers are zeros behind a
# boundary, so that LLVM does not know them.

# From a condition, S, to that of the channels, which broadcasts to S + (C,).
ForChannels = Callable[[jax.Array], jax.Array]
# More channels are a loop that is vectorized by itself, behind the branch. For more taps there is none.
MOST_CHANNELS, MOST_TAPS = 8, 8


def alike(condition: jax.Array) -> jax.Array:
    """A condition that all channels share."""
    return condition[..., None]


def one_by_one(channels: int, taps: int = 1) -> ForChannels:
    """How the channels of an array compare by themselves, if they are few, for each of a few taps."""
    if not 1 < channels <= MOST_CHANNELS or taps > MOST_TAPS:
        return alike
    zeros = materialized(jnp.zeros(channels, jnp.int32))
    return lambda condition: alike(condition).astype(jnp.int32) > zeros.reshape(*[1] * condition.ndim, -1)


def zero_outside(address: TexelAddress, value: jax.Array) -> jax.Array:
    """`value`, S + (C,), or zero for taps outside."""
    return color_outside(address, value, None)


def color_outside(
    address: TexelAddress, value: jax.Array, color: jax.Array | None, for_channels: ForChannels = alike
) -> jax.Array:
    """`value`, S + (C,), or `color`, which broadcasts to it, for taps outside; without one, zero."""
    if address.inside is None:
        return value
    if color is None:
        return jnp.where(for_channels(address.inside), value, False if value.dtype == bool else 0)
    return jnp.where(for_channels(address.inside), value, color)


def value_of_texel(
    load_texel: LoadTexel, spec: ReadSpec, color: jax.Array | None, for_channels: ForChannels = alike
) -> TexelValue:
    """The value at the end of a walk of a read, S + (C,): a texel that is loaded and decoded, or the color outside."""
    # Single texels keep all their bits, also those of NaN.
    single = color is None and spec.is_single
    dtype = spec.dtype if single else spec.sums

    def value(address: TexelAddress, path: Path) -> jax.Array:
        del path
        return color_outside(address, decode(load_texel(address), spec.decoding, dtype), color, for_channels)

    return value
