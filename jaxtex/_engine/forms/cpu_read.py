"""Reads on a CPU of texels of four bytes as words, see `words`."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.barriers import materialized, with_materialized
from ..compute import operators
from ..compute.decoding import packed
from ..compute.operators import LoadTexel, over_batch
from ..compute.outside import read_over_color
from ..compute.words import WORD, for_channels, loads_bytes
from ..describe.spec import ReadSpec

# Of more taps, arithmetic takes the most time. Words of more texels are new pages of memory in every call.
MOST_TAPS, MOST_TEXELS = 8, 2**22


def read(texels: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int) -> jax.Array:
    """`operators.read` over `batch` leading axes."""
    return in_words(operators.read, (texels, *operands), spec, batch)


def bordered_read(texels: jax.Array, color: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int) -> jax.Array:
    """`outside.read_over_color` over `batch` leading axes."""
    return in_words(read_over_color, (texels, color, *operands), spec, batch)


def in_words(one: Callable[..., jax.Array], args: Sequence[jax.Array], spec: ReadSpec, batch: int) -> jax.Array:
    """A read of texels that are loaded as words."""
    run = over_batch(functools.partial(one, spec=spec, loads=loads_words), batch)
    return (with_materialized(run, (0,)) if spec.materialized else run)(*args)


def loads_words(stored: jax.Array) -> LoadTexel:
    """Loads texels as words, from rows of four bytes."""
    return loads_bytes(for_channels(materialized(packed(stored, WORD)), WORD.itemsize))


def supports(texels: Any, *operands: Any, spec: ReadSpec, batch: int) -> bool:
    """Whether texels have four bytes, and are no more than the samples, whose few taps must make up for the words."""
    if texels.dtype != jnp.uint8 or texels.shape[-1] != WORD.itemsize or not 1 < spec.num_taps <= MOST_TAPS:
        return False
    shapes = (shape[batch:] for shape in spec.sample_shapes(operands))
    samples = math.prod(np.broadcast_shapes(*shapes))
    return math.prod(texels.shape[batch:-1]) <= samples and math.prod(texels.shape[:-1]) <= MOST_TEXELS


def supports_bordered(texels: Any, color: Any, *operands: Any, spec: ReadSpec, batch: int) -> bool:
    """The same for a read with a border color."""
    del color
    return supports(texels, *operands, spec=spec, batch=batch)
