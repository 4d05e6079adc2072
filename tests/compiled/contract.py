"""What every form of a read must return: the values and cotangents that NumPy computes from its meaning.

A form is a subclass of `ReadContract`, which says how a function is run. All are compared with one meaning, which no
compiler has seen.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxpr_as_fun

from tests.compiled.calls import BATCHES, FILTERS, FOOTPRINTS, POINTS, TEXELS
from tests.compiled.field_calls import FIELDS, MODELS, SPLATS
from tests.support import evaluator
from tests.support.tolerances import assert_close, assert_exact

CALLS = POINTS | FILTERS | TEXELS | FOOTPRINTS | BATCHES | FIELDS | SPLATS | MODELS
# Calls that are tested by default, one of each kind of operands and texels; the others are slow.
QUICK = (
    *("mirror, 4 channels", "layers", "a crowd", "a reproducible crowd", "bspline 5", "codes", "NaN", "flows"),
    *("bspline 5 near texels", "a footprint in texels, hardware", "a shared texture", "votes for labels"),
    *("a hashed level", "a pyramid of heads", "few texels, 2 channels, reproducible", "a drawn texel"),
)
TWICE = ("flows", "cubic flow")


def moving(call, args):
    return [args[k] for k in call.wrt]


def with_cotangents(call, cotangent, args):
    """The value of a call, and its cotangents."""
    if not call.wrt:
        return call.function(*args), ()

    def run(*some):
        given = dict(zip(call.wrt, some))
        return call.function(*(given.get(k, x) for k, x in enumerate(args)))

    value, pull = jax.vjp(run, *moving(call, args))
    return value, pull(cotangent)


def twice(call, cotangent, args):
    """How the cotangents of a call change along its own arguments."""
    pulled = lambda *some: with_cotangents(call._replace(wrt=tuple(range(len(some)))), cotangent, some)[1]
    return jax.jvp(pulled, tuple(args), tuple(args))[1]


@functools.cache
def traced(name, function=with_cotangents):
    """A call as a function of arrays, without what Python computes for it; its arrays; and the form of its results."""
    call = CALLS[name]
    shape = jax.eval_shape(call.function, *call.args)
    rng = np.random.default_rng(1)
    cotangent = jax.tree.map(lambda a: rng.normal(size=a.shape).astype(a.dtype), shape) if call.wrt else ()
    arrays, structure = jax.tree.flatten((cotangent, call.args))
    run = lambda *arrays: function(call, *jax.tree.unflatten(structure, arrays))
    closed, results = jax.make_jaxpr(run, return_shape=True)(*arrays)
    return closed, arrays, jax.tree.structure(results)


@functools.cache
def meaning(name, function=with_cotangents):
    """The results of a call in NumPy."""
    return in_numpy(*traced(name, function))


def in_numpy(closed, arrays, structure):
    """The results of a traced call: no program of it is compiled."""
    with np.errstate(all="ignore"):
        return jax.tree.unflatten(structure, evaluator.evaluate(closed, arrays))


def is_nan(array):
    """Whether numbers are NaN, without NumPy's warning of those that signal."""
    with np.errstate(invalid="ignore"):
        return np.isnan(array)


def assert_values(call, found, expected):
    """Of numbers that are rounded, NaN is where it is expected, and others are close."""
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        nan = is_nan(b) if jnp.issubdtype(b.dtype, jnp.floating) else np.zeros(b.shape, bool)
        if call.exact or not jnp.issubdtype(b.dtype, jnp.floating):
            assert_exact(np.where(nan, np.where(is_nan(a), b, a), a), b)
        else:
            np.testing.assert_array_equal(is_nan(a), nan)
            assert_close(a.dtype.name, np.nan_to_num(a), np.nan_to_num(b), call.scale)


def assert_cotangents(call, found, expected):
    """Sums of terms whose magnitudes are taken for some times the largest result, and a unit."""
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        a, b, row = np.nan_to_num(a), np.nan_to_num(b), call.row if a.dtype == np.float32 else a.dtype.name
        assert_close(row, a, b, 4 * (1 + np.abs(b).max(initial=0)))


class ReadContract:
    """The tests of a form: its subclass is collected.

    Attributes:
        calls: the names of what it runs.
    """

    calls = tuple(CALLS)

    def run(self, function, *args):
        """What the form returns for a function of arrays, which is another one in each run."""
        raise NotImplementedError

    def found(self, name, function=with_cotangents):
        """What the form returns for a call, by a single program."""
        key = type(self), name, function
        if key not in RESULTS:
            closed, arrays, structure = traced(name, function)
            results = self.run(lambda *arrays: jaxpr_as_fun(closed)(*arrays), *arrays)
            RESULTS[key] = jax.tree.unflatten(structure, [np.asarray(x) for x in results])
        return RESULTS[key]

    def pytest_generate_tests(self, metafunc):
        names = {
            "test_values": self.calls,
            "test_gradients": [name for name in self.calls if CALLS[name].wrt],
            "test_second_order": [name for name in self.calls if name in TWICE],
        }
        if metafunc.function.__name__ in names:
            marks = lambda name: [pytest.mark.slow] * (name not in QUICK)
            called = [pytest.param(name, marks=marks(name)) for name in names[metafunc.function.__name__]]
            metafunc.parametrize("name", called)

    def test_values(self, name):
        """Bit for bit where a texture unit's arithmetic is meant."""
        assert_values(CALLS[name], self.found(name)[0], meaning(name)[0])

    def test_gradients(self, name):
        assert_cotangents(CALLS[name], self.found(name)[1], meaning(name)[1])

    def test_second_order(self, name):
        assert_cotangents(CALLS[name], self.found(name, twice), meaning(name, twice))

    def test_nan_bits(self):
        """Reads that compute nothing return stored bits, also those of NaN."""
        for a, b in zip(self.found("NaN")[0], meaning("NaN")[0], strict=True):
            assert_exact(a, b)


RESULTS = {}
