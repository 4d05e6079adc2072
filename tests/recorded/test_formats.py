"""Views in other formats and packed texels by CUDA's names against recordings of a card: codes of errors, and bits."""

import functools
import json
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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


@pytest.mark.parametrize("name", FORMATS)
def test_modes_of_views_are_allowed_as_on_the_card(name):
    """The card refuses a view of the format None, which the documentation describes."""
    desc, recorded = desc_of(name), data()["views/codes"][FORMATS.index(name)]
    resource = cuda.ResourceDesc.Array(cuda.mallocArray(desc, 8, 8))
    for view, (form, codes) in enumerate(zip(VIEW, recorded)):
        for column, expected in enumerate(codes):
            texture = cuda.TextureDesc(filterMode=column % 2, readMode=column // 2)
            try:
                cuda.createTextureObject(resource, texture, cuda.ResourceViewDesc(form, 8, 8))
                code = 0
            except cuda.CudaError as error:
                code = error.code
            same = view == 0 and expected == 1
            wide = not expected and column % 2 and form.name[:-1] in ("UnsignedInt", "SignedInt")
            assert code == (0 if same else NOT_MODELED if wide else expected), (form.name, column)


VIEWS = sorted({key.rsplit("/", 1)[0] for key in data() if key.startswith("views/") and key.endswith("/data")})


def views():
    """Textures through views, and the names of their recordings."""
    for name in VIEWS:
        _, held, view, (read, linear) = name.split("/")
        texels, array = data()[f"{name}/data"], cuda.mallocArray(desc_of(held), 8, 8)
        array = cuda.memcpy2DToArray(array, 0, 0, texels, texels.nbytes // 8, texels.nbytes // 8, 8)
        resource, view = cuda.ResourceDesc.Array(array), cuda.ResourceViewDesc(int(view), 8, 8)
        for how in ("clamp", "border", "border_srgb"):
            if f"{name}/{how}" in data():
                address = CLAMP if how == "clamp" else EDGE
                texture = cuda.TextureDesc(address, int(linear), int(read), int("srgb" in how), borderColor=BORDER)
                yield f"{name}/{how}", cuda.createTextureObject(resource, texture, view)


def test_views_have_the_bits_of_the_texture_unit():
    textures = dict(views())
    type_of = lambda t: f"{t.desc.result_base(t.readMode)}4"
    run = jax.jit(lambda x, y: {name: cuda.tex2D(t, x, y, T=type_of(t)) for name, t in textures.items()})
    for name, values in jax.device_get(run(*data()["views/coords"].T)).items():
        words = values.view(np.uint32) if values.dtype.itemsize == 4 else values.astype(np.int32).view(np.uint32)
        with named(name):
            np.testing.assert_array_equal(words, data()[name])


def packed_array(words, flags=0):
    return cuda.memcpyToArray(cuda.mallocArray(PACKED, 64, 32, flags), words)


def texture_of(array, address=CLAMP, *, linear=False, **options):
    desc = cuda.TextureDesc(address, int(linear), borderColor=BORDER, **options)
    return cuda.createTextureObject(cuda.ResourceDesc.Array(array), desc)


def assert_same_bits(values, name):
    np.testing.assert_array_equal(np.asarray(values).view(np.uint32), data()[f"rgb10a2/{name}"].view(np.uint32))


def test_packed_texels_that_are_not_blended_are_quotients_of_their_codes():
    y, x = np.mgrid[:32, :64].astype(np.float32) + np.float32(0.5)
    texels = np.asarray(cuda.tex2D(texture_of(packed_array(data()["rgb10a2/words"])), x, y))
    assert zlib.crc32(texels.tobytes()) == data()["rgb10a2/texels/crc32"]
    t = texture_of(packed_array(data()["rgb10a2/other_words"]), EDGE)
    assert_same_bits(cuda.tex2D(t, *data()["rgb10a2/coords"].T), "point_border")


def test_packed_texels_are_blended_as_codes_of_16_bits():
    words, places = data()["rgb10a2/words"], data()["rgb10a2/linear_coords"].T
    for name, address in (("linear_clamp", CLAMP), ("linear_border", EDGE)):
        assert_same_bits(cuda.tex2D(texture_of(packed_array(words), address, linear=True), *places), name)
    other = packed_array(data()["rgb10a2/other_words"], GATHER)
    for linear in (False, True):
        t = texture_of(other, EDGE, linear=linear)
        assert_same_bits(cuda.tex2Dgather(t, *data()["rgb10a2/coords"].T), "gather")
    t = texture_of(other, normalizedCoords=1, maxAnisotropy=4)
    assert_same_bits(cuda.tex2D(t, *data()["rgb10a2/normalized_coords"].T), "anisotropic")


@pytest.mark.parametrize("linear", [0, 1])
@pytest.mark.parametrize("between", [0, 1])
def test_levels_of_packed_texels(linear, between):
    words = data()["rgb10a2/other_words"].reshape(-1)
    mipmap = cuda.mallocMipmappedArray(PACKED, (32, 32, 0), 3)
    for level, size in enumerate((32, 16, 8)):
        texels = words[300 * level : 300 * level + size * size].reshape(size, size)
        mipmap = cuda.memcpyToArray(mipmap, texels, level=level)
    desc = cuda.TextureDesc(
        CLAMP, linear, normalizedCoords=1, mipmapFilterMode=between, maxMipmapLevelClamp=9.0, borderColor=BORDER
    )
    t = cuda.createTextureObject(cuda.ResourceDesc.MipmappedArray(mipmap), desc)
    assert_same_bits(cuda.tex2DLod(t, *data()["rgb10a2/normalized_coords"].T, LOD), f"levels{linear}{between}")


def test_packed_texels_in_plain_memory():
    words = data()["rgb10a2/fetched_words"]
    t = cuda.createTextureObject(cuda.ResourceDesc.Linear(words, PACKED), cuda.TextureDesc())
    assert_same_bits(cuda.tex1Dfetch(t, np.arange(len(words))), "fetched")


def test_fractions_are_stored_in_packed_texels():
    given = data()["rgb10a2/stored_from"]
    surface = cuda.mallocArray(PACKED, len(given), 1, cuda.ArrayFlags.SurfaceLoadStore)
    stored = cuda.sust_p(given, surface, np.arange(len(given)), 0)
    np.testing.assert_array_equal(stored.texels.reshape(-1), data()["rgb10a2/stored"])
    np.testing.assert_array_equal(cuda.surf2Dread(stored, np.int32([0, 4]), 0), data()["rgb10a2/stored"][:2])


def test_packed_words_make_a_texture():
    words = data()["rgb10a2/words"]
    texture = jt.block_compressed(jnp.asarray(words), "rgb10a2", words.shape)
    sampler = jt.Sampler(
        address_mode="clamp", read_mode="normalized_float", normalized_coords=False, arithmetic="hardware"
    )
    assert_same_bits(jt.sample(texture, tuple(data()["rgb10a2/linear_coords"].T), sampler), "linear_clamp")
