"""What is easily got wrong about CUDA's textures and surfaces, a row each, with the values of real hardware."""

import jax
import numpy as np

import jaxtex as jt
from jaxtex import cuda
from jaxtex.cuda import AddressMode, ArrayFlags, FilterMode, ResourceDesc, TextureDesc
from tests.support.tolerances import assert_exact, named
from tests.unit.cuda.test_cuda import refused

CLAMP, WRAP, MIRROR, BORDER = AddressMode.Clamp, AddressMode.Wrap, AddressMode.Mirror, AddressMode.Border
LINEAR = {"filterMode": FilterMode.Linear}
NORMALIZED = {"normalizedCoords": 1}
FRACTIONS = {"readMode": cuda.ReadMode.NormalizedFloat}
TENS = np.array([[10], [20], [30], [40]], np.float32)
COUNT = np.arange(4, dtype=np.float32)[:, None]
NAMES = {"float32": "float", "float16": "half", "uint8": "uchar", "int8": "char", "uint16": "ushort", "int32": "int"}


def allocate(texels, flags=0):
    """An array over texels with channels last, of the shape that their axes and the flags say."""
    *sizes, channels = texels.shape
    rows_in_layers = flags & ArrayFlags.Layered and len(sizes) == 2
    extent = (sizes[1], 0, sizes[0]) if rows_in_layers else (*reversed(sizes), 0, 0)[:3]
    desc = cuda.createChannelDesc(f"{NAMES[texels.dtype.name]}{channels}")
    return cuda.memcpyToArray(cuda.malloc3DArray(desc, extent, flags), texels)


def texture(texels, flags=0, **desc):
    array = ResourceDesc.Array(allocate(texels, flags))
    return cuda.createTextureObject(array, TextureDesc(**desc))


def mipmapped(levels, **desc):
    """A 1D texture whose level l is `levels[l]`."""
    mipmap = cuda.mallocMipmappedArray(cuda.createChannelDesc("float"), (len(levels[0]), 0, 0), len(levels))
    for level, texels in enumerate(levels):
        mipmap = cuda.memcpyToArray(mipmap, texels, level=level)
    return cuda.createTextureObject(ResourceDesc.MipmappedArray(mipmap), TextureDesc(normalizedCoords=1, **desc))


def surface(desc, width, height=0, texels=None):
    array = cuda.mallocArray(cuda.createChannelDesc(desc), width, height, ArrayFlags.SurfaceLoadStore)
    return array if texels is None else cuda.memcpyToArray(array, texels)


def numbers(*values):
    return np.array(values, np.float32)


def chain(*levels):
    return tuple(np.float32(level) for level in levels)


def faces(n=8):
    """A cubemap whose texel (i, j) of face f holds 100 f + 10 j + i."""
    f, j, i = np.indices((6, n, n))
    return (100 * f + 10 * j + i).astype(np.float32)[..., None]


GRID = (10 * np.arange(3)[:, None, None] + np.arange(3)[:, None]).astype(np.float32)
NO_WORDS, NO_BYTES, BYTES = np.zeros((4, 1), np.int32), np.zeros((4, 1), np.uint8), np.array([[0], [255]], np.uint8)
SHORTS, SIGNED = np.array([[11], [12]], np.uint16), np.array([[-128], [-127]], np.int8)
HALVES, GRAYS = np.array([[1], [1 + 2**-10]], np.float16), np.full((1, 4), 128, np.uint8)
THREE, FOUR = chain([0] * 5, [1] * 2, [2]), chain(range(8), range(4), range(2), [0])
FINEST = chain([0] * 8, [1] * 4, [2] * 2, [3])
SQUARE, CUBE = np.float32([[[0], [1]], [[2], [3]]]), np.arange(8, dtype=np.float32).reshape(2, 2, 2, 1)
LATTICE, FAR_CORNER = np.arange(16, dtype=np.float32).reshape(4, 4, 1), np.float32([[0, 0], [0, 65536]])[..., None]
EDGED = np.broadcast_to(TENS, (6, 4, 4, 1)) + 1000 * np.arange(6, dtype=np.float32)[:, None, None, None]
LONG, LAYERS = np.zeros((131072, 1), np.float32), numbers(100, 101, 102)[:, None, None]
LONG[-1] = 256
SIX, H = np.arange(6, dtype=np.float32), np.arange(8 * 2 * 4, dtype=np.uint8).reshape(2, 8, 4)
# The next float32 is 1/128 away: every other weight is out of reach.
NEXT = np.nextafter(np.float32(131071), np.float32(np.inf))

CLAMPED, BLENDED, SMOOTH = {"addressMode": CLAMP}, {"addressMode": CLAMP, **LINEAR}, {**LINEAR, **NORMALIZED}
MIRRORED, OUTSIDE = {"addressMode": MIRROR}, {"addressMode": BORDER}
ONE_BORDER = {"addressMode": (BORDER, CLAMP, CLAMP), **LINEAR}
COLOR, BITS = {**OUTSIDE, "borderColor": (1.0, 0, 0, 0)}, np.array([5, 0, 0, 0], np.int32).view(np.float32)
GRAY = {**OUTSIDE, "borderColor": (0.5,) * 4}
GATHERED, CUBEMAP = {"flags": ArrayFlags.TextureGather}, {"flags": ArrayFlags.Cubemap}
BIASED = {"maxMipmapLevelClamp": 9.0, "mipmapLevelBias": 0.3, "mipmapFilterMode": FilterMode.Linear}
# The trap, a descriptor, texels and the coordinates of `tex1D`, and the result, of float32 if nothing else is said.
LINES = [
    ("01 texel centers are at one half", BLENDED, TENS, (2.0, 2.5), (25, 30)),
    ("02 a point filter floors", CLAMPED, TENS, (1.999, -0.001), (20, 10)),
    ("02 also at a border", OUTSIDE, TENS, (1.999, -0.001), (20, 0)),
    ("03 fractions are rounded to 8 bits", BLENDED | NORMALIZED, TENS[:2], (0.3,), (11.015625,)),
    ("04 a rounded fraction carries", BLENDED, TENS, (2.49805, 2.4960), (30, 29.9609375)),
    ("05 taps are addressed one by one", SMOOTH, TENS, (0, 1 / 16), (25, 17.5)),
    ("06 the border is decided per texel", ONE_BORDER, TENS, (0, 0.25, 2, 4, 4.25, 4.5), (5, 7.5, 25, 20, 10, 0)),
    ("07 mirror repeats the edge", MIRRORED | SMOOTH, TENS, (0, -0.125, -0.25, 1.25), (10, 10, 15, 35)),
    ("08 mirror at exact texel edges", MIRRORED | NORMALIZED, COUNT, (-0.25,), (0,)),
    ("09 a wrapped coordinate just below zero", NORMALIZED, TENS, (-1e-10,), (40,)),
    ("10 pixel coordinates do not wrap", {"addressMode": WRAP}, COUNT, (5, -3), (3, 0)),
    ("10 nor are they mirrored", MIRRORED, COUNT, (5, -3), (3, 0)),
    ("11 a zeroed descriptor wraps", NORMALIZED, TENS, (1.1,), (10,)),
    ("15 fractions of codes", FRACTIONS, BYTES + np.array([[128], [0]], np.uint8), (0, 1), numbers(128, 255) / 255),
    ("15 of the least one", FRACTIONS, SIGNED, (0, 1), (-1, -1)),
    ("16 blends of 16-bit codes are codes", BLENDED | FRACTIONS, SHORTS, (1,), numbers(12) / 65535),
    ("17 bytes are blended in 16 bits", BLENDED | FRACTIONS, BYTES, (1,), (0.50000763,)),
    ("20 absent channels are zero", {"T": "float4"}, TENS[:1], (0.5,), (10, 0, 0, 0)),
    ("21 an integer border is made of bits", COLOR, NO_WORDS, (-1,), np.int32([0x3F800000])),
    ("21 of any bits", COLOR | {"borderColor": BITS}, NO_WORDS, (-1,), np.int32([5])),
    ("22 the border has the bits of the format", GRAY | FRACTIONS, NO_BYTES, (-1,), numbers(127) / 255),
    ("23 sRGB leaves alpha", {"sRGB": 1, **FRACTIONS}, GRAYS, (0,), (*[14144 / 65536] * 3, 0.5019608)),
    ("37 halves are read as floats", BLENDED | {"T": "float"}, HALVES, (1,), (1 + 2**-10,)),
    ("38 a second border (unlike 06) dims a row", OUTSIDE | LINEAR, TENS, (0, 0.25, 4, 2), (2.5, 3.75, 10, 12.5)),
    ("39 coordinates are floats", BLENDED, LONG, (131071, NEXT), (128, 130)),
]
SEAMS = {mode: {**CUBEMAP, "addressMode": mode, **LINEAR} for mode in (WRAP, CLAMP)}
MIDDLE, QUARTERS, ALL_LEVELS = 0.5 + 1 / 256, COUNT[:, 0] / 4, {"maxMipmapLevelClamp": 9.0}
# The same with the function before the descriptor, and the coordinates of each axis.
PLACES = [
    ("12 a zeroed clamp pins the level", cuda.tex1DLod, {}, FINEST, (0.5, 3), 0),
    ("24 x is the last axis", cuda.tex2D, {}, SQUARE, (1.5, 0.5), 1),
    ("24 of volumes too", cuda.tex3D, {}, CUBE, (0.5, 0.5, 1.5), 4),
    ("25 a gather goes counter-clockwise", cuda.tex2Dgather, GATHERED, GRID, (1, 1), (10, 11, 1, 0)),
    ("26 a gather rounds as a blend does", cuda.tex2Dgather, GATHERED, GRID, (1.49805, 1), (11, 12, 2, 1)),
    ("27 ties go to z, then y", cuda.texCubemap, CUBEMAP, faces(), ([1, 1], [1, 1], [1, 0]), (400, 240)),
    # (u, v) is (0.625, 0.25) on face 0 and (0.75, 0.625) on face 3.
    ("28 signs of a face", cuda.texCubemap, CUBEMAP, faces(), ([1, 0.5], [0.5, -1], [-0.25, -0.25]), (25, 356)),
    # The right edge of face 4.
    ("29 without seams a face wraps onto itself", cuda.texCubemap, SEAMS[WRAP], EDGED, (1, 0, 1), 4025),
    ("29 or is clamped", cuda.texCubemap, SEAMS[CLAMP], EDGED, (1, 0, 1), 4040),
    ("30 levels are rounded", cuda.tex1DLod, ALL_LEVELS, THREE, (0.5, [0.5, 0.4999, -3, 99]), (1, 0, 0, 2)),
    ("31 level and bias are cut before they are added", cuda.tex1DLod, BIASED, THREE, (0.5, 0.999), 1.29296875),
    ("32 coordinates are scaled by each level", cuda.tex1DLod, ALL_LEVELS, FOUR, (0.25, [0, 1]), (2, 1)),
    ("36 a rotation by nothing is no identity", cuda.tex2D, SMOOTH, LATTICE, (QUARTERS, 0.25), (3.5, 2.5, 3.5, 4.5)),
    ("36 but half a texel further", cuda.tex2D, SMOOTH, LATTICE, (QUARTERS + 0.125, 0.375), (4, 5, 6, 7)),
    ("41 a sparse array holds zeros", cuda.tex2D, {"flags": ArrayFlags.Sparse}, 0 * SQUARE, (0.5, 0.5), 0),
    ("42 weights are split into integers", cuda.tex2D, BLENDED, FAR_CORNER, (MIDDLE, MIDDLE), 0),
]


def read(function, desc, texels, coords):
    given = {"T": desc["T"]} if "T" in desc else {}
    desc = {name: value for name, value in desc.items() if name != "T"}
    make = mipmapped if isinstance(texels, tuple) else texture
    return function(make(texels, **desc), *coords, **given)


def fetched(texels, x):
    return cuda.tex1Dfetch(cuda.createTextureObject(ResourceDesc.Linear(texels), TextureDesc(addressMode=CLAMP)), x)


def layered(texels, layer):
    return cuda.tex1DLayered(texture(texels, ArrayFlags.Layered), 0.5, layer)


def copied(texels, x, y):
    source, target = surface("uchar4", 8, 2, texels), surface("uchar4", 8, 2)
    return cuda.surf2Dwrite(cuda.surf2Dread(source, 4 * x, y), target, 4 * x, y).texels


def stored(texels, mode):
    return cuda.surf1Dwrite(np.float32(9), surface("float", len(texels), texels=texels), -4, mode).texels[:, 0]


def loaded(texels, x, *how, **more):
    return cuda.surf1Dread(surface("float", len(texels), texels=texels), x, *how, **more)


def without_names(texels):
    return jt.surface_write(jt.texture1d(texels), 9.0, (-1,), boundary_mode="zero").texels


BOUNDARY, LANES = cuda.SurfaceBoundaryMode, (np.arange(8)[None], np.arange(2)[:, None])
# Any other function of arrays.
OTHERS = [
    ("13 a fetch outside is zero", fetched, (numbers(7, 8, 9), np.array([-1, 0, 2, 3])), (0, 7, 9, 0)),
    ("14 any layer out of range is the last", layered, (LAYERS, np.array([-1, 0, 2, 99])), (102, 100, 102, 102)),
    ("33 a surface counts bytes", lambda t: loaded(t, 12), (TENS,), 40),
    ("33 in all axes but y", copied, (H, *LANES), H),
    ("34 a clamped access", lambda t: loaded(t, 400, BOUNDARY.Clamp), (SIX,), 5),
    ("34 moves to where all of it fits", lambda t: loaded(t, 16, BOUNDARY.Clamp, T="float4"), (SIX,), range(4)),
    ("34 another is nothing", lambda t: loaded(t, 16, BOUNDARY.Zero, T="float4"), (SIX,), [0] * 4),
    ("34 also where it writes", lambda t: stored(t, BOUNDARY.Clamp), (SIX,), (9, 1, 2, 3, 4, 5)),
    ("35 a negative index is no index from the end", lambda t: stored(t, BOUNDARY.Zero), (TENS,), TENS[:, 0]),
    ("35 nor does it stop a program", lambda t: stored(t, BOUNDARY.Trap), (TENS,), TENS[:, 0]),
    ("35 nor is it one without CUDA's names", without_names, (TENS,), TENS),
]


def test_traps():
    spread = lambda coords: [np.float32(x) for x in coords]
    rows = [
        *((trap, cuda.tex1D, desc, (texels, [numbers(*x)]), result) for trap, desc, texels, x, result in LINES),
        *((trap, f, desc, (texels, spread(coords)), result) for trap, f, desc, texels, coords, result in PLACES),
        *((trap, f, None, args, result) for trap, f, args, result in OTHERS),
    ]

    @jax.jit
    def run(given):
        each = zip(rows, given, strict=True)
        return [f(*args) if desc is None else read(f, desc, *args) for (_, f, desc, *_), args in each]

    for (trap, *_, expected), found in zip(rows, run([row[3] for row in rows]), strict=True):
        expected = np.asarray(expected, getattr(expected, "dtype", np.float32))
        with named(f"trap {trap}"):
            assert_exact(np.reshape(found, expected.shape), expected, expected.dtype)


def test_what_cuda_refuses():
    linear = lambda: ResourceDesc.Linear(np.zeros(4, np.uint8))
    line = lambda: ResourceDesc.Array(cuda.mallocArray(cuda.createChannelDesc("float"), 4))
    rows = {
        "18 words are no fractions": (27, lambda: texture(NO_WORDS, **FRACTIONS)),
        "18 nor blended": (26, lambda: texture(NO_WORDS, **LINEAR)),
        "18 nor both": (26, lambda: texture(NO_WORDS, **FRACTIONS, **LINEAR)),
        "19 bytes as elements are not blended": (26, lambda: texture(NO_BYTES, **LINEAR)),
        "19 nor in linear memory": (26, lambda: cuda.createTextureObject(linear(), TextureDesc(**LINEAR))),
        "33 bytes between elements": (716, lambda: loaded(TENS, 3)),
        "40 a line has one dimension": (
            1,
            lambda: cuda.tex2D(cuda.createTextureObject(line(), TextureDesc()), 0.5, 0.5),
        ),
    }
    for name, (code, create) in rows.items():
        with named(f"trap {name}"):
            refused(create, code)


def test_trap_40_a_height_of_one_makes_two_dimensions():
    desc = cuda.createChannelDesc("float")
    row, line = cuda.mallocArray(desc, 4, 1), cuda.mallocArray(desc, 4)
    assert (row.kind.value, line.kind.value) == ("2d", "1d")
    assert (row.texels.shape, line.texels.shape) == ((1, 4, 1), (4, 1))

    @jax.jit
    def copies(source):
        """Widths and offsets of memcpy2D are bytes; those of memcpy3D are elements where an array takes part."""
        parms = {"srcPtr": cuda.PitchedPtr(source, 16, 4, 1), "dstArray": row, "dstPos": cuda.Pos(1)}
        volume = cuda.memcpy3D(cuda.Memcpy3DParms(**parms, extent=cuda.Extent(2, 1, 1)))
        assert isinstance(volume, cuda.Array)
        return cuda.memcpy2DToArray(row, 4, 0, source, 8, 8, 1).texels, volume.texels

    for texels in copies(np.arange(1, 5, dtype=np.float32)):
        assert_exact(texels[0, :, 0], [0, 1, 2, 0], np.float32)
