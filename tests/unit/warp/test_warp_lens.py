"""Lenses: their models in NumPy, OpenCV's maps and points, the oracle's reads, and finite differences."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support import peers, recordings
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact, named

recorded = functools.partial(recordings.arrays, "lenses_opencv")
HEIGHT, WIDTH = 24, 32
CAMERA = np.array([[26.0, 0, 17.0], [0, 28.0, 11.5], [0, 0, 1]])
IDEAL = np.array([[22.0, 0, 15.5], [0, 23.0, 12.5], [0, 0, 1]])
LENSES = {
    "barrel": [-0.25, 0.08, 0.004, -0.003],
    "pincushion": [0.2, 0.05, -0.002, 0.004, 0.01],
    "moustache": [-0.3, 0.12, 0.001, -0.001, -0.02],
    "rational": [0.5, -0.1, 0.003, -0.002, 0.01, 0.8, 0.1, 0.02],
}
# With zeros up to eight coefficients, so that they are a batch.
PADDED = np.array([lens + [0.0] * (8 - len(lens)) for lens in LENSES.values()])
# Lenses of a fisheye that are recorded.
FISHEYES = [f"fisheye{number}" for number in range(3)]
BENT = np.array([0.1, -0.03, 0.02, -0.005])
# OpenCV's first pixel is at (0, 0).
TO_OPENCV = np.array([[0, 0, -0.5], [0, 0, -0.5], [0, 0, 0]])
READ = {"filter_mode": "linear", "address_mode": "border", "normalized_coords": False}


def fisheyes(dtype=np.float32):
    """Camera matrix, coefficients of three lenses and the matrix of the ideal camera, in our pixels."""
    data = recorded()
    lenses = np.stack([np.ravel(data[f"{name}/coefficients"]) for name in FISHEYES]).astype(dtype)
    camera, ideal = (data[name].astype(dtype) - TO_OPENCV.astype(dtype) for name in ("camera", "new_camera"))
    return camera, lenses, ideal


def grid(height=HEIGHT, width=WIDTH, dtype=np.float64):
    """The centers of all pixels, (x, y)."""
    return tuple(np.meshgrid(np.arange(width, dtype=dtype) + 0.5, np.arange(height, dtype=dtype) + 0.5))


def bend(x, y, lens, camera=CAMERA, ideal=IDEAL):
    """The pixel of `camera` at which the lens shows a pixel of `ideal`: the model, term by term."""
    k1, k2, p1, p2, k3, k4, k5, k6 = np.concatenate([lens, np.zeros(8 - len(lens))])
    a, b = (x - ideal[0, 2]) / ideal[0, 0], (y - ideal[1, 2]) / ideal[1, 1]
    r2 = a**2 + b**2
    radial = (1 + k1 * r2 + k2 * r2**2 + k3 * r2**3) / (1 + k4 * r2 + k5 * r2**2 + k6 * r2**3)
    u = a * radial + 2 * p1 * a * b + p2 * (r2 + 2 * a**2)
    v = b * radial + p1 * (r2 + 2 * b**2) + 2 * p2 * a * b
    return u * camera[0, 0] + camera[0, 2], v * camera[1, 1] + camera[1, 2]


def draw_image(*batch, channels=2, dtype=np.float64):
    return np.random.default_rng(0).normal(size=(*batch, HEIGHT, WIDTH, channels)).astype(dtype)


def singles(*arrays):
    return tuple(np.asarray(a, np.float32) for a in arrays)


def test_points_follow_the_model_and_opencv():
    """Lenses of four, five and eight coefficients, and of a fisheye."""
    camera, lenses, ideal = fisheyes()
    given = {name: singles(CAMERA, lens, IDEAL) for name, lens in LENSES.items()}
    given |= {name: (camera, lens, ideal) for name, lens in zip(FISHEYES, lenses, strict=True)}

    @jax.jit
    def run(at, given):
        models = {name: {"model": "fisheye"} if name in FISHEYES else {} for name in given}
        to = lambda name, *lens, ideal: jt.warp.distort_points(at, *lens, new_camera_matrix=ideal, **models[name])
        return {name: jnp.stack(to(name, *lens, ideal=ideal)) for name, (*lens, ideal) in given.items()}

    def program(cv2, camera, lens, ideal):
        return cv2.initUndistortRectifyMap(camera, lens, None, ideal, (WIDTH, HEIGHT), cv2.CV_32FC1)

    found = jax.device_get(run(grid(dtype=np.float32), given))
    for name, lens in LENSES.items():
        with named(name):
            assert found[name].dtype == np.float32
            assert_close("point", found[name], np.stack(bend(*grid(), lens)), WIDTH)
            of_opencv = CAMERA + TO_OPENCV, np.array(lens), IDEAL + TO_OPENCV
            for theirs in peers.results("cv2", f"map of a lens {lens}", program, *of_opencv):
                assert_close("point", found[name], np.add(theirs, 0.5), WIDTH)
    for name in FISHEYES:
        with named(name):
            assert_close("point", np.moveaxis(found[name], 0, -1), recorded()[f"{name}/distorted"] + 0.5, WIDTH)


def test_inverse_points_solve_the_model():
    """Of several cameras and lenses at once."""
    cameras = CAMERA * np.array([[1, 1, 1], [1.1, 1, 1], [1, 1, 0.9], [1, 1.05, 1]])[:, None]
    camera, lens, ideal = singles(cameras[:, None, None], PADDED[:, None, None], IDEAL)
    run = jax.jit(lambda at, *lens, ideal: jt.warp.undistort_points(at, *lens, new_camera_matrix=ideal))
    found = jax.device_get(run(grid(dtype=np.float32), camera, lens, ideal=ideal))
    assert all(a.dtype == np.float32 for a in found)
    for k, name in enumerate(LENSES):
        with named(name):
            back = bend(*(np.asarray(a[k], np.float64) for a in found), PADDED[k], cameras[k])
            assert_close("point", np.stack(back), np.stack(grid()), WIDTH)


def test_inverse_points_of_a_fisheye_are_those_of_opencv_in_front_of_the_camera(x64):
    camera, lenses, ideal = fisheyes(np.float64)
    run = jax.jit(lambda at, lens: jt.warp.undistort_points(at, camera, lens, new_camera_matrix=ideal, model="fisheye"))
    # OpenCV holds radii at pi / 2, and shows what lies behind the camera somewhere in front.
    radius = np.hypot(*((c - camera[k, 2]) / camera[k, k] for k, c in enumerate(grid())))
    for name, *points in zip(FISHEYES, *jax.device_get(run(grid(), lenses[:, None, None])), strict=True):
        found, expected = np.stack(points, -1), recorded()[f"{name}/ideal"] + 0.5
        in_front = np.isfinite(found).all(-1)
        sure = in_front & (radius < 1.5)
        # Toward a right angle the ideal image goes to infinity, and its slope with it.
        scale = 1 + ((expected - ideal[[0, 1], 2]) / 9) ** 2
        with named(name):
            assert in_front[radius < 1.3].all()
            assert sure.mean() > 0.7
            assert_close("fixed point", found[sure], expected[sure], (WIDTH * scale)[sure])


def test_where_a_lens_folds_the_near_side_counts_and_beyond_is_nothing():
    """r (1 - r^2 / 3) is largest at r = 1, two thirds. Where nothing is, nothing moves."""
    camera, radius = np.eye(3, dtype=np.float32), np.float32([0.1, 0.5, 0.66, 0.6666, 0.6667, 0.7, 2.0, 1e6])
    around = np.meshgrid(*[np.linspace(-6, 6, 25, dtype=np.float32)] * 2)

    @jax.jit
    def run(radius, around):
        back = lambda at, k: jnp.stack(jt.warp.undistort_points(at, camera, np.float32([k, 0, 0, 0])))
        along = jax.jvp(lambda r: back((0.6 * r, -0.8 * r), -1 / 3), (radius,), (jnp.ones_like(radius),))
        return along, back(around, -1)

    ((x, y), moved), turned = jax.device_get(run(radius, around))
    near = np.hypot(x, y)[:4]
    assert (near < 1).all()
    assert_close("point", near * (1 - near**2 / 3), radius[:4].astype(np.float64), 1)
    np.testing.assert_array_equal(x[4:], np.inf)
    np.testing.assert_array_equal(y[4:], -np.inf)
    assert np.abs(moved[:, :3]).min() > 0.5
    np.testing.assert_array_equal(moved[:, 4:], 0)
    # Farther out the image is turned by half a turn, which is no mirror, and rays lead to points on the other side.
    np.testing.assert_array_equal(np.abs(turned)[:, np.hypot(*around) > 1], np.inf)


def test_points_of_a_fisheye_come_back_and_behind_the_camera_is_nothing(x64):
    """At the center a quotient of zeros would stand without the series; its derivatives are those of the model."""
    camera, angle = np.eye(3), np.array([0.0, 1e-9, 1e-3, 0.03, 0.5, 1.2, 1.55])
    r = np.tan(angle)

    @jax.jit
    def run(r, behind):
        there = jt.warp.distort_points((0.6 * r, -0.8 * r), camera, BENT, model="fisheye")
        nothing = jt.warp.undistort_points((behind, -0.1), camera, 0 * BENT, model="fisheye")
        radial = lambda x: jt.warp.distort_points((x, 0.0), camera, BENT, model="fisheye")[0]
        slopes = jax.grad(radial)(0.0), jax.grad(jax.grad(jax.grad(radial)))(0.0)
        return there, jt.warp.undistort_points(there, camera, BENT, model="fisheye"), nothing, slopes

    there, back, (x, y), slopes = jax.device_get(run(r, np.array([1.7, 3.0, 50.0])))
    bent = angle * (1 + 0.1 * angle**2 - 0.03 * angle**4 + 0.02 * angle**6 - 0.005 * angle**8)
    assert_close("point float64", np.stack(there), np.stack([0.6 * bent, -0.8 * bent]), 1)
    assert_close("point float64", np.stack(back), np.stack([0.6 * r, -0.8 * r]), 1 + r**2)
    np.testing.assert_array_equal(x, np.inf)
    np.testing.assert_array_equal(y, -np.inf)
    # t + 0.1 t^3 with t = x - x^3 / 3
    assert_close("float32", slopes, [1, 6 * (0.1 - 1 / 3)], 1)


def test_images_are_read_where_the_model_says(x64):
    """Several lenses at once, of a fisheye too, and several images; and a plane, which shows where."""
    images, shape, larger = draw_image(4), (HEIGHT - 3, WIDTH + 5), CAMERA * np.array([[2.0], [2.0], [1]])
    camera, lenses, ideal = fisheyes(np.float64)

    @jax.jit
    def run(images):
        by_model = jt.warp.undistort(images, CAMERA, PADDED, shape, new_camera_matrix=IDEAL)
        of_fisheyes = jt.warp.undistort(images[0], camera, lenses, new_camera_matrix=ideal, model="fisheye")
        how = {"address_mode": "clamp", "new_camera_matrix": IDEAL}
        return by_model, of_fisheyes, jt.warp.distort(np.stack(grid(), -1), larger, PADDED, (48, 64), **how)

    by_model, of_fisheyes, seen = jax.device_get(run(images))
    points = [bend(*grid(*shape), lens) for lens in PADDED]
    expected = [oracle.sample(image, at, dtype=np.float64, **READ) for image, at in zip(images, points, strict=True)]
    assert_close("point float64", by_model, np.stack(expected), WIDTH * np.abs(images).max())
    points = [np.moveaxis(recorded()[f"{name}/distorted"] + 0.5, -1, 0) for name in FISHEYES]
    expected = [oracle.sample(images[0], tuple(at), dtype=np.float64, **READ) for at in points]
    # OpenCV's map is one of float32.
    assert_close("point", of_fisheyes, np.stack(expected), WIDTH * np.abs(images).max())
    for name, plane, lens in zip(LENSES, seen, PADDED, strict=True):
        inside = (plane > 1).all(-1) & (plane < (WIDTH - 1, HEIGHT - 1)).all(-1)
        there = np.stack(bend(plane[..., 0], plane[..., 1], lens, larger))
        with named(name):
            assert inside.mean() > 0.4
            assert_close("point float64", there[:, inside], np.stack(grid(48, 64))[:, inside], 64)


def test_distort_undoes_undistort():
    """Two cubic reads of a wave of length 2 pi h: of the order of 1 / h^3, more at the edge, where texels repeat."""
    x, y = grid()
    smooth = np.float32(np.sin(x / 6) * np.cos(y / 5))[..., None]
    camera, lens = singles([[40, 0, 16], [0, 40, 12], [0, 0, 1]], BENT)
    how = {"sampler": jt.Sampler(filter_mode="cubic"), "model": "fisheye", "address_mode": "clamp"}
    there = lambda image: jt.warp.undistort(image, camera, lens, new_camera_matrix=camera, **how)
    run = jax.jit(lambda image: jt.warp.distort(there(image), camera, lens, new_camera_matrix=camera, **how))
    inside = np.s_[3:-3, 3:-3]
    assert_close("cubic wave", run(smooth)[inside], smooth[inside], 1)


def test_bytes_without_distortion_and_what_a_lens_shows_nothing_of():
    """The same bytes; and a border, with finite gradients."""
    codes = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    image, camera = draw_image(dtype=np.float32), np.float32(CAMERA) * np.float32([[0.4], [0.4], [1]])

    @jax.jit
    def run(codes, image, camera, lens):
        shown = lambda *args: jt.warp.distort(*args, border_color=7.0)
        gradient = jax.grad(lambda *args: (shown(*args).sum(), shown(*args)), (0, 1, 2), has_aux=True)
        same = jt.warp.distort(codes, np.float32(CAMERA), np.zeros(8, np.float32))
        return same, gradient(image, camera, lens)

    same, (gradients, shown) = jax.device_get(run(codes, image, camera, np.float32([-1.0, 0, 0, 0])))
    assert_exact(same, codes, np.uint8)
    assert_exact(shown[0, 0], np.float32([7, 7]))
    assert all(np.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize(("model", "lens"), [("brown_conrady", np.add(LENSES["rational"], 0.01)), ("fisheye", BENT)])
def test_gradients(model, lens, x64):
    """Of both ways through the model; where images are read does not depend on what moves points."""
    camera, ideal = (np.array([[f, 0, 3.1], [0, f + 0.4, 2.6], [0, 0, 1]]) for f in (5.3, 4.9))
    points = tuple(np.random.default_rng(0).uniform(1, 5, (2, 5)))

    def function(camera, lens, ideal, points):
        options = {"new_camera_matrix": ideal, "model": model}
        ways = jt.warp.distort_points, jt.warp.undistort_points
        return jnp.concatenate([*map(jnp.stack, (way(points, camera, lens, **options) for way in ways))])

    assert_derivatives(function, camera, lens, ideal, points)


def test_a_calibration_of_opencv_in_any_of_its_shapes():
    theirs = np.float32([[500, 0, 319.5], [0, 500, 239.5], [0, 0, 1]])
    for shape in ((5,), (1, 5), (5, 1)):
        camera, lens = jt.warp.camera_from_opencv(theirs, np.arange(5.0).reshape(shape))
        np.testing.assert_array_equal(camera, theirs + np.float32([[0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]]))
        np.testing.assert_array_equal(lens, np.arange(5.0))
    batch = jt.warp.camera_from_opencv(np.stack([theirs] * 2), np.zeros((2, 4)))
    assert [a.shape for a in batch] == [(2, 3, 3), (2, 4)]
