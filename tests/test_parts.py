"""Kernels load the cotangents of arrays that a program joins where they lie, in the cotangent of what is joined."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from host_kernels import kernels_on_cpu
from tolerances import assert_trees_close

import jaxtex as jt
from jaxtex._engine.lowering import choice, parts
from jaxtex._reads import sample_grid
from jaxtex.warp.grids import affine
from jaxtex.warp.images import grid_operands

ZEROS = jt.Sampler(address_mode="border", normalized_coords=False)


def drawn(*shape, scale=1.0):
    return jnp.asarray(scale * np.random.default_rng(sum(shape)).random(shape), np.float32)


def joined(axis, sampler, images, x, y):
    """Reads of several images at the same points, joined along an axis."""
    return jnp.concatenate([jt.sample(jt.texture2d(image), (x, y), sampler) for image in images], axis)


def gradients_by_kernels(function, args, monkeypatch, wrt=1):
    """The gradients by XLA and by kernels, which slices the kernels load, and the inputs of the kernels' program."""
    cotangent = drawn(*jax.eval_shape(function, *args).shape)
    pulled = lambda cotangent, *args: jax.vjp(lambda *some: function(*some, *args[wrt:]), *args[:wrt])[1](cotangent)
    plain, loaded = jax.jit(pulled)(cotangent, *args), []

    def part(whole, shape, found):
        loaded.append(tuple(found))
        return parts.Part(whole, shape, found)

    monkeypatch.setattr(choice, "Part", part)
    with kernels_on_cpu():
        return plain, jax.jit(functools.partial(pulled))(cotangent, *args), sorted(loaded)


@pytest.mark.parametrize(
    ("channels", "axis", "expected"),
    [
        ((4, 8), -1, [(12, 0, 4), (12, 4, 8)]),
        ((3, 2), -1, [(5, 0, 3)]),  # rows of two channels would not be aligned
        ((2, 2), 0, [(2 * 9 * 11 * 2, 0, 198 * 1), (2 * 9 * 11 * 2, 198, 198)]),
    ],
)
def test_joined_reads(channels, axis, expected, monkeypatch):
    images = [drawn(7, 8, n) for n in channels]
    places = drawn(9, 11, scale=8), drawn(9, 12, scale=7)[:, 1:]
    function = functools.partial(joined, axis, ZEROS)
    plain, found, loaded = gradients_by_kernels(function, (images, *places), monkeypatch, wrt=3)
    assert_trees_close("sum", found, plain, 99 * 4)
    assert loaded == expected


def test_windows_of_a_pyramid(monkeypatch):
    """The reads of a level lie side by side for each point."""
    pyramid = [drawn(1, 3, 4, *size) for size in ((8, 9), (4, 4))]
    args = pyramid, drawn(1, 3, 4, 2, scale=8)
    plain, found, loaded = gradients_by_kernels(
        lambda pyramid, points: jt.nn.correlation_lookup(pyramid, points, radius=1), args, monkeypatch
    )
    assert_trees_close("sum", found, plain, 9 * 4)
    assert loaded == [(18, 0, 9), (18, 9, 9)]


def test_sums_that_look_at_values_several_times(monkeypatch):
    """Reproducible sums, and texels that look for their samples, get a copy."""
    matrix = (0.8, -0.6, 9.0, 0.6, 0.8, -9.0)
    operands = grid_operands([jnp.full((1, 1), number, jnp.float32) for number in matrix], (40, 48), 0)
    read = functools.partial(sample_grid, function=affine, operands=operands, sampler=ZEROS, affine_axes=2)

    def turned(images):
        return jnp.concatenate([read(jt.texture2d(image)) for image in images], -1)

    plain, found, loaded = gradients_by_kernels(turned, [drawn(2, 40, 48, 1)], monkeypatch)
    assert_trees_close("sum", found, plain, 16)
    assert loaded == [(2, 0, 1), (2, 1, 1)]
    places = drawn(9, 11, scale=8), drawn(9, 12, scale=7)[:, 1:]
    sampler = jt.Sampler(address_mode="border", normalized_coords=False, deterministic=True)
    args = [drawn(7, 8, 4)] * 2, *places
    plain, found, loaded = gradients_by_kernels(functools.partial(joined, -1, sampler), args, monkeypatch)
    assert_trees_close("sum", found, plain, 99 * 4)
    assert len(loaded) == 2


def test_what_is_no_part(monkeypatch):
    """Every other element, or a slice of two axes, is copied."""
    image, (x, y) = drawn(7, 8, 2), (drawn(6, scale=8), drawn(5, scale=7)[:, None])

    def some(image, x, y):
        read = jt.sample(jt.texture2d(image), (x, y), ZEROS)
        outside = jnp.zeros((10, 6, 2)).at[::2].set(read), jnp.pad(read, ((1, 1), (2, 2), (0, 0)))
        return jnp.concatenate([a.ravel() for a in outside])

    plain, found, loaded = gradients_by_kernels(some, (image, x, y), monkeypatch)
    assert_trees_close("sum", found, plain, 30 * 8)
    assert loaded == []
