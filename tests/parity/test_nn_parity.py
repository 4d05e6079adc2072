"""Parts of models against PyTorch's: values and gradients that `tests/data/record_models.py` recorded."""

import functools
import json

import jax
import numpy as np
import pytest

import jaxtex as jt
from tests.support import recordings
from tests.support.tolerances import assert_close

data = functools.partial(recordings.arrays, "models_torch")

CASES = {case["name"]: case for case in json.loads(bytes(data()["index"]))["cases"]}


def correlation(first, second, coords, *, levels, radius):
    pyramid = jt.nn.correlation_pyramid(first, second, levels)
    return jt.nn.correlation_lookup(pyramid, coords, radius)


def k_planes(points, **planes):
    return jt.nn.k_planes([*planes.values()], points)


def multiresolution_grid(points, **options):
    tables = [options.pop(name) for name in [*options] if name.startswith("tables/")]
    return jt.nn.multiresolution_grid(tables, points, jt.nn.MultiresolutionGrid(**options))


FUNCTIONS = {
    "deformable_attention": jt.nn.deformable_attention,
    "deformable_conv": jt.nn.deformable_conv,
    "roi_align": jt.nn.roi_align,
    "correlation": correlation,
    "triplane": jt.nn.triplane,
    "k_planes": k_planes,
    "multiresolution_grid": multiresolution_grid,
}


def recorded(name, key):
    return data()[f"{name}/{key}"]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_value_and_gradients_are_those_of_torch(name):
    case = CASES[name]
    inputs = {key: recorded(name, key) for key in case["inputs"]}
    fixed = {key: value for key, value in inputs.items() if key not in case["wrt"]}
    call = lambda **moved: FUNCTIONS[case["function"]](**moved, **fixed, **case["options"])

    @jax.jit
    def run(moved, cotangent):
        out, pullback = jax.vjp(lambda moved: call(**moved), moved)
        return out, pullback(cotangent)[0]

    with jax.default_matmul_precision("highest"):
        out, slopes = run({key: inputs[key] for key in case["wrt"]}, recorded(name, "cotangent"))
    expected = recorded(name, "out")
    assert out.dtype == expected.dtype
    assert_close("peer", out, expected, scale_of(case, expected))
    for key, slope in slopes.items():
        expected = recorded(name, f"gradient/{key}")
        assert_close("peer gradient", slope, expected, scale_of(case, expected))


def scale_of(case, expected):
    """Positions are rounded in units of the largest size of a case, and terms are as large as the largest result."""
    return 4 * np.abs(expected).max()


def test_every_function_is_recorded():
    assert {case["function"] for case in CASES.values()} == FUNCTIONS.keys()
