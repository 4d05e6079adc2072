"""Folds: functions of the samples of a read, taken in order."""

import abc
import dataclasses

import jax
import jax.numpy as jnp

from ..._jax.versions import stack


class Fold(abc.ABC):
    """A fold of samples in their order, elementwise over the shape S of its results. Instances are static and hashable.

    Attributes:
        joint: whether the channels of the state depend on each other.
        num_given: the number of operands of a sample that `step` takes, as the last ones of the read.
    """

    joint: bool = False
    num_given: int = 0

    def width(self, channels: int) -> int:
        """The number of channels of the result, for values of `channels` channels."""
        return channels

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
        """The result, S + (width,)."""

    def is_final(self, state: jax.Array) -> jax.Array:
        """Whether no further sample changes the result, which broadcasts to S."""
        return jnp.zeros(state.shape[:-1], bool)

    def pull_start(self, result: jax.Array, cotangent: jax.Array) -> jax.Array:
        """The state of `pull` before the first sample, from the result and its cotangent, S + (channels,)."""
        del cotangent
        return result[..., :0]

    def pull(
        self, state: jax.Array, value: jax.Array, cotangent: jax.Array, *given: jax.Array
    ) -> tuple[jax.Array, jax.Array, list[jax.Array]]:
        """The state after a sample, and the cotangents of its value, S + (channels,), and of `given`, S.

        By default there are none: the result is a number of a sample. Samples come in order, because the part of the
        result from behind a sample is the result minus the part from before it.
        """
        return state, jnp.zeros_like(value), [jnp.zeros(value.shape[:-1], value.dtype) for _ in given]


@dataclasses.dataclass(frozen=True)
class Sum(Fold):
    """The sum of all samples."""

    def start(self, channels: int) -> list[float]:
        return [0.0] * channels

    def step(self, state: jax.Array, value: jax.Array, number: jax.Array, *given: jax.Array) -> jax.Array:
        return state + value

    def result(self, state: jax.Array) -> jax.Array:
        return state

    def pull(
        self, state: jax.Array, value: jax.Array, cotangent: jax.Array, *given: jax.Array
    ) -> tuple[jax.Array, jax.Array, list[jax.Array]]:
        return state, cotangent, []


SUM = Sum()


@dataclasses.dataclass(frozen=True)
class Highest(Fold):
    """The number of the first largest sample, for each channel. The state is that sample and its number.

    NaN is never the largest.
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
    """The number of the first sample across a level from the sample before, for each channel; -1 if none.

    The level is an operand. A sample at the level counts as above, and NaN as below. The state is the sample before and
    the number.
    """

    num_given = 1

    def start(self, channels: int) -> list[float]:
        return [0.0] * channels + [-1.0] * channels

    def step(self, state: jax.Array, value: jax.Array, number: jax.Array, *given: jax.Array) -> jax.Array:
        before, crossing = jnp.split(state, 2, -1)
        number, level = number[..., None], given[0][..., None]
        crosses = ((value >= level) != (before >= level)) & (number > 0) & (crossing < 0)
        return jnp.concatenate([jnp.broadcast_to(value, crossing.shape), jnp.where(crosses, number, crossing)], -1)

    def result(self, state: jax.Array) -> jax.Array:
        return jnp.split(state, 2, -1)[1]

    def is_final(self, state: jax.Array) -> jax.Array:
        return jnp.all(jnp.split(state, 2, -1)[1] >= 0, -1)


@dataclasses.dataclass(frozen=True)
class Composited(Fold):
    """Emission and absorption, front to back. The state is the color and the transmittance so far.

    The last channel is the extinction per unit of length, and the others are the color. The length of a sample is an
    operand. The last channel of the result is the opacity.

    Attributes:
        least: the transmittance below which further samples are left out.
    """

    least: float = 0.0
    joint = True
    num_given = 1

    def start(self, channels: int) -> list[float]:
        return [0.0] * (channels - 1) + [1.0]

    def step(self, state: jax.Array, value: jax.Array, number: jax.Array, *given: jax.Array) -> jax.Array:
        color, light = state[..., :-1], state[..., -1:]
        _, opacity = self.absorbed(light, value[..., -1:], given[0][..., None])
        return jnp.concatenate([color + light * opacity * value[..., :-1], light * (1 - opacity)], -1)

    def absorbed(self, light: jax.Array, extinction: jax.Array, length: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Whether a sample contributes, and its opacity."""
        # At 0, the derivative is that of a positive extinction, so that training can raise it.
        counts = (extinction >= 0) & (light > self.least)
        return counts, -jnp.expm1(jnp.where(counts, -extinction * length, 0))

    def result(self, state: jax.Array) -> jax.Array:
        return jnp.concatenate([state[..., :-1], 1 - state[..., -1:]], -1)

    def is_final(self, state: jax.Array) -> jax.Array:
        return ~(state[..., -1] > self.least)

    def pull_start(self, result: jax.Array, cotangent: jax.Array) -> jax.Array:
        """The transmittance, and the derivative of the result with respect to a factor of all light from behind."""
        behind = jnp.sum(result[..., :-1] * cotangent[..., :-1], -1) - (1 - result[..., -1]) * cotangent[..., -1]
        return stack([jnp.ones_like(behind), behind], -1)

    def pull(
        self, state: jax.Array, value: jax.Array, cotangent: jax.Array, *given: jax.Array
    ) -> tuple[jax.Array, jax.Array, list[jax.Array]]:
        light, behind = state[..., :1], state[..., 1:]
        color, extinction, length = value[..., :-1], value[..., -1:], given[0][..., None]
        counts, opacity = self.absorbed(light, extinction, length)
        emitted = jnp.sum(color * cotangent[..., :-1], -1, keepdims=True)
        share, after = light * opacity, light * (1 - opacity)
        behind = behind - share * emitted
        of_depth = jnp.where(counts, after * emitted - behind, 0)
        of_value = jnp.concatenate([share * cotangent[..., :-1], of_depth * length], -1)
        return jnp.concatenate([after, behind], -1), of_value, [jnp.squeeze(of_depth * extinction, -1)]
