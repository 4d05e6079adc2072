"""The array operations of the primitives: a product over axes of taps, weights and addresses.

Nothing here knows a mode or a dimension. `blend` and `contributions` walk over one list of taps, and the caller passes
in what happens at the end of a walk: a gather or a scatter of arrays here, a load or an addition to memory in a kernel.
`read` and `splat` are linear in their first argument, and transposes of each other. So are `pushforward`, the
derivative of a read in texels and operands, and `pullback`.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.barriers import ForChannels, alike, one_by_one
from ..._jax.indexing import over_batch, scatter
from ..._jax.primitives import straight_through
from ..._jax.shapes import broadcast_shapes
from ..._tables.storage_formats import Decoding
from ..describe.axis import Axis, Role
from ..describe.operands import Coords, widened
from ..describe.spec import Combination, ReadSpec
from ..walk.combinations import blends, heaviest, limited_blend
from ..walk.texel_order import flat_sizes, flattened, texels_shape
from ..walk.texel_walk import AxisTaps, Path, Step, TexelAddress, TexelValue, Walk, both, taps, walks, weighted
from .texel_sums import TexelSums, units_of
from .texel_value import (
    Loads,
    LoadTexel,
    bits_dtype,
    gathers,
    in_bits,
    moves_as_bits,
    value_of_texel,
)

# A function from the number of a read, one of several, to its values.
OneRead = Callable[[jax.Array], jax.Array]


# The walks of a read and of a splat


def blend(coords: Coords, axes: tuple[Axis, ...], texel_value: TexelValue) -> jax.Array:
    """The weighted sum of `texel_value` over all taps, nested axis by axis: S + (C,)."""
    return blend_of(walks(coords, axes), texel_value)


def blend_inside(coords: Coords, axes: tuple[Axis, ...], texel_value: TexelValue) -> jax.Array:
    """`blend` of finite values that are zero outside.

    Taps outside get weight zero, which costs less than to replace the values of all channels.
    """
    inside = ((w, start, [step.without_outside() for step in steps]) for w, start, steps in walks(coords, axes))
    return blend_of(inside, texel_value)


def blend_of(paths: Iterable[Walk], texel_value: TexelValue) -> jax.Array:
    """`blend` over given walks."""

    def interpolate(address: TexelAddress, steps: list[Step], path: Path) -> jax.Array:
        if not steps:
            return texel_value(address, path)
        step, *rest = steps
        parts = (
            weighted(weight, interpolate(address.advance(tap, step.sizes), rest, (*path, k)))
            for k, (tap, weight) in enumerate(zip(step.taps, step.weights()))
        )
        return functools.reduce(jnp.add, parts)

    values = (weighted(w, interpolate(start, steps, (k,))) for k, (w, start, steps) in enumerate(paths))
    return functools.reduce(jnp.add, values)


COMBINATIONS = {Combination.BLEND: blend, Combination.LIMITED: limited_blend, Combination.VOTE: heaviest}


def contributions(
    value: jax.Array, coords: Coords, axes: tuple[Axis, ...], axis_taps: AxisTaps = taps
) -> Iterator[tuple[TexelAddress, jax.Array]]:
    """For each tap, its address and its share of `value`, S + (C,)."""
    for weight, address, steps in walks(coords, axes, axis_taps):
        yield from contributions_of_steps(address, steps, weighted(weight, value))


def contributions_of_steps(
    address: TexelAddress, steps: list[Step], value: jax.Array
) -> Iterator[tuple[TexelAddress, jax.Array]]:
    """`contributions`, for the remaining steps of a walk."""
    if not steps:
        yield address, value
        return
    step, *rest = steps
    for tap, weight in zip(step.taps, step.weights()):
        yield from contributions_of_steps(address.advance(tap, step.sizes), rest, weighted(weight, value))


# The read and its adjoint


def read(texels: jax.Array, *args: jax.Array, spec: ReadSpec, loads: Loads = gathers) -> jax.Array:
    """Reads `texels` at coordinates, with zero or a border color outside.

    Args:
        texels: ``(*sizes, C)``, one size for each axis; or a mip chain, ``(total, C)``.
        args: the border color, (C,) of `spec.sums`, if `spec.has_color`; then the operands: sizes and starts of axes,
            and the arguments of `spec.grid`, which returns a coordinate for each axis. Operands have one rank, and
            broadcast to S; stacked ones have one more axis, see `spec.stacks`.

    Returns:
        S + (C,) of `spec.dtype`, to which sums are rounded; size 1 along `spec.summed_axes`. Single texels keep all
        their bits.
    """
    color, operands = spec.color_and_operands(args)
    alone = spec.several is None and not spec.summed_axes and spec.expected is None
    if color is not None and alone and blends_codes(texels, spec):
        # In a sum of stored integers, the color is added once, not for every tap.
        out = read(texels, *operands, spec=spec.replace(has_color=False, dtype=spec.sums), loads=loads)
        color, masks = color.reshape(*[1] * (out.ndim - 1), -1), one_by_one(out.shape[-1])
        return with_color(out, color, *weight_outside(*operands, spec=spec), masks).astype(spec.dtype)
    if moves_as_bits(texels.dtype) and spec.returns_texels(texels.dtype):
        as_integers = spec.with_dtype(bits_dtype(texels.dtype))
        return in_bits(lambda bits: read(bits, *args, spec=as_integers), texels)
    # All other reads: the loads of texels, the color, and the masks of taps outside.
    load_texel = loads(flattened(texels, spec.axes))
    if color is not None:
        color = color.reshape(*[1] * len(spec.sample_shapes(operands)[0]), -1)
    codes = color is None and blends_codes(texels, spec)
    has_outside = not codes and any(axis.address.has_outside for axis in spec.axes)
    masks = one_by_one(texels.shape[-1], spec.num_taps) if has_outside else alike
    # One value at given coordinates; `result` finds these, and combines several.
    one_read = lambda coords: value(load_texel, coords, spec, color, codes=codes, for_channels=masks)
    return result(one_read, operands, spec)


def blends_codes(texels: jax.Array, spec: ReadSpec) -> bool:
    """Whether the read is a weighted sum of stored integers, which are always finite."""
    stored = not jnp.issubdtype(texels.dtype, jnp.floating) and jnp.issubdtype(spec.sums, jnp.floating)
    several = any(axis.kernel.num_taps > 1 for axis in spec.axes if not axis.integer)
    return stored and several and spec.combination is Combination.BLEND and not spec.derivatives


def value(
    load_texel: LoadTexel,
    coords: Coords,
    spec: ReadSpec,
    color: jax.Array | None = None,
    *,
    codes: bool = False,
    for_channels: ForChannels | None = alike,
) -> jax.Array:
    """The value of a read at `coords`, S + (C,).

    Args:
        load_texel: returns stored texels, S + (C,).
        color: the border color, which broadcasts to S + (C,); `None` for zero.
        codes: whether texels are finite, and there is no border color.
        for_channels: as in `value_of_texel`.

    Returns:
        S + (C,); of several derivatives, their channels one after the other.
    """
    # The texel of a tap, decoded, with the color outside.
    texel_value = value_of_texel(load_texel, spec, color, for_channels)
    if spec.derivatives:
        return jnp.concatenate(blends(coords, spec.axes, texel_value, spec.derivatives), -1)
    # A read of one level, of weight one, that adds up several weights of its border color: the sum of weights is one
    # but for a rounding. Where no combination of taps lies inside, the value is the color to the last bit.
    several = any(axis.kernel.num_taps > 1 for axis in spec.axes if not axis.integer)
    plain = all(axis.role not in (Role.LEVEL, Role.WEIGHT) and not axis.order for axis in spec.axes)
    if color is not None and several and plain and spec.combination is Combination.BLEND:
        (walk,) = walks(coords, spec.axes)
        blended = blend_of([walk], texel_value)
        of_steps = ([tap.inside for tap in step.taps if tap.inside is not None] for step in walk[2])
        masks = (functools.reduce(jnp.logical_or, masks) for masks in of_steps if masks)
        inside = functools.reduce(both, masks, None)
        return blended if inside is None else jnp.where((for_channels or alike)(inside), blended, color)
    # All other reads combine values of taps, colors included.
    combine = blend_inside if codes else COMBINATIONS[spec.combination]
    return combine(coords, spec.axes, texel_value)


def result(
    read: Callable[[Coords], jax.Array],
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    wrap: Callable[[OneRead], OneRead] = lambda read: read,
) -> jax.Array:
    """The result of a read: ``read(coords)``, or the weighted mean of several, summed and rounded as `spec` says.

    Args:
        wrap: a transformation of the function that computes one of several reads, such as `jax.checkpoint`.
    """
    if spec.several is None:
        return summed(read(spec.coords(operands)), spec).astype(spec.dtype)

    def weighted_read(number: jax.Array) -> jax.Array:
        coords, weight = spec.read_at(number, *spec.numbers(operands))
        # A read of weight zero counts as zero, even if its value is NaN.
        return jnp.where(weight[..., None] > 0, weighted(weight, read(coords)), 0)

    return summed(sum_of_calls(wrap(weighted_read), spec.num_reads), spec).astype(spec.dtype)


def summed(values: jax.Array, spec: ReadSpec) -> jax.Array:
    """The values of samples, S + (C,), summed along `spec.summed_axes`."""
    along = [axis - 1 for axis in spec.summed_axes]  # channels come after the samples
    return jnp.sum(values, along, keepdims=True) if along else values


def sum_of_calls(one: Callable[[jax.Array], jax.Array], count: int) -> jax.Array:
    """The sum of ``one(1)`` to ``one(count)``, by a scan."""
    numbers = jnp.arange(1, count + 1, dtype=jnp.int32)
    return jax.lax.scan(lambda total, number: (total + one(number), None), one(numbers[0]), numbers[1:])[0]


def derivatives(texels: jax.Array, *args: jax.Array, spec: ReadSpec) -> list[jax.Array]:
    """The values of `read` for each of `spec.derivatives`, S + (C,)."""
    return jnp.split(read(texels, *args, spec=spec), len(spec.derivatives), -1)


def splat(values: jax.Array, *operands: jax.Array, spec: ReadSpec) -> jax.Array:
    """The adjoint of `read` in its texels: the weighted sums of `values` into texels, of `spec.dtype`.

    Values broadcast to S + (C,). Sums are taken in their dtype, or in float32. Taps outside are dropped.
    """
    values, coords = widened(values), spec.coords(operands)
    # Reproducible sums are multiples of a unit that fits the largest of them.
    units = None
    if spec.deterministic:
        units = units_of(values, spec.axes, functools.partial(samples_per_texel, coords), spec.factors(coords))
    # Sums as rows, one for each texel, and then as texels.
    sums = TexelSums(values.shape[-1], values.shape[-1], units)
    total = jnp.zeros((*flat_sizes(spec.axes), sums.width), values.dtype)
    return as_texels(accumulated(total, values, coords, spec.axes, sums), spec.axes, sums, spec.dtype)


def accumulated(
    total: jax.Array,
    values: jax.Array,
    coords: Coords,
    axes: tuple[Axis, ...],
    sums: TexelSums,
    axis_taps: AxisTaps = taps,
) -> jax.Array:
    """`total`, plus the contributions of `values`."""
    for address, value in contributions(values, coords, axes, axis_taps):
        total = scatter(total, address.flat_index, address.inside, sums.terms(value), "add")
    return total


def as_texels(total: jax.Array, axes: tuple[Axis, ...], sums: TexelSums, dtype: np.dtype) -> jax.Array:
    """The texels of a texture, from sums in the layout `sums`."""
    return sums.joined(total).reshape(texels_shape(axes, sums.channels)).astype(dtype)


# Reproducible sums


def samples_per_texel(coords: Coords, axes: tuple[Axis, ...]) -> jax.Array:
    """The number of samples that read each texel under `axes`, as float32."""
    ones = jnp.ones((*broadcast_shapes(*(c.shape for c in coords)), 1), jnp.float32)
    return splat(ones, *coords, spec=ReadSpec(axes, Decoding.ELEMENT, np.dtype(np.float32)))


# Batches


def batched(implementation: Callable[..., Any], *args: jax.Array, batch: int, **params: Any) -> Any:
    """`implementation` over `batch` leading axes."""
    return over_batch(functools.partial(implementation, **params), batch)(*args)


# The weight of taps outside


def beyond(coords: Coords, axes: tuple[Axis, ...]) -> tuple[jax.Array, jax.Array]:
    """For each read, the weight of its taps outside the texture, and whether all of its taps are inside; shape S."""
    whole, total, all_inside = [], [], None
    differentiated = any(axis.order for axis in axes)  # the derivatives of all weights sum to zero
    dtype = next((c.dtype for c in reversed(coords) if jnp.issubdtype(c.dtype, jnp.floating)), jnp.float32)
    # A level: its weight, and that weight times the share of taps inside, axis by axis.
    for weight, _, steps in walks(coords, axes):
        share = jnp.asarray(weight, dtype)
        whole.append(jnp.zeros_like(share) if differentiated else share)
        for step in steps:
            if step.taps[0].inside is None:
                continue
            weights = [jnp.asarray(w, share.dtype) for w in step.weights()]
            parts = (jnp.where(t.inside, w, 0) for t, w in zip(step.taps, weights) if t.inside is not None)
            share = share * functools.reduce(jnp.add, parts)
            all_inside = functools.reduce(both, (tap.inside for tap in step.taps), all_inside)
        total.append(share)
    assert all_inside is not None
    return functools.reduce(jnp.add, whole) - functools.reduce(jnp.add, total), all_inside


def with_color(
    out: jax.Array, color: jax.Array, weight: jax.Array, all_inside: jax.Array, for_channels: ForChannels = alike
) -> jax.Array:
    """`out`, a read with zero outside, S + (C,), plus a color, which broadcasts to it, times the weight outside."""
    # If all taps are inside, the color is not added, even if it is infinite or NaN.
    return jnp.where(for_channels(all_inside), out, out + weight[..., None] * color)


def weight_outside(*operands: jax.Array, spec: ReadSpec) -> tuple[jax.Array, jax.Array]:
    """For each result, the weight of its taps outside, and whether all of its taps are inside."""
    if spec.expected is not None:
        weight = straight_through(drawn_outside(spec), expected_outside(spec.expected), *operands)
        return weight, jnp.zeros(weight.shape, bool)
    # If all taps are inside, the weight is zero to the last bit.
    coords = spec.coords(operands)
    weight, all_inside = beyond(coords, spec.axes)
    weight = functools.reduce(jnp.multiply, spec.factors(coords), jnp.where(all_inside, 0, weight))
    along = spec.summed_axes
    return jnp.sum(weight, along, keepdims=True).astype(spec.sums), jnp.all(all_inside, along, keepdims=True)


def drawn_outside(spec: ReadSpec) -> Callable[..., jax.Array]:
    """The function from operands to the weight of drawn taps outside, 0 or 1."""
    return lambda *operands: beyond(spec.coords(operands), spec.axes)[0].astype(spec.sums)


def expected_outside(expected: ReadSpec) -> Callable[..., jax.Array]:
    """The expectation of `drawn_outside`."""
    weight = lambda coords: beyond(coords, expected.axes)[0][..., None]
    in_sums = expected.with_dtype(expected.sums)
    return lambda number, *operands: jnp.broadcast_to(
        result(weight, operands, in_sums)[..., 0], broadcast_shapes(*(a.shape for a in (number, *operands)))
    )
