"""What only a card can show: its texture unit returns the bits of hardware arithmetic, and its memory is given back."""

import ctypes
import dataclasses
import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._unit import driver, objects
from tests.recorded.recorded_reads import KINDS, recorded_cases
from tests.support.arrays import near_ties
from tests.support.tolerances import assert_exact, named

pytestmark = pytest.mark.gpu

SAMPLES = 3000
# Of each kind: what makes it, how many axes have sizes, and the sizes of those in front of them.
MAKE = {
    "1d": (jt.texture1d, 1, ()),
    "2d": (jt.texture2d, 2, ()),
    "3d": (jt.texture3d, 3, ()),
    "1d_layered": (jt.texture1d_layered, 1, (3,)),
    "2d_layered": (jt.texture2d_layered, 2, (3,)),
    "cubemap": (jt.cubemap, 2, (6,)),
    "cubemap_layered": (jt.cubemap_layered, 2, (2, 6)),
}
DTYPES = ("float32", "float16", "uint8", "int8", "uint16", "int16", "uint32", "int32")
LARGEST = {1: 90, 2: 90, 3: 24}


def stored(rng, shape, dtype):
    if np.dtype(dtype).kind == "f":
        return (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4)).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def drawn(seed):
    """A texture, a sampler, coordinates and options of a read.

    None has a footprint: hardware arithmetic follows those of the recordings, but not every one to the last bit.
    """
    rng = np.random.default_rng(seed)
    kind, dtype, channels = rng.choice([*MAKE]), str(rng.choice(DTYPES)), int(rng.integers(1, 5))
    make, ndim, front = MAKE[kind]
    is_cube, is_float = "cube" in kind, dtype.startswith("f")
    sizes = [int(n) for n in rng.integers(1, LARGEST[ndim], ndim)]
    sizes = [sizes[0]] * 2 if is_cube else sizes
    as_fraction = not is_float and np.dtype(dtype).itemsize < 4 and rng.random() < 0.8
    blends, has_levels = is_float or as_fraction, rng.random() < 0.4
    normalized = bool(has_levels or rng.random() < 0.8)
    modes = ("clamp", "border", "wrap", "mirror") if normalized else ("clamp", "border")
    how = {
        "arithmetic": "hardware",
        "filter_mode": "linear" if blends and rng.random() < 0.75 else "point",
        "read_mode": "normalized_float" if as_fraction else "element",
        "normalized_coords": normalized,
        "address_mode": tuple(str(mode) for mode in rng.choice(modes, ndim)),
        "srgb": bool(as_fraction and dtype == "uint8" and rng.random() < 0.3),
    }
    levels, size = [stored(rng, (*front, *sizes, channels), dtype)], sizes
    if has_levels:
        how |= {
            "mipmap_filter_mode": "linear" if blends and rng.random() < 0.5 else "point",
            "mipmap_level_bias": float(rng.choice([0, 0.7, -1.3])),
            "min_mipmap_level_clamp": float(rng.choice([0, 0.5])),
            "max_mipmap_level_clamp": float(rng.choice([np.inf, 2.3])),
        }
        while max(size) > 1:
            size = [max(1, n >> 1) for n in size]
            levels.append(stored(rng, (*front, *size, channels), dtype))
    if is_cube:
        how["seamless_cubemap"] = bool(rng.random() < 0.6)
    color = rng.standard_normal(channels).astype(np.float32)
    if not blends:
        color = rng.integers(0, 100, channels).astype(dtype)
    texture = make(tuple(levels) if has_levels else levels[0], border_color=color if rng.random() < 0.5 else None)
    if is_cube:
        coords = rng.standard_normal((3, SAMPLES))
    elif normalized:
        coords = rng.random((ndim, SAMPLES)) * 3 - 1
    else:
        coords = [rng.random(SAMPLES) * (n + 4) - 2 for n in sizes[::-1]]
    options = {}
    if "layered" in kind:
        options["layer"] = rng.integers(-1, 4, SAMPLES).astype(np.int32)
    if has_levels and rng.random() < 0.7:
        options["lod"] = (rng.random(SAMPLES) * 8 - 1).astype(np.float32)
    return texture, jt.Sampler(**how), tuple(np.asarray(c, np.float32) for c in coords), options


def different(seed):
    """Of a drawn read, the share of values that differ from hardware arithmetic in their bits; of a gather, too."""
    texture, sampler, coords, options = drawn(seed)
    bound = jt.unit.bind(texture, sampler, keep_texels=False)
    reads = [lambda t, coords, options: jt.sample(t, coords, sampler, **options)]
    if texture.kind.value == "2d" and texture.num_levels == 1:
        component = seed % texture.num_channels
        reads.append(lambda t, coords, options: jt.gather(t, coords, sampler, component=component))
    run = jax.jit(lambda t, coords, options: [read(t, coords, options) for read in reads])
    pairs = zip(run(bound, coords, options), run(texture, coords, options), strict=True)
    unequal = [np.mean((a != b) & ((a == a) | (b == b))) for a, b in jax.device_get([*pairs])]
    return max(map(float, unequal)), bound, sampler, [*options]


@pytest.mark.parametrize("start", [0, pytest.param(40, marks=pytest.mark.slow)])
def test_drawn_reads_have_the_bits_of_hardware_arithmetic(start):
    """200 in all."""
    found = {seed: different(seed) for seed in range(start, 40 if start == 0 else 200)}
    assert not {seed: row for seed, row in found.items() if row[0]}


def test_coordinates_in_texels_are_rounded_exactly():
    texture = jt.texture2d(np.arange(40.0, dtype=np.float32).reshape(5, 8, 1) ** 2)
    sampler = jt.Sampler(arithmetic="hardware", normalized_coords=False, address_mode="border")
    x = near_ties()
    coords = np.tile(x, 2), np.concatenate([x[::-1], np.full_like(x, 1.25)])
    assert_exact(jt.sample(jt.unit.bind(texture, sampler), coords), jt.sample(texture, coords, sampler))


def test_recorded_reads():
    """All reads that another card has recorded, anisotropic ones included: the unit returns these bits."""
    off = []
    for case in recorded_cases():
        levels, border, coords, options = case.operands()
        texture = KINDS[case.record["shape"]][1](levels if len(levels) > 1 else levels[0], border_color=border)
        sampler = case.sampler("hardware")
        bound = jt.unit.bind(texture, sampler, keep_texels=False)
        if case.gather:
            found = jt.gather(bound, coords, component=case.component)
        else:
            found = jt.sample(bound, coords, **options)
        expected = case.out[:, : found.shape[-1]].astype(found.dtype)
        if not np.array_equal(found, expected, equal_nan=True):
            off.append(str(case))
    assert not off


def is_nothing(values):
    return bool(jnp.all(jnp.isnan(values) if values.dtype == np.float32 else values == 0))


def test_handles_of_what_is_gone():
    """A copy of a handle outlives its object: floats are NaN then, integers 0, for each kind and each instruction."""
    for kind, (make, ndim, front) in MAKE.items():
        for dtype, filter_mode in (("float32", "linear"), ("int16", "point"), ("uint32", "point")):
            texture = make(np.ones((*front, *[4] * ndim, 2), dtype))
            sampler = jt.Sampler(arithmetic="hardware", filter_mode=filter_mode)
            bound = jt.unit.bind(texture, sampler)
            stale = dataclasses.replace(bound, handle=bound.handle ^ jnp.uint32(0))
            coords = (jnp.full(5, 0.4),) * (3 if "cube" in kind else ndim)
            options = {"layer": 1} if "layered" in kind else {}
            read = jax.jit(lambda t, s=sampler, c=coords, o=options: jt.sample(t, c, s, **o))
            with named(kind, dtype):
                assert_exact(read(stale), np.ones((5, 2), dtype))
                bound.destroy()
                assert is_nothing(read(stale))
                # The next object has the slot, and the old handle does not read it.
                again = jt.unit.bind(texture, sampler)
                assert_exact(read(again), np.ones((5, 2), dtype))
                assert is_nothing(read(stale))


def free_memory(device):
    """Of the card, in bytes, when all that is gone is destroyed."""
    gc.collect()
    slots = objects.slots_of(device)
    slots.wait()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    with driver.on_device(slots.ordinal):
        driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value


def test_memory_is_given_back():
    """A thousand textures of 4 MiB, of which no two need to exist at once, and each is read before it goes."""
    (device,) = jnp.zeros(()).devices()
    texels = jnp.ones((1024, 1024, 1), jnp.float32)
    texture = jt.texture2d(texels)
    read = jax.jit(lambda t, x: jt.sample(t, (x, x)))
    x = jnp.linspace(0.0, 1.0, 100)
    for _ in range(10):
        value = read(jt.unit.bind(texture, keep_texels=False), x)
    value.block_until_ready()
    before, held = free_memory(device), {*objects.slots_of(device).held}
    for _ in range(1000):
        value = read(jt.unit.bind(texture, keep_texels=False), x)
    assert_exact(value, np.ones((100, 1), np.float32))
    assert abs(free_memory(device) - before) < 64 << 20
    assert {*objects.slots_of(device).held} <= held
