"""How samples are divided among warps and their lanes."""

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

# Deep, down and across.
Extent = tuple[int, int, int]
# The place of a sample in a kernel: the number of its image, and where it lies there.
PLACE = tuple((name, np.dtype(np.int32)) for name in ("outer", "z", "y", "x"))
# The place of a sample in a function that is given a `Position`.
PLACE_AT = tuple((f"at.{name}", dtype) for name, dtype in PLACE)
# A lane takes so many channels of a texel, or all if there are fewer.
WIDTH = 4
# The samples of a lane of a warp: of an image, of a volume, or of a row.
STEPS = {2: (1, 4, 2), 3: (4, 1, 2), 0: (1, 1, 8)}
# Where a lane also reads texels, for the cotangents of operands.
PULL_STEPS = {2: (1, 2, 2), 3: (2, 1, 2), 0: (1, 1, 8)}
# Where many samples fall on few texels.
CROWD_STEPS = {2: (1, 8, 4), 3: (8, 1, 4), 0: (1, 1, 32)}

# Where tiles would be less full than this, one of them is a whole image, of which a lane takes so many samples.
SPARSE, ROW_STEPS = 0.5, (1, 2, 3, 4, 6, 8)


class SampleTiles(NamedTuple):
    """Samples in tiles, each for the lanes of a warp or the threads of a block.

    Attributes:
        shape: of the samples, batch axes first.
        rank: how many of the last axes of `shape` are cut into tiles; 0 takes samples as a row.
        lanes: the lanes of a tile.
        steps: the samples of a lane, which lie side by side; in a row, as far apart as there are lanes.
        row_axes: how many of the last axes of `shape` a row runs over; 0 stands for all of them.
        spread: whether the samples of a lane lie as far apart as there are lanes across, in an image too.
    """

    shape: tuple[int, ...]
    rank: int
    lanes: Extent
    steps: Extent
    row_axes: int = 0
    spread: bool = False

    @property
    def image_axes(self) -> int:
        """The last axes of `shape`, which make an image that a tile does not leave; 0 if there is no such image."""
        return self.rank or self.row_axes

    @property
    def images(self) -> tuple[int, ...]:
        """The axes of `shape` that number images."""
        return self.shape[: len(self.shape) - self.image_axes] if self.image_axes else ()

    @property
    def num_steps(self) -> int:
        """The samples of a lane."""
        return math.prod(self.steps)

    @property
    def extent(self) -> Extent:
        """What is cut into tiles."""
        if self.rank == 0:
            return 1, 1, math.prod(self.shape[len(self.images) :])
        deep, down, across = (1,) * (3 - self.rank) + self.shape[len(self.shape) - self.rank :]
        return deep, down, across

    @property
    def tile(self) -> Extent:
        """The samples of a tile."""
        deep, down, across = (a * b for a, b in zip(self.lanes, self.steps))
        return deep, down, across

    @property
    def num_tiles(self) -> Extent:
        """The tiles of an image."""
        deep, down, across = (-(-n // t) for n, t in zip(self.extent, self.tile))
        return deep, down, across

    @property
    def total(self) -> int:
        """The tiles of all images."""
        return math.prod(self.num_tiles) * math.prod(self.images)

    def index_of(self, outer: jax.Array, z: jax.Array, y: jax.Array, x: jax.Array) -> list[jax.Array]:
        """The index of a sample on every axis of `shape`, from its place in an image, and the number of the image."""
        within = (z, y, x)[3 - self.rank :] if self.rank else unravelled(x, self.shape[len(self.images) :])
        return [*unravelled(outer, self.images), *within]

    def struct(self) -> str:
        """The struct that `position_of` in `position.cuh` takes."""
        numbers = {
            prefix + name: n
            for prefix, extent in (("", self.extent), ("lanes_", self.lanes), ("steps_", self.steps))
            for name, n in zip(("deep", "down", "across"), extent)
        }
        spread = Constant("spread", self.spread or not self.rank)
        return struct_of("Tiles", "How samples are divided.", [*starmap(Constant, numbers.items()), spread])


def slice_struct(name: str, found: Slice, channels: int) -> str:
    """The struct of a slice that `place_in` in `position.cuh` takes."""
    numbers = {"row": found.row, "start": found.start, "texels": found.count // channels, "channels": channels}
    return struct_of(name, "Where it lies in memory.", starmap(Constant, numbers.items()))


class Lanes(NamedTuple):
    """The channels of a texel among lanes.

    Attributes:
        channels: of a texel.
        width: the channels of a lane.
        per_sample: the lanes of a sample, a power of two; those beyond `parts` idle.
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
        """The lanes that a texel needs."""
        return -(-self.channels // self.width)

    @property
    def overlap(self) -> int:
        """How many channels of the last part belong to the part before."""
        return self.parts * self.width - self.channels

    @property
    def aligned(self) -> bool:
        """Whether a part begins at a multiple of its length in memory."""
        return (self.overlap == 0 and self.width in (1, 2)) or self.channels % 4 == 0


def tiles_of(
    shape: tuple[int, ...], batch: int, dimensions: int, lanes: Lanes, steps: Mapping[int, Extent], least: int = 0
) -> SampleTiles:
    """The tiles of a warp: blocks of an image or a volume, or a row of samples if it is too small.

    Args:
        steps: the samples of a lane, for each rank of tiles.
        least: the rank of the tiles even if the image is small.
    """
    free = LANES // lanes.per_sample
    for rank in range(min(dimensions, 3, len(shape) - batch), 1, -1):
        first = power_of_two_above(math.isqrt(free))
        low, high = sorted((first, free // first))
        down, across = (high, low) if rank == 3 else (low, high)  # a lane's block is longer in the other direction
        tiles = SampleTiles(shape, rank, (1, down, across), steps[rank])
        if rank == least or all(2 * n > t for n, t in zip(tiles.extent, tiles.tile)):
            return tiles if least else row_of_image(tiles, free) or tiles
    return SampleTiles(shape, 0, (1, 1, free), steps[0])


def row_of_image(tiles: SampleTiles, lanes: int) -> SampleTiles | None:
    """A tile that is an image as one row, if tiles cover much more than the image, and a lane takes few samples."""
    image = math.prod(tiles.extent)
    steps = next((n for n in ROW_STEPS if n * lanes >= image), None)
    covered = math.prod(tiles.num_tiles) * math.prod(tiles.tile)
    if steps is None or image > SPARSE * covered:
        return None
    return SampleTiles(tiles.shape, 0, (1, 1, lanes), (1, 1, steps), tiles.rank)


def offset(index: list[jax.Array], shape: tuple[int, ...]) -> jax.Array:
    """The element at `index` of an array of `shape`, which broadcasts to the samples'."""
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    parts = [i * stride for i, stride, n in zip(index, strides, shape) if n > 1]
    return functools.reduce(jnp.add, parts, jnp.zeros((1,), jnp.int32))


def unravelled(index: jax.Array, shape: tuple[int, ...]) -> list[jax.Array]:
    """The index on each axis of `shape`; the first one is not bounded."""
    found = []
    for n in shape[:0:-1]:
        found.append(jax.lax.rem(index, jnp.int32(n)))
        index = jax.lax.div(index, jnp.int32(n))
    return [index, *found[::-1]] if shape else []


def samples_shape(textures: tuple[int, ...], shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of the samples, from the batch axes of their textures and the shapes of what broadcasts to them."""
    return np.broadcast_shapes(*shapes, (*textures, *[1] * (len(shapes[0]) - len(textures))))
