"""Warps of volumes, batches and bytes, and calls whose arrays are so large that other forms are chosen."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from tests.compiled.calls import normal, stored
from tests.lowered.programs import Call
from tests.lowered.reads import FORWARD_AND_BACK

IMAGE, VOLUME, BATCH = normal(19, 23, 3), normal(9, 8, 7, 2), normal(4, 19, 23, 3)
AFFINE = np.float32([[1.7, 0.2, 0.4], [-0.1, 0.8, 0.7]])
SPATIAL = np.float32([[1.3, 0.2, 0, 0.4], [-0.1, 0.8, 0.1, 0.7], [0, 0.1, 1.1, -0.3]])
THETAS = normal(4, 2, 3)
FLOW, FIELD = 2 * normal(19, 23, 2), 2 * normal(9, 8, 7, 3)
FILTERS = ("point", "linear", "cubic", "bspline", "mitchell", "lanczos3", "gaussian")


def warp(name, image, *more, **options):
    """A warp with derivatives in all that are floating."""
    run = lambda *args: getattr(jt.warp, name)(*args, **options)
    args, is_long = (image, *more), options.get("antialias") and name != "resize"
    floating = tuple(k for k, x in enumerate(args) if x.dtype == np.float32)
    return Call(run, args, floating, FORWARD_AND_BACK if is_long else None)


def integrated(velocity):
    return jt.warp.jacobian_determinant(jt.warp.integrate_velocity(velocity, 3))


WARPS = {
    "affine, antialiased": warp("warp_affine", IMAGE, AFFINE, antialias=True),
    "affine, cubic, antialiased": warp("warp_affine", IMAGE, AFFINE, antialias=True, filter="cubic", address="mirror"),
    "affine of bytes": warp("warp_affine", stored("uint8", 19, 23, 3), AFFINE, output_shape=(30, 40)),
    "affine of bytes with alpha": warp("warp_affine", stored("uint8", 19, 23, 4), AFFINE, output_shape=(30, 40)),
    "affine of halves": warp("warp_affine", stored("bfloat16", 19, 23, 3), AFFINE),
    "affine of a volume": warp("warp_affine", VOLUME, SPATIAL),
    "affine of a volume, antialiased": warp("warp_affine", VOLUME, SPATIAL, antialias=True),
    "a homography, antialiased": warp("warp_perspective", IMAGE, np.eye(3, dtype=np.float32), antialias=True),
    "flow, antialiased": warp("warp_flow", IMAGE, FLOW, antialias=True),
    "flow of a volume": warp("warp_flow", VOLUME, FIELD, filter="cubic"),
    "a spatial transformer": warp("spatial_transform", BATCH, THETAS, output_shape=(17, 13)),
    "a reproducible spatial transformer": warp(
        "spatial_transform", BATCH, THETAS, sampler=jt.Sampler(address_mode="border", deterministic=True)
    ),
    "a velocity": Call(integrated, (0.3 * FLOW,), (0,)),
    "an inverse flow": Call(lambda flow: jt.warp.invert_flow(flow, 3), (0.1 * FLOW,), (0,)),
    "forward, linear": warp("forward_warp", IMAGE, FLOW, mode="linear", importance=normal(19, 23)),
    "forward sums": warp("forward_warp", BATCH, 2 * normal(4, 19, 23, 2), mode="sum"),
    "a lens of a fisheye": Call(
        lambda image, camera, lens: jt.warp.undistort(image, camera, lens, model="fisheye"),
        (IMAGE, np.float32([[9, 0, 11], [0, 9, 9], [0, 0, 1]]), np.float32([-0.1, 0.02, 0, 0])),
        (0, 1, 2),
    ),
    "a panorama, antialiased": Call(
        lambda faces: jt.warp.cubemap_to_equirectangular(faces, (5, 10), antialias=True), (normal(6, 8, 8, 2),), (0,)
    ),
    **{f"smaller, {name}": warp("resize", IMAGE, output_shape=(7, 9), filter=name) for name in FILTERS},
    **{f"larger, {name}": warp("resize", IMAGE, output_shape=(30, 41), filter=name) for name in FILTERS[1:4]},
    "smaller bytes": warp("resize", stored("uint8", 19, 23, 3), output_shape=(7, 9)),
    "a smaller volume": warp("resize", VOLUME, output_shape=(5, 4, 9), filter="lanczos3", address="wrap"),
    "smaller images": warp("resize", BATCH, output_shape=(7, 9), antialias=False),
}


# Large arrays


def large(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def hash_grid():
    grid = jt.nn.MultiresolutionGrid(ndim=3, num_levels=16, finest_resolution=2048)
    tables = [large(size, 2) for size in grid.table_sizes]
    encode = lambda tables, points: jt.nn.multiresolution_grid(tables, points, grid)
    return Call(encode, (tables, large(2**18, 3)), (0, 1), FORWARD_AND_BACK)


def sampled(texels, *coords, make=jt.texture2d, **options):
    read = lambda texels, *coords: jt.sample(make(texels), coords, jt.Sampler(**options))
    floating = [k for k, x in enumerate((texels, *coords)) if jnp.issubdtype(x.dtype, jnp.floating)]
    return Call(read, (texels, *coords), tuple(floating), FORWARD_AND_BACK)


def anisotropic(texels, x, y, sides):
    sampler = jt.Sampler(max_anisotropy=16, mipmap_filter_mode="linear", address_mode="wrap")
    return jt.sample(jt.build_mipmaps(jt.texture2d(texels)), (x, y), sampler, ddx=sides[:2], ddy=sides[2:])


SCREEN = large(2160, 3840)
LARGE = {
    **{f"{n} channels": sampled(large(4096, 4096, n), large(2048, 2048), large(2048, 2048)) for n in (1, 2, 3, 4, 32)},
    "bytes": sampled(large(4096, 4096, 3, dtype=jnp.uint8), SCREEN, SCREEN, read_mode="normalized_float"),
    "hardware": sampled(large(4096, 4096, 4), SCREEN, SCREEN, arithmetic="hardware"),
    "cubic": sampled(large(2048, 2048, 1), SCREEN, SCREEN, filter_mode="cubic", address_mode="mirror"),
    "reproducible": sampled(large(2048, 2048, 4), SCREEN, SCREEN, deterministic=True),
    "a crowd": sampled(large(32, 32, 3), SCREEN, SCREEN, address_mode="wrap"),
    "a volume": sampled(large(256, 256, 256, 1), *[large(2**20)] * 3, make=jt.texture3d, address_mode="border"),
    "more texels than int32 numbers": sampled(large(50_000, 60_000, 1, dtype=jnp.bfloat16), large(99), large(99)),
    "many small textures": Call(
        jax.vmap(lambda t, x, y: jt.sample(jt.texture2d(t), (x, y))),
        (large(512, 8, 8, 16), large(512, 32), large(512, 32)),
        (0, 1, 2),
        FORWARD_AND_BACK,
    ),
    "spatial transformers": Call(
        lambda images, thetas: jt.warp.spatial_transform(images, thetas),
        (large(64, 224, 224, 3), large(64, 2, 3)),
        (0, 1),
        FORWARD_AND_BACK,
    ),
    "affine": Call(jt.warp.warp_affine, (large(2160, 3840, 3), large(2, 3)), (0, 1), FORWARD_AND_BACK),
    "affine of a volume": Call(jt.warp.warp_affine, (large(256, 256, 256, 1), large(3, 4)), (0, 1), FORWARD_AND_BACK),
    "affine of bytes": Call(
        jt.warp.warp_affine, (large(2160, 3840, 3, dtype=jnp.uint8), large(2, 3)), (), FORWARD_AND_BACK[:1]
    ),
    "flow": Call(jt.warp.warp_flow, (large(8, 512, 512, 3), large(8, 512, 512, 2)), (0, 1), FORWARD_AND_BACK),
    "flow of a volume": Call(
        jt.warp.warp_flow, (large(160, 192, 224, 1), large(160, 192, 224, 3)), (0, 1), FORWARD_AND_BACK
    ),
    "forward": Call(jt.warp.forward_warp, (large(8, 512, 512, 3), large(8, 512, 512, 2)), (0, 1), FORWARD_AND_BACK),
    "smaller": Call(lambda image: jt.warp.resize(image, (540, 960)), (large(2160, 3840, 3),), (0,), FORWARD_AND_BACK),
    "prefilter": Call(
        lambda t: jt.spline_filter(jt.texture3d(t), jt.Sampler(filter_mode="bspline")).texels,
        (large(256, 256, 256, 1),),
        (0,),
        FORWARD_AND_BACK,
    ),
    "anisotropic": Call(
        anisotropic, (large(2048, 2048, 4), SCREEN, SCREEN, (SCREEN,) * 4), (0, 1, 2, 3), FORWARD_AND_BACK
    ),
    "a hash grid": hash_grid(),
    "deformable attention": Call(
        lambda values, places, weights: jt.nn.deformable_attention(
            values, ((64, 64), (32, 32), (16, 16), (8, 8)), places, weights
        ),
        (large(2, 5440, 8, 32), large(2, 300, 8, 4, 4, 2), large(2, 300, 8, 4, 4)),
        (0, 1, 2),
        FORWARD_AND_BACK,
    ),
    "deformable convolution": Call(
        lambda x, offsets, kernel: jt.nn.deformable_conv(x, offsets, kernel, padding=1),
        (large(8, 64, 64, 256), large(8, 64, 64, 18), large(3, 3, 256, 256)),
        (0, 1, 2),
        FORWARD_AND_BACK,
    ),
    "a correlation lookup": Call(
        lambda first, second, coords: jt.nn.correlation_lookup(jt.nn.correlation_pyramid(first, second), coords),
        (large(1, 48, 64, 128), large(1, 48, 64, 128), large(1, 48, 64, 2)),
        (0, 1, 2),
        FORWARD_AND_BACK,
    ),
    "regions": Call(
        lambda features, boxes: jt.nn.roi_align(features, boxes, (7, 7), batch_indices=jnp.zeros(512, jnp.int32)),
        (large(2, 64, 64, 256), large(512, 4)),
        (0,),
        FORWARD_AND_BACK,
    ),
    "a triplane": Call(jt.nn.triplane, (large(3, 256, 256, 32), large(2**17, 3)), (0, 1), FORWARD_AND_BACK),
}
