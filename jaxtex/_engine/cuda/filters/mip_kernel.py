"""The kernels of a mip chain. A launch computes several levels; another adds the cotangents of all levels."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import jax

from ...compute.filters import levels_after, side_by_side
from ...compute.texel_sums import power_of_two_above
from ..build import launch
from ..build.arrays import ArrayRole, KernelArray, KernelArrays
from ..build.launch import LANES, Kernel
from ..build.source import SCALARS, Constant, config, header, program
from ..read.read_kernel import WIDTHS, width_of_part
from ..samples.sample_tiles import Extent

NAME, MADE_BY = "texture_mip_levels", "mip_kernel.py"
# The most texels that a lane loads, and the most lanes that share a texel.
MOST_ROWS, MOST_LANES = 8, 8
# The most warps of a block, and of one that computes all levels that remain.
WARPS, LAST_WARPS = 4, 16


class MipLevels(NamedTuple):
    """Successive levels of several chains, and the finer level from which kernels compute them.

    Attributes:
        images: the number of images of a level, such as layers, which are filtered separately.
        sizes: the sizes of the finer level: deep, down and across.
        count: the number of levels that are computed.
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
    def width(self) -> int:
        """The number of channels of a lane."""
        return width_of_part(self.channels)

    @property
    def lanes_of_texel(self) -> int:
        """The number of adjacent lanes that have the channels of one texel, or a part of them."""
        return min(power_of_two_above(-(-self.channels // self.width)), MOST_LANES)

    def texels(self, level: int) -> int:
        """The number of texels of a level of one chain; the finer level is level 0."""
        return self.images * math.prod(self.sizes_of(level))

    def sizes_of(self, level: int) -> Extent:
        deep, down, across = (max(n >> level, 1) for n in self.sizes)
        return deep, down, across

    def shape(self, level: int) -> tuple[int, ...]:
        """The shape of the array that holds one level of all chains."""
        return self.chains, self.texels(level), self.channels

    def covered(self, levels: int) -> Extent:
        """The sizes of the part of the finer level that one texel covers after so many levels."""
        deep, down, across = (min(n, 1 << levels) for n in self.sizes)
        return deep, down, across

    def levels_of_warp(self, levels: int) -> int:
        """How many of so many levels a warp computes alone, from the texels of its lanes."""
        columns = LANES // self.lanes_of_texel
        fits = lambda levels: math.prod(self.covered(levels)[:2]) <= MOST_ROWS
        return max(k for k in range(min(levels, columns.bit_length() - 1) + 1) if fits(k))

    def warps(self, levels: int) -> Extent:
        """The warps of a block that computes so many levels: deep, down and across."""
        (deep, down, across), columns = self.covered(levels), LANES // self.lanes_of_texel
        rows_deep, rows_down, _ = self.covered(self.levels_of_warp(levels))
        deep, down = deep // rows_deep, down // rows_down
        across = max(across, min(self.sizes[2], WARPS // (deep * down) * columns))
        return deep, down, -(-across // columns)

    @property
    def levels_of_block(self) -> int:
        """The number of levels that a block computes."""
        if math.prod(self.warps(self.count)) <= LAST_WARPS:
            return self.count
        return max(levels for levels in range(1, self.count) if math.prod(self.warps(levels)) <= WARPS)

    def launches(self) -> Iterator["MipLevels"]:
        """The levels that each launch computes."""
        levels = self
        while levels.count:
            count = levels.levels_of_block
            yield levels._replace(count=count, starts=levels.starts[: count + 1])
            rest = levels.count - count
            levels = levels._replace(sizes=levels.sizes_of(count), count=rest, starts=levels.starts[count:])

    def run(self, file: str, room: str, arrays: KernelArrays) -> jax.Array:
        """The result of a kernel.

        Args:
            room: the folder of the generated header that declares the kernel's arrays.
        """
        # What a block computes: its levels, its tile of the finest one, and its channels.
        (result,), lanes, (deep, down, across) = arrays.results, self.lanes_of_texel, self.sizes
        of_block = self.levels_of_block
        tile, warps = self.covered(of_block), self.warps(of_block)
        threads, blocks_of_texel = LANES * math.prod(warps), -(-self.channels // (self.width * lanes))
        tiles = deep // tile[0] * (down // tile[1]) * -(-across * lanes // (LANES * warps[2]))
        # The sizes, as the kernel has them.
        constants = (
            Constant("threads", threads, "of a block"),
            Constant("levels", self.count, "that the kernel computes"),
            Constant("levels_of_block", of_block, "that a block computes alone"),
            Constant("levels_of_warp", self.levels_of_warp(of_block), "that a warp computes alone"),
            Constant("images", self.images, "of a level"),
            *map(Constant, ("deep", "down", "across"), self.sizes, ("of the finer level", "", "")),
            *map(Constant, ("warps_deep", "warps_down", "warps_across"), warps, ("of a block", "", "")),
            Constant("channels", self.channels, "of a texel"),
            Constant("width", self.width, "the channels of a lane"),
            Constant("lanes_of_texel", lanes, "with different channels"),
            Constant("blocks_of_texel", blocks_of_texel, "with different channels"),
            Constant("is_aligned", self.width in WIDTHS and self.channels % self.width == 0),
            Constant("stores_finest", ArrayRole.VALUES in arrays, "whether the finer level is copied to the chain"),
            Constant("chain_texels", self.chain_texels, "the texels of a whole chain"),
            Constant("start_of", self.starts, "the first texel of a level in a chain"),
            Constant("level_texels", [self.texels(level) for level in range(self.count + 1)], "the texels of a level"),
        )
        # The headers, and the launch.
        headers = {
            "levels/config.cuh": config(MADE_BY, constants, f"typedef {result.c_type} Stored;\n"),
            f"{room}/traced.cuh": header(
                f"The kernel, by {MADE_BY}; no function of it is traced.",
                (SCALARS, "levels/config.cuh"),
                arrays.declared(),
                arrays.entry(NAME, "threads"),
            ),
        }
        num_blocks = self.chains * self.images * tiles * blocks_of_texel
        kernel = Kernel(program(file, headers), NAME, num_blocks, threads, headers)
        return launch.run(kernel, arrays.arguments, arrays.shapes, arrays.aliases)[0]


def computed_levels(shape: tuple[int, ...], ndim: int, num_levels: int, chains: int) -> MipLevels:
    """The levels of mip chains that kernels compute: those up to the first with an odd size above 1.

    Args:
        shape: the shape of the finest level.
        ndim: the number of axes before the channels that are halved.
    """
    *before, channels = shape
    images, (deep, down, across) = math.prod(before[:-ndim]), (*[1] * (3 - ndim), *before[-ndim:])
    sizes = deep, down, across
    even = ((n & -n).bit_length() - 1 for n in sizes if n & (n - 1))
    whole = MipLevels(chains, images, sizes, channels, min([num_levels - 1, *even]), 0, ())
    counts = [whole.texels(level) for level in range(num_levels)]
    starts = tuple(sum(counts[:level]) for level in range(whole.count + 1))
    return whole._replace(chain_texels=sum(counts), starts=starts)


def mip_chain(values: jax.Array, *, shape: tuple[int, ...], ndim: int, num_levels: int, adjoint: bool) -> jax.Array:
    """`compute.filters.chain_of`. Array operations compute the levels after one with an odd size."""
    # The levels that the kernel computes, and where those after them begin in a chain.
    batch, channels = values.shape[: -2 if adjoint else values.ndim - len(shape)], shape[-1]
    levels = computed_levels(shape, ndim, num_levels, math.prod(batch))
    coarse_shape = *shape[: -1 - ndim], *(max(n >> levels.count, 1) for n in shape[-1 - ndim : -1]), channels
    start, total = levels.starts[-1], levels.chain_texels
    end = start + levels.texels(levels.count)

    # Levels after one with an odd size, by array operations.
    def following(coarse: jax.Array) -> jax.Array:
        after = levels_after(coarse.reshape(levels.chains, *coarse_shape), ndim, num_levels - 1 - levels.count)
        return side_by_side(after, 1)

    # Forward: the kernel's levels first, then those that follow from the last of them.
    if not adjoint:
        chain = run_forward(levels, values.reshape(levels.shape(0)))
        if end < total:
            coarse = jax.lax.slice_in_dim(chain, start, end, axis=1)
            chain = jax.lax.dynamic_update_slice_in_dim(chain, following(coarse), end, 1)
        return chain.reshape(*batch, total, channels)
    # Transposed: first the levels that array operations compute, then those of the kernel.
    chain = values.reshape(levels.chains, total, channels)
    coarse = None
    if end < total:
        coarse = jax.lax.slice_in_dim(chain, start, end, axis=1)
        coarse = coarse + jax.linear_transpose(following, coarse)(jax.lax.slice_in_dim(chain, end, total, axis=1))[0]
    return run_adjoint(levels, chain, coarse).reshape(*batch, *shape)


def run_forward(levels: MipLevels, texels: jax.Array) -> jax.Array:
    """Chains as far as kernels compute them, (chains, texels, C).

    Args:
        texels: the finest levels, (chains, texels, C).
    """
    whole = jax.ShapeDtypeStruct((levels.chains, levels.chain_texels, levels.channels), texels.dtype)
    chain, given = None, [KernelArray(ArrayRole.VALUES, texels)]
    for of_launch in levels.launches():
        result = KernelArray(ArrayRole.CHAIN, whole, start=chain)
        arrays = KernelArrays(given, [result], {ArrayRole.VALUES: result.c_type})
        chain, given = of_launch.run("filters/levels.cu", "levels", arrays), []
    assert chain is not None
    return chain


def run_adjoint(levels: MipLevels, cotangent: jax.Array, coarse: jax.Array | None) -> jax.Array:
    """The cotangents of the finest levels.

    Args:
        cotangent: the cotangents of whole chains.
        coarse: the sum of all cotangents of the last level that kernels compute; `None` if `cotangent` has it.
    """
    given = [KernelArray(ArrayRole.CHAIN, cotangent)]
    given += [] if coarse is None else [KernelArray(ArrayRole.COARSE, coarse)]
    result = KernelArray(ArrayRole.RESULT, jax.ShapeDtypeStruct(levels.shape(0), cotangent.dtype))
    arrays = KernelArrays(given, [result], {ArrayRole.COARSE: result.c_type})
    return levels.run("filters/levels_adjoint.cu", "levels_adjoint", arrays)
