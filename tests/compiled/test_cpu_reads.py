"""Forms that reads take on a CPU: texels loaded as words, masks for each channel, integers rounded by an addition."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import warp
from jaxtex._jax.float_bits import rounded_to
from tests.support.tolerances import assert_close, assert_codes_close, assert_exact

SIZE = (9, 7)
COLORS = [None, np.float32([0.5, -3.0, np.inf, np.nan])]


def codes(*shape):
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


def points(count):
    rng = np.random.default_rng(1)
    x, y = (rng.uniform(-3, n + 3, count).astype(np.float32) for n in SIZE[::-1])
    x[:4], y[4:8] = np.float32([np.nan, np.inf, -np.inf, 3e38]), np.float32([np.nan, np.inf, -np.inf, -3e38])
    return x, y


def read(texels, color, coords, filter_mode="linear", mode="border"):
    options = {"filter_mode": filter_mode, "address_mode": mode, "read_mode": "normalized_float"}
    sampler = jt.Sampler(normalized_coords=False, **options)
    return jt.sample(jt.texture2d(texels, border_color=color), coords, sampler)


@pytest.mark.parametrize(
    ("mode", "color"),
    [*(("border", color) for color in COLORS), ("mirror", None)],
    ids=["border zero", "border color", "mirror"],
)
def test_texels_of_four_bytes_are_channels_read_alone(mode, color):
    texels, coords = codes(*SIZE, 4), points(200)
    one = lambda t, color: read(t, color, coords, mode=mode)
    alone = lambda t, c, k: one(t[..., k : k + 1], None if c is None else c[k : k + 1])
    run = lambda t, c: (one(t, c), [alone(t, c, k) for k in range(4)])
    together, each = jax.device_get(jax.jit(run)(texels, color))
    apart, finite = np.concatenate(each, -1), np.isfinite(together)
    assert_exact(np.where(finite, 0, together), np.where(finite, 0, apart))
    assert_close("float32", np.where(finite, together, 0), np.where(finite, apart, 0), 3)


def test_words_of_a_batch():
    texels, (x, y) = codes(2, *SIZE, 4), points(80)
    one = lambda texels, *coords: read(texels, None, coords)
    run = jax.jit(lambda *args: (jax.vmap(one)(*args), jnp.stack([one(*(a[k] for a in args)) for k in range(2)])))
    assert_close("float32", *run(texels, np.stack([x, x + 1]), np.stack([y, y - 2])), 1)


@pytest.mark.parametrize(("channels", "color"), [(2, None), (4, None), (4, 2.0), (9, 2.0)])
def test_texels_outside_leave_no_trace(channels, color):
    """Texels at the edge that are not finite reach no sample whose taps are all outside."""
    texels = np.random.default_rng(2).normal(size=(*SIZE, channels)).astype(np.float32)
    texels[0, 0], texels[-1, -1] = np.nan, np.inf
    coords = np.float32([-0.6, SIZE[1] + 0.6, -50, np.nan]), np.float32([-0.6, SIZE[0] + 0.6, 3, 3])
    sampler = jt.Sampler(address_mode="border", normalized_coords=False)
    found = jax.jit(functools.partial(jt.sample, sampler=sampler))(jt.texture2d(texels, border_color=color), coords)
    assert_exact(found[:3], np.full((3, channels), color or 0, np.float32))
    assert not np.isfinite(jt.sample(jt.texture2d(texels), (0.5, 0.5), sampler)).any()


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16, np.int32])
def test_integers_are_rounded_half_to_even_and_clipped(dtype):
    info = np.iinfo(dtype)
    halves = np.arange(-70000, 70000, 0.25, np.float32)
    ends = np.float32([info.min, info.max, -0.0, 1e-40, 3e38, -3e38, np.inf, -np.inf])
    values = np.concatenate([halves, ends, np.nextafter(np.float32([0.5, 1.5, 254.5]), np.float32(0))])
    expected = np.clip(np.round(values.astype(np.float64)), info.min, info.max).astype(dtype)
    rounded = jax.jit(functools.partial(rounded_to, dtype=np.dtype(dtype)))
    assert_exact(rounded(values), expected)
    other_nan = np.array([0x7FC00000, 0x7FC12345, 0xFFC54321], np.uint32).view(np.float32)
    assert_exact(rounded(other_nan), np.zeros(3, dtype))


def test_a_warp_of_codes_is_that_of_numbers():
    cases = [(1, None), (3, 7.0), (4, 7.0)]
    turn = lambda image, color: warp.rotate(image, angle=0.349, border_color=color)
    run = jax.jit(lambda *images: [(turn(t, c), turn(t.astype(np.float32), c)) for t, (_, c) in zip(images, cases)])
    for found, numbers in run(*(codes(*SIZE, channels) for channels, _ in cases)):
        assert found.dtype == np.uint8
        assert_codes_close("float32", found, np.asarray(numbers), 255)
