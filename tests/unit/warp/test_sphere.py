"""The address mode "sphere": longitudes and latitudes, which go on beyond a pole half a turn away."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from tests.compiled.calls import chain
from tests.oracles import reads as oracle
from tests.support.arrays import normal
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact, named

HEIGHT, WIDTH = 5, 8
SPHERE = {"address_mode": "sphere"}


def sphere(**options):
    return jt.Sampler(**SPHERE, **options)


def coordinates(width=WIDTH, height=HEIGHT, n=80, dtype=np.float32):
    """Positions in texels in several turns around, over both poles and further; no two taps from a kink."""
    rng = np.random.default_rng(n)
    whole = [rng.integers(-3 * size, 4 * size, n) for size in (width, height)]
    parts = rng.choice([0.125, 0.25, 0.375, 0.625, 0.75, 0.875], (2, n))
    return tuple((a + b).astype(dtype) for a, b in zip(whole, parts))


def table_of_reads():
    """Of each case: what makes the texture, its texels, coordinates, more of a read, and the sampler's options."""
    special = np.float32([np.nan, np.inf, -np.inf, 2.0**31, -(2.0**31), 3e38, -0.0])
    half, layers, volume = np.full_like(special, 0.3), normal(3, HEIGHT, WIDTH, 2), normal(4, HEIGHT, WIDTH, 2)
    x, y = (np.concatenate(c) for c in zip(coordinates(), (special, half), (half, special)))
    unit, z = (x / np.float32(WIDTH), y / np.float32(HEIGHT)), np.linspace(-3, 7, len(x), dtype=np.float32)
    # Levels are of odd width too, where half a turn is rounded down to whole texels: 20, 10, 5, 2 and 1.
    texels, lod = normal(12, 20, 2), np.linspace(-0.4, 4.6, 60, dtype=np.float32)
    of_chain = tuple(np.float32(c / n) for c, n in zip(coordinates(20, 12, 60), (20, 12)))
    cubic, layered = {"filter_mode": "cubic", "normalized_coords": False}, {"layer": np.arange(len(x)) % 3}
    mixed = cubic | {"address_mode": ("sphere", "sphere", "border")}
    return {
        "point": (jt.texture2d, layers[0], unit, {}, {"filter_mode": "point"}),
        "linear": (jt.texture2d_layered, layers, unit, layered, {}),
        "one row": (jt.texture2d, normal(1, 6, 1), coordinates(6, 1), {}, cubic),
        "levels that clamp": (jt.texture3d, volume, (x, y, z), {}, {"normalized_coords": False}),
        "levels with a border": (jt.texture3d, volume, (x, y, z), {}, mixed),
        "levels of a chain": (chain, texels, of_chain, {"lod": lod}, {"mipmap_filter_mode": "linear"}),
    }


def test_values_are_those_of_the_oracle():
    """Everywhere, at numbers that are no places too, of layers, volumes and mip chains."""
    table = {
        name: (*row, {"filter_mode": "linear", **SPHERE, **options})
        for name, (*row, options) in table_of_reads().items()
    }
    read = lambda name, texels, coords, more: jt.sample(
        table[name][0](texels), coords, jt.Sampler(**table[name][4]), **more
    )
    run = jax.jit(lambda given: {name: read(name, *given[name]) for name in given})
    found = run({name: row[1:4] for name, row in table.items()})
    for name, (make, texels, coords, more, options) in table.items():
        stored = oracle.mipmaps(texels, 2) if make is chain else texels
        expected = oracle.sample(stored, coords, **more, **options)
        with named(name):
            assert_close("float32", found[name], expected, 8)
            if name == "point":
                assert_exact(found[name], expected, np.float32)


def test_gradients(x64):
    coords = coordinates(n=8, dtype=np.float64)
    read = lambda texels, *at: jt.sample(jt.texture2d(texels), at, sphere(normalized_coords=False)) ** 2
    assert_derivatives(read, normal(HEIGHT, WIDTH, 1).astype(np.float64), *coords)


SPLINES = ((5, (40, 70)), (4, (1, 2)))


def test_a_spline_passes_through_the_texels():
    """Of one row and of many, of an even and an odd number of rows; beyond a pole, through those on the other side."""
    given = [normal(*sizes, 2) for _, sizes in SPLINES]

    def read(order, texels):
        sampler = sphere(filter_mode="bspline", spline_order=order, normalized_coords=False)
        y, x = np.indices(texels.shape[:2]).astype(np.float32) + np.float32(0.5)
        at = np.stack([x, x]), np.stack([y, y - len(texels)])
        return jt.sample(jt.spline_filter(jt.texture2d(texels), sampler), at, sampler)

    run = jax.jit(lambda given: [read(order, texels) for (order, _), texels in zip(SPLINES, given, strict=True)])
    for found, texels, name in zip(jax.device_get(run(given)), given, SPLINES, strict=True):
        beyond = np.roll(texels, texels.shape[1] // 2, 1)[::-1]
        with named(name):
            assert_close("sum", found, np.stack([texels, beyond]), 4 * 7.5**2)


def test_other_functions():
    """A globe is turned over a pole, a volume is a stack, and a pole has four texels."""
    image, sampler = normal(6, 8, 3), sphere(filter_mode="bspline")
    codes = np.arange(HEIGHT * WIDTH, dtype=np.int32).reshape(HEIGHT, WIDTH, 1)

    @jax.jit
    def run(image, codes):
        texels, stack = image[:5, :, :1], jnp.stack([image[:5, :, :1]] * 4)
        resize = functools.partial(jt.warp.resize, address_mode="sphere")
        filtered = [jt.spline_filter(t, sampler).texels for t in (jt.texture2d(texels), jt.texture3d(stack))]
        return (
            jt.warp.resample(image, lambda x, y: (x, y - 2), filter_mode="point", address_mode="sphere"),
            (filtered, (resize(texels, (7, 4)), resize(stack, (3, 7, 4)))),
            jt.gather(jt.texture2d(codes), (1.0, 0.0), sphere(normalized_coords=False)),
        )

    turned, stacks, around = run(image, codes)
    assert_exact(turned, np.concatenate([np.roll(image, 4, 1)[1::-1], image[:4]]), np.float32)
    for of_one, of_all in stacks:
        assert_close("float32", of_all, np.stack([of_one] * len(of_all)), 16)
    np.testing.assert_array_equal(around, [0, 1, 5, 4])
