"""How samples are divided among the programs of a kernel and their threads."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .sample_tiles import unravelled

WARP = 32
# How many threads of a warp lie side by side, in a tile that is as wide.
SIDE = 16
Mask = jax.Array | None


class Tiling(NamedTuple):
    """Samples in tiles, one for each program, so that neighbors read neighboring texels.

    Attributes:
        shape: of the samples, batch axes first.
        tile: threads down and across.
        samples_per_thread: down and across: one below the other, or side by side in a flat tiling.
        warp_width: how many threads of a warp lie side by side.
        flat: whether the samples are taken as one row, whatever their shape.
    """

    shape: tuple[int, ...]
    tile: tuple[int, int]
    samples_per_thread: tuple[int, int]
    warp_width: int
    flat: bool

    @property
    def num_threads(self) -> int:
        """The threads of a program."""
        return self.tile[0] * self.tile[1]

    @property
    def num_samples(self) -> int:
        """The samples of a thread."""
        return math.prod(self.samples_per_thread)

    @property
    def extent(self) -> tuple[int, int]:
        """The rows and columns that are cut into tiles."""
        return (1, math.prod(self.shape)) if self.flat else (self.shape[-2], self.shape[-1])

    @property
    def num_tiles(self) -> tuple[int, int]:
        """The tiles down and across."""
        down, across = (-(-n // (t * g)) for n, t, g in zip(self.extent, self.tile, self.samples_per_thread))
        return down, across

    @property
    def num_programs(self) -> int:
        return math.prod(self.num_tiles) * (1 if self.flat else math.prod(self.shape[:-2]))

    def sample(self, program: jax.Array, number: jax.Array | int) -> tuple[list[jax.Array], Mask]:
        """One sample of each thread: its index on every axis of `shape`, and a mask of the samples that exist."""
        thread = jnp.arange(self.num_threads, dtype=jnp.int32)
        lane, warp, height = thread % WARP, thread // WARP, WARP // self.warp_width
        warps_across = self.tile[1] // self.warp_width
        x = (warp % warps_across) * self.warp_width + lane % self.warp_width
        y = (warp // warps_across) * height + lane // self.warp_width
        outer, row, column = unravelled(program, (1, *self.num_tiles))
        y = (row * self.tile[0] + y) * self.samples_per_thread[0] + (0 if self.flat else number)
        x = (column * self.tile[1] + x) * self.samples_per_thread[1] + (number if self.flat else 0)
        sizes = zip((y, x), self.extent, self.tile, self.samples_per_thread)
        inside = [i < n for i, n, t, g in sizes if n % (t * g)]
        mask = functools.reduce(jnp.logical_and, inside) if inside else None
        if self.flat:
            return unravelled(x, self.shape), mask
        return [*unravelled(outer, self.shape[:-2]), y, x], mask

    def thread(self, program: jax.Array) -> jax.Array:
        """The number of each thread among those of all programs."""
        return program * self.num_threads + jnp.arange(self.num_threads, dtype=jnp.int32)

    def offset(self, index: list[jax.Array], shape: tuple[int, ...]) -> jax.Array:
        """The element at `index` of an array of `shape`, which broadcasts to the samples'."""
        strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
        parts = [i * stride for i, stride, n in zip(index, strides, shape) if n > 1]
        return functools.reduce(jnp.add, parts, jnp.zeros(self.num_threads, jnp.int32))

    def texture(self, index: list[jax.Array], textures: tuple[int, ...]) -> jax.Array:
        """The number of each sample's texture among those with these batch axes."""
        return self.offset(index[: len(textures)], textures)


def tile_samples(shape: tuple[int, ...], tile: tuple[int, int], samples_per_thread: int, batch: int) -> Tiling:
    """A tiling of samples of `shape`; in one row if they are too few across or down."""
    if len(shape) - batch >= 2 and shape[-1] >= tile[1] and shape[-2] >= tile[0]:
        return Tiling(shape, tile, (samples_per_thread, 1), min(SIDE, tile[1]), False)
    return Tiling(shape, (1, math.prod(tile)), (1, samples_per_thread), WARP, True)

