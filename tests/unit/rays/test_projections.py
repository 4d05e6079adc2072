"""Maximum intensity, first crossings and compositing against loops in NumPy and closed forms, and their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close
from tests.unit.rays.test_rays import IMAGE, SAMPLES, VOLUME, ends, memory_of, normal

SMOOTH = jt.Sampler(filter_mode="bspline", spline_order=5)


def samples(volume, start, end, count, address="border", outside=0.0):
    """The samples of segments by single reads, S + (count, C), in float64."""
    make = {2: jt.texture2d, 3: jt.texture3d}[start.shape[-1]]
    fraction = (np.arange(count, dtype=start.dtype) + start.dtype.type(0.5)) / start.dtype.type(count)
    points = start[..., None, :] + (end - start)[..., None, :] * fraction[:, None]
    how = jt.Sampler(address_mode=address, normalized_coords=False)
    return np.float64(jt.sample(make(volume, border_color=outside), tuple(np.moveaxis(points, -1, 0)), how))


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


# Maximum intensity


@pytest.mark.parametrize(("sizes", "channels"), [(IMAGE, 2), (VOLUME, 1), (VOLUME, 3)])
def test_the_largest_sample(sizes, channels):
    volume, (start, end) = normal(*sizes, channels), ends(3, 4, sizes=sizes)
    for outside in (0.0, -1.5, 2):
        found = jt.rays.maximum_intensity(volume, start, end, num_samples=11, outside=outside)
        assert_close("float32", found, samples(volume, start, end, 11, outside=outside).max(-2), 64)


@pytest.mark.parametrize("modes", ["border", ("border", "clamp", "border"), ("clamp", "border", "wrap")])
@pytest.mark.parametrize(("sizes", "channels"), [(IMAGE, 2), (VOLUME, 1), (VOLUME, 3)])
def test_only_what_is_inside_can_be_the_largest(sizes, channels, modes):
    """Along the axes with a border, segments are cut to the volume, and its edges are those of clamp."""
    volume, (start, end) = normal(*sizes, channels) - 3, ends(3, 40, sizes=sizes)
    modes = modes if isinstance(modes, str) else modes[: len(sizes)]
    cut = [mode == "border" for mode in modes] if isinstance(modes, tuple) else [True] * 3
    found = jt.rays.maximum_intensity(volume, start, end, num_samples=11, sampler=jt.Sampler(address_mode=modes))
    first, last = in_volume(start, end, sizes, cut)
    inside = ["clamp" if mode == "border" else mode for mode in ([modes] * 3 if isinstance(modes, str) else modes)]
    meets, address = np.isfinite(first).all(-1), tuple(inside[: len(sizes)])
    expected = samples(volume, np.nan_to_num(first), np.nan_to_num(last), 11, address).max(-2)
    assert 20 < meets.sum() < meets.size
    assert_close("float32", np.asarray(found)[meets], expected[meets], 256)
    assert np.all(np.asarray(found)[~meets] == -np.inf)


@pytest.mark.parametrize("how", [{"step": 0.4}, {"num_samples": 60}])
def test_a_constant_volume_has_no_other_value(how):
    """A minimum by the recipe, and a maximum, of a constant of either sign, whatever the filter reaches outside."""
    start, end = np.float32([[4, 4, -20], [-9, 3, 2], [0, 0, 0]]), np.float32([[5, 4.5, 30], [20, 3.7, 6], [8, 8, 8]])
    for filter_mode in ("linear", "cubic", "gaussian"):
        sampler = jt.Sampler(filter_mode=filter_mode)
        run = lambda volume, sampler=sampler: jt.rays.maximum_intensity(volume, start, end, sampler=sampler, **how)
        for constant in (100.0, -1000.0):
            volume = np.full((8, 8, 8, 1), constant, np.float32)
            for found in (run(volume), -run(-volume)):
                assert_close("float32", found, np.full((3, 1), constant), 1000)


def test_a_segment_that_misses_the_volume():
    """No sample is the largest of none, and nothing crosses a level; neither has a gradient."""
    volume, start, end = normal(*VOLUME, 1), np.float32([-3, -2, -1]), np.float32([-1, 4, 9])
    for how in ({"step": 0.5}, {"num_samples": 9}):
        highest = lambda v, s, e, how=how: jt.rays.maximum_intensity(v, s, e, **how)[0]
        assert highest(volume, start, end) == -np.inf
        assert jt.rays.maximum_intensity(volume, start, end, outside=-2.0, **how) == -2
        assert jt.rays.first_crossing(volume, start, end, 0.1, **how) == np.inf
        assert not any(np.any(a) for a in jax.grad(highest, (0, 1, 2))(volume, start, end))


def test_segments_that_broadcast_and_empty_ones():
    volume, (start, end) = normal(*VOLUME, 2), ends(3, 4)
    together = jt.rays.maximum_intensity(volume, start[:, :1], end[:1], num_samples=7)
    apart = jt.rays.maximum_intensity(volume, start[:, :1] + 0 * end, end[:1] + 0 * start, num_samples=7)
    assert_close("float32", finite(together), finite(apart), 64)
    for function in (jt.rays.maximum_intensity, jt.rays.composite):
        assert function(volume, start[:0], end[:0], num_samples=7).shape == (0, 4, 2)
    assert jt.rays.first_crossing(volume, start[:0], end[:0], 0.0, num_samples=7).shape == (0, 4, 2)


def test_nan_is_no_largest_sample():
    image = np.float32([[0, 1, np.nan, 2, 1, 0]])[..., None]
    start, end = np.float32([[0, 0.5]]), np.float32([[6, 0.5]])
    found = jt.rays.maximum_intensity(image, start, end, num_samples=6, sampler=jt.Sampler(filter_mode="point"))
    assert found == 2


def test_equal_samples_give_the_gradient_to_the_first():
    image, sampler = np.ones((1, 4, 1), np.float32), jt.Sampler(filter_mode="point")
    start, end = np.float32([0, 0.5]), np.float32([4, 0.5])
    run = lambda image: jt.rays.maximum_intensity(image, start, end, num_samples=4, sampler=sampler)[0]
    assert jax.grad(run)(image).ravel().tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("outside", [None, 0.7])
def test_derivatives_of_the_largest_sample(outside):
    with jax.enable_x64(True):
        volume, (start, end) = normal(*IMAGE, 2, dtype=np.float64), ends(3, sizes=IMAGE, dtype=np.float64)
        run = lambda *args: jt.rays.maximum_intensity(*args, num_samples=9, outside=outside, sampler=SMOOTH)
        assert np.isfinite(run(volume, start, end)).all()
        assert_derivatives(run, volume, start, end)


# First crossings


def test_the_depth_of_a_sphere():
    """Of a distance field, in closed form; infinite beside the sphere. Linear reads of it are curved by 1/64 texel."""
    size, radius = 33, 9.0
    line = np.arange(size) + 0.5 - size / 2
    z, y, x = np.meshgrid(line, line, line, indexing="ij")
    field = (radius - np.sqrt(x * x + y * y + z * z))[..., None].astype(np.float32)
    eye = np.float32([size / 2 - 30, size / 2, size / 2])
    target = np.float32([[size / 2 + 30, size / 2 + dy, size / 2] for dy in (0, 8, 15, 40)])
    found = np.asarray(jt.rays.first_crossing(field, eye, target, 0.0, step=0.3))[:, 0]
    along = (target - eye) / np.linalg.norm(target - eye, axis=-1, keepdims=True)
    middle = 30 * along[:, 0]
    expected = middle - np.sqrt(np.maximum(radius**2 - (900 - middle**2), 0))
    assert np.abs(found[:3] - expected[:3]).max() < 0.05
    assert np.isinf(found[3])
    scaled = jt.rays.first_crossing(field, eye, target, 0.0, step=0.3, spacing=2.0)[:3, 0]
    assert_close("float32", scaled, 2 * found[:3], 128)


@pytest.mark.parametrize("how", [{"step": 0.5}, {"num_samples": 200}])
def test_the_face_of_a_volume_is_no_surface(how):
    """A ball in air, in Hounsfield units: adding a number to all and to the level changes nothing, unless outside is
    given, and lies beyond the level."""
    line = np.arange(20) - 9.5
    radius = np.sqrt(line[:, None, None] ** 2 + line[:, None] ** 2 + line**2)
    ball = np.where(radius < 6, 40, -1000).astype(np.float32)[..., None]
    start, end = np.float32([[10, 10, -30], [10, 11, -30]]), np.float32([[10, 10, 70], [10, 9, 70]])
    depths = [jt.rays.first_crossing(ball + c, start, end, c - 300.0, **how) for c in (0, 1000)]
    for depth in depths:
        assert np.abs(np.asarray(depth)[:, 0] - 34).max() < 0.6
    assert_close("float32", *depths, 4096)
    air = jt.rays.first_crossing(ball, start, end, -300.0, outside=-1000, **how)
    assert_close("float32", air, depths[0], 4096)
    face = jt.rays.first_crossing(ball, start, end, -300.0, outside=0, **how)
    assert np.abs(face - 30).max() < 0.6


@pytest.mark.parametrize("sign", [1, -1])
def test_a_ramp_is_crossed_where_it_reaches_the_level(sign):
    """In either direction, for each channel, at levels of each segment."""
    with jax.enable_x64(True):
        image = np.stack([sign * np.arange(8.0), -2 * sign * np.arange(8.0)], -1)[None].repeat(3, 0)
        start, end = np.float64([[1, 1.5], [1, 1.5]]), np.float64([[7, 1.5], [4, 1.5]])
        level = sign * np.float64([4.25, -4.5])
        found = jt.rays.first_crossing(image, start, end, level, num_samples=13)
        assert_close("float64", finite(found), [[3.75, -1], [-1, 1.75]], 8)


def test_a_level_may_have_more_axes_than_segments():
    ramp = np.arange(8, dtype=np.float32)[None, :, None].repeat(3, 0)
    level = np.float32([[1.5], [2.5], [9]])
    found = jt.rays.first_crossing(ramp, np.float32([0.75, 1.5]), np.float32([7, 1.5]), level, num_samples=25)
    assert found.shape == (3, 1, 1)
    assert_close("float32", finite(found[:, 0, 0]), [1.25, 2.25, -1], 16)


def test_derivatives_of_a_depth():
    with jax.enable_x64(True):
        line = np.arange(7.0)
        image = np.add.outer(line, 0.7 * line) - 5 + 0.2 * normal(7, 7, dtype=np.float64)
        start, end = np.float64([[1.2, 1.4], [2, 1]]), np.float64([[6, 5.5], [5.5, 6]])
        run = lambda v, s, e, level, size: jt.rays.first_crossing(
            v, s, e, level, num_samples=19, spacing=size, sampler=SMOOTH
        )
        assert np.isfinite(run(image[..., None], start, end, 0.3, 1.0)).all()
        assert_derivatives(run, image[..., None], start, end, np.float64([0.3, 0.4]), np.float64([1.0, 1.5]))


def test_nothing_has_a_gradient_where_nothing_crosses():
    ramp = np.arange(8, dtype=np.float32)[None, :, None]
    run = lambda v, s: jt.rays.first_crossing(v, s, s + 1, 99.0, num_samples=5)[0]
    for cotangent in jax.grad(run, (0, 1))(ramp, np.float32([1, 0.5])):
        assert not np.any(cotangent)


def test_a_jump_of_the_point_filter():
    image, sampler = np.float32([[0, 0, 5, 5]])[..., None], jt.Sampler(filter_mode="point")
    start, end = np.float32([0.2, 0.5]), np.float32([3.8, 0.5])
    run = lambda s: jt.rays.first_crossing(image, s, end, 1.0, num_samples=12, sampler=sampler)[0]
    assert abs(float(run(start)) - 1.8) < 0.1
    assert not jax.grad(run)(start)[1]


# Compositing


@pytest.mark.parametrize("least", [0.0, 0.3])
@pytest.mark.parametrize(("sizes", "channels"), [(IMAGE, 4), (VOLUME, 1), (VOLUME, 2), (VOLUME, 20)])
def test_emission_and_absorption(sizes, channels, least):
    volume, (start, end) = normal(*sizes, channels), ends(3, 4, sizes=sizes)
    spacing = np.float32([0.5, 1, 1.5][: len(sizes)])
    found = jt.rays.composite(volume, start, end, num_samples=11, spacing=spacing, min_transmittance=least)
    lengths = np.linalg.norm(np.float64(end - start) * spacing, axis=-1) / 11
    assert_close("float32", found, composited(samples(volume, start, end, 11), lengths, least), 64)


def test_a_homogeneous_fog():
    """A color and a density that do not change: 1 - exp(-density length) of the color, for any number of samples."""
    fog = np.broadcast_to(np.float32([3, 0.25]), (6, 8, 2))
    start, end = np.float32([1, 3]), np.float32([7, 3])
    share = 1 - np.exp(-0.25 * 6)
    for count in (1, 5, 64):
        assert_close("sum", jt.rays.composite(fog, start, end, num_samples=count), [3 * share, share], 8)


def test_a_small_extinction_keeps_its_digits():
    thin = np.full((4, 4, 1), 1e-7, np.float32)
    found = jt.rays.composite(thin, np.float32([1, 2]), np.float32([3, 2]), num_samples=1)
    assert abs(found[0] / 2e-7 - 1) < 0.2  # 1 - T is a multiple of 2^-24


@pytest.mark.parametrize("how", [{"num_samples": 9}, {"step": 0.7}, {"num_samples": 9, "min_transmittance": 0.2}])
def test_derivatives_of_compositing(how):
    with jax.enable_x64(True):
        volume, (start, end) = normal(*IMAGE, 3, dtype=np.float64), ends(3, sizes=IMAGE, dtype=np.float64)
        volume[..., -1] = 0.4 + 0.1 * volume[..., -1]
        run = lambda *args: jt.rays.composite(*args[:3], spacing=args[3], sampler=SMOOTH, **how)
        assert_derivatives(run, volume, start, end, np.float64([1.0, 1.5]))


def test_extinction_grows_from_nothing():
    empty = np.zeros((4, 4, 1), np.float32)
    run = lambda v: jt.rays.composite(v, np.float32([0.5, 2]), np.float32([3.5, 2]), num_samples=6)[0]
    assert_close("sum", jax.grad(run)(empty).sum(), 3.0, 8)


def test_blocks_of_samples_change_nothing(monkeypatch):
    from jaxtex._engine.rules import folds

    volume, (start, end) = normal(3, 3, 3, 2), ends(30, 4, sizes=(3, 3, 3))
    run = lambda *args: jt.rays.composite(*args, num_samples=25).sum()
    whole = jax.value_and_grad(run, (0, 1, 2))(volume, start, end)
    monkeypatch.setattr(folds, "SUM_BLOCK", 30 * 4 * 2 * 3)
    jax.clear_caches()
    for a, b in zip(jax.tree.leaves(jax.value_and_grad(run, (0, 1, 2))(volume, start, end)), jax.tree.leaves(whole)):
        assert_close("sum", a, b, 256)
    jax.clear_caches()


# All of them

CALLS = {
    "maximum_intensity": (),
    "first_crossing": (np.float32(0.2),),
    "composite": (),
}


@pytest.mark.parametrize("name", CALLS)
def test_batches(name):
    volumes, (start, end) = normal(3, *VOLUME, 2), ends(3, 4)
    run = lambda *args: jnp.nan_to_num(getattr(jt.rays, name)(*args, num_samples=16), posinf=-1, neginf=-1)
    together = jax.vmap(lambda *args: run(*args, *CALLS[name]))(volumes, start, end)
    shared = jax.vmap(lambda *args: run(volumes[0], *args, *CALLS[name]))(start, end)
    for k in range(3):
        assert_close("reordered", together[k], run(volumes[k], start[k], end[k], *CALLS[name]), 32)
        assert_close("reordered", shared[k], run(volumes[0], start[k], end[k], *CALLS[name]), 32)


@pytest.mark.parametrize("name", CALLS)
def test_integers_and_narrow_floats(name):
    codes, (start, end) = np.arange(210).reshape(*VOLUME, 1) % 100, ends(6)
    level = (np.float32(40),) * len(CALLS[name])
    project = lambda volume: getattr(jt.rays, name)(volume, start, end, *level, num_samples=8)
    run = lambda volume: jnp.nan_to_num(project(volume), posinf=-1, neginf=-1)
    expected = run(codes.astype(np.float32))
    assert_close("sum", run(codes.astype(np.int16)), expected, 200)
    narrow = run(jnp.asarray(codes, jnp.bfloat16))
    assert narrow.dtype == (jnp.float32 if level else jnp.bfloat16)
    assert_close("sum" if level else "bfloat16", narrow, expected, 200)


@pytest.mark.compiled
@pytest.mark.parametrize("name", CALLS)
def test_no_array_of_samples(name):
    """Not even of half a byte for each; with gradients, too."""
    value = lambda *args: getattr(jt.rays, name)(*args, *CALLS[name], num_samples=SAMPLES)
    gradients = jax.grad(lambda *args: (value(*args) ** 2).sum(), (0, 1, 2))
    assert max(map(memory_of, (value, gradients))) < 64 * 64 * SAMPLES / 2


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("maximum_intensity", {"num_samples": 0}, "maximum_intensity: num_samples is 0"),
        ("maximum_intensity", {"step": 0.5}, "maximum_intensity: .* pass one of them"),
        ("maximum_intensity", {"num_samples": 2**24 + 1}, "expected at most 16777216"),
        ("maximum_intensity", {"outside": float("-inf")}, "outside is -inf, expected a finite number, or None"),
        ("first_crossing", {"outside": 0, "sampler": jt.Sampler(address_mode="clamp")}, "which has no outside"),
        ("first_crossing", {"level": normal(5)}, "first_crossing: level has shape"),
        ("first_crossing", {"sampler": jt.Sampler(arithmetic="hardware")}, "arithmetic='float'"),
        ("composite", {"min_transmittance": 1.5}, "min_transmittance is 1.5"),
        ("composite", {"min_transmittance": float("nan")}, "min_transmittance is nan"),
        ("composite", {"spacing": normal(2)}, "composite: spacing has shape"),
    ],
)
def test_wrong_arguments(name, change, sentence):
    start, end = ends(4)
    arguments = {"volume": normal(*VOLUME, 1), "start": start, "end": end, "num_samples": 6}
    arguments |= {"level": 0.0} if name == "first_crossing" else {}
    with pytest.raises(ValueError, match=sentence):
        getattr(jt.rays, name)(**arguments | change)


@pytest.mark.parametrize("name", ["maximum_intensity", "first_crossing", "composite"])
def test_complex_volumes_are_refused(name):
    start, end = ends(4)
    level = {"level": 0.0} if name == "first_crossing" else {}
    with pytest.raises(TypeError, match=f"{name}: volume is complex64"):
        getattr(jt.rays, name)(normal(*VOLUME, 2) + 1j, start, end, num_samples=6, **level)
