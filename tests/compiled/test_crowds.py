"""Kernels of the adjoint where samples crowd, or where each of many small textures has a small image of them."""

import functools

import jax
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.cuda import adjoint_kernel
from jaxtex._engine.cuda.scatter import crowds
from tests.compiled.field_calls import windows
from tests.support.host_kernels import kernels_on_cpu
from tests.support.tolerances import assert_trees_close


def drawn(*shape, scale=1.0):
    return np.float32(scale * np.random.default_rng(sum(shape)).random(shape))


def by_kernels(function, *args):
    """What a function returns as XLA compiles it, and by kernels."""
    plain = jax.jit(function)(*args)
    with kernels_on_cpu():
        return plain, jax.jit(functools.partial(function))(*args)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_window_of_each_image(channels, monkeypatch):
    """One tile for each image, whose warp sets the gradient of the image to zero."""
    monkeypatch.setattr(crowds, "LEAST_OWN", 3)
    images, places = drawn(4, 11, 7, channels), (drawn(4, 1, 1, scale=7), drawn(4, 1, 2, scale=11)[..., :1])
    cotangent = drawn(4, 9, 9, channels)

    def gradients(*args):
        return jax.vjp(windows, *args)[1](cotangent)

    plain, found = by_kernels(gradients, images, *places)
    assert_trees_close("sum", found, plain, 81 * 4)


@pytest.mark.parametrize(
    ("address_mode", "shape"), [("border", (6, 7, 4, 2)), ("clamp", (6, 7, 4, 2)), ("clamp", (5, 7, 3, 1))]
)
def test_a_window_of_each_volume(address_mode, shape, monkeypatch):
    """A warp writes a volume of its own once, with its zeros; where taps outside fall on texels, it adds to zeros.

    It sets four numbers to zero at once where a volume has a multiple of them.
    """
    own = []
    monkeypatch.setattr(crowds, "LEAST_OWN", 3)
    monkeypatch.setattr(adjoint_kernel, "has_own_tile", lambda *args: own.append(crowds.has_own_tile(*args)) or own[-1])
    sampler = jt.Sampler(address_mode=address_mode, normalized_coords=False)
    near = np.ogrid[-4:1, -4:1, -4:1]

    def read(volume, point):
        return jt.sample(jt.texture3d(volume), tuple(p + np.float32(n) for p, n in zip(point, near)), sampler)

    def gradients(*args):
        return jax.vjp(jax.vmap(read), *args)[1](cotangent)

    volumes, points, cotangent = drawn(5, *shape), drawn(5, 3, scale=7), drawn(5, 5, 5, 5, shape[-1])
    plain, found = by_kernels(gradients, volumes, points)
    assert own
    assert all(own)
    assert_trees_close("sum", found, plain, 125 * 8)
