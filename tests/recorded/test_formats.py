"""Views in other formats and packed texels by CUDA's names against recordings of a card: codes of errors, and bits."""

import functools
import itertools
import json
import zlib

import jax
import numpy as np

import jaxtex as jt
from jaxtex import cuda
from tests.support import recordings
from tests.support.tolerances import named

data = functools.partial(recordings.arrays, "formats_unit")
KIND, VIEW = cuda.ChannelFormatKind, cuda.ResourceViewFormat
PACKED = cuda.createChannelDesc(KIND.UnsignedNormalized1010102)
BORDER = (0.3, -0.7, 1.6, 0.45)
CLAMP, EDGE, GATHER = 1, 3, cuda.ArrayFlags.TextureGather
LOD = 0.65625
NOT_MODELED = 801


def desc_of(name):
    """A format by its name in the file."""
    if name == "1010102":
        return PACKED
    if "norm" in name:
        sign = "Unsigned" if name[0] == "u" else "Signed"
        return cuda.createChannelDesc(KIND[f"{sign}Normalized{name[5:].upper()}"])
    return cuda.createChannelDesc(name)


FORMATS = json.loads(bytes(data()["views/formats"]))


def test_modes_of_views_are_allowed_as_on_the_card():
    """The card refuses a view of the format None, which the documentation describes."""
    codes, recorded = {}, data()["views/codes"]  # of no views as blocks

    @jax.jit
    def run():
        arrays, texels = {name: cuda.mallocArray(desc_of(name), 8, 8) for name in FORMATS}, []
        for (name, array), view, column in itertools.product(arrays.items(), [*VIEW][: recorded.shape[1]], range(4)):
            resource = cuda.ResourceDesc.Array(array)
            texture = cuda.TextureDesc(filterMode=column % 2, readMode=column // 2)
            try:
                made = cuda.createTextureObject(resource, texture, cuda.ResourceViewDesc(view, 8, 8))
                texels.append(made.texture.texels)
                codes[name, view, column] = 0
            except cuda.CudaError as error:
                codes[name, view, column] = error.code
        return texels

    jax.block_until_ready(run())
    for (name, view, column), expected in zip(codes, recorded.ravel(), strict=True):
        same = view is VIEW.None_ and expected == 1
        wide = not expected and column % 2 and view.name[:-1] in ("UnsignedInt", "SignedInt")
        with named(name, view.name, column):
            assert codes[name, view, column] == (0 if same else NOT_MODELED if wide else expected)


VIEWS = sorted({key.rsplit("/", 1)[0] for key in data() if key.startswith("views/") and key.endswith("/data")})


def views(texels_of):
    """Textures through views, and the names of their recordings."""
    for name in VIEWS:
        _, held, view, (read, linear) = name.split("/")
        texels, array = texels_of[name], cuda.mallocArray(desc_of(held), 8, 8)
        array = cuda.memcpy2DToArray(array, 0, 0, texels, texels.nbytes // 8, texels.nbytes // 8, 8)
        resource, view = cuda.ResourceDesc.Array(array), cuda.ResourceViewDesc(int(view), 8, 8)
        for how in ("clamp", "border", "border_srgb"):
            if f"{name}/{how}" in data():
                address = CLAMP if how == "clamp" else EDGE
                texture = cuda.TextureDesc(address, int(linear), int(read), int("srgb" in how), borderColor=BORDER)
                yield f"{name}/{how}", cuda.createTextureObject(resource, texture, view)


def test_views_have_the_bits_of_the_texture_unit():
    type_of = lambda t: f"{t.desc.result_base(t.readMode)}4"
    run = jax.jit(lambda x, y, texels: {name: cuda.tex2D(t, x, y, T=type_of(t)) for name, t in views(texels)})
    texels = {name: data()[f"{name}/data"] for name in VIEWS}
    for name, values in jax.device_get(run(*data()["views/coords"].T, texels)).items():
        words = values.view(np.uint32) if values.dtype.itemsize == 4 else values.astype(np.int32).view(np.uint32)
        with named(name):
            np.testing.assert_array_equal(words, data()[name])


def packed_array(words, flags=0):
    return cuda.memcpyToArray(cuda.mallocArray(PACKED, 64, 32, flags), words)


def texture_of(array, address=CLAMP, *, linear=False, **options):
    desc = cuda.TextureDesc(address, int(linear), borderColor=BORDER, **options)
    return cuda.createTextureObject(cuda.ResourceDesc.Array(array), desc)


def assert_same_bits(read, *operands):
    """Of a program that returns values by name, where `gather/linear` is one of those recorded as `gather`."""
    for name, values in jax.device_get(jax.jit(read)(*map(data().get, operands))).items():
        with named(name):
            expected = data()[f"rgb10a2/{name.split('/')[0]}"]
            np.testing.assert_array_equal(values.view(np.uint32), expected.view(np.uint32))


def test_packed_texels_that_are_not_blended_are_quotients_of_their_codes():
    """The first are read outside of any program of a caller's."""
    y, x = np.mgrid[:32, :64].astype(np.float32) + np.float32(0.5)
    texels = np.asarray(cuda.tex2D(texture_of(packed_array(data()["rgb10a2/words"])), x, y))
    assert zlib.crc32(texels.tobytes()) == data()["rgb10a2/texels/crc32"]
    read = lambda words, coords: {"point_border": cuda.tex2D(texture_of(packed_array(words), EDGE), *coords.T)}
    assert_same_bits(read, "rgb10a2/other_words", "rgb10a2/coords")


def test_packed_texels_are_blended_as_codes_of_16_bits():
    def read(words, places, other, coords, normalized):
        array, found = packed_array(words), {}
        for name, address in (("linear_clamp", CLAMP), ("linear_border", EDGE)):
            found[name] = cuda.tex2D(texture_of(array, address, linear=True), *places.T)
        other = packed_array(other, GATHER)
        for name, linear in (("gather/point", False), ("gather/linear", True)):
            found[name] = cuda.tex2Dgather(texture_of(other, EDGE, linear=linear), *coords.T)
        t = texture_of(other, normalizedCoords=1, maxAnisotropy=4)
        return {**found, "anisotropic": cuda.tex2D(t, *normalized.T)}

    names = ("words", "linear_coords", "other_words", "coords", "normalized_coords")
    assert_same_bits(read, *(f"rgb10a2/{name}" for name in names))


def test_levels_of_packed_texels():
    def read(words, places):
        words, found, mipmap = words.reshape(-1), {}, cuda.mallocMipmappedArray(PACKED, (32, 32, 0), 3)
        for level, size in enumerate((32, 16, 8)):
            texels = words[300 * level : 300 * level + size * size].reshape(size, size)
            mipmap = cuda.memcpyToArray(mipmap, texels, level=level)
        more = {"normalizedCoords": 1, "maxMipmapLevelClamp": 9.0, "borderColor": BORDER}
        for linear, between in np.ndindex(2, 2):
            desc = cuda.TextureDesc(CLAMP, linear, mipmapFilterMode=between, **more)
            t = cuda.createTextureObject(cuda.ResourceDesc.MipmappedArray(mipmap), desc)
            found[f"levels{linear}{between}"] = cuda.tex2DLod(t, *places.T, LOD)
        return found

    assert_same_bits(read, "rgb10a2/other_words", "rgb10a2/normalized_coords")


def test_packed_texels_in_plain_memory():
    def read(words):
        t = cuda.createTextureObject(cuda.ResourceDesc.Linear(words, PACKED), cuda.TextureDesc())
        return {"fetched": cuda.tex1Dfetch(t, np.arange(len(words)))}

    assert_same_bits(read, "rgb10a2/fetched_words")


def test_fractions_are_stored_in_packed_texels():
    @jax.jit
    def store(given):
        surface = cuda.mallocArray(PACKED, len(given), 1, cuda.ArrayFlags.SurfaceLoadStore)
        stored = cuda.sust_p(given, surface, np.arange(len(given)), 0)
        return stored.texels.reshape(-1), cuda.surf2Dread(stored, np.int32([0, 4]), 0)

    texels, read = store(data()["rgb10a2/stored_from"])
    np.testing.assert_array_equal(texels, data()["rgb10a2/stored"])
    np.testing.assert_array_equal(read, data()["rgb10a2/stored"][:2])


def test_packed_words_make_a_texture():
    sampler = jt.Sampler(
        address_mode="clamp", read_mode="normalized_float", normalized_coords=False, arithmetic="hardware"
    )

    def read(words, places):
        return {"linear_clamp": jt.sample(jt.block_compressed(words, "rgb10a2", words.shape), tuple(places.T), sampler)}

    assert_same_bits(read, "rgb10a2/words", "rgb10a2/linear_coords")
