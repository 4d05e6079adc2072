"""Calls on eight devices: textures that are sharded over an explicit mesh, and programs that XLA partitions."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import checkify
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from tests.lowered.parts import CUT_SIZES, DEVICES
from tests.lowered.programs import Call, Mesh

ROWS = Mesh({"rows": DEVICES})
HALO, ROUTING, WHOLE = jt.sharded.Halo(4), jt.sharded.Routing(), jt.sharded.Whole()
METHODS = {"halo": HALO, "routing": ROUTING, "whole": WHOLE}
TRILINEAR = {"mipmap_filter_mode": "linear", "address_mode": "wrap"}


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def i32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def sharded(function, *placed, wrt=None, ways=("value", "reverse"), mesh=ROWS, method=None):
    """A call of arrays, each with how it is sharded."""
    args, specs = zip(*placed)
    floating = tuple(k for k, x in enumerate(args) if jnp.issubdtype(x.dtype, jnp.floating))
    return Call(function, args, floating if wrt is None else wrt, ways, mesh, specs, method)


def with_each_method(name, function, *placed, **options):
    return {f"{name}, {word}": sharded(function, *placed, method=m, **options) for word, m in METHODS.items()}


def read(texels, *coords, make=jt.texture2d, more=(), **options):
    given, named = coords[: len(coords) - len(more)], dict(zip(more, coords[len(coords) - len(more) :]))
    return jt.sample(make(texels), given, jt.Sampler(**options), **named)


def reads(**options):
    return functools.partial(read, **options)


def chain(texels):
    return jt.build_mipmaps(jt.texture2d(texels))


def along(texels, x, y, side):
    sampler = jt.Sampler(max_anisotropy=4, **TRILINEAR)
    return jt.sample(chain(texels), (x, y), sampler, ddx=(side, side), ddy=(side / 8, side / 9))


def splat(values, *coords, shape=(64, 48, 2), **options):
    return jt.splat(values, coords, shape, jt.Sampler(**options), out_sharding=P("rows")).texels


def written(name, texels, values, x, y):
    return getattr(jt, f"surface_{name}")(jt.texture2d(texels), values, (x, y), boundary_mode="clamp").texels


def weighted(texels, x, y, weights):
    return jt.nn.sample_weighted(jt.texture2d(texels), (x, y), weights)


def weighted_chain(texels, x, y, lod, weights):
    return jt.nn.sample_weighted(chain(texels), (x, y), weights, jt.Sampler(**TRILINEAR), lod=lod)


def by_key(texels, x, y):
    return jt.sample(jt.texture2d(texels), (x, y), key=jax.random.wrap_key_data(jnp.zeros(2, jnp.uint32)))


def bordered(texels, color, x, y):
    sampler = jt.Sampler(address_mode="border", arithmetic="hardware")
    return jt.sample(jt.texture2d(texels, border_color=color), (x, y), sampler)


def turned(image):
    return jt.warp.rotate(image, 3.0)


IMAGE, COLUMNS, SAMPLE = (f32(64, 48, 2), P("rows")), (f32(64, 48, 2), P(None, "rows")), (f32(32, 5), P("rows"))
VALUES, INDEX, EVERYWHERE = (f32(32, 5, 2), P("rows")), (i32(32, 5), P("rows")), (f32(32, 5), P())
ALL_WAYS = ("value", "forward", "reverse", "second")
SHARDED = {
    **with_each_method("rows", reads(address_mode="mirror"), IMAGE, SAMPLE, SAMPLE, ways=ALL_WAYS),
    **with_each_method("cubic", reads(filter_mode="cubic", address_mode="wrap"), IMAGE, SAMPLE, SAMPLE),
    **with_each_method("volume", reads(make=jt.texture3d), (f32(64, 6, 5, 1), P("rows")), SAMPLE, SAMPLE, SAMPLE),
    **with_each_method("chain", reads(make=chain, more=("lod",), **TRILINEAR), IMAGE, SAMPLE, SAMPLE, SAMPLE),
    **with_each_method("footprint", along, IMAGE, SAMPLE, SAMPLE, SAMPLE),
    **with_each_method("hardware", bordered, IMAGE, (f32(2), P()), SAMPLE, SAMPLE),
    **with_each_method("splat", splat, VALUES, SAMPLE, SAMPLE, ways=ALL_WAYS),
    **with_each_method("weighted", weighted, IMAGE, SAMPLE, SAMPLE, SAMPLE),
    **with_each_method("rotate", turned, IMAGE),
    **with_each_method("flow", jt.warp.warp_flow, IMAGE, (f32(64, 48, 2), P("rows"))),
    **with_each_method("forward", jt.warp.forward_warp, IMAGE, (f32(64, 48, 2), P("rows"))),
    **{
        f"{name}, {place}": sharded(functools.partial(written, name), IMAGE, *values)
        for name in ("write", "add", "min")
        for place, values in {
            "cut": (VALUES, INDEX, INDEX),
            "everywhere": ((f32(32, 5, 2), P()), *[(i32(32, 5), P())] * 2),
        }.items()
    },
    "columns": sharded(reads(), COLUMNS, SAMPLE, SAMPLE, method=ROUTING),
    "samples everywhere": sharded(reads(), IMAGE, EVERYWHERE, EVERYWHERE),
    "layers": sharded(
        reads(make=jt.texture2d_layered, more=("layer",)),
        (f32(16, 5, 6, 1), P("rows")),
        SAMPLE,
        SAMPLE,
        INDEX,
        method=ROUTING,
    ),
    "cubes": sharded(
        reads(make=jt.cubemap_layered, more=("layer",)),
        (f32(8, 6, 4, 4, 1), P("rows")),
        *[SAMPLE] * 3,
        INDEX,
        method=ROUTING,
    ),
    "rows of faces": sharded(
        reads(make=jt.cubemap), (f32(6, 16, 16, 1), P(None, "rows")), *[SAMPLE] * 3, method=ROUTING
    ),
    "longitudes": sharded(
        reads(address_mode="sphere"), (f32(8, 16, 1), P(None, "rows")), SAMPLE, SAMPLE, method=ROUTING
    ),
    "a key": sharded(by_key, IMAGE, SAMPLE, SAMPLE),
    "fetch": sharded(lambda t, x, y: jt.fetch(jt.texture2d(t), (x, y)), IMAGE, INDEX, INDEX),
    "gather": sharded(lambda t, x, y: jt.gather(jt.texture2d(t), (x, y)), IMAGE, SAMPLE, SAMPLE),
    "surface read": sharded(lambda t, x, y: jt.surface_read(jt.texture2d(t), (x, y)), IMAGE, INDEX, INDEX),
    "resize": sharded(lambda image: jt.warp.resize(image, (32, 20)), IMAGE),
    "prefilter": sharded(
        lambda t: jt.spline_filter(jt.texture2d(t), jt.Sampler(filter_mode="bspline")).texels, COLUMNS
    ),
    "levels": sharded(lambda image: chain(image).levels, IMAGE),
    "a batch in two ways": sharded(
        jt.warp.rotate,
        (f32(4, 16, 6, 1), P("batch", "rows")),
        (f32(4), P("batch")),
        mesh=Mesh({"batch": 2, "rows": 4}),
        method=HALO,
    ),
    "a batch": sharded(jt.warp.spatial_transform, (f32(16, 9, 8, 3), P("rows")), (f32(16, 2, 3), P("rows"))),
    "beyond a halo": sharded(
        lambda image: jt.sharded.count_beyond(turned, image), IMAGE, wrt=(), ways=("value",), method=HALO
    ),
    "a checked halo": sharded(checkify.checkify(turned), IMAGE, wrt=(), ways=("value",), method=HALO),
    **with_each_method("weighted chain", weighted_chain, IMAGE, *[SAMPLE] * 4),
    "correlations": sharded(
        lambda volume, coords: jt.nn.correlation_lookup([volume], coords, 1),
        (f32(2, 16, 8, 6, 5), P(None, "rows")),
        (f32(2, 16, 8, 2), P(None, "rows")),
    ),
}

# Programs that XLA partitions: arrays are cut along axes of CUT_SIZES

AUTOMATIC_MESH = Mesh({"a": DEVICES}, explicit=False)
EVEN, UNEVEN = CUT_SIZES


def automatic(function, *placed, ways=("value", "reverse"), explicit=False):
    return sharded(function, *placed, ways=ways, mesh=AUTOMATIC_MESH._replace(explicit=explicit))


def cut_samples(texels, x, y, **options):
    """Samples of which XLA makes uneven parts."""
    return read(texels, jax.lax.with_sharding_constraint(x, P("a")), y, **options)


TEXELS, CUT = (f32(6, 7, 2), P()), (f32(EVEN, 5), P("a"))
AUTOMATIC = {
    "samples": automatic(reads(address_mode="mirror"), TEXELS, CUT, CUT, ways=ALL_WAYS),
    "samples of explicit axes": automatic(reads(address_mode="mirror"), TEXELS, CUT, CUT, explicit=True),
    "uneven samples": automatic(cut_samples, TEXELS, *[(f32(UNEVEN, 5), P())] * 2),
    "rows of a grid": automatic(reads(), TEXELS, (f32(EVEN, 1), P("a")), (f32(1, 5), P())),
    "a border color": automatic(
        lambda t, color, x, y: jt.sample(
            jt.texture2d(t, border_color=color), (x, y), jt.Sampler(address_mode="border")
        ),
        TEXELS,
        (f32(2), P()),
        CUT,
        CUT,
    ),
    "hardware": automatic(bordered, TEXELS, (f32(2), P()), CUT, CUT),
    "bytes": automatic(
        reads(read_mode="normalized_float"),
        (jax.ShapeDtypeStruct((6, 7, 4), jnp.uint8), P()),
        CUT,
        CUT,
        ways=("value",),
    ),
    "cubic": automatic(reads(filter_mode="cubic"), TEXELS, CUT, CUT),
    "a chain": automatic(reads(make=chain, more=("lod",), **TRILINEAR), (f32(32, 8, 2), P()), CUT, CUT, CUT),
    "a footprint": automatic(along, (f32(32, 8, 2), P()), CUT, CUT, CUT),
    "textures with their samples": automatic(
        jax.vmap(reads()), (f32(EVEN, 6, 7, 2), P("a")), (f32(EVEN, 5), P("a")), (f32(EVEN, 5), P("a"))
    ),
    "images and flows": automatic(
        jt.warp.warp_flow, (f32(EVEN, 6, 7, 2), P("a")), (f32(EVEN, 6, 7, 2), P("a")), ways=ALL_WAYS
    ),
    "an affine warp": automatic(jt.warp.warp_affine, (f32(EVEN, 6, 7, 2), P("a")), (f32(EVEN, 2, 3), P("a"))),
    "a flow": automatic(jt.warp.warp_flow, (f32(EVEN, 7, 2), P("a")), (f32(EVEN, 7, 2), P("a"))),
    "a sum of reads": automatic(weighted, TEXELS, CUT, CUT, CUT),
    "reproducible": automatic(reads(deterministic=True), TEXELS, CUT, CUT),
    "splat": automatic(
        lambda values, x, y: jt.splat(values, (x, y), (6, 7, 2)).texels, (f32(EVEN, 5, 2), P("a")), CUT, CUT
    ),
    "indices": automatic(
        lambda array, at: jt.ndimage.map_coordinates(array, at, order=1),
        (f32(6, 7), P()),
        (f32(2, EVEN, 3), P(None, "a")),
    ),
}
