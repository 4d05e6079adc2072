"""The interface of the engine: the names that `ndimage`, `warp`, `nn`, `rays` and `layers` may import of it.

A read is planned from a texture's layout and the operands of a grid, and then carried out.

- `Layout`: the static half of a texture, which gives the axes that a sampler reads.
- `SizedTexture`: a texture whose sizes are arrays, so that one program reads textures of many sizes.
- `Axis`: one axis of a read, with its size, filter and address rule.
- `WEIGHT`: the axis that multiplies a read by its coordinate, such as a weight that a grid computes.
- `Operand`: an array with one number of each sample, or a `Stacked` one.
- `Stacked`: an operand that holds several numbers of each sample, such as an array of points.
- `numbers`: the arguments of a grid, which are all numbers that its operands hold.
- `covering`: the coordinates that a grid returns, broadcast to the shape of the samples.
- `ReadArguments`: the arrays of a call: coordinates, layer, level and footprint.
- `Read`: a planned read, which may yet be weighted and summed, or read one of several heads.
- `plan_of_grid`: the read at the coordinates of a function, x first, by a sampler.
- `plan_of_axes`: the read at the coordinates of a grid, in stored order, along axes of the caller's own.
- `plan_of_pyramid`: the read of all levels of a pyramid of dense and hashed grids.
- `FLOAT`: the float arithmetic, whose `read` carries out the read of a texture.
- `read_texels`: a read of texels, of any number of axes, with a border color.
- `concatenated`: several reads at once, whose results stand side by side.
- `samples_of`: a function of one sample for all samples, by one kernel on a GPU.
- `read_folded`: the fold of a read's samples along an axis.
- `Fold`: the base of folds: functions of samples, taken in order.
- `to_position`: a coordinate on an axis as a position, in texels.
- `texels_of`: the weight, the place and the mask of each texel that samples read.
- `footprint_level`: the level of detail of a footprint, and the reads along it.
- `decode`: stored texels as the numbers that are filtered.
- `scaled`: arrays filtered along axes, each by a `ScaledFilter`.
- `ScaledFilter`: a filter along one axis, as wide as the step between samples.
- `ENTRIES_AT_ONCE`: how many terms `scaled` adds at once, for programs that add in the same order.
"""

# pyright: reportUnusedImport=false
# ruff: noqa: F401

import importlib
from typing import TYPE_CHECKING, Any

from .arithmetic import FLOAT, read_folded, read_texels
from .compute.filters import ENTRIES_AT_ONCE, ScaledFilter
from .compute.texel_value import decode
from .describe.axis import WEIGHT, Axis
from .describe.folds import Fold
from .describe.footprint import footprint_level
from .describe.operands import Operand, Stacked, covering, numbers
from .describe.plan import Layout, ReadArguments, SizedTexture, plan_of_axes, plan_of_grid
from .describe.spec import Read
from .rules.filters import scaled
from .walk.texel_walk import texels_of, to_position

if TYPE_CHECKING:
    from .describe.hashing import plan_of_pyramid
    from .rules.concatenated import concatenated
    from .rules.programs import samples_of

# Names that few calls use, and the modules that no other calls load.
_LATE = {
    "plan_of_pyramid": "describe.hashing",
    "concatenated": "rules.concatenated",
    "samples_of": "rules.programs",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(importlib.import_module(f".{_LATE[name]}", __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
