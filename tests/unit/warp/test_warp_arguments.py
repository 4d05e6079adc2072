"""What callers bring: sizes and flags as NumPy numbers, masks of bool, and values that are known too late."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import warp
from tests.support.tolerances import assert_exact

IMAGE = np.random.default_rng(0).normal(size=(5, 6, 2)).astype(np.float32)
MASK = np.random.default_rng(1).integers(0, 2, (6, 6, 1)).astype(bool)
THETA = np.float32([[0.9, 0.1, 0.2], [-0.1, 1.1, 0.0]])
GRID = np.random.default_rng(2).uniform(-1, 1, (3, 4, 2)).astype(np.float32)
VOLUME = np.random.default_rng(3).normal(size=(1, 4, 5, 6)).astype(np.float32)
POINTS = np.random.default_rng(4).uniform(-1, 1, (2, 3, 4, 3)).astype(np.float32)
FLOW = (np.float32(0.5), np.zeros((6, 6), np.float32))
TORCH = functools.partial(warp.matrix_from_torch, THETA)


@pytest.mark.parametrize(
    ("call", "plain"),
    [
        (lambda: warp.resize(IMAGE, np.array([4, 5])), lambda: warp.resize(IMAGE, (4, 5))),
        (lambda: warp.resize(IMAGE, jnp.array([4, 5])), lambda: warp.resize(IMAGE, (4, 5))),
        (lambda: warp.rotate(IMAGE, 9.0, [np.int64(4), np.array(5)]), lambda: warp.rotate(IMAGE, 9.0, (4, 5))),
        (lambda: warp.resample(IMAGE, lambda x, y: (x, y), np.array([4, 5])), lambda: IMAGE[:4, :5]),
        (
            lambda: warp.warp_affine(IMAGE, THETA, inverse_map=np.bool_(True)),
            lambda: warp.warp_affine(IMAGE, THETA, inverse_map=True),
        ),
        (
            lambda: warp.warp_affine(IMAGE, THETA, inverse_map=np.array(False), antialias=np.bool_(False)),
            lambda: warp.warp_affine(IMAGE, THETA),
        ),
        (lambda: TORCH(np.array([4, 5]), np.int64([6, 7])), lambda: TORCH((4, 5), (6, 7))),
        (lambda: TORCH((4, 5), (6, 7), np.bool_(True)), lambda: TORCH((4, 5), (6, 7), True)),
        (lambda: TORCH((4, 5), (6, 7), None), lambda: TORCH((4, 5), (6, 7), False)),
        (lambda: warp.affine_grid(THETA, np.array([4, 5])), lambda: warp.affine_grid(THETA, (4, 5))),
        (lambda: warp.affine_grid(THETA, (4, 5), jnp.array(True)), lambda: warp.affine_grid(THETA, (4, 5), True)),
        (
            lambda: warp.grid_sample(IMAGE, GRID, padding_mode="reflection", align_corners=np.bool_(True)),
            lambda: warp.grid_sample(IMAGE, GRID, padding_mode="reflection", align_corners=True),
        ),
        (
            lambda: warp.grid_sample(IMAGE, GRID, padding_mode="reflection", align_corners=None),
            lambda: warp.grid_sample(IMAGE, GRID, padding_mode="reflection"),
        ),
        (
            lambda: warp.equirectangular_to_cubemap(IMAGE, np.int64(8)),
            lambda: warp.equirectangular_to_cubemap(IMAGE, 8),
        ),
    ],
)
def test_sizes_and_flags_are_numbers_of_any_kind(call, plain):
    assert_exact(call(), plain())


AT = np.random.default_rng(1).uniform(0.5, 4, (4, 5, 2)).astype(np.float32)
CAMERA, LENS = np.float32([[5, 0, 2], [0, 5, 2], [0, 0, 1]]), np.float32([-0.1, 0.02, 0, 0])
TARGETS = np.float32([[0, 0], [5, 0], [0, 4], [4, 4]])


@pytest.mark.parametrize(
    ("call", "points"),
    [
        (lambda points: warp.remap(IMAGE, points), AT),
        (lambda points: warp.remap(IMAGE, points, filter="cubic", antialias=True), AT),
        (lambda points: warp.warp_flow(IMAGE, points), AT),
        (lambda points: warp.warp_labels(np.arange(20).reshape(4, 5, 1), coords=points), AT),
        (lambda points: warp.rotate(np.stack([IMAGE] * 4), 20.0, center=points), AT[:, 0]),
        (lambda points: warp.thin_plate_spline(IMAGE, points, TARGETS), TARGETS + AT[0, 0]),
        (lambda points: warp.thin_plate_spline(IMAGE, TARGETS, points), TARGETS + AT[0, 0]),
        (lambda points: np.stack(warp.distort_points(points, CAMERA, LENS)), AT),
        (lambda points: np.stack(warp.undistort_points(points, CAMERA, LENS)), AT[0, 0]),
    ],
)
def test_points_are_a_tuple_or_one_array(call, points):
    expected = call(tuple(np.moveaxis(points, -1, 0)))
    found = call(points)
    assert_exact(np.moveaxis(found, -1, 0) if found.shape != expected.shape else found, expected)


def test_layers_take_sizes_of_any_kind():
    nnx = pytest.importorskip("jaxtex.layers.nnx")
    layer = nnx.SpatialTransformer(lambda images: images[..., 0, 0, :], 2, np.array([3, 4]), antialias=np.bool_(False))
    assert layer.output_shape == (3, 4)
    assert layer(IMAGE[None]).shape == (1, 3, 4, 2)
    assert jt.layers.theta_of(np.zeros(4, np.float32), np.array([3, 4]), "similarity").shape == (2, 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda n: warp.resize(IMAGE, (n, 4)), "resize: output_shape is a traced array"),
        (lambda n: warp.affine_grid(THETA, (4, 4), n), "affine_grid: align_corners is a traced array"),
        (lambda n: warp.resample(IMAGE, lambda x, y: (x, y), (n, 4)), "resample: output_shape is a traced array"),
    ],
)
def test_what_is_known_too_late_is_an_error(call, words):
    with pytest.raises(TypeError) as error:
        jax.jit(call)(4)
    assert words in str(error.value)
    assert "static_argnames" in str(error.value)


@pytest.mark.parametrize("shape", [(4.5, 5), 4, "44", (4, None), (-1, 4), np.ones((2, 2), int)])
def test_shapes_that_are_none(shape):
    with pytest.raises(ValueError, match=r"resize: output_shape is .*, expected \(H, W\) or \(D, H, W\), sizes of"):
        warp.resize(IMAGE, shape)


# Masks

BLENDS = {
    "resize": lambda mask, **o: warp.resize(mask, (9, 4), **o),
    "warp_affine": lambda mask, **o: warp.warp_affine(mask, THETA, **o),
    "remap": lambda mask, **o: warp.remap(mask, tuple(6 * GRID.transpose(2, 0, 1)), **o),
    "warp_flow": lambda mask, **o: warp.warp_flow(mask, FLOW, **o),
    "resample": lambda mask, **o: warp.resample(mask, lambda x, y: (x + 0.25, y), **o),
    "equirectangular_to_cubemap": lambda mask, **o: warp.equirectangular_to_cubemap(mask[:, :5], 3, **o),
    "cubemap_to_equirectangular": lambda mask, **o: warp.cubemap_to_equirectangular(
        np.repeat(mask[None], 6, 0), (4, 5), **o
    ),
}


# In one of the two tests each function, and both ways in which filters are applied.
@pytest.mark.parametrize("name", ["resize", "warp_affine", "warp_flow", "cubemap_to_equirectangular"])
def test_a_mask_is_blended_as_zeros_and_ones(name):
    call = BLENDS[name]
    assert_exact(call(MASK), call(MASK.astype(np.float32)), np.float32)
    assert_exact(call(MASK, dtype=bool), np.asarray(call(MASK)) > 0.5, bool)


@pytest.mark.parametrize("name", ["resize", "remap", "resample", "equirectangular_to_cubemap"])
def test_a_mask_stays_one_under_the_point_filter(name):
    call = BLENDS[name]
    assert_exact(call(MASK, filter="point"), np.asarray(call(MASK.astype(np.uint8), filter="point")) == 1, bool)


def test_a_mask_outside_is_the_border_color():
    moved = functools.partial(warp.warp_affine, MASK, np.float32([[1, 0, 3], [0, 1, 0]]), filter="point")
    assert not np.asarray(moved()[:, :3]).any()
    assert np.asarray(moved(border_color=True)[:, :3]).all()


def test_masks_land_and_are_read_at_grids():
    assert_exact(warp.forward_warp(MASK, FLOW), warp.forward_warp(MASK.astype(np.float32), FLOW), np.float32)
    read = functools.partial(warp.grid_sample, grid=GRID, data_format="NHWC")
    assert_exact(read(MASK), read(MASK.astype(np.float32)), np.float32)
    assert_exact(read(MASK, mode="nearest"), np.asarray(read(MASK.astype(np.uint8), mode="nearest")) == 1, bool)


# Words


def test_trilinear_is_bilinear_of_volumes():
    read = functools.partial(warp.grid_sample, VOLUME, POINTS)
    assert_exact(read(mode="trilinear"), read(mode="bilinear"))
    with pytest.raises(ValueError, match=r"grid_sample: mode is 'trilinear', for volumes.*use 'bilinear'"):
        warp.grid_sample(IMAGE, GRID, "trilinear")
