"""The base of the kernels of an adjoint: their static side, and how channels and samples lie in memory."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from ...describe.axis import Axis, Role
from ...describe.spec import ReadSpec, Wrt
from ...describe.storage import slice_of
from ...walk.texel_order import flat_sizes
from ..build.arrays import ArrayRole
from ..build.source import Constant, KernelSource, struct_of
from ..trace.emitter import DeviceFunctions, Scalar
from .sample_tiles import PLACE_AT, Lanes, SampleTiles, offset, slice_struct

# Where functions find the arrays of a kernel, and the sample that they are called for.
ARRAYS, AT = "const Arrays& arrays", "Position at"


def names_of_axes(axes: Sequence[Axis]) -> list[str]:
    """The axes of a read by name, such as "layer" or "y"."""
    space = [k for k, axis in enumerate(axes) if axis.role is Role.SPACE]
    letters = dict(zip(reversed(space), "xyz"))
    return [letters.get(k, str(axis.role)) for k, axis in enumerate(axes)]


class AdjointPlan(NamedTuple):
    """The static side of an adjoint.

    Attributes:
        wrt: the operands that have a cotangent.
        shape: of the samples, batch axes first.
        read_from, textures: the batch axes of the textures that are read, and of those that are added to.
        reach: of a texture in three arrays, how many texels lie on each side of its own; else `None`.
        only_within: of a texture that is stored in part, the part, as in `other_part`, that must hold all texels of a
            sample, or the sample is not added; `None` if all are added.
    """

    spec: ReadSpec
    wrt: Wrt
    shape: tuple[int, ...]
    read_from: tuple[int, ...]
    textures: tuple[int, ...]
    reach: int | None = None
    only_within: tuple[int, int] | None = None

    def of_texels(self, **changes: Any) -> "AdjointPlan":
        """The plan for the cotangents of texels alone, with changes."""
        return self._replace(wrt=(), **changes)

    @property
    def texels_per_texture(self) -> int:
        return flat_sizes(self.spec.axes)[0]

    @property
    def num_texels(self) -> int:
        """The texels of all textures that are added to."""
        return math.prod(self.textures) * self.texels_per_texture


class SampleSource(KernelSource):
    """The source of a kernel of an adjoint.

    Attributes:
        samples: how samples are divided, which says how their places are counted.
    """

    samples: SampleTiles

    def __init__(self, plan: AdjointPlan):
        super().__init__()
        self.plan, self.spec = plan, plan.spec

    def includes(self) -> tuple[str, ...]:
        return "samples/samples.cuh", f"{self.room}/config.cuh"

    @functools.cached_property
    def lanes(self) -> Lanes:
        """The channels of a texel among threads."""
        return Lanes.of(self.arrays[ArrayRole.VALUES].shape[-1])

    def structs_of_values(self) -> list[str]:
        """How channels are divided among threads, and where values lie."""
        lanes = self.lanes
        numbers = {"count": lanes.channels, "width": lanes.width, "parts": lanes.parts, "aligned": lanes.aligned}
        channels = (Constant(name, value) for name, value in numbers.items())
        return [
            struct_of("Channels", "How the channels of a texel are divided.", channels),
            slice_struct("ValueSlice", slice_of(self.arrays[ArrayRole.VALUES]), lanes.channels),
            "// The channels of a value that a thread takes.\ntypedef Row<float, Channels::width> Value;\n",
        ]

    def add_offsets(self, functions: DeviceFunctions) -> None:
        def function(*place: jax.Array) -> Any:
            index = self.samples.index_of(*place)
            read_from = self.plan.read_from
            texels = offset(index[: len(read_from)], read_from) * self.plan.texels_per_texture
            values = self.arrays[ArrayRole.VALUES].shape[:-1]
            return [offset(index, values), offset(index, self.plan.shape), texels]

        functions.add(f"Offsets offsets_of({AT})", "What a sample has in memory.", function, *PLACE_AT)


def define_or_add(
    functions: DeviceFunctions, signature: str, comment: str, function: Callable[..., Any] | None, *args: Scalar
) -> None:
    """Adds a function; without one, what returns zeros and is not used."""
    if function is None:
        functions.define(signature, "Not used.", ["return {};"])
    else:
        functions.add(signature, comment, function, *args)
