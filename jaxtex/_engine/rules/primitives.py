"""The primitives of a read and their rules. No other module defines derivatives of reads.

A read is linear in the texels, ``read(T, c) = sum_k w_k(c) T[i_k(c)]``, and its adjoint `splat` is linear in the
values. Give the weights a derivative order on every axis (`Axis.order`), and the two close under differentiation,
transposition and batching:

    (a) d read(T, c; m)   = read(dT, c; m) + sum_axis read(T, c; m + e_axis) dc_axis  = pushforward(dT, dc; T, c)
    (b) d splat(v, c; m)  = splat(dv, c; m) + sum_axis splat(v dc_axis, c; m + e_axis)
    (c) transpose of read in T = splat          transpose of splat in v = read

This gives forward and reverse mode of every order, `vmap`, `jit` and `linear_transpose`. Line (a) as a whole is a
primitive too, `pushforward`, with tangents of the operands of `ReadSpec.grid`. So is its transpose, `pullback`: one
pass over taps, texels and cotangent computes the gradients with respect to texels and operands, and reverse mode keeps
nothing but texels and operands. The derivatives of these two follow from (a) and (b).

A read that rounds its sums to 16 bits, a mean of several reads, a read with a border color, and a limited read are one
pass each, and so are several derivatives of a read. Their derivatives are the derivatives of their meaning in plain
reads. A read of one drawn tap has its own derivative in texels, and the derivative of its expectation in operands.

The storage of arrays is a parameter of every primitive, see `describe.storage`. Line (a), and the transposes of read
and of pushforward, pass it on. For arrays that are not whole, the other rules are those of the primitive on whole
arrays.

The weights are piecewise functions with half-open pieces [i, i + 1): at a kink, the derivative is the right-hand one.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import Primitive

from ..._jax.barriers import with_materialized
from ..._jax.calls import typed_jit
from ..._jax.primitives import bind, define, jvp_of_meaning, transpose_of_meaning
from ..compute import linearization, operators
from ..describe.spec import TEXELS, Read, ReadSpec, Wrt
from ..describe.storage import (
    PULLBACK,
    PUSHFORWARD,
    READ,
    SPLAT,
    WHOLE,
    HaloStorage,
    Storage,
    WithHalo,
    arrays_of,
    where_whole,
)
from ..describe.storage import bind as bind_read
from ..forms.choice import LOWERINGS
from ..walk.texel_order import texels_shape
from .meanings import (
    pullback_meaning,
    pullback_p,
    pushforward_meaning,
    pushforward_of_whole,
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


def read(texels: jax.Array | WithHalo, color: jax.Array | None, read: Read) -> jax.Array:
    """`operators.read`, with a border color or zero outside, and derivatives of any order.

    A sample that needs texels that are not stored is NaN, or zero if it is an integer.
    """
    spec, args = read.over(color)
    storage = HaloStorage(texels.before.shape[0], marks_missing=True) if isinstance(texels, WithHalo) else WHOLE
    return bind(read_p, *arrays_of(texels), *args, spec=spec, batch=0, storage=storage)


def splat(values: jax.Array, read: Read) -> jax.Array:
    """`operators.splat`, with derivatives of any order."""
    return splat_whole(values, *read.operands, spec=read.spec, batch=0)


def read_derivatives(texels: jax.Array, color: jax.Array | None, read: Read) -> list[jax.Array]:
    """The derivatives `ReadSpec.derivatives` of a read, S + (C,) each, in one walk; with derivatives of any order.

    They are derivatives along the axes of the read, whatever its grid is.
    """
    spec, args = read.over(color)
    return bind(read_derivatives_p, texels, *args, spec=spec, batch=0)


def derivatives_meaning(texels: jax.Array, *args: jax.Array, spec: ReadSpec, batch: int) -> list[jax.Array]:
    """A read for each derivative."""
    return [bind_read(read_p, texels, *args, spec=one, batch=batch) for one in spec.each_derivative()]


def array_form(implementation: Callable[..., Any], materialized: Callable[[Wrt], Sequence[int]]) -> Callable[..., Any]:
    """The form of array operations: `implementation` over `batch` leading axes.

    It is a function of `jax.jit`, whose cache lets equal reads of a program share a jaxpr.

    Args:
        materialized: ``materialized(wrt)`` returns the positions of the arguments to materialize.
    """

    @typed_jit("spec", "wrt", "batch")
    def form(*args: jax.Array, wrt: Wrt = (), **params: Any) -> Any:
        static = params | {"wrt": wrt} if wrt else params
        run = functools.partial(operators.batched, implementation, **static)
        return with_materialized(run, materialized(wrt))(*args) if params["spec"].materialized else run(*args)

    return form


def pushforward_form(*args: jax.Array, spec: ReadSpec, wrt: Wrt, batch: int) -> jax.Array:
    """Line (a) as array operations, or as sums that have forms of their own."""
    form = pushforward_of_whole if spec.sums_along_grid else of_all_samples
    return form(*args, spec=spec, wrt=wrt, batch=batch)


def pushforward_textures(wrt: Wrt) -> tuple[int, ...]:
    """The positions of the texels and of their tangent among the arguments of a pushforward."""
    return len(wrt), *(k for k, w in enumerate(wrt) if w == TEXELS)


of_all_samples = array_form(linearization.pushforward, pushforward_textures)


# The shapes and dtypes of results, from those of arguments, without tracing the walk. S is the shape of the samples.
# Batch axes come first; along them an argument has the batch size or 1.


def type_of_read(texels: jax.Array, *args: jax.Array, spec: ReadSpec, batch: int, **_: Any) -> jax.ShapeDtypeStruct:
    """The type of values, batch + S + (C,)."""
    operands = spec.color_and_operands(args)[1]
    samples = list(spec.samples_shape(operands, batch))
    for axis in spec.summed_axes:
        samples[axis] = 1
    return jax.ShapeDtypeStruct((*batch_axes((texels, *args), batch), *samples, texels.shape[-1]), spec.dtype)


def types_of_derivatives(*args: jax.Array, spec: ReadSpec, batch: int) -> list[jax.ShapeDtypeStruct]:
    return [type_of_read(*args, spec=spec, batch=batch)] * len(spec.derivatives)


def type_of_splat(*args: jax.Array, spec: ReadSpec, batch: int) -> jax.ShapeDtypeStruct:
    """The type of texels, batch + sizes + (C,)."""
    shape = texels_shape(spec.axes, args[0].shape[-1])
    return jax.ShapeDtypeStruct((*batch_axes(args, batch), *shape), spec.dtype)


def type_of_pushforward(*args: jax.Array, spec: ReadSpec, wrt: Wrt, batch: int) -> jax.ShapeDtypeStruct:
    """The type of the tangent of values; the tangents in `wrt` precede texels and operands."""
    result = type_of_read(*args[len(wrt) :], spec=spec, batch=batch)
    return jax.ShapeDtypeStruct((*batch_axes(args, batch), *result.shape[batch:]), spec.dtype)


def type_of_pullback(*args: jax.Array, spec: ReadSpec, wrt: Wrt, batch: int) -> list[jax.ShapeDtypeStruct]:
    """The types of the cotangents in `wrt`; the cotangent of values precedes texels and operands."""
    axes, primals = batch_axes(args, batch), dict(enumerate(args[1:], TEXELS))
    del spec
    return [jax.ShapeDtypeStruct((*axes, *primals[k].shape[batch:]), primals[k].dtype) for k in wrt]


def batch_axes(args: Sequence[jax.Array], batch: int) -> tuple[int, ...]:
    return tuple(max(a.shape[k] for a in args) for k in range(batch))


def define_read(
    p: Primitive, meaning: Callable[..., Any], form: Callable[..., Any], types: Callable[..., Any], **how: Any
) -> None:
    """Defines a primitive of a read from its form and its types for whole arrays.

    For other arrays, its form is its meaning, and a trace finds its types. The first argument is linear.
    """

    def form_of(*args: Any, storage: Storage = WHOLE, **params: Any) -> Any:
        return form(*args, **params) if storage == WHOLE else meaning(*args, storage=storage, **params)

    def types_of(*args: Any, storage: Storage, **params: Any) -> Any:
        return types(*args, **params) if storage == WHOLE else None

    static = ("spec", "wrt", "batch", "storage")
    define(p, meaning, static=static, linear_in=lambda **_: (0,), form=form_of, types=types_of, **how)


define_read(
    read_p,
    read_meaning,
    array_form(operators.read, lambda _: (0,)),
    type_of_read,
    jvp=read_jvp,
    transpose=read_transpose,
    batch=batching_rule(read_p, READ, meaning=read_meaning),
    lowerings=LOWERINGS["read"],
)
define_read(
    splat_p,
    splat_meaning,
    array_form(operators.splat, lambda _: (0,)),
    type_of_splat,
    jvp=where_whole(splat_jvp, jvp_of_meaning(splat_p, splat_meaning)),
    transpose=where_whole(splat_transpose, transpose_of_meaning(splat_meaning, lambda **_: (0,))),
    batch=batching_rule(splat_p, SPLAT, lambda *_: False, splat_meaning),
    lowerings=LOWERINGS["splat"],
    multiple_results=True,
)
define_read(
    pushforward_p,
    pushforward_meaning,
    pushforward_form,
    type_of_pushforward,
    transpose=pushforward_transpose,
    batch=batching_rule(pushforward_p, PUSHFORWARD, pushforward_joins, pushforward_meaning),
)
define_read(
    pullback_p,
    pullback_meaning,
    array_form(linearization.pullback, lambda _: (0, 1)),
    type_of_pullback,
    transpose=where_whole(pullback_transpose, transpose_of_meaning(pullback_meaning, lambda **_: (0,))),
    batch=batching_rule(pullback_p, PULLBACK, pullback_joins, pullback_meaning),
    lowerings=LOWERINGS["pullback"],
    multiple_results=True,
)
read_derivatives_p = Primitive("texture_read_derivatives")
define(
    read_derivatives_p,
    derivatives_meaning,
    static=("spec", "batch"),
    linear_in=lambda *, spec, **_: READ.textures(spec, ()),
    batch=batching_rule(read_derivatives_p, READ),
    form=array_form(operators.derivatives, lambda _: (0,)),
    types=types_of_derivatives,
    lowerings=LOWERINGS["read_derivatives"],
    multiple_results=True,
)
