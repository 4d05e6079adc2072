"""What a traced program means: its equations in NumPy, one after the other, which no compiler has seen.

A primitive of the library is evaluated as the function that it equals.
"""

import functools

import jax
import numpy as np
from jax.extend.core import Literal

from jaxtex._jax.calls import CALLS, program_of
from jaxtex._jax.versions import sizes_of_scan
from tests.support.numpy_rules import RULES, promises, rule


class Program:
    """The equations of a jaxpr as steps: a rule, its parameters, and the places of its operands and results."""

    def __init__(self, jaxpr):
        self.values, self.places, self.steps = [], {}, []
        self.inputs = [self.place(v) for v in (*jaxpr.constvars, *jaxpr.invars)]
        for eqn in jaxpr.eqns:
            function, is_multiple = step_of(eqn)
            operands, results = ([self.place(v) for v in variables] for variables in (eqn.invars, eqn.outvars))
            self.steps.append((function, eqn.params, operands, results, is_multiple))
        self.outputs = [self.place(v) for v in jaxpr.outvars]

    def place(self, v):
        """The place of a variable, or of a new one for a constant."""
        key = id(v) if isinstance(v, Literal) else v
        if key not in self.places:
            self.places[key] = len(self.values)
            self.values.append(np.asarray(v.val, v.aval.dtype) if isinstance(v, Literal) else None)
        return self.places[key]

    def run(self, inputs):
        values = self.values.copy()
        for place, value in zip(self.inputs, inputs, strict=True):
            values[place] = value
        for function, params, operands, results, is_multiple in self.steps:
            found = function([values[place] for place in operands], params)
            for place, value in zip(results, found if is_multiple else [found]):
                values[place] = np.asarray(value)
        return [values[place] for place in self.outputs]


def step_of(eqn):
    """The rule of an equation, and whether it returns several results."""
    if eqn.primitive.name in RULES:
        return RULES[eqn.primitive.name], eqn.primitive.multiple_results
    implementation = eqn.primitive.impl
    assert implementation.__module__.startswith("jaxtex"), (
        f"{eqn.primitive} has no rule in tests/support/numpy_rules.py"
    )
    function = getattr(implementation, "__wrapped__", implementation)
    types = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars]
    closed = jax.make_jaxpr(functools.partial(function, **eqn.params))(*types)
    return lambda operands, _: keeping_promises(closed, operands), True


program = functools.cache(Program)


def evaluate(closed, operands):
    """The results of a closed jaxpr, or of one without constants."""
    jaxpr = getattr(closed, "jaxpr", closed)
    return program(jaxpr).run([*map(np.asarray, getattr(closed, "consts", ())), *operands])


def keeping_promises(closed, operands):
    """`evaluate`, where a gather fails whose indices are not where they promise to be."""
    before, promises.are_checked = promises.are_checked, True
    try:
        return evaluate(closed, operands)
    finally:
        promises.are_checked = before


# Programs within programs


RULES |= dict.fromkeys(CALLS, lambda operands, params: evaluate(program_of(params), operands))


@rule("scan")
def scan(operands, params):
    (of_body, of_carry), length = sizes_of_scan(params), params["length"]
    constants, carry, rows = operands[:of_body], operands[of_body:][:of_carry], operands[of_body + of_carry :]
    results = []
    for k in reversed(range(length)) if params["reverse"] else range(length):
        found = evaluate(params["jaxpr"], [*constants, *carry, *(row[k] for row in rows)])
        carry = found[:of_carry]
        results.append(found[of_carry:])
    results = results[::-1] if params["reverse"] else results
    return [*carry, *map(np.stack, zip(*results))]
