"""Sums of weighted reads against the sum of reads."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.compiled.field_calls import of_chain, of_pyramid
from tests.support.tolerances import assert_close, assert_trees_close

RANDOM = np.random.default_rng(5)
ZEROS = jt.Sampler(address_mode="border")


@pytest.fixture(autouse=True)
def numbers_of_its_own(request):
    """The numbers that a test draws depend on its name alone, and not on the tests before it."""
    RANDOM.bit_generator.state = np.random.PCG64([*request.node.name.encode()]).state


def array(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def places(*shape):
    return RANDOM.uniform(-0.1, 1.1, shape).astype(np.float32)


def value_and_slopes(function, *args):
    """The value of a function, and its gradients for a fixed cotangent."""
    out, pullback = jax.vjp(function, *args)
    return out, pullback(jnp.cos(jnp.arange(out.size, dtype=np.float32)).reshape(out.shape).astype(out.dtype))


@functools.partial(jax.jit, static_argnums=(0, 1))
def both_values_and_slopes(ours, theirs, *args):
    return value_and_slopes(ours, *args), value_and_slopes(theirs, *args)


def plain(texture, coords, weights, axes, **options):
    read = jt.sample(texture, coords, ZEROS, **options)
    return (read * weights[..., None]).sum(axes)


@pytest.mark.parametrize("axis", [(0, 2), ()])
def test_sum_of_one_texture(axis):
    args = array(5, 6, 3), places(4, 1, 5), places(2, 1), array(4, 1, 5)
    ours = lambda t, x, y, w: jt.nn.sample_weighted(jt.texture2d(t), (x, y), w, ZEROS, axis=axis)
    theirs = lambda t, x, y, w: plain(jt.texture2d(t), (x, y[None]), jnp.broadcast_to(w, (4, 2, 5)), axis)
    assert_trees_close("sum", *both_values_and_slopes(ours, theirs, *args))


def test_sum_over_textures_of_several_sizes():
    """The first of `axis` chooses the texture; arrays without that axis are shared by all."""
    levels = [array(5, 7, 2), array(1, 1, 2)]
    args = levels, places(4, 2, 2), places(2, 1), array(4, 2, 1)

    def ours(levels, x, y, w):
        return jt.nn.sample_weighted([jt.texture2d(t) for t in levels], (x, y), w, ZEROS, axis=(1, 2))

    def theirs(levels, x, y, w):
        parts = ((x[:, k], jnp.broadcast_to(y[k], (4, 2)), w[:, k]) for k in range(2))
        terms = (plain(jt.texture2d(t), (x, y), w, (1,)) for t, (x, y, w) in zip(levels, parts))
        return sum(terms)

    assert_trees_close("sum", *both_values_and_slopes(ours, theirs, *args))


def test_batches_and_second_order():
    """Under `vmap` over textures, and twice differentiated."""
    texels, x, w = array(2, 5, 1), places(2, 4, 3), array(2, 4, 3)
    cubic = jt.Sampler(filter_mode="cubic", address_mode="wrap")
    ours = lambda t, x, w: jt.nn.sample_weighted(jt.texture1d(t), (x,), w, cubic).sum()
    theirs = lambda t, x, w: (jt.sample(jt.texture1d(t), (x,), cubic)[..., 0] * w).sum()
    whole = lambda function: lambda *args: jax.vmap(function)(*args).sum()
    along = lambda f, *args: jax.jvp(jax.grad(whole(f), (0, 1, 2)), args, args)
    found, expected = jax.jit(lambda *args: [along(f, *args) for f in (ours, theirs)])(texels, x, w)
    assert_trees_close("sum", found, expected)


def test_layers():
    layers, layer = array(3, 4, 4, 2), np.array([0, 2, 1])
    x, w = places(5, 3), array(5, 3)

    @jax.jit
    def run(layers, x, w):
        found = jt.nn.sample_weighted(jt.texture2d_layered(layers), (x, x), w, ZEROS, layer=layer)
        read = jt.sample(jt.texture2d_layered(layers), (x, x), ZEROS, layer=jnp.broadcast_to(layer, (5, 3)))
        return found, (read * w[..., None]).sum(1)

    assert_close("sum", *run(layers, x, w), 4)


def test_dtypes(x64):
    x, w = np.float32([0.3, 0.6]), np.float32([0.5, 2])
    pairs = [("float16", "float32"), ("float32", "float16"), ("float64", "float32"), ("float32", "float64")]
    read = lambda texels, weights: jt.nn.sample_weighted(jt.texture1d(np.ones((3, 1), texels)), (x,), w.astype(weights))
    point = jt.Sampler(filter_mode="point")
    of_codes = lambda: jt.nn.sample_weighted(jt.texture1d(np.uint8([[3], [5]])), (x,), w, point)
    found, codes = jax.jit(lambda: ([read(*pair) for pair in pairs], of_codes()))()
    for (texels, _), result in zip(pairs, found):
        assert result.dtype == texels
        assert result.tolist() == [2.5]
    assert codes.dtype == np.float32
    assert codes.tolist() == [11.5]


def test_no_samples_and_numbers():
    texture = jt.texture1d(array(4, 2))
    assert jt.nn.sample_weighted(texture, (jnp.zeros((3, 0)),), 1.0).tolist() == [[0, 0]] * 3
    assert jt.nn.sample_weighted(texture, (jnp.zeros((0, 3)),), 1.0).shape == (0, 2)
    assert jt.nn.sample_weighted(texture, (0.5,), 2, axis=()).shape == (2,)


# In one pass: the kernels, and every derivative


def levels_of(*shapes):
    return [array(*shape) for shape in shapes]


def of_pyramid_plain(levels, x, y, w):
    found = []
    for h in range(2):
        parts = [t[..., 4 * h : 4 * h + 4] for t in levels]
        terms = (plain(jt.texture2d(t), (x[:, h, k], y[:, h, k]), w[:, h, k], (1,)) for k, t in enumerate(parts))
        found.append(sum(terms))
    return jnp.stack(found, 1)


def of_chain_plain(texels, color, x, y, w, lod):
    sampler = jt.Sampler(address_mode="border", mipmap_filter_mode="linear")
    texture = jt.build_mipmaps(jt.texture2d(texels, border_color=color))
    return (jt.sample(texture, (x, y), sampler, lod=lod) * w[..., None]).sum(0)


IN_ONE_PASS = {
    "pyramid of heads": (
        of_pyramid,
        of_pyramid_plain,
        lambda: (levels_of((5, 7, 8), (2, 3, 8), (1, 1, 8)), *(places(6, 2, 3, 2) for _ in "xy"), array(6, 2, 3, 2)),
    ),
    "chain with a border": (
        of_chain,
        of_chain_plain,
        lambda: (array(6, 5, 3), array(3), places(3, 4), places(3, 4), array(3, 4), 2 * places(3, 4)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", IN_ONE_PASS)
def test_sums_of_every_kind(case):
    ours, plainly, make = IN_ONE_PASS[case]
    args = make()
    # A slope is a difference of texels times the size of a level, up to 7.
    assert_trees_close("sum", *both_values_and_slopes(ours, plainly, *args), 4 * 7)


@pytest.mark.slow
def test_second_order_of_heads():
    args = levels_of((5, 7, 8), (2, 3, 8)), *(places(6, 2, 2, 2) for _ in "xy"), array(6, 2, 2, 2)
    along = lambda function: jax.jvp(lambda *args: value_and_slopes(function, *args)[1], args, args)[1]
    assert_trees_close("sum", *jax.jit(lambda: (along(of_pyramid), along(of_pyramid_plain)))(), 4 * 7**2)


def test_gradients_of_many_samples():
    """More than a block of samples of a CPU, which share the values of the sum."""
    axis = (1, 2)
    args = array(9, 8, 4), places(24, 40, 20), places(24, 40, 20), array(24, 40, 20)
    ours = lambda t, x, y, w: jt.nn.sample_weighted(jt.texture2d(t), (x, y), w, ZEROS, axis=axis)
    theirs = lambda t, x, y, w: plain(jt.texture2d(t), (x, y), w, axis)
    # A thousand terms for each texel.
    assert_trees_close("long sum", *both_values_and_slopes(ours, theirs, *args), 64)


def test_term_by_term():
    """Levels of any sizes in the texture unit's arithmetic; a negative head is the last one."""
    sampler = jt.Sampler(address_mode="border", arithmetic="hardware")
    levels, x, y, w = IN_ONE_PASS["pyramid of heads"][2]()

    @jax.jit
    def run(levels, x, y, w):
        textures, head = [jt.texture2d(t) for t in levels], jnp.array([0, -1])[:, None, None]
        ours = jt.nn.sample_weighted(textures, (x, y), w, sampler, axis=(2, 3), head=head, num_heads=2)
        return ours, of_pyramid_plain(levels, x, y, w)

    # Two axes, whose contrast is seldom more than the largest texel.
    contrast = np.abs(w).sum((2, 3)).max() * max(float(np.abs(t).max()) for t in levels)
    assert_close("texture unit axis", *run(levels, x, y, w), 2 * contrast)


def test_the_gradient_of_a_border_color_of_heads():
    """The color has the weight of the taps outside, a fraction."""
    at, head = (np.float32([-0.3]), np.float32([2.0])), np.array([0])
    sampler = jt.Sampler(address_mode="border", normalized_coords=False)

    def value(color):
        texture = jt.texture2d(array(4, 4, 2), border_color=color)
        found = jt.nn.sample_weighted(texture, at, np.ones(1, np.float32), sampler, axis=(), head=head, num_heads=2)
        return found[0, 0]

    assert_close("float32", jax.jit(jax.grad(value))(np.float32(5.0)), np.float32(0.8), 1)


def test_a_head_has_its_part_of_a_border_color():
    color = np.float32([1, 2, 3, 4])
    of = lambda head: jt.nn.sample_weighted(
        jt.texture2d(array(4, 4, 4), border_color=color),
        (np.float32([-3]), np.float32([0])),
        np.ones(1, np.float32),
        jt.Sampler(address_mode="border"),
        axis=(),
        head=np.array([head]),
        num_heads=2,
    )
    np.testing.assert_array_equal(jax.jit(lambda: jnp.concatenate([of(0), of(1)]))(), color.reshape(2, 2))


def test_tangents_of_a_chain_are_its_gradients():
    """At computed levels, forward mode takes sums of weighted derivatives; along one line, both modes agree."""
    args = 0.5 + 0.1 * array(6, 3), *(0.5 + 0.1 * array(3, 4) for _ in range(3))
    sampler = jt.Sampler(address_mode="border", mipmap_filter_mode="linear")

    def run(texels, x, weights, lod):
        chain = jt.build_mipmaps(jt.texture1d(texels, border_color=0.5))
        return jt.nn.sample_weighted(chain, (x,), weights, sampler, lod=lod, axis=0)

    tangents, cotangent = tuple(array(*a.shape) for a in args), array(4, 3)
    both = jax.jit(lambda *args: (jax.jvp(run, args, tangents)[1], jax.vjp(run, *args)[1](cotangent)))
    tangent, pulled = both(*args)
    expected = sum(np.vdot(a, b) for a, b in zip(pulled, tangents))
    assert_close("sum", np.vdot(cotangent, tangent), expected, 64)
