"""Fisheye lenses against recordings of OpenCV, against the model in NumPy, and against finite differences."""

import functools
import io
import lzma
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close

HEIGHT, WIDTH = 24, 32
NUMBERS = range(3)


@functools.cache
def recorded():
    data = (Path(__file__).parents[2] / "data" / "lenses_opencv.npz.xz").read_bytes()
    return dict(np.load(io.BytesIO(lzma.decompress(data))))


def cameras(number, dtype=np.float32):
    """Camera matrix, coefficients and the matrix of the ideal camera, in our pixels."""
    data = recorded()
    camera, lens = jt.warp.camera_from_opencv(data["camera"].astype(dtype), data[f"fisheye{number}/coefficients"])
    return camera, lens.astype(dtype), jt.warp.camera_from_opencv(data["new_camera"].astype(dtype))[0]


def grid():
    """The centers of all pixels, (x, y)."""
    return tuple(np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5))


@pytest.mark.parametrize("number", NUMBERS)
def test_maps_equal_those_of_opencv(number):
    camera, lens, ideal = cameras(number)
    points = tuple(np.float32(c) for c in grid())
    found = jt.warp.distort_points(points, camera, lens, new_camera_matrix=ideal, model="fisheye")
    assert_close("point", np.stack(found, -1), recorded()[f"fisheye{number}/distorted"] + 0.5, WIDTH)


def test_a_rotation_is_a_homography_before_the_lens():
    camera, lens, ideal = cameras(0)
    to_camera = camera @ np.linalg.inv(ideal @ recorded()["rectified/turn"])
    u, v, w = np.einsum("ij,jhw->ihw", to_camera, [*grid(), np.ones((HEIGHT, WIDTH))])
    found = jt.warp.distort_points((u / w, v / w), camera, lens, model="fisheye")
    assert_close("point", np.stack(found, -1), recorded()["rectified/fisheye"] + 0.5, WIDTH)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.usefixtures("x64")
def test_inverse_points_equal_those_of_opencv_in_front_of_the_camera(number):
    camera, lens, ideal = cameras(number, np.float64)
    found = jt.warp.undistort_points(grid(), camera, lens, new_camera_matrix=ideal, model="fisheye")
    found, expected = np.stack(found, -1), recorded()[f"fisheye{number}/ideal"] + 0.5
    # OpenCV holds radii at pi / 2, and shows what lies behind the camera somewhere in front.
    radius = np.hypot(*((c - camera[k, 2]) / camera[k, k] for k, c in enumerate(grid())))
    in_front = np.isfinite(found).all(-1)
    assert in_front[radius < 1.3].all()
    sure = in_front & (radius < 1.5)
    assert sure.mean() > 0.7
    # Toward a right angle the ideal image goes to infinity, and its slope with it.
    scale = 1 + ((expected - np.asarray(ideal)[[0, 1], 2]) / 9) ** 2
    assert_close("fixed point", found[sure], expected[sure], (WIDTH * scale)[sure])


@pytest.mark.parametrize("number", NUMBERS)
def test_images_equal_those_of_opencv(number):
    image = recorded()["image"]
    camera, lens, ideal = cameras(number)
    actual = jt.warp.undistort(image, camera, lens, new_camera_matrix=ideal, model="fisheye")
    assert_close("OpenCV's 1/32", actual, recorded()[f"fisheye{number}/straight"].reshape(image.shape), np.ptp(image))


@pytest.mark.usefixtures("x64")
def test_points_come_back_and_behind_the_camera_is_nothing():
    camera, lens = np.eye(3), np.array([0.1, -0.03, 0.02, -0.005])
    angle = np.array([0.0, 1e-9, 1e-3, 0.03, 0.5, 1.2, 1.55])
    r = np.tan(angle)
    u, v = jt.warp.distort_points((0.6 * r, -0.8 * r), camera, lens, model="fisheye")
    bent = angle * (1 + 0.1 * angle**2 - 0.03 * angle**4 + 0.02 * angle**6 - 0.005 * angle**8)
    assert_close("point float64", np.stack([u, v]), np.stack([0.6 * bent, -0.8 * bent]), 1)
    x, y = jt.warp.undistort_points((u, v), camera, lens, model="fisheye")
    assert_close("point float64", np.stack([x, y]), np.stack([0.6 * r, -0.8 * r]), 1 + r**2)
    x, y = jt.warp.undistort_points((np.array([1.7, 3.0, 50.0]), -0.1), camera, 0 * lens, model="fisheye")
    np.testing.assert_array_equal(x, np.inf)
    np.testing.assert_array_equal(y, -np.inf)


def test_distort_undoes_undistort():
    x, y = grid()
    smooth = np.float32(np.sin(x / 6) * np.cos(y / 5))[..., None]
    camera, lens = np.float32([[40, 0, 16], [0, 40, 12], [0, 0, 1]]), np.float32([0.1, -0.03, 0.02, -0.005])
    sampler = jt.Sampler(filter_mode="cubic")
    options = {"sampler": sampler, "new_camera_matrix": camera, "model": "fisheye", "address": "clamp"}
    back = jt.warp.distort(jt.warp.undistort(smooth, camera, lens, **options), camera, lens, **options)
    inside = np.s_[3:-3, 3:-3]
    assert_close("cubic wave", back[inside], smooth[inside], 1)


# Gradients


@pytest.mark.usefixtures("x64")
def test_gradients_to_image_camera_and_lens():
    image = np.random.default_rng(0).normal(size=(5, 6, 2))
    camera, ideal = (np.array([[f, 0, 3.1], [0, f + 0.4, 2.6], [0, 0, 1]]) for f in (5.3, 4.9))
    lens = np.array([0.1, -0.03, 0.02, -0.005])
    function = lambda image, camera, lens, ideal: jt.warp.undistort(
        image, camera, lens, (4, 5), new_camera_matrix=ideal, model="fisheye"
    )
    assert_derivatives(function, image, camera, lens, ideal)


@pytest.mark.usefixtures("x64")
def test_gradients_of_the_solution():
    points = tuple(np.random.default_rng(k).uniform(2, 20, 5) for k in range(2))
    lens, (camera, _, ideal) = np.array([0.1, -0.03, 0.02, -0.005]), cameras(0, np.float64)
    function = lambda points, *lens: jnp.stack(
        jt.warp.undistort_points(points, *lens[:2], new_camera_matrix=lens[2], model="fisheye")
    )
    assert_derivatives(function, points, np.asarray(camera), lens, np.asarray(ideal))


def test_gradients_at_the_center_are_finite():
    """There a quotient of zeros would stand without the series."""
    camera, lens = np.eye(3, dtype=np.float32), np.float32([0.1, 0, 0, 0])

    def radial(x):
        return jt.warp.distort_points((x, 0.0), camera, lens, model="fisheye")[0]

    slope, bend = jax.grad(radial)(0.0), jax.grad(jax.grad(jax.grad(radial)))(0.0)
    # t + 0.1 t^3 with t = x - x^3 / 3
    assert_close("float32", [slope, bend], [1, 6 * (0.1 - 1 / 3)], 1)


# Arguments


def test_a_calibration_of_opencv_in_any_of_its_shapes():
    theirs = np.float32([[500, 0, 319.5], [0, 500, 239.5], [0, 0, 1]])
    for shape in ((5,), (1, 5), (5, 1)):
        camera, lens = jt.warp.camera_from_opencv(theirs, np.arange(5.0).reshape(shape))
        np.testing.assert_array_equal(camera, theirs + np.float32([[0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]]))
        np.testing.assert_array_equal(lens, np.arange(5.0))
    batch = jt.warp.camera_from_opencv(np.stack([theirs] * 2), np.zeros((2, 4)))
    assert [a.shape for a in batch] == [(2, 3, 3), (2, 4)]
    with pytest.raises(
        ValueError, match=r"camera_from_opencv: distortion has shape \(2, 4\) and camera_matrix \(3, 3\)"
    ):
        jt.warp.camera_from_opencv(theirs, np.zeros((2, 4)))


@pytest.mark.parametrize(
    ("lens", "model", "words"),
    [
        (np.zeros(5), "fisheye", r"distortion has shape \(5,\).*n = 4: k1, k2, k3, k4; jaxtex has no more"),
        (np.zeros((5, 1)), "brown_conrady", r"distortion has shape \(5, 1\).*pass distortion.ravel\(\)"),
        (
            np.zeros(14),
            "brown_conrady",
            r"distortion has shape \(14,\).*: pass distortion\[..., :8\] if the rest is zero",
        ),
        (np.zeros(4), "kannala", r"model is 'kannala', expected one of 'brown_conrady', 'fisheye'"),
    ],
)
def test_errors_say_what_to_pass(lens, model, words):
    with pytest.raises(ValueError, match=f"undistort_points: {words}"):
        jt.warp.undistort_points((1.0, 2.0), np.eye(3, dtype=np.float32), np.float32(lens), model=model)
