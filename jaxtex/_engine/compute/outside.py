"""Taps that read no texel: those outside the texture, and those whose texel is not stored.

Their masks are conditions of samples, for each of their channels. A loop of XLA for CPUs over samples has one over
their channels inside. LLVM moves a condition that all channels share out of the inner one, as a branch, and then
vectorizes neither. A mask that each channel compares with a number of its own stays a mask. These numbers are zeros
behind a boundary, so that LLVM does not know them.
"""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from ..._jax.barriers import materialized
from ..describe.axis import Axis
from ..describe.operands import Coords
from ..describe.spec import ReadSpec
from ..walk.texel_walk import AxisTaps, TexelAddress, both, taps, taps_are_available, walks

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


# The weight outside


def beyond(coords: Coords, axes: tuple[Axis, ...]) -> tuple[jax.Array, jax.Array]:
    """The weight of each read that lies outside the texture, and whether all of its taps lie inside; shape S."""
    whole, total, all_inside = [], [], None
    for weight, _, steps in walks(coords, axes):
        share = jnp.asarray(weight, coords[-1].dtype)
        whole.append(share)
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
    """A read with zero outside, S + (C,), and a color, which broadcasts to it, times the weight that lies outside."""
    # Where all taps are inside, the color has no part, even if it is not finite.
    return jnp.where(for_channels(all_inside), out, out + weight[..., None] * color)


# Texels that are not stored


def are_available(spec: ReadSpec, operands: Sequence[jax.Array], axis_taps: AxisTaps = taps) -> jax.Array:
    """Whether all texels that a result needs are stored.

    Args:
        axis_taps: finds the taps of one axis, as the read does.
    """
    if spec.several is None:
        available = taps_are_available(spec.coords(operands), spec.axes, axis_taps)
    else:

        def one(number: jax.Array) -> jax.Array:
            coords, weight = spec.read_at(number, *spec.numbers(operands))
            return taps_are_available(coords, spec.axes, axis_taps) | ~(weight > 0)

        ranked = jnp.arange(1, spec.num_reads + 1, dtype=jnp.int32).reshape(-1, *[1] * operands[0].ndim)
        available = jnp.all(jax.lax.map(one, ranked), 0)
    return jnp.all(available, spec.summed_axes, keepdims=True) if spec.summed_axes else available


def where_available(
    values: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, missing: float = 0, axis_taps: AxisTaps = taps
) -> jax.Array:
    """Values of samples, S + (C,), and `missing` where a sample needs texels that are not stored."""
    return jnp.where(are_available(spec, operands, axis_taps)[..., None], values, jnp.asarray(missing, values.dtype))
