"""Calls that no function takes: each is refused with what to pass, and doubtful ones are taken with a warning."""

import re
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import jaxtex as jt
from jaxtex import warp
from tests.support.jaxprs import equations

IMAGE = np.random.default_rng(0).normal(size=(24, 32, 3)).astype(np.float32)
X, Y = (c.astype(np.float32) for c in np.meshgrid(np.arange(32) + 0.5, np.arange(24) + 0.5))
TEXTURE, CENTER = jt.texture2d(IMAGE), (0.5, 0.5)
CAMERA = np.float32([[30, 0, 16], [0, 30, 12], [0, 0, 1]])

REFUSED = {
    "a filter for a sampler": (lambda: warp.rotate(IMAGE, 20.0, sampler="cubic"), "pass filter='cubic'"),
    "an alias for a sampler": (lambda: warp.rotate(IMAGE, 20.0, sampler="bicubic"), "pass filter='bicubic'"),
    "a mode for a sampler": (lambda: warp.rotate(IMAGE, 20.0, sampler="repeat"), "pass address='repeat'"),
    "a word for a sampler": (lambda: warp.rotate(IMAGE, 20.0, sampler="best"), "pass jaxtex.Sampler(...)"),
    "a filter for a shape": (lambda: warp.rotate(IMAGE, 20.0, "cubic"), "pass filter='cubic'"),
    "sample with a filter": (
        lambda: jt.sample(TEXTURE, CENTER, "bicubic"),
        "pass jaxtex.Sampler(filter_mode='bicubic')",
    ),
    "sample with a mode": (lambda: jt.sample(TEXTURE, CENTER, "repeat"), "Sampler(address_mode='repeat')"),
    "sample with a word": (lambda: jt.sample(TEXTURE, CENTER, "best"), "sampler is 'best', expected a Sampler"),
    "the name of a color": (lambda: warp.rotate(IMAGE, 20.0, border_color="white"), "255 for that of bytes"),
    "that of a function": (lambda: warp.resample(IMAGE, lambda x, y: (x, y), border_color="white"), "(r, g, b)"),
    "that of a texture": (lambda: jt.texture2d(IMAGE, border_color="white"), "texture2d: border_color is 'white'"),
    "an angle in letters": (
        lambda: warp.rotate(IMAGE, "20"),
        "degrees is '20', expected a number or an array; pass 20.",
    ),
    "no angle": (lambda: warp.rotate(IMAGE, None), "degrees is None"),
    "one size": (lambda: warp.resize(IMAGE, 32), "pass output_shape=(32, 32)"),
    "sizes with channels": (lambda: warp.resize(IMAGE, (24, 32, 3)), "leave out the channels, output_shape=(24, 32)"),
    "sizes of an image with channels": (lambda: warp.rotate(IMAGE, 9.0, (24, 32, 3)), "output_shape=(24, 32)"),
    "two maps": (lambda: warp.remap(IMAGE, X, Y), "pass coordinates as one tuple, remap(image, (x, y))"),
    "two components": (lambda: warp.warp_flow(IMAGE, X, Y), "coordinates as one tuple, warp_flow(image, (x, y))"),
    "a nested list": (lambda: warp.rotate(IMAGE.tolist(), 20.0), "pass jnp.asarray(image)"),
    "a list of images": (
        lambda: warp.rotate([IMAGE, IMAGE], 20.0),
        "image is a list of arrays, expected an array; pass jnp",
    ),
    "a keyword of a stream": (
        lambda: warp.resample_tiles(IMAGE, None, antialias=True),
        "there is no argument 'antialias'",
    ),
    "a texture of lists": (lambda: jt.texture2d(IMAGE.tolist()), "pass jnp.asarray(texels)"),
    "coordinates in lists": (lambda: jt.sample(TEXTURE, [[0.1, 0.2], [0.3, 0.4]]), "use jnp.asarray"),
    "a Pillow image": (lambda: warp.rotate(Image.new("RGB", (9, 6)), 20.0), "pass numpy.asarray(image)"),
    "sample with a border color": (
        lambda: jt.sample(TEXTURE, CENTER, border_color=1.0),
        "pass the border color to the texture, jaxtex.texture2d(texels, border_color=...)",
    ),
    "sample with an option": (
        lambda: jt.sample(TEXTURE, CENTER, max_anisotropy=4),
        "jaxtex.Sampler(max_anisotropy=...)",
    ),
    "OpenCV's word": (lambda: warp.warp_affine(IMAGE, CAMERA[:2], borderValue=1.0), "pass border_color=..."),
    "OpenCV's size": (
        lambda: warp.resize(IMAGE, dsize=(32, 24)),
        "pass output_shape=(height, width), which is (width, height) in OpenCV and Pillow",
    ),
    "a factor": (lambda: warp.resize(IMAGE, scale_factor=0.5), "pass output_shape=(height, width), the sizes times"),
    "PyTorch's image": (lambda: warp.resize(input=IMAGE, output_shape=(9, 9)), "pass image=..."),
    "PyTorch's images": (
        lambda: warp.grid_sample(input=IMAGE, grid=X),
        "grid_sample: there is no argument 'input'; pass",
    ),
    "the plural": (lambda: warp.spatial_transform(images=IMAGE, theta=CAMERA), "pass image=..."),
    "a word for a flag": (
        lambda: warp.rotate(IMAGE, 9.0, antialias="no"),
        "antialias is 'no', expected True or False.",
    ),
    "a sampler of a chain without flows": (
        lambda: warp.warp_chain(IMAGE, [CAMERA], flow_sampler=jt.Sampler()),
        "warp_chain: flow_sampler is given, but no flow is interpolated: none comes after another transform, or has",
    ),
    "two offsets": (
        lambda: warp.matrix_from_scipy(CAMERA[:2], 1.0),
        "matrix_from_scipy: offset is given, but matrix has shape (2, 3), with an offset in its last column; leave",
    ),
    "PyTorch's word": (lambda: warp.resize(IMAGE, (9, 9), mode="bilinear"), "pass filter=..."),
    "nobody's word": (lambda: warp.resize(IMAGE, (9, 9), swirl=1), "there is no argument 'swirl'; the arguments are"),
    "coordinates apart": (lambda: jt.sample(TEXTURE, X, Y), "pass coordinates as one tuple, sample(texture, (x, y))"),
    "sizes apart": (lambda: warp.resize(IMAGE, 24, 32), "pass sizes as one tuple, output_shape=(H, W)"),
    "an argument left out": (lambda: warp.rotate(IMAGE), "rotate: missing a required argument: 'degrees'; the"),
    "the name of a file": (lambda: warp.rotate("a.png", 9.0), "rotate: image is 'a.png', expected an array; read the"),
    "batches of two sizes": (
        lambda: warp.rotate(np.stack([IMAGE, IMAGE]), np.zeros(3)),
        "rotate: the batch axes of image are (2,), and those of the other arguments are (3,), which do not broadcast",
    ),
    "a short field of a sampler": (lambda: jt.Sampler(filter="cubic"), "no argument 'filter'; pass filter_mode=..."),
    "no field of a sampler": (lambda: jt.Sampler(swirl=1), "no argument 'swirl'; the arguments are address_mode, "),
    "a sampler of a word": (
        lambda: jt.Sampler("cubic"),
        "Sampler: 'cubic' came without a keyword; pass filter_mode=...",
    ),
    "a matrix for a function": (
        lambda: warp.resample(IMAGE, CAMERA),
        "array of shape (3, 3), expected a function that",
    ),
    "a matrix of volumes": (
        lambda: warp.warp_affine(IMAGE, np.eye(3, 4)),
        "warp_affine: image has shape (24, 32, 3), expected (..., D, H, W, C) for this matrix; if it is a volume",
    ),
    "images without channels": (
        lambda: warp.spatial_transform(IMAGE[..., 0], np.eye(2, 3)),
        "spatial_transform: image has shape (24, 32), expected (..., H, W, C) for this theta; add an axis for",
    ),
    "a flow of volumes": (
        lambda: warp.forward_warp(IMAGE[None], np.zeros((1, 24, 32, 3))),
        "forward_warp: flow has shape (1, 24, 32, 3), expected (..., H, W, 2), or a tuple of arrays (x, y).",
    ),
    "a color where nothing has one": (
        lambda: warp.forward_warp(IMAGE, (X, Y), border_color=1.0),
        "there is no argument 'border_color'; the arguments are image, flow,",
    ),
    "a color of two channels": (
        lambda: warp.rotate(IMAGE, 9.0, border_color=[1.0, 0.0]),
        "rotate: border_color has shape (2,), expected a scalar or (3,), one value for each channel.",
    ),
    "a color for each image": (
        lambda: warp.rotate(np.stack([IMAGE, IMAGE]), 9.0, border_color=np.ones((2, 3))),
        "(2, 3), expected a scalar or (3,), one value for each channel; for a color for each image, map over images",
    ),
    "affine matrices of three rows": (
        lambda: warp.warp_affine(IMAGE, np.stack([np.eye(3)])),
        "(1, 3, 3), expected (..., 2, 3) or (..., 3, 4); leave the last row of an affine matrix out, "
        "matrix[..., :2, :]; for homographies call warp_perspective.",
    ),
    "a theta of three rows": (
        lambda: warp.spatial_transform(IMAGE, np.eye(3)),
        "or (..., 3, 4); leave the last row of an affine matrix out, theta[..., :2, :].",
    ),
    "a homography of two rows": (
        lambda: warp.warp_perspective(IMAGE, np.eye(2, 3)),
        "expected (..., 3, 3) or (..., 4, 4); call warp_affine.",
    ),
    "a color that nothing shows": (
        lambda: warp.resize(IMAGE, (9, 9), border_color=1.0),
        "resize: border_color is given, but the address mode 'clamp' has no outside; leave",
    ),
    "modes for three axes": (
        lambda: warp.rotate(IMAGE, 9.0, address=("wrap",) * 3),
        "rotate: there are 3 address modes for 2 filtered axes",
    ),
    "halves of a texture unit": (
        lambda: warp.rotate(IMAGE.astype(jnp.bfloat16), 9.0, sampler=jt.Sampler(arithmetic="hardware")),
        "rotate: arithmetic='hardware' is given for bfloat16 texels",
    ),
    "two filters": (
        lambda: warp.rotate(IMAGE, 9.0, filter="cubic", sampler=jt.Sampler(filter_mode="linear")),
        "rotate: filter is 'cubic', but sampler has filter_mode='linear'; leave filter out",
    ),
    "a mode beside a sampler": (
        lambda: warp.grid_sample(IMAGE, np.zeros((3, 3, 2)), "nearest", sampler=jt.Sampler(filter_mode="cubic")),
        "grid_sample: mode is 'nearest', but sampler takes its place; leave mode or sampler out.",
    ),
    "a padding beside a mode": (
        lambda: warp.grid_sample(
            IMAGE, np.zeros((3, 3, 2)), padding_mode="border", sampler=jt.Sampler(address_mode="wrap")
        ),
        "grid_sample: padding_mode is 'border', but sampler has address_mode='wrap'",
    ),
    "an option of samplers": (lambda: warp.rotate(IMAGE, 9.0, srgb=True), "pass sampler=jaxtex.Sampler(srgb=...)"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_refusal_says_what_to_pass(mistake):
    call, remedy = REFUSED[mistake]
    with pytest.raises((TypeError, ValueError)) as error:
        call()
    text = str(error.value).split("\n")[0]
    assert remedy in text
    assert text.endswith(".")


def test_an_image_with_channels_first_is_doubted():
    for shape in ((3, 24, 32), (1, 16, 16), (2, 4, 24, 32)):
        with pytest.warns(UserWarning, match=r"rotate: image has shape .* pass jnp.moveaxis\(image, -3, -1\)"):
            jax.eval_shape(lambda image: warp.rotate(image, 9.0), jax.ShapeDtypeStruct(shape, np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shape in ((24, 32, 3), (4, 4, 256), (4, 64, 3), (5, 64, 64)):
            jax.eval_shape(lambda image: warp.rotate(image, 9.0), jax.ShapeDtypeStruct(shape, np.float32))


def test_an_image_with_channels_last_is_doubted_by_grid_sample():
    grid = np.zeros((3, 3, 2), np.float32)
    with pytest.warns(UserWarning, match=r"grid_sample: image has shape \(24, 32, 3\), read as .*data_format='NHWC'"):
        warp.grid_sample(IMAGE, grid)
    volume, points = np.zeros((1, 16, 16, 16, 2), np.float32), np.zeros((1, 2, 2, 2, 3), np.float32)
    with pytest.warns(UserWarning, match=r"grid_sample: image has .*16 channels.*data_format='NDHWC'"):
        warp.grid_sample(volume, points)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warp.grid_sample(IMAGE, grid, data_format="NHWC")
        warp.grid_sample(volume, points, data_format="NDHWC")
        warp.grid_sample(np.moveaxis(volume, -1, 1), points)
        warp.grid_sample(np.moveaxis(IMAGE, -1, 0), grid)
        warp.grid_sample(np.zeros((64, 9, 3), np.float32), grid)


def test_a_shape_that_lies_on_its_side_is_mentioned_where_debugging_is_on(monkeypatch):
    resize = lambda *shape: jax.eval_shape(lambda image: warp.resize(image, shape), jnp.asarray(IMAGE))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resize(16, 12)
        monkeypatch.setenv("JAXTEX_DEBUG", "1")
        resize(12, 16)
        resize(32, 25)
    with pytest.warns(UserWarning, match=r"resize: output_shape is \(8, 6\), the height and .*output_shape=\(6, 8\)"):
        resize(8, 6)


def test_a_row_of_coefficients_is_doubted_where_nothing_else_is_a_batch():
    row = np.zeros((1, 5), np.float32)
    with pytest.warns(UserWarning, match=r"undistort: distortion has shape \(1, 5\).*pass distortion\[0\]"):
        assert warp.undistort(IMAGE, CAMERA, row).shape == (1, 24, 32, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert warp.undistort(IMAGE[None], CAMERA, row).shape == (1, 24, 32, 3)
        assert warp.undistort(IMAGE, *warp.camera_from_opencv(CAMERA, row)).shape == (24, 32, 3)


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
        heights = jt.texture1d(IMAGE[:3, 0], knots=(jnp.array([1000.0, 700, 300]),))  # no coordinate is normalized
        jt.sample(heights, (jnp.array([900.0, 400.0]),)).block_until_ready()
    with pytest.warns(UserWarning, match=r"sample: \d+ % of the coordinates .*normalized_coords=False") as warned:
        read(X, Y)
    assert len(warned) == 2


def test_hints_call_back_once_whatever_is_batched(monkeypatch):
    """All callbacks of the library are made in one place."""
    monkeypatch.setenv("JAXTEX_DEBUG", "1")

    def read(u, v, knots):
        return jt.sample(jt.texture2d(jnp.asarray(IMAGE), knots=(None, knots)), (u, v)).sum()

    x, knots = jnp.linspace(0, 1, 5), jnp.stack([jnp.arange(24.0), jnp.arange(24.0)[::-1]])
    for function in (read, jax.grad(read, (0, 1, 2))):
        batched = jax.vmap(jax.vmap(jax.vmap(function, (0, None, None)), (None, 0, None)), (None, None, 0))
        found = [e.primitive.name for e in equations(jax.make_jaxpr(batched)(x, x, knots).jaxpr)]
        assert found.count("debug_callback") == 2  # of x, and of knots
    modules = Path(jt.__file__).parent.rglob("*.py")
    assert [m.name for m in modules for _ in re.findall(r"[._]callback\(", m.read_text())] == ["hints.py"]


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
