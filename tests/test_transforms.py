"""One test per transform of JAX: jit, vmap, checkpoint, export, scan, and what a pytree must bear."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerances import assert_close, assert_trees_close

import jaxtex as jt
from jaxtex._engine import texel_walk
from jaxtex._engine.axis import Axis
from jaxtex._engine.texel_walk import Tap, TexelAddress, flat_sizes
from jaxtex._tables.address_rules import CLAMP
from jaxtex._tables.filter_kernels import POINT

SAMPLER = jt.Sampler(address_mode=("wrap", "border"))


def stacks(rng=0):
    """Three textures with border colors, and three sets of coordinates."""
    rng = np.random.default_rng(rng)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape).astype(np.float32))
    return draw(3, 4, 5, 2), draw(3, 2), draw(3, 6), draw(3, 6)


def read(texels, border, x, y):
    return jt.sample(jt.texture2d(texels, border_color=border), (x, y), SAMPLER)


def loss(texels, border, x, y):
    return jnp.sin(read(texels, border, x, y)).sum()


IN_AXES = [
    (0, 0, 0, 0),
    (None, None, 0, 0),
    (0, 0, None, None),
    (0, None, 0, None),
    (None, 0, None, 0),
    (None, None, None, 0),
]


@pytest.mark.parametrize("in_axes", IN_AXES)
def test_vmap_equals_a_loop(in_axes):
    """Over textures, over coordinates, over both: values and all gradients."""
    args = [a if d == 0 else a[0] for a, d in zip(stacks(), in_axes)]
    value_and_gradient = jax.jit(jax.value_and_grad(loss, (0, 1, 2, 3)))
    got = jax.jit(jax.vmap(jax.value_and_grad(loss, (0, 1, 2, 3)), in_axes))(*args)
    for k in range(3):
        expected = value_and_gradient(*(a if d is None else a[k] for a, d in zip(args, in_axes)))
        assert_trees_close("reordered", jax.tree.map(lambda leaf, k=k: leaf[k], got), expected)


def deposit(values, x, y):
    return jt.splat(values, (x, y), (4, 5, 2), SAMPLER).texels


def pulled(cotangent, texels, x, y):
    return jax.vjp(lambda *args: jt.sample(jt.texture2d(args[0]), args[1:], SAMPLER), texels, x, y)[1](cotangent)


@pytest.mark.parametrize("in_axes", IN_AXES)
@pytest.mark.parametrize("name", ["read", "splat", "pullback"])
def test_the_gradient_of_a_vmap_is_that_of_a_loop(name, in_axes):
    """What is shared gets the sum over the batch."""
    texels, border, x, y = stacks()
    values = jnp.sin(jnp.arange(36.0)).reshape(3, 6, 2)
    function, args = {
        "read": (read, (texels, border, x, y)),
        "splat": (deposit, (values, x, y)),
        "pullback": (pulled, (values, texels, x, y)),
    }[name]
    in_axes = in_axes[-len(args) :]
    args = [a if d == 0 else a[0] for a, d in zip(args, in_axes)]

    def by_loop(*args):
        one = lambda k: function(*(a if d is None else a[k] for a, d in zip(args, in_axes)))
        return jax.lax.map(one, jnp.arange(3))

    def gradients(function):
        loss = lambda *args: sum(jnp.sin(leaf).sum() for leaf in jax.tree.leaves(function(*args)))
        return jax.jit(jax.grad(loss, tuple(range(len(args)))))(*args)

    assert_trees_close("reordered", gradients(jax.vmap(function, in_axes)), gradients(by_loop))


def test_nested_vmap_shares_a_texture_in_one_axis_and_not_in_the_other():
    texels, _, x, y = stacks()
    read = lambda texels, x, y: jt.sample(jt.texture2d(texels), (x, y))
    xs = jnp.stack([x, x + 0.1])
    got = jax.vmap(jax.vmap(read, (None, 0, None)), (0, None, 0))(texels, xs[:, 0], y)
    for i in range(3):
        for j in range(2):
            assert_trees_close("reordered", got[i, j], read(texels[i], xs[j, 0], y[i]))
    got = jax.vmap(jax.vmap(read, (0, None, 0)), (None, 0, None))(texels, xs[:, 0], y)
    for j in range(2):
        for i in range(3):
            assert_trees_close("reordered", got[j, i], read(texels[i], xs[j, 0], y[i]))


def test_a_shared_texture_is_not_copied_per_batch_element():
    """No array in the lowered program has both the batch and the texture's axes."""
    texels, xs = jnp.ones((33, 35, 2)), jnp.ones((17, 6))
    batch = jax.vmap(lambda texels, x: jt.sample(jt.texture2d(texels), (x, x)), (None, 0))
    gradient = jax.grad(lambda texels, xs: batch(texels, xs).sum(), (0, 1))
    for f in (batch, gradient):
        text = jax.jit(f).lower(texels, xs).as_text()
        assert "33x35x2" in text
        assert "17x33x35" not in text
        assert f"17x{33 * 35}" not in text


def test_jit_equals_eager_and_equal_samplers_compile_once():
    texels, border, x, y = (a[0] for a in stacks())
    traces = []

    def counted(texture, coords, sampler):
        traces.append(sampler)
        return jt.sample(texture, coords, sampler)

    jitted = jax.jit(counted)
    for _ in range(3):
        sampler = jt.Sampler(address_mode=["wrap", "border"], filter_mode="linear")
        got = jitted(jt.texture2d(texels, border_color=border), (x, y), sampler)
    assert len(traces) == 1
    assert_trees_close("reordered", got, read(texels, border, x, y))


def test_a_read_outside_jit_is_one_compiled_call(caplog):
    """The first call compiles one program for the read, the second none."""
    texture = jt.texture2d(jnp.ones((3, 5, 2)))
    coords, values = (np.full((4, 7), 0.3), jnp.full((7,), 0.6)), jnp.ones((4, 7, 2))
    for name, read in {
        "sample": lambda: jt.sample(texture, coords),
        "gather": lambda: jt.gather(texture, coords),
        "splat": lambda: jt.splat(values, coords, (3, 5, 2)),
    }.items():
        counts = []
        for _ in range(2):
            caplog.clear()
            with jax.log_compiles(True):
                read()
            compiled = [record for record in caplog.records if record.getMessage().startswith("Compiling")]
            counts.append([record.getMessage().split()[1] for record in compiled])
        assert counts == [[f"jit({name})"], []]


def test_checkpoint_and_scan():
    texels, border, x, y = stacks()
    plain = jax.grad(loss, (0, 2))(texels[0], border[0], x[0], y[0])
    saved = jax.grad(jax.checkpoint(loss), (0, 2))(texels[0], border[0], x[0], y[0])
    assert_trees_close("reordered", saved, plain)
    texture = jt.Texture(texels, border)  # a stack: leaves with one more leading axis
    step = lambda carry, item: (carry + jt.sample(item[0], (item[1], item[2]), SAMPLER), None)
    total, _ = jax.lax.scan(step, jnp.zeros((6, 2)), (texture, x, y))
    assert_trees_close("reordered", total, sum(read(*a) for a in zip(texels, border, x, y)))


READS = {
    "coordinates": (lambda t, x, y: jt.sample(jt.texture2d(t), (x, y)), (stacks()[2], stacks()[3][:, :1])),
    "a matrix": (lambda t, m: jt.warp.warp_affine(t, m, (6, 7), inverse_map=True), (jnp.eye(2, 3) + 0.1,)),
}


@pytest.mark.parametrize("name", READS)
def test_several_directions_of_one_read(name):
    """Tangents and cotangents under `vmap`, while all of them share what is read."""
    function, args = READS[name]
    stacked = lambda f, several: jax.tree.map(lambda *leaves: jnp.stack(leaves), *(f(*some) for some in several))
    read = functools.partial(function, stacks()[0][0])
    out, push = jax.linearize(read, *args)
    _, pull = jax.vjp(read, *args)
    cotangents = jnp.stack([jnp.sin(out), jnp.cos(out)])
    assert_trees_close("reordered", jax.vmap(pull)(cotangents), stacked(pull, [(c,) for c in cotangents]))
    tangents = [tuple(map(f, args)) for f in (jnp.sin, jnp.cos)]
    batch = stacked(lambda *some: some, tangents)
    pushed = jax.vmap(push)
    assert_trees_close("reordered", pushed(*batch), stacked(push, tangents))
    transposed = jax.linear_transpose(pushed, *batch)(cotangents)
    assert_trees_close("reordered", transposed, stacked(pull, [(c,) for c in cotangents]))


def test_linearize_and_jacobians():
    texels, border, x, y = (a[0] for a in stacks())
    value, push = jax.linearize(lambda x: read(texels, border, x, y), x)
    expected, tangent = jax.jvp(lambda x: read(texels, border, x, y), (x,), (jnp.ones_like(x),))
    assert_trees_close("reordered", (value, push(jnp.ones_like(x))), (expected, tangent))
    at = lambda xy: read(texels, border, xy[0], xy[1])
    forward, reverse = jax.jit(lambda p: (jax.jacfwd(at)(p), jax.jacrev(at)(p)))(jnp.array([0.31, 0.62]))
    assert forward.shape == (2, 2)
    assert_trees_close("reordered", forward, reverse)


def test_export_round_trip():
    texels, border, x, y = (a[0] for a in stacks())
    gradient = jax.jit(jax.grad(loss, (0, 1, 2, 3)))
    exported = jax.export.export(gradient, platforms=("cpu", "cuda", "tpu"))(texels, border, x, y)
    restored = jax.export.deserialize(exported.serialize())
    assert_trees_close("reordered", restored.call(texels, border, x, y), gradient(texels, border, x, y))


def test_pytree_round_trips():
    texture = jt.texture2d_layered(np.zeros((2, 3, 4, 1), np.uint8), border_color=1.0)
    leaves, structure = jax.tree.flatten(texture)
    assert [leaf.shape for leaf in leaves] == [(2, 3, 4, 1), ()]
    again = jax.tree.unflatten(structure, leaves)
    assert again.kind is jt.TextureKind.TEXTURE2D_LAYERED
    assert jax.tree.map(lambda _: None, texture).texels is None
    assert jax.tree.structure(texture) == jax.tree.structure(jax.tree.map(lambda leaf: leaf * 2, texture))
    assert jax.tree.leaves(jt.Sampler()) == []
    assert hash(jt.Sampler(filter_mode="cubic")) == hash(jt.Sampler(filter_mode=jt.FilterMode.CUBIC))
    assert dataclasses.replace(jt.Sampler(), filter_mode="point").filter_mode is jt.FilterMode.POINT
    assert "2d_layered" in repr(texture)
    assert "None" in repr(jax.tree.map(lambda _: None, texture))


def test_donated_textures_and_abstract_values():
    texture = jt.texture1d(jnp.ones((8, 1)))
    shape = jax.eval_shape(lambda t: jt.sample(t, (jnp.zeros((2, 3)),)), texture)
    assert (shape.shape, shape.dtype) == ((2, 3, 1), jnp.float32)
    double = jax.jit(lambda t: jax.tree.map(lambda a: a * 2, t), donate_argnums=0)
    assert float(jt.sample(double(texture), (0.5,))[0]) == 2.0


def test_nothing_becomes_float64_by_accident():
    """With x64 on, float32 textures and coordinates stay in float32 throughout, gradients included."""
    with jax.enable_x64(True):
        args = [a[0] for a in stacks()]
        jaxpr = jax.make_jaxpr(jax.grad(loss, (0, 1, 2, 3)))(*args)
        assert "f64" not in str(jaxpr)
        lowered = jax.jit(jax.grad(loss, (0, 1, 2, 3))).lower(*args).as_text()
        assert "xf64>" not in lowered
        assert "<f64>" not in lowered


def test_empty_and_scalar_shapes():
    texture = jt.texture2d(jnp.ones((3, 3, 2)))
    assert jt.sample(texture, (0.5, 0.5)).shape == (2,)
    assert jt.sample(texture, (jnp.zeros((0, 4)), 0.5)).shape == (0, 4, 2)
    gradient = jax.grad(lambda t, x: jt.sample(t, (x, 0.5)).sum())(texture, jnp.zeros((0,)))
    assert not gradient.texels.any()


def test_textures_past_int32_use_two_indices():
    """2^31 texels and more do not fit one int32 index; neighbors are still joined where they do."""
    flat = lambda *sizes: flat_sizes(tuple(Axis(size, POINT, CLAMP) for size in sizes))
    assert flat(4, 5, 6) == [120]
    assert flat(2**16, 2**16) == [2**16, 2**16]
    assert flat(3, 2**15, 2**16) == [3 * 2**15, 2**16]
    address = TexelAddress()
    for size in (3, 2**15, 2**16):
        address = address.advance(Tap((jnp.int32(size - 1),), None, (1.0,)), (size,))
    assert [int(i) for i in address.indices] == [3 * 2**15 - 1, 2**16 - 1]


def test_two_indices_read_and_splat_as_one_does(monkeypatch):
    rng = np.random.default_rng(0)
    texels = jnp.asarray(rng.normal(size=(3, 4, 5, 2)).astype(np.float32))
    coords = tuple(jnp.asarray(rng.uniform(-0.5, 1.5, 9).astype(np.float32)) for _ in range(3))
    values = jnp.asarray(rng.normal(size=(9, 2)).astype(np.float32))
    one = jt.sample(jt.texture3d(texels), coords, jt.Sampler(address_mode="border"))
    spread = jt.splat(values, coords, texels.shape, jt.Sampler(address_mode="border")).texels
    monkeypatch.setattr(texel_walk, "INDEX_LIMIT", 13)
    jax.clear_caches()
    two = jt.sample(jt.texture3d(texels), coords, jt.Sampler(address_mode="border"))
    spread_two = jt.splat(values, coords, texels.shape, jt.Sampler(address_mode="border")).texels
    jax.clear_caches()
    assert_trees_close("reordered", (one, spread), (two, spread_two))


@pytest.mark.gpu
def test_gpu_equals_cpu():
    """The same program on both devices: addresses exactly, sums within rounding, special values included."""
    texels, border, x, y = (a[0] for a in stacks())
    x = jnp.concatenate([x, jnp.array([np.nan, np.inf, -np.inf, 1e9, -1e9, -0.0])])
    y = jnp.concatenate([y, jnp.zeros(6)])
    for mode in ("clamp", "border", "wrap", "mirror", "reflect"):
        for filter_mode in ("point", "linear", "cubic"):
            sampler = jt.Sampler(address_mode=mode, filter_mode=filter_mode)
            run = lambda t, b, x, y, s=sampler: jt.sample(jt.texture2d(t, border_color=b), (x, y), s)
            both = [jax.device_put((texels, border, x, y), jax.devices(d)[0]) for d in ("gpu", "cpu")]
            gpu, cpu = (np.asarray(run(*args)) for args in both)
            assert_close("float32", gpu, cpu, 1 + np.abs(cpu))
