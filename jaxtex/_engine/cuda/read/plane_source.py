"""The source of the kernel that reads planes: images whose channels come before their other axes."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...._tables.storage_formats import Decoding
from ...compute.texel_sums import power_of_two_below
from ...describe.spec import ReadSpec
from ...describe.storage import Shaped, slice_of
from ..build.arrays import ArrayRole, KernelArray, KernelArrays, operands_of
from ..build.source import Constant
from ..samples.sample_tiles import ReadThreads, SampleTiles, samples_shape
from .read_source import ReadSource, ReadValue

# The threads of a block, and the smallest number of blocks if there are enough samples.
THREADS, LEAST_BLOCKS = 512, 512
# The largest plane, in bytes: the shared memory of an H100's multiprocessor holds two of them, and that of any GPU that
# runs kernels holds one. A block takes several smaller planes, up to MOST_PLANES and GROUP_BYTES together.
PLANE_BYTES, GROUP_BYTES, MOST_PLANES = 96 * 2**10, 32 * 2**10, 8
# The samples of a thread at a time, times planes; and the largest number of taps. Each plane computes the weights anew.
MOST_READS, MOST_TAPS = 4, 4


class PlaneThreads(NamedTuple):
    """The division of a read of planes among blocks and threads.

    Attributes:
        tiles: the samples that a block reads at a time.
        planes: the number of planes that a block copies to shared memory, a group.
        groups: the number of groups of an image.
        shares: the number of blocks among which the samples of a group are divided.
    """

    tiles: SampleTiles
    images: int
    planes: int
    groups: int
    shares: int
    plane_texels: int

    @classmethod
    def of(cls, texels: Shaped, operands: Sequence[Shaped], spec: ReadSpec, batch: int) -> "PlaneThreads | None":
        """The division of a read; `None` if the kernel of planes does not support it, or would be slower."""
        textures, channels, plane = texels.shape[:batch], texels.shape[-1], math.prod(texels.shape[batch:-1])
        shape, plane_bytes = samples_shape(textures, spec.sample_shapes(operands)), plane * texels.dtype.itemsize
        if spec.several or spec.summed_axes or spec.has_color or spec.decoding is Decoding.SRGB:
            return None
        if not spec.planar or channels == 1 or plane_bytes > PLANE_BYTES or spec.num_taps > MOST_TAPS:
            return None
        if shape[:batch] != textures or len(shape) == batch:
            return None
        planes = math.gcd(channels, power_of_two_below(max(1, min(MOST_PLANES, GROUP_BYTES // plane_bytes))))
        tiles = SampleTiles(shape, 0, (1, 1, THREADS), (1, 1, max(1, MOST_READS // planes)), len(shape) - batch)
        images, groups = math.prod(textures), channels // planes
        shares = min(tiles.total // images, -(-LEAST_BLOCKS // (images * groups)))
        return cls(tiles, images, planes, groups, shares, plane)


class PlaneSource(ReadSource):
    """The source of the kernel. Its traced functions are those of a read of an image of one channel."""

    file, room, made_by = "read/planes.cu", "planes", "plane_source.py"

    def __init__(self, value: ReadValue, spec: ReadSpec, threads: PlaneThreads, arrays: KernelArrays):
        one = ReadThreads(threads.tiles, 1, 1, False, (), ())
        super().__init__(value, spec, 0, one, arrays, slice_of(arrays[ArrayRole.RESULT]), False, None)
        self.division = threads

    @property
    def num_blocks(self) -> int:
        return self.division.images * self.division.groups * self.division.shares

    @property
    def shared_bytes(self) -> int:
        texels = self.division.planes * self.division.plane_texels
        return texels * self.arrays[ArrayRole.TEXELS].dtype.itemsize

    def constants(self) -> list[Constant]:
        division, tiles = self.division, self.division.tiles
        return [
            Constant("steps", tiles.num_steps, "the samples of a thread at a time"),
            Constant("planes", division.planes, "the planes of a block"),
            Constant("groups", division.groups, "of planes of an image"),
            Constant("shares", division.shares, "the blocks of a group of planes"),
            Constant("plane_texels", division.plane_texels),
            Constant("samples_of_image", math.prod(tiles.extent)),
            Constant("tiles_of_image", math.prod(tiles.num_tiles)),
            Constant("width", 1, "the channels of a plane"),
            Constant("num_results", self.num_results),
        ]


def read_planes(
    value: ReadValue,
    texels: jax.Array,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    batch: int,
    threads: PlaneThreads,
) -> jax.Array:
    """The read of each sample, in an order of axes that lets XLA drop the moves of channels to and from the front."""
    shape, channels = threads.tiles.shape, texels.shape[-1]
    planes = jnp.moveaxis(texels, -1, batch)[..., None]
    own = jax.ShapeDtypeStruct((*shape[:batch], channels, *shape[batch:], 1), np.dtype(spec.dtype))
    given = [KernelArray(ArrayRole.TEXELS, planes), *operands_of(operands)]
    filled = PlaneSource(value, spec, threads, KernelArrays(given, [KernelArray(ArrayRole.RESULT, own)]))
    return jnp.moveaxis(filled.run("texture_read_planes")[ArrayRole.RESULT, 0][..., 0], batch, -1)
