"""The primitives of a read and their rules: the only place where derivatives are defined.

A read is linear in the texels, ``read(T, c) = sum_k w_k(c) T[i_k(c)]``, and its adjoint `splat` is linear in the
values. Give the weights a derivative order on every axis (`Axis.order`), and the two close under differentiation,
transposition and batching:

    (a) d read(T, c; m)   = read(dT, c; m) + sum_axis read(T, c; m + e_axis) dc_axis  = pushforward(dT, dc; T, c)
    (b) d splat(v, c; m)  = splat(dv, c; m) + sum_axis splat(v dc_axis, c; m + e_axis)
    (c) transpose of read in T = splat          transpose of splat in v = read

Hence forward and reverse mode, every order, `vmap`, `jit` and `linear_transpose`. Line (a), as a whole, is a primitive
too, with tangents of the operands of which `ReadSpec.grid` makes the coordinates. So is its transpose, `pullback`: then
the gradients with respect to texels and operands are computed together, from one look at taps, texels and cotangent,
and nothing but texels and operands is kept between the passes. Their own derivatives are those of (a) and (b).

A read that rounds its sums to 16 bits, one that is a mean of several, and `bordered_read`, which has a color outside,
are one pass each. So is one that stays between its nearest taps, whose kernel takes their extremes from the texels that
it loads for the sum. Their derivatives are those of what they mean in terms of plain reads. A read of one drawn tap has
its own derivative in the texels, and that of its expectation in the operands.

The weights are piecewise functions whose pieces are half-open, [i, i + 1): at a kink the right-hand slope is taken.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching

from ..._jax.barriers import with_materialized
from ..._jax.primitives import Dims, bind, define, is_nonzero, jvp_of_meaning, jvp_of_nonzero, transpose_of_meaning
from ..._jax.typed_jit import typed_jit
from ..compute import linearization, operators
from ..compute.linearization import ByNumber, summed_to
from ..compute.outside import outside, read_over_color, with_color
from ..describe.spec import TEXELS, Combination, ReadSpec, Wrt
from ..forms.choice import LOWERINGS
from ..walk.combinations import clipped, each_level, highest, lowest, nearest_taps
from . import result_types
from .batching import batching_rule


def read(texels: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec) -> jax.Array:
    """`operators.read` with derivatives of any order."""
    return bind(read_p, texels, *operands, spec=spec, batch=0)


def bordered_read(texels: jax.Array, color: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec) -> jax.Array:
    """`operators.bordered_read` with derivatives of any order."""
    return bind(bordered_read_p, texels, color, *operands, spec=spec, batch=0)


def splat(values: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec) -> jax.Array:
    """`operators.splat` with derivatives of any order."""
    return bind(splat_p, values, *operands, spec=spec, batch=0)


# Tangents


def active(spec: ReadSpec, tangents: Sequence[Any]) -> dict[int, Any]:
    """The tangents of texels and operands that change a read, by number."""
    found = {k: t for k, t in enumerate(tangents, TEXELS) if is_nonzero(t)}
    return {k: t for k, t in found.items() if k == TEXELS or spec.axes_of((k,))}


def rematerialized(term: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """A term in a checkpoint, so that reverse mode keeps texels, values and operands, not the slopes."""
    return jax.checkpoint(functools.partial(term, **params))(*args)


# Rules of differentiation


def read_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, spec: ReadSpec, batch: int):
    """Line (a)."""
    if not spec.is_plain:
        return jvp_of_meaning(read_p, read_meaning)(primals, tangents, spec=spec, batch=batch)
    if spec.expected is not None:
        return drawn_jvp(read_p, expected_read, primals, tangents, spec=spec, batch=batch)
    out, some = bind(read_p, *primals, spec=spec, batch=batch), active(spec, tangents)
    if not some:
        return out, jnp.zeros_like(out)
    if tuple(some) == (TEXELS,):
        return out, bind(read_p, some[TEXELS], *primals[1:], spec=spec, batch=batch)
    return out, bind(pushforward_p, *some.values(), *primals, spec=spec, wrt=tuple(some), batch=batch)


def splat_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, spec: ReadSpec, batch: int):
    """Line (b)."""
    if spec.expected is not None:
        return drawn_jvp(splat_p, expected_splat, primals, tangents, spec=spec, batch=batch)
    (values, *operands), some = primals, active(spec, tangents)
    out, terms = bind(splat_p, *primals, spec=spec, batch=batch), []
    if TEXELS in some:
        terms.append(bind(splat_p, some.pop(TEXELS), *operands, spec=spec, batch=batch))
    for k, tangent in coordinate_tangents(some, operands, spec).items():
        params = {"spec": spec.differentiated(k), "batch": batch}
        terms.append(rematerialized(tangent_times_splat, values, tangent, *operands, **params))
    return out, functools.reduce(jnp.add, terms) if terms else jnp.zeros_like(out)


def drawn_jvp(
    p: Primitive, expected: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], **params: Any
):
    """Of a read of drawn taps, or its adjoint: its own derivative in what it is linear in, and that of what is expected
    of it in the operands. The first operand is the number that draws, which has none.
    """
    (first, number, *operands), out = primals, bind(p, *primals, **params)
    terms = [jnp.zeros_like(out)]
    if is_nonzero(tangents[0]):
        terms.append(bind(p, tangents[0], number, *operands, **params))
    if any(map(is_nonzero, tangents[2:])):
        of_operands = functools.partial(expected, first, jax.typeof(out), **params)
        terms.append(jnp.broadcast_to(jvp_of_nonzero(of_operands, operands, tangents[2:]), out.shape))
    return out, functools.reduce(jnp.add, terms[1:] or terms)


def expected_read(texels: Any, out: Any, *operands: Any, spec: ReadSpec, batch: int) -> Any:
    """The expectation of a read of drawn taps."""
    assert spec.expected is not None
    del out
    return bind(read_p, texels, *operands, spec=spec.expected.with_dtype(spec.dtype), batch=batch)


def expected_splat(values: Any, out: Any, *operands: Any, spec: ReadSpec, batch: int) -> Any:
    """The expectation of a splat to drawn taps: the transpose of a read that may be a mean of several."""
    assert spec.expected is not None
    params = {"spec": spec.expected.adjoint(values.dtype), "batch": batch}
    read = lambda texels: bind(read_p, texels, *operands, **params)
    texels = jax.ShapeDtypeStruct(out.shape, out.dtype)
    return jax.linear_transpose(read, texels)(jnp.broadcast_to(values, jax.eval_shape(read, texels).shape))[0]


def by_plain_reads(plain_read: Callable[..., Any], operands: Sequence[Any], spec: ReadSpec) -> Any:
    """A read in terms of ``plain_read(*operands, spec=...)``, which is one weighted sum and not rounded."""
    if spec.combination is Combination.LIMITED:
        plain_read = functools.partial(rematerialized, functools.partial(limited_meaning, plain_read))
    once = functools.partial(plain_read, spec=spec.plain())
    if spec.several is None:
        return once(*operands).astype(spec.dtype)
    return operators.mean(lambda coords: once(*coords), operands, spec, jax.checkpoint)


def limited_meaning(plain_read: Callable[..., Any], *operands: Any, spec: ReadSpec) -> Any:
    """What a limited read means: in each level that it blends, the sum of all taps, clipped to the nearest ones.

    A tap is a read by a filter of one tap. So the tap that limits a channel gets that channel's derivatives, and its
    coordinates none. These are 1 + 2^n reads, and as many splats in reverse mode. One kernel would have to choose a
    weight for each channel at each tap, but the kernels of the adjoint rely on weights that all channels share.
    """
    levels = []
    for axes in each_level(spec.axes):
        blended = spec.blended().of_each().with_axes(axes)
        texels = [plain_read(*operands, spec=blended.with_axes(tap)) for tap in nearest_taps(axes)]
        levels.append(clipped(plain_read(*operands, spec=blended), lowest(texels), highest(texels)))
    return operators.summed(functools.reduce(jnp.add, levels), spec)


def read_meaning(texels: Any, *operands: Any, spec: ReadSpec, batch: int) -> Any:
    """A read in terms of plain ones."""
    return by_plain_reads(functools.partial(bind, read_p, texels, batch=batch), operands, spec)


def bordered_meaning(texels: Any, color: Any, *operands: Any, spec: ReadSpec, batch: int) -> Any:
    """What `bordered_read` means: the read with zero outside, and the color times the weight that lies outside."""

    def plain_read(*operands: Any, spec: ReadSpec) -> Any:
        out = bind(read_p, texels, *operands, spec=spec, batch=batch)
        weight, all_inside = rematerialized(outside, *operands, spec=spec)
        broadcast = color.reshape(*color.shape[:batch], *[1] * (out.ndim - color.ndim), color.shape[-1])
        return with_color(out, broadcast, weight, all_inside)

    return by_plain_reads(plain_read, operands, spec)


def pushforward_meaning(*args: Any, spec: ReadSpec, wrt: Wrt, batch: int) -> Any:
    """What `pushforward` means, in terms of reads: line (a)."""
    tangents, (texels, *operands) = dict(zip(wrt, args)), args[len(wrt) :]
    terms = []
    if TEXELS in tangents:
        terms.append(bind(read_p, tangents.pop(TEXELS), *operands, spec=spec, batch=batch))
    for k, tangent in coordinate_tangents(tangents, operands, spec).items():
        params = {"spec": spec.differentiated(k), "batch": batch}
        terms.append(rematerialized(tangent_times_read, texels, tangent, *operands, **params))
    return functools.reduce(jnp.add, terms)


def pullback_meaning(cotangent: Any, texels: Any, *operands: Any, spec: ReadSpec, wrt: Wrt, batch: int) -> list[Any]:
    """What `pullback` means, in terms of reads and a splat: the transpose of line (a)."""
    of_coords = {}
    for k in spec.axes_of(wrt):
        params = {"spec": spec.differentiated(k), "batch": batch}
        of_coords[k] = rematerialized(cotangent_times_read, texels, cotangent, *operands, **params)
    terms = operand_cotangents(of_coords, operands, spec, wrt, batch)
    if TEXELS in wrt:
        terms[TEXELS] = bind(splat_p, cotangent, *operands, spec=spec.adjoint(texels.dtype), batch=batch)
    return [terms[k] for k in wrt]


def coordinate_tangents(tangents: ByNumber, operands: Sequence[Any], spec: ReadSpec) -> ByNumber:
    """`linearization.coordinate_tangents`, of which reverse mode keeps the operands."""
    if spec.takes_coords or not tangents:
        return linearization.coordinate_tangents(tangents, operands, spec)
    return rematerialized(linearization.coordinate_tangents, tangents, operands, spec=spec)


def operand_cotangents(
    of_coords: ByNumber, operands: Sequence[Any], spec: ReadSpec, wrt: Wrt, batch: int
) -> dict[int, Any]:
    """`linearization.operand_cotangents` over `batch` leading axes, of which reverse mode keeps the operands."""

    def once(*args: Any) -> dict[int, Any]:
        return linearization.operand_cotangents(dict(zip(of_coords, args)), args[len(of_coords) :], spec, wrt)

    return rematerialized(operators.over_batch(once, batch), *of_coords.values(), *operands)


def tangent_times_read(texels, tangent, *operands, spec: ReadSpec, **params):
    slope = bind(read_p, texels, *operands, spec=spec.of_each(), **params)
    return operators.summed(slope * tangent[..., None].astype(slope.dtype), spec)


def tangent_times_splat(values, tangent, *operands, spec: ReadSpec, **params):
    return bind(splat_p, values * tangent[..., None].astype(values.dtype), *operands, spec=spec.of_each(), **params)


def cotangent_times_read(texels, cotangent, *operands, spec: ReadSpec, **params):
    return jnp.sum(bind(read_p, texels, *operands, spec=spec.of_each(), **params) * cotangent, -1)


# Rules of transposition: line (c), and pushforward with pullback


def read_transpose(cotangent, texels, *operands, spec: ReadSpec, batch: int):
    if not spec.is_plain:
        return transpose_of_meaning(read_meaning, linear_in_texels)(
            cotangent, texels, *operands, spec=spec, batch=batch
        )
    adjoint = bind(splat_p, cotangent, *operands, spec=spec.adjoint(texels.aval.dtype), batch=batch)
    return as_cotangent(adjoint, texels.aval), *(None for _ in operands)


def splat_transpose(cotangent, values, *operands, spec: ReadSpec, batch: int):
    adjoint = bind(read_p, cotangent, *operands, spec=spec.adjoint(values.aval.dtype), batch=batch)
    return as_cotangent(adjoint, values.aval), *(None for _ in operands)


def pushforward_transpose(cotangent, *args, spec: ReadSpec, wrt: Wrt, batch: int):
    tangents, (texels, *operands) = args[: len(wrt)], args[len(wrt) :]
    linear = {k: tangent.aval for k, tangent in zip(wrt, tangents) if ad.is_undefined_primal(tangent)}
    if tuple(linear) == (TEXELS,):
        adjoint = spec.adjoint(linear[TEXELS].dtype)
        found = [bind(splat_p, cotangent, *operands, spec=adjoint, batch=batch)]
    else:
        found = bind(pullback_p, cotangent, texels, *operands, spec=spec, wrt=tuple(linear), batch=batch)
    sums = {k: as_cotangent(x, aval) for (k, aval), x in zip(linear.items(), found)}
    return *(sums.get(k) for k in wrt), *(None for _ in (texels, *operands))


def pullback_transpose(cotangents, cotangent, texels, *operands, spec: ReadSpec, wrt: Wrt, batch: int):
    tangents = {k: tangent for k, tangent in zip(wrt, cotangents) if not isinstance(tangent, ad.Zero)}
    spec = spec.with_dtype(cotangent.aval.dtype)
    nothing = [None for _ in (texels, *operands)]
    if not tangents:
        return None, *nothing
    if tuple(tangents) == (TEXELS,):
        adjoint = bind(read_p, tangents[TEXELS], *operands, spec=spec, batch=batch)
    else:
        some, wrt = tuple(tangents.values()), tuple(tangents)
        adjoint = bind(pushforward_p, *some, texels, *operands, spec=spec, wrt=wrt, batch=batch)
    return as_cotangent(adjoint, cotangent.aval), *nothing


def as_cotangent(x: jax.Array, aval: Any) -> jax.Array:
    """The cotangent of an array of that shape and dtype, which was broadcast to the shape of `x`."""
    return summed_to(x, aval.shape).astype(aval.dtype)


# Rules of batching


def pushforward_joins(wrt: Wrt, dims: Dims) -> bool:
    """Whether operands have the new axis where their tangents do."""
    operands = dims[len(wrt) + 1 :]
    return all((operands[k] is None) == (tangent is None) for k, tangent in zip(wrt, dims) if k != TEXELS)


def pullback_joins(wrt: Wrt, dims: Dims) -> bool:
    """Whether no result is of texels, and all results are of operands that have the new axis."""
    return TEXELS not in wrt and all(dims[2 + k] is not None for k in wrt)


# Definitions


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


def linear_in_texels(*, spec: ReadSpec, **_: Any) -> tuple[int]:
    """The position of the texels of a read, if it is linear in them."""
    if spec.combination is not Combination.BLEND:
        raise ValueError(
            "jax.linear_transpose: a read by a Sampler with limit='taps' is not linear in the texels; use jax.vjp, "
            "or leave limit out."
        )
    return (0,)


def linear_in_texels_and_color(*, spec: ReadSpec, **_: Any) -> tuple[int, ...]:
    """The positions of the texels of a read, and of the color outside."""
    return *linear_in_texels(spec=spec), 1


def linear_in_tangents(*, wrt: Wrt, **_: Any) -> tuple[int, ...]:
    """The positions of the tangents of a pushforward."""
    return tuple(range(len(wrt)))


def linear_in_first(**_: Any) -> tuple[int]:
    """The position of values and cotangents."""
    return (0,)


define_read = functools.partial(define, static=("spec", "wrt", "batch"))
read_p = define_read(
    "texture_read",
    read_meaning,
    linear_in=linear_in_texels,
    form=over_batch(operators.read, lambda _: (0,)),
    types=result_types.of_read,
    lowerings=LOWERINGS["read"],
)
bordered_read_p = define_read(
    "texture_bordered_read",
    bordered_meaning,
    linear_in=linear_in_texels_and_color,
    form=over_batch(read_over_color, lambda _: (0,)),
    types=result_types.of_bordered_read,
    lowerings=LOWERINGS["bordered_read"],
)
splat_p = define_read(
    "texture_splat",
    operators.splat,
    form=over_batch(operators.splat, lambda _: (0,)),
    types=result_types.of_splat,
    lowerings=LOWERINGS["splat"],
)
pushforward_p = define_read(
    "texture_pushforward",
    pushforward_meaning,
    linear_in=linear_in_tangents,
    form=over_batch(linearization.pushforward, pushforward_textures),
    types=result_types.of_pushforward,
)
pullback_p = define_read(
    "texture_pullback",
    pullback_meaning,
    linear_in=linear_in_first,
    form=over_batch(linearization.pullback, lambda _: (0, 1)),
    types=result_types.of_pullback,
    lowerings=LOWERINGS["pullback"],
    multiple_results=True,
)
ad.primitive_jvps[read_p] = read_jvp
ad.primitive_jvps[splat_p] = splat_jvp
ad.primitive_transposes[read_p] = read_transpose
ad.primitive_transposes[splat_p] = splat_transpose
ad.primitive_transposes[pushforward_p] = pushforward_transpose
ad.primitive_transposes[pullback_p] = pullback_transpose
batching.primitive_batchers[read_p] = batching_rule(read_p, lambda _: (0,), lambda *_: True)
batching.primitive_batchers[bordered_read_p] = batching_rule(bordered_read_p, lambda _: (0, 1), lambda *_: True)
batching.primitive_batchers[splat_p] = batching_rule(splat_p, lambda _: (), lambda *_: False)
batching.primitive_batchers[pushforward_p] = batching_rule(pushforward_p, pushforward_textures, pushforward_joins)
batching.primitive_batchers[pullback_p] = batching_rule(pullback_p, lambda _: (1,), pullback_joins)
