"""CUDA's surface functions: what a card did, every type against bytes, traps, refusals, gradients, known programs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify

from jaxtex import cuda
from jaxtex.cuda import ArrayFlags, ChannelFormatKind, CudaError, ResourceDesc, SurfaceBoundaryMode, TextureDesc
from tests.support import recordings
from tests.support.tolerances import assert_exact

recorded = functools.partial(recordings.arrays, "surface_unit")
STORE, LAYERED, CUBEMAP = ArrayFlags.SurfaceLoadStore, ArrayFlags.Layered, ArrayFlags.Cubemap
MODES = {"zero": SurfaceBoundaryMode.Zero, "clamp": SurfaceBoundaryMode.Clamp, "trap": SurfaceBoundaryMode.Trap}
# The shape of each recorded kind: extent, flags, the name of its functions, and which of x, y, z they take.
KINDS = {
    "1d": ((6, 0, 0), 0, "1D", (0,)),
    "2d": ((6, 4, 0), 0, "2D", (0, 1)),
    "3d": ((6, 3, 4), 0, "3D", (0, 1, 2)),
    "1dlayered": ((6, 0, 3), LAYERED, "1DLayered", (0, 2)),
    "2dlayered": ((6, 4, 3), LAYERED, "2DLayered", (0, 1, 2)),
    "cubemap": ((4, 4, 6), CUBEMAP, "Cubemap", (0, 1, 2)),
    "cubemaplayered": ((4, 4, 12), CUBEMAP | LAYERED, "CubemapLayered", (0, 1, 2)),
}
UNTYPED = {1: "uchar", 2: "ushort", 4: "uint", 8: "uint2", 16: "uint4"}
NORMALIZED = {
    "un8x4": ChannelFormatKind.UnsignedNormalized8X4,
    "un16x2": ChannelFormatKind.UnsignedNormalized16X2,
    "sn8x4": ChannelFormatKind.SignedNormalized8X4,
    "sn16x1": ChannelFormatKind.SignedNormalized16X1,
}


def numbers_of(desc, memory):
    """Bytes as the numbers that an array of this format holds."""
    return memory.reshape(-1).view(np.dtype(cuda.createChannelDesc(desc).dtype))


def allocate(kind, desc, numbers):
    """An array of a kind that holds these numbers, of shape (slices * rows * width * channels,)."""
    extent, flags, _, _ = KINDS[kind]
    array = cuda.malloc3DArray(cuda.createChannelDesc(desc), extent, flags | STORE)
    return cuda.memcpyToArray(array, numbers.reshape(array.texels.shape))


def memory_of(array, like):
    return np.asarray(array.texels).reshape(-1).view(np.uint8).reshape(like.shape)


def functions(kind):
    name = KINDS[kind][2]
    return getattr(cuda, f"surf{name}read"), getattr(cuda, f"surf{name}write")


def typed(values, T, access):
    """Bytes, (n, size), as the numbers that T names: (n,) or (n, length)."""
    numbers = np.ascontiguousarray(values).view(access)
    return numbers if T[-1] in "24" else numbers[:, 0]


RECORDED = sorted({tuple(key.split("/")[:2]) for key in recorded() if key.split("/")[0] in KINDS})


def recorded_access(name):
    """The numbers that an array holds before a recorded access, its places, and what it reads or writes."""
    kind, desc, size, *_ = name.split("/")
    x, y, z = recorded()[f"{name}/coords"]
    if (LAYERED | CUBEMAP) & KINDS[kind][1]:  # what the card saw
        z = z & 0xFFFF
    base = {1: np.uint8, 2: np.uint16}.get(int(size), np.uint32)
    places = tuple((x, y, z)[k] for k in KINDS[kind][3])
    values = typed(recorded()[f"{name}/values"], UNTYPED[int(size)], base)
    return numbers_of(desc, recorded()[f"{name}/before"]), places, values


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "desc"), RECORDED, ids="-".join)
def test_recorded_accesses_are_equal(kind, desc):
    """Reads and writes in both modes, in every byte: but for layers from 65536 on, which the card wraps to 16 bits."""
    read, write = functions(kind)

    @jax.jit
    def run(given):
        results = {}
        for name, (before, places, values) in given.items():
            _, _, size, mode, how = name.split("/")
            array, last = allocate(kind, desc, before), {"boundaryMode": MODES[mode], "T": UNTYPED[int(size)]}
            results[name] = read(array, *places, **last) if how == "read" else write(values, array, *places, **last)
        return results

    names = {key.rpartition("/")[0] for key in recorded() if key.startswith(f"{kind}/{desc}/")}
    given = {name: recorded_access(name) for name in sorted(names)}
    for name, found in run(given).items():
        actual, expected = found, given[name][-1]
        if name.endswith("write"):
            expected = recorded()[f"{name}/after"]
            actual = memory_of(found, expected)
        np.testing.assert_array_equal(actual, expected, err_msg=name)


FORMATTED = sorted({key.split("/")[1] for key in recorded() if key.startswith("formatted")})
FRACTION_CODES = {desc: recorded()[f"rounding/{desc}/in"] for desc in NORMALIZED}


@pytest.mark.parametrize("names", [[*NORMALIZED, "half2"], pytest.param(FORMATTED, marks=pytest.mark.slow)])
def test_recorded_formatted_stores_are_equal(names):
    """Of formats in modes that take turns, or in both, and the codes of fractions; others in tests/fuzz/cuda.py."""
    descs = {name: cuda.createChannelDesc(NORMALIZED.get(name, name)) for name in names}

    def word(desc):
        kind = ChannelFormatKind.Float if desc.is_normalized else desc.storage[0]
        return {ChannelFormatKind.Float: np.float32, ChannelFormatKind.Signed: np.int32}.get(kind, np.uint32)

    def case(name, mode):
        return (recorded()[f"formatted/{name}/{mode}/{key}"] for key in ("coords", "values", "before"))

    given = {
        (name, mode): (tuple(coords), values.view(word(desc)), before.reshape(-1).view(desc.dtype))
        for k, (name, desc) in enumerate(descs.items())
        for mode in ("zero", "clamp", "zero")[k % 2 :][: 1 + (names is FORMATTED)]
        for coords, values, before in [case(name, mode)]
    }

    @jax.jit
    def run(given, fractions):
        stores, codes = {}, {}
        for (name, mode), (coords, values, numbers) in given.items():
            array = cuda.mallocArray(descs[name], 12, 10, STORE)
            array = cuda.memcpyToArray(array, numbers.reshape(array.texels.shape))
            stores[name, mode] = cuda.sust_p(values, array, *coords, boundaryMode=MODES[mode])
        for name, data in fractions.items():
            array = cuda.mallocArray(cuda.createChannelDesc(NORMALIZED[name]), len(data), 0, STORE)
            padded = jnp.pad(data, ((0, 0), (0, 4 - data.shape[1])))
            codes[name] = cuda.sust_p(padded, array, np.arange(len(data)), boundaryMode=MODES["zero"]).texels
        return stores, codes

    stores, codes = run(given, FRACTION_CODES)
    for (name, mode), stored in stores.items():
        after = recorded()[f"formatted/{name}/{mode}/after"]
        np.testing.assert_array_equal(memory_of(stored, after), after, err_msg=f"{name}, {mode}")
    for name, found in codes.items():
        expected = recorded()[f"rounding/{name}/out"]
        np.testing.assert_array_equal(np.asarray(found).view(expected.dtype), expected, err_msg=name)


def test_traps_and_misaligned_places_are_named():
    array = cuda.mallocArray(cuda.createChannelDesc("float"), 4, 3, STORE)
    reads = {
        mode: jax.jit(checkify.checkify(lambda x, y, m=m: cuda.surf2Dread(array, x, y, m), errors=checkify.user_checks))
        for mode, m in MODES.items()
    }
    report = lambda mode, x, y: reads[mode](np.array(x), np.array(y))[0].get()
    assert report("trap", [0, 12], [0, 2]) is None
    assert "surf2Dread: sample 1 is outside the surface: x=16, y=2." in report("trap", [0, 16], [0, 2])
    assert "surf2Dread: sample 0 is outside the surface: x=4, y=3." in report("trap", [4, 0], [3, 0])
    for mode in MODES:
        message = report(mode, [0, 6], [1, 1])
        assert "surf2Dread: sample 1 has an x that is no multiple of the 4 bytes of its access: x=6, y=1." in message
    assert report("zero", [-4, 0], [0, 0]) is None
    write = lambda x: cuda.surf2Dwrite(1.0, array, x, 0)
    message = jax.jit(checkify.checkify(write, errors=checkify.user_checks))(-4)[0].get()
    assert "surf2Dwrite: sample 0 is outside the surface: x=-4, y=0." in message


FLOATS = cuda.mallocArray(cuda.createChannelDesc("float"), 8, 8, STORE)


def test_data_of_another_type_is_told_the_type_that_cuda_deduces():
    """Before anything of its coordinates, which count the bytes of that type; with it, the program is traced."""
    x = np.arange(2)
    for data, T in (
        (np.arange(2, dtype=np.uint16), "ushort"),
        (np.arange(2, dtype=np.int8), "char"),
        (np.arange(8, dtype=np.uint8).reshape(2, 4), "uchar4"),
        (np.arange(4, dtype=np.float16).reshape(2, 2), "half2"),
        (np.int32(7), "int"),
        ((np.uint16(1), np.uint16(2)), "ushort2"),
    ):
        base = np.asarray(data).dtype
        size = base.itemsize * int(T[-1] if T[-1].isdigit() else 1)
        write = functools.partial(cuda.surf2Dwrite, data, FLOATS, size * x, 0)
        with pytest.raises(CudaError, match=f"data has dtype {base}, expected float32.*pass T='{T}'"):
            write()
        assert jax.eval_shape(functools.partial(write, T=T)).kind == FLOATS.kind


def test_gradients():
    """Of single channels of a vector, and of words; others are in tests/fuzz/gradients.py."""
    array = cuda.mallocArray(cuda.createChannelDesc("float4"), 3, 2, STORE)
    halves = cuda.mallocArray(cuda.createChannelDesc("half2"), 3, 0, STORE)

    def moved(texels, channel):
        memory = cuda.surf2Dwrite(channel, cuda.memcpyToArray(array, texels), 20, 1, T="float")
        return (cuda.surf2Dread(memory, 4 * np.arange(12), 1, T="float") * jnp.arange(1.0, 13)).sum()

    of_words = lambda data: cuda.sust_p(data, halves, np.arange(3)).texels.astype(jnp.float32).sum()
    run = jax.jit(lambda texels, data: (jax.grad(moved, (0, 1))(texels, 2.0), jax.grad(of_words)(data)))
    (to_texels, to_channel), to_words = run(np.ones((2, 3, 4), np.float32), np.ones((3, 4), np.float32))
    assert_exact(to_texels, np.concatenate([np.zeros(12), [1, 2, 3, 4, 5, 0, *range(7, 13)]]).reshape(2, 3, 4))
    assert to_channel == 6
    assert_exact(to_words, np.float32([[1, 1, 0, 0]] * 3))


def test_vectors_are_arrays_or_tuples_of_components():
    """As a port writes them: ``make_float4(a, b, c, d)``, or the components themselves."""
    array = cuda.mallocArray(cuda.createChannelDesc("float4"), 5, 3, STORE)
    x, y = np.arange(5)[None, :], np.arange(3)[:, None]
    components = (np.float32(x), 2.0, np.float32(y), np.ones((3, 1), np.float32))
    bordered = TextureDesc(borderColor=cuda.make_float4(1, 2, 3, 4), addressMode=cuda.AddressMode.Border)

    @jax.jit
    def run(array, components):
        vector = cuda.make_float4(*components)
        written = [cuda.surf2Dwrite(data, array, 16 * x, y) for data in (vector, components)]
        stored = [cuda.sust_p(data, array, x, y) for data in (vector, components)]
        t = cuda.createTextureObject(ResourceDesc.Array(array), bordered)
        sides = cuda.make_float2(1, 0), cuda.make_float2(0, 1)
        colors = cuda.tex2D(t, -1.0, 0.5), cuda.tex2DGrad(t, -1.0, 0.5, *sides)
        part = cuda.surf2Dwrite((1.0, 2.0), written[0], 8, 0, T="float2").texels[0, 0]
        return vector, [array.texels for array in (*written, *stored)], colors, part

    vector, arrays, colors, part = run(array, components)
    for texels in arrays:
        assert_exact(texels, vector)
    for color in colors:
        assert_exact(color, np.float32([1, 2, 3, 4]))
    assert_exact(part, np.float32([0, 2, 1, 2]))
