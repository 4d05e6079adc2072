"""Programs of the era of texture references: lines of theirs in Python's syntax, and what they returned."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtex import cuda
from jaxtex.cuda import AddressMode, ArrayFlags, CudaError, Error, FilterMode, MemcpyKind, ResourceDesc, TextureDesc
from tests.support.tolerances import assert_exact
from tests.unit.cuda.test_cuda import compiled, refused, traced

STORE = ArrayFlags.SurfaceLoadStore
H2D = MemcpyKind.HostToDevice
FLOAT = cuda.createChannelDesc("float")

SURFACES = {
    "1D": ((4, 0, 0), 0, (8,)),
    "2D": ((4, 3, 0), 0, (8, 1)),
    "3D": ((4, 3, 2), 0, (8, 1, 1)),
    "Cubemap": ((3, 3, 6), ArrayFlags.Cubemap, (8, 1, 4)),
    "1DLayered": ((4, 0, 2), ArrayFlags.Layered, (8, 1)),
    "2DLayered": ((4, 3, 2), ArrayFlags.Layered, (8, 1, 1)),
    "CubemapLayered": ((3, 3, 12), ArrayFlags.Layered | ArrayFlags.Cubemap, (8, 1, 9)),
}
TYPE_NUMBERS = {"1D": 1, "2D": 2, "3D": 3, "Cubemap": 12, "1DLayered": 0xF1, "2DLayered": 0xF2, "CubemapLayered": 0xFC}


def test_surface_references_of_every_type():
    """Programs of accesses are traced alone; what they do is that of arrays, tests/fuzz/cuda.py."""
    made = lambda: {name: cuda.malloc3DArray(FLOAT, n, flags | STORE) for name, (n, flags, _) in SURFACES.items()}
    for name, array in (arrays := jax.jit(made)()).items():
        surf_type, place = cuda.SurfaceType[f"Type{name}"], SURFACES[name][-1]
        assert surf_type == TYPE_NUMBERS[name]
        unbound, other = cuda.surface("void", surf_type), cuda.surface("void", 1 if "2D" in name else 2)
        read, write = (getattr(cuda, f"surf{name}{how}") for how in ("read", "write"))
        bound = cuda.bindSurfaceToArray(unbound, array, FLOAT)
        found = jax.eval_shape(lambda b: (write(5.0, b, *place), read(b, *place)), bound)  # noqa: B023, called at once
        assert (found[0].kind, found[1].shape) == (array.kind, ())
        refused(lambda: cuda.bindSurfaceToArray(other, array), 1, "surfref.Type")  # noqa: B023
        refused(lambda: read(unbound, *place), 37, "not bound")  # noqa: B023
    written = cuda.surf1Dwrite(5.0, cuda.bindSurfaceToArray(cuda.surface(), arrays["1D"]), 8)
    assert float(cuda.surf1Dread(cuda.bindSurfaceToArray(cuda.surface(), written), 8)) == 5
    # They are checked when they are bound.
    wide = lambda: cuda.mallocArray(cuda.createChannelDesc("uchar"), 32769, 0, STORE)
    refused(lambda: jax.eval_shape(lambda: cuda.bindSurfaceToArray(cuda.surface(), wide())), 1, "maxSurface1D")
    assert cuda.getSurfaceReference(cuda.surface()) == cuda.SurfaceReference("void", 1)


def test_attributes_take_effect_after_binding():
    ref = cuda.texture("float")
    fill = lambda values: cuda.memcpyToArray(cuda.mallocArray(ref.channelDesc, 4), values)
    tex = cuda.bindTextureToArray(ref, jax.jit(fill)(np.float32([10, 20, 30, 40])))
    read = jax.jit(cuda.tex1D)
    x = np.float32([1, -0.25])
    assert_exact(read(tex, x), np.float32([20, 10]))
    tex.filterMode = FilterMode.Linear
    assert_exact(read(tex, x), np.float32([15, 10]))
    tex.addressMode[0] = AddressMode.Wrap
    tex.normalized = True
    assert_exact(read(tex, x), np.float32([25, 35]))
    assert_exact(cuda.tex1D(tex, x), np.float32([25, 35]))
    tex.filterMode = FilterMode.Point
    tex.addressMode[0] = AddressMode.Border
    assert_exact(read(tex, x), np.float32([0, 0]))
    tex.filterMode = 7
    refused(lambda: cuda.tex1D(tex, x), 1, "filterMode")


def test_a_reference_and_what_it_is_bound_to_share_attributes():
    fill = lambda: [cuda.memcpyToArray(cuda.mallocArray(FLOAT, 2), np.float32([n, n + 2])) for n in (10, 20)]
    arrays, ref, read = jax.jit(fill)(), cuda.texture("float"), jax.jit(cuda.tex1D)
    first, second = (cuda.bindTextureToArray(ref, array) for array in arrays)
    ref.filterMode = FilterMode.Linear
    assert_exact(read(first, 1.0), np.float32(11))
    second.addressMode[0] = AddressMode.Border
    assert_exact(read(first, 0.0), np.float32(5))
    second.filterMode = FilterMode.Point
    assert ref.filterMode == first.filterMode == FilterMode.Point
    apart = jax.tree.map(lambda leaf: leaf, first)
    apart.filterMode = FilterMode.Linear
    assert ref.filterMode == FilterMode.Point
    assert apart.filterMode == FilterMode.Linear
    again = cuda.bindTextureToArray(first, arrays[1])
    assert_exact(again.texture.texels, arrays[1].texels)
    with pytest.raises(AttributeError, match="filtermode"):
        first.filtermode = 1
    with pytest.raises(AttributeError, match="filtermode"):
        first.filtermode  # noqa: B018, a misspelling


def test_bound_references_are_transformed_like_objects():
    ref = cuda.texture("float", filterMode=FilterMode.Linear)
    fill = lambda texels: cuda.memcpyToArray(cuda.mallocArray(FLOAT, 4), texels)
    f = lambda texels: cuda.tex1D(cuda.bindTextureToArray(ref, fill(texels)), jnp.float32(1.25))
    rows = jax.jit(lambda: [fill(np.full(4, n, np.float32)) for n in (1, 2)])()
    stack = jax.tree.map(lambda *leaves: np.stack(leaves), *(cuda.bindTextureToArray(ref, row) for row in rows))
    run = jax.jit(lambda texels, stack: (jax.grad(f)(texels), jax.vmap(cuda.tex1D, (0, None))(stack, jnp.float32(2))))
    gradient, mapped = run(np.ones(4, np.float32), stack)
    assert_exact(gradient, np.float32([0.25, 0.75, 0, 0]))
    assert_exact(mapped, np.float32([1, 2]))
    bound = cuda.bindTextureToArray(ref, rows[0], FLOAT)
    assert (bound.kind, bound.resType, bound.flags, bound.desc) == ("1d", 0, 0, FLOAT)
    assert bound.texture.shape == (4, 1)


def test_binding_linear_memory():
    memory, desc = np.arange(8, dtype=np.float32), FLOAT
    tex, pairs = cuda.texture("float"), cuda.texture("float2")

    @jax.jit
    def fetches(memory):
        forms = (0, tex, memory, desc, 2**32 - 1), (None, tex, memory), (0, tex, memory, 8 * 4), (0, tex, memory, desc)
        bound = [cuda.bindTexture(*form) for form in (*forms, (tex, memory, desc, 8 * 4))]
        bound += [cuda.bindTexture(tex, memory, size=8 * 4)]
        half = cuda.bindTexture(0, tex, memory, desc, 4 * 4)
        of_pairs = cuda.tex1Dfetch(cuda.bindTexture(0, pairs, memory), 3)
        return [cuda.tex1Dfetch(t, 7) for t in bound], cuda.tex1Dfetch(half, np.array([3, 4])), of_pairs

    last, of_half, of_pairs = fetches(memory)
    assert_exact(np.stack(last), np.full(6, 7, np.float32))
    assert_exact(of_half, np.float32([3, 0]))
    assert_exact(of_pairs, np.float32([6, 7]))
    bound = cuda.bindTexture(0, tex, memory, desc, 8 * 4)
    memory[:] = 1
    assert_exact(bound.texture.texels, np.arange(8, dtype=np.float32)[:, None])  # what memory held
    assert cuda.getTextureAlignmentOffset(bound) == 0


def test_binding_pitched_memory():
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    tex, linear = (cuda.texture("float", cuda.TextureType.Type2D, filterMode=mode) for mode in FilterMode)
    x, y = np.arange(3)[None] + np.float32(0.5), np.arange(2)[:, None] + np.float32(0.5)

    @jax.jit
    def reads(values):
        rows = cuda.mallocPitch(3 * 4, 2)
        memory = cuda.memcpy2D(rows.ptr, rows.pitch, values, 12, 12, 2, H2D)
        bound = (
            cuda.bindTexture2D(0, tex, memory, FLOAT, 3, 2, rows.pitch),
            cuda.bindTexture2D(None, tex, memory, 3, 2, rows.pitch),
            cuda.bindTexture2D(tex, memory, FLOAT, 3, 2, rows.pitch),
            cuda.bindTexture2D(0, tex, values, FLOAT, 3, 2),
            cuda.bindTexture2D(0, tex, values),
        )
        blended = cuda.tex2D(cuda.bindTexture2D(0, linear, memory, FLOAT, 3, 2, rows.pitch), 1.0, 1.0)
        return [cuda.tex2D(t, x, y) for t in bound], blended

    found, blended = reads(values)
    for read in found:
        assert_exact(read, values)
    assert_exact(blended, np.float32(2))


@traced
def test_unbound_references_are_errors():
    tex = cuda.texture("int")
    refused(lambda: cuda.tex1Dfetch(tex, 0), Error.InvalidTextureBinding, "not bound")
    refused(lambda: cuda.getTextureAlignmentOffset(tex), 19)
    bound = cuda.bindTexture(0, tex, np.arange(4, dtype=np.int32))
    assert bound.texture.shape == (4, 1)
    refused(lambda: cuda.tex1Dfetch(tex, 0), 19)
    cuda.unbindTexture(bound)
    cuda.unbindTexture(bound)
    refused(lambda: cuda.tex1Dfetch(bound, 0), 19)
    assert cuda.getTextureReference(tex) is tex


def test_gradients_of_copies():
    """Of runs of bytes; of rows and boxes, too."""

    def f(values, texels):
        filled = cuda.memcpyToArray(cuda.memcpyToArray(cuda.mallocArray(FLOAT, 3, 2), texels), 4, 0, values, 3 * 4)
        return (cuda.memcpyFromArray(jnp.zeros(6), filled, 0, 0, 24) * jnp.arange(1.0, 7)).sum()

    def boxes(values):
        pairs = cuda.mallocArray(cuda.createChannelDesc("float2"), 3, 2)
        copied = cuda.memcpy2DToArray(pairs, 8, 0, values, 16, 16, 2)
        moved = cuda.memcpy2DArrayToArray(pairs, 0, 0, copied, 8, 1, 16, 1)
        to = {"dstPtr": cuda.PitchedPtr(jnp.zeros(4), 16, 2, 1), "extent": cuda.Extent(2, 1, 1)}
        return (cuda.memcpy3D(cuda.Memcpy3DParms(moved, **to)) * jnp.arange(1.0, 5)).sum()

    run = jax.jit(lambda values, texels, rows: (*jax.grad(f, (0, 1))(values, texels), jax.grad(boxes)(rows)))
    to_values, to_texels, to_rows = run(*(np.ones(shape, np.float32) for shape in (3, (2, 3), (2, 4))))
    assert_exact(to_values, np.float32([2, 3, 4]))
    assert_exact(to_texels, np.float32([[1, 0, 0], [0, 5, 6]]))
    assert_exact(to_rows, np.float32([[0, 0, 0, 0], [1, 2, 3, 4]]))


ONE_TO_FOUR = np.float32([1, 2, 3, 4])


@compiled(ONE_TO_FOUR)
def test_an_array_of_one_row_is_filled_with_its_values(values):
    """cudaMallocArray(&a, &desc, N, 1) was the way to allocate a 1D texture."""
    array, pairs = cuda.mallocArray(FLOAT, 4, 1), cuda.mallocArray(cuda.createChannelDesc("float2"), 2, 1)
    filled = [cuda.memcpyToArray(array, given) for given in (values, values[None], values[:, None])]
    filled.append(cuda.memcpyToArray(array, 0, 0, values, 16, H2D))
    linear = cuda.bindTextureToArray(cuda.texture("float", filterMode=FilterMode.Linear), filled[-1])
    return (
        *((array.texels, ONE_TO_FOUR[None, :, None]) for array in filled),
        (cuda.tex1D(linear, np.float32([1, 2.5, 9])), np.float32([1.5, 3, 4])),
        (cuda.memcpyToArray(pairs, values.reshape(2, 2)).texels, ONE_TO_FOUR.reshape(1, 2, 2)),
    )


@traced
def test_pitched_volumes():
    """What copies and fills do is in tests/fuzz/copies.py."""
    pitched = cuda.malloc3D(cuda.make_cudaExtent(3 * 4, 2, 2))
    assert (pitched.ptr.shape, pitched.pitch, pitched.xsize, pitched.ysize) == ((4, 512), 512, 12, 2)


def test_halves_are_kept_in_shorts():
    values = np.float32([1, -2, 65504, 2**-24, 1 + 2**-11, 1 + 3 * 2**-11])
    desc = cuda.createChannelDescHalf()
    assert desc == cuda.createChannelDesc("half")

    @jax.jit
    def run(values):
        array, shorts = cuda.mallocArray(desc, 6), cuda.__float2half_rn(values)
        bound = cuda.bindTexture(0, cuda.texture("float"), shorts, desc, 12)
        textures = (
            cuda.bindTextureToArray(cuda.texture("float"), cuda.memcpyToArray(array, shorts)),
            cuda.bindTextureToArray(cuda.texture("half"), cuda.memcpyToArray(array, 0, 0, shorts, 12, H2D)),
        )
        reads = [cuda.tex1D(t, np.arange(6) + np.float32(0.5)) for t in textures]
        return shorts, [*reads, cuda.tex1Dfetch(bound, np.arange(6)), cuda.__half2float(shorts)]

    shorts, reads = run(values)
    assert_exact(shorts, values.astype(np.float16).view(np.uint16))
    for read in reads:
        assert_exact(read, values.astype(np.float16).astype(np.float32))
    assert cuda.createChannelDescHalf4() == cuda.createChannelDesc("half4")


class Kernel:
    """Within a class Python changes names that start with two underscores."""

    def bits(self, x):
        return cuda.float2half_rn(x)

    def changed(self, x):
        return cuda.__float2half_rn(x)


def test_names_within_classes():
    assert int(jax.jit(Kernel().bits)(1.0)) == 0x3C00
    with pytest.raises(AttributeError, match="_Kernel__float2half_rn"):
        Kernel().changed(1.0)
    for name in (name for name in cuda.__all__ if name.startswith("__")):
        assert getattr(cuda, name) is getattr(cuda, name[2:])


def test_words_of_doubles(x64):
    x = np.array([1.5, -np.pi, 2.0**-1074])

    @jax.jit
    def words(x):
        hi, lo = cuda.__double2hiint(x), cuda.__double2loint(x)
        return hi, lo, cuda.__hiloint2double(hi, lo), cuda.make_double2(1.0, 2)

    hi, lo, back, pair = words(x)
    assert_exact(hi, x.view(np.int32)[1::2])
    assert_exact(lo, x.view(np.int32)[::2])
    assert_exact(back, x)
    assert_exact(pair, np.array([1.0, 2.0]))


@compiled(np.float32([1.5, np.inf]))
def test_words_of_floats(x):
    return (
        (cuda.__float_as_int(-0.0), np.int32(-(2**31))),
        (cuda.__int_as_float(cuda.__float_as_int(x)), np.float32([1.5, np.inf])),
        *((cuda.__uint_as_float(zero), np.float32(-0.0)) for zero in (np.uint32(0x80000000), 0x80000000)),
        (cuda.__float_as_uint(1.0), np.uint32(0x3F800000)),
    )


@compiled(np.arange(3, dtype=np.int32), 2)
def test_vectors(x, number):
    array = cuda.mallocArray(cuda.createChannelDesc("float2"), 4, 0, STORE)
    return (
        (cuda.make_float2(x, 0.5), np.float32([[0, 0.5], [1, 0.5], [2, 0.5]])),
        (cuda.make_uchar4(255, 0, 7.9, np.float32([-1, 300])), np.uint8([[255, 0, 7, 0], [255, 0, 7, 255]])),
        (cuda.make_int1(x), np.arange(3, dtype=np.int32)[:, None]),
        (cuda.make_char2(100 * number, -100 * number), np.int8([127, -128])),
        (cuda.make_short3(1, 2, np.nan), np.int16([1, 2, 0])),
        (jax.grad(lambda x: cuda.make_float3(x, x, 1.0).sum())(2.0), np.float32(2)),
        (cuda.surf1Dwrite(cuda.make_float2(1.0, 2.0), array, 8).texels[1], np.float32([1, 2])),
    )


def test_errors_have_the_names_and_texts_of_cuda():
    assert cuda.getLastError() == cuda.peekAtLastError() == Error.Success == 0
    for error in Error:
        assert cuda.getErrorString(error) == cuda.getErrorString(int(error))
        assert cuda.getErrorName(error) in ("cudaSuccess", f"cudaError{error.name}")
    assert cuda.getErrorString(26) == "linear filtering not supported for non-float type"
    error = CudaError(Error.InvalidSurface, "no")
    assert (error.code, type(error.code), error.name) == (37, int, "cudaErrorInvalidSurface")


def test_what_is_released_is_not_used_again():
    make = lambda: cuda.mallocArray(FLOAT, 4, 0, STORE)
    array = make()
    texture = cuda.createTextureObject(ResourceDesc.Array(array), TextureDesc())
    surface = cuda.createSurfaceObject(ResourceDesc.Array(array))
    tex_ref = cuda.bindTextureToArray(cuda.texture("float"), array)
    surf_ref = cuda.bindSurfaceToArray(cuda.surface(), array)
    uses = {
        "copy": lambda: cuda.memcpyToArray(array, np.zeros(4, np.float32)),
        "copy from": lambda: cuda.memcpyFromArray(array),
        "copy of rows": lambda: cuda.memcpy2DToArray(array, 0, 0, np.zeros(1, np.float32), 4, 4, 1),
        "resource": lambda: cuda.createTextureObject(ResourceDesc.Array(array), TextureDesc()),
        "surface": lambda: cuda.createSurfaceObject(ResourceDesc.Array(array)),
        "texture": lambda: cuda.tex1D(texture, 0.5),
        "read": lambda: cuda.surf1Dread(surface, 0),
        "array": lambda: cuda.surf1Dread(array, 0),
        "reference": lambda: cuda.tex1D(tex_ref, 0.5),
        "surface reference": lambda: cuda.surf1Dread(surf_ref, 0),
    }
    for use in uses.values():
        use()
    jitted = jax.jit(lambda array: cuda.memcpyFromArray(array))
    cuda.destroyTextureObject(texture)
    refused(lambda: cuda.tex1D(texture, 0.5), 400, "destroyTextureObject")
    refused(lambda: cuda.destroyTextureObject(texture), 400)
    cuda.destroySurfaceObject(surface)
    refused(lambda: cuda.surf1Dread(surface, 0), 400, "destroySurfaceObject")
    cuda.freeArray(array)
    for use in uses.values():
        refused(use, 400)
    refused(lambda: cuda.freeArray(array), 400, "freeArray")
    assert_exact(jitted(array), np.zeros((4, 1), np.float32))  # what a transformation makes of it has no mark
    cuda.freeArray(None)
    cuda.free(None)

    mipmap, rows = jax.jit(lambda: (cuda.mallocMipmappedArray(FLOAT, (4, 4, 0), 2), cuda.mallocPitch(8, 2)))()
    cuda.freeMipmappedArray(mipmap)
    refused(lambda: cuda.getMipmappedArrayLevel(mipmap, 0), 400)
    cuda.free(rows)
    parms = cuda.Memcpy3DParms(srcPtr=rows, dstPtr=rows, extent=cuda.Extent(1, 1, 1))
    refused(lambda: cuda.memcpy3D(parms), 400)


def test_descriptors_of_objects():
    array = cuda.mallocArray(FLOAT, 4, 4, STORE)
    desc, view = TextureDesc(sRGB=1), cuda.ResourceViewDesc(0, 4, 4)
    texture = cuda.createTextureObject(ResourceDesc.Array(array), desc, view)
    assert cuda.getTextureObjectResourceDesc(texture) == ResourceDesc.Array(array)
    assert cuda.getTextureObjectTextureDesc(texture) == desc
    assert cuda.getTextureObjectResourceViewDesc(texture) == view
    refused(lambda: cuda.getTextureObjectTextureDesc(jax.jit(lambda t: t)(texture)), 801, "transformation")
    surface = cuda.createSurfaceObject(ResourceDesc.Array(array))
    assert cuda.getSurfaceObjectResourceDesc(surface) == ResourceDesc.Array(array)


def test_a_type_error_of_another_argument_names_no_declaration():
    with pytest.raises(TypeError, match=r"^(?!.*CUDA declares).*expected an Array"):
        cuda.memcpy2DToArray(np.zeros(4), 0, 0, np.zeros(1), 4, 4, 1)


def test_a_bound_texture_leaks_no_tracers():
    """What a compiled function makes of a texture that it closes over stays inside of it."""
    ref = cuda.texture("float", 2)
    bound = cuda.bindTexture2D(0, ref, np.ones((2, 8), np.float32), FLOAT, 2, 2, 32)
    bound.filterMode = FilterMode.Linear
    jax.eval_shape(lambda x: cuda.tex2D(bound, x, x), 1.0)
    assert not isinstance(bound.texture.texels, jax.core.Tracer)
    bound.resource.memory = np.zeros((2, 8), np.float32)
    assert_exact(jax.jit(cuda.tex2D)(bound, 1.0, 1.0), np.float32(0))
