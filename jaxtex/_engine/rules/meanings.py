"""The primitives of a read, and the meaning of each in terms of the others.

Reads that are more than one weighted sum, higher derivatives, and arrays that are slices or have a halo get their rules
from this meaning, which does not depend on the storage of the arrays.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive

from ..._jax import primitives
from ..compute import linearization, operators
from ..compute.linearization import ByNumber, rematerialized
from ..describe.spec import TEXELS, Combination, ReadSpec, Wrt
from ..describe.storage import (
    PULLBACK,
    PUSHFORWARD,
    READ,
    SPLAT,
    Content,
    HaloStorage,
    Signature,
    Storage,
    bind,
    views,
    where_whole,
    whole_array,
)
from ..walk.combinations import clipped, each_level, highest, lowest, nearest_taps
from ..walk.texel_walk import AxisTaps, taps, taps_are_available

read_p = Primitive("texture_read")
splat_p = Primitive("texture_splat")
pushforward_p = Primitive("texture_pushforward")
pullback_p = Primitive("texture_pullback")


def splat_whole(values: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int) -> jax.Array:
    """The texels of a splat, as one whole array."""
    (texels,) = bind(splat_p, values, *operands, spec=spec, batch=batch)
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
        results = primitives.as_tuple(bind(p, *whole, *operands, spec=spec, **params))
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
        out = bind(read_p, texels, *operands, spec=spec, batch=batch)
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
    read = functools.partial(bind, read_p, batch=batch)
    return linearization.pushforward(*args, spec=spec, wrt=wrt, read=read, computed=rematerialized)


def pullback_of_whole(
    cotangent: jax.Array, texels: jax.Array, *operands: jax.Array, spec: ReadSpec, wrt: Wrt, batch: int
) -> list[jax.Array]:
    """The transpose of line (a)."""
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

    return rematerialized(operators.over_batch(once, batch), *of_coords.values(), *operands)


def cotangent_times_read(
    texels: jax.Array, cotangent: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int
) -> jax.Array:
    return jnp.sum(bind(read_p, texels, *operands, spec=spec.unsummed(), batch=batch) * cotangent, -1)


read_meaning = where_whole(read_of_whole, of_whole_arrays(read_p, READ))
splat_meaning = of_whole_arrays(splat_p, SPLAT)
pushforward_meaning = where_whole(pushforward_of_whole, of_whole_arrays(pushforward_p, PUSHFORWARD))
pullback_meaning = where_whole(pullback_of_whole, of_whole_arrays(pullback_p, PULLBACK))
