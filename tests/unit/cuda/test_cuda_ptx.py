"""Instructions of PTX without a function in CUDA C++: reductions and queries, held against what an H100 returned."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxtex import cuda
from jaxtex.cuda import ArrayFlags, ResourceDesc, SurfaceBoundaryMode, TextureDesc
from tests.unit.cuda.test_cuda import refused, traced

STORE, CLAMP, ZERO = ArrayFlags.SurfaceLoadStore, SurfaceBoundaryMode.Clamp, SurfaceBoundaryMode.Zero
# Each array has 4 by 2 texels, of these bytes; row 1 is accessed.
BYTES, DATA = (np.arange(64) * 37 + 11).astype(np.uint8), 0x0F0E0D83
ADD, MIN, OR = "add", "min", "or"
CHANGED = {
    (ADD, 20): "72 22 47 6d",
    (ADD, 28): "9a 49 6f 95",
    (ADD, 16): "de 8d b3 d9",
    (MIN, 20): "83 0d 0e 0f",
    (OR, 20): "ef 1d 3f 5f",
    (OR, 28): "97 3d 6f 8f",
    (OR, 16): "db 8d af cf",
}
HALF_AS_WIDE = {(ADD, 12): "4a fa 1f 45", (ADD, 8): "b6 65 8b b1", (MIN, 12): "83 0d 0e 0f", (OR, 12): "c7 ed 1f 3f"}
HALF_AS_WIDE |= {(OR, 8): "b3 5d 7f af"}
# Of the operation, its type and the mode: by x in units, the byte at which the array changed, if any.
PLACES = {
    (ADD, "uint", CLAMP): {1: 20, 9: 28, -1: 16},
    (ADD, "uint", ZERO): {1: 20, 9: None, -1: None},
    (MIN, "int", CLAMP): {1: 20, 9: None, -1: None},
    (OR, "uint", CLAMP): {1: 20, 9: 28, -1: 16},
}
PLACES_HALF_AS_WIDE = {
    (ADD, "uint", CLAMP): {9: 12, -1: 8},
    (MIN, "int", CLAMP): {9: 12, -1: None},
    (OR, "uint", CLAMP): {1: 12, -1: 8},
}
REDUCTIONS = {(form, *how): places for form in ("uint", "int", "uchar4") for how, places in PLACES.items()}
REDUCTIONS |= {("ushort", *how): places for how, places in PLACES_HALF_AS_WIDE.items()}


def stored(form, flags=STORE):
    desc = cuda.createChannelDesc(form)
    texels = BYTES[: 8 * desc.texel_bytes].view(desc.dtype).reshape(2, 4, desc.channels)
    return cuda.memcpyToArray(cuda.mallocArray(desc, 4, 2, flags), texels)


def bytes_of(texels):
    return np.ascontiguousarray(texels).reshape(-1).view(np.uint8)


def test_recorded_reductions_are_equal():
    """One program for all: places that share the format, the operation and the mode are examples of a batch."""

    @jax.jit
    def reductions(arrays):
        found = {}
        for (form, op, T, mode), places in REDUCTIONS.items():
            array, data, x = arrays[form], np.array(DATA, f"{T}32"), np.array([*places])
            by_byte = lambda x: cuda.sured_b(data, array, 4 * x, 1, op=op, T=T, boundaryMode=mode).texels  # noqa: B023
            by_texel = lambda x: cuda.sured_p(data, array, x, 1, op=op, boundaryMode=mode).texels  # noqa: B023
            found[form, op, T, mode] = jax.vmap(by_texel if (form, op) in ((T, op), ("uchar4", ADD)) else by_byte)(x)
        return found

    arrays = {form: stored(form) for form, *_ in REDUCTIONS}
    for (form, op, T, mode), texels in jax.device_get(reductions(arrays)).items():
        for k, (x, byte) in enumerate(REDUCTIONS[form, op, T, mode].items()):
            expected = bytes_of(arrays[form].texels).copy()
            if byte is not None:
                changed = (HALF_AS_WIDE if form == "ushort" else CHANGED)[op, byte]
                expected[byte : byte + 4] = [int(code, 16) for code in changed.split()]
            np.testing.assert_array_equal(bytes_of(texels[k]), expected, err_msg=f"{form} {op} {T} {mode} {x}")


def test_all_numbers_for_a_place_are_reduced():
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.integers(-(2**31), 2**31, shape)
    ufuncs = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or}
    x, y = rng.integers(0, 5, 40), rng.integers(0, 3, 40)
    given = {T: (draw(3, 5, 1).astype(f"{T}32"), draw(40).astype(f"{T}32")) for T in ("uint", "int")}

    @jax.jit
    def reductions(given):
        found = {}
        for T, (texels, data) in given.items():
            array = cuda.memcpyToArray(cuda.mallocArray(cuda.createChannelDesc(T), 5, 3, STORE), texels)
            surface = cuda.createSurfaceObject(ResourceDesc.Array(array))
            for op in ufuncs:
                by_byte = lambda: cuda.sured_b(data, surface, 4 * x, y, op=op, T=T)  # noqa: B023, called at once
                by_texel = lambda: cuda.sured_p(data, surface, x, y, op=op)  # noqa: B023
                found[T, op] = (by_byte if T == "uint" else by_texel)().texels
        return found

    for (T, op), result in reductions(given).items():
        expected = given[T][0].copy()
        ufuncs[op].at(expected[..., 0], (y, x), given[T][1])
        np.testing.assert_array_equal(result, expected, err_msg=f"{op} of {T}")


ARRAY = stored("uint")
REFUSED = {
    "an operation": (lambda: cuda.sured_b(1, ARRAY, 0, 0, op="xor"), 1, "op"),
    "a type": (lambda: cuda.sured_b(1, ARRAY, 0, 0, op="add", T="ushort"), 1, "T"),
    "a vector": (lambda: cuda.sured_b((1, 1), ARRAY, 0, 0, op="add", T="uint2"), 1, "T"),
    "floats": (lambda: cuda.sured_b(1.0, ARRAY, 0, 0, op="add", T="float"), 1, "T"),
    "coordinates": (lambda: cuda.sured_b(1, ARRAY, 0, op="add"), 1, "coordinates"),
    "a place": (lambda: cuda.sured_b(1, ARRAY, 2, 0, op="add"), 716, "x"),
    "texels": (lambda: cuda.sured_p(1, stored("ushort"), 0, 0, op="add"), 1, "4 bytes"),
    "a format": (lambda: cuda.sured_p(1, stored("float"), 0, 0, op="add"), 1, "integers"),
    "data": (lambda: cuda.sured_p(np.float32(1), ARRAY, 0, 0, op="add"), 1, "data"),
    "no flag": (lambda: cuda.sured_p(1, stored("uint", 0), 0, 0, op="add"), 1, "SurfaceLoadStore"),
    "a query": (lambda: cuda.suq(ARRAY, "array_size"), 801, "query"),
    "a query of a texture": (lambda: cuda.txq(texture((4, 0, 0), 0), "normalized_coords"), 801, "query"),
    "linear memory": (lambda: cuda.txq(linear(), "width"), 801, "Linear"),
}


def test_refusals():
    for call, code, word in REFUSED.values():
        refused(call, code, word)


def linear():
    return cuda.createTextureObject(ResourceDesc.Linear(jnp.zeros(4)), TextureDesc())


def texture(extent, flags, levels=0):
    desc, float_ = TextureDesc(normalizedCoords=1), cuda.createChannelDesc("float")
    if levels:
        array = cuda.mallocMipmappedArray(float_, extent, levels, flags)
        return cuda.createTextureObject(ResourceDesc.MipmappedArray(array), desc)
    return cuda.createTextureObject(ResourceDesc.Array(cuda.malloc3DArray(float_, extent, flags)), desc)


LAYERED, CUBEMAP = ArrayFlags.Layered, ArrayFlags.Cubemap
# Extents, flags and levels; width, height and depth of textures, of their level 1, and of surfaces.
SIZES = {
    "1D": ((7, 0, 0), 0, 0, (7, 1, 0), (0, 0, 0), (7, 0, 0)),
    "2D": ((7, 5, 0), 0, 0, (7, 5, 0), (0, 0, 0), (7, 5, 0)),
    "3D": ((7, 5, 3), 0, 0, (7, 5, 3), (0, 0, 0), (7, 5, 3)),
    "1DLayered": ((7, 0, 3), LAYERED, 0, (7, 3, 0), (0, 0, 0), (7, 3, 0)),
    "2DLayered": ((7, 5, 3), LAYERED, 0, (7, 5, 3), (0, 0, 0), (7, 5, 3)),
    "Cubemap": ((4, 4, 6), CUBEMAP, 0, (4, 4, 0), (0, 0, 0), (4, 4, 6)),
    "CubemapLayered": ((4, 4, 12), CUBEMAP | LAYERED, 0, (4, 4, 2), (0, 0, 0), (4, 4, 12)),
    "levels": ((8, 4, 0), 0, 3, (8, 4, 0), (4, 2, 0), None),
    "levels of layers": ((8, 4, 3), LAYERED, 3, (8, 4, 3), (4, 2, 3), None),
}


@traced
def test_recorded_sizes_are_equal():
    queries = ("width", "height", "depth")
    for extent, flags, levels, sizes, halved, of_surface in SIZES.values():
        t = texture(extent, flags, levels)
        assert tuple(cuda.txq(t, query) for query in queries) == sizes
        assert tuple(cuda.txq(t, query, 1) for query in queries) == halved
        assert tuple(cuda.txq(t, query, 9) for query in queries) == (0, 0, 0)
        assert cuda.txq(t, "width", 0) == (sizes[0] if levels else 0)
        if of_surface:
            array = cuda.malloc3DArray(cuda.createChannelDesc("float"), extent, flags | STORE)
            surface = cuda.createSurfaceObject(ResourceDesc.Array(array))
            assert tuple(cuda.suq(surface, query) for query in queries) == of_surface
