"""How a read is divided among threads."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..samples.sample_tiles import SampleTiles, unravelled


class ReadThreads(NamedTuple):
    """How a read is divided among threads.

    Attributes:
        tiles: the samples of a block.
        parts: the number of threads of a sample.
        width: the number of channels of a thread.
        aligned: whether the channels of every thread are aligned for a vector load.
        summed: the sizes of the sample axes along which the result is summed.
        along: the positions of these axes.
    """

    tiles: SampleTiles
    parts: int
    width: int
    aligned: bool
    summed: tuple[int, ...]
    along: tuple[int, ...]

    def index_of(self, place: Sequence[jax.Array], number: Sequence[jax.Array]) -> list[jax.Array]:
        """The index of a sample on each axis. `number`, the group and the place there, is that of a sample of a sum."""
        index = self.tiles.index_of(*place)
        if self.summed:
            group, last = number
            for axis, i in zip(self.along, (*unravelled(group, self.summed[:-1]), last)):
                index.insert(axis, i)
        return index

    def first_channel(self, part: jax.Array, channels: int) -> jax.Array:
        """The first channel of a thread. If `width` does not divide `channels`, the last two threads share channels."""
        first = part * self.width
        return first if channels % self.width == 0 else jnp.minimum(first, channels - self.width)
