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


def test_packed_texels_are_copied_as_words_and_blocks_are_not():
    packed, values = cuda.createChannelDesc(KIND.UnsignedNormalized1010102), np.arange(35, dtype=np.uint32)
    array = cuda.memcpyToArray(cuda.mallocArray(packed, 7, 5), values.reshape(5, 7))
    words, other = (cuda.mallocArray(cuda.createChannelDesc(name), 8, 8) for name in ("uint2", "uint"))
    parms = cuda.Memcpy3DParms(array, cuda.Pos(1, 2), dstArray=other, extent=cuda.Extent(3, 2, 1))
    np.testing.assert_array_equal(cuda.memcpy3D(parms).texels[:2, :3, 0], [[15, 16, 17], [22, 23, 24]])
    pitched = cuda.ResourceDesc.Pitch2D(values.reshape(5, 7), packed)
    assert cuda.createTextureObject(pitched, cuda.TextureDesc()).texture.shape == (5, 7, 4)
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


VIEW = cuda.ResourceViewFormat.UnsignedBlockCompressed1


def test_views_of_blocks():
    """What is refused with which code beside random views, tests/fuzz/blocks.py."""
    names = "uint2", "uint4", "int2", "float2", "ushort4"
    words, *others = (cuda.mallocArray(cuda.createChannelDesc(name), 8, 8) for name in names)
    row, blocks = cuda.mallocArray(cuda.createChannelDesc("uint2"), 8), cuda.mallocArray(BC1, 32, 32)
    bc7 = cuda.ResourceViewFormat.UnsignedBlockCompressed7
    for array, form, width, height, code, said in (
        *((other, VIEW, 32, 32, 1, "expected an array of uint2") for other in others),
        (words, bc7, 32, 32, 1, "expected an array of uint4"),
        (words, VIEW, 28, 32, 1, "(32, 32, 0)"),
        (row, VIEW, 32, 0, 801, "without rows"),
        *((blocks, form, 32, 32, 1, "which has no views") for form in (0, VIEW, cuda.ResourceViewFormat.UnsignedInt2)),
    ):
        view = cuda.ResourceViewDesc(form, width, height)
        desc = cuda.TextureDesc(readMode=FRACTIONS if array is blocks else 0)
        resource = cuda.ResourceDesc.Array(array)
        refused(lambda: cuda.createTextureObject(resource, desc, view), code, said)  # noqa: B023, called at once
    for read, mode, code in ((0, 1, 26), (1, 0, 27), (1, 1, 26)):  # as their words
        desc, view = cuda.TextureDesc(readMode=read, filterMode=mode), cuda.ResourceViewDesc(VIEW, 32, 32)
        refused(lambda: cuda.createTextureObject(cuda.ResourceDesc.Array(words), desc, view), code)  # noqa: B023
    linear = cuda.ResourceDesc.Linear(jnp.zeros(32, jnp.uint8), BC1)
    refused(lambda: cuda.createTextureObject(linear, cuda.TextureDesc(readMode=FRACTIONS)), 801, "does not model")
    refused(lambda: cuda.malloc3DArray(BC1, (32, 32, 0), 2), 801, "block-compressed")


NV12 = cuda.createChannelDesc(KIND.NV12)
VIDEO = cuda.ArrayFlags.VideoEncodeDecode


def test_arrays_of_planes():
    for extent, flags in (((32, 32, 0), VIDEO), ((8, 8, 4), VIDEO | 1)):
        (width, height, depth), make = extent, lambda: cuda.malloc3DArray(NV12, extent, flags)  # noqa: B023
        planes = jax.eval_shape(lambda: [cuda.arrayGetPlane(make(), k) for k in (0, 1)])  # noqa: B023
        assert [cuda.arrayGetInfo(plane) for plane in planes] == [
            (cuda.createChannelDesc("uchar"), (width, height, depth), flags),
            (cuda.createChannelDesc("uchar2"), (width // 2, height // 2, depth), flags),
        ]
        assert [plane.kind for plane in planes] == [jax.eval_shape(make).kind] * 2
    refused(lambda: cuda.malloc3DArray(NV12, (31, 32, 0), VIDEO), 1, "NV12")


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
