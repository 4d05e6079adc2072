"""`grid_sample` and `affine_grid` against PyTorch, and where it has nothing, against an oracle of its rules."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
import jaxtex.warp as jw
from tests.oracles import grids as grid_oracle
from tests.support import peers
from tests.support.arrays import normal
from tests.support.tolerances import assert_close, assert_exact, named

MODES, PADDINGS, ALIGN = ("nearest", "bilinear", "bicubic"), ("zeros", "border", "reflection"), (False, True)
# x, y, z; n or n - 1 is a power of two, so that every half of an index has a coordinate without rounding.
SIZES = {False: (8, 4, 2), True: (5, 9, 3)}
SAMPLES = {2: (5, 8), 3: (2, 4, 5)}
BATCH, CHANNELS = 2, 3
IDENTITY = np.eye(2, 3, dtype=np.float32)
CASES = [
    (dimension, mode, padding, align)
    for dimension, modes in ((2, MODES), (3, MODES[:2]))  # torch has no tricubic reads
    for mode in modes
    for padding in PADDINGS
    for align in ALIGN
]
# Which cases are differentiated once and twice: paddings and alignments change coordinates alone.
ONCE = [
    *((2, "nearest", "zeros", False), (2, "bilinear", "zeros", False), (2, "bilinear", "border", True)),
    *((2, "bicubic", "reflection", False), (3, "bilinear", "border", False)),
]
TWICE = [(2, "bilinear", "reflection", True)]
ORDERS = dict.fromkeys(CASES, 0) | dict.fromkeys(ONCE, 1) | dict.fromkeys(TWICE, 2)


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


def derived(case, image, grid, cotangent, d_image, d_grid):
    """Values, gradients in image and grid, and how the gradients change along a direction, as far as its order asks."""
    _, mode, padding, align = case
    read = lambda image, grid: jw.grid_sample(image, grid, mode, padding, align)

    def gradients(image, grid):
        values, pullback = jax.vjp(read, image, grid)
        return pullback(cotangent), values

    if ORDERS[case] == 0:
        return [read(image, grid)]
    if ORDERS[case] == 1:
        found, values = gradients(image, grid)
        return [values, *found]
    found, turns, values = jax.jvp(gradients, (image, grid), (d_image, d_grid), has_aux=True)
    return [values, *found, *turns]


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


@pytest.mark.parametrize("dimension", [2, 3])
def test_grid_sample_is_that_of_torch(dimension):
    """Also at kinks, of which torch takes the side that it likes, and far outside."""
    cases = [each for each in CASES if each[0] == dimension]
    run = jax.jit(lambda given: {each: derived(each, *given[each[-1]]) for each in cases})
    for at_kinks in (False, True):
        found = jax.device_get(run({align: Data(dimension, align, at_kinks).arrays for align in ALIGN}))
        for each in cases:
            for theirs in by_torch(each, at_kinks):
                with named((*each, at_kinks)):
                    check(found[each], theirs)


def row(*values):
    """An image of one row and one channel, (1, 1, W)."""
    return np.array(values, np.float32)[None, None]


def along(*g):
    """Points of such a row."""
    return np.array([[(x, 0) for x in g]], np.float32)


def test_coordinates_that_are_no_places():
    """Infinite ones, as torch's of images, and NaN, which is -1; without a gradient."""
    given = along(np.inf, -np.inf, np.nan, -1)

    @jax.jit
    def run(grid):
        read = lambda grid, *how: jw.grid_sample(row(1, 2, 4, 8), grid, *how)
        slopes = {padding: jax.grad(lambda g, p=padding: read(g, "bilinear", p).sum())(grid) for padding in PADDINGS}
        return {(mode, padding): read(grid, mode, padding)[0, 0] for mode in MODES for padding in PADDINGS}, slopes

    expected = {"zeros": [0, 0], "border": [8, 1], "reflection": [1, 1]}
    found, slopes = jax.device_get(run(given))
    for (mode, padding), values in found.items():
        with named((mode, padding)):
            assert_exact(values[2], values[3])
            if mode != "bicubic":
                assert_exact(values[:2], expected[padding])
                assert_exact(slopes[padding][:, :2], np.zeros((1, 2, 2)))


def test_what_torch_has_not():
    """Axes of one texel, and a cubic filter of volumes, by the rules of others."""
    image, grid = normal(1, 3, 4, 1, seed=5), np.random.default_rng(6).uniform(-2, 2, (1, 3, 5, 2)).astype(np.float32)
    cases = {("bilinear", padding, align): (image, grid) for padding in PADDINGS for align in ALIGN}
    data = Data(3, False)
    cases["bicubic", "border", False] = data.image[:1], data.grid[:1]
    run = jax.jit(lambda cases: {how: jw.grid_sample(*given, *how) for how, given in cases.items()})
    for how, found in jax.device_get(run(cases)).items():
        pixels, at = (a[0].astype(np.float64) for a in cases[how])
        modes = dict(zip(("mode", "padding", "align_corners"), how, strict=True))
        expected = grid_oracle.values(pixels, at.reshape(-1, at.shape[-1]), **modes).reshape(found[0].shape)
        with named(how):
            assert_close("peer", found[0], expected, scale(expected))


def test_forms_of_images_and_grids():
    """Without batches, with more axes, tuples of coordinates, channels last, and `vmap`; and the types of images."""
    images = {dimension: Data(dimension, False).image for dimension in (2, 3)}
    grids, line, numbers = (
        {dimension: Data(dimension, False).grid for dimension in (2, 3)},
        along(0.0, 0.5),
        row(0, 10, 20, 42),
    )

    @jax.jit
    def run(images, grids, numbers):
        (image, grid), last = (images[2], grids[2]), lambda a: jnp.moveaxis(a, 1, -1)
        back = lambda a: jnp.moveaxis(a, -1, 1)
        return {
            "plain": jw.grid_sample(image, grid),
            "one": jnp.stack([jw.grid_sample(image[0], grid[0]), jw.grid_sample(image[1:], grid[1:])[0]]),
            "broadcast": jw.grid_sample(image[None], grid[:, None])[(0, 1), (0, 1)],
            "tuple": jw.grid_sample(image, tuple(jnp.moveaxis(grid, -1, 0))),
            "channels last": back(jw.grid_sample(last(image), grid, data_format="NHWC")),
            "vmap": jax.vmap(jw.grid_sample)(image, grid),
            "volumes": jw.grid_sample(images[3], grids[3], data_format="NCDHW"),
            "volumes, channels last": back(jw.grid_sample(last(images[3]), grids[3], data_format="NDHWC")),
        }, [
            jw.grid_sample(numbers.astype(kind), line, mode)[0, 0]
            for kind, mode in ((np.float16, None), (np.uint8, None), (np.int32, "nearest"))
        ]

    found, (half, codes, whole) = jax.device_get(run(images, grids, numbers))
    for form in found:
        with named(form):
            assert_close("peer", found[form], found["volumes" if "volumes" in form else "plain"], scale(images[2]))
    assert_exact(half, [15, 31], np.float16)
    assert_exact(codes, [15, 31], np.uint8)
    assert_exact(whole, [20, 20], np.int32)


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


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
def test_affine_grid_is_that_of_torch():
    """Of one matrix and of axes in front too; the ends of an identity are exact."""
    cases = [(size, align) for size in ((5, 4), (1, 3), (3, 2, 5)) for align in ALIGN]
    thetas = {len(size): normal(2, len(size), len(size) + 1, seed=7) for size, _ in cases}
    cotangents = {size: normal(2, *size, len(size), seed=8) for size, _ in cases}

    @jax.jit
    def run(thetas, cotangents):
        def of(size, align):
            grid = lambda theta: jw.affine_grid(theta, (2, 3, *size), align)
            found, pullback = jax.vjp(grid, thetas[len(size)])
            return found, pullback(cotangents[size])[0]

        one = jw.affine_grid(thetas[2][0], (5, 4), False), jw.affine_grid(thetas[2][None], [5, 4], False)[0, 0]
        ends = {(n, align): jw.affine_grid(IDENTITY, (1, n), align)[0, :, 0] for n in (4, 7, 50) for align in ALIGN}
        return {each: of(*each) for each in cases}, one, ends

    found, one, ends = jax.device_get(run(thetas, cotangents))
    for form in one:
        assert_exact(form, found[(5, 4), False][0][0], np.float32)
    for (n, align), line in ends.items():
        assert_exact(line[[0, -1]], [-1, 1] if align else [1 / n - 1, 1 - 1 / n])
    for size, align in cases:

        def program(torch, theta, cotangent, size=size, align=align):
            theta = torch.tensor(theta, requires_grad=True)
            grid = torch.nn.functional.affine_grid(theta, (2, 3, *size), align)
            grid.backward(torch.tensor(cotangent))
            return [grid.detach(), theta.grad]

        name, given = f"affine_grid {size} align_corners={align}", (thetas[len(size)], cotangents[size])
        for their_grid, their_gradient in peers.results("torch", name, program, *given):
            with named(name):
                assert_close("peer", found[size, align][0], their_grid, scale(given[0]))
                assert_close("peer gradient", found[size, align][1], their_gradient, scale(their_gradient))
