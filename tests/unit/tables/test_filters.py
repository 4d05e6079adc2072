"""The filters beside point, linear and cubic, against their kernels as functions of the distance, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.tolerances import assert_close, assert_exact

MODES = ("clamp", "border", "wrap", "mirror", "reflect")
BUILD = {1: jt.texture1d, 2: jt.texture2d}


def b_spline(order):
    """De Boor's recursion for the centered B-spline. Pieces are half-open, as a texel owns [i, i + 1)."""
    if order == 0:
        return lambda t: ((t >= -0.5) & (t < 0.5)).astype(np.float64)
    below, half = b_spline(order - 1), (order + 1) / 2
    return lambda t: ((half + t) * below(t + 0.5) + (half - t) * below(t - 0.5)) / order


def mitchell(t):
    t = np.abs(t)
    near, far = 7 * t**3 - 12 * t**2 + 16 / 3, -7 / 3 * t**3 + 12 * t**2 - 20 * t + 32 / 3
    return np.where(t < 1, near, np.where(t < 2, far, 0)) / 6


def lagrange(t):
    t = np.abs(t)
    near, far = (1 - t**2) * (2 - t) / 2, (1 - t) * (2 - t) * (3 - t) / 6
    return np.where(t < 1, near, np.where(t < 2, far, 0))


def lanczos(lobes):
    return lambda t: np.sinc(t) * np.sinc(t / lobes)


def gaussian(t):
    return np.exp(-2 * t**2)


# Each filter: options of a sampler, its kernel, how many texels it takes, and whether weights are divided by their sum.
FILTERS = {f"bspline {n}": ({"filter_mode": "bspline", "spline_order": n}, b_spline(n), n + 1, False) for n in range(6)}
FILTERS |= {
    "lagrange": ({"filter_mode": "lagrange"}, lagrange, 4, False),
    "mitchell": ({"filter_mode": "mitchell"}, mitchell, 4, False),
    "lanczos2": ({"filter_mode": "lanczos2"}, lanczos(2), 4, True),
    "lanczos3": ({"filter_mode": "lanczos"}, lanczos(3), 6, True),
    "gaussian": ({"filter_mode": "gaussian"}, gaussian, 4, True),
}


def taps(position, kernel, count, divided):
    """Taps and weights on one axis at positions in texels."""
    first = np.floor(position - 0.5 - count / 2).astype(np.int64) + 1
    found = [first + k for k in range(count)]
    weights = [kernel(position - 0.5 - tap) for tap in found]
    total = sum(weights) if divided else 1
    return [(tap, w / total) for tap, w in zip(found, weights)]


def expected(texels, coords, mode, *kernel):
    """The read, tap by tap; coordinates in texels, x first."""
    result = 0.0
    of_axes = [taps(np.asarray(c, np.float64), *kernel) for c in coords[::-1]]
    for chosen in np.ndindex(*map(len, of_axes)):
        weight, inside, index = 1.0, True, []
        modes = oracle.per_axis(mode, len(coords))[::-1]
        for axis, k in enumerate(chosen):
            tap, share = of_axes[axis][k]
            at, within = oracle.address(tap, texels.shape[axis], modes[axis])
            weight, inside = weight * share, inside & within
            index.append(at)
        result = result + (weight * inside)[..., None] * texels[tuple(index)]
    return result


def drawn(dimension, n=60, dtype=np.float32):
    """Texels, and places in and around them that are not where another tap begins."""
    rng = np.random.default_rng(dimension)
    sizes = (7, 5)[:dimension]
    texels = rng.normal(size=(*sizes, 2)).astype(dtype)
    whole = [rng.integers(-2 * size, 3 * size, n) for size in sizes[::-1]]
    parts = rng.choice([0.125, 0.25, 0.375, 0.625, 0.75, 0.875], (dimension, n))
    return texels, tuple((a + b).astype(dtype) for a, b in zip(whole, parts))


def read(texels, *coords, mode="clamp", **options):
    sampler = jt.Sampler(address_mode=mode, normalized_coords=False, **options)
    return jt.sample(BUILD[len(coords)](texels), coords, sampler)


@pytest.mark.parametrize("name", FILTERS)
def test_values(name):
    """Weights are those of one axis, multiplied, and taps have the address mode of their axis."""
    options, *kernel = FILTERS[name]
    cases = {1: MODES if name == "lanczos2" else ["wrap"]} | (
        {2: [("border", "mirror")]} if name == "bspline 2" else {}
    )
    drawn_of = {dimension: drawn(dimension) for dimension in cases}
    reads = lambda drawn_of: {
        (dimension, mode): read(texels, *coords, mode=mode, **options)
        for dimension, (texels, coords) in drawn_of.items()
        for mode in cases[dimension]
    }
    for (dimension, mode), found in jax.jit(reads)(drawn_of).items():
        texels, coords = drawn_of[dimension]
        assert_close("reordered", found, expected(texels, coords, mode, *kernel), 16)


def test_splines_of_order_0_and_1_are_the_point_and_the_linear_filter():
    """Also at edges and centers of texels. XLA sees the same equations, as weights have the same coefficients."""
    texels, coords = drawn(1)[0], np.arange(-12, 40, dtype=np.float32) / 4
    samplers = [{"filter_mode": "bspline", "spline_order": k} for k in (0, 1)]
    samplers += [{"filter_mode": name} for name in ("point", "linear")]
    squares = lambda texels, x, options: jnp.sum(read(texels, x, **options) ** 2)
    of_all = lambda *args: [jax.value_and_grad(squares, (0, 1))(*args, options) for options in samplers]
    found = jax.jit(of_all)(texels, coords)
    jax.tree.map(assert_exact, found[:2], found[2:])


def test_lanczos_is_smooth_around_the_center_of_a_texel(x64):
    """There sin(x) / x would cancel."""
    texels, at = np.random.default_rng(0).normal(size=(12, 1)), 6.501 + np.array([1e-9, 1e-3, 0.2499, 0.2501])
    value = lambda x: read(texels, x, filter_mode="lanczos3")[:, 0]
    # A step on each side has other taps; the kernel is as smooth there as its weight is small.
    exact = lambda t: expected(texels, (at + t,), "clamp", lanczos(3), 6, True)[:, 0]
    slope = lambda x: jax.jvp(value, (x,), (jnp.ones_like(x),))[1]
    found = jax.jit(lambda x: (value(x), *jax.jvp(slope, (x,), (jnp.ones_like(x),))))(at)
    rows = "float64", "first differences", "second differences"
    for row, one, other in zip(rows, found, oracle.differences(exact, 4e-4)):
        assert_close(row, one, other, 1.0)


def test_no_texture_unit_has_them():
    for name in FILTERS.keys() - {"bspline 0", "bspline 1"}:
        with pytest.raises(ValueError, match="which no texture unit has"):
            jt.Sampler(arithmetic="hardware", **FILTERS[name][0])
