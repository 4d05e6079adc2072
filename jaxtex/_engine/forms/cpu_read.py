"""Reads on a CPU of texels of four bytes as words, see `words`."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.barriers import materialized, with_materialized
from ..compute import operators
from ..compute.decoding import WORD, LoadTexel, for_channels, loads_bytes, packed
from ..compute.operators import over_batch
from ..describe.spec import ReadSpec

# Of more taps, arithmetic takes the most time. Words of more texels are new pages of memory in every call.
MOST_TAPS, MOST_TEXELS = 8, 2**22


def read(*args: jax.Array, spec: ReadSpec, batch: int) -> jax.Array:
    """`operators.read` over `batch` leading axes, of texels that are loaded as words."""
    run = over_batch(functools.partial(operators.read, spec=spec, loads=loads_words), batch)
    return (with_materialized(run, (0,)) if spec.materialized else run)(*args)


def loads_words(stored: jax.Array) -> LoadTexel:
    """Loads texels as words, from rows of four bytes."""
    return loads_bytes(for_channels(materialized(packed(stored, WORD)), WORD.itemsize))


def supports(texels: Any, *args: Any, spec: ReadSpec, batch: int) -> bool:
    """Whether texels have four bytes, and are no more than the samples, whose few taps must make up for the words."""
    if texels.dtype != jnp.uint8 or texels.shape[-1] != WORD.itemsize or not 1 < spec.num_taps <= MOST_TAPS:
        return False
    _, operands = spec.color_and_operands(args)
    shapes = (shape[batch:] for shape in spec.sample_shapes(operands))
    samples = math.prod(np.broadcast_shapes(*shapes))
    return math.prod(texels.shape[batch:-1]) <= samples and math.prod(texels.shape[:-1]) <= MOST_TEXELS
