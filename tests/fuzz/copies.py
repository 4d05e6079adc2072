"""Copies between arrays and memory, drawn at random: each byte is compared with `memory_oracle`, and each refusal."""

import contextlib

import jax
import numpy as np

from jaxtex import cuda
from jaxtex.cuda import Extent, Memcpy3DParms, PitchedPtr, Pos
from tests.fuzz.cuda import KINDS, answer, arrays_of, bytes_of, filled, parsed, size_of
from tests.fuzz.draws import assert_same, naming, pick
from tests.oracles import memory as oracle

FORMATS = ("uchar", "uchar4", "short2", "half", "half4", "float", "int2", "float4")
# Formats of blocks: the number of the kind, the bytes of a block, and its side.
BLOCKS = {"bc1": (17, 8, 4), "bc4": (23, 8, 4), "bc3": (21, 16, 4), "bc7": (29, 16, 4), "rgb10a2": (31, 4, 1)}
NARROW = ("uint8", "int8", "int16", "float16", "uint32", "float32")
WIDE = ("float64", "int64", "uint64")
ROWS = ([(7, 0, 0), (5, 4, 0), (33, 1, 0), (9, 12, 0)], 0)
EXTENTS = [*((extent, 0) for extent in ROWS[0]), *((extents[0], flags) for extents, flags, _ in KINDS.values())]
BAD_SHARE = 0.3


def bytes_of_element(name):
    return BLOCKS[name][1] if name in BLOCKS else size_of(name)


def side_of(name):
    return BLOCKS[name][2] if name in BLOCKS else 1


def described(rng, name, extent):
    """The descriptor of a format, the dtype of its numbers, and an extent in texels for one in elements."""
    if name not in BLOCKS:
        return cuda.createChannelDesc(name), parsed(name)[0], extent
    (width, height, depth), side = extent, side_of(name)
    less = int(rng.integers(side))  # texels of the last blocks that are outside
    desc = cuda.createChannelDesc(cuda.ChannelFormatKind(BLOCKS[name][0]))
    return desc, np.dtype(np.uint32), (side * width - less, side * max(height, 1) - less, depth)


class ArrayEnd:
    """An array of random bytes, and its box of a copy."""

    def __init__(self, rng, options, name):
        self.name, (extent, flags) = name, pick(rng, options)
        self.element, self.sizes = bytes_of_element(name), [max(n, 1) for n in extent]
        desc, dtype, self.extent = described(rng, name, extent)
        array = arrays_of(FORMATS, tuple(EXTENTS))[name, extent, flags] if name in FORMATS else None
        array = array or cuda.malloc3DArray(desc, self.extent, flags)
        width, height, depth = self.sizes
        self.memory = rng.integers(0, 256, (depth, height, width * self.element), np.uint8)
        self.passed, self.flat = filled(array, self.memory, dtype), self.memory.reshape(-1)
        self.is_rows = not flags and not extent[2]

    def draw_start(self, rng, counts):
        return [int(rng.integers(0, n - c + 1)) for n, c in zip(self.sizes, counts)]

    def faults_of(self, start, counts, unit):
        return oracle.faults_of_box(self.sizes, start, counts)

    def named(self, role, passed):
        """The argument of `Memcpy3DParms`."""
        return {f"{role}Array": passed}

    def region(self, start):
        """The first byte, and the steps from row to row and from slice to slice."""
        (x, y, z), (width, height, _) = start, self.sizes
        pitch = width * self.element
        return x * self.element + y * pitch + z * pitch * height, pitch, pitch * height

    def __str__(self):
        return f"{self.name}{self.extent}"


class MemoryEnd:
    """Memory of some dtype, at least of a number of bytes."""

    def __init__(self, rng, size):
        self.dtype = np.dtype(pick(rng, (*NARROW, *WIDE)))
        count = -(-max(size, 1) // self.dtype.itemsize) + int(rng.integers(0, 3))
        self.flat = rng.integers(0, 256, count * self.dtype.itemsize, np.uint8)
        self.passed = self.flat.view(self.dtype)
        if count % 2 == 0:
            self.passed = self.passed.reshape(2, -1)
        if rng.random() < 0.5 and (self.dtype.itemsize < 8 or jax.config.jax_enable_x64):
            self.passed = jax.device_put(self.passed)

    @property
    def faults(self):
        """Of a destination: the result has its dtype, which JAX must hold."""
        held = self.dtype.itemsize < 8 or jax.config.jax_enable_x64
        return set() if held else {oracle.INVALID_VALUE}

    def __str__(self):
        return f"{type(self.passed).__name__} of {self.dtype}{list(self.passed.shape)}"


class PitchedEnd(MemoryEnd):
    """Memory with a pitch, for a box of so many rows of bytes and slices."""

    def __init__(self, rng, width, height, depth, unit):
        self.start = [int(rng.integers(0, 3)) * unit, *(int(rng.integers(0, 3)) for _ in range(2))]
        self.pitch = self.start[0] + width + int(pick(rng, (0, 0, 3, 16)))
        self.ysize = self.start[1] + height + int(rng.integers(0, 2))
        super().__init__(rng, self.pitch * self.ysize * (self.start[2] + depth))

    def draw_start(self, rng, counts):
        return self.start

    def region(self, start):
        x, y, z = start
        return x + y * self.pitch + z * self.pitch * self.ysize, self.pitch, self.pitch * self.ysize

    def faults_of(self, start, counts, unit):
        negative = {oracle.INVALID_VALUE} if min(start) < 0 else set()
        return negative | oracle.faults_of_memory(self.flat.size, *self.region(start), counts[0] * unit, *counts[1:])

    def named(self, role, passed):
        return {f"{role}Ptr": PitchedPtr(passed, self.pitch, 0, self.ysize)}

    def __str__(self):
        return f"{super().__str__()}, pitch={self.pitch} ysize={self.ysize}"


def draw_box(rng, sizes):
    start = [int(rng.integers(0, n)) for n in sizes]
    return start, [int(rng.integers(1, n - s + 1)) for n, s in zip(sizes, start)]


def spoil(rng, numbers, first=0):
    """Most often the numbers as they are; else one of them, from the first, off by a little."""
    numbers = list(numbers)
    if rng.random() < BAD_SHARE:
        numbers[int(rng.integers(first, len(numbers)))] += int(pick(rng, (-20, -3, -1, 1, 2, 4, 16, 100)))
    return numbers


def compare(call, faults, expected, text):
    """The call returns these bytes, or is refused with one of the codes."""
    with naming(text):
        code, found = answer(call)
        assert code in (faults or {0}), f"code {code}, expected {sorted(faults) or 0}"
        if code:
            return 1
        texels = found.texels if isinstance(found, cuda.Array) else found
        return assert_same(bytes_of(texels, -1), expected(), "bytes")


def compiled(rng, function, *arrays, share=0.3):
    """The call as it stands, or compiled with the arrays as its arguments."""
    ready = all(isinstance(a, cuda.Array) or np.dtype(a.dtype).itemsize < 8 for a in arrays)
    call = jax.jit(function) if rng.random() < share and (ready or jax.config.jax_enable_x64) else function
    return lambda: call(*arrays)


def check_rows(rng, formats=FORMATS):
    """memcpy2DToArray, memcpy2DFromArray, and memcpy2D, of which a height or a width of 0 copies nothing."""
    roles = pick(rng, (("dst",), ("src",))) if rng.random() < 0.6 or formats is not FORMATS else ()
    width, height, unit, x, y = int(rng.integers(0, 40)), int(rng.integers(0, 6)), 1, 0, 0
    array = ArrayEnd(rng, EXTENTS if rng.random() < 0.1 else EXTENTS[:4], pick(rng, formats)) if roles else None
    if array:
        unit, ((x, y), (width, height)) = array.element, draw_box(rng, array.sizes[:2])
        x, width = x * unit, width * unit
    memories = {role: None for role in ("dst", "src") if role not in roles}
    pitches = {role: width + int(pick(rng, (0, 0, 1, 4, 13, 32))) for role in memories}
    for role, pitch in pitches.items():
        memories[role] = MemoryEnd(rng, pitch * max(height - 1, 0) + width + int(rng.integers(0, 9)))
    if array or (width and height > 1):
        x, y, width, height, *spoiled = spoil(rng, (x, y, width, height, *pitches.values()), first=0 if array else 2)
        pitches = dict(zip(pitches, spoiled))
    if height <= 1:
        pitches = {role: max(pitch, width) for role, pitch in pitches.items()}
    kind = int(pick(rng, (0, 1, 2, 3, 4, 4, 4, 4, 5 if rng.random() < 0.1 else 4)))
    faults, parts = oracle.faults_of_kind(kind), {role: (0, pitch, 0) for role, pitch in pitches.items()}
    for role, memory in memories.items():
        faults |= oracle.faults_of_memory(memory.flat.size, 0, pitches[role], 0, width, height, 1)
        faults |= memory.faults if role == "dst" else set()
    for role in roles:
        start = (x // unit, y, 0)
        parts[role], inside = array.region(start), (width // unit, height, 1)
        faults |= oracle.faults_of_box(array.sizes, start, inside)
        faults |= {oracle.INVALID_VALUE} if x % unit or width % unit or not array.is_rows else set()
    ends = memories | dict.fromkeys(roles, array)
    text = f"2D copy from {ends['src']} to {ends['dst']}, {x=} {y=} {pitches} {width=} {height=} {kind=}"

    def copy(dst, src):
        if not array:
            return cuda.memcpy2D(dst, pitches["dst"], src, pitches["src"], width, height, kind)
        if "dst" in roles:
            return cuda.memcpy2DToArray(dst, x, y, src, pitches["src"], width, height, kind)
        return cuda.memcpy2DFromArray(dst, pitches["dst"], src, x, y, width, height, kind)

    flat = [ends[role].flat for role in ("dst", "src")]
    expected = lambda: oracle.copy_rows(*flat, parts["dst"], parts["src"], width, height, 1)
    return compare(compiled(rng, copy, ends["dst"].passed, ends["src"].passed), faults, expected, text)


def check_box(rng, formats=FORMATS):
    """memcpy3D between arrays and pitched memory. An extent of 0 copies nothing. Of blocks, texels are counted."""
    ends, unit, counts = draw_ends(rng, formats)
    starts = {role: end.draw_start(rng, counts) for role, end in ends.items()}
    if all(counts):
        counts = spoil(rng, counts) if rng.random() < 0.7 else counts
        role = pick(rng, ("src", "dst"))
        starts[role] = spoil(rng, starts[role])
    faults = set()
    for role, end in ends.items():
        pitched = isinstance(end, PitchedEnd)
        if pitched and counts[0] * unit > end.pitch and max(counts[1:]) <= 1:
            return 0  # one row that is longer than a pitch: CUDA's answer is not known
        faults |= end.faults_of(starts[role], counts, unit) if all(counts) or not pitched else set()
        faults |= end.faults if pitched and role == "dst" else set()
    if len({end.element for end in ends.values() if isinstance(end, ArrayEnd)}) > 1:
        faults |= {oracle.INVALID_VALUE}
    side = max((side_of(end.name) for end in ends.values() if isinstance(end, ArrayEnd)), default=1)
    more = int(rng.integers(side)) if side > 1 else 0
    place = lambda role: in_texels(starts[role], side, more) if isinstance(ends[role], ArrayEnd) else starts[role]
    text = f"memcpy3D of {counts} from {ends['src']} at {starts['src']} to {ends['dst']} at {starts['dst']}"

    def copy(src, dst):
        of, to = ends["src"].named("src", src), ends["dst"].named("dst", dst)
        at = {"srcPos": Pos(*place("src")), "dstPos": Pos(*place("dst"))}
        return cuda.memcpy3D(Memcpy3DParms(**of, **to, **at, extent=Extent(*in_texels(counts, side, -more))))

    def expected():
        target, source = (ends[role].region(starts[role]) for role in ("dst", "src"))
        return oracle.copy_rows(ends["dst"].flat, ends["src"].flat, target, source, counts[0] * unit, *counts[1:])

    return compare(compiled(rng, copy, ends["src"].passed, ends["dst"].passed), faults, expected, text)


def in_texels(numbers, side, more):
    """Numbers of elements along x, y and z as texels: of blocks some more, or less, which a copy rounds off."""
    return [side * n + more if n and k < 2 else n for k, n in enumerate(numbers)] if side > 1 else numbers


def draw_ends(rng, formats):
    """A source and a destination, the size of an element in bytes, and the size of a box."""
    name, is_array = pick(rng, formats), {"src": rng.random() < 0.6, "dst": rng.random() < 0.6}
    same = [n for n in formats if bytes_of_element(n) == bytes_of_element(name)]
    names = {"src": name, "dst": name}
    if all(is_array.values()):
        names["dst"] = pick(rng, same) if rng.random() < 0.9 else pick(rng, formats)
    ends = {role: ArrayEnd(rng, EXTENTS, names[role]) for role in is_array if is_array[role]}
    unit = next((end.element for end in ends.values()), 1)
    counts = [int(rng.integers(1, min((end.sizes[k] for end in ends.values()), default=6) + 1)) for k in range(3)]
    if rng.random() < 0.05:
        counts[int(rng.integers(3))] = 0
    width, height, depth = counts[0] * unit, *counts[1:]
    plain = {role: PitchedEnd(rng, width, height, depth, unit) for role in is_array if not is_array[role]}
    return {**plain, **ends}, unit, counts


def check_runs(rng, formats=FORMATS):
    """CUDA's copies of a number of bytes, which go on in the row below: memcpyToArray and the like, and memcpy."""
    of_array, to_array = pick(rng, ((True, False), (False, True), (True, True), (False, False)))
    name, kind = pick(rng, formats), int(pick(rng, (0, 1, 2, 3, 4, 4, 4, 5 if rng.random() < 0.1 else 4)))
    options = EXTENTS if rng.random() < 0.1 else EXTENTS[:4]
    roles = [role for role, is_array in (("src", of_array), ("dst", to_array)) if is_array]
    arrays = {role: ArrayEnd(rng, options, name) for role in roles}
    unit, faults = bytes_of_element(name) if arrays else 1, oracle.faults_of_kind(kind)
    starts = {role: [int(rng.integers(0, n)) for n in end.sizes[:2]] for role, end in arrays.items()}
    left = [end.sizes[0] * end.sizes[1] - x - y * end.sizes[0] for end, (x, y) in zip(arrays.values(), starts.values())]
    count = int(rng.integers(0, min(left, default=40) + 1)) * unit
    memories = {role: MemoryEnd(rng, count + int(rng.integers(0, 9))) for role in ("src", "dst") if role not in arrays}
    offsets = {role: [x * unit, y] for role, (x, y) in starts.items()}
    (count,) = spoil(rng, (count,))
    for role, end in arrays.items():
        x, y = offsets[role] = spoil(rng, offsets[role])
        width, height = end.sizes[0] * unit, end.sizes[1]
        if x == width or y == height:
            return 0  # the place behind the last: what CUDA says to a run of nothing there is not known
        inside = 0 <= x < width and 0 <= y < height and 0 <= count <= width * height - y * width - x
        if not inside or x % unit or count % unit or not end.is_rows:
            faults |= {oracle.INVALID_VALUE}
    for role, end in memories.items():
        faults |= oracle.faults_of_memory(end.flat.size, 0, max(count, 0), 0, count, 1, 1)
        faults |= end.faults if role == "dst" else set()

    def copy(src, dst):
        if of_array and to_array:
            return cuda.memcpyArrayToArray(dst, *offsets["dst"], src, *offsets["src"], count, kind)
        if to_array:
            return cuda.memcpyToArray(dst, *offsets["dst"], src, count, kind)
        if of_array:
            return cuda.memcpyFromArray(dst, src, *offsets["src"], count, kind)
        return cuda.memcpy(dst, src, count, kind)

    def part(role):
        x, y = offsets.get(role, (0, 0))
        return x + (y * arrays[role].sizes[0] * unit if role in arrays else 0), 0, 0

    ends = {**arrays, **memories}
    flat = lambda role: ends[role].flat
    expected = lambda: oracle.copy_rows(flat("dst"), flat("src"), part("dst"), part("src"), count, 1, 1)
    given = [ends[role].passed for role in ("src", "dst")]
    text = f"{count} bytes from {ends['src']} to {ends['dst']} at {offsets}, kind={kind}"
    return compare(compiled(rng, copy, *given), faults, expected, text)


def check_fill(rng):
    """memset2D and memset3D."""
    width, height, depth = (int(rng.integers(0, n)) for n in (30, 5, 4))
    pitch, value = width + int(pick(rng, (0, 0, 1, 13))), int(rng.integers(-3, 300))
    flat = rng.random() < 0.5
    depth, ysize = (1, height) if flat else (depth, height + int(rng.integers(0, 2)))
    slices = pitch * ysize
    plain = MemoryEnd(rng, slices * max(depth - 1, 0) + pitch * max(height - 1, 0) + width + int(rng.integers(0, 9)))
    if min(width, height, depth) and max(height, depth) > 1:
        pitch, width = spoil(rng, (pitch, width))
    faults = plain.faults
    if min(width, height, depth):
        region = (0, pitch, pitch * ysize, width, height, depth)
        faults = faults | oracle.faults_of_memory(plain.flat.size, *region)
        if width > pitch and max(height, depth) <= 1:
            return 0
    if width < 0 or pitch < 0:
        faults = faults | {oracle.INVALID_VALUE, oracle.INVALID_PITCH}

    def fill(memory):
        if flat:
            return cuda.memset2D(memory, pitch, value, width, height)
        return cuda.memset3D(PitchedPtr(memory, pitch, width, ysize), value, Extent(width, height, depth)).ptr

    source = np.full(max(width, 1), value % 256, np.uint8)
    expected = lambda: oracle.copy_rows(plain.flat, source, (0, pitch, pitch * ysize), (0, 0, 0), width, height, depth)
    text = f"fill of {width} x {height} x {depth} with {value}, pitch={pitch}, ysize={ysize}, {plain}"
    return compare(compiled(rng, fill, plain.passed, share=0.7), faults, expected, text)


def check_whole(rng, formats=FORMATS):
    """memcpyToArray and memcpyFromArray of arrays and of levels."""
    name, (extent, flags) = pick(rng, formats), pick(rng, EXTENTS)
    desc, dtype, extent = described(rng, name, extent)
    count = int(rng.integers(1, 4))
    made = jax.jit(lambda: cuda.mallocMipmappedArray(desc, extent, count, flags))()
    level = int(rng.integers(len(made.levels)))
    shape, faults = made.levels[level].shape, set()
    numbers = rng.integers(0, 256, int(np.prod(shape)) * dtype.itemsize, np.uint8).view(dtype).reshape(shape)
    if shape[-1] == 1 and rng.random() < 0.5:
        numbers = numbers[..., 0]
    if rng.random() < 0.1:
        numbers, faults = numbers.reshape(1, 1, *numbers.shape), {oracle.INVALID_VALUE}
    plain = cuda.getMipmappedArrayLevel(made, level)
    text = f"memcpyToArray {name}{extent} level {level}, {numbers.dtype}{numbers.shape}"
    if rng.random() < 0.5:
        return compare(lambda: cuda.memcpyToArray(plain, numbers), faults, lambda: bytes_of(numbers, -1), text)

    def there_and_back():
        return cuda.memcpyFromArray(cuda.memcpyToArray(made, numbers, level=level), level=level)

    return compare(there_and_back, faults, lambda: bytes_of(numbers, -1), text)


CHECKS = [check_rows] * 5 + [check_box] * 4 + [check_runs] * 3 + [check_fill, check_whole]


def check(rng, samples):
    """A case: one copy, and how many bytes were compared."""
    with jax.enable_x64(True) if rng.random() < 0.2 else contextlib.nullcontext():
        return 1, pick(rng, CHECKS)(rng)
