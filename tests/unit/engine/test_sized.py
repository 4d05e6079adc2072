"""Reads of textures whose sizes are operands: one program for many sizes, and what a texture of each size gives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.describe.plan import SizedTexture
from jaxtex._reads.calls import sample_grid
from jaxtex.mipmaps import with_levels
from jaxtex.modes import AddressMode
from jaxtex.warp import smoothing
from jaxtex.warp.coordinate_functions import affine
from jaxtex.warp.sized import texels as sized_texels
from tests.support.host_kernels import kernels_on_cpu
from tests.support.tolerances import assert_close, assert_exact

CAPACITY, SHAPE = 2**12, (9, 14)
SIZES = [(1, 1), (1, 6), (8, 2), (7, 30), (40, 34)]
PIXELS = jnp.arange(0.5, SHAPE[1])[None], jnp.arange(0.5, SHAPE[0])[:, None]
# Products are exact, and no sample lies on a kink, so that a GPU may round once or twice.
MATRIX = [jnp.full((1, 1), v, jnp.float32) for v in (135 / 64, -57 / 64, 423 / 128, 45 / 64, 109 / 64, -535 / 128)]


def texels_of(size, channels=2, dtype=np.float32):
    values = np.random.default_rng(sum(size)).random((*size, channels)) * 200
    return values.astype(dtype)


def flat(texels):
    """Texels in a flat array, of which the rest is NaN, which no read may return."""
    rest = CAPACITY - texels.shape[0] * texels.shape[1]
    filling = np.nan if np.issubdtype(texels.dtype, np.floating) else 77
    return np.concatenate([texels.reshape(-1, texels.shape[-1]), np.full((rest, texels.shape[-1]), filling)]).astype(
        texels.dtype
    )


def sized(texels, height, width, color=None, num_levels=1):
    return SizedTexture(texels, (height, width), color, num_levels)


def read_sized(texels, height, width, matrix, *, sampler):
    return sample_grid(sized(texels, height, width, 5.0 * jnp.ones(2)), affine, (*PIXELS, *matrix), sampler)


def read_exact(texels, matrix, *, sampler):
    return sample_grid(jt.texture2d(texels, border_color=5.0 * jnp.ones(2)), affine, (*PIXELS, *matrix), sampler)


SAMPLERS = {
    **{str(mode.value): jt.Sampler(address_mode=mode, normalized_coords=False) for mode in AddressMode},
    "normalized": jt.Sampler(address_mode="wrap", filter_mode="cubic"),
    "limited": jt.Sampler(address_mode="mirror", filter_mode="cubic", limit="taps", normalized_coords=False),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_one_program_reads_textures_of_all_sizes(name):
    sampler = SAMPLERS[name]
    sizes = [size for size in SIZES if name != "sphere" or size[1] % 2 == 0]
    program = jax.jit(functools.partial(read_sized, sampler=sampler))
    for size in sizes:
        texels = texels_of(size)
        expected = jax.jit(functools.partial(read_exact, sampler=sampler))(texels, MATRIX)
        # A texture one texel wide has other loops, in which XLA rounds otherwise.
        assert_close("sum", program(flat(texels), *map(jnp.int32, size), MATRIX), expected, 200)
    assert program._cache_size() == 1


def test_integers_and_fractions():
    sampler = jt.Sampler(address_mode="border", read_mode="normalized_float", normalized_coords=False)
    program = jax.jit(functools.partial(read_sized, sampler=sampler))
    for size in SIZES[2:]:
        texels = texels_of(size, dtype=np.uint8)
        expected = jax.jit(functools.partial(read_exact, sampler=sampler))(texels, MATRIX)
        assert_exact(program(flat(texels), *map(jnp.int32, size), MATRIX), expected)


@pytest.mark.parametrize("name", ["border", "normalized"])
def test_gradients(name):
    sampler, size = SAMPLERS[name], (7, 30)
    texels, cotangent = texels_of(size), np.random.default_rng(1).random((*SHAPE, 2), np.float32)

    def loss(read):
        return jax.jit(jax.grad(lambda texels, matrix: jnp.sum(read(texels, matrix) * cotangent), argnums=(0, 1)))

    of_texels, of_matrix = loss(lambda t, m: read_sized(t, *map(jnp.int32, size), m, sampler=sampler))(
        jnp.nan_to_num(flat(texels)), MATRIX
    )
    expected, expected_of_matrix = loss(functools.partial(read_exact, sampler=sampler))(texels, MATRIX)
    assert_close("sum", of_texels[: texels[..., 0].size].reshape(texels.shape), expected, 10)
    assert not of_texels[texels[..., 0].size :].any()
    for found, wanted in zip(of_matrix, expected_of_matrix):
        assert_close("sum", found, wanted, 1e5)


def test_a_chain_is_made_and_read_by_one_program():
    sampler, lod = jt.Sampler(mipmap_filter_mode="linear"), jnp.linspace(-1, 7, SHAPE[1])[None]
    coords = jnp.broadcast_arrays(PIXELS[0] / 9, PIXELS[1] / 7)

    @jax.jit
    def of_sizes(texels, height, width, weights):
        capacity = 2 * CAPACITY
        chain = jnp.zeros((capacity, texels.shape[-1]), texels.dtype)
        sizes = jnp.stack([height, width])
        chain = sized_texels.with_levels(lambda t: t, texels, sizes, weights, jnp.bool_(True), chain)
        resolved = smoothing.ResolvedLevel(
            tuple(coords), None, None, lod=jnp.clip(lod, 0, last(height, width)), sizes=(height, width)
        )
        return chain, smoothing.read(sized(chain, height, width, None, 6), resolved, sampler, np.dtype(np.float32))

    def last(height, width):
        return jnp.floor(jnp.log2(jnp.maximum(height, width).astype(jnp.float32)))

    for size in SIZES:
        texels = texels_of(size)
        levels = max(size).bit_length()
        weights = [sized_texels.weights_of_levels(n, levels) for n in size]
        weights = [np.pad(w, ((0, 0), (0, 100 - w.shape[1]))) for w in weights]
        chain, out = of_sizes(flat(texels), *map(jnp.int32, size), weights)
        whole = with_levels(jt.texture2d(texels), num_levels=levels)
        assert sized_texels.chain_length(size) == sum(level[..., 0].size for level in whole.levels)
        assert_exact(chain[: sized_texels.chain_length(size)], whole.texels.reshape(-1, 2))
        assert_close("sum", out, jt.sample(whole, tuple(coords), sampler, lod=jnp.clip(lod, 0, levels - 1)), 200)
    assert of_sizes._cache_size() == 1


def test_a_kernel_of_the_adjoint_needs_sizes():
    arguments = flat(texels_of((7, 30))), *map(jnp.int32, (7, 30)), MATRIX
    loss = lambda *args: jnp.sum(read_sized(*args, sampler=SAMPLERS["border"]))
    with kernels_on_cpu():
        texts = [jax.jit(f).lower(*arguments).as_text() for f in (lambda *args: loss(*args), jax.grad(loss))]
    assert ["callback" in text for text in texts] == [True, False]


@pytest.mark.parametrize("name", ["border", "wrap", "sphere"])
def test_a_window(name):
    """Of more texels than there are along either axis, which begins in the middle; what is not needed is NaN."""
    texels, (height, width), starts, window = texels_of((8, 30)), (8, 30), (5, 17), (16, 32)
    rows, columns = ((start + np.arange(n)) % n for start, n in zip(starts, (height, width)))
    stored = np.full((*window, 2), np.nan, np.float32)
    stored[:height, :width] = texels[np.ix_(rows, columns)]

    def read(stored, height, width, top, left, matrix):
        color = 5.0 * jnp.ones(2)
        texture = SizedTexture(stored.reshape(-1, 2), (height, width), color, window=window, starts=(top, left))
        return sample_grid(texture, affine, (*PIXELS, *matrix), SAMPLERS[name])

    arguments = stored, *map(jnp.int32, (height, width, *starts)), MATRIX
    whole = read_exact(texels, MATRIX, sampler=SAMPLERS[name])
    assert_exact(jax.jit(read)(*arguments), whole)
