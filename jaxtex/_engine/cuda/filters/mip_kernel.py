"""The kernels of a mip chain. A launch computes several levels, or adds the cotangents of several levels."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax

from ...compute.filters import levels_after, side_by_side
from ..build import launch
from ..build.arrays import ArrayRole, Filled, KernelArray, KernelArrays
from ..build.launch import LANES, Kernel
from ..build.source import SCALARS, Constant, config, header, program
from ..read.read_kernel import WIDTHS, width_of_part
from ..samples.sample_tiles import Extent
from ..trace.elementwise import C_TYPES

THREADS = 128
NAME, MADE_BY = "texture_mip_levels", "mip_kernel.py"
# A lane loads at most LARGE_ROWS texels, because many lanes load at the same time. In a level of up to SMALL_LEVEL
# texels there are few lanes, and each loads at most SMALL_ROWS: a launch takes less time than the loads of one lane.
LARGE_ROWS, SMALL_ROWS, SMALL_LEVEL = 8, 4, 2**16


class MipLevels(NamedTuple):
    """The levels that one launch computes from a finer level, for several chains.

    Attributes:
        images: the number of images of a level, such as layers, which are filtered separately.
        sizes: the sizes of the finer level: deep, down and across.
        count: the number of levels that the launch computes.
        chain_texels: the number of texels of a whole chain.
        starts: the first texel in a chain of the finer level, and of each computed level.
    """

    chains: int
    images: int
    sizes: Extent
    channels: int
    count: int
    chain_texels: int
    starts: tuple[int, ...]

    @property
    def is_halved(self) -> tuple[bool, bool, bool]:
        """Whether each axis is halved: axes of one texel are not."""
        deep, down, across = (n > 1 for n in self.sizes)
        return deep, down, across

    @property
    def rows(self) -> tuple[int, int]:
        """The number of texels of a lane along the depth, and down a column."""
        deep, down, _ = (1 << self.count if halved else 1 for halved in self.is_halved)
        return deep, down

    def texels(self, level: int) -> int:
        """The number of texels of a level of one chain; the finer level is level 0."""
        return self.images * math.prod(n >> level if halved else n for n, halved in zip(self.sizes, self.is_halved))

    def shape(self, level: int) -> tuple[int, ...]:
        """The shape of the array that holds one level of all chains."""
        return self.chains, self.texels(level), self.channels

    def run(self, file: str, room: str, arrays: KernelArrays, *, stores_finest: bool = False) -> Filled:
        """The results of a kernel.

        Args:
            room: the folder of the generated header that declares the kernel's arrays.
            stores_finest: whether the kernel copies the finer level into the chain.
        """
        dtype, width = arrays.find(ArrayRole.CHAIN).array.dtype, width_of_part(self.channels)
        parts, (deep, down, across), rows = -(-self.channels // width), self.sizes, self.rows
        warps = self.chains * self.images * (deep // rows[0]) * (down // rows[1]) * -(-across // LANES) * parts
        constants = (
            Constant("threads", THREADS, "of a block"),
            Constant("levels", self.count, "that the kernel computes"),
            Constant("chains", self.chains),
            Constant("images", self.images, "of a level"),
            *map(Constant, ("deep", "down", "across"), self.sizes, ("of the finer level", "", "")),
            *map(Constant, ("is_deep_halved", "is_down_halved"), self.is_halved),
            *map(Constant, ("rows_deep", "rows_down"), rows, ("the texels of a lane", "")),
            Constant("channels", self.channels, "of a texel"),
            Constant("width", width, "the channels of a lane"),
            Constant("parts", parts, "the lanes of a texel"),
            Constant("is_aligned", width in WIDTHS and self.channels % width == 0),
            Constant("stores_finest", stores_finest, "whether the finer level is copied to the chain"),
            Constant("chain_texels", self.chain_texels, "the texels of a whole chain"),
            Constant("start_of", self.starts, "the first texel of a level in a chain"),
            Constant("level_texels", [self.texels(level) for level in range(self.count + 1)], "the texels of a level"),
        )
        headers = {
            "mips/config.cuh": config(MADE_BY, constants, f"typedef {C_TYPES[dtype.name]} Stored;\n"),
            f"{room}/traced.cuh": header(
                f"The kernel, by {MADE_BY}; no function of it is traced.",
                (SCALARS, "mips/config.cuh"),
                arrays.declared(),
                arrays.entry(NAME, "threads"),
            ),
        }
        blocks = -(-warps * LANES // THREADS)
        kernel = Kernel(program(file, headers), NAME, blocks, THREADS, headers)
        return arrays.collected(launch.run(kernel, arrays.arguments, arrays.shapes, arrays.aliases))


def launches_of(shape: tuple[int, ...], ndim: int, num_levels: int, chains: int) -> list[MipLevels]:
    """The launches that compute mip chains. They end at the first level with an odd size.

    Args:
        shape: the shape of the finest level.
        ndim: the number of axes before the channels that are halved.
    """
    *before, channels = shape
    images, sizes = math.prod(before[:-ndim]), (*[1] * (3 - ndim), *before[-ndim:])
    halved = lambda level: (max(n >> level, 1) for n in sizes)
    counts = [images * math.prod(halved(level)) for level in range(num_levels)]
    starts, first, found = [sum(counts[:level]) for level in range(num_levels)], 0, list[MipLevels]()
    while count := levels_at_once(tuple(halved(first)), counts[first], num_levels - 1 - first):
        deep, down, across = halved(first)
        of_launch = tuple(starts[first : first + count + 1])
        found.append(MipLevels(chains, images, (deep, down, across), channels, count, sum(counts), of_launch))
        first += count
    return found


def levels_at_once(sizes: Sequence[int], texels: int, most: int) -> int:
    """The number of levels that one launch computes; 0 if a kernel cannot compute the next level.

    Args:
        sizes: the sizes of the finer level: deep, down and across.
        texels: the number of texels of the finer level.
    """
    if sizes[-1] == 1:
        return 0
    rows = SMALL_ROWS if texels <= SMALL_LEVEL else LARGE_ROWS
    axes = sum(n > 1 for n in sizes[:-1])
    fitting = (rows.bit_length() - 1) // axes if axes else LANES.bit_length() - 1
    even = ((n & -n).bit_length() - 1 for n in sizes if n > 1)
    return min(most, max(fitting, 1), *even)


def mip_chain(values: jax.Array, *, shape: tuple[int, ...], ndim: int, num_levels: int, adjoint: bool) -> jax.Array:
    """`compute.filters.chain_of`. Array operations compute the levels after one with an odd size."""
    batch, channels = values.shape[: -2 if adjoint else values.ndim - len(shape)], shape[-1]
    launches = launches_of(shape, ndim, num_levels, math.prod(batch))
    chains, last, count = launches[0].chains, launches[-1], sum(levels.count for levels in launches)
    coarse_shape = *shape[: -1 - ndim], *(max(n >> count, 1) for n in shape[-1 - ndim : -1]), channels
    start, end, total = last.starts[-1], last.starts[-1] + last.texels(last.count), last.chain_texels

    def following(coarse: jax.Array) -> jax.Array:
        return side_by_side(levels_after(coarse.reshape(chains, *coarse_shape), ndim, num_levels - 1 - count), 1)

    if not adjoint:
        chain, coarse = run_forward(launches, values.reshape(launches[0].shape(0)))
        if end < total:
            chain = jax.lax.dynamic_update_slice_in_dim(chain, following(coarse), end, 1)
        return chain.reshape(*batch, total, channels)
    chain = values.reshape(chains, total, channels)
    coarse = jax.lax.slice_in_dim(chain, start, end, axis=1)
    if end < total:
        coarse = coarse + jax.linear_transpose(following, coarse)(jax.lax.slice_in_dim(chain, end, total, axis=1))[0]
    return run_adjoint(launches, chain, coarse).reshape(*batch, *shape)


def run_forward(launches: Sequence[MipLevels], texels: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Chains as far as the launches compute them, and their last computed levels: (chains, texels, C) each.

    Args:
        texels: the finest levels, (chains, texels, C).
    """
    chain = None
    for levels in launches:
        whole = jax.ShapeDtypeStruct((levels.chains, levels.chain_texels, levels.channels), texels.dtype)
        coarse = jax.ShapeDtypeStruct(levels.shape(levels.count), texels.dtype)
        results = [KernelArray(ArrayRole.CHAIN, whole, start=chain), KernelArray(ArrayRole.COARSE, coarse)]
        arrays = KernelArrays([KernelArray(ArrayRole.VALUES, texels)], results)
        filled = levels.run("filters/levels.cu", "mips", arrays, stores_finest=chain is None)
        chain, texels = filled[ArrayRole.CHAIN, 0], filled[ArrayRole.COARSE, 0]
    assert chain is not None
    return chain, texels


def run_adjoint(launches: Sequence[MipLevels], cotangent: jax.Array, total: jax.Array) -> jax.Array:
    """The cotangents of the finest levels.

    Args:
        cotangent: the cotangents of whole chains.
        total: the sum of all cotangents of the last level that the launches compute.
    """
    for levels in reversed(launches):
        given = [KernelArray(ArrayRole.CHAIN, cotangent), KernelArray(ArrayRole.COARSE, total)]
        finer = jax.ShapeDtypeStruct(levels.shape(0), cotangent.dtype)
        arrays = KernelArrays(given, [KernelArray(ArrayRole.RESULT, finer)])
        total = levels.run("filters/levels_adjoint.cu", "mips_adjoint", arrays)[ArrayRole.RESULT, 0]
    return total
