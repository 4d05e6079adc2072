"""Derivatives: forward and reverse mode, first and second order, and the value at every kink.

Reads are piecewise polynomials, so that five-point differences in float64 are accurate to 1e-6; positions are drawn as
cell + fraction in [0.1, 0.9], away from kinks. The kinks themselves are tested apart.
"""

import functools
import itertools
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.cases import computed
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact, assert_trees_close, named

CONSTRUCTORS = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}
LAYERED = {1: jt.texture1d_layered, 2: jt.texture2d_layered}
# Every address mode, both units.
CASES = [
    # sizes, address modes, filter, normalized coordinates, layers
    ((5, 7), ("wrap", "border"), "linear", True, False),
    ((6, 5), ("reflect", "clamp"), "linear", False, True),
    ((5,), ("mirror",), "cubic", True, False),
]


def draw(sizes, address, filter_mode, normalized, layered):
    """A texture, border color, coordinates and layer of one case, in float64."""
    rng = np.random.default_rng(zlib.crc32(repr((sizes, address, filter_mode)).encode()))
    layers = (3,) if layered else ()
    texels, border = rng.normal(size=(*layers, *sizes, 2)), rng.normal(size=2)
    scale = sizes[::-1] if normalized else (1,) * len(sizes)
    coords = tuple((rng.integers(-n, 2 * n, 5) + rng.uniform(0.6, 1.4, 5)) / s for n, s in zip(sizes[::-1], scale))
    return texels, border, coords, (rng.integers(-1, 4, 5) if layered else None)


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join((*c[1], c[2])))
def test_derivatives(case, x64):
    """In texels, color and coordinates, of values that `test_values.py` compares with the oracle."""
    sizes, address, filter_mode, normalized, layered = case
    texels, border, coords, layer = draw(*case)
    sampler = jt.Sampler(address_mode=address, filter_mode=filter_mode, normalized_coords=normalized)
    build = (LAYERED if layered else CONSTRUCTORS)[len(sizes)]
    read = lambda texels, border, *coords: jt.sample(build(texels, border_color=border), coords, sampler, layer=layer)
    assert_derivatives(read, texels, border, *coords)


def test_every_composition_of_modes_to_the_third_order(x64):
    """Of a cubic texture, along a line in which the coordinate and the texels change, against the oracle."""
    sampler, step = jt.Sampler(address_mode="wrap", filter_mode="cubic"), 1e-3
    texels, direction = np.random.default_rng(0).normal(size=(2, 5, 1))
    along = lambda t: oracle.sample(
        texels + t * direction, (0.33 + t,), filter_mode="cubic", address_mode="wrap", dtype=np.float64
    )
    third = (along(2 * step) - 2 * along(step) + 2 * along(-step) - along(-2 * step)) / (2 * step**3)
    _, first, second = oracle.differences(along)
    modes = {"forward": lambda f: lambda t: jax.jvp(f, (t,), (1.0,))[1], "reverse": jax.grad}
    compositions = [c for n in (1, 2) for c in itertools.product(modes, repeat=n)] + [(mode,) * 3 for mode in modes]

    def derivative(composition):
        def run(texels, direction):
            line = lambda t: jt.sample(jt.texture1d(texels + t * direction), (0.33 + t,), sampler)[0]
            return functools.reduce(lambda f, mode: modes[mode](f), composition, line)(0.0)

        return run, texels, direction

    for composition, found in zip(compositions, computed(*map(derivative, compositions))):
        with named(*composition):
            row, expected = {1: ("first", first), 2: ("second", second), 3: ("second", third)}[len(composition)]
            assert_close(f"{row} differences", found, expected[0], np.abs(expected[0]))


def test_splat_derivatives(x64):
    values, sampler = np.random.default_rng(0).normal(size=(3, 2)), jt.Sampler(address_mode=("wrap", "border"))
    spread = lambda v, x, y: jt.splat(v, (x, y), (4, 5, 2), sampler).texels
    assert_derivatives(spread, values, np.float64([0.31, 0.52, 0.86]), np.float64([0.2, 0.55, 0.7]))


RAMP = np.array([1.0, 3.0, 7.0, 15.0], np.float32)
OUTSIDE = {np.inf: 0, -np.inf: 0, np.nan: 0}
BORDER = {"address_mode": "border"}
# Options of a sampler, and perhaps a border color, and slopes by positions in pixels.
SLOPES = {
    "centers take the right-hand slope, and under clamp the last has nothing there": ({}, {0.5: 2, 1.5: 4, 3.5: 0}),
    "outside under clamp": ({}, {-3: 0, 1e9: 0} | OUTSIDE),
    "over the seam of wrap": ({"address_mode": "wrap"}, {0: 1 - 15, np.nan: 0}),
    "over the seam of mirror": ({"address_mode": "mirror"}, {0: 0, np.inf: 0}),
    "over the seam of reflect": ({"address_mode": "reflect"}, {0.25: 1 - 3}),
    "over the edge of border": (BORDER, {0: 1, np.nan: 0}),
    "over the edges of a colored border": (BORDER, {0: 1 - 9, 3.5: 9 - 15, 6: 0, np.inf: 0}, 9.0),
    "the point filter": ({"filter_mode": "point"}, {1.7: 0}),
    "a cubic center is half the neighbors' difference": ({"filter_mode": "cubic"}, {1.5: 3, np.inf: 0}),
}


def test_slopes_at_kinks_and_borders():
    """d sample / dx of a 1D texture of one channel, in pixel coordinates."""

    def slope(options, table, color=None):
        sampler, x = jt.Sampler(normalized_coords=False, **options), np.float32([*table])
        read = lambda x: jt.sample(jt.texture1d(RAMP[:, None], border_color=color), (x,), sampler)[:, 0]
        return lambda x: jax.jvp(read, (x,), (jnp.ones_like(x),))[1], x

    found = computed(*(slope(*row) for row in SLOPES.values()))
    for (name, (_, table, *_)), values in zip(SLOPES.items(), found):
        with named(name):
            assert values.tolist() == [*table.values()]


def test_no_gradient_is_nan_for_special_coordinates():
    x = np.float32([np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0, -0.0, 1e-40])
    image = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)

    def total(image, border, x, y):
        reads = []
        for mode in ("clamp", "border", "wrap", "mirror", "reflect"):
            texture = jt.texture2d(image, border_color=border)
            reads.append(jt.sample(texture, (x, y), jt.Sampler(address_mode=mode)).sum())
        return sum(reads)

    run = jax.jit(jax.value_and_grad(total, (0, 1, 2, 3)))
    value, gradients = run(image, np.ones(2, np.float32), x, x[::-1])
    assert np.isfinite(value)
    assert all(np.isfinite(g).all() for g in gradients)


def test_integer_texels_have_no_gradient_and_normalized_float_coordinates_do():
    codes, point = np.uint8([[0], [255], [51]]), jt.Sampler(filter_mode="point")
    fraction = jt.Sampler(read_mode="normalized_float", normalized_coords=False)

    @jax.jit
    def run(codes, x):
        tangent = jax.jvp(lambda x: jt.sample(jt.texture1d(codes), (x,), point), (x,), (1.0,))
        read = lambda codes, x: jt.sample(jt.texture1d(codes), (x,), fraction)[0]
        return tangent, jax.grad(read, (0, 1), allow_int=True)(codes, 2 * x)

    (value, tangent), gradient = run(codes, 0.5)
    assert value.dtype == jnp.uint8
    assert tangent.dtype == gradient[0].dtype == jax.dtypes.float0
    assert_close("reordered", gradient[1], 1.0, 1)


def test_gradients_of_16_bit_texels_are_summed_in_float32():
    """4096 ones into one texel: summed in 16 bits they would stick at 2048 or 256."""
    x = np.full(4096, 0.5, np.float32)
    gradient = jax.grad(lambda t: jt.sample(jt.texture1d(t), (x,)).astype(jnp.float32).sum())
    for dtype in (jnp.float16, jnp.bfloat16):
        assert_exact(*computed((gradient, np.ones((1, 1), dtype))), np.full((1, 1), 4096), dtype)


def test_linear_transpose_is_splat():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-0.5, 1.5, (2, 4, 3)).astype(np.float32)
    values = rng.normal(size=(4, 3, 2)).astype(np.float32)
    image = rng.normal(size=(5, 6, 2)).astype(np.float32)
    read = lambda texels: jt.sample(jt.texture2d(texels), (x, y))
    spread = lambda values: jt.splat(values, (x, y), (5, 6, 2)).texels
    transposed = lambda function, like: lambda array: jax.linear_transpose(function, like)(array)[0]
    *both_ways, splatted, sampled = computed(
        (transposed(read, image), values), (transposed(spread, values), image), (spread, values), (read, image)
    )
    assert_trees_close("reordered", both_ways, [splatted, sampled])


def test_texels_that_are_gathered_and_fetched_and_colors_outside_have_gradients():
    image, x = np.arange(12, dtype=np.float32).reshape(3, 4, 1), np.float32([-1.0, 0.0, 2.0])
    texels, sampler = np.ones((4, 2), np.float32), jt.Sampler(address_mode="border", normalized_coords=False)
    gather = lambda image: jt.gather(jt.texture2d(image), (0.5, 0.5))[0] * 2.0
    fetch = lambda image: jt.fetch(jt.texture2d(image), (3, np.int32([1, 7]))).sum()
    outside = lambda color: jt.sample(jt.texture1d(texels, border_color=color), (x,), sampler).sum()
    calls = (gather, image), (fetch, image), (outside, np.float32(5))
    picked, fetched, color = computed(*((jax.grad(function), array) for function, array in calls))
    assert picked[2, 1, 0] == picked.sum() == 2.0
    assert fetched[1, 3, 0] == fetched.sum() == 1.0
    assert color == 2 * (1.0 + 0.5)


def test_the_linear_transpose_of_a_read_with_a_border_color():
    """In texels and color together, and in each of them."""
    sampler, rng = jt.Sampler(address_mode="border"), np.random.default_rng(0)
    x, y = rng.uniform(-0.2, 1.2, (2, 40)).astype(np.float32)
    read = lambda texels, color: jt.sample(jt.texture2d(texels, border_color=color), (x, y), sampler)

    def transposed(values):
        texels, color = np.zeros((5, 6, 2), values.dtype), np.zeros(2, np.float32)
        of_texels = jax.linear_transpose(lambda texels: read(texels, color), texels)(values)
        of_color = jax.linear_transpose(lambda color: read(texels, color), color)(values)
        together = jax.linear_transpose(read, texels, color)(values)
        return together, (*of_texels, *of_color), jax.vjp(read, texels, color)[1](values)

    values = rng.normal(size=(40, 2))
    for together, apart, expected in computed(*((transposed, values.astype(t)) for t in (np.float32, np.float16))):
        assert_trees_close("reordered", together, expected)
        assert_trees_close("reordered", apart, expected)


@pytest.mark.parametrize(
    ("sizes", "channels", "filter_mode", "shapes"),
    [((16, 12), 64, "linear", [(9, 11)] * 2), ((6, 5), 1, "cubic", [(1, 50), (40, 1)])],
)
def test_reverse_mode_keeps_texels_and_coordinates_only(sizes, channels, filter_mode, shapes):
    """No taps, no weights, no gathered values, and no coordinates as the grid that they span.

    Each array that is kept has the shape of an input.
    """
    build = CONSTRUCTORS[len(sizes)]
    read = lambda texels, *coords: jt.sample(build(texels), coords, jt.Sampler(filter_mode=filter_mode))
    args = [np.ones(shape, np.float32) for shape in ((*sizes, channels), *shapes)]
    kept = jax.tree.leaves(jax.eval_shape(lambda *args: jax.vjp(read, *args)[1], *args))
    assert sorted(leaf.shape for leaf in kept) == sorted(a.shape for a in args)
    assert all(leaf.dtype == jnp.float32 for leaf in kept)


def test_a_coordinate_that_broadcasts_gets_the_sum_of_its_samples():
    rng = np.random.default_rng(0)
    texels, weight = (rng.normal(size=shape).astype(np.float32) for shape in ((5, 6, 2), (3, 4, 2)))
    x, y = np.linspace(0.1, 0.9, 4, dtype=np.float32)[None, :], np.linspace(0.2, 0.8, 3, dtype=np.float32)[:, None]
    gradients = jax.grad(lambda t, x, y: (jt.sample(jt.texture2d(t), (x, y)) * weight).sum(), (1, 2))
    found, whole = computed((gradients, texels, x, y), (gradients, texels, *np.broadcast_arrays(x, y)))
    for axis in (0, 1):
        assert_close("sum", found[axis], whole[axis].sum(axis, keepdims=True), 100.0)
