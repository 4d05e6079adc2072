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


# The shape of texels, the number of coordinates, and a sampler.
READS = {
    "texture1d": ((7, 2), 1, {"filter_mode": "cubic", "address_mode": "mirror"}),
    "texture2d": ((5, 6, 4), 2, {"address_mode": ("wrap", "border")}),
    "texture3d": ((3, 4, 5, 3), 3, {"address_mode": "border"}),
    "texture2d_layered": ((3, 5, 6, 1), 2, {}),
    "cubemap": ((6, 4, 4, 4), 3, {}),
}


def test_light_is_filtered_and_a_border_is_light():
    rng = np.random.default_rng(1)
    border, layer = np.float32(0.25), rng.integers(0, 3, 64, np.int32)
    layers = {kind: {"layer": layer} if "layered" in kind else {} for kind in READS}
    drawn = {
        kind: (draw(shape), rng.uniform(-1, 2, (n, 64)).astype(np.float32)) for kind, (shape, n, _) in READS.items()
    }

    @jax.jit
    def read(drawn):
        return {
            kind: jt.sample(
                getattr(jt, kind)(codes, border_color=border),
                (*coords,),
                jt.Sampler(**SRGB, **READS[kind][2]),
                **layers[kind],
            )
            for kind, (codes, coords) in drawn.items()
        }

    for kind, actual in read(drawn).items():
        codes, coords = drawn[kind]
        options = {"border_color": border, "cube": kind == "cubemap", **layers[kind], **SRGB, **READS[kind][2]}
        assert actual.dtype == np.float32, kind
        assert_close("float32", actual, oracle.sample(codes, coords, **options), 1.0)


def test_levels_are_decoded_too():
    levels = tuple(draw(shape) for shape in oracle.chain_shapes((6, 5, 3), 2))
    rng = np.random.default_rng(1)
    coords, lod = tuple(rng.uniform(-1, 2, (2, 64)).astype(np.float32)), rng.uniform(0, 3, 64).astype(np.float32)
    options = {**SRGB, "mipmap_filter_mode": "linear"}
    actual = jt.sample(jt.texture2d(levels), coords, jt.Sampler(**options), lod=lod)
    assert_close("float32", actual, oracle.sample(levels, coords, lod=lod, **options), 1.0)


def test_gather_returns_light():
    codes = draw((5, 6, 3))
    coords = tuple(np.random.default_rng(1).uniform(-1, 2, (2, 64)).astype(np.float32))
    actual = jt.gather(jt.texture2d(codes), coords, jt.Sampler(**SRGB), component=1)
    light = oracle.decode(codes, "normalized_float", srgb=True)
    assert_close("float32", actual, oracle.gather(light, coords, component=1), 1.0)


@pytest.mark.usefixtures("x64")
def test_the_slope_is_that_of_light():
    codes, x = draw((7, 2)), np.random.default_rng(1).uniform(0, 1, 16)
    expected = oracle.differences(lambda t: oracle.sample(codes, (x + t,), dtype=np.float64, **SRGB), 1e-5)[1]
    read = lambda x: jt.sample(jt.texture1d(codes), (x,), jt.Sampler(**SRGB))
    gradients = jax.grad(lambda t, x: read(x).sum(), (0, 1), allow_int=True)
    both = jax.jit(lambda codes, x: (jax.jvp(read, (x,), (jnp.ones_like(x),))[1], gradients(codes, x)))
    slope, (texture, gradient) = both(codes, x)
    assert_close("float32", slope, expected, 7.0)
    assert texture.dtype == jax.dtypes.float0
    assert_close("float32", gradient, expected.sum(-1), 14.0)


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
