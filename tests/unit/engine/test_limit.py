"""Reads that stay between their nearest taps: values, derivatives, kernels, and what they are for."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact

MODES = ("clamp", "border", "wrap", "mirror", "reflect")
BUILD = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}
LIMITED = jt.Sampler(filter_mode="cubic", address_mode="wrap", normalized_coords=False, limit="taps")
FILTERS = {
    "cubic": {"filter_mode": "cubic", "cubic_coefficient": -0.75},
    "bspline 2": {"filter_mode": "bspline", "spline_order": 2},
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
    """An even number of taps, and an odd one."""
    cases = {1: MODES, 2: ["border"]} | ({3: ["mirror"]} if name == "bspline 2" else {})
    inputs = {dimension: drawn(dimension) for dimension in cases}

    @jax.jit
    def reads(inputs):
        return {
            (dimension, mode): [
                read(texels, *coords, address_mode=mode, limit=limit, **FILTERS[name]) for limit in ("taps", None)
            ]
            for dimension, (texels, coords) in inputs.items()
            for mode in cases[dimension]
        }

    for (dimension, mode), (limited, free) in reads(inputs).items():
        taps = [*nearest(*inputs[dimension], mode)]
        low, high = np.min(taps, 0), np.max(taps, 0)
        assert_close("reordered", limited, np.clip(free, low, high), 8)
        assert np.all((low <= limited) & (limited <= high)), (dimension, mode)
        assert 0 < np.mean(limited != free) < 0.8, (dimension, mode)


@pytest.mark.parametrize("options", [{"filter_mode": "point"}, {"filter_mode": "linear"}])
def test_one_or_two_taps_need_no_limit(options):
    texels, coords = drawn(2)
    of = lambda limit: jax.make_jaxpr(lambda t: read(t, *coords, limit=limit, **options))(texels)
    assert str(of("taps")) == str(of(None))


def test_derivatives_of_every_order(x64):
    """In texels, a border color, and coordinates."""
    texels, coords = drawn(2, 24, np.float64)
    coords = tuple(c[4:] for c in coords)  # at the center of a texel the nearest taps change
    options = {"address_mode": ("wrap", "border"), **FILTERS["bspline 2"]}
    function = lambda t, color, x, y: read(t, x, y, color=color, **options)
    assert_derivatives(function, texels, np.float64([0.3, -0.2]), *coords)


def test_a_clipped_read_has_the_derivatives_of_the_tap_that_limits_it():
    texels = np.float32([0, 0, 1, 1, 0, 0])[:, None]
    value = lambda t, x, limit="taps": read(t, x, address_mode="clamp", limit=limit)[0]
    both = jax.jit(lambda t, x: [jax.value_and_grad(value, (0, 1))(t, x, limit) for limit in ("taps", None)])
    (limited, (of_texels, of_coord)), (free, _) = both(texels, np.float32(3.25))
    assert free > 1, "between two ones the cubic filter overshoots"
    assert limited == 1
    assert of_texels[:, 0].tolist() == [0, 0, 1, 0, 0, 0]
    assert of_coord == 0
    # On the way up it is the cubic read itself; its weights have few bits there, so that all sums are exact.
    jax.tree.map(assert_exact, *both(texels, np.float32(2.25)))


def test_layers_batches_and_dtypes():
    """A layer, and a texture of a batch, is read as the texture that it holds.

    All numbers are multiples of a quarter, so that sums are exact, however XLA fuses them, and rounded once.
    """
    texels, (x, y) = jax.tree.map(lambda a: np.round(4 * a) / 4, drawn(2))
    stack = np.stack([texels, -texels]).astype(np.float16)

    @jax.jit
    def reads(stack, x, y):
        layered = jt.sample(jt.texture2d_layered(stack), (x, y), LIMITED, layer=1)
        return layered, read(-stack[1], x, y), jax.vmap(lambda t: read(t, x, y))(stack)[1]

    layered, alone, mapped = reads(stack, x, y)
    assert_exact(layered, -alone, np.float16)
    assert_exact(mapped, layered)


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
    free, limited = (advected(density, dataclasses.replace(LIMITED, limit=limit)) for limit in (None, "taps"))
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
