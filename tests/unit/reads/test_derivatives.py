"""`sample_with_derivatives`: values, gradients and Hessians, against profiles of the filters and finite differences."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.support.host_kernels import kernels_on_cpu
from tests.support.tolerances import assert_close, assert_trees_close

rng = np.random.default_rng(5)
MAKE = (jt.texture1d, jt.texture2d, jt.texture3d)
SHAPE, SAMPLES = (6, 7, 8), 9


def cubic(x):
    """The polynomial pieces of Keys' filter with a = -1/2, by the distance, and their derivatives."""
    near, far = np.poly1d([1.5, -2.5, 0, 1]), np.poly1d([-0.5, 2.5, -4, 2])
    return [
        np.where(np.abs(x) < 1, near.deriv(n)(np.abs(x)), far.deriv(n)(np.abs(x))) * np.sign(x) ** n for n in (0, 1, 2)
    ]


def linear(x):
    return [1 - np.abs(x), -np.sign(x), np.zeros_like(x)]


def bspline(x):
    near, far = np.poly1d([0.5, -1, 0, 2 / 3]), np.poly1d([-1 / 6, 1, -2, 4 / 3])
    return [
        np.where(np.abs(x) < 1, near.deriv(n)(np.abs(x)), far.deriv(n)(np.abs(x))) * np.sign(x) ** n for n in (0, 1, 2)
    ]


PROFILES = {"linear": (linear, 1), "cubic": (cubic, 2), "bspline": (bspline, 2)}


def by_profile(texels, coords, orders, profile, reach, mode):
    """A derivative of a read in texels: the sum of texels times derivatives of the profile at every tap."""
    out = np.zeros((SAMPLES, texels.shape[-1]))
    for n in range(SAMPLES):
        axes = []
        for coord, size, order in zip(coords, texels.shape[-2::-1], orders):
            taps = np.floor(coord[n] - 0.5).astype(int) + np.arange(1 - reach, reach + 1)
            index = np.clip(taps, 0, size - 1) if mode == "clamp" else taps % size
            axes.append((index, profile(coord[n] - 0.5 - taps)[order]))
        for chosen in itertools.product(*(zip(*axis) for axis in axes)):
            out[n] += np.prod([w for _, w in chosen]) * texels[tuple(i for i, _ in chosen)[::-1]]
    return out


def flat(found):
    """The derivatives by the coordinates along which they are: (), (0,), and (0, 1) for a mixed one."""
    by = {(): found.value} | {(i,): a for i, a in enumerate(found.gradient)}
    return by | {(i, j): a for i, row in enumerate(found.hessian or ()) for j, a in enumerate(row)}


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("filter_mode", PROFILES)
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_of_profiles(ndim, filter_mode, mode, normalized):
    texels = rng.normal(size=(*SHAPE[:ndim], 2))
    coords = [rng.uniform(-1, n + 1, SAMPLES) for n in texels.shape[-2::-1]]
    sizes = texels.shape[-2::-1] if normalized else [1] * ndim
    sampler = jt.Sampler(filter_mode=filter_mode, address_mode=mode, normalized_coords=normalized)
    with jax.enable_x64(True):
        given = tuple(jnp.asarray(c / n) for c, n in zip(coords, sizes))
        found = jt.sample_with_derivatives(MAKE[ndim - 1](jnp.asarray(texels)), given, sampler, order=2)
        for along, array in flat(found).items():
            orders = [along.count(k) for k in range(ndim)]
            scale = np.prod([sizes[k] for k in along])
            expected = scale * by_profile(texels, coords, orders, *PROFILES[filter_mode], mode)
            assert_close("float64", array, expected, 64 * scale)


OTHERS = {
    "border": (jt.texture2d, (6, 7, 2), {"address_mode": "border"}, {}, {"border_color": np.float64([0.5, -2])}),
    "levels": (jt.texture2d, (8, 8, 2), {"mipmap_filter_mode": "linear"}, {"lod": np.float64(0.7)}, {}),
    "sphere": (jt.texture2d, (6, 8, 1), {"address_mode": "sphere"}, {}, {}),
    "layers": (jt.texture2d_layered, (3, 6, 7, 2), {"address_mode": "mirror"}, {"layer": 1}, {}),
    "cube": (jt.cubemap, (6, 6, 6, 2), {"filter_mode": "linear"}, {}, {}),
    "limit": (jt.texture2d, (6, 7, 2), {"limit": "taps"}, {}, {}),
    "footprint": (
        jt.texture2d,
        (8, 8, 1),
        {"max_anisotropy": 3, "mipmap_filter_mode": "linear"},
        {"ddx": (np.float64(0.3), np.float64(0.1)), "ddy": (np.float64(0.02), np.float64(0.1))},
        {},
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_of_finite_differences(name):
    make, shape, options, arguments, of_texture = OTHERS[name]
    with jax.enable_x64(True):
        texture = make(jnp.asarray(rng.normal(size=shape)), **of_texture)
        texture = jt.build_mipmaps(texture) if "mipmap_filter_mode" in options else texture
        sampler = jt.Sampler(**{"filter_mode": "bspline"} | options)
        coords = [rng.uniform(0.1, 1.1, SAMPLES) for _ in range(3 if name == "cube" else 2)]
        read = jax.jit(functools.partial(jt.sample, texture, sampler=sampler, **arguments))
        found = flat(jt.sample_with_derivatives(texture, tuple(coords), sampler, order=2, **arguments))
        assert_close("float64", found[()], read(tuple(coords)), 8)

        def moved(function, k, step):
            return lambda c: (function(shifted(c, k, step)) - function(shifted(c, k, -step))) / (2 * step)

        def shifted(coords, k, step):
            return tuple(c + step * (n == k) for n, c in enumerate(coords))

        for along, array in found.items():
            step = 1e-6 if len(along) == 1 else 1e-5
            function = read
            for k in along:
                function = moved(function, k, step)
            assert_close("central difference", array, function(tuple(coords)), 10 ** (2 * len(along)))


def test_equals_derivatives_of_sample():
    texture = jt.texture2d(jnp.asarray(rng.normal(size=(6, 7, 2)), jnp.float32), border_color=jnp.float32(0.3))
    sampler = jt.Sampler(filter_mode="cubic", address_mode="border")
    coords = tuple(jnp.asarray(rng.uniform(-0.1, 1.1, (3, 4)), jnp.float32) for _ in range(2))
    sample = lambda c: jt.sample(texture, c, sampler)
    loss = lambda function: jax.jit(
        jax.value_and_grad(lambda c, t: sum(map(jnp.sum, jax.tree.leaves(function(c, t)))), (0, 1))
    )
    parts = lambda c, t: jt.sample_with_derivatives(t, c, sampler, order=2)

    def plain(c, t):
        one = lambda c: jt.sample(t, c, sampler)
        every = jax.vmap(jax.vmap(lambda c: (one(c), jax.jacfwd(one)(c), jax.hessian(one)(c))))
        return every(c)

    np.testing.assert_array_equal(parts(coords, texture).value, sample(coords))
    (a, got), (b, expected) = loss(parts)(coords, texture), loss(plain)(coords, texture)
    assert_close("sum", a, b, 1e5)
    assert_trees_close("derivatives", got, expected)


def test_batches_and_tangents():
    texels = jnp.asarray(rng.normal(size=(2, 6, 7, 1)), jnp.float32)
    coords = tuple(jnp.asarray(rng.uniform(0, 6, (2, 5)), jnp.float32) for _ in range(2))
    sampler = jt.Sampler(filter_mode="cubic", normalized_coords=False)
    one = lambda t, c: jt.sample_with_derivatives(jt.texture2d(t), c, sampler, order=2)
    found = jax.vmap(one)(texels, coords)
    apart = jax.tree.map(lambda *a: jnp.stack(a), *(one(texels[k], tuple(c[k] for c in coords)) for k in range(2)))
    assert_trees_close("float32", found, apart)
    assert str(jax.make_jaxpr(jax.vmap(one))(texels, coords)).count("texture_read_derivatives[") == 1
    # The tangent of the gradient along y is the Hessian's column.
    ones, zeros = jnp.ones(5, jnp.float32), jnp.zeros(5, jnp.float32)
    c = tuple(a[0] for a in coords)
    _, tangent = jax.jvp(lambda c: one(texels[0], c).gradient, (c,), ((zeros, ones),))
    for k in range(2):
        assert_close("float32", tangent[k], one(texels[0], c).hessian[k][1], 16)


@pytest.mark.parametrize(
    ("channels", "options"), [(1, {}), (5, {"address_mode": "border"}), (3, {"filter_mode": "linear"})]
)
def test_kernel(channels, options):
    texture = jt.texture3d(jnp.asarray(rng.normal(size=(5, 6, 7, channels)), jnp.float32))
    sampler = jt.Sampler(**{"filter_mode": "cubic", "normalized_coords": False} | options)
    coords = tuple(jnp.asarray(rng.uniform(-1, 8, (4, 2, 33)), jnp.float32) for _ in range(3))
    expected = jt.sample_with_derivatives(texture, coords, sampler, order=2)
    with kernels_on_cpu():
        found = jax.jit(lambda t, c: jt.sample_with_derivatives(t, c, sampler, order=2))(texture, coords)
    assert_trees_close("float32", found, expected)


def test_what_is_refused_and_what_is_zero():
    codes = jt.texture1d(np.arange(8, dtype=np.uint8)[:, None])
    with pytest.raises(ValueError, match="integers have no derivatives"):
        jt.sample_with_derivatives(codes, (0.3,), jt.Sampler(filter_mode="point"))
    with pytest.raises(ValueError, match="order is 3"):
        jt.sample_with_derivatives(codes, (0.3,), jt.Sampler(read_mode="normalized_float"), order=3)
    found = jt.sample_with_derivatives(codes, (0.3,), jt.Sampler(read_mode="normalized_float"), order=2)
    assert_close("float32", found.gradient[0], np.float32([8 / 255]), 1)
    assert not np.any(found.hessian[0][0])
    plain = jt.texture1d(jnp.arange(8.0)[:, None])
    found = jt.sample_with_derivatives(plain, (0.3,), jt.Sampler(filter_mode="point"))
    assert found.hessian is None
    assert not np.any(found.gradient[0])
    unit = jt.Sampler(arithmetic="hardware", filter_mode="linear")
    found = jt.sample_with_derivatives(plain, (0.3,), unit)
    np.testing.assert_array_equal(found.value, jt.sample(plain, (0.3,), unit))
    np.testing.assert_array_equal(found.gradient[0], [8.0])
