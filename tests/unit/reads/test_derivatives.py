"""`sample_with_derivatives`: values, gradients and Hessians, against finite differences and derivatives of `sample`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.support.cases import computed
from tests.support.host_kernels import kernels_on_cpu
from tests.support.tolerances import assert_close, assert_trees_close, named

rng = np.random.default_rng(5)
SAMPLES = 9


def flat(found):
    """The derivatives by the coordinates along which they are: (), (0,), and (0, 1) for a mixed one."""
    by = {(): found.value} | {(i,): a for i, a in enumerate(found.gradient)}
    return by | {(i, j): a for i, row in enumerate(found.hessian or ()) for j, a in enumerate(row)}


PIXEL, FOOTPRINT = {"normalized_coords": False}, {"ddx": (0.3, 0.1), "ddy": (0.02, 0.1)}
LINEAR = {"filter_mode": "linear", "mipmap_filter_mode": "linear"}
# Each: a constructor, a shape, options, arguments of a read, and of a texture.
CALLS = {
    "line": (jt.texture1d, (6, 2), {"filter_mode": "cubic", "address_mode": "wrap"}, {}, {}),
    "volume": (jt.texture3d, (4, 5, 6, 1), {"filter_mode": "linear", "address_mode": "wrap"} | PIXEL, {}, {}),
    "border": (jt.texture2d, (6, 7, 2), {"address_mode": "border"}, {}, {"border_color": np.float64([0.5, -2])}),
    "levels": (jt.texture2d, (8, 8, 2), LINEAR, {"lod": np.float64(0.7)}, {}),
    "sphere": (jt.texture2d, (6, 8, 1), {"address_mode": "sphere"}, {}, {}),
    "layers": (jt.texture1d_layered, (3, 7, 2), {"address_mode": "mirror"}, {"layer": 1}, {}),
    "cube": (jt.cubemap, (6, 6, 6, 2), {"filter_mode": "linear"}, {}, {}),
    "limit": (jt.texture2d, (6, 7, 1), {"limit": "taps"}, {}, {}),
    "footprint": (jt.texture2d, (8, 8, 1), {"max_anisotropy": 2} | LINEAR, FOOTPRINT, {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_of_finite_differences(name, x64):
    make, shape, options, arguments, of_texture = CALLS[name]
    texture = make(rng.normal(size=shape), **of_texture)
    sampler = jt.Sampler(**{"filter_mode": "bspline"} | options)
    scale = shape[-2] if "normalized_coords" in options else 1
    ndim = {"line": 1, "layers": 1, "cube": 3, "volume": 3}.get(name, 2)
    coords = [rng.uniform(0.1, 1.1, SAMPLES) * scale for _ in range(ndim)]

    @jax.jit
    def both(texture, coords):
        texture = jt.build_mipmaps(texture) if "mipmap_filter_mode" in options else texture
        found = jt.sample_with_derivatives(texture, coords, sampler, order=2, **arguments)
        return jt.sample(texture, coords, sampler, **arguments), flat(found)

    def moved(function, k, step):
        shifted = lambda c, step: tuple(x + step * (n == k) for n, x in enumerate(c))
        return lambda c: (function(shifted(c, step)) - function(shifted(c, -step))) / (2 * step)

    value, found = both(texture, tuple(coords))
    assert_close("float64", found.pop(()), value, 8)
    for along, array in found.items():
        function = lambda c: np.asarray(both(texture, c)[0])
        for k in along:
            function = moved(function, k, 1e-6 if len(along) == 1 else 1e-5)
        with named(along):
            assert_close("central difference", array, function(tuple(coords)), 100 ** len(along))


def test_equals_derivatives_of_sample():
    texels, x = np.float32(rng.normal(size=(7, 2))), np.float32(rng.uniform(-0.1, 1.1, (3, 4)))
    sampler = jt.Sampler(filter_mode="cubic", address_mode="border")

    def plain(texture, x):
        one = lambda x: jt.sample(texture, (x,), sampler)
        return jax.vmap(jax.vmap(lambda x: (one(x), jax.jacfwd(one)(x), jax.hessian(one)(x))))(x)

    def slopes(function):
        def loss(texels, x):
            values = jax.tree.leaves(function(jt.texture1d(texels, border_color=np.float32(0.3)), x))
            return sum(map(jnp.sum, values)), values[0]

        return jax.value_and_grad(loss, (0, 1), has_aux=True)

    parts = lambda texture, x: jt.sample_with_derivatives(texture, (x,), sampler, order=2)
    ((a, value), found), ((b, same), expected) = computed(*((slopes(f), texels, x) for f in (parts, plain)))
    assert_close("float32", value, same, 8)
    assert_close("sum", a, b, 1e5)
    assert_trees_close("derivatives", found, expected)


def test_batches_and_tangents():
    texels, coords = np.float32(rng.normal(size=(2, 6, 7, 1))), tuple(np.float32(rng.uniform(0, 6, (2, 2, 5))))
    sampler = jt.Sampler(filter_mode="cubic", normalized_coords=False)
    one = lambda t, c: jt.sample_with_derivatives(jt.texture2d(t), c, sampler, order=2)
    apart = lambda t, c: jax.tree.map(lambda *a: jnp.stack(a), *(one(t[k], tuple(x[k] for x in c)) for k in range(2)))
    # The tangent of the gradient along y is the Hessian's column.
    along_y = tuple(np.float32([[0] * 5, [1] * 5]))
    tangent = lambda t, c: jax.jvp(lambda c: one(t, c).gradient, (c,), (along_y,))[1]
    first = texels[0], tuple(c[0] for c in coords)
    batch, expected, column = computed((jax.vmap(one), texels, coords), (apart, texels, coords), (tangent, *first))
    assert_trees_close("float32", batch, expected)
    assert str(jax.make_jaxpr(jax.vmap(one))(texels, coords)).count("texture_read_derivatives[") == 1
    for k in range(2):
        assert_close("float32", column[k], expected.hessian[k][1][0], 16)


@pytest.mark.parametrize(
    ("make", "channels", "options"),
    [(jt.texture3d, 1, {"filter_mode": "linear"}), (jt.texture2d, 5, {"address_mode": "border"})],
)
def test_kernel(make, channels, options):
    ndim = 3 if make is jt.texture3d else 2
    texels = np.float32(rng.normal(size=(*(5, 6, 7)[:ndim], channels)))
    sampler = jt.Sampler(**{"filter_mode": "cubic", "normalized_coords": False} | options)
    coords = tuple(np.float32(rng.uniform(-1, 8, (ndim, 4, 2, 33))))
    call = lambda t, c: jt.sample_with_derivatives(make(t), c, sampler, order=2)
    (expected,) = computed((call, texels, coords))
    with kernels_on_cpu():
        (found,) = computed((call, texels, coords))
    assert_trees_close("float32", found, expected)


def test_what_is_zero():
    """The Hessian of a linear read, and the slope of a point read; a texture unit's slope is that of its values."""
    codes, plain = np.arange(8, dtype=np.uint8)[:, None], np.arange(8, dtype=np.float32)[:, None]
    fraction, point = jt.Sampler(read_mode="normalized_float"), jt.Sampler(filter_mode="point")
    unit = jt.Sampler(arithmetic="hardware", filter_mode="linear")
    read = lambda sampler, **how: lambda t: jt.sample_with_derivatives(jt.texture1d(t), (0.3,), sampler, **how)
    by_unit = lambda t: jt.sample(jt.texture1d(t), (0.3,), unit)
    of_codes, of_point, of_unit, value = computed(
        (read(fraction, order=2), codes), (read(point), plain), (read(unit), plain), (by_unit, plain)
    )
    assert_close("float32", of_codes.gradient[0], np.float32([8 / 255]), 1)
    assert not np.any(of_codes.hessian[0][0])
    assert of_point.hessian is None
    assert not np.any(of_point.gradient[0])
    np.testing.assert_array_equal(of_unit.value, value)
    np.testing.assert_array_equal(of_unit.gradient[0], [8.0])
