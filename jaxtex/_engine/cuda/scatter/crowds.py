"""Choices that depend on the number of samples for each texel: the tiles of warps, and copies of the sums."""

import math
from collections.abc import Sequence

from ...compute.texel_sums import power_of_two_below
from ...describe.axis import Axis, Role
from ..samples.sample_source import AdjointPlan
from ..samples.sample_tiles import (
    ADD_SUM_STEPS,
    CROWD_STEPS,
    FULL_STEPS,
    MANY_TAPS_STEPS,
    PULL_STEPS,
    STEPS,
    SUM_STEPS,
    Lanes,
    SampleTiles,
    tiles_of,
)

# A lane adds up runs of samples in one cell if samples per texel, times the square of its channels, reach RUN_CROWD. It
# takes more samples if samples per texel, times its channels, reach FAR_CROWD.
RUN_CROWD, FAR_CROWD = 48, 1024
# From COPIES_CROWD samples per texel on, blocks add to copies of the texels: limits of their number and total bytes.
COPIES_CROWD, MOST_COPIES, COPIES_BYTES = 32, 64, 2**20
# From so many taps on, the lanes of a warp take the taps of one sample, instead of one sample each.
MANY_TAPS = 64
# The most taps of a sample whose texels fit into the registers of a thread.
MOST_TEXELS = 64
# A warp sets the texture of its samples to zero if there are so many textures at least, of so many bytes at most.
LEAST_OWN, OWN_BYTES = 1024, 2**17


def window_tiles(plan: AdjointPlan, channels: int, adds: bool, remaining: bool) -> SampleTiles:
    """The tiles of the samples, one window for each tile.

    Args:
        adds: whether the kernel adds to texels.
        remaining: whether the kernel takes only images that the gather kernel has not added.
    """
    lanes, dimensions = Lanes.of(channels), sum(axis.role is Role.SPACE for axis in plan.spec.axes)
    crowd = crowd_of(plan) if adds else 0
    pulls = bool(plan.wrt) and not adds_runs(crowd, lanes)
    steps = CROWD_STEPS if crowd * lanes.width >= FAR_CROWD else PULL_STEPS if pulls else STEPS
    if steps is STEPS and plan.reads_of_sum > 1:
        steps = ADD_SUM_STEPS
    if plan.shared:
        steps = SUM_STEPS
    many = has_many_taps(plan)
    if adds and many:
        steps = MANY_TAPS_STEPS
    if exceeds_registers(plan.spec.axes) and not plan.shared:
        steps = FULL_STEPS[adds]
    least = dimensions if remaining else 0
    return tiles_of(plan.shape, len(plan.textures), dimensions, lanes, steps, least, wide=many and not adds)


def has_many_taps(plan: AdjointPlan) -> bool:
    """Whether a sample has so many taps that texels and operands have a kernel each."""
    return taps_in_space(plan.spec.axes) >= MANY_TAPS


def taps_in_space(axes: Sequence[Axis]) -> int:
    """The number of taps of a sample in one level."""
    return math.prod(axis.kernel.num_taps for axis in axes if axis.role is Role.SPACE)


def exceeds_registers(axes: Sequence[Axis]) -> bool:
    """Whether a sample of one level has more texels than fit into the registers of a thread."""
    return taps_in_space(axes) > MOST_TEXELS and axes[0].role is not Role.LEVEL


def crowd_of(plan: AdjointPlan) -> float:
    """The mean number of samples per texel."""
    return math.prod(plan.shape) / plan.num_texels


def num_copies(crowd: float, numbers: int) -> int:
    """The number of copies of all sums, a power of two: blocks add to different ones, and rarely meet at a number.

    Args:
        crowd: the mean number of samples that add to a sum.
        numbers: of one copy.
    """
    if crowd < COPIES_CROWD:
        return 1
    return power_of_two_below(max(1, min(MOST_COPIES, COPIES_BYTES // (4 * numbers))))


def has_own_tile(plan: AdjointPlan, samples: SampleTiles, width: int) -> bool:
    """Whether the warp of a tile sets a texture to zero: textures have one tile each, are many, and none is large."""
    alone = samples.image_axes > 0 and math.prod(samples.num_tiles) == 1
    each = samples.images[: len(plan.textures)] == plan.textures and samples.total == math.prod(plan.textures)
    return alone and each and samples.total >= LEAST_OWN and 4 * width * plan.texels_per_texture <= OWN_BYTES


def adds_runs(crowd: float, lanes: Lanes) -> bool:
    """Whether a lane should add up runs of samples in one cell, as `crowd` samples per texel make these likely."""
    return crowd * lanes.width**2 >= RUN_CROWD
