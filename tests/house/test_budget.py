"""The budget of compiled programs holds each file of tests to its line."""

import jax
import jax.numpy as jnp
import pytest

from tests import budget


def test_every_line_is_that_of_a_file():
    version, counts = budget.read()
    assert version
    assert set(counts) <= {str(path.relative_to(budget.FOLDER)) for path in budget.FOLDER.rglob("test_*.py")}


@pytest.mark.compiled
def test_compiled_programs_are_counted(programs_of_file):
    before = programs_of_file()
    jax.jit(jnp.sin)(jnp.zeros(3))
    assert programs_of_file() > before
