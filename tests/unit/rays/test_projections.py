"""Maximum intensity, first crossings and compositing against loops in NumPy and closed forms, and their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.support.cases import computed
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, named
from tests.unit.rays.test_rays import IMAGE, SAMPLES, SMOOTH, VOLUME, ends, memory_of, normal, reads_of

POINT = jt.Sampler(filter_mode="point")
SHAPES = ((*IMAGE, 2), (*VOLUME, 1), (*VOLUME, 3))


def calling(function, *arrays, **how):
    """A call of a function of `jt.rays`, with options."""
    return (lambda *arrays: getattr(jt.rays, function)(*arrays, **how), *arrays)


def in_volume(start, end, sizes, cut=(True, True, True)):
    """The parts of segments in a volume, along the axes that are cut, x first; NaN where there is none."""
    start, end = np.broadcast_arrays(np.float64(start), end)
    step, ends = end - start, np.where(cut[: len(sizes)], sizes[::-1], np.inf)
    lows, highs = np.where(np.isinf(ends), -np.inf, 0) - start, ends - start
    sides = np.sort([lows / step, highs / step], 0)
    enter, leave = np.maximum(sides[0].max(-1), 0)[..., None], np.minimum(sides[1].min(-1), 1)[..., None]
    meets = enter <= leave
    return tuple(np.float32(np.where(meets, start + t * step, np.nan)) for t in (enter, leave))


def finite(numbers):
    """Numbers, with -1 in place of infinity."""
    return np.where(np.isinf(numbers), -1, numbers)


def composited(values, lengths, least=0.0):
    """Emission and absorption of samples, S + (N, C), one after the other."""
    color, light = np.zeros((*values.shape[:-2], values.shape[-1] - 1)), np.ones(values.shape[:-2])
    for value in np.moveaxis(values, -2, 0):
        opacity = np.where(light > least, 1 - np.exp(-np.maximum(value[..., -1], 0) * lengths), 0)
        color += (light * opacity)[..., None] * value[..., :-1]
        light = light * (1 - opacity)
    return np.concatenate([color, 1 - light[..., None]], -1)


def test_the_largest_sample():
    cases, calls = [*zip(SHAPES, (0.0, -1.5, 2))], []
    for shape, outside in cases:
        volume, (start, end) = normal(*shape), ends(3, 4, sizes=shape[:-1])
        calls.append(calling("maximum_intensity", volume, start, end, num_samples=11, outside=outside))
        calls.append((reads_of(start, end, 11, outside=outside), volume))
    found = computed(*calls)
    for case, largest, reads in zip(cases, found[::2], found[1::2]):
        with named(*case):
            assert_close("float32", largest, reads.max(-2), 64)


def test_only_what_is_inside_can_be_the_largest():
    """Along the axes with a border, segments are cut to the volume, and its edges are those of clamp."""
    calls, meets = [], []
    modes = ("border", "border"), ("border", "clamp"), ("clamp", "border", "wrap")
    cases = [*zip((SHAPES[0], *SHAPES), modes)]
    for shape, of_axes in cases:
        volume, (start, end) = normal(*shape) - 3, ends(3, 40, sizes=shape[:-1])
        first, last = in_volume(start, end, shape[:-1], [mode == "border" for mode in of_axes])
        meets.append(np.isfinite(first).all(-1))
        address = tuple("clamp" if mode == "border" else mode for mode in of_axes)
        sampler = jt.Sampler(address_mode=of_axes)
        calls.append(calling("maximum_intensity", volume, start, end, num_samples=11, sampler=sampler))
        calls.append((reads_of(np.nan_to_num(first), np.nan_to_num(last), 11, address), volume))
    found = computed(*calls)
    for case, inside, largest, reads in zip(cases, meets, found[::2], found[1::2]):
        with named(*case):
            assert 20 < inside.sum() < inside.size
            assert_close("float32", largest[inside], reads.max(-2)[inside], 256)
            assert np.all(largest[~inside] == -np.inf)


def test_a_constant_volume_has_no_other_value():
    """A minimum by the recipe, and a maximum, of a constant of either sign, whatever the filter reaches outside."""
    start, end = np.float32([[4, -20], [-9, 3], [0, 0]]), np.float32([[5, 30], [20, 3.7], [8, 8]])
    cases = ("linear", {"num_samples": 60}), ("cubic", {"step": 0.4}), ("gaussian", {"step": 0.4})
    highest = lambda volume, how, options: jt.rays.maximum_intensity(
        volume, start, end, sampler=jt.Sampler(filter_mode=how), **options
    )
    run = jax.jit(lambda volume: [highest(volume, *case) for case in cases])
    for constant in (100.0, -1000.0):
        for case, found in zip(cases, run(np.full((8, 8, 1), constant, np.float32))):
            with named(*case, constant):
                assert_close("float32", found, np.full((3, 1), constant), 1000)


def test_a_segment_that_misses_the_volume():
    """No sample is the largest of none, and nothing crosses a level; neither has a gradient."""
    args, calls = (normal(*IMAGE, 1), np.float32([-3, -2]), np.float32([-1, 4])), []
    for how in ({"step": 0.5}, {"num_samples": 9}):
        highest = lambda *args, how=how: jt.rays.maximum_intensity(*args, **how)[0]
        calls.append((jax.value_and_grad(highest, (0, 1, 2)), *args))
        calls.append(calling("maximum_intensity", *args, outside=-2.0, **how))
        calls.append(calling("first_crossing", *args, np.float32(0.1), **how))
    found = computed(*calls)
    for (value, slopes), given, crossing in zip(found[::3], found[1::3], found[2::3]):
        assert (value, given[0], crossing[0]) == (-np.inf, -2, np.inf)
        assert not any(map(np.any, slopes))


def test_ties_and_numbers_that_are_none():
    """The first of equal samples has the gradient; NaN is not the largest; and no segments have no samples."""
    image, ones = np.float32([[0, 1, np.nan, 2, 1, 0]])[..., None], np.ones((1, 6, 1), np.float32)
    start, end, how = np.float32([0, 0.5]), np.float32([6, 0.5]), {"num_samples": 6, "sampler": POINT}
    run = lambda image: jt.rays.maximum_intensity(image, start, end, **how)[0]
    largest, slope = computed((run, image), (jax.grad(run), ones))
    assert largest == 2
    assert slope.ravel().tolist() == [1, 0, 0, 0, 0, 0]
    for name, level in CALLS.items():
        call, *arrays = calling(name, normal(*VOLUME, 2), *ends(0, 4), *level, num_samples=7)
        assert jax.eval_shape(call, *arrays).shape == (0, 4, 2)


@pytest.mark.parametrize("outside", [None, pytest.param(0.7, marks=pytest.mark.slow)])
def test_derivatives_of_the_largest_sample(outside, x64):
    volume, (start, end) = normal(*IMAGE, 2, dtype=np.float64), ends(3, sizes=IMAGE, dtype=np.float64)
    run = lambda *args: jt.rays.maximum_intensity(*args, num_samples=9, outside=outside, sampler=SMOOTH)
    assert_derivatives(run, volume, start, end)


def test_the_face_of_a_volume_is_no_surface():
    """A disk in air, in Hounsfield units: adding a number to all and to the level changes nothing, unless outside is
    given, and lies beyond the level."""
    line = np.arange(20) - 9.5
    disk = np.where(np.hypot(line[:, None], line) < 6, 40, -1000).astype(np.float32)[..., None]
    start, end = np.float32([[10, -30], [11, -30]]), np.float32([[10, 70], [9, 70]])
    run = lambda **how: lambda c: jt.rays.first_crossing(disk + c, start, end, c - 300, **how)
    calls = [(run(step=0.5), np.float32(0)), (run(num_samples=200), np.float32(1000))]
    *depths, face = computed(*calls, *((run(step=0.5, outside=n), np.float32(0)) for n in (-1000, 0)))
    for depth in depths:
        assert np.abs(depth[:, 0] - 34).max() < 0.6
        assert_close("float32", depth, depths[0], 4096)
    assert np.abs(face - 30).max() < 0.6


def test_a_ramp_is_crossed_where_it_reaches_the_level(x64):
    """In either direction, for each channel, at levels of each segment, which may have more axes."""
    start, end = np.float64([[1, 1.5], [1, 1.5]]), np.float64([[7, 1.5], [4, 1.5]])
    ramp, level = np.arange(8.0), np.float64([4.25, -4.5])
    image = np.stack([ramp, -2 * ramp], -1)[None].repeat(3, 0)
    depth = lambda *arrays, **how: calling("first_crossing", *arrays, **how)
    one, levels = ramp[None, :, None].repeat(3, 0), np.float64([[1.5], [2.5], [9]])
    up, down, larger, of_levels = computed(
        depth(image, start, end, level, num_samples=13),
        depth(-image, start, end, -level, num_samples=13),
        depth(image, start, end, level, num_samples=13, spacing=2.0),
        depth(one, np.float64([0.75, 1.5]), np.float64([7, 1.5]), levels, num_samples=25),
    )
    for depths in (up, down, larger / 2):
        assert_close("float64", finite(depths), [[3.75, -1], [-1, 1.75]], 8)
    assert of_levels.shape == (3, 1, 1)
    assert_close("float64", finite(of_levels[:, 0, 0]), [1.25, 2.25, -1], 16)


def test_derivatives_of_a_depth(x64):
    line = np.arange(7.0)
    image = np.add.outer(line, 0.7 * line) - 5 + 0.2 * normal(7, 7, dtype=np.float64)
    start, end = np.float64([[1.2, 1.4], [2, 1]]), np.float64([[6, 5.5], [5.5, 6]])
    run = lambda v, s, e, level, size: jt.rays.first_crossing(
        v, s, e, level, num_samples=19, spacing=size, sampler=SMOOTH
    )
    assert_derivatives(run, image[..., None], start, end, np.float64([0.3, 0.4]), np.float64([1.0, 1.5]))


def test_what_has_no_gradient():
    """Where nothing crosses, and along a jump of the point filter."""
    ramp, image = np.arange(8, dtype=np.float32)[None, :, None], np.float32([[0, 0, 5, 5]])[..., None]
    nothing = lambda v, s: jt.rays.first_crossing(v, s, s + 1, 99.0, num_samples=5)[0]
    jump = lambda v, s: jt.rays.first_crossing(v, s, np.float32([3.8, 0.5]), 1.0, num_samples=12, sampler=POINT)[0]
    slopes, (depth, slope) = computed(
        (jax.grad(nothing, (0, 1)), ramp, np.float32([1, 0.5])),
        (jax.value_and_grad(jump, 1), image, np.float32([0.2, 0.5])),
    )
    assert not any(map(np.any, slopes))
    assert abs(depth - 1.8) < 0.1
    assert not slope[1]


def test_emission_and_absorption():
    cases = ((*VOLUME, 1), 0.0), ((*IMAGE, 4), 0.3), ((*IMAGE, 20), 0.0)
    calls, spacing = [], np.float32([0.5, 1, 1.5])
    for shape, least in cases:
        volume, (start, end) = normal(*shape), ends(3, 4, sizes=shape[:-1])
        how = {"num_samples": 11, "spacing": spacing[: len(shape) - 1], "min_transmittance": least}
        calls.append(calling("composite", volume, start, end, **how))
        calls.append((reads_of(start, end, 11), volume))
    found = computed(*calls)
    for (shape, least), (*_, start, end), value, reads in zip(cases, calls[::2], found[::2], found[1::2]):
        with named(shape, least):
            lengths = np.linalg.norm(np.float64(end - start) * spacing[: len(shape) - 1], axis=-1) / 11
            assert_close("float32", value, composited(np.float64(reads), lengths, least), 64)


def test_a_small_extinction_keeps_its_digits_and_grows_from_nothing():
    thin, end = np.full((4, 4, 1), 1e-7, np.float32), np.float32([3, 2])
    run = lambda volume: jt.rays.composite(volume, np.float32([1, 2]), end, num_samples=1)[0]
    found, slope = computed((run, thin), (jax.grad(run), 0 * thin))
    assert abs(found / 2e-7 - 1) < 0.2  # 1 - T is a multiple of 2^-24
    assert_close("sum", slope.sum(), 2.0, 8)


def test_derivatives_of_compositing(x64):
    volume, (start, end) = normal(*IMAGE, 3, dtype=np.float64), ends(3, sizes=IMAGE, dtype=np.float64)
    volume[..., -1] = 0.4 + 0.1 * volume[..., -1]
    how = {"num_samples": 9, "min_transmittance": 0.3, "sampler": SMOOTH}
    run = lambda v, s, e, size: jt.rays.composite(v, s, e, spacing=size, **how)
    assert_derivatives(run, volume, start, end, np.float64([1.0, 1.5]))


def test_many_samples_change_nothing():
    """Of segments together, whose samples are summed block by block, and of few of them."""
    image, segments = normal(3, 3, 2), ends(30, 4, sizes=(3, 3))
    run = jax.value_and_grad(lambda *args: jt.rays.composite(*args, num_samples=2000).sum(), (0, 1, 2))
    few = tuple(ends.reshape(3, 10, 4, 2) for ends in segments)
    (value, slopes), (values, parts) = computed(
        (run, image, *segments), (lambda v, few: jax.lax.map(lambda ends: run(v, *ends), few), image, few)
    )
    assert_close("long sum", value, values.sum(), 256)
    assert_close("long sum", slopes[0], parts[0].sum(0), 256)
    for whole, part in zip(slopes[1:], parts[1:]):
        assert_close("long sum", whole.reshape(part.shape), part, 256)


CALLS = {"line_integral": (), "maximum_intensity": (), "first_crossing": (np.float32(0.2),), "composite": ()}


@pytest.mark.parametrize("name", CALLS)
def test_batches_and_segments_that_broadcast(name):
    volumes, (start, end) = normal(3, *IMAGE, 2), ends(3, 4, sizes=IMAGE)
    call, *_ = calling(name, num_samples=16)
    run = lambda *args: call(*args, *CALLS[name])
    batch, expected, shared, together = computed(
        (jax.vmap(run), volumes, start, end),
        (lambda *args: jax.lax.map(lambda some: run(*some), args), volumes, start, end),
        (jax.vmap(run, (None, 0, 0)), volumes[0], *np.broadcast_arrays(start[:, :1], end[:1])),
        (run, volumes[0], start[:, :1], end[:1]),
    )
    for found, wanted in ((batch, expected), (shared, together)):
        assert_close("reordered", finite(found), finite(wanted), 32)


@pytest.mark.parametrize("name", CALLS)
def test_integers_and_narrow_floats(name):
    codes, (start, end) = np.arange(42).reshape(*IMAGE, 1) * 2, ends(6, sizes=IMAGE)
    level = (np.float32(40),) * len(CALLS[name])
    given = codes.astype(np.float32), codes.astype(np.int16), codes.astype(jnp.bfloat16)
    expected, of_codes, narrow = computed(*(calling(name, a, start, end, *level, num_samples=8) for a in given))
    assert narrow.dtype == (jnp.float32 if level else jnp.bfloat16)
    scale = 2000 if name == "line_integral" else 200
    assert_close("sum", finite(of_codes), finite(expected), scale)
    assert_close("sum" if level else "bfloat16", finite(narrow.astype(np.float32)), finite(expected), scale)


@pytest.mark.parametrize("name", CALLS)
def test_no_array_of_samples(name):
    """Not even of half a byte for each; with gradients, too."""
    value, *_ = calling(name, num_samples=SAMPLES)
    squares = lambda *args: (value(*args, *CALLS[name]) ** 2).sum()
    assert memory_of(jax.value_and_grad(squares, (0, 1, 2))) < 64 * 64 * SAMPLES / 2
