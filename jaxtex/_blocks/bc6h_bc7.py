"""BC6H and BC7: a block has a mode, which sets the bits of its parts, and up to three pairs of colors.

Source: Microsoft, "BC6H Format" and "BC7 Format Mode Reference" of Direct3D 11; recorded reads of a texture unit.
"""

import re
from typing import Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from .bits import TEXELS, bits, blend, indices, words_of

# The subset of each texel, the first texel lowest: of two subsets in 16 bits, of three in 16 pairs of bits.
TWO_SUBSETS = """
    cccc 8888 eeee ecc8 c880 feec fec8 ec80 c800 ffec fe80 e800 ffe8 ff00 fff0 f000 f710 008e 7100 08ce 008c 7310
    3100 8cce 088c 3110 6666 366c 17e8 0ff0 718e 399c aaaa f0f0 5a5a 33cc 3c3c 55aa 9696 a55a 73ce 13c8 324c 3bdc
    6996 c33c 9966 0660 0272 04e4 4e40 2720 c936 936c 39c6 639c 9336 9cc6 817e e718 ccf0 0fcc 7744 ee22
"""
THREE_SUBSETS = """
    aa685050 6a5a5040 5a5a4200 5450a0a8 a5a50000 a0a05050 5555a0a0 5a5a5050 aa550000 aa555500 aaaa5500 90909090
    94949494 a4a4a4a4 a9a59450 2a0a4250 a5945040 0a425054 a5a5a500 55a0a0a0 a8a85454 6a6a4040 a4a45000 1a1a0500
    0050a4a4 aaa59090 14696914 69691400 a08585a0 aa821414 50a4a450 6a5a0200 a9a58000 5090a0a8 a8a09050 24242424
    00aa5500 24924924 24499224 50a50a50 500aa550 aaaa4444 66660000 a5a0a5a0 50a050a0 69286928 44aaaa44 66666600
    aa444444 54a854a8 95809580 96969600 a85454a8 80959580 aa141414 96960000 aaaa1414 a05050a0 a0a5a5a0 96000000
    40804080 a9a8a9a8 aaaaaa44 2a4a5254
"""
# The anchor of each further subset: its index lacks the highest bit. The anchor of the first subset is texel 0.
ANCHOR_OF_TWO = "fffffffffffffffff282288f28228822ff6828ff28222ff66268ff22fffff22f"
ANCHORS_OF_THREE = (
    "33ff83ff88666533338f336a588685ff8f356a8ff3f5ffff3f55585a5a8dfc33",
    "f883ff38fffffff8f8f3f8f83f6affa8f3faa89a6f8f3668f3ffffffffff3ff8",
)


def _subsets(masks: str, width: int) -> np.ndarray:
    """(64, 16), the subset of each texel by the number of the partition."""
    numbers = np.array([[int(mask, 16)] for mask in masks.split()], np.int64)
    return (numbers >> width * np.arange(TEXELS) & (1 << width) - 1).astype(np.int32)


def _anchors(*places: str) -> np.ndarray:
    """(64, 16) bool, whether a texel is the anchor of its subset."""
    columns = [np.zeros(64, int), *(np.array([int(digit, 16) for digit in row]) for row in places)]
    return np.any([column[:, None] == np.arange(TEXELS) for column in columns], 0)


# By the number of subsets less one, and of the partition.
SUBSETS = np.stack([np.zeros((64, TEXELS), np.int32), _subsets(TWO_SUBSETS, 1), _subsets(THREE_SUBSETS, 2)])
ANCHORS = np.stack([_anchors(), _anchors(ANCHOR_OF_TWO), _anchors(*ANCHORS_OF_THREE)])


Number = TypeVar("Number", int, jax.Array)


class Mode(NamedTuple, Generic[Number]):
    """A mode of BC7: its number of subsets, and the bits of each part of a block, in order.

    `endpoint_bit` and `subset_bit` tell whether a lowest bit is stored per color, or per subset. `rotation` exchanges
    alpha and another channel, and `selector` the two sets of indices.
    """

    subsets: Number
    partition: Number
    rotation: Number
    selector: Number
    color: Number
    alpha: Number
    endpoint_bit: Number
    subset_bit: Number
    first_index: Number
    second_index: Number


MODES = (
    Mode(3, 4, 0, 0, 4, 0, 1, 0, 3, 0),
    Mode(2, 6, 0, 0, 6, 0, 0, 1, 3, 0),
    Mode(3, 6, 0, 0, 5, 0, 0, 0, 2, 0),
    Mode(2, 6, 0, 0, 7, 0, 1, 0, 2, 0),
    Mode(1, 0, 2, 1, 5, 6, 0, 0, 2, 3),
    Mode(1, 0, 2, 0, 7, 8, 0, 0, 2, 2),
    Mode(1, 0, 0, 0, 7, 7, 1, 0, 4, 0),
    Mode(2, 6, 0, 0, 5, 5, 1, 0, 2, 0),
)


def bc7_texels(blocks: jax.Array) -> jax.Array:
    """The texels of BC7 blocks, (N, 16) to (N, 16, 4), uint8. Blocks without a mode hold zeros."""
    words = words_of(blocks)
    # The mode is the number of zeros below the lowest bit that is set.
    first = blocks[:, 0].astype(jnp.uint32)
    number = jnp.minimum(jax.lax.population_count((first ^ first - 1) >> 1), len(MODES)).astype(jnp.int32)
    table = jnp.asarray(np.array([*MODES, MODES[6]], np.int32))
    mode = Mode[jax.Array](*jnp.moveaxis(table[number][..., None], -2, 0))
    count = 2 * mode.subsets

    start = number[..., None] + 1
    partition = bits(words, start, mode.partition)[..., 0]
    start = start + mode.partition
    rotation = bits(words, start, mode.rotation)
    start = start + mode.rotation
    selector = bits(words, start, mode.selector) > 0
    start = start + mode.selector

    # Colors, (N, channel, end), with channel and end in one axis.
    channel, end = np.divmod(np.arange(24, dtype=np.int32)[None], 6)
    width = jnp.where(channel < 3, mode.color, mode.alpha)
    ends = bits(words, start + channel * count * mode.color + end * width, width)
    start = start + count * (3 * mode.color + mode.alpha)
    has_bit = mode.endpoint_bit | mode.subset_bit
    ends = ends << has_bit | bits(words, start + jnp.where(mode.subset_bit > 0, end // 2, end), has_bit)
    start = start + count * mode.endpoint_bit + mode.subsets * mode.subset_bit
    width = width + has_bit
    ends = ends << 8 - width
    ends = jnp.where((channel == 3) & (mode.alpha == 0), 255, ends | ends >> width)

    subset = jnp.asarray(SUBSETS)[mode.subsets[..., 0] - 1, partition]
    anchors = jnp.asarray(ANCHORS)[mode.subsets[..., 0] - 1, partition]
    index = indices(words, start, mode.first_index, anchors)
    start = start + TEXELS * mode.first_index - mode.subsets
    has_second = mode.second_index > 0
    second = indices(words, start, mode.second_index, jnp.asarray(ANCHORS[0, :1]) & has_second)

    pairs = ends.reshape(*ends.shape[:-1], 4, 3, 2)
    channels: list[jax.Array] = []
    for channel in range(4):
        uses_second = has_second & (selector if channel < 3 else ~selector)
        first, last = (chosen(pairs[..., channel, :, k], subset) for k in (0, 1))
        of_texel = jnp.where(uses_second, second, index)
        channels.append(blend(first, last, of_texel, jnp.where(uses_second, mode.second_index, mode.first_index)))
    *colors, alpha = channels
    rotated = [jnp.where(rotation == k + 1, alpha, color) for k, color in enumerate(colors)]
    for k, color in enumerate(colors):
        alpha = jnp.where(rotation == k + 1, color, alpha)
    texels = jnp.stack([*rotated, alpha], -1)
    return jnp.where(number[..., None, None] < len(MODES), texels, 0).astype(jnp.uint8)


def chosen(of_subset: jax.Array, subset: jax.Array) -> jax.Array:
    """The element of each texel's subset, (N, 16), of elements (N, S)."""
    texels = of_subset[..., :1]
    for k in range(1, of_subset.shape[-1]):
        texels = jnp.where(subset == k, of_subset[..., k, None], texels)
    return texels


# The modes of BC6H by the lowest bits of a block, and the order of the bits of its colors. r0, g1 and b3 are red, green
# and blue of the first, second and fourth color; g2:4 is a bit, r0:9-0 are bits 0 to 9, the lowest first.
LAYOUTS = {
    0b00: "g2:4 b2:4 b3:4 r0:9-0 g0:9-0 b0:9-0 r1:4-0 g3:4 g2:3-0 g1:4-0 b3:0 g3:3-0 b1:4-0 b3:1 b2:3-0 r2:4-0 b3:2 "
    "r3:4-0 b3:3",
    0b01: "g2:5 g3:4 g3:5 r0:6-0 b3:0 b3:1 b2:4 g0:6-0 b2:5 b3:2 g2:4 b0:6-0 b3:3 b3:5 b3:4 r1:5-0 g2:3-0 g1:5-0 "
    "g3:3-0 b1:5-0 b2:3-0 r2:5-0 r3:5-0",
    0b00010: "r0:9-0 g0:9-0 b0:9-0 r1:4-0 r0:10 g2:3-0 g1:3-0 g0:10 b3:0 g3:3-0 b1:3-0 b0:10 b3:1 b2:3-0 r2:4-0 b3:2 "
    "r3:4-0 b3:3",
    0b00110: "r0:9-0 g0:9-0 b0:9-0 r1:3-0 r0:10 g3:4 g2:3-0 g1:4-0 g0:10 g3:3-0 b1:3-0 b0:10 b3:1 b2:3-0 r2:3-0 b3:0 "
    "b3:2 r3:3-0 g2:4 b3:3",
    0b01010: "r0:9-0 g0:9-0 b0:9-0 r1:3-0 r0:10 b2:4 g2:3-0 g1:3-0 g0:10 b3:0 g3:3-0 b1:4-0 b0:10 b2:3-0 r2:3-0 b3:1 "
    "b3:2 r3:3-0 b3:4 b3:3",
    0b01110: "r0:8-0 b2:4 g0:8-0 g2:4 b0:8-0 b3:4 r1:4-0 g3:4 g2:3-0 g1:4-0 b3:0 g3:3-0 b1:4-0 b3:1 b2:3-0 r2:4-0 b3:2 "
    "r3:4-0 b3:3",
    0b10010: "r0:7-0 g3:4 b2:4 g0:7-0 b3:2 g2:4 b0:7-0 b3:3 b3:4 r1:5-0 g2:3-0 g1:4-0 b3:0 g3:3-0 b1:4-0 b3:1 b2:3-0 "
    "r2:5-0 r3:5-0",
    0b10110: "r0:7-0 b3:0 b2:4 g0:7-0 g2:5 g2:4 b0:7-0 g3:5 b3:4 r1:4-0 g3:4 g2:3-0 g1:5-0 g3:3-0 b1:4-0 b3:1 b2:3-0 "
    "r2:4-0 b3:2 r3:4-0 b3:3",
    0b11010: "r0:7-0 b3:1 b2:4 g0:7-0 b2:5 g2:4 b0:7-0 b3:5 b3:4 r1:4-0 g3:4 g2:3-0 g1:4-0 b3:0 g3:3-0 b1:5-0 b2:3-0 "
    "r2:4-0 b3:2 r3:4-0 b3:3",
    0b11110: "r0:5-0 g3:4 b3:0 b3:1 b2:4 g0:5-0 g2:5 b2:5 b3:2 g2:4 b0:5-0 g3:5 b3:3 b3:5 b3:4 r1:5-0 g2:3-0 g1:5-0 "
    "g3:3-0 b1:5-0 b2:3-0 r2:5-0 r3:5-0",
    0b00011: "r0:9-0 g0:9-0 b0:9-0 r1:9-0 g1:9-0 b1:9-0",
    0b00111: "r0:9-0 g0:9-0 b0:9-0 r1:8-0 r0:10 g1:8-0 g0:10 b1:8-0 b0:10",
    0b01011: "r0:9-0 g0:9-0 b0:9-0 r1:7-0 r0:10-11 g1:7-0 g0:10-11 b1:7-0 b0:10-11",
    0b01111: "r0:9-0 g0:9-0 b0:9-0 r1:3-0 r0:10-15 g1:3-0 g0:10-15 b1:3-0 b0:10-15",
}
# The modes that store colors. The others store differences from the first color.
UNTRANSFORMED = (0b11110, 0b00011)
NO_BIT = 128


class HalfModes(NamedTuple):
    """The modes of BC6H, by the five lowest bits of a block.

    Attributes:
        sources: (32, 12, 16), the place of each bit of each color, channels slowest; `NO_BIT` if it is not stored.
        widths: (32, 3, 2), the bits of the first color, and of others, in each channel.
        differs: (32,), whether other colors are differences.
        subsets: (32,), the number of subsets; 0 for no mode.
    """

    sources: np.ndarray
    widths: np.ndarray
    differs: np.ndarray
    subsets: np.ndarray


def _half_modes() -> HalfModes:
    modes = HalfModes(
        np.full((32, 12, 16), NO_BIT, np.int32), np.ones((32, 3, 2), np.int32), np.zeros(32, bool), np.zeros(32, int)
    )
    for low, layout in LAYOUTS.items():
        place = 2 if low < 2 else 5
        rows = [k for k in range(32) if k & (1 << place) - 1 == low]
        for channel, color, last, first in re.findall(r"([rgb])(\d):(\d+)(?:-(\d+))?", layout):
            from_bit, to_bit = int(first or last), int(last)
            for bit in range(from_bit, to_bit + 1) if from_bit <= to_bit else range(from_bit, to_bit - 1, -1):
                row = 4 * "rgb".index(channel) + int(color)
                modes.sources[rows, row, bit] = place
                place += 1
        stored = (modes.sources[rows[0]] != NO_BIT).sum(-1).reshape(3, 4)
        modes.widths[rows] = stored[:, :2]
        modes.differs[rows] = low not in UNTRANSFORMED
        modes.subsets[rows] = 2 if stored[0, 2] else 1
    return modes


HALF_MODES = _half_modes()


def bc6h_texels(blocks: jax.Array, *, signed: bool) -> jax.Array:
    """The texels of BC6H blocks, (N, 16) to (N, 16, 3), float16. Blocks without a mode hold zeros."""
    words = words_of(blocks)
    number = blocks[..., 0].astype(jnp.int32) & 31
    sources, widths, differs, subsets = (jnp.asarray(table)[number] for table in HALF_MODES)
    stored = bits(words, sources.reshape(*number.shape, -1), 1).reshape(sources.shape)
    ends = (stored << np.arange(16, dtype=np.int32)[None, None]).sum(-1).reshape(*number.shape, 3, 4)

    first_width, width = widths[..., 0, None], widths[..., 1, None]
    first, others = ends[..., :1], ends[..., 1:]
    if signed:
        first = _extended(first, first_width)
    moved = first + _extended(others, width) & (1 << first_width) - 1
    others = jnp.where(differs[..., None, None], moved, others)
    if signed:
        others = _extended(others, first_width)
    ends = _unquantized(jnp.concatenate([first, others], -1), first_width, signed=signed)

    two = subsets[..., None] == 2
    partition = jnp.where(two, bits(words, 77, 5), 0)[..., 0]
    of_partition = (two[..., 0].astype(jnp.int32), partition)
    subset, anchors = jnp.asarray(SUBSETS)[of_partition], jnp.asarray(ANCHORS)[of_partition]
    index_width = jnp.where(two, 3, 4)
    index = indices(words, jnp.where(two, 82, 65), index_width, anchors)
    pairs = ends.reshape(*number.shape, 3, 2, 2)
    channels: list[jax.Array] = []
    for channel in range(3):
        start, stop = (chosen(pairs[..., channel, :, k], subset) for k in (0, 1))
        channels.append(blend(start, stop, index, index_width))
    texels = jnp.where(subsets[..., None, None] > 0, jnp.stack(channels, -1), 0)
    halves = jnp.abs(texels) * 31 >> 5 if signed else texels * 31 >> 6
    halves = halves | jnp.where((texels < 0) & (halves > 0), 0x8000, 0)
    return jax.lax.bitcast_convert_type(halves.astype(jnp.uint16), jnp.float16)


def _extended(numbers: jax.Array, width: jax.Array) -> jax.Array:
    """Numbers of `width` bits, sign-extended."""
    return numbers << 32 - width >> 32 - width


def _unquantized(numbers: jax.Array, width: jax.Array, *, signed: bool) -> jax.Array:
    """Numbers of `width` bits as numbers of 16 bits, or of 15 and a sign."""
    if signed:
        size, most = jnp.abs(numbers), (1 << width - 1) - 1
        scaled = jnp.where(size == 0, 0, jnp.where(size >= most, 0x7FFF, (size << 15) + 0x4000 >> width - 1))
        return jnp.where(width >= 16, numbers, jnp.sign(numbers) * scaled)
    most = (1 << width) - 1
    scaled = jnp.where(numbers == 0, 0, jnp.where(numbers == most, 0xFFFF, (numbers << 15) + 0x4000 >> width - 1))
    return jnp.where(width >= 15, numbers, scaled)
