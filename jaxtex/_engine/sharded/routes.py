"""The routes of samples to the devices that store their texels, where a texture is partitioned over devices.

The functions here run on each device, inside `jax.shard_map`. In a round each device sends at most `capacity` samples
to each of the other devices, by a dense all-to-all. The device that sends the most to one other decides the number of
rounds. If there are two devices, the samples that a device has for itself stay in place.
"""

# pyright: strict, reportUnknownMemberType=false

from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp

from ..._jax.indexing import gather, scatter

State = TypeVar("State")

# Samples are counted, not sorted, where the texture has at most this many parts.
MOST_COUNTED = 8
# In place of the number of a sample.
NO_SAMPLE = -1


class Routes(NamedTuple):
    """Where the samples of a device go, and when.

    Attributes:
        names: the axes of the mesh over which the texture is partitioned.
        parts: the number of its parts.
        capacity: the number of samples that go to one device in a round, at most.
        row: the row of the samples that are sent in which each sample travels; a number past the last row for those
            that stay.
        most: the number of samples that travel in one row, at most.
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
        """The routes of samples to their owners, shape (samples,): `parts` in place of an owner for those that stay."""
        row = owner
        if parts == 2:  # what stays here comes first
            row = jnp.where(owner < parts, owner ^ jax.lax.axis_index(names), parts)
        place = places(row, parts)
        return cls(names, parts, capacity, row, jnp.max(jnp.where(row < parts, place, -1)) + 1, place)

    @property
    def num_samples(self) -> int:
        """The number of samples of a device."""
        return self.row.shape[0]

    def slots(self, number: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The place of each sample among those that are sent in a round, and whether it is sent in this one."""
        place = self.place - number * self.capacity
        travels = (self.row < self.parts) & (place >= 0) & (place < self.capacity)
        slot = jnp.minimum(self.row, self.parts - 1) * self.capacity + jnp.clip(place, 0, self.capacity - 1)
        return slot, travels

    def sent(self, number: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The samples that are sent in a round, (parts, capacity), and which places hold one of them."""
        slot, travels = self.slots(number)
        room = jnp.arange(self.parts * self.capacity, dtype=jnp.int32)
        samples = jnp.arange(self.num_samples, dtype=jnp.int32)
        filled = scatter(
            jnp.full_like(room, NO_SAMPLE)[:, None], (slot,), travels, samples[:, None], "set", unique=True
        )
        filled = filled[:, 0]
        # Others are not all the same: their gradients, which are zero, would all be added to one texel.
        sent = jnp.where(filled == NO_SAMPLE, room % self.num_samples, filled)
        return sent.reshape(self.parts, -1), (filled != NO_SAMPLE).reshape(self.parts, -1)

    def exchanged(self, a: jax.Array) -> jax.Array:
        """The entries that devices send to this one, (parts * capacity, ...), of (parts, capacity, ...) on each."""
        if self.parts == 2:
            there = jnp.concatenate([a[:1], jax.lax.ppermute(a[1:], self.names, [(0, 1), (1, 0)])])
        else:
            there = jax.lax.all_to_all(a, self.names, split_axis=0, concat_axis=0, tiled=True)
        return there.reshape(self.parts * self.capacity, *a.shape[2:])

    def exchanged_together(self, arrays: list[jax.Array]) -> list[jax.Array]:
        """Several arrays, (parts, capacity), each as `exchanged` returns it, by one exchange for each dtype."""
        received = dict[int, jax.Array]()
        for dtype in dict.fromkeys(a.dtype for a in arrays):
            alike = [k for k, a in enumerate(arrays) if a.dtype == dtype]
            there = self.exchanged(jnp.stack([arrays[k] for k in alike], -1))
            received |= {k: there[:, n] for n, k in enumerate(alike)}
        return [received[k] for k in range(len(arrays))]

    def returned(self, values: jax.Array, number: jax.Array, others: jax.Array) -> jax.Array:
        """The values of a round's samples, (parts * capacity, C), on their own device; other samples keep `others`."""
        back = self.exchanged(values.reshape(self.parts, self.capacity, -1))
        slot, travels = self.slots(number)
        return jnp.where(travels[:, None], gather(back, (slot,)), others)

    def in_rounds(self, step: Callable[[State, jax.Array], State], state: State, certain: int = 1) -> State:
        """The state after ``state = step(state, number)`` for each round that is needed.

        Reverse mode keeps what goes into a round, and computes the round again.

        Args:
            certain: the number of rounds that are needed in any case, 0 or 1.
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
            # Asked once before the scan, since a GPU's program waits for each answer. In this order of branches, XLA
            # does not copy the state.
            state = cast(State, jax.lax.cond(most <= certain * self.capacity, unchanged, further, state))
        return state


def places(row: jax.Array, rows: int) -> jax.Array:
    """For each number, how many before it are equal to it; anything for those that are `rows`, the largest number."""
    (count,) = row.shape
    if rows <= MOST_COUNTED:
        same = row[None] == jnp.arange(rows, dtype=jnp.int32)[:, None]
        return jnp.sum(jnp.where(same, jnp.cumsum(same, 1, dtype=jnp.int32) - 1, 0), 0, dtype=jnp.int32)
    order = jnp.argsort(row, stable=True)
    numbers = jnp.arange(count, dtype=jnp.int32)
    rank = scatter(jnp.zeros_like(row)[:, None], (order,), None, numbers[:, None], "set", unique=True)[:, 0]
    each = jnp.sum(row[None] == jnp.arange(rows + 1, dtype=jnp.int32)[:, None], 1, dtype=jnp.int32)
    return rank - (jnp.cumsum(each, dtype=jnp.int32) - each)[row]
