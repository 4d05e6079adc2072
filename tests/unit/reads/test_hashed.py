"""Grids whose vertices share the rows of a table: against a plain NumPy program, which hashes vertex by vertex."""

import functools
import itertools

import jax
import numpy as np

import jaxtex as jt
from tests.support.cases import computed
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, named

FACTORS = (1, 2654435761, 805459861)
# By the number of axes, the vertices along each, one more than the size of a level, and the rows of its table. The
# scale of a level is a power of two, so that places among vertices are exact.
GRIDS = {2: (10, 16), 3: (6, 32)}
BLENDS = {"linear": lambda t: t, "smoothstep": lambda t: t * t * (3 - 2 * t)}


def row(vertex, rows):
    """The row of a vertex, x first."""
    return functools.reduce(int.__xor__, (int(k) * factor % 2**32 for k, factor in zip(vertex, FACTORS))) % rows


def look(table, places, interpolation="linear"):
    """The read of a hashed level at places among its vertices (..., ndim), x first, the first vertex at 0."""
    size, rows = GRIDS[places.shape[-1]]
    grid = jt.nn.MultiresolutionGrid(
        ndim=places.shape[-1],
        num_levels=1,
        base_resolution=size - 1,
        log2_hashmap_size=rows.bit_length() - 1,
        features_per_level=table.shape[-1],
        interpolation=interpolation,
    )
    assert grid.hashed == (True,)
    return jt.nn.multiresolution_grid(table, (places - 0.5) / grid.scales[0], grid)


def matrix(places, interpolation="linear"):
    """The read from rows to samples by hand; the blend is of the linear weight along an axis."""
    size, rows = GRIDS[places.shape[-1]]
    found = np.zeros((len(places), rows))
    for sample, place in zip(found, np.clip(np.nan_to_num(places), 0, size - 1)):
        low = np.minimum(np.floor(place), size - 2).astype(int)
        for corner in itertools.product((0, 1), repeat=len(place)):
            weights = BLENDS[interpolation](1 - np.abs(place - (low + corner)))
            sample[row(low + corner, rows)] += np.prod(weights)
    return found


def drawn(ndim, count=40, dtype=np.float32):
    """A table of two channels, and places in and around the grid that are at no vertex."""
    (size, rows), rng = GRIDS[ndim], np.random.default_rng(ndim)
    parts = rng.choice([0.125, 0.25, 0.375, 0.625, 0.75, 0.875], (count, ndim))
    places = rng.integers(-2, size + 1, (count, ndim)) + parts
    return rng.normal(size=(rows, 2)).astype(dtype), places.astype(dtype)


# Vertices, and what is far away or no number.
SPECIAL = np.float32([0, 3, 9, -1e30, np.inf, -np.inf, np.nan])


def test_values_and_gradients_to_the_table():
    rows = []
    for ndim, how in ((2, "linear"), (3, "smoothstep")):
        table, places = drawn(ndim)
        rows.append((how, table, np.concatenate([places, np.tile(SPECIAL[:, None], ndim)])))

    def both(interpolation):
        def run(table, places):
            values, pullback = jax.vjp(lambda t: look(t, places, interpolation), table)
            return values, pullback(values)[0]

        return run

    found = computed(*((both(how), *arrays) for how, *arrays in rows))
    for (how, table, places), (values, pulled) in zip(rows, found):
        with named(how):
            by_hand = matrix(places, how)
            assert_close("float32", values, by_hand @ table, 8)
            assert_close("sum", pulled, by_hand.T @ values, 64)


def test_derivatives(x64):
    assert_derivatives(lambda t, c: look(t, c, "smoothstep") ** 2, *drawn(2, 9, np.float64))
