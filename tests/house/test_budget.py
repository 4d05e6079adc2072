"""The budget of compiled programs holds each file of tests to its line."""

import jax
import jax.numpy as jnp
import pytest

from tests import budget

COUNTS = {"test_a.py": 40, "test_b.py": 0}


@pytest.mark.parametrize(
    ("name", "count", "words"),
    [
        ("test_a.py", 82, None),
        ("test_a.py", 83, "test_a.py compiled 83 programs, and tests/budget.toml allows 82"),
        ("test_b.py", 41, "allows 40"),
        ("test_c.py", 0, "test_c.py has no line"),
    ],
)
def test_a_file_over_its_line_is_a_fault(name, count, words):
    fault = budget.fault(name, count, COUNTS)
    assert fault is None if words is None else words in fault


def test_every_line_is_that_of_a_file():
    version, counts = budget.read()
    assert version
    assert set(counts) <= {str(path.relative_to(budget.FOLDER)) for path in budget.FOLDER.rglob("test_*.py")}


@pytest.mark.compiled
def test_compiled_programs_are_counted(programs_of_file):
    before = programs_of_file()
    jax.jit(jnp.sin)(jnp.zeros(3))
    assert programs_of_file() > before
