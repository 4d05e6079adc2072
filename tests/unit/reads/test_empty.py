"""Calls without samples, images or channels: empty results of the right shape and dtype, and gradients of zeros."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import warp
from jaxtex.layers import theta_of
from tests.support.tolerances import assert_exact

MODES = ("trap", "clamp", "zero")
CAMERA = np.array([[2, 0, 2], [0, 2, 2], [0, 0, 1]], np.float32)
POINTS = np.array([[0, 0], [3, 0], [0, 3], [3, 3]], np.float32)
STN = np.eye(2, 3, dtype=np.float32)


def numbers(*shape, dtype="float32"):
    """Numbers of a shape; no sample or image of them is special."""
    return (np.arange(np.prod(shape, dtype=int)) % 3 + 0.25).astype(jnp.dtype(dtype)).reshape(shape)


def times(d, array):
    """An array times each of `d`."""
    return jnp.reshape(d, (*d.shape, *[1] * np.ndim(array))) * np.asarray(array)[None]


def places(*shape):
    return np.zeros(shape, np.int32)


# A name, and a function of the size of what is empty, which returns a function and its arguments.
CASES = {}


def case(name):
    return functools.partial(CASES.setdefault, name)


def surfaces():
    for dtype in ("float32", "bfloat16", "float64", "uint8", "bool"):
        texels = numbers(4, 3, 4, dtype=dtype)
        values = functools.partial(lambda n, dtype: numbers(n, 4, dtype=dtype), dtype=dtype)
        for mode in MODES if dtype == "float32" else ("trap",):
            read = lambda t, x, mode=mode: jt.surface_read(jt.texture2d(t), (x, x), boundary_mode=mode)
            case(f"surface_read, {dtype}, {mode}")(lambda n, read=read, t=texels: (read, (t, places(n))))
            functions = [jt.surface_write, jt.surface_add, jt.surface_min, jt.surface_max]
            for function in functions[: 4 if dtype in ("float32", "bfloat16") and mode == "trap" else 1]:
                write = lambda t, v, x, f=function, m=mode: f(jt.texture2d(t), v, (x, x), boundary_mode=m).texels
                make = lambda n, write=write, t=texels, v=values: (write, (t, v(n), places(n)))
                case(f"{function.__name__}, {dtype}, {mode}")(make)
    grid = lambda t, v, x, y: jt.surface_write(jt.texture2d(t), v, (x, y)).texels
    case("surface_write, a grid")(
        lambda n: (grid, (numbers(4, 3, 2), numbers(5, n, 2), places(1, n), np.zeros((5, 1), np.int32)))
    )
    for function in (jt.surface_write, jt.surface_max):
        write = lambda t, v, x, f=function: f(jt.build_mipmaps(jt.texture1d(t)), v, (x,), level=1).texels
        case(f"{function.__name__}, a level")(lambda n, write=write: (write, (numbers(8, 2), numbers(n, 2), places(n))))
    for function in (jt.surface_write, jt.surface_add, jt.surface_min):
        write = lambda t, v, x, f=function: f(jt.texture1d(t), v, (x,)).texels
        for dtype in ("float32", "uint8")[: 2 if function is jt.surface_write else 1]:
            make = lambda n, write=write, d=dtype: (write, (numbers(8, n, dtype=d), numbers(3, n, dtype=d), places(3)))
            case(f"{function.__name__}, {dtype}, no channels")(make)


SAMPLERS = {
    "linear": {},
    "cubic, wrap": {"filter_mode": "cubic", "address_mode": "wrap"},
    "border": {"address_mode": "border"},
    "deterministic": {"deterministic": True},
    "hardware": {"arithmetic": "hardware", "address_mode": "border"},
}


def reads():
    for name, options in SAMPLERS.items():
        sampler = jt.Sampler(**options)
        sample = lambda t, x, y, s=sampler: jt.sample(jt.texture2d(t), (x, y), s)
        case(f"sample, {name}")(lambda n, f=sample: (f, (numbers(4, 3, 2), numbers(n), numbers(n))))
        if name != "cubic, wrap":
            case(f"sample, {name}, no channels")(lambda n, f=sample: (f, (numbers(4, 3, n), numbers(5), numbers(5))))
        if name in ("linear", "hardware"):
            gather = lambda t, x, y, s=sampler: jt.gather(jt.texture2d(t), (x, y), s)
            case(f"gather, {name}")(lambda n, f=gather: (f, (numbers(4, 3, 2), numbers(n), numbers(n))))
        if name in ("linear", "border", "deterministic"):
            splat = lambda v, x, y, s=sampler: jt.splat(v, (x, y), (4, 3, v.shape[-1]), s).texels
            case(f"splat, {name}")(lambda n, f=splat: (f, (numbers(n, 2), numbers(n), numbers(n))))
            case(f"splat, {name}, no channels")(lambda n, f=splat: (f, (numbers(5, n), numbers(5), numbers(5))))
    colored = lambda t, c, x: jt.sample(jt.texture2d(t, border_color=c), (x, x), jt.Sampler(address_mode="border"))
    case("sample, a color")(lambda n: (colored, (numbers(4, 3, 2), numbers(2), numbers(n))))
    codes = lambda t, x: jt.sample(jt.texture1d(t), (x,), jt.Sampler(read_mode="normalized_float"))
    case("sample, codes")(lambda n: (codes, (numbers(4, 2, dtype="uint8"), numbers(n))))
    case("sample, float64")(lambda n: (codes, (numbers(4, 2, dtype="uint8"), numbers(n, dtype="float64"))))
    case("sample, codes, no channels")(lambda n: (codes, (numbers(4, n, dtype="uint8"), numbers(3))))
    trilinear = jt.Sampler(mipmap_filter_mode="linear", max_anisotropy=4)
    levels = lambda t, x, lod: jt.sample(jt.build_mipmaps(jt.texture1d(t)), (x,), trilinear, lod=lod)
    case("sample, lod")(lambda n: (levels, (numbers(4, 2), numbers(n), numbers(n))))
    case("sample, lod, no channels")(lambda n: (levels, (numbers(4, n), numbers(3), numbers(3))))
    slanted = lambda t, x, d: jt.sample(
        jt.build_mipmaps(jt.texture2d(t)), (x, x), trilinear, ddx=(d, 2 * d), ddy=(0.1, 0.2)
    )
    case("sample, footprint")(lambda n: (slanted, (numbers(4, 4, 2), numbers(n), numbers(n))))
    layered = lambda t, x, layer: jt.sample(jt.texture1d_layered(t), (x,), layer=layer)
    case("sample, layers")(lambda n: (layered, (numbers(3, 4, 2), numbers(n), places(n))))
    cube = lambda t, x: jt.sample(jt.cubemap(t), (x, -x, 0.5))
    case("sample, cube")(lambda n: (cube, (numbers(6, 3, 3, 2), numbers(n))))
    volume = lambda t, x: jt.sample(jt.texture3d(t), (x, x, x))
    case("sample, volume")(lambda n: (volume, (numbers(2, 3, 4, 2), numbers(n))))
    fetch = lambda t, x: jt.fetch(jt.texture2d(t), (x, x))
    for dtype in ("float32", "uint8", "bool"):
        case(f"fetch, {dtype}")(lambda n, d=dtype: (fetch, (numbers(4, 3, 2, dtype=d), places(n))))
        case(f"fetch, {dtype}, no channels")(lambda n, d=dtype: (fetch, (numbers(4, 3, n, dtype=d), places(2))))
    mipmaps = lambda t: jt.build_mipmaps(jt.texture2d(t)).levels
    case("build_mipmaps, no channels")(lambda n: (mipmaps, (numbers(4, 5, n),)))
    case("footprint")(lambda n: (lambda x: jt.footprint(lambda x, y: (x * y, y), (x, x)), (numbers(n),)))


IMAGES = {
    "no images": lambda n, dtype="float32": numbers(n, 4, 5, 2, dtype=dtype),
    "no channels": lambda n, dtype="float32": numbers(4, 5, n, dtype=dtype),
}
WARPS = {
    "resize": lambda i, **how: warp.resize(i, (2, 3), **how),
    "rotate": lambda i, **how: warp.rotate(i, 3.0, **how),
    "resample": lambda i, **how: warp.resample(i, lambda x, y: (y, 3 * x), **how),
    "remap": lambda i, **how: warp.remap(i, (numbers(6, 1), numbers(1, 7)), **how),
    "warp_flow": lambda i, **how: warp.warp_flow(i, numbers(4, 5, 2), **how),
    "warp_affine": lambda i, **how: warp.warp_affine(i, STN, **how),
    "warp_perspective": lambda i, **how: warp.warp_perspective(i, CAMERA, **how),
    "spatial_transform": lambda i, **how: warp.spatial_transform(i, STN, **how),
    "undistort": lambda i, **how: warp.undistort(i, CAMERA, np.float32([0.1, 0, 0, 0]), **how),
    "distort": lambda i, **how: warp.distort(i, CAMERA, np.float32([0.1, 0, 0, 0]), **how),
    "thin_plate_spline": lambda i, **how: warp.thin_plate_spline(i, POINTS, POINTS + 1, **how),
    "equirectangular_to_cubemap": lambda i, **how: warp.equirectangular_to_cubemap(i, 4, **how),
}
# Warps with an empty batch of what moves the image; one image, or as many.
MOVED = {
    "rotate": lambda i, d: warp.rotate(i, d),
    "warp_affine": lambda i, d: warp.warp_affine(i, times(d, STN)),
    "warp_perspective": lambda i, d: warp.warp_perspective(i, times(d, CAMERA)),
    "spatial_transform": lambda i, d: warp.spatial_transform(i, times(d, STN)),
    "remap": lambda i, d: warp.remap(i, (times(d, numbers(3, 1)), 1.0)),
    "warp_flow": lambda i, d: warp.warp_flow(i, times(d, numbers(4, 5, 2))),
    "undistort": lambda i, d: warp.undistort(i, times(d, CAMERA), jnp.zeros(4)),
    "thin_plate_spline": lambda i, d: warp.thin_plate_spline(i, times(d, POINTS), POINTS),
    "forward_warp": lambda i, d: warp.forward_warp(i, times(d, numbers(4, 5, 2))),
    "grid_sample": lambda i, d: warp.grid_sample(
        i, times(d, numbers(3, 2, 2)), "bilinear", "reflection", data_format="NHWC"
    ),
}


# Warps share the read, whose business channels are: a kind each of how they come to it.
KINDS = ("resize", "rotate", "warp_flow", "distort", "equirectangular_to_cubemap")


def warps():
    for empty, image in IMAGES.items():
        for name, function in WARPS.items():
            if empty == "no channels" and name not in KINDS:
                continue
            # A kind each: filters as wide as the step, reads along a constant footprint and along any. The others
            # read one tap, as shapes do not depend on the filter.
            smoothed = empty == "no images" and name in ("resize", "rotate", "distort")
            run = functools.partial(function, **({"antialias": True} if smoothed else {"filter": "point"}))
            case(f"{name}, {empty}")(lambda n, f=run, image=image: (f, (image(n),)))
        for dtype in ("uint8", "float16", "bool") if empty == "no images" else ():
            run = functools.partial(warp.rotate, degrees=3.0)
            case(f"rotate, {empty}, {dtype}")(lambda n, f=run, i=image, d=dtype: (f, (i(n, d),)))
        forward = lambda i: warp.forward_warp(i, numbers(4, 5, 2), mode="average", return_coverage=True)
        case(f"forward_warp, {empty}")(lambda n, f=forward, image=image: (f, (image(n),)))
        grid = lambda i: warp.grid_sample(i, numbers(*i.shape[:-3], 3, 2, 2), data_format="NHWC")
        case(f"grid_sample, {empty}")(lambda n, f=grid, image=image: (f, (image(n),)))
    for name, function in MOVED.items():
        case(f"{name}, no transforms")(lambda n, f=function: (f, (numbers(4, 5, 2), numbers(n))))
    for name in ("warp_affine", "remap", "forward_warp", "grid_sample"):
        case(f"{name}, neither")(lambda n, f=MOVED[name]: (f, (numbers(n, 4, 5, 2), numbers(n))))
    case("warp_affine, several batches")(lambda n: (MOVED["warp_affine"], (numbers(3, 1, 4, 5, 2), numbers(n))))
    volume = lambda i, d: warp.warp_affine(i, times(d, np.eye(3, 4, dtype=np.float32)))
    case("warp_affine, volumes")(lambda n: (volume, (numbers(n, 2, 3, 4, 1), numbers(n))))
    case("remap, no points")(lambda n: (lambda i, x: warp.remap(i, (x, x)), (numbers(4, 5, 2), numbers(n, 3))))
    case("warp_flow, no pixels")(lambda n: (warp.warp_flow, (numbers(4, 5, 2), numbers(3, n, 2))))
    points = lambda i, g: warp.grid_sample(i, g)
    case("grid_sample, no points")(lambda n: (points, (numbers(1, 2, 4, 5), numbers(1, n, 3, 2))))
    faces = lambda i: warp.cubemap_to_equirectangular(i, (3, 6))
    case("cubemap_to_equirectangular, no images")(lambda n: (faces, (numbers(n, 6, 3, 3, 2),)))
    case("cubemap_to_equirectangular, no channels")(lambda n: (faces, (numbers(6, 3, 3, n),)))
    case("affine_grid")(lambda n: (lambda d: warp.affine_grid(times(d, STN), (3, 4)), (numbers(n),)))
    sized = lambda d: warp.affine_grid(times(d, STN), (d.shape[0], 0, 3, 4))
    case("affine_grid of PyTorch's size")(lambda n: (sized, (numbers(n),)))
    for function in (warp.undistort_points, warp.distort_points):
        moved = lambda x, f=function: f((x, x), CAMERA, np.float32([0.1, 0, 0, 0]))
        case(function.__name__)(lambda n, f=moved: (f, (numbers(n),)))
    for function in (warp.matrix_from_opencv, warp.matrix_from_skimage):
        case(function.__name__)(lambda n, f=function: (f, (numbers(n, 3, 3),)))
    from_torch = lambda theta: warp.matrix_from_torch(theta, (3, 4), (5, 6))
    case("matrix_from_torch")(lambda n: (from_torch, (numbers(n, 2, 3),)))
    theta = lambda numbers: theta_of(numbers, (4, 5), "affine")
    case("theta_of")(lambda n: (theta, (numbers(n, 6),)))


# Of each function of `jaxtex.nn`: the function, and the shapes of its arguments, in which n is what is empty.
LEVELS = ((2, 2), (1, 1))
GRID = jt.nn.MultiresolutionGrid(ndim=2, num_levels=2, base_resolution=2, features_per_level=2)
MODELS = {
    "deformable_attention": (
        lambda value, at, weights: jt.nn.deformable_attention(value, LEVELS, at, weights),
        {
            "images": lambda n: ((n, 5, 2, 3), (n, 3, 2, 2, 1, 2), (n, 3, 2, 2, 1)),
            "queries": lambda n: ((1, 5, 2, 3), (1, n, 2, 2, 1, 2), (1, n, 2, 2, 1)),
            "heads": lambda n: ((1, 5, n, 3), (1, 3, n, 2, 1, 2), (1, 3, n, 2, 1)),
            "terms": lambda n: ((1, 5, 2, 3), (1, 3, 2, 2, n, 2), (1, 3, 2, 2, n)),
            "channels": lambda n: ((1, 5, 2, n), (1, 3, 2, 2, 1, 2), (1, 3, 2, 2, 1)),
        },
    ),
    "deformable_conv": (
        jt.nn.deformable_conv,
        {
            "images": lambda n: ((n, 3, 4, 2), (n, 2, 3, 8), (2, 2, 2, 3)),
            "channels": lambda n: ((1, 3, 4, n), (1, 2, 3, 8), (2, 2, n, 3)),
            "outputs": lambda n: ((1, 3, 4, 2), (1, 2, 3, 8), (2, 2, 2, n)),
        },
    ),
    "deformable_conv in groups": (
        lambda *arrays: jt.nn.deformable_conv(*arrays, groups=2),
        {"channels": lambda n: ((1, 3, 4, 2 * n), (1, 2, 3, 8), (2, 2, n, 4))},
    ),
    "correlation_pyramid": (
        lambda first, second: jt.nn.correlation_pyramid(first, second, levels=2),
        {"images": lambda n: ((n, 2, 3, 2), (n, 4, 2, 2)), "channels": lambda n: ((1, 2, 3, n), (1, 4, 2, n))},
    ),
    "correlation_lookup": (
        lambda volume, coords: jt.nn.correlation_lookup([volume, volume], coords, radius=1),
        {
            "images": lambda n: ((n, 2, 3, 4, 5), (n, 2, 3, 2)),
            "pixels": lambda n: ((1, 2, n, 4, 5), (1, 2, n, 2)),
        },
    ),
    "roi_align": (
        lambda features, boxes: jt.nn.roi_align(
            features, boxes, (2, 1), batch_indices=places(len(boxes)), sampling_ratio=-1
        ),
        {
            "points": lambda n: ((2, 4, 5, 2), (n, 4)),
            "images": lambda n: ((n, 4, 5, 2), (n, 4)),
            "channels": lambda n: ((1, 4, 5, n), (3, 4)),
        },
    ),
    "triplane": (
        jt.nn.triplane,
        {
            "images": lambda n: ((n, 3, 2, 4, 2), (n, 5, 3)),
            "points": lambda n: ((3, 2, 4, 2), (n, 3)),
            "channels": lambda n: ((3, 2, 4, n), (5, 3)),
        },
    ),
    "k_planes": (
        lambda plane, points: jt.nn.k_planes([plane, 2 * plane, plane], points),
        {
            "images": lambda n: ((n, 2, 4, 2), (n, 5, 3)),
            "points": lambda n: ((2, 4, 2), (n, 3)),
            "channels": lambda n: ((2, 4, n), (5, 3)),
        },
    ),
    "multiresolution_grid": (
        lambda tables, points: jt.nn.multiresolution_grid(tables, points, GRID),
        {
            "points": lambda n: ((sum(GRID.table_sizes), 2), (n, 2)),
            "rays": lambda n: ((sum(GRID.table_sizes), 2), (n, 3, 2)),
        },
    ),
    "sample_weighted": (
        lambda texels, x, weights: jt.nn.sample_weighted([jt.texture2d(texels)] * 2, (x, x), weights, axis=(1, 2)),
        {
            "points": lambda n: ((3, 4, 2), (n, 2, 3), (n, 2, 3)),
            "terms": lambda n: ((3, 4, 2), (5, 2, n), (5, 2, n)),
            "channels": lambda n: ((3, 4, n), (5, 2, 3), (5, 2, 3)),
        },
    ),
}


def models():
    for name, (function, shapes) in MODELS.items():
        for empty, of in shapes.items():
            make = lambda n, f=function, of=of: (f, tuple(numbers(*shape) for shape in of(n)))
            case(f"{name}, no {empty}")(make)


surfaces()
reads()
warps()
models()


def is_floating(array):
    return jnp.issubdtype(array.dtype, jnp.floating)


def following(one, two):
    """The shape of a result without elements, from those with one and with two."""
    return tuple(n if n == m else 0 for n, m in zip(one.shape, two.shape, strict=True))


def everything(function, wrt):
    """The value of a function, its gradients, and its tangent."""
    loss = lambda *args: sum(jnp.sum(jnp.square(a.astype(jnp.float32))) for a in jax.tree.leaves(function(*args)))

    def run(*args):
        if not wrt:
            return function(*args), (), None
        tangents = tuple(jnp.ones_like(a) if is_floating(a) else np.zeros(a.shape, jax.dtypes.float0) for a in args)
        value, tangent = jax.jvp(function, args, tangents)
        return value, jax.grad(loss, wrt)(*args), tangent

    return run


def assert_like(found, expected, args, wrt):
    """The shapes and dtypes of a value, of its tangent and of its gradients, which are finite."""
    value, gradient, tangent = found
    for result in (value, tangent):
        for leaf, of in zip(jax.tree.leaves(result), jax.tree.leaves(expected)):
            assert leaf.shape == of.shape
            assert leaf.dtype in (of.dtype, jax.dtypes.float0)
    for slope, k in zip(gradient, wrt, strict=True):
        assert slope.shape == args[k].shape
        assert slope.dtype == args[k].dtype
        assert np.isfinite(slope.astype(np.float32)).all()


def floating(args):
    return tuple(k for k, a in enumerate(args) if is_floating(a))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_read_and_written(name):
    with jax.enable_x64("float64" in name):
        (function, args), several = CASES[name](0), [CASES[name](n) for n in (1, 2)]
        one, two = (jax.eval_shape(f, *some) for f, some in several)
        expected = jax.tree.map(lambda a, b: jax.ShapeDtypeStruct(following(a, b), a.dtype), one, two)
        wrt = floating(args)
        result, gradient, tangent = jax.device_get(jax.jit(everything(function, wrt))(*args))
        assert jax.tree.structure(result) == jax.tree.structure(expected)
        assert_like((result, gradient, tangent), expected, args, wrt)
        if name.startswith("surface_") and "surface_read" not in name:
            texels = args[0]
            assert_exact(result, jt.build_mipmaps(jt.texture1d(texels)).texels if "level" in name else texels)
        elif name != "forward_warp, no channels":  # which has a coverage
            assert not any(np.any(leaf) for leaf in jax.tree.leaves((result, gradient)) if leaf.size)


# Under `jax.vmap`, one case for each function and each way through it is enough. Of the warps that move one image
# by a batch, those are left out that differ from others in their coordinates alone.
ALIKE = ("no channels", "neither", "several", "no images", "surface_min", "uint8", "float64", "bool", "clamp", "zero")
ALIKE += ("warp_affine", "warp_perspective", "spatial_transform", "warp_flow", "undistort, ", "cubic")
ALIKE += ("gather, hardware", "sample, deterministic", "skimage", "distort_points", "no rays")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if not any(words in name for words in ALIKE)])
def test_a_batch_of_no_examples(name):
    """`jax.vmap` over none of all arguments, of the first, and of all others."""
    function, args = CASES[name](2)
    one, wrt = jax.eval_shape(function, *args), floating(args)
    expected = jax.tree.map(lambda a: jax.ShapeDtypeStruct((0, *a.shape), a.dtype), one)
    some = len(args) - 1
    ways = [(0, *[0] * some), *([(0, *[None] * some), (None, *[0] * some)] if some else [])]
    empty = [tuple(a if k is None else np.zeros((0, *a.shape), a.dtype) for k, a in zip(way, args)) for way in ways]

    @jax.jit
    def run(empty):
        return [everything(jax.vmap(function, way), wrt)(*batch) for way, batch in zip(ways, empty)]

    for found, batch in zip(jax.device_get(run(empty)), empty, strict=True):
        assert_like(found, expected, batch, wrt)


def test_every_function_of_models_takes_nothing():
    functions = {name for name in jt.nn.__all__ if name[0].islower()} - {"multiresolution_grid_init"}
    assert {name.split()[0] for name in MODELS} == functions


@pytest.mark.parametrize("name", ["sample, linear", "splat, linear", "sample, border", "surface_read, bfloat16, trap"])
def test_second_derivatives_of_nothing(name):
    function, args = CASES[name](0)
    wrt = floating(args)
    loss = lambda *args: jnp.sum(jnp.square(function(*args).astype(jnp.float32)))
    for row in jax.jit(jax.hessian(loss, wrt))(*args):
        assert not any(np.any(block) for block in row)


def test_gradients_of_what_is_not_empty_beside_it():
    """One empty read in a loss leaves the gradient of the others alone."""
    texels, x = numbers(5, 2), numbers(3)
    read = lambda t, x: jt.sample(jt.texture1d(t), (x,), jt.Sampler(normalized_coords=False)).sum()
    both = jax.jit(jax.grad(lambda t: read(t, x) + read(t, x[:0])))(texels)
    assert_exact(both, jax.jit(jax.grad(read))(texels, x))


def test_layers_take_no_images():
    nnx, layers = pytest.importorskip("flax.nnx"), pytest.importorskip("jaxtex.layers.nnx")
    layer = layers.SpatialTransformer(lambda images: images.mean((-3, -2)), 2, (3, 6))
    images = numbers(0, 4, 5, 2)
    assert nnx.eval_shape(layer, images).shape == (0, 3, 6, 2)
    gradient = nnx.jit(nnx.grad(lambda layer: layer(images).sum()))(layer)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(gradient))


def test_equinox_layers_take_no_images():
    eqx, layers = pytest.importorskip("equinox"), pytest.importorskip("jaxtex.layers.equinox")
    layer = layers.SpatialTransformer(lambda image: image.mean((-2, -1)), 2, (3, 6))
    images = numbers(0, 2, 4, 5)
    assert eqx.filter_eval_shape(jax.vmap(layer), images).shape == (0, 2, 3, 6)
    gradient = eqx.filter_jit(eqx.filter_grad(lambda layer: jax.vmap(layer)(images).sum()))(layer)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(eqx.filter(gradient, eqx.is_array)))
