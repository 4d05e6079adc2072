"""`jaxtex.cuda` takes numbers of every type: coordinates as C converts them, values that fit or are refused, bytes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtex import cuda
from jaxtex.cuda import ArrayFlags, Extent, Memcpy3DParms, PitchedPtr, ResourceDesc, TextureDesc
from tests.support.tolerances import assert_exact
from tests.unit.cuda.test_cuda import refused

STORE = ArrayFlags.SurfaceLoadStore
ZERO, CLAMP, TRAP = cuda.SurfaceBoundaryMode.Zero, cuda.SurfaceBoundaryMode.Clamp, cuda.SurfaceBoundaryMode.Trap
LINE = cuda.memcpyToArray(cuda.mallocArray(cuda.createChannelDesc("float"), 4, 0, STORE), np.float32([10, 20, 30, 40]))
SQUARE = cuda.memcpyToArray(
    cuda.mallocArray(cuda.createChannelDesc("float"), 2, 2, STORE), np.float32([[1, 2], [3, 4]])
)


# -------------------------------------------------------------------------------------------------- coordinates


@pytest.mark.parametrize("xp", [np, jnp])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_unsigned_coordinates_become_ints_as_in_c(xp, dtype):
    """0 - 1 of an unsigned int is -1; of shorter types it is a large number, as C promotes them."""
    with np.errstate(over="ignore"):
        below = xp.asarray(0, dtype) - xp.asarray(1, dtype)
        x = below * xp.asarray(4, dtype)
    short = dtype != "uint32"
    assert_exact(cuda.surf2Dread(SQUARE, x, 0, CLAMP), np.float32(2 if short else 1))
    assert_exact(cuda.surf2Dread(SQUARE, 0, below, CLAMP), np.float32(3 if short else 1))
    assert_exact(cuda.surf2Dread(SQUARE, 4, below, ZERO), np.float32(0))
    written = cuda.surf1Dwrite(np.float32(7), LINE, x, CLAMP)
    assert_exact(written.texels[:, 0], np.float32([10, 20, 30, 7] if short else [7, 20, 30, 40]))
    store = cuda.sust_p(np.float32([5]), LINE, below, boundaryMode=CLAMP)
    assert_exact(store.texels[:, 0], np.float32([10, 20, 30, 5] if short else [5, 20, 30, 40]))


WIDE = {"2^33": (2**33, 40), "-2^33": (-(2**33), 10), "2^32 + 4": (2**32 + 4, 40), "2^31": (2**31, 40)}


@pytest.mark.parametrize("name", WIDE)
def test_wide_coordinates_stay_outside(name):
    x, nearest = WIDE[name]
    for given in (x, np.int64(x), np.array([x])):
        shape = np.shape(given)
        assert_exact(cuda.surf1Dread(LINE, given, CLAMP), np.full(shape, nearest, np.float32))
        assert_exact(cuda.surf1Dread(LINE, given, ZERO), np.zeros(shape, np.float32))
        assert_exact(cuda.surf1Dwrite(np.float32(7), LINE, given, ZERO).texels, LINE.texels)
        assert_exact(cuda.surf2Dread(SQUARE, 4, given, ZERO), np.zeros(shape, np.float32))
        assert_exact(cuda.sust_p(np.float32([5]), LINE, given, boundaryMode=TRAP).texels, LINE.texels)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("traced", [False, True])
def test_wide_coordinates_of_jax(traced):
    read = functools.partial(cuda.surf1Dread, LINE, boundaryMode=CLAMP)
    read = jax.jit(read) if traced else read
    assert_exact(read(jnp.asarray([2**33, -(2**33), 2**32 + 4])), np.float32([40, 10, 40]))
    write = jax.jit(lambda x: cuda.surf1Dwrite(np.float32(7), LINE, x, CLAMP).texels[:, 0])
    assert_exact(write(jnp.asarray(2**33)), np.float32([10, 20, 30, 7]))


def test_wide_places_of_texture_functions():
    words = cuda.createTextureObject(ResourceDesc.Linear(jnp.arange(1, 5)), TextureDesc())
    assert_exact(cuda.tex1Dfetch(words, np.array([2**32 + 1, -(2**32), 2, 2**31])), np.int32([0, 0, 3, 0]))
    assert_exact(cuda.tex1Dfetch(words, 2**32 + 1), np.int32(0))
    assert_exact(cuda.tex1Dfetch(words, jnp.uint32(0) - 1), np.int32(0))
    image = cuda.createTextureObject(ResourceDesc.Array(SQUARE), TextureDesc(addressMode=cuda.AddressMode.Border))
    assert_exact(cuda.tex2D(image, np.array([2**32 + 1, 1]), np.array([0, 2**33])), np.float32([0, 0]))
    clamped = cuda.createTextureObject(ResourceDesc.Array(SQUARE), TextureDesc(addressMode=cuda.AddressMode.Clamp))
    assert_exact(cuda.tex2D(clamped, np.uint32(2**32 - 1), np.array([0, -(2**40)])), np.float32([2, 2]))
    assert_exact(cuda.tex2D(clamped, [0.5, 1.5], [2**40, 0]), np.float32([3, 2]))
    layers = cuda.malloc3DArray(cuda.createChannelDesc("float"), (1, 0, 3), ArrayFlags.Layered)
    layers = cuda.memcpyToArray(layers, np.float32([1, 2, 3]).reshape(3, 1, 1))
    t = cuda.createTextureObject(ResourceDesc.Array(layers), TextureDesc())
    assert_exact(cuda.tex1DLayered(t, 0.5, np.array([2**32 + 1, 2**32, 1, -(2**32)])), np.float32([3, 3, 2, 3]))


def test_a_misaligned_place_that_is_known_is_an_error():
    for x in (jnp.asarray(6), jnp.asarray([0, 6]), np.int64(2**33 + 2), 2**40 + 2):
        wrong = f"x holds {np.ravel(x)[-1]}, expected multiples of 4"
        refused(lambda x=x: cuda.surf1Dread(LINE, x), 716, wrong)
        refused(lambda x=x: cuda.surf1Dwrite(1.0, LINE, x), 716, wrong)
    six = jnp.asarray(6)
    refused(lambda: jax.jit(lambda: cuda.surf1Dread(LINE, six))(), 716)
    assert_exact(jax.jit(lambda x: cuda.surf1Dread(LINE, x))(6), np.float32(0))


@pytest.mark.usefixtures("x64")
def test_a_row_that_is_shorter_than_a_wide_access():
    for T, result in (("longlong", np.int64(0)), ("ulonglong2", np.zeros(2, np.uint64))):
        array = cuda.mallocArray(cuda.createChannelDesc("uchar"), 5, 0, STORE)
        for mode in (ZERO, CLAMP, TRAP):
            assert_exact(cuda.surf1Dread(array, 0, mode, T=T), result)
            assert_exact(cuda.surf1Dwrite(result + result.dtype.type(9), array, 0, mode, T=T).texels, array.texels)


# ------------------------------------------------------------------------------------------------------- values


def test_values_that_do_not_fit_are_refused():
    floats, ints = (cuda.mallocArray(cuda.createChannelDesc(name), 2) for name in ("float", "int"))
    refused(lambda: cuda.memcpyToArray(floats, [1e300, 0.0]), 1, "memcpyToArray: src holds 1e+300", "float32")
    refused(lambda: cuda.memcpyToArray(ints, [2**31, 0]), 1, str(2**31))
    refused(lambda: cuda.memcpyToArray(ints, [0.5, 0.0]), 1, "float32")
    assert_exact(cuda.memcpyToArray(floats, [0.1, 2]).texels[:, 0], np.float32([0.1, 2]))


LINEAR, PITCHED = ResourceDesc.Linear, ResourceDesc.Pitch2D
# 64-bit numbers that 32 bits hold, and that they do not, with what is stored of them.
WIDE_NUMBERS = {
    "float": (np.array([0.5, 0.25, 0, np.nan]), np.array([0.1, 1e300, -1e300, 2**24 + 1])),
    "int": (np.array([5, -6, 0, 2**31 - 1]), np.array([2**32 + 7, -(2**40), 2**31, 1])),
    "uint": (np.array([5, 6, 0, 2**32 - 1], np.uint64), np.array([2**32 + 7, 2**63, 1, 2], np.uint64)),
}
STORED = {
    "float": np.float32([0.1, np.inf, -np.inf, 2**24]),
    "int": np.int32([2**31 - 1, -(2**31), 2**31 - 1, 1]),
    "uint": np.uint32([2**32 - 1, 2**32 - 1, 1, 2]),
}
INTO = {
    "memcpyToArray": lambda values, desc, array: cuda.memcpyToArray(array, values).texels[:, 0],
    "surf1Dwrite": lambda values, desc, array: cuda.surf1Dwrite(values, array, 4 * np.arange(4)).texels[:, 0],
    "Linear": lambda values, desc, array: cuda.tex1Dfetch(
        cuda.createTextureObject(LINEAR(values), TextureDesc()), np.arange(4)
    ),
    "Pitch2D": lambda values, desc, array: cuda.tex2D(
        cuda.createTextureObject(PITCHED(values[None], desc), TextureDesc()), np.arange(0.5, 4), 0.5
    ),
}


@pytest.mark.parametrize("how", INTO)
@pytest.mark.parametrize("name", WIDE_NUMBERS)
@pytest.mark.parametrize("x64", [False, True])
def test_wide_numbers_are_taken_whatever_their_values(how, name, x64):
    """The dtype decides: of arrays of NumPy and of JAX, traced or not."""
    exact, inexact = WIDE_NUMBERS[name]
    desc = cuda.createChannelDesc(name)
    with jax.enable_x64(x64):
        array = cuda.mallocArray(desc, 4, 0, STORE)
        store = lambda values: INTO[how](values, desc, array)
        assert_exact(store(exact), exact.astype(desc.dtype))
        assert_exact(store(inexact), STORED[name])
        if x64:
            assert_exact(store(jnp.asarray(inexact)), STORED[name])
            assert_exact(jax.jit(store)(inexact), STORED[name])
    halves = cuda.mallocArray(cuda.createChannelDesc("half"), 4)
    refused(lambda: cuda.memcpyToArray(halves, exact), 1, str(exact.dtype))


def test_numbers_of_python_are_written_to_floats_and_fit_integers():
    assert_exact(cuda.surf1Dwrite(1, LINE, 4).texels[:, 0], np.float32([10, 1, 30, 40]))
    assert_exact(cuda.surf1Dwrite([1, 2.5], LINE, np.array([0, 4])).texels[:, 0], np.float32([1, 2.5, 30, 40]))
    halves = cuda.mallocArray(cuda.createChannelDesc("half"), 2, 0, STORE)
    assert_exact(cuda.surf1Dwrite(1, halves, 2).texels[:, 0], np.float16([0, 1]))
    codes = cuda.mallocArray(cuda.createChannelDesc("uchar"), 2, 0, STORE)
    assert_exact(cuda.surf1Dwrite(255, codes, 1).texels[:, 0], np.uint8([0, 255]))
    written = jax.jit(lambda value, array: cuda.surf1Dwrite(value, array, 0).texels[0, 0])
    for value, array, expected in (
        (1, LINE, np.float32(1)),
        (1.5, LINE, np.float32(1.5)),
        (300, codes, np.uint8(255)),
        (-7, codes, np.uint8(0)),
        (2, halves, np.float16(2)),
    ):
        assert_exact(written(value, array), expected)
    refused(lambda: written(1.5, codes), 1, "float32")
    refused(lambda: cuda.surf1Dwrite(256, codes, 1), 1, "256", "uint8")
    refused(lambda: cuda.surf1Dwrite(-1, codes, 1), 1, "-1")
    refused(lambda: cuda.surf1Dwrite(1.5, codes, 1), 1, "float32")
    refused(lambda: cuda.surf1Dwrite(1e300, LINE, 0), 1, "1e+300")
    refused(lambda: cuda.surf1Dwrite(np.array([2**40]), codes, 0, T="uchar"), 1)
    refused(lambda: cuda.sust_p(np.array([2**40]), codes, 0), 1, "uint32")


# -------------------------------------------------------------------------------------------------------- bytes

DOUBLES = np.array([1.5, -np.pi])
WORDS = DOUBLES.view(np.int32).reshape(2, 2)
INT2 = cuda.mallocArray(cuda.createChannelDesc("int2"), 2, 1)


def check_bytes_of_doubles():
    copied = cuda.memcpy2DToArray(INT2, 0, 0, DOUBLES, 16, 16, 1)
    assert_exact(copied.texels[0], WORDS)
    assert_exact(cuda.memcpyToArray(INT2, 0, 0, DOUBLES, 16, 1).texels[0], WORDS)
    pointer = PitchedPtr(DOUBLES, 16, 2, 1)
    copied = cuda.memcpy3D(Memcpy3DParms(srcPtr=pointer, dstArray=INT2, extent=Extent(2, 1, 1)))
    assert_exact(copied.texels[0], WORDS)
    assert_exact(cuda.memcpy2D(jnp.zeros(16, jnp.uint8), 16, DOUBLES, 16, 16, 1), DOUBLES.view(np.uint8))
    resource = ResourceDesc.Linear(DOUBLES, cuda.createChannelDesc("int2"), 16)
    words = cuda.tex1Dfetch(cuda.createTextureObject(resource, TextureDesc()), np.arange(2))
    assert_exact(words, WORDS)
    return words


def test_doubles_are_bytes():
    check_bytes_of_doubles()
    pairs = np.array([(1, 2), (3, 4)], [("x", np.int32), ("y", np.int32)])
    assert_exact(cuda.memcpyToArray(INT2, 0, 0, pairs, 16, 1).texels[0], np.int32([[1, 2], [3, 4]]))
    refused(lambda: cuda.memcpy2DFromArray(np.zeros(2), 16, INT2, 0, 0, 16, 1), 1, "dst", "float64")


@pytest.mark.usefixtures("x64")
def test_doubles_are_bytes_and_come_back():
    words = check_bytes_of_doubles()
    assert_exact(cuda.hiloint2double(words[:, 1], words[:, 0]), DOUBLES)
    array = cuda.memcpy2DToArray(INT2, 0, 0, jnp.asarray(DOUBLES), 16, 16, 1)
    assert_exact(cuda.memcpy2DFromArray(np.zeros(2), 16, array, 0, 0, 16, 1), DOUBLES)


# ------------------------------------------------------------------------------------------------------- copies


def test_sizes_are_integers_of_numpy_too():
    mipmap = cuda.mallocMipmappedArray(cuda.createChannelDesc("float"), (4, 0, 0), 3)
    mipmap = cuda.memcpyToArray(mipmap, np.float32([1, 2]), level=np.int64(1))
    assert_exact(cuda.memcpyFromArray(mipmap, level=np.int32(1))[:, 0], np.float32([1, 2]))
    assert cuda.getMipmappedArrayLevel(mipmap, np.uint8(1)).extent == (2, 0, 0)
    refused(lambda: cuda.getMipmappedArrayLevel(mipmap, True), 1, "level")
    n = np.int64
    copied = cuda.memcpy2DToArray(SQUARE, n(4), n(1), np.float32([9]), n(4), n(4), n(1))
    assert_exact(copied.texels[..., 0], np.float32([[1, 2], [3, 9]]))
    rows = cuda.mallocPitch(n(8), n(2))
    resource = ResourceDesc.Pitch2D(rows.ptr, cuda.createChannelDesc("float"), n(2), n(2), n(512))
    assert cuda.createTextureObject(resource, TextureDesc()).texture.shape == (2, 2, 1)


def test_a_level_is_filled_from_an_array():
    mipmap = cuda.mallocMipmappedArray(cuda.createChannelDesc("float"), (4, 4, 0), 3)
    level = cuda.getMipmappedArrayLevel(mipmap, 1)
    level = cuda.memcpyToArray(level, np.float32([[1, 2], [3, 4]]))
    filled = cuda.memcpyToArray(mipmap, level, level=1)
    assert_exact(filled.levels[1], level.texels)
    assert_exact(cuda.memcpyToArray(cuda.mallocArray(level.desc, 2, 2), level).texels, level.texels)


@pytest.mark.parametrize("extent", [(0, 0, 0), (0, 2, 1), (2, 0, 1), (2, 2, 0)])
def test_a_copy_of_no_extent_does_nothing(extent):
    target = cuda.mallocArray(cuda.createChannelDesc("float"), 2, 2)
    copied = cuda.memcpy3D(Memcpy3DParms(SQUARE, dstArray=target, extent=Extent(*extent)))
    assert_exact(copied.texels, target.texels)
    pointer = PitchedPtr(np.ones(4, np.float32), 8, 2, 2)
    back = cuda.memcpy3D(Memcpy3DParms(SQUARE, dstPtr=pointer, extent=Extent(*extent)))
    assert_exact(back, np.ones(4, np.float32))
    width, height, _ = extent
    if not width * height:
        assert_exact(cuda.memcpy2DToArray(target, 0, 0, pointer.ptr, 8, 4 * width, height).texels, target.texels)
    refused(lambda: cuda.memcpy3D(Memcpy3DParms(dstArray=target, extent=Extent(*extent))), 1, "none of")


def through_pitched_memory(values, memory, pitch):
    rows = cuda.memcpy2D(memory, pitch, values, 8, 8, 2)
    resource = ResourceDesc.Pitch2D(rows, cuda.createChannelDesc("float"), 2, 2, pitch)
    texture = cuda.createTextureObject(resource, TextureDesc())
    return (cuda.tex2D(texture, jnp.float32([0.5, 1.5]), jnp.float32([0.5, 1.5])) * jnp.float32([2, 3])).sum()


def test_a_gradient_through_bytes_is_an_error_and_never_zero():
    rows, values = cuda.mallocPitch(8, 2), np.ones((2, 2), np.float32)
    loss = lambda values: through_pitched_memory(values, rows.ptr, rows.pitch)
    for differentiate in (jax.grad(loss), jax.jit(jax.grad(loss)), lambda v: jax.jvp(loss, (v,), (v,))):
        with pytest.raises(TypeError, match="memcpy2D: a gradient passes"):
            differentiate(values)
    assert float(jax.jit(loss)(values)) == 5
    beside = jax.jit(jax.grad(lambda v: v.sum() + loss(jax.lax.stop_gradient(v))))
    assert_exact(beside(values), np.ones((2, 2), np.float32))
    of_floats = jax.jit(jax.grad(through_pitched_memory), static_argnums=2)
    typed = np.zeros((2, rows.pitch // 4), np.float32)
    assert_exact(of_floats(values, typed, rows.pitch), np.float32([[2, 0], [0, 3]]))
    with pytest.raises(TypeError, match="memcpy2D: a gradient passes"):  # a part of a number
        jax.grad(lambda v: cuda.memcpy2D(jnp.zeros(4), 2, v, 2, 2, 1).sum())(np.ones(4, np.float32))


# ---------------------------------------------------------------------------------------------------- refusals


def test_arrays_as_surfaces_have_the_size_limits_of_surfaces():
    wide = cuda.mallocArray(cuda.createChannelDesc("uchar"), 32769, 0, STORE)
    refused(lambda: cuda.surf1Dread(wide, 0), 1, "maxSurface1D", "32768")
    refused(lambda: cuda.surf1Dwrite(1, wide, 0), 1, "maxSurface1D")
    refused(lambda: cuda.sust_p(np.uint32([1]), wide, 0), 1, "maxSurface1D")


@pytest.mark.parametrize("color", [(0.0, 0.0, 0.0), np.zeros(3, np.float32), jnp.zeros(3), 0.0])
@pytest.mark.parametrize("mode", cuda.AddressMode)
def test_a_border_color_has_four_components_whatever_the_mode(color, mode):
    desc = TextureDesc(addressMode=mode, borderColor=color)
    refused(lambda: cuda.createTextureObject(ResourceDesc.Array(SQUARE), desc), 1, "borderColor")


def test_allocated_bytes_are_memory_of_every_format():
    memory = cuda.malloc(16)
    memory = cuda.memcpy(memory, np.float32([1, 2, 3]), 12, cuda.MemcpyKind.HostToDevice)
    desc = cuda.createChannelDesc("float2")
    pairs = cuda.createTextureObject(ResourceDesc.Linear(memory, desc, 16), TextureDesc())
    assert_exact(cuda.tex1Dfetch(pairs, np.arange(2)), np.float32([[1, 2], [3, 0]]))
    cleared = cuda.memset(memory, 0, 4)
    assert_exact(np.asarray(cleared).view(np.float32), np.float32([0, 2, 3, 0]))
    rows = ResourceDesc.Pitch2D(memory.reshape(2, 8), cuda.createChannelDesc("float"))
    assert_exact(cuda.tex2D(cuda.createTextureObject(rows, TextureDesc()), 0.5, 1.5), np.float32(3))
    refused(lambda: cuda.memset(memory, 0, 17), 1)
    refused(lambda: cuda.malloc(0), 1)
    refused(lambda: cuda.createTextureObject(ResourceDesc.Linear(memory[:12], desc), TextureDesc()), 1, "uint8")


def test_accesses_of_nothing_are_empty():
    none = np.zeros(0, np.int64)
    for T, dtype, vector, mode in (
        ("float", np.float32, (), ZERO),
        ("uchar", np.uint8, (), CLAMP),
        ("uint2", np.uint32, (2,), TRAP),
        ("short4", np.int16, (4,), ZERO),
    ):
        values = np.zeros((0, *vector), dtype)
        assert_exact(cuda.surf2Dread(SQUARE, none, 0, mode, T=T), values)
        assert_exact(cuda.surf2Dwrite(values, SQUARE, none, 1, mode, T=T).texels, SQUARE.texels)
        read = jax.vmap(lambda x, T=T: cuda.surf2Dread(SQUARE, x, 0, T=T))
        write = jax.vmap(lambda x, v, T=T: cuda.surf2Dwrite(v, SQUARE, x, 0, T=T).texels)
        in_batches = jax.jit(lambda x, v, read=read, write=write: (read(x), write(x[:, 0], v)))
        found, written = in_batches(np.zeros((0, 3), np.int32), values)
        assert found.shape == (0, 3, *vector)
        assert written.shape == (0, 2, 2, 1)
    assert_exact(cuda.sust_p(np.zeros((0, 1), np.float32), SQUARE, none, 0).texels, SQUARE.texels)
    words = cuda.createTextureObject(ResourceDesc.Linear(jnp.arange(4)), TextureDesc())
    assert_exact(cuda.tex1Dfetch(words, none), np.zeros(0, np.int32))
    copies = jax.jit(jax.vmap(lambda v: cuda.memcpy2DToArray(SQUARE, 0, 0, v, 8, 8, 1).texels))
    assert copies(np.zeros((0, 8), np.uint8)).shape == (0, 2, 2, 1)
