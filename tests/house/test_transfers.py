"""Calls outside `jax.jit` with arrays of a device make no implicit transfer: `jax.transfer_guard` allows them."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._checks.calls import Sort, sort_of
from tests.house.public_api import parameters_of
from tests.house.public_calls import CALLS, normal, public_functions

FUNCTIONS = public_functions()
# Arguments in place of those of `CALLS`, which are for other options.
INSTEAD = {"layers.theta_of": {"parameters": normal(2)}}
# Layers get their first values from Flax and Equinox, and two functions take one that they call with further arguments.
ELSEWHERE = {name for name in CALLS if name.endswith("SpatialTransformer")}
ELSEWHERE |= {"sharded.explain", "sharded.count_beyond"}
# The rest take long to compile.
BY_DEFAULT = {"footprint", "ndimage.shift", "ndimage.zoom", "nn.multiresolution_grid_init", "sample", "texture1d"}


def on_device(name):
    """The arguments of a call with arrays of JAX, and functions of callers that transfer nothing by themselves."""
    keywords = CALLS[name] | INSTEAD.get(name, {})
    for argument, value in keywords.items():
        numbers = sort_of(parameters_of(FUNCTIONS[name])[argument].annotation) in (Sort.ARRAYS, Sort.TUPLE)
        kinds = (np.ndarray, np.generic, *[int, float] * numbers)
        placed = jax.tree.map(lambda a, kinds=kinds: jax.device_put(a) if isinstance(a, kinds) else a, value)
        yield argument, jax.jit(value) if inspect.isfunction(value) else placed


TESTED = [pytest.param(n, marks=[pytest.mark.slow] * (n not in BY_DEFAULT)) for n in CALLS if n not in ELSEWHERE]


@pytest.mark.parametrize("name", TESTED)
def test_eager_calls_make_no_implicit_transfer(name):
    keywords = dict(on_device(name))
    with jax.transfer_guard("disallow"):
        FUNCTIONS[name](**keywords)


def test_knots_of_a_device_are_checked_by_an_explicit_transfer():
    texels, knots, wrong = jnp.zeros((3, 1)), jnp.array([0.0, 1, 3]), jnp.array([0.0, 3, 1])
    with jax.transfer_guard("disallow"):
        jt.texture1d(texels, knots=(knots,))
        with pytest.raises(ValueError, match="knots of x are 3 and then 1"):
            jt.texture1d(texels, knots=(wrong,))
