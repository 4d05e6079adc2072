"""The prefilter of B-splines: its coefficients interpolate in every address mode, and are those of SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.cuda.filters.convolution_kernel import convolve
from jaxtex._engine.rules.filters import convolved
from tests.support.arrays import normal
from tests.support.host_kernels import kernels_on_cpu
from tests.support.tolerances import assert_close, named

MODES = ("clamp", "border", "wrap", "mirror", "reflect")
BUILD = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}
# SciPy's names of the modes whose coefficients it extends as we do.
SCIPY = {"wrap": "grid-wrap", "mirror": "reflect", "reflect": "mirror"}
# Along an axis of an even or an odd order the largest coefficient of unit texels, rounded up.
GAIN = {2: 2, 3: 3, 4: 4.8, 5: 7.5}


def spline(order, mode="clamp", **options):
    return jt.Sampler(filter_mode="bspline", spline_order=order, address_mode=mode, normalized_coords=False, **options)


def centers(*sizes):
    return tuple(np.indices(sizes).astype(np.float32)[::-1] + 0.5)


def test_reads_of_coefficients_pass_through_the_texels():
    """Axes shorter than the filter, longer, and much longer; along one axis and along two; layers, volumes, codes."""
    rows = {f"{mode} 5 {n}": (normal(n, 2), mode, 5) for mode, n in zip(MODES, (170, 170, 2, 2, 170))}
    rows |= {"order 2": (normal(400, 2), "border", 2), "one texel": (normal(1, 2), "wrap", 2)}
    rows |= {"order 1": (normal(400, 2), "clamp", 1), "order 3": (normal(400, 2), "border", 3)}
    rows["a volume"] = normal(4, 6, 70, 1), ("wrap", "clamp", "mirror"), 2
    rows["codes"] = np.random.default_rng(0).integers(0, 256, (90, 3), np.uint8), "clamp", 4

    def through(texels, mode, order):
        codes = texels.dtype == np.uint8
        # Under other modes no tap reads the color, which has no part in the coefficients then.
        color = None if codes else np.float32([0.5, -2.0] if mode == "border" else [1e6, np.inf])[: texels.shape[-1]]
        of_codes = {"read_mode": "normalized_float"} if codes else {}
        texture = BUILD[texels.ndim - 1](texels, border_color=color)
        coefficients = jt.spline_filter(texture, spline(order, mode, **of_codes))
        return jt.sample(coefficients, centers(*texels.shape[:-1]), spline(order, mode))

    found = jax.jit(lambda given: {name: through(a, *rows[name][1:]) for name, a in given.items()})(
        {name: texels for name, (texels, *_) in rows.items()}
    )
    for name, values in found.items():
        texels, _, order = rows[name]
        texels = texels / 255 if name == "codes" else texels
        with named(name):
            assert_close("sum", values, texels, 4 * GAIN.get(order, 1) ** (texels.ndim - 1))


def test_equals_scipy():
    """Coefficients, and reads between texels and outside."""
    ndimage = pytest.importorskip("scipy.ndimage")
    rows, image = [("mirror", 5), ("wrap", 4), ("reflect", 2)], normal(60, 131)
    y, x = np.random.default_rng(1).uniform(-100, 250, (2, 500)).astype(np.float32)

    @jax.jit
    def run(image, x, y):
        filtered = {row: jt.spline_filter(jt.texture2d(image), spline(row[1], row[0])) for row in rows}
        return {row: (t.texels, jt.sample(t, (x, y), spline(row[1], row[0]))) for row, t in filtered.items()}

    for (mode, order), (coefficients, values) in run(image[..., None], x + 0.5, y + 0.5).items():
        expected = ndimage.spline_filter(image.astype(np.float64), order, mode=SCIPY[mode])
        assert_close("sum", coefficients[..., 0], expected, 4 * GAIN[order] ** 2)
        expected = ndimage.map_coordinates(image.astype(np.float64), [y, x], order=order, mode=SCIPY[mode])
        # Positions are rounded to float32: to 2^-17 of a texel at 250.
        assert_close("spline", values[..., 0], expected, 4 * GAIN[order] ** 2)


def test_gradients_are_the_transpose():
    texels, cotangent, color = normal(130, 6, 2), normal(6, 130, 2).reshape(130, 6, 2), np.float32([0.5, -2.0])
    tangents = normal(130, 6, 2)[::-1], np.float32([1.0, 2.0])

    @jax.jit
    def derivatives(primals, tangents, cotangent):
        found = {}
        for mode in ("border", "wrap", "sphere"):
            filtered = lambda t, c, m=mode: jt.spline_filter(jt.texture2d(t, border_color=c), spline(4, m)).texels
            moved = filtered(*(a + b for a, b in zip(primals, tangents)))
            found[mode] = *jax.jvp(filtered, primals, tangents), jax.vjp(filtered, *primals)[1](cotangent), moved
        return found

    dot = lambda a, b: sum(float(np.vdot(x, y)) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b)))
    for out, pushed, pulled, moved in derivatives((texels, color), tangents, cotangent).values():
        assert_close("long sum", dot(cotangent, pushed), dot(pulled, tangents), np.abs(cotangent).sum() * GAIN[4] ** 2)
        # Linear: the difference of two calls is the tangent.
        assert_close("sum", np.asarray(moved) - np.asarray(out), pushed, 16 * GAIN[4] ** 2)


def test_kernels_convolve_as_arrays_do():
    shapes = ((50, 1), (2, 45, 40))
    cases = [
        (k, {"weights": (1.5, -0.5, 0.25, 0.125), "axis": axis, "full": full})
        for k, shape in enumerate(shapes)
        for full in (False, True)
        for axis, size in enumerate(shape)
        if full or size > 6
    ]
    run = lambda function: jax.jit(lambda arrays: [function(arrays[k], **params) for k, params in cases])
    arrays = [normal(*shape) for shape in shapes]
    with kernels_on_cpu():
        found = run(convolve)(arrays)
    for params, a, b in zip(cases, found, run(convolved)(arrays), strict=True):
        with named(params):
            assert_close("sum", a, b, 4)


def test_layers_and_batches_are_filtered_one_by_one():
    images = normal(3, 20, 90, 1)
    one = lambda image: jt.spline_filter(jt.texture2d(image), spline(4)).texels

    @jax.jit
    def run(images):
        layers = jt.spline_filter(jt.texture2d_layered(images), spline(4)).texels
        return jax.vmap(one)(images), layers, jnp.stack([one(image) for image in images])

    batch, layers, alone = run(images)
    assert_close("reordered", batch, alone, 4 * GAIN[4] ** 2)
    assert_close("reordered", layers, alone, 4 * GAIN[4] ** 2)
