"""The base of the adjoint kernels: their static parameters, and the layout of channels and samples in memory."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from ...describe.axis import Axis, Role
from ...describe.spec import ReadSpec, Wrt
from ...describe.storage import Shaped, slice_of
from ...walk.texel_order import flat_sizes
from ..build.arrays import ArrayRole
from ..build.source import KernelSource
from ..trace.emitter import DeviceFunctions, Scalar
from .sample_tiles import PLACE_AT, Lanes, SampleTiles, offset, slice_struct

# Parameters of traced functions: the arrays of the kernel, and the place of the sample.
ARRAYS, AT = "const Arrays& arrays", "Position at"


def names_of_axes(axes: Sequence[Axis]) -> list[str]:
    """The names of the axes of a read, such as "layer" or "y"."""
    space = [k for k, axis in enumerate(axes) if axis.role is Role.SPACE]
    letters = dict(zip(reversed(space), "xyz"))
    return [letters.get(k, str(axis.role)) for k, axis in enumerate(axes)]


class AdjointPlan(NamedTuple):
    """The static parameters of an adjoint.

    Attributes:
        wrt: the operands whose cotangents are computed.
        shape: the shape of the samples, batch axes first.
        read_from: the batch axes of the textures that are read.
        textures: the batch axes of the textures that are added to.
        reach: the number of texels of the halo on each side, if a texture is a `WithHalo`; otherwise `None`.
        only_within: a part of the texture, as the arguments of `other_part`: a sample is added only if the part has all
            of its texels; `None` to add all samples.
        shared: the operands of `shared_of`, to whose cotangents lanes add in memory.
    """

    spec: ReadSpec
    wrt: Wrt
    shape: tuple[int, ...]
    read_from: tuple[int, ...]
    textures: tuple[int, ...]
    reach: int | None = None
    only_within: tuple[int, int] | None = None
    shared: Wrt = ()

    def of_texels(self) -> "AdjointPlan":
        """The plan for the cotangents of texels alone."""
        return self._replace(wrt=(), shared=())

    def shared_of(self, operands: Sequence[Shaped]) -> Wrt:
        """The operands in `wrt` of which all reads of a sum share one number, such as the ends of a ray.

        There are none if the summed axes are not the last axes of the samples, or if sums must be deterministic.
        """
        axes, shapes = self.spec.summed_axes, self.spec.sample_shapes(operands)
        if self.reads_of_sum == 1 or sorted(axes) != [*range(-len(axes), 0)] or self.spec.deterministic:
            return ()
        alike = [math.prod(shape) > 1 and all(shape[axis] == 1 for axis in axes) for shape in shapes]
        return tuple(k for k in self.wrt if alike[k])

    @property
    def reads_of_sum(self) -> int:
        """The number of reads of a sum."""
        return math.prod(self.shape[axis] for axis in self.spec.summed_axes)

    @property
    def shape_of_sums(self) -> tuple[int, ...]:
        """The shape of the sums of reads, with 1 along the axes of the sums."""
        return tuple(1 if k - len(self.shape) in self.spec.summed_axes else n for k, n in enumerate(self.shape))

    @property
    def texels_per_texture(self) -> int:
        return flat_sizes(self.spec.axes)[0]

    @property
    def num_texels(self) -> int:
        """The number of texels of all textures that are added to."""
        return math.prod(self.textures) * self.texels_per_texture


class SampleSource(KernelSource):
    """The source of an adjoint kernel."""

    samples: SampleTiles

    def __init__(self, plan: AdjointPlan):
        super().__init__()
        self.plan, self.spec = plan, plan.spec

    def includes(self) -> tuple[str, ...]:
        return "samples/samples.cuh", f"{self.room}/config.cuh"

    @functools.cached_property
    def lanes(self) -> Lanes:
        """The division of a texel's channels among threads."""
        return Lanes.of(self.arrays[ArrayRole.VALUES].shape[-1])

    def structs_of_values(self) -> list[str]:
        """The structs for the division of channels among threads, and for the layout of values."""
        return [
            self.lanes.struct(),
            slice_struct("ValueSlice", slice_of(self.arrays[ArrayRole.VALUES]), self.lanes.channels),
            "// The channels of a value that a thread takes.\ntypedef Row<float, Channels::width> Value;\n",
        ]

    def add_offsets(self, functions: DeviceFunctions) -> None:
        def function(*place: jax.Array) -> Any:
            index = self.samples.index_of(*place)
            read_from = self.plan.read_from
            texels = offset(index[: len(read_from)], read_from) * self.plan.texels_per_texture
            values = self.arrays[ArrayRole.VALUES].shape[:-1]
            return [offset(index, values), offset(index, self.plan.shape), texels]

        functions.add(f"Offsets offsets_of({AT})", "The offsets of a sample in memory.", function, *PLACE_AT)


def define_or_add(
    functions: DeviceFunctions, signature: str, comment: str, function: Callable[..., Any] | None, *args: Scalar
) -> None:
    """Adds a traced function, or without `function` a stub that is never called."""
    if function is None:
        functions.define(signature, "Not used.", ["return {};"])
    else:
        functions.add(signature, comment, function, *args)
