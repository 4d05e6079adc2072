"""Calls at fields, grids of a matrix, chains of maps and places inside of models; drawn, limited and summed."""

import functools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from jaxtex._engine.describe.hashing import plan_of_pyramid
from jaxtex._engine.describe.operands import Stack
from jaxtex._engine.describe.plan import Layout, SizedTexture
from jaxtex._engine.describe.spec import Read, ReadSpec
from jaxtex._engine.rules import primitives
from jaxtex._reads.calls import sample_grid
from jaxtex._tables.storage_formats import Decoding
from jaxtex.warp.coordinate_functions import affine
from tests.compiled.calls import TRILINEAR, Call, chain, normal, uniform

# Fields, and grids of a matrix

IMAGE, FLOW = normal(3, 9, 8, 2), 2 * normal(3, 7, 6, 2)
VOLUME, INDICES = normal(5, 6, 7), 3 + 2 * normal(2, 3, 4, 5)
HOMOGRAPHY = np.float32([[0.3, 0.1, -1], [-0.1, 0.4, 1], [0.004, 0.002, 1]])


def torch_grid(mode, padding_mode, align_corners):
    grid = np.random.default_rng(0).uniform(-2, 2, (2, 9, 17, 2)).astype(np.float32)
    # The side of a fold on which a large number lies is one of rounding.
    far = 3.3 if padding_mode == "reflection" else 1e30
    grid[0, 0, :4, 0], grid[0, 1, :4, 1] = (np.nan, np.inf, -1, 1), (-np.inf, 0, far, -0.0)
    read = lambda images, grid: jt.warp.grid_sample(images, grid, mode, padding_mode, align_corners)
    return Call(read, (normal(2, 3, 6, 7), grid), (0, 1))


def components_in_another_order(texels, points):
    """Points along the first axis, x before y, where the engine takes y first."""
    axes = Layout.of(jt.texture2d(texels)).axes(jt.Sampler(normalized_coords=False, address_mode="mirror"))
    spec = ReadSpec(axes, Decoding.ELEMENT, np.dtype(np.float32), stacks=(Stack(-3, (1, 0)),))
    return primitives.read(texels, None, Read(spec, (points,)))


def map_coordinates(array, indices, **options):
    return jt.ndimage.map_coordinates(array, indices, order=1, **options)


def four_axes(array, indices, cval):
    return map_coordinates(array, indices, cval=cval)


def points_of(sizes):
    """Indices in and around an array, one axis after the other."""
    rng = np.random.default_rng(len(sizes))
    return np.stack([rng.uniform(-1, n + 1, (6, 8)) for n in sizes]).astype(np.float32)


def composed(*chain):
    return jt.warp.warp_chain(normal(6, 7, 8, 2), chain, (5, 7, 6))


def label_votes(labels, matrices, flow):
    return jt.warp.warp_labels(labels, [matrices, flow], labels.shape[:3], method="partial_volume")


def near_identity(scale):
    return (np.column_stack([scale * np.eye(3), np.zeros(3)]) + 0.05 * normal(3, 4)).astype(np.float32)


def windows(images, x, y):
    """A window of 9 x 9 samples around a point of each image."""
    near, sampler = np.arange(-4, 5, dtype=np.float32), jt.Sampler(address_mode="border", normalized_coords=False)
    read = lambda image, x, y: jt.sample(jt.texture2d(image), (x + near[:, None], y + near[None]), sampler)
    return jax.vmap(read)(images, x, y)


LABELS = np.random.default_rng(3).integers(0, 5, (4, 5, 6, 2)).astype(np.int32)
FIELDS = {
    "a homography": Call(
        lambda image, matrix: jt.warp.warp_perspective(image, matrix, (17, 40), inverse_map=True),
        (normal(6, 7, 3), HOMOGRAPHY),
        (0,),
    ),
    "affine maps": Call(
        lambda images, matrices: jt.warp.warp_affine(images, matrices, (8, 9)),
        (
            normal(2, 6, 7, 3),
            np.float32([[[1.01, 0.2, 0.31], [-0.1, 0.93, 0.62]], [[0.83, 0.01, 1.31], [0.2, 1.13, -0.71]]]),
        ),
        (0, 1),
    ),
    "flows": Call(jt.warp.warp_flow, (IMAGE, FLOW), (0, 1)),
    "cubic flow": Call(lambda i, f: jt.warp.warp_flow(i, f, filter_mode="cubic"), (IMAGE, FLOW), (0, 1)),
    "windows of images": Call(windows, (normal(4, 11, 7, 3), 7 * uniform(4, low=0), 11 * uniform(4, low=0)), (0, 1, 2)),
    "flows of an image": Call(
        lambda images, flows: jax.vmap(lambda flow: jt.warp.warp_flow(images[0], flow))(flows), (IMAGE, FLOW), (0, 1)
    ),
    "bilinear, zeros": torch_grid("bilinear", "zeros", False),
    "bilinear, reflection": torch_grid("bilinear", "reflection", True),
    "nearest, border": torch_grid("nearest", "border", False),
    "indices": Call(map_coordinates, (VOLUME, INDICES.reshape(3, -1)), (0, 1)),
    "a batch of indices": Call(jax.vmap(map_coordinates, (None, 0)), (VOLUME, INDICES), (0, 1)),
    "four axes": Call(four_axes, (normal(4, 5, 3, 6), points_of((4, 5, 3, 6)), np.float32(0.5)), (0, 1, 2)),
    "another order": Call(components_in_another_order, (IMAGE[0], 4 + 3 * normal(2, 5, 3)), (0, 1)),
    "maps in a row": Call(composed, (near_identity(0.6), 0.4 * normal(4, 5, 6, 3), near_identity(1.7)), (0, 1, 2)),
    "votes for labels": Call(
        label_votes,
        (LABELS, np.stack([np.eye(3, 4), 0.8 * np.eye(3, 4)]).astype(np.float32), 0.7 * normal(4, 5, 6, 3)),
        exact=True,
    ),
}

# Splats


def splat(shape, count, low=-0.2, high=1.2, row="sum", **options):
    """Random samples of a volume."""
    values, sampler = normal(count, shape[-1]), jt.Sampler(**options)
    function = lambda values, *coords: jt.splat(values, coords, shape, sampler).texels
    return Call(function, (values, *uniform(3, count, low=low, high=high)), (0, 1, 2, 3), row=row, scale=count / 8)


SPLATS = {
    **{
        f"few texels, {channels} channels{', reproducible' * deterministic}": splat(
            (3, 3, 3, channels), 3000, 0, 1, "long sum", deterministic=deterministic
        )
        for channels, deterministic in ((1, False), (2, True), (3, False))
    },
    # Copies of an odd number of texels: in every other one, pairs of texels are no aligned rows.
    "few texels far apart": splat((9, 1, 5, 1), 3000, -2, 3, row="long sum", address_mode="wrap"),
    "few texels of many taps": splat((9, 1, 5, 1), 3000, row="long sum", filter_mode="cubic"),
    **{
        f"random samples, {channels} channels": splat((40, 30, 21, channels), 500, address_mode=mode)
        for channels, mode in ((1, "mirror"), (2, "border"), (3, "border"))
    },
}

# Textures whose sizes are operands

SIZED_SHAPE = (9, 14)
PIXELS = (
    np.arange(0.5, SIZED_SHAPE[1], dtype=np.float32)[None],
    np.arange(0.5, SIZED_SHAPE[0], dtype=np.float32)[:, None],
)
# Products are exact, and no sample lies on a kink, so that a GPU may round once or twice.
MATRIX = [np.full((1, 1), v, np.float32) for v in (135 / 64, -57 / 64, 423 / 128, 45 / 64, 109 / 64, -535 / 128)]


def read_sized(texels, height, width, matrix, *starts, address_mode, window=None):
    """A read of a texture in a flat array, or of one in a window, which begins in its middle."""
    inside = {"window": window, "starts": starts} if window else {}
    texture = SizedTexture(texels.reshape(-1, 2), (height, width), 5.0 * jnp.ones(2), **inside)
    sampler = jt.Sampler(address_mode=address_mode, normalized_coords=False)
    return sample_grid(texture, affine, (*PIXELS, *matrix), sampler)


def sized(address_mode, window=None):
    """What is not needed is NaN."""
    height, width = 8, 30
    texels, starts, number = 200 * uniform(height, width, 2, low=0, high=1), (5, 17), np.int32
    held = np.full((*(window or (64, 64)), 2), np.nan, np.float32)
    if window:
        rows, columns = ((start + np.arange(n)) % n for start, n in zip(starts, (height, width)))
        held[:height, :width] = texels[np.ix_(rows, columns)]
    else:
        held.reshape(-1, 2)[: height * width] = texels.reshape(-1, 2)
    function = functools.partial(read_sized, address_mode=address_mode, window=window)
    args = held, number(height), number(width), MATRIX, *(map(number, starts) if window else ())
    return Call(function, args, scale=200.0)


# Reads inside of models


def read_hashed(table, *coords):
    """One hashed level of a pyramid."""
    points = jnp.stack(jnp.broadcast_arrays(*coords), -1)
    read = plan_of_pyramid(table.dtype, points, (1.0,), (6,), table.shape[:1], (True,))
    return primitives.read(table, None, read)[..., 0, :]


def multiresolution(features=2, dtype="float32", **sizes):
    """A dense level, to its very corner, where rows are shared, and a hashed one."""
    grid = jt.nn.MultiresolutionGrid(num_levels=2, log2_hashmap_size=5, features_per_level=features, **sizes)
    points = uniform(70, grid.ndim, low=0, high=1)
    points[0] = 1
    encode = lambda tables, points: jt.nn.multiresolution_grid(tables, points, grid)
    return Call(encode, ([normal(size, features).astype(dtype) for size in grid.table_sizes], points), (0, 1))


def of_pyramid(levels, x, y, w, deterministic=None):
    """Levels of any sizes, whose channels are divided among two heads: S is (queries, heads, levels, points)."""
    head, textures = jnp.arange(2)[:, None, None], [jt.texture2d(t) for t in levels]
    sampler = jt.Sampler(address_mode="border", deterministic=deterministic)
    return jt.nn.sample_weighted(textures, (x, y), w, sampler, axis=(2, 3), head=head, num_heads=2)


def attended(value, points, weights):
    """Deformable attention with two heads, whose points come in one array."""
    return jt.nn.deformable_attention(value, ((5, 7), (2, 3)), points, weights)


def of_chain(texels, color, x, y, w, lod):
    """A mip chain with a border color, read at levels of detail."""
    sampler = jt.Sampler(address_mode="border", mipmap_filter_mode="linear")
    texture = jt.build_mipmaps(jt.texture2d(texels, border_color=color))
    return jt.nn.sample_weighted(texture, (x, y), w, sampler, lod=lod, axis=0)


def of_layers(texels, x, y, w):
    sampler = jt.Sampler(filter_mode="cubic", limit="taps")
    return jt.nn.sample_weighted(jt.texture2d_layered(texels), (x, y), w, sampler, layer=jnp.arange(3))


def along_rays(volume, start, end, weights=None, **options):
    """Integrals along segments, whose ends all reads of a sum share."""
    sampler = jt.Sampler(**options)
    return jt.rays.line_integral(volume, start, end, num_samples=21, weights=weights, sampler=sampler)


def highest(volume, start, end, outside=None):
    """The largest samples, with a number in place of infinity."""
    found = jt.rays.maximum_intensity(volume, start, end, num_samples=21, outside=outside)
    return jnp.where(jnp.isfinite(found), found, -1)


def crossing(volume, start, end, level):
    """Depths, with a number in place of infinity."""
    depth = jt.rays.first_crossing(volume, start, end, level, num_samples=40)
    return jnp.where(jnp.isfinite(depth), depth, -1)


def composited(volume, start, end, least=0.0):
    return jt.rays.composite(0.3 * volume, start, end, num_samples=21, min_transmittance=least)


def backprojected(views, angles, source, shape=(5, 6)):
    """The backprojection of a fan or a cone, without its filter, of which NumPy has no rule."""
    beam = {"source_distance": source, "detector_distance": np.float32(7), "pixel_size": np.float32(1.3)}
    return jt.rays.filtered_backprojection(views, shape, angles, filter=None, **beam)


def places(*shape):
    return uniform(*shape, low=-0.1, high=1.1)


IN_LAYERS = normal(3, 5, 4, 2), places(7, 3), places(7, 3)[::-1].copy(), normal(7, 3)
IN_LEVELS = normal(6, 5, 3), normal(3), places(3, 4), places(3, 4)[::-1].copy(), normal(3, 4), 2 * places(3, 4)
OF_HEADS = places(6, 2, 3, 2), places(6, 2, 3, 2)[::-1].copy(), normal(6, 2, 3, 2)

# Segments from and to points around a volume.
ENDS = uniform(5, 7, 3, low=-2, high=9), uniform(5, 7, 3, low=-2, high=9)[::-1].copy()
# A volume that a segment crosses at an angle: its slope is never small where it is 0.2.
SMOOTH = np.float32(np.add.outer(np.add.outer(np.arange(5), 0.7 * np.arange(6)), 0.4 * np.arange(7))[..., None] - 4)
IN_TWO_LEVELS = tuple(a[:, :, :2] for a in OF_HEADS)
KEY = np.zeros(2, np.uint32)


def numbers_of(key, shape, dtype):
    """In place of `jax.random.uniform`, as NumPy has no rule for keys."""
    del key
    return uniform(*shape, low=0, high=1).astype(dtype)


def drawn(texels, *coords, make=jt.texture2d, more=None, **options):
    """A read of texels that random numbers choose."""
    sampler = jt.Sampler(**options)

    def read(texels, *coords):
        with mock.patch.object(jax.random, "uniform", numbers_of):
            return jt.sample(make(texels), coords, sampler, key=KEY, **(more or {}))

    return Call(read, (texels, *coords), tuple(range(1 + len(coords))))


FREE = tuple(uniform(2, 300, low=-0.4, high=1.4))
MODELS = {
    "a hashed level": Call(read_hashed, (normal(37, 2), *uniform(3, 300, low=-2, high=7)), (0, 1, 2, 3)),
    "levels of a grid": multiresolution(base_resolution=3),
    "narrow levels side by side": multiresolution(16, "bfloat16", base_resolution=3),
    "a pyramid of heads": Call(
        of_pyramid, ([normal(5, 7, 8), normal(2, 3, 8), normal(1, 1, 8)], *OF_HEADS), (0, 1, 2, 3)
    ),
    "halves of attention": Call(
        attended,
        [
            a.astype(np.float16)
            for a in (normal(1, 41, 2, 8), uniform(1, 70, 2, 2, 3, 2, low=-0.2, high=1.2), normal(1, 70, 2, 2, 3))
        ],
        (0, 1, 2),
    ),
    "points of attention": Call(
        attended, (normal(1, 41, 2, 3), uniform(1, 6, 2, 2, 3, 2, low=-0.2, high=1.2), normal(1, 6, 2, 2, 3)), (0, 1, 2)
    ),
    "a reproducible pyramid": Call(
        functools.partial(of_pyramid, deterministic=True), ([normal(5, 7, 8), normal(2, 3, 8)], *IN_TWO_LEVELS), (0, 3)
    ),
    "a weighted chain": Call(of_chain, IN_LEVELS, tuple(range(6))),
    "weighted layers": Call(of_layers, IN_LAYERS, (0, 1, 2, 3)),
    "rays through a volume": Call(along_rays, (normal(5, 6, 7, 2), *ENDS), (0, 1, 2), row="long sum"),
    "weighted rays through an image": Call(
        functools.partial(along_rays, filter_mode="cubic"),
        (normal(6, 7, 1), *(a[..., :2] for a in ENDS), normal(21)),
        (0, 1, 2, 3),
        row="long sum",
    ),
    "few rays": Call(along_rays, (normal(5, 6, 7, 5), *(a[0, :3] for a in ENDS)), (1, 2), row="long sum"),
    "the largest samples of rays": Call(highest, (normal(5, 6, 7, 2), *ENDS), (0, 1, 2), row="long sum"),
    "the largest samples over a color": Call(
        functools.partial(highest, outside=-0.7), (normal(5, 6, 7, 2), *ENDS), (0, 1, 2), row="long sum"
    ),
    "depths of a surface": Call(crossing, (SMOOTH, *ENDS, np.float32([0.2])), (0, 1, 2, 3), row="long sum"),
    "composited rays": Call(composited, (normal(5, 6, 7, 3), *ENDS), (0, 1, 2), row="long sum"),
    "composited rays that end early": Call(
        functools.partial(composited, least=0.5), (normal(5, 6, 7, 1), *ENDS), (0, 1, 2), row="long sum"
    ),
    "a fan, backprojected": Call(
        backprojected, (normal(21, 9, 2), uniform(21, high=6.2), np.float32(13)), (0, 1, 2), row="long sum"
    ),
    "a cone, backprojected": Call(
        functools.partial(backprojected, shape=(3, 4, 5)),
        (normal(21, 5, 8, 1), uniform(21, high=6.2), np.float32(13)),
        (0, 1, 2),
        row="long sum",
    ),
    "a drawn texel": drawn(normal(9, 7, 2), *FREE, deterministic=True),
    "two drawn texels": drawn(normal(9, 7, 2), *FREE, filter_mode="cubic"),
    "a texel drawn along a footprint": drawn(
        normal(16, 12, 2),
        *FREE,
        make=chain,
        more={"ddx": (0.3, 0.1), "ddy": (-0.02, 0.06)},
        max_anisotropy=3,
        address_mode="border",
        **TRILINEAR,
    ),
    "sizes that are operands": sized("mirror"),
    "a window with a border": sized("border", (16, 32)),
    "a window around a sphere": sized("sphere", (16, 32)),
}
