"""Every option of every public function has an effect, or is refused, or a docstring says that it has none."""

import fnmatch
import inspect
import re

import jax
import numpy as np
import pytest
from jax.interpreters import partial_eval

import jaxtex as jt
from tests.house.public_api import parameters_of
from tests.house.public_calls import CALLS, EAGER, FIELDS, IGNORED, OTHERS, READERS, RESULTS, TESTED_ELSEWHERE
from tests.house.public_calls import public_functions as functions

FUNCTIONS = functions()


def options_of(name):
    """The parameters that a call may leave out, with their defaults."""
    return {p.name: p.default for p in parameters_of(FUNCTIONS[name]).values() if p.default is not p.empty}


def others(name, option):
    """How `OTHERS` changes an option of a function."""
    keys = (f"{name}.{option}", f"{name.rpartition('.')[2]}.{option}", option)
    return next((OTHERS[key] for key in keys if key in OTHERS), None)


def cases_of(name):
    """What is changed beside what, and the arguments of a call without and with another value for it."""
    parameters = parameters_of(FUNCTIONS[name])
    for option, default in options_of(name).items():
        for value, beside in others(name, option) or ():
            if beside and not set(beside) & set(parameters):
                continue
            base = CALLS[name] | {k: v for k, v in beside.items() if k in parameters}
            if not same(value, base.get(option, default)):
                yield spelled(option, beside), base, base | {option: value}


def fields_of(name):
    """The same for the fields of the sampler of a function."""
    for field, (value, beside, *arguments) in FIELDS.items():
        if name == "spline_filter":
            beside = {"filter_mode": "bspline"} | beside
        try:
            before, after = jt.Sampler(**beside), jt.Sampler(**beside | {field: value})
        except ValueError:  # no such sampler can be made
            continue
        base = CALLS[name] | READERS[name] | {"sampler": before}
        base |= {k: v for more in arguments for k, v in more.items() if k in base}
        other = base | {"sampler": after}
        yield spelled(f"sampler.{field}", beside), base, other


def spelled(option, beside):
    return f"{option} beside {', '.join(beside)}" if beside else option


def same(one, other):
    """Whether two values are equal: trees of arrays and of anything else."""
    (ones, structure), (others, other_structure) = jax.tree.flatten(one), jax.tree.flatten(other)
    return structure == other_structure and all(map(same_leaf, ones, others))


def same_leaf(one, other):
    if all(is_array(key) and jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key) for key in (one, other)):
        one, other = jax.random.key_data(one), jax.random.key_data(other)
    if is_array(one) and is_array(other):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return one is other or (type(one) is type(other) and not is_array(one) and one == other)


def is_array(value):
    return isinstance(value, np.ndarray | jax.Array)


def result(name, keywords):
    """What a call returns, or what an object that it makes is good for."""
    return RESULTS.get(name, lambda value: value)(FUNCTIONS[name](**keywords))


class Programs:
    """The traced programs of the calls of a function, without what their results do not depend on."""

    def __init__(self, name):
        self.name, self.found = name, []

    def of(self, keywords):
        """Of a call, its program, inputs and constants, and the shapes of its results; or the error that refuses it."""
        for known, program in self.found:
            if same(known, keywords):
                return program
        try:
            program = result(self.name, keywords) if self.name in EAGER else self.traced(keywords)
        except Exception as error:
            program = error
        self.found.append((keywords, program))
        return program

    def traced(self, keywords):
        leaves, structure = jax.tree.flatten(keywords)
        arrays = {i: leaf for i, leaf in enumerate(leaves) if is_array(leaf)}

        def call(arrays):
            return result(
                self.name, jax.tree.unflatten(structure, [arrays.get(i, leaf) for i, leaf in enumerate(leaves)])
            )

        closed, shapes = jax.make_jaxpr(call, return_shape=True)(arrays)
        kept, used = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
        inputs = [value for value, is_used in zip(arrays.values(), used) if is_used]
        return str(kept), str(shapes), inputs, [*closed.consts, *constants(kept)]


def constants(jaxpr):
    for equation in jaxpr.eqns:
        for parameter in jax.tree.leaves([*equation.params.values()], is_leaf=lambda p: hasattr(p, "jaxpr")):
            yield from getattr(parameter, "consts", ())
            if hasattr(getattr(parameter, "jaxpr", parameter), "eqns"):
                yield from constants(getattr(parameter, "jaxpr", parameter))


def without_effect(name, cases):
    """What changes nothing, of what no docstring names, and errors that do not say what they refuse."""
    programs = Programs(name)
    for spelling, base, other in cases:
        if any(fnmatch.fnmatch(f"{name} {spelling}", pattern) for pattern in IGNORED):
            continue
        after = programs.of(other)
        if isinstance(after, Exception):
            if not is_refusal(name, spelling, after):
                yield f"{spelling}: {type(after).__name__}: {after}"
        # A program does not show all that is static in it.
        elif same(after, programs.of(base)) and same(result(name, base), result(name, other)):
            yield spelling


def is_refusal(name, spelling, error):
    """Whether an error names the function, and the option or one of those beside it."""
    words = [word.removesuffix("_mode") for word in re.findall(r"\w+", spelling)]
    named = re.match(rf"{name.rpartition('.')[2]}: .*({'|'.join(words)})", str(error))
    return isinstance(error, TypeError | ValueError) and named is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_option_has_an_effect(name):
    assert name in CALLS, f"add a call of {name} to CALLS"
    rows = {option for option in options_of(name) if others(name, option) is None}
    missing = {option for option in rows if f"{name}.{option}" not in TESTED_ELSEWHERE}
    assert not missing or name == "Sampler", f"add another value for {missing} of {name} to OTHERS"
    found = [*without_effect(name, cases_of(name))]
    assert not found, found


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_every_field_of_a_sampler_has_an_effect(name):
    assert {*FIELDS} == {*options_of("Sampler")}
    found = [*without_effect(name, fields_of(name))]
    assert not found, found


@pytest.mark.parametrize("pattern", IGNORED)
def test_a_docstring_says_what_has_no_effect(pattern):
    source, sentence = IGNORED[pattern]
    assert sentence in " ".join(inspect.getdoc(FUNCTIONS[source]).split())
