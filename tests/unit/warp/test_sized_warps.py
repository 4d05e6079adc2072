"""Warps and resizes that serve images of any sizes: the pixels of the warps of whole images, in tiles, too."""

import numpy as np
import pytest

from jaxtex import warp
from tests.support.tolerances import assert_close, assert_exact

# The share of integers of which two programs may round the sum otherwise.
ROUNDED_OTHERWISE = 1e-3
SIZES = ((40, 61), (90, 150))
RESIZER = warp.SizedResize(filter_mode="lanczos3")


def turned(x, y, cos, sin):
    return cos * x - sin * y + 3, sin * x + cos * y - 2


def moved(x, y, right):
    return x + right, y


def image(sizes, dtype="uint8", channels=3):
    return np.random.default_rng(sizes[0]).integers(0, 255, (*sizes, channels)).astype(dtype)


def assert_alike(found, expected):
    """Integers may be rounded to either side where two programs round a sum of floats otherwise."""
    assert found.dtype == expected.dtype
    if found.dtype.kind == "u":
        off = np.abs(found.astype(int) - np.asarray(expected).astype(int))
        assert off.max() <= 1
        assert off.mean() < ROUNDED_OTHERWISE
    else:
        assert_close("sum", found, expected, 255)


@pytest.mark.parametrize("options", [{"antialias": True}, {"dtype": np.float32, "border_color": 9.0}])
def test_warps(options):
    warper = warp.SizedWarp(turned, **options)
    for sizes in SIZES[: 1 + ("dtype" in options)]:
        pixels, output = image(sizes), (sizes[1], 50)
        found = warper(pixels, (1.9, 0.4), output)
        assert_alike(found, warp.resample(pixels, turned, output, parameters=(1.9, 0.4), **options))


@pytest.mark.parametrize("options", [{"filter_mode": "area"}, {"filter_mode": "cubic", "address_mode": "wrap"}])
def test_resizes(options):
    pixels = image(SIZES[0], "float32", 1)
    assert_alike(warp.SizedResize(**options)(pixels, (17, 70)), warp.resize(pixels, (17, 70), **options))


def test_an_infinite_pixel_stays_infinite():
    pixels = np.zeros((40, 61, 1), np.float32)
    pixels[17, 20] = np.inf
    found = RESIZER(pixels, (9, 60))
    assert not np.isnan(found).any()
    assert_exact(np.isinf(found), np.isinf(warp.resize(pixels, (9, 60), filter_mode="lanczos3")))


def test_along_an_axis_that_keeps_its_size_nothing_spreads():
    pixels = image((7, 9), "float32", 1)
    pixels[3, 4] = np.nan
    assert_exact(RESIZER(pixels, (7, 9)), pixels)
    assert set(np.argwhere(np.isnan(RESIZER(pixels, (7, 20))))[:, 0]) == {3}
    assert set(np.argwhere(np.isnan(RESIZER(pixels, (3, 9))))[:, 1]) == {4}


def test_a_parameter_may_be_a_number_for_each_pixel():
    pixels = image(SIZES[0], "uint16", 1)
    right = np.arange(40 * 61).reshape(40, 61) % 5
    found = warp.SizedWarp(moved, filter_mode="point", address_mode="wrap")(pixels, (right,))
    rows, columns = np.indices(right.shape)
    assert_exact(found, pixels[rows, (columns + right) % 61])


def test_tiles_are_those_of_the_whole():
    for warper, arguments in (
        (warp.SizedWarp(moved, address_mode="mirror"), ((0.5,), (300, 700))),
        (RESIZER, ((30, 40),)),
    ):
        pixels = image(SIZES[1])
        whole = warper(pixels, *arguments)
        found = np.zeros_like(whole)
        for where, part in warper.tiles(pixels, *arguments):
            found[where] = part
        assert_exact(found, whole)
