"""The blocks whose texels a texture unit decoded for the recording `tests/data/blocks_unit.npz.xz`."""

import numpy as np

SIZES = {"bc1": 8, "bc2": 16, "bc3": 16, "bc4": 8, "bc4_signed": 8, "bc5": 16, "bc5_signed": 16}
SIZES |= {"bc6h": 16, "bc6h_signed": 16, "bc7": 16}


def stream(seed, shape):
    """Random bytes, the same in every version of NumPy: splitmix64 of a counter."""
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        z = (np.arange((count + 7) // 8, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return z.view(np.uint8)[:count].reshape(shape)


def bc7(seed, count):
    """As many blocks of each of the modes 0 to 7, and of no mode."""
    blocks = stream(seed, (count, 16)).copy()
    mode = np.arange(count) % 9
    first = (blocks[:, 0].astype(int) << (mode + 1) | 1 << mode) & 0xFF
    blocks[:, 0] = np.where(mode == 8, 0, first)
    return blocks


HEADERS = [0, 1] + [k << 2 | 2 for k in range(8)] + [k << 2 | 3 for k in range(8)]  # of two bits, then of five


def bc6h(seed, count):
    """As many blocks of each header, and of no mode; some with few bits set, some with few bits clear."""
    blocks = stream(seed, (count, 16)).copy()
    other = [stream(seed + k, (count, 16)) for k in (1, 2, 3)]
    sort = np.arange(count) // 18 % 8
    dense, sparse = blocks | other[0] | other[1] | other[2], blocks & other[0] & other[1] & other[2]
    blocks = np.where((sort == 6)[:, None], dense, np.where((sort == 7)[:, None], sparse, blocks))
    header = np.array(HEADERS)[np.arange(count) % 18]
    width = np.where(header < 2, 2, 5)
    blocks[:, 0] = blocks[:, 0] >> width << width | header
    return blocks


def pairs():
    """All pairs of two bytes, with the indices 0 to 7 in the first eight texels."""
    e = np.arange(65536)
    indices = sum(k << 3 * k for k in range(8)) * (1 + (1 << 24))
    tail = np.frombuffer(indices.to_bytes(6, "little"), np.uint8)
    ends = [(e >> 8).astype(np.uint8)[:, None], (e & 255).astype(np.uint8)[:, None]]
    return np.concatenate([*ends, np.broadcast_to(tail, (65536, 6))], 1)


def bc1(seed, count):
    """Both orders of many colors, and equal colors, with the indices 0 to 3 in each row."""
    blocks = stream(seed, (count, 8)).copy()
    blocks[:, 4:] = 0b11100100
    blocks[0::4] = blocks[1::4][:, [2, 3, 0, 1, 4, 5, 6, 7]]
    blocks[2::16, 2:4] = blocks[2::16, :2]
    return blocks


def bc3_colors():
    """All pairs of six bits, and of five bits, with the indices 0 to 3 in each row."""
    e = np.arange(4096)
    g0, g1 = e >> 6, e & 63
    r0, r1 = g0 >> 1, g1 >> 1
    c0, c1 = r0 << 11 | g0 << 5 | (31 - r0), r1 << 11 | g1 << 5 | (31 - r1)
    blocks = np.zeros((4096, 16), np.uint8)
    for k, byte in enumerate((c0 & 255, c0 >> 8, c1 & 255, c1 >> 8)):
        blocks[:, 8 + k] = byte
    blocks[:, 12:] = 0b11100100
    return blocks


def image_blocks(name):
    """256 random blocks of a format, of an image of 64 by 64 texels."""
    seed = 40 + 10 * [*SIZES].index(name)
    make = bc6h if "6h" in name else bc7 if name == "bc7" else lambda seed, n: stream(seed, (n, SIZES[name]))
    return make(seed, 256)


# Of each set: the format, a function that makes its blocks, and the number of texels and the channels whose checksum
# was recorded.
SETS = {
    "bc1": ("bc1", lambda: bc1(1, 16384), 4, slice(4)),
    "bc1 random": ("bc1", lambda: stream(2, (1024, 8)), 16, slice(4)),
    "bc2": ("bc2", lambda: stream(3, (2048, 16)), 16, slice(4)),
    "bc3 colors": ("bc3", bc3_colors, 4, slice(4)),
    "bc3 alphas": ("bc3", lambda: np.concatenate([pairs(), stream(9, (65536, 8))], 1), 8, slice(3, 4)),
    "bc3 random": ("bc3", lambda: stream(4, (1024, 16)), 16, slice(4)),
    "bc4": ("bc4", pairs, 8, slice(1)),
    "bc4_signed": ("bc4_signed", pairs, 8, slice(1)),
    "bc4 random": ("bc4", lambda: stream(5, (512, 8)), 16, slice(4)),
    "bc4_signed random": ("bc4_signed", lambda: stream(6, (512, 8)), 16, slice(4)),
    "bc5": ("bc5", lambda: stream(7, (2048, 16)), 16, slice(4)),
    "bc5_signed": ("bc5_signed", lambda: stream(8, (2048, 16)), 16, slice(4)),
    "bc6h": ("bc6h", lambda: bc6h(10, 9216), 16, slice(4)),
    "bc6h_signed": ("bc6h_signed", lambda: bc6h(20, 9216), 16, slice(4)),
    "bc7": ("bc7", lambda: bc7(30, 9216), 16, slice(4)),
}
