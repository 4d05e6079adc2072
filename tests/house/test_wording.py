"""The errors of public functions: each names the function that was called, arguments that it has, and what to pass."""

import re
import warnings

import jax
import numpy as np
import pytest

import jaxtex as jt
from tests.house.public_api import parameters_of
from tests.house.public_calls import CALLS, EAGER, public_functions

FUNCTIONS = public_functions()
ANY = {
    "a word": "no",
    "nothing": None,
    "an empty list": [],
    "a complex array": np.zeros((2, 2), np.complex64),
    "strange sizes": np.zeros((5, 11, 13), np.float32),
    "a traced integer": jax.ShapeDtypeStruct((), np.int32),
}
# An argument that a call needs is an array in most cases.
REQUIRED = ANY | {
    "no axes": np.zeros((), np.float32),
    "many axes": np.zeros((1,) * 7, np.float32),
    "no elements": np.zeros((0, 0, 0), np.float32),
}
# These go on to a function of the caller, which raises what it likes.
PASSED_ON = ("extra_arguments", "extra_keywords")
# What messages call by a keyword: the arguments of the function, the fields of its sampler, and those of other calls.
SUBJECT = re.compile(r"\w+: (\w+)(?:\[\d+\])? (?:is|are|has|have|holds|was|came)\b")
CALL = re.compile(r"([\w.]+)\(([^()]*)\)")
KEYWORD = re.compile(r"\b(?!jax_)(\w+)=(?!=)")


def wrong_calls(name):
    """Calls with one wrong argument, or with a keyword that the function does not have."""
    for parameter in parameters_of(FUNCTIONS[name]).values():
        if parameter.name in PASSED_ON or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        for kind, value in (REQUIRED if parameter.default is parameter.empty else ANY).items():
            # An iterator over tiles is not traced.
            if value is not parameter.default and not (name in EAGER and isinstance(value, jax.ShapeDtypeStruct)):
                yield f"{parameter.name}, {kind}", CALLS[name] | {parameter.name: value}
    yield "a keyword", CALLS[name] | {"swirl": 1}


def consumed(value):
    """The arrays of a result. A context is entered."""
    if hasattr(value, "__enter__"):
        with value:
            return None
    return [leaf for leaf in jax.tree.leaves(value) if isinstance(leaf, np.ndarray | jax.Array)]


def fault_of(name, keywords):
    """What is wrong with the error of a call, if it raises one."""
    traced = {k: v for k, v in keywords.items() if isinstance(v, jax.ShapeDtypeStruct)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name in EAGER:
                next(FUNCTIONS[name](**keywords))
            else:
                jax.eval_shape(lambda traced: consumed(FUNCTIONS[name](**keywords | traced)), traced)
    except (TypeError, ValueError, *documented(name)) as error:
        return fault_in(name, str(error))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def documented(name):
    """Errors of other kinds that the docstring names."""
    return [NotImplementedError] if "NotImplementedError" in FUNCTIONS[name].__doc__ else []


def fault_in(name, message):
    """What is wrong with a message."""
    called = name.rpartition(".")[2]
    names = {*parameters_of(FUNCTIONS[name])}
    if re.match(rf"{called}(\.__init__)?\(\)", message):  # Python's own words on keywords
        return None
    if not message.startswith(f"{called}: "):
        return f"another name: {message}"
    subject = SUBJECT.match(message)
    if subject and subject[1] not in names | {"there"}:
        return f"no argument {subject[1]}: {message}"
    if "sampler" in names:
        names |= {*parameters_of(jt.Sampler)}
    for call, arguments in CALL.findall(message):
        if call.startswith("jaxtex."):
            missing = {*KEYWORD.findall(arguments)} - {*parameters_of(FUNCTIONS[call.removeprefix("jaxtex.")])}
            if missing:
                return f"no argument {missing} of {call}: {message}"
    missing = {*KEYWORD.findall(CALL.sub("", message))} - names
    return f"no argument {missing}: {message}" if missing else None


@pytest.fixture(autouse=True, scope="module")
def whole_tracebacks():
    """JAX takes longer to cut its own lines from a traceback than a call takes to raise an error."""
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    yield
    jax.config.update("jax_traceback_filtering", before)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_name_the_function_and_its_arguments(name):
    faults = [(wrong, fault) for wrong, keywords in wrong_calls(name) if (fault := fault_of(name, keywords))]
    assert not faults, faults
