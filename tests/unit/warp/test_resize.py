"""Resizes: filters as wide as the step, beside those of OpenCV and Pillow; edges, dtypes and derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from jaxtex import warp
from jaxtex._engine.compute.filters import ScaledFilter
from jaxtex._engine.forms import cpu
from jaxtex._engine.rules.filters import in_order, scale_p
from jaxtex._tables.address_rules import ADDRESS_RULES
from jaxtex._tables.filter_kernels import POINT
from tests.support import recordings
from tests.support.arrays import normal
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import TOLERANCES, assert_close, assert_exact, named

recorded = functools.partial(recordings.arrays, "resizes")

image = functools.partial(normal, seed=0)


def test_recorded_peers():
    """They weigh nothing outside the image."""

    def resized(texels, name):
        _, filter, size = name.split("/")
        edges = {} if filter == "area" else {"edges": "renormalize"}
        return warp.resize(texels[..., None], tuple(map(int, size.split("x"))), filter_mode=filter, **edges)[..., 0]

    texels = recorded()["image"]
    run = jax.jit(lambda texels: {name: resized(texels, name) for name in recorded() if "/" in name})
    for name, found in run(texels).items():
        with named(name):
            assert_close("peer", found, recorded()[name], 2 * np.abs(texels).max())


PROFILES = {
    "linear": (1, lambda x: 1 - x),
    "cubic": (2, lambda x: np.where(x < 1, 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2)),
    "mitchell": (2, lambda x: np.where(x < 1, 7 * x**3 - 12 * x**2 + 16 / 3, 7 / 3 * (2 - x) ** 3 - 2 * (2 - x) ** 2)),
    "bspline": (2, lambda x: np.where(x < 1, 4 - 6 * x**2 + 3 * x**3, (2 - x) ** 3)),
    "lanczos2": (2, lambda x: np.sinc(x) * np.sinc(x / 2)),
    "lanczos3": (3, lambda x: np.sinc(x) * np.sinc(x / 3)),
    "gaussian": (2, lambda x: np.exp(-2 * x**2)),
}

PADS = {"clamp": "edge", "wrap": "wrap", "mirror": "symmetric", "reflect": "reflect", "border": "constant"}


def by_definition(row, count, filter, address):
    """A row resized: the texels that the filter reaches, its ends included, times the filter at their distances."""
    (reach, profile), step = PROFILES[filter], len(row) / count
    continued, first = np.pad(row, 4 * len(row), PADS[address]), -4 * len(row)
    centers = (np.arange(count) + 0.5) * step
    distances = abs(centers[:, None] - np.arange(first, first + len(continued)) - 0.5) / max(step, 1)
    within = distances <= reach * (1 + TOLERANCES["float64"])
    weights = np.where(within, profile(np.where(within, distances, 0)), 0)
    return (weights / weights.sum(1, keepdims=True)) @ continued


def test_filters_by_their_definition(x64):
    """In float64, of many sizes: where samples are a whole number of texels apart, taps lie at the ends of filters."""
    more = {(31, 7): "mirror", (18, 8): "reflect", (5, 1): "mirror", (16, 4): "wrap", (11, 5): "border"}
    rows = {n: image(n).astype(np.float64) for n in (5, 11, 12, 16, 18, 31)}
    cases = [(filter, 12, 3, "clamp") for filter in PROFILES]
    cases += [("lanczos3", *size, address) for size, address in more.items()] + [("cubic", 5, 8, "reflect")]
    volume = image(7, 5, 4).astype(np.float64)

    @jax.jit
    def run(rows, volume):
        found = {
            (filter, n, count, address): warp.resize(
                rows[n][None, :, None], (1, count), filter_mode=filter, address_mode=address
            )
            for filter, n, count, address in cases
        }
        return found, warp.resize(volume[..., None], (3, 5, 9), filter_mode="cubic")[..., 0]

    found, of_volume = jax.device_get(run(rows, volume))
    for name, row in found.items():
        filter, n, count, address = name
        with named(name):
            expected = by_definition(rows[n], count, filter, address)
            assert_close("float64", row[0, :, 0], expected, np.abs(rows[n]).max())
    expected = np.apply_along_axis(by_definition, 0, volume, 3, "cubic", "clamp")
    expected = np.apply_along_axis(by_definition, 2, expected, 9, "cubic", "clamp")
    assert_close("float64", of_volume, expected, 2 * np.abs(volume).max())


def test_along_an_axis_that_keeps_its_size_nothing_spreads():
    """Images, batches and volumes that grow, shrink or do neither along the other axes; and the gradient."""
    texels = image(2, 6, 7, 5, 3)
    for k, special in enumerate((np.nan, np.inf, -np.inf)):
        texels[0, 2, 3, 1, k] = special
    calls = [(filter, size, {}) for filter in ("area", "lanczos3") for size in ((7, 9), (6, 3, 8))]
    calls += [("point", (7, 9), {}), ("lanczos3", (4, 7, 5), {"antialias": False})]
    calls += [("cubic", (6, 9, 5), {"sampler": jt.Sampler(limit="taps")})]

    @jax.jit
    def run(texels, finite):
        gradient = lambda filter: jax.grad(lambda a: warp.resize(a, (6, 5), filter_mode=filter).sum())(finite)
        equal = [warp.resize(finite, finite.shape[:2], filter_mode=f) for f in ("lanczos3", "area")]
        found = [warp.resize(texels, size, filter_mode=filter, **options) for filter, size, options in calls]
        return found, [gradient(filter) for filter in ("lanczos3", "area", "point")], equal

    found, gradients, equal = jax.device_get(run(texels, texels[0, :, 0]))
    for (filter, size, options), result in zip(calls, found, strict=True):
        kept = [axis for axis, (n, m) in enumerate(zip(size[::-1], texels.shape[-2::-1])) if n == m]
        for axis in kept:
            with named((filter, size, *options, axis)):
                assert set(np.argwhere(~np.isfinite(result))[:, -2 - axis]) == {(1, 3, 2)[axis]}
    for gradient in gradients:
        assert_exact(gradient, np.ones_like(texels[0, :, 0]))
    for same in equal:
        assert_exact(same, texels[0, :, 0])


def test_areas_poles_and_borders():
    """An area is the mean of what it covers; over a pole an image goes on across, beside it as it wraps."""
    row, texels, globe = np.float32([[[3.0], [6.0], [9.0]]]), image(7, 5, 2), image(8, 12, 1)
    hot = np.where(np.arange(40) == 17, np.inf, 0).astype(np.float32)[:, None, None]
    across = np.roll(globe, 6, 1)[::-1]

    @jax.jit
    def run(row, texels, globe, continued, hot):
        pixel = warp.resize(texels[:1, :1], (3, 2), filter_mode="area")
        return {
            "shrunk": (warp.resize(row, (1, 2), filter_mode="area")[0, :, 0], [4, 8]),
            "grown": (warp.resize(row[:, :2] - 3, (1, 3), filter_mode="box")[0, :, 0] * 2, [0, 3, 6]),
            "mean": (warp.resize(texels, (1, 1), filter_mode="area")[0, 0], texels.mean((0, 1))),
            "sphere": (
                warp.resize(globe, (4, 6), address_mode="sphere"),
                warp.resize(continued, (12, 6), address_mode=("wrap", "clamp"))[4:8],
            ),
            "beside": [warp.resize(globe, (8, 20), address_mode=mode) for mode in ("sphere", "wrap")],
            "pixel": (pixel, jnp.broadcast_to(texels[:1, :1], pixel.shape)),
            "border": (warp.resize(globe, (8, 12), address_mode="border", border_color=0.3), globe),
        }, warp.resize(hot, (9, 1))[:, 0, 0]

    found, hot = jax.device_get(run(row, texels, globe, np.concatenate([across, globe, across]), hot))
    for name, (actual, expected) in found.items():
        with named(name):
            assert_close("float32", actual, np.asarray(expected), 4)
    # An infinite pixel stays infinite.
    assert not np.isnan(hot).any()
    assert np.isinf(hot).sum() == 2


def test_numbers_of_other_dtypes():
    """Summed in float32 and rounded once, half to even; fractions of codes; batches, of `vmap` too."""
    dtypes = ("uint8", "uint32", "bfloat16", "bool")
    texels = (100 * np.abs(image(2, 40, 21, 2))).clip(0, 255)
    given = {dtype: texels.astype(jnp.dtype(dtype)) for dtype in dtypes}
    fractions = {"read_mode": "normalized_float", "srgb": True}

    @jax.jit
    def run(given):
        resize = functools.partial(warp.resize, output_shape=(9, 13), filter_mode="cubic")
        codes = given["uint8"][0]
        y, x = (c + np.float32(0.5) for c in np.indices(codes.shape[:2], np.float32))
        plain = jt.Sampler(filter_mode="point", normalized_coords=False, **fractions)
        decoded = jt.sample(jt.texture2d(codes), (x, y), plain)
        of_codes = warp.resize(codes, (4, 4), jt.Sampler(**fractions)), warp.resize(decoded, (4, 4))
        found = {dtype: (resize(a), resize(a.astype(jnp.float32))) for dtype, a in given.items()}
        return found, of_codes, (jax.vmap(resize)(given["uint8"]), resize(given["uint8"][1]))

    found, of_codes, (mapped, one) = jax.device_get(run(given))
    for dtype, (rounded, exact) in found.items():
        info = jnp.iinfo(given[dtype].dtype) if jnp.issubdtype(given[dtype].dtype, jnp.integer) else None
        expected = exact if info is None else np.rint(exact).clip(info.min, info.max)
        result = np.dtype(np.float32) if dtype == "bool" else given[dtype].dtype
        with named(dtype):
            assert_exact(rounded, expected.astype(result), result)
    assert_close("float32", *of_codes, 1)
    assert_exact(mapped, found["uint8"][0])
    assert_exact(one, found["uint8"][0][1])
    shape_of = lambda texels, **more: jax.eval_shape(lambda: warp.resize(texels, (9, 13), **more))
    assert shape_of(given["uint8"], dtype=np.float32).dtype == np.float32
    assert shape_of(texels[:0]).shape == (0, 9, 13, 2)


def test_resizes_have_gradients(x64):
    """Of steps above and below 1, by each kind of edge."""
    options = [{"filter_mode": "area"}, {"filter_mode": "lanczos3", "address_mode": "mirror"}]
    options += [{"filter_mode": "cubic", "edges": "renormalize"}, {"filter_mode": "linear", "address_mode": "border"}]
    read = lambda texels: jnp.stack([warp.resize(texels, (4, 9), **more) for more in options])
    assert_derivatives(lambda texels: jnp.sin(read(texels)), np.float64(image(16, 7, 2)))


def test_a_gradient_scatters_nothing():
    program = jax.jit(jax.grad(lambda texels: warp.resize(texels, (9, 11), filter_mode="lanczos3").sum()))
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


def test_forms_for_cpus_have_the_same_bits(monkeypatch):
    """Bands of a few rows or images, and images of half the size; the transpose of bands, too."""
    monkeypatch.setattr(cpu, "LEAST", 0)
    monkeypatch.setattr(cpu, "BAND", 2**12)
    given, options = {}, {}
    for name, (shape, samples, address, dtype) in BANDS.items():
        rule, step = ADDRESS_RULES[address], lambda axis, n, shape=shape: shape[axis] / n
        filters = tuple((axis, ScaledFilter(POINT, rule, shape[axis], n, step(axis, n))) for axis, n in samples.items())
        given[name] = (100 * image(*shape)).clip(0, 100).astype(dtype)
        options[name] = {"filters": filters, "transposed": False, "dtype": np.dtype(dtype)}
        assert cpu.supports_resized(jax.typeof(given[name]), **options[name])
    # Sums of the same numbers in the same order, without an instruction for a product and a sum.
    run = lambda how: jax.jit(lambda given: {name: how(given[name], **options[name]) for name in given})
    for transposed in (False, True):
        found, expected = (jax.device_get(run(how)(given)) for how in (scale_p.bind, in_order))
        for name in given:
            with named((name, transposed)):
                assert_exact(jax.tree.leaves(found[name])[0], jax.tree.leaves(expected[name])[0])
        given = {name: expected[name] for name in given if BANDS[name][-1] == "float32"}
        options = {name: {**options[name], "transposed": True} for name in given}


def test_means_of_the_largest_numbers_are_finite():
    """Weights that sum to one sum to a little more where they are rounded, and XLA may add before it multiplies."""
    texels = np.broadcast_to(np.float32([1, -1, 0.5]) * np.finfo(np.float32).max, (48, 50, 3))
    cases = [((12, 50), "area"), ((5, 11), "linear"), ((24, 25), "area"), ((60, 7), "gaussian")]

    @jax.jit
    def resized(texels):
        plain = [warp.resize(texels, shape, filter_mode=kind) for shape, kind in cases]
        return [*plain, warp.resize(texels, (7, 9), filter_mode="bspline", edges="renormalize")]

    sized = [warp.SizedResize(filter_mode=kind)(texels, shape) for shape, kind in cases[:2]]
    for found in (*resized(texels), *sized):
        assert_close("float32", found, np.broadcast_to(texels[:1, :1], found.shape), texels.max())
    outside = np.where(np.arange(48)[:, None, None] == 20, np.float32([np.inf, -np.inf, np.nan]), texels)
    for found in jax.device_get(resized(outside))[:-1]:
        ends = np.nanmin(found, (0, 1)), np.nanmax(found, (0, 1))
        assert_exact(ends[0][1], np.float32(-np.inf))
        assert_exact(ends[1][0], np.float32(np.inf))
        assert np.isnan(found[..., 2]).any()
