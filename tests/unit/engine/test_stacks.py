"""Operands that hold several numbers of each sample: points and flows as one array, read where they lie."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
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
