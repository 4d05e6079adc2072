"""The bits of NaN: reads return them, and texels that nobody writes keep them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.compiled.calls import NAN_CODES, nan_texels
from tests.support.tolerances import assert_exact, named

WRITES = {"write": jt.surface_write, "add": jt.surface_add, "min": jt.surface_min, "max": jt.surface_max}
SIZES = (8, 9)


def draw(dtype):
    return nan_texels(dtype, *SIZES, 2)


def bits(array):
    array = np.asarray(array)
    return array.view(f"uint{8 * array.dtype.itemsize}")


@pytest.mark.parametrize(("dtype", "mode"), [*zip(NAN_CODES, ("clamp", "zero", "trap"))])
def test_reads_return_the_bits_of_nan(dtype, mode):
    texels, (y, x) = draw(dtype), np.indices(SIZES)
    read = lambda t, x, y: jt.surface_read(jt.texture2d(t), (x, y), boundary_mode=mode)
    layers = lambda t, y: jt.surface_read(jt.texture1d_layered(t), (x[0],), layer=y, boundary_mode=mode)
    fetch = lambda t, x, y: jt.fetch(jt.texture2d(t), (x, y))
    centers, by_points = (x + 0.5, y + 0.5), jt.Sampler(filter_mode="point", normalized_coords=False)
    point = lambda t: jt.sample(jt.texture2d(t), centers, by_points)

    @jax.jit
    def every_way(t, x, y):
        return read(t, x, y), fetch(t, x, y), jax.vmap(read, (None, 0, 0))(t, x, y), point(t), layers(t, y)

    for found in every_way(texels, x, y):
        assert_exact(bits(found), bits(texels))


# Ways in which a write finds the last of several samples, each with a mask of the texels that it touches.
PLACES = {
    "few": (np.array([2, 2]), np.array([1, 3])),
    "many": (np.arange(60) % 9, np.zeros(60, int)),
    "grid": (np.arange(9)[None] % 5, np.arange(8)[:, None] % 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", NAN_CODES)
def test_texels_that_nobody_writes_keep_the_bits_of_nan(dtype):
    texels, value = draw(dtype), np.ones((), jnp.dtype(dtype))

    @jax.jit
    def run(t, v):
        found = {}
        for (way, places), (name, write) in itertools.product(PLACES.items(), WRITES.items()):
            one = lambda t, v, write=write, places=places: (
                write(jt.texture2d(t), v, places, boundary_mode="clamp").texels
            )
            found[way, name] = one(t, v), jax.vmap(one, (0, None))(t[None], v)[0]
        return found

    for (way, name), both in run(texels, value).items():
        touched = np.zeros(SIZES, bool)
        touched[np.broadcast_arrays(*PLACES[way][::-1])] = True
        for found in both:
            with named(way, name):
                assert_exact(bits(found)[~touched], bits(texels)[~touched])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_written_values_keep_the_bits_of_nan(dtype):
    texels, (y, x) = draw(dtype), np.indices(SIZES)
    for places in ((x, y), (x[:1], y[:, :1])):
        written = jt.surface_write(jt.texture2d(np.zeros_like(texels)), texels, places).texels
        assert_exact(bits(written), bits(texels))


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_gradients_beside_nan(dtype, name):
    """Cotangents flow as in float32 textures, to texels, values and through reads; of a sum also at NaN."""
    write = lambda t, v: WRITES[name](jt.texture1d(t), v, (np.array([0, 1, 1, 4]),)).texels
    read = lambda t: jt.surface_read(jt.texture1d(t), (np.array([4, 0, 0]),))

    @jax.jit
    def run(texels, values, cotangents, tangents):
        out, pull = jax.vjp(write, texels, values)
        pushed = jax.jvp(write, (texels, values), tangents)[1]
        return out, pull(cotangents[0]), pushed, jax.vjp(read, texels)[1](cotangents[1])

    rows = {}
    for stored in (dtype, "float32"):
        column = lambda *numbers, stored=stored: np.array(numbers).astype(jnp.dtype(stored))[:, None]
        texels, values = column(1.5, np.nan, 0.25, np.nan, 3.0), column(2.0, 0.5, 1.0, -1.0)
        cotangents, tangents = (column(1, 2, 4, 8, 16), column(1, 1, 1)), (np.ones_like(texels), column(2, 2, 2, 2))
        results = run(texels, values, cotangents, tangents)
        assert all(leaf.dtype == stored for leaf in jax.tree.leaves(results))
        rows[stored] = [np.asarray(leaf, np.float32) for leaf in jax.tree.leaves(results)]
    for half, single in zip(rows[dtype], rows["float32"], strict=True):
        np.testing.assert_array_equal(half, single)


def test_sums_into_halves_are_taken_in_float32():
    read = lambda t: jt.surface_read(jt.texture1d(t), (np.zeros(300, int),))

    @jax.jit
    def run(texels, ones):
        gradient = jax.grad(lambda t: read(t).astype(jnp.float32).sum())(texels)
        return jax.linear_transpose(read, texels)(ones)[0], gradient

    for dtype in ("float16", "bfloat16"):
        for found in run(np.zeros((2, 1), jnp.dtype(dtype)), np.ones((300, 1), jnp.dtype(dtype))):
            assert_exact(found, np.float32([[300], [0]]), dtype)
