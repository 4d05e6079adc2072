"""Calls without samples, images or channels: empty results of the right shape and dtype, and gradients of zeros."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import warp
from jaxtex.layers import theta_of
from tests.support.tolerances import assert_exact, named

CAMERA = np.array([[2, 0, 2], [0, 2, 2], [0, 0, 1]], np.float32)
POINTS = np.array([[0, 0], [3, 0], [0, 3], [3, 3]], np.float32)
STN, LENS = np.eye(2, 3, dtype=np.float32), np.float32([0.1, 0, 0, 0])


def numbers(*shape, dtype="float32"):
    """Numbers of a shape; no sample or image of them is special."""
    return (np.arange(np.prod(shape, dtype=int)) % 3 + 0.25).astype(jnp.dtype(dtype)).reshape(shape)


def times(d, array):
    """An array times each of `d`."""
    return jnp.reshape(d, (*d.shape, *[1] * np.ndim(array))) * np.asarray(array)[None]


# The parts of the library; of each the calls by name: a function, and the shapes of its arguments behind their dtypes,
# which are float32 if there are none. N is what is empty.
PARTS, N = {"reads": {}, "warps": {}, "models": {}, "float64": {}}, None


def case(part, name, function, *shapes):
    PARTS["float64" if "float64" in name else part][name] = function, shapes


def arguments(shapes, n):
    """Arrays of such shapes, where `n` is in place of N."""
    for shape in shapes:
        dtype, *shape = shape if isinstance(shape[0], str) else ("float32", *shape)
        yield numbers(*(n if size is N else size for size in shape), dtype=dtype)


SAMPLERS = {
    "linear": {},
    "border": {"address_mode": "border"},
    "deterministic": {"deterministic": True},
    "hardware": {"arithmetic": "hardware", "address_mode": "border"},
}
for name, options in SAMPLERS.items():
    sampler = jt.Sampler(**options)
    sample = lambda t, x, y, s=sampler: jt.sample(jt.texture2d(t), (x, y), s)
    case("reads", f"sample, {name}", sample, (4, 3, 2), (N,), (N,))
    case("reads", f"sample, {name}, no channels", sample, (4, 3, N), (5,), (5,))
    if name in ("linear", "hardware"):
        gather = lambda t, x, y, s=sampler: jt.gather(jt.texture2d(t), (x, y), s)
        case("reads", f"gather, {name}", gather, (4, 3, 2), (N,), (N,))
    if name in ("linear", "border", "deterministic"):
        splat = lambda v, x, y, s=sampler: jt.splat(v, (x, y), (4, 3, v.shape[-1]), s).texels
        case("reads", f"splat, {name}", splat, (N, 2), (N,), (N,))
        case("reads", f"splat, {name}, no channels", splat, (5, N), (5,), (5,))
bordered, trilinear = jt.Sampler(address_mode="border"), jt.Sampler(mipmap_filter_mode="linear", max_anisotropy=4)
colored = lambda t, c, x: jt.sample(jt.texture2d(t, border_color=c), (x, x), bordered)
codes = lambda t, x: jt.sample(jt.texture1d(t), (x,), jt.Sampler(read_mode="normalized_float"))
levels = lambda t, x, lod: jt.sample(jt.build_mipmaps(jt.texture1d(t)), (x,), trilinear, lod=lod)
chain = lambda t: jt.build_mipmaps(jt.texture2d(t))
slanted = lambda t, x, d: jt.sample(chain(t), (x, x), trilinear, ddx=(d, 2 * d), ddy=(0.1, 0.2))
layered = lambda t, x, layer: jt.sample(jt.texture1d_layered(t), (x,), layer=layer)
case("reads", "sample, a color", colored, (4, 3, 2), (2,), (N,))
case("reads", "sample, codes", codes, ("uint8", 4, 2), (N,))
case("reads", "sample, float64", codes, ("uint8", 4, 2), ("float64", N))
case("reads", "sample, codes, no channels", codes, ("uint8", 4, N), (3,))
case("reads", "sample, lod", levels, (4, 2), (N,), (N,))
case("reads", "sample, lod, no channels", levels, (4, N), (3,), (3,))
case("reads", "sample, footprint", slanted, (4, 4, 2), (N,), (N,))
case("reads", "sample, layers", layered, (3, 4, 2), (N,), ("int32", N))
case("reads", "sample, cube", lambda t, x: jt.sample(jt.cubemap(t), (x, -x, 0.5)), (6, 3, 3, 2), (N,))
case("reads", "sample, volume", lambda t, x: jt.sample(jt.texture3d(t), (x, x, x)), (2, 3, 4, 2), (N,))
for dtype in ("float32", "uint8", "bool"):
    fetch = lambda t, x: jt.fetch(jt.texture2d(t), (x, x))
    case("reads", f"fetch, {dtype}", fetch, (dtype, 4, 3, 2), ("int32", N))
    case("reads", f"fetch, {dtype}, no channels", fetch, (dtype, 4, 3, N), ("int32", 2))
for function in (jt.surface_write, jt.surface_add, jt.surface_max):
    change = lambda t, v, x, f=function: f(jt.texture2d(t), v, (x, x)).texels - t
    case("reads", function.__name__, change, (4, 3, 4), (N, 4), ("int32", N))
accessed = lambda t, x: jt.surface_read(jt.texture2d(t), (x, x))
case("reads", "surface_read", accessed, ("bfloat16", 4, 3, 4), ("int32", N))
case("reads", "build_mipmaps, no channels", lambda t: chain(t).levels, (4, 5, N))
case("reads", "footprint", lambda x: jt.footprint(lambda x, y: (x * y, y), (x, x)), (N,))

# One of each way to a read.
WARPS = {
    "resize": lambda i: warp.resize(i, (2, 3), antialias=True),
    "warp_flow": lambda i: warp.warp_flow(i, numbers(4, 5, 2), filter_mode="point"),
    "forward_warp": lambda i: warp.forward_warp(i, numbers(4, 5, 2), mode="average", return_coverage=True),
    "grid_sample": lambda i: warp.grid_sample(i, numbers(*i.shape[:-3], 3, 2, 2), data_format="NHWC"),
}
for name, function in WARPS.items():
    case("warps", f"{name}, no images", function, (N, 4, 5, 2))
    case("warps", f"{name}, no channels", function, (4, 5, N))
# Warps with an empty batch of what moves the image; one image, or as many.
MOVED = {
    "rotate": lambda i, d: warp.rotate(i, angle=d),
    "remap": lambda i, d: warp.remap(i, (times(d, numbers(3, 1)), 1.0)),
    "undistort": lambda i, d: warp.undistort(i, times(d, CAMERA), jnp.zeros(4)),
    "thin_plate_spline": lambda i, d: warp.thin_plate_spline(i, times(d, POINTS), POINTS),
    "forward_warp": lambda i, d: warp.forward_warp(i, times(d, numbers(4, 5, 2))),
    "grid_sample": lambda i, d: warp.grid_sample(i, times(d, numbers(3, 2, 2)), data_format="NHWC"),
}
for name, function in MOVED.items():
    case("warps", f"{name}, no transforms", function, (4, 5, 2), (N,))
for name in ("remap", "forward_warp", "grid_sample"):
    case("warps", f"{name}, neither", MOVED[name], (N, 4, 5, 2), (N,))
case("warps", "rotate, several batches", MOVED["rotate"], (3, 1, 4, 5, 2), (N,))
case("warps", "remap, no points", lambda i, x: warp.remap(i, (x, x)), (4, 5, 2), (N, 3))
case("warps", "warp_flow, no pixels", warp.warp_flow, (4, 5, 2), (3, N, 2))
case("warps", "affine_grid", lambda d: warp.affine_grid(times(d, STN), (d.shape[0], 0, 3, 4)), (N,))
case("warps", "undistort_points", lambda x: warp.undistort_points((x, x), CAMERA, LENS), (N,))
case("warps", "matrix_from_torch", lambda theta: warp.matrix_from_torch(theta, (3, 4), (5, 6)), (N, 2, 3))
case("warps", "theta_of", lambda numbers: theta_of(numbers, (4, 5), "affine"), (N, 6))

# Each function of `jaxtex.nn`, and the shapes of its arguments.
GRID = jt.nn.MultiresolutionGrid(ndim=2, num_levels=2, base_resolution=2, features_per_level=2)
ROWS = sum(GRID.table_sizes)
attention = lambda value, at, weights: jt.nn.deformable_attention(value, ((2, 2), (1, 1)), at, weights)
pyramid = lambda first, second: jt.nn.correlation_pyramid(first, second, levels=2)
lookup = lambda volume, coords: jt.nn.correlation_lookup([volume, volume], coords, radius=1)
pooled = lambda features, boxes: jt.nn.roi_align(
    features, boxes, (2, 1), batch_indices=np.zeros(len(boxes), np.int32), sampling_ratio=-1
)
hashed = lambda tables, points: jt.nn.multiresolution_grid(tables, points, GRID)
weighted = lambda t, x, w: jt.nn.sample_weighted([jt.texture2d(t)] * 2, (x, x), w, axis=(1, 2))
k_planes = lambda plane, points: jt.nn.k_planes([plane, 2 * plane, plane], points)
case("models", "deformable_attention", attention, (N, 5, 2, 3), (N, 3, 2, 2, 1, 2), (N, 3, 2, 2, 1))
case("models", "deformable_attention, no queries", attention, (1, 5, 2, 3), (1, N, 2, 2, 1, 2), (1, N, 2, 2, 1))
case("models", "deformable_attention, no terms", attention, (1, 5, 2, 3), (1, 3, 2, 2, N, 2), (1, 3, 2, 2, N))
case("models", "deformable_conv", jt.nn.deformable_conv, (N, 3, 4, 2), (N, 2, 3, 8), (2, 2, 2, 3))
case("models", "deformable_conv, no channels", jt.nn.deformable_conv, (1, 3, 4, N), (1, 2, 3, 8), (2, 2, N, 3))
case("models", "correlation_pyramid", pyramid, (N, 2, 3, 2), (N, 4, 2, 2))
case("models", "correlation_pyramid, no channels", pyramid, (1, 2, 3, N), (1, 4, 2, N))
case("models", "correlation_lookup", lookup, (N, 2, 3, 4, 5), (N, 2, 3, 2))
case("models", "correlation_lookup, no pixels", lookup, (1, 2, N, 4, 5), (1, 2, N, 2))
case("models", "roi_align", pooled, (2, 4, 5, 2), (N, 4))
case("models", "roi_align, no maps", pooled, (N, 4, 5, 2), (N, 4))
case("models", "triplane", jt.nn.triplane, (N, 3, 2, 4, 2), (N, 5, 3))
case("models", "triplane, no points", jt.nn.triplane, (3, 2, 4, 2), (N, 3))
case("models", "k_planes", k_planes, (2, 4, 2), (N, 3))
case("models", "multiresolution_grid", hashed, (ROWS, 2), (N, 2))
case("models", "sample_weighted", weighted, (3, 4, 2), (N, 2, 3), (N, 2, 3))
case("models", "sample_weighted, no terms", weighted, (3, 4, 2), (5, 2, N), (5, 2, N))


def is_floating(array):
    return jnp.issubdtype(array.dtype, jnp.floating)


def floating(args):
    return tuple(k for k, a in enumerate(args) if is_floating(a))


def following(one, two):
    """The shape of a result without elements, from those with one and with two."""
    return tuple(n if n == m else 0 for n, m in zip(one.shape, two.shape, strict=True))


def everything(function, args):
    """The value of a function, its gradients, and its tangent."""
    if not (wrt := floating(args)):
        return function(*args), (), None
    loss = lambda *args: sum(jnp.sum(jnp.square(a.astype(jnp.float32))) for a in jax.tree.leaves(function(*args)))
    tangents = tuple(jnp.ones_like(a) if is_floating(a) else np.zeros(a.shape, jax.dtypes.float0) for a in args)
    value, tangent = jax.jvp(function, args, tangents)
    return value, jax.grad(loss, wrt)(*args), tangent


def assert_like(found, expected, args):
    """The shapes and dtypes of a value, of its tangent and of its gradients, which are finite."""
    value, gradient, tangent = found
    for result in (value, tangent):
        for leaf, of in zip(jax.tree.leaves(result), jax.tree.leaves(expected)):
            assert leaf.shape == of.shape
            assert leaf.dtype in (of.dtype, jax.dtypes.float0)
    for slope, k in zip(gradient, floating(args), strict=True):
        assert slope.shape == args[k].shape
        assert slope.dtype == args[k].dtype
        assert np.isfinite(slope.astype(np.float32)).all()


def kinds(function, shapes, n):
    return jax.eval_shape(function, *arguments(shapes, n))


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_read_and_written(part):
    """The calls of a part as one program."""
    with jax.enable_x64(part == "float64"):
        given = {name: tuple(arguments(shapes, 0)) for name, (_, shapes) in PARTS[part].items()}
        run = lambda given: {name: everything(PARTS[part][name][0], args) for name, args in given.items()}
        for name, found in jax.device_get(jax.jit(run)(given)).items():
            (result, gradient, _), args = found, given[name]
            each = (kinds(*PARTS[part][name], n) for n in (1, 2))
            expected = jax.tree.map(lambda a, b: jax.ShapeDtypeStruct(following(a, b), a.dtype), *each)
            with named(name):
                assert jax.tree.structure(result) == jax.tree.structure(expected)
                assert_like(found, expected, args)
                if name != "forward_warp, no channels":  # which has a coverage
                    assert not any(np.any(leaf) for leaf in jax.tree.leaves((result, gradient)) if leaf.size)


# One case for each function and each way through it is enough.
ALIKE = "no channels", "several", "no images", "float64", "gather, hardware", "sample, deterministic"


@pytest.mark.slow
@pytest.mark.parametrize("part", ["reads", "models"])
def test_a_batch_of_no_examples(part):
    """`jax.vmap` over none of all arguments, of the first, and of all others."""
    batches, functions, expected = {}, {}, {}
    for name, (function, shapes) in PARTS[part].items():
        args = tuple(arguments(shapes, 2))
        some = len(args) - 1
        for way in {(0, *[0] * some), (0, *[None] * some), (None, *[0] * some)} - {(None,)}:
            if not any(words in name for words in ALIKE):
                key = f"{name}, {way}"
                batches[key] = tuple(a if k is None else np.zeros((0, *a.shape), a.dtype) for k, a in zip(way, args))
                functions[key], one = jax.vmap(function, way), kinds(function, shapes, 2)
                expected[key] = jax.tree.map(lambda a: jax.ShapeDtypeStruct((0, *a.shape), a.dtype), one)
    run = lambda given: {key: everything(functions[key], args) for key, args in given.items()}
    for key, found in jax.device_get(jax.jit(run)(batches)).items():
        with named(key):
            assert_like(found, expected[key], batches[key])


def test_every_function_of_models_takes_nothing():
    functions = {name for name in jt.nn.__all__ if name[0].islower()} - {"multiresolution_grid_init"}
    assert {name.split(",")[0] for name in PARTS["models"]} == functions


def test_second_derivatives_of_nothing():
    cases = {name: PARTS["reads"][name] for name in ("splat, linear", "sample, border", "surface_read")}

    @jax.jit
    def run(given):
        squares = lambda f: lambda *args: jnp.sum(jnp.square(f(*args).astype(jnp.float32)))
        return {name: jax.hessian(squares(cases[name][0]), floating(args))(*args) for name, args in given.items()}

    found = jax.device_get(run({name: tuple(arguments(shapes, 0)) for name, (_, shapes) in cases.items()}))
    assert not any(np.any(block) for block in jax.tree.leaves(found))


def test_gradients_of_what_is_not_empty_beside_it():
    """One empty read in a loss leaves the gradient of the others alone."""
    texels, x = numbers(5, 2), numbers(3)
    read = lambda t, x: jt.sample(jt.texture1d(t), (x,), jt.Sampler(normalized_coords=False)).sum()
    both = lambda t, x: read(t, x) + read(t, x[:0])
    assert_exact(*jax.jit(lambda t, x: [jax.grad(f)(t, x) for f in (both, read)])(texels, x))


def test_layers_take_no_images():
    """Their gradients are those of a warp of no images."""
    nnx, layers = pytest.importorskip("flax.nnx"), pytest.importorskip("jaxtex.layers.nnx")
    layer = layers.SpatialTransformer(lambda images: images.mean((-3, -2)), 2, (3, 6))
    assert nnx.eval_shape(layer, numbers(0, 4, 5, 2)).shape == (0, 3, 6, 2)


def test_equinox_layers_take_no_images():
    eqx, layers = pytest.importorskip("equinox"), pytest.importorskip("jaxtex.layers.equinox")
    layer = layers.SpatialTransformer(lambda image: image.mean((-2, -1)), 2, (3, 6))
    assert eqx.filter_eval_shape(jax.vmap(layer), numbers(0, 2, 4, 5)).shape == (0, 2, 3, 6)
