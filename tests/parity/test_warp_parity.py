"""`grid_sample` and `affine_grid` against PyTorch, and where it has nothing, against an oracle of its rules."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
import jaxtex.warp as jw
from tests.oracles import grids as grid_oracle
from tests.support import peers
from tests.support.tolerances import assert_close, assert_exact

MODES, PADDINGS, ALIGN = ("nearest", "bilinear", "bicubic"), ("zeros", "border", "reflection"), (False, True)
# x, y, z; n or n - 1 is a power of two, so that every half of an index has a coordinate without rounding.
SIZES = {False: (8, 4, 2), True: (5, 9, 3)}
SAMPLES = {2: (5, 8), 3: (2, 4, 5)}
BATCH, CHANNELS = 2, 3
CASES = [
    (dimension, mode, padding, align)
    for dimension, modes in ((2, MODES), (3, MODES[:2]))  # torch has no tricubic reads
    for mode in modes
    for padding in PADDINGS
    for align in ALIGN
]
each_case = pytest.mark.parametrize(("dimension", "mode", "padding", "align"), CASES)
# Which cases are differentiated twice, the others once: each mode but the nearest texel, whose gradients are constant,
# each padding and each alignment, which change coordinates alone.
TWICE = [
    *((2, "bilinear", padding, False) for padding in PADDINGS),
    (2, "bilinear", "reflection", True),
    (2, "bicubic", "reflection", False),
    (2, "bicubic", "zeros", True),
    (3, "bilinear", "border", False),
]
ORDERS = {case: 2 if case in TWICE else 1 for case in CASES}


def normal(*shape, seed):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def to_grid(index, size, align):
    return 2 * index / (size - 1) - 1 if align else (2 * index + 1) / size - 1


def points(dimension, align, at_kinks):
    """A grid in and around the image: at whole and half indices and far outside, or away from all of those."""
    rng, shape = np.random.default_rng(3), (BATCH, *SAMPLES[dimension])
    coordinates = []
    for size in SIZES[align][:dimension]:
        near, far = rng.integers(-3, 2 * size + 1, shape), rng.integers(-5 * size, 7 * size, shape)
        index = np.where(rng.random(shape) < 0.7, near, far) / 2
        if at_kinks:
            index = np.where(rng.random(shape) < 0.3, rng.choice([-1, 0, size - 1, size], shape), index)
            index = np.where(rng.random(shape) < 0.1, rng.choice([-4095.5, 4096.5, 8191], shape), index)
        else:
            index = index + rng.uniform(0.05, 0.45, shape)
        coordinates.append(to_grid(index, size, align))
    return np.stack(coordinates, -1).astype(np.float32)


class Data:
    """What a case reads, and the directions in which it is differentiated."""

    def __init__(self, dimension, align, at_kinks=False):
        sizes = SIZES[align][dimension - 1 :: -1]
        self.image, self.d_image = (normal(BATCH, CHANNELS, *sizes, seed=seed) for seed in (0, 1))
        self.grid = points(dimension, align, at_kinks)
        self.d_grid = np.clip(normal(*self.grid.shape, seed=2), -2, 2)
        self.cotangent = normal(BATCH, CHANNELS, *SAMPLES[dimension], seed=4)

    @property
    def arrays(self):
        return self.image, self.grid, self.cotangent, self.d_image, self.d_grid


@functools.cache
def program(mode, padding, align, order):
    """Values, gradients in image and grid, and how the gradients change along a direction, as far as `order` asks."""

    def read(image, grid):
        return jw.grid_sample(image, grid, mode, padding, align)

    @jax.jit
    def run(image, grid, cotangent, d_image, d_grid):
        def gradients(image, grid):
            values, pullback = jax.vjp(read, image, grid)
            return pullback(cotangent), values

        if order == 0:
            return (read(image, grid),)
        if order == 1:
            found, values = gradients(image, grid)
            return values, *found
        found, turns, values = jax.jvp(gradients, (image, grid), (d_image, d_grid), has_aux=True)
        return values, *found, *turns

    return run


@functools.cache
def ours(case, at_kinks=False):
    dimension, mode, padding, align = case
    run = program(mode, padding, align, ORDERS[case])
    return [np.asarray(x) for x in run(*Data(dimension, align, at_kinks).arrays)]


def scale(array):
    return max(np.abs(array).max(), 1)


def check(actual, expected):
    """Values, gradients and, as far as there are any, second derivatives."""
    for a, e in zip(actual, expected):
        assert_close("peer", a, e, scale(e))


def by_torch(case, at_kinks=False):
    """What torch returns, to the order of the case, and to the first at kinks."""
    dimension, mode, padding, align = case
    name = f"grid_sample {dimension}D {mode} {padding} align_corners={align}{' at kinks' * at_kinks}"
    twice = ORDERS[case] == 2 and not at_kinks

    def program(torch, *arrays):
        """In float64, rounded in the end."""
        image, grid, cotangent, d_image, d_grid = (torch.tensor(a.astype(np.float64)) for a in arrays)
        image.requires_grad_()
        grid.requires_grad_()
        values = torch.nn.functional.grid_sample(image, grid, mode, padding, align)
        gradients = torch.autograd.grad(values, (image, grid), cotangent, create_graph=True)
        found = [values, *gradients]
        # Version 2.11 has no derivative of the gradients, 2.13 has.
        if twice and tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13):
            # The Hessian is symmetric: its product with a direction is the gradient of the slope along it.
            found += torch.autograd.grad(gradients, (image, grid), (d_image, d_grid))
        return [x.detach().numpy().astype(np.float32) for x in found]

    return peers.results("torch", name, program, *Data(dimension, align, at_kinks).arrays)


@each_case
def test_grid_sample_is_that_of_torch(dimension, mode, padding, align):
    case = (dimension, mode, padding, align)
    for theirs in by_torch(case):
        check(ours(case), theirs)


@each_case
def test_values_and_gradients_at_kinks_and_far_outside_are_those_of_torch(dimension, mode, padding, align):
    case = (dimension, mode, padding, align)
    for theirs in by_torch(case, at_kinks=True):
        check(ours(case, at_kinks=True), theirs)


def row(*values):
    """An image of one row and one channel, (1, 1, W)."""
    return np.array(values, np.float32)[None, None]


def along(*g):
    """Points of such a row."""
    return np.array([[(x, 0) for x in g]], np.float32)


def slopes(padding, align, *g):
    """The slope in x of 1, 2, 4, 8 between texels at each coordinate, in units of texels."""
    image, read = row(1, 2, 4, 8), lambda grid: jw.grid_sample(image, grid, "bilinear", padding, align).sum()
    run = jax.jit(jax.grad(read))
    return np.asarray(run(along(*g)))[0, :, 0] / (1.5 if align else 2)


@pytest.mark.parametrize(
    ("padding", "align", "expected"),
    [
        # On the outer centers and beyond: on the first one, half a texel before it, on the last one, on the second.
        ("zeros", True, [1, 1, -8, 2]),
        ("border", True, [0, 0, 0, 2]),
        ("border", False, [0, 0, 0, 2]),
        ("reflection", True, [0, -1, 0, 2]),
        ("reflection", False, [0, 0, 0, 2]),
    ],
)
def test_slopes_on_the_outer_centers(padding, align, expected):
    index = np.array([0, -0.5, 3, 1])
    assert_close("peer gradient", slopes(padding, align, *to_grid(index, 4, align)), np.array(expected), 8)


@pytest.mark.parametrize(("mode", "expected"), [("nearest", [0, 2, 2, 4]), ("bilinear", [0.5, 1.5, 2.5, 3.5])])
def test_ties_of_nearest_go_to_the_even_texel(mode, expected):
    grid = along(*to_grid(np.array([0.5, 1.5, 2.5, 3.5]), 5, True))
    assert_exact(jw.grid_sample(row(0, 1, 2, 3, 4), grid, mode, align_corners=True)[0, 0], expected)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
@pytest.mark.parametrize(
    ("padding", "expected"), [("zeros", [0, 0]), ("border", [8, 1]), ("reflection", [1, 1])]
)  # as torch's, of images
def test_infinite_coordinates(mode, padding, expected):
    run = jax.value_and_grad(
        lambda grid: (lambda out: (out.sum(), out))(jw.grid_sample(row(1, 2, 4, 8), grid, mode, padding)), has_aux=True
    )
    (_, values), slope = run(along(np.inf, -np.inf))
    assert_exact(values[0, 0], expected)
    assert_exact(slope, np.zeros_like(slope))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", PADDINGS)
def test_nan_is_minus_one(mode, padding):
    nan, one = (jw.grid_sample(row(1, 2, 4, 8), along(g), mode, padding) for g in (np.nan, -1))
    assert_exact(nan, one)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("align", ALIGN)
def test_axes_of_one_texel(padding, align):
    image, grid = normal(1, 3, 4, 1, seed=5), np.random.default_rng(6).uniform(-2, 2, (1, 3, 5, 2)).astype(np.float32)
    modes = {"mode": "bilinear", "padding": padding, "align_corners": align}
    expected = grid_oracle.values(image[0].astype(np.float64), grid.reshape(-1, 2).astype(np.float64), **modes)
    actual = jw.grid_sample(image, grid, "bilinear", padding, align)
    assert_close("peer", actual, expected.reshape(1, 3, 3, 5), scale(image))


@pytest.mark.parametrize("padding", PADDINGS)
def test_volumes_have_a_cubic_filter(padding):
    data, modes = Data(3, False), {"mode": "bicubic", "padding": padding, "align_corners": False}
    image, grid = data.image[0].astype(np.float64), data.grid[0].reshape(-1, 3).astype(np.float64)
    expected = grid_oracle.values(image, grid, **modes).reshape(CHANNELS, *SAMPLES[3])
    actual = jw.grid_sample(data.image[0], data.grid[0], "bicubic", padding)
    assert_close("peer", actual, expected, scale(expected))


# ------------------------------------------------------------------------------------------------------------ forms


def test_forms_of_images_and_grids():
    image, grid = Data(2, False).image, Data(2, False).grid
    expected = np.asarray(jw.grid_sample(image, grid))
    close = lambda actual, expected: assert_close("peer", actual, expected, scale(image))
    close(jw.grid_sample(image[0], grid[0]), expected[0])
    close(jw.grid_sample(image[:1], grid), jw.grid_sample(image[0], grid))
    close(jw.grid_sample(image[None], grid[:, None])[0, 1], jw.grid_sample(image[1], grid[0]))
    close(jw.grid_sample(image, tuple(np.moveaxis(grid, -1, 0))), expected)
    close(np.moveaxis(jw.grid_sample(np.moveaxis(image, 1, -1), grid, data_format="NHWC"), -1, 1), expected)
    close(jax.vmap(jw.grid_sample)(image, grid), expected)


def test_volumes_have_forms_of_their_own():
    image, grid = Data(3, False).image, Data(3, False).grid
    expected = jw.grid_sample(image, grid, data_format="NCDHW")
    actual = jw.grid_sample(np.moveaxis(image, 1, -1), grid, data_format="NDHWC")
    assert_close("peer", np.moveaxis(actual, -1, 1), expected, scale(image))


def test_types_of_images():
    grid, image = along(0.0, 0.5), row(0, 10, 20, 42)
    assert_exact(jw.grid_sample(image.astype(np.float16), grid)[0, 0], [15, 31], np.float16)
    assert_exact(jw.grid_sample(image.astype(np.uint8), grid)[0, 0], [15, 31], np.uint8)
    assert_exact(jw.grid_sample(image.astype(np.int32), grid, "nearest")[0, 0], [20, 20], np.int32)


def test_double_precision_is_that_of_torch(x64):
    image, grid = (a.astype(np.float64) for a in Data(2, True).arrays[:2])
    actual = jw.grid_sample(image, grid, "bicubic", align_corners=True)
    assert actual.dtype == np.float64

    def program(torch, image, grid):
        return [torch.nn.functional.grid_sample(torch.tensor(image), torch.tensor(grid), "bicubic", "zeros", True)]

    for (theirs,) in peers.results("torch", "grid_sample float64", program, image, grid):
        assert theirs.dtype == np.float64
        assert_close("float64", actual, theirs, 8 * scale(image))


def test_a_sampler_replaces_mode_and_padding():
    grid = along(*to_grid(np.array([-0.5, 0.25, 3.5, 5]), 4, False))
    for normalized in (True, False):
        sampler = jt.Sampler(address_mode="wrap", normalized_coords=normalized)
        assert_exact(jw.grid_sample(row(1, 2, 4, 8), grid, sampler=sampler)[0, 0], [4.5, 1.25, 4.5, 2])


def test_the_color_outside():
    image, grid = np.ones((2, 1, 2), np.float32), along(-1, 0, 3)
    color = np.array([3, 5], np.float32)
    assert_exact(jw.grid_sample(image, grid, border_color=color)[:, 0], [[2, 1, 3], [3, 1, 5]])


# ------------------------------------------------------------------------------------------------------ affine_grid


def affine_oracle(theta, size, align):
    """Pixel by pixel, from the matrix."""
    out = np.zeros((*size, len(size)))
    for pixel in np.ndindex(*size):
        g = [to_grid(i, n, align) if n > 1 else 0 for i, n in zip(pixel[::-1], size[::-1])]
        out[pixel] = theta @ [*g, 1]
    return out


@pytest.mark.parametrize("align", ALIGN)
@pytest.mark.parametrize("size", [(5, 4), (1, 3), (3, 2, 5)])
def test_affine_grid(size, align):
    theta = normal(2, len(size), len(size) + 1, seed=7)
    actual = jw.affine_grid(theta, (2, 3, *size), align)
    expected = np.stack([affine_oracle(t.astype(np.float64), size, align) for t in theta])
    assert actual.dtype == np.float32
    assert_close("peer", actual, expected, scale(theta))
    assert_exact(jw.affine_grid(theta[0], size, align), actual[0])
    assert_exact(jw.affine_grid(theta[None], list(size), align), actual[None])


@pytest.mark.parametrize("align", ALIGN)
@pytest.mark.parametrize("size", [(5, 4), (1, 3), (3, 2, 5)])
@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
def test_affine_grid_is_that_of_torch(size, align):
    theta, cotangent = normal(2, len(size), len(size) + 1, seed=7), normal(2, *size, len(size), seed=8)

    @jax.jit
    def run(theta, cotangent):
        grid, pullback = jax.vjp(lambda theta: jw.affine_grid(theta, (2, 3, *size), align), theta)
        return grid, pullback(cotangent)[0]

    def program(torch, theta, cotangent):
        theta = torch.tensor(theta, requires_grad=True)
        grid = torch.nn.functional.affine_grid(theta, (2, 3, *size), align)
        grid.backward(torch.tensor(cotangent))
        return [grid.detach(), theta.grad]

    grid, gradient = run(theta, cotangent)
    name = f"affine_grid {size} align_corners={align}"
    for their_grid, their_gradient in peers.results("torch", name, program, theta, cotangent):
        assert_close("peer", grid, their_grid, scale(theta))
        assert_close("peer gradient", gradient, their_gradient, scale(their_gradient))


@pytest.mark.parametrize("align", ALIGN)
@pytest.mark.parametrize("n", [4, 7, 50])
def test_the_ends_of_an_identity_are_exact(n, align):
    g = jw.affine_grid(np.eye(2, 3, dtype=np.float32), (1, n), align)[0, :, 0]
    assert_exact(g[jnp.array([0, -1])], [-1, 1] if align else [1 / n - 1, 1 - 1 / n])


def test_a_spatial_transformer_is_an_affine_grid_that_is_read():
    images, theta = normal(2, 8, 4, 3, seed=9), normal(2, 2, 3, seed=10)
    expected = jw.grid_sample(images, jw.affine_grid(theta, (5, 6)), data_format="NHWC")
    assert_close("peer", jw.spatial_transform(images, theta, (5, 6)), expected, scale(images))
