"""Reads side by side in one array: kernels store their slices of it, and load those of its cotangent, in place."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.cuda.read import read_kernel
from jaxtex._engine.describe.plan import Layout, plan_of_grid
from jaxtex._engine.describe.storage import Sliced
from jaxtex._engine.forms import gpu_kernels
from jaxtex._engine.rules import primitives
from jaxtex._engine.rules.concatenated import BatchedRead, concatenated
from jaxtex.nn.multiresolution import plan_pyramid
from jaxtex.warp.coordinate_functions import affine
from jaxtex.warp.images import grid_operands
from tests.support.host_kernels import kernels_on_cpu
from tests.support.tolerances import assert_trees_close


def drawn(*shape, scale=1.0):
    return jnp.asarray(scale * np.random.default_rng(sum(shape)).random(shape), np.float32)


def pulled(function):
    """A function with the cotangents of its first argument, for a cotangent before its arguments."""

    def run(cotangent, first, *rest):
        out, pull = jax.vjp(lambda first: function(first, *rest), first)
        return out, pull(cotangent)

    return run


def by_kernels(function, args, monkeypatch):
    """Results by XLA and by kernels, and the slices of arrays that kernels stored and loaded."""
    places = []

    def noted(module, name, values_of):
        run = getattr(module, name)

        def wrapped(*args, **keywords):
            values = values_of(*args, **keywords)
            places.extend([values.slice[1:]] if isinstance(values, Sliced) else [])
            return run(*args, **keywords)

        monkeypatch.setattr(module, name, wrapped)

    run, out = pulled(function), jax.eval_shape(function, *args)
    cotangent = drawn(*out.shape).astype(out.dtype)
    plain = jax.jit(run)(cotangent, *args)
    noted(read_kernel, "read_each_sample", lambda *_, into=None, **__: into)
    noted(gpu_kernels, "adjoint", lambda cotangent, *_, **__: cotangent)
    with kernels_on_cpu():
        return plain, jax.jit(functools.partial(run))(cotangent, *args), places


def levels(tables, points, grid):
    return jt.nn.multiresolution_grid(tables, points, grid)


def grid_inputs(features, dtype="float32"):
    grid = jt.nn.MultiresolutionGrid(
        ndim=2, num_levels=3, base_resolution=4, log2_hashmap_size=6, features_per_level=features
    )
    tables = [drawn(rows, features).astype(dtype) for rows in grid.table_sizes]
    return grid, tables, drawn(5, 7, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("features", "dtype", "stored", "loaded"),
    [
        (9, "float32", 3, 3),
        (2, "float32", 0, 3),  # too few to be stored at once
        (16, "bfloat16", 3, 0),  # no values for the kernels of an adjoint
    ],
)
def test_levels_of_a_grid(features, dtype, stored, loaded, monkeypatch):
    grid, *args = grid_inputs(features, dtype)
    plain, found, places = by_kernels(functools.partial(levels, grid=grid), args, monkeypatch)
    as_float32 = lambda tree: jax.tree.map(lambda a: a.astype(jnp.float32), tree)
    assert_trees_close("sum", as_float32(found), as_float32(plain), 35 * (8 if dtype == "float32" else 2**16))
    expected = [(3 * features, k * features, features) for k in range(3)]
    assert places[:stored] == expected[:stored]
    assert sorted(places[stored:]) == expected[:loaded]


def test_windows_of_a_pyramid(monkeypatch):
    """The reads of a level lie side by side for each point."""
    pyramid = [drawn(1, 3, 4, *size) for size in ((8, 9), (4, 4))]
    lookup = functools.partial(jt.nn.correlation_lookup, radius=1)
    plain, found, places = by_kernels(lookup, (pyramid, drawn(1, 3, 4, 2, scale=8)), monkeypatch)
    assert_trees_close("sum", found, plain, 9 * 4)
    assert sorted(places) == [(18, 0, 9)] * 2 + [(18, 9, 9)] * 2


def turned(images, matrices, deterministic=False):
    """Images that are turned, side by side in rows of pixels, and the parts of two are not aligned."""
    sampler = jt.Sampler(address_mode="border", normalized_coords=False)

    def read(image, matrix):
        layout = Layout(jt.TextureKind.TEXTURE2D, image.shape)
        operands = grid_operands(
            [jnp.full((1, 1), number, jnp.float32) for number in matrix], image.shape[:2], 0, image.dtype
        )
        plan = plan_of_grid(layout, affine, operands, sampler, np.dtype("float32"), 2)
        return BatchedRead(image, plan.replace(deterministic=deterministic))

    return concatenated([read(*some) for some in zip(images, matrices)], 2)


@pytest.mark.slow
@pytest.mark.parametrize("deterministic", [False, True])
def test_sums_that_look_at_values_several_times(deterministic, monkeypatch):
    """Texels that look for their samples, and reproducible sums, get a copy."""
    matrices = (0.8, -0.6, 9.0, 0.6, 0.8, -9.0), (1.1, 0.2, 0.0, 0.1, 0.9, 3.0)
    function = functools.partial(turned, matrices=matrices, deterministic=deterministic)
    images = [drawn(20, 24, 9), drawn(20, 24, 8)]
    plain, found, places = by_kernels(function, (images,), monkeypatch)
    assert_trees_close("sum", found, plain, 64)
    # Rows of eight channels would not be aligned.
    assert sorted(places) == [(17, 0, 9), (17, 0, 9), (17, 9, 8)]


@pytest.mark.slow
def test_every_rule_is_that_of_the_reads():
    """Forward and reverse mode, the second order, batches, and the transpose, of tables of which some are constant."""
    grid, tables, points = grid_inputs(2)
    alone = [functools.partial(one_level, grid=grid, k=k) for k in range(3)]
    separate = lambda tables, points: jnp.concatenate([f(t, points) for f, t in zip(alone, tables)], -1)
    all_levels = functools.partial(levels, grid=grid)
    weights = drawn(5, 7, 6)

    def results(function):
        loss = lambda tables, points, weights: jnp.sum(function(tables, points) ** 2 * weights)
        gradient = jax.grad(loss, (0, 1))
        tangents = [t[::-1] for t in tables], points[::-1], weights
        yield jax.jvp(gradient, (tables, points, weights), tangents)
        several = [jnp.stack([k * tables[0] for k in range(1, 6)]), *tables[1:]]
        yield jax.vmap(gradient, ([0, None, None], 0, 0))(several, points, weights)
        linear = lambda first, last: function([first, 0 * tables[1], last], points)
        yield jax.linear_transpose(linear, tables[0], tables[2])(weights)

    found, expected = jax.jit(lambda: [list(results(f)) for f in (all_levels, separate)])()
    assert_trees_close("sum", found, expected, 64)


def one_level(table, points, *, grid, k):
    """The features of one level."""
    level = grid.scales[k : k + 1], [grid.resolutions[k] + 1], [len(table)], [grid.hashed[k]]
    read = plan_pyramid(table.dtype, points[..., :2], *level)
    return primitives.read(table, None, read)[..., 0, :]


def test_without_jit():
    grid, tables, points = grid_inputs(2)
    with jax.disable_jit():
        found = jt.nn.multiresolution_grid(tables, points, grid)
    assert_trees_close("sum", found, jt.nn.multiresolution_grid(tables, points, grid), 4)


def test_no_points():
    grid, tables, points = grid_inputs(2)
    assert jt.nn.multiresolution_grid(tables, points[:0], grid).shape == (0, 7, 6)
