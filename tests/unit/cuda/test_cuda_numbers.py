"""`jaxtex.cuda` takes numbers of every type: coordinates as C converts them, values that fit or are refused, bytes."""

import functools
import itertools

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


def test_a_misaligned_place_that_is_known_is_an_error():
    for x in (jnp.asarray(6), jnp.asarray([0, 6]), np.int64(2**33 + 2), 2**40 + 2):
        wrong = f"x holds {np.ravel(x)[-1]}, expected multiples of 4"
        refused(lambda x=x: cuda.surf1Dread(LINE, x), 716, wrong)
        refused(lambda x=x: cuda.surf1Dwrite(1.0, LINE, x), 716, wrong)
    six = jnp.asarray(6)
    refused(lambda: jax.eval_shape(lambda: cuda.surf1Dread(LINE, six)), 716)
    assert_exact(jax.jit(lambda x: cuda.surf1Dread(LINE, x))(6), np.float32(0))


@pytest.mark.usefixtures("x64")
def test_a_row_that_is_shorter_than_a_wide_access():
    array = cuda.mallocArray(cuda.createChannelDesc("uchar"), 5, 0, STORE)
    values = {"longlong": np.int64(9), "ulonglong2": np.full(2, 9, np.uint64)}

    @jax.jit
    def accesses(array):
        return {
            (T, mode): (
                cuda.surf1Dread(array, 0, mode, T=T),
                cuda.surf1Dwrite(value, array, 0, mode, T=T).texels,
            )
            for T, value in values.items()
            for mode in (ZERO, CLAMP, TRAP)
        }

    for (T, _), (read, written) in accesses(array).items():
        assert_exact(read, np.zeros_like(values[T]), values[T].dtype)
        assert_exact(written, array.texels)


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


@pytest.mark.parametrize("x64", [False, True])
def test_wide_numbers_are_taken_whatever_their_values(x64):
    """The dtype decides: of arrays of NumPy and of JAX, traced or not."""
    with jax.enable_x64(x64):
        descs = {name: cuda.createChannelDesc(name) for name in WIDE_NUMBERS}
        arrays = {name: cuda.mallocArray(desc, 4, 0, STORE) for name, desc in descs.items()}
        store = lambda given: {
            (name, how): INTO[how](given[name], descs[name], arrays[name]) for name in given for how in INTO
        }
        exact, inexact = ({name: numbers[k] for name, numbers in WIDE_NUMBERS.items()} for k in (0, 1))
        rounded = {name: values.astype(descs[name].dtype) for name, values in exact.items()}
        of_jax = jax.tree.map(jnp.asarray, inexact) if x64 else {}
        run = jax.jit(lambda given: (store(exact), store(inexact), store(of_jax), store(given)))
        for results, expected in zip(run(of_jax), (rounded, STORED, STORED, STORED)):
            for (name, how), result in results.items():
                np.testing.assert_array_equal(result, expected[name], err_msg=f"{how} of {name}")
                assert result.dtype == descs[name].dtype
    halves = cuda.mallocArray(cuda.createChannelDesc("half"), 4)
    for numbers in exact.values():
        refused(lambda: cuda.memcpyToArray(halves, numbers), 1, str(numbers.dtype))  # noqa: B023, called at once


def test_numbers_of_python_are_written_to_floats_and_fit_integers():
    halves = cuda.mallocArray(cuda.createChannelDesc("half"), 2, 0, STORE)
    codes = cuda.mallocArray(cuda.createChannelDesc("uchar"), 2, 0, STORE)
    traced = ((1, LINE), (1.5, LINE), (300, codes), (-7, codes), (2, halves))

    @jax.jit
    def writes(values, line, halves, codes):
        known = (
            cuda.surf1Dwrite(1, line, 4),
            cuda.surf1Dwrite([1, 2.5], line, np.array([0, 4])),
            cuda.surf1Dwrite(1, halves, 2),
            cuda.surf1Dwrite(255, codes, 1),
        )
        found = [cuda.surf1Dwrite(value, array, 0).texels[0, 0] for value, (_, array) in zip(values, traced)]
        return [array.texels[:, 0] for array in known], found

    known, found = writes([value for value, _ in traced], LINE, halves, codes)
    for actual, expected in zip(
        [*known, *found],
        [
            *(np.float32([10, 1, 30, 40]), np.float32([1, 2.5, 30, 40]), np.float16([0, 1]), np.uint8([0, 255])),
            *(np.float32(1), np.float32(1.5), np.uint8(255), np.uint8(0), np.float16(2)),
        ],
        strict=True,
    ):
        assert_exact(actual, expected, expected.dtype)
    refused(lambda: jax.eval_shape(lambda value: cuda.surf1Dwrite(value, codes, 0), 1.5), 1, "float32")
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


def check_bytes_of_doubles(double):
    """Doubles of NumPy as memory, with what `double` makes of their words."""

    @jax.jit
    def copies(array):
        pointer = PitchedPtr(DOUBLES, 16, 2, 1)
        resource = ResourceDesc.Linear(DOUBLES, cuda.createChannelDesc("int2"), 16)
        words = cuda.tex1Dfetch(cuda.createTextureObject(resource, TextureDesc()), np.arange(2))
        copied = [
            cuda.memcpy2DToArray(array, 0, 0, DOUBLES, 16, 16, 1).texels[0],
            cuda.memcpyToArray(array, 0, 0, DOUBLES, 16, 1).texels[0],
            cuda.memcpy3D(Memcpy3DParms(srcPtr=pointer, dstArray=array, extent=Extent(2, 1, 1))).texels[0],
            words,
        ]
        return copied, cuda.memcpy2D(jnp.zeros(16, jnp.uint8), 16, DOUBLES, 16, 16, 1), double(array, words)

    copied, raw, doubles = copies(INT2)
    for words in copied:
        assert_exact(words, WORDS)
    assert_exact(raw, DOUBLES.view(np.uint8))
    return doubles


def test_doubles_are_bytes():
    pairs = np.array([(1, 2), (3, 4)], [("x", np.int32), ("y", np.int32)])
    copied = check_bytes_of_doubles(lambda array, words: cuda.memcpyToArray(array, 0, 0, pairs, 16, 1).texels[0])
    assert_exact(copied, np.int32([[1, 2], [3, 4]]))
    refused(lambda: cuda.memcpy2DFromArray(np.zeros(2), 16, INT2, 0, 0, 16, 1), 1, "dst", "float64")


@pytest.mark.usefixtures("x64")
def test_doubles_are_bytes_and_come_back():
    def double(array, words):
        array = cuda.memcpy2DToArray(array, 0, 0, jnp.asarray(DOUBLES), 16, 16, 1)
        return (
            cuda.hiloint2double(words[:, 1], words[:, 0]),
            cuda.memcpy2DFromArray(np.zeros(2), 16, array, 0, 0, 16, 1),
        )

    for back in check_bytes_of_doubles(double):
        assert_exact(back, DOUBLES)


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


def test_a_copy_of_no_extent_does_nothing():
    target = cuda.mallocArray(cuda.createChannelDesc("float"), 2, 2)
    pointer = PitchedPtr(np.ones(4, np.float32), 8, 2, 2)
    for extent in ((0, 0, 0), (0, 2, 1), (2, 0, 1), (2, 2, 0)):
        parms = functools.partial(Memcpy3DParms, extent=Extent(*extent))
        assert_exact(cuda.memcpy3D(parms(SQUARE, dstArray=target)).texels, target.texels)
        assert_exact(cuda.memcpy3D(parms(SQUARE, dstPtr=pointer)), np.ones(4, np.float32))
        width, height, _ = extent
        if not width * height:
            assert_exact(cuda.memcpy2DToArray(target, 0, 0, pointer.ptr, 8, 4 * width, height).texels, target.texels)
        refused(lambda: cuda.memcpy3D(parms(dstArray=target)), 1, "none of")  # noqa: B023, called at once


def through_pitched_memory(values, memory, pitch):
    rows = cuda.memcpy2D(memory, pitch, values, 8, 8, 2)
    resource = ResourceDesc.Pitch2D(rows, cuda.createChannelDesc("float"), 2, 2, pitch)
    texture = cuda.createTextureObject(resource, TextureDesc())
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
    assert value == 5
    assert_exact(beside, np.ones((2, 2), np.float32))
    assert_exact(of_floats, np.float32([[2, 0], [0, 3]]))
    with pytest.raises(TypeError, match="memcpy2D: a gradient passes"):  # a part of a number
        jax.grad(lambda v: cuda.memcpy2D(jnp.zeros(4), 2, v, 2, 2, 1).sum())(np.ones(4, np.float32))


# ---------------------------------------------------------------------------------------------------- refusals


def test_arrays_as_surfaces_have_the_size_limits_of_surfaces():
    wide = cuda.mallocArray(cuda.createChannelDesc("uchar"), 32769, 0, STORE)
    refused(lambda: cuda.surf1Dread(wide, 0), 1, "maxSurface1D", "32768")
    refused(lambda: cuda.surf1Dwrite(1, wide, 0), 1, "maxSurface1D")
    refused(lambda: cuda.sust_p(np.uint32([1]), wide, 0), 1, "maxSurface1D")


def test_a_border_color_has_four_components_whatever_the_mode():
    for color, mode in itertools.product(((0.0,) * 3, np.zeros(3, np.float32), jnp.zeros(3), 0.0), cuda.AddressMode):
        desc = TextureDesc(addressMode=mode, borderColor=color)
        refused(lambda: cuda.createTextureObject(ResourceDesc.Array(SQUARE), desc), 1, "borderColor")  # noqa: B023


def test_allocated_bytes_are_memory_of_every_format():
    desc = cuda.createChannelDesc("float2")

    @jax.jit
    def run(memory):
        memory = cuda.memcpy(memory, np.float32([1, 2, 3]), 12, cuda.MemcpyKind.HostToDevice)
        pairs = cuda.createTextureObject(ResourceDesc.Linear(memory, desc, 16), TextureDesc())
        rows = ResourceDesc.Pitch2D(memory.reshape(2, 8), cuda.createChannelDesc("float"))
        third = cuda.tex2D(cuda.createTextureObject(rows, TextureDesc()), 0.5, 1.5)
        return cuda.tex1Dfetch(pairs, np.arange(2)), cuda.memset(memory, 0, 4), third

    memory = cuda.malloc(16)
    pairs, cleared, third = run(memory)
    assert_exact(pairs, np.float32([[1, 2], [3, 0]]))
    assert_exact(np.asarray(cleared).view(np.float32), np.float32([0, 2, 3, 0]))
    assert_exact(third, np.float32(3))
    refused(lambda: cuda.memset(memory, 0, 17), 1)
    refused(lambda: cuda.malloc(0), 1)
    refused(lambda: cuda.createTextureObject(ResourceDesc.Linear(memory[:12], desc), TextureDesc()), 1, "uint8")


def test_accesses_of_nothing_are_empty():
    none, cases = (
        np.zeros(0, np.int64),
        (
            ("float", np.float32, (), ZERO),
            ("uchar", np.uint8, (), CLAMP),
            ("uint2", np.uint32, (2,), TRAP),
            ("short4", np.int16, (4,), ZERO),
        ),
    )

    @jax.jit
    def accesses(square, words, x):
        empty, kept, batches = [], [], []
        for T, dtype, vector, mode in cases:
            values = np.zeros((0, *vector), dtype)
            empty.append(cuda.surf2Dread(square, none, 0, mode, T=T))
            kept.append(cuda.surf2Dwrite(values, square, none, 1, mode, T=T).texels)
            read = jax.vmap(lambda x, T=T: cuda.surf2Dread(square, x, 0, T=T))
            write = jax.vmap(lambda x, v, T=T: cuda.surf2Dwrite(v, square, x, 0, T=T).texels)
            batches.append((read(x), write(x[:, 0], values)))
        kept.append(cuda.sust_p(np.zeros((0, 1), np.float32), square, none, 0).texels)
        words = cuda.createTextureObject(ResourceDesc.Linear(words), TextureDesc())
        copies = jax.vmap(lambda v: cuda.memcpy2DToArray(square, 0, 0, v, 8, 8, 1).texels)
        return empty, kept, batches, cuda.tex1Dfetch(words, none), copies(np.zeros((0, 8), np.uint8))

    empty, kept, batches, fetched, copied = accesses(SQUARE, jnp.arange(4), np.zeros((0, 3), np.int32))
    for (_, dtype, vector, _), read, (found, written) in zip(cases, empty, batches):
        assert_exact(read, np.zeros((0, *vector), dtype), dtype)
        assert found.shape == (0, 3, *vector)
        assert written.shape == (0, 2, 2, 1)
    for texels in kept:
        assert_exact(texels, SQUARE.texels)
    assert_exact(fetched, np.zeros(0, np.int32))
    assert copied.shape == (0, 2, 2, 1)
