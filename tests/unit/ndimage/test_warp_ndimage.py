"""`map_coordinates` against an oracle of its rules, and against JAX's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex.warp as jw
from tests.support.tolerances import assert_close, assert_exact

MODES = ("constant", "nearest", "wrap", "reflect", "mirror")
SIZES = {1: (7,), 2: (5, 7), 3: (6, 3, 5)}
each_read = pytest.mark.parametrize(
    ("dimension", "order", "mode"),
    [
        *((dimension, order, mode) for dimension in (1, 2) for order in (0, 1) for mode in MODES),
        (3, 0, "reflect"),
        (3, 1, "constant"),
    ],
)


@pytest.fixture
def loose():
    """JAX's own function needs the promotions that the tests forbid."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def indices(sizes, n=40, seed=0):
    """Indices in and around an array, away from wholes and halves."""
    rng = np.random.default_rng(seed)
    cells = [rng.integers(-2 * size, 3 * size, n) + 0.5 * rng.integers(0, 2, n) for size in sizes]
    return [(cell + rng.uniform(0.05, 0.45, n)).astype(np.float32) for cell in cells]


def halves(sizes):
    """Wholes and halves, in and around an array."""
    return [(np.random.default_rng(size).integers(-4 * size, 6 * size, 40) / 2).astype(np.float32) for size in sizes]


def array(sizes, dtype="float32"):
    values = np.random.default_rng(1).normal(size=sizes) * (1 if "float" in dtype else 50)
    return (abs(values) if dtype.startswith("u") else values).astype(dtype)


def element(a, index, mode, cval):
    """The element at a whole index."""
    found = []
    for i, n in zip(index, a.shape):
        if mode == "constant" and not 0 <= i < n:
            return cval
        turned = {
            "constant": i,
            "nearest": min(max(i, 0), n - 1),
            "wrap": i % n,
            "reflect": min(i % (2 * n), 2 * n - 1 - i % (2 * n)),
            "mirror": min(i % (2 * n - 2), 2 * n - 2 - i % (2 * n - 2)),
        }
        found.append(turned[mode])
    return a[tuple(found)]


def oracle(a, points, order, mode, cval):
    """Point by point: the nearest element, halves away from zero, or the corners of a cell by their shares."""
    out = []
    for point in np.stack(points, -1).astype(np.float64):
        if order == 0:
            out.append(element(a, [int(np.sign(p) * np.floor(abs(p) + 0.5)) for p in point], mode, cval))
            continue
        low = np.floor(point).astype(int)
        total = 0.0
        for corner in np.ndindex(*[2] * len(point)):
            share = np.prod(np.where(corner, point - low, 1 - (point - low)))
            total += share * element(a, low + corner, mode, cval)
        out.append(total)
    return np.array(out)


@each_read
def test_values(dimension, order, mode, loose):
    a, points = array(SIZES[dimension]), indices(SIZES[dimension])
    actual = jw.map_coordinates(a, points, order, mode, 2.5)
    assert_close("peer", actual, oracle(a, points, order, mode, 2.5), 4)
    assert_close("peer", actual, jax.scipy.ndimage.map_coordinates(a, points, order, mode, 2.5), 4)


@pytest.mark.parametrize(
    ("dimension", "order", "mode"),
    [(2, 0, "wrap"), *((2, 1, mode) for mode in ("constant", "nearest", "reflect")), (1, 1, "mirror"), (3, 1, "wrap")],
)
def test_gradients(dimension, order, mode, loose):
    a, points, cotangent = array(SIZES[dimension]), indices(SIZES[dimension]), array((40,))

    def gradients(function):
        return jax.jit(jax.grad(lambda a, points: jnp.sum(function(a, points, order, mode) * cotangent), (0, 1)))

    ours, theirs = (gradients(f)(a, points) for f in (jw.map_coordinates, jax.scipy.ndimage.map_coordinates))
    for actual, expected in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert_close("peer gradient", actual, expected, max(np.abs(expected).max(), 1))


def test_the_gradient_of_cval_is_the_share_outside():
    a, points, cotangent = array((5, 7)), indices((5, 7)), array((40,))
    run = jax.grad(lambda cval: jnp.sum(jw.map_coordinates(a, points, 1, cval=cval) * cotangent))
    expected = np.sum(oracle(np.zeros_like(a), points, 1, "constant", 1) * cotangent.astype(np.float64))
    assert_close("peer gradient", run(0.0), expected, np.abs(cotangent).sum())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
def test_wholes_and_halves(order, mode, loose):
    a, points = np.round(16 * array((5, 7))), halves((5, 7))
    actual = jw.map_coordinates(a, points, order, mode, 2.5)
    assert_exact(actual, oracle(a, points, order, mode, 2.5), np.float32)
    assert_exact(actual, jax.scipy.ndimage.map_coordinates(a, points, order, mode, 2.5))


@pytest.mark.parametrize(
    ("order", "dtype"),
    [*((1, dtype) for dtype in ("uint8", "int8", "uint16", "int16", "int32", "uint32")), (0, "uint8"), (0, "int32")],
)
def test_integers_are_rounded_away_from_zero(order, dtype, loose):
    a, points = array((5, 7), dtype), halves((5, 7))
    actual = jw.map_coordinates(a, points, order, "constant", 3.7)
    exact = oracle(a.astype(np.float64), points, order, "constant", 3)
    assert_exact(actual, np.sign(exact) * np.floor(abs(exact) + 0.5), dtype)
    assert_exact(actual, jax.scipy.ndimage.map_coordinates(a, points, order, "constant", 3.7))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_rounded_once(dtype, loose):
    a, points = jnp.asarray(array((5, 7)), dtype), indices((5, 7))
    expected = oracle(np.asarray(a, np.float64), points, 1, "wrap", 0)
    assert_close(dtype, jw.map_coordinates(a, points, 1, "wrap"), expected, 4)


def test_double_precision(x64, loose):
    a, points = array((5, 7), "float64"), [p.astype(np.float64) for p in indices((5, 7))]
    actual = jw.map_coordinates(a, points, 1, "reflect")
    assert actual.dtype == np.float64
    assert_close("float64", actual, oracle(a, points, 1, "reflect", 0), 32)


def test_forms_of_coordinates():
    a, (y, x) = array((5, 7)), indices((5, 7))
    expected = jw.map_coordinates(a, [y, x], 1)
    assert_exact(jw.map_coordinates(a, np.stack([y, x]), 1), expected)
    assert_exact(jw.map_coordinates(a, (y.reshape(8, 5), x.reshape(8, 5)), 1).reshape(-1), expected)
    grid = jw.map_coordinates(a, [y[:, None], x[None]], 1)
    assert_close("float32", jnp.diagonal(grid), expected, 4)
    assert_exact(jw.map_coordinates(a, [np.array([1, 9]), np.array([2, 2])], 1), [a[1, 2], 0])


@pytest.mark.parametrize(
    "case",
    [
        (np.ones((2, 2, 2, 2), np.float32), 4, 1, "constant"),
        (np.array([1 + 2j, 3j], np.complex64), 1, 1, "wrap"),
        (np.array([True, False]), 1, 0, "nearest"),
    ],
)
def test_all_else_is_handed_on(case, loose):
    a, count, order, mode = case
    points = [np.array([0.25, 1.0], np.float32)] * count
    assert_exact(
        np.asarray(jw.map_coordinates(a, points, order, mode)).view(np.uint8),
        np.asarray(jax.scipy.ndimage.map_coordinates(a, points, order, mode)).view(np.uint8),
    )


def test_errors_are_those_of_jax():
    a, points = np.ones(4, np.float32), [np.ones(1, np.float32)]
    with pytest.raises(NotImplementedError, match="order<=1"):
        jw.map_coordinates(a, points, 3)
    with pytest.raises(NotImplementedError, match="does not yet support mode"):
        jw.map_coordinates(a, points, 1, "grid-wrap")
    with pytest.raises(ValueError, match=r"length input.ndim, but 2 != 1"):
        jw.map_coordinates(a, 2 * points, 1)
