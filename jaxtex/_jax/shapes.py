"""Shapes whose sizes may be symbolic, as those of a program that `jax.export` makes for batches of any size.

NumPy takes no such size, and whether it is more than a number may have no answer: it equals no number.
"""

from collections.abc import Iterable, Sequence

import jax
import jax.numpy as jnp
from jax.export import is_symbolic_dim


def is_symbolic(*shapes: Iterable[int]) -> bool:
    """Whether any size of the shapes is symbolic."""
    return any(is_symbolic_dim(n) for shape in shapes for n in shape)


def as_operand(size: int | jax.Array) -> int | jax.Array:
    """A size that a program computes with: a symbolic one as int32, any other as it is."""
    return size if isinstance(size, jax.Array) or not is_symbolic_dim(size) else jnp.asarray(size, jnp.int32)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that shapes broadcast to.

    Raises:
        ValueError: if they do not, or if it is not known of a symbolic size.
    """
    return jax.lax.broadcast_shapes(*map(tuple, shapes)) if shapes else ()
