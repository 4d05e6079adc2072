"""Reads of sharded textures, and splats into them, by one of three methods.

`Halo`: each device receives texels next to its own from its neighbors. `Routing`: samples travel to the device that
stores their texels, and values travel back. `Whole`: each device receives the whole texture. A device reads its window
of the texture by the code that reads whole textures, with equal bits: `Stored` says which texels the window holds.
Exchanges are collectives of JAX, whose transposes send gradients back.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.experimental import checkify
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from ..._jax.contexts import COUNT
from ..._jax.indexing import entry, everywhere, is_sharded
from ..._jax.versions import on_mesh_of
from ..compute.operators import sum_of_calls, summed
from ..describe.axis import Axis, Role
from ..describe.levels import Cut, joined_levels
from ..describe.operands import Coords, StoredOrder
from ..describe.spec import Read, ReadSpec, TexelReader
from ..describe.storage import HaloStorage, WithHalo
from ..rules import primitives
from ..rules.primitives import are_available, where_available
from ..walk.texel_order import texels_shape
from ..walk.texel_walk import taps, weighted
from .access import Halo, Routing, ShardedAccess, Whole, report_whole, struct_of
from .counted import with_count
from .exchange import with_edges
from .partition import Partition
from .routes import Routes

# A function that runs a read on the window of a device.
WindowRead = Callable[[Read], jax.Array]


def read_sharded(
    reader: TexelReader, texels: jax.Array, color: jax.Array | None, read: Read, chain: Cut | None
) -> jax.Array:
    """A read; if texels carry an explicit sharding, each device computes a part of it."""
    if not is_sharded(texels):
        return reader.read(whole(texels, read.spec.axes, chain), color, read)
    # How the samples are divided; without a way, each device reads them all from the whole texture.
    access = ShardedAccess.of(struct_of(texels), read, None, chain, reader.axis_taps)
    if access is None:
        report_whole(struct_of(texels))
        return reader.read(whole(texels, read.spec.axes, chain), color, read)
    # The method that moves less data, or the caller's.
    method = access.method()
    access.report(method)
    if isinstance(method, Whole):
        return read_whole(reader, whole(texels, read.spec.axes, chain), color, access)
    return reporting(read_in_parts(reader, texels, color, access, method), access, method)


def splat_sharded(reader: TexelReader, values: jax.Array, read: Read, sharding: NamedSharding) -> jax.Array:
    """A splat whose texels carry a sharding: the transpose of the read by `reader` of texels that do."""
    # The read that this is the transpose of, and how its samples would be divided.
    texels = jax.ShapeDtypeStruct(texels_shape(read.spec.axes, values.shape[-1]), values.dtype, sharding=sharding)
    access = ShardedAccess.of(texels, Read(read.spec.adjoint(values.dtype), read.operands), values)
    method = Whole() if access is None else access.method()
    if access is None:
        report_whole(texels)
    else:
        access.report(method)
    # If every device has all texels, they are divided behind the splat.
    if access is None or isinstance(method, Whole):
        return jax.reshard(primitives.splat(values, read), sharding)

    def transposed(texels: jax.Array) -> jax.Array:
        return read_in_parts(reader, texels, None, access, method)

    # Values are divided as the read would return them; its transpose brings them to their texels.
    values = jax.reshard(values, jax.eval_shape(transposed, texels).sharding)
    varying = on_mesh_of([jax.typeof(values)], texels.shape, texels.dtype, sharding.spec)
    (sums,) = cast(tuple[jax.Array], jax.linear_transpose(transposed, varying)(values))
    return reporting(sums, access, method).astype(read.spec.dtype)


def read_in_parts(
    reader: TexelReader, texels: jax.Array, color: jax.Array | None, access: ShardedAccess, method: Halo | Routing
) -> jax.Array:
    """A read by halo or by routing, in which each device computes a part of the values."""
    partition, samples, mesh = access.partition, access.samples, access.mesh
    colors = [] if color is None else [color]
    # Samples that travel, and padding, need stacked operands to be split.
    stays = isinstance(method, Halo) and samples.padding[1] == 0
    operands, specs = access.resharded(access.stacked) if stays else access.sharded_numbers()
    spec = (access.stacked if stays else access.read).spec

    # What each device does with its part.
    def on_device(texels: jax.Array, colors: list[jax.Array], *operands: jax.Array) -> jax.Array:
        part, read = DeviceTexels(reader, texels, colors[0] if colors else None, partition), Read(spec, operands)
        if isinstance(method, Halo):
            return by_halo(part, read, method.reach)
        return by_routing(part, read, access.capacity(method.slack))

    # The border color is on all devices.
    colors = [jax.reshard(a, NamedSharding(mesh, P())) for a in colors]
    in_specs = partition.spec(texels.ndim), P(), *specs
    run = jax.shard_map(on_device, mesh=mesh, in_specs=in_specs, out_specs=samples.values_spec())
    return as_given_samples(run(texels, colors, *operands), access)


def read_whole(reader: TexelReader, texels: jax.Array, color: jax.Array | None, access: ShardedAccess) -> jax.Array:
    """A read in which each device has the whole texture, and the samples that the other methods would give it."""
    if access.samples.padding[1]:
        return reader.read(texels, color, access.read)
    values = reader.read(texels, color, Read(access.read.spec, tuple(access.sharded_numbers()[0])))
    return as_given_samples(values, access)


def whole(texels: jax.Array, axes: tuple[Axis, ...], cut: Cut | None) -> jax.Array:
    """The whole texture on every device."""
    if cut is None:
        return everywhere(texels)
    levels, *inner = (axis for axis in axes if axis.role is not Role.WEIGHT)
    shapes = [(*(axis.level_size(k) for axis in inner), texels.shape[-1]) for k in range(levels.known_size)]
    joined = joined_levels(texels, shapes, cut)
    return jnp.concatenate([everywhere(level).reshape(-1, texels.shape[-1]) for level in joined])


def as_given_samples(values: jax.Array, access: ShardedAccess) -> jax.Array:
    """Values without padding, sharded as the caller's samples. A warp keeps the sharding of its image."""
    samples, (axis, count) = access.samples, access.samples.padding
    if samples.given == samples.names or (isinstance(access.read.spec.grid, StoredOrder) and not count):
        return values
    spec = P(*(names or None for names in samples.given), None)
    values = jax.reshard(values, NamedSharding(access.mesh, spec))
    return jax.lax.slice_in_dim(values, 0, samples.shape[axis], axis=axis) if count else values


# The work of each device, inside `jax.shard_map`


class DeviceTexels(NamedTuple):
    """The texels of a device, and the function that reads them.

    Attributes:
        reader: reads a texture on one device.
        color: the border color; `None` for zero.
    """

    reader: TexelReader
    texels: jax.Array
    color: jax.Array | None
    partition: Partition

    def keeps_halo(self, reach: int) -> bool:
        """Whether the halo stays in arrays of its own, not concatenated with the part."""
        return self.reader.takes_halo and self.color is None and self.partition.is_split_first and reach > 0

    def with_halo(self, reach: int) -> WindowRead:
        """A function that reads the window of this device; the halo is exchanged once."""
        texels, partition = self.texels, self.partition
        if self.keeps_halo(reach):
            window = WithHalo(*with_edges(texels, partition.edges(0, reach)))
        else:
            window = partition.window(texels, reach)
        return lambda read: self.reader.read(window, self.color, partition.in_window(read, reach))


def by_halo(part: DeviceTexels, read: Read, reach: int) -> jax.Array:
    """The read of samples whose taps lie at most `reach` texels from the part of their device.

    The values of other samples are NaN, or zero if they are integers.
    """
    values = part.with_halo(reach)(read)
    if part.keeps_halo(reach):
        return values
    spec, operands = part.partition.in_window(read, reach)
    missing = HaloStorage(reach, marks_missing=True).missing(values.dtype)
    return where_available(values, operands, spec, missing, part.reader.axis_taps or taps)


def by_routing(part: DeviceTexels, read: Read, capacity: int) -> jax.Array:
    """The read of samples that travel to the device that stores their texels.

    In a round, each device sends at most `capacity` samples to each other device. If a sample is the mean of several
    reads, these travel one after the other.
    """
    # Where samples arrive, the device has a halo as wide as the filter, so that all taps are there.
    window, (spec, operands) = part.with_halo(part.partition.reach_of_filter), read
    one = spec.of_coords().unsummed()
    if spec.several or spec.summed_axes:
        one = one.with_dtype(spec.sums)
    # One read of each sample travels at a time.
    exchanged = functools.partial(one_by_routing, part, window, spec=one, capacity=capacity)
    if spec.several is None:
        return summed(exchanged(spec.coords(operands)), spec).astype(spec.dtype)

    def weighted_read(number: jax.Array) -> jax.Array:
        coords, weight = spec.read_at(number, *operands)
        return jnp.where(weight[..., None] > 0, weighted(weight, exchanged(coords, needed=weight > 0)), 0)

    again = cast(Callable[[jax.Array], jax.Array], jax.checkpoint(weighted_read))
    return summed(sum_of_calls(again, spec.num_reads), spec).astype(spec.dtype)


def one_by_routing(
    part: DeviceTexels,
    window: WindowRead,
    coords: Coords,
    *,
    spec: ReadSpec,
    capacity: int,
    needed: jax.Array | None = None,
) -> jax.Array:
    """The values of one read of each sample, S + (C,), zero where `needed` is false.

    A sample whose taps lie in several parts travels to all of these, and the partial sums are added.

    Args:
        window: reads the window of this device at samples that have traveled to it.
        needed: the mask of the samples to read, which broadcasts to S; `None` for all.
    """
    # Samples in a line, each with the devices that store its taps.
    partition, channels = part.partition, part.texels.shape[-1]
    coords = jnp.broadcast_arrays(*coords)
    shape, coords = coords[0].shape, [c.reshape(-1) for c in coords]
    owners = partition.owners(coords)
    if needed is not None:
        needed = jnp.broadcast_to(needed, shape).reshape(-1)
        owners = [jnp.where(needed, owner, partition.parts) for owner in owners]
    # A sample of several owners travels to each of them, as if it were several samples.
    count, times = owners[0].size, len(owners)
    routes = Routes.to(jnp.concatenate(owners), partition.names, partition.parts, capacity)
    there = spec if times == 1 else spec.with_dtype(spec.sums)

    # A round: coordinates go, the owners read, values come back.
    def step(values: jax.Array, number: jax.Array) -> jax.Array:
        sent, _ = routes.sent(number)
        received = routes.exchanged_together([entry(c, sent % count) for c in coords])
        return routes.returned(window(Read(there, tuple(received))), number, values)

    values = jnp.zeros((times * count, channels), there.dtype)
    values = routes.in_rounds(step, values)
    # The partial sums of the owners.
    if times > 1:
        values = jnp.sum(values.reshape(times, count, -1), 0).astype(spec.dtype)
    return values.reshape(*shape, -1)


# Samples that need texels beyond their halo


def reporting(result: jax.Array, access: ShardedAccess, method: Halo | Routing) -> jax.Array:
    """The result of a read or splat, with a check of its samples.

    Samples that need texels beyond their halo are an error under checkify, and are counted if the caller wants to
    know. The check follows the read, because JAX 0.10.2 cannot check a `jax.shard_map` after an earlier check.
    """
    if not isinstance(method, Halo):
        return result
    beyond = of_all_examples(count_beyond(access, method))
    message = f"{{count}} samples need texels further than {method.reach} from those of their device; use a larger"
    checkify.debug_check(beyond == 0, f"{message} reach in jaxtex.sharded.Halo.", count=beyond)
    return with_count(result, beyond) if COUNT.value else result


def count_beyond(access: ShardedAccess, method: Halo) -> jax.Array:
    """The number of samples that need texels beyond the halo of their device."""
    samples = access.samples

    def on_device(wanted: jax.Array, *operands: jax.Array) -> jax.Array:
        spec, given = access.partition.in_window(Read(access.read.spec, operands), method.reach)
        beyond = jnp.sum(wanted & ~are_available(spec, given, access.axis_taps or taps), dtype=jnp.int32)
        return cast(jax.Array, jax.lax.psum(beyond, access.names))

    # Samples that pad the last part do not count.
    operands, specs = access.sharded_numbers()
    wanted = samples.wanted()
    in_specs = samples.spec_of(wanted.shape), *specs
    run = jax.shard_map(on_device, mesh=access.mesh, in_specs=in_specs, out_specs=P())
    return run(jax.reshard(wanted, NamedSharding(access.mesh, in_specs[0])), *operands)


@custom_vmap
def of_all_examples(count: jax.Array) -> jax.Array:
    """A count, summed over all examples under `jax.vmap`, since JAX cannot batch checks under explicit mesh axes."""
    return count


@of_all_examples.def_vmap
def sum_of_examples(axis_size: int, in_batched: Sequence[bool], count: jax.Array) -> tuple[jax.Array, bool]:
    del axis_size, in_batched
    return of_all_examples(jnp.sum(count, 0, dtype=count.dtype)), False
