"""Textures of block-compressed images: shapes, kinds, mip levels, and reads with gradients."""

import dataclasses

import jax
import numpy as np

import jaxtex as jt
from tests.support.cases import computed
from tests.support.tolerances import assert_close, assert_exact, named

FRACTIONS = jt.Sampler(read_mode="normalized_float", normalized_coords=False)
RNG = np.random.default_rng(0)
# Of six blocks each.
STACKS = {"2d_layered": (3, 8, 4), "3d": (3, 8, 4), "cubemap": (6, 4, 4), "cubemap_layered": (1, 6, 4, 4)}


def blocks_of(*shape, size=8):
    return RNG.integers(0, 256, (*shape, size), np.uint8)


def of(blocks, *args, **how):
    return lambda b: jt.block_compressed(b, *args, **how), blocks


def alone(blocks, name="bc4"):
    """Each block as an image of its own."""
    return of(blocks, name, (blocks[..., 0].size, 4, 4), kind="2d_layered")


def joined(images, rows, columns):
    """The images of blocks, row by row, N + (rows * 4, columns * 4, C)."""
    images = images.reshape(-1, rows, columns, *images.shape[1:])
    return images.swapaxes(2, 3).reshape(-1, rows * 4, columns * 4, images.shape[-1])


def test_blocks_lie_row_by_row():
    """As bytes or words; what lies outside of the image is left out."""
    blocks, wide, shapes = blocks_of(2, 3), blocks_of(2, 3, size=16), ((8, 12), (5, 9))
    calls = alone(blocks), alone(wide, "bc3"), of(wide.view(np.uint32), "bc3", (8, 12)), of(wide, "dxt5", (8, 12))
    ours, theirs, *whole, a, b = (t.texels for t in computed(*calls, *(of(blocks, "bc4", s) for s in shapes)))
    for found in whole:
        assert_exact(found, joined(theirs, 2, 3)[0])
    for shape, found in zip(shapes, (a, b)):
        with named(shape):
            assert_exact(found, joined(ours, 2, 3)[0][: shape[0], : shape[1]])


def test_images_of_a_stack_and_levels_are_compressed_one_by_one():
    levels, six = (blocks_of(2, 2), *blocks_of(3, 1, 1)), blocks_of(6)
    stacked = [
        of(six.reshape(*front, height // 4, width // 4, 8), "bc4", STACKS[kind], kind=kind)
        for kind, (*front, height, width) in STACKS.items()
    ]
    calls = of(levels, "bc4", (8, 8)), alone(levels[0]), alone(np.concatenate(levels[1:])), alone(six)
    chain, first, others, images, *stacks = computed(*calls, *stacked)
    assert_exact(chain.levels[0], joined(first.texels, 2, 2)[0])
    for found, texels, size in zip(chain.levels[1:], others.texels, (4, 2, 1), strict=True):
        assert_exact(found, texels[:size, :size])
    for (kind, shape), texture in zip(STACKS.items(), stacks, strict=True):
        assert (texture.kind.value, texture.shape) == (kind, (*shape, 1))
        assert_exact(texture.texels.reshape(-1, *shape[-2:], 1), joined(images.texels, shape[-2] // 4, 1))


def test_older_names():
    for old, new in (("dxt1", "bc1"), ("dxt5", "bc3"), ("rgtc1", "bc4"), ("bptc", "bc7")):
        assert jt.BlockFormat(old) is jt.BlockFormat(new)


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
        texels = jax.lax.map(lambda b: decode(b).texels, blocks)
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
