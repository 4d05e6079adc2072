"""Programs that tests evaluate in NumPy return what XLA returns for them, or are compiled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxtex as jt
from tests.support import evaluator, numpy_rules
from tests.support.evaluator import ALL, ELEMENTS, NONE, PROGRAMS, evaluating
from tests.support.tolerances import assert_close, assert_exact

# A GPU has its own bits of NaN, and its tests evaluate nothing.
pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu", reason="programs are evaluated in place of a CPU's")

FLOATS = np.float32([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 3e9, -3e9, np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-3, 7.25])
UNIT = np.linspace(-0.95, 0.95, 16, dtype=np.float32)
INTEGERS = np.int32([7, -7, 0, 5, -5, 2**31 - 1, -(2**31), 1, 3, -1, 40, 33, 2, 8, -2])
DIVISORS = np.int32([2, 2, 0, -3, 3, 0, -1, 31, 32, 33, 0, 5, 1, -8, 7])
MATRIX = np.arange(20, dtype=np.float32).reshape(4, 5) % 7
ROWS = np.int32([[1], [3], [0], [3]])
OUTSIDE = np.int32([[1], [-2], [4], [2**31 - 1]])


def gathered(mode):
    return lambda x, at: x.at[at[:, 0]].get(mode=mode, wrap_negative_indices=False)


def scattered(method, mode):
    return lambda x, at: getattr(x.at[at[:, 0]], method)(x[:1] * 2, mode=mode, wrap_negative_indices=False)


def looped(x):
    return lax.while_loop(lambda state: state[0] < 5, lambda state: (state[0] + 1, state[1] * 1.5), (0, x))


def scanned(x):
    return lax.scan(lambda carry, row: (carry + row, carry * row), x[0], x, reverse=True)


# Functions whose results are the same to the bit, and their arguments.
EXACT = {
    "rounded": (lambda x: (jnp.round(x), lax.round(x), jnp.floor(x), jnp.ceil(x), jnp.trunc(x)), FLOATS),
    "to integers": (lambda x: [x.astype(d) for d in (np.int8, np.uint8, np.int32, np.uint32, np.int16)], FLOATS),
    "to small floats": (
        lambda x: (x.astype(jnp.bfloat16), x.astype(np.float16), lax.reduce_precision(x, 8, 7)),
        FLOATS,
    ),
    "bits": (lambda x: lax.bitcast_convert_type(x, np.int32), FLOATS),
    "bytes": (lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, np.uint8), np.uint32), FLOATS),
    "compared": (lambda x: (x < x[::-1], x >= 0.5, x != x, jnp.isfinite(x), jnp.sign(x)), FLOATS),
    "limited": (lambda x: (jnp.clip(x, -1, 2), jnp.maximum(x, x[::-1]), jnp.minimum(x, 0.5), jnp.abs(x)), FLOATS),
    "powers": (lambda x: (lax.integer_pow(x, 3), lax.integer_pow(x, 0), x**2), UNIT),
    "remainders": (lambda x, y: (lax.rem(x, y), lax.div(x, y), jnp.mod(x, y)), INTEGERS, DIVISORS),
    "shifts": (
        lambda x, n: (x << n, lax.shift_right_logical(x, n), lax.shift_right_arithmetic(x, n), ~x, x ^ n, x & n, x | n),
        INTEGERS,
        np.abs(DIVISORS),
    ),
    "unsigned shifts": (lambda x, n: (x >> n, x << n), INTEGERS.astype(np.uint32), np.abs(DIVISORS).astype(np.uint32)),
    "selected": (lambda x, y: (jnp.where(x > 0, x, y), lax.select_n(jnp.abs(y) % 3, x, y, x + y)), INTEGERS, DIVISORS),
    "shapes": (
        lambda x: (x.T, x.reshape(2, 10), x[::-1], x[1:3, ::2], x[:, None], jnp.stack([x, x], 1), jnp.tile(x, (2, 1))),
        MATRIX,
    ),
    "parts": (lambda x: (jnp.split(x, [1, 2], 1), jnp.unstack(x, axis=1), jnp.concatenate([x, x], 1)), MATRIX),
    "padded": (lambda x: (lax.pad(x, 9.0, ((1, 0, 2), (0, 2, 0))), jnp.pad(x, 1, mode="reflect")), MATRIX),
    "windows": (
        lambda x, at: (
            lax.dynamic_slice(x, at[:2, 0], (2, 3)),
            lax.dynamic_update_slice(x, x[:2, :2], at[2:, 0]),
        ),
        MATRIX,
        OUTSIDE,
    ),
    "sums": (
        lambda x: (x.sum(0), x.max(1), x.min(), x.prod(1), jnp.cumsum(x, 1), jnp.any(x > 5, 0), jnp.all(x > 0)),
        MATRIX,
    ),
    "first of the largest": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), MATRIX),
    "sorted": (lambda x: (jnp.sort(x, 1), jnp.argsort(x, 0), lax.sort((x[0], x[1], x[2]), num_keys=2)), MATRIX),
    "products": (lambda x: (x @ x.T, jnp.einsum("ij,ik->ijk", x, x), jnp.einsum("ij,ij->i", x, x)), MATRIX),
    "gathered": (lambda x, at: (gathered("clip")(x, at), gathered("fill")(x, at)), MATRIX, OUTSIDE),
    "gathered integers": (gathered("fill"), MATRIX.astype(np.int16), OUTSIDE),
    "gathered in batches": (lambda x, at: jax.vmap(lambda row, k: row[k])(x, at), MATRIX, ROWS),
    "scattered": (lambda x, at: (scattered("add", "drop")(x, at), scattered("max", "clip")(x, at)), MATRIX, OUTSIDE),
    "set": (lambda x, at: scattered("set", "drop")(x, at), MATRIX, ROWS),
    "looped": (looped, MATRIX),
    "scanned": (scanned, MATRIX),
    "branched": (
        lambda x, k: lax.switch(k[0], [lambda x: x + 1, lambda x: -x, lambda x: x * 0], x),
        MATRIX,
        OUTSIDE[1],
    ),
    "by platform": (lambda x: lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x), MATRIX),
    "in parts": (lambda x: jax.checkpoint(jnp.negative)(jax.jit(lambda x: x + 1)(lax.optimization_barrier(x))), MATRIX),
}
CLOSE = {
    "roots": (lambda x: (jnp.sqrt(abs(x)), lax.rsqrt(abs(x)), jnp.cbrt(x)), UNIT),
    "exponentials": (lambda x: (jnp.exp(x), jnp.log(abs(x)), jnp.expm1(x), jnp.log1p(x), jax.nn.sigmoid(x)), UNIT),
    "angles": (lambda x: (jnp.sin(x), jnp.cos(x), jnp.arctan2(x, x + 2), jnp.arcsin(x), jnp.tanh(x)), UNIT),
    "derivatives": (jax.grad(lambda x: jnp.sum(jnp.sin(x) * jnp.cumsum(x**3))), UNIT),
}


def by_both(function, args):
    """What XLA returns, and what NumPy does. Nothing was compiled for that."""
    with evaluating(NONE):
        compiled = jax.tree.leaves(jax.jit(function)(*args))
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    PROGRAMS.of(jaxpr)  # which is known
    with evaluating(ALL):
        found = jax.tree.leaves(jax.jit(lambda *args: function(*args))(*args))
    return zip(found, compiled, strict=True)


@pytest.mark.parametrize("name", EXACT)
def test_numpy_returns_the_bits_of_xla(name):
    function, *args = EXACT[name]
    for found, expected in by_both(function, args):
        assert (found.dtype, found.weak_type) == (expected.dtype, expected.weak_type)
        assert_exact(found, expected)


@pytest.mark.parametrize("name", CLOSE)
def test_numpy_returns_nearly_what_xla_does(name):
    function, *args = CLOSE[name]
    for found, expected in by_both(function, args):
        assert_close("sum", found, expected, 16)


def test_a_read_is_evaluated_as_what_it_means():
    texture, coords = jt.texture2d(MATRIX[..., None]), (UNIT, UNIT[::-1])
    read = jax.value_and_grad(lambda t, x: jnp.sum(jt.sample(t, x, jt.Sampler(filter_mode="cubic"))), (0, 1))
    for found, expected in by_both(read, (texture, coords)):
        assert_close("sum", found, expected, 100)


def test_what_has_no_rule_is_compiled(programs_of_file):
    before = programs_of_file()
    with evaluating(ALL):
        assert_close("sum", jax.jit(jnp.linalg.inv)(np.eye(3, dtype=np.float32)), np.eye(3), 4)
    assert programs_of_file() == before + 1


def test_only_elements_are_evaluated_beside_compiled_programs(programs_of_file):
    before = programs_of_file()
    with evaluating(ELEMENTS):
        assert_exact(jax.jit(lambda x: x + 1)(MATRIX), MATRIX + 1)
        assert programs_of_file() == before
        jax.jit(lambda x: jnp.sin(x) + 1)(MATRIX)
    assert programs_of_file() == before + 1


def test_what_is_meant_for_several_devices_is_compiled(programs_of_file):
    device = jax.devices()[-1]
    x = jax.device_put(MATRIX, device)
    before = programs_of_file()
    with evaluating(ALL):
        assert jax.jit(lambda x: x * 3)(x).devices() == {device}
    assert programs_of_file() == before + 1


def test_a_broken_promise_is_found():
    """The library promises that its indices are in bounds, and XLA would hide where one is not."""
    promise = lambda x, at: x.at[at[:, 0]].get(mode="promise_in_bounds", wrap_negative_indices=False)
    closed = jax.make_jaxpr(promise)(MATRIX, OUTSIDE)
    evaluator.evaluate(closed, [MATRIX, OUTSIDE])
    with pytest.raises(AssertionError, match="a promise is broken"):
        evaluator.keeping_promises(closed, [MATRIX, OUTSIDE])
    assert not numpy_rules.promises.are_checked
    evaluator.keeping_promises(closed, [MATRIX, ROWS])
