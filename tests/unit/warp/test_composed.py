"""Warps by several maps in a row, against NumPy and SciPy."""

import jax
import numpy as np
import pytest
from scipy.ndimage import map_coordinates

import jaxtex as jt
from jaxtex import warp
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact

IMAGE, FLOW, OUTPUT = {2: (9, 11), 3: (6, 7, 8)}, {2: (5, 6), 3: (4, 5, 6)}, {2: (8, 10), 3: (5, 7, 6)}


def centers(shape):
    return np.stack(np.indices(shape)[::-1], -1) + 0.5


def drawn(ndim, dtype=np.float32):
    """An image, and a chain of a matrix, a flow on a grid of its own, and another matrix."""
    rng = np.random.default_rng(ndim)
    image = rng.normal(size=(*IMAGE[ndim], 2)).astype(dtype)
    near_identity = lambda scale: np.column_stack([scale * np.eye(ndim), np.zeros(ndim)])
    matrices = [near_identity(s) + 0.05 * rng.normal(size=(ndim, ndim + 1)) for s in (0.6, 1.7)]
    flow = 0.4 * rng.normal(size=(*FLOW[ndim], ndim))
    return image, [matrices[0].astype(dtype), flow.astype(dtype), matrices[1].astype(dtype)]


def read(array, points, mode):
    at = np.moveaxis(points - 0.5, -1, 0)[::-1]
    return np.stack([map_coordinates(array[..., k], at, order=1, mode=mode) for k in range(array.shape[-1])], -1)


def expected(image, transforms, points):
    """The chain, point by point."""
    ndim = points.shape[-1]
    for transform in map(np.float64, transforms):
        if transform.ndim == 2:
            points = points @ transform[:, :ndim].T + transform[:, ndim]
        else:
            points = points + read(transform, points, "nearest")
    return read(np.float64(image), points, "grid-constant")


@pytest.mark.parametrize("ndim", [2, 3])
def test_a_chain_is_read_where_its_maps_lead(ndim):
    image, chain = drawn(ndim)
    found = warp.warp_chain(image, chain, OUTPUT[ndim])
    assert_close("float32", found, expected(image, chain, centers(OUTPUT[ndim])), 8)
    in_tuple = [chain[0], tuple(np.moveaxis(chain[1], -1, 0)), chain[2]]
    assert_exact(warp.warp_chain(image, in_tuple, OUTPUT[ndim]), found)
    # A flow in front stands at the pixels of the output, and sets its shape.
    found = warp.warp_chain(image, chain[1:])
    assert_close("float32", found, expected(image, chain[1:], centers(FLOW[ndim])), 8)


def count_reads(function, *args):
    return str(jax.make_jaxpr(function)(*args)).count("= texture_read[")


def test_an_image_and_each_moved_flow_are_read_once():
    image, (first, flow, last) = drawn(2)
    assert count_reads(lambda *chain: warp.warp_chain(image, chain, OUTPUT[2]), first, last, first) == 1
    assert count_reads(lambda *chain: warp.warp_chain(image, chain), flow, last) == 1
    assert count_reads(lambda *chain: warp.warp_chain(image, chain, OUTPUT[2]), first, flow, last) == 2
    square = lambda m: np.concatenate([m, [[0, 0, 1]]]).astype(np.float32)
    product = (square(last) @ square(first))[:2]
    together = warp.warp_affine(image, product, OUTPUT[2], inverse_map=True)
    assert_close("float32", warp.warp_chain(image, [first, last], OUTPUT[2]), together, 16)
    as_projective = warp.warp_chain(image, [square(first), last], OUTPUT[2])
    assert_close("float32", as_projective, together, 16)


@pytest.mark.slow
def test_gradients_go_to_every_part(x64):
    image, (first, flow, last) = drawn(2, np.float64)
    points = centers(OUTPUT[2])[2:6, 3:7]
    shift = np.column_stack([np.eye(2), points[0, 0] - 0.5])
    of_chain = lambda *parts: warp.warp_chain(parts[0], (shift, *parts[1:]), (4, 4), filter="cubic")
    assert_derivatives(of_chain, image, first, flow, last)
    color = np.array([0.5, -0.5])
    of_color = lambda c, m: warp.warp_chain(image, [m], (4, 4), border_color=c)
    assert_derivatives(of_color, color, np.column_stack([2.1 * np.eye(2), [-2.0, -3.0]]))


def test_batches():
    image, (first, flow, last) = drawn(3)
    matrices = np.stack([first, 0.9 * first])
    run = lambda *chain: warp.warp_chain(image, chain, OUTPUT[3])
    together = run(matrices, flow, last)
    assert together.shape == (2, *OUTPUT[3], 2)
    assert_close("reordered", together[1], run(matrices[1], flow, last), 8)


def test_control_points_of_a_free_form_deformation():
    """A constant field of control points of B-splines is that constant everywhere."""
    image = np.random.default_rng(0).normal(size=(16, 16, 1)).astype(np.float32)
    control = np.full((4, 4, 2), 0.5, np.float32)
    to_grid, back = (np.float32([[s, 0, 0], [0, s, 0]]) for s in (0.25, 4.0))
    spline = jt.Sampler(filter_mode="bspline")
    found = warp.warp_chain(image, [to_grid, control, back], flow_sampler=spline, address="wrap")
    assert_close("float32", found, np.roll(image, (-2, -2), (0, 1)), 8)


def test_antialiasing_and_dtypes():
    codes = np.random.default_rng(0).integers(0, 255, (16, 16, 1)).astype(np.uint8)
    half = np.float32([[2, 0, 0], [0, 2, 0]])
    found = warp.warp_chain(codes, [half], (8, 8), antialias=True)
    assert_exact(found, warp.warp_affine(codes, half, (8, 8), inverse_map=True, antialias=True))
    flow = np.zeros((8, 8, 2), np.float32)
    assert_exact(warp.warp_chain(codes, [flow, half], antialias=True), found)


def test_errors():
    image, (first, flow, last) = drawn(2)
    with pytest.raises(TypeError, match=r"warp_chain: transforms is an array of shape .*, expected a list"):
        warp.warp_chain(image, first)
    with pytest.raises(ValueError, match="warp_chain: transforms is empty"):
        warp.warp_chain(image, [])
    with pytest.raises(ValueError, match=r"transforms have shapes \(2, 3\), \(3, 4\); expected matrices"):
        warp.warp_chain(image, [first, np.zeros((3, 4), np.float32)])
    with pytest.raises(ValueError, match=r"all with the same n for an output of 3 axes"):
        warp.warp_chain(image, [first, flow, last], (4, 4, 4))
    with pytest.raises(ValueError, match="fit images and volumes; pass output_shape"):
        warp.warp_chain(image, [np.zeros((4, 4, 2, 3), np.float32)])
