"""The channels of texels in a kernel: a power of two of them at a time."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..accumulation import power_of_two_above
from .tiling import Mask

AT_A_TIME = 16


class Channels(NamedTuple):
    """Some channels of a texel, as they lie in memory.

    Attributes:
        total: the channels of a texel.
        start: the first channel of this part.
        width: how many lanes this part has; lanes beyond `total` are masked.
        stride: the elements from texel to texel.
        offset: the element of channel 0 in a texel's row.
    """

    total: int
    start: int
    width: int
    stride: int
    offset: int = 0

    def element(self, texel: jax.Array, mask: Mask) -> tuple[jax.Array, Mask]:
        """The elements of texels, threads + (width,), and a mask of those that exist."""
        channel = self.start + jnp.arange(self.width, dtype=jnp.int32)[None, :]
        element = texel[:, None] * self.stride + (channel + self.offset)
        exists = None if mask is None else jnp.broadcast_to(mask[:, None], element.shape)
        if self.start + self.width > self.total:
            real = jnp.broadcast_to(channel < self.total, element.shape)
            exists = real if exists is None else exists & real
        return element, exists


def channel_parts(total: int, at_a_time: int = AT_A_TIME) -> list[Channels]:
    """All channels of a texel, in parts of a power of two."""
    width = min(at_a_time, power_of_two_above(total))
    return [Channels(total, start, width, total) for start in range(0, total, width)]
