"""Eight devices: reads of a texture that is cut over them give the values and gradients of the whole texture."""

import contextlib
import functools
import re
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from jaxtex._checks.arguments import ReadArguments
from jaxtex._engine.arithmetic import FLOAT
from jaxtex._engine.describe.levels import Cut
from jaxtex._engine.describe.plan import layout_of
from jaxtex._engine.describe.spec import Read, TexelReader
from jaxtex._engine.rules import primitives
from jaxtex._engine.rules.meanings import are_available
from jaxtex._engine.sharded.counted import total_of, with_count
from jaxtex._engine.sharded.partition import Partition
from jaxtex._engine.sharded.read import DeviceTexels, by_halo, by_routing
from jaxtex._hardware import HARDWARE
from jaxtex._reads.calls import plan_of_call
from tests.support.tolerances import assert_trees_close

pytestmark = pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
PARTS, REACH = 8, 6
# Samples that travel do so in several rounds, or all in one, in programs of half the size.
CAPACITY, ALL = 3, 100
ONE_ROUND = jt.sharded.Routing(slack=PARTS)
COLLECTIVES = {"halo": "with_edges", "edges": "with_edges", "routing": "all_to_all", "whole": "all_gather"}


def drawn(seed, *shape, low=0.0, high=1.0):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def on_host(tree):
    """Arrays of NumPy, whose comparisons compile nothing."""
    return jax.tree.map(np.asarray, tree)


def engine_read(texels, operands, spec):
    return primitives.read(texels, None, Read(spec, operands))


def plan(texture, arguments, sampler, arithmetic=FLOAT):
    return plan_of_call(arithmetic, layout_of(texture), arguments, sampler, np.dtype(np.float32))


class ReadResult(NamedTuple):
    """The values of samples, and the mask of those that the method is to read."""

    values: jax.Array
    reached: jax.Array


def cut_read(method, spec, size, parts=PARTS, read=engine_read, capacity=ALL):
    """A read of texels, whose first dimension is cut, as are the samples; and which samples are right."""
    mesh = jax.make_mesh((parts,), ("rows",), axis_types=(AxisType.Auto,), devices=jax.devices()[:parts])
    partition = Partition(spec.axes, 0, ("rows",), Cut(0, parts), ((size,),))

    def on_device(texels, *operands):
        how = TexelReader(
            lambda texels, color, given: read(texels, given.operands, given.spec), takes_halo=method == "edges"
        )
        part = DeviceTexels(how, texels, None, partition)
        if method in ("halo", "edges"):
            values = by_halo(part, Read(spec, operands), REACH)
            reached = are_available(*partition.in_window(Read(spec, operands), REACH))
            return ReadResult(values, jnp.broadcast_to(reached, values.shape[:-1]))
        if method == "routing":
            values = by_routing(part, Read(spec, operands), min(capacity, operands[0].size))
        else:
            everywhere = jax.lax.all_gather(texels, "rows", axis=0, tiled=True)
            values = read(everywhere[:size], operands, spec)
        return ReadResult(values, jnp.ones(values.shape[:-1], bool))

    run = jax.shard_map(on_device, mesh=mesh, in_specs=P("rows"), out_specs=P("rows"))
    filling = partition.own * parts - size
    filled = lambda texels: jnp.pad(texels, [(0, filling), *[(0, 0)] * (texels.ndim - 1)])
    return jax.jit(lambda texels, *operands: run(filled(texels), *operands))


@functools.cache
def whole_read(spec, read=engine_read):
    """The same of the whole texture on one device."""
    return jax.jit(lambda texels, *operands: read(texels, operands, spec))


def derivatives(function):
    """Gradients with respect to texels and coordinates, and their derivative along a direction."""

    def run(*args):
        gradient = jax.grad(lambda *args: jnp.sum(function(*args) ** 2), tuple(range(len(args))))
        return jax.jvp(gradient, args, tuple(jnp.flip(a, -1) for a in args))

    return run


def where_reached(function, reached):
    """`function`, with zero for the samples that reach too far."""
    return lambda *args: jnp.where(reached[..., None], function(*args), 0)


def derivatives_of(function, filter_mode):
    """Of two orders, but of one where a filter has many taps."""
    return derivatives(function) if filter_mode == "linear" else jax.grad(lambda *args: jnp.sum(function(*args) ** 2))


@functools.cache
def whole_rows(mode, filter_mode):
    """A read of 29 rows, and a program of the whole texture: values, and derivatives of those that are reached."""
    texture, y = jt.texture1d(drawn(0, 29, 2)), drawn(1, 16, 5, low=-0.5, high=1.5)
    given = plan(texture, ReadArguments((y,)), jt.Sampler(address_mode=mode, filter_mode=filter_mode))
    spec = given.spec
    whole = lambda texels, *operands: engine_read(texels, operands, spec)

    @jax.jit
    def run(reached, *args):
        return whole(*args), derivatives_of(where_reached(whole, reached), filter_mode)(*args)

    return spec, (texture.texels, *given.operands), run


# Only routing looks at every address mode. The others ask whether it is cyclic.
@pytest.mark.parametrize(
    ("mode", "filter_mode", "method"),
    [
        *(("wrap", "linear", method) for method in ("halo", "edges", "routing", "whole")),
        *(("border", "cubic", method) for method in ("halo", "routing")),
        *(("mirror", "bspline", method) for method in ("edges", "routing")),
        *(("clamp", "point", method) for method in ("halo", "routing")),
    ],
)
def test_rows(mode, filter_mode, method):
    """Uneven rows: of 29 the last device stores one. Random samples take several rounds, or one; some reach too far."""
    spec, args, whole = whole_rows(mode, filter_mode)
    cut = cut_read(method, spec, 29, capacity=CAPACITY if mode == "wrap" else ALL)

    @jax.jit
    def run(*args):
        values, reached = cut(*args)
        right = where_reached(lambda *args: cut(*args).values, reached)
        return values, reached, derivatives_of(right, filter_mode)(*args)

    traced = run.trace(*args)
    values, reached, found = on_host(traced.lower().compile()(*args))
    expected, wanted = on_host(whole(reached, *args))
    np.testing.assert_array_equal(values[reached], expected[reached])
    assert_trees_close("sum", found, wanted, 2**8)
    share = reached.mean()
    assert 0.3 < share < 0.95 if method in ("halo", "edges") else share == 1
    assert COLLECTIVES[method] in str(traced.jaxpr)


def test_means_of_several_reads():
    """Along a footprint, each read must be within reach; those without weight need not be."""
    texture, (x, y) = jt.texture2d(drawn(0, 24, 9, 1)), drawn(1, 2, 8, 6)
    y = (y + np.arange(8, dtype=np.float32)[:, None]) / 8
    side = drawn(2, 8, 6, high=0.3), drawn(3, 8, 6, high=0.3)
    arguments = ReadArguments((x, y), None, None, None, side, tuple(s * np.float32(0.1) for s in side[::-1]))

    @jax.jit
    def both(texture, arguments):
        given = plan(texture, arguments, jt.Sampler(max_anisotropy=4))
        spec = given.spec
        assert spec.num_reads > 1
        args = texture.texels, *given.operands
        return *cut_read("halo", spec, 24)(*args), whole_read(spec)(*args)

    values, reached, expected = on_host(both(texture, arguments))
    np.testing.assert_array_equal(values[reached], expected[reached])
    assert reached.mean() > 0.8


@pytest.mark.parametrize("method", ["routing", "whole"])
def test_layers(method):
    """A layer is an axis like any other."""
    texture = jt.texture2d_layered(drawn(0, 11, 5, 6, 1))
    x, y = drawn(1, 2, 8, 4, low=-0.2, high=1.2)
    layer = np.random.default_rng(2).integers(-1, 13, (8, 4), np.int32)
    given = plan(texture, ReadArguments((x, y), layer), jt.Sampler())
    spec = given.spec
    found = on_host(cut_read(method, spec, 11)(texture.texels, *given.operands))
    np.testing.assert_array_equal(found.values, whole_read(spec)(texture.texels, *given.operands))
    assert found.reached.all()


@pytest.mark.parametrize("method", ["halo", "routing"])
def test_hardware_arithmetic(method):
    texture, y = jt.texture1d(drawn(0, 40, 2)), drawn(1, 8, 6)
    given = plan(texture, ReadArguments((y,)), jt.Sampler(arithmetic="hardware"), HARDWARE)
    spec = given.spec
    values, reached = on_host(cut_read(method, spec, 40, read=hardware_read)(texture.texels, *given.operands))
    expected = on_host(whole_read(spec, hardware_read)(texture.texels, *given.operands))
    np.testing.assert_array_equal(values[reached], expected[reached])


def hardware_read(texels, operands, spec):
    from jaxtex._hardware import read

    return read.read(texels, None, Read(spec, operands))


@pytest.mark.parametrize("parts", [1, 2])
def test_few_parts(parts):
    """Two devices exchange what the other one needs alone, here in several rounds, of which the last is not full."""
    texture, y = jt.texture1d(drawn(0, 6, 2)), drawn(1, 4, 6)
    given = plan(texture, ReadArguments((y,)), jt.Sampler(address_mode="wrap"))
    spec = given.spec
    expected = on_host(whole_read(spec)(texture.texels, *given.operands))
    for method in COLLECTIVES:
        found = on_host(cut_read(method, spec, 6, parts, capacity=5)(texture.texels, *given.operands))
        np.testing.assert_array_equal(found.values, expected)
        assert found.reached.all()


@pytest.mark.parametrize("method", ["halo", "edges"])
def test_two_devices_exchange_rows_once(method):
    """Each has one neighbor: what it receives lies before its own rows or after them."""
    texture, y = jt.texture1d(drawn(0, 15, 2)), drawn(1, 4, 6)
    given = plan(texture, ReadArguments((y,)), jt.Sampler(address_mode="clamp"))
    spec, args = given.spec, (texture.texels, *given.operands)
    cut, whole = cut_read(method, spec, 15, 2), whole_read(spec)

    @jax.jit
    def run(*args):
        values, reached = cut(*args)
        both = (where_reached(read, reached) for read in (lambda *args: cut(*args).values, whole))
        return values, reached, [derivatives(read)(*args) for read in both]

    values, reached, (found, wanted) = on_host(run(*args))
    np.testing.assert_array_equal(values[reached], on_host(whole(*args))[reached])
    assert_trees_close("sum", found, wanted, 2**8)
    assert 0.3 < reached.mean() < 1
    assert len(re.findall(r"collective-permute(-start)?\(", cut.lower(*args).compile().as_text())) == 1


# The same calls, under explicit mesh axes


def calls():
    """Reads of a texture, or of its first column, by name, and the collectives that they may need."""
    x, y = drawn(1, 2, 16, 5, low=-0.2, high=1.2)
    index = np.arange(-3, 60, dtype=np.int32)
    limited = jt.Sampler(filter_mode="cubic", limit="taps")
    border = jt.Sampler(address_mode="border", arithmetic="hardware")
    of, column = jt.texture2d, lambda t, **options: jt.texture1d(t[:, 0], **options)
    travel, everything = {"all-to-all", "collective-permute"}, {"all-gather"}
    return {
        "sample": (lambda t, x, y: jt.sample(column(t), (y,), limited), travel),
        "border": (lambda t, x, y: jt.sample(column(t, border_color=2.0), (y,), border), travel),
        "fetch": (lambda t, x, y: jt.fetch(of(t), (index, index)), {"all-to-all", "all-gather"}),
        "gather": (lambda t, x, y: jt.gather(of(t), (x, y)), {"all-to-all"}),
        "rotate": (lambda t, x, y: jt.warp.rotate(t, 20.0), travel),
        "resize": (lambda t, x, y: jt.warp.resize(t, (30, 20)), everything),
        "mips": (lambda t, x, y: jt.sample(jt.build_mipmaps(of(t)), (x, y), lod=1.3), travel | everything),
    }, (x, y)


FOUND = re.compile("all-gather|all-to-all|collective-permute|reduce-scatter")


def collectives(program):
    return set(FOUND.findall(program.as_text()))


def both_of(function):
    """Values, and gradients with respect to texels."""

    def run(texels, *coords):
        values, pull = jax.vjp(lambda texels: function(texels, *coords), texels)
        return values, pull(2 * values)[0]

    return run


@functools.cache
def whole_call(name):
    """A call as a program, its texels and coordinates, and what it returns without a mesh.

    All but `gather`, which is four reads, return the gradient too.
    """
    function, _ = calls()[0][name]
    program, args = jax.jit(function if name == "gather" else both_of(function)), (drawn(0, 64, 48, 2), *calls()[1])
    return program, args, program(*args)


CUTS = {"rows": P("rows"), "columns": P(None, "rows")}
CUT_CALLS = [
    *((name, "rows") for name in ("sample", "border", "fetch", "gather", "resize")),
    *((name, "columns") for name in ("fetch", "rotate", "resize", "mips")),
]
ONE_ROUND_CALLS = ("border", "gather", "rotate", "mips")  # jaxtex chooses how the others meet their texels


@pytest.mark.slow
@pytest.mark.parametrize(("name", "cut"), CUT_CALLS)
def test_the_same_calls(name, cut):
    """Values, and gradients that are cut as the texture is. What travels are samples, not texels."""
    (function, allowed), (call, args, expected) = calls()[0][name], whole_call(name)
    mesh = jax.make_mesh((PARTS,), ("rows",), axis_types=(AxisType.Explicit,))
    how = jt.sharded.using(ONE_ROUND) if name in ONE_ROUND_CALLS else contextlib.nullcontext()
    with jax.set_mesh(mesh), how:
        args = [
            jax.device_put(a, NamedSharding(mesh, spec)) for a, spec in zip(args, (CUTS[cut], P("rows"), P("rows")))
        ]
        program = call.lower(*args).compile()
        found = program(*args)
    assert_trees_close("sum", found, expected, 2**8)
    assert name == "gather" or found[1].sharding.is_equivalent_to(args[0].sharding, 3)
    used = collectives(program)
    if not used <= allowed:  # The transpose of a gather may scatter; the values alone may not.
        with jax.set_mesh(mesh):
            used = collectives(jax.jit(function).lower(*args).compile())
    assert used <= allowed


def kinds():
    """Reads of other kinds, by name: texels, how they are cut and in how many parts, and coordinates."""
    x, y, z = drawn(1, 3, 18, 4, low=-1.0)
    sphere = jt.Sampler(address_mode="sphere")
    layer, latitudes = np.arange(18, dtype=np.int32)[:, None] // 3, np.linspace(-0.9, 1.9, 14, dtype=np.float32) ** 3
    return {
        "sums": (
            lambda t, *c: jt.nn.sample_weighted(jt.texture2d(t), c[:2], c[2]), (64, 8, 1), P("rows"), 8, (x, y, z),
        ),
        "faces": (lambda t, *c: jt.sample(jt.cubemap(t), c), (6, 4, 4, 1), P("rows"), 3, (x, y, z)),
        "rows of faces": (lambda t, *c: jt.sample(jt.cubemap(t), c), (6, 8, 8, 1), P(None, "rows"), 2, (x, y, z)),
        "longitudes": (lambda t, *c: jt.sample(jt.texture2d(t), c, sphere), (8, 12, 1), P(None, "rows"), 3, (x, y)),
        "levels of a sphere": (
            lambda t, *c: jt.sample(jt.texture3d(t), c, sphere), (6, 8, 4, 1), P("rows"), 3, (x, y, z),
        ),
        "latitudes with knots": (
            lambda t, *c: jt.sample(jt.texture2d(t, knots=(None, latitudes)), c, jt.Sampler(filter_mode="lagrange")),
            (12, 8, 1), P("rows"), 3, (x, y),
        ),
        "layers": (
            lambda t, *c: jt.sample(jt.cubemap_layered(t), c, layer=layer), (6, 6, 4, 4, 1), P("rows"), 3, (x, y, z),
        ),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", list(kinds()))
def test_other_kinds(name):
    """Taps of one sample may lie on several faces, or a half turn away: it travels to each, and sums are added."""
    function, shape, spec, parts, coords = kinds()[name]
    texels = drawn(0, *shape)
    both = jax.jit(both_of(function) if name == "faces" else function)
    expected = both(texels, *coords)
    mesh = jax.make_mesh((parts,), ("rows",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:parts])
    with jax.set_mesh(mesh), jt.sharded.using(ONE_ROUND):
        placed = jax.device_put(texels, spec)
        program = both.lower(placed, *coords).compile()
        found = program(placed, *coords)
    assert_trees_close("sum", found, expected)
    assert ("collective-permute" if parts == 2 else "all-to-all") in collectives(program)
    gathered = re.findall(r"(\S+) all-gather\(", program.as_text())
    assert all(f"[{','.join(map(str, shape))}]" not in some for some in gathered), gathered


turned = jax.jit(jt.warp.rotate)
TRAVEL = {jt.sharded.Halo: "collective-permute", jt.sharded.Routing: "all-to-all"}


@pytest.mark.parametrize("method", [jt.sharded.Halo(4), ONE_ROUND], ids=["halo", "routing"])
def test_batches(method):
    """Images are cut along a batch axis of the mesh, and their rows along another one."""
    images, degrees = drawn(0, 4, 16, 6, 1), np.linspace(-4, 4, 4, dtype=np.float32)
    mesh = jax.make_mesh((2, 4), ("batch", "rows"), axis_types=(AxisType.Explicit,) * 2)
    with jax.set_mesh(mesh), jt.sharded.using(method):
        placed = jax.device_put(images, P("batch", "rows")), jax.device_put(degrees, P("batch"))
        program = turned.lower(*placed).compile()
        found = program(*placed)
    assert TRAVEL[type(method)] in collectives(program)
    assert found.sharding.spec[:2] == ("batch", "rows")
    assert_trees_close("sum", found, turned(images, degrees))


def test_few_samples():
    """They are fewer than devices, or a single one: each device gets all texels, or samples are filled up."""
    texels, several, one = drawn(0, 64, 48, 2), (drawn(1, 3), drawn(2, 3)), (0.3, 0.4)
    reads = jax.jit(lambda texels: [jt.sample(jt.texture2d(texels), coords) for coords in (several, one)])
    expected = reads(texels)
    with jax.set_mesh(jax.make_mesh((PARTS,), ("rows",), axis_types=(AxisType.Explicit,))):
        found = reads(jax.device_put(texels, P("rows")))
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


# What the caller decides


def image_in_rows(rows=64, columns=48):
    """An image on a mesh of eight devices, its rows cut; and the whole image."""
    whole = drawn(0, rows, columns, 2)
    return jax.device_put(whole, P("rows")), whole


@pytest.fixture
def mesh():
    with jax.set_mesh(jax.make_mesh((PARTS,), ("rows",), axis_types=(AxisType.Explicit,))):
        yield


def test_halo_of_a_warp(mesh):
    """Rows move to neighbors alone. The same function compiles again under another method."""
    image, _ = image_in_rows()
    turn = jax.jit(lambda image: jt.warp.rotate(image, 3.0))
    both = jax.jit(both_of(turn))
    with jt.sharded.using(jt.sharded.Halo(4)):
        program = both.lower(image).compile()
        found, line = program(image), jt.sharded.explain(turn, image)
    assert collectives(program) == {"collective-permute"}
    assert_trees_close("sum", found, turn_of_one_device(), 2**8)
    assert found[0].sharding.spec[0] == found[1].sharding.spec[0] == "rows"
    assert "axis 0 in 8 parts: Halo(reach=4)" in line
    assert "Routing" in jt.sharded.explain(turn, image)


@functools.cache
def turn_of_one_device():
    """The turned image, and the gradient of its squares."""
    return jax.jit(both_of(lambda image: jt.warp.rotate(image, 3.0)))(drawn(0, 64, 48, 2))


def test_automatic_axes():
    """`jax.sharding.explicit_axes` says how the image is cut, of which the trace knows nothing."""
    whole = drawn(0, 64, 48, 2)
    turn = lambda image: jt.warp.rotate(image, 3.0)
    of_rows = jax.sharding.explicit_axes(turn, axes=("rows",), in_sharding=(P("rows"),))
    mesh = jax.make_mesh((PARTS,), ("rows",), axis_types=(AxisType.Auto,))
    with jax.set_mesh(mesh), jt.sharded.using(jt.sharded.Halo(4)):
        image = jax.device_put(whole, P("rows"))
        program = jax.jit(both_of(of_rows)).lower(image).compile()
        assert collectives(program) == {"collective-permute"}
        found = program(image)
    assert_trees_close("sum", found, turn_of_one_device(), 2**8)


def test_samples_beyond_a_halo(mesh):
    """They are NaN, have no gradient, and are counted under checkify."""
    image, whole = image_in_rows()
    turn = lambda image: jt.warp.rotate(image, 30.0)
    with jt.sharded.using(jt.sharded.Halo(4)):
        error, found = checkify.checkify(jax.jit(turn))(image)
    found, expected = on_host((found, jax.jit(turn)(whole)))
    lost = np.isnan(found).any(-1)
    assert 0.2 < lost.mean() < 0.8
    assert_trees_close("sum", found[~lost], expected[~lost], 2**8)
    assert f"{lost.sum()} samples need texels further than 4" in error.get()
    with jt.sharded.using(jt.sharded.Halo(4)):
        twice = jax.jit(lambda image: jt.sharded.count_beyond(lambda image: turn(image) + turn(image), image))
        assert twice(image) == 2 * lost.sum()
        each = jax.vmap(jax.grad(lambda image, degrees: jnp.sum(jt.warp.rotate(image, degrees))), (None, 0))
        assert jt.sharded.count_beyond(each, image, np.float32([0, 30, 30])) == 2 * lost.sum()
    assert jt.sharded.count_beyond(turn, image) == 0  # samples travel
    with jt.sharded.using(jt.sharded.Halo(30)):  # the whole image
        assert_trees_close("sum", jax.jit(turn)(image), expected, 2**8)


def test_samples_of_the_padding_are_not_beyond_a_halo(mesh):
    """As many samples as no number of devices divides: the last one, which is padded with, counts once."""
    image, _ = image_in_rows()
    y = np.linspace(1, 63, PARTS * 2 + 1, dtype=np.float32)
    y[-1] = 1
    read = lambda image: jt.sample(jt.texture2d(image), (np.full_like(y, 3), y), jt.Sampler(normalized_coords=False))
    with jt.sharded.using(jt.sharded.Halo(7)):
        found = on_host(read(image))
        lost = np.isnan(found).any(-1)
        assert lost[-1]
        assert jt.sharded.count_beyond(read, image) == lost.sum()


def test_numbers_beside_values_are_added_up_through_a_program():
    """A loop counts all of its turns, a branch what is taken, and a batch all examples."""

    def program(x):
        turn = lambda value, number: (with_count(value, number), with_count(value, 10 * number))
        value, _ = jax.lax.scan(turn, x, jnp.arange(1, 4))
        value = jax.lax.cond(value > 1, lambda v: with_count(v, jnp.int32(100)), lambda v: v, value)
        return jax.vmap(with_count, (None, 0))(value, 1000 * jnp.arange(3))

    assert total_of(program, np.float32(2)) == 6 + 60 + 100 + 3000
    assert total_of(program, np.float32(0)) == 6 + 60 + 3000
    loop = lambda x: jax.lax.while_loop(lambda v: v < 1, lambda v: with_count(v + 1, jnp.int32(1)), x)
    with pytest.raises(NotImplementedError, match="stands in 'while', in which samples cannot be counted"):
        total_of(loop, np.float32(0))


@jax.jit
def gradient_of_flow(image, flow):
    return jax.grad(lambda *args: jnp.sum(jt.warp.warp_flow(*args) ** 2), (0, 1))(image, flow)


@pytest.mark.slow
@pytest.mark.parametrize("method", [jt.sharded.Halo(6), ONE_ROUND], ids=["halo", "routing"])
def test_points_in_one_array(method, mesh):
    """A flow is an operand of several numbers."""
    (image, whole), flow = image_in_rows(), drawn(3, 64, 48, 2, low=-1.0)
    with jt.sharded.using(method):
        program = gradient_of_flow.lower(image, flow).compile()
        found = program(image, flow)
    assert TRAVEL[type(method)] in collectives(program)
    assert_trees_close("sum", found, gradient_of_flow(whole, flow), 2**8)


def test_drawn_taps(mesh):
    """The derivative of a read of one drawn tap is that of another read, so samples do not travel."""
    (image, whole), (x, y) = image_in_rows(), drawn(1, 2, 16, 5, low=0.2, high=0.8)

    def drawn_tap(image, x):
        return jt.sample(jt.texture2d(image), (x, y), key=jax.random.key(0))

    gradient = jax.jit(jax.grad(lambda image, x: jnp.sum(drawn_tap(image, x)), 1))
    with jt.sharded.using(jt.sharded.Routing()):
        assert "Whole" in jt.sharded.explain(drawn_tap, image, x)
        found = gradient(image, x)
    assert_trees_close("sum", found, gradient(whole, x), 2**8)


def test_methods_that_do_not_fit(mesh):
    with pytest.raises(ValueError, match="reach is -1, expected an integer of at least 0"):
        jt.sharded.using(jt.sharded.Halo(-1)).__enter__()
    with pytest.raises(ValueError, match="slack is 0, expected a number above 0"):
        jt.sharded.using(jt.sharded.Routing(0)).__enter__()
    with pytest.raises(TypeError, match="method is 'halo', expected jaxtex"):
        jt.sharded.using("halo").__enter__()
    image, whole = image_in_rows()
    assert jt.sharded.explain(lambda a: a + 1, image) == "No texture is sharded."
    column = jax.jit(lambda image: jt.sample(jt.texture1d(image[:, 0]), (drawn(1, 16),)))
    with jt.sharded.using(jt.sharded.Routing(0.1)):
        found = column(image)
    np.testing.assert_array_equal(found, column(whole))
