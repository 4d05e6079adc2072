"""Descriptors drawn at random: whether they are accepted, and with which codes refused, by `descriptor_oracle`."""

import jax.numpy as jnp
import numpy as np

from jaxtex import cuda
from jaxtex.cuda import ChannelFormatDesc, ResourceDesc, ResourceViewDesc, ResourceViewFormat, TextureDesc
from tests.fuzz.cuda import answer
from tests.fuzz.draws import chance, naming, pick
from tests.oracles import descriptors as oracle

EXTENTS = [(4, 0, 0), (6, 4, 0), (5, 1, 0), (4, 3, 5), (5, 0, 3), (8, 8, 6), (4, 4, 12), (6, 4, 6), (1, 1, 1)]
EXTENTS += [(16, 8, 0)]
EDGES = """131072,0,0 131073,0,0 131072,1,0 131073,1,0 1,65536,0 1,65537,0 16384,1,1 16385,1,1 1,16385,1 1,1,16384
1,1,16385 32768,0,1 32769,0,1 1,0,2048 1,0,2049 32768,1,1 32769,1,1 1,1,2048 1,1,2049 1,1,2046 1,1,2052 32769,32769,6
32768,1,0 32769,1,0 0,0,0 -1,0,0 4,-1,0 4,4,-6 4,0,4 0,4,4"""
EDGES = [tuple(map(int, extent.split(","))) for extent in EDGES.split()]
FLAGS = (0, 0, oracle.LAYERED, oracle.CUBEMAP, oracle.LAYERED | oracle.CUBEMAP)
MORE_FLAGS = (0, 0, 0, oracle.SURFACE, oracle.GATHER, oracle.SPARSE, oracle.COLOR, oracle.DEFERRED, 0x10, 0x100)
# The bits of a channel and the counts of view formats, in the order of their numbers from 1 on.
VIEW_BITS = [(bits,) * n + (0,) * (4 - n) for bits in (8, 8, 16, 16, 32, 32, 16, 32) for n in (1, 2, 4)]
VIEW_KINDS = [kind for kind in (1, 0, 1, 0, 1, 0, 2, 2) for _ in range(3)]
DTYPES = {(0, 8): np.int8, (0, 16): np.int16, (0, 32): np.int32, (1, 8): np.uint8, (1, 16): np.uint16}
DTYPES |= {(1, 32): np.uint32, (2, 16): np.float16, (2, 32): np.float32}


def draw_format(rng, *, modeled=False, kinds=(0, 0, 1, 1, 2, 2, *range(5, 17))):
    """Bits and kind, most often of a format that CUDA has."""
    kind = int(pick(rng, kinds)) if modeled or chance(rng, 0.7) else int(rng.integers(-1, 34))
    options = oracle.channel_bits(kind)
    if options and (modeled or chance(rng, 0.85)):
        return pick(rng, options), kind
    return tuple(int(pick(rng, (0, 0, 8, 8, 16, 24, 32, 64))) for _ in range(4)), kind


def storage_of(bits, kind):
    """The dtype of a number of a modeled format."""
    if kind in oracle.BLOCKS | oracle.PACKED:
        return np.dtype(np.uint32)
    if kind in oracle.PLANES:
        return np.dtype(np.uint8)
    if kind > 4:
        kind = 0 if kind >= 11 else 1
    return np.dtype(DTYPES[kind, bits[0]])


def compare(call, faults, text):
    """The result, or None if the call was refused as it should be."""
    with naming(text):
        code, result = answer(call)
    assert code in (faults or {0}), f"{text}: code {code}, expected {sorted(faults) or 0}"
    return result


def check_allocation(rng, **kinds):
    """createChannelDesc, malloc3DArray, mallocArray and mallocMipmappedArray: formats, extents and flags."""
    bits, kind = draw_format(rng, modeled=chance(rng, 0.6), **kinds)
    extent = pick(rng, EDGES) if chance(rng, 0.5) else pick(rng, EXTENTS)
    flags = pick(rng, FLAGS) | pick(rng, MORE_FLAGS)
    desc, how = ChannelFormatDesc(*bits, kind), pick(rng, ("3D", "rows", "levels"))
    text = f"{how} {bits} kind {kind} {extent} flags {flags:#x}"
    made = compare(lambda: cuda.createChannelDesc(*bits, kind), oracle.faults_of_format(bits, kind) & {1}, text)
    assert made in (None, desc), f"{text}: {made}"
    if how == "rows":
        extent = (*extent[:2], 0) if extent[:2] != (32769, 32769) else (32769, 1, 0)  # a few megabytes at most
        faults = oracle.faults_of_allocation(bits, kind, extent, flags, rows_only=True)
        result = compare(lambda: cuda.mallocArray(desc, *extent[:2], flags), faults, text)
    elif how == "3D":
        faults = oracle.faults_of_allocation(bits, kind, extent, flags)
        result = compare(lambda: cuda.malloc3DArray(desc, extent, flags), faults, text)
    else:
        count = int(rng.integers(0, 20))
        faults = oracle.faults_of_allocation(bits, kind, extent, flags, levels=count)
        result = compare(lambda: cuda.mallocMipmappedArray(desc, extent, count, flags), faults, text)
        if result is not None:
            expected = [oracle.stored_shape(bits, kind, size) for size in oracle.level_sizes(extent, flags, count)]
            found = [level.shape for level in result.levels]
            assert found == expected, f"{text} {count} levels: {found}, expected {expected}"
        return [result]
    if result is not None:
        expected = oracle.stored_shape(bits, kind, extent), storage_of(bits, kind)
        found = result.texels.shape, result.texels.dtype
        assert found == expected, f"{text}: {found}, expected {expected}"
        return [result, check_surface_object(result, extent, flags, text)]
    return [None]


def check_surface_object(array, extent, flags, text):
    """A surface needs its flag, and has limits of its own."""
    shape = oracle.kind_of(extent, flags)
    wrong = not flags & oracle.SURFACE or oracle.exceeds(extent, oracle.SURFACE_LIMITS[shape]) or array.desc.has_planes
    faults = {oracle.INVALID_VALUE} if wrong else set()
    return compare(lambda: cuda.createSurfaceObject(ResourceDesc.Array(array)), faults, f"surface of {text}")


def draw_desc(rng):
    """The fields of a texture descriptor, as numbers; now and then one that is no mode."""
    modes = 4 if chance(rng, 0.9) else 6
    binary = lambda odd=0.03: int(rng.integers(2)) if not chance(rng, odd) else int(pick(rng, (-1, 2, 7)))
    return {
        "addressMode": tuple(int(rng.integers(modes)) for _ in range(3 if chance(rng, 0.95) else 4)),
        "filterMode": binary(),
        "readMode": binary(),
        "sRGB": int(rng.integers(2)),
        "borderColor": tuple(float(c) for c in rng.integers(-2, 3, 4 if chance(rng, 0.95) else 3)),
        "normalizedCoords": int(rng.integers(2)),
        "maxAnisotropy": int(pick(rng, (0, 1, 4, 16, 17, 1000))),
        "mipmapFilterMode": binary(),
        "mipmapLevelBias": 0.5,
        "minMipmapLevelClamp": 2.0,
        "maxMipmapLevelClamp": 1.0,
        "disableTrilinearOptimization": int(rng.integers(2)),
        "seamlessCubemap": int(chance(rng, 0.2)),
    }


def draw_view(rng, bits, extent, levels, layers):
    """A view, its fields as numbers, and the bits of its format, None for that of the array."""
    number = 0 if chance(rng, 0.4) else int(rng.integers(1, len(VIEW_BITS) + 1))
    firsts, lasts = [], []
    for count in (levels, layers):
        first = int(rng.integers(0, count))
        firsts.append(first if chance(rng, 0.95) else count)
        lasts.append(int(rng.integers(first, count)) if chance(rng, 0.95) else count)
    view = dict(zip(("width", "height", "depth"), extent))
    if chance(rng, 0.1):
        view["width"] += 1
    view |= {"firstMipmapLevel": firsts[0], "lastMipmapLevel": lasts[0], "firstLayer": firsts[1], "lastLayer": lasts[1]}
    return number, view, VIEW_BITS[number - 1] if number else None


def check_array_texture(rng, **kinds):
    """Textures over arrays and mipmapped arrays, with and without views."""
    bits, kind = draw_format(rng, modeled=True, **kinds)
    (extent, flags), desc = pick(rng, SHAPES), draw_desc(rng)
    if kind in oracle.BLOCKS and not extent[1]:
        return []
    shape, mipmapped = oracle.kind_of(extent, flags), chance(rng, 0.4)
    format_of = ChannelFormatDesc(*bits, kind)
    if mipmapped:
        memory = cuda.mallocMipmappedArray(format_of, extent, int(rng.integers(1, 4)), flags)
        levels, resource = len(memory.levels), ResourceDesc.MipmappedArray(memory)
    else:
        memory, levels = cuda.malloc3DArray(format_of, extent, flags), 1
        resource = ResourceDesc.Array(memory)
    view, faults, read_bits, read_kind = None, set(), bits, kind
    if chance(rng, 0.4):
        layers = extent[2] // 6 if shape == "cubemap layered" else extent[2] if "layered" in shape else 1
        number, fields, view_bits = draw_view(rng, bits, extent, levels, layers)
        faults = oracle.faults_of_view(bits, kind, view_bits, extent, levels, layers, fields)
        if number:
            read_bits, read_kind = view_bits, VIEW_KINDS[number - 1]
        view = ResourceViewDesc(ResourceViewFormat(number), **fields)
    resource_type = oracle.MIPMAPPED if mipmapped else oracle.ARRAY
    faults |= oracle.faults_of_texture(resource_type, bits, kind, shape, desc, (read_bits, read_kind))
    text = f"texture of {bits} kind {kind} {extent} flags {flags} {'mipmapped' if mipmapped else ''} {desc} {view}"
    t = compare(lambda: cuda.createTextureObject(resource, TextureDesc(**desc), view), faults, text)
    if t is not None:
        assert t.desc.bits == tuple(read_bits), f"{text}: read as {t.desc}"
        expected = fields["lastMipmapLevel"] - fields["firstMipmapLevel"] + 1 if view else levels
        assert t.texture.num_levels == expected, f"{text}: {t.texture.num_levels} levels, expected {expected}"
    return [memory, t]


SHAPES = [((6, 0, 0), 0), ((8, 4, 0), 0), ((4, 3, 5), 0), ((5, 0, 3), 1), ((4, 6, 3), 1)]
SHAPES += [((4, 4, 6), 4), ((4, 4, 12), 5)]


def check_plain_texture(rng, **kinds):
    """Textures over linear and pitched memory."""
    bits, kind = draw_format(rng, modeled=True, **kinds)
    desc, pitched, dtype = draw_desc(rng), chance(rng, 0.5), storage_of(bits, kind)
    _, size, numbers = oracle.element(bits, kind)
    format_of, wrong = ChannelFormatDesc(*bits, kind), False
    if pitched:
        width, height = int(rng.integers(1, 20)), int(rng.integers(1, 5))
        pitch = -(-width * size // 32) * 32 + int(pick(rng, (0, 0, 0, 32, 8, -32)))
        held = max(pitch, 32) * (height - 1) + width * size + int(pick(rng, (0, 0, 3, -1)))
        memory = np.zeros(held, np.uint8)
        wrong = pitch % 32 != 0 or pitch < width * size or (height - 1) * pitch + width * size > held
        resource = ResourceDesc.Pitch2D(memory, format_of, width, height, pitch)
        text = f"pitched {held} bytes, {width} x {height}, pitch {pitch}"
    else:
        count = int(rng.integers(1, 30))
        taken = int(pick(rng, (count, count, 1, 0, count + 1)))
        other = np.dtype(np.int16 if dtype != np.int16 else np.uint8) if chance(rng, 0.1) else dtype
        shape = (count, numbers) if chance(rng, 0.5) else (count * numbers,)
        wrong = other != dtype or not 1 <= taken <= count
        resource = ResourceDesc.Linear(jnp.zeros(shape, other), format_of, taken * size)
        text = f"linear {shape} {other}, {taken} texels"
    view, faults = None, {oracle.INVALID_VALUE} if wrong else set()
    if chance(rng, 0.05):
        view, faults = ResourceViewDesc(), faults | {oracle.INVALID_VALUE}
    faults |= oracle.faults_of_texture(oracle.PITCH2D if pitched else oracle.LINEAR, bits, kind, "2d", desc)
    text = f"texture of {text}, {bits} kind {kind} {desc} {view}"
    t = compare(lambda: cuda.createTextureObject(resource, TextureDesc(**desc), view), faults, text)
    if t is not None:
        channels = sum(b > 0 for b in bits)
        expected = (height, width, channels) if pitched else (taken, channels)
        found = t.texture.shape[-len(expected) :]
        assert found == expected, f"{text}: {found}, expected {expected}"
    return [t]


# Each returns what it has made, and `None` for what was refused.
CHECKS = [check_allocation] * 5 + [check_array_texture] * 4 + [check_plain_texture] * 2
