"""Eight devices: writes into a texture that is cut over them give the texels and gradients of the whole texture."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from jaxtex._jax.versions import varying_axes
from tests.support.arrays import drawn
from tests.support.derivatives import with_gradients
from tests.support.tolerances import assert_trees_close

pytestmark = pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
FOUND = re.compile("all-gather|all-to-all|collective-permute|reduce-scatter")
# How values and coordinates are cut: not at all, or over the devices of the texture.
PLACES = {"everywhere": P(), "cut": P("rows")}


def whole_numbers(seed, low, high, *shape):
    return np.random.default_rng(seed).integers(low, high, shape, np.int32)


def splat(values, x, out_sharding=None):
    """Onto one axis of 64 texels."""
    sampler = jt.Sampler(address_mode="wrap")
    return jt.splat(values, (x,), (64, 2), sampler, out_sharding=out_sharding).texels


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "spec"), [(jt.sharded.Routing(0.5), P("rows")), (jt.sharded.Halo(9), P())], ids=["routing", "halo"]
)
def test_splat(method, spec, mesh):
    """Samples are cut, or all devices have them. They lie near the rows of their device, and around the edge.

    Derivatives are cut reads and their derivatives.
    """
    rows = np.arange(32, dtype=np.float32)[:, None]
    args = drawn(0, 32, 5, 2), (rows + drawn(2, 32, 5, low=-3.0, high=3.0)) / 32
    both = lambda function: jax.jit(with_gradients(function, (0, 1)))
    placed, cut = [jax.device_put(a, spec) for a in args], lambda *args: splat(*args, P("rows"))
    with jt.sharded.using(method):
        compiled = both(cut).lower(*placed).compile()
        found, lines = compiled(*placed), jt.sharded.explain(cut, *placed)
    assert found[0].sharding.spec[0] == "rows"
    assert_trees_close("sum", found, both(splat)(*args))
    # The gradients of samples that all devices have are gathered.
    gathered = {"all-gather"} if spec == P() else set()
    assert set(FOUND.findall(compiled.as_text())) <= {"all-to-all", "collective-permute"} | gathered
    assert f"axis 0 in 8 parts: {type(method).__name__}" in lines


@pytest.mark.parametrize("method", [jt.sharded.Routing(), jt.sharded.Halo(9)], ids=["routing", "halo"])
def test_each_device_of_another_axis_splats_its_own(method):
    """Inside `jax.shard_map` along one axis of a mesh, texels are cut along another one, and nothing is added up."""
    mesh, found = jax.make_mesh((2, 4), ("examples", "rows"), axis_types=(AxisType.Explicit,) * 2), []

    def each(values, x):
        texels = splat(values, x, P("rows"))
        found.append((varying_axes(texels), jax.typeof(texels).sharding.spec[0]))
        return texels

    spec = P("examples")
    on_examples = jax.shard_map(each, mesh=mesh, in_specs=spec, out_specs=spec, axis_names={"examples"})
    with jax.set_mesh(mesh), jt.sharded.using(method):
        jax.jit(on_examples).trace(*(jax.device_put(a, spec) for a in (drawn(0, 64, 2), drawn(1, 64))))
    assert found == [({"examples"}, "rows")]


def test_values_beyond_a_halo(mesh):
    """They are dropped, and counted under checkify: one for each sample, none for those that fill up parts."""
    values, x = np.ones((3, 1), np.float32), np.float32([0.1, 0.3, 0.99])
    function = lambda *args: jt.splat(*args, (64, 1), out_sharding=P("rows")).texels
    with jt.sharded.using(jt.sharded.Halo(16)):
        error, found = checkify.checkify(jax.jit(function))(values, (x,))
    assert "1 samples need texels further than 16" in error.get()
    assert_trees_close("sum", np.asarray(found).sum(), np.float32(2))


@pytest.mark.parametrize(
    ("spec", "sizes"), [(P("rows"), (64, 8, 1)), (P(None, "rows"), (4, 64, 1))], ids=["rows", "columns"]
)
def test_few_values(spec, sizes, mesh):
    """Each device adds to the whole texture where less moves so, or where samples cannot be cut."""
    args = np.ones(1, np.float32), (0.3, 0.4)
    found = jt.splat(*args, sizes, out_sharding=spec).texels
    np.testing.assert_array_equal(found, jt.splat(*args, sizes).texels)
    assert found.sharding.spec == P(*spec, *[None] * (3 - len(spec)))


@pytest.mark.slow
def test_forward_warp(mesh):
    """The result is cut as the image is; the flow may be everywhere."""
    image, flow = drawn(0, 64, 6, 2), drawn(1, 64, 6, 2, low=-3.0, high=3.0)

    @jax.jit
    def values(image, flow):
        return jt.warp.forward_warp(image, flow, return_coverage=True)

    @jax.jit
    def gradient(image, flow):
        return jax.grad(lambda *args: jnp.sum(jt.warp.forward_warp(*args, mode="sum") ** 2), (0, 1))(image, flow)

    args = jax.device_put(image, P("rows")), flow
    with jt.sharded.using(jt.sharded.Halo(4)):
        program = values.lower(*args).compile()
        found = program(*args), gradient(*args)
    assert_trees_close("sum", found, (values(image, flow), gradient(image, flow)), 2**8)
    assert found[0][0].sharding.spec[0] == "rows"
    assert set(FOUND.findall(program.as_text())) == {"collective-permute"}
    scored = jax.jit(lambda image, flow: jt.warp.forward_warp(image, flow, 300 * flow[..., 0]))
    assert_trees_close("sum", scored(*args), scored(image, flow), 2**8)
    smaller = jax.eval_shape(lambda *args: jt.warp.forward_warp(*args, output_shape=(30, 6)), *args)
    assert smaller.sharding.spec[0] is None


def test_out_shardings_that_do_not_fit(mesh):
    with pytest.raises(ValueError, match="out_sharding names 'columns', which is no explicit axis"):
        splat(drawn(0, 4, 2), drawn(1, 4), P("columns"))
    with pytest.raises(TypeError, match="out_sharding is a str, expected a jax"):
        splat(drawn(0, 4, 2), drawn(1, 4), "rows")


def accesses(texels, values, x, y):
    """Every write of single texels, in floats, bytes and halves; some fall outside."""
    byte = lambda a: a.astype(jnp.uint8)
    half = lambda a: a.astype(jnp.bfloat16)
    of = jt.texture2d
    clamp = {"boundary_mode": "clamp"}
    return {
        "write": jt.surface_write(of(texels), values, (x, y)).texels,
        "bytes": jt.surface_write(of(byte(texels)), byte(values), (x, y), **clamp).texels,
        "halves": jt.surface_add(of(half(texels)), half(values), (x, y)).texels,
        "min": jt.surface_min(of(texels), values, (x, y), **clamp).texels,
        "read": jt.surface_read(of(texels), (x, y)),
    }


@jax.jit
def writes_and_gradients(texels, values, x, y):
    """Without the read, which travels as any other, and bytes; also the gradient of the sum of squares of floats."""

    def by_dtype(texels, values):
        found = accesses(texels, values, x, y)
        return {name: found[name] for name in ("write", "min")}, {"halves": found["halves"]}

    floats, pull, others = jax.vjp(by_dtype, texels, values, has_aux=True)
    return floats | others, pull({name: 2 * a for name, a in floats.items()})


@pytest.mark.parametrize("place", PLACES)
def test_surfaces(place, mesh):
    """Equal to the bit, whichever of several samples at a texel is the last or the first, on whichever device."""
    args = drawn(0, 24, 6, 3), np.round(drawn(1, 16, 25, 3, high=9.0)) / 9
    x, y = whole_numbers(2, -2, 8, 16, 25), whole_numbers(3, -2, 26, 16, 25)

    placed = jax.device_put(args[0], P("rows")), *(jax.device_put(a, PLACES[place]) for a in (args[1], x, y))
    run = writes_and_gradients if place == "cut" else jax.jit(lambda *args: (accesses(*args), None))
    found, expected = run(*placed), run(*args, x, y)
    assert_trees_close("sum", found[1], expected[1])
    for name, result in expected[0].items():
        np.testing.assert_array_equal(found[0][name], result, err_msg=name)
        assert name == "read" or found[0][name].sharding.spec[0] == "rows"


def test_samples_travel_to_texels_alone(mesh):
    """Neither the texture nor its samples are gathered. Samples that all devices have need no collective."""
    texels = jax.device_put(drawn(0, 24, 6, 1), P("rows"))
    x, y, values = whole_numbers(1, 0, 6, 32), whole_numbers(2, 0, 24, 32), drawn(3, 32, 1)
    write = lambda *args: jt.surface_write(jt.texture2d(args[0]), args[1], args[2:], unique_indices=True).texels
    everywhere, cut = (texels, values, x, y), (texels, *(jax.device_put(a, P("rows")) for a in (values, x, y)))
    programs = [jax.jit(write).lower(*args).compile().as_text() for args in (everywhere, cut)]
    assert [set(FOUND.findall(program)) for program in programs] == [set(), {"all-to-all"}]
    assert "Routing(slack=1.1)" in jt.sharded.explain(write, *cut)
    assert "each device receives all samples, and writes to its own texels" in jt.sharded.explain(write, *everywhere)
    with jt.sharded.using(jt.sharded.Whole()):
        assert "receives all samples" in jt.sharded.explain(write, *cut)


def test_along_two_axes():
    """A texture that is cut along two axes, and one whose rows are cut over two axes of the mesh; samples over one."""
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
    texels, values = drawn(0, 24, 6, 1), drawn(1, 32, 1)
    x, y = whole_numbers(2, 0, 6, 32), whole_numbers(3, 0, 24, 32)
    write = jax.jit(lambda *args: jt.surface_write(jt.texture2d(args[0]), args[1], args[2:]).texels)
    expected = write(texels, values, x, y)
    place = lambda a, *names: jax.device_put(a, NamedSharding(mesh, P(*names)))
    lines = {("a", "b"): "axes 0 and 1 in 4 and 2 parts: Whole()", (("a", "b"),): "receives all samples"}
    for names, line in {**lines, ("a",): "Routing"}.items():
        args = place(texels, *names), *(place(a, "a") for a in (values, x, y))
        np.testing.assert_array_equal(write(*args), expected)
        assert line in jt.sharded.explain(write, *args)
