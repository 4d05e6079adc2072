"""Values of pixels beside the read: fractions, linear light, premultiplied alpha, and edges as wide as a pixel.

A texture unit blends the border color with the outermost texels tap by tap. A magnified picture would get a dark frame
of half a texel, which may be many pixels wide. Here the picture is read with its edge repeated, and the border color is
blended in by the covered share of each output pixel.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.barriers import one_by_one
from ..._tables.storage_formats import codes_of, light_of
from ..coordinate_functions import Arrays

# Slightly above one, so that rounding leaves no pixel at the edge uncovered.
STEEPNESS = 1 + 2.0**-6


def to_fractions(texels: jax.Array) -> jax.Array:
    """Stored integers as float32 from 0 to 1; floats unchanged."""
    if jnp.issubdtype(texels.dtype, jnp.floating):
        return texels
    return texels.astype(jnp.float32) / jnp.iinfo(texels.dtype).max


def premultiply(texels: jax.Array) -> jax.Array:
    """Texels as fractions, colors times alpha, so that transparent texels add no color to their neighbors."""
    values = to_fractions(texels)
    return jnp.concatenate([values[..., :-1] * values[..., -1:], values[..., -1:]], axis=-1)


def unpremultiply(filtered: jax.Array, nearest: jax.Array) -> jax.Array:
    """Stored pixels from premultiplied fractions.

    Args:
        filtered: premultiplied fractions, (..., channels), alpha last.
        nearest: the nearest stored texels. A transparent pixel takes their color, so that an identity changes nothing.
    """
    alpha = quantize(filtered[..., -1:], nearest.dtype)
    visible = alpha > 0
    color = quantize(filtered[..., :-1] / jnp.where(visible, filtered[..., -1:], 1), nearest.dtype)
    return jnp.concatenate([jnp.where(visible, color, nearest[..., :-1]), alpha], axis=-1)


def quantize(values: jax.Array, dtype: np.dtype[Any]) -> jax.Array:
    """Fractions as the nearest integers of `dtype`, half to even, clipped since a cubic filter overshoots."""
    return jnp.round(jnp.clip(values, 0, 1) * jnp.iinfo(dtype).max).astype(dtype)


def to_light(codes: jax.Array) -> jax.Array:
    """Linear light from codes; alpha, the last of 2 or 4 channels, stays."""
    return of_colors(codes, light_of(codes))


def to_codes(light: jax.Array) -> jax.Array:
    """Codes from linear light, clipped to [0, 1]; alpha stays."""
    return of_colors(light, codes_of(jnp.clip(light, 0, 1)))


def of_colors(before: jax.Array, after: jax.Array) -> jax.Array:
    """The colors of one array with the alpha of another."""
    if before.shape[-1] not in (2, 4):
        return after
    return jnp.concatenate([after[..., :-1], before[..., -1:]], axis=-1)


# Edges


def coverage(
    points: Arrays, sides: Sequence[Arrays], source: Sequence[int | jax.Array], shape: tuple[int, int]
) -> jax.Array:
    """The share of each output pixel that the picture covers, from 0 to 1: (height, width, 1).

    On each axis of the input, the distance to the edge is counted in pixels of the output.

    Args:
        points: of the pixels, x first, with their footprints, the `sides`.
        source: width and height of the input.
        shape: height and width of the output, or of a tile of it.
    """
    covered = jnp.ones(shape, jnp.float32)
    for distance, step in distances(points, sides, source):
        covered = covered * jnp.clip(0.5 + STEEPNESS * distance / step, 0, 1)
    return covered[..., None]


def distances(
    points: Arrays, sides: Sequence[Arrays], source: Sequence[int | jax.Array]
) -> Iterator[tuple[jax.Array, jax.Array]]:
    """The distance of points from the nearer edge on each axis, positive inside; and the length of a pixel there."""
    for axis, (point, size) in enumerate(zip(points, source)):
        step = jnp.hypot(sides[0][axis], sides[1][axis])
        # Next to a point at infinity differences are not finite; the edge is sharp there.
        step = jnp.where(jnp.isfinite(step) & (step > 0), step, 1)
        distance = jnp.where(jnp.isfinite(point), jnp.minimum(point, jnp.asarray(size, point.dtype) - point), -jnp.inf)
        yield distance, step


def may_be_covered(points: Arrays, sides: Sequence[Arrays], source: Sequence[int | jax.Array]) -> jax.Array:
    """False only where `coverage` is 0, also with the rounding of another program."""
    within = (distance > -step for distance, step in distances(points, sides, source))
    return functools.reduce(jnp.logical_and, within)


def over(values: jax.Array, border: jax.Array, covered: jax.Array) -> jax.Array:
    """Values blended over a border color, (channels,), by their coverage."""
    border = border.reshape(1, 1, -1)
    partly = one_by_one(values.shape[-1])((covered < 1)[..., 0])
    # A single product: in a sum of two, compilers may fuse either one, in each program another.
    return jnp.where(partly, border + covered * (values - border), values)
