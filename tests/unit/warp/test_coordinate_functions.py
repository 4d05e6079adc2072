"""Coordinates that are computed where they are used: reads and derivatives are those of coordinates that are given."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._reads.calls import sample_grid
from jaxtex.warp.coordinate_functions import affine, matrix_parameters, pixel_centers, projective
from tests.support.tolerances import assert_close, assert_exact, named

SHAPE = (9, 12)
HOMOGRAPHY = np.float32([[0.5, 0.1, 0.7], [-0.1, 0.6, 1.2], [0.004, 0.002, 1.0]])
PIXELS = jt.Sampler(address_mode="border", normalized_coords=False)


def image(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def by_grid(function, sampler, texels, matrix):
    return sample_grid(jt.texture2d(texels), function, (*pixel_centers(SHAPE), *matrix_parameters(matrix, 2)), sampler)


def by_coordinates(function, sampler, texels, matrix):
    return jt.sample(jt.texture2d(texels), function(*pixel_centers(SHAPE), *matrix_parameters(matrix, 2)), sampler)


def assert_alike(actual, expected):
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        assert_close("peer", a, b, 1 + np.abs(np.asarray(b)).max())


@pytest.mark.slow
def test_values_and_derivatives():
    """Forward and reverse mode, and the reverse of the reverse, in texels and matrix together."""
    ways = [functools.partial(by, projective, jt.Sampler(normalized_coords=False)) for by in (by_grid, by_coordinates)]
    args = image(7, 8, 2), HOMOGRAPHY
    moves = args[0][::-1], np.float32(0.01) * HOMOGRAPHY[::-1]

    def everything(read):
        def slope(*args):
            """Along the moves, and the gradient that tells it."""
            gradient = jax.grad(lambda *args: (read(*args) ** 2).sum(), (0, 1))(*args)
            return sum((g * m).sum() for g, m in zip(gradient, moves, strict=True)), gradient

        bent, reverse = jax.grad(slope, (0, 1), has_aux=True)(*args)
        return {"value and forward": jax.jvp(read, args, moves), "reverse": reverse, "reverse of reverse": bent}

    found, expected = jax.jit(lambda: [everything(read) for read in ways])()
    assert_alike(found, expected)


read_of_one = functools.partial(by_grid, projective, PIXELS)


def loss_of_one(texels, matrix):
    return (read_of_one(texels, matrix) ** 2).sum()


slopes_of_one = jax.grad(loss_of_one, (0, 1))
value_and_slopes = jax.jit(lambda *args: (read_of_one(*args), *slopes_of_one(*args)))


# Which of texels and matrix a batch has several of.
BATCHES = {"of matrices": (None, 0), "of textures": (0, None)}


def test_batches():
    """Of values, and the gradient of a batch, in which what is shared has a sum."""
    several = image(3, 7, 8, 2), HOMOGRAPHY + np.float32(0.01) * image(3, 3, 3)
    given = {name: [a[0] if axis is None else a for a, axis in zip(several, BATCHES[name])] for name in BATCHES}

    def batched(axes, *args):
        total = lambda *args: jax.vmap(loss_of_one, axes)(*args).sum()
        return jax.vmap(read_of_one, axes)(*args), jax.grad(total, (0, 1))(*args)

    found = jax.jit(lambda given: {name: batched(BATCHES[name], *given[name]) for name in given})(given)
    for name, axes in BATCHES.items():
        one = lambda k, name=name, axes=axes: [a if i is None else a[k] for a, i in zip(given[name], axes)]
        values, *slopes = (np.stack(parts) for parts in zip(*(value_and_slopes(*one(k)) for k in range(3))))
        summed = [a.sum(0) if axis is None else a for a, axis in zip(slopes, axes, strict=True)]
        with named(name):
            assert_alike(found[name][0], values)
            assert_alike(found[name][1], summed)


def test_a_grid_is_not_kept():
    """Between the passes live the texels, lines of pixel centers, and numbers: nothing of the output's size."""
    kept = jax.tree.leaves(jax.eval_shape(lambda *args: jax.vjp(read_of_one, *args)[1], image(7, 8, 2), HOMOGRAPHY))
    assert max(leaf.size for leaf in kept if leaf.shape != (7, 8, 2)) <= max(SHAPE)


def columns(x, y):
    del y
    return x, x


def test_reads_of_every_kind():
    """Hardware's arithmetic and its derivative, integers, a border color, and coordinates that leave an axis out."""
    unit = jt.Sampler(normalized_coords=False, arithmetic="hardware")
    point = jt.Sampler(filter_mode="point", normalized_coords=False)
    color, codes = np.float32([3, -1]), np.arange(56, dtype=np.uint8).reshape(7, 8, 1)

    @jax.jit
    def run(texels, codes, matrix):
        numbers = lambda m: by_grid(affine, point, codes, m).astype(jnp.float32)
        colored = jt.texture2d(texels, border_color=color)
        far = (*pixel_centers(SHAPE), *matrix_parameters(3 * matrix, 2))
        both = {
            "hardware": [by(affine, unit, texels, matrix) for by in (by_grid, by_coordinates)],
            "codes": [by(affine, point, codes, matrix) for by in (by_grid, by_coordinates)],
            "slope": [
                jax.grad(lambda m, by=by: by(affine, unit, texels, m).sum())(matrix) for by in (by_grid, by_coordinates)
            ],
            "color": [sample_grid(colored, affine, far, PIXELS), jt.sample(colored, affine(*far), PIXELS)],
        }
        along_x = sample_grid(jt.texture2d(texels), columns, pixel_centers(SHAPE), PIXELS)
        return both, jax.jvp(numbers, (matrix,), (matrix,))[1], along_x

    both, tangent, along_x = jax.device_get(run(image(7, 8, 2), codes, HOMOGRAPHY[:2]))
    for name, (found, expected) in both.items():
        with named(name):
            assert_alike(found, expected)
    # Both compute positions alike, without an instruction for a product and a sum, and the unit's are rounded.
    for name in ("hardware", "codes"):
        assert_exact(*both[name])
    assert not np.any(tangent)
    assert (np.asarray(both["color"][1]) == color).all(-1).any()
    assert along_x.shape == (*SHAPE, 2)
    assert (along_x == along_x[:1]).all()
