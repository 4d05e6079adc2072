"""Rules of primitives that compute with numbers and are no expression of their operands alone."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from .elementwise import ROUNDINGS, has_conversion
from .statements import Names, Statements, UnknownPrimitive, as_array, c_type_of, literals

REDUCTIONS = {
    **{"reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "max", "reduce_min": "min"},
    **{"reduce_and": "and", "reduce_or": "or", "reduce_xor": "xor"},
}
CUMULATIVE = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}
# What a thread multiplies at most in one product of arrays, and how many numbers it sorts.
MOST_PRODUCTS, MOST_SORTED = 4096, 16


def convert(statements: Statements, eqn: Any, args: list[Names]) -> Names:
    return converted(statements, args[0], eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype)


def converted(statements: Statements, names: Names, source: Any, target: Any) -> Names:
    """Numbers of one dtype as numbers of another."""
    if source == target:
        return names
    if jnp.issubdtype(target, jnp.bool):
        return statements.define_each(bool, lambda a: f"{a} != 0", names)
    to, of = c_type_of(target), c_type_of(source)
    if not has_conversion(source, target):
        raise UnknownPrimitive(f"a conversion of {source.name} to {target.name} has no expression")
    return statements.define_each(target, lambda a: f"converted<{to}, {of}>({a})", names)


def bitcast(statements: Statements, eqn: Any, args: list[Names]) -> Names:
    source, target = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    if source.itemsize != target.itemsize:
        raise UnknownPrimitive(f"the bits of {source.name} as {target.name} are of another size")
    return statements.define_each(target, lambda a: f"bits_as<{c_type_of(target)}>({a})", *args)


def select(statements: Statements, eqn: Any, args: list[Names]) -> Names:
    """One of several cases: by a bool, or by a number that is kept within them."""
    which, *cases = args
    if eqn.invars[0].aval.dtype == bool:
        expression = "{0} ? {2} : {1}"
    else:
        choices = (f"{{0}} < {k} ? {{{k}}} : " for k in range(1, len(cases)))
        expression = "".join(choices) + f"{{{len(cases)}}}"
    return statements.define_each(eqn.outvars[0].aval.dtype, expression.format, which, *cases)


def integer_pow(statements: Statements, eqn: Any, args: list[Names]) -> Names:
    """By squares, as XLA does it."""
    dtype, exponent = eqn.outvars[0].aval.dtype, eqn.params["y"]
    times = lambda a, b: statements.each("mul", dtype, dtype, (a, b))
    square, power = args[0], literals(np.ones(args[0].shape, dtype))
    remaining = abs(exponent)
    while remaining:
        power = times(power, square) if remaining & 1 else power
        remaining >>= 1
        square = times(square, square) if remaining else square
    return power if exponent >= 0 else statements.each("div", dtype, dtype, (literals(np.ones((), dtype)), power))


def rounded(statements: Statements, eqn: Any, args: list[Names]) -> Names:
    return statements.define_each(eqn.outvars[0].aval.dtype, ROUNDINGS[eqn.params["rounding_method"]].format, *args)


# Along axes


def first_axes(names: Names, axes: Sequence[int], shape: tuple[int, ...]) -> Names:
    """The numbers along some axes as one axis, in front of a shape."""
    return np.moveaxis(names, axes, range(len(axes))).reshape(-1, *shape)


def reduce(statements: Statements, eqn: Any, args: list[Names]) -> Names:
    (numbers,), aval = args, eqn.outvars[0].aval
    parts = first_axes(numbers, eqn.params["axes"], aval.shape)
    name = REDUCTIONS[eqn.primitive.name]
    if name == "add":  # from 0, which matters to -0
        parts = [literals(np.zeros(aval.shape, aval.dtype)), *parts]
    if not len(parts):
        raise UnknownPrimitive(f"{eqn.primitive.name} of no numbers has no rule")
    return functools.reduce(lambda a, b: statements.each(name, aval.dtype, aval.dtype, (a, b)), parts)


def reduce_by_function(statements: Statements, eqn: Any, args: list[Names]) -> list[Names]:
    """`jax.lax.reduce` by a function of the caller's."""
    count, body, axes = len(args) // 2, eqn.params["jaxpr"], eqn.params["dimensions"]
    shape = eqn.outvars[0].aval.shape
    parts = [first_axes(numbers, axes, shape) for numbers in args[:count]]
    results = [np.empty(shape, object) for _ in range(count)]
    for index in np.ndindex(shape):
        found = args[count:]
        for k in range(len(parts[0])):
            found = statements.run(body.jaxpr, body.consts, [*found, *(as_array(part[k, *index]) for part in parts)])
        for result, names in zip(results, found):
            result[index] = names.item()
    return results


def cumulate(statements: Statements, eqn: Any, args: list[Names]) -> Names:
    axis, aval, name = eqn.params["axis"], eqn.outvars[0].aval, CUMULATIVE[eqn.primitive.name]
    if not args[0].size:
        return args[0]
    step = -1 if eqn.params["reverse"] else 1
    parts = np.moveaxis(args[0], axis, 0)[::step]
    sums = itertools.accumulate(parts, lambda a, b: statements.each(name, aval.dtype, aval.dtype, (a, b)))
    return np.stack([*sums][::step], axis)


def arg_extreme(statements: Statements, eqn: Any, args: list[Names]) -> Names:
    """The first place of the largest or the smallest number; that of a NaN, if there is one."""
    aval, dtype, (axis,) = eqn.outvars[0].aval, eqn.invars[0].aval.dtype, eqn.params["axes"]
    sign = ">" if eqn.primitive.name == "argmax" else "<"
    numbers = np.moveaxis(args[0], axis, 0)
    best, place = numbers[0], literals(np.zeros(aval.shape, aval.dtype))
    is_better = f"{{0}} {sign} {{1}}"
    if jnp.issubdtype(dtype, jnp.floating):
        is_better += " || ({0} != {0} && {1} == {1})"
    for k, number in enumerate(numbers[1:], 1):
        better = statements.define_each(bool, is_better.format, number, best)
        choose = "{0} ? {1} : {2}".format
        place = statements.define_each(aval.dtype, choose, better, literals(np.asarray(k, aval.dtype)), place)
        best = statements.define_each(dtype, choose, better, number, best)
    return place


def sort(statements: Statements, eqn: Any, args: list[Names]) -> list[Names]:
    """By exchanges of neighbors, which leave equal numbers in their order. NaN comes last."""
    axis, dtypes = eqn.params["dimension"], [var.aval.dtype for var in eqn.invars]
    rows = [[*np.moveaxis(names, axis, 0)] for names in args]
    count = len(rows[0])
    if count > MOST_SORTED:
        raise UnknownPrimitive(f"sort: a thread sorts at most {MOST_SORTED} numbers, and here {count}")
    for last in range(count - 1, 0, -1):
        for k in range(last):
            pairs = [(row[k], row[k + 1]) for row in rows]
            follows = after(statements, dtypes, pairs[: eqn.params["num_keys"]])
            for row, dtype, (first, second) in zip(rows, dtypes, pairs):
                for place, (no, yes) in ((k, (first, second)), (k + 1, (second, first))):
                    row[place] = statements.define_each(dtype, "{0} ? {2} : {1}".format, follows, no, yes)
    return [np.stack(row, axis) if count else names for row, names in zip(rows, args)]


def after(statements: Statements, dtypes: Sequence[Any], pairs: Sequence[tuple[Names, Names]]) -> Names:
    """Whether the first of two elements belongs after the second, by the first of their keys that differ."""
    (first, second), *others = pairs

    def precedes(a: Names, b: Names) -> Names:
        nan_last = " || ({1} != {1} && {0} == {0})" if jnp.issubdtype(dtypes[0], jnp.floating) else ""
        return statements.define_each(bool, ("{0} < {1}" + nan_last).format, a, b)

    follows = precedes(second, first)
    if not others:
        return follows
    otherwise = after(statements, dtypes[1:], others)
    both = "{0} || (!{1} && {2})".format
    return statements.define_each(bool, both, follows, precedes(first, second), otherwise)


def dot_general(statements: Statements, eqn: Any, args: list[Names]) -> Names:
    """Sums of products, one after the other."""
    (contracted, batch), aval = eqn.params["dimension_numbers"], eqn.outvars[0].aval
    sides = []
    for var, names, along, ahead in zip(eqn.invars, args, contracted, batch):
        free = [axis for axis in range(names.ndim) if axis not in (*along, *ahead)]
        ahead_shape, *rest = ([names.shape[axis] for axis in axes] for axes in (ahead, free, along))
        numbers = np.transpose(names, (*ahead, *free, *along)).reshape(*ahead_shape, *map(math.prod, rest))
        sides.append(converted(statements, numbers, var.aval.dtype, aval.dtype))
    first, second = sides[0][..., :, None, :], sides[1][..., None, :, :]
    count = first.size * second.shape[-2]
    if count > MOST_PRODUCTS:
        raise UnknownPrimitive(f"dot_general: a thread multiplies at most {MOST_PRODUCTS} numbers, and here {count}")
    each = functools.partial(statements.each, dtype=aval.dtype, operand=aval.dtype)
    terms = [each("mul", args=(first[..., k], second[..., k])) for k in range(first.shape[-1])]
    if not terms:
        return literals(np.zeros(aval.shape, aval.dtype))
    return functools.reduce(lambda a, b: each("add", args=(a, b)), terms).reshape(aval.shape)


NUMERIC: dict[str, Callable[[Statements, Any, list[Names]], Any]] = {
    "convert_element_type": convert,
    "bitcast_convert_type": bitcast,
    "select_n": select,
    "integer_pow": integer_pow,
    "round": rounded,
    "dot_general": dot_general,
    "argmax": arg_extreme,
    "argmin": arg_extreme,
    "sort": sort,
    "reduce": reduce_by_function,
    **dict.fromkeys(REDUCTIONS, reduce),
    **dict.fromkeys(CUMULATIVE, cumulate),
}
