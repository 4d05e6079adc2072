"""The adjoint on GPUs in programs without kernels: scatters of pairs of adjacent texels into private copies.

XLA scatters a window of two rows at hardly more cost than one row. The two taps of a linear filter along x are adjacent
in memory, so they form one window, except at a seam.
"""

import functools
import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp

from ..._jax.indexing import explicit_sharding, scatter, scatter_windows
from ..._jax.shapes import broadcast_shapes
from ..compute import linearization, operators
from ..compute.operators import as_texels, contributions_of_steps, samples_per_texel
from ..compute.texel_sums import TexelSums, num_private_copies, units_of
from ..compute.texel_value import zero_outside
from ..describe.axis import Axis, Role, num_given
from ..describe.operands import Coords, widened
from ..describe.spec import ReadSpec, Wrt
from ..walk.texel_order import flat_sizes
from ..walk.texel_walk import Step, Tap, TexelAddress, walks, weighted


def splat(values: jax.Array, *operands: jax.Array, spec: ReadSpec) -> jax.Array:
    """`operators.splat` in the form of array operations that is fastest on GPUs."""
    # Hashed levels, and values that are sharded, take the general form.
    values, axes, coords = widened(values), spec.axes, spec.coords(operands)
    if len(flat_sizes(axes)) > 1 or explicit_sharding(values) is not None:
        return operators.splat(values, *operands, spec=spec)
    # Reproducible sums are multiples of a unit that fits the largest of them.
    units = None
    if spec.deterministic:
        units = units_of(values, axes, functools.partial(samples_per_texel, coords), spec.factors(coords))
    # Neighboring texels of a row are added to as one window.
    channels, shape = values.shape[-1], broadcast_shapes(values.shape[:-1], *(c.shape for c in coords))
    sums = TexelSums(channels, channels, units)
    paired = channels > 1 and taps_are_neighbors(axes)
    stored = padded(axes) if paired else axes
    (texels,) = flat_sizes(stored)
    # Where samples crowd, they add to private copies, a power of two of them; adjacent samples to different ones.
    copies, base = num_private_copies(math.prod(shape), texels, channels), jnp.int32(0)
    total = jnp.zeros((copies * texels, sums.width), values.dtype)
    if copies > 1:
        strides = (math.prod(shape[k + 1 :]) for k in range(len(shape)))
        numbers = (jax.lax.broadcasted_iota(jnp.int32, shape, k) * stride for k, stride in enumerate(strides))
        base = (functools.reduce(jnp.add, numbers, jnp.int32(0)) & (copies - 1)) * texels
    # Each tap of each sample is added, or each pair of taps.
    if paired:
        for address, value in pairs(values, coords, axes):
            total = scatter_windows(total, address.flat_index[0] + base, sums.terms(value))
    else:
        for address, value in operators.contributions(values, coords, axes):
            total = scatter(total, (address.flat_index[0] + base,), address.inside, sums.terms(value), "add")
    # Copies are added up, and then the padding of rows.
    total = jnp.sum(total.reshape(copies, texels, sums.width), 0)
    return as_texels(folded(total, stored, axes), axes, sums, spec.dtype)


def pullback(
    cotangent: jax.Array, texels: jax.Array, *operands: jax.Array, spec: ReadSpec, wrt: Wrt
) -> tuple[jax.Array, ...]:
    """`linearization.pullback` in the form of array operations that is fastest on GPUs."""
    return linearization.pullback(cotangent, texels, *operands, spec=spec, wrt=wrt, splat=splat)


def taps_are_neighbors(axes: tuple[Axis, ...]) -> bool:
    """Whether the last axis has two taps whose texels are adjacent in memory."""
    last = axes[-1]
    adjacent = not num_given(axes) and axes[0].role is not Role.LEVEL and last.address.neighbors_stay_adjacent
    return adjacent and not last.integer and last.kernel.num_taps == 2 and last.known_size > 1


def padded(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The axes of the sums: under a cyclic address rule, rows have one more element, a copy of their first texel."""
    *front, last = axes
    return (*front, last._replace(size=last.known_size + 1)) if last.address.cyclic else axes


def folded(total: jax.Array, stored: tuple[Axis, ...], axes: tuple[Axis, ...]) -> jax.Array:
    """Sums in padded rows, folded to sums of texels: the last element of a row is added to the first."""
    if stored == axes:
        return total
    size = axes[-1].known_size
    rows = total.reshape(-1, size + 1, total.shape[-1])
    return rows[:, :size].at[:, 0].add(rows[:, size]).reshape(-1, total.shape[-1])


def pairs(value: jax.Array, coords: Coords, axes: tuple[Axis, ...]) -> Iterator[tuple[TexelAddress, jax.Array]]:
    """For each pair of adjacent taps, the address of the lower texel and the shares of `value`, S + (2, C)."""
    last = padded(axes)[-1]
    for weight, start, (*steps, step) in walks(coords, axes):
        for address, part in contributions_of_steps(start, steps, weighted(weight, value)):
            first, pair = adjacent_pair(step, zero_outside(address, part), last)
            yield address.advance(Tap((first,), None, ()), (last.known_size,)), pair


def adjacent_pair(step: Step, value: jax.Array, axis: Axis) -> tuple[jax.Array, jax.Array]:
    """The lower of the two adjacent texels that a step's taps read, and the share of each texel, S + (2, C).

    The texel of the second tap follows that of the first, precedes it (in a mirrored period), or is equal to it. Under
    a cyclic rule, the element after the last texel stands for the first.
    """
    # The share of each of the two taps, zero for one outside.
    parts = (weighted(weight, value) for weight in step.weights())
    masked = (
        part if t.inside is None else jnp.where(t.inside[..., None], part, 0) for t, part in zip(step.taps, parts)
    )
    (i, j), (first, second) = (tap.index[0] for tap in step.taps), masked
    wide = lambda condition: condition[..., None]
    # Which of the two texels is the lower one.
    down, same = j == i - 1, i == j
    low = jnp.where(wide(down), second, jnp.where(wide(same), first + second, first))
    high = jnp.where(wide(down), first, jnp.where(wide(same), 0, second))
    # At the end of a row, the window moves back by one texel.
    start, end = jnp.where(down, j, i), axis.known_size - 2
    beyond = start > end  # both taps on the last texel
    pair = jnp.stack([jnp.where(wide(beyond), 0, low), jnp.where(wide(beyond), low, high)], -2)
    return jnp.minimum(start, end), pair
