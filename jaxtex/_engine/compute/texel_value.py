"""The value at the end of a walk: a texel that is loaded and decoded, or the border color."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.barriers import ForChannels, alike, materialized
from ..._jax.indexing import entry, gather
from ..._jax.shapes import is_symbolic
from ..._tables.storage_formats import Decoding, bytes_in, light_of, storage_format
from ..describe.spec import ReadSpec
from ..walk.texel_walk import Path, TexelAddress, TexelValue

# The decoding of stored texels to the numbers that are filtered


def read_dtype(stored: np.dtype, decoding: Decoding, blends: bool) -> np.dtype:
    """The default dtype of a read of texels of dtype `stored`.

    Args:
        decoding: a decoding that the dtype has; `check_sampler` checks that.
        blends: whether the read combines several texels.
    """
    row = storage_format(stored)
    if decoding is Decoding.ELEMENT:
        return np.dtype(row.blended_as) if blends and row.blended_as is not None else np.dtype(stored)
    return np.dtype(np.float32)


def decode(texel: jax.Array, decoding: Decoding, dtype: np.dtype) -> jax.Array:
    """Stored texels, S + (C,), as numbers of `dtype`, in which they are filtered."""
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
    """The mask of the channels that sRGB encodes: the first three of three or four, the first of one or two."""
    channel = np.arange(texel.shape[-1]).reshape(*[1] * (texel.ndim - 1), -1)
    return channel < num_colors(channel.size)


def num_colors(num_channels: int) -> int:
    """How many channels sRGB encodes; the others are alpha."""
    return 3 if num_channels >= 3 else 1


SRGB_TO_LINEAR = light_of(np.arange(256) / 255)


def ratio(code: jax.Array, bits: int, dtype: np.dtype) -> jax.Array:
    """``code / (2^bits - 1)``, correctly rounded.

    XLA compiles a division by a constant to a multiplication by its reciprocal, which is wrong in the last bit. With
    h = code / 2^bits, which is exact, the quotient is h + h / (2^bits - 1).
    """
    scaled = code.astype(dtype) * 2.0**-bits
    return scaled + scaled * (1.0 / (2**bits - 1))


# Texels that are moved, as integers with their bits


def wide_dtype(stored: np.dtype, channels: int) -> np.dtype:
    """The unsigned dtype of at most 32 bits into which the channels of an integer texel pack; `stored` if none does."""
    if not jnp.issubdtype(stored, jnp.integer):
        return stored
    size = stored.itemsize * channels
    return next((np.dtype(f"uint{8 * n}") for n in (4, 2) if size % n == 0 and n > stored.itemsize), stored)


def in_wide_texels(function: Callable[..., jax.Array], texels: jax.Array, *values: jax.Array) -> jax.Array:
    """``function(texels, *values)``, which only moves texels, called with small integers packed into wide ones."""
    stored, wide = np.dtype(texels.dtype), wide_dtype(np.dtype(texels.dtype), texels.shape[-1])
    # XLA repacks no array of a symbolic size.
    if wide == stored or is_symbolic(texels.shape, *(a.shape for a in values)):
        return function(texels, *values)
    moved = function(*(packed(a, wide) for a in (texels, *values)))
    return jax.lax.bitcast_convert_type(moved, stored).reshape(*moved.shape[:-1], texels.shape[-1])


def moves_as_bits(stored: np.dtype) -> bool:
    """Whether texels must be moved as integers: XLA for CPUs moves bfloat16 as float32, which changes bits of NaN."""
    return stored == jnp.bfloat16


def in_bits(function: Callable[..., jax.Array], texels: jax.Array, *values: jax.Array) -> jax.Array:
    """``function(texels, *values)``, which only moves texels, called with the bits of floats as integers."""
    return from_bits(function(*(as_bits(a) for a in (texels, *values))), texels.dtype)


def bits_dtype(dtype: np.dtype) -> np.dtype:
    """The unsigned dtype with as many bits as `dtype`."""
    return np.dtype(f"uint{8 * np.dtype(dtype).itemsize}")


def as_bits(x: jax.Array) -> jax.Array:
    """The bits of numbers, as unsigned integers."""
    return jax.lax.bitcast_convert_type(x, bits_dtype(x.dtype))


def from_bits(bits: jax.Array, dtype: np.dtype) -> jax.Array:
    """The numbers of `dtype` with given bits.

    The bits are materialized first; in one loop, LLVM would compute with floats after all.
    """
    return jax.lax.bitcast_convert_type(materialized(bits), dtype)


def with_nan_of(texels: jax.Array, result: jax.Array) -> jax.Array:
    """`result`, with the bits of `texels` where `texels` is NaN; both have one dtype."""
    return from_bits(jnp.where(texels != texels, as_bits(texels), as_bits(result)), texels.dtype)


def packed(texels: jax.Array, wide: np.dtype) -> jax.Array:
    """Integer texels, S + (C,), packed into wider integers."""
    ratio = wide.itemsize // texels.dtype.itemsize
    groups = texels.reshape(*texels.shape[:-1], texels.shape[-1] // ratio, ratio)
    return jax.lax.bitcast_convert_type(groups, wide)


# Loads of texels

# A function from an address to the stored texel, S + (C,).
LoadTexel = Callable[[TexelAddress], jax.Array]
# A function from an array of texels, indexed by `TexelAddress.flat_index`, to a `LoadTexel`.
Loads = Callable[[jax.Array], LoadTexel]


def gathers(stored: jax.Array) -> LoadTexel:
    """The loads of texels by a gather."""
    return lambda address: gather(stored, address.flat_index)


# Words of four bytes that hold uint8 texels, the first channel lowest, need one load per texel on a CPU. XLA vectorizes
# the loop over samples, but not its loads, and loads of single bytes would be most of its instructions.


def words_of_channels(words: jax.Array, channels: int) -> jax.Array:
    """The words of texels, (..., 1), broadcast to (..., channels).

    The compiler still loads one word per texel. A broadcast after the load would end XLA's loop.
    """
    return jnp.broadcast_to(words, (*words.shape[:-1], channels))


def loads_bytes(words: jax.Array) -> LoadTexel:
    """The loads of uint8 texels from words that `words_of_channels` has broadcast."""

    def load(address: TexelAddress) -> jax.Array:
        return bytes_in(gather(words, address.flat_index), words.shape[-1])

    return load


# Taps outside the texture


def zero_outside(address: TexelAddress, value: jax.Array) -> jax.Array:
    """`value`, S + (C,), or zero for taps outside."""
    return color_outside(address, value, None)


def color_outside(
    address: TexelAddress, value: jax.Array, color: jax.Array | None, for_channels: ForChannels = alike
) -> jax.Array:
    """`value`, S + (C,), or `color`, which broadcasts to it, for taps outside; `None` is zero."""
    if address.inside is None:
        return value
    if color is None:
        return jnp.where(for_channels(address.inside), value, False if value.dtype == bool else 0)
    return jnp.where(for_channels(address.inside), value, color)


def value_of_texel(
    load_texel: LoadTexel, spec: ReadSpec, color: jax.Array | None, for_channels: ForChannels | None = alike
) -> TexelValue:
    """A function of address and path to the decoded texel, S + (C,), or outside to `color`; `None` is zero.

    Args:
        for_channels: makes masks of taps outside masks of channels; `None` if `load_texel` returns zero outside.
    """
    # Single texels keep all their bits, those of NaN included.
    single = color is None and spec.is_single
    dtype = spec.dtype if single else spec.sums

    def value(address: TexelAddress, path: Path) -> jax.Array:
        del path
        texel = decode(load_texel(address), spec.decoding, dtype)
        if color is None and for_channels is None:
            return texel  # every decoding maps zero to zero
        return color_outside(address, texel, color, for_channels or alike)

    return value
