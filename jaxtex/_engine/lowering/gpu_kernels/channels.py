"""Loads and stores of texels with their channels, a power of two of them at a time."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.ref

from ...reproducible_sum import power_above
from .tiling import Mask

AT_A_TIME = 16


class Channels(NamedTuple):
    """`width` channels of `count`, from the one at `start` on, in rows of `stride` that hold them from `offset` on."""

    count: int
    start: int
    width: int
    stride: int
    offset: int = 0

    def element(self, texel: jax.Array, mask: Mask) -> tuple[jax.Array, Mask]:
        """The elements of texels, threads + (width,), and which of them exist."""
        channel = self.start + jnp.arange(self.width, dtype=jnp.int32)[None, :]
        element = texel[:, None] * self.stride + (channel + self.offset)
        exists = None if mask is None else jnp.broadcast_to(mask[:, None], element.shape)
        if self.start + self.width > self.count:
            real = jnp.broadcast_to(channel < self.count, element.shape)
            exists = real if exists is None else exists & real
        return element, exists


def parts(count: int, at_a_time: int = AT_A_TIME) -> list[Channels]:
    """All channels of a texel, in parts of a power of two."""
    width = min(at_a_time, power_above(count))
    return [Channels(count, start, width, count) for start in range(0, count, width)]


def load(ref: Any, element: jax.Array, exists: Mask) -> jax.Array:
    from jax.experimental.pallas import triton

    nothing = None if exists is None else jnp.zeros(element.shape, ref.dtype)
    return triton.load(ref.at[element], mask=exists, other=nothing)


def store(ref: Any, element: jax.Array, value: jax.Array, exists: Mask) -> None:
    from jax.experimental.pallas import triton

    triton.store(ref.at[element], value, mask=exists)


def add(ref: Any, element: jax.Array, exists: Mask, value: jax.Array, interpret: bool) -> None:
    """Adds to elements of `ref`, of which several may be one."""
    from jax.experimental.pallas import triton

    if interpret:  # whose atomic additions keep only the last of those that meet
        kept = jnp.zeros(element.shape, bool) if exists is None else ~exists
        jax.ref.addupdate(ref, (jnp.where(kept, 0, element),), jnp.where(kept, 0, value))
    else:
        triton.atomic_add(ref, (element,), value, mask=exists)
