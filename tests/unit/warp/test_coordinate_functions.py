"""Coordinates that are computed where they are used: reads and derivatives are those of coordinates that are given."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._reads.calls import sample_grid
from jaxtex.warp.coordinate_functions import affine, matrix_parameters, pixel_centers, projective
from tests.support.tolerances import assert_close, assert_exact

SHAPE = (9, 12)
HOMOGRAPHY = np.float32([[0.5, 0.1, 0.7], [-0.1, 0.6, 1.2], [0.004, 0.002, 1.0]])
GRIDS = {"affine": (affine, HOMOGRAPHY[:2]), "projective": (projective, HOMOGRAPHY)}
PIXELS = jt.Sampler(address_mode="border", normalized_coords=False)


def image(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def by_grid(function, sampler, texels, matrix):
    return sample_grid(jt.texture2d(texels), function, (*pixel_centers(SHAPE), *matrix_parameters(matrix, 2)), sampler)


def by_coordinates(function, sampler, texels, matrix):
    return jt.sample(jt.texture2d(texels), function(*pixel_centers(SHAPE), *matrix_parameters(matrix, 2)), sampler)


def both(grid, sampler):
    function, matrix = GRIDS[grid]
    return [functools.partial(f, function, sampler) for f in (by_grid, by_coordinates)], matrix


def assert_alike(actual, expected, row="peer"):
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        assert_close(row, a, b, 1 + np.abs(np.asarray(b)).max())


@pytest.mark.slow
def test_values_and_derivatives():
    """Forward and reverse mode, and the reverse of the reverse, in texels and matrix together."""
    (ours, theirs), matrix = both("projective", jt.Sampler(normalized_coords=False))
    args = image(7, 8, 2), matrix
    moves = args[0][::-1], np.float32(0.01) * matrix[::-1]

    def everything(read):
        def slope(*args):
            """Along the moves, and the gradient that tells it."""
            gradient = jax.grad(lambda *args: (read(*args) ** 2).sum(), (0, 1))(*args)
            return sum((g * m).sum() for g, m in zip(gradient, moves, strict=True)), gradient

        bent, reverse = jax.grad(slope, (0, 1), has_aux=True)(*args)
        return {"value and forward": jax.jvp(read, args, moves), "reverse": reverse, "reverse of reverse": bent}

    found, expected = jax.jit(lambda: [everything(ours), everything(theirs)])()
    assert_alike(found, expected, "peer gradient")


read_of_one = functools.partial(by_grid, projective, PIXELS)


def loss_of_one(texels, matrix):
    return (read_of_one(texels, matrix) ** 2).sum()


slopes_of_one = jax.grad(loss_of_one, (0, 1))
value_and_slopes = jax.jit(lambda *args: (read_of_one(*args), *slopes_of_one(*args)))


@pytest.mark.parametrize("shared", ["texture", "matrix", "nothing"])
def test_batches(shared):
    """Of values, of gradients, and the gradient of a batch, in which what is shared has a sum."""
    axes = (None if shared == "texture" else 0, None if shared == "matrix" else 0)
    several = image(3, 7, 8, 2), HOMOGRAPHY + np.float32(0.01) * image(3, 3, 3)
    args = [a[0] if axis is None else a for a, axis in zip(several, axes, strict=True)]

    @jax.jit
    def run(*args):
        total = lambda *args: jax.vmap(loss_of_one, axes)(*args).sum()
        return jax.vmap(read_of_one, axes)(*args), jax.vmap(slopes_of_one, axes)(*args), jax.grad(total, (0, 1))(*args)

    loop = [value_and_slopes(*(a if axis is None else a[k] for a, axis in zip(args, axes))) for k in range(3)]
    values, *slopes = (np.stack(parts) for parts in zip(*loop, strict=True))
    summed = [a.sum(0) if axis is None else a for a, axis in zip(slopes, axes, strict=True)]
    found = run(*args)
    assert_alike(found[0], values)
    assert_alike(found[1:], (slopes, summed), "peer gradient")


def test_a_grid_is_not_kept():
    """Between the passes live the texels, lines of pixel centers, and numbers: nothing of the output's size."""
    kept = jax.tree.leaves(jax.vjp(read_of_one, image(7, 8, 2), HOMOGRAPHY)[1])
    assert max(leaf.size for leaf in kept if leaf.shape != (7, 8, 2)) <= max(SHAPE)


def test_hardware_arithmetic_and_its_derivative():
    (ours, theirs), matrix = both("affine", jt.Sampler(normalized_coords=False, arithmetic="hardware"))
    texels = image(7, 8, 2)
    assert_exact(ours(texels, matrix), theirs(texels, matrix))
    slope = lambda read: jax.jit(jax.grad(lambda m: read(texels, m).sum()))(matrix)
    assert_alike(slope(ours), slope(theirs), "peer gradient")


def test_integers_have_no_gradient_and_keep_their_dtype():
    (ours, theirs), matrix = both("affine", jt.Sampler(filter_mode="point", normalized_coords=False))
    texels = np.arange(56, dtype=np.uint8).reshape(7, 8, 1)
    assert_exact(ours(texels, matrix), theirs(texels, matrix))
    tangent = jax.jit(lambda m: jax.jvp(lambda m: ours(texels, m).astype(jnp.float32), (m,), (m,))[1])
    assert not np.any(tangent(matrix))


def test_a_border_color_in_a_grid():
    color = np.float32([3, -1])
    texture = jt.texture2d(image(7, 8, 2), border_color=color)

    @jax.jit
    def run(matrix):
        operands = (*pixel_centers(SHAPE), *matrix_parameters(matrix, 2))
        return sample_grid(texture, affine, operands, PIXELS), jt.sample(texture, affine(*operands), PIXELS)

    found, expected = run(HOMOGRAPHY[:2] * 3)
    assert_alike(found, expected)
    assert (np.asarray(expected) == color).all(-1).any()


def test_coordinates_that_leave_an_axis_out():
    texture = jt.texture2d(image(7, 8, 2))
    along_x = np.asarray(sample_grid(texture, columns, pixel_centers(SHAPE), PIXELS))
    assert along_x.shape == (*SHAPE, 2)
    assert (along_x == along_x[:1]).all()


def columns(x, y):
    del y
    return x, x
