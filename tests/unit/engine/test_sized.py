"""Reads of textures whose sizes are operands: one program for many sizes, and what a texture of each size gives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from jaxtex._engine.describe.plan import SizedTexture
from jaxtex._reads.calls import sample_grid
from jaxtex.mipmaps import with_levels
from jaxtex.modes import AddressMode
from jaxtex.warp import smoothing
from jaxtex.warp.coordinate_functions import affine
from jaxtex.warp.sized import texels as sized_texels
from tests.oracles import reads as oracle
from tests.support.host_kernels import kernels_on_cpu
from tests.support.tolerances import assert_close, assert_exact

CAPACITY, SHAPE = 2**12, (9, 14)
SIZES = [(1, 1), (8, 2), (7, 30), (40, 34)]
PIXELS = np.arange(0.5, SHAPE[1], dtype=np.float32)[None], np.arange(0.5, SHAPE[0], dtype=np.float32)[:, None]
# Products are exact, and no sample lies on a kink, so that a GPU may round once or twice.
MATRIX = [np.full((1, 1), v, np.float32) for v in (135 / 64, -57 / 64, 423 / 128, 45 / 64, 109 / 64, -535 / 128)]
POINTS = tuple(a * PIXELS[0] + b * PIXELS[1] + c for a, b, c in (MATRIX[:3], MATRIX[3:]))


def texels_of(size, channels=2, dtype=np.float32):
    """Whole numbers: linear reads of them at `POINTS` are exact sums, however XLA fuses products."""
    return np.random.default_rng(sum(size)).integers(0, 200, (*size, channels)).astype(dtype)


def flat(texels):
    """Texels in a flat array, of which the rest is NaN, which no read may return."""
    rest = CAPACITY - texels.shape[0] * texels.shape[1]
    filling = np.nan if np.issubdtype(texels.dtype, np.floating) else 77
    return np.concatenate([texels.reshape(-1, texels.shape[-1]), np.full((rest, texels.shape[-1]), filling)]).astype(
        texels.dtype
    )


def sized(texels, height, width, color=None, num_levels=1):
    return SizedTexture(texels, (height, width), color, num_levels)


COLOR = np.float32(5)


def read_sized(texels, height, width, matrix, sampler):
    color = jnp.broadcast_to(COLOR, texels.shape[-1:])
    return sample_grid(sized(texels, height, width, color), affine, (*PIXELS, *matrix), sampler)


def read_exact(texels, matrix, sampler):
    color = jnp.broadcast_to(COLOR, texels.shape[-1:])
    return sample_grid(jt.texture2d(texels, border_color=color), affine, (*PIXELS, *matrix), sampler)


READS = {str(mode.value): {"address_mode": mode.value, "normalized_coords": False} for mode in AddressMode}
READS["normalized"] = {"address_mode": "wrap", "filter_mode": "cubic"}
CODES = {"address_mode": "border", "read_mode": "normalized_float", "normalized_coords": False}


def test_one_program_reads_textures_of_all_sizes():
    """In every mode, and codes as fractions."""

    @jax.jit
    def program(texels, codes, height, width, matrix):
        found = {
            name: read_sized(texels, height, width, matrix, jt.Sampler(**options)) for name, options in READS.items()
        }
        return found, read_sized(codes, height, width, matrix, jt.Sampler(**CODES))

    for size in SIZES:
        texels, codes = texels_of(size), texels_of(size, 1, np.uint8)
        found, fractions = program(flat(texels), flat(codes), *map(np.int32, size), MATRIX)
        for name, options in READS.items():
            if name != "sphere" or size[1] % 2 == 0:
                expected = oracle.sample(texels, POINTS, border_color=COLOR, **options)
                if name == "normalized":  # a cubic filter's products have more than 24 bits
                    assert_close("sum", found[name], expected, 200)
                else:
                    assert_exact(found[name], expected)
        # Fractions of 255 are rounded, and so are their products, which XLA may fuse with sums.
        assert_close("reordered", fractions, oracle.sample(codes, POINTS, border_color=COLOR, **CODES), COLOR)
    assert program._cache_size() == 1


def test_gradients():
    """Of a read beyond the border, and of periods in normalized coordinates."""
    samplers = jt.Sampler(**READS["border"]), jt.Sampler(address_mode="wrap")
    texels, cotangent = texels_of(size := (7, 30)), np.random.default_rng(1).random((*SHAPE, 2), np.float32)

    def gradients(read, texels):
        loss = lambda texels, matrix, sampler: jnp.sum(read(texels, matrix, sampler) * cotangent)
        return [jax.grad(loss, argnums=(0, 1))(texels, MATRIX, sampler) for sampler in samplers]

    @jax.jit
    def both(stored, height, width, texels):
        read = lambda texels, *args: read_sized(texels, height, width, *args)
        return gradients(read, stored), gradients(read_exact, texels)

    for found, expected in zip(*both(np.nan_to_num(flat(texels)), *map(np.int32, size), texels), strict=True):
        (of_texels, of_matrix), (wanted, wanted_of_matrix) = found, expected
        count = texels[..., 0].size
        assert_close("sum", of_texels[:count].reshape(texels.shape), wanted, 10)
        assert not of_texels[count:].any()
        assert_close("sum", np.stack(of_matrix), np.stack(wanted_of_matrix), 1e5)


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

    @functools.partial(jax.jit, static_argnums=1)
    def by_itself(texels, levels):
        chain = with_levels(jt.texture2d(texels), num_levels=levels)
        return chain, jt.sample(chain, tuple(coords), sampler, lod=jnp.clip(lod, 0, levels - 1))

    for size in SIZES:
        texels = texels_of(size)
        levels = max(size).bit_length()
        weights = [sized_texels.weights_of_levels(n, levels) for n in size]
        weights = [np.pad(w, ((0, 0), (0, 100 - w.shape[1]))) for w in weights]
        chain, out = of_sizes(flat(texels), *map(jnp.int32, size), weights)
        whole, expected = by_itself(texels, levels)
        assert sized_texels.chain_length(size) == sum(level[..., 0].size for level in whole.levels)
        assert_exact(chain[: sized_texels.chain_length(size)], whole.texels.reshape(-1, 2))
        assert_close("sum", out, expected, 200)
    assert of_sizes._cache_size() == 1


def test_a_kernel_of_the_adjoint_needs_sizes():
    arguments = flat(texels_of((7, 30))), *map(jnp.int32, (7, 30)), MATRIX
    loss = lambda *args: jnp.sum(read_sized(*args, jt.Sampler(**READS["border"])))
    with kernels_on_cpu():
        texts = [jax.jit(f).lower(*arguments).as_text() for f in (lambda *args: loss(*args), jax.grad(loss))]
    assert ["callback" in text for text in texts] == [True, False]


def test_a_window():
    """Of more texels than there are along either axis, which begins in the middle; what is not needed is NaN."""
    texels, (height, width), starts, window = texels_of((8, 30)), (8, 30), (5, 17), (16, 32)
    rows, columns = ((start + np.arange(n)) % n for start, n in zip(starts, (height, width)))
    stored = np.full((*window, 2), np.nan, np.float32)
    stored[:height, :width] = texels[np.ix_(rows, columns)]
    reads = {name: READS[name] for name in ("border", "wrap", "sphere")}

    @jax.jit
    def read(stored, height, width, top, left, matrix):
        color = jnp.full(2, COLOR)
        texture = SizedTexture(stored.reshape(-1, 2), (height, width), color, window=window, starts=(top, left))
        grid = affine, (*PIXELS, *matrix)
        return {name: sample_grid(texture, *grid, jt.Sampler(**options)) for name, options in reads.items()}

    found = read(stored, *map(np.int32, (height, width, *starts)), MATRIX)
    for name, options in reads.items():
        assert_exact(found[name], oracle.sample(texels, POINTS, border_color=COLOR, **options))
