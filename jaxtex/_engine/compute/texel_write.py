"""Writes of single texels, and the choice among several samples that write one texel.

A write has the axes, addresses and flat indices of a read, and ends in a scatter. If several samples write a texel, the
last one in flattened order is determined first, so that the scatter has one value for each texel. So results and
gradients are equal on all backends.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..._jax.indexing import gather, scatter
from ..._jax.primitives import straight_through
from ..._jax.shapes import as_operand, is_symbolic
from ..._tables.storage_formats import sum_dtype
from ..describe.axis import Axis, Role
from ..describe.operands import Coords
from ..walk.texel_order import flattened
from ..walk.texel_walk import TexelAddress, both, only_address, with_given
from .texel_value import in_bits, in_wide_texels, moves_as_bits, with_nan_of

# An array with a number for each texel determines the last samples, at a cost that does not depend on the number of
# samples. With fewer than one sample per so many texels, sorting the samples costs less.
TEXELS_PER_SAMPLE = 256


def write(
    texels: jax.Array, values: jax.Array, coords: Coords, axes: tuple[Axis, ...], rule: str, *, unique: bool
) -> jax.Array:
    """`texels`, with `values`, S + (C,), written at `coords`.

    Args:
        rule: "set", "add", "min" or "max". Of several samples that set a texel, the last in flattened order wins.
        unique: whether no two samples write one texel; for the rule "set".
    """
    if 0 in values.shape:
        return texels
    if rule == "set":
        return keeping_bits(functools.partial(written, axes=axes, unique=unique), texels, values, coords)
    join = add if rule == "add" else functools.partial(extreme, rule=rule)
    return keeping_nan(functools.partial(join, axes=axes), texels, values, coords)


def keeping_bits(
    in_floats: Callable[..., jax.Array], texels: jax.Array, values: jax.Array, coords: Coords
) -> jax.Array:
    """The write ``in_floats(texels, values, coords)``, which only moves texels, without changing bits of NaN."""

    def in_integers(texels: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
        return in_bits(lambda texels, values: in_floats(texels, values, coords), texels, values)

    def on_platform(texels: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
        return jax.lax.platform_dependent(texels, values, coords, cpu=in_integers, default=in_floats)

    if not moves_as_bits(texels.dtype):
        return in_floats(texels, values, coords)
    return straight_through(on_platform, in_floats, texels, values, coords, linear_in=(0, 1))


def written(texels: jax.Array, values: jax.Array, coords: Coords, axes: tuple[Axis, ...], *, unique: bool) -> jax.Array:
    """A write by the rule "set", which only moves values, of any dtype."""
    address, stored = landing(values, coords, axes), flattened(texels, axes)
    samples, num_texels = math.prod(values.shape[:-1]), math.prod(stored.shape[:-1])
    is_known = not is_symbolic(values.shape, stored.shape)
    # Samples on a grid: the last one at each texel follows from the last one along each axis.
    lines = grid_lines(coords, axes) if is_known and 2 * samples >= num_texels else None
    if lines is not None:
        result = pull(newest_on_grid(values.shape[:-1], lines), texels, values)
    # No two samples write one texel, so the order does not matter.
    elif unique:
        result = push(stored, values, address, None)
    # Few samples: sorting them finds the last one at each texel.
    elif is_known and samples * TEXELS_PER_SAMPLE < num_texels:
        result = push(stored, values, address, last_by_sorting(address, stored.shape[:-1]))
    else:
        # Many, or symbolic numbers: the largest number at each texel, found by a scatter. The write is then one of
        # samples, or of texels.
        number = numbers(values.shape[:-1])
        newest = jnp.full((*stored.shape[:-1], 1), -1, jnp.int32)
        newest = scatter(newest, address.flat_index, address.inside, number[..., None], "max")
        if is_known and 2 * samples < num_texels:
            result = push(stored, values, address, gather(newest, address.flat_index)[..., 0] == number)
        else:
            newest = newest[..., 0].reshape(texels.shape[:-1])
            result = in_wide_texels(functools.partial(pull, newest), texels, values)
    return result.reshape(texels.shape)


class Line(NamedTuple):
    """The last sample at each index of an axis of the texture, for samples on a grid.

    Attributes:
        newest: the index of the last sample along `along`, or -1 if there is none, int32, (extent,).
        along: the sample axis along which the coordinate varies; `None` if it is constant.
    """

    newest: jax.Array
    along: int | None


def grid_lines(coords: Coords, axes: tuple[Axis, ...]) -> list[Line] | None:
    """The lines of samples on a grid, or `None` if they are not on a grid.

    On a grid, each coordinate varies along a sample axis of its own, as the shapes show: x (1, W) and y (H, 1). Then
    the last sample at a texel is the last one along each axis.
    """
    coords, axes = with_given(coords, axes)
    if axes[0].role is Role.LEVEL:
        return None
    lines, taken = [], set()
    for coord, axis in zip(coords, axes):
        # Each coordinate must have a sample axis of its own.
        varying = [k for k, n in enumerate(coord.shape) if n > 1]
        if len(varying) > 1 or taken.intersection(varying):
            return None
        taken.update(varying)
        # The last sample at each index is the largest number there.
        address = only_address((coord.ravel(),), (axis,))
        newest = jnp.full((axis.extent, 1), -1, jnp.int32)
        number = numbers(address.flat_index[0].shape)
        newest = scatter(newest, address.flat_index, address.inside, number[:, None], "max")
        lines.append(Line(newest[:, 0], varying[0] if varying else None))
    return lines


def newest_on_grid(shape: tuple[int, ...], lines: list[Line]) -> jax.Array:
    """The number of the last sample at each texel, for samples of `shape` on a grid; -1 if there is none."""
    # The number of a sample is a sum over its axes; along axes that no coordinate has, the last one counts.
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    along = {line.along for line in lines}
    newest = jnp.int32(sum((shape[k] - 1) * strides[k] for k in range(len(shape)) if k not in along))
    for k, line in enumerate(lines):
        here = line.newest.reshape([-1 if j == k else 1 for j in range(len(lines))])
        step = here * strides[line.along] if line.along is not None else 0
        newest = jnp.where((newest >= 0) & (here >= 0), newest + step, -1)
    return newest


def push(stored: jax.Array, values: jax.Array, address: TexelAddress, last: jax.Array | None) -> jax.Array:
    """The write as a scatter: each sample with `last` (all if `None`) writes its texel."""
    return scatter(stored, address.flat_index, both(address.inside, last), values, "set", unique=True)


def pull(newest: jax.Array, texels: jax.Array, values: jax.Array) -> jax.Array:
    """The write as a gather: each texel takes the value of the sample `newest`, or keeps its own if that is -1."""
    source = gather(values.reshape(-1, values.shape[-1]), (jnp.maximum(newest, 0),))
    return jnp.where((newest >= 0)[..., None], source, texels)


def last_by_sorting(address: TexelAddress, extents: tuple[int, ...]) -> jax.Array:
    """The mask of the samples that are the last in flattened order at their address."""
    first, *others = address.flat_index
    first = first if address.inside is None else jnp.where(address.inside, first, extents[0])
    number = numbers(first.shape)
    *keys, order = jax.lax.sort([k.ravel() for k in (first, *others, number)], num_keys=len(extents) + 1)
    changes = functools.reduce(jnp.logical_or, (k[1:] != k[:-1] for k in keys))
    return (
        jnp.zeros(number.size, bool).at[order].set(jnp.append(changes, True), unique_indices=True).reshape(first.shape)
    )


def keeping_nan(result: Callable[..., jax.Array], texels: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
    """The reduction ``result(texels, values, coords)``, with the bits of NaN texels kept."""

    def kept(texels: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
        return with_nan_of(texels, result(texels, values, coords))

    # 16-bit floats are converted to float32 and back, which changes the bits of NaN.
    halves = jnp.issubdtype(texels.dtype, jnp.floating) and sum_dtype(texels.dtype) != texels.dtype
    if not halves:
        return result(texels, values, coords)
    return straight_through(kept, result, texels, values, coords, linear_in=(0, 1))


def add(texels: jax.Array, values: jax.Array, coords: Coords, axes: tuple[Axis, ...]) -> jax.Array:
    """`texels` plus `values`, S + (C,), at `coords`; 16-bit floats are summed in float32."""
    address, floating = landing(values, coords, axes), jnp.issubdtype(texels.dtype, jnp.floating)
    total = sum_dtype(texels.dtype) if floating else texels.dtype
    stored = flattened(texels, axes).astype(total)
    result = scatter(stored, address.flat_index, address.inside, values.astype(total), "add")
    return result.reshape(texels.shape).astype(texels.dtype)


def extreme(texels: jax.Array, values: jax.Array, coords: Coords, axes: tuple[Axis, ...], rule: str) -> jax.Array:
    """The minimum or maximum, by `rule`, of each texel and the values written to it, channel by channel."""
    address = landing(values, coords, axes)
    reduced = functools.partial(extreme_value, rule=rule)
    selected = functools.partial(extreme_source, rule=rule)
    stored = flattened(texels, axes)
    return straight_through(reduced, selected, stored, values, address.flat_index, address.inside).reshape(texels.shape)


def extreme_value(
    stored: jax.Array, values: jax.Array, indices: tuple[jax.Array, ...], inside: jax.Array | None, rule: str
) -> jax.Array:
    return scatter(stored, indices, inside, values, rule)


def extreme_source(
    stored: jax.Array, values: jax.Array, indices: tuple[jax.Array, ...], inside: jax.Array | None, rule: str
) -> jax.Array:
    """`extreme_value` as a selection, for its gradient: the texel if it ties, otherwise the first value that does."""
    best = jax.lax.stop_gradient(extreme_value(stored, values, indices, inside, rule))
    shape, channels = values.shape[:-1], values.shape[-1]
    count = as_operand(math.prod(shape))
    number = jnp.where(same(values, gather(best, indices)), numbers(shape)[..., None], count)
    first = scatter(jnp.full(best.shape, count, jnp.int32), indices, inside, number, "min")
    channel = jnp.broadcast_to(jnp.arange(channels, dtype=jnp.int32), first.shape)
    source = gather(values.reshape(-1, channels, 1), (jnp.minimum(first, count - 1), channel))[..., 0]
    return jnp.where(same(stored, best) | (first == count), stored, source)


def landing(values: jax.Array, coords: Coords, axes: tuple[Axis, ...]) -> TexelAddress:
    """The address of each value; its indices have the shape of the samples."""
    address, shape = only_address(coords, axes), values.shape[:-1]
    wide = lambda a: jnp.broadcast_to(a, shape)
    return address._replace(
        indices=tuple(map(wide, address.indices)), inside=None if address.inside is None else wide(address.inside)
    )


def numbers(shape: tuple[int, ...]) -> jax.Array:
    """The numbers of samples of a shape, in flattened order, int32."""
    return jnp.arange(math.prod(shape), dtype=jnp.int32).reshape(shape)


def same(a: jax.Array, b: jax.Array) -> jax.Array:
    """Whether numbers are equal, or both NaN."""
    return (a == b) | ((a != a) & (b != b))
