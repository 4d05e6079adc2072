"""One test per transform of JAX: jit, vmap, checkpoint, export, scan, and what a pytree must bear."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.walk import texel_order
from tests.support.tolerances import assert_trees_close

SAMPLER = jt.Sampler(address_mode=("wrap", "border"))


def stacks(rng=0):
    """Three textures with border colors, and three sets of coordinates."""
    rng = np.random.default_rng(rng)
    draw = lambda *shape: rng.normal(size=shape).astype(np.float32)
    return draw(3, 4, 5, 2), draw(3, 2), draw(3, 6), draw(3, 6)


def read(texels, border, x, y):
    return jt.sample(jt.texture2d(texels, border_color=border), (x, y), SAMPLER)


def loss(texels, border, x, y):
    return jnp.sin(read(texels, border, x, y)).sum()


value_and_gradient = jax.jit(jax.value_and_grad(loss, (0, 1, 2, 3)))


def batched(stacks, in_axes):
    """Whole stacks where there is an axis, and their first elements where there is none."""
    return [a if d == 0 else a[0] for a, d in zip(stacks, in_axes, strict=True)]


def element(stacks, in_axes, k):
    """The arguments of element `k` of that batch."""
    return [a[k if d == 0 else 0] for a, d in zip(stacks, in_axes, strict=True)]


IN_AXES = [(0, 0, 0, 0), (0, 0, None, None), (0, None, 0, None)]


def test_vmap_equals_a_loop():
    """Over textures, over coordinates, over both: values and all gradients."""
    run = jax.jit(lambda given: [jax.vmap(value_and_gradient, axes)(*args) for axes, args in zip(IN_AXES, given)])
    for in_axes, got in zip(IN_AXES, run([batched(stacks(), axes) for axes in IN_AXES]), strict=True):
        for k in range(3):
            expected = value_and_gradient(*element(stacks(), in_axes, k))
            assert_trees_close("reordered", jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], got), expected)


VALUES = np.sin(np.arange(36, dtype=np.float32)).reshape(3, 6, 2)


def deposit(values, x, y):
    return jt.splat(values, (x, y), (4, 5, 2), SAMPLER).texels


def pulled(cotangent, texels, x, y):
    return jax.vjp(lambda *args: jt.sample(jt.texture2d(args[0]), args[1:], SAMPLER), texels, x, y)[1](cotangent)


# Functions of stacks; of their arguments at least the last two are coordinates.
FUNCTIONS = {
    "read": (read, stacks()),
    "splat": (deposit, (VALUES, *stacks()[2:])),
    "pullback": (pulled, (VALUES, stacks()[0], *stacks()[2:])),
}
SHARED = {
    "read": [(None, None, 0, 0), (None, 0, None, 0)],
    "splat": [(None, 0, 0), (0, None, None)],
    "pullback": [(0, None, 0, None)],
}


def gradients(function, count):
    """Those of a sum, with respect to `count` arguments."""
    loss = lambda *args: sum(jnp.sin(leaf).sum() for leaf in jax.tree.leaves(function(*args)))
    return jax.jit(jax.grad(loss, tuple(range(count))))


@functools.cache
def gradients_of_one(name):
    function, args = FUNCTIONS[name]
    return gradients(function, len(args))


@pytest.mark.parametrize(("name", "in_axes"), [(name, axes) for name, several in SHARED.items() for axes in several])
def test_the_gradient_of_a_vmap_is_that_of_a_loop(name, in_axes):
    """What is shared gets the sum over the batch."""
    function, args = FUNCTIONS[name]
    each = [gradients_of_one(name)(*element(args, in_axes, k)) for k in range(3)]
    expected = [np.stack(parts) if d == 0 else np.sum(parts, 0) for d, parts in zip(in_axes, zip(*each))]
    got = gradients(jax.vmap(function, in_axes), len(args))(*batched(args, in_axes))
    assert_trees_close("reordered", list(got), expected)


def test_nested_vmap_shares_a_texture_in_one_axis_and_not_in_the_other():
    texels, _, x, y = stacks()
    read = lambda texels, x, y: jt.sample(jt.texture2d(texels), (x, y))
    xs, one = np.stack([x[0], x[0] + 0.1]), jax.jit(read)
    pairs = [np.stack([a, a[::-1]]) for a in (texels, x, y)]  # other textures in both axes

    @jax.jit
    def run(texels, xs, y, pairs):
        nested = lambda inner, outer: jax.vmap(jax.vmap(read, inner), outer)(texels, xs, y)
        first, second = ((None, 0, None), (0, None, 0)), ((0, None, 0), (None, 0, None))
        return nested(*first), nested(*second), jax.vmap(jax.vmap(read))(*pairs)

    expected = np.array([[one(texels[i], xs[j], y[i]) for j in range(2)] for i in range(3)])
    of_pairs = np.array([[one(*(a[j, i] for a in pairs)) for i in range(3)] for j in range(2)])
    assert_trees_close("reordered", run(texels, xs, y, pairs), (expected, expected.swapaxes(0, 1), of_pairs))


def test_a_shared_texture_is_not_copied_per_batch_element():
    """No array in the lowered program has both the batch and the texture's axes."""
    texels, xs = np.ones((33, 35, 2), np.float32), np.ones((17, 6), np.float32)
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
    saved = jax.jit(jax.grad(jax.checkpoint(loss), (0, 1, 2, 3)))(texels[0], border[0], x[0], y[0])
    assert_trees_close("reordered", saved, value_and_gradient(texels[0], border[0], x[0], y[0])[1])
    texture = jt.Texture(texels, border)  # a stack: leaves with one more leading axis

    @jax.jit
    def both(texture, x, y):
        step = lambda carry, item: (carry + jt.sample(item[0], (item[1], item[2]), SAMPLER), None)
        return jax.lax.scan(step, jnp.zeros((6, 2)), (texture, x, y))[0], sum(map(read, texels, border, x, y))

    total, expected = both(texture, x, y)
    assert_trees_close("reordered", total, expected)


READS = {
    "coordinates": (lambda t, x, y: jt.sample(jt.texture2d(t), (x, y)), (stacks()[2], stacks()[3][:, :1])),
    "a matrix": (
        lambda t, m: jt.warp.warp_affine(t, m, (6, 7), inverse_map=True), (np.eye(2, 3, dtype=np.float32) + 0.1,),
    ),
    "directions": (
        lambda t, x, y: jt.sample(jt.cubemap(jnp.stack([(k + 1) * t[:, :4] for k in range(6)])), (x, y, x - y)),
        stacks()[2:],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ["coordinates", "a matrix", pytest.param("directions", marks=pytest.mark.slow)])
def test_several_directions_of_one_read(name):
    """Tangents and cotangents under `vmap`, while all of them share what is read."""
    function, args = READS[name]
    stacked = lambda f, several: jax.tree.map(lambda *leaves: jnp.stack(leaves), *(f(*some) for some in several))

    @jax.jit
    def found_and_expected(texels, *args):
        out, push = jax.linearize(functools.partial(function, texels), *args)
        _, pull = jax.vjp(functools.partial(function, texels), *args)
        cotangents = jnp.stack([jnp.sin(out), jnp.cos(out)])
        tangents = [tuple(map(f, args)) for f in (jnp.sin, jnp.cos)]
        batch = stacked(lambda *some: some, tangents)
        pushed, pulled = jax.vmap(push), stacked(pull, [(c,) for c in cotangents])
        return {
            "pulled": (jax.vmap(pull)(cotangents), pulled),
            "pushed": (pushed(*batch), stacked(push, tangents)),
            "transposed": (jax.linear_transpose(pushed, *batch)(cotangents), pulled),
        }

    for found, expected in found_and_expected(stacks()[0][0], *args).values():
        assert_trees_close("reordered", found, expected)


@pytest.mark.parametrize("name", ["coordinates", pytest.param("a matrix", marks=pytest.mark.slow)])
def test_derivatives_along_directions_in_a_batch(name):
    """Several points share a direction, or several directions a point; with the gradients of both."""
    function, args = READS[name]
    texels, several = stacks()[0][0], tuple(jnp.stack([a, jnp.sin(a)]) for a in args)
    derivative = lambda points, directions: jax.jvp(functools.partial(function, texels), points, directions)[1]
    loop = lambda *batches: jnp.stack([derivative(*(tuple(a[k] for a in b) for b in batches)) for k in range(2)])

    @jax.jit
    def found_and_expected(args):
        repeated = lambda args: tuple(jnp.stack([a] * 2) for a in args)
        loss = lambda run: lambda args: jnp.sin(run(args)).sum()
        batched = lambda args: jax.vmap(derivative, (0, None))(several, args)
        same = lambda args: jax.vmap(derivative, (None, 0))(args, several)
        pairs = (
            (batched, lambda args: loop(several, repeated(args))),
            (same, lambda args: loop(repeated(args), several)),
        )
        return [(f(args), g(args)) for f, g in pairs] + [
            (jax.grad(loss(f))(args), jax.grad(loss(g))(args)) for f, g in pairs
        ]

    for found, expected in found_and_expected(args):
        assert_trees_close("reordered", found, expected)


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
        traced = value_and_gradient.trace(*args)
        assert "f64" not in str(traced.jaxpr)
        lowered = traced.lower().as_text()
        assert "xf64>" not in lowered
        assert "<f64>" not in lowered


def test_empty_and_scalar_shapes():
    texture = jt.texture2d(np.ones((3, 3, 2), np.float32))

    @jax.jit
    def run(texture, nothing):
        gradient = jax.grad(lambda t, x: jt.sample(t, (x, 0.5)).sum())(texture, nothing)
        return (
            jt.sample(texture, (0.5, 0.5)),
            jt.sample(texture, (nothing.reshape(0, 1), np.float32([0.5] * 4))),
            gradient,
        )

    scalar, empty, gradient = run(texture, np.zeros(0, np.float32))
    assert (scalar.shape, empty.shape) == ((2,), (0, 4, 2))
    assert not np.any(gradient.texels)


def test_two_indices_read_and_splat_as_one_does(monkeypatch):
    rng = np.random.default_rng(0)
    texels, values = (rng.normal(size=(*shape, 2)).astype(np.float32) for shape in ((3, 4, 5), (9,)))
    coords = tuple(rng.uniform(-0.5, 1.5, (3, 9)).astype(np.float32))

    @jax.jit
    def both(texels, values, coords):
        sampler = jt.Sampler(address_mode="border")
        read = jt.sample(jt.texture3d(texels), coords, sampler)
        return read, jt.splat(values, coords, texels.shape, sampler).texels

    one = both(texels, values, coords)
    monkeypatch.setattr(texel_order, "INDEX_LIMIT", 13)
    jax.clear_caches()
    two = both(texels, values, coords)
    jax.clear_caches()
    assert_trees_close("reordered", one, two)
