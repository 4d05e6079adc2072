"""The source of the adjoint's kernel for affine grids, in which texels look for the samples around them."""

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...describe.axis import Axis, Role, Stored
from ...describe.operands import StoredOrder
from ...describe.spec import ReadSpec
from ...describe.storage import Shaped
from ...walk.texel_walk import other_part, taps, taps_are_available, texels_per_unit, to_position
from ..build.arrays import ArrayRole, KernelArray, KernelArrays, operands_of
from ..build.launch import LANES
from ..build.source import Constant
from ..samples.operands import load_numbers
from ..samples.sample_source import ARRAYS, AdjointPlan, SampleSource, names_of_axes
from ..samples.sample_tiles import PLACE, Extent, SampleTiles
from ..trace.emitter import DeviceFunctions, Scalar, scalar

MADE_BY = "gather_source.py"
# By the number of axes: the texels of a thread, for texels of one channel and of several, and the threads of a block.
OWN: dict[int, tuple[Extent, Extent]] = {2: ((1, 4, 4), (1, 2, 2)), 3: ((2, 2, 2), (2, 2, 2))}
BLOCK: dict[int, Extent] = {2: (1, 16, 8), 3: (4, 4, 8)}
MOST_THREADS = 256
# A thread looks at most at so many samples; where there are more, a window is faster.
MOST_SAMPLES = 256
# Where a position moves less than this along a row, it does not bound the row.
LEAST_SLOPE = 1e-4
# Images and textures are at most so long: centers of pixels and of texels are then exact.
MOST_LENGTH = 2**22
# Rounding of a position: in parts of its largest term, 16 times half a unit of the last of 24 bits; and the least.
ROUNDING, LEAST_ROUNDING = 1e-6, 1e-3
# Rounding of an index that the inverse of a matrix gives, and of the positions that it is computed from.
SLACK = 0.02


def is_gathered(spec: ReadSpec, shape: Sequence[int], batch: int, operands: Sequence[Shaped]) -> bool:
    """Whether texels can look for their samples: the grid is affine, and taps outside read nothing."""
    grid, axes = spec.grid, spec.axes
    dims = grid.affine_axes if isinstance(grid, StoredOrder) else 0
    if dims not in OWN or dims != len(axes) or len(shape) - batch < dims:
        return False
    if dims == 3 and not spec.deterministic:
        return False  # a window is faster
    if spec.stacks or any(
        axis.role is not Role.SPACE or axis.integer or not axis.address.drops_outside for axis in axes
    ):
        return False
    if len({axis.kernel.num_taps for axis in axes}) > 1:
        return False
    if max(*shape[-dims:], *(axis.known_size for axis in axes)) > MOST_LENGTH:
        return False
    pixels, rest = operands[:dims], operands[dims:]
    last = lambda a: tuple(a.shape[len(a.shape) - dims :])
    lines = [tuple(n if k == dims - 1 - axis else 1 for k, n in enumerate(shape[-dims:])) for axis in range(dims)]
    own = all(last(a) == line and math.prod(a.shape) == math.prod(line) for a, line in zip(pixels, lines))
    return own and all(math.prod(last(a)) == 1 for a in rest) and all(a.dtype == jnp.float32 for a in operands)


class Rows(NamedTuple):
    """Those rows of a texture, neighbors along its first axis, that look for their samples.

    Attributes:
        num_rows: how many there are.
        period: after how many rows of the texture the first one follows again.
        only_within: as in `AdjointPlan`.
    """

    num_rows: int
    period: int
    only_within: tuple[int, int] | None


class GatherSource(SampleSource):
    """The source of the kernel in which texels look for their samples.

    Args:
        num_operands: in each view.
        rows: which texels there are, if not all. Then the first row is among `arrays`.
    """

    file, room, made_by = "gather/gather.cu", "gather", MADE_BY

    def __init__(self, plan: AdjointPlan, arrays: KernelArrays, num_operands: int, rows: Rows | None = None):
        super().__init__(plan)
        self.arrays = arrays
        self.dims, self.num_operands, self.rows = len(plan.spec.axes), num_operands, rows
        self.samples = SampleTiles(plan.shape, self.dims, (1, 1, 1), (1, 1, 1))
        deep, down, across = BLOCK[self.dims]
        while self.lanes.parts * deep * down * across > MOST_THREADS:
            deep, down, across = (deep, -(-down // 2), across) if down > 1 else (-(-deep // 2), 1, -(-across // 2))
        own = OWN[self.dims][self.lanes.width > 1]
        self.texels = SampleTiles((*plan.textures, *self.counts), self.dims, (deep, down, across), own)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many texels look for their samples, on each axis."""
        sizes = tuple(axis.known_size for axis in self.spec.axes)
        return sizes if self.rows is None else (self.rows.num_rows, *sizes[1:])

    @property
    def num_blocks(self) -> int:
        return self.texels.total

    @property
    def num_threads(self) -> int:
        return math.prod(self.texels.lanes) * self.lanes.parts

    @property
    def images(self) -> int:
        """The images of samples that fall on one texture."""
        return math.prod(self.plan.shape[len(self.plan.textures) : -self.dims])

    def operands_of_sample(self) -> list[Scalar]:
        """The operands of a sample: the center of its pixel, and those of its view."""
        names = [f"pixel[{k}]" for k in range(self.dims)]
        names += [f"view.operands[{k}]" for k in range(self.dims, self.num_operands)]
        return [(name, np.dtype(np.float32)) for name in names]

    def axis_taps(self, *operands: jax.Array) -> Any:
        """On each axis, a sample's position, first tap and the weights of all taps; zeros for those not asked for."""
        positions, first, weights = [], [], []
        bounded = not self.spec.deterministic
        for coord, axis in zip(self.spec.coords_at(*operands), self.spec.axes):
            if is_tent(axis):
                scale = texels_per_unit(axis, coord.dtype)
                positions.append(scalar(coord * scale if bounded else to_position(coord, axis)))
                first.append(scalar(0, jnp.int32))
                weights.append([scalar(0, jnp.float32)] * axis.kernel.num_taps)
            else:
                found = taps(coord, axis, bounded=bounded)
                positions.append(scalar(0, jnp.float32))
                first.append(scalar(found[0][0]))
                weights.append([scalar(weight, jnp.float32) for _, weight in found])
        return [positions, first, weights]

    def traced(self, functions: DeviceFunctions) -> list[str]:
        axes, of_sample = ", ".join(names_of_axes(self.spec.axes)), self.operands_of_sample()
        self.add_offsets(functions)
        functions.add(
            "AxisTaps taps_at(const View& view, const float (&pixel)[dims])",
            f"Positions, first taps and weights along the axes ({axes}).",
            self.axis_taps,
            *of_sample,
        )
        is_added = "bool is_added(const View& view, const float (&pixel)[dims], int first_row)"
        if self.rows is None or self.rows.only_within is None:
            functions.define(is_added, "All samples are added.", ["return true;"])
            return []
        stored, only_within = Stored(self.rows.num_rows, self.rows.period), self.rows.only_within
        first, *others = self.spec.axes
        stored_axes = (first._replace(stored=stored), *others)

        def added(first_row: jax.Array, *operands: jax.Array) -> Any:
            coords = first_row, *self.spec.coords_at(*operands)
            return scalar(taps_are_available(*other_part(coords, stored_axes, *only_within)))

        comment = "Whether a sample is added: its texels are all stored."
        functions.add(is_added, comment, added, ("first_row", np.dtype(np.int32)), *of_sample)
        return []

    def constants(self) -> list[Constant]:
        axes, numbers = self.spec.axes, num_numbers(self.dims, self.num_operands)
        own = own_texels(self.dims, self.lanes.width)
        return [
            Constant("dims", self.dims, "the axes"),
            Constant("num_taps", axes[0].kernel.num_taps, "along an axis"),
            Constant("own", own, "the texels of a thread along an axis"),
            Constant("most_own", max(own)),
            Constant("owned", math.prod(own), "the texels of a thread"),
            Constant("is_tent", tuple(map(is_tent, axes)), "whether weights follow from positions"),
            Constant("origin", tuple(float(axis.kernel.origin) for axis in axes), "the center of the first texel"),
            Constant("size", tuple(axis.known_size for axis in axes), "of the texture"),
            Constant("count", self.counts, "how many texels look for their samples"),
            Constant("finds_rows", self.rows is not None, "whether these begin at a row that is given"),
            Constant("images", self.images, "that fall on one texture"),
            Constant("extent", self.samples.extent[::-1], "of an image along x, y and z"),
            Constant("numbers", numbers, "of a view"),
            Constant("operands_of_view", numbers - num_numbers_of_search(self.dims) - 1),
            Constant("value_step", int(self.arrays[ArrayRole.VALUES].shape[-2] > 1), "from a value to that beside it"),
        ]

    def structs(self) -> list[str]:
        return [*self.structs_of_values(), self.texels.struct()]


def is_tent(axis: Axis) -> bool:
    """Whether the weight of a texel is 1 less the distance of the position from its center, or 0 where that is less."""
    return axis.kernel.is_tent and axis.order == 0


def own_texels(dims: int, channels: int) -> tuple[int, ...]:
    """The texels that a thread owns, on each axis."""
    return OWN[dims][channels > 1][3 - dims :]


# Views


class ViewSource(SampleSource):
    """The source of the kernel that finds the `view` of each image, by a thread of its own.

    Args:
        channels: of the texels that will look for their samples.
    """

    file, room, made_by = "gather/views.cu", "views", MADE_BY

    def __init__(self, plan: AdjointPlan, operands: Sequence[jax.Array], channels: int):
        super().__init__(plan)
        self.dims = len(plan.spec.axes)
        shape = (*plan.shape[: -self.dims], num_numbers(self.dims, len(operands)))
        views = KernelArray(ArrayRole.VIEWS, jax.ShapeDtypeStruct(shape, jnp.float32))
        self.arrays = KernelArrays(operands_of(operands), [views])
        self.own = own_texels(self.dims, channels)
        self.samples = SampleTiles(plan.shape, self.dims, (1, 1, 1), (1, 1, 1))
        self.images, self.numbers = math.prod(shape[:-1]), shape[-1]

    @property
    def num_threads(self) -> int:
        return LANES

    @property
    def num_blocks(self) -> int:
        return -(-self.images // self.num_threads)

    def traced(self, functions: DeviceFunctions) -> list[str]:
        extent = self.samples.extent[::-1]

        def function(outer: jax.Array) -> Any:
            zero = jnp.zeros_like(outer)
            index = self.samples.index_of(outer, zero, zero, zero)
            return view(self.spec, extent, self.own, load_numbers(self.spec, self.arrays.operands, index))

        signature = f"Row<float, numbers> view_of({ARRAYS}, int outer)"
        functions.add(signature, "The view of an image, by its number.", function, PLACE[0])
        return []

    def constants(self) -> list[Constant]:
        return [Constant("images", self.images), Constant("numbers", self.numbers, "of a view")]

    def structs(self) -> list[str]:
        return []


def view(spec: ReadSpec, extent: Sequence[int], own: Sequence[int], operands: Sequence[jax.Array]) -> list[jax.Array]:
    """How an image of samples lies on its texture, as texels need it that look for their samples.

    Args:
        extent: of the image along x, y (and z).
        own: the texels of a thread, on each axis.
        operands: of the first sample.

    Returns:
        The numbers of `View` in `gather.cu`. Positions are relative to that of the first sample.

        - offset, bound: on each axis, what leads from the center of a thread's first texel to the middle of the
          positions that it looks for, and how far this may lie from zero.
        - inverse, half: for y (and z), how far a sample lies for a step of the position on each axis, and from the
          middle of a thread's samples to their ends.
        - along, step, half_row: on each axis, how far a row goes while the position moves by one, how far its middle
          moves back for a step along y (and z), and from there to its ends.
        - operands, and zeros up to a multiple of four numbers.
        - taken: 1 if texels look for the samples of this image.
    """
    dims, axes = len(spec.axes), spec.axes
    first, rest = operands[:dims], operands[dims:]

    def positions(*pixels: jax.Array) -> list[jax.Array]:
        coords = spec.coords_at(*pixels, *rest)
        return [to_position(c, axis) - axis.kernel.origin for c, axis in zip(coords, axes)]

    unit = lambda k: [jnp.ones_like(p) if n == k else jnp.zeros_like(p) for n, p in enumerate(first)]
    base, columns = positions(*first), [jax.jvp(positions, first, unit(k))[1] for k in range(dims)]
    slope = [[column[n] for column in columns] for n in range(dims)]
    inverse, finite = inverted(slope)
    moves = [sum(jnp.abs(a) * n for a, n in zip(row, extent)) for row in slope]
    pixel = functools.reduce(jnp.maximum, map(jnp.abs, first))
    terms = [jnp.abs(b) + r + pixel * sum(map(jnp.abs, row)) for b, r, row in zip(base, moves, slope)]
    rounding = ROUNDING * functools.reduce(jnp.maximum, terms)
    # The samples in the preimage of the texels of a thread that takes several channels.
    around = [(n + axis.kernel.num_taps) * 0.5 + 1 for n, axis in zip(own_texels(dims, 4), axes)]
    sides = [2 + 2 * sum(jnp.abs(row[n]) * h for n, h in enumerate(around)) for row in inverse]
    taken = finite & (functools.reduce(jnp.multiply, sides) <= MOST_SAMPLES) & (SLACK + rounding < 1)
    if spec.deterministic:  # no bit may depend on the run, even if the search is long
        taken = jnp.ones_like(taken)
    # Positions whose taps fall on a thread's texels: from the middle of them to the ends.
    kernels = [axis.kernel for axis in axes]
    middle = [(n + 1 - k.num_taps) * 0.5 - k.first - k.origin for n, k in zip(own, kernels)]
    reach = [(n - 1 + k.num_taps) * 0.5 + LEAST_ROUNDING + rounding for n, k in zip(own, kernels)]
    half = [SLACK + sum(jnp.abs(a) * (r + SLACK) for a, r in zip(row, reach)) for row in inverse]
    # A row goes so far while a position moves by one. Where it hardly moves, an axis does not bound the row.
    bounds = [jnp.abs(row[0]) > LEAST_SLOPE for row in slope]
    along = [jnp.where(some, 1 / row[0], 0) for some, row in zip(bounds, slope)]
    steps = [[jnp.where(some, row[n] * a, 0) for some, row, a in zip(bounds, slope, along)] for n in range(1, dims)]
    half_row = [jnp.where(some, r * jnp.abs(a), jnp.inf) for some, r, a in zip(bounds, reach, along)]
    search = [
        *(m - b for m, b in zip(middle, base)),
        *(r + m for r, m in zip(reach, moves)),
        *(a for row in inverse[1:] for a in row),
        *half[1:],
        *along,
        *(a for step in steps for a in step),
        *half_row,
    ]
    zeros = [jnp.zeros_like(pixel)] * (num_numbers(dims, len(operands)) - len(search) - len(operands) - 1)
    return [scalar(a, jnp.float32) for a in (*search, *operands, *zeros, taken)]


def num_numbers(dims: int, num_operands: int) -> int:
    """The numbers of a view, a multiple of four."""
    return -(-(num_numbers_of_search(dims) + num_operands + 1) // 4) * 4


def num_numbers_of_search(dims: int) -> int:
    """The numbers of a view before its operands."""
    return 4 * dims + (dims - 1) * (2 * dims + 1)


def inverted(matrix: list[list[jax.Array]]) -> tuple[list[list[jax.Array]], jax.Array]:
    """The inverse of a matrix of two or three rows, and whether it is finite."""
    n = len(matrix)
    if n == 2:
        (a, b), (c, d) = matrix
        adjugate, determinant = [[d, -b], [-c, a]], a * d - b * c
    else:
        minor = lambda r, s: (
            matrix[(r + 1) % 3][(s + 1) % 3] * matrix[(r + 2) % 3][(s + 2) % 3]
            - matrix[(r + 1) % 3][(s + 2) % 3] * matrix[(r + 2) % 3][(s + 1) % 3]
        )
        adjugate = [[minor(r, s) for r in range(3)] for s in range(3)]
        determinant = sum(matrix[0][s] * adjugate[s][0] for s in range(3))
    found = [[e / determinant for e in row] for row in adjugate]
    return found, functools.reduce(jnp.logical_and, (jnp.isfinite(e) for row in found for e in row))
