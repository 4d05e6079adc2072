"""`jaxtex.cuda`: what is refused and with which code, and that what is read is the core's read."""

import dataclasses
import functools
import itertools
import pickle
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import cuda
from jaxtex.cuda import AddressMode, ArrayFlags, ResourceDesc, ResourceViewDesc, TextureDesc, TextureReference
from tests.fuzz.descriptors import compare
from tests.oracles import descriptors as oracle
from tests.support.tolerances import assert_exact

FLOAT = cuda.createChannelDesc("float")
LINEAR = {"filterMode": cuda.FilterMode.Linear}
FRACTIONS = {"readMode": cuda.ReadMode.NormalizedFloat}
LAYERED, CUBEMAP, GATHER = ArrayFlags.Layered, ArrayFlags.Cubemap, ArrayFlags.TextureGather
STORE = ArrayFlags.SurfaceLoadStore


def refused(create, code, *words):
    """`create` raises a `CudaError` with that code and a sentence that holds those words."""
    with pytest.raises(cuda.CudaError) as caught:
        create()
    assert caught.value.code == code, caught.value
    for word in words:
        assert word in str(caught.value)


def traced(test):
    """Runs a test as one trace, in which arrays cost little and are never made."""
    return lambda: jax.eval_shape(test) and None


def compiled(*given):
    """Runs a test of some arrays as one program, which returns pairs of results and what they must be."""

    def run(test):
        for found, expected in jax.jit(test)(*given):
            assert_exact(found, expected, expected.dtype)

    return lambda test: lambda: run(test)


def image(texels, flags=0, arithmetic="float", **desc):
    """A texture object over a 2D array of floats."""
    texels = np.asarray(texels, np.float32)
    array = cuda.memcpyToArray(cuda.mallocArray(FLOAT, texels.shape[1], texels.shape[0], flags), texels)
    return cuda.createTextureObject(ResourceDesc.Array(array), TextureDesc(**desc), arithmetic=arithmetic)


# ---------------------------------------------------------------------------------------------------- formats


# Of others random accesses look at the bytes, tests/fuzz/cuda.py.
VALID_FORMATS = {
    "signed char": (8, 0, 0, 0, 0),
    "unsigned char": (8, 0, 0, 0, 1),
    "short1": (16, 0, 0, 0, 0),
    "unsigned int": (32, 0, 0, 0, 1),
    "int4": (32, 32, 32, 32, 0),
    "half2": (16, 16, 0, 0, 2),
    "float": (32, 0, 0, 0, 2),
}


def test_type_names_describe_channels():
    for name, (*bits, kind) in VALID_FORMATS.items():
        desc = cuda.createChannelDesc(name)
        assert (desc.bits, desc.f) == (tuple(bits), kind)
        assert desc == cuda.createChannelDesc(*bits, kind)
        assert jax.eval_shape(lambda: cuda.mallocArray(desc, 2)).texels.shape == (2, desc.channels)  # noqa: B023


@traced
def test_formats_and_types_that_cuda_does_not_have():
    for name in ("float3", "double", "longlong2"):
        desc = cuda.createChannelDesc(name)
        assert (desc.bits, desc.f) == ((0, 0, 0, 0), cuda.ChannelFormatKind.None_)
        refused(lambda: cuda.mallocArray(desc, 4), 20, "three channels")  # noqa: B023, called at once


KINDS = {kind: cuda.createChannelDesc(kind) for kind in cuda.ChannelFormatKind if kind.value >= 4}


def test_kinds_have_the_numbers_of_cuda():
    assert [kind.value for kind in cuda.ChannelFormatKind] == list(range(32))
    assert [form.value for form in cuda.ResourceViewFormat] == list(range(0x23))
    assert all([desc.bits] == oracle.channel_bits(kind) for kind, desc in KINDS.items())
    for enum, names in (
        (AddressMode, "Wrap Clamp Mirror Border"),
        (cuda.FilterMode, "Point Linear"),
        (cuda.ReadMode, "ElementType NormalizedFloat"),
        (cuda.ResourceType, "Array MipmappedArray Linear Pitch2D"),
    ):
        assert [(member.name, member.value) for member in enum] == list(zip(names.split(), itertools.count()))
    assert cuda.ChannelFormatKind.UnsignedBlockCompressed7SRGB == 30
    assert cuda.ResourceViewFormat.Float4 == 0x18
    flags = {"SurfaceLoadStore": 2, "Cubemap": 4, "TextureGather": 8, "ColorAttachment": 0x20, "Sparse": 0x40}
    assert {flag.name: flag.value for flag in ArrayFlags} == {
        "Layered": 1,
        **flags,
        "DeferredMapping": 0x80,
        "VideoEncodeDecode": 0x100,
    }


# ---------------------------------------------------------------------------------------------------- arrays


WIDTHS = {(n,) * k + (0,) * (4 - k) for n in (0, 8, 10, 16, 32, 64) for k in (1, 2, 3, 4)}
WIDTHS |= {(0, 8, 0, 0), (8, 0, 8, 0), (8, 16, 0, 0), (-8, 0, 0, 0), (32, 8, 8, 8)}
WIDTHS |= {bits for kind in range(32) for bits in oracle.channel_bits(kind)}


@traced
def test_formats_and_how_they_are_read():
    """Bits of all kinds: what is allocated, and by which modes it is read, as the documentation of the runtime says."""
    for bits, kind in itertools.product(sorted(WIDTHS), range(32)):
        desc, flags = cuda.ChannelFormatDesc(*bits, kind), oracle.VIDEO if kind == oracle.NV12 else 0
        faults = oracle.faults_of_allocation(bits, kind, (4, 4, 0), flags)
        array = compare(lambda: cuda.mallocArray(desc, 4, 4, flags), faults, f"{bits} of {kind}")  # noqa: B023
        for read, linear, srgb in itertools.product((0, 1), repeat=3) if array else ():
            modes = TextureDesc(readMode=read, filterMode=linear, sRGB=srgb)
            create = lambda: cuda.createTextureObject(ResourceDesc.Array(array), modes)  # noqa: B023
            faults = oracle.faults_of_read(bits, kind, read, linear, srgb=srgb)
            found = compare(create, faults, f"{bits} of {kind}, {modes}")
            assert found is None or found.desc == desc


HELD = {
    "float": ((32, 0, 0, 0), 2),
    "bc1": ((8, 8, 8, 8), 17),
    "planes": ((8, 8, 8, 0), 4),
    "packed": ((10, 10, 10, 2), 31),
}
EXTENTS = [(4, 0, 0), (32, 30, 0), (31, 1, 0), (1, 1, 0), (6, 4, 5), (5, 0, 3), (8, 8, 6), (4, 4, 12), (4, 4, 8)]
EXTENTS += [(4, 3, 6), (0, 0, 0), (4, -1, 0), (4, 0, 2)]
SHAPES = (0, oracle.LAYERED, oracle.CUBEMAP, oracle.LAYERED | oracle.CUBEMAP)
USES = (0, oracle.SURFACE, oracle.GATHER, oracle.COLOR, oracle.SPARSE)
USES += (0x10, *(oracle.VIDEO | use for use in USES))


@traced
def test_extents_and_flags():
    """Of formats of each storage: the shapes of arrays and of their levels, which halve while layers stay."""
    for name, extent, shape, use in itertools.product(HELD, EXTENTS, SHAPES, USES):
        (bits, kind), flags = HELD[name], shape | use
        desc, text = cuda.ChannelFormatDesc(*bits, kind), f"{name} {extent} {flags:#x}"
        faults = [oracle.faults_of_allocation(bits, kind, extent, flags, levels=levels) for levels in (1, 3)]
        array = compare(lambda: cuda.malloc3DArray(desc, extent, flags), faults[0], text)  # noqa: B023
        mipmap = compare(lambda: cuda.mallocMipmappedArray(desc, extent, 3, flags), faults[1], text)  # noqa: B023
        if array:
            assert array.texels.shape == oracle.stored_shape(bits, kind, extent), text
            assert array.kind.value == oracle.kind_of(extent, flags).replace(" ", "_"), text
            assert (array.extent, array.flags, array.desc) == (extent, flags, desc), text
        if mipmap:
            sizes = oracle.level_sizes(extent, flags, 3)
            assert [level.shape for level in mipmap.levels] == [oracle.stored_shape(bits, kind, n) for n in sizes], text


def test_levels_are_arrays():
    mipmap = jax.eval_shape(lambda: cuda.mallocMipmappedArray(FLOAT, (4, 2, 9), 99, LAYERED))
    level_of = lambda level: jax.eval_shape(lambda mipmap: cuda.getMipmappedArrayLevel(mipmap, level), mipmap)
    for level, shape in enumerate([(9, 2, 4, 1), (9, 1, 2, 1), (9, 1, 1, 1)]):
        array = level_of(level)
        assert (array.texels.shape, array.kind, array.flags) == (shape, mipmap.kind, mipmap.flags)
    assert len(jax.eval_shape(lambda: cuda.mallocMipmappedArray(FLOAT, (4, 4, 0), 0)).levels) == 1
    assert jax.eval_shape(lambda: cuda.malloc3DArray(FLOAT, np.array([4, 2, 0]))).extent == (4, 2, 0)


# What cards answer, by compute capability.
LIMITS = {
    "maxTexture1D": {3.0: 65536, 5.2: 65536, 6.0: 131072, 9.0: 131072, 12.1: 131072},
    "maxTexture2D": {3.0: (65536, 65535), 3.5: (65536, 65536), 5.2: (65536, 65536), 9.0: (131072, 65536)},
    "maxTexture2DGather": {5.2: (16384, 16384), 9.0: (32768, 32768)},
    "maxTexture3D": {2.1: (2048,) * 3, 3.0: (4096,) * 3, 5.2: (4096,) * 3, 9.0: (16384,) * 3},
    "maxTextureCubemap": {5.2: 16384, 9.0: 32768},
    "maxTexture1DLayered": {5.2: (16384, 2048), 9.0: (32768, 2048)},
    "maxTexture2DLayered": {2.0: (16384, 16384, 2048), 5.2: (16384, 16384, 2048), 9.0: (32768, 32768, 2048)},
    "maxTextureCubemapLayered": {5.2: (16384, 2046), 9.0: (32768, 2046)},
    "maxSurface1D": {3.5: 65536, 5.2: 16384, 9.0: 32768},
    "maxSurface2D": {3.5: (65536, 32768), 5.2: (65536, 65536), 9.0: (131072, 65536)},
    "maxSurface3D": {5.2: (4096,) * 3, 9.0: (16384,) * 3},
    "maxSurface1DLayered": {5.2: (16384, 2048), 9.0: (32768, 2048)},
    "maxSurface2DLayered": {5.2: (16384, 16384, 2048), 9.0: (32768, 32768, 2048)},
    "maxSurfaceCubemap": {5.2: 16384, 9.0: 32768},
    "maxSurfaceCubemapLayered": {5.2: (16384, 2046), 9.0: (32768, 2046)},
}
WITHOUT_CALLS = {"maxTexture2DLinear": (131072, 65000), "textureAlignment": 512, "texturePitchAlignment": 32}
WITHOUT_CALLS |= {"major": 9, "minor": 0}


def extents_of(name, sizes):
    """The largest extent, those that are larger by one size, and the flags."""
    shape, sizes = name.removeprefix("maxTexture").removeprefix("maxSurface"), list(np.atleast_1d(sizes))
    flags = LAYERED * ("Layered" in shape) | CUBEMAP * ("Cubemap" in shape) | GATHER * ("Gather" in shape)
    if "Cubemap" in shape:
        (n, faces) = sizes if len(sizes) > 1 else (*sizes, 6)
        return (n, n, 6), [(n + 1, n + 1, 6), *[(1, 1, faces + 6)] * (flags & LAYERED)], flags
    largest = [sizes[0], 0, sizes[1]] if shape == "1DLayered" else [*sizes, 0, 0][:3]
    more = lambda axis: tuple(n + (k == axis) for k, n in enumerate(largest))
    return tuple(largest), [more(axis) for axis, n in enumerate(largest) if n], flags


@traced
def test_sizes_are_limited_as_on_cards():
    for name, cards in LIMITS.items():
        for capability, sizes in cards.items():
            assert getattr(cuda.getDeviceProperties(compute_capability=capability), name) == sizes
            largest, larger, flags = extents_of(name, sizes)

            def make(extent, flags=flags, capability=capability, is_surface="Surface" in name):
                if not is_surface:
                    return cuda.malloc3DArray(FLOAT, extent, flags, compute_capability=capability)
                array = cuda.malloc3DArray(FLOAT, extent, flags | STORE, compute_capability=12.1)
                return cuda.createSurfaceObject(ResourceDesc.Array(array), compute_capability=capability)

            make(largest)
            newest = oracle.TEXTURE_LIMITS[oracle.kind_of(largest, flags)]
            for extent in larger:
                if "Texture" in name or not oracle.exceeds(extent, newest):  # else no array is so large
                    refused(lambda: make(extent), 1, str(capability))  # noqa: B023, called at once
    card = cuda.getDeviceProperties(0, compute_capability=9.0)
    assert {name: getattr(card, name) for name in WITHOUT_CALLS} == WITHOUT_CALLS
    assert card.maxTexture1DLinear == cuda.deviceGetTexture1DLinearMaxWidth(FLOAT, 0, compute_capability=9.0)


LINEAR_LIMITS = {5.0: 27, 6.0: 28, 6.1: 27, 6.2: 27, 7.0: 28, 7.2: 27, 7.5: 28, 9.0: 28}


def test_plain_memory_has_the_size_limits_of_the_card():
    for capability, power in LINEAR_LIMITS.items():
        make = lambda resource, *shape: jax.eval_shape(
            lambda m: cuda.createTextureObject(resource(m), TextureDesc(), compute_capability=capability),  # noqa: B023
            jax.ShapeDtypeStruct(shape, jnp.uint8),
        )
        assert make(ResourceDesc.Linear, 2**power).texture.shape == (2**power, 1)
        refused(lambda: make(ResourceDesc.Linear, 2**power + 1), 1, "maxTexture1DLinear")  # noqa: B023
        refused(lambda: make(ResourceDesc.Pitch2D, 65537, 1), 1, "maxTexture2DLinear")  # noqa: B023


SIX = np.arange(6, dtype=np.float32).reshape(2, 3)


@compiled(SIX)
def test_copies_return_what_they_wrote(values):
    array, mipmap = cuda.mallocArray(FLOAT, 3, 2), cuda.mallocMipmappedArray(FLOAT, (4, 0, 0), 3)
    written, of_level = cuda.memcpyToArray(array, values), cuda.memcpyToArray(mipmap, values[0, 1:], level=1)
    assert jax.tree.map(lambda _: None, written).texels is None
    levels = zip(range(3), (np.zeros((4, 1), np.float32), SIX[0, 1:, None], np.zeros((1, 1), np.float32)))
    return (
        (cuda.memcpyFromArray(written), SIX[..., None]),
        (cuda.memcpyFromArray(array), 0 * SIX[..., None]),
        (cuda.memcpyToArray(array, values[..., None]).texels, SIX[..., None]),
        *((cuda.memcpyFromArray(of_level, level=level), expected) for level, expected in levels),
    )


@traced
def test_parts_and_formats_of_plain_memory():
    uchar4 = cuda.createChannelDesc("uchar4")
    create = lambda resource: cuda.createTextureObject(resource, TextureDesc())
    assert create(ResourceDesc.Pitch2D(jnp.zeros((3, 12), jnp.uint8), uchar4, 2, 1)).texture.shape == (1, 2, 4)
    assert create(ResourceDesc.Linear(jnp.zeros((4, 2)))).desc == cuda.createChannelDesc("float2")
    assert create(ResourceDesc.Linear(jnp.zeros(8, jnp.uint8), uchar4, 7)).texture.shape == (1, 4)


# ---------------------------------------------------------------------------------------------------- validity


WRONG_FIELDS = {"addressMode": 4, "filterMode": 2, "readMode": -1, "mipmapFilterMode": "linear", "seamlessCubemap": 1}


@traced
def test_fields_of_a_descriptor_and_numbers_for_members():
    resource = ResourceDesc.Array(cuda.mallocArray(FLOAT, 4, 4))
    for field, value in WRONG_FIELDS.items():
        desc = TextureDesc(**{"addressMode": AddressMode.Border, field: value})
        refused(lambda: cuda.createTextureObject(resource, desc), 1, field)  # noqa: B023, called at once
    for color, mode in itertools.product(((0.0,) * 3, np.zeros(3, np.float32), 0.0), AddressMode):
        desc = TextureDesc(addressMode=mode, borderColor=color)
        refused(lambda: cuda.createTextureObject(resource, desc), 1, "borderColor")  # noqa: B023
    words = ResourceDesc.MipmappedArray(cuda.mallocMipmappedArray(cuda.createChannelDesc("int"), (4, 4, 0), 2))
    blended = TextureDesc(normalizedCoords=1, mipmapFilterMode=1)
    refused(lambda: cuda.createTextureObject(words, blended), 801, "mipmapFilterMode")
    refused(lambda: cuda.createTextureObject(words, TextureDesc()), 1, "normalizedCoords")
    mipmap, ref = cuda.mallocMipmappedArray(FLOAT, (4, 4, 0), 2), TextureReference("float", 2)
    refused(lambda: cuda.bindTextureToMipmappedArray(ref, mipmap), 1, "normalizedCoords")
    numbers = cuda.createTextureObject(resource, TextureDesc(addressMode=[3, 2], filterMode=1, normalizedCoords=1))
    members = TextureDesc(addressMode=(AddressMode.Border, AddressMode.Mirror), normalizedCoords=True, **LINEAR)
    assert numbers.sampler == cuda.createTextureObject(resource, members).sampler
    assert numbers.sampler.address_mode == ("border", "mirror")


def test_errors_survive_a_process():
    error = pickle.loads(pickle.dumps(cuda.CudaError(26, "createTextureObject: no.")))
    assert (error.code, error.name) == (26, "cudaErrorInvalidFilterSetting")
    assert str(error) == "createTextureObject: no. [cudaErrorInvalidFilterSetting, 26]"


# ---------------------------------------------------------------------------------------------------- descriptors


def test_zeroed_descriptors_differ_from_references():
    desc, ref = TextureDesc(), TextureReference("float")
    assert desc.addressMode == (0, 0, 0) == (AddressMode.Wrap,) * 3
    assert ref.addressMode == (1, 1, 1) == (AddressMode.Clamp,) * 3
    assert desc.borderColor == (0, 0, 0, 0)
    for field in dataclasses.fields(desc):
        if field.name not in ("addressMode", "borderColor"):
            assert (getattr(desc, field.name), getattr(ref, field.name, 0)) == (0, 0)
    assert (ref.normalized, ref.texType) == (0, cuda.TextureType.Type1D)
    assert hash(desc) == hash(TextureDesc(filterMode=0))


def sampler_of(resource=None, **desc):
    resource = resource or ResourceDesc.Array(cuda.mallocArray(cuda.createChannelDesc("uchar4"), 4, 4))
    return cuda.createTextureObject(resource, TextureDesc(**desc)).sampler


@traced
def test_what_a_descriptor_means_to_the_core():
    plain = sampler_of()
    assert plain == jt.Sampler(
        address_mode=("clamp", "clamp"),
        filter_mode="point",
        normalized_coords=False,
        max_mipmap_level_clamp=0.0,
        seamless_cubemap=False,
        arithmetic="hardware",
    )
    assert sampler_of(normalizedCoords=1).address_mode == ("wrap", "wrap")
    assert sampler_of(addressMode=AddressMode.Mirror).address_mode == ("clamp", "clamp")
    assert sampler_of(addressMode=AddressMode.Border).address_mode == ("border", "border")
    assert [sampler_of(maxAnisotropy=n).max_anisotropy for n in (0, 1, 16, 99, -3)] == [1, 1, 16, 16, 1]
    assert sampler_of(sRGB=1, **FRACTIONS).srgb
    assert not sampler_of(sRGB=1).srgb
    signed = ResourceDesc.Array(cuda.mallocArray(cuda.createChannelDesc("char"), 4, 4))
    assert not sampler_of(signed, sRGB=1, **FRACTIONS).srgb
    kind = ResourceDesc.Array(cuda.mallocArray(KINDS[cuda.ChannelFormatKind.UnsignedNormalized8X4], 4, 4))
    assert sampler_of(kind, sRGB=1, **FRACTIONS).srgb
    assert sampler_of(disableTrilinearOptimization=1) == plain
    cube = ResourceDesc.Array(cuda.malloc3DArray(FLOAT, (2, 2, 6), CUBEMAP))
    assert sampler_of(cube).normalized_coords
    assert sampler_of(cube, addressMode=(AddressMode.Mirror, 0)).address_mode == ("mirror", "wrap")
    assert sampler_of(cube, seamlessCubemap=1).seamless_cubemap


CHAIN = {"normalizedCoords": 1, "maxMipmapLevelClamp": 9.0}


def chain(desc=FLOAT, extent=(16, 0, 0), flags=0):
    """Level l holds l."""
    mipmap = cuda.mallocMipmappedArray(desc, extent, 99, flags)
    for level, texels in enumerate(mipmap.levels):
        mipmap = cuda.memcpyToArray(mipmap, jnp.full_like(texels, level), level=level)
    return mipmap


def test_levels_are_chosen_clamped_and_shifted():
    mipmap, lod, blend = jax.jit(chain)(), np.array([-1, 0, 1.2, 99], np.float32), np.float32(1 + 51 / 256)
    view = ResourceViewDesc(0, 16, 0, 0, firstMipmapLevel=2, lastMipmapLevel=4)
    cases = {
        "all levels": ({}, None, [0, 0, blend, 4]),
        "from 1.2 on": ({"minMipmapLevelClamp": 1.2}, view, [2 + blend, 2 + blend, 2 + blend, 4]),
        "bounds that cross": ({"minMipmapLevelClamp": 2.0, "maxMipmapLevelClamp": 1.0}, None, [2, 2, 2, 2]),
    }

    @jax.jit
    def reads(mipmap):
        resource, linear = ResourceDesc.MipmappedArray(mipmap), {**CHAIN, "mipmapFilterMode": cuda.FilterMode.Linear}
        make = lambda view=None, **desc: cuda.createTextureObject(resource, TextureDesc(**desc), view)
        found = {
            name: cuda.tex1DLod(make(view, **{**linear, **desc}), np.float32(0.5), lod)
            for name, (desc, view, _) in cases.items()
        }
        plain = ({"mipmapLevelBias": 2.0}, {"minMipmapLevelClamp": 3.0})  # a plain read has no bias
        return found, [cuda.tex1D(make(**CHAIN, **desc), 0.5) for desc in plain]

    found, plain = reads(mipmap)
    for name, (_, _, expected) in cases.items():
        assert_exact(found[name], expected, np.float32)
    assert [*map(float, plain)] == [0, 3]


BYTES, LAYERS = np.arange(16, dtype=np.uint8), np.arange(4, dtype=np.float32).reshape(4, 1, 1)


@compiled(BYTES.view(np.uint32).reshape(2, 2), BYTES[:2, None], LAYERS)
def test_views_see_the_same_bytes_and_some_layers(words, codes, layers):
    """Of texels of 8 bytes, and in the format of the array; others are in tests/recorded/test_formats.py."""
    halves, seen = cuda.ResourceViewFormat.Half4, cuda.createChannelDesc("half4")
    results = []
    for texels, held, view, desc, expected in (
        (words, "uint2", ResourceViewDesc(halves, 2), seen, BYTES.view(np.float16).reshape(2, 4)),
        (codes, "uchar", ResourceViewDesc(0, 2), cuda.createChannelDesc("uchar"), BYTES[:2, None]),
        (layers, "float", ResourceViewDesc(0, 1, 0, 4, firstLayer=1, lastLayer=2), FLOAT, LAYERS[1:3]),
    ):
        extent, flags = ((1, 0, 4), LAYERED) if held == "float" else ((2, 0, 0), 0)
        array = cuda.memcpyToArray(cuda.malloc3DArray(cuda.createChannelDesc(held), extent, flags), texels)
        t = cuda.createTextureObject(ResourceDesc.Array(array), TextureDesc(), view)
        assert t.desc == desc
        results.append((t.texture.texels, expected))
    return results


# ---------------------------------------------------------------------------------------------------- references


def test_binding_is_making_a_value():
    square, line = cuda.mallocArray(FLOAT, 4, 4), np.array([0, 255], np.uint8)
    odd = {"readMode": cuda.ReadMode.NormalizedFloat, "filterMode": 1, "normalized": 1, "addressMode": (2, 2, 2)}
    ref = TextureReference("uchar", **odd)  # linear memory ignores all but the read mode
    found = jax.jit(lambda line: cuda.tex1Dfetch(cuda.bindTexture(ref, line), np.array([-1, 1])))(line)
    assert_exact(found, np.float32([0, 1]))
    wrapped = TextureReference("float", cuda.TextureType.Type2D, normalized=1, addressMode=(AddressMode.Wrap,))
    assert cuda.bindTextureToArray(wrapped, square).sampler.address_mode == ("wrap", "clamp")
    refused(lambda: cuda.bindTexture(TextureReference("int", **FRACTIONS), np.int32([0, 1])), 27)


# ---------------------------------------------------------------------------------------------------- functions


KINDS_OF_TEXTURE = {
    "1D": ((9, 0, 0), 0, jt.texture1d),
    "2D": ((9, 5, 0), 0, jt.texture2d),
    "3D": ((9, 5, 3), 0, jt.texture3d),
    "1DLayered": ((9, 0, 3), LAYERED, jt.texture1d_layered),
    "2DLayered": ((9, 5, 3), LAYERED, jt.texture2d_layered),
    "Cubemap": ((4, 4, 6), CUBEMAP, jt.cubemap),
    "CubemapLayered": ((4, 4, 18), CUBEMAP | LAYERED, jt.cubemap_layered),
}
SAMPLER = jt.Sampler(address_mode="mirror", filter_mode="point", mipmap_filter_mode="point", seamless_cubemap=False)


def test_every_function_is_a_read_of_the_core():
    """Plain, Lod and Grad, in CUDA's order of arguments, and with derivatives in CUDA's structs and in tuples."""
    rng = np.random.default_rng(7)
    given, desc = {}, cuda.createChannelDesc("float2")
    allocate = lambda: {
        name: cuda.mallocMipmappedArray(desc, extent, 2, flags) for name, (extent, flags, _) in KINDS_OF_TEXTURE.items()
    }
    for name, mipmap in jax.jit(allocate)().items():
        levels = [rng.normal(size=level.shape).astype(np.float32) for level in mipmap.levels]
        n = 3 if "Cubemap" in name else int(name[0])
        sides = [tuple(rng.normal(size=(n, 8)).astype(np.float32) * scale) for scale in (1, 0.2, 0.1)]
        given[name] = mipmap, tuple(levels), *sides
    layer, lod = np.array([-1, 0, 1, 2, 3, 0, 1, 2]), np.linspace(-1, 2, 8, dtype=np.float32)
    desc = TextureDesc(addressMode=AddressMode.Mirror, **CHAIN)

    @jax.jit
    def reads(given):
        results = {}
        for name, (mipmap, levels, coords, ddx, ddy) in given.items():
            for level, texels in enumerate(levels):
                mipmap = cuda.memcpyToArray(mipmap, texels, level=level)
            t = cuda.createTextureObject(ResourceDesc.MipmappedArray(mipmap), desc, arithmetic="float")
            if name == "CubemapLayered":
                levels = [texels.reshape(3, 6, *texels.shape[1:]) for texels in levels]
            texture = KINDS_OF_TEXTURE[name][-1](tuple(levels))
            n, layers = len(coords), (layer,) if texture.kind.layered else ()
            plain, explicit, sides = (getattr(cuda, f"tex{name}{suffix}") for suffix in ("", "Lod", "Grad"))
            read = lambda **where: jt.sample(texture, coords, SAMPLER, layer=layer if layers else None, **where)  # noqa: B023
            padded = lambda d: d[0] if n == 1 else d if n == 2 else (*d, 0.0)  # noqa: B023
            struct = cuda.make_float2 if n == 2 else lambda *d: cuda.make_float4(*d, 0.0)
            expected = read(ddx=ddx, ddy=ddy)
            results[name] = {
                "plain": (plain(t, *coords, *layers), read()),
                "Lod": (explicit(t, *coords, *layers, lod), read(lod=lod)),
                "Grad with T": (
                    sides(t, *coords, *layers, padded(ddx), padded(ddy), T="float4"),
                    jnp.pad(expected, ((0, 0), (0, 2))),
                ),
            }
            forms = {"of structs": lambda d: struct(*d), "of lists": list} if name in ("2D", "3D") else {}  # noqa: B023
            for form, made in forms.items():
                results[name][f"Grad {form}"] = sides(t, *coords, *layers, made(ddx), made(ddy)), expected
        return results

    for name, results in reads(given).items():
        for how, (actual, expected) in results.items():
            np.testing.assert_array_equal(actual, expected, err_msg=f"tex{name}, {how}")


@compiled(np.float32([0, 5]))
def test_levels_of_what_has_none(lod):
    t, expected = image([[1, 2], [3, 4]]), np.float32([2, 2])
    along = cuda.tex2DGrad(t, 1.5, 0.5, (lod, 0.0), (0.0, lod))
    return (cuda.tex2DLod(t, 1.5, 0.5, lod), expected), (along, expected)


TYPES = {None: [3, 4], "float": 3, "float1": [3], "float2": [3, 4], "float4": [3, 4, 0, 0]}


def test_a_type_takes_the_channels_that_it_has():
    desc = cuda.createChannelDesc("float2")

    @jax.jit
    def fetches(memory):
        codes = cuda.mallocArray(cuda.createChannelDesc("uchar2"), 2, 1, GATHER)
        make = lambda resource, **modes: cuda.createTextureObject(resource, TextureDesc(**modes))
        t, gathered = make(ResourceDesc.Linear(memory, desc)), make(ResourceDesc.Array(codes))
        colors = make(ResourceDesc.Linear(np.uint8([128, 255])), sRGB=1, **FRACTIONS)
        more = cuda.tex2Dgather(gathered, 0.5, 0.5, 3, T="uchar4"), cuda.tex1Dfetch(colors, np.arange(2))
        return {T: cuda.tex1Dfetch(t, 1, T=T) for T in TYPES if T}, cuda.tex1Dfetch(t, 1), *more

    found, own, absent, decoded = fetches(np.array([[1, 2], [3, 4]], np.float32))
    for T, expected in TYPES.items():
        assert_exact(found[T] if T else own, expected, np.float32)
    assert_exact(absent, np.zeros(4), np.uint8)
    assert_exact(decoded, [14144 / 65536, 1], np.float32)


WRONG_TYPES = (
    ("uchar4", {}, "char4 uint float4 uchar3"),
    ("uchar4", FRACTIONS, "uchar4"),
    ("half", {}, "half"),
    ("float", {}, "int double texture"),
)


@traced
def test_functions_of_another_type():
    for stored, modes, types in WRONG_TYPES:
        desc = cuda.createChannelDesc(stored)
        memory = np.zeros(4 * desc.channels, desc.dtype)
        t = cuda.createTextureObject(ResourceDesc.Linear(memory, desc), TextureDesc(**modes))
        for T in types.split():
            refused(lambda: cuda.tex1Dfetch(t, 0, T=T), 1, "T is", T)  # noqa: B023, called at once


# ---------------------------------------------------------------------------------------------------- transforms


def test_objects_are_arguments_of_transformed_functions():
    texels = np.arange(12, dtype=np.float32).reshape(3, 4)
    make = lambda texels, **desc: cuda.createTextureObject(
        ResourceDesc.Array(cuda.memcpyToArray(cuda.mallocArray(FLOAT, 4, 3), texels)),
        TextureDesc(addressMode=AddressMode.Border, **LINEAR, **desc),
    )
    x, y = np.array([0.25, 2.0, 3.5], np.float32), np.array([0.5, 1.0, 1.5], np.float32)

    def loss(texels, color):
        return cuda.tex2D(make(texels, borderColor=(color, 0.0, 0.0, 0.0)), x, y).sum()

    @jax.jit
    def transformed(t, stack):
        of_stack, gradients = jax.vmap(cuda.tex2D, (0, None, None)), jax.grad(loss, (0, 1))
        return cuda.tex2D(t, x, y), of_stack(stack, x, y), gradients(texels, jnp.float32(0))

    t, doubled = jax.jit(lambda: (make(texels), make(2 * texels)))()
    expected, stack = cuda.tex2D(t, x, y), jax.tree.map(lambda *leaves: np.stack(leaves), t, doubled)
    found, doubled, (of_texels, of_color) = transformed(t, stack)
    assert_exact(found, expected, np.float32)
    assert_exact(doubled, np.stack([expected, 2 * np.asarray(expected)]), np.float32)
    # A quarter of the first read lies outside, and every weight goes somewhere.
    assert (float(of_color), np.asarray(of_texels).sum()) == (0.25, 2.75)


# ---------------------------------------------------------------------------------------------------- levels


IN_BYTES, ROWS = 4 * np.arange(2), np.arange(2)[:, None]
BOX = functools.partial(cuda.Memcpy3DParms, extent=(2, 2, 1))
WRITES = {
    "a surface object in a kernel": lambda level, texels: jax.jit(cuda.surf2Dwrite)(
        texels[..., 0], cuda.createSurfaceObject(ResourceDesc.Array(level)), IN_BYTES, ROWS
    ),
    "a surface reference": lambda level, texels: cuda.surf2Dwrite(
        texels[..., 0], cuda.bindSurfaceToArray(cuda.surface("void", 2), level), IN_BYTES, ROWS
    ),
    "a copy": cuda.memcpyToArray,
    "rows": lambda level, texels: cuda.memcpy2DToArray(level, 0, 0, texels, 8, 8, 2),
    "a run": lambda level, texels: cuda.memcpyToArray(level, 0, 0, texels, 16),
    "a box": lambda level, texels: cuda.memcpy3D(BOX(dstArray=level, srcPtr=cuda.PitchedPtr(texels, 8, 0, 0))),
    "a formatted store": lambda level, texels: cuda.sust_p(texels, level, np.arange(2), ROWS),
}


def test_levels_that_are_written_and_not_stored_are_mentioned():
    """In CUDA the array of a level is the level; here the chain stays as it is, and a warning names the remedy."""
    texels = np.arange(4, dtype=np.float32).reshape(2, 2, 1)
    desc = TextureDesc(normalizedCoords=1, maxMipmapLevelClamp=2.0)
    remedy = r"level 1 of mipmappedArray .* memcpyToArray\(mipmappedArray, levelArray, level=1\)\.$"

    def warned_and_written(how):
        mipmap = cuda.mallocMipmappedArray(FLOAT, (4, 4, 0), 3, STORE)
        written = WRITES[how](cuda.getMipmappedArrayLevel(mipmap, 1), texels)
        for call in (
            lambda: cuda.createTextureObject(ResourceDesc.MipmappedArray(mipmap), desc),
            lambda: cuda.getMipmappedArrayLevel(mipmap, 1),
        ):
            with pytest.warns(UserWarning, match=remedy) as warned:
                call()
            assert warned[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cuda.getMipmappedArrayLevel(mipmap, 0)
            mipmap = cuda.memcpyToArray(mipmap, written, level=1)
            t = cuda.createTextureObject(ResourceDesc.MipmappedArray(mipmap), desc)
        return cuda.tex2DLod(t, np.float32(0.75), np.float32(0.25), np.float32(1))

    first, *others = WRITES
    for found in (warned_and_written(first), *jax.jit(lambda: [*map(warned_and_written, others)])()):
        assert_exact(found, texels[0, 1, 0])
