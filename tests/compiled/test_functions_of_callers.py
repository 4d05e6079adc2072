"""Functions of coordinates that a caller wrote, in kernels compiled as C++ and outside of them."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._checks import hints
from jaxtex._engine.cuda.build.source import scalars
from jaxtex._engine.cuda.trace.emitter import EXPRESSIONS
from tests.support.host_kernels import kernels_on_cpu, noted_kernels
from tests.support.tolerances import assert_close

SHAPE, PIXELS = (6, 7), jt.Sampler(address_mode="border", normalized_coords=False)
IMAGE = np.random.default_rng(1).normal(size=(8, 9, 3)).astype(np.float32)
TILT = np.float32([[0.9, 0.1, 0.3], [-0.1, 0.8, 0.7], [0.01, 0.02, 1.0]])
BEND = np.float32(0.3)
CURVE = np.float32([0, 0.5, 0.6, 0.9, 1.0])


def bent(x, y, bend):
    """A homography, of which a loop refines one coordinate, and a curve in a table moves the other."""
    x, y, divisor = jnp.tensordot(TILT, jnp.stack(jnp.broadcast_arrays(x, y, jnp.ones_like(x))), 1)
    x, y = x / divisor, y / divisor
    root = jax.lax.fori_loop(0, 6, lambda k, r: r - bend * (r + bend * r**3 - y) / (k + 2).astype(r.dtype), y)
    many = jax.lax.fori_loop(0, 40, lambda _, a: 0.5 * (a + jnp.arcsinh(bend * x)), x)
    place = jnp.clip(jnp.floor(x), 0, 4).astype(jnp.int32)
    return x + many, jnp.where(x > 1, root, y) + jnp.asarray(CURVE)[place]


def without_a_kernel(x, y, bend):
    return x + jax.lax.digamma(1 + bend * y), y


def read(function, image, bend):
    return jt.warp.resample(image, function, SHAPE, parameters=(bend,))


def value_and_slopes(function, image, bend):
    """The read, and the slopes of the sum of its squares."""
    loss = lambda image, bend: (read(function, image, bend) ** 2).sum()
    return read(function, image, bend), jax.grad(loss, (0, 1))(image, bend)


def assert_as_arrays(found, expected):
    (values, slopes), (other_values, other_slopes) = found, expected
    assert_close("peer", values, other_values, 1 + np.abs(other_values).max())
    for a, b in zip(slopes, other_slopes, strict=True):
        assert_close("peer gradient", a, b, 1 + np.abs(b).max())


def test_a_function_is_read_and_differentiated_in_kernels():
    """As at points that are stored: its loops, its product with a matrix, its table and its functions of floats."""
    stored = lambda image, bend: jt.warp.resample(image, lambda x, y: bent(x, y, bend), SHAPE)
    loss = lambda image, bend: (stored(image, bend) ** 2).sum()
    expected = jax.jit(lambda *args: (stored(*args), jax.grad(loss, (0, 1))(*args)))(IMAGE, BEND)
    with noted_kernels() as kernels:
        found = jax.jit(lambda *args: value_and_slopes(bent, *args))(IMAGE, BEND)
    assert_as_arrays(found, expected)
    sources = {kernel.name: kernel.source for kernel in kernels}
    assert sources.keys() == {"texture_read", "texture_pullback"}
    for source in sources.values():
        own = source.replace(scalars(), "")
        assert "asinh(" in own
        assert own.count("for (int v") >= 1
    assert "element_of(table_0, minimum(maximum(" in sources["texture_read"]


@pytest.mark.parametrize("debugging", [True, False])
def test_a_function_without_a_kernel_runs_in_arrays(debugging, monkeypatch):
    """A hint names the primitive, for those who debug."""
    monkeypatch.setenv(hints.VARIABLE, str(int(debugging)))
    expected = jax.jit(functools.partial(value_and_slopes, without_a_kernel))(IMAGE, BEND)
    with noted_kernels() as kernels, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = jax.jit(lambda *args: value_and_slopes(without_a_kernel, *args))(IMAGE, BEND)
    assert_as_arrays(found, expected)
    assert not kernels
    words = [str(warning.message) for warning in caught]
    assert bool(words) == debugging
    assert all("digamma has no rule" in word and "a function of coordinates" in word for word in words)


def test_a_function_of_the_library_without_a_kernel_is_a_fault(monkeypatch):
    """An error in tests; users are asked to report it, and get their result."""
    monkeypatch.delitem(EXPRESSIONS, "floor")
    coords = tuple(np.random.default_rng(2).uniform(0, 8, (2, 5)).astype(np.float32))
    call = lambda image: jt.sample(jt.texture2d(image), coords, PIXELS)
    with kernels_on_cpu(), pytest.raises(UserWarning, match=r"floor has no rule\. .*please report"):
        jax.jit(lambda image: call(image)).lower(IMAGE)
    with noted_kernels() as kernels, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = jax.jit(lambda image: call(image))(IMAGE)
    assert not kernels
    assert len(caught) == 1
    assert_close("reordered", found, jax.jit(call)(IMAGE), np.abs(IMAGE).max())
