"""Arrays of blocks and of planes, and views, by CUDA's names: what is allocated, copied and refused, as on a card."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import cuda
from tests.unit.cuda.test_cuda import refused

KIND = cuda.ChannelFormatKind
BC1, BC7 = (cuda.createChannelDesc(KIND[f"UnsignedBlockCompressed{k}"]) for k in (1, 7))
FRACTIONS = cuda.ReadMode.NormalizedFloat


ALLOCATIONS = {
    "1D": ((32, 0, 0), 0, 1),
    "1D layered": ((32, 0, 4), 1, 1),
    "30 by 21": ((30, 21, 0), 0, (6, 8)),
    "1 by 1": ((1, 1, 0), 0, (1, 1)),
    "3D": ((32, 32, 8), 0, (8, 8, 8)),
    "layered": ((32, 30, 3), 1, (3, 8, 8)),
    "cubemap": ((32, 32, 6), 4, (6, 8, 8)),
    "layered cubemap": ((32, 32, 12), 5, (12, 8, 8)),
    "gather": ((32, 32, 0), 8, (8, 8)),
    "surface": ((32, 32, 0), 2, 801),
    "attachment": ((32, 32, 0), 0x20, 1),
}


@pytest.mark.parametrize("name", ALLOCATIONS)
def test_allocations(name):
    extent, flags, expected = ALLOCATIONS[name]
    if isinstance(expected, int):
        return refused(lambda: cuda.malloc3DArray(BC1, extent, flags), expected, "block-compressed")
    array = jax.eval_shape(lambda: cuda.malloc3DArray(BC1, extent, flags))
    assert (array.texels.shape, array.texels.dtype) == ((*expected, 2), np.uint32)
    assert tuple(array.extent) == extent


def test_a_format_has_the_bits_of_its_kind():
    assert cuda.createChannelDesc(KIND.SignedBlockCompressed6H).bits == (16, 16, 16, 0)
    refused(lambda: cuda.mallocArray(cuda.ChannelFormatDesc(32, 8, 8, 8, BC1.f), 32, 32), 20)


def test_all_blocks_of_an_array_are_bytes_or_words():
    blocks = np.random.default_rng(0).integers(0, 256, (8, 8, 16), np.uint8)

    @jax.jit
    def copies(array, by_bytes, by_words):
        filled = cuda.memcpyToArray(array, by_bytes)
        back = cuda.memcpy2DFromArray(jnp.zeros(1024, jnp.uint8), 128, filled, 0, 0, 128, 8)
        return filled.texels, cuda.memcpyToArray(array, by_words).texels, back

    by_bytes, by_words, back = copies(cuda.mallocArray(BC7, 32, 32), blocks, blocks.view(np.uint32))
    np.testing.assert_array_equal(by_bytes, blocks.view(np.uint32))
    np.testing.assert_array_equal(by_bytes, by_words)
    np.testing.assert_array_equal(back, blocks.reshape(-1))


def test_blocks_and_words_are_not_copied_as_boxes():
    words = cuda.mallocArray(cuda.createChannelDesc("uint2"), 8, 8)
    parms = cuda.Memcpy3DParms(words, dstArray=cuda.mallocArray(BC1, 32, 32), extent=cuda.Extent(8, 8, 1))
    refused(lambda: cuda.memcpy3D(parms), 801, "expected blocks in both or in none")


def test_mip_levels_are_decoded_as_block_compressed_does():
    mipmap = jax.eval_shape(lambda: cuda.mallocMipmappedArray(BC1, (28, 20, 0), 9))
    assert [level.shape for level in mipmap.levels] == [(5, 7, 2), (3, 4, 2), (2, 2, 2), (1, 1, 2), (1, 1, 2)]
    rng = np.random.default_rng(0)
    levels = [rng.integers(0, 256, (*level.shape[:2], 8), np.uint8) for level in mipmap.levels[:2]]
    desc = cuda.TextureDesc(readMode=FRACTIONS, normalizedCoords=1)

    @jax.jit
    def decoded(levels):
        mipmap = cuda.mallocMipmappedArray(BC1, (28, 20, 0), 2)
        for k, blocks in enumerate(levels):
            mipmap = cuda.memcpyToArray(mipmap, blocks, level=k)
        t = cuda.createTextureObject(cuda.ResourceDesc.MipmappedArray(mipmap), desc)
        return t.texture.texels, jt.block_compressed(levels, "bc1", (20, 28)).texels

    np.testing.assert_array_equal(*decoded(levels))


ARRAYS = ("uint2", "int2", "float2", "ushort4", "half4", "uint1", "uint4", "int4", "float4")


@pytest.mark.parametrize("name", ARRAYS)
def test_views_of_blocks_need_words_without_a_sign(name):
    array = cuda.mallocArray(cuda.createChannelDesc(name), 8, 8)
    for number, fits in (("1", "uint2"), ("7", "uint4")):
        view = cuda.ResourceViewDesc(cuda.ResourceViewFormat[f"UnsignedBlockCompressed{number}"], 32, 32)
        resource, desc = cuda.ResourceDesc.Array(array), cuda.TextureDesc()
        create = lambda view=view: jax.eval_shape(lambda: cuda.createTextureObject(resource, desc, view))  # noqa: B023
        if name == fits:
            assert create().texture.shape == (32, 32, 4)
        else:
            refused(create, 1, f"expected an array of {fits}")


WORDS = cuda.mallocArray(cuda.createChannelDesc("uint2"), 8, 8)
VIEW = cuda.ResourceViewFormat.UnsignedBlockCompressed1


@pytest.mark.parametrize("size", [(31, 32), (28, 32), (8, 8), (36, 32), (0, 0)], ids=str)
def test_views_of_blocks_have_four_times_the_size(size):
    view = cuda.ResourceViewDesc(VIEW, *size)
    refused(
        lambda: cuda.createTextureObject(cuda.ResourceDesc.Array(WORDS), cuda.TextureDesc(), view), 1, "(32, 32, 0)"
    )


@pytest.mark.parametrize(("read", "mode", "code"), [(0, 1, 26), (1, 0, 27), (1, 1, 26)])
def test_views_of_blocks_are_read_as_their_words(read, mode, code):
    view, desc = cuda.ResourceViewDesc(VIEW, 32, 32), cuda.TextureDesc(filterMode=mode, readMode=read)
    refused(lambda: cuda.createTextureObject(cuda.ResourceDesc.Array(WORDS), desc, view), code)


@pytest.mark.parametrize("form", ["None_", "UnsignedBlockCompressed1", "UnsignedInt2"])
def test_arrays_of_blocks_have_no_views(form):
    view = cuda.ResourceViewDesc(cuda.ResourceViewFormat[form], 32, 32)
    resource, desc = cuda.ResourceDesc.Array(cuda.mallocArray(BC1, 32, 32)), cuda.TextureDesc(readMode=FRACTIONS)
    refused(lambda: cuda.createTextureObject(resource, desc, view), 1, "which has no views")


def test_plain_memory_and_rows_of_words_hold_no_blocks():
    linear = cuda.ResourceDesc.Linear(jnp.zeros(32, jnp.uint8), BC1)
    refused(lambda: cuda.createTextureObject(linear, cuda.TextureDesc(readMode=FRACTIONS)), 801, "does not model")
    row = cuda.ResourceDesc.Array(cuda.mallocArray(cuda.createChannelDesc("uint2"), 8))
    view = cuda.ResourceViewDesc(VIEW, 32)
    refused(lambda: cuda.createTextureObject(row, cuda.TextureDesc(), view), 801, "without rows")


NV12 = cuda.createChannelDesc(KIND.NV12)
VIDEO = cuda.ArrayFlags.VideoEncodeDecode
# The extent and the flags of arrays of NV12, and whether the card allocates them.
PLANAR = {
    "without the flag": ((32, 32, 0), 0, False),
    "2D": ((32, 32, 0), VIDEO, True),
    "2 by 2": ((2, 2, 0), VIDEO, True),
    "an odd width": ((31, 32, 0), VIDEO, False),
    "an odd height": ((32, 31, 0), VIDEO, False),
    "1D": ((32, 0, 0), VIDEO, False),
    "3D": ((8, 8, 4), VIDEO, False),
    "layered": ((8, 8, 4), VIDEO | 1, True),
    "1D layered": ((8, 0, 4), VIDEO | 1, False),
    "cubemap": ((8, 8, 6), VIDEO | 4, False),
    "surface": ((8, 8, 0), VIDEO | 2, True),
    "gather": ((8, 8, 0), VIDEO | 8, True),
    "attachment": ((8, 8, 0), VIDEO | 0x20, False),
    "sparse": ((512, 512, 0), VIDEO | 0x40, True),
}


@pytest.mark.parametrize("name", PLANAR)
def test_arrays_of_planes(name):
    extent, flags, allocated = PLANAR[name]
    make = lambda: cuda.malloc3DArray(NV12, extent, flags)
    if not allocated:
        return refused(make, 1, "NV12")
    width, height, depth = extent
    planes = jax.eval_shape(lambda: [cuda.arrayGetPlane(make(), k) for k in (0, 1)])
    assert [cuda.arrayGetInfo(plane) for plane in planes] == [
        (cuda.createChannelDesc("uchar"), (width, height, depth), flags),
        (cuda.createChannelDesc("uchar2"), (width // 2, height // 2, depth), flags),
    ]
    assert [plane.kind for plane in planes] == [jax.eval_shape(make).kind] * 2


def test_planes_of_a_frame():
    frame = np.random.default_rng(1).integers(0, 256, (12, 16), np.uint8)
    array = cuda.memcpyToArray(cuda.mallocArray(NV12, 16, 8, VIDEO), frame)
    luma, chroma = (cuda.arrayGetPlane(array, k) for k in (0, 1))
    np.testing.assert_array_equal(luma.texels[..., 0], frame[:8])
    np.testing.assert_array_equal(chroma.texels, frame[8:].reshape(4, 8, 2))
    t = cuda.createTextureObject(cuda.ResourceDesc.Array(chroma), cuda.TextureDesc(readMode=FRACTIONS, filterMode=1))
    np.testing.assert_array_equal(cuda.tex2D(t, 2.5, 1.5), np.float32(frame[9, 4:6]) / np.float32(255))
    replaced = cuda.memcpy2DToArray(chroma, 2, 1, jnp.full(2, 7, jnp.uint8), 2, 2, 1)
    np.testing.assert_array_equal(replaced.texels[1, 1], [7, 7])
    with pytest.warns(
        UserWarning, match="plane 1 of hArray was written by memcpy2DToArray .* use the result of the last write"
    ):
        cuda.arrayGetPlane(array, 1)


def test_the_array_of_planes_itself_is_neither_copied_nor_read():
    array, byte = cuda.mallocArray(NV12, 16, 8, VIDEO | cuda.ArrayFlags.SurfaceLoadStore), jnp.zeros(16, jnp.uint8)
    resource, words = cuda.ResourceDesc.Array(array), "from arrayGetPlane"
    refused(lambda: cuda.memcpy2DToArray(array, 0, 0, byte, 16, 16, 1), 1, words)
    refused(lambda: cuda.memcpyToArray(array, 0, 0, byte, 16), 1, words)
    parms = cuda.Memcpy3DParms(srcPtr=cuda.PitchedPtr(byte, 16, 16, 1), dstArray=array, extent=cuda.Extent(16, 1, 1))
    refused(lambda: cuda.memcpy3D(parms), 1, words)
    refused(lambda: cuda.createSurfaceObject(resource), 1, words)
    for read, linear in np.ndindex(2, 2):
        desc = cuda.TextureDesc(readMode=read, filterMode=linear)
        refused(lambda desc=desc: cuda.createTextureObject(resource, desc), 1, "planes of NV12")
    refused(lambda: cuda.arrayGetPlane(array, 2), 1, "planeIdx is 2")
    refused(lambda: cuda.arrayGetPlane(cuda.arrayGetPlane(array, 0), 0), 1, "no planes")
    refused(lambda: cuda.mallocMipmappedArray(NV12, (32, 32, 0), 3, VIDEO), 1, "no levels")
    assert len(cuda.mallocMipmappedArray(NV12, (32, 32, 0), 1, VIDEO).levels) == 1


def test_packed_texels_are_allocated_and_copied_as_words():
    packed = cuda.createChannelDesc(KIND.UnsignedNormalized1010102)
    words = jnp.arange(35, dtype=jnp.uint32).reshape(5, 7)
    for extent, flags, shape in (((7, 0, 0), 0, (7, 1)), ((7, 5, 0), 2, (5, 7, 1)), ((7, 5, 3), 1, (3, 5, 7, 1))):
        assert cuda.malloc3DArray(packed, extent, flags).texels.shape == shape
    refused(lambda: cuda.malloc3DArray(packed, (7, 5, 0), 0x20), 1, "no color attachment")
    array = cuda.memcpyToArray(cuda.mallocArray(packed, 7, 5), words)
    other = cuda.mallocArray(cuda.createChannelDesc("uint"), 7, 5)
    parms = cuda.Memcpy3DParms(array, cuda.Pos(1, 2), dstArray=other, extent=cuda.Extent(3, 2, 1))
    np.testing.assert_array_equal(cuda.memcpy3D(parms).texels[:2, :3, 0], words[2:4, 1:4])
    pitched = cuda.ResourceDesc.Pitch2D(words[:, :4], packed)
    assert cuda.createTextureObject(pitched, cuda.TextureDesc()).texture.shape == (5, 4, 4)
