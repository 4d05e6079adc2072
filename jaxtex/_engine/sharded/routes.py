"""The routes of samples to the devices that store their texels, for a texture that is partitioned over devices.

The functions here run on each device, inside `jax.shard_map`. In a round, each device sends at most `capacity` samples
to each other device, by a dense all-to-all. The largest number of samples from one device to another decides the number
of rounds. With two devices, samples for a device's own texels stay in place.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp

from ..._jax.indexing import gather, scatter

State = TypeVar("State")

# For at most so many parts, samples are ranked by counting, not by sorting.
MOST_COUNTED = 8
# Stands for a missing sample in arrays of sample numbers.
NO_SAMPLE = -1


class Routes(NamedTuple):
    """The destination and the round of each sample of a device.

    Samples are sent as an array (parts, capacity), with one row for each device.

    Attributes:
        names: the mesh axes over which the texture is partitioned.
        capacity: the largest number of samples in a row in one round.
        row: the row of each sample, int32; `parts` for samples that stay.
        most: the largest number of samples in a row, over all rounds.
        place: the place of each sample in its row, counted through all rounds.
    """

    names: tuple[str, ...]
    parts: int
    capacity: int
    row: jax.Array
    most: jax.Array
    place: jax.Array

    @classmethod
    def to(cls, owner: jax.Array, names: tuple[str, ...], parts: int, capacity: int) -> "Routes":
        """The routes of samples to the parts `owner`, int32, (samples,); samples with owner `parts` stay."""
        row = owner
        if parts == 2:  # row 0 is this device's own
            row = jnp.where(owner < parts, owner ^ jax.lax.axis_index(names), parts)
        place = places(row, parts)
        return cls(names, parts, capacity, row, jnp.max(jnp.where(row < parts, place, -1)) + 1, place)

    @property
    def num_samples(self) -> int:
        """The number of samples of a device."""
        return self.row.shape[0]

    def slots(self, number: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The flat index of each sample among those sent in round `number`, and whether it is sent in that round."""
        place = self.place - number * self.capacity
        travels = (self.row < self.parts) & (place >= 0) & (place < self.capacity)
        slot = jnp.minimum(self.row, self.parts - 1) * self.capacity + jnp.clip(place, 0, self.capacity - 1)
        return slot, travels

    def sent(self, number: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The numbers of the samples sent in round `number`, (parts, capacity), and the mask of the places in use."""
        slot, travels = self.slots(number)
        room = jnp.arange(self.parts * self.capacity, dtype=jnp.int32)
        samples = jnp.arange(self.num_samples, dtype=jnp.int32)
        filled = scatter(
            jnp.full_like(room, NO_SAMPLE)[:, None], (slot,), travels, samples[:, None], "set", unique=True
        )
        filled = filled[:, 0]
        # Unused places hold different samples. The gradients of equal ones, though zero, would all be added to one
        # texel.
        sent = jnp.where(filled == NO_SAMPLE, room % self.num_samples, filled)
        return sent.reshape(self.parts, -1), (filled != NO_SAMPLE).reshape(self.parts, -1)

    def exchanged(self, a: jax.Array) -> jax.Array:
        """The entries that all devices send to this one, (parts * capacity, ...).

        Args:
            a: the entries that this device sends, (parts, capacity, ...).
        """
        if self.parts == 2:
            there = jnp.concatenate([a[:1], jax.lax.ppermute(a[1:], self.names, [(0, 1), (1, 0)])])
        else:
            there = jax.lax.all_to_all(a, self.names, split_axis=0, concat_axis=0, tiled=True)
        return there.reshape(self.parts * self.capacity, *a.shape[2:])

    def exchanged_together(self, arrays: list[jax.Array]) -> list[jax.Array]:
        """`exchanged` for several arrays, (parts, capacity), by one exchange for each dtype."""
        received = dict[int, jax.Array]()
        for dtype in dict.fromkeys(a.dtype for a in arrays):
            alike = [k for k, a in enumerate(arrays) if a.dtype == dtype]
            there = self.exchanged(jnp.stack([arrays[k] for k in alike], -1))
            received |= {k: there[:, n] for n, k in enumerate(alike)}
        return [received[k] for k in range(len(arrays))]

    def returned(self, values: jax.Array, number: jax.Array, others: jax.Array) -> jax.Array:
        """`others`, (samples, C), with the values of the samples of round `number` in place.

        Args:
            values: the values of the samples that this device has received, (parts * capacity, C).
        """
        back = self.exchanged(values.reshape(self.parts, self.capacity, -1))
        slot, travels = self.slots(number)
        return jnp.where(travels[:, None], gather(back, (slot,)), others)

    def in_rounds(self, step: Callable[[State, jax.Array], State], state: State, certain: int = 1) -> State:
        """The state after ``state = step(state, number)`` for all rounds.

        Reverse mode keeps the state before a round, and recomputes the round.

        Args:
            certain: the number of rounds that always run, 0 or 1.
        """
        most = jax.lax.pmax(self.most, self.names)
        rounds = -(-self.num_samples // self.capacity)

        def unchanged(state: State) -> State:
            return state

        def turn(state: State, number: jax.Array) -> tuple[State, None]:
            @jax.checkpoint
            def run(state: State) -> State:
                return step(state, number)

            return cast(State, jax.lax.cond(number * self.capacity < most, run, unchanged, state)), None

        @jax.checkpoint
        def further(state: State) -> State:
            return jax.lax.scan(turn, state, jnp.arange(certain, rounds, dtype=jnp.int32))[0]

        if certain:
            state = step(state, jnp.int32(0))
        if rounds > certain:
            # One condition before the scan avoids a condition per round, for which a GPU's program waits. With the
            # branches in this order, XLA does not copy the state.
            state = cast(State, jax.lax.cond(most <= certain * self.capacity, unchanged, further, state))
        return state


def places(row: jax.Array, rows: int) -> jax.Array:
    """For each entry of `row`, the number of equal entries before it; undefined for entries equal to `rows`."""
    (count,) = row.shape
    # Few rows: a running count of each.
    if rows <= MOST_COUNTED:
        same = row[None] == jnp.arange(rows, dtype=jnp.int32)[:, None]
        return jnp.sum(jnp.where(same, jnp.cumsum(same, 1, dtype=jnp.int32) - 1, 0), 0, dtype=jnp.int32)
    # Many: the rank in a stable order, less the entries of all rows before.
    order = jnp.argsort(row, stable=True)
    numbers = jnp.arange(count, dtype=jnp.int32)
    rank = scatter(jnp.zeros_like(row)[:, None], (order,), None, numbers[:, None], "set", unique=True)[:, 0]
    lengths = jnp.sum(row[None] == jnp.arange(rows + 1, dtype=jnp.int32)[:, None], 1, dtype=jnp.int32)
    return rank - (jnp.cumsum(lengths, dtype=jnp.int32) - lengths)[row]
