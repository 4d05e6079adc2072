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

from ..._jax.indexing import entry
from ..compute.availability import are_available, where_available
from ..compute.operators import sum_of_calls, summed
from ..describe.grids import Started
from ..describe.spec import Coords, ReadSpec, as_given
from ..describe.storage import Halo, WithHalo
from ..walk.combinations import weighted
from .cut import Cut
from .cut_chain import ChainCut
from .exchange import Edges, with_edges, with_halo
from .routes import Routes

# A read of one device: of texels, at operands. With a halo it marks samples that need texels which are not stored.
Read = Callable[[jax.Array | WithHalo, Sequence[jax.Array], ReadSpec], jax.Array]
PartRead = Callable[[Sequence[jax.Array], ReadSpec], jax.Array]


class ReadResult(NamedTuple):
    """The values of a device's samples, and which of them are right.

    The others reach further than allowed, and are NaN, or zero if they are integers.
    """

    values: jax.Array
    reached: jax.Array


class Part(NamedTuple):
    """What a device stores of a texture, and how that is read.

    Attributes:
        read: the read of texels.
        texels: those that the device stores.
        cut: how the texture is cut.
        takes_halo: whether `read` takes texels in three arrays.
    """

    read: Read
    texels: jax.Array
    cut: Cut | ChainCut
    takes_halo: bool = False

    def keeps_halo(self, reach: int) -> bool:
        """Whether the texels that neighbors send stay in arrays of their own."""
        return self.takes_halo and isinstance(self.cut, Cut) and self.cut.dimension == 0 and reach > 0

    def with_halo(self, spec: ReadSpec, reach: int) -> PartRead:
        """The read of the part with its halo, which neighbors send once."""
        texels, cut = self.texels, self.cut
        if isinstance(cut, Cut):
            edges = Edges(cut, reach, spec.axes[cut.axis].address.cyclic)
            window = WithHalo(*with_edges(texels, edges)) if self.keeps_halo(reach) else with_halo(texels, edges)
        else:
            window = cut.window(texels, reach)

        def run(operands: Sequence[jax.Array], spec: ReadSpec) -> jax.Array:
            spec, given = in_halo(spec, operands, cut, reach)
            return self.read(window, given, spec)

        return run


# By halo


def in_part(
    spec: ReadSpec, operands: Sequence[jax.Array], cut: Cut | ChainCut, reach: int
) -> tuple[ReadSpec, list[jax.Array]]:
    """A read in the part that a device stores with its halo."""
    grid = as_given if spec.grid is as_given else Started(spec.grid, spec.num_reads > 1)
    rank = max(map(len, spec.sample_shapes(operands)))
    stacks = (None, *spec.stacks) if spec.stacks else ()
    spec = dataclasses.replace(spec, axes=cut.axes_in_part(spec.axes, reach), grid=grid, stacks=stacks)
    return spec, [cut.start(reach, rank), *operands]


def in_halo(
    spec: ReadSpec, operands: Sequence[jax.Array], cut: Cut | ChainCut, reach: int
) -> tuple[ReadSpec, list[jax.Array]]:
    """The same where the last texel and the first are neighbors under the address rule alone."""
    # Else there is room between them for texels that nothing reads.
    if isinstance(cut, Cut) and not spec.axes[cut.axis].address.cyclic:
        cut = cut._replace(room=reach)
    return in_part(spec, operands, cut, reach)


def by_halo(part: Part, operands: Sequence[jax.Array], spec: ReadSpec, reach: int) -> ReadResult:
    """The read of samples none of whose taps lies further than `reach` texels from the part of their device."""
    values = part.with_halo(spec, reach)(operands, spec)
    spec, operands = in_halo(spec, operands, part.cut, reach)
    if not part.keeps_halo(reach):
        missing = Halo(reach, marks_missing=True).missing(values.dtype)
        values = where_available(values, operands, spec, missing)
    return ReadResult(values, jnp.broadcast_to(are_available(spec, operands), values.shape[:-1]))


# By routing


def by_routing(part: Part, operands: Sequence[jax.Array], spec: ReadSpec, capacity: int) -> jax.Array:
    """The read of samples that travel to the device that stores their texels.

    Each device sends at most `capacity` samples to each other one at once, in as many rounds as that takes. The reads
    of a mean travel one after the other.
    """
    read_there = part.with_halo(spec, part.cut.reach_of_filter(spec.axes))
    channels = part.texels.shape[-1]
    alone = spec.num_reads == 1 and not spec.summed_axes
    each = dataclasses.replace(spec.of_coords(), num_reads=1, summed_axes=())
    each = each if alone else each.with_dtype(spec.sums)

    def routed(coords: Coords, needed: jax.Array | None = None) -> jax.Array:
        return one_by_routing(read_there, channels, coords, each, part.cut, capacity, needed)

    if spec.num_reads == 1:
        return summed(routed(spec.coords(operands)), spec).astype(spec.dtype)

    @jax.checkpoint
    def weighted_read(number: jax.Array) -> jax.Array:
        *coords, weight = spec.grid(number, *operands)
        return jnp.where(weight[..., None] > 0, weighted(weight, routed(coords, weight > 0)), 0)

    return summed(sum_of_calls(weighted_read, spec.num_reads), spec).astype(spec.dtype)


def one_by_routing(
    read: PartRead,
    channels: int,
    coords: Coords,
    spec: ReadSpec,
    cut: Cut | ChainCut,
    capacity: int,
    needed: jax.Array | None = None,
) -> jax.Array:
    """One read of each sample, or none, and then zero.

    A sample whose taps lie in several parts travels to each of these, and the sums of the taps in each are added.

    Args:
        read: the read at the coordinates of samples that have traveled to a device.
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
    part = spec if times == 1 else spec.with_dtype(spec.sums)

    def step(values: jax.Array, number: jax.Array) -> jax.Array:
        sent, _ = routes.sent(number)
        there = routes.exchanged_together([entry(c, sent % count) for c in coords])
        return routes.returned(read(there, part), number, values)

    values = jnp.zeros((times * count, channels), part.dtype)
    values = routes.in_rounds(step, values)
    if times > 1:
        values = jnp.sum(values.reshape(times, count, -1), 0).astype(spec.dtype)
    return values.reshape(*shape, -1)
