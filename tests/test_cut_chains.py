"""Eight devices: mip chains whose large levels are cut over them, and whose small ones each device stores."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from tolerances import assert_trees_close

import jaxtex as jt

pytestmark = pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
GATHERED = re.compile(r"(\S+) all-gather\(")
TRILINEAR = jt.Sampler(mipmap_filter_mode="linear", address_mode="mirror")


def drawn(seed, *shape, low=0.0, high=1.0):
    return jnp.asarray(np.random.default_rng(seed).uniform(low, high, shape), np.float32)


def chain(texels, **options):
    return jt.build_mipmaps(jt.texture2d(texels, **options))


@pytest.fixture
def mesh():
    with jax.set_mesh(jax.make_mesh((8,), ("rows",), axis_types=(AxisType.Explicit,))):
        yield


def test_levels(mesh):
    """Of 64 rows three more levels are cut, in parts of 4, 2 and 1. What is gathered is the last of these alone."""
    texels = drawn(0, 64, 24, 2)
    expected = chain(texels)
    program = jax.jit(chain).lower(jax.device_put(texels, P("rows"))).compile()
    found = program(jax.device_put(texels, P("rows")))
    assert (found.cut.dimension, found.cut.parts, found.cut.num_cut) == (0, 8, 4)
    assert found.level_shapes == expected.level_shapes
    assert found.texels.sharding.spec[0] == "rows"
    assert found.texels.shape[0] == 64 * 24 + 32 * 12 + 16 * 6 + 8 * 3 + 8 * (4 * 1 + 2 * 1 + 1 * 1)
    for level, whole in zip(found.levels, expected.levels, strict=True):
        np.testing.assert_array_equal(level, whole)
    assert [level.sharding.spec[0] for level in found.levels] == ["rows"] * 4 + [None] * 3
    assert [some.split("{")[0] for some in GATHERED.findall(program.as_text())] == ["f32[8,3,2]"]


def test_levels_that_cannot_be_cut(mesh):
    """Parts of 5 rows have no half: each device has all levels. Layers are cut in every level."""
    texels = jax.device_put(drawn(0, 40, 9, 1), P("rows"))
    assert chain(texels).cut is None
    assert "Whole()" in jt.sharded.explain(chain, texels)
    stack = jt.build_mipmaps(jt.texture2d_layered(jax.device_put(drawn(1, 8, 7, 5, 1), P("rows"))))
    assert stack.cut.num_cut == stack.num_levels == 3


def reads(name):
    x, y, lod = drawn(1, 3, 16, 5, low=-1.0, high=2.0)
    lod = 2.5 * jnp.abs(lod)
    how = {"lod": lod} if name != "footprints" else {"ddx": (0.1 * lod, 0.1 * lod), "ddy": (0.01 * lod, 0.0)}
    sampler = jt.Sampler(mipmap_filter_mode="linear", address_mode="wrap", max_anisotropy=1 + (name == "footprints"))
    return lambda texels: jt.sample(chain(texels, border_color=0.5), (x, y), sampler, **how)


@pytest.mark.parametrize("name", ["levels", "footprints"])
def test_routed_reads(name, mesh):
    """Values, and the gradient with respect to the finest level. Neither that nor the next one is gathered."""
    texels, read = drawn(0, 64, 24, 2), reads(name)
    gradient = jax.grad(lambda texels: jnp.sum(read(texels) ** 2))
    both = lambda texels: (read(texels), gradient(texels) if name == "levels" else None)
    expected, placed = jax.jit(lambda texels: both(texels))(texels), jax.device_put(texels, P("rows"))
    with jt.sharded.using(jt.sharded.Routing()):
        program = jax.jit(both).lower(placed).compile()
        found, line = program(placed), jt.sharded.explain(read, placed)
    assert_trees_close("sum", found, expected)
    shapes = [re.findall(r"\d+", some.split("[")[1].split("]")[0]) for some in GATHERED.findall(program.as_text())]
    assert max(math.prod(map(int, shape)) for shape in shapes) < 32 * 12 * 2
    assert "Routing" in line


@pytest.mark.parametrize("mode", ["mirror", "border"])
def test_modes(mode, mesh):
    """Samples far outside find all their levels on one device."""
    texels, (x, y) = drawn(0, 64, 8, 1), drawn(1, 2, 64, 8, low=-3.0, high=4.0)
    sampler = jt.Sampler(mipmap_filter_mode="linear", address_mode=mode, filter_mode="cubic")
    read = lambda texels: jt.sample(chain(texels), (x, y), sampler, lod=drawn(2, 64, 8, high=6.0))
    with jt.sharded.using(jt.sharded.Routing()):
        found = jax.jit(read)(jax.device_put(texels, P("rows")))
    assert_trees_close("sum", found, read(texels))


def test_halo(mesh):
    """It reaches half as far in each coarser level. Samples that reach further are NaN."""
    texels, x = drawn(0, 64, 8, 1), drawn(1, 64, 8)
    lod = drawn(2, 64, 8, high=6.0)
    y = (jnp.arange(64, dtype=jnp.float32)[:, None] + drawn(3, 64, 8, low=-5.5, high=5.5)) / 64
    read = lambda texels, y: jt.sample(chain(texels), (x, y), TRILINEAR, lod=lod)
    both = lambda texels, y: (read(texels, y), jax.grad(lambda texels: jnp.sum(read(texels, y) ** 2))(texels))
    with jt.sharded.using(jt.sharded.Halo(6)):
        placed = jax.device_put(texels, P("rows"))
        found, far = jax.jit(both)(placed, y), jax.jit(read)(placed, y + 0.3)
    assert_trees_close("sum", found, jax.jit(lambda texels, y: both(texels, y))(texels, y))
    lost, expected = np.isnan(far), read(texels, y + 0.3)
    assert 0.2 < lost.mean() < 0.9
    assert_trees_close("sum", np.asarray(far)[~lost], np.asarray(expected)[~lost])


def test_other_accesses(mesh):
    """Single texels of a level, drawn ones, and a chain that is an argument of a compiled function."""
    texels, index = drawn(0, 64, 24, 1), jnp.arange(16, dtype=jnp.int32)
    placed = jax.device_put(texels, P("rows"))

    def accesses(texture):
        written = jt.surface_add(texture, 1.0, (index % 3, index), level=2)
        drawn_tap = jt.sample(texture, (0.3, 0.4), TRILINEAR, lod=1.5, key=jax.random.key(0))
        return *written.levels[1:], jt.fetch(texture, (index % 3, index), level=2), drawn_tap

    found = jax.jit(accesses)(chain(placed))
    assert_trees_close("sum", found, jax.jit(lambda texture: accesses(texture))(chain(texels)))
    stacked = jax.tree.map(lambda a: a[None], chain(placed))
    np.testing.assert_array_equal(stacked.levels[1][0], chain(texels).levels[1])
    with pytest.raises(ValueError, match="out_sharding is given with a level of detail"):
        jt.splat(drawn(1, 4, 1), (drawn(2, 4), drawn(3, 4)), (64, 8, 1), lod=1.0, out_sharding=P("rows"))


@pytest.mark.parametrize("method", [jt.sharded.Routing(), jt.sharded.Halo(8)], ids=["routing", "halo"])
def test_memory(method, mesh):
    """No device holds the whole texture, in a program for one of 8 MiB: neither in a read, nor a splat, nor a chain."""
    shape = (2048, 256, 4)
    texels, x, y, values = (
        jax.ShapeDtypeStruct(s, jnp.float32, sharding=jax.NamedSharding(jax.sharding.get_abstract_mesh(), P("rows")))
        for s in (shape, (2048, 8), (2048, 8), (2048, 8, 4))
    )

    def bytes_of(function, *args):
        return jax.jit(function).lower(*args).compile().memory_analysis().temp_size_in_bytes

    with jt.sharded.using(method):
        read = bytes_of(lambda texels, x, y: jt.sample(chain(texels), (x, y), TRILINEAR, lod=y), texels, x, y)
        splat = lambda values, x, y: jt.splat(values, (x, y), shape, out_sharding=P("rows")).texels
        assert max(read, bytes_of(splat, values, x, y)) < 2048 * 256 * 4 * 4
    with jt.sharded.using(jt.sharded.Whole()):
        assert bytes_of(splat, values, x, y) >= 2048 * 256 * 4 * 4
