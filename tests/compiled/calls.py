"""Calls of reads, by name: each mode, filter, dimension, dtype, arithmetic and kind of operands occurs in one at least.

They are met in pairs rather than in full. `CALLS` holds them all; `contract.py` runs them in each form of a read.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from tests.support.arrays import normal, uniform


class Call(NamedTuple):
    """A function of arrays.

    Attributes:
        function: maps the arguments, arrays or trees of them, to an array or a tree of arrays.
        args: arrays of NumPy.
        wrt: the numbers of the arguments that get cotangents.
        exact: whether each form returns the same bits, those of NaN included.
        row: the row of the tolerances for cotangents in float32.
        scale: of a value, by default the largest magnitude that enters a read; of cotangents, in units of their
            largest.
    """

    function: Callable
    args: tuple
    wrt: tuple = ()
    exact: bool = False
    row: str = "sum"
    scale: float = 8.0


def stored(dtype, *shape):
    """Texels of any dtype."""
    dtype = jnp.dtype(dtype)
    if jnp.issubdtype(dtype, jnp.floating):
        return normal(*shape).astype(dtype)
    codes = np.random.default_rng(0).integers(0, 256, (*shape, dtype.itemsize)).astype(np.uint8)
    return codes[..., 0] > 99 if dtype.kind == "b" else np.squeeze(codes.view(dtype), -1)


def sample(make=jt.texture2d, dtype=None, more=(), **options):
    """A read of texels at coordinates; those behind them are the arguments that `more` names."""
    sampler = jt.Sampler(**options)

    def read(texels, *places):
        coords, named = places[: len(places) - len(more)], dict(zip(more, places[len(places) - len(more) :]))
        return jt.sample(make(texels), coords, sampler, dtype=dtype, **named)

    return read


def at(texels, *coords, make=jt.texture2d, more=(), wrt=None, **options):
    """A read of those texels there, with the cotangents of all arguments, or of those of `wrt`."""
    args = (texels, *coords)
    call = {name: options.pop(name) for name in ("exact", "row", "scale") if name in options}
    return Call(sample(make, more=more, **options), args, tuple(range(len(args))) if wrt is None else wrt, **call)


def together(*calls):
    """Calls whose values are taken at once."""

    def run(*args):
        return [call.function(*some) for call, some in zip(calls, args)]

    return Call(run, tuple(call.args for call in calls), exact=all(call.exact for call in calls))


def with_color(texels, color, *coords, **options):
    """A read with a border color, which has a cotangent as well, if it is a number."""
    read = lambda texels, color, *coords: sample(lambda t: jt.texture2d(t, border_color=color), **options)(
        texels, *coords
    )
    return Call(read, (texels, color, *coords), tuple(range(2 + len(coords))))


XY = tuple(uniform(2, 9, 33))
LEVELS = np.random.default_rng(0).uniform(-1, 5, (9, 33)).astype(np.float32)
LAYERS = np.random.default_rng(0).integers(-1, 4, (9, 33)).astype(np.int32)
IN_TEXELS = {"normalized_coords": False}
TRILINEAR = {"mipmap_filter_mode": "linear"}


def chain(texels):
    return jt.build_mipmaps(jt.texture2d(texels))


# Points, in textures of every kind


POINTS = {
    "1d": at(normal(50, 2), uniform(1, 300)[0], make=jt.texture1d),
    "border, 3 channels": at(normal(6, 7, 3), *uniform(2, 17, 40), address_mode="border"),
    "mirror, 4 channels": at(normal(6, 7, 4), *uniform(2, 17, 40), address_mode="mirror"),
    "wrap, 20 channels": at(normal(6, 7, 20), *uniform(2, 17, 40), address_mode="wrap"),
    "reflect, 1 channel": at(normal(6, 7, 1), *uniform(2, 17, 40), address_mode="reflect"),
    "point": at(normal(6, 7, 3), *XY, filter_mode="point", wrt=(0,)),
    "cubic": at(normal(6, 7, 2), *XY, filter_mode="cubic"),
    "3d": at(normal(5, 6, 7, 2), *uniform(3, 3, 9, 33), make=jt.texture3d, address_mode=("wrap", "mirror", "clamp")),
    "layers": at(normal(3, 6, 7, 2), *XY, LAYERS, make=jt.texture2d_layered, more=("layer",), wrt=(0, 1, 2)),
    "a cube": at(normal(6, 5, 5, 3), *normal(3, 9, 33), make=jt.cubemap),
    "faces": at(normal(6, 5, 5, 1), *normal(3, 9, 33), make=jt.cubemap, seamless_cubemap=False),
    "a chain": at(normal(16, 16, 3), *XY, LEVELS, make=chain, more=("lod",), **TRILINEAR),
    "a grid of lines": at(normal(6, 7, 3), uniform(1, 40), uniform(19, 1)),
    "few samples": at(normal(6, 7, 3), *uniform(2, 5, 3)),
    "a crowd": at(normal(3, 3, 3), *uniform(2, 64, 64)),
    "far apart": at(normal(60, 70, 5), *uniform(2, 17, 40), address_mode="border"),
    "as they lie": at(normal(60, 70, 12), *np.mgrid[:50, :41][::-1].astype(np.float32) / 64),
    "coordinates alone": at(normal(6, 7, 4), *uniform(2, 17, 40), address_mode="mirror", wrt=(1, 2)),
    "coordinates among codes": at(stored("uint8", 6, 7, 3), *XY, read_mode="normalized_float", wrt=(1, 2)),
    "texels alone": at(normal(6, 7, 3), *uniform(2, 17, 40), wrt=(0,)),
    "narrow texels": at(stored("bfloat16", 6, 7, 3), *XY, address_mode="wrap"),
    "a color": with_color(normal(6, 7, 4), normal(4), *XY, address_mode="border"),
    "a gray of one axis": with_color(normal(6, 7, 5), np.float32(0.5), *XY, address_mode=("border", "wrap")),
    "reproducible": at(normal(6, 7, 4), *uniform(2, 17, 40), address_mode="mirror", deterministic=True),
    "a reproducible chain": at(
        normal(16, 16, 3), *XY, LEVELS, make=chain, more=("lod",), wrt=(0,), deterministic=True, **TRILINEAR
    ),
    "a reproducible crowd": at(normal(3, 3, 3), *uniform(2, 64, 64), wrt=(0,), deterministic=True),
    "hardware": at(normal(6, 7, 4), *XY, arithmetic="hardware", exact=True),
}

# Filters, each at a mode of its own


def filtered(filter_mode, *sizes, **options):
    coords = uniform(len(sizes), 300, low=-3, high=9)
    make = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}[len(sizes)]
    return at(normal(*sizes, 2), *coords, make=make, filter_mode=filter_mode, **IN_TEXELS, **options)


# Places near the texels of a volume, as in a registration: their taps fit into windows.
NEAR = tuple((np.mgrid[:9, :10, :11][::-1] + uniform(3, 9, 10, 11, low=0, high=1)).astype(np.float32))
SPLINES = {"filter_mode": "bspline", **IN_TEXELS}

FILTERS = {
    "bspline 2": filtered("bspline", 7, 5, spline_order=2, address_mode="border"),
    "bspline 3": filtered("bspline", 7, spline_order=3, address_mode="mirror", wrt=(0,)),
    "bspline 5": filtered("bspline", 7, spline_order=5),
    "bspline 3 of a volume": filtered("bspline", 5, 6, 8, address_mode="mirror"),
    "bspline 3 far apart": at(
        normal(24, 25, 26, 5), *uniform(3, 6, 5, 7), make=jt.texture3d, filter_mode="bspline", address_mode="border"
    ),
    "bspline 5 near texels": at(
        normal(7, 8, 9, 2), *NEAR, make=jt.texture3d, address_mode="mirror", spline_order=5, **SPLINES
    ),
    "bspline 4 near texels, reproducible": at(
        normal(7, 8, 9, 1), *NEAR, make=jt.texture3d, address_mode="wrap", spline_order=4, deterministic=True, **SPLINES
    ),
    "bspline 5 of narrow volumes": Call(
        jax.vmap(sample(jt.texture3d, spline_order=5, **SPLINES), (0, 0, None, None)),
        (stored("float16", 2, 7, 8, 9, 4), np.stack([NEAR[0], 6 - NEAR[0]]), *NEAR[1:]),
        (0, 1, 2, 3),
    ),
    "mitchell": filtered("mitchell", 7, address_mode="reflect", wrt=(1,)),
    "lanczos2": filtered("lanczos2", 7, address_mode="wrap", wrt=(0,)),
    "lanczos3": filtered("lanczos3", 7, address_mode="border"),
    "gaussian": filtered("gaussian", 7, address_mode="mirror"),
    "limited": with_color(
        normal(7, 5, 2),
        np.float32(0.5),
        *uniform(2, 300, low=-3, high=9),
        filter_mode="cubic",
        address_mode="border",
        limit="taps",
        **IN_TEXELS,
    ),
    "a sphere": filtered("cubic", 6, 8, address_mode="sphere", deterministic=True),
    "a sphere of levels": filtered("lagrange", 3, 6, 8, address_mode="sphere"),
}

# What texels are

COLOR = np.float32([0.5, -2, 3, 0.25])
CODES = {"read_mode": "normalized_float", "address_mode": "border"}
ELEMENTS = {"filter_mode": "point", "address_mode": "wrap", "exact": True}
INTEGERS = ("uint8", "int8", "uint16", "int16")


def texels_at(element, channels, color=None, **options):
    return at(
        stored(element, 6, 7, channels),
        *XY,
        make=functools.partial(jt.texture2d, border_color=color),
        wrt=(),
        **options,
    )


def in_hardware(element, channels, **options):
    return texels_at(element, channels, arithmetic="hardware", exact=True, **options)


# Signaling and quiet NaN of both signs with payloads, and a number.
NAN_CODES = {
    "bfloat16": (0x7F81, 0xFFA5, 0x7FC1, 0xFF90, 0x7F82, 0x3F80),
    "float16": (0x7C01, 0xFD55, 0x7E01, 0xFC02, 0x7C04, 0x3C00),
    "float32": (0x7F800001, 0xFFA00005, 0x7FC00001, 0xFF800010, 0x7F800400, 0x3F800000),
}


def nan_texels(dtype, *shape):
    dtype = jnp.dtype(dtype)
    codes = np.array(NAN_CODES[dtype.name], f"uint{8 * dtype.itemsize}")
    return np.random.default_rng(0).choice(codes, shape).view(dtype)


def nan_bits():
    y, x = np.indices((8, 9))
    read = lambda t, x, y: jt.surface_read(jt.texture2d(t), (x, y), boundary_mode="clamp")
    return together(*(Call(read, (nan_texels(d, 8, 9, c), x, y), exact=True) for d in NAN_CODES for c in (1, 2, 3)))


TEXELS = {
    "many channels": together(*(texels_at("float32", c, address_mode="mirror") for c in (5, 6, 7, 9, 13))),
    "codes": together(*(texels_at(element, 4, **CODES) for element in INTEGERS)),
    "elements": together(
        *(texels_at(name, 3, **ELEMENTS) for name in (*INTEGERS, "int32", "uint32", "float16", "bfloat16", "bool"))
    ),
    "masks": together(texels_at("bool", 1), texels_at("bool", 4, filter_mode="point", address_mode="border")),
    "halves": together(
        texels_at("float16", 4, address_mode="border"),
        texels_at("float16", 2, dtype="float32"),
        texels_at("bfloat16", 5),
        texels_at("uint8", 1, dtype="float16", **CODES),
    ),
    "srgb": together(
        texels_at("uint8", 4, srgb=True, **CODES), texels_at("uint8", 3, dtype="bfloat16", srgb=True, **CODES)
    ),
    "colors": together(
        texels_at("float16", 4, COLOR, address_mode="border", filter_mode="cubic"),
        texels_at("int16", 4, np.int16([1, 2, 3, 4]), **{**ELEMENTS, "address_mode": "border"}),
    ),
    "hardware floats": together(
        in_hardware("float32", 5, color=np.float32(0.5), address_mode="border"),
        in_hardware("float32", 4, color=COLOR, address_mode="border"),
        in_hardware("float16", 4),
        in_hardware("float32", 3, dtype="bfloat16"),
    ),
    "hardware codes": together(
        in_hardware("uint8", 4, color=COLOR, srgb=True, **CODES),
        in_hardware("uint8", 2, dtype="float16", srgb=True, **CODES, filter_mode="point"),
        in_hardware("uint8", 3, filter_mode="point", address_mode="wrap"),
    ),
    "NaN": nan_bits(),
}

# Footprints


def footprints(dimension):
    """Sides of footprints: long ones, short ones, points, and what is no number."""
    rng = np.random.default_rng(dimension)
    sides = rng.normal(size=(2, dimension, 9, 33)) * np.exp2(rng.uniform(-8, 0, (2, 1, 9, 33)))
    sides[0, :, :, 0], sides[1, :, :, :2] = 0, 0
    sides[0, 0, :, 2], sides[1, 0, :, 3] = np.nan, np.inf
    return [tuple(side.astype(np.float32)) for side in sides]


def along(texels, dimension=2, make=jt.texture2d, wrt=(), **options):
    coords = np.random.default_rng(0).uniform(-1, 2, (dimension, 9, 33)).astype(np.float32)
    return at(texels, *coords, *footprints(dimension), make=make, more=("ddx", "ddy"), wrt=wrt, **options)


EXACTLY = {"arithmetic": "hardware", "exact": True}
FOOTPRINTS = {
    "a footprint with a color": along(
        normal(16, 8, 3),
        make=lambda t: jt.build_mipmaps(jt.texture2d(t, border_color=np.float32(2))),
        max_anisotropy=8,
        address_mode="border",
        **TRILINEAR,
    ),
    "a footprint of halves": along(stored("float16", 16, 8, 3), max_anisotropy=5),
    "a footprint on a cube": along(normal(6, 5, 5, 3), 3, jt.cubemap, max_anisotropy=4),
    "a footprint in a chain, hardware": along(
        normal(16, 8, 3), make=chain, max_anisotropy=8, address_mode="wrap", **TRILINEAR, **EXACTLY
    ),
    "a footprint of srgb, hardware": along(
        stored("uint8", 16, 8, 3), max_anisotropy=4, read_mode="normalized_float", srgb=True, **EXACTLY
    ),
    "a footprint in texels, hardware": along(normal(16, 8, 5), max_anisotropy=3, **IN_TEXELS, **EXACTLY),
}

# Batches: what is shared gets the sum over the batch


def mapped(in_axes, texels, *coords):
    read = sample(address_mode="border")
    return Call(jax.vmap(read, in_axes), (texels, *coords), (0, 1, 2))


def with_own_color(texels, color, x, y):
    return jt.sample(jt.texture2d(texels, border_color=color), (x, y), jt.Sampler(address_mode="border"))


BATCHES = {
    "a shared texture": mapped((None, 0, 0), normal(6, 7, 3), uniform(3, 9, 33), uniform(3, 9, 1)),
    "shared coordinates": mapped((0, None, None), normal(3, 6, 7, 3), uniform(9, 33), uniform(9, 1)),
    "nothing shared": mapped((0, 0, 0), normal(3, 6, 7, 3), uniform(3, 9, 33), uniform(3, 9, 1)),
    "colors of textures": Call(
        jax.vmap(with_own_color), (normal(3, 6, 7, 5), normal(3, 5), *uniform(2, 3, 9, 33)), (0, 1)
    ),
}
