"""Derivatives of a smooth function against its own differences, to the second order, in few compiled programs."""

import jax
import jax.numpy as jnp
import numpy as np

from tests.oracles import reads as oracle
from tests.support.tolerances import assert_close


def with_gradients(function, wrt=(0,)):
    """A function that also returns the gradients of the sum of the squares of its results, in some arguments."""

    def run(*args):
        def of(*some):
            given = dict(zip(wrt, some))
            return function(*(given.get(k, a) for k, a in enumerate(args)))

        values, pull = jax.vjp(of, *(args[k] for k in wrt))
        return values, pull(2 * values)

    return run


def assert_derivatives(function, *primals, step=3e-4, seed=0):
    """Forward mode, reverse mode and reverse pushed forward, against differences in float64 along one line.

    `function` maps `primals`, trees of float64 arrays, to an array; with kinks farther than two steps away.
    """
    rng = np.random.default_rng(seed)
    like = lambda tree: jax.tree.map(lambda a: rng.normal(size=np.shape(a)), tree)
    primals = jax.device_put(primals)
    tangents = jax.device_put(like(primals))
    assert all(a.dtype == jnp.float64 for a in jax.tree.leaves((primals, tangents)))

    @jax.jit
    def along(t):
        return function(*jax.tree.map(lambda p, d: p + t * d, primals, tangents))

    value, first, second = oracle.differences(lambda t: np.asarray(along(np.float64(t))), step)
    cotangent = like(value)
    dot = lambda a, b: sum(jax.tree.leaves(jax.tree.map(jnp.vdot, a, b)))
    gradient = jax.grad(lambda p: jnp.vdot(cotangent, function(*p)))

    @jax.jit
    def derivatives(primals, tangents):
        pushed = jax.jvp(function, primals, tangents)[1]
        return pushed, jax.jvp(lambda p: dot(gradient(p), tangents), (primals,), (tangents,))

    pushed, (pulled, again) = derivatives(primals, tangents)
    contracted = lambda expected: np.vdot(cotangent, expected)
    for actual, expected, row in (
        (pushed, first, "first differences"),
        (pulled, contracted(first), "first differences"),
        (again, contracted(second), "second differences"),
    ):
        assert_close(row, actual, expected, max(np.abs(expected).max(), 1.0))
