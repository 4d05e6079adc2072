"""What is easily got wrong about CUDA's textures and surfaces, one test each, with the values of real hardware."""

import inspect

import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import cuda
from jaxtex.cuda import (
    AddressMode,
    ArrayFlags,
    CudaError,
    FilterMode,
    ReadMode,
    ResourceDesc,
    SurfaceBoundaryMode,
    TextureDesc,
)
from tests.support.tolerances import assert_exact

CLAMP, WRAP, MIRROR, BORDER = AddressMode.Clamp, AddressMode.Wrap, AddressMode.Mirror, AddressMode.Border
LINEAR = {"filterMode": FilterMode.Linear}
NORMALIZED = {"normalizedCoords": 1}
FRACTIONS = {"readMode": ReadMode.NormalizedFloat}
TENS = np.array([[10], [20], [30], [40]], np.float32)
COUNT = np.arange(4, dtype=np.float32)[:, None]
NAMES = {"float32": "float", "float16": "half", "uint8": "uchar", "int8": "char", "uint16": "ushort", "int32": "int"}


def allocate(texels, flags=0):
    """An array over texels with channels last, of the shape that their axes and the flags say."""
    texels = np.asarray(texels)
    *sizes, channels = texels.shape
    rows_in_layers = flags & ArrayFlags.Layered and len(sizes) == 2
    extent = (sizes[1], 0, sizes[0]) if rows_in_layers else (*reversed(sizes), 0, 0)[:3]
    desc = cuda.createChannelDesc(f"{NAMES[texels.dtype.name]}{channels}")
    return cuda.memcpyToArray(cuda.malloc3DArray(desc, extent, flags), texels)


def texture(texels, flags=0, arithmetic="hardware", **desc):
    return cuda.createTextureObject(
        ResourceDesc.Array(allocate(texels, flags)), TextureDesc(**desc), arithmetic=arithmetic
    )


def mipmapped(levels, **desc):
    """A 1D texture whose level l is `levels[l]`."""
    mipmap = cuda.mallocMipmappedArray(cuda.createChannelDesc("float"), (len(levels[0]), 0, 0), len(levels))
    for level, texels in enumerate(levels):
        mipmap = cuda.memcpyToArray(mipmap, np.asarray(texels, np.float32), level=level)
    return cuda.createTextureObject(ResourceDesc.MipmappedArray(mipmap), TextureDesc(normalizedCoords=1, **desc))


def numbers(*values):
    return np.array(values, np.float32)


def refused(create):
    with pytest.raises(CudaError) as caught:
        create()
    return caught.value.code


def test_trap_01_texel_centers_are_at_one_half():
    t = texture(TENS, addressMode=CLAMP, **LINEAR)
    assert_exact(cuda.tex1D(t, numbers(2.0, 2.5)), [25, 30], np.float32)


def test_trap_02_a_point_filter_floors():
    t = texture(TENS, addressMode=CLAMP)
    assert_exact(cuda.tex1D(t, numbers(1.999, -0.001)), [20, 10], np.float32)
    assert_exact(cuda.tex1D(texture(TENS, addressMode=BORDER), numbers(1.999, -0.001)), [20, 0], np.float32)


def test_trap_03_fractions_are_rounded_to_8_bits():
    t = texture(numbers(1, 2)[:, None], addressMode=CLAMP, **LINEAR, **NORMALIZED)
    assert_exact(cuda.tex1D(t, np.float32(0.3)), np.float32(1.1015625), np.float32)


def test_trap_04_a_rounded_fraction_carries():
    t = texture(TENS, addressMode=CLAMP, **LINEAR)
    assert_exact(cuda.tex1D(t, numbers(2.49805, 2.4960)), [30, 29.9609375], np.float32)


def test_trap_05_taps_are_addressed_one_by_one():
    t = texture(TENS, **LINEAR, **NORMALIZED)
    assert_exact(cuda.tex1D(t, numbers(0, 1 / 16)), [25, 17.5], np.float32)


def test_trap_06_the_border_is_decided_per_texel():
    t = texture(TENS, addressMode=(BORDER, CLAMP, CLAMP), **LINEAR)
    assert_exact(cuda.tex1D(t, numbers(0, 4, 4.25, 4.5)), [5, 20, 10, 0], np.float32)


def test_trap_07_mirror_repeats_the_edge():
    t = texture(TENS, addressMode=MIRROR, **LINEAR, **NORMALIZED)
    assert_exact(cuda.tex1D(t, numbers(0, -0.125, -0.25, 1.25)), [10, 10, 15, 35], np.float32)


def test_trap_08_mirror_at_exact_texel_edges():
    t = texture(COUNT, addressMode=MIRROR, **NORMALIZED)
    assert_exact(cuda.tex1D(t, np.float32(-0.25)), np.float32(0), np.float32)


def test_trap_09_a_wrapped_coordinate_just_below_zero():
    t = texture(TENS, **NORMALIZED)
    assert_exact(cuda.tex1D(t, np.float32(-1e-10)), np.float32(40), np.float32)


@pytest.mark.parametrize("mode", [WRAP, MIRROR])
def test_trap_10_pixel_coordinates_do_not_repeat(mode):
    t = texture(COUNT, addressMode=mode)
    assert_exact(cuda.tex1D(t, numbers(5, -3)), [3, 0], np.float32)


def test_trap_11_a_zeroed_descriptor_wraps():
    t = texture(TENS, **NORMALIZED)
    assert_exact(cuda.tex1D(t, np.float32(1.1)), np.float32(10), np.float32)


def test_trap_12_a_zeroed_clamp_pins_the_level():
    levels = ([0] * 8, [1] * 4, [2] * 2, [3])
    assert_exact(cuda.tex1DLod(mipmapped(levels), np.float32(0.5), np.float32(3)), np.float32(0), np.float32)


def test_trap_13_a_fetch_outside_is_zero():
    resource = ResourceDesc.Linear(jnp.array([7.0, 8.0, 9.0]))
    t = cuda.createTextureObject(resource, TextureDesc(addressMode=CLAMP))
    assert_exact(cuda.tex1Dfetch(t, np.array([-1, 0, 2, 3])), [0, 7, 9, 0], np.float32)


def test_trap_14_any_layer_out_of_range_is_the_last():
    t = texture(numbers(100, 101, 102)[:, None, None], ArrayFlags.Layered)
    assert_exact(cuda.tex1DLayered(t, 0.5, np.array([-1, 0, 2, 99])), [102, 100, 102, 102], np.float32)


def test_trap_15_fractions_of_codes():
    t = texture(np.array([[128], [255]], np.uint8), **FRACTIONS)
    assert_exact(cuda.tex1D(t, numbers(0, 1)), [np.float32(128) / np.float32(255), 1], np.float32)
    t = texture(np.array([[-128], [-127]], np.int8), **FRACTIONS)
    assert_exact(cuda.tex1D(t, numbers(0, 1)), [-1, -1], np.float32)


def test_trap_16_blends_of_16_bit_codes_are_codes():
    texels = np.array([[11], [12]], np.uint16)
    for arithmetic, code in (("hardware", 12.0), ("float", 11.5)):
        t = texture(texels, addressMode=CLAMP, arithmetic=arithmetic, **LINEAR, **FRACTIONS)
        assert round(float(cuda.tex1D(t, np.float32(1))) * 65535, 3) == code


def test_trap_17_bytes_are_blended_in_16_bits():
    texels = np.array([[0], [255]], np.uint8)
    for arithmetic, value in (("hardware", 0.50000763), ("float", 0.5)):
        t = texture(texels, addressMode=CLAMP, arithmetic=arithmetic, **LINEAR, **FRACTIONS)
        assert_exact(cuda.tex1D(t, np.float32(1)), np.float32(value), np.float32)


def test_trap_18_words_are_neither_fractions_nor_blended():
    words = np.zeros((4, 1), np.int32)
    assert refused(lambda: texture(words, **FRACTIONS)) == 27
    assert refused(lambda: texture(words, **LINEAR)) == 26
    assert refused(lambda: texture(words, **FRACTIONS, **LINEAR)) == 26


def test_trap_19_bytes_as_elements_are_not_blended():
    assert refused(lambda: texture(np.zeros((4, 1), np.uint8), **LINEAR)) == 26
    linear = ResourceDesc.Linear(np.zeros(4, np.uint8))
    assert refused(lambda: cuda.createTextureObject(linear, TextureDesc(**LINEAR))) == 26


def test_trap_20_absent_channels_are_zero():
    t = texture(np.full((2, 1), 5, np.float32))
    assert_exact(cuda.tex1D(t, 0.5, T="float4"), [5, 0, 0, 0], np.float32)


def test_trap_21_an_integer_border_is_made_of_bits():
    t = texture(np.zeros((4, 1), np.int32), addressMode=BORDER, borderColor=(1.0, 0.0, 0.0, 0.0))
    assert_exact(cuda.tex1D(t, np.float32(-1)), 0x3F800000, np.int32)
    color = np.array([5, 0, 0, 0], np.int32).view(np.float32)
    t = texture(np.zeros((4, 1), np.int32), addressMode=BORDER, borderColor=color)
    assert_exact(cuda.tex1D(t, np.float32(-1)), 5, np.int32)


def test_trap_22_the_border_has_the_bits_of_the_format():
    t = texture(np.zeros((4, 1), np.uint8), addressMode=BORDER, borderColor=(0.5,) * 4, **FRACTIONS)
    assert_exact(cuda.tex1D(t, np.float32(-1)), np.float32(127) / np.float32(255), np.float32)


def test_trap_23_srgb_leaves_alpha():
    t = texture(np.full((1, 4), 128, np.uint8), sRGB=1, **FRACTIONS)
    assert_exact(cuda.tex1D(t, np.float32(0)), numbers(*[14144 / 65536] * 3, 0.5019608), np.float32)


def test_trap_24_x_is_the_last_axis():
    t = texture(np.array([[[0], [1]], [[2], [3]]], np.float32))
    assert_exact(cuda.tex2D(t, 1.5, 0.5), np.float32(1), np.float32)
    t = texture(np.arange(8, dtype=np.float32).reshape(2, 2, 2, 1))
    assert_exact(cuda.tex3D(t, 0.5, 0.5, 1.5), np.float32(4), np.float32)


GRID = (10 * np.arange(3)[:, None, None] + np.arange(3)[:, None]).astype(np.float32)


def test_trap_25_a_gather_goes_counter_clockwise():
    t = texture(GRID, ArrayFlags.TextureGather)
    assert_exact(cuda.tex2Dgather(t, np.float32(1), np.float32(1)), [10, 11, 1, 0], np.float32)


def test_trap_26_a_gather_rounds_as_a_blend_does():
    t = texture(GRID, ArrayFlags.TextureGather)
    assert_exact(cuda.tex2Dgather(t, np.float32(1.49805), np.float32(1)), [11, 12, 2, 1], np.float32)


def faces(n=8):
    """A cubemap whose texel (i, j) of face f holds 100 f + 10 j + i."""
    f, j, i = np.indices((6, n, n))
    return (100 * f + 10 * j + i).astype(np.float32)[..., None]


def test_trap_27_ties_go_to_z_then_y():
    t = texture(faces(), ArrayFlags.Cubemap)
    x, y, z = numbers(1, 1), numbers(1, 1), numbers(1, 0)
    assert list(np.asarray(cuda.texCubemap(t, x, y, z)) // 100) == [4, 2]


def test_trap_28_signs_of_a_face():
    t = texture(faces(), ArrayFlags.Cubemap)
    x, y, z = numbers(1, 0.5), numbers(0.5, -1), numbers(-0.25, -0.25)
    # (u, v) is (0.625, 0.25) on face 0 and (0.75, 0.625) on face 3.
    assert_exact(cuda.texCubemap(t, x, y, z), [25, 356], np.float32)


def test_trap_29_without_seams_a_face_wraps_onto_itself():
    texels = np.broadcast_to(TENS, (6, 4, 4, 1)) + 1000 * np.arange(6, dtype=np.float32)[:, None, None, None]
    direction = numbers(1, 0, 1)  # the right edge of face 4
    for mode, value in ((WRAP, 4025), (CLAMP, 4040)):
        t = texture(texels, ArrayFlags.Cubemap, addressMode=mode, **LINEAR)
        assert_exact(cuda.texCubemap(t, *direction), np.float32(value), np.float32)


def test_trap_30_levels_and_their_rounding():
    mipmap = cuda.mallocMipmappedArray(cuda.createChannelDesc("float"), (5, 0, 0), 99)
    assert [len(level) for level in mipmap.levels] == [5, 2, 1]
    t = mipmapped(([0] * 5, [1] * 2, [2]), maxMipmapLevelClamp=99.0)
    assert_exact(cuda.tex1DLod(t, 0.5, numbers(0.5, 0.4999, -3, 99)), [1, 0, 0, 2], np.float32)


def test_trap_31_level_and_bias_are_cut_before_they_are_added():
    t = mipmapped(
        ([0] * 5, [1] * 2, [2]), maxMipmapLevelClamp=9.0, mipmapLevelBias=0.3, mipmapFilterMode=FilterMode.Linear
    )
    assert_exact(cuda.tex1DLod(t, np.float32(0.5), np.float32(0.999)), np.float32(1.29296875), np.float32)


def test_trap_32_coordinates_are_scaled_by_each_level():
    t = mipmapped((np.arange(8), np.arange(4), np.arange(2), [0]), maxMipmapLevelClamp=9.0)
    assert_exact(cuda.tex1DLod(t, np.float32(0.25), numbers(0, 1)), [2, 1], np.float32)


def surface(desc, width, height=0, texels=None):
    array = cuda.mallocArray(cuda.createChannelDesc(desc), width, height, ArrayFlags.SurfaceLoadStore)
    return array if texels is None else cuda.memcpyToArray(array, texels)


def test_trap_33_a_surface_counts_bytes():
    s = surface("float", 4, texels=TENS)
    assert_exact(cuda.surf1Dread(s, 12), np.float32(40))
    assert refused(lambda: cuda.surf1Dread(s, 3)) == 716
    h = np.arange(8 * 2 * 4, dtype=np.uint8).reshape(2, 8, 4)
    source, target = surface("uchar4", 8, 2, h), surface("uchar4", 8, 2)
    x, y = np.arange(8)[None], np.arange(2)[:, None]
    copied = cuda.surf2Dwrite(cuda.surf2Dread(source, 4 * x, y), target, 4 * x, y)
    assert_exact(copied.texels, h)


def test_trap_34_a_clamped_access_moves_to_where_all_of_it_fits():
    s = surface("float", 6, texels=np.arange(6, dtype=np.float32))
    assert_exact(cuda.surf1Dread(s, 400, SurfaceBoundaryMode.Clamp), np.float32(5))
    assert_exact(cuda.surf1Dread(s, 16, SurfaceBoundaryMode.Clamp, T="float4"), np.arange(4), np.float32)
    assert_exact(cuda.surf1Dread(s, 16, SurfaceBoundaryMode.Zero, T="float4"), np.zeros(4), np.float32)
    written = cuda.surf1Dwrite(np.float32(9), s, -4, SurfaceBoundaryMode.Clamp)
    assert_exact(written.texels[:, 0], [9, 1, 2, 3, 4, 5], np.float32)


def test_trap_35_a_negative_index_is_no_index_from_the_end():
    s = surface("float", 4, texels=TENS)
    for mode in (SurfaceBoundaryMode.Zero, SurfaceBoundaryMode.Trap):
        assert_exact(cuda.surf1Dwrite(np.float32(9), s, -4, mode).texels, TENS)
    core = jt.surface_write(jt.texture1d(TENS), 9.0, (-1,), boundary_mode="zero")
    assert_exact(core.texels, TENS)


def test_trap_36_a_rotation_by_nothing_is_no_identity():
    texels = np.arange(16, dtype=np.float32).reshape(4, 4, 1)
    t = texture(texels, **LINEAR, **NORMALIZED)
    u = np.arange(4, dtype=np.float32) / 4
    v = np.full(4, 1 / 4, np.float32)
    assert_exact(cuda.tex2D(t, u, v), [3.5, 2.5, 3.5, 4.5], np.float32)
    assert_exact(cuda.tex2D(t, u + np.float32(0.125), v + np.float32(0.125)), texels[1, :, 0], np.float32)


def test_trap_37_halves_are_read_as_floats():
    texels = np.array([[1], [1 + 2**-10]], np.float16)
    for arithmetic, value in (("hardware", 1 + 2**-10), ("float", 1 + 2**-11)):
        t = texture(texels, addressMode=CLAMP, arithmetic=arithmetic, **LINEAR)
        assert_exact(cuda.tex1D(t, np.float32(1), T="float"), np.float32(value), np.float32)


def test_trap_38_a_second_border_dims_a_row():
    x = numbers(0, 0.25, 4, 2)
    assert_exact(cuda.tex1D(texture(TENS, addressMode=BORDER, **LINEAR), x), [2.5, 3.75, 10, 12.5], np.float32)
    t = texture(TENS, addressMode=(BORDER, CLAMP, CLAMP), **LINEAR)
    assert_exact(cuda.tex1D(t, x), [5, 7.5, 20, 25], np.float32)


def test_trap_39_coordinates_are_floats():
    texels = np.zeros((131072, 1), np.float32)
    texels[-1] = 256
    t = texture(texels, addressMode=CLAMP, **LINEAR)
    x = np.float32(131071)
    # The next float32 is 1/128 away: every other weight is out of reach.
    assert_exact(cuda.tex1D(t, numbers(x, np.nextafter(x, np.float32(np.inf)))), [128, 130], np.float32)


def test_trap_40_a_height_of_one_makes_two_dimensions():
    desc = cuda.createChannelDesc("float")
    row, line = cuda.mallocArray(desc, 4, 1), cuda.mallocArray(desc, 4)
    assert (row.kind.value, line.kind.value) == ("2d", "1d")
    assert (row.texels.shape, line.texels.shape) == ((1, 4, 1), (4, 1))
    assert refused(lambda: cuda.tex2D(cuda.createTextureObject(ResourceDesc.Array(line), TextureDesc()), 0.5, 0.5)) == 1
    # Widths and offsets of memcpy2D are bytes; those of memcpy3D are elements where an array takes part.
    source = np.arange(1, 5, dtype=np.float32)
    assert_exact(cuda.memcpy2DToArray(row, 4, 0, source, 8, 8, 1).texels[0, :, 0], [0, 1, 2, 0], np.float32)
    parms = cuda.Memcpy3DParms(
        srcPtr=cuda.PitchedPtr(source, 16, 4, 1), dstArray=row, dstPos=cuda.Pos(1), extent=cuda.Extent(2, 1, 1)
    )
    copied = cuda.memcpy3D(parms)
    assert isinstance(copied, cuda.Array)
    assert_exact(copied.texels[0, :, 0], [0, 1, 2, 0], np.float32)


def test_trap_41_a_sparse_array_holds_zeros():
    t = texture(np.zeros((2, 2, 1), np.float32), ArrayFlags.Sparse)
    assert_exact(cuda.tex2D(t, 0.5, 0.5), np.float32(0), np.float32)
    assert list(inspect.signature(cuda.tex2Dgather).parameters) == ["texObject", "x", "y", "comp", "T"]


def test_trap_42_weights_are_split_into_integers():
    texels = np.zeros((2, 2, 1), np.float32)
    texels[1, 1] = 65536
    x = np.float32(0.5 + 1 / 256)
    for arithmetic, value in (("hardware", 0), ("float", 1)):
        t = texture(texels, addressMode=CLAMP, arithmetic=arithmetic, **LINEAR)
        assert_exact(cuda.tex2D(t, x, x), np.float32(value), np.float32)
