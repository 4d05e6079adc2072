"""The source of the adjoint's kernel for affine grids, in which texels look for the samples around them."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...axis import Role
from ...coordinates import to_position
from ...grids import StoredOrder
from ...spec import ReadSpec
from ...taps import taps
from ...texel_walk import axis_step
from ..cuda_c import scalars
from .sample_source import AdjointPlan, SampleSource, Traced, joined, scalar
from .sample_tiles import PLACE, Extent, SampleTiles

# By the number of axes: the texels of a thread, for texels of one channel and of several, and the threads of a block.
OWN: dict[int, tuple[Extent, Extent]] = {2: ((1, 4, 4), (1, 2, 2)), 3: ((2, 2, 2), (2, 2, 2))}
BLOCK: dict[int, Extent] = {2: (1, 16, 8), 3: (4, 4, 8)}
MOST_THREADS = 256
# A thread looks at most at so many samples; where there are more, a window is faster.
MOST_SAMPLES = 256
# Rounding of indices: of a sample among others, and of a position, in parts of its largest term.
SLACK, ROUNDING = 0.02, 1e-6


def is_gathered(spec: ReadSpec, shape: Sequence[int], batch: int, operands: Sequence[Any]) -> bool:
    """Whether texels can look for their samples: the grid is affine, and taps outside read nothing."""
    grid, axes = spec.grid, spec.axes
    dims = grid.affine_axes if isinstance(grid, StoredOrder) else 0
    if dims not in OWN or dims != len(axes) or len(shape) - batch < dims:
        return False
    if dims == 3 and not spec.deterministic:
        return False  # a window is faster
    if any(axis.role is not Role.SPACE or axis.integer or not axis.address.drops_outside for axis in axes):
        return False
    if len({axis.kernel.num_taps for axis in axes}) > 1:
        return False
    pixels, rest = operands[:dims], operands[dims:]
    last = lambda a: tuple(a.shape[len(a.shape) - dims :])
    lines = [tuple(n if k == dims - 1 - axis else 1 for k, n in enumerate(shape[-dims:])) for axis in range(dims)]
    own = all(last(a) == line and math.prod(a.shape) == math.prod(line) for a, line in zip(pixels, lines))
    return own and all(math.prod(last(a)) == 1 for a in rest) and all(a.dtype == jnp.float32 for a in operands)


class GatherSource(SampleSource):
    """The source of a kernel."""

    def __init__(self, plan: AdjointPlan, arrays: Mapping[str, Any], results: Mapping[str, Any]):
        super().__init__(plan, arrays, results)
        self.dims = len(plan.spec.axes)
        self.samples = SampleTiles(plan.shape, self.dims, (1, 1, 1), (1, 1, 1))
        sizes = tuple(axis.known_size for axis in self.spec.axes)
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
        """On each axis, the texels of a sample's taps, and their weights."""

        def function(outer: jax.Array, *place: jax.Array) -> Any:
            zero = jnp.zeros_like(outer)
            loaded = self.loaded(self.samples.index(outer, zero, zero, zero))
            pixels = [p + i.astype(p.dtype) for p, i in zip(loaded, place[::-1][: self.dims])]
            texels, weights = [], []
            for coord, axis in zip(self.spec.grid(*pixels, *loaded[self.dims :]), self.spec.axes):
                for tap in axis_step(coord, axis, functools.partial(taps, bounded=not self.spec.deterministic)).taps:
                    texels.append(scalar(tap.unbounded[0]))  # one outside is none of the texels
                    weights.append(scalar(tap.factors[0], jnp.float32))
            return texels, weights

        return self.traced(function, *PLACE)

    def slots(self) -> dict[str, Any]:
        statements, (texels, weights) = self.find_axis_taps()
        num_taps = self.spec.axes[0].kernel.num_taps
        by_axis = lambda names: ", ".join(
            f"{{{joined(names[k : k + num_taps])}}}" for k in range(0, len(names), num_taps)
        )
        own = own_texels(self.dims, self.lanes.width)
        return {
            **super().slots(),
            "axis_taps_statements": statements,
            "axis_taps": f"{{{by_axis(texels)}}}, {{{by_axis(weights)}}}",
            "dims": self.dims,
            "numbers": num_numbers(self.dims),
            "taps": num_taps,
            "sizes": ", ".join(str(axis.known_size) for axis in self.spec.axes),
            "extent": ", ".join(map(str, self.samples.extent[::-1])),
            "own": ", ".join(map(str, own)),
            "most_own": max(own),
            "owned": math.prod(own),
            "first_taps": ", ".join(str(axis.kernel.first) for axis in self.spec.axes),
            "slack": SLACK,
            "images": self.images,
            "threads": self.num_threads,
            "store": "store_aligned_row" if self.lanes.aligned else "store_row",
        }

    def source(self, name: str) -> str:
        """The whole source, with a function called `name`."""
        slots = {**self.slots(), "name": name}
        templates = (self.filled(template, slots) for template in ("samples.cuh", "gather.cu"))
        return "\n".join((scalars(), *self.tables, self.texels.source(), *templates))


# Views


def views(spec: ReadSpec, shape: tuple[int, ...], operands: Sequence[jax.Array]) -> jax.Array:
    """How each image of samples lies on its texture: images + (numbers,).

    The numbers are the position of the first sample on each axis, less the origin of the filter; how far it moves along
    each axis for a step along x, y (and z), by rows; the inverse of that; a bound of the rounding of a position; and 1
    if texels look for the samples of this image.
    """
    dims = len(spec.axes)
    extent = shape[: -dims - 1 : -1]
    first = [a[(..., *[0] * dims)] for a in operands[:dims]]
    rest = [a.reshape(a.shape[: a.ndim - dims]) for a in operands[dims:]]

    def positions(*pixels: jax.Array) -> list[jax.Array]:
        coords = spec.grid(*pixels, *rest)
        return [to_position(c, axis) - axis.kernel.origin for c, axis in zip(coords, spec.axes)]

    unit = lambda k: [jnp.ones_like(p) if n == k else jnp.zeros_like(p) for n, p in enumerate(first)]
    base, columns = positions(*first), [jax.jvp(positions, first, unit(k))[1] for k in range(dims)]
    slope = [[column[n] for column in columns] for n in range(dims)]
    inverse, finite = inverted(slope)
    reach = [sum(jnp.abs(a) * n for a, n in zip(row, extent)) for row in slope]
    pixel = functools.reduce(jnp.maximum, map(jnp.abs, first))
    terms = [jnp.abs(b) + r + pixel * sum(map(jnp.abs, row)) for b, r, row in zip(base, reach, slope)]
    margin = SLACK + ROUNDING * functools.reduce(jnp.maximum, terms)
    # The samples in the preimage of the texels of a thread.
    half = [(n + axis.kernel.num_taps) * 0.5 + 1 for n, axis in zip(own_texels(dims, 4), spec.axes)]
    sides = [2 + 2 * sum(jnp.abs(row[n]) * h for n, h in enumerate(half)) for row in inverse]
    taken = finite & (functools.reduce(jnp.multiply, sides) <= MOST_SAMPLES) & (margin < 1)
    if spec.deterministic:  # no bit may depend on the run, even if the search is long
        taken = jnp.ones_like(taken)
    numbers = [*base, *(a for row in slope for a in row), *(a for row in inverse for a in row), margin, taken]
    return jnp.stack([jnp.broadcast_to(a, shape[:-dims]).astype(jnp.float32) for a in numbers], -1)


def num_numbers(dims: int) -> int:
    """The numbers of a view."""
    return dims + 2 * dims * dims + 2


def own_texels(dims: int, channels: int) -> tuple[int, ...]:
    """The texels that a thread owns, on each axis."""
    return OWN[dims][channels > 1][3 - dims :]


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
