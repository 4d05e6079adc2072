"""sRGB: all 256 codes, which channels are colors, and that light is blended, not codes."""

import jax
import numpy as np

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.tolerances import assert_close, assert_exact

SRGB = {"srgb": True, "read_mode": "normalized_float"}
CODES = np.arange(256, dtype=np.uint8)
# A power in float32 is off by some units in its last place, its argument by half of one, which counts 2.4 times.
UNITS_IN_THE_LAST_PLACE = 2


def draw(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 255, shape, np.uint8, endpoint=True)


def centers(n):
    return (np.arange(n, dtype=np.float32) + np.float32(0.5)) / np.float32(n)


def test_every_code():
    """Colors are decoded: three of three or more channels, the first of one or two. Other channels are not."""
    sampler = jt.Sampler(filter_mode="point", **SRGB)
    codes = {channels: np.repeat(CODES[:, None], channels, 1) for channels in range(1, 6)}
    read = lambda codes: {n: jt.sample(jt.texture1d(of), (centers(256),), sampler) for n, of in codes.items()}
    found = jax.jit(read)(codes)
    for channels, values in found.items():
        plain = 3 if channels >= 3 else 1
        assert_close("float32", values, oracle.decode(codes[channels], "normalized_float", srgb=True), 1.0)
        assert_exact(values[:, plain:], codes[channels][:, plain:] / 255, np.float32)
    values, c = np.asarray(found[1])[:, 0], CODES.astype(np.float64) / 255
    expected = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    error = np.abs(np.float64(values) - expected) / np.spacing(expected.astype(np.float32))
    assert error.max() <= UNITS_IN_THE_LAST_PLACE, f"code {error.argmax()} is off by {error.max():.2f} units"
    assert (np.diff(values) > 0).all()
    assert_exact(values[[0, 255]], [0.0, 1.0], np.float32)


def test_light_is_filtered_within_and_between_levels_and_a_border_is_light():
    levels = tuple(draw(shape) for shape in oracle.chain_shapes((6, 5, 3), 2))
    rng = np.random.default_rng(1)
    coords, lod = tuple(rng.uniform(-1, 2, (2, 64)).astype(np.float32)), rng.uniform(0, 3, 64).astype(np.float32)
    options, border = {**SRGB, "mipmap_filter_mode": "linear", "address_mode": "border"}, np.float32(0.25)
    read = lambda levels, *args: jt.sample(jt.texture2d(levels, border_color=border), coords, *args, lod=lod)
    actual = jax.jit(lambda levels: read(levels, jt.Sampler(**options)))(levels)
    assert_close("float32", actual, oracle.sample(levels, coords, lod=lod, border_color=border, **options), 1.0)


def test_gather_returns_light():
    codes = draw((5, 6, 3))
    coords = tuple(np.random.default_rng(1).uniform(-1, 2, (2, 64)).astype(np.float32))
    actual = jt.gather(jt.texture2d(codes), coords, jt.Sampler(**SRGB), component=1)
    light = oracle.decode(codes, "normalized_float", srgb=True)
    assert_close("float32", actual, oracle.gather(light, coords, component=1), 1.0)
