"""The read and its adjoint: a product over axes of taps, weights and addresses.

Nothing here knows a mode or a dimension. `read` and `splat` walk the same taps; they differ in what stands at the
end of the walk, a gather or a scatter. Both are linear in their first argument, and each is the other's transpose.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from .axis import Axis, Role
from .formats import decode
from .indexing import gather, scatter
from .modes import ReadMode
from .places import Coords, Place, Step, both, flat_sizes, walks


def weighted(weight: jax.Array | float, value: jax.Array) -> jax.Array:
    """`weight` times a value with channels; a weight of 1 leaves every bit as it is."""
    if isinstance(weight, jax.Array):
        return value * weight[..., None].astype(value.dtype)
    return value if weight == 1.0 else value * weight


def read(texels, *coords, axes: tuple[Axis, ...], read_mode: ReadMode, dtype: np.dtype):
    """Reads `texels` at `coords`, with zero outside.

    Args:
        texels: ``(*sizes, C)``, one size for each of `axes`; or a mip chain, ``(total, C)``.
        coords: one array an axis, in the order of `axes`, of one rank and of shapes that broadcast to S.

    Returns:
        S + (C,) of `dtype`, in which everything is summed.
    """
    stored = texels.reshape(*flat_sizes(axes), texels.shape[-1])

    def interpolate(place: Place, steps: list[Step]) -> jax.Array:
        if not steps:
            texel = decode(gather(stored, place.stored), read_mode, dtype)
            return texel if place.inside is None else jnp.where(place.inside[..., None], texel, 0)
        step, *rest = steps
        parts = (
            weighted(weight, interpolate(place.step(tap, step.sizes), rest))
            for tap, weight in zip(step.taps, step.weights())
        )
        return functools.reduce(jnp.add, parts)

    parts = (weighted(weight, interpolate(place, steps)) for weight, place, steps in walks(coords, axes))
    return functools.reduce(jnp.add, parts)


def splat(values, *coords, axes: tuple[Axis, ...], dtype: np.dtype):
    """The adjoint of `read` in its texels: adds `values`, S + (C,), into zero texels ``(*sizes, C)`` of `dtype`.

    Sums are taken in the dtype of `values`; weight outside is dropped.
    """
    total = jnp.zeros((*flat_sizes(axes), values.shape[-1]), values.dtype)

    def distribute(place: Place, steps: list[Step], value: jax.Array, total: jax.Array) -> jax.Array:
        if not steps:
            return scatter(total, place.stored, place.inside, value, "add")
        step, *rest = steps
        for tap, weight in zip(step.taps, step.weights()):
            total = distribute(place.step(tap, step.sizes), rest, weighted(weight, value), total)
        return total

    for weight, place, steps in walks(coords, axes):
        total = distribute(place, steps, weighted(weight, values), total)
    sizes = total.shape[:-1] if axes[0].role is Role.LEVEL else tuple(axis.size for axis in axes)
    return total.reshape(*sizes, values.shape[-1]).astype(dtype)


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
