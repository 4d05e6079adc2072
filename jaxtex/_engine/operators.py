"""The read and its relatives: a product over axes of taps, weights and addresses.

Nothing here knows a mode or a dimension. `blend` and `spread` walk the same taps; they differ in what stands at the
end of the walk, which their caller says: a gather or a scatter of arrays here, a load or an atomic addition in a
kernel. `read` and `splat` are linear in their first argument, and each is the other's transpose; so are
`pushforward`, the linearisation of a read in its texels and coordinates, and `pullback`.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..modes import AddressMode, ReadMode
from .axis import Axis, Role, raised
from .formats import decode
from .indexing import gather, scatter
from .reproducible_sum import Sums, Units
from .taps import derivative
from .texel_walk import Coords, Grid, Place, Step, as_given, both, flat_sizes, walks

# The number of the tap taken at each step of a walk, that of the walk first.
Path = tuple[int, ...]
FEW_CHANNELS = 4
# In `wanted`, the lists of what moves or is asked for, the texels; the coordinate of axis k is k.
TEXELS = -1
# What is read at the end of a walk: S + (C,).
Leaf = Callable[[Place, Path], jax.Array]


def together(function: Callable[..., Any], operands: list[jax.Array]) -> Any:
    """`function` over their first axis, which stays an axis of its own: the partitioner can cut it."""
    return jax.vmap(function)(operands)


def over_batch(function: Callable[..., Any], batch: int, each: Callable[..., Any] = together) -> Callable[..., Any]:
    """`function` over `batch` leading axes, on which an operand has their size or 1.

    Args:
        each: ``each(f, operands)``, `f` over the first axis of a list of operands.
    """
    if batch == 0:
        return function

    def run(*args):
        size = max(a.shape[0] for a in args)
        own = [a.shape[0] == size for a in args]

        def once(mine):
            found = iter(mine)
            return over_batch(function, batch - 1, each)(
                *(next(found) if o else a.squeeze(0) for a, o in zip(args, own))
            )

        return each(once, [a for a, o in zip(args, own) if o])

    return run


class Spread(NamedTuple):
    """The part of a value that falls on one tap."""

    place: Place
    value: jax.Array


def weighted(weight: jax.Array | float, value: jax.Array) -> jax.Array:
    """`weight` times a value with channels; a weight of 1 leaves every bit as it is."""
    if isinstance(weight, jax.Array):
        return value * weight[..., None].astype(value.dtype)
    return value if weight == 1.0 else value * weight


def blend(coords: Coords, axes: tuple[Axis, ...], leaf: Leaf) -> jax.Array:
    """The sum of `leaf` over all taps, each times its weight: nested, axis after axis."""

    def interpolate(place: Place, steps: list[Step], path: Path) -> jax.Array:
        if not steps:
            return leaf(place, path)
        step, *rest = steps
        parts = (
            weighted(weight, interpolate(place.step(tap, step.sizes), rest, (*path, k)))
            for k, (tap, weight) in enumerate(zip(step.taps, step.weights()))
        )
        return functools.reduce(jnp.add, parts)

    found = enumerate(walks(coords, axes))
    return functools.reduce(jnp.add, (weighted(w, interpolate(place, steps, (k,))) for k, (w, place, steps) in found))


def spread(value: jax.Array, coords: Coords, axes: tuple[Axis, ...]) -> Iterator[Spread]:
    """The part of `value`, S + (C,), that falls on each tap."""
    for weight, place, steps in walks(coords, axes):
        yield from distribute(place, steps, weighted(weight, value))


def distribute(place: Place, steps: list[Step], value: jax.Array) -> Iterator[Spread]:
    """The part of `value` that falls on each tap of the rest of a walk."""
    if not steps:
        yield Spread(place, value)
        return
    step, *rest = steps
    for tap, weight in zip(step.taps, step.weights()):
        yield from distribute(place.step(tap, step.sizes), rest, weighted(weight, value))


def only_inside(place: Place, value: jax.Array) -> jax.Array:
    """What a tap reads, S + (C,): `value`, or zero outside."""
    return value if place.inside is None else jnp.where(place.inside[..., None], value, 0)


def slopes(coords: Coords, axes: tuple[Axis, ...], wanted: tuple[int, ...], along: Leaf) -> tuple[jax.Array, ...]:
    """The derivative of a read along each of the `wanted` axes, times a cotangent: shape S.

    Args:
        along: the texel of a tap times the cotangent, summed over the channels, S + (1,). It is asked once for each
            tap, so that what is blended are scalars.
    """
    found: dict[Path, jax.Array] = {}

    def once(place: Place, path: Path) -> jax.Array:
        if path not in found:
            found[path] = along(place, path)
        return found[path]

    return tuple(jnp.squeeze(blend(coords, raised(axes, k), once), -1) for k in wanted)


def read(
    texels,
    *operands,
    axes: tuple[Axis, ...],
    read_mode: ReadMode,
    dtype: np.dtype,
    deterministic: bool = False,
    grid: Grid = as_given,
):
    """Reads `texels` at coordinates, with zero outside. `deterministic` is about its adjoint.

    Args:
        texels: ``(*sizes, C)``, one size for each of `axes`; or a mip chain, ``(total, C)``.
        operands: what `grid` makes the coordinates of, one an axis, in the order of `axes`; arrays of one rank and of
            shapes that broadcast to S.

    Returns:
        S + (C,) of `dtype`, in which everything is summed.
    """
    del deterministic
    stored = texels.reshape(*flat_sizes(axes), texels.shape[-1])
    texel = lambda place, path: only_inside(place, decode(gather(stored, place.stored), read_mode, dtype))
    return blend(grid(*operands), axes, texel)


def splat(
    values,
    *operands,
    axes: tuple[Axis, ...],
    dtype: np.dtype,
    deterministic: bool = False,
    grid: Grid = as_given,
):
    """The adjoint of `read` in its texels: adds `values`, S + (C,), into zero texels ``(*sizes, C)`` of `dtype`.

    Sums are taken in the dtype of `values`; weight outside is dropped. A `deterministic` sum has the same bits in
    every run.
    """
    coords = grid(*operands)
    cut = units(values, axes, functools.partial(crowd, coords=coords)) if deterministic else None
    sums = Sums(values.shape[-1], values.shape[-1], cut)
    total = jnp.zeros((*flat_sizes(axes), sums.width), values.dtype)
    return as_texels(accumulated(total, values, coords, axes, sums), axes, sums, dtype)


def accumulated(total: jax.Array, values: jax.Array, coords: Coords, axes: tuple[Axis, ...], sums: Sums) -> jax.Array:
    """`total` with `values` spread over it."""
    for place, value in spread(values, coords, axes):
        total = scatter(total, place.stored, place.inside, sums.terms(value), "add")
    return total


def as_texels(total: jax.Array, axes: tuple[Axis, ...], sums: Sums, dtype: np.dtype) -> jax.Array:
    return sums.joined(total).reshape(texels_shape(axes, sums.count)).astype(dtype)


def units(values: jax.Array, axes: tuple[Axis, ...], crowd: Callable[[tuple[Axis, ...]], jax.Array]) -> Units:
    """The units for sums of `values` that do not depend on their order.

    Args:
        crowd: how many samples fall on each texel under given axes.
    """
    counted, several = counting(axes)
    return Units.of(values, weight_bound(axes), jnp.max(crowd(counted)) * several)


def crowd(axes: tuple[Axis, ...], coords: Coords) -> jax.Array:
    ones = jnp.ones((*jnp.broadcast_shapes(*(c.shape for c in coords)), 1), jnp.float32)
    return splat(ones, *coords, axes=axes, dtype=np.dtype(np.float32))


def counting(axes: tuple[Axis, ...]) -> tuple[tuple[Axis, ...], int]:
    """Axes under which each texel is given 1 by each sample near it, and how often a sample may meet it otherwise.

    The first tap of a footprint is enough, as each of the others meets no more samples at a texel; a mirrored axis may
    bring two of a kind there. The levels of a chain, and the faces of a cube, need all of their taps.
    """
    together = axes[-1].address is AddressMode.SEAM
    found, several = [], 1
    for axis in axes:
        taps = len(axis.footprint.weights)
        kept = taps if together or axis.role is Role.LEVEL else 1
        found.append(axis._replace(order=0, footprint=axis.footprint._replace(weights=((1.0,),) * kept)))
        several *= taps // kept * (2 if axis.address in (AddressMode.MIRROR, AddressMode.REFLECT) else 1)
    return tuple(found), several


def weight_bound(axes: tuple[Axis, ...]) -> float:
    """What no weight of a tap exceeds."""
    bound = 1.0
    for axis in axes:
        if not axis.integer:
            polynomials = (derivative(p, axis.order) for p in axis.footprint.weights)
            scale = axis.known_size if axis.normalized and axis.role is Role.SPACE else 1
            bound *= max(sum(map(abs, p)) for p in polynomials) * float(scale) ** axis.order
    return bound


def pushforward(*args, axes: tuple[Axis, ...], wanted: tuple[int, ...], **how):
    """How a read moves with its texels and coordinates.

    Args:
        args: a tangent for each of `wanted`, `TEXELS` or the number of an axis; then the texels and all operands.
        how: read mode, dtype and grid, as for `read`.
    """
    moves, (texels, *operands) = args[: len(wanted)], args[len(wanted) :]
    whole = functools.partial(read, **how)
    terms = []
    for k, move in zip(wanted, moves):
        if k == TEXELS:
            terms.append(whole(move, *operands, axes=axes))
        else:
            terms.append(weighted(move, whole(texels, *operands, axes=raised(axes, k))))
    return functools.reduce(jnp.add, terms)


def pullback(
    cotangent,
    texels,
    *operands,
    axes: tuple[Axis, ...],
    read_mode: ReadMode,
    dtype: np.dtype,
    wanted: tuple[int, ...],
    deterministic: bool = False,
    grid: Grid = as_given,
    into_texels: Callable[..., jax.Array] = splat,
):
    """The cotangents of a read: of texels and coordinates, those that are `wanted`.

    Args:
        cotangent: of the read, S + (C,), in the dtype in which it was summed.
        into_texels: how to `splat`.

    Returns:
        A tuple in the order of `wanted`; a coordinate's has shape S, also where the coordinate broadcasts.
    """
    coords = grid(*operands)
    of_coords = coordinate_cotangents(cotangent, texels, coords, axes, read_mode, dtype, wanted)
    if TEXELS not in wanted:
        return of_coords
    of_texels = into_texels(cotangent, *coords, axes=axes, dtype=texels.dtype, deterministic=deterministic)
    return of_texels, *of_coords


def coordinate_cotangents(
    cotangent,
    texels,
    coords: Coords,
    axes: tuple[Axis, ...],
    read_mode: ReadMode,
    dtype: np.dtype,
    wanted: tuple[int, ...],
) -> tuple[jax.Array, ...]:
    stored = texels.reshape(*flat_sizes(axes), texels.shape[-1])

    def along(place: Place, path: Path) -> jax.Array:
        texel = decode(gather(stored, place.stored), read_mode, dtype)
        return only_inside(place, over_channels(texel * cotangent))

    return slopes(coords, axes, tuple(k for k in wanted if k != TEXELS), along)


def over_channels(value: jax.Array) -> jax.Array:
    """The sum over channels, S + (1,). Few of them are added one by one: a reduction would be a loop of its own."""
    if value.shape[-1] > FEW_CHANNELS:
        return jnp.sum(value, -1, keepdims=True)
    return functools.reduce(jnp.add, jnp.split(value, value.shape[-1], -1))


def texels_shape(axes: tuple[Axis, ...], channels: int) -> tuple[int, ...]:
    """The shape of the texels that a walk over `axes` reads."""
    if axes[0].role is Role.LEVEL:
        return (*flat_sizes(axes), channels)
    return (*(axis.known_size for axis in axes), channels)


def coverage(coords: Coords, axes: tuple[Axis, ...]) -> tuple[jax.Array, jax.Array]:
    """How much of each footprint lies inside the texture, and whether all of its taps do; shape S."""
    total, everything = [], None
    for weight, _, steps in walks(coords, axes):
        share = jnp.asarray(weight, coords[-1].dtype)
        for step in steps:
            if step.taps[0].inside is None:
                continue
            weights = [jnp.asarray(w, share.dtype) for w in step.weights()]
            parts = (jnp.where(t.inside, w, 0) for t, w in zip(step.taps, weights) if t.inside is not None)
            share = share * functools.reduce(jnp.add, parts)
            everything = functools.reduce(both, (tap.inside for tap in step.taps), everything)
        total.append(share)
    assert everything is not None
    return functools.reduce(jnp.add, total), everything
