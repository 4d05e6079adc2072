"""The source of the adjoint's kernel for affine grids, in which texels look for the samples around them."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...axis import Axis, Role
from ...coordinates import to_position
from ...plan import StoredOrder
from ...spec import ReadSpec
from ...texel_walk import axis_step, flat_sizes
from ...taps import taps
from ..cuda_c import load_row, scalars
from .sample_source import PLACE, SampleSource, Traced, joined, of_function, scalar, traced
from .sample_tiles import Extent, SampleTiles, offset

# A thread owns so many texels, for texels of one channel and of several; and a block has so many threads for parts of
# texels: deep, down and across.
OWN = {2: ((1, 4, 4), (1, 2, 4)), 3: ((2, 2, 2), (2, 2, 2))}
BLOCK: dict[int, Extent] = {2: (1, 16, 8), 3: (4, 4, 8)}
# A thread looks at most at so many samples; where there are more, a window is faster.
MOST_SAMPLES = 1024
# Texels at the edge look for samples outside that lie no farther away than this.
MOST_OUTSIDE = 8
# Rounding of indices: of a sample among others, and of a position, in parts of its largest term.
SLACK, ROUNDING = 0.02, 1e-6


def is_gathered(spec: ReadSpec, shape: Sequence[int], batch: int, operands: Sequence[Any]) -> bool:
    """Whether texels can look for their samples: the grid is affine, and taps outside read an edge or nothing."""
    grid, axes = spec.grid, spec.axes
    dims = grid.affine_axes if isinstance(grid, StoredOrder) else 0
    if dims not in OWN or dims != len(axes) or len(shape) - batch < dims:
        return False
    if any(axis.role is not Role.SPACE or axis.integer or axis.address.reads_outside is None for axis in axes):
        return False
    if len({axis.kernel.num_taps for axis in axes}) > 1:
        return False
    pixels, rest = operands[:dims], operands[dims:]
    last = lambda a: tuple(a.shape[len(a.shape) - dims :])
    lines = [tuple(n if k == dims - 1 - axis else 1 for k, n in enumerate(shape[-dims:])) for axis in range(dims)]
    own = all(last(a) == line and math.prod(a.shape) == math.prod(line) for a, line in zip(pixels, lines))
    return own and all(math.prod(last(a)) == 1 for a in rest) and all(a.dtype == jnp.float32 for a in operands)


def takes_all(spec: ReadSpec) -> bool:
    """Whether texels look for the samples of every grid, also where that is slow: their sums have the same bits then."""
    return spec.deterministic and all(axis.address.reads_outside == "nothing" for axis in spec.axes)


class GatherSource(SampleSource):
    """The source of a kernel."""

    def __init__(
        self,
        spec: ReadSpec,
        shape: tuple[int, ...],
        read_from: tuple[int, ...],
        textures: tuple[int, ...],
        arrays: Mapping[str, Any],
        results: Mapping[str, Any],
    ):
        super().__init__(spec, shape, read_from, textures, arrays, results)
        self.dims, self.takes_all = len(spec.axes), takes_all(spec)
        self.samples = SampleTiles(shape, self.dims, (1, 1, 1), (1, 1, 1))
        sizes = tuple(axis.known_size for axis in spec.axes)
        threads = BLOCK[self.dims]
        while self.lanes.parts * math.prod(threads) > 256:
            threads = tuple(max(1, n // 2) if n == max(threads) else n for n in threads)
        self.own = OWN[self.dims][self.lanes.width > 1]
        self.texels = SampleTiles((*textures, *sizes), self.dims, threads, self.own)

    @property
    def num_blocks(self) -> int:
        return self.texels.total

    @property
    def num_threads(self) -> int:
        return math.prod(self.texels.lanes) * self.lanes.parts

    @property
    def images(self) -> int:
        """The images of samples that fall on one texture."""
        return math.prod(self.shape[len(self.textures) : -self.dims])

    def positions(self, outer: jax.Array) -> tuple[Any, list[jax.Array]]:
        """The positions of samples as a function of their pixels, less the origin of the filter; and the first pixel."""
        zero = jnp.zeros_like(outer)
        loaded = self.loaded(self.samples.index(outer, zero, zero, zero))
        first, rest = loaded[: self.dims], loaded[self.dims :]

        def function(*pixels: jax.Array) -> list[jax.Array]:
            coords = self.spec.grid(*pixels, *rest)
            return [scalar(to_position(c, axis) - axis.kernel.origin) for c, axis in zip(coords, self.spec.axes)]

        return function, first

    def find_view(self) -> Traced:
        return traced(self.view, PLACE[0])

    def view(self, outer: jax.Array) -> Any:
        """The fields of `View`."""
        function, first = self.positions(outer)
        unit = lambda k: [jnp.ones_like(p) if n == k else jnp.zeros_like(p) for n, p in enumerate(first)]
        columns = []
        for k in range(self.dims):
            base, column = jax.jvp(function, first, unit(k))
            columns.append(column)
        slope = [[columns[k][n] for k in range(self.dims)] for n in range(self.dims)]
        inverse, finite = inverted(slope)
        extent = self.samples.extent[::-1]
        reach = [[abs(a) * n for a, n in zip(row, extent)] for row in slope]
        pixel = functools.reduce(jnp.maximum, map(jnp.abs, first))
        terms = [jnp.abs(b) + sum(row) + pixel * sum(map(jnp.abs, s)) for b, row, s in zip(base, reach, slope)]
        margin = SLACK + ROUNDING * functools.reduce(jnp.maximum, terms)
        # The samples in the preimage of the texels of a thread.
        half = [(n + axis.kernel.num_taps) * 0.5 + 1 for n, axis in zip(self.own[3 - self.dims :], self.spec.axes)]
        sides = [2 + 2 * sum(jnp.abs(row[n]) * h for n, h in enumerate(half)) for row in inverse]
        taken = finite & (functools.reduce(jnp.multiply, sides) <= MOST_SAMPLES) & (margin < 1)
        for b, row, axis in zip(base, slope, self.spec.axes):
            if axis.address.reads_outside == "edge":
                low, high = (b + sum(edge(a, 0) * (n - 1) for a, n in zip(row, extent)) for edge in (jnp.minimum, jnp.maximum))
                taken &= (low >= -MOST_OUTSIDE) & (high <= axis.known_size + MOST_OUTSIDE)
        return base, slope, inverse, margin, jnp.ones_like(taken) if self.takes_all else taken

    def find_axis_taps(self) -> Traced:
        def function(outer: jax.Array, *place: jax.Array) -> Any:
            _, first = self.positions(outer)
            zero = jnp.zeros_like(outer)
            rest = self.loaded(self.samples.index(outer, zero, zero, zero))[self.dims :]
            pixels = [p + i.astype(p.dtype) for p, i in zip(first, place[::-1])]
            texels, weights = [], []
            for coord, axis in zip(self.spec.grid(*pixels, *rest), self.spec.axes):
                for tap in axis_step(coord, axis, taps).taps:
                    texels.append(scalar(tap.index[0]))
                    weight = scalar(tap.factors[0], jnp.float32)
                    weights.append(weight if tap.inside is None else jnp.where(tap.inside, weight, 0))
            return texels, weights

        return traced(function, *PLACE)

    def view_source(self) -> str:
        """CUDA C with ``view_of(operands, outer)``."""
        statements, (base, slope, inverse, margin, taken) = self.find_view()
        rows = lambda matrix: ", ".join(f"{{{joined(row)}}}" for row in matrix)
        view = f"{{{joined(base)}}}, {{{rows(slope)}}}, {{{rows(inverse)}}}, {joined(margin)}, {joined(taken)}"
        slots = {**super().slots(), "dims": self.dims, "view_statements": statements, "view": view}
        return self.filled("view.cuh", slots)

    def slots(self) -> dict[str, Any]:
        texels, weights = self.find_axis_taps()[1]
        num_taps = self.spec.axes[0].kernel.num_taps
        by_axis = lambda names: ", ".join(f"{{{joined(names[k : k + num_taps])}}}" for k in range(0, len(names), num_taps))
        own = self.own[3 - self.dims :]
        return {
            **super().slots(),
            **of_function("axis_taps", self.find_axis_taps()),
            "axis_taps": f"{{{by_axis(texels)}}}, {{{by_axis(weights)}}}",
            "dims": self.dims,
            "taps": num_taps,
            "sizes": ", ".join(str(axis.known_size) for axis in self.spec.axes),
            "extent": ", ".join(map(str, self.samples.extent[::-1])),
            "own": ", ".join(map(str, own)),
            "most_own": max(own),
            "owned": math.prod(own),
            "first_taps": ", ".join(str(axis.kernel.first) for axis in self.spec.axes),
            "outside": ", ".join(
                str(MOST_OUTSIDE + num_taps if axis.address.reads_outside == "edge" else 0) for axis in self.spec.axes
            ),
            "slack": SLACK,
            "images": self.images,
            "threads": self.num_threads,
            "store": "store_aligned_row" if self.lanes.aligned else "store_row",
        }

    def source(self, name: str) -> str:
        """The whole source, with a function called `name`."""
        slots = {**self.slots(), "name": name}
        templates = (self.filled(template, slots) for template in ("samples.cuh", "gather.cu"))
        first, second = templates
        return "\n".join((scalars(), self.texels.source(), first, self.view_source(), second))


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
