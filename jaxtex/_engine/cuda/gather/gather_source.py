"""The source of the adjoint's kernel for affine grids, in which texels look for the samples around them."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...describe.axis import Axis, Role, Stored
from ...describe.coordinates import texels_per_unit, to_position
from ...describe.grids import StoredOrder
from ...describe.spec import ReadSpec
from ...walk.taps import taps
from ...walk.texel_walk import other_part, taps_are_available
from ..build.source import scalars
from ..samples.sample_source import AdjointPlan, SampleSource, Traced, joined, of_function, scalar
from ..samples.sample_tiles import LANES, PLACE, Extent, SampleTiles

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


def is_gathered(spec: ReadSpec, shape: Sequence[int], batch: int, operands: Sequence[Any]) -> bool:
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
        count: how many there are.
        period: after how many rows of the texture the first one follows again.
        only_within: as in `AdjointPlan`.
    """

    count: int
    period: int
    only_within: tuple[int, int] | None


class GatherSource(SampleSource):
    """The source of a kernel in which texels look for their samples, with `num_operands` in each view.

    Args:
        rows: which texels there are, if not all. Then "first_row_of_texels" is among `arrays`.
    """

    def __init__(
        self,
        plan: AdjointPlan,
        arrays: Mapping[str, Any],
        results: Mapping[str, Any],
        num_operands: int,
        rows: Rows | None = None,
    ):
        super().__init__(plan, arrays, results)
        self.dims, self.num_operands, self.rows = len(plan.spec.axes), num_operands, rows
        self.samples = SampleTiles(plan.shape, self.dims, (1, 1, 1), (1, 1, 1))
        sizes = tuple(axis.known_size for axis in self.spec.axes)
        sizes = sizes if rows is None else (rows.count, *sizes[1:])
        deep, down, across = BLOCK[self.dims]
        while self.lanes.parts * deep * down * across > MOST_THREADS:
            deep, down, across = (deep, -(-down // 2), across) if down > 1 else (-(-deep // 2), 1, -(-across // 2))
        own = OWN[self.dims][self.lanes.width > 1]
        self.texels = SampleTiles((*plan.textures, *sizes), self.dims, (deep, down, across), own)

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

    def find_axis_taps(self) -> Traced:
        """On each axis, a sample's position, first tap and the weights of all taps; zeros for those not asked for."""
        names = [f"pixel[{k}]" for k in range(self.dims)]
        names += [f"view.operands[{k}]" for k in range(self.dims, self.num_operands)]
        bounded = not self.spec.deterministic

        def function(*operands: jax.Array) -> Any:
            positions, first, weights = [], [], []
            for coord, axis in zip(self.spec.coords_at(*operands), self.spec.axes):
                if is_tent(axis):
                    scale = texels_per_unit(axis, coord.dtype)
                    positions.append(scalar(coord * scale if bounded else to_position(coord, axis)))
                    first.append(scalar(0, jnp.int32))
                    weights.extend([scalar(0, jnp.float32)] * axis.kernel.num_taps)
                else:
                    found = taps(coord, axis, bounded=bounded)
                    positions.append(scalar(0, jnp.float32))
                    first.append(scalar(found[0][0]))
                    weights.extend(scalar(weight, jnp.float32) for _, weight in found)
            return positions, first, weights

        return self.traced(function, *((name, np.dtype(np.float32)) for name in names))

    def find_added(self) -> Traced:
        """Whether a sample is added."""
        if self.rows is None or self.rows.only_within is None:
            return [], "true"
        stored, only_within, (first, *others) = (
            Stored(self.rows.count, self.rows.period),
            self.rows.only_within,
            self.spec.axes,
        )
        axes = (first._replace(stored=stored), *others)
        names = [f"pixel[{k}]" for k in range(self.dims)]
        names += [f"view.operands[{k}]" for k in range(self.dims, self.num_operands)]

        def function(first_row: jax.Array, *operands: jax.Array) -> Any:
            return scalar(
                taps_are_available(*other_part((first_row, *self.spec.coords_at(*operands)), axes, *only_within))
            )

        return self.traced(function, ("first_row", np.dtype(np.int32)), *((n, np.dtype(np.float32)) for n in names))

    def slots(self) -> dict[str, Any]:
        axes = self.spec.axes
        statements, (positions, first, weights) = self.find_axis_taps()
        num_taps = axes[0].kernel.num_taps
        by_axis = (f"{{{joined(weights[k : k + num_taps])}}}" for k in range(0, len(weights), num_taps))
        own, shape = own_texels(self.dims, self.lanes.width), self.arrays["values"].shape
        sizes = [axis.known_size for axis in axes]
        return {
            **super().slots(),
            "axis_taps_statements": statements or [""],
            "axis_taps": f"{{{joined(positions)}}}, {{{joined(first)}}}, {{{', '.join(by_axis)}}}",
            "dims": self.dims,
            "numbers": num_numbers(self.dims, self.num_operands),
            "operands_of_view": num_numbers(self.dims, self.num_operands) - num_numbers_of_search(self.dims) - 1,
            "taps": num_taps,
            "tents": ", ".join(str(is_tent(axis)).lower() for axis in axes),
            "origins": ", ".join(f"{axis.kernel.origin}f" for axis in axes),
            "sizes": ", ".join(map(str, sizes)),
            "counts": ", ".join(map(str, sizes if self.rows is None else [self.rows.count, *sizes[1:]])),
            "first_row": "0" if self.rows is None else "first_row_of_texels[0]",
            **of_function("added", self.find_added()),
            "extent": ", ".join(map(str, self.samples.extent[::-1])),
            "own": ", ".join(map(str, own)),
            "most_own": max(own),
            "owned": math.prod(own),
            "images": self.images,
            "value_step": int(shape[-2] > 1),
            "threads": self.num_threads,
            "store": "store_aligned_row" if self.lanes.aligned else "store_row",
        }

    def source(self, name: str) -> str:
        """The whole source, with a function called `name`."""
        slots = {**self.slots(), "name": name}
        templates = (self.filled(template, slots) for template in ("samples/samples.cuh", "gather/gather.cu"))
        return "\n".join((scalars(), *self.tables, self.texels.source(), *templates))


def is_tent(axis: Axis) -> bool:
    """Whether the weight of a texel is 1 less the distance of the position from its center, or 0 where that is less."""
    return axis.kernel.is_tent and axis.order == 0


def own_texels(dims: int, channels: int) -> tuple[int, ...]:
    """The texels that a thread owns, on each axis."""
    return OWN[dims][channels > 1][3 - dims :]


# Views


class ViewSource(SampleSource):
    """The source of a kernel that finds the `view` of each image, by a thread of its own."""

    def __init__(self, plan: AdjointPlan, arrays: Mapping[str, Any], channels: int):
        self.dims = len(plan.spec.axes)
        shape = (*plan.shape[: -self.dims], num_numbers(self.dims, len(arrays)))
        super().__init__(plan, arrays, {"views": jax.ShapeDtypeStruct(shape, jnp.float32)})
        self.own = own_texels(self.dims, channels)
        self.samples = SampleTiles(plan.shape, self.dims, (1, 1, 1), (1, 1, 1))
        self.images = math.prod(shape[:-1])

    @property
    def num_threads(self) -> int:
        return LANES

    @property
    def num_blocks(self) -> int:
        return -(-self.images // self.num_threads)

    def find_view(self) -> Traced:
        extent = self.samples.extent[::-1]

        def function(outer: jax.Array) -> Any:
            zero = jnp.zeros_like(outer)
            return view(self.spec, extent, self.own, self.loaded(self.samples.index(outer, zero, zero, zero)))

        return self.traced(function, PLACE[0])

    def source(self, name: str) -> str:
        """The whole source, with a function called `name`."""
        numbers = self.results["views"].shape[-1]
        slots = {"name": name, "threads": self.num_threads, "images": self.images, "numbers": numbers}
        slots |= {"parameters": ", ".join(self.parameters()), **of_function("view", self.find_view())}
        return "\n".join((scalars(), *self.tables, self.filled("gather/views.cu", slots)))


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
