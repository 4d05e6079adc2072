"""What the kernels of the adjoint have in common: their static side, and how a thread loads a sample."""

import abc
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax

from ...describe.axis import Axis, Role
from ...describe.spec import ReadSpec, Wrt
from ...describe.storage import slice_of
from ...walk.texel_walk import flat_sizes
from ..build.arrays import ArrayRole, KernelArrays
from ..build.launch import Kernel
from ..build.source import Constant, config, header, program, struct_of
from ..trace.device_functions import DeviceFunctions, Scalar
from .operands import load_numbers
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

    @property
    def texels_per_texture(self) -> int:
        return flat_sizes(self.spec.axes)[0]

    @property
    def num_texels(self) -> int:
        """The texels of all textures that are added to."""
        return math.prod(self.textures) * self.texels_per_texture


class SampleSource(abc.ABC):
    """What makes the source of a kernel of the adjoint.

    Attributes:
        file: that of the kernel.
        room: the folder of its headers, which are generated.
        arrays: what the kernel reads and writes.
        samples: how samples are divided, which says how their places are counted.
        functions: of a thread.
    """

    file: str
    room: str
    made_by: str
    arrays: KernelArrays
    samples: SampleTiles

    def __init__(self, plan: AdjointPlan):
        self.plan, self.spec, self.functions = plan, plan.spec, DeviceFunctions()

    # What each kernel says

    @property
    @abc.abstractmethod
    def num_blocks(self) -> int: ...

    @property
    @abc.abstractmethod
    def num_threads(self) -> int:
        """The threads of a block."""

    @property
    def bounds(self) -> str:
        """Of the launch: the names of constants."""
        return "threads"

    @abc.abstractmethod
    def constants(self) -> Iterable[Constant]:
        """The sizes and switches of the kernel, beside its threads."""

    @abc.abstractmethod
    def structs(self) -> list[str]:
        """Constants that are arguments of templates, and names of types."""

    @abc.abstractmethod
    def traced(self, functions: DeviceFunctions) -> list[str]:
        """Adds the functions of a thread, and returns the declarations that stand before them."""

    # What they have in common

    def kernel(self, name: str) -> Kernel:
        """The kernel, called `name`."""
        headers = self.headers(name)
        return Kernel(program(self.file, headers), name, self.num_blocks, self.num_threads, headers)

    def headers(self, name: str) -> dict[str, str]:
        """The headers `config.cuh` and `traced.cuh`."""
        own, declarations = f"{self.room}/config.cuh", self.traced(self.functions)
        threads = Constant("threads", self.num_threads, "of a block")
        traced = header(
            f"What a thread of one kernel computes, by {self.made_by}.",
            self.includes(),
            self.arrays.declared(),
            *declarations,
            *self.functions.blocks,
            self.arrays.entry(name, self.bounds),
        )
        return {
            own: config(self.made_by, [threads, *self.constants()], *self.structs()),
            f"{self.room}/traced.cuh": traced,
        }

    def includes(self) -> tuple[str, ...]:
        """What traced functions need."""
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

    def loaded(self, index: list[jax.Array]) -> list[jax.Array]:
        """The arguments of the grid for the sample at an index."""
        return load_numbers(self.spec, self.arrays.operands, index)

    def add_offsets(self, functions: DeviceFunctions) -> None:
        def function(*place: jax.Array) -> Any:
            index = self.samples.index(*place)
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
