"""Reads that stay between their nearest taps: values, derivatives, kernels, and what they are for."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.derivatives import assert_derivatives
from tests.support.host_kernels import kernels_on_cpu
from tests.support.tolerances import assert_close, assert_exact

MODES = ("clamp", "border", "wrap", "mirror", "reflect")
BUILD = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}
LIMITED = jt.Sampler(filter_mode="cubic", address_mode="wrap", normalized_coords=False, limit="taps")
FILTERS = {
    "cubic": {"filter_mode": "cubic", "cubic_coefficient": -0.75},
    "lanczos3": {"filter_mode": "lanczos3"},
    "bspline 2": {"filter_mode": "bspline", "spline_order": 2},
    "bspline 4": {"filter_mode": "bspline", "spline_order": 4},
}


def drawn(dimension, n=60, dtype=np.float32):
    rng = np.random.default_rng(dimension)
    sizes = (7, 5, 6)[:dimension]
    coords = rng.uniform(-3, 9, (dimension, n)).astype(dtype)
    coords[:, :4] = np.floor(coords[:, :4]) + 0.5  # the centers of texels
    return rng.normal(size=(*sizes, 2)).astype(dtype), tuple(coords)


def read(texels, *coords, color=None, **options):
    sampler = dataclasses.replace(LIMITED, **options)
    return jt.sample(BUILD[len(coords)](texels, border_color=color), coords, sampler)


def nearest(texels, coords, mode):
    """The texels that a linear filter would blend, one after the other."""
    lows = [np.floor(np.float64(c) - 0.5).astype(np.int64) for c in coords[::-1]]
    for corner in np.ndindex(*[2] * len(lows)):
        found = [oracle.address(low + k, n, mode) for low, k, n in zip(lows, corner, texels.shape)]
        index, inside = zip(*found)
        yield np.where(np.all(inside, 0)[:, None], texels[tuple(index)], texels.dtype.type(0))


@pytest.mark.parametrize("name", FILTERS)
def test_values_are_those_of_the_filter_within_the_nearest_taps(name):
    of_dimension = {1: MODES, 2: ("border",)} | ({3: ("mirror",)} if name == "bspline 2" else {})
    for dimension, modes in of_dimension.items():
        texels, coords = drawn(dimension)
        for mode in modes:
            taps = [*nearest(texels, coords, mode)]
            low, high = np.min(taps, 0), np.max(taps, 0)
            limited = np.asarray(read(texels, *coords, address_mode=mode, **FILTERS[name]))
            free = np.asarray(read(texels, *coords, address_mode=mode, limit=None, **FILTERS[name]))
            assert_close("reordered", limited, np.clip(free, low, high), 8)
            assert np.all((low <= limited) & (limited <= high))
            assert 0 < np.mean(limited != free) < 0.8


@pytest.mark.parametrize("options", [{"filter_mode": "point"}, {"filter_mode": "linear"}])
def test_one_or_two_taps_need_no_limit(options):
    texels, coords = drawn(2)
    of = lambda limit: jax.make_jaxpr(lambda t: read(t, *coords, limit=limit, **options))(texels)
    assert str(of("taps")) == str(of(None))


def test_derivatives_of_every_order(x64):
    texels, coords = drawn(2, 24, np.float64)
    coords = tuple(c[4:] for c in coords)  # at the center of a texel the nearest taps change
    assert_derivatives(lambda t, x, y: read(t, x, y, **FILTERS["bspline 2"]), texels, *coords)
    color, row = np.float64([0.3, -0.2]), texels[3]
    assert_derivatives(lambda t, c, x: read(t, x, color=c, address_mode="border"), row, color, coords[0])


def test_a_clipped_read_has_the_derivatives_of_the_tap_that_limits_it():
    texels = jnp.array([0.0, 0, 1, 1, 0, 0])[:, None]
    value = lambda t, x: read(t, x, address_mode="clamp")[0]
    at = jnp.float32(3.25)  # between two ones, where the cubic filter overshoots
    assert read(texels, at, address_mode="clamp", limit=None)[0] > 1
    assert value(texels, at) == 1
    of_texels, of_coord = jax.grad(value, (0, 1))(texels, at)
    assert of_texels[:, 0].tolist() == [0, 0, 1, 0, 0, 0]
    assert of_coord == 0
    # On the way up it is the cubic read itself.
    inside = jnp.float32(2.25)
    free = jax.grad(lambda t, x: read(t, x, address_mode="clamp", limit=None)[0], (0, 1))
    jax.tree.map(assert_exact, jax.grad(value, (0, 1))(texels, inside), free(texels, inside))


def test_layers_batches_and_dtypes():
    texels, (x, y) = drawn(2)
    stack = np.stack([texels, -texels]).astype(np.float16)
    sampler = dataclasses.replace(LIMITED, normalized_coords=False)
    layered = jt.sample(jt.texture2d_layered(stack), (x, y), sampler, layer=1)
    assert_exact(layered, -np.asarray(read(texels.astype(np.float16), x, y)), np.float16)
    mapped = jax.vmap(lambda t, x: read(t, x, y), (0, None))(stack, x)
    assert_exact(mapped[1], layered)
    taps = [*nearest(stack[1], (x, y), "wrap")]
    assert np.all((np.min(taps, 0) <= mapped[1]) & (mapped[1] <= np.max(taps, 0)))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "color"), [("cubic", 0.5), ("bspline 2", None)])
def test_kernels_for_a_gpu_have_it(name, color):
    """Value and gradients of kernels, and of array operations."""
    texels, coords = drawn(2, 300)
    options = FILTERS[name] | {"address_mode": "border", "color": color}
    run = lambda: jax.jit(jax.value_and_grad(lambda *a: jnp.sum(read(*a, **options) ** 2), (0, 1, 2)))
    plain = run()(texels, *coords)
    with kernels_on_cpu():
        kernel = run()(texels, *coords)
    for a, b in zip(jax.tree.leaves(kernel), jax.tree.leaves(plain)):
        assert_close("reordered", a, b, 64 * max(1.0, float(np.abs(b).max())))


def advected(density, sampler, steps=50):
    """Semi-Lagrangian steps around the middle of a periodic field."""
    size = len(density)
    y, x = jnp.mgrid[:size, :size].astype(jnp.float32) + 0.5
    flow = -0.1 * (y - size / 2), 0.1 * (x - size / 2)
    step = lambda _, d: jt.warp.warp_flow(d, flow, sampler)
    return jax.jit(lambda d: jax.lax.fori_loop(0, steps, step, d))(density)


def test_advection_makes_no_new_extremes():
    y, x = np.mgrid[:32, :32] - 15.5
    density = jnp.asarray((np.maximum(np.abs(x - 5), np.abs(y)) < 5).astype(np.float32)[..., None])
    free = advected(density, dataclasses.replace(LIMITED, limit=None))
    limited = advected(density, LIMITED)
    assert free.min() < -0.05
    assert free.max() > 1.05
    assert limited.min() >= 0
    assert limited.max() <= 1
    assert limited.max() > 0.9, "it is not smoothed as a linear read is"


def test_errors():
    with pytest.raises(ValueError, match=r"Sampler: limit is 'texels', expected one of 'taps'"):
        jt.Sampler(limit="texels")
    with pytest.raises(ValueError, match=r"limit='taps', which no texture unit has"):
        jt.Sampler(limit="taps", arithmetic="hardware")
    with pytest.raises(ValueError, match=r"splat: sampler has limit='taps', and a limited read is not linear"):
        jt.splat(np.ones((3, 1), np.float32), (np.zeros(3, np.float32),), (4, 1), LIMITED)
    with pytest.raises(ValueError, match=r"linear_transpose: a read by a Sampler with limit='taps' is not linear"):
        jax.linear_transpose(lambda t: read(t, np.float32([1.0])), np.ones((4, 1), np.float32))(
            np.ones((1, 1), np.float32)
        )
    cube = jt.cubemap(np.zeros((6, 4, 4, 1), np.float32))
    seamless = jt.Sampler(filter_mode="bspline", spline_order=2, limit="taps")
    with pytest.raises(ValueError, match=r"limit='taps' is given for a read across the seams"):
        jt.sample(cube, (1.0, 0.0, 0.0), seamless)
