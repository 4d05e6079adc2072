"""Resizes: filters as wide as the step, beside those of OpenCV, Pillow and JAX; edges, dtypes and derivatives."""

import functools
import io
import lzma
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import warp
from jaxtex._engine.compute.filters import ScaledFilter
from jaxtex._engine.forms import cpu_resize
from jaxtex._engine.rules.filters import in_order, scale_p
from jaxtex._tables.address_rules import ADDRESS_RULES
from jaxtex._tables.filter_kernels import LINEAR, POINT, keys_cubic
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import TOLERANCES, assert_close, assert_exact

REACHES = {"linear": 1, "cubic": 2, "lanczos3": 3}
INTERPOLATING = ("linear", "cubic", "lanczos2", "lanczos3")
SMOOTHING = ("bspline", "mitchell", "gaussian")


@functools.cache
def recorded():
    path = Path(__file__).parents[2] / "data" / "resizes.npz.xz"
    with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as arrays:
        return dict(arrays)


def image(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def inner(sizes, output, reach):
    """The pixels of the output whose filter lies within the image."""

    def along(n, m):
        step = n / m
        margin = reach * max(step, 1) + 1
        center = (np.arange(m) + 0.5) * step
        return (center > margin) & (center < n - margin)

    return np.ix_(*(along(n, m) for n, m in zip(sizes, output)))


@pytest.mark.parametrize("name", [name for name in recorded() if "/" in name])
def test_recorded_peers(name):
    """They weigh nothing outside the image; by default, that is the pixel at the edge."""
    _, filter, size = name.split("/")
    texels, output = recorded()["image"], tuple(map(int, size.split("x")))
    scale, resize = 2 * np.abs(texels).max(), functools.partial(warp.resize, texels[..., None], output, filter=filter)
    if filter == "area":
        assert_close("peer", resize()[..., 0], recorded()[name], scale)
        return
    renormalized = np.asarray(resize(edges="renormalize"))[..., 0]
    assert_close("peer", renormalized, recorded()[name], scale)
    within, extended = inner(texels.shape, output, REACHES[filter]), np.asarray(resize())[..., 0]
    assert_close("float32", extended[within], renormalized[within], scale)
    assert np.abs(extended - renormalized).max() > 0.01 * scale


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("filter", REACHES)
def test_filters_of_jax(filter, antialias):
    """Volumes that shrink along one axis and grow along another, up to the edges."""
    texels, output = image(70, 9, 24, 2), (16, 9, 33)
    found = warp.resize(texels, output, filter=filter, antialias=antialias, edges="renormalize")
    run = jax.jit(lambda texels: jax.image.resize(texels, (*output, 2), filter, antialias=antialias))
    assert_close("peer gradient", found, run(texels), 2 * np.abs(texels).max())


PROFILES = {
    "linear": (1, lambda x: 1 - x),
    "cubic": (2, lambda x: np.where(x < 1, 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2)),
    "mitchell": (2, lambda x: np.where(x < 1, 7 * x**3 - 12 * x**2 + 16 / 3, 7 / 3 * (2 - x) ** 3 - 2 * (2 - x) ** 2)),
    "bspline": (2, lambda x: np.where(x < 1, 4 - 6 * x**2 + 3 * x**3, (2 - x) ** 3)),
    "lanczos2": (2, lambda x: np.sinc(x) * np.sinc(x / 2)),
    "lanczos3": (3, lambda x: np.sinc(x) * np.sinc(x / 3)),
    "gaussian": (2, lambda x: np.exp(-2 * x**2)),
}


def by_definition(row, count, filter, address):
    """A row resized: the texels that the filter reaches, its ends included, times the filter at their distances."""
    (reach, profile), step = PROFILES[filter], len(row) / count
    continued, first = np.pad(row, 4 * len(row), PADS[address]), -4 * len(row)
    centers = (np.arange(count) + 0.5) * step
    distances = abs(centers[:, None] - np.arange(first, first + len(continued)) - 0.5) / step
    within = distances <= reach * (1 + TOLERANCES["float64"])
    weights = np.where(within, profile(np.where(within, distances, 0)), 0)
    return (weights / weights.sum(1, keepdims=True)) @ continued


@pytest.mark.usefixtures("x64")
def test_widened_filters_by_their_definition():
    """In float64, of many sizes: where samples are a whole number of texels apart, taps lie at the ends of filters."""
    sizes = {(5, 1): "mirror", (12, 3): "clamp", (16, 4): "wrap", (31, 7): "mirror", (18, 8): "reflect"}
    rows = {n: image(n).astype(np.float64) for n, _ in sizes}

    @jax.jit
    def run(rows):
        return {
            (filter, n, count): warp.resize(rows[n][None, :, None], (1, count), filter=filter, address=address)
            for filter in PROFILES
            for (n, count), address in sizes.items()
        }

    for (filter, n, count), found in run(rows).items():
        expected = by_definition(rows[n], count, filter, sizes[n, count])
        assert_close("float64", found[0, :, 0], expected, np.abs(rows[n]).max())


@pytest.mark.parametrize("filter", [*INTERPOLATING, *SMOOTHING, "area"])
def test_constants_and_centers_stay(filter):
    """Weights sum to one, and are symmetric: a ramp stays a ramp where the filter lies within the image."""
    assert_close(
        "peer", warp.resize(np.full((9, 40, 1), 3.0, np.float32), (4, 50), filter=filter), np.full((4, 50, 1), 3.0), 3
    )
    ramp = np.broadcast_to(np.arange(120, dtype=np.float32)[:, None], (120, 2))[..., None]
    found = np.asarray(warp.resize(ramp, (20, 2), filter=filter))[4:-4, 0, 0]
    assert_close("peer", found, np.arange(20)[4:-4] * 6 + 2.5, 120)


@pytest.mark.parametrize("filter", ["linear", "cubic", "lanczos3", "area"])
def test_equal_sizes_change_nothing(filter):
    texels = image(7, 5, 3)
    assert_exact(warp.resize(texels, (7, 5), filter=filter), texels)
    rows = warp.resize(texels, (3, 5), filter=filter)
    assert_close("float32", rows[:, 2:3], warp.resize(texels[:, 2:3], (3, 1), filter=filter), np.abs(texels).max())


@pytest.mark.parametrize("filter", ["linear", "cubic", "lanczos3", "gaussian", "area", "point"])
def test_along_an_axis_that_keeps_its_size_nothing_spreads(filter):
    """Images, batches and volumes that grow, shrink or do neither along the other axes; and the gradient."""
    texels = image(2, 6, 7, 5, 3)
    for k, special in enumerate((np.nan, np.inf, -np.inf)):
        texels[0, 2, 3, 1, k] = special
    larger, others = ((6, 7, 5), (6, 9, 5), (7, 9)), ((4, 7, 5), (6, 3, 8))
    calls = [(size, {}) for size in larger + others]
    if filter != "area":
        calls += [(size, {"antialias": False}) for size in larger + others]
        calls += [(size, {"sampler": jt.Sampler(limit="taps")}) for size in larger]
    for size, options in calls:
        found = np.asarray(warp.resize(texels, size, filter=filter, **options))
        kept = [axis for axis, (n, m) in enumerate(zip(size[::-1], texels.shape[-2::-1])) if n == m]
        for axis in kept:
            places = np.argwhere(~np.isfinite(found))[:, -2 - axis]
            assert set(places) == {(1, 3, 2)[axis]}
    finite = texels[0, :, 0]
    assert_exact(jax.grad(lambda a: warp.resize(a, (6, 5), filter=filter).sum())(finite), np.ones_like(finite))


def test_an_axis_that_keeps_its_size_beside_the_poles_and_a_border():
    texels = image(8, 12, 1)
    for width in (6, 12, 20):
        found = warp.resize(texels, (8, width), address="sphere")
        assert_close("float32", found, warp.resize(texels, (8, width), address="wrap"), np.abs(texels).max())
    assert_exact(warp.resize(texels, (8, 12), address="border", border_color=0.3), texels)


def test_an_area_is_the_mean_of_what_it_covers():
    found = warp.resize(np.float32([[[3.0], [6.0], [9.0]]]), (1, 2), filter="area")
    assert_close("float32", found[0, :, 0], np.float32([4.0, 8.0]), 9)
    grown = warp.resize(np.float32([[[0.0], [6.0]]]), (1, 3), filter="box")
    assert_close("float32", grown[0, :, 0], np.float32([0.0, 3.0, 6.0]), 6)
    texels = image(7, 5, 2)
    assert_close("float32", warp.resize(texels, (1, 1), filter="area")[0, 0], texels.mean((0, 1)), np.abs(texels).max())


def test_images_of_one_pixel():
    texels = image(1, 1, 2)
    for filter in ("area", "linear"):
        for sizes in ((1, 1), (3, 2)):
            found = warp.resize(texels, sizes, filter=filter)
            assert_close("float32", found, np.broadcast_to(texels, (*sizes, 2)), np.abs(texels).max())
        row = warp.resize(np.broadcast_to(texels, (1, 9, 2)), (3, 4), filter=filter)
        assert_close("float32", row, np.broadcast_to(texels, (3, 4, 2)), np.abs(texels).max())


PADS = {"clamp": "edge", "wrap": "wrap", "mirror": "symmetric", "reflect": "reflect", "border": "constant"}


@pytest.mark.parametrize("address", PADS)
def test_what_lies_outside(address):
    """The same as of an image that is continued by hand."""
    texels, sizes = image(12, 10, 1), (3, 5)
    color = {"border_color": 2.0} if address == "border" else {}
    fill = {"constant_values": 2.0} if address == "border" else {}
    continued = np.pad(texels, ((24, 24), (10, 10), (0, 0)), PADS[address], **fill)
    found = warp.resize(texels, sizes, filter="cubic", address=address, **color)
    expected = np.asarray(warp.resize(continued, (15, 15), filter="cubic"))[6:9, 5:10]
    assert_close("float32", found, expected, 4 * np.abs(texels).max())


def test_a_sphere_goes_on_beyond_the_poles():
    texels = image(8, 12, 1)
    across = np.roll(texels, 6, 1)[::-1]
    continued = np.concatenate([across, texels, across])
    found = warp.resize(texels, (4, 6), address="sphere")
    expected = np.asarray(warp.resize(continued, (12, 6), address=("wrap", "clamp")))[4:8]
    assert_close("float32", found, expected, np.abs(texels).max())


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "float16", "bfloat16", "bool"])
def test_numbers_of_other_dtypes(dtype):
    """Summed in float32 and rounded once, half to even."""
    texels = (100 * np.abs(image(40, 21, 2))).clip(0, 255).astype(jnp.dtype(dtype))
    found = warp.resize(texels, (9, 13), filter="cubic")
    exact = np.asarray(warp.resize(np.float32(texels), (9, 13), filter="cubic"))
    info = jnp.iinfo(texels.dtype) if jnp.issubdtype(texels.dtype, jnp.integer) else None
    expected = exact if info is None else np.rint(exact).clip(info.min, info.max)
    result = np.dtype(np.float32) if dtype == "bool" else texels.dtype
    assert_exact(found, expected.astype(result), result)
    assert jax.eval_shape(lambda: warp.resize(texels, (9, 13), dtype=np.float32)).dtype == np.float32


def test_fractions_and_codes():
    codes = np.random.default_rng(0).integers(0, 255, (12, 9, 3)).astype(np.uint8)
    found = warp.resize(codes, (4, 4), jt.Sampler(read_mode="normalized_float", srgb=True))
    linear = jt.fetch(jt.texture2d(codes), (0, 0))  # the codes stay as they are
    assert linear.dtype == np.uint8
    decoded = jt.sample(
        jt.texture2d(codes),
        tuple(np.float32(c) + np.float32(0.5) for c in np.indices((12, 9))[::-1]),
        jt.Sampler(filter_mode="point", normalized_coords=False, read_mode="normalized_float", srgb=True),
    )
    assert_close("float32", found, warp.resize(decoded, (4, 4)), 1)


@pytest.mark.parametrize("filter", ["area", "lanczos3"])
def test_resizes_have_gradients(x64, filter):
    read = lambda texels: warp.resize(texels, (4, 9), filter=filter)
    assert_derivatives(lambda texels: jnp.sin(read(texels)), np.float64(image(16, 7, 2)))


@pytest.mark.parametrize("address", ["clamp", "border", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("kernel", [POINT, LINEAR, keys_cubic(-0.5)], ids=["area", "linear", "cubic"])
def test_the_transpose_of_a_filter(kernel, address):
    """Rows and columns of one matrix, of steps above and below 1."""
    for size, samples in ((23, 7), (7, 23), (5, 5), (1, 3), (90, 2)):
        renormalized = address == "border" and kernel.blends
        rule = ADDRESS_RULES[address]
        found = ScaledFilter(kernel, rule, size, samples, size / samples, renormalized=renormalized)
        matrices = []
        for transposed in (False, True):
            rows = found.rows(transposed)
            matrix = np.zeros((size, samples) if transposed else (samples, size))
            np.add.at(matrix, (np.arange(len(matrix))[:, None], rows.column), rows.weight)
            matrices.append(matrix)
        assert_close("float64", matrices[1].T, matrices[0], 1)
        if address != "border" or renormalized:
            assert_close("float64", matrices[0].sum(1), np.ones(samples), 1)


def test_a_gradient_scatters_nothing():
    program = jax.jit(jax.grad(lambda texels: warp.resize(texels, (9, 11), filter="lanczos3").sum()))
    assert "scatter" not in program.lower(image(40, 60, 3)).as_text()


BANDS = {
    "rows first": ((2, 90, 80, 3), {1: 40, 2: 30}, "clamp", "uint8"),
    "columns first": ((2, 90, 80, 1), {2: 20, 1: 60}, "mirror", "float32"),
    "small images": ((9, 8, 6, 2), {1: 3, 2: 2}, "wrap", "int16"),
    "a volume": ((20, 14, 24, 2), {0: 9, 1: 11, 2: 8}, "border", "float32"),
    "half": ((90, 70, 3), {0: 45, 1: 35}, "clamp", "uint8"),
    "half a row": ((9, 70, 1), {1: 35}, "clamp", "int16"),
    "half of floats": ((90, 70, 3), {0: 45, 1: 35}, "wrap", "float32"),
}


@pytest.mark.compiled
@pytest.mark.parametrize("name", BANDS)
def test_forms_for_cpus_have_the_same_bits(name, monkeypatch):
    """Bands of a few rows or images, and images of half the size; the transpose of bands, too."""
    shape, samples, address, dtype = BANDS[name]
    dtype = np.dtype(dtype)
    filters = tuple(
        (axis, ScaledFilter(POINT, ADDRESS_RULES[address], shape[axis], n, shape[axis] / n))
        for axis, n in samples.items()
    )
    monkeypatch.setattr(cpu_resize, "LEAST", 0)
    monkeypatch.setattr(cpu_resize, "BAND", 2**12)
    values = (100 * image(*shape)).clip(0, 100).astype(dtype)
    for transposed in (False, True)[: 1 + (dtype == np.float32)]:
        given = {"filters": filters, "transposed": transposed, "dtype": dtype}
        assert cpu_resize.supports_resized(jax.typeof(values), **given) or transposed
        found, expected = (jax.jit(functools.partial(run, **given))(values) for run in (scale_p.bind, in_order))
        assert_exact(found, expected)
        values = expected


def test_batches_jit_and_vmap():
    texels = image(2, 20, 14, 3)
    found = warp.resize(texels, (6, 5), filter="cubic")
    one = functools.partial(warp.resize, output_shape=(6, 5), filter="cubic")
    assert_close("float32", jax.jit(jax.vmap(one))(texels), found, np.abs(texels).max())
    assert_close("float32", one(texels[1]), found[1], np.abs(texels).max())
    assert jax.eval_shape(lambda: warp.resize(texels[:0], (6, 5))).shape == (0, 6, 5, 3)


def test_an_infinite_pixel_stays_infinite():
    texels = np.zeros((40, 1, 1), np.float32)
    texels[17] = np.inf
    found = np.asarray(warp.resize(texels, (9, 1)))[:, 0, 0]
    assert not np.isnan(found).any()
    assert np.isinf(found).sum() == 2


@pytest.mark.compiled
def test_means_of_the_largest_numbers_are_finite():
    """Weights that sum to one sum to a little more where they are rounded, and XLA may add before it multiplies."""
    texels = np.broadcast_to(np.float32([1, -1, 0.5]) * np.finfo(np.float32).max, (48, 50, 3))
    cases = [
        (shape, kind) for shape in ((12, 50), (5, 11), (24, 25), (60, 7)) for kind in ("area", "linear", "gaussian")
    ]

    @jax.jit
    def resized(texels):
        plain = [warp.resize(texels, shape, filter=kind) for shape, kind in cases]
        return [*plain, warp.resize(texels, (7, 9), filter="bspline", edges="renormalize")]

    sized = [warp.SizedResize(filter=kind)(texels, shape) for shape, kind in cases[:6]]
    for found in (*resized(texels), *sized):
        assert_close("float32", found, np.broadcast_to(texels[:1, :1], found.shape), texels.max())
    infinite = resized(np.where(np.arange(48)[:, None, None] == 20, np.float32([np.inf, -np.inf, np.nan]), texels))
    for found in infinite[:-1]:
        ends = np.nanmin(found, (0, 1)), np.nanmax(found, (0, 1))
        assert_exact(ends[0][1], np.float32(-np.inf))
        assert_exact(ends[1][0], np.float32(np.inf))
        assert np.isnan(found[..., 2]).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filter": "area", "antialias": False}, "resize: filter is 'area', the mean over the footprint"),
        ({"filter": "areas"}, "resize: filter is 'areas', expected one of 'point', 'linear'"),
        ({"filter": "area", "sampler": jt.Sampler(limit="taps")}, "resize: filter is 'area', the mean of many pixels"),
        ({"filter": "area", "sampler": jt.Sampler(filter_mode="cubic")}, "resize: filter is 'area', but sampler has"),
        ({"address": "sphere"}, "resize: the address mode is 'sphere'"),
        ({"edges": "clamp"}, "resize: edges is 'clamp', expected one of 'address', 'renormalize'"),
        ({"edges": "renormalize", "address": "wrap"}, "resize: edges is 'renormalize', which ignores pixels outside"),
        ({"edges": "renormalize", "sampler": jt.Sampler(address_mode="clamp")}, "but an address mode is given"),
        ({"edges": "renormalize", "filter": "area"}, "but the filter 'area' reads nothing outside; leave edges out"),
        ({"edges": "renormalize", "filter": "point"}, "but the filter 'point' reads nothing outside"),
        ({"edges": "renormalize", "border_color": 1.0}, "resize: border_color is given, but the address mode"),
        ({"edges": "renormalize", "sampler": jt.Sampler(limit="taps")}, "but sampler has limit='taps', which needs"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        warp.resize(image(8, 7, 1), (3, 3), **options)
