"""The reads of the engine as CUDA C: the walks of one thread, compiled for the CPU, against the reads of arrays."""

import dataclasses
import itertools

import jax.numpy as jnp
import numpy as np
from host_compiler import Thread, run_threads
from tolerances import assert_close

import jaxtex as jt
from jaxtex._arguments import as_operands, check_read_arguments
from jaxtex._engine.decoding import decode
from jaxtex._engine.float_arithmetic import FLOAT
from jaxtex._engine.lowering.cuda_c import load_row
from jaxtex._engine.operators import blend, zero_outside
from jaxtex._engine.plan import layout_of
from jaxtex._hardware.arithmetic import HARDWARE
from jaxtex._hardware.read import result_dtype, value

N = 200
SPECIAL = [0, -0.0, 1, 0.5, -0.25, 1e30, -1e30, np.inf, -np.inf, np.nan, 0.4999999, 2.0**20]
MODES = ("clamp", "border", "wrap", "mirror", "reflect")


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

    @property
    def plan(self):
        arithmetic, layout = self.arithmetic, layout_of(self.texture)
        more = self.more.get("layer"), self.more.get("lod")
        arguments = as_operands(check_read_arguments("sample", layout.kind, self.coords, *more))
        return arithmetic.plan(layout, arithmetic.resolve_level(layout, arguments, self.sampler), self.sampler)[0]

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
            return load_row("texels", index * channels, channels, stored.dtype, aligned=channels in (1, 2, 4))

        def in_float(*operands):
            found = lambda address, path: zero_outside(address, decode(load_texel(address), decoding, jnp.float32))
            return blend(plan.grid(*operands), plan.axes, found)

        def in_hardware(*operands):
            spec = plan.spec(decoding, result_dtype(stored.dtype, decoding))
            zero = lambda a: zero_outside(a, load_texel(a))  # the border color
            return value(zero, plan.grid(*operands), spec, stored.dtype)

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
        if options and (filter_mode == "cubic" or mode == "reflect"):
            continue  # no texture unit has them
        sampler = jt.Sampler(filter_mode=filter_mode, address_mode=mode)
        yield f"2d {filter_mode} {mode}", Read(jt.texture2d(normal(6, 7, 4)), coordinates(2), replace(sampler))
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
        yield dtype, Read(jt.texture2d(np.ascontiguousarray(stored)), coordinates(2), replace(sampler))


def test_reads_in_float_arithmetic():
    cases = dict(reads())
    assert len(cases) == 27
    for (name, read), (found,) in zip(
        cases.items(), run_threads([read.thread for read in cases.values()]), strict=True
    ):
        expected = np.asarray(read.expected.astype(jnp.float32))
        ours = found.astype(read.expected.dtype).astype(np.float32)
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(expected), name)
        assert_close("float16" if name == "float16" else "float32", np.nan_to_num(ours), np.nan_to_num(expected), 8.0)


def test_reads_in_hardware_arithmetic_bit_for_bit():
    cases = dict(reads(arithmetic="hardware"))
    for (name, read), (found,) in zip(
        cases.items(), run_threads([read.thread for read in cases.values()]), strict=True
    ):
        expected = np.asarray(read.expected)
        ours, bits = found.astype(expected.dtype), f"u{expected.itemsize}"
        assert ((ours.view(bits) == expected.view(bits)) | (np.isnan(ours) & np.isnan(expected))).all(), name
