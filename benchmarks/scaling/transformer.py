"""The training step of `examples/spatial_transformer.py`, for a batch that is cut over devices."""

import functools
import importlib
import pathlib
import sys
from typing import Any

import jax
import jax.numpy as jnp

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
PIXELS = 8  # along a side of a digit
RATE = 3e-3


@functools.cache
def example() -> Any:
    """The module of the example. It needs the extra `examples`."""
    sys.path.append(str(EXAMPLES))  # it imports a module beside it
    return importlib.import_module("spatial_transformer")


@functools.cache
def network() -> Any:
    """Its structure, and its parameters at the start."""
    from flax import nnx

    return nnx.split(example().transformed_network(nnx.Rngs(0)))


def optimizer() -> Any:
    import optax

    return optax.adam(RATE)


def inputs(batch: int) -> tuple[Any, ...]:
    """Parameters, moments, a random key, digits of noise, and labels."""
    params = network()[1]
    images, labels = jax.random.split(jax.random.key(0))
    return (
        params,
        optimizer().init(params),
        jax.random.key(1),
        jax.random.uniform(images, (batch, PIXELS, PIXELS, 1)),
        jax.random.randint(labels, (batch,), 0, 10),
    )


def step(params: Any, moments: Any, key: jax.Array, images: jax.Array, labels: jax.Array) -> tuple[Any, Any, jax.Array]:
    """The next parameters and moments, and the loss: digits are distorted, then read by the network."""
    import optax
    from flax import nnx

    def loss(params: Any) -> jax.Array:
        logits = nnx.merge(network()[0], params)(example().distort(images, key))
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))

    value, slopes = jax.value_and_grad(loss)(params)
    updates, moments = optimizer().update(slopes, moments, params)
    return optax.apply_updates(params, updates), moments, value
