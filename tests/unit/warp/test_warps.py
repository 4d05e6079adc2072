"""Warps by functions, matrices, angles, sizes and fields: where they look, what they take, and their derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import warp
from tests.oracles import reads as oracle
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_codes_close, assert_exact

SIZES, OUT = (9, 7), (6, 8)  # height and width of the input and the output
AFFINE = np.array([[0.9, 0.2, 1.3], [-0.15, 1.1, 0.4]])
HOMOGRAPHY = np.array([[0.9, 0.2, 1.3], [-0.15, 1.1, 0.4], [0.01, 0.02, 1.0]])
THETA = np.array([[0.8, 0.1, 0.05], [-0.2, 0.9, -0.1]])


def image(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


FLOW = 1.5 * image(*OUT, 2, seed=1)


def centers(shape=OUT):
    y, x = np.indices(shape) + 0.5
    return x, y


def through(matrix, x, y):
    """Points times a matrix, divided by the last component."""
    x, y, *w = (row[0] * x + row[1] * y + row[2] for row in matrix)
    return (x / w[0], y / w[0]) if w else (x, y)


def turned(x, y):
    """The points of the input for a rotation by 30 degrees and a scale of 1.5, center to center."""
    x, y = (x - OUT[1] / 2) / 1.5, (y - OUT[0] / 2) / 1.5
    cos, sin = np.cos(np.pi / 6), np.sin(np.pi / 6)
    return cos * x - sin * y + SIZES[1] / 2, sin * x + cos * y + SIZES[0] / 2


def unit(c, size):
    return 2 * c / size - 1


def in_theta(x, y):
    u, v = through(THETA, unit(x, OUT[1]), unit(y, OUT[0]))
    return (u + 1) * SIZES[1] / 2, (v + 1) * SIZES[0] / 2


def bent(x, y):
    return x + 0.1 * y * y, 0.9 * y + 0.3


def curved(k, x, y):
    """`bent`, for an array of numbers k with batch axes as well."""
    x, y = (c.astype(k.dtype).reshape(*[1] * max(k.ndim - 2, 0), *c.shape) for c in (x, y))
    return x + k * (y * y), 0.9 * y + 0.3


def bent_by(x, y, k):
    """The same, computed in the read."""
    return x + k * (y * y), 0.9 * y + 0.3


# Of each warp: how it is called with an image and parameters, its parameters, and the points it should read.
WARPS = {
    "resample": (lambda i, k, **o: warp.resample(i, functools.partial(curved, k), OUT, **o), 0.1, bent),
    "resample, parameters": (lambda i, k, **o: warp.resample(i, bent_by, OUT, parameters=(k,), **o), 0.1, bent),
    "warp_affine": (
        lambda i, m, **o: warp.warp_affine(i, m, OUT, inverse_map=True, **o),
        AFFINE,
        functools.partial(through, AFFINE),
    ),
    "warp_affine, forward": (
        lambda i, m, **o: warp.warp_affine(i, m, OUT, **o),
        np.linalg.inv(np.vstack([AFFINE, [0, 0, 1]]))[:2],
        functools.partial(through, AFFINE),
    ),
    "warp_perspective": (
        lambda i, m, **o: warp.warp_perspective(i, m, OUT, inverse_map=True, **o),
        HOMOGRAPHY,
        functools.partial(through, HOMOGRAPHY),
    ),
    "warp_perspective, forward": (
        lambda i, m, **o: warp.warp_perspective(i, m, OUT, **o),
        np.linalg.inv(HOMOGRAPHY),
        functools.partial(through, HOMOGRAPHY),
    ),
    "rotate": (lambda i, p, **o: warp.rotate(i, p[..., 0], OUT, scale=p[..., 1], **o), np.array([30, 1.5]), turned),
    "spatial_transform": (lambda i, m, **o: warp.spatial_transform(i, m, OUT, **o), THETA, in_theta),
    "remap": (
        lambda i, c, **o: warp.remap(i, (c[..., 0], c[..., 1]), **o),
        np.stack(centers(), -1) + FLOW,
        lambda x, y: (x + FLOW[..., 0], y + FLOW[..., 1]),
    ),
    "warp_flow": (warp.warp_flow, FLOW, lambda x, y: (x + FLOW[..., 0], y + FLOW[..., 1])),
}


@pytest.mark.parametrize("name", WARPS)
def test_where_a_warp_looks(name):
    """Against the oracle, with a border color."""
    call, parameters, points = WARPS[name]
    texels = image(*SIZES, 2)
    options = {"address_mode": "border", "filter_mode": "linear", "normalized_coords": False, "dtype": np.float64}
    expected = oracle.sample(texels, points(*centers()), border_color=[2.0, -1.0], **options)
    actual = call(np.float32(texels), np.float32(parameters), border_color=np.float32([2.0, -1.0]))
    assert actual.dtype == jnp.float32
    assert_close("peer gradient", actual, expected, np.abs(texels).max())


# Those that `test_where_a_warp_looks` has alone: a matrix of the forward map is inverted first.
INVERSE = ("warp_affine", "warp_perspective")


@pytest.mark.parametrize("name", [name for name in WARPS if name not in INVERSE])
def test_batches_of_images_and_parameters(name):
    """Leading axes of either or both; the same as one by one."""
    call, parameters, _ = WARPS[name]
    images = np.float32(image(3, *SIZES, 2))
    several = np.float32(parameters) * np.float32([1, 1.02, 0.97]).reshape(3, *[1] * np.ndim(parameters))
    # A function makes its own coordinates, batch axes too.
    call_many = (lambda i, k: call(i, k.reshape(-1, 1, 1))) if name == "resample" else call
    one = lambda k, j: np.asarray(call(images[k], several[j]))
    both, scale = np.asarray(call_many(images, several)), np.abs(images).max()
    assert_close("peer", both, np.stack([one(k, k) for k in range(3)]), scale)
    assert_close("peer", call_many(images[0], several), np.stack([one(0, k) for k in range(3)]), scale)
    assert_close("peer", call(images, several[0]), np.stack([one(k, 0) for k in range(3)]), scale)
    assert_close("peer", jax.jit(jax.vmap(call))(images, several), both, scale)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WARPS if name not in (*INVERSE, "remap")])
def test_derivatives_in_image_and_parameters(name, x64):
    """To the second order, against differences; a filter whose slopes are continuous."""
    call, parameters, _ = WARPS[name]
    sampler = jt.Sampler(address_mode="clamp", filter_mode="cubic")
    read = lambda i, p: call(i, p, sampler=sampler)
    # So short a step that no pixel comes to another cell.
    assert_derivatives(read, image(*SIZES, 1), np.asarray(parameters, np.float64), step=2e-5)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "float16", "bfloat16", "float32", "float64"])
def test_every_dtype_is_read_as_numbers_and_kept(dtype, x64):
    texels = np.round(image(*SIZES, 3) * 40 + (100 if dtype.startswith("u") else 0)).clip(
        0 if dtype[0] == "u" else -128, 255
    )
    expected = warp.rotate(texels.astype(np.float32), np.float32(20.0))
    actual = warp.rotate(jnp.asarray(texels, dtype), np.float32(20.0))
    assert actual.dtype == dtype
    if "int" in dtype:
        assert_codes_close("peer", actual, expected, 255)
        unrounded = warp.rotate(jnp.asarray(texels, dtype), np.float32(20.0), dtype=jnp.float32)
        assert_close("peer", unrounded, expected, 255)
    else:
        row = dtype if "16" in dtype else "peer"
        assert_close(row, actual.astype(jnp.float32), expected, 255)


def test_point_filter_returns_texels_as_they_are():
    texels = np.random.default_rng(0).integers(0, 255, (*SIZES, 4)).astype(np.uint8)
    assert_exact(warp.resize(texels, (18, 14), filter="point"), texels.repeat(2, 0).repeat(2, 1))
    assert_exact(warp.warp_affine(texels, np.eye(2, 3, dtype=np.float32), filter="point"), texels)


def test_identity_and_whole_steps_are_exact():
    texels = np.random.default_rng(0).integers(0, 255, (*SIZES, 4)).astype(np.uint8)
    assert_exact(warp.rotate(texels, 0.0), texels)
    assert_exact(warp.resize(texels, SIZES), texels)
    shifted = warp.warp_affine(texels, np.float32([[1, 0, 2], [0, 1, -1]]))
    assert_exact(shifted[:-1, 2:], texels[1:, :-2])
    assert not shifted[-1].any()
    assert not shifted[:, :2].any()


def test_a_quarter_turn_is_counter_clockwise():
    square = np.float32(image(6, 6, 1))
    assert_close("peer", warp.rotate(square, 90.0), np.rot90(square), np.abs(square).max())
    assert_close("peer", warp.rotate(square, 90.0, center=np.float32([3, 3])), np.rot90(square), np.abs(square).max())


def test_volumes():
    """A matrix of three axes, a function of three coordinates, sizes of three, against their plain reads."""
    volume = np.float32(image(2, 4, 5, 6, 2))
    matrix = np.eye(3, 4, dtype=np.float32) + np.float32(0.1 * image(3, 4, seed=3))
    z, y, x = np.indices((3, 4, 5), np.float32) + np.float32(0.5)
    coords = tuple(r[0] * x + r[1] * y + r[2] * z + r[3] for r in matrix)
    plain = jt.Sampler(address_mode="border", normalized_coords=False)
    expected = np.stack([jt.sample(jt.texture3d(v), coords, plain) for v in volume])
    scale = np.abs(volume).max()
    by_function = lambda x, y, z: tuple(r[0] * x + r[1] * y + r[2] * z + r[3] for r in matrix)
    for actual in (
        warp.warp_affine(volume, matrix, (3, 4, 5), inverse_map=True),
        warp.warp_perspective(volume, np.vstack([matrix, np.float32([[0, 0, 0, 1]])]), (3, 4, 5), inverse_map=True),
        warp.remap(volume, coords),
        warp.warp_flow(volume, np.stack([c - p for c, p in zip(coords, (x, y, z), strict=True)], -1)),
        warp.resample(volume, by_function, (3, 4, 5)),
    ):
        assert_close("peer", actual, expected, scale)
    small = warp.resize(volume, (2, 3, 3))
    assert small.shape == (2, 2, 3, 3, 2)
    assert_close("peer", warp.resize(np.ones_like(volume), (2, 3, 3)), np.ones(small.shape), 1)


# -------------------------------------------------------------------------------------------------- antialiasing


def checkerboard(size, channels=1):
    return np.float32((np.indices((size, size)).sum(0) % 2)[..., None].repeat(channels, -1))


@pytest.mark.parametrize("degrees", [0.0, 25.0])
def test_a_shrunk_checkerboard_is_gray(degrees):
    """Read point by point it aliases; smoothed it is its mean."""
    board = checkerboard(64)
    inner = np.s_[3:-3, 3:-3]
    shrink = functools.partial(warp.rotate, board, degrees, (16, 16), address="mirror", scale=0.24)
    assert np.abs(shrink()[inner] - 0.5).max() > 0.2
    assert np.abs(shrink(antialias=True)[inner] - 0.5).max() < 0.02


def test_antialiasing_without_shrinking_changes_nothing():
    texels = np.float32(image(*SIZES, 3))
    turned = functools.partial(warp.rotate, texels, 30.0, scale=1.5)
    assert_close("peer", turned(antialias=True), turned(), np.abs(texels).max())
    bytes_ = np.random.default_rng(0).integers(0, 255, (*SIZES, 3)).astype(np.uint8)
    assert_exact(warp.rotate(bytes_, 0.0, antialias=True), bytes_)


def test_a_resized_image_is_smoothed_where_it_shrinks():
    board = checkerboard(64)
    assert np.abs(warp.resize(board, (13, 13), antialias=False) - 0.5).max() > 0.2
    assert np.abs(warp.resize(board, (13, 13)) - 0.5)[1:-1, 1:-1].max() < 0.01
    bytes_ = np.asarray(warp.resize(np.uint8(200 * board), (16, 16)))
    assert_exact(bytes_[1:-1, 1:-1], np.full((14, 14, 1), 100), np.uint8)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_a_resized_image_that_shrinks_nowhere_is_the_plain_read(dtype):
    """The same program, without a mip chain; and no filter that returns stored texels smooths them."""
    texels = (100 * image(*SIZES, 2)).clip(0).astype(dtype)
    program = lambda size, **options: str(jax.make_jaxpr(lambda t: warp.resize(t, size, **options))(texels))
    for size in (SIZES, (18, 14), (9, 14)):
        assert program(size) == program(size, antialias=False)
    assert program((4, 3)) != program((4, 3), antialias=False)
    assert program((4, 3), filter="point") == program((4, 3), filter="point", antialias=False)


def test_an_axis_that_keeps_its_size_stays_sharp():
    rows = np.broadcast_to(np.float32(np.arange(64) % 2)[:, None, None], (64, 64, 1))
    assert_close("peer", warp.resize(rows, (64, 13)), rows[:, :13], 1)
    assert_close("peer", warp.resize(rows.swapaxes(0, 1), (13, 64)), rows[:, :13].swapaxes(0, 1), 1)
    assert np.abs(warp.resize(checkerboard(64), (64, 8)) - 0.5).max() < 0.1


def test_an_axis_of_a_volume_that_keeps_its_size_stays_sharp():
    slices = np.broadcast_to(np.float32(np.arange(16) % 2)[:, None, None, None], (16, 16, 16, 1))
    assert_close("peer", warp.resize(slices, (16, 16, 4)), slices[:, :, :4], 1)


def test_volumes_are_smoothed_in_hardware_arithmetic():
    volume = np.float32(image(8, 9, 6, 2))
    hardware = warp.resize(volume, (3, 3, 3), sampler=jt.Sampler(arithmetic="hardware"))
    chain, sampler = jt.build_mipmaps(jt.texture3d(volume)), jt.Sampler(mipmap_filter_mode="linear")
    z, y, x = (np.indices((3, 3, 3)) + np.float32(0.5)) / 3
    expected = jt.sample(chain, (x, y, z), sampler, lod=np.float32(np.log2(3)))
    assert_close("texture unit axis", hardware, expected, 4 * np.ptp(volume))


@pytest.mark.slow
def test_antialiased_warps_have_gradients(x64):
    """Linear, and by so short a step that no pixel comes to another cell."""
    read = lambda t, m: warp.warp_affine(t, m, (3, 4), address="clamp", inverse_map=True, antialias=True)
    assert_derivatives(read, image(16, 16, 1), np.array([[2.71, 0.33, 1.137], [-0.23, 2.43, 1.319]]), step=2e-5)


# ------------------------------------------------------------------------------------------------------ the rest


def test_a_point_on_the_horizon_reads_the_corner():
    matrix = np.float32([[1, 0, 0], [0, 1, 0], [1, 0, -0.5]])  # x - 0.5 = 0 along the first column
    texels = np.float32(image(3, 3, 1))
    column = lambda m: warp.warp_perspective(texels, m, address="clamp", inverse_map=True)[:, 0]
    assert_exact(column(matrix), np.broadcast_to(texels[0, 0], (3, 1)))
    assert np.isfinite(jax.jit(jax.grad(lambda m: column(m).sum()))(matrix)).all()


def test_reverse_mode_keeps_a_field_and_not_its_components():
    flow, pixels = np.float32(FLOW), np.float32(image(*SIZES, 3))
    reads = {
        "warp_flow": lambda flow, pixels: warp.warp_flow(pixels, flow),
        "grid_sample": lambda flow, pixels: warp.grid_sample(pixels, flow, data_format="NHWC"),
        "of halves": lambda flow, pixels: warp.warp_flow(pixels, flow.astype(jnp.float16)),
    }
    for read in reads.values():
        # Besides a line of pixels along each axis.
        pull = jax.eval_shape(lambda flow, pixels, read=read: jax.vjp(read, flow, pixels)[1], flow, pixels)
        kept = [a.shape for a in jax.tree.leaves(pull) if a.ndim > 1 and 1 not in a.shape]
        assert sorted(kept) == sorted([(*OUT, 2), (*SIZES, 3)])


@pytest.mark.compiled
def test_one_call_compiles_once(caplog):
    texels = np.float32(image(*SIZES, 2))
    with jax.log_compiles():
        for angle in (1.0, 2.0, 3.0):
            warp.rotate(texels, np.float32(angle), [4, 4])
    compiled = [r for r in caplog.records if "Finished XLA compilation" in r.getMessage()]
    assert len(compiled) == 1


def with_parameters(function, parameters=()):
    return warp.resample(np.ones((4, 4, 1), np.float32), function, parameters=parameters)


def test_points_of_parameters_are_not_kept():
    """Between the passes of reverse mode lives the image alone."""
    texels = np.float32(image(*SIZES, 2))
    run = lambda texels, k: warp.resample(texels, bent_by, (40, 50), parameters=(k,))
    kept = jax.tree.leaves(jax.vjp(run, texels, np.float32(0.1))[1])
    assert max(leaf.size for leaf in kept) == texels.size


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: warp.rotate(np.ones((4, 4)), 1.0), "image[..., None]"),
        (lambda: warp.rotate(np.ones((4, 4, 1)), 1.0, (4, 4, 4)), "output_shape is (4, 4, 4), expected (H, W)"),
        (lambda: warp.forward_warp(np.ones((4, 4, 1), np.complex64), np.ones((4, 4, 2))), "image has dtype complex64"),
        (lambda: warp.rotate(np.ones((4, 4, 1)), 1.0, (0, 4)), "sizes of at least 1"),
        (lambda: warp.warp_affine(np.ones((4, 4, 1)), np.eye(3)), "matrix has shape (3, 3), expected (..., 2, 3)"),
        (lambda: warp.warp_perspective(np.ones((4, 4, 1)), np.eye(2, 3)), "matrix has shape (2, 3)"),
        (lambda: warp.spatial_transform(np.ones((4, 4, 1)), np.eye(2)), "theta has shape (2, 2)"),
        (lambda: warp.resize(np.ones((4, 4, 1)), (4,)), "output_shape is (4,), expected (H, W) or (D, H, W)"),
        (lambda: warp.remap(np.ones((4, 4, 1)), np.ones((4, 4, 4))), "coords has shape (4, 4, 4), expected (..., H, W"),
        (lambda: warp.rotate(np.ones((4, 4, 1)), 1.0, center=np.ones(3)), "center has shape (3,), expected (..., 2)"),
        (
            lambda: warp.rotate(np.ones((4, 4, 1)), 1.0, center=(np.ones(2), np.ones(3))),
            "center has arrays of shapes (2,) and (3,), expected shapes that broadcast",
        ),
        (lambda: warp.remap(np.ones((4, 4, 1)), (np.ones(4), np.ones(4))), "shapes (4,), (4,), expected"),
        (lambda: warp.warp_flow(np.ones((4, 4, 1)), np.ones((4, 4, 4))), "flow has shape (4, 4, 4)"),
        (lambda: warp.resample(np.ones((4, 4, 1)), lambda x, y: (x,)), "1 coordinates, expected 2"),
        (lambda: with_parameters(lambda x, y: (x,)), "1 coordinates, expected 2"),
        (lambda: with_parameters(lambda x, y, k: (x, y), 0.5), "parameters is a float, expected a tuple"),
        (lambda: with_parameters(lambda x, y: (x + np.ones((4, 4), np.float32), y)), "must be elementwise"),
        (
            lambda: jax.jit(lambda k: with_parameters(lambda x, y: (x + k, y)))(1.0),
            "closes over a traced array; pass the array in parameters",
        ),
        (lambda: warp.matrix_from_scipy(np.eye(5)), "matrix has shape (5, 5)"),
    ],
)
def test_errors_are_sentences(call, words):
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    assert words in str(error.value)
    assert str(error.value).endswith(".")
