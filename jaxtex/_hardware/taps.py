"""Integer weights in 1/256: the taps of an axis, and the weights of the texels of a level.

Positions are fixed point. A normalized coordinate is truncated to `coordinate_bits` bits of fraction and multiplied by
the size exactly, in integers. The product is rounded to 8 bits of fraction for a linear read, and truncated to whole
texels for a point read.

The weights of a read sum to 256. The total is split axis by axis, each part rounded, in the order level, z, x, y.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .._engine.describe.axis import Axis, Role
from .._engine.walk.texel_walk import COORDINATE_LIMIT, POSITION_LIMIT, Step, Taps, TexelAddress, clipped_to_unit
from .._jax.instructions import scaled_product
from .._tables.address_rules import CLAMP, MIRROR, WRAP
from .._tables.filter_kernels import LEVEL_BLEND, LINEAR, LINEAR_TAPS, POINT

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
    if axis.role is Role.LEVEL:
        return level_taps(coord, axis)
    if axis.kernel == POINT:
        whole, part = position(coord, axis, bits=0)
        return [(whole + part, ONE)]
    whole, part = position(coord, axis, bits=8)
    part = part - ONE // 2
    if axis.kernel in LINEAR_TAPS:  # of a gather
        return [(whole + (part >> 8) + axis.kernel.first, ONE)]
    assert axis.kernel == LINEAR
    if axis.address is CLAMP:
        whole, part = 0, jnp.clip(whole * ONE + part, 0, (axis.given_size - 1) * ONE)
    return between(whole, part)


def level_taps(lod: jax.Array, axis: Axis) -> Taps:
    """The mip levels that a read blends, with their weights.

    Args:
        lod: the level of detail, int32, in 1/256.
    """
    if axis.kernel != LEVEL_BLEND:
        return [((lod + 128) >> 8, ONE)]
    return between(0, lod)


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
    part = scaled_product(low, size, (one >> 9) if bits else 0, kept - bits)
    if axis.address is WRAP:
        return 0, part
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
    part = jnp.floor((x - whole) * ONE + 0.5) if bits else jnp.zeros_like(x)
    return whole.astype(jnp.int32), part.astype(jnp.int32)


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
