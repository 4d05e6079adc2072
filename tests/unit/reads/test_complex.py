"""Complex texels: functions read or write their real and imaginary parts; derivatives follow the conventions of JAX."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from tests.compiled.calls import chain
from tests.oracles import reads as oracle
from tests.support.tolerances import assert_close, named

rng = np.random.default_rng(11)
SHAPE, SAMPLES = (6, 7, 2), 9
CUBIC = {"filter_mode": "cubic", "address_mode": "border"}
SAMPLER = jt.Sampler(address_mode="border", mipmap_filter_mode="linear")
COLOR = np.complex64(0.75 - 1.5j)


def normal(*shape):
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)


TEXELS, VALUES = normal(*SHAPE), normal(SAMPLES, 2)
X, Y = rng.uniform(-0.2, 1.2, (2, SAMPLES)).astype(np.float32)
PLACES, HEADS = (np.arange(3), np.array([0, 5, 2])), np.arange(SAMPLES) % 2
ENDS = np.float32([[0.5, 1.0], [6.0, 4.5]])[:, None]
FLOW = rng.normal(size=(*SHAPE[:2], 2)).astype(np.float32)
TURN = np.float32([[1.7, 0.2, -0.5], [-0.1, 1.4, 0.3]])


def of_color(color):
    return functools.partial(jt.texture2d, border_color=color)


# Each is a function of texels and of values, both real or both complex, and of a color; linear in the three together.
CALLS = {
    "sample": lambda t, v, c: jt.sample(of_color(c)(t), (X, Y), SAMPLER),
    "draws": lambda t, v, c: jt.sample(of_color(c)(t), (X, Y), SAMPLER, key=jax.random.key(0)),
    "derivatives": lambda t, v, c: jt.sample_with_derivatives(of_color(c)(t), (X, Y), SAMPLER).gradient[1],
    "cube": lambda t, v, c: jt.sample(jt.cubemap(t[:, :5, :1].repeat(5, 2)[..., None]), (X, Y, X + Y)),
    "footprint": lambda t, v, c: jt.sample(
        chain(t), (X, Y), jt.Sampler(max_anisotropy=2), ddx=(0.3, 0.1), ddy=(0.0, 0.1)
    ),
    "fetch": lambda t, v, c: jt.fetch(jt.texture2d(t), PLACES),
    "gather": lambda t, v, c: jt.gather(of_color(c)(t), (X, Y), SAMPLER, component=1),
    "splat": lambda t, v, c: jt.splat(v, (X, Y), SHAPE, SAMPLER, lod=0.7).texels,
    "spline filter": lambda t, v, c: jt.spline_filter(of_color(c)(t), jt.Sampler(filter_mode="bspline")).texels,
    "surface read": lambda t, v, c: jt.surface_read(jt.texture2d(t), PLACES),
    "surface write": lambda t, v, c: jt.surface_write(jt.texture2d(t), v[0], PLACES).texels,
    "surface add": lambda t, v, c: jt.surface_add(jt.texture2d(t), v[:3], PLACES).texels,
    "weighted": lambda t, v, c: jt.nn.sample_weighted(of_color(c)(t), (X, Y), X, SAMPLER),
    "heads": lambda t, v, c: jt.nn.sample_weighted(jt.texture2d(t), (X, Y), X, head=HEADS, num_heads=2),
    "integral": lambda t, v, c: jt.rays.line_integral(t, *ENDS, num_samples=8),
    "affine, antialiased": lambda t, v, c: jt.warp.warp_affine(t, TURN, antialias=True),
    "grid sample": lambda t, v, c: jt.warp.grid_sample(t[None], FLOW[None] / 4, data_format="NHWC"),
    "smaller": lambda t, v, c: jt.warp.resize(t, (3, 4), border_color=c, address_mode="border"),
}

LARGE = {"affine, antialiased"}  # whose cotangents would be a large program


def test_is_the_complex_number_of_the_reads_of_parts():
    """Values, and cotangents: each is linear in texels, values and color together."""

    @jax.jit
    def run(*args):
        results = {}
        for name, call in CALLS.items():
            out, pull = (call(*args), None) if name in LARGE else jax.vjp(call, *args)
            cotangent = normal(*out.shape)
            parts = (call(*map(of, args)) for of in (jnp.real, jnp.imag))
            results[name] = out, jax.lax.complex(*parts), cotangent, pull and pull(cotangent)
        return results

    args = TEXELS, VALUES, COLOR
    dot = lambda a, b: np.sum(a.astype(np.complex128) * b)
    for name, (out, of_parts, cotangent, pulled) in jax.device_get(run(*args)).items():
        with named(name):
            assert out.dtype == np.complex64
            scale = 1 + np.abs(out).max()
            assert_parts_close("float32", out, of_parts, scale)
            if pulled:  # the transpose of a linear map: <c, A t> = <A* c, t>, without conjugates
                most = 4 * out.size * scale * (1 + np.abs(cotangent).max())
                assert_parts_close("sum", sum(map(dot, pulled, args)), dot(cotangent, out), most)


def assert_parts_close(row, actual, expected, scale):
    for part in (np.real, np.imag):
        assert_close(row, part(np.asarray(actual)), part(expected), scale)


def test_gradients_in_coordinates_to_the_second_order():
    """Against central differences of the oracle, of the energy and of the phase of a read."""
    texels, color = TEXELS.astype(np.complex128), COLOR
    part = lambda x, y, t, c: oracle.sample(t, [x, y], border_color=np.full(2, c), dtype=np.float64, **CUBIC)
    read = lambda x, y: part(x, y, texels.real, color.real) + 1j * part(x, y, texels.imag, color.imag)
    with jax.enable_x64(True):
        texture = jt.texture2d(jnp.asarray(texels), border_color=color)
        assert jax.eval_shape(jt.sample, texture, (X, Y)).dtype == np.complex128

        def loss(xp, values):
            return xp.sum(xp.abs(values) ** 2 + (values * (1 - 2j)).real)

        ours = lambda x, y: loss(jnp, jt.sample(texture, (x, y), jt.Sampler(**CUBIC)))
        theirs = lambda x, y: loss(np, read(x, y))
        x, y = np.float64(X), np.float64(Y)
        dx, dy = rng.normal(size=(2, SAMPLES))
        step = 1e-4
        along = lambda f: lambda s: jax.jvp(f, (s,), (1.0,))[1]
        once = along(lambda s: ours(x + s * dx, y + s * dy))
        slope, curvature = jax.jit(lambda: (once(0.0), along(once)(0.0)))()
        low, mid, high = (theirs(x + k * step * dx, y + k * step * dy) for k in (-1, 0, 1))
        assert_close("central difference", slope, (high - low) / (2 * step), 7**2 * abs(mid))
        assert_close("central difference", curvature, (high - 2 * mid + low) / step**2, 7**4 * abs(mid))


@pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
def test_texels_and_samples_that_are_sharded():
    mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:8])
    texels, (x, y) = normal(16, 5, 1), rng.uniform(0, 1, (2, 16)).astype(np.float32)

    def run(texels, x, y):
        texture = jt.texture2d(texels)
        read = jt.sample(texture, (x, y))
        return read, jt.splat(read, (x, y), texels.shape).texels

    expected = jax.jit(run)(texels, x, y)
    with jax.set_mesh(mesh):
        args = [jax.device_put(a, NamedSharding(mesh, P("d"))) for a in (texels, x, y)]
        found = jax.jit(run)(*args)
    for a, b in zip(found, expected, strict=True):
        assert_parts_close("sum", np.asarray(a), b, 64 * (1 + np.abs(b).max()))
