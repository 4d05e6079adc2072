"""Warps by functions, matrices, angles, sizes and fields: where they look, what they take, and their derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import warp
from tests.oracles import reads as oracle
from tests.support.arrays import normal
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_codes_close, assert_exact, named

SIZES, OUT = (9, 7), (6, 8)  # height and width of the input and the output
AFFINE = np.array([[0.9, 0.2, 1.3], [-0.15, 1.1, 0.4]])
HOMOGRAPHY = np.array([[0.9, 0.2, 1.3], [-0.15, 1.1, 0.4], [0.01, 0.02, 1.0]])
THETA = np.array([[0.8, 0.1, 0.05], [-0.2, 0.9, -0.1]])

image = functools.partial(normal, seed=0, dtype=np.float64)


def codes(*shape):
    return np.random.default_rng(0).integers(0, 255, shape).astype(np.uint8)


FLOW = 1.5 * image(*OUT, 2, seed=1)


def centers(shape=OUT):
    y, x = np.indices(shape) + 0.5
    return x, y


def through(matrix, x, y):
    """Points times a matrix, divided by the last component."""
    x, y, *w = (row[0] * x + row[1] * y + row[2] for row in matrix)
    return (x / w[0], y / w[0]) if w else (x, y)


def backward(matrix, x, y):
    return through(np.linalg.inv([*matrix, [0, 0, 1]][:3]), x, y)


def turned(parameters, x, y):
    """The points of the input for a rotation by some radians and a scale, center to center."""
    angle, scale = parameters
    x, y = (x - OUT[1] / 2) / scale, (y - OUT[0] / 2) / scale
    cos, sin = np.cos(angle), np.sin(angle)
    return cos * x - sin * y + SIZES[1] / 2, sin * x + cos * y + SIZES[0] / 2


def in_theta(theta, x, y):
    u, v = through(theta, 2 * x / OUT[1] - 1, 2 * y / OUT[0] - 1)
    return (u + 1) * SIZES[1] / 2, (v + 1) * SIZES[0] / 2


def bent(k, x, y):
    return x + k * y * y, 0.9 * y + 0.3


def bent_by(x, y, k):
    """The same, of operands of a read."""
    return x + k * (y * y), 0.9 * y + 0.3


# Of each warp: how it is called with an image and parameters, its parameters, and the points that they lead to.
WARPS = {
    "resample": (lambda i, k, **o: warp.resample(i, bent_by, OUT, parameters=(k,), **o), 0.1, bent),
    "warp_affine": (lambda i, m, **o: warp.warp_affine(i, m, OUT, inverse_map=True, **o), AFFINE, through),
    "warp_affine, forward": (
        lambda i, m, **o: warp.warp_affine(i, m, OUT, **o),
        np.linalg.inv([*AFFINE, [0, 0, 1]])[:2],
        backward,
    ),
    "warp_perspective": (
        lambda i, m, **o: warp.warp_perspective(i, m, OUT, inverse_map=True, **o),
        HOMOGRAPHY,
        through,
    ),
    "warp_perspective, forward": (
        lambda i, m, **o: warp.warp_perspective(i, m, OUT, **o),
        np.linalg.inv(HOMOGRAPHY),
        backward,
    ),
    "rotate": (
        lambda i, p, **o: warp.rotate(i, output_shape=OUT, angle=p[..., 0], scale=p[..., 1], **o),
        np.array([0.52, 1.5]),
        turned,
    ),
    "spatial_transform": (lambda i, m, **o: warp.spatial_transform(i, m, OUT, **o), THETA, in_theta),
    "remap": (
        lambda i, c, **o: warp.remap(i, (c[..., 0], c[..., 1]), **o),
        np.stack(centers(), -1) + FLOW,
        lambda c, *_: (c[..., 0], c[..., 1]),
    ),
    "warp_flow": (warp.warp_flow, FLOW, lambda f, x, y: (x + f[..., 0], y + f[..., 1])),
}
# The batches of images and parameters, by which of them are paired: both, either, and both under `vmap`.
PAIRS = {
    "both": ((0, 0), (1, 1)),
    "one image": ((0, 0), (0, 1)),
    "one warp": ((0, 0), (1, 0)),
    "vmap": ((0, 0), (1, 1)),
}


def test_where_warps_look():
    """Of images and parameters with leading axes, against the oracle, with a border color."""
    images, color = np.float32(image(2, *SIZES, 2)), np.float32([2.0, -1.0])
    several = {
        name: np.float32(parameters) * np.float32([1, 0.97]).reshape(2, *[1] * np.ndim(parameters))
        for name, (_, parameters, _) in WARPS.items()
    }

    def batches(name, images, several):
        one = functools.partial(WARPS[name][0], border_color=color)
        found = {"both": one(images, several)}
        if name in ("resample", "warp_flow"):
            found |= {"one image": one(images[0], several), "one warp": one(images, several[0])}
        return found | ({"vmap": jax.vmap(one)(images, several)} if name == "warp_perspective" else {})

    run = jax.jit(lambda images, several: {name: batches(name, images, several[name]) for name in WARPS})
    options = {"address_mode": "border", "filter_mode": "linear", "normalized_coords": False, "dtype": np.float64}
    for name, found in jax.device_get(run(images, several)).items():
        at = [WARPS[name][2](np.float64(parameters), *centers()) for parameters in several[name]]
        read = lambda k, j, at=at: oracle.sample(images[k], at[j], border_color=color, **options)
        for batch in found:
            with named((name, batch)):
                assert found[batch].dtype == jnp.float32
                expected = np.stack([read(k, j) for k, j in PAIRS[batch]])
                assert_close("peer", found[batch], expected, np.abs(images).max())


# That of `test_where_warps_look` alone: a matrix of the forward map is inverted first.
ONCE = ("warp_affine", "warp_perspective", "remap")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(name for name in WARPS if name not in ONCE), "antialias"])
def test_derivatives_in_image_and_parameters(name, x64):
    """To the second order, against differences; a filter whose slopes are continuous, or a smoothed one."""
    if name == "antialias":
        read = lambda i, m: warp.warp_affine(i, m, (3, 4), address_mode="clamp", inverse_map=True, antialias=True)
        texels, parameters = image(16, 16, 1), [[2.71, 0.33, 1.137], [-0.23, 2.43, 1.319]]
    else:
        (call, parameters, _), texels = WARPS[name], image(*SIZES, 1)
        read = lambda i, p: call(i, p, sampler=jt.Sampler(filter_mode="cubic"), address_mode="clamp")
    # So short a step that no pixel comes to another cell.
    assert_derivatives(read, texels, np.asarray(parameters, np.float64), step=2e-5)


def test_every_dtype_is_read_as_numbers_and_kept(x64):
    dtypes = ("uint8", "uint16", "int32", "float16", "bfloat16", "float64")
    texels = {dtype: np.round(image(*SIZES, 3) * 40 + (100 if dtype[0] == "u" else 0)) for dtype in dtypes}
    texels = {
        dtype: a.clip(0 if dtype[0] == "u" else -128, 255).astype(jnp.dtype(dtype)) for dtype, a in texels.items()
    }
    turn = functools.partial(warp.rotate, angle=np.float32(0.35))

    @jax.jit
    def run(texels):
        unrounded = {dtype: turn(texels[dtype], dtype=jnp.float32) for dtype in ("uint8", "int32")}
        exact = {dtype: turn(texels[dtype].astype(jnp.float32)) for dtype in ("uint8", "float64")}
        return {dtype: turn(a) for dtype, a in texels.items()}, unrounded, exact

    found, unrounded, exact = run(texels)
    for dtype in dtypes:
        expected = exact["uint8" if dtype[0] == "u" else "float64"]
        with named(dtype):
            assert found[dtype].dtype == dtype
            if "int" in dtype:
                assert_codes_close("peer", found[dtype], expected, 255)
                assert_close("peer", unrounded.get(dtype, expected), expected, 255)
            else:
                assert_close(dtype if "16" in dtype else "peer", found[dtype], expected, 255)


def test_texels_as_they_are_and_turns():
    """The point filter, identities and whole steps return stored texels; a quarter turn is counter-clockwise."""
    texels, square = codes(*SIZES, 4), np.float32(image(6, 6, 1))

    @jax.jit
    def run(texels, square):
        return (
            {
                "resize, point": warp.resize(texels, (18, 14), filter_mode="point"),
                "affine, point": warp.warp_affine(texels, np.eye(2, 3, dtype=np.float32), filter_mode="point"),
                "rotate": warp.rotate(texels, angle=0.0),
                "resize": warp.resize(texels, SIZES),
                "affine": warp.warp_affine(texels, np.float32([[1, 0, 2], [0, 1, -1]])),
            },
            [warp.rotate(square, angle=np.pi / 2), warp.rotate(square, angle=np.pi / 2, center=np.float32([3, 3]))],
        )

    exact, turns = run(texels, square)
    shifted = np.zeros_like(texels)
    shifted[:-1, 2:] = texels[1:, :-2]
    others = {"resize, point": texels.repeat(2, 0).repeat(2, 1), "affine": shifted}
    for name, found in exact.items():
        with named(name):
            assert_exact(found, others.get(name, texels), np.uint8)
    for found in turns:
        assert_close("peer", found, np.rot90(square), np.abs(square).max())


def test_volumes():
    """Matrices of three axes, a function that returns batches, and fields, against their plain reads."""
    volume = np.float32(image(2, 4, 5, 6, 2))
    matrix = np.eye(3, 4, dtype=np.float32) + np.float32(0.1 * image(2, 3, 4, seed=3))
    z, y, x = np.indices((3, 4, 5), np.float32) + np.float32(0.5)
    moved = lambda rows, x, y, z: tuple(r[0] * x + r[1] * y + r[2] * z + r[3] for r in rows)
    coords = tuple(map(np.stack, zip(*(moved(rows, x, y, z) for rows in matrix))))

    @jax.jit
    def run(volume, coords, matrix):
        by_function = lambda *at: jax.vmap(lambda rows: moved(rows, *at))(matrix)
        square = jnp.concatenate([matrix, np.float32([[[0, 0, 0, 1]]] * 2)], 1)
        return {
            "warp_affine": warp.warp_affine(volume, matrix, (3, 4, 5), inverse_map=True),
            "remap": warp.remap(volume, coords),
            "warp_perspective": warp.warp_perspective(volume, square, (3, 4, 5), inverse_map=True),
            "warp_flow": warp.warp_flow(volume, jnp.stack([c - p[None] for c, p in zip(coords, (x, y, z))], -1)),
            "resample": warp.resample(volume, by_function, (3, 4, 5)),
        }

    options = {"address_mode": "border", "filter_mode": "linear", "normalized_coords": False}
    expected = np.stack([oracle.sample(v, tuple(c[k] for c in coords), **options) for k, v in enumerate(volume)])
    for name, found in run(volume, coords, matrix).items():
        with named(name):
            assert_close("peer", found, expected, np.abs(volume).max())


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_a_resized_image_that_shrinks_nowhere_is_the_plain_read(dtype):
    """The same program, without a mip chain; and no filter that returns stored texels smooths them."""
    texels = (100 * image(*SIZES, 2)).clip(0).astype(dtype)
    program = lambda size, **options: str(jax.make_jaxpr(lambda t: warp.resize(t, size, **options))(texels))
    for size in (SIZES, (18, 14), (9, 14)):
        assert program(size) == program(size, antialias=False)
    assert program((4, 3)) != program((4, 3), antialias=False)
    assert program((4, 3), filter_mode="point") == program((4, 3), filter_mode="point", antialias=False)


def test_images_are_smoothed_in_hardware_arithmetic():
    texels, sampler = np.float32(image(9, 6, 2)), jt.Sampler(mipmap_filter_mode="linear")
    y, x = (np.indices((3, 2)) + np.float32(0.5)) / np.float32([3, 2]).reshape(2, 1, 1)

    @jax.jit
    def run(texels):
        hardware = warp.resize(texels, (3, 2), sampler=jt.Sampler(arithmetic="hardware"))
        return hardware, jt.sample(jt.build_mipmaps(jt.texture2d(texels)), (x, y), sampler, lod=np.float32(np.log2(3)))

    assert_close("texture unit axis", *run(texels), 4 * np.ptp(texels))


def test_a_point_on_the_horizon_reads_the_corner():
    matrix = np.float32([[1, 0, 0], [0, 1, 0], [1, 0, -0.5]])  # x - 0.5 = 0 along the first column
    texels = np.float32(image(3, 3, 1))
    column = lambda m: warp.warp_perspective(texels, m, address_mode="clamp", inverse_map=True)[:, 0]
    found, gradient = jax.jit(lambda m: (column(m), jax.grad(lambda m: column(m).sum())(m)))(matrix)
    assert_exact(found, np.broadcast_to(texels[0, 0], (3, 1)))
    assert np.isfinite(gradient).all()


def kept(read, *primals):
    """The shapes of what lives between the passes of reverse mode, besides a line of pixels along each axis."""
    pull = jax.eval_shape(lambda *primals: jax.vjp(read, *primals)[1], *primals)
    return sorted(a.shape for a in jax.tree.leaves(pull) if a.ndim > 1 and 1 not in a.shape)


def test_reverse_mode_keeps_a_field_and_the_image_alone():
    """Not the components of the field, nor points that are computed from parameters."""
    flow, pixels = np.float32(FLOW), np.float32(image(*SIZES, 3))
    reads = {
        "warp_flow": lambda flow, pixels: warp.warp_flow(pixels, flow),
        "grid_sample": lambda flow, pixels: warp.grid_sample(pixels, flow, data_format="NHWC"),
        "of halves": lambda flow, pixels: warp.warp_flow(pixels, flow.astype(jnp.float16)),
    }
    for name, read in reads.items():
        with named(name):
            assert kept(read, flow, pixels) == sorted([(*OUT, 2), (*SIZES, 3)])
    by_parameters = lambda k, pixels: warp.resample(pixels, bent_by, (40, 50), parameters=(k,))
    assert kept(by_parameters, np.float32(0.1), pixels) == [(*SIZES, 3)]


def test_one_call_compiles_once(caplog):
    texels = np.float32(image(*SIZES, 2))
    with jax.log_compiles():
        for angle in (1.0, 2.0, 3.0):
            warp.rotate(texels, output_shape=[4, 4], angle=np.float32(angle))
    compiled = [r for r in caplog.records if "Finished XLA compilation" in r.getMessage()]
    assert len(compiled) == 1
