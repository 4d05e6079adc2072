"""Antialiased warps: computed by hand, and what is chosen at run time."""

import functools

import jax
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import warp
from tests.support.arrays import normal
from tests.support.tolerances import assert_close, assert_codes_close, assert_exact, named

SIZE, OUT = 32, (12, 11)
LONG = np.float32([[2.5, 0.7, 1], [-0.4, 1.2, 2]])

image = functools.partial(normal, seed=0)


def turned(degrees, step, size=SIZE, out=OUT):
    """From pixels of the output to an image of `size`: a turn, and `step` pixels a pixel, center to center."""
    angle = np.deg2rad(degrees)
    linear = step * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return np.float32(np.c_[linear, np.full(2, size / 2) - linear @ (out[1] / 2, out[0] / 2)])


# By hand, pixel by pixel


def read(texels, x, y, width):
    """The mean of the texels under a box around a point, or at width 0 the linear read; clamped."""

    def weights(at, size):
        at, taps = np.clip(at, -2, size + 2), np.arange(-4, size + 4)
        if width:
            found = np.clip(np.minimum(taps + 1, at + width / 2) - np.maximum(taps, at - width / 2), 0, None) / width
        else:
            found = np.clip(1 - np.abs(taps + 0.5 - at), 0, None)
        each = np.zeros(size)
        np.add.at(each, np.clip(taps, 0, size - 1), found)
        return each

    return np.einsum("y,x,yxc->c", weights(y, texels.shape[0]), weights(x, texels.shape[1]), texels)


def smoothed(levels, x, y, sides, reads):
    """The antialiased read of a pixel at (x, y), where `sides` are those of its footprint."""
    (short, _), (long, side) = sorted((np.hypot(*side), tuple(side)) for side in sides)
    if reads > 1:
        ratio = min(long / short, reads)
        count = int(np.ceil(ratio))
        lod, offsets = np.log2(long / ratio), np.arange(1, count + 1) / (count + 1) - 0.5
    else:
        ratio, offsets = min(long / short, 5), np.zeros(1)
        lod = np.log2(long) - 0.25 * np.log2(ratio)
    lod = max(lod, 0)
    share = min(lod / np.log2(3) * 2, 1)
    level = 0.5 * np.log2((4**lod + 3) / 6)
    low = max(int(level), 0)
    blend = max(level - low, 0)
    total = 0
    for offset in offsets:
        at = np.array([x, y]) + offset * np.array(side)
        wide = sum(w * read(levels[k], *at / 2**k, 2) for k, w in ((low, 1 - blend), (low + 1, blend)))
        total = total + (1 - share) * read(levels[0], *at, 0) + share * wide
    return total / len(offsets)


def by_hand(texels, matrix, reads=1):
    levels = [np.float64(texels)]
    while levels[-1].shape[0] > 1:
        n = levels[-1].shape[0] // 2
        levels.append(levels[-1].reshape(n, 2, n, 2, -1).mean((1, 3)))
    points = np.indices(OUT)[::-1].reshape(2, -1).T + 0.5
    at = points @ matrix[:, :2].T + matrix[:, 2]
    return np.array([smoothed(levels, *p, matrix[:, :2].T, reads) for p in at]).reshape(*OUT, -1)


def test_a_footprint_is_that_of_the_coordinates():
    """Of a function, of the same points as fields, and of a matrix, with several reads along it."""
    texels, (y, x) = image(SIZE, SIZE, 2), np.indices(OUT, np.float32) + np.float32(0.5)
    through = lambda x, y: tuple(row[0] * x + row[1] * y + row[2] for row in LONG)

    @jax.jit
    def run(texels, matrix, places):
        how = lambda reads: {"sampler": jt.Sampler(address_mode="clamp", max_anisotropy=reads), "antialias": True}
        of_matrix = warp.warp_affine(texels, matrix, OUT, inverse_map=True, **how(2))
        return {
            1: (warp.resample(texels, through, OUT, **how(1)), warp.remap(texels, places, **how(1))),
            2: (of_matrix,),
        }

    for reads, found in run(texels, LONG, through(x, y)).items():
        for actual in found:
            assert_close("peer", actual, by_hand(texels, LONG, reads), 4 * np.abs(texels).max())


def affine(texels, matrix, **options):
    return warp.warp_affine(texels, matrix, OUT, inverse_map=True, address_mode="clamp", **options)


def test_what_no_pixel_needs_is_left_out():
    """Of one image; in a batch all is computed. The program is the same for all steps."""
    texels, smoothed = image(SIZE, SIZE, 2), functools.partial(affine, antialias=True)
    run = jax.jit(lambda t, matrix: (smoothed(t, matrix), smoothed(t[None], matrix)[0], affine(t, matrix)))
    for step in (0.8, 1.4, 3.0, 8.0):
        one, batch, plain = run(texels, turned(30, step))
        with named(f"{step} pixels"):
            assert_close("peer", one, by_hand(texels, turned(30, step)), 4 * np.abs(texels).max())
            assert_close("float32", batch, one, np.abs(texels).max())
            if step < 1:  # on a GPU a kernel computes the points of a plain warp, and may round them in another way
                assert_close("peer", one, plain, 4 * np.abs(texels).max())


def test_numbers_of_other_dtypes():
    codes, matrix = np.random.default_rng(0).integers(0, 255, (SIZE, SIZE, 2)).astype(np.uint8), turned(30, 3.0)

    @jax.jit
    def run(codes, mask, matrix):
        smoothed = lambda texels, **options: affine(texels, matrix, antialias=True, **options)
        return smoothed(codes, sampler=jt.Sampler(read_mode="normalized_float")), smoothed(mask), smoothed(codes)

    (fractions, mask, found), expected = run(codes, codes > 127, matrix), by_hand(codes, matrix)
    assert found.dtype == np.uint8
    assert_codes_close("peer", found, expected, 4 * 255)
    assert_close("peer", fractions, expected / 255, 4)
    assert_close("peer", mask, by_hand(codes > 127, matrix), 4)


@pytest.mark.slow
def test_a_read_without_a_share_does_not_count():
    """Two pixels a pixel are all smooth: what only the sampler's wider filter reaches may be infinite."""
    texels = np.where(np.arange(8)[None, :, None] == 1, np.float32(np.inf), np.zeros((8, 8, 1), np.float32))
    options = {"filter_mode": "lanczos3", "address_mode": "clamp", "antialias": True, "inverse_map": True}
    run = jax.jit(lambda texels, matrix: warp.warp_affine(texels, matrix, (3, 3), **options))
    found = run(texels, np.float32([[2, 0, 1], [0, 2, 1]]))
    assert_exact(found[:, 1:], np.zeros((3, 2, 1)))
    assert not np.isfinite(found[:, 0]).any()


def test_options_of_levels():
    """A bias is a factor of the footprint; bounds hold the level of detail."""
    texels, doubled, tripled = image(SIZE, SIZE, 2), turned(30, 4.0), turned(30, 3.0)
    # The middle pixel of each shows a point near the center of the image, the same one if the smaller step is shifted.
    shift = np.float32([0, 0.5]) @ (doubled[:, :2] - turned(30, 2.0)[:, :2]).T
    moved = turned(30, 2.0) + np.c_[np.zeros((2, 2)), shift].astype(np.float32)

    @jax.jit
    def run(texels, moved, tripled):
        at = lambda matrix, **how: affine(texels, matrix, antialias=True, sampler=jt.Sampler(**how))
        sharp = at(tripled, max_mipmap_level_clamp=0), affine(texels, tripled)
        return sharp, at(moved, mipmap_level_bias=1)

    sharp, biased = run(texels, moved, tripled)
    center, largest = np.s_[OUT[0] // 2, OUT[1] // 2], np.abs(texels).max()
    assert_close("peer", *sharp, largest)
    assert_close("peer", biased[center], by_hand(texels, doubled)[center], 4 * largest)


def test_volumes_keep_a_constant():
    volume, matrix = np.ones((9, 8, 7, 1), np.float32), np.float32([[2.5, 0, 0, 1], [0, 2.0, 0.3, 0], [0, 0, 2.2, 0.5]])
    options = {"inverse_map": True, "antialias": True, "address_mode": "clamp"}
    found = jax.jit(lambda volume, matrix: warp.warp_affine(volume, matrix, (3, 3, 3), **options))(volume, matrix)
    assert_close("float32", found, np.ones_like(found), 1)


@pytest.mark.slow
def test_gradients_of_one_image_are_those_of_a_batch():
    """They come from the branch that ran. Those of a batch are pushed forward, along one direction."""
    texels, directions = image(SIZE, SIZE, 1), (image(SIZE, SIZE, 1)[::-1], image(2, 3))
    loss = lambda t, m: (affine(t, m, antialias=True) ** 2).sum()
    one = jax.jit(jax.grad(loss, (0, 1)))
    batch = jax.jit(lambda *args: jax.jvp(lambda t, m: loss(t[None], m), args, directions)[1])
    for step in (1.4, 3.0):
        args = texels, turned(20, step)
        terms = [np.float64(g) * d for g, d in zip(one(*args), directions, strict=True)]
        assert_close("sum", sum(map(np.sum, terms)), batch(*args), sum(np.abs(t).sum() for t in terms))
