"""Every function of `jaxtex.warp` and `jaxtex.ndimage`, called in the forms in which callers bring what they have.

A call in another form is the program of the plain call, bit for bit, or its error names the function and the argument.
"""

import functools
import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import cuda, ndimage, warp
from jaxtex._checks import calls
from jaxtex._checks.calls import FLAGS
from tests.support.jaxprs import equations
from tests.support.tolerances import assert_close, assert_exact, named

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
WITH_BORDER = jt.Sampler(address_mode="border")
FINER = tuple(a / 2 for a in GEOMETRY)


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
    "matrix_from_itk": {"matrix": AFFINE[:, :2], "input_geometry": GEOMETRY, "output_geometry": FINER},
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
    "rotate": {"image": IMAGE, "angle": np.float32(0.3543), "scale": np.float32(1.1), "center": np.float32([4.2, 2.9])},
    "spatial_transform": {"image": IMAGE, "theta": AFFINE},
    "thin_plate_spline": {"image": IMAGE, "source_points": SOURCE, "target_points": SOURCE + 0.3 * normal(4, 2)},
    "undistort": {"image": IMAGE, "camera_matrix": CAMERA, "distortion": LENS},
    "undistort_points": {"coords": (X, Y), "camera_matrix": CAMERA, "distortion": LENS},
    "warp_affine": {"image": IMAGE, "matrix": AFFINE},
    "warp_boxes": {"boxes": np.float32([[1, 1, 5, 4]]), "transforms": [PROJECTIVE, FLOW], "output_shape": (H, W)},
    "warp_chain": {"image": IMAGE, "transforms": [PROJECTIVE, FLOW]},
    "warp_flow": {"image": IMAGE, "flow": FLOW},
    "warp_labels": {"labels": MAPS, "transforms": [PROJECTIVE]},
    "warp_perspective": {"image": IMAGE, "matrix": PROJECTIVE},
    "warp_points": {"points": SOURCE, "transforms": [PROJECTIVE, FLOW]},
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
# Of those with an address mode: which of them do not take what is outside for a border by default.
CLAMPED = ("warp.resize", "warp.compose_flows", "warp.integrate_velocity", "warp.invert_flow")


def parameters_of(name):
    module, function = name.split(".")
    return inspect.signature(getattr({"warp": warp, "ndimage": ndimage}[module], function)).parameters


def call(name, arguments):
    module, function = name.split(".")
    run = tiles if function == "resample_tiles" else getattr({"warp": warp, "ndimage": ndimage}[module], function)
    return run(**arguments)


def program(name, arguments):
    """What a call computes, and of which numbers; of tiles, which are no program, what they are."""
    if name == "warp.resample_tiles":
        return "", [call(name, arguments)]
    closed = jax.make_jaxpr(lambda: call(name, arguments))()
    return re.sub("0x[0-9a-f]+", "", str(closed)), closed.consts


@functools.cache
def plain(name):
    return program(name, CALLS[name])


def assert_same(name, arguments, expected=None):
    """That a call is that of `expected`, the plain one by default, in another form."""
    text, numbers = program(name, CALLS[name] | arguments)
    expected, others = plain(name) if expected is None else program(name, CALLS[name] | expected)
    assert text == expected
    jax.tree.map(assert_exact, numbers, others)


def differs(name, arguments, expected):
    return program(name, CALLS[name] | arguments)[0] != program(name, CALLS[name] | expected)[0]


def changed(name, change):
    """The arguments with another form of their arrays."""
    form = lambda leaf: change(leaf) if isinstance(leaf, np.ndarray) else leaf
    keep = lambda value: callable(value) or isinstance(value, str)
    return {key: value if keep(value) else jax.tree.map(form, value) for key, value in CALLS[name].items()}


def refused(name, argument, arguments):
    """The sentence of a call that is an error: it starts with the function and the argument."""
    with pytest.raises((TypeError, ValueError)) as error:
        call(name, CALLS[name] | arguments)
    assert re.match(rf"{name.split('.')[1]}: .*\b{argument}\b", str(error.value)), str(error.value)
    return str(error.value)


def names(*arguments):
    """The functions that have each of these arguments, and are programs."""
    return [n for n in CALLS if {*arguments} <= {*parameters_of(n)} and n != "warp.resample_tiles"]


def test_every_function_is_called():
    # Classes have a file of their own: test_sized_warps.py.
    assert set(WARPS) == {name for name in warp.__all__ if not isinstance(getattr(warp, name), type)}
    assert set(NDIMAGE) == set(ndimage.__all__)


@pytest.mark.parametrize("name", CALLS)
def test_arrays_of_any_byte_order_and_stride(name):
    assert_same(name, changed(name, lambda a: a.astype(a.dtype.newbyteorder("S"))))
    assert_same(name, changed(name, lambda a: np.repeat(a, 2, -1)[..., ::2] if a.ndim else a))


def at_address(offset, shape, dtype=np.float32):
    """An array of NumPy that begins `offset` bytes behind a multiple of 64, of numbers that all differ."""
    values = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    room = np.empty(values.nbytes + 128, np.uint8)
    start = -room.ctypes.data % 64 + offset
    array = room[start : start + values.nbytes].view(dtype).reshape(shape)
    array[...] = values
    return array


def test_jax_takes_large_arrays_without_a_copy():
    """On a CPU, and only what it would copy is put elsewhere."""
    large, small = (1025, 1024), (5, 4)
    if jax.default_backend() == "cpu":
        given = at_address(16, large)
        placed = calls.placed(given)
        assert placed is not given
        np.testing.assert_array_equal(placed, given)
        assert jax.device_put(placed).unsafe_buffer_pointer() == placed.ctypes.data
    for array in (at_address(0, large), at_address(16, small), at_address(16, large, np.float64), jnp.ones(large)):
        assert calls.placed(array) is array


def test_other_functions_take_any_byte_order():
    unit, x, y, at = X / W, X[0, :2], Y[:, :2], (X.astype(np.int32), Y.astype(np.int32))
    of = jt.texture2d
    # Each array once a call, as a program has one for each place.
    calls = (
        (lambda i, x, y, key: jt.sample(of(i), (x, y), key=key), IMAGE, unit, Y / H, np.uint32([0, 7])),
        (lambda i, c, x: jt.sample(of(i, border_color=c), (x, 0.5), WITH_BORDER), IMAGE, np.float32([1, 2]), unit),
        (lambda i, x, y: jt.fetch(of(i), (x, y)), IMAGE, *at),
        (lambda i, x, y: jt.gather(of(i), (x, y)), IMAGE, unit, Y / H),
        (lambda i, x, y: jt.splat(i, (x, y), (H, W, 2)).texels, IMAGE, unit, Y / H),
        (lambda i, j, x, y: jt.surface_write(of(i), j, (x, y)).texels, IMAGE, 2 * IMAGE, *at),
        (lambda i, j, x, y: jt.surface_add(of(i), j, (x, y)).texels, IMAGE, 2 * IMAGE, *at),
        (lambda x, y: jt.footprint(lambda x, y: (2 * x, y), (x, y)), X, Y),
        (lambda i, x, y, w: jt.nn.sample_weighted(of(i), (x, y), w), IMAGE, x, y, np.full((H, 2), 0.5, np.float32)),
        (lambda i, boxes: jt.nn.roi_align(i, boxes, 2), IMAGE[None], np.float32([[1, 1, 5, 4]])),
        (lambda i, j: jt.nn.correlation_pyramid(i, j, 1), IMAGE[None], 2 * IMAGE[None]),
    )
    swapped = lambda a: a.astype(a.dtype.newbyteorder("S"))
    for run, *arrays in calls:
        other, plain = (jax.make_jaxpr(lambda: run(*map(form, arrays)))() for form in (swapped, np.copy))  # noqa: B023
        assert str(other) == str(plain)
        jax.tree.map(assert_exact, other.consts, plain.consts)
    array = cuda.memcpyToArray(cuda.mallocArray(cuda.createChannelDesc("float"), W, H), swapped(IMAGE[..., 0].copy()))
    texture = cuda.createTextureObject(cuda.ResourceDesc.Array(array), cuda.TextureDesc())
    assert_exact(cuda.tex2D(texture, swapped(X), swapped(Y)), IMAGE[..., 0])
    assert_exact(cuda.memcpy(jnp.zeros(H * W), swapped(X), X.nbytes), X.ravel())


@pytest.mark.parametrize("name", [name for name in CALLS if set(CALLS[name]) & {*IMAGES, *FIELDS}])
def test_axes_of_images_and_fields(name):
    """Two images at once, none, images without channels or pixels, fields of three or four components."""
    shape_of = lambda **arguments: jax.eval_shape(lambda: call(name, CALLS[name] | arguments)).shape
    for argument in set(CALLS[name]) & {*IMAGES, *FIELDS}:
        given = CALLS[name][argument]
        if name != "warp.resample_tiles":
            for count in (2, 0):
                several = np.stack([given] * 2)[:count]
                assert shape_of(**{argument: several}) == (count, *shape_of())
        if argument in IMAGES:
            words = refused(name, argument, {argument: given[..., 0]})
            assert "[..., None]" in words or argument == "faces" or name == "warp.grid_sample"
            refused(name, argument, {argument: given[..., :0, :, :]})
        else:
            for components in (3, 4):
                refused(name, argument, {argument: np.zeros((*given.shape[:-1], components), np.float32)})
            if argument != "first" and name not in ("warp.forward_warp", "warp.compose_flows"):
                assert 0 in shape_of(**{argument: given[:0]})


def test_projective_matrices_are_the_same_up_to_a_factor():
    """Powers of two, so that no bit of the matrix changes."""
    run = jax.jit(lambda matrix: (warp.warp_chain(IMAGE, [matrix, FLOW]), warp.warp_perspective(IMAGE, matrix)))
    expected = run(PROJECTIVE)
    for factor in np.float32([2.0**-43, 2.0**60, -1.0]):
        jax.tree.map(assert_exact, run(factor * PROJECTIVE), expected)


# Each way to a read.
READS = ("warp.resize", "warp.rotate", "warp.warp_chain", "warp.warp_labels", "warp.warp_flow")


def test_an_image_of_one_pixel():
    """Where the address mode repeats it, it is everywhere."""

    @jax.jit
    def run(pixel):
        found = {}
        for name in READS:
            (argument,) = {*IMAGES} & {*CALLS[name]}
            shape = {} if name == "warp.warp_flow" else {"output_shape": (2, 3)}
            given = {argument: pixel.astype(CALLS[name][argument].dtype), "address_mode": "clamp", **shape}
            found[name] = call(name, CALLS[name] | given)
        return found

    for name, found in run(np.float32([[[3, 5]]])).items():
        with named(name):
            assert_close("float32", found, np.broadcast_to([3, 5], found.shape), 5.0)


# What moves numbers, and computes none.
MOVES = {"broadcast_in_dim", "concatenate", "reshape", "slice", "squeeze", "transpose"}
MOVES |= {"jit", "pjit", "custom_jvp_call"}


@pytest.mark.parametrize("name", [name for name in names() if set(CALLS[name]) & {"image", "faces"}])
def test_coordinates_have_the_precision_of_the_image(name, x64):
    """With an image in float64, a program computes in float64 alone, from numbers of Python and arrays in float32."""
    arguments = {key: float(a) if isinstance(a, np.floating) else a for key, a in CALLS[name].items()}
    (argument,) = set(arguments) & {*IMAGES}
    closed = jax.make_jaxpr(lambda image: call(name, arguments | {argument: image}))(np.float64(arguments[argument]))
    computed = (e for e in equations(closed.jaxpr) if e.primitive.name not in MOVES)
    assert not [str(e) for e in computed if any(v.aval.dtype == np.float32 for v in e.outvars)]


def test_points_are_a_tuple_or_one_array():
    forms = {
        "coords": [(name, {"transforms": None} if name == "warp.warp_labels" else {}) for name in names("coords")],
        "center": [("warp.rotate", {})],
        "flow": [("warp.warp_flow", {})],
        "source_points": [("warp.thin_plate_spline", {})],
    }
    at = {"center": np.float32([4.2, 2.9]), "coords": np.stack([X + 0.2, Y], -1), "flow": FLOW}
    at["source_points"] = SOURCE

    @jax.jit
    def run(at):
        read = lambda name, more, points: jnp.stack([*call(name, CALLS[name] | more | points)])
        return {
            (name, key): [read(name, more, {key: points}) for points in (at[key], tuple(jnp.moveaxis(at[key], -1, 0)))]
            for key in forms
            for name, more in forms[key]
        }

    for name, (found, expected) in jax.device_get(run(at)).items():
        with named(name):
            found = np.moveaxis(found, -1, 0) if found.shape != expected.shape else found
            assert_close("float32", found, expected, 8)


@pytest.mark.parametrize("name", [n for n in CALLS if any(p.annotation in FLAGS for p in parameters_of(n).values())])
def test_flags(name):
    for key, parameter in parameters_of(name).items():
        if parameter.annotation not in FLAGS:
            continue
        for value in ("no", 1, 0.0, None) if parameter.annotation is bool else ("no", 1):
            assert refused(name, key, {key: value}).endswith(f"{key} is {value!r}, expected True or False.")
        for value in (np.bool_(parameter.default), jnp.asarray(parameter.default)):
            assert_same(name, {key: value})
        if parameter.annotation is not bool:
            assert_same(name, {key: None})
        if name != "warp.resample_tiles" and key != "prefilter":
            assert_same(name, {key: np.array(not parameter.default)}, {key: not parameter.default})


@pytest.mark.parametrize("name", [name for name in names("output_shape") if name.startswith("warp.")])
def test_sizes_are_numbers_of_any_kind(name):
    for form in (np.array, jnp.array, lambda shape: [np.int64(shape[0]), np.array(shape[1])]):
        assert_same(name, {"output_shape": form((4, 5))}, {"output_shape": (4, 5)})
    for shape in ((4.5, 5), "44", (-1, 4), (0, 4), np.ones((2, 2), int)):
        refused(name, "output_shape", {"output_shape": shape})
    with pytest.raises(TypeError, match=r"output_shape is a traced array.*static_argnames"):
        jax.jit(lambda n: call(name, CALLS[name] | {"output_shape": (n, 4)}))(4)


def test_other_sizes_are_numbers_of_any_kind():
    assert_same("warp.equirectangular_to_cubemap", {"size": np.int64(3)})
    assert_same("warp.affine_grid", {"size": np.array([H, W])})
    assert_same("warp.matrix_from_torch", {"input_shape": np.array([H, W])})
    nnx = pytest.importorskip("jaxtex.layers.nnx")
    layer = nnx.SpatialTransformer(lambda images: images[..., 0, 0, :], 2, np.array([3, 4]), antialias=np.bool_(False))
    assert layer.output_shape == (3, 4)
    assert jt.layers.theta_of(np.zeros(4, np.float32), np.array([3, 4]), "similarity").shape == (2, 3)


def test_trilinear_is_bilinear_of_volumes():
    volume = {"image": normal(1, 4, 5, 6), "grid": normal(2, 3, 4, 3), "data_format": "NCDHW"}
    assert_same("warp.grid_sample", volume | {"mode": "trilinear"}, volume | {"mode": "bilinear"})


def sampler(**options):
    return {"sampler": jt.Sampler(**options)}


@pytest.mark.parametrize("name", names("filter_mode", "address_mode", "sampler"))
def test_filters_and_address_modes_leave_each_other_alone(name):
    default = {"address_mode": "clamp" if name in CLAMPED else "border"}
    assert_same(name, {"filter_mode": "nearest"}, sampler(filter_mode="point", **default))
    assert differs(name, {"filter_mode": "point"}, {})
    assert_same(name, {"address_mode": ["repeat", "mirror"]}, sampler(address_mode=("wrap", "mirror")))
    assert differs(name, {"address_mode": "wrap"}, {})
    # A sampler without an address mode leaves it alone.
    bare = sampler(deterministic=True)
    assert_same(name, bare, sampler(deterministic=True, **default))
    assert_same(name, bare | {"address_mode": "wrap"}, sampler(deterministic=True, address_mode="wrap"))


@pytest.mark.parametrize("name", ["warp.equirectangular_to_cubemap", "warp.cubemap_to_equirectangular"])
def test_panoramas_take_a_filter(name):
    assert_same(name, {"filter_mode": "point"}, sampler(filter_mode="point"))
    assert differs(name, {"filter_mode": "point"}, {})


MASK, MOVED = IMAGE > 0, np.float32([[1, 0, 3], [0, 1, 0]])
# Both ways in which filters are applied, to an image and to faces.
BLENDS = ("warp.resize", "warp.warp_flow", "warp.cubemap_to_equirectangular")
POINTS = ("warp.resize", "warp.remap")


def test_masks_and_borders():
    """Blended as zeros and ones, kept by the point filter; outside lies the border color, under every filter zero."""

    def of_masks(mask):
        given = {"image": mask, "faces": jnp.stack([mask[:4, :4]] * 6)}
        masks = lambda name, kind: {key: a.astype(kind) for key, a in given.items() if key in CALLS[name]}
        of = lambda name, kind, **more: call(name, CALLS[name] | masks(name, kind) | more)
        blends = {name: [of(name, bool), of(name, jnp.float32)] for name in BLENDS}
        points = {
            name: [of(name, bool, filter_mode="point"), of(name, np.uint8, filter_mode="point") == 1] for name in POINTS
        }
        grid = [of("warp.grid_sample", bool, mode="nearest"), of("warp.grid_sample", np.uint8, mode="nearest") == 1]
        landed = [warp.forward_warp(mask.astype(dtype), FLOW) for dtype in (bool, jnp.float32)]
        whole = [of("warp.resize", bool, dtype=bool), blends["warp.resize"][1] > 0.5]
        return blends | {"landed": landed}, points | {"grid": grid, "whole": whole}

    @jax.jit
    def run(mask, image):
        grid = {"grid": np.float32([[[-3.0, 0.0], [3.0, 0.0]]]), "data_format": "NHWC", **sampler(filter_mode="point")}
        moved = functools.partial(warp.warp_affine, matrix=MOVED, filter_mode="point")
        border = (
            moved(mask)[:, :3],
            warp.warp_affine(image, 9 * MOVED, inverse_map=True, filter_mode="cubic")[:, 2:],
            warp.grid_sample(image, **grid),
            ~moved(mask, border_color=True)[:, :3],
        )
        large = warp.resize(np.zeros((1, 1, 1), np.float32), (4, 1), address_mode="border", border_color=1.0)
        return of_masks(mask), border, warp.grid_sample(image, padding_mode="border", **grid), large[:, 0, 0]

    (blends, points), borders, kept, large = jax.device_get(run(MASK, IMAGE))
    for dtype, pairs in ((np.float32, blends), (bool, points)):
        for name, (found, expected) in pairs.items():
            with named(name):
                assert_exact(found, expected, dtype)
    assert not any(np.any(outside) for outside in borders)
    assert_exact(kept[0], IMAGE[H // 2, [0, -1]])
    assert_exact(large, np.float32([0.375, 0.125, 0.125, 0.375]))
