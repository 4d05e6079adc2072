"""Chains of mip levels: which levels a read takes, how it blends them, how they are built, and every derivative."""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.describe.axis import Axis, Role
from jaxtex._engine.walk import texel_order
from jaxtex._tables.address_rules import CLAMP
from jaxtex._tables.filter_kernels import LEVEL_BLEND, filter_kernel
from tests.oracles import reads as oracle
from tests.support.drawn import floats, given, integers, tuples
from tests.support.tolerances import TOLERANCES, assert_close, assert_exact, assert_trees_close

SIZES = {1: (11,), 2: (7, 10), 3: (5, 3, 8)}  # x, y, z
LARGEST = 8.0
POINT, LINEAR = {"mipmap_filter_mode": "point"}, {"mipmap_filter_mode": "linear"}
INF, NAN = np.inf, np.nan
FLAT = np.float32([0.0, 1.0, 2.0, 3.0])  # the texels of level l are l, so that a blend reads as its level of detail


def dimension(kind):
    return int(kind[0])


def build(kind, levels, border_color=None):
    return getattr(jt, f"texture{kind}")(levels, border_color=border_color)


def draw_levels(kind, sizes=None, channels=2, dtype=np.float32, seed=0):
    """A whole chain whose levels have nothing to do with each other, so that a read shows which of them it took."""
    rng = np.random.default_rng(seed)
    layers = (3,) if "layered" in kind else ()
    shape = (*layers, *(sizes or SIZES[dimension(kind)])[::-1], channels)
    shapes = oracle.chain_shapes(shape, dimension(kind))
    if np.issubdtype(dtype, np.integer):
        return tuple(rng.integers(0, np.iinfo(dtype).max, s, dtype, endpoint=True) for s in shapes)
    return tuple(rng.normal(size=s).astype(dtype) for s in shapes)


def draw_coords(count, n=64, seed=1):
    rng = np.random.default_rng(seed)
    return tuple(rng.uniform(-1, 2, n).astype(np.float32) for _ in range(count))


def with_special_coords(coords):
    """The last samples hold NaN, infinity or a far place in one coordinate after the other."""
    special = np.float32([NAN, INF, -INF, 3e38, -3e38, 0.0])
    for axis, x in enumerate(coords):
        x[len(x) - (axis + 1) * len(special) :][: len(special)] = special
    return coords


def draw_layer(kind, n=64):
    return np.random.default_rng(2).integers(-1, 5, n, np.int32) if "layered" in kind else None


def draw_footprints(count, n=64, seed=3):
    """Ellipses from a small part of a texel to more than the texture, long and round ones."""
    rng = np.random.default_rng(seed)
    return tuple(
        tuple((rng.normal(size=n) * 2.0 ** rng.uniform(-6, 0.5, n)).astype(np.float32) for _ in range(count))
        for _ in range(2)
    )


def assert_reads(kind, levels, coords, layer=None, *, border_color=None, lod=None, ddx=None, ddy=None, **options):
    texture = build(kind, levels, border_color)
    given = {"layer": layer, "lod": lod, "ddx": ddx, "ddy": ddy}
    actual = jt.sample(texture, coords, jt.Sampler(**options), **given)
    expected = oracle.sample(levels, coords, border_color=border_color, dtype=coords[0].dtype.type, **given, **options)
    read_mode = options.get("read_mode", "element")
    dtype = np.dtype(np.float32) if read_mode == "normalized_float" else levels[0].dtype
    points = options.get("filter_mode") == "point" and options.get("mipmap_filter_mode", "point") == "point"
    if points and ddx is None:
        assert_exact(actual, expected, dtype)
    else:
        assert actual.dtype == dtype
        around = oracle.border(border_color, levels[0].shape[-1])
        scale = max(np.abs(oracle.decode(level, read_mode)).max() for level in levels)
        assert_close(dtype.name, actual, expected, max(scale, np.abs(around).max()))


def name(parameter):
    return "-".join(map(str, parameter)) if isinstance(parameter, tuple) else None


# ---------------------------------------------------------------------------------------------- values of a read

SPECIAL_LODS = np.array([np.nan, np.inf, -np.inf, -3, 99, 0, -0.0, 1, 2, 3, 0.25, 1.75, 3e38], np.float32)

READS = [
    # kind, filter, filter between levels, address modes
    ("1d", "cubic", "linear", "border"),
    ("1d", "point", "linear", "wrap"),
    ("2d", "point", "point", ("wrap", "border")),
    ("2d", "linear", "point", ("mirror", "clamp")),
    ("2d", "linear", "linear", ("border", "wrap")),
    ("2d", "cubic", "linear", ("reflect", "border")),
    ("3d", "point", "point", "clamp"),
    ("3d", "linear", "linear", ("wrap", "border", "mirror")),
    ("1d_layered", "linear", "linear", "clamp"),
    ("2d_layered", "linear", "linear", "border"),
    ("2d_layered", "cubic", "point", "wrap"),
]


@pytest.mark.parametrize(("kind", "filter_mode", "mipmap_filter_mode", "modes"), READS, ids=name)
def test_every_kind_and_filter_at_a_level_of_detail(kind, filter_mode, mipmap_filter_mode, modes):
    levels = draw_levels(kind)
    lod = np.random.default_rng(4).uniform(-1, len(levels), 64).astype(np.float32)
    lod[: len(SPECIAL_LODS)] = SPECIAL_LODS
    assert_reads(
        kind,
        levels,
        with_special_coords(draw_coords(dimension(kind))),
        draw_layer(kind),
        lod=lod,
        border_color=np.float32([1.5, -2.0]),
        filter_mode=filter_mode,
        mipmap_filter_mode=mipmap_filter_mode,
        address_mode=modes,
    )


FOOTPRINTS = [
    # kind, filter, filter between levels, address modes, anisotropy
    ("1d", "linear", "linear", "wrap", 1),
    ("1d", "linear", "linear", "border", 16),
    ("2d", "linear", "linear", ("border", "mirror"), 1),
    ("2d", "linear", "linear", ("border", "mirror"), 3),
    ("2d", "point", "point", "wrap", 1),
    ("2d", "cubic", "linear", "clamp", 2),
    ("3d", "linear", "linear", "clamp", 1),
    ("3d", "linear", "point", ("wrap", "border", "clamp"), 2),
    ("2d_layered", "linear", "linear", "reflect", 4),
]


@pytest.mark.parametrize(("kind", "filter_mode", "mipmap_filter_mode", "modes", "anisotropy"), FOOTPRINTS, ids=name)
def test_every_kind_and_filter_with_a_footprint(kind, filter_mode, mipmap_filter_mode, modes, anisotropy):
    count = dimension(kind)
    ddx, ddy = draw_footprints(count)
    assert_reads(
        kind,
        draw_levels(kind),
        draw_coords(count),
        draw_layer(kind),
        ddx=ddx,
        ddy=ddy,
        border_color=np.float32(1.5),
        filter_mode=filter_mode,
        mipmap_filter_mode=mipmap_filter_mode,
        address_mode=modes,
        max_anisotropy=anisotropy,
    )


@pytest.mark.parametrize("sizes", [(1,), (2,), (5, 1), (1, 2), (2, 2)])
def test_sizes_smaller_than_the_footprint(sizes):
    kind = f"{len(sizes)}d"
    lod = np.random.default_rng(4).uniform(-1, 3, 64).astype(np.float32)
    options = {"address_mode": "wrap", "mipmap_filter_mode": "linear"}
    assert_reads(kind, draw_levels(kind, sizes), draw_coords(len(sizes)), lod=lod, **options)


@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        (np.float16, {"mipmap_filter_mode": "linear"}),
        (np.uint8, {"mipmap_filter_mode": "linear", "read_mode": "normalized_float"}),
        (np.int32, {"filter_mode": "point"}),
    ],
)
def test_storage_dtypes(dtype, options):
    lod = np.random.default_rng(4).uniform(-1, 4, 64).astype(np.float32)
    assert_reads("1d", draw_levels("1d", dtype=dtype), draw_coords(1), lod=lod, **options)


@pytest.mark.usefixtures("x64")
def test_float64():
    lod = np.random.default_rng(4).uniform(-1, 4, 64)
    coords = tuple(x.astype(np.float64) for x in draw_coords(2))
    levels = draw_levels("2d", dtype=np.float64)
    assert_reads("2d", levels, coords, lod=lod, mipmap_filter_mode="linear")


def test_anisotropy_in_pixel_coordinates_reads_along_the_footprint():
    levels = draw_levels("2d")[:1]
    coords = tuple(x * np.float32(7) for x in draw_coords(2))
    ddx, ddy = (tuple(d * np.float32(4) for d in dd) for dd in draw_footprints(2))
    assert_reads("2d", levels, coords, ddx=ddx, ddy=ddy, max_anisotropy=4, normalized_coords=False)


def test_the_taps_of_a_long_footprint_lie_symmetrically_inside_it():
    """A footprint of 4 texels by none, anisotropy 2: level 1, two taps, a third of its texel left and right."""
    levels = tuple(np.float32(level)[:, None] for level in ([9] * 8, [0, 0, 1, 0], [9, 9], [9]))
    sampler = jt.Sampler(max_anisotropy=2)
    value = jt.sample(jt.texture1d(levels), (0.625,), sampler, ddx=(0.5,), ddy=(0.0,))
    assert_close("float32", value, [2 / 3], 9.0)


def test_coordinates_and_levels_of_detail_broadcast():
    texture = build("2d", draw_levels("2d"))
    x, y, lod = np.zeros((4, 1, 1), np.float32), np.zeros(3, np.float32), np.zeros((2, 1), np.float32)
    assert jt.sample(texture, (x, y), lod=lod).shape == (4, 2, 3, 2)
    assert jt.sample(texture, (x, y), ddx=(lod, 0.0), ddy=(0.0, 0.0)).shape == (4, 2, 3, 2)
    assert jt.sample(texture, (0.5, 0.5), lod=y).shape == (3, 2)
    assert jt.sample(texture, (0.5, 0.5), lod=y[:0]).shape == (0, 2)


# ---------------------------------------------------------------------------------------------- level of detail

LODS = {
    "levels are blended": (LINEAR, {0: 0, 1.25: 1.25, 2.5: 2.5, 3: 3}),
    "outside the chain is its end": (LINEAR, {-3: 0, -0.5: 0, 3.5: 3, 99: 3, INF: 3, -INF: 0}),
    "NaN acts as 0": (LINEAR, {NAN: 0}),
    "halves go up": (POINT, {0.4999: 0, 0.5: 1, 1.4999: 1, 1.5: 2, 2.5: 3, -3: 0, 99: 3, NAN: 0, INF: 3, -INF: 0}),
    "a bias is added": (
        LINEAR | {"mipmap_level_bias": 0.75},
        {0: 0.75, 1: 1.75, -0.5: 0.25, -1: 0, NAN: 0.75, INF: 3, -INF: 0},
    ),
    "a negative bias": (LINEAR | {"mipmap_level_bias": -1.5}, {0: 0, 2: 0.5, 4: 2.5, 9: 3, NAN: 0}),
    "a bias comes before the rounding": (POINT | {"mipmap_level_bias": 0.25}, {0.125: 0, 0.25: 1, 1.25: 2}),
    "clamps": (
        LINEAR | {"min_mipmap_level_clamp": 0.5, "max_mipmap_level_clamp": 1.5},
        {0: 0.5, 1: 1, 2: 1.5, -INF: 0.5, INF: 1.5, NAN: 0.5},
    ),
    "clamps come after the bias": (
        LINEAR | {"mipmap_level_bias": 1.0, "max_mipmap_level_clamp": 1.5},
        {0: 1, 1: 1.5, -1: 0},
    ),
    "the minimum wins": (
        LINEAR | {"min_mipmap_level_clamp": 2.0, "max_mipmap_level_clamp": 1.0},
        {0: 2, 1.5: 2, 3: 2, NAN: 2},
    ),
    "the minimum lies beyond the chain": (LINEAR | {"min_mipmap_level_clamp": 7.0}, {0: 3, 2: 3}),
    "a maximum of 0 reads the finest level": (LINEAR | {"max_mipmap_level_clamp": 0.0}, {0: 0, 2: 0, INF: 0}),
    "clamps come before the rounding": (POINT | {"max_mipmap_level_clamp": 1.5}, {1: 1, 3: 2}),
}


FLAT_SHAPES = oracle.chain_shapes((4, 8, 1), 2)
FLAT_LINE = tuple(np.full((n, 1), v, np.float32) for n, v in zip((8, 4, 2, 1), FLAT))


def flat_texture():
    return jt.texture2d(tuple(np.full(s, v, np.float32) for s, v in zip(FLAT_SHAPES, FLAT, strict=True)))


@pytest.mark.parametrize("fact", LODS)
def test_level_of_detail(fact):
    options, table = LODS[fact]
    lod, expected = np.float32([*table]), np.float32([*table.values()])
    values = jt.sample(jt.texture1d(FLAT_LINE), (0.3,), jt.Sampler(**options), lod=lod)
    assert_close("float32", values[:, 0], expected, 3.0)


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, 0.0), ({"mipmap_level_bias": 2.0}, 0.0), ({"min_mipmap_level_clamp": 1.5, "mipmap_level_bias": 1.0}, 1.5)],
)
def test_without_a_level_of_detail_it_is_0_and_the_bias_is_ignored(options, expected):
    value = jt.sample(jt.texture1d(FLAT_LINE), (0.3,), jt.Sampler(**LINEAR, **options))
    assert_exact(value, [expected], np.float32)


# Of a texture 8 texels wide and 4 high: derivatives in texels, and the level of detail that they ask for.
ELLIPSES = {
    "one texel": ({}, (1, 0), (0, 0), 0),
    "two texels along y": ({}, (0, 0), (0, 2), 1),
    "the longer of two": ({}, (1, 0), (0, 4), 2),
    "a length over both axes": ({}, (3, 4), (1, 1), np.log2(5)),
    "less than a texel": ({}, (0.5, 0), (0, 0.25), 0),
    "more than the texture": ({}, (50, 0), (0, 0), 3),
    "none": ({}, (0, 0), (0, 0), 0),
    "none, with a minimum": ({"min_mipmap_level_clamp": 1.5}, (0, 0), (0, 0), 1.5),
    "NaN acts as 0": ({}, (NAN, 2), (NAN, NAN), 1),
    "infinity is the last level": ({}, (INF, 0), (0, 0), 3),
    "minus infinity and NaN": ({}, (0, 0), (-INF, NAN), 3),
    "a bias": ({"mipmap_level_bias": 0.5}, (2, 0), (0, 1), 1.5),
    "long: the shorter": ({"max_anisotropy": 8}, (8, 0), (0, 2), 1),
    "long along y: the shorter": ({"max_anisotropy": 8}, (0, 2), (-8, 0), 1),
    "too long: the longer, cut": ({"max_anisotropy": 2}, (8, 0), (0, 1), 2),
    "a line": ({"max_anisotropy": 4}, (8, 0), (0, 0), 1),
    "no longer than wide": ({"max_anisotropy": 8}, (2, 0), (0, 2), 1),
    "none, long": ({"max_anisotropy": 8}, (0, 0), (0, 0), 0),
    "long infinity": ({"max_anisotropy": 2}, (INF, 0), (0, 1), 3),
    "infinity both ways": ({"max_anisotropy": 8}, (INF, 0), (0, -INF), 3),
    "long, NaN acts as 0": ({"max_anisotropy": 2}, (NAN, 0), (4, NAN), 1),
    "a biased line": ({"max_anisotropy": 2, "mipmap_level_bias": -0.5}, (0, 0), (0, 4), 0.5),
}


@pytest.mark.parametrize("options", {str(row[0]): row[0] for row in ELLIPSES.values()}.values(), ids=str)
def test_footprints_and_their_level_of_detail(options):
    rows = [row[1:] for row in ELLIPSES.values() if row[0] == options]
    ddx, ddy = (tuple(np.float32([row[k][i] / n for row in rows]) for i, n in enumerate((8, 4))) for k in (0, 1))
    texture = flat_texture()
    values = jt.sample(texture, (0.3, 0.6), jt.Sampler(**LINEAR, **options), ddx=ddx, ddy=ddy)
    assert_close("float32", values[:, 0], [row[2] for row in rows], 3.0)


def test_a_coarser_level_covers_the_same_ground():
    levels = tuple(np.arange(n, dtype=np.float32)[:, None] for n in (8, 4, 2, 1))
    values = jt.sample(jt.texture1d(levels), (0.25,), jt.Sampler(filter_mode="point"), lod=np.arange(4))
    assert_exact(values[:, 0], [2, 1, 0, 0], np.float32)


@pytest.mark.parametrize(
    ("layers", "sizes"),
    [
        *(((), sizes) for sizes in ((64,), (32, 32), (16, 8), (64, 4), (13, 10), (8, 8, 8), (8, 4, 2), (1, 1))),
        *(((3,), sizes) for sizes in ((16,), (16, 8), (13, 10))),
        *(((3, 6), sizes) for sizes in ((8, 8), (7, 7), (1, 1))),
    ],
)
def test_where_a_level_starts(layers, sizes):
    """In a formula where sizes are powers of two, by counting elsewhere, and from one level to the next."""
    axis = Axis(1, filter_kernel("linear"), CLAMP)
    fronts = [axis._replace(size=n, integer=True, role=role) for n, role in zip(layers, (Role.LAYER, Role.FACE))]
    spaces = [axis._replace(size=n) for n in sizes]
    chains = [
        (Axis(count, LEVEL_BLEND, CLAMP, role=Role.LEVEL), *fronts, *spaces)
        for count in range(1, max(sizes).bit_length() + 1)
    ]

    @jax.jit
    def starts(levels):
        found = []
        for axes in chains:
            here = levels[: axes[0].size]
            following = jnp.minimum(here + 1, axes[0].size - 1)
            found.append((texel_order.level_start(here, axes), texel_order.starts_of([here, following], axes)[1]))
        return found

    for axes, (found, after) in zip(chains, starts(np.arange(len(chains), dtype=np.int32)), strict=True):
        expected = texel_order.level_starts(axes)[:-1]
        assert_exact(found, expected, np.int32)
        assert_exact(after, [*expected[1:], expected[-1]], np.int32)


def test_an_integer_level_of_detail_reads_that_level_alone():
    """Bit for bit, with the exactness of a point read, and whatever the next level holds."""
    levels = draw_levels("2d")
    coords = draw_coords(2)
    texture, sampler = build("2d", levels), jt.Sampler(filter_mode="point", **LINEAR)
    for level, array in enumerate(levels):
        expected = jt.sample(jt.texture2d(array), coords, sampler)
        assert_exact(jt.sample(texture, coords, sampler, lod=np.float32(level)), expected, np.float32)


def test_levels_that_a_read_does_not_take_do_not_reach_it():
    poisoned = [np.full((n, 1), 1.0, np.float32) for n in (8, 4, 2, 1)]
    poisoned[2][:] = np.nan
    lod = np.float32([0, 0.75, 3, 1.5])
    for mipmap_filter_mode, expected in (("point", [1, 1, 1, NAN]), ("linear", [1, 1, 1, NAN])):
        sampler = jt.Sampler(mipmap_filter_mode=mipmap_filter_mode)
        values = jt.sample(jt.texture1d(tuple(poisoned)), (0.4,), sampler, lod=lod)
        np.testing.assert_array_equal(np.isnan(values[:, 0]), np.isnan(expected))


# ------------------------------------------------------------------------------------------------------- laws

SAMPLES, SHAPE = 12, (5, 6, 2)
SHAPES = oracle.chain_shapes(SHAPE, 2)

anywhere = floats(SAMPLES, low=-1.5, high=2.5)
any_lod = floats(SAMPLES, low=-1, high=3.5)
rate = floats(SAMPLES, low=-0.75, high=0.75)
pyramid = tuples(*(floats(*shape) for shape in SHAPES))


@given(value=floats(2), x=anywhere, y=anywhere, lod=any_lod)
def test_a_constant_stays_constant(value, x, y, lod):
    texture = jt.texture2d(tuple(np.broadcast_to(value, shape) for shape in SHAPES))
    actual = jt.sample(texture, (x, y), jt.Sampler(filter_mode="cubic", address_mode="mirror", **LINEAR), lod=lod)
    assert_close("float32", actual, np.broadcast_to(value, actual.shape), LARGEST)


@given(value=floats(2), x=anywhere, y=anywhere, a=rate, b=rate, c=rate, d=rate)
def test_a_constant_stays_constant_over_a_long_footprint(value, x, y, a, b, c, d):
    texture = jt.texture2d(tuple(np.broadcast_to(value, shape) for shape in SHAPES), border_color=value)
    sampler = jt.Sampler(address_mode="border", max_anisotropy=3, **LINEAR)
    actual = jt.sample(texture, (x, y), sampler, ddx=(a, b), ddy=(c, d))
    assert_close("float32", actual, np.broadcast_to(value, actual.shape), LARGEST)


@given(texels=pyramid, x=anywhere, y=anywhere, lod=any_lod)
def test_a_chain_of_one_level_is_no_chain(texels, x, y, lod):
    sampler = jt.Sampler(mipmap_level_bias=0.5, min_mipmap_level_clamp=1.0, **LINEAR)
    plain = jt.sample(jt.texture2d(texels[0]), (x, y), sampler)
    assert_exact(jt.sample(jt.texture2d(texels[:1]), (x, y), sampler, lod=lod), plain, np.float32)
    assert_exact(jt.sample(jt.texture2d(texels[0]), (x, y), sampler, lod=lod), plain, np.float32)


@given(texels=pyramid, x=anywhere, y=anywhere, level=integers(low=0, high=1), shares=floats(SAMPLES, low=0, high=1))
def test_a_blend_is_monotone_in_the_level_of_detail(texels, x, y, level, shares):
    texture, lod = jt.texture2d(texels), level + np.sort(shares)[:, None]
    values = np.float64(jt.sample(texture, (x, y), jt.Sampler(**LINEAR), lod=lod))
    ends = np.float64(jt.sample(texture, (x, y), jt.Sampler(**LINEAR), lod=np.float32([[level], [level + 1]])))
    steps = np.diff(np.concatenate([ends[:1], values, ends[1:]]), axis=0) * np.sign(ends[1] - ends[0])
    assert_close("float32", np.minimum(steps, 0), np.zeros(steps.shape), LARGEST)


@given(texels=tuples(*(floats(2, *shape) for shape in SHAPES)), x=anywhere, y=anywhere, lod=any_lod)
def test_a_layer_equals_a_slice(texels, x, y, lod):
    sampler = jt.Sampler(address_mode="wrap", **LINEAR)
    actual = jt.sample(jt.texture2d_layered(texels), (x, y), sampler, layer=1, lod=lod)
    expected = jt.sample(jt.texture2d(tuple(level[1] for level in texels)), (x, y), sampler, lod=lod)
    assert_close("float32", actual, expected, LARGEST)


@given(texels=pyramid, x=anywhere, y=anywhere, a=rate, b=rate, c=rate, d=rate)
def test_without_anisotropy_the_two_derivatives_may_change_places(texels, x, y, a, b, c, d):
    texture, sampler = jt.texture2d(texels), jt.Sampler(**LINEAR)
    actual = jt.sample(texture, (x, y), sampler, ddx=(c, d), ddy=(-a, -b))
    assert_exact(actual, jt.sample(texture, (x, y), sampler, ddx=(a, b), ddy=(c, d)), np.float32)


@pytest.mark.parametrize("anisotropy", [None, 1, 2])
@given(texels=pyramid, values=floats(SAMPLES, 2), x=anywhere, y=anywhere, lod=any_lod, rates=tuples(*[rate] * 4))
def test_splat_is_the_adjoint_of_sample(anisotropy, texels, values, x, y, lod, rates):
    """At every level, by the level of detail or a footprint."""
    given = {"lod": lod} if anisotropy is None else {"ddx": rates[:2], "ddy": rates[2:]}
    sampler = jt.Sampler(address_mode=("mirror", "border"), max_anisotropy=anisotropy or 1, **LINEAR)
    read = jt.sample(jt.texture2d(texels), (x, y), sampler, **given)
    spread = jt.splat(values, (x, y), SHAPE, sampler, **given)
    assert [level.shape for level in spread.levels] == [*SHAPES]
    ours = np.vdot(np.float64(read), values)
    theirs = sum(np.vdot(a, np.float64(b)) for a, b in zip(texels, spread.levels))
    assert_close("sum", ours, theirs, LARGEST * np.abs(values).sum())


# ----------------------------------------------------------------------------------------- splat, fetch, gather

SPLATS = [
    ("1d", {"filter_mode": "cubic", "address_mode": "border"}, False),
    ("2d", {"filter_mode": "point", "mipmap_filter_mode": "point", "address_mode": "wrap"}, False),
    ("2d", {"max_anisotropy": 2, "address_mode": ("border", "clamp")}, True),
    ("3d", {"address_mode": ("wrap", "clamp", "border")}, True),
    ("1d_layered", {}, False),
    ("2d_layered", {"address_mode": "mirror"}, False),
]


@pytest.mark.parametrize(("kind", "options", "footprints"), SPLATS)
def test_splat_into_every_kind(kind, options, footprints):
    count, layer = dimension(kind), draw_layer(kind)
    shapes = tuple(level.shape for level in draw_levels(kind))
    rng, coords, options = np.random.default_rng(5), draw_coords(count), LINEAR | options
    values = rng.normal(size=(64, 2)).astype(np.float32)
    given = {"lod": rng.uniform(-1, len(shapes), 64).astype(np.float32)}
    if footprints:
        given = dict(zip(("ddx", "ddy"), draw_footprints(count)))
    texture = jt.splat(values, coords, shapes[0], jt.Sampler(**options), layer=layer, **given)
    assert texture.num_levels == len(shapes)
    expected = oracle.splat(values, coords, shapes, layer, **given, **options)
    for actual, level in zip(texture.levels, expected, strict=True):
        assert_close("sum", actual, level, np.abs(values).sum())


def test_splat_without_a_level_of_detail_makes_one_level():
    texture = jt.splat(np.ones((3, 1), np.float32), (np.float32([0.1, 0.4, 0.8]),), (8, 1))
    assert texture.num_levels == 1


@pytest.mark.parametrize("kind", ["1d", "2d", "3d", "2d_layered"])
def test_fetch_within_a_level(kind):
    levels, layer = draw_levels(kind), draw_layer(kind)
    for level in (1, 2):
        rng = np.random.default_rng(level)
        indices = tuple(rng.integers(-2, n + 2, 64, np.int32) for n in SIZES[dimension(kind)])
        actual = jt.fetch(build(kind, levels), indices, layer=layer, level=level)
        assert_exact(actual, oracle.fetch(levels[level], indices, layer), np.float32)


def test_gather_takes_the_finest_level():
    levels, coords = draw_levels("2d"), draw_coords(2)
    actual = jt.gather(build("2d", levels), coords, component=1)
    assert_exact(actual, oracle.gather(levels[0], coords, component=1), np.float32)


# ---------------------------------------------------------------------------------------------- building levels

built = jax.jit(jt.build_mipmaps, static_argnums=1)
BUILDS = [
    ("1d", (11,), None),
    ("1d", (1,), None),
    ("2d", (8, 4), None),
    ("2d", (7, 10), None),
    ("2d", (1, 5), 2),
    ("3d", (5, 3, 4), None),
    ("1d_layered", (6,), None),
    ("2d_layered", (3, 7), 2),
]


@pytest.mark.parametrize(("kind", "sizes", "count"), BUILDS, ids=name)
def test_levels_are_built_by_a_box(kind, sizes, count):
    texels = draw_levels(kind, sizes)[0]
    texture = built(build(kind, texels, border_color=2.0), count)
    expected = oracle.mipmaps(texels, len(sizes), count)
    assert texture.num_levels == len(expected)
    assert texture.kind == build(kind, texels).kind
    assert float(texture.border_color) == 2.0
    assert_exact(texture.levels[0], texels, np.float32)
    for actual, level in zip(texture.levels, expected, strict=True):
        assert actual.dtype == np.float32
        assert_close("float32", actual, level, np.abs(texels).max())


def test_an_odd_level_weighs_texels_by_the_area_that_is_covered():
    texture = built(jt.texture1d(np.float32([[1], [2], [4], [8], [16]])))
    assert [level.shape for level in texture.levels] == [(5, 1), (2, 1), (1, 1)]
    assert_close("float32", texture.levels[1][:, 0], [(1 + 2 + 4 / 2) / 2.5, (4 / 2 + 8 + 16) / 2.5], 16.0)
    assert_close("float32", texture.levels[2][:, 0], [31 / 5], 16.0)


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, np.float32])
def test_means_of_the_largest_numbers_stay_among_them(dtype):
    """Along axes of even and odd sizes. XLA may not add texels before it halves them."""
    largest = float(jnp.finfo(dtype).max)
    texels = np.broadcast_to(np.float32([largest, -largest, largest / 2, 0]), (75, 46, 4))
    chain = jax.jit(jt.build_mipmaps)(jt.texture2d(texels.astype(dtype)))
    assert chain.num_levels == 7
    for level in chain.levels:
        assert_close(np.dtype(dtype).name, level, np.broadcast_to(texels[:1, :1], level.shape), largest)


@given(texels=floats(5, 7, 2))
def test_every_level_has_the_same_mean(texels):
    levels = built(jt.texture2d(texels)).levels
    for level in levels[1:]:
        assert_close("float32", np.float64(level).mean((0, 1)), np.float64(texels).mean((0, 1)), LARGEST)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_levels_keep_a_16_bit_dtype(dtype):
    texels = np.random.default_rng(0).normal(size=(7, 5, 2)).astype(dtype)
    level = built(jt.texture2d(texels), 2).levels[1]
    assert level.dtype == dtype
    expected = oracle.mipmaps(texels.astype(np.float64), 2)[1]
    assert_close(np.dtype(dtype).name, level, expected, np.abs(expected).max())


@pytest.mark.usefixtures("x64")
def test_levels_are_linear_in_the_texels():
    """Forward mode equals the build of the tangent; reverse mode is its transpose; nothing bends."""
    rng = np.random.default_rng(0)
    texels, tangent = rng.normal(size=(2, 5, 7, 3))
    cotangent = tuple(jnp.asarray(rng.normal(size=s)) for s in oracle.chain_shapes((5, 7, 3), 2))
    build_levels = lambda texels: jt.build_mipmaps(jt.texture2d(texels)).levels

    @jax.jit
    def derivatives(texels, tangent, cotangent):
        levels, pushed = jax.jvp(build_levels, (texels,), (tangent,))
        return levels, pushed, jax.vjp(build_levels, texels)[1](cotangent)[0]

    levels, pushed, pulled = derivatives(texels, tangent, cotangent)
    assert_trees_close("float64", (*levels, *pushed), (*oracle.mipmaps(texels, 2), *oracle.mipmaps(tangent, 2)))
    dot = sum(np.vdot(a, b) for a, b in zip(cotangent, oracle.mipmaps(tangent, 2)))
    assert_close("float64", np.vdot(pulled, tangent), dot, abs(dot))


# --------------------------------------------------------------------------------------------------- derivatives


DIFFERENCES = "first differences", "second differences"


def moved(primals, tangents, t):
    return jax.tree.map(lambda p, d: np.asarray(p) + t * np.asarray(d), primals, tangents)


def smooth(reference, shared, samples, tangents, keep):
    """The first samples without a kink of the oracle near them: there a finer difference says the same."""
    along = lambda t: reference(*moved((shared, samples), tangents, t))
    fine, coarse = (np.stack(oracle.differences(along, step)[1:]) for step in (1e-4, 6e-4))
    same = np.all(np.abs(fine - coarse) <= TOLERANCES["second differences"] * (1 + np.abs(coarse)), axis=(0, 2))
    assert same.sum() >= keep
    return np.flatnonzero(same)[:keep]


def assert_derivatives(read, reference, shared, samples, order, keep=6):
    """To the second order, against differences of the oracle along one line through all inputs.

    `read` and `reference` are functions of `shared` (texels of every level and the border color) and `samples` (one
    value a sample of each coordinate, level of detail, rate or direction). Samples near a kink are left out. The value
    and the first derivative are taken in forward mode and in reverse mode; the second one by the compositions of modes
    that `order` names.
    """
    rng = np.random.default_rng(zlib.crc32(b"tangents"))
    tangents = jax.tree.map(lambda p: rng.normal(size=np.shape(p)), (shared, samples))
    chosen = smooth(reference, shared, samples, tangents, keep)
    primals, tangents = ((a, jax.tree.map(lambda s: s[chosen], b)) for a, b in ((shared, samples), tangents))
    value, first, second = oracle.differences(lambda t: reference(*moved(primals, tangents, t)))
    cotangent = rng.normal(size=value.shape)
    dot = lambda a, b: sum(jax.tree.leaves(jax.tree.map(jnp.vdot, a, b)))
    gradient = jax.grad(lambda *p: jnp.vdot(cotangent, read(*p)), (0, 1))
    push = lambda primals, tangents: jax.jvp(read, primals, tangents)
    pull = lambda primals, tangents: dot(gradient(*primals), tangents)

    def forward_over_forward(primals, tangents):
        (got, pushed), (_, again) = jax.jvp(lambda *p: push(p, tangents), primals, tangents)
        return got, pushed, again

    def reverse_over_reverse(primals, tangents):
        pulled, again = jax.value_and_grad(lambda *p: pull(p, tangents), (0, 1))(*primals)
        return pulled, dot(again, tangents)

    def forward_over_reverse(primals, tangents):
        return jax.jvp(lambda *p: pull(p, tangents), primals, tangents)

    forward, reverse = ("float64", *DIFFERENCES), DIFFERENCES
    pushed, pulled = (value, first, second), (np.vdot(cotangent, first), np.vdot(cotangent, second))
    programs = {
        FORWARD_OVER_FORWARD: (forward_over_forward, forward, pushed),
        REVERSE_OVER_REVERSE: (reverse_over_reverse, reverse, pulled),
        FORWARD_OVER_REVERSE: (forward_over_reverse, reverse, pulled),
    }
    chosen = [programs[name] for name in order]
    if FORWARD_OVER_FORWARD not in order:
        chosen.append((push, forward[:2], pushed[:2]))
    if set(order) <= {FORWARD_OVER_FORWARD}:
        chosen.append((lambda *p: [pull(*p)], reverse[:1], pulled[:1]))
    results = jax.jit(lambda *arguments: [program(*arguments) for program, *_ in chosen])(primals, tangents)
    for (_, rows, wanted), found in zip(chosen, results, strict=True):
        for row, got, expected in zip(rows, found, wanted, strict=True):
            assert_close(row, got, expected, 1 + np.abs(expected))


FORWARD_OVER_FORWARD, REVERSE_OVER_REVERSE = "forward over forward", "reverse over reverse"
FORWARD_OVER_REVERSE = "forward over reverse"
BOTH = (FORWARD_OVER_FORWARD, REVERSE_OVER_REVERSE)
# Every composition of modes with a level of detail and with a footprint. `test_gradients` has all of them with every
# address mode and filter, and second derivatives of volumes.
DERIVATIVES = [
    # kind, sizes, what drives the level, second derivatives, sampler
    ("1d", (11,), "lod", BOTH, {"filter_mode": "cubic", "address_mode": "mirror"}),
    ("2d", (6, 5), "footprint", (FORWARD_OVER_FORWARD,), {"address_mode": ("wrap", "clamp")}),
    ("2d", (6, 5), "footprint", (REVERSE_OVER_REVERSE,), {"address_mode": ("border", "wrap"), "max_anisotropy": 2}),
    ("3d", (4, 3, 3), "lod", (FORWARD_OVER_REVERSE,), {"address_mode": ("mirror", "wrap", "clamp")}),
    (
        "2d_layered",
        (3, 4),
        "lod",
        (FORWARD_OVER_REVERSE,),
        {"address_mode": ("border", "reflect"), "mipmap_level_bias": 0.25},
    ),
]


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("kind", "sizes", "drive", "order", "options"), DERIVATIVES, ids=name)
def test_derivatives_equal_differences_of_the_oracle(kind, sizes, drive, order, options):
    rng = np.random.default_rng(zlib.crc32(repr((kind, drive, options)).encode()))
    count, n, layer, options = dimension(kind), 48, 1 if "layered" in kind else None, LINEAR | options
    shared = draw_levels(kind, sizes, dtype=np.float64), rng.normal(size=2)
    samples = {"coords": tuple(rng.uniform(-0.3, 1.3, (count, n)))}
    if drive == "lod":
        samples["lod"] = rng.uniform(0, len(shared[0]) - 1, n)
    else:
        samples |= {d: tuple(rng.normal(size=(count, n)) * rng.uniform(0.2, 0.5, n)) for d in ("ddx", "ddy")}

    def read(shared, samples):
        rest = dict(samples)
        return jt.sample(build(kind, *shared), rest.pop("coords"), jt.Sampler(**options), layer=layer, **rest)

    def reference(shared, samples):
        levels, border = shared
        return oracle.sample(levels, layer=layer, border_color=border, dtype=np.float64, **samples, **options)

    assert_derivatives(read, reference, shared, samples, order)


@pytest.mark.usefixtures("x64")
def test_splat_derivatives():
    """By duality with the read, of whole chains: <splat(v, c, lod), T> = <v, sample(T, c, lod)> for every T."""
    rng = np.random.default_rng(0)
    shape, sampler = (5, 2), jt.Sampler(address_mode="border", **LINEAR)
    levels = tuple(rng.normal(size=s) for s in oracle.chain_shapes(shape, 1))
    args = rng.normal(size=(3, 2)), np.float64([0.31, 0.52, 0.95]), np.float64([0.3, 1.6, 0.8])

    def spread(v, x, lod):
        texture = jt.splat(v, (x,), shape, sampler, lod=lod)
        return sum(jnp.vdot(a, b) for a, b in zip(texture.levels, levels))

    def read(v, x, lod):
        return jnp.vdot(jt.sample(jt.texture1d(levels), (x,), sampler, lod=lod), v)

    @jax.jit
    def derivatives(*args):
        ones = tuple(map(jnp.ones_like, args))
        return [jax.jvp(jax.grad(f, (0, 1, 2)), args, ones) for f in (spread, read)]

    assert_trees_close("float64", *derivatives(*args))


LEVELS = tuple(np.full((n, 1), v, np.float32) for n, v in zip((8, 4, 2, 1), (0, 10, 30, 70)))
SLOPES = {
    "right-hand at an integer": ({}, {0: 10, 1: 20, 2: 40, 0.5: 10, 1.5: 20}),
    "none beyond the chain": ({}, {3: 0, 5: 0, -1: 0, INF: 0, -INF: 0}),
    "none at NaN": ({}, {NAN: 0}),
    "right-hand after a bias": ({"mipmap_level_bias": 1.0}, {0: 20, -1: 10, -1.5: 0, 2: 0, NAN: 0}),
    "none beyond the clamps, right-hand at them": (
        {"min_mipmap_level_clamp": 0.5, "max_mipmap_level_clamp": 1.5},
        {0.25: 0, 0.5: 10, 1.25: 20, 1.5: 0, 1.75: 0},
    ),
    "right-hand at a clamp to an integer": (
        {"min_mipmap_level_clamp": 1.0, "max_mipmap_level_clamp": 2.0},
        {0.5: 0, 1: 20, 1.5: 20, 2: 0, 2.5: 0},
    ),
    "none where the minimum wins": ({"min_mipmap_level_clamp": 1.5, "max_mipmap_level_clamp": 1.0}, {1.25: 0, 2: 0}),
    "none where levels are not blended": ({"mipmap_filter_mode": "point"}, {0.5: 0, 1: 0, 1.25: 0}),
}


@pytest.mark.parametrize("fact", SLOPES)
def test_slopes_in_the_level_of_detail(fact):
    options, table = SLOPES[fact]
    sampler, lod = jt.Sampler(**(LINEAR | options)), np.float32([*table])
    read = lambda lod: jt.sample(jt.texture1d(LEVELS), (0.3,), sampler, lod=lod)[..., 0]
    slope = jax.jit(lambda lod: jax.jvp(read, (lod,), (jnp.ones_like(lod),))[1])(lod)
    assert_close("float32", slope, np.float32([*table.values()]), 70.0)


# Derivatives of a texture 8 texels wide and 4 high: what must not have a gradient, and what must have a finite one.
POINTLESS = [((0, 0), (0, 0)), ((INF, 0), (0, 0)), ((NAN, NAN), (NAN, NAN)), ((0, -INF), (INF, 0.5))]
FINITE = [((0.5, 0), (0, 0)), ((0.5, NAN), (0.1, 0)), ((0, 0), (NAN, 0.5)), ((0.2, 0.1), (0.2, 0.1))]
TIE = ((0.375, 0), (0, 0.75))  # three texels each, level log2(3): longer by a factor, it moves by the factor's log2


@pytest.mark.parametrize("anisotropy", [1, 2])
def test_gradients_of_a_footprint_at_its_kinks(anisotropy):
    """At a tie the gradients of both together are the slope of both; which of them has it is left open."""
    sampler = jt.Sampler(max_anisotropy=anisotropy, **LINEAR)
    texture = jt.texture2d(tuple(np.full(s, v, np.float32) for s, v in zip(FLAT_SHAPES, (0, 10, 30, 70))))
    rates = np.float32([*POINTLESS, *FINITE, TIE])
    read = lambda rates: jt.sample(texture, (0.3, 0.6), sampler, ddx=tuple(rates[:, 0].T), ddy=tuple(rates[:, 1].T))
    gradients = np.asarray(jax.jit(jax.grad(lambda rates: read(rates).sum()))(rates))
    np.testing.assert_array_equal(gradients[: len(POINTLESS)], 0)
    assert np.isfinite(gradients).all()
    assert_close("float32", np.vdot(gradients[-1], TIE), 20 / np.log(2), 70.0)


@pytest.mark.parametrize("drive", ["lod", "round footprint", "long footprint"])
def test_no_gradient_is_nan_for_special_inputs(drive):
    special = np.float32([NAN, INF, -INF, 1e30, -1e30, 0.0, -0.0, 1e-40, 0.3])
    a, b = np.repeat(special, 9), np.tile(special, 9)
    anisotropy = 2 if drive == "long footprint" else 1
    sampler = jt.Sampler(address_mode=("border", "wrap"), max_anisotropy=anisotropy, **LINEAR)

    @jax.jit
    def gradients(levels, border, coords, given):
        def total(levels, border, coords, given):
            return jt.sample(jt.texture2d(levels, border_color=border), coords, sampler, **given).sum()

        return jax.value_and_grad(total, (0, 1, 2, 3))(levels, border, coords, given)

    middle = np.full_like(a, 0.4)
    for coords, lod, ddx, ddy in (
        ((a, b), a, (middle, middle), (middle, middle)),
        ((middle, middle), b, (a, middle), (b, middle)),
        ((middle, middle), b, (a, b), (b, a)),
        ((middle, middle), b, (a, b), (0 * middle, 0 * middle)),
    ):
        given = {"lod": lod} if drive == "lod" else {"ddx": ddx, "ddy": ddy}
        value, found = gradients(draw_levels("2d", (4, 3)), np.ones(2, np.float32), coords, given)
        assert np.isfinite(value)
        assert not any(np.isnan(leaf).any() for leaf in jax.tree.leaves(found))


def test_integer_levels_have_no_gradient_and_their_level_of_detail_has_one():
    codes = tuple(np.full((n, 1), v, np.uint8) for n, v in ((2, 51), (1, 255)))
    sampler = jt.Sampler(read_mode="normalized_float", **LINEAR)
    read = lambda texture, lod: jt.sample(texture, (0.3,), sampler, lod=lod)[0]
    texture, slope = jax.jit(jax.grad(read, (0, 1), allow_int=True))(jt.texture1d(codes), 0.5)
    assert all(leaf.dtype == jax.dtypes.float0 for leaf in jax.tree.leaves(texture))
    assert_close("float32", slope, 0.8, 1.0)


# ---------------------------------------------------------------------------------------------------- transforms


def test_a_chain_is_a_texture_like_any_other():
    levels = draw_levels("2d_layered", (7, 4))
    texture = build("2d_layered", levels, border_color=1.0)
    assert texture.num_levels == len(levels) == 3
    assert texture.shape == levels[0].shape
    assert texture.num_channels == 2
    assert texture.dtype == np.float32
    for actual, level in zip(texture.levels, levels, strict=True):
        assert_exact(actual, level, np.float32)
    assert isinstance(texture.levels, tuple)
    leaves, tree = jax.tree.flatten(texture)
    again = jax.tree.unflatten(tree, leaves)
    assert again.num_levels == 3
    assert jax.tree.leaves(jax.tree.map(lambda _: None, texture)) == []
    doubled = jax.tree.map(lambda leaf: 2 * leaf, texture)
    assert_exact(doubled.levels[2], 2 * levels[2], np.float32)


def test_a_list_of_levels_is_not_needed_to_be_whole():
    levels = draw_levels("2d")[:2]
    lod = np.float32([0.5, 1, 7])
    coords = tuple(x[:3] for x in draw_coords(2))
    assert_reads("2d", levels, coords, lod=lod, **LINEAR)


def test_jit_and_vmap_over_chains():
    """A batch of textures equals a loop over them, in value and gradient, with the texture as an argument of jit."""
    rng = np.random.default_rng(0)
    stack = tuple(rng.normal(size=(3, *s)).astype(np.float32) for s in SHAPES)
    x, y, lod = rng.uniform(0, 2, (3, 3, 5)).astype(np.float32)
    sampler = jt.Sampler(address_mode="wrap", **LINEAR)

    @jax.value_and_grad
    def loss(texture, x, y, lod):
        return jnp.sin(jt.sample(texture, (x, y), sampler, lod=lod)).sum()

    gradient = jax.jit(loss)
    got = jax.jit(lambda stack, *rest: jax.vmap(loss)(jax.vmap(jt.texture2d)(stack), *rest))(stack, x, y, lod)
    for k in range(3):
        expected = gradient(jt.texture2d(tuple(level[k] for level in stack)), x[k], y[k], lod[k])
        assert_trees_close("reordered", jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], got), expected)


def test_vmap_over_levels_of_detail_and_building():
    texels = draw_levels("2d", (5, 6))[0]
    read = lambda texels, lod: jt.sample(jt.build_mipmaps(jt.texture2d(texels)), (0.3, 0.6), lod=lod)
    batch, lod = np.stack([texels, -texels]), np.float32([0.0, 1.0, 2.0])
    got = jax.jit(jax.vmap(jax.vmap(read, (None, 0)), (0, None)))(batch, lod)
    levels = oracle.mipmaps(texels, 2)
    expected = oracle.sample(levels, (np.float32(0.3), np.float32(0.6)), lod=lod)
    assert_close("float32", got, np.stack([expected, -expected]), np.abs(levels[0]).max())
