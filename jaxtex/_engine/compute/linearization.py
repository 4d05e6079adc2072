"""The derivative of a read with respect to texels and operands, and its transpose, as array operations."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..._jax.indexing import gather, placed_like
from ..describe.axis import Axis, differentiated
from ..describe.operands import Coords, widened
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..walk.combinations import blends
from ..walk.texel_order import flattened
from ..walk.texel_walk import Path, TexelAddress, TexelValue, weighted
from . import operators
from .operators import blend, summed
from .texel_value import decode, zero_outside

FEW_CHANNELS = 4
# Arrays by the number of an operand, or of an axis.
ByNumber = dict[int, jax.Array]
# A function ``computed(term, *args, **params)`` that returns ``term(*args, **params)``.
Computed = Callable[..., Any]


def at_once(term: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """A term, without a checkpoint."""
    return term(*args, **params)


def rematerialized(term: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """A term in a checkpoint: reverse mode keeps its arguments, and recomputes everything else."""
    return jax.checkpoint(functools.partial(term, **params))(*args)


def pushforward(
    *args: jax.Array,
    spec: ReadSpec,
    wrt: Wrt,
    read: Callable[..., jax.Array] = operators.read,
    computed: Computed = at_once,
) -> jax.Array:
    """The tangent of a read: line (a) of `rules.primitives`.

    Args:
        args: a tangent for each entry of `wrt`, then the texels and all operands.
        read: the form of `read` to use.
        computed: `at_once` or `rematerialized`.

    Returns:
        S + (C,) of `spec.dtype`, to which the sum of all terms is rounded.
    """
    dtype, spec = spec.dtype, spec.with_dtype(spec.sums)
    # A read is linear in texels: the tangent along them is a read of their tangent.
    tangents, (texels, *operands) = dict(zip(wrt, args)), args[len(wrt) :]
    terms = [read(tangents.pop(TEXELS), *operands, spec=spec)] if TEXELS in tangents else []

    # Along a coordinate, it is a read of the derivative, times the tangent of the coordinate.
    def of_coordinate(texels: jax.Array, tangent: jax.Array, *operands: jax.Array, spec: ReadSpec) -> jax.Array:
        return summed(weighted(tangent, read(texels, *operands, spec=spec.unsummed())), spec)

    if spec.sums_along_grid:  # each sample computes the tangents of its coordinates, which are weights of the sum
        for k in spec.axes_of(tuple(tangents)):
            along = spec.along_tangents(k, tuple(tangents), len(operands))
            terms.append(read(texels, *operands, *tangents.values(), spec=along))
    else:
        for k, tangent in coordinate_tangents(tangents, operands, spec, computed).items():
            terms.append(computed(of_coordinate, texels, tangent, *operands, spec=spec.differentiated(k)))
    return functools.reduce(jnp.add, terms).astype(dtype)


def pullback(
    cotangent: jax.Array,
    texels: jax.Array,
    *operands: jax.Array,
    spec: ReadSpec,
    wrt: Wrt,
    splat: Callable[..., jax.Array] = operators.splat,
) -> tuple[jax.Array, ...]:
    """The cotangents of the texels and operands in `wrt`.

    Args:
        cotangent: the cotangent of the read's result, of 16 bits or of the dtype of its sums; it broadcasts to
            S + (C,).
        splat: the form of `splat` to use.

    Returns:
        A tuple in the order of `wrt`; each cotangent has the shape of its operand.
    """
    # The derivatives along coordinates come first, then the chain rule leads to the operands.
    cotangent, coords = widened(cotangent), spec.coords(operands)
    of_coords = coordinate_cotangents(cotangent, texels, coords, spec, wrt)
    of_operands = operand_cotangents(of_coords, operands, spec, wrt)
    # In texels, the transpose is a splat.
    if TEXELS in wrt:
        of_operands[TEXELS] = splat(cotangent, *coords, spec=spec.of_coords().adjoint(texels.dtype))
    return tuple(of_operands[k] for k in wrt)


def coordinate_tangents(
    tangents: ByNumber, operands: Sequence[jax.Array], spec: ReadSpec, computed: Computed = at_once
) -> ByNumber:
    """The tangents of the coordinates, by axis, from the tangents of operands, by number.

    Axes along which the read does not change are left out.
    """
    axes = spec.axes_of(tuple(tangents))
    if spec.takes_coords or not tangents:
        return {k: tangents[k + spec.given] for k in axes}

    def of_grid(tangents: ByNumber, operands: Sequence[jax.Array]) -> ByNumber:
        function, variables = partial_grid(operands, spec, tuple(tangents), axes)
        # Under `jax.vmap`, an operand and its tangent may differ in a batch axis, where one of them has size 1.
        points, directions = zip(*map(jnp.broadcast_arrays, variables, tangents.values()))
        return dict(zip(axes, jax.jvp(function, points, directions)[1]))

    return computed(of_grid, tangents, operands)


def operand_cotangents(of_coords: ByNumber, operands: Sequence[jax.Array], spec: ReadSpec, wrt: Wrt) -> ByNumber:
    """The cotangents of the operands in `wrt`, by number, from the cotangents of coordinates, by axis, of shape S."""
    wrt = tuple(k for k in wrt if k != TEXELS)
    if not wrt:
        return {}
    # The transpose of the grid, as a function of these operands alone, at all samples.
    shape = spec.samples_shape(operands)
    function, variables = partial_grid(operands, spec, wrt, tuple(of_coords))

    def broadcast(*variables: jax.Array) -> list[jax.Array]:
        coords = (jnp.broadcast_to(c, shape) for c in function(*variables))
        return [placed_like(c, cotangent) for c, cotangent in zip(coords, of_coords.values())]

    coords, transposed = jax.vjp(broadcast, *variables)
    return dict(zip(wrt, transposed([c.astype(x.dtype) for c, x in zip(of_coords.values(), coords)])))


def partial_grid(
    operands: Sequence[jax.Array], spec: ReadSpec, wrt: Wrt, axes: Sequence[int]
) -> tuple[Callable[..., list[jax.Array]], tuple[jax.Array, ...]]:
    """The coordinates of `axes` as a function of the operands in `wrt`, and these operands."""

    def function(*variables: jax.Array) -> list[jax.Array]:
        given = dict(zip(wrt, variables))
        coords = spec.coords([given.get(k, a) for k, a in enumerate(operands)])
        return [coords[k + spec.given] for k in axes]

    return function, tuple(operands[k] for k in wrt)


def summed_to(x: jax.Array, shape: Sequence[int]) -> jax.Array:
    """`x`, summed to `shape`, which broadcasts to the shape of `x`."""
    repeated = tuple(k for k, n in enumerate(shape) if n != x.shape[k])
    return jnp.sum(x, repeated, keepdims=True) if repeated else x


def coordinate_cotangents(
    cotangent: jax.Array, texels: jax.Array, coords: Coords, spec: ReadSpec, wrt: Wrt
) -> ByNumber:
    """The cotangents of the coordinates that depend on the operands in `wrt`, by axis, of shape S."""
    stored, axes = flattened(texels, spec.axes), spec.axes_of(wrt)

    def texel_times_cotangent(address: TexelAddress, path: Path) -> jax.Array:
        del path
        texel = decode(gather(stored, address.flat_index), spec.decoding, spec.dtype)
        return zero_outside(address, sum_over_channels(texel * cotangent))

    return dict(zip(axes, slopes(coords, spec.axes, axes, texel_times_cotangent)))


def slopes(
    coords: Coords,
    axes: tuple[Axis, ...],
    along: Sequence[int],
    texel_times_cotangent: TexelValue,
    *,
    together: bool = False,
) -> tuple[jax.Array, ...]:
    """For each axis of `along`, the derivative of a read with respect to the coordinate, times a cotangent: shape S.

    Args:
        texel_times_cotangent: returns the texel of a tap times the cotangent, summed over the channels, S + (1,), so
            that blends are of scalars. It is called once for each tap.
        together: whether all derivatives take a texel before the next one is loaded, so that a thread keeps few
            texels. No axis may be a level.
    """
    if together:
        orders = [tuple(axis.order for axis in differentiated(axes, k)) for k in along]
        return tuple(jnp.squeeze(total, -1) for total in blends(coords, axes, texel_times_cotangent, orders))
    # Otherwise one blend for each derivative, on texels that are loaded once.
    known: dict[Path, jax.Array] = {}

    def once(address: TexelAddress, path: Path) -> jax.Array:
        if path not in known:
            known[path] = texel_times_cotangent(address, path)
        return known[path]

    return tuple(jnp.squeeze(blend(coords, differentiated(axes, k), once), -1) for k in along)


def sum_over_channels(value: jax.Array) -> jax.Array:
    """The sum over channels, S + (1,). Few channels are added one by one, since XLA would not fuse a reduction."""
    if value.shape[-1] > FEW_CHANNELS:
        return jnp.sum(value, -1, keepdims=True)
    return functools.reduce(jnp.add, jnp.split(value, value.shape[-1], -1))
