"""The benchmark of several devices: results are compared, bytes counted, and a report and a picture made of figures."""

import dataclasses
import importlib
from pathlib import Path

import jax
import pytest

ROOT = Path(__file__).parent.parent
PAGE = "# Scaling\n\n## Measured\n\nOld.\n\n## More devices: an estimate\n\nText.\n"


@pytest.fixture(autouse=True)
def default_promotion():
    """They are run as a reader would run them, without the strict flags of the tests."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture
def module(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"benchmarks.scaling.{name}")


@pytest.mark.parametrize("name", ["rotation", "random", "volume", "transformer"])
def test_x(module, name):
    (work,) = (w for w in module("works").works("small") if w.name == name)
    work = dataclasses.replace(work, weak=None)
    for some in module("measure").figures(work, [8], 0.0):
        print(some)
