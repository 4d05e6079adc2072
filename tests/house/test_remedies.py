"""Calls that are taken with a warning, as they may mean something else: it says what to pass instead."""

import functools
import re
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import warp
from tests.support.jaxprs import equations

IMAGE = np.random.default_rng(0).normal(size=(24, 32, 3)).astype(np.float32)
X, Y = (c.astype(np.float32) for c in np.meshgrid(np.arange(32) + 0.5, np.arange(24) + 0.5))
TEXTURE = jt.texture2d(IMAGE)
CAMERA = np.float32([[30, 0, 16], [0, 30, 12], [0, 0, 1]])


def test_an_image_with_channels_first_is_doubted():
    for shape in ((3, 24, 32), (1, 16, 16), (2, 4, 24, 32)):
        with pytest.warns(UserWarning, match=r"rotate: image has shape .* pass jnp.moveaxis\(image, -3, -1\)"):
            jax.eval_shape(lambda image: warp.rotate(image, angle=0.157), jax.ShapeDtypeStruct(shape, np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shape in ((24, 32, 3), (4, 4, 256), (4, 64, 3), (64, 32, 32)):
            jax.eval_shape(lambda image: warp.rotate(image, angle=0.157), jax.ShapeDtypeStruct(shape, np.float32))


def test_an_image_with_channels_last_is_doubted_by_grid_sample():
    grid = np.zeros((3, 3, 2), np.float32)
    grid_sample = lambda *args, **options: jax.eval_shape(functools.partial(warp.grid_sample, **options), *args)
    with pytest.warns(UserWarning, match=r"grid_sample: image has shape \(24, 32, 3\), read as .*data_format='NHWC'"):
        grid_sample(IMAGE, grid)
    volume, points = np.zeros((1, 16, 16, 16, 2), np.float32), np.zeros((1, 2, 2, 2, 3), np.float32)
    with pytest.warns(UserWarning, match=r"grid_sample: image has .*16 channels.*data_format='NDHWC'"):
        grid_sample(volume, points)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grid_sample(IMAGE, grid, data_format="NHWC")
        grid_sample(volume, points, data_format="NDHWC")
        grid_sample(np.moveaxis(volume, -1, 1), points)
        grid_sample(np.moveaxis(IMAGE, -1, 0), grid)
        grid_sample(np.zeros((64, 9, 3), np.float32), grid)


def test_a_shape_that_lies_on_its_side_is_mentioned_where_debugging_is_on(monkeypatch):
    resize = lambda *shape: jax.eval_shape(lambda image: warp.resize(image, shape), IMAGE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resize(16, 12)
        monkeypatch.setenv("JAXTEX_DEBUG", "1")
        resize(12, 16)
        resize(32, 25)
    with pytest.warns(UserWarning, match=r"resize: output_shape is \(8, 6\), the height and .*output_shape=\(6, 8\)"):
        resize(8, 6)


def test_a_row_of_coefficients_is_doubted_where_nothing_else_is_a_batch():
    undistort = functools.partial(jax.eval_shape, warp.undistort)
    row = np.zeros((1, 5), np.float32)
    with pytest.warns(UserWarning, match=r"undistort: distortion has shape \(1, 5\).*pass distortion\[0\]"):
        assert undistort(IMAGE, CAMERA, row).shape == (1, 24, 32, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert undistort(IMAGE[None], CAMERA, row).shape == (1, 24, 32, 3)
        assert undistort(IMAGE, *warp.camera_from_opencv(CAMERA, row)).shape == (24, 32, 3)


def test_texels_under_normalized_coordinates_are_mentioned_where_debugging_is_on(monkeypatch):
    def read(x, y, sampler=jt.Sampler()):  # noqa: B008
        jax.jit(lambda x: jt.sample(TEXTURE, (x, y), sampler))(x).block_until_ready()
        jt.sample(TEXTURE, (x, y), sampler).block_until_ready()
        jax.effects_barrier()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(X, Y)
        monkeypatch.setenv("JAXTEX_DEBUG", "1")
        read(X / 32, Y / 24)
        read(X, Y, jt.Sampler(normalized_coords=False))
        heights = jt.texture1d(IMAGE[:3, 0], knots=(np.float32([1000, 700, 300]),))  # no coordinate is normalized
        jt.sample(heights, (np.float32([900, 400]),)).block_until_ready()
    with pytest.warns(UserWarning, match=r"sample: \d+ % of the coordinates .*normalized_coords=False") as warned:
        read(X, Y)
    assert len(warned) == 2


def test_hints_call_back_once_whatever_is_batched(monkeypatch):
    """All callbacks of the library are made in one place."""
    monkeypatch.setenv("JAXTEX_DEBUG", "1")

    def read(u, v, knots):
        return jt.sample(jt.texture2d(IMAGE, knots=(None, knots)), (u, v)).sum()

    x, rows = np.linspace(0, 1, 5, dtype=np.float32), np.arange(24, dtype=np.float32)
    knots = np.stack([rows, rows[::-1]])
    for function in (read, jax.grad(read, (0, 1, 2))):
        batched = jax.vmap(jax.vmap(jax.vmap(function, (0, None, None)), (None, 0, None)), (None, None, 0))
        found = [e.primitive.name for e in equations(jax.make_jaxpr(batched)(x, x, knots).jaxpr)]
        assert found.count("debug_callback") == 2  # of x, and of knots
    modules = Path(jt.__file__).parent.rglob("*.py")
    assert [m.name for m in modules for _ in re.findall(r"\b(?:debug\.|\w+_)callback\(", m.read_text())] == ["hints.py"]


def test_a_spline_that_smooths_is_mentioned_where_debugging_is_on(monkeypatch):
    read = lambda **options: jt.sample(TEXTURE, (X / 32, Y / 24), jt.Sampler(**options))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(filter_mode="bspline")
        monkeypatch.setenv("JAXTEX_DEBUG", "1")
        read(filter_mode="bspline", spline_order=1)  # is the linear filter
        read(filter_mode="cubic")
    with pytest.warns(UserWarning, match=r"sample: filter_mode='bspline' smooths.*spline_filter\(tex") as warned:
        read(filter_mode="bspline", spline_order=2)
    assert warned[0].filename == __file__
