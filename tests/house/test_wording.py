"""The errors of public functions: each names the function that was called, arguments that it has, and what to pass."""

import re
import warnings
from collections.abc import Iterator

import jax
import numpy as np
import pytest

import jaxtex as jt
from tests.house.public_api import parameters_of
from tests.house.public_calls import EAGER, public_functions
from tests.house.wrong_calls import wrong_calls

FUNCTIONS = public_functions()
MOST_LETTERS = 450
# What messages call by a keyword: the arguments of the function, the fields of its sampler, and those of other calls.
SUBJECT = re.compile(r"\w+: (\w+)(?:\[\d+\])? (?:is|are|has|have|holds|was|came)\b")
CALL = re.compile(r"([\w.]+)\(([^()]*)\)")
KEYWORD = re.compile(r"\b(?!jax_)(\w+)=(?!=)")


def consumed(value):
    """The arrays of a result. A context is entered."""
    if hasattr(value, "__enter__"):
        with value:
            return None
    arrays = [leaf for leaf in jax.tree.leaves(value) if isinstance(leaf, np.ndarray | jax.Array)]
    return [array for array in arrays if array.dtype.kind not in "OU"]


def fault_of(name, args, keywords):
    """What is wrong with the error of a call, if it raises one."""
    leaves, structure = jax.tree.flatten(keywords, is_leaf=is_struct)
    traced = {k: leaf for k, leaf in enumerate(leaves) if is_struct(leaf)}

    def call(traced):
        given = jax.tree.unflatten(structure, [traced.get(k, leaf) for k, leaf in enumerate(leaves)])
        return consumed(FUNCTIONS[name](*args, **given))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name in EAGER:
                made = FUNCTIONS[name](*args, **keywords)
                if isinstance(made, Iterator):
                    next(made)
            else:
                jax.eval_shape(call, traced)
    except (TypeError, ValueError, *documented(name)) as error:
        return fault_in(name, str(error))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def is_struct(value):
    return isinstance(value, jax.ShapeDtypeStruct)


def documented(name):
    """Errors of other kinds that the docstring names."""
    return [NotImplementedError] if "NotImplementedError" in FUNCTIONS[name].__doc__ else []


def fault_in(name, message):
    """What is wrong with a message."""
    called = name.rpartition(".")[2]
    names = {*parameters_of(FUNCTIONS[name])}
    if re.match(rf"{called}(\.__(init|new)__)?\(\)", message):  # Python's own words on keywords
        return None
    if not message.startswith(f"{called}: "):
        return f"another name: {message}"
    if "\n" in message or len(message) > MOST_LETTERS or not message.endswith("."):
        return f"no short sentence: {message}"
    if "expected" not in message and "; " not in message:
        return f"neither what was expected nor what to do: {message}"
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
    calls = wrong_calls(name, FUNCTIONS[name])
    faults = [(wrong, fault) for wrong, args, keywords in calls if (fault := fault_of(name, args, keywords))]
    assert not faults, faults
