"""Reads of textures by CUDA's names at integer coordinates, drawn at random: each is compared with `memory_oracle`.

A whole number is an edge between two texels, of which a linear read is the mean.
"""

import contextlib

import jax
import numpy as np

from jaxtex import cuda
from jaxtex.cuda import AddressMode, ArrayFlags, FilterMode, ReadMode, ResourceDesc, TextureDesc
from tests.fuzz.cuda import FORMATS, KINDS, parsed, plain_bytes, run, size_of
from tests.fuzz.integers import TYPES, draw_index, draw_shapes, given
from tests.fuzz.surfaces import assert_same, pick
from tests.oracles import memory as oracle

READ_KINDS = ("1D", "2D", "3D", "1DLayered", "2DLayered")


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


class Reads:
    """A texture of floats, and the places of reads, which have any of the integer types."""

    def __init__(self, rng, integers, samples, kinds, flags=0):
        self.kind = pick(rng, kinds)
        extents, shape_flags, self.axes = KINDS[self.kind]
        extent, self.layered = pick(rng, extents), bool(shape_flags)
        self.sizes = dict(zip("xyz", extent))
        self.mode, self.normalized = pick(rng, list(AddressMode)), bool(rng.random() < 0.3)
        self.filter, self.name = pick(rng, list(FilterMode)), pick(rng, ["float", "float2", "float4"])
        array = cuda.malloc3DArray(cuda.createChannelDesc(self.name), extent, shape_flags | flags)
        self.texels = rng.integers(-64, 65, array.texels.shape).astype(np.float32)
        self.border = rng.integers(-4, 5, 4).astype(np.float64)
        desc = TextureDesc(
            self.mode, self.filter, borderColor=tuple(self.border), normalizedCoords=int(self.normalized)
        )
        self.t = cuda.createTextureObject(ResourceDesc.Array(cuda.memcpyToArray(array, self.texels)), desc)
        shapes, _ = draw_shapes(rng, len(self.axes), samples)
        python = integers.origin == "python"
        self.indices = {
            axis: draw_index(rng, TYPES["int32_numpy"] if python and axis != "x" else integers, self.sizes[axis], shape)
            for axis, shape in zip(self.axes, shapes)
        }
        self.shape = np.broadcast_shapes(*(np.shape(index) for index in self.indices.values()))
        self.passed = [given(integers, self.indices[axis]) for axis in self.axes]

    @property
    def linear(self):
        return self.filter is FilterMode.Linear

    @property
    def used_mode(self):
        """Without normalized coordinates wrap and mirror clamp."""
        mode = self.mode.name.lower()
        return mode if self.normalized or mode == "border" else "clamp"

    def taps(self, axis, *, linear):
        return oracle.axis_taps(
            self.indices[axis], self.sizes[axis], self.used_mode, normalized=self.normalized, linear=linear
        )

    def __str__(self):
        places = [k if isinstance(k, int) else f"{k.dtype}{list(k.shape)}" for k in self.indices.values()]
        return (
            f"{self.kind} {self.name}{tuple(self.sizes.values())} {self.mode.name} {self.filter.name} "
            f"normalized={self.normalized}, {places}"
        )


def check_filtered(rng, integers, samples):
    """tex1D to tex2DLayered."""
    reads, jitted = Reads(rng, integers, samples, READ_KINDS), bool(rng.random() < 0.5)
    call = lambda places, t: getattr(cuda, f"tex{reads.kind}")(t, *places)
    try:
        found = run(call, reads.passed, reads.t, jitted=jitted, traced=integers.origin == "jax")
        expected = expected_of(reads)
        return int(np.prod(reads.shape)), assert_same(np.asarray(found) + np.float32(0), expected, "values")
    except Exception as error:
        raise AssertionError(f"{'jitted ' if jitted else ''}tex{reads}: {type(error).__name__}: {error}") from error


def expected_of(reads):
    """The mean of the taps."""
    taps = [
        reads.taps(axis, linear=reads.linear) for axis in reversed(reads.axes) if not (reads.layered and axis == "z")
    ]
    stored = reads.texels
    if reads.layered:
        layer, count = oracle.as_int(reads.indices["z"]), reads.sizes["z"]
        taps = [[np.where((layer >= 0) & (layer < count), layer, count - 1)], *taps]
    elif reads.kind == "1D" and reads.linear and reads.used_mode == "border":  # an image of one row, read at its edge
        stored, taps = stored[None], [[np.int64(-1), np.int64(0)], *taps]
    mean = oracle.read_whole(stored, taps, reads.border[: stored.shape[-1]])
    mean = np.broadcast_to(mean, (*reads.shape, stored.shape[-1])).astype(np.float32) + np.float32(0)
    return mean if reads.name[-1] in "24" else mean[..., 0]


def check_gather(rng, integers, samples):
    """tex2Dgather: one channel of the texels around an edge, counter-clockwise from the lower left."""
    reads, jitted = Reads(rng, integers, samples, ["2D"], ArrayFlags.TextureGather), bool(rng.random() < 0.5)
    comp = int(rng.integers(0, 4))
    call = lambda places, t: cuda.tex2Dgather(t, *places, comp)
    try:
        found = run(call, reads.passed, reads.t, jitted=jitted, traced=integers.origin == "jax")
        (x0, x1), (y0, y1) = (reads.taps(axis, linear=True) for axis in "xy")
        border, none = reads.border[comp : comp + 1], np.zeros((*reads.texels.shape[:-1], 1))
        absent = comp >= reads.texels.shape[-1]
        channel, border = (none, np.zeros(1)) if absent else (reads.texels[..., comp : comp + 1], border)
        corners = [oracle.read_whole(channel, [[y], [x]], border) for x, y in ((x0, y1), (x1, y1), (x1, y0), (x0, y0))]
        expected = np.broadcast_to(np.concatenate(corners, -1), (*reads.shape, 4)).astype(np.float32)
        return int(np.prod(reads.shape)), assert_same(np.asarray(found), expected, "values")
    except Exception as error:
        text = f"{'jitted ' if jitted else ''}gather {comp} {reads}"
        raise AssertionError(f"{text}: {type(error).__name__}: {error}") from error


CHECKS = [check_fetch] * 2 + [check_filtered] * 2 + [check_gather]


def check(rng, integers, samples):
    """A case of one type of coordinates: how many accesses there were, and how many values were compared."""
    with jax.enable_x64(True) if integers.x64 else contextlib.nullcontext():
        return pick(rng, CHECKS)(rng, integers, samples)
