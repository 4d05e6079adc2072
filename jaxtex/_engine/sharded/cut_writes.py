"""Writes of single texels of a texture that is cut over devices along one axis: what each device computes and receives.

The functions here run on each device, inside `jax.shard_map`. A device writes the texels that it stores. Where samples
are cut over the same devices, those that fall on another device's texels travel there, in rounds; each brings its
number among all samples, so that a texel keeps the value that it keeps in the whole texture.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.indexing import gather, scatter
from ..._jax.straight_through import straight_through
from ..._tables.storage_formats import sum_dtype
from ..compute.texel_write import keeping_bits, keeping_nan, landing, same
from ..describe.axis import Axis
from ..describe.spec import Coords
from ..walk.texel_walk import both, flattened, middle_texel
from .cut import Cut
from .routes import NO_SAMPLE, Routes

LAST_NUMBER = np.int32(np.iinfo(np.int32).max)


class Landed(NamedTuple):
    """Samples that write texels of a device.

    Attributes:
        indices: the texels, flat.
        inside: which of the samples write one.
        values: (samples, C).
        numbers: of the samples, among all in flattened order.
    """

    indices: tuple[jax.Array, ...]
    inside: jax.Array
    values: jax.Array
    numbers: jax.Array


# From the texels so far, and what else is kept for each of them, and samples, to the same after these samples.
Step = Callable[[Any, Landed], Any]


class RoutedWrites(NamedTuple):
    """Where the samples of a device write.

    Attributes:
        axes: of the whole texture, all integer.
        capacity: how many samples go to one other device in a round.
    """

    axes: tuple[Axis, ...]
    cut: Cut
    capacity: int

    @property
    def part(self) -> tuple[Axis, ...]:
        """The axes of a device's texels."""
        return self.cut.axes_in_part(self.axes, 0)

    def write(self, texels: jax.Array, values: jax.Array, coords: Coords, *, unique: bool) -> jax.Array:
        """`texel_write.write` of a device's texels, with the samples of all devices.

        Args:
            values: (samples, C), those of the device.
            coords: (samples,) for each axis, and then the number of each sample.
        """

        def written(texels: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
            stored = flattened(texels, self.part)
            newest = jnp.full((*stored.shape[:-1], 1), NO_SAMPLE, jnp.int32)
            kept = (stored,) if unique else (stored, newest)
            return self.after_all(only_samples if unique else newest_samples, kept, values, coords)[0].reshape(
                texels.shape
            )

        return keeping_bits(written, texels, values, coords)

    def reduce(self, texels: jax.Array, values: jax.Array, coords: Coords, rule: str) -> jax.Array:
        """`texel_write.reduce` of a device's texels, with the samples of all devices; arguments as of `write`."""

        def result(texels: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
            total = sum_dtype(texels.dtype) if jnp.issubdtype(texels.dtype, jnp.floating) else texels.dtype
            joined = self.sums if rule == "add" else functools.partial(self.extremes, rule=rule)
            stored, values = (a.astype(total) if rule == "add" else a for a in (texels, values))
            found = joined(flattened(stored, self.part), values, coords)
            return found.reshape(texels.shape).astype(texels.dtype)

        return keeping_nan(result, texels, values, coords)

    def sums(self, stored: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
        return self.after_all(functools.partial(joined, rule="add"), stored, values, coords)

    def extremes(self, stored: jax.Array, values: jax.Array, coords: Coords, rule: str) -> jax.Array:
        """The least or largest of texels and values, whose cotangent goes to the first that ties, texels before."""

        def reduced(stored: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
            return self.after_all(functools.partial(joined, rule=rule), stored, values, coords)

        def selected(stored: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
            best = jax.lax.stop_gradient(reduced(stored, values, coords))
            first = jnp.where(same(stored, best), NO_SAMPLE, LAST_NUMBER)
            return self.after_all(functools.partial(first_to_tie, best=best), (stored, first), values, coords)[0]

        return straight_through(reduced, selected)(stored, values, coords)

    def after_all(self, step: Step, state: Any, values: jax.Array, coords: Coords) -> Any:
        """The state after a step with the samples that a device has for itself, and one with those of each round."""
        start, (*coords, numbers) = self.cut.start(0, 1), coords

        def landed(values: jax.Array, coords: Coords, numbers: jax.Array) -> Landed:
            address = landing(values, [start, *coords], self.part)
            inside = both(address.inside, numbers != NO_SAMPLE)
            assert inside is not None
            return Landed(address.flat_index, inside, values, numbers)

        owner = middle_texel(coords[self.cut.axis], self.axes[self.cut.axis]) // self.cut.own
        travels = owner != self.cut.number
        routes = Routes.to(jnp.where(travels, owner, self.cut.parts), self.cut.names, self.cut.parts, self.capacity)

        def turn(state: Any, number: jax.Array) -> Any:
            sent, exist = routes.sent(number)
            there = lambda a: routes.exchanged(a[sent])
            return step(
                state,
                landed(
                    there(values),
                    [there(c) for c in coords],
                    routes.exchanged(jnp.where(exist, numbers[sent], NO_SAMPLE)),
                ),
            )

        return routes.in_rounds(turn, step(state, landed(values, coords, numbers)), certain=0)


# Steps


def only_samples(kept: tuple[jax.Array], some: Landed) -> tuple[jax.Array]:
    """Texels with the values of samples of which no two write the same one."""
    (stored,) = kept
    return (scatter(stored, some.indices, some.inside, some.values, "set", unique=True),)


def newest_samples(kept: tuple[jax.Array, jax.Array], some: Landed) -> tuple[jax.Array, jax.Array]:
    """Texels with the values of the samples of the largest numbers, and these numbers."""
    stored, newest = kept
    newest = scatter(newest, some.indices, some.inside, some.numbers[:, None], "max")
    last = gather(newest, some.indices)[..., 0] == some.numbers
    return scatter(stored, some.indices, some.inside & last, some.values, "set", unique=True), newest


def joined(stored: jax.Array, some: Landed, rule: str) -> jax.Array:
    """Texels and values joined by add, min or max."""
    return scatter(stored, some.indices, some.inside, some.values, rule)


def first_to_tie(kept: tuple[jax.Array, jax.Array], some: Landed, best: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Texels with the values that equal the best ones, channel by channel: of several the first; and their numbers."""
    stored, first = kept
    ties = some.inside[:, None] & same(some.values, gather(best, some.indices))
    numbers = jnp.where(ties, some.numbers[:, None], LAST_NUMBER)
    first = scatter(first, some.indices, some.inside, numbers, "min")
    wins = ties & (gather(first, some.indices) == numbers)
    channel = jnp.broadcast_to(jnp.arange(stored.shape[-1], dtype=jnp.int32), wins.shape)
    indices = *(index[:, None] for index in some.indices), channel
    found = scatter(stored[..., None], indices, wins, some.values[..., None], "set", unique=True)
    return found[..., 0], first
