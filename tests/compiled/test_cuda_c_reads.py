"""The reads of the engine as CUDA C: the walks of one thread, compiled for the CPU, against the reads of arrays."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._checks.arguments import check_read_arguments
from jaxtex._engine.arithmetic import FLOAT
from jaxtex._engine.compute.operators import blend
from jaxtex._engine.compute.texel_value import decode, ratio, zero_outside
from jaxtex._engine.cuda.read import plane_source, read_kernel
from jaxtex._engine.cuda.trace.indexing import load_row
from jaxtex._engine.describe.plan import layout_of
from jaxtex._engine.forms import gpu_kernels
from jaxtex._hardware.arithmetic import HARDWARE
from jaxtex._hardware.read import read_in_kernel, result_dtype, stored_color, value
from jaxtex._reads.calls import plan_of_call
from tests.support.host_compiler import RUN_HERE, Thread, can_contract, run_threads
from tests.support.host_kernels import kernels_on_cpu
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


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@dataclasses.dataclass
class Read:
    """A read of a texture at N samples."""

    texture: jt.Texture
    coords: tuple
    sampler: jt.Sampler
    more: dict = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def plan(self):
        layout = layout_of(self.texture)
        more = [self.more.get(name) for name in ("layer", "lod", "ddx", "ddy", "ddz")]
        arguments = check_read_arguments("sample", layout.kind, self.coords, *more).as_operands()
        return plan_of_call(self.arithmetic, layout, arguments, self.sampler, np.dtype(np.float32))

    @property
    def arithmetic(self):
        return HARDWARE if self.sampler.arithmetic == "hardware" else FLOAT

    @property
    def expected(self):
        return jt.sample(self.texture, self.coords, self.sampler, **self.more)

    @property
    def thread(self):
        plan, decoding, texels = self.plan, self.sampler.decoding, self.texture.texels
        channels, stored = texels.shape[-1], np.asarray(texels).reshape(-1, texels.shape[-1])

        def load_texel(address):
            (index,) = address.flat_index
            return load_row("texels", [(index, channels)], channels, stored.dtype, aligned=channels in (1, 2, 4))

        def in_float(*operands):
            found = lambda address, path: zero_outside(address, decode(load_texel(address), decoding, jnp.float32))
            return blend(plan.spec.coords_at(*operands), plan.spec.axes, found)

        def in_hardware(*operands):
            spec = plan.spec.with_dtype(result_dtype(stored.dtype, decoding))
            zero = lambda a: zero_outside(a, load_texel(a))  # the border color
            return value(zero, spec.coords_at(*operands), spec, stored.dtype)

        function = in_hardware if self.arithmetic is HARDWARE else in_float
        operands = tuple(np.broadcast_to(np.asarray(a), (N,)) for a in plan.operands)
        return Thread(function, operands, {"texels": stored})


LEVELS = np.linspace(-1, 5, N).astype(np.float32)
LAYERS = np.arange(N, dtype=np.int32) % 5 - 1
MIPS = jt.Sampler(mipmap_filter_mode="linear", address_mode="wrap")


def reads(**options):
    """By name: every filter with every address mode, then every kind of texture."""
    replace = lambda sampler: dataclasses.replace(sampler, **options)
    for filter_mode, mode in itertools.product(("point", "linear", "cubic"), MODES):
        if options and (filter_mode == "cubic" or mode in ("reflect", "sphere")):
            continue  # no texture unit has them
        sampler = jt.Sampler(filter_mode=filter_mode, address_mode=mode)
        yield f"2d {filter_mode} {mode}", Read(jt.texture2d(normal(6, 8, 4)), coordinates(2), replace(sampler))
    texels = jt.Sampler(normalized_coords=False, address_mode="border")
    kinds = {
        "1d": Read(jt.texture1d(normal(50, 1)), coordinates(1), jt.Sampler()),
        "texels": Read(jt.texture2d(normal(6, 7, 3)), coordinates(2, 6), texels),
        "3d": Read(
            jt.texture3d(normal(5, 6, 7, 2)), coordinates(3), jt.Sampler(address_mode=("wrap", "mirror", "clamp"))
        ),
        "layers": Read(jt.texture2d_layered(normal(3, 6, 7, 2)), coordinates(2), jt.Sampler(), {"layer": LAYERS}),
        "a cube": Read(jt.cubemap(normal(6, 5, 5, 3)), coordinates(3), jt.Sampler()),
        "faces": Read(jt.cubemap(normal(6, 5, 5, 1)), coordinates(3), jt.Sampler(seamless_cubemap=False)),
        "a chain": Read(jt.build_mipmaps(jt.texture2d(normal(16, 8, 3))), coordinates(2), MIPS, {"lod": LEVELS}),
    }
    for name, read in kinds.items():
        yield name, dataclasses.replace(read, sampler=replace(read.sampler))
    for dtype in ("uint8", "int8", "uint16", "int16", "float16"):
        integer, bits = dtype != "float16", np.random.default_rng(0).integers(0, 255, (6, 7, 8)).astype(np.uint8)
        stored = bits.view(dtype) if integer else normal(6, 7, 4).astype(dtype)
        sampler = jt.Sampler(read_mode="normalized_float" if integer else "element", address_mode="wrap")
        if dtype == "uint8":
            colors, srgb = np.ascontiguousarray(stored[..., :4]), dataclasses.replace(sampler, srgb=True)
            yield "srgb", Read(jt.texture2d(colors), coordinates(2), replace(srgb))
            yield (
                "srgb at one tap",
                Read(
                    jt.texture2d(colors[..., :2]),
                    coordinates(2),
                    replace(dataclasses.replace(srgb, filter_mode="point")),
                ),
            )
            volume = np.random.default_rng(0).integers(0, 256, (4, 5, 6, 3)).astype(np.uint8)
            yield "srgb 3d", Read(jt.texture3d(volume), coordinates(3), replace(srgb))
        yield dtype, Read(jt.texture2d(np.ascontiguousarray(stored)), coordinates(2), replace(sampler))


@pytest.mark.slow
def test_reads_in_float_arithmetic():
    cases = dict(reads())
    assert len(cases) == 33
    for (name, read), (found,) in zip(
        cases.items(), run_threads([read.thread for read in cases.values()]), strict=True
    ):
        expected = np.asarray(read.expected.astype(jnp.float32))
        ours = found.astype(read.expected.dtype).astype(np.float32)
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(expected), name)
        assert_close("float16" if name == "float16" else "float32", np.nan_to_num(ours), np.nan_to_num(expected), 8.0)


@pytest.mark.slow
@pytest.mark.parametrize("contracting", [False, True])
def test_reads_in_hardware_arithmetic_bit_for_bit(contracting):
    """Also by a compiler that rounds products and sums once: the products are exact where it matters."""
    if contracting and not can_contract():
        pytest.skip("this CPU rounds products and sums by themselves")
    cases = dict(reads(arithmetic="hardware"))
    threads = [read.thread for read in cases.values()]
    for (name, read), (found,) in zip(cases.items(), run_threads(threads, contracting), strict=True):
        expected = np.asarray(read.expected)
        ours, bits = found.astype(expected.dtype), f"u{expected.itemsize}"
        assert ((ours.view(bits) == expected.view(bits)) | (np.isnan(ours) & np.isnan(expected))).all(), name


# Whole kernels


def stored(dtype, *shape):
    """Texels of any dtype."""
    if jnp.issubdtype(dtype, jnp.floating):
        return normal(*shape).astype(dtype)
    bits = np.random.default_rng(0).integers(0, 256, (*shape, np.dtype(dtype).itemsize)).astype(np.uint8)
    return bits[..., 0] > 99 if dtype == "bool" else np.squeeze(bits.view(dtype), -1)


def samples(*shape, scale=1.0):
    rng = np.random.default_rng(sum(shape))
    return tuple((rng.uniform(-0.3, 1.3, shape) * scale).astype(np.float32) for _ in range(2))


def pair(texels, read_as, coords, **options):
    """A read of a texture of two axes as a kernel, and as operations on arrays."""
    color, sampler = options.pop("color", None), jt.Sampler(**options)
    return both_forms(Read(jt.texture2d(jnp.asarray(texels), border_color=color), coords, sampler), read_as)


@RUN_HERE
def both_forms(read, read_as):
    """A read as a kernel, and as operations on arrays."""
    texture, decoding, color = read.texture, read.sampler.decoding, read.texture.border_color
    plan, arithmetic = read.plan, read.arithmetic
    plan = plan.replace(dtype=np.dtype(read_as))
    spec = plan.spec
    static = {"spec": spec, "batch": 0}
    expected = arithmetic.read(texture, plan)
    if arithmetic is HARDWARE:
        color = stored_color(color, texture.num_channels, texture.dtype, decoding)
        found = read_in_kernel(texture.texels, color, *plan.operands, **static)
    elif color is not None:
        color = jnp.broadcast_to(jnp.asarray(color, spec.sums), (texture.num_channels,))
        over_color, args = plan.over(color)
        found = read_kernel.read(texture.texels, *args, **static | {"spec": over_color})
    else:
        found = read_kernel.read(texture.texels, *plan.operands, **static)
    assert found.dtype == expected.dtype == np.dtype(read_as)
    return np.asarray(found), np.asarray(expected)


CODES = {"read_mode": "normalized_float", "address_mode": "border"}
COLOR = np.float32([0.5, -2, 3, 0.25])


def bits_of(a):
    return a.view(f"u{a.itemsize}")


SEVERAL = {
    "a float": (4, "float32", 1, "float32", {"address_mode": "mirror"}),
    "codes": (4, "uint8", 4, "float32", {**CODES, "color": COLOR}),
    "halves": (2, "float16", 4, "float16", {"address_mode": "wrap"}),
    "eight halves": (1, "float16", 16, "float16", {"address_mode": "border"}),
    "six bytes": (2, "bfloat16", 3, "bfloat16", {}),
    "sixteen taps": (4, "float32", 1, "float32", {"filter_mode": "cubic", "address_mode": "border"}),
    "sixteen bytes": (1, "float32", 4, "float32", {}),
    "hardware": (4, "float32", 4, "float32", {"arithmetic": "hardware"}),
    "lines": (4, "uint8", 1, "float32", {"read_mode": "normalized_float"}),
    "lines of pairs": (2, "float32", 2, "float32", {"address_mode": "border"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SEVERAL)
def test_a_thread_reads_several_samples(name, monkeypatch):
    """In an image and in a row; where samples are no whole number of blocks, threads read the last ones again."""
    monkeypatch.setattr(read_kernel, "LEAST_THREADS", 1)
    count, dtype, channels, read_as, options = SEVERAL[name]
    seen, steps_of = [], read_kernel.steps_of
    monkeypatch.setattr(read_kernel, "steps_of", lambda *args: seen.append(steps_of(*args)) or seen[-1])
    for shape in ((9, 133), (700,)):
        size = (40, 41) if "lines" in name else (6, 7)
        found, expected = pair(stored(dtype, *size, channels), read_as, samples(*shape), **options)
        if name == "hardware":
            np.testing.assert_array_equal(bits_of(found), bits_of(expected))
        else:
            assert_close(read_as, found, expected, 8.0)
    assert set(seen) == {count}


def test_a_block_of_a_volume(monkeypatch):
    """Three axes of samples, and fewer of them than a block has on one axis."""
    monkeypatch.setattr(read_kernel, "LEAST_THREADS", 1)
    texture = jt.texture3d(jnp.asarray(normal(5, 6, 7, 1)))
    for shape in ((5, 3, 130), (4, 2, 128), (3, 9, 140)):
        coords = tuple(np.random.default_rng(1).uniform(-0.5, 1.5, (3, *shape)).astype(np.float32))
        read = Read(texture, coords, jt.Sampler(address_mode=("wrap", "mirror", "clamp")))
        found, expected = both_forms(read, "float32")
        assert_close("float32", found, expected, 8.0)


@pytest.mark.parametrize("arithmetic", ["float", "hardware"])
def test_colors_of_one_texture(arithmetic):
    """A batch of colors alone: one texture and its samples are shared."""
    texels, coords, colors = normal(6, 7, 2), samples(5), normal(3, 2)
    sampler = jt.Sampler(address_mode="border", arithmetic=arithmetic)
    read = jax.vmap(lambda color: jt.sample(jt.texture2d(texels, border_color=color), coords, sampler))
    expected = read(colors)
    with kernels_on_cpu():
        program = jax.jit(lambda colors: read(colors)).lower(colors)
    assert "callback" in program.as_text()
    assert_close("float32", program.compile()(colors), expected, 8.0)


PLANES = {
    "groups of planes": ((2, 12, 5, 7), (2, 6, 9), "float32", {}, (4, 3)),
    "bytes in no multiple of 16": (
        (3, 5, 7),
        (40, 33),
        "int8",
        {"padding_mode": "border", "dtype": jnp.float32},
        (1, 3),
    ),
    "sixteen taps": ((2, 4, 4, 4), (1, 4, 5), "float16", {"mode": "bicubic", "padding_mode": "reflection"}, (4, 1)),
    "a volume": ((2, 3, 4, 5), (2, 3, 4), "float32", {"mode": "nearest"}, (2, 1)),
}


@pytest.mark.parametrize("name", PLANES)
def test_planes_of_images_with_channels_in_front(name, monkeypatch):
    """Blocks share the planes, and the samples, of an image."""
    monkeypatch.setattr(plane_source, "THREADS", 32)
    monkeypatch.setattr(plane_source, "LEAST_BLOCKS", 9)
    monkeypatch.setattr(plane_source, "MOST_TAPS", 16)
    shape, samples, dtype, how, division = PLANES[name]
    rng, seen, run = np.random.default_rng(0), [], plane_source.PlaneSource.run
    monkeypatch.setattr(
        plane_source.PlaneSource, "run", lambda self, name: seen.append(self.division) or run(self, name)
    )
    image = (rng.normal(size=shape) * (40 if dtype == "int8" else 1)).astype(dtype)
    grid = rng.uniform(-1.4, 1.4, (*samples, 3 if name == "a volume" else 2)).astype(np.float32)
    read = lambda image, grid: jt.warp.grid_sample(image, grid, **how)
    expected = jax.jit(read)(image, grid)
    with kernels_on_cpu():
        found = jax.jit(lambda *args: read(*args))(image, grid)
    assert [(threads.planes, threads.groups) for threads in seen] == [division]
    assert_close(str(expected.dtype), found, expected, 8.0)


def test_what_reads_get_no_kernels(monkeypatch):
    monkeypatch.setattr(gpu_kernels, "can_compile_kernels", lambda: True)
    of = lambda shape, dtype="float32": jax.ShapeDtypeStruct(shape, np.dtype(dtype))
    coords = of((64, 64)), of((64, 64))

    def supported(dtype, channels, read_as, options):
        texture, sampler = jt.texture2d(stored(dtype, 6, 7, channels)), jt.Sampler(**options)
        spec = Read(texture, samples(64, 64), sampler).plan.spec.with_dtype(read_as)
        return gpu_kernels.supports_read(texture.texels, *coords, spec=spec, batch=0)

    # Of more channels a thread would not know which are colors.
    assert [supported("uint8", n, "float32", {**CODES, "srgb": True}) for n in (4, 5)] == [True, False]
    assert [supported("float32", n, "float32", {}) for n in (1024, 1025)] == [True, False]


@pytest.mark.parametrize("contracting", [False, True])
def test_every_code_is_the_rounded_quotient(contracting):
    """Also where the product and the sum of `ratio` are rounded once."""
    if contracting and not can_contract():
        pytest.skip("this CPU rounds products and sums by themselves")
    codes = {bits: np.arange(-(2**bits) + 1, 2**bits, dtype=np.int32) for bits in (7, 8, 15, 16)}
    threads = [Thread(lambda k, n=n: ratio(k, n, np.dtype(np.float32)), (code,)) for n, code in codes.items()]
    for (bits, code), (found,) in zip(codes.items(), run_threads(threads, contracting), strict=True):
        np.testing.assert_array_equal(found, (code / (2**bits - 1)).astype(np.float32))
