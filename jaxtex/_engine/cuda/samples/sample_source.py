"""The base of the adjoint kernels: static parameters, the layout of channels and samples in memory, and operands."""

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...compute.linearization import summed_to
from ...describe.axis import Axis, Role
from ...describe.operands import Stack, widened
from ...describe.spec import ReadSpec, Wrt
from ...describe.storage import Shaped, slice_of
from ...walk.texel_order import flat_sizes
from ..build.arrays import ArrayRole, Filled, KernelArray
from ..build.source import KernelSource
from ..trace.emitter import DeviceFunctions
from ..trace.indexing import load_row
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


# The operands of a read in a kernel: how a thread loads them, and how their cotangents are stored
#
# A kernel stores one cotangent for each sample, or adds up those of a sum of reads, or stores a sum for each tile.


def load_numbers(spec: ReadSpec, operands: Sequence[Shaped], index: list[jax.Array]) -> list[jax.Array]:
    """The arguments of the grid for the sample at `index`, loaded from the operands of a kernel."""
    numbers: list[jax.Array] = []
    for k, a in enumerate(operands):
        name, stack = f"arrays.operand_{k}", spec.stack_of(k)
        if stack is None:
            numbers.append(load_row(name, offset(index, a.shape), 1, a.dtype)[:, 0])
        else:
            numbers.extend(load_stack(name, a, stack, index))
    return [widened(number) for number in numbers]


def load_stack(name: str, a: Shaped, stack: Stack, index: list[jax.Array]) -> list[jax.Array]:
    """The numbers of a stacked operand for the sample at `index`."""
    before, count, after = stack.around(a.shape)
    near, far = offset(index[: len(before)], before), offset(index[len(before) :], after)
    step = math.prod(after)
    if step == 1:
        row = load_row(name, [(near, count), (far, 1)], count, a.dtype, aligned=count in (2, 4))
        return [row[:, place] for place in stack.order]
    places = ([(near, count * step), (jnp.full((1,), place, jnp.int32), step), (far, 1)] for place in stack.order)
    return [load_row(name, place, 1, a.dtype)[:, 0] for place in places]


def stored_at(stack: Stack | None, samples: tuple[int, ...], number: int, sample: str) -> str:
    """A C expression for the flat index of a cotangent in an array for all samples.

    Args:
        number: the number of the argument in the stack.
        sample: a C expression for the number of the sample.
    """
    if stack is None:
        return sample
    _, count, after = stack.around(stack.with_axis(samples, len(stack.order)))
    place, step = stack.order[number], math.prod(after)
    if step == 1:
        return f"(int64){sample} * {count} + {place}"
    return f"(int64)({sample} / {step}) * {count * step} + {sample} % {step} + (int64){place} * {step}"


# Cotangents


class OperandResults(NamedTuple):
    """The results of an adjoint kernel for the cotangents of the operands in `AdjointPlan.wrt`.

    Attributes:
        stored: the operands with one cotangent for each sample, or for each sum of reads, which share the operand.
        summed: the operands with one number for all samples of an image, such as the entries of a matrix.
    """

    plan: AdjointPlan
    samples: SampleTiles
    stored: tuple[int, ...]
    summed: tuple[int, ...]

    @classmethod
    def of(cls, plan: AdjointPlan, samples: SampleTiles, operands: Sequence[Shaped]) -> "OperandResults":
        axes, single = samples.image_axes, [k for k in plan.wrt if plan.spec.stack_of(k) is None]
        tiled = lambda a: a.shape[len(a.shape) - axes :] if axes else (*a.shape, *plan.textures)
        summed = tuple(k for k in single if math.prod(tiled(operands[k])) == 1)
        return cls(plan, samples, tuple(k for k in plan.wrt if k not in summed), summed)

    @property
    def added(self) -> tuple[int, ...]:
        """The operands with one cotangent for each sum of reads, to which lanes add."""
        return tuple(k for k in self.stored if k in self.plan.shared)

    @property
    def lanes_of_sum(self) -> int:
        """The number of adjacent samples, a power of two, that lanes take in one step and that are reads of one sum."""
        if not self.added:
            return 1
        lanes = self.samples.lanes[-1]
        return lanes if self.samples.rank else math.gcd(lanes, self.plan.shape[-1])

    @property
    def numbers(self) -> list[range]:
        """For each operand in `AdjointPlan.wrt`, the numbers of the grid's arguments that it holds."""
        return [self.plan.spec.numbers_of(k) for k in self.plan.wrt]

    @property
    def results(self) -> list[KernelArray]:
        """The arrays of cotangents that a kernel writes."""
        dtype, samples = self.plan.spec.dtype, self.plan.shape
        stacks = {k: self.plan.spec.stack_of(k) for k in self.stored}
        owners = {k: self.plan.shape_of_sums if k in self.added else samples for k in stacks}
        shapes = {k: owners[k] if s is None else s.with_axis(owners[k], len(s.order)) for k, s in stacks.items()}
        starts = {k: jnp.zeros(shapes[k], dtype) for k in self.added}
        arrays = {k: jax.ShapeDtypeStruct(shape, dtype) for k, shape in shapes.items()}
        results = [KernelArray(ArrayRole.COTANGENT, array, k, starts.get(k)) for k, array in arrays.items()]
        if self.summed:
            sums = jax.ShapeDtypeStruct((self.samples.total, len(self.summed)), dtype)
            results.append(KernelArray(ArrayRole.TILE_SUMS, sums))
        return results

    def collected(self, filled: Filled, operands: Sequence[Shaped]) -> list[jax.Array]:
        """The cotangents of the operands, in the order of `wrt`, with their shapes, broadcast to all batch axes."""
        rank, shape, batch = self.samples.image_axes, self.plan.shape, len(self.plan.textures)
        cotangents = {k: filled[ArrayRole.COTANGENT, k] for k in self.stored}
        if self.summed:
            images = self.samples.images if rank else (1,) * len(shape)
            sums = jnp.sum(filled[ArrayRole.TILE_SUMS, 0].reshape(math.prod(images), -1, len(self.summed)), 1)
            for n, k in enumerate(self.summed):
                cotangents[k] = sums[:, n].reshape(*images, *[1] * rank)

        def of_operand(x: jax.Array, a: Shaped) -> jax.Array:
            return summed_to(x, (*x.shape[:batch], *a.shape[batch:])).astype(a.dtype)

        return [of_operand(cotangents[k], operands[k]) for k in self.plan.wrt]
