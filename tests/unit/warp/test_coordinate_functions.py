"""Coordinates that are computed where they are used: reads and derivatives are those of coordinates that are given."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from jaxtex._reads.calls import sample_grid
from jaxtex.warp.coordinate_functions import affine, matrix_parameters, pixel_centers, projective
from tests.support.arrays import normal
from tests.support.tolerances import assert_close, assert_exact, named

SHAPE = (9, 12)
HOMOGRAPHY = np.float32([[0.5, 0.1, 0.7], [-0.1, 0.6, 1.2], [0.004, 0.002, 1.0]])
PIXELS = jt.Sampler(address_mode="border", normalized_coords=False)

image = functools.partial(normal, seed=1)


def by_grid(function, sampler, texels, matrix):
    return sample_grid(jt.texture2d(texels), function, (*pixel_centers(SHAPE), *matrix_parameters(matrix, 2)), sampler)


def by_coordinates(function, sampler, texels, matrix):
    return jt.sample(jt.texture2d(texels), function(*pixel_centers(SHAPE), *matrix_parameters(matrix, 2)), sampler)


def assert_alike(actual, expected):
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        assert_close("peer", a, b, 1 + np.abs(np.asarray(b)).max())


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


def test_reads_of_other_kinds():
    """Hardware's arithmetic and its derivative, a border color, codes, and coordinates that leave an axis out."""
    unit = jt.Sampler(normalized_coords=False, arithmetic="hardware")
    point = jt.Sampler(normalized_coords=False, filter_mode="point")
    color, codes = np.float32([3, -1]), np.arange(56, dtype=np.uint8).reshape(7, 8, 1)

    @jax.jit
    def run(texels, matrix):
        colored = jt.texture2d(texels, border_color=color)
        far = (*pixel_centers(SHAPE), *matrix_parameters(3 * matrix, 2))
        ways, texture, pixels = (by_grid, by_coordinates), jt.texture2d(texels), pixel_centers(SHAPE)
        line = jt.sample(texture, columns(*pixels), PIXELS)
        numbers = lambda m: by_grid(affine, point, codes, m).astype(jnp.float32).sum()
        return {
            "codes": [jax.grad(numbers)(matrix), jnp.zeros_like(matrix)],
            "columns": [sample_grid(texture, columns, pixels, PIXELS), jnp.broadcast_to(line, (*SHAPE, 2))],
            "hardware": [by(affine, unit, texels, matrix) for by in ways],
            "slope": [jax.grad(lambda m, by=by: by(affine, unit, texels, m).sum())(matrix) for by in ways],
            "color": [sample_grid(colored, affine, far, PIXELS), jt.sample(colored, affine(*far), PIXELS)],
        }

    both = jax.device_get(run(image(7, 8, 2), HOMOGRAPHY[:2]))
    for name, (found, expected) in both.items():
        with named(name):
            assert_alike(found, expected)
    # Both compute positions alike, without an instruction for a product and a sum, and the unit's are rounded.
    assert_exact(*both["hardware"])
    assert (np.asarray(both["color"][1]) == color).all(-1).any()
