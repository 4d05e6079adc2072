"""`jaxtex.ndimage` against SciPy, in float64: every mode and order, one axis to four, and all that a call may say."""

import functools
import warnings

import jax
import numpy as np
import pytest

from jaxtex import ndimage
from jaxtex.ndimage.extensions import EXTENSIONS
from tests.support.tolerances import assert_close, named

scipy = pytest.importorskip("scipy")
peer = pytest.importorskip("scipy.ndimage")

# Before 1.18, SciPy's prefilter of these modes is off by z^2n for n elements and a pole z: zero along long axes.
NEED_LENGTH = ("reflect", "grid-mirror") if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 18) else ()
SHAPES = {1: (7,), 2: (5, 6), 3: (4, 1, 5), 4: (3, 4, 2, 5)}
MODES = tuple(EXTENSIONS)
# The mode and the order of each read, by the number of axes. Every mode has both orders without a prefilter, one with
# one pole and one with two; several axes differ from one in loops alone.
READS = {
    1: [(mode, order) for k, mode in enumerate(MODES) for order in (0, 1, 2 + k % 2, 4 + k % 2)],
    2: [(mode, 3) for mode in MODES],
    3: [(mode, 2) for mode in MODES[2:4]],
    4: [(mode, 1) for mode in MODES[4:6]],
}
EAGER = lambda run: run
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


def call(name, *args, **options):
    """A function's name, its arrays, the arguments behind them, and those by name."""
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    return name, arrays, args[len(arrays) :], options


def assert_as_scipy(*calls, jit=jax.jit):
    """The same values and dtype, of the elements' size times what the order makes of it; calls by one program."""
    run = lambda module, arrays: [getattr(module, c[0])(*given, *c[2], **c[3]) for c, given in zip(calls, arrays)]
    arrays = [given for _, given, *_ in calls]
    both = jit(functools.partial(run, ndimage))(arrays), run(peer, arrays)
    for (name, (array, *_), args, options), found, expected in zip(calls, *both, strict=True):
        found, largest = np.asarray(found), max(float(np.abs(array).max()), 1)
        scale = largest * GAIN[options.get("order", 3)] ** array.ndim
        with named(name, array.dtype, args, options):
            assert found.dtype == expected.dtype
            if found.dtype.kind in "biu":
                np.testing.assert_array_equal(found, expected)
                continue
            for part in ("real", "imag") if np.iscomplexobj(array) else ("real",):
                assert_close("float64", getattr(found, part), getattr(expected, part), 16 * scale)


@pytest.mark.parametrize("dimension", READS)
def test_reads(dimension):
    arrays = {mode: normal(*shape_of(dimension, mode)) for mode, _ in READS[dimension]}
    read = lambda array, **more: call("map_coordinates", array, indices(array.shape), cval=-1.5, **more)
    assert_as_scipy(*(read(arrays[mode], order=order, mode=mode) for mode, order in READS[dimension]))


@pytest.mark.parametrize("mode", ["constant", "grid-constant", "nearest", "wrap"])
def test_transforms(mode):
    """In one mode outside of any program of a caller's."""
    image, more = normal(9, 8), {"mode": mode, "cval": 2.5}
    assert_as_scipy(
        call("shift", image, (1.3, -2.7), order=3, **more),
        call("zoom", image, (1.7, 0.6), order=2, **more),
        call("rotate", image, 30, order=3, **more),
        call("affine_transform", image, np.eye(2) + 0.2 * normal(2, 2), (0.4, -0.3), (7, 10), order=1, **more),
        jit=EAGER if mode == "constant" else jax.jit,
    )


def test_matrices_of_every_shape():
    image = normal(9, 8)
    homogeneous = np.concatenate([np.eye(2) + 0.2 * normal(2, 2), [[0.4], [0.1]]], 1)
    transform = functools.partial(call, "affine_transform", image)
    shapes, more = ((9,), (3, 2, 4, 2)), {"order": 1, "mode": "nearest"}
    assert_as_scipy(
        transform(np.array([0.8, 1.3]), 0.3, order=1),
        transform(homogeneous, 99, order=5, mode="wrap"),
        *(transform(0.6 * normal(2, len(shape)), output_shape=shape, **more) for shape in shapes),
    )


def test_volumes():
    """Planes of a volume, zooms that keep its outer edges, and four axes."""
    volume, deep = normal(5, 6, 7), normal(3, 4, 2, 5)
    planes = [call("rotate", volume, -50, axes, False, order=2, mode="mirror") for axes in ((1, 0), (0, 2), (2, 1))]
    modes, more = ("constant", "grid-wrap"), {"order": 1, "grid_mode": True}
    zooms = [call("zoom", volume, (2, 1, 0.7), mode=mode, **more) for mode in modes]
    shift = call("shift", deep, 0.4, order=3, mode="mirror")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # which of the modes suit grid_mode
        assert_as_scipy(*planes, *zooms, shift, call("zoom", deep, 1.5, order=0, mode="nearest"))


def test_complex_numbers_and_prefilter():
    image = normal(9, 8) + 1j * normal(8, 9).T
    assert_as_scipy(
        call("shift", image, 0.7, mode="grid-constant", cval=1 - 2j),
        call("shift", image, 0.7, mode="constant", cval=2.0),
        call("rotate", image.astype(np.complex128), 20, mode="nearest", prefilter=False),
        call("map_coordinates", image.real.copy(), indices((9, 8)), order=2, mode="wrap", prefilter=False),
    )


@pytest.mark.parametrize("order", range(2, 6))
def test_filters(order):
    modes, image, lines = ("mirror", "grid-wrap", "constant"), normal(6, 5), normal(4, 40) + 1j
    assert_as_scipy(
        *(call("spline_filter", image, order=order, mode=mode) for mode in modes[:: 1 if order in (3, 4) else 2]),
        call("spline_filter1d", lines, order=order, axis=1, mode="nearest", output=np.complex128),
        call("spline_filter1d", normal(300), order=order, mode="reflect"),
    )


def test_geometric_transform():
    mapping = lambda index, a, b: (index[0] * a - index[1] * 0.3, index[1] * b + 0.2)
    more = {"extra_arguments": (0.8,), "extra_keywords": {"b": 1.1}, "mode": "grid-wrap"}
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        assert_as_scipy(call("geometric_transform", normal(6, 7), mapping, (5, 8), **more), jit=EAGER)


def test_integers():
    """Rounded and saturated as SciPy does; weights of thirds meet no halves."""
    names = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
    draw = lambda name: np.random.default_rng(2).integers(0, 2 if name == "bool" else 120, (7, 6)).astype(name)
    wide = {"order": 3, "output": np.float64, "cval": -7.25}
    assert_as_scipy(
        *(call("zoom", draw(name), (1, 2), order=order, mode="mirror") for name in names for order in (0, 1)),
        *(call("shift", draw(name), 1 / 3, **wide) for name in ("bool", "uint8", "int64", "uint64")),
    )


def test_sizes_of_a_zoom():
    sizes = ((5, 0.5), (7, 0.5), (11, 15 / 11), (3, 1.5))
    assert_as_scipy(*(call("zoom", normal(size), factor, order=1) for size, factor in sizes))
