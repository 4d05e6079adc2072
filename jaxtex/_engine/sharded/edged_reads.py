"""Reads of a part of a texture that lies in three arrays: its own texels, and those beside them that neighbors sent.

XLA would copy them into one array before a read, and take their cotangents out of one after it. On a GPU kernels load
and add where they lie. Samples in the own texels are read while neighbors still send theirs. A sample that needs other
texels has a value that says so, and no gradient.

Each primitive here equals a function of other primitives, and takes its rules from that function. There are two
exceptions: the tangent of a read has a primitive of its own, whose transpose is one pullback, or one splat.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import ad

from ..._jax.primitives import bind, define, is_nonzero, jvp_of_meaning
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import Edged
from ..forms.choice import LOWERINGS
from ..rules.primitives import active, as_cotangent, linear_in_first, pullback_p, pushforward_p, read_p, splat_p
from ..walk.texel_walk import taps_are_available

# A texture is so many arguments.
ARRAYS = 3


def read(texels: Edged, operands: Sequence[jax.Array], spec: ReadSpec) -> jax.Array:
    """The read, with NaN, or zero of integers, where a sample needs texels that are not stored."""
    missing = jnp.nan if jnp.issubdtype(spec.dtype, jnp.floating) else 0
    args: list[Any] = [*texels, *operands]
    return bind(edged_read_p, *args, spec=spec, missing=missing)


def are_available(spec: ReadSpec, operands: Sequence[jax.Array]) -> jax.Array:
    """Whether all texels that a result needs are stored."""
    if spec.several is None:
        available = taps_are_available(spec.coords(operands), spec.axes)
    else:

        def one(number: jax.Array) -> jax.Array:
            coords, weight = spec.read_at(number, *spec.numbers(operands))
            return taps_are_available(coords, spec.axes) | ~(weight > 0)

        ranked = jnp.arange(1, spec.num_reads + 1, dtype=jnp.int32).reshape(-1, *[1] * operands[0].ndim)
        available = jnp.all(jax.lax.map(one, ranked), 0)
    return jnp.all(available, spec.summed_axes, keepdims=True) if spec.summed_axes else available


def joined(texels: Sequence[jax.Array]) -> jax.Array:
    """The texels in one array."""
    own, before, after = texels
    return jnp.concatenate([before, own, after])


# What the primitives mean


def where_available(values: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, missing: float) -> jax.Array:
    """Values of samples, S + (C,), and `missing` where a sample needs texels that are not stored."""
    return jnp.where(are_available(spec, operands)[..., None], values, jnp.asarray(missing, values.dtype))


def read_meaning(*args: jax.Array, spec: ReadSpec, missing: float) -> jax.Array:
    """The read of the texels in one array."""
    texels, operands = args[:ARRAYS], args[ARRAYS:]
    return where_available(bind(read_p, joined(texels), *operands, spec=spec, batch=0), operands, spec, missing)


def pushforward_meaning(*args: jax.Array, spec: ReadSpec, wrt: Wrt) -> jax.Array:
    """The tangent of a read, from tangents in `wrt`, where those of the texels are three; texels; and operands."""
    tangents, texels, operands = split_tangents(args, wrt)
    some = [joined(t) if k == TEXELS else t for k, t in zip(wrt, tangents)]
    return where_available(
        bind(pushforward_p, *some, joined(texels), *operands, spec=spec, wrt=wrt, batch=0), operands, spec, 0
    )


def splat_meaning(values: jax.Array, *operands: jax.Array, spec: ReadSpec, reach: int) -> list[jax.Array]:
    """The sums at own texels, at those before, and at those after."""
    values = where_available(values, operands, spec, 0)
    return in_three(bind(splat_p, values, *operands, spec=spec, batch=0), reach)


def pullback_meaning(cotangent: jax.Array, *args: jax.Array, spec: ReadSpec, wrt: Wrt) -> list[jax.Array]:
    """The cotangents in `wrt`, where those of the texels are three."""
    texels, operands = args[:ARRAYS], args[ARRAYS:]
    cotangent = where_available(cotangent, operands, spec, 0)
    found = bind(pullback_p, cotangent, joined(texels), *operands, spec=spec, wrt=wrt, batch=0)
    reach = texels[1].shape[0]
    return [a for k, some in zip(wrt, found) for a in (in_three(some, reach) if k == TEXELS else [some])]


def in_three(texels: jax.Array, reach: int) -> list[jax.Array]:
    """Texels in one array as three: the own ones, `reach` before them, and as many after."""
    before, own, after = jnp.split(texels, [reach, texels.shape[0] - reach])
    return [own, before, after]


def split_tangents(args: Sequence[Any], wrt: Wrt) -> tuple[list[Any], Sequence[Any], Sequence[Any]]:
    """Tangents in the order of `wrt`, of which those of the texels are three arrays; texels; and operands."""
    tangents, rest = [], list(args)
    for k in wrt:
        count = ARRAYS if k == TEXELS else 1
        tangents.append(rest[:count] if k == TEXELS else rest[0])
        rest = rest[count:]
    return tangents, rest[:ARRAYS], rest[ARRAYS:]


# Rules


def read_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, spec: ReadSpec, missing: float):
    """The tangent is linear in the texels, if the read is."""
    out = bind(edged_read_p, *primals, spec=spec, missing=missing)
    if not spec.is_plain:
        return jvp_of_meaning(edged_read_p, read_meaning)(primals, tangents, spec=spec, missing=missing)
    of_texels, of_operands = tangents[:ARRAYS], tangents[ARRAYS:]
    moves = any(map(is_nonzero, of_texels))
    given = dict[int, Any](active(spec, [ad.Zero(jax.typeof(primals[0])), *of_operands]))
    if moves:
        given = {TEXELS: [ad.instantiate_zeros(t) for t in of_texels]} | given
    if not given:
        return out, jnp.zeros_like(out)
    if tuple(given) == (TEXELS,):
        return out, bind(edged_read_p, *given[TEXELS], *primals[ARRAYS:], spec=spec, missing=0)
    flat: list[Any] = [a for k, t in given.items() for a in (t if k == TEXELS else [t])]
    return out, bind(edged_pushforward_p, *flat, *primals, spec=spec, wrt=tuple(given))


def read_transpose(cotangent: Any, *args: Any, spec: ReadSpec, missing: float):
    del missing
    texels, operands = args[:ARRAYS], args[ARRAYS:]
    avals = [t.aval for t in texels if ad.is_undefined_primal(t)]
    reach = texels[1].aval.shape[0] if ad.is_undefined_primal(texels[1]) else texels[1].shape[0]
    found = bind(edged_splat_p, cotangent, *operands, spec=spec.adjoint(avals[0].dtype), reach=reach)
    linear = [as_cotangent(x, t.aval) if ad.is_undefined_primal(t) else None for x, t in zip(found, texels)]
    return *linear, *(None for _ in operands)


def pushforward_transpose(cotangent: Any, *args: Any, spec: ReadSpec, wrt: Wrt):
    tangents, texels, operands = split_tangents(args, wrt)
    is_linear = lambda t: ad.is_undefined_primal(t[0] if isinstance(t, list) else t)
    linear = tuple(k for k, t in zip(wrt, tangents) if is_linear(t))
    if linear == (TEXELS,):
        (of_texels,) = (t for k, t in zip(wrt, tangents) if k == TEXELS)
        adjoint, reach = spec.adjoint(of_texels[0].aval.dtype), of_texels[1].aval.shape[0]
        found = iter(bind(edged_splat_p, cotangent, *operands, spec=adjoint, reach=reach))
    else:
        found = iter(bind(edged_pullback_p, cotangent, *texels, *operands, spec=spec, wrt=linear))
    out: list[Any] = []
    for k, t in zip(wrt, tangents):
        some = t if k == TEXELS else [t]
        out.extend(as_cotangent(next(found), x.aval) if k in linear else None for x in some)
    return *out, *[None] * (ARRAYS + len(operands))


def texels_of(**_: Any) -> tuple[int, ...]:
    """The positions of the texels of a read."""
    return tuple(range(ARRAYS))


def tangents_of(*, wrt: Wrt, **_: Any) -> tuple[int, ...]:
    """The positions of the tangents of a pushforward."""
    return tuple(range(len(wrt) + (ARRAYS - 1) * wrt.count(TEXELS)))


edged_read_p = define(
    "edged_read",
    read_meaning,
    static=("spec", "missing"),
    linear_in=texels_of,
    lowerings=LOWERINGS["edged_read"],
)
edged_pushforward_p = define("edged_pushforward", pushforward_meaning, static=("spec", "wrt"), linear_in=tangents_of)
edged_splat_p = define(
    "edged_splat",
    splat_meaning,
    static=("spec", "reach"),
    linear_in=linear_in_first,
    lowerings=LOWERINGS["edged_splat"],
    multiple_results=True,
)
edged_pullback_p = define(
    "edged_pullback",
    pullback_meaning,
    static=("spec", "wrt"),
    linear_in=linear_in_first,
    lowerings=LOWERINGS["edged_pullback"],
    multiple_results=True,
)
ad.primitive_jvps[edged_read_p] = read_jvp
ad.primitive_transposes[edged_read_p] = read_transpose
ad.primitive_transposes[edged_pushforward_p] = pushforward_transpose
