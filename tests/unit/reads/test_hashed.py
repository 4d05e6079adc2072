"""Grids whose vertices share the rows of a table: against a plain NumPy program, which hashes vertex by vertex."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtex.nn.multiresolution import plan_pyramid
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


def read_hashed(table, coords, sizes):
    """The read of a pyramid of one hashed level, at places among its vertices, of which the first is at 0.5."""
    points = tuple(c - 1 for c in coords)
    return plan_pyramid(table, points, (1.0,), sizes[:1], table.shape[:1], (True,)).values()[..., 0, :]


def shares(point, sizes, rows):
    """(row, weight) of each vertex around a point."""
    inside = [min(max(x - 0.5, 0.0), n - 1.0) for x, n in zip(point, sizes)]
    low = [min(int(np.floor(x)), max(n - 2, 0)) for x, n in zip(inside, sizes)]
    for corner in itertools.product((0, 1), repeat=len(sizes)):
        weights = [1 - abs(x - (k + c)) for x, k, c in zip(inside, low, corner)]
        vertex = [min(k + c, n - 1) for k, c, n in zip(low, corner, sizes)]
        yield row(vertex, rows), np.prod(weights)


def read_by_hand(table, coords, sizes):
    """The read, and its matrix from rows to samples."""
    matrix = np.zeros((len(coords[0]), len(table)))
    for k, point in enumerate(zip(*coords)):
        for number, weight in shares(point, sizes, len(table)):
            matrix[k, number] += weight
    return matrix @ table, matrix


def drawn(sizes, rows, count=40, dtype=np.float32):
    """A table of two channels, and places in and around the grid that are not at the center of a vertex."""
    rng = np.random.default_rng(rows)
    whole = [rng.integers(-2, n + 2, count) for n in sizes]
    parts = rng.choice([0.125, 0.25, 0.375, 0.625, 0.75, 0.875], (len(sizes), count))
    coords = tuple((a + b).astype(dtype) for a, b in zip(whole, parts))
    return rng.normal(size=(rows, 2)).astype(dtype), coords


@pytest.mark.parametrize("name", GRIDS)
def test_values_and_gradients_to_the_table(name):
    sizes, rows = GRIDS[name]
    table, coords = drawn(sizes, rows)
    expected, matrix = read_by_hand(table, coords, sizes)
    values, pullback = jax.vjp(lambda t: read_hashed(t, coords, sizes), table)
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


@pytest.mark.parametrize("name", ["2d", "3d"])
def test_derivatives(name, x64):
    sizes, rows = GRIDS[name]
    table, coords = drawn(sizes, rows, 9, np.float64)
    assert_derivatives(lambda t, *c: read_hashed(t, c, sizes) ** 2, table, *coords)


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
