"""Line integrals against sums of reads, their adjoint and gradients, and the rays of scanners."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.support.arrays import normal
from tests.support.cases import computed
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, named

VOLUME, IMAGE = (5, 6, 7), (6, 7)


def ends(*shape, sizes=VOLUME, dtype=np.float32):
    """Segments from and to points in and around a volume."""
    rng, most = np.random.default_rng(sum(shape)), np.array(sizes[::-1])
    return tuple(rng.uniform(-2, most + 2, (*shape, len(sizes))).astype(dtype) for _ in range(2))


def points_of(start, end, count):
    """The places of the samples of segments, S + (count, ndim)."""
    fraction = (np.arange(count, dtype=start.dtype) + start.dtype.type(0.5)) / start.dtype.type(count)
    return start[..., None, :] + (end - start)[..., None, :] * fraction[:, None]


def reads_of(start, end, count, address="border", outside=0.0):
    """A function of a volume: the samples of segments by single reads, S + (count, C)."""
    make, points = {2: jt.texture2d, 3: jt.texture3d}[start.shape[-1]], points_of(start, end, count)
    sampler = jt.Sampler(address_mode=address, normalized_coords=False)
    return lambda volume: jt.sample(make(volume, border_color=outside), tuple(np.moveaxis(points, -1, 0)), sampler)


def integral(**how):
    return functools.partial(jt.rays.line_integral, **how)


def test_an_integral_is_a_sum_of_reads():
    """The quadrature rule: in volumes with weights of samples, and sizes of texels."""
    cases, calls = ((VOLUME, "border"), (IMAGE, "clamp"), (IMAGE, "mirror")), []
    weights, spacing = normal(3, 4, 11), np.float32([0.5, 2, 3])
    for sizes, mode in cases:
        how = {"weights": weights, "spacing": spacing} if sizes == VOLUME else {}
        volume, (start, end) = normal(*sizes, 2), ends(3, 4, sizes=sizes)
        sampler = jt.Sampler(address_mode=mode, normalized_coords=False)
        calls.append((integral(num_samples=11, sampler=sampler, **how), volume, start, end))
        calls.append((reads_of(start, end, 11, mode), volume))
    found = computed(*calls)
    for case, (*_, start, end), integrals, reads in zip(cases, calls[::2], found[::2], found[1::2]):
        with named(*case):
            weighted, size = (reads * weights[..., None], spacing) if case[0] == VOLUME else (reads, 1)
            length = np.linalg.norm((end - start) * size, axis=-1)[..., None]
            assert_close("float32", integrals, weighted.sum(-2) * length / 11, 256)


def test_a_step_samples_only_what_can_be_there():
    """A segment from far outside is cut to where a tap can lie inside, at most `reach` from the center of a texel."""
    volume, (start, end) = normal(*IMAGE, 2), ends(5, 6, sizes=IMAGE)
    start, end = start + 40 * (start - end), end + 40 * (end - start)
    origin, step, calls = np.float64(start), np.float64(end) - start, []
    reaches = {"point": 0.5, "linear": 1.0, "cubic": 2.0}
    for filter_mode, reach in reaches.items():
        low, high = 0.5 - reach, np.array(IMAGE[::-1]) - 0.5 + reach
        sides = np.sort([(low - origin) / step, (high - origin) / step], 0)
        enter, leave = sides[0].max(-1, keepdims=True), sides[1].min(-1, keepdims=True)
        assert (enter < leave).sum() > 20
        cut = np.float32(origin + enter * step), np.float32(origin + np.maximum(enter, leave) * step)
        count, sampler = int(np.ceil(np.linalg.norm(high - low) / 0.3)), jt.Sampler(filter_mode=filter_mode)
        calls.append((integral(step=0.3, sampler=sampler), volume, start, end))
        calls.append((integral(num_samples=count, sampler=sampler), volume, *cut))
    found = computed(*calls)
    for filter_mode, by_step, expected in zip(reaches, found[::2], found[1::2]):
        # Positions are rounded where they are some hundred texels away; the point filter jumps where one rounds
        # otherwise.
        far = np.abs(by_step - expected) > 2.0**-10
        assert far.mean() <= (0.1 if filter_mode == "point" else 0), filter_mode


def test_segments_that_miss_the_volume_are_zero():
    start, end = np.float32([[-9, -9, -9], [-5, 3, 3], [2, 2, 2]]), np.float32([[9, -9, -9], [-5, 3, 9], [2, 2, 2]])
    (found,) = computed((integral(step=0.5), np.ones((*VOLUME, 1), np.float32), start, end))
    assert not found.any()


def test_the_adjoint_is_exact():
    cases = ("point", IMAGE), ("cubic", IMAGE), ("linear", VOLUME)

    def both(filter_mode, sizes):
        project = integral(num_samples=12, sampler=jt.Sampler(filter_mode=filter_mode))
        volume, segments, values = normal(*sizes, 2), ends(4, 5, sizes=sizes), normal(4, 5, 2)

        def run(volume):
            views, pullback = jax.vjp(lambda v: project(v, *segments), volume)
            return views, pullback(values)[0], values

        return run, volume

    calls = [both(*case) for case in cases]
    for case, (_, volume), (views, back, values) in zip(cases, calls, computed(*calls)):
        with named(*case):
            products = np.float64(views) * values
            assert_close("sum", np.vdot(np.float64(back), volume), products.sum(), np.abs(products).sum())


SMOOTH = jt.Sampler(filter_mode="bspline", spline_order=2)


@pytest.mark.parametrize("how", [{"num_samples": 4}, {"step": 0.7}])
def test_derivatives(how, x64):
    """In the volume, the segments, the size of texels, and weights of samples."""
    volume, segments = normal(*IMAGE, 1, dtype=np.float64), ends(3, sizes=IMAGE, dtype=np.float64)
    more = {"weights": np.float64(normal(3, 4))} if "num_samples" in how else {}
    run = lambda v, s, e, size, more: jt.rays.line_integral(v, s, e, spacing=size, sampler=SMOOTH, **how, **more)
    assert_derivatives(run, volume, *segments, np.float64([1.0, 1.5]), more)


SAMPLES = 2**16  # of a segment, so that blocks of them are small beside all of them


def memory_of(function):
    """The bytes that a function of an image and 64 x 64 segments takes beside its arguments and results."""
    args = normal(16, 16, 1), *ends(64, 64, sizes=(16, 16))
    return jax.jit(function).lower(*args).compile().memory_analysis().temp_size_in_bytes


def moving(function):
    """A tangent of a function of a volume and segments, along themselves."""
    return lambda *args: jax.jvp(function, args, args)[1]


def test_no_array_of_samples():
    """Not even of half a byte for each, in both modes, nor in the gradient of a tangent, nor in its tangent."""
    many, wrt = integral(num_samples=SAMPLES), (0, 1, 2)
    once = moving(many)
    orders = *(jax.grad(lambda *args, f=f: (f(*args) ** 2).sum(), wrt) for f in (many, once)), moving(once)
    assert memory_of(lambda *args: [f(*args) for f in orders]) < 64 * 64 * SAMPLES / 2


def test_parallel_beam():
    beam = lambda angles: jt.rays.parallel_beam((5, 6, 7), angles, (2, 3), pixel_size=0.5)
    ((start, end),) = computed((beam, np.float32([0, np.pi / 2, 0.3])))
    assert start.shape == end.shape == (3, 2, 3, 3)
    middle, along = (start + end) / 2, (end - start) / np.sqrt(5 * 5 + 6 * 6 + 7 * 7)
    assert_close("point", middle[0], np.float32([[(x, 3, z) for x in (3, 3.5, 4)] for z in (2.25, 2.75)]), 8)
    assert_close("point", along[1], np.broadcast_to(np.float32([-1, 0, 0]), (2, 3, 3)), 8)
    # As ASTRA's vectors of parallel3d: a ray (sin, -cos, 0), and columns along (cos, sin, 0), up to its direction.
    sine, cosine = np.sin(0.3), np.cos(0.3)
    assert_close("point", -along[2], np.broadcast_to([sine, -cosine, 0], (2, 3, 3)), 8)
    assert_close("point", middle[2, 0, 1] - middle[2, 0, 0], np.array([cosine, sine, 0]) / 2, 8)


def test_cone_beam():
    """ASTRA's vectors: the source, the detector's middle, columns and rows. A fan is the middle row of a cone."""
    angle, far, behind = 0.7, 30.0, 12.0
    cone = lambda shape, detector, pixel: (
        lambda angles: jt.rays.cone_beam(
            shape, angles, detector, source_distance=far, detector_distance=behind, pixel_size=pixel
        )
    )
    cases = ((5, 6, 7), (3, 3), 2), ((6, 7), (4,), 1.5), ((1, 6, 7), (1, 4), 1.5)
    (start, end), *rays = computed(*((cone(*case), np.float32([angle])) for case in cases))
    center, sine, cosine = np.array([3.5, 3, 2.5]), np.sin(angle), np.cos(angle)
    assert_close("point", start, (center + far * np.array([sine, -cosine, 0])).reshape(1, 1, 1, 3), 32)
    middle = center + behind * np.array([-sine, cosine, 0])
    u, v = np.array([cosine, sine, 0]) * 2, np.array([0, 0, 2])
    assert_close("point", end[0], np.array([[middle + i * u + j * v for i in (-1, 0, 1)] for j in (-1, 0, 1)]), 32)
    for flat, deep in zip(*rays):
        assert_close("point", flat, deep[:, 0, :, :2], 32)


def test_camera_rays():
    matrix, pose = np.float32([[4, 0.5, 3], [0, 5, 2], [0, 0, 1]]), np.eye(4, dtype=np.float32)
    pose[:3, :3], pose[:3, 3] = np.float32([[0, 0, 1], [1, 0, 0], [0, 1, 0]]), (1, 2, 3)
    (rays,) = computed((lambda *args: jt.rays.camera_rays(*args, (4, 6), near=2.0, far=10.0), matrix, pose))
    pixel = np.stack(np.meshgrid(np.arange(6) + 0.5, np.arange(4) + 0.5), -1)
    for points, depth in zip(rays, (2, 10)):
        assert points.shape == (4, 6, 3)
        seen = (points - pose[:3, 3]) @ pose[:3, :3] @ matrix.T
        assert_close("point", seen[..., 2], np.full((4, 6), depth), 16)
        assert_close("point", seen[..., :2] / seen[..., 2:], pixel, 16)


def test_gradients_with_respect_to_the_scanner(x64):
    def rays(angles, source, detector, pitch):
        distances = {"source_distance": source, "detector_distance": detector, "pixel_size": pitch}
        return jnp.concatenate([a.ravel() for a in jt.rays.cone_beam(IMAGE, angles, (2,), **distances)])

    assert_derivatives(rays, np.float64([0.2, 1.1]), np.float64(9), np.float64(6), np.float64(1.3))
