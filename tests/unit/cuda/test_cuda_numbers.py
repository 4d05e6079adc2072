"""`jaxtex.cuda` takes numbers of every type: coordinates as C converts them, values that fit or are refused, bytes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtex import cuda
from jaxtex.cuda import ArrayFlags, ResourceDesc, TextureDesc
from tests.support.tolerances import assert_exact, named
from tests.unit.cuda.test_cuda import compiled, refused, traced

STORE = ArrayFlags.SurfaceLoadStore
ZERO, CLAMP, TRAP = cuda.SurfaceBoundaryMode.Zero, cuda.SurfaceBoundaryMode.Clamp, cuda.SurfaceBoundaryMode.Trap
LINEAR, PITCHED = ResourceDesc.Linear, ResourceDesc.Pitch2D
FLOAT, UCHAR = cuda.createChannelDesc("float"), cuda.createChannelDesc("uchar")
FILLED = ((4, 0), np.float32([10, 20, 30, 40])), ((2, 2), np.float32([[1, 2], [3, 4]]))
fill = lambda: [cuda.memcpyToArray(cuda.mallocArray(FLOAT, *extent, STORE), values) for extent, values in FILLED]
LINE, SQUARE = jax.jit(fill)()


def test_a_misaligned_place_that_is_known_is_an_error():
    for x in (*jax.device_put((np.int32(6), np.int32([0, 6]))), np.int64(2**33 + 2), 2**40 + 2):
        wrong = f"x holds {np.ravel(x)[-1]}, expected multiples of 4"
        refused(lambda x=x: cuda.surf1Dread(LINE, x), 716, wrong)
        refused(lambda x=x: cuda.surf1Dwrite(1.0, LINE, x), 716, wrong)
    six = jax.device_put(np.int32(6))
    refused(lambda: jax.eval_shape(lambda: cuda.surf1Dread(LINE, six)), 716)
    assert_exact(jax.jit(lambda x: cuda.surf1Dread(LINE, x))(6), np.float32(0))


def test_a_row_that_is_shorter_than_a_wide_access(x64):
    values = {"longlong": np.int64(9), "ulonglong2": np.full(2, 9, np.uint64)}

    @jax.jit
    def accesses():
        array = cuda.mallocArray(UCHAR, 5, 0, STORE)
        return {
            (T, mode): (
                cuda.surf1Dread(array, 0, mode, T=T),
                cuda.surf1Dwrite(value, array, 0, mode, T=T).texels,
            )
            for T, value in values.items()
            for mode in (ZERO, CLAMP, TRAP)
        }

    for (T, _), (read, written) in accesses().items():
        assert_exact(read, np.zeros_like(values[T]), values[T].dtype)
        assert_exact(written, np.zeros((5, 1), np.uint8))


# 64-bit numbers, and what is stored of them.
WIDE_NUMBERS = {
    "float": (np.array([0.1, 1e300, np.nan, 2**24 + 1]), np.float32([0.1, np.inf, np.nan, 2**24])),
    "int": (np.array([2**32 + 7, -(2**40), 2**31, 1]), np.int32([2**31 - 1, -(2**31), 2**31 - 1, 1])),
    "uint": (np.array([2**32 + 7, 2**63, 1, 2], np.uint64), np.uint32([2**32 - 1, 2**32 - 1, 1, 2])),
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


@pytest.mark.parametrize("x64", [False, True])
def test_wide_numbers_are_taken_whatever_their_values(x64):
    """The dtype decides: of arrays of NumPy, and traced ones of JAX."""
    with jax.enable_x64(x64):
        descs = {name: cuda.createChannelDesc(name) for name in WIDE_NUMBERS}
        given = {name: values for name, (values, _) in WIDE_NUMBERS.items()}
        array = lambda T: cuda.mallocArray(descs[T], 4, 0, STORE)
        store = lambda given: {(T, how): INTO[how](given[T], descs[T], array(T)) for T in given for how in INTO}
        found = jax.jit(store)(given) if x64 else jax.jit(lambda: store(given))()
    for (name, how), result in found.items():
        with named(how, name):
            np.testing.assert_array_equal(result, WIDE_NUMBERS[name][1])
            assert result.dtype == descs[name].dtype
    fill = lambda numbers: cuda.memcpyToArray(cuda.mallocArray(cuda.createChannelDesc("half"), 4), numbers)
    for numbers in given.values():
        refused(lambda: jax.eval_shape(lambda: fill(numbers)), 1, str(numbers.dtype))  # noqa: B023, called at once


def test_numbers_of_python_are_written_to_floats_and_fit_integers():
    descs = cuda.createChannelDesc("half"), UCHAR
    halves, codes = jax.jit(lambda: [cuda.mallocArray(desc, 2, 0, STORE) for desc in descs])()
    traced = ((1, LINE, 1), (1.5, LINE, 1.5), (300, codes, 255), (-7, codes, 0), (2, halves, 2))
    store = lambda values: [cuda.surf1Dwrite(v, array, 0).texels[0, 0] for v, (_, array, _) in zip(values, traced)]
    fitting = [expected for *_, expected in traced]
    for found in jax.jit(lambda values: (store(values), store(fitting)))([value for value, *_ in traced]):
        for actual, (_, array, expected) in zip(found, traced, strict=True):
            assert_exact(actual, expected, array.texels.dtype)
    assert_exact(cuda.surf1Dwrite([1, 2.5], LINE, np.array([0, 4])).texels, np.float32([[1], [2.5], [30], [40]]))
    refused(lambda: jax.eval_shape(lambda value: cuda.surf1Dwrite(value, codes, 0), 1.5), 1, "float32")
    refused(lambda: cuda.surf1Dwrite(256, codes, 1), 1, "256", "uint8")
    refused(lambda: cuda.surf1Dwrite(-1, codes, 1), 1, "-1")
    refused(lambda: cuda.surf1Dwrite(1.5, codes, 1), 1, "float32")
    refused(lambda: cuda.surf1Dwrite(1e300, LINE, 0), 1, "1e+300")
    refused(lambda: cuda.memcpyToArray(LINE, [1e300, 0.0, 0, 0]), 1, "memcpyToArray: src holds 1e+300", "float32")
    refused(lambda: cuda.surf1Dwrite(np.array([2**40]), codes, 0, T="uchar"), 1)
    refused(lambda: cuda.sust_p(np.array([2**40]), codes, 0), 1, "uint32")


DOUBLES = np.array([1.5, -np.pi])
WORDS = DOUBLES.view(np.int32).reshape(2, 2)
INT2 = cuda.mallocArray(cuda.createChannelDesc("int2"), 2, 1)


@pytest.mark.parametrize("x64", [False, True])
def test_doubles_are_bytes(x64):
    """Of NumPy, as memory, and with 64 bits of JAX; structs are bytes, too."""
    pairs = np.array([(1, 2), (3, 4)], [("x", np.int32), ("y", np.int32)])

    @jax.jit
    def copies(array):
        resource = LINEAR(DOUBLES, cuda.createChannelDesc("int2"), 16)
        words = cuda.tex1Dfetch(cuda.createTextureObject(resource, TextureDesc()), np.arange(2))
        copied = [cuda.memcpy2DToArray(array, 0, 0, DOUBLES, 16, 16, 1).texels[0], words]
        back = []
        if x64:
            array = cuda.memcpy2DToArray(array, 0, 0, jnp.asarray(DOUBLES), 16, 16, 1)
            back = [cuda.hiloint2double(words[:, 1], words[:, 0])]
            back += [cuda.memcpy2DFromArray(np.zeros(2), 16, array, 0, 0, 16, 1)]
        raw = cuda.memcpy2D(jnp.zeros(16, jnp.uint8), 16, DOUBLES, 16, 16, 1)
        return copied, back, raw, cuda.memcpyToArray(array, 0, 0, pairs, 16, 1).texels[0]

    with jax.enable_x64(x64):
        copied, back, raw, of_pairs = copies(INT2)
    for found, expected in ((copied, WORDS), (back, DOUBLES), ([raw], DOUBLES.view(np.uint8))):
        for numbers in found:
            assert_exact(numbers, expected, expected.dtype)
    assert_exact(of_pairs, np.int32([[1, 2], [3, 4]]))
    if not x64:
        refused(lambda: cuda.memcpy2DFromArray(np.zeros(2), 16, INT2, 0, 0, 16, 1), 1, "dst", "float64")


@compiled(np.float32([9]), np.float32([1, 2]))
def test_sizes_are_integers_of_numpy_too(nine, pair):
    n, mipmap = np.int64, cuda.mallocMipmappedArray(FLOAT, (4, 0, 0), 3)
    mipmap = cuda.memcpyToArray(mipmap, pair, level=n(1))
    assert cuda.getMipmappedArrayLevel(mipmap, np.uint8(1)).extent == (2, 0, 0)
    refused(lambda: cuda.getMipmappedArrayLevel(mipmap, True), 1, "level")
    copied = cuda.memcpy2DToArray(SQUARE, n(4), n(1), nine, n(4), n(4), n(1))
    resource = PITCHED(cuda.mallocPitch(n(8), n(2)).ptr, FLOAT, n(2), n(2), n(512))
    return (
        (cuda.memcpyFromArray(mipmap, level=np.int32(1)), np.float32([[1], [2]])),
        (copied.texels[..., 0], np.float32([[1, 2], [3, 9]])),
        (cuda.memcpy2DToArray(SQUARE, 0, 0, nine, 4, n(0), 1).texels, np.asarray(SQUARE.texels)),
        (cuda.createTextureObject(resource, TextureDesc()).texture.texels, np.zeros((2, 2, 1), np.float32)),
    )


def through_pitched_memory(values, memory, pitch):
    rows = cuda.memcpy2D(memory, pitch, values, 8, 8, 2)
    texture = cuda.createTextureObject(PITCHED(rows, FLOAT, 2, 2, pitch), TextureDesc())
    return (cuda.tex2D(texture, jnp.float32([0.5, 1.5]), jnp.float32([0.5, 1.5])) * jnp.float32([2, 3])).sum()


def test_a_gradient_through_bytes_is_an_error_and_never_zero():
    rows, values = cuda.mallocPitch(8, 2), np.ones((2, 2), np.float32)
    loss = lambda values: through_pitched_memory(values, rows.ptr, rows.pitch)
    for differentiate in (jax.grad(loss), lambda v: jax.jvp(loss, (v,), (v,))):
        with pytest.raises(TypeError, match="memcpy2D: a gradient passes"):
            jax.eval_shape(differentiate, values)
    typed = np.zeros((2, rows.pitch // 4), np.float32)

    @jax.jit
    def run(values):
        beside = jax.grad(lambda v: v.sum() + loss(jax.lax.stop_gradient(v)))
        return loss(values), beside(values), jax.grad(through_pitched_memory)(values, typed, rows.pitch)

    value, beside, of_floats = run(values)
    assert float(value) == 5
    assert_exact(beside, np.ones((2, 2), np.float32))
    assert_exact(of_floats, np.float32([[2, 0], [0, 3]]))
    with pytest.raises(TypeError, match="memcpy2D: a gradient passes"):  # a part of a number
        jax.eval_shape(jax.grad(lambda v: cuda.memcpy2D(jnp.zeros(4), 2, v, 2, 2, 1).sum()), np.ones(4, np.float32))


@traced
def test_arrays_as_surfaces_have_the_size_limits_of_surfaces():
    wide = cuda.mallocArray(UCHAR, 32769, 0, STORE)
    refused(lambda: cuda.surf1Dread(wide, 0), 1, "maxSurface1D", "32768")
    refused(lambda: cuda.surf1Dwrite(1, wide, 0), 1, "maxSurface1D")
    refused(lambda: cuda.sust_p(np.uint32([1]), wide, 0), 1, "maxSurface1D")


@compiled(np.float32([1, 2, 3]))
def test_allocated_bytes_are_memory_of_every_format(values):
    desc, allocated = cuda.createChannelDesc("float2"), cuda.malloc(16)
    refused(lambda: cuda.memset(allocated, 0, 17), 1)
    refused(lambda: cuda.malloc(0), 1)
    refused(lambda: cuda.createTextureObject(LINEAR(allocated[:12], desc), TextureDesc()), 1, "uint8")
    memory = cuda.memcpy(allocated, values, 12, cuda.MemcpyKind.HostToDevice)
    pairs = cuda.createTextureObject(LINEAR(memory, desc, 16), TextureDesc())
    rows = cuda.createTextureObject(PITCHED(memory.reshape(2, 8), FLOAT), TextureDesc())
    return (
        (cuda.tex1Dfetch(pairs, np.arange(2)), np.float32([[1, 2], [3, 0]])),
        (cuda.memset(memory, 0, 4), np.float32([0, 2, 3, 0]).view(np.uint8)),
        (cuda.tex2D(rows, 0.5, 1.5), np.float32(3)),
    )


def test_batches_of_nothing_are_empty():
    cases = ("float", np.float32, (), ZERO), ("uint2", np.uint32, (2,), TRAP), ("short4", np.int16, (4,), CLAMP)
    words, none = LINEAR(np.arange(4, dtype=np.int32)), np.zeros(0, np.int64)

    def batches(x):
        found, t = {}, cuda.createTextureObject(words, TextureDesc())
        for T, dtype, vector, mode in cases:
            values = np.zeros((0, *vector), dtype)
            read = jax.vmap(lambda x, T=T, mode=mode: cuda.surf2Dread(SQUARE, x, 0, mode, T=T))
            write = jax.vmap(lambda x, v, T=T, mode=mode: cuda.surf2Dwrite(v, SQUARE, x, 0, mode, T=T).texels)
            found[T] = read(x), write(x[:, 0], values)
        copies = jax.vmap(lambda v: cuda.memcpy2DToArray(SQUARE, 0, 0, v, 8, 8, 1).texels)
        stored = cuda.sust_p(np.zeros((0, 1), np.float32), SQUARE, none, 0).texels
        return found, copies(np.zeros((0, 8), np.uint8)), stored, cuda.tex1Dfetch(t, none)

    found, copied, stored, fetched = jax.eval_shape(batches, np.zeros((0, 3), np.int32))
    for T, dtype, vector, _ in cases:
        read, written = found[T]
        assert (read.shape, read.dtype) == ((0, 3, *vector), dtype)
        assert written.shape == (0, 2, 2, 1)
    assert (copied.shape, stored.shape, fetched.shape) == ((0, 2, 2, 1), (2, 2, 1), (0,))
