"""The fold of the samples along rays, in one pass: a primitive, its tangent, and their meaning in reads of blocks.

A block is a part of the samples of all rays, with at most as many numbers as texels, since the adjoint of a block adds
to all texels. Reverse mode keeps texels and operands: it recomputes the result, and then, block by block and in order,
the cotangent of each sample (`Fold.pull`).
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad

from ..._jax.indexing import as_varying, explicit_sharding
from ..._jax.primitives import bind, define, is_nonzero
from ..._jax.shapes import is_symbolic
from ..compute import operators
from ..describe.folds import Fold
from ..describe.operands import Besides
from ..describe.spec import TEXELS, Read, ReadSpec, Wrt
from ..describe.storage import READ, read_p
from ..describe.storage import bind as bind_read
from ..forms.choice import LOWERINGS
from ..forms.cpu import SUM_BLOCK, SumBlocks
from .primitives import as_cotangent, batching_rule, pullback_p, type_of_read

# The steps of a fold that one iteration of a loop takes.
UNROLLED = 8
# A function ``read(texels, *operands, spec=...)``.
ReadFunction = Callable[..., jax.Array]


def fold(texels: jax.Array, color: jax.Array | None, read: Read, fold: Fold) -> jax.Array:
    """The fold of the reads along the last axis of the samples, which the read sums: size 1 along it.

    Args:
        color: the border color, or zero outside; with it, the fold has no derivatives.
        read: its last operands are those of the fold, see `Read.besides`.
    """
    spec, args = read.over(color)
    return bind(fold_p, texels, *args, spec=spec, fold=fold, batch=0)


class Blocks:
    """The blocks of samples of a fold of one texture, and its operands.

    Attributes:
        shape: the shape of the rays.
        spec: the spec of a read of samples, whose last axis is summed.
        given: the operands that the fold takes, which broadcast to the rays.
    """

    def __init__(self, read: ReadFunction, texels: jax.Array, args: Sequence[jax.Array], spec: ReadSpec, fold: Fold):
        color, operands = spec.color_and_operands(args)
        self.colors = () if color is None else (color,)
        *self.shape, count = spec.samples_shape(operands)
        own = len(operands) - fold.num_given
        self.read, self.texels, self.fold, self.channels = read, texels, fold, texels.shape[-1]
        self.operands, self.given = operands[:own], [jnp.squeeze(a, -1).astype(spec.sums) for a in operands[own:]]
        self.spec = spec.with_dtype(spec.sums)
        if isinstance(spec.grid, Besides):
            self.spec = self.spec.replace(grid=spec.grid.grid, stacks=spec.stacks[:own])
        # Of a symbolic number of rays, a block has a few samples each.
        most = UNROLLED
        if not is_symbolic(self.shape):
            most = max(SUM_BLOCK, math.prod(texels.shape)) // (math.prod(self.shape) * self.channels)
        self.blocks = SumBlocks(-1, count, min(count, max(1, most)))

    def part(self, start: jax.Array | int, count: int) -> list[jax.Array]:
        """The operands of the read at `count` samples of each ray."""
        return self.blocks.operands(self.operands, self.spec, start, count)

    def samples(self, start: jax.Array | int, count: int) -> tuple[jax.Array, jax.Array]:
        """The values of `count` samples of each ray, (count, *shape, C), and the number of each sample."""
        ranked = (self.spec.stack_of(k) is not None for k in range(len(self.operands)))
        first = [jnp.moveaxis(a, -2 if stacked else -1, 0) for a, stacked in zip(self.part(start, count), ranked)]
        values = self.read(self.texels, *self.colors, *first, spec=self.spec.unsummed())
        numbers = (start + jnp.arange(count, dtype=jnp.int32)).astype(self.spec.sums)
        shape = (count, *self.shape, self.channels)
        return jnp.broadcast_to(values, shape), numbers.reshape(-1, *[1] * len(self.shape))

    def folded(self) -> jax.Array:
        """The results, shape + (C,)."""

        def step(state: jax.Array, sample: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            return self.fold.step(state, *sample, *self.given), None

        def block(start: jax.Array | int, count: int, state: jax.Array) -> jax.Array:
            return jax.lax.scan(step, state, self.samples(start, count), unroll=min(count, UNROLLED))[0]

        # Equal numbers as one scalar: XLA partitions no function that holds an array of constants.
        runs = itertools.groupby(self.fold.start(self.channels))
        start = jnp.concatenate([jnp.full(len([*run]), number, self.spec.sums) for number, run in runs])
        start = self.of_rays(jnp.broadcast_to(start, (*self.shape, *start.shape)))
        return self.fold.result(self.blocks.fold(jax.checkpoint(block, static_argnums=1), start))

    def pulled(self, result: jax.Array, cotangent: jax.Array, wrt: Wrt) -> dict[int, jax.Array]:
        """The cotangents of the texels and operands in `wrt`; of the fold's operands, one number a ray."""
        # The sums so far: of texels and operands of the read, and of operands of the fold.
        own, count = tuple(k for k in wrt if k < len(self.operands)), len(self.operands)
        arrays = {k: self.texels if k == TEXELS else self.operands[k] for k in own}
        zeros = {k: self.varying(jnp.zeros_like(a, self.spec.sums)) for k, a in arrays.items()}
        of_given = [self.of_rays(jnp.zeros(self.shape, self.spec.sums)) for _ in self.given]

        # A sample: its share of the result, and of the operands of the fold.
        def step(state: Any, sample: tuple[jax.Array, jax.Array]) -> tuple[Any, jax.Array]:
            state, of_given = state
            state, of_value, of_sample = self.fold.pull(state, sample[0], cotangent, *self.given)
            return (state, [a + b for a, b in zip(of_given, of_sample)]), of_value

        # A block: the cotangents of its values go through the pullback of the read at once.
        def block(start: jax.Array | int, count: int, carry: Any) -> Any:
            state, totals = carry
            state, of_values = jax.lax.scan(step, state, self.samples(start, count), unroll=min(count, UNROLLED))
            if own:
                args = jnp.moveaxis(of_values, 0, -2), self.texels, *self.part(start, count)
                of_block = bind_read(pullback_p, *args, spec=self.spec, wrt=own, batch=0)
                totals = {k: totals[k] + a.astype(self.spec.sums) for k, a in zip(own, of_block)}
            return state, totals

        start = self.of_rays(self.fold.pull_start(result, cotangent)), of_given
        (_, of_given), totals = self.blocks.fold(jax.checkpoint(block, static_argnums=1), (start, zeros))
        return totals | {count + k: a[..., None] for k, a in enumerate(of_given)}

    def varying(self, a: jax.Array) -> jax.Array:
        return as_varying(a, self.texels, *self.colors, *self.operands, *self.given)

    def of_rays(self, a: jax.Array) -> jax.Array:
        """Numbers of rays, an array whose first axes are theirs, with the type that a loop over samples keeps."""

        def number() -> jax.Array:
            return functools.reduce(jnp.add, self.given, self.samples(0, 1)[0][0, ..., 0])

        if explicit_sharding(a) is not None:
            (like,) = jax.make_jaxpr(number)().out_avals
            spec = (*like.sharding.spec, *[None] * (a.ndim - len(self.shape)))
            a = jax.reshard(a, like.sharding.update(spec=spec))
        return self.varying(a)


def by_reads(read: ReadFunction, texels: jax.Array, *args: jax.Array, spec: ReadSpec, fold: Fold) -> jax.Array:
    """`fold` by reads of blocks of samples."""
    return Blocks(read, texels, args, spec, fold).folded().astype(spec.dtype)[..., None, :]


def meaning(texels: jax.Array, *args: jax.Array, spec: ReadSpec, fold: Fold, batch: int) -> jax.Array:
    read = functools.partial(bind_read, read_p, batch=0)
    return operators.batched(functools.partial(by_reads, read), texels, *args, spec=spec, fold=fold, batch=batch)


def jvp(primals: Sequence[jax.Array], tangents: Sequence[Any], **params: Any) -> tuple[jax.Array, jax.Array]:
    assert not params["spec"].has_color, "a fold over a border color has no derivatives"
    out = bind(fold_p, *primals, **params)
    moving = {k: ad.instantiate_zeros(t) for k, t in enumerate(tangents, TEXELS) if is_nonzero(t)}
    return out, bind(pushforward_p, *moving.values(), *primals, wrt=tuple(moving), **params)


# The tangent, and its transpose


def pushforward(*args: jax.Array, wrt: Wrt, **params: Any) -> jax.Array:
    """The tangent of a fold, from tangents of the texels and operands in `wrt`, which precede these."""
    tangents, primals = args[: len(wrt)], args[len(wrt) :]

    def of_moving(*moving: jax.Array) -> jax.Array:
        given = dict(zip(wrt, moving))
        return meaning(*(given.get(k, a) for k, a in enumerate(primals, TEXELS)), **params)

    return jax.jvp(of_moving, tuple(primals[k - TEXELS] for k in wrt), tangents)[1]


def pullback(
    cotangent: jax.Array, texels: jax.Array, *operands: jax.Array, spec: ReadSpec, fold: Fold, wrt: Wrt
) -> list[jax.Array]:
    """The transpose of `pushforward`."""
    read = functools.partial(bind_read, read_p, batch=0)
    result = bind(fold_p, texels, *operands, spec=spec.with_dtype(spec.sums), fold=fold, batch=0)
    blocks = Blocks(read, texels, operands, spec, fold)
    cotangents = blocks.pulled(jnp.squeeze(result, -2), jnp.squeeze(cotangent, -2).astype(spec.sums), wrt)
    return [cotangents[k] for k in wrt]


def pullback_of_batch(*args: jax.Array, **params: Any) -> list[jax.Array]:
    """`pullback` over leading axes."""
    return list(operators.batched(pullback, *args, **params))


def transpose(
    cotangent: jax.Array, *args: Any, spec: ReadSpec, fold: Fold, wrt: Wrt, batch: int
) -> tuple[jax.Array | None, ...]:
    tangents, primals = args[: len(wrt)], args[len(wrt) :]
    linear = {k: t for k, t in zip(wrt, tangents) if ad.is_undefined_primal(t)}
    params = {"spec": spec, "fold": fold, "wrt": tuple(linear)}
    pulled = dict(zip(linear, bind(fold_pullback_p, cotangent, *primals, batch=batch, **params)))
    of_tangents = (as_cotangent(pulled[k], t.aval) if k in linear else None for k, t in zip(wrt, tangents))
    return *of_tangents, *(None for _ in primals)


fold_p = Primitive("texture_fold")
define(
    fold_p,
    meaning,
    static=("spec", "fold", "batch"),
    jvp=jvp,
    batch=batching_rule(fold_p, READ),
    types=type_of_read,
    lowerings=LOWERINGS["fold"],
)
pushforward_p = define(
    "texture_fold_pushforward",
    pushforward,
    static=("spec", "fold", "wrt", "batch"),
    linear_in=lambda wrt, **_: range(len(wrt)),
    transpose=transpose,
)
fold_pullback_p = define(
    "texture_fold_pullback",
    pullback_of_batch,
    static=("spec", "fold", "wrt", "batch"),
    linear_in=lambda **_: (0,),
    lowerings=LOWERINGS["fold_pullback"],
    multiple_results=True,
)
