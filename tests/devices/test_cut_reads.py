"""Eight devices: reads of a texture that is cut over them give the values and gradients of the whole texture."""

import contextlib
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from jaxtex._engine.sharded.counted import total_of, with_count
from tests.support.arrays import drawn, on_host
from tests.support.derivatives import with_gradients
from tests.support.tolerances import assert_trees_close

pytestmark = pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
PARTS, HALO = 8, jt.sharded.Halo(6)
# Samples that travel do so in several rounds, or all in one, in programs of half the size.
ROUNDS, ONE_ROUND = jt.sharded.Routing(0.3), jt.sharded.Routing(slack=PARTS)
TRAVEL = {jt.sharded.Halo: "collective-permute", jt.sharded.Routing: "all-to-all"}

FOUND = re.compile("all-gather|all-to-all|collective-permute|reduce-scatter")


def collectives(program):
    return set(FOUND.findall(program.as_text()))


# With a border color a part gets rows of its neighbors in one array, and else in arrays beside its own.
@pytest.mark.parametrize(
    ("mode", "filter_mode", "method", "parts"),
    [
        *(("wrap", "linear", method, PARTS) for method in (HALO, ROUNDS)),
        *(("border", "cubic", HALO, PARTS), ("mirror", "bspline", ONE_ROUND, PARTS), ("clamp", "linear", HALO, 2)),
    ],
)
def test_rows(mode, filter_mode, method, parts):
    """Values, gradients, and of one read the second order: of the samples that a method reaches."""
    texels, y = drawn(0, 32, 2), drawn(1, 16, 5, low=-0.5, high=1.5)
    color, sampler = 0.5 if mode == "border" else None, jt.Sampler(address_mode=mode, filter_mode=filter_mode)
    read = lambda texels, y: jt.sample(jt.texture1d(texels, border_color=color), (y,), sampler)

    def derivatives(reached, *args):
        loss = lambda *args: jnp.sum(jnp.where(reached[..., None], read(*args), 0) ** 2)
        gradient = jax.grad(loss, (0, 1))
        if mode != "wrap":
            return gradient(*args)
        return jax.jvp(gradient, args, tuple(jnp.flip(a, -1) for a in args))

    def run(*args):
        values = read(*args)
        reached = ~jnp.isnan(values).any(-1)
        return values, reached, derivatives(reached, *args)

    mesh = jax.make_mesh((parts,), ("rows",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:parts])
    with jax.set_mesh(mesh), jt.sharded.using(method):
        placed = [jax.device_put(a, P("rows")) for a in (texels, y)]
        program = jax.jit(run).lower(*placed).compile()
        values, reached, found = on_host(program(*placed))
    expected, wanted = on_host(jax.jit(lambda *args: (read(*args[1:]), derivatives(*args)))(reached, texels, y))
    assert TRAVEL[type(method)] in collectives(program) or parts == 2
    assert 0.3 < reached.mean() < 0.95 if method is HALO else reached.all()
    assert_trees_close("reordered", values[reached], expected[reached])
    assert_trees_close("sum", found, wanted, 2**8)


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
        "rotate": (lambda t, x, y: jt.warp.rotate(t, angle=0.349), travel),
        "resize": (lambda t, x, y: jt.warp.resize(t, (30, 20)), everything),
        "mips": (lambda t, x, y: jt.sample(jt.build_mipmaps(of(t)), (x, y), lod=1.3), travel | everything),
    }, (x, y)


@functools.cache
def whole_call(name):
    """A call as a program, its texels and coordinates, and what it returns without a mesh.

    All but `gather`, which is four reads, return the gradient too.
    """
    function, _ = calls()[0][name]
    program = jax.jit(function if name == "gather" else with_gradients(function))
    args = drawn(0, 64, 48, 2), *calls()[1]
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
    assert name == "gather" or found[1][0].sharding.is_equivalent_to(args[0].sharding, 3)
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
    both = jax.jit(with_gradients(function) if name == "faces" else function)
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


turned = jax.jit(lambda images, degrees: jt.warp.rotate(images, angle=jnp.deg2rad(degrees)))


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


def test_halo_of_a_warp(mesh):
    """Rows move to neighbors alone. The same function compiles again under another method."""
    image, _ = image_in_rows()
    turn = jax.jit(lambda image: jt.warp.rotate(image, angle=0.0524))
    both = jax.jit(with_gradients(turn))
    with jt.sharded.using(jt.sharded.Halo(4)):
        program = both.lower(image).compile()
        found, line = program(image), jt.sharded.explain(turn, image)
    assert collectives(program) == {"collective-permute"}
    assert_trees_close("sum", found, turn_of_one_device(), 2**8)
    assert found[0].sharding.spec[0] == found[1][0].sharding.spec[0] == "rows"
    assert "axis 0 in 8 parts: Halo(reach=4)" in line
    assert "Routing" in jt.sharded.explain(turn, image)


@functools.cache
def turn_of_one_device():
    """The turned image, and the gradient of its squares."""
    return jax.jit(with_gradients(lambda image: jt.warp.rotate(image, angle=0.0524)))(drawn(0, 64, 48, 2))


def test_automatic_axes():
    """`jax.sharding.explicit_axes` says how the image is cut, of which the trace knows nothing."""
    whole = drawn(0, 64, 48, 2)
    turn = lambda image: jt.warp.rotate(image, angle=0.0524)
    of_rows = jax.sharding.explicit_axes(turn, axes=("rows",), in_sharding=(P("rows"),))
    mesh = jax.make_mesh((PARTS,), ("rows",), axis_types=(AxisType.Auto,))
    with jax.set_mesh(mesh), jt.sharded.using(jt.sharded.Halo(4)):
        image = jax.device_put(whole, P("rows"))
        program = jax.jit(with_gradients(of_rows)).lower(image).compile()
        assert collectives(program) == {"collective-permute"}
        found = program(image)
    assert_trees_close("sum", found, turn_of_one_device(), 2**8)


def test_samples_beyond_a_halo(mesh):
    """They are NaN, have no gradient, and are counted under checkify."""
    image, whole = image_in_rows()
    angle = np.float32(np.pi / 6)
    turn = lambda image: jt.warp.rotate(image, angle=angle)
    with jt.sharded.using(jt.sharded.Halo(4)):
        error, found = checkify.checkify(jax.jit(turn))(image)
    found, expected = on_host((found, jax.jit(turn)(whole)))
    lost = np.isnan(found).any(-1)
    assert 0.2 < lost.mean() < 0.8
    assert_trees_close("sum", found[~lost], expected[~lost], 2**8)
    assert f"{lost.sum()} samples need texels further than 4" in error.get()
    with jt.sharded.using(jt.sharded.Halo(4)):
        each = jax.vmap(jax.grad(lambda image, angle: jnp.sum(jt.warp.rotate(image, angle=angle))), (None, 0))
        assert jt.sharded.count_beyond(each, image, np.float32([0, angle, angle])) == 2 * lost.sum()
    assert jt.sharded.count_beyond(turn, image) == 0  # samples travel
    with jt.sharded.using(jt.sharded.Halo(30)):  # the whole image
        assert "Whole()" in jt.sharded.explain(turn, image)


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
