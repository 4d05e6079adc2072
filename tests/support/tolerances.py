"""How far a result may lie from what is expected: one table, a reason a row. A test never loosens a row.

A bound is a share of a scale that the caller names, as a rule the largest magnitude that enters the read. Reads that
blend nothing have no row: they return stored bits, or one correctly rounded quotient, and `assert_exact` compares bits.
"""

import contextlib

import jax
import numpy as np

TOLERANCES = {
    # A position below 32 is rounded by at most 2^-20, again where 0.5 is subtracted, and a weight's slope is at
    # most 1 an axis (cubic 1.6): a few 2^-19 over three axes; sums of up to 64 products add less.
    "float32": 2.0**-17,
    # The same with 53 bits in place of 24.
    "float64": 2.0**-48,
    # One rounding of the result to 11 or 8 bits (a cubic overshoots its scale), and float32. Two results that are both
    # rounded differ by twice that: sums on both sides of a tie are rounded away from each other.
    "float16": 2.0**-11 + 2.0**-17,
    "bfloat16": 2.0**-8 + 2.0**-17,
    # Up to a hundred terms, each rounded to 24 bits, of the sum of their magnitudes.
    "sum": 2.0**-19,
    # Gradients of a sum of values, slopes and curvatures in float32: terms of both signs, up to some hundreds each, and
    # weights whose third derivative is a multiple of the cube of the size.
    "derivatives": 2.0**-10,
    # A central difference in float64 with a step of 1e-6, or 1e-5 twice, of the size of the texture to its order: the
    # third derivatives of a read jump at centers, but few steps cross one.
    "central difference": 2.0**-15,
    # Another library normalizes and centers its coordinates in another order: more roundings of the position, each of
    # at most 2^-20, of a read whose slope is at most 2 an axis.
    "peer": 2.0**-18,
    # A coordinate's slope is a difference of texels, scaled by the size; a texel's is a sum of weights.
    "peer gradient": 2.0**-16,
    # A point that a lens, a sphere or a spline has moved, of the size of the image: some ten roundings to 24 bits. What
    # is read there has a slope of at most 2 an axis.
    "point": 2.0**-19,
    # The peak of a blob, in pixels, from a parabola through three pixels an axis: a map whose second derivatives are
    # at most 2^-5 a pixel moves it by half of these.
    "peak of a blob": 2.0**-6,
    # The same with 53 bits.
    "point float64": 2.0**-48,
    # A thin-plate spline through ten points: what is solved for has an error of the condition of their matrix, some
    # hundreds, times that of a point.
    "spline": 2.0**-16,
    "spline float64": 2.0**-42,
    # OpenCV's fixed-point iteration stops at a step of 1e-14 and stands still somewhat before.
    "fixed point": 2.0**-40,
    # OpenCV rounds positions to 1/32 of a pixel: half of that, in both axes, of the contrast.
    "OpenCV's 1/32": 2.0**-5,
    # Two cubic reads of a wave of five pixels a radian: each is off by up to 1 / (6 * 5^3).
    "cubic wave": 2.0**-8,
    # A linear read of a function on the sphere whose second derivatives are at most 4, of the square of a texel's
    # angle: h^2 / 8 for each of two axes; at the corner of a cube, where a fourth texel is missing, more.
    "linear on a sphere": 1.0,
    "linear at a cube's corner": 4.0,
    # A cubic read, of the same: at most a tenth of it at 32 rows.
    "cubic on a sphere": 2.0**-5,
    # The texture unit against exact arithmetic, of the contrast within the footprint, for each axis: a fraction is
    # rounded to 8 bits (half of 2^-8) and its axis' weights are split in whole 1/256 (the other half). The 21 bits of
    # a position are worth less than 2^-16 here. A volume splits more often and could err by half as much again; the
    # recorded reads stay within two thirds of the bound.
    "texture unit axis": 2.0**-8,
    # A position of 21 bits, in texels of the recorded textures, and of float32.
    "texture unit position": 2.0**-16,
    # Reads along long footprints, whose level and direction are not the unit's in all of them, of the contrast: a tenth
    # of the weight may lie on other texels (test_hardware_derivatives.py). 0.0734 was measured, and 0.00087 on average.
    "texture unit footprint": 0.08,
    "texture unit footprint on average": 2.0**-10,
    # ... and its results are rounded: float32 sums, 16-bit codes of normalized integers, float16.
    "texture unit float32": 2.0**-20,
    "texture unit code": 2.0**-15,
    "texture unit float16": 2.0**-10,
    # The same sums of float32 in another order, as another compilation (jit, vmap, export, a mesh of devices) or
    # another formula has them: a few roundings to 24 bits.
    "reordered": 2.0**-20,
    # Sines, powers and the like of two libraries, each a few units in the last place off: of float32.
    "library function": 2.0**-20,
    # Thousands of terms in another order: roundings of random sign add up as the root of their number, to 2^8 roundings
    # of 24 bits for 2^16 terms.
    "long sum": 2.0**-16,
    # Differences over five points h = 3e-4 apart, in float64: 2^-52 / h of rounding, and of truncation h^4 times a
    # fifth derivative, that of a read being a power of the texture's size.
    "first differences": 2.0**-20,
    # The same with 2^-52 / h^2; third differences with h = 1e-3 have 2^-52 / h^3.
    "second differences": 2.0**-14,
    # A homography from four points in float64: its eight equations have a condition of some hundreds.
    "homography": 2.0**-42,
    # Written down with six digits behind the point.
    "rounded to a millionth": 1e-6,
    # Rounded once to whole codes.
    "rounded code": 0.5,
    # A flat picture that a JPEG or WebP file holds, in codes of 8 bits: luma and chroma are rounded on the way in, and
    # colors on the way out.
    "lossy file": 2.0,
    # Sums of linear reads of a smooth image: scikit-image's are a texel apart, ours a quarter. Each read is off by up
    # to an eighth of the image's curvature, which is 1/4 of its height.
    "scikit-image's projections": 2.0**-8,
    # NumPy's windows of n = 128 frequencies have a period of n - 1. At half of the highest frequency a response differs
    # by 2^-7 of itself; a smooth image has little there.
    "scikit-image's windows": 2.0**-9,
    # The density of bodies with sharp edges, farther than three texels from an edge, by a Hann window: what is left of
    # the ripples around edges. 0.012 was measured, and 0.0001 of means.
    "reconstructed density": 2.0**-6,
    "reconstructed mean": 2.0**-12,
    # What linear reads of pixels and of texels take off the top of a smooth image, whose curvature is 1/6 of its
    # height: 0.0125 was measured.
    "projected again": 2.0**-6,
    # A line drawn three pixels wide, then made smaller by Lanczos' filter: a twentieth of its weight lies beside it.
    "drawn line": 2.0**-4,
    # A shift, in units of half an image, that gradient descent found to a thousandth.
    "descent": 2.0**-10,
}


@contextlib.contextmanager
def named(*case):
    """Adds the name of a case to its errors."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in the case of {' '.join(map(str, case))}")
        raise


def assert_cases_close(row, found, expected, scale):
    """Results of a table of cases, each close to what is expected of its name."""
    assert found.keys() == expected.keys()
    for name in found:
        with named(name):
            assert_close(row, found[name], expected[name], scale)


def assert_exact(actual, expected, dtype=None):
    """Bit equality, dtype included; an expectation in float64 is rounded to the dtype of the result first."""
    actual = np.asarray(actual)
    if dtype is not None:
        assert actual.dtype == dtype, f"dtype {actual.dtype}, expected {np.dtype(dtype)}"
    expected = np.asarray(expected).astype(actual.dtype)
    assert actual.shape == expected.shape, f"shape {actual.shape}, expected {expected.shape}"
    raw = np.dtype(f"u{actual.itemsize}")
    different = actual.view(raw) != expected.view(raw)
    if different.any():
        k = tuple(np.argwhere(different)[0])
        raise AssertionError(f"{different.sum()} of {different.size} differ; {k}: {actual[k]} for {expected[k]}")


def assert_close(row, actual, expected, scale):
    """|actual - expected| is at most TOLERANCES[row] * scale, everywhere; NaN is close to nothing."""
    actual, expected = np.asarray(actual).astype(np.float64), np.asarray(expected).astype(np.float64)
    assert actual.shape == expected.shape, f"shape {actual.shape}, expected {expected.shape}"
    bound = np.broadcast_to(TOLERANCES[row] * np.asarray(scale, np.float64), expected.shape)
    error = np.abs(actual - expected)
    wrong = ~(error <= bound)
    if wrong.any():
        k = tuple(np.argwhere(wrong)[0])
        raise AssertionError(
            f"{wrong.sum()} of {wrong.size} beyond {row!r}; {k}: {actual[k]} for {expected[k]}, bound {bound[k]}"
        )


def assert_codes_close(row, actual, expected, scale):
    """Whole numbers, rounded once from what lies within TOLERANCES[row] * scale of `expected`."""
    assert_close("rounded code", actual, expected, 1 + TOLERANCES[row] / TOLERANCES["rounded code"] * scale)


def assert_trees_close(row, actual, expected, scale=None):
    """Trees of the same structure and dtypes, leaf by leaf close; a leaf's scale is its largest magnitude, or 1."""
    structure, other = jax.tree.structure(actual), jax.tree.structure(expected)
    assert structure == other, f"structure {structure}, expected {other}"
    for (path, leaf), of in zip(jax.tree.leaves_with_path(actual), jax.tree.leaves(expected), strict=True):
        leaf, of = np.asarray(leaf), np.asarray(of)
        name = jax.tree_util.keystr(path)
        assert leaf.dtype == of.dtype, f"{name}: dtype {leaf.dtype}, expected {of.dtype}"
        largest = np.max(np.abs(of.astype(np.float64)), initial=1.0)
        try:
            assert_close(row, leaf, of, largest if scale is None else scale)
        except AssertionError as error:
            raise AssertionError(f"leaf {name}: {error}") from None


def assert_sums_close(found, expected):
    """Asserts that arrays of sums agree. A sum's magnitudes are taken for four times its largest result, and a unit."""
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        assert_close("sum", a, b, 4 * (1 + np.abs(b).max()))
