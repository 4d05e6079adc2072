"""What tests of eight devices share."""

import jax
import pytest
from jax.sharding import AxisType


@pytest.fixture
def mesh():
    """A mesh of eight devices along an explicit axis, for the textures that lie in it."""
    with jax.set_mesh(jax.make_mesh((8,), ("rows",), axis_types=(AxisType.Explicit,))):
        yield
