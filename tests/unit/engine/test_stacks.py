"""Operands that hold several numbers of each sample: points and flows as one array, read where they lie."""

import functools
import itertools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.describe.operands import Stack, split
from jaxtex._engine.describe.plan import layout_of, space_axes
from jaxtex._engine.describe.spec import Read, ReadSpec
from jaxtex._engine.rules import primitives
from jaxtex._tables.storage_formats import Decoding
from tests.support import host_kernels
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


def batch_of_flows(form):
    return jax.vmap(lambda image, flow: jt.warp.warp_flow(image, form(flow)))


def flows_of_an_image(form):
    return lambda images, flows: jax.vmap(lambda flow: jt.warp.warp_flow(images[0], form(flow)))(flows)


def batch_of_indices(form):
    """Arrays of indices along a first axis, which is the second one for a batch."""
    read = lambda volume, indices: jt.ndimage.map_coordinates(volume, form(indices, 0), order=1)
    return jax.vmap(read, (None, 0))


CALLS = {
    "flow": (lambda form: lambda image, flow: jt.warp.warp_flow(image, form(flow)), IMAGE, FLOW),
    "cubic": (lambda form: lambda image, flow: jt.warp.warp_flow(image, form(flow), filter="cubic"), IMAGE, FLOW),
    "batch of flows": (batch_of_flows, IMAGE, FLOW),
    "flows of an image": (flows_of_an_image, IMAGE, FLOW),
    "grid": (lambda form: lambda i, g: jt.warp.grid_sample(i, form(g), data_format="NHWC"), IMAGE, FLOW),
    "indices": (
        lambda form: lambda a, c: jt.ndimage.map_coordinates(a, form(c, 0), order=1),
        VOLUME,
        INDICES.reshape(3, -1),
    ),
    "batch of indices": (batch_of_indices, VOLUME, INDICES),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_one_array_equals_several(name):
    """Values and cotangents of one array of points are those of an array for each component."""
    call, *args = CALLS[name]
    cotangent = drawn(*jax.eval_shape(call(whole), *args).shape)
    expected = jax.jit(functools.partial(value_and_cotangents, call(parts)))(cotangent, *args)
    found = jax.jit(functools.partial(value_and_cotangents, call(whole)))(cotangent, *args)
    assert_trees_close("sum", found, expected, 200)


def test_derivatives_of_second_order():
    """A derivative of a gradient is that of the same reads."""

    def along(form):
        energy = lambda flow, image: jnp.sum(jnp.sin(jt.warp.warp_flow(image, form(flow))))
        change = drawn(*FLOW.shape), drawn(*IMAGE.shape)
        return jax.jit(lambda *args: jax.jvp(jax.grad(energy), args, change)[1])(FLOW, IMAGE)

    assert_trees_close("sum", along(whole), along(parts), 400)


def test_a_kernel_takes_a_flow_whole():
    """A kernel loads a flow as it is stored, and writes its cotangent so."""
    seen = []

    def run(kernel, args, results, aliases):
        seen.append((kernel.name, [a.shape for a in args], [r.shape for r in results]))
        return host_kernels.run(kernel, args, results, aliases)

    with kernels_on_cpu(), mock.patch("jaxtex._engine.cuda.build.launch.run", run):
        jax.jit(lambda i, f: jax.vjp(jt.warp.warp_flow, i, f)[1](jnp.ones((3, 7, 6, 2))))(IMAGE, FLOW)
    pulled = next(row for row in seen if row[0] == "texture_pullback")
    assert (3, 7, 6, 2) in pulled[1][1:]
    assert (3, 7, 6, 2) in pulled[2]
    assert (3, 7, 6) not in itertools.chain(*pulled[1:])


@pytest.mark.parametrize("axis", [-1, -2, -3])
def test_an_operand_in_any_order(axis):
    """Numbers may lie in any order, along any axis: x before y, where the engine takes y first."""
    texture = jt.texture2d(IMAGE[0])
    sampler = jt.Sampler(normalized_coords=False, address_mode="mirror")
    axes, x_y = space_axes(layout_of(texture), sampler), 4 + 3 * drawn(2, 5, 3)
    points = np.moveaxis(x_y, 0, axis)

    def stacked(texels, points):
        spec = ReadSpec(axes, Decoding.ELEMENT, np.dtype(np.float32), stacks=(Stack(axis, (1, 0)),))
        return primitives.read(texels, None, Read(spec, (points,)))

    def separate(texels, points):
        x, y = jnp.moveaxis(points, axis, 0)
        return jt.sample(jt.texture2d(texels), (x, y), sampler)

    cotangent = drawn(5, 3, 2)
    expected = jax.jit(functools.partial(value_and_cotangents, separate))(cotangent, IMAGE[0], points)
    assert_trees_close(
        "sum", jax.jit(functools.partial(value_and_cotangents, stacked))(cotangent, IMAGE[0], points), expected, 60
    )
    change = drawn(*points.shape)
    tangent = lambda f: jax.jit(lambda *primals: jax.jvp(f, primals, (IMAGE[0], change))[1])(IMAGE[0], points)
    assert_trees_close("sum", tangent(stacked), tangent(separate), 60)


def test_operands_without_stacks_have_no_stacks():
    arrays = jnp.ones(3), jnp.zeros(3)
    assert split(arrays) == (arrays, ())
