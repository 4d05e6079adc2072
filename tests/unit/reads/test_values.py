"""What reads, fetches, gathers and splats return, against the oracle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.cases import computed
from tests.support.tolerances import assert_close, assert_exact, named

MODES = ("clamp", "border", "wrap", "mirror", "reflect")
FILTERS = ("point", "linear", "cubic")
PLAIN = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}
LAYERED = {1: jt.texture1d_layered, 2: jt.texture2d_layered}
SIZES = {1: (7,), 2: (7, 5), 3: (5, 3, 6)}  # x, y, z

# Coordinates with a meaning of their own, each far from where rounding would decide about a linear footprint.
SPECIALS = np.array([np.nan, np.inf, -np.inf, 2.0**31, -(2.0**31), 3e38, -3e38, 0.0, -0.0, 1e-10, -1e-10], np.float32)


def build(texels, dimension, *, layered=False, border_color=None):
    return (LAYERED if layered else PLAIN)[dimension](texels, border_color=border_color)


def texels(sizes, channels=3, dtype=np.float32, layers=None, seed=0):
    rng = np.random.default_rng(seed)
    shape = (*([] if layers is None else [layers]), *sizes[::-1], channels)
    dtype = jnp.dtype(dtype)
    if jnp.issubdtype(dtype, jnp.integer):
        info = jnp.iinfo(dtype)
        array = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        array.flat[:2] = info.min, info.max
        return array
    return rng.normal(size=shape).astype(dtype)


def coordinates(sizes, normalized=True, dtype=np.float32, n=64, seed=1):
    """Samples in and around the texture, on exact texel edges and centers, and special ones, one axis at a time."""
    rng = np.random.default_rng(seed)
    middle = [0.5 * size for size in sizes]
    special = [np.repeat(m, len(SPECIALS) * len(sizes)) for m in middle]
    coords = []
    for axis, size in enumerate(sizes):
        lattice = rng.integers(-4 * size, 6 * size, n // 2) / 2
        anywhere = rng.uniform(-2 * size, 3 * size, n // 2)
        x = np.concatenate([lattice, anywhere, special[axis]]) / (size if normalized else 1)
        block = n + axis * len(SPECIALS)
        x[block : block + len(SPECIALS)] = SPECIALS
        coords.append(x.astype(dtype))
    return tuple(coords)


def layers_of(coords, layers):
    """A layer for each sample, in and out of range; `None` without layers."""
    return layers and np.random.default_rng(2).integers(-3, layers + 3, coords[0].shape, np.int32)


def read(filter_mode, modes, sizes, channels=3, *, stored=np.float32, layers=None, color=None, coords=None, **options):
    """A row of a table: options of a sampler, and the arrays of a read."""
    if coords is None:
        wide = np.float64 if stored == np.float64 else np.float32
        coords = coordinates(sizes, options.get("normalized_coords", True), wide)
    options |= {"filter_mode": filter_mode, "address_mode": modes}
    color = None if color is None else np.float32(color)
    return options, texels(sizes, channels, stored, layers), coords, layers_of(coords, layers), color


def sampling(options, array, coords, layer, color):
    def run(array, coords, layer, color):
        texture = build(array, len(coords), layered=layer is not None, border_color=color)
        return jt.sample(texture, coords, jt.Sampler(**options), layer=layer)

    return run, array, coords, layer, color


def assert_reads(*rows):
    """`sample` returns what the oracle does: bit for bit if one texel decides, else to the result's own precision."""
    for (options, array, coords, layer, color), found in zip(rows, computed(*(sampling(*row) for row in rows))):
        with named(options, "of", array.dtype, array.shape, "outside", color):
            how = {"border_color": color, "dtype": coords[0].dtype.type}
            expected = oracle.sample(array, coords, layer, **how, **options)
            result = np.float32 if options.get("read_mode") == "normalized_float" else array.dtype
            if options["filter_mode"] == "point":
                assert_exact(found, expected, result)
            else:
                assert found.dtype == result
                values = oracle.decode(array, options.get("read_mode")), oracle.border(color, array.shape[-1])
                assert_close(found.dtype.name, found, expected, max(np.abs(a).max() for a in values))


# Neighbors in the cycle of modes, so that every axis meets every mode.
CYCLE = {n: [tuple(MODES[(k + 2 * j) % len(MODES)] for j in range(n)) for k in range(len(MODES))] for n in (1, 2, 3)}
PIXEL, POINT = {"normalized_coords": False}, {"filter_mode": "point"}
# Reads of many taps are slow to compile, so there are few of more than one dimension.
ROWS = {
    1: [(f, m, {}) for f in FILTERS for m in CYCLE[1]],
    2: [*(("linear", m, {}) for m in CYCLE[2]), ("point", CYCLE[2][1], PIXEL), ("cubic", CYCLE[2][3], PIXEL)],
    3: [("point", ("wrap", "border", "clamp"), {}), ("linear", ("reflect", "mirror", "border"), PIXEL)],
}


@pytest.mark.parametrize("dimension", ROWS)
def test_every_dimension_filter_and_address_mode(dimension):
    assert_reads(*(read(f, m, SIZES[dimension], color=1.5, **options) for f, m, options in ROWS[dimension]))


def test_every_kind_of_texture():
    """Sizes smaller than the footprint, numbers of channels, kernels, border colors and layers, one or out of range."""
    outside = (0.5, -1.0, 2.0)
    assert_reads(
        *(read("cubic", m, (2,)) for m in MODES),
        *(read("linear", m, (1, 2)) for m in CYCLE[2][::2]),
        *(read("linear", "wrap", (7,), channels) for channels in (1, 5)),
        *(read("cubic", "mirror", (7,), cubic_coefficient=a) for a in (-0.75, 0.0)),
        *(read(f, "border", SIZES[n], color=outside) for n, f in ((1, "cubic"), (2, "point"))),
        *(read(f, "border", SIZES[n], color=1.5, layers=4) for n, f in ((1, "cubic"), (2, "linear"), (1, "point"))),
    )


FLOATS = ("float16", "bfloat16", "float32")
SMALL_INTEGERS = ("uint8", "int8", "uint16", "int16")


def test_every_storage_dtype():
    rows = (
        *((dtype, "element", f) for dtype in FLOATS for f in ("point", "linear")),
        ("bfloat16", "element", "cubic"),
        *((dtype, "element", "point") for dtype in (*SMALL_INTEGERS, "uint32", "int32")),
        *((dtype, "normalized_float", f) for dtype in SMALL_INTEGERS for f in ("point", "linear")),
    )
    assert_reads(*(read(f, "border", (7,), 4, stored=dtype, read_mode=mode) for dtype, mode, f in rows))
    with jax.enable_x64(True):
        assert_reads(*(read(f, "wrap", (7,), stored=np.float64) for f in FILTERS))


# Just within and just outside of what counts as a coordinate: 2^24 normalized, 2^30 texels.
FAR = np.array(
    [2.0**24 - 1, 2.0**24, -(2.0**24) + 1, -(2.0**24), 2.0**30 - 64, 2.0**30, 64 - 2.0**30, -(2.0**30), 1e9, -1e9],
    np.float32,
)


def test_coordinates_far_away():
    """Normalized positions of 2^30 texels are read as 0 by reflect, too."""
    rows = [*((mode, {}) for mode in ("clamp", "wrap", "mirror")), *((m, PIXEL) for m in ("wrap", "mirror", "reflect"))]
    far = (np.array([2.0**26, -(2.0**26), 2.0**28, -(2.0**28)], np.float32),)
    reads = [read("point", mode, (7,), coords=(FAR,), **options) for mode, options in rows]
    assert_reads(*reads, read("point", "reflect", (7,), coords=far))


def test_outside_a_read_is_the_border_color_to_the_last_bit():
    """Whatever the fraction is: the weights of the taps sum to one but for a rounding."""
    color = np.float32([0.1, 0.7, np.inf])
    x = np.random.default_rng(0).uniform(9, 99, 500).astype(np.float32)
    args = texels((5, 4), 3), (np.concatenate([x, -x]), np.concatenate([x, x % 4])), None, color
    filters = "linear", "cubic", "bspline", "lanczos3", "gaussian"
    rows = [sampling({"filter_mode": f, "address_mode": "border", **PIXEL}, *args) for f in filters]
    for name, found in zip(filters, computed(*rows)):
        with named(name):
            assert_exact(found, np.broadcast_to(color, (1000, 3)))


def border(options=PIXEL):
    return {**options, "address_mode": "border"}


FRACTION, CUBIC = {"read_mode": "normalized_float"}, {"filter_mode": "cubic"}
WRAP, MIRROR, REFLECT = ({"address_mode": mode} for mode in ("wrap", "mirror", "reflect"))
RAMP = np.array([10, 20, 30, 40], np.float32)
BYTE, GRID = np.uint8([255]), np.arange(24, dtype=np.float32).reshape(2, 3, 4)
BITS = np.array([1.0, -0.0, np.inf, np.nan, -np.inf, np.finfo(np.float32).max, 2.0], np.float32)


def at_centers(values):
    return {k + 0.5: value for k, value in enumerate(values)}


# Each: texels of one channel, options, and values at coordinates; or also the border color.
FACTS = {
    "a texel center is at +0.5": (RAMP, PIXEL, {2.5: 30, 0.5: 10, 3.5: 40}),
    "a texel edge is the mean of its neighbors": (RAMP, PIXEL, {2.0: 25, 1.0: 15, 3.0: 35}),
    "point is floor, under clamp": (RAMP, PIXEL | POINT, {1.999: 20, -0.001: 10, 4.0: 40}),
    "point is floor, not truncation": (RAMP, border(PIXEL | POINT), {-0.001: 0, 0.0: 10, 4.0: 0}),
    "wrap addresses both taps": (RAMP, WRAP, {0.0: 25, 1 / 16: 17.5, 1.0: 25, -0.125: 40}),
    "border is decided per texel": (RAMP, border(), {0.0: 5, 4.0: 20, 4.25: 10, 4.5: 0, -0.5: 0}),
    "mirror repeats the edge": (RAMP, MIRROR, {0.0: 10, -0.125: 10, -0.25: 15, 1.0: 40, 1.125: 40, 1.25: 35}),
    "mirror is decided on the texel": (RAMP, POINT | MIRROR, {-0.25: 10, -0.5: 20, 1.0: 40, 1.25: 30, 2.0: 10}),
    "reflect does not repeat the edge": (RAMP, PIXEL | REFLECT, {-0.5: 20, 0: 15, 0.5: 10, 3.5: 40, 4: 35, 4.5: 30}),
    "NaN acts as 0": (RAMP, PIXEL | WRAP, {np.nan: 25, 0.0: 25}),
    "cubic returns the texel at its center": (RAMP, CUBIC, {0.125: 10, 0.375: 20, 0.875: 40}),
    "cubic weighs -1 9 9 -1 sixteenths half-way": (RAMP, PIXEL | CUBIC, {1.0: 14.375, 2.0: 25, 3.0: 35.625}),
    "a table reaches both ends of its range": (RAMP, PIXEL, {3 * t + 0.5: 10 + 30 * t for t in np.linspace(0, 1, 7)}),
    "x is the column and y is the row": (GRID[0, :2, :2], PIXEL | POINT, {(1.5, 0.5): 1, (0.5, 1.5): 4}),
    "z is the slice": (GRID, PIXEL | POINT, {(3.5, 2.5, 0.5): 11, (0.5, 1.5, 1.5): 16}),
    "a border has units of the result": (BYTE, border(PIXEL | FRACTION), {-1: 0.25, 0: 0.625, 0.5: 1}, 0.25),
    "the border of integers is an integer": (np.int16([7]), border(POINT), {-0.5: -3, 0.5: 7, 1.5: -3}, -3),
    "a point read returns stored bits": (BITS, PIXEL | POINT, at_centers(BITS)),
    "stored bits inside of a border": (BITS, border(PIXEL | POINT), at_centers(BITS)),
}


def test_facts():
    calls = []
    for array, options, table, *color in FACTS.values():
        places = [place if isinstance(place, tuple) else (place,) for place in table]
        coords = tuple(np.array(places, np.float32).T)
        calls.append(sampling(options, array[..., None], coords, None, *(color or [None])))
    for (name, (array, options, table, *_)), found in zip(FACTS.items(), computed(*calls)):
        with named(name):
            expected = np.array([*table.values()])
            if options.get("filter_mode") == "point":
                assert_exact(found[:, 0], expected, np.float32 if "read_mode" in options else array.dtype)
            else:
                assert_close("float32", found[:, 0], expected, np.abs(expected).max())


def test_reads_of_the_largest_numbers_are_finite():
    """Weights of more than two taps sum to a little more than one, so their texels are a little smaller."""
    largest, coords = np.finfo(np.float32).max, np.random.default_rng(0).uniform(0, 1, (4, 20000)).astype(np.float32)
    chain = jt.build_mipmaps(jt.texture3d(np.full((9, 8, 7, 1), largest)))

    @jax.jit
    def found(chain, coords):
        *place, lod = coords
        linear = jt.sample(chain, tuple(place), jt.Sampler(mipmap_filter_mode="linear"), lod=2 * lod)
        image = jt.texture2d(chain.levels[0][0] * np.float32(1 - 1e-6))
        return [linear, jt.sample(image, tuple(place[:2]), jt.Sampler(filter_mode="bspline"))]

    for values in found(chain, tuple(coords)):
        assert_close("float32", values, np.full((20000, 1), largest), largest)


def test_a_NaN_texel_reaches_only_the_reads_and_channels_that_hold_it():
    image = np.ones((1, 6, 2), np.float32)
    image[0, 2, 0] = np.nan
    x = np.array([1.25, 1.75, 2.5, 3.25, 3.75], np.float32)
    (values,) = computed(sampling(PIXEL, image, (x, np.float32(0.5)), None, None))
    np.testing.assert_array_equal(np.isnan(values[:, 0]), [False, True, True, True, False])
    assert_exact(values[:, 1], np.ones(5), np.float32)


@pytest.mark.parametrize(
    ("x", "y", "shape"),
    [((), (), ()), ((5,), (), (5,)), ((4, 1), (3,), (4, 3)), ((0,), (), (0,)), ((2, 1, 3), (4, 1), (2, 4, 3))],
)
def test_coordinates_broadcast_and_channels_come_last(x, y, shape):
    coords = np.full(x, 0.5, np.float32), np.full(y, 0.5, np.float32)
    assert jax.eval_shape(jt.sample, jt.texture2d(texels((7, 5))), coords).shape == (*shape, 3)


def test_layers_indices_and_splats_broadcast():
    lines, image, values = texels((7,), layers=4), texels((7, 5)), texels((2, 2))
    at = np.float32([0.25, 0.75]), np.float32([[0.25], [0.75]])
    layers, fetched, spread = computed(
        (lambda t: jt.sample(jt.texture1d_layered(t), (np.zeros((5, 1), np.float32),), layer=np.arange(4)), lines),
        (lambda t: jt.fetch(jt.texture2d(t), (np.arange(7), np.arange(5)[:, None])), image),
        (lambda v: jt.splat(v, at, v.shape, jt.Sampler(**POINT)).texels, values),
    )
    assert_exact(layers, np.broadcast_to(lines[:, 0], (5, 4, 3)), np.float32)
    assert_exact(fetched, image, np.float32)
    assert_exact(spread, values, np.float32)


def test_the_cast_comes_after_the_sum():
    read = lambda texels: jt.sample(jt.texture1d(texels), (0.5,), dtype=jnp.float32)
    assert_exact(*computed((read, np.float16([[1.0], [1.0 + 2.0**-10]]))), [1.0 + 2.0**-11], np.float32)


def test_other_coordinates_become_float32():
    """16 bits are scaled in float32."""
    narrow, ramp = np.float16([0.1, 0.3, 0.7]), np.arange(3001, dtype=np.float32)[:, None]
    given = [*(np.array([0, 1, 2, 3], dtype) for dtype in (np.int32, np.uint8, np.float16, jnp.bfloat16)), narrow]
    reads = [(lambda t, x: jt.sample(jt.texture1d(t), (x,), jt.Sampler(**PIXEL)), RAMP[:, None], x) for x in given]
    scaled = (lambda t, x: jt.sample(jt.texture1d(t), (x,)), ramp, narrow)
    number = (lambda t: jt.sample(jt.texture1d(t), (2,), jt.Sampler(**PIXEL)), RAMP[:, None])
    *found, wide, of_number = computed(*reads, scaled, number)
    for x, values in zip([*given, 2], [*found, of_number]):
        expected = oracle.sample(RAMP[:, None], (np.float32(x),), normalized_coords=False)
        assert values.dtype == np.float32
        assert_close("float32", values, expected, 40.0)
    assert_close("float32", wide[:, 0], narrow.astype(np.float64) * 3001 - 0.5, 3001.0)


def test_float64_coordinates_keep_their_precision(x64):
    size, fraction = 2**20, 0.123456789
    ramp, x = np.zeros((size, 1), np.float32), np.float64(size - 1.5 + fraction)
    ramp[-1] = 1
    run = sampling(PIXEL, ramp, (x,), None, None)
    for found, dtype in zip(computed(run, (run[0], np.float64(ramp), *run[2:])), (np.float32, np.float64)):
        assert_exact(found, [x - (size - 1.5)], dtype)


def test_fetch_every_kind():
    """Texels by integers, and zero outside."""
    rng, rows = np.random.default_rng(3), []
    far = np.array([-1, 0, 3, 4, 2**31 - 1, -(2**31)], np.int32)
    for dimension, layers, dtype in (
        *((1, None, dtype) for dtype in ("float16", "bfloat16", "uint8", "int32")),
        *((dimension, None, "float32") for dimension in (2, 3)),
        *((dimension, 4, "int16") for dimension in (1, 2)),
    ):
        indices = tuple(rng.integers(-2, size + 2, 60, np.int32) for size in SIZES[dimension])
        rows.append((texels(SIZES[dimension], 3, dtype, layers), indices, layers_of(indices, layers)))

    def fetch(array, indices, layer):
        texture = build(array, len(indices), layered=layer is not None, border_color=9)
        return jt.fetch(texture, indices, layer=layer)

    *found, outside = computed(*((fetch, *row) for row in rows), (fetch, RAMP[:, None], (far,), None))
    for (array, indices, layer), values in zip(rows, found):
        with named(array.dtype, array.shape):
            assert_exact(values, oracle.fetch(array, indices, layer), array.dtype)
    assert_exact(outside[:, 0], [0, 10, 40, 0, 0, 0], np.float32)


def test_gather():
    """Of every address mode, component and read mode; and from below the left texel, round to the one above it."""
    tens = np.add.outer(10 * np.arange(3), np.arange(3)).astype(np.float32)[..., None]
    few = np.float32([0.3, 0.9, -0.1]), np.float32([0.2, 0.6, 1.2])
    rows = [(tens, (np.float32([1.0, 1.4375, 1.5]), np.float32(1)), PIXEL, 0, None)]
    for mode, options in (*((m, {}) for m in CYCLE[2]), (("wrap", "border"), PIXEL)):
        # On exact lattice points rounding may choose the neighboring footprint.
        coords = tuple(x[32:] for x in coordinates((7, 5), not options))
        rows.append((texels((7, 5), 4), coords, {"address_mode": mode} | options, 2, np.float32([1, 2, 3, 4])))
    rows += [(texels((7, 5), 5), few, {}, component, None) for component in (0, 4)]
    for dtype, mode in (("int32", "element"), ("float16", "element"), ("int8", "normalized_float")):
        rows.append((texels((7, 5), 2, dtype), few, {"read_mode": mode}, 1, None))

    def gathering(array, coords, options, component, color):
        sampler = jt.Sampler(**options, **POINT)
        gather = lambda a, coords, c: jt.gather(jt.texture2d(a, border_color=c), coords, sampler, component=component)
        return gather, array, coords, color

    results = computed(*(gathering(*row) for row in rows))
    for (array, coords, options, component, color), found in zip(rows, results):
        with named(array.dtype, options, component):
            expected = oracle.gather(array, coords, component=component, border_color=color, **options)
            assert_exact(found, expected, np.float32 if "normalized_float" in options.values() else array.dtype)
    assert_exact(results[0], [[10, 11, 1, 0], [10, 11, 1, 0], [11, 12, 2, 1]], np.float32)


SPLATS = [
    *((SIZES[2], None, "linear", m, {}) for m in CYCLE[2][::2]),
    *((SIZES[1], None, f, m, {}) for f, m in (("point", "mirror"), ("cubic", "border"))),
    ((1, 2), None, "linear", ("wrap", "border"), PIXEL),
    ((2,), None, "cubic", "reflect", {}),
    *((SIZES[d], None, "linear", "mirror", PIXEL) for d in (1, 3)),
    (SIZES[1], 4, "linear", "border", {}),
]


def test_splat():
    rows = []
    for sizes, layers, filter_mode, mode, options in SPLATS:
        coords = coordinates(sizes, not options)
        values = np.random.default_rng(4).normal(size=(*coords[0].shape, 2)).astype(np.float32)
        shape = (*([] if layers is None else [layers]), *sizes[::-1], 2)
        how = {"filter_mode": filter_mode, "address_mode": mode} | options
        rows.append((how, shape, values, coords, layers_of(coords, layers)))

    def splatting(how, shape, *arrays):
        return (lambda v, c, layer: jt.splat(v, c, shape, jt.Sampler(**how), layer=layer), *arrays)

    for (how, shape, values, coords, layer), texture in zip(rows, computed(*(splatting(*row) for row in rows))):
        with named(how, shape):
            assert type(texture) is jt.Texture
            assert texture.texels.dtype == np.float32
            expected, reach = (oracle.splat(v, coords, shape, layer, **how) for v in (values, np.abs(values)))
            assert_close("sum", texture.texels, expected, np.abs(reach).max())


def test_splat_drops_what_falls_on_the_border_and_sums_16_bits_in_float32():
    x = np.array([0.0, 2.25, 9.0], np.float32)
    onto = lambda sampler: lambda v, x: jt.splat(v, (x,), (2, 1), jt.Sampler(**sampler)).texels[:, 0]
    many = [(onto(POINT), np.ones((5000, 1), dtype), np.full(5000, 0.25, np.float32)) for dtype in FLOATS[:2]]
    found, *sums = computed((onto(border()), np.ones((3, 1), np.float32), x), *many)
    assert_close("float32", found, [0.5, 0.25], 1.0)
    for total, dtype in zip(sums, FLOATS):
        assert_exact(total, np.array([5000, 0], jnp.dtype(dtype)), jnp.dtype(dtype))


SRGB = {"srgb": True, "read_mode": "normalized_float"}
# A power in float32 is off by some units in its last place, its argument by half of one, which counts 2.4 times.
UNITS_IN_THE_LAST_PLACE = 2


def codes_of(*shape):
    return np.random.default_rng(0).integers(0, 255, shape, np.uint8, endpoint=True)


def test_every_code_of_srgb():
    """Colors are decoded: three of three or more channels, the first of one or two. Other channels are not."""
    sampler, every = jt.Sampler(filter_mode="point", **SRGB), np.arange(256, dtype=np.uint8)
    codes = {channels: np.repeat(every[:, None], channels, 1) for channels in range(1, 6)}
    centers = (every + np.float32(0.5)) / np.float32(256)
    read = lambda codes: {n: jt.sample(jt.texture1d(of), (centers,), sampler) for n, of in codes.items()}
    found = jax.jit(read)(codes)
    for channels, values in found.items():
        plain = 3 if channels >= 3 else 1
        assert_close("float32", values, oracle.decode(codes[channels], "normalized_float", srgb=True), 1.0)
        assert_exact(values[:, plain:], codes[channels][:, plain:] / 255, np.float32)
    values, c = np.asarray(found[1])[:, 0], every.astype(np.float64) / 255
    expected = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    error = np.abs(np.float64(values) - expected) / np.spacing(expected.astype(np.float32))
    assert error.max() <= UNITS_IN_THE_LAST_PLACE, f"code {error.argmax()} is off by {error.max():.2f} units"
    assert (np.diff(values) > 0).all()
    assert_exact(values[[0, 255]], [0.0, 1.0], np.float32)


def test_light_is_filtered_within_and_between_levels_and_a_border_is_light():
    levels = tuple(codes_of(*shape) for shape in oracle.chain_shapes((6, 5, 3), 2))
    rng = np.random.default_rng(1)
    coords, lod = tuple(rng.uniform(-1, 2, (2, 64)).astype(np.float32)), rng.uniform(0, 3, 64).astype(np.float32)
    options, border = {**SRGB, "mipmap_filter_mode": "linear", "address_mode": "border"}, np.float32(0.25)
    read = lambda levels, *args: jt.sample(jt.texture2d(levels, border_color=border), coords, *args, lod=lod)
    actual = jax.jit(lambda levels: read(levels, jt.Sampler(**options)))(levels)
    assert_close("float32", actual, oracle.sample(levels, coords, lod=lod, border_color=border, **options), 1.0)


def test_gather_returns_light():
    codes = codes_of(5, 6, 3)
    coords = tuple(np.random.default_rng(1).uniform(-1, 2, (2, 64)).astype(np.float32))
    actual = jt.gather(jt.texture2d(codes), coords, jt.Sampler(**SRGB), component=1)
    light = oracle.decode(codes, "normalized_float", srgb=True)
    assert_close("float32", actual, oracle.gather(light, coords, component=1), 1.0)
