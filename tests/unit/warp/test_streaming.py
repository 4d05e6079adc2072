"""Tiles of images that fit no device: the bits of `resample`, from any array that is cut by slices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtex._tables.address_rules import ADDRESS_RULES
from jaxtex.warp import resample, resample_tiles
from jaxtex.warp.windows import Span, WindowShapes, addressed_span, loaded, on_a_sphere
from tests.support.tolerances import assert_exact

# Tiles and the whole are other programs, which compilers must not round otherwise.
pytestmark = pytest.mark.compiled


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
    x, y, z = (np.asarray(c) for c in (x, y, z))
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


IMAGE = (np.random.default_rng(0).random((121, 158, 2)) * 250).astype(np.float32)
VOLUME = np.random.default_rng(1).random((21, 34, 30, 2)).astype(np.float32)
CASES = {
    "linear, border": (IMAGE, rotated, {"border_color": 7.0}),
    "uint8, cubic": (IMAGE.astype(np.uint8), waving, {"filter": "cubic", "address": "mirror"}),
    "lanczos3, wrap": (IMAGE, rotated, {"filter": "lanczos3", "address": "wrap"}),
    "int32, reflect": (IMAGE.astype(np.int32), waving, {"filter": "bspline", "address": ("reflect", "wrap")}),
    "mask": (IMAGE > 100, rotated, {"filter": "point"}),
    "horizon, clamp": (IMAGE, to_the_horizon, {"address": "clamp"}),
    "sphere": (IMAGE, rotated, {"address": "sphere"}),
    "volume": (VOLUME, turned, {}),
    "volume, mirror": (VOLUME, turned, {"filter": "cubic", "address": "mirror"}),
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


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_tiles_are_those_of_the_whole(name):
    image, function, options = CASES[name]
    shape, tile = {3: ((100, 133), (32, 48)), 4: ((20, 30, 33), (8, 16, 32))}[image.ndim]
    whole = np.asarray(resample(image, function, shape, **options))
    most = 2**15 if name in ("horizon, clamp", "uint8, cubic") else 2**28
    found, read = in_tiles(image, function, shape, tile_shape=tile, window_bytes=most, **options)
    assert found.dtype == whole.dtype
    assert_exact(found, whole)
    assert read <= most


def test_a_mapped_file(tmp_path):
    mapped = np.lib.format.open_memmap(tmp_path / "in.npy", "w+", np.float32, IMAGE.shape)
    mapped[:] = IMAGE
    out = np.lib.format.open_memmap(tmp_path / "out.npy", "w+", np.float32, IMAGE.shape)
    for where, pixels in resample_tiles(mapped, rotated, tile_shape=(64, 64), address="wrap"):
        out[where] = pixels
    assert_exact(np.asarray(out), np.asarray(resample(IMAGE, rotated, address="wrap")))


def test_functions_of_jax_and_of_single_pixels():
    flipped = lambda x, y: (jnp.float32(158) - x, y)
    for shape in ((1, 158), (121, 1), (1, 1)):
        whole = np.asarray(resample(IMAGE, flipped, shape))
        assert_exact(in_tiles(IMAGE, flipped, shape, tile_shape=(64, 64))[0], whole)


def test_what_is_wrong_is_said_at_once():
    with pytest.raises(ValueError, match="no batch axes; call it for each image"):
        resample_tiles(IMAGE[None], rotated)
    with pytest.raises(TypeError, match="expected floating numbers, integers or bool"):
        resample_tiles(IMAGE.astype(complex), rotated)
    with pytest.raises(ValueError, match="tile_shape is"):
        resample_tiles(IMAGE, rotated, tile_shape=(64,))
    with pytest.raises(ValueError, match="of one pixel or more"):
        resample_tiles(IMAGE[:0], rotated)
    with pytest.raises(ValueError, match="window_bytes=64 has room for 8 texels only"):
        next(resample_tiles(IMAGE, rotated, window_bytes=64))
    with pytest.raises(ValueError, match="function returned 1 coordinates"):
        next(resample_tiles(IMAGE, lambda x, y: (x,)))


# What taps read


@pytest.mark.parametrize("mode", ["clamp", "border", "wrap", "mirror", "reflect"])
def test_spans_hold_what_the_rule_reads(mode):
    rule = ADDRESS_RULES[mode]
    apply = jax.jit(rule.apply)
    for size in (1, 2, 7, 40):
        random = np.random.default_rng(size)
        firsts = random.integers(-3 * size - 2, 3 * size + 2, 30)
        lasts = firsts + random.integers(0, 2 * size + 2, 30)
        taps = np.minimum(firsts[:, None] + np.arange(128), lasts[:, None]).astype(np.int32)
        indices, inside = apply(taps, np.int32(size))
        valid = np.ones(taps.shape, bool) if inside is None else np.asarray(inside)
        for first, last, index, counts in zip(firsts.tolist(), lasts.tolist(), np.asarray(indices), valid, strict=True):
            texels, span = index[counts], addressed_span(rule, first, last, size)
            if span is None:
                assert not texels.size
                continue
            held = (span.first + np.arange(span.count)) % size
            assert set(texels.tolist()) <= set(held.tolist())
            assert 0 <= span.first < size
            assert span.count <= size


def test_spans_on_a_sphere_hold_both_sides_of_a_pole():
    rule, sizes = ADDRESS_RULES["sphere"], (6, 8)
    assert on_a_sphere(rule, [(1, 3), (-2, 1)], sizes) == [Span(1, 3), Span(6, 4)]
    assert on_a_sphere(rule, [(-2, 1), (3, 4)], sizes) == [Span(0, 2), Span(0, 8)]
    assert on_a_sphere(rule, [(-20, 20), (3, 4)], sizes) == [Span(0, 6), Span(0, 8)]


def test_a_window_goes_on_around_the_end():
    image = np.arange(20.0).reshape(4, 5, 1)
    found = loaded(image, (Span(3, 2), Span(4, 3)), np.zeros((3, 4, 1)))
    assert found[..., 0].tolist() == [[19, 15, 16, 0], [4, 0, 1, 0], [0, 0, 0, 0]]


def test_few_shapes_of_windows():
    shapes = WindowShapes(64, 2**20)
    assert shapes.holding((100, 300)) == (128, 384)
    assert shapes.holding((120, 250)) == (128, 384)
    assert shapes.holding((10, 10)) == (64, 64)
    assert shapes.holding((2000, 1000)) is None
