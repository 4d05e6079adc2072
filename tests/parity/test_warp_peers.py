"""Warps beside OpenCV's, SciPy's, PyTorch's and JAX's own, each in its own convention; converters of matrices."""

import jax
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import warp
from tests.support import peers
from tests.support.tolerances import assert_close, assert_exact, named

HEIGHT, WIDTH = 20, 30
OUT = (22, 28)
MATRIX = np.float32([[0.9, 0.2, 1.3], [-0.15, 1.1, 2.1]])
HOMOGRAPHY = np.float32([*MATRIX, [0.002, 0.001, 1.0]])
SLOPE = 8  # a difference of neighboring texels, of the largest one: errors of places count so much


def image():
    return np.random.default_rng(0).normal(size=(HEIGHT, WIDTH, 3)).astype(np.float32)


def scale():
    return SLOPE * np.abs(image()).max()


# The rules that the converters follow, without a peer


def moved(matrix, point):
    """A point times an affine or projective matrix."""
    x, y, *w = np.asarray(matrix, np.float64) @ [*point, 1.0]
    return np.array([x, y]) / (w or [1.0])[0]


@pytest.mark.parametrize("matrix", [MATRIX, HOMOGRAPHY], ids=["affine", "projective"])
def test_matrices_of_whole_centers(matrix):
    """A point at whole numbers is half a pixel further here, before and after."""
    for point in ((0.0, 0.0), (3.0, 5.0), (-2.0, 7.5)):
        ours = moved(warp.matrix_from_opencv(matrix), np.add(point, 0.5))
        expected = moved(matrix, point) + 0.5
        assert_close("float32", ours, expected, np.abs(expected))
        if matrix.shape == (3, 3):
            assert_exact(warp.matrix_from_skimage(matrix), warp.matrix_from_opencv(matrix))


def test_matrices_of_indices():
    """SciPy's matrix maps an index (y, x) of the output to one of the input."""
    linear, offset = np.float32([[0.8, 0.3], [-0.2, 1.1]]), np.float32([2.0, -1.0])
    for given in ((linear, offset), (np.column_stack([linear, offset]),)):
        back = warp.matrix_from_scipy(*given)
        y, x = linear @ [3.0, 5.0] + offset
        expected = np.array([x + 0.5, y + 0.5])
        assert_close("float32", moved(back, (5.5, 3.5)), expected, np.abs(expected))
    volume = warp.matrix_from_scipy(np.float32([1, 2, 3]))
    assert_exact(volume, np.float32([[3, 0, 0, -1], [0, 2, 0, -0.5], [0, 0, 1, 0]]))


@pytest.mark.parametrize("align_corners", [False, True])
def test_matrices_of_thetas(align_corners):
    """-1 and 1 are the outer edges, or the outer centers, of both images."""
    theta = np.float32([[0.5, 0.1, 0.2], [-0.1, 0.7, -0.3]])
    inset = 0.5 if align_corners else 0.0
    pixel = lambda u, n: inset + (u + 1) / 2 * (n - 2 * inset)
    matrix = warp.matrix_from_torch(theta, (HEIGHT, WIDTH), OUT, align_corners)
    for u, v in ((-1.0, -1.0), (1.0, 0.0), (0.3, 1.0)):
        x, y = theta @ [u, v, 1.0]
        expected = np.array([pixel(x, WIDTH), pixel(y, HEIGHT)])
        actual = moved(matrix, (pixel(u, OUT[1]), pixel(v, OUT[0])))
        assert_close("float32", actual, expected, 1 + np.abs(expected))


# JAX, OpenCV, SciPy, PyTorch

METHODS = {"nearest": "point", "linear": "linear", "cubic": "cubic"}


def test_resize_is_that_of_jax():
    """But for the pixels next to the edge of a cubic one: JAX leaves taps outside out, an edge repeats them here."""
    theirs = lambda image, method: jax.image.resize(image, (33, 47, 3), method, antialias=False)
    pair = lambda image, method: (warp.resize(image, (33, 47), filter_mode=METHODS[method]), theirs(image, method))
    run = jax.jit(lambda image: {method: pair(image, method) for method in METHODS})
    for method, (actual, expected) in jax.device_get(run(image())).items():
        inner = np.s_[4:-4, 4:-4] if method == "cubic" else np.s_[:]
        with named(method):
            assert_close("peer", actual[inner], expected[inner], scale())


def test_affine_and_perspective_are_those_of_opencv():
    def program(cv2, image, matrix, homography):
        size = OUT[::-1]
        inverse = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        return [
            cv2.warpAffine(image, matrix, size),
            cv2.warpAffine(image, matrix, size, flags=inverse),
            cv2.warpPerspective(image, homography, size),
        ]

    @jax.jit
    def run(image, *matrices):
        matrix, homography = map(warp.matrix_from_opencv, matrices)
        inverse = warp.warp_affine(image, matrix, OUT, inverse_map=True)
        return warp.warp_affine(image, matrix, OUT), inverse, warp.warp_perspective(image, homography, OUT)

    ours = run(image(), MATRIX, HOMOGRAPHY)
    for theirs in peers.results("cv2", "affine and perspective", program, image(), MATRIX, HOMOGRAPHY):
        for actual, expected in zip(ours, theirs, strict=True):
            assert_close("OpenCV's 1/32", actual, expected, np.ptp(image()))


BORDERS = {"border": "CONSTANT", "clamp": "REPLICATE", "mirror": "REFLECT", "reflect": "REFLECT_101", "wrap": "WRAP"}


def test_remap_is_that_of_opencv():
    """Its cubic kernel has the coefficient -0.75."""
    places = np.random.default_rng(1).uniform(-8, 28, (2, 25, 25)).astype(np.float32)

    @jax.jit
    def run(image, places):
        at, options = tuple(places + np.float32(0.5)), {"filter_mode": "cubic", "cubic_coefficient": -0.75}
        return {mode: warp.remap(image, at, jt.Sampler(address_mode=mode, **options)) for mode in BORDERS}

    for mode, ours in run(image(), places).items():

        def program(cv2, image, x, y, mode=mode):
            return [cv2.remap(image, x, y, cv2.INTER_CUBIC, borderMode=getattr(cv2, f"BORDER_{BORDERS[mode]}"))]

        for (theirs,) in peers.results("cv2", f"remap cubic {mode}", program, image(), *places):
            with named(mode):
                assert_close("OpenCV's 1/32", ours, theirs, 2 * np.ptp(image()))


def test_affine_is_that_of_scipy():
    ndimage = pytest.importorskip("scipy.ndimage")
    linear, offset = np.float32([[0.8, 0.3], [-0.2, 1.1]]), np.float32([2.0, -1.0])
    theirs = ndimage.affine_transform(image()[..., 0], linear, offset, order=1, mode="grid-constant")
    ours = warp.warp_affine(image()[..., :1], warp.matrix_from_scipy(linear, offset), inverse_map=True)
    assert_close("peer", ours[..., 0], theirs, scale())


def test_affine_is_that_of_torch():
    theta = np.float32([[[0.9, 0.2, 0.1], [-0.1, 1.1, 0.2]], [[0.4, 0.0, 0.3], [0.1, 0.5, -0.2]]])
    images = np.stack([image(), image()[::-1]])

    @jax.jit
    def run(images, theta):
        matrix = lambda align: warp.matrix_from_torch(theta, (HEIGHT, WIDTH), (11, 12), align)
        return [warp.warp_affine(images, matrix(align), (11, 12), inverse_map=True) for align in (False, True)]

    for align, ours in enumerate(run(images, theta)):

        def program(torch, theta, images, align=bool(align)):
            grid = torch.nn.functional.affine_grid(torch.tensor(theta), (2, 3, 11, 12), align)
            planes = torch.tensor(images).permute(0, 3, 1, 2)
            return [torch.nn.functional.grid_sample(planes, grid, align_corners=align).permute(0, 2, 3, 1)]

        for (theirs,) in peers.results("torch", f"warp_affine align_corners={bool(align)}", program, theta, images):
            assert_close("peer", ours, theirs, scale())


def test_a_grid_that_shrinks_is_smoothed():
    board, grid = np.float32(np.indices((64, 64)).sum(0) % 2), warp.affine_grid(np.eye(2, 3, dtype=np.float32), (8, 8))
    smooth = np.asarray(warp.grid_sample(board[..., None], grid, data_format="NHWC", antialias=True))
    assert np.abs(smooth[1:-1, 1:-1] - 0.5).max() < 0.02
