"""Reads and writes that the tables of other tests lack: kinds of textures, modes, keys, footprints, single texels."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify

import jaxtex as jt
from tests.compiled.calls import LAYERS, LEVELS, TRILINEAR, XY, chain, normal, sample, stored, uniform
from tests.lowered.programs import Call

MODES = ("clamp", "border", "wrap", "mirror", "reflect")
FILTERS = ("point", "linear", "cubic", "bspline", "mitchell", "lanczos2", "lanczos3", "gaussian")
XYZ = tuple(uniform(3, 9, 33))
DIRECTIONS = tuple(normal(3, 9, 33))
SIDES = tuple(0.1 * normal(2, 9, 33)), tuple(0.05 * normal(2, 9, 34)[..., :33])
INDEX = tuple(np.random.default_rng(0).integers(-1, 8, (2, 9, 33)).astype(np.int32))
LINES = np.arange(-2, 38, dtype=np.int32), np.arange(-1, 18, dtype=np.int32)[:, None]
KEY = np.zeros(2, np.uint32)
# Of calls whose programs are long, and of whose rules of second order shorter ones have all.
FORWARD_AND_BACK = ("value", "reverse")


def read(texels, *coords, make=jt.texture2d, more=(), ways=None, **options):
    """A read, with derivatives in texels and coordinates."""
    count = len(coords) - len(more)
    return Call(sample(make, more=more, **options), (texels, *coords), tuple(range(1 + count)), ways)


def in_all_modes(filter_mode):
    """A read of a row in each address mode."""
    reads = [sample(jt.texture1d, filter_mode=filter_mode, address_mode=mode) for mode in MODES]
    args = normal(9, 2), uniform(1, 300)[0]
    return Call(lambda *args: [one(*args) for one in reads], args, (0, 1), FORWARD_AND_BACK)


def drawn(make, *args, more=None, **options):
    """A read of one tap, drawn by a key."""

    def run(key, texels, *coords):
        key = jax.random.wrap_key_data(key)
        return jt.sample(make(texels), coords, jt.Sampler(**options), key=key, **(more or {}))

    return Call(run, (KEY, *args), tuple(range(1, 1 + len(args))))


def along(make, texels, *args, **options):
    """A read with two sides of a footprint."""

    def run(texels, sides, *coords):
        return jt.sample(make(texels), coords, jt.Sampler(**options), ddx=sides[0], ddy=sides[1])

    return Call(run, (texels, *args), tuple(range(1 + len(args))))


def gathered(dtype, **options):
    def run(texels, x, y):
        texture = jt.texture2d(texels, border_color=np.asarray(1, texels.dtype))
        return [jt.gather(texture, (x, y), jt.Sampler(**options), component=c) for c in (0, 1)]

    return Call(run, (stored(dtype, 6, 7, 2), *XY), (0,) if dtype == "float32" else ())


def fetched(make, texels, *index, level=0, layer=None):
    return Call(lambda texels: jt.fetch(make(texels), index, level=level, layer=layer), (texels,), (0,))


def checked(function, *args):
    """What checkify makes of a call: the error, and the value."""
    return Call(checkify.checkify(function, errors=checkify.user_checks), args)


READS = {
    **{f"all modes, {name}": in_all_modes(name) for name in FILTERS},
    "layers of rows": read(
        normal(3, 7, 2),
        uniform(1, 300)[0],
        np.arange(300, dtype=np.int32) % 4,
        make=jt.texture1d_layered,
        more=("layer",),
    ),
    "layers of cubes": read(normal(2, 6, 5, 5, 1), *DIRECTIONS, LAYERS, make=jt.cubemap_layered, more=("layer",)),
    "a chain of volumes": read(
        normal(8, 8, 8, 1), *XYZ, LEVELS, make=lambda t: jt.build_mipmaps(jt.texture3d(t)), more=("lod",), **TRILINEAR
    ),
    "a chain of cubes": read(
        normal(6, 8, 8, 2),
        *DIRECTIONS,
        LEVELS,
        make=lambda t: jt.build_mipmaps(jt.cubemap(t)),
        more=("lod",),
        **TRILINEAR,
    ),
    "a chain of layers": read(
        normal(3, 7, 5, 2),
        *XY,
        LAYERS,
        LEVELS,
        make=lambda t: jt.build_mipmaps(jt.texture2d_layered(t)),
        more=("layer", "lod"),
        mipmap_level_bias=0.25,
        min_mipmap_level_clamp=0.5,
        **TRILINEAR,
    ),
    "the nearest level": read(normal(16, 16, 3), *XY, LEVELS, make=chain, more=("lod",), filter_mode="cubic"),
    "three axes, cubic": read(
        normal(5, 6, 7, 1),
        *XYZ,
        make=jt.texture3d,
        filter_mode="cubic",
        address_mode="border",
        ways=FORWARD_AND_BACK,
    ),
    "three axes, prefiltered": read(
        normal(5, 6, 7, 1),
        *XYZ,
        make=lambda t: jt.spline_filter(jt.texture3d(t), jt.Sampler(filter_mode="bspline", address_mode="mirror")),
        filter_mode="bspline",
        address_mode="mirror",
        ways=FORWARD_AND_BACK,
    ),
    "a limit": read(
        normal(9, 7, 3), *XY, filter_mode="lanczos3", address_mode="mirror", limit="taps", ways=FORWARD_AND_BACK
    ),
    "a limit in layers": read(
        normal(3, 6, 7, 2), *XY, LAYERS, make=jt.texture2d_layered, more=("layer",), filter_mode="cubic", limit="taps"
    ),
    "a footprint": along(chain, normal(16, 8, 3), SIDES, *XY, max_anisotropy=8, address_mode="wrap", **TRILINEAR),
    "an isotropic footprint": along(chain, normal(16, 8, 3), SIDES, *XY, address_mode="mirror", **TRILINEAR),
    "a footprint in one level": along(jt.texture2d, normal(16, 8, 2), SIDES, *XY, max_anisotropy=4),
    "a key": drawn(jt.texture2d, normal(9, 7, 2), *XY, filter_mode="cubic", address_mode="border"),
    "a key in a chain": drawn(chain, normal(16, 8, 2), *XY, more={"lod": 1.3}, **TRILINEAR),
    "a key along a footprint": drawn(
        chain, normal(16, 8, 2), *XY, more={"ddx": (0.3, 0.1), "ddy": (-0.02, 0.06)}, max_anisotropy=3, **TRILINEAR
    ),
    **{
        f"hardware, {name}": read(texels, *coords, make=make, more=more, arithmetic="hardware", **options)
        for name, make, texels, coords, more, options in (
            ("rows", jt.texture1d, normal(50, 2), uniform(1, 300), (), {"address_mode": "wrap"}),
            ("a volume", jt.texture3d, normal(5, 6, 7, 2), XYZ, (), {"address_mode": "border"}),
            ("a cube", jt.cubemap, normal(6, 5, 5, 4), DIRECTIONS, (), {}),
            ("layers", jt.texture2d_layered, normal(3, 6, 7, 2), (*XY, LAYERS), ("layer",), {"address_mode": "mirror"}),
            ("a chain", chain, normal(16, 16, 4), (*XY, LEVELS), ("lod",), TRILINEAR),
        )
    },
    "gather": gathered("float32", address_mode="border"),
    "gather of bytes": gathered("uint8", address_mode="mirror", read_mode="normalized_float"),
    "fetch": fetched(jt.texture2d, normal(6, 7, 2), *INDEX),
    "fetch of a level": fetched(chain, normal(6, 7, 2), *INDEX, level=1),
    "fetch of layers": fetched(jt.texture2d_layered, normal(3, 6, 7, 2), *INDEX, layer=LAYERS),
    "float64": read(stored("float64", 6, 7, 3), *(c.astype(np.float64) for c in XY))._replace(x64=True),
    "float64, cubic": read(
        stored("float64", 6, 7, 1), *(c.astype(np.float64) for c in XY), filter_mode="cubic", address_mode="mirror"
    )._replace(x64=True),
}

# Splats and mip chains


def splat(shape, values, *coords, kind=None, more=(), **options):
    def run(values, *given):
        coords, named = given[: len(given) - len(more)], dict(zip(more, given[len(given) - len(more) :]))
        return jt.splat(values, coords, shape, jt.Sampler(**options), kind=kind, **named).texels

    count = len(coords) - len(more)
    return Call(run, (values, *coords), tuple(range(1 + count)))


def mipmaps(make, *shape, dtype="float32", count=None):
    levels = lambda texels: jt.build_mipmaps(make(texels), count).levels
    return Call(levels, (stored(dtype, *shape),), (0,) if dtype == "float32" else ())


def prefiltered(**options):
    sampler = jt.Sampler(filter_mode="bspline", **options)
    return Call(lambda texels: jt.spline_filter(jt.texture2d(texels), sampler).texels, (normal(13, 9, 3),), (0,))


SPLATS = {
    "onto rows": splat((50, 2), normal(300, 2), *uniform(1, 300), address_mode="wrap"),
    "onto an image": splat((6, 7, 3), normal(9, 33, 3), *XY, address_mode="border", filter_mode="cubic"),
    "onto layers": splat((3, 6, 7, 2), normal(9, 33, 2), *XY, LAYERS, kind="2d_layered", more=("layer",)),
    "onto a cube": splat((6, 5, 5, 2), normal(9, 33, 2), *DIRECTIONS, kind="cubemap"),
    "onto a chain": splat((16, 8, 2), normal(9, 33, 2), *XY, LEVELS, more=("lod",), **TRILINEAR),
    "reproducibly": splat((6, 7, 3), normal(9, 33, 3), *XY, address_mode="mirror", deterministic=True),
    "levels of rows": mipmaps(jt.texture1d, 13, 2),
    "levels of an image": mipmaps(jt.texture2d, 13, 9, 3),
    "levels of a volume": mipmaps(jt.texture3d, 5, 6, 7, 1, count=2),
    "levels of a cube": mipmaps(jt.cubemap, 6, 8, 8, 2),
    "levels of layers": mipmaps(jt.texture2d_layered, 3, 6, 5, 2),
    "levels of halves": mipmaps(jt.texture2d, 12, 8, 4, dtype="bfloat16"),
    **{
        f"prefilter of order {order}, {mode}": prefiltered(spline_order=order, address_mode=mode)
        for order, mode in ((2, "mirror"), (3, "wrap"), (4, "clamp"), (5, "border"))
    },
}

# Single texels


def written(name, texels, values, *coords, make=jt.texture2d, **options):
    write = getattr(jt, f"surface_{name}")
    run = lambda texels, values, *coords: write(make(texels), values, coords, **options).texels
    return Call(run, (texels, values, *coords), (0, 1) if jnp.issubdtype(texels.dtype, jnp.floating) else ())


IMAGE, VALUES = normal(6, 7, 2), normal(9, 33, 2)
WRITES = {
    "read": Call(lambda t, x, y: jt.surface_read(jt.texture2d(t), (x, y)), (IMAGE, *INDEX), (0,)),
    "read of bytes": Call(
        lambda t, x, y: jt.surface_read(jt.texture2d(t), (x, y), boundary_mode="clamp"),
        (stored("uint8", 6, 7, 3), *INDEX),
    ),
    **{name: written(name, IMAGE, VALUES, *INDEX) for name in ("write", "add", "min", "max")},
    "write of lines": written("write", IMAGE, normal(19, 40, 2), *LINES, boundary_mode="clamp"),
    "write of unique places": written("write", IMAGE, VALUES, *INDEX, unique_indices=True),
    "write of many": written(
        "write", normal(600, 700, 1), normal(300, 1), *(i.reshape(-1)[:297].repeat(2)[:300] for i in INDEX)
    ),
    "write of faces": written("write", normal(6, 5, 5, 2), VALUES, *INDEX, make=jt.cubemap, face=LAYERS),
    "write of layers": written("write", normal(3, 6, 7, 2), VALUES, *INDEX, make=jt.texture2d_layered, layer=LAYERS),
    "add to a level": written("add", normal(16, 8, 2), VALUES, *INDEX, make=chain, level=1, boundary_mode="zero"),
    "add to halves": written("add", stored("bfloat16", 6, 7, 2), stored("bfloat16", 9, 33, 2), *INDEX),
    **{
        f"{name} of {dtype}": written(name, stored(dtype, 6, 7, 3), stored(dtype, 9, 33, 3), *INDEX)
        for name, dtype in (("write", "uint8"), ("add", "int32"), ("min", "uint16"), ("max", "int8"))
    },
    "checked write": checked(
        lambda t, v, x, y: jt.surface_write(jt.texture2d(t), v, (x, y)).texels, IMAGE, VALUES, *INDEX
    ),
    "checked read": checked(lambda t, x, y: jt.surface_read(jt.texture2d(t), (x, y)), IMAGE, *INDEX),
}
