"""Accesses of single texels by the functions of the core, drawn at random: each is compared with `memory_oracle`."""

import jax
import ml_dtypes
import numpy as np
from jax.experimental import checkify

import jaxtex as jt
from tests.fuzz.draws import assert_same, bits, naming, pick
from tests.fuzz.integers import draw_index, draw_indices, given, named, run, shape_of
from tests.oracles import memory as oracle

MODES = ("trap", "clamp", "zero")
# The axes of the levels of each kind, channels left out, and the names of those that are layers and faces.
SHAPES = {
    "texture1d": [[(7,)], [(300,), (150,)], [(8192,)]],
    "texture2d": [[(5, 6)], [(130, 3), (65, 1)], [(64, 130), (32, 65), (16, 32)]],
    "texture3d": [[(4, 3, 5)], [(16, 17, 20), (8, 8, 10)]],
    "texture1d_layered": [[(3, 6)], [(140, 70), (140, 35)]],
    "texture2d_layered": [[(3, 4, 5)], [(5, 33, 40), (5, 16, 20)]],
    "cubemap": [[(6, 4, 4)], [(6, 32, 32), (6, 16, 16), (6, 8, 8)]],
    "cubemap_layered": [[(2, 6, 3, 3)], [(3, 6, 16, 16), (3, 6, 8, 8)]],
}
OUTER = {"texture1d_layered": ("layer",), "texture2d_layered": ("layer",), "cubemap": ("face",)}
OUTER |= {"cubemap_layered": ("layer", "face")}
DTYPES = ["float32", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "bool"]
CHANNELS = (1, 2, 3, 4, 4, 7)
OPERATIONS = ("read", "read", "write", "write", "add", "min", "max", "fetch", "sample")
levels_of = jax.jit(lambda texture: texture.levels)
REDUCTIONS = {"add": jt.surface_add, "min": jt.surface_min, "max": jt.surface_max}
FLOATS = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def dtype_of(name):
    return np.dtype(FLOATS.get(name, name))


def draw_bits(rng, dtype, shape):
    """Numbers of any bits: NaN with payloads, infinities and subnormal ones too."""
    dtype = dtype_of(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    return rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]


def draw_whole(rng, dtype, shape, most, *, odd=0.02):
    """Small whole numbers, whose sums are exact, and if they float some NaN with payloads."""
    dtype = dtype_of(dtype)
    if dtype.kind in "iu":
        return draw_bits(rng, dtype, shape)
    numbers = rng.integers(-most, most + 1, shape).astype(dtype)
    if odd:
        size = numbers.dtype.itemsize
        nan = np.float32([np.nan]).astype(dtype)
        payloads = (bits(nan) | rng.integers(0, 8 if size == 2 else 2**20, shape).astype(f"u{size}")).view(dtype)
        numbers = np.where(rng.random(shape) < odd, payloads, numbers)
    return numbers


class Place:
    """A texture of one of the kinds, and the samples of one of its levels."""

    def __init__(self, rng, integers, samples, kinds=tuple(SHAPES)):
        self.kind = pick(rng, kinds)
        self.shapes = pick(rng, SHAPES[self.kind])
        self.level = int(rng.integers(len(self.shapes)))
        self.sizes = self.shapes[self.level]
        self.outer = OUTER.get(self.kind, ())
        samples = int(rng.choice([0, 5, 16, 1000, samples], p=[0.04, 0.04, 0.08, 0.08, 0.76]))
        self.indices = draw_indices(rng, integers, self.sizes, samples, x=-1)
        self.shape = shape_of(self.indices)
        self.passed = [given(integers, index) for index in self.indices]

    @property
    def count(self):
        return int(np.prod(self.shape))

    def arguments(self, indices):
        count = len(self.outer)
        return tuple(indices[count:][::-1]), dict(zip(self.outer, indices[:count]))

    def landing(self, mode):
        return oracle.place([oracle.exact(k) for k in self.indices], self.sizes, mode, len(self.outer))

    def build(self, levels):
        make = getattr(jt, self.kind)
        return make(levels[0]) if len(levels) == 1 else jax.jit(make)(tuple(levels))

    def stored(self, levels):
        """The levels as a texture holds them: XLA for CPUs joins bfloat16 levels as float32, and quiets their NaN."""
        if levels[0].dtype != ml_dtypes.bfloat16 or len(levels) == 1:
            return levels
        return [np.asarray(level) for level in self.build(levels).levels]

    def __str__(self):
        listed = ", ".join(map(str, named(self.indices)))
        return f"{self.kind}{self.sizes} level {self.level} of {len(self.shapes)}, indices {listed}"


def check_access(rng, integers, samples):
    """One access of each of some samples."""
    operation = pick(rng, OPERATIONS)
    cubes = () if operation in ("fetch", "sample") else ("cubemap", "cubemap_layered")
    layered = ("texture1d_layered", "texture2d_layered")
    kinds = layered if operation == "sample" else [k for k in SHAPES if k in cubes or "cube" not in k]
    place, mode, channels = Place(rng, integers, samples, kinds), pick(rng, MODES), pick(rng, CHANNELS)
    dtype = pick(rng, DTYPES[:-1] if operation in REDUCTIONS or operation == "sample" else DTYPES)
    if operation == "sample":
        return check_layers(rng, place, dtype, channels)
    draw = draw_whole if operation in REDUCTIONS else lambda rng, dtype, shape, most: draw_bits(rng, dtype, shape)
    levels = place.stored([draw(rng, dtype, (*shape, channels), 8) for shape in place.shapes])
    values = draw(rng, dtype, (*place.shape, channels), 3)
    if rng.random() < 0.15:  # one value for all samples
        values = draw(rng, dtype, (channels,), 3)
    call = call_of(place, operation, mode, level=pick(rng, [int, np.int64])(place.level))
    jitted, text = rng.random() < 0.5, f"{operation} {mode} of {dtype} x {channels}, {place}"
    with naming(f"{'jitted ' if jitted else ''}{text}"):
        result = run(call, place.passed, levels, values, jitted=jitted, traced=integers.origin == "jax")
        flat, inside = place.landing(mode)
        if operation == "fetch":
            flat, inside = landing_of_fetch(place)
        texels = levels[place.level].reshape(-1, channels)
        values = np.broadcast_to(values, (*place.shape, channels))
        expected, nan_as = expectation(operation, texels, values, flat, inside)
        if operation in ("read", "fetch"):
            return place.count, assert_same(result, expected.reshape(*place.shape, channels), "values")
        return place.count, compare_levels(result, levels, place.level, expected, nan_as)


def call_of(place, operation, mode, level):
    """The call as a function of indices, levels and values: it returns texels that are read, or the new levels."""

    def call(indices, levels, values):
        texture, (coords, named) = place.build(levels), place.arguments(indices)
        if operation == "fetch":
            return jt.fetch(texture, coords, level=level, **named)
        options = {"level": level, "boundary_mode": mode, **named}
        if operation == "read":
            return jt.surface_read(texture, coords, **options)
        function = REDUCTIONS.get(operation, jt.surface_write)
        result = function(texture, values, coords, **options)
        return levels_of(result) if len(levels) > 1 else result.levels

    return call


def landing_of_fetch(place):
    """A fetch reads zero outside, of layers the last."""
    count, indices = len(place.outer), [oracle.exact(k) for k in place.indices]
    layer = [np.where((k >= 0) & (k < n), k, n - 1) for k, n in zip(indices[:count], place.sizes)]
    return oracle.place([*layer, *indices[count:]], place.sizes, "zero")


def expectation(operation, texels, values, flat, inside):
    """The texels that are read, or those of the level afterwards; and where any NaN will do."""
    if operation in ("read", "fetch"):
        return oracle.read(texels, *np.broadcast_arrays(flat, inside)), None
    if operation == "write":
        return oracle.write(texels, values, flat, inside), None
    _, at, _ = oracle.landed(values, flat, inside)
    touched = np.zeros(texels.shape, bool)
    touched[at] = True
    if operation == "add":
        return oracle.add(texels, values, flat, inside), touched
    return oracle.extreme(texels, values, flat, inside, operation), touched


def compare_levels(found, levels, level, expected, nan_as):
    """Every level, of which one was written."""
    count = 0
    for k, (new, old) in enumerate(zip(found, levels, strict=True)):
        if k == level:
            mask = None if nan_as is None else nan_as.reshape(old.shape)
            count += assert_same(new, expected.reshape(old.shape), "texels", nan_as=mask)
        else:
            assert_same(new, old, f"level {k}, which nobody writes")
    return count


def check_layers(rng, place, dtype, channels):
    """Point reads at centers of texels, whose layers alone are drawn: one out of range is the last."""
    levels = [draw_whole(rng, dtype, (*place.sizes, channels), 8, odd=0)]
    shape = np.shape(place.indices[0])
    inside = [rng.integers(0, n, shape) for n in place.sizes[1:]]
    coords = tuple((k + 0.5).astype(np.float32) for k in inside[::-1])
    sampler = jt.Sampler(filter_mode="point", normalized_coords=False, address_mode="clamp")
    layer, count = oracle.exact(place.indices[0]), place.sizes[0]
    layer = np.where((layer >= 0) & (layer < count), layer, count - 1)
    with naming(f"sample of {dtype} x {channels}, {place}"):
        found = jt.sample(place.build(levels), coords, sampler, layer=place.passed[0])
        return place.count, assert_same(found, levels[0][(layer, *inside)], "values")


class Batch:
    """Indices of several examples of a place: those of some axes are batched, the others are shared."""

    def __init__(self, rng, integers, place, count):
        # An array of 64 bits is cut by JAX itself where it has 32.
        traceable = integers.origin != "python" and (integers.x64 or "64" not in integers.dtype)
        self.batched = [traceable and bool(rng.random() < 0.6) for _ in place.indices]
        self.place, axes = place, list(zip(place.indices, place.sizes, self.batched))
        draw = lambda index, size: draw_index(rng, integers, size, np.shape(index))
        self.examples = [[draw(index, n) if own else index for index, n, own in axes] for _ in range(count)]
        drawn = [[example[k] for example in self.examples] for k in range(len(axes))]
        none = [np.zeros((0, *np.shape(index)), integers.dtype) for index, _, own in axes if own]
        stacked = [np.stack(own) for own, batched in zip(drawn, self.batched) if batched] if count else none
        self.passed = [given(integers, index) for index in stacked]

    def indices(self, moving):
        """The indices of one example, of which the batched ones are given."""
        moving = iter(moving)
        return [next(moving) if own else index for own, index in zip(self.batched, self.place.passed)]


def check_batch(rng, integers, samples):
    """Accesses under `jax.vmap`: each example by itself, whichever of its arguments are batched."""
    operation, count = pick(rng, ("read", "write", "write", "add", "max")), int(rng.integers(0, 4))
    place, mode, channels = Place(rng, integers, samples // 4), pick(rng, MODES), pick(rng, CHANNELS)
    dtype, batch, of_texels = pick(rng, DTYPES[:-1]), Batch(rng, integers, place, count), bool(rng.random() < 0.4)
    of_values = bool(rng.random() < 0.6) or not (of_texels or any(batch.batched))
    draw = lambda own, shape, most: draw_whole(rng, dtype, (count if own else 1, *shape), most, odd=0)
    levels = [draw(of_texels, (*shape, channels), 8) for shape in place.shapes]
    values = draw(of_values, (*place.shape, channels), 3)
    call = call_of(place, operation, mode, place.level)
    one = lambda levels, values, moving: call(batch.indices(moving), levels, values)
    text = f"vmap of {count} of {operation} {mode} of {dtype} x {channels}, {place}"
    with naming(f"{text}, batched {batch.batched}, texels {of_texels}, values {of_values}"):
        mapped = jax.vmap(one, (0 if of_texels else None, 0 if of_values else None, 0))
        mapped = jax.jit(mapped) if rng.random() < 0.7 else mapped
        passed = [a if of_texels else a[0] for a in levels], values if of_values else values[0]
        result, compared = jax.tree.map(np.asarray, mapped(*passed, batch.passed)), 0
        for k, place.indices in enumerate(batch.examples):
            own, new = [a[k if of_texels else 0] for a in levels], values[k if of_values else 0]
            texels, landing = own[place.level].reshape(-1, channels), place.landing(mode)
            expected, nan_as = expectation(operation, texels, new, *landing)
            if operation == "read":
                compared += assert_same(result[k], expected.reshape(*place.shape, channels), f"example {k}")
            else:
                compared += compare_levels([a[k] for a in result], own, place.level, expected, nan_as)
        return place.count * count, compared


def check_trap(rng, integers, samples):
    """Under checkify a trap names the first sample that is outside; without one there is no error."""
    place = Place(rng, integers, int(pick(rng, (1, 3, samples))))
    if rng.random() < 0.5:
        inner = lambda k, n: k if isinstance(k, int) else (oracle.exact(k) % n).astype(k.dtype)
        place.indices = [*map(inner, place.indices, place.sizes)]
        place.passed = [given(integers, index) for index in place.indices]
    levels = [np.zeros((*shape, 1), np.float32) for shape in place.shapes]
    call = call_of(place, "read", "trap", place.level)
    _, inside = place.landing("zero")
    outside = np.flatnonzero(~np.broadcast_to(inside, place.shape))
    with naming(f"checkify of a read of {place}"):
        checked = checkify.checkify(lambda levels: call(place.passed, levels, None), errors=checkify.user_checks)
        error, _ = jax.jit(checked)(levels)
        found = error.get()
        assert (found is not None) == bool(outside.size), f"{found}, and {outside.size} samples are outside"
        if found:
            assert f"sample {outside[0]} " in found, f"{found.splitlines()[0]}, expected sample {outside[0]}"
        return place.count, 1


CHECKS = [check_access] * 10 + [check_batch] * 2 + [check_trap]
