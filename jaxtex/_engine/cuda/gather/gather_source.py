"""The source of the gather kernel, an adjoint of reads at affine grids: a thread owns texels, and looks for samples."""

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
from ..samples.sample_source import ARRAYS, AdjointPlan, SampleSource, load_numbers, names_of_axes
from ..samples.sample_tiles import PLACE, Extent, SampleTiles
from ..trace.emitter import DeviceFunctions, Scalar, scalar

MADE_BY = "gather_source.py"
# For each number of axes: the texels of a thread, with one channel and with several; and the threads of a block.
OWN: dict[int, tuple[Extent, Extent]] = {2: ((1, 4, 4), (1, 2, 2)), 3: ((2, 2, 2), (2, 2, 2))}
BLOCK: dict[int, Extent] = {2: (1, 16, 8), 3: (4, 4, 8)}
MOST_THREADS = 256
# The largest number of samples that a thread looks at; with more, a window is faster.
MOST_SAMPLES = 256
# If a position changes by less than this from sample to sample of a row, its axis sets no bound in the row.
LEAST_SLOPE = 1e-4
# The largest size of images and textures: up to here, centers of pixels and texels are exact in float32.
MOST_LENGTH = 2**22
# An upper bound of the rounding error of a position: relative to its largest term, 16 times 2^-24; and at least this.
ROUNDING, LEAST_ROUNDING = 1e-6, 1e-3
# An upper bound of the rounding error of an index from an inverse matrix, and of the positions it is computed from.
SLACK = 0.02


def is_gathered(spec: ReadSpec, shape: Sequence[int], batch: int, operands: Sequence[Shaped]) -> bool:
    """Whether the gather kernel supports an adjoint: the grid is affine, and taps outside read nothing."""
    grid, axes = spec.grid, spec.axes
    dims = grid.affine_axes if isinstance(grid, StoredOrder) else 0
    if dims not in OWN or dims != len(axes) or len(shape) - batch < dims:
        return False
    if dims == 3 and not spec.deterministic:
        return False  # a window is faster
    # Every axis is one of space, and its taps outside read nothing.
    if spec.stacks or any(
        axis.role is not Role.SPACE or axis.integer or not axis.address.drops_outside for axis in axes
    ):
        return False
    # The kernel has one number of taps for all axes.
    if len({axis.kernel.num_taps for axis in axes}) > 1:
        return False
    if max(*shape[-dims:], *(axis.known_size for axis in axes)) > MOST_LENGTH:
        return False
    # The affine operands are lines of pixels, one for each axis; the others are one number an image.
    pixels, rest = operands[:dims], operands[dims:]
    last = lambda a: tuple(a.shape[len(a.shape) - dims :])
    lines = [tuple(n if k == dims - 1 - axis else 1 for k, n in enumerate(shape[-dims:])) for axis in range(dims)]
    own = all(last(a) == line and math.prod(a.shape) == math.prod(line) for a, line in zip(pixels, lines))
    return own and all(math.prod(last(a)) == 1 for a in rest) and all(a.dtype == jnp.float32 for a in operands)


class Rows(NamedTuple):
    """The rows of a texture, adjacent along its first axis, that the gather kernel computes.

    Attributes:
        period: the number of rows after which the texture repeats, as in `Stored`.
        only_within: as in `AdjointPlan`.
    """

    num_rows: int
    period: int
    only_within: tuple[int, int] | None


class GatherSource(SampleSource):
    """The source of the gather kernel.

    Args:
        rows: the rows to compute; `None` for all. The number of the first row is one of `arrays`.
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
        """The number of texels to compute, on each axis."""
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
        """The number of images of samples for one texture."""
        return math.prod(self.plan.shape[len(self.plan.textures) : -self.dims])

    def operands_of_sample(self) -> list[Scalar]:
        """The operands of a sample: the center of its pixel, and the other operands of its view."""
        names = [f"pixel[{k}]" for k in range(self.dims)]
        names += [f"view.operands[{k}]" for k in range(self.dims, self.num_operands)]
        return [(name, np.dtype(np.float32)) for name in names]

    def axis_taps(self, *operands: jax.Array) -> Any:
        """On each axis, a sample's position, or its first tap and the weights of all taps; unused ones are zeros."""
        positions, first, weights = [], [], []
        bounded = not self.spec.deterministic
        for coord, axis in zip(self.spec.coords_at(*operands), self.spec.axes):
            # The weights of a linear filter follow from the position. Others come with the taps.
            if is_tent(axis):
                scale = texels_per_unit(axis, coord.dtype)
                positions.append(scalar(coord * scale if bounded else to_position(coord, axis)))
                first.append(scalar(0, jnp.int32))
                weights.append([scalar(0, jnp.float32)] * axis.kernel.num_taps)
            else:
                weighted_taps = taps(coord, axis, bounded=bounded)
                positions.append(scalar(0, jnp.float32))
                first.append(scalar(weighted_taps[0][0]))
                weights.append([scalar(weight, jnp.float32) for _, weight in weighted_taps])
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
        # Whether a sample is added: if all rows are computed here, always.
        is_added = "bool is_added(const View& view, const float (&pixel)[dims], int first_row)"
        if self.rows is None or self.rows.only_within is None:
            functions.define(is_added, "All samples are added.", ["return true;"])
            return []
        # If some rows are, by the rule of a texture of which a part is stored.
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
            Constant("finds_rows", self.rows is not None, "whether the texels begin at a given row"),
            Constant("images", self.images, "that fall on one texture"),
            Constant("extent", self.samples.extent[::-1], "of an image along x, y and z"),
            Constant("numbers", numbers, "of a view"),
            Constant("operands_of_view", numbers - num_numbers_of_search(self.dims) - 1),
            Constant("value_step", int(self.arrays[ArrayRole.VALUES].shape[-2] > 1), "from a value to that beside it"),
        ]

    def structs(self) -> list[str]:
        return [*self.structs_of_values(), self.texels.struct()]


def is_tent(axis: Axis) -> bool:
    """Whether the weight of a texel is max(1 - d, 0), with d the distance of the position from its center."""
    return axis.kernel.is_tent and axis.order == 0


def own_texels(dims: int, channels: int) -> tuple[int, ...]:
    """The number of texels that a thread owns, on each axis."""
    return OWN[dims][channels > 1][3 - dims :]


# Views


class ViewSource(SampleSource):
    """The source of the kernel that computes the `view` of each image, one in a thread.

    Args:
        channels: the number of channels of the texels in the gather kernel.
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
    """The placement of an image of samples on its texture: the numbers that the gather kernel's search needs.

    The map from samples to positions is affine, with a matrix of slopes. A thread looks for the samples whose positions
    lie in a box around its texels.

    Args:
        extent: the size of the image along x, y (and z).
        own: the number of texels of a thread, on each axis.
        operands: the operands of the image's first sample.

    Returns:
        The numbers of `View` in `gather.cu`. Positions are relative to the position of the first sample.

        - offset, bound: on each axis, the middle of the box minus the center of the thread's first texel, and the
          largest distance of that middle from zero if the image meets the box.
        - inverse, half: the rows for y (and z) of the inverse matrix, and half of the range of samples along y (and z).
        - along, step, half_row: on each axis, the samples along x per texel, the samples by which the middle of the
          range along x moves back for a step along y (and z), and half of that range.
        - operands, and zeros up to a multiple of four numbers.
        - taken: 1 if the gather kernel adds this image.
    """
    dims, axes = len(spec.axes), spec.axes
    first, rest = operands[:dims], operands[dims:]

    def positions(*pixels: jax.Array) -> list[jax.Array]:
        coords = spec.coords_at(*pixels, *rest)
        return [to_position(c, axis) - axis.kernel.origin for c, axis in zip(coords, axes)]

    # The slopes, and their inverse, which leads from texels to samples.
    unit = lambda k: [jnp.ones_like(p) if n == k else jnp.zeros_like(p) for n, p in enumerate(first)]
    base, columns = positions(*first), [jax.jvp(positions, first, unit(k))[1] for k in range(dims)]
    slope = [[column[n] for column in columns] for n in range(dims)]
    inverse, finite = inverted(slope)
    # The error of positions grows with the largest term that they are sums of.
    moves = [sum(jnp.abs(a) * n for a, n in zip(row, extent)) for row in slope]
    pixel = functools.reduce(jnp.maximum, map(jnp.abs, first))
    terms = [jnp.abs(b) + r + pixel * sum(map(jnp.abs, row)) for b, r, row in zip(base, moves, slope)]
    rounding = ROUNDING * functools.reduce(jnp.maximum, terms)
    # A bound of the samples in the preimage of a thread's texels, as owned with several channels.
    around = [(n + axis.kernel.num_taps) * 0.5 + 1 for n, axis in zip(own_texels(dims, 4), axes)]
    sides = [2 + 2 * sum(jnp.abs(row[n]) * h for n, h in enumerate(around)) for row in inverse]
    taken = finite & (functools.reduce(jnp.multiply, sides) <= MOST_SAMPLES) & (SLACK + rounding < 1)
    if spec.deterministic:  # windows would add in any order, so even a long search is better
        taken = jnp.ones_like(taken)
    # The box of positions whose taps read a thread's texels: its middle, and half of its size.
    kernels = [axis.kernel for axis in axes]
    middle = [(n + 1 - k.num_taps) * 0.5 - k.first - k.origin for n, k in zip(own, kernels)]
    reach = [(n - 1 + k.num_taps) * 0.5 + LEAST_ROUNDING + rounding for n, k in zip(own, kernels)]
    half = [SLACK + sum(jnp.abs(a) * (r + SLACK) for a, r in zip(row, reach)) for row in inverse]
    # An axis along which positions hardly change in a row of samples sets no bound in the row.
    bounds = [jnp.abs(row[0]) > LEAST_SLOPE for row in slope]
    along = [jnp.where(ends, 1 / row[0], 0) for ends, row in zip(bounds, slope)]
    steps = [[jnp.where(ends, row[n] * a, 0) for ends, row, a in zip(bounds, slope, along)] for n in range(1, dims)]
    half_row = [jnp.where(ends, r * jnp.abs(a), jnp.inf) for ends, r, a in zip(bounds, reach, along)]
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
    """The number of floats of a view, a multiple of four."""
    return -(-(num_numbers_of_search(dims) + num_operands + 1) // 4) * 4


def num_numbers_of_search(dims: int) -> int:
    """The number of floats of a view before its operands."""
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
    inverse = [[e / determinant for e in row] for row in adjugate]
    return inverse, functools.reduce(jnp.logical_and, (jnp.isfinite(e) for row in inverse for e in row))
