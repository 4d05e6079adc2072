"""How samples are dealt to the programs of a kernel and to their threads."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

WARP = 32
# How many threads of a warp lie side by side, in a tile that is as wide.
SIDE = 16
Mask = jax.Array | None


class Deal(NamedTuple):
    """Samples of `shape` in tiles, one for each program, so that neighbours read neighbouring texels.

    Attributes:
        shape: of the samples, batch axes first.
        tile: threads down and across; a thread has `group` samples, one below the other, or beside it in a flat deal.
        warp: how many threads of a warp lie side by side.
        flat: whether the samples lie in one row, whatever their shape.
    """

    shape: tuple[int, ...]
    tile: tuple[int, int]
    group: tuple[int, int]
    warp: int
    flat: bool

    @property
    def threads(self) -> int:
        return self.tile[0] * self.tile[1]

    @property
    def samples(self) -> int:
        """How many samples a thread has."""
        return math.prod(self.group)

    @property
    def extent(self) -> tuple[int, int]:
        """The rows and columns that are cut into tiles."""
        return (1, math.prod(self.shape)) if self.flat else (self.shape[-2], self.shape[-1])

    @property
    def tiles(self) -> tuple[int, int]:
        """How many tiles lie down and across."""
        down, across = (-(-n // (t * g)) for n, t, g in zip(self.extent, self.tile, self.group))
        return down, across

    @property
    def programs(self) -> int:
        return math.prod(self.tiles) * (1 if self.flat else math.prod(self.shape[:-2]))

    def sample(self, program: jax.Array, number: jax.Array | int) -> tuple[list[jax.Array], Mask]:
        """The index of one sample of each thread's group on every axis of `shape`, and whether there is such a one."""
        thread = jnp.arange(self.threads, dtype=jnp.int32)
        lane, warp, high = thread % WARP, thread // WARP, WARP // self.warp
        a_row = self.tile[1] // self.warp
        x, y = (warp % a_row) * self.warp + lane % self.warp, (warp // a_row) * high + lane // self.warp
        outer, row, column = unravelled(program, (1, *self.tiles))
        y = (row * self.tile[0] + y) * self.group[0] + (0 if self.flat else number)
        x = (column * self.tile[1] + x) * self.group[1] + (number if self.flat else 0)
        inside = [i < n for i, n, t, g in zip((y, x), self.extent, self.tile, self.group) if n % (t * g)]
        mask = functools.reduce(jnp.logical_and, inside) if inside else None
        if self.flat:
            return unravelled(x, self.shape), mask
        return [*unravelled(outer, self.shape[:-2]), y, x], mask

    def thread(self, program: jax.Array) -> jax.Array:
        """The number of each thread among those of all programs."""
        return program * self.threads + jnp.arange(self.threads, dtype=jnp.int32)

    def offset(self, index: list[jax.Array], shape: tuple[int, ...]) -> jax.Array:
        """Where the element at `index` of an array of `shape`, which broadcasts to the samples', stands."""
        strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
        parts = [i * stride for i, stride, n in zip(index, strides, shape) if n > 1]
        return functools.reduce(jnp.add, parts, jnp.zeros(self.threads, jnp.int32))

    def texture(self, index: list[jax.Array], textures: tuple[int, ...]) -> jax.Array:
        """The number of each sample's texture among those with these batch axes."""
        return self.offset(index[: len(textures)], textures)


def unravelled(index: jax.Array, shape: tuple[int, ...]) -> list[jax.Array]:
    """The index on each axis of `shape`; the first one is not bounded."""
    found = []
    for n in shape[:0:-1]:
        found.append(jax.lax.rem(index, jnp.int32(n)))
        index = jax.lax.div(index, jnp.int32(n))
    return [index, *found[::-1]] if shape else []


def deal(shape: tuple[int, ...], tile: tuple[int, int], group: int, batch: int) -> Deal:
    """Deals samples of `shape` in tiles, `group` to a thread; or in one row if they are too few across or down."""
    if len(shape) - batch >= 2 and shape[-1] >= tile[1] and shape[-2] >= tile[0]:
        return Deal(shape, tile, (group, 1), min(SIDE, tile[1]), False)
    return Deal(shape, (1, math.prod(tile)), (1, group), WARP, True)


def samples_shape(textures: tuple[int, ...], arrays) -> tuple[int, ...]:
    """The shape of the samples, from the batch axes of their textures and arrays that broadcast to them."""
    shapes = [tuple(a.shape) for a in arrays]
    return np.broadcast_shapes(*shapes, (*textures, *[1] * (len(shapes[0]) - len(textures))))
