"""Reads of textures whose sizes are operands: one program for many sizes, and what a texture of each size gives."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from jaxtex._engine.describe.plan import SizedTexture
from jaxtex._reads.calls import sample_grid
from jaxtex.modes import AddressMode
from jaxtex.warp.coordinate_functions import affine
from tests.compiled.field_calls import MATRIX, PIXELS
from tests.oracles import reads as oracle
from tests.support.tolerances import assert_close, assert_exact

CAPACITY, SIZES = 2**12, [(1, 1), (8, 2), (7, 30), (40, 34)]
POINTS = tuple(a * PIXELS[0] + b * PIXELS[1] + c for a, b, c in (MATRIX[:3], MATRIX[3:]))


def texels_of(size, channels=2, dtype=np.float32):
    """Whole numbers: linear reads of them at `POINTS` are exact sums, however XLA fuses products."""
    return np.random.default_rng(sum(size)).integers(0, 200, (*size, channels)).astype(dtype)


def flat(texels):
    """Texels in a flat array, of which the rest is NaN, which no read may return."""
    rest = CAPACITY - texels.shape[0] * texels.shape[1]
    filling = np.nan if np.issubdtype(texels.dtype, np.floating) else 77
    return np.pad(texels.reshape(-1, texels.shape[-1]), ((0, rest), (0, 0)), constant_values=filling)


COLOR = np.float32(5)


def read_sized(texels, height, width, matrix, sampler):
    color = jnp.broadcast_to(COLOR, texels.shape[-1:])
    return sample_grid(SizedTexture(texels, (height, width), color), affine, (*PIXELS, *matrix), sampler)


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
