"""sRGB: all 256 codes, which channels are colors, and that light is blended, not codes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
    sampler = jt.Sampler(filter_mode="point", **SRGB)
    values = np.asarray(jt.sample(jt.texture1d(CODES[:, None]), (centers(256),), sampler))[:, 0]
    c = CODES.astype(np.float64) / 255
    expected = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    assert values.dtype == np.float32
    error = np.abs(np.float64(values) - expected) / np.spacing(expected.astype(np.float32))
    assert error.max() <= UNITS_IN_THE_LAST_PLACE, f"code {error.argmax()} is off by {error.max():.2f} units"
    assert (np.diff(values) > 0).all()
    assert_exact(values[[0, 255]], [0.0, 1.0], np.float32)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
def test_colors_are_decoded_and_other_channels_are_not(channels):
    """Three of three or more, the first of one or two."""
    codes = np.repeat(CODES[:, None], channels, 1)
    sampler = jt.Sampler(filter_mode="point", **SRGB)
    values = jt.sample(jt.texture1d(codes), (centers(256),), sampler)
    expected = oracle.decode(codes, "normalized_float", srgb=True)
    assert_close("float32", values, expected, 1.0)
    plain = 3 if channels >= 3 else 1
    assert_exact(values[:, plain:], codes[:, plain:] / 255, np.float32)


def test_a_known_code():
    sampler = jt.Sampler(**SRGB)
    value = jt.sample(jt.texture1d(np.full((1, 4), 128, np.uint8)), (0.5,), sampler)
    assert_close("float32", value, [0.2158605] * 3 + [0.5019608], 1.0)


READS = [
    # kind, shape, sampler
    ("texture1d", (7, 2), {"filter_mode": "cubic", "address_mode": "mirror"}),
    ("texture2d", (5, 6, 4), {"address_mode": ("wrap", "border")}),
    ("texture3d", (3, 4, 5, 3), {"address_mode": "border"}),
    ("texture2d_layered", (3, 5, 6, 1), {}),
    ("cubemap", (6, 4, 4, 4), {}),
]


@pytest.mark.parametrize(("kind", "shape", "options"), READS)
def test_light_is_filtered_and_a_border_is_light(kind, shape, options):
    rng = np.random.default_rng(1)
    codes, border = draw(shape), np.float32(0.25)
    count = 3 if kind in ("cubemap", "texture3d") else 1 if kind == "texture1d" else 2
    coords = tuple(rng.uniform(-1, 2, (count, 64)).astype(np.float32))
    layer = rng.integers(0, 3, 64, np.int32) if "layered" in kind else None
    texture = getattr(jt, kind)(codes, border_color=border)
    actual = jt.sample(texture, coords, jt.Sampler(**SRGB, **options), layer=layer)
    assert actual.dtype == np.float32
    expected = oracle.sample(codes, coords, layer, border_color=border, cube=kind == "cubemap", **SRGB, **options)
    assert_close("float32", actual, expected, 1.0)


def test_levels_are_decoded_too():
    levels = tuple(draw(shape) for shape in oracle.chain_shapes((6, 5, 3), 2))
    rng = np.random.default_rng(1)
    coords, lod = tuple(rng.uniform(-1, 2, (2, 64)).astype(np.float32)), rng.uniform(0, 3, 64).astype(np.float32)
    options = {**SRGB, "mipmap_filter_mode": "linear"}
    actual = jt.sample(jt.texture2d(levels), coords, jt.Sampler(**options), lod=lod)
    assert_close("float32", actual, oracle.sample(levels, coords, lod=lod, **options), 1.0)


def test_the_mean_of_black_and_white_is_half_the_light():
    assert_exact(jt.sample(jt.texture1d(np.uint8([[0], [255]])), (0.5,), jt.Sampler(**SRGB)), [0.5], np.float32)


def test_gather_returns_light():
    codes = draw((5, 6, 3))
    coords = tuple(np.random.default_rng(1).uniform(-1, 2, (2, 64)).astype(np.float32))
    actual = jt.gather(jt.texture2d(codes), coords, jt.Sampler(**SRGB), component=1)
    light = oracle.decode(codes, "normalized_float", srgb=True)
    assert_close("float32", actual, oracle.gather(light, coords, component=1), 1.0)


def test_fetch_returns_codes():
    codes = draw((6, 3))
    assert_exact(jt.fetch(jt.texture1d(codes), (np.arange(6),)), codes, np.uint8)


@pytest.mark.usefixtures("x64")
def test_the_slope_is_that_of_light():
    codes, x = draw((7, 2)), np.random.default_rng(1).uniform(0, 1, 16)
    expected = oracle.differences(lambda t: oracle.sample(codes, (x + t,), dtype=np.float64, **SRGB), 1e-5)[1]
    read = lambda x: jt.sample(jt.texture1d(codes), (x,), jt.Sampler(**SRGB))
    slope = jax.jvp(read, (jnp.asarray(x),), (jnp.ones_like(x),))[1]
    assert_close("float32", slope, expected, 7.0)
    texture, gradient = jax.grad(lambda t, x: read(x).sum(), (0, 1), allow_int=True)(codes, jnp.asarray(x))
    assert texture.dtype == jax.dtypes.float0
    assert_close("float32", gradient, expected.sum(-1), 14.0)


def test_jit_and_vmap():
    codes, sampler = jnp.asarray(draw((3, 7, 4))), jt.Sampler(**SRGB)
    x = np.random.default_rng(1).uniform(0, 1, (3, 5)).astype(np.float32)
    batch = jax.jit(jax.vmap(lambda texture, x, sampler: jt.sample(texture, (x,), sampler), (0, 0, None)))
    actual = batch(jax.vmap(jt.texture1d)(codes), x, sampler)
    for k in range(3):
        assert_close("float32", actual[k], oracle.sample(codes[k], (x[k],), **SRGB), 1.0)


HALF = np.float32(0.5)
ERRORS = {
    "element reads": (np.uint8, {"srgb": True, "filter_mode": "point"}),
    "signed bytes": (np.int8, SRGB),
    "16-bit codes": (np.uint16, SRGB),
    "32-bit codes": (np.uint32, {"srgb": True, "filter_mode": "point"}),
    "floats": (np.float32, {"srgb": True}),
    "normalized floats": (np.float32, SRGB),
}


@pytest.mark.parametrize("mistake", ERRORS)
def test_mistakes_are_named(mistake):
    dtype, options = ERRORS[mistake]
    with pytest.raises(ValueError, match=r"srgb|read_mode"):
        jt.sample(jt.texture1d(np.zeros((4, 3), dtype)), (HALF,), jt.Sampler(**options))
