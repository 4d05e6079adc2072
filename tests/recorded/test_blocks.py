"""Block-compressed textures against the recordings of a texture unit: decoded texels, and reads by CUDA's names."""

import functools
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import cuda
from tests.recorded.block_sets import SETS, SIZES, image_blocks
from tests.support import recordings
from tests.support.tolerances import assert_exact, named

data = functools.partial(recordings.arrays, "blocks_unit")
BORDER = (0.3, -0.7, 1.6, 0.45)
CLAMP, EDGE = 1, 3
KINDS = {
    name: ("Signed" if "signed" in name else "Unsigned") + f"BlockCompressed{name[2:].split('_')[0].upper()}"
    for name in SIZES
}
WITH_SRGB = ("bc1", "bc2", "bc3", "bc7")


def checksum(values):
    return zlib.crc32(np.ascontiguousarray(values, dtype=np.float32).tobytes())


def as_vectors(texels):
    """Texels as four floats, as a texture unit returns them: other channels are 0, and alpha is 1."""
    texels = np.asarray(texels)
    floats = texels.astype(np.float32)
    if texels.dtype.kind in "iu":
        floats /= np.float32(np.iinfo(texels.dtype).max)
    vectors = np.broadcast_to(np.float32([0, 0, 0, 1]), (*texels.shape[:-1], 4)).copy()
    vectors[..., : texels.shape[-1]] = floats
    return vectors


@jax.jit
def decoded(blocks):
    """The texels of blocks by format, (4, 4 n, C)."""
    return {name: jt.block_compressed(of, name, (4, 4 * len(of))).texels for name, of in blocks.items()}


def test_texels_have_the_bits_of_the_texture_unit():
    blocks = {name: make() for name, (_, make, *_) in SETS.items()}
    names = {block_format: [name for name in SETS if SETS[name][0] == block_format] for block_format in SIZES}
    joined = {block_format: np.concatenate([blocks[name] for name in of]) for block_format, of in names.items()}
    for block_format, texels in decoded(joined).items():
        vectors = as_vectors(texels).reshape(4, -1, 4, 4).swapaxes(0, 1).reshape(-1, 16, 4)
        ends = np.cumsum([len(blocks[name]) for name in names[block_format]])
        for name, of_set in zip(names[block_format], np.split(vectors, ends[:-1]), strict=True):
            _, _, count, channels = SETS[name]
            with named(name):
                assert checksum(of_set[:, :count, channels]) == data()[f"{name}/crc32"]


def array_of(name, blocks, *, srgb=False, width=64, height=64, flags=0):
    kind = cuda.ChannelFormatKind[KINDS[name] + ("SRGB" if srgb else "")]
    array = cuda.mallocArray(cuda.createChannelDesc(kind), width, height, flags)
    row = -(-width // 4) * SIZES[name]
    return cuda.memcpy2DToArray(array, 0, 0, blocks, row, row, -(-height // 4))


def texture_of(name, array, address=CLAMP, view=None, *, linear=False, srgb=False, border=BORDER):
    read = cuda.ReadMode.ElementType if view or "6h" in name else cuda.ReadMode.NormalizedFloat
    desc = cuda.TextureDesc(address, int(linear), read, int(srgb), borderColor=border)
    return cuda.createTextureObject(cuda.ResourceDesc.Array(array), desc, view)


def read_all(t, size):
    """The texels at the centers of a square."""
    y, x = jnp.mgrid[:size, :size].astype(np.float32) + np.float32(0.5)
    return cuda.tex2D(t, x, y, T="float4")


CASES = [(name, srgb) for name in SIZES for srgb in (False, True) if not srgb or name in WITH_SRGB]
# The colors of the slow ones are those of BC1, and their alphas those of BC4.
SLOW = [(name, srgb) for name, srgb in CASES if name in ("bc2", "bc3")]


def test_linear_reads_have_the_bits_of_the_texture_unit():
    """At the edge as a border or clamped, by turns."""
    modes = {case: ("clamp", "border")[k % 2] for k, case in enumerate(CASES) if case not in SLOW}

    @jax.jit
    def run(blocks, x, y):
        found = []
        for (name, srgb), mode in modes.items():
            address = CLAMP if mode == "clamp" else EDGE
            t = texture_of(name, array_of(name, blocks[name], srgb=srgb), address, linear=True, srgb=srgb)
            found.append(cuda.tex2D(t, x, y, T="float4"))
        return found

    found = run({name: image_blocks(name) for name, _ in modes}, *data()["coords"].T)
    for ((name, srgb), mode), values in zip(modes.items(), found, strict=True):
        with named(name, srgb):
            assert_exact(values, data()[f"{name}/linear_{mode}" + ("_srgb" if srgb else "")])


@pytest.mark.parametrize("cases", [[c for c in CASES if c not in SLOW], pytest.param(SLOW, marks=pytest.mark.slow)])
def test_views_of_words_read_blocks(cases):
    @jax.jit
    def run(blocks):
        found = []
        for name, srgb in cases:
            words, row = cuda.mallocArray(cuda.createChannelDesc(f"uint{SIZES[name] // 4}"), 16, 16), 16 * SIZES[name]
            words = cuda.memcpy2DToArray(words, 0, 0, blocks[name], row, row, 16)
            view = cuda.ResourceViewDesc(cuda.ResourceViewFormat[KINDS[name]], 64, 64)
            found.append(read_all(texture_of(name, words, view=view, srgb=srgb), 64))
        return found

    for (name, srgb), values in zip(cases, run({name: image_blocks(name) for name, _ in cases}), strict=True):
        values = np.array(values)
        with named(name, srgb):
            if name not in WITH_SRGB:  # on the card such views returned alpha 0, and arrays of blocks alpha 1
                assert not values[..., 3].any()
                values[..., 3] = 1
            blocks = values.reshape(16, 4, 16, 4, 4).swapaxes(1, 2).reshape(256, 16, 4)
            assert checksum(blocks) == data()[f"{name}/srgb/crc32" if srgb else f"{name}/texels/crc32"]


@pytest.mark.parametrize(("name", "width", "height", "address"), [("bc1", 2, 2, CLAMP), ("bc7", 30, 21, EDGE)])
def test_texels_of_a_block_outside_the_array_are_not_read(name, width, height, address):
    array = lambda blocks: array_of(name, blocks, width=width, height=height)
    read = lambda blocks: read_all(texture_of(name, array(blocks), address, border=(7.0, 0, 0, 0)), 36)
    mode = "clamp" if address == CLAMP else "border"
    assert checksum(jax.jit(read)(image_blocks(name))) == data()[f"{name}/{width}x{height}/{mode}/crc32"]


@pytest.mark.parametrize("name", ["bc1", pytest.param("bc7", marks=pytest.mark.slow)])
def test_gathers(name):
    i = np.arange(64, dtype=np.float32)
    x, y = i * np.float32(0.47) + np.float32(0.3), i * np.float32(0.39) + np.float32(0.6)

    @jax.jit
    def gathers(blocks, x, y):
        t = texture_of(name, array_of(name, blocks, width=32, height=32, flags=cuda.ArrayFlags.TextureGather))
        return [cuda.tex2Dgather(t, x, y, comp=component) for component in range(4)]

    for component, values in enumerate(gathers(image_blocks(name), x, y)):
        np.testing.assert_array_equal(values, data()[f"{name}/gather{component}"])
