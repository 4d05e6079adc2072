"""A few of the random calls of `tests/fuzz/__main__.py`, and that it finds what is wrong."""

import jax
import numpy as np
import pytest

from tests.fuzz import __main__ as fuzz
from tests.fuzz import cases as fuzz_cases
from tests.fuzz import reads

KERNELS = "gpu" if jax.default_backend() == "gpu" else "host"

pytestmark = pytest.mark.usefixtures("default_promotion")


# Calls whose programs compile in less than a second: of a splat, samples, a flow and a map; of floats, halves, integers
# and bool; with and without a border color, levels, layers, a batch of textures, of coordinates and of both.
SEEDS = {
    "sample": (35, 37, 51, 56),
    "limit": (8,),
    "key": (3,),
    "derivatives": (9,),
    "complex": (8, 12),
    "gather": (7,),
    "lagrange": (11,),
    "knots": (2, 5),
    "splat": (28,),
    "sample_weighted": (16, 27),
    "warp": (33, 59),
    "mips": (1,),
    "rays": (0, 1, 2),
    "function": (0, 3),
}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seed"), [(kind, seed) for kind, seeds in SEEDS.items() for seed in seeds])
def test_calls_agree(kind, seed):
    fuzz.check(seed, KERNELS, kind)


def test_a_difference_is_found():
    case = fuzz_cases.case_of(7, reads.draw_gather)
    value = np.ones((40, 3), np.float32)
    fuzz.compare(case, "value", value, value + np.float32(1e-7))
    with pytest.raises(AssertionError, match="value: 120 of 120 differ"):
        fuzz.compare(case, "value", value, value + 1)
    with pytest.raises(AssertionError, match="value: float32 for int32"):
        fuzz.compare(case, "value", value, value.astype(np.int32))
