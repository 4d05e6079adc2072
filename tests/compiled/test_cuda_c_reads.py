"""Reads in kernels, compiled for the CPU, against the reads of arrays: special coordinates, and how samples are shared.

`test_forms.py` runs calls of all kinds in kernels; here are the places and sizes that decide how a kernel runs.
"""

import functools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.compute.texel_value import ratio
from jaxtex._engine.cuda.read import plane_source, read_kernel
from tests.compiled.calls import stored
from tests.support import host_compiler
from tests.support.arrays import normal, on_host
from tests.support.host_compiler import Thread, can_contract, run_threads
from tests.support.host_kernels import kernels_here, noted_kernels
from tests.support.tolerances import assert_close

N = 200
SPECIAL = [0, -0.0, 1, 0.5, -0.25, 1e30, -1e30, np.inf, -np.inf, np.nan, 0.4999999, 2.0**20]
MODES = ("clamp", "border", "wrap", "mirror", "reflect", "sphere")


def coordinates(dimension, scale=1.0):
    """Special values first, in every axis in another order."""
    rng = np.random.default_rng(dimension)
    found = rng.uniform(-1.5, 2.5, (dimension, N)) * scale
    found[:, : len(SPECIAL)] = [np.roll(SPECIAL, k) for k in range(dimension)]
    return tuple(found.astype(np.float32))


def both_forms(function, *args):
    """The results of kernels, and those of arrays."""
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        expected = on_host(jax.jit(function)(*args))
    with kernels_here():
        return on_host(jax.jit(lambda *args: function(*args))(*args)), expected


# Every address mode with one of the filters, then kinds of textures that find their coordinates in other ways: a
# texture, its coordinates, the options of a sampler, and the arguments beside them.
LEVELS, CODES = np.linspace(-1, 5, N).astype(np.float32), {"read_mode": "normalized_float"}
READS = {
    f"{mode}, {name}": (jt.texture2d(normal(6, 8, 4)), coordinates(2), {"filter_mode": name, "address_mode": mode}, {})
    for mode, name in zip(MODES, ("cubic", "linear", "point", "linear", "cubic", "linear"), strict=True)
}
CHAIN = jt.texture2d(tuple(normal(n, n // 2, 3) for n in (16, 8, 4)))
READS |= {
    "in texels": (jt.texture2d(normal(6, 7, 3)), coordinates(2, 6), {"normalized_coords": False}, {}),
    "3d": (jt.texture3d(normal(5, 6, 7, 2)), coordinates(3), {"address_mode": ("wrap", "mirror", "clamp")}, {}),
    "a cube": (jt.cubemap(normal(6, 5, 5, 3)), coordinates(3), {}, {}),
    "a chain": (CHAIN, coordinates(2), {"mipmap_filter_mode": "linear", "address_mode": "wrap"}, {"lod": LEVELS}),
    "srgb": (jt.texture2d(stored("uint8", 6, 7, 4)), coordinates(2), CODES | {"srgb": True}, {}),
}


def reads(arithmetic):
    """A function of the arrays of all reads, by name, and these. No texture unit has all modes and filters."""
    no_unit_has = ("cubic", "reflect", "sphere")
    names = [name for name in READS if arithmetic == "float" or not any(word in name for word in no_unit_has)]
    samplers = {name: jt.Sampler(arithmetic=arithmetic, **READS[name][2]) for name in names}

    def run(given):
        return {n: jt.sample(texture, at, samplers[n], **more) for n, (texture, at, more) in given.items()}

    return run, {name: (READS[name][0], READS[name][1], READS[name][3]) for name in names}


@pytest.mark.slow
def test_reads_in_float_arithmetic():
    found, expected = both_forms(*reads("float"))
    for name, ours in found.items():
        theirs = expected[name]
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs), name)
        assert_close("float32", np.nan_to_num(ours), np.nan_to_num(theirs), 8.0)


@pytest.mark.slow
@pytest.mark.parametrize("contracting", [False, True])
def test_reads_in_hardware_arithmetic_bit_for_bit(contracting, monkeypatch):
    """Also by a compiler that rounds products and sums once: the products are exact where it matters."""
    if contracting and not can_contract():
        pytest.skip("this CPU rounds products and sums by themselves")
    monkeypatch.setattr(host_compiler, "compiled", functools.partial(host_compiler.compiled, contracting=contracting))
    found, expected = both_forms(*reads("hardware"))
    for name, ours in found.items():
        theirs, bits = expected[name], f"u{ours.itemsize}"
        assert ((ours.view(bits) == theirs.view(bits)) | (np.isnan(ours) & np.isnan(theirs))).all(), name


def samples(*shape):
    rng = np.random.default_rng(sum(shape))
    return tuple(rng.uniform(-0.3, 1.3, shape).astype(np.float32) for _ in range(2))


BORDER = {"address_mode": "border"}
SEVERAL = {
    "a float": (4, "float32", 1, {"address_mode": "mirror"}),
    "codes": (4, "uint8", 4, CODES | BORDER),
    "halves": (2, "float16", 4, {"address_mode": "wrap"}),
    "eight halves": (1, "float16", 16, BORDER),
    "six bytes": (2, "bfloat16", 3, {}),
    "sixteen taps": (4, "float32", 1, {"filter_mode": "cubic"} | BORDER),
    "sixteen bytes": (1, "float32", 4, {}),
    "hardware": (4, "float32", 4, {"arithmetic": "hardware"}),
    "lines": (4, "uint8", 1, CODES),
    "lines of pairs": (2, "float32", 2, BORDER),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SEVERAL)
def test_a_thread_reads_several_samples(name, monkeypatch):
    """In an image and in a row; where samples are no whole number of blocks, threads read the last ones again."""
    monkeypatch.setattr(read_kernel, "LEAST_THREADS", 1)
    count, dtype, channels, options = SEVERAL[name]
    seen, steps_of = [], read_kernel.steps_of
    monkeypatch.setattr(read_kernel, "steps_of", lambda *args: seen.append(steps_of(*args)) or seen[-1])
    color = np.float32([0.5, -2, 3, 0.25]) if name == "codes" else None
    texels = stored(dtype, *((40, 41) if "lines" in name else (6, 7)), channels)
    read = lambda t, *xy: jt.sample(jt.texture2d(t, border_color=color), xy, jt.Sampler(**options))
    for shape in ((9, 133), (700,)):
        found, expected = both_forms(read, texels, *samples(*shape))
        if name == "hardware":
            np.testing.assert_array_equal(found.view("u4"), expected.view("u4"))
        else:
            assert_close(str(found.dtype), found, expected, 8.0)
    assert set(seen) == {count}


def test_a_block_of_a_volume(monkeypatch):
    """Three axes of samples, and fewer of them than a block has on one axis."""
    monkeypatch.setattr(read_kernel, "LEAST_THREADS", 1)
    sampler = jt.Sampler(address_mode=("wrap", "mirror", "clamp"))
    for shape in ((5, 3, 130), (4, 2, 128), (3, 9, 140)):
        coords = tuple(np.random.default_rng(1).uniform(-0.5, 1.5, (3, *shape)).astype(np.float32))
        read = lambda texels, *coords: jt.sample(jt.texture3d(texels), coords, sampler)
        assert_close("float32", *both_forms(read, normal(5, 6, 7, 1), *coords), 8.0)


@pytest.mark.parametrize("arithmetic", ["float", "hardware"])
def test_colors_of_one_texture(arithmetic):
    """A batch of colors alone: one texture and its samples are shared."""
    texels, coords, colors = normal(6, 7, 2), samples(5), normal(3, 2)
    sampler = jt.Sampler(address_mode="border", arithmetic=arithmetic)
    read = jax.vmap(lambda color: jt.sample(jt.texture2d(texels, border_color=color), coords, sampler))
    with noted_kernels() as kernels:
        found = jax.jit(lambda colors: read(colors))(colors)
    assert kernels
    assert_close("float32", found, read(colors), 8.0)


PLANES = {
    "groups of planes": ((2, 12, 5, 7), (2, 6, 9), "float32", {}, (4, 3)),
    "bytes in no multiple of 16": (
        *((3, 5, 7), (40, 33), "int8", {"padding_mode": "border", "dtype": jnp.float32}, (1, 3)),
    ),
    "sixteen taps": ((2, 4, 4, 4), (1, 4, 5), "float16", {"mode": "bicubic", "padding_mode": "reflection"}, (4, 1)),
    "a volume": ((2, 3, 4, 5), (2, 3, 4), "float32", {"mode": "nearest"}, (2, 1)),
}


@pytest.mark.parametrize("name", PLANES)
def test_planes_of_images_with_channels_in_front(name):
    """Blocks share the planes, and the samples, of an image."""
    shape, samples, dtype, how, division = PLANES[name]
    rng, seen, run = np.random.default_rng(0), [], plane_source.PlaneSource.run
    noted = lambda self, name: seen.append(self.division) or run(self, name)
    image = (rng.normal(size=shape) * (40 if dtype == "int8" else 1)).astype(dtype)
    grid = rng.uniform(-1.4, 1.4, (*samples, 3 if name == "a volume" else 2)).astype(np.float32)
    read = lambda image, grid: jt.warp.grid_sample(image, grid, **how)
    few = mock.patch.multiple(plane_source, THREADS=32, LEAST_BLOCKS=9, MOST_TAPS=16)
    with few, mock.patch.object(plane_source.PlaneSource, "run", noted):
        found, expected = both_forms(read, image, grid)
    assert [(threads.planes, threads.groups) for threads in seen] == [division]
    assert_close(str(expected.dtype), found, expected, 8.0)


@pytest.mark.parametrize(("channels", "options", "has_kernel"), [
    (4, {"srgb": True}, True), (5, {"srgb": True}, False),  # of more channels a thread would not know which are colors
    (1024, {}, True), (1025, {}, False),
])  # fmt: skip
def test_what_reads_get_no_kernels(channels, options, has_kernel):
    texels = stored("uint8" if options else "float32", 6, 7, channels)
    sampler = jt.Sampler(**options, **(CODES if options else {}))
    with noted_kernels() as kernels:
        jax.jit(lambda t, *xy: jt.sample(jt.texture2d(t), xy, sampler)).lower(texels, *samples(64, 64))
    assert bool(kernels) is has_kernel


@pytest.mark.parametrize("contracting", [False, True])
def test_every_code_is_the_rounded_quotient(contracting):
    """Also where the product and the sum of `ratio` are rounded once."""
    if contracting and not can_contract():
        pytest.skip("this CPU rounds products and sums by themselves")
    codes = {bits: np.arange(-(2**bits) + 1, 2**bits, dtype=np.int32) for bits in (7, 8, 15, 16)}
    threads = [Thread(lambda k, n=n: ratio(k, n, np.dtype(np.float32)), (code,)) for n, code in codes.items()]
    for (bits, code), (found,) in zip(codes.items(), run_threads(threads, contracting), strict=True):
        np.testing.assert_array_equal(found, (code / (2**bits - 1)).astype(np.float32))
