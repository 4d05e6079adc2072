"""The adjoint of a fold: the cotangents of its samples, which it finds in their order, go back to operands and texels.

A thread has all samples of a result. For operands that these share, such as the ends of a ray, it adds up cotangents in
its registers (`operand_sums.py`). Additions to texels need windows of adjacent samples, so samples come in chunks: a
thread takes those of a result and stores their cotangents, and the scatter kernel adds them to the texels.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from ..compute.programs import over_samples, stacks_of_one
from ..describe.folds import Fold
from ..describe.operands import Besides, Stack
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import Shaped, bind, read_p
from ..walk.texel_order import texels_shape
from .adjoint_kernel import in_windows
from .programs.program_kernel import fused_samples
from .read import operand_sums
from .read.operand_sums import pull_sums, shared_alone
from .read.read_kernel import fold as folded
from .samples.sample_source import AdjointPlan
from .samples.sample_tiles import samples_shape

# Limits of a chunk: the bytes of its cotangents, and its samples of a result. More of these than TILE_SAMPLES are a
# multiple of it, because tiles of the scatter kernel have as many.
CHUNK_BYTES, CHUNK_SAMPLES, TILE_SAMPLES = 2**26, 64, 8


def fold_pullback(
    cotangent: jax.Array,
    texels: jax.Array,
    *operands: jax.Array,
    spec: ReadSpec,
    fold: Fold,
    wrt: Wrt,
    batch: int,
) -> list[jax.Array]:
    """`rules.folds.pullback` over `batch` leading axes."""
    spec = spec.with_dtype(spec.sums)
    result = folded(texels, *operands, spec=spec, fold=fold, batch=batch)
    start, own = fold.pull_start(result, cotangent), tuple(k for k in wrt if k != TEXELS)
    found = dict(zip(own, pull_sums(cotangent, texels, operands, spec, own, batch, fold, start) if own else ()))
    if TEXELS in wrt:
        found[TEXELS] = pull_texels(cotangent, texels, operands, spec, fold, start)
    return [found[k] for k in wrt]


def pull_texels(
    cotangent: jax.Array,
    texels: jax.Array,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    fold: Fold,
    state: jax.Array,
) -> jax.Array:
    """The cotangent of the texels of one texture.

    Args:
        state: that of `Fold.pull` at the start, in the shape of the results.
    """
    # The operands of the read, some with a number of each sample, and those of the fold.
    channels, size = texels.shape[-1], spec.samples_shape(operands)[-1]
    own = len(operands) - fold.num_given
    if isinstance(spec.grid, Besides):
        spec = spec.replace(grid=spec.grid.grid, stacks=spec.stacks[:own])
    read, given = operands[:own], operands[own:]
    each = of_each_sample(spec, read, size)

    def chunk(start: jax.Array | int, count: int, state: jax.Array, total: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The state behind `count` samples from `start` on, and the sums at texels with them."""
        part = [jax.lax.dynamic_slice_in_dim(a, start, count, each[k]) if k in each else a for k, a in enumerate(read)]
        state, values = pulled(texels, part, given, cotangent, state, spec, fold, each)
        plan = AdjointPlan(spec, (), (*values.shape[:-2], count), (), ())
        (total,) = in_windows(plan, values, None, part, start=total)
        return state, total

    # As many samples in a chunk as memory allows; the first chunk has what remains.
    state = state.astype(spec.sums)
    most = min(CHUNK_SAMPLES, max(1, CHUNK_BYTES // (4 * channels * math.prod(state.shape[:-1]))))
    count = min(size, most // TILE_SAMPLES * TILE_SAMPLES or most)
    first = size % count or count
    total = jnp.zeros((math.prod(texels.shape[:-1]), channels), jnp.float32)
    carry = chunk(0, first, state, total)
    rest = lambda k, carry: chunk(first + k * count, count, *carry)
    _, total = jax.lax.fori_loop(0, (size - first) // count, rest, carry) if first < size else carry
    return total.reshape(texels_shape(spec.axes, channels))


def pulled(
    texels: jax.Array,
    operands: Sequence[jax.Array],
    given: Sequence[jax.Array],
    cotangent: jax.Array,
    state: jax.Array,
    spec: ReadSpec,
    fold: Fold,
    each: dict[int, int],
) -> tuple[jax.Array, jax.Array]:
    """The state of `Fold.pull` behind a chunk of samples, and the cotangents of their values, S + (samples, C).

    Args:
        each: of `of_each_sample`.
    """
    stacks = spec.stacks or (None,) * len(operands)
    of_one = spec.unsummed().replace(stacks=stacks_of_one(spec.stacks))
    # What all results share has the samples in front.
    rows = {k: jnp.moveaxis(a, each[k], 0).reshape(a.shape[each[k]], -1) for k, a in enumerate(operands) if k in each}
    rows = {k: a if stacks[k] else a[:, 0] for k, a in rows.items()}
    args = [texels, *rows.values(), *(a for k, a in enumerate(operands) if k not in each), *given, cotangent, state]
    last = lambda a: Stack(-1, tuple(range(a.shape[-1])))
    laid = [None] * (1 + len(rows)) + [s for k, s in enumerate(stacks) if k not in each] + [None] * len(given)

    def of_result(*args: jax.Array) -> tuple[jax.Array, jax.Array]:
        texels, rest = args[0], list(args[1 + len(rows) :])
        alike = {k: rest.pop(0) for k in range(len(operands)) if k not in each}
        *of_fold, cotangent, state = rest

        def step(state: jax.Array, of_sample: list[jax.Array]) -> tuple[jax.Array, jax.Array]:
            numbers = alike | dict(zip(rows, of_sample))
            value = bind(read_p, texels, *(numbers[k] for k in range(len(operands))), spec=of_one, batch=0)
            state, of_value, _ = fold.pull(state, value, cotangent, *of_fold)
            return state, of_value

        return jax.lax.scan(step, state, list(args[1 : 1 + len(rows)]))

    shared = range(1 + len(rows))
    samples, static = over_samples(of_result, args, shared, [*laid, last(cotangent), last(state)], 0)
    state, values = fused_samples(*samples, **static)
    return state, values.reshape(*values.shape[:-3], *values.shape[-2:])


def of_each_sample(spec: ReadSpec, operands: Sequence[Shaped], size: int) -> dict[int, int]:
    """The operands with a number of each sample, and the axis along which they have it."""
    if size == 1:
        return {}
    axes: dict[int, int] = {}
    for k, (a, shape) in enumerate(zip(operands, spec.sample_shapes(operands))):
        if shape[-1] > 1:
            stack = spec.stack_of(k)
            axes[k] = len(a.shape) - 1 if stack is None else stack.dimension_of(len(a.shape) - 2, len(a.shape))
    return axes


def supports_texels(spec: ReadSpec, operands: Sequence[Shaped], batch: int, fold: Fold) -> bool:
    """Whether samples may come in chunks: those of one texture, along one axis, with numbers that all results share."""
    many = math.prod(spec.samples_shape(operands)[:-1]) >= operand_sums.LEAST_SUMS
    own = operands[: len(operands) - fold.num_given]
    shapes = spec.sample_shapes(operands)[: len(own)]
    alike = all(math.prod(shape[:-1]) == 1 for shape in shapes if shape[-1] > 1)
    return many and batch == 0 and spec.summed_axes == (-1,) and not spec.deterministic and alike


def shared_by_fold(texels: Shaped, operands: Sequence[Shaped], spec: ReadSpec, wrt: Wrt, batch: int) -> bool:
    """Whether threads that have all samples of a result are enough for the cotangents of the operands in `wrt`."""
    textures = tuple(texels.shape[:batch])
    shape = samples_shape(textures, spec.sample_shapes(operands))
    plan = AdjointPlan(spec, wrt, shape, textures, textures)
    return shared_alone(plan._replace(shared=plan.shared_of(operands)), texels.shape[-1]) == wrt
