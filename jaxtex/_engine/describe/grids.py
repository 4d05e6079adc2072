"""Grids: static functions that compute the coordinates of a read from its operands, where they are used."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .coordinates import Arrays
from .cube import to_face
from .spec import Coords, Grid


class StoredOrder(NamedTuple):
    """A grid of coordinates in stored order, from a function that returns them in the caller's, x first.

    Attributes:
        affine_axes: if `function` is affine in its first operands, and these are the centers of pixels along x, y (and
            z), one apart: how many there are; else 0.
    """

    function: Callable[..., Arrays]
    affine_axes: int = 0

    def __call__(self, *operands: jax.Array) -> Coords:
        return covering(self.function(*operands)[::-1], operands)


def covering(coords: Coords, operands: Sequence[jax.Array]) -> Coords:
    """Coordinates, the first of them broadcast where no coordinate depends on some axis of the samples."""
    first, *rest = coords
    shape = jnp.broadcast_shapes(*(a.shape for a in operands))
    if jnp.broadcast_shapes(*(a.shape for a in coords)) != shape:
        first = jnp.broadcast_to(first, shape)
    return first, *rest


class OneMore(NamedTuple):
    """A grid with one more operand in front, which is the coordinate at `position`."""

    grid: Grid
    position: int

    def __call__(self, operand: jax.Array, *operands: jax.Array) -> Coords:
        coords = self.grid(*operands)
        return (*coords[: self.position], operand, *coords[self.position :])


class OnCube(NamedTuple):
    """A grid of a cube: from `front` operands that are coordinates and a direction, to face, v and u."""

    front: int

    def __call__(self, *operands: jax.Array) -> Coords:
        face, u, v = to_face(operands[self.front :])[0]
        return (*operands[: self.front], face, v, u)
