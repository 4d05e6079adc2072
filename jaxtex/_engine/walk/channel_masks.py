"""Conditions of samples, for each of their channels.

A loop of XLA for CPUs over samples has one over their channels inside. LLVM moves a condition that all channels share
out of the inner one, as a branch, and then vectorizes neither. What channels compare with numbers of their own stays a
mask. These numbers are zeros behind a boundary, so that LLVM does not know them.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from ..._jax.barriers import materialized

# From a condition, S, to that of the channels, which broadcasts to S + (C,).
ForChannels = Callable[[jax.Array], jax.Array]
# More channels are a loop that is vectorized by itself, behind the branch. For more taps there is none.
MOST_CHANNELS, MOST_TAPS = 8, 8


def alike(condition: jax.Array) -> jax.Array:
    """A condition that all channels share."""
    return condition[..., None]


def one_by_one(channels: int, taps: int = 1) -> ForChannels:
    """How the channels of an array compare by themselves, if they are few, for each of a few taps."""
    if not 1 < channels <= MOST_CHANNELS or taps > MOST_TAPS:
        return alike
    zeros = materialized(jnp.zeros(channels, jnp.int32))
    return lambda condition: alike(condition).astype(jnp.int32) > zeros.reshape(*[1] * condition.ndim, -1)
