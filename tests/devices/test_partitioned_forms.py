"""Reads in programs that XLA partitions: samples are cut over devices, and each runs a form of one device."""

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.compiled.contract import CALLS, ReadContract, with_cotangents
from tests.support.device_parts import COLLECTIVE, lowered_in_parts

DEVICES = 3  # which divide the samples of these calls
# Of each kind of operands one: how texels are read changes nothing in how samples are cut.
KINDS = (
    *("bspline 5", "cubic", "3d", "layers", "a cube", "a chain", "hardware", "a color", "a footprint with a color"),
    *("a shared texture", "nothing shared", "flows", "a hashed level", "a pyramid of heads"),
    *("texels alone", "NaN"),
)
# Batches, whose textures are cut with their samples.
OF_OWN_TEXTURES = ("nothing shared", "flows")


@pytest.mark.skipif(jax.device_count() < DEVICES or jax.default_backend() != "cpu", reason="needs three CPUs")
class TestPartitioned(ReadContract):
    """Textures are shared by all devices, and those of a batch are cut with their samples; nothing is gathered."""

    calls = KINDS

    def found(self, name, function=with_cotangents):
        call = CALLS[name]
        after = len(jax.tree.leaves(call.args[1:]))
        self.shared = () if name in OF_OWN_TEXTURES else range(-after - len(jax.tree.leaves(call.args[0])), -after)
        return super().found(name, function)

    def run(self, function, *args):
        mesh = Mesh(np.array(jax.devices()[:DEVICES]), ("a",))
        is_cut = [k - len(args) not in self.shared and x.ndim > 0 and len(x) % DEVICES == 0 for k, x in enumerate(args)]
        placed = [jax.device_put(x, NamedSharding(mesh, P("a") if cut else P())) for x, cut in zip(args, is_cut)]
        with lowered_in_parts() as parts:
            program = jax.jit(function).lower(*placed).compile()
            results = program(*placed)
        assert set(COLLECTIVE.findall(program.as_text())) <= {"all-reduce"}
        assert parts.seen or not any(is_cut)
        return results
