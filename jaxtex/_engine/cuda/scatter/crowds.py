"""Choices by the number of samples that fall on each texel: the samples of a warp, and copies of the sums."""

import math

from ...compute.texel_sums import power_of_two_below
from ...describe.axis import Role
from ..samples.sample_source import AdjointPlan
from ..samples.sample_tiles import CROWD_STEPS, PULL_STEPS, STEPS, Lanes, SampleTiles, tiles_of

# A lane adds up runs of samples in one cell from so many samples for each texel on, times its channels squared.
# It takes more samples from so many on, times its channels.
RUN_CROWD, FAR_CROWD = 48, 1024
# From so many samples for each texel on, blocks add to copies of the texels: at most so many, of so many bytes in all.
COPIES_CROWD, MOST_COPIES, COPIES_BYTES = 32, 64, 2**20
# A warp sets the texture of its samples to zero if there are so many textures at least, of so many bytes at most.
LEAST_OWN, OWN_BYTES = 1024, 2**17


def window_tiles(plan: AdjointPlan, channels: int, adds: bool, remaining: bool) -> SampleTiles:
    """The tiles of the samples, each of which has a window.

    Args:
        adds: whether the kernel adds to texels.
        remaining: whether it takes the images whose texels have not looked for their samples.
    """
    lanes, dimensions = Lanes.of(channels), sum(axis.role is Role.SPACE for axis in plan.spec.axes)
    crowd = crowd_of(plan) if adds else 0
    pulls = bool(plan.wrt) and not adds_runs(crowd, lanes)
    steps = CROWD_STEPS if crowd * lanes.width >= FAR_CROWD else PULL_STEPS if pulls else STEPS
    return tiles_of(plan.shape, len(plan.textures), dimensions, lanes, steps, dimensions if remaining else 0)


def crowd_of(plan: AdjointPlan) -> float:
    """The samples for each texel."""
    return math.prod(plan.shape) / plan.num_texels


def num_copies(plan: AdjointPlan, width: int) -> int:
    """How many copies of all sums the blocks add to, so that they rarely meet at a texel: a power of two."""
    if crowd_of(plan) < COPIES_CROWD:
        return 1
    return power_of_two_below(max(1, min(MOST_COPIES, COPIES_BYTES // (4 * width * plan.num_texels))))


def has_own_tile(plan: AdjointPlan, samples: SampleTiles, width: int) -> bool:
    """Whether each texture has one tile of samples, whose warp sets it to zero first: of many textures, none large."""
    alone = samples.image_axes > 0 and math.prod(samples.num_tiles) == 1
    each = samples.images[: len(plan.textures)] == plan.textures and samples.total == math.prod(plan.textures)
    return alone and each and samples.total >= LEAST_OWN and 4 * width * plan.texels_per_texture <= OWN_BYTES


def adds_runs(crowd: float, lanes: Lanes) -> bool:
    """Whether so many samples fall on a texel that a lane adds up runs of them."""
    return crowd * lanes.width**2 >= RUN_CROWD
