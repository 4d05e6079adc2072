"""Emitted CUDA C, compiled for the CPU, against JAX: every primitive, on random and on special values."""

import functools
import itertools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtex._engine.cuda.build import nvrtc
from jaxtex._engine.cuda.build.source import scalars
from jaxtex._engine.cuda.trace.elementwise import EXPRESSIONS
from jaxtex._engine.walk.texel_walk import clipped_to_unit
from jaxtex._jax import instructions
from tests.support.emitted import INF, NAN, all_pairs, assert_as_jax, numbers
from tests.support.host_compiler import Thread

# Primitives that `jax.lax` has under another name.
IN_LAX = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "not": "bitwise_not"}
IN_LAX |= {name: f"{name}_p" for name in ("eq_to", "lt_to", "le_to")}
# Of the same value in one rounding, or none. The rest come from a library, whose last bits may differ.
EXACT = {
    *("add", "sub", "mul", "div", "rem", "neg", "abs", "sign", "max", "min", "clamp", "and", "or", "xor", "not"),
    *("shift_left", "shift_right_arithmetic", "shift_right_logical", "eq", "ne", "lt", "le", "gt", "ge", "square"),
    *("is_finite", "nextafter", "floor", "ceil", "sqrt", "eq_to", "lt_to", "le_to", "clz", "population_count"),
}

# The functions of a GPU's library are less exact than those of a CPU's.
pytestmark = pytest.mark.usefixtures("on_a_cpu")


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
    """The function of JAX that binds it, or None for what came with a later JAX than this one."""
    function = getattr(jax.lax, IN_LAX.get(name, name), None)
    return getattr(function, "bind", function)


def jax_accepts(name, dtype):
    """Whether JAX has this primitive for such operands; it refuses signs of unsigned integers, for one."""
    try:
        jax.eval_shape(primitive(name), *(jax.ShapeDtypeStruct((1,), a.dtype) for a in operands_of(name, dtype)))
    except TypeError:
        return False
    return True


def elementwise_cases(*dtypes):
    """Each expression with each dtype that it has a form for."""
    pairs = [(name, np.dtype(d)) for name in EXPRESSIONS if primitive(name) for d in dtypes]
    return [(name, d) for name, d in pairs if EXPRESSIONS[name].of(d) is not None and jax_accepts(name, d)]


@pytest.mark.parametrize("bits", [32, 64])
def test_every_expression_on_every_kind_of_number(bits, request):
    if bits == 64:
        request.getfixturevalue("x64")
    cases = elementwise_cases(
        *(["float64", "int64", "uint64"] if bits == 64 else ["float32", "int32", "uint32", "bool"])
    )
    absent = {name for name in EXPRESSIONS if not primitive(name)}
    assert absent <= {"log2"}  # JAX has it from 0.11 on
    assert bits == 64 or {name for name, _ in cases} == EXPRESSIONS.keys() - absent
    threads = {(name, dtype): Thread(primitive(name), operands_of(name, dtype)) for name, dtype in cases}
    # XLA's logarithm of a gamma function is a sum of terms of up to 8, which mostly cancel.
    assert_as_jax(threads, lambda case: case[0] in EXACT, lambda case: 8 * (case[0] == "lgamma"))


CONVERSIONS = [
    *itertools.product(
        ["float32", "int32", "uint32", "bool", "int16", "uint8"], ["float32", "int32", "uint32", "bool"]
    ),
    *itertools.product(["float16", "bfloat16"], ["float32"]),
    *itertools.product(["float32"], ["float16", "bfloat16"]),
    *itertools.product(["int32", "uint32", "bool"], ["int16", "uint8"]),
    *itertools.product(["float32"], ["int8", "uint8", "int16", "uint16"]),
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


def test_every_instruction():
    """Of numbers that each of them accepts."""
    floats, positions = numbers(np.float32), np.int32([0, 1, 2047, 2048, 2**21, 2**23 + 2**20 + 2**9 + 3, 2**24 - 1])
    just_below = np.float32(1 - 2.0**-24)  # half of it times the smallest normal number would be rounded to that
    small = np.float32([0, -0.0, 1, just_below, -just_below, 2.0**-90, -(2.0**-90), 1.9, INF, -INF, NAN])
    sizes, tiny = np.int32([1, 3, 4096, 2**17 + 1]), np.float32([1e-40, -1e-45])
    exponents, counts = np.int32([1, 2, 60, 100, 127, 254]) << 23, np.arange(64, dtype=np.int32)
    bits = numbers(np.int32)
    given = {
        clipped_to_unit: (np.append(floats, tiny),),
        instructions.flushed_product: all_pairs(np.append(floats, tiny), exponents.view(np.float32)),
        instructions.normal_product: all_pairs(small, exponents),
        instructions.scaled_product: all_pairs(positions, sizes, np.int32([0, 4096]), np.int32([13, 21])),
        instructions.shifted_pair: all_pairs(bits, bits, counts),
    }
    assert len(given) == len(instructions.INSTRUCTIONS)
    without_sign = lambda x, factor: jnp.abs(instructions.flushed_product(x, factor))
    function = {f: f for f in given} | {instructions.flushed_product: without_sign}
    assert_as_jax({f.__name__: Thread(function[f], arrays) for f, arrays in given.items()})


def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setattr(nvrtc, "candidates", lambda: iter(["libno_such_compiler.so"]))
    nvrtc.library.cache_clear()
    with pytest.raises(nvrtc.CompilerUnavailable, match=r"install jax\[cuda12\] or jax\[cuda13\]"):
        nvrtc.library()


def test_the_newest_compiler_is_the_first_choice(monkeypatch, tmp_path):
    """By the number of its version, in whatever folder it lies."""
    versions = {"one": ["12", "9"], "two": ["13", "12.9", "12.10", "12.9.86"]}
    for site, known in versions.items():
        for number in known:
            library = tmp_path / site / f"a_package_{number}" / "lib" / f"libnvrtc.so.{number}"
            library.parent.mkdir(parents=True)
            library.touch()
    (tmp_path / "two" / "a_package_13" / "lib" / "libnvrtc.so.13.txt").touch()
    found = types.SimpleNamespace(submodule_search_locations=[str(tmp_path / site) for site in versions])
    monkeypatch.setattr(nvrtc.importlib.util, "find_spec", lambda name: found)
    *paths, newest, oldest, unnumbered = nvrtc.candidates()
    assert [path.name.split(".so.")[1] for path in paths] == ["13", "12.10", "12.9.86", "12.9", "12", "9"]
    assert (newest, oldest, unnumbered) == ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
    monkeypatch.setattr(nvrtc.importlib.util, "find_spec", lambda name: None)
    assert [*nvrtc.candidates()] == ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]


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
