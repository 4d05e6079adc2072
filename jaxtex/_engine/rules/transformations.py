"""The rules of differentiation, transposition and batching for the primitives of a read; see `rules.primitives`."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad

from ..._jax import primitives
from ..._jax.indexing import as_varying, placed_like
from ..._jax.primitives import (
    Dims,
    at_front,
    batching_of_meaning,
    is_nonzero,
    jvp_of_meaning,
    jvp_of_nonzero,
    transpose_of_meaning,
)
from ..compute.linearization import coordinate_tangents, rematerialized, summed_to
from ..describe.spec import TEXELS, Combination, ReadSpec, Wrt
from ..describe.storage import (
    PUSHFORWARD,
    READ,
    WHOLE,
    HaloStorage,
    Signature,
    Storage,
    WithHalo,
    arrays_of,
    bind,
    views,
)
from .meanings import (
    pullback_p,
    pushforward_meaning,
    pushforward_p,
    read_meaning,
    read_p,
    splat_p,
    splat_whole,
)

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
    if not spec.is_plain or (spec.expected is not None and storage != WHOLE):
        return jvp_of_meaning(read_p, read_meaning)(primals, tangents, **params)
    if spec.expected is not None:
        return drawn_jvp(functools.partial(bind, read_p), expected_read, primals, tangents, spec=spec, batch=batch)
    given, moved = (views(args, READ.operands(spec, ()), storage) for args in (primals, tangents))
    out, nonzero = bind(read_p, *given, **params), active(spec, moved)
    if not nonzero:
        return out, jnp.zeros_like(out)
    # The tangent of a sample is zero if it needs texels that are not stored.
    linear = params | {
        "storage": storage._replace(marks_missing=False) if isinstance(storage, HaloStorage) else storage
    }
    return out, tangent_of_read(nonzero, given, **linear)


def tangent_of_read(tangents: dict[int, Any], given: Sequence[Any], **params: Any) -> jax.Array:
    """Line (a), for the nonzero tangents of the texels and operands `given`."""
    if tuple(tangents) == (TEXELS,):
        return bind(read_p, tangents[TEXELS], *given[1:], **params)
    return bind(pushforward_p, *tangents.values(), *given, wrt=tuple(tangents), **params)


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
    return bind(read_p, texels, *operands, spec=spec.expected.with_dtype(spec.dtype), batch=batch)


def expected_splat(values: jax.Array, out: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int) -> jax.Array:
    """The expectation of a splat to drawn taps: the transpose of the expected read, which may be a mean of reads."""
    assert spec.expected is not None
    params = {"spec": spec.expected.adjoint(values.dtype), "batch": batch}
    read = lambda texels: bind(read_p, texels, *operands, **params)
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
    if storage == WHOLE and not spec.is_plain:
        by_meaning = transpose_of_meaning(read_meaning, linear_in_texels)
        return by_meaning(cotangent, *args, spec=spec, batch=batch, storage=storage)
    texels, *operands = views(args, READ.operands(spec, ()), storage)
    sums = bind(splat_p, cotangent, *operands, spec=spec.adjoint(dtype_of(texels)), batch=batch, storage=storage)
    return *as_cotangents(iter(sums), texels), *(None for _ in operands)


def splat_transpose(
    cotangents: Sequence[Tangent], values: ad.UndefinedPrimal, *operands: jax.Array, spec: ReadSpec, batch: int
) -> Cotangents:
    (cotangent,) = map(ad.instantiate_zeros, cotangents)
    adjoint = bind(read_p, cotangent, *operands, spec=spec.adjoint(values.aval.dtype), batch=batch)
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
        results = iter(bind(splat_p, cotangent, *operands, spec=adjoint, **params))
    else:
        results = iter(bind(pullback_p, cotangent, texels, *operands, spec=spec, wrt=tuple(linear), **params))
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
