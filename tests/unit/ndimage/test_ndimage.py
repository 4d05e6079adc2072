"""`jaxtex.ndimage`: gradients, dtypes, transforms, kernels, and what is no matter of SciPy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtex import ndimage
from tests.support import compiling
from tests.support.cases import computed
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact, named


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def points(shape, n=6):
    """Indices well inside an array, and as many outside; none near an end, a whole or a half."""
    rng = np.random.default_rng(3)
    inside = [rng.integers(0, size - 1, n) for size in shape]
    outside = [rng.choice([-3, size + 1], n) for size in shape]
    return np.stack([np.concatenate(cells) + rng.uniform(0.1, 0.4, 2 * n) for cells in zip(inside, outside)])


@pytest.mark.slow
def test_gradients_of_reads(x64):
    """With respect to the array, the indices and the value outside."""
    array, modes = normal(5, 6), ("constant", "grid-constant", "wrap")
    read = lambda a, c, v: jnp.stack([ndimage.map_coordinates(a, c, order=3, mode=mode, cval=v) for mode in modes])
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


def test_dtypes_of_results():
    """That of the input or of `output`, complex where the input is; 64 bits only where JAX has them."""
    wide, codes = normal(5), np.arange(5)
    dtype = lambda function, *args, **how: jax.eval_shape(lambda: function(*args, **how)).dtype
    single, of_complex = wide.astype(np.float32), wide.astype(np.complex64)
    assert dtype(ndimage.shift, wide, 1) == dtype(ndimage.spline_filter, wide) == np.float32
    assert dtype(ndimage.spline_filter, of_complex) == np.complex64
    assert dtype(ndimage.shift, codes, 1) == np.int32
    assert dtype(ndimage.shift, wide.astype(np.float16), 1, output="f") == np.float32
    assert dtype(ndimage.zoom, codes, 1, output=float) == np.float32
    with jax.enable_x64(True):
        assert dtype(ndimage.spline_filter, single) == np.float64
        assert dtype(ndimage.shift, single, 1) == np.float32
        assert dtype(ndimage.shift, of_complex, 1, output=np.float64) == np.complex128
        assert dtype(ndimage.shift, codes, 1) == np.int64


def test_whole_indices_return_elements():
    """Of order 0 the bits, and of splines the numbers that a dtype rounds to; outside the rounded `cval`."""
    numbers, orders = np.random.default_rng(1).integers(0, 100, (9, 7)), (0, 3)
    names = ("bool", "uint8", "int16", "uint32", "float16", "bfloat16")
    arrays = [(numbers % 2 if name == "bool" else numbers).astype(jnp.dtype(name)) for name in names]
    shifted = lambda array: [ndimage.shift(array, (2, 0), order=order, cval=3.5) for order in orders]
    for name, array, found in zip(names, arrays, computed(*((shifted, array) for array in arrays))):
        expected = np.roll(array, 2, 0)
        expected[:2] = np.asarray(3.5 if "float" in name else 4).astype(array.dtype)
        for order, values in zip(orders, found):
            with named(name, order):
                if order == 0 or "float" not in name:
                    assert_exact(values, expected, array.dtype)
                else:
                    assert values.dtype == array.dtype
                    assert_close(name, values, expected, 128)


def test_integers_saturate_and_keep_all_digits():
    codes, large = np.uint8([0, 255, 255, 0]), np.array([2**31 - 1, -(2**31), 2**24 + 1], np.int32)
    outside = (-2.5, "int8"), (300, "int8"), (2.5, "uint8"), (1e10, "int32"), (np.nan, "int32")
    blended, zoomed, *read = computed(
        (lambda a: ndimage.map_coordinates(a, [[1.5, 0.5, 9.0]], order=1, cval=-2.6), codes),
        (lambda a: ndimage.zoom(a, 2, order=0), large),
        *((lambda a, c=c, d=d: ndimage.shift(a, 2, cval=c, output=d), np.int16([1])) for c, d in outside),
    )
    assert blended.tolist() == [255, 128, 0]
    assert_exact(zoomed, large[[0, 0, 1, 1, 2, 2]])
    assert np.concatenate(read, dtype=np.int64).tolist() == [-3, 127, 3, 2**31 - 1, 0]


def test_outside_is_the_number_to_the_last_bit(x64):
    """Of the read of one sample, of a grid that is read along one axis after the other, and as a rounded integer.

    Sums have the precision of the result.
    """
    array, at, orders = normal(20, 30), [np.float64([-3, 40]), np.float64([2, 2])], (0, 1, 2)

    @jax.jit
    def run(array, codes, cval):
        samples = [ndimage.map_coordinates(a, at, order=n, cval=cval) for n in orders for a in (array, codes)]
        shifted = [ndimage.shift(array, (19.5, 0.3), order=n, cval=cval)[:19] for n in orders]
        single = array.astype(jnp.float32)
        wide = [ndimage.shift(a, 0.3, output=np.float64) for a in (single, single.astype(array.dtype))]
        return samples, shifted, wide

    for cval in (2.5, 0.1):
        samples, shifted, wide = run(array, np.uint8(array), np.float64(cval))
        assert_exact(*wide, np.float64)
        for real, rounded, grid in zip(samples[::2], samples[1::2], shifted):
            assert_exact(real, np.full(2, cval))
            assert_exact(grid, np.full((19, 30), cval))
            assert rounded.tolist() == [round(cval + 0.25)] * 2


def test_a_zoom_copies_along_an_axis_that_keeps_its_size():
    array, cases = np.float32(normal(5, 6, 4)), [(1, (1, 2, 1)), (3, (1.05, 0.5, 1))]
    array[2, 3, 1] = np.nan
    zoomed = lambda order, factors: (
        lambda a: (ndimage.zoom(a, factors, order=order), ndimage.zoom(a[0, :, 0], factors[1], order=order))
    )
    same, *found = computed(
        (lambda a: ndimage.zoom(a, (1, 1.05, 1), order=1), array), *((zoomed(*case), array) for case in cases)
    )
    for case, (whole, line) in zip(cases, found):
        with named(*case):
            assert {(i, k) for i, _, k in np.argwhere(np.isnan(whole))} <= {(2, 1)}
            assert_close("float32", whole[0, :, 0], line, 4)
    assert_exact(same, array)


def test_not_a_number_and_infinity():
    """In mode constant they lie outside; elsewhere NaN acts as 0, and infinity ends at the nearest element."""
    array, at = np.float32([3, 5, 9]), [np.float32([np.nan, np.inf, -np.inf, 1e30])]
    cases = [*zip(("wrap", "mirror", "reflect", "grid-wrap", "nearest"), (0, 1, 1, 0, 1))]
    read = lambda mode, order: lambda a: ndimage.map_coordinates(a, at, order=order, mode=mode, cval=7)
    outside, *found = computed((read("constant", 1), array), *((read(*case), array) for case in cases))
    assert outside.tolist() == [7, 7, 7, 7]
    for (mode, order), values in zip(cases, found):
        with named(mode, order):
            assert_exact(values[0], array[0])
            assert np.isfinite(values).all()
            if mode == "nearest":
                assert values.tolist() == [3, 9, 3, 9]


def test_tap_and_fraction_agree():
    """Where a matrix leads to whole indices up to rounding, as users compile it: XLA computes indices twice."""
    image, matrix = normal(40, 50).astype(np.float32), np.float32([[0.9, 0.2], [-0.2, 1.1]])
    transform = lambda a, m: [
        ndimage.affine_transform(a, m, (1, -2), order=3, mode=mode) for mode in ("mirror", "nearest")
    ]
    found = jax.jit(transform).lower(image, matrix).compile(compiler_options=compiling.by_default())(image, matrix)
    with jax.enable_x64(True):
        (expected,) = computed((transform, image.astype(np.float64), matrix.astype(np.float64)))
    for a, b in zip(found, expected):
        assert_close("spline", a, b, 4)


def test_a_grid_of_lines_is_read_axis_by_axis():
    """Indices that depend on one axis each give the same as the whole grid, without reading every product of taps."""
    array = normal(12, 15).astype(np.float32)
    lines = np.linspace(-2, 14, 40, dtype=np.float32)[:, None], np.linspace(-1, 17, 30, dtype=np.float32)[None]
    whole = np.broadcast_arrays(*lines)
    read = lambda array, *at: ndimage.map_coordinates(array, at, order=5, mode="reflect")
    assert_close("sum", *computed((read, array, *lines), (read, array, *whole)), 4 * np.abs(array).max())
    assert [str(jax.make_jaxpr(read)(array, *at)).count("texture_read") for at in (lines, whole)] == [2, 1]


def test_one_element_and_no_samples():
    def found(one, image):
        places = [jnp.float32([-3.3, 0, 2.6])]
        modes = ("reflect", "mirror", "wrap", "grid-wrap", "nearest")
        alike = [ndimage.map_coordinates(one, places, mode=mode) for mode in modes]
        smooth = ndimage.zoom(image, 1, order=2, prefilter=False)
        return alike, ndimage.map_coordinates(image, np.zeros((2, 0))), ndimage.zoom(image, 1), smooth

    image = np.arange(20, dtype=np.float32).reshape(4, 5)
    ((alike, none, same, smooth),) = computed((found, np.float32([4]), image))
    for values in alike:
        assert_close("sum", values, [4, 4, 4], 4)
    assert none.shape == (0,)
    assert_exact(same, image)
    assert abs(smooth[0, 0] - image[0, 0]) > 0.1
    assert ndimage.zoom(np.arange(20.0).reshape(4, 5), 0.1).shape == (0, 0)  # of float64
