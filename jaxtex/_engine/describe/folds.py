"""Folds: what the samples of a read become one after the other, where that is not their sum."""

import abc
import dataclasses

import jax
import jax.numpy as jnp


class Fold(abc.ABC):
    """A fold of samples in their order, elementwise over the shape S of its results. Instances are static and hashable.

    Attributes:
        joint: whether the channels of the state depend on each other.
        num_given: the number of operands of a sample that `step` takes, as the last ones of the read.
    """

    joint: bool = False
    num_given: int = 0

    @abc.abstractmethod
    def start(self, channels: int) -> list[float]:
        """The numbers of the state before the first sample, for values of `channels` channels."""

    @abc.abstractmethod
    def step(self, state: jax.Array, value: jax.Array, number: jax.Array, *given: jax.Array) -> jax.Array:
        """The state after a sample.

        Args:
            state: S + (numbers of the state,).
            value: S + (channels,).
            number: the number of the sample, from 0, as a float, which broadcasts to S.
            given: operands, which broadcast to S.
        """

    @abc.abstractmethod
    def result(self, state: jax.Array) -> jax.Array:
        """The result, S + (channels,)."""

    def is_final(self, state: jax.Array) -> jax.Array:
        """Whether no further sample changes the result, which broadcasts to S."""
        return jnp.zeros(state.shape[:-1], bool)


@dataclasses.dataclass(frozen=True)
class Highest(Fold):
    """The number of the first sample that is largest, of each channel. The state is the largest sample, and its number.

    NaN is no largest sample.
    """

    def start(self, channels: int) -> list[float]:
        return [-float("inf")] * channels + [0.0] * channels

    def step(self, state: jax.Array, value: jax.Array, number: jax.Array, *given: jax.Array) -> jax.Array:
        highest, at = jnp.split(state, 2, -1)
        above = value > highest
        return jnp.concatenate([jnp.where(above, value, highest), jnp.where(above, number[..., None], at)], -1)

    def result(self, state: jax.Array) -> jax.Array:
        return jnp.split(state, 2, -1)[1]


@dataclasses.dataclass(frozen=True)
class FirstCrossing(Fold):
    """The number of the first sample on the other side of a level than the sample before, of each channel; -1 if none.

    The level is given. A sample at the level counts as above, and NaN as below. The state is the sample before, and the
    number.
    """

    num_given = 1

    def start(self, channels: int) -> list[float]:
        return [0.0] * channels + [-1.0] * channels

    def step(self, state: jax.Array, value: jax.Array, number: jax.Array, *given: jax.Array) -> jax.Array:
        before, found = jnp.split(state, 2, -1)
        number, level = number[..., None], given[0][..., None]
        crosses = ((value >= level) != (before >= level)) & (number > 0) & (found < 0)
        return jnp.concatenate([jnp.broadcast_to(value, found.shape), jnp.where(crosses, number, found)], -1)

    def result(self, state: jax.Array) -> jax.Array:
        return jnp.split(state, 2, -1)[1]

    def is_final(self, state: jax.Array) -> jax.Array:
        return jnp.all(jnp.split(state, 2, -1)[1] >= 0, -1)


@dataclasses.dataclass(frozen=True)
class Composited(Fold):
    """Emission and absorption, front to back. The state is the color so far, and the transmittance.

    The last channel is the extinction for a unit of length, and the others are the color. The length of a sample is
    given. The last channel of the result is the opacity.

    Attributes:
        least: the transmittance from which on the samples behind are left out.
    """

    least: float = 0.0
    joint = True
    num_given = 1

    def start(self, channels: int) -> list[float]:
        return [0.0] * (channels - 1) + [1.0]

    def step(self, state: jax.Array, value: jax.Array, number: jax.Array, *given: jax.Array) -> jax.Array:
        color, light = state[..., :-1], state[..., -1:]
        extinction, length = value[..., -1:], given[0][..., None]
        # At 0, the derivative is that of an extinction above 0, so that one can grow from there.
        depth = jnp.where((extinction >= 0) & (light > self.least), extinction * length, 0)
        opacity = -jnp.expm1(-depth)
        return jnp.concatenate([color + light * opacity * value[..., :-1], light * (1 - opacity)], -1)

    def result(self, state: jax.Array) -> jax.Array:
        return jnp.concatenate([state[..., :-1], 1 - state[..., -1:]], -1)

    def is_final(self, state: jax.Array) -> jax.Array:
        return ~(state[..., -1] > self.least)
