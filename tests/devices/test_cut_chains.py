"""Eight devices: mip chains whose large levels are cut over them, and whose small ones each device stores."""

import dataclasses
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from tests.support.arrays import drawn
from tests.support.derivatives import with_gradients
from tests.support.tolerances import assert_trees_close

pytestmark = pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
GATHERED = re.compile(r"(\S+) all-gather\(")
ONE_ROUND = jt.sharded.Routing(slack=8)  # all samples travel at once, in programs of half the size
TRILINEAR = jt.Sampler(mipmap_filter_mode="linear", address_mode="mirror")


def chain(texels, **options):
    """Of texels along one axis or two."""
    return jt.build_mipmaps((jt.texture1d if texels.ndim == 2 else jt.texture2d)(texels, **options))


@jax.jit
def levels_of(texture):
    return texture.levels


def test_levels(mesh):
    """Of 64 rows three more levels are cut, in parts of 4, 2 and 1. What is gathered is the last of these alone."""
    texels, build = drawn(0, 64, 24, 2), jax.jit(chain)
    expected = build(texels)
    program = build.lower(jax.device_put(texels, P("rows"))).compile()
    found = program(jax.device_put(texels, P("rows")))
    assert (found.cut.dimension, found.cut.parts, found.cut.num_cut) == (0, 8, 4)
    assert found.level_shapes == expected.level_shapes
    assert found.texels.sharding.spec[0] == "rows"
    assert found.texels.shape[0] == 64 * 24 + 32 * 12 + 16 * 6 + 8 * 3 + 8 * (4 * 1 + 2 * 1 + 1 * 1)
    levels = levels_of(found)
    for level, whole in zip(levels, levels_of(expected), strict=True):
        np.testing.assert_array_equal(level, whole)
    assert [level.sharding.spec[0] for level in levels] == ["rows"] * 4 + [None] * 3
    assert [some.split("{")[0] for some in GATHERED.findall(program.as_text())] == ["f32[8,3,2]"]


def test_levels_that_cannot_be_cut(mesh):
    """Parts of 5 rows have no half: each device has all levels. Layers are cut in every level."""
    texels = jax.device_put(drawn(0, 40, 9, 1), P("rows"))
    assert chain(texels).cut is None
    assert "Whole()" in jt.sharded.explain(chain, texels)
    stack = jt.build_mipmaps(jt.texture2d_layered(jax.device_put(drawn(1, 8, 7, 5, 1), P("rows"))))
    assert stack.cut.num_cut == stack.num_levels == 3


def compared(read, texels, *coords):
    """Values and the gradient with respect to the finest level: of a cut texture, by a program, and of a whole one."""
    run, args = jax.jit(with_gradients(read)), (jax.device_put(texels, P("rows")), *coords)
    program = run.lower(*args).compile()
    return program, program(*args), run(texels, *coords)


def gathered_sizes(program):
    shapes = [re.findall(r"\d+", some.split("[")[1].split("]")[0]) for some in GATHERED.findall(program.as_text())]
    return [math.prod(map(int, shape)) for shape in shapes]


@pytest.mark.slow
def test_routed_footprints(mesh):
    """Each read along a footprint travels."""
    (x, y, side), texels = drawn(1, 3, 16, 5, low=-1.0, high=2.0), drawn(0, 64, 24, 2)
    side = np.float32(0.25) * np.abs(side)
    sampler = jt.Sampler(mipmap_filter_mode="linear", address_mode="wrap", max_anisotropy=2)
    how = {"ddx": (side, side), "ddy": (side / 10, np.float32(0))}
    read = jax.jit(lambda texels: jt.sample(chain(texels, border_color=0.5), (x, y), sampler, **how))
    expected, placed = read(texels), jax.device_put(texels, P("rows"))
    with jt.sharded.using(ONE_ROUND):
        program = read.lower(placed).compile()
    assert_trees_close("sum", program(placed), expected)
    assert max(gathered_sizes(program)) < 32 * 12 * 2
    assert "all-to-all" in program.as_text()


def test_samples_far_outside(mesh):
    """They find all their levels on one device."""
    texels, x, lod = drawn(0, 64, 1), drawn(1, 64, 8, low=-3.0, high=4.0), drawn(2, 64, 8, high=6.0)
    sampler = dataclasses.replace(TRILINEAR, address_mode="border")
    read = jax.jit(lambda texels: jt.sample(chain(texels), (x,), sampler, lod=lod))
    with jt.sharded.using(ONE_ROUND):
        found = read(jax.device_put(texels, P("rows")))
    assert_trees_close("sum", found, read(texels))


@pytest.mark.parametrize("arithmetic", ["float", pytest.param("hardware", marks=pytest.mark.slow)])
def test_halo(arithmetic, mesh):
    """It reaches half as far in each coarser level. Samples that reach further are NaN."""
    texels, lod = drawn(0, 64, 1), drawn(2, 64, 8, high=6.0)
    x = (np.arange(64, dtype=np.float32)[:, None] + drawn(3, 64, 8, low=-5.5, high=5.5)) / 64
    sampler = dataclasses.replace(TRILINEAR, arithmetic=arithmetic)
    read = lambda texels, x: jt.sample(chain(texels), (x,), sampler, lod=lod)
    with jt.sharded.using(jt.sharded.Halo(6)):
        program, found, expected = compared(read, texels, x)
        far, _ = program(jax.device_put(texels, P("rows")), x + np.float32(0.3))
    assert_trees_close("sum", found, expected)
    far, whole = np.asarray(far), np.asarray(jax.jit(read)(texels, x + np.float32(0.3)))
    lost = np.isnan(far)
    assert 0.2 < lost.mean() < 0.9
    assert_trees_close("sum", far[~lost], whole[~lost])


def test_other_accesses(mesh):
    """Single texels of a level, drawn ones, and a chain that is an argument of a compiled function."""
    texels, index = drawn(0, 64, 24, 1), np.arange(16, dtype=np.int32)
    placed = jax.device_put(texels, P("rows"))

    def accesses(texture):
        written = jt.surface_add(texture, 1.0, (index % 3, index), level=2)
        drawn_tap = jt.sample(texture, (0.3, 0.4), TRILINEAR, lod=1.5, key=jax.random.key(0))
        return *written.levels[1:], jt.fetch(texture, (index % 3, index), level=2), drawn_tap

    build, run = jax.jit(chain), jax.jit(accesses)
    cut, whole = build(placed), build(texels)
    assert_trees_close("sum", run(cut), run(whole))
    second_of_stack = jax.jit(lambda texture: jax.tree.map(lambda a: a[None], texture).levels[1][0])
    np.testing.assert_array_equal(second_of_stack(cut), second_of_stack(whole))
    with pytest.raises(ValueError, match="out_sharding is given with a level of detail"):
        jt.splat(drawn(1, 4, 1), (drawn(2, 4), drawn(3, 4)), (64, 8, 1), lod=1.0, out_sharding=P("rows"))


@pytest.mark.slow
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
    if isinstance(method, jt.sharded.Halo):
        with jt.sharded.using(jt.sharded.Whole()):
            assert bytes_of(splat, values, x, y) >= 2048 * 256 * 4 * 4


@pytest.mark.parametrize(
    "method", [jt.sharded.Halo(40), pytest.param(ONE_ROUND, marks=pytest.mark.slow)], ids=["halo", "routing"]
)
def test_weighted_reads(method, mesh):
    """Sums of weighted reads: neither the finest level nor the next one is gathered."""
    x, lod, weights = drawn(1, 3, 16, 5, low=0.0, high=1.0)
    x = (np.arange(16, dtype=np.float32)[:, None] + x) / 16
    sampler = jt.Sampler(mipmap_filter_mode="linear", address_mode="wrap")
    read = lambda texels, x, lod, weights: jt.nn.sample_weighted(chain(texels), (x,), weights, sampler, lod=lod)
    with jt.sharded.using(method):
        program, found, expected = compared(read, drawn(0, 512, 2), x, 2 * lod, weights)
    assert_trees_close("sum", found, expected)
    assert max(gathered_sizes(program)) < 256 * 2
