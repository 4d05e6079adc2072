"""Every function of `jaxtex.warp` and `jaxtex.ndimage`, called in the forms in which callers bring images and fields.

A call in another form has the result of the plain call, or its error names the function and the argument.
"""

import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import cuda, ndimage, warp
from jaxtex._checks.calls import FLAGS
from tests.support.jaxprs import equations
from tests.support.tolerances import assert_close, assert_exact

RANDOM = np.random.default_rng(7)
H, W = 6, 8


def normal(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


IMAGE, MAPS = normal(H, W, 2), RANDOM.integers(0, 9, (H, W, 2)).astype(np.int32)
Y, X = np.mgrid[:H, :W].astype(np.float32) + 0.5
FLOW, AFFINE = 0.3 * normal(H, W, 2), np.float32([[0.9, 0.1, 0.4], [-0.1, 1.1, 0.2]])
PROJECTIVE = np.float32([[0.9, 0.1, 0.4], [-0.1, 1.1, 0.2], [0.01, 0.0, 1.0]])
CAMERA, LENS = np.float32([[9, 0, 4], [0, 9, 3], [0, 0, 1]]), np.float32([-0.1, 0.02, 0.0, 0.0])
SOURCE = np.float32([[1, 1], [6, 1], [3, 5], [7, 4]])
GEOMETRY = np.float32([0, 0]), np.float32([2, 1]), np.eye(2, dtype=np.float32)


def turned(x, y):
    return 0.8 * x - 0.3 * y + 1.1, 0.3 * x + 0.8 * y


def tiles(image, **options):
    """The output of `resample_tiles`, put together."""
    parts = list(warp.resample_tiles(image, turned, (H, W), tile_shape=(4, 4), **options))
    out = np.empty((H, W, image.shape[-1]), parts[0][1].dtype)
    for where, pixels in parts:
        out[where] = pixels
    return out


# The arguments of a plain call. Those named in IMAGES are images or maps, those in FIELDS hold a vector for each pixel.
WARPS = {
    "affine_grid": {"theta": AFFINE, "size": (H, W)},
    "camera_from_opencv": {"camera_matrix": CAMERA, "distortion": LENS},
    "compose_flows": {"first": FLOW, "second": FLOW[::-1].copy()},
    "cubemap_to_equirectangular": {"faces": normal(6, 4, 4, 2), "output_shape": (4, 8)},
    "distort": {"image": IMAGE, "camera_matrix": CAMERA, "distortion": LENS},
    "distort_points": {"coords": (X, Y), "camera_matrix": CAMERA, "distortion": LENS},
    "equirectangular_to_cubemap": {"image": IMAGE, "size": 3},
    "flow_from_itk": {"field": FLOW, "geometry": GEOMETRY},
    "forward_warp": {"image": IMAGE, "flow": FLOW, "importance": normal(H, W)},
    "grid_sample": {"image": IMAGE, "grid": np.float32(RANDOM.uniform(-1, 1, (3, 4, 2))), "data_format": "NHWC"},
    "integrate_velocity": {"velocity": FLOW, "steps": 2},
    "invert_flow": {"flow": FLOW, "steps": 3},
    "jacobian_determinant": {"flow": FLOW},
    "matrix_from_itk": {"matrix": AFFINE[:, :2], "input_geometry": GEOMETRY, "output_geometry": GEOMETRY},
    "matrix_from_nibabel": {
        "input_affine": 2 * np.eye(4, dtype=np.float32),
        "output_affine": np.eye(4, dtype=np.float32),
    },
    "matrix_from_opencv": {"matrix": PROJECTIVE},
    "matrix_from_scipy": {"matrix": AFFINE[:, :2], "offset": AFFINE[:, 2]},
    "matrix_from_skimage": {"matrix": PROJECTIVE},
    "matrix_from_torch": {"theta": AFFINE, "input_shape": (H, W), "output_shape": (4, 4)},
    "remap": {"image": IMAGE, "coords": (X + 0.2, Y)},
    "resample": {"image": IMAGE, "function": turned},
    "resample_tiles": {"image": IMAGE},
    "resize": {"image": IMAGE, "output_shape": (4, 11)},
    "rotate": {"image": IMAGE, "degrees": np.float32(20.3), "scale": np.float32(1.1), "center": np.float32([4.2, 2.9])},
    "spatial_transform": {"image": IMAGE, "theta": AFFINE},
    "thin_plate_spline": {"image": IMAGE, "source_points": SOURCE, "target_points": SOURCE + 0.3 * normal(4, 2)},
    "undistort": {"image": IMAGE, "camera_matrix": CAMERA, "distortion": LENS},
    "undistort_points": {"coords": (X, Y), "camera_matrix": CAMERA, "distortion": LENS},
    "warp_affine": {"image": IMAGE, "matrix": AFFINE},
    "warp_chain": {"image": IMAGE, "transforms": [PROJECTIVE, FLOW]},
    "warp_flow": {"image": IMAGE, "flow": FLOW},
    "warp_labels": {"labels": MAPS, "transforms": [PROJECTIVE]},
    "warp_perspective": {"image": IMAGE, "matrix": PROJECTIVE},
}
ARRAY = IMAGE[..., 0]
NDIMAGE = {
    "affine_transform": {"input": ARRAY, "matrix": AFFINE[:, :2], "offset": AFFINE[:, 2]},
    "geometric_transform": {"input": ARRAY, "mapping": lambda at: (at[0] + 1, at[1])},
    "map_coordinates": {"input": ARRAY, "coordinates": np.stack([Y, X])},
    "rotate": {"input": ARRAY, "angle": 20.3},
    "shift": {"input": ARRAY, "shift": np.float32([0.3, -1.2])},
    "spline_filter": {"input": ARRAY},
    "spline_filter1d": {"input": ARRAY},
    "zoom": {"input": ARRAY, "zoom": 1.4},
}
CALLS = {f"warp.{name}": WARPS[name] for name in WARPS} | {f"ndimage.{name}": NDIMAGE[name] for name in NDIMAGE}
IMAGES = ("image", "labels", "faces")
FIELDS = ("flow", "velocity", "first", "second", "field", "grid")
# Those that have no batches: they stream one image, or take the whole array for one.
SINGLE = ("warp.resample_tiles", "warp.matrix_from_scipy")


def parameters_of(name):
    module, function = name.split(".")
    return inspect.signature(getattr({"warp": warp, "ndimage": ndimage}[module], function)).parameters.values()


def call(name, arguments):
    module, function = name.split(".")
    run = tiles if function == "resample_tiles" else getattr({"warp": warp, "ndimage": ndimage}[module], function)
    return run(**arguments)


def arrays_of(value, change):
    """A value with another form of its arrays."""
    if callable(value) or isinstance(value, str):
        return value
    return jax.tree.map(lambda leaf: change(leaf) if isinstance(leaf, np.ndarray) else leaf, value)


def changed(name, change):
    return {key: arrays_of(value, change) for key, value in CALLS[name].items()}


def equal(got, expected):
    jax.tree.map(assert_exact, got, expected)


def refused(name, argument, arguments):
    """The sentence of a call that is an error: it starts with the function and the argument."""
    with pytest.raises((TypeError, ValueError)) as error:
        call(name, arguments)
    assert re.match(rf"{name.split('.')[1]}: .*\b{argument}\b", str(error.value)), str(error.value)
    return str(error.value)


def test_every_function_is_called():
    # Classes have a file of their own: test_sized_warps.py.
    assert set(WARPS) == {name for name in warp.__all__ if not isinstance(getattr(warp, name), type)}
    assert set(NDIMAGE) == set(ndimage.__all__)


@pytest.fixture(scope="module")
def plain():
    """The results of the plain calls. The programs are compiled, so that other forms meet what JAX has cached."""
    return {name: call(name, CALLS[name]) for name in CALLS}


@pytest.mark.parametrize("name", CALLS)
def test_arrays_of_any_byte_order_and_stride(name, plain):
    equal(call(name, changed(name, lambda a: a.astype(a.dtype.newbyteorder("S")))), plain[name])
    equal(call(name, changed(name, lambda a: np.repeat(a, 2, -1)[..., ::2] if a.ndim else a)), plain[name])


def test_other_functions_take_any_byte_order():
    def results(form):
        image, x, key = map(form, (IMAGE, X / W, np.uint32([0, 7])))
        texels = form(X.astype(np.int32)), form(Y.astype(np.int32))  # one sample each: sums have one order
        texture = jt.texture2d(image, border_color=form(np.float32([1, 2])))
        weights, bag = form(np.full((H, 2), 0.5, np.float32)), (form(X[0, :2]), form(Y[:, :2]))
        array = cuda.memcpyToArray(cuda.mallocArray(cuda.createChannelDesc("float"), W, H), form(IMAGE[..., 0].copy()))
        place, floats = cuda.ResourceDesc.Array(array), (form(X), form(Y))
        return (
            jt.sample(texture, (x, x), key=key),
            jt.sample(texture, (x, x), jt.Sampler(address_mode="border")),
            jt.fetch(texture, texels),
            jt.gather(texture, (x, x)),
            jt.splat(image, (x, x), (H, W, 2), jt.Sampler(deterministic=True)).texels,
            jt.surface_write(texture, image, texels).texels,
            jt.surface_add(texture, image, texels).texels,
            jt.footprint(lambda x, y: (2 * x, y), (x, x)),
            jt.nn.sample_weighted(texture, bag, weights),
            jt.nn.roi_align(image[None], form(np.float32([[1, 1, 5, 4]])), 2),
            jt.nn.correlation_pyramid(image[None], image[None], 1),
            cuda.tex2D(cuda.createTextureObject(place, cuda.TextureDesc()), *floats),
            cuda.memcpy(jnp.zeros(H * W), form(X.copy()), X.nbytes),
        )

    equal(results(lambda a: a.astype(a.dtype.newbyteorder("S"))), results(lambda a: a))


@pytest.mark.parametrize("name", [name for name in CALLS if set(CALLS[name]) & {*IMAGES, *FIELDS}])
def test_axes_of_images_and_fields(name, plain):
    """Two images at once, none, images without channels or pixels, fields of three or four components."""
    for argument in set(CALLS[name]) & {*IMAGES, *FIELDS}:
        given, expected = CALLS[name][argument], plain[name]
        if name not in SINGLE:
            # On a GPU, sums into texels have another order in every run.
            both = call(name, CALLS[name] | {argument: np.stack([given, given])})
            assert_close("sum", both[1], expected, 4 * np.abs(expected).max())
            assert call(name, CALLS[name] | {argument: given[None][:0]}).shape == (0, *expected.shape)
        if argument in IMAGES:
            words = refused(name, argument, CALLS[name] | {argument: given[..., 0]})
            assert "[..., None]" in words or argument == "faces" or name == "warp.grid_sample"
            refused(name, argument, CALLS[name] | {argument: given[..., :0, :, :]})
        else:
            for components in (3, 4):
                refused(name, argument, CALLS[name] | {argument: np.zeros((*given.shape[:-1], components), np.float32)})
            if argument != "first" and name not in ("warp.forward_warp", "warp.compose_flows"):
                assert call(name, CALLS[name] | {argument: given[:0]}).size == 0


@pytest.mark.parametrize("name", [name for name in CALLS if any(p.annotation in FLAGS for p in parameters_of(name))])
def test_flags(name, plain):
    for parameter in parameters_of(name):
        if parameter.annotation not in FLAGS:
            continue
        for value in ("no", 1, 0.0, None) if parameter.annotation is bool else ("no", 1):
            words = refused(name, parameter.name, CALLS[name] | {parameter.name: value})
            assert words.endswith(f"{parameter.name} is {value!r}, expected True or False.")
        default = np.bool_(parameter.default)
        equal(call(name, CALLS[name] | {parameter.name: default}), plain[name])
        equal(call(name, CALLS[name] | {parameter.name: jnp.asarray(default)}), plain[name])


@pytest.mark.parametrize("name", ["warp.warp_perspective", "warp.warp_chain", "warp.warp_labels"])
def test_projective_matrices_are_the_same_up_to_a_factor(name, plain):
    for factor in (2.0**-43, 2.0**60, -1.0):  # powers of two, so that no bit of the matrix changes
        matrix = np.float32(factor) * PROJECTIVE
        scaled = (
            {"matrix": matrix} if "matrix" in CALLS[name] else {"transforms": [matrix, *CALLS[name]["transforms"][1:]]}
        )
        equal(call(name, CALLS[name] | scaled), plain[name])
    rng = np.random.default_rng(8)
    volume = rng.normal(size=(3, 4, 5, 1)).astype(np.float32)
    matrix = np.eye(4, dtype=np.float32) + 0.1 * rng.normal(size=(4, 4)).astype(np.float32)
    equal(warp.warp_perspective(volume, matrix * np.float32(2.0**-43)), warp.warp_perspective(volume, matrix))


READS = [
    name
    for name in CALLS
    if "address" in {p.name for p in parameters_of(name)}
    and name != "warp.forward_warp"
    and set(CALLS[name]) & {"image", "labels"}
]


@pytest.mark.parametrize("name", READS)
def test_an_image_of_one_pixel(name):
    """Where the address mode repeats it, it is everywhere."""
    pixel = np.asarray([[[3, 5]]], MAPS.dtype if "labels" in CALLS[name] else np.float32)
    arguments = CALLS[name] | {key: pixel for key in IMAGES if key in CALLS[name]}
    shape = {"output_shape": (2, 3)} if name not in ("warp.remap", "warp.warp_flow", "warp.resample_tiles") else {}
    out = np.asarray(call(name, arguments | shape | {"address": "clamp"}))
    assert_close("float32", out, np.broadcast_to(pixel, out.shape), 5.0)


PRECISE = [name for name in CALLS if set(CALLS[name]) & {"image", "faces"} and name != "warp.resample_tiles"]
# What moves numbers, and computes none.
MOVES = (
    "broadcast_in_dim",
    "concatenate",
    "reshape",
    "slice",
    "squeeze",
    "transpose",
    "jit",
    "pjit",
    "custom_jvp_call",
)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", PRECISE)
def test_coordinates_have_the_precision_of_the_image(name):
    """With an image in float64, a program computes in float64 alone, from numbers of Python and arrays in float32."""
    arguments = {key: float(a) if isinstance(a, np.floating) else a for key, a in CALLS[name].items()}
    (argument,) = set(arguments) & {*IMAGES}
    program = jax.make_jaxpr(lambda image: call(name, arguments | {argument: image}))(np.float64(arguments[argument]))
    computed = (e for e in equations(program.jaxpr) if e.primitive.name not in MOVES)
    imprecise = [str(e) for e in computed if any(v.aval.dtype == np.float32 for v in e.outvars)]
    assert not imprecise
