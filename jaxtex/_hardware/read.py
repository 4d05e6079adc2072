"""A read as a texture unit computes it: the engine's walk, with integer weights, and exact sums at its end.

The border color is a texel, in the storage format of the texture.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive

from .._engine.compute.operators import batched, result
from .._engine.compute.texel_value import SRGB_TO_LINEAR, LoadTexel, color_outside, decode, is_color
from .._engine.describe.axis import Axis, Role
from .._engine.describe.operands import Coords
from .._engine.describe.spec import Read, ReadSpec
from .._engine.describe.storage import READ
from .._engine.forms.choice import Lowering, kernel
from .._engine.rules.primitives import array_form, batching_rule, type_of_read
from .._engine.walk.texel_order import flattened
from .._engine.walk.texel_walk import COORDINATE_LIMIT, POSITION_LIMIT, Step, Taps, TexelAddress, clipped_to_unit, walks
from .._jax.barriers import with_materialized
from .._jax.float_bits import bits_of, float_of
from .._jax.indexing import gather as gather_texels
from .._jax.instructions import scaled_product
from .._jax.primitives import bind, define
from .._tables.address_rules import CLAMP, MIRROR, WRAP
from .._tables.filter_kernels import LEVEL_BLEND, LINEAR, LINEAR_TAPS, POINT
from .._tables.storage_formats import Decoding
from .blend import SRGB_TABLE, Levels, blend, srgb_entry

# Integer weights in 1/256: the taps of an axis, and the weights of the texels of a level
#
# Positions are fixed point. A normalized coordinate is truncated to `coordinate_bits` bits of fraction and multiplied
# by the size exactly, in integers. The product is rounded to 8 bits of fraction for a linear read, and truncated to
# whole texels for a point read.
#
# The weights of a read sum to 256. The total is split axis by axis, each part rounded, in the order level, z, x, y.


ONE = 256
# Coordinates are clipped to this range, which ends far outside of any texture, so that positions fit in int32.
FAR_NORMALIZED = (-2.0, 2.0)
FAR_TEXELS = 4


def taps(coord: jax.Array, axis: Axis) -> Taps:
    """The taps of `coord` on `axis`, unbounded integers, each with its weight in 1/256, as `taps` of `texel_walk`.

    Raises:
        ValueError: if no texture unit has the filter or the address mode.
    """
    if not (axis.kernel.on_hardware and axis.address.on_hardware):
        raise ValueError(
            f"Sampler: arithmetic='hardware' is given with a filter or the address mode {axis.address.name!r} that no "
            f"texture unit has; use arithmetic='float'."
        )
    if axis.integer:
        return [(coord, ONE)]
    # A level of detail comes in 1/256. It is rounded, halves up, or blends two levels.
    if axis.role is Role.LEVEL:
        return between(0, coord) if axis.kernel == LEVEL_BLEND else [((coord + 128) >> 8, ONE)]
    # A point read truncates the position to whole texels.
    if axis.kernel == POINT:
        whole, part = position(coord, axis, bits=0)
        return [(whole + part, ONE)]
    # A linear read rounds it to 1/256, counted from the center of a texel.
    whole, part = position(coord, axis, bits=8)
    part = part - ONE // 2
    if axis.kernel in LINEAR_TAPS:  # of a gather
        return [(whole + (part >> 8) + axis.kernel.first, ONE)]
    assert axis.kernel == LINEAR
    if axis.address is CLAMP:
        whole, part = 0, jnp.clip(whole * ONE + part, 0, (axis.given_size - 1) * ONE)
    return between(whole, part)


def between(whole: jax.Array | int, part: jax.Array) -> Taps:
    """The two taps around a position of `whole` texels and `part` / 256.

    At a whole texel, both taps are that texel, so that only texels are loaded that the texture unit loads.
    """
    fraction = part & 255
    return [(whole + (part >> 8), ONE - fraction), (whole + ((part + 255) >> 8), fraction)]


def position(coord: jax.Array, axis: Axis, bits: int) -> tuple[jax.Array | int, jax.Array]:
    """The position of `coord` as whole texels, and a part in 2^-bits texels.

    It is truncated for 0 `bits`, and rounded for 8.
    """
    return (normalized_position if axis.normalized else texel_position)(coord, axis, bits)


def normalized_position(x: jax.Array, axis: Axis, bits: int) -> tuple[jax.Array | int, jax.Array]:
    # The coordinate as an integer of so many bits, whole periods apart.
    size, kept = axis.given_size, coordinate_bits(axis.given_size)
    one = 1 << kept if isinstance(kept, int) else jnp.left_shift(1, kept)
    scale = jnp.asarray(one, jnp.float32)
    if axis.address is CLAMP:  # nothing changes beyond the edges
        unit, low = 0, (clipped_to_unit(x) * scale).astype(jnp.int32)
    else:
        x = jnp.where(jnp.abs(x) < COORDINATE_LIMIT, x, 0) if axis.reduced else jnp.clip(number(x), *FAR_NORMALIZED)
        fixed = jnp.floor(x * scale)
        unit = jnp.floor(fixed / scale)  # exact: scale is a power of two
        unit, low = unit.astype(jnp.int32), (fixed - unit * scale).astype(jnp.int32)
    # Its product with the size is exact, and is truncated or rounded once.
    part = scaled_product(low, size, (one >> 9) if bits else 0, kept - bits)
    if axis.address is WRAP:
        return 0, part
    # Periods become whole texels. A mirror needs to know only whether their number is odd.
    return (unit & 1 if axis.address is MIRROR else unit) * size, part


def number(x: jax.Array) -> jax.Array:
    """`x`, or zero in place of NaN."""
    return jnp.where(x == x, x, 0)


def coordinate_bits(size: int | jax.Array) -> int | jax.Array:
    """The number of bits of fraction that a normalized coordinate keeps on an axis of `size` texels."""
    if not isinstance(size, jax.Array):
        return 21 if size <= 8192 else 22 if size <= 65536 else 23
    return jnp.where(size <= 8192, 21, jnp.where(size <= 65536, 22, 23))


def texel_position(x: jax.Array, axis: Axis, bits: int) -> tuple[jax.Array | int, jax.Array]:
    if axis.address.saturates:
        x = jnp.clip(number(x), -FAR_TEXELS, axis.given_size + FAR_TEXELS)
    else:
        x = jnp.where(jnp.abs(x) < POSITION_LIMIT, x, 0)
    whole = jnp.floor(x)
    if not bits:
        return whole.astype(jnp.int32), jnp.zeros_like(x, jnp.int32)
    # All of this is exact; the fraction of a coordinate between -1/2 and 0 is not.
    scaled = x * ONE
    low = jnp.floor(scaled)
    nearest = low + (scaled - low >= 0.5).astype(x.dtype)
    return whole.astype(jnp.int32), (nearest - whole * ONE).astype(jnp.int32)


# Stencils: the texels of one slice of one mip level

Weight = Any  # an int, or an array of integers


class Weighted(NamedTuple):
    """The address of a texel and its weight in 1/256."""

    address: TexelAddress
    weight: Weight


def stencils(total: Weight, address: TexelAddress, steps: list[Step]) -> Iterator[list[Weighted]]:
    """The stencils of a walk of weight `total`: one, or one for each slice of a volume."""
    while steps and len(steps[0].taps) == 1:  # layers, faces, and every axis of a point read
        (step, *steps), (tap,) = steps, steps[0].taps
        address = address.advance(tap, step.sizes)
    if len(steps) < 3:
        yield plane(total, address, steps)
        return
    step, *steps = steps
    near, far = step.taps
    first = share(total, near.factors[0])
    yield plane(first, address.advance(near, step.sizes), steps)
    yield plane(total - first, address.advance(far, step.sizes), steps)


def plane(total: Weight, address: TexelAddress, steps: list[Step]) -> list[Weighted]:
    """The stencil of the remaining axes that blend: none, x, y and x, or the joint axes of a cube."""
    if not steps:
        return [Weighted(address, total)]
    *_, last = steps
    # Two axes: four texels. One axis: two. A cube: four, which a corner may lack.
    if len(steps) == 2:
        rows, columns = steps
        addresses = [address.advance(y, rows.sizes).advance(x, columns.sizes) for y in rows.taps for x in columns.taps]
        weights = quarters(total, rows.taps[1].factors[0], columns.taps[1].factors[0])
    elif len(last.taps) == 2:
        addresses = [address.advance(x, last.sizes) for x in last.taps]
        right = share(total, last.taps[1].factors[0])
        weights = [total - right, right]
    else:
        addresses = [address.advance(tap, last.sizes) for tap in last.taps]
        weights = shared_out(quarters(total, *last.taps[3].factors), [tap.missing for tap in last.taps])
    return [Weighted(*pair) for pair in zip(addresses, weights)]


def share(total: Weight, part: Weight) -> Weight:
    """``total * part / 256``, rounded, halves up."""
    return part if isinstance(total, int) and total == ONE else (total * part + 128) >> 8


def quarters(total: Weight, down: Weight, right: Weight) -> list[Weight]:
    """The weights of (y0 x0), (y0 x1), (y1 x0), (y1 x1): `total` is split along x, then both parts along y."""
    x1 = share(total, right)
    x0 = total - x1
    y1_x1 = share(x1, down)
    y1_x0 = (x0 * down + 127) >> 8  # halves down
    return [x0 - y1_x0, x1 - y1_x1, y1_x0, y1_x1]


def shared_out(weights: list[Weight], missing: list[jax.Array | None]) -> list[Weight]:
    """The four weights after a tap off a cube's corner has given its weight away.

    A third goes to each of the two adjacent taps, the remainder to the opposite one.
    """
    result = list(weights)
    for k, gone in enumerate(missing):
        assert gone is not None
        lost = jnp.where(gone, weights[k], 0)
        third = (2 * lost + 3) // 6
        for other, more in ((k ^ 1, third), (k ^ 2, third), (k ^ 3, lost - 2 * third), (k, -lost)):
            result[other] = result[other] + more
    return result


# The read


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
    # The stencils of every level. A single texel is not blended.
    levels = [list(stencils(*walk)) for walk in walks(coords, spec.axes, taps, ONE)]
    if len(levels) == len(levels[0]) == len(levels[0][0]) == 1:
        return single(load_texel(levels[0][0][0].address), spec.decoding)

    def loaded(stencil: list[Weighted]) -> list[tuple[jax.Array, jax.Array]]:
        # All texels with their weights, which are equal for all channels.
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
