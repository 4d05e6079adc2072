"""The errors of public functions: each names the function that was called, arguments that it has, and what to pass.

A table holds calls that people write, with a part of each sentence. A sweep goes over all functions and arguments.
"""

import re
import warnings
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import jaxtex as jt
import jaxtex.layers.equinox
from tests.house.public_api import FOLDER, parameters_of
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


# The table. Each row is a call, and a part of its error.

ROWS = re.findall(r"^>>> (.*)\n(.*)$", (FOLDER / "errors.txt").read_text(), re.MULTILINE)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def names():
    """What calls of the table are made of."""
    warp, nn, ndimage, normal = jt.warp, jt.nn, jt.ndimage, zeros
    IMAGE, PLAIN, SMALL, VOLUME = zeros(24, 32, 3), zeros(4, 6, 3), zeros(4, 5, 2), zeros(3, 4, 5, 2)
    LABELS, MAPS, MAP = np.zeros((4, 5, 1), np.int32), zeros(1, 4, 5, 2), zeros(2, 4, 4, 2)
    X, Y, U, ROWS, CENTER, UP = zeros(24, 32), zeros(24, 32), zeros(3), zeros(3, 2), (0.5, 0.5), (0.0, 1.0, 0.0)
    CAMERA, BYTES = np.float32([[30, 0, 16], [0, 30, 12], [0, 0, 1]]), jt.Sampler(read_mode="normalized_float")
    TEXTURE, TINY, LINE = jt.texture2d(zeros(5, 7, 3)), jt.texture2d(zeros(2, 3, 1)), jt.texture1d(zeros(4, 1))
    LAYERED, CUBE = jt.texture2d_layered(zeros(4, 5, 7, 3)), jt.cubemap(zeros(6, 4, 4, 1))
    CHAIN = jt.build_mipmaps(jt.texture2d(zeros(4, 6, 2)))
    ATTENTION, LEVELS, STORED = (zeros(1, 6, 2, 4), zeros(1, 5, 2, 2, 3, 2), zeros(1, 5, 2, 2, 3)), ((1, 2), (2, 2)), 6
    KERNEL, OFFSETS, BOXES = zeros(3, 3, 2, 2), zeros(2, 2, 2, 18), zeros(3, 4)
    GRID = nn.MultiresolutionGrid(ndim=2, num_levels=1, base_resolution=2)
    SPACE = nn.MultiresolutionGrid(num_levels=1, base_resolution=2)
    return {"jax": jax, "jt": jt, "np": np, "jnp": jnp, "Image": Image} | locals()


def test_the_error_of_a_call_says_what_was_expected():
    scope, faults = names(), []
    for call, words in ROWS:
        try:
            eval(call, scope)
        except (TypeError, ValueError) as error:
            message = str(error).split("\n")[0]
            named = re.search(rf"\b{message.split(': ')[0]}\(", call)
            faults += [] if words in message and message.endswith(".") and named else [(call, message)]
        else:
            faults.append((call, "no error"))
    assert not faults, faults


def test_the_table_is_sorted_and_names_each_call_once():
    assert sorted(dict(ROWS).items()) == ROWS
