"""A call of every public function of arrays, by its parameters' names; other values for its options; wrong arguments.

`CALLS` holds the arguments that a function needs. `OTHERS` says how each option changes such a call. A test of all
functions takes its calls from here, and a function or an option that has no row fails it.
"""

import importlib
import inspect

import equinox
import jax
import numpy as np

import jaxtex as jt
from jaxtex import nn
from tests.house.public_api import MODULES, names_in

# Functions and classes of these modules are called; those of `jaxtex.cuda` speak of CUDA's arguments, with its errors.
CALLED = [module for module in MODULES if module != ".cuda"]


def public_functions():
    """The public functions, and the classes that are made of arguments, by their name after `jaxtex.`."""
    found = {}
    for module in CALLED:
        imported = importlib.import_module(f"jaxtex{module}")
        for name in names_in(imported):
            value = getattr(imported, name)
            if inspect.isfunction(value) or (inspect.isclass(value) and not hasattr(value, "__members__")):
                found[f"{module[1:]}.{name}".lstrip(".")] = value
    return found


rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


H, W, C = 4, 6, 2
IMAGE, BATCH, VOLUME, ROWS = normal(H, W, C), normal(2, H, W, C), normal(2, H, W, C), normal(W, C)
BYTES = rng.integers(0, 256, (H, W, C)).astype(np.uint8)
LABELS = rng.integers(0, 5, (H, W, 1)).astype(np.int32)
# Positions on each axis, some of them outside; the same in texels; and single texels.
U, V = np.float32([0.13, 0.48, 1.07]), np.float32([0.31, -0.12, 0.77])
INDEX = np.int32([0, 3, 9])
MATRIX = np.float32([[1.3, 0.2, 0.4], [-0.1, 0.8, 0.7]])
HOMOGRAPHY = np.float32([[1.3, 0.2, 0.4], [-0.1, 0.8, 0.7], [0.01, 0.02, 1]])
FLOW = normal(H, W), normal(H, W)
GENTLE = tuple(np.float32(0.1) * a for a in FLOW)
COORDS = FLOW[0] + np.float32(2.6), FLOW[1] + np.float32(1.4)
POINTS = np.float32([[0.5, 0.5], [5, 1], [1, 3.5], [4.4, 3]])
MOVED = POINTS + np.float32([[0.4, 0.1], [-0.3, 0.2], [0.1, -0.5], [0.2, 0.3]])
CAMERA, OTHER_CAMERA = np.float32([[5, 0, 3], [0, 5, 2], [0, 0, 1]]), np.float32([[4, 0, 2], [0, 6, 2], [0, 0, 1]])
LENS = np.float32([-0.2, 0.05, 0.01, 0.02])
GEOMETRY = np.zeros(2, np.float32), np.float32([2, 3]), np.eye(2, dtype=np.float32)
BLOCKS = np.random.default_rng(3).integers(0, 256, 32, np.uint8)
GRID = nn.MultiresolutionGrid(ndim=2, num_levels=2, base_resolution=3, log2_hashmap_size=5)
TABLES = normal(sum(GRID.table_sizes), 2)
TEXTURE = jt.texture2d(IMAGE, border_color=np.float32(0.5))
MASK = normal(H, W) > -1
LAYERED = jt.texture2d_layered(BATCH)
CUBE = jt.cubemap(normal(6, 4, 4, C))
CHAIN = jt.build_mipmaps(TEXTURE)
SPACE = jt.texture3d(VOLUME)
KEY = jax.random.key(0)
SHARED = normal(2, 3, 2, 3)
SIDE = np.float32([0.4, 0.5, 0.6])
ZERO = np.zeros(3, np.float32)


def features(image):
    """A localization network without parameters."""
    return image.reshape(*image.shape[:-3], -1)[..., :C]


def moved(x, y, *more):
    return x + np.float32(0.4), y * np.float32(0.7) - np.float32(0.6), *more


def moved_by(x, y, step=0.4):
    return x + step, y * np.float32(0.7)


def one_row_down(index, *more, **keywords):
    """A mapping of SciPy's, from indices of the output to those of the input."""
    steps = np.float32(0.3) + np.float32(sum(more)) + np.float32(sum(keywords.values()))
    return index[0].astype(np.float32) + steps, *(np.float32(0.9) * i.astype(np.float32) for i in index[1:])


RAY = {"volume": IMAGE, "start": POINTS, "end": POINTS[::-1], "num_samples": 5}
BEAM = {"volume_shape": (H, W), "angles": U, "detector_shape": (5,)}
PROJECTED = {"projections": normal(3, 5, C), "volume_shape": (H, W), "angles": U}
READ = {"texture": TEXTURE, "coords": (U, V)}
LENSES = {"image": IMAGE, "camera_matrix": CAMERA, "distortion": LENS}
POINTS_OF_LENSES = {"coords": (U, V), "camera_matrix": CAMERA, "distortion": LENS}
WRITES = {"texture": TEXTURE, "values": normal(3, C), "coords": (INDEX, INDEX)}
LAYER = {"localization": features, "num_features": C, "output_shape": (3, 3)}


def one_sample(u, v, texture):
    return jt.sample(texture, (u, v))


def element(i, j, array):
    """A sample of a grid."""
    return array[i, j] + np.float32(0.5) * array[0, 0]


def knots_of(size):
    """Coordinates of texels that are not evenly spaced."""
    return np.arange(size, dtype=np.float32) ** 2


CALLS = {
    **dict.fromkeys(("sample", "sample_with_derivatives", "gather", "positions"), READ),
    **dict.fromkeys(("surface_write", "surface_add", "surface_min", "surface_max"), WRITES),
    "fetch": {"texture": TEXTURE, "indices": (INDEX, INDEX)},
    "splat": {"values": normal(3, C), "coords": (U, V), "shape": (H, W, C)},
    "footprint": {"f": moved, "coords": (U, V)},
    "build_mipmaps": {"texture": TEXTURE},
    "spline_filter": {"texture": TEXTURE, "sampler": jt.Sampler(filter_mode="bspline")},
    "surface_read": {"texture": TEXTURE, "coords": (INDEX, INDEX)},
    "texture1d": {"texels": ROWS},
    "texture2d": {"texels": IMAGE},
    "block_compressed": {"blocks": BLOCKS, "format": "bc3", "shape": (2, 4, 4), "kind": "3d"},
    "texture3d": {"texels": VOLUME},
    "unit.bind": {"texture": TEXTURE},
    "unit.bind_compressed": {"blocks": BLOCKS, "format": "bc3", "shape": (2, 4, 4), "kind": "3d"},
    "texture1d_layered": {"texels": IMAGE},
    "texture2d_layered": {"texels": BATCH},
    "cubemap": {"texels": normal(6, 4, 4, C)},
    "cubemap_layered": {"texels": normal(2, 6, 4, 4, C)},
    "Texture": {"texels": IMAGE},
    "Sampler": {},
    "fused_map": {"fun": element, "shape": (2, 3)},
    "fused_vmap": {"fun": one_sample, "in_axes": (0, 0, None)},
    "kernels_in_exports": {},
    "deterministic": {},
    "sharded.using": {"method": jt.sharded.Whole()},
    "sharded.explain": {"function": moved},
    "sharded.count_beyond": {"function": moved},
    "sharded.Halo": {"reach": 2},
    "sharded.Routing": {},
    "sharded.Whole": {},
    "layers.theta_of": {"parameters": normal(2), "input_shape": (H, W), "transform": "translation"},
    "layers.equinox.SpatialTransformer": LAYER,
    "layers.nnx.SpatialTransformer": LAYER,
    "nn.MultiresolutionGrid": {},
    "warp.SizedResize": {},
    "warp.SizedWarp": {"function": lambda x, y: (x * 1.7 - 1, y * 1.3)},
    "nn.multiresolution_grid": {"tables": TABLES, "points": normal(3, 2), "grid": GRID},
    "nn.multiresolution_grid_init": {"key": KEY, "grid": GRID},
    "nn.correlation_pyramid": {"first": normal(1, H, W, C), "second": normal(1, H, W, C), "levels": 2},
    "nn.correlation_lookup": {"pyramid": [normal(1, 2, 2, H, W)], "coords": normal(1, 2, 2, 2)},
    "nn.deformable_attention": {
        "value": normal(1, 6, 2, C),
        "spatial_shapes": ((2, 3),),
        "sampling_locations": rng.uniform(size=(1, 2, 2, 1, 2, 2)).astype(np.float32),
        "attention_weights": normal(1, 2, 2, 1, 2),
    },
    "nn.deformable_conv": {"x": BATCH, "offsets": normal(2, H, W, 2), "kernel": normal(1, 1, C, 2)},
    "nn.k_planes": {"planes": [normal(H, W, C) for _ in range(3)], "points": normal(3, 3)},
    "nn.triplane": {"planes": normal(3, H, W, C), "points": normal(3, 3)},
    "nn.roi_align": {
        "features": BATCH,
        "boxes": np.float32([[0.6, 0.7, 3.3, 3.1], [1, 0, 5, 2]]),
        "output_size": (2, 2),
        "batch_indices": np.int32([0, 0]),
    },
    "nn.sample_weighted": {"textures": TEXTURE, "coords": (U, V), "weights": normal(3)},
    "rays.Rays": {"start": POINTS, "end": MOVED},
    "rays.camera_rays": {
        "camera_matrix": CAMERA,
        "pose": np.eye(4, dtype=np.float32)[:3],
        "image_shape": (2, 3),
        "far": 4.0,
    },
    "rays.composite": RAY,
    "rays.cone_beam": BEAM | {"source_distance": np.float32(9), "detector_distance": np.float32(4)},
    "rays.filtered_backprojection": PROJECTED,
    "rays.first_crossing": RAY | {"level": np.float32(0)},
    "rays.line_integral": RAY,
    "rays.maximum_intensity": RAY,
    "rays.parallel_beam": BEAM,
    "ndimage.affine_transform": {"input": IMAGE[..., 0], "matrix": MATRIX[:, :2]},
    "ndimage.geometric_transform": {"input": IMAGE[..., 0], "mapping": one_row_down},
    "ndimage.map_coordinates": {"input": IMAGE[..., 0], "coordinates": np.stack([3 * U, 4 * V])},
    "ndimage.rotate": {"input": IMAGE[..., 0], "angle": 20.0},
    "ndimage.shift": {"input": IMAGE[..., 0], "shift": (0.4, -0.7)},
    "ndimage.zoom": {"input": IMAGE[..., 0], "zoom": 1.5},
    "ndimage.spline_filter": {"input": IMAGE[..., 0]},
    "ndimage.spline_filter1d": {"input": IMAGE[..., 0]},
    "warp.affine_grid": {"theta": MATRIX[None], "size": (1, C, H, W)},
    "warp.camera_from_opencv": {"camera_matrix": CAMERA},
    "warp.compose_flows": {"first": FLOW, "second": FLOW},
    "warp.cubemap_to_equirectangular": {"faces": normal(6, 4, 4, C), "output_shape": (3, 4)},
    "warp.distort": LENSES,
    "warp.distort_points": POINTS_OF_LENSES,
    "warp.equirectangular_to_cubemap": {"image": normal(4, 8, C), "size": 2},
    "warp.flow_from_itk": {"field": normal(H, W, 2), "geometry": GEOMETRY},
    "warp.forward_warp": {"image": IMAGE, "flow": FLOW},
    "warp.grid_sample": {"image": BATCH, "grid": 0.8 * normal(2, 3, 2, 2), "data_format": "NHWC"},
    "warp.integrate_velocity": {"velocity": FLOW, "steps": 1},
    "warp.invert_flow": {"flow": FLOW, "steps": 1},
    "warp.jacobian_determinant": {"flow": FLOW},
    "warp.matrix_from_itk": {"matrix": MATRIX[:, :2], "input_geometry": GEOMETRY, "output_geometry": GEOMETRY},
    "warp.matrix_from_nibabel": {"input_affine": np.diag(np.float32([2, 3, 2, 1])), "output_affine": np.eye(4)},
    "warp.matrix_from_opencv": {"matrix": MATRIX},
    "warp.matrix_from_scipy": {"matrix": MATRIX[:, :2]},
    "warp.matrix_from_skimage": {"matrix": HOMOGRAPHY},
    "warp.matrix_from_torch": {"theta": MATRIX, "input_shape": (H, W), "output_shape": (3, 4)},
    "warp.remap": {"image": IMAGE, "coords": COORDS},
    "warp.resample": {"image": IMAGE, "function": moved},
    "warp.resample_tiles": {"image": IMAGE, "function": moved},
    "warp.resize": {"image": IMAGE, "output_shape": (3, 9)},
    "warp.rotate": {"image": IMAGE, "angle": np.float32(0.35)},
    "warp.spatial_transform": {"image": BATCH, "theta": MATRIX},
    "warp.thin_plate_spline": {"image": IMAGE, "source_points": POINTS, "target_points": MOVED},
    "warp.undistort": LENSES,
    "warp.undistort_points": POINTS_OF_LENSES,
    "warp.warp_affine": {"image": IMAGE, "matrix": MATRIX},
    "warp.warp_boxes": {"boxes": np.float32([[0.6, 0.7, 3.3, 3.1]]), "transforms": [MATRIX, GENTLE]},
    "warp.warp_chain": {"image": IMAGE, "transforms": [MATRIX, FLOW]},
    "warp.warp_flow": {"image": IMAGE, "flow": FLOW},
    "warp.warp_labels": {"labels": LABELS, "transforms": [MATRIX]},
    "warp.warp_perspective": {"image": IMAGE, "matrix": HOMOGRAPHY},
    "warp.warp_points": {"points": POINTS, "transforms": [MATRIX, GENTLE]},
}
CLAMPED, LINEAR = jt.Sampler(address_mode="clamp"), jt.Sampler(filter_mode="linear")
NEAREST, SPLINE = jt.Sampler(filter_mode="point"), jt.Sampler(filter_mode="bspline")
SIDES = {"ddx": (SIDE, ZERO), "ddy": (ZERO, SIDE)}
DEEP = jt.build_mipmaps(SPACE)
IN_SPACE = {"texture": DEEP, "coords": (U, V, U), "shape": VOLUME.shape}
IN_SPACE |= {"ddx": (SIDE, ZERO, ZERO), "ddy": (ZERO, SIDE, ZERO), "ddz": (ZERO, ZERO, SIDE)}
ON_CUBE = {"texture": CUBE, "coords": (INDEX, INDEX), "face": 0}
CHANNELS = {"kernel": normal(1, 1, 1, 2)}

# How to change each field of a sampler, beside other fields, and the arguments beside it.
CODES = {"texture": jt.texture2d(BYTES)}
FIELDS = {
    "address_mode": ("wrap", {}),
    "filter_mode": ("point", {}),
    "cubic_coefficient": (-0.75, {"filter_mode": "cubic"}),
    "spline_order": (2, {"filter_mode": "bspline"}),
    "read_mode": ("normalized_float", {"filter_mode": "point"}, CODES),
    "normalized_coords": (False, {}),
    "srgb": (True, {"read_mode": "normalized_float"}, CODES),
    "mipmap_filter_mode": ("linear", {}),
    "mipmap_level_bias": (0.75, {}),
    "min_mipmap_level_clamp": (0.5, {"mipmap_filter_mode": "linear"}),
    "max_mipmap_level_clamp": (0.5, {"mipmap_filter_mode": "linear"}),
    "max_anisotropy": (4, {}),
    "seamless_cubemap": (False, {}),
    "arithmetic": ("hardware", {}),
    "deterministic": (True, {}),
    "limit": ("taps", {"filter_mode": "cubic"}),
}
# The functions that are called with another value for each field, and their arguments beside it: one for each way in
# which a sampler is read.
READERS = {
    "sample": {"texture": CHAIN, **SIDES},
    "splat": {"coords": (U, V), "ddx": (SIDE, ZERO), "ddy": (ZERO, 3 * SIDE)},
    "gather": {},
    "spline_filter": {},
    "warp.warp_affine": {"matrix": 3 * MATRIX, "antialias": True},
    "warp.resize": {},
    "warp.forward_warp": {},
    "warp.cubemap_to_equirectangular": {},
}
EAGER = ("unit.bind", "unit.bind_compressed", "warp.resample_tiles", "warp.SizedResize", "warp.SizedWarp")

# How to change an option: other values, each with the arguments that stand beside it in both calls. Values under the
# name of one function are for it, and those under the option's name alone are for all others. Of the arguments beside
# an option, a function gets those that it has.
FRACTIONS_OF_POINTS = jt.Sampler(filter_mode="point", read_mode="normalized_float", arithmetic="hardware")
FRACTIONS_IN_BORDER = jt.Sampler(address_mode="border", read_mode="normalized_float", arithmetic="hardware")
OTHERS = {
    "address_mode": [("wrap", {}), ("wrap", {"sampler": jt.Sampler(address_mode="mirror")})],
    "filter_mode": [("point", {}), ("point", {"sampler": LINEAR})],
    "sampler": [(NEAREST, {})],
    "border_color": [(2.0, {}), (2.0, {"address_mode": "clamp"}), (2.0, {"sampler": CLAMPED})],
    "antialias": [(True, {}), (False, {}), (True, {"filter_mode": "point", "antialias": False})],
    "dtype": [("float16", {})],
    "valid": [("finite", {}), (MASK, {})],
    "min_valid": [(0.5, {"valid": MASK}), (0.5, {})],
    "fill": [(2.0, {"valid": MASK}), (2.0, {})],
    "output_shape": [((5, 7), {})],
    "align_corners": [(True, {})],
    "inverse_map": [(True, {})],
    "new_camera_matrix": [(OTHER_CAMERA, {})],
    "model": [("fisheye", {})],
    "steps": [(2, {})],
    "flow_sampler": [
        (NEAREST, {"output_shape": (5, 7), "transforms": [MATRIX, FLOW]}),
        (NEAREST, {"output_shape": (5, 7), "transforms": [MATRIX, MATRIX]}),
        (NEAREST, {"transforms": [FLOW, MATRIX]}),
    ],
    "warp_labels.flow_sampler": [
        (NEAREST, {"output_shape": (5, 7), "transforms": [MATRIX, FLOW]}),
        (NEAREST, {"transforms": None, "coords": COORDS}),
    ],
    "filtered_backprojection.filter": [("hann", {}), (None, {})],
    "filtered_backprojection.source_distance": [(np.float32(9), {"source_distance": 8.0, "detector_distance": 4.0})],
    "filtered_backprojection.detector_distance": [(np.float32(5), {"source_distance": 8.0, "detector_distance": 4.0})],
    **{
        f"warp_{name}.flow_sampler": [
            (NEAREST, {"transforms": [MATRIX, GENTLE]}),
            (NEAREST, {"transforms": [MATRIX, MATRIX]}),
            (NEAREST, {"transforms": [GENTLE, MATRIX]}),
        ]
        for name in ("points", "boxes")
    },
    "warp_points.output_shape": [((5, 7), {"transforms": [GENTLE, MATRIX, GENTLE], "flow_sampler": SPLINE})],
    "warp_boxes.output_shape": [((3, 2), {"output_shape": (3, 5), "clip": True})],
    "to": [("image", {})],
    "clip": [(True, {"output_shape": (3, 2)}), (True, {"output_shape": (3, 2), "to": "image"})],
    "points_per_edge": [(3, {})],
    "near": [(np.float32(1.5), {})],
    "outside": [(-1.5, {}), (0.5, {"num_samples": None, "step": 0.5})],
    "num_samples": [(7, {})],
    "pixel_size": [(np.float32(1.5), {})],
    "min_transmittance": [(0.5, {})],
    **{
        f"{name}.step": [(0.5, {"num_samples": None}), (0.5, {})]
        for name in ("composite", "first_crossing", "line_integral", "maximum_intensity")
    },
    **{f"{name}.spacing": [(np.float32([2, 0.5]), {})] for name in ("composite", "first_crossing", "line_integral")},
    "line_integral.weights": [(np.float32([1, 0, 2, 0, 1]), {})],
    "matrix_from_scipy.offset": [((0.5, -0.25), {}), ((0.5, -0.25), {"matrix": MATRIX})],
    "mode": [("nearest", {})],
    "order": [(2, {})],
    "cval": [(1.5, {}), (1.5, {"mode": "nearest"})],
    "prefilter": [(False, {}), (False, {"order": 1})],
    "output": [("float16", {})],
    "layer": [(1, {"texture": LAYERED, "textures": LAYERED, "layer": 0, "shape": BATCH.shape})],
    "level": [(1, {"texture": CHAIN})],
    "lod": [(1.0, {"texture": CHAIN, "textures": CHAIN})],
    "ddx": [((2 * SIDE, ZERO), {"texture": CHAIN, **SIDES})],
    "ddy": [((ZERO, 2 * SIDE), {"texture": CHAIN, **SIDES})],
    "ddz": [((ZERO, ZERO, 9 * SIDE), IN_SPACE)],
    "key": [(KEY, {})],
    "face": [(1, ON_CUBE)],
    "boundary_mode": [("clamp", {})],
    "center": [((1.0, 0.5), {})],
    "offset": [((0.5, -0.25), {})],
    "component": [(1, {})],
    "gather.sampler": [(jt.Sampler(address_mode="wrap"), {})],
    "positions.sampler": [(jt.Sampler(normalized_coords=False), {})],
    **{
        f"texture{kind}.knots": [((knots_of(texels.shape[-2]), *[None] * (int(kind[0]) - 1)), {})]
        for kind, texels in (("1d", ROWS), ("2d", IMAGE), ("3d", VOLUME), ("1d_layered", IMAGE), ("2d_layered", BATCH))
    },
    "num_levels": [(2, {})],
    "fused_map.in_axes": [(0, {})],
    "fused_vmap.in_axes": [((0, None, None), {})],
    "out_axes": [(1, {})],
    "axis_size": [(3, {"in_axes": None})],
    "grid_sample.mode": [("nearest", {}), ("nearest", {"sampler": jt.Sampler(filter_mode="cubic")})],
    "grid_sample.padding_mode": [("reflection", {}), ("border", {"sampler": jt.Sampler(address_mode="wrap")})],
    "grid_sample.data_format": [("NCHW", {})],
    "grid_sample.border_color": [(2.0, {}), (2.0, {"padding_mode": "border"}), (2.0, {"sampler": CLAMPED})],
    "forward_warp.mode": [("linear", {"importance": FLOW[0]}), ("sum", {}), ("average", {"mode": "sum"})],
    "forward_warp.importance": [(FLOW[1], {}), (FLOW[1], {"mode": "sum"})],
    "forward_warp.return_coverage": [(True, {})],
    "resize.edges": [
        ("renormalize", {}),
        ("renormalize", {"filter_mode": "point"}),
        ("renormalize", {"address_mode": "wrap"}),
    ],
    "rotate.angle": [(np.float32(0.7), {})],
    "rotate.degrees": [(np.float32(40), {"angle": None})],
    "rotate.scale": [(1.5, {})],
    "resample.parameters": [((np.float32(1.3),), {"function": moved_by})],
    "resample_tiles.tile_shape": [((2, 3), {})],
    "resample_tiles.window_bytes": [(2**20, {})],
    "thin_plate_spline.regularization": [(1.0, {})],
    "camera_from_opencv.distortion": [(LENS, {})],
    "matrix_from_itk.translation": [((1.0, 2.0), {})],
    "matrix_from_itk.center": [((1.0, 2.0), {})],
    "matrix_from_nibabel.world_matrix": [(np.diag(np.float32([2, 3, 4, 1])), {})],
    "warp_labels.transforms": [([HOMOGRAPHY], {})],
    "warp_labels.coords": [(FLOW, {"transforms": None, "coords": COORDS}), (COORDS, {})],
    "warp_labels.method": [("partial_volume", {})],
    "warp_labels.border_label": [(3, {}), (3, {"address_mode": "clamp"})],
    "splat.kind": [("cubemap", {"coords": (U, V, U), "shape": (6, 4, 4, C)})],
    "splat.out_sharding": [(jax.P("rows"), {})],
    "surface_write.unique_indices": [(True, {})],
    "Texture.border_color": [(2.0, {})],
    "unit.bind.sampler": [(jt.Sampler(filter_mode="point", arithmetic="hardware"), {})],
    "unit.bind_compressed.sampler": [(FRACTIONS_OF_POINTS, {})],
    "unit.bind_compressed.border_color": [(1.0, {"sampler": FRACTIONS_IN_BORDER})],
    "block_compressed.kind": [("2d_layered", {}), ("2d", {"shape": (8, 4)})],
    "Texture.kind": [("1d_layered", {})],
    "Texture.level_shapes": [(((H, W, C),), {"texels": IMAGE.reshape(-1, C)})],
    "ndimage.rotate.axes": [((0, 2), {"input": VOLUME[..., 0]})],
    "ndimage.rotate.reshape": [(False, {})],
    "geometric_transform.extra_arguments": [((np.float32(0.5),), {})],
    "geometric_transform.extra_keywords": [({"shift": np.float32(0.5)}, {})],
    "zoom.grid_mode": [(True, {"mode": "grid-constant"}), (True, {})],
    "spline_filter1d.axis": [(0, {})],
    "theta_of.transform": [("attention", {"transform": "similarity", "parameters": normal(4)})],
    "SpatialTransformer.transform": [("attention", {})],
    "MultiresolutionGrid.ndim": [(2, {})],
    "MultiresolutionGrid.base_resolution": [(8, {})],
    "MultiresolutionGrid.per_level_scale": [(1.5, {})],
    "MultiresolutionGrid.finest_resolution": [(64, {}), (64, {"per_level_scale": 1.5})],
    "MultiresolutionGrid.log2_hashmap_size": [(9, {})],
    "MultiresolutionGrid.features_per_level": [(4, {})],
    "MultiresolutionGrid.interpolation": [("smoothstep", {})],
    "correlation_lookup.radius": [(1, {})],
    "correlation_pyramid.levels": [(1, {})],
    "deformable_attention.mask": [(np.bool_([[False, True, False, False, False, True]]), {})],
    "deformable_conv.mask": [(normal(2, H, W, 1), {})],
    "deformable_conv.bias": [(normal(2), {})],
    "deformable_conv.strides": [((2, 1), {"strides": (3, 1), "offsets": normal(2, 2, W, 2)})],
    "deformable_conv.padding": [(((1, 0), (0, 0)), {"strides": (8, 1), "offsets": normal(2, 1, W, 2)})],
    "deformable_conv.dilation": [(2, {"strides": (8, 1), "kernel": normal(2, 1, C, 2), "offsets": normal(2, 1, W, 4)})],
    "deformable_conv.groups": [(2, {})],
    "deformable_conv.offset_groups": [(2, {})],
    "roi_align.batch_indices": [(np.int32([1, 0]), {})],
    "roi_align.spatial_scale": [(0.5, {})],
    "roi_align.sampling_ratio": [(1, {})],
    "roi_align.aligned": [(True, {})],
    "roi_align.max_sampling_ratio": [(1, {"sampling_ratio": -1, "max_sampling_ratio": 3}), (3, {})],
    "sample_weighted.axis": [(0, {"coords": (normal(2, 2), normal(2, 2)), "weights": normal(2, 2)})],
    "sample_weighted.ddx": [((2 * SIDE, ZERO), {"textures": CHAIN, **SIDES})],
    "sample_weighted.ddy": [((ZERO, 2 * SIDE), {"textures": CHAIN, **SIDES})],
    "sample_weighted.head": [(np.int32([1, 0, 0]), {"head": np.int32([0, 0, 1]), "num_heads": 2})],
    "sample_weighted.num_heads": [(2, {"head": np.int32([0, 0, 1])})],
    "triplane.plane_axes": [(("xy", "yz", "zx"), {})],
    "triplane.reduce": [("sum", {})],
}


def of_grid(grid):
    """What a multiresolution grid is good for: where a point is read in each level, how, and the size of its tables."""
    numbers = np.array(grid.scales), np.array(grid.table_sizes)
    return grid.ndim, grid.features_per_level, grid.interpolation == "smoothstep", *numbers


def of_flax(layer):
    """The output of a layer whose transform is not the identity."""
    layer.head.bias[...] = layer.head.bias[...] + np.float32(0.3)
    return layer(BATCH)


def of_equinox(layer):
    bias = layer.head.bias + np.float32(0.3)
    return equinox.tree_at(lambda layer: layer.head.bias, layer, bias)(np.moveaxis(BATCH[0], -1, 0))


# What is compared of the objects that a class makes, of functions that are returned, and of an iterator.
RESULTS = {
    "unit.bind": lambda texture: jt.sample(texture, (U, V)),
    "unit.bind_compressed": lambda texture: jt.sample(texture, (U, V - np.float32(0.9), U)),
    "fused_map": lambda mapped: mapped(jax.numpy.asarray(SHARED)),
    "fused_vmap": lambda mapped: mapped(U, V, TEXTURE),
    "nn.MultiresolutionGrid": of_grid,
    "warp.SizedResize": lambda resize: resize(np.float32(IMAGE), (2, 3)),
    "warp.SizedWarp": lambda warp: warp(np.float32(IMAGE)),
    "layers.nnx.SpatialTransformer": of_flax,
    "layers.equinox.SpatialTransformer": of_equinox,
    "warp.resample_tiles": list,
}

# Which options change nothing, beside others or in a function, and the sentence of a docstring that says so.
OF_LEVELS = {
    "mipmap_filter_mode": "reads the level nearest to the level of detail",
    "mipmap_level_bias": "added to a level of detail that is given or that follows from a footprint",
    "m??_mipmap_level_clamp": "bounds of the level of detail.",
    "max_anisotropy": "how many reads may lie along the longer side of a footprint",
}
IN_PIXELS = ("warp.resample", "Its `normalized_coords` is ignored")
POINTS_STAY = ("warp.resize", "The point filter returns stored values and is never widened.")
OF_CUBEMAPS = ("Sampler", "whether a linear read of a cubemap blends across the edges of a face.")
IGNORED = {
    "ndimage.* cval beside mode": ("ndimage.map_coordinates", 'the number outside in ``"constant"`` and'),
    "ndimage.* prefilter beside order": ("ndimage.map_coordinates", "Orders 0 and 1 need no filter."),
    "warp.resize antialias beside filter_mode*": POINTS_STAY,
    "warp.SizedResize antialias beside filter_mode*": POINTS_STAY,
    "warp.resample_tiles window_bytes": ("warp.resample_tiles", "the pixels are those of `resample`."),
    **{
        f"gather sampler.{field}*": ("gather", "address modes, read mode and coordinate units are used")
        for field in ("filter_mode", "cubic_coefficient", "spline_order", "limit")
    },
    **{
        f"warp.resize sampler.{field}*": ("warp.resize", "The sampler's mip options have no effect")
        for field in OF_LEVELS
    },
    **{
        f"{name} sampler.{field}*": ("Sampler", sentence)
        for name in ("gather", "spline_filter", "warp.forward_warp", "warp.cubemap_to_equirectangular")
        for field, sentence in OF_LEVELS.items()
    },
    **{
        f"spline_filter sampler.{field}*": ("spline_filter", "its `spline_order` and its address modes determine")
        for field in ("normalized_coords", "deterministic")
    },
    "warp.cubemap_to_equirectangular sampler.address_mode": (
        "warp.cubemap_to_equirectangular",
        "Its address modes apply with ``seamless_cubemap=False`` only.",
    ),
    "warp.cubemap_to_equirectangular sampler.normalized_coords": (
        "Sampler",
        "The directions that read a cubemap have no unit.",
    ),
    "warp.warp_affine sampler.mipmap_filter_mode": ("warp.resample", "levels are blended whatever its"),
    "warp.resize sampler.deterministic": ("warp.resize", "widened filters are always deterministic."),
    **{f"warp.{name} sampler.normalized_coords": IN_PIXELS for name in ("warp_affine", "resize", "forward_warp")},
    **{f"{name} sampler.seamless_cubemap*": OF_CUBEMAPS for name in READERS if "cubemap" not in name},
}
# Options whose effect is not in a result, and the file that tests it.
TESTED_ELSEWHERE = {
    "kernels_in_exports.compute_capability": "compiled/test_exports.py",
    "unit.bind.keep_texels": "unit/reads/test_unit.py",
    "unit.bind_compressed.keep_texels": "unit/reads/test_unit.py",
    "unit.bind_compressed.kind": "unit/reads/test_unit.py",
    "deterministic.enabled": "compiled/test_adjoint.py",
    "sharded.Routing.slack": "devices/test_cut_reads.py",
    "Texture.cut": "devices/test_cut_chains.py",
    "Texture.knots": "unit/reads/test_knots.py",
}
