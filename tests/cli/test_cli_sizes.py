"""Images of many sizes by few programs of the command line, in memory, and as `--tile` computes them, to the bit.

Pixels are compared with those of the library in tests/unit/warp/test_sized_warps.py.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtex.cli.lenses import Lens
from jaxtex.cli.transforms import AffineParts, Flow, Perspective, Resize
from jaxtex.sampler import Sampler
from jaxtex.warp.options import ReadOptions
from jaxtex.warp.sized import image, streams
from jaxtex.warp.sized.image import ImageWarp, warp
from jaxtex.warp.sized.streams import StreamedImage
from tests.support.tolerances import assert_exact


class Wave(Flow):
    """A flow of the size of each image."""

    def __init__(self):
        super().__init__("wave", ())

    def mapping(self, source, target):
        numbers = np.random.default_rng(target[0]).normal(size=(2, *target[::-1])).astype(np.float32)
        return Flow("wave", tuple(numbers)).mapping(source, target)


class Narrowed(Resize):
    """A third as wide, so that columns are filtered first."""

    def output_size(self, source):
        width, height = super().output_size(source)
        return -(-width // 3), height


def read(address_mode="clamp", filter_mode="linear", **options):
    """How `jaxtex warp` reads: with a frame, unless an address mode is named."""
    options.setdefault("frame", address_mode == "clamp" and filter_mode != "point")
    return ReadOptions(Sampler(address_mode=address_mode, filter_mode=filter_mode), alpha=True, **options)


TURN = AffineParts(rotate=20.0, translate=(0.3, 1.7))
# The last has large and small tiles, the one before it small ones alone.
CASES = {
    "frame": (TURN, read(), np.uint8, 3),
    "alpha": (TURN, read(), np.uint16, 4),
    "mirror": (TURN, read("mirror", "mitchell"), np.uint16, 3),
    "light": (TURN, read("reflect", linear_light=True), np.uint16, 2),
    "point": (TURN, read("border", "point"), np.uint8, 4),
    "flow": (Wave(), read(), np.uint16, 3),
    "a little shrunk": (AffineParts(scale=0.7), read("mirror", antialias=True), np.uint16, 1),
    "half": (Resize(0.5), read(antialias=True, frame=False), np.uint8, 3),
    "area with alpha": (Resize(fit=(90, 60)), read(antialias=True, frame=False, area=True), np.uint16, 4),
    "narrowed": (Narrowed(0.6), read("clamp", antialias=True, frame=False), np.uint8, 3),
    "larger": (Resize(1.6), read("clamp", "cubic", antialias=True, frame=False), np.uint16, 3),
}
HORIZON = Perspective(
    (((0.0, 0), (40.0, 33)), ((200.0, 0), (115.0, 30)), ((200.0, 100), (193.0, 100)), ((0.0, 100), (0.0, 100)))
)
CASES["horizon"] = (HORIZON, read(), np.uint8, 3)


def picture(size, dtype, channels):
    rng = np.random.default_rng(size[0])
    return rng.integers(0, np.iinfo(dtype).max, (*size[::-1], channels), dtype, endpoint=True)


def arguments_of(case, source):
    """What `warp` takes of a case, for an image of a size."""
    transform, read, dtype, channels = case
    size = transform.output_size(source)
    border = (np.arange(channels) * 40 + 30).astype(dtype)
    return picture(source, dtype, channels), transform.mapping(source, size), border, size, read


CPU = jax.devices("cpu")[0]
# XLA for GPUs may round coordinates otherwise in a program of another size.
pytestmark = pytest.mark.usefixtures("on_a_cpu")


@functools.cache
def whole(case, source):
    """The pixels of an image in memory."""
    pixels, mapping, border, size, read = arguments_of(case, source)
    return warp(pixels, mapping, border, size=size, read=read, device=CPU).pixels()


def assert_streamed_as_whole(case, source, window_bytes=2**30):
    """Asserts that tiles cover each pixel once; returns the shapes of their windows."""
    pixels, *how = arguments_of(case, source)
    image = StreamedImage(pixels, ImageWarp.of(pixels.shape, pixels.dtype, *how, CPU), window_bytes)
    expected = whole(case, source)
    found, seen = np.zeros_like(expected), np.zeros(expected.shape[:2], int)
    boxes = image.boxes()
    for box, part in image.pixels(boxes):
        at = tuple(slice(first, first + n) for first, n in zip(box.start, box.shape))
        found[at], seen[at] = part, seen[at] + 1
    assert len(boxes) > 1
    assert (seen == 1).all()
    assert_exact(found, expected)
    return image.shapes.used


def test_wide_tiles_are_those_of_the_whole():
    """Of an output of more than 1,536 columns."""
    assert_streamed_as_whole(CASES["half"], (3300, 130))


# Of some, the texels of the largest window that there is room for, and the bytes of a texel.
LEAST_ROOM = {"frame": (2**13, 6), "horizon": (2**12, 6), "half": (2**13, 18)}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_streamed_tiles_are_those_of_the_whole(name, monkeypatch):
    """Where windows are too large, tiles are divided: down to single pixels at a horizon."""
    monkeypatch.setattr(streams, "TILE", (48, 80))
    monkeypatch.setattr(streams, "LEAST_WINDOW", 64)
    shapes = assert_streamed_as_whole(CASES[name], (200, 100))
    if name in LEAST_ROOM:
        texels, texel_bytes = LEAST_ROOM[name]
        fewer = assert_streamed_as_whole(CASES[name], (200, 100), texels * texel_bytes * streams.WINDOWS)
        assert max(map(np.prod, fewer)) <= texels < max(map(np.prod, shapes))


MOST_PROGRAMS = 6
COMMANDS = {
    "warp with alpha": (TURN, read(), 4),
    "perspective, antialiased, with alpha": (HORIZON, read(antialias=True), 4),
    "lens, in linear light": (Lens((-0.2, 0.03)), read(linear_light=True), 3),
    "resize by a factor": (Resize(0.37), read(antialias=True, frame=False, area=True, linear_light=True), 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_two_hundred_sizes_take_six_programs(name, monkeypatch):
    """Sides from 8 to 2,048, as many below 128 as above. Programs are counted, and not compiled."""
    transform, read, channels = COMMANDS[name]

    @functools.cache
    def counted(function, static, structure, avals, device, donated=None):
        given = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*aval) for aval in avals])
        results = jax.tree.map(
            lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(functools.partial(function, *static), *given)
        )
        return lambda *_: results

    monkeypatch.setattr(image, "compiled", counted)
    rng = np.random.default_rng(0)
    for source in np.exp(rng.uniform(np.log(8), np.log(2049), (200, 2))).astype(int).tolist():
        size = transform.output_size(tuple(source))
        mapping, border = transform.mapping(tuple(source), size), np.zeros(channels, np.uint8)
        pixels = np.broadcast_to(border, (*source[::-1], channels))
        warp(pixels, mapping, border, size=size, read=read, device=CPU)
    assert counted.cache_info().misses <= MOST_PROGRAMS
