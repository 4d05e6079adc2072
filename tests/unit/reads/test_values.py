"""What reads, fetches, gathers and splats return, against the oracle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.tolerances import assert_close, assert_exact

pytestmark = pytest.mark.compiled
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


def assert_reads(array, coords, layer=None, *, border_color=None, dtype=np.float32, **sampler):
    """`sample` returns what the oracle does: bit for bit if one texel decides, else to the result's own precision."""
    texture = build(array, len(coords), layered=layer is not None, border_color=border_color)
    actual = jt.sample(texture, coords, jt.Sampler(**sampler), layer=layer)
    expected = oracle.sample(array, coords, layer, border_color=border_color, dtype=dtype, **sampler)
    result = np.float32 if sampler.get("read_mode") == "normalized_float" else array.dtype
    if sampler["filter_mode"] == "point":
        assert_exact(actual, expected, result)
    else:
        assert actual.dtype == result
        around = oracle.border(border_color, array.shape[-1])
        scale = max(np.abs(oracle.decode(array, sampler.get("read_mode"))).max(), np.abs(around).max())
        assert_close(actual.dtype.name, actual, expected, scale)


# ---------------------------------------------------------------------------------------------------- sample


# Neighbors in the cycle of modes, so that every axis meets every mode. Each case compiles: of the cubic reads of a
# volume, with 64 taps the slowest to compile, there are two.
CYCLE = {n: [tuple(MODES[(k + 2 * j) % len(MODES)] for j in range(n)) for k in range(len(MODES))] for n in (1, 2, 3)}
COORDINATES = {"normalized": True, "pixel": False}
PRODUCT = [
    *((f, m, "normalized") for f in FILTERS for m in CYCLE[1]),
    *((f, m, "normalized") for f in FILTERS for m in CYCLE[2]),
    *(("linear", m, "pixel") for m in CYCLE[2]),
    *((f, m, "normalized") for f in ("point", "linear") for m in CYCLE[3]),
    ("linear", ("reflect", "mirror", "border"), "pixel"),
    ("cubic", ("wrap", "border", "reflect"), "pixel"),
    ("cubic", ("clamp", "mirror", "clamp"), "normalized"),
    ("linear", "wrap", "normalized"),
]


def name(parameter):
    return "-".join(parameter) if isinstance(parameter, tuple) else None


@pytest.mark.parametrize(("filter_mode", "modes", "units"), PRODUCT, ids=name)
def test_every_dimension_filter_and_address_mode(filter_mode, modes, units):
    sizes = SIZES[2 if isinstance(modes, str) else len(modes)]
    normalized = COORDINATES[units]
    assert_reads(
        texels(sizes),
        coordinates(sizes, normalized),
        border_color=np.float32(1.5),
        filter_mode=filter_mode,
        address_mode=modes,
        normalized_coords=normalized,
    )


@pytest.mark.parametrize("filter_mode", ["linear", "cubic", "bspline", "lanczos3", "gaussian"])
def test_outside_a_read_is_the_border_color_to_the_last_bit(filter_mode):
    """Whatever the fraction is: the weights of the taps sum to one but for a rounding."""
    color = np.float32([0.1, 0.7, np.inf])
    texture = jt.texture2d(texels((5, 4), 3), border_color=color)
    x = np.random.default_rng(0).uniform(9, 99, 500).astype(np.float32)
    sampler = jt.Sampler(filter_mode=filter_mode, address_mode="border", normalized_coords=False)
    found = jt.sample(texture, (np.concatenate([x, -x]), np.concatenate([x, x % 4])), sampler)
    assert_exact(found, np.broadcast_to(color, (1000, 3)))


@pytest.mark.parametrize(
    ("filter_mode", "modes"), [*(("linear", m) for m in CYCLE[2]), *(("cubic", m) for m in CYCLE[2][::2])], ids=name
)
def test_sizes_smaller_than_the_footprint(filter_mode, modes):
    assert_reads(texels((1, 2)), coordinates((1, 2)), filter_mode=filter_mode, address_mode=modes)


@pytest.mark.parametrize("channels", [1, 5])
def test_any_number_of_channels(channels):
    assert_reads(texels((7, 5), channels), coordinates((7, 5)), filter_mode="linear", address_mode="wrap")


@pytest.mark.parametrize("coefficient", [-0.75, 0.0])
def test_the_cubic_coefficient_chooses_the_kernel(coefficient):
    assert_reads(
        texels((7,)),
        coordinates((7,)),
        filter_mode="cubic",
        address_mode="mirror",
        cubic_coefficient=coefficient,
    )


@pytest.mark.parametrize("color", [None, (0.5, -1.0, 2.0)], ids=["none", "per channel"])
@pytest.mark.parametrize(("dimension", "filter_mode"), [(1, "cubic"), (2, "point"), (3, "linear")])
def test_border_color(dimension, filter_mode, color):
    sizes = SIZES[dimension]
    assert_reads(
        texels(sizes),
        coordinates(sizes),
        filter_mode=filter_mode,
        address_mode="border",
        border_color=color and np.float32(color),
    )


@pytest.mark.parametrize("filter_mode", FILTERS)
@pytest.mark.parametrize("dimension", [1, 2])
def test_layers_are_read_one_by_one_and_out_of_range_is_the_last(dimension, filter_mode):
    sizes = SIZES[dimension]
    coords = coordinates(sizes)
    layer = np.random.default_rng(2).integers(-3, 7, coords[0].shape, np.int32)
    assert_reads(
        texels(sizes, layers=4),
        coords,
        layer,
        filter_mode=filter_mode,
        address_mode="border",
        border_color=np.float32(1.5),
    )


FLOATS = ("float16", "bfloat16", "float32")
SMALL_INTEGERS = ("uint8", "int8", "uint16", "int16")
READS = [
    *((dtype, "element", f) for dtype in FLOATS for f in ("point", "linear")),
    ("bfloat16", "element", "cubic"),
    *((dtype, "element", "point") for dtype in (*SMALL_INTEGERS, "uint32", "int32")),
    *((dtype, "normalized_float", f) for dtype in SMALL_INTEGERS for f in ("point", "linear")),
]


@pytest.mark.parametrize(("dtype", "read_mode", "filter_mode"), READS)
def test_every_storage_dtype(dtype, read_mode, filter_mode):
    assert_reads(
        texels((7,), 4, dtype),
        coordinates((7,)),
        filter_mode=filter_mode,
        read_mode=read_mode,
        address_mode="border",
    )


@pytest.mark.parametrize("filter_mode", FILTERS)
def test_float64(filter_mode):
    with jax.enable_x64(True):
        coords = coordinates((7, 5), dtype=np.float64)
        assert_reads(
            texels((7, 5), dtype=np.float64),
            coords,
            filter_mode=filter_mode,
            address_mode=("wrap", "clamp"),
            dtype=np.float64,
        )


# Just within and just outside of what counts as a coordinate: 2^24 normalized, 2^30 texels.
FAR = np.array(
    [2.0**24 - 1, 2.0**24, -(2.0**24) + 1, -(2.0**24), 2.0**30 - 64, 2.0**30, 64 - 2.0**30, -(2.0**30), 1e9, -1e9],
    np.float32,
)


@pytest.mark.parametrize(
    ("mode", "normalized"),
    [("clamp", True), ("wrap", True), ("mirror", True), ("wrap", False), ("mirror", False), ("reflect", False)],
)
def test_coordinates_far_away(mode, normalized):
    assert_reads(texels((7,)), (FAR,), filter_mode="point", address_mode=mode, normalized_coords=normalized)


def test_reflect_reads_normalized_positions_of_two_to_the_thirty_as_zero():
    coords = (np.array([2.0**26, -(2.0**26), 2.0**28, -(2.0**28)], np.float32),)
    assert_reads(texels((7,)), coords, filter_mode="point", address_mode="reflect")


# ------------------------------------------------------------------------------------ facts, one texture [10 20 30 40]

PIXEL = {"normalized_coords": False}
POINT = {"filter_mode": "point"}
RAMP = np.array([[10], [20], [30], [40]], np.float32)
FACTS = {
    "a texel center is at +0.5": (PIXEL, {2.5: 30, 0.5: 10, 3.5: 40}),
    "a texel edge is the mean of its neighbors": (PIXEL, {2.0: 25, 1.0: 15, 3.0: 35}),
    "point is floor, under clamp": (PIXEL | POINT | {"address_mode": "clamp"}, {1.999: 20, -0.001: 10, 4.0: 40}),
    "point is floor, not truncation": (PIXEL | POINT | {"address_mode": "border"}, {-0.001: 0, 0.0: 10, 4.0: 0}),
    "wrap addresses both taps": ({"address_mode": "wrap"}, {0.0: 25, 1 / 16: 17.5, 1.0: 25, -0.125: 40}),
    "border is decided per texel": (
        PIXEL | {"address_mode": "border"},
        {0.0: 5, 4.0: 20, 4.25: 10, 4.5: 0, -0.5: 0},
    ),
    "mirror repeats the edge": (
        {"address_mode": "mirror"},
        {0.0: 10, -0.125: 10, -0.25: 15, 1.0: 40, 1.125: 40, 1.25: 35},
    ),
    "mirror is decided on the texel, not on the coordinate": (
        POINT | {"address_mode": "mirror"},
        {-0.25: 10, -0.5: 20, 1.0: 40, 1.25: 30, 2.0: 10},
    ),
    "reflect does not repeat the edge": (
        PIXEL | {"address_mode": "reflect"},
        {-0.5: 20, 0.0: 15, 0.5: 10, 3.5: 40, 4.0: 35, 4.5: 30, 6.5: 10},
    ),
    "a tiny negative coordinate wraps to the last texel": (POINT | {"address_mode": "wrap"}, {-1e-10: 40, 1.1: 10}),
    "wrap works in pixel coordinates": (PIXEL | POINT | {"address_mode": "wrap"}, {5.0: 20, -1.0: 40}),
    "mirror works in pixel coordinates": (PIXEL | POINT | {"address_mode": "mirror"}, {5.0: 30, -2.0: 20}),
    "NaN acts as 0": (PIXEL | {"address_mode": "wrap"}, {np.nan: 25, 0.0: 25}),
    "infinities saturate under clamp": (PIXEL, {np.inf: 40, -np.inf: 10, 1e30: 40}),
    "infinities read the border": (PIXEL | {"address_mode": "border"}, {np.inf: 0, -np.inf: 0, 1e30: 0}),
    "infinities act as 0 where the texture repeats": ({"address_mode": "mirror"}, {np.inf: 10, -np.inf: 10, 1e30: 10}),
    "cubic returns the texel at its center": ({"filter_mode": "cubic"}, {0.125: 10, 0.375: 20, 0.875: 40}),
    "cubic weighs -1 9 9 -1 sixteenths half-way": (
        PIXEL | {"filter_mode": "cubic"},
        {1.0: 14.375, 2.0: 25, 3.0: 35.625},
    ),
}


@pytest.mark.parametrize("fact", FACTS)
def test_fact(fact):
    sampler, table = FACTS[fact]
    values = jt.sample(jt.texture1d(RAMP), (np.array([*table], np.float32),), jt.Sampler(**sampler))
    assert_close("float32", values[:, 0], [*table.values()], 40.0)


def test_the_fraction_is_not_rounded_to_8_bits():
    texture = jt.texture1d(np.array([[1], [2]], np.float32))
    assert_close("float32", jt.sample(texture, (np.float32(0.3),)), [1.1], 2.0)


def test_table_lookup_reaches_both_ends_of_its_range():
    rows = np.linspace(0, 1, 7, dtype=np.float32)
    values = jt.sample(jt.texture1d(RAMP), (3 * rows + np.float32(0.5),), jt.Sampler(normalized_coords=False))
    assert_close("float32", values[:, 0], 10 + 30 * rows, 40.0)


@pytest.mark.parametrize("mode", ["wrap", "mirror", "clamp"])
def test_address_table_of_four_texels(mode):
    table = {
        "wrap": "1230123012301230123",
        "mirror": "1233210012332100123",
        "clamp": "0000000012333333333",
    }
    texture = jt.texture1d(np.arange(4, dtype=np.float32)[:, None])
    x = np.arange(-7, 12, dtype=np.float32) / 4
    values = jt.sample(texture, (x,), jt.Sampler(address_mode=mode, filter_mode="point"))
    assert "".join(str(int(v)) for v in values[:, 0]) == table[mode]


def test_x_is_the_column_and_y_is_the_row():
    sampler = jt.Sampler(filter_mode="point", normalized_coords=False)
    image = np.array([[[0], [1]], [[2], [3]]], np.float32)
    assert jt.sample(jt.texture2d(image), (1.5, 0.5), sampler) == 1
    volume = np.arange(24, dtype=np.float32).reshape(2, 3, 4, 1)
    assert jt.sample(jt.texture3d(volume), (3.5, 2.5, 0.5), sampler) == volume[0, 2, 3]


@pytest.mark.parametrize(
    ("dtype", "codes", "values"),
    [
        ("uint8", (0, 128, 255), (0.0, 128 / 255, 1.0)),
        ("int8", (-128, -127, 0, 127), (-1.0, -1.0, 0.0, 1.0)),
        ("uint16", (0, 32768, 65535), (0.0, 32768 / 65535, 1.0)),
        ("int16", (-32768, -32767, 0, 32767), (-1.0, -1.0, 0.0, 1.0)),
    ],
)
def test_normalized_integers_span_their_range(dtype, codes, values):
    texture = jt.texture1d(np.array(codes, dtype)[:, None])
    x = np.arange(len(codes), dtype=np.float32) + np.float32(0.5)
    sampler = jt.Sampler(filter_mode="point", read_mode="normalized_float", normalized_coords=False)
    assert_exact(jt.sample(texture, (x,), sampler)[:, 0], np.array(values), np.float32)


def test_normalized_integers_are_decoded_before_they_are_filtered():
    sampler = jt.Sampler(read_mode="normalized_float")
    byte = jt.texture1d(np.array([[0], [255]], np.uint8))
    short = jt.texture1d(np.array([[11], [12]], np.uint16))
    assert_close("float32", jt.sample(byte, (0.5,), sampler), [0.5], 1.0)
    assert_close("float32", jt.sample(short, (0.5,), sampler), [11.5 / 65535], 12 / 65535)


def test_the_border_of_a_normalized_read_is_in_units_of_the_result():
    texture = jt.texture1d(np.array([[255]], np.uint8), border_color=0.25)
    sampler = jt.Sampler(address_mode="border", read_mode="normalized_float", normalized_coords=False)
    values = jt.sample(texture, (np.array([-1.0, 0.0, 0.5], np.float32),), sampler)
    assert_close("float32", values[:, 0], [0.25, 0.625, 1.0], 1.0)


def test_the_border_of_an_integer_read_is_an_integer():
    texture = jt.texture1d(np.array([[7]], np.int16), border_color=-3)
    sampler = jt.Sampler(address_mode="border", filter_mode="point")
    assert_exact(jt.sample(texture, (np.array([-0.5, 0.5, 1.5], np.float32),), sampler)[:, 0], [-3, 7, -3], np.int16)


def test_a_point_read_returns_stored_bits():
    stored = np.array([[1.0], [-0.0], [np.inf], [np.nan], [-np.inf], [np.finfo(np.float32).max], [2.0]], np.float32)
    x = (np.arange(7, dtype=np.float32) + np.float32(0.5)) / 7
    for mode in ("clamp", "border"):
        values = jt.sample(jt.texture1d(stored), (x,), jt.Sampler(filter_mode="point", address_mode=mode))
        assert_exact(values, stored, np.float32)


@pytest.mark.compiled
def test_reads_of_the_largest_numbers_are_finite():
    """Weights of more than two taps sum to a little more than one, so their texels are a little smaller."""
    largest, coords = np.finfo(np.float32).max, np.random.default_rng(0).uniform(0, 1, (4, 20000)).astype(np.float32)
    chain = jt.build_mipmaps(jt.texture3d(np.full((9, 8, 7, 1), largest)))

    @jax.jit
    def found(chain, coords):
        *place, lod = coords
        linear = jt.sample(chain, tuple(place), jt.Sampler(mipmap_filter_mode="linear"), lod=2 * lod)
        image = jt.texture2d(chain.levels[0][0] * np.float32(1 - 1e-6))
        return [
            linear,
            *(jt.sample(image, tuple(place[:2]), jt.Sampler(filter_mode=f)) for f in ("bspline", "gaussian")),
        ]

    for values in found(chain, tuple(coords)):
        assert_close("float32", values, np.full((20000, 1), largest), largest)


def test_large_integers_are_read_exactly():
    stored = np.array([[2**31 - 1], [-(2**31)], [2**24 + 1]], np.int32)
    x = np.arange(3, dtype=np.float32) + np.float32(0.5)
    values = jt.sample(jt.texture1d(stored), (x,), jt.Sampler(filter_mode="point", normalized_coords=False))
    assert_exact(values, stored, np.int32)


def test_a_NaN_texel_reaches_only_the_reads_and_channels_that_hold_it():
    image = np.ones((1, 6, 2), np.float32)
    image[0, 2, 0] = np.nan
    x = np.array([1.25, 1.75, 2.5, 3.25, 3.75], np.float32)
    values = jt.sample(jt.texture2d(image), (x, 0.5), jt.Sampler(normalized_coords=False))
    np.testing.assert_array_equal(np.isnan(values[:, 0]), [False, True, True, True, False])
    assert_exact(values[:, 1], np.ones(5), np.float32)


# -------------------------------------------------------------------------------------------- shapes and dtypes


@pytest.mark.parametrize(
    ("x", "y", "shape"),
    [((), (), ()), ((5,), (), (5,)), ((4, 1), (3,), (4, 3)), ((0,), (), (0,)), ((2, 1, 3), (4, 1), (2, 4, 3))],
)
def test_coordinates_broadcast_and_channels_come_last(x, y, shape):
    coords = np.full(x, 0.5, np.float32), np.full(y, 0.5, np.float32)
    assert jt.sample(jt.texture2d(texels((7, 5))), coords).shape == (*shape, 3)


def test_the_layer_broadcasts_with_the_coordinates():
    texture = jt.texture1d_layered(texels((7,), layers=4))
    values = jt.sample(texture, (np.zeros((5, 1), np.float32),), layer=np.arange(4))
    assert_exact(values, np.broadcast_to(texture.texels[:, 0], (5, 4, 3)), np.float32)


@pytest.mark.parametrize(
    ("stored", "read_mode", "filter_mode", "dtype", "expected"),
    [
        *((dtype, "element", "linear", None, dtype) for dtype in FLOATS),
        *((dtype, "element", "point", None, dtype) for dtype in ("uint8", "int16", "uint32")),
        ("uint8", "normalized_float", "linear", None, "float32"),
        ("int16", "normalized_float", "point", None, "float32"),
        ("float16", "element", "linear", jnp.float32, "float32"),
        ("float32", "element", "linear", jnp.bfloat16, "bfloat16"),
        ("uint8", "normalized_float", "linear", jnp.float16, "float16"),
        ("uint8", "element", "point", jnp.int32, "int32"),
        ("int32", "element", "point", jnp.float32, "float32"),
    ],
)
def test_the_result_dtype(stored, read_mode, filter_mode, dtype, expected):
    texture = jt.texture1d(texels((7,), 2, stored))
    sampler = jt.Sampler(read_mode=read_mode, filter_mode=filter_mode)
    assert jt.sample(texture, (np.float32([0.3]),), sampler, dtype=dtype).dtype == jnp.dtype(expected)


def test_the_cast_comes_after_the_sum():
    texture = jt.texture1d(np.array([[1.0], [1.0 + 2.0**-10]], np.float16))
    assert_exact(jt.sample(texture, (0.5,), dtype=jnp.float32), [1.0 + 2.0**-11], np.float32)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float16, jnp.bfloat16, int])
def test_other_coordinates_become_float32(dtype):
    x = np.array([0, 1, 2, 3], dtype) if dtype is not int else 2
    values = jt.sample(jt.texture1d(RAMP), (x,), jt.Sampler(normalized_coords=False))
    assert values.dtype == np.float32
    expected = oracle.sample(RAMP, (np.float32(x),), normalized_coords=False)
    assert_exact(values, expected, np.float32)


def test_16_bit_coordinates_are_scaled_in_float32():
    ramp = np.arange(3001, dtype=np.float32)[:, None]
    x = np.float16([0.1, 0.3, 0.7])
    values = jt.sample(jt.texture1d(ramp), (x,))
    assert_close("float32", values[:, 0], x.astype(np.float64) * 3001 - 0.5, 3001.0)


def test_float64_coordinates_keep_their_precision():
    size, fraction = 2**20, 0.123456789
    ramp = np.zeros((size, 1), np.float32)
    ramp[-1] = 1
    with jax.enable_x64(True):
        x = np.float64(size - 1.5 + fraction)
        single = jt.sample(jt.texture1d(ramp), (x,), jt.Sampler(normalized_coords=False))
        assert single.dtype == np.float32
        double = jt.sample(jt.texture1d(ramp.astype(np.float64)), (x,), jt.Sampler(normalized_coords=False))
        assert double.dtype == np.float64
    assert_exact(single, [x - (size - 1.5)], np.float32)
    assert_exact(double, [x - (size - 1.5)], np.float64)


# ----------------------------------------------------------------------------------------------------- fetch


def test_fetch_outside_is_zero():
    values = jt.fetch(jt.texture1d(RAMP), (np.array([-1, 0, 3, 4, 2**31 - 1, -(2**31)], np.int32),))
    assert_exact(values[:, 0], [0, 10, 40, 0, 0, 0], np.float32)


FETCHES = [
    *((1, None, dtype) for dtype in ("float16", "bfloat16", "uint8", "int32")),
    *((dimension, None, "float32") for dimension in (2, 3)),
    *((dimension, 4, "int16") for dimension in (1, 2)),
]


@pytest.mark.parametrize(("dimension", "layers", "dtype"), FETCHES)
def test_fetch_every_kind(dimension, layers, dtype):
    sizes = SIZES[dimension]
    array = texels(sizes, 3, dtype, layers)
    rng = np.random.default_rng(3)
    indices = tuple(rng.integers(-2, size + 2, 60, np.int32) for size in sizes)
    layer = None if layers is None else rng.integers(-1, layers + 2, 60, np.int32)
    texture = build(array, dimension, layered=layers is not None, border_color=9)
    assert_exact(jt.fetch(texture, indices, layer=layer), oracle.fetch(array, indices, layer), array.dtype)


def test_fetch_indices_broadcast():
    texture = jt.texture2d(texels((7, 5)))
    rows, columns = np.arange(5)[:, None], np.arange(7)
    assert_exact(jt.fetch(texture, (columns, rows)), texture.texels, np.float32)


# ---------------------------------------------------------------------------------------------------- gather

TENS = np.add.outer(10 * np.arange(3), np.arange(3)).astype(np.float32)[..., None]


def test_gather_starts_below_the_left_texel_and_goes_round():
    assert_exact(
        jt.gather(jt.texture2d(TENS), (1.0, 1.0), jt.Sampler(normalized_coords=False)), [10, 11, 1, 0], np.float32
    )


def test_gather_moves_to_the_next_texels_at_a_center():
    sampler = jt.Sampler(normalized_coords=False)
    corners = jt.gather(jt.texture2d(TENS), (np.array([1.4375, 1.5], np.float32), 1.0), sampler)
    assert_exact(corners, [[10, 11, 1, 0], [11, 12, 2, 1]], np.float32)


@pytest.mark.parametrize(("mode", "normalized"), [*((m, True) for m in CYCLE[2]), (("wrap", "border"), False)])
def test_gather_every_address_mode(mode, normalized):
    array = texels((7, 5), 4)
    coords = coordinates((7, 5), normalized)
    keep = slice(32, None)  # on exact lattice points rounding may choose the neighboring footprint
    coords = tuple(x[keep] for x in coords)
    options = {"address_mode": mode, "normalized_coords": normalized}
    color = np.float32([1, 2, 3, 4])
    actual = jt.gather(jt.texture2d(array, border_color=color), coords, jt.Sampler(**options), component=2)
    assert_exact(actual, oracle.gather(array, coords, component=2, border_color=color, **options), np.float32)


@pytest.mark.parametrize("component", [0, 4])
def test_gather_any_component(component):
    array = texels((7, 5), 5)
    coords = np.float32([0.3, 0.9]), np.float32([0.2, 0.6])
    actual = jt.gather(jt.texture2d(array), coords, component=component)
    assert_exact(actual, oracle.gather(array, coords, component=component), np.float32)


@pytest.mark.parametrize(
    ("dtype", "read_mode", "result"),
    [("int32", "element", "int32"), ("float16", "element", "float16"), ("int8", "normalized_float", "float32")],
)
def test_gather_returns_texels_as_the_read_mode_says(dtype, read_mode, result):
    array = texels((7, 5), 2, dtype)
    coords = np.float32([0.3, 0.9, -0.1]), np.float32([0.2, 0.6, 1.2])
    sampler = jt.Sampler(filter_mode="point", read_mode=read_mode)
    actual = jt.gather(jt.texture2d(array), coords, sampler, component=1)
    assert_exact(actual, oracle.gather(array, coords, component=1, read_mode=read_mode), jnp.dtype(result))


# ----------------------------------------------------------------------------------------------------- splat

SPLATS = [
    *((SIZES[2], None, "linear", m, True) for m in CYCLE[2]),
    *((SIZES[1], None, f, m, True) for f, m in (("point", "border"), ("point", "mirror"), ("cubic", "border"))),
    ((1, 2), None, "linear", ("wrap", "border"), False),
    ((1, 2), None, "cubic", "reflect", True),
    *((SIZES[d], None, "linear", "mirror", False) for d in (1, 3)),
    *((SIZES[d], 4, "linear", "border", True) for d in (1, 2)),
]


@pytest.mark.parametrize(("sizes", "layers", "filter_mode", "mode", "normalized"), SPLATS)
def test_splat(sizes, layers, filter_mode, mode, normalized):
    rng = np.random.default_rng(4)
    coords = coordinates(sizes, normalized)
    layer = None if layers is None else rng.integers(-1, layers + 2, coords[0].shape, np.int32)
    values = rng.normal(size=(*coords[0].shape, 2)).astype(np.float32)
    shape = (*([] if layers is None else [layers]), *sizes[::-1], 2)
    options = {"filter_mode": filter_mode, "address_mode": mode, "normalized_coords": normalized}
    texture = jt.splat(values, coords, shape, jt.Sampler(**options), layer=layer)
    assert type(texture) is jt.Texture
    assert texture.texels.dtype == np.float32
    expected = oracle.splat(values, coords, shape, layer, **options)
    reach = oracle.splat(np.abs(values), coords, shape, layer, **options)
    assert_close("sum", texture.texels, expected, np.abs(reach).max())


def test_splat_drops_what_falls_on_the_border():
    sampler = jt.Sampler(address_mode="border", normalized_coords=False)
    texture = jt.splat(np.ones((3, 1), np.float32), (np.array([0.0, 2.25, 9.0], np.float32),), (2, 1), sampler)
    assert_close("float32", texture.texels[:, 0], [0.5, 0.25], 1.0)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_splat_into_16_bits_accumulates_in_float32(dtype):
    values = np.ones((5000, 1), dtype)
    texture = jt.splat(values, (np.full(5000, 0.25, np.float32),), (2, 1), jt.Sampler(filter_mode="point"))
    assert_exact(texture.texels[:, 0], np.array([5000, 0], dtype), dtype)


def test_splat_values_broadcast_over_coordinates():
    values = np.float32([1.0, 2.0])
    coords = np.float32([[0.25], [0.75]]), np.float32([0.25, 0.75])
    texture = jt.splat(np.broadcast_to(values, (2, 2, 2)), coords, (2, 2, 2), jt.Sampler(filter_mode="point"))
    assert_exact(texture.texels, np.broadcast_to(values, (2, 2, 2)), np.float32)
