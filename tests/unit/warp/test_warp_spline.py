"""Thin-plate splines against their equations in NumPy, and against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact, named

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


def test_images_are_read_where_the_spline_says(x64):
    """Smoothed or not. Points that are given twice count as one; with other sources, as one with their mean."""
    (source, target), image, shape = draw_points(), draw_image(), (HEIGHT + 2, WIDTH - 5)
    sources, targets = (np.concatenate([a, a[:3], a[:1]]) for a in (source, target))
    sources[[1, 2]] += 0.5
    means = source + np.float64([0, 0.25, 0.25, *[0] * 7])[:, None]
    # With a regularization the equations of all points are regular, too.
    cases = {
        "once": ((source, target, 0.0), (source, target)),
        "once, smoothed": ((source, target, 30.0), (source, target, 30.0)),
        "twice": ((sources, targets, 0.0), (means, target)),
        "twice, smoothed": ((sources, targets, 4.0), (sources, targets, 4.0)),
    }
    spline = jax.jit(lambda *points, weight: thin_plate_spline(image, *points, shape, regularization=weight))
    for name, ((*points, weight), of_reference) in cases.items():
        at = np.moveaxis(reference(*of_reference[:2], centers(*shape), *of_reference[2:]), -1, 0)
        with named(name):
            expected = oracle.sample(image, tuple(at), dtype=np.float64, **READ)
            found = spline(*points, weight=weight)
            assert_close("spline float64", found, expected, WIDTH * np.abs(image).max())


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


def test_affine_maps():
    """As the limit of much regularization, of bytes, and smoothed as a matrix would have it."""
    (source, target), image = np.float32(draw_points()), draw_image(dtype=np.float32)
    matrix = np.float32([[1.9, 0.3, -2.0], [-0.2, 2.1, 1.0]])
    best = np.linalg.lstsq(np.column_stack([target, np.ones(len(target))]), source, rcond=None)[0]
    corners = np.float32([[0, 0], [WIDTH, 0], [0, HEIGHT], [WIDTH, HEIGHT]])
    codes = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    much = thin_plate_spline(positions(), source, target, (8, 9), regularization=1e9)
    at = centers(8, 9) @ best[:2] + best[2]
    assert_close("spline", much[at.min(-1) > 0.5], at[at.min(-1) > 0.5], WIDTH)
    assert_exact(thin_plate_spline(codes, corners, corners), codes, np.uint8)

    @jax.jit
    def smoothed(source, target):
        by_matrix = jt.warp.warp_affine(image[:8, :8], matrix, inverse_map=True, antialias=True)
        return thin_plate_spline(image[:8, :8], source, target, antialias=True), by_matrix

    assert_close("spline", *smoothed(target @ matrix[:, :2].T + matrix[:, 2], target), WIDTH * np.abs(image).max())


def test_points_that_coincide_in_float32():
    """Up to a rounding, in one of a batch alone; and gradients, which equal points share."""
    source, target = np.float32(draw_points())
    near = target[:2] * np.float32([1, 1 + 2**-23])
    sources, targets = np.concatenate([source, source[:2]]), np.concatenate([target, near])
    loss = lambda source, target: (thin_plate_spline(draw_image(dtype=np.float32), source, target) ** 2).sum()

    @jax.jit
    def run(sources, targets):
        several = (jnp.stack([a, a[::-1]]) for a in (sources, targets))
        gradients = (jax.grad(loss, (0, 1))(sources[:count], targets[:count]) for count in (12, 10))
        return thin_plate_spline(positions(), *several), *gradients

    seen, of_all, of_once = jax.device_get(run(sources, targets))
    expected = reference(source, target, centers())
    inside = (expected > 0.5).all(-1) & (expected < (WIDTH - 0.5, HEIGHT - 0.5)).all(-1)
    assert_close("spline", seen[:, inside], np.stack([expected[inside]] * 2), 4 * WIDTH)
    for shared, whole in zip(of_all, of_once, strict=True):
        assert np.isfinite(shared).all()
        assert np.abs(shared[:2] + shared[10:] - whole[:2]).max() < 1e-2 * np.abs(whole).max()
    assert_exact(of_all[0][:2], of_all[0][10:])


def test_points_on_a_line_move_all_across_it_alike():
    """Also two points, or one."""
    along = np.linspace(0, 1, 7, dtype=np.float32)[:, None] * np.float32([[19, 11]])
    inside, step = np.s_[3:-3, 3:-3], np.float32([[1.5, 0.5]])
    run = jax.jit(lambda target: thin_plate_spline(positions(), target + step, target))
    for offsets in (along, along[[0, 6] + 5 * [0]], along[7 * [0]]):
        seen = run(np.float32([3, 4]) + offsets)
        assert_close("spline", seen[inside], (centers() + step[0])[inside], WIDTH)


def test_images_points_and_regularizations_are_batches():
    images, weights = draw_image(2, 1, dtype=np.float32), np.float32([0, 1, 2])
    sources, targets = (np.float32([p, p[::-1] + 0.3, p + 0.7]) for p in draw_points())

    run = jax.jit(lambda images, *points, weight: thin_plate_spline(images, *points, regularization=weight))
    together = run(images, sources, targets, weight=weights)
    alone = [run(images[1, 0], *points, weight=weight) for *points, weight in zip(sources, targets, weights)]
    assert together.shape == (2, 3, HEIGHT, WIDTH, 2)
    assert_close("spline", together[1], np.stack(alone), WIDTH * np.abs(images).max())


@pytest.mark.slow
def test_gradients_to_image_points_and_regularization(x64):
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
    pushed = jax.jit(lambda p, d: jax.jvp(jax.grad(loss, (0, 1)), p, d))((points + 0.3, points), (points, points))
    assert all(np.isfinite(gradient).all() and gradient.any() for gradient in jax.tree.leaves(pushed))


def test_reverse_mode_keeps_no_array_for_each_point():
    image = jnp.zeros((64, 64, 1), jnp.float32)
    loss = lambda source, target: (thin_plate_spline(image, source, target) ** 2).sum()
    points = jnp.asarray(np.random.default_rng(0).uniform(0, 64, (100, 2)), jnp.float32)
    kept = jax.tree.leaves(jax.eval_shape(lambda *points: jax.vjp(loss, *points)[1], points, points))
    assert max(leaf.size for leaf in kept) < max(8 * 64**2, 2 * 103**2)
