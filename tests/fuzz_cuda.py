"""Accesses by CUDA's names at integer coordinates, drawn at random: each is compared with `memory_oracle`."""

import contextlib

import jax
import numpy as np

from jaxtex import cuda
from jaxtex.cuda import AddressMode, ArrayFlags, FilterMode, ReadMode, ResourceDesc, SurfaceBoundaryMode, TextureDesc
from tests import memory_oracle as oracle
from tests.fuzz_integers import TYPES, draw_index, draw_shapes, given
from tests.fuzz_surfaces import assert_same, pick

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


def allocate(extent, flags, name, memory):
    """An array over bytes (slices, rows, bytes)."""
    array = cuda.malloc3DArray(cuda.createChannelDesc(name), extent, flags)
    return cuda.memcpyToArray(array, memory.reshape(-1).view(parsed(name)[0]).reshape(array.texels.shape))


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
        self.indices, self.shape = self.draw_indices(rng, integers, samples)
        self.passed = [given(integers, self.indices[name]) for name in self.axes]

    def draw_indices(self, rng, integers, samples):
        shapes, _ = draw_shapes(rng, len(self.axes), samples)
        steps = {"x": self.size if self.x_in_bytes else 1, "y": 1, "z": 1}
        slices, rows, length = self.memory.shape
        sizes = {"x": length // self.size, "y": rows, "z": slices}
        python = integers.origin == "python"
        chosen = set(np.array(list(self.axes))[rng.random(len(self.axes)) < 0.4]) or {"x"}
        indices = {
            name: draw_index(
                rng, integers if not python or name in chosen else TYPES["int32_numpy"], sizes[name], shape, steps[name]
            )
            for name, shape in zip(self.axes, shapes)
        }
        if self.x_in_bytes and not python and rng.random() < 0.2:  # some of x within a unit
            off = (rng.random(indices["x"].shape) < 0.1).astype(indices["x"].dtype)
            indices["x"] = indices["x"] + off
        return indices, np.broadcast_shapes(*(np.shape(index) for index in indices.values()))

    @property
    def count(self):
        return int(np.prod(self.shape))

    @property
    def misaligned(self):
        return bool(oracle.misaligned(self.indices["x"], self.size).any())

    def landing(self, mode):
        """The row, the first byte and whether it is inside, of each access."""
        z, y = (oracle.as_int(self.indices.get(name, 0)) for name in "zy")
        outer = 1 if self.flags else 0
        # Of a cubemap and of layers one that is out of range is the last; y is the nearest.
        if mode == "clamp":
            inside = (z >= 0) & (z < self.memory.shape[0])
            nearest = (
                np.where(inside, z, self.memory.shape[0] - 1) if outer else np.clip(z, 0, self.memory.shape[0] - 1)
            )
            z, y = nearest, np.clip(y, 0, self.memory.shape[1] - 1)
        if self.x_in_bytes:
            return oracle.place_of_bytes(self.indices["x"], [z, y], self.memory.shape, self.size, mode)
        units = self.memory.shape[-1] // self.size
        flat, inside = oracle.place([z, y, oracle.as_int(self.indices["x"])], [*self.memory.shape[:2], units], mode)
        return flat // units, flat % units * self.size, inside

    def build(self):
        return allocate(self.extent, self.flags | STORE, self.format, self.memory)

    def __str__(self):
        described = (
            f"{name}={k if isinstance(k, int) else f'{k.dtype}{list(k.shape)}'}" for name, k in self.indices.items()
        )
        return f"{self.kind} {self.format}{self.extent} as {self.T}, {', '.join(described)}"


def typed(values, name):
    """Bytes, S + (size,), as the numbers of a type: S, or S + (length,)."""
    dtype, length = parsed(name)
    numbers = values.view(dtype)
    return numbers if length else numbers[..., 0]


def run(call, passed, *arguments, jitted, traced):
    """The call as it stands, or compiled, where JAX's indices are arguments and others are constants."""
    if not jitted:
        return call(passed, *arguments)
    if traced:
        return jax.jit(call)(passed, *arguments)
    return jax.jit(lambda *arguments: call(passed, *arguments))(*arguments)


def check_surface(rng, integers, samples):
    """Reads and writes of surfaces, x in bytes."""
    place, mode, writes = Accesses(rng, integers, samples), pick(rng, list(MODES)), rng.random() < 0.5
    jitted, traced = rng.random() < 0.5, integers.origin == "jax"
    text = f"{'jitted ' if jitted else ''}surf{place.kind}{'write' if writes else 'read'} {mode}, {place}"
    array, values = place.build(), plain_bytes(rng, (*place.shape, place.size))
    row, byte, inside = place.landing("clamp" if mode == "clamp" else "zero")
    flat_memory = place.memory.reshape(-1, place.memory.shape[-1])

    def read(indices, array):
        return getattr(cuda, f"surf{place.kind}read")(array, *indices, MODES[mode], T=place.T)

    def write(indices, array, data):
        return getattr(cuda, f"surf{place.kind}write")(data, array, *indices, MODES[mode], T=place.T)

    def result():
        if writes:
            return run(write, place.passed, array, typed(values, place.access), jitted=jitted, traced=traced)
        return run(read, place.passed, array, jitted=jitted, traced=traced)

    try:
        if place.misaligned and not (jitted and traced):
            return place.count, assert_refused(result, MISALIGNED)
        found = result()
        if writes:
            expected = oracle.write_bytes(flat_memory, values, row, byte, inside)
            return place.count, assert_same(bytes_of(found.texels, *expected.shape), expected, "memory")
        expected = oracle.read_bytes(flat_memory, *np.broadcast_arrays(row, byte, inside), place.size)
        return place.count, assert_same(found, typed(np.ascontiguousarray(expected), place.access), "values")
    except Exception as error:
        raise AssertionError(f"{text}: {type(error).__name__}: {error}") from error


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


def check_fetch(rng, integers, samples):
    """tex1Dfetch of linear memory."""
    name, count = pick(rng, FORMATS), pick(rng, [5, 200, 40000])
    dtype, length = parsed(name)
    fractions = dtype.itemsize < 4 and dtype.kind != "f" and rng.random() < 0.5
    memory = plain_bytes(rng, (count, size_of(name))).view(dtype)
    desc = cuda.createChannelDesc(name)
    read = {"readMode": ReadMode.NormalizedFloat if fractions else ReadMode.ElementType}
    t = cuda.createTextureObject(ResourceDesc.Linear(memory, desc), TextureDesc(**read))
    x = draw_index(rng, integers, count, (samples,))
    jitted, traced = rng.random() < 0.5, integers.origin == "jax"
    text = f"{'jitted ' if jitted else ''}tex1Dfetch {name} x {count} {read}, x={x if isinstance(x, int) else x.dtype}"
    try:
        found = run(lambda x, t: cuda.tex1Dfetch(t, x), given(integers, x), t, jitted=jitted, traced=traced)
        flat, inside = oracle.place([oracle.as_int(x)], [count], "zero")
        expected = oracle.read(oracle.decoded(memory, normalized=fractions), flat, inside)
        return np.size(x), assert_same(found, expected if length else expected[..., 0], "values")
    except Exception as error:
        raise AssertionError(f"{text}: {type(error).__name__}: {error}") from error


def check_texture(rng, integers, samples):
    """tex1D to tex2DLayered at whole coordinates: edges between texels, of which a linear read is the mean."""
    kind = pick(rng, ["1D", "2D", "3D", "1DLayered", "2DLayered"])
    extents, flags, axes = KINDS[kind]
    extent, layered = pick(rng, extents), bool(flags)
    linear, normalized, mode = rng.random() < 0.5, rng.random() < 0.3, pick(rng, list(AddressMode))
    name, border = pick(rng, ["float", "float2", "float4"]), rng.integers(-4, 5, 4)
    array = cuda.malloc3DArray(cuda.createChannelDesc(name), extent, flags)
    texels = rng.integers(-64, 65, array.texels.shape).astype(np.float32)
    desc = TextureDesc(mode, FilterMode.Linear if linear else FilterMode.Point, borderColor=tuple(border.astype(float)))
    desc = TextureDesc(**{**vars(desc), "normalizedCoords": int(normalized)})
    t = cuda.createTextureObject(ResourceDesc.Array(cuda.memcpyToArray(array, texels)), desc)
    sizes = dict(zip("xyz", extent))
    shapes, _ = draw_shapes(rng, len(axes), samples)
    python = integers.origin == "python"
    indices = {
        axis: draw_index(rng, TYPES["int32_numpy"] if python and axis != "x" else integers, sizes[axis], shape)
        for axis, shape in zip(axes, shapes)
    }
    whole = np.broadcast_shapes(*(np.shape(index) for index in indices.values()))
    jitted, traced = rng.random() < 0.5, integers.origin == "jax"
    text = (
        f"{'jitted ' if jitted else ''}tex{kind} {name}{extent} {mode.name} {desc.filterMode.name} "
        f"normalized={normalized}, {[k if isinstance(k, int) else f'{k.dtype}{k.shape}' for k in indices.values()]}"
    )
    passed = [given(integers, indices[axis]) for axis in axes]
    try:
        found = run(lambda xs, t: getattr(cuda, f"tex{kind}")(t, *xs), passed, t, jitted=jitted, traced=traced)
        used = mode.name.lower()
        if not normalized:
            used = "border" if used == "border" else "clamp"
        taps = [
            oracle.axis_taps(indices[axis], sizes[axis], used, normalized=normalized, linear=linear)
            for axis in reversed(axes)
            if not (layered and axis == "z")
        ]
        stored = texels
        if layered:
            layer = oracle.as_int(indices["z"])
            taps = [[np.where((layer >= 0) & (layer < sizes["z"]), layer, sizes["z"] - 1)], *taps]
        elif kind == "1D" and linear and used == "border":  # an image of one row, read at its edge
            stored, taps = texels[None], [[np.int64(-1), np.int64(0)], *taps]
        expected = oracle.read_whole(stored, taps, border[: texels.shape[-1]].astype(np.float64))
        expected = np.broadcast_to(expected, (*whole, texels.shape[-1])).astype(np.float32) + np.float32(0)
        expected = expected if name[-1] in "24" else expected[..., 0]
        return int(np.prod(whole)), assert_same(np.asarray(found) + np.float32(0), expected, "values")
    except Exception as error:
        raise AssertionError(f"{text}: {type(error).__name__}: {error}") from error


def check_gather(rng, integers, samples):
    """tex2Dgather at whole coordinates: texels on both sides of edges, counter-clockwise from the lower left."""
    (width, height), mode = pick(rng, [(6, 4), (33, 70)]), pick(rng, list(AddressMode))
    normalized, name, border = rng.random() < 0.3, pick(rng, ["float", "float2", "float4"]), rng.integers(-4, 5, 4)
    array = cuda.mallocArray(cuda.createChannelDesc(name), width, height, ArrayFlags.TextureGather)
    texels = rng.integers(-64, 65, array.texels.shape).astype(np.float32)
    desc = TextureDesc(mode, borderColor=tuple(border.astype(float)), normalizedCoords=int(normalized))
    t = cuda.createTextureObject(ResourceDesc.Array(cuda.memcpyToArray(array, texels)), desc)
    comp, sizes = int(rng.integers(0, 4)), (width, height)
    kinds = (integers, TYPES["int32_numpy"] if integers.origin == "python" else integers)
    indices = [draw_index(rng, kind, size, (samples,)) for kind, size in zip(kinds, sizes)]
    jitted, traced = rng.random() < 0.5, integers.origin == "jax"
    text = f"{'jitted ' if jitted else ''}tex2Dgather {name} {width} x {height} {mode.name} normalized={normalized}"
    try:
        passed = [given(integers, index) for index in indices]
        found = run(lambda xs, t: cuda.tex2Dgather(t, *xs, comp), passed, t, jitted=jitted, traced=traced)
        used = mode.name.lower()
        if not normalized:
            used = "border" if used == "border" else "clamp"
        xs, ys = (
            oracle.axis_taps(index, size, used, normalized=normalized, linear=True)
            for index, size in zip(indices, sizes)
        )
        corners = [(xs[0], ys[1]), (xs[1], ys[1]), (xs[1], ys[0]), (xs[0], ys[0])]
        channel = texels[..., comp] if comp < texels.shape[-1] else None
        inside = [(x >= 0) & (y >= 0) for x, y in corners]
        values = [
            np.where(here, channel[np.maximum(y, 0), np.maximum(x, 0)], border[comp])
            if channel is not None
            else np.zeros(samples)
            for here, (x, y) in zip(inside, corners)
        ]
        return samples, assert_same(found, np.stack(np.broadcast_arrays(*values), -1).astype(np.float32), "values")
    except Exception as error:
        raise AssertionError(f"{text}: {type(error).__name__}: {error}") from error


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
    try:
        stored = cuda.sust_p(values, place.build(), *place.passed, boundaryMode=MODES[mode])
        channels, flat_memory = length or 1, place.memory.reshape(-1, place.memory.shape[-1])
        limits = (low, high) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        texels = np.clip(values[..., :channels].astype(np.float64), *limits).astype(dtype)
        row, byte, inside = place.landing("clamp" if mode == "clamp" else "zero")
        data = bytes_of(texels, *place.shape, place.size)
        expected = oracle.write_bytes(flat_memory, data, row, byte, inside)
        return place.count, assert_same(bytes_of(stored.texels, *expected.shape), expected, "memory")
    except Exception as error:
        raise AssertionError(f"{text}: {type(error).__name__}: {error}") from error


CHECKS = [check_surface] * 8 + [check_fetch] * 2 + [check_texture] * 2 + [check_gather, check_formatted]


def check(rng, integers, samples):
    """A case of one type of coordinates: how many accesses there were, and how many values were compared."""
    with jax.enable_x64(True) if integers.x64 else contextlib.nullcontext():
        return pick(rng, CHECKS)(rng, integers, samples)
