"""The elementwise primitives of JAX as expressions in C, for floats, integers and bools."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax.numpy as jnp
import numpy as np

# The types in C by the names of dtypes; types that C lacks are defined in `scalars.cuh`.
C_TYPES = {
    "bool": "bool",
    "int8": "int8",
    "uint8": "uint8",
    "int16": "short",
    "uint16": "uint16",
    "int32": "int",
    "uint32": "uint32",
    "int64": "int64",
    "uint64": "uint64",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float32": "float",
    "float64": "double",
}
# Dtypes whose numbers are converted to float32 for each operation.
STORED_ONLY = {"float16", "bfloat16"}
# The conversions of floats to integers that `scalars.cuh` has: (to, from).
TRUNCATIONS = {
    *((to, "float32") for to in ("int8", "uint8", "int16", "uint16", "int32", "uint32")),
    ("int32", "float64"),
}
# The suffixes of literals. C has no literals of shorter integers, which are converted from int.
SUFFIXES = {"int32": "", "uint32": "u", "int64": "ll", "uint64": "ull"}
ROUNDINGS = ("round({0})", "rint({0})")  # by the number of a `jax.lax.RoundingMethod`


class Expression(NamedTuple):
    """The expressions in C for floating, integer and bool operands, or `None`; {0} is the first operand."""

    floating: str | None
    integer: str | None = None
    boolean: str | None = None

    def of(self, dtype: np.dtype) -> str | None:
        """The expression for operands of a dtype."""
        number = number_of_field(dtype)
        return None if number is None else self[number]


@functools.cache
def number_of_field(dtype: np.dtype) -> int | None:
    """The number of the field of an `Expression` for operands of a dtype."""
    if np.dtype(dtype).name in STORED_ONLY:
        return None
    return 2 if jnp.issubdtype(dtype, jnp.bool) else int(not jnp.issubdtype(dtype, jnp.floating))


def same(text: str) -> Expression:
    """One expression for numbers of every kind."""
    return Expression(text, text, text)


def function(name: str) -> Expression:
    """A call of the C function `name`, for floats."""
    return Expression(f"{name}({{0}})")


EXPRESSIONS = {
    "add": Expression("{0} + {1}", "wrapped_add({0}, {1})"),
    "sub": Expression("{0} - {1}", "wrapped_sub({0}, {1})"),
    "mul": Expression("{0} * {1}", "wrapped_mul({0}, {1})"),
    "div": Expression("divided({0}, {1})", "quotient({0}, {1})"),
    "rem": Expression("remainder_of({0}, {1})", "remainder_of({0}, {1})"),
    "neg": Expression("-{0}", "wrapped_neg({0})"),
    "abs": Expression("fabs({0})", "wrapped_abs({0})"),
    "sign": Expression("sign_of({0})", "sign_of({0})"),
    "max": Expression("maximum({0}, {1})", "maximum({0}, {1})", "{0} | {1}"),
    "min": Expression("minimum({0}, {1})", "minimum({0}, {1})", "{0} & {1}"),
    "clamp": Expression("minimum(maximum({1}, {0}), {2})", "minimum(maximum({1}, {0}), {2})"),
    "and": Expression(None, "{0} & {1}", "{0} & {1}"),
    "or": Expression(None, "{0} | {1}", "{0} | {1}"),
    "xor": Expression(None, "{0} ^ {1}", "{0} != {1}"),
    "not": Expression(None, "~{0}", "!{0}"),
    "shift_left": Expression(None, "shifted_left({0}, {1})"),
    "shift_right_arithmetic": Expression(None, "shifted_right({0}, {1})"),
    "shift_right_logical": Expression(None, "shifted_right_logical({0}, {1})"),
    "eq": same("{0} == {1}"),
    "ne": same("{0} != {1}"),
    "lt": same("{0} < {1}"),
    "le": same("{0} <= {1}"),
    "gt": same("{0} > {1}"),
    "ge": same("{0} >= {1}"),
    "eq_to": Expression("ordered({0}) == ordered({1})", "{0} == {1}"),
    "lt_to": Expression("ordered({0}) < ordered({1})", "{0} < {1}"),
    "le_to": Expression("ordered({0}) <= ordered({1})", "{0} <= {1}"),
    "square": Expression("{0} * {0}", "wrapped_mul({0}, {0})"),
    "is_finite": Expression("is_finite({0})"),
    "nextafter": Expression("nextafter({0}, {1})"),
    "pow": Expression("power({0}, {1})"),
    "atan2": Expression("atan2({0}, {1})"),
    "rsqrt": function("reciprocal_root"),
    "logistic": Expression("logistic({0})"),
    **{name: function(name) for name in ("floor", "ceil", "sqrt", "cbrt", "exp", "exp2", "log", "log2", "sin", "cos")},
    **{name: function(name) for name in ("asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")},
    **{name: function(name) for name in ("tan", "expm1", "log1p", "erf", "erfc", "lgamma")},
    "erf_inv": function("erfinv"),
    "clz": Expression(None, "leading_zeros({0})"),
    "population_count": Expression(None, "population_count({0})"),
}
# Sums and products of float32 that the compiler does not fuse, and quotients that are rounded once.
ROUNDED = {
    "add": "rounded_add({0}, {1})",
    "sub": "rounded_sub({0}, {1})",
    "mul": "rounded_mul({0}, {1})",
    "square": "rounded_mul({0}, {0})",
    "div": "{0} / {1}",
}

# Functions of integers and bools that are computed while a function is traced, if their operands are literals.
KNOWN: dict[str, Callable[..., Any]] = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative},
    **{"max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or, "not": np.invert},
    **{"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal},
    **{"gt": np.greater, "ge": np.greater_equal},
}


def has_conversion(source: np.dtype, target: np.dtype) -> bool:
    """Whether `scalars.cuh` converts numbers of one dtype to another."""
    names = {source.name, target.name}
    if names & STORED_ONLY:
        return "float32" in names
    truncates = jnp.issubdtype(source, jnp.floating) and jnp.issubdtype(target, jnp.integer)
    return not truncates or (target.name, source.name) in TRUNCATIONS


def literal(value: object, dtype: np.dtype) -> str:
    """A number as a literal in C, with all its bits."""
    name, number = np.dtype(dtype).name, np.asarray(value, dtype)
    if name == "bool":
        return "true" if number else "false"
    if name in STORED_ONLY:
        return f"{C_TYPES[name]}{{{int(number.view(np.uint16)):#06x}}}"
    if name in ("float32", "float64"):
        if not np.isfinite(number):
            special = "NOT_A_NUMBER" if np.isnan(number) else "INFINITE" if number > 0 else "(-INFINITE)"
            return special if name == "float32" else f"(double)({special})"
        digits = np.format_float_scientific(cast(Any, number), unique=True, trim="0")
        text = digits + ("f" if name == "float32" else "")
        return f"({text})" if np.signbit(number) else text
    if number < 0 and number == jnp.iinfo(dtype).min and name in SUFFIXES:  # C has no literal for the least integer
        return f"({int(number) + 1}{SUFFIXES[name]} - 1)"
    if name not in SUFFIXES:
        return f"{C_TYPES[name]}({int(number)})"
    text = f"{int(number)}{SUFFIXES[name]}"
    return f"({text})" if number < 0 else text
