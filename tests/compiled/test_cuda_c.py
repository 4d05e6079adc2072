"""Emitted CUDA C, compiled for the CPU, against JAX: every primitive, on random and on special values."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtex._engine.compute import instructions
from jaxtex._engine.cuda.build import nvrtc
from jaxtex._engine.cuda.build.source import scalars
from jaxtex._engine.cuda.trace.elementwise import EXPRESSIONS
from jaxtex._engine.cuda.trace.emitter import CALLS, IDENTITIES, RULES, Emitter, UnknownPrimitive
from jaxtex._engine.cuda.trace.memory import load_row
from jaxtex._jax.branches import where_needed
from tests.support.host_compiler import Thread, run_threads
from tests.support.tolerances import assert_close

INF, NAN = np.inf, np.nan
# Primitives that `jax.lax` has under another name.
IN_LAX = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "not": "bitwise_not"}
# Of the same value in one rounding, or none. The rest come from a library, whose last bits may differ.
EXACT = {
    *("add", "sub", "mul", "div", "rem", "neg", "abs", "sign", "max", "min", "clamp", "and", "or", "xor", "not"),
    *("shift_left", "shift_right_arithmetic", "shift_right_logical", "eq", "ne", "lt", "le", "gt", "ge", "square"),
    *("is_finite", "nextafter", "floor", "ceil", "sqrt"),
}
FLOATS = [
    0,
    -0.0,
    1,
    -1,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3,
    1e-3,
    255.5,
    1e30,
    -1e30,
    3e38,
    2.0**31,
    -(2.0**31),
    INF,
    -INF,
    NAN,
]
# Beyond them libraries reduce an angle in their own ways.
MODERATE = [0, -0.0, 1, -1, 0.5, -0.5, 0.9, 1.5, -2.5, 3, 1e-3, 20, -20, INF, -INF, NAN]


@pytest.fixture(autouse=True)
def on_cpu():
    """The functions of a GPU's library are less exact than those of a CPU's."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


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


def operands_of(name, dtype):
    exact, expression = name in EXACT, EXPRESSIONS[name].of(dtype)
    count = 1 + max(k for k in range(3) if f"{{{k}}}" in expression)
    if count == 3:
        low, x, high = all_pairs(*[numbers(dtype, exact)[:12]] * 3)
        keep = low <= high
        return low[keep], x[keep], high[keep]
    arrays = all_pairs(*(numbers(dtype, exact, seed) for seed in range(count)))
    return tuple(a.astype(dtype) for a in arrays)


def primitive(name):
    return getattr(jax.lax, IN_LAX.get(name, name))


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


def assert_as_jax(threads, is_exact=lambda name: True):
    """Equal bits, or a few roundings. `threads` have names."""
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
                assert_close("library function", ours[differ], theirs[differ], np.abs(theirs[differ]))


def jax_accepts(name, dtype):
    """Whether JAX has this primitive for such operands; it refuses signs of unsigned integers, for one."""
    try:
        jax.eval_shape(primitive(name), *(jax.ShapeDtypeStruct((1,), a.dtype) for a in operands_of(name, dtype)))
    except TypeError:
        return False
    return True


def elementwise_cases(*dtypes):
    """Each expression with each dtype that it has a form for."""
    pairs = [(name, np.dtype(d)) for name in EXPRESSIONS for d in dtypes]
    return [(name, d) for name, d in pairs if EXPRESSIONS[name].of(d) is not None and jax_accepts(name, d)]


@pytest.mark.parametrize("bits", [32, 64])
def test_every_expression_on_every_kind_of_number(bits, request):
    if bits == 64:
        request.getfixturevalue("x64")
    cases = elementwise_cases(
        *(["float64", "int64", "uint64"] if bits == 64 else ["float32", "int32", "uint32", "bool"])
    )
    assert bits == 64 or {name for name, _ in cases} == EXPRESSIONS.keys()
    threads = {(name, dtype): Thread(primitive(name), operands_of(name, dtype)) for name, dtype in cases}
    assert_as_jax(threads, is_exact=lambda case: case[0] in EXACT)


# Rules

CONVERSIONS = [
    *itertools.product(
        ["float32", "int32", "uint32", "bool", "int16", "uint8"], ["float32", "int32", "uint32", "bool"]
    ),
    *itertools.product(["float16", "bfloat16"], ["float32"]),
    *itertools.product(["float32"], ["float16", "bfloat16"]),
    *itertools.product(["int32", "uint32", "bool"], ["int16", "uint8"]),
]


def test_conversions_between_kinds_of_numbers():
    """A float out of range becomes the nearest integer, and NaN zero; 16 bits are rounded to even."""
    threads = {}
    for source, target in CONVERSIONS:
        numbers_ = numbers(source)
        if source in ("float16", "bfloat16"):
            numbers_ = np.arange(2**16, dtype=np.uint16).view(jnp.dtype(source))
        elif target in ("float16", "bfloat16"):
            halves = np.arange(2**16, dtype=np.uint16).view(jnp.dtype(target)).astype(np.float32)
            finite = np.sort(halves[np.isfinite(halves)])
            numbers_ = np.concatenate([numbers_, halves, finite[1:] / 2 + finite[:-1] / 2])  # and every tie
        threads[source, target] = Thread(functools.partial(jax.lax.convert_element_type, new_dtype=target), (numbers_,))
    assert_as_jax(threads)


def lookup(x):
    pairs = load_row("pairs", 2 * (x & 3), 2, np.int32, aligned=True)
    return load_row("table", x, 3, np.float32)[:, 1] + pairs.sum(-1).astype(jnp.float32)


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


TABLE = np.arange(5, dtype=np.int32) ** 2


def looked_up(x):
    """Equal tables, one of them with an index out of bounds, and another one."""
    table, clamped = jnp.asarray(TABLE), jnp.asarray(TABLE[:, None]).at[x].get(mode="clip", wrap_negative_indices=False)
    inside = {"mode": "promise_in_bounds", "wrap_negative_indices": False}
    return table.at[x & 3].get(**inside), clamped[:, 0], jnp.asarray(TABLE / 3, jnp.float32).at[x & 3].get(**inside)


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


FUNCTIONS = {
    "branch of pairs": (branch_of_pairs, "float32"),
    "branches": (branches, "float32"),
    "tables": (looked_up, "int32"),
    "structure": (structured, "float32"),
    "powers": (lambda x: tuple(jax.lax.integer_pow(x, k) for k in (2, 5, -3, 7)), "float32"),
    "integer powers": (lambda x: tuple(jax.lax.integer_pow(x, k) for k in (3, 0)), "int32"),
    "roundings": (lambda x: tuple(jax.lax.round(x, jax.lax.RoundingMethod(k)) for k in (0, 1)), "float32"),
    "bits of floats": (lambda x: jax.lax.bitcast_convert_type(x, jnp.int32), "float32"),
    "bits of integers": (lambda x: jax.lax.bitcast_convert_type(x & 0x3FFFFFFF, jnp.float32), "int32"),
    "select": (lambda x: jnp.where(x > 1, x, -x), "float32"),
    "reductions of bools": (lambda x: jnp.stack([x, ~x]).all(0) | jnp.stack([x, x]).any(0), "bool"),
    "calls": (lambda x: jax.checkpoint(jax.jit(doubled))(x) + jax.lax.optimization_barrier(x), "float32"),
    "literals": (lambda x: x[0] + np.array([NAN, INF, -INF, -0.0, 1e-37, 2.0**-149, 0.1], np.float32), "float32"),
    "integer literals": (lambda x: x[0] * 0 + np.array([2**31 - 1, -(2**31), -1, 0], np.int32), "int32"),
    "halves": (lambda x: jnp.where(x > 0, jnp.bfloat16(0.1), jnp.bfloat16(NAN)).astype(jnp.float32), "float32"),
}


def test_every_rule():
    threads = {name: Thread(f, (numbers(dtype),)) for name, (f, dtype) in FUNCTIONS.items()}
    assert_as_jax(threads)
    seen = set().union(*(primitives(jax.make_jaxpr(t.function)(t.inputs[0][:1]).jaxpr) for t in threads.values()))
    assert RULES.keys() - {"load_row", "stack"} <= seen  # older versions of JAX stack by other primitives
    assert CALLS.keys() & seen
    assert set(IDENTITIES) & seen


def test_every_instruction():
    """Of numbers that each of them accepts."""
    floats, positions = numbers(np.float32), np.int32([0, 1, 2047, 2048, 2**21, 2**23 + 2**20 + 2**9 + 3, 2**24 - 1])
    just_below = np.float32(1 - 2.0**-24)  # half of it times the smallest normal number would be rounded to that
    small = np.float32([0, -0.0, 1, just_below, -just_below, 2.0**-90, -(2.0**-90), 1.9, INF, -INF, NAN])
    sizes, tiny = np.int32([1, 3, 4096, 2**17 + 1]), np.float32([1e-40, -1e-45])
    exponents, counts = np.int32([1, 2, 60, 100, 127, 254]) << 23, np.arange(64, dtype=np.int32)
    bits = numbers(np.int32)
    given = {
        instructions.saturated: (np.append(floats, tiny),),
        instructions.flushed_product: all_pairs(np.append(floats, tiny), exponents.view(np.float32)),
        instructions.normal_product: all_pairs(small, exponents),
        instructions.scaled_product: all_pairs(positions, sizes, np.int32([0, 4096]), np.int32([13, 21])),
        instructions.shifted_pair: all_pairs(bits, bits, counts),
    }
    assert len(given) == len(instructions.INSTRUCTIONS)
    without_sign = lambda x, factor: jnp.abs(instructions.flushed_product(x, factor))
    function = {f: f for f in given} | {instructions.flushed_product: without_sign}
    assert_as_jax({f.__name__: Thread(function[f], arrays) for f, arrays in given.items()})


def primitives(jaxpr):
    """The names of the primitives in a jaxpr and in those that it calls."""
    found = {eqn.primitive.name for eqn in jaxpr.eqns}
    inner = (getattr(p, "jaxpr", p) for eqn in jaxpr.eqns for p in eqn.params.values())
    return found.union(*(primitives(p) for p in inner if hasattr(p, "eqns")))


def test_rows_of_memory():
    table, pairs = np.arange(40, dtype=np.float32) ** 2, np.arange(8, dtype=np.int32)
    index = np.arange(30, dtype=np.int32)
    (found,) = run_threads([Thread(lookup, (index,), {"table": table, "pairs": pairs})])[0]
    np.testing.assert_array_equal(found, table[index + 1] + pairs.reshape(4, 2).sum(1)[index & 3])


def test_equal_expressions_are_computed_once():
    emitter = Emitter()
    args = [(np.array([name], object), np.float32) for name in ("a", "b")]
    out = emitter.call(lambda a, b: (a * b + 1, (a * b) * 1.0 - 1), *args)
    assert [names[0] for names in out] == ["v1", "v2"]
    assert emitter.lines[0] == "const float v0 = a * b;"
    assert len(emitter.lines) == 3


def test_equal_branches_are_one():
    emitter = Emitter()
    out = emitter.call(branches, (np.array(["a"], object), np.float32))
    assert sum(line.startswith("if (") for line in emitter.lines) == 3
    assert [names[0] for names in out[:3]] == [names[0] for names in out[3:6]]


def test_equal_tables_are_one():
    emitter = Emitter()
    emitter.call(looked_up, (np.array(["a"], object), np.int32))
    assert [line.split("{")[0] for line in emitter.tables] == ["TABLE int table_0[5] = ", "TABLE float table_1[5] = "]


def test_exact_sums_and_products_of_floats():
    """Each is rounded by itself, and integers stay as they are."""
    emitter = Emitter()
    emitter.exact = True
    emitter.call(
        lambda a, k: (a * 3 - jnp.square(a), k * 3 + k),
        *((np.array([n], object), d) for n, d in (("a", np.float32), ("k", np.int32))),
    )
    assert [line.split(" = ")[1] for line in emitter.lines] == [
        "rounded_mul(a, 3.0e+00f);",
        "rounded_mul(a, a);",
        "rounded_sub(v0, v1);",
        "wrapped_mul(k, 3);",
        "wrapped_add(v3, k);",
    ]


UNKNOWN = {
    "a table that is not constant": (lambda x: jnp.stack([x[0], x[0]]).at[x].get(mode="clip"), "int32"),
    "a table that may be missed": (lambda x: jnp.asarray(TABLE).at[x].get(mode="fill"), "int32"),
    "rows of a table": (lambda x: jnp.asarray(TABLE.reshape(1, 5)).at[x].get(mode="clip"), "int32"),
    "a primitive": (lambda x: jnp.sort(x), "float32"),
    "arithmetic of 16 bits": (lambda x: x + x, "bfloat16"),
    "a float as a byte": (lambda x: x.astype(jnp.uint8), "float32"),
    "bits of another size": (lambda x: jax.lax.bitcast_convert_type(x, jnp.uint8), "float32"),
    "three cases": (lambda x: jax.lax.select_n(x, x, x + 1, x + 2), "int32"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_unknown_is_refused(name):
    function, dtype = UNKNOWN[name]
    with pytest.raises(UnknownPrimitive):
        Emitter().call(function, (np.array(["a"], object), np.dtype(dtype)))


# Compiler, launch


def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setattr(nvrtc, "candidates", lambda: iter(["libno_such_compiler.so"]))
    nvrtc.library.cache_clear()
    with pytest.raises(nvrtc.CompilerUnavailable, match=r"install jax\[cuda12\] or jax\[cuda13\]"):
        nvrtc.library()


@pytest.mark.gpu
@pytest.mark.parametrize("capability", nvrtc.PTX_VERSIONS)
def test_nvrtc_compiles_for_every_gpu(capability):
    """For the newest before it where it does not know one: CUDA 12 does not know the newest ones."""
    source = f'{scalars()}\nextern "C" __global__ void f(float* a) {{ a[0] = maximum(a[1], a[2]); }}'
    ptx, (major, minor) = nvrtc.compile_to_ptx(source, capability), nvrtc.known_below(capability)
    assert (major, minor) == capability or capability > (9, 0)
    version = "{}.{}".format(*nvrtc.PTX_VERSIONS[major, minor])
    assert f".version {version}\n.target sm_{major}{minor}" in ptx
    assert "max.NaN.f32" in ptx


@pytest.mark.gpu
def test_a_wrong_source_says_what_is_wrong():
    with pytest.raises(nvrtc.CompilationFailed, match=r"kernel\.cu"):
        nvrtc.compile_to_ptx("nonsense", (9, 0))
