"""Derivatives against the oracle: forward and reverse mode, first and second order, and the value at every kink.

Reads are piecewise polynomials, so that five-point differences of the oracle in float64 are accurate to 1e-6; positions
are drawn as cell + fraction in [0.1, 0.9], away from kinks. The kinks themselves are tested apart.
"""

import functools
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.tolerances import assert_close, assert_trees_close

CONSTRUCTORS = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}
LAYERED = {1: jt.texture1d_layered, 2: jt.texture2d_layered}
STEP = 3e-4
pytestmark = pytest.mark.compiled

FORWARD_OVER_FORWARD, FORWARD_OVER_REVERSE = "forward over forward", "forward over reverse"
REVERSE_OVER_FORWARD, REVERSE_OVER_REVERSE = "reverse over forward", "reverse over reverse"
# Every filter with every address mode, every dimension, both units; each row is one compiled program. Along one axis
# every composition of modes, and each of them with more axes too.
CASES = [
    # sizes, address modes, filter, normalized coordinates, layers, second derivatives
    (
        (7,),
        ("clamp",),
        "cubic",
        True,
        False,
        (FORWARD_OVER_FORWARD, FORWARD_OVER_REVERSE, REVERSE_OVER_FORWARD, REVERSE_OVER_REVERSE),
    ),
    ((5, 7), ("clamp", "border"), "linear", True, False, (REVERSE_OVER_REVERSE,)),
    ((5, 7), ("wrap", "mirror"), "linear", True, False, (REVERSE_OVER_FORWARD,)),
    ((6, 5), ("reflect", "clamp"), "linear", False, True, (FORWARD_OVER_REVERSE,)),
    ((5, 6), ("border", "wrap"), "cubic", False, False, (FORWARD_OVER_FORWARD,)),
    ((6, 7), ("mirror", "reflect"), "cubic", True, False, (FORWARD_OVER_REVERSE,)),
    ((3, 4, 5), ("wrap", "clamp", "border"), "linear", True, False, (FORWARD_OVER_REVERSE,)),
    ((5,), ("border",), "linear", False, True, (REVERSE_OVER_FORWARD, REVERSE_OVER_REVERSE)),
]


def draw(sizes, address, filter_mode, normalized, layered):
    """A texture, border color, coordinates and layer of one case, in float64."""
    rng = np.random.default_rng(zlib.crc32(repr((sizes, address, filter_mode)).encode()))
    layers = (3,) if layered else ()
    texels, border = rng.normal(size=(*layers, *sizes, 2)), rng.normal(size=2)
    scale = sizes[::-1] if normalized else (1,) * len(sizes)
    coords = tuple((rng.integers(-n, 2 * n, 5) + rng.uniform(0.6, 1.4, 5)) / s for n, s in zip(sizes[::-1], scale))
    return texels, border, coords, (rng.integers(-1, 4, 5) if layered else None)


def read_with(case, layer):
    """The library's read of `case` as a function of texels, border color and coordinates."""
    sizes, address, filter_mode, normalized, layered, _ = case
    sampler = jt.Sampler(address_mode=address, filter_mode=filter_mode, normalized_coords=normalized)
    build = (LAYERED if layered else CONSTRUCTORS)[len(sizes)]
    return lambda texels, border, *coords: jt.sample(build(texels, border_color=border), coords, sampler, layer=layer)


def oracle_with(case, layer):
    _, address, filter_mode, normalized, *_ = case
    options = {"filter_mode": filter_mode, "address_mode": address, "normalized_coords": normalized, "layer": layer}
    return lambda texels, border, *coords: oracle.sample(
        texels, coords, border_color=border, dtype=np.float64, **options
    )


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join((*c[1], c[2])))
def test_derivatives_equal_differences_of_the_oracle(case):
    """jvp, vjp, and the Hessian-vector product in compositions of modes."""
    texels, border, coords, layer = draw(*case[:-1])
    primals, compositions = (texels, border, *coords), case[-1]
    rng = np.random.default_rng(1)
    tangents = tuple(rng.normal(size=p.shape) for p in primals)
    read, reference = read_with(case, layer), oracle_with(case, layer)
    along = lambda t: reference(*(p + t * d for p, d in zip(primals, tangents)))
    middle, first, second = oracle.differences(along, STEP)
    cotangent = rng.normal(size=first.shape)
    inputs = tuple(range(len(primals)))
    dot = lambda a, b: sum(jnp.vdot(x, y) for x, y in zip(a, b))

    @jax.jit
    def derivatives(primals, tangents, cotangent):
        push = lambda *p: jax.jvp(read, p, tangents)
        pull = lambda *p: dot(jax.grad(lambda *p: jnp.vdot(cotangent, read(*p)), inputs)(*p), tangents)
        contracted = lambda *p: jnp.vdot(cotangent, push(*p)[1])
        found = {}
        if FORWARD_OVER_FORWARD in compositions:
            (value, pushed), (_, found[FORWARD_OVER_FORWARD]) = jax.jvp(push, primals, tangents)
        else:
            value, pushed = push(*primals)
        for name, once in {REVERSE_OVER_FORWARD: contracted, REVERSE_OVER_REVERSE: pull}.items():
            if name in compositions:
                found[name] = dot(jax.grad(once, inputs)(*primals), tangents)
        if FORWARD_OVER_REVERSE in compositions:
            pulled, found[FORWARD_OVER_REVERSE] = jax.jvp(pull, primals, tangents)
        else:
            pulled = pull(*primals)
        return {"value": value, "forward": pushed, "reverse": pulled, **found}

    expected = {
        "value": ("float64", middle),
        "forward": ("first differences", first),
        "reverse": ("first differences", np.vdot(cotangent, first)),
    }
    for name in compositions:
        wanted = second if name == FORWARD_OVER_FORWARD else np.vdot(cotangent, second)
        expected[name] = "second differences", wanted
    got = derivatives(primals, tangents, cotangent)
    assert got.keys() == expected.keys()
    for name, (row, value) in expected.items():
        assert_close(row, got[name], value, 1 + np.abs(value))


@pytest.mark.usefixtures("x64")
def test_third_order_in_both_modes():
    """A cubic texture has three derivatives; the coordinate and a texel each take part."""
    sampler, step = jt.Sampler(address_mode="wrap", filter_mode="cubic"), 1e-3
    texels, direction = np.random.default_rng(0).normal(size=(2, 5, 1))
    along = lambda t: oracle.sample(
        texels + t * direction, (0.33 + t,), filter_mode="cubic", address_mode="wrap", dtype=np.float64
    )
    expected = (along(2 * step) - 2 * along(step) + 2 * along(-step) - along(-2 * step)) / (2 * step**3)

    @jax.jit
    def thirds(texels, direction):
        line = lambda t: jt.sample(jt.texture1d(texels + t * direction), (0.33 + t,), sampler)[0]
        pushed = lambda f: lambda t: jax.jvp(f, (t,), (1.0,))[1]
        return pushed(pushed(pushed(line)))(0.0), jax.grad(jax.grad(jax.grad(line)))(0.0)

    assert_close("second differences", np.array(thirds(texels, direction)), np.full(2, expected), np.abs(expected))


@pytest.mark.usefixtures("x64")
def test_splat_derivatives():
    """In values and coordinates, by duality with the read: <splat(v, c), T> = <v, sample(T, c)> for every T."""
    rng = np.random.default_rng(0)
    values, x, y = rng.normal(size=(3, 2)), np.float64([0.31, 0.52, 0.9]), np.float64([0.2, 0.55, 0.7])
    texels, sampler = rng.normal(size=(4, 5, 2)), jt.Sampler(address_mode=("wrap", "border"))
    spread = lambda v, x, y: jnp.vdot(jt.splat(v, (x, y), (4, 5, 2), sampler).texels, texels)
    read = lambda v, x, y: jnp.vdot(jt.sample(jt.texture2d(texels), (x, y), sampler), v)

    @jax.jit
    def derivatives(v, x, y):
        args, ones = (v, x, y), tuple(map(jnp.ones_like, (v, x, y)))
        results = []
        for f in (spread, read):
            gradient = jax.grad(f, (0, 1, 2))
            forward = lambda *a, f=f: jax.jvp(f, a, ones)[1]
            results.append(
                (gradient(*args), jax.jvp(gradient, args, ones)[1], forward(*args), jax.grad(forward)(*args))
            )
        return results

    assert_trees_close("float64", *derivatives(values, x, y))


@functools.cache
def slope_of_ramp(border_color=None, **options):
    """d sample / dx of a 1D texture of one channel, in pixel coordinates, as a function of x."""
    sampler = jt.Sampler(normalized_coords=False, **options)
    texture = jt.texture1d(RAMP[:, None], border_color=border_color)
    read = lambda x: jt.sample(texture, (x,), sampler)[..., 0]
    return jax.jit(lambda x: jax.jvp(read, (x,), (jnp.ones_like(x),))[1])


RAMP = np.array([1.0, 3.0, 7.0, 15.0], np.float32)
SLOPES = [
    # name, position, options, slope
    ("a center takes the right-hand slope", 1.5, {}, 4.0),
    ("the last center under clamp has nothing to its right", 3.5, {}, 0.0),
    ("the first center under clamp takes its right", 0.5, {}, 2.0),
    ("outside under clamp", -3.0, {}, 0.0),
    ("far outside under clamp", 1e9, {}, 0.0),
    ("infinity under clamp", np.inf, {}, 0.0),
    ("minus infinity under clamp", -np.inf, {}, 0.0),
    ("NaN under clamp", np.nan, {}, 0.0),
    ("NaN under wrap", np.nan, {"address_mode": "wrap"}, 0.0),
    ("NaN under border", np.nan, {"address_mode": "border"}, 0.0),
    ("infinity under mirror", np.inf, {"address_mode": "mirror"}, 0.0),
    ("over the seam of wrap", 0.0, {"address_mode": "wrap"}, 1.0 - 15.0),
    ("over the seam of mirror", 0.0, {"address_mode": "mirror"}, 0.0),
    ("over the seam of reflect", 0.25, {"address_mode": "reflect"}, 1.0 - 3.0),
    ("over the edge of border", 0.0, {"address_mode": "border"}, 1.0),
    ("over the edge of a colored border", 0.0, {"address_mode": "border", "border_color": 9.0}, 1.0 - 9.0),
    ("the last center with a border", 3.5, {"address_mode": "border", "border_color": 9.0}, 9.0 - 15.0),
    ("outside a border", 6.0, {"address_mode": "border", "border_color": 9.0}, 0.0),
    ("infinity outside a border", np.inf, {"address_mode": "border", "border_color": 9.0}, 0.0),
    ("the point filter", 1.7, {"filter_mode": "point"}, 0.0),
    ("a cubic center is half the neighbors' difference", 1.5, {"filter_mode": "cubic"}, 3.0),
    ("infinity under clamp, cubic", np.inf, {"filter_mode": "cubic"}, 0.0),
]


@pytest.mark.parametrize(("position", "options", "expected"), [s[1:] for s in SLOPES], ids=[s[0] for s in SLOPES])
def test_slopes_at_kinks_and_borders(position, options, expected):
    assert slope_of_ramp(**options)(np.float32(position)) == expected


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
    codes = np.uint8([[0], [255], [51]])
    point = jt.Sampler(filter_mode="point")
    read = lambda x: jt.sample(jt.texture1d(codes), (x,), point)
    value, tangent = jax.jit(lambda x: jax.jvp(read, (x,), (1.0,)))(0.5)
    assert value.dtype == jnp.uint8
    assert tangent.dtype == jax.dtypes.float0
    fraction = jt.Sampler(read_mode="normalized_float", normalized_coords=False)
    read = lambda codes, x: jt.sample(jt.texture1d(codes), (x,), fraction)[0]
    gradient = jax.jit(jax.grad(read, (0, 1), allow_int=True))(codes, 1.0)
    assert gradient[0].dtype == jax.dtypes.float0
    assert_close("reordered", gradient[1], 1.0, 1)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_gradients_of_16_bit_texels_are_summed_in_float32(dtype):
    """4096 ones into one texel: summed in 16 bits they would stick at 2048 or 256."""
    x = np.full(4096, 0.5, np.float32)
    read = lambda texels: jt.sample(jt.texture1d(texels), (x,)).astype(jnp.float32).sum()
    gradient = jax.jit(jax.grad(read))(np.ones((1, 1), dtype))
    assert gradient.dtype == dtype
    assert float(gradient[0, 0]) == 4096


def test_linear_transpose_is_splat():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-0.5, 1.5, (2, 4, 3)).astype(np.float32)
    values = rng.normal(size=(4, 3, 2)).astype(np.float32)
    image = rng.normal(size=(5, 6, 2)).astype(np.float32)
    read = lambda texels: jt.sample(jt.texture2d(texels), (x, y))
    spread = lambda values: jt.splat(values, (x, y), (5, 6, 2)).texels

    @jax.jit
    def both_ways(values, image):
        return jax.linear_transpose(read, image)(values)[0], jax.linear_transpose(spread, values)(image)[0]

    transposed, back = both_ways(values, image)
    np.testing.assert_array_equal(transposed, spread(values))
    np.testing.assert_array_equal(back, read(image))


def test_gather_and_fetch_are_differentiable_in_texels():
    image = np.arange(12, dtype=np.float32).reshape(3, 4, 1)
    gather = lambda image: jt.gather(jt.texture2d(image), (0.5, 0.5))[0] * 2.0
    fetch = lambda image: jt.fetch(jt.texture2d(image), (3, np.int32([1, 7]))).sum()
    picked, fetched = map(np.asarray, jax.jit(lambda image: (jax.grad(gather)(image), jax.grad(fetch)(image)))(image))
    assert picked[2, 1, 0] == 2.0
    assert picked.sum() == 2.0
    assert fetched[1, 3, 0] == 1.0
    assert fetched.sum() == 1.0


def test_a_scalar_border_color_collects_what_falls_outside():
    x = np.float32([-1.0, 0.0, 2.0])
    texels, sampler = np.ones((4, 2), np.float32), jt.Sampler(address_mode="border", normalized_coords=False)
    read = lambda border: jt.sample(jt.texture1d(texels, border_color=border), (x,), sampler).sum()
    assert jax.jit(jax.grad(read))(5.0) == 2 * (1.0 + 0.5)


@pytest.mark.parametrize("wrt", [(0,), (0, 1), (1,)])
def test_the_transpose_of_a_pullback_is_the_tangent(wrt):
    rng = np.random.default_rng(6)
    args = rng.normal(size=(5, 2)).astype(np.float32), np.float32([0.3, 0.72, 0.55])
    tangents = tuple(rng.normal(size=args[k].shape).astype(np.float32) for k in wrt)

    def read(*some):
        texels, x = (dict(zip(wrt, some)).get(k, args[k]) for k in range(2))
        return jt.sample(jt.texture1d(texels), (x,))

    @jax.jit
    def both(some, tangents):
        values, pullback = jax.vjp(read, *some)
        return jax.linear_transpose(pullback, values)(tangents)[0], jax.jvp(read, some, tangents)[1]

    assert_trees_close("reordered", *both(tuple(args[k] for k in wrt), tangents))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16])
def test_the_linear_transpose_of_a_read_with_a_border_color(dtype):
    """In texels and color together, and in each of them."""
    sampler, rng = jt.Sampler(address_mode="border"), np.random.default_rng(0)
    x, y = rng.uniform(-0.2, 1.2, (2, 40)).astype(np.float32)
    values, zeros = rng.normal(size=(40, 2)).astype(dtype), (np.zeros((5, 6, 2), dtype), np.zeros(2, np.float32))
    read = lambda texels, color: jt.sample(jt.texture2d(texels, border_color=color), (x, y), sampler)

    @jax.jit
    def transposed(values):
        texels, color = zeros
        of_texels = jax.linear_transpose(lambda texels: read(texels, color), texels)(values)
        of_color = jax.linear_transpose(lambda color: read(texels, color), color)(values)
        together = jax.linear_transpose(read, texels, color)(values)
        return together, (*of_texels, *of_color), jax.vjp(read, texels, color)[1](values)

    together, apart, expected = transposed(values)
    assert_trees_close("reordered", together, expected)
    assert_trees_close("reordered", apart, expected)


def kept_by_reverse_mode(read, *args):
    """The shapes and dtypes of the arrays that reverse mode keeps."""
    return jax.tree.leaves(jax.eval_shape(lambda *args: jax.vjp(read, *args)[1], *args))


RESIDUALS = [
    # sizes, channels, filter
    ((16, 12), 4, "linear"),
    ((16, 12), 64, "linear"),
    ((6, 5, 4), 1, "cubic"),
]


@pytest.mark.parametrize(("sizes", "channels", "filter_mode"), RESIDUALS)
def test_reverse_mode_keeps_texels_and_coordinates_only(sizes, channels, filter_mode):
    """No taps, no weights, no gathered values: each array that is kept has the shape of an input."""
    build = CONSTRUCTORS[len(sizes)]
    read = lambda texels, *coords: jt.sample(build(texels), coords, jt.Sampler(filter_mode=filter_mode))
    texels, coords = np.ones((*sizes, channels), np.float32), [np.ones((9, 11), np.float32)] * len(sizes)
    kept = kept_by_reverse_mode(read, texels, *coords)
    allowed = [texels.shape] + [c.shape for c in coords]
    assert sorted(leaf.shape for leaf in kept) == sorted(allowed)
    assert all(leaf.dtype == jnp.float32 for leaf in kept)


def test_broadcast_coordinates_are_kept_small():
    """Coordinates of shapes (1, W) and (H, 1) are kept so, not as the grid that they span."""
    read = lambda texels, x, y: jt.sample(jt.texture2d(texels), (x, y))
    args = [np.ones(shape, np.float32) for shape in ((8, 8, 3), (1, 50), (40, 1))]
    assert sorted(leaf.shape for leaf in kept_by_reverse_mode(read, *args)) == sorted(a.shape for a in args)


def test_a_coordinate_that_broadcasts_gets_the_sum_of_its_samples():
    rng = np.random.default_rng(0)
    texture = jt.texture2d(rng.normal(size=(5, 6, 2)).astype(np.float32))
    weight = rng.normal(size=(3, 4, 2)).astype(np.float32)
    x, y = np.linspace(0.1, 0.9, 4, dtype=np.float32)[None, :], np.linspace(0.2, 0.8, 3, dtype=np.float32)[:, None]
    gradients = jax.jit(jax.grad(lambda x, y: (jt.sample(texture, (x, y)) * weight).sum(), (0, 1)))
    whole = list(map(np.asarray, gradients(*np.broadcast_arrays(x, y))))
    of_x, of_y = gradients(x, y)
    assert_close("sum", of_x, whole[0].sum(0, keepdims=True), 100.0)
    assert_close("sum", of_y, whole[1].sum(1, keepdims=True), 100.0)
