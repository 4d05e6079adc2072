"""Complex texels: functions read or write their real and imaginary parts; derivatives follow the conventions of JAX."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.tolerances import assert_close

rng = np.random.default_rng(11)
SHAPE, SAMPLES = (6, 7, 2), 9
CUBIC = {"filter_mode": "cubic", "address_mode": "border"}
SAMPLER = jt.Sampler(**CUBIC)
COLOR = 0.75 - 1.5j


def normal(*shape):
    """Complex numbers."""
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)


TEXELS, VALUES = normal(*SHAPE), normal(SAMPLES, 2)
X, Y = rng.uniform(-0.2, 1.2, (2, SAMPLES)).astype(np.float32)
PLACES = np.arange(3), np.array([0, 5, 2])
ENDS = np.float32([[0.5, 1.0], [6.0, 4.5]])[:, None]
FLOW = rng.normal(size=(*SHAPE[:2], 2)).astype(np.float32)
TURN = np.float32([[1.7, 0.2, -0.5], [-0.1, 1.4, 0.3]])


def chain(texels):
    return jt.build_mipmaps(jt.texture2d(texels))


def of_color(color):
    return functools.partial(jt.texture2d, border_color=color)


# Each is a function of texels and of values, both real or both complex, and of a color; linear in the three together.
CALLS = {
    "sample": lambda t, v, c: jt.sample(of_color(c)(t), (X, Y), SAMPLER),
    "draws": lambda t, v, c: jt.sample(of_color(c)(t), (X, Y), SAMPLER, key=jax.random.key(0)),
    "derivatives": lambda t, v, c: jt.sample_with_derivatives(of_color(c)(t), (X, Y), SAMPLER, order=2).hessian[0][1],
    "layers": lambda t, v, c: jt.sample(jt.texture1d_layered(t), (X,), layer=jnp.arange(SAMPLES) % 6),
    "cube": lambda t, v, c: jt.sample(jt.cubemap(t[:, :5, :1].repeat(5, 2)[..., None]), (X, Y, X + Y)),
    "levels": lambda t, v, c: jt.sample(chain(t), (X, Y), jt.Sampler(mipmap_filter_mode="linear"), lod=0.7),
    "footprint": lambda t, v, c: jt.sample(
        chain(t), (X, Y), jt.Sampler(max_anisotropy=3), ddx=(0.3, 0.1), ddy=(0.0, 0.1)
    ),
    "the second level": lambda t, v, c: chain(t).levels[1],
    "fetch": lambda t, v, c: jt.fetch(jt.texture2d(t), PLACES),
    "gather": lambda t, v, c: jt.gather(of_color(c)(t), (X, Y), SAMPLER, component=1),
    "splat": lambda t, v, c: jt.splat(v, (X, Y), SHAPE, SAMPLER).texels,
    "splat into levels": lambda t, v, c: jt.splat(v, (X, Y), SHAPE, lod=0.7).levels[1],
    "spline filter": lambda t, v, c: jt.spline_filter(of_color(c)(t), jt.Sampler(filter_mode="bspline")).texels,
    "surface read": lambda t, v, c: jt.surface_read(jt.texture2d(t), PLACES),
    "surface write": lambda t, v, c: jt.surface_write(jt.texture2d(t), v[0], PLACES).texels,
    "surface add": lambda t, v, c: jt.surface_add(jt.texture2d(t), v[:3], PLACES).texels,
    "weighted": lambda t, v, c: jt.nn.sample_weighted(of_color(c)(t), (X, Y), X, SAMPLER),
    "several": lambda t, v, c: jt.nn.sample_weighted([jt.texture2d(t), jt.texture2d(t[:4])], (X[:2], Y[:2]), X[:2]),
    "heads": lambda t, v, c: jt.nn.sample_weighted(
        jt.texture2d(t), (X, Y), X, head=jnp.arange(SAMPLES) % 2, num_heads=2
    ),
    "integral": lambda t, v, c: jt.rays.line_integral(t, *ENDS, num_samples=8),
    "rotate": lambda t, v, c: jt.warp.rotate(t, 20.0, border_color=c),
    "affine, antialiased": lambda t, v, c: jt.warp.warp_affine(t, TURN, antialias=True),
    "flow": lambda t, v, c: jt.warp.warp_flow(t, FLOW),
    "grid sample": lambda t, v, c: jt.warp.grid_sample(t[None], FLOW[None] / 4, data_format="NHWC"),
    "smaller": lambda t, v, c: jt.warp.resize(t, (3, 4), border_color=c, address="border"),
    "by area": lambda t, v, c: jt.warp.resize(t, (3, 4), filter="area"),
    "renormalized": lambda t, v, c: jt.warp.resize(t, (3, 4), edges="renormalize"),
    "larger": lambda t, v, c: jt.warp.resize(t, (12, 14)),
    "ndimage": lambda t, v, c: jt.ndimage.rotate(t, 20.0, cval=c),
}


@pytest.mark.parametrize("name", CALLS)
def test_is_the_complex_number_of_the_reads_of_parts(name):
    """Values, and derivatives: each is linear, so the tangent is the call of the tangents."""
    call = CALLS[name]
    run = lambda t, v: call(t, v, COLOR)
    out = jax.jit(run)(TEXELS, VALUES)
    parts = [
        call(t, v, c) for t, v, c in ((TEXELS.real, VALUES.real, COLOR.real), (TEXELS.imag, VALUES.imag, COLOR.imag))
    ]
    assert out.dtype == np.complex64
    if jax.default_backend() == "cpu":
        np.testing.assert_array_equal(out.real, parts[0])
        np.testing.assert_array_equal(out.imag, parts[1])
    # XLA fuses the programs of two and of four channels differently on a GPU, which rounds the footprint's weights.
    real, imag = map(np.asarray, parts)
    assert_parts_close("float32", out, real + 1j * imag, 1 + np.abs(out).max())
    tangents = normal(*SHAPE), normal(SAMPLES, 2)
    _, tangent = jax.jvp(run, (TEXELS, VALUES), tangents)
    moved = call(*tangents, 0j)
    scale = 1 + np.abs(moved).max()
    assert_parts_close("float32", tangent, moved, 16 * scale)
    # The transpose of a linear map: <c, A t> = <A* c, t>, without conjugates.
    cotangent = normal(*out.shape)
    _, pull = jax.vjp(run, TEXELS, VALUES)
    pulled = sum(jnp.sum(a * b) for a, b in zip(pull(cotangent), tangents))
    assert_parts_close(
        "sum", pulled, jnp.sum(cotangent * tangent), 4 * out.size * scale * (1 + np.abs(cotangent).max())
    )


def assert_parts_close(row, actual, expected, scale):
    for part in (np.real, np.imag):
        assert_close(row, part(actual), part(expected), scale)


def matrix():
    """The reads of unit texels, in float64: a real matrix from texels, (6, 7), to samples."""
    units = np.eye(SHAPE[0] * SHAPE[1]).reshape(*SHAPE[:2], -1)
    return oracle.sample(units, [X, Y], dtype=np.float64, **CUBIC)


def test_gradients_follow_the_convention_of_jax():
    """Of the energy of a read, |A t|^2: 2 conj(A^T A t) in texels, and its derivative along d, 2 conj(A^T A d)."""
    a = matrix()
    energy = lambda t: jnp.sum(jnp.abs(jt.sample(jt.texture2d(t), (X, Y), SAMPLER)) ** 2)
    direction = normal(*SHAPE)
    found, slope = jax.jvp(jax.grad(energy), (TEXELS,), (direction,))
    for array, of in ((found, TEXELS), (slope, direction)):
        expected = 2 * np.conj(a.T @ (a @ of.reshape(-1, 2))).reshape(SHAPE)
        assert_parts_close("derivatives", array, expected, 1 + np.abs(expected).max())


def test_gradients_in_coordinates_to_the_second_order():
    """Against central differences of the oracle, of the energy and of the phase of a read."""
    texels, color = TEXELS.astype(np.complex128), COLOR
    part = lambda x, y, t, c: oracle.sample(t, [x, y], border_color=np.full(2, c), dtype=np.float64, **CUBIC)
    read = lambda x, y: part(x, y, texels.real, color.real) + 1j * part(x, y, texels.imag, color.imag)
    with jax.enable_x64(True):
        texture = jt.texture2d(jnp.asarray(texels), border_color=color)
        assert jt.sample(texture, (X, Y), SAMPLER).dtype == np.complex128

        def loss(xp, values):
            return xp.sum(xp.abs(values) ** 2 + (values * (1 - 2j)).real)

        ours = jax.jit(lambda x, y: loss(jnp, jt.sample(texture, (x, y), SAMPLER)))
        theirs = lambda x, y: loss(np, read(x, y))
        x, y = np.float64(X), np.float64(Y)
        dx, dy = rng.normal(size=(2, SAMPLES))
        step = 1e-4
        slope, curvature = jax.jvp(
            lambda s: jax.jvp(lambda s: ours(x + s * dx, y + s * dy), (s,), (1.0,))[1], (0.0,), (1.0,)
        )
        low, mid, high = (theirs(x + k * step * dx, y + k * step * dy) for k in (-1, 0, 1))
        assert_close("central difference", slope, (high - low) / (2 * step), 7**2 * abs(mid))
        assert_close("central difference", curvature, (high - 2 * mid + low) / step**2, 7**4 * abs(mid))


def test_what_complex_numbers_are_not():
    texture, real = jt.texture2d(TEXELS), jt.texture2d(TEXELS.real)
    for call, words in (
        (
            lambda: jt.sample(texture, (X, Y), jt.Sampler(arithmetic="hardware")),
            "no texture unit has; use arithmetic='float'",
        ),
        (
            lambda: jt.sample(texture, (X, Y), jt.Sampler(read_mode="normalized_float")),
            "and the texture holds complex64",
        ),
        (
            lambda: jt.sample(texture, (X, Y), jt.Sampler(filter_mode="cubic", limit="taps")),
            "complex numbers have no order",
        ),
        (lambda: jt.sample(texture, (X, Y), dtype="float32"), "pass a complex dtype"),
        (lambda: jt.sample(real, (X, Y), dtype="complex64"), "pass a floating dtype"),
        (lambda: jt.sample(texture, (X * 1j, Y)), "coords holds complex64"),
        (lambda: jt.splat(VALUES.real, (X, Y), SHAPE, dtype="complex64"), "pass a floating dtype"),
        (lambda: jt.texture2d(TEXELS.real, border_color=1j), "border_color is complex, and texels are float32"),
        (lambda: jt.surface_max(texture, 1.0, PLACES), "complex numbers have no order; use surface_add"),
        (lambda: jt.surface_write(real, 1j, PLACES), "which float32 texels do not hold"),
        (lambda: jt.warp.rotate(TEXELS, 2.0, dtype="float32"), "leave dtype out, and convert"),
        (lambda: jt.warp.rotate(TEXELS.real, 2.0, dtype="complex64"), "expected a dtype of floating numbers"),
        (lambda: jt.warp.rotate(TEXELS.real, 2.0, border_color=1j), "border_color is complex"),
        (lambda: jt.warp.forward_warp(TEXELS, FLOW), "expected floating numbers, integers or bool"),
        (lambda: jt.nn.sample_weighted(texture, (X, Y), X * 1j), "weights holds complex64"),
    ):
        with pytest.raises((TypeError, ValueError)) as error:
            call()
        assert words in str(error.value)
        assert str(error.value).endswith(".")


@pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
def test_texels_and_samples_that_are_sharded():
    mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:8])
    texels, (x, y) = normal(16, 5, 1), rng.uniform(0, 1, (2, 16)).astype(np.float32)

    def run(texels, x, y):
        texture = jt.texture2d(texels)
        read = jt.sample(texture, (x, y), SAMPLER)
        more = jt.sample_with_derivatives(texture, (x, y), SAMPLER).gradient[0]
        smooth = jt.sample(jt.build_mipmaps(texture), (x, y), jt.Sampler(mipmap_filter_mode="linear"), lod=0.7)
        return read, more, smooth, jt.splat(read, (x, y), texels.shape, SAMPLER).texels

    expected = run(texels, x, y)
    with jax.set_mesh(mesh):
        args = [jax.device_put(a, NamedSharding(mesh, P("d"))) for a in (texels, x, y)]
        found = jax.jit(run)(*args)
    for a, b in zip(found, expected, strict=True):
        assert_parts_close("sum", np.asarray(a), b, 64 * (1 + np.abs(b).max()))


# Fourier slices: a projection of a volume along z has as its spectrum the slice of the volume's spectrum at z = 0
# (Bracewell, 1956). In electron cryo-microscopy, each image is a projection at an unknown pose.

PADDED, WIDTH = 64, 2.0  # of the grid, and of each of the blobs that the volume consists of
CENTERS = np.array([[3.0, -2.0, 1.0], [-4.0, 1.5, 2.5], [0.5, 3.0, -3.5]])
HEIGHTS = np.array([1.0, -0.5, 0.75])


def spectrum_of_blobs(angles, radius=10):
    """The spectrum of the blobs' projection, turned by Euler angles, at frequencies up to a radius, in closed form."""
    line = np.arange(-radius, radius + 1)
    v, u = np.meshgrid(line, line, indexing="ij")
    at = (2 * np.pi / PADDED) * np.stack([u, v, 0 * u], -1) @ rotation(np, *angles)
    waves = np.exp(-1j * at @ CENTERS.T) @ HEIGHTS
    return (2 * np.pi * WIDTH**2) ** 1.5 * np.exp(-0.5 * WIDTH**2 * (at**2).sum(-1)) * waves


def rotation(xp, a, b, c):
    """The rotation about z, x and z by three angles, which takes points to places in the frame of the volume."""
    about_z = lambda t: xp.array([[xp.cos(t), -xp.sin(t), 0], [xp.sin(t), xp.cos(t), 0], [0, 0, 1]])
    about_x = lambda t: xp.array([[1, 0, 0], [0, xp.cos(t), -xp.sin(t)], [0, xp.sin(t), xp.cos(t)]])
    return about_z(a) @ about_x(b) @ about_z(c)


def coefficients():
    """The spectrum of the blobs on a grid, the origin at its middle, as coefficients of a spline."""
    line = np.arange(PADDED) - PADDED // 2
    z, y, x = np.meshgrid(line, line, line, indexing="ij")
    squares = [(x - c[0]) ** 2 + (y - c[1]) ** 2 + (z - c[2]) ** 2 for c in CENTERS]
    volume = sum(h * np.exp(-0.5 * s / WIDTH**2) for h, s in zip(HEIGHTS, squares))
    found = np.fft.fftshift(np.fft.fftn(np.fft.ifftshift(volume)))
    return jt.spline_filter(jt.texture3d(jnp.asarray(found[..., None], np.complex64)), SPLINE)


SPLINE = jt.Sampler(filter_mode="bspline", spline_order=5, address_mode="wrap", normalized_coords=False)


def fourier_slice(coefficients, angles, radius=10):
    line = jnp.arange(-radius, radius + 1.0)
    v, u = jnp.meshgrid(line, line, indexing="ij")
    places = jnp.stack([u, v, 0 * u], -1) @ rotation(jnp, *angles) + PADDED // 2 + 0.5
    return jt.sample(coefficients, tuple(jnp.moveaxis(places, -1, 0)), SPLINE)[..., 0]


@jax.default_matmul_precision("highest")
def test_a_slice_of_the_spectrum_is_the_spectrum_of_a_projection():
    """And its slopes in the pose, and how a loss of the pose curves, are those of the blobs in closed form."""
    texture, angles = coefficients(), np.array([0.4, 0.9, -0.7])
    expected = spectrum_of_blobs(angles)
    largest = np.abs(expected).max()
    found = jax.jit(fourier_slice)(texture, jnp.float32(angles))
    assert_parts_close("fourier slice", found, expected, largest)
    slopes = jax.jit(jax.jacfwd(fourier_slice, 1))(texture, jnp.float32(angles))
    for k in range(3):
        low, high = (spectrum_of_blobs(angles + s * 1e-5 * np.eye(3)[k]) for s in (-1, 1))
        assert_parts_close("fourier slice", slopes[..., k], (high - low) / 2e-5, 10 * largest)
    image = spectrum_of_blobs(angles + np.array([0.05, -0.03, 0.02]))
    loss = lambda xp, values: xp.sum(xp.abs(values - image) ** 2) / largest**2
    ours = lambda a: loss(jnp, fourier_slice(texture, a))
    theirs = lambda a: loss(np, spectrum_of_blobs(a))
    gradient, hessian = jax.jit(jax.grad(ours))(jnp.float32(angles)), jax.jit(jax.hessian(ours))(jnp.float32(angles))
    unit = np.eye(3) * 1e-4
    first = [(theirs(angles + e) - theirs(angles - e)) / 2e-4 for e in unit]
    mixed = lambda d, e: (
        (theirs(angles + d + e) - theirs(angles + d - e) - theirs(angles - d + e) + theirs(angles - d - e)) / 4e-8
    )
    second = np.array([[mixed(d, e) for e in unit] for d in unit])
    assert_close("fourier slice", gradient, first, 10 * np.abs(first).max())
    assert_close("fourier slice", hessian, second, 10 * np.abs(second).max())
