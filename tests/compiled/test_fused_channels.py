"""Channels that do not mix are divided among adjacent threads, with the results of `jax.vmap`."""

import functools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.cuda.programs import channels, tiles
from jaxtex._engine.describe.program import equations
from tests.compiled.test_fused import compare, kernels_of, value_and_gradients

pytestmark = pytest.mark.usefixtures("default_promotion")

RNG = np.random.default_rng(8)
CHANNELS, SHAPE = 16, (18, 7)
IMAGE = RNG.uniform(size=(9, 11, CHANNELS)).astype(np.float32)
MEANS = RNG.uniform(size=CHANNELS).astype(np.float32)
SCALES = RNG.uniform(1, 2, (*SHAPE, 3)).astype(np.float32)
OTHER = RNG.uniform(size=(9, 11, 2)).astype(np.float32)
LINEAR, BORDER = jt.Sampler(), jt.Sampler(address_mode="border")
CUBIC = jt.Sampler(filter_mode="cubic")


def read(y, x, image, sampler=LINEAR):
    return jt.sample(jt.texture2d(image), ((x + 0.3) / 7, (y + 0.6) / 5), sampler)


def shifted(y, x, image, other, scales, means):
    """Places that another texture and numbers of the sample move, and means of the channels, known and given."""
    flow = read(y, x, other)
    color = read(y + flow[0] * scales[0], x + scales[1] * flow[1], image, BORDER)
    return jnp.where(color > 0.4, (color - means) * scales[2], jnp.tanh(color * jnp.asarray(MEANS)))


def of_points(y, x, image, other, scales, means):
    """Products with the weights of points, the best of them, and texels at computed places."""
    del other, means
    points = jnp.stack([read(y + 0.1 * k, x * scales[k], image, CUBIC) for k in range(3)])
    corner = jax.lax.dynamic_slice(image, (y, x, 0), (2, 2, CHANNELS)).max((0, 1))
    return scales @ points + points.max(0) + image[y, x] + corner.reshape(1, -1)[0]


def in_loops(y, x, image, other, scales, means):
    """A sum whose turns depend on numbers of the sample, and on earlier ones; and a branch."""
    del other

    def turn(carry, k):
        total, last, place = carry
        color = read(y + place, x + 0.2 * k, image)
        return (total + last * scales[0], color, 0.5 * place + 0.1 * scales[1]), None

    start = jnp.zeros(CHANNELS), means, jnp.float32(0)
    total, last, _ = jax.lax.scan(jax.checkpoint(turn), start, jnp.arange(4, dtype=jnp.float32))[0]
    return jax.lax.cond(x % 2 > 0, lambda: total + means, lambda: last * total)


def ended_early(y, x, image, other, scales, means):
    def turn(state):
        k, total = state
        return k + 1, total * means + read(y + k, x, image)

    del other
    return jax.lax.while_loop(lambda s: s[0] < scales.sum(), turn, (0, jnp.ones(CHANNELS)))[1]


DIVIDED = {f.__name__: f for f in (shifted, of_points, in_loops, ended_early)}
ARGS = IMAGE, OTHER, SCALES, MEANS
WRT = (0, 1, 2, 3)


def by_arrays(function, axes=(None, None, 0, None), out_axes=0):
    columns = jax.vmap(function, (None, 0, *axes), out_axes)
    return functools.partial(jax.vmap(columns, (0, None, *axes), out_axes), *map(jnp.arange, SHAPE))


def programs_of(function, *args):
    """The programs of the equations of a function, by the names of their primitives."""
    found = equations(jax.make_jaxpr(function)(*args).jaxpr)
    return {e.primitive.name: e.params["program"] for e in found if e.primitive.name.startswith("fused_")}


@pytest.mark.parametrize("least", [1, tiles.LEAST_THREADS], ids=["several samples", "one sample"])
def test_parts_of_the_channels_are_those_of_the_whole(least):
    axes = (None, None, 0, None)
    mapped = lambda f: jt.fused_map(f, SHAPE, in_axes=axes, out_axes=1)
    plain = lambda f: by_arrays(f, axes, 1)

    def all_of(way):
        runs = {name: value_and_gradients(way(f), WRT if f is not ended_early else ()) for name, f in DIVIDED.items()}
        return jax.jit(lambda *args: {name: run(*args) for name, run in runs.items()})

    for name, program in programs_of(all_of(mapped), *ARGS).items():
        parts = channels.divided(program, 4)
        assert parts is not None, name
        assert (parts.count, parts.program.results[0].shape) == (4, (CHANNELS // 4,))
    with mock.patch.object(tiles, "LEAST_THREADS", least):
        names, found = kernels_of(lambda: all_of(mapped)(*ARGS))
    assert {*names} == {"fused_samples", "fused_adjoint"}
    compare(found, all_of(plain)(*ARGS), gradients=True)


@pytest.mark.parametrize("dtype", ["bfloat16", "uint8"])
def test_texels_of_other_types(dtype):
    """Rows of narrow numbers, of a batch of images and angles."""
    image = (255 * IMAGE[None] + np.arange(2).reshape(2, 1, 1, 1)).astype(dtype)
    sampler = jt.Sampler(read_mode="normalized_float") if dtype == "uint8" else jt.Sampler()
    function = lambda y, x, image, angle: 2 * read(y + angle, x, image, sampler)
    angles = jnp.asarray(SCALES[0, :2, 0])
    wrt = (1,) if dtype == "uint8" else (0, 1)
    run = lambda one: value_and_gradients(jax.vmap(one), wrt)(image, angles)
    names, found = kernels_of(lambda: run(jt.fused_map(function, SHAPE)))
    compare(found, run(by_arrays(function, (None, None))), gradients=True)
    assert {*names} == {"fused_samples", "fused_adjoint"}


def mixed(y, x, image):
    color = read(y, x, image)
    return color / jnp.linalg.norm(color)


def both_ways(y, x, image):
    """Channels of an image that also moves the place of the read."""
    return read(y + image[0, 0, 1], x, image)


UNDIVIDED = {
    "sums of channels": mixed,
    "an image that is needed whole": both_ways,
    "few channels": lambda y, x, image: read(y, x, image[..., :4]),
    "results of other shapes": lambda y, x, image: (read(y, x, image), jnp.sin(1.0 * x)),
    "much that all parts repeat": lambda y, x, image: read(
        jax.lax.fori_loop(0, 900, lambda k, s: jnp.sin(s + k), jnp.float32(y)), x, image
    ),
    "the place of a channel": lambda y, x, image: jnp.sort(read(y, x, image)),
}


def test_channels_that_mix_stay_with_one_thread():
    run = lambda way: jax.jit(lambda image: [way(f)(image) for f in UNDIVIDED.values()])
    for name, f in UNDIVIDED.items():
        (program,) = programs_of(jt.fused_map(f, SHAPE), IMAGE).values()
        assert channels.divided(program, 4) is None, name
    _, found = kernels_of(lambda: run(lambda f: jt.fused_map(f, SHAPE))(IMAGE))
    compare(found, run(lambda f: by_arrays(f, (None,)))(IMAGE))


@pytest.mark.parametrize(
    ("size", "width", "counts"),
    [
        (8, 4, [2]),
        (16, 8, [2]),
        (24, 4, [6, 3, 2]),
        (96, 4, [24, 12, 8, 6, 4, 3, 2]),
        (20, 4, []),
        (8, 8, []),
        (0, 4, []),
    ],
)
def test_parts_are_whole_loads_and_lie_in_a_warp(size, width, counts):
    assert channels.counts_of_parts(size, width) == counts
