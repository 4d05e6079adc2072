"""Images whose axes seem to come in another order, or whose axis of channels seems to be missing."""

import warnings

import jax
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._checks.hints import looks_channels_first, looks_like_batch, mention_layout

FLOAT, BYTES = np.dtype(np.float32), np.dtype(np.uint8)
BATCHES = [
    *(((1797, 8, 8), FLOAT), ((64, 28, 28), FLOAT), ((60000, 28, 28), BYTES), ((10, 105, 105), FLOAT)),
    *(((16, 64, 80), FLOAT), ((8, 224, 224), FLOAT), ((1000, 32, 32), FLOAT), ((128, 48, 48), FLOAT)),
    *(((64, 32, 32), BYTES), ((20, 64, 64), np.dtype(bool)), ((4, 32, 40), BYTES), ((1, 28, 28), FLOAT)),
]
# Feature maps, also of wide pictures; maps of classes, spectra, photographs, and cubes of hyperspectral integers.
IMAGES = [
    *(
        (size, size, channels)
        for size in (7, 8, 14, 28, 32, 56, 64, 128)
        for channels in (1, 3, 16, 28, 32, 64, 128, 512)
    ),
    *((48, 64, channels) for channels in (16, 24, 32, 48, 64, 96, 128, 256)),
    *((64, 128, channels) for channels in (19, 32, 64, 128, 150, 256)),
    *((24, 80, 64), (12, 40, 256), (55, 128, 256), (64, 2048, 32), (500, 32, 64), (1000, 64, 1), (1, 9, 9), (2, 5, 6)),
    *((480, 640, 3), (1080, 1920, 4), (512, 512, 21)),
]
CUBES = [(610, 340, 103), (145, 145, 200), (512, 217, 204), (83, 86, 204), (1096, 715, 102)]


def test_batches_without_channels_are_told_from_images(monkeypatch):
    assert [shape for shape, dtype in BATCHES if not looks_like_batch(shape, dtype)] == []
    assert [shape for shape in IMAGES if looks_like_batch(shape, FLOAT)] == []
    assert [shape for shape in CUBES if looks_like_batch(shape, np.dtype(np.uint16))] == []
    assert not looks_like_batch((64, 32, 32), FLOAT)
    monkeypatch.setenv("JAXTEX_DEBUG", "1")
    assert looks_like_batch((64, 32, 32), FLOAT)


def test_channels_in_front_are_told_from_few_rows():
    assert looks_channels_first((3, 48, 64))
    assert not any(map(looks_channels_first, ((48, 64, 3), (3, 8, 64), (5, 48, 64), (3, 48, 3))))


def test_batches_with_channels_are_never_mentioned():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shape in ((1797, 8, 8, 1), (64, 28, 28, 28), (2, 64, 28, 28)):
            mention_layout("rotate", "image", shape, FLOAT)


def traced(function, *args):
    return jax.eval_shape(lambda: function(*args))


# Warps of every path to a read.
WARPS = {
    "rotate": lambda image: traced(lambda image: jt.warp.rotate(image, angle=0.35), image),
    "resize": lambda image: traced(jt.warp.resize, image, (4, 4)),
    "resample": lambda image: traced(jt.warp.resample, image, lambda x, y: (y, x)),
    "resample_tiles": lambda image: jt.warp.resample_tiles(image, lambda x, y: (y, x)),
    "SizedResize": lambda image: jt.warp.SizedResize().tiles(image, (4, 4)),
    "forward_warp": lambda image: traced(jt.warp.forward_warp, image, np.zeros((*image.shape[:2], 2), np.float32)),
}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", WARPS)
def test_warps_name_the_remedy(name):
    image = np.zeros((40, 9, 9), np.float32)
    rows = "40 rows and 9 channels. If it is a batch (N, H, W) of images without channels, pass image[..., None]."
    with pytest.warns(UserWarning, match="read as") as caught:
        WARPS[name](image)
    assert [str(w.message) for w in caught] == [f"{name}: image has shape (40, 9, 9), read as (..., H, W, C): {rows}"]
