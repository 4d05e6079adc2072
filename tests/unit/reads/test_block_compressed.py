"""Textures of block-compressed images: shapes, kinds, mip levels, gradients, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.support.tolerances import assert_close, assert_exact

FRACTIONS = jt.Sampler(read_mode="normalized_float", normalized_coords=False)
RNG = np.random.default_rng(0)


def blocks_of(*shape, size=8):
    return jnp.asarray(RNG.integers(0, 256, (*shape, size), np.uint8))


def test_blocks_lie_row_by_row():
    blocks = blocks_of(2, 3)
    whole = jt.block_compressed(blocks, "bc1", (8, 12)).texels
    for y in range(2):
        for x in range(3):
            one = jt.block_compressed(blocks[y, x], "bc1", (4, 4)).texels
            assert_exact(whole[4 * y : 4 * y + 4, 4 * x : 4 * x + 4], one)


@pytest.mark.parametrize("shape", [(7, 9), (5, 10), (8, 12)])
def test_texels_outside_the_image_are_left_out(shape):
    blocks = blocks_of(2, 3)
    whole = jt.block_compressed(blocks, "bc1", (8, 12)).texels
    assert_exact(jt.block_compressed(blocks.reshape(-1), "bc1", shape).texels, whole[: shape[0], : shape[1]])


STACKS = {"2d_layered": (5, 8, 4), "3d": (5, 8, 4), "cubemap": (6, 4, 4), "cubemap_layered": (2, 6, 4, 4)}


@pytest.mark.parametrize("kind", STACKS)
def test_images_of_a_stack_are_compressed_one_by_one(kind):
    *front, height, width = shape = STACKS[kind]
    blocks = blocks_of(*front, height // 4, width // 4)
    texture = jt.block_compressed(blocks, "bc1", shape, kind=kind)
    assert (texture.kind.value, texture.shape) == (kind, (*shape, 4))
    images = [jt.block_compressed(b, "bc1", (height, width)).texels for b in blocks.reshape(-1, height // 4, 1, 8)]
    assert_exact(texture.texels.reshape(-1, height, width, 4), jnp.stack(images))


def test_a_tuple_holds_mip_levels():
    levels = (blocks_of(2, 2), blocks_of(1, 1), blocks_of(1, 1), blocks_of(1, 1))
    chain = jt.block_compressed(levels, "bc4", (8, 8))
    assert [level.shape for level in chain.levels] == [(8, 8, 1), (4, 4, 1), (2, 2, 1), (1, 1, 1)]
    assert_exact(chain.levels[2], jt.block_compressed(levels[2], "bc4", (2, 2)).texels)


@pytest.mark.parametrize("alias", [("dxt1", "bc1", 8), ("dxt5", "bc3", 16), ("rgtc1", "bc4", 8), ("bptc", "bc7", 16)])
def test_older_names(alias):
    old, new, size = alias
    blocks = blocks_of(1, size=size)
    assert_exact(jt.block_compressed(blocks, old, (4, 4)).texels, jt.block_compressed(blocks, new, (4, 4)).texels)
    assert jt.BlockFormat(old) is jt.BlockFormat(new)


def test_reads_are_differentiable_with_respect_to_coordinates_under_jit():
    blocks = blocks_of(2, 2)

    @jax.jit
    def read(blocks, x, y):
        return jt.sample(jt.block_compressed(blocks, "bc4", (8, 8)), (x, y), FRACTIONS)[0]

    x, y = 3.2, 4.6
    texels = np.asarray(jt.block_compressed(blocks, "bc4", (8, 8)).texels)[..., 0] / np.float32(65535)
    slope = 0.9 * (texels[4, 3] - texels[4, 2]) + 0.1 * (texels[5, 3] - texels[5, 2])
    assert_close("peer gradient", jax.grad(read, 1)(blocks, x, y), slope, 1.0)


def test_border_colors_are_kept():
    texture = jt.block_compressed(blocks_of(1), "bc1", (4, 4), border_color=0.25)
    outside = jt.sample(
        texture, (-3.0, 2.0), jt.Sampler(address_mode="border", read_mode="normalized_float", normalized_coords=False)
    )
    assert_exact(outside, jnp.full(4, 0.25))


def test_a_decoded_texture_is_a_plain_one_also_in_a_batch():
    """So it has all features of a read."""
    blocks, x = blocks_of(3, 2, 2), jnp.linspace(0, 8, 5)
    texels = jnp.stack([jt.block_compressed(b, "bc1", (8, 7)).texels for b in blocks])
    decoded, plain = jt.block_compressed(blocks[0], "bc1", (8, 7)), jt.texture2d(texels[0])
    assert jax.tree.structure(decoded) == jax.tree.structure(plain)
    read = lambda texture: jt.sample(texture, (x, 3.3), FRACTIONS)
    batch = jax.jit(jax.vmap(lambda b: read(jt.block_compressed(b, "bc1", (8, 7)))))(blocks)
    assert_exact(batch, jax.vmap(lambda t: read(jt.texture2d(t)))(texels))


def test_words_stand_for_bytes():
    blocks = blocks_of(2, 3, size=16)
    words = jax.lax.bitcast_convert_type(blocks.reshape(2, 3, 4, 4), jnp.uint32)
    for given in (words, np.asarray(words)):
        assert_exact(
            jt.block_compressed(given, "bc7", (8, 12)).texels, jt.block_compressed(blocks, "bc7", (8, 12)).texels
        )


def test_packed_texels_have_codes_of_sixteen_bits():
    words = np.uint32([[0x3FF | 0x200 << 10 | 1 << 30, 2**32 - 1, 0]])
    texels = jt.block_compressed(words, "rgb10a2", (1, 3)).texels
    assert_exact(texels, np.uint16([[[65535, 0x8020, 0, 0x5555], [65535] * 4, [0] * 4]]))


BYTES = np.zeros(8, np.uint8)
WRONG = {
    "too few bytes": ((BYTES, "bc7", (4, 4)), ValueError, "blocks has 8 bytes, expected 16"),
    "too many bytes": ((BYTES, "bc1", (4, 4, 1)), ValueError, r"shape is \(4, 4, 1\), expected \(H, W\)"),
    "an edge needs whole blocks": ((BYTES, "bc1", (4, 5)), ValueError, "expected 16: bc1 stores"),
    "no shape": ((BYTES, "bc1", 4), TypeError, r"shape is 4, expected a tuple of integers such as \(H, W\)"),
    "no integers": ((BYTES, "bc1", (4.5, 4)), TypeError, r"shape is \(4.5, 4\), expected a tuple of integers"),
    "an empty axis": ((BYTES, "bc1", (0, 4)), ValueError, r"shape is \(0, 4\), expected \(H, W\)"),
    "floats": ((np.zeros(8), "bc1", (4, 4)), TypeError, "expected an array of uint8 or of uint32; numpy.frombuffer"),
    "a list of numbers": (([1, 2], "bc1", (4, 4)), TypeError, "expected an array of uint8 or of uint32"),
    "an unknown format": ((BYTES, "bc8", (4, 4)), ValueError, "format is 'bc8', expected one of 'bc1'"),
    "too many levels": (((BYTES,) * 4, "bc1", (4, 4)), ValueError, "blocks asks for 4 levels, expected 1 to 3"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case):
    arguments, error, message = WRONG[case]
    with pytest.raises(error, match=f"^block_compressed: .*{message}"):
        jt.block_compressed(*arguments)


@pytest.mark.parametrize("kind", ["1d", "1d_layered"])
def test_kinds_without_rows(kind):
    with pytest.raises(ValueError, match="block_compressed: kind is '1d"):
        jt.block_compressed(BYTES, "bc1", (4,), kind=kind)
