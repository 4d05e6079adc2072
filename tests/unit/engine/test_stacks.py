"""Operands that hold several numbers of each sample, read where they lie, and reads side by side in one array."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.describe.hashing import plan_of_pyramid
from jaxtex._engine.rules import primitives
from tests.support.host_kernels import kernels_on_cpu
from tests.support.tolerances import assert_trees_close


def drawn(*shape, scale=1.0):
    return (scale * np.random.default_rng(sum(shape)).normal(size=shape)).astype(np.float32)


def value_and_cotangents(function, cotangent, *args):
    value, pull = jax.vjp(function, *args)
    return value, pull(cotangent)


IMAGE, FLOW = drawn(3, 9, 8, 2), drawn(3, 7, 6, 2, scale=2)
VOLUME, INDICES = drawn(5, 6, 7), 3 + drawn(2, 3, 4, 5, scale=2)


def parts(points, axis=-1):
    """The components of points by themselves."""
    return tuple(jnp.moveaxis(points, axis, 0))


def whole(points, axis=-1):
    del axis
    return points


def flows_of_an_image(form):
    return lambda images, flows: jax.vmap(lambda flow: jt.warp.warp_flow(images[0], form(flow)))(flows)


def batch_of_indices(form):
    """Arrays of indices along a first axis, which is the second one for a batch."""
    read = lambda volume, indices: jt.ndimage.map_coordinates(volume, form(indices, 0), order=1)
    return jax.vmap(read, (None, 0))


CALLS = {"flows of an image": (flows_of_an_image, IMAGE, FLOW), "batch of indices": (batch_of_indices, VOLUME, INDICES)}


def test_one_array_equals_several():
    """Values and cotangents of one array of points are those of an array for each component."""
    cotangents = {name: drawn(*jax.eval_shape(call(whole), *args).shape) for name, (call, *args) in CALLS.items()}

    @jax.jit
    def run(cotangents, arguments):
        of = lambda name, form: value_and_cotangents(CALLS[name][0](form), cotangents[name], *arguments[name])
        return {name: (of(name, whole), of(name, parts)) for name in CALLS}

    for name, (found, expected) in run(cotangents, {name: args for name, (_, *args) in CALLS.items()}).items():
        assert_trees_close("sum", {name: found}, {name: expected}, 200)


def test_derivatives_of_second_order():
    """A derivative of a gradient is that of the same reads."""

    def along(form, flow, image, change):
        energy = lambda flow, image: jnp.sum(jnp.sin(jt.warp.warp_flow(image, form(flow))))
        return jax.jvp(jax.grad(energy), (flow, image), change)[1]

    change = drawn(*FLOW.shape), drawn(*IMAGE.shape)
    found, expected = jax.jit(lambda *args: [along(form, *args) for form in (whole, parts)])(FLOW, IMAGE, change)
    assert_trees_close("sum", found, expected, 400)


def test_windows_of_a_pyramid():
    """The reads of a level lie side by side for each point: by kernels as by XLA, and so their cotangents."""
    pyramid = [drawn(1, 3, 4, *size) for size in ((8, 9), (4, 4))]

    def run(cotangent, pyramid, points):
        out, pull = jax.vjp(lambda pyramid: jt.nn.correlation_lookup(pyramid, points, radius=1), pyramid)
        return out, pull(cotangent)

    args = drawn(1, 3, 4, 18), pyramid, drawn(1, 3, 4, 2, scale=8)
    plain = jax.jit(run)(*args)
    with kernels_on_cpu():
        found = jax.jit(functools.partial(run))(*args)
    assert_trees_close("sum", found, plain, 9 * 4)


@pytest.mark.slow
def test_every_rule_is_that_of_the_reads():
    """Forward and reverse mode, the second order, batches, and the transpose, of tables of which some are constant."""
    grid = jt.nn.MultiresolutionGrid(ndim=2, num_levels=3, base_resolution=4, log2_hashmap_size=6)
    tables, points = [drawn(rows, 2) for rows in grid.table_sizes], drawn(5, 7, 2)
    alone = [functools.partial(one_level, grid=grid, k=k) for k in range(3)]
    separate = lambda tables, points: jnp.concatenate([f(t, points) for f, t in zip(alone, tables)], -1)
    all_levels = lambda tables, points: jt.nn.multiresolution_grid(tables, points, grid)
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
    level = grid.scales[k : k + 1], [grid.resolutions[k] + 1], [len(table)], [grid.hashed[k]]
    read = plan_of_pyramid(table.dtype, points[..., :2], *level)
    return primitives.read(table, None, read)[..., 0, :]
