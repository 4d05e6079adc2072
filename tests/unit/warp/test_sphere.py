"""The address mode "sphere": longitudes and latitudes, which go on beyond a pole half a turn away."""

import jax
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact

HEIGHT, WIDTH = 5, 8
FILTERS = {
    "point": {"filter_mode": "point"},
    "linear": {},
    "cubic": {"filter_mode": "cubic"},
    "bspline 2": {"filter_mode": "bspline", "spline_order": 2},
    "bspline 5": {"filter_mode": "bspline", "spline_order": 5},
    "lanczos3": {"filter_mode": "lanczos3"},
}


def sphere(**options):
    return jt.Sampler(address_mode="sphere", **options)


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def coordinates(width=WIDTH, height=HEIGHT, n=80, dtype=np.float32):
    """Positions in texels in several turns around, over both poles and further; no two taps from a kink."""
    rng = np.random.default_rng(n)
    whole = [rng.integers(-3 * size, 4 * size, n) for size in (width, height)]
    parts = rng.choice([0.125, 0.25, 0.375, 0.625, 0.75, 0.875], (2, n))
    return tuple((a + b).astype(dtype) for a, b in zip(whole, parts))


def unfolded(texels, reach):
    """The texels with `reach` more rows beyond each pole, and columns on both sides, by rolls and flips."""
    (height, width, _), beyond = texels.shape, np.flip(np.roll(texels, texels.shape[1] // 2, 1), 0)
    rows = np.concatenate([beyond, texels, beyond])[height - reach : 2 * height + reach]
    return np.take(rows, range(-reach, width + reach), 1, mode="wrap")


# Values


@pytest.mark.parametrize(
    ("name", "normalized", "layered"),
    [("point", True, False), ("linear", True, True), ("linear", False, False), ("cubic", False, True)],
)
def test_values_are_those_of_the_oracle(name, normalized, layered):
    """Everywhere, at numbers that are no places too, of layers as of one texture."""
    special = np.float32([np.nan, np.inf, -np.inf, 2.0**31, -(2.0**31), 3e38, -0.0])
    x, y = (c / n if normalized else c for c, n in zip(coordinates(), (WIDTH, HEIGHT)))
    half = np.full_like(special, 0.3)
    coords = tuple(np.concatenate(c).astype(np.float32) for c in ((x, special, half), (y, half, special)))
    layers = normal(3, HEIGHT, WIDTH, 2)
    layer, array = (np.arange(len(coords[0])) % 3, layers) if layered else (None, layers[0])
    texture = (jt.texture2d_layered if layered else jt.texture2d)(array)
    options = {**FILTERS[name], "address_mode": "sphere", "normalized_coords": normalized}
    found = jt.sample(texture, coords, jt.Sampler(**options), layer=layer)
    expected = oracle.sample(array, coords, layer, **{"filter_mode": "linear", **options})
    if name == "point":
        assert_exact(found, expected, np.float32)
    else:
        assert_close("float32", found, expected, 8 * np.abs(layers).max())


@pytest.mark.parametrize("name", FILTERS)
def test_values_are_those_of_an_unfolded_texture(name):
    """Each filter reads rows and columns beyond the edges that were laid there by hand."""
    texels, reach = normal(HEIGHT, WIDTH, 3), 4
    x, y = (c % n for c, n in zip(coordinates(), (WIDTH, HEIGHT)))
    found = jt.sample(jt.texture2d(texels), (x, y), sphere(normalized_coords=False, **FILTERS[name]))
    larger = jt.texture2d(unfolded(texels, reach))
    expected = jt.sample(larger, (x + reach, y + reach), jt.Sampler(normalized_coords=False, **FILTERS[name]))
    assert_close("float32", found, expected, 16)


@pytest.mark.parametrize("levels", ["clamp", "border", "reflect"])
def test_values_of_volumes(levels):
    """Longitude, latitude and level: two axes around the sphere, and one of its own."""
    volume, (x, y) = normal(4, HEIGHT, WIDTH, 2), coordinates()
    z = np.random.default_rng(0).uniform(-3, 7, len(x)).astype(np.float32)
    mode = "sphere" if levels == "clamp" else ("sphere", "sphere", levels)
    options = {"address_mode": mode, "filter_mode": "cubic", "normalized_coords": False}
    found = jt.sample(jt.texture3d(volume), (x, y, z), jt.Sampler(**options))
    assert_close("float32", found, oracle.sample(volume, (x, y, z), **options), 32)


def test_the_gradients_of_a_volume(x64):
    volume, (x, y) = normal(3, HEIGHT, WIDTH, 1).astype(np.float64), coordinates(n=8, dtype=np.float64)
    z, sampler = np.linspace(0.2, 2.8, 8), sphere(normalized_coords=False)
    assert_derivatives(lambda v, *c: jt.sample(jt.texture3d(v), c, sampler) ** 2, volume, x, y, z)


def test_a_volume_is_a_stack_of_spheres_to_a_spline_filter_and_a_resize():
    """Where every level is the same, so is every level of what comes out; and it is that of one sphere."""
    texels, sampler = normal(HEIGHT, WIDTH, 1), sphere(filter_mode="bspline")
    stack = np.stack([texels] * 4)
    of_one, of_all = (jt.spline_filter(t, sampler).texels for t in (jt.texture2d(texels), jt.texture3d(stack)))
    assert_close("float32", of_all, np.stack([of_one] * 4), 16)
    of_one, of_all = (jt.warp.resize(a, s, address="sphere") for a, s in ((texels, (7, 4)), (stack, (3, 7, 4))))
    assert_close("float32", of_all, np.stack([of_one] * 3), 16)


def test_a_texture_of_one_row():
    texels, (x, y) = normal(1, 6, 1), coordinates(6, 1)
    found = jt.sample(jt.texture2d(texels), (x, y), sphere(normalized_coords=False, filter_mode="cubic"))
    options = {"address_mode": "sphere", "filter_mode": "cubic", "normalized_coords": False}
    assert_close("float32", found, oracle.sample(texels, (x, y), **options), 16)


def test_gather_reads_the_four_texels_around_a_pole():
    texels = np.arange(HEIGHT * WIDTH, dtype=np.int32).reshape(HEIGHT, WIDTH, 1)
    found = jt.gather(jt.texture2d(texels), (1.0, 0.0), sphere(normalized_coords=False))
    np.testing.assert_array_equal(found, [0, 1, 5, 4])


# A smooth function on the sphere


def directions(longitude, from_north):
    return np.stack(
        [np.sin(from_north) * np.cos(longitude), np.sin(from_north) * np.sin(longitude), np.cos(from_north)], -1
    )


def smooth(direction):
    """A polynomial on the sphere; `direction` has components last."""
    x, y, z = np.moveaxis(direction, -1, 0)
    return (x * y + 0.5 * z * x - y + x * x * z)[..., None]


def angles(height, width):
    return np.meshgrid((np.arange(width) + 0.5) * 2 * np.pi / width, (np.arange(height) + 0.5) * np.pi / height)


@pytest.mark.parametrize("name", ["cubic", "lanczos3", "prefiltered bspline 5"])
def test_a_pole_is_a_place_like_any_other(name):
    """A read of a function equals that of the turned function where it then is: at a pole, and at the equator."""
    height, width = 48, 96
    turn = np.float64([[1, 0, 0], [0, 0, -1], [0, 1, 0]])  # the north pole comes to the equator
    place = np.random.default_rng(0).normal(size=(200, 3)) * [0.1, 0.1, 1]  # around both poles
    place /= np.linalg.norm(place, axis=-1, keepdims=True)
    options = FILTERS.get(name, {"filter_mode": "bspline", "spline_order": 5})

    def read(function, at):
        texture = jt.texture2d(function(directions(*angles(height, width))).astype(np.float32))
        if name.startswith("prefiltered"):
            texture = jt.spline_filter(texture, sphere(**options))
        x = np.arctan2(at[:, 1], at[:, 0]) / (2 * np.pi)
        y = np.arccos(at[:, 2]) / np.pi
        return jt.sample(texture, (x.astype(np.float32), y.astype(np.float32)), sphere(**options))

    here = read(smooth, place)
    there = read(lambda direction: smooth(direction @ turn), place @ turn.T)
    texel = np.pi / height
    row, scale = ("lanczos ramp", texel) if name == "lanczos3" else ("cubic on a sphere", texel**2)
    assert_close(row, here, there, scale)
    assert_close(row, here, smooth(place), scale)


def test_a_meridian_is_smooth_across_the_pole():
    """The second derivative along a meridian changes across a pole as little as between any two texels."""
    height, width = 64, 128
    texture = jt.texture2d(smooth(directions(*angles(height, width))).astype(np.float32))
    sampler = sphere(filter_mode="bspline")
    coefficients = jt.spline_filter(texture, sampler)
    at = lambda y: jt.sample(coefficients, (np.float32(0.3), y), sampler)[0]
    y = np.linspace(-1.5 / height, 1.5 / height, 25, dtype=np.float32)
    exact = lambda y: smooth(directions(0.6 * np.pi, np.float64(y) * np.pi))[0]
    differences = np.array([oracle.differences(lambda t, y=y: exact(y + t), 1e-3) for y in y])
    derivatives = jax.jit(jax.vmap(lambda y: (jax.grad(at)(y), jax.grad(jax.grad(at))(y))))(y)
    for order, found in enumerate(derivatives, 1):
        slopes, expected = np.asarray(found) / np.pi**order, differences[:, order] / np.pi**order
        assert_close("linear on a sphere", slopes, expected, (np.pi / height) ** 2)


# Mip chains


@pytest.mark.parametrize("mipmap_filter_mode", ["point", "linear"])
def test_mip_chains(mipmap_filter_mode):
    """Levels of odd width too, where half a turn is rounded down to whole texels."""
    texels = normal(12, 20, 2)
    levels = oracle.mipmaps(texels, 2)  # 20, 10, 5, 2 and 1 texels wide
    x, y = (c / n for c, n in zip(coordinates(20, 12, 60), (20, 12)))
    coords, lod = (x.astype(np.float32), y.astype(np.float32)), np.linspace(-0.4, 4.6, 60, dtype=np.float32)
    options = {"address_mode": "sphere", "filter_mode": "linear", "mipmap_filter_mode": mipmap_filter_mode}
    chain = jt.build_mipmaps(jt.texture2d(texels))
    found = jt.sample(chain, coords, jt.Sampler(**options), lod=lod)
    assert_close("float32", found, oracle.sample(levels, coords, lod=lod, **options), 16)


# Derivatives, and every form


@pytest.mark.parametrize("name", ["linear", "bspline 2"])
def test_derivatives(name, x64):
    texels, coords = normal(HEIGHT, WIDTH, 2).astype(np.float64), coordinates(n=12, dtype=np.float64)
    sampler = sphere(normalized_coords=False, **FILTERS[name])
    assert_derivatives(lambda t, *c: jt.sample(jt.texture2d(t), c, sampler) ** 2, texels, *coords)


@pytest.mark.compiled
def test_reproducible_sums_of_many_samples():
    """As many samples as blocks of a CPU take. The splat is the same in every run, and on a CPU in any order."""
    values, (x, y) = normal(40_000, 2), coordinates(n=40_000)
    sampler = sphere(normalized_coords=False, deterministic=True)
    found = jt.splat(values, (x, y), (HEIGHT, WIDTH, 2), sampler).texels
    order = slice(None, None, 1 if jax.default_backend() == "gpu" else -1)
    assert_exact(jt.splat(values[order], (x[order], y[order]), (HEIGHT, WIDTH, 2), sampler).texels, found)
    expected = oracle.splat(
        values, (x, y), (HEIGHT, WIDTH, 2), address_mode="sphere", filter_mode="linear", normalized_coords=False
    )
    assert_close("long sum", found, expected, 64 * np.abs(expected).max())


# The prefilter of splines


@pytest.mark.parametrize("order", range(2, 6))
def test_a_spline_passes_through_the_texels(order):
    """Of one row and of many, of an even and an odd number of rows."""
    sampler = sphere(filter_mode="bspline", spline_order=order, normalized_coords=False)
    for sizes in ((1, 2), (5, 8), (40, 70)):
        texels = normal(*sizes, 2)
        coefficients = jt.spline_filter(jt.texture2d(texels), sampler)
        y, x = np.indices(sizes).astype(np.float32) + 0.5
        assert_close("sum", jt.sample(coefficients, (x, y), sampler), texels, 4 * 7.5**2)
        beyond = np.roll(texels, sizes[1] // 2, 1)[::-1]
        assert_close("sum", jt.sample(coefficients, (x, y - sizes[0]), sampler), beyond, 4 * 7.5**2)


def test_gradients_of_the_prefilter_are_the_transpose():
    texels, cotangent, sampler = normal(30, 20, 1), normal(20, 30, 1).reshape(30, 20, 1), sphere(filter_mode="bspline")
    filtered = lambda t: jt.spline_filter(jt.texture2d(t), sampler).texels

    @jax.jit
    def both(texels, cotangent):
        out, pullback = jax.vjp(filtered, texels)
        return out, pullback(cotangent)[0]

    out, pulled = both(texels, cotangent)
    dots = float(np.vdot(cotangent, out)), float(np.vdot(pulled, texels))
    assert_close("long sum", *dots, 64 * np.abs(cotangent).sum())


# Other functions


def test_a_warp_turns_a_globe():
    """A shift by rows moves what leaves over a pole to the other side of the globe."""
    image = normal(6, 8, 3)
    moved = jt.warp.resample(image, lambda x, y: (x, y - 2), filter="point", address="sphere")
    assert_exact(moved[:2], np.roll(image, 4, 1)[1::-1], np.float32)
    assert_exact(moved[2:], image[:4], np.float32)


def test_an_antialiased_warp_takes_coarser_levels_of_an_odd_width():
    image, shrink = np.full((4, 6, 1), 7, np.float32), np.float32([[0.4, 0, 0], [0, 0.4, 0]])
    result = jt.warp.warp_affine(image, shrink, address="sphere", antialias=True)
    assert_close("float32", result, image, 7)


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (
            lambda s: jt.sample(jt.texture1d(normal(4, 1)), (0.5,), s),
            r"\('sphere',\), and 'sphere' addresses 2 axes together",
        ),
        (
            lambda _: jt.sample(
                jt.texture3d(normal(4, 4, 4, 1)), (0.5,) * 3, jt.Sampler(address_mode=("clamp", "sphere", "sphere"))
            ),
            "use it for the first 2 axes, x first, and no other",
        ),
        (
            lambda _: jt.sample(jt.texture3d(normal(4, 4, 4, 1)), (0.5,) * 3, jt.Sampler(address_mode=("sphere",) * 3)),
            "'sphere' addresses 2 axes together",
        ),
        (lambda s: jt.sample(jt.texture2d(normal(4, 7, 1)), (0.5, 0.5), s), "the texture is 7 texels wide; resize it"),
        (lambda s: jt.splat(normal(1), (0.5, 0.5), (4, 7, 1), s), "the texture is 7 texels wide"),
        (lambda s: jt.warp.resample(normal(4, 7, 1), lambda x, y: (x, y), sampler=s), "the texture is 7 texels wide"),
        (
            lambda _: jt.sample(
                jt.texture2d(normal(4, 8, 1)), (0.5, 0.5), jt.Sampler(address_mode=("sphere", "clamp"))
            ),
            r"\('sphere', 'clamp'\), and 'sphere' addresses 2 axes together",
        ),
        (
            lambda _: jt.spline_filter(
                jt.texture2d(normal(4, 7, 1)), jt.Sampler(address_mode="sphere", filter_mode="bspline")
            ),
            "the texture is 7 texels wide",
        ),
        (lambda _: sphere(arithmetic="hardware"), "address_mode='sphere', which no texture unit has"),
    ],
)
def test_errors_are_sentences(run, words):
    with pytest.raises(ValueError, match=words):
        run(sphere())
