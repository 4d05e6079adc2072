"""The edge between a picture and what lies outside: as wide as a pixel of the output.

A texture unit mixes the border color with the outermost texels tap by tap. Made larger, a picture would get a dark
frame of half a texel, which may be many pixels wide. Here the picture is read with its edge repeated, and each pixel of
the output shows as much of it as the picture covers of the pixel.
"""

# pyright: strict, reportUnknownMemberType=false

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..._engine.stacks import numbers, split
from ...warp.images import footprint_of, grid_operands
from ..pictures.limits import Size

# A little steeper than one, so that rounding does not keep a pixel at the edge from being covered.
STEEPNESS = 1 + 2.0**-6


def coverage(
    function: Callable[..., tuple[Any, ...]], parameters: Sequence[jax.Array], *, source: Size, target: Size
) -> jax.Array:
    """How much of each pixel of the output the picture covers, from 0 to 1: (height, width, 1).

    On each axis of the input, the distance to the edge is counted in pixels of the output.

    Args:
        function: the coordinate function, with its `parameters`.
        source, target: width and height of the input and of the output.
    """
    operands = numbers(*split(grid_operands(tuple(parameters), target[::-1], 0)))
    points, sides = function(*operands), footprint_of(function, operands, 2)
    covered = jnp.ones((target[1], target[0]), jnp.float32)
    for axis, (point, size) in enumerate(zip(points, source)):
        step = jnp.hypot(sides[0][axis], sides[1][axis])
        # Next to a point at infinity differences are not finite; the picture ends there at once.
        step = jnp.where(jnp.isfinite(step) & (step > 0), step, 1)
        distance = jnp.where(jnp.isfinite(point), jnp.minimum(point, size - point), -jnp.inf)
        covered = covered * jnp.clip(0.5 + STEEPNESS * distance / step, 0, 1)
    return covered[..., None]


def over(values: jax.Array, border: jax.Array, covered: jax.Array) -> jax.Array:
    """Values over a border color, (channels,), as far as they cover it."""
    return values * covered + border.reshape(1, 1, -1) * (1 - covered)
