"""Laws that every read obeys, on drawn values: the reads of all of them are one program."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from tests.support.drawn import floats, given
from tests.support.tolerances import assert_close

SAMPLES, WIDTH, HEIGHT, CHANNELS = 12, 6, 5, 2
LARGEST = 8.0
# A filter, an address mode, and how far from the edges a ramp is reproduced, if it is.
READS = (
    *(("point", "wrap", None), ("linear", "clamp", 0.5), ("linear", "mirror", 0.5), ("linear", "border", 0.5)),
    *(("cubic", "wrap", 1.5), ("cubic", ("reflect", "border"), 1.5)),
)


@jax.jit
def reads(value, ramp, inside, texels, other, values, *coords):
    """Of each row: of a constant, of a ramp inside of it, of two textures and of their sum; and a splat."""

    def of(filter_mode, address_mode, margin):
        sampler = jt.Sampler(filter_mode=filter_mode, address_mode=address_mode)
        read = lambda texels, coords=coords: jt.sample(jt.texture2d(texels), coords, sampler)
        ends = [(margin or 0) / n for n in (WIDTH, HEIGHT)]
        within = [end + u * (1 - 2 * end) for end, u in zip(ends, inside)]
        constant = jt.texture2d(jnp.broadcast_to(value, texels.shape), border_color=value)
        return {
            "constant": jt.sample(constant, coords, sampler),
            "ramp": (read(ramp, within)[:, 0], within),
            "sum": (read(texels), read(other), read(texels + 2 * other)),
            "splat": jt.splat(values, coords, texels.shape, sampler).texels,
        }

    return [of(*row) for row in READS]


@given(
    value=floats(CHANNELS),
    slope=floats(2, low=-1, high=1),
    inside=floats(2, SAMPLES, low=0, high=1),
    texels=floats(2, HEIGHT, WIDTH, CHANNELS),
    values=floats(SAMPLES, CHANNELS),
    coords=floats(2, SAMPLES, low=-1.5, high=2.5),
)
def test_laws(value, slope, inside, texels, values, coords):
    """A constant stays constant, a ramp is reproduced, a read is linear in texels, and a splat is its adjoint."""
    columns, rows = np.arange(WIDTH) + 0.5, np.arange(HEIGHT)[:, None] + 0.5
    ramp = (slope[0] * columns + slope[1] * rows).astype(np.float32)[..., None]
    for (*_, margin), found in zip(READS, reads(value, ramp, tuple(inside), *texels, values, *coords), strict=True):
        assert_close("float32", found["constant"], np.broadcast_to(value, (SAMPLES, CHANNELS)), LARGEST)
        on_ramp, (x, y) = found["ramp"]
        if margin:
            expected = slope[0] * WIDTH * np.float64(x) + slope[1] * HEIGHT * np.float64(y)
            assert_close("float32", on_ramp, expected, WIDTH + HEIGHT)
        first, second, both = (np.float64(read) for read in found["sum"])
        assert_close("float32", both, first + 2 * second, 5 * LARGEST)
        spread = np.vdot(texels[0], np.float64(found["splat"]))
        assert_close("sum", np.vdot(first, values), spread, LARGEST * np.abs(values).sum())
