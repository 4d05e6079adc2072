"""Accesses of surfaces by CUDA's names, drawn at random: each is compared with `memory_oracle`."""

import functools

import jax
import numpy as np

from jaxtex import cuda
from jaxtex.cuda import ArrayFlags, SurfaceBoundaryMode
from tests.fuzz.draws import assert_same, naming, pick
from tests.fuzz.integers import draw_indices, given, named, run, shape_of
from tests.oracles import memory as oracle

STORE, LAYERED, CUBEMAP = ArrayFlags.SurfaceLoadStore, ArrayFlags.Layered, ArrayFlags.Cubemap
MISALIGNED = 716
# Of each kind: the extents, the flags, and which of x, y, z its functions take.
KINDS = {
    "1D": ([(6, 0, 0), (777, 0, 0)], 0, "x"),
    "2D": ([(6, 4, 0), (33, 70, 0), (5, 1, 0)], 0, "xy"),
    "3D": ([(6, 3, 4), (17, 20, 9)], 0, "xyz"),
    "1DLayered": ([(6, 0, 3), (40, 0, 130)], LAYERED, "xz"),
    "2DLayered": ([(6, 4, 3), (20, 30, 5)], LAYERED, "xyz"),
    "Cubemap": ([(4, 4, 6), (19, 19, 6)], CUBEMAP, "xyz"),
    "CubemapLayered": ([(4, 4, 12), (13, 13, 12)], CUBEMAP | LAYERED, "xyz"),
}
STORED = tuple((extent, flags | STORE) for extents, flags, _ in KINDS.values() for extent in extents)
FORMATS = ("uchar", "uchar2", "char4", "ushort", "short2", "half", "half4", "uint", "int2", "float", "float2", "float4")
DTYPES = {"char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "half": "float16"}
DTYPES |= {"int": "int32", "uint": "uint32", "float": "float32", "longlong": "int64", "ulonglong": "uint64"}
SAME_AS_FORMAT = None
NAMES = [SAME_AS_FORMAT, SAME_AS_FORMAT, "uchar", "char2", "uchar4", "ushort", "short4", "half2", "uint", "int", "int2"]
NAMES += ["uint4", "float", "float4"]
WIDE_NAMES = ["longlong", "ulonglong", "longlong2"]
MODES = {"zero": SurfaceBoundaryMode.Zero, "clamp": SurfaceBoundaryMode.Clamp, "trap": SurfaceBoundaryMode.Trap}


def parsed(name):
    """The dtype of a type of CUDA, and the length of the vector, or None."""
    length = int(name[-1]) if name[-1].isdigit() else None
    return np.dtype(DTYPES[name.rstrip("124")]), length


def size_of(name):
    dtype, length = parsed(name)
    return dtype.itemsize * (length or 1)


def plain_bytes(rng, shape):
    """Bytes that are no float's NaN."""
    return rng.integers(0, 0x70, shape, np.uint8)


@functools.cache
def arrays_of(formats, extents):
    """An array of each format, extent and flags, all from one program."""
    keys = [(name, *more) for name in formats for more in extents]
    make = lambda: [cuda.malloc3DArray(cuda.createChannelDesc(name), *more) for name, *more in keys]
    return dict(zip(keys, jax.jit(make)()))


def filled(array, memory, dtype):
    """The array with bytes for its texels."""
    return cuda.memcpyToArray(array, jax.device_put(memory.reshape(-1).view(dtype).reshape(array.texels.shape)))


def bytes_of(numbers, *shape):
    return np.ascontiguousarray(numbers).reshape(-1).view(np.uint8).reshape(shape)


class Accesses:
    """An array, and the accesses of one function to it."""

    def __init__(self, rng, integers, samples, *, x_in_bytes=True):
        self.kind, self.format = pick(rng, list(KINDS)), pick(rng, FORMATS)
        extents, self.flags, self.axes = KINDS[self.kind]
        self.extent = pick(rng, extents)
        self.x_in_bytes = x_in_bytes
        self.T = pick(rng, NAMES + WIDE_NAMES * 2 if integers.x64 else NAMES) if x_in_bytes else SAME_AS_FORMAT
        self.access = self.T or self.format
        self.size = size_of(self.access)
        slices, rows = max(self.extent[2], 1), max(self.extent[1], 1)
        self.memory = plain_bytes(rng, (slices, rows, self.extent[0] * size_of(self.format)))
        samples = int(rng.choice([0, 5, 1000, samples], p=[0.04, 0.06, 0.1, 0.8]))
        sizes = {"x": self.memory.shape[2] // self.size, "y": rows, "z": slices}
        steps = {"x": self.size if x_in_bytes else 1, "y": 1, "z": 1}
        of_axes = ([of[name] for name in self.axes] for of in (sizes, steps))
        drawn = draw_indices(rng, integers, next(of_axes), samples, x=0, steps=next(of_axes))
        self.indices = dict(zip(self.axes, drawn))
        if x_in_bytes and integers.origin != "python" and rng.random() < 0.2:  # some of x within a unit
            off = (rng.random(self.indices["x"].shape) < 0.1).astype(self.indices["x"].dtype)
            self.indices["x"] = self.indices["x"] + off
        self.shape = shape_of(self.indices.values())
        self.passed = [given(integers, self.indices[name]) for name in self.axes]

    @property
    def count(self):
        return int(np.prod(self.shape))

    @property
    def misaligned(self):
        return bool(oracle.misaligned(self.indices["x"], self.size).any())

    def landing(self, mode):
        """The row, the first byte and whether it is inside, of each access."""
        z, y = (oracle.as_int(self.indices.get(name, 0)) for name in "zy")
        # Of a cubemap and of layers one that is out of range is the last; y is the nearest.
        if mode == "clamp":
            last = self.memory.shape[0] - 1
            nearest = np.where((z >= 0) & (z <= last), z, last) if self.flags else np.clip(z, 0, last)
            z, y = nearest, np.clip(y, 0, self.memory.shape[1] - 1)
        if self.x_in_bytes:
            return oracle.place_of_bytes(self.indices["x"], [z, y], self.memory.shape, self.size, mode)
        units = self.memory.shape[-1] // self.size
        flat, inside = oracle.place([z, y, oracle.as_int(self.indices["x"])], [*self.memory.shape[:2], units], mode)
        return flat // units, flat % units * self.size, inside

    def build(self):
        array = arrays_of(FORMATS, STORED)[self.format, self.extent, self.flags | STORE]
        return filled(array, self.memory, parsed(self.format)[0])

    def __str__(self):
        places = ", ".join(f"{name}={k}" for name, k in zip(self.indices, named(self.indices.values())))
        return f"{self.kind} {self.format}{self.extent} as {self.T}, {places}"


def typed(values, name):
    """Bytes, S + (size,), as the numbers of a type: S, or S + (length,)."""
    dtype, length = parsed(name)
    numbers = values.view(dtype)
    return numbers if length else numbers[..., 0]


def check_surface(rng, integers, samples):
    """Reads and writes of surfaces, x in bytes."""
    place, mode, writes = Accesses(rng, integers, samples), pick(rng, list(MODES)), rng.random() < 0.5
    jitted, traced = rng.random() < 0.5, integers.origin == "jax"
    text = f"{'jitted ' if jitted else ''}surf{place.kind}{'write' if writes else 'read'} {mode}, {place}"
    array, values = place.build(), plain_bytes(rng, (*place.shape, place.size))
    row, byte, inside = place.landing(mode)
    flat_memory = place.memory.reshape(-1, place.memory.shape[-1])

    def read(indices, array):
        return getattr(cuda, f"surf{place.kind}read")(array, *indices, MODES[mode], T=place.T)

    def write(indices, array, data):
        return getattr(cuda, f"surf{place.kind}write")(data, array, *indices, MODES[mode], T=place.T)

    def result():
        if writes:
            return run(write, place.passed, array, typed(values, place.access), jitted=jitted, traced=traced)
        return run(read, place.passed, array, jitted=jitted, traced=traced)

    with naming(text):
        if place.misaligned and not (jitted and traced):
            return place.count, assert_refused(result, MISALIGNED)
        found = result()
        if writes:
            expected = oracle.write_bytes(flat_memory, values, row, byte, inside)
            return place.count, assert_same(bytes_of(found.texels, *expected.shape), expected, "memory")
        expected = oracle.read_bytes(flat_memory, *np.broadcast_arrays(row, byte, inside), place.size)
        return place.count, assert_same(found, typed(np.ascontiguousarray(expected), place.access), "values")


def answer(call):
    """The code of the error that a call raises, or 0, and its result."""
    try:
        return 0, call()
    except cuda.CudaError as error:
        return error.code, None


def assert_refused(call, expected):
    """The call is an error of CUDA with this code."""
    code, _ = answer(call)
    assert code == expected, f"code {code}, expected {expected}"
    return 1


def check_formatted(rng, integers, samples):
    """sust_p, whose x counts texels: integers saturate, and whole floats are stored as they are."""
    place = Accesses(rng, integers, samples, x_in_bytes=False)
    mode, (dtype, length) = pick(rng, list(MODES)), parsed(place.format)
    word = np.float32 if dtype.kind == "f" else np.int32 if dtype.kind == "i" else np.uint32
    low, high = (-1000, 1001) if word is np.float32 else (np.iinfo(word).min, np.iinfo(word).max)
    values = rng.integers(low, high, (*place.shape, 4), np.int64).astype(word)
    if word is not np.float32:
        values = np.where(rng.random(values.shape) < 0.5, values % word(100), values)
    text = f"sust_p {mode}, {place}"
    with naming(text):
        stored = cuda.sust_p(values, place.build(), *place.passed, boundaryMode=MODES[mode])
        channels, flat_memory = length or 1, place.memory.reshape(-1, place.memory.shape[-1])
        limits = (low, high) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        texels = np.clip(values[..., :channels].astype(np.float64), *limits).astype(dtype)
        row, byte, inside = place.landing(mode)
        data = bytes_of(texels, *place.shape, place.size)
        expected = oracle.write_bytes(flat_memory, data, row, byte, inside)
        return place.count, assert_same(bytes_of(stored.texels, *expected.shape), expected, "memory")


CHECKS = [check_surface] * 6 + [check_formatted]
