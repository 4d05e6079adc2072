"""Cubemaps: which face and texel a direction reads, what happens at the seams, and every derivative."""

import itertools
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.describe.cube import across_seam, seams
from tests.oracles import reads as oracle
from tests.support.drawn import floats, given, integers, tuples
from tests.support.tolerances import assert_close, assert_exact, assert_trees_close
from tests.unit.reads.test_mipmaps import (
    BOTH,
    FORWARD_OVER_FORWARD,
    FORWARD_OVER_REVERSE,
    REVERSE_OVER_REVERSE,
    assert_derivatives,
)

LARGEST = 8.0
INF, NAN = np.inf, np.nan
LINEAR = {"mipmap_filter_mode": "linear"}


def draw_levels(size, *, layers=None, count=None, channels=2, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    shape = (*(() if layers is None else (layers,)), 6, size, size, channels)
    return tuple(rng.normal(size=s).astype(dtype) for s in oracle.chain_shapes(shape, 2, count))


def draw_directions(size, n=256, seed=1):
    """Any direction of any length, no texel's edge near: there rounding would decide about a point read."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(3, 4 * n)).astype(np.float32)
    _, *uv = oracle.project(directions)
    clear = np.all([np.abs(w * size - np.round(w * size)) > 1e-3 for w in uv], axis=0)
    return tuple(directions[:, clear][:, :n] * np.exp2(rng.integers(-20, 20, n)).astype(np.float32))


def build(levels, border_color=None):
    layered = levels[0].ndim == 5
    return (jt.cubemap_layered if layered else jt.cubemap)(levels, border_color=border_color)


def assert_reads(levels, directions, layer=None, *, border_color=None, lod=None, ddx=None, ddy=None, **options):
    given = {"layer": layer, "lod": lod, "ddx": ddx, "ddy": ddy}
    actual = jt.sample(build(levels, border_color), directions, jt.Sampler(**options), **given)
    expected = oracle.sample(levels, directions, cube=True, border_color=border_color, **given, **options)
    if options.get("filter_mode") == "point" and ddx is None:
        assert_exact(actual, expected, np.float32)
    else:
        scale = max(np.abs(a).max() for a in (*levels, oracle.border(border_color, 2)))
        assert_close("float32", actual, expected, scale)


# ------------------------------------------------------------------------------------------ faces and their texels

NUMBERED = np.arange(6 * 8 * 8, dtype=np.float32).reshape(6, 8, 8, 1)
FACTS = {
    # direction: (face, row, column) of a cubemap of 8 by 8 texels
    "the middle of every face": {
        (1, 0, 0): (0, 4, 4),
        (-1, 0, 0): (1, 4, 4),
        (0, 1, 0): (2, 4, 4),
        (0, -1, 0): (3, 4, 4),
        (0, 0, 1): (4, 4, 4),
        (0, 0, -1): (5, 4, 4),
    },
    "s and t of every face": {
        (1, 0.625, -0.375): (0, 1, 5),
        (-1, 0.625, -0.375): (1, 1, 2),
        (0.625, 1, -0.375): (2, 2, 6),
        (0.625, -1, -0.375): (3, 5, 6),
        (0.625, -0.375, 1): (4, 5, 6),
        (0.625, -0.375, -1): (5, 5, 1),
    },
    "two known reads": {(1, 0.5, -0.25): (0, 2, 5), (0.5, -1, -0.25): (3, 5, 6)},
    "ties go to z, then to y": {
        (1, 1, 1): (4, 0, 7),
        (-1, -1, -1): (5, 7, 7),
        (1, 1, 0): (2, 4, 7),
        (1, -1, 0): (3, 4, 7),
        (1, 0, 1): (4, 4, 7),
        (0, -1, -1): (5, 7, 4),
        (-1, 1, 0.5): (2, 6, 0),
        (-2, 0.5, -2): (5, 3, 7),
    },
    "a length has no meaning": {
        (2.0**-126, 0, 0): (0, 4, 4),
        (0, -(2.0**-100), 0): (3, 4, 4),
        (0, 2.0**125, -(2.0**124)): (2, 2, 4),
        (1e-30, 0, -2e-30): (5, 4, 2),
        (0, 0, -(2.0**126)): (5, 4, 4),
        (2.0**127, 0.625 * 2.0**127, -0.375 * 2.0**127): (0, 1, 5),
        (3e38, 1, 1): (0, 4, 4),
    },
    "no direction is the middle of face +Z": {
        (0, 0, 0): (4, 4, 4),
        (NAN, NAN, NAN): (4, 4, 4),
        (INF, 0, 0): (4, 4, 4),
        (1, -INF, INF): (4, 4, 4),
        (INF, NAN, 1): (4, 4, 4),
    },
    "NaN components act as 0": {(NAN, 1, 0): (2, 4, 4), (-1, NAN, 0.375): (1, 4, 5), (NAN, NAN, -1): (5, 4, 4)},
}


@pytest.mark.parametrize("seamless", [True, False])
def test_faces_and_texels(seamless):
    directions = [row for table in FACTS.values() for row in table]
    expected = np.float32([NUMBERED[place] for table in FACTS.values() for place in table.values()])
    sampler = jt.Sampler(filter_mode="point", seamless_cubemap=seamless)
    actual = jt.sample(jt.cubemap(NUMBERED), tuple(np.float32(directions).T), sampler)
    assert_exact(actual, expected, np.float32)


def test_seams_by_hand():
    """One texel a face, so that a face holds its number: edges are means of two, corners of three."""
    texture = jt.cubemap(np.arange(6, dtype=np.float32).reshape(6, 1, 1, 1))
    means = {(1, 0, 1): 2, (1, 1, 0): 1, (-1, 0, -1): 3, (0, -1, 1): 3.5, (1, 1, 1): 2, (-1, -1, -1): 3, (1, 0, 0): 0}
    values = jt.sample(texture, tuple(np.float32([*means]).T))
    assert_close("float32", values[:, 0], [*means.values()], 5.0)
    inside = jt.sample(texture, tuple(np.float32([*means]).T), jt.Sampler(seamless_cubemap=False))
    assert_exact(inside[:, 0], np.round([4, 2, 5, 4, 4, 5, 0]), np.float32)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_texels_across_edges(size):
    """All taps of a row and of a column at once, so that some lie off both of its ends: those of the projection."""
    around = np.arange(-1, size + 1, dtype=np.int32)
    faces = np.arange(6, dtype=np.int32)
    of_rows, of_columns = (seams(faces, across, list(around), size) for across in (1, 0))
    off = lambda k: not 0 <= k < size
    for (row, y), (column, x) in itertools.product(zip(of_rows, around), zip(of_columns, around)):
        texel, missing = across_seam(faces, y, x, size, row, column)
        assert np.all(missing == (off(x) and off(y)))
        if off(x) and off(y):
            assert all(np.all((index >= 0) & (index < n)) for index, n in zip(texel, (6, size, size)))
            continue
        center = np.float64([(2 * x + 1) / size - 1, (2 * y + 1) / size - 1, 1])
        expected, u, v = oracle.project(np.einsum("i,fij->jf", center, oracle.FACES))
        inner = lambda w: np.clip(np.floor(w * size), 0, size - 1)
        np.testing.assert_array_equal(np.stack(texel), [expected, inner(v), inner(u)])


def test_without_seams_wrap_blends_with_the_far_side_of_the_same_face():
    faces = np.zeros((6, 2, 2, 1), np.float32)
    faces[4, :, 0], faces[4, :, 1] = 1, 3
    sampler = jt.Sampler(seamless_cubemap=False, address_mode=("wrap", "clamp"))
    values = jt.sample(jt.cubemap(faces), (np.float32([1, -1, 0.5]), 0.25, 1.0), sampler)
    assert_exact(values[:, 0], [2, 2, 3], np.float32)


# ---------------------------------------------------------------------------------------------- values of a read


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("filter_mode", ["point", "linear"])
def test_seamless_reads(size, filter_mode):
    assert_reads(draw_levels(size, count=1), draw_directions(size), filter_mode=filter_mode)


@pytest.mark.parametrize(
    ("filter_mode", "modes"),
    [
        ("point", "clamp"),
        ("linear", ("wrap", "border")),
        ("linear", ("mirror", "clamp")),
        ("cubic", ("border", "reflect")),
    ],
)
def test_reads_within_faces(filter_mode, modes):
    assert_reads(
        draw_levels(5, count=1),
        draw_directions(5),
        border_color=np.float32([1.5, -2]),
        filter_mode=filter_mode,
        address_mode=modes,
        seamless_cubemap=False,
    )


LAYER = np.random.default_rng(2).integers(-2, 6, 256, np.int32)


@pytest.mark.parametrize(
    "options",
    [{}, {"filter_mode": "point"}, {"seamless_cubemap": False, "address_mode": "border"}],
    ids=["linear", "point", "within faces"],
)
def test_layers(options):
    levels = draw_levels(4, layers=3, count=1)
    assert_reads(levels, draw_directions(4), LAYER, border_color=np.float32(1.5), **options)


MIPS = [
    # size, layers, filters and address modes
    (6, None, {"mipmap_filter_mode": "linear"}),
    (6, None, {"filter_mode": "point", "mipmap_filter_mode": "point"}),
    (5, None, {"mipmap_filter_mode": "linear", "seamless_cubemap": False, "address_mode": ("wrap", "border")}),
    (4, 3, {"mipmap_filter_mode": "linear"}),
]


@pytest.mark.parametrize(("size", "layers", "options"), MIPS)
def test_chains(size, layers, options):
    levels = draw_levels(size, layers=layers)
    lod = np.random.default_rng(4).uniform(-1, len(levels), 256).astype(np.float32)
    lod[:6] = NAN, INF, -INF, 1, 0, 2
    assert_reads(levels, draw_directions(size), layers and LAYER, border_color=np.float32(1.5), lod=lod, **options)


@pytest.mark.parametrize(
    ("layers", "options"),
    [(None, {}), (3, {"max_anisotropy": 2}), (None, {"max_anisotropy": 3, "seamless_cubemap": False})],
)
def test_footprints(layers, options):
    """Derivatives of the direction; a long footprint leaves its face."""
    rng = np.random.default_rng(3)
    directions = draw_directions(6)
    length = np.max(np.abs(directions), axis=0)
    ddx, ddy = (
        tuple((rng.normal(size=(3, 256)) * length * 2.0 ** rng.uniform(-5, 0, 256)).astype(np.float32)) for _ in "xy"
    )
    levels, layer = draw_levels(6, layers=layers), layers and LAYER
    assert_reads(levels, directions, layer, ddx=ddx, ddy=ddy, address_mode="wrap", **LINEAR, **options)


def test_footprints_by_hand():
    """Texels a step on face +X of 8 by 8: dz moves u by 1/2, a step along the direction moves nothing."""
    shapes = oracle.chain_shapes((6, 8, 8, 1), 2)
    texture = jt.cubemap(tuple(np.full(s, level, np.float32) for level, s in enumerate(shapes)))
    steps = {(0, 0, 0.5): 1, (0, 1, 0): 2, (3, 0, 0): 0, (0, 0, 0): 0, (0, 0, INF): 3, (NAN, 0.5, NAN): 1}
    ddx, ahead = np.float32([*steps]).T, np.float32([1, 0, 0])
    still = np.zeros_like(ddx)
    reads = {
        # direction, ddx, ddy: the level of detail of each step
        "along x": (ahead, ddx, still, [*steps.values()]),
        "along y": (ahead, still, ddx, [*steps.values()]),
        "of a direction twice as long": (2 * ahead, ddx, still, [0, 1, 0, 0, 3, 0]),
        "of no direction": (0 * ahead, still + 0.5, still, [0] * len(steps)),
    }
    directions, *rates = np.stack([np.broadcast_arrays(d[:, None], *dd) for d, *dd, _ in reads.values()], 1)
    along, across = (tuple(np.moveaxis(dd, 1, 0)) for dd in rates)
    values = jt.sample(texture, tuple(np.moveaxis(directions, 1, 0)), jt.Sampler(**LINEAR), ddx=along, ddy=across)
    assert_close("float32", values[..., 0], [row[-1] for row in reads.values()], 3.0)
    assert_exact(values[3], np.zeros((len(steps), 1)), np.float32)


def test_shapes_and_kinds():
    levels = draw_levels(4, layers=3)
    texture, single = jt.cubemap_layered(levels), jt.cubemap(levels[0][0])
    assert (texture.kind, single.kind) == ("cubemap_layered", "cubemap")
    assert texture.shape == (3, 6, 4, 4, 2)
    assert texture.num_levels == 3
    assert single.num_levels == 1
    assert texture.num_channels == single.num_channels == 2
    x, z, layer = np.ones((4, 1, 1), np.float32), np.ones(5, np.float32), np.zeros((2, 1), np.int32)
    assert jt.sample(texture, (x, 0.5, z), layer=layer).shape == (4, 2, 5, 2)
    assert jt.sample(single, (1.0, 0.5, 0.0)).shape == (2,)


@pytest.mark.parametrize(("read_mode", "filter_mode"), [("normalized_float", "linear"), ("element", "point")])
def test_integer_texels(read_mode, filter_mode):
    codes = np.random.default_rng(0).integers(0, 255, (6, 3, 3, 2), np.uint8, endpoint=True)
    directions = draw_directions(3)
    actual = jt.sample(jt.cubemap(codes), directions, jt.Sampler(read_mode=read_mode, filter_mode=filter_mode))
    expected = oracle.sample(codes, directions, cube=True, read_mode=read_mode, filter_mode=filter_mode)
    if filter_mode == "point":
        assert_exact(actual, expected, np.uint8)
    else:
        assert_close("float32", actual, expected, 1.0)


# ---------------------------------------------------------------------------------------------------------- laws

SIZE, SAMPLES = 5, 24
SHAPE = (6, SIZE, SIZE, 2)
# Every edge of a cube is an axis and the signs of the two others; every corner three signs.
EDGES = [(axis, a, b) for axis in range(3) for a in (-1, 1) for b in (-1, 1)]
CORNERS = [*itertools.product((-1, 1), repeat=3)]
A_HAIR = 1 + 2.0**-22  # moves a position by less than rounding does
ROTATIONS = [
    np.eye(3, dtype=int)[list(order)] * np.array(signs)[:, None]
    for order in itertools.permutations(range(3))
    for signs in itertools.product((-1, 1), repeat=3)
]
ROTATIONS = [r for r in ROTATIONS if round(np.linalg.det(r)) == 1]


def directions(rng):
    d = floats(3, SAMPLES, low=-1, high=1)(rng)
    return np.where(np.any(d, axis=0), d, np.float32(1))


faces = floats(*SHAPE)


@given(texels=faces, along=floats(len(EDGES), low=-1, high=1))
def test_both_sides_of_an_edge_agree(texels, along):
    """At every edge: seen from either face, a hair away from it, the same value."""
    sides = []
    for near in (1, 2):
        d = np.ones((len(EDGES), 3))
        for k, (axis, a, b) in enumerate(EDGES):
            d[k, axis], d[k, (axis + 1) % 3], d[k, (axis + 2) % 3] = along[k], a, b
            d[k, (axis + near) % 3] *= A_HAIR
        sides.append(d)
    one, other = jt.sample(jt.cubemap(texels), tuple(np.float32(sides).transpose(2, 0, 1)))
    assert_close("float32", one, other, LARGEST)


@given(texels=faces)
def test_all_sides_of_a_corner_agree(texels):
    d = np.tile(np.float32(CORNERS), (3, 1, 1))
    for axis in range(3):
        d[axis, :, axis] *= A_HAIR
    x, y, z = jt.sample(jt.cubemap(texels), tuple(d.transpose(2, 0, 1)))
    assert_close("float32", x, y, LARGEST)
    assert_close("float32", y, z, LARGEST)


@given(value=floats(2), d=directions, lod=floats(SAMPLES, low=-1, high=3))
def test_a_constant_stays_constant(value, d, lod):
    levels = tuple(np.broadcast_to(value, s) for s in oracle.chain_shapes(SHAPE, 2))
    actual = jt.sample(jt.cubemap(levels), tuple(d), jt.Sampler(**LINEAR), lod=lod)
    assert_close("float32", actual, np.broadcast_to(value, actual.shape), LARGEST)


@given(texels=faces, d=directions, turn=integers(low=0, high=len(ROTATIONS) - 1))
def test_turning_the_cube_permutes_its_faces(texels, d, turn):
    """Texels moved by a rotation, read in a rotated direction: nothing has changed, at the seams neither."""
    rotation = ROTATIONS[turn]
    face, row, column = np.indices(SHAPE[:3])
    center = np.stack([(2 * column + 1) / SIZE - 1, (2 * row + 1) / SIZE - 1, np.ones(SHAPE[:3])])
    towards = np.einsum("...ij,i...->j...", oracle.FACES[face], center)
    before = tuple(np.einsum("ij,i...->j...", rotation, towards))  # the inverse of a rotation is its transpose
    turned = oracle.sample(texels, before, cube=True, filter_mode="point").astype(np.float32)
    actual = jt.sample(jt.cubemap(turned), tuple(np.float32(rotation @ d)))
    assert_close("float32", actual, jt.sample(jt.cubemap(texels), tuple(d)), LARGEST)


@given(texels=faces, d=directions, power=integers(low=-40, high=40))
def test_a_length_changes_no_bit(texels, d, power):
    texture, longer = jt.cubemap(texels), d * np.float32(2.0**power)
    assert_exact(jt.sample(texture, tuple(longer)), jt.sample(texture, tuple(d)), np.float32)


@given(texels=faces, d=directions)
def test_without_seams_a_face_is_a_2d_texture(texels, d):
    sampler = jt.Sampler(seamless_cubemap=False, address_mode=("mirror", "wrap"))
    face, u, v = oracle.project(d, np.float32)
    actual = jt.sample(jt.cubemap(texels), tuple(d), sampler)
    flat = jt.sample(jt.texture2d_layered(texels), (u, v), sampler, layer=face)
    assert_close("float32", actual, flat, LARGEST)


@given(texels=floats(2, *SHAPE), d=directions)
def test_a_layer_equals_a_slice(texels, d):
    actual = jt.sample(jt.cubemap_layered(texels), tuple(d), layer=1)
    assert_close("float32", actual, jt.sample(jt.cubemap(texels[1]), tuple(d)), LARGEST)


@given(texels=faces, d=directions)
def test_seamless_reads_ignore_address_modes_and_border_color(texels, d):
    bordered = jt.sample(jt.cubemap(texels, border_color=5.0), tuple(d), jt.Sampler(address_mode="border"))
    assert_exact(bordered, jt.sample(jt.cubemap(texels), tuple(d)), np.float32)


ADJOINTS = {
    "seamless": {},
    "point": {"filter_mode": "point"},
    "within faces": {"seamless_cubemap": False, "address_mode": ("border", "wrap")},
    "chain": LINEAR,
    "long footprint": {"max_anisotropy": 2, **LINEAR},
}


@pytest.mark.parametrize("name", ADJOINTS)
@given(
    texels=tuples(*(floats(*s) for s in oracle.chain_shapes(SHAPE, 2))),
    values=floats(SAMPLES, 2),
    d=directions,
    rates=floats(6, SAMPLES, low=-0.5, high=0.5),
)
def test_splat_is_the_adjoint_of_sample(name, texels, values, d, rates):
    given = {"chain": {"lod": 4 * rates[0] + 1}, "long footprint": {"ddx": tuple(rates[:3]), "ddy": tuple(rates[3:])}}
    given, sampler = given.get(name, {}), jt.Sampler(**ADJOINTS[name])
    texels = texels if given else texels[:1]
    read = jt.sample(jt.cubemap(texels), tuple(d), sampler, **given)
    spread = jt.splat(values, tuple(d), SHAPE, sampler, kind="cubemap", **given)
    assert spread.kind == "cubemap"
    theirs = sum(np.vdot(a, np.float64(b)) for a, b in zip(texels, spread.levels, strict=True))
    assert_close("sum", np.vdot(np.float64(read), values), theirs, LARGEST * np.abs(values).sum())


def test_splat_into_layers():
    d, values = draw_directions(4), np.random.default_rng(5).normal(size=(256, 2)).astype(np.float32)
    lod = np.random.default_rng(6).uniform(-1, 3, 256).astype(np.float32)
    shapes = oracle.chain_shapes((3, 6, 4, 4, 2), 2)
    texture = jt.splat(values, d, shapes[0], jt.Sampler(**LINEAR), kind="cubemap_layered", layer=LAYER, lod=lod)
    expected = oracle.splat(values, d, shapes, LAYER, cube=True, lod=lod, **LINEAR)
    for actual, level in zip(texture.levels, expected, strict=True):
        assert_close("sum", actual, level, np.abs(values).sum())


# ------------------------------------------------------------------------------------------------ building levels


@pytest.mark.parametrize(("size", "layers"), [(6, None), (5, 2)])
def test_levels_are_built_face_by_face(size, layers):
    texels = draw_levels(size, layers=layers)[0]
    texture = jax.jit(jt.build_mipmaps)(build((texels,)))
    assert texture.kind == build((texels,)).kind
    expected = oracle.mipmaps(texels, 2)
    for actual, level in zip(texture.levels, expected, strict=True):
        assert_close("float32", actual, level, np.abs(texels).max())


# ---------------------------------------------------------------------------------------------------- derivatives

WITHIN_FACES = {"seamless_cubemap": False, "address_mode": ("border", "wrap")}
DERIVATIVES = [
    # size, levels, layer, what drives the level, second derivatives, sampler
    (3, 1, None, None, BOTH, {}),
    (4, 1, 1, None, (FORWARD_OVER_REVERSE,), WITHIN_FACES),
    (2, None, None, "lod", (REVERSE_OVER_REVERSE,), LINEAR),
    (2, None, None, "footprint", (FORWARD_OVER_FORWARD,), LINEAR),
    (4, 1, None, "footprint", (FORWARD_OVER_REVERSE,), {"max_anisotropy": 2}),
]


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("size", "count", "layer", "drive", "order", "options"), DERIVATIVES)
def test_derivatives_equal_differences_of_the_oracle(size, count, layer, drive, order, options):
    rng = np.random.default_rng(zlib.crc32(repr((size, drive, options)).encode()))
    layers, n = (None if layer is None else 2), 64
    shared = draw_levels(size, layers=layers, count=count, dtype=np.float64), rng.normal(size=2)
    samples = {"coords": tuple(rng.normal(size=(3, n)))}
    if drive == "lod":
        samples["lod"] = rng.uniform(0, len(shared[0]) - 1, n)
    elif drive == "footprint":
        samples |= {d: tuple(rng.normal(size=(3, n)) * rng.uniform(0.2, 0.5, n)) for d in ("ddx", "ddy")}

    def read(shared, samples):
        rest = dict(samples)
        return jt.sample(build(*shared), rest.pop("coords"), jt.Sampler(**options), layer=layer, **rest)

    def reference(shared, samples):
        levels, border = shared
        options_of_the_oracle = {"cube": True, "border_color": border, "dtype": np.float64, **options}
        return oracle.sample(levels, layer=layer, **samples, **options_of_the_oracle)

    assert_derivatives(read, reference, shared, samples, order)


def direction_gradients(texels, d, **options):
    """Of the sum of all channels, a column a direction."""
    read = lambda *d: jt.sample(jt.cubemap(texels), d, jt.Sampler(**options)).sum()
    return np.stack(jax.jit(jax.grad(read, (0, 1, 2)))(*np.float32(d)))


NOWHERE = [(0, 0, 0), (NAN, NAN, NAN), (INF, 0, 0), (1, -INF, INF), (-INF, 3e38, 0), (0, INF, NAN)]


@pytest.mark.parametrize("seamless", [True, False])
def test_what_has_no_direction_has_no_gradient(seamless):
    texels = draw_levels(5, count=1)[0]
    gradient = direction_gradients(texels, np.float32(NOWHERE).T, seamless_cubemap=seamless, address_mode="wrap")
    assert_exact(gradient, np.zeros((3, len(NOWHERE))), np.float32)


def test_a_gradient_has_no_part_along_its_direction_nor_at_nan():
    d = np.stack(draw_directions(5, 64))
    d = d / np.abs(d).max(0)
    d[1, :8] = NAN
    gradient = direction_gradients(draw_levels(5, count=1)[0], d)
    assert_exact(gradient[1, :8], np.zeros(8), np.float32)
    assert np.abs(gradient).max(0).min() > 0
    assert_close("sum", np.nansum(d * gradient, axis=0), np.zeros(64), np.nansum(np.abs(d * gradient), axis=0))


def test_a_gradient_is_that_of_the_direction_by_its_length(x64):
    """Up to the largest lengths; texels are large, so that no gradient is subnormal."""
    d, texels = np.stack(draw_directions(5, 64)), np.float32(2.0**40) * draw_levels(5, count=1)[0]
    d = d / np.abs(d).max(0)
    expected = direction_gradients(texels, d)
    for length in (2.0**-60, 2.0**126, 1.99 * 2.0**127):
        gradient = direction_gradients(texels, np.float32(length) * d)
        assert_close("float32", np.float64(gradient) * length, expected, np.abs(expected).max())


def test_slopes_at_the_seams():
    """At an edge the slope is that of the face which the tie chooses; across it, from one texel into the other."""
    texels = np.arange(6, dtype=np.float32).reshape(6, 1, 1, 1)  # one texel a face: between +X and +Z from 0 to 4
    gradient = direction_gradients(texels, np.float32([(1, 0, 1)]).T)
    # du = dx / 2 - dz / 2 and dv = -dy / 2. Along u from +Z (4) to +X (0); along v half of each column, from 4 to
    # -Y (3) and from 0 to the corner, which is the mean of the other three.
    assert_close("float32", gradient[:, 0], [(0 - 4) / 2, ((3 - 4) + (7 / 3 - 0)) / 2 / -2, (4 - 0) / 2], 5.0)
    point = direction_gradients(texels, np.float32([(1, 0, 1)]).T, filter_mode="point")
    assert_exact(point, np.zeros((3, 1)), np.float32)


SPECIALS = {
    "NaN, infinity and zero": [NAN, INF, -INF, 0, -0.0, 1, -0.5],
    "huge and tiny": [3e38, 1e30, -1e30, 1e-30, 1],
}


@pytest.mark.parametrize("options", [{}, {"seamless_cubemap": False, "address_mode": "border"}])
def test_no_gradient_is_nan_for_special_inputs(options):
    """Special values first in the direction, then in its derivatives."""
    levels, sampler = draw_levels(3), jt.Sampler(**LINEAR, **options)

    @jax.jit
    def gradients(levels, d, ddx, ddy):
        def total(levels, border, d, ddx, ddy):
            return jt.sample(jt.cubemap(levels, border_color=border), d, sampler, ddx=ddx, ddy=ddy).sum()

        return jax.value_and_grad(total, tuple(range(5)))(levels, jnp.ones(2), d, ddx, ddy)

    wrong = []
    for name, special in SPECIALS.items():
        d = np.float32([*itertools.product(special, repeat=3)])
        d = np.resize(d, (len(SPECIALS["NaN, infinity and zero"]) ** 3, 3)).T  # one shape, one program
        x, y, z, one = *d, np.ones_like(d[0])
        for place, arguments in {
            "direction": ((x, y, z), (one, -one, 0 * one), (0 * one,) * 3),
            "derivatives": ((one, -one / 2, one / 4), (x, y, z), (y, x, one)),
        }.items():
            value, gradient = gradients(levels, *arguments)
            nan = sum(int(np.isnan(leaf).sum()) for leaf in jax.tree.leaves(gradient))
            if nan or not np.isfinite(value):
                wrong.append((name, place, float(value), nan))
    assert not wrong


# ----------------------------------------------------------------------------------------------------- transforms


def test_jit_and_vmap_over_cubemaps():
    rng = np.random.default_rng(0)
    stack = rng.normal(size=(3, *SHAPE)).astype(np.float32)
    d = tuple(rng.normal(size=(3, 3, 7)).astype(np.float32))

    @jax.value_and_grad
    def loss(texture, d):
        return jnp.sin(jt.sample(texture, d)).sum()

    got = jax.jit(lambda stack, d: jax.vmap(loss)(jax.vmap(jt.cubemap)(stack), d))(stack, d)
    gradient = jax.jit(loss)
    for k in range(3):
        expected = gradient(jt.cubemap(stack[k]), tuple(x[k] for x in d))
        assert_trees_close("reordered", jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], got), expected)
