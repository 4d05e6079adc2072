"""Long footprints in hardware arithmetic, against what a texture unit made of them (tests/data).

Levels, ratios and weights follow the unit nearly everywhere; the direction of the reads is that of the unit.
Each test bounds what is left, and prints it: `pytest -n 0 -s`.
"""

import functools

import jax
import numpy as np
import pytest

import jaxtex as jt
from tests.support import recordings

recorded = functools.partial(recordings.arrays, "anisotropy_unit")
SIZE = 64
HARDWARE = functools.partial(jt.Sampler, address_mode="wrap", arithmetic="hardware")
# Texels that tell their column, and those that tell their row: channel k is 1 in the k-th.
COLUMNS = np.ascontiguousarray(np.broadcast_to(np.eye(SIZE, dtype=np.float32), (SIZE, SIZE, SIZE)))
ROWS = np.ascontiguousarray(COLUMNS.swapaxes(0, 1))


def columns_of(array):
    return tuple(np.asarray(array, np.float32).T)


@pytest.mark.parametrize("anisotropy", [pytest.param(2, marks=pytest.mark.slow), 16])
def test_levels(anisotropy):
    """In 97 of 100 footprints the unit's level, sharpened blend included, and never more than 4/256 off."""
    levels = tuple(np.full((SIZE >> k, SIZE >> k, 1), k, np.float32) for k in range(7))
    sampler = HARDWARE(mipmap_filter_mode="linear", max_anisotropy=anisotropy)
    prefix, center = f"levels{anisotropy}", np.float32(0.5)
    sides = {"ddx": columns_of(recorded()[f"{prefix}/gx"]), "ddy": columns_of(recorded()[f"{prefix}/gy"])}
    found = jt.sample(jt.texture2d(levels), (center, center), sampler, **sides)[:, 0]
    off = np.abs(np.asarray(found) - recorded()[f"{prefix}/out"]) * 256
    print(f"\nanisotropy {anisotropy}: {np.count_nonzero(off)} of {off.size} levels differ, by {off.max()}/256")
    assert np.count_nonzero(off) <= 0.03 * off.size
    assert off.max() <= 4


@pytest.mark.parametrize("anisotropy", [5, pytest.param(16, marks=pytest.mark.slow)])
def test_weights(anisotropy):
    """Footprints along x of every ratio: no weight of a column is more than 1/256 off."""
    ratio = recorded()[f"ratios{anisotropy}/ratio"]
    expected = recorded()[f"ratios{anisotropy}/columns"] / np.float32(1024)
    center = np.float32(0.5 + 0.5 / SIZE)
    zero, one = np.zeros_like(ratio), np.full_like(ratio, 1 / SIZE)
    sampler = HARDWARE(max_anisotropy=anisotropy)
    found = jt.sample(jt.texture2d(COLUMNS), (center, center), sampler, ddx=(ratio / SIZE, zero), ddy=(zero, one))
    off = np.abs(np.asarray(found) - expected)
    equal = (off == 0).all(axis=1).mean()
    print(f"\nanisotropy {anisotropy}: {equal:.0%} of {len(ratio)} equal, {off.max() * 256:.2f}/256 off at most")
    assert off.max() <= 1 / 256
    assert off.sum(axis=1).mean() < 0.01


def test_directions():
    """Any footprint: the reads lie along its longest side or diagonal. On average less than 0.4 % of all weight lies on
    another column, or another row, than in the unit; hardly ever a tenth does."""
    coords, ddx, ddy = (columns_of(recorded()[f"random16/{name}"]) for name in ("coords", "gx", "gy"))
    for name, texels in (("columns", COLUMNS), ("rows", ROWS)):
        found = jt.sample(jt.texture2d(texels), coords, HARDWARE(max_anisotropy=16), ddx=ddx, ddy=ddy)
        off = np.abs(np.asarray(found) - recorded()[f"random16/{name}"] / np.float32(2**18)).sum(axis=1)
        print(f"\nanisotropy 16, {name}: {np.mean(off):.4f} lie elsewhere, {np.max(off):.3f} at most")
        assert np.mean(off) < 0.004
        assert np.mean(off > 0.1) < 0.003


def test_what_a_long_footprint_keeps():
    """Stripes across a footprint that is 8 texels long and 1 wide stay; one read at its level would blur them."""
    stripes = np.broadcast_to(np.arange(SIZE, dtype=np.float32)[:, None, None] % 2, (SIZE, SIZE, 1))
    chain = jax.jit(jt.build_mipmaps)(jt.texture2d(stripes))
    y = (np.arange(16, dtype=np.float32) + 0.5) / SIZE
    sides = {"ddx": (np.float32(8 / SIZE), np.float32(0)), "ddy": (np.float32(0), np.float32(1 / SIZE))}
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
