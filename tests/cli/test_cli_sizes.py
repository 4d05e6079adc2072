"""Images of many sizes by few programs of the command line: the pixels of the library's warps, to the bit."""

import jax
import numpy as np
import pytest

from jaxtex.cli.transforms.affine import AffineParts
from jaxtex.cli.transforms.flow import Displacements, Flow
from jaxtex.cli.transforms.lens import Lens
from jaxtex.cli.transforms.mappings import Field
from jaxtex.cli.transforms.perspective import Perspective
from jaxtex.cli.transforms.resizing import Resize
from jaxtex.cli.warping.programs import ReadOptions
from jaxtex.cli.warping.tiling import LARGE, MOST_SMALL, SMALL, large_shape, tiles_of
from jaxtex.cli.warping.warp import compiled, warp
from jaxtex.sampler import Sampler
from tests.oracles.warps import warped
from tests.support.tolerances import assert_exact

INPUTS, OUTPUTS = ((0.0, 0), (60.0, 0), (60.0, 50), (0.0, 50)), ((3.0, 2), (55.0, -4), (64.0, 57), (-2.0, 45))
PAIRS = tuple(zip(INPUTS, OUTPUTS))


class Wave(Flow):
    """A flow of the size of each image."""

    def __init__(self):
        super().__init__("wave", Displacements())

    def mapping(self, source, target):
        numbers = np.random.default_rng(target[0]).normal(size=(2, *target[::-1])).astype(np.float32)
        return Flow("wave", Displacements(*numbers)).mapping(source, target)


def read(address_mode="clamp", filter_mode="linear", **options):
    """How `jaxtex warp` reads: with a frame, unless an address mode is named."""
    options.setdefault("frame", address_mode == "clamp" and filter_mode != "point")
    return ReadOptions(Sampler(address_mode=address_mode, filter_mode=filter_mode), **options)


TURN, SHRINK = AffineParts(rotate=20.0, translate=(0.3, 1.7)), AffineParts(scale=0.45, rotate=10.0)
# The last has large and small tiles, the one before it small ones alone.
SIZES = [(1, 1), (1, 33), (45, 1), (130, 71), (519, 301)]
VARIANTS = {
    "frame": (TURN, read(), np.uint8, 3),
    "alpha": (TURN, read(), np.uint16, 4),
    "border": (AffineParts(scale=1.6), read("border"), np.uint16, 3),
    "photograph": (AffineParts(scale=1.6), read("border", "cubic"), np.uint8, 3),
    "wrap": (SHRINK, read("wrap", "cubic"), np.uint16, 1),
    "mirror": (TURN, read("mirror", "mitchell"), np.uint16, 3),
    "light": (TURN, read("reflect", linear_light=True), np.uint16, 2),
    "point": (TURN, read("border", "point"), np.uint8, 4),
    "perspective": (Perspective(PAIRS), read(), np.uint16, 3),
    "lens": (Lens((-0.2, 0.03)), read(), np.uint16, 3),
    "distorted": (Lens((-0.2,), distort=True), read(), np.uint16, 1),
    "flow": (Wave(), read(), np.uint16, 3),
}
SMOOTHED = {
    "shrunk": (SHRINK, read(antialias=True), np.uint16, 3),
    "shrunk photograph": (SHRINK, read(antialias=True), np.uint8, 3),
    "shrunk alpha": (SHRINK, read("border", antialias=True, linear_light=True), np.uint16, 4),
    "a little shrunk": (AffineParts(scale=0.7), read("mirror", antialias=True), np.uint16, 1),
    "lens": (Lens((-0.3,)), read("border", antialias=True), np.uint16, 1),
    "flow": (Wave(), read(antialias=True), np.uint16, 1),
}
RESIZED = {
    "half": (Resize(0.5), read(antialias=True, frame=False), np.uint8, 3),
    "by a lanczos filter": (Resize(0.37), read("clamp", "lanczos3", antialias=True, frame=False), np.uint16, 1),
    "area with alpha": (Resize(fit=(90, 60)), read(antialias=True, frame=False, area=True), np.uint16, 4),
    "in linear light": (Resize(0.7), read(antialias=True, frame=False, linear_light=True), np.uint16, 3),
    "larger": (Resize(1.6), read("clamp", "cubic", antialias=True, frame=False), np.uint16, 3),
    "point": (Resize(0.5), read("clamp", "point"), np.uint8, 4),
}


def picture(size, dtype, channels):
    rng = np.random.default_rng(size[0])
    return rng.integers(0, np.iinfo(dtype).max, (*size[::-1], channels), dtype, endpoint=True)


def of_every_pixel(mapping, size):
    """A mapping with arrays for a field."""
    if not isinstance(mapping.parameters, Field):
        return mapping
    columns, rows = (np.arange(n, dtype=np.int32) for n in size)
    return mapping._replace(parameters=mapping.parameters.of(rows, columns))


def assert_as_whole(transform, read, dtype, channels, sizes):
    for source in sizes:
        pixels, size = picture(source, dtype, channels), transform.output_size(source)
        border = (np.arange(channels) * 40 + 30).astype(dtype)
        mapping = transform.mapping(source, size)
        result = warp(pixels, mapping, border, size=size, read=read, device=jax.devices("cpu")[0])
        assert_exact(result.pixels(), warped(pixels, border, of_every_pixel(mapping, size), size, read))


@pytest.fixture(autouse=True)
def on_a_cpu():
    """XLA for GPUs may round coordinates otherwise in a program of another size."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.mark.parametrize("name", VARIANTS)
def test_tiles_are_those_of_the_whole(name):
    """By parameters and by a field in images of one pixel along an axis too; numbers, made first, of two capacities."""
    assert_as_whole(*VARIANTS[name], {"frame": SIZES, "flow": SIZES, "alpha": SIZES[3:]}.get(name, SIZES[4:]))


@pytest.mark.parametrize("name", SMOOTHED)
def test_smoothed_tiles_are_those_of_the_whole(name):
    assert_as_whole(*SMOOTHED[name], SIZES[4:] if name == "shrunk" else SIZES[3:4])


@pytest.mark.parametrize("name", RESIZED)
def test_resized_tiles_are_those_of_the_whole(name):
    assert_as_whole(*RESIZED[name], SIZES[2:] if name == "half" else SIZES[4:])


@pytest.mark.parametrize("name", ["half", "larger"])
def test_wide_tiles_are_those_of_the_whole(name):
    """Of an output of more than 1,536 columns."""
    assert_as_whole(*RESIZED[name], [{"half": (3300, 130), "larger": (1000, 90)}[name]])


@pytest.mark.parametrize(("name", "programs"), [("frame", 2), ("alpha", 10), ("flow", 2)])
def test_images_of_many_sizes_take_few_programs(name, programs):
    transform, read, dtype, channels = VARIANTS[name]
    sizes = [(20 + 37 * k, 90 + 23 * k) for k in range(12)]
    compiled.cache_clear()
    for size in sizes:
        mapping, border = transform.mapping(size, size), np.zeros(channels, dtype)
        warp(picture(size, dtype, channels), mapping, border, size=size, read=read, device=jax.devices("cpu")[0])
    # Of large and of small tiles; with alpha, numbers of texels of each of few capacities, and an end of each program.
    assert compiled.cache_info().misses == programs


@pytest.mark.parametrize(
    "size", [(1, 1), (1, 700), (128, 64), (129, 64), (513, 257), (512, 256), (1500, 1000), (700, 1), (2100, 300)]
)
def test_tiles_cover_each_pixel_once(size):
    counts = np.zeros(size[::-1], int)
    for place in tiles_of(size):
        counts[place.cut(size)] += 1
        assert (place.height, place.width) in {
            tuple(1 if n == 1 else side for n, side in zip(size[::-1], shape))
            for shape in (large_shape(size[0]), SMALL)
        }
    assert (counts == 1).all()


def test_a_small_image_takes_small_tiles():
    assert [place[2:] for place in tiles_of((100, 60))] == [SMALL]
    assert len(tiles_of((512, 128))) == MOST_SMALL
    assert [place[2:] for place in tiles_of((512, 256))] == [LARGE]
