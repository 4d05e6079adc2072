"""`jaxtex.ndimage`: gradients, dtypes, transforms, kernels, and what is no matter of SciPy's."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import ndimage
from tests.support import compiling
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact, assert_sums_close


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# Gradients


def points(shape, n=6):
    """Indices well inside an array, and as many outside; none near an end, a whole or a half."""
    rng = np.random.default_rng(3)
    inside = [rng.integers(0, size - 1, n) for size in shape]
    outside = [rng.choice([-3, size + 1], n) for size in shape]
    return np.stack([np.concatenate(cells) + rng.uniform(0.1, 0.4, 2 * n) for cells in zip(inside, outside)])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["constant", "grid-constant", "wrap", "nearest"])
def test_gradients_of_reads(mode, x64):
    """With respect to the array, the indices and the value outside, to the second order."""
    array = normal(5, 6)
    read = lambda a, c, v: ndimage.map_coordinates(a, c, order=3, mode=mode, cval=v)
    assert_derivatives(read, array, points(array.shape), np.float64(0.7))


@pytest.mark.slow
def test_gradients_of_transforms(x64):
    """With respect to matrix and offset, a shift, a traced angle, and complex numbers."""
    image, matrix = normal(6, 5), np.eye(2) + 0.1 * normal(2, 2)
    affine = lambda a, m, o: ndimage.affine_transform(a, m, o, order=2, mode="mirror")
    assert_derivatives(affine, image, matrix, np.array([0.21, -0.37]))

    def moved(a, shift, angle):
        turned = ndimage.rotate(a, angle, axes=(0, 2), reshape=False, order=2, mode="grid-wrap")
        shifted = ndimage.shift(jax.lax.complex(turned, a), shift, order=3, mode="mirror")
        zoomed = ndimage.zoom(ndimage.spline_filter(shifted, 2), (1.5, 1, 1), order=2, mode="reflect", prefilter=False)
        return jnp.stack([zoomed.real, zoomed.imag])

    assert_derivatives(moved, normal(4, 3, 5), np.array([0.3, -0.4, 0.2]), np.float64(17.0))


def test_gradients_of_a_function_of_indices(x64):
    """With respect to what the function takes and closes over."""
    image = normal(5, 6)

    def bent(image, amplitude, period):
        def mapping(index, a, period):
            y, x = (i.astype(a.dtype) for i in index)
            return y * 0.7 + a * jnp.sin(x / period), x * 0.8 + 0.1 * a

        return ndimage.geometric_transform(image, mapping, (4, 7), mode="mirror", extra_arguments=(amplitude, period))

    assert_derivatives(bent, image, np.float64(0.31), np.float64(2.3))


# Dtypes


def test_dtypes_of_results():
    """That of the input or of `output`, complex where the input is; 64 bits only where JAX has them."""
    wide = normal(5)
    assert ndimage.shift(wide, 1).dtype == np.float32
    assert ndimage.spline_filter(wide).dtype == np.float32
    assert ndimage.spline_filter(wide.astype(np.complex64)).dtype == np.complex64
    assert ndimage.shift(np.arange(5), 1).dtype == np.int32
    assert ndimage.shift(wide.astype(np.float16), 1, output="f").dtype == np.float32
    assert ndimage.zoom(jnp.arange(5), 1, output=float).dtype == np.float32
    with jax.enable_x64(True):
        assert ndimage.spline_filter(wide.astype(np.float32)).dtype == np.float64
        assert ndimage.shift(wide.astype(np.float32), 1).dtype == np.float32
        assert ndimage.shift(wide.astype(np.complex64), 1, output=np.float64).dtype == np.complex128
        assert ndimage.shift(np.arange(5), 1).dtype == np.int64


def test_sums_have_the_precision_of_the_result(x64):
    array = normal(9).astype(np.float32)
    found = ndimage.shift(array, 0.3, output=np.float64)
    assert_exact(found, ndimage.shift(array.astype(np.float64), 0.3), np.float64)


@pytest.mark.parametrize("name", ["bool", "uint8", "int16", "uint32", "float16", "bfloat16"])
def test_whole_indices_return_elements(name):
    """Of order 0 the bits, and of splines the numbers that a dtype rounds to; outside the rounded `cval`."""
    array = jnp.asarray(np.random.default_rng(1).integers(0, 2 if name == "bool" else 100, (9, 7))).astype(name)
    expected = np.roll(np.asarray(array), 2, 0)
    expected[:2] = jnp.asarray(3.5 if "float" in name else 4).astype(name)
    for order in (0, 1, 3):
        found = ndimage.shift(array, (2, 0), order=order, cval=3.5)
        assert found.dtype == array.dtype
        if order == 0 or "float" not in name:
            assert_exact(found, expected)
        else:
            assert_close(name, found, expected, 128)


def test_integers_saturate():
    found = ndimage.map_coordinates(np.uint8([0, 255, 255, 0]), [[1.5, 0.5, 9.0]], order=1, cval=-2.6)
    assert found.tolist() == [255, 128, 0]
    read = lambda cval, dtype: int(ndimage.shift(np.int16([1]), 2, cval=cval, output=dtype)[0])
    assert [read(-2.5, "int8"), read(300, "int8"), read(2.5, "uint8"), read(1e10, "int32")] == [-3, 127, 3, 2**31 - 1]
    assert read(np.nan, "int32") == 0


@pytest.mark.parametrize("mode", ["constant", "grid-constant"])
def test_a_real_number_lies_outside_of_complex_ones(mode):
    found = ndimage.map_coordinates(np.complex64([1, 2j]), [np.float32([-5, 1, 9])], order=1, mode=mode, cval=2.0)
    np.testing.assert_array_equal(found, np.complex64([2, 2j, 2]))


def test_large_integers_of_order_0_keep_all_digits():
    array = np.array([2**31 - 1, -(2**31), 2**24 + 1], np.int32)
    assert_exact(ndimage.zoom(array, 2, order=0), array[[0, 0, 1, 1, 2, 2]])


@pytest.mark.usefixtures("x64")
def test_outside_is_the_number_to_the_last_bit():
    """Of the read of one sample, of a grid that is read along one axis after the other, and as a rounded integer."""
    array, at = normal(20, 30), [np.float64([-3, 40]), np.float64([2, 2])]
    for order, cval in itertools.product(range(6), (2.5, 0.1)):
        assert_exact(ndimage.map_coordinates(array, at, order=order, cval=cval), np.full(2, cval, array.dtype))
        shifted = ndimage.shift(np.float64(array), (19.5, 0.3), order=order, cval=cval)
        assert_exact(shifted[:19], np.full((19, 30), cval))
        rounded = ndimage.map_coordinates(np.uint8(array), at, order=order, cval=cval)
        assert rounded.tolist() == [round(cval + 0.25)] * 2


def test_a_zoom_copies_along_an_axis_that_keeps_its_size():
    array = np.float32(normal(5, 6, 4))
    array[2, 3, 1] = np.nan
    for order in (0, 1, 3):
        for factors in ((1, 2, 1), (1.05, 0.5, 1)):
            found = np.asarray(ndimage.zoom(array, factors, order=order))
            assert {(i, k) for i, _, k in np.argwhere(np.isnan(found))} <= {(2, 1)}
            line = ndimage.zoom(array[0, :, 0], factors[1], order=order)
            assert_close("float32", found[0, :, 0], line, 4)
    assert_exact(ndimage.zoom(array, (1, 1.05, 1), order=1), array)


# What SciPy leaves open


def test_not_a_number_and_infinity():
    """In mode constant they lie outside; elsewhere NaN acts as 0, and infinity ends at the nearest element."""
    array, at = np.float32([3, 5, 9]), [np.float32([np.nan, np.inf, -np.inf, 1e30])]
    assert ndimage.map_coordinates(array, at, order=1, cval=7).tolist() == [7, 7, 7, 7]
    assert ndimage.map_coordinates(array, at, order=1, mode="nearest").tolist() == [3, 9, 3, 9]
    for mode in ("wrap", "mirror", "reflect", "grid-wrap"):
        for order in (0, 1):
            found = ndimage.map_coordinates(array, at, order=order, mode=mode)
            assert_exact(found[0], array[0])
            assert np.isfinite(found).all()


def test_one_element_and_no_samples():
    for mode in ("reflect", "mirror", "wrap", "grid-wrap", "nearest"):
        found = ndimage.map_coordinates(np.float32([4]), [np.float32([-3.3, 0, 2.6])], mode=mode)
        assert_close("sum", found, [4, 4, 4], 4)
    assert ndimage.map_coordinates(normal(4, 5), np.zeros((2, 0))).shape == (0,)
    assert ndimage.zoom(normal(4, 5), 0.1).shape == (0, 0)


@pytest.mark.parametrize("mode", ["mirror", "nearest"])
def test_tap_and_fraction_agree(mode):
    """Where a matrix leads to whole indices up to rounding, as users compile it: XLA computes indices twice."""
    image, matrix = normal(40, 50).astype(np.float32), np.float32([[0.9, 0.2], [-0.2, 1.1]])
    transform = lambda a, m: ndimage.affine_transform(a, m, (1, -2), order=3, mode=mode)
    found = jax.jit(transform).lower(image, matrix).compile(compiler_options=compiling.by_default())(image, matrix)
    with jax.enable_x64(True):
        expected = transform(image.astype(np.float64), matrix.astype(np.float64))
    assert_close("spline", found, expected, 4)


# Transforms and kernels


def test_under_vmap_and_jit():
    """A batch of arrays, of indices, and of both."""
    arrays, indices = normal(3, 8, 9).astype(np.float32), points((8, 9)).astype(np.float32)
    batch = np.stack([indices, indices + 0.5, indices - 0.25])
    read = lambda a, c: ndimage.map_coordinates(a, c, cval=2)
    for dims, of in (((0, None), lambda k: (arrays[k], indices)), ((0, 0), lambda k: (arrays[k], batch[k]))):
        found = jax.jit(jax.vmap(read, dims))(arrays, indices if dims[1] is None else batch)
        assert_sums_close(found, [read(*of(k)) for k in range(3)])


def test_a_grid_of_lines_is_read_axis_by_axis():
    """Indices that depend on one axis each give the same as the whole grid, without reading every product of taps."""
    array = normal(12, 15).astype(np.float32)
    lines = np.linspace(-2, 14, 40, dtype=np.float32)[:, None], np.linspace(-1, 17, 30, dtype=np.float32)[None]
    read = lambda *at: ndimage.map_coordinates(array, at, order=5, mode="reflect")
    by_lines, whole = read(*lines), read(*np.broadcast_arrays(*lines))
    assert_close("sum", by_lines, whole, 4 * np.abs(array).max())
    taps = [str(jax.make_jaxpr(read)(*at)).count("texture_read") for at in (lines, np.broadcast_arrays(*lines))]
    assert taps == [2, 1]


# Arguments


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda a: ndimage.shift(a, 1, mode="edge"), ValueError, "mode is 'edge', expected one of 'reflect', 'grid-m"),
        (lambda a: ndimage.shift(a, 1, order=6), ValueError, "shift: order is 6, expected an integer from 0 to 5"),
        (lambda a: ndimage.spline_filter(a, 1), ValueError, "order is 1, expected an integer from 2 to 5"),
        (lambda a: ndimage.shift(a, (1, 2, 3)), ValueError, r"shift has shape \(3,\), expected a number for all axes"),
        (lambda a: ndimage.shift(a, 1, output=a), TypeError, "arrays of JAX cannot be written to; pass a dtype"),
        (lambda a: ndimage.shift(a, 1, output="pixel"), TypeError, "output is 'pixel', expected a dtype"),
        (lambda a: ndimage.shift(a, 1, cval=1j), TypeError, "cval is complex, and input is float32"),
        (lambda a: ndimage.shift(a, 1, cval=[1, 2]), ValueError, r"cval has shape \(2,\), expected a number"),
        (lambda a: ndimage.shift(a, 1, prefilter="no"), TypeError, "prefilter is 'no', expected True or False"),
        (lambda a: ndimage.shift("array", 1), TypeError, "shift: input is 'array', expected a number or an array"),
        (lambda a: ndimage.shift(np.ones(()), 1), ValueError, r"input has shape \(\), expected at least 1 axis"),
        (lambda a: ndimage.map_coordinates(a, [a]), ValueError, "coordinates has 1 arrays, expected 2 arrays of indi"),
        (lambda a: ndimage.map_coordinates(a, a[:1]), ValueError, r"coordinates has shape \(1, 4\), expected 2 arrays"),
        (lambda a: ndimage.map_coordinates(a, [a, a[:2]]), ValueError, "shapes that broadcast to each other"),
        (lambda a: ndimage.map_coordinates(a, [a * 1j, a]), TypeError, "coordinates holds complex64, expected float"),
        (
            lambda a: ndimage.affine_transform(a, np.eye(4)),
            ValueError,
            r"matrix has shape \(4, 4\), expected \(2,\), ",
        ),
        (lambda a: ndimage.affine_transform(a, np.ones((3, 3))), ValueError, "matrix has the last row .* homogeneous"),
        (lambda a: ndimage.zoom(a, (1, 2, 3)), ValueError, r"zoom has shape \(3,\), expected a number for all axes"),
        *(
            (lambda a, zoom=zoom: ndimage.zoom(a, zoom), ValueError, "^zoom: zoom is .*expected finite factors")
            for zoom in (-1, (2, -1), np.nan, np.inf, -np.inf)
        ),
        *(
            (lambda a, zoom=zoom: ndimage.zoom(a, zoom), TypeError, "^zoom: zoom is .*expected real numbers")
            for zoom in ("large", 2j)
        ),
        (
            lambda a: jax.jit(lambda z: ndimage.zoom(a, z))(2.0),
            TypeError,
            "zoom is a traced array, expected a value that is known during tracing",
        ),
        (lambda a: ndimage.rotate(a, 10, axes=(0, 0)), ValueError, r"axes is \(0, 0\), expected two different axes"),
        (
            lambda a: jax.jit(lambda t: ndimage.rotate(a, t))(2.0),
            TypeError,
            "pass a number, or reshape=False",
        ),
        (lambda a: ndimage.geometric_transform(a, "f"), TypeError, "mapping is a str, expected a function"),
        (lambda a: ndimage.geometric_transform(a, lambda i: i[:1]), ValueError, "mapping has 1 arrays, expected 2"),
    ],
)
def test_errors_are_sentences(call, error, words):
    with pytest.raises(error, match=words):
        call(np.ones((3, 4), np.float32))


def test_the_package_is_public():
    assert jt.ndimage is ndimage
