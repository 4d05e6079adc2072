"""Eight devices: `shard_map` gives the right gradients, and what all devices share has the sum of its cotangents."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from tests.support.derivatives import with_gradients
from tests.support.device_parts import COLLECTIVE
from tests.support.tolerances import assert_trees_close

SAMPLER = jt.Sampler(address_mode="border")

pytestmark = pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")


def read(texels, x):
    return jt.sample(jt.texture1d(texels, border_color=0.5), (x,), SAMPLER)


reads = jax.vmap(read, (None, 0))


def arguments():
    """One image, with sixteen sets of coordinates."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(7, 2)).astype(np.float32), rng.uniform(-0.5, 1.5, (16, 5, 3)).astype(np.float32)


def gradient(f):
    return lambda *args: with_gradients(f, (0, 1))(*args)[1]


def tangent(f):
    return lambda *args: jax.jvp(f, args, tuple(map(jnp.ones_like, args)))[1]


def test_shard_map_gradients_inside_and_outside():
    """`check_vma=True` transposes a replicated texture into a sum over devices only if its use is cast to varying."""
    mesh, specs = jax.make_mesh((8,), ("b",), axis_types=(AxisType.Auto,)), (P(), P("b"))
    on_each = lambda f, out_specs: jax.shard_map(f, mesh=mesh, in_specs=specs, out_specs=out_specs, check_vma=True)
    outside, inside = gradient(on_each(reads, P("b"))), on_each(gradient(reads), specs)
    pushed = on_each(tangent(reads), P("b"))
    found = jax.jit(lambda *args: (outside(*args), inside(*args), pushed(*args)))(*arguments())
    pulled, along = jax.jit(lambda *args: (gradient(reads)(*args), tangent(reads)(*args)))(*arguments())
    assert_trees_close("reordered", found, (pulled, pulled, along))


def test_an_operand_that_all_samples_share():
    """A level of detail of one element has the sum of the cotangents of samples on all devices."""
    texels, x = arguments()
    sampler = jt.Sampler(mipmap_filter_mode="linear")

    def levels(texels, x, lod):
        return jt.sample(jt.build_mipmaps(jt.texture1d(texels)), (x,), sampler, lod=lod)

    args = texels, x, np.float32(1.3)
    both = jax.jit(with_gradients(levels, (0, 1, 2)))
    expected = both(*args)
    mesh = jax.make_mesh((8,), ("b",), axis_types=(AxisType.Explicit,))
    with jax.set_mesh(mesh):
        placed = [jax.device_put(a, NamedSharding(mesh, s)) for a, s in zip(args, (P(), P("b"), P()))]
        assert_trees_close("sum", both(*placed), expected)


def test_correlations_are_looked_up_where_their_pixels_lie():
    rng, spec = np.random.default_rng(0), P(None, None, "b")
    volumes = [rng.normal(size=(2, 8, 8, 8 // n, 6 // n)).astype(np.float32) for n in (1, 2)]
    coords = rng.uniform(-1, 8, (2, 8, 8, 2)).astype(np.float32)
    look = lambda first, second, coords: jt.nn.correlation_lookup((first, second), coords, 1)
    lookup = with_gradients(look, (0, 1, 2))
    mesh = jax.make_mesh((8,), ("b",), axis_types=(AxisType.Explicit,))
    placed = [jax.device_put(a, NamedSharding(mesh, spec)) for a in (*volumes, coords)]
    compiled = jax.jit(lookup).lower(*placed).compile()
    assert not COLLECTIVE.search(compiled.as_text())
    found = compiled(*placed)
    assert tuple(found[0].sharding.spec)[: len(spec)] == tuple(spec)
    assert_trees_close("reordered", found, jax.jit(lookup)(*volumes, coords))
