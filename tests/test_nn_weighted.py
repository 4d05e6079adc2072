"""Sums of weighted reads against the sum of reads."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerances import assert_close, assert_trees_close

import jaxtex as jt

RANDOM = np.random.default_rng(5)
ZEROS = jt.Sampler(address_mode="border")


def array(*shape, dtype=np.float32):
    return jnp.asarray(RANDOM.standard_normal(shape), dtype)


def places(*shape):
    return jnp.asarray(RANDOM.uniform(-0.1, 1.1, shape), np.float32)


def value_and_slopes(function, *args):
    """The value of a function, and its gradients for a fixed cotangent."""
    out, pullback = jax.vjp(function, *args)
    return out, pullback(jnp.cos(jnp.arange(out.size, dtype=np.float32)).reshape(out.shape).astype(out.dtype))


def plain(texture, coords, weights, axes, **options):
    read = jt.sample(texture, coords, ZEROS, **options)
    return (read * weights[..., None]).sum(axes)


@pytest.mark.parametrize("axis", [-1, (0, 2), ()])
def test_sum_of_one_texture(axis):
    args = array(5, 6, 3), places(4, 1, 5), places(2, 1), array(4, 1, 5)
    axes = axis if isinstance(axis, tuple) else (2,)
    ours = lambda t, x, y, w: jt.nn.sample_weighted(jt.texture2d(t), (x, y), w, ZEROS, axis=axis)
    theirs = lambda t, x, y, w: plain(jt.texture2d(t), (x, y[None]), jnp.broadcast_to(w, (4, 2, 5)), axes)
    assert_trees_close("sum", jax.jit(value_and_slopes, static_argnums=0)(ours, *args), value_and_slopes(theirs, *args))


def test_sum_over_textures_of_several_sizes():
    """The first of `axis` chooses the texture; arrays without that axis are shared by all."""
    levels = [array(5, 7, 2), array(3, 3, 2), array(1, 1, 2)]
    args = levels, places(4, 3, 2), places(3, 1), array(4, 3, 1)

    def ours(levels, x, y, w):
        return jt.nn.sample_weighted([jt.texture2d(t) for t in levels], (x, y), w, ZEROS, axis=(1, 2))

    def theirs(levels, x, y, w):
        parts = ((x[:, k], jnp.broadcast_to(y[k], (4, 2)), w[:, k]) for k in range(3))
        terms = (plain(jt.texture2d(t), (x, y), w, (1,)) for t, (x, y, w) in zip(levels, parts))
        return sum(terms)

    assert_trees_close("sum", jax.jit(value_and_slopes, static_argnums=0)(ours, *args), value_and_slopes(theirs, *args))


def test_batches_and_second_order():
    """Under `vmap` over textures, and twice differentiated."""
    texels, x, w = array(2, 5, 1), places(2, 4, 3), array(2, 4, 3)
    cubic = jt.Sampler(filter_mode="cubic", address_mode="wrap")
    ours = lambda t, x, w: jt.nn.sample_weighted(jt.texture1d(t), (x,), w, cubic).sum()
    theirs = lambda t, x, w: (jt.sample(jt.texture1d(t), (x,), cubic)[..., 0] * w).sum()
    whole = lambda function: lambda *args: jax.vmap(function)(*args).sum()
    found, expected = (jax.jvp(jax.grad(whole(f), (0, 1, 2)), (texels, x, w), (texels, x, w)) for f in (ours, theirs))
    assert_trees_close("sum", found, expected)


def test_layers_and_levels():
    layers, layer = array(3, 4, 4, 2), jnp.array([0, 2, 1])
    x, w = places(5, 3), array(5, 3)
    found = jt.nn.sample_weighted(jt.texture2d_layered(layers), (x, x), w, ZEROS, layer=layer)
    reads = [jt.sample(jt.texture2d(layers[k]), (x[:, j], x[:, j]), ZEROS) for j, k in enumerate([0, 2, 1])]
    assert_close("sum", found, sum(r * w[:, j, None] for j, r in enumerate(reads)), 4)
    chain = jt.build_mipmaps(jt.texture2d(layers[0]))
    lod = jnp.float32(1)
    found = jt.nn.sample_weighted(chain, (x, x), w, lod=lod)
    assert_close("sum", found, (jt.sample(chain, (x, x), lod=lod) * w[..., None]).sum(1), 4)


def test_dtypes(x64):
    x, w = jnp.float32([0.3, 0.6]), jnp.float32([0.5, 2])
    for texels, weights in itertools.product(("float16", "float32", "float64"), repeat=2):
        found = jt.nn.sample_weighted(jt.texture1d(jnp.ones((3, 1), texels)), (x,), w.astype(weights))
        assert found.dtype == texels
        assert found.tolist() == [2.5]
    codes = jt.texture1d(jnp.uint8([[3], [5]]))
    found = jt.nn.sample_weighted(codes, (x,), w, jt.Sampler(filter_mode="point"))
    assert found.dtype == np.float32
    assert found.tolist() == [11.5]


def test_no_samples_and_numbers():
    texture = jt.texture1d(array(4, 2))
    assert jt.nn.sample_weighted(texture, (jnp.zeros((3, 0)),), 1.0).tolist() == [[0, 0]] * 3
    assert jt.nn.sample_weighted(texture, (jnp.zeros((0, 3)),), 1.0).shape == (0, 2)
    assert jt.nn.sample_weighted(texture, (0.5,), 2, axis=()).shape == (2,)


LINE = jt.texture1d(np.zeros((4, 1), np.float32))
MISTAKES = {
    "an array": (TypeError, "textures?.* an array", lambda s: s(np.zeros((4, 1)), (0.5,), 1.0)),
    "no textures": (ValueError, "textures is empty", lambda s: s((), (0.5,), np.ones(1))),
    "another kind": (
        ValueError,
        r"textures\[1\] has kind '2d'",
        lambda s: s((LINE, jt.texture2d(np.zeros((4, 4, 1), np.float32))), (0.5,), np.ones(2)),
    ),
    "another length": (ValueError, "holds 2 textures, but axis 0", lambda s: s((LINE, LINE), (0.5,), np.ones(3))),
    "no axis": (ValueError, "axis=()", lambda s: s((LINE, LINE), (0.5,), np.ones(2), axis=())),
    "weights": (ValueError, "weights has shape", lambda s: s(LINE, (np.ones(2),), np.ones(3))),
    "axis": (ValueError, "axis is 1", lambda s: s(LINE, (np.ones(2),), np.ones(2), axis=1)),
    "axes": (ValueError, r"axis is \(0, -1\)", lambda s: s(LINE, (np.ones(2),), np.ones(2), axis=(0, -1))),
    "words": (TypeError, "weights holds a str", lambda s: s(LINE, (0.5,), "one")),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name):
    kind, message, call = MISTAKES[name]
    with pytest.raises(kind, match=f"^sample_weighted: .*{message}"):
        call(jt.nn.sample_weighted)
