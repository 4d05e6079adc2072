"""SciPy's own tests of its interpolation, run against `jaxtex.ndimage`: ``python -m tests.parity.scipy_suite``.

The tests are those of the installed SciPy; none of them is copied. They call our functions, with 64-bit types, and get
arrays of NumPy back. The command prints how many pass, each known difference with its reason, and fails if a test fails
that is not known to, or passes that is known to fail.
"""

import functools
import importlib.util
import re
import sys
import tempfile
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxtex

FUNCTIONS = (
    "affine_transform",
    "geometric_transform",
    "map_coordinates",
    "rotate",
    "shift",
    "spline_filter",
    "spline_filter1d",
    "zoom",
)
FILES = ("test_interpolation.py", "test_splines.py", "test_datatypes.py")
OUTPUT = "they pass an array as output, and arrays of JAX cannot be written to"
# The names of tests, without their parameters, and why they fail.
KNOWN = {
    "test_geometric_transform_endianness_with_output_parameter": OUTPUT,
    "test_map_coordinates_endianness_with_output_parameter": OUTPUT,
    "test_affine_transform_1d_endianness_with_output_parameter": OUTPUT,
    "test_affine_transform_multi_d_endianness_with_output_parameter": OUTPUT,
    "test_affine_transform_output_shape": OUTPUT,
    "test_zoom_output_shape": OUTPUT,
    "test_zoom_1_gh20999_output": OUTPUT,
    "test_map_coordinates_dts": "it wants seven digits of a float32 array, which is filtered and summed in float32",
}


class Results:
    """A plugin of pytest that puts our functions in place, counts, and keeps the names of the tests that fail."""

    def __init__(self):
        self.passed, self.skipped, self.failed = 0, 0, {}

    def pytest_collection_finish(self):
        """SciPy marks its tests by the functions that they call, so it must know these while it collects."""
        from scipy import ndimage

        for name in FUNCTIONS:
            setattr(ndimage, name, on_numpy(getattr(jaxtex.ndimage, name)))

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr).strip().splitlines()[-1]
        elif report.skipped:
            self.skipped += report.when in ("setup", "call")
        elif report.when == "call":
            self.passed += 1


def on_numpy(function):
    """A function of ours that returns arrays of NumPy, as SciPy's tests want them."""

    @functools.wraps(function)
    def call(*args, **keywords):
        return np.asarray(function(*args, **keywords))

    return call


def test_name(node: str) -> str:
    """The name of a test without its file, class and parameters."""
    return re.sub(r"\[.*", "", node).rsplit("::", 1)[-1]


def main(arguments: list[str]) -> int:
    """Runs the tests; `arguments` are further ones of pytest."""
    jax.config.update("jax_enable_x64", True)
    folder = Path(importlib.util.find_spec("scipy.ndimage").origin).parent / "tests"
    results = Results()
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=short", "--import-mode=importlib"]
    with tempfile.TemporaryDirectory() as scratch:
        options += ["-c", "/dev/null", f"--rootdir={scratch}", f"--basetemp={scratch}/base"]
        pytest.main([*options, *arguments, *(str(folder / file) for file in FILES)], plugins=[results])
    unknown = {node: line for node, line in results.failed.items() if test_name(node) not in KNOWN}
    absent = KNOWN.keys() - {test_name(node) for node in results.failed}
    print(f"{results.passed} pass, {len(results.failed)} fail, {results.skipped} are skipped.")
    for name, reason in KNOWN.items():
        count = sum(test_name(node) == name for node in results.failed)
        print(f"known: {name}, {count} times: {reason}")
    for node, line in unknown.items():
        print(f"NOT KNOWN: {node}: {line}")
    for name in sorted(absent):
        print(f"NO LONGER FAILS: {name}")
    return int(bool(unknown or absent or not results.passed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
