"""Levels of detail that derivatives choose, places of directions on a cube, and long footprints, against a texture unit
(tests/data).

Levels, ratios and weights of long footprints follow the unit nearly everywhere; the direction of the reads is that of
the unit. Each test of them bounds what is left, and prints it: `pytest -n 0 -s`.
"""

import dataclasses
import functools
import zlib

import jax
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._hardware.arithmetic import reciprocal, to_face
from tests.support import recordings
from tests.support.tolerances import assert_exact

recorded = functools.partial(recordings.arrays, "derivatives_unit")
SIZE = 8192  # of the cubemap whose texels told where directions meet it
BUILD = {"1d": jt.texture1d, "2d": jt.texture2d, "3d": jt.texture3d, "cube": jt.cubemap}
# Kind, sizes, and an anisotropy; sizes that are powers of two differ in degree.
RECORDED = [
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("2d/64x64", "3d/16x16x16", "1d/64/2")),
    *("1d/64", "1d/100", "2d/100x60", "3d/32x16x8", "cube/64x64", "3d/16x16x16/2", "1d/64/16", "3d/16x16x16/16"),
]
BIASES = {2: 0.25, 16: 0.5}


@pytest.mark.parametrize("name", RECORDED)
def test_levels_of_derivatives(name):
    """Level k of the texture is k throughout, so the filter of texels does not matter.

    Sizes that are no powers of two, NaN and infinities are among them.
    """
    kind, sizes, *anisotropy = name.split("/")
    sizes = tuple(map(int, sizes.split("x")))[::-1]
    faces = (6,) if kind == "cube" else ()
    chain = tuple(
        np.full((*faces, *(max(n >> k, 1) for n in sizes), 1), k, np.float32) for k in range(max(sizes).bit_length())
    )
    sampler = jt.Sampler(address_mode="wrap", filter_mode="point", mipmap_filter_mode="linear", arithmetic="hardware")
    if anisotropy:
        most = int(anisotropy[0])
        sampler = dataclasses.replace(sampler, max_anisotropy=most, mipmap_level_bias=BIASES[most])
    coords, ddx, ddy = (tuple(recorded()[f"{name}/{part}"].T) for part in ("coords", "ddx", "ddy"))
    read = jax.jit(lambda c, x, y: jt.sample(BUILD[kind](chain), c, sampler, ddx=x, ddy=y)[:, 0])
    assert_exact(read(coords, ddx, ddy), recorded()[f"{name}/lod"] / np.float32(256))


def test_where_directions_meet_a_cube():
    """To 1/256 of a texel, under clamp: ties, short and long directions, subnormal numbers, infinities and NaN."""
    face, u, v = map(np.asarray, jax.jit(to_face)(tuple(recorded()["directions/coords"].T)))
    steps = [(np.floor(w.astype(np.float64) * 2**21) * SIZE * 256 + 2**20) // 2**21 - 128 for w in (u, v)]
    place = np.stack([face, *(np.clip(s, 0, 256 * (SIZE - 1)) for s in steps)], axis=1)
    assert_exact(place.astype(np.int32), recorded()["directions/place"])


jitted_reciprocal = jax.jit(reciprocal)


@pytest.mark.slow
def test_reciprocals_of_all_significands():
    """By the checksum of what the GPU returned."""
    numbers = np.arange(127 << 23, 128 << 23, dtype=np.int32).view(np.float32)
    found = np.asarray(jitted_reciprocal(numbers)).view(np.int32)
    assert zlib.crc32(found.astype("<i4").tobytes()) == recorded()["reciprocals/crc32"]


@pytest.mark.parametrize("exponent", [-126, -100, 50, 125])
def test_reciprocals_of_other_exponents(exponent):
    numbers = np.linspace(1, 2, 1000, endpoint=False, dtype=np.float32)
    found = jitted_reciprocal(np.ldexp(numbers, exponent))
    assert_exact(found, np.ldexp(np.asarray(jitted_reciprocal(numbers)), -exponent))


footprints = functools.partial(recordings.arrays, "anisotropy_unit")
SIDE = 64
HARDWARE = functools.partial(jt.Sampler, address_mode="wrap", arithmetic="hardware")
# Texels that tell their column, and those that tell their row: channel k is 1 in the k-th.
COLUMNS = np.ascontiguousarray(np.broadcast_to(np.eye(SIDE, dtype=np.float32), (SIDE, SIDE, SIDE)))
ROWS = np.ascontiguousarray(COLUMNS.swapaxes(0, 1))


def columns_of(array):
    return tuple(np.asarray(array, np.float32).T)


@pytest.mark.parametrize("anisotropy", [pytest.param(2, marks=pytest.mark.slow), 16])
def test_levels_of_long_footprints(anisotropy):
    """In 97 of 100 footprints the unit's level, sharpened blend included, and never more than 4/256 off."""
    levels = tuple(np.full((SIDE >> k, SIDE >> k, 1), k, np.float32) for k in range(7))
    sampler = HARDWARE(mipmap_filter_mode="linear", max_anisotropy=anisotropy)
    prefix, center = f"levels{anisotropy}", np.float32(0.5)
    sides = {"ddx": columns_of(footprints()[f"{prefix}/gx"]), "ddy": columns_of(footprints()[f"{prefix}/gy"])}
    found = jt.sample(jt.texture2d(levels), (center, center), sampler, **sides)[:, 0]
    off = np.abs(np.asarray(found) - footprints()[f"{prefix}/out"]) * 256
    print(f"\nanisotropy {anisotropy}: {np.count_nonzero(off)} of {off.size} levels differ, by {off.max()}/256")
    assert np.count_nonzero(off) <= 0.03 * off.size
    assert off.max() <= 4


@pytest.mark.parametrize("anisotropy", [5, pytest.param(16, marks=pytest.mark.slow)])
def test_weights_of_long_footprints(anisotropy):
    """Footprints along x of every ratio: no weight of a column is more than 1/256 off."""
    ratio = footprints()[f"ratios{anisotropy}/ratio"]
    expected = footprints()[f"ratios{anisotropy}/columns"] / np.float32(1024)
    center = np.float32(0.5 + 0.5 / SIDE)
    zero, one = np.zeros_like(ratio), np.full_like(ratio, 1 / SIDE)
    sampler = HARDWARE(max_anisotropy=anisotropy)
    found = jt.sample(jt.texture2d(COLUMNS), (center, center), sampler, ddx=(ratio / SIDE, zero), ddy=(zero, one))
    off = np.abs(np.asarray(found) - expected)
    equal = (off == 0).all(axis=1).mean()
    print(f"\nanisotropy {anisotropy}: {equal:.0%} of {len(ratio)} equal, {off.max() * 256:.2f}/256 off at most")
    assert off.max() <= 1 / 256
    assert off.sum(axis=1).mean() < 0.01


def test_directions_of_long_footprints():
    """Any footprint: the reads lie along its longest side or diagonal. On average less than 0.4 % of all weight lies on
    another column, or another row, than in the unit; hardly ever a tenth does."""
    coords, ddx, ddy = (columns_of(footprints()[f"random16/{name}"]) for name in ("coords", "gx", "gy"))
    for name, texels in (("columns", COLUMNS), ("rows", ROWS)):
        found = jt.sample(jt.texture2d(texels), coords, HARDWARE(max_anisotropy=16), ddx=ddx, ddy=ddy)
        off = np.abs(np.asarray(found) - footprints()[f"random16/{name}"] / np.float32(2**18)).sum(axis=1)
        print(f"\nanisotropy 16, {name}: {np.mean(off):.4f} lie elsewhere, {np.max(off):.3f} at most")
        assert np.mean(off) < 0.004
        assert np.mean(off > 0.1) < 0.003


def test_what_a_long_footprint_keeps():
    """Stripes across a footprint that is 8 texels long and 1 wide stay; one read at its level would blur them."""
    stripes = np.broadcast_to(np.arange(SIDE, dtype=np.float32)[:, None, None] % 2, (SIDE, SIDE, 1))
    chain = jax.jit(jt.build_mipmaps)(jt.texture2d(stripes))
    y = (np.arange(16, dtype=np.float32) + 0.5) / SIDE
    sides = {"ddx": (np.float32(8 / SIDE), np.float32(0)), "ddy": (np.float32(0), np.float32(1 / SIDE))}
    read = lambda n: jt.sample(chain, (np.float32(0.5), y), HARDWARE(max_anisotropy=n), **sides)[:, 0]
    np.testing.assert_array_equal(read(8), np.arange(16) % 2)
    np.testing.assert_array_equal(read(1), 0.5)


def test_an_infinite_side_is_a_very_long_one():
    texels = np.random.default_rng(0).random((8, 8, 1)).astype(np.float32)
    texture = jt.build_mipmaps(jt.texture2d(texels))
    sampler = jt.Sampler(max_anisotropy=3, address_mode="border")
    read = jax.jit(lambda x, side: jt.sample(texture, (x, 0.5), sampler, ddx=(side, 0.0), ddy=(0.0, 0.1))[0])
    infinite, long = (jax.value_and_grad(read)(0.5, side) for side in (np.inf, 3e38))
    assert infinite == long
    assert infinite[0] > 0.1  # the read in the middle
