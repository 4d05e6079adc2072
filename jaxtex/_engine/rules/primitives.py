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

A read that rounds its sums to 16 bits has the tangent of line (a), rounded; splats and pullbacks take cotangents of 16
bits, and sum them in float32.

A mean of several reads, a read with a border color, and a limited read are one pass each, and so are several
derivatives of a read. Their derivatives are the derivatives of their meaning in plain reads. A read of one drawn tap
has its own derivative in texels, and the derivative of its expectation in operands.

The storage of arrays is a parameter of every primitive, see `describe.storage`. Line (a), and the transposes of read
and of pushforward, pass it on. For arrays that are not whole, the other rules are those of the primitive on whole
arrays.

The weights are piecewise functions with half-open pieces [i, i + 1): at a kink, the derivative is the right-hand one.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad

from ..._jax import primitives
from ..._jax.barriers import with_materialized
from ..._jax.calls import typed_jit
from ..._jax.indexing import as_varying, over_batch, placed_like
from ..._jax.primitives import (
    Dims,
    at_front,
    batching_of_meaning,
    bind,
    define,
    is_nonzero,
    jvp_of_meaning,
    jvp_of_nonzero,
    transpose_of_meaning,
)
from ..._jax.shapes import broadcast_shapes
from ..compute import linearization, operators
from ..compute.linearization import ByNumber, coordinate_tangents, rematerialized, summed_to
from ..describe.operands import widened
from ..describe.spec import TEXELS, Combination, Read, ReadSpec, Wrt
from ..describe.storage import (
    PULLBACK,
    PUSHFORWARD,
    READ,
    SPLAT,
    WHOLE,
    Content,
    HaloStorage,
    Signature,
    Storage,
    WithHalo,
    arrays_of,
    read_p,
    views,
    where_whole,
    whole_array,
)
from ..describe.storage import bind as bind_read
from ..forms.choice import LOWERINGS
from ..walk.combinations import clipped, each_level, highest, lowest, nearest_taps
from ..walk.texel_order import texels_shape
from ..walk.texel_walk import AxisTaps, taps, taps_are_available

# The meaning of each primitive in terms of the others
#
# Reads that are more than one weighted sum, higher derivatives, and arrays that are slices or have a halo get their
# rules from this meaning, which does not depend on the storage of the arrays.


splat_p = Primitive("texture_splat")
pushforward_p = Primitive("texture_pushforward")
pullback_p = Primitive("texture_pullback")


def splat_whole(values: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int) -> jax.Array:
    """The texels of a splat, as one whole array."""
    (texels,) = bind_read(splat_p, values, *operands, spec=spec, batch=batch)
    return texels


# For any storage


def are_available(spec: ReadSpec, operands: Sequence[jax.Array], axis_taps: AxisTaps = taps) -> jax.Array:
    """The mask of the results for which all texels are stored.

    Args:
        axis_taps: the function for the taps of one axis in the read.
    """
    if spec.several is None:
        available = taps_are_available(spec.coords(operands), spec.axes, axis_taps)
    else:

        def one(number: jax.Array) -> jax.Array:
            coords, weight = spec.read_at(number, *spec.numbers(operands))
            return taps_are_available(coords, spec.axes, axis_taps) | ~(weight > 0)

        ranked = jnp.arange(1, spec.num_reads + 1, dtype=jnp.int32).reshape(-1, *[1] * operands[0].ndim)
        available = jnp.all(jax.lax.map(one, ranked), 0)
    return jnp.all(available, spec.summed_axes, keepdims=True) if spec.summed_axes else available


def where_available(
    values: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, missing: float = 0, axis_taps: AxisTaps = taps
) -> jax.Array:
    """Values of samples, S + (C,), with `missing` in place of values that need texels that are not stored."""
    return jnp.where(are_available(spec, operands, axis_taps)[..., None], values, jnp.asarray(missing, values.dtype))


def of_whole_arrays(p: Primitive, signature: Signature) -> Callable[..., Any]:
    """The meaning of `p` for any storage: `p` of whole arrays, whose results are stored as `storage` says."""

    def meaning(*args: Any, spec: ReadSpec, storage: Storage, **params: Any) -> Any:
        wrt = params.get("wrt", ())
        contents = signature.operands(spec, wrt)
        given = views(args, contents, storage)
        operands, masks = given[len(contents) :], isinstance(storage, HaloStorage)

        def stored(content: Content, a: jax.Array) -> Sequence[jax.Array]:
            if not isinstance(storage, HaloStorage) or content is Content.SAMPLES:
                return [a]
            if content is Content.TEXTURE:
                return storage.divided(a)
            return [where_available(a, operands, spec, storage.missing(a.dtype))]

        whole = [
            where_available(a, operands, spec) if masks and content is Content.VALUES else whole_array(a)
            for content, a in zip(contents, given)
        ]
        results = primitives.as_tuple(bind_read(p, *whole, *operands, spec=spec, **params))
        out = [
            a
            for content, result in zip(signature.results(spec, wrt), results, strict=True)
            for a in stored(content, result)
        ]
        return out if p.multiple_results else out[0]

    return meaning


# A read in terms of plain reads, which are one weighted sum and not rounded


def read_of_whole(texels: jax.Array, *args: jax.Array, spec: ReadSpec, batch: int) -> jax.Array:
    """Plain reads, which are zero outside, plus the border color times the weight of the taps outside."""
    color, operands = spec.color_and_operands(args)

    def plain_read(*operands: jax.Array, spec: ReadSpec) -> jax.Array:
        out = bind_read(read_p, texels, *operands, spec=spec, batch=batch)
        if color is None:
            return out
        weight, all_inside = rematerialized(operators.weight_outside, *operands, spec=spec)
        broadcast = color.reshape(*color.shape[:batch], *[1] * (out.ndim - color.ndim), color.shape[-1])
        return operators.with_color(out, broadcast, weight, all_inside)

    return by_plain_reads(plain_read, operands, spec)


def by_plain_reads(plain_read: Callable[..., jax.Array], operands: Sequence[jax.Array], spec: ReadSpec) -> jax.Array:
    """A read in terms of ``plain_read(*operands, spec=...)``."""
    if spec.combination is Combination.LIMITED:
        plain_read = functools.partial(rematerialized, functools.partial(limited, plain_read))
    once = functools.partial(plain_read, spec=spec.plain())
    if spec.several is None:
        return once(*operands).astype(spec.dtype)
    return operators.result(lambda coords: once(*coords), operands, spec, jax.checkpoint)


def limited(plain_read: Callable[..., jax.Array], *operands: jax.Array, spec: ReadSpec) -> jax.Array:
    """The meaning of a limited read: in each level, the sum of all taps, clipped to the range of the nearest taps.

    A nearest tap is a read by a filter of one tap. So a tap that limits a channel gets the channel's derivative in
    texels, and the derivative in coordinates is zero. These are 1 + 2^n reads, and as many splats in reverse mode. One
    kernel is not possible: it would need a weight for each channel, but adjoint kernels share weights among channels.
    """
    levels = []
    for axes in each_level(spec.axes):
        blended = spec.unsummed().replace(axes=axes, combination=Combination.BLEND)
        texels = [plain_read(*operands, spec=blended.replace(axes=tap)) for tap in nearest_taps(axes)]
        levels.append(clipped(plain_read(*operands, spec=blended), lowest(texels), highest(texels)))
    return operators.summed(functools.reduce(jnp.add, levels), spec)


# Pushforward and pullback in terms of reads and splats


def pushforward_of_whole(*args: jax.Array, spec: ReadSpec, wrt: Wrt, batch: int) -> jax.Array:
    """Line (a) of `rules.primitives`."""
    read = functools.partial(bind_read, read_p, batch=batch)
    return linearization.pushforward(*args, spec=spec, wrt=wrt, read=read, computed=rematerialized)


def pullback_of_whole(
    cotangent: jax.Array, texels: jax.Array, *operands: jax.Array, spec: ReadSpec, wrt: Wrt, batch: int
) -> list[jax.Array]:
    """The transpose of line (a)."""
    cotangent = widened(cotangent)
    of_coords: ByNumber = {}
    for k in spec.axes_of(wrt):
        params = {"spec": spec.differentiated(k), "batch": batch}
        of_coords[k] = rematerialized(cotangent_times_read, texels, cotangent, *operands, **params)
    terms = operand_cotangents(of_coords, operands, spec, wrt, batch)
    if TEXELS in wrt:
        terms[TEXELS] = splat_whole(cotangent, *operands, spec=spec.adjoint(texels.dtype), batch=batch)
    return [terms[k] for k in wrt]


def operand_cotangents(
    of_coords: ByNumber, operands: Sequence[jax.Array], spec: ReadSpec, wrt: Wrt, batch: int
) -> ByNumber:
    """`linearization.operand_cotangents` over `batch` leading axes; reverse mode keeps its arguments alone."""

    def once(*args: jax.Array) -> ByNumber:
        return linearization.operand_cotangents(dict(zip(of_coords, args)), args[len(of_coords) :], spec, wrt)

    return rematerialized(over_batch(once, batch), *of_coords.values(), *operands)


def cotangent_times_read(
    texels: jax.Array, cotangent: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int
) -> jax.Array:
    return jnp.sum(bind_read(read_p, texels, *operands, spec=spec.unsummed(), batch=batch) * cotangent, -1)


read_meaning = where_whole(read_of_whole, of_whole_arrays(read_p, READ))
splat_meaning = of_whole_arrays(splat_p, SPLAT)
pushforward_meaning = where_whole(pushforward_of_whole, of_whole_arrays(pushforward_p, PUSHFORWARD))
pullback_meaning = where_whole(pullback_of_whole, of_whole_arrays(pullback_p, PULLBACK))


# Differentiation, transposition and batching


# The arguments of JAX's rules: a tangent that may be a symbolic zero, and an argument that may be transposed.
Tangent = jax.Array | ad.Zero
Argument = jax.Array | ad.UndefinedPrimal
# A result, and its tangent.
WithTangent = tuple[jax.Array, jax.Array]
# A cotangent for each argument; `None` for arguments that are not transposed.
Cotangents = tuple[jax.Array | None, ...]


def active(spec: ReadSpec, tangents: Sequence[Any]) -> dict[int, Any]:
    """The nonzero tangents of texels and of operands that change a read, by number."""
    nonzero = {k: t for k, t in enumerate(tangents, TEXELS) if any(map(is_nonzero, arrays_of(t)))}
    filled = lambda t: WithHalo(*map(ad.instantiate_zeros, t)) if isinstance(t, WithHalo) else t
    return {k: filled(t) for k, t in nonzero.items() if k == TEXELS or spec.axes_of((k,))}


def read_jvp(
    primals: Sequence[jax.Array], tangents: Sequence[Tangent], *, spec: ReadSpec, batch: int, storage: Storage
) -> WithTangent:
    """Line (a)."""
    params = {"spec": spec, "batch": batch, "storage": storage}
    if not is_linear(spec, storage) or (spec.expected is not None and storage != WHOLE):
        rule = of_several_reads(read_p, read_of_whole, read_meaning)
        return rule(primals, tangents, **params)
    if spec.expected is not None:
        return drawn_jvp(functools.partial(bind_read, read_p), expected_read, primals, tangents, spec=spec, batch=batch)
    given, moved = (views(args, READ.operands(spec, ()), storage) for args in (primals, tangents))
    out, nonzero = bind_read(read_p, *given, **params), active(spec, moved)
    if not nonzero:
        return out, jnp.zeros_like(out)
    # The tangent of a sample is zero if it needs texels that are not stored.
    linear = params | {
        "storage": storage._replace(marks_missing=False) if isinstance(storage, HaloStorage) else storage
    }
    return out, tangent_of_read(nonzero, given, **linear)


def is_linear(spec: ReadSpec, storage: Storage) -> bool:
    """Whether line (a) holds for a read, but for the rounding of the result."""
    return spec.is_plain or (storage == WHOLE and spec.is_one_sum and spec.expected is None)


def tangent_of_read(tangents: dict[int, Any], given: Sequence[Any], **params: Any) -> jax.Array:
    """Line (a), for the nonzero tangents of the texels and operands `given`."""
    if tuple(tangents) == (TEXELS,):
        return bind_read(read_p, tangents[TEXELS], *given[1:], **params)
    return bind_read(pushforward_p, *tangents.values(), *given, wrt=tuple(tangents), **params)


def of_several_reads(p: Primitive, of_whole: Callable[..., Any], meaning: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative of a primitive that equals `meaning`, several reads; `of_whole` is its meaning for whole arrays.

    The tangents of operands, and those of texels where that pays, go through a program of one sample (`tangents`).
    """

    def rule(primals: Sequence[Any], tangents: Sequence[Any], *, spec: ReadSpec, batch: int, **storage: Any) -> Any:
        from . import tangents as by_samples  # loaded only for such reads, with what programs need

        params = {"spec": spec, "batch": batch, **storage}
        if storage.get("storage", WHOLE) != WHOLE or not by_samples.has_program(spec):
            return jvp_of_meaning(p, meaning)(primals, tangents, **params)
        out, terms = bind(p, *primals, **params), list[Any]()
        moving = {k: t for k, t in enumerate(tangents) if is_nonzero(t)}
        # Texels that splats add to stay outside of the program.
        textures, channels = READ.textures(spec, ()), primals[0].shape[-1]
        splats = () if by_samples.adds_in_program(spec, channels, alone=set(moving) <= set(textures)) else textures
        if apart := {k: moving.pop(k) for k in splats if k in moving}:
            known = [apart.get(k, ad.Zero(jax.typeof(a).to_tangent_aval())) for k, a in enumerate(primals)]
            terms.append(jvp_of_nonzero(functools.partial(of_whole, spec=spec, batch=batch), primals, known))
        if moving:
            found = by_samples.tangent_by_samples(of_whole, primals, moving, spec=spec, batch=batch)
            terms.append(found if p.multiple_results else found[0])
        return out, jax.tree.map(lambda *parts: functools.reduce(jnp.add, parts), *terms)

    return rule


def splat_jvp(
    primals: Sequence[jax.Array], tangents: Sequence[Tangent], *, spec: ReadSpec, batch: int
) -> tuple[list[jax.Array], list[jax.Array]]:
    """Line (b)."""
    if spec.expected is not None:
        out, tangent = drawn_jvp(splat_whole, expected_splat, primals, tangents, spec=spec, batch=batch)
        return [out], [tangent]
    (values, *operands), nonzero = primals, active(spec, tangents)
    out, terms = splat_whole(*primals, spec=spec, batch=batch), []
    if TEXELS in nonzero:
        terms.append(splat_whole(nonzero.pop(TEXELS), *operands, spec=spec, batch=batch))
    for k, tangent in coordinate_tangents(nonzero, operands, spec, rematerialized).items():
        params = {"spec": spec.differentiated(k), "batch": batch}
        terms.append(rematerialized(tangent_times_splat, values, tangent, *operands, **params))
    return [out], [functools.reduce(jnp.add, terms) if terms else jnp.zeros_like(out)]


def tangent_times_splat(
    values: jax.Array, tangent: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int
) -> jax.Array:
    values = widened(values)
    return splat_whole(values * tangent[..., None].astype(values.dtype), *operands, spec=spec.unsummed(), batch=batch)


# Drawn taps


def drawn_jvp(
    drawn: Callable[..., jax.Array],
    expected: Callable[..., jax.Array],
    primals: Sequence[jax.Array],
    tangents: Sequence[Tangent],
    **params: Any,
) -> WithTangent:
    """The result and the tangent of a read of drawn taps, or of its adjoint.

    In the first argument, in which it is linear, the tangent is its own; in the operands it is that of the expectation.
    The first operand, the number that draws, has no tangent.
    """
    (first, number, *operands), out = primals, drawn(*primals, **params)
    terms = [jnp.zeros_like(out)]
    if is_nonzero(tangents[0]):
        terms.append(drawn(tangents[0], number, *operands, **params))
    if any(map(is_nonzero, tangents[2:])):
        of_operands = functools.partial(expected, first, out, **params)
        terms.append(jnp.broadcast_to(jvp_of_nonzero(of_operands, operands, tangents[2:]), out.shape))
    return out, functools.reduce(jnp.add, terms[1:] or terms)


def expected_read(texels: jax.Array, out: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int) -> jax.Array:
    """The expectation of a read of drawn taps."""
    assert spec.expected is not None
    del out
    return bind_read(read_p, texels, *operands, spec=spec.expected.with_dtype(spec.dtype), batch=batch)


def expected_splat(values: jax.Array, out: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int) -> jax.Array:
    """The expectation of a splat to drawn taps: the transpose of the expected read, which may be a mean of reads."""
    assert spec.expected is not None
    params = {"spec": spec.expected.adjoint(values.dtype), "batch": batch}
    read = lambda texels: bind_read(read_p, texels, *operands, **params)
    values = jnp.broadcast_to(as_varying(values, out), jax.eval_shape(read, out).shape)
    return jax.linear_transpose(read, out)(values)[0]


# Transposes


def linear_in_texels(*, spec: ReadSpec, **_: Any) -> tuple[int, ...]:
    """The positions of texels and border color among the arguments of a read, which must be linear in them."""
    if spec.combination is not Combination.BLEND:
        raise ValueError(
            "jax.linear_transpose: a read by a Sampler with limit='taps' is not linear in the texels; use jax.vjp, "
            "or leave limit out."
        )
    return READ.textures(spec, ())


def read_transpose(cotangent: jax.Array, *args: Argument, spec: ReadSpec, batch: int, storage: Storage) -> Cotangents:
    # With a halo, the transpose is a splat that sums in the dtype of its values, whatever the dtype of the read.
    if storage == WHOLE and not is_linear(spec, storage):
        by_meaning = transpose_of_meaning(read_meaning, linear_in_texels)
        return by_meaning(cotangent, *args, spec=spec, batch=batch, storage=storage)
    texels, *operands = views(args, READ.operands(spec, ()), storage)
    sums = bind_read(splat_p, cotangent, *operands, spec=spec.adjoint(dtype_of(texels)), batch=batch, storage=storage)
    return *as_cotangents(iter(sums), texels), *(None for _ in operands)


def splat_transpose(
    cotangents: Sequence[Tangent], values: ad.UndefinedPrimal, *operands: jax.Array, spec: ReadSpec, batch: int
) -> Cotangents:
    (cotangent,) = map(ad.instantiate_zeros, cotangents)
    adjoint = bind_read(read_p, cotangent, *operands, spec=spec.adjoint(values.aval.dtype), batch=batch)
    return as_cotangent(adjoint, values.aval), *(None for _ in operands)


def pushforward_transpose(
    cotangent: jax.Array, *args: Argument, spec: ReadSpec, wrt: Wrt, batch: int, storage: Storage
) -> Cotangents:
    given, count = views(args, PUSHFORWARD.operands(spec, wrt), storage), len(wrt)
    if storage == WHOLE and ad.is_undefined_primal(args[count]):  # at given tangents of coordinates, linear in texels
        textures = lambda **_: tuple(k for k, w in enumerate((*wrt, TEXELS)) if w == TEXELS)
        by_meaning = transpose_of_meaning(pushforward_meaning, textures)
        return by_meaning(cotangent, *args, spec=spec, wrt=wrt, batch=batch, storage=storage)
    tangents, texels, operands = given[:count], given[count], given[count + 1 :]
    linear = {k: t for k, t in zip(wrt, tangents) if any(map(ad.is_undefined_primal, arrays_of(t)))}
    params = {"batch": batch, "storage": storage}
    if tuple(linear) == (TEXELS,):
        adjoint = spec.adjoint(dtype_of(linear[TEXELS]))
        results = iter(bind_read(splat_p, cotangent, *operands, spec=adjoint, **params))
    else:
        params |= {"spec": spec.with_dtype(spec.sums), "wrt": tuple(linear)}
        results = iter(bind_read(pullback_p, cotangent, texels, *operands, **params))
    by_view = [as_cotangents(results, t) if k in linear else [None] * len(arrays_of(t)) for k, t in zip(wrt, tangents)]
    sums = [a for arrays in by_view for a in arrays]
    return *sums, *[None] * (len(args) - len(sums))


def pullback_transpose(
    cotangents: Sequence[Tangent],
    cotangent: ad.UndefinedPrimal,
    texels: jax.Array,
    *operands: jax.Array,
    spec: ReadSpec,
    wrt: Wrt,
    batch: int,
) -> Cotangents:
    tangents = {k: tangent for k, tangent in zip(wrt, cotangents) if not isinstance(tangent, ad.Zero)}
    spec = spec.with_dtype(cotangent.aval.dtype)
    nothing = [None for _ in (texels, *operands)]
    if not tangents:
        return None, *nothing
    adjoint = tangent_of_read(tangents, (texels, *operands), spec=spec, batch=batch)
    return as_cotangent(adjoint, cotangent.aval), *nothing


def dtype_of(view: Any) -> Any:
    """The dtype of the arrays of a view in which a primitive is transposed."""
    return next(a.aval.dtype for a in arrays_of(view) if ad.is_undefined_primal(a))


def as_cotangents(results: Iterator[jax.Array], view: Any) -> list[jax.Array | None]:
    """The cotangents of the arrays of a view, from the next `results`; `None` for an array that is not transposed."""
    pairs = [(next(results), a) for a in arrays_of(view)]
    return [as_cotangent(x, a.aval) if ad.is_undefined_primal(a) else None for x, a in pairs]


def as_cotangent(x: jax.Array, aval: ShapedArray) -> jax.Array:
    """The cotangent of an array of type `aval`, from that of its broadcast to the shape of `x`.

    Under explicit mesh axes it has the sharding of the array, and may have been computed with that of the samples.
    """
    return placed_like(summed_to(x, aval.shape).astype(aval.dtype), aval)


# Batches


def batching_rule(
    p: Primitive,
    signature: Signature,
    joins: Callable[[Wrt, Dims], bool] = lambda *_: True,
    meaning: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """The batching rule of `p`.

    If no texture is batched, the new axis of the operands becomes a sample axis, if `joins` allows that. Otherwise it
    becomes a batch axis.

    Args:
        joins: ``joins(wrt, dims)`` says whether no result would be summed over the new sample axis.
        meaning: the meaning of `p`, which is batched in its place for arrays that are not whole; `None` if arrays are
            always whole.
    """

    def rule(args: Sequence[jax.Array], dims: Dims, *, spec: ReadSpec, batch: int, **params: Any) -> Any:
        if meaning is not None and params["storage"] != WHOLE:
            return batching_of_meaning(meaning, p.multiple_results)(args, dims, spec=spec, batch=batch, **params)
        wrt = params.get("wrt", ())
        positions = signature.textures(spec, wrt)
        shared = all(dims[k] is None for k in positions) and joins(wrt, dims)
        if shared:
            args = [a if k in positions else at_front(a, d, batch) for k, (a, d) in enumerate(zip(args, dims))]
        else:
            args = [at_front(a, d) for a, d in zip(args, dims)]
        out = primitives.bind(p, *args, spec=spec, batch=batch if shared else batch + 1, **params)
        dim = batch if shared else 0
        return (out, [dim] * len(out)) if p.multiple_results else (out, dim)

    return rule


def pushforward_joins(wrt: Wrt, dims: Dims) -> bool:
    """Whether every operand in `wrt` has the new axis if and only if its tangent has it."""
    operands = dims[len(wrt) + 1 :]
    return all((operands[k] is None) == (tangent is None) for k, tangent in zip(wrt, dims) if k != TEXELS)


def pullback_joins(wrt: Wrt, dims: Dims) -> bool:
    """Whether all results are cotangents of operands that have the new axis."""
    return TEXELS not in wrt and all(dims[2 + k] is not None for k in wrt)


# The primitives


def read(texels: jax.Array | WithHalo, color: jax.Array | None, read: Read) -> jax.Array:
    """`operators.read`, with a border color or zero outside, and derivatives of any order.

    A sample that needs texels that are not stored is NaN, or zero if it is an integer.
    """
    spec, args = read.over(color)
    storage = HaloStorage(texels.before.shape[0], marks_missing=True) if isinstance(texels, WithHalo) else WHOLE
    return bind(read_p, *arrays_of(texels), *args, spec=spec, batch=0, storage=storage)


def splat(values: jax.Array, read: Read) -> jax.Array:
    """`operators.splat`, with derivatives of any order."""
    (texels,) = bind(splat_p, values, *read.operands, spec=read.spec, batch=0, storage=WHOLE)
    return texels


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
    return broadcast_shapes(*(a.shape[:batch] for a in args))


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
    jvp=of_several_reads(read_derivatives_p, derivatives_meaning, derivatives_meaning),
    batch=batching_rule(read_derivatives_p, READ),
    form=array_form(operators.derivatives, lambda _: (0,)),
    types=types_of_derivatives,
    lowerings=LOWERINGS["read_derivatives"],
    multiple_results=True,
)
