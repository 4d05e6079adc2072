"""The numbers that tests of emitted CUDA C give to threads, and the comparison of what threads return with JAX."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from tests.support.host_compiler import run_threads
from tests.support.jaxprs import equations
from tests.support.tolerances import assert_close

INF, NAN = np.inf, np.nan
FLOATS = [0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 1e-3, 255.5, 1e30, -1e30, 3e38]
FLOATS += [2.0**31, -(2.0**31), INF, -INF, NAN]
# Beyond them libraries reduce an angle in their own ways.
MODERATE = [0, -0.0, 1, -1, 0.5, -0.5, 0.9, 1.5, -2.5, 3, 1e-3, 20, -20, INF, -INF, NAN]


def numbers(dtype, exact=True, seed=0):
    """Special values of a dtype, then random ones."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if jnp.issubdtype(dtype, jnp.bool):
        return np.array([False, True] * 8)
    if jnp.issubdtype(dtype, jnp.floating):
        special = FLOATS if exact else MODERATE
        with np.errstate(over="ignore"):  # in 16 bits
            return np.concatenate([special, rng.normal(size=12) * (100 if exact else 2)]).astype(dtype)
    info = np.iinfo(dtype)
    special = [0, 1, 2, 5, 7, info.bits - 1, info.bits, info.max, info.max - 1, info.min, info.min + 1]
    special += [-1, -2, -7] if info.min else []
    return np.concatenate([np.array(special, dtype), rng.integers(info.min, info.max, 8, dtype, endpoint=True)])


def all_pairs(*arrays):
    return tuple(np.array(column) for column in zip(*itertools.product(*arrays)))


def flushed(a):
    """Without subnormal numbers, which XLA makes zero on a CPU."""
    if not jnp.issubdtype(a.dtype, jnp.floating):
        return a
    with np.errstate(invalid="ignore"):  # signaling NaN of 16 bits
        return np.where(np.abs(a) < jnp.finfo(a.dtype).tiny, np.copysign(np.zeros_like(a), a), a)


def bits_differ(a, b):
    """Where bits differ; NaN is like NaN."""
    if not jnp.issubdtype(a.dtype, jnp.floating):
        return a != b
    return ((a != b) | (np.signbit(a) != np.signbit(b))) & ~(np.isnan(a) & np.isnan(b))


def run_by_jax(function, inputs):
    """What a thread's function returns for each element of its inputs."""
    return jax.vmap(lambda *xs: function(*(x[None] for x in xs)))(*inputs)


def assert_as_jax(threads, is_exact=lambda name: True, terms_of=lambda name: 0):
    """Equal bits, or a few roundings: of the result, or of terms of some magnitude, whose sum it is.

    Args:
        threads: by their names, of which `is_exact` and `terms_of` are functions.
    """
    by_jax = jax.jit(lambda inputs: [run_by_jax(t.function, given) for t, given in zip(threads.values(), inputs)])
    expected = by_jax([thread.inputs for thread in threads.values()])
    for (name, thread), found, of_jax in zip(
        threads.items(), run_threads(list(threads.values())), expected, strict=True
    ):
        for ours, theirs in zip(found, jax.tree.leaves(of_jax), strict=True):
            assert ours.dtype == theirs.dtype, name
            ours, theirs = flushed(ours), flushed(np.asarray(theirs).reshape(ours.shape))
            differ = bits_differ(ours, theirs)
            if is_exact(name):
                k = tuple(np.argwhere(differ)[0]) if differ.any() else None
                assert k is None, (name, [a[k[0]] for a in thread.inputs], ours[k], theirs[k])
            else:
                scale = np.abs(theirs[differ]) + terms_of(name)
                assert_close("library function", ours[differ], theirs[differ], scale)


def primitives(jaxpr):
    """The names of the primitives in a jaxpr and in those that it calls."""
    return {equation.primitive.name for equation in equations(jaxpr)}
