"""Reads of a texture that is cut over devices along one axis: what each device computes, and what it exchanges.

The functions here run on each device, inside `jax.shard_map`. A device stores neighboring texels of the axis, a part
of it. `Stored` says which, so that every filter, address mode and kind reads a part as it reads the whole, to the bit.
Exchanges are collectives of JAX, whose transposes send gradients back.

There are two ways. By halo, each device receives the texels beside its own, as far as its samples reach. By routing,
samples travel to the device that stores their texels, and values travel back.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from . import edged_reads
from .axis import Axis, Stored, start_axis
from .exchange import Cut, Edges, with_edges
from .grids import Started
from .lowering.parts import Edged
from .spec import ReadSpec, as_given
from .texel_walk import middle_texel

# A read of one device: of texels, at operands. The other one marks the samples that need texels it does not have.
EdgedRead = Callable[[Edged, Sequence[jax.Array], ReadSpec], jax.Array]
Read = Callable[[jax.Array, Sequence[jax.Array], ReadSpec], jax.Array]


class ReadResult(NamedTuple):
    """The values of a device's samples, and which of them are right.

    The others reach further than allowed, and are NaN, or zero if they are integers.
    """

    values: jax.Array
    reached: jax.Array


# By halo


def with_halo(texels: jax.Array, edges: Edges) -> jax.Array:
    """A device's texels with those that it receives from its neighbors on both sides."""
    own, before, after = with_edges(texels, edges)
    return jnp.concatenate([before, own, after], edges.cut.dimension)


def edges_of(spec: ReadSpec, cut: Cut, reach: int) -> Edges:
    """The `reach` texels on each side of a part."""
    return Edges(cut, reach, spec.axes[cut.axis].address.cyclic)


def in_part(spec: ReadSpec, operands: Sequence[jax.Array], cut: Cut, reach: int) -> tuple[ReadSpec, list[jax.Array]]:
    """A read, of operands that hold one number of each sample, in the part that a device stores with its halo."""
    # Where the last texel and the first are no neighbors, there is room between them for texels that nothing reads.
    circle = cut.circle if spec.axes[cut.axis].address.cyclic else cut.circle + reach
    stored = Stored(cut.own + 2 * reach, circle)
    axes = list(spec.axes)
    axes[cut.axis] = axes[cut.axis]._replace(stored=stored)
    grid = as_given if spec.grid is as_given else Started(spec.grid, spec.num_reads > 1)
    spec = dataclasses.replace(spec, axes=(start_axis(stored), *axes), grid=grid)
    start = jnp.mod(cut.number * cut.own - reach, circle).astype(jnp.int32)
    rank = max(map(len, spec.sample_shapes([start, *operands])))
    return spec, [start.reshape([1] * rank), *operands]


def by_halo(
    read: Read,
    texels: jax.Array,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    cut: Cut,
    reach: int,
    edged: EdgedRead | None = None,
) -> ReadResult:
    """The read of samples none of whose taps lies further than `reach` texels from the part of their device.

    Args:
        edged: the read of texels in three arrays, if there is one.
    """
    edges, (spec, operands) = edges_of(spec, cut, reach), in_part(spec, operands, cut, reach)
    if edged is not None and cut.dimension == 0 and reach > 0:
        values = edged(Edged(*with_edges(texels, edges)), operands, spec)
    else:
        values = read(with_halo(texels, edges), operands, spec)
        missing = jnp.nan if jnp.issubdtype(values.dtype, jnp.floating) else 0
        values = edged_reads.where_held(values, operands, spec, missing)
    return ReadResult(values, jnp.broadcast_to(edged_reads.holds(spec, operands), values.shape[:-1]))


# By routing


def reach_of_filter(axis: Axis, cut: Cut) -> int:
    """How far the texels of a filter lie from that of its tap in the middle."""
    if axis.integer:
        return 0
    around = cut.circle - cut.size if axis.address.cyclic else 0
    return axis.kernel.num_taps // 2 + around


def by_routing(
    read: Read, texels: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, cut: Cut, capacity: int
) -> jax.Array:
    """The read of samples that travel to the device that stores their texels.

    Each device sends at most `capacity` samples to each other one at once, in as many rounds as that takes.

    Args:
        spec: of a read that is no mean and no sum.
    """
    coords = jnp.broadcast_arrays(*spec.coords(operands))
    shape, coords = coords[0].shape, [c.reshape(-1) for c in coords]
    count = math.prod(shape)
    axis = spec.axes[cut.axis]
    reach = reach_of_filter(axis, cut)
    window = with_halo(texels, edges_of(spec, cut, reach)) if reach else texels
    owner = middle_texel(coords[cut.axis], axis) // cut.own
    # Samples in the order of their owners, and the place of each among those of its owner.
    order = jnp.argsort(owner, stable=True)
    each = jnp.sum(owner[None] == jnp.arange(cut.parts, dtype=jnp.int32)[:, None], 1, dtype=jnp.int32)
    first = jnp.cumsum(each) - each
    rank = jnp.zeros(count, jnp.int32).at[order].set(jnp.arange(count, dtype=jnp.int32), unique_indices=True)
    place = rank - first[owner]
    exchange = functools.partial(jax.lax.all_to_all, axis_name=cut.names, split_axis=0, concat_axis=0, tiled=True)

    def one_round(number: jax.Array, coords: list[jax.Array], window: jax.Array) -> jax.Array:
        slot = number * capacity + jnp.arange(capacity, dtype=jnp.int32)
        sent = order[jnp.clip(first[:, None] + slot[None], 0, count - 1)]
        there = [exchange(c[sent]).reshape(-1) for c in coords]
        part, given = in_part(spec.of_coords(), there, cut, reach)
        found = read(window, given, part)
        back = exchange(found.reshape(cut.parts, capacity, -1)).reshape(cut.parts * capacity, -1)
        at = jnp.clip(place - number * capacity, 0, capacity - 1)
        return jnp.where((place // capacity == number)[:, None], back[owner * capacity + at], 0)

    rounds = -(-count // capacity)
    most = jax.lax.pmax(jnp.max(each), cut.names)

    def step(total: jax.Array, number: jax.Array) -> tuple[jax.Array, None]:
        needed = number * capacity < most
        run = jax.checkpoint(lambda: total + one_round(number, coords, window))
        return jax.lax.cond(needed, run, lambda: total), None

    total = one_round(jnp.int32(0), coords, window)
    if rounds > 1:
        total, _ = jax.lax.scan(step, total, jnp.arange(1, rounds, dtype=jnp.int32))
    return total.reshape(*shape, -1)
