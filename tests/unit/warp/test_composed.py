"""Warps by several maps in a row, against NumPy and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.ndimage import map_coordinates

import jaxtex as jt
from jaxtex import warp
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_cases_close, assert_close, assert_exact

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


def test_a_chain_is_read_where_its_maps_lead():
    """With its flow as an array or a tuple, several matrices as a batch, and as long as a flow in front says."""

    @jax.jit
    def run(image, first, flow, last):
        size, in_tuple = OUTPUT[flow.ndim - 1], tuple(jnp.moveaxis(flow, -1, 0))
        if flow.ndim == 4:
            return {"tuple": warp.warp_chain(image, [first, in_tuple, last], size)}
        both = warp.warp_chain(image, [jnp.stack([first, first[::-1]]), flow, last], size)
        return {"flow in front": warp.warp_chain(image, [flow, last]), "batch 0": both[0], "batch 1": both[1]}

    for ndim in (2, 3):
        image, chain = drawn(ndim)
        plain = expected(image, chain, centers(OUTPUT[ndim]))
        cases = dict.fromkeys(("tuple", "batch 0"), plain)
        cases["flow in front"] = expected(image, chain[1:], centers(FLOW[ndim]))
        cases["batch 1"] = expected(image, [chain[0][::-1], *chain[1:]], centers(OUTPUT[ndim]))
        found = run(image, *chain)
        assert_cases_close("float32", found, {name: cases[name] for name in found}, 8)


def bent(x, y, height, *more):
    return x + height * jnp.sin(y), y + height * jnp.cos(x), *more


def test_functions_stand_in_a_chain():
    """With a parameter for each image, before a flow; alone; and of a volume, whose shape says what they map."""
    image, (first, flow, last) = drawn(2)
    heights = np.float32([0.3, -0.7])

    @jax.jit
    def run(image, first, flow, last, heights):
        alone = lambda x, y: bent(x, y, 0.3)
        upright = lambda x, y, z: bent(x, y, 0.3, z)
        volume, whole = jnp.stack([image, image]), jnp.round(image).astype(np.int32)
        return {
            "for each": warp.warp_chain(image, [first, (bent, heights), flow, last], OUTPUT[2]),
            "alone": warp.warp_chain(image, [alone]),
            "of a volume": warp.warp_chain(volume, [upright], volume.shape[:3])[1],
            "nearest": warp.warp_chain(whole, [alone], filter_mode="point"),
            "labels": warp.warp_labels(whole, [alone]),
        }

    def by_hand(points, height):
        x, y = points[..., 0], points[..., 1]
        return np.stack([x + height * np.sin(y), y + height * np.cos(x)], -1)

    found = jax.device_get(run(image, first, flow, last, heights))
    at_first = centers(OUTPUT[2]) @ np.float64(first[:, :2]).T + first[:, 2]
    each = [expected(image, [flow, last], by_hand(at_first, np.float64(h))) for h in heights]
    plain = expected(image, [], by_hand(centers(IMAGE[2]), 0.3))
    assert_exact(found.pop("labels"), found.pop("nearest"))
    assert_cases_close("float32", found, {"for each": np.stack(each), "alone": plain, "of a volume": plain}, 8)


def count_reads(function, *args):
    return str(jax.make_jaxpr(function)(*args)).count("= texture_read[")


def test_an_image_and_each_moved_flow_are_read_once():
    image, (first, flow, last) = drawn(2)
    assert count_reads(lambda *chain: warp.warp_chain(image, chain, OUTPUT[2]), first, last, first) == 1
    assert count_reads(lambda *chain: warp.warp_chain(image, chain), flow, last) == 1
    assert count_reads(lambda *chain: warp.warp_chain(image, chain, OUTPUT[2]), first, flow, last) == 2
    square = lambda m: np.concatenate([m, [[0, 0, 1]]]).astype(np.float32)
    together = expected(image, [first, last], centers(OUTPUT[2]))
    assert_close("float32", warp.warp_chain(image, [square(first), last], OUTPUT[2]), together, 16)


@pytest.mark.slow
def test_gradients_go_to_every_part(x64):
    image, (first, flow, last) = drawn(2, np.float64)
    points = centers(OUTPUT[2])[2:6, 3:7]
    shift = np.column_stack([np.eye(2), points[0, 0] - 0.5])
    of_chain = lambda *parts: warp.warp_chain(parts[0], (shift, *parts[1:]), (4, 4), filter_mode="cubic")
    assert_derivatives(of_chain, image, first, flow, last)
    of_height = lambda image, m, h: warp.warp_chain(image, (shift, m, (bent, h)), (4, 4), filter_mode="cubic")
    assert_derivatives(of_height, image, first, np.float64(0.3))
    color = np.array([0.5, -0.5])
    of_color = lambda c, m: warp.warp_chain(image, [m], (4, 4), border_color=c)
    assert_derivatives(of_color, color, np.column_stack([2.1 * np.eye(2), [-2.0, -3.0]]))


def test_control_points_of_a_free_form_deformation():
    """A constant field of control points of B-splines is that constant everywhere."""
    image = np.random.default_rng(0).normal(size=(16, 16, 1)).astype(np.float32)
    control = np.full((4, 4, 2), 0.5, np.float32)
    to_grid, back = (np.float32([[s, 0, 0], [0, s, 0]]) for s in (0.25, 4.0))
    spline = jt.Sampler(filter_mode="bspline")
    found = warp.warp_chain(image, [to_grid, control, back], flow_sampler=spline, address_mode="wrap")
    assert_close("float32", found, np.roll(image, (-2, -2), (0, 1)), 8)


def test_antialiasing_and_dtypes():
    half, flow = np.float32([[2, 0, 0], [0, 2, 0]]), np.zeros((8, 8, 2), np.float32)
    board = np.uint8(200 * (np.indices((16, 16)).sum(0) % 2))[..., None]
    found = warp.warp_chain(board, [flow, half], antialias=True)
    assert_exact(np.asarray(found)[1:-1, 1:-1], np.full((6, 6, 1), 100), np.uint8)
