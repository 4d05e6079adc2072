"""Eight devices: a batch-sharded read needs no collective, and `shard_map` gives the right gradients."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from tolerances import assert_trees_close

import jaxtex as jt

COLLECTIVE = re.compile("all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter")
SAMPLER = jt.Sampler(address_mode=("wrap", "border"))

pytestmark = pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")


def read(texels, x, y):
    return jt.sample(jt.texture2d(texels, border_color=0.5), (x, y), SAMPLER)


READS = {"batched": jax.vmap(read), "shared": jax.vmap(read, (None, 0, 0))}


def arguments(name):
    """Sixteen images, or one, with sixteen sets of coordinates; and how the texture is sharded."""
    rng = np.random.default_rng(0)
    texels = rng.normal(size=(16, 6, 7, 2)).astype(np.float32)
    x, y = rng.uniform(-0.5, 1.5, (2, 16, 5, 3)).astype(np.float32)
    return (texels if name == "batched" else texels[0], x, y), P("b") if name == "batched" else P()


def gradient(f):
    return jax.grad(lambda *args: (f(*args) ** 2).sum(), (0, 1, 2))


@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
@pytest.mark.parametrize("name", READS)
def test_batch_sharded_reads_need_no_collective(name, axis_type):
    """Forward and backward; only the gradient of a texture that all devices share is summed over them, once."""
    args, spec = arguments(name)
    f = READS[name]
    expected = f(*args), gradient(f)(*args)
    mesh = jax.make_mesh((8,), ("b",), axis_types=(axis_type,))
    placed = [jax.device_put(a, NamedSharding(mesh, s)) for a, s in zip(args, (spec, P("b"), P("b")))]
    with jax.set_mesh(mesh):
        for k, (run, allowed) in enumerate(((f, set()), (gradient(f), {"all-reduce"} if name == "shared" else set()))):
            compiled = jax.jit(run).lower(*placed).compile()
            assert set(COLLECTIVE.findall(compiled.as_text())) == allowed
            assert_trees_close("reordered", compiled(*placed), expected[k])


@pytest.mark.parametrize("name", READS)
def test_shard_map_gradients_inside_and_outside(name):
    """`check_vma=True` transposes a replicated texture into a sum over devices only if its use is cast to varying."""
    args, spec = arguments(name)
    f = READS[name]
    expected = gradient(f)(*args)
    mesh = jax.make_mesh((8,), ("b",), axis_types=(AxisType.Auto,))
    specs = (spec, P("b"), P("b"))
    sharded = jax.shard_map(f, mesh=mesh, in_specs=specs, out_specs=P("b"), check_vma=True)
    assert_trees_close("reordered", jax.jit(gradient(sharded))(*args), expected)
    inside = jax.shard_map(gradient(f), mesh=mesh, in_specs=specs, out_specs=specs, check_vma=True)
    assert_trees_close("reordered", jax.jit(inside)(*args), expected)
    forward = jax.jvp(f, args, tuple(map(np.ones_like, args)))[1]
    pushed = lambda *a: jax.jvp(f, a, tuple(map(jnp.ones_like, a)))[1]
    got = jax.jit(jax.shard_map(pushed, mesh=mesh, in_specs=specs, out_specs=P("b"), check_vma=True))(*args)
    assert_trees_close("reordered", got, forward)


def warps(images, matrices, degrees):
    """Grids computed where they are read: forward and inverse matrices, angles, normalized ones."""
    turned = jt.warp.rotate(images, degrees, (5, 4))
    moved = jt.warp.warp_affine(images, matrices, (5, 4))
    return turned + moved * jt.warp.spatial_transform(images, matrices, (5, 4))


@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
def test_batch_sharded_warps_need_no_collective(axis_type):
    rng = np.random.default_rng(0)
    matrices = (np.eye(2, 3)[None] + 0.1 * rng.normal(size=(16, 2, 3))).astype(np.float32)
    args = rng.normal(size=(16, 6, 7, 2)).astype(np.float32), matrices, rng.normal(size=16).astype(np.float32)
    both = lambda *args: (warps(*args), gradient(warps)(*args))
    expected = jax.jit(both)(*args)
    mesh = jax.make_mesh((8,), ("b",), axis_types=(axis_type,))
    placed = [jax.device_put(a, NamedSharding(mesh, P("b"))) for a in args]
    with jax.set_mesh(mesh):
        compiled = jax.jit(both).lower(*placed).compile()
        assert not COLLECTIVE.findall(compiled.as_text())
        assert_trees_close("reordered", compiled(*placed), expected)
