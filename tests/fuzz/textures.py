"""Reads of textures by CUDA's names at integer coordinates, drawn at random: each is compared with `memory_oracle`.

A whole number is an edge between two texels, of which a linear read is the mean.
"""

import numpy as np

from jaxtex import cuda
from jaxtex.cuda import AddressMode, ArrayFlags, FilterMode, ReadMode, ResourceDesc, TextureDesc
from tests.fuzz.cuda import FORMATS, KINDS, arrays_of, filled, parsed, plain_bytes, size_of
from tests.fuzz.draws import assert_same, naming, pick
from tests.fuzz.integers import draw_index, draw_indices, given, named, run, shape_of
from tests.oracles import memory as oracle

FLOATS = ("float", "float2", "float4")
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
    with naming(text):
        found = run(lambda x, t: cuda.tex1Dfetch(t, x), given(integers, x), t, jitted=jitted, traced=traced)
        flat, inside = oracle.place([oracle.as_int(x)], [count], "zero")
        expected = oracle.read(oracle.decoded(memory, normalized=fractions), flat, inside)
        return np.size(x), assert_same(found, expected if length else expected[..., 0], "values")


class Reads:
    """A texture of floats, and the places of reads, which have any of the integer types."""

    def __init__(self, rng, integers, samples, kinds, flags=0):
        self.kind = pick(rng, kinds)
        extents, shape_flags, self.axes = KINDS[self.kind]
        extent, self.layered = pick(rng, extents), bool(shape_flags)
        self.sizes = dict(zip("xyz", extent))
        self.mode, self.normalized = pick(rng, list(AddressMode)), bool(rng.random() < 0.3)
        self.filter, self.name = pick(rng, list(FilterMode)), pick(rng, FLOATS)
        made = arrays_of(FLOATS, tuple((n, KINDS[k][1] | flags) for k in kinds for n in KINDS[k][0]))
        array = made[self.name, extent, shape_flags | flags]
        self.texels = rng.integers(-64, 65, array.texels.shape).astype(np.float32)
        self.border = rng.integers(-4, 5, 4).astype(np.float64)
        options = {"borderColor": tuple(self.border), "normalizedCoords": int(self.normalized)}
        desc = TextureDesc(self.mode, self.filter, **options)
        self.t = cuda.createTextureObject(ResourceDesc.Array(filled(array, self.texels, np.float32)), desc)
        sizes, own = [self.sizes[axis] for axis in self.axes], np.array([axis == "x" for axis in self.axes])
        drawn = draw_indices(rng, integers, sizes, samples, x=0, own=own)
        self.indices, self.shape = dict(zip(self.axes, drawn)), shape_of(drawn)
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
        index, how = self.indices[axis], {"normalized": self.normalized, "linear": linear}
        return oracle.axis_taps(index, self.sizes[axis], self.used_mode, **how)

    def __str__(self):
        how = f"{self.mode.name} {self.filter.name} normalized={self.normalized}"
        return f"{self.kind} {self.name}{tuple(self.sizes.values())} {how}, {named(self.indices.values())}"


def check_filtered(rng, integers, samples):
    """tex1D to tex2DLayered."""
    reads, jitted = Reads(rng, integers, samples, READ_KINDS), bool(rng.random() < 0.5)
    call = lambda places, t: getattr(cuda, f"tex{reads.kind}")(t, *places)
    with naming(f"{'jitted ' if jitted else ''}tex{reads}"):
        found = run(call, reads.passed, reads.t, jitted=jitted, traced=integers.origin == "jax")
        expected = expected_of(reads)
        return int(np.prod(reads.shape)), assert_same(np.asarray(found) + np.float32(0), expected, "values")


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
    with naming(f"{'jitted ' if jitted else ''}gather {comp} {reads}"):
        found = run(call, reads.passed, reads.t, jitted=jitted, traced=integers.origin == "jax")
        (x0, x1), (y0, y1) = (reads.taps(axis, linear=True) for axis in "xy")
        border, none = reads.border[comp : comp + 1], np.zeros((*reads.texels.shape[:-1], 1))
        absent = comp >= reads.texels.shape[-1]
        channel, border = (none, np.zeros(1)) if absent else (reads.texels[..., comp : comp + 1], border)
        corners = [oracle.read_whole(channel, [[y], [x]], border) for x, y in ((x0, y1), (x1, y1), (x1, y0), (x0, y0))]
        expected = np.broadcast_to(np.concatenate(corners, -1), (*reads.shape, 4)).astype(np.float32)
        return int(np.prod(reads.shape)), assert_same(np.asarray(found), expected, "values")


CHECKS = [check_fetch] * 2 + [check_filtered] * 2 + [check_gather]
