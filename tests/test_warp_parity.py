"""`grid_sample` and `affine_grid` against an oracle of PyTorch's rules, and against PyTorch where it is installed."""

import functools

import grid_oracle
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerances import assert_close, assert_exact

import jaxtex as jt
import jaxtex.warp as jw

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
# The rest differs in the engine below only, whose tests go to the second order and beyond.
SECOND_ORDER = [
    (2, "bilinear", "zeros", True),
    (2, "bilinear", "border", False),
    (2, "bilinear", "reflection", False),
    (2, "bilinear", "reflection", True),
    (2, "bicubic", "reflection", True),
    (3, "bilinear", "reflection", False),
]


def normal(*shape, seed):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def to_grid(index, size, align):
    return 2 * index / (size - 1) - 1 if align else (2 * index + 1) / size - 1


def points(dimension, align, at_kinks):
    """A grid in and around the image: at whole and half indices and far outside, or away from all of those."""
    rng, shape = np.random.default_rng(3), (BATCH, *SAMPLES[dimension])
    coordinates = []
    for size in SIZES[align][:dimension]:
        index = rng.integers(-4 * size, 6 * size, shape) / 2
        if at_kinks:
            # A third on or next to a border, and some far away.
            index = np.where(
                rng.random(shape) < 0.3, rng.choice([-1, -0.5, 0, size - 1, size - 0.5, size], shape), index
            )
            index = np.where(rng.random(shape) < 0.1, rng.choice([-4095.5, 8191, 4096.5], shape), index)
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
def program(mode, padding, align, second):
    """Values, gradients in image and grid, and if `second` how the gradients change along a direction."""

    def read(image, grid):
        return jw.grid_sample(image, grid, mode, padding, align)

    @jax.jit
    def run(image, grid, cotangent, d_image, d_grid):
        def gradients(image, grid):
            values, pullback = jax.vjp(read, image, grid)
            return pullback(cotangent), values

        if not second:
            found, values = gradients(image, grid)
            return values, *found
        found, turns, values = jax.jvp(gradients, (image, grid), (d_image, d_grid), has_aux=True)
        return values, *found, *turns

    return run


@functools.cache
def ours(case, at_kinks=False):
    dimension, mode, padding, align = case
    run = program(mode, padding, align, case in SECOND_ORDER)
    return [np.asarray(x) for x in run(*Data(dimension, align, at_kinks).arrays)]


def scale(array):
    return max(np.abs(array).max(), 1)


def check(actual, expected):
    """Values, gradients and, as far as there are any, second derivatives."""
    rows = ("peer", "peer gradient", "peer gradient", "peer gradient", "peer gradient")
    for row, a, e in zip(rows, actual, expected, strict=False):
        assert_close(row, a, e, scale(e))


def by_oracle(case, data):
    dimension, mode, padding, align = case
    modes = {"mode": mode, "padding": padding, "align_corners": align}
    batches = []
    for image, grid, cotangent, d_image, d_grid in zip(*data.arrays):
        flat = [a.astype(np.float64).reshape(-1, dimension) for a in (grid, d_grid)]
        image, d_image, cotangent = (a.astype(np.float64) for a in (image, d_image, cotangent.reshape(CHANNELS, -1)))
        found = [grid_oracle.values(image, flat[0], **modes), *grid_oracle.pullback(image, flat[0], cotangent, **modes)]
        if case in SECOND_ORDER:
            found += grid_oracle.turn(image, flat[0], cotangent, d_image, flat[1], **modes)
        shapes = (cotangent.reshape(CHANNELS, *SAMPLES[dimension]).shape, image.shape, grid.shape) * 2
        batches.append([a.reshape(s) for a, s in zip(found, (*shapes[:3], *shapes[1:3]))])
    return [np.stack(parts) for parts in zip(*batches)]


def by_torch(torch, case, data):
    """In float64, the second order included."""
    _, mode, padding, align = case
    image, grid, cotangent, d_image, d_grid = (torch.tensor(a.astype(np.float64)) for a in data.arrays)
    image.requires_grad_()
    grid.requires_grad_()
    values = torch.nn.functional.grid_sample(image, grid, mode, padding, align)
    gradients = torch.autograd.grad(values, (image, grid), cotangent, create_graph=True)
    found = [values, *gradients]
    if case in SECOND_ORDER:
        # The Hessian is symmetric: its product with a direction is the gradient of the slope along it.
        found += torch.autograd.grad(gradients, (image, grid), (d_image, d_grid))
    return [x.detach().numpy() for x in found]


@each_case
def test_grid_sample_is_that_of_the_oracle(dimension, mode, padding, align):
    case = (dimension, mode, padding, align)
    check(ours(case), by_oracle(case, Data(dimension, align)))


@each_case
def test_grid_sample_is_that_of_torch(dimension, mode, padding, align):
    torch, case = pytest.importorskip("torch"), (dimension, mode, padding, align)
    check(ours(case), by_torch(torch, case, Data(dimension, align)))


@each_case
def test_ties_borders_and_far_places(dimension, mode, padding, align):
    case, data = (dimension, mode, padding, align), Data(dimension, align, at_kinks=True)
    actual, (values, *_) = ours(case, at_kinks=True)[:3], by_oracle(case, data)
    check(actual, [values])


@each_case
def test_gradients_at_kinks_are_those_of_torch(dimension, mode, padding, align):
    torch, case = pytest.importorskip("torch"), (dimension, mode, padding, align)
    data = Data(dimension, align, at_kinks=True)
    check(ours(case, at_kinks=True)[:3], by_torch(torch, case, data)[:3])
