"""A read as a texture unit computes it: the engine's walk, with integer weights, and exact sums at its end.

The border color is a texel, in the storage format of the texture.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive

from .._engine.compute.operators import batched, result
from .._engine.compute.texel_value import SRGB_TO_LINEAR, LoadTexel, color_outside, decode, is_color
from .._engine.describe.operands import Coords
from .._engine.describe.spec import Read, ReadSpec
from .._engine.describe.storage import READ
from .._engine.forms.choice import Lowering, kernel
from .._engine.rules.primitives import array_form, type_of_read
from .._engine.rules.transformations import batching_rule
from .._engine.walk.texel_order import flattened
from .._engine.walk.texel_walk import TexelAddress, walks
from .._jax.barriers import with_materialized
from .._jax.float_bits import bits_of, float_of
from .._jax.indexing import gather as gather_texels
from .._jax.primitives import bind, define
from .._tables.storage_formats import Decoding
from .blend import SRGB_TABLE, Levels, blend, srgb_entry
from .taps import ONE, Weighted, stencils, taps

# More channels than this are blended all at once; one after the other, they take long to compile.
MOST_SINGLE_CHANNELS = 4


def read(texels: jax.Array, border_color: jax.Array | None, read: Read) -> jax.Array:
    """Reads `texels`, as `jaxtex._engine.compute.operators.read`, border color included.

    Args:
        texels: ``(*sizes, C)`` or a mip chain ``(total, C)``, of a dtype that texture units have.
        read: its coordinates are float32 for filtered axes, int32 for layers and faces, and int32 in 1/256 for mip
            levels.

    Returns:
        S + (C,) of the dtype of the read: float32, or a 16-bit dtype to which the result is rounded; integers that are
        read as elements have their own dtype.
    """
    spec, args = read.over(stored_color(border_color, texels.shape[-1], texels.dtype, read.spec.decoding))
    return bind(read_p, texels, *args, spec=spec, batch=0)


def result_dtype(stored: np.dtype, decoding: Decoding) -> np.dtype:
    """The dtype that a texture unit returns."""
    whole = jnp.issubdtype(stored, jnp.integer) and decoding is Decoding.ELEMENT
    return np.dtype(stored if whole else np.float32)


def read_array(
    texels: jax.Array, color: jax.Array, *operands: jax.Array, spec: ReadSpec, by_channel: bool = False
) -> jax.Array:
    """The read of one texture by array operations. The border color is a texel, (C,).

    Args:
        by_channel: whether floating texels of few channels are blended one channel at a time.
    """
    stored = flattened(texels, spec.axes)

    def load_texel(address: TexelAddress) -> jax.Array:
        texel = gather_texels(stored, address.flat_index)
        return color_outside(address, texel, color.reshape(*[1] * (texel.ndim - 1), -1))

    floating = not jnp.issubdtype(texels.dtype, jnp.integer)
    split = by_channel and floating and texels.shape[-1] <= MOST_SINGLE_CHANNELS
    run = lambda *operands: result(lambda c: value(load_texel, c, spec, texels.dtype, split), operands, spec)
    # Levels and faces take hundreds of operations. XLA for CPUs would repeat them for every tap.
    return with_materialized(run, range(len(operands)))(*operands) if spec.materialized else run(*operands)


def value(load_texel: LoadTexel, coords: Coords, spec: ReadSpec, stored: np.dtype, split: bool = False) -> jax.Array:
    """The value at `coords`, S + (C,).

    Args:
        load_texel: returns stored texels, S + (C,).
        split: whether texels are blended one channel at a time.
    """
    levels = [list(stencils(*walk)) for walk in walks(coords, spec.axes, taps, ONE)]
    if len(levels) == len(levels[0]) == len(levels[0][0]) == 1:
        return single(load_texel(levels[0][0][0].address), spec.decoding)

    def loaded(stencil: list[Weighted]) -> list[tuple[jax.Array, jax.Array]]:
        texels = [load_texel(address) for address, _ in stencil]
        weights = (jnp.broadcast_to(jnp.asarray(w, jnp.int32), t.shape[:-1]) for t, (_, w) in zip(texels, stencil))
        return [(t, w[..., None]) for t, w in zip(texels, weights)]

    texels = [[loaded(stencil) for stencil in level] for level in levels]
    whole = functools.partial(blend, stored=stored, decoding=spec.decoding)
    return (channel_by_channel(whole) if split else whole)(texels)


def channel_by_channel(function: Callable[[Levels], jax.Array]) -> Callable[[Levels], jax.Array]:
    """`function`, which must treat all channels alike, applied to one channel at a time.

    On a GPU, XLA then computes addresses and weights once per sample, in registers. Otherwise it writes twelve arrays
    of them to memory, and the read takes 1.4 times as long.
    """

    def run(levels: Levels) -> jax.Array:
        channels = range(levels[0][0][0][0].shape[-1])
        one = lambda c: function([[[(v[..., c], w[..., 0]) for v, w in f] for f in level] for level in levels])
        return jnp.stack([one(c) for c in channels], axis=-1)

    return run


def single(texel: jax.Array, decoding: Decoding) -> jax.Array:
    """The value of one texel, unblended."""
    result = result_dtype(texel.dtype, decoding)
    value = decode(texel, Decoding.FRACTION if decoding is Decoding.SRGB else decoding, result)
    if decoding is not Decoding.SRGB:
        return value
    return jnp.where(is_color(value), srgb_entry(SRGB_TABLE, texel).astype(jnp.float32) * 2.0**-16, value)


def read_in_kernel(texels: jax.Array, color: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int) -> jax.Array:
    """`read_array` as a GPU kernel, over `batch` leading axes, along which an operand has the batch size or 1."""
    from .._engine.cuda.read.read_kernel import read_each_sample

    def value_of(load_texel: LoadTexel, coords: Coords, color: jax.Array | None) -> jax.Array:
        stored = lambda address: color_outside(address, load_texel(address), color)
        return value(stored, coords, spec, texels.dtype)

    # A compiler may fuse a product and a sum, which rounds once instead of twice. `value` has equal bits either way:
    # its products are exact, or of codes in `ratio`, where both agree, or part of `Sum.near`, which need not be exact.
    # Coordinates may depend on it.
    name = "texture_unit_read"
    return read_each_sample(value_of, texels, color, operands, spec, batch, name, exact=True)


# The border color in the storage format of the texture


def stored_color(color: jax.Array | None, channels: int, stored: np.dtype, decoding: Decoding) -> jax.Array:
    """The border color, (C,) of the storage dtype; zeros if there is none."""
    if color is None:
        return jnp.zeros(channels, stored)
    color = jnp.broadcast_to(color, (channels,))
    if decoding is Decoding.ELEMENT and stored != np.float16:
        return color.astype(stored)
    color = color.astype(jnp.float32)
    if stored == np.float16:
        return float16_toward_zero(color)
    code = normalized_code(color, stored)
    return jnp.where(is_color(color), srgb_code(color), code) if decoding is Decoding.SRGB else code


def float16_toward_zero(x: jax.Array) -> jax.Array:
    """`x` rounded to float16 toward zero; a number that is too large becomes the largest finite float16."""
    x = jnp.clip(x, -65504, 65504)
    normal = float_of(bits_of(x) & ~0x1FFF)
    subnormal = jnp.trunc(x * 2.0**24) * 2.0**-24
    return jnp.where(jnp.abs(x) < 2.0**-14, subnormal, normal).astype(jnp.float16)


def normalized_code(x: jax.Array, stored: np.dtype) -> jax.Array:
    """The code of a value in an m-bit format: its first m + 4 bits times 2^m - 1, rounded, halves down."""
    info = jnp.iinfo(stored)
    m = info.bits - (info.min < 0)
    x = jnp.clip(jnp.where(x == x, x, 0), -1 if info.min < 0 else 0, 1)
    v = jnp.abs(x * 2.0 ** (m + 4)).astype(jnp.int32)
    # The code is (v (2^m - 1) + 2^(m + 3) - 1) >> (m + 4), which would need 37 bits.
    high, low = v >> 4, v & 15
    code = high + (((low << m) - v + (1 << (m + 3)) - 1) >> (m + 4))
    return jnp.where(x < 0, -code, code).astype(stored)


def srgb_code(x: jax.Array) -> jax.Array:
    """The sRGB code nearest to a linear value."""
    between = jnp.asarray((SRGB_TO_LINEAR[1:] + SRGB_TO_LINEAR[:-1]) / 2, jnp.float32)
    return jnp.sum(x[..., None] > between.reshape(*[1] * x.ndim, -1), axis=-1).astype(jnp.uint8)


# The primitive


BY_CHANNEL = functools.partial(read_array, by_channel=True)
_, SUPPORTS_READ = kernel("read")
LOWERING = Lowering("cuda", read_in_kernel, SUPPORTS_READ, functools.partial(batched, BY_CHANNEL), READ)
read_p = Primitive("texture_unit_read")
define(
    read_p,
    functools.partial(batched, read_array),
    static=("spec", "batch"),
    batch=batching_rule(read_p, READ),
    form=array_form(read_array, lambda _: (0,)),
    types=type_of_read,
    lowerings=(LOWERING,),
)
