"""Folds: functions of the samples of a read, taken in order."""

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
