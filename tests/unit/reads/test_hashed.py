"""Grids whose vertices share the rows of a table: against a plain NumPy program, which hashes vertex by vertex."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.rules import primitives
from jaxtex.nn.multiresolution import INTERPOLATIONS, plan_pyramid
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact

FACTORS = (1, 2654435761, 805459861, 3674653429)
# The sizes of a grid, x first, and the rows of its table: a power of two and not, fewer than vertices and more.
GRIDS = {"2d": ((7, 7), 16), "3d": ((6, 6, 6), 37), "4d": ((3, 3, 3, 3), 64), "roomy": ((3, 3, 3), 1000)}


def row(vertex, rows):
    """The row of a vertex, x first."""
    number = 0
    for place, factor in zip(vertex, FACTORS):
        number ^= int(place) * factor % 2**32
    return number % rows


def read_hashed(table, coords, sizes, interpolation="linear"):
    """The read of a pyramid of one hashed level, at places among its vertices, of which the first is at 0.5."""
    points = jnp.stack(jnp.broadcast_arrays(*coords), -1) - 1
    level = (1.0,), sizes[:1], table.shape[:1], (True,)
    read = plan_pyramid(table.dtype, points, *level, INTERPOLATIONS[interpolation])
    return primitives.read(table, None, read)[..., 0, :]


BLENDS = {"linear": lambda t: t, "smoothstep": lambda t: t * t * (3 - 2 * t)}


def shares(point, sizes, rows, blend):
    """(row, weight) of each vertex around a point; `blend` is of the linear weight along an axis."""
    inside = [min(max(x - 0.5, 0.0), n - 1.0) for x, n in zip(point, sizes)]
    low = [min(int(np.floor(x)), max(n - 2, 0)) for x, n in zip(inside, sizes)]
    for corner in itertools.product((0, 1), repeat=len(sizes)):
        weights = [blend(1 - abs(x - (k + c))) for x, k, c in zip(inside, low, corner)]
        vertex = [min(k + c, n - 1) for k, c, n in zip(low, corner, sizes)]
        yield row(vertex, rows), np.prod(weights)


def read_by_hand(table, coords, sizes, interpolation="linear"):
    """The read, and its matrix from rows to samples."""
    matrix = np.zeros((len(coords[0]), len(table)))
    for k, point in enumerate(zip(*coords)):
        for number, weight in shares(point, sizes, len(table), BLENDS[interpolation]):
            matrix[k, number] += weight
    return matrix @ table, matrix


def drawn(sizes, rows, count=40, dtype=np.float32):
    """A table of two channels, and places in and around the grid that are not at the center of a vertex."""
    rng = np.random.default_rng(rows)
    whole = [rng.integers(-2, n + 2, count) for n in sizes]
    parts = rng.choice([0.125, 0.25, 0.375, 0.625, 0.75, 0.875], (len(sizes), count))
    coords = tuple((a + b).astype(dtype) for a, b in zip(whole, parts))
    return rng.normal(size=(rows, 2)).astype(dtype), coords


@pytest.mark.parametrize(("name", "interpolation"), [*((name, "linear") for name in GRIDS), ("3d", "smoothstep")])
def test_values_and_gradients_to_the_table(name, interpolation):
    sizes, rows = GRIDS[name]
    table, coords = drawn(sizes, rows)
    expected, matrix = read_by_hand(table, coords, sizes, interpolation)
    values, pullback = jax.vjp(lambda t: read_hashed(t, coords, sizes, interpolation), table)
    assert_close("float32", values, expected, 8)
    assert_close("sum", pullback(values)[0], matrix.T @ np.asarray(values), 64)


def test_at_vertices_and_beyond():
    sizes, rows = GRIDS["3d"]
    table, _ = drawn(sizes, rows)
    vertices = np.array(list(itertools.product(*map(range, sizes))))
    found = read_hashed(table, tuple((vertices + 0.5).astype(np.float32).T), sizes)
    expected = table[[row(vertex, rows) for vertex in vertices]]
    assert_exact(found, expected, np.float32)
    far = np.float32([-1e30, np.inf, -np.inf, np.nan])
    found = read_hashed(table, (far, far, far), sizes)
    last, first = table[row([n - 1 for n in sizes], rows)], table[row([0, 0, 0], rows)]
    assert_exact(found, np.stack([first, last, first, first]), np.float32)


@pytest.mark.parametrize(("name", "interpolation"), [("2d", "linear"), ("3d", "linear"), ("2d", "smoothstep")])
def test_derivatives(name, interpolation, x64):
    sizes, rows = GRIDS[name]
    table, coords = drawn(sizes, rows, 9, np.float64)
    assert_derivatives(lambda t, *c: read_hashed(t, c, sizes, interpolation) ** 2, table, *coords)


def test_smoothstep_is_flat_at_vertices():
    """Through the public function: in one table and in a table for each level, dense and hashed."""
    grid = jt.nn.MultiresolutionGrid(
        ndim=2, num_levels=2, base_resolution=3, log2_hashmap_size=4, interpolation="smoothstep"
    )
    assert grid.hashed == (False, True)
    table = jax.random.normal(jax.random.key(0), (sum(grid.table_sizes), 2))
    tables = jnp.split(table, [grid.table_sizes[0]])
    look = lambda points: jt.nn.multiresolution_grid(table, points, grid)
    vertices = (np.float32([[0, 1], [1, 0]]) + 0.5) / np.float32(grid.scales[0])
    slopes = jax.vmap(jax.jacobian(look))(vertices)
    assert_close("float32", slopes[:, :2], np.zeros((2, 2, 2)), 64)
    assert np.abs(slopes[:, 2:]).min() > 1e-3
    points = np.random.default_rng(5).uniform(0, 1, (20, 2)).astype(np.float32)
    assert_close("float32", jt.nn.multiresolution_grid(tables, points, grid), look(points), 8)


def test_under_vmap_and_of_half_floats():
    """A table for each of several grids, as one batched read."""
    sizes, rows = GRIDS["2d"]
    _, coords = drawn(sizes, rows)
    tables = np.random.default_rng(3).normal(size=(3, rows, 4)).astype(np.float16)
    found = jax.jit(jax.vmap(lambda t: read_hashed(t, coords, sizes)))(tables)
    assert found.dtype == np.float16
    for values, table in zip(found, tables):
        assert_exact(values, read_hashed(jnp.asarray(table), coords, sizes), np.float16)
        assert_close("float16", values, read_by_hand(table.astype(np.float64), coords, sizes)[0], 8)
