"""Functions of one sample are `jax.vmap`, by arrays and in kernels, compiled as C++ or run by a card."""

import contextlib
import functools
import warnings
from typing import NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.cuda.build import launch
from jaxtex._engine.cuda.programs import tiles
from tests.support import host_kernels
from tests.support.device_parts import COLLECTIVE, lowered_in_parts
from tests.support.host_kernels import kernels_on_cpu
from tests.support.tolerances import assert_close, assert_exact

pytestmark = pytest.mark.usefixtures("default_promotion")

RNG = np.random.default_rng(5)
SAMPLES = 24
X, Y = (RNG.uniform(0.02, 0.98, SAMPLES).astype(np.float32) for _ in range(2))
IMAGE = RNG.uniform(size=(20, 30, 3)).astype(np.float32)
BYTES = RNG.integers(0, 256, (20, 30, 4)).astype(np.uint8)
VOLUME = RNG.uniform(size=(9, 10, 11, 1)).astype(np.float32)
CHAIN = jt.build_mipmaps(jt.texture2d(IMAGE))
KEYS = jax.random.split(jax.random.key(9), SAMPLES)
KNOTS = np.sort(RNG.uniform(size=30)).astype(np.float32)
MATRIX = RNG.normal(size=(3, 3)).astype(np.float32)
TABLE = RNG.normal(size=1000).astype(np.float32)

LINEAR = jt.Sampler()
HARDWARE = jt.Sampler(arithmetic="hardware", address_mode="wrap")
PIXELS = jt.Sampler(normalized_coords=False, arithmetic="hardware")
NORMALIZED = jt.Sampler(read_mode="normalized_float", address_mode="border")
BORDER = jt.Sampler(address_mode="border")
CUBIC = jt.Sampler(filter_mode="cubic", address_mode="mirror")
TRILINEAR = jt.Sampler(mipmap_filter_mode="linear")
REPEATED = jt.Sampler(address_mode="wrap", mipmap_filter_mode="linear")
WIDE = {"ddx": (0.1, 0.02), "ddy": (0.01, 0.2)}


class Case(NamedTuple):
    """A function of one sample, its arguments, their axes, and those in which it is differentiated."""

    function: object
    args: tuple
    axes: tuple = (0, 0, None)
    wrt: tuple = (0, 1, 2)


def read(x, y, image, sampler=LINEAR):
    return jt.sample(jt.texture2d(image), (x, y), sampler)


def looped(x, y, image):
    """Reads whose places depend on earlier reads, in a loop."""

    def turn(k, total):
        color = read(x + 0.01 * k + 0.001 * total[0], y, image)
        return total + color * jnp.asarray(TABLE)[37 * k]

    return jax.lax.fori_loop(0, 20, turn, jnp.zeros(3))


def ended_early(x, y, image):
    """A loop that ends for each sample alone, around one of a computed length."""

    def turn(state):
        k, total = state
        add = lambda j, a: a + read(x + 0.1 * a, y + 0.01 * j, image)[0]
        return k + 1, jax.lax.fori_loop(0, (x * 5).astype(int), add, total)

    return jax.lax.while_loop(lambda s: (s[0] < 9) & (s[1] < 3), turn, (0, jnp.float32(0)))


def branched(x, y, image):
    place = (y * 19).astype(int), (x * 29).astype(int)
    window = lambda: jax.lax.dynamic_slice(image, (*place, 0), (2, 2, 3)).sum((0, 1))
    return jax.lax.switch((x * 3).astype(int), [lambda: 2 * image[place], window, lambda: read(x, y, image)])


def step_of_newton(x, y, image):
    distance = lambda s: read(x + 0.1 * s, y, image)[0]
    start = jnp.float32(0.3)
    return start - distance(start) / (jax.grad(distance)(start) + 3)


def scanned(x, y, image):
    turn = jax.checkpoint(lambda c, k: (jnp.sin(c + read(x + 0.01 * k, y, image)), None))
    return jax.lax.scan(turn, jnp.zeros(3), jnp.arange(40.0))[0]


def drawn(x, y, image, key):
    more = jax.random.normal(jax.random.fold_in(key, 3), (3,)) + jax.random.bernoulli(jax.random.split(key)[1])
    return jt.sample(jt.texture2d(image), (x, y), key=key) * more


def small(x, y, matrix):
    product = matrix @ matrix.T
    return jnp.linalg.norm(matrix[(x * 3).astype(int)]), jnp.cross(matrix[0], matrix[1] + x), jnp.sort(product[0]) * y


def solved(x, y, matrix):
    """Equations with a matrix of each sample, whose rows have to be exchanged, and with a triangular one."""
    whole = jnp.roll(matrix + (2 + x) * jnp.eye(3), 1, 0)
    singular = jnp.linalg.det(whole[:2, :2] * 0), jnp.linalg.slogdet(jnp.pad(whole, (0, 1)) + jnp.eye(4) * y)[1]
    triangular = jax.scipy.linalg.solve_triangular(whole + 2 * jnp.eye(3), whole[1], trans=1)
    by_factors = jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(whole), matrix[2])
    return jnp.linalg.inv(whole), jnp.linalg.solve(whole, jnp.stack([x, y, x])), triangular, by_factors, singular


@jax.custom_jvp
def of_sine(a):
    return jnp.sin(a)


of_sine.defjvp(lambda primals, tangents: (of_sine(*primals), 3 * jnp.cos(primals[0]) * tangents[0]))


@jax.custom_vjp
def of_tangent(a):
    return jnp.tanh(a)


of_tangent.defvjp(lambda a: (jnp.tanh(a), a), lambda a, g: (2 * g * jnp.cos(a),))


def inner(x, y, image):
    """A function of one sample that calls another one."""
    return jt.fused_vmap(lambda k: read(x + k, y, image))(0.1 * jnp.arange(3.0)).sum(0)


def several(x, y, image):
    color = read(x, y, image)
    return {"bytes": (x * 255).astype(jnp.uint8), "bool": x > y, "pair": (color.astype(jnp.bfloat16), jnp.int32(3))}


def on_knots(x, y, image, knots):
    return jt.sample(jt.texture2d(image, knots=(knots, None)), (x, y))


def layer(x, y, layers):
    return jt.sample(jt.texture2d_layered(layers), (x, y), layer=(x * 4).astype(int))


def rays(x, y, volume):
    ends = jnp.stack([x * 10, y * 9, x]), jnp.stack([y * 10, x * 9, 8 + y])
    return jt.rays.line_integral(volume, *ends, num_samples=8)


def taps(x, y, image):
    points = jnp.stack([x, y]), jnp.stack([y, x])
    return jt.nn.sample_weighted(jt.texture2d(image), points, jnp.stack([x, 1 - x]))


def narrow(x, y, image, matrix):
    """Numbers of 16 bits: products, functions, comparisons and integers of them."""
    color = read(x, y, image)
    mixed = jnp.where(color > matrix[0], color @ matrix, jnp.tanh(color) * matrix[1]) - jnp.maximum(color.sum(), 0.5)
    return mixed * jnp.round(4 * color).astype(np.int32).sum().astype(matrix.dtype)


def texels(x, y, image):
    texture, place = jt.texture2d(image), ((x * 30).astype(int), (y * 22).astype(int))
    surface = jt.surface_read(texture, ((x * 29).astype(int), (y * 19).astype(int)), boundary_mode="zero")
    return jt.fetch(texture, place), jt.gather(texture, (x, y), component=1), surface


CASES = {
    "linear": Case(read, (X, Y, IMAGE)),
    "cubic of a volume": Case(lambda x, y, v: jt.sample(jt.texture3d(v), (x, y, x * y), CUBIC), (X, Y, VOLUME)),
    "limited": Case(functools.partial(read, sampler=jt.Sampler(filter_mode="cubic", limit="taps")), (X, Y, IMAGE)),
    "float16": Case(read, (X, Y, IMAGE.astype(np.float16))),
    "bfloat16": Case(read, (X, Y, jnp.asarray(IMAGE, jnp.bfloat16))),
    "numbers of float16": Case(
        narrow, (X, Y, IMAGE.astype(np.float16), MATRIX.astype(np.float16)), (0, 0, None, None), (0, 1, 2, 3)
    ),
    "numbers of bfloat16": Case(
        narrow, (X, Y, jnp.asarray(IMAGE, jnp.bfloat16), jnp.asarray(MATRIX, jnp.bfloat16)), (0, 0, None, None), (2, 3)
    ),
    "bytes": Case(functools.partial(read, sampler=NORMALIZED), (X, Y, BYTES), wrt=(0, 1)),
    "hardware": Case(functools.partial(read, sampler=HARDWARE), (X, Y, IMAGE)),
    "hardware in texels": Case(functools.partial(read, sampler=PIXELS), (30 * X, 20 * Y, IMAGE)),
    "a texture each": Case(
        read, (X[:5], Y[:5], IMAGE + np.arange(5, dtype=np.float32)[:, None, None, None]), (0, 0, 0)
    ),
    "layers": Case(layer, (X, Y, RNG.uniform(size=(4, 10, 12, 2)).astype(np.float32))),
    "cubemap": Case(
        lambda x, y, c: jt.sample(jt.cubemap(c), (x - 0.5, y - 0.5, jnp.float32(0.3))),
        (X, Y, RNG.uniform(size=(6, 8, 8, 3)).astype(np.float32)),
    ),
    "levels": Case(lambda x, y, chain: jt.sample(chain, (x, y), TRILINEAR, lod=2 * x), (X, Y, CHAIN)),
    "a footprint": Case(
        lambda x, y, chain: jt.sample(chain, (x, y), jt.Sampler(max_anisotropy=4), **WIDE), (X, Y, CHAIN), wrt=()
    ),
    "a footprint that repeats": Case(
        lambda x, y, chain: jt.sample(
            chain, (1.7 * x, y), jt.Sampler(max_anisotropy=4, address_mode=("wrap", "mirror")), **WIDE
        ),
        (X, Y, CHAIN),
    ),
    "levels in a loop": Case(
        lambda x, y, chain: jax.lax.fori_loop(
            0, 3, lambda k, a: a + jt.sample(chain, (x + 0.7 * k, y), REPEATED, lod=k + x), jnp.zeros(3)
        ),
        (X, Y, CHAIN),
    ),
    "a footprint, hardware": Case(
        lambda x, y, chain: jt.sample(chain, (x, y), jt.Sampler(max_anisotropy=4, arithmetic="hardware"), **WIDE),
        (X, Y, CHAIN),
        wrt=(),
    ),
    "knots": Case(on_knots, (X, Y, IMAGE, KNOTS), (0, 0, None, None), (0, 1, 2, 3)),
    "texels": Case(texels, (X, Y, IMAGE), wrt=(2,)),
    "derivatives": Case(lambda x, y, image: jt.sample_with_derivatives(jt.texture2d(image), (x, y)), (X, Y, IMAGE)),
    "a ray": Case(rays, (X, Y, VOLUME)),
    "weighted": Case(taps, (X, Y, IMAGE)),
    "keys": Case(drawn, (X, Y, IMAGE, KEYS), (0, 0, None, 0), (2,)),
    "a loop": Case(looped, (X, Y, IMAGE)),
    "a loop over a border": Case(
        lambda x, y, v: jax.lax.fori_loop(
            0, 20, lambda k, a: a + jt.sample(jt.texture3d(v), (0.1 * k - x, y, x), BORDER), jnp.zeros(1)
        ),
        (X, Y, VOLUME),
    ),
    "early ends": Case(ended_early, (X, Y, IMAGE), wrt=()),
    "branches": Case(branched, (X, Y, IMAGE)),
    "a slope inside": Case(step_of_newton, (X, Y, IMAGE)),
    "checkpoints": Case(scanned, (X, Y, IMAGE)),
    "rows of an array": Case(
        lambda x, y, image: jax.lax.scan(lambda c, row: (c + 0.01 * x * row[0, 0] * c.sum(), c[0]), jnp.ones(3), image),
        (X, Y, IMAGE),
        wrt=(0, 2),
    ),
    "small arrays": Case(small, (X, Y, MATRIX)),
    "equations": Case(solved, (X, Y, MATRIX)),
    "a table": Case(lambda x, y, table: table[(x * 1000).astype(int)] * y, (X, Y, TABLE)),
    "custom_jvp": Case(lambda x, y, image: of_sine(read(x, y, image)), (X, Y, IMAGE)),
    "custom_vjp": Case(lambda x, y, image: of_tangent(read(x, y, image)), (X, Y, IMAGE)),
    "another one inside": Case(inner, (X, Y, IMAGE)),
    "several results": Case(several, (X, Y, IMAGE), wrt=()),
    "computed once": Case(lambda x, y, image: read(x, y, 2 * image + image[0, 0]), (X, Y, IMAGE)),
}
# One of each kind is tested by default.
QUICK = (
    "linear",
    "numbers of float16",
    "hardware",
    "a texture each",
    "keys",
    "a loop",
    "branches",
    "small arrays",
    "texels",
    "several results",
)
BY_ARRAYS = {"custom_vjp"}


def value_and_gradients(function, wrt):
    """The results of a function, and the gradients of a sum over its floating ones."""

    def loss(*args):
        wide = (jnp.asarray(a, jnp.promote_types(a.dtype, jnp.float32)) for a in jax.tree.leaves(function(*args)))
        floating = (a.ravel() for a in wide if jnp.issubdtype(a.dtype, jnp.inexact))
        return sum((a * jnp.sin(jnp.arange(a.size))).sum() for a in floating)

    return jax.jit(lambda *args: (function(*args), jax.grad(loss, wrt)(*args) if wrt else ()))


def kernels_of(run):
    """The names of the kernels that run meanwhile, and what `run` returns. A refused kernel is an error."""
    names, on_card = [], jax.default_backend() == "gpu"
    run_kernel = launch.run if on_card else host_kernels.run

    def noted(kernel, *args):
        names.append(kernel.name)
        return run_kernel(kernel, *args)

    with contextlib.nullcontext() if on_card else kernels_on_cpu(), warnings.catch_warnings():
        warnings.simplefilter("error")
        with mock.patch.object(launch, "run", noted):
            return names, jax.block_until_ready(run())


def compare(result, expected, gradients=False):
    for got, want in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        if jnp.issubdtype(want.dtype, jnp.inexact):
            scale = max(float(np.abs(np.asarray(want)).max()), 1.0) if want.size else 1.0
            row = "derivatives" if gradients else "float32"
            if want.dtype.itemsize == 2:  # both are rounded
                row, scale = want.dtype.name, 2 * scale
            assert_close(row, got, want, scale)
        else:
            assert_exact(got, want)


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_kernels_compute_what_vmap_does(name):
    case = CASES[name]
    values, gradients = value_and_gradients(jax.vmap(case.function, case.axes), case.wrt)(*case.args)
    mapped = value_and_gradients(jt.fused_vmap(case.function, case.axes), case.wrt)
    names, (found, slopes) = kernels_of(lambda: mapped(*case.args))
    compare(found, values)
    compare(slopes, gradients, gradients=True)
    wanted = {"fused_samples"} | ({"fused_adjoint"} if case.wrt and name not in BY_ARRAYS else set())
    assert wanted <= set(names)


def test_hardware_arithmetic_has_the_bits_of_a_read():
    function = functools.partial(read, sampler=HARDWARE)
    _, found = kernels_of(lambda: jax.jit(jt.fused_vmap(function, (0, 0, None)))(X, Y, IMAGE))
    assert_exact(found, jt.sample(jt.texture2d(IMAGE), (X, Y), HARDWARE))


TWICE = {
    "jvp": lambda f, *args: jax.jvp(f, args, args),
    "second": lambda f, *args: jax.jvp(jax.grad(lambda *a: (f(*a) ** 2).sum(), (0, 1, 2)), args, args),
    "gradient of a gradient": lambda f, x, y, image: jax.grad(
        lambda image: (jax.grad(lambda x: (f(x, y, image) ** 2).sum())(x) ** 2).sum()
    )(image),
    "hessian": lambda f, x, y, image: jax.hessian(lambda s: (f(s * x, y, image) ** 2).sum())(jnp.float32(0.9)),
    "linearize": lambda f, *args: jax.linearize(f, *args)[1](*args),
    "checkpoint": lambda f, *args: jax.grad(jax.checkpoint(lambda *a: f(*a).sum()), (0, 1, 2))(*args),
    "jacobians": lambda f, x, y, image: [j(lambda y: f(x[:3], y, image))(y[:3]) for j in (jax.jacfwd, jax.jacrev)],
    "a batch of what is whole": lambda f, x, y, image: jax.vmap(
        jax.grad(lambda x, image: (f(x, y, image) ** 2).sum(), (0, 1)), (None, 0)
    )(x, jnp.stack([image, image + 1])),
    "a scan": lambda f, x, y, image: jax.grad(
        lambda image: jax.lax.scan(lambda c, _: (c + f(x, y, image + c[:1, None]), None), 0 * f(x, y, image), length=3)[
            0
        ].sum()
    )(image),
    "no sample": lambda f, x, y, image: (f(x[:0], y[:0], image), jax.grad(lambda i: f(x[:0], y[:0], i).sum())(image)),
    "one sample": lambda f, x, y, image: f(x[:1], y[:1], image),
}


@pytest.mark.parametrize(
    "name", [n if n in ("second", "a scan") else pytest.param(n, marks=pytest.mark.slow) for n in TWICE]
)
def test_transformations(name):
    function = lambda x, y, image: jnp.tanh(read(x, y, image))
    run = lambda mapped: jax.jit(lambda *args: TWICE[name](mapped(function, (0, 0, None)), *args))
    _, found = kernels_of(lambda: run(jt.fused_vmap)(X, Y, IMAGE))
    compare(found, run(jax.vmap)(X, Y, IMAGE), gradients=True)


def test_linear_in_texels():
    linear = lambda mapped: lambda image: mapped(read, (0, 0, None))(X, Y, image)
    ones = jnp.ones((SAMPLES, 3))
    _, found = kernels_of(lambda: jax.jit(jax.linear_transpose(linear(jt.fused_vmap), IMAGE))(ones))
    compare(found, jax.linear_transpose(linear(jax.vmap), IMAGE)(ones), gradients=True)


def test_grids_and_axes():
    """Grids of many axes, sizes that fill no tile, arguments that broadcast, and results with channels first."""

    def five(i, j, k, m, n, image):
        return image[i, j] * k + m - n

    def on_grid(i, j, a, b):
        return a * b + i - j

    def run(image, x, y):
        return (
            jt.fused_map(five, (2, 3, 2, 5, 3))(image),
            jt.fused_map(on_grid, (4, 6), in_axes=0)(x.reshape(4, 6), y[:6].reshape(1, 6)),
            jt.fused_map(lambda i, j, image: image[i, j], (19, 29), out_axes=1)(image),
            jt.fused_vmap(lambda x, y: (x[0] * y, x.sum()), (1, 0), (1, 0))(jnp.stack([x, y]), jnp.stack([y, x, y], 1)),
            jt.fused_vmap(lambda x: jt.fused_vmap(lambda y: read(x, y, image))(y[:5]))(x),
            jt.fused_map(lambda image: image[3, 4], ())(image),
        )

    names, found = kernels_of(lambda: jax.jit(run)(IMAGE, X, Y))
    assert names == ["fused_samples"] * 6, "nested calls are one kernel"
    i, j, k, m, n = np.ogrid[:2, :3, :2, :5, :3]
    expected = (
        IMAGE[:2, :3, None, None, None] * k[..., None] + (m - n + 0 * i * j)[..., None],
        X.reshape(4, 6) * Y[:6] + np.arange(4)[:, None] - np.arange(6),
        np.moveaxis(IMAGE[:19, :29], -1, 0),
        (np.stack([X * Y, X * X, X * Y]), X + Y),
        jt.sample(jt.texture2d(IMAGE), (X[:, None], Y[:5][None])),
        IMAGE[3, 4],
    )
    compare(found, jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), expected))


def weights_in_loops(y, x, weights, bias, table):
    """Numbers that all samples share, at known places, and of a table at computed ones."""
    start = jnp.stack([x, y, x - y, x + y]).astype(jnp.float32) / 16

    def layer(k, carry):
        return jnp.tanh(carry @ weights[:, :4] + bias[k] * table[(3 * x + k) % 40])

    return jax.lax.fori_loop(0, 20, layer, start) @ weights


# Functions of pixels, whose lanes add to the same texels: all, some, or few; and in a branch that some take.
SHARED = {
    "pixels": lambda y, x, image: read(0.9 * x / 32 + 0.1 * y / 16 + 0.01, y / 17 + 0.02, image),
    "the same": lambda y, x, image: read(x / 32, y / 16, image) + image[y % 3, 2],
    "few texels": lambda y, x, image: read(0.1 + x / 320, 0.2 + y / 100, image),
    "one texel": lambda y, x, image: image[(0 * x + 3), y // 40] * x,
    "anywhere": lambda y, x, image: read((x * 7919 % 32) / 32, (y * 104729 + x * 31) % 16 / 16, image, BORDER),
    "a branch": lambda y, x, image: jax.lax.cond(x % 3 > 0, lambda: image[y, x // 2], lambda: 2 * image[x // 2, y]),
}


@pytest.mark.parametrize("least", [1, tiles.LEAST_THREADS], ids=["several samples", "one sample"])
def test_samples_that_add_to_the_same_numbers(least):
    """Threads of one or of several samples, and their warps, add up what goes to one place; at edges of a grid, too."""
    images = [RNG.uniform(-1, 1, (20, 24, 4)).astype(np.float32)] * len(SHARED)
    numbers = [RNG.normal(size=shape).astype(np.float32) / 2 for shape in ((4, 6), (20,), (40,))]
    cotangent = RNG.normal(size=(18, 36, 4)).astype(np.float32)

    def gradients(mapped):
        of_image = lambda function, image: jax.grad(lambda a: (mapped(function, 1)(a) * cotangent).sum())(image)
        of_numbers = lambda *args: (mapped(weights_in_loops, 3)(*args)[..., :4] * cotangent).sum()
        return jax.jit(
            lambda images, numbers: (
                list(map(of_image, SHARED.values(), images)),
                jax.grad(of_numbers, (0, 1, 2))(*numbers),
            )
        )(images, numbers)

    by_arrays = lambda function, count: jax.vmap(
        jax.vmap(function, (None, 0, *[None] * count)), (0, None, *[None] * count)
    )
    of_arrays = lambda function, count: functools.partial(by_arrays(function, count), *map(jnp.arange, (18, 36)))
    with mock.patch.object(tiles, "LEAST_THREADS", least):
        names, found = kernels_of(lambda: gradients(lambda function, count: jt.fused_map(function, (18, 36))))
    assert set(names) == {"fused_adjoint"}
    compare(found, gradients(of_arrays), gradients=True)


def test_what_is_closed_over_has_gradients():
    def loss(mapped, image, scale):
        return (mapped(lambda x: scale * read(x, x, image))(X) ** 2).sum()

    run = lambda mapped: jax.jit(jax.grad(functools.partial(loss, mapped), (0, 1)))
    _, found = kernels_of(lambda: run(jt.fused_vmap)(IMAGE, jnp.float32(0.7)))
    compare(found, run(jax.vmap)(IMAGE, jnp.float32(0.7)), gradients=True)


def on_devices(kind):
    """A function of samples, divided over eight devices, and what `jax.vmap` makes of it."""
    mesh = jax.make_mesh(
        (8,), ("d",), axis_types=(getattr(jax.sharding.AxisType, "Explicit" if kind == "explicit" else "Auto"),)
    )
    function = lambda x, image: jnp.tanh(read(x, 0.5 * x, image))
    nested = lambda mapped: (
        lambda x, image: mapped(lambda x: mapped(lambda k: function(k * x, image))(jnp.arange(3.0)))(x)
    )
    loss = lambda mapped: lambda x, image: (nested(mapped)(x, image) ** 2).sum()
    both = lambda mapped: lambda x, image: (nested(mapped)(x, image), jax.grad(loss(mapped), (0, 1))(x, image))
    return mesh, both


@pytest.mark.parametrize("kind", ["explicit", "automatic"])
@pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
def test_samples_on_an_axis_of_a_mesh(kind):
    mesh, both = on_devices(kind)
    expected = jax.jit(both(jax.vmap))(X, IMAGE)
    with jax.set_mesh(mesh), lowered_in_parts() as parts:
        x = jax.device_put(X, jax.sharding.NamedSharding(mesh, jax.P("d")))
        compiled = jax.jit(both(jt.fused_vmap)).lower(x, IMAGE).compile()
        found = compiled(x, IMAGE)
    compare(found, expected, gradients=True)
    # Each device computes three of 24 samples, and one all-reduce adds up the gradients of the image.
    shapes = (1, 3), (3, 1), (1, 1, *IMAGE.shape)
    assert ("samples", *shapes) in parts.seen
    assert ("adjoint", *shapes, (3, 3, 3)) in parts.seen
    assert COLLECTIVE.findall(compiled.as_text()) == ["all-reduce"]


@pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
@pytest.mark.parametrize(("height", "own"), [(12, 3), (10, 10)], ids=["even parts", "uneven parts"])
def test_a_grid_on_two_axes_of_a_mesh(height, own):
    """Axes that devices cannot divide evenly stay whole."""
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    color = lambda y, x, image, shift: read(0.1 * y, 0.2 * x, image) + shift

    def run(shift, image, cut):
        out = jt.fused_map(color, (height, 6), in_axes=(None, 0), out_axes=1)(image, shift)
        return cut(out, jax.P(None, "a", "b"))

    shift = np.arange(6, dtype=np.float32)[None]
    expected = jax.jit(functools.partial(run, cut=lambda x, spec: x))(shift, IMAGE)
    with jax.set_mesh(mesh), lowered_in_parts() as parts:
        compiled = jax.jit(functools.partial(run, cut=jax.lax.with_sharding_constraint)).lower(shift, IMAGE).compile()
        found = compiled(shift, IMAGE)
    compare(found, expected)
    assert ("samples", (own, 1), (1, 3), (1, 1, *IMAGE.shape), (1, 3)) in parts.seen
    assert own == height or not COLLECTIVE.findall(compiled.as_text())


@pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
def test_samples_in_shard_map():
    """The function closes over the image, which devices share, and its gradient is one sum over devices."""
    mesh, both = on_devices("shard_map")
    (x, image), ((values, (of_x, of_image))) = (X, IMAGE), jax.jit(both(jax.vmap))(X, IMAGE)
    specs = (jax.P("d"), jax.P()), (jax.P("d"), (jax.P("d"), jax.P()))
    found = jax.jit(
        jax.shard_map(both(jt.fused_vmap), mesh=mesh, in_specs=specs[0], out_specs=specs[1], check_vma=True)
    )
    compare(found(x, image), (values, (of_x, of_image)), gradients=True)


def test_sums_in_order_are_left_to_reads():
    function = functools.partial(read, sampler=jt.Sampler(deterministic=True))
    names, _ = kernels_of(lambda: value_and_gradients(jt.fused_vmap(function, (0, 0, None)), (2,))(X, Y, IMAGE))
    assert "fused_adjoint" not in names


def test_no_program_is_made_again_for_equal_functions():
    run = lambda: jt.fused_vmap(lambda x, image: read(x, x, image), (0, None))
    programs = [jax.make_jaxpr(run())(X, IMAGE).eqns[-1].params["program"] for _ in range(2)]
    assert programs[0] == programs[1]
    assert hash(programs[0]) == hash(programs[1])
    other = jax.make_jaxpr(jt.fused_vmap(lambda x, image: read(x, 2 * x, image), (0, None)))(X, IMAGE)
    assert programs[0] != other.eqns[-1].params["program"]


def test_a_primitive_without_a_kernel_is_named_with_its_line():
    function = jt.fused_vmap(lambda x: jax.lax.digamma(x))
    kernels = contextlib.nullcontext() if jax.default_backend() == "gpu" else kernels_on_cpu()
    with kernels, pytest.warns(UserWarning, match=r"digamma has no rule \(.*test_fused\.py:\d+\)"):
        found = jax.jit(function)(X)
    compare(found, jax.lax.digamma(X))


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda x: jax.debug.print("{}", x), "no side effects"),
        (lambda x: jax.lax.psum(x, "d"), "exchange numbers between devices"),
    ],
)
def test_refused_functions(function, sentence):
    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    run = jax.shard_map(jt.fused_vmap(function), mesh=mesh, in_specs=jax.P("d"), out_specs=jax.P(), check_vma=False)
    with pytest.raises(TypeError, match=sentence):
        jax.eval_shape(run, X)


@pytest.mark.parametrize("axes", [(0, 0, 7), (0, None, None, 0)])
def test_errors_of_axes_are_those_of_vmap(axes):
    with pytest.raises(ValueError, match="vmap") as ours:
        jt.fused_vmap(read, axes)(X, Y, IMAGE)
    with pytest.raises(ValueError, match="vmap") as theirs:
        jax.vmap(read, axes)(X, Y, IMAGE)
    assert str(ours.value)[:60] == str(theirs.value)[:60]


def test_wrong_axes_of_a_grid():
    with pytest.raises(ValueError, match=r"has shape \(20, 30, 3\), expected the axes of the grid, \(4, 5\)"):
        jt.fused_map(lambda i, j, a: a, (4, 5), in_axes=0)(IMAGE)
    with pytest.raises(ValueError, match=r"in_axes has 1, expected 0 .* jnp\.moveaxis"):
        jt.fused_map(lambda i, j, a, b: a, (4, 5), in_axes=(0, {"b": 1}))
    with pytest.raises(ValueError, match=r"shape is \(4, -5\), expected sizes from 0 on"):
        jt.fused_map(lambda i, j, a: a, (4, -5))
