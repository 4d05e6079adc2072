"""Textures of block-compressed images: shapes, kinds, mip levels, and reads with gradients."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from tests.support.cases import computed
from tests.support.tolerances import assert_close, assert_exact, named

FRACTIONS = jt.Sampler(read_mode="normalized_float", normalized_coords=False)
RNG = np.random.default_rng(0)
STACKS = {"2d_layered": (5, 8, 4), "3d": (5, 8, 4), "cubemap": (6, 4, 4), "cubemap_layered": (2, 6, 4, 4)}


def blocks_of(*shape, size=8):
    return RNG.integers(0, 256, (*shape, size), np.uint8)


def of(blocks, *args, **how):
    return lambda b: jt.block_compressed(b, *args, **how), blocks


def alone(blocks, name="bc1"):
    """Each block as an image of its own."""
    return of(blocks, name, (blocks[..., 0].size, 4, 4), kind="2d_layered")


def joined(images, rows, columns):
    """The images of blocks, row by row, N + (rows * 4, columns * 4, C)."""
    images = images.reshape(-1, rows, columns, *images.shape[1:])
    return images.swapaxes(2, 3).reshape(-1, rows * 4, columns * 4, images.shape[-1])


def test_blocks_lie_row_by_row():
    """As bytes or words; what lies outside of the image is left out."""
    blocks, wide, shapes = blocks_of(2, 3), blocks_of(2, 3, size=16), ((8, 12), (7, 9), (5, 10))
    words = wide.view(np.uint32)
    calls = alone(blocks), alone(wide, "bc3"), of(words, "bc3", (8, 12)), of(wide, "dxt5", (8, 12))
    ours, theirs, *whole, a, b, c = (t.texels for t in computed(*calls, *(of(blocks, "bc1", s) for s in shapes)))
    for found in whole:
        assert_exact(found, joined(theirs, 2, 3)[0])
    for shape, found in zip(shapes, (a, b, c)):
        with named(shape):
            assert_exact(found, joined(ours, 2, 3)[0][: shape[0], : shape[1]])


def test_images_of_a_stack_and_levels_are_compressed_one_by_one():
    levels = (blocks_of(2, 2), blocks_of(1, 1), blocks_of(1, 1), blocks_of(1, 1))
    calls = [of(levels, "bc4", (8, 8)), *(alone(level, "bc4") for level in levels)]
    for kind, (*front, height, width) in STACKS.items():
        blocks = blocks_of(*front, height // 4, width // 4)
        calls += of(blocks, "bc1", STACKS[kind], kind=kind), alone(blocks)
    chain, first, *rest = computed(*calls)
    assert_exact(chain.levels[0], joined(first.texels, 2, 2)[0])
    for found, texture, size in zip(chain.levels[1:], rest, (4, 2, 1), strict=False):
        assert_exact(found, texture.texels[0, :size, :size])
    for (kind, shape), texture, images in zip(STACKS.items(), rest[3::2], rest[4::2], strict=True):
        assert (texture.kind.value, texture.shape) == (kind, (*shape, 4))
        assert_exact(texture.texels.reshape(-1, *shape[-2:], 4), joined(images.texels, shape[-2] // 4, 1))


def test_older_names():
    for old, new in (("dxt1", "bc1"), ("dxt5", "bc3"), ("rgtc1", "bc4"), ("bptc", "bc7")):
        assert jt.BlockFormat(old) is jt.BlockFormat(new)


def test_packed_texels_have_codes_of_sixteen_bits():
    words = np.uint32([[0x3FF | 0x200 << 10 | 1 << 30, 2**32 - 1, 0]])
    (texture,) = computed(of(words, "rgb10a2", (1, 3)))
    assert_exact(texture.texels, np.uint16([[[65535, 0x8020, 0, 0x5555], [65535] * 4, [0] * 4]]))


def test_a_decoded_texture_is_a_plain_one():
    """Also in a batch: with reads, gradients in coordinates, and a border color."""
    blocks, x, border = (
        blocks_of(3, 2, 2),
        np.linspace(0, 8, 5, dtype=np.float32),
        dataclasses.replace(FRACTIONS, address_mode="border"),
    )
    read = lambda texture, x: jt.sample(texture, (x, 3.3), FRACTIONS)
    decode = lambda b, **how: jt.block_compressed(b, "bc1", (8, 7), **how)

    @jax.jit
    def run(blocks):
        texels = jnp.stack([decode(b).texels for b in blocks])
        assert jax.tree.structure(decode(blocks[0])) == jax.tree.structure(jt.texture2d(texels[0]))
        both = [jax.vmap(lambda b: read(decode(b), x)), jax.vmap(lambda t: read(jt.texture2d(t), x))]
        slope = jax.grad(lambda x: read(decode(blocks[0]), x)[0])(3.2)
        outside = jt.sample(decode(blocks[0], border_color=0.25), (-3.0, 2.0), border)
        return both[0](blocks), both[1](texels), texels[0], slope, outside

    batch, expected, texels, slope, outside = run(blocks)
    assert_exact(batch, expected)
    assert_exact(outside, np.full(4, 0.25, np.float32))
    texels = np.asarray(texels)[..., 0] / np.float32(255)
    assert_close("peer gradient", slope, [0.2, 0.8] @ (texels[2:4, 3] - texels[2:4, 2]), 1.0)
