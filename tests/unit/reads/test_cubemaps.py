"""Cubemaps: which face and texel a direction reads, what happens at the seams, and every derivative."""

import itertools

import jax
import numpy as np

import jaxtex as jt
from tests.support.drawn import floats, given
from tests.support.tolerances import assert_close, assert_exact, named
from tests.unit.reads.test_mipmaps import LINEAR, POINT, assert_reads, assert_splats, draw_coords, draw_levels, read

INF, NAN = np.inf, np.nan
WITHIN = {"seamless_cubemap": False}

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


def test_faces_and_texels():
    directions = tuple(np.float32([row for table in FACTS.values() for row in table]).T)
    samplers = [jt.Sampler(filter_mode="point", seamless_cubemap=seamless) for seamless in (True, False)]
    run = jax.jit(lambda texels, d: [jt.sample(jt.cubemap(texels), d, sampler) for sampler in samplers])
    expected = np.float32([NUMBERED[place] for table in FACTS.values() for place in table.values()])
    for found in run(NUMBERED, directions):
        assert_exact(found, expected, np.float32)


def test_seams_by_hand():
    """One texel a face, so that a face holds its number: edges are means of two, corners of three."""
    means = {(1, 0, 1): 2, (1, 1, 0): 1, (-1, 0, -1): 3, (0, -1, 1): 3.5, (1, 1, 1): 2, (-1, -1, -1): 3, (1, 0, 0): 0}
    halves = np.zeros((6, 2, 2, 1), np.float32)
    halves[4, :, 0], halves[4, :, 1] = 1, 3

    @jax.jit
    def run(texels, directions, halves, x):
        wrapped = jt.Sampler(address_mode=("wrap", "clamp"), **WITHIN)
        reads = [
            jt.sample(jt.cubemap(texels), directions, jt.Sampler(seamless_cubemap=is_on)) for is_on in (True, False)
        ]
        return [*reads, jt.sample(jt.cubemap(halves), (x, 0.25, 1.0), wrapped)]

    numbers = np.arange(6, dtype=np.float32).reshape(6, 1, 1, 1)
    values, inside, wrapped = run(numbers, tuple(np.float32([*means]).T), halves, np.float32([1, -1, 0.5]))
    assert_close("float32", values[:, 0], [*means.values()], 5.0)
    assert_exact(inside[:, 0], np.round([4, 2, 5, 4, 4, 5, 0]), np.float32)
    assert_exact(wrapped[:, 0], [2, 2, 3], np.float32)  # the far side of the same face


READS = [
    # Seamless reads ignore address modes and the border color.
    read("cubemap", 3, address_mode="border"),
    read("cubemap_layered", 5, **WITHIN, address_mode=("wrap", "border")),
    read("cubemap", 6, by="lod", filter_mode="point", **POINT),
    read("cubemap_layered", 4, by="lod", **LINEAR),
    read("cubemap_layered", 6, by="footprint", **LINEAR, max_anisotropy=2),
    read("cubemap", 2, by="footprint", **LINEAR),
]


def test_reads_equal_the_oracle():
    assert_reads(READS)


def test_splats_equal_the_oracle():
    within = read("cubemap", 5, count=1, **WITHIN, address_mode=("border", "wrap"))
    assert_splats([within, read("cubemap_layered", 4, by="lod", **LINEAR)])


# Every edge of a cube is an axis and the signs of the two others; every corner three signs.
EDGES = [(axis, a, b) for axis in range(3) for a in (-1, 1) for b in (-1, 1)]
CORNERS = [*itertools.product((-1, 1), repeat=3)]
A_HAIR = 1 + 2.0**-22  # moves a position by less than rounding does
sample = jax.jit(lambda texels, d: jt.sample(jt.cubemap(texels), d))


@given(texels=floats(6, 5, 5, 2), along=floats(len(EDGES), low=-1, high=1))
def test_all_sides_of_an_edge_and_of_a_corner_agree(texels, along):
    """At every one: seen from either face, a hair away from it, the same value."""
    sides = np.ones((3, len(EDGES) + len(CORNERS), 3))
    for k, (axis, a, b) in enumerate(EDGES):
        sides[:, k, axis], sides[:, k, (axis + 1) % 3], sides[:, k, (axis + 2) % 3] = along[k], a, b
        sides[1, k, (axis + 1) % 3] *= A_HAIR
        sides[2, k, (axis + 2) % 3] *= A_HAIR
    for axis in range(3):
        sides[axis, len(EDGES) :] = CORNERS
        sides[axis, len(EDGES) :, axis] *= A_HAIR
    one, two, three = sample(texels, tuple(np.float32(sides).transpose(2, 0, 1)))
    assert_close("float32", one, two, 8.0)
    assert_close("float32", two, three, 8.0)


NOWHERE = [(0, 0, 0), (NAN, NAN, NAN), (INF, 0, 0), (1, -INF, INF), (-INF, 3e38, 0), (0, INF, NAN)]
LENGTHS = (2.0**-60, 2.0**126, 1.99 * 2.0**127)


def test_gradients_of_directions():
    """Of the sum of all channels, a column a direction. Texels are large, so that no gradient is subnormal."""
    texels = np.float32(2.0**40) * draw_levels("cubemap", (5, 5), 1)[0]
    numbers, corner = np.arange(6, dtype=np.float32).reshape(6, 1, 1, 1), np.float32([(1, 0, 1)]).T
    nowhere, d = np.float32(NOWHERE).T, np.stack(draw_coords("cubemap", (5, 5)))[:, :64]
    d = d / np.abs(d).max(0)
    with_nan = np.where((np.arange(3)[:, None] == 1) & (np.arange(64) < 8), NAN, d)
    parts = {"nowhere": nowhere, "NaN": with_nan, "1": d} | {str(n): np.float32(n) * d for n in LENGTHS}
    rows = {
        "seamless": (texels, np.float32(np.concatenate([*parts.values()], 1)), {}),
        "within faces": (texels, nowhere, {**WITHIN, "address_mode": "wrap"}),
        "seam": (numbers, corner, {}),
        "point": (numbers, corner, {"filter_mode": "point"}),
    }

    @jax.jit
    def run(arrays):
        read = lambda d, texels, options: jt.sample(jt.cubemap(texels), tuple(d), jt.Sampler(**options)).sum()
        return {name: jax.grad(read)(d, texels, rows[name][2]) for name, (texels, d) in arrays.items()}

    found = jax.device_get(run({name: row[:2] for name, row in rows.items()}))
    ends = np.cumsum([part.shape[1] for part in parts.values()])[:-1]
    found |= dict(zip(parts, np.split(found["seamless"], ends, axis=1), strict=True))
    for name in ("nowhere", "within faces", "point"):
        with named(name):
            assert_exact(found[name], np.zeros_like(found[name]), np.float32)
    # A gradient has no part along its direction, nor at NaN.
    gradient = found["NaN"]
    assert_exact(gradient[1, :8], np.zeros(8), np.float32)
    assert np.abs(gradient).max(0).min() > 0
    along = np.where(np.isnan(with_nan), 0, with_nan) * gradient
    assert_close("sum", along.sum(0), np.zeros(along.shape[1]), np.abs(along).sum(0))
    # It is that of the direction by its length, up to the largest lengths.
    for length in LENGTHS:
        with named(length):
            gradient = np.float64(found[str(length)]) * length
            assert_close("float32", gradient, found["1"], np.abs(found["1"]).max())
    # At an edge the slope is that of the face which the tie chooses; across it, from one texel into the other. One
    # texel a face: du = dx / 2 - dz / 2 and dv = -dy / 2. Along u from +Z (4) to +X (0); along v half of each column,
    # from 4 to -Y (3) and from 0 to the corner, which is the mean of the other three.
    slopes = [(0 - 4) / 2, ((3 - 4) + (7 / 3 - 0)) / 2 / -2, (4 - 0) / 2]
    assert_close("float32", found["seam"][:, 0], slopes, 5.0)


def test_no_gradient_is_nan_for_special_inputs():
    """Special values first in the direction, then in its derivatives."""
    special = [[NAN, INF, -INF, 0, -0.0, 1, -0.5], [3e38, 1e30, -1e30, 1e-30, 1]]
    x, y, z = np.float32([d for values in special for d in itertools.product(values, repeat=3)]).T
    one, zero = np.ones_like(x), np.zeros_like(x)
    columns = [(x, y, z, one, -one, zero, zero, zero, zero), (one, -one / 2, one / 4, x, y, z, y, x, one)]

    @jax.jit
    def run(levels, border, columns):
        def total(levels, border, columns):
            d, ddx, ddy = (columns[k : k + 3] for k in (0, 3, 6))
            return jt.sample(jt.cubemap(levels, border_color=border), d, jt.Sampler(**LINEAR), ddx=ddx, ddy=ddy).sum()

        return jax.value_and_grad(total, (0, 1, 2))(levels, border, columns)

    given = draw_levels("cubemap", (3, 3)), np.ones(2, np.float32), tuple(map(np.concatenate, zip(*columns)))
    value, gradients = run(*given)
    assert np.isfinite(value)
    assert not any(np.isnan(leaf).any() for leaf in jax.tree.leaves(gradients))
