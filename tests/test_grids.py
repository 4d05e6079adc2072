"""Coordinates that are computed where they are used: reads and derivatives are those of coordinates that are given."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerances import assert_close, assert_exact

import jaxtex as jt
from jaxtex._reads import sample_grid
from jaxtex.warp.grids import affine, matrix_parameters, pixel_centers, projective

SHAPE = (9, 12)
HOMOGRAPHY = jnp.array([[0.5, 0.1, 0.7], [-0.1, 0.6, 1.2], [0.004, 0.002, 1.0]])
GRIDS = {"affine": (affine, HOMOGRAPHY[:2]), "projective": (projective, HOMOGRAPHY)}
PIXELS = jt.Sampler(address_mode="border", normalized_coords=False)


def image(*shape):
    return jnp.asarray(np.random.default_rng(1).normal(size=shape), jnp.float32)


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
        assert_close(row, a, b, 1 + np.abs(b).max())


def test_values_and_derivatives():
    """Forward and reverse mode, and the reverse of the reverse, in texels and matrix together."""
    (ours, theirs), matrix = both("projective", jt.Sampler(normalized_coords=False))
    texels, moves = image(7, 8, 2), (image(7, 8, 2)[::-1], 0.01 * matrix[::-1])

    def everything(read):
        def loss(texels, matrix):
            return (read(texels, matrix) ** 2).sum()

        slopes = jax.grad(loss, (0, 1))
        bent = jax.grad(lambda *args: sum((s * m).sum() for s, m in zip(slopes(*args), moves, strict=True)), (0, 1))
        return {
            "value": read(texels, matrix),
            "forward": jax.jvp(read, (texels, matrix), moves),
            "reverse": slopes(texels, matrix),
            "reverse of reverse": bent(texels, matrix),
        }

    assert_alike(jax.jit(lambda: everything(ours))(), jax.jit(lambda: everything(theirs))(), "peer gradient")


@pytest.mark.parametrize("shared", ["texture", "matrix", "nothing"])
def test_batches(shared):
    (ours, _), matrix = both("projective", PIXELS)
    texels = image(3, 7, 8, 2) if shared != "texture" else image(7, 8, 2)
    matrices = matrix[None] + 0.01 * image(3, 3, 3) if shared != "matrix" else matrix
    axes = (None if shared == "texture" else 0, None if shared == "matrix" else 0)
    loss = lambda *args: (ours(*args) ** 2).sum()
    loop = [
        (texels if shared == "texture" else texels[k], matrices if shared == "matrix" else matrices[k])
        for k in range(3)
    ]
    assert_alike(jax.vmap(ours, axes)(texels, matrices), jnp.stack([ours(*args) for args in loop]))
    slopes = jax.vmap(jax.grad(loss, (0, 1)), axes)(texels, matrices)
    expected = [jnp.stack(a) for a in zip(*(jax.grad(loss, (0, 1))(*args) for args in loop), strict=True)]
    assert_alike(slopes, tuple(expected), "peer gradient")
    mean = lambda *args: jax.vmap(loss, axes)(*args).sum()
    summed = tuple(jnp.sum(a, 0) if axis is None else a for a, axis in zip(expected, axes, strict=True))
    assert_alike(jax.grad(mean, (0, 1))(texels, matrices), summed, "peer gradient")


def test_a_grid_is_not_kept():
    """Between the passes live the texels, lines of pixel centers, and numbers: nothing of the output's size."""
    (ours, _), matrix = both("projective", PIXELS)
    kept = jax.tree.leaves(jax.vjp(ours, image(7, 8, 2), matrix)[1])
    assert max(leaf.size for leaf in kept if leaf.shape != (7, 8, 2)) <= max(SHAPE)


def test_hardware_arithmetic_and_its_derivative():
    (ours, theirs), matrix = both("affine", jt.Sampler(normalized_coords=False, arithmetic="hardware"))
    texels = image(7, 8, 2)
    assert_exact(ours(texels, matrix), theirs(texels, matrix))
    slope = lambda read: jax.grad(lambda m: read(texels, m).sum())(matrix)
    assert_alike(slope(ours), slope(theirs), "peer gradient")


def test_integers_have_no_gradient_and_keep_their_dtype():
    (ours, theirs), matrix = both("affine", jt.Sampler(filter_mode="point", normalized_coords=False))
    texels = jnp.arange(56, dtype=jnp.uint8).reshape(7, 8, 1)
    assert_exact(ours(texels, matrix), theirs(texels, matrix))
    assert not jax.jvp(lambda m: ours(texels, m).astype(jnp.float32), (matrix,), (matrix,))[1].any()


def test_a_border_color_in_a_grid():
    (ours, theirs), matrix = both("affine", PIXELS)
    del ours, theirs
    texture = jt.texture2d(image(7, 8, 2), border_color=jnp.array([3.0, -1.0]))
    operands = (*pixel_centers(SHAPE), *matrix_parameters(matrix * 3, 2))
    expected = jt.sample(texture, affine(*operands), PIXELS)
    assert_alike(sample_grid(texture, affine, operands, PIXELS), expected)
    assert (expected == jnp.array([[[3.0, -1.0]]])).all(-1).any()


def test_coordinates_that_leave_an_axis_out():
    texture = jt.texture2d(image(7, 8, 2))
    along_x = sample_grid(texture, columns, pixel_centers(SHAPE), PIXELS)
    assert along_x.shape == (*SHAPE, 2)
    assert (along_x == along_x[:1]).all()


def columns(x, y):
    del y
    return x, x
