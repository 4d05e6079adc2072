"""The prefilter of B-splines: its coefficients interpolate in every address mode, and are those of SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.cuda.filters.convolution_kernel import convolve
from jaxtex._engine.rules.filters import convolved
from tests.support.host_compiler import RUN_HERE
from tests.support.tolerances import assert_close

MODES = ("clamp", "border", "wrap", "mirror", "reflect")
BUILD = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}
# SciPy's names of the modes whose coefficients it extends as we do.
SCIPY = {"wrap": "grid-wrap", "mirror": "reflect", "reflect": "mirror"}
# Along an axis of an even or an odd order the largest coefficient of unit texels, rounded up.
GAIN = {2: 2, 3: 3, 4: 4.8, 5: 7.5}


def spline(order, mode="clamp", **options):
    return jt.Sampler(filter_mode="bspline", spline_order=order, address_mode=mode, normalized_coords=False, **options)


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def centers(*sizes):
    return tuple(np.indices(sizes).astype(np.float32)[::-1] + 0.5)


@pytest.mark.parametrize(
    ("mode", "order"), [*((mode, order) for mode in MODES for order in (2, 5)), ("clamp", 1), ("border", 3)]
)
def test_a_read_of_coefficients_passes_through_the_texels(mode, order):
    """Axes shorter than the filter, longer, and much longer; along one axis and along two."""
    sampler = spline(order, mode)
    for sizes in ((2,), (5,), (7, 170)) if order == 5 else ((1,), (400,)):
        texels = normal(*sizes, 2)
        # Under other modes no tap reads the color, which has no part in the coefficients then.
        color = np.float32([0.5, -2.0] if mode == "border" else [1e6, np.inf])
        coefficients = jt.spline_filter(BUILD[len(sizes)](texels, border_color=color), sampler)
        values = jt.sample(coefficients, centers(*sizes), sampler)
        assert_close("sum", values, texels, 4 * GAIN.get(order, 1) ** len(sizes))


@pytest.mark.parametrize("order", [4])
def test_of_volumes_layers_and_integers(order):
    sampler = spline(order, ("wrap", "clamp", "mirror"))
    texels = normal(4, 6, 70, 1)
    values = jt.sample(jt.spline_filter(jt.texture3d(texels), sampler), centers(4, 6, 70), sampler)
    assert_close("sum", values, texels, 4 * GAIN[order] ** 3)
    layers = jt.spline_filter(jt.texture2d_layered(texels), spline(order))
    one = jt.spline_filter(jt.texture2d(texels[2]), spline(order))
    assert_close("reordered", layers.texels[2], one.texels, 4 * GAIN[order] ** 2)
    codes = np.random.default_rng(0).integers(0, 256, (90, 3), np.uint8)
    of_codes = jt.spline_filter(jt.texture1d(codes), spline(order, read_mode="normalized_float"))
    values = jt.sample(of_codes, centers(90), spline(order))
    assert_close("sum", values, codes / 255, 4 * GAIN[order])


@pytest.mark.parametrize(
    ("mode", "order"), [*(("mirror", order) for order in range(2, 6)), ("wrap", 5), ("reflect", 4)]
)
def test_equals_scipy(mode, order):
    """Coefficients, and reads between texels and outside."""
    ndimage = pytest.importorskip("scipy.ndimage")
    image = normal(60, 131)
    coefficients = jt.spline_filter(jt.texture2d(image[..., None]), spline(order, mode))
    expected = ndimage.spline_filter(image.astype(np.float64), order, mode=SCIPY[mode])
    assert_close("sum", coefficients.texels[..., 0], expected, 4 * GAIN[order] ** 2)
    y, x = np.random.default_rng(1).uniform(-100, 250, (2, 500)).astype(np.float32)
    values = jt.sample(coefficients, (x + 0.5, y + 0.5), spline(order, mode))[..., 0]
    expected = ndimage.map_coordinates(image.astype(np.float64), [y, x], order=order, mode=SCIPY[mode])
    # Positions are rounded to float32: to 2^-17 of a texel at 250.
    assert_close("spline", values, expected, 4 * GAIN[order] ** 2)


@pytest.mark.parametrize("order", [2, 5])
def test_of_float64(order, x64):
    texels = np.random.default_rng(0).normal(size=(600, 1))
    coefficients = jt.spline_filter(jt.texture1d(texels), spline(order))
    assert coefficients.dtype == np.float64
    values = jt.sample(coefficients, (np.arange(600) + 0.5,), spline(order))
    assert_close("float64", values, texels, 64 * GAIN[order])


@pytest.mark.parametrize("mode", ["clamp", "border", "wrap"])
def test_gradients_are_the_transpose(mode):
    texels, cotangent, color = normal(130, 5, 2), normal(5, 130, 2).reshape(130, 5, 2), np.float32([0.5, -2.0])
    filtered = lambda t, c: jt.spline_filter(jt.texture2d(t, border_color=c), spline(4, mode)).texels
    tangents = normal(130, 5, 2)[::-1], np.float32([1.0, 2.0])

    @jax.jit
    def derivatives(*primals):
        return jax.jvp(filtered, primals, tangents), jax.vjp(filtered, *primals)[1](cotangent)

    (out, pushed), pulled = derivatives(texels, color)
    dot = lambda a, b: sum(float(np.vdot(x, y)) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b)))
    assert_close("long sum", dot(cotangent, pushed), dot(pulled, tangents), np.abs(cotangent).sum() * GAIN[4] ** 2)
    # Linear: the difference of two calls is the tangent.
    moved = filtered(*(a + b for a, b in zip((texels, color), tangents)))
    assert_close("sum", np.asarray(moved) - np.asarray(out), pushed, 16 * GAIN[4] ** 2)


@pytest.mark.parametrize("shape", [(50, 1), (3, 40, 5), (2, 45, 40)])
@pytest.mark.parametrize("full", [False, True])
def test_kernels_convolve_as_arrays_do(shape, full):
    values, weights = jnp.asarray(normal(*shape)), (1.5, -0.5, 0.25, 0.125)
    for axis, size in enumerate(shape):
        if full or size > 6:
            params = {"weights": weights, "axis": axis, "full": full}
            with RUN_HERE:
                found = convolve(values, **params)
            assert_close("sum", found, convolved(values, **params), 4)


def test_under_vmap_and_jit():
    images = normal(3, 20, 90, 1)
    run = jax.jit(jax.vmap(lambda image: jt.spline_filter(jt.texture2d(image), spline(3)).texels))
    for found, image in zip(run(images), images):
        alone = jt.spline_filter(jt.texture2d(image), spline(3)).texels
        assert_close("reordered", found, alone, 64)


@pytest.mark.parametrize(
    ("texture", "sampler", "words"),
    [
        (lambda: jt.texture1d(normal(4, 1)), jt.Sampler(), "filter_mode='linear'.*expected 'bspline'"),
        (lambda: jt.cubemap(normal(6, 4, 4, 1)), spline(3), "texture is a cubemap, expected one level"),
        (lambda: jt.build_mipmaps(jt.texture1d(normal(4, 1))), spline(3), "texture is a chain of 3 levels"),
    ],
)
def test_errors_are_sentences(texture, sampler, words):
    with pytest.raises(ValueError, match=words):
        jt.spline_filter(texture(), sampler)
