"""Rules of primitives that rearrange arrays, convert numbers, or choose among them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.core import ShapedArray
from jax.extend.core import JaxprEqn

from .elementwise import ROUNDINGS, STORED_ONLY
from .statements import Names, Statements, UnknownPrimitive, are_known, as_array, aval_of, c_type_of, literals, of_each

# A function ``rule(statements, eqn, args)``: the results of an equation, from the names of its operands.
Rule = Callable[[Statements, JaxprEqn, list[Names]], Names | list[Names]]

# Shapes, which cost a thread nothing: functions of the operands' names, the parameters and the type of the first result


def broadcast(args: Sequence[Names], params: dict[str, Any], out: ShapedArray) -> Names:
    sizes = [1] * len(out.shape)
    for size, axis in zip(args[0].shape, params["broadcast_dimensions"]):
        sizes[axis] = size
    return np.broadcast_to(args[0].reshape(sizes), out.shape)


def iota(args: Sequence[Names], params: dict[str, Any], out: ShapedArray) -> Names:
    del args
    axis = params["dimension"]
    numbers = np.arange(out.shape[axis]).reshape([-1 if k == axis else 1 for k in range(len(out.shape))])
    return literals(np.broadcast_to(numbers, out.shape), out.dtype)


def sliced(args: Sequence[Names], params: dict[str, Any], out: ShapedArray) -> Names:
    strides = params["strides"] or [None] * len(out.shape)
    return args[0][tuple(map(slice, params["start_indices"], params["limit_indices"], strides))]


def padded(args: Sequence[Names], params: dict[str, Any], out: ShapedArray) -> Names:
    """An array with padding between and around its elements; negative padding removes elements."""
    names, between = args
    result = np.full(out.shape, between.item(), object)
    for index in np.ndindex(names.shape):
        place = tuple(low + i * (1 + inner) for i, (low, _, inner) in zip(index, params["padding_config"]))
        if all(0 <= i < n for i, n in zip(place, out.shape)):
            result[place] = names[index]
    return result


SHAPES: dict[str, Callable[[Sequence[Names], dict[str, Any], ShapedArray], Names | list[Names]]] = {
    "broadcast_in_dim": broadcast,
    "iota": iota,
    "slice": sliced,
    "pad": padded,
    "reshape": lambda args, _, out: args[0].reshape(out.shape),
    "squeeze": lambda args, _, out: args[0].reshape(out.shape),
    "split": lambda args, params, _: np.split(args[0], np.cumsum(params["sizes"])[:-1], params["axis"]),
    "unstack": lambda args, params, _: [*np.moveaxis(args[0], params["axis"], 0)],
    "transpose": lambda args, params, _: np.transpose(args[0], params["permutation"]),
    "rev": lambda args, params, _: np.flip(args[0], params["dimensions"]),
    "stack": lambda args, params, _: np.stack(args, params["axis"]),
    "concatenate": lambda args, params, _: np.concatenate(args, params["dimension"]),
    "tile": lambda args, params, _: np.tile(args[0], params["reps"]),
}


def structural(name: str) -> Rule:
    def rule(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> Names | list[Names]:
        out = aval_of(eqn.outvars[0] if eqn.outvars else eqn.invars[0])  # an axis of size 0 is unstacked into nothing
        return SHAPES[name](args, eqn.params, out)

    return rule


# Numbers


def convert(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> Names:
    return statements.converted(args[0], aval_of(eqn.invars[0]).dtype, aval_of(eqn.outvars[0]).dtype)


def bitcast(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> Names:
    source, target = aval_of(eqn.invars[0]).dtype, aval_of(eqn.outvars[0]).dtype
    if source.itemsize != target.itemsize:
        raise UnknownPrimitive(f"the bits of {source.name} as {target.name} are of another size")
    return statements.define_each(target, lambda a: f"bits_as<{c_type_of(target)}>({a})", *args)


def select(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> Names:
    """One of several cases, chosen by a bool, or by a number that is clamped."""
    which, *cases = args
    if are_known(which.flat):
        last, number = len(cases) - 1, lambda which: min(max(int(which.value), 0), last)
        return of_each(lambda which, *cases: cases[number(which)], args)
    if aval_of(eqn.invars[0]).dtype == bool:
        expression = "{0} ? {2} : {1}"
    else:
        choices = (f"{{0}} < {k} ? {{{k}}} : " for k in range(1, len(cases)))
        expression = "".join(choices) + f"{{{len(cases)}}}"
    return statements.define_each(aval_of(eqn.outvars[0]).dtype, expression.format, which, *cases)


def rounded(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> Names:
    dtype, expression = aval_of(eqn.outvars[0]).dtype, ROUNDINGS[eqn.params["rounding_method"]]
    wide = np.float32 if dtype.name in STORED_ONLY else dtype
    found = statements.define_each(wide, expression.format, statements.converted(args[0], dtype, wide))
    return statements.converted(found, wide, dtype)


def reduce_by_function(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> list[Names]:
    """`jax.lax.reduce` by a function of the caller's."""
    count, body, axes = len(args) // 2, eqn.params["jaxpr"], eqn.params["dimensions"]
    shape = aval_of(eqn.outvars[0]).shape
    parts = [np.moveaxis(names, axes, range(len(axes))).reshape(-1, *shape) for names in args[:count]]
    results = [np.empty(shape, object) for _ in range(count)]
    for index in np.ndindex(shape):
        total = args[count:]
        for k in range(len(parts[0])):
            total = statements.run(body.jaxpr, body.consts, [*total, *(as_array(part[k, *index]) for part in parts)])
        for result, names in zip(results, total):
            result[index] = names.item()
    return results


NUMBERS: dict[str, Rule] = {
    **{name: structural(name) for name in SHAPES},
    "convert_element_type": convert,
    "bitcast_convert_type": bitcast,
    "select_n": select,
    "round": rounded,
    "reduce": reduce_by_function,
}
