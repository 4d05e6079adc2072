"""Reads with a key: one texel, drawn by its weight, whose expectation is the filtered read."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.walk.drawn_taps import Choice
from tests.support.tolerances import assert_close, assert_exact

FILTERS = {
    "linear": {},
    "bspline": {"filter_mode": "bspline", "spline_order": 4},
    "gaussian": {"filter_mode": "gaussian"},
    "cubic": {"filter_mode": "cubic"},
    "lanczos2": {"filter_mode": "lanczos2"},
}
UNSIGNED = ("linear", "bspline", "gaussian")
KEY = jax.random.key(7)
# So many standard deviations of a mean lie between it and its expectation in one of 10^8 cases.
SIGMAS = 6
# The same where the deviation is that of the draws, of which a rare one may be missing: so many times the range of the
# draws, over their number, more. Source: A. Maurer and M. Pontil, "Empirical Bernstein Bounds", 2009.
RARE = 7 / 3 * SIGMAS**2 / 2


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def uniform(*shape, low=-0.4, high=1.4):
    return np.random.default_rng(sum(shape)).uniform(low, high, shape).astype(np.float32)


def draws(texture, coords, sampler, count, key=KEY, **more):
    """So many reads of each sample, (count, S, C)."""
    repeated = [np.broadcast_to(c, (count, *np.shape(c))) for c in coords]
    return np.asarray(jt.sample(texture, tuple(repeated), sampler, key=key, **more), np.float64)


def assert_unbiased(found, expected):
    """The mean of draws is its expectation, within what their variance and their range allow."""
    bound = SIGMAS * found.std(0) / np.sqrt(len(found)) + RARE * np.ptp(found) / (len(found) - 1)
    error = np.abs(found.mean(0) - np.asarray(expected))
    assert (error <= bound).all(), (error / bound).max()


# Values


@pytest.mark.slow
@pytest.mark.parametrize("name", FILTERS)
def test_the_error_falls_with_the_root_of_the_number_of_draws(name):
    """Its square is the variance of a draw over their number, within what 1,000 samples tell of it."""
    texture, (x, y) = jt.texture2d(normal(9, 7, 1)), uniform(2, 500)
    sampler = jt.Sampler(address_mode=("wrap", "border"), **FILTERS[name])
    expected = np.asarray(jt.sample(texture, (x, y), sampler), np.float64)
    found = draws(texture, (x, y), sampler, 512)
    variance = found.var(0)
    if name in UNSIGNED:
        squares = jt.sample(jt.texture2d(texture.texels**2), (x, y), sampler)
        variance = np.asarray(squares, np.float64) - expected**2
    for count in (1, 16, 256):
        means = found.reshape(-1, count, *found.shape[1:]).mean(1)
        ratio = np.mean((means - expected) ** 2) / np.mean(variance / count)
        # The square of a normal error has twice the variance of its mean; that of a single draw, at most so many times.
        spread = np.sqrt((2 if count > 1 else 20) / means.size)
        assert abs(ratio - 1) < SIGMAS * spread, (count, ratio)


@pytest.mark.parametrize("name", UNSIGNED)
def test_a_value_is_that_of_one_texel(name):
    texels = np.arange(63, dtype=np.float32).reshape(9, 7, 1)
    found = draws(jt.texture2d(texels, border_color=99.0), uniform(2, 50), jt.Sampler(address_mode="border"), 20)
    assert set(found.ravel()) <= {*range(63), 99}


@pytest.mark.parametrize("name", FILTERS)
def test_each_texel_has_the_probability_of_its_weight(name):
    """Texels that each have a channel of their own tell their shares, of which the negative ones are signed."""
    texture, sampler = jt.texture1d(np.eye(12, dtype=np.float32)), jt.Sampler(normalized_coords=False, **FILTERS[name])
    for x in (6.0, 5.62, 4.5, 0.2):
        assert_unbiased(draws(texture, (np.float32(x),), sampler, 4000), jt.sample(texture, (x,), sampler))


@pytest.mark.parametrize("name", ["cubic", "lanczos2"])
def test_a_constant_stays_constant_under_negative_weights(name):
    found = draws(jt.texture2d(np.full((5, 5, 1), 0.7, np.float32)), uniform(2, 50), jt.Sampler(**FILTERS[name]), 20)
    assert_exact(found.astype(np.float32), np.full(found.shape, 0.7, np.float32), np.float32)


KINDS = {
    "1d": (lambda: jt.texture1d(normal(8, 2)), 1, {}, {}),
    "3d": (lambda: jt.texture3d(normal(4, 5, 3, 2)), 3, {"filter_mode": "cubic", "address_mode": "mirror"}, {}),
    "layers": (lambda: jt.texture2d_layered(normal(3, 5, 4, 2)), 2, {}, {"layer": 1}),
    "sphere": (lambda: jt.texture2d(normal(5, 6, 2)), 2, {"address_mode": "sphere", "filter_mode": "cubic"}, {}),
    "border": (
        lambda: jt.texture2d(normal(5, 4, 2), border_color=np.float32([3, -2])),
        2,
        {"address_mode": "border", "filter_mode": "cubic"},
        {},
    ),
    "a cube": (lambda: jt.cubemap(normal(6, 3, 3, 2)), 3, {}, {}),
    "trilinear": (
        lambda: jt.build_mipmaps(jt.texture2d(normal(16, 12, 2))),
        2,
        {"mipmap_filter_mode": "linear", "filter_mode": "cubic", "address_mode": "wrap"},
        {"lod": 1.3},
    ),
    "anisotropic": (
        lambda: jt.build_mipmaps(jt.texture2d(normal(16, 12, 2))),
        2,
        {"mipmap_filter_mode": "linear", "max_anisotropy": 3, "address_mode": "border"},
        {"ddx": (0.3, 0.1), "ddy": (-0.02, 0.06)},
    ),
    "codes": (
        lambda: jt.texture2d(np.random.default_rng(0).integers(0, 256, (5, 4, 3), np.uint8)),
        2,
        {"read_mode": "normalized_float", "srgb": True},
        {},
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_read_is_unbiased(name):
    build, count, options, more = KINDS[name]
    texture, sampler, coords = build(), jt.Sampler(**options), tuple(uniform(count, 12, low=-1.2))
    expected = jt.sample(texture, coords, sampler, **more)
    assert_unbiased(draws(texture, coords, sampler, 3000, **more), expected)


def test_at_the_corner_of_a_cube_three_texels_share_the_fourth():
    texels = np.zeros((6, 2, 2, 24), np.float32)
    texels.reshape(24, 24)[np.diag_indices(24)] = 1
    coords, texture = tuple(np.float32([1, 0.97, 0.99])), jt.cubemap(texels)
    found = draws(texture, coords, jt.Sampler(), 2000)
    assert_unbiased(found, jt.sample(texture, coords, jt.Sampler()))
    assert (found.sum(-1) == 1).all()


def test_a_point_read_has_nothing_to_draw():
    texture, coords = jt.texture2d(np.arange(20, dtype=np.int16).reshape(4, 5, 1)), tuple(uniform(2, 30))
    sampler = jt.Sampler(filter_mode="point", address_mode="wrap")
    assert_exact(jt.sample(texture, coords, sampler, key=KEY), jt.sample(texture, coords, sampler), np.int16)


def test_keys_choose_and_samples_draw_for_themselves():
    texture, coords, sampler = jt.texture2d(normal(9, 9, 1)), tuple(uniform(2, 400)), jt.Sampler()
    read = lambda key: jt.sample(texture, coords, sampler, key=key)
    one, other = read(KEY), read(jax.random.key(8))
    assert_exact(jax.jit(read)(KEY), one, np.float32)
    assert 0.2 < (np.asarray(one) != np.asarray(other)).mean() < 1
    both = jax.vmap(read)(jnp.stack([KEY, jax.random.key(8)]))
    assert_exact(both, np.stack([one, other]), np.float32)
    same = draws(texture, (np.float32(0.45), np.float32(0.45)), sampler, 64)
    assert len(set(same.ravel())) > 1


@pytest.mark.parametrize(("name", "texels"), [("linear", 1), ("bspline", 1), ("cubic", 2), ("lanczos2", 2)])
def test_a_sample_loads_one_texel_or_two(name, texels):
    texture, sampler = jt.texture2d(normal(5, 6, 2)), jt.Sampler(**FILTERS[name])
    read = jax.jit(lambda x, y: jt.sample(texture, (x, y), sampler, key=KEY))
    lowered = read.trace(*uniform(2, 8)).lower(lowering_platforms=("cpu",))
    assert lowered.as_text().count('"stablehlo.gather"') == texels


def test_old_keys_and_float64(x64):
    texture, coords = jt.texture2d(np.random.default_rng(0).normal(size=(5, 6, 1))), (0.3, 0.6)
    found = draws(texture, tuple(map(np.float64, coords)), jt.Sampler(filter_mode="cubic"), 500, jax.random.PRNGKey(3))
    assert_unbiased(found, jt.sample(texture, coords, jt.Sampler(filter_mode="cubic")))
    assert jt.sample(texture, (np.float64(0.3), 0.6), key=KEY).dtype == np.float64


@pytest.mark.parametrize("weights", [(1.0,), (0.25, 0.75), (0.0, 0.5, 0.0, 0.5), (0.0, 0.0)])
def test_a_choice_leaves_a_number_for_the_next_one(weights):
    """No choice falls on what has no weight, and the rest spreads evenly from 0 to 1, also at the ends."""
    number = jnp.concatenate([jnp.float32([0, 1 - 2.0**-24]), (jnp.arange(4000, dtype=jnp.float32) + 0.5) / 4000])
    choice = Choice.by(weights, number)
    drawn = np.asarray(choice.of([jnp.full_like(number, k) for k in range(len(weights))]))
    rest = np.asarray(choice.rest)
    assert ((rest >= 0) & (rest < 1)).all()
    if sum(weights):
        shares = np.bincount(drawn.astype(int), minlength=len(weights)) / len(number)
        assert_close("rounded code", shares * 100, np.multiply(weights, 100), 1)
        for k, weight in enumerate(weights):
            if weight:
                assert_close("rounded code", np.quantile(rest[drawn == k], [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], 0.01)


# Gradients


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", "cubic"])
def test_gradients_to_texels_are_unbiased_and_those_to_coordinates_exact(name):
    texels, coords, color = normal(5, 6, 2), tuple(uniform(2, 8)), jnp.float32([0.5, -1.0])
    sampler, cotangent = jt.Sampler(address_mode="border", **FILTERS[name]), normal(8, 2)

    def loss(texels, color, x, y, key=None):
        return (jt.sample(jt.texture2d(texels, border_color=color), (x, y), sampler, key=key) * cotangent).sum()

    gradients, args = jax.grad(loss, (0, 1, 2, 3)), (texels, color, *coords)
    both = jax.jit(lambda keys: (gradients(*args), jax.vmap(lambda key: gradients(*args, key))(keys)))
    exact, of_keys = jax.device_get(both(jax.random.split(KEY, 3000)))
    for found, expected in zip(of_keys[:2], exact[:2]):
        assert_unbiased(np.asarray(found, np.float64), expected)
    for found, expected in zip(of_keys[2:], exact[2:]):
        assert_close("sum", found[17], expected, 64)
    # A sample touches one texel, or two.
    read = lambda t: jt.sample(jt.texture2d(t), (0.45, 0.55), sampler, key=KEY).sum()
    one = np.asarray(jax.jit(jax.grad(read))(texels))
    assert np.count_nonzero(one[..., 0]) == (1 if name == "linear" else 2)


def test_derivatives_of_higher_orders_and_in_both_modes():
    """In coordinates they are those of the filtered read, also after a derivative in texels."""
    texels, x, sampler = normal(6, 1), uniform(6), jt.Sampler(filter_mode="cubic", address_mode="wrap")
    read = lambda key: lambda t, x: jt.sample(jt.texture1d(t), (x,), sampler, key=key).sum()
    drawn, filtered = read(KEY), read(None)
    twice = lambda f: jax.jacfwd(jax.grad(f, 1), 1)(texels, x)
    mixed = lambda f: jax.jacfwd(jax.grad(f, 0), 1)(texels, x)
    mixed_too = lambda f: jax.grad(lambda t: (jax.grad(f, 1)(t, x) * x).sum())(texels)
    derivatives = lambda f: [derivative(f) for derivative in (twice, mixed, mixed_too)]
    tangents = normal(6, 1)[::-1], x
    once = lambda f: (jax.jvp(f, (texels, x), tangents)[1], jax.grad(f, (0, 1))(texels, x))
    found, expected, (pushed, pulled) = jax.jit(lambda: (derivatives(drawn), derivatives(filtered), once(drawn)))()
    for a, b in zip(found, expected):
        assert_close("sum", a, b, 512)
    assert_close("sum", pushed, sum(float(np.vdot(a, b)) for a, b in zip(pulled, tangents)), 256)


@pytest.mark.slow
def test_gradients_to_the_level_and_the_footprint_are_exact():
    chain, sampler = jt.build_mipmaps(jt.texture2d(normal(16, 12, 2))), jt.Sampler(mipmap_filter_mode="linear")
    coords = tuple(uniform(2, 5))
    of_level = lambda lod, key=None: jt.sample(chain, coords, sampler, lod=lod, key=key).sum()
    several = jt.Sampler(mipmap_filter_mode="linear", max_anisotropy=4)
    of_side = lambda side, key=None: jt.sample(chain, coords, several, ddx=(side, 0.1), ddy=(0.0, 0.03), key=key).sum()
    of_chain = lambda c, key: jt.sample(c, coords, several, ddx=(0.3, 0.1), ddy=(0.0, 0.03), key=key)[..., 0].sum()

    @jax.jit
    def gradients(lod, side):
        pairs = [(jax.grad(f)(x, KEY), jax.grad(f)(x)) for f, x in ((of_level, lod), (of_side, side))]
        return pairs, jax.grad(of_chain)(chain, KEY)

    pairs, of_texels = gradients(1.3, 0.3)
    for drawn, exact in pairs:
        assert_close("sum", drawn, exact, 64)
    assert_close("sum", sum(g.sum() for g in jax.tree.leaves(of_texels)), 5, 5)


# Other forms


@pytest.mark.parametrize(
    ("sampler", "key", "error", "words"),
    [
        (jt.Sampler(arithmetic="hardware"), KEY, ValueError, "no texture unit draws texels; leave key out"),
        (jt.Sampler(filter_mode="cubic", limit="taps"), KEY, ValueError, "limit='taps', and.*; leave key or limit out"),
        (jt.Sampler(), 3, TypeError, "key is an int, expected one random key; make it with jax.random.key"),
        (jt.Sampler(), jax.random.split(KEY), TypeError, r"key is an array of shape \(2,\)"),
        (jt.Sampler(), np.float32([1, 2]), TypeError, "dtype float32, expected one random key"),
    ],
)
def test_errors_are_sentences(sampler, key, error, words):
    with pytest.raises(error, match=words):
        jt.sample(jt.texture2d(normal(4, 4, 1)), (0.5, 0.5), sampler, key=key)
