"""Tiles of images that fit no device: the bits of `resample`, from any array that is cut by slices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtex._tables.address_rules import ADDRESS_RULES
from jaxtex.warp import resample, resample_tiles
from jaxtex.warp.windows import Span, WindowShapes, on_a_sphere
from tests.support.tolerances import assert_exact


def rotated(x, y):
    x, y = np.asarray(x), np.asarray(y)
    return np.float32(0.9) * x - np.float32(0.4) * y + 30, np.float32(0.4) * x + np.float32(0.9) * y - 50


def waving(x, y):
    x, y = np.asarray(x), np.asarray(y)
    return x + 9 * np.sin(y / 17), y + 5 * np.cos(x / 11)


def to_the_horizon(x, y):
    """Points that run off to both infinities, and NaN and infinite ones."""
    x, y = np.asarray(x), np.asarray(y)
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = 1 - x / np.float32(100.5)
        return (x + y) / depth, y / depth


def turned(x, y, z):
    x, y, z = np.broadcast_arrays(x, y, z)
    return np.float32(0.9) * x - np.float32(0.3) * z + 3, y + np.float32(0.3) * x, z + np.float32(0.2) * y - 1


class Slices:
    """An array that is cut by slices alone, as files are, and says how much of it was read at once."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.most = array, array.shape, array.dtype, 0

    def __getitem__(self, part):
        assert all(isinstance(some, slice) for some in part)
        found = self.array[part]
        self.most = max(self.most, found.nbytes)
        return found


IMAGE = (np.random.default_rng(0).random((61, 80, 2)) * 250).astype(np.float32)
VOLUME = np.random.default_rng(1).random((21, 34, 30, 2)).astype(np.float32)
# Of each case: the image, the function, the most bytes of a window, and how to read.
CASES = {
    "uint8, cubic": (IMAGE.astype(np.uint8), waving, 2**13, {"filter_mode": "cubic", "address_mode": "mirror"}),
    "mask, wrap": (IMAGE > 100, rotated, 2**28, {"filter_mode": "point", "address_mode": ("reflect", "wrap")}),
    "horizon, clamp": (IMAGE, to_the_horizon, 2**15, {"address_mode": "clamp"}),
    "int32, sphere": (IMAGE.astype(np.int32), rotated, 2**28, {"address_mode": "sphere"}),
    "volume, border": (VOLUME, turned, 2**28, {"border_color": 7.0}),
}


def in_tiles(image, function, shape, **options):
    """The result of `resample_tiles`, and how many bytes of the image were read at once at most."""
    source = Slices(image)
    out = seen = None
    for where, pixels in resample_tiles(source, function, shape, **options):
        if out is None:
            out, seen = np.empty((*shape, image.shape[-1]), pixels.dtype), np.zeros(shape, int)
        out[where], seen[where] = pixels, seen[where] + 1
    assert (seen == 1).all()
    return out, source.most


# Tiles and the whole are other programs, which round alike without an instruction for a product and a sum.
@pytest.mark.parametrize("name", CASES)
def test_tiles_are_those_of_the_whole(name):
    image, function, most, options = CASES[name]
    shape, tile = {3: ((40, 50), (24, 32)), 4: ((8, 20, 33), (8, 16, 32))}[image.ndim]
    found, read = in_tiles(image, function, shape, tile_shape=tile, window_bytes=most, **options)
    points = function(*(np.float32(c + 0.5) for c in np.ogrid[tuple(map(slice, shape))][::-1]))
    whole = jax.jit(lambda image, points: resample(image, lambda *_: points, shape, **options))(image, points)
    assert_exact(found, whole, whole.dtype)
    assert read <= most


def test_a_mapped_file_functions_of_jax_and_single_pixels(tmp_path):
    mapped = np.lib.format.open_memmap(tmp_path / "in.npy", "w+", np.float32, IMAGE.shape)
    mapped[:] = IMAGE
    flipped = lambda x, y: (jnp.float32(80) - x, y)
    for shape in ((1, 80), (61, 1), (1, 1)):
        assert_exact(in_tiles(mapped, flipped, shape, tile_shape=(64, 64))[0], IMAGE[: shape[0], ::-1][:, : shape[1]])


def test_few_shapes_of_windows():
    """A program is compiled for each shape, so windows are somewhat larger than what is read."""
    shapes = WindowShapes(64, 2**20)
    assert shapes.holding((100, 300)) == (128, 384)
    assert shapes.holding((120, 250)) == (128, 384)
    assert shapes.holding((10, 10)) == (64, 64)
    assert shapes.holding((2000, 1000)) is None


def test_spans_on_a_sphere_hold_both_sides_of_a_pole():
    rule, sizes = ADDRESS_RULES["sphere"], (6, 8)
    assert on_a_sphere(rule, [(1, 3), (-2, 1)], sizes) == [Span(1, 3), Span(6, 4)]
    assert on_a_sphere(rule, [(-2, 1), (3, 4)], sizes) == [Span(0, 2), Span(0, 8)]
    assert on_a_sphere(rule, [(-20, 20), (3, 4)], sizes) == [Span(0, 6), Span(0, 8)]
