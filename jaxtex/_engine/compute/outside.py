"""The weight of a read that lies outside its texture, where the border color is."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.straight_through import straight_through
from ..describe.axis import Axis, Role
from ..describe.spec import Coords, ReadSpec
from ..walk.channel_masks import ForChannels, alike, one_by_one
from ..walk.texel_walk import both, walks
from . import operators
from .operators import Loads, blends_codes, mean


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


def outside(*operands: jax.Array, spec: ReadSpec) -> tuple[jax.Array, jax.Array]:
    """The weight of each result that lies outside, and whether none does."""
    if spec.expected is not None:
        weight = straight_through(drawn_outside(spec), expected_outside(spec.expected))(*operands)
        return weight, jnp.zeros(weight.shape, bool)
    coords = spec.coords(operands)
    weight, all_inside = beyond(coords, spec.axes)
    factors = (c for c, axis in zip(coords[spec.given :], spec.axes) if axis.role is Role.WEIGHT)
    weight = functools.reduce(jnp.multiply, factors, jnp.where(all_inside, 0, weight))
    along = spec.summed_axes
    return jnp.sum(weight, along, keepdims=True).astype(spec.sums), jnp.all(all_inside, along, keepdims=True)


def read(texels: jax.Array, *args: jax.Array, spec: ReadSpec, loads: Loads = operators.gathers) -> jax.Array:
    """`operators.read`. In a sum of stored integers the color takes a part once, not at each tap."""
    alone = spec.several is None and not spec.summed_axes and spec.expected is None
    if not (spec.has_color and alone and blends_codes(texels, spec)):
        return operators.read(texels, *args, spec=spec, loads=loads)
    color, *operands = args
    out = operators.read(texels, *operands, spec=spec.over(None).with_dtype(spec.sums), loads=loads)
    color = color.reshape(*[1] * (out.ndim - 1), -1)
    masks = one_by_one(out.shape[-1])
    return with_color(out, color, *outside(*operands, spec=spec), masks).astype(spec.dtype)


def with_color(
    out: jax.Array, color: jax.Array, weight: jax.Array, all_inside: jax.Array, for_channels: ForChannels = alike
) -> jax.Array:
    """A read with zero outside, S + (C,), and a color, which broadcasts to it, times the weight that lies outside."""
    # Where all taps are inside, the color has no part, even if it is not finite.
    return jnp.where(for_channels(all_inside), out, out + weight[..., None] * color)


def drawn_outside(spec: ReadSpec) -> Callable[..., jax.Array]:
    """The weight of drawn taps that lies outside, 0 or 1, as a function of the operands."""
    return lambda *operands: beyond(spec.coords(operands), spec.axes)[0].astype(spec.sums)


def expected_outside(expected: ReadSpec) -> Callable[..., jax.Array]:
    """Its expectation."""
    weight = lambda coords: beyond(coords, expected.axes)[0][..., None]
    in_sums = expected.with_dtype(expected.sums)
    return lambda number, *operands: jnp.broadcast_to(
        mean(weight, operands, in_sums)[..., 0], np.broadcast_shapes(*(a.shape for a in (number, *operands)))
    )
