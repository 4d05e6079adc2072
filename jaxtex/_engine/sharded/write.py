"""Writes of single texels of sharded textures.

Texels do not move. If all devices have all samples, each device writes only to its own texels. Samples that are
sharded over the devices of the texture travel to the device of their texel, in rounds. Each brings its number among all
samples, so that the sample that wins is the one that wins on one device.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from ..._jax.contexts import METHOD
from ..._jax.indexing import everywhere, gather, placed_like, scatter
from ..._jax.primitives import straight_through
from ..._tables.storage_formats import Decoding, sum_dtype
from ..compute import texel_write
from ..compute.texel_write import keeping_bits, keeping_nan, landing, same
from ..describe.axis import Axis
from ..describe.operands import Coords
from ..describe.spec import Read, ReadSpec
from ..walk.texel_order import flattened
from ..walk.texel_walk import both
from .access import Routing, ShardedAccess, Whole, report, report_whole, struct_of
from .partition import Partition
from .routes import NO_SAMPLE, Routes

LAST_NUMBER = np.int32(np.iinfo(np.int32).max)


class TexelWrite(NamedTuple):
    """The static half of a write of single texels.

    Attributes:
        axes: the axes of the texture, all integer.
        rule: the rule by which a value changes a texel: set, add, min or max.
        unique: whether no two samples write one texel; for the rule "set".
    """

    axes: tuple[Axis, ...]
    rule: str = "set"
    unique: bool = False

    def alone(self, texels: jax.Array, values: jax.Array, coords: Coords, axes: tuple[Axis, ...]) -> jax.Array:
        """The write on one device, with all samples."""
        return texel_write.write(texels, values, coords, axes, self.rule, unique=self.unique)

    def __call__(self, texels: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
        """The write of a sharded texture."""
        # A texture that is divided along several axes is written as a whole, by every device.
        placed = struct_of(texels)
        partition = Partition.of(self.axes, placed, None)
        if partition is None:
            report_whole(placed)
            whole = self.alone(everywhere(texels), everywhere(values), [everywhere(c) for c in coords], self.axes)
            return placed_like(whole, texels)
        # Samples that are not divided as the texture is are sent to all devices.
        read = Read(ReadSpec(self.axes, Decoding.ELEMENT, texels.dtype), tuple(coords))
        access = ShardedAccess.of(placed, read, values)
        if access is None or access.samples.given != access.samples.names or isinstance(METHOD.value, Whole):
            report(placed, "each device receives all samples, and writes to its own texels")
            return self.of_all_samples(texels, values, coords, partition)
        # Otherwise each sample travels to the device of its texel.
        method = METHOD.value if isinstance(METHOD.value, Routing) else Routing()
        access.report(method)
        return self.exchanged(texels, values, coords, access, access.capacity(method.slack))

    def of_all_samples(self, texels: jax.Array, values: jax.Array, coords: Coords, partition: Partition) -> jax.Array:
        """The write of a sharded texture by devices that all have all samples."""

        def on_device(texels: jax.Array, values: jax.Array, *coords: jax.Array) -> jax.Array:
            start = partition.start(0).reshape([1] * coords[0].ndim)
            return self.alone(texels, values, [start, *coords], partition.axes_in_window(0))

        mesh, spec = jax.typeof(texels).sharding.mesh, partition.spec(texels.ndim)
        run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec, P(), *[P() for _ in coords]), out_specs=spec)
        return run(texels, everywhere(values), *map(everywhere, coords))

    def exchanged(
        self, texels: jax.Array, values: jax.Array, coords: Coords, access: ShardedAccess, capacity: int
    ) -> jax.Array:
        """The write of a sharded texture by devices that send samples to the devices of their texels."""
        mesh, shape, partition = access.mesh, values.shape[:-1], access.partition
        writes = ExchangedWrites(partition, capacity)

        # The samples of a device are a line, each with its number among all samples.
        def on_device(texels: jax.Array, values: jax.Array, *coords: jax.Array) -> jax.Array:
            flat = [jnp.broadcast_to(c, values.shape[:-1]).reshape(-1) for c in coords]
            values = values.reshape(-1, values.shape[-1])
            if self.rule == "set":
                return writes.write(texels, values, flat, unique=self.unique)
            return writes.reduce(texels, values, flat, self.rule)

        # Samples are not sharded along the mesh axes that do not partition the texture.
        names = [tuple(name for name in along if name in partition.names) or None for along in access.samples.names]
        arrays = [values, *coords, texel_write.numbers(shape)]
        specs = [P(*(along if n > 1 else None for n, along in zip(a.shape, (*names, None)))) for a in arrays]
        arrays = [jax.reshard(a, NamedSharding(mesh, s)) for a, s in zip(arrays, specs)]
        spec = partition.spec(texels.ndim)
        return jax.shard_map(on_device, mesh=mesh, in_specs=(spec, *specs), out_specs=spec)(texels, *arrays)


# The work of each device, inside `jax.shard_map`


class Landed(NamedTuple):
    """Samples on the device of their texels.

    Attributes:
        indices: the flat indices of their texels, as `TexelAddress.flat_index`.
        inside: the mask of the samples that write a texel of this device.
        values: the values, (samples, C).
        numbers: the numbers of the samples among all samples, in flattened order.
    """

    indices: tuple[jax.Array, ...]
    inside: jax.Array
    values: jax.Array
    numbers: jax.Array


# The texels of a device, and further arrays with an entry for each texel.
State = TypeVar("State")
# A function that writes samples: from the state before to the state after.
Step = Callable[[State, Landed], State]


class ExchangedWrites(NamedTuple):
    """Writes of samples that travel to the device of their texel.

    Attributes:
        capacity: the largest number of samples that a device sends to another one in a round.
    """

    partition: Partition
    capacity: int

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of a device's texels."""
        return self.partition.axes_in_window(0)

    def write(self, texels: jax.Array, values: jax.Array, coords: Coords, *, unique: bool) -> jax.Array:
        """`texel_write.write` by the rule "set", of a device's texels, with the samples of all devices.

        Args:
            values: the values of this device's samples, (samples, C).
            coords: their coordinates along each axis, (samples,), followed by the number of each sample.
        """

        def written(texels: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
            stored = flattened(texels, self.axes)
            if unique:
                stored = self.scattered(stored, values, coords, "set", unique=True)
            else:
                newest = jnp.full((*stored.shape[:-1], 1), NO_SAMPLE, jnp.int32)
                stored, _ = self.after_all(newest_samples, (stored, newest), values, coords)
            return stored.reshape(texels.shape)

        return keeping_bits(written, texels, values, coords)

    def reduce(self, texels: jax.Array, values: jax.Array, coords: Coords, rule: str) -> jax.Array:
        """`texel_write.write` by another rule, of a device's texels, with the samples of all devices; see `write`."""

        def result(texels: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
            total = sum_dtype(texels.dtype) if jnp.issubdtype(texels.dtype, jnp.floating) else texels.dtype
            stored, values = (a.astype(total) if rule == "add" else a for a in (texels, values))
            joined = self.scattered if rule == "add" else self.extremes
            reduced = joined(flattened(stored, self.axes), values, coords, rule)
            return reduced.reshape(texels.shape).astype(texels.dtype)

        return keeping_nan(result, texels, values, coords)

    def scattered(
        self, stored: jax.Array, values: jax.Array, coords: Coords, rule: str, *, unique: bool = False
    ) -> jax.Array:
        """The texels after all values are scattered to them by a rule of `indexing.scatter`."""

        def joined(stored: jax.Array, samples: Landed) -> jax.Array:
            return scatter(stored, samples.indices, samples.inside, samples.values, rule, unique=unique)

        return self.after_all(joined, stored, values, coords)

    def extremes(self, stored: jax.Array, values: jax.Array, coords: Coords, rule: str) -> jax.Array:
        """The minimum or maximum of texels and values. If several tie, the first one alone gets the cotangent.

        A texel comes before all samples.
        """

        def reduced(stored: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
            return self.scattered(stored, values, coords, rule)

        def selected(stored: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
            best = jax.lax.stop_gradient(reduced(stored, values, coords))
            first = jnp.where(same(stored, best), NO_SAMPLE, LAST_NUMBER)
            return self.after_all(functools.partial(first_to_tie, best=best), (stored, first), values, coords)[0]

        return straight_through(reduced, selected, stored, values, coords)

    def after_all(self, step: Step[State], state: State, values: jax.Array, coords: Coords) -> State:
        """The state after a step with samples that need not travel, and a step with the samples of each round."""
        partition, (*coords, numbers) = self.partition, coords
        start = partition.start(0).reshape(1)

        # Samples where their texel is, with its place in this device's part.
        def landed(values: jax.Array, coords: Coords, numbers: jax.Array) -> Landed:
            address = landing(values, [start, *coords], self.axes)
            inside = both(address.inside, numbers != NO_SAMPLE)
            assert inside is not None
            return Landed(address.flat_index, inside, values, numbers)

        # Samples of this device need no route.
        (owner,) = partition.owners(coords)
        row = jnp.where(owner != partition.part, owner, partition.parts)
        routes = Routes.to(row, partition.names, partition.parts, self.capacity)

        # A round: values, coordinates and numbers travel together.
        def turn(state: State, number: jax.Array) -> State:
            sent, exist = routes.sent(number)
            received = routes.exchanged(values[sent]), [routes.exchanged(c[sent]) for c in coords]
            return step(state, landed(*received, routes.exchanged(jnp.where(exist, numbers[sent], NO_SAMPLE))))

        return routes.in_rounds(turn, step(state, landed(values, coords, numbers)), certain=0)


# Steps


def newest_samples(kept: tuple[jax.Array, jax.Array], samples: Landed) -> tuple[jax.Array, jax.Array]:
    """Texels after each has taken the value of its sample with the largest number, and these numbers."""
    stored, newest = kept
    newest = scatter(newest, samples.indices, samples.inside, samples.numbers[:, None], "max")
    last = gather(newest, samples.indices)[..., 0] == samples.numbers
    return scatter(stored, samples.indices, samples.inside & last, samples.values, "set", unique=True), newest


def first_to_tie(kept: tuple[jax.Array, jax.Array], samples: Landed, best: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Texels after each channel has taken the value of the first sample that equals `best`, and its number."""
    # The first of the samples that tie, in each channel.
    stored, first = kept
    ties = samples.inside[:, None] & same(samples.values, gather(best, samples.indices))
    numbers = jnp.where(ties, samples.numbers[:, None], LAST_NUMBER)
    first = scatter(first, samples.indices, samples.inside, numbers, "min")
    # It alone writes, one channel at a time.
    wins = ties & (gather(first, samples.indices) == numbers)
    channel = jnp.broadcast_to(jnp.arange(stored.shape[-1], dtype=jnp.int32), wins.shape)
    indices = *(index[:, None] for index in samples.indices), channel
    texels = scatter(stored[..., None], indices, wins, samples.values[..., None], "set", unique=True)
    return texels[..., 0], first
