"""Every public call makes no implicit transfer of arrays of a device outside `jax.jit`, as `jax.transfer_guard` tells,
and in a block of `deterministic` its gradients hold no sum whose order a GPU chooses, also of knots.
"""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._checks.calls import Sort, sort_of
from tests.house.public_api import parameters_of
from tests.house.public_calls import CALLS, ROWS, normal, public_functions
from tests.support.jaxprs import equations

FUNCTIONS = public_functions()
# Arguments in place of those of `CALLS`, which are for other options.
INSTEAD = {"layers.theta_of": {"parameters": normal(2)}}
# Layers get their first values from Flax and Equinox, and two functions take one that they call with further arguments.
ELSEWHERE = {name for name in CALLS if name.endswith("SpatialTransformer")}
ELSEWHERE |= {"sharded.explain", "sharded.count_beyond"}
# The rest take long to compile.
QUICK = {"footprint", "ndimage.shift", "ndimage.zoom", "nn.multiresolution_grid_init", "sample", "texture1d"}


def on_device(name):
    """The arguments of a call with arrays of JAX, and functions of callers that transfer nothing by themselves."""
    keywords = CALLS[name] | INSTEAD.get(name, {})
    for argument, value in keywords.items():
        numbers = sort_of(parameters_of(FUNCTIONS[name])[argument].annotation) in (Sort.ARRAYS, Sort.TUPLE)
        kinds = (np.ndarray, np.generic, *[int, float] * numbers)
        placed = jax.tree.map(lambda a, kinds=kinds: jax.device_put(a) if isinstance(a, kinds) else a, value)
        yield argument, jax.jit(value) if inspect.isfunction(value) else placed


PLACED = [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in CALLS if n not in ELSEWHERE]


@pytest.mark.parametrize("name", PLACED)
def test_eager_calls_make_no_implicit_transfer(name):
    keywords = dict(on_device(name))
    with jax.transfer_guard("disallow"):
        FUNCTIONS[name](**keywords)


def test_knots_of_a_device_are_checked_by_an_explicit_transfer():
    texels, knots, wrong = jnp.zeros((3, 1)), jnp.array([0.0, 1, 3]), jnp.array([0.0, 3, 1])
    with jax.transfer_guard("disallow"):
        jt.texture1d(texels, knots=(knots,))
        with pytest.raises(ValueError, match="knots of x are 3 and then 1"):
            jt.texture1d(texels, knots=(wrong,))


# Primitives of JAX that a GPU computes by atomic additions, in any order, unless indices are unique.
UNORDERED = {"scatter-add", "scatter-sub", "scatter-mul", "scatter_add", "scatter_sub", "scatter_mul"}
# What holds sums of jaxtex.
OF_TEXELS = {"texture_splat", "texture_pullback", "texture_fold_pullback"}
# Sums at integer coordinates follow XLA's flag alone; the others have no gradient to take, or are made of reads.
LEFT_OUT = ("surface_", "sharded.", "layers.", "warp.Sized", "warp.resample_tiles", "unit.")
# The others of these packages run with the slow tests.
MADE_OF_READS, BY_DEFAULT = ("warp.", "ndimage."), ("warp.warp_affine", "warp.warp_flow", "ndimage.map_coordinates")


def is_floating(value):
    return isinstance(value, np.ndarray | jax.Array) and jnp.issubdtype(value.dtype, jnp.inexact)


def sums_in_any_order(function, keywords):
    """The sums in the gradient of a call, with respect to all floating arrays, that may differ from run to run."""
    leaves, tree = jax.tree.flatten(keywords)
    arrays = {k: leaf for k, leaf in enumerate(leaves) if is_floating(leaf)}

    def total(arrays):
        result = function(**jax.tree.unflatten(tree, [arrays.get(k, leaf) for k, leaf in enumerate(leaves)]))
        sums = [jnp.real(leaf).sum().astype(jnp.float32) for leaf in jax.tree.leaves(result) if is_floating(leaf)]
        return sum(sums, jnp.float32(0))

    with jt.deterministic():
        program = jax.make_jaxpr(jax.grad(total))(arrays).jaxpr
    for equation in equations(program):
        name, params = equation.primitive.name, equation.params
        in_any_order = name in UNORDERED and not params["unique_indices"]
        of_texels = name in OF_TEXELS and not params["spec"].on_gpu().deterministic
        if in_any_order or of_texels or name == "select_and_scatter_add":
            yield name


SUMMED = [name for name in CALLS if not name.startswith(LEFT_OUT)]
marks_of = lambda name: [pytest.mark.slow] * (name.startswith(MADE_OF_READS) and name not in BY_DEFAULT)


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in SUMMED])
def test_no_sum_of_a_public_call(name):
    assert not [*sums_in_any_order(FUNCTIONS[name], CALLS[name])]


@pytest.mark.parametrize("mode", ["clamp", "border", "wrap", "mirror", "reflect"])
def test_no_sum_of_knots(mode):
    def read(texels, x, color, knots):
        texture = jt.texture1d(texels, border_color=color, knots=(knots,))
        filters = "linear", "lagrange"
        return [jt.sample(texture, (x,), jt.Sampler(address_mode=mode, filter_mode=name)) for name in filters]

    knots = np.arange(len(ROWS) + 2, dtype=np.float32) ** 2
    call = {"texels": ROWS, "x": np.float32([1, 3, 7]), "color": np.float32(2), "knots": knots}
    assert not [*sums_in_any_order(read, call)]
