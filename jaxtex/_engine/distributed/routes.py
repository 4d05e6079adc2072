"""The routes of samples to the devices that store their texels, where a texture is cut over devices.

The functions here run on each device, inside `jax.shard_map`. In a round each device sends at most `capacity` samples
to each other one, by a dense all-to-all. There are as many rounds as the device needs that sends the most to one other.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

State = TypeVar("State")


class Routes(NamedTuple):
    """Where the samples of a device go, and when.

    Attributes:
        names: of the axes of the mesh along which the texture is cut.
        parts: of the texture.
        capacity: how many samples go to one device in a round.
        owner: the device that each sample goes to; a number past the last device for those that stay.
        order: the samples in the order of their owners.
        each: how many go to each device.
        place: of each sample among those that go to the same device.
    """

    names: tuple[str, ...]
    parts: int
    capacity: int
    owner: jax.Array
    order: jax.Array
    each: jax.Array
    place: jax.Array

    @classmethod
    def to(cls, owner: jax.Array, names: tuple[str, ...], parts: int, capacity: int) -> "Routes":
        """The routes of samples to their owners, shape (samples,)."""
        (count,) = owner.shape
        order = jnp.argsort(owner, stable=True)
        each = jnp.sum(owner[None] == jnp.arange(parts, dtype=jnp.int32)[:, None], 1, dtype=jnp.int32)
        rank = jnp.zeros(count, jnp.int32).at[order].set(jnp.arange(count, dtype=jnp.int32), unique_indices=True)
        return cls(names, parts, capacity, owner, order, each, rank - (jnp.cumsum(each) - each)[owner])

    @property
    def count(self) -> int:
        """The samples of a device."""
        return self.owner.shape[0]

    def sent(self, number: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The samples that go to each device in a round, (parts, capacity), and which of them there are."""
        slot = number * self.capacity + jnp.arange(self.capacity, dtype=jnp.int32)
        first = jnp.cumsum(self.each) - self.each
        at = jnp.clip(first[:, None] + slot[None], 0, self.count - 1)
        return self.order[at], slot[None] < self.each[:, None]

    def exchanged(self, a: jax.Array) -> jax.Array:
        """What the devices have for this one: (parts * capacity, ...), from (parts, capacity, ...) for each of them."""
        there = jax.lax.all_to_all(a, self.names, split_axis=0, concat_axis=0, tiled=True)
        return there.reshape(self.parts * self.capacity, *a.shape[2:])

    def exchanged_together(self, arrays: list[jax.Array]) -> list[jax.Array]:
        """The same of several arrays, (parts, capacity), by one exchange of those of each dtype."""
        found = dict[int, jax.Array]()
        for dtype in dict.fromkeys(a.dtype for a in arrays):
            some = [k for k, a in enumerate(arrays) if a.dtype == dtype]
            there = self.exchanged(jnp.stack([arrays[k] for k in some], -1))
            found |= {k: there[:, n] for n, k in enumerate(some)}
        return [found[k] for k in range(len(arrays))]

    def returned(self, found: jax.Array, number: jax.Array, others: jax.Array) -> jax.Array:
        """What was found for the samples of a round, (parts * capacity, C), at those samples; others as they are."""
        back = self.exchanged(found.reshape(self.parts, self.capacity, -1))
        at = jnp.clip(self.place - number * self.capacity, 0, self.capacity - 1)
        went = (self.place // self.capacity == number) & (self.owner < self.parts)
        source = jnp.minimum(self.owner, self.parts - 1) * self.capacity + at
        return jnp.where(went[:, None], back[source], others)

    def in_rounds(self, step: Callable[[State, jax.Array], State], state: State, certain: int = 1) -> State:
        """The state after ``state = step(state, number)`` for each round that is needed.

        Reverse mode keeps what goes into a round, and computes the round again.

        Args:
            certain: 1 if the first round is needed, or 0.
        """
        most = jax.lax.pmax(jnp.max(self.each), self.names)

        def turn(state: State, number: jax.Array) -> tuple[State, None]:
            run = jax.checkpoint(lambda state: step(state, number))
            return jax.lax.cond(number * self.capacity < most, run, lambda state: state, state), None

        if certain:
            state = step(state, jnp.int32(0))
        rounds = -(-self.count // self.capacity)
        if rounds > certain:
            state, _ = jax.lax.scan(turn, state, jnp.arange(certain, rounds, dtype=jnp.int32))
        return state
