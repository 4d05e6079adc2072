"""Thin-plate splines against their equations in NumPy, against SciPy, and against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact

HEIGHT, WIDTH = 20, 28
READ = {"filter_mode": "linear", "address_mode": "border", "normalized_coords": False}
thin_plate_spline = jt.warp.thin_plate_spline


def draw_points(count=10, seed=0):
    """Source and target points in a picture, which move by up to two pixels."""
    rng = np.random.default_rng(seed)
    target = rng.uniform(0, (WIDTH, HEIGHT), (count, 2))
    return target + rng.uniform(-2, 2, (count, 2)), target


def draw_image(*batch, dtype=np.float64, channels=2):
    return np.random.default_rng(1).normal(size=(*batch, HEIGHT, WIDTH, channels)).astype(dtype)


def centers(height=HEIGHT, width=WIDTH):
    return np.stack(np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5), -1)


def positions(height=HEIGHT, width=WIDTH, dtype=np.float32):
    """An image whose linear reads are the points that are read."""
    return centers(height, width).astype(dtype)


def reference(source, target, points, regularization=0.0):
    """The spline of Bookstein, 1989, in pixels and in float64."""

    def bending(a, b):
        r = np.linalg.norm(a[..., :, None, :] - b, axis=-1)
        return r**2 * np.log(np.where(r > 0, r, 1))

    count = len(target)
    affine = np.column_stack([np.ones(count), target])
    matrix = np.block(
        [[bending(target, target) + regularization * np.eye(count), affine], [affine.T, np.zeros((3, 3))]]
    )
    solution = np.linalg.solve(matrix, np.concatenate([source, np.zeros((3, 2))]))
    return bending(points, target) @ solution[:count] + solution[count] + points @ solution[count + 1 :]


@pytest.mark.parametrize("regularization", [0.0, 30.0])
@pytest.mark.usefixtures("x64")
def test_images_are_read_where_the_spline_says(regularization):
    source, target = draw_points()
    image, shape = draw_image(), (HEIGHT + 2, WIDTH - 5)
    actual = thin_plate_spline(image, source, target, shape, regularization=regularization)
    x, y = np.moveaxis(reference(source, target, centers(*shape), regularization), -1, 0)
    expected = oracle.sample(image, (x, y), dtype=np.float64, **READ)
    assert_close("spline float64", actual, expected, WIDTH * np.abs(image).max())


def test_points_come_to_their_targets_in_float32():
    """At the target points themselves, which are centers of pixels here, and between."""
    rng = np.random.default_rng(3)
    places = rng.permutation(HEIGHT * WIDTH)[:10]
    target = np.stack([places % WIDTH, places // WIDTH], -1) + 0.5
    source = np.clip(target + rng.uniform(-2, 2, target.shape), 1, (WIDTH - 1, HEIGHT - 1))
    seen = np.asarray(thin_plate_spline(positions(), np.float32(source), np.float32(target)))
    assert seen.dtype == np.float32
    assert_close("spline", seen[places // WIDTH, places % WIDTH], source, WIDTH)
    expected = reference(source, target, centers())
    inside = (expected > 0.5).all(-1) & (expected < (WIDTH - 0.5, HEIGHT - 0.5)).all(-1)
    assert_close("spline", seen[inside], expected[inside], WIDTH)


def test_an_affine_map_stays_one():
    """With any points, and smoothed as a matrix would have it."""
    target = draw_points()[1].astype(np.float32)
    matrix = np.float32([[1.9, 0.3, -2.0], [-0.2, 2.1, 1.0]])
    image = draw_image(dtype=np.float32)
    source = target @ matrix[:, :2].T + matrix[:, 2]
    for antialias in (False, True):
        actual = thin_plate_spline(image, source, target, antialias=antialias)
        expected = jt.warp.warp_affine(image, matrix, inverse_map=True, antialias=antialias)
        assert_close("spline", actual, expected, WIDTH * np.abs(image).max())
    assert_close("spline", thin_plate_spline(image, target, target), image, WIDTH * np.abs(image).max())


def test_much_regularization_leaves_the_best_affine_map():
    source, target = draw_points()
    affine = np.column_stack([target, np.ones(len(target))])
    best = np.linalg.lstsq(affine, source, rcond=None)[0]
    actual = thin_plate_spline(draw_image(dtype=np.float32), *np.float32([source, target]), regularization=1e9)
    expected = jt.warp.warp_affine(draw_image(dtype=np.float32), np.float32(best.T), inverse_map=True)
    assert_close("spline", actual, expected, WIDTH * 4)


@pytest.mark.parametrize("regularization", [0.0, 4.0])
@pytest.mark.usefixtures("x64")
def test_points_that_are_given_twice(regularization):
    """They count as one; with other sources, as one with their mean, as with a small regularization."""
    (source, target), image = draw_points(), draw_image()
    sources, targets = (np.concatenate([a, a[:3], a[:1]]) for a in (source, target))
    sources[[1, 2]] += 0.5
    if regularization:  # then the equations of all points are regular, too
        x, y = np.moveaxis(reference(sources, targets, centers(), regularization), -1, 0)
        expected = oracle.sample(image, (x, y), dtype=np.float64, **READ)
    else:
        means = source + np.float64([0, 0.25, 0.25, *[0] * 7])[:, None]
        expected = thin_plate_spline(image, means, target)
    actual = thin_plate_spline(image, sources, targets, regularization=regularization)
    assert_close("spline float64", actual, expected, WIDTH * np.abs(image).max())
    several = jax.jit(lambda *args: thin_plate_spline(*args, regularization=regularization))(image, sources, targets)
    assert_close("spline float64", several, actual, WIDTH * np.abs(image).max())


def test_points_that_coincide_in_float32():
    """Up to a rounding, in one of a batch alone; and gradients, which equal points share."""
    source, target = np.float32(draw_points())
    near = target[:2] * np.float32([1, 1 + 2**-23])
    sources, targets = np.concatenate([source, source[:2]]), np.concatenate([target, near])
    once = np.asarray(thin_plate_spline(positions(), source, target))
    for seen in thin_plate_spline(positions(), np.stack([sources, sources[::-1]]), np.stack([targets, targets[::-1]])):
        assert_close("spline", seen, once, 4 * WIDTH)
    loss = lambda source, target: (thin_plate_spline(draw_image(dtype=np.float32), source, target) ** 2).sum()
    of_all, of_once = jax.grad(loss, (0, 1))(sources, targets), jax.grad(loss, (0, 1))(source, target)
    for a, b in zip(of_all, of_once):
        assert np.isfinite(a).all()
        assert np.abs(a[:2] + a[10:] - b[:2]).max() < 1e-2 * np.abs(b).max()


def test_points_on_a_line_move_all_across_it_alike():
    """Also two points, or one."""
    along = np.linspace(0, 1, 7, dtype=np.float32)[:, None] * np.float32([[19, 11]])
    inside = np.s_[3:-3, 3:-3]
    for offset in (along, along[[0, 0, 6]], along[[2, 2, 2]]):
        target = np.float32([3, 4]) + offset
        seen = thin_plate_spline(positions(), target + np.float32([1.5, 0.5]), target)
        assert_close("spline", np.asarray(seen)[inside], (centers() + np.float64([1.5, 0.5]))[inside], WIDTH)


def test_images_points_and_regularizations_are_batches():
    images = draw_image(2, 1, dtype=np.float32)
    sources, targets = (np.float32([p, p[::-1] + 0.3, p + 0.7]) for p in draw_points())
    weights = np.float32([0, 1, 2])
    together = thin_plate_spline(images, sources, targets, regularization=weights)
    assert together.shape == (2, 3, HEIGHT, WIDTH, 2)
    for k in range(3):
        alone = thin_plate_spline(images[1, 0], sources[k], targets[k], regularization=weights[k])
        assert_close("spline", together[1, k], alone, WIDTH * np.abs(images).max())


def test_bytes_stay_bytes():
    image = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    target = np.float32([[0, 0], [WIDTH, 0], [0, HEIGHT], [WIDTH, HEIGHT]])
    assert_exact(thin_plate_spline(image, target, target), image, np.uint8)


def test_equals_scipy():
    scipy = pytest.importorskip("scipy.interpolate")
    for smoothing in (0.0, 30.0):
        source, target = draw_points(40, seed=2)
        spline = scipy.RBFInterpolator(target, source, kernel="thin_plate_spline", degree=1, smoothing=smoothing)
        expected = spline(centers().reshape(-1, 2)).reshape(HEIGHT, WIDTH, 2)
        with jax.enable_x64(True):
            seen = thin_plate_spline(
                positions(64, 64, np.float64), source + 16, target, (HEIGHT, WIDTH), regularization=smoothing
            )
        assert_close("spline float64", seen, expected + 16, WIDTH)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_gradients_to_image_points_and_regularization():
    source, target = draw_points(5)
    function = lambda image, source, target, weight: thin_plate_spline(
        image, source, target, (3, 4), regularization=weight
    )
    assert_derivatives(function, draw_image()[:5, :6], source / 5, target / 5, np.float64(0.3), step=1e-4)


def test_gradients_are_finite_where_a_pixel_is_a_target():
    """U has no second derivative there; the first two are taken as zero."""
    points = np.float32([[0.5, 0.5], [2.5, 0.5], [1.5, 3.5], [3.5, 2.5]])
    image = jnp.asarray(draw_image(dtype=np.float32)[:5, :5, :1])
    loss = lambda source, target: (thin_plate_spline(image, source, target) ** 2).sum()
    gradient = jax.grad(loss, (0, 1))
    pushed = jax.jit(lambda p, d: jax.jvp(gradient, p, d))((points + 0.3, points), (points, points))
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(pushed))


def test_reverse_mode_keeps_no_array_for_each_point():
    image = jnp.zeros((64, 64, 1), jnp.float32)
    loss = lambda source, target: (thin_plate_spline(image, source, target) ** 2).sum()
    points = jnp.asarray(np.random.default_rng(0).uniform(0, 64, (100, 2)), jnp.float32)
    temporary = jax.jit(jax.grad(loss, (0, 1))).lower(points, points).compile().memory_analysis().temp_size_in_bytes
    matrices = 8 * 103**2  # a few, of the equations and of their solution
    assert temporary < 4 * (30 * 64**2 + matrices)


def test_errors_say_what_came_and_what_was_expected():
    image, points = draw_image(dtype=np.float32), draw_points()[0].astype(np.float32)
    with pytest.raises(ValueError, match=r"thin_plate_spline: source_points has shape \(2, 2\), .* three points"):
        thin_plate_spline(image, points[:2], points[:2])
    with pytest.raises(ValueError, match=r"thin_plate_spline: target_points has shape \(10, 3\)"):
        thin_plate_spline(image, points, np.zeros((10, 3), np.float32))
    with pytest.raises(ValueError, match=r"shape \(10, 2\) and target_points has shape \(9, 2\); expected the same"):
        thin_plate_spline(image, points, points[:9])
