"""One tile of a warped image. Sizes and the tile's origin are operands, so that a program serves images of many sizes.

A tile has the same bits as these pixels of `images.warp_image`, if texels are read as stored or as fractions.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..._engine.api import SizedTexture
from ..._reads import smoothed
from ..._tables.storage_formats import sum_dtype
from ...sampler import Sampler
from ..coordinate_functions import Arrays, GridFunction
from ..images import blends_integers, footprint_of, read_at


class Tile(NamedTuple):
    """A tile of the output, and the coordinate function.

    Attributes:
        function: a coordinate function, as in `grids`.
        parameters: of the function, each of shape (1, 1), or a field of the tile and one more pixel on each side.
        origin: the first row and the first column, int32, (2,).
        target: the height and the width of the output, int32, (2,).
        shape: the height and the width of the tile, which may reach beyond the output.
        within: whether pixels beyond the output are replaced by the nearest in it.
    """

    function: GridFunction
    parameters: tuple[jax.Array, ...]
    origin: jax.Array
    target: jax.Array
    shape: tuple[int, int]
    within: bool = False

    @property
    def numbers(self) -> Arrays:
        """The number of each row (height, 1), and of each column (1, width)."""
        rows, columns = (jnp.arange(n, dtype=jnp.int32) + self.origin[k] for k, n in enumerate(self.shape))
        if self.within:
            rows, columns = (jnp.minimum(numbers, self.target[k] - 1) for k, numbers in enumerate((rows, columns)))
        return rows[:, None], columns[None]

    @property
    def is_inside(self) -> jax.Array:
        """Whether each pixel lies in the output, of the shape of the tile."""
        rows, columns = self.numbers
        return (rows < self.target[0]) & (columns < self.target[1])

    @property
    def operands(self) -> Arrays:
        """The operands of the coordinate function: the centers of pixels, x first, and parameters."""
        dtype = sum_dtype(*(p.dtype for p in self.parameters))
        y, x = (number.astype(dtype) + 0.5 for number in self.numbers)
        inner = (p[1:-1, 1:-1] if is_field(p) else p for p in self.parameters)
        return x, y, *(p.astype(dtype) for p in inner)

    @property
    def points(self) -> Arrays:
        """The points of the pixels, x first."""
        return self.function(*self.operands)

    def footprint(self) -> tuple[Arrays, ...]:
        """The footprints of the pixels: the derivatives of the points along x and y, as in `images.footprint_of`."""
        if not any(map(is_field, self.parameters)):
            return footprint_of(self.function, self.operands, 2)
        # Beyond the tile lie the points of the pixels around it, or of the nearest in the output.
        numbers = [
            jnp.clip(jnp.arange(-1, n + 1, dtype=jnp.int32) + self.origin[k], 0, self.target[k] - 1)
            for k, n in enumerate(self.shape)
        ]
        dtype = sum_dtype(*(p.dtype for p in self.parameters))
        y, x = (number.astype(dtype) + 0.5 for number in numbers)
        points = jnp.broadcast_arrays(*self.function(x[None], y[:, None], *(p.astype(dtype) for p in self.parameters)))
        along_x = tuple(halved_difference(p[1:-1], numbers[1], 1) for p in points)
        along_y = tuple(halved_difference(p[:, 1:-1], numbers[0], 0) for p in points)
        return along_x, along_y


def is_field(parameter: jax.Array) -> bool:
    """Whether a parameter is a field."""
    return max(parameter.shape) > 1


def halved_difference(values: jax.Array, numbers: jax.Array, axis: int) -> jax.Array:
    """Central differences along an axis, one-sided where two neighbors have the same number."""
    n = values.shape[axis]
    before, after = (jax.lax.slice_in_dim(values, k, n - 2 + k, axis=axis) for k in (0, 2))
    steps = (numbers[2:] - numbers[:-2]).reshape([-1 if k == axis else 1 for k in range(values.ndim)])
    change = after - before
    return jnp.where(steps == 2, change * 0.5, jnp.where(steps == 1, change, 0))


def read_tile(texture: SizedTexture, tile: Tile, sampler: Sampler) -> jax.Array:
    """The read of a tile, (height, width, C), without antialiasing; integers as numbers."""
    as_numbers = blends_integers(texture.dtype, sampler)
    return read_at(texture, tile.function, tile.operands, sampler, as_numbers=as_numbers, materialized=False)


def smoothing_of(texture: SizedTexture, tile: Tile, sampler: Sampler) -> smoothed.Smoothing:
    """How far each pixel of a tile is smoothed."""
    return smoothed.smoothing_at(texture, tile.points, tile.footprint(), sampler, num_levels(texture.sizes))


def num_levels(sizes: Sequence[jax.Array]) -> jax.Array:
    """How many levels a chain of these sizes has."""
    longest = jnp.max(jnp.stack([size.reshape(()) for size in sizes]))
    return 32 - jax.lax.clz(longest)


def reads_needed(texture: SizedTexture, tile: Tile, sampler: Sampler) -> jax.Array:
    """The reads that the pixels of a tile need; see `smoothed.reads_needed`."""
    at = smoothing_of(texture, tile, sampler)
    level, share = (jnp.where(tile.is_inside, array, 0) for array in (at.level, at.share))
    return smoothed.reads_needed(at._replace(level=level, share=share))


def read_tile_smoothed(
    texture: SizedTexture, chain: SizedTexture | None, tile: Tile, sampler: Sampler, reads: jax.Array
) -> jax.Array:
    """The antialiased read of a tile, (height, width, C).

    Args:
        chain: the decoded mip chain. Without it, `reads` is below `smoothed.TWO_LEVELS`.
        reads: the reads that the output needs, int32; see `smoothed.reads_needed`.
    """
    at = smoothing_of(texture, tile, sampler)
    first = smoothed.sharp(texture, at, sampler, materialized=False)
    finest = functools.partial(smoothed.smooth, texture, at, sampler, materialized=False)
    # A tile may be sharp where others of the image are smoothed.
    reads = jnp.where(jnp.any(at.share > 0), reads, smoothed.SHARP)
    if chain is None:
        return smoothed.switched(at, reads, lambda: first, finest)
    in_chain = functools.partial(smoothed.smooth_in_chain, chain, chain.sizes[::-1], at, sampler)
    second = functools.partial(in_chain, second=True)
    return smoothed.switched(
        at, reads, lambda: first, finest, second, lambda: in_chain(num_levels=num_levels(texture.sizes))
    )
