"""The filters beside point, linear and cubic, against their kernels as functions of the distance, in float64."""

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
        for axis, k in enumerate(chosen):
            tap, share = of_axes[axis][k]
            at, within = oracle.address(tap, texels.shape[axis], mode)
            weight, inside = weight * share, inside & within
            index.append(at)
        result = result + (weight * inside)[..., None] * texels[tuple(index)]
    return result


def drawn(dimension, n=60, dtype=np.float32):
    """Texels, and places in and around them that are not where another tap begins."""
    rng = np.random.default_rng(dimension)
    sizes = (7, 5, 6)[:dimension]
    texels = rng.normal(size=(*sizes, 2)).astype(dtype)
    whole = [rng.integers(-2 * size, 3 * size, n) for size in sizes[::-1]]
    parts = rng.choice([0.125, 0.25, 0.375, 0.625, 0.75, 0.875], (dimension, n))
    return texels, tuple((a + b).astype(dtype) for a, b in zip(whole, parts))


def read(texels, *coords, mode="clamp", **options):
    sampler = jt.Sampler(address_mode=mode, normalized_coords=False, **options)
    return jt.sample(BUILD[len(coords)](texels), coords, sampler)


@pytest.mark.parametrize("name", FILTERS)
def test_values(name):
    """Filters of many taps in fewer dimensions: their weights are those of one axis, multiplied."""
    options, *kernel = FILTERS[name]
    dimensions = ((1, MODES), (2, ("border",))) if kernel[1] > 4 else ((1, MODES), (2, ("clamp",)), (3, ("mirror",)))
    for dimension, modes in dimensions:
        texels, coords = drawn(dimension)
        for mode in modes:
            values = read(texels, *coords, mode=mode, **options)
            assert_close("reordered", values, expected(texels, coords, mode, *kernel), 16)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bspline 2", "bspline 5", "lagrange", "mitchell", "lanczos3", "gaussian"])
def test_derivatives(name, x64):
    texels, coords = drawn(2 if name == "bspline 2" else 1, 12, np.float64)
    assert_derivatives(lambda t, *at: read(t, *at, mode="wrap", **FILTERS[name][0]), texels, *coords)


@pytest.mark.parametrize(("order", "plain"), [(0, "point"), (1, "linear")])
def test_splines_of_order_0_and_1_are_the_point_and_the_linear_filter(order, plain):
    texels, coords = drawn(2)
    both = [
        jax.value_and_grad(lambda *a, how=how: jnp.sum(read(*a, **how) ** 2), (0, 1, 2))(texels, *coords)
        for how in ({"filter_mode": "bspline", "spline_order": order}, {"filter_mode": plain})
    ]
    jax.tree.map(assert_exact, *both)


def test_lagrange_is_exact_for_polynomials_of_degree_3():
    curve = lambda x: (0.03 * x - 0.2) * x * x + x
    at = np.linspace(2, 7, 41, dtype=np.float32)
    found = read(curve(np.arange(10, dtype=np.float32) + 0.5)[:, None], at, filter_mode="lagrange")
    assert_close("float32", found[:, 0], curve(np.float64(at)), 16)


@pytest.mark.parametrize("lobes", [2, 3])
def test_lanczos_is_smooth_around_the_center_of_a_texel(lobes, x64):
    """There sin(x) / x would cancel."""
    texels, at = np.random.default_rng(0).normal(size=(12, 1)), 6.501 + np.array([1e-9, 1e-3, 0.2499, 0.2501])
    value = lambda x: read(texels, x, filter_mode=f"lanczos{lobes}")[:, 0]
    # A step on each side has other taps; the kernel is as smooth there as its weight is small.
    exact = lambda t: expected(texels, (at + t,), "clamp", lanczos(lobes), 2 * lobes, True)[:, 0]
    slope = lambda x: jax.jvp(value, (x,), (jnp.ones_like(x),))[1]
    found = jax.jit(lambda x: (value(x), *jax.jvp(slope, (x,), (jnp.ones_like(x),))))(at)
    rows = "float64", "first differences", "second differences"
    for row, one, other in zip(rows, found, oracle.differences(exact, 4e-4)):
        assert_close(row, one, other, 1.0)


@pytest.mark.parametrize("order", [-1, 6, 1.5, True, "3"])
def test_a_spline_order_is_an_integer_from_0_to_5(order):
    with pytest.raises(ValueError, match=r"spline_order is .*, expected an integer from 0 to 5"):
        jt.Sampler(filter_mode="bspline", spline_order=order)


@pytest.mark.parametrize("name", [name for name in FILTERS if name not in ("bspline 0", "bspline 1")])
def test_no_texture_unit_has_them(name):
    with pytest.raises(ValueError, match="which no texture unit has"):
        jt.Sampler(arithmetic="hardware", **FILTERS[name][0])
