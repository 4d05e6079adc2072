"""What all generators draw with, how a failure names its case, and the comparison of bits."""

import contextlib

import numpy as np


def pick(rng, options):
    return options[int(rng.integers(len(options)))]


def chance(rng, share):
    return bool(rng.random() < share)


@contextlib.contextmanager
def naming(text):
    """What is raised inside becomes an `AssertionError` that begins with what the case is."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{text}: {type(error).__name__}: {error}") from error


def bits(numbers):
    numbers = np.asarray(numbers, order="C")
    return numbers.view(f"u{numbers.dtype.itemsize}")


def assert_same(found, expected, what, *, nan_as=None):
    """Equal bits. Where `nan_as` holds, any NaN is as good as another."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype, f"{what}: dtype {found.dtype}, expected {expected.dtype}"
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, expected {expected.shape}"
    wrong = bits(found) != bits(expected)
    if nan_as is not None:
        wrong &= ~(nan_as & (found != found) & (expected != expected))
    if wrong.any():
        k = tuple(int(i) for i in np.argwhere(wrong)[0])
        of = lambda a: f"{a[k]!r} ({bits(a)[k]:#x})"
        raise AssertionError(f"{what}: {wrong.sum()} of {wrong.size} differ; {k}: {of(found)} for {of(expected)}")
    return found.size
