"""Line integrals against sums of reads and closed forms, their adjoint and gradients, and the rays of scanners."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close

FILTERS = ("point", "linear", "cubic", "bspline", "mitchell", "lanczos2", "lanczos3", "gaussian")
VOLUME, IMAGE = (5, 6, 7), (6, 7)


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def ends(*shape, sizes=VOLUME, dtype=np.float32):
    """Segments from and to points in and around a volume."""
    rng, most = np.random.default_rng(sum(shape)), np.array(sizes[::-1])
    return tuple(rng.uniform(-2, most + 2, (*shape, len(sizes))).astype(dtype) for _ in range(2))


def sum_of_reads(volume, start, end, count, sampler):
    """The quadrature rule by single reads, in the order of the samples."""
    make = {2: jt.texture2d, 3: jt.texture3d}[start.shape[-1]]
    fraction = (np.arange(count, dtype=np.float32) + np.float32(0.5)) / np.float32(count)
    points = start[..., None, :] + (end - start)[..., None, :] * fraction[:, None]
    reads = jt.sample(make(volume), tuple(np.moveaxis(points, -1, 0)), sampler)
    return np.asarray(reads).sum(-2) * np.linalg.norm(end - start, axis=-1)[..., None] / count


# Values


@pytest.mark.parametrize("sizes", [IMAGE, VOLUME])
@pytest.mark.parametrize("mode", ["border", "clamp", "mirror"])
def test_an_integral_is_a_sum_of_reads(sizes, mode):
    volume, (start, end) = normal(*sizes, 2), ends(3, 4, sizes=sizes)
    sampler = jt.Sampler(address_mode=mode, normalized_coords=False)
    found = jt.rays.line_integral(volume, start, end, num_samples=11, sampler=sampler)
    assert_close("float32", found, sum_of_reads(volume, start, end, 11, sampler), 64)


def test_segments_broadcast():
    volume, (start, end) = normal(*VOLUME, 1), ends(3, 4)
    together = jt.rays.line_integral(volume, start[:, :1], end[:1], num_samples=7)
    apart = jt.rays.line_integral(volume, start[:, :1] + 0 * end, end[:1] + 0 * start, num_samples=7)
    assert together.shape == (3, 4, 1)
    assert_close("sum", together, apart, 32)


def test_weights_and_the_size_of_texels():
    volume, (start, end) = normal(*VOLUME, 2), ends(4)
    weights, spacing = normal(4, 9), np.float32([0.5, 2, 3])
    plain = [
        jt.rays.line_integral(volume, start, end, num_samples=9, weights=np.eye(9, dtype=np.float32)[k])
        for k in range(9)
    ]
    longer = np.linalg.norm((end - start) * spacing, axis=-1) / np.linalg.norm(end - start, axis=-1)
    expected = (np.stack(plain, 1) * weights[..., None]).sum(1) * longer[:, None]
    found = jt.rays.line_integral(volume, start, end, num_samples=9, weights=weights, spacing=spacing)
    assert_close("sum", found, expected, 256)


@pytest.mark.parametrize(("filter_mode", "reach"), [("point", 0.5), ("linear", 1.0), ("lanczos3", 3.0)])
def test_a_step_samples_only_what_can_be_there(filter_mode, reach):
    """A segment from far outside is cut to where a tap can lie inside, at most `reach` from the center of a texel."""
    volume, (start, end) = normal(*VOLUME, 2), ends(5, 6)
    start, end = start + 40 * (start - end), end + 40 * (end - start)
    low, high = 0.5 - reach, np.array(VOLUME[::-1]) - 0.5 + reach
    origin, step = np.float64(start), np.float64(end) - start
    sides = np.sort([(low - origin) / step, (high - origin) / step], 0)
    enter, leave = sides[0].max(-1, keepdims=True), sides[1].min(-1, keepdims=True)
    assert (enter < leave).sum() > 20
    cut = np.float32(origin + enter * step), np.float32(origin + np.maximum(enter, leave) * step)
    count = int(np.ceil(np.linalg.norm(high - low) / 0.3))
    sampler = jt.Sampler(filter_mode=filter_mode)
    found = jt.rays.line_integral(volume, start, end, step=0.3, sampler=sampler)
    expected = jt.rays.line_integral(volume, *cut, num_samples=count, sampler=sampler)
    # Positions are rounded where they are some hundred texels away; the point filter jumps where one rounds otherwise.
    far = np.abs(np.asarray(found) - expected) > 2.0**-10
    assert far.mean() <= (0.1 if filter_mode == "point" else 0)


def test_segments_that_miss_the_volume_are_zero():
    start, end = np.float32([[-9, -9, -9], [-5, 3, 3], [2, 2, 2]]), np.float32([[9, -9, -9], [-5, 3, 9], [2, 2, 2]])
    assert not jt.rays.line_integral(np.ones((*VOLUME, 1), np.float32), start, end, step=0.5).any()


def test_integers_and_narrow_floats():
    codes, (start, end) = np.arange(210).reshape(*VOLUME, 1), ends(6)
    run = lambda volume: jt.rays.line_integral(volume, start, end, num_samples=8)
    assert_close("sum", run(codes.astype(np.int16)), run(codes.astype(np.float32)), 2000)
    narrow = run(jnp.asarray(codes, jnp.bfloat16))
    assert narrow.dtype == jnp.bfloat16
    assert_close("bfloat16", narrow, run(jnp.asarray(codes, jnp.bfloat16).astype(np.float32)), 2000)


# Ellipsoids: center, half axes and value of each, in half widths; the 3D phantom of Shepp and Logan without its turns

ELLIPSOIDS = np.array(
    [
        (0, 0, 0, 0.69, 0.92, 0.81, 1.0),
        (0, -0.0184, 0, 0.6624, 0.874, 0.78, -0.8),
        (0.22, 0, 0, 0.11, 0.31, 0.22, -0.2),
        (-0.22, 0, 0, 0.16, 0.41, 0.28, -0.2),
        (0, 0.35, -0.15, 0.21, 0.25, 0.41, 0.1),
    ]
)


def phantom(size, finer=4):
    """The mean of finer cubes of each texel."""
    line = (np.arange(size * finer) + 0.5) * 2 / (size * finer) - 1
    z, y, x = np.meshgrid(line, line, line, indexing="ij", sparse=True)
    inside = lambda e: ((x - e[0]) / e[3]) ** 2 + ((y - e[1]) / e[4]) ** 2 + ((z - e[2]) / e[5]) ** 2 <= 1
    volume = sum(e[6] * inside(e) for e in ELLIPSOIDS)
    return volume.reshape(size, finer, size, finer, size, finer).mean((1, 3, 5))[..., None].astype(np.float32)


def exact(start, end, size):
    """The integrals in closed form, in texels."""
    start, end, total = np.float64(start) * 2 / size - 1, np.float64(end) * 2 / size - 1, 0
    for e in ELLIPSOIDS:
        p, d = (start - e[:3]) / e[3:6], (end - start) / e[3:6]
        a, b, c = (d * d).sum(-1), (p * d).sum(-1), (p * p).sum(-1) - 1
        total = total + e[6] * 2 * np.sqrt(np.maximum(b * b - a * c, 0)) / a
    return total * np.linalg.norm(end - start, axis=-1) * size / 2


def test_ellipsoids():
    """The error is that of edges, which are blurred over 1.5 texels on both sides: it falls with the size of texels."""
    errors = []
    for size in (24, 48):
        rays = jt.rays.cone_beam(
            (size,) * 3,
            np.float32([0.3, 2.0]),
            (16, 16),
            source_distance=2 * size,
            detector_distance=size,
            pixel_size=size / 12,
        )
        start, end = (np.asarray(a) for a in rays)
        found = jt.rays.line_integral(phantom(size), start, end, step=0.5, spacing=1 / size)
        error = np.abs(found[..., 0] - exact(start, end, size) / size)
        errors.append((error.mean(), error.max()))
    assert errors[0][0] < 0.6 / 24, "a texel's share of the width, at most"
    assert errors[1][0] < 0.6 * errors[0][0]
    assert errors[1][1] < errors[0][1]


# The adjoint and gradients


@pytest.mark.parametrize("filter_mode", FILTERS)
@pytest.mark.parametrize("sizes", [IMAGE, VOLUME])
def test_the_adjoint_is_exact(filter_mode, sizes):
    volume, (start, end) = normal(*sizes, 2), ends(4, 5, sizes=sizes)
    project = lambda v: jt.rays.line_integral(
        v, start, end, num_samples=12, sampler=jt.Sampler(filter_mode=filter_mode)
    )
    views, pullback = jax.vjp(project, volume)
    values = normal(*views.shape)
    (back,) = pullback(values)
    products = np.float64(views) * values
    assert_close("sum", np.vdot(np.float64(back), volume), products.sum(), np.abs(products).sum())


@pytest.mark.parametrize("how", [{"num_samples": 9}, {"step": 0.7}])
def test_derivatives(how):
    with jax.enable_x64(True):
        volume, (start, end) = normal(*IMAGE, 1, dtype=np.float64), ends(3, sizes=IMAGE, dtype=np.float64)
        spacing, sampler = np.float64([1.0, 1.5]), jt.Sampler(filter_mode="bspline", spline_order=5)
        run = lambda v, s, e, size: jt.rays.line_integral(v, s, e, spacing=size, sampler=sampler, **how)
        assert_derivatives(run, volume, start, end, spacing)


def test_derivatives_with_respect_to_weights():
    with jax.enable_x64(True):
        volume, (start, end), weights = (
            normal(*IMAGE, 1, dtype=np.float64),
            ends(3, sizes=IMAGE, dtype=np.float64),
            normal(3, 4),
        )
        sampler = jt.Sampler(filter_mode="bspline", spline_order=5)
        run = lambda v, e, w: jt.rays.line_integral(v, start, e, num_samples=4, weights=w, sampler=sampler)
        assert_derivatives(run, volume, end, np.float64(weights))


def test_batches():
    volumes, (start, end) = normal(3, *VOLUME, 1), ends(3, 4)
    run = functools.partial(jt.rays.line_integral, num_samples=6)
    together = jax.vmap(run)(volumes, start, end)
    for k in range(3):
        assert_close("reordered", together[k], run(volumes[k], start[k], end[k]), 32)


SAMPLES = 2**16  # of a segment, so that blocks of them are small beside all of them


def integral(volume, start, end):
    return jt.rays.line_integral(volume, start, end, num_samples=SAMPLES)


def memory_of(function):
    """The bytes that a function of a volume and 64 x 64 segments takes beside its arguments and results."""
    args = normal(16, 16, 16, 1), *ends(64, 64, sizes=(16, 16, 16))
    return jax.jit(function).lower(*args).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.compiled
@pytest.mark.parametrize("wrt", [None, (0,), (1, 2), (0, 1, 2)])
def test_no_array_of_samples(wrt):
    """Not even of half a byte for each."""
    function = integral if wrt is None else jax.grad(lambda *args: (integral(*args) ** 2).sum(), wrt)
    assert memory_of(function) < 64 * 64 * SAMPLES / 2


@pytest.mark.compiled
@pytest.mark.parametrize("wrt", [(0,), (1, 2)])
@pytest.mark.parametrize("order", [1, 2])
def test_forward_mode_stores_no_samples(wrt, order):
    """Nor does the gradient of a tangent."""

    def tangent(function):
        def along(*args):
            moving = tuple(args[k] for k in wrt)
            given = lambda *some: function(*(dict(zip(wrt, some)).get(k, a) for k, a in enumerate(args)))
            return jax.jvp(given, moving, moving)[1]

        return along

    once = tangent(integral)
    pulled = jax.grad(lambda *args: once(*args).sum())
    both = lambda *args: (once(*args), pulled(*args))
    assert memory_of(both if order == 1 else tangent(once)) < 64 * 64 * SAMPLES / 2


# Rays


def test_parallel_beam():
    angles = np.float32([0, np.pi / 2, 0.3])
    start, end = jt.rays.parallel_beam((5, 6, 7), angles, (2, 3), pixel_size=0.5)
    assert start.shape == end.shape == (3, 2, 3, 3)
    middle, along = (start + end) / 2, (end - start) / np.sqrt(5 * 5 + 6 * 6 + 7 * 7)
    assert_close("point", middle[0], np.float32([[(x, 3, z) for x in (3, 3.5, 4)] for z in (2.25, 2.75)]), 8)
    assert_close("point", along[1], np.broadcast_to(np.float32([-1, 0, 0]), (2, 3, 3)), 8)
    # As ASTRA's vectors of parallel3d: a ray (sin, -cos, 0), and columns along (cos, sin, 0), up to its direction.
    sine, cosine = np.sin(0.3), np.cos(0.3)
    assert_close("point", -along[2], np.broadcast_to([sine, -cosine, 0], (2, 3, 3)), 8)
    assert_close("point", middle[2, 0, 1] - middle[2, 0, 0], np.array([cosine, sine, 0]) / 2, 8)


def test_cone_beam():
    """ASTRA's vectors of a cone: the source, the detector's middle, and its columns and rows."""
    angle, far, behind = 0.7, 30.0, 12.0
    start, end = jt.rays.cone_beam(
        (5, 6, 7), np.float32([angle]), (3, 3), source_distance=far, detector_distance=behind, pixel_size=2
    )
    center, sine, cosine = np.array([3.5, 3, 2.5]), np.sin(angle), np.cos(angle)
    assert_close("point", start, (center + far * np.array([sine, -cosine, 0])).reshape(1, 1, 1, 3), 32)
    middle = center + behind * np.array([-sine, cosine, 0])
    u, v = np.array([cosine, sine, 0]) * 2, np.array([0, 0, 2])
    assert_close("point", end[0], np.array([[middle + i * u + j * v for i in (-1, 0, 1)] for j in (-1, 0, 1)]), 32)


def test_a_fan_of_an_image_is_the_middle_row_of_a_cone():
    distances = {"source_distance": 20, "detector_distance": 9, "pixel_size": 1.5}
    fan = jt.rays.cone_beam((6, 7), np.float32([0.4]), (4,), **distances)
    cone = jt.rays.cone_beam((1, 6, 7), np.float32([0.4]), (1, 4), **distances)
    for flat, deep in zip(fan, cone):
        assert_close("point", flat, deep[:, 0, :, :2], 32)


def test_camera_rays():
    matrix, pose = np.float32([[4, 0.5, 3], [0, 5, 2], [0, 0, 1]]), np.eye(4, dtype=np.float32)
    pose[:3, :3], pose[:3, 3] = np.float32([[0, 0, 1], [1, 0, 0], [0, 1, 0]]), (1, 2, 3)
    start, end = jt.rays.camera_rays(matrix, pose, (4, 6), near=2.0, far=10.0)
    assert start.shape == end.shape == (4, 6, 3)
    for points, depth in ((start, 2), (end, 10)):
        seen = (np.asarray(points) - pose[:3, 3]) @ pose[:3, :3] @ matrix.T
        assert_close("point", seen[..., 2], np.full((4, 6), depth), 16)
        pixel = np.stack(np.meshgrid(np.arange(6) + 0.5, np.arange(4) + 0.5), -1)
        assert_close("point", seen[..., :2] / seen[..., 2:], pixel, 16)


def test_gradients_with_respect_to_the_scanner():
    with jax.enable_x64(True):
        image, sampler = normal(*IMAGE, 1, dtype=np.float64), jt.Sampler(filter_mode="bspline", spline_order=4)

        def run(angles, source, detector, pitch):
            distances = {"source_distance": source, "detector_distance": detector, "pixel_size": pitch}
            rays = jt.rays.cone_beam(IMAGE, angles, (2,), **distances)
            return jt.rays.line_integral(image, *rays, num_samples=3, sampler=sampler)

        assert_derivatives(run, np.float64([0.2, 1.1]), np.float64(9), np.float64(6), np.float64(1.3))


# Errors


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"volume": normal(6, 7, 1)}, "volume has shape"),
        ({"start": normal(3)[:1]}, "start has shape"),
        ({"end": normal(4, 2)}, "expected shapes that broadcast"),
        ({"end": normal(5, 3)}, "expected shapes that broadcast"),
        ({"num_samples": 0}, "num_samples is 0"),
        ({"step": 0.5}, "pass one of them"),
        ({"num_samples": None}, "pass one of them"),
        ({"num_samples": None, "step": 0.0}, "step is 0.0"),
        ({"num_samples": None, "step": 0.5, "weights": 1.0}, "weights are given with step"),
        ({"num_samples": None, "step": 0.5, "sampler": jt.Sampler(address_mode="clamp")}, "address_mode='border'"),
        ({"weights": normal(5)}, "weights has shape"),
        ({"spacing": normal(2)}, "spacing has shape"),
        ({"sampler": jt.Sampler(arithmetic="hardware")}, "arithmetic='float'"),
    ],
)
def test_wrong_arguments(change, sentence):
    start, end = ends(4)
    arguments = {"volume": normal(*VOLUME, 1), "start": start, "end": end, "num_samples": 6} | change
    with pytest.raises(ValueError, match=sentence):
        jt.rays.line_integral(**arguments)


@pytest.mark.parametrize(
    ("function", "arguments", "sentence"),
    [
        ("parallel_beam", ((5, 6, 7, 8), np.zeros(2, np.float32), (2, 3)), "volume_shape is"),
        ("parallel_beam", ((5, 6), np.zeros(2, np.float32), (2, 3)), "detector_shape is"),
        ("parallel_beam", ((5, 6), np.float32(0), (2,)), "angles has shape"),
        ("camera_rays", (np.eye(4, dtype=np.float32), np.eye(4, dtype=np.float32), (2, 3)), "camera_matrix has shape"),
        ("camera_rays", (np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32), (2, 3)), "pose has shape"),
    ],
)
def test_wrong_scanners(function, arguments, sentence):
    options = {"far": 2.0} if function == "camera_rays" else {}
    with pytest.raises(ValueError, match=sentence):
        getattr(jt.rays, function)(*arguments, **options)
