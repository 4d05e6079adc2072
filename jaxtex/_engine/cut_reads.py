"""Reads of a texture that is cut over devices along one axis: what each device computes, and what it exchanges.

The functions here run on each device, inside `jax.shard_map`. A device stores neighboring texels of the axis, a part
of it. `Stored` says which, so that every filter, address mode and kind reads a part as it reads the whole, to the bit.
Exchanges are collectives of JAX, whose transposes send gradients back.

There are two ways. By halo, each device receives the texels beside its own, as far as its samples reach. By routing,
samples travel to the device that stores their texels, and values travel back.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .combinations import weighted
from .cut import Cut
from .cut_chain import ChainCut
from .operators import sum_of_calls, summed
from .routes import Routes
from .spec import Coords, Grid, ReadSpec, as_given
from .texel_walk import holds_taps

# A read of one device: of texels, at operands.
Read = Callable[[jax.Array, Sequence[jax.Array], ReadSpec], jax.Array]


class Started(NamedTuple):
    """A grid whose first operand is the coordinate of an axis in front of all others.

    Attributes:
        averages: whether the grid also takes the number of a read before its operands.
    """

    grid: Grid
    averages: bool

    def __call__(self, *args: jax.Array) -> Coords:
        number, (start, *operands) = args[: int(self.averages)], args[int(self.averages) :]
        return start, *self.grid(*number, *operands)


class ReadResult(NamedTuple):
    """The values of a device's samples, and which of them are right: the others reach further than allowed."""

    values: jax.Array
    reached: jax.Array


# By halo


def in_part(
    spec: ReadSpec, operands: Sequence[jax.Array], cut: Cut | ChainCut, reach: int
) -> tuple[ReadSpec, list[jax.Array]]:
    """A read, of operands that hold one number of each sample, in the part that a device stores with its halo."""
    grid = as_given if spec.grid is as_given else Started(spec.grid, spec.num_reads > 1)
    rank = max(map(len, spec.sample_shapes(operands)))
    spec = dataclasses.replace(spec, axes=cut.axes_in_part(spec.axes, reach), grid=grid)
    return spec, [cut.start(reach, rank), *operands]


def by_halo(
    read: Read, texels: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, cut: Cut | ChainCut, reach: int
) -> ReadResult:
    """The read of samples none of whose taps lies further than `reach` texels from the part of their device."""
    spec, operands = in_part(spec, operands, cut, reach)
    values = read(cut.window(texels, reach), operands, spec)
    return ReadResult(values, jnp.broadcast_to(reached_by(spec, operands), values.shape[:-1]))


def reached_by(spec: ReadSpec, operands: Sequence[jax.Array]) -> jax.Array:
    """Whether all texels that a result needs are stored."""
    if spec.num_reads == 1:
        held = holds_taps(spec.grid(*operands), spec.axes)
    else:

        def one(number: jax.Array) -> jax.Array:
            *coords, weight = spec.grid(number, *operands)
            return holds_taps(coords, spec.axes) | ~(weight > 0)

        ranked = jnp.arange(1, spec.num_reads + 1, dtype=jnp.int32).reshape(-1, *[1] * operands[0].ndim)
        held = jnp.all(jax.lax.map(one, ranked), 0)
    return jnp.all(held, spec.summed_axes, keepdims=True) if spec.summed_axes else held


# By routing


def by_routing(
    read: Read, texels: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, cut: Cut | ChainCut, capacity: int
) -> jax.Array:
    """The read of samples that travel to the device that stores their texels.

    Each device sends at most `capacity` samples to each other one at once, in as many rounds as that takes. The reads
    of a mean travel one after the other.
    """
    reach = cut.reach_of_filter(spec.axes)
    window = cut.window(texels, reach) if reach else texels
    alone = spec.num_reads == 1 and not spec.summed_axes
    each = dataclasses.replace(spec.of_coords(), num_reads=1, summed_axes=())
    each = each if alone else each.with_dtype(spec.sums)

    def routed(coords: Coords, needed: jax.Array | None = None) -> jax.Array:
        return one_by_routing(read, window, coords, each, cut, capacity, needed)

    if spec.num_reads == 1:
        return summed(routed(spec.coords(operands)), spec).astype(spec.dtype)

    @jax.checkpoint
    def weighted_read(number: jax.Array) -> jax.Array:
        *coords, weight = spec.grid(number, *operands)
        return jnp.where(weight[..., None] > 0, weighted(weight, routed(coords, weight > 0)), 0)

    return summed(sum_of_calls(weighted_read, spec.num_reads), spec).astype(spec.dtype)


def one_by_routing(
    read: Read,
    window: jax.Array,
    coords: Coords,
    spec: ReadSpec,
    cut: Cut | ChainCut,
    capacity: int,
    needed: jax.Array | None = None,
) -> jax.Array:
    """One read of each sample, or none, and then zero.

    A sample whose taps lie in several parts travels to each of these, and the sums of the taps in each are added.

    Args:
        needed: which samples are read.
    """
    coords = jnp.broadcast_arrays(*coords)
    shape, coords = coords[0].shape, [c.reshape(-1) for c in coords]
    owners = cut.owners(coords, spec.axes)
    if needed is not None:
        needed = jnp.broadcast_to(needed, shape).reshape(-1)
        owners = [jnp.where(needed, owner, cut.parts) for owner in owners]
    count, times = owners[0].size, len(owners)
    routes = Routes.to(jnp.concatenate(owners), cut.names, cut.parts, capacity)
    reach = cut.reach_of_filter(spec.axes)
    part = spec if times == 1 else spec.with_dtype(spec.sums)

    def step(values: jax.Array, number: jax.Array) -> jax.Array:
        sent, _ = routes.sent(number)
        some, given = in_part(part, [routes.exchanged(c[sent % count]) for c in coords], cut, reach)
        return routes.returned(read(window, given, some), number, values)

    values = jnp.zeros((times * count, window.shape[-1]), part.dtype)
    values = routes.in_rounds(step, values)
    if times > 1:
        values = jnp.sum(values.reshape(times, count, -1), 0).astype(spec.dtype)
    return values.reshape(*shape, -1)
