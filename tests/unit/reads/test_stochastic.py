"""Reads with a key: one texel, drawn by its weight, whose expectation is the filtered read."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.support import arrays
from tests.support.arrays import normal
from tests.support.cases import computed
from tests.support.tolerances import assert_close, assert_exact, named

FILTERS = {
    "linear": {},
    "bspline": {"filter_mode": "bspline", "spline_order": 4},
    "gaussian": {"filter_mode": "gaussian"},
    "cubic": {"filter_mode": "cubic"},
    "lanczos2": {"filter_mode": "lanczos2"},
}
UNSIGNED = ("linear", "gaussian")
KEY, PLAIN = jax.random.key(7), jt.Sampler()
# So many standard deviations of a mean lie between it and its expectation in one of 10^8 cases.
SIGMAS = 6
# The same where the deviation is that of the draws, of which a rare one may be missing: so many times the range of the
# draws, over their number, more. Source: A. Maurer and M. Pontil, "Empirical Bernstein Bounds", 2009.
RARE = 7 / 3 * SIGMAS**2 / 2

uniform = functools.partial(arrays.uniform, low=-0.4, high=1.4)


def drawing(count, texture, coords, sampler=PLAIN, key=KEY, **more):
    """A call with so many reads of each sample, (count, S, C), and with the filtered read."""
    repeated = tuple(np.broadcast_to(c, (count, *np.shape(c))) for c in coords)
    read = lambda texture, coords, **how: jt.sample(texture, coords, sampler, **how, **more)
    return lambda t, c, many: (read(t, many, key=key), read(t, c)), texture, coords, repeated


def assert_unbiased(found, expected):
    """The mean of draws is its expectation, within what their variance and their range allow."""
    found = np.asarray(found, np.float64)
    bound = SIGMAS * found.std(0) / np.sqrt(len(found)) + RARE * np.ptp(found) / (len(found) - 1)
    error = np.abs(found.mean(0) - np.asarray(expected))
    assert (error <= bound).all(), (error / bound).max()


def test_each_texel_has_the_probability_of_its_weight():
    """Texels that each have a channel of their own tell their shares, of which the negative ones are signed."""
    texture, x = jt.texture1d(np.eye(12, dtype=np.float32)), np.float32([6.0, 5.62, 4.5, 0.2])
    samplers = {name: jt.Sampler(normalized_coords=False, **options) for name, options in FILTERS.items()}
    found = computed(*(drawing(4000, texture, (x,), sampler) for sampler in samplers.values()))
    for name, (shares, expected) in zip(samplers, found):
        with named(name):
            assert_unbiased(shares, expected)


def test_a_value_is_that_of_one_texel():
    """Or of two whose weights sum to one, if some weights are negative, so that a constant stays constant."""
    texels, places = np.arange(63, dtype=np.float32).reshape(9, 7, 1), tuple(uniform(2, 50))
    ramp, constant = jt.texture2d(texels, border_color=99.0), jt.texture2d(np.full((5, 5, 1), 0.7, np.float32))
    border = {name: jt.Sampler(address_mode="border", **FILTERS[name]) for name in UNSIGNED}
    clamp = [jt.Sampler(**FILTERS["cubic"])]
    calls = [drawing(20, ramp, places, sampler) for sampler in border.values()]
    found = computed(*calls, *(drawing(20, constant, places, sampler) for sampler in clamp))
    for name, (values, _) in zip(border, found):
        with named(name):
            assert set(values.ravel()) <= {*range(63), 99}
    for values, _ in found[len(calls) :]:
        assert_exact(values, np.full(values.shape, 0.7), np.float32)


@functools.cache
def chain():
    return jt.build_mipmaps(jt.texture2d(normal(16, 12, 2)))


CUBIC, LEVELS, BORDER = FILTERS["cubic"], {"mipmap_filter_mode": "linear"}, {"address_mode": "border"}
CODES = np.random.default_rng(0).integers(0, 256, (5, 3), np.uint8)
# Each: a texture, its number of coordinates, options, and arguments.
KINDS = {
    "1d": (lambda: jt.texture1d(normal(8, 2)), 1, {}, {}),
    "3d": (lambda: jt.texture3d(normal(4, 5, 3, 2)), 3, {"address_mode": "mirror"}, {}),
    "layers": (lambda: jt.texture1d_layered(normal(3, 5, 2)), 1, {}, {"layer": 1}),
    "sphere": (lambda: jt.texture2d(normal(5, 6, 2)), 2, {"address_mode": "sphere"}, {}),
    "border": (lambda: jt.texture1d(normal(5, 2), border_color=np.float32([3, -2])), 1, CUBIC | BORDER, {}),
    "a cube": (lambda: jt.cubemap(normal(6, 3, 3, 2)), 3, {}, {}),
    "trilinear": (chain, 2, LEVELS | {"address_mode": "wrap"}, {"lod": 1.3}),
    "anisotropic": (chain, 2, LEVELS | BORDER | {"max_anisotropy": 2}, {"ddx": (0.3, 0.1), "ddy": (-0.02, 0.06)}),
    "codes": (lambda: jt.texture1d(CODES), 1, {"read_mode": "normalized_float", "srgb": True}, {}),
    "whole codes, of which none is drawn": (lambda: jt.texture1d(CODES), 1, {"filter_mode": "point"}, {}),
}


def test_every_kind_of_read_is_unbiased():
    calls = []
    for build, count, options, more in KINDS.values():
        calls.append(drawing(1500, build(), tuple(uniform(count, 12, low=-1.2)), jt.Sampler(**options), **more))
    for name, (found, expected) in zip(KINDS, computed(*calls)):
        with named(name):
            assert_unbiased(found, expected)


def test_at_the_corner_of_a_cube_three_texels_share_the_fourth():
    texels = np.zeros((6, 2, 2, 24), np.float32)
    texels.reshape(24, 24)[np.diag_indices(24)] = 1
    ((found, expected),) = computed(drawing(2000, jt.cubemap(texels), tuple(np.float32([1, 0.97, 0.99]))))
    assert_unbiased(found, expected)
    assert (found.sum(-1) == 1).all()


def test_keys_choose_and_samples_draw_for_themselves():
    texture, coords, keys = jt.texture2d(normal(9, 9, 1)), tuple(uniform(2, 400)), jnp.stack([KEY, jax.random.key(8)])
    read = lambda key, texture: jt.sample(texture, coords, key=key)
    apart = lambda keys, texture: [read(key, texture) for key in keys]
    (one, other), both, (same, _) = computed(
        (apart, keys, texture),
        (jax.vmap(read, (0, None)), keys, texture),
        drawing(64, texture, (np.float32(0.45),) * 2),
    )
    assert 0.2 < (one != other).mean() < 1
    assert_exact(both, np.stack([one, other]), np.float32)
    assert len(set(same.ravel())) > 1


@pytest.mark.parametrize(("name", "texels"), [("bspline", 1), ("lanczos2", 2)])
def test_a_sample_loads_one_texel_or_two(name, texels):
    texture, sampler = jt.texture2d(normal(5, 6, 2)), jt.Sampler(**FILTERS[name])
    read = jax.jit(lambda x, y: jt.sample(texture, (x, y), sampler, key=KEY))
    lowered = read.trace(*uniform(2, 8)).lower(lowering_platforms=("cpu",))
    assert lowered.as_text().count('"stablehlo.gather"') == texels


def test_old_keys_and_float64(x64):
    texture, x, sampler = jt.texture1d(np.eye(5)), np.float64([0.3, 0.6]), jt.Sampler(filter_mode="cubic")
    ((found, expected),) = computed(drawing(500, texture, (x,), sampler, jax.random.PRNGKey(3)))
    assert found.dtype == np.float64
    assert_unbiased(found, expected)


def test_derivatives_of_higher_orders_and_in_both_modes():
    """In coordinates they are those of the filtered read, also after a derivative in texels."""
    texels, x, sampler = normal(6, 1), uniform(6), jt.Sampler(filter_mode="cubic", address_mode="wrap")
    read = lambda key: lambda t, x: jt.sample(jt.texture1d(t), (x,), sampler, key=key).sum()
    drawn, filtered = read(KEY), read(None)
    slope = lambda f: jax.grad(f, 1)(texels, x)
    twice = lambda f: jax.jacfwd(jax.grad(f, 1), 1)(texels, x)
    mixed = lambda f: jax.jacfwd(jax.grad(f, 0), 1)(texels, x)
    mixed_too = lambda f: jax.grad(lambda t: (jax.grad(f, 1)(t, x) * x).sum())(texels)
    derivatives = lambda f: [derivative(f) for derivative in (slope, twice, mixed, mixed_too)]
    tangents = normal(6, 1)[::-1], x
    once = lambda f: (jax.jvp(f, (texels, x), tangents)[1], jax.grad(f, (0, 1))(texels, x))
    found, expected, (pushed, pulled) = jax.jit(lambda: (derivatives(drawn), derivatives(filtered), once(drawn)))()
    for a, b in zip(found, expected):
        assert_close("sum", a, b, 512)
    assert_close("sum", pushed, sum(float(np.vdot(a, b)) for a, b in zip(pulled, tangents)), 256)


@pytest.mark.slow
def test_gradients_to_the_level_and_the_footprint_are_exact():
    texture, coords, sampler = chain(), tuple(uniform(2, 5)), jt.Sampler(max_anisotropy=4, **LEVELS)
    of_level = lambda lod, key=None: jt.sample(texture, coords, sampler, lod=lod, key=key).sum()
    of_side = lambda side, key=None: jt.sample(
        texture, coords, sampler, ddx=(side, 0.1), ddy=(0.0, 0.03), key=key
    ).sum()
    both = lambda f, x: (jax.grad(f)(x, KEY), jax.grad(f)(x))
    for drawn, exact in jax.jit(lambda: (both(of_level, 1.3), both(of_side, 0.3)))():
        assert_close("sum", drawn, exact, 64)
