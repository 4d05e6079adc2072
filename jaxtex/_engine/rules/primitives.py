"""The primitives of a read and their rules: the only place where derivatives are defined.

A read is linear in the texels, ``read(T, c) = sum_k w_k(c) T[i_k(c)]``, and its adjoint `splat` is linear in the
values. Give the weights a derivative order on every axis (`Axis.order`), and the two close under differentiation,
transposition and batching:

    (a) d read(T, c; m)   = read(dT, c; m) + sum_axis read(T, c; m + e_axis) dc_axis  = pushforward(dT, dc; T, c)
    (b) d splat(v, c; m)  = splat(dv, c; m) + sum_axis splat(v dc_axis, c; m + e_axis)
    (c) transpose of read in T = splat          transpose of splat in v = read

Hence forward and reverse mode, every order, `vmap`, `jit` and `linear_transpose`. Line (a), as a whole, is a primitive
too, with tangents of the operands from which `ReadSpec.grid` makes the coordinates. So is its transpose, `pullback`:
the gradients with respect to texels and operands are computed together, from one look at taps, texels and cotangent,
and nothing but texels and operands is kept between the passes. Their own derivatives are those of (a) and (b).

A read that rounds its sums to 16 bits, one that is a mean of several, and one with a color outside are one pass each.
So is one that stays between its nearest taps, whose kernel takes their extremes from the texels that it loads for the
sum. Their derivatives are those of what they mean in terms of plain reads. A read of one drawn tap has its own
derivative in the texels, and that of its expectation in the operands.

Where arrays lie is a parameter of each primitive, see `describe.storage`. Line (a), and the transposes of read and of
pushforward, pass it on. Where arrays are not whole, the other rules are those of the same primitive of whole arrays.

The weights are piecewise functions whose pieces are half-open, [i, i + 1): at a kink the right-hand slope is taken.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching

from ..._jax.barriers import with_materialized
from ..._jax.calls import typed_jit
from ..._jax.primitives import bind, define, jvp_of_meaning, transpose_of_meaning
from ..compute import linearization, operators
from ..describe.operands import Grid, SeveralReads, Stacks, numbers
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import (
    PULLBACK,
    PUSHFORWARD,
    READ,
    SPLAT,
    WHOLE,
    Halo,
    Storage,
    WithHalo,
    arrays_of,
    where_whole,
)
from ..forms.choice import LOWERINGS
from ..walk.texel_order import texels_shape
from .meanings import (
    pullback_meaning,
    pullback_p,
    pushforward_meaning,
    pushforward_p,
    read_meaning,
    read_p,
    splat_meaning,
    splat_p,
    splat_whole,
)
from .transformations import (
    batching_rule,
    pullback_joins,
    pullback_transpose,
    pushforward_joins,
    pushforward_transpose,
    read_jvp,
    read_transpose,
    splat_jvp,
    splat_transpose,
)


def read(
    texels: jax.Array | WithHalo, color: jax.Array | None, operands: Sequence[jax.Array], spec: ReadSpec
) -> jax.Array:
    """`operators.read` over a color, or zero, with derivatives of any order.

    A sample that needs texels which are not stored is NaN, or zero if it is an integer.
    """
    args = operands if color is None else (color, *operands)
    storage = Halo(texels.before.shape[0], marks_missing=True) if isinstance(texels, WithHalo) else WHOLE
    return bind(read_p, *arrays_of(texels), *args, spec=spec.over(color), batch=0, storage=storage)


def splat(values: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec) -> jax.Array:
    """`operators.splat` with derivatives of any order."""
    return splat_whole(values, *operands, spec=spec, batch=0)


def over_batch(implementation: Callable[..., Any], materialized: Callable[[Wrt], Sequence[int]]) -> Callable[..., Any]:
    """The form of arrays: `implementation` over `batch` leading axes.

    It is compiled by `jax.jit`, whose cache lets equal reads of a program share a jaxpr.

    Args:
        materialized: the numbers of the arguments that are materialized before the taps of samples look at them.
    """

    @typed_jit("spec", "wrt", "batch")
    def form(*args: jax.Array, wrt: Wrt = (), **params: Any) -> Any:
        static = params | {"wrt": wrt} if wrt else params
        run = functools.partial(operators.batched, implementation, **static)
        return with_materialized(run, materialized(wrt))(*args) if params["spec"].materialized else run(*args)

    return form


def pushforward_textures(wrt: Wrt) -> tuple[int, ...]:
    """The texels, and the tangent of the texels."""
    return len(wrt), *(k for k, w in enumerate(wrt) if w == TEXELS)


# The shapes and dtypes of results, from those of arguments, without a trace of the walk. S is the shape of the samples,
# that of the coordinates. Batch axes come first: an argument has their size or 1.


def type_of_read(texels: jax.Array, *args: jax.Array, spec: ReadSpec, batch: int) -> jax.ShapeDtypeStruct:
    """S + (C,)."""
    _, operands = spec.color_and_operands(args)
    samples = list(samples_shape(operands, spec, batch))
    for axis in spec.summed_axes:
        samples[axis] = 1
    return jax.ShapeDtypeStruct((*batch_axes((texels, *args), batch), *samples, texels.shape[-1]), spec.dtype)


def type_of_splat(*args: jax.Array, spec: ReadSpec, batch: int) -> jax.ShapeDtypeStruct:
    """The texels."""
    shape = texels_shape(spec.axes, args[0].shape[-1])
    return jax.ShapeDtypeStruct((*batch_axes(args, batch), *shape), spec.dtype)


def type_of_pushforward(*args: jax.Array, spec: ReadSpec, wrt: Wrt, batch: int) -> jax.ShapeDtypeStruct:
    """The tangent of the read: of texels and operands after one tangent for each of `wrt`."""
    result = type_of_read(*args[len(wrt) :], spec=spec, batch=batch)
    return jax.ShapeDtypeStruct((*batch_axes(args, batch), *result.shape[batch:]), spec.dtype)


def type_of_pullback(*args: jax.Array, spec: ReadSpec, wrt: Wrt, batch: int) -> list[jax.ShapeDtypeStruct]:
    """Cotangents of texels and operands, which follow the cotangent of the read."""
    axes, primals = batch_axes(args, batch), dict(enumerate(args[1:], TEXELS))
    del spec
    return [jax.ShapeDtypeStruct((*axes, *primals[k].shape[batch:]), primals[k].dtype) for k in wrt]


def batch_axes(args: Sequence[jax.Array], batch: int) -> tuple[int, ...]:
    return tuple(max(a.shape[k] for a in args) for k in range(batch))


def samples_shape(operands: Sequence[jax.Array], spec: ReadSpec, batch: int) -> tuple[int, ...]:
    """S, from the operands of one texture of a batch."""
    shapes = tuple(tuple(a.shape[batch:]) for a in operands)
    if spec.takes_coords:
        return np.broadcast_shapes(*shapes)
    given, dtypes = spec.given, tuple(a.dtype for a in operands)
    of_grid = shape_of_grid(spec.grid, spec.stacks[given:], shapes[given:], dtypes[given:])
    return np.broadcast_shapes(*shapes[:given], of_grid)


@functools.lru_cache(maxsize=1024)
def shape_of_grid(
    grid: Grid | SeveralReads, stacks: Stacks, shapes: tuple[tuple[int, ...], ...], dtypes: tuple[np.dtype, ...]
) -> tuple[int, ...]:
    """The shape to which the coordinates broadcast that a grid makes of operands."""

    def coords(*operands: jax.Array) -> Any:
        given = numbers(operands, stacks)
        return grid.read(jnp.int32(1), *given) if isinstance(grid, SeveralReads) else grid(*given)

    found = jax.eval_shape(coords, *map(jax.ShapeDtypeStruct, shapes, dtypes))
    return np.broadcast_shapes(*(a.shape for a in jax.tree.leaves(found)))


def define_read(
    p: Primitive, meaning: Callable[..., Any], form: Callable[..., Any], types: Callable[..., Any], **how: Any
) -> None:
    """Defines a primitive of a read from its form and its types where arrays are whole; elsewhere it has its meaning,
    and the types of a trace.
    """

    def form_of(*args: Any, storage: Storage = WHOLE, **params: Any) -> Any:
        return form(*args, **params) if storage == WHOLE else meaning(*args, storage=storage, **params)

    def types_of(*args: Any, storage: Storage, **params: Any) -> Any:
        return types(*args, **params) if storage == WHOLE else None

    define(p, meaning, static=("spec", "wrt", "batch", "storage"), form=form_of, types=types_of, **how)


define_read(
    read_p,
    read_meaning,
    over_batch(operators.read, lambda _: (0,)),
    type_of_read,
    lowerings=LOWERINGS["read"],
)
define_read(
    splat_p,
    splat_meaning,
    over_batch(operators.splat, lambda _: (0,)),
    type_of_splat,
    lowerings=LOWERINGS["splat"],
    multiple_results=True,
)
define_read(
    pushforward_p,
    pushforward_meaning,
    over_batch(linearization.pushforward, pushforward_textures),
    type_of_pushforward,
)
define_read(
    pullback_p,
    pullback_meaning,
    over_batch(linearization.pullback, lambda _: (0, 1)),
    type_of_pullback,
    lowerings=LOWERINGS["pullback"],
    multiple_results=True,
)

ad.primitive_jvps[read_p] = read_jvp
ad.primitive_jvps[splat_p] = where_whole(splat_jvp, jvp_of_meaning(splat_p, splat_meaning))
ad.primitive_jvps[pushforward_p] = jvp_of_meaning(pushforward_p, pushforward_meaning)
ad.primitive_jvps[pullback_p] = jvp_of_meaning(pullback_p, pullback_meaning)

of_first = lambda meaning: transpose_of_meaning(meaning, lambda **_: (0,))
ad.primitive_transposes[read_p] = read_transpose
ad.primitive_transposes[splat_p] = where_whole(splat_transpose, of_first(splat_meaning))
ad.primitive_transposes[pushforward_p] = pushforward_transpose
ad.primitive_transposes[pullback_p] = where_whole(pullback_transpose, of_first(pullback_meaning))

batchers = batching.primitive_batchers
batchers[read_p] = batching_rule(read_p, READ, meaning=read_meaning)
batchers[splat_p] = batching_rule(splat_p, SPLAT, lambda *_: False, splat_meaning)
batchers[pushforward_p] = batching_rule(pushforward_p, PUSHFORWARD, pushforward_joins, pushforward_meaning)
batchers[pullback_p] = batching_rule(pullback_p, PULLBACK, pullback_joins, pullback_meaning)
