"""Chains of mip levels: which levels a read takes, how it blends them, how they are built, and every derivative."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact, assert_trees_close, named

POINT, LINEAR = {"mipmap_filter_mode": "point"}, {"mipmap_filter_mode": "linear"}
INF, NAN = np.inf, np.nan
SAMPLES = 128


def is_cube(kind):
    return kind.startswith("cubemap")


def dimension(kind):
    """How many axes of a texture are halved from level to level."""
    return 2 if is_cube(kind) else int(kind[0])


def build(kind, levels, border_color=None):
    return getattr(jt, kind if is_cube(kind) else f"texture{kind}")(levels, border_color=border_color)


# ------------------------------------------------------------------------------------- reads of tables, as one program


class Read(NamedTuple):
    """The options of a sampler, and arrays: a chain, coordinates, and keywords of a read."""

    kind: str
    options: dict
    levels: tuple
    coords: tuple
    given: dict


def draw_levels(kind, sizes, count=None, dtype=np.float32, seed=0):
    """A chain whose levels have nothing to do with each other, so that a read shows which of them it took."""
    rng = np.random.default_rng(seed)
    front = (3,) * ("layered" in kind) + (6,) * is_cube(kind)
    shapes = oracle.chain_shapes((*front, *sizes[::-1], 2), dimension(kind), count)
    if np.issubdtype(dtype, np.integer):
        return tuple(rng.integers(0, np.iinfo(dtype).max, s, dtype, endpoint=True) for s in shapes)
    return tuple(rng.normal(size=s).astype(dtype) for s in shapes)


def draw_coords(kind, sizes):
    """Places of which the last are special; for a cube directions of any length, no texel's edge near.

    There rounding would decide about a point read.
    """
    rng = np.random.default_rng(1)
    if is_cube(kind):
        directions = rng.normal(size=(3, 8 * SAMPLES)).astype(np.float32)
        _, *uv = oracle.project(directions)
        clear = np.all([np.abs(w * sizes[0] - np.round(w * sizes[0])) > 1e-3 for w in uv], axis=0)
        return tuple(directions[:, clear][:, :SAMPLES] * np.exp2(rng.integers(-20, 20, SAMPLES)).astype(np.float32))
    coords, special = rng.uniform(-1, 2, (len(sizes), SAMPLES)).astype(np.float32), [NAN, INF, -INF, 3e38, -3e38, 0]
    for axis, x in enumerate(coords):
        x[SAMPLES - (axis + 1) * len(special) :][: len(special)] = special
    return tuple(coords)


def draw_footprints(coords, *special):
    """Ellipses from a small part of a texel to more than the texture, long and round ones, and special numbers."""
    rng = np.random.default_rng(3)
    length = np.max(np.abs(coords), 0) if len(coords) == 3 else 1
    sides = rng.normal(size=(2, len(coords), SAMPLES)) * length * 2.0 ** rng.uniform(-6, 0.5, (2, 1, SAMPLES))
    sides[0, -1, : len(special)], sides[1, :, len(special) // 2 : 8] = special, 0
    return {name: tuple(side.astype(np.float32)) for name, side in zip(("ddx", "ddy"), sides)}


def read(kind, *sizes, by=None, count=None, dtype=np.float32, unit=1, **options):
    """A row: what its level depends on, how many levels there are, and in which unit of coordinates it is read."""
    sizes, rng = sizes * 2 if is_cube(kind) else sizes, np.random.default_rng(4)
    levels, coords, given = draw_levels(kind, sizes, count, dtype), draw_coords(kind, sizes), {}
    if by == "lod":
        given["lod"] = rng.uniform(-1, len(levels), SAMPLES).astype(np.float32)
        given["lod"][:12] = NAN, INF, -INF, -3, 99, 0, -0.0, 1, 2, 0.25, 1.75, 3e38
    elif by == "footprint":
        known = np.abs(coords) < 2**30
        known[:, 8] = False  # of a cube no direction, which has no footprint
        coords = tuple(np.where(known, coords, 0).astype(np.float32))
        # Along an infinite side no read has a place, so that there is one alone.
        given = draw_footprints(coords, *(NAN, 0) * 2, *[INF, -INF] * (options.get("max_anisotropy", 1) == 1))
    if "layered" in kind:
        given["layer"] = rng.integers(-1, 5, SAMPLES, np.int32)
    coords, given = jax.tree.map(lambda a: a * a.dtype.type(unit) if a.dtype == np.float32 else a, (coords, given))
    return Read(kind, options, levels, coords, given)


COLOR = np.float32([1.5, -2.0])


def assert_reads(rows):
    """All reads of a table are those of the oracle."""
    colors = [None if row.levels[0].dtype.kind in "iu" else COLOR for row in rows]

    @jax.jit
    def run(arrays):
        return [
            jt.sample(build(row.kind, levels, color), coords, jt.Sampler(**row.options), **given)
            for row, color, (levels, coords, given) in zip(rows, colors, arrays)
        ]

    for row, color, found in zip(rows, colors, run([row[2:] for row in rows])):
        kind, options, levels, coords, given = row
        expected = oracle.sample(levels, coords, cube=is_cube(kind), border_color=color, **given, **options)
        mode = options.get("read_mode", "element")
        dtype = np.dtype(np.float32) if mode == "normalized_float" else levels[0].dtype
        between = options.get("mipmap_filter_mode", "point")
        with named((kind, levels[0].shape, [*given], options)):
            if options.get("filter_mode") == between == "point" and "ddx" not in given:
                assert_exact(found, expected, dtype)
            else:
                assert found.dtype == dtype
                scale = max(np.abs(oracle.decode(level, mode)).max() for level in levels)
                assert_close(dtype.name, found, expected, max(scale, np.abs(COLOR).max()))


def assert_splats(rows):
    """All splats with the coordinates of reads are those of the oracle, at every level."""
    values = np.random.default_rng(5).normal(size=(SAMPLES, 2)).astype(np.float32)
    shapes = [[level.shape for level in row.levels] for row in rows]

    @jax.jit
    def run(arrays):
        return [
            jt.splat(values, coords, of[0], jt.Sampler(**row.options), kind=row.kind, **given).levels
            for row, of, (coords, given) in zip(rows, shapes, arrays)
        ]

    for row, of, found in zip(rows, shapes, run([row[3:] for row in rows])):
        with named((row.kind, [*row.given], row.options)):
            expected = oracle.splat(values, row.coords, of, cube=is_cube(row.kind), **row.given, **row.options)
            for level, wanted in zip(found, expected, strict=True):
                assert_close("sum", level, wanted, np.abs(values).sum())


READS = [
    # Sizes of powers of two, and others: where a level starts is found in two ways.
    read("1d", 11, by="lod", **LINEAR, filter_mode="cubic", address_mode="border"),
    read("1d", 16, by="lod", **LINEAR, filter_mode="point", address_mode="wrap"),
    read("1d", 1, by="lod", **LINEAR, address_mode="wrap"),
    read("2d", 7, 10, by="lod", **POINT, filter_mode="point", address_mode=("wrap", "border")),
    read("2d", 16, 8, by="lod", count=3, **LINEAR, address_mode=("border", "wrap")),
    read("2d", 5, 1, by="lod", **LINEAR, address_mode="wrap"),
    read("3d", 8, 4, 2, by="lod", **LINEAR, address_mode=("wrap", "border", "mirror")),
    read("1d_layered", 16, by="lod", **LINEAR),
    read("2d", 7, 10, by="footprint", count=1, unit=7, max_anisotropy=4, normalized_coords=False),
    read("3d", 5, 3, 8, by="footprint", **POINT, filter_mode="point", address_mode=("wrap", "border", "clamp")),
    read("2d_layered", 7, 10, by="footprint", **LINEAR, address_mode=("reflect", "border"), max_anisotropy=3),
    read("1d", 11, by="lod", dtype=np.float16, **LINEAR),
    read("1d", 11, by="lod", dtype=np.uint8, **LINEAR, read_mode="normalized_float"),
    read("1d", 11, by="lod", dtype=np.int32, filter_mode="point"),
]


def test_reads_equal_the_oracle():
    assert_reads(READS)


def test_coordinates_and_levels_of_detail_broadcast():
    texture = build("2d", draw_levels("2d", (7, 10)))
    x, y, lod = np.zeros((4, 1, 1), np.float32), np.zeros(3, np.float32), np.zeros((2, 1), np.float32)
    for coords, given, shape in (
        ((x, y), {"lod": lod}, (4, 2, 3, 2)),
        ((x, y), {"ddx": (lod, 0.0), "ddy": (0.0, 0.0)}, (4, 2, 3, 2)),
        ((0.5, 0.5), {"lod": y}, (3, 2)),
        ((0.5, 0.5), {"lod": y[:0]}, (0, 2)),
    ):
        assert jax.eval_shape(lambda t, c, g: jt.sample(t, c, **g), texture, coords, given).shape == shape


def test_what_is_not_taken_does_not_count():
    """Texels of another level, and the level of detail where there is one level, or a whole one: nothing is rounded."""
    poisoned = tuple(np.full((n, 1), value, np.float32) for n, value in zip((8, 4, 2, 1), (1, 1, NAN, 1)))
    levels, coords = draw_levels("2d", (7, 10)), draw_coords("2d", (7, 10))
    points = jt.Sampler(filter_mode="point", **LINEAR)
    moved = jt.Sampler(filter_mode="point", mipmap_level_bias=0.5, min_mipmap_level_clamp=1.0, **LINEAR)

    @jax.jit
    def run(poisoned, levels, coords, lod):
        blend = lambda **mode: jt.sample(jt.texture1d(poisoned), (0.4,), jt.Sampler(**mode), lod=lod)
        read = lambda texels, how=points, **given: jt.sample(jt.texture2d(texels), coords, how, **given)
        ways = [(read(levels[0], moved, lod=lod[2]), read(levels[0]))]
        ways += [(read(levels, lod=k + 0 * lod[0]), read(levels[k])) for k in (0, 2)]
        return (blend(**POINT), blend(**LINEAR)), ways

    blends, ways = run(poisoned, levels, coords, np.float32([0, 0.75, 3, 1.5]))
    for values in blends:
        np.testing.assert_array_equal(np.isnan(values[:, 0]), [False, False, False, True])
    for one, other in ways:
        assert_exact(one, other, np.float32)


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
    "clamps come after the bias": (LINEAR | {"mipmap_level_bias": 1.0, "max_mipmap_level_clamp": 1.5}, {0: 1, 1: 1.5}),
    "the minimum wins": (LINEAR | {"min_mipmap_level_clamp": 2.0, "max_mipmap_level_clamp": 1.0}, {0: 2, 3: 2, NAN: 2}),
    "the minimum lies beyond the chain": (LINEAR | {"min_mipmap_level_clamp": 7.0}, {0: 3, 2: 3}),
    "a maximum of 0 reads the finest level": (LINEAR | {"max_mipmap_level_clamp": 0.0}, {0: 0, 2: 0, INF: 0}),
    "clamps come before the rounding": (POINT | {"max_mipmap_level_clamp": 1.5}, {1: 1, 3: 2}),
    "without a level of detail it is 0": (LINEAR, {None: 0}),
    "then clamps alone hold": (LINEAR | {"min_mipmap_level_clamp": 1.5, "mipmap_level_bias": 2.0}, {None: 1.5}),
}
# The texels of level l are l, so that a blend reads as its level of detail.
FLAT_LINE = tuple(np.full((n, 1), level, np.float32) for level, n in enumerate((8, 4, 2, 1)))


def flat(values):
    """A chain of 8 by 4 texels, of one number a level."""
    shapes = oracle.chain_shapes((4, 8, 1), 2)
    return tuple(np.full(shape, value, np.float32) for shape, value in zip(shapes, values, strict=True))


def test_level_of_detail():
    lods = {fact: None if None in table else np.float32([*table]) for fact, (_, table) in LODS.items()}
    read = lambda levels, options, lod: jt.sample(jt.texture1d(levels), (0.3,), jt.Sampler(**options), lod=lod)
    run = jax.jit(lambda levels, lods: {fact: read(levels, LODS[fact][0], lod) for fact, lod in lods.items()})
    expected = {fact: np.float32([*table.values()]).reshape(-1, 1) for fact, (_, table) in LODS.items()}
    found = {fact: np.reshape(values, (-1, 1)) for fact, values in run(FLAT_LINE, lods).items()}
    assert_trees_close("float32", found, expected, 3.0)


# Of a texture 8 texels wide and 4 high: derivatives in texels, and the level of detail that they ask for.
ELLIPSES = {
    "the longer of two": ({}, (1, 0), (0, 4), 2),
    "a length over both axes": ({}, (3, 4), (1, 1), np.log2(5)),
    "less than a texel": ({}, (0.5, 0), (0, 0.25), 0),
    "more than the texture": ({}, (50, 0), (0, 0), 3),
    "none, with a minimum": ({"min_mipmap_level_clamp": 0.25, "mipmap_level_bias": 0.5}, (0, 0), (0, 0), 0.25),
    "NaN acts as 0": ({}, (NAN, 2), (NAN, NAN), 1),
    "minus infinity and NaN": ({}, (0, 0), (-INF, NAN), 3),
    "a bias": ({"min_mipmap_level_clamp": 0.25, "mipmap_level_bias": 0.5}, (2, 0), (0, 1), 1.5),
    "long: the shorter": ({"max_anisotropy": 4}, (8, 0), (0, 2), 1),
    "too long: the longer, cut": ({"max_anisotropy": 2}, (8, 0), (0, 1), 2),
    "a line": ({"max_anisotropy": 4}, (8, 0), (0, 0), 1),
    "none, long": ({"max_anisotropy": 4}, (0, 0), (0, 0), 0),
    "long infinity": ({"max_anisotropy": 2}, (INF, 0), (0, 1), 3),
    "infinity both ways": ({"max_anisotropy": 4}, (INF, 0), (0, -INF), 3),
    "long, NaN acts as 0": ({"max_anisotropy": 2}, (NAN, 0), (4, NAN), 1),
}


def test_footprints_and_their_level_of_detail():
    samplers = {str(options): options for options, *_ in ELLIPSES.values()}
    rows = {name: [row[1:] for row in ELLIPSES.values() if str(row[0]) == name] for name in samplers}
    sides = {name: np.float32([row[:2] for row in table]).transpose(1, 2, 0) for name, table in rows.items()}

    @jax.jit
    def run(levels, sides):
        footprint = lambda side: {"ddx": (side[0, 0] / 8, side[0, 1] / 4), "ddy": (side[1, 0] / 8, side[1, 1] / 4)}
        return {
            name: jt.sample(jt.texture2d(levels), (0.3, 0.6), jt.Sampler(**LINEAR, **options), **footprint(sides[name]))
            for name, options in samplers.items()
        }

    expected = {name: np.float32([row[2:] for row in table]) for name, table in rows.items()}
    assert_trees_close("float32", run(flat(range(4)), sides), expected, 3.0)


# ----------------------------------------------------------------------------------------- splat, fetch, gather

SPLATS = [
    read("1d", 11, by="lod", **LINEAR, filter_mode="cubic", address_mode="border"),
    read("2d", 7, 10, by="footprint", **LINEAR, address_mode=("border", "clamp"), max_anisotropy=2),
    read("2d_layered", 8, 4, by="lod", **POINT, filter_mode="point", address_mode="mirror"),
]


def test_splats_equal_the_oracle():
    assert_splats(SPLATS)
    one = jax.eval_shape(lambda v, x: jt.splat(v, (x,), (8, 1)), np.ones((3, 1), np.float32), np.ones(3, np.float32))
    assert one.num_levels == 1  # without a level of detail


def test_fetches_within_a_level_and_gathers_of_the_finest():
    chains, indices = {}, {}
    for kind, sizes in (("1d", (11,)), ("2d", (7, 10)), ("3d", (5, 3, 8)), ("2d_layered", (7, 10))):
        chains[kind] = draw_levels(kind, sizes)
        indices[kind] = [np.random.default_rng(k).integers(-2, n + 2, 64, np.int32) for k, n in enumerate((*sizes, 3))]
    coords = draw_coords("2d", (7, 10))

    @jax.jit
    def run(chains, indices, coords):
        texture = {kind: build(kind, levels) for kind, levels in chains.items()}
        places = {kind: (at[:-1], {"layer": at[-1]} if "layered" in kind else {}) for kind, at in indices.items()}
        fetch = lambda kind, level, at, where: jt.fetch(texture[kind], tuple(at), **where, level=level)
        fetched = {(kind, level): fetch(kind, level, *places[kind]) for kind in chains for level in (1, 2)}
        return fetched, jt.gather(texture["2d"], coords, component=1)

    fetched, gathered = run(chains, indices, coords)
    for (kind, level), found in fetched.items():
        *at, layer = indices[kind]
        with named((kind, level)):
            layer = layer if "layered" in kind else None
            assert_exact(found, oracle.fetch(chains[kind][level], at, layer), np.float32)
    assert_exact(gathered, oracle.gather(chains["2d"][0], coords, component=1), np.float32)


# ---------------------------------------------------------------------------------------------- building levels


def test_levels_are_built_by_a_box():
    """Levels are those of a box filter: of kinds, sizes, how many levels are asked for, and dtypes."""
    rows = (
        *(("1d", (11,), None), ("1d", (1,), None), ("2d", (8, 4), None), ("2d", (7, 10), None), ("2d", (1, 5), 2)),
        *(("3d", (5, 3, 4), None), ("1d_layered", (6,), None), ("cubemap_layered", (5, 5), None)),
    )
    rows = [*((*row, np.float32) for row in rows), *(("2d", (7, 5), None, t) for t in (jnp.float16, jnp.bfloat16))]
    texels = [draw_levels(kind, sizes, 1, dtype)[0] for kind, sizes, _, dtype in rows]

    @jax.jit
    def run(texels):
        built = (build(kind, array, border_color=2.0) for (kind, *_), array in zip(rows, texels))
        chains = [jt.build_mipmaps(texture, count) for texture, (*_, count, _) in zip(built, rows)]
        return [(chain, chain.levels) for chain in chains]

    for (kind, sizes, count, dtype), array, (chain, levels) in zip(rows, texels, run(texels)):
        with named((kind, sizes, dtype)):
            assert (chain.kind, chain.dtype, float(chain.border_color)) == (kind, dtype, 2.0)
            assert_exact(levels[0], array, dtype)
            expected = oracle.mipmaps(array.astype(np.float64), dimension(kind), count)
            for level, wanted in zip(levels, expected, strict=True):
                # Of 16 bits, each level is rounded.
                assert_close(np.dtype(dtype).name, level, wanted, len(expected) * np.abs(wanted).max())


def test_means_of_the_largest_numbers_stay_among_them():
    """Along axes of even and odd sizes. XLA may not add texels before it halves them."""
    largest = {dtype: float(jnp.finfo(dtype).max) for dtype in ("float16", "bfloat16", "float32")}
    texels = {d: np.broadcast_to(np.float32([n, -n, n / 2, 0]), (75, 46, 4)).astype(d) for d, n in largest.items()}
    run = jax.jit(lambda texels: {d: jt.build_mipmaps(jt.texture2d(t)).levels for d, t in texels.items()})
    for dtype, levels in run(texels).items():
        assert len(levels) == 7
        for level in levels:
            assert_close(dtype, level, np.broadcast_to(texels[dtype][:1, :1], level.shape), largest[dtype])


def test_levels_are_linear_in_the_texels(x64):
    """Reverse mode is the transpose of the build."""
    rng = np.random.default_rng(0)
    texels, tangent = rng.normal(size=(2, 5, 7, 3))
    cotangent = tuple(rng.normal(size=s) for s in oracle.chain_shapes((5, 7, 3), 2))
    build_levels = lambda texels: jt.build_mipmaps(jt.texture2d(texels)).levels
    pulled = jax.jit(lambda texels, cotangent: jax.vjp(build_levels, texels)[1](cotangent)[0])(texels, cotangent)
    dot = sum(np.vdot(a, b) for a, b in zip(cotangent, oracle.mipmaps(tangent, 2)))
    assert_close("float64", np.vdot(pulled, tangent), dot, abs(dot))


# --------------------------------------------------------------------------------------------------- derivatives


@pytest.mark.slow
def test_derivatives_equal_differences(x64):
    """To the second order, in all levels, the border color, and what each sample has of its own, as one function.

    And of a splat into levels: in values, coordinates and levels of detail.
    """
    places, sides = ([0.31, 0.79], [0.42, 0.94]), {"ddx": ([0.7, 0.11], [0.2, 0.33]), "ddy": ([0.1, 0.4], [-0.3, 0.26])}
    long = {**LINEAR, "address_mode": ("border", "wrap"), "max_anisotropy": 2}
    biased = {**LINEAR, "address_mode": "border", "mipmap_level_bias": 0.25}
    around, turned = ([1.0, -0.4], [0.3, 1.0], [-0.62, 0.17]), ([0.9, 0.1], [0.3, 0.2], [1.1, -0.8])
    # Kinds, sizes, options, the coordinates of two samples away from kinks, and what drives their levels.
    rows = [
        ("2d", (4, 4), long, places, sides),
        ("1d", (8,), biased, places[:1], {"lod": [0.3, 1.4]}),
        ("cubemap", (2, 2), LINEAR, around, {"ddx": turned, "ddy": ([0.1, 0.3], [0.4, 0.2], [-0.2, 0.5])}),
    ]
    as_float64 = lambda tree: jax.tree.map(np.float64, tree, is_leaf=lambda a: isinstance(a, list))
    primals = [
        (draw_levels(kind, sizes, dtype=np.float64), np.float64([0.4, -1.3]), *as_float64(tuple(samples)))
        for kind, sizes, _, *samples in rows
    ]
    splatted = np.random.default_rng(0).normal(size=(3, 2)), *np.float64([[0.31, 0.52, 0.95], [0.3, 1.6, 0.8]])

    def together(splatted, *primals):
        values, x, lod = splatted
        spread = jt.splat(values, (x,), (5, 2), jt.Sampler(address_mode="border", **LINEAR), lod=lod)
        found = [
            jt.sample(build(kind, levels, color), coords, jt.Sampler(**options), **given)
            for (kind, _, options, *_), (levels, color, coords, given) in zip(rows, primals, strict=True)
        ]
        return jnp.concatenate([*spread.levels, *found])

    assert_derivatives(together, splatted, *primals)


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


def test_slopes_in_the_level_of_detail():
    lods = {fact: np.float32([*table]) for fact, (_, table) in SLOPES.items()}

    @jax.jit
    def run(levels, lods):
        sampler = {fact: jt.Sampler(**(LINEAR | options)) for fact, (options, _) in SLOPES.items()}
        read = lambda fact, lod: jt.sample(jt.texture1d(levels), (0.3,), sampler[fact], lod=lod)[..., 0]
        slope = lambda fact, lod: jax.jvp(lambda lod: read(fact, lod), (lod,), (jnp.ones_like(lod),))[1]
        return {fact: slope(fact, lod) for fact, lod in lods.items()}

    expected = {fact: np.float32([*table.values()]) for fact, (_, table) in SLOPES.items()}
    assert_trees_close("float32", run(LEVELS, lods), expected, 70.0)


# Derivatives of a texture 8 texels wide and 4 high: what must not have a gradient, and what must have a finite one.
POINTLESS = [((0, 0), (0, 0)), ((INF, 0), (0, 0)), ((NAN, NAN), (NAN, NAN)), ((0, -INF), (INF, 0.5))]
FINITE = [((0.5, 0), (0, 0)), ((0.5, NAN), (0.1, 0)), ((0, 0), (NAN, 0.5)), ((0.2, 0.1), (0.2, 0.1))]
TIE = ((0.375, 0), (0, 0.75))  # three texels each, level log2(3): longer by a factor, it moves by the factor's log2


def test_gradients_of_a_footprint_at_its_kinks():
    """At a tie the gradients of both together are the slope of both; which of them has it is left open."""

    @jax.jit
    def run(levels, rates):
        def total(rates, anisotropy):
            sides = {"ddx": tuple(rates[:, 0].T), "ddy": tuple(rates[:, 1].T)}
            return jt.sample(jt.texture2d(levels), (0.3, 0.6), jt.Sampler(max_anisotropy=anisotropy, **LINEAR), **sides)

        return {anisotropy: jax.grad(lambda r, a=anisotropy: total(r, a).sum())(rates) for anisotropy in (1, 2)}

    for anisotropy, gradients in run(flat((0, 10, 30, 70)), np.float32([*POINTLESS, *FINITE, TIE])).items():
        with named(f"anisotropy {anisotropy}"):
            np.testing.assert_array_equal(gradients[: len(POINTLESS)], 0)
            assert np.isfinite(gradients).all()
            assert_close("float32", np.vdot(gradients[-1], TIE), 20 / np.log(2), 70.0)


def test_no_gradient_is_nan_for_special_inputs():
    """By a level of detail, and by a long footprint: special coordinates first, then sides."""
    special = np.float32([NAN, INF, -INF, 1e30, -1e30, 0.0, -0.0, 1e-40, 0.3])
    a, b = np.repeat(special, 9), np.tile(special, 9)
    middle, zero = np.full_like(a, 0.4), np.zeros_like(a)
    columns = [(a, b, middle, middle, middle, middle), (middle, middle, a, middle, b, middle)]
    columns += [(middle, middle, a, b, b, a), (middle, middle, a, b, zero, zero)]

    @jax.jit
    def run(levels, border, columns):
        def by_lod(levels, border, columns):
            texture = jt.texture1d(tuple(level[0] for level in levels), border_color=border)
            sampler = jt.Sampler(address_mode="border", **LINEAR)
            return jt.sample(texture, columns[:1], sampler, lod=columns[1]).sum()

        def by_footprint(levels, border, columns):
            sampler = jt.Sampler(address_mode=("border", "wrap"), max_anisotropy=2, **LINEAR)
            texture, (ddx, ddy) = jt.texture2d(levels, border_color=border), (columns[2:4], columns[4:])
            return jt.sample(texture, columns[:2], sampler, ddx=ddx, ddy=ddy).sum()

        return [jax.value_and_grad(f, (0, 1, 2))(levels, border, columns) for f in (by_lod, by_footprint)]

    given = draw_levels("2d", (4, 3)), np.ones(2, np.float32), tuple(map(np.concatenate, zip(*columns)))
    for value, gradients in run(*given):
        assert np.isfinite(value)
        assert not any(np.isnan(leaf).any() for leaf in jax.tree.leaves(gradients))


def test_integer_levels_have_no_gradient_and_their_level_of_detail_has_one():
    codes = tuple(np.full((n, 1), v, np.uint8) for n, v in ((2, 51), (1, 255)))
    sampler = jt.Sampler(read_mode="normalized_float", **LINEAR)
    read = lambda texture, lod: jt.sample(texture, (0.3,), sampler, lod=lod)[0]
    texture, slope = jax.jit(jax.grad(read, (0, 1), allow_int=True))(jt.texture1d(codes), 0.5)
    assert all(leaf.dtype == jax.dtypes.float0 for leaf in jax.tree.leaves(texture))
    assert_close("float32", slope, 0.8, 1.0)
