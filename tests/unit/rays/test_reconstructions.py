"""Filtered backprojection against loops in NumPy, scikit-image and closed forms; its adjoint and derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from tests.support import recordings
from tests.support.arrays import normal
from tests.support.cases import computed
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, named

recorded = functools.partial(recordings.arrays, "backprojections")
CONE = {"source_distance": 30.0, "detector_distance": 12.0, "pixel_size": 1.4}
WINDOWS = {
    "ramp": lambda f: 1,
    "shepp_logan": lambda f: np.sin(np.pi * f) / (np.pi * f),
    "cosine": lambda f: np.cos(np.pi * f),
    "hamming": lambda f: 0.54 + 0.46 * np.cos(2 * np.pi * f),
    "hann": lambda f: np.cos(np.pi * f) ** 2,
}


def turns(count, of=2.0):
    """Evenly spaced angles of half turns."""
    return np.float32(np.arange(count) * of * np.pi / count)


def reconstructed(shape, **how):
    """A function of projections and angles."""
    return lambda projections, angles: jt.rays.filtered_backprojection(projections, shape, angles, **how)


# The oracle


def filter_taps(name, width):
    """The filter in space, from pixel 1 - width to pixel width - 1 from its middle, by sums of cosines."""
    period = 2 ** int(np.ceil(np.log2(2 * width)))
    lags = np.arange(-period // 2, period // 2)
    ramp = np.array([0.25 if n == 0 else -1 / (np.pi * n) ** 2 if n % 2 else 0 for n in lags])
    frequency = np.where(lags, lags, 1e-30) / period
    passed = (ramp * np.cos(2 * np.pi * np.outer(lags, lags) / period)).sum(1) * WINDOWS[name](frequency)
    taps = (passed * np.cos(2 * np.pi * np.outer(lags, lags) / period)).sum(1) / period
    return taps[np.abs(lags) < width]


def linear(line, at):
    """Linear reads of (width, ...) at positions whose centers are at whole numbers, with zero outside."""
    padded = np.concatenate([0 * line[:1], line, 0 * line[:1]])
    at = np.clip(at + 1, 0, len(line) + 1)
    low = np.minimum(at.astype(int), len(line))
    share = (at - low).reshape(*at.shape, *[1] * (line.ndim - 1))
    return padded[low] * (1 - share) + padded[low + 1] * share


def in_numpy(projections, shape, angles, filter, pixel_size=1.0, source_distance=None, detector_distance=None):
    """The reconstruction of a volume, (D, H, W, C), view by view, from points in space, x first."""
    (_, height, width, channels), center = projections.shape, np.array(shape[::-1]) / 2
    z, y, x = np.meshgrid(*(np.arange(n) + 0.5 for n in shape), indexing="ij")
    texels, total = np.stack([x, y, z], -1) - center, np.zeros((*shape, channels))
    rows, columns = ((np.arange(n) + 0.5 - n / 2) * pixel_size for n in (height, width))
    for angle, view in zip(np.float64(angles), np.float64(projections)):
        across, ahead = np.array([np.cos(angle), np.sin(angle), 0]), np.array([-np.sin(angle), np.cos(angle), 0])
        spacing, weight, hits = pixel_size, 1.0, texels
        if source_distance is not None:
            source, middle = -source_distance * ahead, detector_distance * ahead
            pixels = middle + columns[:, None] * across + rows[:, None, None] * np.array([0, 0, 1.0])
            to_pixel = pixels - source
            if filter is not None:
                view = view * ((to_pixel @ ahead) / np.linalg.norm(to_pixel, axis=-1))[..., None]
            spacing = pixel_size * source_distance / (source_distance + detector_distance)
            # Where the line from the source through a texel meets the detector.
            to_texel = texels - source
            along = to_texel @ ahead
            hits = source + to_texel * ((source_distance + detector_distance) / along)[..., None]
            weight = (source_distance / along)[..., None] ** 2
        if filter is not None:
            taps = filter_taps(filter, width) / spacing
            pick = np.arange(width)[:, None] - np.arange(width) + width - 1
            view = np.einsum("uw,hwc->huc", taps[pick], view)
        u, v = (hits @ across) / pixel_size + width / 2 - 0.5, hits[..., 2] / pixel_size + height / 2 - 0.5
        by_row = linear(view, v)  # of each texel, its row of the detector
        flat = [linear(row, at[None])[0] for row, at in zip(by_row.reshape(-1, width, channels), u.ravel())]
        total += weight * np.reshape(flat, (*shape, channels))
    return total * np.pi / len(angles)


def test_values():
    """Parallel, fan and cone beams by each filter; an image is a volume of one slice and a row of the detector."""
    cases = (
        *((name, (6, 7), (9,), {"pixel_size": 0.9}) for name in (*WINDOWS, None)),
        ("hann", (3, 6, 7), (4, 9), {}),
        ("ramp", (6, 7), (10,), CONE),
        ("shepp_logan", (3, 5, 6), (4, 9), CONE),
        (None, (3, 5, 6), (4, 8), CONE),
    )
    angles, calls = np.float32([0.2, 1.3, 2.9, -1.0, 4.4]), []
    for name, shape, detector, how in cases:
        calls.append((reconstructed(shape, filter=name, **how), normal(5, *detector, 2), angles))
    for (name, shape, _, how), (_, views, _), found in zip(cases, calls, computed(*calls)):
        with named(name, shape, *how):
            flat = len(shape) == 2
            deep = (views[:, None], (1, *shape)) if flat else (views, shape)
            expected = in_numpy(*deep, angles, name, **how)
            assert_close("float32", found, expected[0] if flat else expected, 4)
            assert found.dtype == np.float32


def test_scikit_image():
    """Its projections are ours at angles of the other sign; reconstructions agree within the circle that it fills.

    Both interpolate linearly between the same samples of the same filter, of one period, so that only roundings differ.
    Its Hamming and Hann windows are those of NumPy, which end one frequency earlier. Without a filter, it takes half.
    """
    peer = recorded()
    size, angles = len(peer["image"]), -np.deg2rad(peer["degrees"])
    project = lambda image: jt.rays.line_integral(
        image, *jt.rays.parallel_beam((size, size), angles, (size,)), step=0.25
    )
    names = [name.removeprefix("iradon/") for name in peer if name.startswith("iradon/")]
    views = np.ascontiguousarray(peer["radon"].T)[..., None]
    ours = {name: None if name == "None" else name.replace("-", "_") for name in names}
    calls = [(reconstructed((size, size), filter=ours[name]), views, angles) for name in names]
    projections, *found = computed((project, peer["image"][..., None]), *calls)
    assert_close("scikit-image's projections", projections, views, views.max())
    y, x = np.mgrid[:size, :size] - size // 2
    inside = np.hypot(x, y) <= size // 2
    assert len(names) == 6
    for name, image in zip(names, found):
        with named(name):
            row = "scikit-image's windows" if name in ("hamming", "hann") else "peer"
            expected = peer[f"iradon/{name}"] * (2 if name == "None" else 1)
            assert_close(row, image[inside, 0], expected[inside], np.abs(expected).max())


# Closed forms


def through_balls(rays, balls):
    """The integral along rays of balls or disks, each a center, a radius and a density."""
    start, end = np.broadcast_arrays(*(np.asarray(a, np.float64) for a in rays))
    along = (end - start) / np.linalg.norm(end - start, axis=-1, keepdims=True)
    total = 0
    for center, radius, density in balls:
        to_start = start - np.array(center)
        nearest = (to_start**2).sum(-1) - (to_start * along).sum(-1) ** 2
        total = total + density * 2 * np.sqrt(np.maximum(radius**2 - nearest, 0))
    return np.float32(total)[..., None]


def of_balls(shape, balls, margin=0.0):
    """The density at the centers of texels, and whether these are in all views and farther than a margin from edges."""
    z_y_x = np.stack(np.meshgrid(*(np.arange(n) + 0.5 for n in shape), indexing="ij"), -1)
    away = [np.linalg.norm(z_y_x[..., ::-1] - np.array(center), axis=-1) - radius for center, radius, _ in balls]
    density = sum(value * (distance < 0) for distance, (*_, value) in zip(away, balls))
    from_axis = np.linalg.norm(z_y_x[..., -2:] - np.array(shape[-2:]) / 2, axis=-1)
    return density, np.all(np.abs(away) > margin, 0) & (from_axis < 27)


def test_disks_and_balls_of_known_integrals():
    """The density away from edges, over a half and a whole turn, by fine and by magnified detectors.

    A pixel measures the mean of eight rays; a window damps the ripples that are left around sharp edges.
    """
    disks = ((30.0, 26.0), 17.0, 1.0), ((36.0, 22.0), 6.0, -0.5), ((22.0, 31.0), 4.0, 0.7)
    balls = tuple(((*center, 9.0 + k), radius / 2, value) for k, (center, radius, value) in enumerate(disks[:2]))
    near, far = ({"source_distance": n, "detector_distance": n / 2} for n in (150.0, 400.0))
    cases = (
        ((56, 60), (64,), turns(96, 1), {}, disks),
        ((56, 60), (128,), turns(150) + 0.1, {"pixel_size": 0.5}, disks),
        ((56, 60), (80,), turns(150), {"pixel_size": 1.5, **near}, disks),
        ((20, 56, 60), (24, 80), turns(150), {"pixel_size": 1.5, **far}, balls),
    )
    calls = []
    for shape, detector, angles, how, bodies in cases:
        beam = jt.rays.cone_beam if "source_distance" in how else jt.rays.parallel_beam
        start, end = (np.float64(a) for a in beam(shape, angles, detector, **how))
        views = 0
        for share in (np.arange(8) - 3.5) / 8 * how.get("pixel_size", 1):
            across = np.stack([np.cos(angles), np.sin(angles), 0 * angles], -1)[:, : len(shape)] * share
            across = across.reshape(len(angles), *[1] * len(detector), -1)
            views = views + through_balls((start + across * ("source_distance" not in how), end + across), bodies) / 8
        calls.append((reconstructed(shape, filter="hann", **how), views, angles))
    for (shape, *_, how, bodies), found in zip(cases, computed(*calls)):
        with named(shape, *how.items()):
            density, smooth = of_balls(shape, bodies, 3.0)
            assert ((density > 0) & smooth).sum() > 200
            assert_close("reconstructed density", found[smooth, 0], density[smooth], 1)
            assert_close("reconstructed mean", found[smooth, 0].mean(), density[smooth].mean(), 1)


def test_a_reconstruction_has_the_projections_that_it_was_made_of():
    """Of a smooth image, along the rays of the same numbers."""
    y, x = np.mgrid[:33, :33] - 16
    blob = lambda x0, y0: np.exp(-((x - x0) ** 2 + (y - y0) ** 2) / (2 * 3.5**2))
    image, angles = np.float32(blob(3, -2) + 0.5 * blob(-3, 4))[..., None], turns(96)
    calls = []
    for how in ({}, {"source_distance": 80.0, "detector_distance": 40.0, "pixel_size": 1.5}):
        beam = jt.rays.cone_beam if how else jt.rays.parallel_beam

        def run(image, beam=beam, how=how):
            project = lambda image: jt.rays.line_integral(image, *beam((33, 33), angles, (41,), **how), step=0.25)
            views = project(image)
            return views, project(jt.rays.filtered_backprojection(views, (33, 33), angles, **how))

        calls.append((run, image))
    for views, again in computed(*calls):
        assert_close("projected again", again, views, views.max())


# Derivatives


def test_the_adjoint_is_exact():
    """The dot product test, and no derivative in the projections of a second order."""
    cases = ((8, 9), (12,), {}), ((8, 9), (12,), CONE), ((4, 5, 6), (5, 9), CONE)
    angles, calls = turns(7), []
    for shape, detector, how in cases:

        def both(views, texels, shape=shape, how=how):
            found, pull = jax.vjp(lambda views: reconstructed(shape, **how)(views, angles), views)
            return found, *pull(texels)

        calls.append((both, normal(7, *detector, 2), normal(*shape, 2)))
    for case, (_, views, texels), (found, back) in zip(cases, calls, computed(*calls)):
        with named(*case):
            products = np.float64(found) * texels
            assert_close("sum", np.vdot(np.float64(back), views), products.sum(), np.abs(products).sum())


def test_derivatives(x64):
    """In the projections, the angles, both distances and the size of pixels; of a fan and of a cone."""
    angles = np.float64([0.3, 1.7, 4.1])
    lengths = {name: np.float64(value) for name, value in CONE.items()}
    for shape, detector in (((3, 4), (7,)), ((2, 3, 3), (5, 6))):

        def run(views, angles, lengths, shape=shape):
            return jt.rays.filtered_backprojection(views, shape, angles, filter="hann", **lengths)

        assert_derivatives(run, normal(3, *detector, 1, dtype=np.float64), angles, lengths)


def test_no_array_of_texels_and_views():
    """Not even of half a byte for each; with gradients, too, but for those in the scanner on a GPU."""
    views, many = normal(2**11, 72, 1), turns(2**11)
    loss = lambda views, angles: (reconstructed((128, 128), **CONE)(views, angles) ** 2).sum()
    wrt = (0,) if jax.default_backend() == "gpu" else (0, 1)
    compiled = jax.jit(jax.value_and_grad(loss, wrt)).lower(views, many).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 128 * 128 * 2**11 / 2


# Batches, dtypes, places


def test_batches():
    """Of projections, and of angles and distances, against one after the other."""
    views, angles = normal(3, 5, 9, 2), turns(5) + np.float32([[0.0], [0.1], [0.2]])
    sources = np.float32([30, 32, 40])

    def run(views, angles, source):
        return jt.rays.filtered_backprojection(views, (6, 7), angles, **CONE | {"source_distance": source})

    both, one, by_one = computed(
        (jax.vmap(run), views, angles, sources),
        (lambda *args: jax.vmap(run, (0, None, None))(*args), views, angles[1], sources[1]),
        (lambda *args: jax.lax.map(lambda some: run(*some), args), views, angles, sources),
    )
    assert_close("reordered", both, by_one, 8)
    assert_close("reordered", one[1], by_one[1], 8)


def test_dtypes(x64):
    """The result has that of the projections; integers become float32, and float64 elsewhere computes in float64."""
    views, angles = np.round(20 * normal(5, 9, 1)), turns(5)
    run = reconstructed((6, 7), filter="cosine")
    given = (
        *(views.astype(dtype) for dtype in (np.float32, np.float64, np.int16, jnp.bfloat16)),
        (views + 2j * views).astype(np.complex64),
    )
    single, double, of_codes, narrow, with_parts = computed(*((run, a, angles) for a in given))
    assert [a.dtype for a in (single, double, of_codes, narrow, with_parts)] == [
        *(np.float32, np.float64, np.float32, jnp.bfloat16, np.complex64)
    ]
    expected = in_numpy(views[:, None], (1, 6, 7), angles, "cosine")[0]
    assert_close("float64", double, expected, 100)
    assert_close("bfloat16", narrow, expected, np.abs(expected).max())
    for found in (single, of_codes, with_parts.real, with_parts.imag / 2):
        assert_close("float32", found, expected, 100)


def test_texels_at_and_behind_the_source():
    """They are in no view that looks away from them, and nothing becomes NaN."""
    views = np.ones((1, 9, 1), np.float32)
    how = {"detector_distance": 5.0, "filter": None}
    run = lambda source: jt.rays.filtered_backprojection(
        views, (6, 5), np.zeros(1, np.float32), source_distance=source, **how
    )[..., 0]
    found, slope = computed((run, np.float32(0.5)), (jax.jacfwd(run), np.float32(0.5)))
    assert not found[:3].any()
    assert found[3:, 2].all()
    assert np.isfinite(slope).all()
