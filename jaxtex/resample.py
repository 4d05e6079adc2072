"""The read and its adjoint: a product over axes of taps, weights and addresses.

Nothing here knows a mode or a dimension. `read` and `splat` walk the same taps; they differ in what stands at the
end of the walk, a gather or a scatter. Both are linear in their first argument, and each is the other's transpose.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, PartitionSpec

from .address import ADDRESS_RULES
from .axis import Axis
from .formats import decode
from .modes import ReadMode
from .taps import taps

Coords = tuple[jax.Array, ...]
INDEX_LIMIT = 2**31


class Tap(NamedTuple):
    """One tap of one axis: the stored index, whether it is inside (`None`: always), and its weight."""

    index: jax.Array
    inside: jax.Array | None
    weight: jax.Array | float


def addressed_taps(coord: jax.Array, axis: Axis) -> list[Tap]:
    """The taps of `coord` on `axis`, addressed."""
    return [Tap(*ADDRESS_RULES[axis.address](tap, axis.size), weight) for tap, weight in taps(coord, axis)]


class Place(NamedTuple):
    """Where a walk over the axes stands: flat indices so far, the extent of the last one, and inside or not.

    Neighbouring axes share one flat index as long as an int32 can hold it. One index is the fastest; a texture of
    more than 2^31 texels needs two.
    """

    indices: tuple[jax.Array, ...] = ()
    extent: int = 1
    inside: jax.Array | None = None

    def step(self, tap: Tap, size: int) -> "Place":
        """One axis further, at `tap`."""
        inside = tap.inside if self.inside is None else self.inside if tap.inside is None else self.inside & tap.inside
        if self.indices and self.extent * size < INDEX_LIMIT:
            return Place((*self.indices[:-1], self.indices[-1] * size + tap.index), self.extent * size, inside)
        return Place((*self.indices, tap.index), size, inside)


def flat_sizes(sizes: tuple[int, ...]) -> list[int]:
    """The extents of the flat indices of a `Place` at the end of a walk over axes of `sizes`."""
    flat: list[int] = []
    for size in sizes:
        if flat and flat[-1] * size < INDEX_LIMIT:
            flat[-1] *= size
        else:
            flat.append(size)
    return flat


def weighted(weight: jax.Array | float, value: jax.Array) -> jax.Array:
    """`weight` times a value with channels; a weight of 1 leaves every bit as it is."""
    if isinstance(weight, jax.Array):
        return value * weight[..., None].astype(value.dtype)
    return value if weight == 1.0 else value * weight


def read(texels, *coords, axes: tuple[Axis, ...], read_mode: ReadMode, dtype: np.dtype):
    """Reads `texels` at `coords`, with zero outside.

    Args:
        texels: ``(*sizes, C)``, one size for each of `axes`.
        coords: one array an axis, in the order of `axes`, of one rank and of shapes that broadcast to S.

    Returns:
        S + (C,) of `dtype`, in which everything is summed.
    """
    stored = texels.reshape(*flat_sizes(texels.shape[:-1]), texels.shape[-1])
    all_taps = [addressed_taps(coord, axis) for coord, axis in zip(coords, axes)]

    def interpolate(k: int, place: Place) -> jax.Array:
        if k == len(axes):
            texel = decode(gather(stored, place.indices), read_mode, dtype)
            return texel if place.inside is None else jnp.where(place.inside[..., None], texel, 0)
        parts = [weighted(tap.weight, interpolate(k + 1, place.step(tap, axes[k].size))) for tap in all_taps[k]]
        return functools.reduce(jnp.add, parts)

    return interpolate(0, Place())


def splat(values, *coords, axes: tuple[Axis, ...], dtype: np.dtype):
    """The adjoint of `read` in its texels: adds `values`, S + (C,), into zero texels ``(*sizes, C)`` of `dtype`.

    Sums are taken in the dtype of `values`; weight outside is dropped.
    """
    sizes, channels = tuple(axis.size for axis in axes), values.shape[-1]
    total = jnp.zeros((*flat_sizes(sizes), channels), values.dtype)
    all_taps = [addressed_taps(coord, axis) for coord, axis in zip(coords, axes)]

    def distribute(k: int, place: Place, value: jax.Array, total: jax.Array) -> jax.Array:
        if k == len(axes):
            return scatter_add(total, place, value)
        for tap in all_taps[k]:
            total = distribute(k + 1, place.step(tap, axes[k].size), weighted(tap.weight, value), total)
        return total

    return distribute(0, Place(), values, total).reshape(*sizes, channels).astype(dtype)


def gather(stored: jax.Array, indices: tuple[jax.Array, ...]) -> jax.Array:
    """The texels at `indices`, all within bounds."""
    indices = tuple(jnp.broadcast_arrays(*indices))
    spec = explicit_spec(indices[0])
    placed = None if spec is None else PartitionSpec(*spec, None)
    return stored.at[indices].get(mode="promise_in_bounds", wrap_negative_indices=False, out_sharding=placed)


def scatter_add(total: jax.Array, place: Place, value: jax.Array) -> jax.Array:
    """`total` plus `value` at `place`, where it is inside."""
    indices, mode = place.indices, "promise_in_bounds"
    if place.inside is not None:  # an index past the end is dropped, without touching memory
        indices, mode = (jnp.where(place.inside, indices[0], total.shape[0]), *indices[1:]), "drop"
    indices = tuple(jnp.broadcast_to(i, value.shape[:-1]) for i in indices)
    placed = None if explicit_spec(indices[0]) is None else PartitionSpec(*[None] * total.ndim)
    return total.at[indices].add(value, mode=mode, wrap_negative_indices=False, out_sharding=placed)


def explicit_spec(x: jax.Array) -> PartitionSpec | None:
    """The partition spec of an array under explicit mesh axes, else None."""
    sharding = jax.typeof(x).sharding
    explicit = not sharding.mesh.empty and AxisType.Explicit in sharding.mesh.axis_types
    return sharding.spec if explicit else None


def coverage(coords: Coords, axes: tuple[Axis, ...]) -> tuple[jax.Array, jax.Array]:
    """How much of each footprint lies inside the texture, and whether all of its taps do; shape S."""
    weight, everything = jnp.ones((), coords[-1].dtype), jnp.ones((), bool)
    for coord, axis in zip(coords, axes):
        along = [(tap.inside, tap.weight) for tap in addressed_taps(coord, axis) if tap.inside is not None]
        if along:
            shares = (jnp.where(inside, jnp.asarray(w, weight.dtype), 0) for inside, w in along)
            weight = weight * functools.reduce(jnp.add, shares)
            everything = functools.reduce(jnp.logical_and, (inside for inside, _ in along), everything)
    return weight, everything
