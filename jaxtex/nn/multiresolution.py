"""Multiresolution grids of features, dense or hashed: the encoding of instant-ngp."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from .._checks.calls import public
from .._checks.numbers import as_float, as_integer, as_number, is_integer
from .._checks.words import check_word, shown
from .._engine.api import Read, concatenated, plan_of_pyramid, read_texels
from .._jax.calls import typed_jit
from .._jax.indexing import everywhere
from .._reads.arguments import check_dtype, check_key, converted
from .._tables.filter_kernels import LINEAR, SMOOTHSTEP
from .shapes import check_shape

NAME = "multiresolution_grid"
# Rows of a table come in multiples of this number.
ALIGNMENT = 8
# The largest number at the start.
SPREAD = 1e-4
INTERPOLATIONS = {"linear": LINEAR, "smoothstep": SMOOTHSTEP}
# Fields of a grid that are integers: the least and the greatest.
BOUNDS = {
    "ndim": (2, 3),
    "num_levels": (1, 64),
    "base_resolution": (2, 2**15),
    "log2_hashmap_size": (1, 30),
    "features_per_level": (1, 1024),
}


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True, kw_only=True)
class MultiresolutionGrid:
    """The sizes of the levels of a multiresolution grid, as tiny-cuda-nn computes them.

    It holds no arrays, is frozen and hashable, and a pytree without leaves. Level l has the scale
    ``2^(l log2(per_level_scale)) base_resolution - 1``, computed in float32, and ``ceil(scale) + 1`` vertices along
    each axis. If all of them fit into a table of ``2^log2_hashmap_size`` rows, the level is dense, and its table has a
    row for each, rounded up to a multiple of 8. Otherwise it is hashed, and its table has ``2^log2_hashmap_size`` rows.

    Args:
        ndim: the number of coordinates of a point, 2 or 3.
        num_levels: the number of levels.
        base_resolution: the number of vertices of the coarsest level along each axis.
        per_level_scale: the factor from the resolution of one level to that of the next; ``None`` is 2, or follows from
            `finest_resolution`.
        finest_resolution: the resolution of the finest level, in place of `per_level_scale`, which is then
            ``exp(log(finest_resolution / base_resolution) / (num_levels - 1))``, as instant-ngp computes it.
        log2_hashmap_size: the base-2 logarithm of the maximum number of rows of a table.
        features_per_level: the number of features of a row.
        interpolation: how the features of vertices are blended: ``"linear"``, or ``"smoothstep"``, with weights
            ``3 t^2 - 2 t^3`` in place of t, so that gradients with respect to points are continuous, and zero at the
            vertices of a level.

    Raises:
        ValueError: if a number or a word is out of range, or both `per_level_scale` and `finest_resolution` are given.

    Source: T. Müller, A. Evans, C. Schied and A. Keller, "Instant Neural Graphics Primitives with a Multiresolution
        Hash Encoding", 2022; `encodings/grid.h` of tiny-cuda-nn.

    Example:
        >>> import jaxtex as jt
        >>> grid = jt.nn.MultiresolutionGrid(num_levels=3, log2_hashmap_size=14)
        >>> grid.resolutions, grid.table_sizes, grid.hashed
        ((16, 32, 64), (4096, 16384, 16384), (False, True, True))
    """

    ndim: int = 3
    num_levels: int = 16
    base_resolution: int = 16
    per_level_scale: float | None = None
    finest_resolution: int | None = None
    log2_hashmap_size: int = 19
    features_per_level: int = 2
    interpolation: str = "linear"

    def __post_init__(self) -> None:
        for field, (low, high) in BOUNDS.items():
            object.__setattr__(self, field, as_integer("MultiresolutionGrid", field, getattr(self, field), low, high))
        check_word("MultiresolutionGrid", "interpolation", self.interpolation, INTERPOLATIONS)
        if self.per_level_scale is not None and self.finest_resolution is not None:
            raise ValueError(
                "MultiresolutionGrid: per_level_scale and finest_resolution are given, and each follows from the "
                "other; leave one out."
            )
        finest, scale = self.finest_resolution, cast(Any, self.per_level_scale)
        if finest is not None and not is_integer(finest, self.base_resolution):
            raise ValueError(
                f"MultiresolutionGrid: finest_resolution is {shown(finest)}, expected an integer of at least "
                f"base_resolution, {self.base_resolution}."
            )
        object.__setattr__(self, "finest_resolution", None if finest is None else int(finest))
        if scale is not None:
            least = "a number of at least 1"
            as_number("MultiresolutionGrid", "per_level_scale", scale, lambda n: 1 <= n < math.inf, least)
        if self.scales[-1] >= 2**24:
            raise ValueError(
                f"MultiresolutionGrid: the finest level has a scale of {self.scales[-1]:.0f}, at which float32 has no "
                f"fractions; use fewer levels, or a smaller per_level_scale."
            )

    @property
    def scales(self) -> tuple[float, ...]:
        """The number of cells of each level along an axis that spans 0 to 1, from the coarsest."""
        growth = 2.0 if self.per_level_scale is None else self.per_level_scale
        if self.finest_resolution is not None:
            growth = math.exp(math.log(self.finest_resolution / self.base_resolution) / max(self.num_levels - 1, 1))
        logarithm = np.float32(math.log2(np.float32(growth)))
        powers = (np.float32(2.0 ** min(float(np.float32(k) * logarithm), 64.0)) for k in range(self.num_levels))
        return tuple(float(power * np.float32(self.base_resolution) - np.float32(1)) for power in powers)

    @property
    def resolutions(self) -> tuple[int, ...]:
        """The number of vertices of each level along an axis."""
        return tuple(math.ceil(scale) + 1 for scale in self.scales)

    @property
    def hashed(self) -> tuple[bool, ...]:
        """Whether each level is hashed."""
        return tuple(n**self.ndim > 2**self.log2_hashmap_size for n in self.resolutions)

    @property
    def table_sizes(self) -> tuple[int, ...]:
        """The number of rows of each level's table."""
        most = 2**self.log2_hashmap_size
        return tuple(min(-(-(n**self.ndim) // ALIGNMENT) * ALIGNMENT, most) for n in self.resolutions)


@public
def multiresolution_grid_init(key: jax.Array, grid: MultiresolutionGrid, dtype: DTypeLike = "float32") -> jax.Array:
    """Returns a random table for a multiresolution grid, uniform from -0.0001 to 0.0001.

    Args:
        key: a random key of `jax.random`.
        grid: a `MultiresolutionGrid`.
        dtype: the dtype of the table, floating.

    Returns:
        ``(sum of grid.table_sizes, grid.features_per_level)``, the levels one after the other, as in tiny-cuda-nn.

    Gradients: none.

    Raises:
        TypeError: if `grid` is not a `MultiresolutionGrid`.

    Source: as in `MultiresolutionGrid`.

    Example:
        >>> import jax, jaxtex as jt
        >>> grid = jt.nn.MultiresolutionGrid(num_levels=2, log2_hashmap_size=14)
        >>> jt.nn.multiresolution_grid_init(jax.random.key(0), grid).shape
        (20480, 2)
    """
    name = "multiresolution_grid_init"
    check_grid(name, grid)
    shape = (sum(grid.table_sizes), grid.features_per_level)
    key, dtype = check_key(name, key), check_dtype(name, dtype, np.dtype(np.float32))
    return random_table(key, shape, dtype)


@typed_jit("shape", "dtype")
def random_table(key: jax.Array, shape: tuple[int, ...], dtype: np.dtype) -> jax.Array:
    """Numbers that are uniform from -`SPREAD` to `SPREAD`."""
    return jax.random.uniform(key, shape, dtype, -SPREAD, SPREAD)


@public
def multiresolution_grid(
    tables: ArrayLike | Sequence[ArrayLike], points: ArrayLike, grid: MultiresolutionGrid
) -> jax.Array:
    """Reads the features of points from all levels of a multiresolution grid, dense or hashed.

    In level l, a point p lies at ``scale p + 0.5`` among the vertices, and the features of the vertices around it are
    blended as `grid.interpolation` says. A dense level has vertex (i, j, k) in row ``i + j n + k n^2``, where n is its
    resolution; a hashed level has it in row ``(i xor 2654435761 j xor 805459861 k) mod rows``, in 32-bit arithmetic.
    Two vertices of a hashed level may share a row.

    Args:
        tables: ``(sum of grid.table_sizes, grid.features_per_level)``, floating, the levels one after the other;
            `multiresolution_grid_init` makes it. All levels are then read in one pass. Or a sequence of one array per
            level, each read by itself, which is faster from about a million points on.
        points: ``(..., grid.ndim)``, x first, from 0 to 1. A point outside reads like the nearest point inside, or like
            a point up to half a cell beyond that.
        grid: a `MultiresolutionGrid`, static.

    Returns:
        ``(..., num_levels * features_per_level)``, the levels one after the other, in the dtype of `tables`. Weights
        and sums are computed in float32, or in float64 if an argument is float64.

    Gradients: of any order, in forward and reverse mode, with respect to `tables` and `points`. At a vertex the slope
        of the linear interpolation is the one on the right; the second derivative of smoothstep is, too.

    Precision: scales, resolutions, rows and weights are those of tiny-cuda-nn, with two exceptions. First, tiny-cuda-nn
        rounds ``scale p + 0.5`` once, and computes its scales with a GPU's `exp2f`, whose last bit may differ. Second,
        it keeps sums in 16 bits if features have 16 bits. In a dense level, a point within half a cell of 1 may reach
        the vertex n, which has no row of its own. Like tiny-cuda-nn, this function then reads row ``i + j n + k n^2``
        anyway: a vertex of the next line, or, past the end of the table, one of the first rows.

    Raises:
        ValueError: if shapes do not fit the grid.
        TypeError: if `grid` is not a `MultiresolutionGrid`.

    Source: as in `MultiresolutionGrid`.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> grid = jt.nn.MultiresolutionGrid(ndim=2, num_levels=2, base_resolution=4, features_per_level=1)
        >>> table = np.concatenate([np.arange(size, dtype=np.float32) for size in grid.table_sizes])[:, None]
        >>> jt.nn.multiresolution_grid(table, np.array([[0.5, 0.0]]), grid)
        Array([[4., 8.]], dtype=float32)
    """
    check_grid(NAME, grid)
    points = converted(NAME, "points", points)
    if isinstance(tables, list | tuple):
        given: Any = tuple(converted(NAME, f"tables[{k}]", table) for k, table in enumerate(cast(list[Any], tables)))
    else:
        given = converted(NAME, "tables", tables)
    return encoded(given, points, grid=grid)


@typed_jit("grid")
def encoded(tables: Any, points: ArrayLike, *, grid: MultiresolutionGrid) -> jax.Array:
    """The features of points, as one compiled program."""
    place = as_float(points)
    check_shape(NAME, "points", place, (*place.shape[:-1], grid.ndim), f"(..., {grid.ndim}), x first")
    kernel = INTERPOLATIONS[grid.interpolation]
    # A point may reach one vertex beyond the level's last.
    sizes = tuple(size + 1 for size in grid.resolutions)
    shape = *place.shape[:-1], grid.num_levels * grid.features_per_level
    if not isinstance(tables, tuple):
        table = check_table("tables", tables, sum(grid.table_sizes), grid)
        read = plan_of_pyramid(table.dtype, place, grid.scales, sizes, grid.table_sizes, grid.hashed, kernel)
        return read_texels(everywhere(table), None, read).reshape(shape).astype(table.dtype)
    given = cast(tuple[Any, ...], tables)
    if len(given) != grid.num_levels:
        raise ValueError(f"{NAME}: tables holds {len(given)} tables, expected {grid.num_levels}, one for each level.")
    reads: list[tuple[jax.Array, Read, int]] = []
    for k, rows in enumerate(grid.table_sizes):
        table = check_table(f"tables[{k}]", given[k], rows, grid)
        level = grid.scales[k : k + 1], sizes[k : k + 1], (rows,), grid.hashed[k : k + 1]
        # A point may read any row of the table.
        reads.append((everywhere(table), plan_of_pyramid(table.dtype, place, *level, kernel), 0))
    return concatenated(reads, place.ndim - 1).reshape(shape).astype(given[0].dtype)


def check_table(argument: str, value: Any, rows: int, grid: MultiresolutionGrid) -> jax.Array:
    """A table of so many rows of floating numbers."""
    table = jnp.asarray(value)
    check_shape(NAME, argument, table, (rows, grid.features_per_level), "(rows, features)")
    if not jnp.issubdtype(table.dtype, jnp.floating):
        raise ValueError(f"{NAME}: {argument} has dtype {table.dtype}, expected floating numbers.")
    return table


def check_grid(name: str, grid: Any) -> None:
    """A `MultiresolutionGrid`."""
    if not isinstance(grid, MultiresolutionGrid):
        raise TypeError(f"{name}: grid is a {type(grid).__name__}, expected a jaxtex.nn.MultiresolutionGrid.")
