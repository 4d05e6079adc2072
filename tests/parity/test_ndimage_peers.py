"""`jaxtex.ndimage` against SciPy, in float64: every mode and order, one axis to four, and all that a call may say."""

import warnings

import jax
import numpy as np
import pytest

from jaxtex import ndimage
from jaxtex.ndimage.extensions import EXTENSIONS
from tests.support.tolerances import assert_close

scipy = pytest.importorskip("scipy")
peer = pytest.importorskip("scipy.ndimage")

# Before 1.18, SciPy's prefilter of these modes is off by z^2n for n elements and a pole z: zero along long axes.
NEED_LENGTH = ("reflect", "grid-mirror") if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 18) else ()
SHAPES = {1: (7,), 2: (5, 6), 3: (4, 1, 5), 4: (3, 4, 2, 5)}
MODES = tuple(EXTENSIONS)
# The number of axes, the mode and the order of each read, a program each. Every mode has both orders without a
# prefilter, one with one pole and one with two; several axes differ from one in loops alone.
READS = [
    *((1, mode, order) for k, mode in enumerate(MODES) for order in (0, 1, 2 + k % 2, 4 + k % 2)),
    *((2, mode, 3) for mode in MODES),
    *((3, mode, 2) for mode in MODES[2:4]),
    *((4, mode, 1) for mode in MODES[4:6]),
]
# From 0 to 5, how much larger than unit elements the sums of a read are along an axis.
GAIN = (1, 1, 2, 3, 4.8, 7.5)


@pytest.fixture(autouse=True)
def double(x64):
    """All of these compare float64."""


def shape_of(dimension, mode):
    return (30, 29)[:dimension] if mode in NEED_LENGTH and dimension < 3 else SHAPES[dimension]


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def indices(shape, n=150):
    """Indices in and around an array, wholes and halves among them."""
    rng = np.random.default_rng(len(shape))
    found = np.stack([rng.uniform(-3 * size, 4 * size, n) for size in shape])
    return np.concatenate([found, np.round(2 * found[:, : n // 2]) / 2], 1)


def assert_as_scipy(name, array, *args, **options):
    """The same values and dtype, of the elements' size times what the order makes of it."""
    found = np.asarray(getattr(ndimage, name)(array, *args, **options))
    expected = getattr(peer, name)(array, *args, **options)
    assert found.dtype == expected.dtype
    scale = max(np.abs(array).max(), 1) * GAIN[options.get("order", 3)] ** array.ndim
    for part in ("real", "imag") if np.iscomplexobj(array) else ("real",):
        assert_close("float64", getattr(found, part), getattr(expected, part), 16 * scale)


@pytest.mark.parametrize(("dimension", "mode", "order"), READS)
def test_reads(dimension, mode, order):
    array = normal(*shape_of(dimension, mode))
    assert_as_scipy("map_coordinates", array, indices(array.shape), order=order, mode=mode, cval=-1.5)


@pytest.mark.parametrize("mode", ["constant", "grid-constant", "nearest", "wrap"])
def test_transforms(mode):
    image, more = normal(9, 8), {"mode": mode, "cval": 2.5}
    assert_as_scipy("shift", image, (1.3, -2.7), order=3, **more)
    assert_as_scipy("zoom", image, (1.7, 0.6), order=2, **more)
    assert_as_scipy("rotate", image, 30, order=3, **more)
    assert_as_scipy("affine_transform", image, np.eye(2) + 0.2 * normal(2, 2), (0.4, -0.3), (7, 10), order=1, **more)


def test_matrices_of_every_shape():
    image = normal(9, 8)
    assert_as_scipy("affine_transform", image, np.array([0.8, 1.3]), 0.3, order=1)
    homogeneous = np.concatenate([np.eye(2) + 0.2 * normal(2, 2), [[0.4], [0.1]]], 1)
    assert_as_scipy("affine_transform", image, homogeneous, 99, order=5, mode="wrap")
    for more_axes in ((9,), (3, 2, 4, 2)):
        other = 0.6 * normal(2, len(more_axes))
        assert_as_scipy("affine_transform", image, other, output_shape=more_axes, order=1, mode="nearest")


def test_volumes():
    """Planes of a volume, zooms that keep its outer edges, and four axes."""
    volume = normal(5, 6, 7)
    for axes in ((1, 0), (0, 2), (2, 1)):
        assert_as_scipy("rotate", volume, -50, axes, False, order=2, mode="mirror")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # which of the modes suit grid_mode
        for mode in ("constant", "grid-wrap"):
            assert_as_scipy("zoom", volume, (2, 1, 0.7), order=1, mode=mode, grid_mode=True)
    assert_as_scipy("shift", normal(3, 4, 2, 5), 0.4, order=3, mode="mirror")
    assert_as_scipy("zoom", normal(3, 4, 2, 5), 1.5, order=0, mode="nearest")


def test_complex_numbers_and_prefilter():
    image = normal(9, 8) + 1j * normal(8, 9).T
    for mode, outside in (("grid-constant", 1 - 2j), ("constant", 2.0)):
        assert_as_scipy("shift", image, 0.7, mode=mode, cval=outside)
    assert_as_scipy("rotate", image.astype(np.complex128), 20, mode="nearest", prefilter=False)
    assert_as_scipy("map_coordinates", image.real.copy(), indices((9, 8)), order=2, mode="wrap", prefilter=False)


@pytest.mark.parametrize("order", range(2, 6))
def test_filters(order):
    for mode in ("mirror", "grid-wrap", "constant")[:: 1 if order in (3, 4) else 2]:
        assert_as_scipy("spline_filter", normal(6, 5), order=order, mode=mode)
    assert_as_scipy("spline_filter1d", normal(4, 40) + 1j, order=order, axis=1, mode="nearest", output=np.complex128)
    assert_as_scipy("spline_filter1d", normal(300), order=order, mode="reflect")


def test_geometric_transform():
    mapping = lambda index, a, b: (index[0] * a - index[1] * 0.3, index[1] * b + 0.2)
    more = {"extra_arguments": (0.8,), "extra_keywords": {"b": 1.1}, "mode": "grid-wrap"}
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        assert_as_scipy("geometric_transform", normal(6, 7), mapping, (5, 8), **more)


@pytest.mark.parametrize("name", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers(name):
    """Rounded and saturated as SciPy does; weights of thirds meet no halves."""
    array = np.random.default_rng(2).integers(0, 2 if name == "bool" else 120, (7, 6)).astype(name)
    for order in (0, 1):
        found = ndimage.zoom(array, (1, 2), order=order, mode="mirror")
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, peer.zoom(array, (1, 2), order=order, mode="mirror"))
    if name in ("bool", "uint8", "int64", "uint64"):
        wide = ndimage.shift(array, 1 / 3, order=3, output=np.float64, cval=-7.25)
        assert_close("float64", wide, peer.shift(array, 1 / 3, order=3, output=np.float64, cval=-7.25), 16 * 9 * 120)


def test_sizes_of_a_zoom():
    for size, factor in ((5, 0.5), (7, 0.5), (11, 15 / 11), (3, 1.5)):
        array = normal(size)
        assert ndimage.zoom(array, factor, order=1).shape == peer.zoom(array, factor, order=1).shape
