"""Lens distortion against the model written out in NumPy, against OpenCV, and against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support import peers
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact

HEIGHT, WIDTH = 24, 32
CAMERA = np.array([[26.0, 0, 17.0], [0, 28.0, 11.5], [0, 0, 1]])
IDEAL = np.array([[22.0, 0, 15.5], [0, 23.0, 12.5], [0, 0, 1]])
LENSES = {
    "barrel": [-0.25, 0.08, 0.004, -0.003],
    "pincushion": [0.2, 0.05, -0.002, 0.004, 0.01],
    "moustache": [-0.3, 0.12, 0.001, -0.001, -0.02],
    "rational": [0.5, -0.1, 0.003, -0.002, 0.01, 0.8, 0.1, 0.02],
}
AT_ANY_LENS = pytest.mark.parametrize("lens", LENSES.values(), ids=LENSES)
# With zeros up to eight coefficients, so that one compiled program serves for all.
AT_ANY_PADDED_LENS = pytest.mark.parametrize("lens", [k + [0.0] * (8 - len(k)) for k in LENSES.values()], ids=LENSES)
# OpenCV's first pixel is at (0, 0).
TO_OPENCV = np.array([[0, 0, -0.5], [0, 0, -0.5], [0, 0, 0]])


def grid():
    """The centers of all pixels, (x, y)."""
    return tuple(np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5))


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


# Points


@AT_ANY_LENS
def test_points_follow_the_model(lens):
    x, y = grid()
    found = jt.warp.distort_points(singles(x, y), *singles(CAMERA, lens), new_camera_matrix=np.float32(IDEAL))
    for actual, expected in zip(found, bend(x, y, lens)):
        assert actual.dtype == jnp.float32
        assert_close("point", actual, expected, WIDTH)


@AT_ANY_PADDED_LENS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("x64")
def test_inverse_points_solve_the_model(lens, dtype):
    x, y = grid()
    values = (np.asarray(a, dtype) for a in (CAMERA, lens, IDEAL))
    camera, coefficients, ideal = values
    found = jt.warp.undistort_points((x.astype(dtype), y.astype(dtype)), camera, coefficients, new_camera_matrix=ideal)
    assert all(a.dtype == dtype for a in found)
    row = "point" if dtype is np.float32 else "point float64"
    for actual, expected in zip(bend(*(np.asarray(a, np.float64) for a in found), lens), (x, y)):
        assert_close(row, actual, expected, WIDTH)


def test_where_a_lens_folds_the_near_side_counts_and_beyond_is_nothing():
    # r (1 - r^2 / 3) is largest at r = 1, two thirds.
    lens, camera = np.float32([-1 / 3, 0, 0, 0]), np.eye(3, dtype=np.float32)
    radius = np.float32([0.1, 0.5, 0.66, 0.6666, 0.6667, 0.7, 2.0, 1e6])
    x, y = jt.warp.undistort_points((0.6 * radius, -0.8 * radius), camera, lens)
    near = np.hypot(x, y)[:4]
    assert (near < 1).all()
    assert_close("point", near * (1 - near**2 / 3), radius[:4].astype(np.float64), 1)
    np.testing.assert_array_equal(x[4:], np.inf)
    np.testing.assert_array_equal(y[4:], -np.inf)
    # Where nothing is, nothing moves.
    along = lambda radius: jt.warp.undistort_points((0.6 * radius, -0.8 * radius), camera, lens)
    moved = jax.jvp(along, (radius,), (np.ones_like(radius),))[1]
    assert np.abs(np.stack(moved)[:, :3]).min() > 0.5
    np.testing.assert_array_equal(np.stack(moved)[:, 4:], 0)
    # Farther out the image is turned by half a turn, which is no mirror, and rays lead to points on the other side.
    grid = np.meshgrid(*[np.linspace(-6, 6, 25, dtype=np.float32)] * 2)
    x, y = jt.warp.undistort_points(grid, camera, -np.float32([1, 0, 0, 0]))
    outside = np.hypot(*grid) > 1
    np.testing.assert_array_equal(np.abs(x)[outside], np.inf)
    np.testing.assert_array_equal(np.abs(y)[outside], np.inf)


def test_points_and_cameras_broadcast():
    x, y = np.float32([[3.0], [20.0]]), np.float32([5.0, 9.0, 11.0])
    cameras = np.stack([CAMERA, IDEAL]).astype(np.float32)[:, None, None]
    lens = np.float32(LENSES["barrel"])
    both = jt.warp.distort_points((x, y), cameras, lens)
    for k, camera in enumerate((CAMERA, IDEAL)):
        for actual, expected in zip(both, bend(x, y, lens, camera, camera)):
            assert_close("point", actual[k], np.broadcast_to(expected, (2, 3)), WIDTH)


# Images


@AT_ANY_PADDED_LENS
@pytest.mark.usefixtures("x64")
def test_undistort_reads_where_the_model_says(lens):
    image, options = draw_image(), {"filter_mode": "linear", "address_mode": "border", "normalized_coords": False}
    shape = (HEIGHT - 3, WIDTH + 5)
    actual = jt.warp.undistort(image, CAMERA, np.array(lens), shape, new_camera_matrix=IDEAL)
    x, y = np.meshgrid(np.arange(shape[1]) + 0.5, np.arange(shape[0]) + 0.5)
    expected = oracle.sample(image, bend(x, y, lens), dtype=np.float64, **options)
    assert_close("point float64", actual, expected, WIDTH * np.abs(image).max())


@AT_ANY_PADDED_LENS
@pytest.mark.usefixtures("x64")
def test_distort_shows_at_each_place_what_the_model_brings_there(lens):
    """A plane is read without error: at ideal pixels (u, v), u and v."""
    ideal = np.stack(np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5), -1)
    camera = CAMERA * np.array([[2.0], [2.0], [1]])  # far from the edges of the image
    shown = jt.warp.distort(ideal, camera, np.array(lens), (48, 64), address="clamp", new_camera_matrix=IDEAL)
    shown = np.asarray(shown)
    x, y = np.meshgrid(np.arange(64) + 0.5, np.arange(48) + 0.5)
    inside = (shown > 1).all(-1) & (shown < (WIDTH - 1, HEIGHT - 1)).all(-1)
    assert inside.mean() > 0.4
    back = np.stack(bend(shown[..., 0], shown[..., 1], lens, camera), -1)
    assert_close("point float64", back[inside], np.stack([x, y], -1)[inside], 64)


def test_distort_undoes_undistort():
    x, y = grid()
    smooth = np.float32(np.sin(x / 6) * np.cos(y / 5))[..., None]
    lens = singles(CAMERA, LENSES["moustache"])
    sampler = jt.Sampler(filter_mode="cubic")
    there = jt.warp.undistort(smooth, *lens, (2 * HEIGHT, 2 * WIDTH), sampler, new_camera_matrix=2 * lens[0])
    back = jt.warp.distort(there, *lens, (HEIGHT, WIDTH), sampler, new_camera_matrix=2 * lens[0])
    # A cubic read of a wave of length 2 pi h, twice: of the order of 1 / h^3, more at the edge, where texels repeat.
    inside = np.s_[3:-3, 3:-3]
    assert_close("cubic wave", back[inside], smooth[inside], 1)


def test_cameras_and_images_are_batches():
    images = draw_image(3, dtype=np.float32)
    lens = np.float32(LENSES["barrel"]) * np.float32([[0], [1], [2]])
    together = jt.warp.undistort(images, np.float32(CAMERA), lens)
    for k in range(3):
        alone = jt.warp.undistort(images[k], np.float32(CAMERA), lens[k])
        assert_close("float32", together[k], alone, np.abs(images).max())


def test_no_distortion_is_the_identity_for_bytes():
    image = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    assert_exact(jt.warp.distort(image, np.float32(CAMERA), np.zeros(8, np.float32)), image, np.uint8)


def test_what_a_lens_shows_nothing_of_is_border_with_finite_gradients():
    image, camera = draw_image(dtype=np.float32), np.float32(CAMERA) * np.float32([[0.4], [0.4], [1]])
    lens = jnp.float32([-1.0, 0, 0, 0])
    shown = jt.warp.distort(image, camera, lens, border_color=7.0)
    np.testing.assert_array_equal(shown[0, 0], np.float32([7, 7]))
    loss = lambda image, camera, lens: jt.warp.distort(image, camera, lens).sum()
    for gradient in jax.jit(jax.grad(loss, (0, 1, 2)))(jnp.asarray(image), camera, lens):
        assert np.isfinite(gradient).all()


# OpenCV


def of_opencv(lens):
    """A lens as OpenCV takes it: the camera, the coefficients and the ideal camera."""
    return CAMERA + TO_OPENCV, np.array(lens), IDEAL + TO_OPENCV


@AT_ANY_LENS
def test_maps_equal_those_of_opencv(lens):
    def program(cv2, camera, lens, ideal):
        return cv2.initUndistortRectifyMap(camera, lens, None, ideal, (WIDTH, HEIGHT), cv2.CV_32FC1)

    found = jt.warp.distort_points(singles(*grid()), *singles(CAMERA, lens), new_camera_matrix=np.float32(IDEAL))
    for theirs in peers.results("cv2", f"map of a lens {lens}", program, *of_opencv(lens)):
        for actual, expected in zip(found, theirs, strict=True):
            assert_close("point", actual, expected + 0.5, WIDTH)


@AT_ANY_PADDED_LENS
@pytest.mark.usefixtures("x64")
def test_inverse_points_equal_those_of_opencv(lens):
    points = np.stack(grid(), -1)

    def program(cv2, camera, lens, ideal, points):
        criteria = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 1000, 1e-14)
        solved = cv2.undistortPoints(points.reshape(-1, 1, 2), camera, lens, P=ideal, criteria=criteria)
        return [solved.reshape(points.shape)]

    found = jt.warp.undistort_points(tuple(np.moveaxis(points, -1, 0)), CAMERA, np.array(lens), new_camera_matrix=IDEAL)
    for (theirs,) in peers.results("cv2", f"points of a lens {lens}", program, *of_opencv(lens), points - 0.5):
        assert_close("fixed point", np.stack(found, -1), theirs + 0.5, WIDTH)


@AT_ANY_PADDED_LENS
def test_images_equal_those_of_opencv(lens):
    image = draw_image(channels=3, dtype=np.float32)

    def program(cv2, camera, lens, ideal, image):
        return [cv2.undistort(image, camera, lens, newCameraMatrix=ideal)]

    actual = jt.warp.undistort(image, *singles(CAMERA, lens), new_camera_matrix=np.float32(IDEAL))
    for (theirs,) in peers.results("cv2", f"image of a lens {lens}", program, *of_opencv(lens), image):
        assert_close("OpenCV's 1/32", actual, theirs, np.ptp(image))


# Gradients


@pytest.mark.usefixtures("x64")
def test_gradients_to_image_camera_and_lens():
    camera, ideal = (np.array([[f, 0, 3.1], [0, f + 0.4, 2.6], [0, 0, 1]]) for f in (5.3, 4.9))
    lens = np.array(LENSES["rational"]) + 0.01
    function = lambda image, *lens: jt.warp.undistort(image, *lens[:2], (4, 5), new_camera_matrix=lens[2])
    assert_derivatives(function, draw_image()[:5, :6], camera, lens, ideal)


@pytest.mark.usefixtures("x64")
def test_gradients_to_points_camera_and_lens():
    """Of the solution of the model: `distort` looks there."""
    points = tuple(np.random.default_rng(k).uniform(2, 20, 5) for k in range(2))
    function = lambda points, *lens: jnp.stack(jt.warp.undistort_points(points, *lens[:2], new_camera_matrix=lens[2]))
    assert_derivatives(function, points, CAMERA, np.array(LENSES["rational"]), IDEAL)


# Errors


def test_errors_say_what_came_and_what_was_expected():
    camera, lens = np.float32(CAMERA), np.zeros(4, np.float32)
    image = draw_image(dtype=np.float32)
    with pytest.raises(ValueError, match=r"undistort: distortion has shape \(6,\).*n = 4, 5 or 8"):
        jt.warp.undistort(image, camera, np.zeros(6, np.float32))
    with pytest.raises(ValueError, match=r"distort: camera_matrix has shape \(2, 3\), expected \(..., 3, 3\)"):
        jt.warp.distort(image, camera[:2], lens)
    with pytest.raises(ValueError, match=r"distort_points: new_camera_matrix has shape \(3,\)"):
        jt.warp.distort_points((1.0, 2.0), camera, lens, new_camera_matrix=camera[0])
    with pytest.raises(
        ValueError, match=r"undistort_points: coords has shape \(5, 3\), expected \(..., 2\), x before y"
    ):
        jt.warp.undistort_points(np.zeros((5, 3), np.float32), camera, lens)
    with pytest.raises(ValueError, match=r"undistort_points: .* do not broadcast .*camera_matrix\[:, None\]"):
        jt.warp.undistort_points((np.zeros(5, np.float32), 0.0), np.stack([camera] * 2), lens)
