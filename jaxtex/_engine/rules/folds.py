"""The fold of the samples along a ray, in one pass: a primitive, and its meaning in reads of blocks of samples.

Derivatives are those of the meaning. A block is recomputed in reverse mode, which stores the state before each.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching

from ..._jax.indexing import as_varying
from ..._jax.primitives import bind, define, jvp_of_meaning
from ..compute import operators
from ..describe.folds import Fold
from ..describe.operands import Besides
from ..describe.spec import ReadSpec
from ..describe.storage import READ
from ..describe.storage import bind as bind_read
from ..forms.choice import LOWERINGS
from ..forms.cpu import SUM_BLOCK, SumBlocks
from .primitives import read_p, type_of_read
from .transformations import batching_rule

# The steps of a fold that one iteration of a loop takes.
UNROLLED = 8


def fold(texels: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, fold: Fold) -> jax.Array:
    """What the reads along the one axis of `spec.summed_axes` become, with size 1 along it, and derivatives.

    Args:
        operands: as of a read, and behind them those that the fold takes, see `Read.besides`.
    """
    return bind(fold_p, texels, *operands, spec=spec, fold=fold, batch=0)


def by_reads(
    read: Callable[..., jax.Array], texels: jax.Array, *operands: jax.Array, spec: ReadSpec, fold: Fold
) -> jax.Array:
    """`fold` by reads of blocks of samples, ``read(texels, *operands, spec=...)``.

    The numbers of a block are at most as many as the texels, to which a block adds in reverse mode.
    """
    shape = np.broadcast_shapes(*spec.sample_shapes(operands))
    (along,), channels = spec.summed_axes, texels.shape[-1]
    axis, count = len(shape) + along, shape[along]
    own = len(operands) - fold.num_given
    given = [jnp.squeeze(a, axis).astype(spec.sums) for a in operands[own:]]
    one = spec.unsummed().with_dtype(spec.sums)
    if isinstance(one.grid, Besides):
        one = one.replace(grid=one.grid.grid, stacks=one.stacks[:own])
    most = max(SUM_BLOCK, math.prod(texels.shape)) // (math.prod(shape) // count * channels)
    blocks = SumBlocks(along, count, min(count, max(1, most)))

    def block(start: jax.Array | int, count: int, state: jax.Array) -> jax.Array:
        values = read(texels, *blocks.operands(operands[:own], one, start, count), spec=one)
        values = jnp.broadcast_to(values, (*shape[:axis], count, *shape[axis + 1 :], channels))
        numbers = (start + jnp.arange(count, dtype=jnp.int32)).astype(spec.sums).reshape(-1, *[1] * (len(shape) - 1))

        def step(state: jax.Array, sample: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            value, number = sample
            return fold.step(state, value, number, *given), None

        return jax.lax.scan(step, state, (jnp.moveaxis(values, axis, 0), numbers), unroll=min(count, UNROLLED))[0]

    start = jnp.asarray(fold.start(channels), spec.sums)
    start = jnp.broadcast_to(start, (*shape[:axis], *shape[axis + 1 :], len(start)))
    state = blocks.fold(jax.checkpoint(block, static_argnums=1), as_varying(start, texels, *operands))
    return jnp.expand_dims(fold.result(state).astype(spec.dtype), axis)


def meaning(texels: jax.Array, *operands: jax.Array, spec: ReadSpec, fold: Fold, batch: int) -> jax.Array:
    read = functools.partial(bind_read, read_p, batch=0)
    run = functools.partial(by_reads, read, spec=spec, fold=fold)
    return operators.over_batch(run, batch)(texels, *operands)


def types(*args: jax.Array, spec: ReadSpec, fold: Fold, batch: int) -> jax.ShapeDtypeStruct:
    del fold
    return type_of_read(*args, spec=spec, batch=batch)


fold_p: Any = define(
    "texture_fold", meaning, static=("spec", "fold", "batch"), types=types, lowerings=LOWERINGS["fold"]
)
ad.primitive_jvps[fold_p] = jvp_of_meaning(fold_p, meaning)
batching.primitive_batchers[fold_p] = batching_rule(fold_p, READ)
