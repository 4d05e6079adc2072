"""Laws that every read obeys, on drawn values; shapes are fixed, so that a law compiles once for each of its cases."""

import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.drawn import floats, given, integers, one_of
from tests.support.tolerances import assert_close, assert_exact

SAMPLES, WIDTH, HEIGHT, CHANNELS = 12, 6, 5, 2
LARGEST = 8.0

anywhere = floats(SAMPLES, low=-1.5, high=2.5)
image = floats(HEIGHT, WIDTH, CHANNELS)
each_read = pytest.mark.parametrize(
    ("filter_mode", "mode"),
    [("point", "wrap"), ("linear", "clamp"), ("linear", "mirror"), ("cubic", "wrap"), ("cubic", "reflect")],
)


@each_read
@given(value=floats(CHANNELS), x=anywhere, y=anywhere)
def test_a_constant_stays_constant(filter_mode, mode, value, x, y):
    texture = jt.texture2d(np.broadcast_to(value, (HEIGHT, WIDTH, CHANNELS)))
    actual = jt.sample(texture, (x, y), jt.Sampler(filter_mode=filter_mode, address_mode=mode))
    assert_close("float32", actual, np.broadcast_to(value, actual.shape), LARGEST)


@pytest.mark.parametrize("filter_mode", ["point", "cubic"])
@given(value=floats(CHANNELS), x=anywhere, y=anywhere)
def test_a_border_of_the_same_constant_changes_nothing(filter_mode, value, x, y):
    texture = jt.texture2d(np.broadcast_to(value, (HEIGHT, WIDTH, CHANNELS)), border_color=value)
    actual = jt.sample(texture, (x, y), jt.Sampler(filter_mode=filter_mode, address_mode="border"))
    assert_close("float32", actual, np.broadcast_to(value, actual.shape), LARGEST)


@pytest.mark.parametrize(("filter_mode", "margin"), [("linear", 0.5), ("cubic", 1.5)])
@given(slope=floats(2, low=-1, high=1), u=floats(SAMPLES, low=0, high=1), v=floats(SAMPLES, low=0, high=1))
def test_a_ramp_is_reproduced(filter_mode, margin, slope, u, v):
    columns, rows = np.arange(WIDTH) + 0.5, np.arange(HEIGHT)[:, None] + 0.5
    texture = jt.texture2d((slope[0] * columns + slope[1] * rows).astype(np.float32)[..., None])
    x, y = margin + u * (WIDTH - 2 * margin), margin + v * (HEIGHT - 2 * margin)
    sampler = jt.Sampler(filter_mode=filter_mode, normalized_coords=False)
    actual = jt.sample(texture, (np.float32(x), np.float32(y)), sampler)[:, 0]
    assert_close("float32", actual, slope[0] * np.float64(x) + slope[1] * np.float64(y), WIDTH + HEIGHT)


@pytest.mark.parametrize("filter_mode", ["linear", "cubic"])
@given(texels=image, x=anywhere, y=anywhere)
def test_axes_permute(filter_mode, texels, x, y):
    straight = jt.Sampler(filter_mode=filter_mode, address_mode=("wrap", "border"))
    swapped = jt.Sampler(filter_mode=filter_mode, address_mode=("border", "wrap"))
    actual = jt.sample(jt.texture2d(texels.swapaxes(0, 1)), (y, x), swapped)
    assert_close("float32", actual, jt.sample(jt.texture2d(texels), (x, y), straight), LARGEST)


@pytest.mark.parametrize(("filter_mode", "mode"), [("linear", "clamp"), ("cubic", "reflect")])
@given(texels=floats(WIDTH, CHANNELS), x=anywhere, y=anywhere)
def test_an_axis_of_one_texel_changes_nothing(filter_mode, mode, texels, x, y):
    sampler = jt.Sampler(filter_mode=filter_mode, address_mode=mode)
    actual = jt.sample(jt.texture2d(texels[None]), (x, y), sampler)
    assert_close("float32", actual, jt.sample(jt.texture1d(texels), (x,), sampler), LARGEST)


@pytest.mark.parametrize("filter_mode", ["point", "linear"])
@given(texels=floats(3, HEIGHT, WIDTH, CHANNELS), x=anywhere, y=anywhere, layer=integers(low=0, high=2))
def test_a_layer_equals_a_slice(filter_mode, texels, x, y, layer):
    sampler = jt.Sampler(filter_mode=filter_mode, address_mode="mirror")
    actual = jt.sample(jt.texture2d_layered(texels), (x, y), sampler, layer=np.int32(layer))
    assert_close("float32", actual, jt.sample(jt.texture2d(texels[layer]), (x, y), sampler), LARGEST)


@pytest.mark.parametrize(("filter_mode", "mode", "period"), [("point", "wrap", 1), ("linear", "mirror", 2)])
@given(texels=floats(WIDTH, CHANNELS), x=anywhere, periods=integers(low=-3, high=3))
def test_a_period_shift_changes_nothing(filter_mode, mode, period, texels, x, periods):
    texture, sampler = jt.texture1d(texels), jt.Sampler(filter_mode=filter_mode, address_mode=mode)
    moved = x + np.float32(period * periods)  # exact: the drawn coordinates are multiples of 2^-12
    actual, expected = jt.sample(texture, (moved,), sampler), jt.sample(texture, (x,), sampler)
    assert_close("float32", actual, expected, LARGEST)


@pytest.mark.parametrize(("mode", "period"), [("wrap", WIDTH), ("mirror", 2 * WIDTH), ("reflect", 2 * WIDTH - 2)])
@given(texels=floats(WIDTH, CHANNELS), x=floats(SAMPLES, low=-6, high=12), periods=integers(low=-3, high=3))
def test_a_period_in_texels_changes_nothing(mode, period, texels, x, periods):
    texture, sampler = jt.texture1d(texels), jt.Sampler(address_mode=mode, normalized_coords=False)
    moved = x + np.float32(period * periods)
    actual, expected = jt.sample(texture, (moved,), sampler), jt.sample(texture, (x,), sampler)
    assert_close("float32", actual, expected, LARGEST)


@pytest.mark.parametrize(
    ("filter_mode", "mode"),
    [("point", "wrap"), ("linear", "clamp"), ("linear", "border"), ("cubic", ("reflect", "border"))],
)
@given(texels=image, values=floats(SAMPLES, CHANNELS), x=anywhere, y=anywhere)
def test_splat_is_the_adjoint_of_sample(filter_mode, mode, texels, values, x, y):
    sampler = jt.Sampler(filter_mode=filter_mode, address_mode=mode)
    read = jt.sample(jt.texture2d(texels), (x, y), sampler)
    spread = jt.splat(values, (x, y), texels.shape, sampler).texels
    ours, theirs = np.vdot(np.float64(read), values), np.vdot(texels, np.float64(spread))
    assert_close("sum", ours, theirs, LARGEST * np.abs(values).sum())


@pytest.mark.parametrize(("filter_mode", "mode"), [("point", "wrap"), ("linear", "clamp"), ("cubic", "mirror")])
@given(values=floats(SAMPLES, CHANNELS), x=anywhere, y=anywhere)
def test_splat_keeps_the_total_where_weights_sum_to_one(filter_mode, mode, values, x, y):
    sampler = jt.Sampler(filter_mode=filter_mode, address_mode=mode)
    texels = np.float64(jt.splat(values, (x, y), (HEIGHT, WIDTH, CHANNELS), sampler).texels)
    assert_close("sum", texels.sum((0, 1)), np.float64(values).sum(0), LARGEST * SAMPLES)


@given(
    texels=image,
    column=integers(SAMPLES, low=0, high=WIDTH - 1),
    row=integers(SAMPLES, low=0, high=HEIGHT - 1),
    dx=floats(SAMPLES, low=0.01, high=0.99),
    dy=floats(SAMPLES, low=0.01, high=0.99),
)
def test_point_reads_the_nearest_texel(texels, column, row, dx, dy):
    sampler = jt.Sampler(filter_mode="point", normalized_coords=False)
    assert_exact(jt.sample(jt.texture2d(texels), (column + dx, row + dy), sampler), texels[row, column], np.float32)


@given(
    texels=image,
    column=integers(SAMPLES, low=-2, high=WIDTH + 1),
    row=integers(SAMPLES, low=-2, high=HEIGHT + 1),
    dx=floats(SAMPLES, low=0.01, high=0.99),
    dy=floats(SAMPLES, low=0.01, high=0.99),
    component=one_of(*range(CHANNELS)),
)
def test_gather_under_clamp_fetches_the_four_texels(texels, column, row, dx, dy, component):
    texture = jt.texture2d(texels)
    coords = np.float32(column + dx + 0.5), np.float32(row + dy + 0.5)
    actual = jt.gather(texture, coords, jt.Sampler(normalized_coords=False), component=component)
    x0, x1 = (np.clip(column + k, 0, WIDTH - 1) for k in (0, 1))
    y0, y1 = (np.clip(row + k, 0, HEIGHT - 1) for k in (0, 1))
    four = [jt.fetch(texture, corner)[:, component] for corner in ((x0, y1), (x1, y1), (x1, y0), (x0, y0))]
    assert_exact(actual, np.stack(four, -1), np.float32)


@given(texels=image, x=anywhere, y=anywhere)
def test_a_linear_read_blends_what_a_gather_returns(texels, x, y):
    texture, sampler = jt.texture2d(texels), jt.Sampler(address_mode="mirror")
    x0y1, x1y1, x1y0, x0y0 = np.float64(jt.gather(texture, (x, y), sampler, component=1)).T
    a, b = ((p - 0.5) % 1 for p in (oracle.position(x, WIDTH, "mirror"), oracle.position(y, HEIGHT, "mirror")))
    blend = (1 - b) * ((1 - a) * x0y0 + a * x1y0) + b * ((1 - a) * x0y1 + a * x1y1)
    assert_close("float32", jt.sample(texture, (x, y), sampler)[:, 1], blend, LARGEST)


@given(texels=image, other=image, factor=integers(low=-4, high=4), x=anywhere, y=anywhere)
def test_a_read_is_linear_in_the_texels(texels, other, factor, x, y):
    sampler = jt.Sampler(filter_mode="cubic", address_mode=("wrap", "clamp"))

    def read(array):
        return np.float64(jt.sample(jt.texture2d(array), (x, y), sampler))

    assert_close("float32", read(texels + factor * other), read(texels) + factor * read(other), 5 * LARGEST)
