"""Every public function with the arguments of `tests/house/public_calls.py`, and with each of its options."""

import collections

import jax
import jax.numpy as jnp

from tests.house.public_calls import CALLS, EAGER, READERS
from tests.house.test_public_calls import cases_of, fields_of, is_array, result
from tests.lowered.programs import Call

# What makes no arrays, and what runs programs while it is called.
LEFT_OUT = ("Sampler", "deterministic", "kernels_in_exports", "sharded.", "nn.MultiresolutionGrid", "layers.", *EAGER)
FUNCTIONS = [name for name in CALLS if not name.startswith(LEFT_OUT)]


def call_of(name, keywords, **how):
    """A call with keywords, whose arrays are its arguments."""
    leaves, structure = jax.tree.flatten(keywords)
    places = [k for k, leaf in enumerate(leaves) if is_array(leaf)]

    def run(*arrays):
        given = dict(zip(places, arrays))
        return result(name, jax.tree.unflatten(structure, [given.get(k, leaf) for k, leaf in enumerate(leaves)]))

    arrays = tuple(leaves[k] for k in places)
    floating = [k for k, x in enumerate(arrays) if jnp.issubdtype(x.dtype, jnp.floating)]
    return Call(run, arrays, tuple(floating), **how)


def variants(cases):
    """The calls by what is changed, with a number where an option has several other values."""
    found, counts = {}, collections.Counter()
    for name, (spelling, _, keywords) in cases:
        key = f"{name} {spelling}"
        counts[key] += 1
        key += f" {counts[key]}" * (counts[key] > 1)
        found[key] = call_of(name, keywords, ways=("value",), refusable=True)
    return found


# The layers of other packages keep their parameters, and have no arrays among their arguments.
LAYERS = [name for name in CALLS if name.startswith("layers.") and name.endswith("SpatialTransformer")]
PUBLIC = {name: call_of(name, CALLS[name]) for name in FUNCTIONS}
PUBLIC |= {name: call_of(name, CALLS[name], ways=("value",)) for name in LAYERS}
OPTIONS = variants((name, case) for name in FUNCTIONS for case in cases_of(name))
FIELDS = variants((name, case) for name in READERS for case in fields_of(name))
