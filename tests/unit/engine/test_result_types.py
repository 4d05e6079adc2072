"""The types of primitives' results by rule are those of a trace of what the primitives compute."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.rules import primitives
from jaxtex._hardware.read import read_p as hardware_read_p
from tests.support.jaxprs import equations

PRIMITIVES = (
    *(primitives.read_p, primitives.splat_p, primitives.pushforward_p, primitives.pullback_p),
    hardware_read_p,
)
X, COLOR = np.linspace(0.1, 0.9, 5, dtype=np.float32), np.float32([1, 2])
IMAGE = FLOW = np.ones((4, 6, 2), np.float32)
THETA = np.eye(2, 3, dtype=np.float32)


def sample(texels, x, y, make=jt.texture2d, mips=False, border_color=None, more=None, **options):
    texture = make(texels, border_color=border_color)
    return jt.sample(jt.build_mipmaps(texture) if mips else texture, (x, y), jt.Sampler(**options), **(more or {}))


def several(function):
    """A function of a batch, whose texels are shared and then not."""
    stacked = lambda *arrays: [jnp.stack([a, a]) for a in arrays]
    shared = lambda texels, x, y: jax.vmap(function, (None, 0, 0))(texels, *stacked(x, y))
    return lambda texels, x, y: jax.vmap(shared)(*stacked(texels, x, y))


SIDES = {"ddx": (0.3, 0.0), "ddy": (0.0, 0.2)}
READS = {
    "linear": sample,
    "cubic under a color": functools.partial(
        sample, filter_mode="cubic", address_mode=("border", "wrap"), border_color=COLOR
    ),
    "limited": functools.partial(sample, filter_mode="cubic", limit="taps"),
    "halves": lambda texels, x, y: sample(texels.astype(jnp.bfloat16), x, y),
    "float64 coordinates": lambda texels, x, y: sample(texels, x[:, None], y),
    "levels": functools.partial(sample, mips=True, mipmap_filter_mode="linear", more={"lod": 0.5}),
    "several reads": functools.partial(sample, mips=True, max_anisotropy=4, more=SIDES),
    "drawn": functools.partial(sample, filter_mode="cubic", more={"key": np.uint32([0, 1])}),
    "drawn among one tap": functools.partial(
        sample, filter_mode="point", more={"lod": np.zeros((3, 1), np.float32), "key": np.uint32([0, 1])}
    ),
    "deterministic": functools.partial(sample, deterministic=True),
    "hardware": functools.partial(sample, arithmetic="hardware", address_mode="border", border_color=COLOR),
    "batches": several(sample),
    "batches of colors": several(functools.partial(sample, address_mode="border", border_color=COLOR)),
    "a fetch": lambda texels, x, y: jt.fetch(jt.texture2d(texels), (np.arange(3)[:, None], np.arange(2))),
    "weights": lambda texels, x, y: jt.nn.sample_weighted(
        jt.texture2d(texels), (x[:, None], y[None]), x[:, None] * y[None]
    ),
    "a matrix": lambda texels, x, y: jt.warp.warp_affine(texels, THETA * x[0]),
    "a flow": lambda texels, x, y: jt.warp.warp_flow(texels, FLOW * x[0]),
    "points": lambda texels, x, y: jt.warp.remap(texels, (x[None], y[:4, None])),
    "a splat": lambda texels, x, y: jt.splat(texels[0, :5] * x[:, None], (x, y), (4, 6, 2)).texels,
}


@pytest.mark.parametrize("name", READS)
def test_types_by_rule_are_those_of_a_trace(name):
    def loss(texels, x, y):
        return jnp.sum(READS[name](texels, x, y).astype(jnp.float32) ** 2)

    y = X[::-1].copy()
    programs = [jax.make_jaxpr(jax.value_and_grad(loss, (0, 1, 2)))(IMAGE, X, y)]
    programs.append(jax.make_jaxpr(jax.jacfwd(jax.grad(loss, 1), 1))(IMAGE, X, y))
    found = [e for program in programs for e in equations(program.jaxpr) if e.primitive in PRIMITIVES]
    assert found
    for equation in {(e.primitive, str(e.params), str([v.aval for v in e.invars])): e for e in found}.values():
        run = functools.partial(equation.primitive.impl.__wrapped__, **equation.params)
        traced = jax.eval_shape(run, *(jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars))
        by_rule = [(v.aval.shape, v.aval.dtype) for v in equation.outvars]
        assert by_rule == [(a.shape, a.dtype) for a in jax.tree.leaves(traced)]
