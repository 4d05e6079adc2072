"""Programs evaluated in NumPy, equation by equation, where a test claims values and XLA would only take longer.

A program of `jax.jit` is evaluated if each of its primitives has a rule and it runs on one device, as it is. Any other
program is compiled. A primitive of the library is evaluated as the function that it equals.
"""

import contextlib
import functools
import importlib

import jax
import numpy as np
from jax.extend.core import Literal, jaxprs_in_params

from jaxtex._jax.calls import CALLS, program_of
from jaxtex._jax.versions import sizes_of_scan
from tests.support.numpy_rules import EXACT, RULES, Unsupported, promises, rule

# Which programs are evaluated: none, those of single elements that NumPy computes to the bit, or all that have rules.
NONE, ELEMENTS, ALL = range(3)


class Program:
    """The equations of a jaxpr as steps: a rule, its parameters, and the places of its operands and results.

    Raises:
        Unsupported: if one of them has no rule.
    """

    def __init__(self, jaxpr):
        if jaxpr.effects:
            raise Unsupported(f"effects: {jaxpr.effects}")
        self.values, self.places, self.steps = [], {}, []
        self.inputs = [self.place(v) for v in (*jaxpr.constvars, *jaxpr.invars)]
        for eqn in jaxpr.eqns:
            function, is_multiple = step_of(eqn)
            operands, results = ([self.place(v) for v in variables] for variables in (eqn.invars, eqn.outvars))
            self.steps.append((function, eqn.params, operands, results, is_multiple))
        self.outputs = [self.place(v) for v in jaxpr.outvars]

    def place(self, v):
        """The place of a variable, or of a new one for a constant."""
        check_is_plain(v.aval)
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


def check_is_plain(aval):
    dtype = getattr(aval, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype == jax.dtypes.float0 or not all(isinstance(n, int) for n in aval.shape):
        raise Unsupported(f"a value of {aval}")


def step_of(eqn):
    """The rule of an equation, and whether it returns several results."""
    if eqn.primitive.name in RULES:
        for inner in jaxprs_in_params(eqn.params):
            PROGRAMS.of(inner)
        return RULES[eqn.primitive.name], eqn.primitive.multiple_results
    implementation = eqn.primitive.impl
    if not getattr(implementation, "__module__", "").startswith("jaxtex"):
        raise Unsupported(eqn.primitive.name)
    function = getattr(implementation, "__wrapped__", implementation)
    types = tuple((v.aval.shape, v.aval.dtype) for v in eqn.invars)
    closed = PROGRAMS.of_function(function, types, tuple(eqn.params.items()), jax.config.jax_enable_x64)
    return lambda operands, _: keeping_promises(closed, operands), True


class Programs:
    """Programs, kept with the jaxprs that they evaluate."""

    def __init__(self):
        self.forget()

    def forget(self):
        self.found, self.exact, self.functions = {}, {}, {}

    def of(self, jaxpr):
        if id(jaxpr) not in self.found:
            try:
                self.found[id(jaxpr)] = jaxpr, Program(jaxpr)
            except Unsupported as reason:
                self.found[id(jaxpr)] = jaxpr, reason
        found = self.found[id(jaxpr)][1]
        if isinstance(found, Unsupported):
            raise found
        return found

    def give_up(self, jaxpr, reason):
        self.found[id(jaxpr)] = jaxpr, reason

    def are_elements(self, jaxpr):
        """Whether a program computes each element by itself, to the bit."""
        if id(jaxpr) not in self.exact:
            known = all(eqn.primitive.name in EXACT for eqn in jaxpr.eqns)
            inner = (inner for eqn in jaxpr.eqns for inner in jaxprs_in_params(eqn.params))
            self.exact[id(jaxpr)] = jaxpr, known and all(map(self.are_elements, inner))
        return self.exact[id(jaxpr)][1]

    def of_function(self, *key):
        """The program of a function, from its types and static parameters."""
        if key not in self.functions:
            function, types, params, _ = key
            with jax.disable_jit(False):
                arguments = [jax.ShapeDtypeStruct(*kind) for kind in types]
                closed = jax.make_jaxpr(functools.partial(function, **dict(params)))(*arguments)
            self.of(closed.jaxpr)
            self.functions[key] = closed
        return self.functions[key]


PROGRAMS = Programs()


def evaluate(closed, operands):
    """The results of a closed jaxpr, or of one without constants."""
    jaxpr = getattr(closed, "jaxpr", closed)
    return PROGRAMS.of(jaxpr).run([*map(np.asarray, getattr(closed, "consts", ())), *operands])


def keeping_promises(closed, operands):
    """`evaluate`, where a gather fails whose indices are not where they promise to be."""
    before, promises.are_checked = promises.are_checked, True
    try:
        return evaluate(closed, operands)
    finally:
        promises.are_checked = before


# Programs within programs


RULES |= dict.fromkeys(CALLS, lambda operands, params: evaluate(program_of(params), operands))


@rule("platform_index")
def platform_index(_, params):
    names = [index for index, names in enumerate(params["platforms"]) if names is None or "cpu" in names]
    return np.int32(names[0])


@rule("cond")
def cond(operands, params):
    index, *operands = operands
    branches = params["branches"]
    return evaluate(branches[min(max(int(index), 0), len(branches) - 1)], operands)


@rule("while")
def while_loop(operands, params):
    of_condition, of_body = params["cond_nconsts"], params["body_nconsts"]
    constants, operands = operands[:of_condition], operands[of_condition:]
    of_body, state = operands[:of_body], operands[of_body:]
    while np.any(goes_on := np.asarray(evaluate(params["cond_jaxpr"], [*constants, *state])[0])):
        found = evaluate(params["body_jaxpr"], [*of_body, *state])
        # Of a batch, those that have ended keep their state.
        masks = (np.expand_dims(goes_on, tuple(range(goes_on.ndim, np.ndim(a)))) for a in found)
        state = [np.where(mask, a, b) for mask, a, b in zip(masks, found, state)] if goes_on.ndim else found
    return state


@rule("scan")
def scan(operands, params):
    (of_body, of_carry), length = sizes_of_scan(params), params["length"]
    if length == 0:
        raise Unsupported("a scan without steps")
    constants, carry, rows = operands[:of_body], operands[of_body:][:of_carry], operands[of_body + of_carry :]
    results = []
    for k in reversed(range(length)) if params["reverse"] else range(length):
        found = evaluate(params["jaxpr"], [*constants, *carry, *(row[k] for row in rows)])
        carry = found[:of_carry]
        results.append(found[of_carry:])
    results = results[::-1] if params["reverse"] else results
    return [*carry, *map(np.stack, zip(*results))]


# In place of compiled programs

PJIT = importlib.import_module("jax._src.pjit")
PXLA = importlib.import_module("jax._src.interpreters.pxla")
NOT_SPECIFIED = importlib.import_module("jax._src.sharding_impls").UNSPECIFIED
COMPILED = PJIT._pjit_call_impl_python
MODES = [NONE]


@functools.cache
def first_device():
    return jax.local_devices()[0]


def is_plain(x, device):
    """Whether an argument is a number, or an array of NumPy, or lies on a device alone."""
    if isinstance(x, jax.Array):
        return x.sharding.device_set == {device}
    return isinstance(x, (np.ndarray, np.generic, int, float))


def may_be_evaluated(jaxpr, options):
    """Whether a program runs as it is, on one device."""
    sharded = any(x is not NOT_SPECIFIED for x in (*options["in_shardings"], *options["out_shardings"]))
    laid_out = any(x is not None for x in (*options["in_layouts"], *options["out_layouts"]))
    changed = any(options["donated_invars"]) or not options["ctx_mesh"].empty
    return not (sharded or laid_out or changed) and (MODES[-1] == ALL or PROGRAMS.are_elements(jaxpr))


def run(*args, jaxpr, **options):
    """In place of JAX's function that compiles and runs a program."""
    inner, device = getattr(jaxpr, "jaxpr", jaxpr), jax.config.jax_default_device or first_device()
    if MODES[-1] == NONE or not may_be_evaluated(inner, options) or not all(is_plain(x, device) for x in args):
        return COMPILED(*args, jaxpr=jaxpr, **options)
    try:
        program = PROGRAMS.of(inner)
        types = [v.aval for v in inner.invars]
        operands = [np.asarray(x) if isinstance(x, jax.Array) else np.asarray(x, t.dtype) for x, t in zip(args, types)]
        with np.errstate(all="ignore"):
            found = program.run([*map(np.asarray, jaxpr.consts), *operands])
    except Unsupported as reason:
        PROGRAMS.give_up(inner, reason)
        return COMPILED(*args, jaxpr=jaxpr, **options)
    committed = any(isinstance(x, jax.Array) and x.committed for x in args)
    results = [as_array(x, v.aval, device, committed) for x, v in zip(found, inner.outvars)]
    return results, None, None, []


def as_array(x, aval, device, committed):
    """A result as an array of JAX, with its own memory."""
    assert (x.shape, x.dtype) == (aval.shape, aval.dtype), f"{x.dtype}{x.shape} is no {aval}"
    sharding = jax.sharding.SingleDeviceSharding(device)
    return PXLA.batched_device_put(aval, sharding, [np.array(x, order="C")], [device], committed)


def install():
    first_device()  # asked now, as tests pretend that there are others
    PJIT._pjit_call_impl_python = run


@contextlib.contextmanager
def evaluating(mode):
    """Programs that run meanwhile are evaluated, if they are those that `mode` names."""
    MODES.append(mode)
    try:
        yield
    finally:
        MODES.pop()
