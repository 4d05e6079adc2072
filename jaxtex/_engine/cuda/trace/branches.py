"""Rules of branches and loops."""

import functools
from collections.abc import Sequence

import numpy as np
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params
from jax.typing import DTypeLike

from ...._jax.branches import meaning
from ...._jax.versions import sizes_of_scan
from .indexing import elements
from .numbers import Rule
from .statements import MOST_KEPT, Names, Number, Statements, are_known, as_array, aval_of

# The largest number of iterations of a scan that are unrolled, and of their equations; more become a loop in C.
MOST_UNROLLED, MOST_EQUATIONS = 16, 2048
# The name of NVIDIA GPUs in `jax.lax.platform_dependent`.
PLATFORM = "cuda"


def where_needed(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> list[Names]:
    """The results of `where_needed`, by a branch that is taken if any number needs it. Equal calls share one branch."""
    types = tuple((aval_of(var).shape, aval_of(var).dtype) for var in eqn.invars)
    key = (*eqn.params.values(), types, *((names.shape, *names.flat) for names in args))
    if key not in statements.branches:
        condition, count = " || ".join(dict.fromkeys(args[0].flat)), len(eqn.outvars)
        with statements.scope(diverges=True) as lines:
            needed = statements.meaning(functools.partial(meaning, **eqn.params), eqn, args)
        results = []
        for var, names, other in zip(eqn.outvars, needed, args[-count:]):
            results.append(statements.variables(aval_of(var).dtype, np.broadcast_to(other, names.shape)))
            lines.extend(f"{name} = {number};" for name, number in zip(results[-1].flat, names.flat))
        statements.branches[key] = results
        statements.lines += [f"if ({condition}) {{", *lines, "}"]
    return statements.branches[key]


def dtypes_of(variables: Sequence[Var | Literal]) -> list[DTypeLike]:
    return [aval_of(var).dtype for var in variables]


def cond(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> list[Names]:
    """The results of one of several branches; the number of the branch is clamped."""
    (number, *operands), branches = args, eqn.params["branches"]
    number, last = number.item(), len(branches) - 1
    if isinstance(number, Number):
        branch = branches[min(max(int(number.value), 0), last)]
        return statements.run(branch.jaxpr, branch.consts, operands)
    dtypes = dtypes_of(eqn.outvars)
    results = [statements.variables(aval_of(var).dtype, shape=aval_of(var).shape) for var in eqn.outvars]
    for k, branch in enumerate(branches):
        with statements.scope(diverges=True) as lines:
            values = statements.run(branch.jaxpr, branch.consts, operands)
            statements.assign(dtypes, results, values)
        otherwise = "} else " * (k > 0)
        statements.lines += [f"{otherwise}{{" if k == last else f"{otherwise}if ({number} < {k + 1}) {{", *lines]
    statements.lines.append("}")
    return results


def platform_index(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> Names:
    del statements, args
    platforms, dtype = eqn.params["platforms"], aval_of(eqn.outvars[0]).dtype
    fits = (k for k, names in enumerate(platforms) if names is None or PLATFORM in names)
    return as_array(Number(next(fits), dtype))


def num_equations(jaxpr: Jaxpr) -> int:
    """The number of equations of a jaxpr and of those in it, once for each iteration of a short scan."""

    def of(eqn: JaxprEqn) -> int:
        inner = sum(map(num_equations, jaxprs_in_params(eqn.params)))
        return 1 + inner * min(eqn.params["length"] if eqn.primitive.name == "scan" else 1, MOST_UNROLLED)

    return sum(map(of, jaxpr.eqns))


def scan(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> list[Names]:
    params, length, body = eqn.params, eqn.params["length"], eqn.params["jaxpr"]
    num_consts, num_carried = sizes_of_scan(params)
    consts, carry, rows = args[:num_consts], args[num_consts:][:num_carried], args[num_consts + num_carried :]
    # Scans of many turns are loops in C, and so are long ones whose arrays fit into the memory of a thread.
    is_long = length * num_equations(body.jaxpr) > MOST_EQUATIONS
    in_memory = (*eqn.invars[num_consts + num_carried :], *eqn.outvars[num_carried:])
    if length > MOST_UNROLLED or (is_long and all(aval_of(v).size <= MOST_KEPT for v in in_memory)):
        return scan_in_loop(statements, eqn, consts, carry, rows)
    # Short ones are written turn by turn, where equal expressions are shared.
    turns = [None] * length
    for k in reversed(range(length)) if params["reverse"] else range(length):
        values = statements.run(body.jaxpr, body.consts, [*consts, *carry, *(as_array(row[k]) for row in rows)])
        carry, turns[k] = values[:num_carried], values[num_carried:]
    if not length:
        return [*carry, *(np.empty(aval_of(var).shape, object) for var in eqn.outvars[num_carried:])]
    stacked = (np.stack(names) for names in zip(*turns))
    return [*carry, *stacked]


def scan_in_loop(
    statements: Statements, eqn: JaxprEqn, consts: Sequence[Names], carry: Sequence[Names], rows: Sequence[Names]
) -> list[Names]:
    """A scan as a loop in C; its inputs and its stacked results are arrays in memory."""
    body, length, count = eqn.params["jaxpr"], eqn.params["length"], len(carry)
    # What is carried becomes variables. What turns read and make becomes arrays.
    inner, first = body.jaxpr.invars, len(consts) + count
    dtypes = dtypes_of(inner[len(consts) : first])
    carried = [statements.variables(dtype, names) for dtype, names in zip(dtypes, carry)]
    given = [array_of(statements, aval_of(var).dtype, names) for var, names in zip(inner[first:], rows)]
    stacked = [aval_of(var) for var in eqn.outvars[count:]]
    results = [statements.array(aval.dtype, aval.size) if aval.size else "" for aval in stacked]
    # The body, of the elements of one turn.
    turn = next(statements.fresh)
    with statements.scope() as lines:
        at_turn = [elements(name, aval_of(var).shape, turn) for name, var in zip(given, inner[first:])]
        values = statements.run(body.jaxpr, body.consts, [*consts, *carried, *at_turn])
        for name, names in zip(results, values[count:]):
            lines.extend(f"{a} = {b};" for a, b in zip(elements(name, names.shape, turn).flat, names.flat))
        statements.assign(dtypes, carried, values[:count])
    # The loop around it.
    forward, backward = f"0; {turn} < {length}; {turn}++", f"{length - 1}; {turn} >= 0; {turn}--"
    statements.lines += [f"for (int {turn} = {backward if eqn.params['reverse'] else forward}) {{", *lines, "}"]
    return [*carried, *(elements(name, aval.shape) for name, aval in zip(results, stacked))]


def array_of(statements: Statements, dtype: DTypeLike, names: Names) -> str:
    """The name of an array of numbers in memory; a table if all numbers are constants."""
    numbers = names.ravel().tolist()
    if not numbers:
        return ""  # no element is ever used
    if are_known(numbers):
        return statements.define_table(dtype, numbers)
    return statements.array(dtype, len(numbers), numbers)


def while_loop(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> list[Names]:
    condition, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    of_condition, of_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    given, initial = (args[:of_condition], args[of_condition:][:of_body]), args[of_condition + of_body :]
    # The state becomes variables, which the body assigns at once.
    dtypes = dtypes_of(eqn.outvars)
    state = [statements.variables(dtype, names) for dtype, names in zip(dtypes, initial)]
    # Threads of a warp may leave the loop at different turns.
    with statements.scope(diverges=True) as lines:
        (goes_on,) = statements.run(condition.jaxpr, condition.consts, [*given[0], *state])
        lines.append(f"if (!({goes_on.item()})) break;")
        values = statements.run(body.jaxpr, body.consts, [*given[1], *state])
        statements.assign(dtypes, state, values)
    statements.lines += ["while (true) {", *lines, "}"]
    return state


BRANCHES: dict[str, Rule] = {"cond": cond, "platform_index": platform_index, "scan": scan, "while": while_loop}
