"""Textures and arrays of blocks, drawn at random: layouts, copies, and what is refused.

A texel is compared with the decoded texels of its block alone; `tests/recorded/test_blocks.py` tests what these are.
"""

import jax
import numpy as np

import jaxtex as jt
from jaxtex import cuda
from tests.fuzz import copies, descriptors
from tests.fuzz.cuda import answer
from tests.fuzz.draws import assert_same, naming, pick
from tests.oracles import descriptors as oracle

# The bytes and the side of a block of each format.
SIZES = {"bc1": (8, 4), "bc2": (16, 4), "bc3": (16, 4), "bc4": (8, 4), "bc4_signed": (8, 4), "bc5": (16, 4)}
SIZES |= {"bc5_signed": (16, 4), "bc6h": (16, 4), "bc6h_signed": (16, 4), "bc7": (16, 4), "rgb10a2": (4, 1)}
# The axes in front of height and width.
KINDS = {"2d": (), "3d": (3,), "2d_layered": (2,), "cubemap": (6,), "cubemap_layered": (2, 6)}


def random_blocks(rng, name, count):
    """Blocks of all modes: of BC7 random ones most often have mode 0."""
    blocks = rng.integers(0, 256, (count, SIZES[name][0]), np.uint8)
    if name == "bc7":
        mode = rng.integers(0, 9, count)
        blocks[:, 0] = np.where(mode < 8, blocks[:, 0].astype(int) << mode + 1 | 1 << mode, 0) & 0xFF
    return blocks


def decoded_alone(blocks, name):
    """The texels of each block, decoded as an image of its own, (N, side, side, C)."""
    side = SIZES[name][1]
    blocks = jax.device_put(blocks)
    return np.asarray(jt.block_compressed(blocks, name, (len(blocks), side, side), kind="2d_layered").texels)


def check_layout(rng):
    """block_compressed of every kind and format, of odd sizes too, as bytes or words, with levels or without."""
    name, kind = pick(rng, list(SIZES)), pick(rng, list(KINDS))
    side, front = SIZES[name][1], KINDS[kind]
    sizes = [int(rng.integers(1, 14))] * 2 if "cube" in kind else [int(n) for n in rng.integers(1, 14, 2)]
    shape, count = (*front, *sizes), 1 + int(rng.integers(0, 3)) * int(rng.random() < 0.3)
    count = min(count, max(shape[-2:] if kind != "3d" else shape).bit_length())
    halved = lambda k: [max(1, n >> k) if axis >= len(front) or kind == "3d" else n for axis, n in enumerate(shape)]
    levels, given, as_words = [], [], rng.random() < 0.3
    for *outer, height, width in map(halved, range(count)):
        rows, columns, images = -(-height // side), -(-width // side), int(np.prod(outer))
        blocks = random_blocks(rng, name, images * rows * columns)
        given.append(blocks.view(np.uint32) if as_words else blocks.reshape(images, rows, -1))
        texels = decoded_alone(blocks, name).reshape(images, rows, columns, side, side, -1)
        level = np.empty((images, height, width, texels.shape[-1]), texels.dtype)
        for y in range(height):
            for x in range(width):
                level[:, y, x] = texels[:, y // side, x // side, y % side, x % side]
        levels.append(level.reshape(-1, level.shape[-1]))
    make = lambda blocks: jt.block_compressed(blocks, name, shape, kind=kind)
    make = jax.jit(make) if rng.random() < 0.7 else make
    text = f"{name} {kind} {shape}, {count} levels, {'words' if as_words else 'bytes'}"
    with naming(text):
        found = make(tuple(map(jax.device_put, given)) if count > 1 else given[0])
        assert found.num_levels == count, f"{found.num_levels} levels"
        expected = np.concatenate(levels)
        return assert_same(np.asarray(found.texels).reshape(expected.shape), expected, "texels")


def check_view(rng):
    """A view of words as blocks: which arrays and sizes have one, and its texels."""
    name = pick(rng, [name for name, (_, side) in SIZES.items() if side > 1])
    number = [*SIZES].index(name) + int(cuda.ResourceViewFormat.UnsignedBlockCompressed1)
    fitting = SIZES[name][0] // 4
    words, extent = pick(rng, (fitting,) * 8 + (2, 4)), tuple(int(n) for n in rng.integers(1, 6, 2))
    held = pick(rng, ("uint",) * 9 + ("int",))
    blocks = random_blocks(rng, name, extent[0] * extent[1]) if words == fitting else None
    sizes = [4 * n for n in extent]
    if rng.random() < 0.4:
        sizes[int(rng.integers(2))] += int(pick(rng, (-4, -1, 1)))
    read, linear = (int(rng.random() < 0.1) for _ in range(2))
    faults = oracle.faults_of_read((32,) * words + (0,) * (4 - words), int(held == "uint"), read, linear)
    wrong = blocks is None or held != "uint" or sizes != [4 * n for n in extent]
    faults |= {oracle.INVALID_VALUE} if wrong else set()
    numbers = blocks.view(np.uint32).reshape(*extent[::-1], words) if blocks is not None and held == "uint" else None
    view = cuda.ResourceViewDesc(cuda.ResourceViewFormat(number), *sizes)
    desc = cuda.TextureDesc(readMode=read, filterMode=linear)
    text = f"{name} view {sizes} of {held}{words}{extent}, read {read}, linear {linear}"

    def make(numbers):
        array = cuda.mallocArray(cuda.createChannelDesc(f"{held}{words}"), *extent)
        array = array if numbers is None else cuda.memcpyToArray(array, numbers)
        return cuda.createTextureObject(cuda.ResourceDesc.Array(array), desc, view)

    make = jax.jit(make) if rng.random() < 0.7 else make
    with naming(text):
        code, t = answer(lambda: make(numbers))
        assert code in (faults or {0}), f"code {code}, expected {sorted(faults) or 0}"
        if code:
            return 1
        expected = jt.block_compressed(jax.device_put(blocks), name, (4 * extent[1], 4 * extent[0])).texels
        return assert_same(np.asarray(t.texture.texels), np.asarray(expected), "texels")


COPIES = (copies.check_rows, copies.check_box, copies.check_box, copies.check_runs, copies.check_whole)
DESCRIPTORS = (descriptors.check_allocation,) * 3
DESCRIPTORS += (descriptors.check_array_texture, descriptors.check_array_texture, descriptors.check_plain_texture)
OF_COPIES = [lambda rng, check=check: check(rng, formats=tuple(copies.BLOCKS)) for check in COPIES]
OF_DESCRIPTORS = [lambda rng, check=check: len(check(rng, kinds=range(17, 32))) for check in DESCRIPTORS]
OF_DESCRIPTORS += [lambda rng: len(descriptors.check_allocation(rng, kinds=(oracle.NV12,)))]
CHECKS = [*[check_layout] * 4, *[check_view] * 2, *OF_COPIES, *OF_DESCRIPTORS]
