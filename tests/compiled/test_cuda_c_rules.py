"""The rules of emitted CUDA C, compiled for the CPU, against JAX: of each, functions of special and random numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name

from jaxtex._engine.cuda.trace.emitter import IDENTITIES, RULES, Emitter, UnknownPrimitive
from jaxtex._engine.cuda.trace.indexing import load_row
from jaxtex._engine.cuda.trace.matrices import MATRICES
from jaxtex._engine.cuda.trace.meanings import MEANINGS
from jaxtex._jax.branches import where_needed
from jaxtex._jax.calls import CALLS
from tests.support.emitted import INF, NAN, assert_as_jax, numbers, primitives
from tests.support.host_compiler import Thread, run_threads

pytestmark = pytest.mark.usefixtures("on_a_cpu")
lax = jax.lax
SIGNS, SCALES = np.float32([1, -2, 0.5, 3]), np.arange(1, 21, dtype=np.float32) / 8
MATRIX = np.float32([[1, 0.25, -2], [0, 0.5, 1], [4, 3, 2], [1, 1, 1]])
TABLE = np.arange(5, dtype=np.int32) ** 2


@jax.custom_jvp
def doubled(x):
    return x + x


doubled.defjvp(lambda primals, tangents: (doubled(*primals), doubled(*tangents)))


def structured(x):
    """Shapes of many kinds, of which one number each is left."""
    table = jnp.arange(12, dtype=jnp.float32).reshape(3, 4) * x[0]
    first, second = jnp.split(jnp.stack([table.T, table[::-1, ::-1].T]), 2, axis=0)
    pair = jnp.concatenate([first, second], 0)[:, 1:4:2, :2]
    return pair.sum((0, 2)).max(keepdims=True), pair.min(keepdims=True)[0, 0], (pair > 3).any(keepdims=True)[0, 0]


def enlarged(x):
    """Numbers between and around elements, fewer of them at an end, and the same several times."""
    row = x[0] * SIGNS
    return lax.pad(row, jnp.float32(7), [(2, -1, 1)]), lax.pad(row, row[1], [(-1, 3, 0)]), lax.tile(row, (3,))


def rows_apart(x):
    return tuple(jnp.unstack(x[0] * MATRIX, axis=1))


def tripled(x):
    return [3 * x, x < 5]


def few_and_fewer(x):
    """A branch, and a branch in it."""
    return [*where_needed(x > 2, tripled, x, [-x, x < 0]), x + 1]


def branches(x):
    """Branches of which two are equal."""
    otherwise = [x, x < 1, x]
    few, twice = (where_needed(x > 1, few_and_fewer, x, otherwise) for _ in range(2))
    return *few, *twice, *where_needed(x < 0, tripled, x, few[:2])


def branch_of_pairs(x):
    """One branch for two numbers, of which one may need it."""
    pair = jnp.stack([x, -x])
    found, small = where_needed(pair > 1, tripled, pair, [pair, pair < 0])
    return *found, *small


def one_of_several(x):
    """Of two and of three branches, one of them in another, by numbers that may lie outside."""
    of_two = lambda x: lax.cond(x[0] > 0, lambda x: (x, 2 * x), lambda x: (-x, x), x)
    number = jnp.nan_to_num(x[0]).astype(jnp.int32)
    return *of_two(x), *lax.switch(number, [of_two, lambda x: (x + 1, x), lambda x: (x, x)], x)


def turns(length, reverse=False):
    """A loop that goes over numbers, some of which are computed before it, and returns numbers of each turn."""

    def run(x):
        def turn(carry, row):
            number, scale, own = row
            first, second = carry
            return (second, number + scale * first), (own - first, second > 0)

        rows = np.arange(length, dtype=np.float32), SCALES[:length, None] * SIGNS[:2], SCALES[:length, None] * x[None]
        start = jnp.zeros(2), x[0] * SIGNS[:2]
        (first, second), (differences, signs) = lax.scan(turn, start, rows, reverse=reverse)
        return first, second, differences, signs

    return run


def nested_turns(x):
    """A long loop in a long loop, and a short one in it; one without turns, and one that goes over nothing."""
    inner = lambda k, c: lax.fori_loop(0, 3, lambda n, c: c - n.astype(c.dtype), 0.5 * c + k.astype(c.dtype))
    outer = lambda k, c: lax.fori_loop(0, 18, inner, c) + x
    nothing = lax.scan(lambda c, row: (c + x, row * x[0]), x, np.zeros((18, 0), np.float32))
    return lax.fori_loop(0, 17, outer, x), lax.map(lambda a: a * x, SIGNS), lax.fori_loop(0, 0, outer, x), nothing[0]


def slopes_of_turns(x):
    """In forward mode; and in reverse mode, which keeps numbers of each turn."""
    short, long = (lambda x, n=n: lax.fori_loop(0, n, lambda k, c: 0.5 * c * x + 1, x) for n in (4, 20))
    x = jnp.clip(jnp.nan_to_num(x), -1, 1)
    return *(jax.jvp(f, (x,), (x,))[1] for f in (short, long)), *(
        jax.grad(lambda x, f=f: f(x)[0])(x) for f in (short, long)
    )


def while_it_lasts(x):
    """As many turns as a number says, in which two numbers change places; and a loop of JAX's own."""
    count, turn = x[0] & 15, lambda state: (state[0] + 1, state[2], state[1])
    return *lax.while_loop(lambda state: state[0] < count, turn, (x[0] & 3, x, x + 1)), jnp.gcd(
        x & 255, jnp.int32([36])
    )


def looked_up(x):
    """Equal tables, one of them with an index out of bounds, and another one."""
    table, clamped = jnp.asarray(TABLE), jnp.asarray(TABLE[:, None]).at[x].get(mode="clip", wrap_negative_indices=False)
    inside = {"mode": "promise_in_bounds", "wrap_negative_indices": False}
    return table.at[x & 3].get(**inside), clamped[:, 0], jnp.asarray(TABLE / 3, jnp.float32).at[x & 3].get(**inside)


def elements_of(array):
    """Elements, rows and parts of an array at computed and at known indices, outside too."""

    def run(x):
        rows = jnp.asarray(array if isinstance(array, np.ndarray) else array(x))
        low, number = x & 1, x.astype(jnp.float32)
        outside = [rows.at[(x, x - 1)].get(mode=mode, wrap_negative_indices=False) for mode in ("clip", "fill")]
        known = [rows.at[k].get(mode="fill", fill_value=7) for k in (1, 9)]
        along = jnp.take_along_axis(rows[:2], jnp.stack([x & 1, x & 1])[:, :1], 1)
        part = lax.dynamic_slice(rows, (x[0], low[0]), (2, 2))
        small = x.astype(jnp.uint8)
        return (
            rows[low],
            jnp.asarray(rows)[low + 1, 2 - low],
            *outside,
            *known,
            along,
            part,
            jnp.take(rows, small),
            number,
        )

    return run


def set_elements(x):
    """One after the other: at known and at computed indices, of rows and of batches."""
    row, square, k = x[0] * SIGNS, x[0] * MATRIX, jnp.nan_to_num(x, posinf=0, neginf=0).astype(jnp.int32)
    row = row.at[1].set(5).at[9].set(6).at[k].add(x, mode="drop", wrap_negative_indices=False)
    row = row.at[k].multiply(3, mode="clip", wrap_negative_indices=False).at[k & 1].min(2).at[k & 3].max(-1)
    row = row.at[k & 1].subtract(x).at[k & 3].apply(lambda a: a - 0.5)
    square = square.at[k & 1].set(x[0] * SIGNS[:3]).at[:, 1].add(row).at[(k & 1, k & 1)].set(x)
    several = jax.vmap(lambda row, k: row.at[k].set(8))(square, jnp.arange(4, dtype=jnp.int32) & 1)
    return row, square, several, lax.dynamic_update_slice(square, several[:2, :2], (k[0], k[0] & 1))


def interpolated(x):
    """In a curve that is a table."""
    return jnp.interp(x, np.float32([-2, 0, 1, 2, 20]), np.float32([5, 1, 3, -1, 0])), jnp.searchsorted(SCALES, x)


def along_axes(x):
    row, square = x[0] * abs(SIGNS), x[0] * abs(MATRIX)  # in which one zero is not beside the other
    places = [f(a, axis) for f in (jnp.argmax, jnp.argmin) for a, axis in ((row, 0), (square, 1))]
    return *places, lax.cummax(square), lax.cummin(row, reverse=True), jnp.max(square, 1), jnp.diag(square[:3])


def along_axes_of_integers(x):
    row = x[0] * jnp.arange(1, 7, dtype=jnp.int32).reshape(2, 3)
    joined = lambda a, b: a + b + a * b  # in any order
    reduced = [f(row, 1) for f in (jnp.sum, jnp.prod, jnp.bitwise_xor.reduce)]
    pair = lax.reduce((row, row), (jnp.int32(0), jnp.int32(0)), lambda a, b: (joined(a[0], b[0]), a[1] | b[1]), (0,))
    cumulative = jnp.cumsum(row, 1), jnp.cumprod(row, 0), lax.cumsum(row, 1, reverse=True), jnp.cumsum(row[:, :0], 1)
    return (
        *reduced,
        *pair,
        lax.reduce(row, jnp.int32(0), joined, (0, 1)),
        *cumulative,
        jnp.argmax(row, 1),
        jnp.sort(row),
    )


def sorted_numbers(x):
    """Equal ones in their order; NaN last, and the two zeros equal."""
    row = jnp.concatenate([x[0] * SIGNS, x, -x, np.float32([0, -0.0, NAN])])
    keys = jnp.arange(9, dtype=jnp.int32) % 2
    return (
        jnp.argsort(row),
        jnp.argsort(jnp.tile(row, 3)[:23]),
        *lax.sort((keys, row, jnp.arange(9)), num_keys=2),
        jnp.sort(x[0] * MATRIX, 0),
        jnp.median(x * SIGNS[:3]),
    )


def products(x):
    """Of matrices, along several axes, and of each pair of a batch; no term cancels another."""
    square, row = x[0] * abs(MATRIX), x[0] * abs(SIGNS)
    double = jnp.stack([square, 2 * square])
    return (
        *(abs(MATRIX.T) @ row, row @ square, jnp.dot(row, row), jnp.linalg.norm(square, axis=0)),
        *(jnp.einsum("bij,bik->bjk", double, double), jnp.tensordot(double, square, [(1, 2), (0, 1)])),
        lax.dot(row.astype(jnp.bfloat16), abs(SIGNS).astype(jnp.bfloat16), preferred_element_type=jnp.float32),
    )


def exact_products(x):
    """Of one term each, or of none; and a cross product, whose terms JAX writes out."""
    row, square = x[0] * SIGNS, x[0] * MATRIX
    return jnp.outer(row, row), jnp.zeros((2, 0)) @ jnp.zeros((0, 3)), jnp.cross(square, square[::-1])


def whole_products(x):
    numbers = x[0] * jnp.arange(6, dtype=jnp.int32).reshape(2, 3)
    return numbers @ numbers.T


FUNCTIONS = {
    "branch of pairs": (branch_of_pairs, "float32"),
    "branches": (branches, "float32"),
    "one of several": (one_of_several, "float32"),
    "few turns": (turns(5), "float32"),
    "few turns, backward": (turns(5, reverse=True), "float32"),
    "many turns": (turns(20), "float32"),
    "many turns, backward": (turns(20, reverse=True), "float32"),
    "nested turns": (nested_turns, "float32"),
    "slopes of turns": (slopes_of_turns, "float32"),
    "while it lasts": (while_it_lasts, "int32"),
    "tables": (looked_up, "int32"),
    "elements of a table": (elements_of(MATRIX), "int32"),
    "elements of few numbers": (elements_of(lambda x: x[0].astype(jnp.float32) * MATRIX), "int32"),
    "elements of many numbers": (elements_of(lambda x: x[0].astype(jnp.float32) * SCALES.reshape(4, 5)), "int32"),
    "set elements": (set_elements, "float32"),
    "interpolated": (interpolated, "float32"),
    "structure": (structured, "float32"),
    "enlarged": (enlarged, "float32"),
    "rows apart": (rows_apart, "float32"),
    "along axes": (along_axes, "float32"),
    "along axes of integers": (along_axes_of_integers, "int32"),
    "sorted": (sorted_numbers, "float32"),
    "products": (products, "float32"),
    "exact products": (exact_products, "float32"),
    "whole products": (whole_products, "int32"),
    "powers": (lambda x: tuple(lax.integer_pow(x, k) for k in (2, 5, -3, 7)), "float32"),
    "integer powers": (lambda x: tuple(lax.integer_pow(x, k) for k in (3, 0)), "int32"),
    "roundings": (lambda x: tuple(lax.round(x, lax.RoundingMethod(k)) for k in (0, 1)), "float32"),
    "bits of floats": (lambda x: lax.bitcast_convert_type(x, jnp.int32), "float32"),
    "bits of integers": (lambda x: lax.bitcast_convert_type(x & 0x3FFFFFFF, jnp.float32), "int32"),
    "select": (lambda x: jnp.where(x > 1, x, -x), "float32"),
    "one of three": (lambda x: lax.select_n(x & 3, x, x + 1, x + 2), "int32"),
    "reductions of bools": (lambda x: jnp.stack([x, ~x]).all(0) | jnp.stack([x, x]).any(0), "bool"),
    "calls": (lambda x: jax.checkpoint(jax.jit(doubled))(x) + lax.optimization_barrier(x), "float32"),
    "literals": (lambda x: x[0] + np.array([NAN, INF, -INF, -0.0, 1e-37, 2.0**-149, 0.1], np.float32), "float32"),
    "integer literals": (lambda x: x[0] * 0 + np.array([2**31 - 1, -(2**31), -1, 0], np.int32), "int32"),
    "halves": (lambda x: jnp.where(x > 0, jnp.bfloat16(0.1), jnp.bfloat16(NAN)).astype(jnp.float32), "float32"),
}


def test_every_rule():
    threads = {name: Thread(f, (numbers(dtype),)) for name, (f, dtype) in FUNCTIONS.items()}
    assert_as_jax(threads, is_exact=lambda name: name != "products")
    seen = set().union(*(primitives(jax.make_jaxpr(t.function)(t.inputs[0][:1]).jaxpr) for t in threads.values()))
    # Older versions of JAX stack by other primitives. `test_fused.py` has random numbers, loops that JAX transposes,
    # equations, and additions to memory; `test_unit_kernels.py` has reads of a texture unit.
    elsewhere = {"load_row", "add_row", "stack", "unstack", "one_minus_square", "empty2", "threefry2x32", *MATRICES}
    elsewhere |= {"iota_2x32_shape", "unit_read"}
    rules = RULES.keys() | MEANINGS.keys()
    assert rules - elsewhere <= seen, rules - seen
    assert CALLS & seen
    assert set(IDENTITIES) & seen


def lookup(x):
    pairs = load_row("pairs", 2 * (x & 3), 2, np.int32, aligned=True)
    return load_row("table", x, 3, np.float32)[:, 1] + pairs.sum(-1).astype(jnp.float32)


def test_rows_of_memory():
    table, pairs = np.arange(40, dtype=np.float32) ** 2, np.arange(8, dtype=np.int32)
    index = np.arange(30, dtype=np.int32)
    (found,) = run_threads([Thread(lookup, (index,), {"table": table, "pairs": pairs})])[0]
    np.testing.assert_array_equal(found, table[index + 1] + pairs.reshape(4, 2).sum(1)[index & 3])


def emitted(function, dtype="float32"):
    """What a thread's function returns, and the emitter of its statements."""
    emitter = Emitter()
    return emitter.call(function, (np.array(["a"], object), np.dtype(dtype))), emitter


def called_in_every_way(f):
    by_hand, for_batches, by_tangents = jax.custom_vjp(f), jax.custom_batching.custom_vmap(f), jax.custom_jvp(f)
    by_tangents.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
    by_hand.defvjp(lambda x: (f(x), None), lambda _, cotangent: (cotangent,))
    for_batches.def_vmap(lambda size, batched, x: (f(x), batched[0]))
    of_jax = by_tangents, by_hand, for_batches, lax.composite(f, "jaxtex.test"), jax.checkpoint(f), jax.jit(f)
    return (*of_jax, lambda x: checkpoint_name(f(x), "name"), lambda x: jax.device_put(f(x)))


def test_what_is_called_is_emitted_in_its_place():
    f = lambda x: x + x
    for function in called_in_every_way(f):
        names = primitives(jax.make_jaxpr(function)(np.float32([1])).jaxpr)
        (call,) = names - {"add"}
        assert call in CALLS | {*IDENTITIES}
        out, emitter = emitted(function)
        assert (out.item(), emitter.lines) == ("v0", ["const float v0 = a + a;"])


UNKNOWN = {
    "a primitive": (lambda x: lax.digamma(x), "float32"),
    "complex numbers": (lambda x: abs(lax.complex(x, x)), "float32"),
    "a random number": (lambda x: jax.random.uniform(jax.random.key(0)), "float32"),
    "bits of another size": (lambda x: lax.bitcast_convert_type(x, jnp.uint8), "float32"),
    "a float of 8 bits": (lambda x: lax.convert_element_type(x, jnp.float8_e4m3fn), "float32"),
    "a large product": (lambda x: jnp.ones((65, 64)) @ (x[0] * jnp.ones(64)), "float32"),
    "a long array in order": (lambda x: jnp.sort(x[0] * jnp.ones(129)), "float32"),
    "a long array of turns": (lambda x: lax.scan(lambda c, _: (c + x, c), x, length=300)[1], "float32"),
    "too many places": (lambda x: jnp.zeros(300, jnp.int32).at[x].set(x), "int32"),
    "another mode": (lambda x: jnp.asarray(TABLE).at[x].get(mode="one_hot"), "int32"),
    "the least of nothing": (lambda x: lax.reduce_max(x[:0], (0,)), "float32"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_unknown_is_refused(name):
    function, dtype = UNKNOWN[name]
    with pytest.raises(UnknownPrimitive):
        emitted(function, dtype)
