"""Reads that stay between their nearest taps: values, derivatives, kernels, and what they are for."""

import dataclasses

import jax
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact

MODES = ("clamp", "border", "wrap", "mirror", "reflect")
BUILD = {1: jt.texture1d, 2: jt.texture2d}
LIMITED = jt.Sampler(filter_mode="cubic", address_mode="wrap", normalized_coords=False, limit="taps")
FILTERS = {
    "cubic": {"filter_mode": "cubic", "cubic_coefficient": -0.75},
    "bspline 2": {"filter_mode": "bspline", "spline_order": 2},
}


def drawn(dimension, n=60, dtype=np.float32):
    rng = np.random.default_rng(dimension)
    sizes = (7, 5)[:dimension]
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


def test_values_are_those_of_the_filter_within_the_nearest_taps():
    """An even number of taps, and an odd one."""
    cases = [("cubic", 1, mode) for mode in MODES] + [("bspline 2", 1, "wrap"), ("bspline 2", 2, "border")]
    inputs = {dimension: drawn(dimension) for dimension in (1, 2)}

    @jax.jit
    def reads(inputs):
        of = lambda name, dimension, mode: [
            read(inputs[dimension][0], *inputs[dimension][1], address_mode=mode, limit=limit, **FILTERS[name])
            for limit in ("taps", None)
        ]
        return [of(*case) for case in cases]

    for (_, dimension, mode), (limited, free) in zip(cases, jax.device_get(reads(inputs))):
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
    coords = [c[4:] for c in coords]  # at the center of a texel the nearest taps change
    function = lambda t, c, x, y: read(t, x, y, color=c, address_mode=("wrap", "border"), **FILTERS["bspline 2"])
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
