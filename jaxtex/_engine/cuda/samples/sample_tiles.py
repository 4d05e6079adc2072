"""The division of samples among warps and their lanes."""

import functools
import math
from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...compute.texel_sums import power_of_two_above
from ...describe.storage import Slice
from ..build.launch import LANES
from ..build.source import Constant, struct_of

# Sizes along z, y and x: deep, down and across.
Extent = tuple[int, int, int]
# The place of a sample in a kernel: the number of its image, and its index there.
PLACE = tuple((name, np.dtype(np.int32)) for name in ("outer", "z", "y", "x"))
# The place of a sample in a function with the parameter `Position at`.
PLACE_AT = tuple((f"at.{name}", dtype) for name, dtype in PLACE)
# The largest number of channels of a lane.
WIDTH = 4
# The samples of a lane, for images (2), volumes (3) and rows (0).
STEPS = {2: (1, 4, 2), 3: (4, 1, 1), 0: (1, 1, 8)}
# The samples of a lane that also reads texels, for the cotangents of operands.
PULL_STEPS = {2: (1, 2, 2), 3: (2, 1, 1), 0: (1, 1, 8)}
# The samples of a lane that adds reads of sums to texels, and those of one that adds up what reads of a sum share.
ADD_SUM_STEPS = STEPS | {3: (4, 2, 1)}
SUM_STEPS = {2: (1, 1, 4), 3: (1, 1, 8), 0: (1, 1, 8)}
# The samples of a lane of a warp whose lanes take the taps of one sample after the other.
MANY_TAPS_STEPS = {2: (1, 4, 2), 3: (4, 2, 1), 0: (1, 1, 8)}
# The samples of a lane with more taps than its registers hold texels, by whether it adds to texels.
FULL_STEPS = {True: {2: (1, 4, 1), 3: (4, 1, 1), 0: (1, 1, 4)}, False: {2: (1, 1, 1), 3: (1, 1, 1), 0: (1, 1, 1)}}
# Where many samples fall on few texels.
CROWD_STEPS = {2: (1, 8, 4), 3: (8, 1, 4), 0: (1, 1, 32)}

# If a smaller share of the tiles' places is used, a tile is a whole image, and a lane takes one of ROW_STEPS samples.
SPARSE, ROW_STEPS = 0.5, (1, 2, 3, 4, 6, 8)


class SampleTiles(NamedTuple):
    """The division of samples into tiles, one for the lanes of a warp or the threads of a block.

    Attributes:
        shape: the shape of the samples, batch axes first.
        rank: the number of last axes of `shape` that are divided into tiles; 0 treats the samples as a row.
        steps: the samples of a lane. They are adjacent in an image or volume, and spread in a row.
        row_axes: the number of last axes of `shape` that form a row; 0 for all axes.
        spread: whether the samples of a lane are spread in images too: as far apart as there are lanes.
        by_column: whether a tile is followed by the one below it, not by the one beside it.
    """

    shape: tuple[int, ...]
    rank: int
    lanes: Extent
    steps: Extent
    row_axes: int = 0
    spread: bool = False
    by_column: bool = False

    @property
    def image_axes(self) -> int:
        """The number of last axes of `shape` that form an image, which contains its tiles; 0 if there is no image."""
        return self.rank or self.row_axes

    @property
    def images(self) -> tuple[int, ...]:
        """The sizes of the axes of `shape` before an image."""
        return self.shape[: len(self.shape) - self.image_axes] if self.image_axes else ()

    @property
    def num_steps(self) -> int:
        """The number of samples of a lane."""
        return math.prod(self.steps)

    @property
    def steps_along_last(self) -> bool:
        """Whether the samples of a lane lie along the last axis alone."""
        return self.rank > 1 and self.num_steps == self.steps[-1]

    @property
    def extent(self) -> Extent:
        """The size of an image or a row, which is divided into tiles."""
        if self.rank == 0:
            return 1, 1, math.prod(self.shape[len(self.images) :])
        deep, down, across = (1,) * (3 - self.rank) + self.shape[len(self.shape) - self.rank :]
        return deep, down, across

    @property
    def tile(self) -> Extent:
        """The size of a tile, in samples."""
        deep, down, across = (a * b for a, b in zip(self.lanes, self.steps))
        return deep, down, across

    @property
    def num_tiles(self) -> Extent:
        """The number of tiles of an image, along each axis."""
        deep, down, across = (-(-n // t) for n, t in zip(self.extent, self.tile))
        return deep, down, across

    @property
    def total(self) -> int:
        """The number of tiles of all images."""
        return math.prod(self.num_tiles) * math.prod(self.images)

    def index_of(self, outer: jax.Array, z: jax.Array, y: jax.Array, x: jax.Array) -> list[jax.Array]:
        """The index of a sample on every axis of `shape`, from the number of its image and its place there."""
        within = (z, y, x)[3 - self.rank :] if self.rank else unravelled(x, self.shape[len(self.images) :])
        return [*unravelled(outer, self.images), *within]

    def struct(self) -> str:
        """The struct `Tiles` for `position_of` in `position.cuh`."""
        numbers = {
            prefix + name: n
            for prefix, extent in (("", self.extent), ("lanes_", self.lanes), ("steps_", self.steps))
            for name, n in zip(("deep", "down", "across"), extent)
        }
        flags = Constant("spread", self.spread or not self.rank), Constant("by_column", self.by_column)
        return struct_of("Tiles", "How samples are divided among lanes.", [*starmap(Constant, numbers.items()), *flags])


def slice_struct(name: str, taken: Slice, channels: int) -> str:
    """The struct of a slice for `place_in` in `position.cuh`."""
    numbers = {"row": taken.row, "start": taken.start, "texels": taken.count // channels, "channels": channels}
    return struct_of(name, "Which numbers of each row of an array are texels.", starmap(Constant, numbers.items()))


class Lanes(NamedTuple):
    """The division of a texel's channels among lanes.

    Attributes:
        width: the number of channels of a lane.
        per_sample: the number of lanes of a sample, a power of two; lanes beyond `parts` idle.
    """

    channels: int
    width: int
    per_sample: int

    @classmethod
    def of(cls, channels: int) -> "Lanes":
        width = min(channels, WIDTH)
        while -(-channels // width) > LANES:
            width *= 2
        return cls(channels, width, power_of_two_above(-(-channels // width)))

    @property
    def parts(self) -> int:
        """The number of lanes that a texel needs."""
        return -(-self.channels // self.width)

    @property
    def overlap(self) -> int:
        """The number of channels that the last lane shares with the one before."""
        return self.parts * self.width - self.channels

    @property
    def aligned(self) -> bool:
        """Whether the channels of every lane are aligned for a vector load."""
        return (self.overlap == 0 and self.width in (1, 2)) or self.channels % 4 == 0

    def struct(self) -> str:
        """The struct `Channels` for `samples.cuh`."""
        numbers = {"count": self.channels, "width": self.width, "parts": self.parts, "aligned": self.aligned}
        return struct_of("Channels", "How the channels of a texel are divided.", starmap(Constant, numbers.items()))


def tiles_of(
    shape: tuple[int, ...],
    batch: int,
    dimensions: int,
    lanes: Lanes,
    steps: Mapping[int, Extent],
    least: int = 0,
    wide: bool = False,
) -> SampleTiles:
    """The tiles of warps: blocks of an image or a volume, or rows of samples if the image is too small.

    Args:
        dimensions: the number of filtered axes.
        steps: the samples of a lane, for each rank of tiles.
        least: the rank of the tiles even if the image is small; 0 for none.
        wide: whether the lanes of a volume lie in rows of twice the length, so that they read fewer rows of texels.
    """
    free = LANES // lanes.per_sample
    for rank in range(min(dimensions, 3, len(shape) - batch), 1, -1):
        first = power_of_two_above(math.isqrt(free))
        down, across = sorted((first, free // first))
        if wide and rank == 3 and down > 1:
            down, across = down // 2, across * 2
        tiles = SampleTiles(shape, rank, (1, down, across), steps[rank])
        if rank == least or all(2 * n > t for n, t in zip(tiles.extent, tiles.tile)):
            return tiles if least else row_of_image(tiles, free) or tiles
    return SampleTiles(shape, 0, (1, 1, free), steps[0])


def row_of_image(tiles: SampleTiles, lanes: int) -> SampleTiles | None:
    """Tiles that are whole images, as rows; `None` if `tiles` are well filled, or an image is too large for a tile."""
    image = math.prod(tiles.extent)
    steps = next((n for n in ROW_STEPS if n * lanes >= image), None)
    covered = math.prod(tiles.num_tiles) * math.prod(tiles.tile)
    if steps is None or image > SPARSE * covered:
        return None
    return SampleTiles(tiles.shape, 0, (1, 1, lanes), (1, 1, steps), tiles.rank)


def offset(index: list[jax.Array], shape: tuple[int, ...]) -> jax.Array:
    """The offset of the element at `index` in an array of `shape`, which broadcasts to the samples' shape."""
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    parts = [i * stride for i, stride, n in zip(index, strides, shape) if n > 1]
    return functools.reduce(jnp.add, parts, jnp.zeros((1,), jnp.int32))


def unravelled(index: jax.Array, shape: tuple[int, ...]) -> list[jax.Array]:
    """The index on each axis of `shape`, from a flat index; the first one may exceed its size."""
    inner = []
    for n in shape[:0:-1]:
        inner.append(jax.lax.rem(index, jnp.int32(n)))
        index = jax.lax.div(index, jnp.int32(n))
    return [index, *inner[::-1]] if shape else []


def samples_shape(textures: tuple[int, ...], shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of the samples, from the batch axes of textures and the shapes of arrays that broadcast to samples."""
    return np.broadcast_shapes(*shapes, (*textures, *[1] * (len(shapes[0]) - len(textures))))


class ReadThreads(NamedTuple):
    """How a read is divided among threads.

    Attributes:
        tiles: the samples of a block.
        parts: the number of threads of a sample.
        width: the number of channels of a thread.
        aligned: whether the channels of every thread are aligned for a vector load.
        summed: the sizes of the sample axes along which the result is summed.
        along: the positions of these axes.
        in_lines: whether warps load the coordinates of samples, and store results, in lines of memory.
    """

    tiles: SampleTiles
    parts: int
    width: int
    aligned: bool
    summed: tuple[int, ...]
    along: tuple[int, ...]
    in_lines: bool = False

    def index_of(self, place: Sequence[jax.Array], number: Sequence[jax.Array]) -> list[jax.Array]:
        """The index of a sample on each axis. `number`, the group and the place there, is that of a sample of a sum."""
        index = self.tiles.index_of(*place)
        if self.summed:
            group, last = number
            for axis, i in zip(self.along, (*unravelled(group, self.summed[:-1]), last)):
                index.insert(axis, i)
        return index

    def first_channel(self, part: jax.Array, channels: int) -> jax.Array:
        """The first channel of a thread. If `width` does not divide `channels`, the last two threads share channels."""
        first = part * self.width
        return first if channels % self.width == 0 else jnp.minimum(first, channels - self.width)
