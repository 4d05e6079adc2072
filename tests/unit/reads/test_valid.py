"""Reads that leave out invalid texels, beside a normalized interpolation in NumPy, tap by tap."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.support.tolerances import assert_close, assert_exact

RANDOM = np.random.default_rng(3)
MAKE = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}
SHAPES = {1: (9, 2), 2: (6, 7, 2), 3: (4, 5, 6, 2)}


def keys(t):
    """The cubic weights of R. Keys, 1981, of a tap at a distance."""
    t = abs(t)
    return np.where(t < 1, 1.5 * t**3 - 2.5 * t**2 + 1, np.where(t < 2, -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2, 0))


# The taps from the texel below a position, and their weights by the distance.
FILTERS = {
    "point": ((0,), lambda t: np.float64(1)),
    "linear": ((0, 1), lambda t: 1 - abs(t)),
    "cubic": ((-1, 0, 1, 2), keys),
}


def interpolated(texels, mask, point, name, outside=None):
    """The sums of weights times texels, and of weights, of the valid taps; by clamping, or with a number outside."""
    offsets, weight = FILTERS[name]
    sizes, total, share = texels.shape[:-1], np.zeros(texels.shape[-1]), np.zeros(mask.shape[-1])
    places = [np.floor(p) if name == "point" else np.floor(p - 0.5) for p in point[::-1]]
    for taps in itertools.product(*[offsets] * len(sizes)):
        index = [int(b) + k for b, k in zip(places, taps)]
        w = np.prod([weight(p - 0.5 - i) for p, i in zip(point[::-1], index)])
        if outside is not None and not all(0 <= i < n for i, n in zip(index, sizes)):
            total, share = total + w * outside, share + w
            continue
        at = tuple(min(max(i, 0), n - 1) for i, n in zip(index, sizes))
        total, share = total + w * np.where(mask[at], texels[at], 0), share + w * mask[at]
    return total, share


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("ndim", SHAPES)
def test_a_read_is_the_mean_of_its_valid_taps(ndim, name):
    texels = RANDOM.normal(size=SHAPES[ndim]).astype(np.float32)
    mask = RANDOM.random(SHAPES[ndim][:-1]) > 0.3
    points = RANDOM.uniform(-1, 8, (40, ndim)).astype(np.float32)
    how, least = jt.Sampler(normalized_coords=False, filter_mode=name), 0.3
    read = lambda texels, mask: jt.sample(MAKE[ndim](texels), (*points.T,), how, valid=mask, min_valid=least, fill=7.0)
    found = read(texels, mask)
    for value, point in zip(np.asarray(found), np.float64(points)):
        total, share = interpolated(np.float64(texels), mask[..., None], point, name)
        assert abs(share[0] - least) > 1e-5  # no sample is on the edge
        expected = total / share if share[0] >= least else np.full(2, 7.0)
        assert_close("sum", value, expected, 16)
    # Not a number, in place of what is invalid, says the same, and its value does not matter.
    assert_exact(jt.sample(MAKE[ndim](np.where(mask[..., None], texels, np.nan)), (*points.T,), how, valid="finite",
                           min_valid=least, fill=7.0), found)  # fmt: skip


def test_without_invalid_texels_a_read_is_the_plain_one():
    """Bit for bit on a CPU; kernels may contract sums of more channels otherwise."""
    texels, points = RANDOM.normal(size=(8, 9, 3)).astype(np.float32), RANDOM.uniform(-0.2, 1.2, (2, 300))
    texture, places = jt.texture2d(texels), (*points.astype(np.float32),)
    for name in FILTERS:
        how = jt.Sampler(filter_mode=name)
        found, plain = jt.sample(texture, places, how, valid="finite"), jt.sample(texture, places, how)
        if jax.default_backend() == "cpu":
            assert_exact(found, plain)
        assert_close("sum", found, plain, 1)


def test_an_identity_read_keeps_the_holes():
    """A hole of one texel becomes 4 in a plain linear read."""
    texels = RANDOM.normal(size=(5, 6, 1)).astype(np.float32)
    texels[1, 2], texels[4, 5] = np.nan, np.inf
    y, x = np.mgrid[:5, :6].astype(np.float32) + 0.5
    how = jt.Sampler(normalized_coords=False)
    found = np.asarray(jt.sample(jt.texture2d(texels), (x, y), how, valid="finite"))
    assert_exact(found, np.where(np.isfinite(texels), texels, np.nan))
    assert np.isnan(jt.sample(jt.texture2d(texels), (x, y), how)).sum() > 2
    # Between texels, the others fill the hole.
    half = jt.sample(jt.texture2d(texels), (np.float32([2.75]), np.float32([1.5])), how, valid="finite")
    assert_close("sum", half[0], texels[1, 3], 1)


def test_a_mask_of_each_channel_and_a_border():
    texels, mask = RANDOM.normal(size=(5, 6, 2)).astype(np.float32), RANDOM.random((5, 6, 2)) > 0.4
    points = RANDOM.uniform(-1, 7, (60, 2)).astype(np.float32)
    how = jt.Sampler(normalized_coords=False, address_mode="border")
    for color in (0.5, np.nan):
        texture = jt.texture2d(texels, border_color=np.float32(color))
        found = np.asarray(jt.sample(texture, (*points.T,), how, valid=mask, fill=np.float32([3, 4])))
        for value, point in zip(found, np.float64(points)):
            outside = 0.5
            total, share = interpolated(np.float64(texels), mask, point, "linear", outside)
            if np.isnan(color):  # outside is invalid, too
                inside = np.pad(mask, ((2, 2), (2, 2), (0, 0)))
                total, share = interpolated(
                    np.pad(np.float64(texels), ((2, 2), (2, 2), (0, 0))), inside, point + 2, "linear"
                )
            expected = np.where(share >= 2.0**-10, total / np.where(share > 0, share, 1), [3, 4])
            assert_close("sum", value, expected, 16 / np.maximum(share, 2.0**-10))


MASK = RANDOM.random((6, 7)) > 0.3
POINTS = (*RANDOM.uniform(0, 6, (2, 30)).astype(np.float32),)


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64"])
def test_other_floats(dtype):
    texels = (RANDOM.normal(size=(6, 7, 2)) + 1j * RANDOM.normal(size=(6, 7, 2))).astype("complex64")
    texels = texels if dtype == "complex64" else texels.real.astype(dtype)
    how = jt.Sampler(normalized_coords=False)
    found = jt.sample(jt.texture2d(texels), POINTS, how, valid=MASK, fill=9.0)
    assert found.dtype == dtype
    wide = [part.astype(np.float32) for part in (texels.real, texels.imag)]
    real, imag = (jt.sample(jt.texture2d(part), POINTS, how, valid=MASK, fill=9.0) for part in wide)
    if dtype == "complex64":
        assert_close("sum", found.real, real, 9)
        assert_close("sum", found.imag, np.where(real == 9, 0, imag), 9)
    else:
        np.testing.assert_array_equal(found.astype(np.float32), real.astype(dtype).astype(np.float32))


def test_integers():
    """As they are stored, and as fractions, also of light."""
    texels = RANDOM.integers(0, 256, (6, 7, 3)).astype(np.uint8)
    point = jt.Sampler(normalized_coords=False, filter_mode="point")
    x, y = (p.astype(int) for p in POINTS)
    for fill, empty in ((None, 0), (200, 200)):
        found = jt.sample(jt.texture2d(texels), POINTS, point, valid=MASK, fill=fill)
        assert_exact(found, np.where(MASK[y, x, None], texels[y, x], empty).astype(np.uint8))
    for srgb, channels in ((False, 3), (True, 1), (True, 2), (True, 3)):
        how = jt.Sampler(normalized_coords=False, read_mode="normalized_float", srgb=srgb)
        some = texels[..., :channels]
        plain = jt.sample(jt.texture2d(some), POINTS, how)
        assert_close("sum", jt.sample(jt.texture2d(some), POINTS, how, valid=MASK | True), plain, 1)


def test_levels():
    """Each level has its own valid texels."""
    fine = np.ones((4, 4, 1), np.float32)
    fine[0, 0] = np.nan
    texture = jt.build_mipmaps(jt.texture2d(fine), 2)
    how = jt.Sampler(mipmap_filter_mode="linear", filter_mode="point")
    places = np.float32([0.5, 1.5, 3.5]) / 4, np.float32([0.5, 0.5, 3.5]) / 4
    found = jt.sample(texture, places, how, lod=0.5, valid="finite")
    assert np.isnan(found[0, 0])
    assert_exact(found[1:, 0], np.ones(2))


def test_gradients_have_no_nan():
    """In texels, coordinates and the border color, beside differences; and once more, and under `jax.vmap`."""
    texels = RANDOM.normal(size=(2, 5, 6, 1)).astype(np.float64)
    mask = RANDOM.random((5, 6)) > 0.35
    points, weights = RANDOM.uniform(0, 5, (2, 12)), RANDOM.normal(size=12)
    how = jt.Sampler(normalized_coords=False, filter_mode="cubic", address_mode="border")

    def total(texels, x, color):
        texture = jt.texture2d(jnp.where(mask[..., None], texels, jnp.nan), border_color=color)
        return (weights * jt.sample(texture, (x, points[1]), how, valid="finite", fill=0.0)[:, 0]).sum()

    with jax.enable_x64(True):
        args = texels[0], points[0], np.float64(0.7)
        gradients = jax.jit(jax.grad(total, (0, 1, 2)))(*args)
        assert all(np.isfinite(g).all() for g in gradients)
        assert not np.asarray(gradients[0])[~mask].any()
        along = [RANDOM.normal(size=np.shape(a)) for a in args]
        change = lambda step: total(*(a + step * d for a, d in zip(args, along)))
        slope = sum((g * d).sum() for g, d in zip(gradients, along))
        assert_close("central difference", slope, (change(1e-6) - change(-1e-6)) / 2e-6, 1)
        # The second derivative, forward over reverse.
        second = jax.jvp(lambda x: jax.grad(total, 1)(args[0], x, args[2]), (args[1],), (along[1],))[1]
        near = lambda step: jax.grad(total, 1)(args[0], args[1] + step * along[1], args[2])
        assert_close("central difference", second, (near(1e-6) - near(-1e-6)) / 2e-6, 100)
        found = jax.vmap(lambda t: total(t, args[1], args[2]))(texels)
        assert_close("sum", found, [total(t, args[1], args[2]) for t in texels], 1)
